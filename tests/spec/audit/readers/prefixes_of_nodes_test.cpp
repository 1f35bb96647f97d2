// labels: unit
// Prefixes that name a node, or a rank of every node: several ranks print behind one, and none logs twice.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/read_text.hpp"

namespace assay::spec::audit::prefixes_of_nodes_test {
namespace {

using tests::read_text;

struct NodePrefix {
  const char* name;
  std::function<std::string(int node, int rank)> text;  ///< `rank` of the node
};

const NodePrefix prefixes[] = {
    {"srun -l", [](int node, int) { return std::to_string(node) + ": "; }},
    {"pdsh", [](int node, int) { return "node0" + std::to_string(node) + ": "; }},
    {"srun -l and torchrun",
     [](int node, int rank) { return std::to_string(node) + ": [default" + std::to_string(rank) + "]:"; }},
    {"pdsh and torchrun",
     [](int node, int rank) {
       return "node0" + std::to_string(node) + ": [default" + std::to_string(rank) + "]:";
     }},
    {"torchrun", [](int, int rank) { return "[default" + std::to_string(rank) + "]:"; }}};

/// torchtitan, each of whose ranks prints each step, with a rate of its own where they do not round alike.
std::string torchtitan(const NodePrefix& prefix, int nodes, int ranks, int steps, bool alike = false) {
  std::string log;
  const auto all = [&](const std::function<std::string(int)>& line) {
    for (int node = 0; node < nodes; ++node)
      for (int rank = 0; rank < ranks; ++rank) log += prefix.text(node, rank) + line(node * ranks + rank);
  };
  all([&](int) {
    return "[titan] 2025-10-16 09:59:00,000 - root - INFO - Building device mesh with parallelism: pp=1, "
           "dp_replicate=1, dp_shard=" +
           std::to_string(nodes * ranks) + ", cp=1, tp=1, ep=1\n";
  });
  for (int step = 1; step <= steps; ++step)
    all([&](int rank) {
      char line[300];
      std::snprintf(
          line, sizeof line,
          "[titan] 2025-10-16 %02d:%02d:%02d,%03d - root - INFO - step: %2d  loss: %7.4f  grad_norm:  "
          "1.2345  memory: 60.10GiB(75.90%%)  tps: 4,%03d\n",
          10 + step / 3600, step / 60 % 60, step % 60, alike ? 300 : 300 + rank, step, 2 + 9.0 / (1 + step),
          alike ? 100 : 100 + (7 * rank + step) % 5);
      return std::string(line);
    });
  return log;
}

TEST(PrefixesOfNodesSpec, RanksOfANodeDoNotLogTwice) {
  for (const NodePrefix& prefix : prefixes)
    for (const int nodes : {2, 3})
      for (const int ranks : {1, 2, 8})
        for (const int steps : {12, 1'000}) {  // kept whole, and not
          const RunRecord run = read_text(torchtitan(prefix, nodes, ranks, steps));
          const std::string where = std::string(prefix.name) + ", " + std::to_string(nodes) + " nodes of " +
                                    std::to_string(ranks) + ", " + std::to_string(steps);
          EXPECT_EQ(run.ranks, nodes * ranks) << where;
          EXPECT_EQ(run.steps_of_rank, steps) << where;
          EXPECT_EQ(judge("steps", run).verdict, Verdict::holds) << where;
        }
}

TEST(PrefixesOfNodesSpec, RanksOfANodeThatRoundAlikeAreThoseOfTheMesh) {
  for (const NodePrefix& prefix : prefixes) {
    const RunRecord run = read_text(torchtitan(prefix, 2, 8, 12, true));
    EXPECT_EQ(run.ranks, 16) << prefix.name;
    EXPECT_EQ(judge("steps", run).verdict, Verdict::holds) << prefix.name << judge("steps", run).note;
  }
}

TEST(PrefixesOfNodesSpec, ALineOfARankThatStandsTwiceIsTold) {
  for (const NodePrefix& prefix : prefixes) {
    const std::string log = torchtitan(prefix, 2, 8, 12);
    const std::size_t begin = log.rfind('\n', log.find("step:  7")) + 1, end = log.find('\n', begin) + 1;
    const RunRecord whole = read_text(log),
                    doubled =
                        read_text(log.substr(0, end) + log.substr(begin, end - begin) + log.substr(end));
    EXPECT_EQ(judge("steps", whole).verdict, Verdict::holds) << prefix.name;
    EXPECT_EQ(judge("steps", doubled).verdict, Verdict::contradicts) << prefix.name;
  }
}

/// Hugging Face's Trainer prints its dictionary once on each node.
TEST(PrefixesOfNodesSpec, DictionariesOfEveryNodeAreOneStep) {
  for (const NodePrefix& prefix : prefixes)
    for (const int nodes : {1, 2, 3, 4, 8}) {
      std::string log;
      for (int step = 1; step <= 12; ++step)
        for (int node = 0; node < nodes; ++node) {
          char line[200];
          // The first two steps round alike.
          std::snprintf(line, sizeof line,
                        "{'loss': %.4f, 'grad_norm': 1.%d, 'learning_rate': 0.0001, 'epoch': 0.01}\n",
                        3 - 0.05 * (step == 2 ? 1 : step), step == 2 ? 1 : step);
          log += prefix.text(node, 0) + line;
        }
      const RunRecord run = read_text(log);
      const std::string where = std::string(prefix.name) + ", " + std::to_string(nodes);
      EXPECT_NE(judge("steps", run).verdict, Verdict::contradicts) << where;
      EXPECT_EQ(run.steps.size(), 12u) << where;
    }
}

}  // namespace
}  // namespace assay::spec::audit::prefixes_of_nodes_test
