// labels: unit property
// One backend for both passes: what the libraries say is drawn, and what is chosen must follow from it.
#include "spec/ops/attention/attention_choice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "spec/error.hpp"

namespace assay::spec::attention_choice_test {
namespace {

using attention::Case;
using attention::Choice;
using Backend = AttentionBackend;

const Case trainers{.dtype = Dtype::bf16,
                    .B = 24,
                    .T = 2048,
                    .H = 18,
                    .K = 18,
                    .E = 128,
                    .documents = false,
                    .offsets = false,
                    .window = 0,
                    .asked = Backend::automatic,
                    .fixed_order = true};

/// Refuses by name, and keeps whom it was asked about.
struct Libraries {
  std::map<Backend, std::string> refusing;
  std::vector<Backend> asked;
  Choice choose(const Case& shape) {
    return attention::choose(shape, [this](Backend backend) {
      asked.push_back(backend);
      const auto found = refusing.find(backend);
      return found == refusing.end() ? std::string() : found->second;
    });
  }
};

TEST(AttentionChoice, ABackwardThatCudnnRefusesMakesBothPassesFlash) {
  Libraries libraries{{{Backend::cudnn, "backward: no plan takes this shape"}}, {}};
  const Choice choice = libraries.choose(trainers);
  EXPECT_EQ(choice.backend, Backend::flash);
  EXPECT_EQ(choice.reasons, std::vector<std::string>{"cudnn refused: backward: no plan takes this shape"});
  EXPECT_EQ(libraries.asked, (std::vector{Backend::cudnn, Backend::flash}));
}

TEST(AttentionChoice, WhereBothRefusePlainProductsCompute) {
  Libraries libraries{{{Backend::cudnn, "a"}, {Backend::flash, "b"}}, {}};
  const Choice choice = libraries.choose(trainers);
  EXPECT_EQ(choice.backend, Backend::math);
  EXPECT_EQ(choice.reasons, (std::vector<std::string>{"cudnn refused: a", "flash refused: b"}));
}

TEST(AttentionChoice, ANamedBackendThatRefusesIsAnErrorWithItsReason) {
  for (const Backend named : {Backend::cudnn, Backend::flash}) {
    Case shape = trainers;
    shape.asked = named;
    Libraries libraries{{{named, "backward: not today"}}, {}};
    try {
      libraries.choose(shape);
      ADD_FAILURE() << "another backend took over from " << to_string(named);
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      const std::string text = error.what();
      for (const std::string& part :
           {"compute.attention=" + to_string(named), std::string("[24, 2048, 18 + 2 x 18, 128] bf16"),
            std::string("in a fixed order"), std::string("backward: not today"),
            std::string("compute.attention=auto")})
        EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
  }
}

RC_GTEST_PROP(AttentionChoice, IsTheFirstThatIsNotRefusedAndNoneIsAskedInVain, ()) {
  Case shape = trainers;
  shape.dtype = *rc::gen::element(Dtype::bf16, Dtype::f32, Dtype::f64);
  shape.T = *rc::gen::element<std::int64_t>(1, 2, 2048);
  shape.E = *rc::gen::inRange<std::int64_t>(1, 300);
  shape.W = *rc::gen::element<std::int64_t>(0, 0, 60, 64, 128);
  shape.documents = shape.T > 1 && *rc::gen::arbitrary<bool>();
  shape.offsets = shape.documents && *rc::gen::arbitrary<bool>();
  shape.window = shape.T > 2 && *rc::gen::arbitrary<bool>() ? 2 : 0;
  Libraries libraries;
  for (const Backend backend : {Backend::cudnn, Backend::flash})
    if (*rc::gen::arbitrary<bool>()) libraries.refusing[backend] = "no";
  const bool fused = shape.dtype == Dtype::bf16 && shape.E % 8 == 0 && shape.W % 8 == 0 &&
                     (!shape.documents || shape.offsets),
             cudnn = fused && shape.T > 1 && !shape.documents && shape.window == 0,
             flash = fused && shape.W == 0;
  std::vector<Backend> asked;
  if (cudnn) asked.push_back(Backend::cudnn);
  if (flash && !(cudnn && !libraries.refusing.contains(Backend::cudnn))) asked.push_back(Backend::flash);
  if (asked.empty() || libraries.refusing.contains(asked.back())) asked.push_back(Backend::math);
  const Choice choice = libraries.choose(shape);
  RC_ASSERT(libraries.asked == asked);
  RC_ASSERT(choice.backend == asked.back());
  const auto before = choice.backend == Backend::cudnn ? 0u : choice.backend == Backend::flash ? 1u : 2u;
  RC_ASSERT(choice.reasons.size() == before);
}

TEST(AttentionChoice, ACpuHasLoopsOrPlainProductsAndRefusesAGpusBackendByName) {
  Case shape = trainers;
  shape.gpu = false;
  EXPECT_EQ(attention::choose(shape).backend, Backend::loops);
  shape.asked = Backend::math;
  EXPECT_EQ(attention::choose(shape).backend, Backend::math);
  for (const Backend named : {Backend::cudnn, Backend::flash}) {
    shape.asked = named;
    EXPECT_THROW(attention::choose(shape), UserError) << to_string(named);
  }
}

/// Of widths that only libraries know, a run asks them, and a plan has what they said before.
TEST(AttentionChoice, OnPaperWhatIsKnownOfTheLibrariesAnswers) {
  Case shape = trainers;
  EXPECT_EQ(attention::choose(shape).backend, Backend::cudnn);
  shape.E = 192, shape.W = 128;  // DeepSeek-V3
  EXPECT_EQ(attention::choose(shape).backend, Backend::cudnn);
  shape.E = 160;
  EXPECT_EQ(attention::choose(shape).backend, Backend::math);
  shape.asked = Backend::cudnn;  // the library has been asked
  EXPECT_EQ(attention::choose(shape).backend, Backend::cudnn);
  shape = trainers, shape.window = 100, shape.E = 264;
  EXPECT_EQ(attention::choose(shape).backend, Backend::math);
  shape.E = 256;
  EXPECT_EQ(attention::choose(shape).backend, Backend::flash);
}

}  // namespace
}  // namespace assay::spec::attention_choice_test
