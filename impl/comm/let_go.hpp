#pragma once
// What a process would wait for when another rank is lost, and has to let go of before it ends.
#include <functional>

namespace assay::impl {

/// While it lives, let_go_of_all calls `release`, on any thread, at most once.
class LetGo {
 public:
  explicit LetGo(std::function<void()> release);
  ~LetGo();
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

 private:
  std::function<void()> release_;
  friend void let_go_of_all();
};

/// Another rank is lost, and this process is about to end.
void let_go_of_all();

}  // namespace assay::impl
