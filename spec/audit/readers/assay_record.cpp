// Our own run.jsonl (spec/record/record.md). Steps are read in place, key by key; the rare other events by
// spec::record, which validates them.
#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "spec/audit/identities.hpp"
#include "spec/audit/readers/assay_steps.hpp"
#include "spec/audit/readers/json_scan.hpp"
#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/null_losses.hpp"
#include "spec/audit/readers/phase_times.hpp"
#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/record/chain.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"

namespace assay::spec::audit {
namespace assay_record {
namespace {

/// The members of a step event that an audit needs.
class StepEvents {
 public:
  StepEvents(Step& step, std::int64_t line, TakenNumbers& taken) : step_(step), line_(line), taken_(taken) {}
  void begin_object() { ++depth_; }
  void end_object() { --depth_; }
  void begin_array() { ++depth_; }
  void end_array() { --depth_; }
  void key(std::string_view name) {
    field_ = depth_ == 1 ? named(name) : Field::count_;
    keys_.add(name, depth_);
  }
  void number(std::string_view token) {
    if (field_ == Field::count_ || depth_ != 1) return;
    const auto printed = shortest_printed(token, 1, line_);
    if (!printed) bad_ = true;
    step_[field_] = printed;
    taken_.add(token.data(), field_, Kind::counted, 1, Written::shortest);
  }
  void text(std::string_view token) {
    keys_.add("\"", depth_);  // a number may be one ("nan", "inf"), a flag may not
    if (field_ != Field::count_ && depth_ == 1) number(token);
  }
  /// JSON has no nan: another writer of the record may have put null there.
  void word(std::string_view token) {
    if (field_ == Field::loss && depth_ == 1 && token == "null")
      step_[field_] = null_loss(line_);
    else
      keys_.add("true", depth_);  // of a kind of its own
  }
  bool bad() const { return bad_; }
  KeyHash keys() const { return keys_; }

 private:
  static Field named(std::string_view name) {
    switch (name.size()) {
      case 3:
        return name == "mfu" ? Field::mfu : name == "hfu" ? Field::hfu : Field::count_;
      case 4:
        return name == "step" ? Field::step : name == "loss" ? Field::loss : Field::count_;
      case 6:
        return name == "tokens" ? Field::tokens : Field::count_;
      case 7:
        return name == "seconds" ? Field::seconds : Field::count_;
      case 12:
        return name == "valid_tokens" ? Field::valid_tokens : Field::count_;
      case 13:
        return name == "gradient_norm"   ? Field::gradient_norm
               : name == "learning_rate" ? Field::learning_rate
                                         : Field::count_;
      case 17:
        return name == "tokens_per_second"   ? Field::tokens_per_second
               : name == "device_peak_bytes" ? Field::memory_peak
                                             : Field::count_;
      default:
        return Field::count_;
    }
  }
  Step& step_;
  std::int64_t line_;
  TakenNumbers& taken_;
  int depth_ = 0;
  Field field_ = Field::count_;
  bool bad_ = false;
  KeyHash keys_;
};

/// Whether `text` begins as that event, whatever blanks its writer puts between the tokens.
bool begins_as(std::string_view text, std::string_view event) {
  const auto take = [&](std::string_view token) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const bool there = text.starts_with(token);
    if (there) text.remove_prefix(token.size());
    return there;
  };
  return take("{") && take("\"event\"") && take(":") && take("\"") && text.starts_with(event) &&
         text.substr(event.size()).starts_with('"');
}

class AssayRecord : public LineReader {
 public:
  void read(const Line& line, RecordBuilder& builder) override {
    hold_chain(line, builder);
    Step step;
    if (shapes_.read(line, step))
      take(line, step, builder);
    else if (begins_as(line.text, "step"))
      read_step(line, builder);
    else if (line.text.starts_with("{"))
      read_event(line, builder);
    else if (!trimmed(line.text).empty())
      unread(line, builder);
  }

 private:
  void unread(const Line& line, RecordBuilder& builder) {
    identities_.lost();
    done_.reset();
    builder.unread(line.text);
  }

  void hold_chain(const Line& line, RecordBuilder& builder) {
    // Another program's lines may stand between.
    const bool ours =
        line.text.starts_with("{") || line.text.empty() || !record::parts_of(line.text).hash.empty();
    if (!ours || line.overlong) return;
    if (builder.awaits_places()) builder.place(record::parts_of(line.text).hash);
    const record::Link link = chain_.follow(line.text, line.complete);
    if (chain_.begun() && link != record::Link::cut_off)
      identities_.linked(link == record::Link::right, line.number, builder.identities());
  }

