#!/usr/bin/env bash
# Joins by similarity on one GPU, or several: every threshold on texts of the
# papers' sizes, by our way and at one threshold by the papers'; and the ten
# most similar of 17,621 trajectories.
#
#   tests/bench/similar_gpu.sh [FOLDER] [GPUS]    FOLDER: of the programs;
#                                                 GPUS: "0", "0,1", "all"
set -euo pipefail
bench=${1:-build/tests}/oj_bench_similar
gpus=${2:-0}
export OGRJOIN_CUDA_MODULE=${OGRJOIN_CUDA_MODULE:-${1:-build/tests}/../ogrjoin_cuda.so}

for kind in songs publications titles; do
    "$bench" "$kind" --threshold all --gpus "$gpus"
    "$bench" "$kind" --backend cuda_size_blocks --repeat 1 --gpus "$gpus"
done
"$bench" publications --backend cuda_lists --repeat 1 --gpus "$gpus"
for distance in hausdorff_points hausdorff frechet; do
    "$bench" trajectories --distance "$distance" --repeat 2 --gpus "$gpus"
done
