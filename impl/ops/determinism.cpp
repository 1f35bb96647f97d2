#include "impl/ops/determinism.hpp"

#include <atomic>

namespace assay::impl {

namespace {
std::atomic<bool> required = false;
}

void set_deterministic(bool on) { required = on; }
bool deterministic() { return required; }

}  // namespace assay::impl