  void take(const Line& line, Step& step, RecordBuilder& builder) {
    // No GPU: nothing was measured.
    if (step[Field::memory_peak] && step[Field::memory_peak]->value == 0) step[Field::memory_peak].reset();
    step[Field::phases] = phase_times(line.text, line.number);
    rule_out_numbers(line, builder);
    if (drops_) step[Field::mfu].reset();  // of what was not dropped, which flops_per_token is not
    if (const auto& number = step[Field::step]; !batch_.ramp.empty() && number && number->value >= 1) {
      const std::int64_t sequences = sequences_of(batch_, static_cast<std::int64_t>(number->value) - 1);
      step[Field::step_sequences] = exactly(static_cast<double>(sequences), line.number);
      step[Field::step_length] = exactly(static_cast<double>(sequence_length_), line.number);
    }
    peak_.reset();
    if (step[Field::step] && step[Field::memory_peak])
      peak_ = {step[Field::step]->value, step[Field::memory_peak]->value};
    goes_on_behind_memory(builder);
    if (const auto& number = step[Field::step]) done_ = static_cast<std::int64_t>(number->value);
    builder.step(step);
    hold_identities(line, builder);  // of the run that the step belongs to
  }

  /// A step whose loss is null is no event of ours.
  void hold_identities(const Line& line, RecordBuilder& builder) {
    try {
      identities_.see(record::from_json(line.text, ""), line.number, builder.identities());
    } catch (const UserError&) {
      identities_.lost();
    }
  }

  static void goes_on_behind_memory(RecordBuilder& builder) {
    if (!builder.memory().empty()) builder.memory().back().followed = true;
  }

  void read_step(const Line& line, RecordBuilder& builder) {
    Step step;
    TakenNumbers taken;
    StepEvents events(step, line.number, taken);
    MemoryBytes bytes(line.text);
    JsonScan scan(bytes, events);
    const bool whole = scan.value() && (scan.blanks(), bytes.peek() < 0) && !events.bad() &&
                       step[Field::step] && step[Field::loss] && step[Field::seconds];
    if (!whole) return unread(line, builder);
    if (is_null(step[Field::loss]) && schema_.as_before(events.keys())) {
      builder.null_loss();
    } else if (!schema_.holds(line, events.keys())) {
      return unread(line, builder);
    } else {
      shapes_.learn(line, taken);
    }
    take(line, step, builder);
  }

  void read_event(const Line& line, RecordBuilder& builder) {
    try {
      const record::Event event = record::from_json(line.text, "");
      identities_.see(event, line.number, builder.identities());
      if (const auto* start = std::get_if<record::RunStart>(&event)) read_start(*start, line.number, builder);
      if (const auto* resume = std::get_if<record::ResumeFrom>(&event)) {
        resumed_ = true;
        if (done_ && resume->step > *done_) builder.missing(*done_ + 1, resume->step);
        builder.restart(resume->step);
      }
      // Of a step that was skipped no line is missing.
      if (const auto* skipped = std::get_if<record::SkippedStep>(&event)) {
        ++skipped_;
        done_ = skipped->step;
        builder.hidden(1);
      }
      const auto* memory = std::get_if<record::Memory>(&event);
      const auto* warning = std::get_if<record::Warning>(&event);
      if (warning && warning->code == "memory_plan" && !builder.memory().empty())
        builder.memory().back().warned = true;
      goes_on_behind_memory(builder);
      if (memory) read_memory(*memory, line.number, builder);
      if (const auto* end = std::get_if<record::RunEnd>(&event)) read_end(*end, line.number, builder);
    } catch (const UserError& error) {
      // A record of another schema is distinguished from a damaged one: nothing of it can be trusted.
      if (std::string_view(error.what()).find("schema") != std::string_view::npos)
        throw UserError(error.code(), "line " + std::to_string(line.number) + error.what());
      unread(line, builder);
    }
  }

