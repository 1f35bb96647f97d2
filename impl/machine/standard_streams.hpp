#pragma once
// Standard input, output and error of a program.

namespace assay::impl {

/// Opens /dev/null for those that the program was started without (`>&-`): otherwise the first file that it
/// opens is standard output, and what is printed goes into it. To be called before anything is opened.
void open_standard_streams();

}  // namespace assay::impl
