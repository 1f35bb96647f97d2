#include <cmath>

#include "spec/audit/change_builder.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

std::string_view known_of_trainer(const Evidence& e) {
  return e.ranks.value_or(1) > 1 ? e.trainer.usual_slip : std::string_view();
}

namespace {

using R = Relation;

void add_scopes(ChangeBuilder& b, const Evidence& e, const Interpretation& reading) {
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
          {{R::rate_time, 1 / w}, {R::gpu_rate, w}, {R::rate_wall_clock, w}})
        .rate = w;
    b.add(id, text, 2.2,
          {{R::rate_time, 1 / w}, {R::gpu_rate, w}, {R::rate_wall_clock, w}, {R::flops_rate, w}, {R::mfu, w}})
        .rate = w;
    // One GPU's beside it may be the same tokens over the GPUs.
    if (!b.has(R::gpu_rate)) continue;
    b.add(id, text + ", and what is printed of one GPU and of FLOP/s is made of it", 2.1,
          {{R::rate_time, 1 / w}, {R::rate_wall_clock, w}})
        .rate = w;
    b.add(id, text + ", and what is printed of one GPU is made of it", 2.3,
          {{R::rate_time, 1 / w}, {R::rate_wall_clock, w}, {R::flops_rate, w}, {R::mfu, w}})
        .rate = w;
  }
  // Beside that of all stands one GPU's.
  if (const double gpus = e.gpus.value_or(1); gpus > 1)
    b.add("gpu_rate_of_all", "tokens/s of one GPU is that of all", 2.1, {{R::gpu_rate, gpus}});
}

/// A rate of all GPUs that is multiplied, or divided, once more: by the GPUs that share a model and with it
/// its tokens (tensor, pipeline), by the ranks, by the GPUs.
void add_repeated_scopes(ChangeBuilder& b, const Evidence& e, const Interpretation& reading) {
  if (reading.rate != Whose::all) return;
  const double gpus = e.gpus.value_or(1), ranks = e.ranks.value_or(gpus);
  const bool throughout = b.has(R::mfu) || b.has(R::flops_rate);
  const auto repeated = [&](const char* id, const std::string& text, double x, double cost) {
    if (x == 1) return;
    b.add(id, text + (throughout ? ", and the MFU is made of it" : ""), cost,
          {{R::rate_time, x}, {R::gpu_rate, 1 / x}, {R::rate_wall_clock, 1 / x}})
        .rate = 1 / x;
    b.add(id, text, cost + 0.2,
          {{R::rate_time, x},
           {R::gpu_rate, 1 / x},
           {R::rate_wall_clock, 1 / x},
           {R::flops_rate, 1 / x},
           {R::mfu, 1 / x}})
        .rate = 1 / x;
  };
  repeated("rate_times_model_ranks",
           "tokens/s counts tokens on every GPU that shares them (tensor, pipeline)", gpus / ranks, 3.7);
  repeated("rate_over_model_ranks", "tokens/s is divided by the GPUs that share tokens (tensor, pipeline)",
           ranks / gpus, 3.7);
  repeated("rate_times_ranks", "tokens/s of all ranks is multiplied by the ranks once more", ranks, 3.9);
  repeated("rate_times_gpus", "tokens/s of all GPUs is multiplied by the GPUs once more", gpus, 3.9);
}

void add_utilisation(ChangeBuilder& b, const Evidence& e, const Interpretation& reading) {
  const double gpus = e.gpus.value_or(1), ranks = e.ranks.value_or(gpus);
  std::vector<double> counts = {gpus};
  if (ranks != gpus) counts.push_back(ranks);
  for (const double w : counts) {
    if (w <= 1) continue;
    const std::string one = w == gpus ? "one GPU's" : "one rank's";
    // Where no MFU is printed, the FLOP/s alone are reported.
    const bool shares = b.has(R::mfu) || b.has(R::mfu_of_flops_rate) || b.has(R::mfu_of_batch);
    const std::string one_over_all = shares ? "MFU divides " + one + " FLOP/s by the peak of all GPUs"
                                            : "the FLOP/s are " + one + " divided by the GPUs";
    const std::string all_over_one = shares ? "MFU divides the FLOP/s of all GPUs by the peak of one"
                                            : "the FLOP/s are those of all GPUs, not " + one;
    // Of a rank of several GPUs it is no likelier than a sparse peak, by which half as much is made as well.
    const double of_ranks = w == gpus ? 0 : 0.7;
    b.add("mfu_one_over_all", one_over_all, 2 + of_ranks,
          {{R::mfu, 1 / w}, {R::mfu_of_flops_rate, 1 / w}, {R::mfu_of_batch, 1 / w}});
    b.add(
        "mfu_one_over_all", one_over_all, 2.3 + of_ranks,
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
  if (ranks > 1 && gpus > ranks) {
    const double w = gpus / ranks;
    const std::string share =
        "one rank's, not divided by the " + shown(w, Unit::none) + " GPUs that share its model";
    b.add("flops_of_one_rank", "the FLOP/s are " + share, 2.05,
          {{R::flops_rate, w}, {R::flops_rate_of_batch, w}, {R::mfu, w}, {R::mfu_of_batch, w}});
    b.add("flops_of_one_rank", "MFU divides FLOP/s that are " + share + ", by the peak of one", 2.15,
          {{R::mfu, w}, {R::mfu_of_flops_rate, w}, {R::mfu_of_batch, w}});
  }
  b.add("mfu_in_percent", "MFU is in percent, read as a share", 3,
        {{R::mfu, 100}, {R::mfu_of_flops_rate, 100}, {R::mfu_of_batch, 100}});
  b.add("mfu_as_share", "MFU is a share of 1, read as percent", 3,
        {{R::mfu, 0.01}, {R::mfu_of_flops_rate, 0.01}, {R::mfu_of_batch, 0.01}});
}

void add_units(ChangeBuilder& b) {
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
    // A clock, which also runs through pauses, tells no 1,024 from 1,000.
    const bool far_off = std::abs(u - 1) > 0.5;
    if (far_off || b.has(R::rate_time) || b.has(R::flops_rate) || b.has(R::mfu))
      b.add("rate_unit", std::string("unit of tokens/s: ") + text, cost,
            {{R::rate_time, u}, {R::rate_wall_clock, 1 / u}, {R::flops_rate, 1 / u}, {R::mfu, 1 / u}})
          .rate = 1 / u;
    if (far_off || b.has(R::rate_time))
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
          {{R::rate_time, u},
           {R::sequences_rate, u},
           {R::wall_clock, u},
           {R::flops_rate_of_batch, u},
           {R::mfu_of_batch, u}})
        .time = 1 / u;
}

}  // namespace

std::vector<Change> changes(const Evidence& e, const Comparisons& comparisons,
                            const Interpretation& reading) {
  ChangeBuilder b(e, comparisons);
  add_scopes(b, e, reading);
  add_repeated_scopes(b, e, reading);
  add_utilisation(b, e, reading);
  add_peaks(b, e, comparisons, reading);
  add_units(b);
  add_passes(b, e, reading);
  add_counts(b, e);
  add_other_dimension(b, e);
  add_count_or_shape(b, e, comparisons, reading);
  add_shapes(b, e);
  add_devices(b, e);
  return b.finish();
}

}  // namespace assay::spec::audit
