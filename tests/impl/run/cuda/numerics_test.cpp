// labels: gpu property
// Runs of the program as they are started: what was settled is what runs and what is planned, and by default
// a resume gives the bits of the run without a stop.
#include "impl/run/start/numerics.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "impl/ops/attention/attention_cudnn.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/cuda_gemm.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "impl/run/start/pinned_algorithms.hpp"
#include "impl/run/train.hpp"
#include "spec/config/load.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/scratch.hpp"

namespace assay::impl::run::cuda_numerics_test {
namespace {

namespace fs = std::filesystem;

/// 57 million parameters and GEMMs of more than cuda::least_searched_flops, so that algorithms matter and
/// the allocator's rounding does not.
class NumericsCuda : public testing::Test {
 protected:
  NumericsCuda() {
    scratch_.write("model.toml",
                   "name = 'medium'\nfamily = 'llama'\nlayers = 4\nvocab = 256\nwidth = 1024\nheads = 8\n"
                   "kv_heads = 8\nhead_dim = 128\nffn = 2816\ncontext = 1024\ntied_embeddings = false\n"
                   "qk_norm = false\nnorm_eps = 1e-5\nrope_theta = 10000.0\n");
    setenv("XDG_CACHE_HOME", scratch_.path().c_str(), 1);  // read when the first large GEMM is computed
  }
  ~NumericsCuda() override { set_deterministic(false); }

  std::string folder(const std::string& name) const { return (scratch_.path() / name).string(); }

  spec::record::Run train(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"model.name=" + folder("model.toml"),
                                    "batch.sequences=16",
                                    "batch.micro=8",
                                    "batch.sequence_length=1024",
                                    "compute.dtype=bf16",
                                    "compute.device=cuda",
                                    "train.steps=6",
                                    "schedule.warmup_steps=1",
                                    "schedule.decay_steps=2",
                                    "sample.sentences=0",
                                    "run.directory=" + folder(name)};
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(run::train([&] { return spec::load("", all); }), 0);
    return spec::record::assemble(spec::record::read_events(folder(name)));
  }

  static std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return std::move(bytes).str();
  }
  /// Content of the tensor files of a checkpoint; the others hold the settings, which name the folder.
  std::map<std::string, std::string> tensors(const std::string& run, int step) const {
    std::map<std::string, std::string> all;
    for (const auto& entry :
         fs::directory_iterator(folder(run) + "/checkpoints/step_0000000" + std::to_string(step)))
      if (entry.path().extension() == ".safetensors")
        all[entry.path().filename().string()] = bytes_of(entry.path());
    EXPECT_FALSE(all.empty());
    return all;
  }

  /// Finds the GEMM of gate and up the algorithm that is fastest under load, as a user may between two
  /// starts of a run. Its tensors lie as the run's do, or it would be another GEMM.
  static void tune_gate_up(const Algorithms& pinned) {
    const auto gemm = std::find_if(pinned.gemms.begin(), pinned.gemms.end(), [](const auto& each) {
      return each.first.starts_with("bf16-bf16-tn-m5632-n8192-k1024-a");
    });
    ASSERT_NE(gemm, pinned.gemms.end()) << "the run has no such GEMM";
    std::istringstream numbers(gemm->first.substr(gemm->first.find("-a") + 2));
    std::vector<std::int64_t> alignments;  // of weight, x, and twice of the result [B]
    for (std::string number; std::getline(numbers, number, '-');) alignments.push_back(std::stoll(number));
    const auto lying = [](std::int64_t rows, std::int64_t columns, std::int64_t alignment) {
      const std::int64_t shift = alignment < 256 ? alignment / 2 : 0;  // [bf16]
      return at::randn({rows * columns + shift}, at::TensorOptions(at::kCUDA))
          .to(at::kBFloat16)
          .narrow(0, shift, rows * columns)
          .view({rows, columns});
    };
    const at::Tensor weight = lying(5632, 1024, alignments.at(0)), x = lying(8192, 1024, alignments.at(1));
    const std::string line = cuda::tune({.left = {x}, .right = {weight, true}},
                                        lying(8192, 5632, alignments.at(3)), {}, /*seconds=*/0.01);
    std::cout << line << std::endl;
    EXPECT_TRUE(line.starts_with(gemm->first + ":"));
    EXPECT_TRUE(cuda::Search::all_kept().contains(gemm->first));
  }

