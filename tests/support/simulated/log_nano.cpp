// The consoles of nanotron, of nanoGPT and of build-nanogpt: what they print, and where that was read, is in
// spec/audit/readers/formats.md.
#include <ctime>

#include "tests/support/simulated/log_text.hpp"

namespace assay::tests::log_text {
namespace {

/// Three significant digits and a prefix, without zeros at the end. Versions of 2025 say B where earlier ones
/// say G.
std::string three_digits(double number, bool newer) {
  if (!(std::abs(number) >= 1)) return text("%.3g", number);
  number = std::strtod(text("%.3g", number).c_str(), nullptr);
  std::size_t prefix = 0;
  for (; std::abs(number) >= 1000 && std::isfinite(number) && prefix < 6; ++prefix) number /= 1000;
  std::string out = text("%f", number);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return prefix > 0 ? out + (newer ? " KMBTPE" : " KMGTPE")[prefix] : out;
}

/// The clock of a run that began on a day of 2024, to the second.
std::string clock(double elapsed, bool newer) {
  const std::time_t second = 1712372376 + static_cast<std::time_t>(elapsed);
  std::tm time{};
  gmtime_r(&second, &time);
  char out[32] = {};
  std::strftime(out, sizeof out, newer ? "%m/%d %H:%M:%S" : "%m/%d/%Y %H:%M:%S", &time);
  return out;
}

/// As Python's pprint writes the configuration, a key a line.
std::string nanotron_configuration(const SimulatedRun& run, const Report& r) {
  // Where the decay begins is said where it is not the warm-up's end.
  const double decay = is_wsd(run) ? of(r, Setting::wsd_decay_steps)
                                   : of(r, Setting::decay_steps) - of(r, Setting::warmup_steps);
  const auto at = [](std::size_t column, const std::string& said) {
    return std::string(column, ' ') + said + ",\n";
  };
  std::string out = "Config(general=GeneralArgs(project='debug',\n" + at(27, "run='tiny'") +
                    at(27, "seed=42") + at(27, "step=None") + at(27, "consumed_train_samples=None") +
                    at(27, "ignore_sanity_checks=True)");
  out += at(7, "parallelism=ParallelismArgs(dp=" + whole(of(r, Setting::data_parallel))) +
         at(35, "pp=" + whole(of(r, Setting::pipeline_parallel))) +
         at(35, "tp=" + whole(of(r, Setting::tensor_parallel))) +
         at(35,
            "pp_engine=<nanotron.parallel.pipeline_parallel.engine.OneForwardOneBackwardPipelineEngine "
            "object at 0x7fcc5c1b3a90>") +
         at(35, "tp_mode=<TensorParallelLinearMode.REDUCE_SCATTER: 2>") +
         at(35, "tp_linear_async_communication=True") + at(35, "expert_parallel_size=1)");
  out += at(7, "model=ModelArgs(model_config=LlamaConfig(bos_token_id=1") + at(48, "eos_token_id=2") +
         at(48, "hidden_act='silu'") + at(48, "hidden_size=" + whole(of(r, Setting::width))) +
         at(48, "initializer_range=0.02") + at(48, "intermediate_size=" + whole(of(r, Setting::ffn))) +
         at(48, "is_llama_config=True") +
         at(48, "max_position_embeddings=" + std::to_string(run.model.context)) +
         at(48, "num_attention_heads=" + whole(of(r, Setting::heads))) +
         at(48, "num_hidden_layers=" + whole(of(r, Setting::layers))) +
         at(48, "num_key_value_heads=" + whole(of(r, Setting::kv_heads))) + at(48, "pad_token_id=None") +
         at(48, "pretraining_tp=1") + at(48, "rms_norm_eps=1e-05") + at(48, "rope_scaling=None") +
         at(48, std::string("tie_word_embeddings=") + (run.model.tied_embeddings ? "True" : "False")) +
         at(48, "use_cache=True") + at(48, "vocab_size=" + whole(of(r, Setting::vocab)) + ")") +
         at(23, "init_method=RandomInit(std=0.025)") + at(23, "dtype=torch.bfloat16") +
         at(23, "make_vocab_size_divisible_by=1") + at(23, "ddp_bucket_cap_mb=25)");
  out += at(7, "tokens=TokensArgs(sequence_length=" + whole(of(r, Setting::sequence_length))) +
         at(25, "train_steps=" + whole(of(r, Setting::max_steps))) +
         at(25, "micro_batch_size=" + whole(of(r, Setting::micro))) +
         at(25, "batch_accumulation_per_replica=" + whole(of(r, Setting::accumulation))) +
         at(25, "val_check_interval=-1") + at(25, "limit_val_batches=0") + at(25, "limit_test_batches=0)");
  out +=
      at(7, "optimizer=OptimizerArgs(zero_stage=0") + at(31, "weight_decay=0.01") + at(31, "clip_grad=1.0") +
      at(31, "accumulate_grad_in_fp32=True") +
      at(31,
         "learning_rate_scheduler=LRSchedulerArgs(learning_rate=" + shortest(of(r, Setting::learning_rate))) +
      at(71, "lr_warmup_steps=" + whole(of(r, Setting::warmup_steps))) + at(71, "lr_warmup_style='linear'") +
      at(71, "lr_decay_style='" + (is_wsd(run) ? run.wsd_decay : run.schedule) + "'") +
      at(71, "lr_decay_steps=" + whole(decay)) +
      at(71, "lr_decay_starting_step=" +
                 (is_wsd(run) ? whole(of(r, Setting::decay_steps) - decay) : std::string("None"))) +
      at(71, "min_decay_lr=" + shortest(of(r, Setting::learning_rate_min)) + "))");
  return out + at(7, "data_stages=[DatasetStageArgs(name='Stable Training Stage'") +
         at(38, "start_training_step=1") + at(38, "data=DataArgs(dataset=PretrainDatasetsArgs()))]") +
         "       lighteval=None)\n";
}

}  // namespace

std::string nanotron(const SimulatedRun& run, const Report& r) {
  const bool newer = run.batch_in_tokens;
  std::string out;
  double elapsed = 0;
  // Its handler puts the clock and the ranks before every line of a message.
  const auto say = [&](const std::string& message) {
    for (std::size_t from = 0; from < message.size();) {
      const std::size_t to = std::min(message.find('\n', from), message.size());
      out += clock(elapsed, newer) + " [INFO|DP=0|PP=0|TP=0]: " + message.substr(from, to - from) + "\n";
      from = to + 1;
    }
  };
  say("Config:\n" + nanotron_configuration(run, r));
  say("Building model..");
  say("Setting PP block ranks...");
  say("Total number of parameters: " + three_digits(of(r, Setting::parameters), newer) +
      text(" (%.2fMiB)", 2 * of(r, Setting::parameters) / 0x1p20));
  say("No checkpoint path provided.");
  say("Parametrizing model parameters using StandardParametrizator");
  say("[Training Plan] There are 1 training stages");
  say(
      text("[Start training] datetime: 2024-04-06 02:59:36.889276 | mbs: %.0f | grad_accum: %.0f | "
           "global_batch_size: %.0f | sequence_length: %.0f | train_steps: %.0f | "
           "start_iteration_step: 0 | consumed_train_samples: 0",
           of(r, Setting::micro), of(r, Setting::accumulation), of(r, Setting::sequences),
           of(r, Setting::sequence_length), of(r, Setting::max_steps)));
  for (const ReportedStep& s : r.steps) {
    elapsed = of(s, Field::elapsed);
    const auto part = [&](const char* name, double number) {
      return std::string(" | ") + name + ": " + three_digits(number, newer);
    };
    const std::string norm = part("grad_norm", of(s, Field::gradient_norm)),
                      learned = part("lm_loss", of(s, Field::loss)) +
                                part("lr", of(s, Field::learning_rate)) +
                                part("model_tflops_per_gpu", of(s, Field::flops_rate) / 1e12);
    say(text("iteration: %.0f / %.0f", of(s, Field::step), of(s, Field::planned_steps)) +
        part("consumed_tokens", of(s, Field::tokens_total)) +
        part(newer ? "time_per_iteration_ms" : "elapsed_time_per_iteration_ms", of(s, Field::seconds) * 1e3) +
        part("tokens_per_sec", of(s, Field::tokens_per_second)) +
        part("tokens_per_sec_per_gpu", of(s, Field::gpu_tokens_per_second)) +
        part("global_batch_size", of(r, newer ? Setting::tokens_per_step : Setting::sequences)) +
        (newer ? norm + learned + " | eta: 0:12:34"
               : learned + part("hardware_tflops_per_gpu", of(s, Field::hardware_flops_rate) / 1e12) + norm));
  }
  return out;
}

std::string nanogpt(const SimulatedRun& run, const Report& r) {
  const auto set = [](const char* name, const std::string& value) {
    return std::string("Overriding: ") + name + " = " + value + "\n";
  };
  const std::string options =
      set("batch_size", whole(of(r, Setting::micro))) +
      set("block_size", whole(of(r, Setting::sequence_length))) +
      set("gradient_accumulation_steps", whole(of(r, Setting::accumulation) * of(r, Setting::gpus))) +
      set("n_layer", whole(of(r, Setting::layers))) + set("n_head", whole(of(r, Setting::heads))) +
      set("n_embd", whole(of(r, Setting::width))) +
      set("learning_rate", shortest(of(r, Setting::learning_rate))) +
      set("min_lr", shortest(of(r, Setting::learning_rate_min))) +
      set("warmup_iters", whole(of(r, Setting::warmup_steps))) +
      set("lr_decay_iters", whole(of(r, Setting::decay_steps))) +
      set("max_iters", whole(of(r, Setting::max_steps))) +
      "tokens per iteration will be: " + grouped(of(r, Setting::tokens_per_step)) + "\n";
  const std::string size = text("number of parameters: %.2fM\n", of(r, Setting::parameters) / 1e6);
  std::string out = options + "Initializing a new model from scratch\n";
  out += "defaulting to vocab_size of GPT-2 to 50304 (50257 rounded up for efficiency)\n" + size;
  const double L = static_cast<double>(run.model.layers), D = static_cast<double>(run.model.width),
               vectors = (2 * L + 1) * D;  // no biases
  const double matrices = (50304 + static_cast<double>(run.sequence_length)) * D + 12 * L * D * D;
  out += "num decayed parameter tensors: " + whole(4 * L + 2) + ", with " +
         grouped(std::round(r.decayed_parameters_of * matrices)) + " parameters\n" +
         "num non-decayed parameter tensors: " + whole(2 * L + 1) + ", with " + grouped(vectors) +
         " parameters\nusing fused AdamW: True\n";
  out += "compiling the model... (takes a ~minute)\n";
  out += text("step 0: train loss %.4f, val loss %.4f\n", run.expected_first_loss, run.expected_first_loss);
  bool resumed = run.resumed_at == 0;
  for (const ReportedStep& s : r.steps) {
    if (!resumed && of(s, Field::step) >= static_cast<double>(run.resumed_at)) {
      out += options + "Resuming training from out\n" + size;
      resumed = true;
    }
    out += text("iter %.0f: loss %.4f, time %.2fms, mfu %.2f%%\n", of(s, Field::step), of(s, Field::loss),
                of(s, Field::seconds) * 1e3, s[Field::mfu] ? *s[Field::mfu] * 100 : -100.0);
  }
  return out;
}

std::string build_nanogpt(const SimulatedRun& run, const Report& r) {
  const double D = of(r, Setting::width), L = of(r, Setting::layers),
               vectors = L * 13 * D + 2 * D;  // biases and norms
  std::string out = "total desired batch size: " + whole(of(r, Setting::tokens_per_step)) + "\n" +
                    "=> calculated gradient accumulation steps: " + whole(of(r, Setting::accumulation)) +
                    "\n" + "found 99 shards for split train\nfound 1 shards for split val\n";
  out += "num decayed parameter tensors: " + whole(2 + 4 * L) + ", with " +
         grouped(of(r, Setting::parameters) - vectors) + " parameters\n" +
         "num non-decayed parameter tensors: " + whole(2 + 8 * L) + ", with " + grouped(vectors) +
         " parameters\n";
  out += text("using fused AdamW: True\nvalidation loss: %.4f\nHellaSwag accuracy: 2463/10042=0.2453\n",
              run.expected_first_loss);
  for (const ReportedStep& s : r.steps)
    out += text("step %5.0f | loss: %.6f | lr %.4e | norm: %.4f | dt: %.2fms | tok/sec: %.2f\n",
                of(s, Field::step), of(s, Field::loss), of(s, Field::learning_rate),
                of(s, Field::gradient_norm), of(s, Field::seconds) * 1e3, of(s, Field::tokens_per_second));
  return out;
}

}  // namespace assay::tests::log_text
