#include "impl/data/token_format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <memory>
#include <mutex>

#include "impl/data/foreign_file.hpp"
#include "impl/data/megatron_index.hpp"
#include "impl/data/npy_header.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::data {
namespace {

namespace fs = std::filesystem;

struct TypeFacts {
  std::string_view name;
  std::int64_t width;
};
constexpr std::array<TypeFacts, 8> type_facts = {{{"uint8", 1},
                                                  {"int8", 1},
                                                  {"uint16", 2},
                                                  {"int16", 2},
                                                  {"uint32", 4},
                                                  {"int32", 4},
                                                  {"uint64", 8},
                                                  {"int64", 8}}};
const TypeFacts& facts_of(TokenType type) { return type_facts.at(static_cast<std::size_t>(type)); }

std::optional<TokenFormat> llm_c(const OpenedFile& file) {
  struct Kind {
    std::uint64_t magic, version;
    TokenType type;
  };
  constexpr Kind kinds[] = {{20240520, 1, TokenType::uint16}, {20240801, 7, TokenType::uint32}};
  constexpr std::int64_t header = 256 * 4;
  const std::string begin = file.beginning(12);
  if (begin.size() < 12) return {};
  const auto word = [&](std::int64_t i) {
    return little_endian(reinterpret_cast<const unsigned char*>(begin.data()) + 4 * i, 4);
  };
  if (word(0) == 20240522 && word(1) == 1)
    file.refuse(ExitCode::bad_data, "holds questions of llm.c's evaluations and no text to train on");
  for (const Kind& kind : kinds) {
    if (word(0) != kind.magic) continue;
    if (word(1) != kind.version)
      file.refuse(ExitCode::bad_data, "has llm.c's magic number " + std::to_string(kind.magic) +
                                          " and version " + std::to_string(word(1)) + "; version " +
                                          std::to_string(kind.version) + " is read");
    const auto tokens = static_cast<std::int64_t>(word(2)), rest = file.bytes() - header;
    if (tokens * width(kind.type) != rest || tokens == 0)
      file.refuse(ExitCode::bad_data, "counts " + std::to_string(tokens) + " tokens in llm.c's header, " +
                                          std::to_string(header + tokens * width(kind.type)) +
                                          " bytes with it, and has " + std::to_string(file.bytes()) +
                                          "; it was cut off: write it again");
    return TokenFormat{
        .container = "llm.c", .type = kind.type, .first_byte = header, .tokens = tokens, .documents = {}};
  }
  return {};
}

/// The name of what stands beside tokens.bin; beside a shard, tokens-00001.bin, also tokens.EXTENSION.
std::vector<fs::path> beside(const fs::path& tokens, const char* extension) {
  fs::path own = tokens;
  own.replace_extension(extension);
  std::vector<fs::path> out = {own};
  std::string stem = tokens.stem().string();
  const std::size_t dash = stem.rfind('-');
  if (dash != std::string::npos && dash > 0 && stem.size() - dash == 6 &&
      stem.find_first_not_of("0123456789", dash + 1) == std::string::npos)
    out.push_back(tokens.parent_path() / (stem.substr(0, dash) + extension));
  return out;
}

/// What the .json of ours beside token files says.
struct Facts {
  std::string dtype;
  std::map<std::string, std::int64_t> documents;  ///< that end in a file, by its name
  std::optional<std::int64_t> of_one_file;        ///< where no file is named: of the one beside it

