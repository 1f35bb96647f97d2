#include "spec/ops/attention/attention_choice.hpp"

#include <algorithm>

#include "spec/error.hpp"

namespace assay::spec {

using enum AttentionBackend;

std::string to_string(AttentionBackend backend) {
  constexpr const char* names[] = {"auto", "cudnn", "flash", "loops", "math"};
  return names[static_cast<std::size_t>(backend)];
}

namespace attention {
namespace {
bool of_gpus(AttentionBackend backend) { return backend == cudnn || backend == flash; }

/// What `backend` is known not to take; empty where the library has to be asked.
std::string known_refusal(const Case& of, AttentionBackend backend) {
  if (!of_gpus(backend)) return "";
  if (!of.gpu) return "runs on NVIDIA GPUs only, and this run is on the CPU";
  if (of.dtype != Dtype::bf16) return "takes bf16 only";
  if (of.documents && !of.offsets) return "is not given documents without offsets";
  if (of.E % 8 != 0 || of.W % 8 != 0) return "takes multiples of 8 as head dimension";
  if (backend == flash && of.W > 0) return "takes values as wide as keys only";
  if (backend == cudnn && of.S > 0) return "is not given queries among other keys";
  if (backend == flash && of.S > 0 && of.documents)
    return "is not given documents of queries among other keys";
  // Causal from the bottom right, or every query sees every key.
  if (backend == flash && of.S > 0 && of.first != of.S - of.T && (of.first + 1 < of.S || of.window > 0))
    return "is not given keys that end among the queries";
  if (backend == cudnn && of.T == 1) return "is not given single tokens";
  if (backend == cudnn && of.documents) return "is not given documents";
  if (backend == cudnn && of.window > 0) return "is not given windows";
  return "";
}

/// What the libraries of this build say, as far as it was measured. Of heads whose values are not as wide as
/// their keys cuDNN takes up to 128 entries, and the pair that DeepSeek-V3 has.
std::string presumed_refusal(const Case& of, AttentionBackend backend) {
  if (of.asked != automatic) return "";
  if (backend == flash && of.E > 256) return "takes at most 256 entries";
  if (backend == cudnn && of.W > 0 && std::max(of.E, of.W) > 128 && !(of.E == 192 && of.W == 128))
    return "takes values of other widths";
  return "";
}
}  // namespace

std::string describe(const Case& of) {
  return "attention of [" + std::to_string(of.B) + ", " + std::to_string(of.T) + ", " + std::to_string(of.H) +
         " + 2 x " + std::to_string(of.K) + ", " + std::to_string(of.E) +
         (of.W > 0 ? " and values of " + std::to_string(of.W) : "") + "] " + to_string(of.dtype) +
         (of.S > 0 ? " at " + std::to_string(of.first) + " of " + std::to_string(of.S) + " keys" : "") +
         (of.documents ? " with documents" : "") +
         (of.window > 0 ? " with a window of " + std::to_string(of.window) : "") +
         (of.fixed_order ? " in a fixed order" : "");
}

Choice choose(const Case& of, const Refusal& refusal) {
  Choice out{math, {}};
  for (const AttentionBackend backend : {cudnn, flash, loops, math}) {
    if (of.asked == automatic ? (of.gpu ? backend == loops : of_gpus(backend)) : backend != of.asked)
      continue;
    std::string reason = known_refusal(of, backend);
    if (reason.empty())
      if (const std::string said = refusal(backend); !said.empty()) reason = "refused: " + said;
    out.backend = backend;
    if (reason.empty()) return out;
    out.reasons.push_back(to_string(backend) + " " + reason);
  }
  throw UserError(ExitCode::usage, "compute.attention=" + to_string(out.backend) + " cannot compute " +
                                       describe(of) + ": " + out.reasons.back() +
                                       "; compute.attention=auto takes what can");
}

Choice choose(const Case& of) {
  return choose(of, [&](AttentionBackend backend) { return presumed_refusal(of, backend); });
}

}  // namespace attention
}  // namespace assay::spec
