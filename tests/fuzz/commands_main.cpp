// Whole commands on changed files: a run, a checkpoint, weights, a tokenizer, token files, recipes, models
// and a record are made; one of them is changed at random, and a command that reads it is run.
//   fuzz_commands ASSAY SECONDS [SEED]
// Promised of each: an exit code that blames the input (or none, where the change does no harm), no signal,
// an end within a minute, messages that are text, and nothing changed outside of the folder that was named.
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "impl/checkpoint/folder.hpp"
#include "impl/cli/program.hpp"
#include "spec/checkpoint/content_hash.hpp"
#include "spec/text/quote.hpp"
#include "tests/fuzz/mutator.hpp"

namespace {

namespace fs = std::filesystem;
using namespace assay;
using Words = std::vector<std::string>;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// A file that is changed, and the commands that read it. "OUT" is a folder that is not there yet.
struct Case {
  fs::path file;
  std::vector<Words> commands;
};

class Commands {
 public:
  Commands(std::string program, std::uint64_t seed)
      : program_(std::move(program)),
        trains_(fs::exists(fs::path(program_).parent_path() / "assay-train")),
        random_(seed),
        mutator_(seed) {
    std::string name = (fs::temp_directory_path() / "assay-commands-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no room for a folder");
    folder_ = name;
    fs::create_directory(folder_ / "outside");
    write(folder_ / "outside/file", "theirs");
    fs::create_directory(folder_ / "work");
    fs::current_path(folder_ / "work");
    make_files();
  }
  ~Commands() { fs::remove_all(folder_); }

  /// One change and one command; what is wrong with how it ended, or nothing.
  std::string once() {
    const Case& chosen = cases_[random_() % cases_.size()];
    const Words& words = chosen.commands[random_() % chosen.commands.size()];
    const std::string before = read(chosen.file);
    const fuzz::Input changed = mutator_.mutate({fuzz::Input(before.begin(), before.end())});
    write(chosen.file, {changed.begin(), changed.end()});
    const std::string marker = read(marker_of(chosen.file));
    // A marker that belongs to the changed manifest lets it in.
    if (!marker.empty() && random_() % 4 != 0) {
      const std::string manifest = read(chosen.file);
      write(marker_of(chosen.file), spec::content_hash(std::as_bytes(std::span(manifest))) + "\n");
    }
    Words command = {program_};
    for (const std::string& word : words) command.push_back(word);
    const auto begin = std::chrono::steady_clock::now();
    const impl::cli::Outcome outcome = impl::cli::run_program(command, 60);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++ends_[outcome.code];
    slowest_ = std::max(slowest_, seconds);
    std::string fault = fault_of(outcome);
    if (!fault.empty()) {
      write(folder_.parent_path() / "fuzz-command.bin", read(chosen.file));
      for (const std::string& word : command) fault += "\n  " + word;
      fault += "\nchanged: " + chosen.file.string() + ", kept as " +
               (folder_.parent_path() / "fuzz-command.bin").string() +
               "\nmessages: " + outcome.messages.substr(0, 2000);
    }
    write(chosen.file, before);
    if (!marker.empty()) write(marker_of(chosen.file), marker);
    for (const char* made : {"out", "runs", "compare.html", "compare.csv"}) fs::remove_all(made);
    return fault;
  }

  void report() const {
    std::printf("exit codes:");
    for (const auto& [code, count] : ends_) std::printf(" %d: %d", code, count);
    std::printf("; the slowest took %.1f s\n", slowest_);
  }

 private:
  static fs::path marker_of(const fs::path& manifest) {
    return manifest.filename() == impl::checkpoint::manifest_name
               ? manifest.parent_path() / impl::checkpoint::marker_name
               : fs::path("no marker");
  }

