// Writes what another framework needs to train the same run: initial weights, batches, settings.
//   export_run FOLDER STEPS [key=value ...]
// FOLDER/run.json             model, settings, learning rate of each step; what it cannot hold is
// refused FOLDER/weights.safetensors  initial weights, fp32 (fp64 with compute.dtype=f64) FOLDER/tokens.i32
// [STEPS, sequences, sequence_length + 1] int32 Read by tests/bench/eager_pytorch.py. With
// compute.device=cuda the weights are made on the GPU: the same bits, sooner.
#include <ATen/ATen.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "impl/data/open_source.hpp"
#include "impl/run/trainer.hpp"
#include "spec/checkpoint/model_file.hpp"
#include "spec/config/load.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/error.hpp"
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

/// A file that is whole when `close` returns. Errors: UserError(io).
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)), file_(path_, std::ios::binary) {}
  void write(const void* bytes, std::size_t count) {
    file_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    check();
  }
  void write(const std::string& text) { write(text.data(), text.size()); }
  void close() {
    file_.close();
    check();
  }

 private:
  void check() const {
    if (!file_)
      throw UserError(ExitCode::io, "cannot write " + path_ +
                                        ": look at the room on its disk, at who may write there and at the "
                                        "largest file allowed (ulimit -f)");
  }

  const std::string path_;
  std::ofstream file_;
};

/// What the format has no words for would be trained as if it were not there.
void refuse_what_is_not_exported(const spec::RunConfig& config, const spec::ModelSpec& model) {
  std::string left_out;
  const auto leave_out = [&](bool set, const std::string& name) {
    if (set) left_out += (left_out.empty() ? "" : ", ") + name;
  };
  leave_out(model.rope_scaling.has_value(), "rope_scaling of the model");
  leave_out(!config.weights.empty(), "model.weights");
  leave_out(config.z_loss != 0, "loss.z_loss");
  leave_out(config.end_of_document >= 0, "data.end_of_document");
  leave_out(config.document_ends, "data.document_ends");
  if (!left_out.empty())
    throw UserError(ExitCode::usage, "an exported run cannot hold " + left_out +
                                         ": another framework would train another run; leave it out");
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
                 field("micro", spec::micro_sequences(config, 1)),
                 field("sequence_length", config.sequence_length), field("steps", steps),
                 field("adamw", "{" + adamw + "}"), field("clip", config.clip),
                 field("learning_rates", "[" + joined(rates) + "]")}) +
         "}\n";
}

void write_tokens(const impl::data::SampleSource& source, const spec::RunConfig& config, std::int64_t steps,
                  const std::string& path) {
  const spec::data::SampleOrder order{config.seed, source.samples(), config.sequences};
  std::vector<std::int32_t> ids(static_cast<std::size_t>(config.sequence_length + 1));
  OutputFile file(path);
  for (std::int64_t step = 0; step < steps; ++step)
    for (const std::int64_t sample : spec::data::step_samples(order, step)) {
      source.read(sample, ids);
      file.write(ids.data(), ids.size() * sizeof ids[0]);
    }
  file.close();
}

void write_weights(const impl::ParameterBuffers& buffers, const std::string& path) {
  const std::string dtype = buffers.master.scalar_type() == at::kDouble ? "F64" : "F32";
  OutputFile file(path);
  file.write(spec::safetensors::serialize(spec::header_of(buffers.inventory, dtype)));
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    const at::Tensor values = impl::view(buffers.master, parameter).cpu().contiguous();
    file.write(values.const_data_ptr(), values.nbytes());
  }
  file.close();
}

std::int64_t steps_of(const char* word) {
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(word, word + std::strlen(word), steps);
  if (error != std::errc() || *end || steps < 1)
    throw UserError(ExitCode::usage, "STEPS=" + std::string(word) + ": give a whole number from 1 on");
  return steps;
}

void write_run(const std::string& folder, std::int64_t steps, const std::vector<std::string>& settings) {
  const spec::RunConfig config = spec::load("", settings);
  const spec::ModelSpec model = spec::find_model(config.model);
  refuse_what_is_not_exported(config, model);
  std::filesystem::create_directories(folder);
  impl::ParameterBuffers buffers = impl::allocate(
      model, config.dtype, at::Device(config.device == spec::Device::cuda ? at::kCUDA : at::kCPU));
  impl::initialise(buffers, model, config.seed);
  write_weights(buffers, folder + "/weights.safetensors");
  write_tokens(*impl::data::open_source(config, model), config, steps, folder + "/tokens.i32");
  OutputFile run(folder + "/run.json");
  run.write(description(config, model, steps));
  run.close();
}

}  // namespace
}  // namespace assay

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "export_run FOLDER STEPS [key=value ...]\n");
    return 2;
  }
  try {
    assay::write_run(words[1], assay::steps_of(words[2]), {words + 3, words + count});
  } catch (const assay::UserError& error) {
    std::fprintf(stderr, "export_run: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "export_run: %s\n", error.what());
    return 1;
  }
}
