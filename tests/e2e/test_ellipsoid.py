"""-metric ellipsoid: -validate, known distances and bearings, ties, tiles, errors.  A
build without PROJ refuses the metric; then only the refusal is tested."""

from e2e import *

JOINED = (("jid", ogr.OFTInteger),)
WORDS = ("-op", "nearest", "-metric", "ellipsoid")
WGS84 = (6378137.0, 1 / 298.257223563)
CLARKE_1866 = (6378206.4, 1 / 294.978698213898)


def has_geodesics():
    places("has.gpkg", [(0, 0)])
    r = run(*WORDS, "has_o.gpkg", "has.gpkg", "has.gpkg")
    if r.rc == 0:
        return True
    true("no geodesics" in r.err and "use -metric sphere" in r.err, f"{r}")
    return False


def need_geodesics():
    if not has_geodesics():
        raise Skip("built without PROJ, as it reports")


def vincenty(p, q, ellipsoid=WGS84):
    """Returns (metres, bearing in degrees) by Vincenty's formulas. They fail for points
    that are nearly antipodal."""
    a, f = ellipsoid
    b = a * (1 - f)
    (x, y), (u, v) = [[math.radians(n) for n in place] for place in (p, q)]
    r, s = math.atan((1 - f) * math.tan(y)), math.atan((1 - f) * math.tan(v))
    turn = wanted = u - x
    for _ in range(200):
        east = math.cos(s) * math.sin(turn)
        north = math.cos(r) * math.sin(s) - math.sin(r) * math.cos(s) * math.cos(turn)
        sine = math.hypot(east, north)
        if sine == 0:
            return 0.0, None
        cosine = math.sin(r) * math.sin(s) + math.cos(r) * math.cos(s) * math.cos(turn)
        arc = math.atan2(sine, cosine)
        alpha = math.cos(r) * math.cos(s) * math.sin(turn) / sine
        square = 1 - alpha * alpha
        middle = cosine - 2 * math.sin(r) * math.sin(s) / square if square else 0.0
        c = f / 16 * square * (4 + f * (4 - 3 * square))
        last, turn = turn, wanted + (1 - c) * f * alpha * (
            arc + c * sine * (middle + c * cosine * (2 * middle**2 - 1)))
        if abs(turn - last) < 1e-13:
            break
    w = square * (a * a - b * b) / (b * b)
    k = 1 + w / 16384 * (4096 + w * (-768 + w * (320 - 175 * w)))
    m = w / 1024 * (256 + w * (-128 + w * (74 - 47 * w)))
    by = m * sine * (middle + m / 4 * (cosine * (2 * middle**2 - 1) - m / 6 * middle * (
        4 * sine**2 - 3) * (4 * middle**2 - 3)))
    return b * k * (arc - by), math.degrees(math.atan2(east, north)) % 360


def places(path, found, fields=(("id", ogr.OFTInteger),), srs="EPSG:4326"):
    make(path, [(f"POINT ({x!r} {y!r})", {fields[0][0]: i}) for i, (x, y) in enumerate(found)],
         fields, kind=ogr.wkbPoint, srs=srs)
    return found


def somewhere(n, seed, more=()):
    r = random.Random(seed)
    return [(r.uniform(-180, 180), math.degrees(math.asin(r.uniform(-1, 1)))) for _ in range(n)] + list(more)


