"""join(): joins two Arrow streams by the settings of the C library."""

from __future__ import annotations

import os
from typing import Any, Callable, Literal

from . import _core, _crs
from ._errors import InvalidError, UnsupportedError
from ._joined import Joined
from ._pairs import count_threads, word_map_text
from ._tables import TableSide

How = Literal["left", "inner", "semi", "anti", "right", "full"]
Geometry = Literal[
    "input", "join", "nearest_point", "connection", "intersection", "none"
]


class _Text(str):
    """Content of a word_map argument: pairs of words, not the name of their file."""


def _library_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Prepares settings for the C library: lists become texts; None and False are left
    out."""
    word_map = settings.get("word_map")
    is_left_out = word_map is None or word_map is False
    if not is_left_out and not isinstance(word_map, _Text):
        settings["word_map"] = _Text(word_map_text(word_map))
    for name, value in settings.items():
        if isinstance(value, (list, tuple)):
            settings[name] = ",".join(str(word) for word in value)
    return {k: v for k, v in settings.items() if v is not None and v is not False}


def _set_crs(left: TableSide, right_crs: str | None, settings: dict[str, Any]) -> None:
    """Sets the CRS of both sides in the settings."""
    if settings.get("crs") != "ignore":
        of_left = _crs.expand(left.crs(settings["left_crs"]))
        settings.update(left_crs=of_left, right_crs=_crs.expand(right_crs))


def _set_on_and_fid(settings: dict[str, Any], on: Any, fid: Any) -> None:
    """Sets the arguments on and fid of join() in the settings."""
    if isinstance(on, tuple):
        raise InvalidError(
            "on is a tuple, which is (left values, right values) in pairs(): here write "
            'the names of columns, on="LEFT=RIGHT", or a list of them'
        )
    settings["on"] = on
    if fid is not None:
        fids = (fid, fid) if isinstance(fid, str) else fid
        settings.update(left_fid=fids[0], right_fid=fids[1])


def join_index(
    index: Any, left: Any, op: str | None, *, on: Any = None, fid: Any = None, **settings: Any
) -> Joined:
    """join() for a right side that already has an index."""
    _set_on_and_fid(settings, on, fid)
    if on is None and index._classes is not None:
        raise InvalidError(
            "the Index has values of on, which pairs() compares; join() compares columns: "
            'name them, on="LEFT=RIGHT"'
        )
    if index._has_id and settings.get("right_fid") is None:
        raise InvalidError(
            "the Index has values of id, which pairs() uses; join() uses a column: name it, "
            'fid=(None, "COLUMN")'
        )
    if settings.get("crs") == "reproject":
        raise UnsupportedError(
            'crs="reproject" is not possible with an Index, which has one CRS: '
            "use ogrjoin.join()"
        )
    settings = {**index._compared, **index._settings, **settings, "op": op}
    settings["left_x"] = settings.pop("x", settings.get("left_x"))
    settings["left_y"] = settings.pop("y", settings.get("left_y"))
    progress = settings.pop("progress", None)
    if index._rows is None:
        kept = {"right_column": index._column, **index._settings}
        right = TableSide(index._right, "right", kept).open(kept)
        index._rows = _core.rows(right.reader().__arrow_c_stream__(), _library_settings(kept))[0]
        names = ("right_column", "right_x", "right_y")
        index._of_right = {name: kept.get(name) for name in names}
        index._crs = right.crs(None)
    settings.update(index._of_right)
    side = TableSide(left, "left", settings).open(settings)
    settings["input_rows"] = side.n_rows
    _set_crs(side, index._crs, settings)
    words = _library_settings(settings)
    return Joined(index._rows, side, words, progress, index._index_of_rows(side, words))


def join(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    how: How | None = "left",
    k: int | None = None,
    max_distance: float | str | None = None,
    ties: Literal["first", "all"] | None = None,
    on: str | list[str] | None = None,
    pick: str | None = None,
    agg: str | list[str] | None = None,
    overlap: str | list[str] | None = None,
    similar: str | list[str] | None = None,
    vector: str | None = None,
    fid: str | tuple[str | None, str | None] | None = None,
    geometry: Geometry | None = None,
    left_column: str | None = None,
    right_column: str | None = None,
    x: str | None = None,
    y: str | None = None,
    left_crs: Any = None,
    right_crs: Any = None,
    crs: Literal["check", "ignore", "reproject"] = "check",
    threads: int | None = None,
    backend: str | None = None,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> Joined:
    """The rows of left, in their order, each with the matching rows of right.

    left, right   Arrow tables and streams (of pyarrow, Polars, DuckDB ...),
                  GeoDataFrames, paths of files (left_layer, right_layer: the
                  layer, if a file has several), geometries of shapely, arrays of
                  WKB, GeoJSON (a dict, or an object with __geo_interface__), (x, y)
    how           left, inner; semi, anti: the columns of left only; right, full:
                  as inner or left, followed by the rows of right without a
                  match, with their geometry
    max_distance  in units of the CRS, or a text with its unit: "100ft", "1.5km"
    on            "LEFT=RIGHT", or a list: only pairs with equal values in both columns;
                  a name with , or = stands in double quotes
    pick          one pair of each row: first, nearest, largest_overlap,
                  smallest_area, largest_area, most_similar, max:COLUMN,
                  min:COLUMN
    agg           "count, mean(fare), concat(name, '; ') as names", or a list: one
                  row for each row of left, with aggregates over its pairs: of
                  columns of right, or of columns of the pair, as in
                  "mean(join_distance), weighted_mean(price, overlap_area)";
                  covered_area, covered_percent and covered_length measure the part
                  of the row of left that its rows of right cover together
    overlap       "area,length,percent,iou,input_area,join_area": columns with the
                  size of the intersection and of both geometries
    similar       "LEFT=RIGHT:0.6", or a list: only pairs with similar texts; + joins
                  two columns into one text.  With op="similar", without
                  max_distance, geometries are not needed
    within_time   "seen=departed:30min": only pairs whose times in these columns are
                  at most that far apart (ms, s, min, h, d, w; of numbers a number)
    during        "came..left=opened..closed:overlaps": only pairs whose spans of time
                  have one of Allen's relations; default: intersects
    heading       "course:30": of lines and rings only the segments count whose direction
                  differs from this column of left, degrees clockwise from north, by
                  at most 30 (default 45); heading_both_ways=True: or its reverse
    vector        "price:0.001+area=PRICE+AREA", or a column of lists: only pairs
                  of vectors that differ by at most max_difference (norm: l2, l1,
                  linf, cosine), or with op="similar" the k most similar
    fid           column with a number for each row, for both sides or (left, right);
                  used by join_fid, the order of ties, and exclude
    word_map      with similar: {"st": "street"}, or a file of such lines
    geometry      geometry of the rows.  input: of left; join: of right; nearest_point:
                  the point of right nearest to left; connection: the line
                  between the two nearest points; intersection; none
    nlt           with geometry="intersection": POLYGON, LINESTRING or POINT: keeps
                  only parts of this type, as multi-geometries, and only pairs that
                  have some
    left_column   column of geometries, if left has several, or of texts: WKT, or WKB
                  in hexadecimal digits (right_column likewise);
                  x, y: columns of coordinates of left, if it has points without
                  geometries (right_x, right_y: of right)
    left_crs      CRS of left, if the data do not state it: "EPSG:2263", PROJJSON,
                  WKT, a PROJ string, or a CRS of pyproj; right_crs likewise
    crs           "check": different CRS are an error, and a side without CRS takes
                  that of the other; "reproject": right is transformed to the CRS of
                  left by pyproj; "ignore"
    progress      called with (left rows done, all left rows); an exception ends the
                  join
    others        options of the command: ogrjoin.settings() lists them

    Columns and types equal those of the command: the columns of left, join_fid,
    columns of the pair, and the columns of right, with the prefix join_ if the name
    is in use.  Left is read in batches of up to a million rows while the result is
    read; one_to_one reads all of it first.
    """
    settings.update(
        op=op, how=how, k=k, max_distance=max_distance, ties=ties, pick=pick, agg=agg,
        overlap=overlap, similar=similar, vector=vector, geometry=geometry,
        left_column=left_column, right_column=right_column, left_crs=left_crs,
        right_crs=right_crs, crs=crs, threads=count_threads(threads), backend=backend,
    )  # fmt: skip
    if x is not None or y is not None:
        settings.update(left_x=x, left_y=y)
    _set_on_and_fid(settings, on, fid)
    left, right = TableSide(left, "left", settings), TableSide(right, "right", settings)
    settings["input_rows"] = left.n_rows
    # The right side is read to its end before left is opened, because two queries
    # may share a connection that has room for one result.
    right.open(settings)
    if crs == "reproject":
        right.read_whole()
        left.open(settings)
        settings.update(crs="check", left_crs=left.crs(settings["left_crs"]))
        stream = right.read_transformed(settings)
    else:
        stream = right.reader()
    right_crs = right.crs(settings["right_crs"])
    of_right = {**settings, "left_crs": None}
    if crs != "ignore":
        of_right["right_crs"] = _crs.expand(right_crs)
    rows = _core.rows(stream.__arrow_c_stream__(), _library_settings(of_right))[0]
    _set_crs(left.open(settings), right_crs, settings)
    return Joined(rows, left, _library_settings(settings), progress, None)


def events(
    reports: Any,
    fences: Any,
    key: str,
    op: str = "within",
    *,
    stays: bool = False,
    state: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Joined:
    """The events of reports, in their order: a row for each fence that a key has
    entered or left since its last report.

    reports, fences  as the sides of join(); if reports is a stream of record batches,
                     the events of a batch are returned before the next batch is read
    key              column of the reports with the name of the moving object: texts
                     or integers.  Reports without a key or a place give no event
    op               within, intersects, coveredby ..., dwithin (with max_distance),
                     nearest (the event is a change of the nearest fence)
    stays            True: a fence that a key stays in is an event, too
    state            file with the fences of each key.  It is read before the first
                     report (no file: no fences) and written after the last event
    settings         as in join(): max_distance, on, x, y, fid, crs ...

    An iterator of record batches (or read_all(), reader(), ...): the columns of the
    reports, event ("enter", "exit", "stay", "change"), join_fid, join_distance if
    the join has one, and the columns of the fence that was entered or left.
    """
    for name, instead in (("how", "leave it out"), ("events", "write stays=True for all")):
        if settings.pop(name, None) is not None:
            raise InvalidError(f"{name} has no effect on events(): {instead}")
    settings.update(events="all" if stays else "changes", key=key)
    if state is not None:
        settings["state"] = os.fspath(state)
    return join(reports, fences, op, how=None, **settings)
