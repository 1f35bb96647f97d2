#include "spec/audit/readers/train_gpt2_header.hpp"

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit {

BehindStep behind_step(std::string_view text) {
  const std::string_view rest = behind(text, step_word), number = number_token(rest);
  if (number.empty()) return {};
  return {rest, rest.substr(static_cast<std::size_t>(number.data() - rest.data()) + number.size())};
}

bool TrainGpt2Header::read(std::string_view text, std::int64_t line, RecordBuilder& builder) {
  const auto number = [&](std::string_view rest) {
    return parse_printed(number_token(rest), Kind::counted, 1, line);
  };
  if (const auto total = behind(text, "total desired batch size: "); total.data()) {
    builder.setting(Setting::tokens_per_step, number(total));
  } else if (const auto passes = behind(text, "calculated gradient accumulation steps: "); passes.data()) {
    builder.setting(Setting::accumulation, number(passes));
  } else if (const auto device = behind(text, "using device: "); device.data()) {
    if (device.starts_with("cpu")) builder.name(&RunRecord::device, "cpu");
  } else if (text.find("decayed parameter tensors: ") != std::string_view::npos) {
    // "num non-decayed parameter tensors: 98, with 121,344 parameters", and a line of the others.
    const auto count = number(behind(text, ", with ")), many = number(behind(text, "tensors: "));
    if (!count || !many || text.find(" parameters") == std::string_view::npos) return false;
    const bool decays = text.find("non-decayed") == std::string_view::npos;
    (decays ? decayed_ : not_decayed_) = count;
    auto& tensors = builder.tensors();
    if (!tensors) tensors.emplace().line = line;
    (decays ? tensors->matrices : tensors->vectors) = many->value;
    (decays ? tensors->matrix_entries : tensors->vector_entries) = count->value;
    if (!decayed_ || !not_decayed_) return builder.took(), true;
    builder.setting(Setting::parameters, exactly(decayed_->value + not_decayed_->value, line));
    decayed_.reset(), not_decayed_.reset();
  } else {
    return false;
  }
  return true;
}

}  // namespace assay::spec::audit
