#!/usr/bin/env bash
# Tests the Python wheels on a machine with a GPU and without network: joins on
# the CPU and on the GPU are compared bit for bit; prints the backend of each.
#
#   python_gpu.sh WHEELS [N]    WHEELS: folder with one wheel of ogrjoin and one
#                               of ogrjoin-cuda (tests/wheel.sh --cuda); N: points
#                               (1,000,000)
# PYTHON: 3.11 or later, with numpy and pip (default: python3).
# Takes some 20 seconds. Exit code: 1 if pairs differ, or the GPU was not used.
set -euo pipefail
wheels=$(realpath "$1")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# No venv: a venv that is made inside of another venv does not see numpy there.
"$python" -m pip install -q --no-index --no-deps --target "$work/site" \
    "$wheels"/ogrjoin*.whl
cat >"$work/joins.py" <<'END'
import sys
import time

import numpy as np

import ogrjoin
from ogrjoin import _core

n = int(sys.argv[1])
print(f"ogrjoin {ogrjoin.__version__} in {ogrjoin.__path__[0]}")
print(f"Python {sys.version.split()[0]}, numpy {np.__version__}; {n} points")
rng = np.random.default_rng(1)
points, centres = rng.random((n, 2)) * 1e4, rng.random((n // 10, 2)) * 1e4
texts = [
    " ".join(rng.choice("elm oak main north street road bar café inn mill".split(), 4))
    + str(rng.integers(0, 100))
    for _ in range(n // 25)
]
vectors = rng.random((n // 10, 32)) + rng.integers(0, 4, (n // 10, 1))


def boxes(at, size):
    """A layer of squares: neither shapely nor pyarrow need be there."""
    x = (at[:, :1] + [0, size, size, 0, 0]).reshape(-1)
    y = (at[:, 1:] + [0, 0, size, size, 0]).reshape(-1)
    one_each, polygon = np.arange(len(at) + 1), np.full(len(at), 4, np.uint8)
    return _core.arrays(len(at), x, y, one_each, polygon, one_each, 5 * one_each)


def index(side, backend, **options):
    if isinstance(side, np.ndarray) or "op" in options:
        return ogrjoin.Index(side, backend=backend, **options)
    made = ogrjoin.Index(points[:0], backend=backend)
    made._layer = boxes(*side)
    return made


alone = {"op": "similar"}
JOINS = [
    ("in boxes", points, (centres, 25), "within", {}, {}),
    ("meets boxes", points, (centres, 25), "intersects", {}, {}),
    ("nearest box", points, (centres, 10), "nearest", {"max_distance": 30}, {}),
    ("nearest, ties", points.round(-1), (centres.round(-1), 10), "nearest",
     {"ties": "all"}, {}),
    ("3 nearest boxes", points, (centres, 10), "nearest", {"k": 3}, {}),
    ("boxes within 9", points, (centres, 10), "dwithin", {"max_distance": 9}, {}),
    ("nearest point", points, centres, "nearest", {}, {}),
    ("points within 20", points, centres, "dwithin", {"max_distance": 20}, {}),
    ("texts", texts, texts[::2], "similar", {"min_similarity": 0.8}, alone),
    ("3 likest texts", texts[:9999], texts[::2], "similar",
     {"min_similarity": 0.4, "k": 3}, alone),
    ("vectors", vectors, vectors[::3] + 1e-3, "similar", {"max_difference": 1.2}, alone),
    ("10 likest vectors", vectors, vectors[::3], "similar", {"k": 10}, alone),
    ("likest, cosine", vectors, vectors[::3], "similar", {"k": 2, "norm": "cosine"}, alone),
]


def bits(pairs):
    columns = [pairs.distance, *pairs.values.values()]
    floats = [c.view(np.int64) for c in columns if c is not None]
    return [pairs.left, pairs.right, *floats]


n_different = n_cuda = 0
print(f"{'join':20}{'pairs':>12}  cpu s  cuda s  auto   answered by, and pairs of the GPU")
for name, left, right, op, settings, options in JOINS:
    seconds, made = {}, {}
    said = "cuda"
    for backend in ("cpu", "cuda", "auto"):
        try:
            side = index(right, backend, **options)
            side.pairs(left[:1], op, **settings)  # indexed
            start = time.perf_counter()
            made[backend] = side.pairs(left, op, **settings)
            seconds[backend] = time.perf_counter() - start
        except ogrjoin.Error as error:
            said = f"NOT the GPU: {error}"
    if "cuda" in made:
        said = made["cuda"].backend
        n_cuda += said == "cuda"
        same = all(map(np.array_equal, bits(made["cpu"]), bits(made["cuda"])))
        n_different += not same
        said += ", same bits" if same else ", DIFFERENT"
    auto = made["auto"].backend
    print(
        f"{name:20}{len(made['cpu']):12}{seconds['cpu']:7.3f}"
        f"{seconds.get('cuda', np.nan):8.3f}  {auto:6} {said}"
    )
print(f"{n_cuda} of {len(JOINS)} joins ran on the GPU, {n_different} differ")
sys.exit(n_different > 0 or n_cuda == 0)
END
cd "$work"
PYTHONPATH=$work/site "$python" joins.py "${2:-1000000}"
