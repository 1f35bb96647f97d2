#!/usr/bin/env bash
# Measures this machine's GPU, printing as it goes; `ci/bench gpu [ops] [p1] [baseline]` runs it.
#   ops       every op at the shapes of one micro-batch of llama-1.36b
#   p1        llama-1.36b by recipes/h200/llama-1.36b.toml on random tokens
#   baseline  the same model and batch in PyTorch with torch.compile (tests/bench/compiled_pytorch.py)
# ASSAY_BENCH_STEPS: optimizer steps of each, default 10. Programs are found as in ci/gpu, or built by
# `cmake --build --preset release --target step_bench cuda_ops_bench`.
set -uo pipefail
cd "$(dirname "$0")/.."
steps=${ASSAY_BENCH_STEPS:-10}
for bin in ${ASSAY_GPU_BIN:-} .carry build/release/bin; do
  [ -x "$bin/step_bench" ] && break
done
[ -x "$bin/step_bench" ] || { echo "ci/bench: no step_bench here; build it, or collect it with ci/gpu carry DIR" >&2; exit 2; }
if [ -e "$bin/libassay_impl.so" ]; then
  packages=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || exit 2
  export LD_LIBRARY_PATH
  LD_LIBRARY_PATH=$(readlink -f "$bin"):$packages/torch/lib:$(printf '%s:' "$packages"/nvidia/*/lib)${LD_LIBRARY_PATH:-}
fi

random_tokens() {  # of the recipe's vocabulary: 20 steps of 96 sequences, the same in every run
  python3 - "$1" <<'END'
import numpy, sys
count = 96 * 2048 * 20 + 1
numpy.random.default_rng(0).integers(0, 32000, count, dtype=numpy.uint16).tofile(sys.argv[1])
END
}

p1() {
  local folder status=0
  folder=$(mktemp -d)
  random_tokens "$folder/tokens.bin" || return 1
  "$bin/step_bench" recipes/h200/llama-1.36b.toml "$steps" data.paths="$folder/tokens.bin" data.dtype=uint16 || status=$?
  rm -rf "$folder"
  return $status
}

(($# > 0)) || set -- ops p1 baseline
nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm --format=csv,noheader 2>/dev/null
[ -e "$bin/commit" ] && echo "commit $(cat "$bin/commit")"
failed=0
for part in "$@"; do
  echo "== $part"
  case $part in
    ops) "$bin/cuda_ops_bench" || failed=1 ;;
    p1) p1 || failed=1 ;;
    baseline) python3 tests/bench/compiled_pytorch.py --steps "$steps" || failed=1 ;;
    *) echo "ci/bench gpu: unknown part $part (there are ops, p1, baseline)" >&2; exit 2 ;;
  esac
done
exit $failed
