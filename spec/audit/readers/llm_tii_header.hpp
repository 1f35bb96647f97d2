#pragma once
// What llm_TII's train.py prints before its steps: formats.md, "llm_tii".
#include <cstdint>
#include <string_view>
#include <vector>

#include "spec/audit/readers/record_builder.hpp"

namespace assay::spec::audit::llm_tii {

/// One of these stands in each of its lines.
std::vector<std::string_view> header_words();

/// Whether the line states a setting, or the device.
bool begins_a_header(std::string_view text);

/// Takes what a line of the header says; others are passed over.
void read_header(std::string_view text, std::int64_t line, RecordBuilder& builder);

}  // namespace assay::spec::audit::llm_tii
