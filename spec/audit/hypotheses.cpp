#include "spec/audit/hypotheses.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "spec/audit/conventions.hpp"
#include "spec/audit/groups.hpp"

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

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  if (values.size() > 2) values.erase(values.begin());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Rate and time of the median step, as printed.
struct Typical {
  std::optional<double> rate, seconds;
  double width = 0;  ///< half of what the rate's rounding leaves open, as a share

  explicit Typical(const Evidence& e) {
    std::vector<double> rates, times;
    for (const Step* step : e.steps) {
      if (const auto& r = (*step)[Field::tokens_per_second]; usable(r)) {
        rates.push_back(r->value);
        width = std::max(width, (wide(*r).high - r->low) / r->value / 2);
      }
      if (const auto& t = (*step)[Field::seconds]; usable(t)) times.push_back(t->value);
    }
    rate = median_of(std::move(rates));
    seconds = median_of(std::move(times));
  }
};

/// No machine does more than its peak, so no MFU is given that says so.
void withhold_impossible(Corrected& c, const Evidence& e) {
  constexpr double rounded_peak = 1.005;  // 989 for 989.4
  constexpr double most_uncomputed = 2;   // palm_total counts each pair of tokens twice as often as causal
                                          // attention computes it
  if (c.mfu_exact)
    c.impossible = c.mfu_exact->low > rounded_peak;
  else if (c.mfu_palm_total)
    c.impossible = c.mfu_palm_total->low > rounded_peak * most_uncomputed;
  const auto withhold = [&](std::optional<Interval>& mfu, const std::string& why) {
    if (!mfu) return;
    mfu->high = std::min(mfu->high, 1.0);
    if (mfu->low <= mfu->high) return;
    mfu.reset();
    if (c.missing.find(why) == std::string::npos) c.missing += (c.missing.empty() ? "" : "; ") + why;
  };
  const std::string passes = "it would pass the dense " + std::string(to_string(e.precision)) +
                             " peak: tokens, time, GPU, dtype or number of GPUs is another";
  withhold(c.mfu_exact, passes);
  withhold(c.mfu_palm_total,
           c.impossible ? passes : "palm_total passes the peak: it counts what is not computed");
}

/// What the speed can rest on: what the reading leaves unexplained holds for nothing.
struct Grounds {
  bool rate = true, time = true;
  std::string missing;  ///< why not

  Grounds(const Comparisons& c, const Reading& reading) {
    const auto open = [&](Relation relation) {
      return std::find(reading.unexplained.begin(), reading.unexplained.end(), relation) !=
             reading.unexplained.end();
    };
    const bool with_time = open(Relation::rate_time), with_clock = open(Relation::rate_wall_clock);
    rate = !with_time && !with_clock;
    // Step times that add up to the clock are not what is wrong.
    time = !open(Relation::wall_clock) && (!with_time || !at(c, Relation::wall_clock).samples.empty());
    rate = rate && !open(Relation::wall_clock);
    missing =
        with_time    ? "tokens/s, tokens per step and step time contradict, and nothing tells which is wrong"
        : with_clock ? "tokens/s, tokens per step and the clock contradict, and nothing tells which is wrong"
                     : "the step times contradict the clock, and nothing tells which is wrong";
  }
};

