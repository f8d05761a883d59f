"""Points on a CUDA device, here the emulated one (tests/cuda_host).  The test reads its
memory directly, as host memory."""

import ctypes
import gc
import os

import numpy as np
import pytest

import ogrjoin
from ogrjoin import _core

pytest.importorskip("shapely")
import shapely

MODULE = os.environ.get("OGRJOIN_CUDA_MODULE")
emulated = ctypes.CDLL(MODULE) if MODULE and os.path.exists(MODULE) else None
if not hasattr(emulated, "oj_host_take"):
    pytest.skip("no emulated device (OGRJOIN_CUDA_MODULE)", allow_module_level=True)
emulated.oj_host_take.restype = ctypes.c_void_p
emulated.oj_host_take.argtypes = [ctypes.c_int64]
emulated.oj_host_give_back.argtypes = [ctypes.c_void_p]
emulated.oj_host_copied.restype = ctypes.c_int64
emulated.oj_host_held.restype = ctypes.c_int64

rng = np.random.default_rng(4)
XY = rng.random((3000, 2)) * 100
XY[7] = np.nan
BOXES = [
    shapely.box(x, y, x + w, y + w)
    for x, y, w in zip(*rng.random((2, 60)) * 100, rng.random(60) * 15)
]
CENTRE = rng.random((200, 2)) * 100


class OnDevice:
    """An array with __cuda_array_interface__, like those of CuPy."""

    def __init__(self, values, stream=1, **told):
        values = np.ascontiguousarray(values)
        self.address = emulated.oj_host_take(max(values.nbytes, 8))
        ctypes.memmove(self.address, values.ctypes.data, values.nbytes)
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "stream": stream,
            **told,
        }

    def __del__(self):
        emulated.oj_host_give_back(self.address)


class ByDLPack:
    """An array with DLPack, like those of PyTorch. Its __cuda_array_interface__ states
    no stream."""

    def __init__(self, values):
        self.array, self.n = OnDevice(values), len(values)
        self.streams = []

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return _core.to_dlpack(self.array, self.array.address, self.n, 2, 64, 0)


def to_host(array):
    told = array.__cuda_array_interface__
    dtype = np.dtype(told["typestr"])
    bytes_ = ctypes.string_at(told["data"][0], told["shape"][0] * dtype.itemsize)
    return np.frombuffer(bytes_, dtype)


def assert_pairs(ours, theirs):
    """Checks that the pairs of the device are those of the CPU."""
    right = to_host(ours.right)
    assert ours.left is None and ours.n_left == theirs.n_left
    assert (ours.backend, theirs.backend) == ("cuda", "cpu")
    if ours.offsets is None:
        left = np.flatnonzero(right >= 0)
        taken = right >= 0
    else:
        left = np.repeat(np.arange(ours.n_left), np.diff(to_host(ours.offsets)))
        taken = slice(None)
    assert np.array_equal(left, theirs.left)
    assert np.array_equal(right[taken], theirs.right)
    assert (ours.distance is None) == (theirs.distance is None)
    if ours.distance is not None:
        distance = to_host(ours.distance)
        assert np.array_equal(distance[taken], theirs.distance)
        assert ours.offsets is not None or np.isnan(distance[right < 0]).all()


JOINS = [
    (BOXES, "nearest", {"max_distance": 3}),
    (BOXES, "nearest", {}),
    (BOXES, "nearest", {"max_distance": 5, "ties": "all"}),
    (BOXES, "nearest", {"k": 3}),
    (BOXES, "intersects", {}),
    (BOXES, "within", {}),
    (BOXES, "dwithin", {"max_distance": 4}),
    (BOXES, "bbox", {}),
    (CENTRE, "nearest", {"max_distance": 3}),
    (CENTRE, "nearest", {"k": 4, "max_distance": 9}),
    (CENTRE, "dwithin", {"max_distance": 6}),
]


@pytest.mark.parametrize("side, op, named", JOINS)
def test_joins(side, op, named):
    theirs = ogrjoin.pairs(XY, side, op, backend="cpu", **named)
    assert len(theirs) > 50
    x, y = OnDevice(XY[:, 0]), OnDevice(XY[:, 1])
    index = ogrjoin.Index(side)
    ours = index.pairs((x, y), op, **named)
    assert_pairs(ours, theirs)
    before = emulated.oj_host_copied()
    again = index.pairs((x, y), op, **named)
    copied = emulated.oj_host_copied() - before
    if again.offsets is None:
        assert copied <= 8 * (op == "nearest" and "max_distance" not in named)
    else:
        assert copied <= 256
    del index, x, y
    gc.collect()
    assert_pairs(again, theirs)
    del ours, again
    gc.collect()
    assert emulated.oj_host_held(ctypes.create_string_buffer(200)) == 0


