#include "impl/machine/architectures.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace assay::impl::run {

std::vector<Architecture> read_architectures(const std::string& list) {
  std::vector<Architecture> out;
  std::string spaced = list;
  std::replace(spaced.begin(), spaced.end(), ';', ' ');
  std::istringstream words(spaced);
  for (std::string word; words >> word;) {
    Architecture one;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), one.capability);
    if (error != std::errc()) continue;
    std::string rest = word.substr(static_cast<std::size_t>(end - word.data()));
    one.specific = rest.starts_with('a');
    if (one.specific) rest.erase(0, 1);
    one.machine = rest.empty() || rest == "-real";
    one.ptx = rest.empty() || rest == "-virtual";
    if (one.machine || one.ptx) out.push_back(one);
  }
  return out;
}

const std::vector<Architecture>& compiled_architectures() {
  static const std::vector<Architecture> all = read_architectures(ASSAY_COMPILED_ARCHITECTURES);
  return all;
}

bool runs_on(const std::vector<Architecture>& architectures, int capability) {
  for (const Architecture& one : architectures) {
    if (one.capability == capability) return true;
    if (one.specific) continue;
    if (one.machine && one.capability / 10 == capability / 10 && one.capability < capability) return true;
    if (one.ptx && one.capability < capability) return true;
  }
  return false;
}

std::string describe(const std::vector<Architecture>& architectures) {
  std::string out;
  for (const Architecture& one : architectures) {
    const std::string number = std::to_string(one.capability) + (one.specific ? "a" : "");
    if (one.machine) out += (out.empty() ? "" : ", ") + ("sm_" + number);
    if (one.ptx) out += (out.empty() ? "" : ", ") + ("PTX compute_" + number);
  }
  return out;
}

}  // namespace assay::impl::run
