#!/usr/bin/env python3
"""The nearest lot of a city's points within 100 ft, GeoParquet to GeoParquet: the
package in one process with two threads, join_files() in processes, and Spark's
three ways; wall seconds, Spark's start apart, and what they are of the first.

    spark_city.py FOLDER [MASTER] [TILES]

FOLDER   a city of tests/bench/citygen.py as GeoParquet: points, lots; sorted
         folders of both are made beside them, once
MASTER   of Spark (local[2])
TILES    of the input (32)

With the environment that has ogrjoin[spark] and geopandas.
"""

import os
import shutil
import sys
import time

import numpy as np

import ogrjoin
from ogrjoin.scale import explain_files, join_files

FILES, ROW_GROUP = 8, 2_000
OPTIONS = {"op": "nearest", "max_distance": 100}


def sort_by_place(source, folder):
    import geopandas

    if os.path.exists(folder):
        return
    frame = geopandas.read_parquet(source)
    order = frame.geometry.centroid.hilbert_distance().argsort(kind="stable")
    frame = frame.iloc[order].reset_index(drop=True)
    os.makedirs(f"{folder}.part")
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), FILES)):
        frame.iloc[rows].to_parquet(
            f"{folder}.part/{i}.parquet", write_covering_bbox=True, row_group_size=ROW_GROUP
        )
    os.rename(f"{folder}.part", folder)


def start_spark(master):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.range(0, 8, 1, 2).mapInArrow(lambda batches: batches, "id bigint").collect()
    return session


def main():
    folder, master = sys.argv[1], (sys.argv[2:] or ["local[2]"])[0]
    tiles = int((sys.argv[3:] or ["32"])[0])
    left, right = f"{folder}/points_sorted", f"{folder}/lots_sorted"
    sort_by_place(f"{folder}/points.parquet", left)
    sort_by_place(f"{folder}/lots.parquet", right)
    out, least = f"{folder}/joined", {}

    def timed(name, call):
        for path in (out, f"{out}.parquet"):
            shutil.rmtree(path, ignore_errors=True)
        start = time.perf_counter()
        call()
        least[name] = min(least.get(name, np.inf), time.perf_counter() - start)

    def package():
        ogrjoin.join(left, right, threads=2, **OPTIONS).to_parquet(f"{out}.one.parquet")

    print(explain_files(left, right, tiles=tiles, **OPTIONS))
    from ogrjoin import spark as oj

    session = start_spark(master)
    frames = [session.read.parquet(f).drop("bbox") for f in (left, right)]

    def of_frames(way):
        crs = {"left_crs": "EPSG:2263", "right_crs": "EPSG:2263"}
        rows = oj.join(*frames, way=way, tiles=tiles, **crs, **OPTIONS)
        rows.write.parquet(out)

    for _ in range(2):
        timed("one process, two threads", package)
        options = {"tiles": tiles, **OPTIONS}
        timed("files, no Spark, one process", lambda: join_files(left, right, out, **options))
        timed("files, Spark", lambda: oj.join_files(left, right, out, session=session, **options))
        timed("broadcast, Spark", lambda: of_frames("broadcast"))
        timed("shuffle, Spark", lambda: of_frames("shuffle"))
    one = least["one process, two threads"]
    for name, seconds in least.items():
        print(f"{name:32} {seconds:8.2f} s {seconds / one:6.2f} times")
    session.stop()


if __name__ == "__main__":
    main()
