#include "impl/checkpoint/weight_folder.hpp"

#include <algorithm>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/safetensors_file.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace fs = std::filesystem;

namespace {
[[noreturn]] void refuse_weights(const fs::path& path, const std::string& what) {
  throw UserError(ExitCode::bad_data, path.string() + ": " + what);
}

/// What there is instead of safetensors.
std::string other_weights(const fs::path& folder) {
  std::error_code unknown;
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (fs::exists(folder / name, unknown))
      return std::string("; it holds ") + name +
             ", a pickle, which is not read: load it with transformers and save it by "
             "save_pretrained(safe_serialization=True)";
  return "; give a folder as transformers' save_pretrained writes it";
}

void open_one(WeightFolder& folder, const std::string& name) {
  try {
    InputFile input(folder.path / name);
    folder.files.push_back({name, header_in(input)});
    folder.inputs.push_back(std::move(input));
  } catch (const InputFile::Unreadable& error) {
    throw UserError(ExitCode::bad_data,
                    std::string(error.what()) + "; the folder is not whole: fetch it anew");
  } catch (const UserError& error) {
    throw UserError(error.code(), std::string(error.what()) +
                                      "; the file is damaged, cut off or of another "
                                      "kind: fetch it anew");
  }
}
}  // namespace

std::uint64_t WeightFolder::first_byte(const spec::WeightSource& source) const {
  const spec::safetensors::Tensor& at = tensor(source);
  return files[source.file].header.data_offset + at.begin +
         static_cast<std::uint64_t>(source.first) * spec::safetensors::element_bytes(at.dtype);
}

std::int64_t WeightFolder::bytes() const {
  std::int64_t sum = 0;
  for (const InputFile& input : inputs) sum += static_cast<std::int64_t>(input.size());
  return sum;
}

WeightFolder open_weights(const std::string& path) {
  WeightFolder folder{.path = path, .inputs = {}, .files = {}};
  std::error_code unknown;
  if (!fs::is_directory(folder.path, unknown))
    refuse_weights(folder.path, "is no folder; give one that holds config.json and model.safetensors");
  const fs::path index = folder.path / spec::weight_index_name;
  const bool listed = fs::exists(index, unknown), single = fs::exists(folder.path / spec::single_weight_file);
  if (!listed && !single)
    refuse_weights(folder.path, std::string("holds neither ") + spec::single_weight_file + " nor " +
                                    spec::weight_index_name + other_weights(folder.path));
  if (!listed) {
    open_one(folder, spec::single_weight_file);
    return folder;
  }
  const std::string json = read_whole(index, spec::file_limits::weight_index);
  const std::vector<std::string> names = spec::files_of_index(json, index.string());
  // weight_files_c9
  const auto other =
      std::ranges::find_if(names, [](const auto& name) { return name != spec::single_weight_file; });
  if (single && other != names.end())
    throw UserError(ExitCode::bad_data,
                    folder.path.string() +
                        ": weight_files_c9: holds two models: " + spec::single_weight_file +
                        ", which transformers loads, and " + *other + " of " + spec::weight_index_name +
                        "; move away what is not meant, that file or the index with its files");
  for (const std::string& name : names) open_one(folder, name);
  spec::check_index(json, folder.files, index.string());
  return folder;
}

spec::WeightSources sources_of(const WeightFolder& folder, const spec::ModelSpec& model,
                               const spec::Inventory& inventory) {
  spec::WeightSources sources = spec::find_weights(model, inventory, folder.files, folder.path.string());
  const auto hash = [&](const spec::WeightSource& source) {
    const spec::safetensors::Tensor& tensor = folder.tensor(source);
    const std::uint64_t begin = folder.first_byte(source);
    return folder.inputs[source.file].hash(begin, begin + (tensor.end - tensor.begin));
  };
  for (const spec::WeightSource& head : sources.head) {
    const spec::WeightSource& embedding = sources.of.front();  // the first parameter
    // weight_files_c7
    if (folder.tensor(head).dtype != folder.tensor(embedding).dtype || hash(head) != hash(embedding))
      throw UserError(
          ExitCode::bad_data,
          folder.path.string() + ": weight_files_c7: " + folder.tensor(head).name +
              " has other values than " + folder.tensor(embedding).name +
              ", and config.json ties the two (\"tie_word_embeddings\" = true); one of them would "
              "be lost: set tie_word_embeddings to false");
    sources.ignored.push_back(folder.tensor(head).name);
  }
  return sources;
}

}  // namespace assay::impl::checkpoint
