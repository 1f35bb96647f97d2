#include "tests/support/tiny_models.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "spec/random/philox.hpp"

namespace assay::tests {

namespace {

/// Numbers in the order they are asked for.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t stream) : stream_(seed, spec::random::Site::test, stream) {}

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(stream_.below(index_++, static_cast<std::uint64_t>(most - least + 1)));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

 private:
  spec::random::Stream stream_;
  std::uint64_t index_ = 0;
};

constexpr std::uint32_t model_stream = 1, batch_stream = 2, shape_stream = 3, experts_stream = 4,
                        groups_stream = 5, latent_stream = 6;

spec::ModelSpec corner(const std::string& name, spec::Family family) {
  spec::ModelSpec model;
  model.name = name;
  model.family = family;
  model.qk_norm = family == spec::Family::qwen3;
  model.qkv_bias = family == spec::Family::qwen2;
  model.vocab = 11, model.width = 8, model.layers = 2, model.heads = 4, model.kv_heads = 2,
  model.head_dim = 4;
  model.ffn = 12, model.context = 32;
  model.init_std = 0.2;
  return model;
}

spec::RopeScaling draw_yarn(Draws& draw) {
  return {.factor = 4,
          .original_context = 512,
          .kind = spec::RopeScalingKind::yarn,
          .mscale = draw.one_of({0.0, 0.7}),
          .mscale_all_dim = draw.one_of({0.0, 1.3})};
}

/// Numbers of documents of one sequence: nondecreasing, runs of uneven length, gaps where a document is
/// empty.
void pack(Draws& draw, std::int64_t T, std::vector<std::int64_t>& documents,
          std::vector<std::int64_t>& positions) {
  std::int64_t document = draw.one_in(4) ? 1 : 0;  // an empty first document
  for (std::int64_t t = 0; t < T;) {
    const std::int64_t length =
        std::min(T - t, draw.one_in(3) ? 1 : draw.between(1, std::max<std::int64_t>(T / 2, 1)));
    for (std::int64_t position = 0; position < length; ++position, ++t) {
      documents.push_back(document);
      positions.push_back(position);
    }
    document += draw.one_in(4) ? 2 : 1;
  }
}

void ignore(Draws& draw, Ignored ignored, reference::Batch& batch) {
  const std::int64_t B = batch.B, T = batch.T, kept_sequence = draw.between(0, B - 1),
                     kept = draw.between(0, B * T - 1);
  std::vector<bool> whole;
  for (std::int64_t b = 0; b < B; ++b) whole.push_back(draw.one_in(2) && b != kept_sequence);
  for (std::int64_t n = 0; n < B * T; ++n) {
    const bool drop = ignored == Ignored::none        ? false
                      : ignored == Ignored::some      ? draw.one_in(3) && n != kept
                      : ignored == Ignored::sequences ? whole[static_cast<std::size_t>(n / T)]
                                                      : n != kept;
    if (drop) batch.targets[static_cast<std::size_t>(n)] = reference::Batch::ignored;
  }
}

}  // namespace

spec::ModelSpec tiny_model(std::uint64_t seed) {
  Draws draw(seed, model_stream);
  spec::ModelSpec model;
  model.family = draw.one_of({spec::Family::llama, spec::Family::qwen3});
  model.name = "drawn-" + std::to_string(seed);
  model.qk_norm = model.family == spec::Family::qwen3;
  model.vocab = draw.between(3, 24);
  model.width = draw.between(4, 13);
  model.layers = draw.between(1, 3);
  model.kv_heads = draw.between(1, 3);
  model.heads = model.kv_heads * draw.between(1, 3);
  model.head_dim = 2 * draw.between(1, 4);
  model.ffn = draw.between(3, 17);
  model.context = 32;
  model.tied_embeddings = draw.one_in(2);
  model.norm_eps = draw.one_of({1e-6, 1e-5, 1e-2});
  model.rope_theta = draw.one_of({100.0, 10000.0, 500000.0});
  if (model.family == spec::Family::llama && draw.one_in(3))
    model.rope_scaling =
        spec::RopeScaling{.factor = 4, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 16};
  model.init_std = draw.one_of({0.02, 0.2, 0.5});
  model.qkv_bias = draw.one_in(3);
  if (model.qkv_bias && !model.qk_norm) model.family = spec::Family::qwen2;
  if (draw.one_in(3)) model.window = draw.between(1, 8);
  model.mlp = draw.one_in(3) ? spec::Mlp::geglu : spec::Mlp::swiglu;
  model.qk_norm_across_heads = model.qk_norm && draw.one_in(3);
  return model;
}

