"""Values of the rows: -pick, -overlap, nearest points, names, geometries.  Expected
values come from tests of every pair by GEOS."""

from row_layers import *

# --- -pick ----------------------------------------------------------------------


def picked(path):
    return [None if r[2]["join_fid"] is None else r[2]["join_fid"] for r in Layer(path).rows]


def best(pairs, joins, score):
    """Returns, for each row, the pair with the greatest score. Among equal scores the first
    pair wins. The score None is the lowest."""
    answer = []
    for i, row in enumerate(pairs):
        found = None
        for j in row:
            s = score(i, j)
            if found is None or (s is not None and (found[0] is None or s > found[0])):
                found = (s, joins[j][0])
        answer.append(None if found is None else found[1])
    return answer


@once
def check_pick_rules():
    inputs_file(n=120)
    far_zones_file()
    inputs, zones = shapes("points.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(inputs, zones)
    true(sum(len(row) > 1 for row in pairs) > 10, "a fair trial")
    area = [z[1].Area() if z[1] else None for z in zones]
    value = lambda key, sign: lambda i, j: (
        None if zones[j][2][key] is None else sign * zones[j][2][key]
    )
    for rule, score in (
        ("first", lambda i, j: 0),
        ("nearest", lambda i, j: 0),
        ("smallest_area", lambda i, j: -area[j]),
        ("largest_area", lambda i, j: area[j]),
        ("largest_overlap", lambda i, j: 0),
        ("max:v", value("v", 1)),
        ("min:V", value("v", -1)),
        ("max:big", value("big", 1)),
        ("min:big", value("big", -1)),
    ):
        expected = best(pairs, zones, score)
        for words in (("-threads", 1), ("-threads", 4, "-batch", 13)):
            go("-op", "intersects", "-pick", rule, *words, "-overwrite",
               "o.gpkg", "points.gpkg", "zones.gpkg")
            same(picked("o.gpkg"), expected, f"{rule} {words}")
        same([r[0] for r in Layer("o.gpkg").rows], [i[0] for i in inputs], "FIDs stay")
    # The field need not be written.
    go("-op", "intersects", "-pick", "max:v", "-join_select", "name", "-overwrite",
       "o.gpkg", "points.gpkg", "zones.gpkg")
    same(list(Layer("o.gpkg").fields), ["id", "join_fid", "name"])
    same(picked("o.gpkg"), best(pairs, zones, value("v", 1)))


def check_pick_dates_and_reals():
    make("p.gpkg", [("POINT (1 1)", {"name": "a"})])
    fields = (("at", ogr.OFTDateTime), ("on", ogr.OFTDate), ("r", ogr.OFTReal), ("t", ogr.OFTString))
    square = "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"
    times = [
        ("2020/12/31 23:59:59.999+00", "2021/01/01", -0.0, "a"),
        ("2021/01/01 01:00:00+01", "2020/12/31", 0.0, "b"),  # equals 00:00 UTC
        (None, None, float("nan"), "c"),
        ("2019/02/28 00:00:00+00", "2020/12/31", -1.5e-300, "d"),
    ]
    make("z.gpkg", [(square, dict(zip(("at", "on", "r", "t"), t))) for t in times], fields)
    for rule, fid in (("max:at", 2), ("min:at", 4), ("max:on", 1), ("min:on", 2),
                      ("max:r", 1), ("min:r", 4)):
        go("-op", "within", "-pick", rule, "-overwrite", "o.gpkg", "p.gpkg", "z.gpkg")
        same(picked("o.gpkg"), [fid], rule)
    fails("-op", "within", "-pick", "max:t", "o2.gpkg", "p.gpkg", "z.gpkg", op=False, message=["t", "String"])
    fails("-op", "within", "-pick", "max:none", "o2.gpkg", "p.gpkg", "z.gpkg", op=False, message=["none", "pick"])
    fails("-op", "within", "-pick", "best", "o2.gpkg", "p.gpkg", "z.gpkg", op=False, message=["best", "first"])


def check_pick_largest_overlap():
    zones_file("a.gpkg", n=40, seed=21)
    far_zones_file("b.gpkg")
    a, b = shapes("a.gpkg"), shapes("b.gpkg")
    pairs = pairs_of(a, b)
    common = {}
    for i, row in enumerate(pairs):
        for j in row:
            common[i, j] = area_of(a[i][1].Intersection(b[j][1]))
    expected = best(pairs, b, lambda i, j: common[i, j])
    for threads in (1, 3):
        go("-op", "intersects", "-pick", "largest_overlap", "-overlap", "area,percent,length",
           "-threads", threads, "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
        same(picked("o.gpkg"), expected)
    place = {z[0]: j for j, z in enumerate(b)}
    for i, row in enumerate(Layer("o.gpkg").rows):
        if row[2]["join_fid"] is None:
            same([row[2][f"overlap_{k}"] for k in ("area", "percent", "length")], [None] * 3)
            continue
        area = common[i, place[row[2]["join_fid"]]]
        near(row[2]["overlap_area"], area, 1e-9 * max(area, 1), "area")
        near(row[2]["overlap_percent"], 100 * area / a[i][1].Area(), 1e-7, "percent")
    # Lines: by length.
    lines_file()
    lines = shapes("lines.gpkg")
    pairs = pairs_of(lines, b)
    length = lambda i, j: round(lines[i][1].Intersection(b[j][1]).Length(), 6)
    go("-op", "intersects", "-pick", "largest_overlap", "-overlap", "percent,length", "-overwrite",
       "o.gpkg", "lines.gpkg", "b.gpkg")
    same(picked("o.gpkg"), best(pairs, b, length))
    for i, row in enumerate(Layer("o.gpkg").rows):
        if row[2]["join_fid"] is not None:
            whole = lines[i][1].Length()
            exact = lines[i][1].Intersection(b[place[row[2]["join_fid"]]][1]).Length()
            near(row[2]["overlap_length"], exact, 1e-7, "length")
            near(row[2]["overlap_percent"], 100 * exact / whole, 1e-6, "percent")


def check_pick_nearest_of_what_does_not_meet():
    inputs_file(n=30)
    far_zones_file()
    inputs, zones = shapes("points.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(inputs, zones, lambda a, b: not a.Intersects(b))
    expected = best(pairs, zones, lambda i, j: -inputs[i][1].Distance(zones[j][1]))
    go("-op", "disjoint", "-pick", "nearest", "o.gpkg", "points.gpkg", "zones.gpkg")
    same(picked("o.gpkg"), expected)
    # among the features within a distance, the nearest is picked
    go("-op", "dwithin", "-max_distance", 80, "-pick", "nearest", "d.gpkg", "points.gpkg", "zones.gpkg")
    go("-op", "nearest", "-max_distance", 80, "n.gpkg", "points.gpkg", "zones.gpkg")
    same(dump("d.gpkg"), dump("n.gpkg"))
    go("-op", "nearest", "-max_distance", 80, "-k", 5, "-pick", "max:big", "k.gpkg", "points.gpkg", "zones.gpkg")
    near_ones = nearest([i[1] for i in inputs], Layer("zones.gpkg").rows, within=80, k=5)
    big = [
        min(row, key=lambda x: (-zones[x[1]][2]["big"], zones[x[1]][0]), default=None)
        for row in near_ones
    ]
    same(picked("k.gpkg"), [None if b is None else zones[b[1]][0] for b in big])
    true("join_rank" not in Layer("k.gpkg").fields, "no rank of one")


# --- columns -------------------------------------------------------------------


def check_names():
    inputs_file()
    zones_file()
    go("-op", "nearest", "-k", 2, "-name_fid", "zone", "-name_distance", "", "-name_rank", "r",
       "-name_count", "n", "o.gpkg", "points.gpkg", "zones.gpkg")
    same(list(Layer("o.gpkg").fields), ["id", "zone", "r", "n", "name", "v", "big"])
    same(set(Layer("o.gpkg").column("n")), {0, 2})
    go("-op", "intersects", "-name_count", "n", "-how", "left", "c.gpkg", "points.gpkg", "zones.gpkg")
    pairs = pairs_of(shapes("points.gpkg"), shapes("zones.gpkg"))
    same(Layer("c.gpkg").column("n"), [n for row in pairs for n in [len(row)] * max(1, len(row))])
    go("-op", "intersects", "-name_count", "n", "-pick", "first", "-name_fid", "", "p.gpkg",
       "points.gpkg", "zones.gpkg")
    same(Layer("p.gpkg").column("n"), [len(row) for row in pairs])
    same(list(Layer("p.gpkg").fields), ["id", "n", "name", "v", "big"])
    # There is a distance column only if the join measures one.
    true("join_distance" not in Layer("c.gpkg").fields, "no distance")
    go("-op", "dwithin", "-max_distance", 10, "d.gpkg", "points.gpkg", "zones.gpkg")
    true("join_distance" in Layer("d.gpkg").fields, "a distance")
    for words, message in (
        (("-op", "nearest", "-name_fid", "ID"), ["name_fid", "ID"]),
        (("-op", "nearest", "-name_fid", "x", "-name_distance", "X"), ["name_distance", "X"]),
        (("-op", "nearest", "-name_fid", "join_distance"), ["name_fid", "join_distance", "already"]),
        (("-op", "nearest", "-k", 2, "-name_distance", "Join_Rank"), ["name_distance", "Join_Rank", "already"]),
        (("-op", "intersects", "-name_distance", "d"), "distance"),
        (("-op", "intersects", "-name_rank", "d"), "rank"),
        (("-op", "intersects", "-overlap", "volume"), "volume"),
    ):
        fails(*words, "e.gpkg", "points.gpkg", "zones.gpkg", op=False, message=message)


def three_kinds():
    """Returns, for points, lines and polygons, the name of the layer, its features, and
    the zones' geometries by FID."""
    inputs_file()
    lines_file()
    zones_file("a.gpkg", n=25, seed=3)
    far_zones_file()
    zones = {z[0]: z[1] for z in shapes("zones.gpkg")}
    for name in ("points", "lines", "a"):
        yield name, shapes(f"{name}.gpkg"), zones


def check_overlap_values():
    """All pairs of three kinds of input, compared with GEOS."""
    for name, inputs, zones in three_kinds():
        go("-op", "intersects", "-how", "inner", "-overlap", "area,length,percent", "-geometry",
           "intersection", "-overwrite", "o.gpkg", f"{name}.gpkg", "zones.gpkg")
        got = Layer("o.gpkg")
        pairs = pairs_of(inputs, shapes("zones.gpkg"))
        order = [i for i, row in enumerate(pairs) for _ in row]
        same(len(got.rows), len(order))
        for i, row, shape in zip(order, got.rows, got.shapes()):
            common = inputs[i][1].Intersection(zones[row[2]["join_fid"]])
            true(shape.Equals(common) or area_of(shape.SymmetricDifference(common)) < 1e-6,
                 f"{shape} is not {common}")
            near(row[2]["overlap_area"], area_of(common), 1e-6, "area")
            if name == "points":
                same(row[2]["overlap_percent"], None)
                same(shape.GetGeometryName(), "POINT")
            elif name == "lines":
                near(row[2]["overlap_length"], common.Length(), 1e-6, "length")
                near(row[2]["overlap_percent"], 100 * common.Length() / inputs[i][1].Length(), 1e-6)
            else:
                near(row[2]["overlap_percent"], 100 * area_of(common) / inputs[i][1].Area(), 1e-6)


def bearing(a, b):
    return math.degrees(math.atan2(b[0] - a[0], b[1] - a[1])) % 360


def check_nearest_points():
    for name, inputs, zones in three_kinds():
        words = ("-op", "nearest", "-k", 3, "-nearest_point_fields", "-bearing_field",
                 *(("-min_distance", 1) if name == "a" else ()))
        go(*words, "-geometry", "connection", "-overwrite", "o.gpkg", f"{name}.gpkg", "zones.gpkg")
        go(*words, "-geometry", "nearest_point", "-threads", 1, "-overwrite", "p.gpkg", f"{name}.gpkg",
           "zones.gpkg")
        lines, points = Layer("o.gpkg"), Layer("p.gpkg")
        same(lines.kind, ogr.wkbLineString)
        same(points.kind, ogr.wkbPoint)
        same([r[2] for r in lines.rows], [r[2] for r in points.rows], "threads, geometry")
        by_id = {}
        for fid, shape, values in inputs:
            by_id[values.get("id", values.get("name"))] = shape
        n_apart = 0
        for row, line, point in zip(lines.rows, lines.shapes(), points.shapes()):
            values = row[2]
            source = by_id[values.get("id", values.get("name"))]
            if values["join_fid"] is None:
                same([values[k] for k in ("nearest_x", "nearest_y", "join_bearing")], [None] * 3)
                same((line, point), (None, None))
                continue
            zone = zones[values["join_fid"]]
            d = values["join_distance"]
            near(line.Length(), d, 1e-6, "length of the connection")
            same(line.GetPoint_2D(1), (values["nearest_x"], values["nearest_y"]))
            same(point.GetPoint_2D(0), line.GetPoint_2D(1))
            start = ogr.CreateGeometryFromWkt("POINT ({!r} {!r})".format(*line.GetPoint_2D(0)))
            near(start.Distance(source), 0, 1e-6, "begins at the input")
            near(point.Distance(zone), 0, 1e-6, "ends at the zone")
            if d == 0:
                same(values["join_bearing"], None)
            else:
                n_apart += 1
                near(values["join_bearing"], bearing(*line.GetPoints()), 1e-6, "bearing")
        true(n_apart > 10, "a fair trial")
    fails("-op", "nearest", "-metric", "sphere", "-bearing_field", "s.gpkg", "points.gpkg", "zones.gpkg",
          op=False, message="sphere")


@once
def check_pairs_are_not_measured_in_degrees():
    degrees = {"srs": "EPSG:4326"}
    make("p.gpkg", [("POINT (10 60)", {"name": "a"})], **degrees)
    make("z.gpkg", [("POINT (10.1 60)", {"name": "a"}), ("POINT (10 60.08)", {"name": "a"})], **degrees)
    words = ("-op", "attributes", "-on", "name")
    of = ("o.gpkg", "p.gpkg", "z.gpkg")
    for option in ("-pick", "nearest"), ("-bearing_field",):
        fails(*words, *option, *of, op=False, message=(" ".join(option), "degrees", "-t_srs"))
    go(*words, "-pick", "nearest", "-t_srs", "EPSG:32632", *of)
    same(picked("o.gpkg"), [1], "5.6 km along the parallel, 8.9 km along the meridian")
    go("-op", "intersects", "-pick", "nearest", "-overwrite", *of)  # all pairs are at distance 0


@once
def check_bearing_of_the_compass():
    around = {0: (0, 5), 45: (3, 3), 90: (5, 0), 180: (0, -5), 270: (-5, 0), 315: (-2, 2)}
    make("p.gpkg", [("POINT (0 0)", {"name": "a"})])
    make("z.gpkg", [(f"POINT ({x} {y})", {"name": str(b)}) for b, (x, y) in around.items()])
    go("-op", "nearest", "-k", 9, "-bearing_field", "o.gpkg", "p.gpkg", "z.gpkg")
    for row in Layer("o.gpkg").rows:
        near(row[2]["join_bearing"], float(row[2]["join_name"]), 1e-12)


# --- places on lines, and relations ----------------------------------------------

PLACE = ("-along_field", "along", "-along_percent_field", "percent", "-offset_field", "offset",
         "-side_field", "side", "-segment_field", "piece", "-line_bearing_field", "course")
PLACES = ("along", "percent", "offset", "side", "piece", "course")


def place_of(p, parts):
    """Finds the place by a loop over the segments. The side is that of the nearest
    segment. This is enough for lines of one or two segments and points beside them.
    Returns (distance along the line, this in percent, distance from the line, negative
    on the right, side, number of the segment, its bearing)."""
    best, so_far, n = None, 0.0, 0
    for part in parts:
        for (ax, ay), (bx, by) in zip(part, part[1:]):
            n += 1
            dx, dy = bx - ax, by - ay
            length = math.hypot(dx, dy)
            t = min(max(((p[0] - ax) * dx + (p[1] - ay) * dy) / length**2, 0), 1)
            d = math.hypot(p[0] - ax - t * dx, p[1] - ay - t * dy)
            cross = dx * (p[1] - ay) - dy * (p[0] - ax)
            if best is None or d < best[0]:
                best = (d, so_far + t * length, cross, n, bearing((ax, ay), (bx, by)))
            so_far += length
    d, along, cross, n, course = best
    side = "on" if d == 0 else "left" if cross > 0 else "right"
    return along, 100 * along / so_far, d if cross >= 0 else -d, side, n, course


def check_places_on_lines():
    r = random.Random(4)
    lines = []
    for i in range(30):
        parts = []
        for _ in range(1 + i % 2):
            x, y = r.uniform(0, 100), r.uniform(0, 100)
            parts.append([(x, y), (x + r.uniform(-20, 20), y + r.uniform(1, 20))])
        lines.append(parts)
    wkt = ["MULTILINESTRING (" + ", ".join("(" + ", ".join(f"{x!r} {y!r}" for x, y in part) + ")" for part in parts) + ")"
           for parts in lines]
    points = [(r.uniform(0, 100), r.uniform(0, 100)) for _ in range(80)]
    make("l.gpkg", [(w, {"name": str(i)}) for i, w in enumerate(wkt)])
    make("p.gpkg", [(f"POINT ({x!r} {y!r})", {"name": str(i)}) for i, (x, y) in enumerate(points)]
         + [(None, {"name": "none"})])
    sides = set()
    for out in ("o.gpkg", "o.fgb", "o.geojson", "o.shp", "o.csv"):
        go("-op", "nearest", "-k", 2, *PLACE, "-unsetFid", "-threads", 1 + len(out) % 2, out, "p.gpkg", "l.gpkg")
        n = 0
        for _, _, v in Layer(out).rows:
            if v["name"] == "none":
                same([v[k] or None for k in PLACES], [None] * 6)
                continue
            n += 1
            expected = place_of(points[int(v["name"])], lines[int(v["join_name"])])
            for k, e in zip(PLACES, expected):
                if k == "side":
                    same(v[k], e)
                    sides.add(e)
                else:
                    near(float(v[k]), e, 1e-9, f"{out} {k}")
            near(abs(float(v["offset"])), float(v["join_dista" if out == "o.shp" else "join_distance"]), 1e-9)
        same(n, 160)
    true(sides >= {"left", "right"}, "a fair trial")
    fields = Layer("o.gpkg").fields
    same([fields[k][0] for k in PLACES], ["Real"] * 3 + ["String", "Integer64", "Real"])
    # -in_place writes equal columns.
    shutil.copy("p.gpkg", "q.gpkg")
    go("-in_place", "-op", "nearest", *PLACE, "q.gpkg", "l.gpkg")
    go("-op", "nearest", *PLACE, "one.gpkg", "p.gpkg", "l.gpkg")
    expected = [r[2] for r in Layer("one.gpkg").rows]
    same([r[2] for r in Layer("q.gpkg").rows], expected)
    r = go("-op", "nearest", *PLACE, "-validate", "-overwrite", "o.gpkg", "p.gpkg", "l.gpkg")
    true("does not check columns" in r.err, str(r))
    # Joins and options with which these columns are not possible.
    fails("-op", "intersects", "-along_field", "a", "x.gpkg", "p.gpkg", "l.gpkg", op=False, message="nearest or dwithin")
    fails("-op", "nearest", "-along_field", "name", "x.gpkg", "p.gpkg", "l.gpkg", op=False, message="name")
    fails("-op", "nearest", "-distance", "hausdorff", "-along_field", "a", "x.gpkg", "p.gpkg", "l.gpkg", op=False,
          message="-distance least")
    fails("-op", "nearest", "-agg", "count", "-side_field", "a", "x.gpkg", "p.gpkg", "l.gpkg", op=False,
          message="no aggregate uses 'a'")


def measure_of(p, parts):
    """Returns M at the first nearest place of the parts, which are lists of (x, y, m or
    None)."""
    best = None
    for part in parts:
        for (ax, ay, am), (bx, by, bm) in zip(part, part[1:]):
            dx, dy = bx - ax, by - ay
            t = min(max(((p[0] - ax) * dx + (p[1] - ay) * dy) / (dx * dx + dy * dy), 0), 1)
            d = math.hypot(p[0] - ax - t * dx, p[1] - ay - t * dy)
            if best is None or d < best[0]:
                m = am if t == 0 else bm if t == 1 else None if None in (am, bm) else am + t * (bm - am)
                best = (d, m)
    return best[1]


def check_measures_from_m():
    """Tests every format that has M values, with and without lanes, in tiles and in
    place."""
    rng = random.Random(8)
    lines, points = [], [(rng.uniform(0, 200), rng.uniform(0, 200)) for _ in range(300)]
    for i in range(400):
        parts = []
        for _ in range(1 + i % 2):
            x, y, m = rng.uniform(0, 200), rng.uniform(0, 200), rng.uniform(-5, 5)
            parts.append([(x, y, m), (x + rng.uniform(-9, 9), y + rng.uniform(1, 9), m + 7), (x + 10, y, m + rng.uniform(8, 20))])
        lines.append(parts)
    def geometry(parts):
        line = ogr.Geometry(ogr.wkbMultiLineStringM)
        for part in parts:
            piece = ogr.Geometry(ogr.wkbLineStringM)
            for x, y, m in part:
                piece.AddPointM(x, y, m)
            line.AddGeometry(piece)
        return line
    make("p.gpkg", [(f"POINT ({x!r} {y!r})", {"name": str(i)}) for i, (x, y) in enumerate(points)])
    rows = [(geometry(parts).ExportToIsoWkt(), {"name": str(i)}) for i, parts in enumerate(lines)]
    for name in ("m.gpkg", "m.fgb", "m.shp", "m.csv"):
        make(name, rows, kind=ogr.wkbMultiLineStringM, lco=["GEOMETRY=AS_WKT"] if name == "m.csv" else [])
    asked = ("-op", "nearest", "-k", 3, "-along_field", "at", "-along", "m", "-along_percent_field", "percent",
             "-join_select", "name", "-crs", "ignore", "-overwrite")
    for name in ("m.gpkg", "m.fgb", "m.shp", "m.csv"):
        rough = 1e-9 if name != "m.csv" else 1e-6  # decimal digits of GDAL's WKT
        for more in ((), ("-memory", "100k"), ("-invalid", "fix"), ("-batch", 17)):
            r = go(*asked, *more, "o.gpkg", "p.gpkg", name)
            same(" tiles" in r.out + r.err, "-memory" in more, str(r))
            found = Layer("o.gpkg").rows
            same(len(found), 900, (name, more))
            for _, _, v in found:
                near(v["at"], measure_of(points[int(v["name"])], lines[int(v["join_name"])]), rough, f"{name} {more}")
            if not more:
                kept = [v["percent"] for _, _, v in found]
            same([v["percent"] for _, _, v in found], kept, (name, more))
        go(*asked, "o.gpkg", "p.gpkg", name, env={"OGRJOIN_LANES": "NO"})
        same([v["at"] for _, _, v in Layer("o.gpkg").rows], [v["at"] for _, _, v in found], name)
    true("no difference" in go(*asked, "-validate", "o.gpkg", "p.gpkg", "m.gpkg").err, "the join is validated")
    # In the records of tiles, the tokens of texts lie behind the M values.
    similar = (*asked, "-similar", "name", "-min_similarity", 0.2)
    go(*similar, "o.gpkg", "p.gpkg", "m.gpkg")
    kept = Layer("o.gpkg").rows
    true(sum(v["at"] is not None for _, _, v in kept) > 100, "pairs of similar names")
    true(" tiles" in go(*similar, "-memory", "100k", "o.gpkg", "p.gpkg", "m.gpkg").err, "tiles")
    same(Layer("o.gpkg").rows, kept)
    # A missing M value gives NULL, and is counted. A layer without any M
    # values is an error.
    make("none.gpkg", [("LINESTRING (0 0, 1 1)", {"name": "a"})])
    make("some.gpkg", [("LINESTRING (0 0, 1 1)", {"name": "a"}), ("LINESTRING M (50 50 1, 60 60 2)", {"name": "b"})])
    r = go("-op", "nearest", "-along_field", "at", "-along", "m", "-overwrite", "o.gpkg", "p.gpkg", "some.gpkg")
    values = {v["join_name"]: set() for _, _, v in Layer("o.gpkg").rows}
    for _, _, v in Layer("o.gpkg").rows:
        values[v["join_name"]].add(v["at"] is None)
    same(values, {"a": {True}, "b": {False}})
    n = sum(v["join_name"] == "a" for _, _, v in Layer("o.gpkg").rows)
    true(f"{n} pairs have no measure, because their lines have no M value there" in r.err, r.err)
    fails("-op", "nearest", "-along_field", "at", "-along", "m", "x.gpkg", "p.gpkg", "none.gpkg", op=False,
          message="no line of the join layer 'none' has M values: write -along length")
    fails("-op", "nearest", "-along_field", "at", "-along", "m", "-memory", "100", "x.gpkg", "p.gpkg", "none.gpkg",
          op=False, message="-along length")
    fails("-op", "nearest", "-along", "m", "x.gpkg", "p.gpkg", "m.gpkg", op=False, message="-along_field")
    fails("-op", "intersects", "-along", "m", "x.gpkg", "p.gpkg", "m.gpkg", op=False, message="nearest or dwithin")
    shutil.copy("p.gpkg", "q.gpkg")
    go("-in_place", "-op", "nearest", "-along_field", "at", "-along", "m", "q.gpkg", "m.gpkg")
    for _, _, v in Layer("q.gpkg").rows:
        near(v["at"], measure_of(points[int(v["name"])], lines[int(v["join_name"])]), 1e-9)


def check_relations_of_pairs():
    """Compares the relation with GDAL's predicates, and the matrix with -relate."""
    inputs_file()
    zones_file("zones.gpkg")
    zones_file("other.gpkg", seed=11)
    lines_file()
    words = ("equals", "contains", "within", "touches", "crosses", "overlaps")
    found = set()
    for left in ("points.gpkg", "lines.gpkg", "other.gpkg", "zones.gpkg"):
        inputs = {r[0]: r[1] and ogr.CreateGeometryFromWkb(r[1]) for r in Layer(left).rows}
        zones = {r[0]: r[1] and ogr.CreateGeometryFromWkb(r[1]) for r in Layer("zones.gpkg").rows}
        for out in ("o.fgb", "o.gpkg"):
            go("-op", "intersects", "-exclude", "same_geometry", "-how", "inner", "-name_count", "n", "-unsetFid",
               "-matrix_field", "m", "-relation_field", "r", "-nln", "o", "-overwrite", out, left, "zones.gpkg")
        rows = Layer("o.gpkg").rows
        same(sorted(str(r[2]) for r in Layer("o.fgb").rows), sorted(str(r[2]) for r in rows))
        matrices = {}
        for _, wkb, v in rows:
            a, b = ogr.CreateGeometryFromWkb(wkb), zones[v["join_fid"]]
            if a.IsValid() and b.IsValid():
                holds = [w for w in words if getattr(a, w.capitalize())(b)]
                same(v["r"], holds[0] if holds else "intersects", f"{a} {b}")
                found.add(v["r"])
            matrices[v["m"]] = matrices.get(v["m"], 0) + 1
        for m, n in sorted(matrices.items())[:4]:
            go("-relate", m, "-exclude", "same_geometry", "-how", "inner", "-nln", "o", "-overwrite", "-unsetFid",
               "s.gpkg", left, "zones.gpkg")
            same(len(Layer("s.gpkg").rows), n, m)
    true(found >= {"within", "crosses", "overlaps"}, str(found))
    fails("-op", "nearest", "-metric", "sphere", "-matrix_field", "m", "x.gpkg", "points.gpkg", "zones.gpkg", op=False,
          message="in the plane")


# --- geometries ------------------------------------------------------------------


def check_geometry_of_the_join_feature():
    inputs_file()
    far_zones_file()
    zones = {r[0]: r[1] for r in Layer("zones.gpkg").rows}
    for out in ("o.gpkg", "o.fgb", "o.geojson"):
        go("-op", "intersects", "-how", "right", "-geometry", "join", out, "points.gpkg", "zones.gpkg")
        for fid, wkb, values in Layer(out).rows:
            if zones[values["join_fid"]] is None:
                same(wkb, None)
            else:
                a, b = (ogr.CreateGeometryFromWkb(w) for w in (wkb, zones[values["join_fid"]]))
                same(a.ExportToWkt(), b.ExportToWkt(), out)
    same(Layer("o.gpkg").kind, ogr.wkbMultiPolygon)
    # Input rows without a pair have no geometry.
    go("-op", "intersects", "-geometry", "join", "l.gpkg", "points.gpkg", "zones.gpkg")
    for fid, wkb, values in Layer("l.gpkg").rows:
        same(wkb is None, values["join_fid"] is None)
    # Single parts become multi-geometries only on request.
    make("s.gpkg", [("POLYGON Z ((0 0 1, 2e6 0 1, 2e6 2e6 1, 0 2e6 1, 0 0 1))", {"name": "a"})],
         kind=ogr.wkbPolygon25D)
    for words, kind in (((), ogr.wkbPolygon), (("-nlt", "PROMOTE_TO_MULTI"), ogr.wkbMultiPolygon)):
        go("-op", "within", "-geometry", "join", *words, "-overwrite", "o.gpkg", "points.gpkg", "s.gpkg")
        got = Layer("o.gpkg")
        same(got.kind, kind)
        same({s.GetGeometryType() for s in got.shapes() if s is not None}, {kind})


def check_intersections_of_one_kind():
    """With -nlt POLYGON, LINESTRING or POINT, intersections keep only parts of this kind. A
    pair without such a part is dropped."""
    square = "POLYGON (({0} {1}, {2} {1}, {2} {3}, {0} {3}, {0} {1}))".format
    make("a.gpkg", [(square(0, 0, 10, 10), {"name": "meets"}), (square(20, 0, 30, 10), {"name": "touches"}),
                    (square(90, 90, 95, 95), {"name": "none"})])
    two = f"MULTIPOLYGON ({square(5, 5, 12, 12)[8:]}, {square(-5, 0, 0, 4)[8:]})"  # a part, and an edge
    make("b.gpkg", [(two, {"b": "part and edge"}), (square(30, 2, 40, 4), {"b": "edge"}),
                    (square(10, -5, 15, 0), {"b": "corner"})], [("b", ogr.OFTString)])
    both = [("meets", "corner"), ("meets", "part and edge"), ("touches", "edge")]
    for kind, pairs, shape in (
        ("POLYGON", [("meets", "part and edge")], "MULTIPOLYGON"),
        ("LINESTRING", [("meets", "part and edge"), ("touches", "edge")], "MULTILINESTRING"),
        ("POINT", [("meets", "corner")], "MULTIPOINT"),
    ):
        for name in (f"{kind}.{end}" for end in ("gpkg", "fgb", "shp", "geojson")):
            go("-op", "intersects", "-how", "inner", "-geometry", "intersection", "-nlt", kind, "-overwrite",
               "-name_count", "n", name, "a.gpkg", "b.gpkg")
            got = Layer(name)
            same(sorted((row[2]["name"], row[2]["b"]) for row in got.rows), pairs, f"{kind} {name}")
            same({s.GetGeometryName().replace("MULTI", "") for s in got.shapes()}, {shape[5:]}, name)
            if name.endswith(("gpkg", "fgb")):
                same({s.GetGeometryName() for s in got.shapes()}, {shape}, name)
        # a row whose pairs are all dropped counts as unmatched, on either side
        go("-op", "intersects", "-geometry", "intersection", "-nlt", kind, "-overwrite", "-how", "full", "f.gpkg",
           "a.gpkg", "b.gpkg")
        rows = [(row[2]["name"], row[2]["b"]) for row in Layer("f.gpkg").rows]
        want = pairs + [(a, None) for a in ("meets", "touches", "none") if a not in dict(pairs)]
        want += [(None, b) for _, b in both if b not in [p[1] for p in pairs]]
        same(sorted(map(str, rows)), sorted(map(str, want)), kind)
        go("-op", "intersects", "-how", "inner", "-geometry", "intersection", "-nlt", kind, "-overwrite",
           "-unmatched_layer", "left", "-unmatched_join_layer", "other", "-json_summary", "summary.json", "u.gpkg",
           "a.gpkg", "b.gpkg")
        rest = sorted(a for a in ("meets", "touches", "none") if a not in dict(pairs))
        same(sorted(Layer("u.gpkg", "left").column("name")), rest, kind)
        counts = summary()
        same([counts[name] for name in ("matched", "unmatched", "pairs", "pairs_joined")],
             [3 - len(rest), len(rest), len(pairs), len(both)], f"the summary of {kind}")
        same({s.GetGeometryName() for s in Layer("u.gpkg", "left").shapes()}, {"POLYGON"}, "as they are")
        same(sorted(Layer("u.gpkg", "other").column("b")),
             sorted(b for _, b in both if b not in [p[1] for p in pairs]), kind)


def check_intersections_as_shapefile():
    zones_file("a.gpkg", n=25, seed=3)
    far_zones_file()
    r = go("-op", "intersects", "-how", "inner", "-geometry", "intersection", "-overlap", "area",
           "o.shp", "a.gpkg", "zones.gpkg")
    true("left out" in r.err, str(r))
    same({s.GetGeometryName() for s in Layer("o.shp").shapes()} - {"POLYGON", "MULTIPOLYGON"}, set())


@once
def check_intersections_that_geos_cannot_make():
    """GEOS cannot compute the intersection with a bow tie. The row stays, its overlap
    is NULL, and a warning counts it."""
    make("a.gpkg", [("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))", {"name": "bow"})])
    make("z.gpkg", [("POLYGON ((1 -1, 9 -1, 9 9, 1 9, 1 -1))", {"name": "box"}),
                    ("GEOMETRYCOLLECTION (POINT (1 1), POLYGON ((0 0, 3 0, 3 3, 0 0)))", {"name": "c"})])
    r = go("-op", "bbox", "-overlap", "area", "-geometry", "intersection", "o.gpkg", "a.gpkg", "z.gpkg")
    true("is unknown" in r.err, str(r))
    got = Layer("o.gpkg").rows
    same(len(got), 2)
    unknown = [r for r in got if r[2]["overlap_area"] is None]
    true(unknown and all(r[1] is None for r in unknown), str(got))


@once
def check_rows_without_a_pair_have_no_geometry_of_pairs():
    """Rows without a pair have a geometry only with -geometry input and join, as
    driver/docs/joins.md says."""
    box = "POLYGON (({0} 0, {1} 0, {1} 9, {0} 9, {0} 0))"
    make("a.gpkg", [(box.format(0, 9), {"name": "a"}), (box.format(50, 59), {"name": "alone"})])
    make("z.gpkg", [(box.format(5, 14), {"name": "z"}), (box.format(90, 99), {"name": "far"})])
    for geometry, has in (("intersection", [True, False, False]), ("input", [True, True, True]),
                          ("join", [True, False, True])):
        go("-how", "full", "-geometry", geometry, "-overwrite", "o.gpkg", "a.gpkg", "z.gpkg")
        rows = [(r[2]["name"], r[2]["join_name"], r[1] is not None) for r in Layer("o.gpkg").rows]
        same(rows, [("a", "z", has[0]), ("alone", None, has[1]), (None, "far", has[2])], geometry)


@once
def check_unknown_overlaps_are_counted():
    """Unknown overlaps are counted by pairs, unknown covered parts by rows. Here one
    box intersects a bow tie, two other boxes and a line, and so does a bow tie. Lengths
    are measured by GEOS where a row has a line among its features."""
    bow = "POLYGON ((0 0, 10 10, 10 0, 0 10, 0 0))"
    box = "POLYGON (({0} {0}, {1} {0}, {1} {1}, {0} {1}, {0} {0}))"
    make("a.gpkg", [(box.format(0, 10), {"name": "box"}), (box.format(20, 30), {"name": "apart"}),
                    (bow, {"name": "bow"})])
    make("z.gpkg", [(bow, {"name": "bow"}), (box.format(1, 9), {"name": "b"}),
                    (box.format(2, 12), {"name": "c"}), (box.format(21, 22), {"name": "d"}),
                    ("LINESTRING (1 5, 3 5)", {"name": "line"})])
    pairs, rows = "the overlap of 5 pairs", "the covered part of 2 rows"
    for words, message in ((("-overlap", "area"), f"{pairs} is unknown"),
                        (("-agg", "covered_length, covered_area, count"), f"{rows} is unknown"),
                        (("-agg", "covered_length, covered_area, sum(overlap_area)"), f"{pairs} and {rows} are unknown")):
        r = go(*words, "-overwrite", "o.gpkg", "a.gpkg", "z.gpkg")
        true(f"{message}, because GEOS cannot compute the intersection" in r.err, f"{words}: {r}")
    got = Layer("o.gpkg")
    same([length is None for length in got.column("covered_length")], [True, False, True])
    beside_lengths = got.column("covered_area")
    # Areas need no valid polygons. A part is what its rings enclose by the
    # even-odd rule.
    go("-agg", "covered_area, covered_percent", "-overwrite", "o.gpkg", "a.gpkg", "z.gpkg")
    bows = [ogr.CreateGeometryFromWkt(f"POLYGON (({x} 0, 5 5, {x} 10, {x} 0))") for x in (0, 10)]
    bow = bows[0].Union(bows[1])
    others = [ogr.CreateGeometryFromWkt(box.format(*ends)) for ends in ((1, 9), (2, 12))]
    united = others[0].Union(others[1]).Union(bow)
    first = united.Intersection(ogr.CreateGeometryFromWkt(box.format(0, 10))).GetArea()
    for got, expected in zip(Layer("o.gpkg").column("covered_area"), (first, 1, 50)):
        near(got, expected, 1e-9)
    same(beside_lengths, Layer("o.gpkg").column("covered_area"))


if __name__ == "__main__":
    main(globals())
