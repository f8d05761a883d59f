"""GeoPandas' spatial joins with the pairs of this package: sjoin(),
sjoin_nearest(), enable().

Checks, warnings, errors and the assembly of the frame are functions of GeoPandas;
only the pairs come from this package instead of shapely's tree.  exclusive=True for
geometries other than points is left to GeoPandas entirely.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Literal, Sequence

import geopandas.tools
import numpy as np
import numpy.typing as npt

from ._errors import UnsupportedError
from ._pairs import PREDICATES, pad_unpaired_rows, pairs
from ._sides import is_points, shapely_array

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

__all__ = ["disable", "enable", "sjoin", "sjoin_nearest"]

How = Literal["inner", "left", "right"]
Predicate = Literal[
    "contains", "contains_properly", "covered_by", "covers", "crosses", "dwithin",
    "intersects", "overlaps", "touches", "within",
]  # fmt: skip
Distances = float | Sequence[float] | npt.NDArray[np.floating[Any]]
Progress = Callable[[int, int], object]

# The module of this name is hidden by the function geopandas.tools.sjoin.
_frames: Any = sys.modules["geopandas.tools.sjoin"]
_their_query: Callable[..., tuple[Any, Any]] = _frames._geom_predicate_query
_their_nearest: Callable[..., tuple[tuple[Any, Any], Any]] = _frames._nearest_query
_their_adjust = _frames._adjust_indexers


def _with_crs(frame: Any) -> Any:
    """Returns the active geometries with their CRS, which is needed to convert units."""
    return frame.geometry


def _filter_attributes(
    left_df: Any, right_df: Any, left: Any, right: Any, on_attribute: Any
) -> tuple[Any, Any]:
    for name in on_attribute or ():
        (left, right), _ = _frames._filter_shared_attribute(
            left_df, right_df, left, right, name
        )
    return left, right


def _query_pairs(
    left_df: Any,
    right_df: Any,
    predicate: str | None,
    distance: Any,
    on_attribute: Any = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Returns the row numbers (left, right) of the pairs, sorted."""
    if predicate not in PREDICATES or (distance is None) != (predicate != "dwithin"):
        # GeoPandas raises the error for an unknown predicate
        return _their_query(left_df, right_df, predicate, distance, on_attribute)
    settings = dict(options)
    made: Callable[[Any], Any] = shapely_array
    if isinstance(distance, str):
        settings["max_distance"], made = distance, _with_crs
    elif distance is not None:
        distance = np.asarray(distance, dtype=np.float64)
        if distance.shape not in ((), (len(left_df),)) or not (distance >= 0).all():
            return _their_query(left_df, right_df, predicate, distance, on_attribute)
        settings["max_distance"] = distance if distance.ndim else distance.item()
    found = pairs(made(left_df), made(right_df), PREDICATES[predicate], **settings)
    return _filter_attributes(
        left_df, right_df, found.left, found.right, on_attribute
    )


def _nearest_pairs(
    left_df: Any,
    right_df: Any,
    max_distance: float | str | None,
    how: str,
    return_distance: bool,
    exclusive: bool,
    on_attribute: Any = None,
    *,
    k: int = 1,
    ties: str = "all",
    **options: Any,
) -> tuple[tuple[Any, Any], Any]:
    """Returns the row numbers (left, right) of the pairs, sorted by left, and their
    distances."""
    sides: tuple[Any, Any] = shapely_array(left_df), shapely_array(right_df)
    has_unit = isinstance(max_distance, str)
    is_theirs = not isinstance(max_distance, (str, type(None))) and not max_distance > 0
    if exclusive and not (is_points(sides[0]) and is_points(sides[1])):
        if (k, ties) != (1, "all") or has_unit:
            raise UnsupportedError(
                "exclusive=True with k, ties or a unit in max_distance is possible for "
                "points only: leave one of them out"
            )
        is_theirs = True
    needs_crs = has_unit or options.get("metric", "planar") != "planar"
    if needs_crs and not is_theirs:
        sides = _with_crs(left_df), _with_crs(right_df)
    if is_theirs or on_attribute:
        return _their_nearest(
            left_df,
            right_df,
            max_distance,
            how,
            return_distance,
            exclusive,
            on_attribute,
        )
    found = pairs(
        *(sides[::-1] if how == "right" else sides),
        "nearest",
        max_distance=max_distance,
        k=k,
        ties=ties,
        exclude_same_geometry=bool(exclusive),
        **options,
    )
    left, right = found.left, found.right
    distance: Any = found.distance
    if how == "right":
        order = np.argsort(right, kind="stable")
        left, right, distance = right[order], left[order], distance[order]
    return (left, right), distance if return_distance else None


