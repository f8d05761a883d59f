"""Missing, empty, NaN, repeated, curved and invalid geometries in files.  They are
counted and reported, and do not affect other rows."""

import re

from e2e import *

NAN = ogr.Geometry(ogr.wkbPoint)
NAN.AddPoint_2D(math.nan, 5.0)


def lots(rows, path="lots.gpkg", **how):
    return make(path, [(shape, {"use": f"u{i}"}) for i, shape in enumerate(rows)],
                fields=(("use", ogr.OFTString),), **how)


def points(rows, path="points.gpkg", **how):
    return make(path, [(shape, {"name": f"p{i}"}) for i, shape in enumerate(rows)],
                **how)


def check_input_without_geometry():
    points(["POINT (0 0)", None, "POINT EMPTY", NAN, "MULTIPOINT EMPTY",
            "POINT (1 1)", "GEOMETRYCOLLECTION EMPTY"])
    lots(["POINT (0 1)"])
    for batch in (1, 3, 100):
        r = join("o.gpkg", "points.gpkg", "lots.gpkg", "-json_summary", "s.json",
                 "-overwrite", "-batch", batch)
        got = Layer("o.gpkg")
        same(got.column("use"), ["u0", None, None, None, None, "u0", None])
        same(got.column("name"), [f"p{i}" for i in range(7)])
        s = summary("s.json")
        same((s["rows_in"], s["matched"], s["unmatched"]), (7, 2, 5))
        skipped = s["input"]["skipped"]
        same(sum(skipped.values()), 5, str(skipped))
        same(skipped["null"], 1)
        true("5 skipped" in r.err and "1 without geometry" in r.err, str(r))
    for how, names in (("inner", ["p0", "p5"]), ("semi", ["p0", "p5"]),
                       ("anti", ["p1", "p2", "p3", "p4", "p6"])):
        join("-how", how, f"{how}.gpkg", "points.gpkg", "lots.gpkg")
        same(Layer(f"{how}.gpkg").column("name"), names, how)


def check_join_side_without_geometry():
    points(["POINT (0 0)"])
    lots([None, "POINT EMPTY", NAN, "POLYGON EMPTY", "LINESTRING EMPTY",
          "GEOMETRYCOLLECTION EMPTY", "POINT (3 4)"])
    for backend in ("cpu", "geos", "spatialindex", "quadrant"):
        r = join("-backend", backend, "-k", 5, "o.gpkg", "points.gpkg", "lots.gpkg",
                 "-overwrite", "-json_summary", "s.json")
        got = Layer("o.gpkg")
        same(got.column("use"), ["u6"], backend)
        same(got.column("join_distance"), [5.0])
        same(sum(summary("s.json")["join"]["skipped"].values()), 6)
        true("6 skipped" in r.err and "join layer" in r.err, str(r))


def check_empty_members():

    def several(kind, *members):
        found = ogr.Geometry(kind)
        for member in members:
            found.AddGeometry(ogr.CreateGeometryFromWkt(member))
        return found

    points([several(ogr.wkbMultiPoint, "POINT EMPTY", "POINT (0 0)"),
            "MULTIPOINT (9 9, 1 1)"])
    lots([several(ogr.wkbMultiPolygon, "POLYGON EMPTY", "POLYGON ((2 1, 6 0, 6 1, 2 1))"),
          several(ogr.wkbGeometryCollection, "POINT EMPTY", "LINESTRING (1 2, 1 3)")])
    r = join("o.gpkg", "points.gpkg", "lots.gpkg")
    same(Layer("o.gpkg").column("join_distance"), [math.sqrt(5), 1.0])
    true("empty members" in r.err, str(r))


def check_flatgeobuf_drops_rows():
    """FlatGeobuf cannot hold rows without geometry. The number of dropped rows is
    reported."""
    points(["POINT (0 0)", None, None, "POINT (1 1)"])
    lots(["POINT (0 1)"])
    r = run("-op", "nearest", "try.fgb", "points.gpkg", "lots.gpkg")
    if r.rc == 1 and "NULL geometry" in r.err:
        return  # later versions of GDAL refuse such a row with this message
    r = join("o.fgb", "points.gpkg", "lots.gpkg", "-json_summary", "s.json")
    n = len(Layer("o.fgb").rows)
    s = summary("s.json")
    same(s["rows_left_out"], 4 - n)
    same(s["rows_counted_after_closing"], n)
    true(n == 4 or ("2 rows without geometry were left out" in r.err and "GPKG" in r.err),
         str(r))
    # Warnings stay in quiet runs.
    r = run("-op", "nearest", "-q", "-overwrite", "o.fgb", "points.gpkg", "lots.gpkg")
    true(n == 4 or r.err.count("left out") == 1, str(r))
    # A layer that has only such rows.
    points([None, None], "nothing.gpkg")
    r = join("o2.fgb", "nothing.gpkg", "lots.gpkg")


