"""pairs() and Index: sides, answers, errors, lifetimes, threads, signals."""

import ctypes
import datetime
import array
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest

import ogrjoin
from ogrjoin import _core

rng = np.random.default_rng(3)
X, Y = rng.random((2, 500)) * 10
CENTRE = rng.random((40, 2)) * 10


def squares(half=0.7):
    """Returns (geometries of shapely, a mask of the points in squares)."""
    shapely = pytest.importorskip("shapely")
    low, high = CENTRE - half, CENTRE + half
    boxes = shapely.box(*low.T, *high.T)
    inside = (np.abs(X[:, None] - CENTRE[:, 0]) <= half) & (
        np.abs(Y[:, None] - CENTRE[:, 1]) <= half
    )
    return boxes, inside


def assert_mask(pairs, mask):
    left, right = np.nonzero(mask)
    assert np.array_equal(pairs.left, left)
    assert np.array_equal(pairs.right, right)
    assert len(pairs.offsets) == len(mask) + 1
    assert np.array_equal(np.diff(pairs.offsets), mask.sum(axis=1))


def test_sides_of_points():
    boxes, inside = squares()
    xy = np.column_stack((X, Y))
    for side in ((X, Y), (X.tolist(), Y.tolist()), xy, np.asfortranarray(xy)):
        assert_mask(ogrjoin.pairs(side, boxes), inside)
    assert_mask(ogrjoin.pairs((X[::-1], Y[::-1]), boxes), inside[::-1])


def test_sides_of_shapely():
    shapely = pytest.importorskip("shapely")
    boxes, inside = squares()
    some = shapely.points(X, Y)
    for left in (some, list(some), shapely.multipoints(some, indices=range(500))):
        for right in (boxes, list(boxes), shapely.multipolygons(boxes[:, None])):
            assert_mask(ogrjoin.pairs(left, right), inside)
    some[7], some[8], boxes[3], boxes[4] = None, shapely.Point(), None, shapely.Polygon()
    inside[7:9] = inside[:, 3:5] = False
    assert_mask(ogrjoin.pairs(some, boxes), inside)


def test_polygons_are_those_of_wkb():
    shapely = pytest.importorskip("shapely")
    boxes, _ = squares()
    ringed = shapely.difference(boxes, shapely.buffer(shapely.centroid(boxes), 0.3))
    mixed = np.where(np.arange(40) % 3 == 0, ringed, boxes)
    mixed[::5] = shapely.union(mixed[::5], shapely.affinity.translate(boxes[0], 20))
    mixed[9] = shapely.MultiPolygon([boxes[1], shapely.Polygon()])
    mixed[11] = shapely.MultiPolygon()
    plain = ogrjoin.pairs((X, Y), mixed, "nearest", k=3)
    with_line = np.append(mixed, shapely.LineString([(99, 99), (99, 98)]))
    by_wkb = ogrjoin.pairs((X, Y), with_line, "nearest", k=3)
    assert np.array_equal(plain.right, by_wkb.right)
    assert np.array_equal(plain.distance, by_wkb.distance)


def test_sides_of_arrow():
    pa = pytest.importorskip("pyarrow")
    shapely = pytest.importorskip("shapely")
    boxes, inside = squares()
    column = pa.array(shapely.to_wkb(boxes))
    table = pa.table({"id": range(40), "shape": column})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7))
    for side in (table, column, reader, table.to_batches()[0]):
        assert_mask(ogrjoin.pairs((X, Y), side), inside)
    assert_mask(ogrjoin.pairs((X, Y), table, right_column="shape"), inside)
    with pytest.raises(ValueError, match="nothing"):
        ogrjoin.pairs((X, Y), table, right_column="nothing")


