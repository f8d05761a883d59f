"""Joins of Spark DataFrames and of folders of GeoParquet; the answers equal join()'s.

    from ogrjoin import spark as oj
    oj.join(points_df, lots_df, op="nearest", max_distance=100, fid="id")
    oj.join_files("points/", "lots/", "joined/", op="nearest", max_distance=100)

Spark runs the tasks, moves the rows and repeats failed tasks; the library joins
each tile in one call (ogrjoin.scale).  A task depends on nothing but its input.

    broadcast  every executor gets the whole join side; no shuffle
    files      tasks read row groups of both sides from files; no shuffle
    shuffle    rows of both sides are sent to tiles, as blocks; a task joins tile after tile
    sums       every executor gets the input (zones); the join side is summed where it is
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any, Iterator, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from . import _crs
from ._errors import InvalidError
from ._pairs import Validation
from ._scan import extension_of, wkb_metadata
from .scale import blocks as _blocks
from .scale.copies import tiles_of_rows
from .scale.files import Explanation, explain_files, finish_files, prepare_files
from .scale.footers import count_rows
from .scale.parts import MEMORY_OF_BYTES, TASK_MEMORY, SideRows, cut_tile
from .scale.sums import SUMMED_OPS, ZONE, HeldZones, ZoneSums
from .scale.tile_join import ROW, HeldSide, TileJoin
from .scale.tiles import SEED, Tiles, reaches

__all__ = ["Explanation", "explain", "join", "join_files", "validate", "write"]

Way = Literal["broadcast", "shuffle", "sums"]

JOIN_MEMORY = 512 << 20
_TILE = _blocks.TILE
_PLACE = "ogrjoin_place"
_JOIN = "_ogrjoin_join"  # attribute of the DataFrames of join() that holds their _Join
_TILE_ROWS = 1_000_000
_SAMPLE = 20_000  # input rows in the sample that tiles are made from
_NEAR_SAMPLE = 20_000  # join rows in the sample that bounds nearest without max_distance
_BATCH_ROWS = 1 << 17  # input rows that a task joins in one call
_BATCH_BYTES = 16 << 20  # bytes of rows that a task deals to tiles together


# ---- sides ---------------------------------------------------------------------


class _Frame(NamedTuple):
    """A side: a DataFrame whose geometry is WKB, and its Arrow schema."""

    df: Any
    schema: Any
    number: str | None  # the column of FIDs, if there is one


def _geometry_kind(field: Any) -> str:
    """Returns the kind of a column: "spark" or "sedona" for their geometry
    types, "binary", or "" for all other columns."""
    name = type(field.dataType).__name__
    if name == "GeometryType":
        return "spark"
    if name == "GeometryUDT" or "sedona" in type(field.dataType).__module__:
        return "sedona"
    return "binary" if name == "BinaryType" else ""


def _column_of(df: Any, which: str, options: dict[str, Any]) -> str | None:
    """Returns the name of the column of geometries, or None for points from
    two columns of coordinates."""
    given: Any = options.get(f"{which}_column")
    if options.get(f"{which}_x") or (which == "left" and options.get("x")):
        return None
    if given is not None:
        return str(given)
    kinds: dict[str, str] = {field.name: _geometry_kind(field) for field in df.schema.fields}
    typed = [name for name, kind in kinds.items() if kind in ("spark", "sedona")]
    if len(typed) == 1:
        return typed[0]
    if not typed and kinds.get("geometry") == "binary":
        return "geometry"
    raise InvalidError(
        f"the {which} side has no column of geometries that stands out: name the one "
        f"to join by, {which}_column="
    )


def _arrow_schema(df: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(df.schema)


def _prepare_side(df: Any, which: str, options: dict[str, Any]) -> _Frame:
    from pyspark.sql import functions as F

    column = _column_of(df, which, options)
    crs = _crs.as_text(options.get(f"{which}_crs"))
    for field in df.schema.fields:
        kind = _geometry_kind(field)
        if kind == "spark" and field.name == column and crs is None:
            srid = getattr(field.dataType, "srid", 0)
            crs = f"EPSG:{srid}" if srid and srid > 0 else None
        if kind in ("spark", "sedona"):
            df = df.withColumn(field.name, F.expr(f"ST_AsBinary(`{field.name}`)"))
    schema = _arrow_schema(df)
    if column is not None:
        i = schema.get_field_index(column)
        if i < 0:
            raise InvalidError(
                f"the {which} side has no column {column}: name one of {', '.join(schema.names)}"
            )
        schema = schema.set(i, schema.field(i).with_metadata(wkb_metadata(crs)))
        options[f"{which}_column"] = column
    return _Frame(df, schema, options.get(f"{which}_fid"))


def _prepare_sides(left: Any, right: Any, options: dict[str, Any]) -> tuple[_Frame, _Frame, TileJoin]:
    fid = options.pop("fid", None)
    fids = (fid, fid) if fid is None or isinstance(fid, str) else fid
    for which, name in zip(("left", "right"), fids):
        if name is not None:
            options[f"{which}_fid"] = name
    options.setdefault("threads", 1)
    options.setdefault("batch_rows", _BATCH_ROWS)
    sides = _prepare_side(left, "left", options), _prepare_side(right, "right", options)
    job = TileJoin(sides[0].schema, sides[1].schema, options)
    job.gpus_of_task = task_gpus
    return *sides, job


def _check_fid(frame: _Frame, which: str) -> None:
    from pyspark.sql import functions as F

    name = f"`{frame.number}`"
    odd = frame.df.groupBy(F.expr(name).alias("n")).count().where("n is null or count > 1")
    found = odd.limit(1).collect()
    if found:
        value = "is missing" if found[0]["n"] is None else f"is not unique ({found[0]['n']})"
        raise InvalidError(
            f"fid={frame.number} cannot number the {which} rows, because a number {value}: name "
            "a column of unique whole numbers"
        )


class _Numbered(NamedTuple):
    """The DataFrame of a side with the column ROW."""

    df: Any
    n_rows: int | None  # None: the rows were not counted

    def counted(self) -> int:
        return int(self.df.count()) if self.n_rows is None else self.n_rows


def _add_row_column(frame: _Frame, which: str, checks: bool) -> _Numbered:
    """Adds the column ROW. It is the FID, or the number of the row in the Parquet files
    in the order of their paths. With checks, the FIDs are checked. which is "left" or
    "right", for errors."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    if frame.number is not None:
        if checks:
            _check_fid(frame, which)
        df = frame.df.withColumn(ROW, F.expr(f"cast(`{frame.number}` as bigint)"))
        return _Numbered(df, None)
    try:
        df = frame.df.select(
            "*",
            F.col("_metadata.file_path").alias("_path"),
            F.col("_metadata.row_index").alias("_index"),
        )
        last = df.groupBy("_path").agg(F.max("_index").alias("last"), F.count("*").alias("n"))
        last = last.collect()
    except AnalysisException:
        raise InvalidError(
            f"rows of the {which} side need a number that stays, for order and retries: "
            "name a column of whole numbers, fid=, or read the frame from Parquet"
        ) from None
    last.sort(key=lambda row: row["_path"])
    n_rows = sum(row["n"] for row in last)
    first, firsts = 0, []
    for row in last:
        firsts.append((row["_path"], first))
        first += row["last"] + 1
    if len(firsts) < 2:
        return _Numbered(df.withColumn(ROW, F.col("_index")).drop("_path", "_index"), n_rows)
    known = frame.df.sparkSession.createDataFrame(firsts, "_path string, _first bigint")
    df = df.join(F.broadcast(known), "_path").withColumn(ROW, F.expr("_first + _index"))
    return _Numbered(df.drop("_path", "_index", "_first"), n_rows)


