"""Converts a side of a join to a layer of the C library.

A side is an array of shapely, a GeoSeries or GeoDataFrame, an object with an Arrow
stream or array, a pair (x, y) of arrays, or an object with __geo_interface__.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from . import _core, _crs
from ._errors import InvalidError, Status
from ._errors import make as make_error

_POLYGON = 4  # OGRJOIN_POLYGON
_DLPACK_CPU = 1  # kDLCPU
_MOST = 1e150  # OJ_FLAT_MOST: points with larger coordinates count as empty


#: joins that need no geometries
BY_ATTRIBUTES = ("similar", "attributes")


def reads_columns(settings: dict[str, Any]) -> bool:
    """Returns True if a join with these settings compares columns of a side."""
    op = (settings.get("op") or "").lower()
    return bool(settings.get("similar") or settings.get("vector") or op in BY_ATTRIBUTES)


def is_geodataframe(side: Any) -> bool:
    return all(hasattr(side, name) for name in ("to_arrow", "geometry", "columns"))


def shapely_array(side: Any) -> Any:
    """Returns side as an array of shapely geometries, or None if side is
    something else."""
    if hasattr(side, "geometry") and hasattr(side, "columns"):
        side = side.geometry  # GeoDataFrame
    values = getattr(side, "values", side)  # GeoSeries
    data = getattr(values, "_data", values)  # GeometryArray
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1:
        return data
    return None


def is_points(array: Any) -> bool:
    """Returns True if an array of shapely contains nothing but points and
    None."""
    import shapely

    kind = shapely.get_type_id(array)
    return bool((kind <= 0).all())


def without_extension(values: Any) -> Any:
    """Returns a column of an extension type of pandas as an array of objects,
    with None for missing values, and one of times with a zone as times in UTC.
    Returns any other column unchanged."""
    dtype: Any = getattr(values, "dtype", None)
    if getattr(dtype, "tz", None) is not None:
        return values.to_numpy(dtype=f"datetime64[{dtype.unit}]")
    if type(dtype).__module__.split(".")[0] == "pandas":
        return values.to_numpy(dtype=object, na_value=None)
    return values


def without_mask(values: Any) -> Any:
    """Returns a masked array of numpy as a plain array: of objects, with None for
    masked values, if any value is masked; otherwise with its own dtype.  Returns any
    other values unchanged."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    plain = np.asarray(values.data)
    if not np.ma.is_masked(values):
        return plain
    plain = plain.astype(object)
    plain[np.ma.getmaskarray(values)] = None
    return plain


def _check_real(values: Any, name: str) -> None:
    """Raises an error if values are complex numbers, times or durations, which numpy
    would convert to floats."""
    kind = getattr(values, "dtype", None)
    if getattr(kind, "kind", "f") in "cmM":
        raise InvalidError(f"{name} must be real numbers, not {kind}")


def check_length(values: Any, n: int, name: str, of: str) -> None:
    """Raises an error if the length of values differs from n, the number of
    rows of the side `of`.  name is the argument that has the values.  Values
    without a length are not checked."""
    if hasattr(values, "__len__") and len(values) != n:
        raise InvalidError(
            f"{name} has {len(values)} values, and {of} has {n}: give one for each"
        )


def as_column(values: Any, dtype: Any, n: int, name: str, of: str) -> Any:
    """Returns n values as a contiguous numpy array. 64-bit integers that would be
    rounded or wrapped are an error; missing floats of Arrow become NaN."""
    check_length(values, n, name, of)
    array = np.asarray(without_mask(values))
    if array.shape != (n,):
        raise InvalidError(
            f"{name} must be one column of {n} values, one for each of {of}, and has "
            f"the shape {array.shape}: give an array of one dimension"
        )
    if dtype is np.int64:
        return _as_int64(array, name)
    _check_real(array, name)
    try:
        return np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError):
        raise InvalidError(f"{name} must be numbers, not {array.dtype}") from None


def _as_int64(array: Any, name: str) -> Any:
    if array.dtype == object and all(isinstance(v, (int, np.integer)) for v in array):
        least, most = min(array, default=0), max(array, default=0)
        array = array.astype(np.int64) if -(2**63) <= least <= most < 2**63 else array
    if len(array) and array.dtype.kind not in "iuf":
        raise InvalidError(f"{name} must be whole numbers of 64 bits, not {array.dtype}")
    with np.errstate(invalid="ignore"):
        exact = np.ascontiguousarray(array, dtype=np.int64)
    if array.dtype.kind in "uf" and (exact != array).any():
        row = int(np.argmax(exact != array))
        raise InvalidError(
            f"{name} must be whole numbers of 64 bits, but row {row} has {array[row]}"
        )
    return exact


