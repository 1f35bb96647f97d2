#pragma once
// Collects changes: only those that some number of the log feels, and each set of equal factors once.
#include <initializer_list>
#include <string>
#include <vector>

#include "spec/audit/changes.hpp"

namespace assay::spec::audit {

class ChangeBuilder {
 public:
  ChangeBuilder(const Evidence& evidence, const Comparisons& comparisons) : e_(evidence), c_(comparisons) {}

  struct Effect {
    Relation relation;
    double factor;
  };
  /// Adds a change unless no judged relation feels it. The reference is valid until the next one is added.
  Change& add(std::string id, std::string text, double cost, std::initializer_list<Effect> effects) {
    return add(std::move(id), std::move(text), cost, std::vector<Effect>(effects));
  }
  Change& add(std::string id, std::string text, double cost, const std::vector<Effect>& effects);
  /// Gives each change so far that moves `of` by that factor, and none of these, these effects too, and
  /// `text` behind its own.
  void also(Relation of, double factor, const std::vector<Effect>& effects, const std::string& text);
  bool has(Relation relation) const { return !at(c_, relation).samples.empty(); }
  /// Whether lines print the tokens that were counted of their step.
  bool lines_count_tokens() const { return has(Relation::step_tokens) && !e_.trainer.lines_print_set_batch; }
  /// Changes that move every relation alike are one, named by the likeliest; near ties are named beside it.
  std::vector<Change> finish();

 private:
  bool alike(const Change& a, const Change& b) const;

  const Evidence& e_;
  const Comparisons& c_;
  std::vector<Change> out_;
  Change ignored_;
  bool rates_printed_ = false;  ///< tokens/s
};

/// " (held against --gpus 8, not the log, whose line 3 says 4)" where an option stated that setting or name,
/// which may be what is wrong; else empty.
std::string held_against(const RunRecord& record, std::string_view name);

/// Peaks of another kind, dtype or GPU (changes_of_peak.cpp).
void add_peaks(ChangeBuilder& builder, const Evidence& evidence, const Comparisons& comparisons,
               const Interpretation& interpretation);

/// Other counts than stated, of FLOPs and parameters; facts of another device (changes_of_counts.cpp).
void add_counts(ChangeBuilder& builder, const Evidence& evidence);
void add_devices(ChangeBuilder& builder, const Evidence& evidence);

/// A shape of which one dimension is not the one that ran (changes_of_dimension.cpp).
void add_other_dimension(ChangeBuilder& builder, const Evidence& evidence);

/// A count that is not the whole shape's, or a shape that is not the one that ran
/// (changes_of_whole_shape.cpp).
void add_count_or_shape(ChangeBuilder& builder, const Evidence& evidence, const Comparisons& comparisons,
                        const Interpretation& interpretation);

/// Numbers of one micro-batch, or of one rank, in place of a step's (changes_of_passes.cpp).
void add_passes(ChangeBuilder& builder, const Evidence& evidence, const Interpretation& interpretation);

/// Models of another shape that a trainer makes where settings do not reach it (changes_shape.cpp).
void add_shapes(ChangeBuilder& builder, const Evidence& evidence);

}  // namespace assay::spec::audit
