#include <string>

#include "spec/random/philox.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::tests {
namespace {

std::string prefix(Disguise::Ranks ranks) {
  switch (ranks) {
    case Disguise::Ranks::torchrun:
      return "[rank0]:";
    case Disguise::Ranks::srun:
      return " 0: ";
    case Disguise::Ranks::mpirun:
      return "[1,0]<stdout>:";
    default:
      return "";
  }
}

/// Colours before every second part of a line, as loggers put them.
std::string coloured(const std::string& line) {
  std::string out = "\x1b[32m";
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool part = line.compare(at, 3, " | ") == 0 || line.compare(at, 2, "  ") == 0;
    if (part && at % 2 == 0) out += "\x1b[38;5;214m";
    out += line[at];
  }
  return out + "\x1b[0m";
}

}  // namespace

std::string disguise(const std::string& log, const Disguise& disguise, std::uint64_t seed) {
  const spec::random::Stream stream(seed, spec::random::Site::test, 77);
  std::string out = disguise.byte_order_mark ? "\xef\xbb\xbf" : "";
  const std::string end = disguise.crlf ? "\r\n" : "\n", start = prefix(disguise.ranks);
  std::uint64_t draw = 0;
  for (std::size_t from = 0; from < log.size();) {
    const std::size_t to = std::min(log.find('\n', from), log.size());
    const std::string line = log.substr(from, to - from);
    from = to + 1;
    if (disguise.chatter && stream.below(draw++, 3) == 0)
      out += start +
             "W1125 19:44:46.787000 1122840 torch/distributed/run.py:803] note: loss of precision at step" +
             end;
    if (disguise.progress_bars && stream.below(draw++, 3) == 0)
      out += start + "Training:   1%|▌         | 10/1000 [00:48<36:31,  2.21s/iter]\r";
    out += start + (disguise.colours ? coloured(line) : line) + end;
  }
  if (disguise.truncated) out.resize(out.size() - end.size() - 5);
  return out;
}

}  // namespace assay::tests
