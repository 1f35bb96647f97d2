// labels: unit property
#include "spec/text/labels.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/support/paths.hpp"

namespace assay::spec::labels_test {
namespace {

TEST(Labels, LeaveEachPartOfAMessage) {
  EXPECT_EQ(without_labels("config_c13: parallel.tensor = 4 does not divide the 6 ranks"),
            "parallel.tensor = 4 does not divide the 6 ranks");
  EXPECT_EQ(without_labels("r.toml:2:9: config_c1: x = 1"), "r.toml:2:9: x = 1");
  EXPECT_EQ(without_labels("folder: weight_files_c2: 1 tensor; weight_files_c3: 2 tensors"),
            "folder: 1 tensor; 2 tensors");
  EXPECT_EQ(without_labels("2 mistakes:\n  model_c2: a\n  r.toml:8:9: config_c2: b"),
            "2 mistakes:\n  a\n  r.toml:8:9: b");
}

TEST(Labels, OnlyLabelsLeave) {
  for (const char* text : {"", "my_run_c1: no such folder", "config_c13", "config_c: x", "config_cx: y",
                           "config_c1:x", "a/config_c1: x", "xconfig_c1: x", "spec/config/config.md: x"})
    EXPECT_EQ(without_labels(text), text);
}

/// Every label that a page of the spec states is known.
TEST(Labels, AreThoseOfThePages) {
  std::set<std::string> labels;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests::source_dir() + "/spec")) {
    if (entry.path().extension() != ".md") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::regex stated(R"((?:\*\*C\d+\*\* \(`(\w+_c\d+)`\))|(?:\n\| `?(\w+_c\d+)`? \|))");
    for (std::sregex_iterator at(text.begin(), text.end(), stated), end; at != end; ++at)
      labels.insert((*at)[1].matched ? (*at)[1] : (*at)[2]);
  }
  EXPECT_GT(labels.size(), 150u);
  for (const std::string& label : labels) EXPECT_EQ(without_labels(label + ": x"), "x") << label;
}

RC_GTEST_PROP(Labels, AnyOtherTextIsAsItWas, (const std::string& text)) {
  RC_ASSERT(without_labels(text) == text || text.find("_c") != std::string::npos);
}

}  // namespace
}  // namespace assay::spec::labels_test
