"""Coordinate reference systems as texts for the C library, which decides whether two
are equal.  pyproj, if it is installed, converts other forms to PROJJSON, compares CRS
whose texts do not decide, and transforms coordinates."""

from __future__ import annotations

import json
from typing import Any

from . import _core
from ._errors import InvalidError

_KNOWN = ("EPSG:4326", "OGC:CRS84")  # codes that the C library reads without pyproj


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
    schema = getattr(side, "schema", None)
    if schema is None or not hasattr(schema, "get_field_index"):
        return None  # not a pyarrow table
    return next((crs for field in schema if (crs := read_from_field(field))), None)


def read_from_layer(layer: Any, which: str) -> str | None:
    """Returns the CRS of the SRID of a layer's extended WKB, or None.  Rows with two
    SRIDs are an error.  which: "left" or "right", for the error."""
    try:
        return of_srid(_core.srid(layer))
    except InvalidError as why:
        raise InvalidError(f"{which} side: {why}") from None


def of_srid(srid: int) -> str | None:
    return f"EPSG:{srid}" if srid else None


def _proj(crs: str) -> Any:
    """Returns the pyproj object of a CRS, or None if pyproj is missing or
    cannot read the CRS."""
    try:
        import pyproj
    except ImportError:
        return None
    try:
        return pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        return None


def expand(crs: str | None) -> str | None:
    """Returns the PROJJSON of a code, a name, WKT or a PROJ string. Returns crs unchanged
    if the C library reads it without pyproj, or if pyproj cannot read it."""
    if crs is None or crs.upper() in _KNOWN or crs.lstrip()[:1] == "{":
        return crs
    known = _proj(crs)
    return crs if known is None else str(known.to_json())


def compare(one: str, other: str) -> int:
    """Returns 1 if two texts mean one CRS, 0 if not, -1 if pyproj cannot
    tell.  The C library calls this function if the texts alone do not
    decide."""
    a, b = _proj(one), _proj(other)
    return -1 if a is None or b is None else int(a.equals(b, ignore_axis_order=True))


def projjson(crs: str | None) -> Any:
    """Returns the PROJJSON object of a CRS for GeoParquet, or None if crs is
    None."""
    if crs is None or crs[:1] == "{":
        return crs and json.loads(crs)
    known = _proj(crs)
    if known is None:
        raise InvalidError(
            f'GeoParquet needs the CRS "{crs}" as PROJJSON: install pyproj to convert it, '
            "or give PROJJSON"
        )
    return known.to_json_dict()


def transformer(source: str | None, target: str | None) -> Any:
    """Returns the pyproj transformer from CRS source to CRS target, for coordinates in
    the order x, y."""
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
    import pyproj

    return pyproj.Transformer.from_crs(*known, always_xy=True)
