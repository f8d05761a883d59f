"""Live: after every batch, its pairs and rows equal those of pairs() and join() with
the current points."""

import threading

import numpy as np
import pytest

import ogrjoin

rng = np.random.default_rng(42)


def places(n):
    return rng.random(n) * 100, rng.random(n) * 100


def shapes(n):
    shapely = pytest.importorskip("shapely")
    x, y = places(n)
    return shapely.box(x, y, x + 9, y + 7)


class Plain:
    """The expected points, as a dict."""

    def __init__(self):
        self.at = {}

    def apply(self, ids, x, y):
        for i, a, b in zip(ids, x, y):
            if a == a:
                self.at[int(i)] = (a, b)
            else:
                self.at.pop(int(i), None)

    @property
    def arrays(self):
        ids = np.array(sorted(self.at), dtype=np.int64)
        xy = np.array([self.at[i] for i in ids.tolist()]).reshape(-1, 2)
        return ids, np.ascontiguousarray(xy[:, 0]), np.ascontiguousarray(xy[:, 1])


def assert_fresh(live, plain, left, op, **settings):
    ids, x, y = plain.arrays
    whole = ogrjoin.Index((x, y), id=ids).pairs(left, op, **settings)
    made = live.pairs(left, op, **settings)
    assert np.array_equal(made.left, whole.left)
    assert np.array_equal(made.right, ids[whole.right])
    assert (made.distance is None) == (whole.distance is None)
    if made.distance is not None:
        assert np.array_equal(made.distance, whole.distance)
    assert made.values.keys() == whole.values.keys()
    for name, values in made.values.items():
        assert np.array_equal(values, whole.values[name], equal_nan=True)


@pytest.mark.parametrize("tree", ["auto", "quadtree", "kdtree"])
def test_batches(tree):
    live, plain = ogrjoin.Live(tree=tree), Plain()
    for i in range(8):
        ids = rng.integers(-500, 1500, 1 + 700 * (i % 3))
        x, y = places(len(ids))
        x[rng.random(len(ids)) < 0.2] = np.nan
        live.apply(ids, x, y)
        plain.apply(ids, x, y)
        assert len(live) == len(plain.at)
        if not plain.at:
            continue
        assert_fresh(live, plain, places(50), "nearest", k=3)
        assert_fresh(live, plain, places(50), "dwithin", max_distance=5)
        assert_fresh(live, plain, places(20), "nearest", bearing=1)
        assert_fresh(live, plain, shapes(20), "contains")
        assert_fresh(live, plain, shapes(20), "dwithin", max_distance=2.5)
        assert_fresh(live, plain, shapes(20), "disjoint")


def test_points_on_a_device():
    """Batches and joins on the device. The copy of its points in host memory is brought
    up to date with the changed points alone."""
    try:
        live = ogrjoin.Live(backend="cuda")
    except ogrjoin.Error as error:
        if error.status != ogrjoin.Status.NO_DEVICE:
            raise
        pytest.skip(f"no CUDA device: {error}")
    plain = Plain()
    for i in range(4):
        ids = rng.integers(-500, 1500, 700)
        x, y = places(len(ids))
        x[rng.random(len(ids)) < 0.3] = np.nan
        live.apply(ids, x, y)
        plain.apply(ids, x, y)
        assert_fresh(live, plain, places(50), "nearest", k=3)
        assert_fresh(live, plain, places(50), "dwithin", max_distance=5)
        if i % 2 == 1:  # on the CPU, from the copy
            assert_fresh(live, plain, places(20), "nearest", bearing=1)
    # all points are removed, and one is put: the copy in host memory must lose
    # the others, too
    ids, x, _ = plain.arrays
    live.apply(ids, np.full(len(ids), np.nan), x)
    live.apply([7], [1.0], [2.0])
    plain.at = {7: (1.0, 2.0)}
    assert_fresh(live, plain, places(20), "nearest", bearing=1)
    assert live.counts["n"] == len(live) == 1
    assert "on GPUs" in live.counts["tree"]


