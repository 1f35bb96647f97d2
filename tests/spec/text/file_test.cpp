// labels: unit fault
// Whatever stands behind a name: read, or refused at once.
#include "spec/text/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "spec/text/quantity.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/scratch.hpp"

namespace assay::spec::file_test {
namespace {

namespace fs = std::filesystem;
constexpr FileLimit ten = {"a test's file", 10};

struct FileSpec : testing::Test {
  const tests::Scratch scratch;
  fs::path at(const char* name) const { return scratch.path() / name; }
  /// Why, and that it took less than two seconds.
  static std::string refusal(const fs::path& path, Behind behind = Behind::regular_file) {
    const auto begin = std::chrono::steady_clock::now();
    std::string why = "read";
    try {
      read_file(path, ten, behind);
    } catch (const FileFault& fault) {
      EXPECT_EQ(fault.what(), path.string() + ": " + fault.why());
      why = fault.why();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << path;
    return why;
  }
};

TEST_F(FileSpec, AFileIsReadWholeUpToItsLimit) {
  EXPECT_EQ(read_file(scratch.write("ten", "0123456789"), ten), "0123456789");
  EXPECT_EQ(read_file(scratch.write("none", ""), ten), "");
  EXPECT_EQ(refusal(scratch.write("eleven", "0123456789a")), "it has 11 bytes, and a test's file at most 10");
  fs::create_symlink("ten", at("link"));
  EXPECT_EQ(read_file(at("link"), ten), "0123456789");
  // Its size is said to be 0.
  EXPECT_NE(refusal("/proc/self/status").find("bytes, and a test's file at most 10"), std::string::npos);
}

TEST_F(FileSpec, WhatIsNoFileIsRefusedAtOnce) {
  EXPECT_EQ(refusal(at("none")), "No such file or directory");
  EXPECT_EQ(refusal(scratch.path()), "it is a folder");
  EXPECT_EQ(refusal(scratch.path(), Behind::stream), "it is a folder");
  EXPECT_EQ(refusal("/dev/zero"), "it is a device, and no file");
  EXPECT_EQ(refusal("/dev/null", Behind::stream), "it is a device, and no file");
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refusal(at("fifo")), "it is a pipe, and no file");
  EXPECT_EQ(refusal(at("fifo"), Behind::stream), "read") << "nobody writes: it reads as empty";
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  at("socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(refusal(at("socket")), "No such device or address");
  close(socket);
  fs::create_symlink("circle", at("circle"));
  EXPECT_EQ(refusal(at("circle")), "Too many levels of symbolic links");
}

TEST_F(FileSpec, APipeIsReadWhereStreamsMayBe) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  std::thread writer([&] {  // comes late, and goes on in pieces
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::ofstream out(at("fifo"));
    out << "12" << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    out << "345";
  });
  EXPECT_EQ(read_file(at("fifo"), ten, Behind::stream), "12345");
  writer.join();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread slow([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // longer than a writer is waited for
    ASSERT_EQ(write(ends[1], "late\n", 5), 5);
    close(ends[1]);
  });
  FileStream in("/dev/fd/" + std::to_string(ends[0]), Behind::stream);
  std::string line;
  EXPECT_TRUE(std::getline(in, line));
  EXPECT_EQ(line, "late");
  slow.join();
  close(ends[0]);
}

TEST_F(FileSpec, AStreamReadsWhatAnIfstreamReads) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += std::to_string(i) + (i % 7 ? " " : "\n");
  const fs::path path = scratch.write("long", text);
  std::ifstream plain(path);
  FileStream own(path);
  for (std::string a, b; std::getline(plain, a);) {
    ASSERT_TRUE(std::getline(own, b));
    ASSERT_EQ(a, b);
    char left[50], right[50];
    plain.read(left, 33), own.read(right, 33);
    ASSERT_EQ(std::string(left, static_cast<std::size_t>(plain.gcount())),
              std::string(right, static_cast<std::size_t>(own.gcount())));
  }
  EXPECT_FALSE(own.bad());
}

TEST_F(FileSpec, TheManualStatesEveryLimit) {
  std::ifstream page(tests::source_dir() + "/docs/running.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  for (const FileLimit& limit : file_limits::all) {
    const std::string row = "| " + std::string(limit.what) + " | " + bytes(limit.bytes) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace assay::spec::file_test
