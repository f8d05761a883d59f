#!/usr/bin/env bash
# Runs all tests that need a GPU, on a machine that may have nothing else: the
# programs come from a build folder, or from a bundle.
#
#   tests/gpu.sh [--quick] [FOLDER]    FOLDER: a build folder; without one the
#                                      programs are those in PATH, as after
#                                      tests/pack.sh and its env.sh
# --quick leaves out the large data, and the checkers of memory and races.
# Exit code: 0, 1 if a test fails, 77 if there is no GPU.
#
# The bundle:
#   tests/pack.sh rt.tar.xz build/{ogrjoin,ogrjoin_cuda.so} \
#       build/tests/{oj_bench,test_cuda,test_cuda_quadrant,test_cuda_screen} \
#       build/tests/test_cuda_{errors,grid,layers,similar_text,similar_shapes} \
#       build/tests/test_cuda_similar_vectors build/tests/oj_bench_similar \
#       build/tests/test_cuda_{gpics,live} build/tests/oj_bench_live \
#       build/tests/test_cases
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
quick=0
if [ "${1:-}" = --quick ]; then
    quick=1
    shift
fi
if [ $# -gt 0 ]; then
    export PATH=$1:$1/tests:$PATH
    export OGRJOIN_CUDA_MODULE=${OGRJOIN_CUDA_MODULE:-$1/ogrjoin_cuda.so}
fi
export OGRJOIN_TEST_CASES=$here/cases
work=$(mktemp -d)
making='' # the process that makes the largest city, meanwhile
trap '[ -z "$making" ] || kill "$making" 2>/dev/null; rm -rf "$work"' EXIT
n_passed=0 n_failed=0 n_skipped=0

report() { # name, exit code, seconds; the output is in $work/log
    case $2 in
        0) n_passed=$((n_passed + 1)); echo "passed ($3 s): $1" ;;
        77) n_skipped=$((n_skipped + 1)); echo "skipped: $1" ;;
        *)
            n_failed=$((n_failed + 1))
            echo "FAILED ($2, $3 s): $1"
            tail -15 "$work/log" | sed 's/^/    /'
            ;;
    esac
}
try() { # name, command
    local name=$1 start=$SECONDS status
    shift
    timeout 280 "$@" >"$work/log" 2>&1
    status=$?
    report "$name" $status $((SECONDS - start))
}
skip() {
    n_skipped=$((n_skipped + 1))
    echo "skipped: $1"
}

