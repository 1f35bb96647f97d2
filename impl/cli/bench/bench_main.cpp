// `assay-train --bench`: `assay bench` where the tensors are.
#include <algorithm>

#include "impl/bench/collectives.hpp"
#include "impl/bench/measure.hpp"
#include "impl/bench/overlap.hpp"
#include "impl/bench/step.hpp"
#include "impl/cli/bench/bench_print.hpp"
#include "impl/cli/bench/bench_print_collectives.hpp"
#include "impl/cli/verb.hpp"
#include "impl/machine/device_choice.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/run/start/on_ranks.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli {
namespace {

/// Model, tokens and dtype where the user named none: about the work of one micro-batch of a real run.
bench::Plan plan_of(const BenchPlan& asked, at::Device device) {
  const bool gpu = device.is_cuda();
  bench::Plan plan;
  plan.setting.model = asked.model ? *asked.model : spec::find_model(gpu ? "llama-1.36b" : "tiny-llama");
  plan.device = device;
  plan.setting.machine = gpu ? spec::memory::Machine::cuda : spec::memory::Machine::cpu;
  plan.setting.sequence_length =
      asked.tokens ? *asked.tokens : std::min<std::int64_t>(plan.setting.model.context, gpu ? 2048 : 128);
  const std::int64_t tokens = gpu ? 24 * 2048 : 8 * 128;
  plan.setting.micro =
      asked.micro ? *asked.micro : std::max<std::int64_t>(1, tokens / plan.setting.sequence_length);
  plan.setting.dtype = asked.dtype.value_or(gpu ? Dtype::bf16 : Dtype::f32);
  plan.patience = {.repeats = asked.repeats, .seconds = asked.seconds};
  return plan;
}

int bench_rows(const BenchPlan& asked, const run::DeviceChoice& choice, Streams streams) {
  if (choice.notice) streams.err << "assay: warning: " << *choice.notice << "\n";
  const bench::Plan plan = plan_of(asked, choice.device);
  const bench::Subject subject = bench::subject_of(plan);
  if (!asked.json) streams.out << bench_heading(subject) << std::flush;
  if (asked.tune_milliseconds) {
    bench::tune_gemms(plan, 1e-3 * static_cast<double>(*asked.tune_milliseconds),
                      [&](const std::string& line) { streams.out << line << std::endl; });
    return 0;
  }
  const bool in_step = asked.what == "ops";
  if (!asked.json) streams.out << bench_columns(subject, in_step) << std::flush;
  std::vector<bench::Row> rows;
  const auto use = [&](const bench::Row& row) {
    rows.push_back(row);
    if (!asked.json) streams.out << bench_row(row, subject, in_step) << std::flush;
  };
  in_step ? bench::measure_ops(plan, use) : bench::measure_ceilings(plan, use);
  if (asked.json)
    streams.out << rows_json(asked.what, subject, rows);
  else if (in_step)
    streams.out << bench_sums(rows);
  return 0;
}

/// Every rank measures, rank 0 prints.
int bench_collectives(const BenchPlan& asked, const run::Rank& rank, Streams streams) {
  if (asked.tune_milliseconds)
    throw AgreedError(ExitCode::usage, "--tune finds the GEMMs' algorithms of one device: start one process");
  const bench::Plan plan = plan_of(asked, rank.choice.device);
  const bench::CollectiveSubject subject = bench::collective_subject(plan, rank.communicator);
  std::vector<bench::CollectiveRow> rows;
  std::vector<bench::OverlapRow> overlap;
  const bool prints = rank.communicator.rank() == 0, table = prints && !asked.json;
  if (table) streams.out << collectives_heading(subject) << std::flush;
  bench::measure_collectives(plan, rank.communicator, [&](const bench::CollectiveRow& row) {
    rows.push_back(row);
    if (table) streams.out << collective_line(row, subject) << std::flush;
  });
  const std::string left_out = bench::overlap_left_out(plan.device);
  if (left_out.empty()) {
    if (table) streams.out << overlap_heading(bench::overlapped_gemm) << std::flush;
    bench::measure_overlap(plan, rank.communicator, [&](const bench::OverlapRow& row) {
      overlap.push_back(row);
      if (table) streams.out << overlap_line(row, subject) << std::flush;
    });
  }
  if (table && !left_out.empty()) streams.out << left_out << "\n";
  if (prints && asked.json) streams.out << collectives_json(subject, rows, overlap, left_out);
  streams.out << std::flush;
  rank.take_leave();
  return 0;
}

/// One device, or what several ranks have between them.
int bench_ceilings(const BenchPlan& asked, Streams streams) {
  const auto settings = [&]() -> run::RankSettings { return {.device = asked.device}; };
  return run::on_ranks(settings, [&](const run::Rank& rank) {
    return rank.communicator.size() > 1 ? bench_collectives(asked, rank, streams)
                                        : bench_rows(asked, rank.choice, streams);
  });
}

int bench_step(const BenchPlan& asked, Streams streams) {
  const bench::StepTimes times = bench::measure_step(
      *asked.config, asked.repeats, [&](const std::string& line) { streams.err << line << std::endl; });
  if (!asked.run_folder.empty()) {
    replace_file(OutputFolder(asked.run_folder), "waterfall.json", step_json(times));
    streams.err << "written: " << asked.run_folder << "/waterfall.json; `assay report " << asked.run_folder
                << "` shows it\n";
  }
  streams.out << (asked.json ? step_json(times) : step_table(times));
  return 0;
}

}  // namespace

int run_bench(const std::vector<std::string>& words, Streams streams) {
  for (const Verb& verb : verbs())
    if (verb.name == "bench") {
      const BenchPlan asked = bench_plan(parse(words, verb.options, verb.name));
      if (asked.ranks > 0)
        throw UserError(ExitCode::usage,
                        "--ranks belongs to `assay bench`; here a launcher decides, as in srun -n 2 "
                        "assay-train --bench ceilings");
      if (asked.what == "ceilings") return bench_ceilings(asked, streams);
      return asked.what == "step" ? bench_step(asked, streams)
                                  : bench_rows(asked, run::choose_device(asked.device), streams);
    }
  return static_cast<int>(ExitCode::bug);
}

}  // namespace assay::impl::cli
