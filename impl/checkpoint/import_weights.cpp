#include "impl/checkpoint/import_weights.hpp"

#include <ATen/ATen.h>

#include <set>
#include <sstream>

#include "impl/checkpoint/data_file.hpp"
#include "impl/checkpoint/load_parameter.hpp"
#include "impl/checkpoint/weight_folder.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/params/slices.hpp"
#include "spec/checkpoint/content_hash.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace {
at::ScalarType type_in_file(const std::string& dtype) {
  if (dtype == "F64") return at::kDouble;
  if (dtype == "F16") return at::kHalf;
  return dtype == "BF16" ? at::kBFloat16 : at::kFloat;
}

/// Elements [begin, end) of a parameter, in their place in a tensor of its shape; the rest takes no memory.
at::Tensor read_range(const WeightFolder& folder, const spec::WeightSource& source,
                      const spec::Parameter& parameter, std::int64_t begin, std::int64_t end) {
  at::Tensor values = at::empty(parameter.shape, type_in_file(folder.tensor(source).dtype));
  const auto element = static_cast<std::int64_t>(values.element_size());
  folder.inputs[source.file].read(folder.first_byte(source) + static_cast<std::uint64_t>(begin * element),
                                  {static_cast<std::byte*>(values.data_ptr()) + begin * element,
                                   static_cast<std::size_t>((end - begin) * element)});
  // weight_files_c8
  if (!at::isfinite(values.view({-1}).narrow(0, begin, end - begin)).all().item<bool>())
    throw UserError(ExitCode::bad_data, folder.inputs[source.file].path().string() +
                                            ": weight_files_c8: " + parameter.name +
                                            " holds a NaN or an infinity; fetch the file "
                                            "anew");
  return values;
}

/// A line for the hash of the content: name, type and hash of the bytes.
std::string content_line(const std::string& name, const std::string& dtype, const at::Tensor& values) {
  return name + " " + dtype + " " +
         spec::content_hash({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()}) + "\n";
}

/// Where a parameter of the model lies on this rank: in the tensors `targets` of its buffers, as number
/// `index` there. Without buffers where other expert ranks hold it.
struct Place {
  ParameterBuffers* buffers = nullptr;
  std::size_t index = 0;
  std::vector<at::Tensor> targets = {};
};
std::vector<Place> places_of(ParameterBuffers& buffers) {
  std::vector<Place> places(buffers.model.parameters.size());
  for (ParameterBuffers* each : {&buffers, buffers.experts.get()})
    for (std::size_t i = 0; each && i < each->placements.size(); ++i) {
      Place& place = places[each->placements[i].number];
      place = {each, i, {each->master}};
      if (!each->master.is_same(each->weights)) place.targets.push_back(each->weights);
    }
  return places;
}

/// The lines of all ranks, which were dealt out in turn, in the order of the parameters.
std::string in_order(const std::vector<std::string>& of_ranks, std::size_t parameters) {
  std::vector<std::istringstream> streams;
  for (const std::string& text : of_ranks) streams.emplace_back(text);
  std::string all;
  for (std::size_t i = 0; i < parameters; ++i) {
    std::string line;
    std::getline(streams[i % streams.size()], line);
    all += line + "\n";
  }
  return all;
}
}  // namespace

void check_weights(const std::string& folder, const spec::ModelSpec& model) {
  sources_of(open_weights(folder), model, spec::inventory(model));
}

std::string sample_of_weights(const std::string& folder) {
  std::string all;
  for (const InputFile& input : open_weights(folder).inputs) {
    const DataFile file = data_file(input.path().string());
    all += input.path().filename().string() + " " + std::to_string(file.bytes) + " " + file.sample + " ";
  }
  return spec::content_hash(std::as_bytes(std::span(all)));
}

spec::record::WeightsFrom import_weights(const std::string& path, const spec::ModelSpec& model,
                                         ParameterBuffers& buffers, Communicator& communicator) {
  spec::record::WeightsFrom out{.path = path, .content = {}, .types = {}};
  const auto& parameters = buffers.model.parameters;
  std::string lines;
  refuse_together(communicator, [&] {
    const WeightFolder folder = open_weights(path);
    const spec::WeightSources sources = sources_of(folder, model, buffers.model);
    const std::vector<Place> places = places_of(buffers);
    std::set<std::string> types;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const spec::Parameter& parameter = parameters[i];
      const std::string& dtype = folder.tensor(sources.of[i]).dtype;
      types.insert(dtype);
      out.parameters += parameter.size;
      out.bytes += parameter.size * static_cast<std::int64_t>(spec::safetensors::element_bytes(dtype));
      const Place& place = places[i];
      const at::Tensor bias = router_bias_of(buffers, i);
      spec::Inventory::Range range{0, 0};
      if (bias.defined())
        range = {0, parameter.size};
      else if (place.buffers)
        range = held(*place.buffers, place.targets, place.index);
      const bool hashes =
          i % static_cast<std::size_t>(communicator.size()) == static_cast<std::size_t>(communicator.rank());
      if (hashes) range = {0, parameter.size};
      if (range.begin == range.end) continue;
      const at::Tensor values = read_range(folder, sources.of[i], parameter, range.begin, range.end);
      if (hashes) lines += content_line(parameter.name, dtype, values);
      if (bias.defined()) {
        bias.copy_(values);
        continue;
      }
      for (const at::Tensor& target : place.targets)
        store(*place.buffers, target, place.index, values.to(target.scalar_type()));
    }
    for (const std::string& type : types) out.types += (out.types.empty() ? "" : ", ") + type;
  });
  const std::string all = in_order(communicator.all_gather(lines), parameters.size());
  out.content = spec::content_hash(std::as_bytes(std::span(all)));
  return out;
}

}  // namespace assay::impl::checkpoint
