#include "spec/audit/evidence.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "spec/audit/unnamed_ranks.hpp"

namespace assay::spec::audit {

Interval wide(const Printed& printed) {
  // A printer that cuts digits leaves [value, value + one unit); rounding leaves half a unit to either side.
  return {printed.low, printed.value + 2 * (printed.high - printed.value)};
}

Interval as_written(const Peak& peak) {
  const auto three_digits = [](double rate) {
    const double unit = std::pow(10, std::floor(std::log10(rate) + 1e-12) - 2), count = rate / unit;
    return Interval{std::floor(count + 1e-9) * unit, std::ceil(count - 1e-9) * unit};
  };
  Interval out = three_digits(peak.dense);
  if (peak.sparse && std::abs(*peak.sparse / 2 / peak.dense - 1) < 0.005) {
    const Interval half = three_digits(*peak.sparse / 2);
    out = {std::min(out.low, half.low), std::max(out.high, half.high)};
  }
  return out;
}

namespace {

/// Of every GPU that the name may mean.
Interval written_of(const GpuMatch& match, Precision precision, double dense) {
  Interval out = exact_interval(dense);
  const auto with = [&](const Gpu* gpu) {
    const Interval one = as_written(*gpu->peak(precision));
    out = {std::min(out.low, one.low), std::max(out.high, one.high)};
  };
  if (match.gpu) with(match.gpu);
  for (const Gpu* gpu : match.candidates) with(gpu);
  return out;
}

bool positive(const std::optional<Printed>& printed) {
  return printed && printed->low > 1e-60 && printed->high < 1e60;
}

std::optional<double> count_of(const RunRecord& record, Setting setting) {
  const auto& printed = record[setting];
  return positive(printed) ? std::optional(printed->value) : std::nullopt;
}

double number_of(const Step& step) { return step[Field::step] ? step[Field::step]->value : -1; }

/// Every number of the two lines is the same.
bool same_numbers(const Step& a, const Step& b) {
  for (std::size_t i = 0; i < field_count; ++i) {
    if (a.fields[i].has_value() != b.fields[i].has_value()) return false;
    if (a.fields[i] && !(a.fields[i]->value == b.fields[i]->value)) return false;
  }
  return true;
}

/// False where the trainer splits models over GPUs and the lines that say how far are lost: the number of
/// GPUs is then not the number of ranks.
bool axes_are_known(const RunRecord& record) {
  const std::string& trainer = record.format.name;
  if (trainer == "kempnerforge") return record[Setting::data_parallel].has_value();  // of one line
  if (trainer != "megatron" && trainer != "torchtitan" && trainer != "nanotron") return true;
  return record[Setting::tensor_parallel] && record[Setting::pipeline_parallel];
}

std::vector<Stretch> stretches_of(const RunRecord& record, const std::vector<const Step*>& steps) {
  std::vector<Stretch> out;
  std::optional<double> last;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& number = (*steps[i])[Field::step];
    const bool falls = number && last && number->value < *last;
    if (out.empty() || falls || done_again(record, steps, i)) {
      if (!out.empty()) out.back().end = i;
      out.push_back({i, steps.size()});
    }
    if (number) last = number->value;
  }
  return out;
}

/// Steps of the first rank that printed; all of them when there is one.
std::vector<const Step*> steps_of(const RunRecord& record) {
  std::vector<const Step*> out;
  std::optional<double> rank;
  for (const Step& step : record.steps) {
    const auto& printed = step[Field::rank];
    if (printed && !rank) rank = printed->value;
    if (!printed || printed->value == *rank) out.push_back(&step);
  }
  return without_unnamed_ranks(out);
}

/// Read once: an audit may ask for every model.
const std::vector<ModelSpec>& known_models() {
  static const std::vector<ModelSpec> all = [] {
    std::vector<ModelSpec> models;
    for (const std::string& name : model_names()) models.push_back(find_model(name));
    return models;
  }();
  return all;
}

}  // namespace

