#!/usr/bin/env bash
# Measures this machine's GPU, printing as it goes; `ci/bench gpu [PART ...]` runs it, by default ops, p1 and baseline.
#   ceilings          GEMMs, attention and copies at the shapes of one micro-batch of llama-1.36b: assay bench ceilings
#   ops               every op at those shapes: assay bench ops
#   step, step-p2, step-p6
#                     where the time of a step of p1, p2 and p6 goes, from peak to achieved MFU: assay bench step
#   tune              the algorithm of each of p1's GEMMs under sustained load, kept for later runs
#   p1, p2, p6        llama-1.36b, llama3-8b, qwen3-1.8b by their recipe of recipes/h200 on random tokens
#   recompute         p1 with each setting of memory.recompute, p2 and p6 with block: time, peak of memory, plan's peak
#   baseline, baseline-p2, baseline-p6
#                     the same models in PyTorch with torch.compile (tests/bench/compiled_pytorch.py): p1's batch; p2's
#                     in micro-batches of 2, in bf16 without master weights; p6's model in micro-batches of 8, as 22 do not fit there
#   loss-curve        100 steps of llama-1.36b on real text, beside PyTorch from the same weights (tests/bench/loss_curve.py)
#   scaling           llama-1.36b on every GPU of the host alone, all at once, and in every layout on all of them together:
#                     tokens/s of a GPU against the slowest one's alone, at the same sequences of a GPU, in 4 micro-batches
#   scaling-1         the same in one micro-batch, without shard
#   scaling-p3        llama3-8b in shards over all GPUs, fp32 master weights, T 4096
#   tensor            llama3-8b with every GPU a tensor rank, bf16 states, T 4096
#   expert            olmoe-1b-7b with every GPU an expert rank, T 4096, every activation kept
#   baseline-ddp, baseline-ddp-1, baseline-fsdp, baseline-tensor, baseline-tensor-async
#                     PyTorch beside them on all GPUs: p1's batch of a GPU under DDP, in 4 micro-batches and in 1; scaling-p3's
#                     under FSDP2; tensor's by tensor and sequence parallelism, its collectives beside GEMMs where "async"
# ASSAY_BENCH_STEPS: optimizer steps of each, default 10. ASSAY_BENCH_SET: settings of every run of step_bench, such as
# "compute.linear=fp8_tensor". Programs are found as in ci/gpu, or built by
# `cmake --build --preset release --target step_bench assay assay-train export_run`.
set -uo pipefail
cd "$(dirname "$0")/.."
. ci/gpu_ranks.sh
case ${1:-} in -h | --help) sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "ci/${0##*/}"; exit ;; esac
steps=${ASSAY_BENCH_STEPS:-10} limit=${ASSAY_BENCH_LIMIT:-240}
read -r -a settings <<< "${ASSAY_BENCH_SET:-}"
for bin in ${ASSAY_GPU_BIN:-} .carry build/release/bin; do
  [ -x "$bin/step_bench" ] && break
