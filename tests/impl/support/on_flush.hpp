#pragma once
// Tests see every flush of the program that they are part of.
#include <filesystem>
#include <functional>

namespace assay::tests {

/// Called with the path of each file and folder when it is flushed (fsync); false: the flush fails. Empty
/// unless a test sets it, which empties it again. Defined beside the program's own fsync, in
/// tests/impl/checkpoint/commit_order_test.cpp.
std::function<bool(const std::filesystem::path&)>& on_flush();

}  // namespace assay::tests
