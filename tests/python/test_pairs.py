"""pairs() and Index: sides, answers, errors, lifetimes, threads, signals."""

import ctypes
import gc
import os
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
    start = time.perf_counter()
    ogrjoin.pairs(tuple(xy), xy.T[::4], "nearest", k=20, threads=1)
    took = time.perf_counter() - start
    done.set()
    thread.join()
    assert counted[0] > 50 * took


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupt():
    code = """
import numpy as np, ogrjoin, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # not what a shell's "&" left
xy = np.random.default_rng(1).random((200000, 2))
at = []
def interrupt():
    time.sleep(0.3)
    at.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
index = ogrjoin.Index(xy, threads=1)
index.pairs(xy[:1], "nearest", k=1000)
threading.Thread(target=interrupt).start()
try:
    index.pairs(xy, "nearest", k=1000)
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted", time.perf_counter() - at[0])
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
    assert float(words[1]) < 2, run  # 0.3 s on an idle machine
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
