"""Tables, frames, files and geometries as Arrow streams."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from . import _core, _crs, _sides
from ._errors import InvalidError
from ._scan import (
    NAME,
    Scan,
    extension_of,
    mark_geometries,
    mark_nullable,
    without_epochs,
    wkb_metadata,
)


def _column_of_numbers(values: Any) -> Any:
    """Makes an Arrow array of coordinates; masked values become NULL."""
    array = np.asarray(_sides.without_mask(values))
    if array.dtype == object and isinstance(values, np.ma.MaskedArray):
        return pa.array(array, pa.from_numpy_dtype(values.dtype))
    return pa.array(array.astype(array.dtype.newbyteorder("="), copy=False))


def _table_of_shapes(array: Any, crs: str | None, which: str) -> Any:
    """Makes a table of geometries of shapely.  which is left or right, for
    errors."""
    import shapely

    field = pa.field("geometry", pa.binary(), metadata=wkb_metadata(crs))
    try:
        column = pa.array(shapely.to_wkb(array), pa.binary())
    except TypeError as error:
        raise _sides.error_of_no_geometry(array, which) or error from None
    return pa.table([column], schema=pa.schema([field]))


def _table_of_features(side: Any, which: str) -> Any:
    """Makes a table of GeoJSON: the properties of its features, and their geometries."""
    shapes, properties = _sides.of_geojson(side, which)
    table = _table_of_shapes(shapes, None, which)
    names = list(dict.fromkeys(name for row in properties for name in row))
    if "geometry" in names:
        free = (f"geometry_{i}" for i in range(1, len(names) + 1))
        table = table.rename_columns([next(name for name in free if name not in names)])
    for i, name in enumerate(names):
        try:
            column = pa.array([row.get(name) for row in properties])
        except OverflowError:
            raise InvalidError(
                f"the {which} side: the property {name!r} has an integer of more than 63 "
                "bits: write it as a text"
            ) from None
        except pa.ArrowException as why:
            raise InvalidError(
                f"the {which} side: the property {name!r} has values of several types: {why}"
            ) from None
        table = table.add_column(i, name, column)
    return table


def _table_of_array(side: Any) -> Any:
    """Makes a table of one column of an Arrow array of geometries, and of one of structs
    the table that it is, unless the structs are of an extension type. Returns any other
    side unchanged."""
    if isinstance(side, pa.ChunkedArray):
        return pa.table({"geometry": side})
    if hasattr(side, "__arrow_c_stream__") or not hasattr(side, "__arrow_c_array__"):
        return side
    schema, values = side.__arrow_c_array__()
    field = pa.Field._import_from_c_capsule(schema).with_name("geometry")
    array = pa.Array._import_from_c_capsule(field.type.__arrow_c_schema__(), values)
    if pa.types.is_struct(field.type) and NAME not in (field.metadata or {}):
        return pa.table(pa.RecordBatch.from_struct_array(array))
    return pa.table([array], schema=pa.schema([field]))


def _shapes_of(table: Any) -> Any:
    """Returns the only column of a table as an array of shapely geometries."""
    import shapely

    kind = table.schema.field(0).type
    if any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary)):
        return shapely.from_wkb(table.column(0).to_numpy())
    import geopandas

    return geopandas.GeoDataFrame.from_arrow(without_epochs(table)).geometry.values


def _add_vertices(wkb: bytearray, at: int, runs: list[Any]) -> int:
    """Appends views of the vertices, [n, ordinates], of little-endian ISO WKB that begins
    at `at`, without those of empty points.  Returns the end of the geometry."""

    def count() -> int:
        return int.from_bytes(wkb[at : at + 4], "little")

    at += 1
    kind, at = count(), at + 4
    n_ordinates = 2 + (kind // 1000 + 1) // 2  # 1000: Z, 2000: M, 3000: both
    kind %= 1000
    n = 1
    if kind > 2:
        n, at = count(), at + 4
    for _ in range(n):
        if kind > 3:
            at = _add_vertices(wkb, at, runs)
            continue
        n_vertices = 1
        if kind > 1:
            n_vertices, at = count(), at + 4
        run = np.frombuffer(wkb, "<f8", n_vertices * n_ordinates, at)
        run = run.reshape(n_vertices, n_ordinates)
        if kind > 1 or not np.isnan(run[0, 0]):
            runs.append(run)
        at += run.nbytes
    return at


def _moved_with_m(array: Any, move: Any) -> Any:
    """Like _moved_shapes(), for geometries with M, which shapely does not transform."""
    import shapely

    written = shapely.to_wkb(array, output_dimension=4, byte_order=1, flavor="iso")
    bytes_of = [bytearray(wkb) for wkb in written]
    runs: list[Any] = []
    for wkb in bytes_of:
        _add_vertices(wkb, 0, runs)
    if runs:
        xy = np.concatenate([run[:, :2] for run in runs])
        moved = np.column_stack(move(xy[:, 0], xy[:, 1]))
        for run, of_run in zip(runs, np.split(moved, np.cumsum([len(run) for run in runs])[:-1])):
            run[:, :2] = of_run
    return shapely.from_wkb([bytes(wkb) for wkb in bytes_of])


def _moved_shapes(array: Any, move: Any) -> Any:
    """Transforms x and y of shapely geometries by move(x, y); Z and M stay as they are."""
    import shapely

    def move_xy(vertices: Any) -> Any:
        return np.column_stack([*move(vertices[:, 0], vertices[:, 1]), vertices[:, 2:]])

    moved = np.array(array, dtype=object)
    has_m = shapely.has_m(moved) if hasattr(shapely, "has_m") else np.zeros(len(moved), bool)
    for has_z in (False, True):
        rows = ~has_m & (shapely.has_z(moved) == has_z)
        if rows.any():
            moved[rows] = shapely.transform(moved[rows], move_xy, include_z=has_z)
    if has_m.any():
        moved[has_m] = _moved_with_m(moved[has_m], move)
    return moved


def _iso_wkb_of(column: Any, has_crs: bool) -> tuple[Any, int]:
    """Returns (a column of texts or WKB as ISO WKB, its SRID or 0).  has_crs: the CRS is
    stated elsewhere, and rows may have any SRID."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    schema, values = array.__arrow_c_array__()
    made, kind, srid = _core.iso_wkb(schema, values, has_crs)
    if made is not None:
        kind = pa.binary() if kind == "z" else pa.large_binary()
        array = pa.Array._import_from_c_capsule(kind.__arrow_c_schema__(), made)
    return array, srid