def check_flatgeobuf_of_points_that_are_no_numbers():
    """OGR takes a point with a NaN coordinate as empty. The row is dropped like other
    rows without geometry."""
    lots(["POINT (0 1)"])
    for shapes in ([NAN], ["POINT (0 0)", NAN]):
        points(shapes)
        r = join("o.fgb", "points.gpkg", "lots.gpkg", "-lco", "SPATIAL_INDEX=NO", "-overwrite",
                 "-json_summary", "s.json")
        s = summary("s.json")
        same(s["rows_written"], len(shapes), str(r))
        os.remove("o.fgb")


def check_rings_of_curves_not_closed():
    points(["POINT (1 1)", "POINT (9 4)"])
    lots(["CURVEPOLYGON ((0 0, 4 0, 4 4, 0 4))",
          "MULTISURFACE (CURVEPOLYGON ((5 0, 9 0, 9 4, 5 4)))"])
    r = join("o.gpkg", "points.gpkg", "lots.gpkg")
    same(Layer("o.gpkg").column("use"), ["u0", "u1"])
    same(Layer("o.gpkg").column("join_distance"), [0.0, 0.0])
    true("2 polygon rings were not closed" in r.err, str(r))


def check_empty_layers():
    points([], "none.gpkg", kind=ogr.wkbPoint)
    points(["POINT (0 0)"])
    lots(["POINT (0 1)"])
    lots([], "nothing.gpkg", kind=ogr.wkbPolygon)
    for out in ("gpkg", "fgb", "shp", "csv", "geojson", "geojsonl", "sqlite"):
        join("-json_summary", "s.json", f"a.{out}", "none.gpkg", "lots.gpkg")
        same(summary("s.json")["rows_in"], 0)
        if out not in ("geojson", "geojsonl"):  # these formats know fields only from rows
            same(len(Layer(f"a.{out}").fields), 4, out)
            same(Layer(f"a.{out}").rows, [], out)
        join(f"b.{out}", "points.gpkg", "nothing.gpkg")
        got = Layer(f"b.{out}")
        same(len(got.rows), 1, out)
        place = [n for n in got.fields if n.lower() == "join_fid"][0]
        true(got.column(place)[0] in (None, ""), out)
    for backend in ("cpu", "geos", "spatialindex", "quadrant"):
        join("-backend", backend, "c.gpkg", "none.gpkg", "nothing.gpkg", "-overwrite")
        same(Layer("c.gpkg").rows, [])
    for how, n in (("inner", 0), ("semi", 0), ("anti", 1)):
        join("-how", how, f"{how}.gpkg", "points.gpkg", "nothing.gpkg")
        same(len(Layer(f"{how}.gpkg").rows), n, how)


def check_multipoints():
    r = random.Random(11)
    shapes = []
    for _ in range(60):
        places = ", ".join(f"({980000 + r.uniform(0, 1000)!r} "
                           f"{200000 + r.uniform(0, 1000)!r})"
                           for _ in range(r.randint(1, 5)))
        shapes.append(f"MULTIPOINT ({places})")
    points(shapes, kind=ogr.wkbMultiPoint)
    lots_file()
    for words, how in (([], {}), (["-k", 3], {"k": 3}),
                       (["-max_distance", 40], {"within": 40.0}),
                       (["-distance_to", "boundary"], {"to_boundary": True})):
        join(*words, "o.gpkg", "points.gpkg", "lots.gpkg", "-overwrite", "-validate")
        answers = nearest(Layer("points.gpkg").shapes(), Layer("lots.gpkg").rows, **how)
        expected = [d for a in answers for d in ([x[0] for x in a] or [None])]
        got = Layer("o.gpkg")
        same(got.column("join_distance"), expected, str(words))
        same(ogr.GeometryTypeToName(got.kind), "Multi Point")


