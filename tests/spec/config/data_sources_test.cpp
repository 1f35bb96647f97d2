// labels: unit property
#include "spec/config/data_sources.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/config/dump.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"

namespace assay::spec::data_sources_test {
namespace {

std::string refusal(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  try {
    load_text(toml, "recipe.toml", overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string source(const std::string& lines) { return "[[data.sources]]\n" + lines + "\n"; }

TEST(DataSourcesSpec, TablesSayPathsAndMixture) {
  const RunConfig config = load_text(source("path = 'data/web.bin'\nweight = 0.7") +
                                         source("name = 'code'\npath = ['a.bin', 'b.bin']\nweight = 3") +
                                         "[data]\ndtype = 'uint16'\n",
                                     "recipe.toml", {});
  EXPECT_EQ(config.data_paths, (std::vector<std::string>{"data/web.bin", "a.bin", "b.bin"}));
  EXPECT_EQ(config.mixture, (std::vector<DataSource>{{"web", 700'000, 1}, {"code", 3'000'000, 2}}));
  EXPECT_EQ(load_dump(dump_toml(config), "dump"), config);
}

TEST(DataSourcesSpec, TheCommandLineSaysTheSame) {
  const std::vector<DataSource> two = {{"web", 700'000, 1}, {"code", 300'000, 2}};
  EXPECT_EQ(load("", {"data.paths=w.bin,a.bin,b.bin", "data.mixture=web:0.7,code:0.3:2"}).mixture, two);
  const RunConfig inline_tables = load("", {"data.sources=[{name='web', path='w.bin', weight=0.7}, "
                                            "{name='code', path=['a.bin','b.bin'], weight=0.3}]"});
  EXPECT_EQ(inline_tables.mixture, two);
  EXPECT_EQ(inline_tables.data_paths.size(), 3u);
}

RC_GTEST_PROP(DataSourcesSpec, TextsReadBack, ()) {
  const DataSource source{.name = *rc::gen::element<std::string>("web", "a.b-c_1"),
                          .weight = *rc::gen::inRange<std::int64_t>(1, 1'000'000'000'001),
                          .files = *rc::gen::inRange<std::int64_t>(1, 1000)};
  RC_ASSERT(data_source(to_text(source)) == source);
}

TEST(DataSourcesSpec, ATextThatIsNoSourceIsNone) {
  for (const char* text : {"", "web", "web:", "web:0", "web:-1", "web:nan", "web:inf", "web:1e7",
                           "web:0.3333333", ":1", "we b:1", "web:1:0", "web:1:x", "web:1:2:3", "web:1x"})
    EXPECT_FALSE(data_source(text)) << text;
}

TEST(DataSourcesSpec, BadTablesAreRefusedWithTheirPlace) {
  const auto expect = [](const std::string& toml, const std::string& said) {
    const std::string text = refusal(toml);
    EXPECT_NE(text.find(said), std::string::npos) << text;
    EXPECT_EQ(text.rfind("recipe.toml:", 0), 0u) << text;
  };
  expect(source("path = 'a.bin'\nweight = 0"), "\"data.sources[0].weight\" must be above 0");
  expect(source("path = 'a.bin'\nweight = -2"), "\"data.sources[0].weight\" must be above 0");
  expect(source("path = 'a.bin'\nweight = nan"), "\"data.sources[0].weight\" must be above 0");
  expect(source("path = 'a.bin'\nweight = 0.3333333"), "no more than six decimals, not 0.3333333");
  expect(source("path = 'a.bin'\nweight = 'much'"), "\"data.sources[0].weight\" must be a number");
  expect(source("path = 'a.bin'"), "weight");
  expect(source("weight = 1"), "path");
  expect(source("path = []\nweight = 1"), "\"data.sources[0].path\" must be a file of token ids");
  expect(source("path = ['']\nweight = 1"), "\"data.sources[0].path\" must be a file of token ids");
  expect(source("path = 'a.bin'\nweight = 1\nname = 'a:b'"), "\"data.sources[0].name\" must be of letters");
  expect(source("path = 'a.bin'\nweigth = 1"), "weigth");
  expect("data.sources = []", "\"data.sources\" must be tables");
  expect("data.sources = 3", "\"data.sources\" must be");
  expect(source("path = 'a.bin'\nweight = 1") + "[data]\npaths = ['b.bin']\n",
         "data.paths beside [[data.sources]]");
  EXPECT_NE(refusal(source("path = 'a.bin'\nweight = 1") + source("path = 'b/a.bin'\nweight = 1"))
                .find("config_c39"),
            std::string::npos);
  EXPECT_NE(refusal("", {"data.sources=[{path='a.bin'"}).find("argument"), std::string::npos);
}

}  // namespace
}  // namespace assay::spec::data_sources_test
