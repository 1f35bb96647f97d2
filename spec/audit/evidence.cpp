#include "spec/audit/evidence.hpp"
#include "spec/audit/growth_of_tokens.hpp"
#include "spec/audit/running_mean.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>

#include "spec/audit/unnamed_ranks.hpp"
#include "spec/audit/validation_rows.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/flops/by_precision.hpp"

namespace assay::spec::audit {

Interval wide(const Printed& printed) {
  // A printer that cuts digits leaves [value, value + one unit); rounding leaves half a unit to either side.
  return {printed.low, printed.value + 2 * (printed.high - printed.value)};
}

namespace {

Interval three_digits(double rate) {
  const double unit = std::pow(10, std::floor(std::log10(rate) + 1e-12) - 2), count = rate / unit;
  return {std::floor(count + 1e-9) * unit, std::ceil(count - 1e-9) * unit};
}

bool half_is_dense(const Peak& peak) {
  return peak.sparse && std::abs(*peak.sparse / 2 / peak.dense - 1) < off_by_three_digits;
}

}  // namespace

Interval as_written(const Peak& peak) {
  Interval out = three_digits(peak.dense);
  if (half_is_dense(peak)) {
    const Interval half = three_digits(*peak.sparse / 2);
    out = {std::min(out.low, half.low), std::max(out.high, half.high)};
  }
  if (peak.rounded) out = {std::min(out.low, *peak.rounded), std::max(out.high, *peak.rounded)};
  return out;
}

std::vector<double> peaks_as_written(const Peak& peak) {
  const Interval ends = as_written(peak);
  std::vector<double> out = {peak.dense, ends.low, ends.high};
  if (half_is_dense(peak)) {
    const Interval sparse = three_digits(*peak.sparse);
    out.insert(out.end(), {*peak.sparse / 2, sparse.low / 2, sparse.high / 2});
  }
  if (peak.rounded) out.push_back(*peak.rounded);
  return out;
}

namespace {

/// Of every GPU that the name may mean.
Interval written_of(const GpuMatch& match, Precision precision, double dense) {
  Interval out = exact_interval(dense);
  const auto with = [&](const Gpu* gpu) {
    const Interval one = as_written(*gpu->peak(precision));
    out = {std::min(out.low, one.low), std::max(out.high, one.high)};
  };
  if (match.gpu) with(match.gpu);
  for (const Gpu* gpu : match.candidates) with(gpu);
  return out;
}

/// Of our own records whose linears are in FP8 (spec/flops/by_precision.md).
std::optional<double> peak_of_mix(const Evidence& e) {
  if (!e.model || !e.sequence_length) return std::nullopt;
  RunConfig config;
  const Key& recipe = *find_key("compute.linear");
  try {
    recipe.set(config, e.record.linear);
    std::string layer;
    for (std::istringstream left_out(e.record.linear_bf16_layers); std::getline(left_out, layer, ',');)
      config.linear_bf16_layers.push_back(layer);
    config.linear_experts = e.record.linear_experts == "on";
    const LinearPrecision linear = linear_precision(config, *e.model);
    return spec::dense_peak(
        e.gpu, exact_flops_by_precision(*e.model, static_cast<std::int64_t>(e.sequence_length->middle()),
                                        e.precision, linear));
  } catch (const SpecError&) {
    return std::nullopt;  // a recipe or a layer that no run has
  }
}

double number_of(const Step& step) { return step[Field::step] ? step[Field::step]->value : -1; }

/// False where the trainer splits models over GPUs and the lines that say how far are lost: the number of
/// GPUs is then not the number of ranks.
bool axes_are_known(const RunRecord& record) {
  const std::vector<Setting>& axes = trainer_of(record).axes;
  return std::all_of(axes.begin(), axes.end(), [&](Setting axis) { return record[axis].has_value(); });
}

/// Of a mesh that holds every rank of the launcher. One number alone may be a line's, of a tool that counts
/// lines.
double ranks_that_print(const RunRecord& record) {
  if (!trainer_of(record).mesh_of_all_ranks || record.ranks < 2) return 0;
  double highest = -1;
  for (const Step& step : record.steps)
    if (const auto& rank = step[Field::rank]) highest = std::max(highest, rank->value);
  return highest + 1;
}

std::vector<Stretch> stretches_of(const RunRecord& record, const std::vector<const Step*>& steps) {
  std::vector<Stretch> out;
  std::optional<double> last;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& number = (*steps[i])[Field::step];
    const bool falls = number && last && number->value < *last;
    if (out.empty() || falls || done_again(record, steps, i)) {
      if (!out.empty()) out.back().end = i;
      out.push_back({i, steps.size()});
    }
    if (number) last = number->value;
  }
  return out;
}

/// Steps of the first rank that printed; all of them when there is one. `validations`: lines of a table's
/// rows that are none.
std::vector<const Step*> steps_of(const RunRecord& record, std::vector<std::int64_t>& validations) {
  std::vector<const Step*> out;
  std::optional<double> rank;
  std::set<double> ranks;
  for (const Step& step : record.steps) {
    const auto& printed = step[Field::rank];
    if (printed && !rank) rank = printed->value;
    if (printed) ranks.insert(printed->value);
    if (!printed || printed->value == *rank) out.push_back(&step);
  }
  if (trainer_of(record).writes_rows) out = without_validation_rows(out, validations);
  const std::size_t prefixes = std::max<std::size_t>(1, ranks.size());
  return without_unnamed_ranks(out, ranks_that_may_print(record, prefixes)).lines;
}

}  // namespace

