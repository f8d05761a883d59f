"""Counts, sums and means of zones from partial sums: the zones are held, the other side
streams past.

The pairs of a zone need not meet in one task.  Each task joins its rows with all zones
and keeps, by zone, the number of pairs and, of each column, the number of values and
their exact sum as 64-bit words (ogrjoin.Sums).  These are added exactly, so the result
does not depend on how rows were dealt to tasks.

    join rows  -> partial()  -> rows (zone, number of pairs, and of each column the
                                number of values and the words of their sum)
    partials   -> merged()   -> one such row for each zone with pairs
    zones and these -> rows() -> the rows of ogrjoin.join()
"""

from __future__ import annotations

import re
from typing import Any, Iterable

import numpy as np
import pyarrow as pa

from .._errors import InvalidError
from .._sums import Sums
from .tile_join import ROW, HeldSide, TileJoin

# For each op that partial sums support, the op of the join with exchanged
# sides.
SUMMED_OPS = {
    "contains": "within", "within": "contains", "covers": "coveredby", "coveredby": "covers",
    **{op: op for op in "intersects touches crosses overlaps equals bbox dwithin".split()},
}  # fmt: skip
_AGG = re.compile(r"\s*(\w+)\s*(?:\(\s*(\w+)\s*\))?\s*(?:\bas\s+\w+\s*)?", re.IGNORECASE)
_KINDS = {"count": "count", "sum": "sum", "mean": "mean", "avg": "mean"}
# Options for which the join with exchanged sides has equal pairs and rows.
_OF_SIDES = [f"{which}_{name}" for which in ("left", "right") for name in "column x y crs".split()]
_KEPT = "max_distance metric backend threads gpus gpu_memory batch_rows crs".split()
_KNOWN = {*_OF_SIDES, *_KEPT, *"op how agg left_fid right_fid left_select".split()}
ZONE = "ogrjoin_zone"
_PAIRS = "ogrjoin_pairs"
_MARK = "ogrjoin_agg"


def _is_number(kind: Any) -> bool:
    if pa.types.is_floating(kind):
        return not pa.types.is_float16(kind)
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()


