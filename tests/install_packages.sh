#!/usr/bin/env bash
# Installs the packages that ogrjoin needs, if they are missing. No other file
# names packages. tests/run.sh, samples/demo.sh and .ci/run call this script.
#
#   install_packages.sh build [test] [ci] [qgis] [draw]
#
# If nothing is missing, it does nothing and needs no network. Otherwise it
# installs with apt-get, as root or through sudo. If that is not possible, it
# prints in one line what is missing, and ends with 1. The tools of "ci",
# "qgis" and "draw" are optional: a step that lacks them says so, or is left
# out.
set -euo pipefail

# package : how to see that it is there
have() { command -v "$1" >/dev/null 2>&1; }
has() {
    case $1 in
        gcc) have gcc || have cc ;;
        g++) have g++ || have c++ ;;
        cmake) have cmake ;;
        make) have make || have ninja ;;
        pkg-config) have pkg-config ;;
        libgdal-dev) have gdal-config ;;
        gdal-bin) have ogr2ogr && have ogrinfo ;;
        libgeos-dev) have pkg-config && pkg-config --exists geos ;;
        libspatialindex-dev)
            echo '#include <spatialindex/capi/sidx_api.h>' |
                cc -E -x c - >/dev/null 2>&1 ;;
        check) have pkg-config && pkg-config --exists check ;;
        python3-gdal) /usr/bin/python3 -c 'from osgeo import ogr' 2>/dev/null ;;
        python3-pyqt5) /usr/bin/python3 -c 'import PyQt5.QtGui' 2>/dev/null ;;
        python3-numpy) /usr/bin/python3 -c 'import numpy' 2>/dev/null ;;
        clang-format-14) have clang-format-14 ;;
        abigail-tools) have abidiff ;;
        libc6-dbg) [ -d /usr/lib/debug/.build-id ] ;;
        qgis) have qgis_process.bin || have qgis_process ;;
        python3-qgis) /usr/bin/python3 -c 'import qgis.core' 2>/dev/null ;;
        *) have "$1" ;;
    esac
}

build="gcc g++ cmake make pkg-config libgdal-dev gdal-bin libgeos-dev
       libspatialindex-dev"
tests="check python3-gdal python3-numpy"
ci="clang clang-format-14 cppcheck valgrind libc6-dbg abigail-tools"
qgis="qgis python3-qgis"
draw="python3-gdal python3-pyqt5"

needed='' optional=''
for group in "${@:-build}"; do
    case $group in
        build) needed+=" $build" ;;
        test) needed+=" $tests" ;;
        ci) optional+=" $ci" ;;
        qgis) optional+=" $qgis" ;;
        draw) optional+=" $draw" ;;
        *) echo "install_packages.sh: no group is called $group" >&2; exit 2 ;;
    esac
done

list_missing() {
    local package
    for package in "$@"; do has "$package" || printf '%s ' "$package"; done
}
# shellcheck disable=SC2086  # lists of words
missing=$(list_missing $needed) wanted=$(list_missing $optional)
[ -n "$missing$wanted" ] || exit 0

if ! have apt-get; then
    [ -n "$missing" ] || exit 0
    echo "missing (Debian's names): $missing- install them and run again" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! have sudo || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
        [ -n "$missing" ] || exit 0
        echo "missing: run as root: apt-get install $missing" >&2
        exit 1
    fi
    as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends "$@" >"$log" 2>&1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing: $missing$wanted"
"${as_root[@]}" apt-get update -q >"$log" 2>&1 || tail -3 "$log" >&2
# shellcheck disable=SC2086
if [ -n "$missing" ] && ! install $missing; then
    tail -20 "$log" >&2
    echo "apt-get could not install: $missing" >&2
    exit 1
fi
for package in $wanted; do
    install "$package" || echo "not to be had here: $package"
done
# shellcheck disable=SC2086
missing=$(list_missing $needed)
if [ -n "$missing" ]; then
    echo "still missing after apt-get: $missing" >&2
    exit 1
fi
