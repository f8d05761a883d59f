"""Coordinate reference systems as texts for the C library, and what pyproj, where
it is installed, knows beyond a text."""

from __future__ import annotations

import json
import re
from typing import Any

from ._errors import InvalidError

_CODE = re.compile(r"\w+:\w+")
_KNOWN = ("EPSG:4326", "OGC:CRS84")  # by the C library


def text(crs: Any) -> str | None:
    """Of a CRS of pyproj, PROJJSON, a code as a number, or a text."""
    if crs is None or isinstance(crs, str):
        return crs or None
    if isinstance(crs, int):
        return f"EPSG:{crs}"
    if hasattr(crs, "to_json"):
        return str(crs.to_json())
    return json.dumps(crs, separators=(",", ":"))  # as pyproj writes it


def of_extension(metadata: bytes | str | None) -> str | None:
    """Of ARROW:extension:metadata."""
    try:
        return text(json.loads(metadata or "{}").get("crs"))
    except (ValueError, AttributeError):
        return None


def of_field(field: Any) -> str | None:
    """Of a field of pyarrow's."""
    if hasattr(field.type, "__arrow_ext_serialize__"):
        return of_extension(field.type.__arrow_ext_serialize__())
    return of_extension((field.metadata or {}).get(b"ARROW:extension:metadata"))


def of_side(side: Any) -> str | None:
    """Of a layer: what it says itself, or that of its first column which does."""
    if getattr(side, "crs", None) is not None:
        return text(side.crs)
    schema = getattr(side, "schema", None)
    if schema is None or not hasattr(schema, "get_field_index"):
        return None  # not pyarrow's
    return next((crs for field in schema if (crs := of_field(field))), None)


def _proj(crs: str) -> Any:
    """pyproj's, or None without it or where it does not know this one."""
    try:
        import pyproj
    except ImportError:
        return None
    try:
        return pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        return None


def _expand(crs: str | None) -> str | None:
    """A code in words; what is none, or what pyproj does not know, as it is."""
    if crs is None or crs.upper() in _KNOWN or not _CODE.fullmatch(crs):
        return crs
    known = _proj(crs)
    return crs if known is None else str(known.to_json())


def agree(left: str | None, right: str | None) -> tuple[str | None, str | None]:
    """Both as the C library reads them without pyproj: codes in words, and one CRS
    in two spellings in one."""
    if left is not None and right is not None and left != right:
        one, other = _proj(left), _proj(right)
        if one is not None and one.equals(other, ignore_axis_order=True):
            right = left
    return _expand(left), _expand(right)


def projjson(crs: str | None) -> Any:
    """The object that GeoParquet writes; None: no CRS."""
    if crs is None or crs[:1] == "{":
        return crs and json.loads(crs)
    known = _proj(crs)
    if known is None:
        raise InvalidError(
            f'GeoParquet needs PROJJSON, which pyproj would make of "{crs}": install it'
        )
    return known.to_json_dict()


def transformer(source: str | None, target: str | None) -> Any:
    """Of coordinates in source to those in target: x, y -> x, y."""
    for crs, argument in ((source, "right_crs"), (target, "left_crs")):
        if crs is None:
            side = argument.split("_")[0]
            raise InvalidError(
                f'crs="reproject": the {side} side has no CRS; write {argument}='
            )
    known = _proj(str(source)), _proj(str(target))
    if None in known:
        raise InvalidError(
            f'crs="reproject" needs pyproj, and CRS that it knows: {source}, {target}'
        )
    import pyproj

    return pyproj.Transformer.from_crs(*known, always_xy=True)
