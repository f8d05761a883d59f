"""Runs ogrjoin's algorithms and those of QGIS on the sample city and on real layers.
The answers are equal except for what driver/qgis/README.md lists (ties, the first of
several, NULL counts)."""

import collections
import math

from e2e import *
from headless_qgis import *

PICKUPS = 3000


def real(*layers):
    """Copies layers (dataset, layer, condition) of the shared folder to GeoPackages,
    with the FID as a field. Returns {name: path}."""
    need_qgis()
    paths = []
    for dataset, layer, condition in layers:
        source = need_data(dataset)
        path = f"{layer}.gpkg"
        where = ["-where", condition] if condition else []
        subprocess.run(["ogr2ogr", "-nln", layer, path, source, layer, *where],
                       check=True, capture_output=True)
        paths.append(path)
    return paths


def add_ids(path, name):
    """Adds a field with the FID. It identifies the rows of both answers. Returns
    path."""
    dataset = gdal.OpenEx(path, gdal.OF_UPDATE | gdal.OF_VECTOR)
    layer = dataset.GetLayer(0)
    table = layer.GetName()
    layer.CreateField(ogr.FieldDefn(name, ogr.OFTInteger64))
    dataset.ExecuteSQL(f'UPDATE "{table}" SET {name} = fid')
    dataset = None
    return path


def extent(path):
    dataset = gdal.OpenEx(path, gdal.OF_VECTOR)
    return dataset.GetLayer(0).GetExtent()


def pairs(path, left, right, distance=None):
    """Returns (left id, right id[, distance]) of all rows."""
    found = []
    for _, _, v in Layer(path).rows:
        more = (v[distance],) if distance else ()
        found.append((v[left], v[right], *more))
    return found


def by_left(rows):
    found = collections.defaultdict(set)
    for left, *right in rows:
        found[left].add(tuple(right))
    return found


# --- nearest -----------------------------------------------------------------


def same_nearest(p, joins, left, right, **more):
    """QGIS keeps all ties. With TIES the pairs must be equal. Without it, ours is the
    pair of QGIS with the smallest FID. QGIS measures the distance to a nearest point
    that is rounded to doubles, so its distances have errors of a few ulps of the
    coordinates."""
    tolerance = 4 * math.ulp(max(map(abs, extent(p))))
    _, ours, first = results([
        ("native:joinbynearest", {"INPUT": p, "INPUT_2": joins, "NEIGHBORS": 1,
                                  "OUTPUT": "q.gpkg", **more}),
        ("ogrjoin:joinbynearest", {"INPUT": p, "INPUT_2": joins, "TIES": True,
                                   "OUTPUT": "t.gpkg", **more}),
        ("ogrjoin:joinbynearest", {"INPUT": p, "INPUT_2": joins,
                                   "OUTPUT": "o.gpkg", **more}),
    ])
    theirs = by_left(pairs("q.gpkg", left, right, "distance"))
    tied = by_left(pairs("t.gpkg", left, right, "join_distance"))
    one = by_left(pairs("o.gpkg", left, right, "join_distance"))
    same(tied.keys(), theirs.keys(), "rows")
    n_tied = 0
    for key, found in theirs.items():
        same(sorted(x[0] or -1 for x in tied[key]), sorted(x[0] or -1 for x in found),
             f"{key}")
        n_tied += len(found) > 1
        ((which, d),) = one[key]
        same(which, min((x[0] for x in found if x[0] is not None), default=None),
             f"{key}: the smallest FID of {found}")
        for other in [x[1] for x in [*found, *tied[key]]]:
            if d is None or other is None:
                same(other, d, f"{key}")
            else:
                near(other, d, tolerance, f"{key}")
    matched = sum(1 for x in one.values() if next(iter(x))[0] is not None)
    same(first["results"]["JOINED_COUNT"], matched, "matched")
    same(first["results"]["UNJOINABLE_COUNT"], len(one) - matched, "unmatched")
    print(f"        {len(one)} rows, {matched} matched, {n_tied} with ties")
    return ours


def check_nearest_in_the_city():
    city(PICKUPS)
    for more in ({}, {"MAX_DISTANCE": 30}):
        same_nearest("city/pickups.gpkg", "city/lots.gpkg", "pickup_id", "lot_id", **more)
    same_nearest("city/lots.gpkg", "city/streets.gpkg", "lot_id", "street_id")


def check_nearest_of_real_layers():
    points, roads, tracts = real(("nyc_small.gpkg", "pickups", ""),
                                 ("nyc_small.gpkg", "roads", ""),
                                 ("nyc_small.gpkg", "tracts", ""))
    add_ids(points, "pid")
    add_ids(roads, "rid")
    add_ids(tracts, "tid")
    same_nearest(points, roads, "pid", "rid")
    same_nearest(points, roads, "pid", "rid", MAX_DISTANCE=20)
    same_nearest(points, tracts, "pid", "tid")


