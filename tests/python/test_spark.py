"""Joins of DataFrames and folders in Spark.  The rows are those of one call of join(),
bit for bit, even if Python workers and executors are killed.

OGRJOIN_SPARK_MASTER is local[2,4], or local-cluster[2,1,1024] for a cluster of
processes.  If it is not set, a few tests run, by local[2,4].  Spark needs a JRE of
version 17 or later.
"""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pytest.importorskip("shapely")
pytest.importorskip("pyspark", minversion="4.0")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("no JRE", allow_module_level=True)
from test_scale_files import same_files, write_folder
from test_scale_tiles import layer

from ogrjoin import spark as oj

IS_QUICK = not os.environ.get("OGRJOIN_SPARK_MASTER")
MASTER = os.environ.get("OGRJOIN_SPARK_MASTER") or "local[2,4]"
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:the join side is read"),
]


def start(**settings):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    where = os.pathsep.join(p for p in sys.path if p)
    builder = SparkSession.builder.master(MASTER)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "700m",
        # For small joins the JVM's second compiler takes more time than it saves.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executorEnv.PYTHONPATH": where,
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",  # several batches per tile
        **settings,
    }.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


@pytest.fixture(scope="module")
def session():
    made = start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    r, folder = np.random.default_rng(7), tmp_path_factory.mktemp("spark")
    return (
        write_folder(folder / "left", layer(r, "points", 500), kind=pa.float64()),
        write_folder(folder / "right", layer(r, "boxes", 300), kind=pa.float64()),
    )


def frames(session, folders):
    return [session.read.parquet(folder).drop("bbox") for folder in folders]


def sides(folders):
    return [ogrjoin.scan(f).reader().read_all().drop_columns(["bbox"]) for f in folders]


def same_rows(rows, one):
    same_tables(rows.toArrow(), one.read_all())


def same_tables(rows, one):
    assert rows.schema.names == one.schema.names
    assert len(rows) == len(one)
    for name in one.schema.names:
        a, b = one.column(name).combine_chunks(), rows.column(name).combine_chunks()
        a = a.cast(b.type)
        if pa.types.is_floating(a.type):
            assert a.is_valid().equals(b.is_valid()), name
            a, b = (np.asarray(c.fill_null(0)).view(np.int64) for c in (a, b))
            assert np.array_equal(a, b), name
        else:
            assert a.equals(b), name


JOINS = (
    ("broadcast", {"op": "nearest", "max_distance": 3, "exclude": "self"}),
    ("broadcast", {"op": "intersects", "how": "right", "pick": "min:n"}),
    ("shuffle", {"op": "nearest", "k": 3, "ties": "all", "how": "full"}),
    ("shuffle", {"op": "dwithin", "max_distance_field": "reach", "agg": "count, sum(v)"}),
    ("shuffle", {"op": "within", "how": "anti"}),
    ("sums", {"op": "intersects", "agg": "count, sum(v), mean(n)"}),
    ("sums", {"op": "dwithin", "max_distance": 2, "agg": "sum(n), count(v)", "how": "inner"}),
)


@pytest.mark.parametrize("i", (1, 2, 5) if IS_QUICK else range(len(JOINS)))
def test_frames(session, folders, i):
    way, options = JOINS[i]
    rows = oj.join(*frames(session, folders), way=way, tiles=7, order="input", **options)
    same_rows(rows, ogrjoin.join(*sides(folders), **options))


