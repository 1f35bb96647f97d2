// Attention's backward as a graph of cuDNN, which has one fused kernel for it. The library recognises the
// operations by their kinds, order and data types, so what looks needless below (a factor of 1, a number
// copied from fp32) is not.
#include "impl/ops/attention/attention_cudnn.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAGuard.h>

#include <atomic>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <mutex>

#include "impl/ops/attention/cudnn_graph.hpp"

namespace assay::impl::attention::cudnn {

using impl::cudnn::Extents;
using impl::cudnn::Graph;
using impl::cudnn::Node;
using impl::cudnn::Plan;

namespace {

/// From here on backward takes sequences of any length without a mask for what is behind their end.
constexpr std::size_t least_version = 91600;

/// What a graph depends on.
struct Shape {
  std::int64_t B, T, H, K, E, W;
  bool fixed_order;
  int device;
  std::int64_t token() const { return (H + K) * E + K * W; }  ///< entries of q | k | v
  auto operator<=>(const Shape&) const = default;
};

enum Uid : std::int64_t { q = 1, k, v, y, dy, lse, scale, dq, dk, dv, one, hidden, delta, dq_sum };

constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT, bf16 = CUDNN_DATA_BFLOAT16;

/// Extents and strides of what the graph is made of. cuDNN's order of extents is [B, heads, T, E].
struct Layouts {
  Extents queries, outputs, keys, values, keys_turned, values_turned, row, square;
  Extents key_strides, value_strides, keys_turned_strides, values_turned_strides;
  Extents in_y, queries_by_head, outputs_by_head, by_row, by_query, by_key;
  explicit Layouts(const Shape& s)
      : queries{s.B, s.H, s.T, s.E},
        outputs{s.B, s.H, s.T, s.W},
        keys{s.B, s.K, s.T, s.E},
        values{s.B, s.K, s.T, s.W},
        keys_turned{s.B, s.K, s.E, s.T},
        values_turned{s.B, s.K, s.W, s.T},
        row{s.B, s.H, s.T, 1},
        square{s.B, s.H, s.T, s.T},
        key_strides{s.T * s.token(), s.E, s.token(), 1},
        value_strides{s.T * s.token(), s.W, s.token(), 1},
        keys_turned_strides{s.T * s.token(), s.E, 1, s.token()},
        values_turned_strides{s.T * s.token(), s.W, 1, s.token()},
        in_y{s.T * s.H * s.W, s.W, s.H * s.W, 1},
        queries_by_head{s.H * s.T * s.E, s.T * s.E, s.E, 1},
        outputs_by_head{s.H * s.T * s.W, s.T * s.W, s.W, 1},
        by_row{s.H * s.T, s.T, 1, 1},
        by_query{s.H * s.T * s.T, s.T * s.T, s.T, 1},
        by_key{s.H * s.T * s.T, s.T * s.T, 1, s.T} {}
};

struct Inputs {
  Node q, k, v, y, dy, lse, scale;
};

/// delta = sum over e of dy y, a number a row, in memory.
Node delta_of(Graph& graph, const Layouts& at, const Shape& s, const Inputs& in) {
  const Node products =
      graph.pointwise(CUDNN_POINTWISE_MUL, in.dy, in.y,
                      graph.between(f32, at.outputs, {s.H * s.T * s.W, s.T * s.W, s.H * s.W, 1}));
  const Node sums = graph.sum(products, graph.between(f32, at.row, at.by_row));
  return graph.pointwise(CUDNN_POINTWISE_MUL, sums, graph.scalar(one),
                         graph.tensor(delta, f32, at.row, at.by_row));
}

/// p = exp(scale q k - lse), 0 where the key is behind the query.
Node probabilities(Graph& graph, const Layouts& at, const Inputs& in) {
  const auto square = [&](cudnnDataType_t type = f32) { return graph.between(type, at.square, at.by_query); };
  const Node products = graph.product(in.q, in.k, square());
  const Node scores = graph.pointwise(CUDNN_POINTWISE_MUL, products, in.scale, square());
  const Node exponents = graph.pointwise(CUDNN_POINTWISE_SUB, scores, in.lse, square());
  const Node query = graph.index(2, exponents, square(CUDNN_DATA_INT32));
  const Node key = graph.index(3, exponents, square(CUDNN_DATA_INT32));
  const Node visible = graph.at_least(query, key, square(CUDNN_DATA_BOOLEAN));
  const Node masked = graph.select(exponents, graph.scalar(hidden), visible, square());
  return graph.pointwise(CUDNN_POINTWISE_EXP, masked, square());
}

/// left right, of `extents` [B, H, T, E or W], summed over the query heads of a key/value head.
void add_by_key_head(Graph& graph, const Shape& s, const Extents& extents, const Extents& strides, Node left,
                     Node right, Node out) {
  if (s.H == s.K) {
    graph.product(left, right, out);
    return;
  }
  graph.sum(graph.product(left, right, graph.between(bf16, extents, strides)), out);
}

void describe(Graph& graph, const Shape& s) {
  const Layouts at(s);
  const Inputs in{.q = graph.tensor(q, bf16, at.queries, at.key_strides),
                  .k = graph.tensor(k, bf16, at.keys_turned, at.keys_turned_strides),
                  .v = graph.tensor(v, bf16, at.values_turned, at.values_turned_strides),
                  .y = graph.tensor(y, bf16, at.outputs, at.in_y),
                  .dy = graph.tensor(dy, bf16, at.outputs, at.in_y),
                  .lse = graph.tensor(lse, f32, at.row, at.by_row),
                  .scale = graph.scalar(scale)};
  const Node to_dq = graph.tensor(dq, bf16, at.queries, at.key_strides),
             to_dk = graph.tensor(dk, bf16, at.keys, at.key_strides),
             to_dv = graph.tensor(dv, bf16, at.values, at.value_strides);
  const auto square = [&] { return graph.between(f32, at.square, at.by_query); };
  const auto turned = [&](Node x) { return graph.reshaped(x, graph.between(bf16, at.square, at.by_key)); };

  const Node deltas = delta_of(graph, at, s, in), p = probabilities(graph, at, in);
  add_by_key_head(graph, s, at.outputs, at.outputs_by_head, turned(p), in.dy, to_dv);

  const Node dp = graph.product(in.dy, in.v, square());
  const Node centred = graph.pointwise(CUDNN_POINTWISE_SUB, dp, deltas, square());
  const Node weighted = graph.pointwise(CUDNN_POINTWISE_MUL, centred, p, square());
  const Node dscores = graph.pointwise(CUDNN_POINTWISE_MUL, weighted, in.scale, square());
  add_by_key_head(graph, s, at.queries, at.queries_by_head, turned(dscores), in.q, to_dk);

  const Node keys = graph.reshaped(in.k, graph.between(f32, at.keys, at.key_strides));
  if (s.fixed_order) {
    graph.product(dscores, keys, to_dq);
    return;
  }
  const Node sum = graph.product(dscores, keys, graph.tensor(dq_sum, f32, at.queries, at.queries_by_head));
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, sum, to_dq);
}

/// Graphs by shape. cuDNN does not promise that a plan may be run by two threads at once, so one holds the
/// lock from the search to the launch.
class Graphs {
 public:
  static Graphs& all() {
    static Graphs& graphs = *new Graphs;  // cuDNN may be gone when static objects are destroyed
    return graphs;
  }
  std::mutex& mutex() { return mutex_; }
  Graph& of(const Shape& shape, cudnnHandle_t handle) {
    const auto found = graphs_.find(shape);
    if (found != graphs_.end()) return found->second;
    Graph graph;
    describe(graph, shape);
    graph.finish(handle);
    return graphs_.emplace(shape, std::move(graph)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Shape, Graph> graphs_;
};

std::atomic<bool> refusing = false;

/// The graph's strides and alignment are those of whole tensors.
void check_places(std::initializer_list<const at::Tensor*> tensors) {
  for (const at::Tensor* tensor : tensors)
    TORCH_CHECK(
        tensor->is_contiguous() && reinterpret_cast<std::uintptr_t>(tensor->const_data_ptr()) % 16 == 0,
        "cuDNN's attention is given contiguous tensors at multiples of 16 bytes, not one of strides ",
        tensor->strides());
}

Shape checked_shape(const Heads& x, bool fixed_order) {
  TORCH_CHECK(!refusing, "asked to refuse");
  TORCH_CHECK(x.q.scalar_type() == at::kBFloat16, "cuDNN's attention is asked in bf16 only");
  TORCH_CHECK(x.q.numel() > 0, "cuDNN's attention is not asked for no tokens");
  TORCH_CHECK(cudnnGetVersion() >= least_version, "cuDNN ", cudnnGetVersion(), " is older than ",
              least_version);
  TORCH_CHECK(!fixed_order || at::cuda::getDeviceProperties(x.q.get_device())->major < 10,
              "a fixed order needs an engine of its own on this GPU");
  return {.B = x.B,
          .T = x.T,
          .H = x.H,
          .K = x.K,
          .E = x.E,
          .W = x.W,
          .fixed_order = fixed_order,
          .device = x.q.get_device()};
}

/// Copied side by side.
Heads together(const Heads& x) {
  const at::Tensor joined = at::cat({x.q.flatten(2), x.k.flatten(2), x.v.flatten(2)}, 2);
  Heads out(joined, x.H, x.K, {.value_dim = x.W});
  out.scale = x.scale;
  return out;
}

}  // namespace

Refusing::Refusing() : before_(refusing.exchange(true)) {}
Refusing::~Refusing() { refusing = before_; }

Gradients backward(const at::Tensor& upstream, const Heads& apart, const at::Tensor& value,
                   const at::Tensor& logsumexp, bool fixed_order, std::size_t plan) {
  const Heads x = apart.joined.defined() ? apart : together(apart);
  const at::Tensor& qkv = x.joined;
  const Shape s = checked_shape(x, fixed_order);
  check_places({&upstream, &qkv, &value, &logsumexp});
  const c10::cuda::CUDAGuard here(qkv.device());
  const cudnnHandle_t handle = at::native::getCudnnHandle();  // of this thread, on the current stream
  const std::lock_guard lock(Graphs::all().mutex());
  Graph& graph = Graphs::all().of(s, handle);
  const Plan* chosen = graph.plan(plan);
  TORCH_CHECK(chosen, "no plan of cuDNN takes this shape. ", graph.refusal());

  const at::TensorOptions wide = qkv.options().dtype(at::kFloat);
  Gradients out = gradients_like(x);
  const at::Tensor deltas = at::empty({s.B, s.H, s.T}, wide),
                   workspace = at::empty({chosen->workspace_bytes}, qkv.options().dtype(at::kByte));
  const at::Tensor sums = fixed_order ? at::Tensor() : at::empty({s.B, s.H, s.T, s.E}, wide);
  float factor = static_cast<float>(x.scale), unit = 1, below_all = -std::numeric_limits<float>::infinity();
  std::map<std::int64_t, void*> memory = {
      {q, x.q.data_ptr()},       {k, x.k.data_ptr()},         {v, x.v.data_ptr()}, {y, value.data_ptr()},
      {dy, upstream.data_ptr()}, {lse, logsumexp.data_ptr()}, {scale, &factor},    {dq, out.dq.data_ptr()},
      {dk, out.dk.data_ptr()},   {dv, out.dv.data_ptr()},     {one, &unit},        {hidden, &below_all},
      {delta, deltas.data_ptr()}};
  if (sums.defined()) memory[dq_sum] = sums.data_ptr();
  Graph::run(handle, *chosen, memory, workspace.data_ptr());
  return out;
}

std::vector<PlanFacts> plans(const Heads& x, bool fixed_order) {
  const Shape s = checked_shape(x, fixed_order);
  const c10::cuda::CUDAGuard here(x.q.device());
  const std::lock_guard lock(Graphs::all().mutex());
  Graph& graph = Graphs::all().of(s, at::native::getCudnnHandle());
  std::vector<PlanFacts> out;
  while (const Plan* plan = graph.plan(out.size())) out.push_back({plan->name, plan->workspace_bytes});
  return out;
}

}  // namespace assay::impl::attention::cudnn
