// labels: unit cli
// Every setting does something: for each key of spec/config/keys.cpp a short training run with another value
// differs in what the key is about. A key without an entry here fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include "impl/parallel/communicator.hpp"
#include "impl/run/train.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/impl/data/token_bytes.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::every_key_test {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

/// Collects what a stream is given while it lives.
class Captured {
 public:
  explicit Captured(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Captured() { stream_.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostream& stream_;
  std::ostringstream text_;
  std::streambuf* before_;
};

/// What a run leaves behind.
struct Outcome {
  int code = 0;         ///< of the process that would have run it
  std::string refusal;  ///< text of the error that ended it
  spec::record::Run run;
  std::string printed;          ///< on stdout
  std::size_t threads = 0;      ///< of the process at the end of training, counted by the system
  std::vector<fs::path> files;  ///< of the scratch folder, without those that were given
};

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

/// Runs short trainings in a folder of its own.
class Workshop {
 public:
  Workshop() {
    model("model", "llama", 1);
    model("other", "qwen3", 2);
    // As uint32 the ids are 7 i mod 250; as uint16 there is a 0 between any two.
    std::vector<std::uint32_t> ids(400);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(7 * i % 250);
    tokens = scratch.write("tokens.bin", tests::token_bytes(ids, data::TokenType::uint32)).string();
    given_ = files();
  }

  /// The settings of every run and `more`; "-KEY" leaves one of them at its default.
  Settings with(const Settings& more) const {
    Settings all = {"model.name=" + scratch.path().string() + "/model.toml",
                    "batch.sequences=4",
                    "batch.sequence_length=16",
                    "train.steps=4",
                    "schedule.warmup_steps=1",
                    "schedule.decay_steps=2",
                    "compute.device=cpu",
                    "compute.threads=1",
                    "sample.sentences=0",
                    "run.directory=" + folder("run")};
    for (const std::string& word : more) {
      if (word.starts_with("-"))
        std::erase_if(all, [&](const std::string& set) { return set.starts_with(word.substr(1) + "="); });
      else
        all.push_back(word);  // of two values of one key the later counts
    }
    return all;
  }
  std::string folder(const std::string& name) const { return (scratch.path() / name).string(); }

  /// Trains in an empty folder, or `after` another run in the same one. The thread is new: a thread that has
  /// computed keeps its helpers.
  Outcome train(const Settings& settings, bool after = false) {
    if (!after)
      for (const auto& entry : fs::directory_iterator(scratch.path()))
        if (std::find(given_.begin(), given_.end(), entry.path()) == given_.end())
          fs::remove_all(entry.path());
    Outcome outcome;
    std::thread([&] {
      const Captured out(std::cout), err(std::cerr);
      try {
        outcome.code = run::train(spec::load("", with(settings)), [&](const std::string& where) {
          outcome.threads = threads_of_this_process();
          outcome.run = spec::record::assemble(spec::record::read_events(where));
        });
      } catch (const UserError& error) {
        outcome.code = static_cast<int>(error.code());
        outcome.refusal = error.what();
      } catch (const SpecError& error) {
        outcome.code = static_cast<int>(ExitCode::usage);
        outcome.refusal = error.what();
      }
      outcome.printed = out.text();
    }).join();
    outcome.files = files();
    return outcome;
  }

  tests::Scratch scratch;
  std::string tokens;

 private:
  void model(const std::string& name, const std::string& family, int layers) const {
    scratch.write(name + ".toml",
                  "name = '" + name + "'\nfamily = '" + family + "'\nlayers = " + std::to_string(layers) +
                      "\nvocab = 256\nwidth = 32\nheads = 2\nkv_heads = 1\nhead_dim = 16\nffn = 48\n"
                      "context = 64\ntied_embeddings = false\nqk_norm = " +
                      (family == "qwen3" ? "true" : "false") + "\nnorm_eps = 1e-5\nrope_theta = 10000.0\n");
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<fs::path> given_;
};

// What to look at.
using Observe = std::function<std::string(const Outcome&)>;

std::string each_step(const Outcome& outcome, double spec::record::Step::*value, std::size_t first) {
  std::ostringstream text;
  text.precision(17);
  for (std::size_t i = first; i < outcome.run.steps.size(); ++i) text << outcome.run.steps[i].*value << " ";
  return text.str();
}
std::string losses(const Outcome& outcome) { return each_step(outcome, &spec::record::Step::loss, 0); }
/// Without the first, which sees no update.
std::string later_losses(const Outcome& outcome) { return each_step(outcome, &spec::record::Step::loss, 1); }
std::string rates_and_losses(const Outcome& outcome) {
  return each_step(outcome, &spec::record::Step::learning_rate, 0) + losses(outcome);
}
std::string samples_read(const Outcome& outcome) {
  std::string text;
  for (const auto& step : outcome.run.steps) text += step.sample_hash + " ";
  return text + losses(outcome);
}
std::string tokens_trained(const Outcome& outcome) {
  std::string text;
  for (const auto& step : outcome.run.steps) text += std::to_string(step.valid_tokens) + " ";
  return text;
}
std::string steps_done(const Outcome& outcome) {
  std::string text;
  for (const auto& step : outcome.run.steps) text += std::to_string(step.step) + " ";
  return text;
}
std::string checkpoints(const Outcome& outcome) {
  std::string text;
  for (const fs::path& file : outcome.files)
    if (file.parent_path().filename() == "checkpoints") text += file.filename().string() + " ";
  return text;
}
std::string weight_bytes(const Outcome& outcome) {
  for (const fs::path& file : outcome.files)
    if (file.filename() == "master.safetensors") return std::to_string(fs::file_size(file));
  return "none";
}
std::string printed_steps(const Outcome& outcome) {
  std::istringstream lines(outcome.printed);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("step ")) text += line.substr(5, 1) + " ";
  return text;
}

/// Trains once for every word of `changes` on top of `base` ("": the base alone) and expects successes that
/// differ, each from each, in what `observe` sees.
void differ(Workshop& shop, const Settings& base, const Settings& changes, const Observe& observe) {
  std::map<std::string, std::string> seen;  // observation, change
  for (const std::string& change : changes) {
    Settings settings = base;
    if (!change.empty()) settings.push_back(change);
    const Outcome outcome = shop.train(settings);
    EXPECT_EQ(outcome.code, 0) << change << ": " << outcome.refusal;
    const std::string what = observe(outcome);
    EXPECT_NE(what, "") << change;
    const auto [other, is_new] = seen.emplace(what, change);
    EXPECT_TRUE(is_new) << "'" << change << "' and '" << other->second << "' give the same: " << what;
  }
}

/// ... and what is seen are these words.
void expect(Workshop& shop, const Settings& base, const std::map<std::string, std::string>& wanted,
            const Observe& observe) {
  for (const auto& [change, what] : wanted) {
    Settings settings = base;
    settings.push_back(change);
    const Outcome outcome = shop.train(settings);
    EXPECT_EQ(outcome.code, 0) << change << ": " << outcome.refusal;
    EXPECT_EQ(observe(outcome), what) << change;
  }
}

void threads(Workshop& shop) {
  const std::size_t one = shop.train({"compute.threads=1"}).threads;
  EXPECT_EQ(shop.train({"compute.threads=2"}).threads, one + 1);
  EXPECT_EQ(shop.train({"compute.threads=4"}).threads, one + 3);
}

void device(Workshop& shop) {
  EXPECT_EQ(shop.train({"compute.device=cpu"}).run.start.ranks.at(0).device, "cpu");
  const Outcome gpu = shop.train({"compute.device=cuda"}), automatic = shop.train({"compute.device=auto"});
  if (gpu.code == 0) {
    EXPECT_EQ(gpu.run.start.ranks.at(0).device, "cuda:0");
    EXPECT_EQ(automatic.run.start.ranks.at(0).device, "cuda:0");
  } else {
    EXPECT_NE(gpu.refusal.find("no usable NVIDIA GPU"), std::string::npos) << gpu.refusal;
    EXPECT_EQ(automatic.run.start.ranks.at(0).device, "cpu");
  }
}

/// Our loops and plain products add in another order. A backend that is not there is refused.
void attention_backend(Workshop& shop) {
  differ(shop, {"compute.device=cpu"}, {"compute.attention=auto", "compute.attention=math"}, later_losses);
  for (const char* backend : {"cudnn", "flash"}) {
    const Outcome outcome = shop.train({"compute.device=cpu", std::string("compute.attention=") + backend});
    EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::usage));
    EXPECT_NE(outcome.refusal.find("runs on NVIDIA GPUs only"), std::string::npos) << outcome.refusal;
    EXPECT_FALSE(fs::exists(shop.folder("run"))) << "a refused run leaves no trace";
  }
  shop.train({});  // leaves the choice to the shape again
}

