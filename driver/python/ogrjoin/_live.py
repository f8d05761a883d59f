"""Live: points that move, kept in an index between batches of changes."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from . import _core, _crs, _sides
from ._errors import InvalidError
from ._pairs import count_threads, frame_of, is_measured, values_of, warn_of_pairs

# Arguments of pairs() that need more of the right side than ids and
# coordinates.
_OF_OTHER_SIDES = ("on", "id", "texts", "score", "progress")


class LivePairs(NamedTuple):
    """Pairs with kept points, as Live.pairs() and Live.near_pairs() give them.

    left      row numbers of the left side, or ids of kept points; int64
    right     ids of kept points, int64
    distance  float64, or None where op measures nothing
    values    {name: array}: values of the pairs as in Pairs, and change from
              near_pairs(changes=True)

    Arrays of numbers are read-only views of memory of the library.
    """

    left: Any
    right: Any
    distance: Any
    values: dict[str, Any]

    def to_frame(self) -> Any:
        """The pairs as a pandas DataFrame."""
        return frame_of(self)


def _live_pairs_of_buffers(made: Any, is_measured: bool) -> LivePairs:
    left, right, measure, values, shapes, n_undecided, n_large = made
    warn_of_pairs(n_undecided, n_large, stacklevel=3)
    return LivePairs(
        np.frombuffer(left, "q"),
        np.frombuffer(right, "q"),
        np.frombuffer(measure, "d") if is_measured else None,
        values_of(values, shapes),
    )


def _given_settings(settings: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in settings.items() if v is not None and v is not False}


def _settings_of_kept_pairs(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of a join with kept points.  Settings that need
    other columns of the right side are an error."""
    asked = _given_settings(settings)
    for name in _OF_OTHER_SIDES:
        if name in asked:
            raise InvalidError(
                f"{name} has no effect on pairs of kept points, which have an id, x and "
                "y alone: leave it out, or use Live.join() or ogrjoin.pairs()"
            )
    return asked


class Live:
    """Points with ids (vehicles, vessels, phones) that are put, moved and removed in
    batches, and joined between batches.

    crs    of the points; needed if distances have units or left sides a CRS
    tree   auto, quadtree or kdtree

    A join uses the points as they were when it began.  Several threads may join while
    one thread applies changes.
    """

    def __init__(
        self,
        *,
        crs: Any = None,
        tree: str | None = None,
        threads: int | None = None,
        backend: str | None = None,
        _path: str | None = None,
    ) -> None:
        self._crs = _crs.as_text(crs)
        self._settings = {"threads": count_threads(threads), "backend": backend}
        self._live = _core.live(_given_settings({**self._settings, "tree": tree}), _path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Live:
        """Returns the points of a file that save() wrote.  The options are
        those of Live()."""
        return cls(_path=os.fspath(path), **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all points to a file, which gets its name when it is complete."""
        _core.live_save(self._live, os.fspath(path))

    def apply(self, ids: Any, x: Any, y: Any) -> None:
        """Puts or moves points, and removes points whose x is NaN, in one step.

        An id is also removed where x or y is a coordinate that no join takes: NaN,
        infinite, or beyond 1e150; counts["n_unjoinable"] has their number.

        ids, x, y  arrays of numpy, columns of Arrow or pandas, lists; ids are
                   whole numbers, and a missing x counts as NaN; if an id has
                   several changes, the last one counts

        After an error no change of the batch is applied.
        """
        n = len(ids)
        ids = _sides.as_column(ids, np.int64, n, "ids", "the batch")
        x = _sides.as_column(x, np.float64, n, "x", "ids")
        y = _sides.as_column(y, np.float64, n, "y", "ids")
        _core.live_apply(self._live, n, ids, x, y)

    def pairs(
        self,
        left: Any,
        op: str = "intersects",
        *,
        column: str | None = None,
        threads: int | None = None,
        **settings: Any,
    ) -> LivePairs:
        """Pairs of left with the kept points, as ogrjoin.pairs(left, points, op, ..);
        right are the ids of the points.

        left      any side of pairs(): geometries, Arrow, (x, y)
        settings  as of pairs(): k, max_distance, ties, bearing ..; settings without
                  effect, and those of other columns (on, texts ..), are an error
        """
        asked = _settings_of_kept_pairs({**self._settings, **settings, "op": op})
        if threads is not None:
            asked["threads"] = threads
        layer = _sides.make_layer(left, {"threads": asked["threads"], "side": "left"}, column)
        crs = _crs.expand(_crs.read_from_side(left)), _crs.expand(self._crs)
        made = _core.live_join(self._live, asked, layer, *crs)
        return _live_pairs_of_buffers(made, is_measured(op))

    def near_pairs(
        self, max_distance: float | str, *, changes: bool = False, **settings: Any
    ) -> LivePairs:
        """All pairs of kept points within a distance, each once: left is the
        smaller id.

        changes   only pairs that have changed since the last call with changes:
                  values["change"] is 1 for new pairs and -1 for lost pairs
        settings  as of pairs() with op dwithin
        """
        asked = {**self._settings, **settings, "max_distance": max_distance}
        asked = _settings_of_kept_pairs({**asked, "changes": changes})
        crs = (_crs.expand(self._crs),) * 2
        made = _core.live_join(self._live, asked, None, *crs)
        return _live_pairs_of_buffers(made, True)

    def join(self, left: Any, op: str = "intersects", **settings: Any) -> Any:
        """Returns ogrjoin.join(left, the kept points, op, ..): join_fid is the
        id of a point, and the columns of the right side are x and y.

        The call indexes all points as they are now.
        """
        from ._join import join

        settings.setdefault("right_crs", self._crs)
        settings.setdefault("fid", (None, "id"))
        settings.setdefault("threads", self._settings["threads"])
        return join(left, self.to_arrow(), op, right_x="x", right_y="y", **settings)

    def to_arrow(self) -> Any:
        """Returns a pyarrow table of all points with the columns id, x and y,
        by ascending id."""
        import pyarrow

        schema, array = _core.live_points(self._live)
        batch = pyarrow.RecordBatch._import_from_c_capsule(schema, array)
        return pyarrow.Table.from_batches([batch])

    @property
    def counts(self) -> dict[str, Any]:
        """Returns a dict of counts.

        Now: n points, n_pages, n_bytes; tree: the kind of tree, and why it was
        chosen.  Since the index was made: n_batches; n_put, new ids; n_moved;
        n_removed; n_unknown, removals of ids that were not kept; n_unjoinable,
        changes to coordinates that no join takes; n_superseded, changes of an id
        before its last one in a batch; n_rebuilt, batches that built all anew."""
        return _core.live_counts(self._live)

    def __len__(self) -> int:
        return int(self.counts["n"])

    def __repr__(self) -> str:
        return f"<ogrjoin.Live: {len(self)} points>"
