"""Index.pairs_batches(): its batches together are pairs(), for every kind of left side.
Tests what they read, keep and release.  Also the arrays of pairs()."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import ogrjoin

rng = np.random.default_rng(5)
N = 211
XY = rng.random((N, 2)) * 10
CENTRE = rng.random((40, 2)) * 10
SIZES = (1, 7, 100, N, 1000)


class Broken(Exception):
    pass


def assert_batches(index, left, op, size, whole=None, **options):
    """Compares the batches with the pairs of the whole. left is a side, or a function
    that makes it again."""
    make = left if callable(left) else lambda: left
    whole = index.pairs(make(), op, **options) if whole is None else whole
    batches = list(index.pairs_batches(make(), op, batch_size=size, **options))
    assert [b.n_left for b in batches[:-1]] == [size] * (len(batches) - 1)
    assert batches[-1].n_left <= size
    assert [b.first for b in batches] == list(range(0, whole.n_left, size))
    assert sum(b.n_left for b in batches) == whole.n_left
    assert np.array_equal(np.concatenate([b.left for b in batches]), whole.left)
    assert np.array_equal(np.concatenate([b.right for b in batches]), whole.right)
    for b in batches:
        n_pairs = np.bincount(b.left - b.first, minlength=b.n_left)
        assert np.array_equal(np.diff(b.offsets), n_pairs)
    if whole.distance is None:
        assert all(b.distance is None for b in batches)
    else:
        distance = np.concatenate([b.distance for b in batches])
        assert np.array_equal(distance, whole.distance)
    assert all(b.values.keys() == whole.values.keys() for b in batches)
    for name, values in whole.values.items():
        made = np.concatenate([b.values[name] for b in batches])
        equal = made == values
        assert np.all(equal | (made != made) & (values != values))


def boxes():
    shapely = pytest.importorskip("shapely")
    return shapely.box(*(CENTRE - 0.7).T, *(CENTRE + 0.7).T)


def table():
    pa = pytest.importorskip("pyarrow")
    shapely = pytest.importorskip("shapely")
    columns = {"id": np.arange(N), "wkb": list(shapely.to_wkb(shapely.points(XY)))}
    return pa.table(columns).select(["wkb"])


@pytest.mark.parametrize("size", SIZES)
def test_sides_in_memory(size):
    index = ogrjoin.Index(CENTRE)
    for left in (XY, tuple(XY.T), tuple(XY.T.tolist())):
        assert_batches(index, left, "nearest", size, k=3)
        assert_batches(index, left, "dwithin", size, max_distance=0.9)


@pytest.mark.parametrize("size", SIZES)
def test_sides_of_shapely(size):
    shapely = pytest.importorskip("shapely")
    index = ogrjoin.Index(boxes())
    points, shapes = shapely.points(XY), shapely.buffer(shapely.points(XY), 0.3)
    for left in (points, list(points), shapes, list(shapes)):
        assert_batches(index, left, "intersects", size)
    assert_batches(index, shapes, "intersects", size, overlap_area=True)
    assert_batches(index, points, "nearest", size, bearing=True, nearest_point=True)


@pytest.mark.parametrize("size", SIZES)
def test_sides_of_arrow(size):
    pa = pytest.importorskip("pyarrow")
    whole = table()
    pieces = [whole.slice(a, 13) for a in range(0, N, 13)]
    cut = pa.concat_tables(pieces)
    index = ogrjoin.Index(boxes())
    pairs = index.pairs(XY, "nearest", k=2)
    for left in (
        whole,
        cut,
        whole.to_batches()[0],
        pieces,
        cut.to_batches(),
        whole.to_reader,
        lambda: iter(pieces),
        lambda: iter(cut.to_batches()),
        lambda: (batch for batch in cut.to_batches()),
    ):
        assert_batches(index, left, "nearest", size, pairs, k=2)
    assert_batches(index, whole.to_reader, "nearest", size, k=2)


@pytest.mark.parametrize("size", SIZES)
def test_sides_of_datasets(size, tmp_path):
    ds = pytest.importorskip("pyarrow.dataset")
    pq = pytest.importorskip("pyarrow.parquet")
    wide = table().append_column("other", [np.arange(N)])
    pq.write_table(wide, tmp_path / "points.parquet", row_group_size=50)
    dataset = ds.dataset(tmp_path / "points.parquet")
    index = ogrjoin.Index(boxes())
    pairs = index.pairs(XY, "intersects")
    for left, column in (
        (dataset, "wkb"),
        (dataset.scanner(columns=["wkb"], batch_size=31), None),
        (dataset.scanner(columns=["wkb"]).to_batches(), None),
    ):
        assert_batches(index, left, "intersects", size, pairs, column=column)


@pytest.mark.parametrize("size", SIZES)
def test_iterators_of_sides(size):
    """Each side of an iterator ends a batch, unless the sides are Arrow."""
    shapely = pytest.importorskip("shapely")
    index = ogrjoin.Index(CENTRE)
    whole = index.pairs(XY, "nearest", k=2)
    for make in (
        lambda: (XY[a : a + 50] for a in range(0, N, 50)),
        lambda: (shapely.points(XY[a : a + 50]) for a in range(0, N, 50)),
        lambda: (tuple(XY[a : a + 50].T) for a in range(0, N, 50)),
    ):
        batches = list(index.pairs_batches(make(), "nearest", k=2, batch_size=size))
        assert all(b.n_left <= size for b in batches)
        left = np.concatenate([b.left for b in batches])
        assert np.array_equal(left, whole.left)
        right = np.concatenate([b.right for b in batches])
        assert np.array_equal(right, whole.right)


def test_each_table_of_an_iterator_is_read_by_its_own_schema():
    """An Arrow stream has one schema.  A table with other types or another order of
    columns, read by the schema of a previous table, gave wrong pairs or crashed."""
    pa = pytest.importorskip("pyarrow")
    names = pa.table({"name": ["abcdef"], "note": ["xyzuvw"]})
    turned = pa.table({"note": ["abcdef"], "name": ["xyzuvw"]})
    by_name = ogrjoin.Index(names, op="similar", similar="name:0.5")
    floats = pa.table({"v": [1.0, 2.0]})
    by_number = ogrjoin.Index(floats, op="similar", vector="v")
    n = 300_000  # bytes beyond those of the column, if they are read as doubles
    small = pa.table({"v": pa.array(np.ones(n, np.int8))})
    views = names.cast(pa.schema({"name": pa.string_view(), "note": pa.string()}))
    whole = pa.table({"v": [1, 2]})
    for index, pieces, options in (
        (by_name, [names, turned, names], {}),
        (by_name, [views, names, views, turned], {}),
        (by_number, [floats, whole, whole, floats], {"k": 1}),
        (by_number, [floats, small], {"k": 1}),
        (by_number, [piece.to_batches()[0] for piece in (whole, small)], {"k": 1}),
    ):
        first, expected = 0, []
        for piece in pieces:
            (alone,) = index.pairs_batches(piece, "similar", **options)
            expected += zip(alone.left + first, alone.right)
            first += len(piece)
        for left in (pieces, iter(pieces)):
            found = []
            for batch in index.pairs_batches(left, "similar", **options):
                found += zip(batch.left, batch.right)
            assert found == expected
    with pytest.raises(ogrjoin.Error, match="name"):
        left = iter([names, names.drop_columns("name")])
        list(by_name.pairs_batches(left, "similar"))


def test_an_iterator_may_mix_all_kinds_of_sides():
    pa = pytest.importorskip("pyarrow")
    ds = pytest.importorskip("pyarrow.dataset")
    geopandas = pytest.importorskip("geopandas")
    polars = pytest.importorskip("polars")
    index = ogrjoin.Index(CENTRE)
    whole = table()
    kinds = [
        lambda side: side,
        lambda side: side.to_reader(),
        lambda side: side.combine_chunks().to_batches()[0],
        ds.dataset,
        lambda side: ds.dataset(side).scanner(),
        lambda side: side["wkb"].combine_chunks(),
        lambda side: side["wkb"],
        polars.DataFrame,
        lambda side: geopandas.GeoSeries.from_wkb(side["wkb"].to_pylist()),
        lambda side: geopandas.GeoDataFrame(
            geometry=geopandas.GeoSeries.from_wkb(side["wkb"].to_pylist())
        ),
    ]
    expected = index.pairs(XY, "nearest", k=2)
    for _ in range(30):
        ends = [0, *np.sort(rng.integers(0, N + 1, 6)).tolist(), N]
        pieces = [
            kinds[rng.integers(len(kinds))](whole.slice(a, b - a))
            for a, b in zip(ends, ends[1:])
        ]
        a, b = ends[3:5]
        pieces[3] = XY[a:b, 0], XY[a:b, 1]
        batches = list(
            index.pairs_batches(iter(pieces), "nearest", k=2, column="wkb", batch_size=50)
        )
        assert np.array_equal(np.concatenate([p.left for p in batches]), expected.left)
        assert np.array_equal(np.concatenate([p.right for p in batches]), expected.right)
    readers = [whole.to_reader(), whole.to_reader()]
    (batch,) = index.pairs_batches(readers, "nearest", k=2)
    assert np.array_equal(batch.right, np.tile(expected.right, 2))
    datasets = [ds.dataset(whole), ds.dataset(whole).scanner()]
    found = [batch.right for batch in index.pairs_batches(datasets, "nearest", k=2)]
    assert np.array_equal(np.concatenate(found), np.tile(expected.right, 2))
    assert pa is not None


def test_errors_count_rows_from_the_start_of_the_side():
    pa = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    shapely = pytest.importorskip("shapely")
    index = ogrjoin.Index(CENTRE)
    wkb = [shapely.to_wkb(shapely.Point(1, 1))] * 5 + [b"xx"]
    points = [shapely.Point(1, 1)] * 5 + ["xx"]
    frame = polars.DataFrame({"wkb": wkb})
    for left in (
        points,
        iter([points[:3], points[3:]]),
        pa.array(wkb),
        iter([pa.array(wkb[:3]), pa.array(wkb[3:])]),
        pa.table({"wkb": wkb}),
        iter([pa.table({"wkb": wkb[:3]}), pa.table({"WKB": wkb[3:]})]),
        frame,
        iter([frame[:3], frame[3:]]),
    ):
        with pytest.raises((TypeError, ogrjoin.InvalidError), match="left side: row 5"):
            list(index.pairs_batches(left, batch_size=2))
    vectors = ogrjoin.Index([[1.0], [2.0]], op="similar")
    with pytest.raises(ogrjoin.InvalidError, match="^left side: row 3 "):
        left = [[1.0], [1.0], [1.0], 3]
        list(vectors.pairs_batches(left, "similar", k=1, batch_size=2))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, Broken])
def test_what_the_iterator_of_a_reader_raises(kind):
    """Errors of a stream are InputError, unless it is one of the sides of an iterator;
    exceptions that end a program are raised as they were."""
    pa = pytest.importorskip("pyarrow")
    whole = table()

    def left():
        def batches():
            yield from whole.to_batches()
            raise kind("half of it")

        return pa.RecordBatchReader.from_batches(whole.schema, batches())

    index = ogrjoin.Index(CENTRE)
    for join in (
        lambda: index.pairs(left(), "nearest"),
        lambda: index.pairs(left(), "nearest", id=np.arange(N)),
        lambda: list(index.pairs_batches(left(), "nearest")),
        lambda: ogrjoin.pairs(CENTRE, left(), "nearest"),
        lambda: ogrjoin.Index(left()),
    ):
        with pytest.raises(ogrjoin.InputError if kind is Broken else kind, match="half of it"):
            join()
    with pytest.raises(kind, match="half of it"):
        list(index.pairs_batches(iter([left()]), "nearest"))


def test_other_frames():
    polars = pytest.importorskip("polars")
    geopandas = pytest.importorskip("geopandas")
    wkb = table()["wkb"].to_pylist()
    index = ogrjoin.Index(boxes())
    pairs = index.pairs(XY, "intersects")
    frame = polars.DataFrame({"wkb": wkb})
    assert_batches(index, frame, "intersects", 50, pairs)
    pieces = lambda: frame.iter_slices(50)  # noqa: E731
    assert_batches(index, pieces, "intersects", 50, pairs)
    series = geopandas.GeoSeries.from_wkb(wkb)
    for left in (series, geopandas.GeoDataFrame(geometry=series)):
        assert_batches(index, left, "intersects", 50, pairs)


@pytest.mark.parametrize("size", SIZES)
def test_columns_of_left(size):
    classes = rng.integers(0, 4, N)
    of_right = rng.integers(0, 4, len(CENTRE))
    index = ogrjoin.Index(CENTRE, on=of_right)
    assert_batches(index, XY, "nearest", size, on=classes, k=2)
    index = ogrjoin.Index(CENTRE)
    assert_batches(index, XY, "dwithin", size, max_distance=rng.random(N))
    index = ogrjoin.Index(XY, id=np.arange(N)[::-1])
    assert_batches(index, XY, "nearest", size, id=np.arange(N)[::-1], exclude_self=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("setting", ["exclude_self", "unordered"])
def test_row_numbers_are_those_of_the_whole(size, setting):
    options = {setting: True, "max_distance": 1.0}
    index = ogrjoin.Index(XY)
    for left in (XY, lambda: (XY[a : a + 50] for a in range(0, N, 50))):
        made = index.pairs_batches(
            left() if callable(left) else left, "dwithin", batch_size=size, **options
        )
        pairs = list(made)
        whole = index.pairs(XY, "dwithin", **options)
        assert np.array_equal(np.concatenate([b.left for b in pairs]), whole.left)
        assert np.array_equal(np.concatenate([b.right for b in pairs]), whole.right)
    arrow = table()
    assert_batches(index, arrow, "dwithin", size, **options)
    assert_batches(index, arrow.to_reader, "dwithin", size, **options)


def test_progress_numbers_rows_of_the_whole(monkeypatch):
    whole = ogrjoin.pairs(XY, XY, "nearest", exclude_self=True)
    monkeypatch.setattr(ogrjoin._pairs, "_PROGRESS_ROWS", 7)
    done = []
    cut = ogrjoin.pairs(
        XY, XY, "nearest", exclude_self=True, progress=lambda *at: done.append(at)
    )
    assert done[-1] == (N, N) and len(done) == N // 7 + 1
    assert np.array_equal(cut.left, whole.left)
    assert np.array_equal(cut.right, whole.right)
    assert np.array_equal(cut.offsets, whole.offsets)
    assert np.array_equal(cut.distance, whole.distance)


def test_similar_columns():
    pa = pytest.importorskip("pyarrow")
    names = pa.table({"name": [f"street {i % 9}" for i in range(60)]})
    index = ogrjoin.Index(names, op="similar", similar="name=name:0.9")
    for left in (names, names.to_reader):
        assert_batches(index, left, "similar", 7)
    words = ["one", "two", None, "three"] * 10
    index = ogrjoin.Index(words, op="similar")
    assert_batches(index, words, "similar", 7, min_similarity=0.9)


def test_no_rows():
    pa = pytest.importorskip("pyarrow")
    index = ogrjoin.Index(CENTRE)
    schema = table().schema
    for left in (XY[:0], schema.empty_table(), iter([schema.empty_table()])):
        (batch,) = index.pairs_batches(left, "nearest")
        assert (len(batch), batch.n_left, batch.first) == (0, 0, 0)
        assert len(batch.left) == len(batch.right) == len(batch.distance) == 0
    assert pa is not None
    assert list(index.pairs_batches(iter([]), "nearest")) == []


def test_what_is_wrong_is_said_by_the_call():
    index = ogrjoin.Index(CENTRE)
    with pytest.raises(ogrjoin.InvalidError, match="batch_size"):
        index.pairs_batches(XY, batch_size=0)
    with pytest.raises(ogrjoin.UnsupportedError, match="one_to_one"):
        index.pairs_batches(XY, "nearest", one_to_one=True)
    with pytest.raises(ogrjoin.Error, match="no op"):
        index.pairs_batches(XY, "nearly")
    with pytest.raises(ogrjoin.InvalidError, match="both sides"):
        index.pairs_batches(XY, "nearest", on=np.zeros(N))
    with pytest.raises(TypeError, match="int cannot be joined"):
        list(index.pairs_batches(iter([3]), "nearest"))
    with pytest.raises(ValueError, match="max_distance has 210 values"):
        few = {"max_distance": np.ones(N - 1), "batch_size": 50}
        list(index.pairs_batches(XY, "dwithin", **few))


@pytest.mark.parametrize("of_arrow", [False, True])
def test_what_left_raises_is_raised(of_arrow):
    pieces = table().to_batches(max_chunksize=50) if of_arrow else [XY[:50]] * 3
    closed = []

    def left():
        try:
            yield from pieces[:2]
            raise Broken("half of it")
        finally:
            closed.append(1)

    batches = ogrjoin.Index(CENTRE).pairs_batches(left(), "nearest", batch_size=50)
    assert [next(batches).first, next(batches).first] == [0, 50]
    with pytest.raises(Broken, match="half of it"):
        next(batches)
    assert closed == [1]
    assert list(batches) == []


@pytest.mark.parametrize("of_arrow", [False, True])
def test_closing_early_gives_left_back(of_arrow):
    given, closed = [], []

    def left():
        try:
            for i in range(100):
                given.append(i)
                yield table().to_batches()[0] if of_arrow else XY
        finally:
            closed.append(1)

    batches = ogrjoin.Index(CENTRE).pairs_batches(left(), "nearest", batch_size=N)
    assert given == []  # nothing is read before it is needed
    first = next(batches)
    assert given == [0] and first.n_left == N
    second = next(batches)
    assert given == [0, 1] and second.first == N
    batches.close()
    gc.collect()
    assert closed == [1] and given == [0, 1]
    assert np.array_equal(first.right, second.right)  # the arrays are kept


def test_a_column_that_is_not_there():
    index = ogrjoin.Index(CENTRE)
    with pytest.raises(ogrjoin.Error, match="shape"):
        next(index.pairs_batches(table(), "nearest", column="shape"))


def test_several_threads():
    index = ogrjoin.Index(CENTRE, threads=1)
    whole = index.pairs(XY, "nearest", k=5)
    found = [None] * 4

    def run(i):
        batches = index.pairs_batches(table(), "nearest", k=5, batch_size=20 + i)
        found[i] = np.concatenate([b.right for b in batches])

    table()  # skips the test if a package is missing
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(right, whole.right) for right in found)


def run_apart(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc")
def test_memory_does_not_grow_with_left():
    code = """
