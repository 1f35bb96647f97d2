#pragma once
// For tests of others: fails when a record contradicts itself, and says where and by how much; when a model
// or GPU that it names is not known; and when nothing of it can be judged, as of one that was never filled.
// Needs GoogleTest's own header included before; assay::spec itself does not depend on it.
//
//   #include <gtest/gtest.h>
//   #include <assay/expect_consistent.hpp>
//   EXPECT_CONSISTENT(record);
#include <string>

#include "spec/audit/invariants.hpp"

#define EXPECT_CONSISTENT(record) EXPECT_EQ(std::string(), ::assay::spec::audit::objections(record))
#define ASSERT_CONSISTENT(record) ASSERT_EQ(std::string(), ::assay::spec::audit::objections(record))