def check_curves():
    """OGR converts curves to lines. A notice gives the number of curves."""
    points(["POINT (0 0)", "POINT (0 3)"])
    lots(["CIRCULARSTRING (-1 0, 0 1, 1 0)",
          "CURVEPOLYGON (CIRCULARSTRING (4 0, 5 1, 6 0, 5 -1, 4 0))"])
    r = join("o.gpkg", "points.gpkg", "lots.gpkg")
    near(Layer("o.gpkg").column("join_distance")[0], 1.0, 1e-3)
    near(Layer("o.gpkg").column("join_distance")[1], 2.0, 1e-3)
    true("curves or surfaces of 2 features" in r.err, str(r))
    same(Layer("lots.gpkg").shapes()[0].GetGeometryName(), "CIRCULARSTRING")
    answers = [[d for d, _ in nearest([p], [(1, s.GetLinearGeometry().ExportToWkb(), 0)])
                [0]][0]
               for p, s in zip(Layer("points.gpkg").shapes(), Layer("lots.gpkg").shapes())
               if s.GetGeometryName() == "CIRCULARSTRING"]
    same(Layer("o.gpkg").column("join_distance")[0], answers[0], "OGR's own linearising")


def check_surfaces():
    points(["POINT (0.2 0.1)", "POINT (5 0)"])
    lots(["TIN Z (((0 0 0, 1 0 0, 0 1 0, 0 0 0)), ((1 0 0, 1 1 0, 0 1 0, 1 0 0)))",
          "POLYHEDRALSURFACE Z (((3 0 0, 4 0 0, 4 1 0, 3 0 0)))"])
    join("o.gpkg", "points.gpkg", "lots.gpkg")
    same(Layer("o.gpkg").column("join_distance"), [0.0, 1.0])


def check_repeated_fids():
    """The FIDs of a VRT come from a column with repeated values. The reading order then
    decides ties, and the attributes are those of the right row."""
    with open("l.csv", "w", encoding="utf-8") as file:
        file.write("id,x,y,use\n5,0,1,first\n5,0,-1,second\n3,9,9,third\n5,20,0,last\n")
    with open("l.vrt", "w", encoding="utf-8") as file:
        file.write('<OGRVRTDataSource><OGRVRTLayer name="l"><SrcDataSource '
                   'relativeToVRT="1">l.csv</SrcDataSource><FID>id</FID>'
                   '<GeometryField encoding="PointFromColumns" x="x" y="y"/>'
                   '<Field name="use" src="use"/></OGRVRTLayer></OGRVRTDataSource>')
    points(["POINT (0 0)", "POINT (9 8)", "POINT (21 0)"], srs=None)
    for backend in ("cpu", "geos"):
        join("-backend", backend, "o.gpkg", "points.gpkg", "l.vrt", "-overwrite")
        got = Layer("o.gpkg")
        same(got.column("use"), ["first", "third", "last"], backend)
        same(got.column("join_fid"), [5, 3, 5], backend)
    # FIDs of the input repeat. No row overwrites another.
    join("-unsetFid", "u.gpkg", "l.vrt", "points.gpkg")
    same(len(Layer("u.gpkg").rows), 4)
    r = run("-op", "nearest", "k.gpkg", "l.vrt", "points.gpkg")
    true(r.rc == 1 or len(Layer("k.gpkg").rows) == 4, str(r))
    true(r.rc == 0 or ("-unsetFid" in r.err and r.err.count("ERROR") == 1), str(r))


def check_infinite_coordinates():
    shape = ogr.Geometry(ogr.wkbPoint)
    shape.AddPoint_2D(math.inf, 0.0)
    points(["POINT (0 0)", shape], "points.fgb", lco=["SPATIAL_INDEX=NO"])
    lots([shape, "POINT (0 1)"], "lots.fgb", lco=["SPATIAL_INDEX=NO"])
    join("o.csv", "points.fgb", "lots.fgb", "-json_summary", "s.json")
    same(Layer("o.csv").column("use"), ["u1", ""])
    same(summary("s.json")["input"]["skipped"]["not_finite"], 1)
    same(summary("s.json")["join"]["skipped"]["not_finite"], 1)