def test_what_apply_takes():
    pa = pytest.importorskip("pyarrow")
    live = ogrjoin.Live()
    live.apply([5, 6], [1, 2], [3, 4])
    live.apply(pa.array([7]), pa.array([2.5]), pa.array([3.5]))
    live.apply(pa.chunked_array([[8], [9]]), [0.0, np.nan], [0.0, 0.0])
    assert live.to_arrow().to_pydict() == {
        "id": [5, 6, 7, 8],
        "x": [1, 2, 2.5, 0],
        "y": [3, 4, 3.5, 0],
    }
    with pytest.raises(ogrjoin.InvalidError, match="x has 1 values, and ids has 2"):
        live.apply([1, 2], [1], [1])
    with pytest.raises(ogrjoin.InvalidError, match=r"x must be one column of 2 .* shape \(2, 2\): give an"):
        live.apply([1, 2], [[1, 1], [2, 2]], [1, 2])
    with pytest.raises(ogrjoin.InvalidError, match="ids must be whole numbers"):
        live.apply(["a"], [1], [1])
    with pytest.raises(ogrjoin.InvalidError, match="y must be numbers"):
        live.apply([5], [1], ["north"])
    counts = live.counts
    assert (counts["n"], counts["n_batches"], counts["n_unknown"]) == (4, 3, 1)
    assert "quadtree" in counts["tree"]
    assert repr(live) == "<ogrjoin.Live: 4 points>"
    with pytest.raises(ogrjoin.UnsupportedError, match="cpu, cuda or auto"):
        ogrjoin.Live(backend="geos")


def test_places_that_no_join_takes_are_removed():
    for x, y in ((np.inf, 1), (1, -np.inf), (1e151, 1), (1, np.nan)):
        live = ogrjoin.Live()
        live.apply([5, 6], [1, 2], [3, 4])
        live.apply([5], [x], [y])
        assert len(live) == 1
        assert live.pairs(([2.0], [4.0]), "nearest").right.tolist() == [6]
        assert live.counts["n_unjoinable"] == 1


def test_ids_are_whole_numbers_of_64_bits():
    """Ids are 64-bit integers. An id that would be rounded or wrapped is an error."""
    pa = pytest.importorskip("pyarrow")
    live = ogrjoin.Live()
    least, most = -(2**63), 2**63 - 1
    live.apply(np.array([least, -1, 0, most]), [1, 2, 3, 4], [0, 0, 0, 0])
    assert live.pairs(([4.0], [0.0]), "nearest").right.tolist() == [most]
    live.apply([1.0, 2.0], [5, 6], [0, 0])  # as pandas holds whole numbers with gaps
    live.apply(np.array([7], dtype=np.uint64), [7], [0])
    live.apply([], [], [])
    whole = [least, -1, 0, 1, 2, 7, most]
    assert live.to_arrow()["id"].to_pylist() == whole
    for ids, says in (
        ([1.5], "row 0 has 1.5"),
        ([9, np.nan], "row 1 has nan"),
        (pa.array([1, None]), "row 1 has nan"),
        (np.array([2**64 - 1], dtype=np.uint64), "row 0 has 18446744073709551615"),
        ([2**70], "not object"),
        (["a"], "not <U1"),
    ):
        with pytest.raises(ogrjoin.InvalidError, match=says):
            live.apply(ids, np.zeros(len(ids)), np.zeros(len(ids)))
    assert live.to_arrow()["id"].to_pylist() == whole
    live.apply(pa.array([7]), pa.array([None], pa.float64()), pa.array([0.0]))
    assert live.to_arrow()["id"].to_pylist() == [least, -1, 0, 1, 2, most]
    with pytest.raises(ogrjoin.InvalidError, match="score must be whole numbers.* row 0 has 0.5"):
        ogrjoin.Index(([0.0], [0.0]), score=[0.5])


def test_near_pairs():
    live = ogrjoin.Live()
    live.apply([1, 2, 3], [0, 1, 9], [0, 0, 0])
    pairs = live.near_pairs(1)
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([1], [2])
    assert pairs.distance.tolist() == [1.0]
    assert live.near_pairs(1, changes=True).values["change"].tolist() == [1.0]
    live.apply([2], [9.5], [0])
    changed = live.near_pairs(1, changes=True)
    assert changed.left.tolist() == [1, 2]
    assert changed.right.tolist() == [2, 3]
    assert changed.values["change"].tolist() == [-1.0, 1.0]
    pytest.importorskip("pandas")
    assert list(changed.to_frame().columns) == ["left", "right", "distance", "change"]


BOXES = [
    {"type": "Polygon", "coordinates": [[[0, -1], [2, -1], [2, 2], [0, 2], [0, -1]]]},
    {"type": "Polygon", "coordinates": [[[8, -1], [10, -1], [10, 3], [8, 3], [8, -1]]]},
]


