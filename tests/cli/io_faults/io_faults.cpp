// A library for LD_PRELOAD that makes chosen system calls of a program on chosen files fail. Two variables of
// the program's environment say which:
//
// - ASSAY_IO_FAULTS='CALL PART ERRNO FIRST COUNT; ...': rules. Calls of CALL (write, read for pread, load for
//   read, fsync or rename) on files whose path holds PART are counted from 1. Number FIRST and the ones after
//   it, COUNT calls in all, fail with ERRNO; where COUNT is 0, every call from FIRST on fails.
// - ASSAY_IO_FAULTS_STATE=FILE: a file of zeros that several processes share. A rule then holds only for the
//   process that applies it first, and the byte of the file with the rule's number becomes 1.
// - ASSAY_IO_FAULTS_STATE=FILE: a file of zeros that several processes share. A rule then holds only for the
//   process that applies it first, and the byte of the file with the rule's number becomes 1.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t most_rules = 64;

struct State {
  std::atomic<unsigned char> met[most_rules];
  std::atomic<int> process[most_rules];
};

struct Rule {
  std::string call, part;
  int error = 0;
  long first = 1, count = 1, seen = 0;
};

int number_of(const std::string& error) {
  return error == "EIO"      ? EIO
         : error == "ENOSPC" ? ENOSPC
         : error == "EDQUOT" ? EDQUOT
         : error == "EACCES" ? EACCES
         : error == "EROFS"  ? EROFS
                             : ENOENT;
}

State* shared_state() {
  const char* path = std::getenv("ASSAY_IO_FAULTS_STATE");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nullptr;
  void* const memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<State*>(memory);
}

struct Faults {
  std::vector<Rule> rules;
  State* state = shared_state();

  Faults() {
    const char* text = std::getenv("ASSAY_IO_FAULTS");
    std::istringstream all(text ? text : "");
    for (std::string one; std::getline(all, one, ';');) {
      std::istringstream words(one);
      Rule rule;
      std::string error;
      if (words >> rule.call >> rule.part >> error >> rule.first >> rule.count) {
        rule.error = number_of(error);
        rules.push_back(rule);
      }
    }
  }

  /// Whether a rule has the call fail; errno is set then.
  bool hit(const char* call, const std::string& path) {
    for (std::size_t i = 0; i < rules.size() && i < most_rules; ++i) {
      Rule& rule = rules[i];
      if (rule.call != call || path.find(rule.part) == std::string::npos) continue;
      const long now = __atomic_add_fetch(&rule.seen, 1, __ATOMIC_SEQ_CST);
      if (now < rule.first || (rule.count > 0 && now >= rule.first + rule.count)) continue;
      if (state) {
        int nobody = 0;
        const int me = getpid();
        if (!state->process[i].compare_exchange_strong(nobody, me) && nobody != me) continue;
        state->met[i] = 1;
      }
      errno = rule.error;
      return true;
    }
    return false;
  }
};

Faults& faults() {
  static Faults all;
  return all;
}

std::string path_of(int descriptor) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path);
  return std::string(path, static_cast<std::size_t>(length > 0 ? length : 0));
}

bool fails(const char* call, int descriptor) {
  const int before = errno;
  if (faults().rules.empty()) return false;
  if (faults().hit(call, path_of(descriptor))) return true;
  errno = before;
  return false;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  return fails("write", descriptor) ? -1 : real(descriptor, bytes, count);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  static const auto real = next<ssize_t (*)(int, const struct iovec*, int)>("writev");
  return fails("write", descriptor) ? -1 : real(descriptor, parts, count);
}

// The same function has several names, by the options that its caller was compiled with.
ssize_t pread(int descriptor, void* bytes, size_t count, off_t at) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return fails("read", descriptor) ? -1 : real(descriptor, bytes, count, at);
}
ssize_t pread64(int descriptor, void* bytes, size_t count, off64_t at) {
  return pread(descriptor, bytes, count, at);
}
ssize_t __pread_chk(int descriptor, void* bytes, size_t count, off_t at, size_t) {
  return pread(descriptor, bytes, count, at);
}
ssize_t __pread64_chk(int descriptor, void* bytes, size_t count, off64_t at, size_t) {
  return pread(descriptor, bytes, count, at);
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  static const auto real = next<ssize_t (*)(int, void*, size_t)>("read");
  return fails("load", descriptor) ? -1 : real(descriptor, bytes, count);
}
ssize_t __read_chk(int descriptor, void* bytes, size_t count, size_t) {
  return read(descriptor, bytes, count);
}

int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  return fails("fsync", descriptor) ? -1 : real(descriptor);
}

int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return faults().hit("rename", to) ? -1 : real(from, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  static const auto real = next<int (*)(int, const char*, int, const char*)>("renameat");
  return faults().hit("rename", to) ? -1 : real(from_folder, from, to_folder, to);
}
}
