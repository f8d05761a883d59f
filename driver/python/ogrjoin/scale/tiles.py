"""Tiles: the nodes of a k-d tree over a sample of the input's rows.

A row belongs to the leaf whose half-open cell contains the centre of its box.  If
its box is larger than the leaf, it belongs to the lowest ancestor that is as large:
otherwise one country would widen the reach of a tile of city blocks.  A node with
too many rows is several tiles: the row number chooses the tile.

    node       0 root, 1 and 2 its children, ...
    tile       first_tile[node] + row % n_tiles_of[node]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import boxes as _boxes

SEED = 20150735
_LEAF = -1


def sample_rows(n: int, n_sample: int, seed: int = SEED) -> Any:
    """Returns n_sample random row numbers below n, ascending, or all n if n is
    less.  Equal n and seed give equal numbers."""
    if n <= n_sample:
        return np.arange(n)
    rng = np.random.Generator(np.random.PCG64(seed))
    return np.sort(rng.choice(n, n_sample, replace=False))


class Tiles:
    """The tree of tiles.  It is small, and every task gets a copy."""

    def __init__(self, boxes: Any, n_tiles: int, metric: str = "planar") -> None:
        """boxes are those of a sample of rows.  n_tiles is the number of
        tiles, which have equally many rows.  A few more tiles are made for
        rows with large boxes."""
        self.metric = metric
        # [nodes] axis of the cut, or _LEAF; position of the cut; left child (the
        # right child follows it); size of the cell
        self._axis: list[int] = []
        self._cut: list[float] = []
        self._child: list[int] = []
        self._size: list[tuple[float, float]] = []
        at = _boxes.centres(boxes, metric)
        has_place = np.isfinite(at).all(axis=1)
        self._build(at[has_place], max(1, n_tiles))
        self.axis, self.cut = np.array(self._axis), np.array(self._cut)
        self.child, self.size = np.array(self._child), np.array(self._size)
        del self._axis, self._cut, self._child, self._size
        self.leaves = np.flatnonzero(self.axis == _LEAF)
        counts = np.bincount(self.nodes(boxes[has_place]), minlength=len(self.axis))
        share = max(1.0, counts.sum() / max(1, n_tiles))
        # A node with 1.5 times the rows of a tile becomes two tiles.
        self.n_tiles_of = np.maximum(1, np.round(counts / share)).astype(np.int64)
        self.first_tile = np.cumsum(self.n_tiles_of) - self.n_tiles_of

    def _add(self, at: Any) -> int:
        size = np.ptp(at, axis=0) if len(at) else np.zeros(2)
        self._axis.append(_LEAF)
        self._cut.append(0.0)
        self._child.append(_LEAF)
        self._size.append((float(size[0]), float(size[1])))
        return len(self._axis) - 1

    def _build(self, at: Any, n_tiles: int) -> None:
        work = [(self._add(at), at, n_tiles)]
        while work:
            node, at, n = work.pop()
            if n < 2 or len(at) < 2:
                continue
            axis = int(self._size[node][1] > self._size[node][0])
            if self._size[node][axis] == 0:
                continue  # all centres are equal
            along = np.sort(at[:, axis])
            cut = along[len(at) * (n // 2) // n]
            if cut == along[0]:  # no row is below the cut
                cut = along[np.searchsorted(along, cut, "right")]
            is_low = at[:, axis] < cut
            low, high = at[is_low], at[~is_low]
            self._axis[node], self._cut[node] = axis, float(cut)
            self._child[node] = self._add(low)
            self._add(high)
            # The tiles are divided in proportion to the rows.
            n_low = min(max(1, round(n * len(low) / len(at))), n - 1)
            work.append((self._child[node], low, n_low))
            work.append((self._child[node] + 1, high, n - n_low))

    def __len__(self) -> int:
        return int(self.n_tiles_of.sum())

    def nodes(self, boxes: Any) -> Any:
        """Returns the node of each row.  The node of a row without a place is
        arbitrary."""
        at = _boxes.centres(boxes, self.metric)
        with np.errstate(invalid="ignore"):
            width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
        are_points = not (width != 0).any() and not (height != 0).any()  # points fit into every node
        node = np.zeros(len(boxes), dtype=np.int64)
        # Row numbers and current nodes of the rows that have not reached their leaf yet.
        going, here = np.arange(len(boxes)), np.zeros(len(boxes), dtype=np.int64)
        x, y = at[:, 0].copy(), at[:, 1].copy()
        while len(going):
            axis = self.axis[here]
            if (axis == _LEAF).any():
                on = np.flatnonzero(axis != _LEAF)
                going, here, axis, x, y = going[on], here[on], axis[on], x[on], y[on]
            here = self.child[here] + (np.where(axis == 0, x, y) >= self.cut[here])
            if not are_points:
                size = self.size[here]
                on = np.flatnonzero((width[going] <= size[:, 0]) & (height[going] <= size[:, 1]))
                going, here, x, y = going[on], here[on], x[on], y[on]
            node[going] = here
        return node

    def owners(self, boxes: Any, rows: Any) -> Any:
        """Returns the tile of each row.  rows are the row numbers.  Rows
        without a place are distributed over the leaves."""
        rows = np.asarray(rows, dtype=np.int64)
        node = self.nodes(boxes)
        nowhere = _boxes.is_nowhere(boxes)
        node[nowhere] = self.leaves[rows[nowhere] % len(self.leaves)]
        if len(self.n_tiles_of) == len(self):  # every node is one tile
            return self.first_tile[node]
        return self.first_tile[node] + rows % self.n_tiles_of[node]


def by_tile(tiles: Any) -> Any:
    """Returns row numbers sorted by tile; the rows of a tile keep their order."""
    tiles = np.asarray(tiles)
    # numpy sorts numbers of 16 bits by digits: ten times as fast
    if len(tiles) and 0 <= tiles.min() and tiles.max() < 1 << 15:
        tiles = tiles.astype(np.int16)
    return np.argsort(tiles, kind="stable")


def reaches(tiles: Any, boxes: Any, n_tiles: int) -> Any:
    """Returns [n_tiles, 4]: the box around all boxes of a tile, NaN if the
    tile has no box.  tiles[i] is the tile of boxes[i], which is the box of a
    row or the reach of several rows."""
    made = np.full((n_tiles, 4), np.nan)
    has_place = ~_boxes.is_nowhere(boxes)
    tiles, boxes = np.asarray(tiles)[has_place], boxes[has_place]
    if len(tiles) == 0:
        return made
    order = by_tile(tiles)
    tiles, boxes = tiles[order], boxes[order]
    start = np.flatnonzero(np.append(True, tiles[1:] != tiles[:-1]))
    low = np.minimum.reduceat(boxes[:, :2], start, axis=0)
    high = np.maximum.reduceat(boxes[:, 2:], start, axis=0)
    made[tiles[start]] = np.hstack((low, high))
    return made
