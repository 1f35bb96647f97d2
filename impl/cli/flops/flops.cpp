// From the words of `assay flops` to its report.
#include <cmath>

#include "impl/cli/flops/flops_report.hpp"
#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/text/amount.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

[[noreturn]] void refuse_options(const std::string& message) { throw UserError(ExitCode::usage, message); }

constexpr std::int64_t longest_sequence = std::int64_t{1}
                                          << 40;  ///< far above any; counts stay within 128 bits

/// An option's amount, at least 1. `limit`: the largest that makes sense.
std::optional<double> amount_of(const Arguments& arguments, const std::string& name, double limit) {
  if (!arguments.has(name)) return std::nullopt;
  const std::string text = arguments.value(name, "");
  const auto value = spec::amount(text);
  if (!value || *value < 1 || *value > limit)
    refuse_options("--" + name + " must be a number from 1 to " + (limit < 1e18 ? "10^15" : "10^18") +
                   " such as 4096, 4,096, 82B or 1.5T, not " + spec::quote(text));
  return value;
}

std::optional<std::int64_t> integer_of(const Arguments& arguments, const std::string& name,
                                       std::int64_t limit) {
  if (!arguments.has(name)) return std::nullopt;
  const std::string text = arguments.value(name, "");
  const auto value = spec::whole_number(text);
  if (!value || *value < 1 || *value > limit)
    refuse_options("--" + name + " must be an integer from 1 to " + std::to_string(limit) + ", not " +
                   spec::quote(text));
  return value;
}

std::optional<double> mfu_of(const Arguments& arguments) {
  if (!arguments.has("mfu")) return std::nullopt;
  const std::string text = arguments.value("mfu", "");
  const auto value = spec::fraction(text);
  if (!value || *value <= 0 || *value > 1)
    refuse_options("--mfu must be a share above 0 and at most 100 %, such as 40% or 0.4, not " +
                   spec::quote(text));
  return value;
}

spec::Precision precision_of(const Arguments& arguments) {
  const std::string word = arguments.value("dtype", "bf16");
  if (const auto precision = spec::precision_from(word)) return *precision;
  std::string known;
  for (spec::Precision precision : spec::precisions())
    known += (known.empty() ? "" : ", ") + std::string(spec::to_string(precision));
  refuse_options("--dtype " + spec::quote(word) + " is not known; give one of " + known);
}

/// Options that mean nothing alone are refused rather than ignored.
void check_together(const Arguments& arguments) {
  const bool hardware = arguments.has("hardware"), rate = arguments.has("tokens-per-second"),
             mfu = arguments.has("mfu"), budget = arguments.has("tokens");
  if (rate && mfu) refuse_options("--tokens-per-second and --mfu both say how fast; give one of them");
  if (mfu && !hardware) refuse_options("--mfu needs --hardware, as in --hardware B200 --gpus 8 --mfu 40%");
  if (budget && !rate && !mfu)
    refuse_options("--tokens needs a rate: --tokens-per-second R, or --hardware X --mfu 40%");
  if (arguments.has("tokens-per-step") && !budget)
    refuse_options("--tokens-per-step counts the steps of a budget; give --tokens too");
  if (arguments.has("dtype") && !hardware)
    refuse_options("--dtype chooses a GPU's peak; give --hardware too");
  if (arguments.has("gpus") && !hardware && !rate)
    refuse_options("--gpus needs --hardware or --tokens-per-second");
}

FlopsRequest request_of(const Arguments& arguments) {
  if (arguments.positional.size() != 1)
    refuse_options("`assay flops` takes one MODEL, as in `assay flops llama3-8b`");
  check_together(arguments);
  FlopsRequest request;
  const std::optional<std::int64_t> length = integer_of(arguments, "seq", longest_sequence);
  request.model = spec::find_model(arguments.positional[0], length);
  request.sequence_length = length.value_or(request.model.context);
  request.precision = precision_of(arguments);
  request.gpus = integer_of(arguments, "gpus", 10'000'000).value_or(1);
  request.tokens_per_second = amount_of(arguments, "tokens-per-second", 1e15);
  request.mfu = mfu_of(arguments);
  request.tokens = amount_of(arguments, "tokens", 1e18);
  if (request.tokens && *request.tokens != std::floor(*request.tokens))
    refuse_options("--tokens must be a whole number of tokens, such as 4096 or 1.5T, not " +
                   spec::quote(arguments.value("tokens", "")));
  request.tokens_per_step = integer_of(arguments, "tokens-per-step", std::int64_t{1} << 50);
  return request;
}

/// Of several that share a name the usual one, and says so.
const spec::Gpu& gpu_of(const std::string& name, std::ostream& err) {
  const spec::GpuMatch match = spec::find_gpu(name);
  if (match.candidates.size() < 2) return spec::named_gpu(name);
  const spec::Gpu& usual = spec::usual_gpu(match);
  std::string others;
  for (const spec::Gpu* gpu : match.candidates)
    if (gpu != &usual) others += (others.empty() ? "" : ", ") + gpu->id;
  err << "assay: note: " << name << " is taken for " << usual.id << "; it may also be " << others << "\n";
  return usual;
}

}  // namespace

int flops(const Arguments& arguments, Streams streams) {
  FlopsRequest request = request_of(arguments);
  if (arguments.has("hardware")) request.gpu = &gpu_of(arguments.value("hardware", ""), streams.err);
  const FlopsReport report = flops_report(request);
  if (const spec::ModelSpec& model = request.model;
      model.positions == spec::Positions::learned && request.sequence_length > model.context)
    streams.err << "assay: note: " << model.name << " has " << model.context
                << " learned positions; a sequence of " << request.sequence_length << " is longer\n";
  if (arguments.has("json"))
    print_json(report, streams.out);
  else
    print_table(report, arguments.has("all"), streams.out);
  return 0;
}

}  // namespace assay::impl::cli