def _numbered_join_side(frame: _Frame, job: TileJoin, checks: bool) -> _Numbered:
    """Returns the numbered join side, with the columns of job.right_rows. With checks,
    its FIDs are checked."""
    df, n_rows = _add_row_column(frame, "right", checks)
    return _Numbered(df.drop(ROW) if job.right_fid is not None else df, n_rows)


def _cast_batch(batch: Any, schema: Any) -> Any:
    """Returns a batch from Spark with its columns cast to the types of a schema."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        columns.append(column if column.type.equals(field.type) else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _as_table(batches: Any, schema: Any) -> Any:
    return pa.Table.from_batches([_cast_batch(batch, schema) for batch in batches], schema=schema)


def _collect_table(df: Any, schema: Any) -> Any:
    """Collects a DataFrame on the driver as an Arrow table, in no particular order."""
    return _as_table(df.toArrow().to_batches(), schema)


def _sampled(df: Any, n: int, n_rows: int) -> Any:
    """Returns a random sample of about n of the n_rows rows."""
    share = 1.0 if n_rows <= n else n / n_rows
    return df if share >= 1 else df.sample(fraction=share, seed=SEED)


# ---- tasks: what runs in Spark's Python workers --------------------------------

# The join side of the last broadcast, by its digest and the GPUs of the task.
_held: dict[tuple[str, int], HeldSide | HeldZones] = {}


def task_gpus() -> int:
    """Returns the mask of the GPUs that Spark has assigned to this task as resource
    "gpu", or 0 if it has none."""
    from pyspark import TaskContext

    context = TaskContext.get()
    gpu = None if context is None else context.resources().get("gpu")
    addresses = [] if gpu is None else gpu.addresses
    return sum(1 << int(number) for number in set(addresses) if number.isdigit())


def _hold_broadcast_side(job: TileJoin | ZoneSums, digest: str, content: Any) -> Any:
    held = digest, task_gpus()
    if held not in _held:
        _held.clear()  # frees the last side before the next is read
        table = pa.ipc.open_stream(pa.py_buffer(content())).read_all()
        _held[held] = job.hold(table)
    return _held[held]


def _make_batch(job: TileJoin, rows: Any, schema: Any, places: _Places | None) -> Any:
    """Makes a batch for Spark.  With places, the last two columns are the row
    number of the input row, and the number of the joined row among those of
    its input row."""
    columns = [rows.column(name) for name in schema.names if name not in (ROW, _PLACE)]
    if places is not None:
        numbers = rows.column(ROW)
        columns += [numbers, places.of(numbers)]
    fields = list(schema)
    columns = [c if c.type.equals(f.type) else c.cast(f.type) for c, f in zip(columns, fields)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _Places:
    """Numbers the joined rows of each input row 0, 1, ..., from batch to batch."""

    def __init__(self) -> None:
        self._last, self._n = -1, 0

    def of(self, numbers: Any) -> Any:
        row = np.asarray(numbers)
        if len(row) == 0:
            return pa.array([], pa.int64())
        start = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
        place = np.arange(len(row)) - np.repeat(start, np.diff(np.append(start, len(row))))
        if row[0] == self._last:
            n = len(row) if len(start) == 1 else start[1]
            place[:n] += self._n
        self._last, self._n = row[-1], int(place[-1]) + 1
        return pa.array(place)


def _as_input_rows(batches: Any, job: TileJoin) -> Iterator[Any]:
    """Yields the batches of a task as input rows.  Adds row numbers if they
    have none."""
    first = 0
    for batch in batches:
        if ROW not in batch.schema.names:  # the join does not need the numbers
            numbers = pa.array(np.arange(first, first + len(batch)))
            batch = batch.append_column(ROW, numbers)
        first += len(batch)
        yield _cast_batch(batch, job.left_rows)


class _BroadcastTask:
    def __init__(self, job: TileJoin, digest: str, content: Any, schema: Any, ordered: bool):
        self._job, self._digest, self._content = job, digest, content
        self._schema, self._ordered = schema, ordered

    def __call__(self, batches: Any) -> Iterator[Any]:
        held = _hold_broadcast_side(self._job, self._digest, self._content)
        left = pa.RecordBatchReader.from_batches(self._job.left_rows, _as_input_rows(batches, self._job))
        places = _Places() if self._ordered else None
        for rows in held.joined(left):
            yield _make_batch(self._job, rows, self._schema, places)


class _SumTask:
    """Spark task: joins join rows with all zones, and yields their partial
    sums."""

    def __init__(self, sums: ZoneSums, digest: str, content: Any) -> None:
        self._sums, self._digest, self._content = sums, digest, content

    def __call__(self, batches: Any) -> Iterator[Any]:
        job = self._sums.exchanged
        held = _hold_broadcast_side(self._sums, self._digest, self._content)
        rows = pa.RecordBatchReader.from_batches(job.left_rows, _as_input_rows(batches, job))
        yield self._sums.partial(held.joined(rows), held.numbers)


class _MergeTask:
    """Spark task: merges partial sums, and yields one row for each zone.  It
    gets all partial sums of a zone."""

    def __init__(self, sums: ZoneSums) -> None:
        self._sums = sums

    def __call__(self, batches: Any) -> Iterator[Any]:
        table = _as_table(batches, self._sums.schema)
        if len(table):
            yield from self._sums.merged(table).to_batches()


class _ZoneTask:
    """Spark task: takes zones with their merged sums beside them, and yields
    joined rows."""

    def __init__(self, sums: ZoneSums, schema: Any, ordered: bool) -> None:
        self._sums, self._schema, self._ordered = sums, schema, ordered

    def __call__(self, batches: Any) -> Iterator[Any]:
        job = self._sums.job
        for batch in batches:
            zones = pa.Table.from_batches([_cast_batch(batch, job.left_rows)])
            merged = pa.Table.from_batches([_cast_batch(batch, self._sums.schema)])
            merged = merged.filter(merged.column(ZONE).is_valid()).sort_by(ZONE)
            for rows in self._sums.rows(zones, merged).combine_chunks().to_batches():
                yield _make_batch(job, rows, self._schema, _Places() if self._ordered else None)


class _ReachTask:
    """Spark task: takes input rows, and yields for each tile the reach and the
    number of its rows in this task."""

    schema = f"{_TILE} int, a double, b double, c double, d double, n bigint"

    def __init__(self, job: TileJoin, tiles: Tiles, sample: Any) -> None:
        self.job, self._tiles, self._sample = job, tiles, sample

    def assign(self, table: Any) -> tuple[Any, Any]:
        bounds: Any = np.inf
        if self.job.is_unbounded:
            bounds = self.job.bounds(table, self._sample)
        return self.job.assign(table, self._tiles, bounds)

    def __call__(self, batches: Any) -> Iterator[Any]:
        n = len(self._tiles) + 1
        boxes, counts = np.full((n, 4), np.nan), np.zeros(n, dtype=np.int64)
        for table in _gather_tables(batches, self.job.left_rows):
            tile, reach = self.assign(table)
            counts += np.bincount(tile, minlength=n)
            both = np.concatenate((np.arange(n), tile))
            boxes = reaches(both, np.vstack((boxes, reach)), n)
        some = np.flatnonzero(counts)
        sides = [pa.array(boxes[some, i].copy()) for i in range(4)]
        columns = [pa.array(some.astype(np.int32)), *sides, pa.array(counts[some])]
        yield pa.RecordBatch.from_arrays(columns, names=[_TILE, "a", "b", "c", "d", "n"])


def _gather_tables(batches: Any, schema: Any) -> Iterator[Any]:
    """Collects batches into tables of about _BATCH_ROWS rows.  The tables have
    those columns of the schema that the batches have."""
    kept: list[Any] = []
    n, n_bytes = 0, 0
    for batch in batches:
        if not kept:
            schema = pa.schema([field for field in schema if field.name in batch.schema.names])
        kept.append(_cast_batch(batch, schema))
        n += len(batch)
        n_bytes += batch.nbytes
        if n >= _BATCH_ROWS or n_bytes >= _BATCH_BYTES:
            yield pa.Table.from_batches(kept, schema=schema)
            kept, n, n_bytes = [], 0, 0
    if kept:
        yield pa.Table.from_batches(kept, schema=schema)


def _block_numbers() -> Iterator[int]:
    """Yields the numbers of the blocks that this task makes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return itertools.count((0 if context is None else context.partitionId()) << 32)


