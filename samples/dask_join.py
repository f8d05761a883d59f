#!/usr/bin/env python3
"""Joins two folders of GeoParquet by the workers of a Dask cluster.

    dask_join.py LEFT RIGHT OUT [NAME=VALUE ...]     op=nearest max_distance=100

The plan, the tasks and the output are those of ogrjoin.scale.join_files(): tasks
share nothing, and a repeated task writes equal rows.  All workers must see the paths.
tiles and overwrite are those of join_files(); all other words are options of
ogrjoin.join().
Needs ogrjoin, pyarrow, shapely and distributed.  DASK_SCHEDULER names a cluster;
without it two processes of this machine do the work.
"""

import os
import sys

from distributed import Client

from ogrjoin.scale import finish_files, prepare_files, run_task

NUMBERS = {"tiles": int, "k": int, "overwrite": int}


def join_files(client, left, right, out, *, tiles=None, overwrite=False, **options):
    """ogrjoin.scale.join_files() by the workers of client; returns the number of rows."""
    options.setdefault("threads", 1)
    plan, output = prepare_files(left, right, out, options, tiles=tiles, overwrite=overwrite)
    try:
        job = client.scatter((plan, output), broadcast=True)
        tasks = [
            client.submit(_run, job, tile, pure=False, retries=3) for tile in range(plan.n_tiles)
        ]
        return finish_files(plan, output, client.gather(tasks))
    except BaseException:
        output.abort()
        raise


def _run(job, tile):
    return run_task(*job, False, tile)


def main():
    left, right, out, *words = sys.argv[1:]
    options = dict(word.split("=", 1) for word in words)
    options = {name: NUMBERS.get(name, str)(value) for name, value in options.items()}
    address = os.environ.get("DASK_SCHEDULER")
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(address) if address else Client(**local) as client:
        print(join_files(client, left, right, out, **options), "rows")


if __name__ == "__main__":
    main()
