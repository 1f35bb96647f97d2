#include "impl/data/foreign_file.hpp"

#include <cstring>
#include <string_view>

#include "spec/text/quote.hpp"

namespace assay::impl::data {
namespace {

using std::string_view_literals::operator""sv;

bool is_control(unsigned byte) {
  return byte == 0x7f || (byte < 0x20 && (byte == 0 || !std::strchr("\t\n\f\r", static_cast<int>(byte))));
}

/// Whether all of `text`, but for a character that its end cuts, is UTF-8.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t more = byte < 0x80   ? 0
                             : byte < 0xc2 ? 4
                             : byte < 0xe0 ? 1
                             : byte < 0xf0 ? 2
                             : byte < 0xf5 ? 3
                                           : 4;
    if (more == 4) return false;
    for (std::size_t k = 1; k <= more && i + k < text.size(); ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

/// Text has no control characters. A few ids may look like letters by chance, half a hundred bytes of UTF-8
/// do not, and neither do some hundreds of any other encoding.
bool is_text(std::string_view text) {
  constexpr std::size_t least = 48, least_of_any_encoding = 512;
  if (text.size() < least) return false;
  for (const char letter : text)
    if (is_control(static_cast<unsigned char>(letter))) return false;
  return text.size() >= least_of_any_encoding || is_utf8(text);
}

/// With its byte-order mark, little-endian, of an alphabet that begins Unicode.
bool is_utf16(std::string_view text) {
  if (text.size() < 48 || !text.starts_with("\xff\xfe"sv)) return false;
  for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
    const auto low = static_cast<unsigned char>(text[i]), high = static_cast<unsigned char>(text[i + 1]);
    if (high > 0x20 || (high == 0 && is_control(low))) return false;
  }
  return true;
}

/// Protocol 1 begins with a list or a dictionary that it remembers; 0 is text. Protocols 2 to 5 begin with
/// two bytes that a first token may have as well: the next ones and the last tell them apart.
bool is_pickle(std::string_view begin, unsigned char last, std::int64_t bytes) {
  if (begin.size() < 12 || last != '.') return false;
  if ((begin.starts_with("]q\0"sv) || begin.starts_with("}q\0"sv)) && std::strchr("(KXU", begin[3]))
    return true;
  if (begin[0] != '\x80') return false;
  if (begin[1] == '\x02' || begin[1] == '\x03') return std::strchr("}](cXqKGN", begin[2]) && begin[2] != 0;
  if (begin[1] != '\x04' && begin[1] != '\x05') return false;
  const auto* length = reinterpret_cast<const unsigned char*>(begin.data() + 3);
  return begin[2] == '\x95' && little_endian(length, 8) <= static_cast<std::uint64_t>(bytes);
}

std::string tokenise(const OpenedFile& file) {
  return "`python3 recipes/own-text/tokenise.py " + file.path().string() +
         " -o tokens.bin --tokenizer "
         "path/to/tokenizer.json` makes token ids of it";
}

}  // namespace

void refuse_foreign(const OpenedFile& file) {
  const std::string begin = file.beginning(4096);
  unsigned char last = 0;
  file.read(file.bytes() - 1, {&last, 1});
  const auto is = [&](const std::string& what, const std::string& next) {
    file.refuse(ExitCode::bad_data, "is " + what + " and holds no token ids; " + next);
  };
  const auto begins = [&](std::string_view with) { return begin.starts_with(with); };
  if (begins("PAR1"sv)) is("a Parquet file", tokenise(file));
  if (begins("\x1f\x8b\x08"sv) && begin.size() > 9 && (begin[3] & 0xe0) == 0)
    is("compressed by gzip", "unpack it (gunzip), then look at what is in it: `assay data inspect`");
  if (begins("\x28\xb5\x2f\xfd"sv)) is("compressed by zstd", "unpack it (unzstd), then `assay data inspect`");
  if (begins("\xfd"
             "7zXZ\0"sv))
    is("compressed by xz", "unpack it (unxz), then `assay data inspect`");
  if (begins("BZh"sv) && begin.substr(4, 6) == "\x31\x41\x59\x26\x53\x59"sv)
    is("compressed by bzip2", "unpack it (bunzip2), then `assay data inspect`");
  if (begins("PK\x03\x04"sv))
    is("a zip archive (.zip, .npz, .pt)",
       "unpack it: of .npz the array itself (numpy.save), of .pt the tokens as numpy.save(\"tokens.npy\", "
       "ids)");
  if (begins("ARROW1\0\0"sv))
    is("an Arrow file", "write it as Parquet or JSON lines, then " + tokenise(file));
  if (begins("\x89HDF\r\n\x1a\n"sv)) is("an HDF5 file", "write its ids by numpy.save(\"tokens.npy\", ids)");
  if (begin.size() > 262 && begin.substr(257, 5) == "ustar") is("a tar archive", "unpack it (tar xf)");
  if (is_pickle(begin, last, file.bytes()))
    is("a Python pickle", "write its ids by numpy.save(\"tokens.npy\", ids)");
  if (is_utf16(begin))
    is("text in UTF-16", "write it as UTF-8 (iconv -f utf-16 -t utf-8), then " + tokenise(file));
  if (!is_text(begin)) return;
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && (begin[first] == '{' || begin[first] == '[');
  is(json ? "JSON" : "text", tokenise(file));
}

}  // namespace assay::impl::data