def _is_native(field: Any) -> bool:
    """Returns True for GeoArrow's coordinates in lists and structs."""
    return extension_of(field) not in ("", "geoarrow.wkb", "geoarrow.wkt")


def _has_index(side: Any) -> bool:
    """Returns True for a frame of pandas or a GeoSeries with an index other than the
    unnamed 0 to n - 1."""
    is_pandas = type(side).__module__.split(".")[0] in ("pandas", "geopandas")
    if not is_pandas or not (hasattr(side, "columns") or hasattr(side, "geometry")):
        return False
    index = side.index
    if type(index).__name__ != "RangeIndex":
        return True
    return (index.start, index.step, index.name) != (0, 1, None)


def _read_columns(scan: Scan, which: str, settings: dict[str, Any]) -> list[str]:
    """Returns the names of the columns of a file that a join may use: all columns unless
    the settings choose some for the rows."""
    names: list[str] = scan.schema.names
    chosen = settings.get(f"{which}_select")
    if which == "right" and chosen is None:
        is_whole = settings.get("agg") is None and settings.get("how") not in ("semi", "anti")
    else:
        is_whole = chosen is None
    geometry = settings.get(f"{which}_column") or scan.geometry
    if is_whole or (geometry is None and settings.get(f"{which}_x") is None):
        return names
    # Settings name columns in texts of many forms, so a column whose name is a part of
    # any text is read.
    texts = "\n".join(
        "\n".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        for value in settings.values()
    ).casefold()
    return [name for name in names if name == geometry or name.casefold() in texts]


