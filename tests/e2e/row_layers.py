"""Layers for tests of the rows that are written, and a plain search for their pairs, in
which GEOS tests every pair."""

from e2e import *

FIELDS = (("name", ogr.OFTString), ("v", ogr.OFTInteger), ("big", ogr.OFTInteger64))


def star(r, x, y, size):
    """Returns a ring around x, y that turns in and out."""
    n = r.randint(5, 12)
    corners = []
    for k in range(n):
        a, b = 2 * math.pi * k / n, size * r.uniform(0.4, 1)
        corners.append(f"{x + b * math.cos(a)!r} {y + b * math.sin(a)!r}")
    return "(" + ", ".join([*corners, corners[0]]) + ")"


def zones_file(path="zones.gpkg", n=30, seed=7, **how):
    """Makes overlapping polygons, some with a hole or a second part. Some values are
    equal, and some are missing. Returns path."""
    r = random.Random(seed)
    rows = []
    for i in range(n):
        x, y = 980000 + r.uniform(0, 400), 200000 + r.uniform(0, 400)
        parts = [f"({star(r, x, y, r.uniform(20, 90))})"]
        if i % 3 == 1:
            parts[0] = f"({star(r, x, y, 80)}, {star(r, x, y, 25)})"
        if i % 3 == 2:
            parts.append(f"({star(r, x + 300, y, 60)})")
        # above 2^53, where doubles could not distinguish the values
        values = {"name": f"z{i}", "v": 1 + i % 5 if i % 4 else None, "big": 2**60 + i % 7}
        rows.append((f"MULTIPOLYGON ({', '.join(parts)})", values))
    rows.append((None, {"name": "empty", "v": 99, "big": 0}))
    return make(path, rows, FIELDS, kind=ogr.wkbMultiPolygon, **how)


def far_zones_file(path="zones.gpkg", **how):
    """Makes the zones of zones_file(), and three more that no feature intersects.
    Returns path."""
    zones_file("near.gpkg")
    rows = [(r[1] and ogr.CreateGeometryFromWkb(r[1]), r[2]) for r in Layer("near.gpkg").rows]
    for i in range(3):
        wkt = f"MULTIPOLYGON (((0 {i}, 1 {i}, 1 {i + 0.5}, 0 {i})))"
        rows.append((wkt, {"name": f"far{i}", "v": -1, "big": 1}))
    return make(path, rows, FIELDS, kind=ogr.wkbMultiPolygon, **how)


def inputs_and_zones():
    inputs_file()
    far_zones_file()
    return ("points.gpkg", "zones.gpkg")


def inputs_file(path="points.gpkg", n=60, **how):
    rows = [(p, {"id": i}) for i, p in enumerate(random_points(n, size=500.0))]
    rows.insert(7, (None, {"id": 1000}))
    return make(path, rows, (("id", ogr.OFTInteger),), kind=ogr.wkbPoint, **how)


def lines_file(path="lines.gpkg", n=25):
    r = random.Random(11)
    rows = []
    for i in range(n):
        x, y = 980000 + r.uniform(0, 400), 200000 + r.uniform(0, 400)
        steps = [(x, y)]
        for _ in range(3):
            steps.append((steps[-1][0] + r.uniform(-60, 60), steps[-1][1] + r.uniform(-60, 60)))
        wkt = "LINESTRING (" + ", ".join(f"{a!r} {b!r}" for a, b in steps) + ")"
        rows.append((wkt, {"id": i}))
    return make(path, rows, (("id", ogr.OFTInteger),), kind=ogr.wkbLineString)


def shapes(path):
    """Returns (FID, geometry or None, values) for each feature of a layer."""
    return [
        (fid, ogr.CreateGeometryFromWkb(wkb) if wkb else None, values)
        for fid, wkb, values in Layer(path).rows
    ]


def area_of(shape):
    return shape.Area() if shape.GetDimension() == 2 else 0.0


def pairs_of(inputs, joins, test=lambda a, b: a.Intersects(b)):
    """Returns, for each row of inputs, the numbers of its rows in joins, ascending."""
    return [
        [j for j, (_, b, _) in enumerate(joins) if a is not None and b is not None and test(a, b)]
        for _, a, _ in inputs
    ]


def go(*words, **how):
    """Runs the command, which must succeed. With -overwrite, the old output is first
    removed with all its layers. Returns the Run."""
    if "-overwrite" in words and os.path.exists(words[-3]):
        os.remove(words[-3])
    return succeeds(*words, **how)
