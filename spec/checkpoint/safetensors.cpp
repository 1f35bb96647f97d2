#include "spec/checkpoint/safetensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "spec/text/json_events.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/utf8.hpp"

namespace assay::spec::safetensors {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";

/// How a violated rule is thrown: bad_data for a file that is read, bug for one that we are about to write.
struct Refusal {
  std::string_view origin;
  ExitCode code;
  [[noreturn]] void operator()(int rule, const std::string& what) const {
    throw UserError(code, std::string(origin) + ": safetensors_c" + std::to_string(rule) + ": " + what);
  }
};

std::string range_text(const Tensor& tensor) {
  std::string text = std::to_string(tensor.begin);
  return text.append(" to ").append(std::to_string(tensor.end));
}

/// Takes the events of the JSON parser, refuses the first one that the format does not have, and gathers the
/// header. It allows no nesting beyond an array within a tensor's object.
class HeaderReader final : public JsonEvents {
 public:
  HeaderReader(Header& header, Refusal refuse) : header_(header), refuse_(refuse) {}

  bool begin_object() override {
    if (scope_ == Scope::outside) return enter(Scope::top);
    if (scope_ == Scope::top && key_ == metadata_key) return enter(Scope::metadata);
    if (scope_ == Scope::top) {
      header_.tensors.push_back({.name = key_, .dtype = {}, .shape = {}});
      fields_.clear();
      offsets_ = 0;
      return enter(Scope::tensor);
    }
    unexpected("an object");
  }
  bool end_object() override {
    if (scope_ == Scope::tensor) finish_tensor();
    return enter(scope_ == Scope::top ? Scope::outside : Scope::top);
  }
  bool key(std::string& key) override {
    auto& seen = scope_ == Scope::top ? names_ : scope_ == Scope::metadata ? metadata_keys_ : fields_;
    // safetensors_c4
    if (!seen.insert(key).second) refuse_(4, "key " + quote(key) + where() + " occurs twice");
    if (scope_ == Scope::tensor && key != "dtype" && key != "shape" && key != "data_offsets")
      refuse_(5, "unknown field " + quote(key) + where());
    key_ = key;
    return true;
  }
  bool begin_list() override {
    if (scope_ == Scope::tensor && key_ == "shape") return enter(Scope::shape);
    if (scope_ == Scope::tensor && key_ == "data_offsets") return enter(Scope::offsets);
    unexpected("an array");
  }
  bool end_list() override {
    if (scope_ == Scope::offsets && offsets_ != 2)
      refuse_(5, "data_offsets" + where() + " has fewer than two numbers");
    return enter(Scope::tensor);
  }
  bool text(std::string& text) override {
    if (scope_ == Scope::metadata) {
      header_.metadata[key_] = text;
    } else if (scope_ == Scope::tensor && key_ == "dtype") {
      header_.tensors.back().dtype = text;
    } else {
      unexpected("a string");
    }
    return true;
  }
  bool natural(std::uint64_t number) override {
    if (scope_ == Scope::shape) {
      if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
        refuse_(5, "an extent" + where() + " is 2^63 or more");
      header_.tensors.back().shape.push_back(static_cast<std::int64_t>(number));
    } else if (scope_ == Scope::offsets) {
      if (offsets_ == 2) refuse_(5, "data_offsets" + where() + " has more than two numbers");
      (offsets_++ == 0 ? header_.tensors.back().begin : header_.tensors.back().end) = number;
    } else {
      unexpected("a number");
    }
    return true;
  }
  bool negative(std::int64_t) override { unexpected("a negative number"); }
  bool real(double) override { unexpected("a number that is no integer in range"); }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }

 private:
  enum class Scope { outside, top, metadata, tensor, shape, offsets };

  bool enter(Scope scope) {
    scope_ = scope;
    return true;
  }
  std::string where() const {
    if (scope_ == Scope::metadata) return " of __metadata__";
    return scope_ == Scope::top || header_.tensors.empty()
               ? ""
               : " of tensor " + quote(header_.tensors.back().name);
  }
  [[noreturn]] void unexpected(const std::string& what) const {
    // safetensors_c9
    if (scope_ == Scope::metadata || (scope_ == Scope::top && key_ == metadata_key))
      refuse_(9, "__metadata__ maps strings to strings, but holds " + what);
    // safetensors_c5
    refuse_(5, what + " where the format has none: " +
                   (scope_ == Scope::top ? quote(key_) : "field " + quote(key_)) + where());
  }
  void finish_tensor() const {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field)) refuse_(5, "field " + quote(field) + where() + " is missing");
  }

  Header& header_;
  Refusal refuse_;
  Scope scope_ = Scope::outside;
  std::string key_;
  std::set<std::string> names_, metadata_keys_, fields_;
  int offsets_ = 0;
};

void check_tensor(const Tensor& tensor, Refusal refuse) {
  // safetensors_c6
  std::uint64_t bytes = element_bytes(tensor.dtype);
  if (bytes == 0)
    refuse(6, "tensor " + quote(tensor.name) + " has dtype " + quote(tensor.dtype) +
                  "; known: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL");
  // safetensors_c7
  const bool empty = std::ranges::find(tensor.shape, 0) != tensor.shape.end();
  if (empty) bytes = 0;
  for (std::int64_t extent : tensor.shape)
    if (extent < 0 || (!empty && __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)))
      refuse(7, "the shape of tensor " + quote(tensor.name) + " has no size in 64 bits");
  if (tensor.begin > tensor.end || tensor.end - tensor.begin != bytes)
    refuse(7, "tensor " + quote(tensor.name) + " takes " + std::to_string(bytes) +
                  " bytes by shape and dtype, but its range is " + range_text(tensor));
}

