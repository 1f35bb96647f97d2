#include "impl/cli/verb.hpp"
#include "impl/report/write_report.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {

int report(const Arguments& arguments, Streams streams) {
  if (arguments.positional.empty())
    throw UserError(ExitCode::usage,
                    "`assay report` takes one RUN or more, as in `assay report runs/tiny-llama`");
  refuse_repeats(arguments.positional);
  const auto form = arguments.has("csv") ? impl::report::Form::csv : impl::report::Form::page;
  const auto written =
      impl::report::write_report(arguments.positional, arguments.value("output", ""), "", form);
  for (const std::string& fault : written.faults)
    streams.err << "assay: warning: " << spec::printable(fault) << "\n";
  streams.out << (written.file == "-" ? written.text : spec::printable(written.file.string()) + "\n");
  return 0;
}

}  // namespace assay::impl::cli
