"""join() and scan(): Arrow in, Arrow out. The columns are taken by pyarrow."""

from __future__ import annotations

import json
import os
import re
import secrets
import warnings
from typing import Any, Iterator, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import _core, _crs, _sides
from ._errors import InvalidError, UnsupportedError
from ._pairs import Index, Pairs, pad, similar_words

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


def _geometry_columns(
    schema: Any, column: str | None, is_needed: bool = True
) -> list[str]:
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
    return marked or (bytes_ if is_needed else [])


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
    array = None
    if _sides.is_geodataframe(side):
        side = side.to_arrow(index=False)
    else:
        array = _sides.shapely_array(side)
    if array is not None:
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
    elif not hasattr(side, "__arrow_c_stream__"):
        raise TypeError(f"{type(side).__name__} has no columns: ogrjoin.pairs() takes it")
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
        # A name that others cannot guess, and "x": no link of theirs is followed.
        name = f".ogrjoin-{secrets.token_hex(8)}"
        temporary = os.path.join(os.path.dirname(path), name)
        try:
            with open(temporary, "xb") as file:
                with pyarrow.parquet.ParquetWriter(file, schema) as writer:
                    for batch in self._reader:
                        columns_ = batch.columns
                        writer.write_batch(
                            pa.RecordBatch.from_arrays(columns_, schema=schema)
                        )
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)


def _column(table: Any, name: str, side: str) -> Any:
    if name not in table.schema.names:
        raise InvalidError(f'the {side} side has no column "{name}"')
    return table.column(name)


def _whole_numbers(column: Any) -> Any:
    return pc.cast(column, pa.int64()).to_numpy()


# --- words of the command ----------------------------------------------------


def _pick(pick: str | None, table: Any) -> tuple[str | None, Any]:
    """The setting, and for max:COLUMN and min:COLUMN the scores."""
    rule, colon, name = (pick or "").partition(":")
    if not colon:
        return pick, None
    if rule not in ("max", "min"):
        raise InvalidError(f'pick is a rule, max:COLUMN or min:COLUMN, not "{pick}"')
    values = _column(table, name, "right").combine_chunks()
    if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        raise InvalidError(f"{name} is no column of numbers")
    missing = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
    score = np.full(len(values), np.iinfo(np.int64).min)
    filled = values.drop_null().to_numpy(zero_copy_only=False)
    filled = filled[filled == filled]
    place = np.unique(filled, return_inverse=True)[1].reshape(-1)
    score[~missing] = place if rule == "max" else -place
    return "score", score


_QUOTED = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*')"""
_CALL = re.compile(
    rf"""\s* (?P<function>\w+) \s*
    (?: \( \s* (?P<column>{_QUOTED}|[^,()]*?) \s*
        (?: , \s* (?P<separator>{_QUOTED}) \s* )? \) )? \s*
    (?: \b as \s* (?P<name>{_QUOTED}|[^,\s][^,]*?) \s* )? (?:,|$)""",
    re.X | re.I,
)


def _unquote(word: str | None) -> str | None:
    if word and word[0] in "'\"":
        return word[1:-1].replace(word[0] * 2, word[0])
    return word


class _Aggregate(NamedTuple):
    name: str  # of the output's column
    function: str
    separator: str
    values: tuple[Any, ...]  # as _core.aggregate() takes them
    type: Any  # of the column, where the result is one of its values

    @property
    def result_type(self) -> Any:
        if self.type is not None and not pa.types.is_boolean(self.type):
            return self.type
        if self.function in ("count", "unique") or self.type is not None:
            return pa.int64()
        if self.function == "concat":
            return pa.large_string()
        is_sum = self.function == "sum" and self.values[1] is None
        return pa.int64() if is_sum else pa.float64()

    def results(self, made: Any, n_join: int) -> Any:
        _, integer, real, offset, data, is_null = _core.aggregate(
            made, n_join, self.function, self.separator, *self.values
        )
        none = np.frombuffer(is_null, np.bool_)
        if offset is not None:
            valid = pa.py_buffer(np.packbits(~none, bitorder="little"))
            buffers = [valid, pa.py_buffer(offset), pa.py_buffer(data)]
            text = pa.Array.from_buffers(pa.large_string(), len(none), buffers)
            return text.cast(self.result_type)
        numbers = np.frombuffer(real or integer, "d" if real else "q")
        array, kind = pa.array(numbers, mask=none), self.result_type
        if pa.types.is_temporal(kind) and kind.bit_width == 32:
            array = array.cast(pa.int32())
        return array.cast(kind)


