// Fuzzing without clang: replays a corpus, then mutates it. Blind, unlike libFuzzer, but it runs anywhere and
// the same every time.  assay_fuzz TARGET SECONDS [SEED] [FILE or FOLDER...]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/mutator.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

using assay::fuzz::Input;

/// The input at work, for the signal handler.
const Input* current = nullptr;

/// Leaves the input that killed us beside us.
void on_death(int signal) {
  std::FILE* file = std::fopen("fuzz-crash.bin", "wb");
  if (file && current) {
    std::fwrite(current->data(), 1, current->size(), file);
    std::fclose(file);
    std::fprintf(stderr, "signal %d; the input is in fuzz-crash.bin (%zu bytes)\n", signal, current->size());
  }
  std::_Exit(1);
}

Input read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(in), {});
}

std::vector<Input> read_corpus(int count, char** paths) {
  std::vector<Input> corpus;
  for (int i = 0; i < count; ++i) {
    const std::filesystem::path path = paths[i];
    if (!std::filesystem::is_directory(path)) {
      corpus.push_back(read_file(path));
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) corpus.push_back(read_file(file));
  }
  return corpus;
}

void run(const assay::fuzz::Target& target, const Input& input) {
  current = &input;
  target.run(input);
}

}  // namespace

int main(int count, char** arguments) {
  const assay::fuzz::Target* target = count > 2 ? assay::fuzz::find_target(arguments[1]) : nullptr;
  if (!target) {
    std::fprintf(stderr, "usage: assay_fuzz TARGET SECONDS [SEED] [FILE or FOLDER...]\ntargets:");
    for (const auto& known : assay::fuzz::targets())
      std::fprintf(stderr, " %s", std::string(known.name).c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, on_death);
  const double seconds = std::atof(arguments[2]);
  const std::uint64_t seed = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1;
  std::vector<Input> corpus = read_corpus(count - 4, arguments + 4);
  for (const Input& input : corpus) run(*target, input);
  const std::size_t replayed = corpus.size();
  if (corpus.empty()) corpus.push_back({});
  assay::fuzz::Mutator mutator(seed);
  std::uint64_t runs = 0;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    const Input input = mutator.mutate(corpus);
    run(*target, input);
    ++runs;
  }
  std::printf("%s: %zu inputs of the corpus, %llu mutations in %.1f s, seed %llu, no fault\n", arguments[1],
              replayed, static_cast<unsigned long long>(runs), seconds,
              static_cast<unsigned long long>(seed));
  return 0;
}
