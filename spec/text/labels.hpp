#pragma once
// The labels of constraints, "config_c13": they lead from an error to its page and its test. A person reads
// the sentence behind them.
#include <string>
#include <string_view>

namespace assay::spec {

/// `message` without the labels that stand before a part of it, as in "a.toml:2:9: config_c1: train.steps =
/// 0". What looks like one, and is no page's, stays: it may be a name of the user's.
std::string without_labels(std::string_view message);

}  // namespace assay::spec