def _aggregate_values(column: Any, function: str) -> tuple[Any, ...]:
    """(integer, real, offset, bytes, is_null)"""
    column = column.combine_chunks()
    kind, is_null = column.type, None
    if column.null_count:
        is_null = pc.is_null(column).to_numpy(zero_copy_only=False).view(np.uint8)
    if function == "count":
        return np.zeros(len(column), np.int64), None, None, None, is_null
    if function == "concat" and pa.types.is_integer(kind):
        column, kind = column.cast(pa.large_string()), pa.large_string()
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        from ._pairs import text_buffers

        return None, None, *text_buffers(column), is_null
    if pa.types.is_floating(kind):
        real = column.cast(pa.float64()).fill_null(0.0)
        return None, real.to_numpy(zero_copy_only=False), None, None, is_null
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        column = column.cast(pa.int32())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or (
        pa.types.is_temporal(kind)
        and function in ("min", "max", "first", "last", "mode", "unique")
    ):
        whole = column.cast(pa.int64()).fill_null(0)
        return whole.to_numpy(zero_copy_only=False), None, None, None, is_null
    raise UnsupportedError(f"{function} of {kind}")


def _aggregates(agg: str, table: Any) -> list[_Aggregate]:
    """Of the words of -agg: count, mean(fare), concat(name, '; ') as names"""
    found, at = [], 0
    while at < len(agg):
        match = _CALL.match(agg, at)
        if match is None:
            raise InvalidError(f"agg: this is no list of functions: {agg[at:]}")
        at = match.end()
        function = match["function"].lower()
        function = "mean" if function == "avg" else function
        of, name = _unquote(match["column"]), _unquote(match["name"])
        values: tuple[Any, ...] = (None,) * 5
        kind = None
        if of:
            column = _column(table, of, "right")
            values = _aggregate_values(column, function)
            if function in ("min", "max", "first", "last", "mode"):
                kind = column.type
        separator = _unquote(match["separator"])
        found.append(
            _Aggregate(
                name or (f"{function}_{of}" if of else function),
                function,
                ", " if separator is None else separator,
                values,
                kind,
            )
        )
    return found


def _n_similar(words: str | None) -> int:
    """How many conditions on texts there are: commas may be quoted."""
    return len(re.findall(rf"(?:{_QUOTED}|[^,\"])+", words or ""))


def _on(table: Any, on: str | None, at: int) -> Any:
    """Values of the columns of one side of "LEFT=RIGHT,..."; None: no such."""
    if on is None:
        return None
    names = [word.strip().split("=")[at if "=" in word else 0] for word in on.split(",")]
    side = ("left", "right")[at]
    columns = [_column(table, name, side).to_pylist() for name in names]
    if len(columns) == 1:
        return np.array(columns[0], dtype=object)
    values = np.empty(len(table), dtype=object)
    values[:] = [None if None in row else row for row in zip(*columns)]
    return values


def _reproject(table: Any, name: str, crs: Any) -> Any:
    """table with its geometries in crs, by pyproj."""
    import geopandas

    i = table.schema.get_field_index(name)
    column = pa.chunked_array(table.column(i).chunks, table.schema.field(i).type)
    part = pa.table([column], schema=pa.schema([table.schema.field(i)]))
    moved = geopandas.GeoDataFrame.from_arrow(part).to_crs(json.dumps(crs))
    moved = pa.table(moved.to_arrow(index=False))
    return table.set_column(i, moved.schema.field(0), moved.column(0))


class _Made(NamedTuple):
    """A geometry that is made of a pair: what is asked for, and of which values."""

    settings: tuple[str, ...]
    values: tuple[str, ...]


_MADE = {
    "nearest_point": _Made(("nearest_point",), ("nearest_x", "nearest_y")),
    "connection": _Made(
        ("nearest_point", "from_point"), ("from_x", "from_y", "nearest_x", "nearest_y")
    ),
    "intersection": _Made(("intersection",), ("intersection",)),
}


def _made_shapes(values: list[Any]) -> Any:
    """WKB of x, y points, of x, y, x, y lines, or as it is; NULL for NaN or None."""
    if len(values) == 1:
        return pa.array(values[0], pa.binary())
    head = [("order", "u1"), ("type", "<u4")] + [("n", "<u4")] * (len(values) > 2)
    numbers = [(f"v{i}", "<f8") for i in range(len(values))]
    shapes = np.zeros(len(values[0]), dtype=head + numbers)
    shapes["order"], shapes["type"] = 1, len(values) // 2
    if len(values) > 2:
        shapes["n"] = 2
    for (name, _), column in zip(numbers, values):
        shapes[name] = column
    ends = np.arange(len(shapes) + 1, dtype=np.int32) * np.int32(shapes.itemsize)
    is_there = np.packbits(~np.isnan(values[0]), bitorder="little")
    buffers = [pa.py_buffer(b) for b in (is_there, ends, shapes)]
    return pa.Array.from_buffers(pa.binary(), len(shapes), buffers)


