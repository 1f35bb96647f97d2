#pragma once
// `assay bench`'s arguments read, refused, and words looked for in what it prints.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "impl/cli/verb.hpp"
#include "spec/error.hpp"

namespace assay::tests {

inline impl::cli::BenchPlan bench_plan(const std::vector<std::string>& words) {
  for (const impl::cli::Verb& verb : impl::cli::verbs())
    if (verb.name == "bench") return impl::cli::bench_plan(impl::cli::parse(words, verb.options, verb.name));
  throw std::logic_error("no verb bench");
}

/// The text of the usage error that the words get; "accepted" where they get none.
inline std::string bench_refusal(const std::vector<std::string>& words) {
  try {
    bench_plan(words);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

inline void expect_word(const std::string& text, const std::string& word) {
  EXPECT_NE(text.find(word), std::string::npos) << text;
}

}  // namespace assay::tests
