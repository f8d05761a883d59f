#!/usr/bin/env bash
# Compares two builds of the program, an old one and a new one.
#
#   against.sh OLD NEW [--answers | --speed | --all] [options]
#
# OLD, NEW: build folders with ogrjoin, tests/oj_bench, the plugin ogr_JOIN.so
# and what they link to. --answers runs both on the same inputs and compares
# what they write byte by byte; --speed runs both in turn, pair by pair, and
# compares medians; --all, the default, does both. Exit code: 0, 1 where answers
# differ, 2 where only a row is slower or larger by more than 3 %.
#
#   --lines N       random command lines (2000), of options that OLD has, too;
#                   see random_commands.py
#   --seed S        their seed (1)
#   --strict        words of messages that differ are a failure, too
#   --pairs N       runs of each program in a row of the speeds (5)
#   --only REGEX    only the rows and kinds of answers (samples, real, random)
#                   whose name matches
#   --city FOLDER   a city of citygen.py: 1000000 points, 100000 lots
#   --keep FOLDER   work there, and leave everything; inputs that are there are
#                   used again
#
# Real layers are those of tests/cases/real_joins.txt that lie in the folder
# OGRJOIN_TEST_DATA. The backend cuda is the emulated device, where both builds
# have it.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$here/../..

# The rows of speeds: name | measure | command.
# Measures: cpu and wall are seconds of oj_bench's own clock, for its index and
# its join without reading. Sums have wall time alone. cpu_run and wall_run are
# seconds of the whole process.
# Commands: bench is oj_bench on the city, nycgen is oj_bench on generated
# layers, join is ogrjoin on layers of that size.
rows='
nearest lot, 100 ft             | cpu  | bench --threads 1 --repeat 3
nearest lot, 100 ft, 2 threads  | wall | bench --threads 2 --repeat 3
nearest lot, 1,000 ft           | cpu  | bench --threads 1 --repeat 3 --max_distance 1000
nearest lot, no distance        | cpu  | bench --threads 1 --repeat 3 --max_distance inf
nearest lot, boundary           | cpu  | bench --threads 1 --repeat 3 --distance_to boundary
nearest lot, batches            | cpu  | bench --threads 1 --repeat 3 --batch 65536
nearest lot, a large polygon    | cpu  | bench --threads 1 --repeat 3 --add_polygon 100000
nearest lot, identical points   | cpu  | bench --threads 1 --repeat 3 --identical 1000000
nearest lot, far off            | cpu  | bench --threads 1 --repeat 3 --far
nearest lot, far, no distance   | cpu  | bench --threads 1 --repeat 3 --far --max_distance inf
three nearest lots              | cpu  | bench --threads 1 --repeat 3 --k 3
20 nearest lots with ties       | cpu  | bench --threads 1 --n 100000 --k 20 --ties all --max_distance inf
nearest street                  | cpu  | bench --threads 1 --repeat 3 --layer streets
nearest lot, no nearer than 50  | cpu  | bench --threads 1 --repeat 3 --min_distance 50
nearest other point             | cpu  | bench --threads 1 --input points --layer points --exclude_self
nearest street of each lot      | cpu  | bench --threads 1 --input lots --layer streets
points in lots                  | cpu  | bench --threads 1 --repeat 3 --op intersects
points in envelopes of lots     | cpu  | bench --threads 1 --repeat 3 --op bbox
points in zones                 | cpu  | bench --threads 1 --repeat 3 --op intersects --layer zones
zones and their points          | cpu  | bench --threads 1 --op intersects --input zones --layer points
sums by zone                    | cpu  | bench --threads 1 --op intersects --layer zones --sums any
sums by zone, of pairs          | cpu  | bench --threads 1 --op intersects --layer zones --sums pairs
equal points                    | cpu  | bench --threads 1 --repeat 3 --op equals --input points --layer points
points within 20 ft             | cpu  | bench --threads 1 --op dwithin --input points --layer points --max_distance 20 --unordered --any_order
points within 20 ft, in order   | cpu  | bench --threads 1 --op dwithin --input points --layer points --max_distance 20 --unordered
points within 20 ft, 2 threads  | wall | bench --threads 2 --op dwithin --input points --layer points --max_distance 20 --unordered --any_order
lots within 30 ft of points     | cpu  | bench --threads 1 --op dwithin --max_distance 30
lots within 30 ft of lots       | cpu  | bench --threads 1 --op dwithin --input lots --max_distance 30
lots x zones                    | cpu  | bench --threads 1 --repeat 3 --op intersects --input lots --layer zones
zones x lots                    | cpu  | bench --threads 1 --repeat 3 --op intersects --input zones --layer lots
lots x lots                     | cpu  | bench --threads 1 --op intersects --input lots --layer lots
lots x lots, envelopes          | cpu  | bench --threads 1 --repeat 3 --op bbox --input lots --layer lots
lots x lots, touches            | cpu  | bench --threads 1 --op touches --input lots --layer lots
lots x lots, overlaps           | cpu  | bench --threads 1 --op overlaps --input lots --layer lots
lots x lots, equals             | cpu  | bench --threads 1 --repeat 3 --op equals --input lots --layer lots
lots x lots, shared edges       | cpu  | bench --threads 1 --op relate --mask F***1**** --input lots --layer lots
lots within zones               | cpu  | bench --threads 1 --repeat 3 --op within --input lots --layer zones
streets across zones            | cpu  | bench --threads 1 --repeat 3 --op crosses --input streets --layer zones
zones x zones                   | cpu  | bench --threads 1 --repeat 3 --op intersects --input zones --layer zones
quadrants                       | cpu  | bench --threads 1 --n 100000 --backend quadrant --distance_to boundary
GEOS, sorted                    | cpu  | bench --threads 1 --n 100000 --backend geos_sorted
libspatialindex                 | cpu  | bench --threads 1 --n 10000 --backend spatialindex
libspatialindex, quadrants      | cpu  | bench --threads 1 --n 50000 --backend spatialindex_collective
nycgen, nearest lot             | cpu  | nycgen --threads 1 --n 3000000 --layer lots
nycgen, nearest lot, boundary   | cpu  | nycgen --threads 1 --n 3000000 --layer lots --distance_to boundary
nycgen, nearest street          | cpu  | nycgen --threads 1 --n 3000000 --layer streets
nycgen, points in lots          | cpu  | nycgen --threads 1 --n 3000000 --layer lots --op intersects
nycgen, skewed                  | cpu  | nycgen --threads 1 --n 3000000 --layer lots --skew 3
FlatGeobuf, nearest lot         | wall_run | join -op nearest -max_distance 100ft -lco SPATIAL_INDEX=NO out.fgb pickups.fgb lots.fgb
FlatGeobuf, the same, cpu       | cpu_run  | join -op nearest -max_distance 100ft -lco SPATIAL_INDEX=NO out.fgb pickups.fgb lots.fgb
FlatGeobuf, with index          | wall_run | join -op nearest -max_distance 100ft out.fgb pickups.fgb lots.fgb
FlatGeobuf, 4 MB                | wall_run | join -op nearest -max_distance 100ft -memory 4M -lco SPATIAL_INDEX=NO out.fgb pickups.fgb lots.fgb
FlatGeobuf, pairs, 4 MB         | wall_run | join -op intersects -how inner -memory 4M -lco SPATIAL_INDEX=NO out.fgb zones.fgb pickups.fgb
FlatGeobuf, sums by zone        | wall_run | join -op contains -agg count,sum(fare),mean(fare) out.fgb zones.fgb pickups.fgb
FlatGeobuf, medians by zone     | wall_run | join -op contains -agg median(fare),mode(hour) out.fgb zones.fgb pickups.fgb
FlatGeobuf, lots cut by zones   | wall_run | join -how inner -geometry intersection -overlap area out.fgb lots.fgb zones.fgb
GeoPackage, nearest lot         | wall_run | join -op nearest -max_distance 100ft -lco SPATIAL_INDEX=NO out.gpkg pickups.gpkg lots.gpkg
GeoPackage, sums by zone        | wall_run | join -op contains -agg count,sum(fare),mean(fare) out.gpkg zones.gpkg pickups.gpkg
GeoPackage, lots in zones       | wall_run | join -op within out.gpkg lots.gpkg zones.gpkg
'

