#!/usr/bin/env bash
# One host or several, started on each by hand or by a scheduler, with PyTorch's launcher: it sets RANK, WORLD_SIZE and
# where rank 0 is found, and restarts nothing here: a run that ends goes on with checkpoint.resume=auto.
#   HOSTS=2 HOST=0 FIRST=node0 recipes/h200x4/torchrun.sh recipes/h200x4/llama3-8b-shard.toml parallel.data=hybrid ...
# NCCL over InfiniBand finds its ports by itself; set NCCL_SOCKET_IFNAME (for example eth0) where a host has several
# networks, NCCL_IB_HCA where only some adapters reach the others, NCCL_DEBUG=WARN to see why it does not connect.
set -euo pipefail
hosts=${HOSTS:-1} host=${HOST:-0} first=${FIRST:-127.0.0.1} port=${PORT:-29500}
gpus=${GPUS:-$(nvidia-smi -L | grep -c '^GPU ')}
exec torchrun --nnodes="$hosts" --node-rank="$host" --nproc-per-node="$gpus" --master-addr="$first" --master-port="$port" \
  --no-python "${ASSAY:-build/release/bin/assay}" train "$@"