def test_separated_points_are_not_copied():
    """Separated coordinates are not copied. The test writes values to their buffers
    when the layer is made already, and these values are joined."""
    pa = pytest.importorskip("pyarrow")
    boxes, inside = squares()
    x, y = np.full(500, 1e6), np.full(500, 1e6)
    column = pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"])
    metadata = {b"ARROW:extension:name": b"geoarrow.point"}
    field = pa.field("geometry", column.type, metadata=metadata)
    table = pa.table([column], schema=pa.schema([field]))
    assert column.field(0).buffers()[1].address == x.ctypes.data
    layer = _core.from_stream(table.__arrow_c_stream__(), None, {})
    index = ogrjoin.Index(boxes)._index(None, {"op": "intersects", "crs": "check"})
    assert not np.frombuffer(_core.join(index, layer)[1], "q").any()
    x[:], y[:] = X, Y
    offsets = np.frombuffer(_core.join(index, layer)[1], "q")
    left = np.repeat(np.arange(500), np.diff(offsets))
    assert np.array_equal(left, np.nonzero(inside)[0])


class Buffer(ctypes.Structure):
    """Py_buffer of Python's C API."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        *((name, ctypes.c_ssize_t) for name in ("len", "itemsize")),
        *((name, ctypes.c_int) for name in ("readonly", "ndim")),
        ("format", ctypes.c_char_p),
        *((name, ctypes.POINTER(ctypes.c_ssize_t)) for name in ("shape", "strides", "suboffsets")),
        ("internal", ctypes.c_void_p),
    ]


def test_a_buffer_has_its_item_size_whatever_is_requested():
    settings = {"op": "intersects"}
    layer = _core.arrays(500, X, Y)
    offsets = _core.join(_core.index(layer, settings, None, None), layer)[1]
    writable, with_format, with_shape, with_strides = 0x1, 0x4, 0x8, 0x18
    for request in (with_shape, with_strides, with_shape | with_format, 0):
        view = Buffer()
        ctypes.pythonapi.PyObject_GetBuffer(
            ctypes.py_object(offsets), ctypes.byref(view), request
        )
        assert (view.len, view.itemsize, view.ndim) == (501 * 8, 8, 1)
        assert not request & with_shape or view.shape[0] * view.itemsize == view.len
        assert (view.format == b"q") if request & with_format else (view.format is None)
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    with pytest.raises(BufferError):
        view = Buffer()
        ctypes.pythonapi.PyObject_GetBuffer(
            ctypes.py_object(offsets), ctypes.byref(view), writable
        )


def test_sides_of_polars_and_duckdb():
    shapely = pytest.importorskip("shapely")
    boxes, inside = squares()
    wkb = shapely.to_wkb(boxes)
    polars = pytest.importorskip("polars")
    assert_mask(ogrjoin.pairs((X, Y), polars.DataFrame({"wkb": list(wkb)})), inside)
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    squares_table = pa.table({"wkb": wkb})  # noqa: F841, named in the query
    rows = duckdb.connect().sql("select * from squares_table")
    assert_mask(ogrjoin.pairs((X, Y), rows), inside)


def test_sides_with_geo_interface():
    shapely = pytest.importorskip("shapely")
    boxes, inside = squares()
    features = [
        {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(b)}
        for b in boxes
    ]
    side = {"type": "FeatureCollection", "features": features}
    assert_mask(ogrjoin.pairs((X, Y), side), inside)


def test_distances():
    far = np.hypot(X[:, None] - CENTRE[:, 0], Y[:, None] - CENTRE[:, 1])
    near = ogrjoin.pairs((X, Y), CENTRE, "nearest", k=4)
    assert np.array_equal(near.right.reshape(-1, 4), np.argsort(far)[:, :4])
    assert np.allclose(near.distance.reshape(-1, 4), np.sort(far)[:, :4], rtol=1e-15)
    within = ogrjoin.pairs((X, Y), CENTRE, "dwithin", max_distance=0.8)
    assert_mask(within, far <= 0.8)
    own = rng.random(500) * 2
    own[5] = np.nan
    assert_mask(
        ogrjoin.pairs((X, Y), CENTRE, "dwithin", max_distance=own),
        far <= own[:, None],
    )
    assert ogrjoin.pairs((X, Y), squares()[0]).distance is None


def test_validate():
    boxes, inside = squares()
    report = ogrjoin.validate((X, Y), boxes)
    assert (report.n_rows, report.n_pairs) == (500, inside.sum())
    assert report.n_differences == 0 and report.kind is None
    report = ogrjoin.validate((X, Y), CENTRE, "nearest", k=2)
    assert report.n_pairs == 1000 and report.n_differences == 0
    with pytest.raises(ogrjoin.InvalidError, match="abacus"):
        ogrjoin.validate((X, Y), CENTRE, reference="abacus")


def test_equal_values():
    boxes, inside = squares(2)
    for left in (rng.integers(0, 5, 500), rng.choice(["a", "b", "ä"], 500)):
        right = left[:40]
        equal = left[:, None] == right
        assert_mask(ogrjoin.pairs((X, Y), boxes, on=(left, right)), inside & equal)
    left = rng.choice(np.array(["a", "b", None], dtype=object), 500)
    equal = (left[:, None] == left[:40]) & (left != None)[:, None]  # noqa: E711
    assert_mask(ogrjoin.pairs((X, Y), boxes, on=(left, left[:40])), inside & equal)


def test_durations_are_no_equal_values():
    """As texts, 1 s and 1000 ms would differ."""
    pytest.importorskip("pyarrow")  # without it, on takes numbers, texts and datetimes alone
    seconds, place = np.array([1, 2], "m8[s]"), (np.zeros(2), np.zeros(2))
    missing = np.array([None, np.timedelta64(1, "s")], dtype=object)
    numbers = seconds.astype(np.int64)
    for left, right in (
        (seconds, seconds.astype("m8[ms]")),
        (seconds, numbers),
        (numbers, seconds),
        (missing, missing),
        (missing, np.array([None, datetime.timedelta(seconds=1)], dtype=object)),
    ):
        with pytest.raises(ogrjoin.UnsupportedError, match="on: durations cannot be compared"):
            ogrjoin.pairs(place, place, "attributes", on=(left, right))
    assert len(ogrjoin.pairs(place, place, "attributes", on=(numbers, numbers)).left) == 2


def test_index_is_kept():
    boxes, inside = squares()
    index = ogrjoin.Index(boxes)
    assert len(index) == 40
    for _ in range(2):
        assert_mask(index.pairs((X, Y)), inside)
        assert len(index.pairs((X, Y), "nearest", k=2)) == 1000
    del boxes
    gc.collect()
    assert_mask(index.pairs((X, Y)), inside)


def test_an_index_of_a_stream_keeps_its_rows():
    """join() of such an index found no rows, and returned none, without an error."""
    pa = pytest.importorskip("pyarrow")
    shapely = pytest.importorskip("shapely")
    boxes, _ = squares()
    wkb = pa.array(shapely.to_wkb(boxes).tolist(), pa.binary())
    table = pa.table({"number": np.arange(len(boxes)), "geometry": wkb})
    points = shapely.points(X, Y)

    class Once:
        """A stream that is no reader of pyarrow."""

        def __arrow_c_stream__(self, requested_schema=None):
            return table.to_reader().__arrow_c_stream__(requested_schema)

    whole = ogrjoin.Index(table, column="geometry")
    for side in (table.to_reader(), table.to_reader(max_chunksize=7), Once()):
        index = ogrjoin.Index(side, column="geometry")
        assert np.array_equal(index.pairs(points).right, whole.pairs(points).right)
        for options in ({}, {"how": "inner"}, {"agg": "count"}, {"on": None, "k": 2}):
            op = "nearest" if "k" in options else "intersects"
            rows = index.join(points, op, **options).read_all()
            assert rows.equals(whole.join(points, op, **options).read_all())
            assert rows.num_rows > 0
    values = np.arange(len(boxes)) % 3
    index = ogrjoin.Index(table.to_reader(), column="geometry", on=values)
    asked = np.arange(len(points)) % 4
    as_numbers = index.pairs(points, on=asked).right
    assert len(as_numbers) > 0
    assert np.array_equal(index.pairs(points, on=asked.astype(str)).right, as_numbers)


def features():
    places = {"old": [0, 0], "far": [9, 9]}
    return {"type": "FeatureCollection",
            "features": [{"type": "Feature", "properties": {"a": name},
                          "geometry": {"type": "Point", "coordinates": place}}
                         for name, place in places.items()]}  # fmt: skip


class Features:
    """GeoJSON with a CRS; its owner may change it."""

    crs = "EPSG:25833"

    def __init__(self):
        self.__geo_interface__ = features()


def test_an_index_owns_geojson(monkeypatch):
    shapely = pytest.importorskip("shapely")

    def change(data):
        data["features"].reverse()
        data["features"][1]["properties"]["a"] = "new"

    for side in (features(), Features()):
        index = ogrjoin.Index(side)
        change(getattr(side, "__geo_interface__", side))
        rows = index.join([shapely.Point(0, 0)], "intersects", how="inner").read_all()
        assert rows["join_fid"].to_pylist() == [0] and rows["a"].to_pylist() == ["old"]
    with pytest.raises(ogrjoin.InvalidError, match="left EPSG:4326 and right EPSG:25833"):
        ogrjoin.Index(Features()).pairs(shapely_with_crs("EPSG:4326"))
    monkeypatch.setattr(copy, "deepcopy", None)  # joins at once copy nothing
    assert len(ogrjoin.pairs([shapely.Point(0, 0)], features())) == 1
    assert ogrjoin.validate([shapely.Point(0, 0)], features()).n_differences == 0


def shapely_with_crs(crs):
    geopandas = pytest.importorskip("geopandas")
    return geopandas.GeoSeries.from_wkt(["POINT (0 0)"], crs=crs)


def test_an_index_owns_the_rows_of_queries():
    duckdb, shapely = pytest.importorskip("duckdb"), pytest.importorskip("shapely")
    pa = pytest.importorskip("pyarrow")
    left = [shapely.Point(0, 0)]
    wkb = shapely.to_wkb(shapely.points([0.0, 9], [0, 9])).tolist()
    connection = duckdb.connect()
    given = pa.table({"n": [1, 2], "g": pa.array(wkb, pa.binary())})
    connection.register("given", given)
    connection.execute("create table t as select * from given")
    index = ogrjoin.Index(connection.sql("from t"), column="g")
    connection.execute("delete from t where n = 1")
    assert index.join(left, "intersects", how="inner").read_all()["n"].to_pylist() == [1]

    side = features()
    joined = ogrjoin.join(side, [shapely.box(-1, -1, 10, 10)], "intersects")
    index = ogrjoin.Index(joined)
    assert index.join(left, "intersects", how="inner").read_all()["a"].to_pylist() == ["old"]
    assert isinstance(index._right, pa.Table)


class Tensor:
    """As a tensor of PyTorch in the memory of the CPU, which numpy reads in place."""

    def __init__(self, values):
        self.values = np.array(values)

    def __len__(self):
        return len(self.values)

    def __setitem__(self, at, value):
        self.values[at] = value

    def __array__(self, dtype=None, copy=None):
        return self.values.copy() if copy else self.values

    def __dlpack_device__(self):
        return 1, 0


def test_an_index_owns_its_side():
    """Later changes of arrays, lists and frames change no answer."""
    shapely = pytest.importorskip("shapely")
    geopandas = pytest.importorskip("geopandas")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")

    def geo_frame():
        points = shapely.points([0.0, 1], [0, 1])
        return geopandas.GeoDataFrame({"n": [10, 20]}, geometry=points)

    def move_frame(side):
        side.loc[0, "geometry"], side.loc[0, "n"] = shapely.Point(100, 100), 30

    def move_series(side):
        side.loc[0] = shapely.Point(100, 100)

    def move_array(side):
        side[:] = 100

    def move_first(side):
        side[0][:] = 100

    def move_item(side):
        side[0] = shapely.Point(100, 100)

    def move_list(side):
        side[0][0] = 100.0

    for make, move in (
        (lambda: (np.array([0.0, 1]), np.array([0.0, 1])), move_first),
        (lambda: (pandas.Series([0.0, 1]), np.array([0.0, 1])), move_first),
        (lambda: ([0.0, 1.0], [0.0, 1.0]), move_list),
        (lambda: np.array([[0.0, 0], [1, 1]]), move_array),
        (lambda: shapely.points([0.0, 1], [0.0, 1]), move_item),
        (lambda: list(shapely.points([0.0, 1], [0.0, 1])), move_item),
        (lambda: geo_frame().geometry, move_series),
        (lambda: geo_frame().geometry.values, move_item),
        (geo_frame, move_frame),
    ):
        for is_used in (False, True):  # before and after the first joins
            side, left = make(), ([0.0], [0.0])
            index = ogrjoin.Index(side)
            if is_used:
                index.pairs(left, "nearest"), index.join(left, "nearest")
            move(side)
            for op, options in (("nearest", {}), ("dwithin", {"max_distance": 1})):
                pairs = index.pairs(left, op, **options)
                assert (pairs.right.tolist(), pairs.distance.tolist()) == ([0], [0.0])
                row = index.join(left, op, **options).read_all().to_pylist()[0]
                assert (row["join_fid"], row["join_distance"]) == (0, 0.0)
                assert row.get("n", 10) == row.get("join_n", 10) == 10

    for make in (
        lambda v: array.array("d", v),
        lambda v: memoryview(array.array("d", v)),
        Tensor,
    ):
        side = make([0.0, 1.0]), make([0.0, 1.0])
        index = ogrjoin.Index(side)
        side[0][0], side[0][1] = 1.0, 0.0
        row = index.join(([0.0], [0.0]), "nearest").read_all().to_pylist()[0]
        assert (row["join_fid"], row["join_distance"]) == (0, 0.0)

    id, score = np.array([1, 0]), pandas.array([0, 1])
    index = ogrjoin.Index(([-1.0, 1.0], [0.0, 0.0]), id=id, score=score)
    id[:], score[:] = [0, 1], [1, 0]
    assert index.pairs(([0.0], [0.0]), "nearest").right.tolist() == [1]
    options = {"max_distance": 2, "pick": "score"}
    assert index.pairs(([0.0], [0.0]), "dwithin", **options).right.tolist() == [1]
    vectors = np.array([[0.0], [1.0]])
    frame = polars.DataFrame({"n": [10], "wkb": [shapely.to_wkb(shapely.Point(0, 0))]})
    by_vector, by_place = ogrjoin.Index(vectors, op="similar"), ogrjoin.Index(frame)
    vectors[0], frame[0, "n"] = 100, 30
    assert by_vector.pairs([[0.0]], "similar", k=1).right.tolist() == [0]
    rows = by_place.join(([0.0], [0.0]), "nearest").read_all()
    assert (rows["join_fid"].to_pylist(), rows["n"].to_pylist()) == ([0], [10])


def test_join_of_an_index_asks_for_its_columns_as_join_does():
    """Values of on and id have no effect on join(), which reads columns."""
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    left = geopandas.GeoDataFrame({"id": [4], "k": ["a"]}, geometry=[shapely.Point(0, 0)])
    right = geopandas.GeoDataFrame(
        {"id": [8, 7], "k": ["b", "a"]}, geometry=shapely.points([1, -1], [0, 0])
    )

    def fids(index, **options):
        return index.join(left, "nearest", **options).read_all()["join_fid"].to_pylist()

    index = ogrjoin.Index(right)
    assert fids(index) == [0]  # read without fid before
    for fid in ("id", (None, "id")):
        rows = ogrjoin.join(left, right, "nearest", fid=fid).read_all()
        assert rows["join_fid"].to_pylist() == fids(index, fid=fid) == [7]
        assert fids(ogrjoin.Index(right, id=[1, 0]), fid=fid) == [7]
    with pytest.raises(ogrjoin.InvalidError, match="the Index has values of id.*fid="):
        fids(ogrjoin.Index(right, id=[1, 0]))
    of_values = ogrjoin.Index(right, on=["b", "a"])
    assert fids(of_values, on="k") == [1]
    with pytest.raises(ogrjoin.InvalidError, match="the Index has values of on.*on="):
        fids(of_values)
    for on in (("k", "k"), ()):
        with pytest.raises(ogrjoin.InvalidError, match="on is a tuple"):
            fids(index, on=on)


def test_no_op_is_the_default_of_the_library():
    for side in (CENTRE, (X, Y)):
        nearest = ogrjoin.pairs(side, CENTRE, "nearest")
        pairs = ogrjoin.pairs(side, CENTRE, None)
        assert np.array_equal(pairs.right, nearest.right)
        assert np.array_equal(pairs.distance, nearest.distance)
    assert len(list(ogrjoin.Index(CENTRE).pairs_batches(CENTRE, None))) == 1


def test_pickled_pairs():
    pairs = ogrjoin.pairs((X, Y), CENTRE, "nearest", k=2)
    copy = pickle.loads(pickle.dumps(pairs))
    for again in (copy, pickle.loads(pickle.dumps(copy)), copy.of_rows(0, len(X))):
        assert np.array_equal(again.right, pairs.right)
        assert again.backend == pairs.backend
    part = copy.of_rows(3, 2)
    assert np.array_equal(part.right, pairs.right[6:10])
    assert len(copy.of_rows(len(X), 0)) == 0
    for first, n in ((-1, 1), (0, len(X) + 1), (len(X), 1), (0, -1)):
        with pytest.raises(ogrjoin.InvalidError, match=f"there are {len(X)} left rows"):
            pairs.of_rows(first, n)


def test_empty_sides():
    none = np.empty((0, 2))
    for left, right in ((none, CENTRE), (CENTRE, none), (none, none)):
        for op in ("nearest", "intersects"):
            pairs = ogrjoin.pairs(left, right, op)
            assert len(pairs) == 0 and len(pairs.offsets) == len(left) + 1


def test_points_that_are_none():
    x = X.copy()
    x[3:7] = np.nan, np.inf, -np.inf, 1e200
    y = Y.copy()
    y[8] = np.nan
    pairs = ogrjoin.pairs((x, y), CENTRE, "nearest")
    assert set(range(500)) - set(pairs.left) == {3, 4, 5, 6, 8}


def test_arrays_outlive_all():
    pairs = ogrjoin.pairs((X, Y), CENTRE, "nearest")
    left, right = pairs.left, pairs.right.copy()
    kept = pairs.right[5:]
    del pairs
    gc.collect()
    others = [np.full(500, 7) for _ in range(50)]  # reuses freed memory
    assert np.array_equal(left, np.arange(500)) and np.array_equal(kept, right[5:])
    assert len(others) == 50


def grown(call, n):
    """Returns by how many megabytes n calls increase the peak memory. A fifth as many
    calls are made before, to warm up."""
    resource = pytest.importorskip("resource")

    def most():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    for _ in range(n // 5):
        call()
    before = most()
    for _ in range(n):
        call()
    return most() - before


def test_no_growth():
    boxes, _ = squares()
    assert grown(lambda: ogrjoin.pairs((X, Y), boxes, "nearest"), 1000) < 4


def test_no_growth_of_tables():
    pa = pytest.importorskip("pyarrow")
    shapely = pytest.importorskip("shapely")
    words = [f"the word of row {i}" for i in range(500)]
    shapes = pa.array(shapely.to_wkb(shapely.points(X, Y)))
    table = pa.table({"word": words, "geometry": shapes})
    index = ogrjoin.Index(squares()[0])

    def call():
        index.join(table, how="left").read_all()
        ogrjoin.join(table, table, "nearest", k=3).read_all()

    assert grown(call, 500) < 4


def test_cuda_backend():
    """The backend cuda gives the pairs of the CPU, or an error with its reason. The
    module is found where the wheel puts it."""
    beside = os.path.join(os.path.dirname(ogrjoin.__file__), "ogrjoin_cuda.so")
    pairs = ogrjoin.pairs((X, Y), CENTRE, "nearest")
    try:
        same = ogrjoin.pairs((X, Y), CENTRE, "nearest", backend="cuda")
        assert np.array_equal(same.right, pairs.right)
    except ogrjoin.Error as error:
        assert error.status.name == "NO_DEVICE"
        assert os.path.exists(beside) != ("ogrjoin-cuda" in str(error))


@pytest.mark.parametrize(
    "named, error, status",
    [
        ({"op": "nowhere"}, ValueError, "ARGUMENT"),
        ({"op": "nearest", "k": 0}, ValueError, "ARGUMENT"),
        ({"op": "nearest", "k": "many"}, ValueError, "ARGUMENT"),
        ({"op": "dwithin"}, ValueError, "ARGUMENT"),
        ({"op": "intersects", "nothing": 1}, ValueError, "ARGUMENT"),
        ({"op": "dwithin", "max_distance": 5, "max_pairs": 3}, ValueError, "TOO_MANY"),
        ({"op": "nearest", "max_pairs": 3}, ValueError, "TOO_MANY"),
        ({"op": "nearest", "backend": "none"}, ValueError, "ARGUMENT"),
    ],
)
def test_errors(named, error, status):
    with pytest.raises(error) as raised:
        ogrjoin.pairs((X, Y), CENTRE, **named)
    assert isinstance(raised.value, ogrjoin.Error)
    assert raised.value.status == ogrjoin.Status[status]


def test_errors_of_data():
    pa = pytest.importorskip("pyarrow")
    for bytes_ in (b"", b"\1", b"\1\1\0\0\0", b"\1\3\0\0\0\xff\xff\xff\xff"):
        with pytest.raises(ogrjoin.InvalidError):
            ogrjoin.pairs((X, Y), pa.array([bytes_]))
    with pytest.raises(TypeError, match="cannot be joined"):
        ogrjoin.pairs((X, Y), 7)
    with pytest.raises(ValueError):
        ogrjoin.pairs((X, Y[1:]), CENTRE)
    with pytest.raises(ValueError):
        ogrjoin.pairs((X, Y), CENTRE, "dwithin", max_distance=[1.0, 2.0])

    def broken():
        yield pa.record_batch({"wkb": pa.array([None], pa.binary())})
        raise RuntimeError("torn off")

    schema = pa.schema({"wkb": pa.binary()})
    with pytest.raises(OSError, match="torn off"):
        ogrjoin.pairs((X, Y), pa.RecordBatchReader.from_batches(schema, broken()))


def test_progress():
    n = 200000
    x, y = rng.random((2, n)) * 10
    told = []
    pairs = ogrjoin.pairs(
        (x, y), CENTRE, "nearest", progress=lambda *done: told.append(done)
    )
    whole = ogrjoin.pairs((x, y), CENTRE, "nearest")
    assert told[-1] == (n, n) and len(told) > 2 and told == sorted(told)
    assert np.array_equal(pairs.left, whole.left)
    assert np.array_equal(pairs.right, whole.right)

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ogrjoin.pairs((x, y), CENTRE, "nearest", progress=stop)


def test_threads_join_at_once():
    boxes, inside = squares()
    index = ogrjoin.Index(boxes, threads=1)
    wrong, count = [], [0]

    def join():
        for _ in range(20):
            try:
                assert_mask(index.pairs((X, Y)), inside)
                count[0] += 1
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=join) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and count[0] > 0


def test_others_run_meanwhile():
    n = 400000
    xy = rng.random((2, n))
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    while counted[0] == 0:
        time.sleep(0.001)
    # A thread that must wait for the call counts once at most. On a busy machine even
    # one that does not wait may run late, so there are several calls.
    n_meanwhile = 0
    for _ in range(10):
        before = counted[0]
        ogrjoin.pairs(tuple(xy), xy.T[::4], "nearest", k=20, threads=1)
        n_meanwhile = max(n_meanwhile, counted[0] - before)
        if n_meanwhile > 20:
            break
    done.set()
    thread.join()
    assert n_meanwhile > 20


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupt():
    code = """
