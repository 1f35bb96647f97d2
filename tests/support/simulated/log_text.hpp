#pragma once
// How trainers write numbers, and what log*.cpp render.
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "tests/support/simulated/run.hpp"

namespace assay::tests::log_text {

using spec::audit::Field;
using spec::audit::Setting;

__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  std::va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string out(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, again);
  va_end(arguments);
  va_end(again);
  return out;
}

/// "6,291,456".
inline std::string grouped(double number) {
  std::string digits = text("%.0f", number);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > (digits[0] == '-'); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

/// The shortest form that reads back to the same bits, as Python's repr; NaN as Python's json writes it.
inline std::string shortest(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  std::string out(buffer, end);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

inline std::string whole(double number) { return text("%.0f", number); }

/// Fields and settings of a report with what stands for one that a fault took away.
inline double of(const ReportedStep& step, Field field) { return step[field].value_or(std::nan("")); }
inline double of(const Report& report, Setting setting) { return report[setting].value_or(0); }

inline std::string short_gpu(const std::string& gpu) {
  for (const char* name : {"A100", "H100", "H200", "B200"})
    if (gpu.find(name) != std::string::npos) return name;
  return gpu;
}

// Megatron-LM's console (log_megatron.cpp).
std::string megatron(const SimulatedRun& run, const Report& r);

// The consoles of llm.c and llm.q (log_c.cpp).
std::string llmc(const SimulatedRun& run, const Report& r);
std::string llmq(const SimulatedRun& run, const Report& r);

// nanotron's console, nanoGPT's and build-nanogpt's (log_nano.cpp).
std::string nanotron(const SimulatedRun& run, const Report& r);
std::string nanogpt(const SimulatedRun& run, const Report& r);
std::string build_nanogpt(const SimulatedRun& run, const Report& r);

// Hugging Face's state and printed dictionaries (log_hugging_face.cpp).
std::string hugging_face(const SimulatedRun& run, const Report& r);
std::string hugging_face_console(const SimulatedRun& run, const Report& r);

// Logs of JSON and of tables (log_json.cpp).
std::string llm_tii_json(const SimulatedRun& run, const Report& r);
std::string llmq_json(const SimulatedRun& run, const Report& r);
std::string csv(const SimulatedRun& run, const Report& r);
std::string json_lines(const SimulatedRun& run, const Report& r);
std::string assay_record(const SimulatedRun& run, const Report& r);

}  // namespace assay::tests::log_text
