#!/usr/bin/env bash
# From a fresh clone to a picture: checks the packages, builds ogrjoin, makes
# the sample city, joins its taxi pickups to the nearest tax lot, proves the
# answer against GEOS and draws a map.
#
#   samples/demo.sh [PICKUPS]        default: 500,000 pickups
#
# Everything it makes lies in build/demo and out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pickups=${1:-500000}
build=build/demo
out=out
city=out/city
step() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }
draw() { # by the Python that has Debian's packages
    show /usr/bin/python3 samples/draw_city.py "$@" ||
        echo "no picture: Python with GDAL and Qt is needed"
}

bash tests/install_packages.sh build draw

step "Building ogrjoin"
mkdir -p "$build" "$out"
generator=()
if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then
    generator=(-G Ninja)
fi
# The module for GPUs takes many minutes to build, and is nothing without one.
cuda=OFF
nvidia-smi -L >/dev/null 2>&1 && cuda=AUTO
{ cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DOGRJOIN_TESTS=OFF -DOGRJOIN_CUDA=$cuda &&
    cmake --build "$build" -j "$(nproc)"; } >"$build/demo.log" 2>&1 ||
    { cat "$build/demo.log"; exit 1; }
PATH=$PWD/$build:$PWD/$build/samples:$PATH
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
draw map "$out/map.png" "$out/pickups_lots.fgb" "$city/lots.fgb" \
    "$city/streets.fgb" "$city/land.fgb"

step "Pickups and their mean fare, zone by zone"
show ogrjoin -agg 'count, mean(fare)' -overwrite \
    "$out/zones.fgb" "$city/zones.fgb" "$city/pickups.fgb"
draw zones "$out/zones.png" "$out/zones.fgb" "$city/lots.fgb" "$city/land.fgb"

step "The shops of two maps, paired by name and distance"
show ogrjoin -op dwithin -max_distance 200m -similar name:0.5 -one_to_one \
    -how inner -geometry connection -unmatched_layer a_only \
    -unmatched_join_layer b_only -overwrite \
    "$out/shops.gpkg" "$city/places_a.fgb" "$city/places_b.fgb"
draw shops "$out/shops.png" "$out/shops.gpkg" "$city/lots.fgb" \
    "$city/streets.fgb" "$city/land.fgb"

step "A fleet, and where it has entered and left four places"
mkdir -p "$out/fleet"
show fleet "$out/fleet"
show ogrjoin -events -key vehicle -op within -oo X_POSSIBLE_NAMES=x \
    -oo Y_POSSIBLE_NAMES=y -crs ignore -overwrite \
    "$out/fleet/command.csv" "$out/fleet/reports.csv" "$out/fleet/fences.csv"
draw fleet "$out/fleet.png" "$out/fleet" "$city/lots.fgb" "$city/streets.fgb" \
    "$city/land.fgb"

cat <<END

Done. In $PWD:
  out/map.png           the map
  out/zones.png         the zones
  out/shops.png         shops of two maps
  out/fleet.png         a fleet and its events
  out/pickups_lots.fgb  the pickups with their lots (QGIS opens it)
  out/city/             the city's layers
  build/demo/ogrjoin    the command

What to try next:
  PATH=$PWD/$build:\$PATH
  # the street each pickup stands on, at most 60 feet away
  ogrjoin -op nearest -max_distance 60 out/pickups_streets.gpkg \\
      out/city/pickups.fgb out/city/streets.fgb
  # the three nearest lots of each
  ogrjoin -op nearest -k 3 out/three.csv out/city/pickups.fgb out/city/lots.fgb
  # pickups far from every lot
  ogrjoin -op nearest -max_distance 100 -how anti out/far.fgb \\
      out/city/pickups.fgb out/city/lots.fgb
  # every kind of join by example
  samples/joins.sh
  # how fast that is beside an R-tree with GEOS
  ogrjoin -benchmark -op nearest -max_distance 100 \\
      out/city/pickups.fgb out/city/lots.fgb
  # layers of your own
  ogrjoin --help
END
