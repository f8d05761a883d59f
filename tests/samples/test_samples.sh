#!/usr/bin/env bash
# The samples at work on a small city: the same seed makes the same bytes, other
# formats hold the same rows, and join, proof and map end well.
#
#   test_samples.sh OGRJOIN MAKE_CITY DRAW_MAP
set -euo pipefail
ogrjoin=$1 make_city=$2 draw_map=$3
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
for layer in pickups lots streets land; do
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
"$draw_map" "$dir/map.png" "$dir/joined.fgb" "$dir/a/lots.fgb" \
    "$dir/a/streets.fgb" "$dir/a/land.fgb"
gdalinfo "$dir/map.png" | grep '^Size is 1600, 1200' || fail "no map"
if "$draw_map" "$dir/no.png" "$dir/a/lots.fgb" "$dir/a/lots.fgb" \
    "$dir/a/streets.fgb" "$dir/a/land.fgb" 2>"$dir/err"; then
    fail "a layer without the join's fields was drawn"
fi
[ ! -e "$dir/no.png" ] || fail "a map was left behind"
echo "samples: ok"
