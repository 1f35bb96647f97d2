// Counts of one model: of its parameters, and of the tensors that nanoGPT's and build-nanogpt's optimizers
// are given.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/whole_shape.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// All parameters of GPT-2's block in the sizes of `model`, as nanoGPT builds it.
double all_of(ModelSpec model, bool biased, bool padded) {
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = biased;
  if (padded) model.vocab = (model.vocab + 63) / 64 * 64;
  return parameter_count(model).to_double();
}

/// A model whose entries are, to the last one, those of 4 matrices and as many vectors in each of `layers`
/// blocks, with the two tables that the log or the source states; nothing where they are not, as a fork's.
struct OfSource {
  double layers = 0, width = 0;
  bool biased = false;
};

bool of_source(const RunRecord& record, const OfSource& model) {
  const ParameterTensors& t = *record.tensors;
  const double width = model.width, blocks = 12 * model.layers * width * width;
  if (!(width >= 1) || width != std::floor(width)) return false;
  const double positions = number_in(record, Setting::sequence_length).value_or(1024);
  const auto vocab = number_in(record, Setting::vocab);
  for (const double rows : {vocab.value_or(50304), vocab.value_or(50257)})
    if (t.matrix_entries == blocks + (rows + positions) * width) return true;
  return false;
}

/// The model that either count of tensors, beside all of the entries, makes.
std::optional<OfSource> model_of_entries(const RunRecord& record) {
  const ParameterTensors& t = *record.tensors;
  for (const bool biased : {true, false})
    for (const double layers : {(t.matrices - 2) / 4, biased ? (t.vectors - 2) / 8 : (t.vectors - 1) / 2}) {
      if (layers < 1 || layers != std::floor(layers)) continue;
      const OfSource model = {layers, t.vector_entries / (biased ? 13 * layers + 2 : 2 * layers + 1), biased};
      if (of_source(record, model)) return model;
    }
  return std::nullopt;
}

/// Blocks are alike: however a fork cuts or joins their matrices, each has as many, beside two tables; and as
/// many vectors, beside those of the last norm. Another count is no transformer's of these entries.
std::optional<Result> judge_counts_of_tensors(const RunRecord& record) {
  const ParameterTensors& t = *record.tensors;
  const auto model = model_of_entries(record);
  if (!model) return std::nullopt;
  const auto alike = [&](double tensors, double others) {
    return tensors > others && std::fmod(tensors - others, model->layers) == 0;
  };
  const bool vectors = alike(t.matrices, 2);
  if (vectors && alike(t.vectors, model->biased ? 2 : 1)) return std::nullopt;
  const double made = !vectors        ? 4 * model->layers + 2
                      : model->biased ? 8 * model->layers + 2
                                      : 2 * model->layers + 1;
  Result out = holding(1);
  contradict(out, vectors ? t.vectors : t.matrices, exact_interval(made), t.line);
  blame(out, "tensors_miscounted",
        "the count of " + std::string(vectors ? "non-decayed" : "decayed") +
            " tensors is wrong: their parameters are those of " + shown(model->layers, Unit::none) +
            " blocks alike, which have " + shown(made, Unit::none));
  return out;
}

/// A row of a table is as wide as the vectors: what the blocks leave of the matrices is a whole number of
/// rows, whatever the vocabulary.
std::optional<Result> judge_rows_of_tables(const RunRecord& record) {
  const ParameterTensors& t = *record.tensors;
  const double layers = (t.matrices - 2) / 4, width = t.vector_entries / (13 * layers + 2);
  if (layers < 1 || layers != std::floor(layers) || t.vectors != 8 * layers + 2 || width < 1 ||
      width != std::floor(width) || std::fmod(t.matrix_entries, width) == 0)
    return std::nullopt;
  Result out = holding(1);
  const double fewer = std::floor(t.matrix_entries / width) * width;
  contradict(out, t.matrix_entries, {fewer, fewer + width}, t.line);
  blame(out, "tensors_miscounted",
        "the count of decayed parameters is wrong: it is no multiple of " + shown(width, Unit::none) +
            ", the width that the non-decayed ones make, and every matrix is as wide or as long");
  return out;
}

}  // namespace

