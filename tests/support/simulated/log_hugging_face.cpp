// What Hugging Face's Trainer writes: trainer_state.json, and the dictionaries that it prints. Where they
// were read: spec/audit/readers/formats.md.
#include "tests/support/simulated/log_text.hpp"

namespace assay::tests::log_text {

namespace {

std::string rounded(double number, int digits) {
  if (!std::isfinite(number)) return shortest(number);
  return shortest(std::strtod(text("%.*f", digits, number).c_str(), nullptr));
}

}  // namespace

std::string hugging_face(const SimulatedRun& run, const Report& r) {
  const double epochs = r.epochs * static_cast<double>(run.data_passes);
  std::string out = "{\n  \"best_metric\": null,\n  \"epoch\": " + text("%.1f", epochs) +
                    ",\n  \"global_step\": " + whole(of(r, Setting::final_step)) +
                    ",\n  \"is_local_process_zero\": true,\n  \"log_history\": [";
  for (const ReportedStep& s : r.steps)
    out +=
        "\n    {\n      \"epoch\": " + rounded(epochs * of(s, Field::step) / of(r, Setting::max_steps), 2) +
        ",\n      \"grad_norm\": " + shortest(of(s, Field::gradient_norm)) +
        ",\n      \"learning_rate\": " + shortest(of(s, Field::learning_rate)) +
        ",\n      \"loss\": " + rounded(of(s, Field::loss), 4) +
        ",\n      \"num_input_tokens_seen\": " + whole(of(s, Field::tokens_total)) +
        ",\n      \"step\": " + whole(of(s, Field::step)) + "\n    },";
  out += "\n    {\n      \"epoch\": " + text("%.1f", epochs) +
         ",\n      \"step\": " + whole(of(r, Setting::final_step)) +
         ",\n      \"total_flos\": " + shortest(of(r, Setting::total_flops)) +
         ",\n      \"train_loss\": " + shortest(r[Setting::average_loss].value_or(3)) +
         ",\n      \"train_runtime\": " + rounded(of(r, Setting::total_seconds), 4) +
         ",\n      \"train_samples_per_second\": " +
         rounded(r[Setting::average_sequences_per_second].value_or(
                     (static_cast<double>(run.micro * run.accounting.accumulation * run.data_parallel) *
                          of(r, Setting::max_steps) -
                      run.lacking(of(r, Setting::max_steps))) /
                     of(r, Setting::total_seconds)),
                 3) +
         ",\n      \"train_steps_per_second\": " +
         rounded(r[Setting::average_steps_per_second].value_or(of(r, Setting::max_steps) /
                                                               of(r, Setting::total_seconds)),
                 3) +
         "\n    }\n  ],\n";
  out += "  \"logging_steps\": " + std::to_string(run.log_every) +
         ",\n  \"max_steps\": " + whole(of(r, Setting::max_steps)) + ",\n  \"num_train_epochs\": " +
         (run.by_steps ? "9223372036854775807" : std::to_string(run.data_passes)) +
         ",\n  \"train_batch_size\": " + whole(of(r, Setting::micro)) + "\n}\n";
  return out;
}

std::string hugging_face_console(const SimulatedRun& run, const Report& r) {
  std::string out;
  const double epochs = static_cast<double>(run.data_passes);
  for (const ReportedStep& s : r.steps)
    out += "{'loss': " + rounded(of(s, Field::loss), 4) +
           ", 'grad_norm': " + shortest(of(s, Field::gradient_norm)) +
           ", 'learning_rate': " + shortest(of(s, Field::learning_rate)) +
           ", 'epoch': " + rounded(epochs * of(s, Field::step) / of(r, Setting::max_steps), 2) + "}\n";
  return out + "{'train_runtime': " + rounded(of(r, Setting::total_seconds), 4) +
         ", 'train_steps_per_second': " +
         rounded(of(r, Setting::max_steps) / of(r, Setting::total_seconds), 3) +
         ", 'train_loss': " + shortest(r[Setting::average_loss].value_or(3)) +
         text(", 'epoch': %.1f}\n", epochs);
}

}  // namespace assay::tests::log_text