# Text that differs between two runs: seconds, files with random names,
# versions. For standard output and error, summaries and tables of -benchmark.
masks='
s/[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)? s\b/# s/g
s/"seconds": \{[^}]*\}/"seconds": #/
s/^(.{42} +[0-9]+ +[0-9]+)( +[0-9.]+| +-){7}/\1 #/
s/^("[^"]*",[a-z_]+,[0-9]+,[0-9]+,[0-9]+)(,[0-9.]*){7}/\1,#/
s/"(arrow|lane)": ("[A-Za-z]*"|true|false)/"lane": #/
s/ogrjoin-[0-9a-zA-Z]{6}\b/ogrjoin-#/g
s/("version": |^ogrjoin )"?[0-9]+\.[0-9]+\.[0-9]+/\1#/
'

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '$d'; exit 64; }
what=--all n_lines=2000 seed=1 strict=0 n_pairs=5 only=. city='' keep='' builds=()
while [ $# -gt 0 ]; do
    case $1 in
        --answers | --speed | --all) what=$1 ;;
        --lines) n_lines=$2; shift ;;
        --seed) seed=$2; shift ;;
        --strict) strict=1 ;;
        --pairs) n_pairs=$2; shift ;;
        --only) only=$2; shift ;;
        --city) city=$(realpath "$2"); shift ;;
        --keep) keep=$2; shift ;;
        -*) usage ;;
        *) builds+=("$(realpath "$1")") ;;
    esac
    shift
