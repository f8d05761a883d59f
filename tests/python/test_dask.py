"""The sample for Dask.  The workers of a Dask cluster give the rows of one call of
join()."""

import importlib.util
import os
import pathlib
import sys

import ogrjoin
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("shapely")
distributed = pytest.importorskip("distributed")
from test_scale_files import same_files, sides

SAMPLE = pathlib.Path(__file__).parents[2] / "samples" / "dask_join.py"


@pytest.fixture(scope="module")
def sample():
    spec = importlib.util.spec_from_file_location("dask_join", SAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def client():
    # Workers are threads. In other processes the sample could not be imported,
    # because it is not in a package.
    with distributed.Client(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as client:
        yield client


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_rows_of_dask_workers(sample, client, tmp_path):
    left, right = sides(tmp_path)
    for options in ({"op": "nearest", "max_distance": 3}, {"op": "within", "how": "full"}):
        out = tmp_path / "out"
        n = sample.join_files(client, left, right, out, tiles=4, overwrite=True, **options)
        assert n == len(same_files(out, left, right, **options))
    assert sorted(os.listdir(tmp_path)) == ["left", "out", "right"]


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_the_program(sample, client, tmp_path, monkeypatch, capsys):
    left, right = sides(tmp_path)
    words = ["tiles=4", "op=nearest", "max_distance=3", "k=2"]
    monkeypatch.setenv("DASK_SCHEDULER", client.scheduler.address)
    for more in ([], ["overwrite=1"]):
        out = str(tmp_path / "out")
        monkeypatch.setattr(sys, "argv", ["dask_join.py", left, right, out, *words, *more])
        sample.main()
        n = len(same_files(out, left, right, op="nearest", max_distance=3, k=2))
        assert capsys.readouterr().out == f"{n} rows\n" and len(os.listdir(out)) > 1


def test_a_task_that_fails_leaves_no_output(sample, client, tmp_path):
    left, right = sides(tmp_path)
    with open(f"{right}/1.parquet", "r+b") as file:  # a page that cannot be read
        file.seek(4)
        file.write(b"\xff" * 40)
    with pytest.raises(Exception):
        sample.join_files(client, left, right, tmp_path / "out", op="within")
    assert sorted(os.listdir(tmp_path)) == ["left", "right"]
    with pytest.raises(ogrjoin.InvalidError, match="is the left side"):
        sample.join_files(client, left, right, left, op="within")
