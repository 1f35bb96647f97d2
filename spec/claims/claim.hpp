#pragma once
// A number that a document states, what it rests on, and whether it holds (spec/claims/claims.md).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/claims/expression.hpp"
#include "spec/interval.hpp"

namespace assay::spec::claims {

enum class Verdict { holds, holds_under_reading, contradicts, not_checkable };
std::string_view to_string(
    Verdict verdict);  ///< "holds", "holds under a reading", "contradicts", "not checkable"
/// Errors: SpecError claim_c1, no such verdict.
Verdict verdict_named(std::string_view name);

/// One row of a file in golden/claims/.
struct Claim {
  std::string id;       ///< unique in its document, a name as expressions may use it: "mfu_2gpu"
  int line = 0;         ///< in the document, from 1
  std::string what;     ///< the quantity and its circumstances, in our words
  std::string printed;  ///< the number alone, as printed: "10.44", "6.3M", "55-62", "~170K", ">95"
  double unit = 1;  ///< what one of it is in base units (0.01 for per cent, 1e12 for TFLOP/s, 1e-3 for ms)
  std::string unit_name;  ///< as the page prints it behind the number: "%", "TFLOP/s"
  double rounded_to =
      0;  ///< unit of the last digit that counts, where zeros hide it ("16,200": 100); 0: as printed
  bool counted = false;  ///< an integer that is exact, not rounded
  std::string
      expect;  ///< recomputation in the sense a reader would take: all GPUs, dense peak, `exact` FLOPs
  std::string reading;  ///< name of another sense ("palm_total, sparse peak"); empty: none is needed
  std::string under;    ///< recomputation in that sense
  std::string cause;    ///< why it contradicts, or what the reading does differently
  std::string missing;  ///< inputs that the document does not give; then there is no `expect`
  std::string repeats;  ///< id of the claim that prints this number first; then there is no `expect` either
  std::string twin;     ///< id of the claim whose comparison this is the other side of; judged, counted once
  Verdict verdict = Verdict::not_checkable;  ///< as stated in the file; `judge` recomputes it
  int weight = 1;                            ///< 3: decisions rest on it; 2: supports them; 1: detail
};

/// A number that claims rest on and that is judged by none: a configuration's, or one from elsewhere.
struct Input {
  std::string id;
  int line = 0;        ///< in the document, from 1; 0 where it stands elsewhere
  std::string source;  ///< where, when not in the document
  std::string what;
  double value = 0;  ///< base units, exact
};

struct Document {
  std::string key;  ///< file name without ending: "b200_scaling"
  std::string title;
  std::string source;  ///< who, what, date
  std::vector<Input> inputs;
  std::vector<Claim> claims;
};

struct Judgement {
  Verdict verdict = Verdict::not_checkable;
  Interval printed;                                 ///< what the printed number leaves open, base units
  std::optional<Interval> expected, under_reading;  ///< recomputed, base units
  /// Middle of printed over middle of expected; empty where not checkable or expected is zero.
  std::optional<double> ratio;
};

/// The interval that a printed number leaves open: half a unit of its last digit to either side; "~" half a
/// unit of the last digit that is not zero; "a-b" from the low end of a to the high end of b; ">a", "<a", "up
/// to a" one-sided (0 or the largest double at the other end); a letter k K M G B T multiplies by 10^3 ..
/// 10^12. Errors: SpecError claim_c2.
Interval printed_interval(const Claim& claim);

/// Recomputes one claim; other claims of the document may be named in its expressions and stand for their
/// printed intervals, inputs for their values. A repeat has the verdict of its claim when it prints the same
/// number, and contradicts otherwise. Errors: SpecError claim_c3 (an expression that names neither a function
/// nor a claim nor an input), expression_c1, expression_c2, claim_c4 (no claim or input of that name),
/// claim_c6 (a repeat of no claim, of itself or of a repeat; a twin of
/// no claim, of itself, of a repeat or of a twin).
Judgement judge(const Claim& claim, const Document& document);

/// Reads a file of golden/claims. Errors: UserError(bad_data): syntax, unknown or missing key, an id twice, a
/// contradiction without cause, a reading without expression (and the reverse), neither expect nor missing.
Document document_from_toml(std::string_view text, const std::string& origin);

/// The functions that expressions may call, over spec/: see claims.md.
Names claim_names();

}  // namespace assay::spec::claims