def _coordinates(values: Any, name: str) -> Any:
    values = without_mask(values)
    _check_real(values, name)
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as why:
        raise InvalidError(f"{name} must be numbers: {why}") from None


def _layer_of_points(x: Any, y: Any) -> Any:
    if hasattr(x, "__len__"):
        check_length(y, len(x), "y", "x")
    x, y = _coordinates(x, "x"), _coordinates(y, "y")
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidError(
            f"x and y must be two columns of equal length, not arrays of the shapes {x.shape} "
            f"and {y.shape}"
        )
    for values in (x, y):  # false for NaN, too
        if len(values) and not (values.min() >= -_MOST and values.max() <= _MOST):
            is_point = (np.abs(x) <= _MOST) & (np.abs(y) <= _MOST)
            return _core.arrays(len(x), np.where(is_point, x, np.nan), y)
    return _core.arrays(len(x), x, y)


def offsets(counts: Any) -> Any:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def _layer_of_polygons(array: Any, kinds: Any) -> Any:
    """Makes a layer of polygons and multipolygons without WKB, in half the
    time of WKB. Returns None if a coordinate is not finite.  shapely's
    coordinates already have the order of the layer.  Only rows with several
    rings are split, to count the rings."""
    import shapely

    xy = shapely.get_coordinates(array)
    sizes = shapely.get_num_coordinates(array)
    several = np.flatnonzero(
        (kinds == 6) | (shapely.get_num_interior_rings(array) > 0)
    )
    part_row = ring_row = np.flatnonzero(sizes)
    sizes = sizes[ring_row]
    part_rings = np.ones(len(part_row), dtype=np.int64)
    if len(several):
        parts, of_row = shapely.get_parts(array[several], return_index=True)
        rings, of_part = shapely.get_rings(parts, return_index=True)
        size = shapely.get_num_coordinates(rings)
        rings_of = np.bincount(of_part[size > 0], minlength=len(parts))
        rows = several[of_row]
        plain = ~np.isin(ring_row, several)
        # merges the rows with several rings into the others, in order
        ring_row = np.concatenate((ring_row[plain], rows[of_part[size > 0]]))
        sizes = np.concatenate((sizes[plain], size[size > 0]))
        sizes = sizes[np.argsort(ring_row, kind="stable")]
        part_row = np.concatenate((part_row[plain], rows[rings_of > 0]))
        order = np.argsort(part_row, kind="stable")
        part_row = part_row[order]
        part_rings = np.concatenate((part_rings[plain], rings_of[rings_of > 0]))
        part_rings = part_rings[order]
    x, y = np.ascontiguousarray(xy.T)
    if len(xy) and not (np.abs(xy).max() <= _MOST):
        return None
    return _core.arrays(
        len(array),
        x,
        y,
        offsets(np.bincount(part_row, minlength=len(array))),
        np.full(len(part_row), _POLYGON, dtype=np.uint8),
        offsets(part_rings),
        offsets(sizes),
    )


def _wkb_with_m(array: Any) -> list[Any]:
    import shapely

    if not hasattr(shapely, "has_m"):
        raise ValueError(
            f"along=\"m\" needs shapely 2.1 or later, which reads M values, not "
            f"{shapely.__version__}: or give the lines as an Arrow table with WKB"
        )
    wkb: list[Any] = shapely.to_wkb(array, output_dimension=4, flavor="iso").tolist()
    return wkb


def _layer_of_shapely(array: Any, settings: dict[str, Any]) -> Any:
    import shapely

    if is_points(array[:1]):
        try:
            x = shapely.get_x(array)  # NaN for other geometries
        except shapely.errors.GEOSException:  # raised for an empty point
            return _layer_of_shapely(
                np.where(shapely.is_empty(array), None, array), settings
            )
        if not np.isnan(x).any() or is_points(array):
            return _layer_of_points(x, shapely.get_y(array))
    if settings.get("along") == "m":
        return _core.from_wkb(_wkb_with_m(array), settings)
    kinds = shapely.get_type_id(array)
    if np.isin(kinds, (-1, 3, 6)).all():
        layer = _layer_of_polygons(array, kinds)
        if layer is not None:
            return layer
    wkb = shapely.to_wkb(array, output_dimension=2, include_srid=False)
    return _core.from_wkb(wkb.tolist(), settings)


