#include "spec/audit/hypotheses.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "spec/audit/corrected.hpp"
#include "spec/audit/uneven_counts.hpp"
#include "spec/audit/unnamed_factor.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::size_t most_changes = 4, most_readings = 8, most_samples = 24;
constexpr int most_nodes = 4000;
/// What two changes that one disagreeing ratio alone speaks for cost more: dearer than no reading at all.
constexpr double compound = 4.5;
/// What a mistake costs more where an earlier version's count is taken for granted beside it: two
/// assumptions.
constexpr double of_earlier_version = 1.5;
/// What a reading costs more under which the GPUs did more than their peak.
constexpr double beyond_peak = 6;
constexpr double window = 3;  // readings this much costlier than the best are not worth telling

/// A spread of the samples: the search asks for each relation thousands of times.
Comparisons thinned(const Comparisons& all) {
  Comparisons out;
  for (std::size_t i = 0; i < relation_count; ++i) {
    const auto& samples = all[i].samples;
    const std::size_t stride = std::max<std::size_t>(1, (samples.size() + most_samples - 1) / most_samples);
    for (std::size_t k = 0; k < samples.size(); k += stride) out[i].samples.push_back(samples[k]);
    out[i].ways = all[i].ways;
    out[i].without_pauses = all[i].without_pauses;
    out[i].missed = all[i].missed;
    out[i].of_ranks = all[i].of_ranks;
  }
  return out;
}

class Search {
 public:
  Search(const Evidence& evidence, const Comparisons& comparisons)
      : e_(evidence), c_(thinned(comparisons)), typical_(evidence), stands_(interpret(e_, c_)) {}

