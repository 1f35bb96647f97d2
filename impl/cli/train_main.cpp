// The program `assay-train`: what of training needs libtorch. `assay train` checks the arguments and becomes
// this.
#include <unistd.h>

#include <iostream>

#include "impl/cli/launch_ranks.hpp"
#include "impl/cli/verb.hpp"
#include "impl/data/data_files.hpp"
#include "impl/logs/plain_output.hpp"
#include "impl/machine/disk_fault.hpp"
#include "impl/machine/probe.hpp"
#include "impl/machine/standard_streams.hpp"
#include "impl/report/write_report.hpp"
#include "impl/run/train.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/load.hpp"
#include "spec/config/stated.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace {

using namespace assay;

constexpr const char* kHelp =
    "assay-train [RECIPE.toml] [key=value ...]\n"
    "trains one rank; people call `assay train`, launchers (srun, torchrun) may call this on every rank\n"
    "\n"
    "  srun -n 2 assay-train batch.sequences=64\n"
    "\n"
    "options\n"
    "      --resume RUN        go on with a run as its folder says; people call `assay resume`\n"
    "      --change KEY=VALUE  with --resume: a setting that is another one from here on\n"
    "      --into FOLDER       with --resume: a new folder that the run goes on in\n"
    "      --dump-config       print every setting as a complete recipe and stop\n"
    "      --bench ...         measure this machine; people call `assay bench`\n"
    "      --generate ...      go on with texts; people call `assay generate`\n"
    "      --probe             print versions of the libraries and the usable GPUs as JSON and stop\n"
    "  -h, --help              this text\n";

/// The run is over and its record whole: a report that cannot be written, also the second time, is no failure
/// of the run. The summary, which stands last on the screen, has named it.
void report(const std::string& folder, impl::cli::Streams streams) {
  for (const bool last : {false, true}) try {
      const auto written = impl::report::write_report({folder}, "");
      for (const std::string& fault : written.faults)
        streams.err << "assay: warning: " << spec::printable(fault) << "\n";
      return;
    } catch (const std::exception& error) {
      if (!last) continue;
      // What is wrong with the record stays so.
      const auto* user = dynamic_cast<const UserError*>(&error);
      const bool later = !user || user->code() != ExitCode::bad_data;
      streams.err << "assay: warning: " << spec::printable(error.what())
                  << (later ? "; `assay report " + spec::shell_word(folder) + "` writes it later" : "")
                  << "\n";
    }
}

int start(const std::vector<std::string>& words, impl::cli::Streams streams) {
  if (!words.empty() && words[0] == "--bench")
    return impl::cli::run_bench({words.begin() + 1, words.end()}, streams);
  if (!words.empty() && words[0] == "--generate")
    return impl::cli::run_generate({words.begin() + 1, words.end()}, streams);
  const impl::cli::Arguments arguments = impl::cli::parse(words,
                                                          {{"dump-config", "", "", ""},
                                                           {"probe", "", "", ""},
                                                           {"help", "h", "", ""},
                                                           {"ranks", "", "N", ""},
                                                           {"resume", "", "RUN", ""},
                                                           {"change", "", "KEY=VALUE", "", true},
                                                           {"into", "", "FOLDER", ""}},
                                                          "train");
  if (arguments.has("ranks"))
    return impl::cli::refuse_ranks_within_launch(
        "--ranks belongs to `assay train`; here a launcher decides, as in srun -n 2 assay-train");
  if (arguments.has("help")) {
    streams.out << kHelp;
    return 0;
  }
  if (arguments.has("probe")) {
    streams.out << impl::run::probe_json() << "\n";
    return 0;
  }
  const auto load = [&]() -> impl::run::Request {
    if (arguments.has("resume")) {
      if (!arguments.positional.empty())
        throw UserError(ExitCode::usage, "--resume goes on with the settings of the run, not with " +
                                             arguments.positional[0] +
                                             "; give what is to be another by --change key=value");
      return impl::run::resume_request({.run = arguments.value("resume", ""),
                                        .changes = arguments.values("change"),
                                        .into = arguments.value("into", "")});
    }
    if (arguments.has("change") || arguments.has("into"))
      throw UserError(ExitCode::usage, "--change and --into go with --resume RUN");
    const auto [recipe, overrides] = impl::cli::recipe_and_settings(arguments.positional);
    spec::Loaded loaded = spec::load_all(recipe, overrides);
    loaded.faults.gather([&] { spec::require_stated(loaded); });
    loaded.faults.refuse();
    impl::data::name_data_files(loaded.config);
    return loaded.config;
  };
  if (arguments.has("dump-config")) {
    streams.out << spec::dump_toml(load().config);
    return 0;
  }
  return impl::run::train(load, [&](const std::string& folder) { report(folder, streams); });
}

}  // namespace

int main(int count, char** words) {
  impl::open_standard_streams();
  impl::make_file_limit_an_error();
  const impl::logs::PlainOutput out(std::cout, isatty(STDOUT_FILENO)), err(std::cerr, isatty(STDERR_FILENO));
  const impl::cli::Streams streams{std::cout, std::cerr};
  return impl::cli::guarded(streams, [&] { return start({words + 1, words + count}, streams); });
}
