"""-metric sphere: -validate, nearest points, bearings, and coordinates that are not on the sphere.
"""

from e2e import *

RADIUS = 6371008.7714


def apart(p, q):
    """Returns the metres between two places by the haversine formula."""
    (a, b), (c, d) = [[math.radians(v) for v in place] for place in (p, q)]
    h = math.sin((d - b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.sin((c - a) / 2) ** 2
    return 2 * RADIUS * math.asin(min(1.0, math.sqrt(h)))


def course(p, q):
    (a, b), (c, d) = [[math.radians(v) for v in place] for place in (p, q)]
    return math.degrees(math.atan2(
        math.sin(c - a) * math.cos(d),
        math.cos(b) * math.sin(d) - math.sin(b) * math.cos(d) * math.cos(c - a))) % 360


def places(path, n, seed, fields=(("id", ogr.OFTInteger),), more=()):
    r = random.Random(seed)
    found = [(r.uniform(-180, 180), math.degrees(math.asin(r.uniform(-1, 1)))) for _ in range(n)]
    found += more
    make(path, [(f"POINT ({x!r} {y!r})", {fields[0][0]: i}) for i, (x, y) in enumerate(found)],
         fields, kind=ogr.wkbPoint, srs="EPSG:4326")
    return found


def shapes(path, n=60, seed=8):
    """Makes triangles and paths. Some are across the antimeridian or near the poles."""
    r = random.Random(seed)
    rows = []
    for i in range(n):
        x, y = r.uniform(-180, 180), r.uniform(-85, 85)
        ring = [(x + r.uniform(-9, 9), max(-90, min(90, y + r.uniform(-5, 5)))) for _ in range(3)]
        if i % 2:
            ring.append(ring[0])
        text = ", ".join(f"{a!r} {b!r}" for a, b in ring)
        rows.append((f"POLYGON (({text}))" if i % 2 else f"LINESTRING ({text})", {"jid": i}))
    make(path, rows, (("jid", ogr.OFTInteger),), srs="EPSG:4326")


def check_validate():
    places("a.gpkg", 400, 1, more=[(180, 0), (-180, 0), (7, 90), (0, -90), (0, 0), (0, 0)])
    places("b.gpkg", 300, 2, (("jid", ogr.OFTInteger),), more=[(-180, 0), (180, 0), (3, 90), (0, 0), (0, 0)])
    shapes("c.gpkg")
    for b in ("b.gpkg", "c.gpkg"):
        for words in (("-op", "nearest"), ("-k", 4), ("-k", 2, "-ties", "all"), ("-k", 3, "-min_distance", "200km"),
                      ("-op", "nearest", "-max_distance", "500km"), ("-op", "dwithin", "-max_distance", "900km")):
            r = succeeds(*words, "-metric", "sphere", "-validate", "-overwrite", "o.gpkg", "a.gpkg", b)
            true("validated: cpu against sphere" in r.err and "no difference" in r.err, f"{r}")
            true("in GEOS" not in r.err, f"{r}")
    # The planar reference is refused. The message names the right one.
    fails("-op", "nearest", "-metric", "sphere", "-validate", "geos", "x.gpkg", "a.gpkg", "b.gpkg",
          op=False, message=["-validate sphere"])
    fails("-op", "nearest", "-max_distance", "1deg", "-validate", "sphere", "x.gpkg", "a.gpkg", "b.gpkg",
          op=False, message=["-metric sphere"])


def check_the_reference_runs_alone():
    a = places("a.gpkg", 60, 1)
    b = places("b.gpkg", 50, 2, (("jid", ogr.OFTInteger),))
    run("-op", "nearest", "-metric", "sphere", "-backend", "sphere", "o.gpkg", "a.gpkg", "b.gpkg")
    for _, _, v in Layer("o.gpkg").rows:
        best = min(range(len(b)), key=lambda j: apart(a[v["id"]], b[j]))
        same(v["jid"], best)
        near(v["join_distance"], apart(a[v["id"]], b[best]), 1e-6)


def check_not_against_itself():
    """A backend that is validated by itself proves nothing."""
    places("a.gpkg", 50, 1)
    places("b.gpkg", 50, 2, (("jid", ogr.OFTInteger),))
    r = run("-op", "nearest", "-metric", "sphere", "-backend", "sphere", "-validate", "sphere", "o.gpkg", "a.gpkg", "b.gpkg")
    same(r.rc, 1, f"{r}")
    true("prove nothing" in r.err, f"{r}")


def check_benchmark():
    places("a.gpkg", 300, 1)
    shapes("c.gpkg")
    succeeds("-benchmark", "-op", "nearest", "-metric", "sphere", "-benchmark_csv", "b.csv", "a.gpkg", "c.gpkg")
    with open("b.csv") as file:
        text = file.read()
    true("great circles" in text and "ogrjoin" in text, text)
    true("libspatialindex" not in text, text)
    r = succeeds("-benchmark", "-op", "nearest", "-max_distance", "1deg", "a.gpkg", "c.gpkg")
    true("great circles" not in r.out + r.err, f"{r}")


def check_points_and_bearings():
    a = places("a.gpkg", 200, 3, more=[(179.5, 10), (0, 90), (12, -90)])
    b = places("b.gpkg", 150, 4, (("jid", ogr.OFTInteger),), more=[(-179.5, 10.5)])
    words = ("-op", "nearest", "-metric", "sphere", "-nearest_point_fields", "-bearing_field")
    run(*words, "-geometry", "connection", "o.gpkg", "a.gpkg", "b.gpkg")
    run(*words, "-geometry", "nearest_point", "p.gpkg", "a.gpkg", "b.gpkg")
    lines, points = Layer("o.gpkg"), Layer("p.gpkg")
    for (_, _, v), line, (_, _, w), point in zip(lines.rows, lines.shapes(), points.rows, points.shapes()):
        same(w, v)
        same((v["nearest_x"], v["nearest_y"]), b[v["jid"]])
        same(line.GetPoints(), [a[v["id"]], b[v["jid"]]])
        same(point.GetPoint_2D(0), b[v["jid"]])
        turn = (v["join_bearing"] - course(a[v["id"]], b[v["jid"]]) + 180) % 360 - 180
        near(turn, 0, 1e-9, "bearing")
    # Lines and polygons. The nearest point is at the distance and in the
    # direction that the join gives.
    shapes("c.gpkg")
    run(*words, "-geometry", "nearest_point", "q.gpkg", "a.gpkg", "c.gpkg")
    n_inside = 0
    for _, _, v in Layer("q.gpkg").rows:
        place = (v["nearest_x"], v["nearest_y"])
        near(apart(a[v["id"]], place), v["join_distance"], 1e-3, "distance of the point")
        if v["join_distance"] == 0:
            n_inside += 1
            same(place, a[v["id"]])
            same(v["join_bearing"], None)
        elif abs(a[v["id"]][1]) < 90:
            near((v["join_bearing"] - course(a[v["id"]], place) + 180) % 360 - 180, 0, 1e-6, "bearing")
    # the rows are unchanged with the join side in tiles
    places("d.gpkg", 20000, 5, (("jid", ogr.OFTInteger),))
    run(*words, "-k", 2, "whole.gpkg", "a.gpkg", "d.gpkg")
    r = run(*words, "-k", 2, "-memory", "500K", "tiled.gpkg", "a.gpkg", "d.gpkg")
    true("tiles" in r.err, f"{r}")
    same(dump("tiled.gpkg").replace("tiled", "whole"), dump("whole.gpkg"))


def check_latitudes_beyond_the_poles():
    places("a.gpkg", 20, 1, more=[(10, 91), (10, 90), (10, -90.5)])
    places("b.gpkg", 20, 2, (("jid", ogr.OFTInteger),), more=[(10, 95)])
    r = succeeds("-op", "nearest", "-metric", "sphere", "-json_summary", "s.json", "o.gpkg", "a.gpkg", "b.gpkg")
    same(r.err.count("beyond 90"), 2, f"once for each side: {r}")
    true("2 unmatched, of which 2 skipped (2 with a latitude beyond 90)" in r.err, f"{r}")
    true("join layer 'b': 1 skipped (1 with a latitude beyond 90)" in r.err, f"{r}")
    same(summary("s.json")["input"]["skipped"]["beyond_poles"], 2)
    same(summary("s.json")["join"]["skipped"]["beyond_poles"], 1)
    # In the plane, latitudes beyond 90 are ordinary numbers.
    r = run("-op", "nearest", "-max_distance", "500deg", "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
    true("skipped" not in r.err, f"{r}")


if __name__ == "__main__":
    main(globals())