def check_validate():
    need_geodesics()
    odd = [(180, 0), (-180, 0), (7, 90), (0, -90), (0, 0), (0, 0), (179.9, 0.2)]
    places("a.gpkg", somewhere(300, 1, odd))
    places("b.gpkg", somewhere(300, 2, odd + odd), JOINED)
    for words in (("-op", "nearest"), ("-k", 4), ("-k", 3, "-ties", "all"), ("-k", 3, "-min_distance", "200km"),
                  ("-op", "nearest", "-max_distance", "500km"), ("-op", "dwithin", "-max_distance", "900km"),
                  ("-op", "nearest", "-min_distance", "19900km")):
        r = succeeds(*words, "-metric", "ellipsoid", "-validate", "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
        true("validated: cpu against ellipsoid" in r.err and "no difference" in r.err, f"{r}")
    succeeds("-benchmark", *WORDS, "-benchmark_csv", "b.csv", "a.gpkg", "b.gpkg")
    with open("b.csv") as file:
        text = file.read()
    true("geodesics" in text and "great circles" not in text, text)


def check_distances_and_courses():
    """Two CRS have different ellipsoids. Distances are those of each CRS's own
    ellipsoid."""
    need_geodesics()
    a, b = somewhere(120, 3, [(179.5, 10)]), somewhere(150, 4, [(-179.5, 10.5)])
    for srs, ellipsoid in (("EPSG:4326", WGS84), ("EPSG:4267", CLARKE_1866)):
        places("a.gpkg", a, srs=srs)
        places("b.gpkg", b, JOINED, srs=srs)
        run(*WORDS, "-bearing_field", "-nearest_point_fields", "-geometry", "connection", "-overwrite",
            "o.gpkg", "a.gpkg", "b.gpkg")
        layer = Layer("o.gpkg")
        same(len(layer.rows), len(a))
        for (_, _, v), line in zip(layer.rows, layer.shapes()):
            p, q = a[v["id"]], b[v["jid"]]
            metres, course = vincenty(p, q, ellipsoid)
            near(v["join_distance"], metres, 1e-3, f"{p} {q}")
            near((v["join_bearing"] - course + 180) % 360 - 180, 0, 1e-6, f"{p} {q}")
            same((v["nearest_x"], v["nearest_y"]), q)
            same(line.GetPoints(), [p, q])
            true(all(vincenty(p, other, ellipsoid)[0] > metres - 1e-3 for other in b if apart(p, other) < 150),
                 f"{p}: {q} is not the nearest")


def apart(p, q):
    """Returns the degrees between two places along a great circle."""
    (a, b), (c, d) = [[math.radians(v) for v in place] for place in (p, q)]
    h = math.sin((d - b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.sin((c - a) / 2) ** 2
    return math.degrees(2 * math.asin(min(1.0, math.sqrt(h))))


SHAPES = [
    "POLYGON ((170 10, -170 10, -170 30, 170 30, 170 10))",  # across the antimeridian
    "POLYGON ((0 70, 90 70, 180 70, -90 70, 0 70))",  # around the pole
    "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))",
    "LINESTRING (-60 -40, 20 -35)",  # over an ocean
    "LINESTRING (10 0, 100 0)",
    "LINESTRING (30 -80, 210 -80)",  # over the other pole
    "LINESTRING (5 5, 5 5)",
    "LINESTRING (0 1, 179.5 -1.2)",
    "MULTIPOLYGON (((100 50, 101 50, 101 51, 100 50)), ((102 50, 103 50, 103 51, 102 50)))",
    "MULTIPOINT ((-100 40), (-101 41))",
    "GEOMETRYCOLLECTION (POINT (-30 -30), LINESTRING (-30 -31, -28 -31))",
]


def shapes(path):
    make(path, [(wkt, {"jid": i}) for i, wkt in enumerate(SHAPES)], JOINED, kind=ogr.wkbUnknown, srs="EPSG:4326")


def check_lines_and_polygons():
    """Joins points with lines and polygons, in both orders, and compares with the
    reference. Also tests points inside of polygons, nearest points and bearings."""
    need_geodesics()
    some = [(180, 20), (45, 89), (4, 4), (1, 1), (0, 0), (5, 5), (55, 0), (0, 90), (30, -85)]
    a = places("a.gpkg", somewhere(150, 7, some))
    shapes("s.gpkg")
    for words in (("-op", "nearest"), ("-k", 4, "-ties", "all"), ("-k", 3, "-min_distance", "200km"),
                  ("-op", "dwithin", "-max_distance", "2000km"), ("-op", "nearest", "-max_distance", "500km")):
        for sides in (("a.gpkg", "s.gpkg"), ("s.gpkg", "a.gpkg")):
            r = succeeds(*words, "-metric", "ellipsoid", "-validate", "-overwrite", "o.gpkg", *sides)
            true("validated: cpu against ellipsoid" in r.err and "no difference" in r.err, f"{words} {sides}: {r}")
    run("-op", "dwithin", "-max_distance", "4000km", "-metric", "ellipsoid", "-nearest_point_fields",
        "-bearing_field", "near.gpkg", "a.gpkg", "s.gpkg")
    rows = [v for _, _, v in Layer("near.gpkg").rows if v["jid"] is not None]
    true(len(rows) > 200, f"{len(rows)} pairs")
    inside = {(tuple(a[v["id"]]), v["jid"]) for v in rows if v["join_distance"] == 0}
    for pair in (((180, 20), 0), ((45, 89), 1), ((1, 1), 2), ((0, 0), 2), ((5, 5), 6), ((0, 90), 1)):
        true(pair in inside, f"{pair} {inside}")
    true(((4, 4), 2) not in inside, "the hole is no inside")
    for v in rows:
        p, q = a[v["id"]], (v["nearest_x"], v["nearest_y"])
        if v["join_distance"] == 0:
            true(v["join_bearing"] is None, f"{v}")
            continue
        metres, course = vincenty(p, q)
        near(v["join_distance"], metres, 1e-3, f"{p} {q}")
        near((v["join_bearing"] - course + 180) % 360 - 180, 0, 1e-5, f"{p} {q}")


def check_foot_is_not_that_of_the_sphere():
    """Two places are on one parallel. The point of their geodesic nearest to a place on
    their middle meridian is on this meridian. On the sphere its latitude differs, because
    the great circle between the places is another curve."""
    need_geodesics()
    places("a.gpkg", [(30, 20)])
    make("line.gpkg", [("LINESTRING (0 40, 60 40)", {"jid": 1})], JOINED, kind=ogr.wkbLineString, srs="EPSG:4326")
    found = {}
    for metric in ("ellipsoid", "sphere"):
        run("-op", "nearest", "-metric", metric, "-nearest_point_fields", "-overwrite", "o.gpkg", "a.gpkg", "line.gpkg")
        found[metric] = Layer("o.gpkg").rows[0][2]
    v = found["ellipsoid"]
    near(v["nearest_x"], 30, 1e-9)
    near(v["join_distance"], vincenty((30, 20), (30, v["nearest_y"]))[0], 1e-4)
    # Checks that the nearest point is the middle of the geodesic: both halves are equally
    # long, and the course there is due east. This avoids Vincenty's direct problem.
    near(vincenty((30, v["nearest_y"]), (0, 40))[0], vincenty((0, 40), (60, 40))[0] / 2, 1e-3)
    near(vincenty((30, v["nearest_y"]), (60, 40))[1], 90, 1e-6)
    true(abs(found["sphere"]["nearest_y"] - v["nearest_y"]) > 1e-3, f"{found}")


def check_nearest_differs_from_the_sphere():
    """On the ellipsoid a degree of latitude is 110.6 km at the equator and 111.7 km at
    the poles, and a degree of longitude 111.3 km at the equator. On the sphere both are
    111.2 km."""
    need_geodesics()
    places("a.gpkg", [(0, 0)])
    places("b.gpkg", [(1, 0), (0, 1.001)], JOINED)
    for metric, jid, metres in (("sphere", 0, 111195.08), ("ellipsoid", 1, 110684.96)):
        run("-op", "nearest", "-metric", metric, "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
        row = Layer("o.gpkg").rows[0][2]
        same(row["jid"], jid, metric)
        near(row["join_distance"], metres, 0.1, metric)


def check_reach_is_included():
    need_geodesics()
    places("a.gpkg", [(-73.8, 40.6)])
    places("b.gpkg", [(-0.5, 51.6)], JOINED)
    run(*WORDS, "o.gpkg", "a.gpkg", "b.gpkg")
    metres = Layer("o.gpkg").rows[0][2]["join_distance"]
    near(metres, 5551759.400319, 1e-6)
    for words, jid in ((("-max_distance", repr(metres)), 0),
                       (("-max_distance", repr(math.nextafter(metres, 0))), None),
                       (("-min_distance", repr(metres)), 0),
                       (("-min_distance", repr(math.nextafter(metres, 1e9))), None),
                       (("-max_distance", "5552km"), 0)):
        run(*WORDS, *words, "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
        same(Layer("o.gpkg").rows[0][2]["jid"], jid, f"{words}")


def check_ways_agree():
    """Threads, batches and tiles do not change the rows."""
    need_geodesics()
    places("a.gpkg", somewhere(400, 5))
    places("b.gpkg", somewhere(20000, 6), JOINED)
    r = random.Random(8)
    make("lots.gpkg", [(f"POLYGON (({x} {y}, {x + .2} {y}, {x + .2} {y + .2}, {x} {y + .2}, {x} {y}))", {"jid": i})
                       for i, (x, y) in enumerate((r.randrange(-900, 900) / 5, r.randrange(-400, 400) / 5)
                                                  for _ in range(6000))],
         JOINED, kind=ogr.wkbPolygon, srs="EPSG:4326")
    words = (*WORDS, "-k", 3, "-ties", "all", "-bearing_field")
    for sides in (("a.gpkg", "b.gpkg"), ("a.gpkg", "lots.gpkg"), ("lots.gpkg", "a.gpkg")):
        for name in ("whole.gpkg", "other.gpkg"):
            if os.path.exists(name):
                os.remove(name)
        run(*words, "-threads", 1, "whole.gpkg", *sides)
        for more in (("-threads", 3), ("-batch", 7), ("-memory", "500K")):
            if sides[0] == "lots.gpkg" and "-memory" in more:
                continue  # the join side is too small for tiles
            r = run(*words, *more, "-overwrite", "other.gpkg", *sides)
            true("-memory" not in more or "tiles" in r.err, f"{r}")
            same(dump("other.gpkg").replace("other", "whole"), dump("whole.gpkg"), f"{sides} {more}")


def check_errors():
    need_geodesics()
    places("a.gpkg", [(1, 1)])
    places("flat.gpkg", [(1e6, 2e5)], srs="EPSG:2263")
    make("line.gpkg", [("LINESTRING (0 0, 1 1)", {"jid": 1})], JOINED, kind=ogr.wkbLineString, srs="EPSG:4326")
    make("mixed.gpkg", [("POINT (0 0)", {"jid": 1}), ("LINESTRING (0 0, 1 1)", {"jid": 2})], JOINED,
         kind=ogr.wkbUnknown, srs="EPSG:4326")
    make("bare.geojson", [("POINT (0 0)", {"jid": 1})], JOINED)
    nearest = WORDS
    fails(*nearest, "o.gpkg", "flat.gpkg", "a.gpkg", op=False, message=["EPSG:2263", "-t_srs EPSG:4326"])
    fails(*nearest, "o.gpkg", "line.gpkg", "line.gpkg", op=False,
          message=["'line'", "Line String", "one of the layers must be of points"])
    fails(*nearest, "o.gpkg", "line.gpkg", "mixed.gpkg", op=False, message=["feature 2", "is not a point"])
    fails(*nearest, "o.gpkg", "mixed.gpkg", "line.gpkg", op=False, message=["feature 2", "is not a point"])
    fails(*nearest, "-sql", "SELECT * FROM mixed", "-dialect", "OGRSQL", "o.gpkg", "mixed.gpkg", "mixed.gpkg",
          op=False, message=["one of the sides must be of points"])
    fails(*nearest, "-along_field", "m", "o.gpkg", "a.gpkg", "line.gpkg", op=False, message=["-metric sphere"])
    for sides in (("a.gpkg", "line.gpkg"), ("line.gpkg", "a.gpkg"), ("a.gpkg", "mixed.gpkg"), ("mixed.gpkg", "a.gpkg")):
        succeeds(*nearest, "-overwrite", "o.gpkg", *sides)
    fails(*nearest, "-max_distance", "1deg", "o.gpkg", "a.gpkg", "a.gpkg", op=False, message=["-metric ellipsoid", "lengths"])
    fails(*nearest, "-distance", "hausdorff", "o.gpkg", "a.gpkg", "a.gpkg", op=False, message=["-distance hausdorff"])
    fails(*nearest, "-distance_to", "boundary", "o.gpkg", "a.gpkg", "a.gpkg", op=False, message=["planar"])
    fails(*nearest, "-along_field", "m", "o.gpkg", "a.gpkg", "a.gpkg", op=False, message=["-metric sphere"])
    fails(*nearest, "-validate", "geos", "o.gpkg", "a.gpkg", "a.gpkg", op=False, message=["-validate ellipsoid"])
    fails(*nearest, "-validate", "sphere", "o.gpkg", "a.gpkg", "a.gpkg", op=False, message=["-validate ellipsoid"])
    fails("-op", "nearest", "-metric", "sphere", "-validate", "ellipsoid", "o.gpkg", "a.gpkg", "a.gpkg",
          op=False, message=["-validate sphere"])
    fails("-op", "nearest", "-max_distance", "1deg", "-validate", "ellipsoid", "o.gpkg", "a.gpkg", "a.gpkg",
          op=False, message=["-metric ellipsoid"])
    # Saturn (IAU 2015) is too flat for PROJ's series.
    saturn = ('GEOGCS["Saturn",DATUM["Saturn",SPHEROID["Saturn",60268000,10.2079945799458]],'
              'PRIMEM["Reference",0],UNIT["degree",0.0174532925199433]]')
    fails(*nearest, "-s_srs", saturn, "-join_srs", saturn, "o.gpkg", "a.gpkg", "a.gpkg", op=False,
          message=["flattening", "-metric sphere"])
    # The centroids of lines are points, so the join supports them.
    succeeds(*nearest, "-centroid_of", "join", "-overwrite", "o.gpkg", "line.gpkg", "line.gpkg")


def check_without_geodesics():
    if has_geodesics():
        raise Skip("built with PROJ")


if __name__ == "__main__":
    main(globals())
