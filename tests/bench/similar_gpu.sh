#!/usr/bin/env bash
# Joins by similarity on one GPU, or several: every threshold on texts of the
# papers' sizes, by our way and at one threshold by the papers'; and the ten
# most similar of 17,621 trajectories, in bundles and alone, by the GPU and by
# all threads.
#
#   tests/bench/similar_gpu.sh [FOLDER] [GPUS] [texts|shapes]
#       FOLDER: of the programs; GPUS: "0", "0,1", "all"
set -euo pipefail
bench=${1:-build/tests}/oj_bench_similar
gpus=${2:-0}
export OGRJOIN_CUDA_MODULE=${OGRJOIN_CUDA_MODULE:-${1:-build/tests}/../ogrjoin_cuda.so}

texts() {
    for kind in songs publications titles; do
        "$bench" "$kind" --threshold all --gpus "$gpus"
        "$bench" "$kind" --backend cuda_size_blocks --repeat 1 --gpus "$gpus"
    done
    "$bench" publications --backend cuda_lists --repeat 1 --gpus "$gpus"
}

# Each at most some seconds: none may keep the others from being measured.
shapes() {
    for distance in hausdorff_points hausdorff frechet; do
        for kind in trajectories loners; do
            timeout 45 "$bench" "$kind" --distance "$distance" --repeat 2 \
                --gpus "$gpus" || echo "$kind $distance: ended after 45 s"
        done
    done
    timeout 30 "$bench" trajectories --ties all --k 300 --repeat 1 \
        --gpus "$gpus" || echo "ties all: ended after 30 s"
    timeout 60 "$bench" trajectories --max_distance 500 --repeat 1 \
        --gpus "$gpus" || echo "dwithin: ended after 60 s"
    for kind in trajectories loners; do
        timeout 60 "$bench" "$kind" --backend cpu --repeat 1 ||
            echo "$kind on the CPU: ended after 60 s"
    done
}

case ${3:-all} in
texts | shapes) "$3" ;;
all)
    texts
    shapes
    ;;
esac
