#!/usr/bin/env python3
"""Joins of a city's points and lots by Spark beside one process, other packages, and
limits of memory.

    spark_city.py [--master M] [--tiles N] [--turns N] [--make POINTS LOTS] FOLDER PART...

FOLDER   points_sorted, lots_sorted, streets_sorted: folders of GeoParquet; --make writes them,
         from tests/bench/citygen.py
PART     ways     nearest lot within 100 ft, GeoParquet to GeoParquet: join().to_parquet()
                  in one process with two threads, join_files(), and Spark's ways; wall
                  and processor seconds, Spark's start apart, and what they are of the first
         files, broadcast, shuffle   one process and this way of Spark's only
         workers  the files way with one and with two workers
         peers    points in lots: join_files() on two threads and in two processes, whose
                  start counts, and dask-geopandas' sjoin() on two workers, whose start
                  does not
         nearest  the nearest lot of 1,000 points (--near): join(), and Spark's
                  nearestByJoin(), which makes the product of both sides
         memory   the largest resident memory of a Python worker, by broadcast, shuffle
                  and files
         skew     three tenths of the points at one place: the slowest task beside the
                  median one
         plan     join_files()'s plan of 10,000 row groups beside 10,000
         rates    rows and bytes that a core reads, joins, writes and shuffles in a second
         zones    sums of fares in 2,000 squares: by shuffle and by partial sums
--master of Spark (local[2]); --tiles (the default of join_files(); of a shuffle 32);
--turns (3): medians and least times of runs in turn

Processor seconds are those of this process and all that it has started, beside them those
of the JVM and of Spark's Python workers, and the load of the machine.  On a machine that
does other work they are what to compare.

Without the packages a part needs it is skipped with a line; without any: exit code 77.
Needs the environment of ogrjoin[spark] with geopandas.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

try:
    import geopandas
    import pyarrow as pa
    import pyarrow.parquet
    import pyspark
    import shapely
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import ogrjoin
from ogrjoin import spark as oj
from ogrjoin.scale import FilesPlan, explain_files, join_files
from ogrjoin.scale.footers import read_row_groups
from ogrjoin.scale.parquet_out import ParquetOutput
from ogrjoin.scale.tile_join import ROW

FILES = 8
ROWS = {"points": 10_000, "lots": 2_000, "streets": 2_000}  # of a row group
OPTIONS = {"op": "nearest", "max_distance": 100}
CRS = {"left_crs": "EPSG:2263", "right_crs": "EPSG:2263"}


# ---- data ------------------------------------------------------------------------


def write_sorted(folder, name, frame):
    order = frame.geometry.centroid.hilbert_distance().argsort(kind="stable")
    frame = frame.iloc[order].reset_index(drop=True)
    shutil.rmtree(f"{folder}/{name}_sorted", ignore_errors=True)
    os.makedirs(f"{folder}/{name}_sorted")
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), FILES)):
        frame.iloc[rows].to_parquet(
            f"{folder}/{name}_sorted/{i}.parquet",
            write_covering_bbox=True,
            row_group_size=ROWS[name.partition("_")[0]],
        )


def make_city(folder, n_points, n_lots):
    here = os.path.dirname(os.path.abspath(__file__))
    raw = f"{folder}/raw"
    subprocess.run(
        [sys.executable, f"{here}/citygen.py", raw, str(n_points), str(n_lots)], check=True
    )

    def column(name, kind):
        return np.fromfile(f"{raw}/{name}", kind)

    points = shapely.points(column("points.x.f64", "f8"), column("points.y.f64", "f8"))
    fields = {n: column(f"points.{n}.{k}", t) for n, k, t in (
        ("id", "i64", "i8"), ("fare", "f64", "f8"), ("hour", "i32", "i4"))}  # fmt: skip
    write_sorted(folder, "points", geopandas.GeoDataFrame(fields, geometry=points, crs="EPSG:2263"))
    del points, fields
    xy = np.column_stack((column("lots.x.f64", "f8"), column("lots.y.f64", "f8")))
    rings, parts, feats = (column(f"lots.{n}.i32", "i4") for n in ("ring", "part", "feat"))
    shapes = shapely.from_ragged_array(
        shapely.GeometryType.MULTIPOLYGON, xy, (rings, parts, feats)
    )
    fields = {"lot_id": column("lots.id.i64", "i8"), "landuse": column("lots.landuse.u8", "u1")}
    write_sorted(folder, "lots", geopandas.GeoDataFrame(fields, geometry=shapes, crs="EPSG:2263"))
    xy = np.column_stack((column("streets.x.f64", "f8"), column("streets.y.f64", "f8")))
    ends = column("streets.feat.i32", "i4")
    shapes = shapely.from_ragged_array(shapely.GeometryType.LINESTRING, xy, (ends,))
    fields = {"street_id": column("streets.id.i64", "i8")}
    streets = geopandas.GeoDataFrame(fields, geometry=shapes, crs="EPSG:2263")
    write_sorted(folder, "streets", streets)


# ---- Spark -------------------------------------------------------------------------


def start_spark(master, **settings):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        **settings,
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.range(0, 8, 1, 2).mapInArrow(lambda batches: batches, "id bigint").collect()
    return session


def processes():
    """Returns {process id: fields of /proc/PID/stat after the name} of this process and
    all processes that it has started."""
    fields, made = {}, {os.getpid()}
    for name in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(name) as stat:
                fields[int(name.split("/")[2])] = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
    while more := {p for p, words in fields.items() if int(words[1]) in made} - made:
        made |= more
    return {pid: fields[pid] for pid in made}


class Ticks:
    """Processor time of this process and all that it has started. A thread reads it
    every second, because /proc has no times of processes that have ended."""

    def __init__(self):
        self._used, self._kinds, self._lock = {}, {}, threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            self.seconds()
            time.sleep(1)

    def _kind(self, pid):
        """Returns 0 for this process or a copy of it, 1 for a JVM, 2 for a Python
        worker."""
        try:
            with open(f"/proc/{pid}/cmdline") as line:
                words = line.read()
        except OSError:
            return 0
        return 2 if "pyspark" in words and "java" not in words else int("java" in words)

    def seconds(self):
        """[all, JVM, workers]"""
        with self._lock:
            for pid, words in processes().items():
                key = pid, words[19]
                self._used[key] = int(words[11]) + int(words[12])
                if self._kinds.get(key, 0) == 0:  # a worker is a fork that changes its name late
                    self._kinds[key] = 0 if pid == os.getpid() else self._kind(pid)
            made = np.zeros(3)
            for key, used in self._used.items():
                made[self._kinds[key]] += used
            made[0] = made.sum()
            return made / os.sysconf("SC_CLK_TCK")


def python_workers():
    """Returns the process ids of Spark's Python workers that this process has started."""
    for pid in processes().keys() - {os.getpid()}:
        try:
            with open(f"/proc/{pid}/cmdline") as line:
                if "pyspark.daemon" in line.read():
                    yield pid
        except OSError:
            continue


