"""pairs(), Index and join() follow common rules: on= as join() compares columns, settings
without effect, one index for pairs and rows, distances with units, and geometries of both
sides in one column."""

import json
import time
import warnings

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
import pandas as pd
import shapely

RNG = np.random.default_rng(40)
N = 300
LEFT, RIGHT = RNG.random((N, 2)) * 100, RNG.random((N, 2)) * 100


def frame(xy, values):
    points = gpd.points_from_xy(*np.transpose(xy))
    return gpd.GeoDataFrame({"value": values}, geometry=points, crs=2263)


NUMBERS = RNG.integers(0, 5, N)
COLUMNS = {
    "int": NUMBERS,
    "small": NUMBERS.astype("u1"),
    "float": NUMBERS.astype(float),
    "half": NUMBERS / 2,
    "gaps": np.where(NUMBERS == 2, np.nan, NUMBERS),
    "bool": NUMBERS > 2,
    "text": NUMBERS.astype(str),
    "none": pd.Series([None if n == 1 else str(n) for n in NUMBERS], dtype=object),
    "nullable": pd.Series(NUMBERS, dtype="Int64").where(NUMBERS != 3),
    "category": pd.Series(NUMBERS).astype(str).astype("category"),
    "day": np.datetime64("2020-01-01", "s") + NUMBERS.astype("m8[D]"),
    "zone": pd.Series(pd.Timestamp("2020-01-01", tz="Asia/Tokyo") + NUMBERS.astype("m8[D]")),
    "hour": pd.Series(pd.Timestamp("2020-01-01T15:00", tz="UTC") + NUMBERS.astype("m8[D]")),
    "arrow": pa.array(NUMBERS.astype(str)).dictionary_encode(),
}


@pytest.mark.parametrize("right", COLUMNS)
@pytest.mark.parametrize("left", COLUMNS)
def test_on_of_pairs_is_on_of_join(left, right):
    a, b = COLUMNS[left], COLUMNS[right]
    shift = np.roll(np.arange(N), 7)
    b = b.take(pa.array(shift)) if isinstance(b, pa.Array) else b[shift]
    b = b.reset_index(drop=True) if isinstance(b, pd.Series) else b
    pairs = ogrjoin.pairs(LEFT, RIGHT, "dwithin", max_distance=30, on=(a, b))

    def table(xy, values):
        x, y = np.transpose(xy)
        return pa.table({"x": x, "y": y, "v": values if isinstance(values, pa.Array) else pa.array(values)})

    words = {"left_x": "x", "left_y": "y", "right_x": "x", "right_y": "y", "how": "inner"}
    rows = ogrjoin.join(
        table(LEFT, a), table(RIGHT, b), "dwithin", max_distance=30, on="v", crs="ignore", **words
    ).read_all()
    assert rows["join_fid"].to_pylist() == pairs.right.tolist()
    assert len(pairs) > 0 or {left, right} & {"bool", "day", "half", "zone", "hour"} or {left, right} == {"float", "text"}


def test_an_index_serves_numbers_and_texts():
    index = ogrjoin.Index(RIGHT, on=NUMBERS, id=np.arange(N)[::-1])
    for again in range(2):
        for on in (NUMBERS, NUMBERS.astype(str), NUMBERS.astype(float)):
            got = index.pairs(LEFT, "nearest", k=2, on=on)
            want = ogrjoin.pairs(
                LEFT, RIGHT, "nearest", k=2, on=(NUMBERS, NUMBERS), id=(None, np.arange(N)[::-1])
            )
            assert (got.right == want.right).all() and (got.left == want.left).all()
    with pytest.raises(ogrjoin.Error, match="on has .* values"):
        index.pairs(LEFT, "nearest", on=NUMBERS[:-1])


