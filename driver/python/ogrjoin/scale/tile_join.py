"""The join of one tile: its input rows with the join rows that meet its reach.

    input rows   the columns of the left side and ROW, the unique row number
    join rows    the columns of the right side, and ROW unless it has a column of
                 FIDs; sorted by ROW or FID
    joined rows  the columns of ogrjoin.join(), and ROW of the input

A tile has every pair of its rows, so how, k, ties, pick and agg need no other tile.
Only right rows without a match (how=right, full) are added after all tiles.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pyarrow as pa

from .. import _crs
from .._errors import InvalidError, UnsupportedError
from .._join import join
from .._joined import Joined
from .._pairs import Validation, pairs, validate
from .._tables import TableSide
from .._scan import extension_of, mark_geometries, wkb_metadata
from . import boxes as _boxes
from .tiles import Tiles

ROW = "ogrjoin_row"
_DISTANCE = "ogrjoin_distance"
_NUMBER = "ogrjoin_number"

_REFUSED = {
    "one_to_one": "it chooses among the pairs of all rows",
    "max_pairs": "it counts the pairs of all rows",
    "progress": "it would start anew with each tile",
    "left_layer": "a side is a table",
    "right_layer": "a side is a table",
}
_IN_TILE = {"right": "inner", "full": "left"}
# Settings that decide which pairs are found; all other settings affect the rows only.
_OF_PAIRS = """
    op exclude exclude_self unordered unordered_pairs exclude_same_geometry backend
    threads gpus gpu_memory similar min_similarity vector max_difference norm measure
    tokens fold word_map on within_time during heading heading_both_ways left_column left_x left_y right_column right_x right_y
    left_fid right_fid left_crs right_crs crs max_distance_field
    join_max_distance_field batch_rows relate max_distance min_distance metric k ties
    distance_to distance densify
""".split()
_VALIDATED = """
    op relate max_distance min_distance metric k ties distance_to distance densify crs
    backend