def _add_unpaired_rows(
    indices: Any, distances: Any, n_rows: int, how: str, predicate: Any
) -> tuple[Any, Any]:
    """Adds the rows without a pair, with -1 as the other row number.  The
    result equals that of _adjust_indexers() of GeoPandas, but takes one
    pass."""
    if how == "inner":
        return indices, distances
    keep, other = indices if how == "left" else indices[::-1]
    if how == "right":
        order = np.lexsort((other, keep))
        keep, other = keep[order], other[order]
        distances = distances[order] if distances is not None else None
    keep, other, distances = pad_unpaired_rows(keep, n_rows, other, distances)
    return ((keep, other) if how == "left" else (other, keep)), distances


def _join_frames(
    left_df: Any,
    right_df: Any,
    indices: Any,
    distances: Any,
    how: str,
    *names: Any,
    **more: Any,
) -> tuple[Any, Any]:
    # The rows without a pair are added first, so the left join becomes an inner join.
    if how == "left":
        indices, distances = _add_unpaired_rows(indices, distances, len(left_df), how, None)
        how = "inner"
    joined, distances = _frames._frame_join(
        left_df, right_df, indices, distances, how, *names, **more
    )
    return joined, distances


def sjoin(
    left_df: GeoDataFrame,
    right_df: GeoDataFrame,
    how: How = "inner",
    predicate: Predicate | None = "intersects",
    lsuffix: str = "left",
    rsuffix: str = "right",
    distance: Distances | str | None = None,
    on_attribute: str | Sequence[str] | None = None,
    *,
    threads: int | None = None,
    backend: str | None = None,
    progress: Progress | None = None,
) -> GeoDataFrame:
    """geopandas.sjoin(), with its arguments and its result. Additional arguments:

    distance  maximum distance of dwithin, also with a unit: "100ft"
    threads, backend, progress: as in ogrjoin.pairs()
    """
    on_attribute = _frames._maybe_make_list(on_attribute)
    _frames._basic_checks(
        left_df, right_df, how, lsuffix, rsuffix, on_attribute=on_attribute
    )
    indices = _query_pairs(
        left_df,
        right_df,
        predicate,
        distance,
        on_attribute,
        threads=threads,
        backend=backend,
        progress=progress,
    )
    return _join_frames(
        left_df,
        right_df,
        indices,
        None,
        how,
        lsuffix,
        rsuffix,
        predicate,
        on_attribute=on_attribute,
    )[0]


def sjoin_nearest(
    left_df: GeoDataFrame,
    right_df: GeoDataFrame,
    how: How = "inner",
    max_distance: float | str | None = None,
    lsuffix: str = "left",
    rsuffix: str = "right",
    distance_col: str | None = None,
    exclusive: bool = False,
    *,
    k: int = 1,
    ties: Literal["all", "first"] = "all",
    metric: Literal["planar", "sphere", "ellipsoid"] = "planar",
    threads: int | None = None,
    backend: str | None = None,
    progress: Progress | None = None,
) -> GeoDataFrame:
    """geopandas.sjoin_nearest(), with its arguments and its result. Additional arguments:

    max_distance  also with a unit, as in ogrjoin.join(): "100ft", "1.5km"
    k             number of nearest rows
    ties          equal distances: "all", or "first": the lowest row numbers
    metric        "sphere": longitude and latitude in, metres out; "ellipsoid": likewise,
                  on the ellipsoid of the CRS; one of the frames must be of points
    threads, backend, progress: as in ogrjoin.pairs()
    """
    _frames._basic_checks(left_df, right_df, how, lsuffix, rsuffix)
    if metric == "planar" and not isinstance(max_distance, str):
        left_df.geometry.values.check_geographic_crs(stacklevel=1)
        right_df.geometry.values.check_geographic_crs(stacklevel=1)
    indices, distances = _nearest_pairs(
        left_df,
        right_df,
        max_distance,
        how,
        distance_col is not None,
        exclusive,
        k=k,
        ties=ties,
        metric=metric,
        threads=threads,
        backend=backend,
        progress=progress,
    )
    joined, distances = _join_frames(
        left_df, right_df, indices, distances, how, lsuffix, rsuffix, None
    )
    if distance_col is not None:
        joined[distance_col] = distances
    return joined


class _Enabled:
    """Result of enable(): a context manager that calls disable() at the end of
    its block."""

    def __enter__(self) -> _Enabled:
        return self

    def __exit__(self, *error: object) -> None:
        disable()


def enable() -> _Enabled:
    """Makes geopandas.sjoin(), sjoin_nearest() and the methods of these names use this
    package, in all threads.  This lasts until disable(), or until the end of the block
    in "with ogrjoin.geopandas.enable(): ..."."""
    _frames._geom_predicate_query = _query_pairs
    _frames._nearest_query = _nearest_pairs
    _frames._adjust_indexers = _add_unpaired_rows
    return _Enabled()


def disable() -> None:
    """Restores GeoPandas' own spatial joins."""
    _frames._geom_predicate_query = _their_query
    _frames._nearest_query = _their_nearest
    _frames._adjust_indexers = _their_adjust