# Fewer left rows at a time are joined at less speed.
_GROUP_ROWS = 1 << 20


def _groups(reader: Any, is_whole: bool) -> Iterator[list[Any]]:
    """Batches that are joined at once."""
    group: list[Any] = []
    n_rows = 0
    for batch in reader:
        group.append(batch)
        n_rows += len(batch)
        if n_rows >= _GROUP_ROWS and not is_whole:
            yield group
            group, n_rows = [], 0
    if group:
        yield group


def join_index(
    index: Index,
    left: Any,
    op: str = "intersects",
    *,
    how: str = "left",
    geometry: str = "input",
    left_column: str | None = None,
    crs: str = "check",
    **options: Any,
) -> Joined:
    """join() with a side that is kept: what is asked of its columns, fid, on and
    pick by a column, is of join() alone; similar and vector are of Index()."""
    table = _reader(index._right).read_all()
    options = {**index._compared, **options}
    return _join(
        index, table, _reader(left), op, how, geometry, left_column, crs, **options
    )


_OVERLAPS = ("overlap_area", "overlap_length", "overlap_percent")


def _join(
    index: Index,
    table: Any,
    reader: Any,
    op: str,
    how: str,
    geometry: str,
    left_column: str | None,
    crs: str,
    *,
    agg: str | None = None,
    overlap: str | None = None,
    fids: tuple[str | None, str | None] = (None, None),
    on: str | None = None,
    **asked: Any,
) -> Joined:
    if how not in ("left", "inner", "semi", "anti", "right", "full"):
        raise InvalidError(
            f'how is left, inner, semi, anti, right or full, not "{how}"'
        )
    has_others = how in ("right", "full")
    how = {"right": "inner", "full": "left"}.get(how, how)
    if geometry not in ("input", "join", *_MADE):
        raise InvalidError(
            "geometry is input, join, nearest_point, connection or intersection, "
            f'not "{geometry}"'
        )
    for word in (overlap or "").split(",") if overlap else ():
        if f"overlap_{word.strip()}" not in _OVERLAPS:
            raise InvalidError(f'overlap is area, length, percent, not "{word}"')
        asked[f"overlap_{word.strip()}"] = 1
    left_crs = _crs.of_side(reader)
    _crs.check(left_crs, index._crs, crs, {**asked, "op": op})
    if crs == "check" and (left_crs is None) != (index._crs is None):
        message = "one side has no CRS: it is taken to be the other's"
        warnings.warn(message, UserWarning, stacklevel=3)
    is_needed = _needs_geometry(op, asked.get("max_distance"))
    in_left = _geometry_columns(reader.schema, left_column, is_needed)
    in_right = _geometry_columns(table.schema, index._column, is_needed)
    if not in_left and (is_needed or geometry != "input"):
        raise InvalidError("the left side has no column of geometries")
    if not in_right and geometry == "join":
        raise InvalidError("the right side has no column of geometries")
    aggregates = _aggregates(agg, table) if agg is not None else []
    if any(a.function == "weighted_sum" for a in aggregates):
        asked["share"] = 1
    is_one = how in ("semi", "anti")
    is_all = not (is_one or aggregates)
    is_made = is_all and geometry in _MADE
    if is_made and has_others:
        raise UnsupportedError(f"geometry {geometry} has no rows of right alone")
    dropped = {"input": [], "join": in_left}.get(geometry, in_left[1:])
    keep_left = [n for n in reader.schema.names if n not in dropped]
    dropped = [] if geometry == "join" else in_right
    keep_right = [n for n in table.schema.names if n not in dropped]
    keep_right = [n for n in keep_right if n != fids[1]]  # that is join_fid
    if not is_all:
        keep_left, keep_right = reader.schema.names, []
    has_distance = op.lower() in _crs.BY_DISTANCE
    picks = asked.get("pick") not in (None, "all") or asked.get("one_to_one")
    by_measure = op.lower() == "nearest" or (
        op.lower() == "similar" and asked.get("k") is not None
    )
    if has_others and (picks or aggregates):
        raise UnsupportedError("how right or full takes all pairs: no pick, no agg")
    has_rank = (
        by_measure
        and ((asked.get("k") or 1) > 1 or asked.get("ties") == "all")
        and not picks
    )

    fields = [reader.schema.field(n) for n in keep_left]
    if is_made:
        told = json.dumps({} if left_crs is None else {"crs": left_crs}).encode()
        metadata = {_NAME: b"geoarrow.wkb", _METADATA: told}
        fields[keep_left.index(in_left[0])] = pa.field(
            in_left[0], pa.binary(), metadata=metadata
        )
    if has_others:
        fields = [field.with_nullable(True) for field in fields]
    is_paired = np.zeros(len(table), dtype=bool)
    values = []
    if is_all:
        fields.append(pa.field("join_fid", pa.int64()))
        if has_distance:
            fields.append(pa.field("join_distance", pa.float64()))
        n_similar = _n_similar(asked.get("similar"))
        similar = ["similarity"] + [f"similarity_{i + 1}" for i in range(1, n_similar)]
        similar = similar[:n_similar] + ["difference"] * bool(asked.get("vector"))
        fields += [pa.field("join_" + name, pa.float64()) for name in similar]
        if has_rank:
            fields.append(pa.field("join_rank", pa.int64()))
        values = [name for name in _OVERLAPS if asked.get(name)]
        values += ["nearest_x", "nearest_y"] if asked.get("nearest_point") else []
        fields += [pa.field(name, pa.float64()) for name in values]
        if asked.get("bearing"):
            fields.append(pa.field("join_bearing", pa.float64()))
        for name in keep_right:
            field, taken = table.schema.field(name), {f.name for f in fields}
            while field.name in taken:
                field = field.with_name("join_" + field.name)
            fields.append(field.with_nullable(True))
    for aggregate in aggregates:
        fields.append(pa.field(aggregate.name, aggregate.result_type))
    if is_made:
        asked.update(dict.fromkeys(_MADE[geometry].settings, 1))
    schema = pa.schema(fields)
    payload = table.select(keep_right).combine_chunks()
    right_fid = fids[1] and _whole_numbers(_column(table, fids[1], "right"))

    def find_pairs(group: Any) -> Pairs:
        return index.pairs(
            group,
            op,
            column=in_left[0] if in_left else None,
            crs="ignore",  # it was checked
            on=_on(group, on, 0),
            id=fids[0] and _whole_numbers(_column(group, fids[0], "left")),
            **asked,
        )

    def rows(batch: Any, pairs: Pairs, results: list[Any]) -> Any:
        """Those of a batch, with its pairs and the aggregates of its rows."""
        if not is_all:
            has = np.diff(pairs.offsets) > 0
            at = np.arange(len(has))
            if how != "left":
                at = at[has == (how != "anti")]
            kept = pa.array(at)
            columns = [_take(batch.column(n), kept) for n in keep_left]
            return columns + [column.take(kept) for column in results]
        at, other, distance = pairs.left, pairs.right, pairs.distance
        is_paired[other] = True
        rank: Any = None
        if has_rank:
            rank = np.arange(len(at)) - pairs.offsets[at] + 1
        found = [pairs.values[name] for name in (*similar, *values)]
        found += [pairs.values["bearing"]] if asked.get("bearing") else []
        if is_made:
            at_shapes = len(found)
            found += [pairs.values[name] for name in _MADE[geometry].values]
        if how == "left":
            at, other, distance, rank, *found = pad(
                pairs.left, len(batch), other, distance, rank, *found
            )
        none = other < 0
        taken = pa.array(other, mask=none)
        rows_taken = pa.array(at)
        columns = [
            _made_shapes(found[at_shapes:])
            if is_made and name == in_left[0]
            else _take(batch.column(name), rows_taken)
            for name in keep_left
        ]
        if is_made:
            del found[at_shapes:]
        columns.append(taken if right_fid is None else pa.array(right_fid).take(taken))
        if has_distance:
            columns.append(pa.array(distance, mask=none))
        made = [pa.array(v, from_pandas=True) for v in found]  # NaN is NULL
        columns += made[: len(similar)]
        if has_rank:
            columns.append(pa.array(rank.astype(np.int64), mask=none))
        return columns + made[len(similar) :] + [_take(c, taken) for c in payload.columns]

    def others() -> Any:
        """The rows of right that match nothing, with their own geometry."""
        taken = pa.array(np.flatnonzero(~is_paired))
        columns = [pa.nulls(len(taken), field.type) for field in schema]
        if in_left[:1] and in_right and in_left[0] in keep_left:
            shape = _take(table.column(in_right[0]), taken)
            i = keep_left.index(in_left[0])
            columns[i] = shape.cast(schema.field(i).type)
        fid = taken if right_fid is None else pa.array(right_fid).take(taken)
        columns[len(keep_left)] = fid
        first = len(columns) - payload.num_columns
        return columns[:first] + [_take(c, taken) for c in payload.columns]

    def batches() -> Iterator[Any]:
        for group in _groups(reader, bool(asked.get("one_to_one"))):
            pairs = find_pairs(pa.Table.from_batches(group))
            results = [a.results(pairs._made, len(index)) for a in aggregates]
            first = 0
            for batch in group:
                made = [r.slice(first, len(batch)) for r in results]
                columns = rows(batch, pairs.of_rows(first, len(batch)), made)
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
                first += len(batch)
        if has_others:
            yield pa.RecordBatch.from_arrays(others(), schema=schema)

    in_shown = in_right if geometry == "join" and not is_one else in_left
    shown = in_shown[0] if in_shown else None
    find_pairs(reader.schema.empty_table())  # what is wrong is said by this call
    return Joined(pa.RecordBatchReader.from_batches(schema, batches()), shown)


