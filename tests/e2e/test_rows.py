"""Which rows are written, and what is in them: -how, -pick, -overlap, nearest
points, geometries, names, layers of what matches nothing. Answers are found
again by asking GEOS, through OGR, about every pair."""

from e2e import *

FIELDS = (("name", ogr.OFTString), ("v", ogr.OFTInteger), ("big", ogr.OFTInteger64))


def star(r, x, y, size):
    """A ring around x, y that turns in and out."""
    n = r.randint(5, 12)
    corners = []
    for k in range(n):
        a, b = 2 * math.pi * k / n, size * r.uniform(0.4, 1)
        corners.append(f"{x + b * math.cos(a)!r} {y + b * math.sin(a)!r}")
    return "(" + ", ".join([*corners, corners[0]]) + ")"


def zones_file(path="zones.gpkg", n=30, seed=7, **how):
    """Polygons that overlap, some with a hole or a second part, with values that
    tie and are missing."""
    r = random.Random(seed)
    rows = []
    for i in range(n):
        x, y = 980000 + r.uniform(0, 400), 200000 + r.uniform(0, 400)
        parts = [f"({star(r, x, y, r.uniform(20, 90))})"]
        if i % 3 == 1:
            parts[0] = f"({star(r, x, y, 80)}, {star(r, x, y, 25)})"
        if i % 3 == 2:
            parts.append(f"({star(r, x + 300, y, 60)})")
        # above 2^53 doubles would lose what tells the values apart
        values = {"name": f"z{i}", "v": 1 + i % 5 if i % 4 else None, "big": 2**60 + i % 7}
        rows.append((f"MULTIPOLYGON ({', '.join(parts)})", values))
    rows.append((None, {"name": "empty", "v": 99, "big": 0}))
    return make(path, rows, FIELDS, kind=ogr.wkbMultiPolygon, **how)


def far_zones_file(path="zones.gpkg", **how):
    """The same with zones that nothing reaches."""
    zones_file("near.gpkg")
    rows = [(r[1] and ogr.CreateGeometryFromWkb(r[1]), r[2]) for r in Layer("near.gpkg").rows]
    for i in range(3):
        wkt = f"MULTIPOLYGON (((0 {i}, 1 {i}, 1 {i + 0.5}, 0 {i})))"
        rows.append((wkt, {"name": f"far{i}", "v": -1, "big": 1}))
    return make(path, rows, FIELDS, kind=ogr.wkbMultiPolygon, **how)


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
    """(FID, geometry or None, values) of a layer."""
    return [
        (fid, ogr.CreateGeometryFromWkb(wkb) if wkb else None, values)
        for fid, wkb, values in Layer(path).rows
    ]


def area_of(shape):
    return shape.Area() if shape.GetDimension() == 2 else 0.0


def pairs_of(inputs, joins, test=lambda a, b: a.Intersects(b)):
    """For each row of inputs the places in joins, in their order."""
    return [
        [j for j, (_, b, _) in enumerate(joins) if a is not None and b is not None and test(a, b)]
        for _, a, _ in inputs
    ]


def go(*words, **how):
    """Must end well. What -overwrite meets goes first, all its layers."""
    if "-overwrite" in words and os.path.exists(words[-3]):
        os.remove(words[-3])
    r = run(*words, **how)
    true(r.rc == 0 and "ERROR" not in r.err, f"should succeed: {r}")
    return r


# --- who is kept ------------------------------------------------------------

FORMATS = {
    "gpkg": (),
    "sqlite": (),
    "fgb": ("-lco", "SPATIAL_INDEX=NO"),
    "geojson": (),
    "csv": ("-lco", "GEOMETRY=AS_WKT"),
}


def rows_of(path, key="id", other="join_fid"):
    def number(value):
        return None if value in (None, "") else int(value)

    return [(number(r[2][key]), number(r[2][other])) for r in Layer(path).rows]