Corrected corrected(const Evidence& e, const Typical& typical, const Grounds& grounds,
                    const Reading& reading) {
  Corrected out;
  double rate = count_of(e, reading.interpretation.rate), time = 1, gpus = 1, batch = 1;
  Interval within{1 - typical.width, 1 + typical.width};
  if (reading.interpretation.accumulation_divided) batch /= *e.ranks;
  for (const Change& change : reading.changes) {
    rate *= change.rate;
    within = {std::min(within.low, change.rate_within.low), std::max(within.high, change.rate_within.high)};
    time *= change.time;
    batch *= change.batch;
    gpus *= change.gpus;
  }
  if (typical.rate && grounds.rate) {
    out.tokens_per_second = within * exact_interval(*typical.rate * rate);
  } else if (typical.seconds && e.tokens_per_step && grounds.time) {
    out.tokens_per_second = *e.tokens_per_step * exact_interval(batch / (*typical.seconds * time));
  }
  if (!out.tokens_per_second) {
    out.missing =
        grounds.rate && grounds.time ? "no tokens/s, nor a step time and tokens per step" : grounds.missing;
    return out;
  }
  const auto lacks = [&](const std::string& what) {
    out.missing += (out.missing.empty() ? "" : "; ") + what;
  };
  if (e.gpus) {
    out.per_gpu = *out.tokens_per_second / exact_interval(*e.gpus * gpus);
  } else {
    lacks("no number of GPUs (--gpus N)");
    // Without their number, one GPU's rate remains one GPU's.
    if (typical.rate && grounds.rate && e.record.format.tokens_per_second == Scope::gpu)
      out.per_gpu = std::exchange(out.tokens_per_second, std::nullopt);
    else
      return out;
  }
  if (!e.dense_peak) {
    lacks(e.on_cpu()             ? "no peak of a CPU, so no MFU"
          : e.record.gpu.empty() ? "no name of the GPU (--gpu X)"
          : !e.precision_known   ? "no dtype that has a peak (--set dtype=bf16)"
                                 : "no facts of this GPU (--gpu X)");
    return out;
  }
  if (!e.sequence_length) {
    lacks("no sequence length (--seq T)");
    return out;
  }
  const Interval peak = exact_interval(*e.dense_peak);
  Evidence ran = e;
  for (const Change& change : reading.changes) {
    if (change.model) ran.model = change.model;
    if (change.sequence_length > 0) ran.sequence_length = exact_interval(change.sequence_length);
  }
  if (const auto flops = counted_flops(ran, "exact")) out.mfu_exact = *out.per_gpu * *flops / peak;
  if (const auto flops = counted_flops(ran, "palm_total")) out.mfu_palm_total = *out.per_gpu * *flops / peak;
  if (!out.mfu_exact) lacks("no model for `exact` (--model M)");
  withhold_impossible(out, e);
  return out;
}

/// A spread of the samples: the search asks for each relation thousands of times.
Comparisons thinned(const Comparisons& all) {
  Comparisons out;
  for (std::size_t i = 0; i < relation_count; ++i) {
    const auto& samples = all[i].samples;
    const std::size_t stride = std::max<std::size_t>(1, (samples.size() + most_samples - 1) / most_samples);
    for (std::size_t k = 0; k < samples.size(); k += stride) out[i].samples.push_back(samples[k]);
    out[i].ways = all[i].ways;
  }
  return out;
}

class Search {
 public:
  Search(const Evidence& evidence, const Comparisons& comparisons)
      : e_(evidence), c_(thinned(comparisons)), typical_(evidence) {}

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
    solved_.push_back(unknown(relation));
    Node next = node;
    next.cost += solved_.back().cost;
    next.changes.push_back(&solved_.back());
    next.given_up.push_back(relation);
    push(std::move(next));
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
      if (taken->factors[relation] == 1 || told_apart(node, *taken, change)) continue;
      // A free multiple of what another change left over fits anything: the other only rescales it.
      if (is_free_multiple(*taken) || is_free_multiple(change)) return;
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

  /// Whether something besides their product speaks for two changes of one ratio: a relation that contradicts
  /// and that they move differently, or what the trainer's source is known to do.
  bool told_apart(const Node& node, const Change& a, const Change& b) const {
    const std::string_view known = known_of_trainer(e_);
    if (!known.empty() && (a.id == known || b.id == known)) return true;
    const Factors& plain = interpretations_[node.interpretation].factors;
    if (interpretations_[node.interpretation].rate != Whose::all && !known.empty()) return true;
    for (std::size_t i = 0; i < relation_count; ++i)
      if ((a.factors.values[i] != 1) != (b.factors.values[i] != 1) && !agrees(c_[i], plain.values[i]))
        return true;
    return false;
  }

  /// When the search gives up: one relation after the other, each by the likeliest change that makes it agree
  /// and spares the others; what none explains stays so.
  Reading unread() {
    Node node;
    const Interpretation plain = interpret(e_, c_);
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
      } else {
        node.given_up.push_back(relation);
        solved_.push_back(unknown(relation));
      }
      node.changes.push_back(&solved_.back());
      node.cost += solved_.back().cost;
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

