#include <algorithm>
#include <optional>

#include "impl/cli/doctor/doctor_gpu.hpp"
#include "impl/cli/doctor/machine.hpp"
#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::cli {
namespace {

// The demo needs about 0.5 GiB with libtorch loaded; its checkpoints and record about 20 MB.
constexpr std::int64_t kLeastMemory = 1LL << 30;
constexpr std::int64_t kLeastDisk = 200LL << 20;

Check cpu_check(const Machine& machine) {
  Check check{"cpu", Status::ok, machine.cpu + ", " + std::to_string(machine.cores) + " cores", ""};
  if (!machine.avx2) {
    check.status = Status::warn;
    check.found += ", without AVX2 and FMA";
    check.fix =
        "the trainer is compiled for AVX2 and FMA (x86-64-v3) and would stop at an illegal instruction: "
        "train on another machine, or name this one's -march in cmake/AssayImpl.cmake and rebuild";
  }
  return check;
}

Check memory_check(const Machine& machine) {
  Check check{"memory", Status::ok,
              spec::bytes(machine.available_bytes) + " free of " + spec::bytes(machine.memory_bytes), ""};
  if (machine.available_bytes < kLeastMemory) {
    check.status = Status::warn;
    check.fix = "less than 1 GiB is free, and libtorch alone takes half of it: close other programs";
  }
  return check;
}

Check disk_check(const Machine& machine) {
  Check check{"disk", Status::ok, spec::bytes(machine.disk_free_bytes) + " free in " + machine.folder, ""};
  if (!machine.folder_writable) {
    check.status = Status::fail;
    check.found = machine.folder + " cannot be written";
    check.fix = "change to a folder that you can write, or give run.directory=/some/other/folder";
  } else if (machine.disk_free_bytes < kLeastDisk) {
    check.status = Status::warn;
    check.fix = "records and checkpoints may not fit: free space, or give run.directory on another disk";
  }
  return check;
}

Check trainer_check(const Machine& machine, const std::optional<Probe>& probe) {
  if (machine.trainer.empty())
    return {"assay-train", Status::fail, "not beside this program",
            "build it: ci/setup, then cmake --preset release && cmake --build --preset release"};
  if (probe) return {"assay-train", Status::ok, machine.trainer + ", libtorch " + probe->torch, ""};
  const Outcome& outcome = *machine.probe;
  std::string reason = outcome.messages.substr(0, outcome.messages.find('\n'));
  if (outcome.code == 124) reason = "no answer in time";
  return {"assay-train", Status::fail, machine.trainer + " does not start: " + reason,
          "a missing library: run ci/setup again and rebuild; `ldd " + machine.trainer + "` names it"};
}

std::string status_name(Status status) {
  return status == Status::ok ? "OK" : status == Status::warn ? "WARN" : "FAIL";
}

}  // namespace

std::vector<Check> examine(const Machine& machine) {
  const std::optional<Probe> probe = probed(machine);
  std::vector<Check> checks = {cpu_check(machine), memory_check(machine), disk_check(machine),
                               trainer_check(machine, probe), gpu_check(machine)};
  if (probe)
    for (const Check& check : gpu_checks(machine, *probe)) checks.push_back(check);
  return checks;
}

int doctor(const Arguments& arguments, Streams streams) {
  const std::vector<Check> checks = examine(look_at_machine());
  const bool ready = std::none_of(checks.begin(), checks.end(),
                                  [](const Check& check) { return check.status == Status::fail; });
  if (arguments.has("json")) {
    using spec::json_string;
    streams.out << "{\"ready\":" << (ready ? "true" : "false") << ",\n \"checks\":[";
    for (const Check& check : checks)
      streams.out << (&check == &checks.front() ? "" : ",\n  ") << "{\"name\":" << json_string(check.name)
                  << ",\"status\":" << json_string(status_name(check.status))
                  << ",\"found\":" << json_string(check.found) << ",\"fix\":" << json_string(check.fix)
                  << "}";
    streams.out << "]}\n";
  } else {
    for (const Check& check : checks) {
      const std::string status = status_name(check.status);
      streams.out << status << std::string(6 - status.size(), ' ') << check.name
                  << std::string(13 - check.name.size(), ' ') << check.found << "\n";
      if (!check.fix.empty()) streams.out << std::string(19, ' ') << "fix: " << check.fix << "\n";
    }
    streams.out << (ready ? "\nready: assay train\n" : "\nnot ready: see FAIL above\n");
  }
  return ready ? 0 : static_cast<int>(ExitCode::usage);
}

}  // namespace assay::impl::cli
