"""Joins of two layers by place: GeoDataFrames, Arrow tables, arrays.

    import ogrjoin
    joined = ogrjoin.sjoin(points, lots)
    pairs = ogrjoin.pairs((x, y), lots, "nearest", max_distance=100)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import backends, settings, version as __version__
from ._errors import (
    Error,
    InputError,
    InvalidError,
    NoMemoryError,
    Status,
    UnsupportedError,
)
from ._pairs import Index, Pairs, Validation, pairs, validate

if TYPE_CHECKING:
    from . import geopandas
    from ._device import DeviceArray, DevicePairs
    from ._join import events, join
    from ._joined import Joined
    from ._live import Live, LivePairs
    from ._scan import Scan, scan
    from ._sums import Sums
    from .geopandas import sjoin, sjoin_nearest

__all__ = [
    "DeviceArray",
    "DevicePairs",
    "Error",
    "Index",
    "InputError",
    "InvalidError",
    "Joined",
    "Live",
    "LivePairs",
    "NoMemoryError",
    "Pairs",
    "Scan",
    "Status",
    "Sums",
    "UnsupportedError",
    "Validation",
    "__version__",
    "backends",
    "events",
    "geopandas",
    "join",
    "pairs",
    "scan",
    "settings",
    "sjoin",
    "sjoin_nearest",
    "validate",
]

_LATER = {
    "DeviceArray": "_device",
    "DevicePairs": "_device",
    "Joined": "_joined",
    "Live": "_live",
    "LivePairs": "_live",
    "Scan": "_scan",
    "Sums": "_sums",
    "events": "_join",
    "geopandas": "",
    "join": "_join",
    "scan": "_scan",
    "sjoin": "geopandas",
    "sjoin_nearest": "geopandas",
}


def __getattr__(name: str) -> Any:
    # Functions that need GeoPandas or pyarrow are imported on first use.
    if name not in _LATER:
        raise AttributeError(f"module 'ogrjoin' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"ogrjoin.{_LATER[name] or name}")
    return getattr(module, name) if _LATER[name] else module


def __dir__() -> list[str]:
    return __all__