class _OwnerTask:
    """Spark task: takes input rows, and yields pieces of blocks for the tiles
    that own them."""

    def __init__(self, reach: _ReachTask, place: Any) -> None:
        self._reach, self._place = reach, place

    def __call__(self, batches: Any) -> Iterator[Any]:
        block = _block_numbers()
        for table in _gather_tables(batches, self._reach.job.left_rows):
            tile = self._place[self._reach.assign(table)[0]]
            yield from _blocks.pieces(table, np.arange(len(table)), tile, 1, ROW, block)


class _CopyTask:
    """Spark task: takes join rows, and yields pieces of blocks for every tile
    whose reach meets a row's box."""

    def __init__(self, job: TileJoin, reach: Any) -> None:
        self._job, self._reach = job, reach

    def __call__(self, batches: Any) -> Iterator[Any]:
        block = _block_numbers()
        for table in _gather_tables(batches, self._job.right_rows):
            boxes = self._job.right_boxes(table)
            row, tile = tiles_of_rows(boxes, self._reach, self._job.metric, 1)
            yield from _blocks.pieces(table, row, tile, 0, self._job.right_number, block)


class _TileTask:
    """Spark task: joins tile after tile.  Its input are pieces of blocks, for
    each tile those of the join rows before those of the input rows.  A tile
    whose join rows exceed task_memory is joined in parts."""

    def __init__(
        self, job: TileJoin, schema: Any, ordered: bool, validates: bool, task_memory: int
    ) -> None:
        self._job, self._schema, self._ordered = job, schema, ordered
        self._validates, self._task_memory = validates, task_memory

    def __call__(self, batches: Any) -> Iterator[Any]:
        job = self._job
        found = _blocks.blocks(batches, (job.right_rows, job.left_rows))
        ahead = next(found, None)
        limit = np.inf if self._validates else self._task_memory / MEMORY_OF_BYTES
        while ahead is not None:
            tile = ahead.tile
            right = SideRows(job.right_rows, limit, tile)
            while ahead is not None and ahead.tile == tile and ahead.side == 0:
                right.add(ahead.rows)
                ahead = next(found, None)
            right = right.ascending(job.right_number)

            def left() -> Iterator[Any]:
                nonlocal ahead
                while ahead is not None and ahead.tile == tile:
                    block, ahead = ahead, next(found, None)
                    yield block

            rows = _blocks.in_order(left(), ROW, job.left_rows, limit, tile)
            if not right.is_on_disk:
                table = right.table()
                right.close()
                yield from self._joined(rows, table)
                continue
            mine = SideRows(job.left_rows, limit, tile).extend(rows)
            for part, table in cut_tile(
                job, mine, right, self._task_memory, tile, is_ordered=False
            ):
                yield from self._joined(iter(part.to_batches()), table)
                del part, table
            mine.close()
            right.close()

    def _joined(self, left: Any, right: Any) -> Iterator[Any]:
        schema = self._job.left_rows
        if not self._validates:
            places = _Places() if self._ordered else None
            reader = pa.RecordBatchReader.from_batches(schema, left)
            for rows in self._job.joined(reader, right):
                yield _make_batch(self._job, rows, self._schema, places)
            return
        table = pa.Table.from_batches(list(left), schema=schema)
        found = self._job.validate(table, right)
        yield pa.RecordBatch.from_pylist([found._asdict()], schema=self._schema)