bench() { # options: the line ANSWER
    timeout 250 oj_bench "$@" 2>"$work/log" >"$work/out"
    local status=$?
    cat "$work/out" >>"$work/log"
    grep '^ANSWER' "$work/out"
    return $status
}
answers() { # name, fields of the line ANSWER, options
    local name=$1 fields=$2 start=$SECONDS line
    shift 2
    line=$(bench --backend cuda "$@")
    [[ $line =~ $fields ]]
    report "$name" $? $((SECONDS - start))
}
# The line ANSWER has sums over the rows and over the bits of every distance.
truth=''
same() { # name, options of both, options of the GPU's run after --
    local name=$1 start=$SECONDS ours common=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        common+=("$1")
        shift
    done
    [ $# -eq 0 ] || shift
    truth=$(bench --backend cpu "${common[@]}")
    ours=$(bench --backend cuda "${common[@]}" "$@")
    echo "cpu: $truth" >>"$work/log"
    [ -n "$ours" ] && [ "$ours" = "$truth" ]
    report "as on the CPU: $name" $? $((SECONDS - start))
}
known() { # name, fields of the line that both gave just now
    [[ $truth =~ $2 ]]
    report "as other programs: $1" $? 0
}
refused() { # name, text that is said, command
    local name=$1 text=$2 status=0
    shift 2
    if "$@" >"$work/log" 2>&1 || ! grep -q "$text" "$work/log"; then
        status=1
    fi
    report "$name" $status 0
}

if ! command -v oj_bench >/dev/null; then
    echo "oj_bench is neither in a folder named nor in PATH"
    exit 1
fi
if ! oj_bench --backend cuda --n 1000 --m 100 >"$work/log" 2>&1; then
    tail -1 "$work/log"
    calls='try|answers|same|known|refused|checked'
    n=$(grep -cE "^ *($calls) " "${BASH_SOURCE[0]}")
    echo "0 passed, 0 failed, $n skipped: no GPU can be used"
    exit 77
fi

test_city=(bash "$here/bench/test_city.sh")
made_by=("$here/bench/citygen.py" "$work/city")
if [ $quick = 0 ]; then
    "${test_city[@]}" true "${made_by[@]}" L >/dev/null 2>&1 &
    making=$!
fi

lots=(--layer lots) boundary=(--layer lots --distance_to boundary)
streets=(--layer streets) inside=(--layer lots --op intersects)
ten=(--n 10000000)

try "unit tests of the backend" test_cuda
grep 'pairs of random features' "$work/log"
try "unit tests of the papers' method" test_cuda_quadrant
try "unit tests of lines and polygons" test_cuda_screen
for program in test_cuda_layers test_cuda_grid test_cuda_errors \
    test_cuda_similar_text test_cuda_similar_shapes \
    test_cuda_similar_vectors test_cuda_gpics test_cuda_live; do
    if command -v "$program" >/dev/null; then
        try "$program" "$program"
    else
        skip "$program: it is missing"
    fi
done
try "truth cases on every backend" test_cases
if command -v oj_bench_live >/dev/null; then
    try "the kept index, 1M points" oj_bench_live --gpu 1 --n 1000000 \
        --batches 20 --queries 200000
    grep '^LIVE gpu' "$work/log"
    if [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -gt 1 ]; then
        try "the kept index on two GPUs, 1M points" oj_bench_live --gpu 2 \
            --n 1000000 --batches 20 --queries 200000
        grep '^LIVE gpu' "$work/log"
    else
        skip "the kept index on two GPUs: there is one"
    fi
else
    skip "oj_bench_live: it is missing"
fi

# These answers were also found by other programs.
answers "10M, nearest lot boundary" \
    'matched=9352678 .*sum_q1024=237273407825 ' "${ten[@]}" "${boundary[@]}"
answers "10M, nearest lot" \
    'matched=9352722 .*sum_q1024=229957233885 checksum=febe38265d73895a' \
    "${ten[@]}" "${lots[@]}"
answers "10M, nearest street" \
    'matched=9291891 .*sum_q1024=147425469716 ' "${ten[@]}" "${streets[@]}"
answers "10M, points in lots" 'matched=772698 ' "${ten[@]}" "${inside[@]}"
for size in S M; do
    try "the city of size $size" "${test_city[@]}" oj_bench "${made_by[@]}" \
        $size --backend cuda
done

# The answers must be equal bit for bit, in batches of every size and with
# little memory.
same "nearest lot boundary" "${ten[@]}" "${boundary[@]}"
same "nearest lot" "${ten[@]}" "${lots[@]}"
same "nearest street" "${ten[@]}" "${streets[@]}"
same "points in lots" "${ten[@]}" "${inside[@]}"
same "touches" --n 1000000 --layer lots --op touches
same "in the envelopes of lots" "${ten[@]}" --layer lots --op bbox
same "lots within 30 ft" --n 1000000 --layer lots --op dwithin \
    --max_distance 30
same "very many lots within 4,000 ft" --n 2000 --layer lots --op dwithin \
    --max_distance 4000
city=(--data "$work/city/M" --input points --layer points)
if [ -e "$work/city/M.done" ]; then
    same "points near points" "${city[@]}" --op dwithin --max_distance 20
    same "pairs of points" "${city[@]}" --op dwithin --max_distance 20 \
        --unordered
    same "the nearest other point" "${city[@]}" --exclude_self
    same "equal points" "${city[@]}" --op equals
else
    skip "pairs of points, 4 joins: there is no city"
fi
same "within 1,000 ft" "${ten[@]}" "${boundary[@]}" --max_distance 1000
same "0 ft" "${ten[@]}" "${boundary[@]}" --max_distance 0
same "unbounded" --n 1000000 "${boundary[@]}" --max_distance inf
same "three nearest" --n 1000000 "${boundary[@]}" --k 3
same "skewed points" "${ten[@]}" "${lots[@]}" --skew 3
same "identical points" --n 1000000 "${lots[@]}" --identical 9000000
same "a large polygon" --n 1000000 "${lots[@]}" --add_polygon 200000
same "a large polygon, inside" --n 1000000 "${inside[@]}" --add_polygon 200000
same "far away" --n 1000000 "${lots[@]}" --far
same "batches of 1,000" --n 1000000 "${lots[@]}" -- --batch 1000
same "batches of 1,000, lists" --n 1000000 "${inside[@]}" -- --batch 1000
same "a thousand on the way" --n 1000000 "${lots[@]}" -- --gpu_batch 1000
same "a million on the way" "${ten[@]}" "${lots[@]}" -- --gpu_batch 1000000
same "all on the way" "${ten[@]}" "${lots[@]}" -- --gpu_batch 10000000
same "2 GB" "${ten[@]}" "${lots[@]}" -- --gpu_memory 2000000000
same "2 GB, lists" "${ten[@]}" "${inside[@]}" -- --gpu_memory 2000000000
# If the join side needs more memory than this, the CPU answers.
for megabytes in 500 50 10 1; do
    bytes=(--gpu_memory ${megabytes}000000)
    same "$megabytes MB" --n 1000000 "${lots[@]}" -- "${bytes[@]}"
    same "$megabytes MB, streets" --n 1000000 "${streets[@]}" -- "${bytes[@]}"
    same "$megabytes MB, lists" --n 1000000 "${inside[@]}" -- "${bytes[@]}"
done
same "all GPUs" "${ten[@]}" "${lots[@]}" -- --gpu all
same "all GPUs, lists" "${ten[@]}" "${inside[@]}" -- --gpu all
same "pinned memory" "${ten[@]}" "${lots[@]}" -- --pinned
if [ -e "$work/city/M.done" ]; then
    city=(--data "$work/city/M" --input points --layer points)
    for megabytes in 50 10; do
        same "points near points, $megabytes MB" "${city[@]}" --op dwithin \
            --max_distance 20 -- --gpu_memory ${megabytes}000000
    done
fi
city=(--data "$work/city/M" --input lots)
same "lots and zones" "${city[@]}" --op intersects --layer zones
same "lots and lots" "${city[@]}" --op intersects --layer lots
same "lots and lots, all GPUs" "${city[@]}" --op intersects --layer lots -- \
    --gpu all
same "lots and lots, chunks" "${city[@]}" --op intersects --layer lots -- \
    --gpu_batch 7000
same "lots and lots, batches" "${city[@]}" --op intersects --layer lots -- \
    --batch 5000
same "envelopes of lots" "${city[@]}" --op bbox --layer lots
same "lots within zones" "${city[@]}" --op within --layer zones
same "lots that touch lots" "${city[@]}" --op touches --layer lots
same "lots and lots, 50 MB" "${city[@]}" --op intersects --layer lots -- \
    --gpu_memory 50000000
# Sums of values without pairs, of 900 zones that overlap and one more around
# all.
zones=(--layer lots --m 100 --zones 900 --add_polygon 500 --op intersects
    --sums any)
same "sums by zone" "${ten[@]}" "${zones[@]}"
same "sums by zone, batches" "${ten[@]}" "${zones[@]}" -- --batch 262144
same "sums by zone, identical points" --n 1000000 "${zones[@]}" \
    --identical 3000000
same "sums by zone, pinned" --n 2000000 "${zones[@]}" -- --pinned
same "sums by zone, 2 GB" "${ten[@]}" "${zones[@]}" -- --gpu_memory 2000000000
same "sums by zone, all GPUs" "${ten[@]}" "${zones[@]}" -- --gpu all
same "sums by lot" "${ten[@]}" "${inside[@]}" --sums any
papers=(--backend cuda_quadrant)
same "the papers' method" "${ten[@]}" "${lots[@]}" -- "${papers[@]}"
same "the papers' method, boundary" "${ten[@]}" "${boundary[@]}" -- \
    "${papers[@]}"

if [ $quick = 1 ]; then
    skip "170M points, 4 joins"
    skip "the city of size L, 6 joins"
    skip "memory and races"
else
    all=(--n 170000000)
    same "170M, nearest lot boundary" "${all[@]}" "${boundary[@]}"
    known "170M, nearest lot boundary" \
        'matched=159009823 .*sum_q1024=4034606752505 '
    answers "170M, nearest lot boundary, the papers' method" \
        'matched=159009823 .*sum_q1024=4034606752505 ' \
        "${all[@]}" "${boundary[@]}" "${papers[@]}"
    same "170M, nearest lot" "${all[@]}" "${lots[@]}"
    same "170M, nearest street" "${all[@]}" "${streets[@]}"
    # The other program's sum is one unit larger, because one of the distances
    # may be rounded either way.
    known "170M, nearest street" \
        'matched=157972438 .*sum_q1024=250550996170[67] '
    same "170M, points in lots" "${all[@]}" "${inside[@]}"
    known "170M, points in lots" 'pairs=13108918 '

    wait "$making"
    making=''
    try "the city of size L" "${test_city[@]}" oj_bench "${made_by[@]}" L \
        --backend cuda
    if [ -e "$work/city/L.done" ]; then
        city=(--data "$work/city/L" --layer)
        same "L, nearest lot" "${city[@]}" lots
        same "L, nearest street" "${city[@]}" streets
        same "L, points in lots" "${city[@]}" lots --op intersects
        same "L, 10^8 pairs of points" "${city[@]}" points --op dwithin \
            --max_distance 20 --unordered
        same "L, lots and zones" "${city[@]}" zones --op intersects \
            --input lots
    else
        skip "the city of size L, 5 joins: there is no city"
    fi
    # Small jobs of every family of kernels. The unit tests would take too long
    # under the checkers.
    checked() { # tool, options of the join
        local tool=$1
        shift
        try "$tool: $*" compute-sanitizer --tool "$tool" --error-exitcode 9 \
            oj_bench --backend cuda --n 20000 --m 2000 "$@"
    }
    for tool in memcheck racecheck; do
        if ! command -v compute-sanitizer >/dev/null; then
            skip "$tool: compute-sanitizer is missing"
            continue
        fi
        checked $tool --layer lots
        checked $tool --layer lots --distance_to boundary --max_distance inf
        checked $tool --layer lots --op intersects
        checked $tool --layer lots --op bbox
        checked $tool --layer lots --op dwithin --max_distance 30
        checked $tool --layer streets --k 3 --ties all
        checked $tool --layer lots --max_distance 100 "${papers[@]}"
        if command -v oj_bench_live >/dev/null; then
            try "$tool: the kept index" compute-sanitizer --tool "$tool" \
                --error-exitcode 9 oj_bench_live --gpu 1 --n 20000 \
                --batches 5 --queries 500
        else
            skip "$tool: oj_bench_live is missing"
        fi
        if [ -e "$work/city/S.done" ]; then
            checked $tool --data "$work/city/S" --input points --layer points \
                --op dwithin --max_distance 20 --unordered
            checked $tool --data "$work/city/S" --input lots --layer zones \
                --op intersects
        fi
    done
fi

# Joins from layer to layer. Every pair is compared with GEOS.
if command -v ogrjoin >/dev/null && command -v ogr2ogr >/dev/null; then
    try "the devices are listed" bash -c 'ogrjoin --devices | grep ": usable$"'
    awk 'BEGIN { srand(1); print "WKT,v"
        for (i = 0; i < 20000; i++)
            printf "\"POINT(%.3f %.3f)\",%d\n", 900 * rand(), 900 * rand(), i
        }' >"$work/points.csv"
    awk 'BEGIN { print "WKT,name"
        for (i = 0; i < 900; i++) {
            x = 30 * (i % 30); y = 30 * int(i / 30); w = 21 + i % 9
            printf "\"POLYGON((%d %d,%d %d,%d %d,%d %d))\",zone %d\n", x, y,
                x + w, y, x + w, y + 28, x, y, i
        } }' >"$work/zones.csv"
    for format in GPKG FlatGeobuf; do
        for layer in points zones; do
            ogr2ogr -q -f $format -a_srs EPSG:2263 -nln $layer \
                -oo AUTODETECT_TYPE=YES "$work/$layer.$format" \
                "$work/$layer.csv"
        done
        try "$format, nearest" ogrjoin -q -backend cuda -op nearest \
            -max_distance 5 -validate -f $format "$work/near.$format" \
            "$work/points.$format" "$work/zones.$format"
        for aggregates in "count" "count, sum(v)"; do
            for backend in cpu cuda; do
                ogrjoin -q -overwrite -backend $backend -op contains \
                    -agg "$aggregates" -f CSV "$work/sums_$backend.csv" \
                    "$work/zones.$format" "$work/points.$format"
            done
            try "$format, $aggregates" cmp "$work/sums_cpu.csv" \
                "$work/sums_cuda.csv"
        done
        try "$format, within" ogrjoin -q -backend cuda -op within \
            -validate -f $format "$work/within.$format" \
            "$work/points.$format" "$work/zones.$format"
    done
    # Two million points, some with NULLs, and one more zone around all.
    awk 'BEGIN { srand(2); print "WKT,v,i"
        for (i = 0; i < 2000000; i++) {
            printf "\"POINT(%.3f %.3f)\",", 900 * rand(), 900 * rand()
            if (i % 20) printf "%.2f", 200 * rand()
            print "," (i % 7 ? int(4e9 * rand()) - 2000000000 : "")
        } }' >"$work/many.csv"
    awk 'BEGIN { print "WKT,name"
        for (i = 0; i < 900; i++) {
            x = 30 * (i % 30); y = 30 * int(i / 30); w = 35 + i % 20
            printf "\"POLYGON((%d %d,%d %d,%d %d,%d %d))\",zone %d\n", x, y,
                x + w, y, x + w, y + 41, x, y, i
        }
        print "\"POLYGON((0 0,900 0,900 900,0 900,0 0))\",all" }' \
        >"$work/wide.csv"
    for layer in many wide; do
        ogr2ogr -q -f FlatGeobuf -a_srs EPSG:2263 -nln $layer \
            -lco SPATIAL_INDEX=NO -oo AUTODETECT_TYPE=YES \
            "$work/$layer.FlatGeobuf" "$work/$layer.csv"
    done
    for backend in cpu cuda; do
        ogrjoin -overwrite -backend $backend -op contains \
            -agg "count, sum(v), mean(v), count(v), sum(i), mean(i), count(i)" \
            -f CSV "$work/sums_$backend.csv" "$work/wide.FlatGeobuf" \
            "$work/many.FlatGeobuf" >"$work/said" 2>&1
    done
    try "2 million points, sums by zone" cmp "$work/sums_cpu.csv" \
        "$work/sums_cuda.csv"
    try "which the GPU has added up" grep "pairs, added up on the GPU" \
        "$work/said"
    # The join side is in tiles. Each tile goes to the device.
    job=(-overwrite -op nearest -max_distance 5 -f CSV)
    ogrjoin -q -backend cpu "${job[@]}" "$work/whole.csv" "$work/zones.GPKG" \
        "$work/points.GPKG"
    ogrjoin -backend cuda -memory 1M "${job[@]}" "$work/tiles.csv" \
        "$work/zones.GPKG" "$work/points.GPKG" >"$work/said" 2>&1
    try "in tiles" grep 'in [0-9]* tiles' "$work/said"
    try "tiles and all at once" cmp "$work/whole.csv" "$work/tiles.csv"
    job=(-overwrite -op within -f CSV "$work/none.csv" "$work/points.GPKG"
        "$work/zones.GPKG")
    refused "no such GPU" 'there is no GPU 60' \
        ogrjoin -q -backend cuda -gpu 60 "${job[@]}"
    refused "no module" 'there is no CUDA module /nowhere/m.so' \
        env OGRJOIN_CUDA_MODULE=/nowhere/m.so \
        ogrjoin -q -backend cuda "${job[@]}"
    refused "no GPU to be seen" 'cuda cannot be used' \
        env CUDA_VISIBLE_DEVICES= ogrjoin -q -backend cuda "${job[@]}"
    try "auto without a GPU" \
        env CUDA_VISIBLE_DEVICES= ogrjoin -q -backend auto "${job[@]}"
else
    skip "from layer to layer: ogrjoin or ogr2ogr is missing"
fi

echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
[ $n_failed -eq 0 ]
