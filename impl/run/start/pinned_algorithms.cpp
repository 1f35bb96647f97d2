#include "impl/run/start/pinned_algorithms.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <cublasLt.h>
#include <torch/headeronly/version.h>

#include <filesystem>
#include <span>
#include <utility>

#include "impl/checkpoint/durable_file.hpp"
#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "spec/error.hpp"
#include "spec/text/json.hpp"

namespace assay::impl::run {

namespace fs = std::filesystem;

namespace {

/// RUN/algorithms.json of RUN/checkpoints/step_00000100.
fs::path algorithms_file(const std::string& checkpoint) {
  fs::path path = fs::absolute(checkpoint).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "step_00000100/"
  return path.parent_path().parent_path() / PinnedAlgorithms::file_name;
}

bool same_machine(const Algorithms& a, const Algorithms& b) {
  return a.gpu == b.gpu && a.libraries == b.libraries;
}

}  // namespace

std::string to_json(const Algorithms& algorithms) {
  std::string text = "{\n";
  const auto member = [&](const char* name, const std::string& value) {
    text += "  " + spec::json_string(name) + ": " + spec::json_string(value) + ",\n";
  };
  member("gpu", algorithms.gpu);
  member("libraries", algorithms.libraries);
  member("attention", algorithms.attention);
  text += "  \"gemms\": {";
  const char* separator = "\n";
  for (const auto& [gemm, algorithm] : algorithms.gemms) {
    text += std::exchange(separator, ",\n") + ("    " + spec::json_string(gemm)) + ": " +
            spec::json_string(algorithm);
  }
  return text + "\n  }\n}\n";
}

Algorithms algorithms_of(const std::string& json, const std::string& origin) {
  const spec::document::Tree tree = spec::parse_json(json, origin);
  const auto root = tree.root();
  Algorithms out{.gpu = root.at("gpu").text(),
                 .libraries = root.at("libraries").text(),
                 .attention = root.at("attention").text()};
  const auto gemms = root.at("gemms");
  for (std::size_t i = 0; i < gemms.size(); ++i) out.gemms[gemms.key(i)] = gemms[i].text();
  return out;
}

Algorithms algorithms_here(at::Device device, const std::string& attention) {
  return {.gpu = at::cuda::getDeviceProperties(device.index())->name,
          .libraries = "cuBLASLt " + std::to_string(cublasLtGetVersion()) + ", cuDNN " +
                       std::to_string(at::detail::getCUDAHooks().versionRuntimeCuDNN()) + ", libtorch " +
                       TORCH_VERSION,
          .attention = attention,
          .gemms = cuda::Search::all_kept()};
}

PinnedAlgorithms::PinnedAlgorithms(Algorithms here, cuda::GemmPins& pins, Communicator& communicator)
    : here_(std::move(here)), pins_(pins), communicator_(communicator) {}

std::optional<std::string> PinnedAlgorithms::begin(const std::string& checkpoint) {
  std::optional<std::string> doubt;
  Algorithms known = here_;
  if (communicator_.rank() == 0 && !checkpoint.empty()) {
    const fs::path path = algorithms_file(checkpoint);
    const std::string result = ": the last bits of this resume are not those of a run without a stop";
    try {
      const Algorithms then =
          algorithms_of(checkpoint::read_whole(path, spec::file_limits::algorithms), path.string());
      const auto differ = [&](const std::string& before, const std::string& now) {
        doubt = path.string() + ": the run was computed on " + before + ", and goes on on " + now + result;
      };
      if (!same_machine(then, here_))
        differ(then.gpu + " with " + then.libraries, here_.gpu + " with " + here_.libraries);
      else if (then.attention != here_.attention)
        differ("attention=" + then.attention, "attention=" + here_.attention);
      if (same_machine(then, here_)) {
        kept_ = then.gemms;
        for (const auto& [gemm, algorithm] : then.gemms) known.gemms[gemm] = algorithm;
      }
    } catch (const UserError& error) {
      doubt = "the algorithms of the run are not known (" + std::string(error.what()) + ")" + result;
    }
  }
  const std::vector<std::string> all =
      communicator_.all_gather(communicator_.rank() == 0 ? to_json(known) : "none");
  const Algorithms first = algorithms_of(all.front(), "rank 0");
  pins_.give(same_machine(first, here_) ? first.gemms : cuda::AlgorithmTexts());
  return doubt;
}

std::optional<std::string> PinnedAlgorithms::keep(const std::string& directory) {
  Algorithms mine = here_;
  mine.gemms = pins_.used();
  const std::vector<std::string> all = communicator_.all_gather(to_json(mine));
  if (communicator_.rank() != 0) return {};
  for (const std::string& text : all) kept_.merge(algorithms_of(text, "a rank").gemms);
  mine.gemms = kept_;
  std::error_code unknown;
  if (mine == written_ && fs::exists(fs::path(directory) / file_name, unknown)) return {};
  try {
    const OutputFolder folder(directory);
    replace_file(folder, file_name, to_json(mine));
    folder.sync();
  } catch (const UserError& error) {
    return error.what();
  }
  written_ = mine;
  return {};
}

}  // namespace assay::impl::run
