#include "spec/config/division.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "spec/batch/nearest_batch.hpp"
#include "spec/config/check.hpp"
#include "spec/error.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/placement.hpp"
#include "spec/text/ranks.hpp"

namespace assay::spec {
namespace {

using Numbers = std::vector<std::int64_t>;

/// A run that is asked for, or that an advice names.
struct Asked {
  RunConfig config;
  RunRanks ranks;
};

Division divided(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  const std::int64_t of_data = data_ranks(config, ranks.all);
  const Batch batch = batch_of(
      config.sequences, config.ramp.empty() ? config.micro : micro_sequences(config, of_data), of_data);
  check_tensor_ranks(model, config.tensor_ranks, batch.micro * config.sequence_length);
  const Layout layout = layout_on(config, ranks);
  check_expert_ranks(model, config.expert_ranks, layout, config.tensor_ranks, batch.micro);
  return {batch, layout};
}

/// A stage of the ramp that is not of whole micro-batches; null where all are.
const RampStage* broken_stage(const RunConfig& config, const Batch& batch) {
  for (const RampStage& stage : config.ramp)
    if (stage.sequences % (batch.micro * batch.ranks) != 0) return &stage;
  return nullptr;
}

/// What refuses a run, and so what an advice must pass.
bool holds(const Asked& asked, const ModelSpec& model) {
  try {
    const Division division = divided(asked.config, model, asked.ranks);
    check(asked.config);
    return !broken_stage(asked.config, division.batch);
  } catch (const SpecError&) {
    return false;
  } catch (const UserError&) {  // of the batch
    return false;
  }
}

/// A number that an advice may change: a setting, or how many ranks are started.
struct Lever {
  std::string setting;  ///< its name; empty: the ranks
  std::int64_t asked = 1;
  Numbers values;  ///< to try, ascending
  std::function<void(Asked&, std::int64_t)> set;

  bool of_ranks() const { return setting.empty(); }
  bool of_ramp() const { return setting == "batch.ramp"; }
  /// "parallel.tensor to 4", "leave batch.ramp out".
  std::string text(const std::string& value) const {
    return of_ramp() ? "leave batch.ramp out" : setting + " to " + value;
  }
};

/// A value for each of some levers.
struct Together {
  std::vector<std::pair<const Lever*, std::int64_t>> values;
  double distance = 0;  ///< from what is asked, in factors of two

