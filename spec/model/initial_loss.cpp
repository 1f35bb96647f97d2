#include "spec/model/initial_loss.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/model/residual_overlap.hpp"
#include "spec/model/trainable.hpp"

namespace assay::spec {

namespace {

void check_batch(const TokenStatistics& b) {
  // initial_loss_c1
  require(b.tokens >= 1 && b.sequence_length >= 1, "initial_loss_c1", [&] {
    return "tokens=" + std::to_string(b.tokens) + ", sequence_length=" + std::to_string(b.sequence_length);
  });
  for (double share : {b.input_collision, b.target_collision, b.pair_collision, b.reverse_collision,
                       b.repeat_share, b.repeat_collision}) {
    // initial_loss_c2
    require(share >= 0 && share <= 1 + 1e-9, "initial_loss_c2",
            [&] { return "a share or collision probability is " + std::to_string(share); });
  }
}

/// What the logit of the input's own id does in a tied model: it is large, because the residual stream holds
/// the embedding itself.
struct OwnLogit {
  double mean_loss = 0;  ///< E[log-sum-exp] - P(target = input) E[own logit]
  double share = 0;      ///< E[softmax probability of the input's own id]
  double variance = 0;   ///< of the own logit
  double embedding = 0;  ///< share of the embedding in the mean square of the residual stream
};

/// `log_others`: expected log-sum-exp of the other logits.
OwnLogit own_logit(const ModelSpec& m, const ResidualOverlap& overlap, double log_others,
                   double repeat_share) {
  const double D = static_cast<double>(m.width), variance = m.init_std * m.init_std;
  OwnLogit out;
  for (const auto& p : overlap.positions) {
    const double alpha = std::min(1.0, variance / (p.mean_square + m.norm_eps));
    const double mean = D * m.init_std * std::sqrt(alpha);
    const double spread =
        D * variance * alpha * (2 * std::pow(1 - alpha / 2, 2) + std::pow(1 - alpha, 3) / alpha);
    double weights = 0, log_sum = 0, probability = 0;
    for (int i = -120; i <= 120; ++i) {  // Gaussian average over the own logit, trapezoidal rule
      const double x = i / 20.0, weight = std::exp(-x * x / 2), logit = mean + std::sqrt(spread) * x;
      const double larger = std::max(log_others, logit);
      const double total = larger + std::log(std::exp(log_others - larger) + std::exp(logit - larger));
      weights += weight;
      log_sum += weight * total;
      probability += weight * std::exp(logit - total);
    }
    out.mean_loss += p.share * (log_sum / weights - repeat_share * mean);
    out.share += p.share * probability / weights;
    out.variance += p.share * spread;
    out.embedding += p.share * alpha;
  }
  return out;
}

/// (e^x - 1 - x) for x >= 0, without cancellation.
double beyond_linear(double x) { return x < 1e-4 ? x * x / 2 : std::expm1(x) - x; }

}  // namespace

std::string without_initial_loss(const ModelSpec& model) {
  std::string feature;
  for_each(model_fields, [&](const auto& field) {
    if (feature.empty() && *field.computed.no_first_loss &&
        !(model.*field.member == ModelSpec().*field.member))
      feature = field.computed.no_first_loss;
  });
  return feature.empty() ? untrainable_feature(model) : feature;
}

InitialLoss expected_initial_loss(const ModelSpec& model, const TokenStatistics& b) {
  check_batch(b);
  const std::string other = without_initial_loss(model);
  // initial_loss_c3
  require(other.empty(), "initial_loss_c3", [&] { return model.name + " has " + other; });
  const ResidualOverlap overlap = residual_overlap(model, b);
  const double V = static_cast<double>(model.vocab), N = static_cast<double>(b.tokens);
  const double logit_variance = static_cast<double>(model.width) * model.init_std * model.init_std;
  const double s = logit_variance * overlap.self;
  const double finite_vocabulary = std::expm1(s) / (2 * V);
  // Mean overlap of two positions of the batch, and the logits' covariance summed over pairs that share the
  // target.
  const double any = overlap.self / N + std::max(0.0, b.input_collision - 1 / N) * overlap.same +
                     (1 - b.input_collision) * overlap.different;
  const auto excess = [](double larger, double smaller) { return std::max(0.0, larger - smaller); };
  const double partition = beyond_linear(logit_variance * any) / V;

  if (!model.tied_embeddings || model.vocab == 1) {
    const double target = overlap.self / N + excess(b.pair_collision, 1 / N) * overlap.same +
                          excess(b.target_collision, b.pair_collision) * overlap.different;
    const double linear = logit_variance * excess(target, any / V);
    return {std::log(V) + s / 2 - finite_vocabulary, std::sqrt(linear + partition)};
  }
  const OwnLogit own = own_logit(model, overlap, std::log(V - 1) + s / 2 - finite_vocabulary, b.repeat_share);
  const double moving = (1 - b.repeat_share) / N;  // positions whose target is not their input
  const double target = moving * overlap.self +
                        excess(b.pair_collision - b.repeat_collision, moving) * overlap.same +
                        excess(b.reverse_collision, b.repeat_collision) * own.embedding +
                        excess(b.target_collision, b.pair_collision) * overlap.different;
  const double linear = logit_variance * excess(target, (1 - own.share) * any / V);
  const double diagonal = own.variance * (own.share * own.share * b.input_collision + b.repeat_collision);
  return {own.mean_loss, std::sqrt(linear + diagonal + partition)};
}

InitialLoss expected_initial_loss(const ModelSpec& model, std::int64_t valid_tokens) {
  check(model);
  return expected_initial_loss(model, uniform_tokens(model.vocab, valid_tokens, model.context));
}

}  // namespace assay::spec