  void read_start(const record::RunStart& start, std::int64_t line, RecordBuilder& builder) {
    ++starts_;
    planned_.reset(), peak_.reset();
    drops_ = false;
    batch_ = record::global_batch(start);
    sequence_length_ = start.batch.sequence_length;
    for (const auto& [key, value] : start.settings) {
      if (const auto* factor = std::get_if<double>(&value); factor && key == "experts.capacity")
        drops_ = *factor > 0;
    }
    if (start.planned_memory_bytes) planned_ = static_cast<double>(*start.planned_memory_bytes);
    const auto whole = [&](Setting setting, std::int64_t number) {
      builder.setting(setting, exactly(static_cast<double>(number), line));
    };
    const auto real = [&](Setting setting, std::optional<double> number) {
      if (number) builder.setting(setting, exactly(*number, line));
    };
    // Of a batch that grows no one number is that of every step.
    if (batch_.ramp.empty()) {
      whole(Setting::sequences, start.batch.sequences);
      whole(Setting::accumulation, start.batch.accumulation);
      whole(Setting::tokens_per_step, start.batch.tokens);
    }
    whole(Setting::micro, start.batch.micro);
    whole(Setting::data_parallel, start.batch.ranks);
    if (start.tensor_ranks) whole(Setting::tensor_parallel, *start.tensor_ranks);
    if (start.expert_ranks) whole(Setting::expert_parallel, *start.expert_ranks);
    whole(Setting::sequence_length, start.batch.sequence_length);
    whole(Setting::vocab, start.vocab);
    whole(Setting::parameters, start.parameters);
    whole(Setting::flops_per_token, start.flops_per_token);
    whole(Setting::max_steps, start.steps);
    real(Setting::peak_flops, start.peak_flops);
    if (!start.gpus.empty()) {
      whole(Setting::gpus, static_cast<std::int64_t>(start.gpus.size()));
      whole(Setting::gpu_memory, start.gpus[0].memory_bytes);
      builder.name(&RunRecord::gpu, start.gpus[0].name);
    } else if (!start.ranks.empty() && start.ranks[0].device == "cpu") {
      builder.name(&RunRecord::device, "cpu");
    }
    if (start.expected_first_loss) {
      real(Setting::expected_first_loss, start.expected_first_loss->mean);
      real(Setting::expected_first_loss_deviation, start.expected_first_loss->standard_deviation);
    }
    real(Setting::loss_floor, start.data.floor);
    builder.name(&RunRecord::model, start.model);
    read_definition(start, builder);
    read_settings(start, builder, real);
  }

  /// Records of earlier versions hold no definition; their `model.name` tells whether the model is built in.
  static void read_definition(const record::RunStart& start, RecordBuilder& builder) {
    if (start.model_definition) try {
        return builder.define(model_from_toml(*start.model_definition, "model_definition"));
      } catch (const std::exception&) {
        return builder.unread(*start.model_definition);  // of no possible model
      }
    const std::vector<std::string> names = model_names();
    for (const auto& [key, value] : start.settings)
      if (const auto* name = std::get_if<std::string>(&value); name && key == "model.name")
        if (std::find(names.begin(), names.end(), *name) == names.end())
          builder.name(&RunRecord::model_file, *name);
  }

  template <class Real>
  static void read_settings(const record::RunStart& start, RecordBuilder& builder, const Real& real) {
    const auto find = [&](std::string_view name) -> const Value* {
      for (const auto& [key, value] : start.settings)
        if (key == name) return &value;
      return nullptr;
    };
    const auto number = [&](std::string_view name) -> std::optional<double> {
      const Value* value = find(name);
      if (value && std::holds_alternative<double>(*value)) return std::get<double>(*value);
      if (value && std::holds_alternative<std::int64_t>(*value))
        return static_cast<double>(std::get<std::int64_t>(*value));
      return std::nullopt;
    };
    const auto text = [&](std::string_view name) -> std::string {
      const Value* value = find(name);
      return value && std::holds_alternative<std::string>(*value) ? std::get<std::string>(*value) : "";
    };
    if (const std::string linear = text("compute.linear"); linear != "bf16") {
      builder.name(&RunRecord::linear, linear);
      std::string left_out;
      if (const Value* layers = find("compute.linear_bf16_layers"))
        for (const std::string& layer : std::get<std::vector<std::string>>(*layers))
          left_out += (left_out.empty() ? "" : ",") + layer;
      builder.name(&RunRecord::linear_bf16_layers, left_out);
      builder.name(&RunRecord::linear_experts, text("compute.linear_experts"));
    }
    const auto highest = number("optimizer.learning_rate"), ratio = number("schedule.final_ratio");
    const std::string kind = text("schedule.kind"), fall = text("schedule.decay_shape");
    const auto decay = number("schedule.decay_steps");
    const bool falls = kind == "wsd" && decay && *decay > 0;
    // Records of earlier versions do not say of which shape the fall is; without one the plateau lasts.
    builder.name(&RunRecord::schedule, falls && !fall.empty()          ? kind + "-" + fall
                                       : kind == "wsd" && decay == 0.0 ? "constant"
                                                                       : kind);
    if (falls) real(Setting::wsd_decay_steps, decay);
    builder.name(&RunRecord::dtype, text("compute.dtype"));
    real(Setting::learning_rate, highest);
    real(Setting::warmup_steps, number("schedule.warmup_steps"));
    // Which token it is does not matter, but that attention stops.
    real(Setting::end_of_document, text("data.document_ends") == "on" ? 0.0 : number("data.end_of_document"));
    if (highest && ratio && kind != "constant") real(Setting::learning_rate_min, *highest * *ratio);
    if (kind == "wsd" || kind == "cosine") real(Setting::decay_steps, static_cast<double>(start.steps));
  }

