#include <algorithm>
#include <exception>

#include "impl/cli/data_convert.hpp"
#include "impl/cli/verb.hpp"
#include "impl/data/checked_ids.hpp"
#include "impl/logs/progress_line.hpp"
#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/json.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

using impl::data::IdRange;
using impl::data::TokenFile;

constexpr std::int64_t any_vocabulary = std::int64_t{1} << 31;

std::optional<impl::data::TokenType> stated_type(const Arguments& arguments) {
  if (!arguments.has("dtype")) return {};
  return impl::data::token_type(arguments.value("dtype", ""));
}

std::vector<IdRange> ids_of(const std::vector<TokenFile>& files) {
  std::vector<const TokenFile*> all;
  all.reserve(files.size());
  for (const TokenFile& file : files) all.push_back(&file);
  logs::ProgressLine line("reading token ids");
  return impl::data::ids_of(all, [&](std::int64_t done, std::int64_t of) { line.show(done, of); });
}

std::vector<std::string> named_files(const Arguments& arguments) {
  if (arguments.positional.size() < 2)
    throw UserError(ExitCode::usage,
                    "`assay data " + arguments.positional[0] + "` takes one or more token files");
  return {arguments.positional.begin() + 1, arguments.positional.end()};
}

std::vector<std::int32_t> first_ids(const TokenFile& file) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min<std::int64_t>(8, file.tokens())));
  file.read(0, ids);
  return ids;
}

std::string joined(const std::vector<std::int32_t>& ids, const char* between) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : between) + std::to_string(id);
  return text;
}

std::string json_of(const TokenFile& file, const IdRange& range) {
  const impl::data::TokenFormat& format = file.format();
  return "{\"file\":" + spec::json_string(file.path().string()) +
         ",\"format\":" + spec::json_string(format.container) +
         ",\"dtype\":" + spec::json_string(impl::data::name(format.type)) +
         ",\"first_byte\":" + std::to_string(format.first_byte) +
         ",\"tokens\":" + std::to_string(format.tokens) +
         ",\"documents\":" + (format.documents ? std::to_string(*format.documents) : "null") +
         ",\"smallest_id\":" + std::to_string(range.smallest) +
         ",\"largest_id\":" + std::to_string(range.largest) + ",\"first_ids\":[" +
         joined(first_ids(file), ",") + "]}";
}

/// Shows every file that can be read, and then reports the first that cannot.
int inspect(const Arguments& arguments, Streams streams) {
  std::vector<TokenFile> files;
  std::exception_ptr fault;
  for (const std::string& path : named_files(arguments)) {
    try {
      TokenFile file(path, stated_type(arguments), any_vocabulary);
      impl::data::document_ends(file.file(), file.format());
      files.push_back(std::move(file));
    } catch (const UserError&) {
      if (!fault) fault = std::current_exception();
    }
  }
  const std::vector<IdRange> ranges = ids_of(files);
  std::string json;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const impl::data::TokenFormat& format = files[i].format();
    if (arguments.has("json")) {
      json += (i == 0 ? "" : ",\n ") + json_of(files[i], ranges[i]);
      continue;
    }
    streams.out << (i == 0 ? "" : "\n") << "file       " << spec::printable(files[i].path().string())
                << "\nformat     " << format.container << " " << impl::data::name(format.type)
                << "\ntokens     " << spec::grouped(format.tokens) << "\ndocuments  "
                << (format.documents ? spec::grouped(*format.documents) : "ends not known") << "\nids        "
                << ranges[i].smallest << " to " << ranges[i].largest << "\nfirst ids  "
                << joined(first_ids(files[i]), " ") << "\n";
  }
  try {
    for (const TokenFile& file : files) file.require_width(spec::data::largest_vocabulary);
  } catch (const UserError&) {
    if (!fault) fault = std::current_exception();
  }
  if (arguments.has("json")) streams.out << "[" << json << "]\n";
  if (fault) std::rethrow_exception(fault);
  return 0;
}

int verify(const Arguments& arguments, Streams streams) {
  if (arguments.has("vocab") == arguments.has("model"))
    throw UserError(ExitCode::usage,
                    "`assay data verify` compares the ids with a vocabulary: give --vocab N or --model M" +
                        std::string(arguments.has("vocab") ? ", not both" : ""));
  const std::int64_t vocabulary = arguments.has("vocab")
                                      ? arguments.positive("vocab", 0)
                                      : spec::find_model(arguments.value("model", "")).vocab;
  std::vector<TokenFile> files;
  for (const std::string& path : named_files(arguments))
    files.emplace_back(path, stated_type(arguments), vocabulary);
  const std::vector<IdRange> ranges = ids_of(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].require_width(vocabulary);
    impl::data::require_in_vocabulary(files[i], ranges[i]);
    impl::data::document_ends(files[i].file(), files[i].format());
    streams.out << spec::printable(files[i].path().string()) << ": " << spec::grouped(files[i].tokens())
                << " tokens of " << files[i].format().container << " "
                << impl::data::name(files[i].format().type) << ", ids " << ranges[i].smallest << " to "
                << ranges[i].largest << ", all within the vocabulary of " << spec::grouped(vocabulary)
                << "\n";
  }
  return 0;
}

int convert(const Arguments& arguments, Streams streams) {
  if (arguments.positional.size() != 3)
    throw UserError(ExitCode::usage,
                    "`assay data convert` takes a token file and the file to make, as in `assay data convert "
                    "tokens.npy tokens.bin`");
  const TokenFile from(arguments.positional[1], stated_type(arguments), any_vocabulary);
  from.require_width(any_vocabulary);
  const std::string& to = arguments.positional[2];
  Converted done;
  {
    logs::ProgressLine line("writing token ids");
    done = convert_tokens(from, to, [&](std::int64_t part, std::int64_t all) { line.show(part, all); });
  }
  streams.out << to << ": " << spec::grouped(done.tokens) << " tokens of " << impl::data::name(done.type);
  if (done.documents > 0) streams.out << " in " << spec::grouped(done.documents) << " documents";
  streams.out << ", from " << from.format().container << " " << impl::data::name(from.format().type)
              << (done.documents > 0 ? "" : ", which does not say where documents end: no .ends is written")
              << "\n";
  return 0;
}

/// Refuses options that belong to another action.
void refuse_options_of_others(const Arguments& arguments, const std::string& action) {
  const std::pair<const char*, const char*> owners[] = {
      {"vocab", "verify"}, {"model", "verify"}, {"json", "inspect"}};
  for (const auto& [option, owner] : owners)
    if (arguments.has(option) && action != owner)
      throw UserError(ExitCode::usage,
                      "--" + std::string(option) + " is an option of `assay data " + owner + "` alone");
}

}  // namespace

int data(const Arguments& arguments, Streams streams) {
  const std::vector<std::string> actions = {"inspect", "verify", "convert"};
  const std::string action = arguments.positional.empty() ? "" : arguments.positional[0];
  if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
    const auto guess = spec::nearest(action, actions);
    throw UserError(ExitCode::usage, "`assay data` does inspect, verify or convert" +
                                         (action.empty() ? std::string("; name one")
                                                         : ", not " + spec::quote(action) +
                                                               (guess ? "; did you mean \"" + *guess + "\"?"
                                                                      : std::string())));
  }
  refuse_options_of_others(arguments, action);
  return action == "inspect"  ? inspect(arguments, streams)
         : action == "verify" ? verify(arguments, streams)
                              : convert(arguments, streams);
}

}  // namespace assay::impl::cli
