#include "spec/schedule/actions.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "spec/error.hpp"

namespace assay::spec {

namespace {

void check_sizes(std::int64_t accumulation, const Layout& layout) {
  const std::int64_t ranks = layout.ranks, shard_ranks = layout.shard_ranks;
  // layout_c1
  require(accumulation >= 1 && ranks >= 1 && shard_ranks >= 1 && ranks % shard_ranks == 0, "layout_c1", [&] {
    return "accumulation=" + std::to_string(accumulation) + ", ranks=" + std::to_string(ranks) +
           ", shard_ranks=" + std::to_string(shard_ranks);
  });
}

/// Whether an action belongs to one micro-batch.
bool of_micro_batch(ActionKind kind, const Layout& layout) {
  return kind == ActionKind::forward || kind == ActionKind::backward ||
         (kind == ActionKind::reduce_scatter && layout.shards_weights());
}

std::string at(std::size_t position, const std::string& what) {
  return what + " at position " + std::to_string(position);
}

/// Every micro-batch goes forward and backward once, in this order, and what it does names it.
void check_micro_batches(const std::vector<Action>& actions, std::int64_t accumulation,
                         const Layout& layout) {
  std::vector<bool> forward(static_cast<std::size_t>(accumulation)), backward(forward);
  for (std::size_t position = 0; position < actions.size(); ++position) {
    const Action& action = actions[position];
    // layout_c2
    require(of_micro_batch(action.kind, layout) ? action.micro_batch >= 0 && action.micro_batch < accumulation
                                                : action.micro_batch == -1,
            "layout_c2", [&] { return at(position, "micro-batch " + std::to_string(action.micro_batch)); });
    if (action.micro_batch < 0) continue;
    const auto m = static_cast<std::size_t>(action.micro_batch);
    if (action.kind == ActionKind::forward) {
      // layout_c3
      require(!forward[m], "layout_c3",
              [&] { return at(position, "second forward of micro-batch " + std::to_string(m)); });
      forward[m] = true;
    } else if (action.kind == ActionKind::backward) {
      // layout_c4
      require(forward[m] && !backward[m], "layout_c4", [&] {
        return at(position, (forward[m] ? "second backward of micro-batch "
                                        : "backward before forward of micro-batch ") +
                                std::to_string(m));
      });
      backward[m] = true;
    }
  }
  for (std::size_t m = 0; m < forward.size(); ++m) {
    // layout_c3
    require(forward[m], "layout_c3", [&] { return "micro-batch " + std::to_string(m) + " has no forward"; });
    // layout_c4
    require(backward[m], "layout_c4",
            [&] { return "micro-batch " + std::to_string(m) + " has no backward"; });
  }
}

/// Position of the only action of a kind; nothing when it is absent or there are several.
std::optional<std::size_t> only(const std::vector<Action>& actions, ActionKind kind) {
  std::optional<std::size_t> found;
  for (std::size_t position = 0; position < actions.size(); ++position) {
    if (actions[position].kind != kind) continue;
    if (found) return std::nullopt;
    found = position;
  }
  return found;
}

bool any(const std::vector<Action>& actions, ActionKind kind) {
  for (const Action& action : actions)
    if (action.kind == kind) return true;
  return false;
}

std::size_t last_backward(const std::vector<Action>& actions) {
  std::size_t last = 0;
  for (std::size_t position = 0; position < actions.size(); ++position)
    if (actions[position].kind == ActionKind::backward) last = position;
  return last;
}

/// Position of the last reduction of any kind.
std::size_t last_reduction(const std::vector<Action>& actions) {
  std::size_t last = 0;
  for (std::size_t position = 0; position < actions.size(); ++position)
    if (actions[position].kind == ActionKind::all_reduce ||
        actions[position].kind == ActionKind::reduce_scatter)
      last = position;
  return last;
}

/// One all_reduce over the replicas, of the whole sum, and none where there is one.
void check_all_reduce(const std::vector<Action>& actions, const Layout& layout) {
  const auto found = only(actions, ActionKind::all_reduce);
  // layout_c5
  require(
      layout.replicas() > 1 ? found && *found > last_backward(actions) && *found == last_reduction(actions)
                            : !any(actions, ActionKind::all_reduce),
      "layout_c5", [&] {
        return layout.replicas() > 1 ? std::to_string(layout.replicas()) +
                                           " replicas need one all_reduce, after everything else is summed"
                                     : std::string("one replica has nothing to all_reduce");
      });
}

void check_reduce_scatter(const std::vector<Action>& actions, const Layout& layout) {
  const std::string sharded = std::to_string(layout.shard_ranks) + " ranks of a shard group";
  if (layout.shards_weights()) {
    for (std::size_t position = 0; position < actions.size(); ++position) {
      const bool is_backward = actions[position].kind == ActionKind::backward;
      const Action wanted{ActionKind::reduce_scatter, actions[position].micro_batch};
      const bool follows = position + 1 < actions.size() && actions[position + 1] == wanted;
      const bool preceded = position > 0 && actions[position - 1].kind == ActionKind::backward &&
                            actions[position - 1].micro_batch == actions[position].micro_batch;
      // layout_c7
      require(is_backward ? follows : actions[position].kind != ActionKind::reduce_scatter || preceded,
              "layout_c7",
              [&] { return at(position, sharded + ": a backward and its reduce_scatter are apart"); });
    }
    return;
  }
  const auto found = only(actions, ActionKind::reduce_scatter);
  // layout_c7
  require(layout.shards_state() ? found && *found > last_backward(actions)
                                : !any(actions, ActionKind::reduce_scatter),
          "layout_c7", [&] {
            return layout.shards_state() ? sharded + " need one reduce_scatter, after the last backward"
                                         : std::string("nothing is sharded, so nothing is scattered");
          });
}

}  // namespace

std::vector<Action> step_actions(std::int64_t accumulation, const Layout& layout) {
  check_sizes(accumulation, layout);
  std::vector<Action> actions;
  for (std::int64_t m = 0; m < accumulation; ++m) {
    actions.push_back({ActionKind::forward, m});
    actions.push_back({ActionKind::backward, m});
    if (layout.shards_weights()) actions.push_back({ActionKind::reduce_scatter, m});
  }
  const bool zero1 = layout.shards_state() && !layout.shards_weights();
  if (zero1) actions.push_back({ActionKind::reduce_scatter});
  if (layout.replicas() > 1) actions.push_back({ActionKind::all_reduce});
  actions.push_back({ActionKind::clip});
  actions.push_back({ActionKind::update});
  if (zero1) actions.push_back({ActionKind::all_gather});
  return actions;
}

void check_actions(const std::vector<Action>& actions, std::int64_t accumulation, const Layout& layout) {
  check_sizes(accumulation, layout);
  check_micro_batches(actions, accumulation, layout);
  check_all_reduce(actions, layout);
  check_reduce_scatter(actions, layout);
  const std::size_t summed = std::max(last_backward(actions), last_reduction(actions));
  const auto clip = only(actions, ActionKind::clip), update = only(actions, ActionKind::update);
  // layout_c6
  require(clip && update && *clip > summed && *update > *clip, "layout_c6", [] {
    return std::string("a step ends in one clip, then one update, after all gradients are summed");
  });
  const auto gather = only(actions, ActionKind::all_gather);
  const bool zero1 = layout.shards_state() && !layout.shards_weights();
  // layout_c8
  require(zero1 ? gather && *gather > *update : !any(actions, ActionKind::all_gather), "layout_c8", [&] {
    return zero1 ? std::string("the shards of the new weights need one all_gather, after the update")
                 : std::string("no weights are to be gathered after the update");
  });
}

}  // namespace assay::spec
