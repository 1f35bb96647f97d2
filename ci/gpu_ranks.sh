# Sourced by ci/gpu and ci/bench_gpu.sh: ranks on GPUs without a launcher.

gpus() { nvidia-smi -L 2>/dev/null | grep -c '^GPU '; }

# N LOG SECONDS COMMAND...: on N ranks, a GPU each, as torchrun would start them. What rank r prints goes to LOG.r, or, where
# LOG is -, to where this does. The first that fails, or the time limit, ends all of them; 125, a skip, ends none.
ranks() {
  local n=$1 log=$2 limit=$3 port=$((20000 + RANDOM % 20000)) pids=() r ended status=0
  shift 3
  for ((r = 0; r < n; r++)); do
    (
      [ "$log" = - ] || exec > "$log.$r" 2>&1
      export RANK=$r WORLD_SIZE=$n LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
      exec timeout "$limit" "$@"
    ) &
    pids+=($!)
  done
  for ((r = 0; r < n; r++)); do
    wait -n "${pids[@]}" 2>/dev/null
    ended=$?
    case $ended in
      0 | 125 | 127) ;;  # 127: all had ended before they were waited for
      *) kill "${pids[@]}" 2>/dev/null; ((status)) || status=$ended ;;
    esac
  done
  # The first failure stands, however the others were ended; a skip hides none.
  for r in "${pids[@]}"; do
    wait "$r"
    ended=$?
    ((ended == 0 || (status != 0 && status != 125))) || status=$ended
  done
  return $status
}
