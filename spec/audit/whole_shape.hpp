#pragma once
// Logs that print a model's shape whole: a count of parameters beside it that no reading explains
// contradicts.
#include <optional>
#include <vector>

#include "spec/audit/run_record.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec::audit {

/// Whether the log of a trainer that prints all of a model's shape does: KempnerForge's configuration,
/// Megatron-LM's arguments and torchtitan's of a Llama, of dense blocks, with what ties the head. False where
/// the model is cut into pipeline stages and the trainer may count what one of them holds.
bool shape_whole(const RunRecord& record);

/// The models that llm.c's table may be of; empty where it leaves a size open, or is of another trainer. They
/// are GPT-2's but for their sizes: its checkpoints and what it builds anew have that vocabulary, an inner
/// width of 4 C, a tied head, biases and learned positions (train_gpt2.cu, gpt_build_from_descriptor), of
/// which there are 1,024 or, of GPT-3's sizes, 2,048. The table's own length of a sequence is tried as well.
std::vector<ModelSpec> shapes_of_llmc(const RunRecord& record);

/// Whether the log counts the tensors of its optimizer's two groups, as nanoGPT and build-nanogpt do of one
/// model (build-nanogpt's: positions of 1,024, biases).
bool counts_tensors(const RunRecord& record);

/// The model whose tensors nanoGPT counts for its optimizer: 4 matrices of each block and two tables, one
/// gain of each norm, with biases or without (model.py, configure_optimizers). Its depth, its width and the
/// rows of its tables follow from these; nothing where they are not of such a model (a fork's), or not whole.
std::optional<ModelSpec> shape_of_nanogpt(const RunRecord& record);

/// Whether nanoGPT prints `parameters` of that model: without its positions (get_num_params), or with them.
bool printed_of_nanogpt(const ModelSpec& model, const Printed& parameters);

/// The model without biases, with those of queries, keys and values, or with all of its projections', each
/// without and with those of its norms. `stated`: of those norms alone; LayerNorm's have biases.
std::vector<ModelSpec> with_any_biases(const ModelSpec& model, std::optional<Norm> stated = {});

/// Whether a count is the model's as any trainer may take it: with biases or without, with learned positions
/// or without, its vocabulary rounded up, or a table of embeddings or one gain per layer more or less.
bool any_count_fits(const ModelSpec& model, const Printed& parameters, std::optional<Norm> stated = {});

}  // namespace assay::spec::audit
