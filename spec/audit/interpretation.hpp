#pragma once
// What a log leaves unsaid, settled by its own numbers: whether an unlabelled rate is all GPUs' or one
// rank's, whether a printed peak is one GPU's, whether a configured accumulation is still divided by the
// ranks. None of these readings contradicts a word of the log; the one that makes most numbers agree stands.
#include <string>
#include <vector>

#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

enum class Whose { all, rank, gpu };

struct Interpretation {
  Whose rate = Whose::all;            ///< of the printed tokens/s
  Whose flops_rate = Whose::all;      ///< of the printed achieved FLOP/s
  bool peak_of_one = false;           ///< the printed peak is one GPU's
  bool accumulation_divided = false;  ///< each rank runs the configured accumulation / ranks
  double own_peak =
      0;  ///< MFU divides by it, the GPU's, not by the constant of the trainer's source [flop/s]
  bool earlier = false;  ///< FLOPs are counted as earlier versions of the trainer do
  Factors factors;       ///< printed / recomputed that this reading expects
  double strain = 0;     ///< how far it is from what the trainer is known to mean
  std::string note;      ///< "tokens/s is one rank's"; empty for the plain reading
};

/// Every interpretation that the log's words allow, the plain one first.
std::vector<Interpretation> interpretations(const Evidence& evidence);

/// The one under which fewest relations contradict; of equals, the least strained.
Interpretation interpret(const Evidence& evidence, const Comparisons& comparisons);

/// Relations that contradict under `factors`: more than a twentieth of their places, and more than one of
/// many.
std::vector<Relation> unexplained(const Comparisons& comparisons, const Factors& factors);

/// Whether the relation, as a whole, agrees with `factor`: some places may be wrong on their own.
bool agrees(const Comparison& comparison, double factor);

/// How many times one of `whose` is all of them.
double count_of(const Evidence& evidence, Whose whose);

}  // namespace assay::spec::audit
