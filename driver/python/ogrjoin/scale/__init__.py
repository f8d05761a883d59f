"""Joins of layers that are too large for one call of join(), with equal answers.

    from ogrjoin.scale import join_files
    join_files("points/", "lots/", "joined/", op="nearest", max_distance=100, processes=2)

Every input row belongs to one tile, its owner.  The library finds all pairs of a row
in one call, and its answer for a row does not depend on other rows.  The reach of a
tile is the box around its rows, widened by the distance of the join.  A row of the
join side is copied to every tile whose reach meets the row's box.

    boxes        rows -> boxes, widened so that no pair is lost
    tiles        sample of boxes -> k-d tree; row -> owner; rows -> reaches
    copies       rows of the join side -> tiles that get a copy
    tile_join    both sides of one tile -> rows of the join
    footers      GeoParquet -> row groups with their boxes
    parquet_out  rows -> a folder of GeoParquet, complete or absent
    blocks       rows of tiles <-> blocks of bytes, for a shuffle
    parts        a tile that is too large for a task -> parts, on its disk
    sums         counts, sums and means of zones -> partial sums, merged
    files        two folders -> tasks, run by processes of this machine

ogrjoin.spark runs the tasks on a cluster.  Another engine needs three calls:
prepare_files(), run_task() for each tile, finish_files(); samples/dask_join.py does it.
"""

from .files import (
    Explanation,
    FilesPlan,
    explain_files,
    finish_files,
    join_files,
    prepare_files,
    run_task,
)

__all__ = [
    "Explanation",
    "FilesPlan",
    "explain_files",
    "finish_files",
    "join_files",
    "prepare_files",
    "run_task",
]
