#pragma once
// The texts around a run: what it is before the first step, what it reached after the last.
#include <optional>
#include <string>

#include "spec/record/event.hpp"

namespace assay::impl::logs {

/// Model, FLOPs, batch arithmetic in words, data and floor, hardware, expected first loss, place of the
/// record. `unicode`: signs like ± may be used.
std::string banner(const spec::record::RunStart& start, bool unicode);

/// Sampled sentences with the grammar's verdict, the share accepted, the share of right sums.
std::string samples_text(const spec::record::Samples& samples, bool unicode);

/// Why the run ended, totals, final loss beside the last validation's and its floor, share of the gap closed.
/// `resumed`: where this start of the program went on from; the numbers are of its own steps. `skipped`:
/// steps of the run that were not finite.
std::string summary(const spec::record::RunStart& start, const spec::record::RunEnd& end,
                    const std::optional<spec::record::ResumeFrom>& resumed = {},
                    const std::optional<spec::record::Validation>& validated = {}, std::int64_t skipped = 0);

}  // namespace assay::impl::logs
