#pragma once
// Short training runs of which settings differ, and what is looked at in them.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "impl/data/open_source.hpp"
#include "impl/run/train.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/check.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/data/token_bytes.hpp"
#include "tests/support/scratch.hpp"

namespace assay::tests::every_key {

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

inline std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

/// Runs short trainings in a folder of its own.
class Workshop {
 public:
  Workshop() {
    model("model", "llama", 1);
    model("other", "qwen3", 2);
    model("experts", "mixtral", 1, "\n[experts]\ncount = 4\nactive = 2\nwidth = 24\n");
    model("routed", "mixtral", 1, "\n[experts]\ncount = 4\nactive = 2\nwidth = 32\n");
    model("biased", "mixtral", 1,
          "\n[experts]\ncount = 4\nactive = 2\nwidth = 24\nrouter_bias = true\nscoring = \"sigmoid\"\n");
    model("latent", "deepseek_v3", 1,
          "\n[latent_attention]\nquery_rank = 12\nkey_value_rank = 10\nrope_dim = 4\nvalue_dim = 8\n");
    // As uint32 the ids are 7 i mod 250; as uint16 there is a 0 between any two.
    std::vector<std::uint32_t> ids(400);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(7 * i % 250);
    tokens = scratch.write("tokens.bin", token_bytes(ids, impl::data::TokenType::uint32)).string();
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
        outcome.code = impl::run::train([&] { return spec::load("", with(settings)); },
                                        [&](const std::string& where) {
                                          outcome.threads = threads_of_this_process();
                                          outcome.run =
                                              spec::record::assemble(spec::record::read_events(where));
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

  Scratch scratch;
  std::string tokens;

 private:
  void model(const std::string& name, const std::string& family, int layers,
             const std::string& more = {}) const {
    scratch.write(
        name + ".toml",
        "name = '" + name + "'\nfamily = '" + family + "'\nlayers = " + std::to_string(layers) +
            "\nvocab = 256\nwidth = 32\nheads = 2\nkv_heads = " + (family == "deepseek_v3" ? "2" : "1") +
            "\nhead_dim = 16\nffn = 48\n"
            "context = 64\ntied_embeddings = false\nqk_norm = " +
            (family == "qwen3" ? "true" : "false") + "\nnorm_eps = 1e-5\nrope_theta = 10000.0\n" + more);
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

inline std::string each_step(const Outcome& outcome, double spec::record::Step::*value, std::size_t first) {
  std::ostringstream text;
  text.precision(17);
  for (std::size_t i = first; i < outcome.run.steps.size(); ++i) text << outcome.run.steps[i].*value << " ";
  return text.str();
}
inline std::string losses(const Outcome& outcome) { return each_step(outcome, &spec::record::Step::loss, 0); }
/// Without the first, which sees no update.
inline std::string later_losses(const Outcome& outcome) {
  return each_step(outcome, &spec::record::Step::loss, 1);
}
inline std::string rates_and_losses(const Outcome& outcome) {
  return each_step(outcome, &spec::record::Step::learning_rate, 0) + losses(outcome);
}
inline std::string samples_read(const Outcome& outcome) {
  std::string text;
  for (const auto& step : outcome.run.steps) text += step.sample_hash + " ";
  return text + losses(outcome);
}
inline std::string tokens_trained(const Outcome& outcome) {
  std::string text;
  for (const auto& step : outcome.run.steps) text += std::to_string(step.valid_tokens) + " ";
  return text;
}
inline std::string steps_done(const Outcome& outcome) {
  std::string text;
  for (const auto& step : outcome.run.steps) text += std::to_string(step.step) + " ";
  return text;
}
inline std::string checkpoints(const Outcome& outcome) {
  std::string text;
  for (const fs::path& file : outcome.files)
    if (file.parent_path().filename() == "checkpoints") text += file.filename().string() + " ";
  return text;
}
inline std::string weight_bytes(const Outcome& outcome) {
  for (const fs::path& file : outcome.files)
    if (file.filename() == "rank-00000-of-00001.safetensors") return std::to_string(fs::file_size(file));
  return "none";
}
inline std::string printed_steps(const Outcome& outcome) {
  std::istringstream lines(outcome.printed);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("step ")) text += line.substr(5, 1) + " ";
  return text;
}

/// Trains once for every word of `changes` on top of `base` ("": the base alone) and expects successes that
/// differ, each from each, in what `observe` sees.
inline void differ(Workshop& shop, const Settings& base, const Settings& changes, const Observe& observe) {
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
inline void expect(Workshop& shop, const Settings& base, const std::map<std::string, std::string>& wanted,
                   const Observe& observe) {
  for (const auto& [change, what] : wanted) {
    Settings settings = base;
    settings.push_back(change);
    const Outcome outcome = shop.train(settings);
    EXPECT_EQ(outcome.code, 0) << change << ": " << outcome.refusal;
    EXPECT_EQ(observe(outcome), what) << change;
  }
}

/// What two steps on ranks that are threads of this process leave on rank 0.
struct Together {
  std::int64_t weights = 0, moments = 0;  ///< entries that it holds of each
  std::vector<double> losses;
  auto operator<=>(const Together&) const = default;
};

inline Together train_together(const Workshop& shop, int ranks, const Settings& settings) {
  const spec::RunConfig config = spec::load("", shop.with(settings));
  const spec::ModelSpec model = spec::find_model(config.model);
  Together together;
  on_thread_ranks(ranks, [&](impl::Communicator& communicator) {
    const c10::InferenceMode no_autograd;
    at::set_num_threads(1);
    impl::run::Trainer trainer(
        config, model, spec::batch_of(config.sequences, config.micro, spec::data_ranks(config, ranks)),
        at::kCPU, impl::data::open_source(config, model), communicator);
    trainer.initialise();
    trainer.start_after(0);
    std::vector<double> losses;
    for (int step = 0; step < 2; ++step) losses.push_back(trainer.step(false).value().result.cross_entropy);
    const impl::ParameterBuffers& buffers = trainer.buffers();
    if (communicator.rank() == 0) together = {buffers.weights.numel(), buffers.moment1.numel(), losses};
  });
  return together;
}

using Check = std::function<void(Workshop&)>;

inline Check changes(const Settings& base, const Settings& words, Observe observe) {
  return [=](Workshop& shop) { differ(shop, base, words, observe); };
}

/// A setting that routers alone read: of a model with experts it changes training, of others it is refused.
inline Check of_routers(const std::string& word) {
  return [=](Workshop& shop) {
    differ(shop, {"model.name=" + shop.folder("experts.toml")}, {"", word}, later_losses);
    EXPECT_NE(shop.train({word}).refusal.find("has no experts"), std::string::npos) << word;
  };
}

inline Settings files_of(const Workshop& shop, const Settings& more) {
  Settings all = {"-sample.sentences", "data.paths=" + shop.tokens, "data.dtype=uint32"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace assay::tests::every_key