bool same_numbers(const Step& a, const Step& b) {
  for (std::size_t i = 0; i < field_count; ++i) {
    if (a.fields[i].has_value() != b.fields[i].has_value()) return false;
    if (a.fields[i] && !(a.fields[i]->value == b.fields[i]->value)) return false;
  }
  return true;
}

bool done_again(const RunRecord& record, const std::vector<const Step*>& steps, std::size_t i) {
  if (i == 0 || i >= steps.size() || number_of(*steps[i]) < 0) return false;
  const double number = number_of(*steps[i]);
  if (number_of(*steps[i - 1]) != number) return false;
  for (const Restart& restart : record.restarts)
    if (restart.line > steps[i - 1]->line && restart.line <= steps[i]->line) return true;
  if (trainer_of(record).saved_with_state || same_numbers(*steps[i], *steps[i - 1])) return false;
  // Two writers double the next step as well.
  if (i + 1 < steps.size() && number_of(*steps[i + 1]) <= number) return false;
  return i + 2 >= steps.size() || number_of(*steps[i + 2]) != number_of(*steps[i + 1]);
}

std::optional<Precision> computing_precision(std::string_view word) {
  std::string name;
  for (const char c : word)
    name += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  // Formats of scaled matrix products: whatever else the name says ("mxfp8", "fp8-hybrid", "float8_e5m2").
  if (holds("e4m3") || holds("e5m2") || holds("fp8") || holds("float8")) return Precision::fp8;
  if (holds("e2m1") || holds("fp4") || holds("float4")) return Precision::fp4;
  if (name.starts_with("torch.")) name.erase(0, 6);
  // Lightning's "bf16-mixed" and "16-true", others' "mixed-bf16" and "amp-fp16".
  for (const std::string_view end : {"-mixed", "-true", "-precision", "-amp"})
    if (name.ends_with(end)) name.erase(name.size() - end.size());
  for (const std::string_view start : {"mixed-", "amp-", "pure-"})
    if (name.starts_with(start)) name.erase(0, start.size());
  if (name == "16") return Precision::fp16;
  if (name == "32") return Precision::fp32;
  if (name == "64") return Precision::fp64;
  return precision_from(name);
}

bool not_measured(const Printed& share) {
  return share.value == -1 || share.value == -100 || std::isnan(share.value);
}

std::optional<double> number_in(const RunRecord& record, Setting setting) {
  const auto& printed = record[setting];
  return usable(printed) ? std::optional(printed->value) : std::nullopt;
}

