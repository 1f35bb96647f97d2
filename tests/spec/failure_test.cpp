// labels: unit
#include "spec/failure.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <vector>

namespace assay::spec::failure_test {
namespace {

Failure failure(const std::exception& error) { return failure_of(error); }

TEST(FailureSpec, AnErrorsKindSaysTheCode) {
  EXPECT_EQ(failure(UserError(ExitCode::bad_data, "x")).code, ExitCode::bad_data);
  EXPECT_EQ(failure(UserError(ExitCode::bad_data, "x")).text, "x");
  EXPECT_EQ(failure(SpecError("a_c1", "b=2")).code, ExitCode::usage);
  EXPECT_EQ(failure(SpecError("a_c1", "b=2")).text, "a_c1: b=2");
  EXPECT_EQ(failure(std::bad_alloc()).code, ExitCode::usage);
  EXPECT_EQ(failure(std::logic_error("x")).code, ExitCode::bug);
  EXPECT_EQ(failure(std::invalid_argument("stoi")).code, ExitCode::bug);
  try {
    std::vector<char>().reserve(static_cast<std::size_t>(-1));
    FAIL() << "there is no room";
  } catch (const std::exception& error) {
    EXPECT_EQ(failure(error).code, ExitCode::usage);
  }
  try {
    static_cast<void>(std::filesystem::file_size("/no/such\x1b"));
    FAIL() << "there is no such file";
  } catch (const std::exception& error) {
    EXPECT_EQ(failure(error).code, ExitCode::io);
    EXPECT_EQ(failure(error).text.rfind("/no/such\\x1b: No such file or directory; ", 0), 0u)
        << failure(error).text;
  }
}

// Names in messages come from files.
TEST(FailureSpec, AMessageIsOneLineOfText) {
  const UserError error(ExitCode::bad_data, "tensor a\nb\x1b[2J is there");
  EXPECT_STREQ(error.what(), "tensor a\\nb\\x1b[2J is there");
  EXPECT_STREQ(SpecError("a_c1", "b\r").what(), "a_c1: b\\r");
  const std::string word = UserError(ExitCode::usage, std::string(5000, 'x') + " is too long").what();
  EXPECT_EQ(word, std::string(200, 'x') + "... is too long");
  std::string names;
  for (int i = 0; i < 5000; ++i) names += "name ";
  const std::string cut = UserError(ExitCode::usage, names + "; do this").what();
  EXPECT_LE(cut.size(), 3900u);
  EXPECT_TRUE(cut.ends_with("; do this"));
}

}  // namespace
}  // namespace assay::spec::failure_test
