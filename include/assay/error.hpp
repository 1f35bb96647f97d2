#pragma once
// What the library throws. It never prints and never exits.
//
// Promised, in namespace assay:
//   SpecError, UserError, ExitCode
//
// SpecError: a labelled constraint of the spec does not hold; label() is the constraint's ("batch_c1"),
// what() also says with which values. UserError: something that the user gave cannot be used; what() says
// what, where, why and what to do next, code() is the exit code of a program that ends on it.
#include "spec/error.hpp"
