#pragma once
// manifest.json of a checkpoint (spec/checkpoint/checkpoint.md).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/data_file.hpp"
#include "spec/ops/optimizer/optimizer.hpp"
#include "spec/parallel/slice.hpp"

namespace assay::impl::checkpoint {

/// Schema of what is written; 1, with a file for each part and every tensor whole, is read.
inline constexpr std::int64_t manifest_schema = 2;

/// The parts of a checkpoint, of which each parameter has one tensor: master weights and the slots of the
/// optimizer's state. A router's bias is in the first alone.
inline constexpr auto part_names = spec::adamw::parts;

/// A parameter of the model.
struct ParameterEntry {
  std::string name;
  std::string dtype;  ///< in every part, as safetensors names it
  std::vector<std::int64_t> shape;
};

/// A rectangle of a parameter in a file.
struct SliceEntry {
  std::string part;  ///< one of part_names
  std::string parameter;
  spec::Slice slice;
  std::uint64_t begin = 0;  ///< of its bytes in the file [B]
  std::string hash;         ///< spec::slice_hash, 16 digits; of schema 1 XXH3-128 of its bytes, 32 digits
};

struct FileEntry {
  std::string name;  ///< within the checkpoint's folder
  std::int64_t bytes = 0;
  std::string
      hash;  ///< XXH3-128 of its header: of the bytes before the first tensor; of schema 1 of all bytes
  std::vector<SliceEntry> slices;  ///< of schema 1: parts and places stand in the headers of the files alone
};

/// Loss of a checkpoint on the run's validation set.
struct Validated {
  double loss = 0;  ///< [nats per token]
  std::string set;  ///< hash of the set (spec/record/record.md, `set_hash`)
};

struct Manifest {
  std::int64_t schema = manifest_schema;
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::string config;
  std::optional<std::vector<std::string>> derived = {};  ///< settings that followed from others
  std::string version;
  std::string dtype;  ///< of what is learned, as safetensors names it: "F32", "F64", "BF16"
  std::optional<std::vector<DataFile>> data;    ///< what the run reads; earlier versions did not write it
  std::optional<Validated> validation = {};     ///< where the run was validated at this step
  std::vector<ParameterEntry> parameters = {};  ///< in the order of the model; of schema 1 none
  std::vector<FileEntry> files = {};
  std::string model = {};    ///< as TOML (spec/model); empty where an earlier version wrote it
  std::int64_t skipped = 0;  ///< steps that were not finite and changed nothing
  std::string record =
      {};  ///< hash of the record's last line (spec/record/record.md, "Chain"); empty: not known
};

std::string to_json(const Manifest& manifest);
/// Of one file: what a rank that wrote it gives to the rank that commits.
std::string to_json(const FileEntry& file);

/// Errors of both: UserError(bad_data) checkpoint_c2 naming `origin` and the field.
Manifest manifest_from_json(const std::string& text, const std::string& origin);
FileEntry file_from_json(const std::string& text, const std::string& origin);

}  // namespace assay::impl::checkpoint
