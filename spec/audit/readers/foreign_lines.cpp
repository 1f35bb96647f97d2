#include "spec/audit/readers/foreign_lines.hpp"

#include <algorithm>

namespace assay::spec::audit {

void ForeignLook::look(const Line& line) {
  const std::string_view text = line.text;
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  // One of these stands in every trainer's step line ("Iter", "iteration").
  if (!own_ || !(has("step") || has("ter") || has("loss")) || own_->recognises(text)) return;
  for (const LineFormat& other : line_formats()) {
    if (&other == own_ || !other.recognises(text)) continue;
    const auto known = std::find_if(seen_.begin(), seen_.end(),
                                    [&](const ForeignLines& one) { return one.format == other.format.name; });
    if (known != seen_.end())
      ++known->count;
    else
      seen_.push_back({other.format.name, 1, line.number});
    return;
  }
}

}  // namespace assay::spec::audit
