#include "impl/generate/loaded_weights.hpp"

#include <ATen/ATen.h>

#include <filesystem>
#include <stdexcept>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/checkpoint/export.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "impl/checkpoint/weight_folder.hpp"
#include "impl/generate/tokenizer_file.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::generate {

namespace fs = std::filesystem;

namespace {
/// `bytes` of that type as a tensor, which does not own them.
at::Tensor tensor_over(std::span<const std::byte> bytes, const std::string& dtype) {
  const at::ScalarType type = checkpoint::scalar_type_of(dtype);
  const auto elements = static_cast<std::int64_t>(bytes.size() / spec::safetensors::element_bytes(dtype));
  return at::from_blob(const_cast<std::byte*>(bytes.data()), {elements}, at::TensorOptions().dtype(type));
}

/// Takes a parameter's elements in order, in pieces.
class Target {
 public:
  explicit Target(const at::Tensor& flat) : flat_(flat) {}
  void take(const at::Tensor& piece) {
    flat_.narrow(0, done_, piece.numel()).copy_(piece);
    done_ += piece.numel();
  }

 private:
  at::Tensor flat_;
  std::int64_t done_ = 0;
};

void read_checkpoint(const WeightsPlace& place, const std::vector<spec::Parameter>& parameters,
                     const std::function<at::Tensor(std::size_t)>& flat_of) {
  const checkpoint::StoredState stored(place.path, "generate from another checkpoint");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    const std::string& dtype = stored.parameter(name).dtype;
    Target target(flat_of(i));
    stored.stream(checkpoint::part_names[0], name, [&](const spec::Slice&, std::span<const std::byte> piece) {
      target.take(tensor_over(piece, dtype));
    });
  }
}

void read_hugging_face(const WeightsPlace& place, const spec::Inventory& inventory,
                       const std::function<at::Tensor(std::size_t)>& flat_of) {
  const checkpoint::WeightFolder folder = checkpoint::open_weights(place.path);
  const spec::WeightSources sources = checkpoint::sources_of(folder, place.model, inventory);
  constexpr std::int64_t piece = 1 << 22;  // [elements]
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < inventory.parameters.size(); ++i) {
    const spec::WeightSource& source = sources.of[i];
    const std::string& dtype = folder.tensor(source).dtype;
    const std::uint64_t element = spec::safetensors::element_bytes(dtype), first = folder.first_byte(source);
    Target target(flat_of(i));
    for (std::int64_t done = 0, size = inventory.parameters[i].size; done < size; done += piece) {
      bytes.resize(static_cast<std::size_t>(std::min(piece, size - done)) * element);
      folder.inputs[source.file].read(first + static_cast<std::uint64_t>(done) * element, bytes);
      target.take(tensor_over(bytes, dtype));
    }
  }
}
}  // namespace

namespace {
/// The ids that generation_config.json, or else config.json, states as ends; none where neither does.
std::vector<std::int64_t> stated_ends(const fs::path& folder) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string path = (folder / name).string();
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    const auto tree = spec::parse_json(checkpoint::read_whole(path, spec::file_limits::model), path);
    const auto value = tree.root().find("eos_token_id");
    if (!value || value->is(spec::document::Kind::null)) continue;
    if (!value->is(spec::document::Kind::list)) return {value->integer()};
    std::vector<std::int64_t> ends;
    for (std::size_t i = 0; i < value->size(); ++i) ends.push_back((*value)[i].integer());
    return ends;
  }
  return {};
}
}  // namespace

