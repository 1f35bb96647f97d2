// labels: unit property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "spec/error.hpp"
#include "spec/hardware/hardware.hpp"

namespace assay::spec::hardware_test {
namespace {

std::string id_of(const std::string& printed) {
  const Gpu* gpu = find_gpu(printed).gpu;
  return gpu ? gpu->id : "none";
}

double dense(const std::string& printed, Precision precision) {
  const auto peak = dense_peak(find_gpu(printed), precision);
  return peak ? *peak / 1e12 : 0;
}

TEST(HardwareSpec, StringsThatDriversPrint) {
  const std::map<std::string, std::string> printed = {
      {"NVIDIA H100 80GB HBM3", "h100-sxm"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA H100 NVL", "h100-nvl"},
      {"NVIDIA H200", "h200-sxm"},
      {"NVIDIA H200 NVL", "h200-nvl"},
      {"NVIDIA GH200 480GB", "gh200-96gb"},
      {"NVIDIA GH200 144G HBM3e", "gh200-144gb"},
      {"NVIDIA B100", "b100"},
      {"NVIDIA B200", "b200"},
      {"B200", "b200"},
      {"NVIDIA GB200", "gb200"},
      {"GB200", "gb200"},
      {"NVIDIA B300 SXM6 AC", "b300"},
      {"NVIDIA GB300", "gb300"},
      {"NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"},
      {"A100-SXM4-80GB", "a100-sxm-80gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA GeForce RTX 3090", "rtx-3090"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 5090", "rtx-5090"},
      {"AMD Instinct MI300X", "mi300x"},
      {"AMD Instinct MI300X VF", "mi300x"},
      {"AMD Instinct MI325X", "mi325x"},
      {"AMD Instinct MI325X VF", "mi325x"},
      {"AMD Instinct MI350X", "mi350x"},
      {"AMD Instinct MI355X", "mi355x"},
      {"NVIDIA GH200 120GB", "gh200-96gb"},
      {"NVIDIA A800-SXM4-80GB", "a800-sxm-80gb"},
      {"NVIDIA A800 80GB PCIe", "a800-pcie-80gb"},
      {"NVIDIA H800", "h800-sxm"},
      {"NVIDIA H800 PCIe", "h800-pcie"},
      {"NVIDIA H20", "h20"},
      {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
      {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
      {"Tesla V100-PCIE-16GB", "v100-pcie-16gb"},
      {"Tesla V100-PCIE-32GB", "v100-pcie-32gb"},
  };
  for (const auto& [name, id] : printed) EXPECT_EQ(id_of(name), id) << name;
}

TEST(HardwareSpec, CaseSpacesAndHyphensDoNotMatter) {
  EXPECT_EQ(id_of("nvidia h100 80gb hbm3"), "h100-sxm");
  EXPECT_EQ(id_of("  NVIDIA  B200 "), "b200");
  EXPECT_EQ(id_of("H100_PCIe"), "h100-pcie");
  EXPECT_EQ(id_of("rtx4090"), "rtx-4090");
}

/// The facts are read once: whatever is looked up, it is one of the same GPUs.
TEST(HardwareSpec, ALookUpReadsNoFactsAgain) {
  const Gpu *first = &gpus().front(), *last = &gpus().back();
  for (int i = 0; i < 3; ++i)
    for (const char* name : {"NVIDIA B200", "A100 80GB", "no GPU at all", "NVIDIA H100 80GB HBM3"}) {
      const GpuMatch match = find_gpu(name);
      if (match.gpu) {
        EXPECT_TRUE(match.gpu >= first && match.gpu <= last) << name;
      }
      for (const Gpu* one : match.candidates) EXPECT_TRUE(one >= first && one <= last) << name;
    }
  EXPECT_EQ(find_gpu("B200").gpu, find_gpu("nvidia b200").gpu);
  EXPECT_EQ(&gpus().front(), first);
}

TEST(HardwareSpec, NeverASubstring) {
  for (const char* other :
       {"NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H100 96GB HBM3",
        "NVIDIA A100-SXM-64GB", "NVIDIA H20 141GB", "NVIDIA L40", "NVIDIA A10", "MI300A", "B2000", "XB200",
        "NVIDIA H200 141GB MIG 1g.18gb", "NVIDIA H200 VF", "AMD Instinct VF", "VF", "MI300X VF VF", "NVIDIA",
        "", "200", "cpu"}) {
    const GpuMatch match = find_gpu(other);
    EXPECT_EQ(match.gpu, nullptr) << other;
    EXPECT_TRUE(match.candidates.empty()) << other;
    EXPECT_FALSE(dense_peak(match, Precision::bf16)) << other;
  }
}

TEST(HardwareSpec, AmbiguousNamesGiveCandidates) {
  std::set<std::string> ids;
  for (const Gpu* gpu : find_gpu("NVIDIA H100").candidates) ids.insert(gpu->id);
  EXPECT_EQ(ids, (std::set<std::string>{"h100-sxm", "h100-pcie", "h100-nvl"}));
  EXPECT_EQ(find_gpu("NVIDIA H100").gpu, nullptr);
  EXPECT_EQ(find_gpu("A100 80GB").candidates.size(), 2u);
  // No peak where the candidates differ, one where they agree.
  EXPECT_FALSE(dense_peak(find_gpu("H100"), Precision::bf16));
  EXPECT_EQ(dense("A100 80GB", Precision::bf16), 312);
  EXPECT_EQ(dense("GH200", Precision::bf16), 990);
}

TEST(HardwareSpec, UnknownNamesGiveTheNearest) {
  EXPECT_EQ(find_gpu("NVIDIA B20").nearest.at(0), "NVIDIA B200");
  EXPECT_LE(find_gpu("NVIDIA H10").nearest.size(), 3u);
}

TEST(HardwareSpec, NamedGpuExplainsMistakes) {
  EXPECT_EQ(named_gpu("B200").id, "b200");
  const auto message = [](const char* name) {
    try {
      named_gpu(name);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("H100").find("h100-sxm"), std::string::npos);
  EXPECT_NE(message("B20").find("nearest: \"b200\""), std::string::npos);
  EXPECT_NE(message("Cray").find("known: a100"), std::string::npos);
}

// Peaks as published, the ones that trainers' tables get wrong.
TEST(HardwareSpec, DensePeaksByHand) {
  EXPECT_EQ(dense("NVIDIA H100 80GB HBM3", Precision::bf16), 989.4);
  EXPECT_EQ(dense("NVIDIA H100 PCIe", Precision::bf16), 756);
  EXPECT_EQ(dense("NVIDIA H100 NVL", Precision::bf16), 835.5);  // half of 1,671 with sparsity
  EXPECT_EQ(dense("NVIDIA H200", Precision::bf16), 989.5);      // half of 1,979 with sparsity
  EXPECT_EQ(dense("NVIDIA B200", Precision::bf16), 2250);
  EXPECT_EQ(dense("NVIDIA GB200", Precision::bf16), 2500);
  EXPECT_EQ(dense("NVIDIA B300 SXM6 AC", Precision::bf16), 2250);
  EXPECT_EQ(dense("NVIDIA A100-SXM4-80GB", Precision::bf16), 312);
  EXPECT_EQ(dense("NVIDIA L4", Precision::bf16), 121);
  EXPECT_EQ(dense("NVIDIA A10G", Precision::bf16), 70);
  EXPECT_EQ(dense("NVIDIA GeForce RTX 4090", Precision::bf16), 165.2);
  EXPECT_EQ(dense("NVIDIA GeForce RTX 4090", Precision::fp16_accumulate_fp16), 330.3);
  EXPECT_EQ(dense("AMD Instinct MI300X", Precision::bf16), 1307.4);
  EXPECT_FALSE(dense_peak(find_gpu("Tesla V100-SXM2-16GB"), Precision::bf16));  // Volta has none
  EXPECT_FALSE(dense_peak(find_gpu("NVIDIA H200"), Precision::fp4));
}

TEST(HardwareSpec, EveryFactHasSourceAndDate) {
  const std::regex date("20[0-9]{2}(-(0[1-9]|1[0-2]))?");
  const auto check = [&](const Source& source, const std::string& where) {
    EXPECT_GE(source.document.size(), 10u) << where;
    EXPECT_NE(source.url.find('.'), std::string::npos) << where;
    EXPECT_TRUE(std::regex_match(source.date, date)) << where << " " << source.date;
  };
  EXPECT_GE(gpus().size(), 35u);
  for (const Gpu& gpu : gpus()) {
    EXPECT_FALSE(gpu.peaks.empty()) << gpu.id;
    EXPECT_TRUE(gpu.memory && gpu.memory_bandwidth && gpu.power) << gpu.id;
    for (const auto& [precision, peak] : gpu.peaks)
      check(peak.source, gpu.id + std::string(to_string(precision)));
    for (const auto* fact : {&gpu.memory, &gpu.memory_mounted, &gpu.memory_bandwidth, &gpu.nvlink,
                             &gpu.host_link, &gpu.network, &gpu.power})
      if (*fact) check((*fact)->source, gpu.id);
  }
}

/// All lanes of one GPU, both directions: of the GA102 four links of 14.0625 GB/s each way.
TEST(HardwareSpec, TheLinksOfAConsumerCardAreItsBridges) {
  ASSERT_TRUE(named_gpu("rtx-3090").nvlink);
  EXPECT_EQ(named_gpu("rtx-3090").nvlink->value, 2 * 4 * 14.0625e9);
  EXPECT_FALSE(named_gpu("rtx-4090").nvlink || named_gpu("rtx-5090").nvlink) << "cards without links";
}

TEST(HardwareSpec, OnlyGh200StatesNoPowerOfTheGpuAlone) {
  for (const Gpu& gpu : gpus())
    EXPECT_EQ(gpu.power->scope, gpu.id.starts_with("gh200") ? "superchip: CPU, GPU and memory" : "")
        << gpu.id;
}

// One GPU's part of its vendor's system: ports times their rate over GPUs, by hand from the systems' guides.
TEST(HardwareSpec, NetworksAreThoseOfNamedSystems) {
  const std::map<std::string, std::pair<double, std::string>> expected = {
      {"a100-sxm-40gb", {8 * 200e9 / 8, "DGX A100"}},
      {"a100-sxm-80gb", {8 * 200e9 / 8, "DGX A100"}},
      {"h100-sxm", {8 * 400e9 / 8, "DGX H100"}},
      {"h200-sxm", {8 * 400e9 / 8, "DGX H200"}},
      {"gh200-96gb", {256 * 400e9 / 256, "DGX GH200"}},
      {"gh200-144gb", {256 * 400e9 / 256, "DGX GH200"}},
      {"b200", {8 * 400e9 / 8, "DGX B200"}},
      {"gb200", {4 * 400e9 / 4, "DGX GB200"}},
      {"b300", {8 * 800e9 / 8, "DGX B300"}},
      {"gb300", {4 * 800e9 / 4, "GB300 NVL72"}},
      {"v100-sxm2-16gb", {4 * 100e9 / 8, "DGX-1"}},
      {"v100-sxm2-32gb", {4 * 100e9 / 8, "DGX-1"}},
      {"mi300x", {8 * 400e9 / 8, "MI300X platform"}},
      {"mi325x", {8 * 400e9 / 8, "MI325X platform"}}};
  // Cards for anyone's server or desk, and a board without a system of its vendor: hardware.md says why.
  const std::set<std::string> none = {
      "a100-pcie-40gb", "a100-pcie-80gb", "h100-pcie", "h100-nvl", "h200-nvl",
      "v100-pcie-16gb", "v100-pcie-32gb", "a10g",      "l4",       "l40s",
      "rtx-3090",       "rtx-4090",       "rtx-5090",  "b100",     "a800-sxm-80gb",
      "a800-pcie-80gb", "h800-sxm",       "h800-pcie", "h20",      "mi350x",
      "mi355x"};
  for (const Gpu& gpu : gpus()) {
    const auto found = expected.find(gpu.id);
    ASSERT_NE(found != expected.end(), none.contains(gpu.id)) << gpu.id << ": one list or the other";
    ASSERT_EQ(gpu.network.has_value(), found != expected.end()) << gpu.id;
    if (!gpu.network) continue;
    EXPECT_EQ(gpu.network->value, found->second.first) << gpu.id;
    EXPECT_EQ(gpu.network->system, found->second.second) << gpu.id;
    // The network between systems is the slower one: both ways in bytes, less than the links inside.
    EXPECT_LT(2 * gpu.network->value / 8, gpu.nvlink->value) << gpu.id;
  }
  EXPECT_EQ(expected.size() + none.size(), gpus().size());
}

TEST(HardwareSpec, SparseIsTwiceDenseWhereTheArchitectureHasIt) {
  const std::set<Precision> without = {Precision::fp64, Precision::fp64_tensor, Precision::fp32};
  // Documents that print another ratio; their notes say so.
  const std::set<std::pair<std::string, Precision>> exceptions = {{"l40s", Precision::bf16},
                                                                  {"l40s", Precision::fp16},
                                                                  {"b300", Precision::fp4},
                                                                  {"gb300", Precision::fp4}};
  for (const Gpu& gpu : gpus())
    for (const auto& [precision, peak] : gpu.peaks) {
      const std::string where = gpu.id + " " + std::string(to_string(precision));
      EXPECT_EQ(peak.sparse.has_value(), gpu.sparsity && !without.contains(precision)) << where;
      if (!peak.sparse) continue;
      if (exceptions.contains({gpu.id, precision})) {
        EXPECT_FALSE(peak.note.empty()) << where;
        EXPECT_GT(std::abs(2 * peak.dense / *peak.sparse - 1), 0.01) << where;
      } else {
        EXPECT_NEAR(2 * peak.dense / *peak.sparse, 1, 0.004) << where;  // three printed digits
      }
      EXPECT_TRUE(!peak.dense_is_derived || peak.dense == *peak.sparse / 2) << where;
    }
}

TEST(HardwareSpec, FasterWhereNarrower) {
  // Half the width, twice the rate, to the three digits that documents print.
  const auto twice = [](const Gpu& gpu, Precision narrow, Precision wide) {
    const Peak *fast = gpu.peak(narrow), *slow = gpu.peak(wide);
    EXPECT_TRUE(!fast || !slow || std::abs(fast->dense / slow->dense - 2) <= 0.06) << gpu.id;
  };
  for (const Gpu& gpu : gpus()) {
    twice(gpu, Precision::fp8, Precision::bf16);
    twice(gpu, Precision::bf16, Precision::tf32);
    EXPECT_TRUE(!gpu.sparsity || gpu.peak(Precision::bf16)->dense == gpu.peak(Precision::fp16)->dense)
        << gpu.id;
  }
}

TEST(HardwareSpec, OneNameMeansOneGpu) {
  for (const Gpu& gpu : gpus()) {
    EXPECT_EQ(id_of(gpu.id), gpu.id);
    EXPECT_EQ(id_of(gpu.name), gpu.id) << gpu.name;
    for (const std::string& name : gpu.names) EXPECT_EQ(id_of(name), gpu.id) << name;
    for (const std::string& name : gpu.shared_names) EXPECT_GE(find_gpu(name).candidates.size(), 2u) << name;
  }
}

TEST(HardwareSpec, MemoryHoldsWhatDriversReport) {
  const auto memory = [](const char* name) { return find_gpu(name).gpu->memory->value; };
  EXPECT_GE(memory("NVIDIA H100 80GB HBM3"), 81559.0 * 1048576);  // nvidia-smi's MiB
  EXPECT_GE(memory("NVIDIA A100-SXM4-40GB"), 42405855232.0);      // deviceQuery
  EXPECT_GE(memory("B200"), 191.5e9);                             // the first report's 191.5 GB
}

TEST(HardwareSpec, NoDriverReportsMoreThanTheMost) {
  const auto most = [](const char* name) { return *most_memory(*find_gpu(name).gpu) / 1048576; };
  // nvidia-smi's MiB, and what PyTorch counts on some of the same GPUs (GiB x 1,024).
  EXPECT_GE(most("NVIDIA GB200"), 187.28 * 1024);
  EXPECT_GE(most("NVIDIA GB300"), 284208);
  EXPECT_GE(most("NVIDIA B300 SXM6 AC"), 275040);
  EXPECT_GE(most("NVIDIA B200"), 183359);
  EXPECT_GE(most("NVIDIA H200"), 143771);
  EXPECT_GE(most("NVIDIA GH200 120GB"), 97871);
  EXPECT_GE(most("NVIDIA H20"), 97871);
  EXPECT_GE(most("NVIDIA A800-SXM4-80GB"), 81920);
  EXPECT_GE(most("AMD Instinct MI355X"), 287.98 * 1024);
  // No more than is mounted, and a number in GB that is called GiB stays beyond it where no more is.
  EXPECT_EQ(most("NVIDIA GB200"), 192 * 1024);
  EXPECT_LT(most("NVIDIA B200"), 183359 * 1.0737);
}

TEST(HardwareSpec, WhatIsMountedIsNoLessThanTheSheet) {
  for (const Gpu& gpu : gpus())
    EXPECT_TRUE(!gpu.memory_mounted || gpu.memory_mounted->value > gpu.memory->value) << gpu.id;
}

TEST(HardwareSpec, ARateRoundedToFewerDigitsIsTheSame) {
  for (const Gpu& gpu : gpus())
    for (const auto& [precision, peak] : gpu.peaks)
      EXPECT_TRUE(!peak.rounded || std::abs(*peak.rounded / peak.dense - 1) < 0.01) << gpu.id;
  EXPECT_EQ(find_gpu("AMD Instinct MI355X").gpu->peak(Precision::bf16)->rounded, 2500e12);
}

std::string label_of(const std::string& toml) {
  try {
    gpu_from_toml(toml, "test");
  } catch (const SpecError& error) {
    return error.label();
  }
  return "none";
}

constexpr const char* head = "name = \"X\"\narchitecture = \"x\"\n";
constexpr const char* source = "[source.s]\ndocument = \"A data sheet\"\nurl = \"a.b\"\ndate = \"2024\"\n";

TEST(HardwareSpec, C1RefusesUnknownAndMissingKeys) {
  EXPECT_EQ(label_of(std::string(head) + "[peak]\nbf16 = { dense = 1.0, source = \"s\" }\n" + source),
            "none");
  EXPECT_EQ(label_of("name = "), "hardware_c1");
  EXPECT_EQ(label_of("architecture = \"x\"\n"), "hardware_c1");
  EXPECT_EQ(label_of(std::string(head) + "colour = 1\n"), "hardware_c1");
  EXPECT_EQ(label_of(std::string(head) + "[peak]\nbf17 = { dense = 1.0, source = \"s\" }\n" + source),
            "hardware_c1");
  EXPECT_EQ(label_of(std::string(head) + "[facts]\nmemory_gb = { value = 1, source = \"s\" }\n" + source),
            "hardware_c1");
  const auto scoped = [](const std::string& fact) {
    return label_of(std::string(head) + "[facts]\n" + fact +
                    " = { value = 1, source = \"s\", scope = \"all\" }\n" + source);
  };
  EXPECT_EQ(scoped("power_w"), "none");
  EXPECT_EQ(scoped("memory_gib"), "hardware_c1");  // a scope is of power alone
}

TEST(HardwareSpec, C2RefusesFactsWithoutSourceOrDate) {
  EXPECT_EQ(label_of(std::string(head) + "[peak]\nbf16 = { dense = 1.0 }\n" + source), "hardware_c2");
  EXPECT_EQ(label_of(std::string(head) +
                     "[peak]\nbf16 = { dense = 1.0, source = \"s\" }\n[source.s]\ndocument = \"A\"\n"),
            "hardware_c2");
  const auto network = [](const char* system) {
    return label_of(std::string(head) + "[facts]\nnetwork_gbit_per_s = { value = 400, source = \"s\"" +
                    system + " }\n" + source);
  };
  EXPECT_EQ(network(", system = \"DGX\""), "none");
  EXPECT_EQ(network(""), "hardware_c2");  // a GPU alone has no network
}

TEST(HardwareSpec, C3RefusesNumbersThatAreNoRates) {
  for (const char* bad : {"-1.0", "0.0", "nan", "inf", "\"1\""})
    EXPECT_EQ(
        label_of(std::string(head) + "[peak]\nbf16 = { dense = " + bad + ", source = \"s\" }\n" + source),
        "hardware_c3")
        << bad;
}

TEST(HardwareSpec, PrecisionsByEveryName) {
  for (Precision precision : precisions()) EXPECT_EQ(precision_from(to_string(precision)), precision);
  EXPECT_EQ(precision_from("bfloat16"), Precision::bf16);
  EXPECT_EQ(precision_from("BF16"), Precision::bf16);
  EXPECT_FALSE(precision_from("bf"));
  EXPECT_FALSE(precision_from(""));
}

RC_GTEST_PROP(HardwareSpecProperty, ArbitraryTextIsNoGpu, (const std::string& text)) {
  const GpuMatch match = find_gpu(text + "?");  // no known name holds a question mark
  RC_ASSERT(match.gpu == nullptr);
  RC_ASSERT(match.candidates.empty());
}

RC_GTEST_PROP(HardwareSpecProperty, AnExtraLetterOrDigitMakesItUnknownOrAnother, ()) {
  const Gpu& gpu = *rc::gen::elementOf(gpus());
  std::string name = *rc::gen::elementOf(gpu.names);
  const char extra = *rc::gen::elementOf(std::string("0123456789abcdefghijklmnopqrstuvwxyz"));
  name.insert(static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(name.size()) + 1)), 1, extra);
  RC_ASSERT(find_gpu(name).gpu != &gpu);
}

}  // namespace
}  // namespace assay::spec::hardware_test
