// The small program `assay`: no libtorch, starts in milliseconds (impl/cli/verb.hpp).
#include <iostream>

#include "impl/cli/verb.hpp"

int main(int count, char** words) {
  std::ios::sync_with_stdio(false);
  return assay::impl::cli::run({words + 1, words + count}, {std::cout, std::cerr});
}
