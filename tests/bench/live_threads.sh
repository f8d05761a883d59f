#!/usr/bin/env bash
# Measures batches of the kept index with several threads: a table of
# oj_bench_live with 1, 2, 4 .. threads, in wall-clock seconds and millions of
# changes per second.
#
#   tests/bench/live_threads.sh [PROGRAM [POINTS [MOST_THREADS [REPEAT]]]]
#       PROGRAM: build/tests/tests/oj_bench_live; POINTS: 10000000;
#       MOST_THREADS: all processors; REPEAT: runs with each number (2)
#
# The least of all runs with one number of threads is printed.  Ten million
# points take about 2 GB and, with one thread, 30 s a run.
set -euo pipefail
program=${1:-build/tests/tests/oj_bench_live}
points=${2:-10000000}
most=${3:-$(nproc)}
repeat=${4:-2}

counts=()
for ((n = 1; n < most; n *= 2)); do counts+=("$n"); done
counts+=("$most")

printf '%-8s %-8s %-6s %10s %12s %8s\n' \
    threads what share wall_s M_a_second gain
for n in "${counts[@]}"; do
    for ((r = 0; r < repeat; r++)); do
        "$program" --n "$points" --threads "$n" --batches 0
    done | awk -v threads="$n" '
    function value(name,  i, pair) {
        for (i = 1; i <= NF; i++)
            if (split($i, pair, "=") == 2 && pair[1] == name) return pair[2]
        return ""
    }
    {
        share = value("share")
        key = $2 " " (share == "" ? "1" : share)
        if (!(key in least)) order[++n] = key
        rate = value($2 == "build" ? "points_per_s" : "moves_per_s")
        wall = value("wall_s") + 0
        if (!(key in least) || wall < least[key]) {
            least[key] = wall
            best[key] = rate
        }
    }
    END {
        for (i = 1; i <= n; i++)
            print threads, order[i], least[order[i]], best[order[i]]
    }'
done | awk '{
    key = $2 " " $3
    if (!(key in one)) one[key] = $4
    printf "%-8s %-8s %-6s %10.4f %12.2f %8.2f\n", $1, $2, $3, $4, $5 / 1e6,
        ($4 > 0 ? one[key] / $4 : 0)
}'
