"""Joins a tile whose join rows exceed the memory of a task, part after part.

The rows of both sides are kept in files of the task's disk.  The tile's input rows
are cut into parts until the join rows that each part reaches fit into the memory; a
part is to its tile what a tile is to the layer, so it has every pair of its rows.

    is_ordered  a part is a run of consecutive input rows, so that joined rows keep the
                order of the input; otherwise a part is a leaf of a k-d tree

The files have no names: a killed task leaves none.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any, Iterable, Iterator

import numpy as np
import pyarrow as pa

from .._errors import InvalidError
from .boxes import is_endless
from .copies import tiles_of_rows
from .tile_join import ROW, TileJoin
from .tiles import Tiles, reaches, sample_rows

TASK_MEMORY = 1 << 30  # bytes of the join rows of a task: columns, arrays and index
MEMORY_OF_BYTES = 2  # memory of a join side per byte of its Arrow table
_SAMPLE = 20_000  # rows of a sample: for the tree, and for bounds of nearest
_RUN = 1000  # consecutive input rows that share a reach
_MOST_PARTS = 4096
_USELESS = 0.95  # cutting ends if the largest part keeps at least this share of the join rows


def _spill_folder() -> str | None:
    """Returns the folder for the files of this task: Spark's local disk.
    Returns None if there is none: then tempfile chooses."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return given if os.path.isdir(given) else None


