// What a contradiction is put down to, where no reading of the whole log is.
#include <string>
#include <utility>

#include "spec/audit/groups.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

const char* name_of(Field field) {
  switch (field) {
    case Field::tokens_per_second:
      return "tokens/s";
    case Field::seconds:
      return "step time";
    case Field::tokens:
      return "tokens";
    case Field::flops_rate:
      return "FLOP/s";
    case Field::flops_per_token:
      return "FLOPs/token";
    case Field::mfu:
      return "MFU";
    case Field::peak_flops:
      return "peak";
    case Field::tokens_total:
      return "tokens since the start";
    case Field::elapsed:
      return "time since the start";
    case Field::sequences_total:
      return "sequences since the start";
    case Field::step_sequences:
      return "batch";
    case Field::sequences_per_second:
      return "sequences/s";
    case Field::gpu_tokens_per_second:
      return "tokens/s of one GPU";
    default:
      return "number";
  }
}

}  // namespace

void blame(Result& result, std::string id, std::string text) {
  for (const Cause& cause : result.causes)
    if (cause.id == id) return;
  result.causes.push_back({std::move(id), std::move(text)});
}

std::string lines_alone(const Result& result) {
  return result.lines.size() > 1 ? "these lines alone" : "this line alone";
}

void blame_line(Result& result, Field field) {
  blame(result, "line_" + std::string(to_string(field)),
        std::string(name_of(field)) + " of " + lines_alone(result) + ": the others agree");
}

void blame_part(Result& result, Field field) {
  const double times = field == Field::seconds ? result.off_by : 1 / result.off_by;
  blame(result, "line_" + std::string(to_string(field)),
        std::string(name_of(field)) + " of " + std::to_string(result.contradicted) + " lines is about " +
            fixed(times, 2) + " times what their stamps make of it; that of the others is what theirs make");
}

}  // namespace assay::spec::audit