def boxes_and_points():
    pytest.importorskip("shapely")
    live = ogrjoin.Live()
    live.apply([1, 2, 3], [0, 1, 9], [0, 0, 0])
    collection = {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "properties": {}, "geometry": g} for g in BOXES],
    }
    return live, collection


@pytest.mark.parametrize(
    "settings, what",
    [
        ({"within_time": "t=nope:0"}, "within_time has no effect on pairs, only on rows: leave it out"),
        ({"during": "a..b"}, "during has no effect on pairs, only on rows: leave it out"),
        ({"exclude": "self"}, "exclude has no effect on pairs, only on rows: leave it out"),
        ({"how": "inner"}, "how has no effect on pairs, only on rows: leave it out"),
        ({"agg": "count"}, "agg has no effect on pairs, only on rows: leave it out"),
        ({"overlap": "area"}, "overlap has no effect on pairs, only on rows: leave it out"),
        ({"along_field": "m"}, "along_field has no effect on pairs, only on rows: leave it out"),
        ({"relation_field": "r"}, "relation_field has no effect on pairs, only on rows: leave it out"),
        ({"events": "all"}, "events has no effect on pairs, only on rows: leave it out"),
        ({"state": "file"}, "state has no effect on pairs, only on rows: leave it out"),
        ({"on": "a=b"}, "on has no effect on pairs of kept points"),
        ({"on": ([1, 2], [1, 2, 3])}, "on has no effect on pairs of kept points"),
        ({"id": ([1, 2], [1, 2, 3])}, "id has no effect on pairs of kept points"),
        ({"texts": (["a"], ["b"])}, "texts has no effect on pairs of kept points"),
        ({"k": 1}, "k has no effect on op dwithin"),
        ({"ties": "all"}, "ties has no effect on op dwithin"),
        ({"tree": "kdtree"}, "tree has no effect on pairs"),
        ({"norm": "l1"}, "norm has no effect without vector"),
    ],
)
def test_settings_without_effect(settings, what):
    live, boxes = boxes_and_points()
    with pytest.raises(ogrjoin.InvalidError, match=what):
        live.pairs(boxes, "dwithin", max_distance=5, **settings)
    with pytest.raises(ogrjoin.InvalidError, match=what):
        live.near_pairs(5, **settings)


def test_settings_of_near_pairs():
    live, boxes = boxes_and_points()
    with pytest.raises(ogrjoin.InvalidError, match="op has no effect on near pairs"):
        live.near_pairs(5, op="nearest")
    assert live.near_pairs(5, op="dwithin").right.tolist() == [2]
    with pytest.raises(ogrjoin.InvalidError, match="bearing and changes do not go"):
        live.near_pairs(5, changes=True, bearing=True)
    for call in (live.pairs, lambda *of, **asked: ogrjoin.pairs(boxes, *of, **asked)):
        with pytest.raises(ogrjoin.InvalidError, match="changes has no effect on pairs"):
            call(boxes, "contains", changes=True)
    pytest.importorskip("pyarrow")
    with pytest.raises(ogrjoin.InvalidError, match="changes has no effect on rows"):
        ogrjoin.join(([0.0], [0.0]), ([0.0], [0.0]), "nearest", changes=True)
    with pytest.raises(ogrjoin.InvalidError, match="tree has no effect on rows"):
        ogrjoin.join(([0.0], [0.0]), ([0.0], [0.0]), "nearest", tree="kdtree")


def test_values_are_those_of_pairs():
    """Values that are stored as numbers become words. Intersections are WKB."""
    live, boxes = boxes_and_points()
    asked = {"matrix": True, "relation": True, "intersection": True}
    points = ([0.0, 1.0, 9.0], [0.0, 0.0, 0.0])
    for op, settings in (
        ("contains", asked),
        ("intersects", asked),
        ("dwithin", {"max_distance": 5, "line_side": True, **asked}),
        ("dwithin", {"max_distance": 5, "one_to_one": "best", **asked}),
    ):
        made = live.pairs(boxes, op, **settings)
        whole = ogrjoin.pairs(boxes, points, op, **settings)
        assert made.right.tolist() == (whole.right + 1).tolist()
        assert made.values.keys() == whole.values.keys() >= asked.keys()
        for name, values in made.values.items():
            assert values.tolist() == whole.values[name].tolist(), name
    contained = live.pairs(boxes, "contains", **asked).values
    assert contained["matrix"].tolist() == ["0F2FF1FF2"] * len(contained["matrix"])
    assert set(contained["relation"]) == {"contains"}
    near = live.near_pairs(5, relation=True).values
    assert near["relation"].tolist() == ["disjoint"]


