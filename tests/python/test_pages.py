"""Runs every Python example in README.md, in the pages and in the package's README.
Those that need a GPU are skipped without one, and counted."""

import json
import os
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

gpd = pytest.importorskip("geopandas")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
import pyarrow as pa
import shapely

TOP = Path(__file__).parents[2] / "driver"
PAGES = [
    p
    for p in (TOP.parent / "README.md", TOP / "python/README.md", *TOP.glob("docs/**/*.md"))
    if p.exists()
]
ON_A_GPU = r"^import (cupy|torch)$"


def examples(page):
    found = re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(), re.M | re.S)
    return [textwrap.dedent(code) for code in found]


def has_gpu():
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # no package, no driver, no device
        return False


@pytest.mark.skipif(not PAGES, reason="the pages are not here")
def test_examples(tmp_path):
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 500)) * 1000
    points = gpd.GeoDataFrame(
        {"id": np.arange(500), "fare": rng.random(500)},
        geometry=shapely.points(x, y),
        crs=2263,
    )
    corner = np.mgrid[0:1000:50, 0:1000:50].reshape(2, -1)
    lots = gpd.GeoDataFrame(
        {"lot": np.arange(400)},
        geometry=shapely.box(*corner, *(corner + 55)),
        crs=2263,
    )
    n_examples, n_skipped, before = 0, 0, os.getcwd()
    os.chdir(tmp_path)
    try:
        for page in PAGES:
            names = {"points": points, "lots": lots, "x": x, "y": y}
            names["table"] = pa.table(points.to_arrow())
            for code in examples(page):
                if re.search(ON_A_GPU, code, re.M) and not has_gpu():
                    n_skipped += 1
                    continue
                exec(compile(code, str(page), "exec"), names)
                n_examples += 1
    finally:
        os.chdir(before)
    assert n_examples > 8
    if n_skipped:
        warnings.warn(f"{n_skipped} examples need a GPU and were skipped", stacklevel=1)


@pytest.mark.parametrize("path", sorted(TOP.glob("docs/*.ipynb")), ids=lambda p: p.name)
def test_notebook(path):
    names = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(path), "exec"), names)


@pytest.mark.skipif(not (TOP / "docs").exists(), reason="the pages are not here")
def test_pages_are_built(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    words = [sys.executable, "-m", "sphinx", "-q", "-W", TOP / "docs", tmp_path]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "ogrjoin.join" in (tmp_path / "python.html").read_text()
    assert "pairs_batches" in (tmp_path / "python_guide.html").read_text()  # an included page
    assert "validate" in (tmp_path / "first_joins.html").read_text()  # the notebook
