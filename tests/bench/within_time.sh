#!/usr/bin/env bash
# within_time.sh BUILD [REPORTS [DAYS]]
#
# Joins reports with themselves within 100 m and 30 minutes, and by distance
# alone with the distance that leaves as many pairs (to 1 %). Prints the pairs
# and the least user + system seconds of both, in turn, on one thread, and their
# ratio. The reports are points of nycgen with random times of DAYS days.
set -euo pipefail
build=$(realpath "$1") reports=${2:-10000000} days=${3:-30}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"

"$build/tests/nycgen_layers" -points "$reports" -lots 1 -days "$days" city

# Joins with these options; sets pairs and seconds.
join() {
    seconds=$( { TIMEFORMAT='%U %S'
        time "$build/ogrjoin" -q -threads 1 -op dwithin -how inner \
            -agg count -select "" -lco SPATIAL_INDEX=NO \
            -json_summary summary.json "$@" -overwrite out.fgb \
            city_points.fgb city_points.fgb >&2; } 2>&1 |
        awk 'END { print $1 + $2 }')
    pairs=$(python3 -c 'import json; print(json.load(open("summary.json"))["pairs"])')
}

times=(-max_distance 100m -within_time seen:30min)
join "${times[@]}"
wanted=$pairs

# The number of pairs grows with the square of the distance.
distance=30
for _ in 1 2 3 4 5 6 7 8; do
    join -max_distance "${distance}ft"
    read -r distance is_close < <(awk -v d="$distance" -v p="$pairs" -v w="$wanted" \
        'BEGIN { close_enough = (p > w ? p - w : w - p) <= w / 100
            print close_enough ? d : d * sqrt(w / p), close_enough }')
    [ "$is_close" = 1 ] && break
done

least() { printf '%s\n' "$@" | sort -g | head -1; }
with=() alone=()
for _ in 1 2 3; do
    join "${times[@]}"
    with+=("$seconds")
    join -max_distance "${distance}ft"
    alone+=("$seconds")
done
awk -v n="$reports" -v days="$days" -v w="$wanted" -v p="$pairs" -v d="$distance" \
    -v t="$(least "${with[@]}")" -v a="$(least "${alone[@]}")" 'BEGIN {
    printf "%d reports of %d days\n", n, days
    printf "100 m and 30 min: %d pairs, %.2f s\n", w, t
    printf "%.4g ft alone: %d pairs, %.2f s\nratio %.2f\n", d, p, a, t / a }'
