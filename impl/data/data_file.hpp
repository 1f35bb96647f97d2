#pragma once
// A file that a run reads, by its content, so that a run that goes on finds out whether it still reads the
// same.
#include <cstdint>
#include <string>

namespace assay::impl::data {

struct DataFile {
  std::string path;
  std::int64_t bytes = 0;
  std::string sample;         ///< spec::sample_hash
  std::string format = {};    ///< of token ids, "Megatron int32"; empty: none, or not known
  std::string of = training;  ///< what the run reads it as, one of these

  static constexpr const char* training = "data.paths";    ///< tokens, and where their documents end
  static constexpr const char* validation = "eval.paths";  ///< likewise
  static constexpr const char* weights = "model.weights";
  static constexpr const char* tokenizer = "tokenizer";

  /// Two files of the same size and sample are taken for the same, whatever their paths; ids in another
  /// format are others.
  bool same_content(const DataFile& other) const {
    return bytes == other.bytes && sample == other.sample &&
           (format == other.format || format.empty() || other.format.empty());
  }
  bool operator==(const DataFile&) const = default;
};

}  // namespace assay::impl::data
