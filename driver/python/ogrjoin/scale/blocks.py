"""Rows of tiles as blocks of bytes, which an engine shuffles without reading them.

    rows and their tiles -> pieces()      a block for each tile, cut into pieces
    pieces, in order     -> blocks()      the record batches of one tile after another
                         -> in_order()    ... with the rows ascending by number

A block is the Arrow message of a record batch whose rows ascend by number.  Its pieces
are rows of SCHEMA, and ORDER sorts them:

    tile  side  first  block  piece  content
    3     0     17     7      0      4096 bytes     first: the number of the first row
    3     0     17     7      1      640 bytes
    3     1     0      2      0      ...            side 0: join rows, 1: input rows

Spark passes rows to Python in batches of 10,000, whatever their size: a piece is small,
so that such a batch takes 40 MB.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, NamedTuple

import numpy as np
import pyarrow as pa

from .parts import SideRows, plain_types, with_types
from .tiles import by_tile

SCHEMA = pa.schema(
    [
        pa.field("ogrjoin_tile", pa.int32()),
        pa.field("ogrjoin_side", pa.int32()),
        pa.field("ogrjoin_first", pa.int64()),
        pa.field("ogrjoin_block", pa.int64()),
        pa.field("ogrjoin_piece", pa.int32()),
        pa.field("ogrjoin_content", pa.binary()),
    ]
)
TILE = SCHEMA.names[0]
ORDER = SCHEMA.names[:5]

_PIECE = 4096  # bytes
_ALIGNED = 64  # bytes: blocks begin at multiples of this, the alignment of Arrow's buffers
_MOST = 8 << 20  # a batch of pieces is complete when its blocks have this many bytes


def pieces(
    table: Any, rows: Any, tiles: Any, side: int, number: str, block: Iterator[int]
) -> Iterator[Any]:
    """Yields record batches of SCHEMA with blocks of the rows of a table.

    rows, tiles  [n] rows[i] of the table belongs to tiles[i]
    number       the column of the numbers of the rows
    block        the numbers of the blocks, unique among all tasks
    """
    if len(rows) == 0:
        return
    table = table.combine_chunks()
    numbers = np.asarray(table.column(number).cast(pa.int64()))[rows]
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        rows, tiles, numbers = rows[order], tiles[order], numbers[order]
    order = by_tile(tiles)
    rows, tiles, numbers = rows[order], tiles[order], numbers[order]
    ends = np.flatnonzero(np.append(tiles[1:] != tiles[:-1], True)) + 1
    kept: list[tuple[int, int, int, Any]] = []
    start, size = 0, 0
    types = table.schema.types
    table = with_types(table, plain_types(table.schema))
    for end in ends.tolist():
        part = with_types(table.take(pa.array(rows[start:end])), types).combine_chunks()
        for batch in part.to_batches():
            content = batch.serialize()
            first = int(numbers[start])
            kept.append((int(tiles[start]), first, next(block), content))
            size += content.size
            start += len(batch)
        if size >= _MOST:
            yield _cut(kept, side)
            kept, size = [], 0
    if kept:
        yield _cut(kept, side)


def _cut(made: list[tuple[int, int, int, Any]], side: int) -> Any:
    """Cuts blocks, given as (tile, first, block, content), into pieces: rows
    of SCHEMA."""
    sizes = np.array([content.size for *_, content in made], dtype=np.int64)
    starts = np.cumsum(-(-sizes // _ALIGNED) * _ALIGNED)
    data = np.zeros(int(starts[-1]), dtype=np.uint8)
    starts -= -(-sizes // _ALIGNED) * _ALIGNED
    for at, (*_, content) in zip(starts.tolist(), made):
        data[at : at + content.size] = np.frombuffer(content, np.uint8)
    n = -(-sizes // _PIECE)  # the padding of a block fits into its last piece
    of = np.repeat(np.arange(len(made)), n)
    piece = np.arange(len(of)) - np.repeat(np.cumsum(n) - n, n)
    offsets = np.append(starts[of] + piece * _PIECE, len(data)).astype(np.int32)
    tile, first, block = (np.array([words[i] for words in made], np.int64)[of] for i in range(3))
    content = pa.Array.from_buffers(
        pa.binary(), len(of), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    columns = [tile.astype(np.int32), np.full(len(of), side, np.int32), first, block]
    columns += [piece.astype(np.int32)]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), content], schema=SCHEMA)


class Block(NamedTuple):
    tile: int
    side: int
    first: int  # the number of the first row
    rows: Any


def _whole(parts: list[Any]) -> Any:
    """Returns the content of a block from the buffers of its pieces, at an
    aligned address."""
    if len(parts) == 1 and parts[0].address % _ALIGNED == 0:
        return parts[0]
    return pa.py_buffer(np.concatenate([np.frombuffer(part, np.uint8) for part in parts]))


def blocks(batches: Iterable[Any], schemas: tuple[Any, Any]) -> Iterator[Block]:
    """Yields the blocks of pieces that are sorted by ORDER.  schemas are those
    of the join rows and of the input rows."""
    head: tuple[int, int, int] | None = None
    parts: list[Any] = []  # pieces of the block that is not complete yet

    def made() -> Iterator[Block]:
        if head is not None:
            rows = pa.ipc.read_record_batch(_whole(parts), schemas[head[1]])
            yield Block(*head, rows)

    for batch in batches:
        if len(batch) == 0:
            continue
        heads = zip(*(np.asarray(batch.column(name)).tolist() for name in ORDER[:3]))
        content = batch.column(SCHEMA.names[5]).cast(pa.large_binary())
        data = content.buffers()[2]
        offsets = np.frombuffer(content.buffers()[1], np.int64)[content.offset :]
        is_first = np.asarray(batch.column(ORDER[4])) == 0
        starts = np.flatnonzero(is_first)
        until = int(starts[0]) if len(starts) else len(batch)
        if until:  # the rest of the last batch's block
            parts.append(data.slice(int(offsets[0]), int(offsets[until] - offsets[0])))
        of = [one for one, begins in zip(heads, is_first.tolist()) if begins]
        for one, start, end in zip(of, starts.tolist(), [*starts[1:].tolist(), len(batch)]):
            yield from made()
            head = one
            parts = [data.slice(int(offsets[start]), int(offsets[end] - offsets[start]))]
    yield from made()


def in_order(
    found: Iterable[Block], number: str, schema: Any, limit: float, tile: int
) -> Iterator[Any]:
    """Yields the rows of one side of a tile from its blocks, ascending by
    number.  Blocks whose numbers overlap, because the rows were shuffled
    before, are sorted together, on disk if they exceed `limit` bytes."""
    kept, last = SideRows(schema, limit, tile), 0
    for block in found:
        if kept.n_rows and block.first > last:
            yield from _flushed(kept, number)
            kept = SideRows(schema, limit, tile)
        end = int(block.rows.column(number)[-1].as_py())
        last = max(last, end) if kept.n_rows else end
        kept.add(block.rows)
    yield from _flushed(kept, number)


def _flushed(kept: SideRows, number: str) -> Iterator[Any]:
    kept = kept.ascending(number)
    yield from kept
    kept.close()
