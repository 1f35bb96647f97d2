#pragma once
// Counts the memory of ATen's CPU tensors where they get it.
#include <c10/core/CPUAllocator.h>

#include <atomic>

namespace assay::tests {

/// Hands on to libtorch's allocator and counts what is out.
class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& installed() {
    static CountingAllocator* counting = [] {
      auto* made = new CountingAllocator(c10::GetCPUAllocator());
      c10::SetCPUAllocator(made, /*priority=*/200);
      return made;
    }();
    return *counting;
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    now_ += static_cast<std::int64_t>(bytes);
    if (now_ > peak_) peak_ = now_.load();
    if (now_ > most_) most_ = now_.load();
    auto* block = new Block{below_->allocate(bytes), static_cast<std::int64_t>(bytes)};
    return {block->data.get(), block, &CountingAllocator::release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  void begin() { peak_ = now_.load(), base_ = now_; }
  /// Starts a stretch of which `most` is asked.
  void restart() { most_ = now_.load(); }
  /// Most bytes at a time since restart, beyond those of begin.
  std::int64_t most() const { return most_ - base_; }
  /// Most bytes at a time since begin, beyond those of then.
  std::int64_t peak() const { return peak_ - base_; }
  /// Bytes that are out beyond those of begin.
  std::int64_t held() const { return now_ - base_; }

 private:
  struct Block {
    c10::DataPtr data;
    std::int64_t bytes;
  };
  explicit CountingAllocator(c10::Allocator* below) : below_(below) {}
  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    installed().now_ -= block->bytes;
    delete block;
  }

  c10::Allocator* below_;
  std::atomic<std::int64_t> now_ = 0, peak_ = 0, most_ = 0;
  std::int64_t base_ = 0;
};

}  // namespace assay::tests
