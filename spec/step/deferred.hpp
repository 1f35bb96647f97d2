#pragma once
// When the gradients of weights are computed. Nothing of backward waits for them, so the template says only
// what each is computed from, and hands that to the op set as a closure, which owns the operands. Where
// several ranks compute a block together, it runs behind the next collective that begins and hides it; else
// at once, in the template's order.
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "spec/step/site.hpp"

namespace assay::spec::step {

/// The closures of one backward pass, in their order. An op set has one, adds to it in `defer` and
/// `gradients_ready`, and runs it behind each collective that it begins and in `run_deferred`.
class Deferred {
 public:
  /// `waits`: whether collectives will begin that the closures can hide.
  explicit Deferred(bool waits) : waits_(waits) {}

  template <class Work>
  void add(Work work) {
    if (!waits_) return work();
    queue_.push_back(std::move(work));
  }
  /// `ready`: what is called when a block's gradients are complete, behind the block's closures. Of one
  /// block alone it may wait: a layout that shards gradients has buffers for two blocks, and the next but
  /// one takes this block's.
  template <class Work>
  void add_ready(Work ready) {
    if (ready_waits_) run();
    ready_waits_ = waits_;
    add([this, ready = std::move(ready)] {
      ready();
      ready_waits_ = false;
    });
  }
  bool empty() const { return queue_.empty(); }
  /// Runs all of them; each frees its operands when it has run. One that begins a collective runs only what
  /// was added since.
  void run() {
    for (std::function<void()>& work : std::exchange(queue_, {})) std::exchange(work, nullptr)();
  }

 private:
  const bool waits_;
  bool ready_waits_ = false;
  std::vector<std::function<void()>> queue_;
};

/// Defers the gradient of the weight of `site`: of the upstream gradient dy, and of forward's x, which may
/// still be on its way.
template <class Ops, class X>
void defer_weight_gradient(Ops& ops, const Site& site, typename Ops::Operand dy, X x,
                           const typename Ops::Gradient& into) {
  ops.defer([&ops, &site, dy = std::move(dy), x = std::move(x), into]() mutable {
    if constexpr (std::is_same_v<X, typename Ops::Operand>) {
      ops.linear_weight_gradient(site, dy, x, into);
    } else {
      const typename Ops::Operand there = ops.wait(std::move(x));
      ops.linear_weight_gradient(site, dy, there, into);
    }
  });
}

}  // namespace assay::spec::step
