#include "impl/cli/verb.hpp"
#include "spec/claims/page.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

using spec::claims::Claim;
using spec::claims::Document;
using spec::claims::Verdict;

std::string text_of(const std::string& path) try {
  return spec::read_file(path, spec::file_limits::claims, spec::Behind::stream);
} catch (const spec::FileFault& fault) {
  throw UserError(fault.kind() == spec::FileFault::Kind::too_long ? fault.code() : ExitCode::usage,
                  std::string(fault.what()) + "; give a file of claims, as in golden/claims");
}

/// Errors: UserError; of a file that is not called .toml with what to give.
Document document_of(const std::string& path) {
  const std::string text = text_of(path);
  try {
    return spec::claims::document_from_toml(text, path);
  } catch (const UserError& error) {
    if (path.ends_with(".toml")) throw;
    throw UserError(error.code(), std::string(error.what()) +
                                      "; the files of claims are golden/claims/*.toml, docs/claims.md is the "
                                      "page that `assay claims` writes of them");
  }
}

/// Judges every claim once, so that one whose expression cannot be computed is named with its file.
void refuse_uncomputable(const Document& document, const std::string& path) {
  for (const Claim& claim : document.claims) try {
      judge(claim, document);
    } catch (const std::exception& error) {
      throw UserError(ExitCode::bad_data,
                      path + ": claim " + spec::quote(claim.id) + " cannot be recomputed: " + error.what());
    }
}

/// One line for every claim whose file states another verdict than the recomputation gives.
std::size_t list_misjudged(const Document& document, std::ostream& err) {
  std::size_t misjudged = 0;
  for (const Claim& claim : document.claims) {
    const Verdict verdict = judge(claim, document).verdict;
    if (verdict == claim.verdict) continue;
    ++misjudged;
    err << spec::printable(document.key + "." + claim.id) << ": the file says \"" << to_string(claim.verdict)
        << "\", the recomputation says \"" << to_string(verdict) << "\"\n";
  }
  return misjudged;
}

std::string interval_json(const std::optional<spec::Interval>& interval) {
  return interval ? "[" + spec::json_number(interval->low) + "," + spec::json_number(interval->high) + "]"
                  : "null";
}

std::string claim_json(const Claim& claim, const Document& document) {
  const spec::claims::Judgement judged = judge(claim, document);
  const auto text = [](const char* name, std::string_view value) {
    return ",\"" + std::string(name) + "\":" + spec::json_string(value);
  };
  return "{\"id\":" + spec::json_string(claim.id) + ",\"line\":" + std::to_string(claim.line) +
         text("what", claim.what) + text("printed", claim.printed) + text("unit", claim.unit_name) +
         ",\"weight\":" + std::to_string(claim.weight) + text("verdict", to_string(judged.verdict)) +
         text("stated", to_string(claim.verdict)) + ",\"interval\":" + interval_json(judged.printed) +
         ",\"recomputed\":" + interval_json(judged.expected) +
         ",\"under_reading\":" + interval_json(judged.under_reading) +
         ",\"ratio\":" + (judged.ratio ? spec::json_number(*judged.ratio) : "null") +
         text("expression", claim.expect) + text("reading", claim.reading) + text("cause", claim.cause) +
         text("missing", claim.missing) + text("repeats", claim.repeats) + text("twin", claim.twin) + "}";
}

/// One object: documents, each with its claims in the order of the file. Intervals in base units.
void print_claims_json(const std::vector<Document>& documents, std::ostream& out) {
  out << "{\"documents\":[";
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const Document& document = documents[i];
    out << (i ? "," : "") << "{\"key\":" << spec::json_string(document.key)
        << ",\"title\":" << spec::json_string(document.title)
        << ",\"source\":" << spec::json_string(document.source) << ",\"claims\":[";
    for (std::size_t k = 0; k < document.claims.size(); ++k)
      out << (k ? "," : "") << claim_json(document.claims[k], document);
    out << "]}";
  }
  out << "]}\n";
}

}  // namespace

int claims(const Arguments& arguments, Streams streams) {
  if (arguments.positional.empty())
    throw UserError(
        ExitCode::usage,
        "`assay claims` takes one FILE or more, as in `assay claims golden/claims/b200_scaling.toml`");
  refuse_repeats(arguments.positional);
  std::vector<Document> documents;
  for (const std::string& path : arguments.positional) {
    documents.push_back(document_of(path));
    refuse_uncomputable(documents.back(), path);
  }
  if (arguments.has("json"))
    print_claims_json(documents, streams.out);
  else
    streams.out << spec::claims::page(documents);
  std::size_t misjudged = 0;
  for (const Document& document : documents) misjudged += list_misjudged(document, streams.err);
  return misjudged == 0 ? 0 : static_cast<int>(ExitCode::contradiction);
}

}  // namespace assay::impl::cli