class _UnmatchedTask:
    def __init__(self, job: TileJoin, schema: Any, ordered: bool) -> None:
        self._job, self._schema, self._ordered = job, schema, ordered

    def __call__(self, batches: Any) -> Iterator[Any]:
        for table in _gather_tables(batches, self._job.right_rows):
            numbers = table.column(self._job.right_number).combine_chunks()
            at = 0
            for rows in self._job.unmatched(table):
                made = _make_batch(self._job, rows, self._schema, _Places() if self._ordered else None)
                if self._ordered:
                    i = made.schema.get_field_index(_PLACE)
                    place = numbers.slice(at, len(rows)).cast(pa.int64())
                    made = made.set_column(i, self._schema.field(i), place)
                at += len(rows)
                yield made


# ---- on the driver ----------------------------------------------------------------


class _Result(NamedTuple):
    """The schema of joined rows."""

    struct: Any  # schema for Spark
    schema: Any  # schema for Arrow
    is_ordered: bool  # schema has ROW and _PLACE, by which rows are sorted


def _result_schema(job: TileJoin, is_ordered: bool) -> _Result:
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    from . import _spark_output

    schema = job.unnumbered(job.schema)
    if is_ordered:
        schema = schema.append(pa.field(ROW, pa.int64())).append(pa.field(_PLACE, pa.int64()))
    struct = from_arrow_schema(pa.schema([f.remove_metadata() for f in schema]))
    for field, of_arrow in zip(struct.fields, schema):
        if extension_of(of_arrow):
            field.metadata = _spark_output.metadata_for_spark(of_arrow, field.name == job.geometry)
    return _Result(struct, to_arrow_schema(struct), is_ordered)


