#pragma once
// Numbers that a document states: read, recomputed and judged. Files and functions: `assay help claims`.
//
// Promised, in namespace assay:
//   spec::claims::Document, spec::claims::Claim, spec::claims::Input, spec::claims::document_from_toml
//   spec::claims::Verdict, spec::claims::to_string, spec::claims::Judgement, spec::claims::judge
//   spec::claims::printed_interval, spec::claims::page
//   spec::claims::evaluate, spec::claims::Names, spec::claims::claim_names, spec::Interval
//
// Units: base units (seconds, bytes, FLOP/s, shares of 1). Errors: UserError (bad_data) of
// document_from_toml; SpecError claim_c1.., expression_c1, expression_c2.
#include "spec/claims/claim.hpp"
#include "spec/claims/page.hpp"
