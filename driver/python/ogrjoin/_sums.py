"""Sums: exact sums of numbers by group, which several processes can compute together."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, _sides


def _present(values: Any) -> tuple[Any, Any]:
    """Returns (values without the missing ones, mask of the values kept).  The
    mask is None if no value is missing."""
    if isinstance(values, np.ma.MaskedArray):
        has_value = ~np.ma.getmaskarray(values)
        return values.data[has_value], has_value
    if hasattr(values, "drop_null") or hasattr(values, "drop_nulls"):  # Arrow, Polars
        has_value = ~np.asarray(values.is_null())
        dropped = values.drop_null() if hasattr(values, "drop_null") else values.drop_nulls()
        return np.asarray(dropped), has_value
    values = np.asarray(_sides.without_extension(values))
    if values.dtype != object:
        return values, None
    has_value = np.array([v is not None for v in values], bool)
    return np.asarray(values[has_value].tolist()), has_value


class Sums:
    """Exact sums of numbers, one for each of n groups.

    Several processes can each sum a part of the numbers.  The merged sums equal those
    of one process, bit for bit, in whatever order numbers are added and sums merged:
    a sum is rounded once, when it is read, like the aggregates sum and mean of join().

        parts = [Sums(n) for _ in files]                  # in several processes
        parts[0].add(group, values)
        whole = Sums(n)
        whole.merge(np.arange(n), *parts[0].words())
        whole.values()
    """

    def __init__(self, n: int) -> None:
        self._n, self._sums = n, _core.sums(n)

    def __len__(self) -> int:
        return self._n

    def add(self, group: Any, values: Any) -> None:
        """Adds values[i] to the sum of group[i].  Integers and booleans are added exactly,
        other numbers as float64.  None and NULL are left out, as by the aggregate sum;
        NaN makes a sum NaN."""
        group = _sides.as_column(group, np.int64, len(values), "group", "values")
        values, has_value = _present(values)
        group = group if has_value is None else group[has_value]
        is_integer = values.dtype.kind in "iub"
        if values.dtype.kind == "b":
            values = values.astype(np.int8)
        kind = np.int64 if is_integer else np.float64
        values = _sides.as_column(values, kind, len(values), "values", "group")
        _core.sums_add(self._sums, len(group), group, values, is_integer)

    def words(self) -> tuple[Any, Any]:
        """Returns (offsets, words): the exact sums as 64-bit words.  The words
        of group i are words[offsets[i]:offsets[i + 1]]; a sum of 0 has none.
        Equal sums have equal words."""
        offsets, words = _core.sums_words(self._sums)
        return np.frombuffer(offsets, np.int64), np.frombuffer(words, np.uint64)

    def merge(self, group: Any, offsets: Any, words: Any) -> None:
        """Adds the sum with words[offsets[i]:offsets[i + 1]] to the sum of group[i]."""
        group = np.ascontiguousarray(group, dtype=np.int64)
        offsets = _sides.as_column(
            offsets, np.int64, len(group) + 1, "offsets", "group, with the end,"
        )
        words = np.ascontiguousarray(words, dtype=np.uint64)
        _core.sums_merge(self._sums, len(group), group, offsets, len(words), words)

    def values(self) -> Any:
        """Returns the sums as float64, each rounded to the nearest number.  A
        group without numbers has the sum 0."""
        return np.frombuffer(_core.sums_values(self._sums, False), np.float64)

    def integers(self) -> Any:
        """Returns the sums as int64, exactly.  A sum that is not an integer of
        64 bits is an error."""
        return np.frombuffer(_core.sums_values(self._sums, True), np.int64)
