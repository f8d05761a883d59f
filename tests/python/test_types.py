"""The package passes mypy --strict, and the stub declares what the module has.  In a
user's file, results have the right types, and wrong calls are found."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
pytest.importorskip("pyarrow")
pytest.importorskip("geopandas")
import ogrjoin

PACKAGE = os.path.dirname(ogrjoin.__file__)
CONFIG = """[mypy]
strict = True
[mypy-geopandas.*,pandas.*,polars.*,pyarrow.*,pyogrio.*,pyproj.*,pyspark.*,shapely.*]
ignore_missing_imports = True
"""


@pytest.mark.parametrize(
    "words", [["mypy", "-p", "ogrjoin"], ["mypy.stubtest", "ogrjoin._core"]]
)
def test_types(tmp_path, words):
    config = tmp_path / "mypy.ini"
    config.write_text(CONFIG)
    option = "--config-file" if words[0] == "mypy" else "--mypy-config-file"
    run = subprocess.run(
        [sys.executable, "-m", *words, option, config],
        env={**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


USES = """
import geopandas as gpd
import numpy as np
import numpy.typing as npt
import ogrjoin


def use(a: gpd.GeoDataFrame, b: gpd.GeoDataFrame) -> None:
    frame: gpd.GeoDataFrame = ogrjoin.sjoin(a, b, how="left", predicate="within")
    frame = ogrjoin.sjoin_nearest(a, b, max_distance="100ft", ties="first", k=2)
    pairs: ogrjoin.Pairs = ogrjoin.pairs(a, b, "nearest", k=2)
    rows: npt.NDArray[np.int64] = pairs.left
    index = ogrjoin.Index(b)
    rows = index.query_nearest(a)
    rows, distances = index.query_nearest(a, return_distance=True)
    far: npt.NDArray[np.float64] = distances
    joined: ogrjoin.Joined = index.join(a, "within")
    print(frame, far, rows, joined)
"""
WRONG = (
    'ogrjoin.sjoin(a, b, how="outside")',
    'ogrjoin.sjoin(a, b, predicate="inside")',
    "ogrjoin.sjoin_nearest(a, b, max_distance=[1, 2])",
    'ogrjoin.sjoin_nearest(a, b, ties="some")',
    'ogrjoin.sjoin_nearest(a, b, metric="cube")',
    'rows = index.query_nearest(a, return_distance="yes")',
)


def test_types_of_a_users_file(tmp_path):
    lines = [f"    {wrong}" for wrong in WRONG]
    (tmp_path / "user.py").write_text(USES + "\n".join(lines) + "\n")
    (tmp_path / "mypy.ini").write_text(CONFIG)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "user.py"],
        env={**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    first = USES.count("\n") + 1
    found = {line.split(":")[1] for line in run.stdout.splitlines() if ": error: " in line}
    assert found == {str(first + i) for i in range(len(WRONG))}, run.stdout
