#include <fstream>
#include <iterator>

#include "impl/cli/verb.hpp"
#include "spec/claims/page.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli {
namespace {

using spec::claims::Claim;
using spec::claims::Document;
using spec::claims::Verdict;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw UserError(ExitCode::usage, path + ": cannot be opened; give a file of claims, as in golden/claims");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) throw UserError(ExitCode::io, path + ": cannot be read");
  return text;
}

/// One line for every claim whose file states another verdict than the recomputation gives.
std::size_t list_misjudged(const Document& document, std::ostream& err) {
  std::size_t misjudged = 0;
  for (const Claim& claim : document.claims) {
    const Verdict verdict = judge(claim, document).verdict;
    if (verdict == claim.verdict) continue;
    ++misjudged;
    err << document.key << "." << claim.id << ": the file says \"" << to_string(claim.verdict)
        << "\", the recomputation says \"" << to_string(verdict) << "\"\n";
  }
  return misjudged;
}

}  // namespace

int claims(const Arguments& arguments, Streams streams) {
  if (arguments.positional.empty())
    throw UserError(
        ExitCode::usage,
        "`assay claims` takes one FILE or more, as in `assay claims golden/claims/b200_scaling.toml`");
  std::vector<Document> documents;
  for (const std::string& path : arguments.positional)
    documents.push_back(spec::claims::document_from_toml(text_of(path), path));
  streams.out << spec::claims::page(documents);
  std::size_t misjudged = 0;
  for (const Document& document : documents) misjudged += list_misjudged(document, streams.err);
  return misjudged == 0 ? 0 : static_cast<int>(ExitCode::contradiction);
}

}  // namespace assay::impl::cli
