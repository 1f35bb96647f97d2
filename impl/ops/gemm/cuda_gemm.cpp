#include "impl/ops/gemm/cuda_gemm.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "impl/ops/gemm/gemm_pins.hpp"
#include "spec/ops/bias/bias.hpp"

namespace assay::impl::cuda {

namespace {

constexpr std::size_t workspace_bytes = 64u << 20;
constexpr int most_candidates = 8;
/// Results that are not zero of a call that compares candidates, and calls after which none has shown
/// anything.
constexpr std::int64_t least_compared = 1 << 18;
/// Of FP8: sums of partial sums of about 14 bits (spec/ops/fp8_gemm/fp8_gemm.md) are mostly exact, and differ
/// in fewer.
constexpr std::int64_t least_compared_of_fp8 = 1 << 22;
constexpr int most_compared = 200;
/// Bytes that a bias must begin at a multiple of: cuBLASLt asks nothing about it when it chooses an
/// algorithm, and some read 16 bytes at a time.
constexpr std::uint32_t bias_alignment = 16;

void check(cublasStatus_t status, const char* call) {
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, call, " failed: ", cublasLtGetStatusString(status));
}
#define ASSAY_CUBLAS_CHECK(call) check((call), #call)

cudaDataType_t type_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return CUDA_R_64F;
    case at::kFloat:
      return CUDA_R_32F;
    case at::kBFloat16:
      return CUDA_R_16BF;
    case at::kFloat8_e4m3fn:
      return CUDA_R_8F_E4M3;
    case at::kFloat8_e5m2:
      return CUDA_R_8F_E5M2;
    default:
      TORCH_CHECK(false, "no GEMM of elements of type ", type);
  }
}

using spec::quantise::Scaling;

cublasLtMatmulMatrixScale_t mode_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::tensor:
      return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    case Scaling::row:
      return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    case Scaling::block_1x128:
      return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case Scaling::block_128x128:
      return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    case Scaling::mx_1x32:
      return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  }
  TORCH_CHECK(false, "no such scaling");
}

/// Largest power of two up to 256 that divides an address: what algorithms are chosen by.
std::uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  std::uint32_t bytes = 256;
  while (address % bytes != 0) bytes /= 2;
  return bytes;
}

/// Of an operand, what a choice of algorithm depends on.
struct Side {
  at::ScalarType type;
  bool transposed;
  bool scaled;  ///< FP8: `type` are codes, multiplied by scales
  Scaling scaling;
  auto operator<=>(const Side&) const = default;
};

Side side_of(const Operand& operand) {
  return {.type = operand.matrix.scalar_type(),
          .transposed = operand.transposed,
          .scaled = operand.scales.defined(),
          .scaling = operand.scaling};
}

/// What a choice of algorithm depends on. cuBLAS is column-major: our row-major out [M, N] is its [N, M], so
/// the right matrix is its first one.
struct Key {
  int device;
  Side first, second;
  bool accumulate, bias, fast_accumulation;
  std::int64_t m, n, k;  ///< of cuBLAS: m = N, n = M, k = K
  at::ScalarType out;
  std::array<std::uint32_t, 4> alignments;
  auto operator<=>(const Key&) const = default;
};

/// The algorithm of a plan's calls, or the search for it. Neither: the library's first choice, for now.
struct Choice {
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  std::unique_ptr<Search> search;
};

/// Descriptors and algorithms of one key; they live as long as the process.
struct Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  std::vector<cublasLtMatmulAlgo_t> candidates;  ///< of the library's heuristics, best guess first
  bool adds = false;                             ///< whether a call has added to what lay there
  Choice free;
  Choice fixed;  ///< while `deterministic()`, in that generation of gemm_pins()
  std::uint64_t fixed_in = 0;
  int compared = 0;  ///< calls whose result was to show which candidates give the same bits
};

/// "e4m3.128", the FP8 codes and their scales' mode in cuBLASLt's numbers, or "bf16".
std::string text_of(const Side& side) {
  const auto type = [&] {
    switch (side.type) {
      case at::kBFloat16:
        return "bf16";
      case at::kFloat:
        return "f32";
      case at::kFloat8_e4m3fn:
        return "e4m3";
      case at::kFloat8_e5m2:
        return "e5m2";
      default:
        return "f64";
    }
  }();
  return side.scaled ? type + ("." + std::to_string(mode_of(side.scaling))) : type;
}

