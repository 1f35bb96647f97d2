// labels: unit fault
// Where a run writes and what it continues: no run may write over another one, or save where it is lost.
#include "impl/run/start/run_folder.hpp"
#include "impl/run/start/resume.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::run_folder_test {
namespace {

namespace fs = std::filesystem;

class RunFolderImpl : public testing::Test {
 protected:
  std::string folder(const std::string& name) const { return (scratch_.path() / name).string(); }

  /// Path of a checkpoint of step `step` in the run folder `name`.
  std::string saved(const std::string& name, std::int64_t step) const {
    return saved(name, checkpoint::State{.step = step, .tokens = 0, .config = {}});
  }
  std::string saved(const std::string& name, const checkpoint::State& state) const {
    spec::ModelSpec model;
    model.name = "tiny", model.vocab = 11, model.width = 8, model.layers = 1, model.heads = 2;
    model.kv_heads = 1, model.head_dim = 4, model.ffn = 12, model.context = 8;
    return checkpoint::save(folder(name), allocate(model, Dtype::f32, at::kCPU), state, 10).path;
  }

  spec::RunConfig resuming(const std::string& path, const std::string& directory) const {
    spec::RunConfig config;
    config.resume = spec::Resume::path, config.resume_path = path, config.directory = directory;
    return config;
  }

  tests::Scratch scratch_;
};

TEST_F(RunFolderImpl, ResumesTheNamedCheckpointOrTheNewestOfTheNamedRun) {
  const std::string first = saved("a", 1), second = saved("a", 2);
  EXPECT_EQ(find_resume(resuming(second, folder("a"))).path, second);
  EXPECT_EQ(find_resume(resuming(folder("a"), folder("a"))).path, second);
  EXPECT_EQ(find_resume(resuming(first, folder("b"))).path, first);
  EXPECT_THROW(find_resume(resuming(folder("nothing"), folder("b"))), UserError);
}

TEST_F(RunFolderImpl, GoingBackBehindALaterCheckpointOfTheSameFolderIsRefused) {
  const std::string first = saved("a", 1), second = saved("a", 2), other = saved("b", 2);
  for (const std::string& from : {first, other}) {
    try {
      find_resume(resuming(from, folder("a")));
      FAIL() << "what it saves would be lost";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find(second), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("run.directory"), std::string::npos) << error.what();
    }
  }
}

TEST_F(RunFolderImpl, ADamagedCheckpointIsPassedOverUnlessItIsNamed) {
  const std::string first = saved("a", 1), second = saved("a", 2);
  fs::resize_file(second + "/COMMITTED", 5);
  spec::RunConfig config = resuming("", folder("a"));
  config.resume = spec::Resume::automatic;
  const auto found = find_resume(config);
  EXPECT_EQ(found.path, first);
  ASSERT_EQ(found.passed_over.size(), 1u);
  EXPECT_EQ(found.passed_over[0].path, second);
  EXPECT_NE(found.passed_over[0].why.find(second), std::string::npos) << found.passed_over[0].why;
  EXPECT_EQ(find_resume(resuming(folder("a"), folder("b"))).path, first);
  EXPECT_THROW(checkpoint::read_state(*find_resume(resuming(second, folder("b"))).path), UserError);
  // Where none is left, the run does not begin anew.
  fs::resize_file(first + "/COMMITTED", 5);
  EXPECT_THROW(find_resume(config), UserError);
}

TEST_F(RunFolderImpl, WhatIsAskedForByNameMayAlterResultsButNotTheModel) {
  const spec::RunConfig before = spec::load("", {});
  const checkpoint::State state{
      .step = 1, .tokens = 0, .config = spec::dump_toml(before), .data = std::vector<checkpoint::DataFile>{}};
  const std::string path = saved("a", state);
  Request request(before, {"optimizer.learning_rate", "compute.dtype"});
  request.config.learning_rate = 0.5;
  const auto changed = refuse_other_settings(request, {}, state, path).settings;
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].name, "optimizer.learning_rate");
  EXPECT_EQ(changed[0].asked, true);
  request.config.beta1 = 0.5;  // not asked for
  EXPECT_THROW(refuse_other_settings(request, {}, state, path), UserError);
  request.config.beta1 = before.beta1, request.config.dtype = Dtype::f64;
  EXPECT_THROW(refuse_other_settings(request, {}, state, path), UserError);
}

