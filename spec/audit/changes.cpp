#include "spec/audit/changes.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

using R = Relation;

constexpr struct {
  std::string_view format, change;
} known_of_trainers[] = {
    // github.com/aaronzhfeng/llm_TII, enhanced_training_system/train.py at 8826d8c: the rate is made of one
    // rank's
    // sequences, the peak of all GPUs'.
    {"llm_tii", "rate_of_one_rank"},
    {"llm_tii_json", "rate_of_one_rank"},
};

}  // namespace

std::string_view known_of_trainer(const Evidence& e) {
  for (const auto& known : known_of_trainers)
    if (known.format == e.record.format.name && e.ranks.value_or(1) > 1) return known.change;
  return {};
}

namespace {

/// FLOPs per token at another sequence length, as a factor on those at the printed one.
double flops_at(const Evidence& e, double length) {
  Evidence other = e;
  other.sequence_length = exact_interval(length);
  const std::string name = e.record.format.convention;
  const auto here = counted_flops(e, name), there = counted_flops(other, name);
  return here && there ? there->middle() / here->middle() : 1;
}

class Builder {
 public:
  Builder(const Evidence& evidence, const Comparisons& comparisons) : e_(evidence), c_(comparisons) {}

  struct Effect {
    R relation;
    double factor;
  };
  Change& add(std::string id, std::string text, double cost, std::initializer_list<Effect> effects) {
    Change change;
    change.id = std::move(id);
    change.text = std::move(text);
    change.cost = cost;
    if (known_of_trainer(e_) == change.id) change.cost = 0.2 - unknown_of_known;
    bool felt = false;
    for (const Effect& effect : effects) {
      change.factors[effect.relation] = effect.factor;
      felt |= effect.factor != 1 && has(effect.relation);
    }
    if (!felt) return ignored_;
    out_.push_back(std::move(change));
    return out_.back();
  }
  bool has(R relation) const { return !at(c_, relation).samples.empty(); }
  /// Changes that move every relation alike are one, told by the likeliest; near ties are named beside it.
  std::vector<Change> finish() {
    std::vector<Change> merged;
    std::stable_sort(out_.begin(), out_.end(),
                     [](const Change& a, const Change& b) { return a.cost < b.cost; });
    for (Change& change : out_) {
      Change* same = nullptr;
      for (Change& other : merged)
        if (alike(change, other)) same = &other;
      if (!same)
        merged.push_back(std::move(change));
      else if (change.id != same->id && change.cost <= same->cost + 1)
        same->alternatives.push_back(change.text);
    }
    return merged;
  }

 private:
  bool alike(const Change& a, const Change& b) const {
    for (std::size_t i = 0; i < relation_count; ++i)
      if (!c_[i].samples.empty() &&
          std::abs(a.factors.values[i] / b.factors.values[i] - 1) >
              (static_cast<R>(i) == R::flops_per_token || static_cast<R>(i) == R::parameters ? 1e-7 : 2e-3))
        return false;
    return true;
  }

