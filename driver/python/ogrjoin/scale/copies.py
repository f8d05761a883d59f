"""Finds the tiles that get a copy of a join row, by a join of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .boxes import MOST, is_nowhere

_POLYGON = 4  # OGRJOIN_POLYGON


def _rectangles(boxes: Any) -> Any:
    """Makes a layer with a rectangle for each box."""
    n = len(boxes)
    boxes = np.clip(boxes, -MOST, MOST)
    one = np.arange(n + 1, dtype=np.int64)
    return _core.arrays(
        n,
        np.ascontiguousarray(boxes[:, [0, 2, 2, 0, 0]]).reshape(-1),
        np.ascontiguousarray(boxes[:, [1, 1, 3, 3, 1]]).reshape(-1),
        one,
        np.full(n, _POLYGON, dtype=np.uint8),
        one,
        one * 5,
    )


def meeting(boxes: Any, others: Any, threads: int = 0) -> tuple[Any, Any]:
    """Returns the sorted index pairs (i, j) where boxes[i] intersects others[j], borders
    included."""
    i = np.flatnonzero(~is_nowhere(boxes))
    j = np.flatnonzero(~is_nowhere(others))
    if len(i) == 0 or len(j) == 0:
        return i[:0], j[:0]
    settings = {"op": "bbox", "threads": threads}
    index = _core.index(_rectangles(others[j]), settings, None, None)
    _, offsets, right, *_ = _core.join(index, _rectangles(boxes[i]))
    left = np.repeat(i, np.diff(np.frombuffer(offsets, "q")))
    return left, j[np.frombuffer(right, "i")]


def tiles_of_rows(
    boxes: Any, reaches: Any, metric: str = "planar", threads: int = 0
) -> tuple[Any, Any]:
    """Returns the sorted pairs (row, tile): tile gets a copy of the join row,
    because its reach meets the row's box.  A row without a place has no
    pair."""
    if metric != "sphere":
        return meeting(boxes, reaches, threads)
    # xmin of a row's box is in [-180, 180), and the box is less than 180
    # degrees wide, or the whole sphere. xmin of a reach may be lower by the
    # distance by which the reach was widened. So the reaches are compared at up
    # to two turns to either side.
    n = len(reaches)
    turns = (-720.0, -360.0, 0.0, 360.0, 720.0)
    turned = np.vstack([reaches + (turn, 0, turn, 0) for turn in turns])
    row, tile = meeting(boxes, turned, threads)
    key = np.unique(row * n + tile % n) if n else row
    return (key // n, key % n) if n else (row, tile)
