// labels: unit
#include "impl/comm/refusal.hpp"

#include <gtest/gtest.h>

#include <string>

#include "impl/machine/host_name.hpp"
#include "tests/impl/comm/thread_ranks.hpp"

namespace assay::impl::refusal_test {
namespace {

/// What each of three ranks throws where `work` fails on those that it fails on: "65 text".
template <class Work>
std::vector<std::string> thrown(Work&& work) {
  std::vector<std::string> texts(3);
  tests::on_thread_ranks(3, [&](Communicator& communicator) {
    try {
      refuse_together(communicator, [&] { work(communicator.rank()); });
    } catch (const AgreedError& error) {
      texts[static_cast<std::size_t>(communicator.rank())] =
          std::to_string(static_cast<int>(error.code())) + " " + error.what();
    }
  });
  return texts;
}
std::vector<std::string> on_all(const std::string& text) { return {text, text, text}; }

TEST(RefusalImpl, WhatAllSayIsSaidOnceAndAsItIs) {
  EXPECT_EQ(thrown([](int) { throw UserError(ExitCode::bad_data, "a file"); }), on_all("65 a file"));
  EXPECT_EQ(thrown([](int) { throw SpecError("config_c1", "a setting"); }), on_all("2 config_c1: a setting"));
  EXPECT_EQ(thrown([](int) { throw std::runtime_error("a fault"); }), on_all("70 a fault"));
}

TEST(RefusalImpl, WhatOneSaysIsSaidOfItsRankAndHost) {
  const auto one = thrown([](int rank) {
    if (rank == 2) throw UserError(ExitCode::io, "a disk");
  });
  EXPECT_EQ(one, on_all("74 rank 2 on host " + host_name() + ": a disk"));
  const auto differing = thrown([](int rank) {
    if (rank > 0) throw UserError(ExitCode::usage, "setting of " + std::to_string(rank));
  });
  EXPECT_EQ(differing, on_all("2 rank 1 on host " + host_name() + ": setting of 1"));
}

TEST(RefusalImpl, WhatWorksOnAllIsNoRefusal) {
  EXPECT_EQ(thrown([](int) {}), on_all(""));
}

TEST(RefusalImpl, ALoneRanksErrorIsItsOwn) {
  const auto alone = make_self_communicator();
  EXPECT_THROW(refuse_together(*alone, [] { throw SpecError("a_c1", "b"); }), SpecError);
}

}  // namespace
}  // namespace assay::impl::refusal_test
