"""join() and scan(): Arrow in, Arrow out. The columns are taken by pyarrow."""

from __future__ import annotations

import json
import os
from typing import Any, Iterator

import numpy as np
import pyarrow as pa

from . import _crs, _sides
from ._errors import InvalidError, UnsupportedError
from ._pairs import Index, pad

_NAME, _METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"


def _mark(schema: Any) -> Any:
    """With GeoParquet's columns marked as geoarrow.wkb."""
    geo = json.loads((schema.metadata or {}).get(b"geo", b"{}"))
    for name, column in geo.get("columns", {}).items():
        i = schema.get_field_index(name)
        if i < 0 or column.get("encoding") != "WKB":
            continue
        field, told = schema.field(i), {}
        if "crs" in column:
            told = {} if column["crs"] is None else {"crs": column["crs"]}
        else:
            told = {"crs": "OGC:CRS84"}  # what GeoParquet means then
        metadata = {_NAME: b"geoarrow.wkb", _METADATA: json.dumps(told).encode()}
        schema = schema.set(i, field.with_metadata(metadata))
    return schema


def _is_geometry(field: Any) -> bool:
    name: str = (field.metadata or {}).get(_NAME, b"").decode()
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
    return name.startswith("geoarrow.")


def _geometry_columns(schema: Any, column: str | None) -> list[str]:
    """All of them; the first is the one that is joined by."""
    marked = [f.name for f in schema if _is_geometry(f)]
    if column is not None:
        return [column] + [name for name in marked if name != column]
    bytes_ = [
        f.name
        for f in schema
        if pa.types.is_binary(f.type)
        or pa.types.is_large_binary(f.type)
        or pa.types.is_binary_view(f.type)
    ]
    return marked or bytes_


def _take(column: Any, rows: Any) -> Any:
    """Rows of an array or a chunked one as one array."""
    kind = column.type
    if kind in (pa.string_view(), pa.binary_view()):  # pyarrow takes none of them
        plain = pa.large_string() if kind == pa.string_view() else pa.large_binary()
        return _take(column.cast(plain), rows).cast(kind)
    taken = column.take(rows)
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


class Scan:
    """A file or a folder as an Arrow stream, as often as it is asked for."""

    def __init__(self, path: str) -> None:
        self._dataset: Any = None
        self._table: Any = None
        if os.path.isdir(path) or path.endswith((".parquet", ".geoparquet", ".pq")):
            import pyarrow.dataset

            self._dataset = pyarrow.dataset.dataset(path, format="parquet")
            self.schema = _mark(self._dataset.schema)
        else:
            from pyogrio import read_arrow

            told, table = read_arrow(path)
            name = told["geometry_name"] or "wkb_geometry"
            metadata = {_NAME: b"geoarrow.wkb"}
            if told["crs"]:
                crs = json.dumps({"crs": told["crs"]}).encode()
                metadata[_METADATA] = crs
            i = table.schema.get_field_index(name)
            field = table.schema.field(i).with_metadata(metadata)
            self.schema = table.schema.set(i, field)
            self._table = table.cast(self.schema)

    def _batches(self) -> Iterator[Any]:
        for batch in self._dataset.scanner().to_batches():
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

    def reader(self) -> Any:
        """A pyarrow.RecordBatchReader from the beginning."""
        if self._table is not None:
            return self._table.to_reader()
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


def scan(path: str | os.PathLike[str]) -> Scan:
    """GeoParquet (a file or a folder of files) by pyarrow, every other format by
    pyogrio."""
    return Scan(os.fspath(path))


def _reader(side: Any) -> Any:
    """A pyarrow.RecordBatchReader of whatever holds features."""
    if isinstance(side, (str, os.PathLike)):
        side = scan(side)
    if isinstance(side, Scan):
        return side.reader()
    if hasattr(side, "to_arrow") and hasattr(side, "geometry"):  # GeoDataFrame
        side = side.to_arrow(index=False)
    elif not hasattr(side, "__arrow_c_stream__"):
        array = _sides.shapely_array(side)
        if array is None:
            raise TypeError(
                f"{type(side).__name__} has no columns: ogrjoin.pairs() takes it"
            )
        import shapely

        crs = _crs.of_side(side)
        told = json.dumps({} if crs is None else {"crs": crs}).encode()
        field = pa.field(
            "geometry",
            pa.binary(),
            metadata={_NAME: b"geoarrow.wkb", _METADATA: told},
        )
        column = pa.array(shapely.to_wkb(array), pa.binary())
        side = pa.table([column], schema=pa.schema([field]))
    reader = pa.RecordBatchReader.from_stream(side)
    schema = _mark(reader.schema)
    return pa.RecordBatchReader.from_batches(
        schema,
        (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in reader),
    )


