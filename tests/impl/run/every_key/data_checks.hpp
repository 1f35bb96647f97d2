#pragma once
// What model, batch and data settings change.
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

#include "spec/checkpoint/model_file.hpp"
#include "spec/checkpoint/weight_files.hpp"
#include "tests/impl/data/token_formats.hpp"
#include "tests/impl/run/every_key/workshop.hpp"

namespace assay::tests::every_key {

/// Counts the samples that the loader asks for.
class Counted final : public impl::data::SampleSource {
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
inline void prefetch(Workshop& shop) {
  for (const std::int64_t steps : {0, 1, 3}) {
    const auto config = spec::load("", shop.with({"data.prefetch=" + std::to_string(steps)}));
    const auto source = std::make_shared<Counted>();
    const auto alone = impl::make_self_communicator();
    impl::run::Trainer trainer(config, spec::find_model(config.model),
                               spec::batch_of(config.sequences, config.micro, 1), at::kCPU, source, *alone);
    trainer.start_after(0);
    for (int wait = 0; wait < 2000 && source->reads < steps * config.sequences; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time to overstep
    EXPECT_EQ(source->reads, steps * config.sequences) << steps;
  }
}

inline std::string validations(const Outcome& outcome) {
  std::ostringstream text;
  text.precision(17);
  for (const auto& validation : outcome.run.validations)
    text << validation.step << " " << validation.loss << " of " << validation.sequences << ", ";
  return text.str();
}
inline std::string validated_after(const Outcome& outcome) {
  std::string text;
  for (const auto& validation : outcome.run.validations) text += std::to_string(validation.step) + " ";
  return text;
}

/// Another set, and the same training.
inline void eval_paths(Workshop& shop) {
  std::vector<std::uint32_t> ids(100);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(11 * i % 250);
  const tests::Scratch beside;
  const std::string other =
      beside.write("other.bin", token_bytes(ids, impl::data::TokenType::uint32)).string();
  differ(shop, files_of(shop, {}), {"eval.paths=" + shop.tokens, "eval.paths=" + other}, validations);
  EXPECT_EQ(losses(shop.train(files_of(shop, {"eval.paths=" + other}))),
            losses(shop.train(files_of(shop, {}))));
}

inline std::map<std::string, Check> data_checks() {
  return {
      {"model.name",
       [](Workshop& shop) {
         differ(shop, {}, {"", "model.name=" + shop.folder("other.toml")}, weight_bytes);
         differ(shop, {}, {"", "model.name=" + shop.folder("other.toml")}, losses);
       }},
      {"model.weights",
       [](Workshop& shop) {
         // Of zeros: every token has the same probability, in its own files' words and in no other run's.
         const Scratch folder;
         const spec::Inventory inventory = spec::inventory(spec::find_model(shop.folder("model.toml")));
         const auto header = spec::header_of(inventory, "F32");
         folder.write(spec::single_weight_file,
                      spec::safetensors::serialize(header) + std::string(header.tensors.back().end, '\0'));
         const std::string word = "model.weights=" + folder.path().string();
         differ(shop, {}, {"", word}, losses);
         const Outcome outcome = shop.train({word});
         EXPECT_NEAR(outcome.run.steps.at(0).loss, std::log(256.0), 1e-6);
         ASSERT_TRUE(outcome.run.weights);
         EXPECT_EQ(outcome.run.weights->path, folder.path().string());
       }},
      {"model.init_std", changes({}, {"", "model.init_std=0.05"}, losses)},
      {"batch.sequences", changes({}, {"", "batch.sequences=2"}, tokens_trained)},
      {"batch.ramp",
       changes({"batch.micro=1"}, {"", "batch.ramp=1:1", "batch.ramp=2:1,1:1"}, tokens_trained)},
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
      {"data.mixture",
       [](Workshop& shop) {
         const Settings twice = files_of(shop, {"data.paths=" + shop.tokens + "," + shop.tokens});
         differ(shop, twice, {"", "data.mixture=a:0.5,b:0.5", "data.mixture=a:0.9,b:0.1"}, samples_read);
       }},
      {"data.dtype",
       [](Workshop& shop) {
         // Ids below 16 and zeros are what both widths hold.
         const tests::Scratch beside;
         std::string ids;
         for (std::uint64_t i = 0; i < 2000; ++i) ids += tests::number(i * i % 13, 4);
         const std::string path = beside.write("tokens.bin", ids).string();
         differ(shop, files_of(shop, {"data.paths=" + path}), {"data.dtype=uint32", "data.dtype=uint16"},
                losses);
       }},
      {"data.end_of_document",
       [](Workshop& shop) {
         differ(shop, files_of(shop, {}), {"", "data.end_of_document=7", "data.end_of_document=70"}, losses);
       }},
      {"data.document_ends",
       [](Workshop& shop) {
         const tests::Scratch beside;
         const auto tokens = beside.path() / "tokens.bin";
         std::filesystem::copy_file(shop.tokens, tokens);
         beside.write("tokens.ends", tests::number(3, 8) + tests::number(70, 8) + tests::number(400, 8));
         differ(shop, files_of(shop, {"data.paths=" + tokens.string()}), {"", "data.document_ends=on"},
                losses);
         EXPECT_EQ(shop.train(files_of(shop, {"data.document_ends=on"})).code, 2)
             << "no ends beside that file";
       }},
      {"data.prefetch", prefetch},
      {"data.grammar_samples", changes({}, {"", "data.grammar_samples=3"}, samples_read)},
      {"eval.paths", eval_paths},
      {"eval.share",
       changes({"data.grammar_samples=40"}, {"", "eval.share=0.1", "eval.share=0.5"}, samples_read)},
      {"eval.sequences",
       [](Workshop& shop) {
         const Settings base = {"data.grammar_samples=40", "eval.share=0.5"};
         differ(shop, base, {"eval.sequences=0", "eval.sequences=3", "eval.sequences=7"}, validations);
         EXPECT_EQ(validations(shop.train({base[0], base[1], "eval.sequences=0"})),
                   validations(shop.train(base)))
             << "20 are held out: the default takes all of them";
       }},
      {"eval.every",
       [](Workshop& shop) {
         expect(shop, {"eval.share=0.5", "eval.sequences=2"},
                {{"eval.every=0", "4 "}, {"eval.every=1", "1 2 3 4 "}, {"eval.every=3", "3 4 "}},
                validated_after);
       }},
      {"eval.at_end",
       [](Workshop& shop) {
         expect(shop, {"eval.share=0.5", "eval.sequences=2", "eval.every=3"},
                {{"eval.at_end=on", "3 4 "}, {"eval.at_end=off", "3 "}}, validated_after);
       }},
  };
}

}  // namespace assay::tests::every_key