/// safetensors_c8. Puts the tensors in the order of their bytes and returns how many bytes they cover from 0.
std::uint64_t check_cover(std::vector<Tensor>& tensors, Refusal refuse) {
  std::ranges::stable_sort(tensors, {},
                           [](const Tensor& tensor) { return std::pair(tensor.begin, tensor.end); });
  std::uint64_t covered = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.begin != covered)
      refuse(8, "tensor " + quote(tensor.name) + " has range " + range_text(tensor) + " where byte " +
                    std::to_string(covered) +
                    (tensor.begin < covered ? " is next (overlap)" : " is next (hole)"));
    covered = tensor.end;
  }
  return covered;
}

std::string listed(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text += (text.empty() ? "" : ",") + entry;
  return text;
}

}  // namespace

const Tensor& Header::at(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  if (found == tensors.end())
    throw UserError(ExitCode::bad_data, "no tensor " + quote(name) + " among the " +
                                            std::to_string(tensors.size()) + " of this safetensors file");
  return *found;
}

std::uint64_t element_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 13> sizes = {{{"F64", 8},
                                                                                        {"F32", 4},
                                                                                        {"F16", 2},
                                                                                        {"BF16", 2},
                                                                                        {"I64", 8},
                                                                                        {"I32", 4},
                                                                                        {"I16", 2},
                                                                                        {"I8", 1},
                                                                                        {"U64", 8},
                                                                                        {"U32", 4},
                                                                                        {"U16", 2},
                                                                                        {"U8", 1},
                                                                                        {"BOOL", 1}}};
  for (const auto& [name, bytes] : sizes)
    if (name == dtype) return bytes;
  return 0;
}

std::uint64_t header_bytes(std::span<const std::byte> prefix, std::string_view origin) {
  const Refusal refuse{origin, ExitCode::bad_data};
  // safetensors_c1
  if (prefix.size() < length_bytes)
    refuse(1, std::to_string(prefix.size()) +
                  " bytes, but a file starts with 8 bytes of length: it is truncated");
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(prefix[i]);
  if (length < 2 || length > header_limit)
    refuse(1, "header length " + std::to_string(length) + " is outside [2, " + std::to_string(header_limit) +
                  "]: this is no safetensors file, or its start is damaged");
  return length_bytes + length;
}

Header parse(std::span<const std::byte> prefix, std::uint64_t file_size, std::string_view origin) {
  const Refusal refuse{origin, ExitCode::bad_data};
  Header header;
  header.data_offset = header_bytes(prefix, origin);
  // safetensors_c1
  if (header.data_offset > file_size || header.data_offset > prefix.size())
    refuse(1, "the header ends at byte " + std::to_string(header.data_offset) + ", beyond the " +
                  std::to_string(std::min<std::uint64_t>(file_size, prefix.size())) +
                  " bytes there are: it is truncated");
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + length_bytes,
                              header.data_offset - length_bytes);
  // safetensors_c2
  if (text.front() != '{') refuse(2, "the header does not start with '{': this is no safetensors file");
  HeaderReader reader(header, refuse);
  // safetensors_c3
  if (const auto fault = read_json_events(text, reader))
    refuse(3, "the header is not valid JSON in UTF-8 at byte " + std::to_string(length_bytes + fault->byte) +
                  ": " + fault->why);
  for (const Tensor& tensor : header.tensors) check_tensor(tensor, refuse);
  // safetensors_c8
  const std::uint64_t covered = check_cover(header.tensors, refuse), data = file_size - header.data_offset;
  if (covered != data)
    refuse(8, "the tensors take " + std::to_string(covered) + " bytes, but the file has " +
                  std::to_string(data) + " after its header: it is " +
                  (covered > data ? "truncated" : "longer than it says"));
  return header;
}

std::string serialize(const Header& header) {
  const Refusal refuse{"header to write", ExitCode::bug};
  auto tensors = header.tensors;
  check_cover(tensors, refuse);
  const auto json = [&](const std::string& text) {
    // safetensors_c3
    if (valid_utf8(text) != text) refuse(3, "a tensor name or a metadata string is not valid UTF-8");
    return json_string(text);
  };
  std::set<std::string_view> names = {metadata_key};
  std::vector<std::string> members;
  if (!header.metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : header.metadata) pairs.push_back(json(key) + ':' + json(value));
    members.push_back(json_string(metadata_key) + ":{" + listed(pairs) + '}');
  }
  for (const Tensor& tensor : tensors) {
    check_tensor(tensor, refuse);
    // safetensors_c4
    if (!names.insert(tensor.name).second) refuse(4, "tensor name " + quote(tensor.name) + " is taken");
    std::vector<std::string> shape;
    for (const std::int64_t extent : tensor.shape) shape.push_back(std::to_string(extent));
    members.push_back(json(tensor.name) + ":{\"dtype\":" + json(tensor.dtype) + ",\"shape\":[" +
                      listed(shape) + "],\"data_offsets\":[" + std::to_string(tensor.begin) + ',' +
                      std::to_string(tensor.end) + "]}");
  }
  std::string text = '{' + listed(members) + '}';
  text.append((data_alignment - (length_bytes + text.size()) % data_alignment) % data_alignment, ' ');
  // safetensors_c1
  if (text.size() > header_limit) refuse(1, "the header takes " + std::to_string(text.size()) + " bytes");
  std::string length(length_bytes, '\0');
  for (std::size_t i = 0; i < length_bytes; ++i) length[i] = static_cast<char>(text.size() >> 8 * i & 0xff);
  return length + text;
}

}  // namespace assay::spec::safetensors
