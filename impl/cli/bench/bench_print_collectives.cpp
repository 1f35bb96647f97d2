#include "impl/cli/bench/bench_print_collectives.hpp"

#include "impl/cli/bench/bench_columns.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::cli {
namespace {

using bench::CollectiveRow;
using bench::CollectiveSubject;
using bench::OverlapRow;
using spec::fixed;
using spec::json_number;
using spec::json_string;

double algorithm_rate(const CollectiveRow& row) {
  return row.seconds > 0 ? spec::metrics::algorithm_bandwidth(row.bytes, row.seconds) : 0;
}

double bus_rate(const CollectiveRow& row, const CollectiveSubject& subject) {
  return row.seconds > 0 ? spec::metrics::bus_bandwidth(row.collective, row.bytes, row.seconds, subject.ranks)
                         : 0;
}

std::string gigabytes(double bytes_per_second) { return rate(bytes_per_second, 1, 1e9); }

std::string milliseconds(double seconds) { return seconds > 0 ? fixed(seconds * 1e3, 3) : "-"; }

std::string several(std::int64_t number, const std::string& word) {
  return spec::grouped(number) + " " + word + (number == 1 ? "" : "s");
}

std::string row_name(const CollectiveRow& row) {
  return left_aligned(std::string(to_string(row.collective)), 16) + left_aligned(row.dtype, 6) +
         left_aligned(row.size, 26);
}

std::string known(double value) { return value > 0 ? json_number(value) : "null"; }

std::string collective_members(const CollectiveRow& row, const CollectiveSubject& subject) {
  return "\"collective\":" + json_string(to_string(row.collective)) + ",\"size\":" + json_string(row.size) +
         ",\"dtype\":" + json_string(row.dtype) + ",\"bytes\":" + std::to_string(row.bytes) +
         ",\"seconds\":" + known(row.seconds) + ",\"fastest_seconds\":" + known(row.fastest) +
         ",\"bytes_per_s\":" + known(algorithm_rate(row)) +
         ",\"bus_bytes_per_s\":" + known(bus_rate(row, subject));
}

std::string overlap_members(const OverlapRow& row, const CollectiveSubject& subject) {
  return "\"gemm\":" + json_string(row.gemm) + ",\"gemm_seconds\":" + known(row.alone_seconds) +
         ",\"gemm_seconds_beside\":" + known(row.beside_seconds) +
         ",\"slow_down\":" + (row.beside_seconds > 0 ? json_number(slow_down(row)) : "null") + "," +
         collective_members(row.beside, subject);
}

}  // namespace

std::string collectives_heading(const CollectiveSubject& s) {
  std::string out = "collectives of " + several(s.ranks, "rank") + " on " + several(s.hosts, "host") +
                    " by " + s.engine + ", each on " + s.device + ", at the sizes of " + s.model + " in " +
                    s.dtype;
  if (s.max_ctas) out += ", NCCL_MAX_CTAS=" + *s.max_ctas;
  return out + "\nthe slowest rank's median of at least " + several(s.repeats, "call") +
         "; bytes are of the whole buffer, bus GB/s of a rank's link (spec/metrics/bus_bandwidth.md)\n" +
         left_aligned("", 48) + right_aligned("bytes", 16) + right_aligned("ms", 11) +
         right_aligned("GB/s", 9) + right_aligned("bus GB/s", 10) + "\n";
}

std::string collective_line(const CollectiveRow& row, const CollectiveSubject& subject) {
  return row_name(row) + right_aligned(spec::grouped(row.bytes), 16) +
         right_aligned(milliseconds(row.seconds), 11) + right_aligned(gigabytes(algorithm_rate(row)), 9) +
         right_aligned(gigabytes(bus_rate(row, subject)), 10) + "\n";
}

double slow_down(const OverlapRow& row) { return row.beside_seconds / row.alone_seconds - 1; }

std::string overlap_heading(const std::string& gemm) {
  return "\n" + gemm +
         ", a block's largest GEMM, while a collective runs beside it again and again: mean times\n" +
         left_aligned("", 48) + right_aligned("alone ms", 11) + right_aligned("beside ms", 11) +
         right_aligned("slower", 9) + right_aligned("bus GB/s", 10) + "\n";
}

std::string overlap_line(const OverlapRow& row, const CollectiveSubject& subject) {
  return row_name(row.beside) + right_aligned(milliseconds(row.alone_seconds), 11) +
         right_aligned(milliseconds(row.beside_seconds), 11) +
         right_aligned(row.beside_seconds > 0 ? spec::percent(slow_down(row)) : "-", 9) +
         right_aligned(gigabytes(bus_rate(row.beside, subject)), 10) + "\n";
}

std::string collectives_json(const CollectiveSubject& s, const std::vector<CollectiveRow>& rows,
                             const std::vector<OverlapRow>& overlap, const std::string& left_out) {
  return "{\"schema\":\"assay.bench.collectives/1\",\"device\":" + json_string(s.device) +
         ",\"engine\":" + json_string(s.engine) + ",\"ranks\":" + std::to_string(s.ranks) +
         ",\"hosts\":" + std::to_string(s.hosts) + ",\"model\":" + json_string(s.model) +
         ",\"dtype\":" + json_string(s.dtype) + ",\"repeats\":" + std::to_string(s.repeats) +
         ",\"nccl_max_ctas\":" + (s.max_ctas ? json_string(*s.max_ctas) : "null") + ",\n \"rows\":" +
         joined_json(rows, [&](const auto& row) { return "{" + collective_members(row, s) + "}"; }) +
         ",\n \"overlap\":" +
         joined_json(overlap, [&](const auto& row) { return "{" + overlap_members(row, s) + "}"; }) +
         ",\n \"overlap_left_out\":" + (left_out.empty() ? "null" : json_string(left_out)) + "}\n";
}

}  // namespace assay::impl::cli