/// "bf16-f32-tn-acc-m6912-n49152-k2304-a256-256-256-256": what the choice on disk is found by.
std::string text_of(const Key& key) {
  std::string text = text_of(key.first);
  if (key.second.scaled) text += "-" + text_of(key.second);
  text += "-" + text_of(Side{.type = key.out, .transposed = false, .scaled = false, .scaling = {}}) + "-" +
          (key.first.transposed ? "t" : "n") + (key.second.transposed ? "t" : "n") +
          (key.fast_accumulation ? "-fast" : "") + (key.accumulate ? "-acc" : "") +
          (key.bias ? "-bias" : "") + "-m" + std::to_string(key.m) + "-n" + std::to_string(key.n) + "-k" +
          std::to_string(key.k) + "-a";
  for (std::size_t i = 0; i < key.alignments.size(); ++i)
    text += (i ? "-" : "") + std::to_string(key.alignments[i]);
  return text;
}

cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t out;
  ASSAY_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&out, type, static_cast<std::uint64_t>(rows),
                                                static_cast<std::uint64_t>(columns), rows));
  return out;
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  ASSAY_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  ASSAY_CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

/// What a GEMM reads beside its matrices. nullptr: nothing.
struct Extras {
  const void* bias;
  const void *first_scales, *second_scales;
};

/// These addresses are the descriptor's, and those of another call next time.
void set(cublasLtMatmulDesc_t operation, const Extras& extras) {
  if (extras.bias) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, extras.bias);
  if (extras.first_scales) set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, extras.first_scales);
  if (extras.second_scales) set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, extras.second_scales);
}

cublasLtMatrixLayout_t layout(const Side& side, std::int64_t rows, std::int64_t columns) {
  return side.transposed ? layout(type_of(side.type), columns, rows)
                         : layout(type_of(side.type), rows, columns);
}

/// `extras`: of the first call; the choice of algorithms asks for them.
Plan make_plan(const Key& key, const Extras& extras, cublasLtHandle_t handle) {
  Plan plan;
  const bool exact = key.out == at::kDouble;
  ASSAY_CUBLAS_CHECK(cublasLtMatmulDescCreate(
      &plan.operation, exact ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, exact ? CUDA_R_64F : CUDA_R_32F));
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, key.first.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, key.second.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.first.scaled)
    set(plan.operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, std::int32_t{mode_of(key.first.scaling)});
  if (key.second.scaled)
    set(plan.operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, std::int32_t{mode_of(key.second.scaling)});
  if (key.fast_accumulation) set(plan.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  // The bias's entries go to the rows of cuBLAS's result, which are the columns of ours.
  // Its dtype is stated: of FP8 matrices and an fp32 result the library would take it for bf16.
  if (key.bias) {
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t{type_of(key.out)});
  }
  set(plan.operation, extras);
  plan.first = layout(key.first, key.m, key.k);
  plan.second = layout(key.second, key.k, key.n);
  plan.result = layout(type_of(key.out), key.m, key.n);

  cublasLtMatmulPreference_t preference;
  ASSAY_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // A GEMM whose sum is split over blocks adds the parts in the arithmetic's type, not in bf16.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.alignments[0]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignments[1]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignments[2]);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignments[3]);
  std::array<cublasLtMatmulHeuristicResult_t, most_candidates> found;
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, plan.operation, plan.first, plan.second, plan.result,
                                     plan.result, preference, most_candidates, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS) plan.candidates.push_back(found[i].algo);
  return plan;
}