  bool of_ranks() const { return values.back().first->of_ranks(); }
  /// "set parallel.tensor to 4 and parallel.shard_ranks to 2", "start 4 ranks with parallel.tensor=4".
  std::string text() const {
    std::string set, with, without;
    for (const auto& [lever, value] : values) {
      const std::string number = std::to_string(value);
      if (lever->of_ranks()) return "start " + ranks_text(value) + with + without;
      set += (set.empty() ? "set " : " and ") + lever->text(number);
      if (lever->of_ramp())
        without = " without batch.ramp";
      else
        with += (with.empty() ? " with " : " and ") + lever->setting + "=" + number;
    }
    return set;
  }
};

void sort_and_thin(Numbers& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// a b, or 0 where that is beyond every batch and number of ranks (batch_c1).
std::int64_t product(std::int64_t a, std::int64_t b) { return a > (std::int64_t{1} << 31) / b ? 0 : a * b; }

/// Adds the multiples of `unit` on both sides of `now`.
void add_multiples(Numbers& values, std::int64_t now, std::int64_t unit) {
  if (unit == 0) return;
  const std::int64_t below = now / unit * unit;
  if (below > 0) values.push_back(below);
  values.push_back(below + unit);
}

/// The values next to the asked one, and the least and the largest.
Numbers near(const Lever& lever) {
  constexpr std::ptrdiff_t each_side = 8;
  const Numbers& all = lever.values;
  const auto middle = std::lower_bound(all.begin(), all.end(), lever.asked);
  Numbers some(middle - std::min(each_side, middle - all.begin()),
               middle + std::min(each_side, all.end() - middle));
  if (!all.empty()) some.insert(some.end(), {all.front(), all.back()});
  sort_and_thin(some);
  return some;
}

/// Searches for runs near the one that was refused, with the check that refused it.
class Search {
 public:
  Search(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks, const RampStage* stage)
      : asked_{config, ranks}, model_(model) {
    if (stage) add_stage(stage - config.ramp.data());
    add_micro();
    add_shard_ranks();
    add_experts();
    add_tensor_ranks();
    // Left out it counts as a change by a factor of four.
    if (!config.ramp.empty())
      add("batch.ramp", 4, {1}, [](Asked& a, std::int64_t) { a.config.ramp.clear(); });
    add_ranks();
  }

  /// Also the sequences of a step, which change what is trained.
  void add_sequences() {
    const std::int64_t all = asked_.ranks.all, tensor = asked_.config.tensor_ranks,
                       of_data = all % tensor == 0 ? all / tensor : all, now = asked_.config.sequences,
                       at_once = product(of_data, std::max<std::int64_t>(1, asked_.config.micro));
    Lever lever{"batch.sequences", now, {}, [](Asked& a, std::int64_t n) { a.config.sequences = n; }};
    for (const std::int64_t unit :
         {all, of_data, at_once, product(of_data, tensor), product(at_once, tensor)})
      add_multiples(lever.values, now, unit);
    sort_and_thin(lever.values);
    levers_.insert(levers_.begin(), std::move(lever));
  }

  /// "set parallel.shard_ranks to 2, or parallel.tensor to 2, or start 16 ranks": one change each, or else
  /// the fewest that are enough together; empty where nothing near holds.
  std::string ways() const {
    std::string text = single_changes();
    for (unsigned several = 2; text.empty() && several <= levers_.size(); ++several) text = changes(several);
    return text;
  }

 private:
  void add(std::string setting, std::int64_t asked, Numbers values,
           std::function<void(Asked&, std::int64_t)> set) {
    sort_and_thin(values);
    levers_.push_back({std::move(setting), asked, std::move(values), std::move(set)});
  }

  void add_stage(std::ptrdiff_t number) {
    const auto at = static_cast<std::size_t>(number);
    const std::int64_t now = asked_.config.ramp[at].sequences,
                       of_data = asked_.ranks.all / asked_.config.tensor_ranks;
    Numbers values;
    add_multiples(values, now, of_data * micro_sequences(asked_.config, of_data));
    add("that stage", now, std::move(values),
        [at](Asked& a, std::int64_t n) { a.config.ramp[at].sequences = n; });
  }
  void add_micro() {
    if (asked_.config.micro > 0)
      add("batch.micro", asked_.config.micro, divisors(asked_.config.sequences),
          [](Asked& a, std::int64_t n) { a.config.micro = n; });
  }
  void add_shard_ranks() {
    const RunConfig& config = asked_.config;
    if (config.data_parallel == DataParallel::hybrid)
      add("parallel.shard_ranks",
          config.shard_ranks > 0 ? config.shard_ranks
                                 : std::max<std::int64_t>(1, asked_.ranks.per_host / config.tensor_ranks),
          divisors(asked_.ranks.all), [](Asked& a, std::int64_t n) { a.config.shard_ranks = n; });
  }
  void add_experts() {
    if (asked_.config.expert_ranks > 1)
      add("parallel.expert", asked_.config.expert_ranks, divisors(model_.experts ? model_.experts->count : 1),
          [](Asked& a, std::int64_t n) { a.config.expert_ranks = n; });
  }
  void add_tensor_ranks() {
    if (asked_.config.tensor_ranks > 1)
      add("parallel.tensor", asked_.config.tensor_ranks, divisors(model_.heads),
          [](Asked& a, std::int64_t n) { a.config.tensor_ranks = n; });
  }
  /// On one host, or on more or fewer of the same hosts. Each data-parallel rank reads a sequence at least.
  void add_ranks() {
    const RunRanks now = asked_.ranks;
    const bool one_host = now.per_host == now.all;
    Numbers tensor = divisors(model_.heads), values;
    tensor.push_back(asked_.config.tensor_ranks);
    for (const std::int64_t data : divisors(asked_.config.sequences))
      for (const std::int64_t each : tensor) {
        const std::int64_t all = product(data, each);
        if (all > 0 && (one_host || now.per_host == 0 || all % now.per_host == 0)) values.push_back(all);
      }
    add("", now.all, std::move(values), [one_host, now](Asked& a, std::int64_t n) {
      a.ranks = {n, one_host ? n : now.per_host};
    });
  }

  std::string single_changes() const {
    std::string text;
    for (const Lever& lever : levers_) {
      Numbers good;
      for (const std::int64_t value : lever.values) {
        Asked other = asked_;
        lever.set(other, value);
        if (holds(other, model_)) good.push_back(value);
      }
      if (good.empty()) continue;
      const std::string nearest = nearest_of(good, lever.asked);
      if (!text.empty()) text += ", or ";
      text += lever.of_ranks() ? "start " + nearest + (nearest == "1" ? " rank" : " ranks")
                               : (text.empty() && !lever.of_ramp() ? "set " : "") + lever.text(nearest);
    }
    return text;
  }

  /// Of each choice of `several` levers the nearest values; of those that keep the ranks the nearest choices,
  /// or else of all.
  std::string changes(unsigned several) const {
    constexpr std::size_t most = 3;
    std::vector<Together> found;
    for (unsigned chosen = 0; chosen < 1u << levers_.size(); ++chosen)
      if (static_cast<unsigned>(std::popcount(chosen)) == several) nearest(chosen, 0, asked_, {}, found);
    std::stable_sort(found.begin(), found.end(), [](const Together& a, const Together& b) {
      return std::pair(a.of_ranks(), a.distance) < std::pair(b.of_ranks(), b.distance);
    });
    std::string text;
    for (std::size_t i = 0; i < std::min(most, found.size()); ++i)
      text += (i ? ", or " : "") + found[i].text();
    return text;
  }

  /// Tries all values of the levers `chosen` from number `from` on. The best of this choice is the last of
  /// `found`, if any.
  void nearest(unsigned chosen, std::size_t from, const Asked& so_far, const Together& with,
               std::vector<Together>& found) const {
    const auto same_choice = [&](const Together& each) {
      unsigned levers = 0;
      for (const auto& value : each.values) levers |= 1u << (value.first - levers_.data());
      return levers == chosen;
    };
    const bool known = !found.empty() && same_choice(found.back());
    if (known && with.distance >= found.back().distance) return;
    while (from < levers_.size() && !(chosen >> from & 1u)) ++from;
    if (from == levers_.size()) {
      if (!holds(so_far, model_)) return;
      if (known) found.pop_back();
      found.push_back(with);
      return;
    }
    const Lever& lever = levers_[from];
    for (const std::int64_t value : near(lever)) {
      Asked other = so_far;
      lever.set(other, value);
      Together more = with;
      more.values.emplace_back(&lever, value);
      more.distance += std::abs(std::log2(static_cast<double>(value) / static_cast<double>(lever.asked)));
      nearest(chosen, from + 1, other, more, found);
    }
  }

  const Asked asked_;
  const ModelSpec& model_;
  std::vector<Lever> levers_;  ///< that of the ranks last
};

/// "8 ranks (2 data-parallel ranks of 4 tensor ranks)".
std::string ranks_described(const RunRanks& ranks, std::int64_t tensor) {
  const std::string all = ranks_text(ranks.all);
  return tensor == 1 || ranks.all % tensor != 0
             ? all
             : all + " (" + data_ranks_text(ranks.all / tensor, tensor) + ")";
}

/// `reason` and what would hold. `batch`: the sequences of a step are at fault.
std::string with_ways(const std::string& reason, Search search, bool batch) {
  if (batch) search.add_sequences();
  std::string ways = search.ways();
  if (ways.empty() && !batch) {
    search.add_sequences();
    ways = search.ways();
  }
  return reason + (ways.empty() ? "" : ": " + ways);
}

}  // namespace

Layout layout_on(const RunConfig& config, const RunRanks& ranks) {
  // config_c14
  require(config.data_parallel != DataParallel::hybrid || config.shard_ranks > 0 ||
              ranks.per_host % config.tensor_ranks == 0,
          "config_c14", [&] {
            return "parallel.data = \"hybrid\" takes the data-parallel ranks of a host for a shard group, "
                   "and parallel.tensor = " +
                   std::to_string(config.tensor_ranks) + " does not divide the " +
                   ranks_text(ranks.per_host) + " of a host";
          });
  return layout_of(config.data_parallel, data_ranks(config, ranks.all), config.shard_ranks,
                   ranks.per_host / config.tensor_ranks);
}

std::vector<Degrees> valid_degrees(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  std::vector<Degrees> valid;
  Asked asked{config, ranks};
  for (const std::int64_t tensor : divisors(model.heads)) {
    // Each data-parallel rank reads a sequence at least.
    if (ranks.all % tensor != 0 || ranks.all / tensor > config.sequences) continue;
    Numbers shards = {config.shard_ranks};
    if (config.data_parallel == DataParallel::hybrid) {
      shards = divisors(ranks.all / tensor);
      shards.insert(shards.begin(), 0);
    }
    for (const std::int64_t shard_ranks : shards) {
      asked.config.tensor_ranks = tensor, asked.config.shard_ranks = shard_ranks;
      if (holds(asked, model)) valid.push_back({tensor, shard_ranks});
    }
  }
  return valid;
}

Division divide(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  try {
    return divided(config, model, ranks);
  } catch (const BatchError& error) {
    throw UserError(error.code(), with_ways(error.reason, Search(config, model, ranks, nullptr), true));
  } catch (const SpecError& error) {
    throw SpecError(error.label(), with_ways(error.values() + "; this run has " +
                                                 ranks_described(ranks, config.tensor_ranks),
                                             Search(config, model, ranks, nullptr), false));
  }
}

bool divides(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  return holds({config, ranks}, model);
}

void check_stages(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  const Batch batch = divided(config, model, ranks).batch;
  const RampStage* stage = broken_stage(config, batch);
  if (!stage) return;
  const std::string reason =
      "batch.ramp has a stage of " + std::to_string(stage->sequences) +
      " sequences, which is not a multiple of batch.micro = " + std::to_string(batch.micro) + " times " +
      std::to_string(batch.ranks) + " data-parallel rank" + (batch.ranks == 1 ? "" : "s") + " = " +
      std::to_string(batch.micro * batch.ranks);
  throw UserError(ExitCode::usage, with_ways(reason, Search(config, model, ranks, stage), false));
}

}  // namespace assay::spec