TEST_F(RunFolderImpl, ACheckpointWithRemovedSettingsGoesOn) {
  const checkpoint::State then{.step = 1,
                               .tokens = 0,
                               .config =
                                   "[parallel]\ndata = \"shard\"\ngather = \"nccl\"\n"
                                   "scatter = \"copy_engines\"\n",
                               .data = std::vector<checkpoint::DataFile>{}};
  spec::RunConfig config;
  config.data_parallel = spec::DataParallel::shard;
  const ResumeChanges changes = refuse_other_settings(config, {}, then, saved("a", then));
  EXPECT_FALSE(changes.extended);
  EXPECT_TRUE(changes.settings.empty());
}

TEST_F(RunFolderImpl, TheWayToGoOnNamesTheFolderOrThatNothingIsSaved) {
  fs::create_directories(folder("empty"));
  EXPECT_NE(way_to_go_on(folder("empty")).find("run the same command anew"), std::string::npos);
  EXPECT_EQ(way_to_go_on(folder("empty")).find("assay resume"), std::string::npos);
  saved("a", 1);
  EXPECT_NE(way_to_go_on(folder("a")).find("`assay resume " + folder("a") + "`"), std::string::npos)
      << way_to_go_on(folder("a"));
  EXPECT_NE(way_to_go_on(folder("on-another-host")).find("assay resume "), std::string::npos);
}

/// Another value of the setting, inside of its range or not: nobody asks here.
spec::Value another(const spec::Key& key, const spec::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    for (const std::string& choice : key.choices)
      if (choice != *text) return choice;
    return *text + "-other";
  }
  if (const auto* number = std::get_if<double>(&value)) return *number == 0.5 ? 0.25 : 0.5;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer == 40 ? 41 : 40;
  return std::vector<std::string>{"other"};
}

/// What may not change is refused with both values; of the rest, what makes other roundings is named.
TEST_F(RunFolderImpl, EverySettingIsRefusedNamedOrAboutOutput) {
  const std::set<std::string> named = {"batch.micro",
                                       "data.dtype",  // which was not stated before, of the same files
                                       "data.prefetch",
                                       "compute.device",
                                       "compute.attention",
                                       "compute.deterministic",
                                       "compute.cuda_graph",
                                       "compute.threads",
                                       "memory.recompute",
                                       "compute.linear_weights",
                                       "parallel.data",
                                       "parallel.shard_ranks",
                                       "parallel.tensor",
                                       "parallel.expert",
                                       "parallel.reduce",
                                       "parallel.check_replicas_every",
                                       "parallel.stall_seconds",
                                       "train.on_non_finite",
                                       "train.max_skipped"};
  const spec::RunConfig before = spec::load("", {"compute.dtype=bf16"});
  const checkpoint::State state{
      .step = 1, .tokens = 0, .config = spec::dump_toml(before), .data = std::vector<checkpoint::DataFile>{}};
  const std::string path = saved("a", state);
  EXPECT_TRUE(refuse_other_settings(before, {}, state, path).settings.empty());
  for (const spec::Key& key : spec::keys()) {
    if (key.name == "data.paths") continue;     // by content
    if (key.name == "profile.steps") continue;  // takes steps alone
    spec::RunConfig now = before;
    const spec::Value old = key.get(before),
                      other = key.name == "batch.ramp"     ? spec::Value(std::vector<std::string>{"2:3"})
                              : key.name == "data.mixture" ? spec::Value(std::vector<std::string>{"web:0.5"})
                                                           : another(key, old);
    key.set(now, other);
    const bool output = key.name.starts_with("run.") || key.name.starts_with("checkpoint.") ||
                        key.name.starts_with("log.") || key.name.starts_with("sample.") ||
                        (key.name.starts_with("eval.") && key.name != "eval.share");
    try {
      const ResumeChanges changes = refuse_other_settings(now, {}, state, path);
      EXPECT_TRUE(output || named.contains(key.name)) << key.name << " may not change";
      EXPECT_EQ(changes.settings.size(), output ? 0u : 1u) << key.name;
      for (const spec::record::ChangedSetting& setting : changes.settings)
        EXPECT_EQ(setting,
                  (spec::record::ChangedSetting{.name = key.name, .before = old, .now = other, .asked = {}}));
    } catch (const UserError& error) {
      EXPECT_FALSE(output || named.contains(key.name)) << error.what();
      EXPECT_EQ(error.code(), ExitCode::usage);
      const std::string both = key.name + " is " + spec::shown(other) + ", was " + spec::shown(old);
      EXPECT_NE(std::string(error.what()).find(both), std::string::npos) << error.what();
    }
  }
}