  std::string fault_of(const impl::cli::Outcome& outcome) const {
    static const std::set<int> known = {0, 1, 2, 65, 74, 75, 76};
    if (!known.contains(outcome.code)) return "exit code " + std::to_string(outcome.code);
    for (const std::string* text : {&outcome.output, &outcome.messages})
      for (const char c : *text)
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
          return "a control character is printed: " + spec::quote(*text);
    if (read(folder_ / "outside/file") != "theirs" || entries(folder_) != 2 ||
        entries(folder_ / "outside") != 1)
      return "something outside was touched";
    return "";
  }
  static std::ptrdiff_t entries(const fs::path& folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  void must(const Words& words) {
    Words command = {program_};
    for (const std::string& word : words) command.push_back(word);
    const auto outcome = impl::cli::run_program(command, 300);
    if (outcome.code != 0) throw std::runtime_error(words[0] + ": " + outcome.messages);
  }
  static std::string ids(int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += {static_cast<char>('a' + i * 7 % 26), '\0'};
    return bytes;
  }

  void make_files() {
    const Words small = {"batch.sequences=2",  "batch.sequence_length=16", "train.steps=2",
                         "compute.device=cpu", "compute.threads=1",        "sample.sentences=1",
                         "run.directory=out"};
    const auto with_small = [&](Words words) {
      words.insert(words.end(), small.begin(), small.end());
      return words;
    };
    write("tokens.bin", ids(400));
    write("tokens.json", R"({"format": "assay-tokens-1", "dtype": "uint16", "tokens": 400, "documents": 2})");
    write("tokens.ends", std::string("\x64\0\0\0\0\0\0\0\x90\x01\0\0\0\0\0\0", 16));
    write("raw.bin", ids(400));
    write("recipe.toml",
          "[model]\nname = 'own.toml'\n[batch]\nsequences = 2\nsequence_length = 16\n[train]\nsteps = "
          "2\n[data]\n"
          "document_ends = 'on'\n[[data.sources]]\nname = 'a'\npath = 'tokens.bin'\nweight = 1.0\n[sample]\n"
          "sentences = 1\n[compute]\ndevice = 'cpu'\nthreads = 1\n[run]\ndirectory = 'out'\n");
    write("own.toml",
          "name = 'own'\nfamily = 'llama'\nvocab = 256\nwidth = 32\nlayers = 1\nheads = 2\nkv_heads = 1\n"
          "head_dim = 16\nffn = 64\ncontext = 64\ntied_embeddings = true\nqk_norm = false\nnorm_eps = 1e-5\n"
          "rope_theta = 10000.0\n");
    write("claims.toml",
          "title = 'Mine'\nsource = 'me'\n[[claim]]\nid = 'p'\nline = 1\nwhat = 'parameters'\nprinted = "
          "'8.03'\n"
          "unit = 1e9\nunit_name = 'B'\nexpect = '8030261248'\nverdict = 'holds'\n");
    write("table.csv", "iter,loss,ms\n1,11.45,994.76\n2,11.4,990.1\n");
    cases_ = {{"recipe.toml", {{"train", "recipe.toml", "--dump-config"}}},
              {"own.toml", {{"flops", "own.toml"}, {"flops", "own.toml", "--json"}}},
              {"claims.toml", {{"claims", "claims.toml"}, {"claims", "claims.toml", "--json"}}},
              {"table.csv",
               {{"audit", "table.csv", "--map", "step=iter,loss=loss,seconds=ms:ms"},
                {"audit", "table.csv", "--json"}}}};
    for (const char* name : {"tokens.bin", "tokens.json", "tokens.ends"})
      cases_.push_back({name,
                        {{"data", "inspect", "tokens.bin"},
                         {"data", "verify", "tokens.bin", "--vocab", "256"},
                         {"data", "convert", "tokens.bin", "out"}}});
    if (!trains_) return;
    must({"train", "recipe.toml", "run.directory=run", "log.tensorboard=on"});
    must({"checkpoint", "export", "run", "weights", "--dtype", "fp32"});
    must({"checkpoint", "export", "run", "shards", "--dtype", "fp32", "--shard-bytes", "20000"});
    for (const char* folder : {"weights", "shards"})
      fs::copy_file(std::string(ASSAY_SOURCE_DIR) + "/tests/fuzz/corpus/tokenizer/byte_level",
                    fs::path(folder) / "tokenizer.json");
    const std::string step = "run/checkpoints/step_00000002/";
    cases_.push_back({"recipe.toml", {{"train", "recipe.toml"}}});
    cases_.push_back({"own.toml", {with_small({"train", "model.name=own.toml", "data.paths=[]"})}});
    for (const char* name : {"tokens.bin", "tokens.json", "tokens.ends"})
      cases_.push_back({name, {{"train", "recipe.toml"}}});
    for (const std::string name : {"manifest.json", "rank-00000-of-00001.safetensors"})
      cases_.push_back({step + name,
                        {{"checkpoint", "show", "run"},
                         {"checkpoint", "verify", "run"},
                         {"checkpoint", "export", "run", "out"},
                         {"checkpoint", "reshard", "run", "out", "--files", "2"},
                         {"resume", "run", "--into", "out", "--change", "train.steps=3"},
                         {"generate", "run", "--ids", "97", "--tokens", "2"}}});
    cases_.push_back(
        {"run/run.jsonl",
         {{"report", "run", "-o", "out"}, {"audit", "run"}, {"report", "run", "--csv", "-o", "out"}}});
    for (const std::string folder : {"weights", "shards"})
      for (const auto& entry : fs::directory_iterator(folder))
        cases_.push_back(
            {entry.path(),
             {{"checkpoint", "show", folder},
              {"checkpoint", "verify", folder},
              {"generate", folder, "--prompt", "One day", "--tokens", "2"},
              with_small({"train", "model.weights=" + folder, "data.paths=raw.bin", "data.dtype=uint16"})}});
  }

  const std::string program_;
  const bool trains_;
  std::mt19937_64 random_;
  fuzz::Mutator mutator_;
  fs::path folder_;
  std::vector<Case> cases_;
  std::map<int, int> ends_;
  double slowest_ = 0;
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: fuzz_commands ASSAY SECONDS [SEED]\n");
    return 2;
  }
  const double seconds = std::atof(words[2]);
  const std::uint64_t seed = count > 3 ? std::strtoull(words[3], nullptr, 10) : 1;
  Commands commands(fs::absolute(words[1]).string(), seed);
  const auto begin = std::chrono::steady_clock::now();
  int done = 0;
  for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds; ++done)
    if (const std::string fault = commands.once(); !fault.empty()) {
      std::fprintf(stderr, "after %d commands, seed %llu: %s\n", done, static_cast<unsigned long long>(seed),
                   fault.c_str());
      return 1;
    }
  std::printf("%d commands in %.0f s, seed %llu, no fault; ", done, seconds,
              static_cast<unsigned long long>(seed));
  commands.report();
  return 0;
}
