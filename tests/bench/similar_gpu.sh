#!/usr/bin/env bash
# Joins by similarity on one GPU, or several: times, and the pairs against those
# of the CPU by checksum.
#
#   tests/bench/similar_gpu.sh [FOLDER [GPUS [PART..]]]
#       FOLDER: of the programs; GPUS: "0", "0,1", "all"; parts:
#   vectors   a million with some ten neighbours each, 64 and 16 dimensions, all
#             within a difference and the ten nearest; and without clusters
#   texts     every threshold on texts of the papers' sizes
#   best      the three most similar
#   shapes    the ten most similar of 17,621 trajectories
#   papers    the papers' methods at one threshold
# The first four are what is run without parts. Exit code: 1 when pairs differ.
set -euo pipefail
folder=${1:-build/tests}
gpus=${2:-0}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- vectors texts best shapes
bench=$folder/oj_bench_similar
export OGRJOIN_CUDA_MODULE=${OGRJOIN_CUDA_MODULE:-$folder/../ogrjoin_cuda.so}
different=0

gpu() { # options
    "$bench" "$@" --backend cuda --gpus "$gpus" | tee /dev/stderr |
        grep -o 'pairs=.*' || true
}
same() { # options
    local ours theirs
    ours=$(gpu "$@")
    theirs=$("$bench" "$@" --backend cpu --repeat 1 | tee /dev/stderr |
        grep -o 'pairs=.*')
    if [ "${ours#* checksum}" = "${theirs#* checksum}" ]; then
        echo "same pairs: $*"
    else
        echo "DIFFERENT PAIRS: $*: $ours and $theirs"
        different=1
    fi
}

for part; do
    case $part in
        vectors)
            million=(vectors --n 1000000)
            same "${million[@]}" --dimensions 64 --difference 0.0836
            same "${million[@]}" --dimensions 64 --difference inf --k 10
            same "${million[@]}" --dimensions 16 --difference 0.055
            same "${million[@]}" --dimensions 16 --difference inf --k 10
            same vectors --n 200000 --dimensions 256 --difference 0.09
            same vectors --n 200000 --dimensions 64 --difference 0.002 \
                --norm cosine
            # boxes tell nothing apart: 10^12 pairs by products
            gpu "${million[@]}" --centres 1000000 --dimensions 64 \
                --difference inf --k 10 --repeat 2
            ;;
        texts)
            for kind in songs publications titles; do
                gpu "$kind" --threshold all --repeat 2
            done
            same publications --threshold 5
            ;;
        best)
            same publications --n 20000 --k 3 --threshold 2
            gpu songs --k 3 --threshold 4
            ;;
        shapes)
            for distance in hausdorff_points hausdorff; do
                gpu trajectories --distance "$distance" --repeat 2
            done
            ;;
        papers)
            for kind in songs publications titles; do
                "$bench" "$kind" --backend cuda_size_blocks --repeat 1 \
                    --gpus "$gpus"
            done
            "$bench" publications --backend cuda_lists --repeat 1 --gpus "$gpus"
            ;;
        *)
            echo "no such part: $part"
            exit 2
            ;;
    esac
done
exit $different
