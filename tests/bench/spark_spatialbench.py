#!/usr/bin/env python3
"""Runs queries 8, 9 and 12 of Apache's SpatialBench by Spark, and compares the published answers.

    spark_spatialbench.py [--master M] [--answers DIR] FOLDER [QUERY...]

FOLDER     the tables trip and building, made by spatialbench-cli (PyPI)
--answers  the published answers of scale 1: answer_q8.csv, answer_q9.csv, answer_q12.csv
--master   master URL of Spark (local-cluster[2,1,1024])
QUERY      q8   buildings within 0.0045 of each trip's start: the 100 with the most
           q9   pairs of buildings that intersect: the 100 with the largest IoU
           q12  means of the distances to the 5 nearest buildings: the 100 farthest trips

Prints the wall-clock seconds of each query, without the start of Spark, and the largest
resident memory of a Python worker.  Exit code: 1 if answers differ by more than 1e-6
relative; 77 without tables or pyspark.
"""

import argparse
import csv
import os
import sys
import time

try:
    import pyspark  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from spark_city import Resident, start_spark

from ogrjoin import spark as oj

REACH, K, SHOWN = 0.0045, 5, 100


def q8(trip, building):
    from pyspark.sql import functions as F

    rows = oj.join(
        building, trip.select("t_pickuploc"), op="dwithin", max_distance=REACH, agg="count",
        how="inner", left_select="b_buildingkey,b_name",
        left_column="b_boundary", right_column="t_pickuploc", fid=("b_buildingkey", None),
    )  # fmt: skip
    rows = rows.orderBy(F.col("count").desc(), "b_buildingkey").limit(SHOWN)
    return [((row["b_buildingkey"],), (row["count"],)) for row in rows.collect()]


def q9(trip, building):
    from pyspark.sql import functions as F

    rows = oj.join(
        building, building, op="intersects", how="inner", exclude="self", fid="b_buildingkey",
        overlap="area,iou,input_area,join_area", left_select="b_buildingkey", right_select="",
        geometry="none", left_column="b_boundary", right_column="b_boundary",
    )  # fmt: skip
    rows = rows.where("b_buildingkey < join_fid")
    rows = rows.orderBy(F.col("overlap_iou").desc(), "b_buildingkey", "join_fid").limit(SHOWN)
    names = ("input_area", "join_area", "overlap_area", "overlap_iou")
    return [
        ((row["b_buildingkey"], row["join_fid"]), tuple(row[name] for name in names))
        for row in rows.collect()
    ]


def q12(trip, building):
    from pyspark.sql import functions as F

    rows = oj.join(
        trip.select("t_tripkey", "t_pickuploc"), building, op="nearest", k=K, how="inner",
        agg="mean(join_distance) as far", left_select="t_tripkey",
        left_column="t_pickuploc", right_column="b_boundary", fid=(None, "b_buildingkey"),
    )  # fmt: skip
    rows = rows.orderBy(F.col("far").desc(), "t_tripkey").limit(SHOWN)
    return [((row["t_tripkey"],), (row["far"],)) for row in rows.collect()]


def is_published(made, answers, query):
    with open(f"{answers}/answer_{query}.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    n_keys = len(made[0][0])
    made = {keys: values for keys, values in made[: len(rows)]}
    for row in rows:
        keys = tuple(int(word) for word in row[:n_keys])
        values = made.get(keys)
        wanted = [float(word) for word in row[-len(values) :]] if values else []
        if not values or any(abs(a - b) > 1e-6 * abs(b) for a, b in zip(values, wanted)):
            print(f"  {keys}: {values}, published {row}")
            return False
    return len(made) == len(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", default="local-cluster[2,1,1024]")
    parser.add_argument("--answers")
    parser.add_argument("folder")
    parser.add_argument("query", nargs="*")
    asked = parser.parse_args()
    paths = [os.path.abspath(f"{asked.folder}/{name}.parquet") for name in ("trip", "building")]
    if not all(map(os.path.exists, paths)):
        print("skipped: no tables; spatialbench-cli -s 1 -T trip,building -o FOLDER")
        return 77
    status = 0
    for query in asked.query or ("q8", "q9", "q12"):
        session = start_spark(asked.master)
        start = time.perf_counter()
        with Resident() as resident:
            made = globals()[query](*map(session.read.parquet, paths))
        seconds = time.perf_counter() - start
        session.stop()
        words = f"{query:4} {seconds:7.1f} s, largest worker {resident.most:.0f} MB"
        if asked.answers:
            good = is_published(made, asked.answers, query)
            words += ", as published" if good else ", NOT as published"
            status |= not good
        print(words, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
