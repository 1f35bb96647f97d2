// labels: cli
// The verb `claims` and its JSON.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "impl/cli/verb.hpp"
#include "tests/support/paths.hpp"

namespace assay::impl::cli::claims_test {
namespace {

TEST(ClaimsCli, JsonHoldsEveryClaimWithItsVerdict) {
  const std::string file = tests::source_dir() + "/golden/claims/b200_scaling.toml";
  std::ostringstream out, err;
  EXPECT_EQ(run({"claims", file, "--json"}, {out, err}), 0) << err.str();
  const nlohmann::json all = nlohmann::json::parse(out.str());
  ASSERT_EQ(all.at("documents").size(), 1u);
  const nlohmann::json& document = all["documents"][0];
  EXPECT_EQ(document.at("key"), "b200_scaling");
  std::size_t contradictions = 0;
  for (const nlohmann::json& claim : document.at("claims")) {
    EXPECT_EQ(claim.at("verdict"), claim.at("stated")) << claim;
    if (claim["verdict"] != "contradicts" || claim["repeats"] != "") continue;
    ++contradictions;
    EXPECT_NE(claim.at("cause"), "") << claim;
    if (claim["recomputed"].is_null()) continue;
    const auto& printed = claim.at("interval");
    const auto& recomputed = claim["recomputed"];
    EXPECT_TRUE(printed[1] < recomputed[0] || recomputed[1] < printed[0]) << claim;
  }
  EXPECT_GT(contradictions, 0u);
  // The page stays what it was.
  std::ostringstream page;
  EXPECT_EQ(run({"claims", file}, {page, err}), 0);
  EXPECT_EQ(page.str().rfind("# Published numbers, recomputed", 0), 0u);
}

TEST(ClaimsCli, ThePageOfClaimsIsNoFileOfThem) {
  std::ostringstream out, err;
  EXPECT_EQ(run({"claims", tests::source_dir() + "/docs/claims.md"}, {out, err}), 65) << err.str();
  EXPECT_NE(err.str().find("golden/claims/*.toml"), std::string::npos) << err.str();
}

}  // namespace
}  // namespace assay::impl::cli::claims_test