def error_of_no_geometry(array: Any, which: str, first: int = 0) -> TypeError | None:
    """Returns the error for an array that shapely refuses.  Its text names the
    first row without a geometry.  Returns None if all rows are geometries or
    None.  which is left or right; first is the number of the first row."""
    import shapely

    rows = np.flatnonzero(~(shapely.is_geometry(array) | shapely.is_missing(array)))
    if len(rows) == 0:
        return None
    value = array[rows[0]]
    hint = "; shapely.from_wkt() makes geometries of texts" if isinstance(value, str) else ""
    return TypeError(
        f"the {which} side: row {first + rows[0]} is a {type(value).__name__}, not a geometry of "
        f"shapely{hint}"
    )


def _layer_of_geometries(array: Any, settings: dict[str, Any], which: str) -> Any:
    try:
        return _layer_of_shapely(array, settings)
    except TypeError as error:
        first = settings.get("first_row", 0)
        raise error_of_no_geometry(array, which, first) or error from None


def may_be_device(side: Any) -> bool:
    """Returns True if side, or x of (x, y), may be an array in device memory."""
    one = side[0] if isinstance(side, tuple) and len(side) == 2 else side
    return not isinstance(one, np.ndarray) and (
        hasattr(one, "__dlpack_device__") or hasattr(one, "__cuda_array_interface__")
    )


def slices(side: Any, n_rows: int) -> Any:
    """Yields side in pieces (first row, rows).  A side that cannot be sliced
    is one piece."""
    array = shapely_array(side)
    if isinstance(side, tuple) and len(side) == 2:
        check_length(side[1], len(side[0]), "y", "x")
        array = np.column_stack([_coordinates(v, name) for v, name in zip(side, "xy")])
    elif array is None and isinstance(side, (np.ndarray, list, tuple)):
        array = side
    if array is None and hasattr(side, "__arrow_c_array__") and hasattr(side, "slice"):
        if len(side) > n_rows:
            return [(i, side.slice(i, n_rows)) for i in range(0, len(side), n_rows)]
    if array is None or len(array) <= n_rows:
        return [(0, side)]
    return [(i, array[i : i + n_rows]) for i in range(0, len(array), n_rows)]


def stream_of(side: Any, column: str | None = None) -> Any:
    """Returns an object with an Arrow stream of the rows of side, or None if
    there is no stream.  Of a pyarrow dataset only the given column is read."""
    if is_geodataframe(side) or shapely_array(side) is not None:
        return None
    if hasattr(side, "__arrow_c_stream__"):
        return side
    if hasattr(side, "scanner") and hasattr(side, "schema"):
        side = side.scanner(**({} if column is None else {"columns": [column]}))
    if hasattr(side, "to_reader"):
        return side.to_reader()
    return None


class _WithCrs:
    """The stream of a side, with the CRS that its schema states."""

    def __init__(self, side: Any) -> None:
        self._stream = side.__arrow_c_stream__()
        self.crs = _crs.read_from_stream(self._stream)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._stream


def with_crs(side: Any) -> Any:
    """Returns a stream, which can be read once, in place of a side whose CRS only its
    stream states.  Returns any other side unchanged."""
    if not hasattr(side, "__arrow_c_stream__") or shapely_array(side) is not None:
        return side
    known = type(side).__module__.split(".")[0] in ("geopandas", "pandas", "polars", "pyarrow")
    if known or is_geodataframe(side) or getattr(side, "crs", None) is not None:
        return side
    return side if hasattr(getattr(side, "schema", None), "get_field_index") else _WithCrs(side)


def may_have_srid(side: Any) -> bool:
    """Returns True if side is read from columns of Arrow, which may be extended WKB."""
    if is_geodataframe(side) or shapely_array(side) is not None:
        return False
    return has_arrow(side) or is_iterator(side)


def count_rows(side: Any) -> int:
    """Returns the number of rows of side, or 0 if only reading side would give it."""
    counted = ("ogrjoin", "pyarrow", "polars", "pandas", "geopandas")
    is_counted = type(side).__module__.split(".")[0] in counted
    return len(side) if is_counted and hasattr(side, "__len__") else 0


def is_query(side: Any) -> bool:
    """Returns True for a query of a database, or the rows of a join, which each reading
    runs again.  It may have a length that only running it gives."""
    package = type(side).__module__.split(".")[0]
    is_joined = package == "ogrjoin" and hasattr(side, "read_all")
    return is_joined or package in ("polars", "duckdb", "_duckdb", "sedonadb")


def is_reader(side: Any) -> bool:
    """Returns True for a reader of pyarrow, which may run an iterator of Python."""
    return type(side).__module__ == "pyarrow.lib" and hasattr(side, "read_next_batch")