  bool counts_documents() const { return of_one_file || !documents.empty(); }
  /// Nothing of a file that has been given another name since.
  std::optional<std::int64_t> documents_of(const std::string& name) const {
    const auto named = documents.find(name);
    return named == documents.end() ? of_one_file : named->second;
  }
};

/// Null of another program's file.
std::shared_ptr<const Facts> facts_of(const fs::path& path) {
  spec::document::Node node;
  try {
    if (spec::read_json(spec::read_file(path, spec::file_limits::token_facts), node)) return {};
  } catch (const spec::FileFault&) {
    return {};  // somebody's data
  }
  const spec::document::Tree tree({path.string(), ExitCode::bad_data, spec::document::Format::json},
                                  std::move(node));
  const spec::document::Item root = tree.root();
  if (!root.is(spec::document::Kind::object)) return {};
  const auto format = root.find("format");
  if (!format || !format->is(spec::document::Kind::text) || format->text() != "assay-tokens-1") return {};
  Facts facts;
  if (const auto dtype = root.find("dtype"); dtype && dtype->is(spec::document::Kind::text))
    facts.dtype = dtype->text();
  const auto files = root.find("files");
  for (std::size_t i = 0; files && i < files->size(); ++i)
    if (const auto documents = (*files)[i].find("documents"))
      facts.documents[(*files)[i].at("name").text()] = documents->integer();
  if (const auto documents = root.find("documents"); documents && !files)
    facts.of_one_file = documents->integer();
  return std::make_shared<const Facts>(std::move(facts));
}

/// The .json beside a file, read once for all its shards, and again where it has changed since.
struct FactsBeside {
  fs::path path;
  std::shared_ptr<const Facts> facts;
};
std::optional<FactsBeside> facts_beside(const OpenedFile& file) {
  struct Read {
    std::uintmax_t bytes;
    fs::file_time_type time;
    std::shared_ptr<const Facts> facts;
  };
  static std::mutex mutex;
  static std::map<fs::path, Read> all;
  for (const fs::path& path : beside(file.path(), ".json")) {
    std::error_code none;
    const auto bytes = fs::file_size(path, none);
    if (none) continue;
    const auto time = fs::last_write_time(path, none);
    const std::scoped_lock lock(mutex);
    auto known = all.find(path);
    if (known == all.end() || known->second.bytes != bytes || known->second.time != time)
      known = all.insert_or_assign(path, Read{bytes, time, facts_of(path)}).first;
    if (known->second.facts) return FactsBeside{path, known->second.facts};
  }
  return {};
}

/// The type that the .json beside raw ids states.
std::optional<TokenType> type_beside(const OpenedFile& file) {
  const auto beside = facts_beside(file);
  if (!beside) return {};
  const auto type = type_called(beside->facts->dtype);
  if (!type)
    file.refuse(ExitCode::bad_data, "stands beside " + spec::quote(beside->path.string()) +
                                        ", whose dtype is none of token ids; write both again");
  return type;
}

/// What says that the ends beside `file` are not all of them, or none of its; empty where nothing does.
std::string fault_of_ends(const OpenedFile& file, const TokenFormat& format, std::int64_t bytes,
                          const std::vector<std::int64_t>& ends) {
  if (bytes % 8 != 0) return "has " + std::to_string(bytes) + " bytes, no multiple of the 8 of an end";
  const std::string of = std::to_string(format.tokens) + " tokens of " + spec::quote(file.path().string());
  if (!ends.empty() && (ends.front() < 0 || !std::ranges::is_sorted(ends) || ends.back() > format.tokens))
    return "does not name rising ends of documents within the " + of;
  const auto known = facts_beside(file);
  if (!known || !known->facts->counts_documents()) {
    const bool shard = beside(file.path(), ".ends").size() > 1;  // its last document may end in the next one
    const std::int64_t last = ends.empty() ? 0 : ends.back();
    return shard || last == format.tokens ? ""
                                          : "names " + std::to_string(last) +
                                                " as its last end of a document, and not that of the " + of;
  }
  const auto count = known->facts->documents_of(file.path().filename().string());
  if (count && *count != std::ssize(ends))
    return "names " + std::to_string(ends.size()) + " ends of documents, and " + std::to_string(*count) +
           " were written with the " + of;
  return "";
}

/// What ids of no stated type look like, for the hint of an error.
std::string_view likely_type(const OpenedFile& file) {
  const std::string begin = file.beginning(4096);
  if (file.bytes() % 4 != 0) return "uint16";
  for (std::size_t i = 2; i + 1 < begin.size(); i += 4)
    if (begin[i + 1] != 0 || static_cast<unsigned char>(begin[i]) > 7) return "uint16";  // above 524,287
  return "uint32";
}

void refuse_contradiction(const OpenedFile& file, const TokenFormat& format, std::optional<TokenType> stated,
                          const std::string& by) {
  if (stated && *stated != format.type)
    file.refuse(ExitCode::usage, "holds " + std::string(name(format.type)) + " by " + by +
                                     ", and data.dtype = \"" + std::string(name(*stated)) +
                                     "\" is stated; leave data.dtype out");
}

TokenFormat raw(const OpenedFile& file, std::optional<TokenType> stated) {
  TokenFormat format{.container = "raw", .documents = {}};
  if (const auto type = type_beside(file)) {
    format.type = *type;
    refuse_contradiction(file, format, stated, "the .json beside it");
  } else if (stated) {
    format.type = *stated;
    format.by_word = true;
  } else {
    file.refuse(
        ExitCode::usage,
        "has no header and does not say the type of its ids; set data.dtype (`assay data`: --dtype) to "
        "\"uint16\" or \"uint32\" (its beginning looks like " +
            std::string(likely_type(file)) + ")");
  }
  if (file.bytes() % width(format.type) != 0)
    file.refuse(ExitCode::bad_data,
                "has " + std::to_string(file.bytes()) + " bytes, which is no multiple of the " +
                    std::to_string(width(format.type)) + " of a " + std::string(name(format.type)) +
                    "; it was cut off, or the stated dtype is not its own");
  format.tokens = file.bytes() / width(format.type);
  fs::path ends = beside(file.path(), ".ends").front();
  std::error_code none;
  const auto bytes = fs::file_size(ends, none);
  if (!none && ends != file.path()) format.documents = static_cast<std::int64_t>(bytes / 8);
  return format;
}

}  // namespace

