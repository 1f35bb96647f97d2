#include "spec/text/labels.hpp"

#include <algorithm>
#include <cctype>

namespace assay::spec {
namespace {

/// What the labels of spec/**/*.md begin with.
constexpr std::string_view pages[] = {"adamw",
                                      "attention",
                                      "audit",
                                      "batch",
                                      "bias",
                                      "bus_bandwidth",
                                      "by_precision",
                                      "checkpoint",
                                      "claim",
                                      "clip_grad_norm",
                                      "config",
                                      "count",
                                      "cross_entropy",
                                      "data_layout",
                                      "embedding",
                                      "executed",
                                      "expression",
                                      "flops",
                                      "fp8_gemm",
                                      "grammar",
                                      "grouped_linear",
                                      "hardware",
                                      "init",
                                      "initial_loss",
                                      "interval",
                                      "inventory",
                                      "latent_attention",
                                      "layout",
                                      "linear",
                                      "load_balancing",
                                      "memory",
                                      "mesh",
                                      "metrics",
                                      "mixture",
                                      "model",
                                      "partition",
                                      "permutation",
                                      "permute",
                                      "placement",
                                      "qk_norm",
                                      "quantise",
                                      "ramp",
                                      "record",
                                      "rms_norm",
                                      "rope",
                                      "router",
                                      "safetensors",
                                      "sample_order",
                                      "scaling",
                                      "schedule",
                                      "shared_expert",
                                      "step",
                                      "swiglu",
                                      "tensor",
                                      "token_statistics",
                                      "validation_set",
                                      "volume",
                                      "waterfall",
                                      "weight_files",
                                      "window_floor"};

bool is_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Length of the label and ": " that `text` starts with, or 0.
std::size_t label_at(std::string_view text) {
  const std::size_t end = std::ranges::find_if_not(text, is_of_a_name) - text.begin();
  const std::string_view word = text.substr(0, end);
  const std::size_t number = word.rfind("_c");
  if (number == word.npos || text.substr(end, 2) != ": ") return 0;
  const std::string_view digits = word.substr(number + 2);
  const bool numbered = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  return numbered && std::ranges::find(pages, word.substr(0, number)) != std::end(pages) ? end + 2 : 0;
}

}  // namespace

std::string without_labels(std::string_view message) {
  std::string out;
  for (std::size_t at = 0; at < message.size();) {
    // A part begins behind ": ", "; " or a line's blanks.
    const bool begins = at == 0 || message[at - 1] == ' ' || message[at - 1] == '\n';
    const std::size_t length = begins ? label_at(message.substr(at)) : 0;
    if (length == 0) out += message[at];
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace assay::spec
