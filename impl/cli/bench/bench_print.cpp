#include "impl/cli/bench/bench_print.hpp"

#include <algorithm>
#include <cmath>

#include "impl/cli/bench/bench_columns.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::cli {
namespace {

using bench::Row;
using bench::StepTimes;
using bench::Subject;
using spec::fixed;
using spec::json_number;
using spec::json_string;
using spec::time::StepClass;

/// FLOP/s are shown in units that fit the device.
bool is_gpu(const Subject& subject) { return subject.device != "CPU"; }

std::string flop_unit(const Subject& subject) { return is_gpu(subject) ? "TFLOP/s" : "GFLOP/s"; }

std::string flop_rate(const Row& row, const Subject& subject) {
  return rate(row.flops, row.seconds, is_gpu(subject) ? 1e12 : 1e9);
}

std::string share_of(double part, double whole) { return whole > 0 ? spec::percent(part / whole) : "-"; }

std::string ceilings_json(const spec::time::Ceiling& ceiling) {
  const auto known = [](double value) { return value > 0 ? json_number(value) : std::string("null"); };
  return "{\"peak_flops_per_s\":" + known(ceiling.peak) + ",\"bytes_per_s\":" + known(ceiling.bandwidth) +
         "}";
}

std::string subject_json(const Subject& s) {
  return "\"device\":" + json_string(s.device) + ",\"threads\":" + std::to_string(s.threads) +
         ",\"model\":" + json_string(s.model) + ",\"micro\":" + std::to_string(s.micro) +
         ",\"sequence_length\":" + std::to_string(s.tokens) + ",\"dtype\":" + json_string(s.dtype) +
         ",\"ceiling\":" + ceilings_json(s.ceiling);
}

std::string row_json(const Row& row) {
  std::string out =
      "{\"name\":" + json_string(row.name) + ",\"class\":" + json_string(std::string(to_string(row.kind)));
  if (row.calls > 0) out += ",\"calls\":" + json_number(row.calls);
  if (row.equal_calls > 0) out += ",\"equal_calls\":" + json_number(row.equal_calls);
  out += ",\"seconds\":" + json_number(row.seconds) + ",\"fastest_seconds\":" + json_number(row.fastest) +
         ",\"matmul_flops\":" + json_number(row.flops) + ",\"bytes\":" + json_number(row.bytes);
  if (row.roofline)
    out += ",\"roofline_seconds\":" + json_number(*row.roofline) +
           ",\"roofline_share\":" + json_number(*row.roofline / row.seconds);
  return out + "}";
}

/// A part of the step as a row of totals, over calls of every size.
Row total(const StepTimes& times, const spec::time::MeasuredPart& part) {
  Row row{.name = name_of(part.op, part.pass),
          .kind = class_of(part.op),
          .calls = part.calls,
          .seconds = part.seconds,
          .fastest = part.seconds,
          .roofline = {}};
  for (const spec::time::StepOpCount& count : times.counts) {
    if (count.op != part.op || count.pass != part.pass) continue;
    row.flops += count.calls * count.flops.matmul.to_double();
    row.bytes += count.calls * count.bytes.to_double();
    if (const auto least = spec::time::roofline(count.flops, count.bytes, times.subject.ceiling))
      row.roofline = row.roofline.value_or(0) + count.calls * *least;
  }
  return row;
}

std::vector<Row> totals(const StepTimes& times) {
  std::vector<Row> rows;
  for (const auto& part : times.step.parts) rows.push_back(total(times, part));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

double parts_sum(const StepTimes& times) {
  double sum = times.step.between;
  for (const auto& part : times.step.parts) sum += part.seconds;
  return sum;
}

std::string bar_of(double share) {
  const auto cells = static_cast<std::size_t>(std::clamp(std::lround(share * 40), 0L, 40L));
  return cells > 0 ? "  " + std::string(cells, '#') : "";
}

std::string waterfall_text(const StepTimes& times) {
  const bool known = times.waterfall.mfu.has_value();
  std::string out = known ? "from the peak to the achieved MFU, shares of the step\n"
                          : "shares of the step (this device's peak is not known, so there is no MFU)\n";
  for (const auto& bar : times.waterfall.bars)
    out += "  " + left_aligned(bar.name, 40) + right_aligned(fixed(bar.seconds * 1e3, 2) + " ms", 13) +
           right_aligned(share_of(bar.seconds, times.step.seconds), 9) +
           bar_of(bar.seconds / times.step.seconds) + "\n";
  return out;
}

}  // namespace

std::string bench_heading(const Subject& s) {
  std::string out = s.model + ", " + spec::grouped(s.micro) + " x " + spec::grouped(s.tokens) +
                    " tokens a micro-batch, " + s.dtype + ", on " + s.device;
  if (s.threads > 0) out += " with " + std::to_string(s.threads) + (s.threads == 1 ? " thread" : " threads");
  if (s.ceiling.peak > 0) out += ": " + spec::si(s.ceiling.peak, "FLOP/s") + " dense";
  if (s.ceiling.bandwidth > 0) out += ", " + spec::si(s.ceiling.bandwidth, "B/s") + " by its data sheet";
  if (!(s.ceiling.peak > 0)) out += "; its peak is not known, so shares of it are left out";
  return out + "\n";
}

std::string bench_columns(const Subject& subject, bool in_step) {
  return left_aligned("", 36) + right_aligned("ms a call", 11) +
         (in_step ? right_aligned("calls", 8) + right_aligned("ms a step", 11) : "") +
         right_aligned(flop_unit(subject), 10) + right_aligned("GB/s", 8) +
         right_aligned(in_step ? "of roofline" : "of peak", 13) + "\n";
}

std::string bench_row(const Row& row, const Subject& subject, bool in_step) {
  std::string out = left_aligned(row.name, 36) + right_aligned(fixed(row.seconds * 1e3, 3), 11);
  if (in_step)
    out += right_aligned(fixed(row.calls, 0), 8) +
           right_aligned(fixed(row.seconds * row.equal_calls * 1e3, 2), 11);
  out += right_aligned(flop_rate(row, subject), 10) + right_aligned(rate(row.bytes, row.seconds, 1e9), 8);
  const double peak_time = row.flops > 0 && subject.ceiling.peak > 0 ? row.flops / subject.ceiling.peak
                           : row.flops == 0 && subject.ceiling.bandwidth > 0
                               ? row.bytes / subject.ceiling.bandwidth
                               : 0;
  const double least = in_step ? row.roofline.value_or(0) : peak_time;
  return out + right_aligned(least > 0 ? share_of(least, row.seconds) : "-", 13) + "\n";
}

std::string bench_sums(const std::vector<Row>& rows) {
  std::string out = "together a step:";
  double all = 0;
  for (const StepClass kind : {StepClass::gemm, StepClass::attention, StepClass::elementwise, StepClass::loss,
                               StepClass::optimizer}) {
    double sum = 0;
    for (const Row& row : rows) sum += row.kind == kind ? row.seconds * row.equal_calls : 0;
    out += " " + std::string(to_string(kind)) + " " + fixed(sum * 1e3, 1) + " ms,";
    all += sum;
  }
  return out + " all " + fixed(all * 1e3, 1) + " ms\n";
}

std::string step_table(const StepTimes& times) {
  const double step = times.step.seconds;
  std::string out = bench_heading(times.subject);
  out += "a step of " + spec::grouped(times.sequences) + " sequences: " + fixed(step * 1e3, 2) +
         " ms taken apart, " + fixed(times.plain_seconds * 1e3, 2) + " ms not (median of " +
         std::to_string(times.steps) + " each)";
  if (times.waterfall.mfu)
    out += "; exact MFU " + spec::percent(*times.waterfall.mfu) + ", HFU " +
           spec::percent(times.executed_flops / times.subject.ceiling.peak / step);
  out += "\n\n" + waterfall_text(times) + "\n" + left_aligned("", 36) + right_aligned("ms a step", 11) +
         right_aligned("of it", 9) + right_aligned("calls", 8) + right_aligned(flop_unit(times.subject), 10) +
         right_aligned("GB/s", 8) + right_aligned("of roofline", 13) + "\n";
  for (const Row& row : totals(times))
    out += left_aligned(row.name, 36) + right_aligned(fixed(row.seconds * 1e3, 2), 11) +
           right_aligned(share_of(row.seconds, step), 9) + right_aligned(fixed(row.calls, 0), 8) +
           right_aligned(flop_rate(row, times.subject), 10) +
           right_aligned(rate(row.bytes, row.seconds, 1e9), 8) +
           right_aligned(row.roofline ? share_of(*row.roofline, row.seconds) : "-", 13) + "\n";
  return out + left_aligned("between the ops", 36) + right_aligned(fixed(times.step.between * 1e3, 2), 11) +
         right_aligned(share_of(times.step.between, step), 9) + "\n" +
         "sum of these lines: " + fixed(parts_sum(times) * 1e3, 2) + " ms, " +
         spec::percent(parts_sum(times) / step, 2) + " of the step, which a clock of its own measured\n";
}

std::string rows_json(const std::string& what, const Subject& subject, const std::vector<Row>& rows) {
  return "{\"schema\":\"assay.bench." + what + "/1\"," + subject_json(subject) +
         ",\n \"rows\":" + joined_json(rows, row_json) + "}\n";
}

std::string step_json(const StepTimes& times) {
  std::string out = "{\"schema\":\"assay.bench.step/1\"," + subject_json(times.subject) +
                    ",\n \"sequences\":" + std::to_string(times.sequences) +
                    ",\"steps\":" + std::to_string(times.steps) +
                    ",\"step_seconds\":" + json_number(times.step.seconds) +
                    ",\"plain_step_seconds\":" + json_number(times.plain_seconds) +
                    ",\"exact_flops\":" + json_number(times.exact_flops) +
                    ",\"executed_flops\":" + json_number(times.executed_flops) +
                    ",\"mfu\":" + (times.waterfall.mfu ? json_number(*times.waterfall.mfu) : "null");
  out += ",\n \"waterfall\":" + joined_json(times.waterfall.bars, [](const auto& bar) {
           return "{\"name\":" + json_string(bar.name) + ",\"seconds\":" + json_number(bar.seconds) + "}";
         });
  out += ",\n \"between_seconds\":" + json_number(times.step.between) +
         ",\"data_wait_seconds\":" + json_number(times.step.data_wait);
  return out + ",\n \"parts\":" + joined_json(totals(times), row_json) + "}\n";
}

}  // namespace assay::impl::cli