import numpy as np, ogrjoin
def peak():
    with open("/proc/self/status") as status:
        return next(int(l.split()[1]) for l in status if l.startswith("VmHWM"))
index = ogrjoin.Index(np.random.default_rng(1).random((1000, 2)), threads=1)
def left():
    rng = np.random.default_rng(2)
    for _ in range(60):
        yield rng.random((50000, 2))
n = 0
for i, pairs in enumerate(index.pairs_batches(left(), "nearest", k=4)):
    n += len(pairs)
    assert pairs.right.max() < 1000
    if i == 9:
        before = peak()
print(n, peak() - before)
"""
    run = run_apart(code)
    n, kilobytes = map(int, run.stdout.split())
    assert n == 60 * 50000 * 4, run
    assert kilobytes < 16000, run  # the arrays of all pairs take 144 MB


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupt():
    code = """
import numpy as np, ogrjoin, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
xy = np.random.default_rng(1).random((200000, 2))
index = ogrjoin.Index(xy, threads=1)
closed = []
def left():
    try:
        while True:
            yield xy[:20000]
    finally:
        closed.append(1)
batches = index.pairs_batches(left(), "nearest", k=500)
next(batches)
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    for batch in batches:
        pass
except KeyboardInterrupt:
    print("interrupted", len(closed), len(list(batches)))