TEST_F(RunFolderImpl, ATypeMayBeStatedOrLeftOutAndNotBeAnother) {
  const auto with = [](std::vector<std::string> settings) {
    settings.emplace_back("data.paths=a.bin");
    return spec::load("", settings);
  };
  const std::vector<checkpoint::DataFile> files = {{"a.bin", 100, "aa"}};
  const checkpoint::State state{
      .step = 1, .tokens = 0, .config = spec::dump_toml(with({"data.dtype=uint16"})), .data = files};
  const std::string path = saved("a", state);
  EXPECT_EQ(refuse_other_settings(with({}), {.model = {}, .files = files}, state, path).settings.size(), 1u);
  EXPECT_THROW(refuse_other_settings(with({"data.dtype=uint32"}), {.model = {}, .files = files}, state, path),
               UserError);
}

TEST_F(RunFolderImpl, AChangedBatchKeepsThatOfTheStepsThatAreDone) {
  const spec::RunConfig before = spec::load("", {"batch.sequences=16", "batch.ramp=8:2", "train.steps=9"});
  const checkpoint::State state{
      .step = 5, .tokens = 0, .config = spec::dump_toml(before), .data = std::vector<checkpoint::DataFile>{}};
  const std::string path = saved("a", state);
  spec::RunConfig now = before;
  now.sequences = 64;
  Request request(now);
  request.changes = {"batch.sequences"};
  const ResumeChanges changes = refuse_other_settings(request, {}, state, path);
  ASSERT_TRUE(changes.batch);
  EXPECT_EQ(*changes.batch, (spec::GlobalBatch{64, {{8, 2}, {16, 3}}}));
  ASSERT_EQ(changes.settings.size(), 2u);
  EXPECT_EQ(changes.settings[1].name, "batch.ramp");
  EXPECT_EQ(changes.settings[1].now, spec::Value(std::vector<std::string>{"8:2", "16:3"}));
}

TEST_F(RunFolderImpl, InsideARampTheFinalBatchIsChangedAlone) {
  const spec::RunConfig before =
      spec::load("", {"batch.sequences=16", "batch.ramp=4:3,8:4", "train.steps=9"});
  const checkpoint::State state{
      .step = 5, .tokens = 0, .config = spec::dump_toml(before), .data = std::vector<checkpoint::DataFile>{}};
  const std::string path = saved("a", state);
  Request request(before);
  request.config.sequences = 64;
  request.changes = {"batch.sequences"};
  const ResumeChanges changes = refuse_other_settings(request, {}, state, path);
  EXPECT_EQ(*changes.batch, (spec::GlobalBatch{64, {{4, 3}, {8, 4}}}));
  EXPECT_EQ(changes.settings.size(), 1u) << "the ramp stays";
}

