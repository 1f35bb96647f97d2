#pragma once
// The verb `audit` as tests call it, and what they look up in its JSON.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "impl/cli/verb.hpp"
#include "tests/support/paths.hpp"

namespace assay::impl::cli::audit_words {

struct Outcome {
  int code;
  std::string out, err;
};

inline Outcome audit_of(std::vector<std::string> words) {
  words.insert(words.begin(), "audit");
  std::ostringstream out, err;
  const int code = run(words, {out, err});
  return {code, out.str(), err.str()};
}

inline std::string golden(const std::string& name) { return tests::source_dir() + "/golden/logs/" + name; }

inline double middle(const nlohmann::json& interval) {
  return (interval.at(0).get<double>() + interval.at(1).get<double>()) / 2;
}

inline nlohmann::json result_of(const nlohmann::json& run, const std::string& id) {
  for (const auto& result : run.at("results"))
    if (result.at("id") == id) return result;
  return {};
}

inline std::vector<std::string> changes_of(const nlohmann::json& reading) {
  std::vector<std::string> out;
  for (const auto& change : reading.at("changes")) out.push_back(change.at("text"));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace assay::impl::cli::audit_words
