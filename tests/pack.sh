#!/usr/bin/env bash
# Packs programs with all libraries and data files that they need into one
# archive. They then run on a bare x86-64 machine (glibc 2.36 or newer). It may
# have an NVIDIA driver, and needs no GDAL, GEOS or compiler.
#
#   tests/pack.sh OUT.tar.xz FILE...   programs, plugins, folders (copied whole)
#
# On that machine:
#   mkdir rt && python3 -m tarfile -e OUT.tar.xz rt && . rt/env.sh
# env.sh sets PATH and LD_LIBRARY_PATH. If a packed program needs GDAL, env.sh
# also sets GDAL_DATA, PROJ_LIB and GDAL_DRIVER_PATH, and ogrinfo and ogr2ogr
# are packed.
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '2,12p' "$0"
    exit 1
fi
out=$(realpath -m "$1")
shift
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/lib"
for file in "$@"; do
    cp -rL "$file" "$root/bin/"
done

needed() { # "name path" of each shared library that what is packed needs
    find "$root/bin" -type f -print0 | xargs -0 -n1 ldd 2>/dev/null |
        awk '/=> \// {print $1, $3}' | sort -u
}
has_gdal=0
if needed | grep '^libgdal\.so' >/dev/null; then # -q would break the pipe
    has_gdal=1
    mkdir -p "$root/share/proj"
    cp -L "$(command -v ogrinfo)" "$(command -v ogr2ogr)" "$root/bin/"
    cp -r "$(gdal-config --datadir)" "$root/share/gdal"
    cp /usr/share/proj/proj.db "$root/share/proj/"
fi

# The run-time libraries of C and C++ are those of the other machine.
theirs='^(libc|libm|libpthread|libdl|librt|libresolv|libutil|libstdc\+\+'
theirs+='|libgcc_s|libcuda|ld-linux-x86-64)\.so'
needed | while read -r name path; do
    [[ $name =~ $theirs ]] || [ -e "$root/bin/$name" ] ||
        cp -L "$path" "$root/lib/$name"
done

# Large libraries that no vector layer needs are replaced by empty ones of the
# same name: the images of HEIF, and ICU's tables.
if [ -e "$root/lib/libheif.so.1" ]; then
    objdump -T "$root"/lib/libgdal.so.* |
        awk '/\*UND\*/ && /heif_/ {print "void " $NF "(void) {}"}' \
            >"$root/empty.c"
    gcc -shared -Wl,-soname,libheif.so.1 -o "$root/lib/libheif.so.1" \
        "$root/empty.c"
    rm -f "$root/empty.c" "$root"/lib/lib{x265,aom,dav1d,de265}.so*
fi
for icu in "$root"/lib/libicudata.so.*; do
    [ -e "$icu" ] || continue
    version=${icu##*.}
    echo "const char icudt${version}_dat[64] = {0};" >"$root/empty.c"
    gcc -shared -Wl,-soname,"libicudata.so.$version" -o "$icu" "$root/empty.c"
    rm -f "$root/empty.c"
done

{
    echo 'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)'
    echo 'chmod -R u+x "$here/bin"'
    echo 'export PATH=$here/bin:$PATH LD_LIBRARY_PATH=$here/bin:$here/lib'
    echo 'export OGRJOIN_CUDA_MODULE=$here/bin/ogrjoin_cuda.so'
    if [ $has_gdal = 1 ]; then
        echo 'export GDAL_DATA=$here/share/gdal PROJ_LIB=$here/share/proj'
        echo 'export GDAL_DRIVER_PATH=$here/bin'
    fi
} >"$root/env.sh"
mkdir -p "$(dirname "$out")"
tar -C "$root" -cf - . | xz -6 -T0 >"$out"
ls -l "$out"
