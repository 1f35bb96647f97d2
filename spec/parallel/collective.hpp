#pragma once
// What ranks do together, and what is known of each: one table for the step on paper, the volume of a step,
// communicators, traces, the watch of ranks and benchmarks.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace assay::spec {

enum class Collective {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  exchange,  ///< messages between pairs of ranks, both ways
  send,
  receive,
  texts,  ///< of every rank, to every rank
  barrier
};

/// Which bytes a collective is counted with: the tensor that a rank gives (in an all-to-all with what it
/// sends to itself), the tensor that it gets, all of its messages, or its text.
enum class Counted { nothing, input, output, messages, text };

struct CollectiveFacts {
  Collective collective;
  std::string_view name;   ///< in records, traces and JSON
  std::string_view words;  ///< in messages
  Counted counted;
  bool reduces;
  /// Every one of n ranks sends, at least and in a ring, ring (n - 1) / n of the bytes that count
  /// (spec/metrics/bus_bandwidth.md); 0: what it sends does not follow from their number.
  int ring;
};

/// In the order of Collective.
inline constexpr std::array collective_table = {
    CollectiveFacts{Collective::all_reduce, "all_reduce", "all-reduce", Counted::output, true, 2},
    CollectiveFacts{Collective::reduce_scatter, "reduce_scatter", "reduce-scatter", Counted::input, true, 1},
    CollectiveFacts{Collective::all_gather, "all_gather", "all-gather", Counted::output, false, 1},
    CollectiveFacts{Collective::all_to_all, "all_to_all", "all-to-all", Counted::input, false, 1},
    CollectiveFacts{Collective::exchange, "exchange", "exchange", Counted::messages, false, 0},
    CollectiveFacts{Collective::send, "send", "send", Counted::messages, false, 0},
    CollectiveFacts{Collective::receive, "receive", "receive", Counted::messages, false, 0},
    CollectiveFacts{Collective::texts, "words", "gather of words", Counted::text, false, 0},
    CollectiveFacts{Collective::barrier, "barrier", "barrier", Counted::nothing, false, 0},
};
inline constexpr std::size_t collectives = collective_table.size();
static_assert(std::ranges::is_sorted(collective_table, {}, &CollectiveFacts::collective) &&
              collectives == static_cast<std::size_t>(Collective::barrier) + 1);

/// Those that have a bus bandwidth.
inline constexpr auto ring_collectives = [] {
  std::array<Collective, std::ranges::count_if(collective_table, &CollectiveFacts::ring)> found{};
  auto next = found.begin();
  for (const CollectiveFacts& each : collective_table)
    if (each.ring > 0) *next++ = each.collective;
  return found;
}();

constexpr const CollectiveFacts& facts_of(Collective collective) {
  return collective_table[static_cast<std::size_t>(collective)];
}
constexpr std::string_view to_string(Collective collective) { return facts_of(collective).name; }

}  // namespace assay::spec
