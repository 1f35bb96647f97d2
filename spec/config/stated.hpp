#pragma once
// What a run must say itself, since no default suits every model.
#include "spec/config/load.hpp"

namespace assay::spec {

/// The defaults of steps, length and learning rate are the demo model's. A run of any other states them, and
/// one of a model of its own, which is a file or a folder or starts from weights, the data as well: where
/// data.paths is absent, a run reads text of the built-in grammar (data.paths=[] asks for it). Errors:
/// UserError(usage) with all that is missing, and usual values; of these settings loaded.gather then says
/// nothing.
void require_stated(Loaded& loaded);

}  // namespace assay::spec