  const Evidence& e_;
  const Comparisons& c_;
  std::vector<Change> out_;
  Change ignored_;
};

void add_scopes(Builder& b, const Evidence& e, const Interpretation& reading) {
  const double now = count_of(e, reading.rate);
  for (const Whose whose : {Whose::all, Whose::rank, Whose::gpu}) {
    const double count = count_of(e, whose), w = count / now;
    if (w == 1 || (whose == Whose::gpu && e.ranks == e.gpus)) continue;
    const bool all = whose == Whose::all;
    const std::string id = all                    ? "rate_of_all"
                           : whose == Whose::rank ? "rate_of_one_rank"
                                                  : "rate_of_one_gpu";
    const std::string text = all                    ? "tokens/s is that of all GPUs"
                             : whose == Whose::rank ? "tokens/s is one rank's"
                                                    : "tokens/s is one GPU's";
    const bool throughout = b.has(R::mfu) || b.has(R::flops_rate);
    b.add(id, text + (throughout ? ", and the MFU is made of it" : ""), 2,
          {{R::rate_time, 1 / w}, {R::rate_wall_clock, w}})
        .rate = w;
    b.add(id, text, 2.2, {{R::rate_time, 1 / w}, {R::rate_wall_clock, w}, {R::flops_rate, w}, {R::mfu, w}})
        .rate = w;
  }
}

void add_utilisation(Builder& b, const Evidence& e, const Interpretation& reading) {
  const double gpus = e.gpus.value_or(1), ranks = e.ranks.value_or(gpus);
  std::vector<double> counts = {gpus};
  if (ranks != gpus) counts.push_back(ranks);
  for (const double w : counts) {
    if (w <= 1) continue;
    const std::string one = w == gpus ? "one GPU's" : "one rank's";
    // Where no MFU is printed, the FLOP/s alone are told of.
    const bool shares = b.has(R::mfu) || b.has(R::mfu_of_flops_rate) || b.has(R::mfu_of_batch);
    const std::string one_over_all = shares ? "MFU divides " + one + " FLOP/s by the peak of all GPUs"
                                            : "the FLOP/s are " + one + " divided by the GPUs";
    const std::string all_over_one = shares ? "MFU divides the FLOP/s of all GPUs by the peak of one"
                                            : "the FLOP/s are those of all GPUs, not " + one;
    b.add("mfu_one_over_all", one_over_all, 2,
          {{R::mfu, 1 / w}, {R::mfu_of_flops_rate, 1 / w}, {R::mfu_of_batch, 1 / w}});
    b.add(
        "mfu_one_over_all", one_over_all, 2.3,
        {{R::flops_rate, 1 / w}, {R::flops_rate_of_batch, 1 / w}, {R::mfu, 1 / w}, {R::mfu_of_batch, 1 / w}});
    b.add("mfu_all_over_one", all_over_one, 2,
          {{R::mfu, w}, {R::mfu_of_flops_rate, w}, {R::mfu_of_batch, w}});
    b.add("mfu_all_over_one", all_over_one, 2.1,
          {{R::flops_rate, w}, {R::flops_rate_of_batch, w}, {R::mfu, w}, {R::mfu_of_batch, w}});
    if (w != gpus) continue;
    if (reading.peak_of_one)
      b.add("mfu_one_over_all", "the peak is that of all GPUs, the FLOP/s are one's", 2, {{R::peak, w}});
    else
      b.add("mfu_all_over_one", "the peak is that of one GPU, the FLOP/s are those of all", 2,
            {{R::peak, 1 / w}});
  }
  b.add("mfu_in_percent", "MFU is in percent, read as a share", 3,
        {{R::mfu, 100}, {R::mfu_of_flops_rate, 100}, {R::mfu_of_batch, 100}});
  b.add("mfu_as_share", "MFU is a share of 1, read as percent", 3,
        {{R::mfu, 0.01}, {R::mfu_of_flops_rate, 0.01}, {R::mfu_of_batch, 0.01}});
}

/// GPUs that large trainings run on, the commonest first; the others follow as spec/hardware lists them.
constexpr std::string_view common_gpus[] = {"NVIDIA H100 SXM",      "NVIDIA H200", "NVIDIA A100 SXM 80GB",
                                            "NVIDIA A100 SXM 40GB", "NVIDIA B200", "NVIDIA H100 PCIe",
                                            "NVIDIA A100 PCIe 80GB"};

/// Orders GPUs whose peaks fit alike, far below what separates two readings.
double rareness(const std::string& gpu) {
  const auto* const at = std::find(std::begin(common_gpus), std::end(common_gpus), gpu);
  return 1e-3 * static_cast<double>(at - std::begin(common_gpus));
}

void add_peaks(Builder& b, const Evidence& e) {
  if (!e.dense_peak) return;
  const bool printed = e.printed_peak() != nullptr;
  const auto candidate = [&](const std::string& id, const std::string& text, double peak, double cost) {
    const double x = peak / *e.dense_peak;
    if (!(x > 0) || std::abs(x - 1) < 6e-3) return;
    if (printed) b.add(id, text, cost, {{R::peak, x}});
    b.add(id, printed ? "MFU is made with another peak than printed: " + text : text,
          cost + (printed ? 1.5 : 0),
          {{R::mfu, 1 / x}, {R::mfu_of_flops_rate, 1 / x}, {R::mfu_of_batch, 1 / x}});
  };
  const std::string dtype(to_string(e.precision));
  const Gpu* own = e.gpu.gpu ? e.gpu.gpu : e.gpu.candidates.empty() ? nullptr : e.gpu.candidates.front();
  if (own)
    for (const auto& [precision, peak] : own->peaks) {
      const std::string name(to_string(precision));
      const bool same = precision == e.precision;
      if (peak.sparse)
        candidate(same ? "peak_sparse" : "peak_other_dtype", "the peak is the sparse one of " + name,
                  *peak.sparse, same ? 2 : 4);
      if (!same)
        candidate("peak_other_dtype", "the peak is the dense one of " + name + ", not of " + dtype,
                  peak.dense,
                  precision == Precision::fp8   ? 2.6
                  : precision == Precision::fp4 ? 4.2
                                                : 3.3);
    }
  for (const Gpu& other : gpus()) {
    if (&other == own) continue;
    if (const Peak* peak = other.peak(e.precision)) {
      candidate("peak_other_gpu", "the peak is that of another GPU: " + other.name, peak->dense,
                3 + rareness(other.name));
      if (peak->sparse)
        candidate("peak_other_gpu", "the peak is the sparse one of another GPU: " + other.name, *peak->sparse,
                  4.5);
    }
  }
}

void add_units(Builder& b) {
  const struct {
    double factor;
    const char* text;
    double cost;
  } units[] = {{1e3, "10^3 too large", 3.1},
               {1e-3, "10^3 too small", 3.1},
               {1e6, "10^6 too large", 4},
               {1e-6, "10^6 too small", 4},
               {1.024, "k is read as 1,024, not 1,000", 3.2},
               {1 / 1.024, "k is read as 1,000, not 1,024", 3.2},
               {1.048576, "M is read as 2^20, not 10^6", 3.4},
               {1 / 1.048576, "M is read as 10^6, not 2^20", 3.4}};
  for (const auto& [u, text, cost] : units) {
    b.add("rate_unit", std::string("unit of tokens/s: ") + text, cost,
          {{R::rate_time, u}, {R::rate_wall_clock, 1 / u}, {R::flops_rate, 1 / u}, {R::mfu, 1 / u}})
        .rate = 1 / u;
    b.add("rate_unit", std::string("unit of tokens/s, and what is made of it: ") + text, cost + 1,
          {{R::rate_time, u}, {R::rate_wall_clock, 1 / u}})
        .rate = 1 / u;
    b.add("flops_rate_unit", std::string("unit of FLOP/s: ") + text, cost,
          {{R::flops_rate, u}, {R::mfu_of_flops_rate, 1 / u}, {R::flops_rate_of_batch, u}});
  }
  const struct {
    double factor;
    const char* text;
  } times[] = {{1e3, "milliseconds are read as seconds"},
               {1e-3, "seconds are read as milliseconds"},
               {60, "seconds are read as minutes"},
               {1.0 / 60, "minutes are read as seconds"}};
  for (const auto& [u, text] : times)
    b.add("time_unit", text, 3,
          {{R::rate_time, u}, {R::wall_clock, u}, {R::flops_rate_of_batch, u}, {R::mfu_of_batch, u}})
        .time = 1 / u;
}

void add_passes(Builder& b, const Evidence& e) {
  const double ranks = e.ranks.value_or(1), gpus = e.gpus.value_or(1);
  if (e.accumulation && e.accumulation->low == e.accumulation->high && e.accumulation->low > 1) {
    const double a = e.accumulation->low;
    b.add("rate_of_micro_batch", "tokens/s is that of one micro-batch", 2.8,
          {{R::rate_time, 1 / a}, {R::rate_wall_clock, a}, {R::flops_rate, a}, {R::mfu, a}})
        .rate = a;
    b.add("time_of_micro_batch", "the step time is that of one micro-batch", 3,
          {{R::rate_time, 1 / a},
           {R::wall_clock, 1 / a},
           {R::flops_rate_of_batch, 1 / a},
           {R::mfu_of_batch, 1 / a}})
        .time = a;
    for (const auto& [id, relation] : {std::pair("total_of_micro_batches", R::tokens_total),
                                       std::pair("total_of_micro_batches", R::sequences_total),
                                       std::pair("tokens_of_micro_batch", R::step_tokens)})
      b.add(id, "one micro-batch per step is counted", 2.8, {{relation, 1 / a}});
  }
  const auto counts = [&](double w, const char* what) {
    if (w == 1) return;
    for (const auto& [id, relation] :
         {std::pair("total_of_one_rank", R::tokens_total), std::pair("total_of_one_rank", R::sequences_total),
          std::pair("tokens_of_one_rank", R::step_tokens)})
      b.add(w < 1 ? id : "total_per_model_rank", what, 2.5, {{relation, w}});
  };
  counts(1 / ranks, "only one rank's tokens are counted");
  counts(gpus / ranks, "tokens are counted on every rank that shares them (tensor, pipeline)");
}

void add_counts(Builder& b, const Evidence& e) {
  const auto counted = counted_flops(e);
  const bool printed = b.has(R::flops_per_token);
  // A count that is printed nowhere shows in what is made of it.
  const auto candidate = [&](const std::string& id, const std::string& text, double x, double cost) {
    if (std::abs(x - 1) < 1e-4) return;
    if (printed) b.add(id, text, cost, {{R::flops_per_token, x}});
    b.add(id, printed ? "FLOP/s are made with another count than printed: " + text : text,
          cost + (printed ? 1.5 : 0),
          {{R::flops_rate, x}, {R::flops_rate_of_batch, x}, {R::mfu, x}, {R::mfu_of_batch, x}});
  };
  std::string base = e.record.format.convention;
  if (!counted_flops(e, base)) base = "exact";
  for (const Miscount& miss : miscounts(e, base)) candidate(miss.id, miss.text, miss.factor, 2.5);
  // Where none is stated, every convention is allowed already.
  const bool any = e.record.format.convention.empty() && !printed && !e.of(Setting::flops_per_token);
  if (const auto own = counted_flops(e, base); own && !any)
    for (const CountedFlops& other : counted)
      if (other.convention != base)
        candidate("convention_other", "FLOPs are counted by the convention " + other.convention,
                  other.flops.middle() / own->middle(), 2.7);
  if (!e.model) {
    if (e.record[Setting::parameters_nonembedding])
      b.add("embedding_counted", "\"without embedding\" counts the embedding", 2.5,
            {{R::parameters_nonembedding, 1.2}});
    return;
  }
  const double total = parameter_count(*e.model).to_double();
  const double table = static_cast<double>(e.model->vocab) * static_cast<double>(e.model->width);
  const auto& printed_count = e.record[Setting::parameters];
  const double all = usable(printed_count) ? printed_count->value : total;
  b.add("embedding_counted", "\"without embedding\" counts the embedding", 2.5,
        {{R::parameters_nonembedding, all / (all - table)}});
  b.add("embedding_not_counted", "the embedding is left out", 2.5,
        {{R::parameters, (total - table) / total}});
  b.add("head_counted_twice", "a table of embeddings is counted once more", 3,
        {{R::parameters, (total + table) / total}});
  b.add("embeddings_not_counted", "embedding and head are left out", 3,
        {{R::parameters, (total - 2 * table) / total}});
  const double gains = static_cast<double>(e.model->layers) * static_cast<double>(e.model->width);
  b.add("gains_not_counted", "one norm gain per layer is not counted, or not there", 2.5,
        {{R::parameters, (total - gains) / total}});
  b.add("gains_not_counted", "no norm gain is counted, or there is none", 3,
        {{R::parameters, (total - 2 * gains - static_cast<double>(e.model->width)) / total}});
  for (const double u : {1.048576, 1 / 1.048576})
    b.add("parameters_unit", "M is 2^20 in one place, 10^6 in the other", 3.4, {{R::parameters, u}});
}

void add_devices(Builder& b, const Evidence& e) {
  b.add("device_memory_unit", "GiB is printed as GB", 2, {{R::device_memory, 1e9 / 1073741824.0}});
  b.add("device_memory_unit", "GB is printed as GiB", 2, {{R::device_memory, 1073741824.0 / 1e9}});
  if (e.gpu.gpu && e.gpu.gpu->memory)
    for (const Gpu& other : gpus())
      if (other.memory && std::abs(other.memory->value / e.gpu.gpu->memory->value - 1) > 0.12)
        b.add("device_other", "the memory is that of another GPU: " + other.name, 3,
              {{R::device_memory, other.memory->value / e.gpu.gpu->memory->value}});
  const double gpus = e.gpus.value_or(1);
  if (gpus > 1) {
    b.add("device_memory_of_all", "the memory is that of all GPUs", 3, {{R::device_memory, gpus}});
    b.add("expected_rate_of_one", "the expected rate is that of one GPU", 3, {{R::expected_rate, 1 / gpus}});
    b.add("expected_rate_of_all", "the expected rate is that of all GPUs, the peak that of one", 3,
          {{R::expected_rate, gpus}});
  }
  b.add("expected_rate_at_peak", "the expected rate is at 100 % MFU", 3, {{R::expected_rate, 2}});
}

}  // namespace

