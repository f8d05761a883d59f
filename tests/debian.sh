#!/usr/bin/env bash
# Tests the Debian packages as users get them. They are built, checked by
# lintian, installed into a fresh Debian root, and run there.
#
#   debian.sh [SUITE]   default: that of this machine
#
# Must run as root. Packages of another suite than this machine's are built in
# a root of that suite, since they depend on its GDAL. Ends with 77 (skipped)
# without debootstrap, or without lintian if it is needed here.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
suite=${1:-$here}
tools=debootstrap
[ "$suite" != "$here" ] || tools="debootstrap lintian"
for tool in $tools; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debs"

run() { # a command, of which only a failure is told
    "$@" >"$work/log" 2>&1 || { tail -30 "$work/log"; exit 1; }
}
install_into() { # root, packages and options of apt-get
    run chroot "$1" apt-get update -q
    run chroot "$1" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${@:2}"
}

if [ "$suite" = "$here" ]; then
    run cmake --preset debian -S "$top"
    run cmake --build "$top/build/debian" -j2
    run env -C "$top/build/debian" cpack -G DEB -B "$work/debs"
    lintian=(lintian)
else
    builder=$work/builder
    run debootstrap --variant=minbase "$suite" "$builder"
    install_into "$builder" gcc g++ cmake make pkg-config dpkg-dev file lintian \
        libgdal-dev libgeos-dev libspatialindex-dev
    run git clone -q "$top" "$builder/ogrjoin"
    run chroot "$builder" cmake --preset debian -S /ogrjoin
    run chroot "$builder" cmake --build /ogrjoin/build/debian -j2
    run chroot "$builder" env -C /ogrjoin/build/debian cpack -G DEB -B /debs
    cp "$builder"/debs/*.deb "$work/debs"
    lintian=(chroot "$builder" lintian)
    mkdir -p "$builder/$work"
    cp -r "$work/debs" "$builder/$work"
fi
"${lintian[@]}" "$work"/debs/*.deb >"$work/told" 2>&1 || true
grep '^[WI]:' "$work/told" || true
if grep '^E:' "$work/told"; then exit 1; fi

run debootstrap --variant=minbase "$suite" "$work/root"
cp "$work"/debs/*.deb "$work/root/tmp"
cat >"$work/root/tmp/use.c" <<'C'
#include <ogrjoin.h>
#include <stdio.h>
int main(void) { return puts(ogrjoin_version()) < 0; }
C
install_into "$work/root" $(cd "$work/debs" && printf '/tmp/%s ' *.deb) \
    gdal-bin pkg-config gcc libc6-dev
chroot "$work/root" sh -ec '
    cd /tmp
    cc use.c -o use $(pkg-config --cflags --libs ogrjoin)
    ./use
    ogrinfo --version
    ogrinfo --formats | grep "JOIN .*vector"
    printf "x,y\n1,1\n5,5\n" >a.csv
    ogrjoin -q -op nearest -oo X_POSSIBLE_NAMES=x -oo Y_POSSIBLE_NAMES=y \
        -joo X_POSSIBLE_NAMES=x -joo Y_POSSIBLE_NAMES=y out.csv a.csv a.csv
    grep -q join_distance out.csv
    zcat /usr/share/man/man1/ogrjoin.1.gz >page
    grep -q ogrjoin page
    ls /usr/share/ogrjoin/ogrjoin_qgis.zip'
echo "debian: all is well in $suite"