def _merge(sums: Sums, group: Any, column: Any) -> None:
    """Merges words of sums: row i of a binary column is added to the sum of
    group[i]."""
    at = 0
    for chunk in column.cast(pa.large_binary()).chunks:
        offsets = np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset :][: len(chunk) + 1]
        data = chunk.buffers()[2]
        words = np.frombuffer(b"" if data is None else data, np.uint8)
        words = words[offsets[0] : offsets[-1]].copy().view(np.uint64)
        sums.merge(group[at : at + len(chunk)], (offsets - offsets[0]) // 8, words)
        at += len(chunk)


class HeldZones:
    """The zones with their index.  numbers are their row numbers,
    ascending."""

    def __init__(self, held: HeldSide, numbers: Any) -> None:
        self._held, self.numbers = held, numbers

    def joined(self, left: Any) -> Any:
        return self._held.joined(left)


class ZoneSums:
    """A join of zones (the input) whose aggregates are sums.  The object is
    pickled and sent to the tasks.  Make it with of()."""

    def __init__(self, job: TileJoin, asked: list[tuple[str, str | None]]) -> None:
        self.job, self._asked = job, asked
        self.columns = list(dict.fromkeys(name for _, name in asked if name is not None))
        options = job.options
        swapped = {
            f"{'right' if name.startswith('left') else 'left'}_{name.partition('_')[2]}": value
            for name, value in options.items()
            if name in _OF_SIDES
        }
        kept = {name: value for name, value in options.items() if name in _KEPT}
        needed = {*job.right_place_columns, *self.columns}
        self.exchanged = TileJoin(
            pa.schema([field for field in job.right if field.name in needed]),
            job.left,
            {
                **kept, **swapped, "op": SUMMED_OPS[job.op], "how": "inner", "geometry": "none",
                "left_select": ",".join(self.columns), "right_select": "", "name_fid": ZONE,
            },
        )  # fmt: skip
        self.exchanged.gpus_of_task = job.gpus_of_task
        # The columns of aggregates are adjacent; the first stands where a single one
        # would.
        one = TileJoin(job.left, job.right, {**options, "agg": f"count as {_MARK}"})
        self._first = one.schema.get_field_index(_MARK)
        fields = [pa.field(ZONE, pa.int64()), pa.field(_PAIRS, pa.int64())]
        for i in range(len(self.columns)):
            fields += [pa.field(f"ogrjoin_n{i}", pa.int64()), pa.field(f"ogrjoin_sum{i}", pa.binary())]
        self.schema = pa.schema(fields)

    @classmethod
    def of(cls, job: TileJoin) -> ZoneSums | None:
        """Returns the sums of a join, or None if partial sums cannot compute
        the join."""
        options = job.options
        agg = options.get("agg")
        if agg is None or job.op not in SUMMED_OPS or job.how not in ("left", "inner"):
            return None
        if not set(options) <= _KNOWN:
            return None
        asked: list[tuple[str, str | None]] = []
        for word in agg.split(",") if isinstance(agg, str) else agg:
            match = _AGG.fullmatch(word)
            kind = _KINDS.get(match[1].lower()) if match else None
            if match is None or kind is None or (kind != "count" and match[2] is None):
                return None
            name: str | None = match[2]
            if name is not None:
                if name.startswith("join_") or name not in job.right.names:
                    return None  # the name may be a value of pairs
                if not _is_number(job.right.field(name).type):
                    return None
            asked.append((kind, name))
        return cls(job, asked)

    def hold(self, zones: Any) -> HeldZones:
        """Indexes the zones: a table of the job's left_rows, sorted by ROW. Returns the
        held zones, for partial()."""
        held = self.exchanged.hold(zones)
        return HeldZones(held, zones.column(ROW).to_numpy())

    def partial(self, rows: Iterable[Any], zones: Any) -> Any:
        """Computes the partial sums of a part of the join side. rows is the result of
        joining this part with hold(). zones are the numbers of all zones, ascending.
        Returns the sums as a batch."""
        n = len(zones)
        pairs = np.zeros(n, np.int64)
        counts = [np.zeros(n, np.int64) for _ in self.columns]
        sums = [Sums(n) for _ in self.columns]
        for batch in rows:
            at = np.searchsorted(zones, np.asarray(batch.column(ZONE)))
            pairs += np.bincount(at, minlength=n)
            for i, name in enumerate(self.columns):
                column = batch.column(name)
                has_value = np.asarray(column.is_valid())
                group = at[has_value]
                counts[i] += np.bincount(group, minlength=n)
                sums[i].add(group, np.asarray(column.drop_null()))
        return self._batch(zones, pairs, counts, sums)

    def _batch(self, zones: Any, pairs: Any, counts: list[Any], sums: list[Sums]) -> Any:
        some = pa.array(np.flatnonzero(pairs))
        columns = [pa.array(zones), pa.array(pairs)]
        for n, of_column in zip(counts, sums):
            offsets, words = of_column.words()
            if offsets[-1] * 8 >= 2**31:
                raise InvalidError(
                    f"the partial sums of {len(offsets) - 1} zones in one task take more than "
                    "2 GB: split the right side into more partitions, or choose another way"
                )
            buffers = [None, pa.py_buffer((offsets * 8).astype(np.int32)), pa.py_buffer(words)]
            binary = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
            columns += [pa.array(n), binary]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema).take(some)

    def merged(self, partials: Any) -> Any:
        """Merges a table of partial sums."""
        partials = partials.combine_chunks()
        zone = partials.column(ZONE).to_numpy()
        zones, group = np.unique(zone, return_inverse=True)

        def total(name: str) -> Any:
            made = np.zeros(len(zones), np.int64)
            np.add.at(made, group, partials.column(name).to_numpy())
            return made

        counts, sums = [], []
        for i in range(len(self.columns)):
            counts.append(total(f"ogrjoin_n{i}"))
            of_column = Sums(len(zones))
            _merge(of_column, group, partials.column(f"ogrjoin_sum{i}"))
            sums.append(of_column)
        return pa.Table.from_batches([self._batch(zones, total(_PAIRS), counts, sums)])

    def rows(self, zones: Any, merged: Any) -> Any:
        """Returns the rows of the join, with ROW, for a table of zones.
        merged is a table of merged sums; it may have more zones."""
        made = self.job.unpaired(zones)
        at = np.searchsorted(merged.column(ZONE).to_numpy(), made.column(ROW).to_numpy())
        found = np.minimum(at, max(0, len(merged) - 1))
        has_pairs = np.zeros(len(made), bool)
        if len(merged):
            has_pairs = merged.column(ZONE).to_numpy()[found] == made.column(ROW).to_numpy()

        def of_zones(values: Any) -> Any:
            if len(values) == 0:
                return np.zeros(len(made), values.dtype)
            return np.where(has_pairs, values[found], values.dtype.type(0))

        totals = {}
        for i, of_sum in enumerate(self.columns):
            of_column = Sums(len(merged))
            _merge(of_column, np.arange(len(merged)), merged.column(f"ogrjoin_sum{i}"))
            totals[of_sum] = of_zones(merged.column(f"ogrjoin_n{i}").to_numpy()), of_column
        pairs = of_zones(merged.column(_PAIRS).to_numpy())
        for i, (kind, name) in enumerate(self._asked):
            field = made.schema.field(self._first + i)
            if name is None:
                values, is_null = pairs, None
            else:
                n, of_column = totals[name]
                if kind == "count":
                    values, is_null = n, None
                elif kind == "sum" and pa.types.is_integer(field.type):
                    values, is_null = of_zones(of_column.integers()), n == 0
                else:
                    values, is_null = of_zones(of_column.values()), n == 0
                if kind == "mean":
                    values = values / np.where(n == 0, 1, n).astype(np.float64)
            array = pa.array(values, mask=is_null).cast(field.type)
            made = made.set_column(self._first + i, field, array)
        if self.job.how == "inner":
            made = made.filter(pa.array(pairs > 0))
        return made