  void read_memory(const record::Memory& memory, std::int64_t line, RecordBuilder& builder) const {
    MemoryOfStart out{.line = line,
                      .step = static_cast<double>(memory.step),
                      .planned = static_cast<double>(memory.planned_bytes),
                      .parts = 0,
                      .state = static_cast<double>(memory.state_bytes),
                      .capacity = static_cast<double>(memory.capacity_bytes),
                      .planned_at_start = planned_,
                      .measured = {},
                      .peak_before = {}};
    if (peak_ && peak_->first == out.step) out.peak_before = peak_->second;
    for (const record::PlannedTensors& tensors : memory.tensors)
      out.parts += static_cast<double>(tensors.bytes);
    if (memory.measured_bytes) out.measured = static_cast<double>(*memory.measured_bytes);
    // What is measured is a step: a validation or sampling that takes more has not come yet, nor have the
    // largest loads of expert ranks.
    const bool later =
        memory.load || memory.moment.starts_with("validation, ") || memory.moment.starts_with("sampling, ");
    if (later && out.measured && *out.measured < out.planned) out.measured.reset();
    builder.memory().push_back(out);
  }

  void read_end(const record::RunEnd& end, std::int64_t line, RecordBuilder& builder) {
    // Of its own steps alone (identities.hpp, as every end).
    if (starts_ > 1) return;
    // Steps that were skipped stand in no step line, and where the batch grows the means of its lines are not
    // the run's.
    if (skipped_ == 0 && batch_.ramp.empty()) {
      builder.summary(Setting::total_tokens, exactly(static_cast<double>(end.tokens), line));
      builder.summary(Setting::total_seconds, exactly(end.seconds, line));
      builder.summary(Setting::average_tokens_per_second, exactly(end.tokens_per_second, line));
    }
    if (end.final_loss && end.final_steps) {
      builder.summary(Setting::final_loss, exactly(*end.final_loss, line));
      builder.summary(Setting::final_loss_steps, exactly(static_cast<double>(*end.final_steps), line));
    }
    if (end.gap_closed) builder.summary(Setting::gap_closed, exactly(*end.gap_closed, line));
    if (resumed_) return;
    const double steps = static_cast<double>(end.steps + skipped_);
    // Where the last ones were skipped, its last line is of an earlier one.
    if (skipped_ == 0) builder.summary(Setting::final_step, exactly(steps, line));
    if (end.reason == record::EndReason::done)
      builder.summary(Setting::completed_steps, exactly(steps, line));
  }

  int starts_ = 0;
  std::optional<double> planned_;                  ///< memory, of the last start
  std::optional<std::pair<double, double>> peak_;  ///< the last step's number and its peak, since that start
  bool resumed_ = false;
  std::optional<std::int64_t> done_;  ///< the last step; none before the first, or where it is not known
  std::int64_t skipped_ = 0;          ///< steps
  bool drops_ = false;                ///< choices of experts, by a capacity
  GlobalBatch batch_;                 ///< of the last start
  std::int64_t sequence_length_ = 0;
  Identities identities_;
  record::Chain chain_;
  LineShapes shapes_{Notation::json};
  StepSchema schema_;
};

}  // namespace
}  // namespace assay_record

LineFormat assay_format() {
  Format format;
  format.name = "assay";
  format.tokens_per_second = Scope::all;
  format.flops_rate = Scope::all;
  format.convention = "exact";
  return {format,
          [](std::string_view text) {
            return assay_record::begins_as(text, "step") || assay_record::begins_as(text, "run_start");
          },
          [] { return std::unique_ptr<LineReader>(std::make_unique<assay_record::AssayRecord>()); },
          {"\"event\""},
          {},
          "{\"event\":\"step\",\"step\":"};
}

}  // namespace assay::spec::audit
