#include "impl/report/waterfall.hpp"

#include <algorithm>

#include "impl/report/html.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"
#include "spec/time/waterfall.hpp"

namespace assay::impl::report {
namespace {

constexpr std::size_t most_ops = 16;  // of the table: the rest is below a per cent or two

std::optional<double> number_or_nothing(spec::document::Item object, const char* key) {
  const auto found = object.find(key);
  if (!found || found->is(spec::document::Kind::null)) return {};
  return found->real();
}

std::string subject_text(spec::document::Item root) {
  return root.at("model").text() + ", " + spec::grouped(root.at("micro").integer()) + " x " +
         spec::grouped(root.at("sequence_length").integer()) + " tokens a micro-batch, " +
         root.at("dtype").text() + ", " + root.at("device").text();
}

StepPicture picture_of(spec::document::Item root) {
  if (root.at("schema").text() != "assay.bench.step/1") root.at("schema").wrong("\"assay.bench.step/1\"");
  StepPicture out{.subject = subject_text(root),
                  .step_seconds = root.at("step_seconds").real(),
                  .mfu = number_or_nothing(root, "mfu"),
                  .bars = {},
                  .ops = {}};
  std::vector<double> bars, parts = {root.at("between_seconds").real()};
  const auto list = root.at("waterfall"), ops = root.at("parts");
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.bars.push_back({list[i].at("name").text(), list[i].at("seconds").real()});
    bars.push_back(out.bars.back().seconds);
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    out.ops.push_back(
        {ops[i].at("name").text(), ops[i].at("seconds").real(), number_or_nothing(ops[i], "roofline_share")});
    parts.push_back(out.ops.back().seconds);
  }
  spec::time::check_sum(out.step_seconds, bars);
  spec::time::check_sum(out.step_seconds, parts);
  return out;
}

/// One row: the bar begins where those before it end.
std::string waterfall_row(const std::string& name, double begin, double share, int colour,
                          const std::string& total) {
  const auto width = [](double part) { return spec::fixed(100 * std::max(part, 0.0), 2) + "%"; };
  return "<span>" + escaped(name) + "</span><span class=\"bar-track\"><span style=\"width:" + width(begin) +
         "\"></span><span class=\"part c" + std::to_string(colour) + "\" style=\"width:" + width(share) +
         "\" title=\"" + escaped(name) + "\"></span></span><span class=\"bar-total\">" + escaped(total) +
         "</span>\n";
}

std::string waterfall_figure(const StepPicture& picture) {
  std::string out = "<figure class=\"bars\">\n<figcaption>";
  out += picture.mfu ? "From the peak to the achieved MFU" : "Shares of the step";
  out += " <span class=\"unit\">" + escaped(picture.subject) + "; a step of " +
         spec::fixed(1e3 * picture.step_seconds, 1) + " ms</span></figcaption>\n<div class=\"grid-bars\">\n";
  static constexpr int colours[] = {2, 0, 1, 4, 5, 3, 6, 7};
  // With a peak: what is lost is taken off the right end, one after the other, until the MFU is left.
  const bool known = picture.mfu.has_value();
  double edge = known ? 1 : 0;
  for (std::size_t i = known ? 1 : 0; i < picture.bars.size(); ++i) {
    const double share = picture.bars[i].seconds / picture.step_seconds;
    if (known) edge -= share;
    out += waterfall_row(picture.bars[i].name, edge, share, colours[(i + (known ? 0 : 1)) % 8],
                         spec::percent(share) + ", " + spec::fixed(1e3 * picture.bars[i].seconds, 1) + " ms");
    if (!known) edge += share;
  }
  if (known) out += waterfall_row("achieved MFU", 0, *picture.mfu, colours[0], spec::percent(*picture.mfu));
  return out + "</div>\n</figure>\n";
}

std::string op_table(const StepPicture& picture) {
  std::string out =
      "<details><summary>The ops of a step</summary><div class=\"scroll\"><table>\n<thead><tr><th></th>"
      "<th class=\"number\">ms a step</th><th class=\"number\">of the step</th>"
      "<th class=\"number\">of its roofline</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < std::min(most_ops, picture.ops.size()); ++i) {
    const TimedOp& op = picture.ops[i];
    out += "<tr><th scope=\"row\">" + escaped(op.name) + "</th><td class=\"number\">" +
           spec::fixed(1e3 * op.seconds, 2) + "</td><td class=\"number\">" +
           spec::percent(op.seconds / picture.step_seconds) + "</td><td class=\"number\">" +
           (op.roofline_share ? spec::percent(*op.roofline_share) : "–") + "</td></tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

}  // namespace

std::optional<StepPicture> read_waterfall(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "waterfall.json";
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return {};
  const spec::document::Tree tree =
      spec::parse_json(spec::read_file(path, spec::file_limits::waterfall), path.string());
  return picture_of(tree.root());
}

std::string where_the_time_goes(const std::optional<StepPicture>& picture) {
  if (!picture) return "";
  return "<section><h2>Where the time goes</h2>\n<p class=\"soft\">Measured by assay bench step: every op of "
         "a "
         "step, and what lies between them.</p>\n" +
         waterfall_figure(*picture) + op_table(*picture) + "</section>\n";
}

}  // namespace assay::impl::report