""".split()
_NOT_VALIDATED = (
    "max_distance_field", "join_max_distance_field", "similar", "vector", "heading",
    "within_time", "during",
)  # fmt: skip


def _may_be_disjoint(pattern: str) -> bool:
    """Returns True if disjoint features can match a DE-9IM pattern."""
    return len(pattern) == 9 and all(pattern[i] in "Ff*" for i in (0, 1, 3, 4))


def _points(x: Any, crs: str | None) -> Any:
    """Makes a table of points (x, 0)."""
    wkb = np.zeros((len(x), 21), dtype=np.uint8)
    wkb[:, :5] = (1, 1, 0, 0, 0)
    wkb[:, 5:13] = np.asarray(x, dtype="<f8").reshape(-1, 1).view(np.uint8)
    offsets = pa.py_buffer(np.arange(len(x) + 1, dtype=np.int32) * 21)
    buffers = [None, offsets, pa.py_buffer(wkb.tobytes())]
    field = pa.field("geometry", pa.binary(), metadata=wkb_metadata(crs))
    array = pa.Array.from_buffers(pa.binary(), len(x), buffers)
    return pa.table([array], schema=pa.schema([field]))


class HeldSide:
    """A join side with its columns and, after the first join, its index."""

    def __init__(self, made: Joined) -> None:
        self._rows, self._settings = made._rows, dict(made._settings)

    def joined(self, left: Any) -> Joined:
        """Joins the rows of a tile, a table or a reader, with this join
        side."""
        settings = dict(self._settings)
        side = TableSide(left, "left", settings).open(settings)
        return Joined(self._rows, side, settings, None, None)


class TileJoin:
    """The options of a join of two sides with these schemas.  The constructor
    joins sides without rows, so that a wrong option is an error before any
    task starts.  The object is pickled and sent to the tasks.

    gpus_of_task  None, or a function (of a module, so that it can be pickled) that
                  returns the mask of the GPUs of the task that calls it, 0: none.
                  Joins on CUDA use these devices, unless the option gpus is given"""

    gpus_of_task: Callable[[], int] | None = None

    def __init__(self, left: Any, right: Any, options: dict[str, Any]) -> None:
        self.left, primary = mark_geometries(left)
        self.right, join_primary = mark_geometries(right)
        options = {k: v for k, v in options.items() if v is not None and v is not False}
        if "x" in options or "y" in options:
            options.update(left_x=options.pop("x", None), left_y=options.pop("y", None))
        fid = options.pop("fid", None)
        fids = (fid, fid) if fid is None or isinstance(fid, str) else fid
        for which, name in zip(("left", "right"), fids):
            if name is not None:
                options[f"{which}_fid"] = name
        for which, name in (("left", primary), ("right", join_primary)):
            if name and f"{which}_x" not in options:
                options.setdefault(f"{which}_column", name)
        for which in ("left", "right"):
            options[f"{which}_crs"] = _crs.as_text(options.get(f"{which}_crs"))
        self.op = str(options.setdefault("op", "intersects")).lower()
        self.metric = str(options.get("metric", "planar")).lower()
        self.how = str(options.get("how", "left")).lower()
        self.right_fid: str | None = options.get("right_fid")
        self._options = options
        self._refuse()
        self._place_columns("left"), self._place_columns("right")
        rows = self.left_rows.empty_table(), self.right_rows.empty_table()
        made = self._join(*rows, self.how)
        self.schema, self.geometry = made.schema, made._geometry
        self._distance = self._reach_distance()

    def _refuse(self) -> None:
        for name, why in _REFUSED.items():
            if self._options.get(name):
                raise UnsupportedError(
                    f"{name} is not possible in a join in tiles, since {why}: leave it out"
                )
        if self.metric == "ellipsoid":
            raise UnsupportedError(
                'metric="ellipsoid" is not possible in a join in tiles: write metric="sphere"'
            )
        if self._options.get("crs") == "reproject":
            raise UnsupportedError(
                'crs="reproject" is not possible in a join in tiles: transform the '
                "sides to one CRS first"
            )
        pattern = str(self._options.get("relate", ""))
        if self.op == "disjoint" or _may_be_disjoint(pattern):
            asked = f"relate={pattern}" if pattern else "op=disjoint"
            raise UnsupportedError(
                f"{asked} pairs rows that do not meet, so every tile would need the "
                "whole join side: ask for the rows that do, with how=anti"
            )
        if self.op == "similar" and "max_distance" not in self._options:
            raise UnsupportedError(
                "op=similar without max_distance pairs rows wherever they are, so "
                "every tile would need the whole join side: give max_distance"
            )
        if self.op == "attributes":
            raise UnsupportedError(
                "op=attributes pairs rows wherever they are: the engine joins equal "
                "values itself, as left.join(right, on=...) does in Spark"
            )
        for schema, which in ((self.left, "left"), (self.right, "right")):
            if ROW in schema.names:
                raise InvalidError(f"the {which} side has a column {ROW}: rename it")

    # ---- columns and numbers of rows ----------------------------------------

    @property
    def left_rows(self) -> Any:
        """The schema of input rows."""
        return self.left.append(pa.field(ROW, pa.int64()))

    @property
    def right_rows(self) -> Any:
        """The schema of join rows."""
        if self.right_fid is not None:
            return self.right
        return self.right.append(pa.field(ROW, pa.int64()))

    @property
    def right_number(self) -> str:
        """The name of the column of join rows by which they are sorted: the
        FID, or ROW."""
        return self.right_fid or ROW

    def _place_columns(self, which: str) -> tuple[str | None, str | None, str | None]:
        """Returns (geometry column, None, None) of a side, or (None, x, y): coordinate columns."""
        x, y = (self._options.get(f"{which}_{axis}") for axis in "xy")
        if x is not None:
            return None, x, y
        schema = self.left if which == "left" else self.right
        column = self._options.get(f"{which}_column")
        if column is None:
            marked = [field.name for field in schema if extension_of(field)]
            if len(marked) != 1:
                raise InvalidError(
                    f"the {which} side has {len(marked)} columns that are marked as "
                    f"geometries: name the one to join by, {which}_column="
                )
            column = self._options[f"{which}_column"] = marked[0]
        return column, None, None

    def crs(self, which: str) -> str | None:
        """Returns the CRS of a side as a text, or None."""
        given: str | None = self._options.get(f"{which}_crs")
        column = self._place_columns(which)[0]
        if given is not None or column is None:
            return given
        return _crs.read_from_field((self.left if which == "left" else self.right).field(column))

    # ---- reach ---------------------------------------------------------------

    def _distance_in_units(self, distance: float | str) -> float:
        """Converts a distance to a number in units of the join (metres on the sphere),
        rounded up. Only the library knows the units: it joins points at increasing
        distances, and the first point beyond the distance is the result. Returns
        infinity if no point is beyond the distance."""
        if not isinstance(distance, str) or distance.lower().startswith("inf"):
            return float(distance[:3]) if isinstance(distance, str) else float(distance)
        sphere = self.metric == "sphere"
        settings = {k: v for k, v in self._options.items() if k in ("metric", "crs")}
        fan = np.concatenate(([0.0], 2.0 ** np.arange(-340, 490)))
        for _ in range(2):
            fan = fan[fan <= (180.0 if sphere else _boxes.MOST)]
            sides = _points(fan[:1] * 0, self.crs("left")), _points(fan, self.crs("right"))
            n = len(pairs(*sides, "dwithin", max_distance=distance, **settings))
            if n == len(fan):
                return float("inf")
            fan = np.linspace(fan[n - 1], fan[n], 1025)
        # fan[-1] is the first tested point beyond the distance.
        return float(fan[-1] * (np.radians(1) * _boxes.RADIUS if sphere else 1.0))

    def _reach_distance(self) -> float:
        """Returns the maximum distance of a pair, in units of the join.  If a
        column holds the distances, returns the length of one unit of the
        column."""
        for name in ("max_distance_field", "join_max_distance_field"):
            field = self._options.get(name)
            if field is not None:
                unit = self._distance_column(name)[1]
                return self._distance_in_units(f"1{unit}") if unit else 1.0
        if "max_distance" in self._options:
            return self._distance_in_units(self._options["max_distance"])
        return float("inf") if self.op == "nearest" else 0.0

    def _distance_column(self, name: str) -> tuple[str, str]:
        """Returns (column, unit or "") of a setting that names a column of distances."""
        text = str(self._options[name])
        schema = self.left if name == "max_distance_field" else self.right
        if text in schema.names or ":" not in text:
            return text, ""
        column, unit = text.rsplit(":", 1)
        return column, unit

    def _distances(self, table: Any, name: str, otherwise: float) -> Any:
        if self._options.get(name) is None:
            return otherwise
        column = table.column(self._distance_column(name)[0]).cast(pa.float64())
        return np.asarray(column.to_numpy(), dtype=np.float64) * self._distance

    @property
    def options(self) -> dict[str, Any]:
        """A copy of the options, by name."""
        return dict(self._options)

    @property
    def reach_columns(self) -> list[str]:
        """The columns of input rows that left_boxes() and left_reach()
        read."""
        names = [name for name in self._place_columns("left") if name is not None]
        if self._options.get("max_distance_field") is not None:
            names.append(self._distance_column("max_distance_field")[0])
        return names

    @property
    def right_place_columns(self) -> list[str]:
        """The columns of join rows that right_boxes() reads places from."""
        return [name for name in self._place_columns("right") if name is not None]

    @property
    def is_unbounded(self) -> bool:
        """True for nearest without max_distance: the reach of a row then needs bounds()."""
        return self.op == "nearest" and not np.isfinite(self._distance)

    @property
    def reach_distance(self) -> float:
        """The maximum distance of a pair, or NaN if a column holds the distances."""
        names = ("max_distance_field", "join_max_distance_field")
        return float("nan") if any(n in self._options for n in names) else self._distance

    def left_boxes(self, table: Any) -> Any:
        """Returns the boxes of input rows, not widened: they decide the owner of a row."""
        return _boxes.of_table(table, *self._place_columns("left"))

    def left_reach(self, table: Any, boxes: Any, bounds: Any = np.inf) -> Any:
        """Returns left_boxes(), widened by the maximum distance, or by bounds
        where they are less."""
        at_right = self._options.get("join_max_distance_field") is not None
        distance = 0.0 if at_right else self._distances(table, "max_distance_field", self._distance)
        distance = np.nan_to_num(distance, nan=0.0, posinf=np.inf)  # NaN counts as 0, see widened()
        return _boxes.widened(boxes, np.fmin(distance, bounds), self.metric)

    def right_boxes(self, table: Any) -> Any:
        """Returns the boxes of join rows, widened by their maximum distances, if they have any."""
        boxes = _boxes.of_table(table, *self._place_columns("right"))
        distance = self._distances(table, "join_max_distance_field", 0.0)
        return _boxes.widened(boxes, distance, self.metric)

    def assign(self, table: Any, tiles: Tiles, bounds: Any = np.inf) -> tuple[Any, Any]:
        """Returns (tile, reach) of input rows.  Rows with an infinite reach
        have the tile len(tiles)."""
        boxes = self.left_boxes(table)
        tile = tiles.owners(boxes, table.column(ROW).to_numpy())
        reach = self.left_reach(table, boxes, bounds)
        tile[_boxes.is_endless(reach)] = len(tiles)
        return tile, reach

    # ---- joins ---------------------------------------------------------------

    def task_gpus(self) -> int:
        """Returns the mask of the GPUs of this task; 0 if gpus_of_task is None or
        returns 0, or if the option gpus is given, which then decides."""
        if self.gpus_of_task is None or "gpus" in self._options:
            return 0
        return self.gpus_of_task()

    def _join(self, left: Any, right: Any, how: str, **changes: Any) -> Joined:
        options = {**self._options, "how": how, "right_fid": self.right_number}
        options.setdefault("left_fid", ROW)
        if "left_select" in options:
            given = options["left_select"]
            names = given.split(",") if isinstance(given, str) else list(given)
            options["left_select"] = ",".join([*filter(None, names), ROW])
        options.update(changes)
        if gpus := self.task_gpus():
            options["gpus"] = gpus
        if options.get("along") == "m":  # the lines of a tile may all lack M values
            options["right_is_part"] = 1
        op = options.pop("op")
        return join(left, right, op, **options)

    def joined(self, left: Any, right: Any) -> Joined:
        """Joins the rows of a tile.  left: a table or a reader; right: a table."""
        return self._join(left, right, _IN_TILE.get(self.how, self.how))

    def hold(self, right: Any) -> HeldSide:
        """Makes a join side that is indexed once and joined with many parts of the input."""
        none = self.left_rows.empty_table()
        return HeldSide(self._join(none, right, _IN_TILE.get(self.how, self.how)))

    @property
    def shows_pairs(self) -> bool:
        """True if joined rows contain the join row number of every pair."""
        name = self.fid_name
        is_own = name in self.schema.names and name not in self.left.names
        return "pick" not in self._options and is_own

    def numbers_in(self, rows: Any) -> Any:
        """Returns the distinct numbers of the join rows in joined rows (a
        table or batch).  Needs shows_pairs."""
        column = rows.column(self.fid_name)
        return np.unique(np.asarray(column.drop_null()))

    def _pairs_of(self, left: Any, right: Any, **changes: Any) -> Joined:
        """Returns all pairs: the column ROW of the input, and the columns that
        `changes` requests."""
        kept = {name: v for name, v in self._options.items() if name in _OF_PAIRS}
        one = TileJoin.__new__(TileJoin)
        one.__dict__.update(self.__dict__, _options=kept)
        return one._join(
            left, right, "inner", geometry="none", left_select=ROW, right_select="", **changes
        )

    def bounds(self, left: Any, sample: Any) -> Any:
        """Returns, for each input row, the distance of the k-th nearest row of
        a sample of join rows: an upper bound of the distance of its k-th
        nearest join row.  It is infinite if fewer than k are found."""
        numbers = left.column(ROW).to_numpy()
        made = np.full(len(numbers), np.inf)
        rows = self._pairs_of(left, sample, ties="first", name_distance=_DISTANCE).read_all()
        number, distance = rows.column(ROW).to_numpy(), rows.column(_DISTANCE).to_numpy()
        if len(number) == 0:
            return made
        start = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        has_k = np.diff(np.append(start, len(number))) >= int(self._options.get("k", 1))
        order = np.argsort(numbers, kind="stable")
        at = order[np.searchsorted(numbers, number[start[has_k]], sorter=order)]
        made[at] = np.maximum.reduceat(distance, start)[has_k]
        return made

    def matched(self, left: Any, right: Any) -> Any:
        """Returns the distinct numbers of the join rows that have pairs in a tile."""
        rows = self._pairs_of(left, right, name_fid=_NUMBER).read_all()
        return np.unique(rows.column(_NUMBER).to_numpy())

    def of_pairs(self) -> TileJoin:
        """Returns a join for the pairs only: its rows have the number of the join row."""
        kept = {name: v for name, v in self._options.items() if name in _OF_PAIRS}
        kept.update(how="inner", geometry="none", left_select="", right_select="")
        job = TileJoin(self.left, self.right, {**kept, "name_fid": _NUMBER})
        job.gpus_of_task = self.gpus_of_task
        return job

    @property
    def fid_name(self) -> str:
        """The column of joined rows with the number of the join row."""
        return str(self._options.get("name_fid", "join_fid"))

    def validate(self, left: Any, right: Any) -> Validation:
        """Compares the pairs of a tile with the pairs found by GEOS."""
        odd = [name for name in _NOT_VALIDATED if self._options.get(name)]
        if odd:
            raise UnsupportedError(
                f"pairs with {odd[0]} are not compared with GEOS: leave it out for validate()"
            )
        kept = {name: v for name, v in self._options.items() if name in _VALIDATED}
        sides: list[Any] = []
        for which, table in (("left", left), ("right", right)):
            column, x, y = self._place_columns(which)
            if column is None:
                sides.append((np.asarray(table.column(x)), np.asarray(table.column(y))))
            else:
                sides.append(table.select([column]))
        return validate(sides[0], sides[1], **kept)

    def unmatched(self, right: Any) -> Joined:
        """Returns the rows of how=right and full for join rows without a match in any tile."""
        return self._join(self.left_rows.empty_table(), right, "right")

    def unpaired(self, left: Any) -> Any:
        """Makes a table of the rows of how=left for a table of input rows without any pair."""
        return self._join(left, self.right_rows.empty_table(), "left").read_all()

    def unnumbered(self, rows: Any) -> Any:
        """Returns a table, batch or schema of joined rows without ROW, as from ogrjoin.join()."""
        if isinstance(rows, pa.Schema):
            return rows.remove(rows.get_field_index(ROW))
        return rows.drop_columns([ROW])

    @property
    def box_column(self) -> str | None:
        """The column of joined rows with the boxes of their geometries.  None
        if the input has no such column, or if the geometries are not those of
        the input."""
        is_input = self._options.get("geometry", "input") == "input"
        if not is_input or self.how in ("right", "full") or "bbox" not in self.schema.names:
            return None
        kind = self.schema.field("bbox").type
        names = {f.name for f in kind} if pa.types.is_struct(kind) else set()
        return "bbox" if names >= {"xmin", "ymin", "xmax", "ymax"} else None
