"""Every example of the pages and of the package's README runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

gpd = pytest.importorskip("geopandas")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
import pyarrow as pa
import shapely

TOP = Path(__file__).parents[2] / "driver"
PAGES = [p for p in (TOP / "python/README.md", *TOP.glob("docs/*.md")) if p.exists()]


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
    n_examples, before = 0, os.getcwd()
    os.chdir(tmp_path)
    try:
        for page in PAGES:
            names = {"points": points, "lots": lots, "x": x, "y": y}
            names["table"] = pa.table(points.to_arrow())
            for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
                exec(compile(code, str(page), "exec"), names)
                n_examples += 1
    finally:
        os.chdir(before)
    assert n_examples > 4


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
