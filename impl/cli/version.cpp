#include "impl/cli/verb.hpp"
#include "spec/record/event.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::cli {

std::string program_version() { return ASSAY_VERSION; }

int version(const Arguments& arguments, Streams streams) {
  if (arguments.has("json"))
    streams.out << "{\"version\":" << spec::json_string(program_version())
                << ",\"record_schema\":" << spec::record::kSchema << "}\n";
  else
    streams.out << "assay " << program_version() << "\n";
  return 0;
}

}  // namespace assay::impl::cli