def check_every_how():
    inputs_file()
    far_zones_file()
    inputs, zones = shapes("points.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(inputs, zones)
    matched = {j for row in pairs for j in row}
    inner = [(inputs[i][2]["id"], zones[j][0]) for i, row in enumerate(pairs) for j in row]
    left = [
        (inputs[i][2]["id"], zones[j][0] if j is not None else None)
        for i, row in enumerate(pairs)
        for j in (row or [None])
    ]
    rest = [(None, z[0]) for j, z in enumerate(zones) if j not in matched]
    true(len(inner) > 20 and len(rest) > 3 and len(left) > len(inner), "a fair trial")
    for format, words in FORMATS.items():
        for how, expected in (
            ("left", left),
            ("inner", inner),
            ("right", inner + rest),
            ("full", left + rest),
        ):
            out = f"{how}.{format}"
            go("-op", "intersects", "-how", how, *words, out, "points.gpkg", "zones.gpkg")
            got = rows_of(out)
            if format == "fgb":  # it drops rows without geometry
                lost = {zones[j][0] for j in range(len(zones)) if zones[j][1] is None}
                expected = [e for e in expected if e[0] != 1000 and (e[0] is not None or e[1] not in lost)]
            same(got, expected, f"{how} {format}")
    # The rows of both kinds are whole.
    for fid, wkb, values in Layer("full.gpkg").rows[len(left):]:
        zone = next(z for z in zones if z[0] == values["join_fid"])
        same([values[k] for k in ("name", "v", "big")], [zone[2][k] for k in ("name", "v", "big")])
        same(values["id"], None)
        same(wkb, bytes(zone[1].ExportToIsoWkb()) if zone[1] else None)
    for how, keep in (("semi", True), ("anti", False)):
        go("-op", "intersects", "-how", how, f"{how}.gpkg", "points.gpkg", "zones.gpkg")
        got = Layer(f"{how}.gpkg")
        same(list(got.fields), ["id"])
        same(got.column("id"), [inputs[i][2]["id"] for i, row in enumerate(pairs) if bool(row) == keep])


def check_how_as_shapefile():
    inputs_file()
    far_zones_file()
    # Points and polygons cannot be rows of one Shapefile.
    for how in ("right", "full"):
        fails("-op", "intersects", "-how", how, "o.shp", "points.gpkg", "zones.gpkg",
              op=False, says=["Shapefile", "geometry type", "GPKG"])
    zones_file("other.gpkg", seed=8)
    go("-op", "intersects", "-how", "full", "o.shp", "other.gpkg", "zones.gpkg")
    a, b = shapes("other.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(a, b)
    n_left = sum(max(1, len(row)) for row in pairs)
    n_rest = len(b) - len({j for row in pairs for j in row})
    same(len(Layer("o.shp").rows), n_left + n_rest)
    # With one geometry for all rows there is no clash.
    go("-op", "intersects", "-how", "full", "-geometry", "join", "j.shp", "points.gpkg", "zones.gpkg")


def check_nearest_right_and_full_keep_fids_apart():
    inputs_file()
    far_zones_file()
    words = ("-op", "nearest", "-max_distance", 30)
    go(*words, "-how", "full", "o.gpkg", "points.gpkg", "zones.gpkg")
    got, before = Layer("o.gpkg").rows, Layer("points.gpkg").rows
    same([r[0] for r in got[: len(before)]], [r[0] for r in before], "FIDs of the input")
    same(len({r[0] for r in got}), len(got), "each FID once")
    matched = {r[2]["join_fid"] for r in got[: len(before)]} - {None}
    rest = [r[2]["join_fid"] for r in got[len(before):]]
    same(rest, [z[0] for z in Layer("zones.gpkg").rows if z[0] not in matched])
    same({r[2]["join_distance"] for r in got[len(before):]}, {None})
    # A property called id would be taken for the FID by GDAL's GeoJSON reader.
    zones_file("other.gpkg", seed=8)
    for out in ("o.sqlite", "o.geojson", "o.geojsonl", "o.csv"):
        go(*words, "-how", "full", out, "other.gpkg", "zones.gpkg")
        fids = [r[0] for r in Layer(out).rows]
        same(len(set(fids)), len(fids), f"each FID once, {out}")
    go(*words, "-how", "right", "r.gpkg", "points.gpkg", "zones.gpkg")
    same(rows_of("r.gpkg"), [x for x in rows_of("o.gpkg") if x[1] is not None])


def check_full_with_reprojection_filters_and_batches():
    inputs_file()
    far_zones_file()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("z4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="z4326")
    dataset = None
    words = ("-op", "intersects", "-how", "full", "-join_where", "v IS NOT NULL")
    go(*words, "a.gpkg", "points.gpkg", "zones.gpkg")
    go(*words, "b.gpkg", "points.gpkg", "z4326.gpkg")
    same(rows_of("b.gpkg"), rows_of("a.gpkg"))
    for a, b in zip(Layer("a.gpkg").shapes(), Layer("b.gpkg").shapes()):
        same(a is None, b is None)
        true(a is None or a.Centroid().Distance(b.Centroid()) < 0.01, "in the CRS of the input")
    go(*words, "-batch", 7, "-threads", 1, "c.gpkg", "points.gpkg", "zones.gpkg")
    same(dump("c.gpkg", "points"), dump("a.gpkg", "points"))


# --- layers of what matches nothing ------------------------------------------


def unmatched_answer():
    inputs, zones = shapes("points.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(inputs, zones)
    used = {j for row in pairs for j in row}
    return (
        [inputs[i][2] for i, row in enumerate(pairs) if not row],
        [z[2] for j, z in enumerate(zones) if j not in used],
    )


def check_unmatched_layers():
    inputs_file()
    far_zones_file()
    alone, zones_alone = unmatched_answer()
    both = ("-unmatched_layer", "lonely", "-unmatched_join_layer", "empty_zones")
    for out in ("o.gpkg", "o.sqlite", "o.xlsx"):
        r = go("-op", "intersects", "-how", "inner", *both, out, "points.gpkg", "zones.gpkg")
        true(f"{len(alone)} rows" in r.err and f"{len(zones_alone)} rows" in r.err, str(r))
        same([r[2] for r in Layer(out, "lonely").rows], alone, out)
        same([r[2] for r in Layer(out, "empty_zones").rows], zones_alone, out)
        true(len(Layer(out, "points").rows) > 0, out)
    # FIDs and geometries are those of the sides.
    got, before = Layer("o.gpkg", "empty_zones").rows, {r[0]: r for r in Layer("zones.gpkg").rows}
    same(got, [before[r[0]] for r in got])
    # Any -how: what matches nothing is the same.
    go("-op", "intersects", "-how", "full", *both, "f.gpkg", "points.gpkg", "zones.gpkg")
    for layer in ("lonely", "empty_zones"):
        same(dump("f.gpkg", layer), dump("o.gpkg", layer))
    # Only one of the two, and with -pick.
    go("-op", "intersects", "-pick", "first", "-unmatched_join_layer", "e",
       "p.gpkg", "points.gpkg", "zones.gpkg")
    same(sorted(Layer("p.gpkg").layers), ["e", "points"])
    same([r[2] for r in Layer("p.gpkg", "e").rows], zones_alone)


def check_unmatched_layers_as_files():
    inputs_file()
    far_zones_file()
    alone, zones_alone = unmatched_answer()
    both = ("-unmatched_layer", "lonely", "-unmatched_join_layer", "empty_zones")
    for end in ("shp", "csv"):
        words = ("-op", "intersects", *both, f"o.{end}", "points.gpkg", "zones.gpkg")
        go(*words)
        same(len(Layer(f"lonely.{end}").rows), len(alone))
        same([int(v or -99) for v in Layer(f"empty_zones.{end}").column("v")],
             [-99 if z["v"] is None else z["v"] for z in zones_alone])
        fails(*words, op=False, says="overwrite")
        r = run("-overwrite", *words)
        true(r.rc == 0, str(r))
        same(len(Layer(f"lonely.{end}").rows), len(alone))
        # A file in the way of the second layer only.
        os.remove(f"o.{end}")
        fails(*words, op=False, says=["lonely", "overwrite"])


def check_unmatched_layers_in_a_folder():
    inputs_file()
    far_zones_file()
    alone, zones_alone = unmatched_answer()
    go("-f", "ESRI Shapefile", "-op", "intersects", "-unmatched_layer", "lonely",
       "-unmatched_join_layer", "empty_zones", "out", "points.gpkg", "zones.gpkg")
    same(sorted(Layer("out").layers), ["empty_zones", "lonely", "points"])
    same(len(Layer("out", "lonely").rows), len(alone))
    same(len(Layer("out", "empty_zones").rows), len(zones_alone))


def check_unmatched_layers_in_a_dataset():
    inputs_file()
    far_zones_file()
    alone, _ = unmatched_answer()
    make("o.gpkg", [("POINT (0 0)", {"name": "keep"})], layer="other")
    words = ("-op", "intersects", "-unmatched_layer", "lonely", "o.gpkg", "points.gpkg", "zones.gpkg")
    go("-update", *words)
    same(sorted(Layer("o.gpkg").layers), ["lonely", "other", "points"])
    fails("-update", *words, op=False, says="already")
    fails("-update", "-nln", "p2", *words, op=False, says=["lonely", "already"])
    r = run("-overwrite", *words)
    true(r.rc == 0, str(r))
    same(len(Layer("o.gpkg", "lonely").rows), len(alone))
    same(Layer("o.gpkg", "other").column("name"), ["keep"])
    go("-append", *words)
    same(len(Layer("o.gpkg", "lonely").rows), 2 * len(alone))


def check_unmatched_layers_refused():
    inputs_file()
    zones_file()
    for out in ("o.fgb", "o.geojson", "/vsistdout/"):
        fails("-op", "intersects", "-unmatched_layer", "u", *(("-f", "GeoJSON") if out[0] == "/" else ()),
              out, "points.gpkg", "zones.gpkg", op=False, says="unmatched_layer")
    for words, says in (
        (("-unmatched_layer", "points"), "points"),
        (("-unmatched_layer", "u", "-unmatched_join_layer", "U"), "U"),
        (("-unmatched_layer", ""), "name"),
        (("-unmatched_join_layer", "u", "-how", "anti"), "anti"),
    ):
        fails("-op", "intersects", *words, "o.gpkg", "points.gpkg", "zones.gpkg", op=False, says=says)


# --- one of a row's pairs -----------------------------------------------------


def picked(path):
    return [None if r[2]["join_fid"] is None else r[2]["join_fid"] for r in Layer(path).rows]


def best(pairs, joins, score):
    """The greatest score, of equal ones the first; None loses."""
    answer = []
    for i, row in enumerate(pairs):
        found = None
        for j in row:
            s = score(i, j)
            if found is None or (s is not None and (found[0] is None or s > found[0])):
                found = (s, joins[j][0])
        answer.append(None if found is None else found[1])
    return answer


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
        ("2021/01/01 01:00:00+01", "2020/12/31", 0.0, "b"),  # the same as 00:00 UTC
        (None, None, float("nan"), "c"),
        ("2019/02/28 00:00:00+00", "2020/12/31", -1.5e-300, "d"),
    ]
    make("z.gpkg", [(square, dict(zip(("at", "on", "r", "t"), t))) for t in times], fields)
    for rule, fid in (("max:at", 2), ("min:at", 4), ("max:on", 1), ("min:on", 2),
                      ("max:r", 1), ("min:r", 4)):
        go("-op", "within", "-pick", rule, "-overwrite", "o.gpkg", "p.gpkg", "z.gpkg")
        same(picked("o.gpkg"), [fid], rule)
    fails("-op", "within", "-pick", "max:t", "o2.gpkg", "p.gpkg", "z.gpkg", op=False, says=["t", "String"])
    fails("-op", "within", "-pick", "max:none", "o2.gpkg", "p.gpkg", "z.gpkg", op=False, says=["none", "pick"])
    fails("-op", "within", "-pick", "best", "o2.gpkg", "p.gpkg", "z.gpkg", op=False, says=["best", "first"])


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
    # of those within a distance, the measure decides
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
    # Without a measure there is no distance; with one there is.
    true("join_distance" not in Layer("c.gpkg").fields, "no distance")
    go("-op", "dwithin", "-max_distance", 10, "d.gpkg", "points.gpkg", "zones.gpkg")
    true("join_distance" in Layer("d.gpkg").fields, "a distance")
    for words, says in (
        (("-op", "nearest", "-name_fid", "ID"), ["name_fid", "ID"]),
        (("-op", "nearest", "-name_fid", "x", "-name_distance", "X"), ["name_distance", "X"]),
        (("-op", "intersects", "-name_distance", "d"), "distance"),
        (("-op", "intersects", "-name_rank", "d"), "rank"),
        (("-op", "intersects", "-overlap", "volume"), "volume"),
    ):
        fails(*words, "e.gpkg", "points.gpkg", "zones.gpkg", op=False, says=says)


def check_overlap_values():
    """All pairs, three kinds of input, against GEOS."""
    inputs_file()
    lines_file()
    zones_file("a.gpkg", n=25, seed=3)
    far_zones_file()
    zones = {z[0]: z[1] for z in shapes("zones.gpkg")}
    for name in ("points", "lines", "a"):
        inputs = shapes(f"{name}.gpkg")
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
    inputs_file()
    lines_file()
    zones_file("a.gpkg", n=25, seed=3)
    far_zones_file()
    zones = {z[0]: z[1] for z in shapes("zones.gpkg")}
    for name in ("points", "lines", "a"):
        inputs = shapes(f"{name}.gpkg")
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
          op=False, says="sphere")


def check_bearing_of_the_compass():
    around = {0: (0, 5), 45: (3, 3), 90: (5, 0), 180: (0, -5), 270: (-5, 0), 315: (-2, 2)}
    make("p.gpkg", [("POINT (0 0)", {"name": "a"})])
    make("z.gpkg", [(f"POINT ({x} {y})", {"name": str(b)}) for b, (x, y) in around.items()])
    go("-op", "nearest", "-k", 9, "-bearing_field", "o.gpkg", "p.gpkg", "z.gpkg")
    for row in Layer("o.gpkg").rows:
        near(row[2]["join_bearing"], float(row[2]["join_name"]), 1e-12)


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
    # Input rows without a pair have none.
    go("-op", "intersects", "-geometry", "join", "l.gpkg", "points.gpkg", "zones.gpkg")
    for fid, wkb, values in Layer("l.gpkg").rows:
        same(wkb is None, values["join_fid"] is None)
    # Single parts are promoted, and only on demand.
    make("s.gpkg", [("POLYGON Z ((0 0 1, 2e6 0 1, 2e6 2e6 1, 0 2e6 1, 0 0 1))", {"name": "a"})],
         kind=ogr.wkbPolygon25D)
    for words, kind in (((), ogr.wkbPolygon), (("-nlt", "PROMOTE_TO_MULTI"), ogr.wkbMultiPolygon)):
        go("-op", "within", "-geometry", "join", *words, "-overwrite", "o.gpkg", "points.gpkg", "s.gpkg")
        got = Layer("o.gpkg")
        same(got.kind, kind)
        same({s.GetGeometryType() for s in got.shapes() if s is not None}, {kind})


def check_intersections_as_shapefile():
    zones_file("a.gpkg", n=25, seed=3)
    far_zones_file()
    r = go("-op", "intersects", "-how", "inner", "-geometry", "intersection", "-overlap", "area",
           "o.shp", "a.gpkg", "zones.gpkg")
    true("left out" in r.err, str(r))
    same({s.GetGeometryName() for s in Layer("o.shp").shapes()} - {"POLYGON", "MULTIPOLYGON"}, set())


def check_intersections_that_geos_cannot_make():
    """A bow tie: the row stays, its overlap is not known, and a line says so."""
    make("a.gpkg", [("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))", {"name": "bow"})])
    make("z.gpkg", [("POLYGON ((1 -1, 9 -1, 9 9, 1 9, 1 -1))", {"name": "box"}),
                    ("GEOMETRYCOLLECTION (POINT (1 1), POLYGON ((0 0, 3 0, 3 3, 0 0)))", {"name": "c"})])
    r = go("-op", "bbox", "-overlap", "area", "-geometry", "intersection", "o.gpkg", "a.gpkg", "z.gpkg")
    true("is not known" in r.err, str(r))
    got = Layer("o.gpkg").rows
    same(len(got), 2)
    unknown = [r for r in got if r[2]["overlap_area"] is None]
    true(unknown and all(r[1] is None for r in unknown), str(got))


# --- real layers -------------------------------------------------------------------


def check_real_layers():
    data = need_data("nyc_small.gpkg")
    names = Layer(data).layers
    a, b = "tracts", "taxi_zones"
    if a not in names or b not in names:
        raise Skip("other layers")
    go("-op", "intersects", "-pick", "largest_overlap", "-overlap", "area,percent", "-input_layer", a,
       "-join_layer", b, "-unmatched_join_layer", "alone", "o.gpkg", data, data)
    inputs = Layer(data, a)
    left = inputs.shapes()
    right = [(r[0], s) for r, s in zip(Layer(data, b).rows, Layer(data, b).shapes())]
    got = Layer("o.gpkg", a)
    same(len(got.rows), len(left))
    used, n_compared = set(), 0
    for shape, row in zip(left, got.rows):
        box = shape.GetEnvelope()
        found, is_known = [], True
        for fid, other in right:
            e = other.GetEnvelope()
            if e[0] > box[1] or e[1] < box[0] or e[2] > box[3] or e[3] < box[2]:
                continue
            try:
                if shape.Intersects(other):
                    found.append((area_of(shape.Intersection(other)), fid))
                    used.add(fid)
            except RuntimeError:  # GEOS cannot say
                is_known = False
        if not is_known:
            continue
        n_compared += 1
        if not found:
            same(row[2]["join_fid"], None)
            continue
        most = max(f[0] for f in found)
        near(row[2]["overlap_area"], most, 1e-6 * max(most, 1), f"FID {row[0]}")
    alone = {r[0] for r in Layer("o.gpkg", "alone").rows}
    true(not (alone & used), "what matches is not alone")
    true(n_compared > 100, f"a fair trial: {n_compared}")


# --- in place -------------------------------------------------------------------------


def check_in_place():
    far_zones_file()
    for rule in ("first", "max:v"):
        inputs_file("p.gpkg")
        words = ("-op", "intersects", "-pick", rule, "-name_count", "n", "-nearest_point_fields")
        go(*words, "-overwrite", "o.gpkg", "p.gpkg", "zones.gpkg")
        go(*words, "-in_place", "p.gpkg", "zones.gpkg")
        same(dump("p.gpkg"), dump("o.gpkg", "p"), rule)
        go(*words, "-in_place", "p.gpkg", "zones.gpkg")  # refreshed, not added again
        same(dump("p.gpkg"), dump("o.gpkg", "p"), rule)
    lines_file()
    go("-op", "nearest", "-bearing_field", "-overlap", "length", "-overwrite", "o.gpkg", "lines.gpkg", "zones.gpkg")
    go("-op", "nearest", "-bearing_field", "-overlap", "length", "-in_place", "lines.gpkg", "zones.gpkg")
    same(dump("lines.gpkg"), dump("o.gpkg", "lines"))
    fails("-op", "intersects", "-in_place", "lines.gpkg", "zones.gpkg", op=False, says="-pick")


def check_nothing_is_left_behind():
    inputs_file()
    zones_file()
    make("mixed.gpkg", [("POINT (980001 200001)", {"name": "a"})])
    # A format that cannot hold the fields, found out after the join side is read.
    rows = [("POLYGON ((0 0, 2e6 0, 2e6 2e6, 0 0))", {"l": ["a", "b"]})]
    make("lists.geojson", rows, (("l", ogr.OFTStringList),), srs=None)
    for words in (
        ("-op", "intersects", "-unmatched_layer", "a/b", "o.csv", "points.gpkg", "zones.gpkg"),
        ("-op", "intersects", "-unmatched_layer", "u", "missing/o.gpkg", "points.gpkg", "zones.gpkg"),
        ("-op", "intersects", "-max_pairs", 3, "-how", "full", "-unmatched_layer", "u",
         "o.gpkg", "points.gpkg", "zones.gpkg"),
        ("-op", "intersects", "-max_pairs", 3, "-unmatched_layer", "u", "o.shp", "points.gpkg", "zones.gpkg"),
    ):
        fails(*words, op=False)


if __name__ == "__main__":
    main(globals())
