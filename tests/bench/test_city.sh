#!/usr/bin/env bash
# Tests five joins of the generated city. Other programs, among them GEOS,
# PostGIS and Boost, have found the expected answers; a sample of rows is also
# compared with GEOS. The city is made once and kept.
# usage: test_city.sh OJ_BENCH CITYGEN FOLDER S|M|L [OPTIONS OF OJ_BENCH...]
set -uo pipefail
bench=$1 generator=$2 folder=$3 size=$4
shift 4
options=("$@") # for every run
check=1000     # rows
case $size in
    S) n_points=100000 n_lots=10000 ;;
    M) n_points=1000000 n_lots=100000 ;;
    L) n_points=10000000 n_lots=735488 check=100 ;;
    *) echo "unknown size: $size"; exit 1 ;;
esac
if [ ! -e "$folder/$size.done" ]; then
    # the python of Debian with its packages, even if another one precedes it
    # in PATH
    python=''
    for name in /usr/bin/python3 python3; do
        [ -n "$python" ] || ! "$name" -c 'import numpy' 2>/dev/null ||
            python=$name
    done
    [ -n "$python" ] ||
        { echo "skipped: python3-numpy is missing"; exit 77; }
    mkdir -p "$folder"
    "$python" "$generator" "$folder/$size" $n_points $n_lots > /dev/null ||
        exit 1
    touch "$folder/$size.done"
fi

status=0
answers() { # S, M or L, expected fields of the line ANSWER, options
    local fields=$2 out
    [ "$1" = "$size" ] || return 0
    shift 2
    if ! out=$("$bench" --data "$folder/$size" --check $check "${options[@]}" \
        "$@") ||
        ! grep -qE "^ANSWER .*$fields " <<< "$out" ||
        ! grep -q "^CHECK .*different=0 " <<< "$out"; then
        printf 'expected %s:\n%s\n' "$fields" "$out"
        status=1
    fi
}
lots="--op nearest --layer lots"
streets="--op nearest --layer streets"
inside="--op intersects --layer lots"
near="--op dwithin --layer points --max_distance 20 --unordered"
zones="--op intersects --input lots --layer zones"
# shellcheck disable=SC2086  # the options are words
{
answers S 'pairs=95807 sum_id=95958992582599 .*sum_distance=2805554\.2390[0-9]*' $lots
answers S 'pairs=98092 sum_id=33147460 .*sum_distance=1940682\.0546[0-9]*' $streets
answers S 'pairs=12986 sum_id=13006560540564 .*' $inside
answers S 'pairs=681432 .*sum_ids=67987004215 sum_distance=9001803\.4964[0-9]*' $near
answers S 'pairs=681432 .*sum_ids=67987004215 .*' $near --any_order --batch 999
answers S 'pairs=40202 .*sum_ids=40262924759970 .*' $zones
answers S 'pairs=40202 .*sum_ids=40262924759970 .*' \
    --op intersects --input zones --layer lots --batch 17
answers M 'pairs=972275 sum_id=987700880299768 .*sum_distance=26296820\.026[0-9]*' \
    $lots
answers M 'pairs=981034 sum_id=3119812902 .*sum_distance=18961602\.272[0-9]*' $streets
answers M 'pairs=134917 sum_id=137058014359986 .*' $inside
answers M 'pairs=7475831 .*sum_ids=7475953424293 sum_distance=98719583\.459[0-9]*' \
    $near
answers M 'pairs=431238 .*sum_ids=438126171303663 .*' $zones
answers L 'pairs=9773433 sum_id=10908382407584599 .*sum_distance=257334843\.58[0-9]*' \
    $lots
answers L 'pairs=9810015 sum_id=223976128869 .*sum_distance=188159991\.65[0-9]*' \
    $streets
answers L 'pairs=1366186 sum_id=1524797985519674 .*' $inside
answers L 'pairs=104821854 .*sum_ids=1048373889867127 sum_distance=1384324623\.45[0-9]*' \
    $near
answers L 'pairs=3221845 .*sum_ids=3597521627777583 .*' $zones
}
# and every backend that can
if [ "$size" = S ] && [ ${#options[@]} -eq 0 ]; then
    for backend in geos geos_sorted spatialindex spatialindex_collective; do
        # shellcheck disable=SC2086
        {
        answers S 'pairs=12986 sum_id=13006560540564 .*' $inside \
            --backend $backend
        answers S 'pairs=681432 .*sum_ids=67987004215 .*' $near \
            --backend $backend
        answers S 'pairs=40202 .*sum_ids=40262924759970 .*' $zones \
            --backend $backend
        }
    done
fi
exit $status
