#include "impl/params/gradient_reduction.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace assay::impl {

namespace {
constexpr std::size_t most_copies = 2;
}

GradientReduction::GradientReduction(Communicator& communicator, at::ScalarType wire,
                                     const at::Tensor& gradients, std::int64_t largest)
    : communicator_(communicator), wire_(wire) {
  if (communicator.size() > 1 && gradients.scalar_type() != wire)
    rounded_ = at::empty({static_cast<std::int64_t>(most_copies), largest}, gradients.options().dtype(wire));
}

at::Tensor GradientReduction::part_of(const at::Tensor& whole) const {
  const std::int64_t shard = whole.numel() / communicator_.size();
  return whole.narrow(0, communicator_.rank() * shard, shard);
}

at::Tensor GradientReduction::on_the_wire(const at::Tensor& tensor) {
  if (tensor.scalar_type() == wire_) return tensor;
  // They take turns: the place is that of the last one but one.
  if (pending_.size() >= most_copies) finish(pending_[pending_.size() - most_copies].number);
  at::Tensor place = rounded_[(last_ + 1) % static_cast<Number>(most_copies)].narrow(0, 0, tensor.numel());
  return place.copy_(tensor);
}

GradientReduction::Number GradientReduction::push(Communicator::Ticket ticket,
                                                  std::function<void()> complete) {
  pending_.push_back({++last_, ticket, std::move(complete)});
  return last_;
}

GradientReduction::Number GradientReduction::begin_all_reduce(const at::Tensor& gradient, Then then) {
  if (gradient.numel() == 0) return 0;
  const at::Tensor wire = on_the_wire(gradient);
  return push(communicator_.begin_all_reduce_sum(wire), [=, then = std::move(then)] {
    if (!wire.is_same(gradient)) at::Tensor(gradient).copy_(wire);
    if (then) then();
  });
}

GradientReduction::Number GradientReduction::begin_reduce_scatter(const at::Tensor& whole, Then then) {
  if (whole.numel() == 0) return 0;
  const at::Tensor wire = on_the_wire(whole), sum = part_of(wire), mine = part_of(whole);
  return push(communicator_.begin_reduce_scatter_sum(wire, sum), [=, then = std::move(then)] {
    if (!wire.is_same(whole)) at::Tensor(mine).copy_(sum);
    if (then) then();
  });
}

GradientReduction::Number GradientReduction::begin_reduce_scatter_add(const at::Tensor& whole,
                                                                      const at::Tensor& total, Then then) {
  if (whole.numel() == 0) return 0;
  const at::Tensor wire = on_the_wire(whole), sum = part_of(wire);
  return push(communicator_.begin_reduce_scatter_sum(wire, sum), [=, then = std::move(then)] {
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
