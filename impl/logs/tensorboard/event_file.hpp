#pragma once
// The bytes of TensorBoard's event files: TFRecord framing around messages of its protocol
// (tensorboard/compat/proto: event.proto, summary.proto, tensor.proto).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::impl::logs::tensorboard {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

/// CRC as TFRecord stores it: rotated right by 15 bits, plus 0xa282ead8.
std::uint32_t masked_crc32c(std::string_view bytes);

/// One record: length (8 bytes), its masked CRC, message, its masked CRC; little-endian.
std::string framed(std::string_view message);

/// A number of a step. `description`, where it is not empty, is shown beside the curve: it is needed once a
/// tag.
struct Scalar {
  std::string tag;
  double value = 0;  ///< stored in single precision
  std::string description = {};
};

// Messages of type Event. `wall_time`: seconds since 1970 UTC.

/// The first one of every file.
std::string version_event(double wall_time);
/// A start of the run: readers drop what earlier files have of `step` and later steps.
std::string start_event(double wall_time, std::int64_t step);
std::string scalars_event(double wall_time, std::int64_t step, const std::vector<Scalar>& scalars);
/// A text in Markdown.
std::string text_event(double wall_time, std::int64_t step, const std::string& tag, const std::string& text);

}  // namespace assay::impl::logs::tensorboard