def _broadcast(session: Any, content: bytes) -> Any:
    """Returns a function that returns content when a task calls it."""
    try:
        sent = session.sparkContext.broadcast(content)
    except Exception:  # Spark Connect has no broadcast: pickled with the function
        return _Given(content)
    return _Broadcast(sent)


class _Given:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __call__(self) -> bytes:
        return self._content


class _Broadcast:
    def __init__(self, sent: Any) -> None:
        self._broadcast = sent

    def __call__(self) -> Any:
        return self._broadcast.value


def _needs_left_numbers(options: dict[str, Any]) -> bool:
    names = ("exclude", "exclude_self", "unordered", "unordered_pairs", "left_fid")
    return any(options.get(name) for name in names)


class _Tiled(NamedTuple):
    """The plan of a shuffle.  Tiles without rows are dropped, and the others
    renumbered."""

    reach_task: _ReachTask
    place: Any  # [tiles of the tree + 1] new number of the tile, or -1
    reach: Any  # [tiles with rows, 4]
    n_rows: Any  # [tiles with rows]


def _plan_tiles(
    lefts: _Numbered, rights: _Numbered, job: TileJoin, n_tiles: int | None
) -> _Tiled:
    """Plans the tiles of a shuffle."""
    left, right, n_left = lefts.df, rights.df, lefts.counted()
    session = left.sparkSession
    if n_tiles is None:
        cores = int(session.conf.get("spark.sql.shuffle.partitions", "8"))
        cores = min(cores, 64)
        n_tiles = max(min(cores, 1 + n_left // 10_000), -(-n_left // _TILE_ROWS))
    places = pa.schema([field for field in job.left if field.name in job.reach_columns])
    sample = _sampled(left.select(*_quoted(places.names)), _SAMPLE, n_left).toArrow()
    tree = Tiles(job.left_boxes(_as_table(sample.to_batches(), places)), n_tiles, job.metric)
    near = None
    if job.is_unbounded:
        near = _collect_table(_sampled(right, _NEAR_SAMPLE, rights.counted()), job.right_rows)
    task = _ReachTask(job, tree, near)
    needed = left if job.is_unbounded else left.select(*_quoted([*job.reach_columns, ROW]))
    parts = needed.mapInArrow(task, _ReachTask.schema).toArrow()
    boxes = np.column_stack([parts.column(c).to_numpy() for c in "abcd"])
    tile = parts.column(_TILE).to_numpy()
    counts = np.bincount(tile, parts.column("n").to_numpy(), len(tree) + 1).astype(np.int64)
    some = np.flatnonzero(counts)
    place = np.full(len(tree) + 1, -1)
    place[some] = np.arange(len(some))
    reach = reaches(tile, boxes, len(tree) + 1)
    return _Tiled(task, place, reach[some], counts[some])


def _quoted(names: Any) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in dict.fromkeys(names)]


def _shuffled(left: Any, right: Any, job: TileJoin, tiled: _Tiled) -> Any:
    """Returns the rows of both sides as pieces of blocks, partitioned by tile.
    Within a tile the join rows come before the input rows."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    struct = from_arrow_schema(_blocks.SCHEMA)
    owners, copies = _OwnerTask(tiled.reach_task, tiled.place), _CopyTask(job, tiled.reach)
    mine = left.select(*_quoted(job.left_rows.names)).mapInArrow(owners, struct)
    theirs = right.select(*_quoted(job.right_rows.names)).mapInArrow(copies, struct)
    both, n = theirs.unionByName(mine), max(1, len(tiled.reach))
    if hasattr(both, "repartitionById"):
        both = both.repartitionById(n, F.col(_TILE))
    else:
        both = both.repartition(n, _TILE)
    return both.sortWithinPartitions(*_blocks.ORDER)


class _Join(NamedTuple):
    """A join as the last task of a job: its rows are df.mapInArrow(task, struct)."""

    df: Any
    task: Any
    struct: Any

    def rows(self) -> Any:
        return self.df.mapInArrow(self.task, self.struct)


def _plan_broadcast_join(left: Any, right: Any, job: TileJoin, result: _Result) -> _Join:
    digest, sent = _broadcast_join_side(right, job)
    task = _BroadcastTask(job, digest, sent, result.schema, result.is_ordered)
    return _Join(left, task, result.struct)


def _broadcast_join_side(right: Any, job: TileJoin) -> tuple[str, Any]:
    """Sends the join side of a job to all executors.  Returns (its digest, a
    function that returns the side)."""
    table = _collect_table(right, job.right_rows)
    table = table.sort_by(job.right_number).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue().to_pybytes()
    asked = repr(sorted((k, str(v)) for k, v in job.options.items()))
    digest = hashlib.sha256(content + asked.encode()).hexdigest()
    return digest, _broadcast(right.sparkSession, content)


def _plan_sums_join(left: Any, right: Any, sums: ZoneSums, result: _Result) -> _Join:
    from pyspark.sql.pandas.types import from_arrow_schema

    struct = from_arrow_schema(sums.schema)
    partial = right.select(*_quoted(sums.exchanged.left.names)).mapInArrow(
        _SumTask(sums, *_broadcast_join_side(left, sums.exchanged)), struct
    )
    merged = partial.repartition(ZONE).mapInArrow(_MergeTask(sums), struct)
    beside = left.join(merged, left[ROW] == merged[ZONE], "left")
    return _Join(beside, _ZoneTask(sums, result.schema, result.is_ordered), result.struct)


def _plan_shuffle_join(
    left: Any, right: Any, job: TileJoin, result: _Result, tiled: _Tiled, task_memory: int
) -> _Join:
    rows = _shuffled(left, right, job, tiled)
    task = _TileTask(job, result.schema, result.is_ordered, False, task_memory)
    return _Join(rows, task, result.struct)


def _estimate_bytes(df: Any, schema: Any, n: int) -> int:
    """Estimates the bytes of n rows as an Arrow table, from a sample."""
    if n == 0:
        return 0
    some = _as_table(_sampled(df, 2_000, n).limit(4_000).toArrow().to_batches(), schema)
    return int(some.nbytes / max(1, len(some)) * n)


class _Chosen(NamedTuple):
    way: Way
    sums: ZoneSums | None  # sums of the way "sums"


def _check_way(way: Way | None, job: TileJoin) -> ZoneSums | None:
    """Raises an error if the join cannot be made in this way, before any task
    starts.  Returns the sums if way is "sums", or if way is None and the join
    allows them; otherwise None."""
    if way not in (None, "broadcast", "shuffle", "sums"):
        raise InvalidError(f'way is "broadcast", "shuffle" or "sums", not {way!r}')
    sums = ZoneSums.of(job) if way in (None, "sums") else None
    if way == "sums" and sums is None:
        raise InvalidError(
            'way="sums" needs agg= of count, sum or mean of number columns of the right side, '
            f"how left or inner, one of the ops {', '.join(SUMMED_OPS)}, and no conditions or "
            "options of columns: leave way out"
        )
    return sums


def _choose_way(
    way: Way | None,
    sums: ZoneSums | None,
    left: Any,
    rights: _Numbered,
    job: TileJoin,
    join_memory: int,
) -> _Chosen:
    """Chooses the way of a join.  sums is the result of _check_way().  Rows
    are counted only if way is None."""
    if way is not None:
        return _Chosen(way, sums)

    n_bytes = _estimate_bytes(rights.df, job.right_rows, rights.counted()) * MEMORY_OF_BYTES
    if sums is not None:  # the smaller side is sent
        n_zones = _estimate_bytes(left, job.left, left.count()) * MEMORY_OF_BYTES
        if n_zones <= min(n_bytes, join_memory):
            return _Chosen("sums", sums)
    return _Chosen("broadcast" if n_bytes <= join_memory else "shuffle", None)


def join(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    way: Way | None = None,
    tiles: int | None = None,
    join_memory: int = JOIN_MEMORY,
    task_memory: int = TASK_MEMORY,
    order: Literal["input"] | None = None,
    check_fid: bool = True,
    **options: Any,
) -> Any:
    """ogrjoin.join(left, right, op, ...) of two DataFrames, as a DataFrame.

    way          "broadcast": the join side is sent to every executor; "shuffle":
                 rows of both sides are sent to tiles; "sums": the input (zones) is
                 sent to every executor, and counts, sums and means of the join side
                 are merged; None: "sums" if the join allows it and the input is the
                 smaller side and takes at most join_memory bytes; "broadcast" if the
                 join side takes at most that; else "shuffle"
    tiles        approximate number of tiles of a shuffle; default: a million input
                 rows each
    task_memory  bytes of a task for the join rows of a tile, with their index; a tile
                 that needs more is joined in parts, on the task's disk (1 GiB)
    order        "input": rows in the order of the input, by a sort, for which
                 Spark makes the rows twice; None: rows of one input row are
                 adjacent and in order
    fid          column of unique whole numbers, for both sides or (left, right);
                 default: the number of the row in the Parquet files of the side. Do
                 not use monotonically_increasing_id(): its numbers change when a task
                 runs again
    check_fid    True: a separate job checks that numbers are unique and not missing
    left_crs     CRS of geometries in a binary column of left; right_crs likewise
    options      options of ogrjoin.join(), except one_to_one, max_pairs, op disjoint,
                 and op similar without max_distance

    Input geometries are WKB in a binary column, Spark's GEOMETRY, or Sedona's;
    output geometries are WKB.  The call itself runs the jobs that plan tiles; the
    join is lazy like any DataFrame.
    """
    if order not in (None, "input"):
        raise InvalidError(f'order is "input" or None, not {order!r}')
    options["op"] = op
    mine, theirs, job = _prepare_sides(left, right, options)
    is_ordered = order == "input"
    result = _result_schema(job, is_ordered)
    sums = _check_way(way, job)
    rights = _numbered_join_side(theirs, job, check_fid)
    chosen = _choose_way(way, sums, mine.df, rights, job, join_memory)
    lefts = _Numbered(mine.df, None)
    if chosen.way != "broadcast" or is_ordered or _needs_left_numbers(options):
        lefts = _add_row_column(mine, "left", check_fid)
    tiled: _Tiled | None = None
    if chosen.way == "shuffle":
        tiled = _plan_tiles(lefts, rights, job, tiles)

    def joined(job: TileJoin, result: _Result) -> _Join:
        if chosen.sums is not None:
            return _plan_sums_join(lefts.df, rights.df, chosen.sums, result)
        if tiled is None:
            return _plan_broadcast_join(lefts.df, rights.df, job, result)
        return _plan_shuffle_join(lefts.df, rights.df, job, result, tiled, task_memory)

    made = joined(job, result)
    rows = made.rows()
    if job.how in ("right", "full"):
        pairs = job.of_pairs()
        numbers = joined(pairs, _result_schema(pairs, False)).rows().select(pairs.fid_name).distinct()
        number = _quoted([job.right_number])[0]
        rest = rights.df.join(
            numbers, rights.df[number] == numbers[pairs.fid_name], "left_anti"
        ).mapInArrow(_UnmatchedTask(job, result.schema, is_ordered), result.struct)
        rows = rows.unionByName(rest)
    elif not is_ordered:
        vars(rows)[_JOIN] = made
    if is_ordered:
        from pyspark.sql import functions as F

        rows = rows.orderBy(F.col(ROW).asc_nulls_last(), _PLACE).drop(ROW, _PLACE)
    return rows


def explain(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    way: Way | None = None,
    tiles: int | None = None,
    join_memory: int = JOIN_MEMORY,
    **options: Any,
) -> Explanation:
    """Explains how join() would run, or join_files() if left and right are
    paths: way, tiles, copies of a join row, memory of a task."""
    options["op"] = op
    if isinstance(left, str):
        return explain_files(left, right, tiles=tiles, **options)
    mine, theirs, job = _prepare_sides(left, right, options)
    sums = _check_way(way, job)
    rights = _numbered_join_side(theirs, job, False)
    chosen = _choose_way(way, sums, mine.df, rights, job, join_memory).way
    n_left, n_right = mine.df.count(), rights.counted()
    n_bytes = _estimate_bytes(rights.df, job.right_rows, n_right)
    rows = (n_left, n_right)
    if chosen == "sums":
        n_bytes = _estimate_bytes(mine.df, job.left, n_left)
        return Explanation("sums", 1, rows, 1.0, n_bytes * MEMORY_OF_BYTES, (0, 0))
    if chosen == "broadcast":
        return Explanation("broadcast", 1, rows, 1.0, n_bytes * MEMORY_OF_BYTES, (0, 0))
    tiled = _plan_tiles(_add_row_column(mine, "left", False), rights, job, tiles)
    some = _as_table(_sampled(rights.df, _SAMPLE, n_right).toArrow().to_batches(), job.right_rows)
    _, tile = tiles_of_rows(job.right_boxes(some), tiled.reach, job.metric)
    share = np.bincount(tile, minlength=len(tiled.reach)) / max(1, len(some))
    most = int(share.max(initial=0) * n_bytes) * MEMORY_OF_BYTES
    return Explanation("shuffle", len(tiled.reach), rows, float(share.sum()), most, (0, 0))


def validate(
    left: Any,
    right: Any,
    op: str = "intersects",
    *,
    sample: float = 0.001,
    tiles: int | None = None,
    seed: int = SEED,
    **options: Any,
) -> Validation:
    """Joins random tiles that have at least the given share of the input, both
    as join() and by GEOS.  Compares pairs and distances.  on, exclude, pick
    and agg are ignored: all pairs of op are compared.  Row numbers of a
    difference count within its tile."""
    options["op"] = op
    mine, theirs, job = _prepare_sides(left, right, options)
    rights = _numbered_join_side(theirs, job, False)
    lefts = _add_row_column(mine, "left", False)
    n_left = lefts.counted()
    if tiles is None:
        tiles = max(1, min(int(2 / max(sample, 1e-9)), n_left // 100))
    tiled = _plan_tiles(lefts, rights, job, tiles)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(tiled.n_rows))
    enough = np.searchsorted(np.cumsum(tiled.n_rows[order]), sample * n_left) + 1
    chosen = [int(t) for t in order[:enough]]
    from pyspark.sql import functions as F

    rows = _shuffled(lefts.df, rights.df, job, tiled).where(F.col(_TILE).isin(chosen))
    numbers = [name for name in Validation._fields if name != "kind"]
    fields = [pa.field(name, pa.int64()) for name in numbers]
    schema = pa.schema([*fields, pa.field("kind", pa.string())])
    text = ", ".join(f"`{name}` bigint" for name in numbers) + ", kind string"
    task = _TileTask(job, schema, False, True, TASK_MEMORY)
    found = rows.mapInArrow(task, text).toArrow().to_pylist()
    sums = [sum(part[name] for part in found) for name in numbers[:6]]
    first = next((part for part in found if part["kind"]), None)
    at = (first["left"], first["right"], first["kind"]) if first else (-1, -1, None)
    return Validation(*sums, *at)


def join_files(
    left: str,
    right: str,
    out: str,
    op: str = "intersects",
    *,
    session: Any = None,
    tiles: int | None = None,
    overwrite: bool = False,
    task_memory: int = TASK_MEMORY,
    **options: Any,
) -> int:
    """Runs ogrjoin.scale.join_files() as Spark tasks; returns the number of
    rows.  Executors read and write the folders directly, so the paths must be
    valid on all of them (a shared file system or URIs).  session is by default
    the active session."""
    if session is None:
        from pyspark.sql import SparkSession

        session = SparkSession.active()
    options["op"] = op
    options.setdefault("threads", 1)
    options.setdefault("batch_rows", _BATCH_ROWS)
    plan, output = prepare_files(
        left, right, out, options, tiles=tiles, overwrite=overwrite, task_memory=task_memory
    )
    plan.job.gpus_of_task = task_gpus
    from ._spark_output import FilesTask, written

    def finish(made: list[Any]) -> int:
        return finish_files(plan, output, made)

    ids = session.range(0, plan.n_tiles, 1, max(1, plan.n_tiles))
    return written(ids, FilesTask(plan, output), output, finish)


def write(rows: Any, out: str, *, overwrite: bool = False) -> int:
    """Writes a DataFrame that join() has made, or one made from it, to a folder of
    GeoParquet 1.1; returns the number of rows.

    The geometry columns of join() have their CRS. A DataFrame without geometry columns
    becomes plain Parquet. The tasks of a join write its rows themselves, unless they
    are sorted (order="input") or kept (cache()): Spark does not get them. The files are
    in the order of the partitions. Tasks write under temporary names, and the folder
    appears when the job has succeeded: a job that fails leaves the former output. The
    path must be valid on all executors.

    overwrite    True: replaces out if it exists
    """
    from . import _spark_output

    made: _Join | None = vars(rows).get(_JOIN)
    level = rows.storageLevel
    if made is not None and not (level.useDisk or level.useMemory):
        return _spark_output.write_rows(made.df, made.task, made.struct, out, overwrite)
    rows.sparkSession.dataSource.register(_spark_output.GeoParquetSource)
    mode = "overwrite" if overwrite else "append"
    rows.write.format(_spark_output.GeoParquetSource.name()).mode(mode).save(out)
    return count_rows(out)
