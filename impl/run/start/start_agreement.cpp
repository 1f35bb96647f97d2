#include "impl/run/start/start_agreement.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/input_file.hpp"
#include "spec/config/keys.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/text/value.hpp"

namespace assay::impl::run {

namespace {
constexpr char between_facts = '\x1e', between_name_and_value = '\x1f';

std::string hash_of_file(const std::filesystem::path& path) try {
  const checkpoint::InputFile file(path);
  return file.hash(0, file.size());
} catch (const checkpoint::InputFile::Unreadable&) {
  return "unknown";
}

/// Of the program and of the library that this function is in.
std::string program_hash() {
  std::string both = hash_of_file("/proc/self/exe");
  Dl_info library = {};
  if (dladdr(reinterpret_cast<const void*>(&require_agreement), &library) && library.dli_fname)
    both += " " + hash_of_file(library.dli_fname);
  return both;
}

/// Of their tokens, and of where documents end in them, where the files say so.
std::string hash_of_samples(const data::SampleSource& source, const std::vector<std::int64_t>& samples) {
  constexpr std::size_t enough = 8;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(source.sequence_length()) + 1);
  std::string hashes;
  for (std::size_t i = 0; i < std::min(enough, samples.size()); ++i) {
    source.read(samples[i], ids);
    hashes += checkpoint::content_hash(std::as_bytes(std::span(ids)));
    if (const auto ends = source.document_ends(samples[i]))
      hashes += checkpoint::content_hash(std::as_bytes(std::span(*ends)));
  }
  return checkpoint::content_hash(std::as_bytes(std::span(hashes)));
}
}  // namespace

Facts start_facts(const spec::RunConfig& config, const Identity& identity, const data::SampleSource& source,
                  const std::string& resume_from) {
  Facts facts = {{"version", ASSAY_VERSION}, {"program", program_hash()}};
  for (const spec::Key& key : spec::keys())
    if (!key.of_host) facts.emplace_back(key.name, spec::toml_literal(key.get(config)));
  // Every rank looks for it in its own host's folder.
  facts.emplace_back("the checkpoint to continue from",
                     resume_from.empty() ? "none"
                                         : "of step " + std::to_string(checkpoint::step_of(resume_from)) +
                                               " (hash " + checkpoint::content_of(resume_from) + ")");
  std::istringstream model(identity.model ? spec::to_toml(*identity.model) : "");
  for (std::string line; std::getline(model, line);)
    if (const std::size_t at = line.find(" = "); at != line.npos)
      facts.emplace_back(line.substr(0, at) + " of the model", line.substr(at + 3));
  for (const checkpoint::DataFile& file : identity.files)
    if (file.of == checkpoint::DataFile::weights && resume_from.empty())
      facts.emplace_back("the content of model.weights", file.sample);
  const auto first = spec::data::step_samples(
      spec::data::order_of_sources(config.seed, spec::global_batch(config), config.eval_share,
                                   source.samples_of_sources(), spec::mixture_of(config)),
      0);
  facts.emplace_back("data", source.description());
  facts.emplace_back("samples of the first step", std::to_string(spec::data::sample_hash(first)));
  facts.emplace_back("the content of the first samples", hash_of_samples(source, first));
  return facts;
}

void require_agreement(const Facts& facts, Communicator& communicator) {
  if (communicator.size() == 1) return;
  std::string mine;
  for (const auto& [name, value] : facts) mine += name + between_name_and_value + value + between_facts;
  const std::vector<std::string> all = communicator.all_gather(mine);
  if (std::all_of(all.begin(), all.end(), [&](const std::string& text) { return text == all[0]; })) return;
  const auto facts_of = [](const std::string& text) {
    Facts out;
    for (std::size_t at = 0, end; (end = text.find(between_facts, at)) != std::string::npos; at = end + 1) {
      const std::size_t middle = text.find(between_name_and_value, at);
      out.emplace_back(text.substr(at, middle - at), text.substr(middle + 1, end - middle - 1));
    }
    return out;
  };
  // The common text is the most frequent one; of equally frequent ones, that of the lowest rank.
  const auto count = [&](const std::string& text) { return std::count(all.begin(), all.end(), text); };
  std::size_t common = 0, odd = 0;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (count(all[r]) > count(all[common])) common = r;
  while (all[odd] == all[common]) ++odd;
  const Facts usual = facts_of(all[common]), other = facts_of(all[odd]);
  std::string differing;
  for (std::size_t i = 0; i < std::min(usual.size(), other.size()); ++i)
    if (differing.empty() && usual[i] != other[i])
      differing = other[i].first + " is " + other[i].second + " there, " + usual[i].second + " on rank " +
                  std::to_string(common);
  throw AgreedError(ExitCode::usage, "rank " + std::to_string(odd) +
                                         " differs from the others: " + differing +
                                         "; start every rank by the same command, with the same program, on "
                                         "the same files and in a run.directory that their hosts share");
}

}  // namespace assay::impl::run
