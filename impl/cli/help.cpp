#include <algorithm>

#include "impl/cli/verb.hpp"

namespace assay::impl::cli {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

std::string option_text(const Option& option) {
  std::string text = option.letter.empty() ? "    " : "-" + option.letter + ", ";
  text += "--" + option.name;
  return option.value.empty() ? text : text + " " + option.value;
}

}  // namespace

std::string help_text() {
  std::string out =
      "assay trains language models and proves every number it prints\n"
      "\n"
      "  assay train                      train a tiny model here and now\n"
      "  assay report runs/tiny-llama     look at what it did\n"
      "  assay help train                 options and examples of a verb\n"
      "\n"
      "verbs\n";
  for (const Verb& verb : verbs()) out += "  " + padded(verb.name, 12) + verb.summary + "\n";
  out +=
      "\n"
      "results go to stdout, messages to stderr\n"
      "exit codes: 0 done, 1 audit found a contradiction (claims: another verdict than its file states),\n"
      "            2 usage or configuration, 65 bad data, 70 bug, 74 I/O,\n"
      "            75 saved on request: `assay resume FOLDER` goes on,\n"
      "            76 non-finite number, 77 peer lost\n";
  return out;
}

std::string help_text(const Verb& verb) {
  std::string out = "assay " + verb.name + (verb.operands.empty() ? "" : " " + verb.operands) + "\n" +
                    verb.summary + "\n\n";
  for (const std::string& example : verb.examples) out += "  " + example + "\n";
  out += "\noptions\n";
  for (const Option& option : verb.options)
    out += "  " + padded(option_text(option), 24) + option.meaning + "\n";
  out += "  " + padded("-h, --help", 24) + "this text\n";
  if (verb.name == "train")
    out += "\nsettings: `assay config` lists every key with default, range and meaning\n";
  return out;
}

}  // namespace assay::impl::cli
