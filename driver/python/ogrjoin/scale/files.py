"""Joins of folders of GeoParquet: a tile is a run of the input's row groups.

Planning reads footers alone.  A task reads its row groups and those of the join
side that its reach meets, joins them, and writes a file; tasks share nothing, and
a task that runs again writes the same rows.  Parts are in the order of the input.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import secrets
import warnings
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Iterator, NamedTuple

import numpy as np
import pyarrow as pa

from .._errors import InvalidError
from . import boxes as _boxes
from .copies import tiles_of_rows
from .footers import RowGroups, are_nested, read_row_groups
from .parquet_out import ParquetOutput
from .tile_join import ROW, HeldSide, TileJoin
from .tiles import reaches

TILE_ROWS = 1_000_000
# Join rows in memory take some four times their size in Parquet's pages: columns,
# geometries as arrays, index, and what is being read.
_MEMORY_OF_BYTES = 4
_RUN = 1000  # rows of the input with one reach, of nearest without max_distance
_MUCH = 1.3  # copies of a byte of the join side that a warning names


class Explanation(NamedTuple):
    """How a join of files would run, from footers.

    tiles         runs of row groups of the input
    rows          of the input, and of the join side
    copies        how often a byte of the join side is read, on average; of
                  op=nearest without max_distance at least so often
    task_bytes    the memory of the largest task's join side, estimated
    unboxed       row groups of the input and of the join side without a box
    """

    way: str
    tiles: int
    rows: tuple[int, int]
    copies: float
    task_bytes: int
    unboxed: tuple[int, int]

    def __str__(self) -> str:
        return (
            f"{self.way}: {self.rows[0]} x {self.rows[1]} rows in {self.tiles} tiles; "
            f"the join side is read {self.copies:.2f} times; "
            f"{self.task_bytes / 1e6:.0f} MB of it in the largest task"
            + (
                f"; row groups without a box: {self.unboxed[0]} of the input, "
                f"{self.unboxed[1]} of the join side"
                if any(self.unboxed)
                else ""
            )
        )


class FilesPlan:
    """A join of two folders, cut into tasks; it is pickled for them."""

    def __init__(
        self,
        left: str | RowGroups,
        right: str | RowGroups,
        options: dict[str, Any],
        *,
        tile_rows: int = TILE_ROWS,
        tiles: int | None = None,
    ) -> None:
        self.token = secrets.token_hex(8)  # of this plan, in every process
        self.left = _read_side(left, "left", options)
        self.right = _read_side(right, "right", options)
        self.job = TileJoin(self.left.schema, self.right.schema, options)
        for which in ("left", "right"):
            if options.get(f"{which}_fid") or options.get("fid"):
                raise InvalidError("rows of files have numbers: fid is not of a join of files")
        if tiles is not None:
            tile_rows = -(-int(self.left.n_rows.sum()) // max(1, tiles))
        # A run ends where its rows would be more than tile_rows.
        self._tile = np.zeros(len(self.left), dtype=np.int64)
        tile, rows = 0, 0
        for i, n in enumerate(self.left.n_rows.tolist()):
            if rows and rows + n > tile_rows:
                tile, rows = tile + 1, 0
            self._tile[i], rows = tile, rows + n
        self.n_tiles = int(self._tile.max(initial=-1)) + 1
        self._right_boxes = self._boxes_of_right()
        distance = self.job.reach_distance
        if self.job.is_unbounded:
            distance = 0.0
        elif np.isnan(distance):
            distance = np.inf
        widened = _boxes.widened(self.left.box, distance, self.job.metric)
        self._pairs = self._meeting(widened, self._tile, self.n_tiles)

    def _boxes_of_right(self) -> Any:
        return _boxes.widened(self.right.box, 0.0, self.job.metric)

    def _meeting(self, reach: Any, tile_of: Any, n_tiles: int) -> list[Any]:
        """Of each tile, the row groups of the join side that meet one of its reaches,
        ascending; tile_of: of each reach, its tile.  A tile has several reaches,
        since a run of a space-filling curve fills little of the box around it."""
        group, at = tiles_of_rows(self._right_boxes, reach, self.job.metric)
        n = max(1, len(self.right))
        tile, group = np.divmod(np.unique(tile_of[at] * n + group), n)
        ends = np.searchsorted(tile, np.arange(n_tiles + 1))
        return [group[a:b] for a, b in zip(ends[:-1], ends[1:])]

    def explain(self) -> Explanation:
        read = [int(self.right.n_bytes[groups].sum()) for groups in self._pairs]
        total = max(1, int(self.right.n_bytes.sum()))
        left, right = self.left, self.right
        return Explanation(
            "files",
            self.n_tiles,
            (int(left.n_rows.sum()), int(right.n_rows.sum())),
            sum(read) / total,
            max(read, default=0) * _MEMORY_OF_BYTES,
            (int((~left.is_boxed).sum()), int((~right.is_boxed).sum())),
        )

    # ---- tasks ---------------------------------------------------------------

    def _left_batches(self, tile: int, threads: bool) -> Iterator[Any]:
        groups = np.flatnonzero(self._tile == tile)
        yield from _numbered(self.left.batches(groups, threads=threads), self.job.left_rows)

    def read_right(self, groups: Any, threads: bool = True) -> Any:
        """A table of join rows."""
        schema = self.job.right_rows
        batches = _numbered(self.right.batches(groups, threads=threads), schema)
        return pa.Table.from_batches(batches, schema=schema)

    def _groups_within_bounds(self, tile: int, left: Any, threads: bool) -> Any:
        """Of nearest without a maximum: rows that lie near give each input row an
        upper bound, which says how far to look."""
        groups = self._pairs[tile]
        bounds = np.full(len(left), np.inf)
        if len(groups):
            bounds = self.job.bounds(left, self.read_right(groups, threads))
        reach = self.job.left_reach(left, self.job.left_boxes(left), bounds)
        # Rows that follow one another lie near one another, if they are sorted.
        run = np.arange(len(left)) // _RUN
        n = int(run.max(initial=-1)) + 1
        return self._meeting(reaches(run, reach, n), np.zeros(n, dtype=np.int64), 1)[0]

    def join_tile(self, tile: int, threads: bool = True) -> Iterator[tuple[Any, Any]]:
        """(joined rows, numbers of the join rows in pairs, for how right and full) of
        a tile, in batches and in the order of the input."""
        needs_numbers = self.job.how in ("right", "full")
        groups = self._pairs[tile]
        left: Any = pa.RecordBatchReader.from_batches(
            self.job.left_rows, self._left_batches(tile, threads)
        )
        if self.job.is_unbounded or (needs_numbers and not self.job.shows_pairs):
            left = left.read_all()
        if self.job.is_unbounded:
            groups = self._groups_within_bounds(tile, left, threads)
        right = _held(self, groups, threads)
        if needs_numbers and not self.job.shows_pairs:
            yield None, self.job.matched(left, self.read_right(groups, threads))
            needs_numbers = False
        for batch in right.joined(left):
            numbers = self.job.numbers_in(batch) if needs_numbers else None
            yield self.job.unnumbered(batch), numbers

    def unmatched(self, numbers: Any, threads: bool = True) -> Iterator[Any]:
        """Rows of how right and full, of join rows that match nothing; numbers: of
        those that do."""
        is_matched = np.zeros(int(self.right.n_rows.sum()), dtype=bool)
        is_matched[numbers] = True
        for groups in np.array_split(np.arange(len(self.right)), max(1, len(self.right) // 8)):
            table = self.read_right(groups, threads)
            rest = np.flatnonzero(~is_matched[table.column(ROW).to_numpy()])
            for batch in self.job.unmatched(table.take(pa.array(rest))):
                yield self.job.unnumbered(batch)


_last: tuple[tuple[str, bytes], HeldSide] | None = None  # what this process joined with last


def _held(plan: FilesPlan, groups: Any, threads: bool) -> HeldSide:
    """The join rows of these groups: of a process that joins tile after tile with
    the same ones, they are read and indexed once."""
    global _last
    key = (plan.token, groups.tobytes())
    if _last is None or _last[0] != key:
        _last = None  # before the next is read
        _last = key, plan.job.hold(plan.read_right(groups, threads))
    return _last[1]


def _read_side(path: str | RowGroups, which: str, options: dict[str, Any]) -> RowGroups:
    if isinstance(path, RowGroups):
        return path
    x = options.get(f"{which}_x") or (options.get("x") if which == "left" else None)
    y = options.get(f"{which}_y") or (options.get("y") if which == "left" else None)
    column = options.get(f"{which}_column")
    return read_row_groups(path, column, (x, y) if x is not None else None)


def _numbered(batches: Any, schema: Any) -> Iterator[Any]:
    """(first row, batch) -> batches with the numbers of their rows."""
    for row, batch in batches:
        numbers = pa.array(np.arange(row, row + len(batch), dtype=np.int64))
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)


# ---- in processes of this machine -------------------------------------------

def _end_process_that_imports() -> None:
    """Ends a process of a pool that has come here by importing the script: it would
    join again. The process that began it raises the error."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)


