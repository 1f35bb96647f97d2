// Attention as graphs of cuDNN, which has a fused kernel for each pass. The library recognises the operations
// by their kinds, order and data types, so what looks needless below (a factor of 1, a number copied from
// fp32) is not. Documents are sequences of different lengths, ragged tensors in the library's words: batches
// of as many as there are slots, those that are left of no tokens.
#include "impl/ops/attention/attention_cudnn.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAGuard.h>

#include <array>
#include <atomic>
#include <cmath>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

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
  std::int64_t B, T, H, K, E;
  std::int64_t slots;  ///< for documents, of at most T tokens, of all sequences; 0: each sequence is one
  bool forward;
  bool fixed_order;  ///< of backward's sums
  int device;
  auto operator<=>(const Shape&) const = default;
};

enum Uid : std::int64_t {
  q = 1,
  k,
  v,
  y,
  dy,
  lse,
  scale,
  dq,
  dk,
  dv,
  one,
  hidden,
  hidden_beyond,
  delta,
  dq_sum,
  dk_of_heads,
  dv_of_heads,
  lengths,
  offsets_qkv,
  offsets_y,
  offsets_rows
};

constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT, bf16 = CUDNN_DATA_BFLOAT16;

/// Extents and strides of what the graph is made of. cuDNN's order of extents is [B, heads, T, E]. Documents
/// are sequences of it, each where its offsets say.
struct Layouts {
  Extents queries, keys, keys_turned, row, square;
  Extents in_qkv, in_qkv_turned, in_heads_of_qkv, in_y, by_head, by_row, by_query, by_key;
  explicit Layouts(const Shape& s) : Layouts(s, s.slots > 0 ? s.slots : s.B) {}

 private:
  Layouts(const Shape& s, std::int64_t B)
      : queries{B, s.H, s.T, s.E},
        keys{B, s.K, s.T, s.E},
        keys_turned{B, s.K, s.E, s.T},
        row{B, s.H, s.T, 1},
        square{B, s.H, s.T, s.T},
        in_qkv{s.T * (s.H + 2 * s.K) * s.E, s.E, (s.H + 2 * s.K) * s.E, 1},
        in_qkv_turned{in_qkv[0], in_qkv[1], 1, in_qkv[2]},
        in_heads_of_qkv{in_qkv[0] * (s.H / s.K), s.E, in_qkv[2] * (s.H / s.K), 1},
        in_y{s.T * s.H * s.E, s.E, s.H * s.E, 1},
        by_head{s.H * s.T * s.E, s.T * s.E, s.E, 1},
        by_row{s.H * s.T, s.T, 1, 1},
        by_query{s.H * s.T * s.T, s.T * s.T, s.T, 1},
        by_key{s.H * s.T * s.T, s.T * s.T, 1, s.T} {}
};

/// A graph in the making: what both passes have in common.
struct Draft {
  Graph& graph;
  const Shape& s;
  const Layouts at;
  /// Tokens of each document, and where each begins in qkv, in y and among the rows of lse [tokens, H]. Null
  /// without documents.
  Node tokens = nullptr, from_qkv = nullptr, from_y = nullptr, from_rows = nullptr;
  const Node q, k, y, lse, scale;

  Draft(Graph& into, const Shape& shape)
      : graph(into),
        s(shape),
        at(shape),
        tokens(s.slots > 0 ? graph.list(lengths, CUDNN_DATA_INT32, s.slots) : nullptr),
        from_qkv(offsets(offsets_qkv)),
        from_y(offsets(offsets_y)),
        from_rows(offsets(offsets_rows)),
        q(graph.tensor(cudnn::q, bf16, at.queries, at.in_qkv, from_qkv)),
        k(graph.tensor(cudnn::k, bf16, at.keys_turned, at.in_qkv_turned, from_qkv)),
        y(graph.tensor(cudnn::y, bf16, at.queries, at.in_y, from_y)),
        lse(rows(cudnn::lse)),
        scale(graph.scalar(cudnn::scale)) {}

  Node offsets(Uid uid) const {
    return s.slots > 0 ? graph.list(uid, CUDNN_DATA_INT64, s.slots + 1) : nullptr;
  }
  /// A number a row, in memory.
  Node rows(Uid uid) const {
    const Extents by_token{s.H * s.T, 1, s.H, 1};
    return graph.tensor(uid, f32, at.row, from_rows ? by_token : at.by_row, from_rows);
  }
  Node square(cudnnDataType_t type = f32) const { return graph.between(type, at.square, at.by_query); }
  Node row() const { return graph.between(f32, at.row, at.by_row); }

