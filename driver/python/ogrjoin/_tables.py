"""Tables, frames, files and geometries as Arrow streams."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from . import _core, _crs, _sides
from ._errors import InvalidError
from ._joined import Joined
from ._scan import Scan, extension_of, mark_geometries, wkb_metadata


def _table_of_shapes(array: Any, crs: str | None, which: str) -> Any:
    """Makes a table of geometries of shapely.  which is left or right, for
    errors."""
    import shapely

    field = pa.field("geometry", pa.binary(), metadata=wkb_metadata(crs))
    try:
        column = pa.array(shapely.to_wkb(array), pa.binary())
    except TypeError as error:
        raise _sides.no_geometry(array, which) or error from None
    return pa.table([column], schema=pa.schema([field]))


def _shapes_of(table: Any) -> Any:
    """Returns the only column of a table as an array of shapely geometries."""
    import shapely

    kind = table.schema.field(0).type
    if any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary)):
        return shapely.from_wkb(table.column(0).to_numpy())
    import geopandas

    return geopandas.GeoDataFrame.from_arrow(table).geometry.values


def _wkb_of(column: Any) -> tuple[Any, int]:
    """Returns (a column of texts or WKB as ISO WKB, its SRID or 0)"""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    made, kind, srid = _core.iso_wkb(*array.__arrow_c_array__())
    if made is not None:
        kind = pa.binary() if kind == "z" else pa.large_binary()
        array = pa.Array._import_from_c_capsule(kind.__arrow_c_schema__(), made)
    return array, srid


def _is_native(field: Any) -> bool:
    """Returns True for GeoArrow's coordinates in lists and structs."""
    return extension_of(field) not in ("", "geoarrow.wkb", "geoarrow.wkt")


class TableSide:
    """One side of a join (table, frame, file or geometries) as Arrow streams."""

    def __init__(self, side: Any, which: str, settings: dict[str, Any]) -> None:
        layer = settings.pop(f"{which}_layer", None)
        if isinstance(side, (str, os.PathLike)):
            side = Scan(os.fspath(side), layer, f"{which}_layer")
        elif layer is not None:
            raise InvalidError(
                f"{which}_layer has no effect, because the {which} side is not the path of a "
                "file: leave it out"
            )
        self.index: list[str] = []  # columns that were the index of pandas
        geometry: Any = getattr(side, "geometry", None)
        if _sides.is_geodataframe(side):
            geometry = geometry.name
            keeps = which == "left" and type(side.index).__name__ != "RangeIndex"
            names = set(side.columns)
            side = pa.table(side.to_arrow(index=keeps))
            self.index = [n for n in side.schema.names if keeps and n not in names]
        elif (shapes := _sides.shapely_array(side)) is not None:
            side = _table_of_shapes(shapes, _crs.read_from_side(side), which)
        elif isinstance(side, tuple) and len(side) == 2:
            x, y = np.asarray(side[0]), np.asarray(side[1])
            _sides.check_length(y, len(x), "y", "x")
            side = pa.table({"x": x, "y": y})
            settings.update({f"{which}_x": "x", f"{which}_y": "y"})
        elif isinstance(side, list) and not _sides.is_iterator(side):
            shapes = np.empty(len(side), dtype=object)
            shapes[:] = side
            side = _table_of_shapes(shapes, None, which)
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
        self._side = side
        # An object without a length that is not a query may be a stream, which
        # can be read once.
        self.is_once = not (
            hasattr(side, "__len__")
            or isinstance(side, Joined)
            or type(side).__module__.split(".")[0] in ("polars", "duckdb", "_duckdb", "sedonadb")
        )
        self.n_rows = _sides.count_rows(side) or None
        self._reader: Any = pa.RecordBatchReader.from_stream(side)
        self._schema, primary = mark_geometries(self._reader.schema)
        self.geometry = settings.get(f"{which}_column")
        if settings.get(f"{which}_x") is None:  # no points from two columns of numbers
            active = geometry if isinstance(geometry, str) else None
            self.geometry = self.geometry or primary or active
        settings[f"{which}_column"] = self.geometry
        crs = _crs.as_text(settings.pop(f"{which}_crs", None))
        settings[f"{which}_crs"] = crs

    def crs(self, given: str | None) -> str | None:
        """Returns given, otherwise the CRS in the metadata of the geometry column."""
        fields = [f for f in self._schema if self.geometry in (None, f.name)]
        return given or next((c for f in fields if (c := _crs.read_from_field(f))), None)

    def field_of_geometry(self) -> int:
        """Returns the index of the geometry column of the join, if it is known
        here."""
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

    def moved(self, settings: dict[str, Any]) -> Any:
        """Returns a table of all rows, transformed to the CRS left_crs by pyproj."""
        target = settings["left_crs"]
        table = self.reader().read_all()
        i = self.field_of_geometry()
        given = self.crs(settings["right_crs"])
        if i >= 0 and not _is_native(table.schema.field(i)):
            wkb, srid = _wkb_of(table.column(i))
            field = pa.field(self._schema.field(i).name, wkb.type, metadata=wkb_metadata(None))
            table = table.set_column(i, field, wkb)
            given = given or (f"EPSG:{srid}" if srid else None)
        move = _crs.transformer(given, target).transform
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
        import shapely

        shapes = shapely.transform(
            _shapes_of(table.select([i])), lambda xy: np.column_stack(move(*xy.T))
        )
        moved = _table_of_shapes(shapes, target, "right")
        field = moved.schema.field(0).with_name(self._schema.field(i).name)
        return table.set_column(i, field, moved.column(0))
