#include <algorithm>

#include "impl/cli/verb.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/text/nearest.hpp"

namespace assay::impl::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> out;
  for (const Verb& verb : verbs()) out.push_back(verb.name);
  return out;
}

std::vector<std::string> option_names(const Verb& verb) {
  std::vector<std::string> out;
  for (const Option& option : verb.options) out.push_back("--" + option.name);
  out.push_back("--help");
  return out;
}

/// "tiny-llama" for spec/models/tiny-llama.toml.
std::vector<std::string> model_names() {
  static constexpr std::string_view folder = "spec/models/", end = ".toml";
  std::vector<std::string> out;
  for (const spec::FactFile& file : spec::fact_files())
    if (file.path.rfind(folder, 0) == 0)
      out.emplace_back(file.path.substr(folder.size(), file.path.size() - folder.size() - end.size()));
  return out;
}

/// "train.steps=" for every key, and "schedule.kind=wsd" for every choice.
std::vector<std::string> assignments() {
  std::vector<std::string> out;
  for (const spec::Key& key : spec::keys()) {
    out.push_back(key.name + "=");
    for (const std::string& choice : key.choices) out.push_back(key.name + "=" + choice);
    for (const std::string& word : key.words) out.push_back(key.name + "=" + word);
  }
  return out;
}

/// What may follow a verb besides its options.
std::vector<std::string> operands(const Verb& verb) {
  if (verb.name == "train") return assignments();
  if (verb.name == "bench") {
    std::vector<std::string> words = {"ceilings", "ops", "step", "scaling"};
    const std::vector<std::string> settings = assignments();
    words.insert(words.end(), settings.begin(), settings.end());
    return words;
  }
  if (verb.name == "checkpoint") return {"show", "verify", "export", "reshard"};
  if (verb.name == "data") return {"inspect", "verify", "convert"};
  if (verb.name == "flops") return model_names();
  if (verb.name == "completion") return {"bash", "zsh", "fish"};
  if (verb.name == "help") return verb_names();
  return {};
}

bool takes_files(const Verb& verb) {
  return verb.name == "train" || verb.name == "bench" || verb.name == "flops" || verb.name == "report" ||
         verb.name == "claims" || verb.name == "checkpoint" || verb.name == "data";
}

std::string bash() {
  // "=" would split the word under completion (COMP_WORDBREAKS), so the whole key=value is matched by hand.
  std::string out =
      "# bash completion of assay: source <(assay completion bash)\n"
      "_assay() {\n"
      "  local line=\"${COMP_LINE:0:COMP_POINT}\" word words verb=\"${COMP_WORDS[1]}\" prefix\n"
      "  word=\"${line##*[[:space:]]}\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"" +
      joined(verb_names()) +
      "\"\n"
      "  else case \"$verb\" in\n";
  for (const Verb& verb : verbs()) {
    std::vector<std::string> words = option_names(verb);
    const auto more = operands(verb);
    words.insert(words.end(), more.begin(), more.end());
    out += "    " + verb.name + ") words=\"" + joined(words) + "\" ;;\n";
  }
  out +=
      "  esac; fi\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "  case \"$COMP_CWORD $verb\" in 1\\ *) ;; *train|*bench|*flops|*report|*claims|*data) "
      "COMPREPLY+=($(compgen "
      "-f -- "
      "\"$word\")) ;; esac\n"
      "  prefix=\"${word%\"${word##*=}\"}\"\n"
      "  [ -n \"$prefix\" ] && COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
      "  [[ \"${COMPREPLY[*]}\" == *= ]] && compopt -o nospace 2>/dev/null\n"
      "}\n"
      "complete -F _assay assay\n";
  return out;
}

std::string zsh() {
  std::string out =
      "#compdef assay\n"
      "# zsh completion of assay: source <(assay completion zsh)\n"
      "_assay() {\n"
      "  if (( CURRENT == 2 )); then compadd -- " +
      joined(verb_names()) +
      "; return; fi\n"
      "  case \"$words[2]\" in\n";
  for (const Verb& verb : verbs()) {
    out += "    " + verb.name + ")\n      compadd -- " + joined(option_names(verb)) + "\n";
    std::vector<std::string> open, closed;
    for (const std::string& word : operands(verb)) (word.back() == '=' ? open : closed).push_back(word);
    if (!open.empty()) out += "      compadd -S '' -- " + joined(open) + "\n";
    if (!closed.empty()) out += "      compadd -- " + joined(closed) + "\n";
    if (takes_files(verb)) out += "      _files\n";
    out += "      ;;\n";
  }
  out +=
      "  esac\n"
      "}\n"
      "if [ \"$funcstack[1]\" = \"_assay\" ]; then _assay \"$@\"; else compdef _assay assay; fi\n";
  return out;
}

/// Inside single quotes of fish.
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += (c == '\'' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string fish() {
  std::string out =
      "# fish completion of assay: assay completion fish > ~/.config/fish/completions/assay.fish\n";
  for (const Verb& verb : verbs()) {
    out += "complete -c assay -n __fish_use_subcommand -f -a " + verb.name + " -d " +
           fish_quoted(verb.summary) + "\n";
    const std::string when = "complete -c assay -n '__fish_seen_subcommand_from " + verb.name + "'";
    for (const Option& option : verb.options)
      out += when + " -l " + option.name + (option.letter.empty() ? "" : " -s " + option.letter) +
             (option.value.empty() ? "" : " -r") + " -d " + fish_quoted(option.meaning) + "\n";
    const auto words = operands(verb);
    if (!words.empty())
      out += when + (takes_files(verb) ? "" : " -f") + " -a " + fish_quoted(joined(words)) + "\n";
  }
  return out;
}

}  // namespace

int completion(const Arguments& arguments, Streams streams) {
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  const std::string shell = arguments.positional.empty() ? "" : arguments.positional[0];
  if (arguments.positional.size() != 1 || std::find(shells.begin(), shells.end(), shell) == shells.end()) {
    const auto guess = spec::nearest(shell, shells);
    throw UserError(ExitCode::usage,
                    "`assay completion` takes one shell: bash, zsh or fish" +
                        (guess && !shell.empty() ? "; did you mean \"" + *guess + "\"?" : std::string()));
  }
  streams.out << (shell == "bash" ? bash() : shell == "zsh" ? zsh() : fish());
  return 0;
}

}  // namespace assay::impl::cli
