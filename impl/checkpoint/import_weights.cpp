#include "impl/checkpoint/import_weights.hpp"

#include <ATen/ATen.h>

#include <set>
#include <sstream>

#include "impl/checkpoint/data_file.hpp"
#include "impl/checkpoint/parts.hpp"
#include "impl/checkpoint/weight_folder.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/params/slices.hpp"
#include "spec/checkpoint/content_hash.hpp"
#include "spec/error.hpp"

namespace assay::impl::checkpoint {

namespace {
/// Rectangle `slice` of a parameter.
at::Tensor read_weights(const WeightFolder& folder, const spec::WeightSource& source,
                        const spec::Parameter& parameter, const spec::Slice& slice) {
  const at::Tensor values =
      at::empty({slice.rows, slice.columns}, scalar_type_of(folder.tensor(source).dtype));
  const std::size_t element = values.element_size();
  read_slice(folder.inputs[source.file], folder.first_byte(source), element,
             spec::whole_slice(parameter.shape), slice, static_cast<std::byte*>(values.data_ptr()),
             static_cast<std::size_t>(slice.columns) * element);
  // weight_files_c8
  if (!at::isfinite(values).all().item<bool>())
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

DataFile weights_file(const std::string& folder) {
  DataFile out{.path = folder, .bytes = 0, .sample = {}, .of = DataFile::weights};
  std::string all;
  for (const InputFile& input : open_weights(folder).inputs) {
    const DataFile file = data_file(input.path().string());
    out.bytes += file.bytes;
    all += input.path().filename().string() + " " + std::to_string(file.bytes) + " " + file.sample + " ";
  }
  out.sample = spec::content_hash(std::as_bytes(std::span(all)));
  return out;
}

spec::record::WeightsFrom import_weights(const std::string& path, const spec::ModelSpec& model,
                                         ParameterBuffers& buffers, Communicator& communicator) {
  spec::record::WeightsFrom out{.path = path, .content = {}, .types = {}};
  const auto& parameters = buffers.model.parameters;
  std::string lines;
  refuse_together(communicator, [&] {
    const WeightFolder folder = open_weights(path);
    const spec::WeightSources sources = sources_of(folder, model, buffers.model);
    const std::vector<Destination> places = destinations(buffers, &ParameterBuffers::master);
    std::set<std::string> types;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const spec::Parameter& parameter = parameters[i];
      const std::string& dtype = folder.tensor(sources.of[i]).dtype;
      types.insert(dtype);
      out.parameters += parameter.size;
      out.bytes += parameter.size * static_cast<std::int64_t>(spec::safetensors::element_bytes(dtype));
      const bool hashes =
          i % static_cast<std::size_t>(communicator.size()) == static_cast<std::size_t>(communicator.rank());
      std::vector<spec::Slice> slices = places[i].read;
      if (hashes) slices = {spec::whole_slice(parameter.shape)};
      for (const spec::Slice& slice : slices) {
        const at::Tensor values = read_weights(folder, sources.of[i], parameter, slice);
        if (hashes) lines += content_line(parameter.name, dtype, values);
        places[i].put(slice, values);
      }
    }
    for (const std::string& type : types) out.types += (out.types.empty() ? "" : ", ") + type;
  });
  const std::string all = in_order(communicator.all_gather(lines), parameters.size());
  out.content = spec::content_hash(std::as_bytes(std::span(all)));
  return out;
}

}  // namespace assay::impl::checkpoint
