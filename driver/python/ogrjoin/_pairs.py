"""pairs() and Index: the pairs of a join as numpy arrays of row numbers."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from . import _core, _crs, _sides, _values
from ._errors import Error, InvalidError, UnsupportedError

if TYPE_CHECKING:
    from ._joined import Joined


class Pairs:
    """Pairs of rows, sorted by left; pairs of one left row are sorted by (distance,
    right) if op is nearest, otherwise by right.

    left, right  row numbers, int64, made when they are first read
    offsets      int64, [n_left + 1]: the pairs of left row first + i are
                 offsets[i] to offsets[i + 1] - 1
    right32      right as int32
    distance     float64; None if op measures no distance
    first        number of the first left row: 0, except in batches
    n_left       number of left rows
    values       {name: float64} of the requested values: overlap_area,
                 overlap_length, overlap_percent, nearest_x, nearest_y, from_x,
                 from_y, bearing, line_along, line_along_percent, line_offset,
                 line_segment, line_bearing, similarity, similarity_2 ..., difference;
                 line_side, matrix, relation: str, or None;
                 intersection: WKB

    offsets, right32, distance and values are read-only views of memory of the
    library, which is freed with the last view.
    """

    __slots__ = (
        "offsets",
        "right32",
        "distance",
        "n_left",
        "values",
        "first",
        "_left",
        "_right",
        "_made",
        "_index",
    )

    offsets: npt.NDArray[np.int64]
    right32: npt.NDArray[np.int32]
    distance: Any  # npt.NDArray[np.float64], or None: the join has no distance
    n_left: int
    values: dict[str, npt.NDArray[Any]]
    first: int

    def __init__(
        self,
        offsets: Any,
        right32: Any,
        distance: Any,
        n_left: int,
        values: dict[str, Any],
        first: int = 0,
        made: Any = None,
        index: Any = None,
    ) -> None:
        self.offsets = offsets
        self.right32 = right32
        self.distance = distance
        self.n_left = n_left
        self.values = values
        self.first = first
        self._left: npt.NDArray[np.int64] | None = None
        self._right: npt.NDArray[np.int64] | None = None
        self._made = made  # capsule of the pairs in the C library
        self._index = index  # capsule of the index, or the name of its backend

    def __len__(self) -> int:
        return len(self.right32)

    @property
    def left(self) -> npt.NDArray[np.int64]:
        if self._left is None:
            self._left = np.empty(len(self), dtype=np.int64)
            _core.fill_left(self.offsets, self.first, self._left)
        return self._left

    @property
    def right(self) -> npt.NDArray[np.int64]:
        if self._right is None:
            self._right = self.right32.astype(np.int64)
        return self._right

    @property
    def backend(self) -> str:
        """Returns the name of the backend that found the pairs, for example
        cpu or cuda."""
        return self._index if isinstance(self._index, str) else _core.backend(self._index)

    def of_rows(self, first: int, n: int) -> Pairs:
        """Returns the pairs of n left rows from row first on; row first becomes row 0."""
        if not 0 <= first <= first + n <= self.n_left:
            raise InvalidError(
                f"of_rows({first}, {n}): there are {self.n_left} left rows, of which the "
                f"first is row 0"
            )
        offsets = self.offsets[first : first + n + 1]
        a, b = offsets[0], offsets[-1]
        distance = None if self.distance is None else self.distance[a:b]
        values = {name: column[a:b] for name, column in self.values.items()}
        right32, index = self.right32[a:b], self._index
        return Pairs(offsets - a, right32, distance, n, values, index=index)

    def to_frame(self) -> Any:
        """Returns a pandas DataFrame: left, right, distance if the join has
        one, and the requested values."""
        return frame_of(self)

    def __repr__(self) -> str:
        rows = f"{self.n_left} left rows"
        return f"<ogrjoin.Pairs: {len(self)} pairs of {rows} with the right ones>"

    def _repr_html_(self) -> str:
        return f"<p>{len(self)} pairs, the first:</p>{self._first_pairs_frame().to_html()}"

    def _first_pairs_frame(self) -> Any:
        import pandas

        n = min(len(self), 5)
        left = np.searchsorted(self.offsets, np.arange(n), "right") - 1 + self.first
        columns = {"left": left, "right": self.right32[:n]}
        if self.distance is not None:
            columns["distance"] = self.distance[:n]
        return pandas.DataFrame({**columns, **{k: v[:n] for k, v in self.values.items()}})

    def __reduce__(self) -> Any:
        """Pickles the arrays and the name of the backend."""
        values = {name: np.array(v) for name, v in self.values.items()}
        distance = None if self.distance is None else np.array(self.distance)
        arrays = np.array(self.offsets), np.array(self.right32), distance
        backend = None if self._index is None else self.backend
        return Pairs, (*arrays, self.n_left, values, self.first, None, backend)


def is_measured(op: str | None) -> bool:
    """Returns True if op measures a distance.  None is the default of the library,
    nearest."""
    return (op or "nearest").lower() in ("nearest", "dwithin")


# Values of pairs that the C library returns as codes of words.
_WORDS = {"line_side", "matrix", "relation"}


def _words_of_codes(name: str, values: Any) -> Any:
    codes, at = np.unique(values, return_inverse=True)
    words = np.empty(len(codes), dtype=object)
    words[:] = [_core.pair_word(name, code) for code in codes]
    return words[at]


def frame_of(pairs: Any) -> Any:
    """Returns the columns of Pairs or LivePairs as a pandas DataFrame."""
    import pandas

    columns = {"left": pairs.left, "right": pairs.right}
    if pairs.distance is not None:
        columns["distance"] = pairs.distance
    return pandas.DataFrame({**columns, **pairs.values})


def values_of(buffers: dict[str, Any], shapes: Any) -> dict[str, Any]:
    """Returns the values of pairs by name: numbers, words, and WKB of
    intersections. shapes is (offsets, bytes) of the WKB, or None."""
    named = {name: np.frombuffer(column, "d") for name, column in buffers.items()}
    for name in _WORDS.intersection(named):
        named[name] = _words_of_codes(name, named[name])
    if shapes is not None:
        named["intersection"] = _wkb_of_intersections(shapes)
    return named


def warn_of_pairs(n_undecided: int, n_large: int, stacklevel: int) -> None:
    """Warns of pairs that the C library left out, and of groups of pairs that were too
    large for one_to_one to find the best choice."""
    if n_undecided:
        warnings.warn(
            f"{n_undecided} pairs are missing, because GEOS could not decide them, mostly "
            "where geometries are invalid: make them valid first, as by shapely.make_valid()",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
    if n_large:
        warnings.warn(
            f"one_to_one best: {n_large} groups of more than 1000000 connected pairs "
            "were chosen greedily, best pairs first; a smaller max_distance makes smaller groups",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )


def _pairs_of_result(made: Any, op: str | None, first: int, index: Any) -> Pairs:
    """Returns the Pairs of a result of the C library. first is the number of the first
    left row."""
    handle, offsets, right32, measure, values, shapes, n_undecided, n_large = made
    offsets, right32 = np.frombuffer(offsets, "q"), np.frombuffer(right32, "i")
    distance = np.frombuffer(measure, "d") if is_measured(op) else None
    warn_of_pairs(n_undecided, n_large, stacklevel=4)
    return Pairs(
        offsets,
        right32,
        distance,
        len(offsets) - 1,
        values_of(values, shapes),
        first,
        handle,
        index,
    )


def _concatenate_pairs(pieces: list[Pairs], index: Any) -> Pairs:
    """Concatenates the pairs of consecutive runs of left rows."""
    first, last = pieces[0], pieces[-1]
    ends = np.cumsum([len(p) for p in pieces])
    shifted = [p.offsets[1:] + end - len(p) for p, end in zip(pieces, ends)]
    distance = None
    if first.distance is not None:
        distance = np.concatenate([p.distance for p in pieces])
    return Pairs(
        np.concatenate([first.offsets[:1], *shifted]),
        np.concatenate([p.right32 for p in pieces]),
        distance,
        sum(p.n_left for p in pieces),
        {k: np.concatenate([p.values[k] for p in pieces]) for k in first.values},
        first.first,
        last._made,
        index,
    )


def pad_unpaired_rows(left: Any, n_left: int, *columns: Any) -> tuple[Any, ...]:
    """Adds an entry for each left row without a pair to left (sorted) and to columns.
    The added entries of columns are -1, NaN (floats) or None (objects). A column may be
    None; it stays None. Returns the padded left, then the padded columns."""
    n_pairs = np.bincount(left, minlength=n_left)
    rows = np.maximum(n_pairs, 1)
    has_pair = np.repeat(n_pairs > 0, rows)
    padded: list[Any] = [np.repeat(np.arange(n_left), rows)]
    for column in columns:
        if column is not None:
            none: Any = {"f": np.nan, "O": None}.get(column.dtype.kind, -1)
            filled = np.full(len(has_pair), none, dtype=column.dtype)
            filled[has_pair] = column
            column = filled
        padded.append(column)
    return tuple(padded)


_PROGRESS_ROWS = 65536
_ALL_ROWS = 2**62

# Maximum number of indexes that an Index keeps, one per combination of settings.
_MOST_INDEXES = 4

# Settings of join() for which the index needs columns of the right side.
_OF_COLUMNS = (
    "on", "exclude", "right_fid", "max_distance_field", "join_max_distance_field",
    "similar", "vector", "within_time", "during", "heading", "heading_both_ways",
)  # fmt: skip

# Settings that do not affect the index, but only values and rows of pairs.
_NOT_OF_INDEX = {
    name
    for name, help in _core.settings().items()
    if help.startswith("rows:") and name != "crs"
} | {
    "pick", "one_to_one", "overlap_area", "overlap_length", "overlap_percent",
    "nearest_point", "nearest_point_fields", "from_point", "bearing", "bearing_field",
    "line_along", "line_along_percent", "line_offset", "line_side", "line_segment",
    "line_bearing", "matrix", "relation",
    "intersection", "share", "side", "first_row", "max_pairs", "threads", "backend",
}  # fmt: skip

# Scratch memory is freed after joins of more rows than this.
_KEPT_ROWS = 65536

Progress = Callable[[int, int], object]


def count_threads(threads: int | None) -> int:
    """Returns threads.  If threads is None, returns the value of
    OGRJOIN_NUM_THREADS, or 0 (all processors of the process) without this
    variable."""
    if threads is None:
        threads = int(os.environ.get("OGRJOIN_NUM_THREADS") or 0)
    return threads


def word_map_text(words: Any) -> str:
    """Returns the lines of a word map, which is a dict {word: replacement} or a file."""
    if hasattr(words, "items"):
        return "".join(f'"{a}","{b}"\n' for a, b in words.items())
    if not isinstance(words, (str, os.PathLike)):  # open() takes a number for a descriptor
        raise InvalidError(f"word_map must be a dict or the name of a file, not {words!r}")
    with open(words, encoding="utf-8") as file:
        return file.read()


def _asks_for_m_values(along: Any) -> bool:
    """Returns True if the setting along asks for M values. Other values are checked by
    the library."""
    return isinstance(along, str) and along.lower() == "m"


def _wkb_of_intersections(made: tuple[Any, Any]) -> Any:
    """Returns the WKB of the intersection of each pair, or None for a pair
    without one."""
    offsets, data = np.frombuffer(made[0], "q"), bytes(made[1])
    shapes = np.empty(len(offsets) - 1, dtype=object)
    shapes[:] = [data[a:b] or None for a, b in zip(offsets[:-1], offsets[1:])]
    return shapes


_SIDE = {"left": "the left side", "right": "the right side"}


def _add_columns(
    layer: Any,
    which: str,
    id: Any = None,
    distance: Any = None,
    classes: Any = None,
    score: Any = None,
    texts: Any = (),
) -> None:
    """Adds the columns to a layer of the left or right side."""
    n, of = _core.count(layer), _SIDE[which]

    def column(values: Any, dtype: Any, name: str) -> Any:
        return None if values is None else _sides.as_column(values, dtype, n, name, of)

    for i, values in enumerate(texts):
        _sides.check_length(values, n, f"texts[{i}]", of)
    _core.set_columns(
        layer,
        column(id, np.int64, "id"),
        column(distance, np.float64, "max_distance"),
        column(classes, np.int32, "on"),
        column(score, np.int64, "score"),
    )
    for i, values in enumerate(texts):
        offset, data = _values.text_buffers(values)
        _sides.check_length(offset[1:], n, f"texts[{i}]", of)
        _core.add_text(layer, offset, memoryview(data)[: offset[-1]])


def _split_left_right(name: str, values: Any) -> tuple[Any, Any]:
    """Splits an argument of pairs() into its left and right values. Returns (None,
    None) if values is None."""
    if values is None:
        return None, None
    if not isinstance(values, (tuple, list)) or len(values) != 2:
        names = isinstance(values, (str, list)) and name == "on"
        raise InvalidError(
            f"{name} needs a pair: (left values, right values), one value for each row"
            + ("; names of columns belong to join(on=...)" if names else "")
        )
    return values[0], values[1]


def _is_texts_or_vectors(side: Any, settings: dict[str, Any], texts: Any) -> bool:
    """Returns True if side is texts or vectors, which are compared without geometries.
    Geometries are no values: the library refuses them."""
    is_alone = settings.get("max_distance") is None and not len(texts)
    if not is_alone or (settings.get("op") or "").lower() != "similar":
        return False
    if not isinstance(side, (list, np.ndarray)) and (
        not hasattr(side, "to_numpy") or hasattr(side, "columns")
    ):
        return False
    values = _compared_values(side)
    first = next((v for v in values if v is not None), None)
    return not hasattr(first, "__geo_interface__")


def _compared_values(side: Any) -> Any:
    """Returns texts or vectors as an array.  A missing text, and a vector with a masked
    number, is None."""
    if isinstance(side, np.ma.MaskedArray) and side.ndim > 1 and np.ma.is_masked(side):
        rows = np.fromiter(side.data, object, len(side))
        rows[np.ma.getmaskarray(side).reshape(len(side), -1).any(axis=1)] = None
        return rows
    if not isinstance(side, list):
        side = np.asarray(_sides.without_mask(_sides.without_extension(side)))
        if side.dtype != object:
            return side
    return np.fromiter((None if _values.is_missing(v) else v for v in side), object, len(side))


def _is_text(values: Any) -> bool:
    if values.dtype != object:
        return bool(values.dtype.kind in "UT")
    return all(v is None or isinstance(v, str) for v in values)


def _layer_of_values(values: Any, which: str, first: int) -> Any:
    """Makes a layer of texts or vectors without geometries. which: left or right, and
    first: the number of the first row, for errors. Returns the layer."""
    n = len(values)
    nowhere = np.full(n, np.nan)
    layer = _core.arrays(n, nowhere, nowhere)
    if _is_text(values):
        _add_columns(layer, which, texts=[values])
        return layer
    if values.dtype != object:
        sizes = np.full(n, values.shape[1] if values.ndim == 2 else 1)
        numbers = values.reshape(-1)
    else:
        rows = [() if v is None else v for v in values]
        for i, row in enumerate(rows):
            if not hasattr(row, "__len__"):
                raise InvalidError(
                    f"{which} side: row {first + i} has the type {type(row).__name__}, and "
                    'op="similar" compares texts or vectors: give lists of these, or another op'
                )
        sizes = np.array([len(row) for row in rows])
        numbers = np.concatenate(rows or [()])
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    _core.set_vectors(layer, _sides.offsets(sizes), numbers)
    return layer


# Predicates of shapely and GeoPandas, and the op for each.
PREDICATES = {
    "contains": "contains",
    "contains_properly": "contains_properly",
    "covered_by": "coveredby",
    "covers": "covers",
    "crosses": "crosses",
    "dwithin": "dwithin",
    "intersects": "intersects",
    "overlaps": "overlaps",
    "touches": "touches",
    "within": "within",
    None: "bbox",
}


def similar_words(similar: Any) -> Any:
    """Converts a list of conditions to one text for the C library, which checks other
    values."""
    return ",".join(similar) if isinstance(similar, (list, tuple)) else similar


class _Plan(NamedTuple):
    """A join of a left side with an index, whose arguments are checked."""

    settings: dict[str, Any]
    index: Any  # index of _core; None: made when the SRID of the first left rows is read
    reading: dict[str, Any]  # settings for reading the left side
    column: str | None
    id: Any
    max_distance: Any  # array of one value per left row, or None
    classes: Any
    texts: Any
    layer: Any  # the right side with the classes of on, or None
    crs: Any  # CRS of the left side
    takes_srid: bool  # the CRS of the left side is that of the SRID of its rows

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that have a value for each left row, by argument name."""
        named = {"id": self.id, "max_distance": self.max_distance, "on": self.classes}
        named.update({f"texts[{i}]": text for i, text in enumerate(self.texts)})
        return {name: values for name, values in named.items() if values is not None}

    @property
    def has_columns(self) -> bool:
        return len(self.columns) > 0

    def check_rows(self, n: int, is_all: bool = True) -> None:
        """Raises an error if a column has fewer than n values.  With is_all, n
        is the number of all left rows, and a column with more values is an
        error, too."""
        for name, values in self.columns.items():
            if is_all:
                _sides.check_length(values, n, name, _SIDE["left"])
            elif len(values) < n:
                raise InvalidError(
                    f"{name} has {len(values)} values, and the left side has {n} rows "
                    "or more: give one for each"
                )


