#pragma once
// What the files of this folder draw a run with: random numbers, the GPUs' data sheets, and the parts of a
// draw that have a file of their own.
#include <cstdint>
#include <initializer_list>

#include "spec/random/philox.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::tests::simulated {

/// Draws of one run, in the order in which they are asked for.
class Draw {
 public:
  Draw(std::uint64_t seed, LogFormat format) : Draw(seed, 1000 + static_cast<std::uint32_t>(format)) {}
  Draw(std::uint64_t seed, std::uint32_t index) : stream_(seed, spec::random::Site::test, index) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(stream_.below(at_++, static_cast<std::uint64_t>(high - low + 1)));
  }
  double real(double low, double high) { return low + (high - low) * stream_.uniform(at_++); }
  double normal() { return stream_.normal(at_++); }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

 private:
  spec::random::Stream stream_;
  std::uint64_t at_ = 0;
};

struct Gpu {
  const char* name;
  double dense, sparse, memory;
};
/// Peaks of the vendors' data sheets, bf16; memory as the driver reports it.
constexpr Gpu a100 = {"NVIDIA A100-SXM4-80GB", 312e12, 624e12, 85'097'971'712.0};
constexpr Gpu h100 = {"NVIDIA H100 80GB HBM3", 989e12, 1979e12, 85'520'809'984.0};
constexpr Gpu h200 = {"NVIDIA H200", 989e12, 1979e12, 150'754'820'096.0};
constexpr Gpu b200 = {"NVIDIA B200", 2250e12, 4500e12, 191'505'498'112.0};

/// The schedule of a run of `steps` steps: its kind, its highest and lowest rate, its warm-up.
void draw_schedule(Draw& draw, SimulatedRun& run, std::int64_t steps);
/// Half of the runs whose trainer has other schedules run one of those. Of a stream of their own, as what
/// loss scaling skips, so that all other numbers of a seed stay what they are. Sets the rate of every step.
void draw_rarities(std::uint64_t seed, SimulatedRun& run, std::int64_t steps);

}  // namespace assay::tests::simulated
