#include "impl/generate/tokenizer_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/generate/byte_pairs.hpp"
#include "impl/generate/split_text.hpp"
#include "impl/generate/unicode_ranges.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/utf8.hpp"

namespace assay::impl::generate {

namespace {
using spec::document::Item;
using spec::document::Kind;

constexpr const char* blank = "\xe2\x96\x81";  ///< U+2581, which stands for a blank

std::string utf8_of(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

/// How byte-level vocabularies spell bytes: printable ones of Latin-1 as they are, the others from U+0100 on.
std::array<std::string, 256> spelled_bytes() {
  std::array<std::string, 256> out;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool plain = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    out[byte] = utf8_of(plain ? byte : next++);
  }
  return out;
}

/// "<0x0A>"
std::string hexadecimal_token(unsigned char byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

/// The byte that "<0x0A>" or "<0x0a>" stands for; nothing of any other token, "<0xZZ>" among them.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return {};
  unsigned char byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return {};
  return static_cast<char>(byte);
}

/// An id, of which a vocabulary holds fewer than 2^31.
std::int64_t id_of(Item json) {
  const std::int64_t id = json.integer();
  if (id < 0 || id > INT32_MAX) json.wrong("a token id, from 0 on");
  return id;
}

std::string type_of(Item part) { return part.at("type").text(); }
bool flag(Item part, const char* key, bool otherwise = false) {
  const auto value = part.find(key);
  return value && !value->is(Kind::null) ? value->boolean() : otherwise;
}

/// The parts of a Sequence, or the one part that there is; none where it is null.
std::vector<Item> parts_of(Item root, const char* key, const char* list) {
  const auto part = root.find(key);
  if (!part || part->is(Kind::null)) return {};
  if (type_of(*part) != "Sequence") return {*part};
  const Item all = part->at(list);
  std::vector<Item> out;
  for (std::size_t i = 0; i < all.size(); ++i) out.push_back(all[i]);
  return out;
}

[[noreturn]] void refuse(Item part, const std::string& what) {
  throw UserError(ExitCode::usage, part.where() + ": a tokenizer with " + what +
                                       " is not read; encode prompts with the package tokenizers and give "
                                       "them as --ids");
}

struct Added {
  std::string content;
  std::int64_t id = 0;
  bool special = false, plain = true;  ///< plain: matched as it stands, wherever it stands
};

class Tokenizer final : public TextCodec {
 public:
  explicit Tokenizer(const spec::document::Tree& tree) {
    const Item root = tree.root();
    read_model(root.at("model"));
    read_normalizer(root);
    read_pre_tokenizer(root);
    read_added(root);
    read_post_processor(root);
    if (byte_fallback_ == bytes_)
      refuse(root.at("model"), "neither a ByteLevel pre_tokenizer nor byte_fallback");
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      const std::string token = bytes_ ? spelled_[byte] : hexadecimal_token(static_cast<unsigned char>(byte));
      const auto id = pairs_.find(token);
      if (!id) refuse(root.at("model"), "no token for byte " + std::to_string(byte));
      byte_ids_[byte] = *id;
    }
    for (std::size_t byte = 0; byte < spelled_.size(); ++byte)
      bytes_spelled_.emplace(spelled_[byte], static_cast<char>(byte));
    for (const Added& added : added_) texts_[added.id].bytes = added.special ? "" : added.content;
    for (auto& [id, text] : texts_) text = spelled_out(text.bytes);
  }

  std::vector<std::int64_t> encode(const std::string& text) const override {
    if (spec::valid_utf8(text) != text) throw UserError(ExitCode::usage, "a prompt that is no UTF-8");
    if (nfc_)
      for (const char32_t c : code_points(text))
        if (may_compose(c))
          throw UserError(
              ExitCode::usage,
              "a prompt with a character that its tokenizer may compose with its neighbour (NFC); write "
              "composed characters, or give the prompt as --ids");
    std::vector<std::int64_t> ids = front_;
    for (std::size_t at = 0; at < text.size();) {
      const auto [where, added] = next_added(text, at);
      encode_plain(std::string_view(text).substr(at, where - at), at == 0, ids);
      if (!added) break;
      if (!added->plain)
        throw UserError(ExitCode::usage,
                        "a prompt with the token " + spec::quote(added->content) +
                            ", beside which its tokenizer strips blanks; give the prompt as --ids");
      ids.push_back(added->id);
      at = where + added->content.size();
    }
    ids.insert(ids.end(), behind_.begin(), behind_.end());
    return ids;
  }

  TokenText token(std::int64_t id) const override {
    const auto found = texts_.find(id);
    return found == texts_.end() ? TokenText() : found->second;
  }

