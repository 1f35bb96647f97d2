#include "impl/comm/peer/copied.hpp"

namespace assay::impl {

std::string refusal(const Copied& copied, const std::string& why, const std::string& instead) {
  const std::string setting = copied.setting;
  return setting + "=copy_engines: GPUs of one host copy " + copied.what + " from one another, and " + why +
         "; give " + instead + setting + "=nccl";
}

}  // namespace assay::impl