def check_coordinates_of_no_data():
    """Coordinates greater than 1e150 have no pairs on any backend, and a message gives
    their number. The coordinate 1e150 has pairs."""
    far = ("-1e151", "1e151", "1e308", "-1e308", "1.7976931348623157e308",
           "-1.797e308", "-1.7976931348623157e308")
    shapes = ["POINT (5 5)", "POINT (-1e150 5)", "POINT (5 1e150)"]
    shapes += [f"POINT ({v} 5)" for v in far] + [f"POINT (5 {v})" for v in far]
    areas = ["POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))",
             "LINESTRING (20 20, 30 30)", "POLYGON ((0 0, 1e151 0, 0 9, 0 0))"]
    with open("points.csv", "w") as f:
        f.write("name,WKT\n")
        f.writelines(f'p{i},"{shape}"\n' for i, shape in enumerate(shapes))
    points(shapes, "points.gpkg", lco=["SPATIAL_INDEX=NO"])
    lots(areas, lco=["SPATIAL_INDEX=NO"])
    module = os.environ.get("CUDA_HOST_MODULE")
    for path in ("points.csv", "points.gpkg"):
        for backend in ["cpu", "geos", "quadrant"] + ["cuda"] * (module is not None):
            env = {"OGRJOIN_CUDA_MODULE": module} if backend == "cuda" else None
            for op in (["nearest"], ["dwithin", "-max_distance", 5],
                       ["nearest", "-k", 3]):
                if backend == "quadrant" and op[0] != "nearest":
                    continue
                r = succeeds("-backend", backend, "-op", *op, "-how", "inner", "o.csv",
                             path, "lots.gpkg", "-overwrite", "-json_summary", "s.json",
                             env=env)
                names = Layer("o.csv").column("name")
                found = ["p0"] if op[0] == "dwithin" else ["p0", "p1", "p2"]
                same(sorted(set(names)), found, f"{path} {backend} {op}")
                s = summary("s.json")
                same(s["input"]["skipped"]["not_finite"], 2 * len(far))
                same(s["join"]["skipped"]["not_finite"], 1)
                true("not finite or beyond 1e150" in r.err, str(r))


def check_coordinates_that_underflow():
    """Products of coordinates below 1e-150 underflow to 0. Intersections are still
    found exactly."""
    shapes = ["LINESTRING (0 0, 4 4)", "LINESTRING (0 4, 4 0)", "LINESTRING (1 0, 5 4)", "POINT (2 2)", "POINT (3 1)",
              "POINT (2 1)", "POLYGON ((0 0, 4 0, 4 4, 0 0))", "POLYGON ((1 2, 3 5, 0 5, 1 2))", "MULTIPOINT (3 1, 1 3)"]

    def scaled(text, by):
        return re.sub(r"\d+", lambda number: repr(int(number.group()) * by), text)

    module = os.environ.get("CUDA_HOST_MODULE")
    for backend in ["cpu"] + ["cuda"] * (module is not None):
        env = {"OGRJOIN_CUDA_MODULE": module} if backend == "cuda" else None
        found = {}
        for by in (1, 2.0**-500, 2.0**-560, 2.0**-1000, 2.0**-1074):
            points([scaled(shape, by) for shape in shapes], "a.gpkg", lco=["SPATIAL_INDEX=NO"])
            points([scaled(shape, by) for shape in shapes], "b.gpkg", lco=["SPATIAL_INDEX=NO"])
            for op in ("intersects", "crosses", "touches", "within", "contains", "covers", "overlaps", "equals",
                       "disjoint"):
                r = succeeds("-op", op, "-backend", backend, "-how", "inner", "-validate", "o.csv", "a.gpkg", "b.gpkg",
                             "-overwrite", env=env)
                pairs = [(v["name"], v["join_name"]) for _, _, v in Layer("o.csv").rows]
                same(pairs, found.setdefault(op, pairs), f"{backend} {op} by {by}: {r}")
            # a point beside a segment that is so short that it counts as a point
            lots([f"LINESTRING ({by!r} 0, {2 * by!r} {by!r})"], "c.gpkg", lco=["SPATIAL_INDEX=NO"])
            points(["POINT (0 1)"], "p.gpkg", lco=["SPATIAL_INDEX=NO"])
            if by < 1:
                succeeds("-op", "nearest", "-backend", backend, "-validate", "o.csv", "p.gpkg", "c.gpkg", "-overwrite",
                         env=env)
                same(Layer("o.csv").column("join_distance"), ["1"], f"{backend} by {by}")


def check_formats_that_take_no_infinite_coordinates():
    """The message names the feature and suggests what to do."""
    shape = ogr.Geometry(ogr.wkbPoint)
    shape.AddPoint_2D(math.inf, 0.0)
    points(["POINT (0 0)", "POINT (1 1)", shape, shape], "points.fgb",
           lco=["SPATIAL_INDEX=NO"])
    lots(["POINT (0 1)", shape], "lots.fgb", lco=["SPATIAL_INDEX=NO"])
    w = ["points.fgb", "lots.fgb"]
    for out, option in (("o.gpkg", []), ("o.shp", []), ("o.gpkg", ["-how", "inner"])):
        r = run("-op", "nearest", *option, out, *w)
        if option:
            same(r.rc, 0, str(r))  # rows with infinite coordinates are not written
            continue
        same(r.rc, 1, str(r))
        for part in ("input feature 2 ", "not finite", "-where", "FlatGeobuf"):
            true(part in r.err.splitlines()[-1], str(r))
    join("-where", "FID NOT IN (2, 3)", "o.gpkg", *w, "-overwrite")
    same(len(Layer("o.gpkg").rows), 2)
    fails("-how", "inner", "-unmatched_join_layer", "u", "p.gpkg", *w,
          message=("join feature 1 ", "-join_where"))