spec::ModelSpec latent_model(std::uint64_t seed) {
  Draws draw(seed, latent_stream);
  spec::ModelSpec model = seed % 2 ? sparse_model(seed) : tiny_model(seed);
  model.name += "-latent";
  model.family = spec::Family::deepseek_v3;
  model.qk_norm = model.qk_norm_across_heads = model.qkv_bias = false;
  model.heads = model.kv_heads = draw.between(1, 4);
  spec::LatentAttention latent;
  latent.query_rank = draw.one_in(3) ? 0 : draw.between(2, 7);
  latent.key_value_rank = draw.between(2, 7);
  latent.rope_dim = 2 * draw.between(1, 4);
  latent.value_dim = draw.between(1, 12);
  latent.interleaved = draw.one_in(2);
  latent.norm_eps = draw.one_of({1e-6, 1e-2});
  model.head_dim = latent.rope_dim + draw.between(1, 5);
  model.latent = latent;
  if (draw.one_in(3)) model.rope_scaling = draw_yarn(draw);
  return model;
}

spec::ModelSpec sparse_model(std::uint64_t seed) {
  Draws draw(seed, experts_stream);
  spec::ModelSpec model = tiny_model(seed);
  model.name += "-experts";
  model.family = model.qk_norm ? spec::Family::qwen3_moe : spec::Family::mixtral;
  spec::Experts experts;
  experts.count = draw.between(1, 7);
  experts.active = draw.between(1, experts.count);
  experts.width = draw.between(2, 11);
  experts.shared_width = draw.one_in(2) ? draw.between(1, 9) : 0;
  experts.every = draw.between(1, model.layers);
  experts.first_dense = draw.between(0, model.layers / experts.every * experts.every - 1);
  experts.scoring = draw.one_of({spec::Scoring::softmax, spec::Scoring::sigmoid});
  experts.renormalised = draw.one_in(2);
  experts.scaling_factor = draw.one_of({1.0, 2.5});
  model.experts = experts;
  return model;
}

spec::ModelSpec routed_model(std::uint64_t seed) {
  Draws draw(seed, groups_stream);
  spec::ModelSpec model = sparse_model(seed);
  model.qk_norm_across_heads = model.qk_norm && draw.one_in(2);
  spec::Experts& experts = *model.experts;
  experts.router_bias = draw.one_in(2);
  if (draw.one_in(2)) {
    experts.groups = draw.between(2, 3);
    experts.count = experts.groups * draw.between(2, 3);
    experts.active_groups = draw.between(1, experts.groups);
    experts.active = draw.between(1, experts.active_groups * (experts.count / experts.groups));
  }
  return model;
}