class SideRows:
    """The record batches of one side of a tile.  They are in memory up to a
    limit.  Beyond it all of them are in a file, which each iteration reads
    again."""

    def __init__(self, schema: Any, limit: float, tile: int) -> None:
        self.schema, self.n_rows, self.n_bytes = schema, 0, 0
        self._limit, self._tile = limit, tile
        self._kept: list[Any] = []
        self._file: Any = None
        self._writer: Any = None

    @property
    def is_on_disk(self) -> bool:
        return self._file is not None

    def add(self, batch: Any) -> None:
        self.n_rows += len(batch)
        self.n_bytes += batch.nbytes
        if self._file is None:
            self._kept.append(batch)
            if self.n_bytes > self._limit:
                self.write()
        else:
            self._write(batch)

    def extend(self, batches: Iterable[Any]) -> SideRows:
        for batch in batches:
            self.add(batch)
        return self

    def write(self) -> None:
        """Moves the rows to a file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="ogrjoin-", dir=_spill_folder())
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self.schema)
            kept, self._kept = self._kept, []
            for batch in kept:
                self._write(batch)

    def _write(self, batch: Any) -> None:
        try:
            self._writer.write_batch(batch)
        except OSError as error:
            self.close()
            raise OSError(
                error.errno,
                f"tile {self._tile} has {self.n_bytes / 1e6:.0f} MB of rows to write to "
                f"the disk of the task, {_spill_folder() or tempfile.gettempdir()}: "
                f"{error.strerror or error}; give a larger disk, task_memory= or tiles=",
            ) from None

    def __iter__(self) -> Iterator[Any]:
        if self._file is None:
            yield from self._kept
            return
        if self._writer is not None:
            self._writer.close()
            self._file.flush()
            self._writer = None
        self._file.seek(0)
        with pa.ipc.open_stream(pa.PythonFile(self._file, "r")) as reader:
            yield from reader

    def table(self) -> Any:
        return pa.Table.from_batches(list(self), schema=self.schema)

    def ascending(self, number: str) -> SideRows:
        """Returns the rows ascending by a column of numbers.  The result is
        this object if the rows ascend already.  Rows in a file are sorted in
        parts that take half the limit."""
        found = [np.asarray(batch.column(number).cast(pa.int64())) for batch in self]
        numbers = np.concatenate([np.zeros(0, np.int64), *found])
        if (numbers[1:] >= numbers[:-1]).all():
            return self
        order = np.argsort(numbers, kind="stable")
        made = SideRows(self.schema, self._limit, self._tile)
        n = int(2 * self.n_bytes / self._limit) + 1 if self.is_on_disk else 1
        for rows in np.array_split(order, n):
            if len(rows):
                table = _take_rows(self, np.sort(rows), self.schema)
                place = np.argsort(np.argsort(rows))  # position of rows[i] in the table
                made.extend(take_rows(table, place).combine_chunks().to_batches())
        self.close()
        return made

    def close(self) -> None:
        self._kept, self._writer = [], None
        if self._file is not None:
            self._file.close()
            self._file = None


# The types of views, which a pyarrow of before 16 lacks, and what stands for them.
_PLAIN = {
    getattr(pa, view)(): plain
    for view, plain in (("string_view", pa.large_string()), ("binary_view", pa.large_binary()))
    if hasattr(pa, view)
}


def _plain_type(kind: Any) -> Any:
    """Returns the type with plain texts and bytes in place of views, also in lists,
    structs and maps."""

    def plain(field: Any) -> Any:
        return field.with_type(_plain_type(field.type))

    if pa.types.is_struct(kind):
        return pa.struct([plain(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(plain(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_field), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_field), plain(kind.item_field), kind.keys_sorted)
    return _PLAIN.get(kind, kind)


def plain_types(schema: Any) -> list[Any]:
    """Returns the types of the columns for with_types() before take() of pyarrow, which
    refuses views."""
    return [_plain_type(kind) for kind in schema.types]


def with_types(rows: Any, types: list[Any]) -> Any:
    """Returns a table or record batch with columns of these types. A NULL in a field that
    allows none, which cast() of a table refuses, remains."""
    schema = rows.schema
    columns = rows.columns
    changed = [i for i, kind in enumerate(schema.types) if kind != types[i]]
    if not changed:
        return rows
    for i in changed:
        columns[i] = columns[i].cast(types[i])
        schema = schema.set(i, schema.field(i).with_type(types[i]))
    return type(rows).from_arrays(columns, schema=schema)


def take_rows(rows: Any, numbers: Any) -> Any:
    """Returns the rows of a table or record batch with these numbers. Columns with views
    are converted to plain types and back."""
    plain = with_types(rows, plain_types(rows.schema))
    return with_types(plain.take(pa.array(numbers)), rows.schema.types)


def _take_rows(batches: Any, rows: Any, schema: Any) -> Any:
    """Returns a table of the rows with these numbers, ascending, counted over all batches."""
    taken, first = [], 0
    for batch in batches:
        a, b = np.searchsorted(rows, (first, first + len(batch)))
        if b > a:
            taken.append(take_rows(batch, rows[a:b] - first))
        first += len(batch)
    return pa.Table.from_batches(taken, schema=schema)


class _Cut:
    """The parts of the input rows, and the reaches of the parts.

    part     [input rows] the part of each row
    reach    [reaches, 4]
    part_of  [reaches] the part that has the reach; an ordered part has one for each
             1000 rows, because one box around all of them would contain much empty
             space
    """

    def __init__(self, job: TileJoin, mine: tuple[Any, Any, Any], n: int) -> None:
        """mine is (boxes, row numbers, reaches) of the input rows.  Without
        row numbers (None), the parts are ordered."""
        boxes, rows, reach = mine
        if rows is None:
            self.part = np.arange(len(boxes)) * n // max(1, len(boxes))
            run = self.part * (len(boxes) // _RUN + 1) + np.arange(len(boxes)) // _RUN
            some, run = np.unique(run, return_inverse=True)
            self.part_of = some // (len(boxes) // _RUN + 1)
            self.reach = reaches(run, reach, len(some))
        else:
            tree = Tiles(boxes[sample_rows(len(boxes), _SAMPLE)], n, job.metric)
            self.part = tree.owners(boxes, rows)
            self.part[is_endless(reach)] = len(tree)
            self.part_of = np.arange(len(tree) + 1)
            self.reach = reaches(self.part, reach, len(tree) + 1)
        self.n = int(self.part_of.max(initial=-1)) + 1
        self._metric = job.metric

    def copies(self, boxes: Any, only: int | None = None) -> tuple[Any, Any]:
        """Returns the pairs (row, part), ascending by row: the join row with
        this box is copied to the part.  With only, returns the pairs of this
        part alone."""
        mine = np.arange(len(self.reach)) if only is None else np.flatnonzero(self.part_of == only)
        row, at = tiles_of_rows(boxes, self.reach[mine], self._metric, 1)
        key = np.unique(row * self.n + self.part_of[mine[at]])
        return np.divmod(key, max(1, self.n))

    def counts(self, boxes: Any) -> Any:
        """Returns [parts] the number of join rows that each part reaches."""
        counts = np.zeros(self.n, dtype=np.int64)
        for first in range(0, len(boxes), 1 << 17):
            _, part = self.copies(boxes[first : first + (1 << 17)])
            counts += np.bincount(part, minlength=self.n)
        return counts


def cut_tile(
    job: TileJoin,
    left: SideRows,
    right: SideRows,
    task_memory: int,
    tile: int,
    is_ordered: bool,
) -> Iterator[tuple[Any, Any]]:
    """Cuts a tile into parts whose join rows fit into task_memory. Yields the tables of
    input rows and join rows of each part that has input rows. Both sides must ascend by
    number. With is_ordered, each part is a run of consecutive input rows."""
    theirs = [job.right_boxes(pa.Table.from_batches([batch])) for batch in right]
    their_boxes = np.vstack(theirs) if theirs else np.zeros((0, 4))
    del theirs
    near = None
    if job.is_unbounded:
        near = _take_rows(right, sample_rows(right.n_rows, _SAMPLE), right.schema)
    boxes, reach, rows = [np.zeros((0, 4))], [np.zeros((0, 4))], [np.zeros(0, np.int64)]
    for batch in left:
        table = pa.Table.from_batches([batch])
        boxes.append(job.left_boxes(table))
        bounds = np.inf if near is None else job.bounds(table, near)
        reach.append(job.left_reach(table, boxes[-1], bounds))
        rows.append(table.column(ROW).to_numpy())
    mine = np.vstack(boxes), None if is_ordered else np.concatenate(rows), np.vstack(reach)
    del boxes, reach, rows
    most = task_memory / MEMORY_OF_BYTES / max(1.0, right.n_bytes / max(1, right.n_rows))
    cut = _find_cut(job, mine, their_boxes, most, tile, task_memory)
    for part in range(cut.n):
        numbers = np.flatnonzero(cut.part == part)
        if len(numbers) == 0:
            continue
        met: list[Any] = [np.zeros(0, np.int64)]
        for first in range(0, len(their_boxes), 1 << 17):
            met.append(cut.copies(their_boxes[first : first + (1 << 17)], part)[0] + first)
        yield (
            _take_rows(left, numbers, left.schema),
            _take_rows(right, np.concatenate(met), right.schema),
        )


def _find_cut(
    job: TileJoin, mine: tuple[Any, Any, Any], their_boxes: Any, most: float, tile: int, task_memory: int
) -> _Cut:
    """Tries 2, 4, 8 ... parts.  Returns the first cut in which no part reaches
    more than `most` join rows."""
    n, before, kept = 2, len(their_boxes), 0
    while True:
        cut = _Cut(job, mine, n)
        counts = cut.counts(their_boxes)
        largest = int(counts.max(initial=0))
        if largest <= most:
            return cut
        kept = kept + 1 if largest > _USELESS * before else 0
        if kept == 3 or n >= min(_MOST_PARTS, 2 * len(mine[0])):
            break
        n, before = 2 * n, largest
    at = int(counts.argmax())
    needed = int(task_memory * largest / max(most, 1.0)) + 1
    raise InvalidError(
        f"tile {tile}: {np.count_nonzero(cut.part == at)} rows of the left side, which cannot "
        f"be cut into smaller parts, reach {largest} rows of the right side (of {len(their_boxes)} "
        f"in the tile); to join them takes about {needed / 1e6:.0f} MB, more than "
        f"task_memory={task_memory}: set task_memory={needed} or more"
    )