@once
def check_what_cannot_be_reprojected():
    points(["POINT (10 60)", "POINT (10 6000)"], srs="EPSG:4326")
    lots(["POINT (10 60.001)"], srs="EPSG:4326")
    r = join("-t_srs", "EPSG:25833", "o.gpkg", "points.gpkg", "lots.gpkg",
             "-json_summary", "s.json")
    same(Layer("o.gpkg").column("use"), ["u0", None])
    same(summary("s.json")["input"]["skipped"]["not_reprojected"], 1)
    true("could not be reprojected" in r.err, str(r))


def check_reprojected_curves():
    """A curve is linearised in the CRS of its layer, and the vertices of the line are
    reprojected, on either side and however the rows are read. What is written is a curve
    through the reprojected control points, which encloses the other two points, too."""
    places = [(11.72, 49.31), (11.72, 50.705), (10.29, 50.705)]
    circle = "CURVEPOLYGON (CIRCULARSTRING (10 50, 11 51, 12 50, 11 49, 10 50))"
    shapes = [circle, f"GEOMETRYCOLLECTION ({circle})", "POLYGON ((0 0, 1 0, 0 1, 0 0))", f"MULTISURFACE ({circle})",
              "CURVEPOLYGON (CIRCULARSTRING (10 85, 11 94, 12 85, 11 84, 10 85))"]
    lots(shapes, srs="EPSG:4326")
    points([f"POINT ({x} {y})" for x, y in places], srs="EPSG:4326")
    way = osr.CoordinateTransformation(crs("EPSG:4326"), crs("EPSG:25832"))
    line = ogr.CreateGeometryFromWkt(circle).GetLinearGeometry()
    line.Transform(way)
    moved = [ogr.CreateGeometryFromWkt(f"POINT ({x} {y})") for x, y in places]
    for point in moved:
        point.Transform(way)
    same([line.Contains(point) for point in moved], [True, False, False], "the line of the circle")
    points(moved, "moved.gpkg", srs="EPSG:25832")
    wanted = [("p0", "u0"), ("p0", "u1"), ("p0", "u3")]
    to = ("-t_srs", "EPSG:25832")

    def out(*words, **how):
        succeeds("-overwrite", "-nln", "out", *words, **how)
        return Layer("o.gpkg")

    for given in ([], ["-memory", "1K"], ["-batch", "1"], ["-validate"], ["-how", "full"], ["-pick", "first"]):
        for words in ([*to, "-op", "within", "o.gpkg", "points.gpkg", "lots.gpkg"],
                      [*to, "-op", "contains", "o.gpkg", "lots.gpkg", "points.gpkg"],
                      ["-op", "within", "o.gpkg", "moved.gpkg", "lots.gpkg"]):
            got = out(*given, *words)
            pairs = sorted(pair for pair in zip(got.column("name"), got.column("use")) if None not in pair)
            same(pairs, wanted[:1] if "-pick" in given and "within" in words else wanted, (given, words))
    got = out(*to, "-op", "contains", "-one_to_one", "o.gpkg", "lots.gpkg", "points.gpkg")
    same(got.column("name"), ["p0", None, None, None, None])
    for stream in ("input", "join"):
        got = out(*to, "-op", "contains", "-agg", "count", "o.gpkg", "lots.gpkg", "points.gpkg",
                  env={"OGRJOIN_AGG_STREAM": stream})
        same(got.column("count"), [1, 1, 0, 1, 0], stream)
    got = out("-op", "nearest", *to, "-json_summary", "s.json", "o.gpkg", "lots.gpkg", "points.gpkg").shapes()
    same([shape and shape.GetGeometryName() for shape in got],
         ["CURVEPOLYGON", "GEOMETRYCOLLECTION", "POLYGON", "MULTISURFACE", None])
    curve = ogr.CreateGeometryFromWkt(circle)
    curve.Transform(way)
    same(got[0].ExportToWkt(), curve.ExportToWkt(), "the control points are reprojected")
    same(summary("s.json")["input"]["skipped"]["not_reprojected"], 1)


if __name__ == "__main__":
    main(globals())
