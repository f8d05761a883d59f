"""Coordinate reference systems as texts for the C library, which decides whether two
are equal.  pyproj, if it is installed, converts other forms to PROJJSON, compares CRS
whose texts do not decide, and transforms coordinates."""

from __future__ import annotations

import json
import re
from typing import Any, Callable

from . import _core
from ._errors import InvalidError

_KNOWN = ("EPSG:4326", "OGC:CRS84")  # codes that the C library reads without pyproj


# Coordinate metadata of WKT: a CRS, and the epoch of the coordinates.
_METADATA = re.compile(
    r"\s*COORDINATEMETADATA\s*[\[(](.*?)(?:,\s*EPOCH\s*[\[(]([^\])]*)[\])]\s*)?[\])]\s*", re.I | re.S
)


def with_epoch(crs: Any, epoch: float) -> dict[str, Any]:
    """Returns coordinate metadata of a CRS, which is a PROJJSON object."""
    return {"type": "CoordinateMetadata", "crs": crs, "coordinateEpoch": epoch}


def split_epoch(crs: str) -> tuple[str, float | None]:
    """Returns (the CRS, the epoch) of coordinate metadata, which pyproj and GeoParquet do
    not take as a CRS.  Returns (crs, None) for any other text."""
    try:
        if '"CoordinateMetadata"' in crs:
            known = json.loads(crs)
            if known.get("type") == "CoordinateMetadata":
                epoch = known.get("coordinateEpoch")
                return str(as_text(known["crs"])), None if epoch is None else float(epoch)
        elif (found := _METADATA.fullmatch(crs)) is not None:
            return found[1], None if found[2] is None else float(found[2])
    except (ValueError, TypeError, KeyError, AttributeError):
        pass  # the library reports what is wrong
    return crs, None


def as_text(crs: Any) -> str | None:
    """Returns the text of a CRS, which is a pyproj object, PROJJSON, the number of an
    EPSG code, or a text."""
    if crs is None or isinstance(crs, str):
        return crs or None
    if isinstance(crs, int):
        return f"EPSG:{crs}"
    if hasattr(crs, "to_json"):
        return str(crs.to_json())
    return json.dumps(crs, separators=(",", ":"))  # as pyproj writes it


def read_from_extension(metadata: bytes | str | None) -> str | None:
    """Returns the CRS in ARROW:extension:metadata, or None."""
    try:
        return as_text(json.loads(metadata or "{}").get("crs"))
    except (ValueError, AttributeError):
        return None


def read_from_field(field: Any) -> str | None:
    """Returns the CRS of a pyarrow field, or None."""
    if hasattr(field.type, "__arrow_ext_serialize__"):
        return read_from_extension(field.type.__arrow_ext_serialize__())
    return read_from_extension((field.metadata or {}).get(b"ARROW:extension:metadata"))


def read_from_side(side: Any) -> str | None:
    """Returns the CRS of a layer: its attribute crs, otherwise the CRS of the first
    column that has one, otherwise None."""
    if getattr(side, "crs", None) is not None:
        return as_text(side.crs)
    package = type(side).__module__.split(".")[0]
    if package == "pyarrow" and hasattr(getattr(side, "type", None), "__arrow_ext_serialize__"):
        return read_from_field(side)  # an array
    if package == "polars" and hasattr(side, "__arrow_c_stream__"):
        return read_from_stream(side.head(0).__arrow_c_stream__())
    schema = getattr(side, "schema", None)
    if schema is None or not hasattr(schema, "get_field_index"):
        return None  # not a pyarrow table
    return next((crs for field in schema if (crs := read_from_field(field))), None)