  /// Cheapest first, so that the first reading found is the best one.
  std::vector<Reading> run() {
    interpretations_ = interpretations(e_);
    changes_.resize(interpretations_.size());
    for (std::size_t i = 0; i < interpretations_.size(); ++i) {
      const Interpretation& interpretation = interpretations_[i];
      double cost = interpretation.strain;
      // Read as one rank's, an unlabelled rate is what the trainer's source says.
      if (interpretation.rate == Whose::all && !known_of_trainer(e_).empty()) cost += unknown_of_known;
      push({{}, cost, 0, interpretation.factors, {}, {}, i});
    }
    for (int looked = 0; !open_.empty() && looked < most_nodes; ++looked) {
      std::pop_heap(open_.begin(), open_.end(), dearer);
      const Node node = std::move(open_.back());
      open_.pop_back();
      if (node.bound > best_ + window) break;
      extend(node);
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Reading& a, const Reading& b) {
      if (a.cost != b.cost) return a.cost < b.cost;
      return a.residual < b.residual;
    });
    std::vector<Reading> out;
    for (Reading& reading : found_)
      if (out.size() < most_readings && reading.cost <= found_.front().cost + window && !told(out, reading))
        out.push_back(std::move(reading));
    if (out.empty()) out.push_back(unread());
    return out;
  }

 private:
  struct Node {
    std::vector<const Change*> changes;
    double cost = 0;
    double bound = 0;  ///< what its readings cost at least, about: each open relation needs something
    Factors factors;
    std::vector<Relation> given_up, left;
    std::size_t interpretation = 0;
  };
  static bool dearer(const Node& a, const Node& b) { return a.bound > b.bound; }

  void push(Node node) {
    node.left = unexplained(c_, node.factors);
    std::erase_if(node.left, [&](Relation r) {
      return std::find(node.given_up.begin(), node.given_up.end(), r) != node.given_up.end();
    });
    node.bound = node.cost + (node.left.empty() ? 0 : 0.5 + 0.25 * static_cast<double>(node.left.size()));
    if (node.bound > best_ + window) return;
    open_.push_back(std::move(node));
    std::push_heap(open_.begin(), open_.end(), dearer);
  }

  void extend(const Node& node) {
    if (node.left.empty()) {
      accept(node);
      return;
    }
    const Relation relation = node.left.front();
    if (node.changes.size() < most_changes + node.given_up.size()) {
      std::optional<std::vector<Change>>& known = changes_[node.interpretation];
      if (!known) known = changes(e_, c_, interpretations_[node.interpretation]);
      for (const Change& change : *known) take(node, change, relation);
      const Interval ratio = median_ratio(at(c_, relation));
      const double factor = node.factors[relation];
      for (Change& change : solved(e_, c_, interpretations_[node.interpretation], node.factors, relation,
                                   {ratio.low / factor, ratio.high / factor})) {
        solved_.push_back(std::move(change));
        take(node, solved_.back(), relation);
      }
    }
    Node next = node;
    give_up(next, node.left);
    push(std::move(next));
  }

  /// What one wrong number leaves open costs once.
  void give_up(Node& node, const std::vector<Relation>& left) {
    Unnamed open = unnamed(c_, node.factors, left);
    if (std::string uneven = uneven_count(e_, left.front()); !uneven.empty())
      open.change.text = std::move(uneven);
    solved_.push_back(std::move(open.change));
    node.cost += solved_.back().cost;
    node.changes.push_back(&solved_.back());
    node.given_up.insert(node.given_up.end(), open.relations.begin(), open.relations.end());
  }

  void take(const Node& node, const Change& change, Relation relation) {
    if (change.factors[relation] == 1 || node.cost + change.cost > best_ + window) return;
    int tried = 0;
    // What agrees as printed speaks against a change that moves it, and the more against a second that moves
    // it back.
    const Factors& plain = interpretations_[node.interpretation].factors;
    double together = agrees(at(c_, relation), plain[relation]) ? compound : 0;
    for (const Change* taken : node.changes) {
      if (taken->id == change.id) return;
      tried += taken->factors[relation] != 1;
      // A free multiple of what another change left over fits anything: the other only rescales it.
      if ((is_free_multiple(*taken) && !spoken_for(node, change, *taken)) ||
          (is_free_multiple(change) && !spoken_for(node, *taken, change)))
        return;
      if (taken->factors[relation] != 1 && !spoken_for(node, *taken, change) &&
          !spoken_for(node, change, *taken))
        together = compound;
    }
    // Two changes may make one ratio together; three would fit anything.
    if (tried >= 2) return;
    if (node.changes.empty() && interpretations_[node.interpretation].earlier) together += of_earlier_version;
    Node next = node;
    next.cost += change.cost + together;
    for (std::size_t i = 0; i < relation_count; ++i) next.factors.values[i] *= change.factors.values[i];
    next.changes.push_back(&change);
    push(std::move(next));
  }

  static bool is_free_multiple(const Change& change) { return change.id.ends_with("_multiple"); }

  /// Whether something besides their product speaks for `one` of two changes: a relation that contradicts and
  /// that it moves alone, or what the trainer's source is known to do.
  bool spoken_for(const Node& node, const Change& one, const Change& other) const {
    const std::string_view known = known_of_trainer(e_);
    if (!known.empty() && (one.id == known || other.id == known)) return true;
    const Factors& plain = interpretations_[node.interpretation].factors;
    if (interpretations_[node.interpretation].rate != Whose::all && !known.empty()) return true;
    // What contradicts in this interpretation alone speaks against the interpretation.
    for (std::size_t i = 0; i < relation_count; ++i)
      if (one.factors.values[i] != 1 && other.factors.values[i] == 1 && !agrees(c_[i], plain.values[i]) &&
          !agrees(c_[i], stands_.factors.values[i]))
        return true;
    return false;
  }

  /// When the search gives up: one relation after the other, each by the likeliest change that makes it agree
  /// and spares the others; what none explains stays so.
  Reading unread() {
    Node node;
    const Interpretation& plain = stands_;
    node.factors = plain.factors;
    const std::vector<Change> all = changes(e_, c_, plain);
    for (std::vector<Relation> left = unexplained(c_, node.factors); !left.empty();) {
      const Relation relation = left.front();
      const Change* best = nullptr;
      Factors then;
      for (const Change& change : all) {
        Factors product = node.factors;
        for (std::size_t i = 0; i < relation_count; ++i) product.values[i] *= change.factors.values[i];
        if (agrees(at(c_, relation), product[relation]) && unexplained(c_, product).size() < left.size() &&
            (!best || change.cost < best->cost))
          best = &change, then = product;
      }
      if (best) {
        node.factors = then;
        solved_.push_back(*best);
        node.changes.push_back(&solved_.back());
        node.cost += best->cost;
      } else {
        give_up(node, left);
      }
      left = unexplained(c_, node.factors);
      std::erase_if(left, [&](Relation r) {
        return std::find(node.given_up.begin(), node.given_up.end(), r) != node.given_up.end();
      });
    }
    interpretations_.push_back(plain);
    node.interpretation = interpretations_.size() - 1;
    accept(node);
    return found_.back();
  }

  void accept(const Node& node) {
    Reading reading;
    reading.interpretation = interpretations_[node.interpretation];
    for (const Change* change : node.changes) reading.changes.push_back(*change);
    reading.unexplained = node.given_up;
    reading.corrected = corrected(e_, typical_, Grounds(c_, reading), reading);
    reading.cost = node.cost + (reading.corrected.impossible ? beyond_peak : 0);
    best_ = std::min(best_, reading.cost);
    double sum = 0;
    int count = 0;
    for (std::size_t i = 0; i < relation_count; ++i) {
      if (c_[i].samples.empty()) continue;
      const Interval ratio = median_ratio(c_[i]);
      const double half = std::max((ratio.high - ratio.low) / 2, 1e-12);
      sum += std::abs(node.factors.values[i] - ratio.middle()) / half;
      ++count;
      const auto relation = static_cast<Relation>(i);
      if (!agrees(c_[i], reading.interpretation.factors.values[i]) &&
          std::find(node.given_up.begin(), node.given_up.end(), relation) == node.given_up.end())
        reading.explained.push_back(relation);
    }
    reading.residual = count ? sum / count : 0;
    found_.push_back(std::move(reading));
  }

  /// The same changes in another order, or the same scope reported in other words: one rank's rate over the
  /// peak of all is one mistake, whichever number it is pinned on.
  bool told(const std::vector<Reading>& told, const Reading& reading) const {
    const auto ids = [](const Reading& r) {
      std::vector<std::string> out;
      for (const Change& change : r.changes)
        if (change.id.rfind("rate_of_", 0) != 0 && change.id.rfind("mfu_", 0) != 0) out.push_back(change.id);
      std::sort(out.begin(), out.end());
      return out;
    };
    const auto rate = [&](const Reading& r) {
      double out = count_of(e_, r.interpretation.rate);
      for (const Change& change : r.changes) out *= change.rate;
      return out;
    };
    const auto same_ids = [](const Reading& a, const Reading& b) {
      if (a.changes.size() != b.changes.size()) return false;
      for (std::size_t i = 0; i < a.changes.size(); ++i)
        if (a.changes[i].id != b.changes[i].id) return false;
      return true;
    };
    // What a log's words leave open and nothing that is reported rests on.
    const auto same_figures = [](const Corrected& a, const Corrected& b) {
      return a.tokens_per_second == b.tokens_per_second && a.per_gpu == b.per_gpu &&
             a.mfu_exact == b.mfu_exact && a.mfu_palm_total == b.mfu_palm_total && a.missing == b.missing &&
             a.impossible == b.impossible;
    };
    for (const Reading& other : told)
      if ((same_ids(other, reading) && (!reading.changes.empty() || rate(other) == rate(reading) ||
                                        same_figures(other.corrected, reading.corrected))) ||
          (ids(other) == ids(reading) && std::abs(rate(other) / rate(reading) - 1) < 1e-6 &&
           !reading.changes.empty() && !other.changes.empty()))
        return true;
    return false;
  }

  const Evidence& e_;
  Comparisons c_;
  Typical typical_;
  Interpretation stands_;
  std::vector<std::optional<std::vector<Change>>> changes_;  ///< of each interpretation, once needed
  std::vector<Interpretation> interpretations_;
  std::deque<Change> solved_;  ///< stay where they are
  std::vector<Node> open_;
  std::vector<Reading> found_;
  double best_ = 1e300;
};

}  // namespace

std::vector<Reading> readings(const Evidence& evidence, const Comparisons& comparisons) {
  return Search(evidence, comparisons).run();
}

}  // namespace assay::spec::audit
