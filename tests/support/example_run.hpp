#pragma once
// The events of one small run, for tests of what is printed.
#include "spec/record/event.hpp"

namespace assay::tests {

inline spec::record::RunStart example_start() {
  spec::record::RunStart start;
  start.time = "2026-01-02T03:04:05Z";
  start.version = "0.1.0";
  start.host = "laptop";
  start.os = "Linux 6.1";
  start.cpu = "Some CPU";
  start.cores = 2;
  start.memory_bytes = 8'589'934'592;
  start.ranks = {{.rank = 0, .host = "laptop", .device = "cpu", .threads = 1},
                 {.rank = 1, .host = "laptop", .device = "cpu", .threads = 1}};
  start.model = "tiny-llama";
  start.vocab = 256;
  start.parameters = 853'120;
  start.flops_per_token = 5'714'688;
  start.batch = {
      .sequences = 32, .micro = 8, .accumulation = 2, .ranks = 2, .sequence_length = 128, .tokens = 4096};
  start.steps = 250;
  start.expected_first_loss = {.mean = 5.5512, .standard_deviation = 0.0123};
  start.data = {
      .source = "grammar", .description = "sentences of the built-in grammar", .files = {}, .floor = 0.7123};
  start.settings = {{"run.directory", std::string("runs/tiny-llama")}};
  return start;
}

inline spec::record::Step example_step(std::int64_t number) {
  spec::record::Step step;
  step.step = number;
  step.loss = 5.5453;
  step.gradient_norm = 1.2344;
  step.clip_coefficient = 0.81;
  step.learning_rate = 1.5e-4;
  step.tokens = step.valid_tokens = 4096;
  step.seconds = 0.25;
  step.tokens_per_second = 16384;
  step.phases.forward = 0.25;
  step.sample_hash = "00ff";
  return step;
}

inline spec::record::RunEnd example_end() {
  spec::record::RunEnd end;
  end.steps = 250;
  end.tokens = 1'024'000;
  end.seconds = 62.14;
  end.tokens_per_second = 16478.9;
  end.final_loss = 0.7421;
  end.final_steps = 12;
  end.floor = 0.7123;
  end.gap_closed = 0.99383;
  return end;
}

}  // namespace assay::tests