  Node scores(bool zero_beyond) const {
    const Node products = graph.product(
        q, k, square(), {.rows = tokens, .columns = tokens, .zero_beyond = tokens && zero_beyond});
    return graph.pointwise(CUDNN_POINTWISE_MUL, products, scale, square());
  }
  /// -infinity where the key is behind the query, or either is beyond its document.
  Node masked(Node x) const {
    const auto index = [&](std::int64_t axis) { return graph.index(axis, x, square(CUDNN_DATA_INT32)); };
    const auto truth = [&](cudnnPointwiseMode_t mode, Node a, Node b) {
      return graph.truth(mode, a, b, square(CUDNN_DATA_BOOLEAN));
    };
    if (tokens) {
      const Node query = index(2), key = index(3);
      const Node real_query = truth(CUDNN_POINTWISE_CMP_LT, query, tokens);
      const Node real_key = truth(CUDNN_POINTWISE_CMP_LT, key, tokens);
      const Node real = truth(CUDNN_POINTWISE_LOGICAL_AND, real_query, real_key);
      x = graph.select(x, graph.scalar(hidden_beyond), real, square());
    }
    const Node query = index(2), key = index(3);
    const Node visible = truth(CUDNN_POINTWISE_CMP_GE, query, key);
    return graph.select(x, graph.scalar(hidden), visible, square());
  }
};

/// y = softmax(masked scores) v, and the logarithm of the softmax's sums.
void describe_forward(const Draft& d) {
  Graph& graph = d.graph;
  const Node v = graph.tensor(cudnn::v, bf16, d.at.keys, d.at.in_qkv, d.from_qkv);
  const Node scores = d.masked(d.scores(/*zero_beyond=*/true));
  const Node largest = graph.reduced(CUDNN_REDUCE_TENSOR_MAX, scores, d.row());
  const Node exponents = graph.pointwise(CUDNN_POINTWISE_SUB, scores, largest, d.square());
  const Node terms = graph.pointwise(CUDNN_POINTWISE_EXP, exponents, d.square());
  const Node sums = graph.reduced(CUDNN_REDUCE_TENSOR_ADD, terms, d.row());
  const Node logarithms = graph.pointwise(CUDNN_POINTWISE_LOG, sums, d.row());
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, logarithms, d.lse);
  const Node p = graph.pointwise(CUDNN_POINTWISE_DIV, terms, sums, d.square(bf16));
  graph.product(p, v, d.y, {.rows = d.tokens, .inner = d.tokens});
}

/// delta = sum over e of dy y, a number a row, in memory.
Node delta_of(const Draft& d, Node dy) {
  const Shape& s = d.s;
  Graph& graph = d.graph;
  const Node products =
      graph.pointwise(CUDNN_POINTWISE_MUL, dy, d.y,
                      graph.between(f32, d.at.queries, {s.H * s.T * s.E, s.T * s.E, s.H * s.E, 1}));
  const Node sums = graph.reduced(CUDNN_REDUCE_TENSOR_ADD, products, d.row());
  return graph.pointwise(CUDNN_POINTWISE_MUL, sums, graph.scalar(one), d.rows(delta));
}

/// left right [B, H, T, E], summed over the query heads of a key/value head. Documents have those of every
/// query head in memory, `in_heads` of it, at H / K times the offsets of `out`: cuDNN's rule.
void add_by_key_head(const Draft& d, Node left, Node right, Uid in_heads, Node out) {
  Graph& graph = d.graph;
  const Graph::Lengths lengths{.rows = d.tokens, .inner = d.tokens};
  if (d.at.queries == d.at.keys) {
    graph.product(left, right, out, lengths);
    return;
  }
  const Node of_heads = d.tokens
                            ? graph.tensor(in_heads, bf16, d.at.queries, d.at.in_heads_of_qkv, d.from_qkv)
                            : graph.between(bf16, d.at.queries, d.at.by_head);
  graph.reduced(CUDNN_REDUCE_TENSOR_ADD, graph.product(left, right, of_heads, lengths), out);
}

