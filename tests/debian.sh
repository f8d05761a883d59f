#!/usr/bin/env bash
# The Debian packages as users get them: built, looked at by lintian, installed
# into a fresh Debian root, and run there.
#
#   debian.sh [SUITE]   default: that of this machine
#
# As root. Ends with 77 (skipped) without debootstrap or lintian. GDAL of SUITE
# has to be that of this machine, which the packages are built with.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
command -v debootstrap lintian >/dev/null || { echo "skipped: no debootstrap or no lintian"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --preset debian -S "$top" >"$work/log"
cmake --build "$top/build/debian" -j2 >"$work/log"
(cd "$top/build/debian" && cpack -G DEB -B "$work/debs") >"$work/log"
if lintian "$work"/debs/*.deb 2>/dev/null | grep '^E:'; then exit 1; fi
debootstrap --variant=minbase "$suite" "$work/root" >"$work/log"
cp "$work"/debs/*.deb "$work/root/tmp"
cat >"$work/root/tmp/use.c" <<'C'
#include <ogrjoin.h>
#include <stdio.h>
int main(void) { return puts(ogrjoin_version()) < 0; }
C
chroot "$work/root" sh -ec '
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        /tmp/*.deb gdal-bin pkg-config gcc libc6-dev' >"$work/log" 2>&1 || {
    tail -20 "$work/log"
    exit 1
}
chroot "$work/root" sh -ec '
    cd /tmp
    cc use.c -o use $(pkg-config --cflags --libs ogrjoin)
    ./use
    ogrinfo --formats | grep "JOIN .*vector"
    printf "x,y\n1,1\n5,5\n" >a.csv
    ogrjoin -q -op nearest -oo X_POSSIBLE_NAMES=x -oo Y_POSSIBLE_NAMES=y \
        -joo X_POSSIBLE_NAMES=x -joo Y_POSSIBLE_NAMES=y out.csv a.csv a.csv
    grep -q join_distance out.csv
    zcat /usr/share/man/man1/ogrjoin.1.gz >page
    grep -q ogrjoin page
    ls /usr/share/ogrjoin/ogrjoin_qgis.zip'
echo "debian: all is well"
