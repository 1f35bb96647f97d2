#include "impl/data/open_source.hpp"

#include <filesystem>
#include <vector>

#include "impl/data/grammar_data.hpp"
#include "impl/data/token_data.hpp"

namespace assay::impl::data {

std::shared_ptr<const SampleSource> open_source(const spec::RunConfig& config, const spec::ModelSpec& model) {
  if (config.data_paths.empty())
    return std::make_shared<GrammarData>(config.seed, config.sequence_length, config.grammar_samples);
  const std::vector<std::filesystem::path> paths(config.data_paths.begin(), config.data_paths.end());
  return std::make_shared<TokenData>(paths, token_type(config.data_dtype), model.vocab,
                                     config.sequence_length);
}

}  // namespace assay::impl::data