def _needs_geometry(op: str, max_distance: Any) -> bool:
    return op.lower() != "similar" or max_distance is not None


def join(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    how: str = "left",
    k: int | None = None,
    max_distance: float | str | None = None,
    ties: str | None = None,
    on: str | None = None,
    pick: str | None = None,
    agg: str | None = None,
    overlap: str | None = None,
    similar: str | list[str] | None = None,
    vector: str | None = None,
    fid: str | tuple[str | None, str | None] | None = None,
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
    how           left, inner; semi, anti: the columns of left only; right, full:
                  inner or left, and then the rows of right that match nothing,
                  with their geometry
    max_distance  in units of the CRS, or with one: "100ft", "1.5km"
    on            "LEFT=RIGHT,...": only pairs with equal values in these columns
    pick          one pair of each row: first, nearest, largest_overlap,
                  smallest_area, largest_area, most_similar, max:COLUMN,
                  min:COLUMN
    agg           "count, mean(fare), concat(name, '; ') as names": one row for
                  each of left, with aggregates of the rows of right it meets
    overlap       "area,length,percent": columns of the intersection's size
    similar       "LEFT=RIGHT:0.6", or a list: only pairs with similar texts;
                  columns with + are put together.  op="similar": wherever they
                  are; sides then need no geometry
    vector        "price:0.001+area=PRICE+AREA", or a column of lists: only pairs
                  with like numbers, with max_difference (norm: l2, l1, linf,
                  cosine), or k of op="similar"
    fid           column that numbers the rows, of both sides or (left, right):
                  join_fid, order of ties, exclude_self
    word_map      with similar: {"st": "street"}, or a file of such lines
    geometry      input; join: that of the right side; nearest_point: its point
                  nearest to the left one; connection: the line to that;
                  intersection: what both have in common
    crs           "check": two CRS are an error, and none is the other's; "reproject": right is brought to
                  left's, by pyproj; "ignore"
    others        as in ogrjoin.pairs(): one_to_one=True, bearing=True ...

    The columns are those of left; join_fid, the row number in right;
    join_distance of joins by distance; join_similarity, join_difference;
    join_rank of nearest with k above 1 or all ties, or of similar with k; what else was asked for; and those of right, with
    the prefix join_ where a name is taken.  Left is read by a million rows
    while the rows are taken out, and at once for one_to_one.
    """
    table, reader = _reader(right).read_all(), _reader(left)
    is_needed = _needs_geometry(op, max_distance)
    in_right = _geometry_columns(table.schema, right_column, is_needed)
    if not in_right and is_needed:
        raise InvalidError("the right side has no column of geometries")
    if crs == "reproject":
        to = _crs.of_side(reader)
        if not in_right or to is None or _crs.of_side(table) is None:
            raise InvalidError("a side has no CRS to be brought to the other's")
        table, crs = _reproject(table, in_right[0], to), "check"
    fids = (fid, fid) if fid is None or isinstance(fid, str) else fid
    similar = similar_words(similar)
    rule, score = _pick(pick, table)
    index = Index(
        table,
        column=in_right[0] if in_right else None,
        on=_on(table, on, 1),
        id=fids[1] and _whole_numbers(_column(table, fids[1], "right")),
        score=score,
        similar=similar,
        vector=vector,
        op=None if is_needed else op,
        threads=threads,
        backend=backend,
    )
    asked = {"k": k, "max_distance": max_distance, "ties": ties, "pick": rule}
    return _join(
        index,
        table,
        reader,
        op,
        how,
        geometry,
        left_column,
        crs,
        agg=agg,
        overlap=overlap,
        fids=fids,
        on=on,
        similar=similar,
        vector=vector,
        **{**asked, **settings},
    )
