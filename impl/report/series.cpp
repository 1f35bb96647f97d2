#include <algorithm>
#include <cmath>

#include "impl/report/chart.hpp"

namespace assay::impl::report {

Series thinned(const Series& series, std::size_t most) {
  const std::size_t count = series.x.size();
  if (count <= most || most < 2) return series;
  Series out{series.name, {}, {}, series.colour};
  const std::size_t buckets = most / 2;
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::size_t begin = b * count / buckets, end = (b + 1) * count / buckets;
    std::size_t least = begin, greatest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (series.y[i] < series.y[least] || !std::isfinite(series.y[least])) least = i;
      if (series.y[i] > series.y[greatest] || !std::isfinite(series.y[greatest])) greatest = i;
    }
    for (const std::size_t i : {std::min(least, greatest), std::max(least, greatest)}) {
      if (!out.x.empty() && out.x.back() == series.x[i]) continue;
      out.x.push_back(series.x[i]);
      out.y.push_back(series.y[i]);
    }
  }
  return out;
}

Series running_mean(const Series& series, std::size_t window) {
  Series out = series;
  // Each window is summed anew: a running sum would carry the rounding of one huge value to the end.
  const std::size_t count = series.y.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t half = std::min({window / 2, i, count - 1 - i});
    double sum = 0;
    std::size_t finite = 0;
    for (std::size_t j = i - half; j <= i + half; ++j) {
      if (!std::isfinite(series.y[j])) continue;
      sum += series.y[j];
      ++finite;
    }
    out.y[i] = finite ? sum / static_cast<double>(finite) : series.y[i];
  }
  return out;
}

}  // namespace assay::impl::report
