#pragma once
// What Hugging Face's Trainer leaves of a run, built by hand.
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::tests {

/// trainer_state.json of 100 steps, a line every ten, their losses 1.5 to 1.05.
struct HuggingFaceState {
  int max_steps = 100;
  double train_loss = 1.275, samples_per_second = 3.2, steps_per_second = 0.1;
  int first = 10, last = 100;
  double tokens_per_step = 0, tokens_per_second = 0, total_flos = 0;  // left out where 0
  std::string passes;                                                 // num_train_epochs
  double batches_differ = 0;  // of the tokens of a line, up to this share more or less

  spec::audit::RunRecord record(const std::string& set = "") const {
    std::ostringstream out;
    out << "{\"max_steps\": " << max_steps << ", \"train_batch_size\": 4, ";
    if (!passes.empty()) out << "\"num_train_epochs\": " << passes << ", ";
    out << "\"log_history\": [\n";
    double seen = tokens_per_step * (first - 10);
    for (int step = first; step <= last; step += 10) {
      out << "{\"learning_rate\": 1e-5, \"loss\": " << 1.55 - 0.005 * step;
      seen += tokens_per_step * 10 * (1 + batches_differ * std::sin(step));
      if (tokens_per_step > 0) out << ", \"num_input_tokens_seen\": " << std::llround(seen);
      out << ", \"step\": " << step << "},\n";
    }
    out << "{\"step\": " << last << ", \"train_loss\": " << train_loss
        << ", \"train_runtime\": 1000.0, \"train_samples_per_second\": " << samples_per_second
        << ", \"train_steps_per_second\": " << steps_per_second;
    if (tokens_per_second > 0) out << ", \"train_tokens_per_second\": " << tokens_per_second;
    if (total_flos > 0) out << ", \"total_flos\": " << total_flos;
    out << "}]}\n";
    std::istringstream in(out.str());
    spec::audit::ReadOptions options;
    options.set = set;
    return spec::audit::read_log(in, "trainer_state.json", options);
  }
  spec::audit::Result of(std::string_view id) const { return spec::audit::judge(id, record()); }
};

}  // namespace assay::tests