TEST_F(RunFolderImpl, AnotherRampKeepsThePlaceInTheData) {
  const spec::RunConfig before = spec::load("", {"batch.sequences=16", "batch.ramp=8:2", "train.steps=9"});
  const checkpoint::State state{
      .step = 5, .tokens = 0, .config = spec::dump_toml(before), .data = std::vector<checkpoint::DataFile>{}};
  const std::string path = saved("a", state);
  Request request(before);
  request.changes = {"batch.ramp"};
  request.config.ramp = {{8, 2}, {16, 3}, {32, 2}};
  EXPECT_EQ(refuse_other_settings(request, {}, state, path).settings.size(), 1u);
  request.config.ramp = {{8, 4}};
  EXPECT_THROW(refuse_other_settings(request, {}, state, path), UserError);
}

TEST_F(RunFolderImpl, DataMayMoveAndMayNotChange) {
  using checkpoint::DataFile;
  const std::vector<DataFile> then = {{"a/1", 100, "aa"}, {"a/2", 200, "bb"}},
                              moved = {{"b/1", 100, "aa"}, {"b/2", 200, "bb"}};
  const auto reading = [](const std::vector<DataFile>& files) {
    std::string paths;
    for (const DataFile& file : files) paths += (paths.empty() ? "\"" : ", \"") + file.path + "\"";
    return spec::load("", files.empty()
                              ? std::vector<std::string>{}
                              : std::vector<std::string>{"data.paths=[" + paths + "]", "data.dtype=uint16"});
  };
  const auto refused = [&](const std::vector<DataFile>& now, const checkpoint::State& state,
                           const std::string& path) -> std::string {
    try {
      refuse_other_settings(reading(now), {.model = {}, .files = now}, state, path);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const checkpoint::State state{
      .step = 1, .tokens = 0, .config = spec::dump_toml(reading(then)), .data = then};
  const std::string path = saved("a", state);
  EXPECT_TRUE(
      refuse_other_settings(reading(then), {.model = {}, .files = then}, state, path).settings.empty());
  const auto changed =
      refuse_other_settings(reading(moved), {.model = {}, .files = moved}, state, path).settings;
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].name, "data.paths");
  EXPECT_EQ(changed[0].now, spec::Value(std::vector<std::string>{"b/1", "b/2"}));
  // The same paths, another content; another order, which numbers samples otherwise; a file more or less.
  EXPECT_NE(refused({{"a/1", 100, "aa"}, {"a/2", 200, "cc"}}, state, path)
                .find("file 2 is \"a/2\" (200 bytes, sample cc), was \"a/2\" (200 bytes, sample bb)"),
            std::string::npos);
  EXPECT_NE(refused({then[1], then[0]}, state, path).find("file 1 is \"a/2\""), std::string::npos);
  EXPECT_NE(refused({then[0]}, state, path).find("file 2 is no file, was \"a/2\""), std::string::npos);
  EXPECT_NE(refused({}, state, path).find("file 1 is no file"), std::string::npos);
  // An earlier version saved no content: then the paths are compared.
  checkpoint::State earlier = state;
  earlier.data.reset();
  const std::string of_earlier = saved("b", earlier);
  EXPECT_EQ(refused(then, earlier, of_earlier), "");
  EXPECT_NE(refused(moved, earlier, of_earlier).find("data.paths is [\"b/1\", \"b/2\"], was [\"a/1\""),
            std::string::npos);
}

