#!/usr/bin/env python3
"""Joins of a city's points and lots by Spark beside one process, other packages, and
limits of memory.

    spark_city.py [--master M] [--tiles N] [--turns N] [--make POINTS LOTS] FOLDER PART...

FOLDER   points_sorted and lots_sorted: folders of GeoParquet; --make writes them there,
         from tests/bench/citygen.py
PART     ways     nearest lot within 100 ft, GeoParquet to GeoParquet: join().to_parquet()
                  in one process with two threads, join_files(), and Spark's ways; wall
                  seconds, Spark's start apart, and what they are of the first
         workers  the files way with one and with two workers
         peers    points in lots: join_files() in two processes, and dask-geopandas'
                  sjoin() on two workers
         nearest  the nearest lot: join(), and Spark's nearestByJoin() of the first 1,000
                  points and 1,000 lots (it makes their product)
         memory   the largest resident memory of a Python worker, by broadcast, shuffle
                  and files
         skew     three tenths of the points at one place: the slowest task beside the
                  median one
         zones    sums of fares in 2,000 squares: by shuffle and by partial sums
--master of Spark (local[2]); --tiles (32); --turns (2): the least counts

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
from ogrjoin.scale import explain_files, join_files

FILES = 8
ROWS = {"points": 10_000, "lots": 2_000}  # of a row group
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
            row_group_size=ROWS[name],
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


def python_workers():
    """Process ids of Spark's Python workers that this process has started."""
    parents, made = {}, {os.getpid()}
    for name in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(name) as stat:
                parents[int(name.split("/")[2])] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    while more := {p for p, parent in parents.items() if parent in made} - made:
        made |= more
    for pid in made - {os.getpid()}:
        try:
            with open(f"/proc/{pid}/cmdline") as line:
                if "pyspark.daemon" in line.read():
                    yield pid
        except OSError:
            continue