/// Whether the algorithm can compute the GEMM of `plan`.
bool runs(const cublasLtMatmulAlgo_t& algorithm, const Plan& plan, cublasLtHandle_t handle) {
  cublasLtMatmulHeuristicResult_t result;
  return cublasLtMatmulAlgoCheck(handle, plan.operation, plan.first, plan.second, plan.result, plan.result,
                                 &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= workspace_bytes;
}

Plan& plan_of(const Key& key, const Extras& extras, cublasLtHandle_t handle) {
  static std::mutex mutex;
  static std::map<Key, std::unique_ptr<Plan>> plans;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Plan>& plan = plans[key];
  if (!plan) plan = std::make_unique<Plan>(make_plan(key, extras, handle));
  return *plan;
}

std::int64_t inner(const Gemm& gemm) { return gemm.left.matrix.size(gemm.left.transposed ? 0 : 1); }

const void* address(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }

/// Of cuBLASLt on the current device, for the life of the process. ATen's is that of its cuBLAS, which takes
/// a workspace of 32 MiB on Hopper that no plan knows.
cublasLtHandle_t handle_on(at::Device device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  const std::scoped_lock lock(mutex);
  cublasLtHandle_t& handle = handles[device.index()];
  if (!handle) ASSAY_CUBLAS_CHECK(cublasLtCreate(&handle));
  return handle;
}

/// One GEMM of given tensors.
class Job {
 public:
  Job(const Gemm& gemm, const at::Tensor& out, const at::Tensor& added, double beta = 1)
      : first_(gemm.right.matrix),
        second_(gemm.left.matrix),
        out_(out),
        base_(added.defined() ? added.const_data_ptr() : out.const_data_ptr()),
        extras_{.bias = address(gemm.bias),
                .first_scales = address(gemm.right.scales),
                .second_scales = address(gemm.left.scales)},
        beta_(added.defined() ? beta : 0),
        handle_(handle_on(out.device())),
        key{.device = out.device().index(),
            .first = side_of(gemm.right),
            .second = side_of(gemm.left),
            .accumulate = added.defined(),
            .bias = gemm.bias.defined(),
            .fast_accumulation = gemm.fast_accumulation,
            .m = out.size(1),
            .n = out.size(0),
            .k = inner(gemm),
            .out = out.scalar_type(),
            .alignments = {alignment(first_.const_data_ptr()), alignment(second_.const_data_ptr()),
                           alignment(base_), alignment(out.const_data_ptr())}},
        plan(plan_of(key, extras_, handle_)),
        workspace_(at::empty({static_cast<std::int64_t>(workspace_bytes)}, out.options().dtype(at::kByte))) {}

  cublasStatus_t run(const cublasLtMatmulAlgo_t& algorithm) const {
    set(plan.operation, extras_);
    const double one = 1;
    const auto one_single = static_cast<float>(one), beta_single = static_cast<float>(beta_);
    const bool exact = key.out == at::kDouble;
    return cublasLtMatmul(handle_, plan.operation, exact ? static_cast<const void*>(&one) : &one_single,
                          first_.const_data_ptr(), plan.first, second_.const_data_ptr(), plan.second,
                          exact ? static_cast<const void*>(&beta_) : &beta_single, base_, plan.result,
                          out_.data_ptr(), plan.result, &algorithm, workspace_.data_ptr(), workspace_bytes,
                          stream());
  }

  /// `captured`: into a CUDA graph, where nothing can be compared or timed.
  void run_chosen(bool captured) {
    const bool fixed = deterministic();
    if (fixed && plan.fixed_in != gemm_pins().generation()) {
      plan.fixed = {};
      plan.fixed_in = gemm_pins().generation();
    }
    Choice& choice = fixed ? plan.fixed : plan.free;
    if (!choice.algorithm && !choice.search) fixed ? settle_fixed(captured) : settle_free();
    if (choice.algorithm) return ASSAY_CUBLAS_CHECK(run(*choice.algorithm));
    if (choice.search && !captured) return run_searching(choice);
    ASSAY_CUBLAS_CHECK(run(plan.candidates.front()));
  }

 private:
  /// Settles the algorithm where nothing is to be searched: the library's first choice for small GEMMs,
  /// the one that an earlier process kept for large ones. Begins a search otherwise.
  void settle_free() {
    if (!worth_a_choice()) {
      plan.free.algorithm = plan.candidates.front();
      return;
    }
    const auto kept = Search::kept(text_of(key));
    if (kept && runs(*kept, plan, handle_))
      plan.free.algorithm = *kept;
    else
      plan.free.search = std::make_unique<Search>(text_of(key), plan.candidates);
  }

  /// The pinned algorithm. Where there is none, the fastest of those whose bits are the first choice's: which
  /// of them computes, and from which call on, changes nothing.
  void settle_fixed(bool captured) {
    if (!worth_a_choice()) {
      plan.fixed.algorithm = plan.candidates.front();
      return;
    }
    const std::string name = text_of(key) + "-same-bits";
    const auto kept = Search::kept(name);
    const bool kept_runs = kept && runs(*kept, plan, handle_);
    if (gemm_pins().knows(text_of(key)) || kept_runs) {
      plan.fixed.algorithm = pinned(kept_runs ? *kept : plan.candidates.front());
      return;
    }
    const cublasLtMatmulAlgo_t first = pinned(plan.candidates.front());
    // What a sum overwrites is lost: a call that adds to it cannot be computed a second time.
    if (captured || (beta_ != 0 && base_ == out_.const_data_ptr())) return;
    // Not in a run's first step: comparing takes several calls of each GEMM, and nothing is timed yet.
    if (!Search::load_is_settled()) return count_searching_call();
    const std::vector<cublasLtMatmulAlgo_t> equal = equal_candidates();
    if (equal.size() > 1)
      plan.fixed.search = std::make_unique<Search>(name, equal);
    else if (equal.size() == 1 || ++plan.compared == most_compared)
      plan.fixed.algorithm = first;
  }

  /// The pin of this GEMM, and where there is none `algorithm`, which is it from here on.
  cublasLtMatmulAlgo_t pinned(const cublasLtMatmulAlgo_t& algorithm) {
    const auto text = gemm_pins().of(text_of(key), to_text(algorithm), [&](const std::string& known) {
      const auto each = from_text(known);
      return each && runs(*each, plan, handle_);
    });
    return *from_text(text);
  }

  /// The first choice and the candidates that give this call's result the same bits, compared by the sums of
  /// the bits, as integers, of each row. Another order of additions rounds about every other fp32 sum to
  /// other bits, and one in 2^13 to another bf16: `least_compared` results show that the order is the same,
  /// whatever the numbers are, and then it is so in every call. Zeros show nothing, as those of weights that
  /// begin at zero: where too few results differ from it, none.
  std::vector<cublasLtMatmulAlgo_t> equal_candidates() const {
    if (out_.size(1) * out_.element_size() % 8 != 0) return {};
    const at::Tensor bits =
        out_.view(at::kLong);  // summed as they lie: another type would be converted first
    const auto sums_of = [&](const cublasLtMatmulAlgo_t& algorithm) {
      return run(algorithm) == CUBLAS_STATUS_SUCCESS ? at::sum(bits, {1}) : at::Tensor();
    };
    const at::Tensor wanted = sums_of(plan.candidates.front());
    if (!wanted.defined()) return {};
    const std::int64_t least = at::isFloat8Type(key.first.type) ? least_compared_of_fp8 : least_compared;
    const at::Tensor some = out_.flatten().narrow(0, 0, std::min(out_.numel(), 4 * least));
    if (at::count_nonzero(some).item<std::int64_t>() < least) return {};
    std::vector<cublasLtMatmulAlgo_t> equal;
    for (const cublasLtMatmulAlgo_t& each : plan.candidates)
      if (const at::Tensor sums = sums_of(each); sums.defined() && at::equal(sums, wanted))
        equal.push_back(each);
    return equal;
  }

  /// One run while the algorithm is searched for. Candidates that do not run leave.
  void run_searching(Choice& choice) {
    count_searching_call();
    plan.adds |= beta_ != 0;
    // A call that begins a sum reads less than those that add to it, which are the most where there are any.
    const bool alike = plan.adds == (beta_ != 0);
    if (!alike || !Search::load_is_settled()) return ASSAY_CUBLAS_CHECK(run(plan.candidates.front()));
    if (const auto winner = choice.search->result()) {
      choice.algorithm = &choice == &plan.fixed ? pinned(*winner) : *winner;
      choice.search.reset();
      return ASSAY_CUBLAS_CHECK(run(*choice.algorithm));
    }
    for (std::size_t attempt = 0;; ++attempt) {
      const cublasStatus_t status = run(choice.search->begin(stream()));
      if (status == CUBLAS_STATUS_SUCCESS) return choice.search->end(stream());
      choice.search->failed();
      if (attempt == plan.candidates.size()) ASSAY_CUBLAS_CHECK(status);
    }
  }

  bool worth_a_choice() const {
    const double flops =
        2.0 * static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k);
    return flops >= least_searched_flops && plan.candidates.size() > 1;
  }

  const at::Tensor &first_, &second_, &out_;
  const void* base_;
  const Extras extras_;
  const double beta_;
  const cublasLtHandle_t handle_;

 public:
  const Key key;
  Plan& plan;

 private:
  const at::Tensor workspace_;
};