done
[ ${#builds[@]} -eq 2 ] || usage
for build in "${builds[@]}"; do
    [ -x "$build/ogrjoin" ] || { echo "no ogrjoin in $build"; exit 64; }
done
for program in python3 ogr2ogr; do
    command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    work=$(realpath "$keep")
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

# with SIDE COMMAND...: SIDE is 0 for the old program, 1 for the new one
device=tests/cuda_host/ogrjoin_cuda.so
[ -e "${builds[0]}/$device" ] && [ -e "${builds[1]}/$device" ] || device=none
with() {
    local build=${builds[$1]}
    shift
    env LD_LIBRARY_PATH="$build" GDAL_DRIVER_PATH="$build" \
        OGRJOIN_CUDA_MODULE="$build/$device" PATH="$build:$PATH" \
        OGR_CURRENT_DATE=2000-01-01T00:00:00.000Z "$@"
}
# tool NAME: path of a program that makes inputs; both sides use one program
tool() {
    local build
    for build in "${builds[1]}" "${builds[0]}"; do
        [ ! -x "$build/$1" ] || { echo "$build/$1"; return 0; }
    done
    return 1
}
is_wanted() { [[ $1 =~ $only ]]; }

# --- answers ---------------------------------------------------------------

# Each function writes the answers of the program of SIDE below FOLDER.
# shellcheck disable=SC2317  # called by name
{

samples() { # SIDE FOLDER: every join by example
    local generator
    generator=$(tool samples/make_city) || return 77
    with "$1" env PATH="${builds[$1]}:$(dirname "$generator"):$PATH" \
        bash "$top/samples/joins.sh" "$2" >"$2/all.out" 2>"$2/all.err"
    echo $? >"$2/exit"
}

real() { # SIDE FOLDER: joins of real layers, to CSV without geometries
    local data=${OGRJOIN_TEST_DATA:-} n=0 expected input input_layer join
    local join_layer options words
    [ -d "$data" ] || return 77
    while IFS='|' read -r expected input input_layer join join_layer options; do
        case $expected in '#'* | '' | long*) continue ;; esac
        input=${input// /} join=${join// /}
        input_layer=${input_layer// /} join_layer=${join_layer// /}
        [ -e "$data/$input" ] && [ -e "$data/$join" ] || continue
        n=$((n + 1))
        read -ra words <<<"$options"
        case " $options " in
            *' -op '* | *' -relate '*) ;;
            *) words+=(-op nearest) ;;
        esac
        [ "$input_layer" = - ] || words+=(-input_layer "$input_layer")
        [ "$join_layer" = - ] || words+=(-join_layer "$join_layer")
        mkdir "$2/$n"
        (cd "$2/$n" && with "$1" ogrjoin "${words[@]}" -json_summary summary.json \
            out.csv "$data/$input" "$data/$join" >1.out 2>1.err
        echo $? >./exit)
        printf '%s\n' "${words[*]} $input $join" >"$2/$n/commands"
    done <"$top/tests/cases/real_joins.txt"
    [ "$n" -gt 0 ] || return 77
}

random() { # SIDE FOLDER
    [ ! -d "$work/inputs" ] || cp -r "$work/inputs" "$2/inputs"
    with "$1" python3 "$here/random_commands.py" "$seed" "$n_lines" "$2" \
        "${builds[$1]}" "${builds[0]}" || return
    [ -d "$work/inputs" ] || cp -r "$2/inputs" "$work/inputs"
}
}

# compare KIND: compares what both programs have written; differing words of
# messages are counted separately
compare() {
    local old=$work/$1/old new=$work/$1/new path said n_words=0 n_different=0
    for path in "$old" "$new"; do
        find "$path" \( -name '*.out' -o -name '*.err' -o -name summary.json \
            -o -name bench.csv \) -print0 |
            xargs -0 -r sed -E -i -e "$masks" -e "s|$path|FOLDER|g" \
                -e "s|${builds[0]}|BUILD|g; s|${builds[1]}|BUILD|g"
    done
    while read -r said; do
        path=${said#Files "$old"/}
        path=${path%% and "$new"*}
        case $path in
            Only*) ;;
            *.out | *.err) said="words: $path" ;;
        esac
        case $said in
            words*) n_words=$((n_words + 1)) ;;
            *) n_different=$((n_different + 1)) said="DIFFERENT: $said" ;;
        esac
        printf '%s\n' "$said"
        [ ! -e "$old/$path" ] || {
            sed 's/^/    $ /' "$old/$(dirname "$path")/commands" 2>/dev/null
            diff "$old/$path" "$new/$path" | sed -n 's/^[<>]/    &/p' | head -8
        }
    done < <(diff -rq "$old" "$new")
    echo "$1: $(find "$old" -type f | wc -l) files, $n_different different," \
        "and words of $n_words messages"
    [ $n_different -eq 0 ] && { [ $strict = 0 ] || [ $n_words -eq 0 ]; } ||
        status=1
}

