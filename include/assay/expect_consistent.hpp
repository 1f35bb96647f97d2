#pragma once
// For the tests of a trainer: fails where a record of its numbers contradicts itself. GoogleTest's own header
// is included before; the library itself does not depend on it. Macros: EXPECT_CONSISTENT(record),
// ASSERT_CONSISTENT(record).
//
// Promised, in namespace assay:
//   spec::audit::RunRecord, spec::audit::Step, spec::audit::Setting, spec::audit::Field, spec::audit::Scope
//   spec::audit::Printed, spec::audit::Kind, spec::audit::exactly, spec::audit::parse_printed
//   spec::audit::consistent, spec::audit::contradictions, spec::audit::objections
//
// Units and errors: assay/audit.hpp.
#include "spec/audit/expect_consistent.hpp"
