#include "reference/model/balancing.hpp"

#include "reference/ops/load_balancing.hpp"

namespace assay::reference::balancing {

namespace {

/// The passes of a step and what is counted over them.
class Step {
 public:
  Step(const std::vector<model::Forward<double>>& forwards, const std::vector<Batch>& micro_batches,
       const spec::ModelSpec& model)
      : forwards_(forwards), micro_batches_(micro_batches), model_(model), experts_(*model.experts) {
    for (const Batch& batch : micro_batches) tokens_ += batch.B * batch.T;
  }

  Index tokens() const { return tokens_; }
  const router::Forward<double>& router(std::size_t micro, Index layer) const {
    return forwards_[micro].blocks[static_cast<std::size_t>(layer)].experts.router;
  }
  const permute::Plan& plan(std::size_t micro, Index layer) const {
    return forwards_[micro].blocks[static_cast<std::size_t>(layer)].experts.plan;
  }

  std::vector<Index> counts(Index layer) const { return counts(layer, forwards_.size()); }
  /// Over the first `passes` passes.
  std::vector<Index> counts(Index layer, std::size_t passes) const {
    Ids all;
    for (std::size_t micro = 0; micro < passes; ++micro) {
      const Ids& chosen = router(micro, layer).chosen;
      all.insert(all.end(), chosen.begin(), chosen.end());
    }
    return spec::load_balancing::counts(all, experts_.count);
  }

  /// Shares f [G, X] of one layer for the rows of a micro-batch.
  Tensor<double> shares(std::size_t micro, Index layer, Form form) const {
    switch (form) {
      case Form::global:
        return shares_of(layer, forwards_.size());
      case Form::running:
        return shares_of(layer, micro + 1);
      case Form::sequence:
        return own_shares(micro, layer, micro_batches_[micro].B);
      case Form::micro_batch:
        return own_shares(micro, layer, 1);
      case Form::hugging_face:
        break;
    }
    // A times the mean over the sparse layers, of which a layer's part is one of as many.
    Tensor<double> sum({1, experts_.count});
    for (Index l = 0; l < model_.layers; ++l)
      if (model_.sparse(l)) sum.flat() += own_shares(micro, l, 1).flat();
    const auto sparse = static_cast<double>(model_.sparse_layers());
    sum.flat() *= static_cast<double>(experts_.active) / (sparse * sparse);
    return sum;
  }

 private:
  Tensor<double> own_shares(std::size_t micro, Index layer, Index groups) const {
    return load_balancing::shares<double>(router(micro, layer).chosen, experts_.active, experts_.count,
                                          groups);
  }
  Tensor<double> shares_of(Index layer, std::size_t passes) const {
    const std::vector<Index> chosen = counts(layer, passes);
    Index tokens = 0;
    for (std::size_t micro = 0; micro < passes; ++micro)
      tokens += micro_batches_[micro].B * micro_batches_[micro].T;
    Tensor<double> f({1, experts_.count});
    for (Index e = 0; e < experts_.count; ++e)
      f(0, e) = static_cast<double>(chosen[static_cast<std::size_t>(e)]) /
                static_cast<double>(experts_.active * tokens);
    return f;
  }

  const std::vector<model::Forward<double>>& forwards_;
  const std::vector<Batch>& micro_batches_;
  const spec::ModelSpec& model_;
  const spec::Experts& experts_;
  Index tokens_ = 0;
};

}  // namespace

Balance balance(const std::vector<model::Forward<double>>& forwards, const std::vector<Batch>& micro_batches,
                const spec::ModelSpec& model, const Settings& settings) {
  Balance out;
  out.upstreams.resize(forwards.size());
  if (!model.experts) return out;
  const spec::Experts& e = *model.experts;
  const Step step(forwards, micro_batches, model);
  const auto Z = static_cast<double>(step.tokens());

  for (Index layer = 0; layer < model.layers; ++layer)
    out.counts.push_back(model.sparse(layer) ? step.counts(layer) : std::vector<Index>());
  Index choices = 0, kept = 0;
  for (std::size_t micro = 0; micro < forwards.size(); ++micro)
    for (Index layer = 0; layer < model.layers; ++layer) {
      experts::Upstream<double>& upstream = out.upstreams[micro].emplace_back();
      if (!model.sparse(layer)) continue;
      const router::Forward<double>& router = step.router(micro, layer);
      const Tensor<double> f = step.shares(micro, layer, settings.form);
      out.balance += load_balancing::forward(router::probabilities(router.scores, e), f, e.active, Z);
      upstream.dprobabilities =
          load_balancing::backward(settings.coefficient, f, router.scores.extent(0), e.active, Z);
      const auto z = load_balancing::z_forward(router.logits, Z);
      out.router_z += z.loss;
      upstream.dlogits = load_balancing::z_backward(settings.router_z_coefficient, router.logits, z.lse, Z);
      choices += static_cast<Index>(router.chosen.size());
      kept += step.plan(micro, layer).R();
    }
  if (choices > 0) out.dropped = static_cast<double>(choices - kept) / static_cast<double>(choices);
  return out;
}

}  // namespace assay::reference::balancing
