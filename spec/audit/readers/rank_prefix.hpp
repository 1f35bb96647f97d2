#pragma once
// The ranks that launchers put before the lines of a log.
#include <string_view>

namespace assay::spec::audit {

/// Takes prefixes of launchers off `text`: "[rank3]:", "[default3]:", "[1,3]<stdout>:",
/// "[1,mpirank:3,algo-1]<stdout>:", "3: " unless the lines are `numbered`. Gives the rank, or -1 when there
/// is none.
int take_rank(std::string_view& text, bool numbered = false);

/// Whether the numbers before the lines rise from one to the next, as those of `grep -n` do: each rank prints
/// more than once, and the first is 0. `rest`: the beginning of a log.
bool numbers_its_lines(std::string_view rest);

}  // namespace assay::spec::audit
