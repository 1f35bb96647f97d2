#include "impl/report/page.hpp"

#include "impl/report/html.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::report {
namespace {

std::string title(const std::vector<NamedRun>& runs) {
  if (runs.size() > 1) return std::to_string(runs.size()) + " runs compared";
  const std::string& model = runs[0].run.start.model;
  return model == runs[0].name ? model : model + " – " + runs[0].name;
}

std::string subtitle(const std::vector<NamedRun>& runs) {
  if (runs.size() > 1) return "assay report";
  const spec::record::RunStart& start = runs[0].run.start;
  return spec::grouped(start.parameters) + " parameters, started " + start.time + " on " + start.host;
}

std::string waterfalls(const std::vector<NamedRun>& runs) {
  std::string out;
  for (const NamedRun& named : runs) out += where_the_time_goes(named.waterfall);
  return out;
}

}  // namespace

std::string page(const std::vector<NamedRun>& runs, const std::string& first) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title(runs)) + "</title>\n<style>" + style() +
         "</style>\n</head>\n<body>\n<main>\n<header><h1>" + escaped(title(runs)) +
         "</h1><span class=\"soft\">" + escaped(subtitle(runs)) + "</span></header>\n" + damage(runs) +
         headline(runs) + warnings(runs) + first + charts(runs) + waterfalls(runs) + samples(runs) +
         batch_arithmetic(runs) + (runs.size() == 1 ? "<div class=\"columns\">\n" : "<div>\n") +
         machine(runs) + settings(runs) + "</div>\n" +
         "<footer>Written by assay from the runs&#39; records (run.jsonl).</footer>\n</main>\n</body>\n" +
         "</html>\n";
}

}  // namespace assay::impl::report