def check_within_distance():
    """The features that have another feature within a distance are those that QGIS
    extracts. -validate confirms each pair."""
    points, roads, buildings = real(("nyc_small.gpkg", "pickups", ""),
                                    ("nyc_small.gpkg", "roads", ""),
                                    ("nyc_small.gpkg", "buildings", ""))
    add_ids(points, "pid")
    for other in (roads, buildings):
        _, _, proof = results([
            ("native:extractwithindistance", {"INPUT": points, "REFERENCE": other,
                                              "DISTANCE": 60, "OUTPUT": "q.gpkg"}),
            ("ogrjoin:joinwithindistance", {"INPUT": points, "JOIN": other,
                                            "DISTANCE": 60, "OUTPUT": "o.gpkg",
                                            "DISCARD_NONMATCHING": True}),
            ("ogrjoin:validatejoin", {"INPUT": points, "JOIN": other, "OPERATION": 1,
                                      "MAX_DISTANCE": 60}),
        ])
        theirs = sorted(v["pid"] for _, _, v in Layer("q.gpkg").rows)
        ours = [v["pid"] for _, _, v in Layer("o.gpkg").rows]
        same(sorted(set(ours)), theirs, other)
        same((proof["results"]["AGREES"], proof["results"]["PAIRS"]), (True, len(ours)))
        print(f"        {len(theirs)} points, {len(ours)} pairs")


# --- location ----------------------------------------------------------------

# METHOD 1 of QGIS takes the first feature that its index returns. Ours takes
# the one with the smallest FID.


def same_location(inputs, joins, left, right, predicates=range(7)):
    jobs = []
    for i in predicates:
        for name, predicate in (("native:joinattributesbylocation", [i]),
                                ("ogrjoin:joinbylocation", i)):
            for method in (0, 1):
                jobs.append((name, {
                    "INPUT": inputs, "PREDICATE": predicate, "JOIN": joins,
                    "METHOD": method,
                    "OUTPUT": f"{name.partition(':')[0]}{i}{method}.gpkg"}))
    answers = iter(results(jobs))
    sizes = []
    for i in predicates:
        theirs = pairs(f"native{i}0.gpkg", left, right)
        ours = pairs(f"ogrjoin{i}0.gpkg", left, right)
        same(sorted(ours, key=repr), sorted(theirs, key=repr), f"predicate {i}")
        all_of = by_left(theirs)
        first = pairs(f"ogrjoin{i}1.gpkg", left, right)
        their_first = pairs(f"native{i}1.gpkg", left, right)
        same([x[0] for x in first], [x[0] for x in sorted(their_first)],
             f"predicate {i}, rows")
        for key, which in first:
            same(which, min((x[0] for x in all_of[key] if x[0] is not None),
                            default=None), f"predicate {i}, {key}")
        for key, which in their_first:
            true((which,) in all_of[key], f"predicate {i}, {key}: one of them")
        # QGIS counts pairs, even if it keeps one pair per row: then the count
        # is the number of rows.
        counts = [next(answers)["results"]["JOINED_COUNT"] for _ in range(4)]
        same(counts[2:], [counts[1]] * 2, f"predicate {i}, rows that match")
        sizes.append(sum(1 for x in ours if x[1] is not None))
    print(f"        pairs by predicate: {sizes}")


def check_location_in_the_city():
    city(PICKUPS)
    same_location("city/pickups.gpkg", "city/zones.gpkg", "pickup_id", "zone_id")
    same_location("city/lots.gpkg", "city/zones.gpkg", "lot_id", "zone_id")
    same_location("city/zones.gpkg", "city/streets.gpkg", "zone_id", "street_id")


def check_location_of_real_layers():
    zones, tracts, roads, points = real(
        ("nyc_small.gpkg", "taxi_zones", ""), ("nyc_small.gpkg", "tracts", ""),
        ("nyc_small.gpkg", "roads", ""), ("nyc_small.gpkg", "pickups", ""))
    for path, name in ((zones, "zid"), (tracts, "tid"), (roads, "rid"),
                       (points, "pid")):
        add_ids(path, name)
    same_location(points, tracts, "pid", "tid")
    same_location(tracts, zones, "tid", "zid")
    same_location(roads, tracts, "rid", "tid")


