#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/permute/permute.hpp"

namespace assay::impl::permute::cpu {

Order order(const at::Tensor& experts, std::int64_t count) {
  const std::int64_t slots = experts.numel();
  Order out{.slots = at::empty({slots}, experts.options()),
            .rows = at::empty_like(experts),
            .ends = at::empty({count}, experts.options())};
  const auto* expert = experts.const_data_ptr<std::int32_t>();
  auto *slot_of = out.slots.data_ptr<std::int32_t>(), *row_of = out.rows.data_ptr<std::int32_t>(),
       *ends = out.ends.data_ptr<std::int32_t>();
  std::vector<std::int32_t> next(static_cast<std::size_t>(count) + 1, 0);
  for (std::int64_t s = 0; s < slots; ++s)
    if (expert[s] >= 0) ++next[static_cast<std::size_t>(expert[s]) + 1];
  for (std::int64_t e = 0; e < count; ++e)
    ends[e] = next[static_cast<std::size_t>(e) + 1] += next[static_cast<std::size_t>(e)];
  for (std::int64_t s = 0; s < slots; ++s) {
    row_of[s] = expert[s] < 0 ? -1 : next[static_cast<std::size_t>(expert[s])]++;
    if (row_of[s] >= 0) slot_of[row_of[s]] = static_cast<std::int32_t>(s);
  }
  return out;
}

Order limited(const Order& all, const at::Tensor& experts, const at::Tensor& choices, std::int64_t most) {
  const std::int64_t slots = all.slots.numel(), G = choices.size(0), X = choices.size(1),
                     of_group = slots / G;
  Order out{at::empty_like(all.slots), at::empty_like(all.rows), at::empty_like(all.ends)};
  const auto* expert = experts.const_data_ptr<std::int32_t>();
  const auto* slot_in = all.slots.const_data_ptr<std::int32_t>();
  auto *slot_of = out.slots.data_ptr<std::int32_t>(), *row_of = out.rows.data_ptr<std::int32_t>(),
       *ends = out.ends.data_ptr<std::int32_t>();
  std::vector<std::int32_t> taken(static_cast<std::size_t>(G * X), 0), dropped;
  std::fill_n(ends, X, 0);
  std::int32_t row = 0;
  for (std::int64_t r = 0; r < slots; ++r) {
    const std::int32_t slot = slot_in[r], e = expert[slot];
    if (taken[static_cast<std::size_t>(slot / of_group * X + e)]++ < most) {
      slot_of[row] = slot;
      row_of[slot] = row++;
      ++ends[e];
    } else {
      dropped.push_back(slot);
      row_of[slot] = -1;
    }
  }
  std::partial_sum(ends, ends + X, ends);
  std::copy(dropped.begin(), dropped.end(), slot_of + row);
  return out;
}

at::Tensor gather(const at::Tensor& x, const Order& order) {
  const std::int64_t D = x.size(1), A = order.rows.size(1);
  at::Tensor out = at::empty({order.slots.size(0), D}, x.options());
  const std::int64_t rows = order.ends[-1].item<std::int32_t>();
  const auto* slots = order.slots.const_data_ptr<std::int32_t>();
  impl::cpu::with_element(x.scalar_type(), "permute", [&](auto element) {
    using T = decltype(element);
    const T* from = x.const_data_ptr<T>();
    T* to = out.data_ptr<T>();
    impl::cpu::for_rows(rows, D,
                        [&](std::int64_t row) { std::copy_n(from + slots[row] / A * D, D, to + row * D); });
  });
  return out;
}

at::Tensor combine(const at::Tensor& base, const at::Tensor& rows, const Order& order) {
  const std::int64_t N = order.rows.size(0), D = rows.size(1), A = order.rows.size(1);
  at::Tensor out = at::empty({N, D}, rows.options());
  const auto* row_of = order.rows.const_data_ptr<std::int32_t>();
  impl::cpu::with_element(rows.scalar_type(), "combine", [&](auto element) {
    using T = decltype(element);
    using M = impl::cpu::Math<T>;
    const T *bases = base.defined() ? base.const_data_ptr<T>() : nullptr, *from = rows.const_data_ptr<T>();
    T* to = out.data_ptr<T>();
    impl::cpu::for_rows(N, (A + 1) * D, [&](std::int64_t n) {
      for (std::int64_t d = 0; d < D; ++d) {
        M sum = bases ? M(bases[n * D + d]) : M(0);
        for (std::int64_t a = 0; a < A; ++a)
          if (const std::int64_t row = row_of[n * A + a]; row >= 0) sum += M(from[row * D + d]);
        to[n * D + d] = T(sum);
      }
    });
  });
  return out;
}

}  // namespace assay::impl::permute::cpu