  /// The same changes in another order, or the same scope told in other words: one rank's rate over the peak
  /// of all is one mistake, whichever number it is pinned on.
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
    for (const Reading& other : told)
      if (same_ids(other, reading) ||
          (ids(other) == ids(reading) && std::abs(rate(other) / rate(reading) - 1) < 1e-6 &&
           !reading.changes.empty() && !other.changes.empty()))
        return true;
    return false;
  }

  const Evidence& e_;
  Comparisons c_;
  Typical typical_;
  std::vector<std::optional<std::vector<Change>>> changes_;  ///< of each interpretation, once needed
  std::vector<Interpretation> interpretations_;
  std::deque<Change> solved_;  ///< stay where they are
  std::vector<Node> open_;
  std::vector<Reading> found_;
  double best_ = 1e300;
};

/// An MFU that follows from other printed numbers is as wrong as they are: it is held against the corrected
/// one.
void correct_utilisation(Audit& audit, const Evidence& e) {
  const Reading& best = audit.readings.front();
  std::vector<Cause> causes;
  for (const Change& change : best.changes)
    if (change.rate != 1 || change.gpus != 1 || change.factors[Relation::peak] != 1)
      causes.push_back({change.id, change.text});
  const Corrected& right = best.corrected;
  if (causes.empty() || !right.per_gpu || right.impossible || !e.dense_peak || e.steps.empty()) return;
  auto flops = e.flops_per_token(*e.steps.back());
  if (!flops) flops = counted_flops(e, e.record.format.convention);
  if (!flops) return;
  const Interval mfu = *right.per_gpu * *flops / exact_interval(*e.dense_peak);
  for (Result& result : audit.results) {
    if (result.id != "mfu" && result.id != "mfu_of_flops_rate") continue;
    if (result.verdict != Verdict::holds || std::abs(result.printed / mfu.middle() - 1) < 0.02) continue;
    result.verdict = Verdict::contradicts;
    result.recomputed = mfu;
    result.off_by = result.printed / mfu.middle();
    result.contradicted = result.judged;
    result.note = "follows from the printed numbers, and so from what is wrong with them";
    result.causes = causes;
  }
}

}  // namespace

std::vector<Reading> readings(const Evidence& evidence, const Comparisons& comparisons) {
  return Search(evidence, comparisons).run();
}

bool equally(const Reading& best, const Reading& other) {
  // Beside other runs the joint price decides; alone it is the reading's own.
  const bool together = best.joint > 0 || other.joint > 0;
  const double dearer = together ? other.joint - best.joint : other.cost - best.cost;
  return dearer < 1 && other.unexplained.size() <= best.unexplained.size();
}

namespace {

void explain(Audit& audit, const Evidence& evidence, const Comparisons& comparisons) {
  if (audit.contradicts) rejudge(audit.results, comparisons, audit.readings.front().interpretation);
  name_causes(audit.results, evidence, comparisons, audit.readings);
  correct_utilisation(audit, evidence);
}

}  // namespace

Audit audit(const RunRecord& record) {
  const Evidence evidence(record);
  const Comparisons comparisons = compare(evidence);
  Audit out;
  out.record = &record;
  out.results = judge(evidence, comparisons);
  out.readings = readings(evidence, comparisons);
  out.contradicts = std::any_of(out.results.begin(), out.results.end(),
                                [](const Result& r) { return r.verdict == Verdict::contradicts; });
  if (evidence.model) out.model = evidence.model->name;
  if (evidence.gpu.gpu)
    out.gpu = evidence.gpu.gpu->name;
  else if (!evidence.gpu.candidates.empty())
    out.gpu = record.gpu;
  out.gpus = evidence.gpus.value_or(0);
  explain(out, evidence, comparisons);
  return out;
}

void refresh(Audit& audit) {
  const Evidence evidence(*audit.record);
  const Comparisons comparisons = compare(evidence);
  audit.results = judge(evidence, comparisons);
  explain(audit, evidence, comparisons);
}

}  // namespace assay::spec::audit