def is_once(side: Any) -> bool:
    """Returns True for an object that may be a stream, which can be read once: one
    without a length that is not a query."""
    return not (hasattr(side, "__len__") or is_query(side))


def own(side: Any) -> Any:
    """Returns a side, or a column of values, that does not change later, neither by
    being read nor by its owner.  Arrow data do not change, and are not copied, but the
    rows of a stream or of a query are read into a table."""
    package = type(side).__module__.split(".")[0]
    is_run = is_query(side) and package != "polars"  # frames of Polars do not change
    if hasattr(side, "__arrow_c_stream__") and (is_once(side) or is_run):
        try:
            import pyarrow as pa
        except ImportError:
            return side  # join(), which would read it again, needs pyarrow
        reader = side if is_reader(side) else pa.RecordBatchReader.from_stream(side)
        try:
            return reader.read_all()
        except Exception as error:
            message = f"right side: reading the Arrow stream failed: {error}"
            raise make_error(Status.IO, message) from None
    if type(side) is tuple:
        sized = (v for v in side if hasattr(v, "__len__") and getattr(v, "ndim", 1) > 0)
        is_refused = len(set(map(len, sized))) > 1  # columns of different lengths
        return side if is_refused else tuple(map(_own_column, side))
    if package in ("pandas", "geopandas"):
        if not hasattr(side, "iloc"):
            return side.copy()  # an array or an index
        import pandas

        # Frames of pandas 3 that share columns copy them when one of them changes.
        return side.copy(deep=int(pandas.__version__.split(".")[0]) < 3)
    if package == "polars" and hasattr(side, "clone"):
        return side.clone()  # shares the columns until one of both changes
    is_other = package == "shapely" or has_arrow(side) or shapely_array(side) is not None
    if is_geojson(side) and not is_other:
        return copy.deepcopy(getattr(side, "__geo_interface__", side))
    return side.copy() if isinstance(side, (np.ndarray, list)) else side


def _own_column(values: Any) -> Any:
    """Returns own(values), or a copy of an array that is not of numpy, such as a
    memoryview or a tensor of PyTorch, unless it is on a device."""
    owned = own(values)
    if owned is not values or isinstance(values, (str, bytes, np.generic)) or has_arrow(values):
        return owned
    if hasattr(values, "__cuda_array_interface__"):
        return values
    if hasattr(values, "__dlpack_device__"):
        return values if values.__dlpack_device__()[0] != _DLPACK_CPU else np.array(values)
    try:
        return np.array(memoryview(values))
    except TypeError:
        return np.array(values) if hasattr(values, "__array__") else values


def has_arrow(side: Any) -> bool:
    """Returns True for a side that gives Arrow data: a table, a reader, a dataset."""
    names = ("__arrow_c_stream__", "__arrow_c_array__", "scanner", "to_reader")
    return any(hasattr(side, name) for name in names)


def is_iterator(side: Any) -> bool:
    """Returns True if side is an iterator or a list of several sides."""
    if isinstance(side, list):
        return len(side) > 0 and all(has_arrow(item) for item in side)
    return hasattr(side, "__next__") and not hasattr(side, "__geo_interface__")