  tests::Scratch scratch_;
};

TEST_F(NumericsCuda, ByDefaultAResumeGivesTheBitsOfTheRunWithoutAStop) {
  ASSAY_NEEDS_GPU();
  const auto whole = train("whole", {"checkpoint.every=3", "checkpoint.keep=9"});
  EXPECT_EQ(whole.start.deterministic, true);
  for (const auto& warning : whole.warnings) std::cout << warning.code << ": " << warning.text << std::endl;
  const std::string file = folder("whole") + "/" + PinnedAlgorithms::file_name;
  const Algorithms pinned = algorithms_of(bytes_of(file), file);
  EXPECT_EQ(pinned.attention, whole.start.attention);
  EXPECT_FALSE(pinned.gemms.empty());
  std::cout << "heads on " << pinned.gpu << ", " << pinned.libraries << ": attention " << pinned.attention
            << ", " << pinned.gemms.size() << " GEMMs" << std::endl;

  tune_gate_up(pinned);

  const auto resumed =
      train("resumed", {"checkpoint.resume=" + folder("whole") + "/checkpoints/step_00000003"});
  ASSERT_EQ(resumed.steps.size(), 3u);
  for (const auto& warning : resumed.warnings) EXPECT_NE(warning.code, "algorithms") << warning.text;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(resumed.steps[i].loss, whole.steps[i + 3].loss) << i;
    EXPECT_EQ(resumed.steps[i].gradient_norm, whole.steps[i + 3].gradient_norm) << i;
  }
  EXPECT_TRUE(tensors("whole", 6) == tensors("resumed", 6)) << "weights or moments differ";
  const std::string copy = folder("resumed") + "/" + PinnedAlgorithms::file_name;
  EXPECT_EQ(algorithms_of(bytes_of(copy), copy), pinned);
}

TEST_F(NumericsCuda, TheSameRunTwiceGivesTheSameBits) {
  ASSAY_NEEDS_GPU();
  train("once", {});
  train("twice", {});
  EXPECT_TRUE(tensors("once", 6) == tensors("twice", 6));
}

/// cuDNN takes the forward pass and not the backward one, as it may on another GPU or in another version.
TEST_F(NumericsCuda, ABackwardThatCudnnRefusesIsSettledPlannedAndCountedBeforeTheFirstStep) {
  ASSAY_NEEDS_GPU();
  spec::record::Run refused;
  {
    const attention::cudnn::Refusing on;
    refused = train("refused", {});
  }
  EXPECT_EQ(refused.start.attention, "flash");
  bool told = false;
  for (const auto& warning : refused.warnings) {
    std::cout << warning.code << ": " << warning.text << std::endl;
    if (warning.code != "attention") continue;
    told = true;
    EXPECT_FALSE(warning.step) << "before the first step";
    EXPECT_NE(warning.text.find("flash; cudnn refused: backward: "), std::string::npos) << warning.text;
  }
  EXPECT_TRUE(told);
  ASSERT_TRUE(refused.memory && refused.memory->measured_bytes);
  const auto planned = static_cast<double>(refused.memory->planned_bytes),
             measured = static_cast<double>(*refused.memory->measured_bytes);
  std::cout << "heads: planned " << planned / 1e6 << " MB, measured " << measured / 1e6 << " MB" << std::endl;
  EXPECT_NEAR(measured, planned, 0.02 * planned);
  const auto flash = train("flash", {"compute.attention=flash"});
  EXPECT_EQ(flash.memory->planned_bytes, refused.memory->planned_bytes);
  for (std::size_t i = 0; i < refused.steps.size(); ++i)
    EXPECT_EQ(refused.steps[i].executed_flops, flash.steps[i].executed_flops) << i;
}

}  // namespace
}  // namespace assay::impl::run::cuda_numerics_test
