#include "impl/report/scaling_picture.hpp"

#include <algorithm>

#include "impl/report/chart.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::report {

std::string scaling_picture(const std::vector<spec::metrics::ScalingRow>& rows, bool strong) {
  const std::vector<Part> parts = {
      {"kept", 2}, {"imbalance", 5}, {"waiting", 1}, {"compute", 3}, {"fixed", 7}};
  std::vector<Bar> bars;
  for (const auto& row : rows) {
    Bar bar{std::to_string(row.ranks) + (row.ranks == 1 ? " rank" : " ranks"),
            {row.efficiency, row.lost_imbalance, row.lost_waiting, row.lost_compute, row.lost_fixed},
            spec::percent(row.efficiency) + ", " + spec::fixed(row.tokens_per_second_of_rank, 0) +
                " tokens/s of a rank"};
    for (double& part : bar.parts) part = std::max(part, 0.0);
    bars.push_back(std::move(bar));
  }
  return "<section>\n<h2>What more ranks bring</h2>\n" +
         bar_chart(
             std::string(strong ? "Strong" : "Weak") +
                 " scaling: tokens/s of a rank as a share of a rank's by itself, and where the rest goes",
             parts, bars) +
         "</section>\n";
}

}  // namespace assay::impl::report
