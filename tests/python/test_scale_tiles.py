"""Joins in tiles, without an engine.  For any assignment of rows to tiles, the rows are
those of one call of join(), bit for bit and in its order.  OGRJOIN_SCALE_ROUNDS is the
number of random joins (24), OGRJOIN_SCALE_SEED the first seed (1).
"""

import json
import os
import pickle

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
shapely = pytest.importorskip("shapely")

from ogrjoin.scale import blocks, boxes as scale_boxes
from ogrjoin.scale.copies import meeting, tiles_of_rows
from ogrjoin.scale.parts import MEMORY_OF_BYTES, SideRows, cut_tile
from ogrjoin.scale.sums import ZoneSums
from ogrjoin.scale.tile_join import ROW, TileJoin
from ogrjoin.scale.tiles import Tiles, reaches, sample_rows

ROUNDS = int(os.environ.get("OGRJOIN_SCALE_ROUNDS") or 24)
SEED = int(os.environ.get("OGRJOIN_SCALE_SEED") or 1)


def table(shapes, crs=None, **columns):
    metadata = {
        "ARROW:extension:name": "geoarrow.wkb",
        "ARROW:extension:metadata": json.dumps({"crs": crs} if crs else {}),
    }
    arrays = {name: pa.array(values) for name, values in columns.items()}
    fields = [pa.field(name, array.type) for name, array in arrays.items()]
    wkb = pa.array(shapely.to_wkb(np.asarray(shapes, dtype=object)), pa.binary())
    fields.append(pa.field("geometry", wkb.type, metadata=metadata))
    return pa.table([*arrays.values(), wkb], schema=pa.schema(fields))


def numbered(side):
    return side.append_column(ROW, pa.array(np.arange(len(side))))


def take(side, rows):
    return side.take(pa.array(rows, pa.int64()))


