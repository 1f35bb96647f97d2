#include "impl/cli/doctor/doctor_gpu.hpp"

#include <algorithm>
#include <cstdlib>

#include "spec/text/json.hpp"

namespace assay::impl::cli {
namespace {

// The first driver branch that runs CUDA 13.0 programs (CUDA 13.0 release notes, table 3: >= 580.65.06 on
// Linux).
constexpr int kLeastDriver = 580;
// The first cuDNN with kernels for Blackwell (cuDNN release notes, 9.7.0).
constexpr int kBlackwellCudnn[] = {9, 7};
constexpr int kLeastCapability = 80, kBlackwell = 100;

std::string text_of(spec::document::Item object, const std::string& name) {
  const auto found = object.find(name);
  if (!found || found->is(spec::document::Kind::null)) return "";
  return found->is(spec::document::Kind::text) ? found->text() : found->shown();
}

/// "9.0" is 90.
int capability_of(const std::string& text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return 0;
  return 10 * std::atoi(text.c_str()) + std::atoi(text.c_str() + point + 1);
}

/// "9.15.1" is at least 9.7.
bool at_least(const std::string& version, const int (&wanted)[2]) {
  const std::size_t point = version.find('.');
  const int major = std::atoi(version.c_str());
  const int minor = point == std::string::npos ? 0 : std::atoi(version.c_str() + point + 1);
  return major != wanted[0] ? major > wanted[0] : minor >= wanted[1];
}

ProbedGpu gpu_of(spec::document::Item device) {
  ProbedGpu gpu;
  if (!device.is(spec::document::Kind::object)) return gpu;
  gpu.name = text_of(device, "name");
  gpu.capability = capability_of(text_of(device, "compute_capability"));
  gpu.code_runs = text_of(device, "code_runs") != "false";
  return gpu;
}

std::string shown(const ProbedGpu& gpu) {
  return gpu.name + " (compute capability " + std::to_string(gpu.capability / 10) + "." +
         std::to_string(gpu.capability % 10) + ")";
}

void add_fix(Check& check, const std::string& fix) {
  check.status = Status::warn;
  check.fix += (check.fix.empty() ? "" : "; ") + fix;
}

Check cuda_check(const Machine& machine, const Probe& probe) {
  Check check{"cuda", Status::ok,
              "runtime " + probe.cuda_runtime + ", cuDNN " + (probe.cudnn.empty() ? "missing" : probe.cudnn) +
                  ", NCCL " + probe.nccl + ", " + std::to_string(probe.gpus.size()) + " usable GPUs",
              ""};
  if (probe.gpus.size() < machine.gpus.size())
    add_fix(check, "the driver lists " + std::to_string(machine.gpus.size()) + " GPUs" +
                       (probe.cuda_error.empty() ? "" : ", CUDA says: " + probe.cuda_error) +
                       "; look at CUDA_VISIBLE_DEVICES and nvidia-smi");
  if (!probe.gpus.empty() && probe.cudnn.empty())
    add_fix(check, "without cuDNN attention takes FlashAttention-2, which is slower: run ci/setup again");
  if (!machine.gpus.empty() && !probe.gpu_fault.empty())
    add_fix(check, probe.gpu_fault + "; until then compute.device=cpu trains on the CPU");
  return check;
}

Check kernels_check(const Probe& probe) {
  Check check{"kernels", Status::ok, "compiled for " + probe.architectures, ""};
  if (probe.architectures.empty()) {
    check.found = "not in this build (ASSAY_CUDA=OFF): it trains on the CPU";
    return check;
  }
  for (const ProbedGpu& gpu : probe.gpus) {
    if (gpu.capability > 0 && gpu.capability < kLeastCapability)
      add_fix(check, shown(gpu) + " is too old: at least 8.0 (A100) is needed; train on the CPU");
    else if (!gpu.code_runs)
      add_fix(check, "no code for " + shown(gpu) + ": configure with -DASSAY_CUDA_ARCHITECTURES=" +
                         std::to_string(gpu.capability) + "-real and build");
  }
  return check;
}

/// What a machine with such a GPU needs beside what any other does.
std::optional<Check> blackwell_check(const Machine& machine, const Probe& probe) {
  const auto gpu = std::find_if(probe.gpus.begin(), probe.gpus.end(),
                                [](const ProbedGpu& each) { return each.capability >= kBlackwell; });
  if (gpu == probe.gpus.end()) return {};
  Check check{"blackwell", Status::ok,
              shown(*gpu) + ": code, driver and cuDNN are there; Assay has not been run on one yet", ""};
  if (!gpu->code_runs)
    add_fix(check, "it lacks code for sm_" + std::to_string(gpu->capability) + " in this build");
  if (std::atoi(machine.driver_version.c_str()) < kLeastDriver)
    add_fix(check, "it lacks a driver of branch " + std::to_string(kLeastDriver) + " or newer");
  if (!at_least(probe.cudnn, kBlackwellCudnn))
    add_fix(check,
            "it lacks cuDNN 9.7 or newer, whose attention runs on Blackwell; compute.attention=flash does "
            "without");
  if (check.status != Status::ok) check.found = shown(*gpu) + ": something is missing";
  return check;
}

}  // namespace

std::optional<Probe> probed(const Machine& machine) {
  spec::document::Node printed;
  if (!machine.probe || machine.probe->code != 0 || spec::read_json(machine.probe->output, printed))
    return std::nullopt;
  const spec::document::Tree tree({"assay-train --probe"}, std::move(printed));
  const auto object = tree.root();
  if (!object.is(spec::document::Kind::object)) return std::nullopt;
  const auto text = [&](const char* name) { return text_of(object, name); };
  Probe probe{.torch = text("torch"),
              .cuda_runtime = text("cuda_runtime"),
              .cuda_driver = text("cuda_driver"),
              .cudnn = text("cudnn"),
              .nccl = text("nccl"),
              .cuda_error = text("cuda_error"),
              .gpu_fault = text("gpu_fault"),
              .architectures = text("architectures"),
              .gpus = {}};
  const auto devices = object.find("devices");
  if (devices && devices->is(spec::document::Kind::list))
    for (std::size_t i = 0; i < devices->size(); ++i) probe.gpus.push_back(gpu_of((*devices)[i]));
  return probe;
}

Check gpu_check(const Machine& machine) {
  if (machine.gpus.empty()) return {"gpu", Status::ok, "none: training runs on the CPU", ""};
  Check check{
      "gpu", Status::ok,
      std::to_string(machine.gpus.size()) + " x " + machine.gpus[0] + ", driver " + machine.driver_version,
      ""};
  if (std::atoi(machine.driver_version.c_str()) < kLeastDriver)
    add_fix(check, "CUDA 13.0 needs driver " + std::to_string(kLeastDriver) +
                       " or newer: update it, or train on the CPU");
  return check;
}

std::vector<Check> gpu_checks(const Machine& machine, const Probe& probe) {
  std::vector<Check> checks = {cuda_check(machine, probe), kernels_check(probe)};
  if (const auto blackwell = blackwell_check(machine, probe)) checks.push_back(*blackwell);
  return checks;
}

}  // namespace assay::impl::cli