/// Milliseconds of a call where `algorithm` alone keeps the GPU busy: the second half of `seconds`.
double sustained(const Job& job, const cublasLtMatmulAlgo_t& algorithm, double seconds) {
  at::cuda::CUDAEvent begin(cudaEventDefault), middle(cudaEventDefault), end(cudaEventDefault);
  begin.record();
  job.run(algorithm);
  end.record();
  end.synchronize();
  const int calls = std::max(1, static_cast<int>(seconds / 2 * 1000 / begin.elapsed_time(end)));
  for (int i = 0; i < calls; ++i) job.run(algorithm);
  middle.record();
  for (int i = 0; i < calls; ++i) job.run(algorithm);
  end.record();
  end.synchronize();
  return middle.elapsed_time(end) / calls;
}

/// Whether there is something to compute, on a bias that the library may read and that it is worth to give.
bool lies_right(const Gemm& gemm, const at::Tensor& out) {
  if (out.numel() == 0 || gemm.left.matrix.numel() == 0) return false;
  const double flops = 2.0 * static_cast<double>(out.numel()) * static_cast<double>(inner(gemm));
  return !gemm.bias.defined() ||
         (alignment(gemm.bias.const_data_ptr()) >= bias_alignment && flops >= spec::bias::least_fused_flops);
}

}  // namespace