def join_in_tiles(left, right, n_tiles, owners=None, **options):
    """Joins in tiles as an engine does. Returns the rows and the number of copies of a
    join row. owners are the tiles of the input rows, instead of those of a tree."""
    job = pickle.loads(pickle.dumps(TileJoin(left.schema, right.schema, options)))
    left = numbered(left)
    right = right if job.right_fid else numbered(right)
    bounds = np.inf
    if job.is_unbounded:
        sample = right.take(pa.array(sample_rows(len(right), max(8, len(right) // 20))))
        bounds = job.bounds(left, sample)
    places = job.left_boxes(left)
    tiles = Tiles(places[sample_rows(len(left), 100 * n_tiles)], n_tiles, job.metric)
    owner, reach = job.assign(left, pickle.loads(pickle.dumps(tiles)), bounds)
    if owners is not None:
        owner = owners
    n = int(max(owner, default=0)) + 1
    row, tile = tiles_of_rows(
        job.right_boxes(right), reaches(owner, reach, n), job.metric
    )
    made, matched = [], []
    for t in range(n):
        mine = take(left, np.flatnonzero(owner == t))
        theirs = take(right, row[tile == t])  # in their order: row ascends
        made.append(job.joined(mine, theirs).read_all())
        if job.how in ("right", "full"):
            matched.append(job.matched(mine, theirs))
    rows = pa.concat_tables(made)
    rows = rows.take(pa.array(np.argsort(rows.column(ROW).to_numpy(), kind="stable")))
    if job.how in ("right", "full"):
        numbers = right.column(job.right_number).to_numpy()
        rest = np.flatnonzero(~np.isin(numbers, np.concatenate(matched)))
        rows = pa.concat_tables([rows, job.unmatched(take(right, rest)).read_all()])
    return job.unnumbered(rows), len(row) / max(1, len(right))


def same(rows, one):
    one = one.read_all()
    assert rows.schema.equals(one.schema, check_metadata=True)
    assert len(rows) == len(one)
    for name in one.schema.names:
        a, b = rows.column(name).combine_chunks(), one.column(name).combine_chunks()
        if pa.types.is_floating(a.type):  # compared by their bits
            assert a.is_valid().equals(b.is_valid()), name
            a, b = (np.asarray(c.fill_null(0)).view(np.int64) for c in (a, b))
            assert np.array_equal(a, b), name
        else:
            assert a.equals(b), name


def check(left, right, n_tiles, owners=None, **options):
    rows, _ = join_in_tiles(left, right, n_tiles, owners, **options)
    same(rows, ogrjoin.join(left, right, **options))


# ---- layers ----------------------------------------------------------------


def places(r, n):
    """Returns points in clusters on a coarse grid. Places repeat, and some are on cuts
    of the tree."""
    at = np.round(r.uniform(0, 100, (n, 2)) / 4) * 4
    free = r.random(n) < 0.5
    at[free] += r.normal(0, 3, (int(free.sum()), 2))
    return at


def shapes_of(r, kind, n, size=6.0):
    at = places(r, n)
    if kind == "points":
        made = shapely.points(at)
    elif kind == "boxes":
        half = r.uniform(0.1, size, (n, 2)) / 2
        half[r.random(n) < 0.04] = 60  # larger than most tiles
        made = shapely.box(*(at - half).T, *(at + half).T)
    else:
        to = at + r.normal(0, size, (n, 2))
        made = shapely.linestrings(np.stack((at, to), axis=1))
    made = np.asarray(made, dtype=object)
    made[r.random(n) < 0.03] = None
    made[r.random(n) < 0.02] = shapely.from_wkt("POLYGON EMPTY")
    return made


def layer(r, kind, n):
    return table(
        shapes_of(r, kind, n),
        n=np.arange(n) * 7 % n,
        v=np.round(r.normal(0, 50, n), 3),
        name=[str(c) for c in r.choice(["elm", "oak", "ash"], n)],
        reach=r.choice([0.0, 1.0, 3.5, np.nan], n),
    )


KINDS = ("points", "points", "boxes", "lines")
OPS = (
    "nearest", "nearest", "nearest", "dwithin", "dwithin", "intersects", "within", "contains",
    "covers", "coveredby", "touches", "crosses", "overlaps", "equals", "bbox", "relate",
    "contains_properly",
)  # fmt: skip


def random_join(r):
    op = str(r.choice(OPS))
    o = {"op": op, "how": str(r.choice(["left", "inner", "semi", "anti", "right", "full"]))}

    def maybe(share, name, *values):
        if r.random() < share:
            o[name] = values[r.integers(len(values))]

    if op == "relate":
        o["relate"] = "T********"
    if op == "nearest":
        maybe(0.6, "max_distance", 0, 1.5, 4)
        maybe(0.5, "k", 3)
        maybe(0.5, "ties", "all")
        maybe(0.1, "min_distance", 0.5)
    if op == "dwithin":
        o[str(r.choice(["max_distance_field", "join_max_distance_field", "max_distance"]))] = 0
        for name in o:
            o[name] = "reach" if name.endswith("_field") else o[name]
        if "max_distance" in o:
            o["max_distance"] = float(r.choice([0, 1, 4]))
    maybe(0.15, "on", "name=name")
    maybe(0.15, "exclude", "self", "field=name", "same_geometry")
    maybe(0.2, "pick", "first", "nearest", "max:v", "min:n")
    if "pick" not in o and o["how"] in ("left", "inner"):
        maybe(0.3, "agg", "count, sum(v), mean(v)", "concat(name, ';'), median(v), mode(name)")
    maybe(0.15, "fid", "n")
    maybe(0.1, "geometry", "join", "none")
    maybe(0.1, "left_select", "v", "")
    return o


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_random_joins_in_tiles(seed):
    r = np.random.default_rng(seed)
    left = layer(r, KINDS[r.integers(4)], int(r.choice([1, 60, 250])))
    right = layer(r, KINDS[r.integers(4)], int(r.choice([1, 40, 200])))
    options = random_join(r)
    try:
        one = ogrjoin.join(left, right, **options)
        one.read_all()
    except ogrjoin.Error as error:
        with pytest.raises(type(error)) as raised:
            join_in_tiles(left, right, 7, **options)
        assert str(raised.value) == str(error)
        return
    for n_tiles in (1, 7, 64):
        same(join_in_tiles(left, right, n_tiles, **options)[0], one)
    # A random assignment to tiles also gives the right rows, only more slowly.
    owners = r.integers(0, 5, len(left))
    same(join_in_tiles(left, right, 1, owners, **options)[0], one)


# ---- partial sums of zones --------------------------------------------------


def join_by_sums(left, right, n_parts, owners, **options):
    job = TileJoin(left.schema, right.schema, options)
    sums = pickle.loads(pickle.dumps(ZoneSums.of(job)))
    zones, right = numbered(left), numbered(right)
    partials = []
    for part in range(n_parts):
        rows = take(right, np.flatnonzero(owners == part)).select(sums.exchanged.left_rows.names)
        held = sums.hold(zones)
        partials.append(sums.partial(held.joined(rows), held.numbers))
    r = np.random.default_rng(n_parts)
    tables = [pa.Table.from_batches([partials[i]]) for i in r.permutation(n_parts)]
    # As in a shuffle, partial sums are merged in two steps, and zones are
    # processed in several calls.
    merged = pa.concat_tables([sums.merged(pa.concat_tables(tables[:2])), *tables[2:]])
    merged = sums.merged(merged)
    made = []
    for first in range(0, max(1, len(left)), 70):
        made.append(sums.rows(zones.slice(first, 70), merged))
    return job.unnumbered(pa.concat_tables(made))


SUMS = (
    {"op": "contains", "agg": "count, sum(v), mean(v)"},
    {"op": "intersects", "agg": ["mean(v) as m", "COUNT( v )", "sum(n)", "avg(n)"], "how": "inner"},
    {"op": "dwithin", "max_distance": 2.5, "agg": "sum(f), count as how_many"},
    {"op": "coveredby", "agg": "count", "left_select": "name"},
)


@pytest.mark.parametrize("seed", range(SEED, SEED + max(6, ROUNDS // 4)))
def test_sums_of_zones(seed):
    r = np.random.default_rng(seed)
    left = layer(r, ("boxes", "points", "lines")[seed % 3], int(r.choice([1, 200])))
    right = layer(r, ("points", "boxes")[seed % 2], int(r.choice([0, 1, 400])))
    n = len(right)
    v = np.round(r.normal(0, 1, n), 3) * 10.0 ** r.integers(-12, 13, n)
    v[r.random(n) < 0.02] = np.nan
    v[r.random(n) < 0.01] = np.inf
    i = right.schema.get_field_index("v")
    right = right.set_column(i, "v", pa.array(v, mask=r.random(n) < 0.1))
    right = right.append_column("f", pa.array(v.astype(np.float32)))
    for options in SUMS:
        one = ogrjoin.join(left, right, **options)
        for n_parts in (1, 5):
            owners = r.integers(0, n_parts, n)
            same(join_by_sums(left, right, n_parts, owners, **options), one)


def test_sums_of_large_integers():
    left = table(shapely.points([[0.0, 0], [9, 9]]))
    right = table(shapely.points([[0.0, 0]] * 3), n=np.array([2**62, 2**62 - 1, 1]))
    options = {"op": "intersects", "agg": "sum(n)"}
    owners = np.array([0, 1, 1])
    same(join_by_sums(left, take(right, [0, 1]), 2, owners[:2], **options),
         ogrjoin.join(left, take(right, [0, 1]), **options))  # fmt: skip
    with pytest.raises(ogrjoin.InvalidError, match="64 bits"):
        ogrjoin.join(left, right, **options).read_all()
    with pytest.raises(ogrjoin.InvalidError, match="64 bits"):
        join_by_sums(left, right, 2, owners, **options)


def test_what_has_no_partial_sums():
    r = np.random.default_rng(1)
    left, right = layer(r, "boxes", 5), layer(r, "points", 5)
    for options in (
        {"op": "contains"},
        {"op": "nearest", "agg": "count"},
        {"op": "contains", "agg": "count, median(v)"},
        {"op": "contains", "agg": "count, min(name)"},
        {"op": "contains", "agg": "count(name)"},
        {"op": "contains", "agg": "count", "on": "name=name"},
        {"op": "contains", "agg": "count", "exclude": "self"},
        {"op": "dwithin", "agg": "mean(join_distance)", "max_distance": 1},
    ):
        assert ZoneSums.of(TileJoin(left.schema, right.schema, options)) is None


# ---- parts of a tile that is too large -------------------------------------


def join_in_parts(left, right, task_memory, is_ordered, **options):
    """Joins the sides as one tile, in parts. Returns None if the join side fits into
    memory. Otherwise returns the joined rows, and (rows of the input, rows of the join
    side) of each part."""
    job = TileJoin(left.schema, right.schema, options)
    left = numbered(left)
    right = right if job.right_fid else numbered(right)
    limit = task_memory / MEMORY_OF_BYTES
    mine, theirs = (
        SideRows(side.schema, limit, 3).extend(side.to_batches(max_chunksize=37))
        for side in (left, right)
    )
    if not theirs.is_on_disk:
        return None
    for _ in range(2):  # the file is read as often as needed
        assert theirs.table().select(["geometry"]).equals(right.select(["geometry"]))
    made, matched, sizes = [], [np.zeros(0, np.int64)], []
    for part, table in cut_tile(job, mine, theirs, task_memory, 3, is_ordered):
        made.append(job.joined(part, table).read_all())
        matched.append(job.matched(part, table))
        assert table.nbytes * MEMORY_OF_BYTES <= task_memory * 1.5  # rows differ in size
        sizes.append((len(part), len(table)))
    rows = pa.concat_tables(made)
    numbers = rows.column(ROW).to_numpy()
    if is_ordered:
        assert (np.diff(numbers) >= 0).all()
    rows = rows.take(pa.array(np.argsort(numbers, kind="stable")))
    if job.how in ("right", "full"):
        of_right = right.column(job.right_number).to_numpy()
        rest = np.flatnonzero(~np.isin(of_right, np.concatenate(matched)))
        rows = pa.concat_tables([rows, job.unmatched(take(right, rest)).read_all()])
    return job.unnumbered(rows), sizes


@pytest.mark.parametrize("is_ordered", (False, True))
@pytest.mark.parametrize("seed", range(SEED, SEED + max(8, ROUNDS // 3)))
def test_random_joins_in_parts(seed, is_ordered):
    r = np.random.default_rng(seed)
    left = layer(r, KINDS[r.integers(4)], 250)
    right = layer(r, "points", 200)
    # runs of rows are useful as parts only if the rows are sorted by place
    if is_ordered:
        boxes = scale_boxes.of_wkb(left.column("geometry"))
        left = take(left, np.lexsort((boxes[:, 1], np.floor(boxes[:, 0] / 25))))
    options = random_join(r)
    try:
        one = ogrjoin.join(left, right, **options)
        one.read_all()
    except ogrjoin.Error:
        return
    n_bytes = right.nbytes * MEMORY_OF_BYTES
    for share in (0.7, 0.4):
        try:
            rows, sizes = join_in_parts(left, right, int(share * n_bytes), is_ordered, **options)
        except ogrjoin.InvalidError as error:
            assert "set task_memory=" in str(error)
            continue
        assert len(sizes) > 1
        same(rows, one)


def test_parts_of_a_city():
    r = np.random.default_rng(1)
    at = r.uniform(0, 1000, (4000, 2))
    at = at[np.argsort(np.floor(at[:, 0] / 20) * 1000 + at[:, 1])]
    left = table(shapely.points(at), v=np.arange(4000))
    corner = r.uniform(0, 1000, (3000, 2))
    right = table(shapely.box(*corner.T, *(corner + 5).T), m=np.arange(3000))
    n_bytes = right.nbytes * MEMORY_OF_BYTES
    for is_ordered in (False, True):
        for options in (
            {"op": "nearest", "max_distance": 4, "how": "full"},
            {"op": "nearest", "k": 2, "ties": "all"},
            {"op": "within", "agg": "count, sum(m)"},
        ):
            rows, sizes = join_in_parts(left, right, n_bytes // 5, is_ordered, **options)
            same(rows, ogrjoin.join(left, right, **options))
            assert len(sizes) >= 5 and sum(n for n, _ in sizes) == 4000
            assert max(n for _, n in sizes) <= 3000 // 5
    assert join_in_parts(left, right, n_bytes * 2, False, op="within") is None


def test_a_part_that_cannot_be_cut_is_named():
    left = table(shapely.points(np.full((30, 2), 5.0)), v=np.arange(30))
    right = table(shapely.points(np.full((400, 2), 5.0)), m=np.arange(400))
    for is_ordered in (False, True):
        with pytest.raises(ogrjoin.InvalidError) as raised:
            join_in_parts(left, right, right.nbytes, is_ordered, op="nearest")
        text = str(raised.value)
        for word in ("tile 3", "left side", "400 rows of the right side", "set task_memory="):
            assert word in text
    enough = int(text.rpartition("set task_memory=")[2].split()[0])
    assert right.nbytes * MEMORY_OF_BYTES <= enough <= right.nbytes * MEMORY_OF_BYTES * 1.5


def test_rows_that_no_disk_has_room_for():
    resource = pytest.importorskip("resource")
    side = numbered(table(shapely.points(np.zeros((5000, 2)))))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    rows = SideRows(side.schema, 1000, 7)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="tile 7 has .* MB of rows .* a larger disk"):
            rows.extend(side.to_batches(max_chunksize=500))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def deal(r, sides, tiles, n_tasks, is_shuffled):
    """Returns pieces of the rows of both sides, as tasks make them and an engine sorts
    them. With is_shuffled, the rows reach the tasks in any order."""
    made, block = [], iter(range(10**6))
    for side, (rows, of) in enumerate(zip(sides, tiles)):
        order = r.permutation(len(rows)) if is_shuffled else np.arange(len(rows))
        for part in np.array_split(order, n_tasks):
            for few in np.array_split(part, 2):
                at = np.flatnonzero(np.isin(of[0], few))
                place = {row: i for i, row in enumerate(few.tolist())}
                row = np.array([place[i] for i in of[0][at].tolist()], np.int64)
                made += blocks.pieces(take(rows, few), row, of[1][at], side, ROW, block)
    by = [(name, "ascending") for name in blocks.ORDER]
    made = pa.Table.from_batches(made, schema=blocks.SCHEMA).sort_by(by).combine_chunks()
    cuts = np.sort(r.integers(0, len(made) + 1, r.integers(0, 9)))
    for a, b in zip([0, *cuts.tolist()], [*cuts.tolist(), len(made)]):
        yield from made.slice(a, b - a).to_batches()


@pytest.mark.parametrize("is_shuffled", (False, True))
@pytest.mark.parametrize("seed", range(SEED, SEED + max(8, ROUNDS // 3)))
def test_blocks_bring_the_rows_of_each_tile(seed, is_shuffled):
    r = np.random.default_rng([26, seed])
    n_tiles = int(r.integers(1, 6))
    sides, tiles = [], []
    for kind, n in (("boxes", 300), ("points", 500)):
        rows = numbered(layer(r, kind, n)).drop_columns(["reach"])  # has NaN
        rows = rows.append_column("long", pa.array(["x" * (i * 37 % 5000) for i in range(n)]))
        lists = [None if i % 3 else [{"a": i}] * (i % 4) for i in range(n)]
        sides.append(rows.append_column("lists", pa.array(lists)))
        n_copies = r.integers(0, 3, n) if kind == "boxes" else np.ones(n, np.int64)
        row = np.repeat(np.arange(n), n_copies)
        tile = (np.arange(len(row)) * 7 + row) % n_tiles  # two copies of a row are in different tiles
        key = np.unique(row * n_tiles + tile)
        tiles.append(np.divmod(key, n_tiles))
    limit = float(r.choice([1e3, 1e5, np.inf]))
    schemas = tuple(side.schema for side in sides)
    found = blocks.blocks(deal(r, sides, tiles, int(r.integers(1, 4)), is_shuffled), schemas)
    met = {}
    for block in found:
        assert met == {} or (block.tile, block.side) >= max(met)  # tile after tile
        assert block.first == block.rows.column(ROW)[0].as_py()
        met.setdefault((block.tile, block.side), []).append(block)
    for tile in range(n_tiles):
        for side in (0, 1):
            mine = take(sides[side], tiles[side][0][tiles[side][1] == tile])
            ordered = blocks.in_order(
                met.get((tile, side), []), ROW, schemas[side], limit, tile
            )
            assert pa.Table.from_batches(ordered, schema=schemas[side]).equals(mine)
            rows = SideRows(schemas[side], limit, tile)
            rows.extend(block.rows for block in met.get((tile, side), []))
            assert rows.ascending(ROW).table().equals(mine)


@pytest.mark.parametrize("n_tiles", (1, 7, 64))
def test_all_rows_at_one_place(n_tiles):
    left = table(shapely.points(np.full((300, 2), 5.0)), v=np.arange(300))
    right = table(shapely.points(np.full((40, 2), 5.0)), m=np.arange(40))
    for options in (
        {"op": "nearest", "k": 3},
        {"op": "nearest", "k": 2, "ties": "all", "max_distance": 1, "how": "full"},
        {"op": "intersects", "agg": "count, sum(m)"},
    ):
        check(left, right, n_tiles, **options)


def test_one_place_is_dealt_to_several_tiles():
    at = np.vstack((np.full((300, 2), 5.0), np.random.default_rng(1).uniform(0, 9, (700, 2))))
    boxes = np.hstack((at, at))
    tiles = Tiles(boxes, 10)
    counts = np.bincount(tiles.owners(boxes, np.arange(1000)), minlength=len(tiles))
    assert counts.max() <= 200 and counts.sum() == 1000


def test_points_on_cuts_have_one_owner():
    x, y = (c.ravel().astype(float) for c in np.meshgrid(np.arange(16), np.arange(16)))
    boxes = np.column_stack((x, y, x, y))
    tiles = Tiles(boxes, 16)
    owner = tiles.owners(boxes, np.arange(256))
    counts = np.bincount(owner, minlength=len(tiles))
    assert np.array_equal(counts[counts > 0], np.full(16, 16))  # nodes above have none
    reach = reaches(owner, boxes, len(tiles))
    for t in np.flatnonzero(counts):  # half-open: tiles share no place
        inside = ((boxes[:, :2] >= reach[t, :2]) & (boxes[:, 2:] <= reach[t, 2:])).all(axis=1)
        assert np.array_equal(np.flatnonzero(inside), np.flatnonzero(owner == t))
    left = table(shapely.points(x, y), v=np.arange(256))
    right = table(shapely.box(x, y, x + 1, y + 1), m=np.arange(256))
    for op in ("intersects", "touches", "bbox"):
        check(left, right, 16, op=op)
    check(left, right, 16, op="dwithin", max_distance=1)


def test_large_rows_do_not_stretch_the_reach_of_others():
    r = np.random.default_rng(3)
    at = r.uniform(0, 1000, (2000, 2))
    left = table([*shapely.box(*at.T, *(at + 3).T), shapely.box(0, 0, 1000, 1000)])
    right = table(shapely.points(r.uniform(0, 1000, (3000, 2))))
    rows, copies = join_in_tiles(left, right, 32, op="contains")
    same(rows, ogrjoin.join(left, right, op="contains"))
    assert copies <= 2.3  # one of them is in the tile of the large row


def test_empty_sides_and_tiles():
    some = table(shapely.points([[0.0, 0], [9, 9]]), v=[1, 2])
    none = some.slice(0, 0)
    nowhere = table([None, shapely.Point()], v=[1, 2])
    for how in ("left", "inner", "semi", "anti", "right", "full"):
        for sides in ((some, none), (none, some), (some, nowhere), (nowhere, some)):
            check(*sides, 7, op="intersects", how=how)
            check(*sides, 7, op="nearest", how=how)


def test_bounds_of_few_rows():
    r = np.random.default_rng(5)
    left = table(shapely.points(r.uniform(0, 50, (400, 2))), name=r.choice(["a", "b", "c"], 400))
    right = table(shapely.points(r.uniform(0, 50, (90, 2))), name=r.choice(["b", "c", "d"], 90))
    for options in ({"k": 3}, {"k": 100}, {"on": "name=name", "k": 2}, {"min_distance": 30}):
        check(left, right, 7, op="nearest", **options)
        check(left, right, 7, op="nearest", how="full", ties="all", **options)


def sphere_layer(r, kind, n):
    lon = r.choice([-180.0, 180.0, -179.99, 179.9, 0, 12, 90], n) + r.normal(0, 0.5, n)
    lat = r.choice([-90.0, -89.9, 0, 47, 89.5, 90], n) + r.choice([0, 0.3, -0.7], n)
    lon = np.where(r.random(n) < 0.2, r.uniform(-540, 540, n), lon)
    lat = np.where(r.random(n) < 0.2, r.uniform(-90, 90, n), lat)
    if kind == "points":
        shapes = shapely.points(lon, lat)
    elif kind == "lines":
        far = lon + r.choice([1, -3, 80, 170, 200, -359], n)
        to = np.column_stack((far, np.clip(-lat, -90, 90)))
        to[r.random(n) < 0.7] = np.nan
        near = np.column_stack((lon + r.normal(0, 1, n), np.clip(lat + r.normal(0, 1, n), -90, 90)))
        to = np.where(np.isnan(to), near, to)
        shapes = shapely.linestrings(np.stack((np.column_stack((lon, lat)), to), axis=1))
    else:
        w, h = r.choice([0.1, 2, 30, 100], n), r.choice([0.1, 1, 20], n)
        low, high = np.clip(lat - h, -90, 90), np.clip(lat + h, -90, 90)
        shapes = shapely.box(lon - w, low, lon + w, np.maximum(high, low + 0.01))
    return table(np.asarray(shapes, dtype=object), "EPSG:4326", v=np.arange(n))


@pytest.mark.parametrize("seed", range(6))
def test_on_the_sphere(seed):
    r = np.random.default_rng(seed)
    left = sphere_layer(r, "points", 150)
    right = sphere_layer(r, ("points", "lines", "boxes")[seed % 3], 120)
    for options in (
        {"op": "nearest", "max_distance": "80km", "k": 3, "ties": "all"},
        {"op": "dwithin", "max_distance": 120000.0, "how": "full"},
        {"op": "nearest", "how": "inner"},
        {"op": "dwithin", "max_distance": "11000km", "agg": "count, sum(v)"},
    ):
        check(left, right, 16, metric="sphere", **options)


@pytest.mark.parametrize(
    "crs, distance, units",
    [("EPSG:2263", "30m", 98.425), ("EPSG:2263", "100us-ft", 100), ("EPSG:4326", "0.5deg", 0.5),
     ("EPSG:2263", "inf", np.inf), ("EPSG:2263", "0ft", 0), ("EPSG:2263", 7, 7)],
)  # fmt: skip
def test_distances_with_units(crs, distance, units):
    pytest.importorskip("pyproj")
    r = np.random.default_rng(2)
    import pyproj

    text = pyproj.CRS(crs).to_json_dict()
    left = table(shapely.points(r.uniform(0, 90, (200, 2))), text)
    right = table(shapely.points(r.uniform(0, 90, (150, 2))), text)
    job = TileJoin(left.schema, right.schema, {"op": "nearest", "max_distance": distance})
    assert units <= job.reach_distance <= units * 1.001 + 1e-100
    check(left, right, 7, op="nearest", max_distance=distance)
    if units < np.inf:
        check(left, right, 7, op="dwithin", max_distance=distance)


def test_distances_with_units_in_columns():
    pytest.importorskip("pyproj")
    r = np.random.default_rng(2)
    import pyproj

    text = pyproj.CRS("EPSG:2263").to_json_dict()
    left = table(shapely.points(r.uniform(0, 90, (200, 2))), text, d=r.uniform(0, 3, 200))
    right = table(shapely.points(r.uniform(0, 90, (150, 2))), text, d=r.uniform(0, 3, 150))
    for name in ("max_distance_field", "join_max_distance_field"):
        check(left, right, 16, op="dwithin", **{name: "d:m"})


def test_sides_of_two_columns():
    r = np.random.default_rng(4)
    x, y = r.uniform(0, 90, (2, 300))
    left = pa.table({"x": x, "y": y, "v": np.arange(300)})
    right = table(shapely.box(x, y, x + 3, y + 3), m=np.arange(300))
    check(left, right, 7, op="within", x="x", y="y")
    check(right, left, 7, op="contains", right_x="x", right_y="y", agg="count, sum(v)")


def test_what_is_refused():
    side = table(shapely.points([[0.0, 0]]), "EPSG:4326", v=[1])
    other = table(shapely.points([[0.0, 0]]), "EPSG:3857", v=[1])
    for options, kind in (
        ({"op": "disjoint"}, ogrjoin.UnsupportedError),
        ({"op": "relate", "relate": "FF*FF****"}, ogrjoin.UnsupportedError),
        ({"op": "similar", "similar": "v=v:0.5"}, ogrjoin.UnsupportedError),
        ({"op": "nearest", "one_to_one": True}, ogrjoin.UnsupportedError),
        ({"op": "nearest", "max_distance": 1}, ogrjoin.InvalidError),  # the CRS is in degrees
        ({"op": "within", "maximum": 1}, ogrjoin.InvalidError),
    ):
        with pytest.raises(kind):
            TileJoin(side.schema, side.schema, options)
    with pytest.raises(ogrjoin.InvalidError):
        TileJoin(side.schema, other.schema, {"op": "within"})


@pytest.mark.parametrize(
    "words", [{"within_time": "v=v:2"}, {"during": "v..v"}, {"heading": "v"}], ids=str
)
def test_pairs_that_are_not_validated(words):
    """Joins whose pairs depend on more than geometries are not validated, because GEOS
    compares geometries only."""
    side = table(shapely.points([[0.0, 0], [1, 0]]), v=[1, 5])
    job = TileJoin(side.schema, side.schema, {"op": "nearest", **words})
    with pytest.raises(ogrjoin.UnsupportedError, match=f"pairs with {next(iter(words))} are not"):
        job.validate(side, side)
    plain = TileJoin(side.schema, side.schema, {"op": "nearest"}).validate(side, side)
    assert (plain.n_differences, plain.n_pairs) == (0, 2)


def test_boxes_of_what_cannot_be_read_are_everything():
    wkb = pa.array([b"\x01\x01\0\0\0", None, shapely.to_wkb(shapely.Point(1, 2))], pa.binary())
    boxes = scale_boxes.of_wkb(wkb)
    assert np.isinf(boxes[0]).all() and np.isnan(boxes[1]).all()
    assert boxes[2].tolist() == [1, 2, 1, 2]
    for kind in (pa.large_binary(), pa.binary_view()):
        again = scale_boxes.of_wkb(wkb.cast(kind))
        assert np.array_equal(again, boxes, equal_nan=True)
    curve = b"\x01\x08\0\0\0\x03\0\0\0" + bytes(48)  # an error of some versions of shapely
    boxes = scale_boxes.of_wkb(pa.array([wkb[2].as_py(), curve, None, curve]))
    assert boxes[0].tolist() == [1, 2, 1, 2] and np.isnan(boxes[2]).all()
    assert np.isinf(boxes[[1, 3]]).all()
    points = pa.array(shapely.to_wkb(shapely.points([[1, 2], [3, 4], [5, 6]])), pa.binary())
    assert scale_boxes.of_wkb(points.slice(1)).tolist() == [[3, 4, 3, 4], [5, 6, 5, 6]]


def test_meeting_is_closed():
    boxes = np.array([[0, 0, 1, 1], [2, 2, 2, 2], [np.nan] * 4, [-np.inf, -np.inf, np.inf, np.inf]])
    others = np.array([[1, 1, 2, 2], [3, 3, 3, 3]])
    i, j = meeting(boxes, others)
    assert list(zip(i, j)) == [(0, 0), (1, 0), (3, 0), (3, 1)]


@pytest.mark.parametrize("words", [{}, {"k": 3, "ties": "all"}, {"max_distance": 9}])
def test_segments_that_fit_a_heading(words):
    r = np.random.default_rng(7)
    at = r.uniform(0, 100, (300, 2))
    ends = at + r.integers(-6, 7, at.shape)
    heading = np.where(r.random(300) < 0.1, np.nan, r.integers(0, 360, 300))
    left = table(shapely.points(places(r, 300)), course=heading)
    right = table(shapely.linestrings(np.stack([at, ends], 1)), number=np.arange(300))
    check(left, right, 7, op="nearest", heading="course:20", segment_field="n", **words)


def gpus_1_and_2():
    return 6


def test_gpus_of_a_task():
    """All joins of a task get its GPUs, unless the option gpus chooses others."""
    r = np.random.default_rng(5)
    left, right = (layer(r, "boxes", 20) for _ in range(2))
    rows = left.append_column(ROW, pa.array(range(20))), right.append_column(ROW, pa.array(range(20)))

    def gpus(job, used=lambda job: job.joined(*rows)):
        return used(pickle.loads(pickle.dumps(job)))._settings.get("gpus")

    job = TileJoin(left.schema, right.schema, {"agg": "count"})
    assert gpus(job) is None
    job.gpus_of_task = gpus_1_and_2
    assert gpus(job) == gpus(job.of_pairs()) == gpus(job, lambda job: job.hold(rows[1])) == 6
    assert gpus(ZoneSums.of(job).exchanged, lambda job: job.joined(rows[1], rows[0])) == 6
    job = TileJoin(left.schema, right.schema, {"gpus": 1})
    job.gpus_of_task = gpus_1_and_2
    assert gpus(job) == 1
