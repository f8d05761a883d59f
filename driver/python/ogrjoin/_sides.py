"""Whatever holds features -> a layer of the C library.

Arrays of shapely, GeoSeries and GeoDataFrame; objects with an Arrow stream or
array; (x, y) arrays; objects with __geo_interface__.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._errors import InvalidError

_MOST = 1e150  # OJ_FLAT_MOST: what is beyond has no geometry


def shapely_array(side: Any) -> Any:
    """The geometries of shapely that side is, or None."""
    if hasattr(side, "geometry") and hasattr(side, "columns"):
        side = side.geometry  # GeoDataFrame
    values = getattr(side, "values", side)  # GeoSeries
    data = getattr(values, "_data", values)  # GeometryArray
    if isinstance(data, np.ndarray) and data.dtype == object and data.ndim == 1:
        return data
    return None


def is_points(array: Any) -> bool:
    """Of an array of shapely: nothing but points and None."""
    import shapely

    kind = shapely.get_type_id(array)
    return bool((kind <= 0).all())


def _points(x: Any, y: Any) -> Any:
    x = np.ascontiguousarray(x, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidError("x and y are not two columns of the same length")
    for values in (x, y):  # NaN fails, too
        if len(values) and not (values.min() >= -_MOST and values.max() <= _MOST):
            is_point = (np.abs(x) <= _MOST) & (np.abs(y) <= _MOST)
            return _core.points(np.where(is_point, x, np.nan), y, len(x))
    return _core.points(x, y, len(x))


def _of_shapely(array: Any, settings: dict[str, Any]) -> Any:
    import shapely

    if is_points(array):
        return _points(shapely.get_x(array), shapely.get_y(array))
    wkb = shapely.to_wkb(array, output_dimension=2, include_srid=False)
    return _core.from_wkb(wkb.tolist(), settings)


def slices(side: Any, n_rows: int) -> Any:
    """(first row, rows) of side in pieces, where it can be cut, or all of it."""
    array = shapely_array(side)
    if isinstance(side, tuple) and len(side) == 2:
        array = np.column_stack(side)
    elif array is None and isinstance(side, np.ndarray):
        array = side
    if array is None or len(array) <= n_rows:
        return [(0, side)]
    return [(i, array[i : i + n_rows]) for i in range(0, len(array), n_rows)]


def _of_geo_interface(side: Any, settings: dict[str, Any]) -> Any:
    import shapely.geometry

    def shape(geometry: Any) -> Any:
        return shapely.geometry.shape(geometry) if geometry else None

    data = getattr(side, "__geo_interface__", side)
    kind = data["type"]
    if kind == "FeatureCollection":
        shapes = [
            shape(getattr(f, "__geo_interface__", f)["geometry"])
            for f in data["features"]
        ]
    elif kind == "Feature":
        shapes = [shape(data["geometry"])]
    else:
        shapes = [shape(data)]
    array = np.empty(len(shapes), dtype=object)
    array[:] = shapes
    return _of_shapely(array, settings)


def make_layer(
    side: Any, settings: dict[str, Any], column: str | None = None
) -> Any:
    """A capsule of a layer. settings: threads; column: of an Arrow struct."""
    array = shapely_array(side)
    if array is not None:
        return _of_shapely(array, settings)
    if hasattr(side, "__arrow_c_stream__"):
        return _core.from_stream(side.__arrow_c_stream__(), column, settings)
    if hasattr(side, "__arrow_c_array__"):
        return _core.from_array(*side.__arrow_c_array__(), column, settings)
    if isinstance(side, tuple) and len(side) == 2:
        return _points(*side)
    if isinstance(side, np.ndarray) and side.ndim == 2 and side.shape[1] == 2:
        return _points(side[:, 0], side[:, 1])
    if hasattr(side, "__geo_interface__") or isinstance(side, dict):
        return _of_geo_interface(side, settings)
    if isinstance(side, (list, tuple)):
        array = np.empty(len(side), dtype=object)
        array[:] = side
        return _of_shapely(array, settings)
    raise TypeError(
        f"{type(side).__name__} is no layer: give a GeoDataFrame, a GeoSeries, "
        "geometries of shapely, an Arrow table or stream, or (x, y)"
    )
