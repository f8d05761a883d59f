"""Boxes of rows, [n, 4] float64: xmin, ymin, xmax, ymax; NaN for rows without a
place.  Rounding is outwards: a box may be too large, but never too small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .._scan import extension_of

RADIUS = 6371008.7714  # radius of the Earth as a sphere, metres
MOST = 1e150  # OJ_FLAT_MOST: the largest coordinate that joins accept

# Distances and coordinates are computed with relative errors of a few 2^-53.
# Boxes are widened by about a thousand times these errors.
_OF_DISTANCE = 2.0**-40
_OF_COORDINATES = 2.0**-43
_DEGREES = 1e-9  # 0.1 mm: more than the errors of sines and cosines here

_KNOWN_TYPES = 7  # greatest shapely type id that is read here; curves have greater ids


def is_nowhere(boxes: Any) -> Any:
    """Returns [n] True for rows without a place. any(axis=1) takes three times as long."""
    low, high = np.isnan(boxes[:, :2]), np.isnan(boxes[:, 2:])
    return low[:, 0] | low[:, 1] | high[:, 0] | high[:, 1]


def is_endless(boxes: Any) -> Any:
    """Returns [n] True for rows whose box has a side at infinity."""
    low, high = np.isinf(boxes[:, :2]), np.isinf(boxes[:, 2:])
    return low[:, 0] | low[:, 1] | high[:, 0] | high[:, 1]


def _chunked(column: Any) -> Any:
    return pa.chunked_array([column]) if isinstance(column, pa.Array) else column


def _binary(column: Any) -> Any:
    """Returns the column as one array of type large_binary."""
    column = _chunked(column)
    if isinstance(column.type, pa.BaseExtensionType):
        storage = column.type.storage_type
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], storage)
    whole = column.cast(pa.large_binary()).combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def _points(column: Any) -> Any:
    """Returns (x, y) of a column of WKB points, or None if a row is not the
    WKB of a point."""
    n = len(column)
    if n == 0 or column.null_count:
        return None
    offset = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: n + 1]
    if offset[-1] - offset[0] != 21 * n or (np.diff(offset) != 21).any():
        return None
    data = np.frombuffer(column.buffers()[2], np.uint8)[offset[0] : offset[-1]]
    rows = data.reshape(n, 21)
    if (rows[:, :5] != np.array([1, 1, 0, 0, 0], np.uint8)).any():
        return None
    return np.ascontiguousarray(rows[:, 5:]).view("<f8").astype(np.float64)


def _numbers(column: Any) -> Any:
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = _chunked(column).cast(pa.float64()).to_numpy()
    return np.asarray(column, dtype=np.float64)


def of_points(x: Any, y: Any) -> Any:
    """Returns the boxes of points from two columns of coordinates."""
    x, y = _numbers(x), _numbers(y)
    boxes = np.column_stack((x, y, x, y))
    boxes[~((np.abs(x) <= MOST) & (np.abs(y) <= MOST))] = np.nan
    return boxes


def _read_shapes(wkb: Any) -> Any:
    """Returns an array of shapely geometries, with None for rows that shapely
    cannot read."""
    import shapely

    try:
        return shapely.from_wkb(wkb, on_invalid="ignore")
    except NotImplementedError:  # newer versions raise this for a curve
        if len(wkb) == 1:
            return np.array([None], dtype=object)
    half = len(wkb) // 2
    return np.concatenate((_read_shapes(wkb[:half]), _read_shapes(wkb[half:])))


def of_wkb(column: Any) -> Any:
    """Returns the boxes of a column of WKB. A geometry that shapely cannot read gets a box
    without bounds, so that every tile receives it and the library decides."""
    column = _binary(column)
    xy = _points(column)
    if xy is not None:
        return of_points(xy[:, 0], xy[:, 1])
    import shapely

    shapes = _read_shapes(column.to_numpy(zero_copy_only=False))
    boxes = shapely.bounds(shapes)
    kinds = shapely.get_type_id(shapes)
    unread = (kinds > _KNOWN_TYPES) | ((kinds < 0) & np.asarray(column.is_valid()))
    boxes[unread] = (-np.inf, -np.inf, np.inf, np.inf)
    return boxes


def of_table(table: Any, column: str | None, x: str | None = None, y: str | None = None) -> Any:
    """Returns the boxes of the rows of a table, from its geometry column, or from columns x and
    y."""
    if x is not None:
        return of_points(table.column(x), table.column(y))
    i = table.schema.get_field_index(column)
    encoding = extension_of(table.schema.field(i)).removeprefix("geoarrow.")
    if encoding in ("", "wkb"):
        return of_wkb(table.column(i))
    import shapely

    from .._tables import _shapes_of

    return shapely.bounds(np.asarray(_shapes_of(table.select([i]))))


def _widen_outwards(boxes: Any, by: Any) -> Any:
    by = np.asarray(by, dtype=np.float64)[..., None]
    low = np.nextafter(boxes[:, :2] - by, -np.inf)
    high = np.nextafter(boxes[:, 2:] + by, np.inf)
    return np.hstack((low, high))


def _extend_by_great_circles(boxes: Any) -> Any:
    """Returns boxes of longitudes and latitudes, extended by the great-circle
    arcs between any vertices inside them.  xmin is in [-180, 180).  A box at
    least 180 degrees wide becomes the whole sphere, because its edges may run
    either way round it."""
    width = boxes[:, 2] - boxes[:, 0]
    everywhere = ~(width < 180 - _DEGREES) & ~np.isnan(width)
    half = np.cos(np.radians(np.where(everywhere, 0.0, width) / 2))
    # An arc between two points of latitude b and longitudes w apart reaches at
    # most the latitude a with tan a = tan b / cos(w / 2); arcs between points of
    # lower latitudes stay below it.
    with np.errstate(invalid="ignore", over="ignore"):
        up = np.degrees(np.arctan(np.tan(np.radians(np.clip(boxes[:, 3], 0, 90))) / half))
        down = np.degrees(np.arctan(np.tan(np.radians(np.clip(boxes[:, 1], -90, 0))) / half))
        north = np.where(width > 0, np.maximum(boxes[:, 3], up), boxes[:, 3])
        south = np.where(width > 0, np.minimum(boxes[:, 1], down), boxes[:, 1])
        start = boxes[:, 0] - 360 * np.floor((boxes[:, 0] + 180) / 360)
    made = np.column_stack((start, south, start + width, north))
    made[everywhere] = (-180, -90, 180, 90)
    return made


def _widen_degrees(boxes: Any, metres: Any) -> Any:
    """Returns boxes of longitudes and latitudes, widened by a distance in metres."""
    angle = np.degrees(np.asarray(metres) * (1 + _OF_DISTANCE) / RADIUS) + _DEGREES
    angle = np.minimum(np.broadcast_to(angle, len(boxes)), 180.0)
    south, north = boxes[:, 1] - angle, boxes[:, 3] + angle
    most = np.radians(np.minimum(np.maximum(-boxes[:, 1], boxes[:, 3]), 90))
    with np.errstate(invalid="ignore", divide="ignore"):
        sine = np.sin(np.radians(np.minimum(angle, 90.0))) / np.cos(most)
        aside = np.degrees(np.arcsin(np.minimum(sine, 1.0))) + _DEGREES
    capped = (south <= -90 + _DEGREES) | (north >= 90 - _DEGREES)  # contains a pole
    west = np.where(capped, boxes[:, 0] - 360, boxes[:, 0] - aside)
    east = np.where(capped, boxes[:, 0] + 360, boxes[:, 2] + aside)
    return np.column_stack((west, south, east, north))


def widened(boxes: Any, distance: Any, metric: str = "planar") -> Any:
    """Returns boxes widened by distance: such a box meets the box of every
    feature that the library finds within the distance.  distance is one
    number, or one for each row; NaN counts as 0."""
    distance = np.maximum(np.nan_to_num(distance, nan=0.0, posinf=np.inf), 0.0)
    if metric == "sphere":
        made = _widen_degrees(_extend_by_great_circles(boxes), distance)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            most = np.abs(boxes[:, 0])
            for i in (1, 2, 3):
                most = np.maximum(most, np.abs(boxes[:, i]))
            margin = most * _OF_COORDINATES
            made = _widen_outwards(boxes, distance * (1 + _OF_DISTANCE) + margin)
    made[is_nowhere(boxes)] = np.nan
    return made


def centres(boxes: Any, metric: str = "planar") -> Any:
    """Returns [n, 2]: the centre of each box, NaN for rows without a place."""
    with np.errstate(invalid="ignore"):
        at = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    at[np.isnan(at) & ~np.isnan(boxes[:, :2])] = 0.0  # a box without bounds
    if metric == "sphere":
        at[:, 0] -= 360 * np.floor((at[:, 0] + 180) / 360)
    return at
