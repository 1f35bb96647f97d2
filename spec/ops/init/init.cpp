#include "spec/ops/init/init.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::init {

namespace {
bool vector(Role role) { return role == Role::norm || role == Role::bias || role == Role::router_bias; }
}  // namespace

void check_shape(Role role, const std::vector<std::int64_t>& shape) {
  const std::size_t axes = vector(role) ? 1 : 2;
  const bool holds = shape.size() == axes &&
                     std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent >= 1; });
  // init_c1
  require(holds, "init_c1", [&] {
    std::string text;
    for (std::int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return "shape [" + text + "], expected " + std::to_string(axes) + " extents >= 1";
  });
}

double initial_std(Role role, double std, std::int64_t layers) {
  // init_c2
  require(std::isfinite(std) && std > 0, "init_c2", [&] { return "std=" + std::to_string(std); });
  // init_c3
  require(layers >= 1, "init_c3", [&] { return "layers=" + std::to_string(layers); });
  if (vector(role)) return 0;
  switch (role) {
    case Role::attention_output:
    case Role::down:
    case Role::expert_down:
    case Role::shared_down:
      return std / std::sqrt(2 * static_cast<double>(layers));
    default:
      return std;
  }
}

random::Stream initial_stream(std::uint64_t seed, std::int64_t parameter_index) {
  // init_c4
  require(parameter_index >= 0 && parameter_index <= std::numeric_limits<std::uint32_t>::max(), "init_c4",
          [&] { return "parameter_index=" + std::to_string(parameter_index) + " is not in [0, 2^32)"; });
  return {seed, random::Site::parameter, static_cast<std::uint32_t>(parameter_index)};
}

double initial_value(Role role, std::uint64_t seed, std::int64_t parameter_index, std::uint64_t element,
                     double std, std::int64_t layers) {
  const random::Stream stream = initial_stream(seed, parameter_index);
  const double scale = initial_std(role, std, layers);
  if (vector(role)) return role == Role::norm ? 1 : 0;
  return scale * stream.normal(element);
}

}  // namespace assay::spec::init