/// Counts the samples that the loader asks for.
class Counted final : public data::SampleSource {
 public:
  std::int64_t samples() const override { return 1000; }
  std::int64_t sequence_length() const override { return 4; }
  void read(std::int64_t, std::span<std::int32_t> ids) const override {
    std::fill(ids.begin(), ids.end(), 1);
    ++reads;
  }
  std::string description() const override { return "counted"; }
  mutable std::atomic<std::int64_t> reads = 0;
};

/// The trainer's loader reads this many steps before the first is asked for.
void prefetch(Workshop& shop) {
  for (const std::int64_t steps : {0, 1, 3}) {
    const auto config = spec::load("", shop.with({"data.prefetch=" + std::to_string(steps)}));
    const auto source = std::make_shared<Counted>();
    const auto alone = make_self_communicator();
    Trainer trainer(config, spec::find_model(config.model), spec::batch_of(config.sequences, config.micro, 1),
                    at::kCPU, source, *alone);
    trainer.start_after(0);
    for (int wait = 0; wait < 2000 && source->reads < steps * config.sequences; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time to overstep
    EXPECT_EQ(source->reads, steps * config.sequences) << steps;
  }
}

/// The same losses from more FLOPs.
void recompute(Workshop& shop) {
  const auto executed = [](const Outcome& o) {
    return o.run.steps.empty() ? "" : std::to_string(o.run.steps[0].executed_flops.value_or(0));
  };
  differ(shop, {}, {"", "memory.recompute=attention", "memory.recompute=block"}, executed);
  const std::string base = losses(shop.train({}));
  for (const spec::Recompute each : spec::all_recomputes)
    EXPECT_EQ(losses(shop.train({"memory.recompute=" + std::string(to_string(each))})), base)
        << to_string(each);
}

void resume(Workshop& shop) {
  shop.train({"train.steps=4", "checkpoint.every=2"});
  const Outcome anew = shop.train({"checkpoint.resume=never"}, true);
  EXPECT_EQ(anew.run.steps.size(), 4u);
  EXPECT_TRUE(anew.run.resumes.empty());
  EXPECT_NE(std::find(anew.files.begin(), anew.files.end(), shop.folder("run-2/run.jsonl")),
            anew.files.end());

  fs::remove_all(shop.folder("run/checkpoints/step_00000004"));
  const Outcome newest = shop.train({"checkpoint.resume=auto"}, true);
  ASSERT_EQ(newest.run.resumes.size(), 1u) << newest.refusal;
  EXPECT_EQ(newest.run.resumes[0].step, 2);

  const std::string second = shop.folder("run/checkpoints/step_00000002");
  const Outcome named =
      shop.train({"checkpoint.resume=" + second, "run.directory=" + shop.folder("c")}, true);
  ASSERT_EQ(named.run.resumes.size(), 1u) << named.refusal;
  EXPECT_EQ(named.run.resumes[0].path, second);
  EXPECT_EQ(steps_done(named), "3 4 ");
}

void directory(Workshop& shop) {
  for (const char* name : {"here", "there"}) {
    const Outcome outcome = shop.train({"run.directory=" + shop.folder(name)});
    for (const char* file : {"/run.jsonl", "/checkpoints"})
      EXPECT_NE(std::find(outcome.files.begin(), outcome.files.end(), shop.folder(name) + file),
                outcome.files.end())
          << name << file;
  }
}

using Check = std::function<void(Workshop&)>;

Check changes(const Settings& base, const Settings& words, Observe observe) {
  return [=](Workshop& shop) { differ(shop, base, words, observe); };
}

Settings files_of(const Workshop& shop, const Settings& more) {
  Settings all = {"-sample.sentences", "data.paths=" + shop.tokens, "data.dtype=uint32"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::map<std::string, Check> data_checks() {
  return {
      {"model.name",
       [](Workshop& shop) {
         differ(shop, {}, {"", "model.name=" + shop.folder("other.toml")}, weight_bytes);
         differ(shop, {}, {"", "model.name=" + shop.folder("other.toml")}, losses);
       }},
      {"model.init_std", changes({}, {"", "model.init_std=0.05"}, losses)},
      {"batch.sequences", changes({}, {"", "batch.sequences=2"}, tokens_trained)},
      // The same samples in other parts: sums in another order, so other roundings and no more than that.
      {"batch.micro", changes({"batch.sequences=8"}, {"batch.micro=8", "batch.micro=1"}, later_losses)},
      {"batch.sequence_length", changes({}, {"", "batch.sequence_length=8"}, tokens_trained)},
      {"data.paths",
       [](Workshop& shop) {
         const Outcome grammar = shop.train({}), file = shop.train(files_of(shop, {}));
         EXPECT_NE(losses(file), losses(grammar));
         EXPECT_EQ(file.run.start.data.files, std::vector<std::string>{shop.tokens});
         const Outcome missing = shop.train(files_of(shop, {"data.paths=" + shop.folder("missing")}));
         EXPECT_EQ(missing.code, static_cast<int>(ExitCode::io)) << missing.refusal;
       }},
      {"data.dtype",
       [](Workshop& shop) {
         differ(shop, files_of(shop, {}), {"data.dtype=uint32", "data.dtype=uint16"}, losses);
       }},
      {"data.end_of_document",
       [](Workshop& shop) {
         differ(shop, files_of(shop, {}), {"", "data.end_of_document=7", "data.end_of_document=70"}, losses);
       }},
      {"data.prefetch", prefetch},
      {"data.grammar_samples", changes({}, {"", "data.grammar_samples=3"}, samples_read)},
  };
}

std::map<std::string, Check> training_checks() {
  return {
      {"train.steps",
       [](Workshop& shop) {
         expect(shop, {}, {{"train.steps=3", "1 2 3 "}, {"train.steps=5", "1 2 3 4 5 "}}, steps_done);
       }},
      {"train.seed",
       [](Workshop& shop) {
         differ(shop, {}, {"", "train.seed=7"}, samples_read);
         // Initial weights: a step of all 24 samples of the file is the same for every order of them, but for
         // rounding.
         differ(shop, files_of(shop, {"batch.sequences=24"}), {"", "train.seed=7"},
                [](const Outcome& o) { return losses(o).substr(0, std::string("5.5452").size()); });
       }},
      {"optimizer.learning_rate", changes({}, {"", "optimizer.learning_rate=0.01"}, later_losses)},
      {"optimizer.beta1", changes({}, {"", "optimizer.beta1=0.5"}, later_losses)},
      {"optimizer.beta2", changes({}, {"", "optimizer.beta2=0.5"}, later_losses)},
      {"optimizer.eps", changes({}, {"", "optimizer.eps=0.01"}, later_losses)},
      {"optimizer.weight_decay", changes({}, {"", "optimizer.weight_decay=0"}, later_losses)},
      {"optimizer.clip", changes({}, {"", "optimizer.clip=0", "optimizer.clip=0.01"},
                                 [](const Outcome& o) {
                                   return each_step(o, &spec::record::Step::clip_coefficient, 0) +
                                          later_losses(o);
                                 })},
      {"optimizer.states",
       [](Workshop& shop) {
         const Settings states = {"optimizer.states=f32", "optimizer.states=bf16"};
         differ(shop, {"compute.dtype=bf16"}, states, later_losses);
         differ(shop, {"compute.dtype=bf16"}, states, weight_bytes);
         Settings both = {"compute.dtype=bf16", "optimizer.states=bf16", "checkpoint.every=2"};
         const Outcome whole = shop.train(both);
         EXPECT_EQ(losses(whole), losses(shop.train(both)));
         both.push_back("checkpoint.resume=" + shop.folder("run/checkpoints/step_00000002"));
         both.push_back("run.directory=" + shop.folder("rest"));
         const Outcome rest = shop.train(both, true);
         ASSERT_EQ(rest.run.steps.size(), 2u) << rest.refusal;
         for (std::size_t i = 0; i < 2; ++i)
           EXPECT_EQ(rest.run.steps[i].loss, whole.run.steps[i + 2].loss) << i;
       }},
      {"loss.z_loss", changes({}, {"", "loss.z_loss=0.01"}, later_losses)},
      {"schedule.kind",
       changes({"-schedule.decay_steps"},
               {"schedule.kind=wsd", "schedule.kind=cosine", "schedule.kind=constant"}, rates_and_losses)},
      {"schedule.warmup_steps", changes({}, {"", "schedule.warmup_steps=2"}, later_losses)},
      {"schedule.decay_steps", changes({}, {"", "schedule.decay_steps=3"}, later_losses)},
      {"schedule.decay_shape", changes({}, {"", "schedule.decay_shape=1-sqrt"}, later_losses)},
      {"schedule.final_ratio",
       changes({"schedule.decay_steps=3"}, {"", "schedule.final_ratio=0.5"}, later_losses)},
  };
}

std::map<std::string, Check> machine_checks() {
  return {
      {"compute.dtype",
       changes({}, {"compute.dtype=f64", "compute.dtype=f32", "compute.dtype=bf16"}, losses)},
      {"compute.device", device},
      {"compute.attention", attention_backend},
      {"compute.threads", threads},
      {"memory.recompute", recompute},
      {"parallel.data",
       [](Workshop& shop) {
         expect(shop, {},
                {{"parallel.data=replicate", "replicate"},
                 {"parallel.data=zero1", "zero1"},
                 {"parallel.data=shard", "shard"},
                 {"parallel.data=hybrid", "hybrid"}},
                [](const Outcome& o) { return o.run.start.layout ? o.run.start.layout->data : ""; });
       }},
      {"parallel.shard_ranks",
       [](Workshop& shop) {
         EXPECT_EQ(shop.train({"parallel.data=hybrid", "parallel.shard_ranks=1"}).code, 0);
         const Outcome two = shop.train({"parallel.data=hybrid", "parallel.shard_ranks=2"});
         EXPECT_NE(two.refusal.find("does not divide the 1 ranks"), std::string::npos) << two.refusal;
       }},
      {"parallel.reduce",
       [](Workshop& shop) {
         expect(shop, {"compute.dtype=bf16"},
                {{"parallel.reduce=f32", "f32"}, {"parallel.reduce=bf16", "bf16"}},
                [](const Outcome& o) { return o.run.start.layout ? o.run.start.layout->reduce : ""; });
       }},
      {"parallel.check_replicas_every",
       [](Workshop& shop) {
         expect(shop, {},
                {{"parallel.check_replicas_every=0", ""}, {"parallel.check_replicas_every=2", "2 4 "}},
                [](const Outcome& o) {
                  std::string steps;
                  for (const auto& step : o.run.steps)
                    if (step.weights_hash) steps += std::to_string(step.step) + " ";
                  return steps;
                });
       }},
      {"run.directory", directory},
      {"checkpoint.every",
       [](Workshop& shop) {
         expect(shop, {"checkpoint.keep=9"},
                {{"checkpoint.every=0", "step_00000004 "},
                 {"checkpoint.every=1", "step_00000001 step_00000002 step_00000003 step_00000004 "},
                 {"checkpoint.every=3", "step_00000003 step_00000004 "}},
                checkpoints);
       }},
      {"checkpoint.keep",
       [](Workshop& shop) {
         expect(shop, {"checkpoint.every=1"},
                {{"checkpoint.keep=1", "step_00000004 "},
                 {"checkpoint.keep=3", "step_00000002 step_00000003 step_00000004 "}},
                checkpoints);
       }},
      {"checkpoint.resume", resume},
      {"log.every",
       [](Workshop& shop) {
         expect(shop, {}, {{"log.every=1", "1 2 3 4 "}, {"log.every=3", "1 3 4 "}}, printed_steps);
       }},
      {"sample.sentences",
       [](Workshop& shop) {
         const auto judged = [](const Outcome& o) {
           return o.run.samples ? std::to_string(o.run.samples->judged) : "nothing";
         };
         expect(shop, {}, {{"sample.sentences=0", "nothing"}, {"sample.sentences=5", "5"}}, judged);
       }},
  };
}

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