def test_forms_of_points():
    theirs = ogrjoin.pairs(XY, CENTRE, "nearest", max_distance=3)
    index = ogrjoin.Index(CENTRE)
    by_column = OnDevice(XY.T)
    wide = np.arange(3000 * 3.0).reshape(3000, 3)
    wide[:, :2] = XY
    wide = OnDevice(wide, shape=(3000, 2), strides=(24, 8))
    sides = [
        OnDevice(XY),
        OnDevice(XY, strides=(16, 8)),
        wide,
        (OnDevice(XY[:, 0]), OnDevice(XY[:, 1])),
        (ByDLPack(XY[:, 0]), ByDLPack(XY[:, 1])),
        OnDevice(XY.T, shape=(3000, 2), strides=(8, 24000)),
        OnDevice(XY, stream=None),
        OnDevice(XY, stream=2),
    ]
    for side in sides:
        assert_pairs(index.pairs(side, "nearest", max_distance=3), theirs)
    assert sides[4][0].streams == [1]
    del by_column
    none = index.pairs(OnDevice(np.empty((0, 2))), "nearest")
    assert len(none) == 0 and none.n_left == 0
    assert len(index.pairs(OnDevice(XY[:1]), "nearest")) == 1


def test_dlpack_out():
    index = ogrjoin.Index(BOXES)
    pairs = index.pairs(OnDevice(XY), "nearest", max_distance=3)
    told = pairs.right.__cuda_array_interface__
    assert pairs.right.__dlpack_device__() == (2, 0)
    capsules = [
        pairs.right.__dlpack__(stream=s, max_version=(1, 0)) for s in (None, 1, 2, -1)
    ]
    for capsule in capsules:
        address, shape, strides, code, bits, kind, device = _core.from_dlpack(capsule)
        assert (address, shape[0], strides[0]) == (told["data"][0], 3000, 1)
        assert (code, bits, kind, device) == (0, 32, 2, 0)
    address, *_, code, bits, _, _ = _core.from_dlpack(pairs.distance.__dlpack__())
    assert (code, bits) == (2, 64)
    with pytest.raises(BufferError):
        pairs.right.__dlpack__(copy=True)
    right = to_host(pairs.right)
    del pairs, index
    gc.collect()
    bytes_ = ctypes.string_at(told["data"][0], 12000)  # the capsules keep the memory
    assert np.array_equal(np.frombuffer(bytes_, np.int32), right)


def test_what_is_refused():
    index = ogrjoin.Index(BOXES)
    points = OnDevice(XY)
    whole = OnDevice(np.zeros((9, 2), np.int64))
    single = OnDevice(XY.astype(np.float32))
    for side, message in (
        (whole, "float64"),
        (single, "float64"),
        (OnDevice(rng.random((5, 3))), "two columns"),
        (OnDevice(XY[:, 0]), "two columns"),
        ((OnDevice(XY[:, 0]), OnDevice(XY[1:, 1])), "equal length"),
        ((OnDevice(XY[:, 0]), OnDevice(XY[:, 1], stream=2)), "of two CUDA streams"),
        (OnDevice(XY, data=(XY.ctypes.data, False)), "not in the memory of a CUDA device"),
    ):
        with pytest.raises(ogrjoin.Error, match=message):
            index.pairs(side)
    for named, message in (
        ({"on": [1] * 3000}, "both sides"),
        ({"progress": print}, "without columns"),
        ({"pick": "smallest_area"}, "distances only"),
        ({"op": "nearest", "metric": "sphere"}, None),
    ):
        with pytest.raises(ogrjoin.Error, match=message):
            index.pairs(points, **named)
    with pytest.raises(ogrjoin.InvalidError, match="backend"):
        ogrjoin.pairs(points, BOXES, backend="cpu")
    with pytest.raises(ogrjoin.InvalidError, match="max_pairs"):
        ogrjoin.pairs(points, BOXES, "dwithin", max_distance=50, max_pairs=7)
    assert len(index.pairs(points)) >= 0


def test_far_points():
    far = np.array([[np.inf, 0], [0, -np.inf], [1e300, 1e300], [np.nan, 1], [50, 50]])
    for op, named in (
        ("nearest", {"max_distance": 1e6}),
        ("nearest", {"max_distance": 1e6, "ties": "all"}),
        ("intersects", {}),
        ("bbox", {}),
        ("dwithin", {"max_distance": 1e6}),
    ):
        pairs = ogrjoin.pairs(OnDevice(far), BOXES, op, **named)
        right = to_host(pairs.right)
        if pairs.offsets is None:
            assert (right[:4] < 0).all()
        else:
            assert to_host(pairs.offsets)[4] == 0


@pytest.mark.parametrize("op", ["intersects", "dwithin", "nearest"])
def test_rows_of_many_points(op):
    """There are so many rows that join() on the CPU would first join a sample of them. The
    device gives the rows of the CPU, whether auto chooses it or the backend is named."""
    points = tuple(rng.random((2, 20000)) * 100)
    boxes = BOXES * 40
    named = {} if op == "intersects" else {"max_distance": 1.0}
    rows = [
        ogrjoin.join(points, boxes, op, how="inner", backend=backend, **named).read_all()
        for backend in ("cpu", "auto", "cuda")
    ]
    assert len(rows[0]) > 1000
    assert rows[1].equals(rows[0]) and rows[2].equals(rows[0])