import numpy as np, ogrjoin, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # not what a shell's "&" left
xy = np.random.default_rng(1).random((200000, 2))
at = []
def interrupt():
    time.sleep(0.3)
    at.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
index = ogrjoin.Index(xy, threads=1)
index.pairs(xy[:1], "nearest", k=1000)
try:
    threading.Thread(target=interrupt).start()
    index.pairs(xy, "nearest", k=1000)
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted", time.process_time() - at[0])
print(len(index.pairs(xy[:10], "nearest", k=1000)))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    words = run.stdout.split()
    assert words[0] == "interrupted", run
    assert float(words[1]) < 2, run  # seconds of the processor
    assert words[2] == "10000", run


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python with the GIL"
)
def test_the_gil_stays_off():
    code = "import ogrjoin, sys; assert not sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork()")
def test_after_fork():
    index = ogrjoin.Index(CENTRE)
    before = index.pairs((X, Y), "nearest")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            after = index.pairs((X, Y), "nearest")
            code = 0 if np.array_equal(after.right, before.right) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert signal.getsignal(signal.SIGINT) is not None


class Counted:
    """A sequence of numbers that counts how often it is converted to an array."""

    def __init__(self, n):
        self.n, self.n_copies = n, 0

    def __len__(self):
        return self.n

    def __array__(self, dtype=None, copy=None):
        self.n_copies += 1
        return np.zeros(self.n, dtype)