bool done_again(const RunRecord& record, const std::vector<const Step*>& steps, std::size_t i) {
  if (i == 0 || i >= steps.size() || number_of(*steps[i]) < 0) return false;
  const double number = number_of(*steps[i]);
  if (number_of(*steps[i - 1]) != number) return false;
  for (const Restart& restart : record.restarts)
    if (restart.line > steps[i - 1]->line && restart.line <= steps[i]->line) return true;
  // Hugging Face's state is saved with its log, and goes on from it: a step twice is no restart.
  if (record.format.name == "hugging_face" || same_numbers(*steps[i], *steps[i - 1])) return false;
  // Two writers double the next step as well.
  if (i + 1 < steps.size() && number_of(*steps[i + 1]) <= number) return false;
  return i + 2 >= steps.size() || number_of(*steps[i + 2]) != number_of(*steps[i + 1]);
}

CountFit count_fits(const ModelSpec& model, const Printed& parameters) {
  const Interval printed = wide(parameters);
  const double count = parameter_count(model).to_double(), V = static_cast<double>(model.vocab),
               D = static_cast<double>(model.width);
  const double tables = model.tied_embeddings ? 1 : 2;
  if (printed.holds(count)) return CountFit::exactly;
  for (const double multiple : {64.0, 128.0, 256.0, 1024.0})
    if (printed.holds(count + tables * (std::ceil(V / multiple) * multiple - V) * D)) return CountFit::padded;
  for (const double off : {-V * D, V * D, -2 * V * D, -D * static_cast<double>(model.layers)})
    if (printed.holds(count + off)) return CountFit::but_for_tables;
  return std::abs(parameters.value / count - 1) < 1e-3 ? CountFit::nearly : CountFit::no;
}

namespace {

/// A shape leaves open whether the head is tied, queries and keys are normed, and (unless printed) how many
/// key/value heads there are: the printed count decides. Without one the plainest stands, if its heads are
/// printed.
std::optional<ModelSpec> as_counted(const ModelSpec& model, bool kv_heads_known, bool head_dim_known,
                                    const std::optional<Printed>& parameters) {
  std::vector<ModelSpec> readings;
  for (std::int64_t kv = model.kv_heads; kv >= 1; kv /= 2) {
    for (const bool tied : {false, true})
      for (const bool norm : {false, true}) {
        ModelSpec reading = model;
        reading.kv_heads = kv;
        reading.tied_embeddings = tied;
        reading.qk_norm = norm;
        try {
          check(reading);
          readings.push_back(reading);
        } catch (const std::exception&) {
          // Not a model: heads that do not divide.
        }
      }
    if (kv_heads_known) break;
  }
  if (readings.empty()) return std::nullopt;
  // Tied or not, normed or not, the matrices are the same; heads of another width or number are not.
  if (!parameters) return kv_heads_known && head_dim_known ? std::optional(readings.front()) : std::nullopt;
  for (const ModelSpec& reading : readings)
    if (count_fits(reading, *parameters) == CountFit::exactly) return reading;
  for (const ModelSpec& reading : readings)
    if (count_fits(reading, *parameters) == CountFit::but_for_tables) return reading;
  // Some other architecture of these dimensions: its FLOPs are not known.
  return std::nullopt;
}

}  // namespace

std::optional<Precision> computing_precision(std::string_view word) {
  std::string name;
  for (const char c : word)
    name += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  // Formats of scaled matrix products: whatever else the name says ("mxfp8", "fp8-hybrid", "float8_e5m2").
  if (holds("e4m3") || holds("e5m2") || holds("fp8") || holds("float8")) return Precision::fp8;
  if (holds("e2m1") || holds("fp4") || holds("float4")) return Precision::fp4;
  if (name.starts_with("torch.")) name.erase(0, 6);
  // Lightning's "bf16-mixed" and "16-true", others' "mixed-bf16" and "amp-fp16".
  for (const std::string_view end : {"-mixed", "-true", "-precision", "-amp"})
    if (name.ends_with(end)) name.erase(name.size() - end.size());
  for (const std::string_view start : {"mixed-", "amp-", "pure-"})
    if (name.starts_with(start)) name.erase(0, start.size());
  if (name == "16") return Precision::fp16;
  if (name == "32") return Precision::fp32;
  if (name == "64") return Precision::fp64;
  return precision_from(name);
}

double constant_peak(const RunRecord& record) { return record.format.name == "nanogpt" ? 312e12 : 0; }

bool not_measured(const Printed& share) {
  return share.value == -1 || share.value == -100 || std::isnan(share.value);
}

