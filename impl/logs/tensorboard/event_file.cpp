#include "impl/logs/tensorboard/event_file.hpp"

#include <array>
#include <bit>

namespace assay::impl::logs::tensorboard {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits in reverse
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    table[byte] = crc;
  }
  return table;
}

template <class Unsigned>
std::string little_endian(Unsigned number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i)
    bytes.push_back(static_cast<char>((number >> (8 * i)) & 0xFF));
  return bytes;
}

// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding): a key, which is the
// field's number and how its value is stored, then the value.
enum class Wire : std::uint32_t { varint = 0, eight_bytes = 1, with_length = 2, four_bytes = 5 };

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>(number | 0x80));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

std::string key(std::uint32_t field, Wire wire) {
  return varint(field << 3 | static_cast<std::uint32_t>(wire));
}

std::string integer(std::uint32_t field, std::int64_t value) {
  return key(field, Wire::varint) + varint(static_cast<std::uint64_t>(value));
}
std::string real(std::uint32_t field, double value) {
  return key(field, Wire::eight_bytes) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string single(std::uint32_t field, double value) {
  return key(field, Wire::four_bytes) +
         little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}
/// A text or a message.
std::string within(std::uint32_t field, std::string_view value) {
  return key(field, Wire::with_length) + varint(value.size()) + std::string(value);
}

// Numbers of the fields that are written.
namespace field {
enum Event : std::uint32_t { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
enum Summary : std::uint32_t { value = 1 };
enum Value : std::uint32_t { tag = 1, simple_value = 2, tensor = 8, metadata = 9 };
enum Metadata : std::uint32_t { plugin_data = 1, summary_description = 3, data_class = 4 };
enum PluginData : std::uint32_t { plugin_name = 1 };
enum SessionLog : std::uint32_t { status = 1 };
enum Tensor : std::uint32_t { dtype = 1, tensor_shape = 2, string_val = 8 };
}  // namespace field

constexpr std::int64_t status_start = 1, dtype_string = 7, data_class_tensor = 2;

std::string event(double wall_time, std::int64_t step) {
  // As protobuf's own writers, which leave out what is 0.
  return real(field::wall_time, wall_time) + (step != 0 ? integer(field::step, step) : "");
}

std::string scalar_value(const Scalar& scalar) {
  std::string value = within(field::tag, scalar.tag) + single(field::simple_value, scalar.value);
  if (!scalar.description.empty())
    value += within(field::metadata, within(field::plugin_data, within(field::plugin_name, "scalars")) +
                                         within(field::summary_description, scalar.description));
  return value;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = crc_table();
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8; }

std::string framed(std::string_view message) {
  const std::string length = little_endian(static_cast<std::uint64_t>(message.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(message) +
         little_endian(masked_crc32c(message));
}

std::string version_event(double wall_time) {
  return event(wall_time, 0) + within(field::file_version, "brain.Event:2");
}

std::string start_event(double wall_time, std::int64_t step) {
  return event(wall_time, step) + within(field::session_log, integer(field::status, status_start));
}

std::string scalars_event(double wall_time, std::int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) summary += within(field::value, scalar_value(scalar));
  return event(wall_time, step) + within(field::summary, summary);
}

std::string text_event(double wall_time, std::int64_t step, const std::string& tag, const std::string& text) {
  // A tensor without dimensions, and the plugin that shows it.
  const std::string tensor =
      integer(field::dtype, dtype_string) + within(field::tensor_shape, "") + within(field::string_val, text);
  const std::string metadata = within(field::plugin_data, within(field::plugin_name, "text")) +
                               integer(field::data_class, data_class_tensor);
  const std::string value =
      within(field::tag, tag) + within(field::tensor, tensor) + within(field::metadata, metadata);
  return event(wall_time, step) + within(field::summary, within(field::value, value));
}

}  // namespace assay::impl::logs::tensorboard
