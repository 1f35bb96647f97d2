// labels: unit cli
#include <gtest/gtest.h>

#include <map>

#include "impl/cli/doctor/machine.hpp"

namespace assay::impl::cli::doctor_test {
namespace {

Machine good() {
  Machine machine;
  machine.cpu = "Some CPU";
  machine.cores = 2;
  machine.avx2 = true;
  machine.memory_bytes = 8LL << 30;
  machine.available_bytes = 4LL << 30;
  machine.folder = "/home/me";
  machine.folder_writable = true;
  machine.disk_free_bytes = 10LL << 30;
  machine.trainer = "/opt/assay-train";
  machine.probe = Outcome{
      0,
      R"({"torch":"2.11.0","cuda_runtime":"13.0","cudnn":"9.15.1","nccl":"2.28.9","devices":[],"architectures":"sm_80, sm_90a"})",
      ""};
  return machine;
}

std::map<std::string, Check> by_name(const Machine& machine) {
  std::map<std::string, Check> out;
  for (const Check& check : examine(machine)) out[check.name] = check;
  return out;
}

TEST(DoctorCli, AGoodMachineIsOkThroughoutAndNeedsNoFix) {
  for (const auto& [name, check] : by_name(good())) {
    EXPECT_EQ(check.status, Status::ok) << name << ": " << check.found;
    EXPECT_EQ(check.fix, "") << name;
    EXPECT_NE(check.found, "") << name;
  }
  EXPECT_EQ(by_name(good())["assay-train"].found, "/opt/assay-train, libtorch 2.11.0");
  EXPECT_EQ(by_name(good())["gpu"].found, "none: training runs on the CPU");
}

/// The one check that differs after `change`, which must have this status and name a fix.
template <class Change>
Check changed(const std::string& name, Status status, Change change) {
  Machine machine = good();
  change(machine);
  const auto checks = by_name(machine);
  for (const auto& [other, check] : checks) {
    EXPECT_EQ(check.status, other == name ? status : Status::ok) << other << ": " << check.found;
    EXPECT_EQ(check.fix.empty(), other != name) << other;
  }
  return checks.at(name);
}

TEST(DoctorCli, EachShortageIsFoundAloneWithItsFix) {
  changed("cpu", Status::warn, [](Machine& m) { m.avx2 = false; });
  changed("memory", Status::warn, [](Machine& m) { m.available_bytes = 100 << 20; });
  changed("disk", Status::warn, [](Machine& m) { m.disk_free_bytes = 1 << 20; });
  changed("disk", Status::fail, [](Machine& m) { m.folder_writable = false; });
}

TEST(DoctorCli, ATrainerThatIsMissingHangsOrDoesNotStartIsAFailure) {
  changed("assay-train", Status::fail, [](Machine& m) {
    m.trainer = "";
    m.probe.reset();
  });
  const Check broken = changed("assay-train", Status::fail, [](Machine& m) {
    m.probe = Outcome{127, "", "error while loading shared libraries: libtorch.so\nmore"};
  });
  EXPECT_EQ(broken.found,
            "/opt/assay-train does not start: error while loading shared libraries: libtorch.so");
  const Check slow = changed("assay-train", Status::fail, [](Machine& m) { m.probe = Outcome{124, "", ""}; });
  EXPECT_EQ(slow.found, "/opt/assay-train does not start: no answer in time");
  changed("assay-train", Status::fail, [](Machine& m) { m.probe = Outcome{0, "not json", ""}; });
}

TEST(DoctorCli, GpusThatTheDriverListsMustBeUsable) {
  Machine machine = good();
  machine.gpus = {"NVIDIA H200", "NVIDIA H200"};
  machine.driver_version = "580.95.05";
  EXPECT_EQ(by_name(machine)["gpu"].status, Status::ok);
  EXPECT_EQ(by_name(machine)["gpu"].found, "2 x NVIDIA H200, driver 580.95.05");
  EXPECT_EQ(by_name(machine)["cuda"].status, Status::warn);  // the probe sees none of them
  machine.probe->output = R"({"torch":"2.11.0","cudnn":"9.15.1","devices":[{},{}]})";
  EXPECT_EQ(by_name(machine)["cuda"].status, Status::ok);
  machine.driver_version = "570.1";
  EXPECT_EQ(by_name(machine)["gpu"].status, Status::warn);
}

/// A machine with one GPU, whose probe printed `device` and `more`.
Machine with_gpu(const std::string& device, const std::string& more) {
  Machine machine = good();
  machine.gpus = {"a GPU"};
  machine.driver_version = "580.95.05";
  machine.probe->output = R"({"torch":"2.11.0","architectures":"sm_80, sm_90a, sm_100, PTX compute_100",)" +
                          more + R"(,"devices":[)" + device + "]}";
  return machine;
}
const std::string cudnn = R"("cudnn":"9.15.1")";
const std::string h200 = R"({"name":"NVIDIA H200","compute_capability":"9.0","code_runs":true})";
const std::string b200 = R"({"name":"NVIDIA B200","compute_capability":"10.0","code_runs":true})";

TEST(DoctorCli, SaysForWhichGpusThereIsCode) {
  const auto checks = by_name(with_gpu(h200, cudnn));
  EXPECT_EQ(checks.at("kernels").found, "compiled for sm_80, sm_90a, sm_100, PTX compute_100");
  EXPECT_EQ(checks.at("kernels").status, Status::ok);
  EXPECT_FALSE(checks.contains("blackwell"));
  const Check old = by_name(
      with_gpu(R"({"name":"Tesla V100","compute_capability":"7.0","code_runs":false})", cudnn))["kernels"];
  EXPECT_EQ(old.status, Status::warn);
  EXPECT_NE(old.fix.find("Tesla V100 (compute capability 7.0) is too old"), std::string::npos) << old.fix;
  const Check none = by_name(
      with_gpu(R"({"name":"NVIDIA H200","compute_capability":"9.0","code_runs":false})", cudnn))["kernels"];
  EXPECT_NE(none.fix.find("-DASSAY_CUDA_ARCHITECTURES=90-real"), std::string::npos) << none.fix;
  Machine machine = good();
  machine.probe->output = R"({"torch":"2.11.0","devices":[],"architectures":"","gpu_fault":"no kernels"})";
  EXPECT_EQ(by_name(machine)["kernels"].found, "not in this build (ASSAY_CUDA=OFF): it trains on the CPU");
  EXPECT_EQ(by_name(machine)["kernels"].status, Status::ok);
  machine.gpus = {"NVIDIA H200"};
  machine.driver_version = "580.95.05";
  EXPECT_NE(by_name(machine)["cuda"].fix.find("no kernels"), std::string::npos);
}

TEST(DoctorCli, AGpuThatCannotTrainIsNamedWithTheTrainersReason) {
  const Check busy =
      by_name(with_gpu(h200, cudnn + R"(,"gpu_fault":"NVIDIA H200 is busy: others hold it")"))["cuda"];
  EXPECT_EQ(busy.status, Status::warn);
  EXPECT_NE(busy.fix.find("NVIDIA H200 is busy"), std::string::npos);
  EXPECT_NE(busy.fix.find("compute.device=cpu trains on the CPU"), std::string::npos);
  const Check missing = by_name(with_gpu(h200, R"("nccl":"2.28.9")"))["cuda"];
  EXPECT_EQ(missing.status, Status::warn);
  EXPECT_NE(missing.found.find("cuDNN missing"), std::string::npos);
  EXPECT_NE(missing.fix.find("without cuDNN"), std::string::npos);
}

TEST(DoctorCli, SaysWhatAB200MachineLacks) {
  EXPECT_EQ(by_name(with_gpu(b200, cudnn)).at("blackwell").status, Status::ok);
  Machine machine = with_gpu(R"({"name":"NVIDIA B200","compute_capability":"10.0","code_runs":false})",
                             R"("cudnn":"9.6.2")");
  machine.driver_version = "570.86";
  const Check lacks = by_name(machine).at("blackwell");
  EXPECT_EQ(lacks.status, Status::warn);
  for (const char* word : {"code for sm_100", "branch 580", "cuDNN 9.7"})
    EXPECT_NE(lacks.fix.find(word), std::string::npos) << lacks.fix;
  EXPECT_EQ(by_name(with_gpu(b200, R"("cudnn":"10.0.0")")).at("blackwell").status, Status::ok);
}

TEST(DoctorCli, ThisMachineHasCoresAndMemory) {
  const Machine machine = look_at_machine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory_bytes, machine.available_bytes);
  EXPECT_GT(machine.disk_free_bytes, 0);
}

}  // namespace
}  // namespace assay::impl::cli::doctor_test