def _reader_of(side: Any, column: str | None) -> Any:
    """Returns a pyarrow.RecordBatchReader of a record batch, table, reader, dataset or
    scanner of pyarrow, or None for any other side.  Of a dataset only the given column is
    read."""
    is_rows = hasattr(side, "schema") or hasattr(side, "projected_schema")
    if not is_rows or not type(side).__module__.startswith("pyarrow."):
        return None
    import pyarrow as pa

    if isinstance(side, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(side.schema, [side])
    stream = stream_of(side, column)
    return stream.to_reader() if hasattr(stream, "to_reader") else stream


def _schema_of(reader: Any) -> Any:
    """Returns the schema of a reader without its own metadata, only with those of its
    columns."""
    return reader.schema.remove_metadata()


class _Stream:
    """A stream whose exceptions sides_of raises."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.schema = reader.schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(requested_schema)


_NO_ERRORS = (KeyboardInterrupt, SystemExit, GeneratorExit)
_NONE: Any = object()  # in place of a side: there is none


class sides_of:
    """Context manager over the sides of an iterator.  Consecutive sides of pyarrow
    with equal schemas become one stream: an Arrow stream has one schema, by which all
    its buffers are read.  An exception of the iterator is raised as it was, not as the
    error text into which Arrow turns it.  column: as in stream_of().  are_errors_raised
    is False for a single stream, whose failures are InputError: only KeyboardInterrupt and
    others that are no errors are raised as they were."""

    def __init__(self, sides: Any, column: str | None, are_errors_raised: bool) -> None:
        self._sides = iter(sides)
        self._column = column
        self._kept = BaseException if are_errors_raised else _NO_ERRORS
        # The side after the last stream that was read; _NONE if it was not read yet.
        self._next: Any = _NONE
        self._raised: BaseException | None = None

    def _next_of(self, iterator: Any) -> Any:
        """Returns the next item, or _NONE at the end.  Keeps the exception of iterator."""
        try:
            return next(iterator, _NONE)
        except self._kept as error:
            self._raised = error
            raise

    def _batches(self, reader: Any, schema: Any) -> Any:
        """Yields the record batches of reader and of the sides after it that have the
        schema of reader."""
        while reader is not None and _schema_of(reader).equals(schema, check_metadata=True):
            while (batch := self._next_of(reader)) is not _NONE:
                yield batch
            side = self._next_of(self._sides)
            reader = _reader_of(side, self._column)
            self._next = side if reader is None else reader

    def _sides_as_streams(self) -> Any:
        while True:
            side, self._next = self._next, _NONE
            if side is _NONE:
                side = next(self._sides, _NONE)
            if side is _NONE:
                return
            reader = _reader_of(side, self._column)
            if reader is None:
                yield side
                continue
            import pyarrow as pa

            batches = self._batches(reader, _schema_of(reader))
            yield _Stream(pa.RecordBatchReader.from_batches(reader.schema, batches))

    def __enter__(self) -> Any:
        return self._sides_as_streams()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._raised is not None and error is not None and error is not self._raised:
            raise self._raised from None
        close = getattr(self._sides, "close", None)
        if close is not None:
            close()


def is_geojson(side: Any) -> bool:
    return hasattr(side, "__geo_interface__") or isinstance(side, dict)


def of_geojson(side: Any, which: str) -> tuple[Any, list[dict[str, Any]]]:
    """Returns (array of shapely, properties of each row) of an object with
    __geo_interface__ or of a dict: a geometry, a feature or a collection of features.
    which is left or right, for errors."""
    import shapely.geometry

    data = getattr(side, "__geo_interface__", side)
    try:
        kind = data["type"]
        features = [{"geometry": data}]
        if kind in ("Feature", "FeatureCollection"):
            features = data["features"] if kind == "FeatureCollection" else [data]
        features = [getattr(f, "__geo_interface__", f) for f in features]
        array = np.empty(len(features), dtype=object)
        array[:] = [g and shapely.geometry.shape(g) for g in (f["geometry"] for f in features)]
        return array, [f.get("properties") or {} for f in features]
    except (AttributeError, KeyError, TypeError, ValueError, shapely.errors.ShapelyError) as why:
        raise InvalidError(
            f"the {which} side: a {type(side).__name__} is no GeoJSON ({why!r}): give a "
            "geometry, a feature or a collection of features"
        ) from None


def make_layer(side: Any, settings: dict[str, Any], column: str | None) -> Any:
    """Returns a capsule of the layer of a side.
    settings: threads, and side ("left" or "right"), which errors name; with similar or
    vector, the columns of this side that they name are read, too.  column: the geometry
    column of an Arrow side."""
    which = settings["side"]
    if reads_columns(settings) and is_geodataframe(side):
        side = side.to_arrow(index=False)
    array = shapely_array(side)
    if array is not None:
        return _layer_of_geometries(array, settings, which)
    if is_reader(side):
        with sides_of([side], None, False) as streams:
            return _core.from_stream(next(streams).__arrow_c_stream__(), column, settings)
    if hasattr(side, "__arrow_c_stream__"):
        return _core.from_stream(side.__arrow_c_stream__(), column, settings)
    if hasattr(side, "__arrow_c_array__"):
        schema, values = side.__arrow_c_array__()
        return _core.from_array(schema, values, column, settings)
    if isinstance(side, tuple) and len(side) == 2:
        return _layer_of_points(*side)
    if isinstance(side, np.ndarray) and side.ndim == 2 and side.shape[1] == 2:
        return _layer_of_points(side[:, 0], side[:, 1])
    if is_geojson(side):
        return _layer_of_shapely(of_geojson(side, which)[0], settings)
    if isinstance(side, (list, tuple)):
        array = np.empty(len(side), dtype=object)
        array[:] = side
        return _layer_of_geometries(array, settings, which)
    raise TypeError(
        f"the {which} side: a {type(side).__name__} cannot be joined: give a GeoDataFrame, a "
        "GeoSeries, geometries of shapely, an Arrow table or stream, or (x, y)"
    )