/// What the refusal says, or "goes on".
std::string refusal(const Request& request, const Identity& now, const checkpoint::State& then) {
  try {
    refuse_other_settings(request, now, then, "step_00000001");
    return "goes on";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
}

TEST_F(RunFolderImpl, AModelIsComparedFieldByFieldWhateverItsFileIsCalled) {
  const spec::RunConfig before = spec::load("", {"model.name=/a/mine.toml"});
  const spec::ModelSpec model = spec::find_model("tiny-llama");
  const checkpoint::State then{.step = 1,
                               .tokens = 0,
                               .config = spec::dump_toml(before),
                               .data = std::vector<checkpoint::DataFile>{},
                               .model = spec::to_toml(model)};
  Identity now{.model = model, .files = {}};
  now.model->name = "called otherwise";
  const spec::RunConfig moved = spec::load("", {"model.name=/b/mine.toml"});
  const auto changed = refuse_other_settings(moved, now, then, "a").settings;
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].name, "model.name");
  EXPECT_FALSE(changed[0].asked) << "the same model elsewhere";

  now.model->rope_theta = 20000, now.model->norm_eps *= 2;
  const std::string said = refusal(before, now, then);
  EXPECT_NE(said.find("norm_eps of model /a/mine.toml is 2e-05, was 1e-05; rope_theta of model /a/mine.toml "
                      "is 20000.0, was 10000.0"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("--change model.name=VALUE"), std::string::npos) << said;
  const auto asked = refuse_other_settings(Request(before, {"model.name"}), now, then, "a").settings;
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1], (spec::record::ChangedSetting{
                          .name = "model.rope_theta", .before = 10000.0, .now = 20000.0, .asked = true}));

  now.model->ffn += 1;  // which weights and moments are of
  EXPECT_NE(refusal(Request(before, {"model.name"}), now, then).find("ffn of model /a/mine.toml is "),
            std::string::npos);
  EXPECT_NE(refusal(Request(before, {"model.name"}), now, then).find("and weights and moments are of that"),
            std::string::npos);
  // An early version saved no model: then its name is compared.
  checkpoint::State early = then;
  early.model.clear();
  EXPECT_EQ(refusal(before, now, early), "goes on");
  EXPECT_NE(refusal(moved, now, early).find("model.name is \"/b/mine.toml\", was \"/a/mine.toml\""),
            std::string::npos);
}

TEST_F(RunFolderImpl, WeightsThatARunBeganFromAreComparedWhereTheyAreTyped) {
  using checkpoint::DataFile;
  const DataFile hf{.path = "/hf", .bytes = 10, .sample = "aa", .of = DataFile::weights};
  DataFile other = hf;
  other.sample = "bb";
  const spec::RunConfig before = spec::load("", {"model.weights=/hf", "model.name=tiny-llama"});
  const checkpoint::State then{
      .step = 1, .tokens = 0, .config = spec::dump_toml(before), .data = std::vector<DataFile>{hf}};
  EXPECT_EQ(refusal(before, {.model = {}, .files = {hf}}, then), "goes on");
  EXPECT_EQ(refusal(before, {.model = {}, .files = {}}, then), "goes on") << "the folder is gone";
  const std::string said = refusal(before, {.model = {}, .files = {other}}, then);
  EXPECT_NE(
      said.find("the content of model.weights: file 1 is \"/hf\" (10 bytes, sample bb), was \"/hf\" (10 "
                "bytes, sample aa)"),
      std::string::npos)
      << said;
  EXPECT_NE(refusal(Request(before, {"model.weights"}), {.model = {}, .files = {other}}, then)
                .find("and weights and moments are of that"),
            std::string::npos);
  const spec::RunConfig moved = spec::load("", {"model.weights=/there", "model.name=tiny-llama"});
  EXPECT_EQ(refusal(moved, {.model = {}, .files = {hf}}, then), "goes on") << "the same weights elsewhere";
  // A run that goes on as its folder says does not need them: what they are by now is said, and no more.
  Request resumed(before);
  resumed.goes_on = true;
  const Identity now{.model = {}, .files = {other}};
  EXPECT_EQ(refusal(resumed, now, then), "goes on");
  const ResumePoint point{.path = "a", .state = then, .changes = {}, .passed_over = {}};
  ASSERT_EQ(other_files(resumed, now, point).size(), 1u);
  EXPECT_EQ(files_of_next(now, point), std::vector<DataFile>{hf}) << "it began from these";
}

