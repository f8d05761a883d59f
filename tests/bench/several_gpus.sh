#!/usr/bin/env bash
# Measures joins on one, two and four GPUs of one host: a table of milliseconds
# and speedups. The pairs of all runs are compared.
#
#   tests/bench/several_gpus.sh [FOLDER [PART..]]
#       FOLDER: a build folder; "" or none: programs in PATH (tests/pack.sh)
#   live      the kept index: 16.5 M points, 4 M queries, batches of 1 and 10 %
#   shapes    lots with lots, and with zones, of citygen L; its python needs numpy
#   similar   texts and vectors, index and join
#   points    170 M points with the nearest lot, pinned; and with a single lot,
#             which measures the copies over the bus
#   large     the kept index: 256 M points, queries
# Without parts: all of them in this order, if they begin within
# SECONDS_TO_BEGIN (400) seconds.
# GPUS: numbers of GPUs ("1 2 4", without those that the host lacks). REPEAT:
# runs, of which the fastest counts (5). LOG: file for the output of the
# programs (a temporary file, which is named at the end). Exit code: 1 if pairs
# differ or a run fails.
#
# The bundle for a machine without any other file:
#   tests/pack.sh rt.tar.xz build/ogrjoin_cuda.so \
#       build/tests/oj_bench{,_live,_similar}
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-}
shift $(($# < 1 ? $# : 1))
seconds=${SECONDS_TO_BEGIN:-400}
if [ -n "$folder" ]; then
    export PATH=$folder/tests:$PATH
    export OGRJOIN_CUDA_MODULE=${OGRJOIN_CUDA_MODULE:-$folder/ogrjoin_cuda.so}
fi
log=${LOG:-$(mktemp)}
repeat=${REPEAT:-5}
city=${CITY:-$(mktemp -d)}
trap '[ -n "${CITY:-}" ] || rm -rf "$city"' EXIT
n_gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
counts=()
for n in ${GPUS:-1 2 4}; do
    [ "$n" -gt "${n_gpus:-0}" ] && [ -z "${OJ_CUDA_HOST_DEVICES:-}" ] ||
        counts+=("$n")
done
[ ${#counts[@]} -gt 0 ] || { echo "no GPU can be used"; exit 77; }
[ $# -gt 0 ] || set -- live shapes similar points large
failed=0

list() { # number of GPUs: 0,1,..
    seq -s, 0 $(($1 - 1))
}

# Output lines of the last run, by number of GPUs.
declare -A said
on_each() { # limit in seconds, command, where GPUS is their list, N their number
    local limit=$1 n word command
    shift
    for n in "${counts[@]}"; do
        command=()
        for word; do
            word=${word//GPUS/$(list "$n")}
            command+=("${word//NUMBER/$n}")
        done
        said[$n]=$(timeout "$limit" "${command[@]}" 2>&1)
        case $? in
            0) ;;
            *) failed=1 ;;
        esac
        printf '# %s\n%s\n' "${command[*]}" "${said[$n]}" >>"$log"
    done
}

# A row of the table: what awk takes from the lines of each run, in milliseconds.
row() { # name, awk program that prints a number
    local n ms first='' line
    line=$(printf '%-44s' "$1")
    for n in "${counts[@]}"; do
        ms=$(awk "$2" <<<"${said[$n]}")
        if [ -z "$ms" ]; then
            line+=$(printf ' %18s' "failed")
            failed=1
            continue
        fi
        [ -n "$first" ] || first=$ms
        line+=$(awk -v a="$first" -v b="$ms" \
            'BEGIN { printf(" %9.3f (%5.2f)", b, (b > 0) ? a / b : 0) }')
    done
    echo "$line"
}
# All runs must have found equal pairs.
same() { # name, grep's pattern of what is compared
    local n first='' found
    for n in "${counts[@]}"; do
        found=$(grep -oE "$2" <<<"${said[$n]}" | head -1)
        [ -n "$first" ] || first=$found
        if [ -z "$found" ] || [ "$found" != "$first" ]; then
            echo "DIFFERENT PAIRS: $1, $n GPUs: $found and $first"
            failed=1
        fi
    done
}
field() { # pattern of the line, name of a field: an awk program
    echo "/$1/ { for (i = 1; i <= NF; i++)
        if (index(\$i, \"$2=\") == 1) { print $3 * substr(\$i, length(\"$2\") + 2); exit } }"
}

live_queries() {
    local name
    for name in equals window_30 window_120 dwithin_30 nearest nearest_8; do
        row "$1, 4 M $name" "$(field "queries $name " wall_s 1e3)"
    done
}
batches() { # share, words
    row "$2 jump" "$(field "jumps share=$1 " wall_s 1e3)"
    row "$2 jump, from host memory" "$(field "jumps share=$1 " from_host_s 1e3)"
}

printf '%-44s' "milliseconds (times one GPU)"
for n in "${counts[@]}"; do
    printf ' %18s' "$n GPU"
done
echo
for part; do
    if [ "$SECONDS" -gt "$seconds" ]; then
        echo "$part: left out after $SECONDS s"
        continue
    fi
    case $part in
        live)
            on_each 120 oj_bench_live --gpu NUMBER --n "${POINTS:-16500000}" \
                --queries "${QUERIES:-4000000}" --batches 0 --measure parts
            row "building 16.5 M" "$(field 'gpu build ' wall_s 1e3)"
            batches 0.01 "16.5 M, 1 %"
            batches 0.1 "16.5 M, 10 %"
            live_queries "16.5 M"
            same "kept index, windows" 'queries window_30 n=[0-9]* pairs=[0-9]*'
            ;;
        shapes)
            [ -e "$city/L/meta.json" ] ||
                python3 "$here/citygen.py" "$city/L" 1000 \
                    "${LOTS:-735488}" >>"$log" || failed=1
            for layer in lots zones; do
                on_each 60 oj_bench --backend cuda --gpu GPUS --data "$city/L" \
                    --op intersects --input lots --layer "$layer" \
                    --repeat $((2 * repeat))
                row "lots x $layer" "$(field 'phase=total' wall_ms 1)"
                row "  index" "$(field 'phase=index' wall_ms 1)"
                row "  search" "$(field '^WORK' filter_ms 1)"
                row "  processors" "$(field '^WORK' refine_ms 1)"
                same "lots x $layer" '^ANSWER.*'
            done
            ;;
        similar)
            for kind in titles publications; do
                on_each 60 oj_bench_similar $kind --threshold 5 --gpus GPUS \
                    --repeat "$repeat"
                row "$kind" "$(field '^SIMILAR' total_s 1e3)"
                same "$kind" 'pairs=[0-9]* sum.*'
            done
            for vectors in "64 --difference 0.0836" "16 --difference 0.055"; do
                # shellcheck disable=SC2086  # options
                on_each 60 oj_bench_similar vectors --n "${VECTORS:-1000000}" \
                    --dimensions $vectors --gpus GPUS --repeat "$repeat"
                row "vectors of ${vectors%% *}" "$(field '^SIMILAR' total_s 1e3)"
                row "  index" "/^SIMILAR/ { split(substr(\$0, index(\$0, \"least_s=\") + 8), s, /[+ ]/); print 1e3 * s[1] }"
                same "vectors of ${vectors%% *}" 'pairs=[0-9]* sum.*'
            done
            ;;
        points)
            on_each 120 oj_bench --backend cuda --gpu GPUS --layer lots \
                --n "${ALL:-170000000}" --pinned --repeat "$repeat"
            row "170 M, nearest lot, pinned" "$(field 'phase=total' wall_ms 1)"
            row "  join" "$(field 'phase=join' wall_ms 1)"
            same "170 M" '^ANSWER.*'
            on_each 120 oj_bench --backend cuda --gpu GPUS --layer lots --m 1 \
                --n "${ALL:-170000000}" --pinned --repeat "$repeat"
            row "170 M, one lot: copies alone" "$(field 'phase=join' wall_ms 1)"
            ;;
        large)
            on_each 200 oj_bench_live --gpu NUMBER --n "${LARGE:-256000000}" \
                --queries 4000000 --batches 0 --measure queries
            live_queries "256 M"
            ;;
        *)
            echo "no such part: $part"
            exit 2
            ;;
    esac
done
echo "$SECONDS s; what was printed: $log"
exit $failed
