#include "impl/params/gradient_reduction.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace assay::impl {

namespace {
constexpr std::size_t most_copies = 2;
}

at::Tensor GradientReduction::part_of(const at::Tensor& whole) const {
  const std::int64_t shard = whole.numel() / communicator_.size();
  return whole.narrow(0, communicator_.rank() * shard, shard);
}

at::Tensor GradientReduction::on_the_wire(const at::Tensor& tensor) {
  if (tensor.scalar_type() == wire_) return tensor;
  if (pending_.size() >= most_copies) finish(pending_[pending_.size() - most_copies].number);
  if (!rounded_.defined()) return tensor.to(wire_);
  // They take turns: the last one but one is finished.
  at::Tensor copy = rounded_[(last_ + 1) % static_cast<Number>(most_copies)].narrow(0, 0, tensor.numel());
  return copy.copy_(tensor);
}

void GradientReduction::scatter_by_copies(const at::Tensor& gradients, std::int64_t largest) {
  const auto options = gradients.options().dtype(wire_);
  if (gradients.scalar_type() != wire_)
    rounded_ = at::empty({static_cast<std::int64_t>(most_copies), largest}, options);
  copied_from_ = rounded_.defined() ? rounded_ : gradients;
  const std::int64_t ranks = communicator_.size();
  mapping_ = communicator_.scatter_by_copies(copied_from_, at::empty({ranks - 1, largest / ranks}, options));
}

GradientReduction::Number GradientReduction::push(Communicator::Ticket ticket, at::Tensor staging,
                                                  std::function<void()> complete) {
  pending_.push_back({++last_, ticket, std::move(staging), std::move(complete)});
  return last_;
}

GradientReduction::Number GradientReduction::begin_all_reduce(const at::Tensor& gradient, Then then) {
  const at::Tensor wire = on_the_wire(gradient);
  return push(communicator_.begin_all_reduce_sum(wire), wire, [=, then = std::move(then)] {
    if (!wire.is_same(gradient)) at::Tensor(gradient).copy_(wire);
    if (then) then();
  });
}

GradientReduction::Number GradientReduction::begin_reduce_scatter(const at::Tensor& whole, Then then) {
  const at::Tensor wire = on_the_wire(whole), sum = part_of(wire), mine = part_of(whole);
  return push(communicator_.begin_reduce_scatter_sum(wire, sum), wire, [=, then = std::move(then)] {
    if (!wire.is_same(whole)) at::Tensor(mine).copy_(sum);
    if (then) then();
  });
}

GradientReduction::Number GradientReduction::begin_reduce_scatter_add(const at::Tensor& whole,
                                                                      const at::Tensor& total, Then then) {
  const at::Tensor wire = on_the_wire(whole), sum = part_of(wire);
  return push(communicator_.begin_reduce_scatter_sum(wire, sum), wire, [=, then = std::move(then)] {
    at::Tensor(total).add_(sum);
    if (then) then();
  });
}

void GradientReduction::finish(Number number) {
  while (!pending_.empty() && pending_.front().number <= number) {
    const Pending first = std::move(pending_.front());
    pending_.pop_front();
    communicator_.wait(first.ticket);
    first.complete();
  }
}

}  // namespace assay::impl
