#include "impl/ops/attention/attention_choice.hpp"

#include "spec/error.hpp"

namespace assay::impl::attention {

namespace {
/// What `backend` is known not to take; empty where the library has to be asked.
std::string known_refusal(const Shape& shape, Backend backend) {
  if (backend == Backend::math) return "";
  if (shape.type != at::kBFloat16) return "takes bf16 only";
  if (shape.documents && !shape.offsets) return "is not given documents without offsets";
  if (shape.E % 8 != 0 || shape.W % 8 != 0) return "takes multiples of 8 as head dimension";
  if (backend == Backend::flash && shape.W > 0) return "takes values as wide as keys only";
  if (backend == Backend::cudnn && shape.T == 1) return "is not given single tokens";
  if (backend == Backend::cudnn && shape.documents) return "is not given documents";
  if (backend == Backend::cudnn && shape.window > 0) return "is not given windows";
  return "";
}
}  // namespace

std::string name(Backend backend) {
  switch (backend) {
    case Backend::cudnn:
      return "cudnn";
    case Backend::flash:
      return "flash";
    case Backend::math:
      return "math";
  }
  return "";
}

std::string describe(const Shape& s) {
  return "attention of [" + std::to_string(s.B) + ", " + std::to_string(s.T) + ", " + std::to_string(s.H) +
         " + 2 x " + std::to_string(s.K) + ", " + std::to_string(s.E) +
         (s.W > 0 ? " and values of " + std::to_string(s.W) : "") + "] " + c10::toString(s.type) +
         (s.documents ? " with documents" : "") +
         (s.window > 0 ? " with a window of " + std::to_string(s.window) : "") +
         (s.fixed_order ? " in a fixed order" : "");
}

Choice choose(const Shape& shape, const Refusal& refusal) {
  Choice out{Backend::math, {}};
  for (const Backend backend : {Backend::cudnn, Backend::flash, Backend::math}) {
    if (shape.forced && backend != *shape.forced) continue;
    std::string reason = known_refusal(shape, backend);
    if (reason.empty())
      if (const std::string said = refusal(backend); !said.empty()) reason = "refused: " + said;
    out.backend = backend;
    if (reason.empty()) return out;
    out.reasons.push_back(name(backend) + " " + reason);
  }
  throw UserError(ExitCode::usage, "compute.attention=" + name(out.backend) + " cannot compute " +
                                       describe(shape) + ": " + out.reasons.back() +
                                       "; compute.attention=auto takes what can");
}

}  // namespace assay::impl::attention