def test_rows():
    pa = pytest.importorskip("pyarrow")
    live = ogrjoin.Live()
    ids = np.arange(300, dtype=np.int64) * 7 - 50
    x, y = places(300)
    live.apply(ids[::-1], x[::-1], y[::-1])
    left = pa.table({"name": ["a", "b"], "px": [10.0, 80.0], "py": [10.0, 80.0]})
    points = pa.table({"id": ids, "x": x, "y": y})
    asked = {"how": "inner", "k": 2, "x": "px", "y": "py"}
    rows = live.join(left, "nearest", **asked).read_all()
    whole = ogrjoin.join(
        left, points, "nearest", right_x="x", right_y="y", fid=(None, "id"), **asked
    ).read_all()
    assert rows.equals(whole)
    assert rows.num_rows == 4
    assert set(rows["join_fid"].to_pylist()) <= set(ids.tolist())


def test_units_and_crs():
    pytest.importorskip("pyproj")
    live = ogrjoin.Live(crs="EPSG:2263")
    live.apply([1], [1000000.0], [200000.0])
    near = live.pairs(([1000000.0], [200003.0]), "dwithin", max_distance="1m")
    assert len(near.left) == 1
    with pytest.raises(ogrjoin.InvalidError, match="unit"):
        ogrjoin.Live().pairs(([0.0], [0.0]), "dwithin", max_distance="1m")


def test_save_and_load(tmp_path):
    live = ogrjoin.Live()
    x, y = places(500)
    live.apply(np.arange(500), x, y)
    live.save(tmp_path / "fleet")
    again = ogrjoin.Live.load(tmp_path / "fleet", tree="kdtree")
    assert again.pairs((x, y), "equals").right.tolist() == live.pairs((x, y), "equals").right.tolist()
    assert "kdtree" in again.counts["tree"]
    assert [p.name for p in tmp_path.iterdir()] == ["fleet"]
    (tmp_path / "fleet").write_bytes((tmp_path / "fleet").read_bytes()[:-1])
    with pytest.raises(ogrjoin.Error, match="not written by save"):
        ogrjoin.Live.load(tmp_path / "fleet")


def test_threads():
    """A join that runs while another thread moves the points gets the points of one
    instant."""
    live = ogrjoin.Live()
    n, done, seen = 2000, threading.Event(), []
    ids, y = np.arange(n), np.zeros(n)

    def read():
        while not done.is_set():
            near = live.pairs(([-1e6], [0.0]), "dwithin", max_distance=1e9)
            at = near.distance - 1e6 - near.right
            seen.append(len(set(np.round(at).tolist())))

    live.apply(ids, ids.astype(float), y)
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for step in range(1, 30):
        live.apply(ids, ids + 1.0 * step, y)
    while len(seen) < 5:
        pass
    done.set()
    for thread in threads:
        thread.join()
    assert set(seen) == {1}


def test_units_need_the_crs_of_live():
    live = ogrjoin.Live()
    live.apply([1, 2], [0.0, 1.0], [0.0, 0.0])
    for asked in (lambda: live.near_pairs("5ft"), lambda: live.pairs(([0.0], [0.0]), "dwithin", max_distance="5ft")):
        with pytest.raises(ogrjoin.InvalidError, match=r"no CRS.*Live\(crs=\.\.\.\) names the CRS"):
            asked()
    live = ogrjoin.Live(crs="EPSG:2263")
    live.apply([1, 2], [0.0, 1.0], [0.0, 0.0])
    with pytest.raises(ogrjoin.InvalidError) as error:
        live.near_pairs("5parsec")
    assert "Live(" not in str(error.value)


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2026-01-01"], "M8[s]"),
        np.array([1], "m8[s]"),
        np.array([1j]),
        [1j],
    ],
)
def test_coordinates_that_are_no_numbers(values):
    live = ogrjoin.Live()
    for x, y in ((values, [1.0]), ([1.0], values)):
        with pytest.raises(ogrjoin.InvalidError, match="must be .*numbers, not"):
            live.apply([1], x, y)
    assert len(live) == 0
