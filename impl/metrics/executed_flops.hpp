#pragma once
// The matmul FLOPs that a step really ran, multiply-adds as 2, counted at run time. ATen's GEMMs and fused
// attention are counted at dispatch, from the shapes of their inputs; calls of vendor libraries and our own
// loops report theirs. The expected count: spec/flops/executed.md.
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "spec/flops/executed.hpp"

namespace assay::impl::metrics {

/// Names the component that this thread's GEMMs belong to while it lives; scopes nest. The pass is forward
/// unless one says otherwise, and inside a recompute scope it stays recompute.
class FlopScope {
 public:
  explicit FlopScope(spec::FlopComponent component);
  explicit FlopScope(spec::ExecutedPass pass);
  FlopScope(spec::FlopComponent component, spec::ExecutedPass pass);
  FlopScope(const FlopScope&) = delete;
  FlopScope& operator=(const FlopScope&) = delete;
  ~FlopScope();
  /// GEMMs from here on are for `component`.
  void enter(spec::FlopComponent component);

 private:
  const std::optional<spec::FlopComponent> outer_component_;
  const spec::ExecutedPass outer_pass_;
};

/// GEMMs of this thread multiply FP8 matrices while it lives.
class Fp8Scope {
 public:
  Fp8Scope();
  Fp8Scope(const Fp8Scope&) = delete;
  Fp8Scope& operator=(const Fp8Scope&) = delete;
  ~Fp8Scope();

 private:
  const bool outer_;
};

/// The component (nothing where no scope names one) and the pass of the current scopes.
std::optional<spec::FlopComponent> current_component();
spec::ExecutedPass current_pass();

/// Counts a GEMM [rows, inner] times [inner, columns] outside of ATen in the current scope. Cheap; no effect
/// without a FlopCounter.
void report_gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner);
/// `flops` done for `component`, in the scope's pass. [flop]
void report_flops(spec::FlopComponent component, Count flops);
/// The same for `pairs` visible pairs of tokens at `each` FLOPs a pair; their number changes with the
/// documents of a micro-batch.
void report_pairs(spec::FlopComponent component, Count each, std::int64_t pairs);

/// FLOPs that ran, by component and pass. [flop]
struct MeasuredFlops {
  using Table = std::array<std::array<Count, spec::executed_passes>, spec::flop_components>;
  Table counts;
  Table fp8;        ///< of `counts`: of FP8 matrices
  Table of_pair;    ///< what one pair of report_pairs adds to `counts`
  Count elsewhere;  ///< outside every scope that names a component

  MeasuredFlops& operator+=(const MeasuredFlops& other);
  const Count& at(spec::FlopComponent component, spec::ExecutedPass pass) const {
    return counts[static_cast<std::size_t>(component)][static_cast<std::size_t>(pass)];
  }
  Count total() const;
  /// The FLOPs of the same work on another micro-batch, whose documents have `to` visible pairs instead of
  /// `from`.
  MeasuredFlops with_pairs(std::int64_t from, std::int64_t to) const;
};

/// Counts the FLOPs of this thread while it lives. A call that throws is not counted: a fused kernel that
/// refuses a shape ran nothing. Of nested counters only the innermost counts, so that work captured for
/// replay is not counted as run.
class FlopCounter {
 public:
  FlopCounter();
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;
  ~FlopCounter();

  const MeasuredFlops& measured() const { return measured_; }
  /// Every ATen op that ran outside of a counted op, such as "aten::mm", counted or not.
  const std::set<std::string>& seen() const { return seen_; }

 private:
  friend struct FlopObserver;
  MeasuredFlops measured_;
  std::set<std::string> seen_;
  std::uint64_t callback_;
  FlopCounter* const outer_;
};

/// Adds the FLOPs of a replay, which makes no calls, to the FlopCounter of this thread, if there is one.
void report(const MeasuredFlops& ran);

/// The ops of ATen that FlopCounter counts, "aten::mm".
const std::set<std::string>& counted_ops();

}  // namespace assay::impl::metrics
