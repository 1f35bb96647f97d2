#pragma once
// Records of the two runs of the first seed document, as the document prints them.
#include "spec/audit/run_record.hpp"

namespace assay::tests {

/// `gpus` 2 or 8. Public source: github.com/aaronzhfeng/llm_TII, its report of 2025-11-20 on B200 scaling.
inline spec::audit::RunRecord scaling_report_run(int gpus) {
  using namespace spec::audit;
  const bool two = gpus == 2;
  RunRecord r;
  r.origin = two ? "2 GPUs" : "8 GPUs";
  r.format.name = "llm_tii";
  r.format.convention = "palm_total";
  r.format.first_step_is_zero = true;
  r.gpu = "NVIDIA B200";
  r.dtype = "bfloat16";
  r.schedule = "cosine";
  const auto counted = [](const char* text, std::int64_t line, double unit = 1) {
    return *parse_printed(text, Kind::counted, unit, line);
  };
  const auto measured = [](const char* text, std::int64_t line, double unit = 1) {
    return *parse_printed(text, Kind::measured, unit, line);
  };
  r[Setting::gpus] = counted(two ? "2" : "8", 3);
  r[Setting::gpu_memory] = measured("191.5", 4, 1e9);
  r[Setting::peak_flops] = measured(two ? "9000.0" : "36000.0", 11, 1e12);
  r[Setting::flops_per_token] = measured("8.78", 12, 1e9);
  r[Setting::expected_tokens_per_second_half_mfu] = measured(two ? "512285" : "2049141", 14);
  r[Setting::micro] = counted("24", 21);
  r[Setting::accumulation] = counted("64", 22);
  r[Setting::sequences] = counted(two ? "3072" : "12288", 23);
  r[Setting::tokens_per_step] = counted(two ? "6,291,456" : "25,165,824", 24);
  r[Setting::max_steps] = counted(two ? "1,000" : "100", 25);
  r[Setting::learning_rate] = measured("0.0003", 26);
  r[Setting::warmup_steps] = counted("2000", 29);
  r[Setting::decay_steps] = counted("25000", 30);
  r[Setting::parameters] = measured("1.294", 40, 1e9);
  Step warm;
  warm.line = 32;
  warm[Field::step] = counted("0", 32);
  warm[Field::loss] = measured(two ? "10.8422" : "10.8414", 32);
  warm[Field::seconds] = measured(two ? "32054" : "59848", 32, 1e-3);
  Step step;
  step.line = 35;
  step[Field::step] = counted("10", 35);
  step[Field::loss] = measured(two ? "10.7652" : "10.7715", 35);
  step[Field::seconds] = measured(two ? "1838" : "29452", 35, 1e-3);
  step[Field::learning_rate] = measured("1.65e-06", 35);
  step[Field::mfu] = measured(two ? "10.44" : "2.61", 37, 1e-2);
  step[Field::flops_rate] = measured(two ? "939.7" : "938.2", 37, 1e12);
  step[Field::peak_flops] = measured(two ? "9000.0" : "36000.0", 37, 1e12);
  step[Field::tokens_per_second] = measured(two ? "106979" : "106809", 38);
  step[Field::flops_per_token] = measured("8.78", 38, 1e9);
  step[Field::memory_allocated] = measured("13.53", 39, 1e9);
  step[Field::memory_peak] = measured("103.26", 39, 1e9);
  step[Field::memory_reserved] = measured("111.23", 39, 1e9);
  r.steps = {warm, step};
  r.steps_seen = 2;
  r.lines = 40;
  return r;
}

}  // namespace assay::tests
