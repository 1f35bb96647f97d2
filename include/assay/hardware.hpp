#pragma once
// GPUs as their vendors' documents state them, each fact with its source.
//
// Promised, in namespace assay:
//   spec::Precision, spec::precisions, spec::precision_from, spec::to_string
//   spec::Gpu, spec::Peak, spec::Fact, spec::Source, spec::gpus, spec::GpuMatch, spec::find_gpu
//   spec::named_gpu, spec::dense_peak
//
// Units: [FLOP/s], [B], [B/s], [W]. A fact that no document states is absent, never guessed. Errors:
// UserError (usage) of named_gpu, with the candidates or the nearest names.
#include "spec/hardware/hardware.hpp"
