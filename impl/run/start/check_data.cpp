#include "impl/run/start/check_data.hpp"

#include <sstream>
#include <string>
#include <vector>

#include "impl/comm/refusal.hpp"
#include "impl/data/checked_ids.hpp"
#include "impl/data/open_source.hpp"
#include "impl/logs/progress_line.hpp"

namespace assay::impl::run {
namespace {

std::string ranges_text(const std::vector<data::IdRange>& ranges) {
  std::ostringstream text;
  for (const data::IdRange& range : ranges) text << range.smallest << ' ' << range.largest << ' ';
  return text.str();
}

/// Of each file the ids that any of the ranks has seen.
std::vector<data::IdRange> together(const std::vector<data::IdRange>& mine, Communicator& ranks) {
  if (ranks.size() == 1) return mine;
  std::vector<data::IdRange> all(mine.size());
  for (const std::string& text : ranks.all_gather(ranges_text(mine))) {
    std::istringstream numbers(text);
    for (data::IdRange& range : all) {
      data::IdRange other;
      numbers >> other.smallest >> other.largest;
      range.add(other);
    }
  }
  return all;
}

}  // namespace

void check_token_ids(const spec::RunConfig& config, const spec::ModelSpec& model, Communicator& ranks) {
  std::vector<data::TokenFile> files;
  std::vector<data::IdRange> known;  // of all files; unknown ones of none
  refuse_together(ranks, [&] {
    const data::ScannedFiles scanned;
    for (const auto* paths : {&config.data_paths, &config.eval_paths})
      for (const std::string& path : *paths) {
        files.emplace_back(path, data::stated_type(config), model.vocab);
        known.push_back(
            (ranks.rank() == 0 ? scanned.find(files.back()) : std::nullopt).value_or(data::IdRange()));
      }
  });
  if (files.empty()) return;
  known = together(known, ranks);

  std::vector<const data::TokenFile*> unknown;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (known[i].smallest > known[i].largest) unknown.push_back(&files[i]);
  std::vector<data::IdRange> found;
  refuse_together(ranks, [&] {
    logs::ProgressLine line("checking token ids");
    const auto show = [&](std::int64_t done, std::int64_t all) {
      if (ranks.rank() == 0) line.show(done, all);
    };
    found = data::scan_ids(unknown, ranks.rank(), ranks.size(), show);
  });
  found = together(found, ranks);

  refuse_together(ranks, [&] {
    if (ranks.rank() != 0) return;
    const data::ScannedFiles scanned;
    for (std::size_t i = 0; i < unknown.size(); ++i) scanned.keep(*unknown[i], found[i]);
    std::size_t next = 0;
    for (std::size_t i = 0; i < files.size(); ++i)
      require_in_vocabulary(files[i], known[i].smallest > known[i].largest ? found[next++] : known[i]);
  });
}

}  // namespace assay::impl::run
