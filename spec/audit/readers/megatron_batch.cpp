#include "spec/audit/readers/megatron_batch.hpp"

#include <algorithm>
#include <iterator>

#include "spec/audit/readers/scan.hpp"

namespace assay::spec::audit::megatron {
namespace {

/// The last one is MindSpeed's spelling.
constexpr std::string_view names[] = {"global batch size", "global_batch_size", "gloabl batch size"};

std::size_t place_of_batch(std::string_view text) {
  for (const std::string_view name : names)
    if (const std::size_t at = text.find(name); at != std::string_view::npos) return at;
  return std::string_view::npos;
}

}  // namespace

bool is_batch(std::string_view key) {
  return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

void BatchOfLines::take(const std::optional<Printed>& batch, bool no_ramp, RecordBuilder& builder) {
  if (const auto& stated = builder.current(Setting::sequences); !stated && !grows_) {
    builder.summary(Setting::sequences, batch);
    is_setting_ = batch.has_value();
  } else if (batch && stated && batch->value != stated->value) {
    // A batch that a whole header states and no ramp leads to is wrong on one side or the other; else the
    // batch ramps up, and no one number is that of a step.
    const bool steady = !last_ || *last_ == batch->value;
    if (!no_ramp || is_setting_ || !steady) {
      grows_ = true;
      builder.forget(Setting::sequences);
    }
  }
  if (batch) last_ = batch->value;
  here_ = batch;
}

void BatchOfLines::remember(std::string_view text) {
  at_ = place_of_batch(text);
  const bool there = at_ != std::string_view::npos;
  text_ = there ? text.substr(at_, text.find('|', at_) - at_) : std::string_view();
}

std::optional<Printed> BatchOfLines::of(std::string_view text, std::int64_t line) const {
  const std::size_t at = text_.empty() ? std::string_view::npos : place_of_batch(text);
  const std::size_t behind_name = text.find_first_of(":=", at);
  if (at == std::string_view::npos || behind_name == std::string_view::npos) return std::nullopt;
  const std::string_view value = text.substr(behind_name + 1);
  return prefixed_number(trimmed(value.substr(0, value.find('|'))), Kind::counted, 1, line);
}

bool BatchOfLines::same(std::string_view text) const {
  constexpr std::size_t drift = 16;  // by numbers before it that grow or shrink
  if (text_.empty()) return place_of_batch(text) == std::string_view::npos;
  const std::size_t at = text.find(text_, at_ > drift ? at_ - drift : 0);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + text_.size();  // a digit more is another batch
  return end == text.size() || text[end] < '0' || text[end] > '9';
}

}  // namespace assay::spec::audit::megatron