std::optional<TokenType> type_called(std::string_view name) {
  for (std::size_t i = 0; i < type_facts.size(); ++i)
    if (type_facts[i].name == name) return static_cast<TokenType>(i);
  return {};
}

TokenType token_type(std::string_view name) {
  if (name == "uint16") return TokenType::uint16;
  if (name == "uint32") return TokenType::uint32;
  throw UserError(ExitCode::usage,
                  "the dtype of token files is " + spec::quote(name) + "; state \"uint16\" or \"uint32\"");
}

std::string_view name(TokenType type) { return facts_of(type).name; }
std::int64_t width(TokenType type) { return facts_of(type).width; }
bool is_signed(TokenType type) { return name(type).front() == 'i'; }

std::string TokenFormat::description() const {
  return (has_header() ? std::string(container) + " " : std::string()) + std::string(name(type));
}

TokenFormat recognise(const OpenedFile& file, std::optional<TokenType> stated) {
  if (file.beginning(7) == "MMIDIDX")
    file.refuse(ExitCode::bad_data, "is the index of a Megatron file; name the .bin beside it");
  std::optional<TokenFormat> format = llm_c(file);
  if (!format) format = npy_header(file);
  if (!format) {
    if (auto index = megatron_index(file))
      format = TokenFormat{.container = "Megatron",
                           .type = index->type,
                           .tokens = index->tokens,
                           .documents = static_cast<std::int64_t>(index->document_ends.size())};
  }
  if (format) {
    refuse_contradiction(file, *format, stated,
                         format->container == "Megatron" ? "the .idx beside it" : "its header");
    return *format;
  }
  refuse_foreign(file);
  return raw(file, stated);
}

std::vector<std::int64_t> document_ends(const OpenedFile& file, const TokenFormat& format) {
  if (!format.documents) return {};
  if (format.container == "Megatron") return megatron_index(file)->document_ends;
  const fs::path path = beside(file.path(), ".ends").front();
  std::vector<unsigned char> bytes;
  if (std::error_code none; fs::file_size(path, none) != 0) {  // empty: no document ends in this shard
    const OpenedFile ends(path);
    if (ends.bytes() / 8 > most_entries(format.tokens))
      ends.refuse(ExitCode::bad_data, "names more ends of documents than " +
                                          spec::quote(file.path().string()) +
                                          " has tokens; it is of other tokens: write both again");
    bytes.resize(static_cast<std::size_t>(ends.bytes()));
    ends.read(0, bytes);
  }
  std::vector<std::int64_t> out;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8)
    out.push_back(static_cast<std::int64_t>(little_endian(&bytes[at], 8)));
  if (const std::string fault = fault_of_ends(file, format, std::ssize(bytes), out); !fault.empty())
    throw UserError(ExitCode::bad_data, "token file " + spec::quote(path.string()) + " " + fault +
                                            "; it was cut off or is of other tokens: write both again");
  return out;
}

}  // namespace assay::impl::data