std::vector<spec::ModelSpec> corner_models() {
  std::vector<spec::ModelSpec> models;
  const auto add = [&](const char* name, spec::Family family, auto&& change) {
    models.push_back(corner(name, family));
    change(models.back());
  };
  using spec::Family;
  using spec::ModelSpec;
  add("llama-grouped-untied", Family::llama, [](ModelSpec&) {});
  add("llama-geglu", Family::llama, [](ModelSpec& m) { m.mlp = spec::Mlp::geglu; });
  add("qwen2-grouped-untied", Family::qwen2, [](ModelSpec&) {});
  add("qwen3-grouped-tied", Family::qwen3, [](ModelSpec& m) { m.tied_embeddings = true; });
  // One head: every index over heads is 0, so only here does a wrong stride go unpunished; the others tell
  // it.
  add("llama-one-head", Family::llama, [](ModelSpec& m) { m.heads = m.kv_heads = 1; });
  add("llama-one-kv-head-tied", Family::llama,
      [](ModelSpec& m) { m.kv_heads = 1, m.tied_embeddings = true; });
  add("qwen3-as-many-kv-heads", Family::qwen3, [](ModelSpec& m) { m.kv_heads = m.heads; });
  // Biases go in before the norms of heads.
  add("qwen3-biased", Family::qwen3, [](ModelSpec& m) { m.qkv_bias = true; });
  // The smallest head: one rotated pair.
  add("qwen3-one-pair", Family::qwen3, [](ModelSpec& m) { m.head_dim = 2; });
  // A row of the queries' norm has more entries than one of the keys'.
  add("qwen3-normed-across-heads", Family::qwen3, [](ModelSpec& m) { m.qk_norm_across_heads = true; });
  // Nothing is a multiple of anything: catches swapped extents.
  add("llama-odd", Family::llama, [](ModelSpec& m) {
    m.vocab = 17, m.width = 7, m.layers = 3, m.heads = 3, m.kv_heads = 1, m.head_dim = 6, m.ffn = 5;
  });
  add("llama-scaled-rope", Family::llama, [](ModelSpec& m) {
    m.rope_theta = 500000;
    m.rope_scaling =
        spec::RopeScaling{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 16};
    m.head_dim = 8;
  });
  add("llama-window", Family::llama, [](ModelSpec& m) { m.window = 3; });
  // Of four pairs the first keep their frequencies; cosines and sines have a factor.
  const auto by_yarn = [](ModelSpec& m) {
    m.head_dim = 8;
    m.rope_scaling = spec::RopeScaling{
        .factor = 4, .original_context = 512, .kind = spec::RopeScalingKind::yarn, .mscale_all_dim = 1.3};
  };
  add("llama-yarn", Family::llama, by_yarn);
  add("qwen3-yarn", Family::qwen3, by_yarn);
  return models;
}

std::vector<spec::ModelSpec> latent_models() {
  std::vector<spec::ModelSpec> models;
  const auto add = [&](const char* name, const spec::LatentAttention& latent, auto&& change) {
    spec::ModelSpec model = corner(name, spec::Family::deepseek_v3);
    model.kv_heads = model.heads = 3;
    model.head_dim = 7;
    model.latent = latent;
    change(model);
    models.push_back(model);
  };
  using spec::ModelSpec;
  add("latent", {.query_rank = 5, .key_value_rank = 6, .rope_dim = 4, .value_dim = 2}, [](ModelSpec&) {});
  add("latent-direct-queries-wide-values",
      {.query_rank = 0, .key_value_rank = 3, .rope_dim = 2, .value_dim = 9, .norm_eps = 1e-2},
      [](ModelSpec& m) { m.tied_embeddings = true; });
  // Of eight turned entries each pair has another part of the ramp.
  add("latent-yarn-halves",
      {.query_rank = 4, .key_value_rank = 5, .rope_dim = 8, .value_dim = 4, .interleaved = false},
      [](ModelSpec& m) {
        m.head_dim = 10;
        m.rope_scaling = spec::RopeScaling{.factor = 4,
                                           .original_context = 512,
                                           .kind = spec::RopeScalingKind::yarn,
                                           .mscale = 0.7,
                                           .mscale_all_dim = 1.3};
      });
  add("latent-one-head-window", {.query_rank = 3, .key_value_rank = 4, .rope_dim = 2, .value_dim = 3},
      [](ModelSpec& m) { m.heads = m.kv_heads = 1, m.head_dim = 3, m.window = 3; });
  return models;
}

