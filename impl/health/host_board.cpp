#include "impl/health/host_board.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <random>

#include "spec/error.hpp"

namespace assay::impl {

namespace {
constexpr int nobody = 0, someone = 1, done = 2;  // who reports a verdict

std::string inode_of(const char* path) {
  struct stat status = {};
  return stat(path, &status) == 0 ? std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) : "";
}

const char* folder() { return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp"; }

/// A lock on one byte of the file: it belongs to the open file, and so to the process, threads included.
int lock_byte(int descriptor, int command, std::size_t slot, short& type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  const int result = fcntl(descriptor, command, &lock);
  type = lock.l_type;
  return result;
}
}  // namespace

/// The rows stand behind it.
struct alignas(Row) HostBoard::Memory {
  std::atomic<int> posting{0};  ///< 1: someone writes the verdict, 2: it is there
  std::atomic<int> reporting{nobody};
  int rank = 0;
  char text[2048] = {};

  Row* rows() { return reinterpret_cast<Row*>(this + 1); }
  static std::size_t size(std::size_t ranks) { return sizeof(Memory) + ranks * sizeof(Row); }
};

std::string HostBoard::shared_memory_of_this_process() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return std::string(name) + " " + boot + " " + inode_of(folder()) + " " + inode_of("/proc/self/ns/pid");
}

HostBoard::HostBoard(Communicator& communicator, const std::string& memory) {
  open_together(communicator, memory);
  Row& row = mine();
  row.set_process(getpid());
  row.stand(Standing::running);
  communicator.barrier();
}

void HostBoard::open_together(Communicator& communicator, const std::string& memory) {
  const std::vector<std::string> memories = communicator.all_gather(memory);
  for (int r = 0; r < communicator.size(); ++r) {
    if (r == communicator.rank()) slot_ = ranks_.size();
    if (memories[static_cast<std::size_t>(r)] == memory) ranks_.push_back(r);
  }
  const bool first = slot_ == 0;
  std::string fault, path;
  if (first) path = create();
  const auto paths = communicator.all_gather(path);
  path = paths[static_cast<std::size_t>(ranks_.front())];
  fault = path.empty() ? "no file could be created for it" : attach(path);
  const auto faults = communicator.all_gather(fault);
  if (first && !path.empty()) unlink(path.c_str());
  for (std::size_t r = 0; r < faults.size(); ++r)
    if (!faults[r].empty())
      throw AgreedError(ExitCode::io,
                        "rank " + std::to_string(r) +
                            " cannot share memory with the other ranks of its host, through which they watch "
                            "each other: " +
                            faults[r] + "; is /dev/shm full, or not writable?");
}

std::string HostBoard::create() {
  bytes_ = Memory::size(ranks_.size());
  std::random_device random;
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::string path =
        std::string(folder()) + "/assay-" + std::to_string(random()) + std::to_string(random());
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor < 0) continue;
    // Reserved at once: a full memory is an error here, and no bus error later.
    const bool reserved = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes_)) == 0;
    void* const mapped =
        reserved ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    close(descriptor);
    if (mapped == MAP_FAILED) {
      unlink(path.c_str());
      return "";
    }
    auto* memory = new (mapped) Memory;
    for (std::size_t i = 0; i < ranks_.size(); ++i) new (memory->rows() + i) Row;
    munmap(mapped, bytes_);
    return path;
  }
  return "";
}

std::string HostBoard::attach(const std::string& path) {
  bytes_ = Memory::size(ranks_.size());
  descriptor_ = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor_ < 0) return path + ": " + std::strerror(errno);
  void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return path + ": " + std::strerror(errno);
  memory_ = static_cast<Memory*>(mapped);
  short type = F_WRLCK;
  if (lock_byte(descriptor_, F_OFD_SETLK, slot_, type) != 0)
    return path + ": cannot lock: " + std::strerror(errno);
  return "";
}

HostBoard::~HostBoard() {
  if (memory_) munmap(memory_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

Row& HostBoard::mine() { return memory_->rows()[slot_]; }
const Row& HostBoard::row(std::size_t slot) const { return memory_->rows()[slot]; }

bool HostBoard::gone(std::size_t slot) const {
  if (slot == slot_) return false;
  short type = F_WRLCK;
  return lock_byte(descriptor_, F_OFD_GETLK, slot, type) == 0 && type == F_UNLCK;
}

void HostBoard::end_process(std::size_t slot) const {
  const pid_t process = row(slot).view().process;
  // While it holds its lock, its id is no other process's.
  if (process > 1 && process != getpid() && !gone(slot)) kill(process, SIGKILL);
}

bool HostBoard::post(const Verdict& verdict) {
  int not_yet = 0;
  if (!memory_->posting.compare_exchange_strong(not_yet, 1)) return false;
  memory_->rank = verdict.rank;
  const std::size_t length = std::min(verdict.text.size(), sizeof memory_->text - 1);
  std::memcpy(memory_->text, verdict.text.data(), length);
  memory_->text[length] = '\0';
  memory_->posting = 2;
  return true;
}

bool HostBoard::posted(Verdict& verdict) const {
  if (memory_->posting != 2) return false;
  verdict = {memory_->rank, memory_->text};
  return true;
}

bool HostBoard::take_reporting() {
  int expected = nobody;
  return memory_->reporting.compare_exchange_strong(expected, someone);
}
bool HostBoard::being_reported() const { return memory_->reporting != nobody; }
void HostBoard::set_reported() { memory_->reporting = done; }
bool HostBoard::is_reported() const { return memory_->reporting == done; }

}  // namespace assay::impl
