#pragma once
// The version of the library and of its promise. Macros: ASSAY_VERSION_MAJOR, ASSAY_VERSION_MINOR,
// ASSAY_VERSION_PATCH. The build reads the version here, and nowhere else.
//
// Each header of this folder lists the names that it promises. A name that is promised keeps its meaning, its
// unit and its errors. Until 1.0 another MINOR may change or take out a promised name, and CHANGELOG.md says
// so; another PATCH takes out nothing. find_package(assay 0.1) accepts 0.1 alone. Whatever else these headers
// bring along (assay/internal) is internal and may change at any time.
#define ASSAY_VERSION_MAJOR 0
#define ASSAY_VERSION_MINOR 1
#define ASSAY_VERSION_PATCH 0
