#pragma once
// Counts since the start that grow as their steps do, but for single lines.
#include <string>

#include "spec/audit/relations.hpp"

namespace assay::spec::audit {

/// "sequences since the start jump at line 130, by 12,800 more than the steps make; ...", where nearly all
/// lines grow from the line before as their steps make them; else, and of other relations, empty.
std::string uneven_count(const Evidence& e, Relation relation);

}  // namespace assay::spec::audit