answers() {
    local kind side code
    for kind in samples real random; do
        is_wanted $kind || continue
        rm -rf "${work:?}/$kind"
        code=0
        for side in 0 1; do
            path=$work/$kind/$([ $side = 0 ] && echo old || echo new)
            mkdir -p "$path"
            $kind $side "$path" || { code=$?; break; }
        done
        case $code in
            0) compare $kind ;;
            77) echo "$kind: skipped, its inputs are missing" ;;
            *) echo "$kind: cannot be run"; status=1 ;;
        esac
    done
}

# --- speed -----------------------------------------------------------------

# Layers for the commands, and the arrays of the city.
make_layers() {
    local generator layer
    generator=$(tool samples/make_city) || return 1
    [ -e "$work/layers/zones.fgb" ] ||
        "$generator" -avenues 50 -streets 50 -pickups 1000000 \
            "$work/layers" >/dev/null || return 1
    for layer in pickups lots zones; do
        ogr2ogr -q -lco SPATIAL_INDEX=NO --config OGR_SQLITE_SYNCHRONOUS OFF \
            "$work/layers/$layer.gpkg" "$work/layers/$layer.fgb" || return 1
    done
}
make_city() {
    local python
    for python in /usr/bin/python3 python3; do
        "$python" -c 'import numpy' 2>/dev/null || continue
        "$python" "$here/citygen.py" "$work/city" 1000000 100000 >/dev/null
        return
    done
    return 1
}

