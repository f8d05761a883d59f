"""Joins of layers that are larger than one machine, with one machine's answers.

    from ogrjoin.scale import join_files
    join_files("points/", "lots/", "joined/", op="nearest", max_distance=100, processes=2)

Every row of the input has one owner, a tile, so that the library makes all pairs
of a row in one call, and its answer for a row does not depend on other rows.  The
reach of a tile is the box around its rows, widened by the distance of the join.
Rows of the join side are copied to each tile whose reach their box meets.

    boxes        rows -> boxes, widened so that no pair is lost
    tiles        sample of boxes -> k-d tree; row -> owner; rows -> reaches
    copies       rows of the join side -> the tiles they go to
    tile_join    both sides of one tile -> rows of the join
    footers      GeoParquet -> row groups with their boxes
    parquet_out  rows -> a folder of GeoParquet, whole or not at all
    files        two folders -> tasks, which processes of this machine run

An engine (ogrjoin.spark) runs the tasks elsewhere.
"""

from .files import Explanation, explain_files, join_files

__all__ = ["Explanation", "explain_files", "join_files"]