class Joined:
    """A join's rows as one Arrow stream, made as they are read: once."""

    def __init__(self, reader: Any, geometry: str | None) -> None:
        self._reader = reader
        self._geometry = geometry
        self.schema = reader.schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)

    def read_all(self) -> Any:
        """All rows as a pyarrow.Table."""
        return self._reader.read_all()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes GeoParquet 1.1, under another name until it is whole."""
        import pyarrow.parquet

        path = os.fspath(path)
        columns = {}
        for field in self.schema:
            if not _is_geometry(field):
                continue
            metadata = field.metadata or {}
            if metadata.get(_NAME) != b"geoarrow.wkb":
                raise UnsupportedError(f"{field.name} is not WKB: none else is written")
            crs = _crs.of_extension(metadata.get(_METADATA))
            columns[field.name] = {"encoding": "WKB", "geometry_types": [], "crs": crs}
        schema = self.schema
        if columns:
            first = self._geometry if self._geometry in columns else next(iter(columns))
            geo = {"version": "1.1.0", "primary_column": first, "columns": columns}
            schema = schema.with_metadata({b"geo": json.dumps(geo).encode()})
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
                for batch in self._reader:
                    columns_ = batch.columns
                    writer.write_batch(
                        pa.RecordBatch.from_arrays(columns_, schema=schema)
                    )
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)


def join(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    how: str = "left",
    k: int | None = None,
    max_distance: float | str | None = None,
    ties: str | None = None,
    geometry: str = "input",
    left_column: str | None = None,
    right_column: str | None = None,
    crs: str = "check",
    threads: int | None = None,
    backend: str | None = None,
    **settings: Any,
) -> Joined:
    """The rows of left, in their order, with those of right that they meet.

    left, right   Arrow tables and streams (of pyarrow, Polars, DuckDB ...),
                  GeoDataFrames, paths of files, geometries of shapely
    how           left, inner; semi, anti: the columns of left only
    max_distance  in units of the CRS, or with one: "100ft", "1.5km"
    geometry      input, or join: that of the right side
    others        as in ogrjoin.pairs()

    The columns are those of left; join_fid, the row number in right;
    join_distance of joins by distance; join_rank of nearest with k above 1 or
    all ties; and those of right, with the prefix join_ where a name is taken.
    Left is read batch by batch while the rows are taken out.
    """
    if how not in ("left", "inner", "semi", "anti"):
        raise InvalidError(f'how is left, inner, semi or anti, not "{how}"')
    if geometry not in ("input", "join"):
        raise UnsupportedError(f'geometry is input or join, not "{geometry}"')
    asked = {"op": op, "k": k, "max_distance": max_distance, "ties": ties, **settings}
    table = _reader(right).read_all()
    reader = _reader(left)
    _crs.check(_crs.of_side(reader), _crs.of_side(table), crs, asked)
    in_left = _geometry_columns(reader.schema, left_column)
    in_right = _geometry_columns(table.schema, right_column)
    if not in_left or not in_right:
        raise InvalidError("a side has no column of geometries")
    index = Index(table, column=in_right[0], threads=threads, backend=backend)
    dropped = in_right if geometry == "input" else in_left
    keep_left = [
        n for n in reader.schema.names if geometry == "input" or n not in dropped
    ]
    keep_right = [
        n for n in table.schema.names if geometry == "join" or n not in dropped
    ]
    if how in ("semi", "anti"):
        keep_left, keep_right = reader.schema.names, []
    has_distance = op.lower() in ("nearest", "dwithin")
    has_rank = op.lower() == "nearest" and ((k or 1) > 1 or ties == "all")

    fields = [reader.schema.field(n) for n in keep_left]
    if how in ("left", "inner"):
        fields.append(pa.field("join_fid", pa.int64()))
        if has_distance:
            fields.append(pa.field("join_distance", pa.float64()))
        if has_rank:
            fields.append(pa.field("join_rank", pa.int64()))
        for name in keep_right:
            field, taken = table.schema.field(name), {f.name for f in fields}
            while field.name in taken:
                field = field.with_name("join_" + field.name)
            fields.append(field.with_nullable(True))
    schema = pa.schema(fields)
    payload = table.select(keep_right).combine_chunks()

    def rows(batch: Any) -> Any:
        pairs = index.pairs(batch, column=in_left[0], **asked)
        if how in ("semi", "anti"):
            has = np.diff(pairs.offsets) > 0
            at = np.flatnonzero(has if how == "semi" else ~has)
            return [_take(batch.column(n), pa.array(at)) for n in keep_left]
        at, other, distance = pairs.left, pairs.right, pairs.distance
        rank: Any = None
        if has_rank:
            rank = np.arange(len(at)) - pairs.offsets[at] + 1
        if how == "left":
            at, other, distance, rank = pad(
                pairs.left, len(batch), other, distance, rank
            )
        none = other < 0
        fid = pa.array(other, mask=none)
        rows_taken = pa.array(at)
        columns = [_take(batch.column(n), rows_taken) for n in keep_left] + [fid]
        if has_distance:
            columns.append(pa.array(distance, mask=none))
        if has_rank:
            columns.append(pa.array(rank.astype(np.int64), mask=none))
        return columns + [_take(c, fid) for c in payload.columns]

    def batches() -> Iterator[Any]:
        for batch in reader:
            yield pa.RecordBatch.from_arrays(rows(batch), schema=schema)

    shown = (in_left if geometry == "input" or how in ("semi", "anti") else in_right)[0]
    return Joined(pa.RecordBatchReader.from_batches(schema, batches()), shown)