_work: tuple[FilesPlan, ParquetOutput, bool] | None = None  # of a process of a pool


def _take_work(plan: FilesPlan, output: ParquetOutput, threads: bool, has_begun: Any) -> None:
    global _work
    _work = plan, output, threads
    has_begun.set()


def _run_task(tile: int) -> tuple[str, int, Any]:
    assert _work is not None
    return run_task(*_work, tile)


def run_task(
    plan: FilesPlan, output: ParquetOutput, threads: bool, tile: int
) -> tuple[str, int, Any]:
    """(name of the file, rows, numbers of the join rows in pairs) of a tile."""
    found: list[Any] = []

    def batches() -> Iterator[Any]:
        for batch, numbers in plan.join_tile(tile, threads):
            if numbers is not None:
                found.append(numbers)
            if batch is not None:
                yield batch

    name, n_rows = output.write(tile, batches())
    return name, n_rows, np.unique(np.concatenate(found)) if found else None


def explain_files(
    left: str, right: str, *, tiles: int | None = None, **options: Any
) -> Explanation:
    """How join_files() would run."""
    return FilesPlan(left, right, options, tiles=tiles).explain()


def join_files(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    processes: int = 1,
    tiles: int | None = None,
    overwrite: bool = False,
    **options: Any,
) -> int:
    """Joins two files or folders of GeoParquet into a folder of it, which then has
    the rows that ogrjoin.join() gives, in its order; returns their number.

    left, right  paths, or URIs that pyarrow opens (s3://...)
    out          a folder, which is there when all is written, in one that exists
    processes    at work at once, each with its share of threads; with more than one,
                 a script calls it under if __name__ == "__main__":, since Python
                 starts them by importing the script
    tiles        of the input; default: a million rows each
    overwrite    replaces out if it is there
    options      of ogrjoin.join(), but fid, one_to_one, max_pairs, op disjoint,
                 and op similar without max_distance

    Both sides should be sorted by place, and have the bbox columns of GeoParquet
    1.1 or Parquet's own boxes of geometries: see explain_files().
    """
    left, right, out = (os.fspath(path) for path in (left, right, out))
    if processes > 1:
        _end_process_that_imports()
        options.setdefault("threads", max(1, len(os.sched_getaffinity(0)) // processes))
    plan, output = prepare_files(left, right, out, options, tiles=tiles, overwrite=overwrite)
    try:
        return finish_files(plan, output, list(_run(plan, output, processes)))
    except BaseException:
        output.abort()
        raise


def prepare_files(
    left: str,
    right: str,
    out: str,
    options: dict[str, Any],
    *,
    tiles: int | None,
    overwrite: bool,
) -> tuple[FilesPlan, ParquetOutput]:
    """Before the first task of a join of files."""
    for which, path in (("left", left), ("right", right)):
        if are_nested(path, out):
            raise InvalidError(
                f"the output {out} is the {which} side {path}, holds it or lies in it: "
                "write to a folder of its own"
            )
    plan = FilesPlan(left, right, options, tiles=tiles)
    copies = plan.explain().copies
    if copies > _MUCH and plan.n_tiles > 1:
        warnings.warn(
            f"the join side is read {copies:.1f} times, since the boxes of row "
            "groups overlap: sort both sides by place, or give fewer tiles=",
            UserWarning,
            stacklevel=3,
        )
    output = ParquetOutput(
        out, plan.job.unnumbered(plan.job.schema), plan.job.geometry,
        boxes=plan.job.box_column, overwrite=overwrite,
    )  # fmt: skip
    output.begin()
    return plan, output


def finish_files(
    plan: FilesPlan, output: ParquetOutput, made: list[tuple[str, int, Any]]
) -> int:
    """After the last task: made is what run_task() gave for each tile."""
    if plan.job.how in ("right", "full"):
        numbers = [m[2] for m in made if m[2] is not None]
        matched = np.unique(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64)
        name, n_rows = output.write(plan.n_tiles, plan.unmatched(matched))
        made = [*made, (name, n_rows, None)]
    output.commit([m[0] for m in made])
    return sum(m[1] for m in made)


def _run(
    plan: FilesPlan, output: ParquetOutput, processes: int
) -> Iterator[tuple[str, int, Any]]:
    if processes < 2:
        for tile in range(plan.n_tiles):
            yield run_task(plan, output, True, tile)
        return
    context = multiprocessing.get_context("spawn")
    has_begun = context.Event()  # a process has imported the script to its end
    try:
        with concurrent.futures.ProcessPoolExecutor(
            processes, context, _take_work, (plan, output, False, has_begun)
        ) as pool:
            yield from pool.map(_run_task, range(plan.n_tiles))
    except BrokenProcessPool:
        if has_begun.is_set():
            raise
        raise InvalidError(
            f"processes={processes}: they begin by importing the script, and none came to "
            'its end: the script has to call join_files() under if __name__ == "__main__":'
        ) from None
