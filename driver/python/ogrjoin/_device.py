"""Joins of points in the memory of a CUDA device; the pairs stay there.

Input: (x, y), or one array of two columns, of float64, as objects with
__cuda_array_interface__ (CuPy, Numba) or DLPack (PyTorch, JAX).  Output: DeviceArray,
which has both protocols.  No library of CUDA is imported here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _core
from ._errors import InvalidError, UnsupportedError
from ._pairs import Pairs

_LEGACY = 1  # the legacy default stream, which is 1 in both protocols
_DLPACK_CUDA = (2, 13)  # device memory, managed memory
_ITEM = 8


class _Column(NamedTuple):
    address: int
    n: int
    width: int  # numbers in a row: 1 or 2
    strides: tuple[int, int]  # in numbers
    stream: int
    owner: Any


def _interface(array: Any) -> Any:
    return getattr(array, "__cuda_array_interface__", None)


def is_device(array: Any) -> bool:
    """Returns True for an array, or a pair of arrays, in the memory of a CUDA device."""
    if isinstance(array, tuple):
        return len(array) == 2 and all(map(is_device, array))
    if not hasattr(array, "__dlpack_device__"):
        return _interface(array) is not None
    return array.__dlpack_device__()[0] in _DLPACK_CUDA


def _of_interface(array: Any, interface: dict[str, Any]) -> _Column:
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    if interface["typestr"] != "<f8" or interface.get("mask") is not None:
        raise InvalidError("points on a device must be float64: use .astype('float64')")
    if not 1 <= len(shape) <= 2:
        raise InvalidError("an array of points on a device must have 1 or 2 dimensions")
    if strides is None:
        strides = (_ITEM * shape[-1], _ITEM) if len(shape) == 2 else (_ITEM,)
    if any(s % _ITEM for s in strides):
        raise InvalidError(
            "the strides of points on a device must be multiples of 8 bytes: pass a copy of "
            "the array, as array.copy()"
        )
    own = [s // _ITEM for s in strides] + [1]
    width = shape[1] if len(shape) == 2 else 1
    stream = interface.get("stream") or _LEGACY
    return _Column(interface["data"][0], shape[0], width, (own[0], own[1]), stream, array)


def _of_dlpack(array: Any) -> _Column:
    capsule = array.__dlpack__(stream=_LEGACY)
    address, shape, strides, code, bits, _, _ = _core.from_dlpack(capsule)
    if (code, bits) != (2, 64):
        raise InvalidError("points on a device must be float64: use .double()")
    return _Column(address, shape[0], shape[1], strides, _LEGACY, capsule)


def _column(array: Any) -> _Column:
    """Reads an array by __cuda_array_interface__ if the array states a stream
    there, or has no DLPack.  Otherwise reads it by DLPack."""
    interface = _interface(array)
    if interface is not None and (interface.get("stream") or not hasattr(array, "__dlpack__")):
        return _of_interface(array, interface)
    return _of_dlpack(array)


class DeviceArray:
    """A column on a CUDA device, for cupy.asarray(), torch.from_dlpack() and others.
    Its memory is freed with the last reference to it."""

    __slots__ = ("_owner", "_address", "_n", "_stream", "_device", "_typestr")

    def __init__(
        self, owner: Any, address: int, n: int, stream: int, device: int, typestr: str
    ) -> None:
        self._owner = owner
        self._address = address
        self._n = n
        self._stream = stream
        self._device = device
        self._typestr = typestr

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"<ogrjoin.DeviceArray: {self._n} {self._typestr}, GPU {self._device}>"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self._n,),
            "typestr": self._typestr,
            "data": (self._address, False),
            "strides": None,
            "version": 3,
            "stream": self._stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CUDA[0], self._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(
                "the array can only be shared on its device, without a copy: leave dl_device "
                "and copy out"
            )
        if stream != -1:
            _core.wait_device(self._owner, stream or _LEGACY)
        code = 2 if self._typestr[1] == "f" else 0
        bits = 8 * int(self._typestr[2])
        return _core.to_dlpack(
            self._owner, self._address, self._n, code, bits, self._device
        )


class DevicePairs(Pairs):
    """Pairs of points, in device memory. Work that is queued on the stream of the
    points after the join reads complete pairs.

    right     int32.  If offsets is None, right[i] is the right row of point i, or -1
              without a pair.  Otherwise the rows of point i are
              right[offsets[i]:offsets[i + 1]]
    distance  float64, NaN without a pair; None if op measures no distance
    left      None
    """

    __slots__ = ()

    def __init__(self, right: Any, distance: Any, offsets: Any, n_left: int) -> None:
        super().__init__(offsets, right, distance, n_left, {})

    @property
    def left(self) -> Any:
        return None

    @property
    def right(self) -> Any:
        return self.right32

    @property
    def backend(self) -> str:
        return "cuda"


def join(index: Any, side: Any) -> DevicePairs:
    """Joins points for which is_device() is true with an index of _core."""
    columns = [_column(c) for c in (side if isinstance(side, tuple) else (side,))]
    x, y = columns[0], columns[-1]
    if len(columns) == 1:
        if x.width != 2:
            raise InvalidError("an array of points on a device must have two columns, x and y")
        y = x._replace(address=x.address + _ITEM * x.strides[1])
    elif (x.n, x.width, x.strides[0]) != (y.n, y.width, y.strides[0]) or x.width != 1:
        raise InvalidError("x and y must be two columns of equal length and strides")
    if x.stream != y.stream:
        raise UnsupportedError("x and y are of two CUDA streams: make both on one stream")
    stride = x.strides[0] if x.n > 1 else 1
    owner, device, n_pairs, offset, right, distance = _core.join_device(
        index, [c.owner for c in columns], x.n, x.address, y.address, stride, x.stream
    )

    def array(address: int, n: int, typestr: str) -> DeviceArray:
        return DeviceArray(owner, address, n, x.stream, device, typestr)

    return DevicePairs(
        array(right, n_pairs, "<i4"),
        array(distance, n_pairs, "<f8") if distance else None,
        array(offset, x.n + 1, "<i8") if offset else None,
        x.n,
    )