class Index:
    """A join side that stays in memory, with one index for each kind of join.  Arrays,
    lists, frames and GeoJSON are copied, so that later changes of them have no effect;
    tables of Arrow are used in place; a stream or a query is read into a table.

    on     a value for each row: only pairs with equal values count
    id     a number for each row, used instead of the row number for ties and
           exclude_self
    score  a number for each row: pick="score" takes the greatest
    texts  columns of texts, one for each condition of similar
    similar, vector
           columns that joins compare, as in pairs(); they are read with the
           geometries
    op     "similar" or "attributes" if the joins will need no geometries
    along  "m": read the M values of lines, for joins with along="m"

    Several threads may join with it at once.
    """

    def __init__(
        self,
        right: Any,
        *,
        column: str | None = None,
        on: Any = None,
        id: Any = None,
        score: Any = None,
        texts: Any = (),
        similar: Any = None,
        vector: str | None = None,
        op: str | None = None,
        along: str | None = None,
        threads: int | None = None,
        backend: str | None = None,
        _is_kept: bool = True,
    ) -> None:
        of_right = _crs.read_from_side(right)
        if _is_kept:  # False: one join is made at once
            right, id, score = _sides.own(right), _sides.own(id), _sides.own(score)
            texts = [_sides.own(text) for text in texts]
        readable = _sides.with_crs(right)
        of_right = of_right or _crs.read_from_side(readable)
        if not _is_kept or _sides.is_once(right):
            right = readable
        self._right = right  # for join()
        self._has_m = _asks_for_m_values(along)
        self._compared = {"similar": similar_words(similar), "vector": vector}
        self._column = column
        self._settings = {"threads": count_threads(threads), "backend": backend}
        if similar is None and vector is None and _is_texts_or_vectors(right, {"op": op}, texts):
            name = "similar" if _is_text(_compared_values(right)) else "vector"
            self._compared[name] = "value"
        settings = {"op": op, **self._compared}
        self._layer = self._make_layer(right, "right", settings, column, texts)
        self._crs = of_right
        self._indexes: dict[Any, Any] = {}  # the last _MOST_INDEXES that were used
        self._rows: Any = None  # the right side with its columns, for join()
        _add_columns(self._layer, "right", id, score=score, texts=texts)
        self._has_id = id is not None
        self._classes: Any = None  # classes of the values of on
        if on is not None:
            _sides.check_length(on, len(self), "on", _SIDE["right"])
            self._classes = _core.classes(*_values.column_of(on))
        # Layers by the address of their array of classes. A column of numbers has two
        # such arrays: one for comparison with numbers, one for comparison with texts.
        self._with_classes: dict[int | None, Any] = {}
        self._remake = settings, column, texts, id, score

    def _make_layer(
        self,
        side: Any,
        which: str,
        settings: dict[str, Any],
        column: str | None,
        texts: Any = (),
        first: int = 0,
    ) -> Any:
        """Makes the layer of a side (which: "left" or "right") for joins with settings.
        first is the number of its first row, for errors."""
        if _is_texts_or_vectors(side, settings, texts):
            both = [s for s in (side, self._right) if isinstance(s, np.ndarray)]
            if len({array.shape[1:] for array in both}) > 1:
                left, right = (a.shape[1] if a.ndim > 1 else 1 for a in both)
                raise InvalidError(
                    f"the vectors of left have {left} numbers, those of right {right}: "
                    "give vectors of equal length"
                )
            return _layer_of_values(_compared_values(side), which, first)
        reading = {**self._settings_for_reading(which, settings), "first_row": first}
        return _sides.make_layer(side, reading, column)

    def _settings_for_reading(self, side: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Returns the settings for reading a side for a join with these settings."""
        reading = {"threads": self._settings["threads"], "side": side}
        if _sides.reads_columns(settings):
            names = ("op", "max_distance", "similar", "vector")
            reading.update({name: settings.get(name) for name in names})
        if self._has_m and side == "right":
            reading["along"] = "m"
        return reading

    def __len__(self) -> int:
        return _core.count(self._layer)

    def _classes_of(self, on: Any) -> tuple[Any, Any]:
        """Returns (classes of the left values, layer of this side with its classes)."""
        if not hasattr(on, "__len__"):
            raise InvalidError(
                f"on must be a column with a value for each left row, not {type(on).__name__}"
            )
        of_left = np.empty(len(on), dtype=np.int32)
        found = _core.find_classes(self._classes, *_values.column_of(on), of_left, len(self))
        of_right = np.frombuffer(found, "i")
        key = of_right.__array_interface__["data"][0]
        if key not in self._with_classes:
            layer = self._layer
            if self._with_classes:
                settings, column, texts, id, score = self._remake
                layer = self._make_layer(self._right, "right", settings, column, texts)
                _add_columns(layer, "right", id, score=score, texts=texts)
            _core.set_columns(layer, None, None, of_right, None)
            self._with_classes[key] = layer
        return of_left, self._with_classes[key]

    def _index(self, crs: Any, settings: dict[str, Any], layer: Any = None) -> Any:
        """Returns the index for a left side in the CRS crs.  layer is this
        side with classes, or None."""
        pair = crs, self._crs
        if settings["crs"] != "ignore":
            right_crs = self._crs or _crs.read_from_layer(self._layer, "right")
            pair = _crs.expand(crs), _crs.expand(right_crs)
        words = {k: str(v) for k, v in settings.items() if v is not None}
        key = (pair, id(layer), *sorted(words.items()))
        index = self._indexes.pop(key, None)
        if index is None:
            made = self._layer if layer is None else layer
            index = _core.index(made, {**self._settings, **settings}, *pair)
        self._indexes[key] = index  # last: most recently used
        while len(self._indexes) > _MOST_INDEXES:
            self._indexes.pop(next(iter(self._indexes)), None)
        return index

    def _index_of_rows(self, left: Any, words: dict[str, Any]) -> Any:
        """Returns the index of pairs() if join() can use it with these
        settings.  Returns None if join() needs an index with more columns."""
        if self._classes is not None or any(name in words for name in _OF_COLUMNS):
            return None
        asked = {k: v for k, v in words.items() if k not in _NOT_OF_INDEX}
        try:
            return self._index(left.crs(words.get("left_crs")), {"crs": "check", **asked})
        except Error:
            return None  # join() raises the error

    def __repr__(self) -> str:
        return f"<ogrjoin.Index of {len(self)} rows>"

    def __reduce__(self) -> Any:
        raise TypeError("an Index cannot be pickled: pickle the right side and index it again")

    def pairs(
        self,
        left: Any,
        op: str | None = "intersects",
        *,
        column: str | None = None,
        max_distance: Any = None,
        on: Any = None,
        id: Any = None,
        texts: Any = (),
        progress: Progress | None = None,
        crs: str = "check",
        **settings: Any,
    ) -> Pairs:
        """Returns the pairs of left with this side; see ogrjoin.pairs()."""
        n_rows = _sides.count_rows(left)
        left = _sides.with_crs(left)
        plan = self._plan_join(
            left, op, column, max_distance, on, id, texts, crs, settings
        )
        if _sides.may_be_device(left):
            from . import _device

            if _device.is_device(left):
                if plan.has_columns or on is not None or progress is not None:
                    raise UnsupportedError(
                        "points on a device are joined without columns (id, on, texts, "
                        "max_distance of each row) and progress: leave them out"
                    )
                plan = plan if plan.index is not None else self._with_crs(plan, None)
                return _device.join(plan.index, left)
        is_whole = plan.settings.get("one_to_one") or _sides.reads_columns(plan.reading)
        if progress is None and not is_whole and not plan.has_columns:
            if _sides.is_reader(left):
                with _sides.sides_of([left], None, False) as streams:
                    return self._pairs_of_stream(plan, next(streams), n_rows)
            stream = _sides.stream_of(left)
            if stream is not None:
                return self._pairs_of_stream(plan, stream, n_rows)
        pieces = [(0, left)]
        if progress is not None and not is_whole:
            pieces = _sides.slices(left, _PROGRESS_ROWS)
            if len(pieces) > 1:
                plan.check_rows(pieces[-1][0] + len(pieces[-1][1]))
        layers = (
            (first, self._make_layer(piece, "left", plan.settings, column, texts, first), None)
            for first, piece in pieces
        )
        joined = []
        for plan, first, layer in self._with_plans(plan, layers):
            if len(pieces) == 1:
                plan.check_rows(_core.count(layer))
            joined.append(self._join_layer(plan, layer, first))
            if progress is not None:
                n = first + _core.count(layer)
                last, rows = pieces[-1]
                progress(n, n if len(pieces) == 1 else last + len(rows))
        if len(joined) == 1:
            return self._free_large_scratch(joined[0])
        return self._free_large_scratch(_concatenate_pairs(joined, plan.index))

    def _pairs_of_stream(self, plan: _Plan, stream: Any, n_rows: int) -> Pairs:
        """Returns the pairs of all rows of stream.  n_rows: their number, or 0."""
        source = _core.source(stream.__arrow_c_stream__(), plan.column, plan.reading)
        if plan.takes_srid:
            srid = _core.source_srid(source)
            if srid is None:  # a later array has the first geometry
                layer = _core.next_layer(source, _ALL_ROWS)
                plan = self._with_crs(plan, _crs.read_from_layer(layer, "left"))
                return self._free_large_scratch(self._join_layer(plan, layer, 0))
            plan = self._with_crs(plan, _crs.of_srid(srid))
        made = _core.join_source(plan.index, source, n_rows)
        if plan.takes_srid:
            _core.source_srid(source)  # raises an error if rows have another SRID
        return self._free_large_scratch(_pairs_of_result(made, plan.settings["op"], 0, plan.index))

    def pairs_batches(
        self,
        left: Any,
        op: str | None = "intersects",
        *,
        batch_size: int = 1 << 20,
        column: str | None = None,
        max_distance: Any = None,
        on: Any = None,
        id: Any = None,
        texts: Any = (),
        crs: str = "check",
        **settings: Any,
    ) -> Iterator[Pairs]:
        """Yields the pairs of ogrjoin.pairs(left, this side) in batches of batch_size
        left rows, so that memory does not grow with left.

        left        a side of pairs(), an Arrow stream, a dataset or scanner of
                    pyarrow, or an iterator of sides, such as record batches. It is
                    read as far as the next batch needs; rows are merged or split
                    into batches
        batch_size  rows; small batches take longer in total, since nearby points of
                    a batch are joined together

        batch.left has row numbers of the whole side, from batch.first on.  The
        batches together equal the result of pairs().  A side without rows gives one
        batch without pairs.  Exceptions of left are raised here.  left is released at
        the end of the iterator, or by its close().
        """
        if batch_size < 1:
            raise InvalidError(f"batch_size must be 1 or more, not {batch_size}")
        if settings.get("one_to_one"):
            raise UnsupportedError("one_to_one needs all rows at once: use pairs()")
        left = _sides.with_crs(left)
        plan = self._plan_join(
            left, op, column, max_distance, on, id, texts, crs, settings
        )
        if _sides.may_be_device(left):
            from . import _device

            if _device.is_device(left):
                raise UnsupportedError("points on a device are joined at once: use pairs()")
        return self._batches(plan, left, batch_size)

    def _batches(self, plan: _Plan, left: Any, batch_size: int) -> Iterator[Pairs]:
        n = 0
        try:
            # No variable holds the iterator, so that an error closes left at once.
            for plan, first, layer in self._with_plans(
                plan, self._layers_of_batches(plan, left, batch_size)
            ):
                n = first + _core.count(layer)
                plan.check_rows(n, False)
                yield self._join_layer(plan, layer, first)
            plan.check_rows(n)
        finally:
            if plan.index is not None:
                _core.trim(plan.index)

    def _layers_of_batches(
        self, plan: _Plan, left: Any, batch_size: int, first: int = 0
    ) -> Iterator[tuple[int, Any, str | None]]:
        """Yields (first row, layer, CRS that its data state) for each batch of batch_size
        rows.  first is the number of the first row of left."""
        crs = _crs.read_from_side(left) if plan.takes_srid else None
        column = None if _sides.reads_columns(plan.reading) else plan.column
        is_reader = _sides.is_reader(left)
        stream = None if is_reader else _sides.stream_of(left, column)
        if stream is not None:
            if n_rows := _sides.count_rows(left):
                plan.check_rows(first + n_rows, False)
            reading = {**plan.reading, "first_row": first}
            source = _core.source(stream.__arrow_c_stream__(), plan.column, reading)
            while True:
                layer = _core.next_layer(source, batch_size)
                if layer is None:
                    break
                yield first, layer, crs
                first += _core.count(layer)
        elif is_reader or _sides.is_iterator(left):
            sides = [left] if is_reader else left
            with _sides.sides_of(sides, column, not is_reader) as pieces:
                for piece in map(_sides.with_crs, pieces):
                    for of_piece in self._layers_of_batches(plan, piece, batch_size, first):
                        yield of_piece
                        first = of_piece[0] + _core.count(of_piece[1])
        else:
            pieces = _sides.slices(left, batch_size)
            if len(pieces) > 1:
                plan.check_rows(first + pieces[-1][0] + len(pieces[-1][1]), False)
            for at, piece in pieces:
                layer = self._make_layer(
                    piece, "left", plan.settings, plan.column, plan.texts, first + at
                )
                yield first + at, layer, crs

    def _plan_join(
        self,
        left: Any,
        op: str | None,
        column: str | None,
        max_distance: Any,
        on: Any,
        id: Any,
        texts: Any,
        crs: str,
        settings: dict[str, Any],
    ) -> _Plan:
        """Checks the arguments of a join with left, and makes or finds the index."""
        settings = {**self._compared, **settings, "op": op}
        settings["similar"] = similar_words(settings["similar"])
        settings["crs"] = crs
        if _asks_for_m_values(settings.get("along")) and not self._has_m:
            raise InvalidError(
                'along="m": the M values were not read: write Index(right, along="m")'
            )
        if settings.get("word_map") is not None:
            settings["word_map"] = word_map_text(settings["word_map"])
        if np.ndim(max_distance) > 0:
            max_distance = np.asarray(_sides.without_mask(max_distance))
        else:
            settings["max_distance"], max_distance = max_distance, None
        if (on is None) != (self._classes is None):
            raise InvalidError("on needs values of both sides: give it to Index() and to the join")
        classes, layer = None, None
        if on is not None:
            classes, layer = self._classes_of(on)
        of_left = _crs.read_from_side(left)
        takes_srid = of_left is None and crs != "ignore" and _sides.may_have_srid(left)
        if takes_srid:  # the index, which checks the settings, is made later
            _core.check_settings({**self._settings, **settings})
        return _Plan(
            settings,
            None if takes_srid else self._index(of_left, settings, layer),
            self._settings_for_reading("left", settings),
            column,
            id,
            max_distance,
            classes,
            texts,
            layer,
            of_left,
            takes_srid,
        )

    def _with_crs(self, plan: _Plan, crs: str | None) -> _Plan:
        """Returns the plan with an index for a left side in this CRS."""
        return plan._replace(index=self._index(crs, plan.settings, plan.layer), crs=crs)

    def _with_plans(
        self, plan: _Plan, layers: Iterable[tuple[int, Any, str | None]]
    ) -> Iterator[tuple[_Plan, int, Any]]:
        """Yields (plan with an index, first row, layer) for left rows in layers, which are
        (first row, layer, CRS that its data state).  Layers before the first geometry wait
        for it, since its SRID is their CRS, too."""
        waiting: list[tuple[int, Any]] = []
        for first, layer, crs in layers:
            plan = self._with_srid(plan, layer, crs)
            waiting.append((first, layer))
            while plan.index is not None and waiting:
                yield plan, *waiting.pop(0)
        if waiting:
            plan = self._with_crs(plan, None)
        for first, layer in waiting:
            yield plan, first, layer

    def _with_srid(self, plan: _Plan, layer: Any, stated: str | None = None) -> _Plan:
        """Returns the plan with an index for the CRS of left rows, of which layer has the
        first or the next ones.  stated is the CRS that its data state.  Rows without a
        geometry have any CRS: the plan stays as it is."""
        if not plan.takes_srid:
            return plan
        crs = stated
        if stated is None:
            srid = _crs.read_srid(layer, "left")
            if srid is None:
                return plan
            crs = _crs.of_srid(srid)
        if plan.index is None:
            return self._with_crs(plan, crs)
        if not _crs.are_equal(crs, plan.crs):
            raise InvalidError(
                f"left side: the CRS of a batch is {crs or 'none'}, and the first one has "
                f"{plan.crs or 'none'}, but a layer has one CRS: bring its rows to one CRS, or "
                'write crs="ignore"'
            )
        return plan

    def _join_layer(self, plan: _Plan, layer: Any, first: int) -> Pairs:
        """Joins the left rows of layer; first is the number of its first row."""
        n = _core.count(layer)
        rows = slice(first, first + n)
        columns = (plan.id, plan.max_distance, plan.classes)
        id, distance, classes = [None if c is None else c[rows] for c in columns]
        compared = [plan.settings.get(name) for name in ("exclude_self", "unordered")]
        if any(compared) and id is None and first > 0:
            id = np.arange(first, first + n)
        texts = [t[rows] for t in plan.texts]
        if texts or any(c is not None for c in (id, distance, classes)):
            _add_columns(layer, "left", id, distance, classes, texts=texts)
        made = _core.join(plan.index, layer)
        return _pairs_of_result(made, plan.settings["op"], first, plan.index)

    def _free_large_scratch(self, pairs: Pairs) -> Pairs:
        if pairs.n_left > _KEPT_ROWS:
            _core.trim(pairs._index)
        return pairs

    def join(self, left: Any, op: str = "intersects", **options: Any) -> Joined:
        """Returns the joined rows of left and this side; see ogrjoin.join()."""
        from . import _join

        return _join.join_index(self, left, op, **options)

    def _query(self, geometry: Any, op: str, **settings: Any) -> tuple[Any, Any]:
        """Returns (row numbers in the form of shapely's STRtree, distances)."""
        is_one = not hasattr(geometry, "__len__")
        pairs = self.pairs([geometry] if is_one else geometry, op, **settings)
        rows = pairs.right if is_one else np.stack((pairs.left, pairs.right))
        return rows, pairs.distance

    def query(
        self, geometry: Any, predicate: str | None = None, distance: Any = None
    ) -> npt.NDArray[np.int64]:
        """Like shapely.STRtree.query().  For one geometry, returns sorted row
        numbers of this side.  For an array of geometries, returns two arrays:
        numbers of geometries, and row numbers of this side."""
        op = PREDICATES.get(predicate)
        if op is None:
            raise InvalidError(
                f'there is no predicate "{predicate}": use one of '
                f"{', '.join(filter(None, PREDICATES))}"
            )
        rows: npt.NDArray[np.int64] = self._query(geometry, op, max_distance=distance)[0]
        return rows

    @overload
    def query_nearest(
        self,
        geometry: Any,
        max_distance: float | str | None = None,
        return_distance: Literal[False] = False,
        exclusive: bool = False,
        all_matches: bool = True,
    ) -> npt.NDArray[np.int64]: ...

    @overload
    def query_nearest(
        self,
        geometry: Any,
        max_distance: float | str | None = None,
        *,
        return_distance: Literal[True],
        exclusive: bool = False,
        all_matches: bool = True,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...

    def query_nearest(
        self,
        geometry: Any,
        max_distance: float | str | None = None,
        return_distance: bool = False,
        exclusive: bool = False,
        all_matches: bool = True,
    ) -> Any:
        """Like shapely.STRtree.query_nearest().  The result has the form of
        that of query()."""
        rows, distances = self._query(
            geometry,
            "nearest",
            max_distance=max_distance,
            ties="all" if all_matches else "first",
            exclude_same_geometry=exclusive,
        )
        return (rows, distances) if return_distance else rows


def _compared(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments similar, vector and op of an Index for joins with these
    settings."""
    near = settings.get("max_distance") is not None
    return {
        "similar": settings.get("similar"),
        "vector": settings.get("vector"),
        "op": None if near else settings["op"],
        "along": settings.get("along"),
    }


class Validation(NamedTuple):
    """Comparison of two backends; left, right, kind: the first difference."""

    n_rows: int
    n_pairs: int
    n_differences: int
    n_rows_proved: int  # rows that differ; exact arithmetic confirms the first backend
    n_rows_undecided: int  # rows not compared: exact arithmetic cannot decide them
    n_pairs_undecided: int
    left: int
    right: int
    kind: str | None


def validate(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    reference: str | None = None,
    left_column: str | None = None,
    right_column: str | None = None,
    crs: str = "check",
    threads: int | None = None,
    backend: str | None = None,
    **settings: Any,
) -> Validation:
    """Joins like ogrjoin.pairs(), and again with a reference backend on one
    thread (GEOS if reference is None).  Compares the sets of pairs and their
    distances."""
    settings.update(op=op)
    index = Index(
        right,
        column=right_column,
        **_compared(settings),
        threads=threads,
        backend=backend,
        _is_kept=False,
    )
    settings.update(index._compared)
    settings["crs"] = crs
    left = _sides.with_crs(left)
    layer = index._make_layer(left, "left", settings, left_column)
    of_left = _crs.read_from_side(left)
    if of_left is None and crs != "ignore":
        of_left = _crs.read_from_layer(layer, "left")
    made = index._index(of_left, settings)
    return Validation(*_core.validate(made, layer, reference))


def pairs(
    left: Any,
    right: Any,
    op: str | None = "intersects",
    *,
    left_column: str | None = None,
    right_column: str | None = None,
    on: tuple[Any, Any] | None = None,
    id: tuple[Any, Any] | None = None,
    texts: tuple[Any, Any] | None = None,
    score: Any = None,
    crs: str = "check",
    threads: int | None = None,
    backend: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Pairs:
    """All pairs of left with right for which op holds.

    sides     GeoSeries, frames, arrays of shapely, Arrow, (x, y), __geo_interface__;
              for op similar also texts (a list, an array, a series), or vectors
              (an array of two dimensions, or lists)
    op        nearest, dwithin, intersects, within, contains, covers, coveredby,
              contains_properly, touches, crosses, overlaps, equals, disjoint,
              relate, bbox, similar, attributes (equal values of on)
    settings  settings of the C library, by name: max_distance (for dwithin also an
              array with one for each left row), k, ties, metric, relate, exclude_self, pick,
              one_to_one, overlap_area, bearing, line_along, line_offset,
              line_side, relation, word_map (a dict, or a file of lines "st,street") ...;
              ogrjoin.settings() lists them
    similar   "LEFT=RIGHT:0.6", or a list: only pairs with similar texts; + joins
              columns into one text; default threshold: min_similarity.  With
              texts=: only the thresholds
    vector    "price:0.001+area", or a column of lists: only pairs of vectors that
              differ by at most max_difference, or the k most similar; norm: l2,
              l1, linf, cosine
    left_column, right_column
              column of geometries, if the Arrow type does not mark it
    on        (left, right) values of the rows, not names: only pairs with equal values,
              compared as in join(on=)
    id        (left, right) numbers of the rows, used for ties and exclude_self;
              None: the row numbers
    texts     (left, right) lists of text columns, one column for each threshold of
              similar
    score     a number for each right row: pick="score" takes the greatest
    crs       "check": different CRS, or distances in degrees, are errors; "ignore"
    threads   None: OGRJOIN_NUM_THREADS, or all processors
    backend   None: auto; ogrjoin.backends() lists them
    progress  called with (left rows done, all left rows); an exception ends the join
    """
    left_on, right_on = _split_left_right("on", on)
    if isinstance(left_on, str) or isinstance(right_on, str):
        raise InvalidError(
            "on of pairs() is (left values, right values), one value for each row: names "
            "of columns belong to join(on=...)"
        )
    left_id, right_id = _split_left_right("id", id)
    left_texts, right_texts = _split_left_right("texts", texts)
    index = Index(
        right,
        column=right_column,
        on=right_on,
        id=right_id,
        score=score,
        texts=() if right_texts is None else right_texts,
        **_compared({**settings, "op": op}),
        threads=threads,
        backend=backend,
        _is_kept=False,
    )
    return index.pairs(
        left,
        op,
        column=left_column,
        on=left_on,
        id=left_id,
        texts=() if left_texts is None else left_texts,
        crs=crs,
        progress=progress,
        **settings,
    )
