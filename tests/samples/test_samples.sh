#!/usr/bin/env bash
# Runs the samples on a small city. The same seed makes the same bytes, and
# other formats hold the same rows. Joins, proof and map end well. Joins that
# ask the same in two ways find the same.
#
#   test_samples.sh OGRJOIN MAKE_CITY FLEET
set -euo pipefail
ogrjoin=$1 make_city=$2 fleet=$3
samples=$(dirname "$0")/../../samples
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
small=(-avenues 8 -streets 14 -pickups 20000)
rows() { # of a file with one layer
    ogrinfo -ro -so -al "$1" 2>/dev/null | sed -n 's/^Feature Count: //p' || true
}

"$make_city" "${small[@]}" "$dir/a" >"$dir/log"
"$make_city" "${small[@]}" "$dir/b" >>"$dir/log"
"$make_city" "${small[@]}" -seed 2 "$dir/c" >>"$dir/log"
for layer in pickups lots streets land zones stations; do
    cmp "$dir/a/$layer.fgb" "$dir/b/$layer.fgb" ||
        fail "$layer: the same seed made other bytes"
    if cmp -s "$dir/a/$layer.fgb" "$dir/c/$layer.fgb"; then
        fail "$layer: another seed made the same bytes"
    fi
done

for format in GPKG 'ESRI Shapefile' GeoJSON; do
    folder=$dir/${format// /_}
    "$make_city" "${small[@]}" -pickups 300 -f "$format" "$folder" >>"$dir/log"
    # The driver decides the extension: .json in one version, .geojson in others.
    n=$(rows "$(ls "$folder"/lots.{gpkg,shp,*json} 2>/dev/null)")
    [ "$n" = "$(rows "$dir/a/lots.fgb")" ] || fail "$format: $n lots"
    n=$(rows "$(ls "$folder"/pickups.{gpkg,shp,*json} 2>/dev/null)")
    [ "$n" = 300 ] || fail "$format: $n pickups"
done

"$ogrjoin" -op nearest -max_distance 100 -validate geos \
    "$dir/joined.fgb" "$dir/a/pickups.fgb" "$dir/a/lots.fgb" ||
    fail "the join ended with $?"
[ "$(rows "$dir/joined.fgb")" = 20000 ] || fail "rows are missing"

"$ogrjoin" -agg 'count, mean(fare)' "$dir/zones.fgb" "$dir/a/zones.fgb" \
    "$dir/a/pickups.fgb" || fail "-agg ended with $?"

if /usr/bin/python3 -c 'import PyQt5.QtGui; from osgeo import ogr' 2>/dev/null; then
    draw() { /usr/bin/python3 "$samples/draw_city.py" "$@"; }
    below=("$dir/a/lots.fgb" "$dir/a/streets.fgb" "$dir/a/land.fgb")
    draw map "$dir/map.png" "$dir/joined.fgb" "${below[@]}"
    gdalinfo "$dir/map.png" | grep '^Size is 1600, 1200' || fail "no map"
    if draw map "$dir/no.png" "$dir/a/lots.fgb" "${below[@]}" 2>"$dir/err"; then
        fail "a layer without the join's fields was drawn"
    fi
    [ ! -e "$dir/no.png" ] || fail "a map was left behind"
    draw zones "$dir/zones.png" "$dir/zones.fgb" "$dir/a/lots.fgb" \
        "$dir/a/land.fgb" || fail "no map of zones"
    gdalinfo "$dir/zones.png" | grep '^Size is 1000, 1000' ||
        fail "no map of zones"
    "$ogrjoin" -q -op dwithin -max_distance 200m -similar name:0.5 -one_to_one \
        -how inner -geometry connection -unmatched_layer a_only \
        -unmatched_join_layer b_only "$dir/shops.gpkg" "$dir/a/places_a.fgb" \
        "$dir/a/places_b.fgb" || fail "no shops"
    draw shops "$dir/shops.png" "$dir/shops.gpkg" "${below[@]}"
    gdalinfo "$dir/shops.png" | grep '^Size is 1100, 760' || fail "no shops"
    mkdir "$dir/fleet"
    "$fleet" -vehicles 20 -steps 90 "$dir/fleet"
    draw fleet "$dir/fleet.png" "$dir/fleet" "${below[@]}"
    gdalinfo "$dir/fleet.png" | grep '^Size is 1100, 1000' || fail "no fleet"
fi

# The library's events must equal the command's.
mkdir "$dir/driven"
"$fleet" -vehicles 300 -steps 60 "$dir/driven" >>"$dir/log"
"$ogrjoin" -q -events -key vehicle -op within -oo X_POSSIBLE_NAMES=x \
    -oo Y_POSSIBLE_NAMES=y -oo KEEP_GEOM_COLUMNS=NO -joo KEEP_GEOM_COLUMNS=NO \
    -name_fid "" -crs ignore "$dir/driven/command.csv" "$dir/driven/reports.csv" \
    "$dir/driven/fences.csv" || fail "-events ended with $?"
tr -d '"' <"$dir/driven/command.csv" | sed 1d >"$dir/driven/command"
cut -d, -f1-4 "$dir/driven/events.csv" | sed 1d >"$dir/driven/library"
[ "$(wc -l <"$dir/driven/library")" -gt 50 ] || fail "too few events"
cmp "$dir/driven/library" "$dir/driven/command" ||
    fail "the library and the command found other events"

# The three nearest vehicles of each place in the last step. The first one is
# compared with all distances from the middle of the place's eight corners.
tr -d '"' <"$dir/driven/fences.csv" | awk -F, -v folder="$dir/driven" '
NR > 1 {
    gsub(/POLYGON|[()]/, "")
    x = y = 0
    for (i = 2; i <= 9; i++) {
        split($i, at, " ")
        x += at[1] / 8
        y += at[2] / 8
    }
    least = -1
    reports = folder "/reports.csv"
    while ((getline line <reports) > 0) {
        split(line, r, ",")
        d = (r[3] - x) ^ 2 + (r[4] - y) ^ 2
        if (r[1] == "59" && (least < 0 || d < least)) {
            least = d
            vehicle = r[2]
        }
    }
    close(reports)
    print "59," $1 "," vehicle
}' >"$dir/driven/first"
[ "$(grep -c '^59,' "$dir/driven/nearest.csv")" -eq 12 ] ||
    fail "not three nearest vehicles of each place"
grep '^59,' "$dir/driven/nearest.csv" | awk 'NR % 3 == 1' | cut -d, -f1-3 |
    cmp - "$dir/driven/first" || fail "another vehicle is the nearest"

# Runs the joins one by one. Their summary lines have the pairs and the rows.
mkdir "$dir/bin"
ln -s "$(realpath "$ogrjoin")" "$dir/bin/ogrjoin"
ln -s "$(realpath "$make_city")" "$dir/bin/make_city"
log=$dir/joins.log
PATH=$dir/bin:$PATH bash "$samples/joins.sh" "$dir/joins" \
    >"$log" 2>&1 || { tail -20 "$log"; fail "samples/joins.sh"; }
part() { # FILE NAME: the number before " NAME" in the summary of FILE
    sed -n "s/^.*[:;,] \([0-9]*\) $2[,;].* rows written to $1\.[a-z]*;.*/\1/p" \
        "$log"
}
rows_of() { sed -n "s/^.* \([0-9]*\) rows written to $1\.[a-z]*;.*/\1/p" "$log"; }
same() { # WHAT NUMBER NUMBER
    if [ -z "$2" ] || [ "$2" != "$3" ]; then fail "$1: '$2' and '$3'"; fi
}
same "within and contains" "$(part within pairs)" "$(part contains pairs)"
same "coveredby and covers" "$(part coveredby pairs)" "$(part covers pairs)"
same "in a zone or cut by its border" "$(part pieces pairs)" \
    $(($(part coveredby pairs) + $(part overlaps pairs)))
same "disjoint and intersects" $((20000 * $(rows "$dir/joins/city/zones.fgb"))) \
    $(($(part disjoint pairs) + $(part pickup_zones pairs)))
same "a box and equals" "$(part window pairs)" "$(part equals pairs)"
same "own reaches, both ways" "$(part reach pairs)" "$(part reached pairs)"
same "semi and anti" 20000 $(($(rows_of semi) + $(rows_of anti)))
same "inner and semi" "$(rows_of three)" "$(rows_of semi)"
same "full" "$(rows_of full)" $((20000 + $(sed -n \
    "s/^\([0-9]*\) rows .* written to layer 'no_pickup'/\1/p" "$log")))
same "-pick, one row per lot" "$(rows_of most)" "$(rows "$dir/joins/city/lots.fgb")"
same "-agg, one row per zone" "$(rows_of totals)" \
    "$(rows "$dir/joins/city/zones.fgb")"
same "sum of counts" "$(part contains pairs)" $(($(ogrinfo -ro -q -al \
    "$dir/joins/city/totals.fgb" | sed -n 's/^  count (.*= //p' |
    paste -s -d +)))
same "tiles" "$(part tiles pairs)" "$(part proved pairs)"
grep -q 'the join side in [0-9]* tiles' "$log" || fail "no tiles"
grep -q '^validated: .*: no difference' "$log" || fail "no proof"
grep -q 'nothing was written' "$log" || fail "-explain"
[ ! -e "$dir/joins/city/out.fgb" ] || fail "-explain has written"
echo "samples: ok"
