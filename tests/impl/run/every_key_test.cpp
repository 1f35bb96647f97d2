// labels: unit cli
// Every setting does something: for each key of spec/config/keys.cpp a short training run with another value
// differs in what the key is about. A key without an entry here fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "spec/config/keys.hpp"
#include "tests/impl/run/every_key/data_checks.hpp"
#include "tests/impl/run/every_key/machine_checks.hpp"
#include "tests/impl/run/every_key/training_checks.hpp"

namespace assay::impl::run::every_key_test {
namespace {

using namespace tests::every_key;

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> all = [] {
    std::map<std::string, Check> whole = data_checks();
    whole.merge(training_checks());
    whole.merge(machine_checks());
    return whole;
  }();
  return all;
}

class EveryKey : public testing::TestWithParam<std::string> {};

TEST_P(EveryKey, ChangesSomething) {
  const auto check = checks().find(GetParam());
  ASSERT_NE(check, checks().end()) << "nothing here shows that " << GetParam()
                                   << " is read: add its entry to checks()";
  Workshop shop;
  check->second(shop);
}

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const spec::Key& key : spec::keys()) names.push_back(key.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Keys, EveryKey, testing::ValuesIn(key_names()), [](const auto& key) {
  std::string name = key.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(EveryKeyCheck, EveryEntryIsAKey) {
  for (const auto& [name, unused] : checks()) EXPECT_NE(spec::find_key(name), nullptr) << name;
}

// The checks can fail: a run is the same run twice, and printing does not change training.
TEST(EveryKeyCheck, WhatIsIgnoredLooksTheSame) {
  Workshop shop;
  const Outcome once = shop.train({}), twice = shop.train({"log.every=3"});
  for (const Observe& observe : {Observe(losses), Observe(samples_read), Observe(rates_and_losses),
                                 Observe(tokens_trained), Observe(checkpoints), Observe(weight_bytes)}) {
    EXPECT_NE(observe(once), "");
    EXPECT_EQ(observe(once), observe(twice));
  }
  EXPECT_EQ(once.threads, twice.threads);
}

}  // namespace
}  // namespace assay::impl::run::every_key_test
