#include "impl/machine/process.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "impl/machine/host_name.hpp"

namespace assay::impl {

namespace {
/// Of a process that has not ended; 0 otherwise.
std::uint64_t start_of(int id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(file, text);
  // "ID (NAME) STATE ...": the start is the 22nd word, and NAME may hold anything.
  std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string word;
  std::uint64_t start = 0;
  words >> word;
  if (word == "Z" || word == "X") return 0;
  for (int skipped = 3; skipped < 21; ++skipped) words >> word;
  words >> start;
  return start;
}

std::string pid_space() {
  struct stat status = {};
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const bool known = stat("/proc/self/ns/pid", &status) == 0;
  return host_name() + " " + boot + " " + std::to_string(known ? status.st_ino : 0);
}
}  // namespace

Process process_of(int id) { return {pid_space(), id, start_of(id)}; }
Process this_process() { return process_of(getpid()); }

bool is_alive(const Process& process) { return process.start == 0 || start_of(process.id) == process.start; }

bool end_process(const Process& process) {
  return process.id > 1 && process.id != getpid() && is_alive(process) && kill(process.id, SIGKILL) == 0;
}

}  // namespace assay::impl