Evidence::Evidence(const RunRecord& given) : record(given), steps(steps_of(given)) {
  stretches = stretches_of(record, steps);
  model = model_of(record, model_basis);
  if (!record.gpu.empty()) gpu = find_gpu(record.gpu);
  if (const auto named = computing_precision(record.dtype))
    precision = *named;
  else
    precision_known = record.dtype.empty();
  if (precision_known) dense_peak = spec::dense_peak(gpu, precision);
  if (dense_peak) written_peak = written_of(gpu, precision, *dense_peak);
  gpus = count_of(record, Setting::gpus);
  ranks = count_of(record, Setting::data_parallel);
  const double model_parallel = count_of(record, Setting::tensor_parallel).value_or(1) *
                                count_of(record, Setting::pipeline_parallel).value_or(1) *
                                count_of(record, Setting::context_parallel).value_or(1);
  axes_known = axes_are_known(record);
  if (!ranks && gpus && (axes_known || *gpus == 1) && std::fmod(*gpus, model_parallel) == 0)
    ranks = *gpus / model_parallel;
  if (!gpus && ranks && axes_known) gpus = *ranks * model_parallel;
  sequence_length = of(Setting::sequence_length);
  if (const auto B = of(Setting::tokens_per_step), S = of(Setting::sequences); !sequence_length && B && S)
    if (const double T = B->middle() / S->middle(); T >= 1 && T == std::floor(T))
      sequence_length = exact_interval(T);
  micro = of(Setting::micro);
  accumulation = of(Setting::accumulation);
  if (!accumulation && (accumulation = of(Setting::accumulation_configured)))
    accumulation_is_configured = true;
  if ((tokens_per_step = of(Setting::tokens_per_step))) {
    tokens_basis = "as printed";
  } else if (const auto sequences = of(Setting::sequences); sequences && sequence_length) {
    tokens_per_step = *sequences * *sequence_length;
    tokens_basis = "sequences x T";
  } else if (micro && accumulation && ranks && sequence_length) {
    tokens_per_step = *micro * *accumulation * exact_interval(*ranks) * *sequence_length;
    tokens_basis = "micro x accumulation x ranks x T";
  }
}

std::optional<Interval> Evidence::of(Setting setting) const {
  const auto& printed = record[setting];
  if (!positive(printed)) return std::nullopt;
  return wide(*printed);
}

std::optional<Interval> Evidence::flops_per_token(const Step& step) const {
  if (positive(step[Field::flops_per_token])) return wide(*step[Field::flops_per_token]);
  return of(Setting::flops_per_token);
}

const Printed* Evidence::printed_peak(const Step& step) const {
  if (positive(step[Field::peak_flops])) return &*step[Field::peak_flops];
  return positive(record[Setting::peak_flops]) ? &*record[Setting::peak_flops] : nullptr;
}

const Printed* Evidence::printed_peak() const {
  if (positive(record[Setting::peak_flops])) return &*record[Setting::peak_flops];
  for (const Step* step : steps)
    if (positive((*step)[Field::peak_flops])) return &*(*step)[Field::peak_flops];
  return nullptr;
}

const char* Evidence::no_gpu() const {
  return on_cpu()             ? "a GPU: the run is on CPUs"
         : record.gpu.empty() ? "name of the GPU"
         : !precision_known   ? "a dtype that has a peak (--set dtype=bf16)"
                              : "facts of this GPU";
}

bool Evidence::averaged(Field field) const {
  return std::find(record.format.averaged.begin(), record.format.averaged.end(), field) !=
         record.format.averaged.end();
}

std::vector<double> counts_beside_positions(const ModelSpec& model, bool of_nanogpt) {
  if (model.positions != Positions::learned) return {};
  const double V = static_cast<double>(model.vocab), D = static_cast<double>(model.width);
  const auto without = [](const ModelSpec& one) {
    return (parameter_count(one) - parameter_counts(one).position_embedding).to_double();
  };
  if (!of_nanogpt) return {without(model)};
  ModelSpec plain = model;
  plain.qkv_bias = plain.output_bias = plain.mlp_bias = plain.norm_bias = false;
  std::vector<double> out;
  for (const ModelSpec& one : {model, plain})
    for (const double entries : {V, std::ceil(V / 64) * 64}) out.push_back(without(one) + (entries - V) * D);
  return out;
}