 private:
  void read_model(Item model) {
    if (const auto type = model.find("type"); type && type->text() != "BPE")
      refuse(model, "a model of type " + type->text());
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const auto value = model.find(key); value && value->is(Kind::text) && !value->text().empty())
        refuse(*value, key);
    if (const auto dropout = model.find("dropout");
        dropout && !dropout->is(Kind::null) && dropout->real() != 0)
      refuse(*dropout, "dropout");
    byte_fallback_ = flag(model, "byte_fallback");
    whole_words_ = flag(model, "ignore_merges");
    const Item vocabulary = model.at("vocab");
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const std::int64_t id = id_of(vocabulary[i]);
      pairs_.add_token(vocabulary.key(i), id);
      texts_[id].bytes = vocabulary.key(i);
    }
    const Item merges = model.at("merges");
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const Item merge = merges[i];
      bool known = false;
      if (merge.is(Kind::text)) {  // "a b"
        const std::string& text = merge.text();
        const std::size_t space = text.find(' ', 1);
        known = space != std::string::npos && pairs_.add_merge(std::string_view(text).substr(0, space),
                                                               std::string_view(text).substr(space + 1));
      } else {
        known = merge.size() == 2 && pairs_.add_merge(merge[0].text(), merge[1].text());
      }
      if (!known) merge.refuse("a merge of what is no token");
    }
  }

  void read_normalizer(Item root) {
    for (const Item part : parts_of(root, "normalizer", "normalizers")) {
      const std::string type = type_of(part);
      if (type == "NFC") {
        nfc_ = true;
      } else if (type == "Prepend" && part.at("prepend").text() == blank) {
        prepend_ = Prepend::always;
      } else if (type == "Replace" && part.at("content").text() == blank &&
                 part.at("pattern").find("String") && part.at("pattern").at("String").text() == " ") {
        blanks_ = true;
      } else {
        refuse(part, "normalizer " + type);
      }
    }
  }

  void read_pre_tokenizer(Item root) {
    for (const Item part : parts_of(root, "pre_tokenizer", "pretokenizers")) {
      const std::string type = type_of(part);
      if (type == "ByteLevel") {
        bytes_ = true;
        prefix_space_ = flag(part, "add_prefix_space", true);
        if (flag(part, "use_regex", true)) take(part, SplitPattern::gpt2);
      } else if (type == "Split" && part.at("pattern").find("Regex") &&
                 part.at("behavior").text() == "Isolated" && !flag(part, "invert")) {
        const std::string& regex = part.at("pattern").at("Regex").text();
        const auto* const known = std::ranges::find(known_patterns, regex, &NamedPattern::regex);
        if (known == std::end(known_patterns)) refuse(part, "the pattern " + spec::quote(regex));
        take(part, known->pattern);
      } else if (type == "Metaspace" && part.at("replacement").text() == blank &&
                 !flag(part, "split", true)) {
        blanks_ = true;
        const auto scheme = part.find("prepend_scheme");
        const std::string word = scheme ? scheme->text() : "always";
        prepend_ = word == "first" ? Prepend::first : word == "always" ? Prepend::each : Prepend::never;
      } else {
        refuse(part, "pre_tokenizer " + type);
      }
    }
  }
  void take(Item part, SplitPattern pattern) {
    if (pattern_ != SplitPattern::none) refuse(part, "several patterns");
    pattern_ = pattern;
  }

  void read_added(Item root) {
    const auto all = root.find("added_tokens");
    if (!all || all->is(Kind::null)) return;
    for (std::size_t i = 0; i < all->size(); ++i) {
      const Item token = (*all)[i];
      added_.push_back(
          {.content = token.at("content").text(),
           .id = id_of(token.at("id")),
           .special = flag(token, "special"),
           .plain = !flag(token, "lstrip") && !flag(token, "rstrip") && !flag(token, "single_word")});
    }
    // Of those that begin at one place the longest is meant.
    std::ranges::stable_sort(
        added_, [](const Added& a, const Added& b) { return a.content.size() > b.content.size(); });
  }

  void read_post_processor(Item root) {
    for (const Item part : parts_of(root, "post_processor", "processors")) {
      const std::string type = type_of(part);
      if (type == "ByteLevel") continue;
      if (type != "TemplateProcessing") refuse(part, "post_processor " + type);
      const Item single = part.at("single");
      std::vector<std::int64_t>* to = &front_;
      for (std::size_t i = 0; i < single.size(); ++i) {
        const auto special = single[i].find("SpecialToken");
        if (!special) {
          to = &behind_;
          continue;
        }
        const Item ids = part.at("special_tokens").at(special->at("id").text()).at("ids");
        for (std::size_t k = 0; k < ids.size(); ++k) to->push_back(id_of(ids[k]));
      }
    }
  }

  /// Where the next added token of the text begins, from `at` on; the end, and null, where there is none.
  std::pair<std::size_t, const Added*> next_added(const std::string& text, std::size_t at) const {
    std::pair<std::size_t, const Added*> out = {text.size(), nullptr};
    for (const Added& added : added_)
      if (const std::size_t where = added.content.empty() ? std::string::npos : text.find(added.content, at);
          where != std::string::npos && (!out.second || where < out.first))
        out = {where, &added};
    return out;
  }

  void encode_plain(std::string_view text, bool first, std::vector<std::int64_t>& ids) const {
    if (text.empty()) return;
    std::string changed(text);
    if (bytes_ && prefix_space_ && text[0] != ' ') changed.insert(0, " ");
    if (blanks_) {
      std::string spelled;
      for (const char c : changed) c == ' ' ? void(spelled += blank) : void(spelled += c);
      changed = std::move(spelled);
    }
    const bool begins = changed.starts_with(blank),
               metaspace = prepend_ == Prepend::each || prepend_ == Prepend::first;
    if (prepend_ == Prepend::always || (metaspace && !begins && (first || prepend_ == Prepend::each)))
      changed.insert(0, blank);
    for (const std::string_view word : split_text(changed, pattern_)) encode_word(word, ids);
  }

  void encode_word(std::string_view word, std::vector<std::int64_t>& ids) const {
    if (whole_words_) {
      std::string spelled(bytes_ ? "" : word);
      if (bytes_)
        for (const char byte : word) spelled += spelled_[static_cast<unsigned char>(byte)];
      if (const auto id = pairs_.find(spelled)) return ids.push_back(*id);
    }
    std::vector<std::int64_t> parts;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = bytes_ ? 1 : std::max<std::size_t>(spec::utf8_length(word.substr(at)), 1);
      const auto id = bytes_ ? std::nullopt : pairs_.find(word.substr(at, length));
      if (id)
        parts.push_back(*id);
      else
        for (std::size_t i = 0; i < length; ++i)
          parts.push_back(byte_ids_[static_cast<unsigned char>(word[at + i])]);
      at += length;
    }
    pairs_.merge(parts);
    ids.insert(ids.end(), parts.begin(), parts.end());
  }

  /// What a token is that the vocabulary spells so.
  TokenText spelled_out(const std::string& token) const {
    std::string out;
    if (!bytes_) {
      if (const auto byte = byte_of(token)) return {.bytes = {*byte}, .kind = TokenText::Kind::byte};
      for (std::size_t at = 0; at < token.size();) {
        const bool is_blank = token.compare(at, 3, blank) == 0;
        out += is_blank ? ' ' : token[at];
        at += is_blank ? 3 : 1;
      }
      return {.bytes = out, .kind = TokenText::Kind::text};
    }
    for (std::size_t at = 0; at < token.size();) {
      const std::size_t length =
          std::max<std::size_t>(spec::utf8_length(std::string_view(token).substr(at)), 1);
      const auto byte = bytes_spelled_.find(token.substr(at, length));
      if (byte == bytes_spelled_.end()) return {.bytes = token};  // one that no text is encoded as
      out += byte->second;
      at += length;
    }
    return {.bytes = out};
  }

  /// Where a blank is put in front: of every part between added tokens, as a normalizer has it, or of those,
  /// or of the first one, that do not begin with one.
  enum class Prepend { never, always, each, first };

  const std::array<std::string, 256> spelled_ = spelled_bytes();
  std::unordered_map<std::string, char> bytes_spelled_;  ///< and back
  BytePairs pairs_;
  std::map<std::int64_t, TokenText> texts_;  ///< of tokens, by id
  std::array<std::int64_t, 256> byte_ids_ = {};
  bool bytes_ = false, byte_fallback_ = false;  ///< merges are of bytes, or of characters
  bool whole_words_ = false, nfc_ = false, prefix_space_ = false, blanks_ = false;
  Prepend prepend_ = Prepend::never;
  SplitPattern pattern_ = SplitPattern::none;
  std::vector<Added> added_;
  std::vector<std::int64_t> front_, behind_;
};
}  // namespace

std::unique_ptr<TextCodec> tokenizer_of(const std::string& json, const std::string& origin) {
  return std::make_unique<Tokenizer>(spec::parse_json(json, origin));
}

std::unique_ptr<TextCodec> read_tokenizer(const std::string& path) {
  return tokenizer_of(checkpoint::read_whole(path, spec::file_limits::tokenizer), path);
}

}  // namespace assay::impl::generate
