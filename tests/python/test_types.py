"""The package passes mypy --strict, and the stub is what the module has."""

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
[mypy-geopandas.*,pandas.*,polars.*,pyarrow.*,pyogrio.*,pyproj.*,shapely.*]
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
