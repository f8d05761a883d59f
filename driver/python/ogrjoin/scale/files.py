"""Joins of folders of GeoParquet: a tile is a run of the input's row groups.

Planning reads footers only.  A task reads the row groups of its tile, and the row
groups of the join side that meet the tile's reach; it joins them and writes a file.
Tasks share nothing, and a repeated task writes equal rows.  The parts of the output
are in the order of the input.
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
from .parts import MEMORY_OF_BYTES, TASK_MEMORY, SideRows, cut_tile, take_rows
from .tile_join import ROW, HeldSide, TileJoin
from .tiles import reaches

TILE_ROWS = 1_000_000
# Memory of join rows per byte of their Parquet pages: columns, geometry arrays,
# index, and buffers of the reader.
_MEMORY_OF_PAGES = 4
_RUN = 1000  # consecutive input rows that share a reach (nearest without max_distance)
# A join of several tiles warns if it reads a byte of the join side more often than
# this, on average (Explanation.copies).
_MUCH = 1.3


class Explanation(NamedTuple):
    """How a join of files would run, estimated from footers.

    way           "files", "broadcast", "shuffle" or "sums": what moves between machines
    tiles         number of tiles (runs of row groups of the input)
    rows          (of the input, of the join side)
    copies        how often a byte of the join side is read, on average; a lower
                  bound for op=nearest without max_distance
    task_bytes    estimated memory of the join side of the largest task
    unboxed       row groups without a box: (of the input, of the join side)
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
    """A join of two folders, cut into tasks.  Each task gets a pickled copy of
    the plan."""

    def __init__(
        self,
        left: str | RowGroups,
        right: str | RowGroups,
        options: dict[str, Any],
        *,
        tile_rows: int = TILE_ROWS,
        tiles: int | None = None,
        task_memory: int = TASK_MEMORY,
    ) -> None:
        self.token = secrets.token_hex(8)  # identifies this plan in every process
        self.left = _read_side(left, "left", options)
        self.right = _read_side(right, "right", options)
        self.job = TileJoin(self.left.schema, self.right.schema, options)
        for which in ("left", "right"):
            if options.get(f"{which}_fid") or options.get("fid"):
                raise InvalidError("a join of files numbers the rows itself: leave fid out")
        if tiles is not None:
            tile_rows = -(-int(self.left.n_rows.sum()) // max(1, tiles))
        # A tile ends before the row group with which it would exceed tile_rows.
        self._tile = np.zeros(len(self.left), dtype=np.int64)
        tile, rows = 0, 0
        for i, n in enumerate(self.left.n_rows.tolist()):
            if rows and rows + n > tile_rows:
                tile, rows = tile + 1, 0
            self._tile[i], rows = tile, rows + n
        self._right_boxes = self._boxes_of_right()
        self.task_memory = task_memory
        distance = self.job.reach_distance
        if self.job.is_unbounded:
            distance = 0.0
        elif np.isnan(distance):
            distance = np.inf
        self._reach = _boxes.widened(self.left.box, distance, self.job.metric)
        self._pairs: list[Any] = []
        self._count_tiles()
        self._halve_large_tiles()

    def _boxes_of_right(self) -> Any:
        return _boxes.widened(self.right.box, 0.0, self.job.metric)

    def _row_groups_of_tiles(self, reach: Any, tile_of: Any, n_tiles: int) -> list[Any]:
        """Returns, for each tile, the row groups of the join side that
        intersect one of its reaches, ascending.  tile_of[i] is the tile of
        reach[i].  A tile has a reach for each row group or run of rows,
        because one box around the whole tile would contain much empty
        space."""
        group, at = tiles_of_rows(self._right_boxes, reach, self.job.metric)
        n = max(1, len(self.right))
        tile, group = np.divmod(np.unique(tile_of[at] * n + group), n)
        ends = np.searchsorted(tile, np.arange(n_tiles + 1))
        return [group[a:b] for a, b in zip(ends[:-1], ends[1:])]

    def _count_tiles(self) -> None:
        self.n_tiles = int(self._tile.max(initial=-1)) + 1
        self._pairs = self._row_groups_of_tiles(self._reach, self._tile, self.n_tiles)

    def _memory_of(self, groups: Any) -> int:
        """Estimates the bytes of memory of the join rows of these row
        groups."""
        return int(self.right.n_bytes[groups].sum()) * _MEMORY_OF_PAGES

    def _halve_large_tiles(self) -> None:
        """Halves the tiles of several row groups whose join rows need more
        than task_memory. If the larger half still needs more than 0.9 times the memory
        of the whole tile, the halves are not halved again."""
        stays = np.zeros(len(self.left), dtype=bool)  # row groups of tiles not to halve
        while True:
            needed = [self._memory_of(groups) for groups in self._pairs]
            first = np.searchsorted(self._tile, np.arange(self.n_tiles + 1))
            halved = [
                t for t in np.flatnonzero(np.array(needed, dtype=np.int64) > self.task_memory)
                if first[t + 1] - first[t] > 1 and not stays[first[t]]
            ]  # fmt: skip
            if not halved:
                return
            ends = np.zeros(len(self.left), dtype=np.int64)
            ends[[(first[t] + first[t + 1]) // 2 for t in halved]] = 1
            self._tile = self._tile + np.cumsum(ends)
            self._count_tiles()
            for t in halved:
                new = self._tile[first[t]]
                if max(self._memory_of(self._pairs[i]) for i in (new, new + 1)) > 0.9 * needed[t]:
                    stays[first[t] : first[t + 1]] = True

    def explain(self) -> Explanation:
        read = [int(self.right.n_bytes[groups].sum()) for groups in self._pairs]
        total = max(1, int(self.right.n_bytes.sum()))
        left, right = self.left, self.right
        return Explanation(
            "files",
            self.n_tiles,
            (int(left.n_rows.sum()), int(right.n_rows.sum())),
            sum(read) / total,
            max(read, default=0) * _MEMORY_OF_PAGES,
            (int((~left.is_boxed).sum()), int((~right.is_boxed).sum())),
        )

    # ---- tasks ---------------------------------------------------------------

    def _left_batches(self, tile: int, threads: bool) -> Iterator[Any]:
        groups = np.flatnonzero(self._tile == tile)
        yield from _add_row_numbers(self.left.batches(groups, threads=threads), self.job.left_rows)

    def read_right(self, groups: Any, threads: bool = True) -> Any:
        """Returns a table of the join rows of the given row groups."""
        schema = self.job.right_rows
        batches = _add_row_numbers(self.right.batches(groups, threads=threads), schema)
        return pa.Table.from_batches(batches, schema=schema)

    def _groups_within_bounds(self, tile: int, left: Any, threads: bool) -> Any:
        """Returns, for nearest without max_distance, the row groups that can
        hold nearest rows.  The distances to a sample of the join rows are
        upper bounds, which limit the reach."""
        groups = self._pairs[tile]
        bounds = np.full(len(left), np.inf)
        some = groups[:: self._memory_of(groups) // self.task_memory + 1]
        if len(some):
            bounds = self.job.bounds(left, self.read_right(some, threads))
        reach = self.job.left_reach(left, self.job.left_boxes(left), bounds)
        # If the input is sorted by place, consecutive rows are close to each other.
        run = np.arange(len(left)) // _RUN
        n = int(run.max(initial=-1)) + 1
        return self._row_groups_of_tiles(reaches(run, reach, n), np.zeros(n, dtype=np.int64), 1)[0]

    def join_tile(self, tile: int, threads: bool = True) -> Iterator[tuple[Any, Any]]:
        """Yields the batches (joined rows, numbers of join rows with pairs) of a tile, in the
        order of the input. The numbers are None unless how is right or full."""
        needs_numbers = self.job.how in ("right", "full")
        groups = self._pairs[tile]
        left: Any = pa.RecordBatchReader.from_batches(
            self.job.left_rows, self._left_batches(tile, threads)
        )
        if self.job.is_unbounded or (needs_numbers and not self.job.shows_pairs):
            left = left.read_all()
        if self.job.is_unbounded:
            groups = self._groups_within_bounds(tile, left, threads)
        if self._memory_of(groups) > self.task_memory:
            yield from self._join_in_parts(tile, left, groups, threads)
            return
        right = _hold_row_groups(self, groups, threads)
        if needs_numbers and not self.job.shows_pairs:
            yield None, self.job.matched(left, self.read_right(groups, threads))
            needs_numbers = False
        for batch in right.joined(left):
            numbers = self.job.numbers_in(batch) if needs_numbers else None
            yield self.job.unnumbered(batch), numbers

    def _join_in_parts(
        self, tile: int, left: Any, groups: Any, threads: bool
    ) -> Iterator[tuple[Any, Any]]:
        """Like join_tile(), for a tile whose join rows may need more memory
        than task_memory."""
        rows = _add_row_numbers(self.right.batches(groups, threads=threads), self.job.right_rows)
        limit = self.task_memory / MEMORY_OF_BYTES
        right = SideRows(self.job.right_rows, limit, tile).extend(rows)
        mine = SideRows(self.job.left_rows, limit, tile)
        mine.extend(left.to_batches() if isinstance(left, pa.Table) else left)
        parts: Any = [(mine.table(), right.table())] if not right.is_on_disk else cut_tile(
            self.job, mine, right, self.task_memory, tile, is_ordered=True
        )
        needs_numbers = self.job.how in ("right", "full")
        for left, table in parts:
            if needs_numbers and not self.job.shows_pairs:
                yield None, self.job.matched(left, table)
            for batch in self.job.joined(left, table):
                shows = needs_numbers and self.job.shows_pairs
                yield self.job.unnumbered(batch), self.job.numbers_in(batch) if shows else None
        mine.close()
        right.close()

    def unmatched(self, numbers: Any, threads: bool = True) -> Iterator[Any]:
        """Yields the rows of how=right and full for join rows without a match.
        numbers are the join rows with a match."""
        is_matched = np.zeros(int(self.right.n_rows.sum()), dtype=bool)
        is_matched[numbers] = True
        for groups in np.array_split(np.arange(len(self.right)), max(1, len(self.right) // 8)):
            table = self.read_right(groups, threads)
            rest = np.flatnonzero(~is_matched[table.column(ROW).to_numpy()])
            for batch in self.job.unmatched(take_rows(table, rest)):
                yield self.job.unnumbered(batch)


_last: tuple[tuple[str, bytes], HeldSide] | None = None  # the last join side of this process


def _hold_row_groups(plan: FilesPlan, groups: Any, threads: bool) -> HeldSide:
    """Returns the join rows of the given row groups with their index.  They
    are kept until a tile needs other groups: a process whose tiles all need
    the same groups reads and indexes them once."""
    global _last
    key = (plan.token, groups.tobytes())
    last = _last  # another thread may replace _last at any time
    if last is None or last[0] != key:
        last = _last = None  # frees the last side before the next is read
        last = _last = key, plan.job.hold(plan.read_right(groups, threads))
    return last[1]


def _read_side(path: str | RowGroups, which: str, options: dict[str, Any]) -> RowGroups:
    if isinstance(path, RowGroups):
        return path
    x = options.get(f"{which}_x") or (options.get("x") if which == "left" else None)
    y = options.get(f"{which}_y") or (options.get("y") if which == "left" else None)
    column = options.get(f"{which}_column")
    return read_row_groups(path, column, (x, y) if x is not None else None)


def _add_row_numbers(batches: Any, schema: Any) -> Iterator[Any]:
    """Adds a column of row numbers to each (number of the first row, batch)."""
    for row, batch in batches:
        numbers = pa.array(np.arange(row, row + len(batch), dtype=np.int64))
        yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)


# ---- in processes of this machine -------------------------------------------

def _end_process_that_imports() -> None:
    """Ends this process if it is a worker process that is importing the user's script,
    because the call in the script would start the join again. The parent process then
    raises the error."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)


_work: tuple[FilesPlan, ParquetOutput, bool] | None = None  # (plan, output, threads) of a worker process


def _set_work(plan: FilesPlan, output: ParquetOutput, threads: bool, has_begun: Any) -> None:
    global _work
    _work = plan, output, threads
    has_begun.set()


def _run_task(tile: int) -> tuple[str, int, Any]:
    assert _work is not None
    return run_task(*_work, tile)


def run_task(
    plan: FilesPlan, output: ParquetOutput, threads: bool, tile: int
) -> tuple[str, int, Any]:
    """Writes a tile; returns (file name, rows, numbers of join rows with pairs)."""
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
    left: str,
    right: str,
    *,
    tiles: int | None = None,
    task_memory: int = TASK_MEMORY,
    **options: Any,
) -> Explanation:
    """Explains how join_files() would run; reads footers only."""
    return FilesPlan(left, right, options, tiles=tiles, task_memory=task_memory).explain()


def join_files(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    processes: int = 1,
    tiles: int | None = None,
    overwrite: bool = False,
    task_memory: int = TASK_MEMORY,
    **options: Any,
) -> int:
    """Joins two files or folders of GeoParquet into a folder of GeoParquet with the
    rows of ogrjoin.join(), in its order; returns the number of rows.

    left, right  paths, or URIs that pyarrow opens (s3://...)
    out          a folder in one that exists; it appears when it is complete
    processes    number of processes; they share the threads. With more than one, a
                 script must make the call under if __name__ == "__main__":, since
                 each process imports the script
    tiles        number of tiles; default: a million input rows each
    task_memory  bytes of a process for the join rows of a tile, with their index; a
                 tile that needs more is halved, or joined in parts (1 GiB)
    overwrite    True: replaces out if it exists
    options      options of ogrjoin.join(), except fid, one_to_one, max_pairs, op
                 disjoint, and op similar without max_distance

    Both sides should be sorted by place, and have the bbox columns of GeoParquet
    1.1 or the bounding boxes of Parquet's geometry type: see explain_files().
    """
    left, right, out = (os.fspath(path) for path in (left, right, out))
    if processes > 1:
        _end_process_that_imports()
        options.setdefault("threads", max(1, len(os.sched_getaffinity(0)) // processes))
    plan, output = prepare_files(
        left, right, out, options, tiles=tiles, overwrite=overwrite, task_memory=task_memory
    )
    try:
        return finish_files(plan, output, list(_run_all_tasks(plan, output, processes)))
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
    task_memory: int = TASK_MEMORY,
) -> tuple[FilesPlan, ParquetOutput]:
    """Plans a join of files and prepares its output, before the first task. Plan and
    output are pickled and sent to the tasks, which call run_task() for the tiles 0 ..
    plan.n_tiles - 1. The results of the tasks go to finish_files(). If a task fails,
    call abort() of the output. Returns both."""
    for which, path in (("left", left), ("right", right)):
        if are_nested(path, out):
            raise InvalidError(
                f"the output {out} is the {which} side {path}, holds it or lies in it: "
                "write to a folder of its own"
            )
    plan = FilesPlan(left, right, options, tiles=tiles, task_memory=task_memory)
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
    """Completes the output after the last task. made are the results of run_task().
    Returns the number of rows."""
    if plan.job.how in ("right", "full"):
        numbers = [m[2] for m in made if m[2] is not None]
        matched = np.unique(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64)
        name, n_rows = output.write(plan.n_tiles, plan.unmatched(matched))
        made = [*made, (name, n_rows, None)]
    output.commit([m[0] for m in made])
    return sum(m[1] for m in made)


def _run_all_tasks(
    plan: FilesPlan, output: ParquetOutput, processes: int
) -> Iterator[tuple[str, int, Any]]:
    if processes < 2:
        for tile in range(plan.n_tiles):
            yield run_task(plan, output, True, tile)
        return
    context = multiprocessing.get_context("spawn")
    has_begun = context.Event()  # set when a process has imported the script
    try:
        with concurrent.futures.ProcessPoolExecutor(
            processes, context, _set_work, (plan, output, False, has_begun)
        ) as pool:
            yield from pool.map(_run_task, range(plan.n_tiles))
    except BrokenProcessPool:
        if has_begun.is_set():
            raise
        raise InvalidError(
            f"processes={processes}: they begin by importing the script, and none came to "
            'its end: the script has to call join_files() under if __name__ == "__main__":'
        ) from None
