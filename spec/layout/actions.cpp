#include "spec/layout/actions.hpp"

#include <optional>
#include <string>

#include "spec/error.hpp"

namespace assay::spec {

namespace {

void check_sizes(std::int64_t accumulation, std::int64_t ranks) {
  // layout_c1
  require(accumulation >= 1 && ranks >= 1, "layout_c1", [&] {
    return "accumulation=" + std::to_string(accumulation) + ", ranks=" + std::to_string(ranks);
  });
}

std::string at(std::size_t place, const std::string& what) {
  return what + " at place " + std::to_string(place);
}

/// How often each micro-batch went forward and backward, in the order of the list.
void check_micro_batches(const std::vector<Action>& actions, std::int64_t accumulation) {
  std::vector<bool> forward(static_cast<std::size_t>(accumulation)), backward(forward);
  for (std::size_t place = 0; place < actions.size(); ++place) {
    const Action& action = actions[place];
    const bool whole_step = action.kind != ActionKind::forward && action.kind != ActionKind::backward;
    // layout_c2
    require(
        whole_step ? action.micro_batch == -1 : action.micro_batch >= 0 && action.micro_batch < accumulation,
        "layout_c2", [&] { return at(place, "micro-batch " + std::to_string(action.micro_batch)); });
    if (whole_step) continue;
    const auto m = static_cast<std::size_t>(action.micro_batch);
    if (action.kind == ActionKind::forward) {
      // layout_c3
      require(!forward[m], "layout_c3",
              [&] { return at(place, "second forward of micro-batch " + std::to_string(m)); });
      forward[m] = true;
    } else {
      // layout_c4
      require(forward[m] && !backward[m], "layout_c4", [&] {
        return at(place, (forward[m] ? "second backward of micro-batch "
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

/// Place of the only action of a kind; nothing when it is absent or there are several.
std::optional<std::size_t> only(const std::vector<Action>& actions, ActionKind kind) {
  std::optional<std::size_t> found;
  for (std::size_t place = 0; place < actions.size(); ++place) {
    if (actions[place].kind != kind) continue;
    if (found) return std::nullopt;
    found = place;
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
  for (std::size_t place = 0; place < actions.size(); ++place)
    if (actions[place].kind == ActionKind::backward) last = place;
  return last;
}

}  // namespace

std::vector<Action> step_actions(std::int64_t accumulation, std::int64_t ranks) {
  check_sizes(accumulation, ranks);
  std::vector<Action> actions;
  for (std::int64_t m = 0; m < accumulation; ++m) {
    actions.push_back({ActionKind::forward, m});
    actions.push_back({ActionKind::backward, m});
  }
  if (ranks > 1) actions.push_back({ActionKind::reduce});
  actions.push_back({ActionKind::clip});
  actions.push_back({ActionKind::update});
  return actions;
}

void check_actions(const std::vector<Action>& actions, std::int64_t accumulation, std::int64_t ranks) {
  check_sizes(accumulation, ranks);
  check_micro_batches(actions, accumulation);
  const std::size_t gradients_done = last_backward(actions);
  const auto reduce = only(actions, ActionKind::reduce);
  // layout_c5
  require(ranks > 1 ? reduce && *reduce > gradients_done : !any(actions, ActionKind::reduce), "layout_c5",
          [&] {
            return ranks > 1 ? std::to_string(ranks) + " ranks need one reduce after the last backward"
                             : std::string("one rank reduces nothing");
          });
  const auto clip = only(actions, ActionKind::clip), update = only(actions, ActionKind::update);
  // layout_c6
  require(clip && update && *clip > gradients_done && (!reduce || *clip > *reduce) && *update > *clip,
          "layout_c6", [] {
            return std::string("a step ends in one clip, then one update, after all gradients are summed");
          });
}

}  // namespace assay::spec
