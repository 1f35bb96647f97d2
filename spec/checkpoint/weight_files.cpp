#include "spec/checkpoint/weight_files.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {

using TensorPlace = std::pair<std::size_t, std::size_t>;  ///< file, tensor of its header

bool is_expert(Role role) {
  return role == Role::expert_gate || role == Role::expert_up || role == Role::expert_down;
}

/// "model.layers.3." of "model.layers.3.mlp.experts.7.up_proj.weight".
std::string layer_prefix(const std::string& name) {
  return name.substr(0, name.find('.', std::string_view("model.layers.").size()) + 1);
}

/// Which expert of its layer a routed expert's matrix is of.
std::int64_t expert_number(const std::string& name) {
  constexpr std::string_view before = ".experts.";
  return std::stoll(name.substr(name.find(before) + before.size()));
}

/// In the stacks that transformers v5 computes with: gate and up of one expert one behind the other,
/// [X, 2 G, D], and [X, D, G].
WeightPlace in_stack(const ModelSpec& model, const Parameter& parameter) {
  const std::int64_t X = model.experts->count, rows = parameter.shape[0], columns = parameter.shape[1];
  const std::string at = layer_prefix(parameter.name) + "mlp.experts.";
  const std::int64_t expert = expert_number(parameter.name);
  if (parameter.role == Role::expert_down)
    return {at + "down_proj", {X, rows, columns}, expert * parameter.size};
  const std::int64_t half = parameter.role == Role::expert_up ? 1 : 0;
  return {at + "gate_up_proj", {X, 2 * rows, columns}, (2 * expert + half) * parameter.size};
}

/// Tables of angles that early versions stored with the weights: they follow from the configuration.
bool follows_from_configuration(const std::string& tensor) {
  return tensor.ends_with(".rotary_emb.inv_freq");
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t extent : shape) out += (out.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + out + "]";
}

/// "a, b and 17 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) out += (i ? ", " : "") + names[i];
  return names.size() > most ? out + " and " + std::to_string(names.size() - most) + " more" : out;
}

/// What is wrong with a folder's tensors, of every kind.
struct WeightFaults {
  std::vector<std::string> twice, missing, foreign, shapes, types;
  std::string block_behind = {};  ///< the layer of `foreign` that stands behind the model's last

  void refuse_if_any(const std::string& origin) const {
    std::string out;
    const auto tell = [&](int rule, const char* what, const std::vector<std::string>& names) {
      if (names.empty()) return;
      out += (out.empty() ? "" : "; ") + ("weight_files_c" + std::to_string(rule)) + ": " +
             std::to_string(names.size()) + (names.size() == 1 ? " tensor " : " tensors ") + what + ": " +
             some_of(names);
    };
    tell(1, "in more than one place", twice);
    tell(2, "of the model missing", missing);
    tell(3, "that the model does not have", foreign);
    tell(4, "of another shape", shapes);
    tell(5, "of a type that no weight has", types);
    if (out.empty()) return;
    throw UserError(ExitCode::bad_data,
                    origin + ": " + out +
                        "; give the folder whose config.json is the model's, whole and "
                        "not quantised" +
                        (block_behind.empty() ? ""
                                              : "; " + block_behind +
                                                    " is a block of multi-token prediction, which is not "
                                                    "trained: transformers' save_pretrained writes the "
                                                    "folder without it"));
  }
};

/// Tensors of all files by name.
class TensorTable {
 public:
  TensorTable(const std::vector<WeightFile>& files, WeightFaults& faults) : files_(files) {
    for (std::size_t f = 0; f < files.size(); ++f)
      for (std::size_t t = 0; t < files[f].header.tensors.size(); ++t) {
        const safetensors::Tensor& tensor = files[f].header.tensors[t];
        const auto [other, is_new] = places_.emplace(tensor.name, TensorPlace(f, t));
        // weight_files_c1
        if (!is_new)
          faults.twice.push_back(tensor.name + " (" + files[other->second.first].name + ", " + files[f].name +
                                 ")");
        // weight_files_c5
        if (!is_weight_dtype(tensor.dtype)) faults.types.push_back(tensor.name + " (" + tensor.dtype + ")");
      }
  }

  const TensorPlace* find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
  }
  const safetensors::Tensor& at(const TensorPlace& place) const {
    return files_[place.first].header.tensors[place.second];
  }
  const std::map<std::string, TensorPlace>& all() const { return places_; }

 private:
  const std::vector<WeightFile>& files_;
  std::map<std::string, TensorPlace> places_;
};

/// weight_files_c4
void check_shape(const WeightPlace& place, const safetensors::Tensor& tensor, WeightFaults& faults) {
  if (tensor.shape == place.shape) return;
  std::vector<std::int64_t> turned = place.shape;
  std::reverse(turned.begin(), turned.end());
  const std::string text = place.tensor + " is " + shape_text(tensor.shape) + ", the model's is " +
                           shape_text(place.shape) + (tensor.shape == turned ? " (transposed?)" : "");
  if (faults.shapes.empty() || faults.shapes.back() != text) faults.shapes.push_back(text);
}

}  // namespace

