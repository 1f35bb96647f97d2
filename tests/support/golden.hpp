#pragma once
// Reads golden files: stored evidence from independent sources (golden/README.md). JSON and safetensors hold
// the same fields and are read to the same thing.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/compare.hpp"

namespace assay::tests {

/// Every getter throws std::runtime_error naming the file, what it lacks, what it has, and how to regenerate
/// it.
class GoldenFile {
 public:
  Values tensor(const std::string& name) const;                    ///< a float64 tensor
  std::vector<std::int64_t> ids(const std::string& name) const;    ///< an integer tensor, row-major
  std::vector<std::int64_t> shape(const std::string& name) const;  ///< of a tensor of either kind
  double scalar(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<std::string> tensor_names() const;

  struct Stored {
    std::vector<std::int64_t> shape;
    std::vector<double> floats;          ///< dtype F64
    std::vector<std::int64_t> integers;  ///< dtype I64
    bool integer = false;
  };
  std::string path;  ///< relative to golden/
  std::map<std::string, Stored> tensors;
  std::map<std::string, double> scalars;
  std::map<std::string, std::string> texts;

 private:
  const Stored& stored(const std::string& name, bool integer) const;
};

/// The bytes of a file, `path` relative to the repository's golden/. Errors: std::runtime_error when it
/// cannot be read.
std::string golden_bytes(const std::string& path);

/// Loads `path`, relative to the repository's golden/ ("ops/rms_norm/basic.json").
/// Errors: std::runtime_error on a file that is missing, truncated, malformed, or of another schema.
GoldenFile load_golden(const std::string& path);

/// The same from bytes; the ending of `path` (.json or .safetensors) says which format they have.
GoldenFile parse_golden(std::string_view bytes, const std::string& path);

}  // namespace assay::tests