bool multiply(const Gemm& gemm, at::Tensor out, const at::Tensor& added, double beta) {
  if (!lies_right(gemm, out)) return false;
  Job job(gemm, out, added, beta);
  if (job.plan.candidates.empty()) return false;
  job.run_chosen(c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None);
  metrics::report_gemm(out.size(0), out.size(1), job.key.k);
  return true;
}

bool has_algorithm(const Gemm& gemm, const at::Tensor& out, const at::Tensor& added) {
  return lies_right(gemm, out) && !Job(gemm, out, added).plan.candidates.empty();
}

CandidateTimes time_candidates(const Gemm& gemm, at::Tensor out, const at::Tensor& added, double seconds,
                               std::size_t most) {
  const Job job(gemm, out, added);
  CandidateTimes in;
  for (std::size_t i = 0; i < job.plan.candidates.size(); ++i)
    if (job.run(job.plan.candidates[i]) == CUBLAS_STATUS_SUCCESS)
      in.emplace_back(sustained(job, job.plan.candidates[i], 0.02), i);
  TORCH_CHECK(!in.empty(), "cuBLASLt has no algorithm for ", text_of(job.key));
  std::sort(in.begin(), in.end());
  const double least = in.front().first;
  const auto is_first = [](const auto& each) { return each.second == 0; };
  std::stable_partition(in.begin(), in.end(), is_first);
  if (in.size() > most) in.resize(most);
  std::erase_if(in, [&](const auto& each) { return !is_first(each) && each.first > 1.08 * least; });
  for (auto& [time, candidate] : in) time = 0;
  for (int round = 0; round < 2; ++round)
    for (auto& [time, candidate] : in) time += sustained(job, job.plan.candidates[candidate], seconds) / 2;
  std::sort(in.begin(), in.end());
  return in;
}

std::string tune(const Gemm& gemm, at::Tensor out, const at::Tensor& added, double seconds) {
  const CandidateTimes times = time_candidates(gemm, out, added, seconds, 5);
  Job job(gemm, out, added);
  job.plan.free = {.algorithm = job.plan.candidates[times.front().second], .search = nullptr};
  return Search::keep(text_of(job.key), *job.plan.free.algorithm, times);
}

}  // namespace assay::impl::cuda
