#!/usr/bin/env python3
"""Joins two folders of GeoParquet by a Spark cluster; paths may be URIs of a bucket.

    spark-submit spark_join.py LEFT RIGHT OUT [NAME=VALUE ...]   op=nearest max_distance=100

Prints the plan first (tiles, copies, memory of a task).  With explain=1 it stops there:
that needs no cluster, only the footers.  tiles, overwrite and task_memory are those of
ogrjoin.spark.join_files(); all other words are options of ogrjoin.join().
"""

import sys

from ogrjoin.scale import explain_files

NUMBERS = {"tiles": int, "task_memory": int, "k": int, "overwrite": int}


def main():
    left, right, out, *words = sys.argv[1:]
    options = dict(word.split("=", 1) for word in words)
    options = {name: NUMBERS.get(name, str)(value) for name, value in options.items()}
    only_explain, overwrite = options.pop("explain", None), options.pop("overwrite", 0)
    print(explain_files(left, right, **options), flush=True)
    if only_explain:
        return
    from pyspark.sql import SparkSession

    from ogrjoin.spark import join_files

    session = SparkSession.builder.appName("ogrjoin").getOrCreate()
    n = join_files(left, right, out, session=session, overwrite=bool(overwrite), **options)
    print(n, "rows")


if __name__ == "__main__":
    main()
