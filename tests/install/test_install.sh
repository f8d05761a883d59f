#!/usr/bin/env bash
# Checks the files that "cmake --install" leaves. The command runs from any
# place, GDAL loads the driver from there, and the library exports its own
# names only and needs no GDAL. A user's program compiles with pkg-config and
# gives the right answers.
#
#   test_install.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

cmake --install "$build" --prefix "$prefix/first" >/dev/null
mv "$prefix/first" "$prefix/moved" # nothing may depend on the place
root=$prefix/moved
pc=$(find "$root" -name ogrjoin.pc)
[ -n "$pc" ] || fail "no ogrjoin.pc"
library=$(find "$root" -name 'libogrjoin.so.1')
[ -n "$library" ] || fail "no libogrjoin.so.1"

bash "$source/tests/install/test_exports.sh" "$library" \
    "$root/include/ogrjoin.h" ||
    fail "libogrjoin exports something else than its header says"
if readelf -d "$library" | grep NEEDED | grep -vE '(geos_c|proj|m|c|gcc_s|ld-.*)\.'; then
    fail "libogrjoin needs more than GEOS and PROJ"
fi
if grep -q '^OGRJOIN_GEODESIC:STRING=OFF' "$build/CMakeCache.txt" &&
    readelf -d "$library" | grep -E 'NEEDED.*proj'; then
    fail "libogrjoin needs PROJ in a build without geodesics"
fi
plugin=$(find "$root" -name ogr_JOIN.so)
if grep -q '^OGRJOIN_PLUGIN:BOOL=ON' "$build/CMakeCache.txt"; then
    [ -n "$plugin" ] || fail "no ogr_JOIN.so"
    [ "${plugin%/*}" = "${library%/*}/gdalplugins" ] ||
        fail "the driver lies in $plugin"
    if readelf -d "$plugin" | grep -iE 'NEEDED.*(cuda|nvidia)'; then
        fail "the driver needs CUDA"
    fi
    if command -v ogrinfo >/dev/null; then
        env -u LD_LIBRARY_PATH GDAL_DRIVER_PATH="${plugin%/*}" \
            ogrinfo --formats >"$prefix/formats" 2>&1
        grep -q '^  *JOIN .*vector' "$prefix/formats" ||
            fail "GDAL does not load the driver: $(head -3 "$prefix/formats")"
    fi
fi
"$root/bin/ogrjoin" --version || fail "the installed command does not run"
"$root/bin/oj_bench" --help >/dev/null || fail "oj_bench does not run"
[ -s "$root/share/man/man1/ogrjoin.1" ] || fail "no man page"
completion=$root/share/bash-completion/completions/ogrjoin
[ -s "$completion" ] || fail "no bash completion"
completed=$(PATH=$root/bin:$PATH bash -c 'source "$1"
    COMP_WORDS=(ogrjoin -) COMP_CWORD=1
    _ogrjoin
    printf "%s\n" "${COMPREPLY[@]}"' _ "$completion")
[ -s "$root/share/ogrjoin/ogrjoin_qgis.zip" ] || fail "no plugin of QGIS"
# Every option of --help is in the man page, and shell completion offers it.
sed 's/\\-/-/g' "$root/share/man/man1/ogrjoin.1" >"$prefix/man"
for option in $("$root/bin/ogrjoin" --help |
    sed -nE 's/^  (-[a-z_]+).*/\1/p' | sort -u); do
    grep -qE -- "(^|[^a-z_])$option([^a-z_]|$)" "$prefix/man" ||
        fail "the man page does not know $option"
    grep -qE -- "^$option([^a-z_]|$)" <<<"$completed" ||
        fail "the completion does not know $option"
done

export PKG_CONFIG_PATH=${pc%/*}
read -ra flags < <(pkg-config --cflags --libs ogrjoin)
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source/samples/join_arrays.c" \
    "${flags[@]}" -Wl,-rpath,"${library%/*}" -o "$prefix/join_arrays"
"$prefix/join_arrays" >"$prefix/out"
diff -u - "$prefix/out" <<'END' || fail "join_arrays answers otherwise"
pickup 0: lot 10, 0 ft
pickup 1: lot 10, 5 ft
pickup 2: lot 10, 10 ft
pickup 3: lot 10, 10 ft
END

# The same program by Arrow streams of two files.
if pkg-config --atleast-version=3.6 gdal; then
    read -ra gdal < <(pkg-config --cflags --libs gdal)
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source/samples/join_arrow.c" \
        "${flags[@]}" "${gdal[@]}" -Wl,-rpath,"${library%/*}" \
        -o "$prefix/join_arrow"
    printf 'WKT,n\n"POLYGON((0 0,50 0,50 50,0 50,0 0))",1\n' >"$prefix/lots.csv"
    printf 'WKT,n\n"POINT(10 10)",1\n"POINT(500 0)",2\n"POINT(60 20)",3\n' \
        >"$prefix/pickups.csv"
    for layer in lots pickups; do
        ogr2ogr -q -lco SPATIAL_INDEX=NO "$prefix/$layer.fgb" \
            "$prefix/$layer.csv"
    done
    "$prefix/join_arrow" "$prefix/pickups.fgb" "$prefix/lots.fgb" 100 \
        >"$prefix/out"
    diff -u - "$prefix/out" <<'END' || fail "join_arrow answers otherwise"
left,right,distance
0,0,0
2,0,10
END
fi

# If GDAL looks elsewhere for plugins, there is a link. Uninstalling removes all
# of it. The build's own script is tested, changed to other folders.
configured=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
link=$(sed -n 's/.*"Linked: \(.*\)".*/\1/p' "$build/cmake_install.cmake")
mkdir "$prefix/elsewhere"
sed -e "s#STREQUAL \"$configured\"#STREQUAL \"$prefix/linked\"#" \
    -e "s#\"$configured/#\"$prefix/linked/#g" \
    -e "s#\"${link:-no link}\"#\"$prefix/elsewhere/ogr_JOIN.so\"#g" \
    "$build/cmake_install.cmake" >"$prefix/install.cmake"
cmake -DCMAKE_INSTALL_PREFIX="$prefix/linked" -P "$prefix/install.cmake" \
    >/dev/null
[ -z "$link" ] || [ -e "$prefix/elsewhere/ogr_JOIN.so" ] ||
    fail "no link, or one to nowhere"
cmake -DMANIFEST="$build/install_manifest.txt" \
    -P "$source/driver/uninstall.cmake" >/dev/null
rest=$(find "$prefix/linked" "$prefix/elsewhere" ! -type d
    find "$prefix/linked" -name 'ogrjoin*')
[ -z "$rest" ] || fail "uninstalling leaves $rest"
echo "installed tree: ok"