class TableSide:
    """One side of a join (table, frame, file or geometries) as Arrow streams.
    open() must be called before anything else."""

    def __init__(self, side: Any, which: str, settings: dict[str, Any]) -> None:
        layer = settings.pop(f"{which}_layer", None)
        if isinstance(side, (str, os.PathLike)):
            side = Scan(os.fspath(side), layer, f"{which}_layer")
            side.keep(_read_columns(side, which, settings))
        elif layer is not None:
            raise InvalidError(
                f"{which}_layer has no effect, because the {which} side is not the path of a "
                "file: leave it out"
            )
        self._index: list[str] = []  # columns that were the index of pandas
        self._index_names: list[Any] = []  # names of its levels
        self._reader: Any = None
        keeps = which == "left" and _has_index(side)
        if keeps and not hasattr(side, "columns"):
            side = side.to_frame("geometry")  # GeoSeries
        names = side.index.names if keeps else []
        geometry: Any = getattr(side, "geometry", None)
        if isinstance(side, np.ndarray) and side.ndim == 2 and side.shape[1] == 2:
            side = side[:, 0], side[:, 1]
        if _sides.is_geodataframe(side):
            geometry = geometry.name
            side = pa.table(side.to_arrow(index=keeps))
            side = self._record_index_columns(side, names, settings)
        elif (shapes := _sides.shapely_array(side)) is not None:
            side = _table_of_shapes(shapes, _crs.read_from_side(side), which)
        elif keeps:
            side = pa.Table.from_pandas(side, preserve_index=True)
            side = self._record_index_columns(side, names, settings)
        elif isinstance(side, tuple) and len(side) == 2:
            x, y = _column_of_numbers(side[0]), _column_of_numbers(side[1])
            _sides.check_length(y, len(x), "y", "x")
            side = pa.table({"x": x, "y": y})
            settings.update({f"{which}_x": "x", f"{which}_y": "y"})
        elif isinstance(side, list) and not _sides.is_iterator(side):
            shapes = np.empty(len(side), dtype=object)
            shapes[:] = side
            side = _table_of_shapes(shapes, None, which)
        elif _sides.is_geojson(side) and not _sides.has_arrow(side):
            side = _table_of_features(side, which)
        else:
            side = _table_of_array(side)
        if hasattr(side, "scanner") and hasattr(side, "schema"):
            side = side.scanner()
        if not hasattr(side, "__arrow_c_stream__") and hasattr(side, "to_reader"):
            side = side.to_reader()
        if not hasattr(side, "__arrow_c_stream__"):
            raise TypeError(
                f"the {which} side is a {type(side).__name__}, which cannot be joined: give a "
                "table or stream of Arrow, a GeoDataFrame, a path, geometries of shapely, "
                "or (x, y)"
            )
        self._side, self._which = side, which
        self._active = geometry if isinstance(geometry, str) else None
        # The result of a query may occupy the connection of its database, so that no
        # other query can run until it has been read.
        self.is_query, self.is_once = _sides.is_query(side), _sides.is_once(side)
        self.n_rows = _sides.count_rows(side) or None
        if not self.is_query:
            self.open(settings)

    def open(self, settings: dict[str, Any]) -> TableSide:
        """Starts to read, unless it has, and puts the geometry column and the CRS of
        the side into settings.  Queries are not opened before this call."""
        if self._reader is not None:
            return self
        which = self._which
        self._reader = pa.RecordBatchReader.from_stream(self._side)
        self._schema, primary = mark_geometries(self._reader.schema)
        self._schema = mark_nullable(self._schema)
        self.geometry = settings.get(f"{which}_column")
        # the geometries are one column, not two columns of coordinates
        if settings.get(f"{which}_x") is None:
            self.geometry = self.geometry or primary or self._active
        settings[f"{which}_column"] = self.geometry
        crs = _crs.as_text(settings.pop(f"{which}_crs", None))
        settings[f"{which}_crs"] = crs
        return self

    def _record_index_columns(self, table: Any, names: list[Any], settings: dict[str, Any]) -> Any:
        """Records which columns of the table are the index of the frame, and adds them
        to left_select. names: the names of the levels of the index. Returns the table;
        its levels named "" have the names that pandas gives to levels without a name,
        since a join renames columns that are named ""."""
        n = len(names)
        columns = table.schema.names
        for i in range(n):
            columns[i - n] = columns[i - n] or f"__index_level_{i}__"
        if columns != table.schema.names:
            table = table.rename_columns(columns)
        self._index, self._index_names = columns[-n:] if n else [], list(names)
        selected = settings.get("left_select")
        if n and selected is not None:
            selected = [selected] if isinstance(selected, str) else list(selected)
            settings["left_select"] = ",".join([*filter(None, selected), *self._index])
        return table

    def set_index(self, frame: Any) -> Any:
        """Returns a frame of joined rows with the index of this side, if it had one."""
        if not self._index:
            return frame
        return frame.set_index(self._index).rename_axis(index=self._index_names)

    def read_whole(self) -> None:
        """Reads all rows now, so that reader() needs no connection of a database."""
        self._reader = self.reader().read_all().to_reader()

    def crs(self, given: str | None) -> str | None:
        """Returns given, otherwise the CRS in the metadata of the geometry column."""
        fields = [f for f in self._schema if self.geometry in (None, f.name)]
        return given or next((c for f in fields if (c := _crs.read_from_field(f))), None)

    def field_of_geometry(self) -> int:
        """Returns the index of the geometry column of the join, or -1 if only the C
        library can find it."""
        if self.geometry is not None:
            return int(self._schema.get_field_index(self.geometry))
        marked = [i for i, f in enumerate(self._schema) if extension_of(f)]
        return marked[0] if len(marked) == 1 else -1

    def reader(self) -> Any:
        """Returns a pyarrow.RecordBatchReader that starts at the first row."""
        reader, self._reader = self._reader, None
        if reader is None and self.is_once:
            raise InvalidError(
                "the rows have been read, and the left side was a stream, which can be "
                "read only once: join again with a new stream, or keep the rows of the "
                "first reading, table = joined.read_all()"
            )
        if reader is None:
            reader = pa.RecordBatchReader.from_stream(self._side)
        if reader.schema is self._schema or reader.schema.equals(
            self._schema, check_metadata=True
        ):
            return reader
        marked = (pa.RecordBatch.from_arrays(b.columns, schema=self._schema) for b in reader)
        return pa.RecordBatchReader.from_batches(self._schema, marked)

    def read_transformed(self, settings: dict[str, Any]) -> Any:
        """Returns a table of all rows, transformed to the CRS left_crs by pyproj."""
        target = settings["left_crs"]
        table = self.reader().read_all()
        i = self.field_of_geometry()
        given = self.crs(settings["right_crs"])
        if i >= 0 and not _is_native(table.schema.field(i)):
            wkb, srid = _iso_wkb_of(table.column(i), given is not None)
            field = pa.field(self._schema.field(i).name, wkb.type, metadata=wkb_metadata(None))
            table = table.set_column(i, field, wkb)
            given = given or (f"EPSG:{srid}" if srid else None)
        move = _crs.transformer(given, target)
        settings["right_crs"] = target
        if settings.get("right_x") is not None:
            names = [settings["right_x"], settings["right_y"]]
            for name, column in zip(names, move(*(table[n].to_numpy() for n in names))):
                i = table.schema.get_field_index(name)
                table = table.set_column(i, name, pa.array(column))
            return table
        if i < 0:
            raise InvalidError(
                'crs="reproject": name the column of geometries of the right side with '
                "right_column="
            )
        shapes = _moved_shapes(_shapes_of(table.select([i])), move)
        moved = _table_of_shapes(shapes, target, "right")
        field = moved.schema.field(0).with_name(self._schema.field(i).name)
        return table.set_column(i, field, moved.column(0))
