#!/usr/bin/env bash
# From a fresh clone to a picture: sees to the packages, builds ogrjoin, makes
# the sample city, joins its taxi pickups to the nearest tax lot, proves the
# answer against GEOS and draws a map.
#
#   samples/demo.sh [PICKUPS]        500,000 pickups unless told otherwise
#
# Everything it makes lies in build/demo and out/.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pickups=${1:-500000}
build=$here/build/demo
out=$here/out
city=$out/city
step() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

bash "$here/tests/install_packages.sh" build

step "Building ogrjoin"
mkdir -p "$build" "$out"
generator=()
if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then
    generator=(-G Ninja)
fi
{ cmake -S "$here" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DOGRJOIN_TESTS=OFF &&
    cmake --build "$build" -j "$(nproc)"; } >"$build/demo.log" 2>&1 ||
    { cat "$build/demo.log"; exit 1; }
PATH=$build:$build/samples:$PATH
ogrjoin --version

step "Making the city"
show make_city -pickups "$pickups" "$city"

step "The nearest lot of each pickup, within 100 feet"
show ogrjoin -op nearest -max_distance 100 -overwrite -progress \
    "$out/pickups_lots.fgb" "$city/pickups.fgb" "$city/lots.fgb"

step "The same once more, with each pair and distance compared with GEOS"
show ogrjoin -op nearest -max_distance 100 -overwrite -progress -validate geos \
    "$out/pickups_lots.fgb" "$city/pickups.fgb" "$city/lots.fgb"

step "Drawing the map"
show draw_map "$out/map.png" "$out/pickups_lots.fgb" "$city/lots.fgb" \
    "$city/streets.fgb" "$city/land.fgb"

cat <<END

Done.
  the map                  $out/map.png
  pickups with their lots  $out/pickups_lots.fgb  (opens in QGIS)
  the city's layers        $city/
  the command              $build/ogrjoin

What to try next (PATH=$build:\$PATH):
  the street each pickup stands on, in the pickups layer's own units
    ogrjoin -op nearest -max_distance 60 $out/pickups_streets.gpkg \\
        $city/pickups.fgb $city/streets.fgb
  the three nearest lots, as a CSV
    ogrjoin -op nearest -k 3 -f CSV $out/three.csv $city/pickups.fgb \\
        $city/lots.fgb
  pickups far from every lot
    ogrjoin -op nearest -max_distance 100 -how anti $out/far.fgb \\
        $city/pickups.fgb $city/lots.fgb
  how fast that is beside an R-tree and GEOS
    ogrjoin -benchmark -op nearest -max_distance 100 $city/pickups.fgb \\
        $city/lots.fgb
  a layer of your own: ogrjoin --help, README.md
END
