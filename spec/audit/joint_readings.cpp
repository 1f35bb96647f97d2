#include "spec/audit/joint_readings.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace assay::spec::audit {

bool same_work(const Audit& a, const Audit& b) {
  const RunRecord &x = *a.record, &y = *b.record;
  const auto equal = [&](Setting setting) {
    const auto &p = x[setting], &q = y[setting];
    return p.has_value() == q.has_value() && (!p || p->value == q->value);
  };
  return a.model == b.model && x.gpu == y.gpu && x.dtype == y.dtype && equal(Setting::micro) &&
         equal(Setting::sequence_length) && equal(Setting::parameters) && equal(Setting::flops_per_token);
}

namespace {

/// Cost of reading all runs so: a habit of the trainer counts once, and equal work at unequal speed is
/// unlikely.
double joint_cost(const std::vector<const Audit*>& runs, const std::vector<std::size_t>& chosen) {
  double cost = 0;
  std::set<std::string> habits;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Reading& reading = runs[i]->readings[chosen[i]];
    cost += reading.cost;
    for (const Change& change : reading.changes)
      if (change.of_printer && !habits.insert(change.id).second) cost -= change.cost;
    for (std::size_t k = 0; k < i; ++k) {
      const auto &a = reading.corrected.per_gpu, &b = runs[k]->readings[chosen[k]].corrected.per_gpu;
      if (a && b && same_work(*runs[i], *runs[k]))
        cost += 3 * std::max(0.0, std::abs(std::log(a->middle() / b->middle())) - 0.1);
    }
  }
  return cost;
}

/// Tries every choice while there are few, else improves one run at a time.
std::vector<std::size_t> choose(const std::vector<const Audit*>& runs, std::vector<std::size_t> chosen) {
  std::size_t choices = 1;
  for (const Audit* run : runs) choices = std::min<std::size_t>(100000, choices * run->readings.size());
  double best = joint_cost(runs, chosen);
  if (choices < 5000) {
    std::vector<std::size_t> at(runs.size(), 0);
    for (std::size_t n = 0; n < choices; ++n) {
      std::size_t rest = n;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        at[i] = rest % runs[i]->readings.size();
        rest /= runs[i]->readings.size();
      }
      if (const double cost = joint_cost(runs, at); cost < best - 1e-9) best = cost, chosen = at;
    }
    return chosen;
  }
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < runs.size(); ++i)
      for (std::size_t k = 0; k < runs[i]->readings.size(); ++k) {
        std::vector<std::size_t> other = chosen;
        other[i] = k;
        if (const double cost = joint_cost(runs, other); cost < best - 1e-9) best = cost, chosen = other;
      }
  return chosen;
}

/// The least joint cost with reading `k` of run `i`, the others free to follow.
double cheapest_with(const std::vector<const Audit*>& runs, std::vector<std::size_t> chosen, std::size_t i,
                     std::size_t k) {
  chosen[i] = k;
  double best = joint_cost(runs, chosen);
  for (std::size_t j = 0; j < runs.size(); ++j) {
    if (j == i) continue;
    std::size_t kept = chosen[j];
    for (std::size_t m = 0; m < runs[j]->readings.size(); ++m) {
      chosen[j] = m;
      if (const double cost = joint_cost(runs, chosen); cost < best) best = cost, kept = m;
    }
    chosen[j] = kept;
  }
  return best;
}

}  // namespace

void settle(std::vector<Audit*> runs, std::vector<std::string>& settled) {
  if (runs.size() < 2) return;
  const std::vector<const Audit*> view(runs.begin(), runs.end());
  const std::vector<std::size_t> chosen = choose(view, std::vector<std::size_t>(runs.size(), 0));
  const double best = joint_cost(view, chosen);
  // What a run alone leaves open, the others may decide: a reading's price is now what it adds to all of
  // them.
  std::vector<std::vector<double>> prices(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t k = 0; k < runs[i]->readings.size(); ++k)
      prices[i].push_back(cheapest_with(view, chosen, i, k) - best);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<Reading>& readings = runs[i]->readings;
    const bool open = readings.size() > 1 && equally(readings.front(), readings[1]);
    for (std::size_t k = 0; k < readings.size(); ++k) readings[k].joint = prices[i][k];
    const auto first = readings.begin() + static_cast<std::ptrdiff_t>(chosen[i]);
    std::rotate(readings.begin(), first, first + 1);
    std::stable_sort(readings.begin() + 1, readings.end(),
                     [](const Reading& a, const Reading& b) { return a.joint < b.joint; });
    if (open && !(readings.size() > 1 && equally(readings.front(), readings[1])))
      settled.push_back(runs[i]->record->origin +
                        ": alone it has several readings; beside the other runs one fits");
    refresh(*runs[i]);
  }
}

}  // namespace assay::spec::audit
