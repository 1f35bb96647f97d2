#include "spec/text/file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "spec/text/quantity.hpp"

namespace assay::spec {
namespace {

/// A descriptor that is closed with the object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

[[noreturn]] void refuse(FileFault::Kind kind, const std::filesystem::path& path) {
  const int reason = errno;
  throw FileFault(kind, path, std::generic_category().message(reason), reason);
}

/// Of what is no regular file.
const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "it is a folder"
         : S_ISFIFO(mode) ? "it is a pipe, and no file"
         : S_ISSOCK(mode) ? "it is a socket, and no file"
                          : "it is a device, and no file";
}

/// A FIFO may be opened before its writer comes: a second for that. One without a writer then reads as empty.
void wait_for_writer(int pipe) {
  constexpr int milliseconds = 1000;
  pollfd end{pipe, POLLIN, 0};
  ::poll(&end, 1, milliseconds);
}

/// read(2), again where a signal came between, and when a stream has more.
ssize_t read_some(int descriptor, char* into, std::size_t most) {
  for (;;) {
    const ssize_t got = ::read(descriptor, into, most);
    if (got >= 0 || (errno != EINTR && errno != EAGAIN)) return got;
    pollfd end{descriptor, POLLIN, 0};
    if (errno == EAGAIN) ::poll(&end, 1, -1);
  }
}

class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {}

 protected:
  int_type underflow() override {
    const ssize_t got = fill(block_.data(), block_.size());
    if (got <= 0) return traits_type::eof();
    setg(block_.data(), block_.data(), block_.data() + got);
    return traits_type::to_int_type(block_[0]);
  }
  std::streamsize xsgetn(char* into, std::streamsize wanted) override {
    const std::streamsize held = std::min<std::streamsize>(wanted, egptr() - gptr());
    std::copy_n(gptr(), held, into);
    gbump(static_cast<int>(held));
    for (std::streamsize done = held; done < wanted;) {
      const ssize_t got = fill(into + done, static_cast<std::size_t>(wanted - done));
      if (got <= 0) return done;
      done += got;
    }
    return wanted;
  }

 private:
  /// Errors become badbit of the stream.
  ssize_t fill(char* into, std::size_t most) {
    const ssize_t got = read_some(descriptor_.number(), into, most);
    if (got < 0) throw std::system_error(errno, std::generic_category());
    return got;
  }

  Descriptor descriptor_;
  std::array<char, 1 << 16> block_;
};

}  // namespace

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

int open_for_reading(const std::filesystem::path& path, Behind behind) {
  // Without O_NONBLOCK a FIFO holds this call up until somebody writes to it.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) refuse(FileFault::Kind::missing, path);
    refuse(errno == ENXIO ? FileFault::Kind::not_regular : FileFault::Kind::not_readable, path);
  }
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) refuse(FileFault::Kind::not_readable, path);
  const mode_t mode = status.st_mode;
  const bool stream = S_ISFIFO(mode) || S_ISSOCK(mode) || ::isatty(file.number());
  if (!S_ISREG(mode) && !(stream && behind == Behind::stream))
    throw FileFault(FileFault::Kind::not_regular, path, kind_of(mode));
  if (S_ISFIFO(mode)) wait_for_writer(file.number());
  if (S_ISREG(mode)) ::fcntl(file.number(), F_SETFL, ::fcntl(file.number(), F_GETFL) & ~O_NONBLOCK);
  return file.release();
}

std::string read_file(const std::filesystem::path& path, const FileLimit& limit, Behind behind) {
  const Descriptor file(open_for_reading(path, behind));
  const auto refuse_longer = [&](std::int64_t bytes, const char* about) {
    if (bytes > limit.bytes)
      throw FileFault(FileFault::Kind::too_long, path,
                      std::string("it has ") + about + grouped(bytes) + " bytes, and " +
                          std::string(limit.what) + " at most " + grouped(limit.bytes));
  };
  struct stat status {};
  if (::fstat(file.number(), &status) == 0) refuse_longer(status.st_size, "");
  std::string text;
  std::array<char, 1 << 16> block;
  // The system's size is a promise of disks alone, and may change meanwhile.
  for (;;) {
    const ssize_t got = read_some(file.number(), block.data(), block.size());
    if (got < 0) refuse(FileFault::Kind::not_readable, path);
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    refuse_longer(static_cast<std::int64_t>(text.size()), "at least ");
  }
}

FileStream::FileStream(const std::filesystem::path& path, Behind behind)
    : std::istream(nullptr), buffer_(std::make_unique<DescriptorBuffer>(open_for_reading(path, behind))) {
  rdbuf(buffer_.get());
}

FileStream::~FileStream() = default;

}  // namespace assay::spec
