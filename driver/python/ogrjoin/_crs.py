"""Coordinate reference systems as PROJJSON, as far as a join asks for them."""

from __future__ import annotations

import json
from typing import Any

from ._errors import InvalidError

BY_DISTANCE = ("nearest", "dwithin")  # joins that measure one

# Metres; "ft" is the international foot, as in the command.
_UNITS = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "us-ft": 1200 / 3937, "mi": 1609.344}


def of_extension(metadata: bytes | str | None) -> Any:
    """Of ARROW:extension:metadata; None: it tells of none."""
    try:
        crs = json.loads(metadata or "{}").get("crs")
        return json.loads(crs) if isinstance(crs, str) and crs[:1] == "{" else crs
    except (ValueError, AttributeError):
        return None


def of_side(side: Any) -> Any:
    """PROJJSON of a layer's CRS, or what else names it, or None."""
    crs = getattr(side, "crs", None)
    if crs is not None:
        return crs.to_json_dict() if hasattr(crs, "to_json_dict") else crs
    schema = getattr(side, "schema", None)
    if schema is None or not hasattr(schema, "get_field_index"):
        return None  # not pyarrow's
    for field in schema:
        if b"geoarrow." in (field.metadata or {}).get(b"ARROW:extension:name", b""):
            return of_extension(field.metadata.get(b"ARROW:extension:metadata"))
    return None


def _identity(crs: Any) -> Any:
    """ "EPSG:2263", or all of it where it has no such name."""
    if isinstance(crs, dict) and "id" in crs:
        return "{authority}:{code}".format(**crs["id"])
    return crs.upper() if isinstance(crs, str) else crs


def _is_degrees(crs: Any) -> bool:
    if isinstance(crs, str):
        return crs in ("EPSG:4326", "OGC:CRS84")
    while isinstance(crs, dict) and "source_crs" in crs:
        crs = crs["source_crs"]
    return isinstance(crs, dict) and crs.get("type") in (
        "GeographicCRS",
        "GeodeticCRS",
    )


def check(left: Any, right: Any, mode: str, settings: dict[str, Any]) -> None:
    """Raises where the two, or degrees, make no sense; turns a max_distance with
    a unit into a number."""
    if mode not in ("check", "ignore"):
        raise InvalidError('crs is "check" or "ignore", and in join() "reproject"')
    crs = left if left is not None else right
    on_sphere = settings.get("metric") == "sphere"
    if mode == "check":
        if left is not None and right is not None and _identity(left) != _identity(right):
            raise InvalidError(
                "the sides have two CRS: bring one to the other's "
                '(GeoDataFrame.to_crs), or write crs="ignore"'
            )
        by_distance = settings["op"].lower() in BY_DISTANCE
        asks_degrees = str(settings.get("max_distance")).endswith("deg")
        if by_distance and not (on_sphere or asks_degrees) and _is_degrees(crs):
            raise InvalidError(
                'distances in degrees: write metric="sphere" for metres, a '
                'max_distance as "0.1deg", or crs="ignore" to join in degrees'
            )
    distance = settings.get("max_distance")
    if isinstance(distance, str) and distance.endswith("deg"):
        if on_sphere or not _is_degrees(crs):
            raise InvalidError(f'"{distance}" is no distance: the CRS has no degrees')
        settings["max_distance"] = _number(distance, distance[: -len("deg")])
    elif isinstance(distance, str):
        settings["max_distance"] = _in_units(distance, None if on_sphere else crs)


def _number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise InvalidError(
            f'"{text}" is no distance: 100, "100ft", "1.5km" (m, km, ft, us-ft, mi, deg)'
        ) from None


def _in_units(text: str, crs: Any) -> float:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz-")
    unit = text[len(number) :].strip()
    if unit not in _UNITS:
        number += unit  # which makes it none
        unit = ""
    value = _number(text, number)
    return value * _UNITS[unit] / _metres(crs) if unit else value


def _metres(crs: Any) -> float:
    """A unit of crs in metres; None: it is metres already."""
    if crs is None:
        return 1.0
    while isinstance(crs, dict) and "source_crs" in crs:
        crs = crs["source_crs"]
    try:
        unit = crs["coordinate_system"]["axis"][0]["unit"]
        return 1.0 if unit == "metre" else float(unit["conversion_factor"])
    except (KeyError, TypeError):
        raise InvalidError("the CRS does not tell its unit: give a number") from None