WeightsPlace find_weights(const std::string& path) {
  WeightsPlace out;
  std::error_code unknown;
  const bool config = fs::exists(fs::path(path) / "config.json", unknown);
  if (config && !fs::exists(fs::path(path) / checkpoint::manifest_name, unknown)) {
    out.path = path;
    out.hugging_face = true;
    out.model = spec::find_model_to_train(path).model;
    out.folders = {path};
    out.ends = stated_ends(path);
  } else {
    out.path = checkpoint::checkpoint_in(path);
    out.manifest = checkpoint::read_manifest(out.path);
    out.step = out.manifest.step;
    out.model = checkpoint::model_in(out.manifest, out.path);
    out.config = spec::load_dump(out.manifest.config, out.path);
    out.folders = checkpoint::tokenizer_folders(out.config);
    if (out.config.end_of_document >= 0)
      out.ends = {out.config.end_of_document};
    else if (!out.config.weights.empty())
      out.ends = stated_ends(out.config.weights);
    else if (out.config.data_paths.empty())
      out.ends = {'\n'};  // the grammar's sentences
  }
  spec::require_trainable(out.model);
  return out;
}

LoadedWeights::LoadedWeights(const WeightsPlace& place, at::ScalarType compute, at::Device device) {
  const spec::ModelSpec& model = place.model;
  const auto exact =
      at::TensorOptions().device(device).dtype(compute == at::kDouble ? at::kDouble : at::kFloat);
  buffers_.inventory = buffers_.model = spec::inventory(model);
  buffers_.weights = at::zeros({buffers_.inventory.flat_size}, exact.dtype(compute));
  if (compute == at::kBFloat16) {
    buffers_.gains.offsets = spec::norm_gains(buffers_.inventory);
    buffers_.gains.values = at::zeros({buffers_.gains.offsets.flat_size}, exact);
  }
  if (model.experts && model.experts->router_bias)
    buffers_.router_biases = at::zeros({model.sparse_layers(), model.experts->count}, exact);
  const auto flat_of = [&](std::size_t i) {
    const spec::Parameter& parameter = buffers_.inventory.parameters[i];
    if (at::Tensor bias = router_bias_of(buffers_, i); bias.defined()) return bias;
    const bool gain = parameter.role == spec::Role::norm && buffers_.gains.values.defined();
    const std::int64_t offset = gain ? buffers_.gains.offsets.at(parameter.name).offset : parameter.offset;
    return (gain ? buffers_.gains.values : buffers_.weights).narrow(0, offset, parameter.size);
  };
  if (place.hugging_face)
    read_hugging_face(place, buffers_.inventory, flat_of);
  else
    read_checkpoint(place, buffers_.inventory.parameters, flat_of);
  for (std::int64_t block = 0; block < buffers_.inventory.blocks; ++block)
    blocks_.push_back(weight_views(buffers_, buffers_.weights, buffers_.inventory, model, block));
}

BlockGradients LoadedWeights::gradients(std::int64_t) {
  throw std::logic_error("weights that were loaded for forward passes have no gradients");
}
void LoadedWeights::gradients_ready(std::int64_t) {
  throw std::logic_error("weights that were loaded for forward passes have no gradients");
}

namespace {
class BytesCodec final : public TextCodec {
 public:
  std::vector<std::int64_t> encode(const std::string& text) const override {
    std::vector<std::int64_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  TokenText token(std::int64_t id) const override { return {.bytes = {static_cast<char>(id)}}; }
};
}  // namespace

std::unique_ptr<TextCodec> codec_of(const WeightsPlace& place, std::string& why) {
  std::string looked;
  for (const std::string& folder : place.folders) {
    const fs::path file = fs::path(folder) / "tokenizer.json";
    std::error_code unknown;
    if (fs::exists(file, unknown)) {
      checkpoint::require_tokenizer(place.manifest, file.string(),
                                    "; put that one back, or give --ids 5,17,3");
      return read_tokenizer(file.string());
    }
    looked += (looked.empty() ? "" : ", ") + folder;
  }
  constexpr std::int64_t bytes = 256;
  if (place.model.vocab == bytes) return std::make_unique<BytesCodec>();
  why = "no tokenizer.json is in " + (looked.empty() ? place.path : looked);
  return nullptr;
}

}  // namespace assay::impl::generate
