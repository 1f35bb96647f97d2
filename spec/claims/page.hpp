#pragma once
// The page of all claims, docs/claims.md, written from golden/claims.
#include <string>
#include <vector>

#include "spec/claims/claim.hpp"

namespace assay::spec::claims {

/// Markdown: counts by document and verdict, then every claim, those that matter most first (weight, then
/// contradictions before the rest, then how far off). Recomputed, not copied from the files. Errors: as
/// `judge`.
std::string page(const std::vector<Document>& documents);

}  // namespace assay::spec::claims
