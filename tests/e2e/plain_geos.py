"""Calls GEOS directly, pair by pair, on features as joins read them. OGR's bindings
lack some of it (covers, relate)."""

import ctypes
import ctypes.util
import math

from osgeo import ogr

from e2e import Skip, is_joinable

CANNOT_SAY = "cannot say"

_said = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_hush = _said(lambda text, user: None)


def _load():
    name = ctypes.util.find_library("geos_c") or "libgeos_c.so.1"
    try:
        lib = ctypes.CDLL(name)
    except OSError:
        raise Skip("no libgeos_c that Python can load") from None
    lib.GEOS_init_r.restype = ctypes.c_void_p
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("GEOSGeomFromWKB_buf_r", pointer, [ctypes.c_char_p, ctypes.c_size_t]),
        ("GEOSGeom_destroy_r", None, [pointer]),
        ("GEOSisValid_r", ctypes.c_byte, [pointer]),
        ("GEOSDistance_r", ctypes.c_int, [pointer, pointer, ctypes.POINTER(ctypes.c_double)]),
        ("GEOSRelatePattern_r", ctypes.c_byte, [pointer, pointer, ctypes.c_char_p]),
        ("GEOSContext_setErrorMessageHandler_r", pointer, [_said, pointer]),
        ("GEOSContext_setNoticeMessageHandler_r", pointer, [_said, pointer]),
        *(
            (f"GEOS{word}_r", ctypes.c_byte, [pointer, pointer])
            for word in PREDICATES.values()
        ),
    ):
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = [pointer, *arguments]
    return lib


PREDICATES = {
    "intersects": "Intersects",
    "within": "Within",
    "contains": "Contains",
    "covers": "Covers",
    "coveredby": "CoveredBy",
    "touches": "Touches",
    "crosses": "Crosses",
    "overlaps": "Overlaps",
    "equals": "Equals",
    "disjoint": "Disjoint",
}

_lib = _load()
_handle = _lib.GEOS_init_r()
_lib.GEOSContext_setErrorMessageHandler_r(_handle, _hush, None)
_lib.GEOSContext_setNoticeMessageHandler_r(_handle, _hush, None)


def parts_of(shape):
    """Returns the points, line strings and polygons of an OGR geometry. Empty ones are
    dropped."""
    if shape.IsEmpty():
        return []
    kind = ogr.GT_Flatten(shape.GetGeometryType())
    if kind in (ogr.wkbPoint, ogr.wkbLineString, ogr.wkbPolygon):
        return [shape.Clone()]
    found = []
    for i in range(shape.GetGeometryCount()):
        found += parts_of(shape.GetGeometryRef(i))
    return found


MULTI = {
    ogr.wkbPoint: ogr.wkbMultiPoint,
    ogr.wkbLineString: ogr.wkbMultiLineString,
    ogr.wkbPolygon: ogr.wkbMultiPolygon,
}


def as_joined(shape):
    """Returns the feature as joins read it: without curves, in two dimensions, without
    empty members. Returns None if it can have no pairs."""
    if not is_joinable(shape):
        return None
    shape = shape.GetLinearGeometry()
    shape.FlattenTo2D()
    parts = parts_of(shape)
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    kinds = {p.GetGeometryType() for p in parts}
    all_of = MULTI[kinds.pop()] if len(kinds) == 1 else ogr.wkbGeometryCollection
    whole = ogr.Geometry(all_of)
    for part in parts:
        whole.AddGeometry(part)
    return whole


class Shape:
    """A feature of one side as GEOS geometries: the whole, and its parts."""

    def __init__(self, shape):
        shape = as_joined(shape) if shape is not None else None
        self.ogr = shape
        self.geos, self.parts, self.is_valid = None, [], False
        if shape is None:
            return
        self.geos = self._make(shape)
        self.parts = [self._make(p) for p in parts_of(shape)]
        self.is_valid = _lib.GEOSisValid_r(_handle, self.geos) == 1

    @staticmethod
    def _make(shape):
        wkb = bytes(shape.ExportToWkb())
        return _lib.GEOSGeomFromWKB_buf_r(_handle, wkb, len(wkb))

    def __bool__(self):
        return self.geos is not None


def holds(op, a, b, mask=None):
    """Returns whether op holds between a and b by GEOS: True, False, or CANNOT_SAY if
    GEOS raises an exception. Returns False if a or b has no geometry or an empty one."""
    if not a or not b:
        return False
    if op == "relate":
        said = _lib.GEOSRelatePattern_r(_handle, a.geos, b.geos, mask.encode())
    elif op == "contains_properly":
        said = _lib.GEOSRelatePattern_r(_handle, a.geos, b.geos, b"T**FF*FF*")
    elif op in ("bbox", "window"):
        x = a.ogr.GetEnvelope()
        y = b.ogr.GetEnvelope()
        return x[0] <= y[1] and y[0] <= x[1] and x[2] <= y[3] and y[2] <= x[3]
    else:
        said = getattr(_lib, f"GEOS{PREDICATES[op]}_r")(_handle, a.geos, b.geos)
    return CANNOT_SAY if said == 2 else said == 1


def distance(a, b):
    """Returns the minimum distance over the parts of both features. It is infinite if
    one has no geometry or an empty one."""
    least = math.inf
    for p in a.parts:
        for q in b.parts:
            d = ctypes.c_double()
            if _lib.GEOSDistance_r(_handle, p, q, ctypes.byref(d)) == 1:
                least = min(least, d.value)
    return least
