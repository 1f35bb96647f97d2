#pragma once
// When the gradients of weights are computed. Nothing of backward waits for them, so the template says only
// what each is computed from, and hands that to the op set as a closure, which owns the operands. It runs
// behind the next collective that begins, and hides it; where none begins soon, at once.
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "spec/model/model_spec.hpp"
#include "spec/step/site.hpp"

namespace assay::spec::step {

/// The closures of one backward pass that wait for a collective, in their order.
class Deferred {
 public:
  void add(std::function<void()> work) { queue_.push_back(std::move(work)); }
  /// `ready`: what is called when a block's gradients are complete, behind the block's closures. It
  /// waits for one block at a time: a layout that shards gradients has memory for those of two blocks, so
  /// a block's have to be on their way before the block after the next writes there.
  void add_ready(std::function<void()> ready) {
    if (ready_waits_) run();
    ready_waits_ = true;
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
  bool ready_waits_ = false;
  std::vector<std::function<void()>> queue_;
};

/// Whether collectives begin while a block, from 1, is in backward: of its tensor ranks, or of its experts'.
inline bool collectives_in(const ModelSpec& model, std::int64_t block, std::int64_t tensor_ranks,
                           std::int64_t expert_ranks) {
  const bool sparse = block >= 1 && block <= model.layers && model.sparse(block - 1);
  return tensor_ranks > 1 || (expert_ranks > 1 && sparse);
}

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