bool is_weight_dtype(std::string_view dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

std::vector<WeightPlace> weight_places(const ModelSpec& model, const Parameter& parameter) {
  std::vector<WeightPlace> places = {{parameter.name, parameter.shape, 0}};
  if (is_expert(parameter.role) && parameter.matrix()) places.push_back(in_stack(model, parameter));
  // With stacks a Mixtral's layer has the other families' name for its experts.
  if (parameter.role == Role::router && model.family == Family::mixtral)
    places.push_back({layer_prefix(parameter.name) + "mlp.gate.weight", parameter.shape, 0});
  if (parameter.role == Role::embedding && model.tied_embeddings)
    places.push_back({"lm_head.weight", parameter.shape, 0});
  return places;
}

WeightSources find_weights(const ModelSpec& model, const Inventory& inventory,
                           const std::vector<WeightFile>& files, const std::string& origin) {
  WeightFaults faults;
  const TensorTable table(files, faults);
  WeightSources out;
  std::set<std::string> used;
  for (const Parameter& parameter : inventory.parameters) {
    std::vector<WeightSource> found;
    for (const WeightPlace& place : weight_places(model, parameter)) {
      const TensorPlace* at = table.find(place.tensor);
      if (!at) continue;
      used.insert(place.tensor);
      check_shape(place, table.at(*at), faults);
      found.push_back({at->first, at->second, place.first});
    }
    const bool tied = parameter.role == Role::embedding && model.tied_embeddings;
    // weight_files_c2
    if (found.empty()) faults.missing.push_back(parameter.name);
    // weight_files_c1
    if (found.size() > 1 && !tied) faults.twice.push_back(parameter.name);
    if (found.size() > 1 && tied) out.head = {found[1]};
    out.of.push_back(found.empty() ? WeightSource{} : found.front());
  }
  for (const auto& [name, place] : table.all()) {
    if (used.contains(name)) continue;
    // weight_files_c3
    if (follows_from_configuration(name))
      out.ignored.push_back(name);
    else
      faults.foreign.push_back(name);
    const std::string behind = "model.layers." + std::to_string(model.layers);
    if (model.family == Family::deepseek_v3 && name.starts_with(behind + ".")) faults.block_behind = behind;
  }
  faults.refuse_if_any(origin);
  return out;
}

namespace {
/// Calls `each(tensor, file)` for the entries of an index.
void read_index(const std::string& json, const std::string& origin,
                const std::function<void(const std::string&, const std::string&)>& each) {
  const document::Tree tree = parse_json(json, origin);
  const document::Item map = tree.root().at("weight_map", "this is no index of weights");
  if (!map.is(document::Kind::object)) map.wrong("an object");
  for (std::size_t i = 0; i < map.size(); ++i) each(map.key(i), map[i].text());
}
}  // namespace

std::vector<std::string> files_of_index(const std::string& json, const std::string& origin) {
  std::set<std::string> names;
  read_index(json, origin, [&](const std::string& tensor, const std::string& file) {
    if (!is_file_name(file) || file.starts_with('.'))
      throw UserError(ExitCode::bad_data,
                      origin + ": " + tensor + " is in " + quote(file) + ", which is no file of the folder");
    names.insert(file);
  });
  if (names.empty()) throw UserError(ExitCode::bad_data, origin + ": lists no tensor");
  return {names.begin(), names.end()};
}

void check_index(const std::string& json, const std::vector<WeightFile>& files, const std::string& origin) {
  std::set<std::pair<std::string, std::string>> held;
  for (const WeightFile& file : files)
    for (const safetensors::Tensor& tensor : file.header.tensors) held.emplace(tensor.name, file.name);
  std::vector<std::string> wrong;
  read_index(json, origin, [&](const std::string& tensor, const std::string& file) {
    if (!held.contains({tensor, file})) wrong.push_back(tensor + " (" + file + ")");
  });
  // weight_files_c6
  if (!wrong.empty())
    throw UserError(ExitCode::bad_data, origin + ": weight_files_c6: " + std::to_string(wrong.size()) +
                                            " of its tensors are not in the files that it names: " +
                                            some_of(wrong) + "; fetch the folder anew");
}

std::vector<WeightFile> files_to_write(const Inventory& inventory, const std::string& dtype,
                                       std::int64_t most_bytes) {
  std::vector<WeightFile> files(1);
  std::uint64_t position = 0;
  for (const Parameter& parameter : inventory.parameters) {
    const bool narrow = dtype == "BF16" || dtype == "F16";
    const std::string type = parameter.role == Role::router_bias && narrow ? "F32" : dtype;
    const std::uint64_t bytes = static_cast<std::uint64_t>(parameter.size) * safetensors::element_bytes(type);
    if (position > 0 && position + bytes > static_cast<std::uint64_t>(most_bytes)) {
      files.emplace_back();
      position = 0;
    }
    files.back().header.tensors.push_back(
        {parameter.name, type, parameter.shape, position, position + bytes});
    position += bytes;
  }
  const auto five = [](std::size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].name = files.size() == 1 ? single_weight_file
                                      : "model-" + five(i + 1) + "-of-" + five(files.size()) + ".safetensors";
    files[i].header.metadata = {{"format", "pt"}};
  }
  return files;
}

std::string index_to_write(const std::vector<WeightFile>& files) {
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> file_of;
  for (const WeightFile& file : files)
    for (const safetensors::Tensor& tensor : file.header.tensors) {
      bytes += tensor.end - tensor.begin;
      file_of[tensor.name] = file.name;
    }
  std::string map;
  for (const auto& [tensor, file] : file_of)
    map += (map.empty() ? "\n    " : ",\n    ") + json_string(tensor) + ": " + json_string(file);
  return "{\n  \"metadata\": {\"total_size\": " + std::to_string(bytes) + "},\n  \"weight_map\": {" + map +
         "\n  }\n}\n";
}

}  // namespace assay::spec
