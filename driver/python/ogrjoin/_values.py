"""Values beside geometries, one for each row: columns of `on` as Arrow, and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core, _sides
from ._errors import InvalidError

# Arrow formats of datetimes of numpy by unit. Finer units become nanoseconds,
# all others seconds.
_TIMES = {"D": "tdD", "s": "tss:", "ms": "tsm:", "us": "tsu:", "ns": "tsn:"}


def is_missing(value: Any) -> bool:
    """Returns True for None, NaN, NaT and the NA of pandas."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, (float, np.floating, np.datetime64)) and bool(value != value)


def objects_of(values: Any) -> Any:
    """Returns a column of values as an array of objects; masked and missing values of
    extension types become None."""
    if isinstance(values, (list, tuple)):
        return np.fromiter(values, object, len(values))
    values = _sides.without_mask(_sides.without_extension(values))
    return np.asarray(values, dtype=object)


def _column_of_numpy(values: Any, missing: Any) -> Any:
    """Makes a column of an array of numbers, texts or datetimes.  Returns None for an
    array of another type."""
    kind, n = values.dtype.kind, len(values)
    bits = np.packbits(~missing, bitorder="little") if missing.any() else None
    if kind in "bi":
        return _core.column(n, "l", bits, None, values.astype(np.int64))
    if kind == "u":
        return _core.column(n, "L", bits, None, values.astype(np.uint64))
    if kind == "f" and values.dtype.itemsize <= 8:
        return _core.column(n, "g", bits, None, values.astype(np.float64))
    if kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        if unit not in _TIMES:
            unit = "ns" if unit in ("ps", "fs", "as") else "s"
        times = values.astype(f"datetime64[{unit}]").astype(np.int64)
        if unit == "D" and np.abs(times[~missing]).max(initial=0) < 2**31:
            return _core.column(n, "tdD", bits, None, times.astype(np.int32))
        if unit == "D":
            times, unit = times * 86400, "s"
        return _core.column(n, _TIMES[unit], bits, None, times)
    if kind == "U":
        return _core.column(n, "U", bits, *text_buffers(values))
    return None


def _array_of_numbers(numbers: list[Any], kinds: set[type]) -> Any:
    """Returns numbers of these types as an array of equal values, or None if no type of
    numpy holds them all.  numpy itself makes floats of a small and a large integer."""
    if not all(issubclass(kind, (int, np.integer, np.bool_)) for kind in kinds):
        made = np.asarray(numbers)
        return made if made.dtype.kind == "f" and made.tolist() == numbers else None
    least, most = min(numbers, default=0), max(numbers, default=0)
    if -(2**63) <= least and most < 2**63:
        return np.array(numbers, dtype=np.int64)
    return np.array(numbers, dtype=np.uint64) if 0 <= least and most < 2**64 else None


def _column_of_objects(values: Any) -> Any:
    """Makes a column of objects that are all numbers, or all texts, without a change of
    value.  Returns None for other objects."""
    missing = np.zeros(len(values), dtype=bool)
    present = values.tolist()
    kinds = set(map(type, present))
    if not kinds <= {str, int, bool}:
        missing = np.array([is_missing(v) for v in present], dtype=bool)
        present = values[~missing].tolist()
        kinds = set(map(type, present))
    if all(issubclass(kind, str) for kind in kinds):
        bits = np.packbits(~missing, bitorder="little") if missing.any() else None
        return _core.column(len(values), "U", bits, *text_buffers(values))
    numbers = (int, float, np.number, np.bool_)  # timedelta64 is a subclass of np.number
    if not all(issubclass(k, numbers) and not issubclass(k, np.timedelta64) for k in kinds):
        return None
    made = _array_of_numbers(present, kinds)
    if made is None:
        return None
    full = np.zeros(len(values), dtype=made.dtype)
    full[~missing] = made
    return _column_of_numpy(full, missing)


def _arrow_array(values: Any) -> Any:
    """Converts a column as it is converted in a table."""
    import pyarrow as pa

    try:
        if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "to_numpy"):
            array = pa.chunked_array(values)
        elif type(values).__module__.split(".")[0] == "polars":
            array = values.to_arrow()
        else:
            array = pa.array(values, from_pandas=True)
    except OverflowError:  # integers beyond 64 bits
        array = pa.array(values, pa.decimal128(38, 0), from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
    return array


def column_of(values: Any) -> tuple[object, object]:
    """Returns a column of `on` as Arrow, (schema, array), of the types that columns of
    tables have, so that values compare as in join().  pyarrow is needed for objects other
    than numbers and texts."""
    if hasattr(values, "__arrow_c_array__"):
        schema, array = values.__arrow_c_array__()
        return schema, array
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:
        values = _sides.without_extension(values)
    is_numpy = isinstance(getattr(values, "dtype", None), np.dtype)
    column = None
    if is_numpy and values.dtype.kind != "O":
        plain = np.asarray(values)
        missing = plain != plain
        if isinstance(values, np.ma.MaskedArray):
            plain = np.asarray(values.data)
            missing = np.ma.getmaskarray(values) | (plain != plain)
        _check_is_column(plain)
        column = _column_of_numpy(plain, missing)
    elif is_numpy or isinstance(values, (list, tuple)):
        objects = objects_of(values)
        _check_is_column(objects)
        column = _column_of_objects(objects)
    if column is not None:
        return column  # type: ignore[no-any-return]
    try:
        schema, array = _arrow_array(_sides.without_mask(values)).__arrow_c_array__()
    except ImportError:
        column = _column_of_objects(objects_of(values))
        if column is not None:
            return column  # type: ignore[no-any-return]
        raise InvalidError(
            "on: values other than numbers, texts and datetimes need pyarrow: install it"
        ) from None
    except (ValueError, TypeError) as why:
        raise InvalidError(f"on: the values are no column of Arrow: {why}") from None
    return schema, array


def _check_is_column(values: Any) -> None:
    if values.ndim != 1:
        raise InvalidError(f"on needs a column, not an array of {values.ndim} dimensions")


def text_buffers(texts: Any) -> tuple[Any, Any]:
    """Returns (offsets, UTF-8 bytes) of a column of texts; missing values become empty
    texts."""
    if type(texts).__module__.split(".")[0] == "polars":
        texts = texts.to_list()
    if type(texts).__module__.split(".")[0] == "pyarrow":
        texts = texts.cast("large_string").fill_null("")
        if hasattr(texts, "combine_chunks"):
            texts = texts.combine_chunks()
        if len(texts) == 0:
            return _sides.offsets([]), b""
        _, offsets, data = texts.buffers()
        offset = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
        return offset, data if data is not None else b""
    objects = objects_of(texts).tolist()
    if set(map(type, objects)) == {str}:
        pieces = [t.encode() for t in objects]
    else:
        pieces = [b"" if is_missing(t) else str(t).encode() for t in objects]
    return _sides.offsets([len(p) for p in pieces]), b"".join(pieces)