def test_lengths_are_looked_at_before_anything_is_copied():
    xy = (np.zeros(3), np.zeros(3))
    long = Counted(4)
    with pytest.raises(ogrjoin.InvalidError, match="values, and x has"):
        ogrjoin.Index((np.zeros(3), long))
    with pytest.raises(ogrjoin.InvalidError, match="values, and x has"):
        ogrjoin.Index((long, np.zeros(3)))
    for name in ("id", "score", "on"):
        with pytest.raises(ogrjoin.InvalidError, match=f"{name} has 4 values, and the right side has 3"):
            ogrjoin.Index(xy, **{name: long})
    assert long.n_copies == 0


def test_lengths_that_wrap_around():
    """Lengths whose product with 8 overflows to 0 or less."""
    from ogrjoin import _core

    for n in (2**61, 2**63 - 1, -1, -(2**61)):
        with pytest.raises((ValueError, ogrjoin.InvalidError)):
            _core.arrays(n, b"", b"")


@pytest.mark.parametrize("op", ["bbox", "intersects", "equals", "nearest"])
def test_a_point_is_the_same_geometry_beside_any_rows(op):
    pytest.importorskip("shapely")
    from shapely import LineString, MultiPoint, Point

    far = LineString([(90, 90), (91, 91)])
    one, other = Point(3, 1), MultiPoint([(3, 1)])
    for left, right in ((one, other), (other, one)):
        for rows in ([right], [right, far]):
            found = ogrjoin.pairs([left], rows, op, exclude_same_geometry=True)
            assert 0 not in found.right
