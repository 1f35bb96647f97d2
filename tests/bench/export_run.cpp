// Writes what another framework needs to train the same run: initial weights, batches, settings.
//   export_run FOLDER STEPS [key=value ...]
// FOLDER/run.json             model, settings, learning rate of each step
// FOLDER/weights.safetensors  initial weights, fp32 (fp64 with compute.dtype=f64)
// FOLDER/tokens.i32           [STEPS, sequences, sequence_length + 1] int32
// Read by tests/bench/eager_pytorch.py. With compute.device=cuda the weights are made on the GPU: the same
// bits, sooner.
#include <ATen/ATen.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "impl/data/open_source.hpp"
#include "impl/run/trainer.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/config/load.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/text/json.hpp"

namespace assay {
namespace {

std::string field(const char* name, const std::string& json) {
  return "\"" + std::string(name) + "\": " + json;
}
std::string field(const char* name, double number) { return field(name, spec::json_number(number)); }
std::string field(const char* name, std::int64_t number) { return field(name, std::to_string(number)); }
std::string field(const char* name, bool holds) { return field(name, std::string(holds ? "true" : "false")); }

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}

std::string description(const spec::RunConfig& config, const spec::ModelSpec& m, std::int64_t steps) {
  std::vector<std::string> rates;
  for (std::int64_t step = 0; step < steps; ++step)
    rates.push_back(spec::json_number(spec::learning_rate(impl::run::schedule_of(config), step)));
  const std::string model =
      joined({field("vocab", m.vocab), field("width", m.width), field("layers", m.layers),
              field("heads", m.heads), field("kv_heads", m.kv_heads), field("head_dim", m.head_dim),
              field("ffn", m.ffn), field("tied_embeddings", m.tied_embeddings), field("qk_norm", m.qk_norm),
              field("norm_eps", m.norm_eps), field("rope_theta", m.rope_theta)});
  const std::string betas = spec::json_number(config.beta1) + ", " + spec::json_number(config.beta2);
  const std::string adamw = joined({field("betas", "[" + betas + "]"), field("eps", config.adam_eps),
                                    field("weight_decay", config.weight_decay)});
  return "{" +
         joined({field("model", "{" + model + "}"), field("sequences", config.sequences),
                 field("sequence_length", config.sequence_length), field("steps", steps),
                 field("adamw", "{" + adamw + "}"), field("clip", config.clip),
                 field("learning_rates", "[" + joined(rates) + "]")}) +
         "}\n";
}

void write_tokens(const impl::data::SampleSource& source, const spec::RunConfig& config, std::int64_t steps,
                  const std::string& path) {
  const spec::data::SampleOrder order{config.seed, source.samples(), config.sequences};
  std::vector<std::int32_t> ids(static_cast<std::size_t>(config.sequence_length + 1));
  std::ofstream file(path, std::ios::binary);
  for (std::int64_t step = 0; step < steps; ++step)
    for (const std::int64_t sample : spec::data::step_samples(order, step)) {
      source.read(sample, ids);
      file.write(reinterpret_cast<const char*>(ids.data()),
                 static_cast<std::streamsize>(ids.size() * sizeof ids[0]));
    }
}

void write_weights(const impl::ParameterBuffers& buffers, const std::string& path) {
  const std::string dtype = buffers.master.scalar_type() == at::kDouble ? "F64" : "F32";
  spec::safetensors::Header header;
  std::uint64_t end = 0;
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(parameter.size) * spec::safetensors::element_bytes(dtype);
    header.tensors.push_back({parameter.name, dtype, parameter.shape, begin, end});
  }
  std::ofstream file(path, std::ios::binary);
  file << spec::safetensors::serialize(header);
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const at::Tensor values = impl::view(buffers.master, parameter).cpu().contiguous();
    file.write(static_cast<const char*>(values.const_data_ptr()),
               static_cast<std::streamsize>(values.nbytes()));
  }
}

void write_run(const std::string& folder, std::int64_t steps, const std::vector<std::string>& settings) {
  const spec::RunConfig config = spec::load("", settings);
  const spec::ModelSpec model = spec::find_model(config.model);
  std::filesystem::create_directories(folder);
  impl::ParameterBuffers buffers = impl::allocate(
      model, config.dtype, at::Device(config.device == spec::Device::cuda ? at::kCUDA : at::kCPU));
  impl::initialise(buffers, model, config.seed);
  write_weights(buffers, folder + "/weights.safetensors");
  write_tokens(*impl::data::open_source(config, model), config, steps, folder + "/tokens.i32");
  std::ofstream(folder + "/run.json") << description(config, model, steps);
}

}  // namespace
}  // namespace assay

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "export_run FOLDER STEPS [key=value ...]\n");
    return 2;
  }
  try {
    assay::write_run(words[1], std::stoll(words[2]), {words + 3, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "export_run: %s\n", error.what());
    return 1;
  }
}