TEST_F(RunFolderImpl, FilesThatNoStepReadsAreSaidToBeOthers) {
  using checkpoint::DataFile;
  const auto file = [](const char* of, const char* sample) {
    return DataFile{.path = of, .bytes = 10, .sample = sample, .of = of};
  };
  const std::vector<DataFile> tokens = {file(DataFile::training, "aa")};
  const auto with = [&](const char* sample) {
    std::vector<DataFile> files = tokens;
    for (const char* of : {DataFile::validation, DataFile::tokenizer}) files.push_back(file(of, sample));
    return files;
  };
  const spec::RunConfig config = spec::load("", {"data.paths=a.bin", "eval.paths=b.bin"});
  const checkpoint::State then{.step = 1, .tokens = 0, .config = spec::dump_toml(config), .data = with("aa")};
  const ResumePoint point{.path = "a", .state = then, .changes = {}, .passed_over = {}};
  EXPECT_TRUE(other_files(config, {.model = {}, .files = with("aa")}, point).empty());
  const Identity now{.model = {}, .files = with("bb")};
  EXPECT_EQ(refusal(config, now, then), "goes on");
  const auto lines = other_files(config, now, point);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(
      lines[0].rfind("the content of eval.paths: file 1 is \"eval.paths\" (10 bytes, sample bb), was ", 0),
      0u)
      << lines[0];
  EXPECT_EQ(lines[1].rfind("the content of tokenizer: ", 0), 0u) << lines[1];
  const auto next = files_of_next(now, point);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[1].sample, "bb") << "losses are of that set from here on";
  EXPECT_EQ(next[2].sample, "aa") << "the tokens are of that tokenizer";
}

TEST_F(RunFolderImpl, AnotherValidationSetIsSaid) {
  const std::vector<std::string> held_out = {"data.paths=a.bin", "eval.share=0.1"};
  const auto lines = [&](const std::vector<std::string>& was, const std::vector<std::string>& words) {
    const checkpoint::State then{.step = 1, .tokens = 0, .config = spec::dump_toml(spec::load("", was))};
    const ResumePoint point{.path = "a", .state = then, .changes = {}, .passed_over = {}};
    return other_files(spec::load("", words), {}, point);
  };
  const std::string compared = "; losses on it are not to be compared with those before",
                    trained =
                        "; it is held out of the training data, and the run may have been trained on it";
  EXPECT_TRUE(lines(held_out, held_out).empty());
  EXPECT_TRUE(lines(held_out, {"data.paths=a.bin"}).empty()) << "nothing is validated";
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines(held_out, {"data.paths=a.bin", "eval.share=0.2"}),
            Lines{"the validation set is another one (eval.share is 0.2, was 0.1)" + compared + trained});
  EXPECT_EQ(lines(held_out, {"data.paths=a.bin", "eval.share=0.1", "eval.sequences=8"}),
            Lines{"the validation set is another one (eval.sequences is 8, was 256)" + compared});
  EXPECT_EQ(lines({"data.paths=a.bin"}, held_out),
            Lines{"the validation set is another one (eval.share is 0.1, was 0.0)" + trained});
  const Lines files = {"data.paths=a.bin", "eval.paths=b.bin"};
  EXPECT_EQ(lines(files, {"data.paths=a.bin", "eval.paths=b.bin", "train.seed=7"}), Lines{});
  EXPECT_EQ(lines(held_out, files), Lines{"the validation set is another one" + compared});
}