print(len(index.pairs(xy[:10], "nearest", k=500)))
"""
    run = run_apart(code)
    assert run.stdout.split() == ["interrupted", "1", "0", "5000"], run


def test_arrays_are_views_that_stay():
    pairs = ogrjoin.Index(CENTRE).pairs(XY, "nearest", k=2)
    for array in (pairs.offsets, pairs.right32, pairs.distance):
        assert not array.flags.writeable and not array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 0
    assert pairs.left.dtype == pairs.right.dtype == np.int64
    assert pairs.right32.dtype == np.int32 and pairs.offsets.dtype == np.int64
    assert pairs.left is pairs.left and pairs.right is pairs.right
    pairs.right[:1] = -1  # the arrays belong to the caller
    assert pairs.right32[0] >= 0
    kept = pairs.distance, pairs.right32, pairs.offsets
    copies = [array.copy() for array in kept]
    del pairs
    gc.collect()
    np.ones(1_000_000).sum()
    assert all(np.array_equal(a, b) for a, b in zip(kept, copies))


@pytest.mark.parametrize(
    "op, options",
    [
        ("dwithin", {"max_distance": 0.05}),
        ("nearest", {"k": 4}),
        ("nearest", {"k": 4, "max_distance": 0.1}),
        ("nearest", {"ties": "all"}),
        ("intersects", {}),
    ],
)
def test_pieces_of_a_large_side(op, options):
    """There are more rows than the library joins at once, from arrays and from
    Arrow."""
    pa = pytest.importorskip("pyarrow")
    few = rng.random((50, 2))
    xy = rng.random(((5 << 19) + 3, 2))
    if op == "intersects":
        xy = np.round(xy, 1)
        few = np.round(few, 1)
    index = ogrjoin.Index(few, threads=2)
    whole = index.pairs(xy, op, **options)
    point = np.zeros(len(xy), dtype=[("order", "u1"), ("kind", "<u4"), ("xy", "<f8", 2)])
    point["order"], point["kind"], point["xy"] = 1, 1, xy
    ends = pa.py_buffer(np.arange(0, 21 * len(xy) + 1, 21, dtype=np.int32))
    wkb = pa.Array.from_buffers(
        pa.binary(), len(xy), [None, ends, pa.py_buffer(point.tobytes())]
    )
    table = pa.table({"wkb": wkb})
    parts = [index.pairs(part, op, **options) for part in np.array_split(xy, 9)]
    assert len(whole) > len(xy) // 100
    for pairs in (
        whole,
        index.pairs(table, op, **options),
        index.pairs(table.to_reader(max_chunksize=100_000), op, **options),
    ):
        n = np.concatenate([np.diff(p.offsets) for p in parts])
        assert np.array_equal(np.diff(pairs.offsets), n)
        assert np.array_equal(pairs.right32, np.concatenate([p.right32 for p in parts]))
        if op != "intersects":
            distance = np.concatenate([p.distance for p in parts])
            assert np.array_equal(pairs.distance, distance)
