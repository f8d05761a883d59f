"""Compares agg= with numpy and pandas: random points in random polygons, with NULLs,
NaN, integers beyond 2^53, dates and groups without rows.  Also columns of the pairs."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
gpd = pytest.importorskip("geopandas")
import shapely

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")
FUNCTIONS = {
    "count": lambda v: len(v),
    "sum": np.sum,
    "min": np.min,
    "max": np.max,
    "range": np.ptp,
    "unique": lambda v: len(np.unique(v)),
    "mean": np.mean,
    "median": np.median,
    "q1": lambda v: np.percentile(v, 25),
    "q3": lambda v: np.percentile(v, 75),
    "stddev": lambda v: np.std(v, ddof=1) if len(v) > 1 else None,
    "variance": lambda v: np.var(v, ddof=1) if len(v) > 1 else None,
    "mode": lambda v: pd.Series(v).mode().min(),
    "minority": lambda v: pd.Series(v).value_counts().pipe(lambda c: c[c == c.min()].index.min()),
}
EXACT = {"count", "sum", "min", "max", "range", "unique", "mode", "minority", "q1", "q3"}


def make_layers(seed):
    rng = np.random.default_rng(seed)
    n = 400
    big = rng.integers(-(2**61), 2**61, n) // rng.choice([1, 2**59], n)
    real = np.where(rng.random(n) < 0.3, rng.integers(0, 5, n) / 4, rng.normal(size=n))
    missing = rng.random(n) < 0.15
    days = rng.integers(0, 20000, n).astype("datetime64[D]")
    points = pa.table({
        "geometry": pa.array(shapely.to_wkb(shapely.points(rng.random((n, 2)) * 10))),
        "big": pa.array(big, mask=missing),
        "small": pa.array(rng.integers(-3, 4, n).astype("int16"), mask=rng.random(n) < 0.1),
        "real": pa.array(real, mask=rng.random(n) < 0.1),
        "day": pa.array(days, mask=missing),
    })
    zones = shapely.box(*(lambda a, s: (*a, *(a + s)))(rng.random((2, 25)) * 10, rng.random((2, 25)) * 3))
    zones[3] = shapely.box(50, 50, 51, 51)
    return pa.table({"geometry": pa.array(shapely.to_wkb(zones))}), points


def groups_of(zones, points):
    shapes = shapely.from_wkb(points["geometry"].to_numpy(zero_copy_only=False))
    for zone in shapely.from_wkb(zones["geometry"].to_numpy(zero_copy_only=False)):
        yield np.flatnonzero(shapely.contains(zone, shapes))


@pytest.mark.parametrize("seed", range(12))
def test_functions_of_numpy(seed):
    zones, points = make_layers(seed)
    columns = ("big", "small", "real")
    words = [f"{f}({c})" for f in FUNCTIONS for c in columns if (f, c) != ("sum", "big")]
    words += ["percentile(real, 99.9)", "percentile(small, 10)", "weighted_mean(real, small) as w"]
    got = ogrjoin.join(zones, points, "contains", agg=", ".join(words)).read_all()
    n_empty = 0
    for i, rows in enumerate(groups_of(zones, points)):
        group = points.take(pa.array(rows))
        for column in columns:
            values = group[column].drop_null().to_numpy()
            n_empty += len(values) == 0
            for name, function in FUNCTIONS.items():
                if (name, column) == ("sum", "big"):
                    continue
                have = got[f"{name}_{column}"][i].as_py()
                if len(values) == 0 and name not in ("count", "unique"):
                    assert have is None, (name, column)
                    continue
                # 64-bit integers, whose sum and range overflow in numpy
                exact = values.astype(object) if column != "real" and name in ("range", "sum") else values
                want = max(exact) - min(exact) if name == "range" else function(exact)
                if want is None:
                    assert have is None, (name, column)
                elif name in EXACT and not (name == "sum" and column == "real"):
                    if name in ("q1", "q3") and column == "big":
                        assert have == pytest.approx(float(want), rel=1e-15, abs=2.0**10)
                    else:
                        assert have == want, (name, column, len(values))
                else:
                    assert have == pytest.approx(float(want), rel=1e-12, abs=1e-12), (name, column)
        values = group["real"].drop_null().to_numpy()
        if len(values):
            assert got["percentile_real_99_9"][i].as_py() == np.percentile(values, 99.9)
        both = group.select(["real", "small"]).to_pandas().dropna()
        total = both["small"].sum()
        if total == 0:
            assert got["w"][i].as_py() is None
        else:
            want = (both["real"] * both["small"]).sum() / total
            assert got["w"][i].as_py() == pytest.approx(want, rel=1e-11, abs=1e-12)
    assert n_empty >= 3


def test_dates():
    zones, points = make_layers(77)
    got = ogrjoin.join(zones, points, "contains", agg="min(day), max(day), mode(day), minority(day), unique(day)").read_all()
    for i, rows in enumerate(groups_of(zones, points)):
        days = points["day"].take(pa.array(rows)).drop_null().to_pandas()
        if len(days) == 0:
            assert got["minority_day"][i].as_py() is None
            continue
        counts = days.value_counts()
        assert got["min_day"][i].as_py() == days.min()
        assert got["max_day"][i].as_py() == days.max()
        assert got["mode_day"][i].as_py() == counts[counts == counts.max()].index.min()
        assert got["minority_day"][i].as_py() == counts[counts == counts.min()].index.min()
        assert got["unique_day"][i].as_py() == len(counts)


def test_nan_comes_after_all_numbers():
    zones = pa.table({"geometry": [shapely.to_wkb(shapely.box(0, 0, 9, 9))]})
    points = pa.table({"geometry": [shapely.to_wkb(shapely.Point(i, i)) for i in range(1, 6)],
                       "v": pa.array([1.0, float("nan"), 3.0, None, 2.0])})
    got = ogrjoin.join(zones, points, "contains",
                       agg="range(v), percentile(v, 50), q3(v), minority(v), mean(v), variance(v), weighted_mean(v)").read_all()
    row = {name: got[name][0].as_py() for name in got.schema.names}
    assert row["percentile_v_50"] == 2.5 and row["minority_v"] == 1.0
    for name in ("range_v", "q3_v", "mean_v", "variance_v", "weighted_mean_v"):
        assert row[name] is not None and np.isnan(row[name]), name


@pytest.mark.parametrize("named, columns", [
    (dict(op="nearest", k=5), ("join_distance", "join_rank", "join_fid", "nearest_x")),
    (dict(op="dwithin", max_distance=1.5), ("join_distance", "join_fid", "join_bearing")),
    (dict(op="intersects"), ("overlap_area", "overlap_length", "overlap_percent", "join_fid")),
])
def test_columns_of_pairs(named, columns):
    zones, points = make_layers(5)
    right = zones if named["op"] == "intersects" else points
    extra = {"overlap": "area,length,percent"} if named["op"] == "intersects" else \
        {"nearest_point": True, "bearing": True}
    left = zones.append_column("id", pa.array(range(len(zones))))
    rows = ogrjoin.join(left, right, **named, **extra).read_all().to_pandas().dropna(subset="join_fid")
    functions = ("mean", "min", "max", "median", "q1", "q3", "unique", "count", "stddev")
    words = [f"{f}({c})" for f in functions for c in columns] + [f"weighted_mean({columns[0]}, {columns[1]}) as w"]
    got = ogrjoin.join(left, right, **named, agg=words).read_all()
    for i in range(len(left)):
        mine = rows[rows["id"] == i]
        for column in columns:
            values = mine[column].dropna().to_numpy()
            for name in functions:
                have = got[f"{name}_{column}"][i].as_py()
                if len(values) == 0 and name not in ("count", "unique"):
                    assert have is None
                    continue
                want = FUNCTIONS[name](values)
                assert have == (want if want is None else pytest.approx(want, rel=1e-12, abs=1e-12)), (name, column)
    assert got.schema.field("max_join_fid").type == pa.int64()


def test_names_of_other_programs():
    zones, points = make_layers(1)
    for agg, says in (("stdev(real)", "write stddev"), ("nunique(big)", "write unique"),
                      ("mean(join_distance)", "pairs have: join_fid"), ("percentile(real)", "0 to 100")):
        with pytest.raises(ogrjoin.Error, match=says):
            ogrjoin.join(zones, points, "contains", agg=agg)


def test_a_column_hides_that_of_the_pairs():
    zones, points = make_layers(2)
    right = points.append_column("join_distance", pa.array(np.full(len(points), 7.5)))
    with pytest.warns(UserWarning, match="not from that of the pairs"):
        got = ogrjoin.join(zones, right, "nearest", agg="max(join_distance)").read_all()
    assert set(got["max_join_distance"].to_pylist()) == {7.5}
    got = ogrjoin.join(zones, right, "nearest", agg="max(d)", name_distance="d").read_all()
    assert 7.5 not in set(got["max_d"].to_pylist())


def test_percentile_of_numbers_whose_difference_overflows():
    points = [shapely.Point(0, 0)] * 2
    right = gpd.GeoDataFrame({"v": [-1.5e308, 1.5e308]}, geometry=points, crs=2263)
    left = gpd.GeoDataFrame({"a": [1]}, geometry=points[:1], crs=2263)
    agg = "percentile(v, 50) as p50, percentile(v, 25) as p25, percentile(v, 90) as p90, median(v) as m"
    row = ogrjoin.join(left, right, "intersects", agg=agg).read_all().to_pylist()[0]
    assert row["p50"] == row["m"] == 0
    assert row["p25"] == -0.75e308 and row["p90"] == pytest.approx(1.2e308)


def test_mean_of_numbers_whose_sum_overflows():
    right = pa.table({"k": [1, 1, 1, 2, 2], "v": [1.5e308, 1.5e308, 1.5e308, 1.5e308, np.inf]})
    left = pa.table({"k": [1, 2]})
    got = ogrjoin.join(left, right, "attributes", on="k", agg="mean(v), sum(v), stddev(v)").read_all()
    assert got["mean_v"].to_pylist() == [1.5e308, np.inf]
    assert got["sum_v"].to_pylist() == [np.inf, np.inf]
    assert got["stddev_v"][0].as_py() == 0


def test_nan_is_greater_than_all_numbers():
    """NaN is the greatest number, as in PostgreSQL, whatever the order of the values and
    the sign of NaN."""
    nan = float("nan")
    for values in ([nan, 1.0, 3.0], [1.0, nan, 3.0], [3.0, 1.0, -nan], [1.0, 3.0, nan, nan, None]):
        right = pa.table({"k": [1] * len(values), "v": pa.array(values, pa.float64())})
        words = "min(v), max(v), range(v), unique(v), count(v)"
        joined = ogrjoin.join(pa.table({"k": [1]}), right, "attributes", on="k", agg=words)
        row = joined.read_all().to_pylist()[0]
        n = sum(v is not None for v in values)
        assert row["min_v"] == 1 and np.isnan(row["max_v"]) and np.isnan(row["range_v"])
        assert (row["unique_v"], row["count_v"]) == (3, n)
        for rule, want in (("max:v", 3.0), ("min:v", 1.0)):
            joined = ogrjoin.join(pa.table({"k": [1]}), right, "attributes", on="k", pick=rule)
            assert joined.read_all()["v"].to_pylist() == [want]


@pytest.mark.parametrize(
    "column, kind",
    [
        (pa.array([[[1], [2]], [[3]]]), "of another type"),
        (pa.array([{"a": 1}, {"a": 2}]), "of another type"),
        (pa.array([1, 2], pa.duration("s")), "of another type"),
    ],
)
def test_concat_refuses_values_that_it_cannot_write(column, kind):
    points = pa.table({"geometry": shapely.to_wkb(shapely.points([[1, 1], [2, 2]])), "v": column})
    zones = pa.table({"geometry": pa.array(shapely.to_wkb(shapely.box([0], [0], [5], [5])))})
    with pytest.raises(ogrjoin.InvalidError, match=rf"concat\(v\) needs .* the field is {kind}"):
        ogrjoin.join(zones, points, "contains", agg="concat(v)")
    n = ogrjoin.join(zones, points, "contains", agg="count(v)").read_all()
    assert n.column(n.num_columns - 1).to_pylist() == [2]


def test_count_of_large_unsigned_integers():
    """Counting needs no values, so that 64-bit integers without sign may be of any size. Functions of
    the values refuse them."""
    here = {name: [0.0] * 4 for name in ("x", "y")}
    numbers = pa.array([2**64 - 1, None, 2**63, 1], pa.uint64())
    right = pa.table({**here, "u": numbers, "d": numbers.dictionary_encode(), "w": [1.0, 2.0, 3.0, 4.0]})
    left = pa.table({"x": [0.0], "y": [0.0]})
    names = {f"{side}_{axis}": axis for side in ("left", "right") for axis in "xy"}

    def row(agg, right):
        joined = ogrjoin.join(left, right, "dwithin", max_distance=1, agg=agg, **names).read_all()
        return list(joined.to_pylist()[0].values())[2:]

    for table in (right, pa.concat_tables([right[:1], right[1:]])):
        assert row("count(u), count(d), count, count(u) as again", table) == [3, 3, 4, 3]
    for agg in ("count(u), sum(u)", "max(u)", "weighted_mean(w, u)"):
        with pytest.raises(ogrjoin.InvalidError, match="does not fit into a signed 64-bit integer"):
            row(agg, right)


LISTS = {
    "i": ([[1, -2], [], None, [2**31 - 1]], pa.int32()),
    "l": ([[2**53, 1], None, [-(2**40)], [2**62]], pa.int64()),
    "r": ([[1 / 3, 1e300, -0.0], [0.5, 2.0], [], None], pa.float64()),
    "s": ([["a,b", 'c"d', ""], [], None, ["Größe"] * 30], pa.string()),
}
LISTS_AS_TEXTS = [
    "(2:1,-2); (0:); (1:2147483647)",
    "(2:9007199254740992,1); (1:-1099511627776); (1:4611686018427387904)",
    "(3:0.3333333333333333,1e+300,-0); (2:0.5,2); (0:)",
    '(3:a,b,c"d,); (0:); (30:' + ",".join(["Größe"] * 30) + ")",
]
CONCAT_OF_LISTS = ", ".join(f"concat({name}, '; ')" for name in LISTS)


@pytest.mark.parametrize("wrap", [pa.list_, pa.large_list])
def test_concat_of_lists(wrap):
    """Lists are written as OGR writes them, also those of dictionaries, of fixed size and in slices."""
    columns = {name: pa.array(lists, wrap(kind)) for name, (lists, kind) in LISTS.items()}
    right = pa.table({"k": [1] * 4, **columns})
    left = pa.table({"k": [1]})
    for table in (right, pa.concat_tables([right[:1], right[1:]]), pa.concat_tables([right[:1], right])[1:]):
        row = ogrjoin.join(left, table, "attributes", on="k", agg=CONCAT_OF_LISTS).read_all()
        assert list(row.to_pylist()[0].values())[1:] == LISTS_AS_TEXTS
    single = pa.array([[0.1, 1 / 3], None, [1e8, 2.0]], pa.list_(pa.float32()))
    others = {
        "f": (single, "(2:0.1,0.33333334), (2:1e+08,2)"),
        "fixed": (pa.array([[1, None], [3, 4], None], pa.list_(pa.int16(), 2)), "(2:1,), (2:3,4)"),
        "words": (pa.array([["a", "b"], ["a"], None], pa.list_(pa.dictionary(pa.int8(), pa.string()))), "(2:a,b), (1:a)"),
        "u": (pa.array([[2**64 - 1], [1], []], pa.list_(pa.uint64())), "(1:18446744073709551615), (1:1), (0:)"),
        "n": (pa.array([0.1, 1 / 3, None], pa.float32()), "0.1, 0.33333334"),
    }
    right = pa.table({"k": [1] * 3, **{name: column for name, (column, _) in others.items()}})
    for name, (_, text) in others.items():
        for table in (right, pa.concat_tables([right[:1], right[1:]])):
            row = ogrjoin.join(left, table, "attributes", on="k", agg=f"concat({name})").read_all()
            assert row.to_pylist()[0][f"concat_{name}"] == text


@pytest.mark.skipif(not COMMAND, reason="no command (OGRJOIN_COMMAND)")
def test_concat_of_lists_by_the_command(tmp_path):
    point = {"type": "Point", "coordinates": [0, 0]}

    def write(name, rows):
        features = [{"type": "Feature", "properties": row, "geometry": point} for row in rows]
        (tmp_path / name).write_text(json.dumps({"type": "FeatureCollection", "features": features}))

    lists = {name: values for name, (values, _) in LISTS.items()}
    write("right.geojson", [{"k": 1, **dict(zip(lists, row))} for row in zip(*lists.values())])
    write("left.geojson", [{"k": 1}])
    words = ["-q", "-op", "attributes", "-on", "k", "-agg", CONCAT_OF_LISTS, "out.geojson", "left.geojson", "right.geojson"]
    subprocess.run([COMMAND, *words], cwd=tmp_path, check=True)
    made = json.loads((tmp_path / "out.geojson").read_text())["features"][0]["properties"]
    assert [made[f"concat_{name}"] for name in LISTS] == LISTS_AS_TEXTS