Interval median_ratio(const Comparison& comparison) {
  std::vector<double> low, high;
  for (const Sample& sample : comparison.samples) {
    low.push_back(sample.ratio.low);
    high.push_back(sample.ratio.high);
  }
  const auto middle = static_cast<std::ptrdiff_t>(low.size() / 2);
  std::nth_element(low.begin(), low.begin() + middle, low.end());
  std::nth_element(high.begin(), high.begin() + middle, high.end());
  return {std::min(low[static_cast<std::size_t>(middle)], high[static_cast<std::size_t>(middle)]),
          high[static_cast<std::size_t>(middle)]};
}

std::vector<Change> changes(const Evidence& e, const Comparisons& comparisons,
                            const Interpretation& reading) {
  Builder b(e, comparisons);
  add_scopes(b, e, reading);
  add_utilisation(b, e, reading);
  add_peaks(b, e);
  add_units(b);
  add_passes(b, e);
  add_counts(b, e);
  add_devices(b, e);
  return b.finish();
}

namespace {

/// Data-parallel ranks times the axes of model parallelism, as stated; 0 where they are not stated.
double ranks_product(const Evidence& e) {
  if (!usable(e.record[Setting::data_parallel])) return 0;
  double out = e.record[Setting::data_parallel]->value;
  for (const Setting axis : {Setting::tensor_parallel, Setting::pipeline_parallel, Setting::context_parallel})
    if (usable(e.record[axis])) out *= e.record[axis]->value;
  return out;
}

}  // namespace