class Resident:
    """Measures the largest resident memory of a Python worker during a with block, in MB."""

    def __enter__(self):
        self.most, self._ends = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        while not self._ends.wait(0.2):
            for pid in python_workers():
                try:
                    with open(f"/proc/{pid}/status") as status:
                        words = dict(line.split(":", 1) for line in status)
                    self.most = max(self.most, int(words["VmRSS"].split()[0]) / 1e3)
                except (OSError, KeyError, ValueError):
                    continue

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()


# ---- parts --------------------------------------------------------------------------


class Bench:
    def __init__(self, asked):
        self.folder, self.tiles, self.turns = asked.folder, asked.tiles, asked.turns
        self.master, self.near = asked.master, asked.near
        self.left, self.right = (f"{self.folder}/{n}_sorted" for n in ("points", "lots"))
        self.out = f"{self.folder}/joined"
        self._session, self._ticks = None, Ticks()

    @property
    def session(self):
        if self._session is None:
            self._session = start_spark(self.master)
        return self._session

    def stop(self):
        if self._session is not None:
            self._session.stop()
            self._session = None

    def spent(self, calls, turns=None):
        """Runs the calls in turn. Returns {name: (wall seconds, processor seconds,
        least wall seconds)}. The first two are medians."""
        made = {name: [] for name in calls}
        for _ in range(turns or self.turns):
            for name, call in calls.items():
                for path in (self.out, f"{self.out}.parquet"):
                    shutil.rmtree(path, ignore_errors=True)
                start, cpu = time.perf_counter(), self._ticks.seconds()
                call()
                wall = time.perf_counter() - start
                made[name].append((wall, *(self._ticks.seconds() - cpu)))
        load = os.getloadavg()[0]
        found = {}
        for name, turn in made.items():
            wall, cpu, jvm, workers = np.median(turn, axis=0)
            least = min(one[0] for one in turn)
            found[name] = wall, cpu, least
            parts = f", JVM {jvm:.1f}, workers {workers:.1f}" if jvm else ""
            print(f"  {name:44} {wall:8.2f} s, least {least:.2f}, {cpu:8.2f} CPU s{parts} "
                  f"(load {load:.0f})", flush=True)  # fmt: skip
        return found

    def seconds(self, name, call, turns=None):
        return self.spent({name: call}, turns)[name][0]

    def frames(self, of=None):
        sides = of or (self.left, self.right)
        return [self.session.read.parquet(f).drop("bbox") for f in sides]

    def by_frames(self, way, sides=None, **options):
        rows = oj.join(
            *self.frames(sides), way=way, tiles=self.tiles or 32, **CRS, **(options or OPTIONS)
        )
        oj.write(rows, self.out, overwrite=True)

    def _beside_one_process(self, *names):
        def package():
            ogrjoin.join(self.left, self.right, threads=2, **OPTIONS).to_parquet(
                f"{self.out}.one.parquet"
            )

        def by_files():
            oj.join_files(self.left, self.right, self.out, session=self.session, **options)

        options = {"tiles": self.tiles, "overwrite": True, **OPTIONS}
        calls = {
            "files, no Spark": lambda: join_files(self.left, self.right, self.out, **options),
            "files, Spark (bar 1.3)": by_files,
            "broadcast, Spark (bar 2)": lambda: self.by_frames("broadcast"),
            "shuffle, Spark (bar 4)": lambda: self.by_frames("shuffle"),
        }
        print(f"  {explain_files(self.left, self.right, tiles=self.tiles, **OPTIONS)}")
        self.session  # its start is not counted
        one = "one process, two threads"
        made = self.spent({one: package, **{n: calls[n] for n in calls if n.startswith(names)}})
        one = made.pop(one)
        for name, spent in made.items():
            wall, cpu, least = (a / b for a, b in zip(spent, one))
            print(f"  {name:44} {wall:8.2f} times, of least times {least:.2f}, of CPU {cpu:.2f}")

    def ways(self):
        self._beside_one_process("files", "broadcast", "shuffle")

    def files(self):
        self._beside_one_process("files, Spark")

    def broadcast(self):
        self._beside_one_process("broadcast")

    def shuffle(self):
        self._beside_one_process("shuffle")

    def workers(self):
        made = {}
        for n in (1, 2):  # each in a session of its own, whose first run starts workers and compiles in the JVM
            self.stop()
            self._session = start_spark(f"local[{n}]")
            calls = {f"files, {n} workers": lambda: oj.join_files(
                self.left, self.right, self.out, session=self.session, tiles=self.tiles,
                overwrite=True, **OPTIONS)}  # fmt: skip
            self.spent(calls, turns=1)
            made[n] = self.spent(calls).popitem()[1]
        self.stop()
        wall, cpu, least = (a / b for a, b in zip(made[1], made[2]))
        print(f"  {'two workers (bar 1.7)':44} {wall:8.2f} times, of least times {least:.2f}; "
              f"of CPU {1 / cpu:.2f}")  # fmt: skip

    def peers(self):
        import dask
        import dask_geopandas
        from distributed import Client

        options = {"op": "within", "how": "inner", "overwrite": True}
        ours = self.spent({
            "join_files(), two threads": lambda: join_files(
                self.left, self.right, self.out, threads=2, **options),
            "join_files(), two processes": lambda: join_files(
                self.left, self.right, self.out, processes=2, tiles=2, **options),
        })  # fmt: skip
        with dask.config.set({"dataframe.convert-string": False}), Client(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ):
            # Boxes from the footers make dask-geopandas' sjoin() fail, so they
            # are not read.
            sides = [
                dask_geopandas.read_parquet(
                    path, columns=columns, gather_spatial_partitions=False
                )
                for path, columns in (
                    (self.left, ["id", "fare", "hour", "geometry"]),
                    (self.right, ["lot_id", "landuse", "geometry"]),
                )
            ]
            for side in sides:
                side.calculate_spatial_partitions()

            def by_dask():
                dask_geopandas.sjoin(*sides, predicate="within").to_parquet(self.out)

            theirs = self.spent({"dask-geopandas' sjoin(), two workers": by_dask}, turns=1)
        (theirs,) = theirs.values()
        for name, made in ours.items():
            print(f"  {f'{name} (bar 5)':44} {theirs[0] / made[0]:8.1f} times, "
                  f"{theirs[1] / made[1]:.1f} of CPU")  # fmt: skip

    def nearest(self):
        from pyspark.sql import functions as F

        # Spark has no distance to a polygon, so lots are represented by their centres.
        points, lots = (geopandas.read_parquet(path) for path in (self.left, self.right))
        n_points, n = len(points), min(self.near, len(points))
        points = points.iloc[np.arange(n) * n_points // n]
        points.to_parquet(f"{self.folder}/few_points.parquet")
        few = []
        for frame in (points, lots):
            at = frame.geometry.centroid
            rows = list(zip(range(len(at)), at.x.tolist(), at.y.tolist()))
            few.append(self.session.createDataFrame(rows, "id int, x double, y double").cache())
            few[-1].count()
        away = F.pow(few[0].x - few[1].x, 2) + F.pow(few[0].y - few[1].y, 2)
        theirs = self.seconds(f"nearestByJoin(), {n} x {len(lots)}", lambda: few[0].nearestByJoin(
            few[1], away, 1, "exact", "distance").write.format("noop").mode("overwrite").save(),
            turns=1)  # fmt: skip

        def ours(name, left):
            return self.seconds(name, lambda: oj.join(
                *self.frames((left, self.right)), way="broadcast", op="nearest", **CRS
            ).write.format("noop").mode("overwrite").save())  # fmt: skip

        same = ours(f"join(), broadcast, {n} x {len(lots)}", f"{self.folder}/few_points.parquet")
        whole = ours(f"join(), broadcast, {n_points} x {len(lots)}", self.left)
        print(f"  {f'ours, {n} points':44} {theirs / same:8.1f} times")
        rate = theirs / n * n_points / whole
        print(f"  {f'ours, {n_points} points, theirs by points (bar 100)':44} {rate:8.0f} times")

    def memory(self):
        for name, call in (
            ("files", lambda: oj.join_files(self.left, self.right, self.out, overwrite=True,
             session=self.session, tiles=self.tiles, **OPTIONS)),
            ("shuffle", lambda: self.by_frames("shuffle")),
            ("broadcast", lambda: self.by_frames("broadcast")),
        ):  # fmt: skip
            self.stop()
            self.session  # a new one: its workers are small
            with Resident() as resident:
                self.seconds(name, call, turns=1)
            bar = "" if name == "broadcast" else " (bar 400)"
            print(f"  {f'{name}, largest worker{bar}':44} {resident.most:8.0f} MB", flush=True)

    def skew(self):
        rows = pa.parquet.read_table(self.left, columns=["id", "geometry"])
        shapes = rows.column("geometry").combine_chunks().cast(pa.binary())
        place = np.arange(len(rows)) % 10 < 3
        one = pa.array([shapes[len(rows) // 2].as_py()] * len(rows), pa.binary())
        shapes = pa.compute.if_else(pa.array(place), one, shapes)
        rows = rows.set_column(rows.schema.get_field_index("geometry"), "geometry", shapes)
        skewed = f"{self.folder}/skewed"
        shutil.rmtree(skewed, ignore_errors=True)
        os.makedirs(skewed)
        pa.parquet.write_table(rows.replace_schema_metadata(None), f"{skewed}/0.parquet",
                               row_group_size=100_000)  # fmt: skip
        del rows, shapes, one
        self.stop()
        with tempfile.TemporaryDirectory() as log:
            self._session = start_spark(self.master, **{
                "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{log}",
                "spark.eventLog.rolling.enabled": "false"})  # fmt: skip
            with Resident() as resident:
                self.seconds("skewed, shuffle",
                             lambda: self.by_frames("shuffle", (skewed, self.right)), turns=1)  # fmt: skip
            self.stop()
            stages = {}
            for name in glob.glob(f"{log}/**/*", recursive=True):
                if os.path.isfile(name):
                    with open(name) as lines:
                        for line in lines:
                            event = json.loads(line)
                            if event["Event"] == "SparkListenerTaskEnd":
                                spent = event["Task Metrics"]["Executor Run Time"] / 1e3
                                stages.setdefault(event["Stage ID"], []).append(spent)
        last = np.array(stages[max(stages)])
        print(f"  {len(last)} tasks; median {np.median(last):.2f} s, slowest {last.max():.2f} s")
        print(f"  {'slowest beside median (bar 2)':44} {last.max() / np.median(last):8.2f} times")
        print(f"  {'largest worker':44} {resident.most:8.0f} MB")

    def zones(self):
        x0, y0, x1, y1 = (float(v) for v in shapely.total_bounds(
            geopandas.read_parquet(f"{self.left}/0.parquet").geometry))  # fmt: skip
        x, y = (c.ravel() for c in np.meshgrid(np.linspace(x0, x1, 51), np.linspace(y0, y1, 41)))
        squares = shapely.box(x, y, x + (x1 - x0) / 50, y + (y1 - y0) / 40)
        frame = geopandas.GeoDataFrame({"zone": np.arange(len(x))}, geometry=squares, crs="EPSG:2263")
        path = f"{self.folder}/squares.parquet"
        frame.to_parquet(path)
        options = {"op": "contains", "agg": "count, sum(fare), mean(fare)", "order": "input"}
        made = []
        for way in ("shuffle", "sums"):
            sides = [self.session.read.parquet(f) for f in (path, self.left)]
            rows = oj.join(*sides, way=way, tiles=self.tiles or 32, **CRS, **options)
            self.seconds(f"{way}, sums of {len(x)} squares", lambda: made.append(rows.toArrow()))
        one = ogrjoin.join(path, self.left, **{k: v for k, v in options.items() if k != "order"})
        one = one.read_all()
        for rows in made:
            for name in ("count", "fare_sum", "fare_mean"):
                a, b = (t.column(name).combine_chunks() for t in (rows, one))
                assert a.fill_null(0).to_numpy().tobytes() == b.fill_null(0).to_numpy().tobytes()
        print("  equal bits")

    def plan(self):
        """Row groups have one row each. The footer would be as long for row groups of
        many rows."""
        n = 100  # by n
        x, y = (c.ravel() * 1e3 for c in np.meshgrid(np.arange(n), np.arange(n)))
        order = geopandas.GeoSeries(shapely.points(x, y)).hilbert_distance().argsort()
        x, y = x[order], y[order]
        with tempfile.TemporaryDirectory() as folder:
            for name, size in (("left", 1000), ("right", 1100)):
                frame = geopandas.GeoDataFrame(
                    {"n": np.arange(len(x))}, geometry=shapely.box(x, y, x + size, y + size)
                )
                os.mkdir(f"{folder}/{name}")
                for i, rows in enumerate(np.array_split(np.arange(len(x)), 16)):
                    frame.iloc[rows].to_parquet(f"{folder}/{name}/{i:02}.parquet",
                                                write_covering_bbox=True, row_group_size=1)  # fmt: skip
            kept = []
            sides = f"{folder}/left", f"{folder}/right"
            footers = self.seconds(f"footers of {n * n} x {n * n} row groups", lambda: kept.append(
                [read_row_groups(side) for side in sides]))  # fmt: skip
            plan = self.seconds("plan of them", lambda: kept.append(
                FilesPlan(*kept[0], dict(OPTIONS), tiles=self.tiles)))  # fmt: skip
            print(f"  {'both (bar 2 s)':44} {footers + plan:8.2f} s; {kept[-1].explain()}")

    def rates(self):
        """Rates of one core, from which times for other sizes are estimated: the
        nearest street of points, on the sphere."""
        sides = []
        for name in ("points", "streets"):
            frame = geopandas.read_parquet(f"{self.folder}/{name}_sorted").to_crs("EPSG:4326")
            write_sorted(self.folder, f"{name}_degrees", frame)
            sides.append(f"{self.folder}/{name}_degrees_sorted")
        options = {"op": "nearest", "max_distance": 1000, "metric": "sphere", "threads": 1}
        plan = FilesPlan(*sides, options, tiles=1)
        n_left, n_right = (int(side.n_rows.sum()) for side in (plan.left, plan.right))
        kept = {}

        def read_left():
            groups = plan.left.batches(np.arange(len(plan.left)), threads=False)
            table = pa.Table.from_batches(batch for _, batch in groups)
            kept["left"] = table.append_column(ROW, pa.array(np.arange(n_left)))

        def read_right():
            kept["right"] = plan.read_right(np.arange(len(plan.right)), threads=False)

        def hold():
            kept["held"] = plan.job.hold(kept["right"])
            kept["held"].joined(plan.job.left_rows.empty_table().to_reader()).read_all()

        def join():
            left = kept["left"].cast(plan.job.left_rows).to_reader()
            kept["rows"] = kept["held"].joined(left).read_all()

        def write():
            rows = plan.job.unnumbered(kept["rows"])
            output = ParquetOutput(
                self.out, rows.schema, plan.job.geometry, boxes=plan.job.box_column, overwrite=True
            )
            output.begin()
            output.commit([output.write(0, rows.to_batches())[0]])

        def shuffle():
            left = self.frames(sides)[0]
            left.repartition(self.tiles or 32, "id").write.format("noop").mode("overwrite").save()

        def of(name, call, n, n_bytes):
            _, cpu, _ = self.spent({name: call}, turns=1)[name]
            print(f"    {n / cpu / 1e6:10.2f} M rows and {n_bytes() / cpu / 1e6:.0f} MB a second and core")

        def left():
            return kept["left"].nbytes

        def right():
            return kept["right"].nbytes

        of("read the input", read_left, n_left, left)
        of("read the join side", read_right, n_right, right)
        of("arrays and index of the join side", hold, n_right, right)
        of("join", join, n_left, left)
        of("write", write, n_left, lambda: kept["rows"].nbytes)
        del kept["rows"], kept["held"]
        shuffle()  # the JVM compiles
        of("read and shuffle the input, Spark", shuffle, n_left, left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--tiles", type=int)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--near", type=int, default=1_000)
    parser.add_argument("--make", type=int, nargs=2, metavar=("POINTS", "LOTS"))
    parser.add_argument("folder")
    parser.add_argument("part", nargs="*")
    asked = parser.parse_args()
    asked.folder = os.path.abspath(asked.folder)
    if asked.make:
        make_city(asked.folder, *asked.make)
    bench = Bench(asked)
    print(f"ogrjoin {ogrjoin.__version__}, pyspark {pyspark.__version__}, {asked.master}")
    for part in asked.part:
        print(part, flush=True)
        try:
            getattr(bench, part)()
        except ImportError as error:
            print(f"  skipped: {error}")
    bench.stop()


if __name__ == "__main__":
    main()