namespace {

/// Models that differ in name and context alone: a count of parameters need not tell them apart.
bool same_blocks(const ModelSpec& a, const ModelSpec& b) {
  return a.layers == b.layers && a.width == b.width && a.heads == b.heads && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.ffn == b.ffn && a.vocab == b.vocab &&
         a.tied_embeddings == b.tied_embeddings && a.positions == b.positions &&
         a.experts.has_value() == b.experts.has_value();
}

/// "llama3 8B", as torchtitan says, is llama3-8b.
std::string as_named_here(std::string name) {
  for (char& c : name)
    c = c == ' ' || c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

}  // namespace

std::optional<ModelSpec> model_of(const RunRecord& record, std::string& basis) {
  const auto at = [&](Setting setting) { return count_of(record, setting); };
  const bool nanogpt = record.format.name == "nanogpt";  // rounds vocabularies up
  const auto fits = [&](const ModelSpec& model) {
    const auto same = [&](Setting setting, std::int64_t value) {
      return !at(setting) || *at(setting) == static_cast<double>(value);
    };
    return same(Setting::layers, model.layers) && same(Setting::width, model.width) &&
           same(Setting::heads, model.heads) && same(Setting::kv_heads, model.kv_heads) &&
           same(Setting::head_dim, model.head_dim) && same(Setting::ffn, model.ffn) &&
           (same(Setting::vocab, model.vocab) ||
            (nanogpt && same(Setting::vocab, (model.vocab + 63) / 64 * 64)));
  };
  if (!record.model.empty()) {
    basis = "named";
    try {
      return find_model(record.model);
    } catch (const std::exception&) {
      // A foreign log's own name for a model: go on with what it prints of it.
    }
    const auto& parameters = record[Setting::parameters];
    for (const ModelSpec& model : known_models())
      if (model.name == as_named_here(record.model) && fits(model) && positive(parameters) &&
          count_fits(model, *parameters) == CountFit::exactly)
        return model;
  }
  const auto layers = at(Setting::layers), width = at(Setting::width), heads = at(Setting::heads),
             ffn = at(Setting::ffn), vocab = at(Setting::vocab);
  // Shapes that no machine holds are not models, whatever a log says.
  const auto held = [](const std::optional<double>& n, double most) { return n && *n >= 1 && *n <= most; };
  if (held(layers, 1e4) && held(width, 1e6) && held(heads, 1e5) && held(ffn, 1e7) && held(vocab, 1e8) &&
      at(Setting::kv_heads).value_or(1) <= 1e5 && at(Setting::head_dim).value_or(1) <= 1e5 &&
      at(Setting::sequence_length).value_or(1) <= 1e9) {
    ModelSpec model;
    const auto whole = [](double number) { return static_cast<std::int64_t>(number); };
    model.name = "shape as printed";
    model.vocab = whole(*vocab);
    model.width = whole(*width);
    model.layers = whole(*layers);
    model.heads = whole(*heads);
    model.kv_heads = whole(at(Setting::kv_heads).value_or(*heads));
    model.head_dim = whole(at(Setting::head_dim).value_or(*width / *heads));
    model.ffn = whole(*ffn);
    model.context = whole(at(Setting::sequence_length).value_or(2048));
    basis = model.name;
    return as_counted(model, at(Setting::kv_heads).has_value(), at(Setting::head_dim).has_value(),
                      record[Setting::parameters]);
  }
  const auto& parameters = record[Setting::parameters];
  if (!positive(parameters)) return std::nullopt;
  const int dimensions = layers.has_value() + width.has_value() + heads.has_value() + ffn.has_value();
  std::optional<ModelSpec> found, near;
  const auto printed_by_nanogpt = [&](const ModelSpec& model) {
    const auto counts = counts_beside_positions(model, nanogpt);
    return nanogpt &&
           std::any_of(counts.begin(), counts.end(), [&](double n) { return wide(*parameters).holds(n); });
  };
  for (const ModelSpec& model : known_models()) {
    if (!fits(model)) continue;
    const CountFit fit = count_fits(model, *parameters);
    if (fit == CountFit::exactly || printed_by_nanogpt(model)) {
      if (found && !same_blocks(*found, model)) return std::nullopt;
      if (!found) found = model;
    } else if (dimensions >= 3 && fit != CountFit::no) {
      near = model;
    }
  }
  if (found) basis = "parameters as printed";
  if (!found && near) basis = "shape as printed";
  return found ? found : near;
}

}  // namespace assay::spec::audit