# measure SIDE MEASURE COMMAND...: prints the time in ms, the peak memory in
# KB, and the answer, if the command prints one
measure() {
    local side=$1 measure=$2 command=$3 build=${builds[$1]} name
    local -a words
    shift 3
    case $command in
        bench) words=("$build/tests/oj_bench" --data "$city" "$@") ;;
        nycgen) words=("$build/tests/oj_bench" "$@") ;;
        join)
            rm -f "$work"/layers/out.*
            words=("$build/ogrjoin" -q "$@") ;;
    esac
    # The backend auto would use the emulated device as if it were a real one.
    (cd "$work/layers" && with "$side" env OGRJOIN_CUDA_MODULE=none \
        /usr/bin/time -o "$work/time" -f '%e %U %S %M' "${words[@]}") >"$work/said" 2>&1 ||
        { tail -3 "$work/said" >&2; return 1; }
    name=$([ "$measure" = cpu ] && echo cpu_ms || echo wall_ms)
    awk -v measure="$measure" -v name="$name" '
        FNR == NR { e = $1; u = $2 + $3; kb = $4; next }
        /^SUMS/ { sub(/total_ms/, "phase=total " name) }
        /phase=total/ { match($0, name "=[0-9.]+")
            ms = substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) }
        /^ANSWER/ { answer = $0; gsub(/ /, "_", answer) }
        END { if (measure == "wall_run") ms = 1000 * e
            if (measure == "cpu_run") ms = 1000 * u
            print ms, kb, answer }' "$work/time" "$work/said"
}

speed() {
    local name measure command i side n_rows=0 n_marked=0 line
    local -a words
    mkdir -p "$work/layers"
    if [ -z "$city" ]; then
        city=$work/city
        [ -e "$city/meta.json" ] || make_city || { echo "no city: numpy is missing"; city=''; }
    fi
    [ -e "$work/layers/zones.gpkg" ] || make_layers ||
        echo "no layers: samples/make_city is missing"
    printf '%-31s %-8s %9s %9s %6s %-14s %8s %6s\n' name measure 'old, ms' \
        'new, ms' ratio spread 'peak, MB' ratio
    while IFS='|' read -r name measure command; do
        name=$(sed 's/ *$//' <<<"$name") measure=${measure// /}
        [ -n "$measure" ] && is_wanted "$name" || continue
        read -ra words <<<"$command"
        case ${words[0]} in
            bench) [ -n "$city" ] || continue ;;
            join) [ -e "$work/layers/zones.gpkg" ] || continue ;;
        esac
        n_rows=$((n_rows + 1))
        : >"$work/times"
        for ((i = 0; i < n_pairs; i++)); do
            # first the one, then the other
            for side in $((i % 2)) $((1 - i % 2)); do
                line=$(measure $side "$measure" "${words[@]}") ||
                    { echo "FAILED: $name, ${builds[$side]}"; status=1; break 2; }
                echo "$i $side $line" >>"$work/times"
            done
        done
        [ "$(wc -l <"$work/times")" -eq $((2 * n_pairs)) ] || continue
        line=$(python3 - "$name" "$measure" "$work/times" <<'END'
import statistics, sys
name, measure, path = sys.argv[1:]
ms, kb, answers = ({}, {}), ([], []), set()
for i, side, time, peak, *answer in map(str.split, open(path)):
    ms[int(side)][i] = float(time)
    kb[int(side)].append(int(peak))
    answers.update(answer)
old, new = (statistics.median(m.values()) for m in ms)
ratios = [ms[1][i] / max(ms[0][i], 1e-3) for i in ms[0]]
ratio, peaks = new / max(old, 1e-3), [statistics.median(k) for k in kb]
marks = [" SLOWER"] * (ratio > 1.03) + [" LARGER"] * (peaks[1] > 1.03 * peaks[0])
marks += [" DIFFERENT ANSWER"] * (len(answers) > 1)
print(f"{name:31} {measure:8} {old:9.1f} {new:9.1f} {ratio:6.3f} "
      f"{min(ratios):.3f}-{max(ratios):.3f}    {peaks[0] / 1024:8.1f} {peaks[1] / peaks[0]:6.3f}{''.join(marks)}")
END
        )
        printf '%s\n' "$line"
        case $line in *'DIFFERENT ANSWER') status=1 ;; esac
        case $line in *SLOWER* | *LARGER*) n_marked=$((n_marked + 1)) ;; esac
    done <<<"$rows"
    echo "speed: $n_rows rows, $n_marked slower or larger by more than 3 %"
    [ $n_marked -eq 0 ] || [ $status -ne 0 ] || status=2
}

status=0
[ "$what" = --speed ] || answers
[ "$what" = --answers ] || speed
exit $status
