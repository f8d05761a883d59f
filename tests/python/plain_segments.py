"""The plain reference for tests of headings and of places along lines: rings and
segments of a shape, and the distance of a point from a segment."""

import math


def rings_of(shape):
    """Returns lines, rings and points in order, each as a list of vertices."""
    if shape is None or shape.is_empty:
        return []
    if shape.geom_type == "Polygon":
        return [list(shape.exterior.coords), *(list(r.coords) for r in shape.interiors)]
    if hasattr(shape, "geoms"):
        return [ring for part in shape.geoms for ring in rings_of(part)]
    return [list(shape.coords)]


def lines_of(shape):
    """Returns the lines and rings of rings_of(), without the points."""
    return [ring for ring in rings_of(shape) if len(ring) > 1]


def length_of(p, q):
    dx, dy = p[0] - q[0], p[1] - q[1]
    return math.sqrt(dx * dx + dy * dy)


def distance_and_place(p, a, b):
    """Returns the distance of p from the segment, and the place of the nearest point on
    it: 0 at a, 1 at b. The order of operations is that of the kernel, so that ties are
    equal."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    len2 = dx * dx + dy * dy
    if len2 == 0:
        return length_of(p, a), 0.0
    r = ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / len2
    if r <= 0 or r >= 1:
        return length_of(p, a if r <= 0 else b), min(max(r, 0.0), 1.0)
    s = ((a[1] - p[1]) * dx - (a[0] - p[0]) * dy) / len2
    return abs(s) * math.sqrt(len2), r


def course_of(a, b):
    """Returns the bearing from a to b in degrees clockwise from north, -180 to 180."""
    return math.degrees(math.atan2(b[0] - a[0], b[1] - a[1]))
