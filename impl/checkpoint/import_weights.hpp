#pragma once
// Hugging Face weights as the beginning of a run (spec/checkpoint/weight_files.md).
#include <string>

#include "impl/checkpoint/data_file.hpp"
#include "impl/comm/communicator.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::checkpoint {

/// What can be refused of a folder before anything is allocated: files, names, shapes and types, by headers
/// alone. Errors: UserError(bad_data), as open_weights and sources_of.
void check_weights(const std::string& folder, const spec::ModelSpec& model);

/// The folder as one file: its sample is of names, sizes and samples of all that hold weights. Errors:
/// UserError(bad_data), as open_weights.
DataFile weights_file(const std::string& folder);

/// Fills weights and master weights; moments stay as they are. Of each tensor a rank reads what it holds, one
/// tensor after the other; whole ones, dealt out over the ranks, for the hash of the content. Returns what
/// the record says of it. Collective. Errors: AgreedError(bad_data), as check_weights and where a value is
/// NaN or infinite (weight_files_c8): the buffers are then not to be used.
spec::record::WeightsFrom import_weights(const std::string& folder, const spec::ModelSpec& model,
                                         ParameterBuffers& buffers, Communicator& communicator);

}  // namespace assay::impl::checkpoint
