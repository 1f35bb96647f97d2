// libFuzzer's entry points (clang's -fsanitize=fuzzer brings main). ASSAY_FUZZ_TARGET names the target.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/targets.hpp"

namespace {
const assay::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("ASSAY_FUZZ_TARGET");
  chosen = name ? assay::fuzz::find_target(name) : nullptr;
  if (chosen) return 0;
  std::fprintf(stderr, "ASSAY_FUZZ_TARGET names no target; known are:");
  for (const auto& target : assay::fuzz::targets())
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
