// The small program `assay`: no libtorch, starts in milliseconds (impl/cli/verb.hpp).
#include <unistd.h>

#include <iostream>

#include "impl/cli/verb.hpp"
#include "impl/logs/plain_output.hpp"
#include "impl/machine/disk_fault.hpp"
#include "impl/machine/standard_streams.hpp"

int main(int count, char** words) {
  assay::impl::open_standard_streams();
  assay::impl::make_file_limit_an_error();
  std::ios::sync_with_stdio(false);
  const assay::impl::logs::PlainOutput out(std::cout, isatty(STDOUT_FILENO)),
      err(std::cerr, isatty(STDERR_FILENO));
  return assay::impl::cli::run({words + 1, words + count}, {std::cout, std::cerr});
}