class Resident:
    """The largest resident memory of a Python worker while it is open, MB."""

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
        self.master = asked.master
        self.left, self.right = (f"{self.folder}/{n}_sorted" for n in ("points", "lots"))
        self.out = f"{self.folder}/joined"
        self._session = None

    @property
    def session(self):
        if self._session is None:
            self._session = start_spark(self.master)
        return self._session

    def stop(self):
        if self._session is not None:
            self._session.stop()
            self._session = None

    def seconds(self, name, call, turns=None):
        least = np.inf
        for _ in range(turns or self.turns):
            for path in (self.out, f"{self.out}.parquet"):
                shutil.rmtree(path, ignore_errors=True)
            start = time.perf_counter()
            call()
            least = min(least, time.perf_counter() - start)
        print(f"  {name:44} {least:8.2f} s", flush=True)
        return least

    def frames(self, of=None):
        sides = of or (self.left, self.right)
        return [self.session.read.parquet(f).drop("bbox") for f in sides]

    def by_frames(self, way, sides=None, **options):
        rows = oj.join(
            *self.frames(sides), way=way, tiles=self.tiles, **CRS, **(options or OPTIONS)
        )
        oj.write(rows, self.out, overwrite=True)

    def ways(self):
        def package():
            ogrjoin.join(self.left, self.right, threads=2, **OPTIONS).to_parquet(
                f"{self.out}.one.parquet"
            )

        print(f"  {explain_files(self.left, self.right, tiles=self.tiles, **OPTIONS)}")
        options = {"tiles": self.tiles, "overwrite": True, **OPTIONS}
        one = self.seconds("one process, two threads", package)
        files = self.seconds("files, no Spark", lambda: join_files(
            self.left, self.right, self.out, **options))  # fmt: skip
        made = {"files, no Spark": files}
        made["files, Spark (bar 1.3)"] = self.seconds("files, Spark", lambda: oj.join_files(
            self.left, self.right, self.out, session=self.session, **options))  # fmt: skip
        for way, bar in (("broadcast", 2), ("shuffle", 4)):
            made[f"{way}, Spark (bar {bar})"] = self.seconds(way, lambda: self.by_frames(way))
        for name, seconds in made.items():
            print(f"  {name:44} {seconds / one:8.2f} times")

    def workers(self):
        made = []
        for n in (1, 2):
            self.stop()
            self._session = start_spark(f"local[{n}]")
            made.append(self.seconds(f"files, {n} workers", lambda: oj.join_files(
                self.left, self.right, self.out, session=self.session, tiles=self.tiles,
                overwrite=True, **OPTIONS)))  # fmt: skip
        self.stop()
        print(f"  {'two workers (bar 1.7)':44} {made[0] / made[1]:8.2f} times")

    def peers(self):
        import dask
        import dask_geopandas
        from distributed import Client

        options = {"op": "within", "how": "inner", "overwrite": True}
        ours = self.seconds("join_files(), two processes", lambda: join_files(
            self.left, self.right, self.out, processes=2, tiles=8, **options))  # fmt: skip
        with dask.config.set({"dataframe.convert-string": False}), Client(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ):
            def theirs():
                sides = [
                    dask_geopandas.read_parquet(f, gather_spatial_partitions=True)
                    for f in (self.left, self.right)
                ]
                dask_geopandas.sjoin(*sides, predicate="within").to_parquet(self.out)

            seconds = self.seconds("dask-geopandas' sjoin(), two workers", theirs, turns=1)
        print(f"  {'ours (bar 5)':44} {seconds / ours:8.1f} times")

    def nearest(self):
        from pyspark.sql import functions as F

        n = 1_000
        few = {}
        for name, path in (("points", self.left), ("lots", self.right)):
            frame = geopandas.read_parquet(f"{path}/0.parquet").iloc[:n]
            frame.drop(columns="bbox").to_parquet(f"{self.folder}/few_{name}.parquet",
                                                  write_covering_bbox=True)  # fmt: skip
            at = frame.geometry.centroid
            few[name] = self.session.createDataFrame(
                list(zip(range(len(at)), at.x.tolist(), at.y.tolist())), "id int, x double, y double"
            ).cache()
            few[name].count()
        points, lots = few["points"], few["lots"]
        away = F.pow(points.x - lots.x, 2) + F.pow(points.y - lots.y, 2)
        # Of points alone: Spark has no distance to a polygon.
        theirs = self.seconds(f"nearestByJoin(), {n} x {n} points", lambda: points.nearestByJoin(
            lots, away, 1, "exact", "distance").toArrow())  # fmt: skip
        paths = [f"{self.folder}/few_{name}.parquet" for name in ("points", "lots")]
        ours = self.seconds(f"join(), broadcast, {n} points x {n} lots", lambda: oj.join(
            *[self.session.read.parquet(f).drop("bbox") for f in paths], way="broadcast",
            op="nearest", **CRS).toArrow())  # fmt: skip
        whole = self.seconds("join(), broadcast, the whole city", lambda: oj.join(
            *self.frames(), way="broadcast", op="nearest", **CRS).write.format("noop").mode(
            "overwrite").save(), turns=1)  # fmt: skip
        pairs = [sum(explain_files(self.left, self.right, op="nearest").rows[i:i + 1])
                 for i in (0, 1)]  # fmt: skip
        print(f"  {f'ours, {n} x {n}':44} {theirs / ours:8.1f} times")
        rate = theirs / n**2 * pairs[0] * pairs[1] / whole
        print(f"  {'ours, the whole city, by pairs (bar 100)':44} {rate:8.0f} times")

    def memory(self):
        for name, call in (
            ("broadcast", lambda: self.by_frames("broadcast")),
            ("shuffle", lambda: self.by_frames("shuffle")),
            ("files", lambda: oj.join_files(self.left, self.right, self.out, overwrite=True,
             session=self.session, tiles=self.tiles, **OPTIONS)),
        ):  # fmt: skip
            self.stop()
            self.session  # a new one: its workers are small
            with Resident() as resident:
                self.seconds(name, call, turns=1)
            print(f"  {name + ', largest worker (bar 400)':44} {resident.most:8.0f} MB")

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
            rows = oj.join(*sides, way=way, tiles=self.tiles, **CRS, **options)
            self.seconds(f"{way}, sums of {len(x)} squares", lambda: made.append(rows.toArrow()))
        one = ogrjoin.join(path, self.left, **{k: v for k, v in options.items() if k != "order"})
        one = one.read_all()
        for rows in made:
            for name in ("count", "fare_sum", "fare_mean"):
                a, b = (t.column(name).combine_chunks() for t in (rows, one))
                assert a.fill_null(0).to_numpy().tobytes() == b.fill_null(0).to_numpy().tobytes()
        print("  equal bits")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--tiles", type=int, default=32)
    parser.add_argument("--turns", type=int, default=2)
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