def check_border_points():
    """Points on corners and edges. Each predicate gives equal pairs in QGIS and in
    ogrjoin."""
    need_qgis()
    square = "POLYGON ((0 0, 0 10, 10 10, 10 0, 0 0))"
    hole = ("POLYGON ((20 0, 20 10, 30 10, 30 0, 20 0), "
            "(22 2, 28 2, 28 8, 22 8, 22 2))")
    fields = (("id", ogr.OFTInteger),)
    make("p.gpkg", [(f"POINT ({x} {y})", {"id": 100 * x + y})
                    for x in (0, 5, 10, 20, 22, 25, 28, 30) for y in (0, 2, 5, 8, 10)],
         fields=fields, kind=ogr.wkbPoint)
    make("s.gpkg", [(square, {"id": 1}), (hole, {"id": 2}), (square, {"id": 3})],
         fields=fields, kind=ogr.wkbPolygon)
    results([("native:renametablefield", {"INPUT": "s.gpkg", "FIELD": "id",
                                          "NEW_NAME": "sid", "OUTPUT": "r.gpkg"})])
    same_location("p.gpkg", "r.gpkg", "id", "sid")
    same_location("r.gpkg", "p.gpkg", "sid", "id")
    same_nearest("p.gpkg", "r.gpkg", "id", "sid")


def check_largest_overlap():
    zones, tracts = real(("nyc_small.gpkg", "taxi_zones", ""),
                         ("nyc_small.gpkg", "tracts", ""))
    add_ids(zones, "zid")
    add_ids(tracts, "tid")
    results([
        (name, {"INPUT": tracts, "JOIN": zones, "PREDICATE": [0], "METHOD": 2,
                "OUTPUT": path})
        for name, path in (("native:joinattributesbylocation", "q.gpkg"),
                           ("ogrjoin:joinbylocation", "o.gpkg"))])
    same(sorted(pairs("o.gpkg", "tid", "zid")), sorted(pairs("q.gpkg", "tid", "zid")))


# --- counts and summaries ------------------------------------------------------


def same_counts(zones, points, key):
    results([
        ("native:countpointsinpolygon", {"POLYGONS": zones, "POINTS": points,
                                         "FIELD": "NUMPOINTS", "OUTPUT": "q.gpkg"}),
        ("ogrjoin:joinbylocationsummary", {"INPUT": zones, "JOIN": points,
                                           "PREDICATE": 1, "AGGREGATES": "count",
                                           "OUTPUT": "o.gpkg"}),
    ])
    theirs = sorted((v[key], int(v["NUMPOINTS"])) for _, _, v in Layer("q.gpkg").rows)
    ours = sorted((v[key], v["count"]) for _, _, v in Layer("o.gpkg").rows)
    same(ours, theirs, "counts")
    print(f"        {len(ours)} polygons, {sum(n for _, n in ours)} points in them")


def check_counts():
    city(PICKUPS)
    same_counts("city/zones.gpkg", "city/pickups.gpkg", "zone_id")
    tracts, points, collisions = real(("nyc_polygons.gpkg", "tracts2010", ""),
                                      ("nyc_points.gpkg", "taxi2016_06_pickups", ""),
                                      ("nyc_points.gpkg", "injury_collisions", ""))
    add_ids(tracts, "tid")
    same_counts(tracts, points, "tid")
    same_counts(tracts, collisions, "tid")


def check_summaries():
    """QGIS writes six decimals, and NULL for rows without a match."""
    city(PICKUPS)
    names = ("count", "unique", "min", "max", "sum", "mean", "median")
    results([
        ("qgis:joinbylocationsummary", {
            "INPUT": "city/zones.gpkg", "PREDICATE": [0], "JOIN": "city/pickups.gpkg",
            "JOIN_FIELDS": ["fare", "hour"], "SUMMARIES": [], "OUTPUT": "q.gpkg"}),
        ("ogrjoin:joinbylocationsummary", {
            "INPUT": "city/zones.gpkg", "PREDICATE": 0, "JOIN": "city/pickups.gpkg",
            "JOIN_FIELDS": ["fare", "hour"], "OUTPUT": "o.gpkg"}),
    ])
    theirs = {v["zone_id"]: v for _, _, v in Layer("q.gpkg").rows}
    ours = {v["zone_id"]: v for _, _, v in Layer("o.gpkg").rows}
    same(ours.keys(), theirs.keys())
    n_matched = 0
    for key, v in ours.items():
        n_matched += v["count"] > 0
        for field in ("fare", "hour"):
            for name in names:
                column = f"{field}_{name}"
                if v["count"] == 0:
                    same(theirs[key][column], None, column)
                    continue
                near(v[column], theirs[key][column], 0.6e-6, f"{key}: {column}")
    true(n_matched > 3, "zones with pickups")


if __name__ == "__main__":
    main(globals())
