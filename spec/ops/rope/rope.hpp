#pragma once
// Inverse frequencies, shape rules, FLOPs and bytes of rope. Equation, source and worked example:
// spec/ops/rope/rope.md.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec::rope {

struct Shape {
  std::int64_t B = 0;  ///< sequences
  std::int64_t T = 0;  ///< tokens of a sequence
  std::int64_t H = 0;  ///< heads (K for keys)
  std::int64_t E = 0;  ///< entries of a head, even
};

/// Which two entries of a head turn together.
enum class Pairs {
  halves,      ///< (e, e + E/2): Hugging Face's Llama
  neighbours,  ///< (2e, 2e + 1): DeepSeek-V3
};

/// How heads are turned, beside their angles.
struct Form {
  Pairs pairs = Pairs::halves;
  double factor = 1;  ///< of every cosine and sine: `attention_factor`
};

/// The values that make a scaling of E turned entries impossible, "factor=0.500000, ..."; empty: it is
/// possible.
std::string fault_of(const RopeScaling& scaling, std::int64_t E, double theta);

/// Angle per token of each pair [radian/token], E/2 entries, scaled where `scaling` is given. The reference
/// and the trainer both take them from here. Errors: SpecError rope_c1 (E odd or < 2), rope_c2 (theta not > 0
/// and finite), rope_c4 (scaling out of its domain).
std::vector<double> inverse_frequencies(std::int64_t E, double theta,
                                        const std::optional<RopeScaling>& scaling);
/// The same of a model's turned entries. Errors: the same.
std::vector<double> inverse_frequencies(const ModelSpec& model);

/// 1 + 0.1 mscale ln(factor): how yarn lengthens what attention multiplies.
double yarn_scale(double factor, double mscale);
/// Factor of cosines and sines: yarn's, else 1.
double attention_factor(const std::optional<RopeScaling>& scaling);

/// How a model turns its heads.
Form form_of(const ModelSpec& model);

/// Errors: SpecError rope_c1 (E odd or < 2, or another extent < 0), rope_c3 (positions != B*T, or one
/// negative), rope_c5 (frequencies != E/2).
void check(const Shape& shape, std::span<const std::int64_t> positions, std::int64_t frequencies);

Flops forward_flops(const Shape& shape);   ///< vector: 3*B*T*H*E
Flops backward_flops(const Shape& shape);  ///< vector: 3*B*T*H*E

/// Compulsory traffic of forward, and of backward alike. Unit: [B].
/// `element` = bytes of x and y; `table` = bytes of one cosine or sine.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t table);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t table);

}  // namespace assay::spec::rope