void describe_backward(const Draft& d) {
  Graph& graph = d.graph;
  const Layouts& at = d.at;
  const Node v = graph.tensor(cudnn::v, bf16, at.keys_turned, at.in_qkv_turned, d.from_qkv),
             dy = graph.tensor(cudnn::dy, bf16, at.queries, at.in_y, d.from_y),
             to_dq = graph.tensor(dq, bf16, at.queries, at.in_qkv, d.from_qkv),
             to_dk = graph.tensor(dk, bf16, at.keys, at.in_qkv, d.from_qkv),
             to_dv = graph.tensor(dv, bf16, at.keys, at.in_qkv, d.from_qkv);
  const auto turned = [&](Node x) { return graph.reshaped(x, graph.between(bf16, at.square, at.by_key)); };

  const Node deltas = delta_of(d, dy);
  const Node exponents =
      graph.pointwise(CUDNN_POINTWISE_SUB, d.scores(/*zero_beyond=*/false), d.lse, d.square());
  const Node p = graph.pointwise(CUDNN_POINTWISE_EXP, d.masked(exponents), d.square());
  add_by_key_head(d, turned(p), dy, dv_of_heads, to_dv);

  const Node dp = graph.product(dy, v, d.square(), {.rows = d.tokens, .columns = d.tokens});
  const Node centred = graph.pointwise(CUDNN_POINTWISE_SUB, dp, deltas, d.square());
  const Node weighted = graph.pointwise(CUDNN_POINTWISE_MUL, centred, p, d.square());
  const Node dscores = graph.pointwise(CUDNN_POINTWISE_MUL, weighted, d.scale, d.square());
  add_by_key_head(d, turned(dscores), d.q, dk_of_heads, to_dk);

  const Node keys = graph.reshaped(d.k, graph.between(f32, at.keys, at.in_qkv, d.from_qkv));
  const Graph::Lengths lengths{.rows = d.tokens, .inner = d.tokens};
  if (d.s.fixed_order) {
    graph.product(dscores, keys, to_dq, lengths);
    return;
  }
  const Node sum = graph.product(
      dscores, keys, graph.tensor(dq_sum, f32, at.queries, d.from_qkv ? at.in_qkv : at.by_head, d.from_qkv),
      lengths);
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
    shape.forward ? describe_forward({graph, shape}) : describe_backward({graph, shape});
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

/// What is asked of both passes, over `offsets` [S + 1] of documents or without.
Shape checked_shape(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, bool forward,
                    bool fixed_order, const at::Tensor& offsets) {
  TORCH_CHECK(!refusing, "asked to refuse");
  TORCH_CHECK(qkv.scalar_type() == at::kBFloat16, "cuDNN's attention is asked in bf16 only");
  TORCH_CHECK(qkv.numel() > 0, "cuDNN's attention is not asked for no tokens");
  TORCH_CHECK(cudnnGetVersion() >= least_version, "cuDNN ", cudnnGetVersion(), " is older than ",
              least_version);
  const int capability = at::cuda::getDeviceProperties(qkv.get_device())->major;
  TORCH_CHECK(!fixed_order || capability < 10, "a fixed order needs an engine of its own on this GPU");
  TORCH_CHECK(!offsets.defined() || capability == 9,
              "documents are given to cuDNN on GPUs of compute capability 9 only, where they were tried");
  TORCH_CHECK(!offsets.defined() || !fixed_order,
              "documents in a fixed order would take a gradient of all scores for each of their slots");
  return {.B = qkv.size(0),
          .T = qkv.size(1),
          .H = heads,
          .K = kv_heads,
          .E = qkv.size(3),
          .slots = offsets.defined() ? offsets.size(0) - 1 : 0,
          .forward = forward,
          .fixed_order = fixed_order,
          .device = qkv.get_device()};
}

/// One run of a graph. Holds its plan's lock and what its tensors are made of until it is enqueued.
class Call {
 public:
  Call(const Shape& s, const at::Tensor& qkv, const at::Tensor& offsets, std::size_t plan)
      : here_(qkv.device()),
        handle_(at::native::getCudnnHandle()),  // of this thread, on the current stream
        lock_(Graphs::all().mutex()),
        plan_(chosen(s, plan)),
        scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(s.E)))) {
    at_heads(qkv, s, {q, k, v});
    memory_[scale] = &scale_;
    memory_[hidden] = &below_all_;
    if (s.slots == 0) return;
    memory_[hidden_beyond] = &below_all_;
    const at::Tensor first = offsets.to(at::kLong);
    at(lengths, offsets.narrow(0, 1, s.slots) - offsets.narrow(0, 0, s.slots));
    at(offsets_qkv, first * ((s.H + 2 * s.K) * s.E));
    at(offsets_y, first * (s.H * s.E));
    at(offsets_rows, first * s.H);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void at(Uid uid, at::Tensor tensor) {
    memory_[uid] = tensor.data_ptr();
    held_.push_back(std::move(tensor));
  }
  /// The three parts of one tensor [B, T, H + 2K, E].
  void at_heads(const at::Tensor& qkv, const Shape& s, const std::array<Uid, 3>& parts) {
    at(parts[0], qkv.select(2, 0));
    at(parts[1], qkv.select(2, s.H));
    at(parts[2], qkv.select(2, s.H + s.K));
  }
  void run() {
    memory_[one] = &unit_;
    const at::Tensor workspace = at::empty({plan_.workspace_bytes}, held_.front().options().dtype(at::kByte));
    Graph::run(handle_, plan_, memory_, workspace.data_ptr());
  }

 private:
  const Plan& chosen(const Shape& s, std::size_t plan) const {
    Graph& graph = Graphs::all().of(s, handle_);
    const Plan* chosen = graph.plan(plan);
    TORCH_CHECK(chosen, "no plan of cuDNN takes this shape. ", graph.refusal());
    return *chosen;
  }

  const c10::cuda::CUDAGuard here_;
  const cudnnHandle_t handle_;
  const std::lock_guard<std::mutex> lock_;
  const Plan& plan_;
  float scale_, unit_ = 1, below_all_ = -std::numeric_limits<float>::infinity();
  std::map<std::int64_t, void*> memory_;
  std::vector<at::Tensor> held_;
};