@pytest.mark.parametrize("options", ({"along": "m", "k": 2}, {"op": "dwithin", "max_distance": 9}), ids=str)
def test_places_along_lines(session, tmp_path, options):
    """Lines in the west have M values; tiles in the east have no M values."""
    shapely, r = pytest.importorskip("shapely"), np.random.default_rng(3)
    if not hasattr(shapely, "has_m"):
        pytest.skip("shapely without M values")
    text = []
    for x, y in r.uniform(0, 100, (150, 2)).round(2).tolist():
        m = ("M ", " 7", " 9", " 40") if x < 50 else ("", "", "", "")
        text.append(f"LINESTRING {m[0]}({x} {y}{m[1]}, {x + 3} {y}{m[2]}, {x + 3} {y - 4}{m[3]})")
    left, right = layer(r, "points", 300), layer(r, "lines", 150)
    wkb = shapely.to_wkb(shapely.from_wkt(text), output_dimension=4, flavor="iso")
    geometry = pa.array(wkb.tolist(), pa.binary())
    right = right.set_column(right.schema.get_field_index("geometry"), right.schema.field("geometry"), geometry)
    where = [write_folder(tmp_path / name, side, kind=pa.float64()) for name, side in (("l", left), ("r", right))]
    options = {"op": "nearest", **options, "along_field": "along", "offset_field": "beside", "side_field": "side",
               "along_percent_field": "percent", "segment_field": "piece", "line_bearing_field": "course"}  # fmt: skip
    rows = oj.join(*frames(session, where), way="shuffle", tiles=9, order="input", **options)
    one = ogrjoin.join(*sides(where), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about lines without M values
        same_rows(rows, one)


@pytest.mark.parametrize("i", (3,) if IS_QUICK else (2, 3))
def test_tiles_beyond_the_memory_of_a_task(session, folders, i):
    way, options = JOINS[i]
    left, right = frames(session, folders)
    options = {"way": way, "tiles": 1, "order": "input", **options}
    n_bytes = right.toArrow().nbytes * 2
    rows = oj.join(left, right, task_memory=n_bytes // 2, **options)
    del options["way"], options["tiles"], options["order"]
    same_rows(rows, ogrjoin.join(*sides(folders), **options))
    with pytest.raises(Exception, match="tile 0: .* rows of the left side.* set task_memory="):
        oj.join(left, right, way=way, tiles=1, task_memory=200, **options).toArrow()


def test_the_way_of_sums(session, folders):
    left, right = frames(session, folders)
    options = {"op": "contains", "agg": "count, sum(v)"}
    right = right.union(right).union(right)
    n_bytes = [side.toArrow().nbytes * 2 for side in (left, right)]
    assert 1.5 * n_bytes[0] < n_bytes[1]
    for memory, pair, way in (
        (n_bytes[1] * 1.2, (left, right), "sums"),
        (n_bytes[1] * 1.2, (right, left), "broadcast"),
        (n_bytes[0] * 1.2, (left, right), "sums"),
        (n_bytes[0] // 2, (left, right), "shuffle"),
    ):
        assert oj.explain(*pair, join_memory=memory, fid="n", **options).way == way
    with pytest.raises(ogrjoin.InvalidError, match='way="sums"'):
        oj.join(left, right, way="sums", op="contains", fid="n")


@pytest.mark.skipif(IS_QUICK, reason="OGRJOIN_SPARK_MASTER is not set")
def test_frames_with_a_column_of_numbers(session, folders):
    left, right = (f.repartition(3) for f in frames(session, folders))
    rows = oj.join(left, right, op="nearest", fid="n", way="shuffle", tiles=3, how="inner")
    one = ogrjoin.join(*sides(folders), op="nearest", fid="n", how="inner").read_all()
    key = [("n", "ascending"), ("join_fid", "ascending")]
    rows, one = rows.toArrow().sort_by(key), one.sort_by(key)
    assert len(rows) == len(one)
    for name in ("n", "join_fid", "join_distance"):
        assert np.array_equal(rows.column(name).to_numpy(), one.column(name).to_numpy())
    twice = left.unionByName(left)
    with pytest.raises(ogrjoin.InvalidError, match="is not unique"):
        oj.join(twice, right, op="nearest", fid="n", way="shuffle")
    with pytest.raises(ogrjoin.InvalidError, match="name a column of whole numbers"):
        made = session.createDataFrame([(1, b"")], "n bigint, geometry binary")
        oj.join(made, right, op="nearest", way="shuffle")


def test_errors_come_before_tasks(session, folders):
    left, right = frames(session, folders)
    with pytest.raises(ogrjoin.UnsupportedError):
        oj.join(left, right, op="disjoint")
    with pytest.raises(ogrjoin.InvalidError):
        oj.join(left, right, op="within", left_crs="EPSG:2263", right_crs="EPSG:4326")
    with pytest.raises(ogrjoin.InvalidError, match="way is"):
        oj.join(left, right, op="within", way="magic")
    with pytest.raises(ogrjoin.InvalidError, match="left_column"):
        oj.join(left.withColumnRenamed("geometry", "g"), right, op="within")


@pytest.mark.skipif(IS_QUICK, reason="OGRJOIN_SPARK_MASTER is not set")
def test_explain_and_validate(session, folders):
    left, right = frames(session, folders)
    told = oj.explain(left, right, op="within")
    assert (told.way, told.rows, told.tiles) == ("broadcast", (500, 300), 1)
    told = oj.explain(left, right, op="nearest", max_distance=1, way="shuffle", tiles=4)
    assert told.way == "shuffle" and told.tiles >= 4 and 1 <= told.copies < 4
    found = oj.validate(left, right, op="nearest", max_distance=3, sample=0.5)
    assert found.n_rows >= 250 and found.n_pairs > 100 and found.n_differences == 0


def descendants(of=None):
    """Returns {process id: command} of all processes that this process, or `of`, has
    started."""
    of = of or os.getpid()
    parents, words = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as line:
                parents[int(pid)] = int(stat.read().rpartition(")")[2].split()[1])
                words[int(pid)] = line.read()
        except OSError:
            continue  # the process has ended
    mine = {of}
    while more := {p for p, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return {pid: words[pid] for pid in mine - {of}}


def workers():
    """Returns the Python workers of tasks, with their daemon. Those that plan and
    commit outputs on the driver are left out."""
    return {
        pid
        for pid, line in descendants().items()
        if "pyspark.daemon" in line and "pyspark.sql.worker" not in line
    }


def executors():
    return {pid for pid, line in descendants().items() if "CoarseGrainedExecutorBackend" in line}


class Slowly:
    """A task that waits, at its first run, until a process is killed."""

    def __init__(self, flag):
        self._flag = flag

    def __call__(self, batches):
        for batch in batches:
            if not os.path.exists(self._flag):
                with open(self._flag, "w"):
                    pass
                time.sleep(20)
            yield batch


def kill_when(flag, found):
    """Kills the processes of found() once, when a task has created the flag file.
    Returns the thread that does this, and the list of the processes that it has killed
    so far."""
    killed = []

    def wait():
        end = time.monotonic() + 300
        while not os.path.exists(flag) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1)
        for pid in found():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread, killed


@pytest.fixture(params=(workers, executors))
def killed_processes(request):
    """Returns workers or executors: the function that finds the processes to kill.
    Spark's processes get the classes of this file by value, because they cannot import
    it."""
    if not os.path.isdir("/proc"):
        pytest.skip("no /proc")
    if request.param is executors and not MASTER.startswith("local-cluster"):
        pytest.skip("executors are processes with OGRJOIN_SPARK_MASTER=local-cluster[2,1,1024]")
    import pyspark.cloudpickle

    pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return request.param


@pytest.mark.parametrize("way", ("shuffle",) if IS_QUICK else ("broadcast", "shuffle"))
def test_killed(session, folders, tmp_path, way, killed_processes):
    options = {"op": "nearest", "max_distance": 3, "k": 2}
    left, right = frames(session, folders)
    flag = str(tmp_path / "flag")
    open(flag, "w").close()  # planning is not slowed
    slow = left.mapInArrow(Slowly(flag), left.schema)
    rows = oj.join(slow, right, fid="n", way=way, tiles=4, order="input", **options)
    os.remove(flag)
    thread, killed = kill_when(flag, killed_processes)
    made = rows.toArrow()
    thread.join()
    assert killed
    again = oj.join(left, right, fid="n", way=way, tiles=4, order="input", **options).toArrow()
    same_tables(made, again)
    assert len(made) > 500


@pytest.mark.parametrize(
    "options", ({"op": "nearest", "max_distance": 3}, {"op": "within", "how": "full"})
)
def test_files(session, folders, tmp_path, options):
    out = str(tmp_path / "out")
    n = oj.join_files(*folders, out, session=session, tiles=4, **options)
    assert n == len(same_files(out, *folders, **options))
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(ogrjoin.InvalidError, match="overwrite"):
        oj.join_files(*folders, out, session=session, **options)


def test_the_program(session, folders, tmp_path, monkeypatch, capsys):
    path = os.path.join(os.path.dirname(__file__), "..", "..", "samples", "spark_join.py")
    spec = importlib.util.spec_from_file_location("spark_join", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    out = str(tmp_path / "out")
    words = ["spark_join.py", *folders, out, "op=nearest", "max_distance=3", "k=2", "tiles=4"]
    monkeypatch.setattr(sys, "argv", [*words, "explain=1"])
    program.main()
    plan = capsys.readouterr().out
    assert plan.startswith("files: 500 x 300 rows in ") and not os.path.exists(out)
    monkeypatch.setattr(sys, "argv", words)
    program.main()
    n = len(same_files(out, *folders, op="nearest", max_distance=3, k=2))
    assert capsys.readouterr().out == f"{plan}{n} rows\n"


def test_files_of_a_job_that_fails(session, folders, tmp_path):
    right = str(tmp_path / "right")
    shutil.copytree(folders[1], right)
    with open(f"{right}/1.parquet", "r+b") as file:  # a page that cannot be read
        file.seek(4)
        file.write(b"\xff" * 40)
    with pytest.raises(Exception):
        oj.join_files(folders[0], right, str(tmp_path / "out"), op="within", session=session)
    assert os.listdir(tmp_path) == ["right"]


# ---- outputs ---------------------------------------------------------------------


def content(folder):
    names = sorted(os.listdir(folder))
    made = {}
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            made[name] = file.read()
    return made


def joined_in_order(session, folders, **changes):
    options = {"op": "nearest", "max_distance": 3, **changes}
    left, right = frames(session, folders)
    rows = oj.join(left, right, way="shuffle", tiles=3, order="input", **options)
    return rows, options


def test_write(session, folders, tmp_path):
    rows, options = joined_in_order(session, folders, left_crs="EPSG:2263", right_crs="EPSG:2263")
    out = str(tmp_path / "out")
    one = ogrjoin.join(*sides(folders), **options).read_all()
    n = oj.write(rows, out)
    made = ogrjoin.scan(out).reader().read_all().drop_columns(["bbox"])
    same_tables(made, one)
    assert n == len(made)
    assert b"2263" in made.schema.field("geometry").metadata[b"ARROW:extension:metadata"]
    with pytest.raises(Exception, match="overwrite"):
        oj.write(rows, out)
    few = rows.where("n < 9").drop("name")  # a DataFrame made from it has the CRS, too
    assert oj.write(few, out, overwrite=True) == few.count()
    made = ogrjoin.scan(out).reader().read_all()
    assert b"2263" in made.schema.field("geometry").metadata[b"ARROW:extension:metadata"]
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("way", ("shuffle",) if IS_QUICK else ("broadcast", "shuffle"))
def test_tasks_of_a_join_write_its_rows(session, folders, tmp_path, way):
    left, right = (f.repartition(3) for f in frames(session, folders))
    options = {"op": "nearest", "max_distance": 3, "k": 2, "fid": "n"}
    options |= {"left_crs": "EPSG:2263", "right_crs": "EPSG:2263"}
    rows = oj.join(left, right, way=way, tiles=5, **options)
    out, again = str(tmp_path / "out"), str(tmp_path / "again")
    n = oj.write(rows, out)
    made = ogrjoin.scan(out).reader().read_all()
    assert n == len(made) > 500
    geometry = made.schema.field("geometry")
    assert b"2263" in geometry.metadata[b"ARROW:extension:metadata"]
    same_tables(made.drop_columns(["bbox"]), rows.toArrow())
    if way == "shuffle":  # files do not depend on the order in which rows arrive
        other = left.sortWithinPartitions("v")
        assert oj.write(oj.join(other, right, way=way, tiles=5, **options), again) == n
        assert content(again) == content(out)
    with pytest.raises(ogrjoin.InvalidError, match="overwrite"):
        oj.write(rows, out)
    kept = rows.persist()
    assert oj.write(kept, out, overwrite=True) == n  # by the data source
    kept.unpersist()
    same_tables(ogrjoin.scan(out).reader().read_all().drop_columns(["bbox"]), rows.toArrow())
    assert set(os.listdir(tmp_path)) <= {"out", "again"}


def test_a_join_that_fails_while_it_writes_leaves_the_former_output(session, folders, tmp_path):
    left, right = frames(session, folders)
    out = str(tmp_path / "out")
    oj.write(oj.join(left, right, op="within", way="shuffle", tiles=3), out)
    before = content(out)
    failing = oj.join(left, right, op="nearest", way="shuffle", tiles=1, task_memory=200)
    for path in (out, str(tmp_path / "new")):
        with pytest.raises(Exception, match="set task_memory="):
            oj.write(failing, path, overwrite=True)
    assert content(out) == before and os.listdir(tmp_path) == ["out"]


def test_a_task_that_fails_each_time_leaves_the_former_output(session, folders, tmp_path):
    rows, _ = joined_in_order(session, folders)
    out = str(tmp_path / "out")
    oj.write(rows, out)
    before = content(out)

    def fail(batches):
        for batch in batches:
            yield batch
            raise OSError("a task that fails each time")

    odd = rows.mapInArrow(fail, rows.schema)
    for path in (out, str(tmp_path / "new")):
        with pytest.raises(Exception, match="a task that fails each time"):
            oj.write(odd, path, overwrite=True)
    assert content(out) == before and os.listdir(tmp_path) == ["out"]


def check_written_in_spite_of_a_kill(rows, out, undisturbed, flag, killed_processes):
    thread, killed = kill_when(flag, killed_processes)
    oj.write(rows, out)
    thread.join()
    assert killed
    assert content(out) == content(undisturbed)
    assert sorted(os.listdir(os.path.dirname(out))) == ["flag", "out", "undisturbed"]


def test_killed_while_it_writes(session, folders, tmp_path, killed_processes):
    rows, _ = joined_in_order(session, folders)
    flag, out, undisturbed = (str(tmp_path / name) for name in ("flag", "out", "undisturbed"))
    oj.write(rows, undisturbed)
    slow = rows.mapInArrow(Slowly(flag), rows.schema)
    check_written_in_spite_of_a_kill(slow, out, undisturbed, flag, killed_processes)


def test_killed_while_it_joins_and_writes(session, folders, tmp_path, killed_processes):
    options = {"op": "nearest", "max_distance": 3, "fid": "n", "way": "shuffle", "tiles": 4}
    left, right = frames(session, folders)
    flag, out, undisturbed = (str(tmp_path / name) for name in ("flag", "out", "undisturbed"))
    oj.write(oj.join(left, right, **options), undisturbed)
    open(flag, "w").close()  # planning is not slowed
    slow = oj.join(left.mapInArrow(Slowly(flag), left.schema), right, **options)
    os.remove(flag)
    check_written_in_spite_of_a_kill(slow, out, undisturbed, flag, killed_processes)


def run_apart(program, folder, *arguments, **environment):
    """Starts a Python program that uses the functions of these tests. Returns the
    process (Popen)."""
    script = folder / "program.py"
    script.write_text("import sys\nimport test_spark as t\n" + program)
    where = os.pathsep.join([str(folder), os.path.dirname(__file__), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": where, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop(program):
    """Kills a program and all that it has started. Does nothing if it has ended."""
    if program.poll() is None:
        for pid in [*descendants(program.pid), program.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        program.communicate()


STOPPED = """
left, right, out = sys.argv[1:]
session = t.start(**{"spark.master": "local[2]"})
t.oj.join_files(left, right, out, session=session, tiles=4, overwrite=True, op="within")
"""

# Waits in commit() between the two renamings, which is the worst moment.
WAIT = """
import os, time
from ogrjoin.scale.parquet_out import ParquetOutput

class Slow:
    def __init__(self, filesystem):
        self._filesystem = filesystem
    def move(self, source, target):
        self._filesystem.move(source, target)
        if target.endswith(".former"):
            open(os.environ["OGRJOIN_TEST_FLAG"], "w").close()
            time.sleep(300)

publish = ParquetOutput._publish
ParquetOutput._publish = lambda self, f, *names: publish(self, Slow(f), *names)
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="no /proc")
def test_a_driver_stopped_during_commit(session, folders, tmp_path):
    out, flag = str(tmp_path / "out"), str(tmp_path / "flag")
    oj.join_files(*folders, out, session=session, tiles=2, op="nearest", max_distance=3)
    before = content(out)
    apart = tmp_path / "apart"
    apart.mkdir()
    (apart / "sitecustomize.py").write_text(WAIT)
    driver = run_apart(STOPPED, apart, *folders, out, OGRJOIN_TEST_FLAG=flag)
    end = time.monotonic() + 300
    while not os.path.exists(flag) and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    assert os.path.exists(flag), driver.communicate()[1]
    stop(driver)
    assert not os.path.exists(out)  # neither output: the new one is not renamed yet
    with pytest.raises(ogrjoin.InvalidError, match="overwrite"):  # the former output is there again
        oj.join_files(*folders, out, session=session, op="within")
    assert content(out) == before
    oj.join_files(*folders, out, session=session, op="within", overwrite=True)
    same_files(out, *folders, op="within")
    assert sorted(os.listdir(tmp_path)) == ["apart", "flag", "out"]


# The first attempt of each task of the second half writes slowly.
SLOW_ATTEMPTS = """
import os, time
from ogrjoin.scale.parquet_out import ParquetOutput

write = ParquetOutput.write

def write_slowly(self, part, batches):
    from pyspark import TaskContext
    task = TaskContext.get()
    if task is None:  # the driver
        return write(self, part, batches)
    name = f"{os.path.basename(self._path)}.{task.partitionId()}.{task.attemptNumber()}"
    open(os.path.join(os.environ["OGRJOIN_TEST_FLAG"], name), "w").close()
    waits = task.partitionId() >= 2 and task.attemptNumber() == 0
    def slow():
        for batch in batches:
            yield batch
            if waits:
                time.sleep(25)
    return write(self, part, slow())

ParquetOutput.write = write_slowly
"""

TWINS = """
left, right, folder, master = sys.argv[1:]
session = t.start(**{
    "spark.master": master, "spark.speculation": "true", "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2", "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "3s",
    "spark.executorEnv.OGRJOIN_TEST_FLAG": f"{folder}/attempts",
})
t.oj.join_files(left, right, f"{folder}/files", session=session, tiles=4, op="within")
rows = session.read.parquet(f"{folder}/files").drop("bbox")
rows = rows.repartitionByRange(4, "n").sortWithinPartitions("n", "join_fid")
t.oj.write(rows, f"{folder}/rows")
session.stop()
"""


@contextlib.contextmanager
def two_hosts(folder):
    """Returns the master URL of a standalone cluster with two workers of two cores
    each. The workers have different addresses, because Spark does not start a second
    attempt of a task on the host of the first."""
    import pyspark

    where = os.path.dirname(pyspark.__file__)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "SPARK_HOME": where, "SPARK_WORKER_DIR": str(folder),
                   "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}  # fmt: skip
    started = []

    def daemon(name, *words):
        line = [f"{where}/bin/spark-class", f"org.apache.spark.deploy.{name}", "--webui-port", "0"]
        with open(folder / "daemons.log", "a") as log:
            started.append(
                subprocess.Popen([*line, *words], env=environment, stdout=log, stderr=log)
            )

    try:
        daemon("master.Master", "--host", "127.0.0.1", "--port", str(port))
        for host in ("127.0.0.2", "127.0.0.3"):
            daemon("worker.Worker", "--host", host, "--cores", "2", "--memory", "1g",
                   f"spark://127.0.0.1:{port}")  # fmt: skip
        yield f"spark://127.0.0.1:{port}"
    finally:
        for program in reversed(started):
            stop(program)


@pytest.mark.skipif(IS_QUICK, reason="OGRJOIN_SPARK_MASTER is not set")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="127.0.0.2 is no address here")
def test_twins_of_slow_tasks(folders, tmp_path):
    apart, attempts = tmp_path / "apart", tmp_path / "attempts"
    cluster = tmp_path / "cluster"
    for folder in (apart, attempts, cluster):
        folder.mkdir()
    (apart / "sitecustomize.py").write_text(SLOW_ATTEMPTS)
    with two_hosts(cluster) as master:
        words = *folders, tmp_path, master
        program = run_apart(TWINS, apart, *words, OGRJOIN_TEST_FLAG=str(attempts))
        try:
            _, errors = program.communicate(timeout=900)
        finally:
            stop(program)
    assert program.returncode == 0, errors
    made = set(os.listdir(attempts))
    assert {"files.2.1", "files.3.1"} & made and {"rows.2.1", "rows.3.1"} & made, made  # second attempts ran
    one = same_files(str(tmp_path / "files"), *folders, op="within")
    made = ogrjoin.scan(str(tmp_path / "rows")).reader().read_all()
    one = one.sort_by([("n", "ascending"), ("join_fid", "ascending")])
    # the geometry is not marked as such, so there is no bbox
    same_tables(made, one.drop_columns(["bbox"]))
    assert sorted(os.listdir(tmp_path)) == ["apart", "attempts", "cluster", "files", "rows"]


GPU_TASKS = """
import json
left, right, out, discovery, n = sys.argv[1:]
session = t.start(**{
    "spark.master": "local-cluster[1,2,1024]", "spark.worker.resource.gpu.amount": n,
    "spark.worker.resource.gpu.discoveryScript": discovery,
    "spark.executor.resource.gpu.amount": n, "spark.task.resource.gpu.amount": "1",
    **{f"spark.executorEnv.{n}": v for n, v in t.os.environ.items() if n.startswith("OGRJOIN_")},
})
frames = t.frames(session, (left, right))
masks = session.range(0, 2, 1, 2).rdd.map(lambda _: t.oj.task_gpus()).collect()
found = {"masks": sorted(set(masks)), "driver": t.oj.task_gpus()}
asked = {"op": "nearest", "k": 2, "backend": "cuda"}
ways = {way: lambda way=way: len(t.oj.join(*frames, way=way, **asked).collect()) for way in ("broadcast", "shuffle")}
ways["files"] = lambda: t.oj.join_files(left, right, out, session=session, tiles=2, **asked)
for way, run in ways.items():
    try:
        found[way] = run()
    except Exception as error:
        found[way] = str(error)
json.dump(found, sys.stdout)
session.stop()
"""


def run_with_gpus(folders, folder, addresses):
    """Joins folders on a cluster whose tasks get one GPU each, of the given addresses.
    Returns what GPU_TASKS prints."""
    discovery = folder / "gpus.sh"
    discovery.write_text('#!/bin/sh\necho \'{"name": "gpu", "addresses": %s}\'\n' % json.dumps(addresses))
    discovery.chmod(0o755)
    program = run_apart(GPU_TASKS, folder, *folders, folder / "out", discovery, len(addresses))
    try:
        output, errors = program.communicate(timeout=900)
    finally:
        stop(program)
    assert program.returncode == 0, errors
    return json.loads(output)


@pytest.mark.skipif(IS_QUICK, reason="OGRJOIN_SPARK_MASTER is not set")
def test_gpus_of_tasks(folders, tmp_path):
    """A task joins on the GPUs that Spark gives it, whichever way is taken."""
    found = run_with_gpus(folders, tmp_path, ["2", "5"])
    assert found["masks"] in ([1 << 2], [1 << 5], [1 << 2, 1 << 5]) and found["driver"] == 0
    for way in ("broadcast", "shuffle", "files"):
        # without such a device the error of the library names it
        assert re.search("cuda cannot be used: there is no (GPU [25]|CUDA)", str(found[way])), found
    if os.environ.get("OGRJOIN_CUDA_MODULE"):
        found = run_with_gpus(folders, tmp_path, ["0"])
        one = ogrjoin.join(*sides(folders), "nearest", k=2).read_all()
        assert [found[way] for way in ("broadcast", "shuffle", "files")] == [len(one)] * 3, found