@pytest.mark.parametrize(
    "op, settings, what",
    [
        ("nearest", {"how": "inner"}, "how has no effect on pairs"),
        ("nearest", {"agg": "count"}, "agg has no effect on pairs"),
        ("nearest", {"prefix": "x"}, "prefix has no effect on pairs"),
        ("nearest", {"overlap": "area"}, "overlap has no effect on pairs"),
        ("intersects", {"k": 2}, "k has no effect on op intersects, only on op nearest"),
        ("within", {"max_distance": 3}, "max_distance has no effect on op within"),
        ("within", {"metric": "sphere"}, "metric has no effect on op within"),
        ("nearest", {"tokens": "words"}, "tokens has no effect without similar: leave it out"),
        ("nearest", {"norm": "l1"}, "norm has no effect without vector"),
        ("nearest", {"pick": "first", "one_to_one": True}, "do not go together"),
        ("nearest", {"unordered": True, "unordered_pairs": True}, "they are two names of one setting"),
    ],
)
def test_settings_without_effect(op, settings, what):
    for call in (
        lambda: ogrjoin.pairs(LEFT, RIGHT, op, **settings),
        lambda: ogrjoin.Index(RIGHT).pairs(LEFT, op, **settings),
        lambda: next(ogrjoin.Index(RIGHT).pairs_batches(LEFT, op, **settings)),
        lambda: ogrjoin.validate(LEFT, RIGHT, op, **settings),
    ):
        with pytest.raises(ogrjoin.Error, match=f"{what}|use pairs\\(\\)"):
            call()


@pytest.mark.parametrize(
    "op, options",
    [
        ("nearest", {}),
        ("nearest", {"k": 3, "max_distance": 20}),
        ("dwithin", {"max_distance": "15ft"}),
        ("nearest", {"agg": "count, mean(value)"}),
        ("dwithin", {"max_distance": 9, "how": "full"}),
        ("nearest", {"pick": "max:value", "k": 4}),
        ("nearest", {"exclude": "self"}),
        ("nearest", {"on": "value"}),
        ("nearest", {"fid": None, "right_fid": "value"}),
    ],
)
def test_rows_of_an_index_are_those_of_join(op, options):
    a, b = frame(LEFT, NUMBERS), frame(RIGHT, NUMBERS[::-1])
    options = {k: v for k, v in options.items() if v is not None}
    index = ogrjoin.Index(b)
    want = ogrjoin.join(a, b, op, **options).read_all()
    for _ in range(2):
        assert index.join(a, op, **options).read_all() == want
    index.pairs(a, "nearest")
    assert index.join(a, op, **options).read_all() == want


def test_rows_take_the_index_of_pairs():
    """join() uses the index that pairs() has made. For many points, making an index
    takes far longer than joining ten rows."""
    n = 400_000
    right = frame(RNG.random((n, 2)), np.zeros(n))
    left, index = frame(LEFT[:10] / 100, NUMBERS[:10]), ogrjoin.Index(right, threads=1)
    began = time.process_time()
    index.pairs(left, "nearest", k=2)
    made = time.process_time() - began
    index.join(left, "contains").read_all()  # reads the columns before the time is taken
    began = time.process_time()
    rows = index.join(left, "nearest", k=2).read_all()
    assert time.process_time() - began < made / 2
    assert rows["join_fid"].to_pylist() == index.pairs(left, "nearest", k=2).right.tolist()


def test_units_of_sjoin():
    a, b = frame(LEFT, NUMBERS), frame(RIGHT, NUMBERS)
    foot = 1200 / 3937  # unit of EPSG:2263
    want = ogrjoin.sjoin_nearest(a, b, max_distance=2 / foot, distance_col="d")
    assert 0 < len(want) < N
    pd.testing.assert_frame_equal(
        ogrjoin.sjoin_nearest(a, b, max_distance="2m", distance_col="d"), want
    )
    want = ogrjoin.sjoin(a, b, predicate="dwithin", distance=5 / foot)
    pd.testing.assert_frame_equal(ogrjoin.sjoin(a, b, predicate="dwithin", distance="5m"), want)
    for crs, what in ((None, "no CRS"), (4326, "is in degrees")):
        sides = (s.set_crs(crs, allow_override=True) for s in (a, b))
        with pytest.raises(ogrjoin.Error, match=what):
            ogrjoin.sjoin_nearest(*sides, max_distance="2m")
    with pytest.raises(ogrjoin.Error, match="unknown unit"):
        ogrjoin.sjoin_nearest(a, b, max_distance="2parsec")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sides = [s.set_crs(4326, allow_override=True) for s in (a, b)]
        near = ogrjoin.sjoin_nearest(*sides, max_distance="2deg", distance_col="d")
    assert near.d.max() <= 2


STORED = ("wkb", "view", "native", "interleaved")