done
[ -x "$bin/step_bench" ] || { echo "ci/bench: no step_bench here; build it, or collect it with ci/gpu carry DIR" >&2; exit 2; }
if [ -e "$bin/libassay_impl.so" ]; then
  packages=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || exit 2
  export LD_LIBRARY_PATH
  LD_LIBRARY_PATH=$(readlink -f "$bin"):$packages/torch/lib$(printf ':%s' "$packages"/nvidia/*/lib)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

random_tokens() {  # FILE VOCABULARY TYPE COUNT: the same in every run
  python3 - "$@" <<'END'
import numpy, sys
path, vocabulary, kind, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
numpy.random.default_rng(0).integers(0, vocabulary, count, dtype=kind).tofile(path)
END
}

recipe() {  # NAME VOCABULARY TYPE TOKENS-OF-A-STEP PROGRAM ...: 20 steps of tokens; RECIPE in PROGRAM ... is the recipe
  local folder status=0 file="recipes/h200/$1.toml" vocabulary=$2 type=$3 tokens=$4
  shift 4
  folder=$(mktemp -d)
  random_tokens "$folder/tokens.bin" "$vocabulary" "$type" $((tokens * 20 + 1)) || return 1
  "${@/#RECIPE/$file}" data.paths="$folder/tokens.bin" data.dtype="$type" || status=$?
  rm -rf "$folder"
  return $status
}

p1() { recipe llama-1.36b 32000 uint16 $((96 * 2048)) "$@"; }
p2() { recipe llama3-8b 128256 uint32 $((8 * 4096)) "$@"; }
p6() { recipe qwen3-1.8b 151643 uint32 $((44 * 2048)) "$@"; }
whole() { "$1" "$bin/step_bench" RECIPE "$steps" "${@:2}" "${settings[@]}"; }
apart() { "$1" "$bin/assay" bench step --repeats 3 RECIPE; }
shapes=(--model llama-1.36b --micro 24 --seq 2048)

# RECIPE SEQUENCES-OF-A-GPU VOCABULARY TYPE T RANKS SETTING...: prints, and adds its line of JSON to $lines
measured() {
  local name=$1 per_gpu=$2 vocabulary=$3 kind=$4 tokens=$5 n=$6 folder status=0
  shift 6
  set -- "$@" "${settings[@]}"
  folder=$(mktemp -d)
  random_tokens "$folder/tokens.bin" "$vocabulary" "$kind" $((per_gpu * n * tokens * (steps + 4) + 1)) || return 1
  echo "-- $name on $n GPUs: $*"
  ranks "$n" - "$limit" "$bin/step_bench" "recipes/$name.toml" "$steps" data.paths="$folder/tokens.bin" data.dtype="$kind" \
    batch.sequences=$((per_gpu * n)) "$@" > "$folder/out" || status=$?
  grep -E '^(step|\{|a traced|all_|reduce_)|first step' "$folder/out"
  grep '^{' "$folder/out" >> "$lines"
  rm -rf "$folder"
  return $status
}

# RECIPE SEQUENCES-OF-A-GPU VOCABULARY TYPE T SETTING...: every GPU by itself, all at the same time.
alone() {
  local folder status=0 g pids=()
  folder=$(mktemp -d)
  random_tokens "$folder/tokens.bin" "$3" "$4" $(($2 * $5 * (steps + 4) + 1)) || return 1
  echo "-- $1, every GPU alone: ${*:6}"
  for ((g = 0; g < $(gpus); g++)); do
    CUDA_VISIBLE_DEVICES=$g RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 timeout "$limit" "$bin/step_bench" \
      "recipes/$1.toml" "$steps" data.paths="$folder/tokens.bin" data.dtype="$4" batch.sequences="$2" "${@:6}" "${settings[@]}" > "$folder/out$g" &
    pids+=($!)
  done
  for ((g = 0; g < ${#pids[@]}; g++)); do
    wait "${pids[$g]}" || status=$?
    grep -E '^(step|\{)|first step' "$folder/out$g" | sed "s/^step/GPU $g: step/"
    grep '^{' "$folder/out$g" >> "$lines"
  done
  rm -rf "$folder"
  return $status
}

# One line a measurement: tokens/s of a GPU as a share of the slowest that ran alone, with the same accumulation. A step on
# several waits for the slowest of them, whatever the layout does.
efficiencies() {
  python3 - "$lines" <<'END'
import json, sys
alone = {}
print(f"{'layout':>10} {'GPUs':>4} {'acc':>3} {'tokens/s/GPU':>12} {'of slowest':>10} {'MFU':>7} {'reduce':>7} {'GiB':>6} {'first step':>10}")
for line in open(sys.argv[1]):
    r = json.loads(line)
    rate, key = r["tokens_per_second_per_rank"], (r["model"], r["accumulation"])
    if r["ranks"] == 1: alone[key] = min(rate, alone.get(key, rate))
    share = f"{rate / alone[key]:10.2%}" if key in alone and r["ranks"] > 1 else f"{'-':>10}"
    exposed = r["phase_seconds"]["reduce"] / r["median_step_seconds"]
    print(f"{r['layout']:>10} {r['ranks']:4} {r['accumulation']:3} {rate:12.0f} {share} {r.get('mfu_exact', 0):7.2%} "
          f"{exposed:7.2%} {r['peak_device_bytes'] / 2**30:6.1f} {r['seconds_since_process_start']['first step done']:8.1f} s")
END
}

# SEQUENCES-OF-A-GPU LAYOUT...
scaling() {
  local n layout failed=0 sequences=$1
  n=$(gpus)
  shift
  ((n >= 2)) || { echo "skipped: needs 2 GPUs or more, there are $n"; return 0; }
  lines=$(mktemp)
  alone h200/llama-1.36b "$sequences" 32000 uint16 2048 || failed=1
  for layout in "$@"; do
    measured h200/llama-1.36b "$sequences" 32000 uint16 2048 "$n" parallel.data="$layout" || failed=1
  done
  efficiencies
  rm -f "$lines"
  return $failed
}

# RECIPE SEQUENCES-OF-A-GPU SETTING...: llama3-8b on all GPUs
over_all() { over_all_of 128256 uint32 "$@"; }

# VOCABULARY TYPE RECIPE SEQUENCES-OF-A-GPU SETTING...: T 4096
over_all_of() {
  local n failed=0 vocabulary=$1 type=$2
  shift 2
  n=$(gpus)
  ((n >= 2)) || { echo "skipped: needs 2 GPUs or more, there are $n"; return 0; }
  lines=$(mktemp)
  measured "$1" "$2" "$vocabulary" "$type" 4096 "$n" "${@:3}" || failed=1
  efficiencies
  rm -f "$lines"
  return $failed
}

llama3_8b=(--layers 32 --width 4096 --heads 32 --kv-heads 8 --ffn 14336 --vocab 128256 --tokens 4096)
pytorch() { python3 tests/bench/compiled_pytorch.py --steps "$steps" "$@"; }
on_all_gpus() {
  local n
  n=$(gpus)
  ((n >= 2)) || { echo "skipped: needs 2 GPUs or more, there are $n"; return 0; }
  ranks "$n" - "$limit" python3 tests/bench/compiled_pytorch.py --steps "$steps" "$@"
}

(($# > 0)) || set -- ops p1 baseline
nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm --format=csv,noheader 2>/dev/null
[ -e "$bin/commit" ] && echo "commit $(cat "$bin/commit")"
failed=0
for part in "$@"; do
  echo "== $part"
  case $part in
    ceilings | ops) "$bin/assay" bench "$part" "${shapes[@]}" || failed=1 ;;
    tune) "$bin/assay" bench ceilings "${shapes[@]}" --tune 200 || failed=1 ;;
    p1 | p2 | p6) whole "$part" || failed=1 ;;
    recompute)
      for run in "p1 none" "p1 norms_swiglu" "p1 attention" "p1 block" "p2 block" "p6 block"; do
        echo "-- $run"
        whole "${run% *}" memory.recompute="${run#* }" || failed=1
      done ;;
    step) apart p1 || failed=1 ;;
    step-p2 | step-p6) apart "${part#step-}" || failed=1 ;;
    scaling) scaling 96 replicate zero1 shard || failed=1 ;;
    scaling-1) scaling 24 replicate zero1 || failed=1 ;;
    scaling-p3) over_all h200x4/llama3-8b-shard 8 || failed=1 ;;
    tensor) over_all h200/llama3-8b 2 parallel.tensor="$(gpus)" batch.micro=4 || failed=1 ;;
    expert) over_all_of 50304 uint16 h200/olmoe-1b-7b 8 parallel.expert="$(gpus)" batch.micro=2 memory.recompute=none || failed=1 ;;
    baseline) pytorch || failed=1 ;;
    baseline-ddp) on_all_gpus --accumulation 4 || failed=1 ;;
    baseline-ddp-1) on_all_gpus --accumulation 1 || failed=1 ;;
    baseline-fsdp)
      on_all_gpus --parallel fsdp "${llama3_8b[@]}" --micro 2 --accumulation 4 --compile blocks || failed=1 ;;
    baseline-tensor | baseline-tensor-async)
      asynchronous=()
      [ "$part" = baseline-tensor ] || asynchronous=(--asynchronous)
      on_all_gpus --parallel tensor "${asynchronous[@]}" "${llama3_8b[@]}" --micro 4 --accumulation $(($(gpus) / 2)) --weights bf16 \
        --compile blocks || failed=1 ;;
    baseline-p2) pytorch "${llama3_8b[@]}" --micro 2 --accumulation 4 --weights bf16 --compile blocks || failed=1 ;;
    baseline-p6)
      pytorch --layers 24 --width 2048 --heads 16 --kv-heads 8 --ffn 6144 --vocab 151643 --tokens 2048 \
        --micro 8 --accumulation 4 || failed=1 ;;
    loss-curve) python3 tests/bench/loss_curve.py "$bin" || failed=1 ;;
    *) echo "ci/bench gpu: unknown part $part (ci/bench_gpu.sh names them)" >&2; exit 2 ;;
  esac
done
exit $failed
