#pragma once
// GPUs as their vendors' documents state them: dense and sparse peaks by precision, memory,
// links, power. What each fact means, and which strings name which GPU: spec/hardware/hardware.md.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec {

/// What a GEMM computes in. `fp64`, `fp32`: without tensor cores. `tf32` to `fp4`: on tensor cores,
/// sums in fp32; on cards where sums in fp16 are faster, that peak stands apart, for trainers do not use it.
enum class Precision {
  fp64,
  fp64_tensor,
  fp32,
  tf32,
  bf16,
  fp16,
  fp16_accumulate_fp16,
  fp8,
  fp8_accumulate_fp16,
  fp4
};
const std::vector<Precision>& precisions();       ///< all, in the order above
std::string_view to_string(Precision precision);  ///< "bf16"
/// Also as trainers write it: "bfloat16", "float16", "half", "float32". Nothing for other words.
std::optional<Precision> precision_from(std::string_view word);

/// Where a fact was read: the vendor's document and its date ("2024-03", or the year alone).
struct Source {
  std::string document, url, date;
};

struct Fact {
  double value = 0;
  Source source;
  std::string note;    ///< empty, or what to know about it
  std::string system;  ///< the vendor's system that has it so, where it is no fact of the GPU alone
  std::string scope;   ///< power: what else it feeds ("superchip: CPU, GPU and memory"); empty: the GPU alone
};

/// Peak rate of one GPU. [FLOP/s]
struct Peak {
  double dense = 0;
  std::optional<double> sparse;   ///< with 2:4 sparsity, where the document gives it
  std::optional<double> rounded;  ///< dense as the vendor prints it elsewhere, in fewer digits
  bool dense_is_derived = false;  ///< the document prints only the sparse rate; dense is half of it
  Source source;
  std::string note;
};

struct Gpu {
  std::string id;                         ///< "h100-sxm", the file's name
  std::string name;                       ///< "NVIDIA H100 SXM"
  std::string architecture;               ///< "hopper"
  bool sparsity = false;                  ///< tensor cores have the 2:4 mode
  std::vector<std::string> names;         ///< strings that mean this GPU
  std::vector<std::string> shared_names;  ///< strings that mean this GPU or another one
  std::map<Precision, Peak> peaks;        ///< absent: no document states it
  std::optional<Fact> memory;             ///< [B]; the documents' GB are 2^30 B
  /// [B]; what is on the board, where a document says that it is more than `memory`: part is switched off
  std::optional<Fact> memory_mounted;
  std::optional<Fact> memory_bandwidth;  ///< [B/s]
  std::optional<Fact> nvlink;     ///< all links of one GPU, both directions [B/s]; Infinity Fabric for AMD
  std::optional<Fact> host_link;  ///< both directions [B/s]
  std::optional<Fact> network;    ///< one GPU's part of its `system`'s compute network, one direction [bit/s]
  std::optional<Fact> power;      ///< largest configurable [W]; of its `scope`

  const Peak* peak(Precision precision) const;  ///< null when no document states it
};

/// The most memory that a driver can report of it: what is mounted, else what the sheet says, whose last
/// digit is rounded (half a percent). Nothing where no document states it. [B]
std::optional<double> most_memory(const Gpu& gpu);

/// Every GPU of spec/hardware/*.toml, ordered by id.
const std::vector<Gpu>& gpus();

/// What a printed string means: one GPU, or several candidates, or nothing (then the nearest known names).
struct GpuMatch {
  const Gpu* gpu = nullptr;            ///< set when one GPU is meant
  std::vector<const Gpu*> candidates;  ///< two or more when the string is ambiguous
  std::vector<std::string> nearest;    ///< at most three, when nothing is meant
};

/// By the strings that drivers and logs print ("NVIDIA H100 80GB HBM3", "B200"), or the id. Case, spaces,
/// hyphens and the vendor's words (NVIDIA, GeForce, Tesla, AMD, Instinct) do not matter; everything else must
/// be equal, so that "GB200" is not "B200" and "RTX 4090 D" is not "RTX 4090".
GpuMatch find_gpu(std::string_view printed);

/// The dense peak that `printed` implies: of the one GPU, or of all candidates when they agree to 1 %, then
/// the least. Nothing otherwise: no peak, no MFU. [FLOP/s]
std::optional<double> dense_peak(const GpuMatch& match, Precision precision);

/// Of GPUs that share a name the one that is usually meant: an SXM board before the others, and then the most
/// memory. Domain: candidates of an ambiguous match.
const Gpu& usual_gpu(const GpuMatch& match);

/// The one GPU that a user named. Errors: UserError(usage), with the candidates or the nearest names.
const Gpu& named_gpu(const std::string& name);

/// Reads one fact file; `origin` is quoted in errors. Errors: SpecError hardware_c1 (not TOML, a missing or
/// unknown key), hardware_c2 (a fact without document or date, a network without system), hardware_c3 (a
/// number that is not positive and finite).
Gpu gpu_from_toml(std::string_view text, const std::string& origin);

}  // namespace assay::spec