TEST_F(RunFolderImpl, TheSameBytesInAnotherFormatAreOtherTokens) {
  using checkpoint::DataFile;
  const auto of_type = [](const char* format) {
    return std::vector<DataFile>{{.path = "a.bin", .bytes = 100, .sample = "aa", .format = format}};
  };
  const spec::RunConfig config = spec::load("", {"data.paths=a.bin"});
  const checkpoint::State then{
      .step = 1, .tokens = 0, .config = spec::dump_toml(config), .data = of_type("uint16")};
  EXPECT_EQ(refusal(config, {.model = {}, .files = of_type("uint16")}, then), "goes on");
  EXPECT_NE(
      refusal(config, {.model = {}, .files = of_type("uint32")}, then)
          .find("is \"a.bin\" (100 bytes, sample aa, uint32), was \"a.bin\" (100 bytes, sample aa, uint16)"),
      std::string::npos);
  checkpoint::State earlier = then;
  earlier.data = of_type("");
  EXPECT_EQ(refusal(config, {.model = {}, .files = of_type("uint32")}, earlier), "goes on");
}

TEST_F(RunFolderImpl, WhatFollowedFromTheStepsFollowsFromOthersThatAreAskedFor) {
  const spec::RunConfig before = spec::load("", {"train.steps=100"});
  const checkpoint::State then{.step = 1,
                               .tokens = 0,
                               .config = spec::dump_toml(before),
                               .derived = spec::derived_settings(before),
                               .data = std::vector<checkpoint::DataFile>{}};
  const Request asked(spec::load("", {"train.steps=1000"}), {"train.steps"});
  const auto changed = refuse_other_settings(asked, {}, then, "a").settings;
  ASSERT_EQ(changed.size(), 3u);
  EXPECT_EQ(changed[1].name, "schedule.warmup_steps");
  EXPECT_EQ(changed[1].now, spec::Value(std::int64_t{80}));
  const std::string typed = refusal(spec::load("", {"train.steps=1000"}), {}, then);
  EXPECT_NE(typed.find("train.steps is 1000, was 100"), std::string::npos) << typed;
  EXPECT_EQ(typed.find("schedule."), std::string::npos) << "nobody set it: " << typed;
  EXPECT_NE(refusal(spec::load("", {"train.steps=100", "schedule.warmup_steps=3"}), {}, then)
                .find("schedule.warmup_steps is 3, was 8"),
            std::string::npos);
}

TEST_F(RunFolderImpl, ARelativePathAndTheWholeOneAreTheSame) {
  const std::vector<checkpoint::DataFile> files = {{.path = "x", .bytes = 1, .sample = "aa"}};
  const spec::RunConfig typed = spec::load("", {"data.paths=a.bin", "model.name=mine.toml"});
  const checkpoint::State then{
      .step = 1, .tokens = 0, .config = spec::dump_toml(spec::with_whole_paths(typed)), .data = files};
  EXPECT_TRUE(refuse_other_settings(typed, {.model = {}, .files = files}, then, "a").settings.empty());
}

TEST_F(RunFolderImpl, RunsThatStartAtOnceGetAFolderEach) {
  spec::RunConfig config;
  config.directory = folder("new/run");
  std::vector<std::string> chosen(16);
  {
    std::barrier start(16);
    std::vector<std::jthread> runs;
    runs.reserve(chosen.size());
    for (std::string& mine : chosen)
      runs.emplace_back([&] {
        const auto alone = make_self_communicator();
        start.arrive_and_wait();
        mine = run_directory(config, *alone);
      });
  }
  EXPECT_EQ(std::set<std::string>(chosen.begin(), chosen.end()).size(), chosen.size());
  for (const std::string& mine : chosen) EXPECT_TRUE(fs::exists(mine + "/run.jsonl")) << mine;
}

TEST_F(RunFolderImpl, AnEmptyFolderIsTakenAndARunContinuesInItsOwn) {
  const auto alone = make_self_communicator();
  spec::RunConfig config;
  config.directory = folder("run");
  fs::create_directory(config.directory);
  EXPECT_EQ(run_directory(config, *alone), folder("run"));
  EXPECT_EQ(run_directory(config, *alone), folder("run-2"));
  config.resume = spec::Resume::automatic;
  EXPECT_EQ(run_directory(config, *alone), folder("run"));
}

}  // namespace
}  // namespace assay::impl::run::run_folder_test
