// labels: unit fault
// However a run ends, the last line of its record says why.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>

#include "impl/run/train.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::run_end_test {
namespace {

using namespace spec::record;

/// What is printed, until a line of the second step comes: then `Error` is thrown where it is printed.
template <class Error>
class ThrowsAtStepTwo final : public std::streambuf {
 public:
  explicit ThrowsAtStepTwo(Error error) : error_(std::move(error)) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (std::string_view(text, static_cast<std::size_t>(count)).starts_with("step 2/")) thrown_ = true;
    if (thrown_) throw error_;  // and again when the end is printed
    return count;
  }
  int overflow(int c) override { return c; }

  Error error_;
  bool thrown_ = false;
};

class RunEndImpl : public testing::Test {
 protected:
  spec::RunConfig config() const {
    scratch.write("model.toml",
                  "name = 'tiny'\nfamily = 'llama'\nlayers = 1\nvocab = 256\nwidth = 32\nheads = 2\n"
                  "kv_heads = 1\nhead_dim = 16\nffn = 48\ncontext = 64\ntied_embeddings = false\n"
                  "qk_norm = false\nnorm_eps = 1e-5\nrope_theta = 10000.0\n");
    return spec::load("",
                      {"model.name=" + scratch.path().string() + "/model.toml", "batch.sequences=4",
                       "batch.sequence_length=16", "train.steps=4", "compute.device=cpu", "compute.threads=1",
                       "sample.sentences=0", "run.directory=" + (scratch.path() / "run").string()});
  }

  /// Trains, with `error` thrown in the second step; the record that is left.
  template <class Error, class Expected = Error>
  spec::record::Run failed_with(Error error) {
    ThrowsAtStepTwo<Error> printing(std::move(error));
    std::streambuf* const before = std::cout.rdbuf(&printing);
    const auto mask = std::cout.exceptions();
    std::cout.exceptions(std::ios::badbit);  // the stream passes on what its buffer throws
    EXPECT_THROW(train([&] { return config(); }), Expected);
    std::cout.exceptions(std::ios::goodbit);
    std::cout.clear();
    std::cout.rdbuf(before);
    std::cout.exceptions(mask);
    return assemble(read_events((scratch.path() / "run").string()));
  }

  tests::Scratch scratch;
};

TEST_F(RunEndImpl, AFaultOfTheProgramIsRecorded) {
  const auto run = failed_with(std::runtime_error("planted fault"));
  EXPECT_EQ(run.steps.size(), 2u);
  ASSERT_TRUE(run.end.has_value());
  EXPECT_EQ(run.end->reason, EndReason::error);
  EXPECT_EQ(run.end->exit_code, static_cast<int>(ExitCode::bug));
  EXPECT_EQ(run.end->message, "planted fault");
  EXPECT_EQ(run.end->steps, 2);
}

TEST_F(RunEndImpl, MemoryThatRanOutIsRecordedAndNoFaultOfTheProgram) {
  const auto run = failed_with<std::bad_alloc, UserError>(std::bad_alloc());
  ASSERT_TRUE(run.end.has_value());
  EXPECT_EQ(run.end->exit_code, static_cast<int>(ExitCode::usage));
  EXPECT_NE(run.end->message.value().find("memory ran out"), std::string::npos);
}

TEST_F(RunEndImpl, AConstraintOfTheSpecAndALostPeerAreRecordedWithTheirCodes) {
  const auto spec_error = failed_with(SpecError("planted_c1", "a=1"));
  ASSERT_TRUE(spec_error.end.has_value());
  EXPECT_EQ(spec_error.end->exit_code, static_cast<int>(ExitCode::usage));
  std::filesystem::remove_all(scratch.path() / "run");
  const auto lost = failed_with(UserError(ExitCode::peer_lost, "a sum of 2 ranks failed"));
  ASSERT_TRUE(lost.end.has_value());
  EXPECT_EQ(lost.end->exit_code, static_cast<int>(ExitCode::peer_lost));
}

}  // namespace
}  // namespace assay::impl::run::run_end_test
