#pragma once
// manifest.json of a checkpoint (spec/checkpoint/checkpoint.md).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/data_file.hpp"

namespace assay::impl::checkpoint {

struct TensorEntry {
  std::string name;
  std::string hash;  ///< XXH3-128 of its bytes
};

struct FileEntry {
  std::string name;  ///< within the checkpoint's folder
  std::int64_t bytes = 0;
  std::string hash;  ///< XXH3-128 of the whole file
  std::vector<TensorEntry> tensors;
};

/// Loss of a checkpoint on the run's validation set.
struct Validated {
  double loss = 0;  ///< [nats per token]
  std::string set;  ///< hash of the set (spec/record/record.md, `set_hash`)
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::string config;
  std::string version;
  std::string dtype;  ///< of every tensor, as safetensors names it: "F32", "F64", "BF16"
  std::optional<std::vector<DataFile>> data;  ///< token files of the run; earlier versions did not write them
  std::optional<Validated> validation = {};   ///< where the run was validated at this step
  std::vector<FileEntry> files = {};
  std::string model = {};  ///< as TOML (spec/model); empty where an earlier version wrote it
};

std::string to_json(const Manifest& manifest);

/// Errors: UserError(bad_data) checkpoint_c2 naming `origin` and the field.
Manifest manifest_from_json(const std::string& text, const std::string& origin);

}  // namespace assay::impl::checkpoint
