#include <algorithm>
#include <charconv>
#include <filesystem>

#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

std::vector<std::string> parts(const std::string& text, char between) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::size_t end = text.find(between); end != std::string::npos; end = text.find(between, at)) {
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  out.push_back(text.substr(at));
  return out;
}

/// The option's value as a number in [low, high].
double number(const Arguments& arguments, const std::string& name, double low, double high) {
  const std::string text = arguments.value(name, "1");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    throw UserError(ExitCode::usage, "--" + name + " " + spec::quote(text) + " must be a number from " +
                                         (low > 0 ? "above 0" : "0") + " to " +
                                         std::to_string(static_cast<int>(high)));
  return value;
}

std::vector<std::int64_t> ids_in(const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const std::string& part : parts(text, text.find(',') == std::string::npos ? ' ' : ',')) {
    const std::size_t from = std::min(part.find_first_not_of(' '), part.size());
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(part.data() + from, part.data() + part.size(), id);
    if (error != std::errc() || end != part.data() + part.size() || id < 0)
      throw UserError(ExitCode::usage, "--ids " + spec::quote(text) + ": " + spec::quote(part) +
                                           " is no token id; write them as 5,17,3");
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

GeneratePlan generate_plan(const Arguments& arguments) {
  GeneratePlan plan;
  if (arguments.positional.size() != 1)
    throw UserError(ExitCode::usage,
                    "`assay generate` takes one folder: a run's, a checkpoint's, or one of Hugging Face "
                    "weights; a text is given as --prompt \"...\"");
  plan.path = arguments.positional[0];
  std::error_code unknown;
  if (!std::filesystem::is_directory(plan.path, unknown))
    throw UserError(ExitCode::usage, spec::quote(plan.path) +
                                         " is no folder; give a run's, a checkpoint's, or one of Hugging "
                                         "Face weights");
  if (arguments.has("prompt") && arguments.has("ids"))
    throw UserError(ExitCode::usage, "--prompt and --ids: prompts are texts or ids, not both");
  plan.prompts = arguments.values("prompt");
  if (std::ranges::count(plan.prompts, "-") > 1)
    throw UserError(ExitCode::usage, "--prompt - is given twice, and standard input is read once");
  for (const std::string& list : arguments.values("ids")) plan.ids.push_back(ids_in(list));
  if (arguments.has("tokens")) plan.most = arguments.positive("tokens", 1);
  constexpr double smallest = 1e-6, hottest = 100;
  plan.temperature = number(arguments, "temperature", 0, hottest);
  plan.top_p = number(arguments, "top-p", smallest, 1);
  plan.seed = arguments.positive("seed", 1);
  plan.json = arguments.has("json");
  const spec::RunConfig read = computing(arguments);
  if (arguments.has("dtype")) plan.dtype = read.dtype;
  plan.device = read.device;
  return plan;
}

int generate(const Arguments& arguments, Streams) {
  generate_plan(arguments);  // judged here, at once
  std::vector<std::string> words = {find_trainer(), "--generate"};
  for (const std::string& word : arguments.words()) words.push_back(word);
  words.push_back("--");
  words.insert(words.end(), arguments.positional.begin(), arguments.positional.end());
  become(words, thread_environment());
}

}  // namespace assay::impl::cli