std::string describe(const spec::ModelSpec& m) {
  std::ostringstream out;
  out << m.name << ": " << to_string(m.family) << " V=" << m.vocab << " D=" << m.width << " L=" << m.layers
      << " H=" << m.heads << " K=" << m.kv_heads << " E=" << m.head_dim << " F=" << m.ffn
      << (m.tied_embeddings ? " tied" : " untied") << (m.mlp == spec::Mlp::swiglu ? "" : " geglu")
      << (m.qkv_bias ? " qkv_bias" : "") << (m.qk_norm_across_heads ? " normed across heads" : "")
      << (m.rope_scaling ? " scaled rope" : "") << " init_std=" << m.init_std;
  if (m.window > 0) out << " window=" << m.window;
  if (const auto& a = m.latent)
    out << " Cq=" << a->query_rank << " Ckv=" << a->key_value_rank << " R=" << a->rope_dim
        << " W=" << a->value_dim << (a->interleaved ? "" : " halves");
  return out.str();
}

std::string describe(const reference::Batch& batch) {
  return "B=" + std::to_string(batch.B) + " T=" + std::to_string(batch.T) +
         (batch.documents.empty() ? "" : " documents") + " valid=" + std::to_string(batch.valid_tokens());
}

reference::Batch tiny_batch(const spec::ModelSpec& model, std::int64_t B, std::int64_t T, Documents documents,
                            Ignored ignored, std::uint64_t seed) {
  if (B < 1 || T < 1) throw std::invalid_argument("tiny_batch: B and T must be at least 1");
  Draws draw(seed, batch_stream);
  reference::Batch batch{.B = B, .T = T, .ids = {}, .targets = {}, .documents = {}, .positions = {}};
  const std::int64_t few = draw.between(0, std::min<std::int64_t>(model.vocab - 1, 2));
  for (std::int64_t n = 0; n < B * T; ++n) {
    batch.ids.push_back(draw.one_in(3) ? few : draw.between(0, model.vocab - 1));
    batch.targets.push_back(draw.between(0, model.vocab - 1));
  }
  for (std::int64_t b = 0; b < B; ++b) {
    if (documents == Documents::packed) {
      pack(draw, T, batch.documents, batch.positions);
    } else {
      for (std::int64_t t = 0; t < T; ++t) batch.positions.push_back(t);
    }
  }
  ignore(draw, ignored, batch);
  return batch;
}

reference::Batch tiny_batch(const spec::ModelSpec& model, std::uint64_t seed) {
  Draws draw(seed, shape_stream);
  const std::int64_t B = draw.between(1, 4), T = draw.between(1, 9);
  const auto documents = draw.one_of({Documents::whole, Documents::packed});
  const auto ignored = draw.one_of({Ignored::none, Ignored::some, Ignored::sequences, Ignored::most});
  return tiny_batch(model, B, T, documents, ignored, seed);
}

reference::Batch sequences(const reference::Batch& batch, std::int64_t begin, std::int64_t end) {
  const auto rows = [&](const std::vector<std::int64_t>& all) {
    if (all.empty()) return all;
    return std::vector<std::int64_t>(all.begin() + begin * batch.T, all.begin() + end * batch.T);
  };
  return {.B = end - begin,
          .T = batch.T,
          .ids = rows(batch.ids),
          .targets = rows(batch.targets),
          .documents = rows(batch.documents),
          .positions = rows(batch.positions)};
}

std::vector<reference::Batch> micro_batches(const reference::Batch& batch, std::int64_t micro) {
  std::vector<reference::Batch> pieces;
  for (std::int64_t begin = 0; begin < batch.B; begin += micro)
    pieces.push_back(sequences(batch, begin, std::min(begin + micro, batch.B)));
  return pieces;
}

}  // namespace assay::tests
