"""Row groups of GeoParquet with their boxes, from footers alone."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet

from .._errors import InputError, InvalidError
from .._scan import check_files, mark_geometries, open_dataset, read_column, unify_types
from .boxes import MOST

_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)
_BATCH = 1 << 16  # rows of a batch
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def open_filesystem(path: str | os.PathLike[str]) -> tuple[Any, str]:
    """Returns (pyarrow file system, path in it) for a path or a URI."""
    path = os.fspath(path)
    if "://" in path:
        filesystem, inside = pyarrow.fs.FileSystem.from_uri(path)
        return filesystem, inside
    return pyarrow.fs.LocalFileSystem(), os.path.abspath(path)


def are_nested(path: str, other: str) -> bool:
    """Returns True if one of two paths is the other, or a folder above it."""
    (filesystem, a), (of_other, b) = open_filesystem(path), open_filesystem(other)
    if filesystem.type_name != of_other.type_name:
        return False
    if filesystem.type_name == "local":
        a, b = os.path.realpath(a), os.path.realpath(b)
    a, b = (inside.rstrip("/") + "/" for inside in (a, b))
    return a.startswith(b) or b.startswith(a)


class RowGroups(NamedTuple):
    """All row groups of a side, in the order of its rows.

    files            paths
    file, group      [n] index into files, and number of the row group in that file
    first_row        [n] number of the group's first row in the side
    n_rows, n_bytes  [n] number of rows, and of bytes when uncompressed
    box              [n, 4]; infinite if the footer has no box; NaN if no row has a
                     place
    is_boxed         [n] True: the footer has a box
    keys             for each file the values of its folders KEY=VALUE by column
    """

    filesystem: Any
    files: list[str]
    schema: Any
    primary: str | None
    file: Any
    group: Any
    first_row: Any
    n_rows: Any
    n_bytes: Any
    box: Any
    is_boxed: Any
    keys: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self.file)

    def batches(self, groups: Any, columns: list[str] | None = None, threads: bool = True) -> Any:
        """Yields (number of the first row, record batch) of row groups, in their order."""
        names = columns if columns is not None else self.schema.names
        schema = pa.schema([self.schema.field(name) for name in names])
        groups = np.asarray(groups, dtype=np.int64)
        files = self.file[groups]
        # pyarrow.dataset is not used: its fragments do not keep the order of row groups.
        for run in np.split(groups, np.flatnonzero(np.diff(files)) + 1):
            if len(run) == 0:
                continue
            path = self.files[self.file[run[0]]]
            keys = self.keys[self.file[run[0]]] if self.keys else {}
            with self.filesystem.open_input_file(path) as source:
                file = pyarrow.parquet.ParquetFile(source, pre_buffer=True)
                there = [name for name in names if name in file.schema_arrow.names]
                rows = iter(zip(self.first_row[run].tolist(), self.n_rows[run].tolist()))
                row, end = 0, 0  # next row and end of the row group
                for batch in file.iter_batches(
                    _BATCH, [int(g) for g in self.group[run]], there, use_threads=threads
                ):
                    made = [read_column(batch, field, keys, path) for field in schema]
                    batch = pa.RecordBatch.from_arrays(made, schema=schema)
                    at = 0
                    while at < len(batch):  # a batch may hold rows of two groups
                        while row == end:
                            row, n = next(rows)
                            end = row + n
                        n = min(end - row, len(batch) - at)
                        yield row, batch.slice(at, n)
                        row, at = row + n, at + n


def _box_columns(schema: Any, column: str | None, xy: Any) -> list[str]:
    """Returns the paths of the columns whose statistics give xmin, ymin, xmax, ymax."""
    if xy is not None:
        return [xy[0], xy[1], xy[0], xy[1]]
    geo = json.loads((schema.metadata or {}).get(b"geo", b"{}"))
    paths = geo.get("columns", {}).get(column, {}).get("covering", {}).get("bbox", {})
    return [".".join(paths[side]) for side in _SIDES if side in paths]


def _bound(chunk: Any, is_low: bool) -> float | None:
    """Returns the minimum (is_low) or maximum of a column chunk.  Returns None
    if it is unknown, NaN if the chunk has no values."""
    statistics = chunk.statistics
    if statistics is None:
        return None
    if not statistics.has_min_max:
        none = statistics.has_null_count and statistics.null_count == chunk.num_values
        return float("nan") if none else None
    value = float(statistics.min if is_low else statistics.max)
    if chunk.physical_type == "FLOAT":  # the float may be rounded inwards
        away = np.float32(-np.inf if is_low else np.inf)
        value = float(np.nextafter(np.float32(value), away))
    return value if abs(value) <= MOST else None


def _box_of_group(group: Any, chunks: list[int], geometry: int) -> Any:
    """Returns the box of a row group, or None if the footer has none."""
    if len(chunks) == 4:
        box = [_bound(group.column(c), i < 2) for i, c in enumerate(chunks)]
        return None if None in box else box
    of = group.column(geometry).geo_statistics if geometry >= 0 else None
    if of is None or of.xmin is None or of.ymin is None:
        return None
    if not of.xmin <= of.xmax:  # across the antimeridian
        return (-180.0, of.ymin, 180.0, of.ymax)
    return (of.xmin, of.ymin, of.xmax, of.ymax)


def read_row_groups(path: str, column: str | None = None, xy: Any = None) -> RowGroups:
    """Reads the row groups of a file or folder.  column is the geometry
    column, by default the primary one.  xy are the names of two columns of
    coordinates instead."""
    filesystem, inside = open_filesystem(path)
    dataset = open_dataset(inside, filesystem=filesystem)
    if not dataset.files:
        raise InvalidError(f"{path} has no Parquet file: name a file or a folder of them")
    check_files(dataset)
    schema, errors = unify_types(dataset)
    for error in errors.values():
        raise InputError(error)
    schema, primary = mark_geometries(schema)
    column = column or primary
    wanted = _box_columns(dataset.schema, column, xy)
    file, group, n_rows, n_bytes, box, is_boxed, keys = [], [], [], [], [], [], []
    for i, fragment in enumerate(dataset.get_fragments()):
        footer = fragment.metadata
        keys.append(pyarrow.dataset.get_partition_keys(fragment.partition_expression))
        paths = [footer.schema.column(c).path for c in range(footer.num_columns)]
        chunks = [paths.index(name) for name in wanted if name in paths]
        geometry = paths.index(column) if column in paths else -1
        for g in range(footer.num_row_groups):
            of_group = footer.row_group(g)
            found = _box_of_group(of_group, chunks, geometry)
            file.append(i)
            group.append(g)
            n_rows.append(of_group.num_rows)
            n_bytes.append(of_group.total_byte_size)
            box.append(_EVERYWHERE if found is None else found)
            is_boxed.append(found is not None)
    rows = np.array(n_rows, dtype=np.int64)
    return RowGroups(
        filesystem,
        list(dataset.files),
        schema,
        primary,
        np.array(file, dtype=np.int64),
        np.array(group, dtype=np.int64),
        np.cumsum(rows) - rows,
        rows,
        np.array(n_bytes, dtype=np.int64),
        np.array(box, dtype=np.float64).reshape(-1, 4),
        np.array(is_boxed, dtype=bool),
        keys,
    )


def count_rows(path: str) -> int:
    """Returns the number of rows of a file or folder, from footers."""
    filesystem, inside = open_filesystem(path)
    return int(
        pyarrow.dataset.dataset(inside, filesystem=filesystem, format="parquet").count_rows()
    )
