// run_ranks N PROGRAM [ARGUMENT...]: the program as N ranks, started as `assay train --ranks N` starts its
// own. CGROUPS=FOLDER: its cgroup and proc are taken for the system's.
#include <cstdlib>
#include <iostream>
#include <string>

#include "impl/cli/launch_ranks.hpp"

int main(int count, char** words) {
  const std::int64_t ranks = count > 2 ? std::atoll(words[1]) : 0;
  if (ranks < 1) {
    std::cerr << "run_ranks N PROGRAM [ARGUMENT...]\n";
    return 2;
  }
  try {
    const char* fake = std::getenv("CGROUPS");
    return assay::impl::cli::launch_ranks(
        {.here = ranks, .all = ranks}, {words + 2, words + count},
        fake ? assay::impl::Cgroups(std::string(fake) + "/cgroup", std::string(fake) + "/proc")
             : assay::impl::Cgroups());
  } catch (const std::exception& error) {
    std::cerr << "run_ranks: " << error.what() << "\n";
    return 74;
  }
}
