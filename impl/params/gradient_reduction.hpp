#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// Sums gradients over ranks in the dtype of the wire. Gradients of that dtype are reduced in place; others
/// through a rounded copy, of which two exist at a time.
class GradientReduction {
 public:
  GradientReduction(Communicator& communicator, at::ScalarType wire)
      : communicator_(communicator), wire_(wire) {}

  /// From here on the GPUs' copy engines do the reduce-scatters (Communicator::scatter_by_copies). Each whole
  /// lies in `gradients` and has at most `largest` elements. Allocates the staging memory for the other
  /// ranks' parts of one shard, and the two rounded copies. Collective, before the first reduce-scatter.
  void scatter_by_copies(const at::Tensor& gradients, std::int64_t largest);

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
    at::Tensor staging;  ///< alive while in flight; undefined where the gradient itself is
    std::function<void()> complete;
  };
  at::Tensor part_of(const at::Tensor& whole) const;
  /// `tensor` in the dtype of the wire, a copy where that is another.
  at::Tensor on_the_wire(const at::Tensor& tensor);
  Number push(Communicator::Ticket ticket, at::Tensor staging, std::function<void()> complete);

  Communicator& communicator_;
  at::ScalarType wire_;
  Number last_ = 0;
  std::deque<Pending> pending_;
  at::Tensor copied_from_;         ///< of reduce_scatters by copies: what the other ranks have mapped
  at::Tensor rounded_;             ///< [2, largest], of those: the rounded copies
  std::shared_ptr<void> mapping_;  ///< ends before what it maps
};

}  // namespace assay::impl
