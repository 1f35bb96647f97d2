#include "impl/machine/host_name.hpp"

#include <unistd.h>

namespace assay::impl {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace assay::impl