std::optional<Result> judge_first_rank(const RunRecord& record) {
  if (!record.first_rank || record.first_rank->of_shape.empty()) return std::nullopt;
  const Printed& count = record.first_rank->count;
  const std::vector<double>& made = record.first_rank->of_shape;
  Result out = holding(1);
  out.printed = count.value;
  const auto same = std::find_if(made.begin(), made.end(), [&](double n) { return count.holds(n); });
  out.recomputed = exact_interval(same == made.end() ? made.front() : *same);
  out.note = "of the first rank";
  if (same != made.end()) return out;
  const Interval right = out.recomputed;
  contradict(out, count.value, right, count.line);
  blame(out, "rank_miscounted",
        "the first rank's count of parameters is wrong, or another model or another cut ran than the "
        "arguments say (they make " +
            shown(made.front(), Unit::none) + ")");
  return out;
}

Result judge_parameter_tensors(const Evidence& e) {
  const auto& tensors = e.record.tensors;
  const auto& printed = e.record[Setting::parameters];
  if (!counts_tensors(e.record)) return not_judged("parameters of decayed and of other tensors");
  if (auto wrong = judge_counts_of_tensors(e.record)) return *wrong;
  const double all = tensors->matrix_entries + tensors->vector_entries;
  // Tensors of a model of their own are what its count is held to.
  if (const auto own = shape_of_nanogpt(e.record)) {
    Result out = holding(1);
    out.printed = all, out.recomputed = exact_interval(parameter_count(*own).to_double());
    // Nothing else in its log counts them: a fork's vocabulary, or a count that is wrong by whole rows.
    const bool of_gpt2 = own->vocab == 50304 || own->vocab == 50257;
    if (e.trainer.counts_tensors_alone && !e.record[Setting::vocab] && !of_gpt2)
      out.note = "with " + shown(static_cast<double>(own->context), Unit::none) + " positions they have " +
                 shown(static_cast<double>(own->vocab), Unit::none) +
                 " tokens, where the trainer's source has 50,304: another vocabulary, or a wrong count";
    return out;
  }
  if (e.trainer.counts_tensors_alone) {
    if (auto wrong = judge_rows_of_tables(e.record)) return *wrong;
    return not_judged("a model of as many tensors");
  }
  if (!e.model || !usable(printed)) return not_judged("a model of the tensors");
  const double layers = static_cast<double>(e.model->layers);
  const bool plain = tensors->vectors == 2 * layers + 1, biased = tensors->vectors == 8 * layers + 2;
  // A fork's blocks have other tensors.
  if (tensors->matrices != 4 * layers + 2 || !(plain || biased))
    return not_judged("a model of as many tensors");
  const double positions = static_cast<double>(e.model->context) * static_cast<double>(e.model->width);
  for (const bool padded : {true, false}) {
    const double made = all_of(*e.model, biased, padded);
    if (!wide(*printed).holds(made - positions) && !wide(*printed).holds(made)) continue;
    Result out = holding(1);
    out.printed = all, out.recomputed = exact_interval(made);
    // Of a length that no line states any longer, tables of other positions are as good.
    const double fewer = (made - all) / static_cast<double>(e.model->width);
    const bool other_length = !e.record[Setting::sequence_length] && fewer == std::floor(fewer) &&
                              fewer < static_cast<double>(e.model->context);
    if (all == made || other_length) return out;
    out = holding(1);
    contradict(out, all, exact_interval(made), tensors->line);
    blame(out, "tensors_miscounted",
          "the parameters of the tensors are not those of " + e.model->name + ", which the count of line " +
              std::to_string(printed->line) + " is: the tensors' counts are wrong, or another model's");
    return out;
  }
  return not_judged("a model of that count");
}

}  // namespace assay::spec::audit