/// [B, T, H] of [B, H, T], and back.
at::Tensor turned(const at::Tensor& rows) { return rows.transpose(1, 2).contiguous(); }

}  // namespace

Refusing::Refusing() : before_(refusing.exchange(true)) {}
Refusing::~Refusing() { refusing = before_; }

Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads, const at::Tensor& offsets) {
  const Shape s = checked_shape(qkv, heads, kv_heads, /*forward=*/true, /*fixed_order=*/false, offsets);
  check_places({&qkv});  // what is computed from offsets is aligned, they need not be
  Call call(s, qkv, offsets, 0);
  const at::Tensor value = at::empty({s.B, s.T, s.H, s.E}, qkv.options()),
                   by_token = at::empty({s.B, s.T, s.H}, qkv.options().dtype(at::kFloat));
  call.at(y, value);
  call.at(lse, by_token);
  call.run();
  return {value, turned(by_token)};
}

at::Tensor backward(const at::Tensor& upstream, const at::Tensor& qkv, const at::Tensor& value,
                    const at::Tensor& logsumexp, std::int64_t heads, std::int64_t kv_heads, bool fixed_order,
                    const at::Tensor& offsets, std::size_t plan) {
  const Shape s = checked_shape(qkv, heads, kv_heads, /*forward=*/false, fixed_order, offsets);
  check_places({&upstream, &qkv, &value, &logsumexp});
  Call call(s, qkv, offsets, plan);
  at::Tensor dqkv = at::empty_like(qkv);
  const at::TensorOptions wide = qkv.options().dtype(at::kFloat);
  call.at_heads(dqkv, s, {dq, dk, dv});
  call.at(y, value);
  call.at(dy, upstream);
  call.at(lse, s.slots > 0 ? turned(logsumexp) : logsumexp);
  call.at(delta, at::empty({s.B, s.H, s.T}, wide));
  if (!fixed_order) call.at(dq_sum, at::empty({s.B, s.T, s.slots > 0 ? s.H + 2 * s.K : s.H, s.E}, wide));
  if (s.slots > 0 && s.H > s.K)
    for (const Uid of_heads : {dk_of_heads, dv_of_heads})
      call.at(of_heads, at::empty({s.B, s.T, (s.H + 2 * s.K) * (s.H / s.K), s.E}, qkv.options()));
  call.run();
  return dqkv;
}

std::vector<PlanFacts> plans(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads,
                             bool fixed_order, const at::Tensor& offsets) {
  const Shape s = checked_shape(qkv, heads, kv_heads, /*forward=*/false, fixed_order, offsets);
  const c10::cuda::CUDAGuard here(qkv.device());
  const std::lock_guard lock(Graphs::all().mutex());
  Graph& graph = Graphs::all().of(s, at::native::getCudnnHandle());
  std::vector<PlanFacts> out;
  while (const Plan* plan = graph.plan(out.size())) out.push_back({plan->name, plan->workspace_bytes});
  return out;
}

}  // namespace assay::impl::attention::cudnn