Evidence::Evidence(const RunRecord& given)
    : record(given), trainer(trainer_of(given)), steps(steps_of(given, pauses)) {
  pauses.insert(pauses.end(), given.pauses.begin(), given.pauses.end());
  std::sort(pauses.begin(), pauses.end());
  stretches = stretches_of(record, steps);
  line_distance = usual_distance(*this);
  model = model_of(record, model_basis);
  if (!record.gpu.empty()) gpu = find_gpu(record.gpu);
  if (const auto named = computing_precision(record.dtype))
    precision = *named;
  else
    precision_known = record.dtype.empty();
  if (precision_known) dense_peak = spec::dense_peak(gpu, precision);
  if (dense_peak) written_peak = written_of(gpu, precision, *dense_peak);
  gpus = number_in(record, Setting::gpus);
  ranks = number_in(record, Setting::data_parallel);
  const double model_parallel = number_in(record, Setting::tensor_parallel).value_or(1) *
                                number_in(record, Setting::pipeline_parallel).value_or(1) *
                                number_in(record, Setting::context_parallel).value_or(1);
  axes_known = axes_are_known(record);
  ranks_printing = ranks_that_print(record);
  if (!ranks && gpus && (axes_known || *gpus == 1) && std::fmod(*gpus, model_parallel) == 0)
    ranks = *gpus / model_parallel;
  if (!gpus && ranks && axes_known) gpus = *ranks * model_parallel;
  sequence_length = of(Setting::sequence_length);
  if (const auto B = of(Setting::tokens_per_step), S = of(Setting::sequences); !sequence_length && B && S)
    if (const double T = B->middle() / S->middle(); T >= 1 && T == std::floor(T))
      sequence_length = exact_interval(T);
  if (!record.linear.empty() && precision_known) {
    dense_peak = peak_of_mix(*this);
    written_peak.reset();
    if (dense_peak) written_peak = exact_interval(*dense_peak);
  }
  micro = of(Setting::micro);
  accumulation = of(Setting::accumulation);
  if (!accumulation && (accumulation = of(Setting::accumulation_configured)))
    accumulation_is_configured = true;
  if ((tokens_per_step = of(Setting::tokens_per_step))) {
    tokens_basis = "as printed";
  } else if (const auto sequences = of(Setting::sequences); sequences && sequence_length) {
    tokens_per_step = *sequences * *sequence_length;
    tokens_basis = "sequences x T";
  } else if (micro && accumulation && ranks && sequence_length) {
    tokens_per_step = *micro * *accumulation * exact_interval(*ranks) * *sequence_length;
    tokens_basis = "micro x accumulation x ranks x T";
  } else if (record.format.tokens_per_second == Scope::all && (tokens_per_step = growth_of_tokens(*this))) {
    tokens_basis = "as printed";
  } else if (trainer.growth_is_batch && (tokens_per_step = growth_of_most_tokens(*this))) {
    tokens_basis = "growth of the tokens since the start";
  }
}

std::optional<Interval> Evidence::of(Setting setting) const {
  const auto& printed = record[setting];
  if (!usable(printed)) return std::nullopt;
  return wide(*printed);
}

std::optional<Interval> Evidence::flops_per_token(const Step& step) const {
  if (usable(step[Field::flops_per_token])) return wide(*step[Field::flops_per_token]);
  return of(Setting::flops_per_token);
}

const Printed* Evidence::printed_peak(const Step& step) const {
  if (usable(step[Field::peak_flops])) return &*step[Field::peak_flops];
  return usable(record[Setting::peak_flops]) ? &*record[Setting::peak_flops] : nullptr;
}

const Printed* Evidence::printed_peak() const {
  if (usable(record[Setting::peak_flops])) return &*record[Setting::peak_flops];
  for (const Step* step : steps)
    if (usable((*step)[Field::peak_flops])) return &*(*step)[Field::peak_flops];
  return nullptr;
}

const char* Evidence::no_gpu() const {
  return on_cpu()             ? "a GPU: the run is on CPUs"
         : record.gpu.empty() ? "name of the GPU"
         : !precision_known   ? "a dtype that has a peak (--set dtype=bf16)"
                              : "facts of this GPU";
}

bool Evidence::averaged(Field field) const {
  return std::find(record.format.averaged.begin(), record.format.averaged.end(), field) !=
         record.format.averaged.end();
}

}  // namespace assay::spec::audit
