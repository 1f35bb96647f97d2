#pragma once
#include <cstdint>
#include <deque>
#include <functional>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// Sums gradients over ranks in the dtype of the wire. Where that is the gradients' own, they are reduced in
/// place; otherwise through rounded copies in two places, allocated here. Two copies are in flight at most:
/// the third is made after the first one is reduced. On a GPU its stream waits for that, the host does not.
/// A gradient without elements, of a block without experts, is no reduction: number 0.
class GradientReduction {
 public:
  /// `gradients`: their dtype and device. `largest`: most elements of one of them.
  GradientReduction(Communicator& communicator, at::ScalarType wire, const at::Tensor& gradients,
                    std::int64_t largest);

  using Number = std::int64_t;  ///< of a reduction, counting from 1
  using Then = std::function<void()>;

  /// gradient = sum over ranks, in place. `then` is called once it is complete.
  Number begin_all_reduce(const at::Tensor& gradient, Then then = {});
  /// This rank's part of whole = that part of the sum over ranks.
  Number begin_reduce_scatter(const at::Tensor& whole, Then then = {});
  /// total += this rank's part of the sum over ranks of whole.
  Number begin_reduce_scatter_add(const at::Tensor& whole, const at::Tensor& total, Then then = {});

  /// Completes every reduction up to this one. 0: nothing.
  void finish(Number number);
  void finish_all() { finish(last_); }

 private:
  struct Pending {
    Number number;
    Communicator::Ticket ticket;
    std::function<void()> complete;
  };
  at::Tensor part_of(const at::Tensor& whole) const;
  /// `tensor` in the dtype of the wire, a copy where that is another.
  at::Tensor on_the_wire(const at::Tensor& tensor);
  Number push(Communicator::Ticket ticket, std::function<void()> complete);

  Communicator& communicator_;
  at::ScalarType wire_;
  Number last_ = 0;
  std::deque<Pending> pending_;
  at::Tensor rounded_;  ///< [2, largest], places of the rounded copies; undefined without
};

}  // namespace assay::impl