std::vector<Change> solved(const Evidence& e, const Comparisons& comparisons, const Factors& factors,
                           Relation relation, Interval residual) {
  Builder b(e, comparisons);
  // The one whole number n >= 1 with n / of in the residual; 0: none, or too many to tell.
  const auto whole = [&](double of) {
    const double low = residual.low * of, high = residual.high * of, n = std::round((low + high) / 2);
    const bool one = n >= 1 && n < 1e12 && low * (1 - 1e-9) <= n && n <= high * (1 + 1e-9) && high - low < 1;
    return one && n != of ? n : 0;
  };
  const auto text = [](double n) { return shown(n, Unit::none); };
  const bool product = e.tokens_basis != "as printed";
  const double ranks = e.ranks.value_or(1), gpus = e.gpus.value_or(1);
  const bool of_batch = relation == R::rate_time || relation == R::rate_wall_clock ||
                        relation == R::flops_rate_of_batch || relation == R::mfu_of_batch;
  if (of_batch && e.accumulation && e.accumulation->low == e.accumulation->high) {
    const double a = e.accumulation->low;
    if (const double k = whole(a); k > 0 && (k < a || k == a * ranks) && relation != R::rate_wall_clock) {
      const bool divided = k * ranks == a && ranks > 1, multiplied = k == a * ranks && ranks > 1;
      Change& change = b.add(k == 1       ? "accumulation_not_performed"
                             : divided    ? "accumulation_divided"
                             : multiplied ? "accumulation_multiplied"
                                          : "accumulation_performed",
                             "accumulation " + text(k) + " was performed, not " + text(a) +
                                 (divided      ? " (divided by the ranks once more)"
                                  : multiplied ? " (times the ranks)"
                                               : ""),
                             k == 1 || divided || multiplied ? 3 : 3.5,
                             {{R::rate_time, k / a},
                              {R::rate_wall_clock, a / k},
                              {R::flops_rate_of_batch, k / a},
                              {R::mfu_of_batch, k / a}});
      change.batch = k / a;
      change.of_printer = false;
    }
  }
  if (relation == R::sequences || relation == R::tokens_per_step) {
    if (e.accumulation && e.accumulation->low == e.accumulation->high && relation == R::sequences)
      if (const double k = whole(e.accumulation->low); k > 0)
        b.add(
             "sequences_of_other_accumulation",
             "sequences per step are those of accumulation " + text(k) + ", not " + text(e.accumulation->low),
             3.6, {{R::sequences, k / e.accumulation->low}})
            .of_printer = false;
    if (e.sequence_length && relation == R::tokens_per_step)
      if (const double t = whole(e.sequence_length->low); t > 0)
        b.add("sequence_length_other",
              "sequences are of " + text(t) + " tokens, not " + text(e.sequence_length->low), 3,
              {{R::tokens_per_step, t / e.sequence_length->low},
               {R::flops_per_token, flops_at(e, t)},
               {R::rate_time, product ? t / e.sequence_length->low : 1}})
            .of_printer = false;
  }
  if (relation == R::sequences || relation == R::ranks || relation == R::peak ||
      (relation == R::tokens_per_step && !e.record[Setting::sequences]) ||
      (product && relation == R::rate_time))
    // The printed number over the product of the axes is by how much it is too large: the axes are what ran.
    if (const double g = relation == R::ranks ? ranks_product(e) : whole(gpus);
        g > 0 && e.gpus && g != gpus && g / gpus <= 64 && gpus / g <= 64) {
      const double x = g / gpus;
      const bool axes = relation == R::ranks;
      const bool by_product = e.tokens_basis == "micro x accumulation x ranks x T";
      Change& change = b.add("gpus_other", text(g) + " GPUs ran, not " + text(gpus), 3.4,
                             {{R::sequences, axes ? 1 : x},
                              {R::ranks, axes ? 1 / x : x},
                              {R::peak, x},
                              {R::tokens_per_step, axes || e.record[Setting::sequences] ? 1 : x},
                              {R::rate_time, by_product && !axes ? x : 1},
                              {R::tokens_total, by_product && !axes ? x : 1},
                              {R::mfu, e.printed_peak() ? 1 : 1 / x},
                              {R::mfu_of_flops_rate, e.printed_peak() ? 1 : 1 / x}});
      change.gpus = x;
      change.batch = by_product && !axes ? x : 1;
      change.of_printer = false;
    }
  // Where the batch is made of the length, a length that is off by a power of two shows as well.
  if (product && relation == R::rate_time && e.sequence_length)
    if (const double length = e.sequence_length->low, t = whole(length);
        t > 0 && t != length && std::exp2(std::round(std::log2(t / length))) == t / length)
      b.add("sequence_length_other", "sequences are of " + text(t) + " tokens, not " + text(length), 3.6,
            {{R::rate_time, t / length}, {R::flops_per_token, flops_at(e, t)}})
          .of_printer = false;
  // A rate that is off alone shows in every relation that it enters: together they say by how much.
  Interval together = residual;
  if (relation == R::rate_time)
    for (const R inverse : {R::flops_rate, R::mfu})
      if (b.has(inverse)) {
        const Interval ratio = median_ratio(at(comparisons, inverse));
        const Interval here = {factors[inverse] / ratio.high, factors[inverse] / ratio.low};
        if (here.meets(together))
          together = {std::max(here.low, together.low), std::min(here.high, together.high)};
      }
  const double x = together.middle();
  if (relation == R::wall_clock && x > 0) {
    b.add("time_leaves_out", "step times leave out " + percent(std::max(0.0, 1 - x), 0) + " of the time", 3.5,
          {{R::wall_clock, x}})
        .time = 1 / x;
    Change& change = b.add("time_leaves_out",
                           "step times, and the rates made of them, leave out " +
                               percent(std::max(0.0, 1 - x), 0) + " of the time",
                           3.6, {{R::wall_clock, x}, {R::rate_time, 1}});
    change.time = 1 / x;
    change.rate = x;
  }
  if (relation == R::rate_time && ((x > 1.002 && x < 1.7) || (x > 0.55 && x < 0.998))) {
    const std::string share = percent(std::abs(x - 1), 1);
    b.add("rate_counts_padding",
          x > 1 ? "tokens/s counts " + share + " more tokens than the batch has (padding)"
                : "tokens/s leaves out " + share + " of the batch (padding, masked tokens)",
          4.5, {{R::rate_time, x}, {R::flops_rate, 1 / x}, {R::mfu, 1 / x}})
        .rate = 1 / x;
    b.add("rate_counts_padding",
          x > 1 ? "tokens/s, and what is made of it, counts " + share +
                      " more tokens than the batch has (padding)"
                : "tokens/s, and what is made of it, leaves out " + share +
                      " of the batch (padding, masked tokens)",
          5, {{R::rate_time, x}})
        .rate = 1 / x;
  }
  return b.finish();
}

Change unknown(Relation relation) {
  Change change;
  change.id = "unknown";
  change.text = "no reading is known that explains it";
  change.cost = 8;
  change.factors[relation] = 0;  // stands for whatever it takes
  return change;
}

}  // namespace assay::spec::audit
