#include "impl/data/open_source.hpp"

#include <filesystem>
#include <vector>

#include "impl/data/grammar_data.hpp"
#include "impl/data/token_data.hpp"

namespace assay::impl::data {

std::optional<TokenType> stated_type(const spec::RunConfig& config) {
  if (config.data_dtype.empty()) return {};
  return token_type(config.data_dtype);
}

std::shared_ptr<const SampleSource> open_source(const spec::RunConfig& config, const spec::ModelSpec& model) {
  if (config.data_paths.empty())
    return std::make_shared<GrammarData>(config.seed, config.sequence_length, config.grammar_samples);
  const std::vector<std::filesystem::path> paths(config.data_paths.begin(), config.data_paths.end());
  std::vector<std::int64_t> files_of_sources;
  for (const spec::DataSource& source : config.mixture) files_of_sources.push_back(source.files);
  return std::make_shared<TokenData>(paths, stated_type(config), model.vocab, config.sequence_length,
                                     files_of_sources, config.document_ends);
}

}  // namespace assay::impl::data