def read_from_stream(stream: Any) -> str | None:
    """Returns the CRS of the first column that has one of an Arrow stream, which is a
    capsule, or None.  The rows remain in the stream."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    schema = _core.stream_schema(stream)
    if schema is None:
        return None
    field = pa.Field._import_from_c_capsule(schema)
    fields = list(field.type) if pa.types.is_struct(field.type) else [field]
    return next((crs for field in fields if (crs := read_from_field(field))), None)


def read_srid(layer: Any, which: str) -> int | None:
    """Returns the SRID of a layer's extended WKB, 0 if it has none, or None if it has no
    geometry.  Rows with two SRIDs are an error.  which: "left" or "right", for the error."""
    try:
        return _core.srid(layer)
    except InvalidError as why:
        raise InvalidError(f"{which} side: {why}") from None


def read_from_layer(layer: Any, which: str) -> str | None:
    """Returns the CRS of the SRID of a layer, or None; see read_srid()."""
    return of_srid(read_srid(layer, which))


def are_equal(one: str | None, other: str | None) -> bool:
    """Returns True if two texts, or two missing ones, mean one CRS."""
    if one is None or other is None or one == other:
        return one == other
    return compare(one, other) == 1


def of_srid(srid: int | None) -> str | None:
    return f"EPSG:{srid}" if srid else None


def _proj(crs: str) -> Any:
    """Returns the pyproj object of a CRS, without an epoch, or None if pyproj is
    missing or cannot read the CRS."""
    try:
        import pyproj
    except ImportError:
        return None
    try:
        return pyproj.CRS.from_user_input(split_epoch(crs)[0])
    except pyproj.exceptions.CRSError:
        return None


def expand(crs: str | None) -> str | None:
    """Returns the PROJJSON of a code, a name, WKT or a PROJ string. Returns crs unchanged
    if the C library reads it without pyproj, if it has an epoch, or if pyproj cannot
    read it."""
    if crs is None or crs.upper() in _KNOWN or crs.lstrip()[:1] == "{":
        return crs
    if split_epoch(crs)[1] is not None:
        return crs
    known = _proj(crs)
    return crs if known is None else str(known.to_json())


def compare(one: str, other: str) -> int:
    """Returns 1 if two texts mean one CRS, 0 if not, -1 if pyproj cannot
    tell.  The C library calls this function if the texts alone do not
    decide."""
    epochs = split_epoch(one)[1], split_epoch(other)[1]
    if None not in epochs and epochs[0] != epochs[1]:
        return 0
    a, b = _proj(one), _proj(other)
    return -1 if a is None or b is None else int(a.equals(b, ignore_axis_order=True))


def projjson(crs: str | None) -> Any:
    """Returns the PROJJSON object of a CRS for GeoParquet, without an epoch, or None if
    crs is None."""
    if crs is None:
        return None
    crs = split_epoch(crs)[0]
    if crs[:1] == "{":
        return json.loads(crs)
    known = _proj(crs)
    if known is None:
        raise InvalidError(
            f'GeoParquet needs the CRS "{crs}" as PROJJSON: install pyproj to convert it, '
            "or give PROJJSON"
        )
    return known.to_json_dict()


def transformer(source: str | None, target: str | None) -> Callable[..., Any]:
    """Returns a function that transforms arrays of x and of y from CRS source to CRS
    target by pyproj."""
    for crs, argument in ((source, "right_crs"), (target, "left_crs")):
        if crs is None:
            side = argument.split("_")[0]
            raise InvalidError(
                f'crs="reproject": the {side} side has no CRS; write {argument}='
            )
    known = _proj(str(source)), _proj(str(target))
    if None in known:
        raise InvalidError(
            f'crs="reproject": pyproj is not installed, or cannot read {source} or '
            f"{target}: install it, or give the CRS as PROJJSON or WKT"
        )
    import numpy as np
    import pyproj

    move: Callable[..., Any] = pyproj.Transformer.from_crs(*known, always_xy=True).transform
    epochs = {e for crs in (source, target) if (e := split_epoch(str(crs))[1]) is not None}
    if not epochs:
        return move
    if len(epochs) == 2:
        raise InvalidError(
            'crs="reproject": coordinates of one epoch are not transformed to another '
            'epoch: transform one side, or write crs="ignore" to take them as they are'
        )
    epoch = epochs.pop()
    return lambda x, y: move(x, y, tt=np.full(len(x), epoch))[:2]
