// labels: unit fault
// A disk that fills up in the middle of a save.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/folder.hpp"
#include "spec/error.hpp"
#include "spec/model/inventory.hpp"
#include "tests/support/scratch.hpp"

namespace {
/// Bytes that a tensor file may still take before its disk is full; negative: all.
std::int64_t room = -1;
}  // namespace

// A program's own write comes before the C library's, for the libraries that it uses as well.
extern "C" ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (room >= 0 && descriptor > 2) {
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
    if (path.extension() == ".safetensors") {
      if (room == 0) {
        errno = ENOSPC;
        return -1;
      }
      count = std::min(count, static_cast<size_t>(room));
      room -= static_cast<std::int64_t>(count);
    }
  }
  return syscall(SYS_write, descriptor, bytes, count);
}

namespace assay::impl::checkpoint::full_disk_test {
namespace {

namespace fs = std::filesystem;

class FullDiskImpl : public testing::Test {
 protected:
  void SetUp() override {
    model_.name = "tiny", model_.vocab = 11, model_.width = 8, model_.layers = 1, model_.heads = 2;
    model_.kv_heads = 1, model_.head_dim = 4, model_.ffn = 12, model_.context = 8;
  }
  void TearDown() override { room = -1; }

  std::string refusal(const ParameterBuffers& buffers, std::int64_t step) const {
    try {
      save(scratch_.path().string(), buffers, {.step = step, .tokens = 0, .config = {}}, 1);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::io);
      return error.what();
    }
    return "saved";
  }

  spec::ModelSpec model_;
  tests::Scratch scratch_;
  const fs::path parent_ = scratch_.path() / "checkpoints";
};

TEST_F(FullDiskImpl, WhereverItFillsUpTheCheckpointBeforeStaysAndALaterSaveSucceeds) {
  ParameterBuffers buffers = allocate(model_, Dtype::f32, at::kCPU);
  initialise(buffers, model_, 1);
  ASSERT_EQ(refusal(buffers, 1), "saved");
  const std::int64_t whole = size_on_disk(buffers.inventory, Dtype::f32);
  for (std::int64_t bytes = 0; bytes < whole; bytes += whole / 7) {
    room = bytes;
    const std::string text = refusal(buffers, 2);
    EXPECT_NE(text.find("step_00000002 (it needs "), std::string::npos) << text;
    EXPECT_NE(text.find(" are free): "), std::string::npos) << text;
    EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    ParameterBuffers read = allocate(model_, Dtype::f32, at::kCPU);
    EXPECT_EQ(load(newest(scratch_.path().string()).value(), read).step, 1) << bytes;
    EXPECT_EQ(std::distance(fs::directory_iterator(parent_), fs::directory_iterator()), 1)
        << "something unfinished was left with " << bytes << " bytes of room";
  }
  room = -1;
  EXPECT_EQ(refusal(buffers, 2), "saved");
}

}  // namespace
}  // namespace assay::impl::checkpoint::full_disk_test
