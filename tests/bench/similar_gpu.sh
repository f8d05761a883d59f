#!/usr/bin/env bash
# Measures joins by similarity on one or several GPUs, and compares the pairs
# with those of the CPU by a checksum.
#
#   tests/bench/similar_gpu.sh [FOLDER [GPUS [PART..]]]
#       FOLDER: folder of the programs; GPUS: "0", "0,1", "all"; parts:
#   vectors   a million vectors with some ten neighbours each, 64 and 16 dimensions, all
#             within a difference and the ten nearest; and without clusters
#   texts     thresholds on texts of the papers' sizes
#   best      the three most similar texts
#   shapes    the ten most similar of 17,621 trajectories, in bundles and alone
#   papers    the papers' methods at one threshold
#   two       minimum speeds on GPU 0, then on 0 and 1: seconds of the index and
#             of the join, and the speedup by two GPUs (150 s)
# Without parts the first four run. Exit code: 1 if pairs differ.
set -euo pipefail
folder=${1:-build/tests}
gpus=${2:-0}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- vectors texts best shapes
bench=$folder/oj_bench_similar
export OGRJOIN_CUDA_MODULE=${OGRJOIN_CUDA_MODULE:-$folder/../ogrjoin_cuda.so}
different=0

said='' # by the last run
run() { # options
    said=$("$bench" "$@")
    echo "$said"
}
gpu() { # options
    run "$@" --backend cuda --gpus "$gpus"
}
same() { # options
    local ours theirs
    gpu "$@"
    ours=${said##* checksum=}
    run "$@" --backend cpu --repeat 1
    theirs=${said##* checksum=}
    if [ "$ours" = "$theirs" ]; then
        echo "same pairs: $*"
    else
        echo "DIFFERENT PAIRS: $*: $ours and $theirs"
        different=1
    fi
}

seconds() { # index + join, of the last run
    local least=${said##* least_s=}
    echo "${least%% *}"
}
two() { # options
    local one
    run "$@" --backend cuda --gpus 0
    one="$(seconds) ${said##* checksum=}"
    run "$@" --backend cuda --gpus 0,1
    [ "${one#* }" = "${said##* checksum=}" ] || {
        echo "DIFFERENT PAIRS: $*"
        different=1
    }
    awk -F'[+ ]' -v what="$*" -v two="$(seconds)" '{
        split(two, t, "+")
        printf "TWO GPUS %s: %.3f+%.3f s, %.3f+%.3f s, %.2f times; the join %.2f times\n",
            what, $1, $2, t[1], t[2], ($1 + $2) / (t[1] + t[2]), $2 / t[2]
    }' <<<"$one"
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
            # bounding boxes exclude nothing here: 10^12 pairs by products
            gpu "${million[@]}" --centres 1000000 --dimensions 64 \
                --difference inf --k 10 --repeat 2
            ;;
        texts)
            gpu songs --threshold 9-3 --repeat 2
            for kind in publications titles; do
                gpu "$kind" --threshold 9-4 --repeat 2
            done
            same publications --threshold 5
            ;;
        best)
            same publications --n 20000 --k 3 --threshold 2
            gpu songs --k 3 --threshold 4
            ;;
        shapes)
            # a time limit for each, so that a slow one does not prevent the
            # others
            for distance in hausdorff_points hausdorff frechet; do
                for kind in trajectories loners; do
                    timeout 40 "$bench" "$kind" --distance "$distance" \
                        --repeat 2 --gpus "$gpus" ||
                        echo "$kind $distance: ended after 40 s"
                done
            done
            timeout 30 "$bench" trajectories --ties all --k 300 --repeat 1 \
                --gpus "$gpus" || echo "ties all: ended after 30 s"
            timeout 60 "$bench" trajectories --backend cpu --repeat 1 ||
                echo "trajectories on the CPU: ended after 60 s"
            ;;
        two)
            for kind in songs publications titles; do
                two "$kind" --threshold 5 --repeat 4
            done
            million=(vectors --n 1000000 --repeat 4)
            two "${million[@]}" --dimensions 64 --difference 0.0836
            two "${million[@]}" --dimensions 64 --difference inf --k 10
            two "${million[@]}" --dimensions 16 --difference 0.055
            two trajectories --repeat 3
            ;;
        papers)
            for kind in songs publications titles; do
                "$bench" "$kind" --backend cuda_size_blocks --repeat 1 \
                    --gpus "$gpus"
            done
            "$bench" publications --backend cuda_lists --repeat 1 --gpus "$gpus"
            run vectors --backend cuda_zlists --repeat 1 --gpus "$gpus"
            ;;
        *)
            echo "no such part: $part"
            exit 2
            ;;
    esac
done
exit $different