def stored(shapes, how):
    made = gpd.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs=2263)
    if how in ("wkb", "view"):
        table = pa.table(made.to_arrow(index=False, geometry_encoding="WKB"))
        field = table.schema.field("geometry")
        metadata = {
            b"ARROW:extension:name": b"geoarrow.wkb",
            b"ARROW:extension:metadata": json.dumps({"crs": "EPSG:2263"}).encode(),
        }
        kind = pa.binary_view() if how == "view" else pa.binary()
        column = pa.array(shapely.to_wkb(shapes), pa.binary()).cast(kind)
        i = table.schema.get_field_index("geometry")
        return table.set_column(i, pa.field("geometry", kind, metadata=metadata), column)
    return pa.table(
        made.to_arrow(
            index=False, geometry_encoding="geoarrow", interleaved=how == "interleaved"
        )
    )


@pytest.mark.parametrize("right", STORED)
@pytest.mark.parametrize("left", STORED)
@pytest.mark.parametrize("how", ["right", "full"])
def test_geometries_of_both_sides_in_one_column(left, right, how):
    points = shapely.points(LEFT)
    boxes = shapely.box(*RIGHT.T, *(RIGHT + 4).T)
    points[5] = boxes[7] = None
    a, b = stored(points, left), stored(boxes, right)
    rows = ogrjoin.join(a, b, how=how, crs="ignore").read_all()
    frame = gpd.GeoDataFrame.from_arrow(rows) if left != "view" or right != "view" else None
    column = rows["geometry"]
    shapes = (
        np.array(frame.geometry.values)
        if frame is not None and "binary" not in str(column.type)
        else shapely.from_wkb(column.to_numpy(zero_copy_only=False))
    )
    ids, fids = rows["id"].to_pylist(), rows["join_fid"].to_pylist()
    assert any(i is None for i in ids) and any(i is not None for i in ids)
    for shape, i, fid in zip(shapes, ids, fids):
        want = boxes[fid] if i is None else points[i]
        assert (shape is None) == (want is None)
        assert shape is None or shape.equals(want)


@pytest.mark.parametrize("name, word", [("a:b", "a:b"), ("a:km", "a:km"), ("a:b", '"a:b"'), ("a", "a:us-ft")])
def test_a_field_of_distances_with_a_colon(name, word):
    """A word that is the name of a column has no unit, even with a colon, as in the
    command."""
    table = pa.table({"x": [0.0, 0.0], "y": [0.0, 0.0], name: [1.0, 3.0]})
    other = pa.table({"x": [2.0], "y": [0.0]})
    crs = {"left_crs": "EPSG:2263", "right_crs": "EPSG:2263"}
    words = {"x": "x", "y": "y", "right_x": "x", "right_y": "y", **crs}
    rows = ogrjoin.join(table, other, "dwithin", max_distance_field=word, **words).read_all()
    assert rows["join_fid"].to_pylist() == [None, 0]


MANY_PAIRS = """
import resource
import numpy as np, ogrjoin
n, dense, n_right = 400_000, 1_000, 16_000
stretch = -(-n // 256)  # a row of each is sampled (oj_batch_parts.c)
i = np.arange(-(-n // stretch), dtype=np.uint64)
mixed = (i + 1) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
sampled = (i * stretch + mixed % np.uint64(stretch)).astype(int)
first = sampled[:-1][np.diff(sampled) > dense][0] + 1
many = slice(first, first + dense)
x = np.arange(n, dtype=float) + 10
x[many] = 0
words = {"max_distance": 1.0, "threads": 1, "crs": "ignore"}
index = ogrjoin.Index((np.zeros(n_right), np.zeros(n_right)), threads=1)
index.pairs((x[:10], x[:10]), "dwithin", max_distance=1.0, crs="ignore")
index.join((x[:10], x[:10]), "dwithin", agg="count", **words).read_all()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = index.join((x, np.zeros(n)), "dwithin", agg="count", **words).read_all()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = rows["count"].to_numpy()
assert counts.sum() == dense * n_right and (counts[many] == n_right).all()
print(after - before)
"""


def test_rows_of_an_index_have_a_bound_of_pairs():
    """join() with an index of pairs() also limits the pairs in memory. No sample
    predicts the very many pairs of some rows. There are 16 million pairs, and at most 4
    million at once."""
    import subprocess
    import sys

    made = subprocess.run(
        [sys.executable, "-c", MANY_PAIRS], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    # kilobytes; all 16 million pairs would take 188,000
    assert int(made.stdout) < 140_000
