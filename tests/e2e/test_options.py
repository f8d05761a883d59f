"""What is joined: -how, k, ties, distances and their units, CRS, and the rows and
fields that are read of both sides."""

import os

from e2e import *


def layers(**how):
    points_file()
    lots_file()
    return Layer("points.gpkg"), Layer("lots.gpkg")


def rows_of(answers, points, lots):
    """Returns the rows of -how left: (name of the point, use of the lot, distance)."""
    found = []
    for given, answer in zip(points.rows, answers):
        if not answer:
            found.append((given[2]["name"], None, None))
        for d, row in answer:
            found.append((given[2]["name"], lots.rows[row][2]["use"], d))
    return found


def rows_in(path):
    layer = Layer(path)
    return [(r[2]["name"], r[2]["use"], r[2]["join_distance"]) for r in layer.rows]


def check_k():
    points, lots = layers()
    for k in (1, 2, 5, 19, 20, 100):
        answers = nearest(points.shapes(), lots.rows, 200.0, k)
        join("-max_distance", 200, "-k", k, "k.gpkg", "points.gpkg", "lots.gpkg",
             "-overwrite")
        got = Layer("k.gpkg")
        same(rows_in("k.gpkg"), rows_of(answers, points, lots), f"k {k}")
        if k == 1:
            true("join_rank" not in got.fields, "no rank with k 1")
            continue
        same(list(got.fields)[1:4], ["join_fid", "join_distance", "join_rank"])
        ranks = [r for a in answers for r in (range(1, len(a) + 1) if a else [None])]
        same(got.column("join_rank"), list(ranks), f"ranks, k {k}")
    answers = nearest(points.shapes(), lots.rows, 200.0, 3)
    join(*"-max_distance 200 -k 3 -how inner i.gpkg points.gpkg lots.gpkg".split())
    expected = [r for r in rows_of(answers, points, lots) if r[1]]
    same(rows_in("i.gpkg"), expected)


def check_ties():
    rows = [(f"POINT ({x} {y})", {"use": f"{x} {y}"}) for x in (0, 2) for y in (0, 2)]
    rows += [("POINT (0 0)", {"use": "twin"})]
    make("lots.gpkg", rows, fields=(("use", ogr.OFTString),))
    make("points.gpkg", [("POINT (1 1)", {"name": "a"}), ("POINT (0 0)", {"name": "b"})])
    lots = Layer("lots.gpkg")
    points = Layer("points.gpkg")
    for k in (1, 2, 4, 5):
        for ties in (False, True):
            join("-k", k, "-ties", "all" if ties else "first", "o.gpkg",
                 "points.gpkg", "lots.gpkg", "-overwrite")
            answers = nearest(points.shapes(), lots.rows, k=k, ties=ties)
            expected = rows_of(answers, points, lots)
            same(rows_in("o.gpkg"), expected, f"k {k} ties {ties}")
            ranks = "join_rank" in Layer("o.gpkg").fields
            same(ranks, k > 1 or ties, "rank")
    # Of equally near features the one with the smallest FID is chosen, not the
    # first in reading order.
    succeeds(*("-op nearest -ties first o.gpkg points.gpkg lots.gpkg -overwrite"
               " -join_sql").split(), "SELECT * FROM lots ORDER BY fid DESC")
    same(Layer("o.gpkg").column("join_fid"), [1, 1])


def check_max_distance_units():
    """A point just within the maximum distance and one just beyond, for each unit and CRS."""
    metres = {"": None, "m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344,
              "us-ft": 1200.0 / 3937.0}
    for srs, unit in (("EPSG:2263", 1200.0 / 3937.0), ("EPSG:25833", 1.0),
                      ("EPSG:2222", 0.3048)):
        for word, metre in metres.items():
            d = 2.0
            units = d if metre is None else d * metre / unit
            rows = [(f"POINT ({units * f!r} 0)", {"name": str(f)})
                    for f in (0.999999, 1.000001)]
            make("points.gpkg", rows, srs=srs)
            make("lots.gpkg", [("POINT (0 0)", {"use": "x"})],
                 fields=(("use", ogr.OFTString),), srs=srs)
            join("-max_distance", f"{d}{word}", "o.gpkg", "points.gpkg", "lots.gpkg",
                 "-json_summary", "s.json")
            same(Layer("o.gpkg").column("use"), ["x", None], f"{srs} {word}")
            near(summary("s.json")["max_distance"], units, 1e-9 * units, word)
            for name in ("points.gpkg", "lots.gpkg", "o.gpkg"):
                os.remove(name)
    # A distance in the unit of the CRS is not rounded.
    rows = [("POINT (100 0)", {"name": "edge"})]
    make("points.gpkg", rows)
    make("lots.gpkg", [("POINT (0 0)", {"use": "x"})], fields=(("use", ogr.OFTString),))
    join(*"-max_distance 100us-ft o.gpkg points.gpkg lots.gpkg".split())
    same(Layer("o.gpkg").column("use"), ["x"])
    join(*"-max_distance 0 o.gpkg points.gpkg lots.gpkg -overwrite".split())
    same(Layer("o.gpkg").column("use"), [None])


def check_geographic():
    rows = [(f"POINT ({x} 60)", {"name": str(x)}) for x in (10, 10.005, 11)]
    make("points.gpkg", rows, srs="EPSG:4326")
    make("lots.gpkg", [("POINT (10 60)", {"use": "x"})],
         fields=(("use", ogr.OFTString),), srs="EPSG:4326")
    words = ["points.gpkg", "lots.gpkg"]
    fails("o.gpkg", *words, message=["degrees", "-t_srs"])
    fails("-max_distance", "100m", "o.gpkg", *words, message=["degrees", "-t_srs", "deg"])
    fails("-max_distance", "0.01", "o.gpkg", *words, message=["degrees", "deg"])
    join("-max_distance", "0.01deg", "o.gpkg", *words)
    same(Layer("o.gpkg").column("use"), ["x", "x", None])
    near(Layer("o.gpkg").column("join_distance")[1], 0.005, 1e-14)
    join("-max_distance", "infdeg", "inf.gpkg", *words)
    same(Layer("inf.gpkg").column("use"), ["x"] * 3)
    # joined and written in a projected CRS
    join("-max_distance", "1km", "-t_srs", "EPSG:25833", "t.gpkg", *words)
    got = Layer("t.gpkg")
    same(got.column("use"), ["x", "x", None])
    same(got.srs.GetAuthorityCode(None), "25833")
    to = osr.CoordinateTransformation(crs("EPSG:4326"), crs("EPSG:25833"))
    for shape, x in zip(got.shapes(), (10, 10.005, 11)):
        place = to.TransformPoint(x, 60)
        near(shape.GetX(), place[0], 1e-6)
        near(shape.GetY(), place[1], 1e-6)
    near(got.column("join_distance")[1], 279.3, 1.0)
    # deg means nothing on a projected CRS.
    fails("-max_distance", "1deg", "-t_srs", "EPSG:25833", "x.gpkg", *words,
          message="degrees")


def check_crs_modes():
    rows = [("POINT (10.0 60.0)", {"name": "a"})]
    make("wgs.gpkg", rows, srs="EPSG:4326")
    to = osr.CoordinateTransformation(crs("EPSG:4326"), crs("EPSG:25833"))
    x, y, _ = to.TransformPoint(10.0, 60.0)
    use = (("use", ogr.OFTString),)
    make("utm.gpkg", [(f"POINT ({x + 30!r} {y + 40!r})", {"use": "x"})], fields=use,
         srs="EPSG:25833")
    r = join("a.gpkg", "utm.gpkg", "wgs.gpkg")
    true("reprojected from EPSG:4326 to EPSG:25833" in r.err, str(r))
    near(Layer("a.gpkg").column("join_distance")[0], 50.0, 1e-3)
    same(Layer("a.gpkg").srs.GetAuthorityCode(None), "25833")
    fails("-crs", "strict", "x.gpkg", "utm.gpkg", "wgs.gpkg",
          message=["EPSG:4326", "EPSG:25833", "strict"])
    r = join("-crs", "ignore", "i.gpkg", "utm.gpkg", "wgs.gpkg")
    true("reprojected" not in r.err, str(r))
    near(Layer("i.gpkg").column("join_distance")[0],
         math.hypot(x + 20, y - 20), 1.0)
    # A side without a CRS gets the CRS of the other, with a warning.
    make("none.gpkg", [(f"POINT ({x + 3!r} {y + 4!r})", {"name": "n"})], srs=None)
    for words in (["utm.gpkg", "none.gpkg"], ["none.gpkg", "utm.gpkg"]):
        r = join("n.gpkg", *words, "-overwrite")
        true("no CRS" in r.err and "EPSG:25833" in r.err and "Warning" in r.err, str(r))
        near(Layer("n.gpkg").column("join_distance")[0], 45.0, 1e-3)
        fails("-crs", "strict", "x.gpkg", *words, message="no CRS")
        r = join("-crs", "ignore", "n.gpkg", *words, "-overwrite")
    got = Layer("n.gpkg")
    # -s_srs corrects a wrong CRS.
    make("wrong.gpkg", [("POINT (10.0 60.0)", {"name": "w"})], srs="EPSG:2263")
    join("-join_srs", "EPSG:4326", "w.gpkg", "utm.gpkg", "wrong.gpkg")
    near(Layer("w.gpkg").column("join_distance")[0], 50.0, 1e-3)
    join("-s_srs", "EPSG:4326", "-t_srs", "EPSG:25833", "w2.gpkg", "wrong.gpkg",
         "utm.gpkg")
    near(Layer("w2.gpkg").column("join_distance")[0], 50.0, 1e-3)
    # -a_srs changes no coordinates.
    join("-a_srs", "EPSG:2263", "as.gpkg", "utm.gpkg", "utm.gpkg")
    same(Layer("as.gpkg").srs.GetAuthorityCode(None), "2263")
    same(Layer("as.gpkg").rows[0][1], Layer("utm.gpkg").rows[0][1])
    fails("-t_srs", "EPSG:25833", "x.gpkg", "none.gpkg", "none.gpkg", message="-s_srs")
    fails("-t_srs", "EPSG:99999999", "x.gpkg", "utm.gpkg", "utm.gpkg",
          message="EPSG:99999999")
    fails("-s_srs", "nonsense", "x.gpkg", "utm.gpkg", "utm.gpkg", message="nonsense")


def check_heights_make_no_other_crs():
    """A compound CRS and its horizontal part are one CRS for -crs and -append: coordinates
    stay as they are, heights included."""
    shape = "POINT Z (400000.1 5800000.2 30.5)"
    for name, srs in (("flat.gpkg", "EPSG:25833"), ("high.gpkg", "EPSG:25833+5783")):
        make(name, [(shape, {"name": name})], srs=srs)
    for mode in ("auto", "strict"):
        for sides in (("flat.gpkg", "high.gpkg"), ("high.gpkg", "flat.gpkg")):
            r = succeeds("-crs", mode, "-op", "equals", "-overwrite", "e.gpkg", *sides)
            true("reprojected" not in r.err, str(r))
            got = Layer("e.gpkg")
            same(got.column("join_fid"), [1])
            same([s.ExportToIsoWkt() for s in got.shapes()], [shape])
    join("rows.gpkg", "flat.gpkg", twin("flat.gpkg"), "-nln", "rows")
    join("-append", "rows.gpkg", "high.gpkg", "flat.gpkg", "-nln", "rows")
    same([s.ExportToIsoWkt() for s in Layer("rows.gpkg").shapes()], [shape] * 2)
    # Nor does the order of axes make another CRS.
    make("wgs.gpkg", [("POINT (10 60)", {"name": "w"})], srs="EPSG:4326")
    r = join("-join_srs", "OGC:CRS84", "-max_distance", "1deg", "w.gpkg", "wgs.gpkg", twin("wgs.gpkg"))
    true("reprojected" not in r.err, str(r))
    # A missing epoch is taken from a layer in the compound CRS, too.
    point_at_epoch("epoch.gpkg", 2010.5)
    point_at_epoch("tall.gpkg", 0, "EPSG:9000+3855")
    r = join("-max_distance", "1deg", "t.gpkg", "epoch.gpkg", "tall.gpkg")
    true("taken to be 2010.5" in r.err and "reprojected" not in r.err, str(r))


def point_at_epoch(name, epoch, words="EPSG:9000"):
    """Writes a layer of one point whose CRS has this coordinate epoch; 0: it has none."""
    srs = crs(words)
    srs.SetCoordinateEpoch(epoch)
    dataset = ogr.GetDriverByName("GPKG").CreateDataSource(name)
    layer = dataset.CreateLayer("points", srs, ogr.wkbPoint)
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POINT (10 60)"))
    layer.CreateFeature(feature)


def check_one_layer_without_epoch():
    """A layer without a coordinate epoch takes that of the other layer, and is not reprojected."""
    point_at_epoch("epoch.gpkg", 2010.5)
    point_at_epoch("none.gpkg", 0)
    for lacks, sides in (("join", ("epoch.gpkg", "none.gpkg")), ("input", ("none.gpkg", "epoch.gpkg"))):
        words = ("-max_distance", "1deg", "-overwrite", "epochs.gpkg", *sides)
        warning = f"{lacks} layer 'points' has no coordinate epoch"
        r = join(*words)
        true(f"{warning}; taken to be 2010.5" in r.err and "reprojected" not in r.err, str(r))
        fails("-crs", "strict", *words, message=[warning, "2010.5"])


def check_messages_name_epochs():
    """Two CRS that differ by their epoch alone are not two equal names in a message."""
    point_at_epoch("early.gpkg", 2010.5)
    point_at_epoch("late.gpkg", 2025)
    words = ("-max_distance", "1deg", "out.gpkg", "early.gpkg", "late.gpkg")
    epochs = ["EPSG:9000 at epoch 2010.5", "EPSG:9000 at epoch 2025"]
    fails("-crs", "strict", *words, message=epochs)
    r = join(*words)
    # A GDAL that does not transform between epochs reprojects nothing.
    is_reprojected = f"is reprojected from {epochs[1]} to {epochs[0]}" in r.err
    true(is_reprojected or f"is not brought from {epochs[1]} to {epochs[0]}: GDAL" in r.err, str(r))
    same(is_reprojected, "between different epochs" not in r.err, str(r))
    fails("-append", "-max_distance", "1deg", "out.gpkg", "late.gpkg", "early.gpkg", "-nln", "points",
          message=epochs)


def degrees_box(x0, x1, y=17):
    return f"POLYGON (({x0} {-y}, {x1} {-y}, {x1} {y}, {x0} {y}, {x0} {-y}))"


def check_shapes_across_the_antimeridian():
    """Shapes are cut at the antimeridian of the CRS of the join, however they are read.
    Shapes that cannot be cut are counted."""
    fields = (("lon", ogr.OFTReal),)
    lons = [-170, -175, -100, -35, -25, 0, 100, 150, 175, 179.5]
    make("p.gpkg", [(f"POINT ({x} 0)", {"lon": x}) for x in lons], fields, srs="EPSG:4326", kind=ogr.wkbPoint)
    gdal.VectorTranslate("p3857.gpkg", "p.gpkg", dstSRS="EPSG:3857", layerName="p")

    def matched(*words, message=None, **how):
        r = succeeds("-overwrite", "-op", "intersects", "-how", "inner", *words, **how)
        true((message is None) == ("antimeridian" not in r.err) and (message or "") in r.err, f"{message}: {r}")
        return sorted(Layer("o.gpkg").column("lon"))

    east = [-170, -175, 175, 179.5]
    for end, env in (("gpkg", {}), ("fgb", {"OGRJOIN_LANES": "NO"})):
        shapes = {
            "ring": (degrees_box(157, 193), east), "line": ("LINESTRING (160 0, 195 0)", east),
            "west": (degrees_box(-195, -165), east),
            "many": (f"MULTIPOLYGON ({degrees_box(170, 190)[8:]}, {degrees_box(-1, 1)[8:]})", [-170, -175, 0, 175, 179.5]),
            "mixed": (f"GEOMETRYCOLLECTION (POINT (100 0), {degrees_box(170, 190)})", [-170, -175, 100, 175, 179.5]),
            "turns": (degrees_box(179, 361 + 180), lons[:]),
        }
        for name, (shape, expected) in shapes.items():
            path = make(f"{name}.{end}", [(shape, {"name": name})], srs="EPSG:4326")
            message = "1 feature crosses the antimeridian of the CRS of the join, and was cut there"
            for words in (("-t_srs", "EPSG:4087", "o.gpkg", "p.gpkg", path), ("o.gpkg", "p3857.gpkg", path),
                          ("-t_srs", "EPSG:3857", "-batch", 3, "o.gpkg", "p.gpkg", path)):
                same(matched(*words, message=message, env=env), sorted(expected), f"{name} {end} {words}")
            # The shapes as input. The geometry that is written is not cut.
            r = succeeds("-overwrite", "-how", "inner", "-agg", "count", "-t_srs", "EPSG:3857", "n.gpkg", path, "p.gpkg",
                         env=env)
            true(message in r.err, str(r))
            same(Layer("n.gpkg").column("count"), [len(expected)], name)
            true(all(s.GetEnvelope()[1] - s.GetEnvelope()[0] > 4e7 for s in Layer("n.gpkg").shapes()), "both ends")
            os.remove("n.gpkg")
            os.remove(path)
    # A CRS whose plane ends at another meridian (3832), and one whose plane
    # has no such edge (3031).
    path = make("z.gpkg", [(degrees_box(-40, -20), {"name": "a"}), (degrees_box(157, 193), {"name": "b"})], srs="EPSG:4326")
    same(matched("-t_srs", "EPSG:3832", "o.gpkg", "p.gpkg", path, message="1 feature crosses"), sorted([*east, -35, -25]))
    same(matched("-t_srs", "EPSG:3031", "o.gpkg", "p.gpkg", path), sorted([*east, -35, -25]))
    same(matched("-crs", "ignore", "o.gpkg", "p.gpkg", path), [-35, -25, 175, 179.5])
    # From a projected CRS into degrees.
    for srs, box in (("EPSG:3857", (17530000, 21560000)), ("EPSG:3832", (2000000, 5000000))):
        shape = degrees_box(*box, y=1000000)
        path = make("m.gpkg", [(shape, {"name": "m"})], srs=srs)
        same(matched("o.gpkg", "p.gpkg", path, message="1 feature crosses"), sorted(east), srs)
    # Shapes that cannot be cut.
    path = make("u.gpkg", [("POLYGON ((600000 8000000, 1200000 8000000, 1200000 8300000, 600000 8300000, 600000 8000000))",
                            {"name": "fiji"})], srs="EPSG:32760")
    matched("o.gpkg", "p.gpkg", path, message="join layer 'u': 1 feature crosses the antimeridian of the CRS of the join and cannot")
    path = make("b.gpkg", [("POLYGON ((170 0, 190 10, 190 0, 170 10, 170 0))", {"name": "bow"})], srs="EPSG:4326")
    matched("-t_srs", "EPSG:3857", "o.gpkg", "p.gpkg", path, message="ogr2ogr -wrapdateline")


def check_shapes_around_the_earth():
    """Shapes nearly 360 degrees wide. They most likely cross the antimeridian."""
    make("p.gpkg", [("POINT (0 0)", {"name": "p"})], srs="EPSG:4326", kind=ogr.wkbPoint)
    path = make("w.gpkg", [(degrees_box(-175, 175), {"name": "wide"}), (degrees_box(-180, 180), {"name": "band"}),
                           (degrees_box(-100, 100), {"name": "half"})], srs="EPSG:4326")
    for words in ((path, "p.gpkg"), ("p.gpkg", path), ("-t_srs", "EPSG:3857", "p.gpkg", path)):
        r = succeeds("-overwrite", "-op", "intersects", *words[:-2], "o.gpkg", *words[-2:])
        same(r.err.count("layer 'w': 1 feature is from 350 to 360 degrees wide"), 1, str(r))
        true("-metric sphere" in r.err, str(r))
    r = join("-overwrite", "-metric", "sphere", "o.gpkg", "p.gpkg", path)
    true("degrees wide" not in r.err, str(r))


def check_both_without_crs():
    make("a.gpkg", [("POINT (0 0)", {"name": "a"})], srs=None)
    make("b.gpkg", [("POINT (0 0)", {"name": "b"})], srs=None)
    join("-max_distance", 5, "o.gpkg", "a.gpkg", "b.gpkg")
    same(Layer("o.gpkg").column("join_distance"), [0.0])
    fails("-max_distance", "5m", "x.gpkg", "a.gpkg", "b.gpkg", message=["no CRS", "-s_srs"])


def check_axis_order():
    """GML with latitude first, which is the axis order of the authority."""
    make("a.gpkg", [("POINT (10.0 60.0)", {"name": "a"})], srs="EPSG:4326")
    with open("a.gml", "w", encoding="utf-8") as file:
        file.write(
            '<?xml version="1.0"?><c:c xmlns:c="http://c" '
            'xmlns:gml="http://www.opengis.net/gml/3.2">'
            '<gml:featureMember xmlns:gml="http://www.opengis.net/gml">'
            "<c:a><c:use>x</c:use><c:g>"
            '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326">'
            "<gml:pos>60.0 10.0</gml:pos></gml:Point></c:g></c:a>"
            "</gml:featureMember></c:c>"
        )
    try:
        Layer("a.gml")
    except Exception as error:
        raise Skip(f"no GML: {error}") from None
    join("-max_distance", "1deg", "o.gpkg", "a.gpkg", "a.gml")
    near(Layer("o.gpkg").column("join_distance")[0], 0.0, 1e-12)
    join("-max_distance", "1deg", "o2.gpkg", "a.gml", "a.gpkg")
    near(Layer("o2.gpkg").column("join_distance")[0], 0.0, 1e-12)


def check_input_rows():
    points, lots = layers()
    answers = nearest(points.shapes(), lots.rows)
    expected = rows_of(answers, points, lots)
    with open("where.sql", "w", encoding="utf-8") as file:
        file.write("name LIKE 'p1%'\n")
    some = [r for r in expected if r[0].startswith("p1")]
    for words in (["-where", "name LIKE 'p1%'"], ["-where", "@where.sql"]):
        join(*words, "o.gpkg", "points.gpkg", "lots.gpkg", "-overwrite")
        same(rows_in("o.gpkg"), some, str(words))
    join("-sql", "SELECT name, geom FROM points WHERE fid > 40", "sql.gpkg",
         "points.gpkg", "lots.gpkg")
    same(rows_in("sql.gpkg"), expected[40:])
    join("-sql", "SELECT name, ST_Centroid(geom) FROM points LIMIT 3", "-dialect",
         "SQLite", "d.gpkg", "points.gpkg", "lots.gpkg")
    same([r[0] for r in rows_in("d.gpkg")], ["p0", "p1", "p2"])
    join("-limit", 7, "limit.gpkg", "points.gpkg", "lots.gpkg")
    same(rows_in("limit.gpkg"), expected[:7])
    join("-limit", 7, "-batch", 2, "l2.gpkg", "points.gpkg", "lots.gpkg")
    same(rows_in("l2.gpkg"), expected[:7])
    box = (980000.0, 200000.0, 980400.0, 200600.0)
    join("-spat", *box, "spat.gpkg", "points.gpkg", "lots.gpkg")
    inside = [r for r, s in zip(expected, points.shapes())
              if box[0] <= s.GetX() <= box[2] and box[1] <= s.GetY() <= box[3]]
    same(rows_in("spat.gpkg"), inside)
    join("-spat", *box, "-where", "name <> 'p1'", "-limit", 3, "sw.gpkg",
         "points.gpkg", "lots.gpkg")
    same(rows_in("sw.gpkg"), [r for r in inside if r[0] != "p1"][:3])


def check_join_rows():
    points, lots = layers()
    some = [r for r in lots.rows if r[2]["area"] > 10]
    expected = rows_of(nearest(points.shapes(), some), points,
                       type("L", (), {"rows": some}))
    with open("q.sql", "w", encoding="utf-8") as file:
        file.write("SELECT * FROM lots WHERE area > 10")
    for words in (["-join_where", "area > 10"], ["-join_sql", "@q.sql"],
                  ["-join_sql", "SELECT * FROM lots WHERE area > 10",
                   "-join_dialect", "OGRSQL"]):
        join(*words, "o.gpkg", "points.gpkg", "lots.gpkg", "-overwrite")
        same(rows_in("o.gpkg"), expected, str(words))
        fids = [r[0] for r in some]
        true(set(Layer("o.gpkg").column("join_fid")) <= set(fids), "FIDs")


def check_conditions_on_dates_that_are_null():
    """Where GDAL itself evaluates a condition, it reports an error for each NULL. No
    row may be missing then. An invalid condition is still an error."""
    dates = (("2020/05/05", 0), (None, 1), ("1960/01/01", 2), ("2021/01/01", 3))
    for end, kind in (("fgb", ogr.OFTDate), ("geojson", ogr.OFTDateTime), ("shp", ogr.OFTDate),
                      ("gpkg", ogr.OFTDate), ("fgb", ogr.OFTTime)):
        path = f"dated.{end}"
        make(path, [(f"POINT ({i} 1)", {"d": d and (d if kind != ogr.OFTTime else f"{i + 1}:00:00"), "n": i})
                    for d, i in dates], (("d", kind), ("n", ogr.OFTInteger)), kind=ogr.wkbPoint)
        where = "d > '1970/06/06'" if kind != ogr.OFTTime else "d <> '03:00:00'"
        lots = make("lots.gpkg", [(f"POINT ({i} 1)", {}) for i in range(4)])
        near = ("-max_distance", 0.5)
        join("-overwrite", *near, "-where", where, "o.gpkg", path, lots)
        same(sorted(Layer("o.gpkg").column("n")), [0, 3], f"-where {path}")
        join("-overwrite", *near, "-how", "inner", "-join_where", where, "o.gpkg", lots, path)
        same(sorted(Layer("o.gpkg").column("n")), [0, 3], f"-join_where {path}")
        if end in ("fgb", "gpkg") and kind == ogr.OFTDate:  # other formats refuse the types
            join("-overwrite", *near, "-sql", f"SELECT * FROM dated WHERE {where}", "o.gpkg", path, lots)
            same(sorted(Layer("o.gpkg").column("n")), [0, 3], f"-sql {path}")
        if end != "gpkg" and kind != ogr.OFTTime:
            fails("-where", "d > 'abc'", "p.gpkg", path, lots, *near, message="parse date 'abc'")
        os.remove(path)


def check_fields():
    fields = [("a", ogr.OFTString), ("b", ogr.OFTInteger), ("c", ogr.OFTReal)]
    make("p.gpkg", [("POINT (0 0)", {"a": "1", "b": 2, "c": 3.0})], fields)
    make("l.gpkg", [("POINT (0 1)", {"a": "4", "b": 5, "c": 6.0})], fields)
    own = ["join_fid", "join_distance"]
    join("-select", "c, A", "-join_select", "b", "o.gpkg", "p.gpkg", "l.gpkg")
    got = Layer("o.gpkg")
    same(list(got.fields), ["c", "a", *own, "b"])
    same(list(got.rows[0][2].values()), [3.0, "1", 1, 1.0, 5])
    join("-select", "", "-join_select", "", "e.gpkg", "p.gpkg", "l.gpkg")
    same(list(Layer("e.gpkg").fields), own)
    # A filter may use fields that are not selected.
    join("-select", "a", "-where", "b = 2", "-join_select", "a", "-join_where",
         "b = 5", "w.gpkg", "p.gpkg", "l.gpkg")
    same(list(Layer("w.gpkg").rows[0][2].values()), ["1", 1, 1.0, "4"])
    fails("-select", "a,zz", "x.gpkg", "p.gpkg", "l.gpkg", message=["'zz'", "a, b, c"])
    fails("-join_select", "zz", "x.gpkg", "p.gpkg", "l.gpkg", message=["'zz'", "join"])


def check_open_options():
    with open("p.csv", "w", encoding="utf-8") as file:
        file.write("lon,lat,name\n1,2,a\n3,4,b\n")
    with open("l.csv", "w", encoding="utf-8") as file:
        file.write("east,north,use\n1,2.5,x\n3,4.25,y\n")
    join("o.gpkg", "p.csv", "l.csv", "-oo", "X_POSSIBLE_NAMES=lon", "-oo",
         "Y_POSSIBLE_NAMES=lat", "-oo", "KEEP_GEOM_COLUMNS=NO", "-joo",
         "X_POSSIBLE_NAMES=east", "-joo", "Y_POSSIBLE_NAMES=north")
    got = Layer("o.gpkg")
    same(got.column("join_distance"), [0.5, 0.25])
    same(got.column("use"), ["x", "y"])
    same(list(got.fields), ["name", "join_fid", "join_distance", "east", "north", "use"])
    fails("x.gpkg", "p.csv", "l.csv", message=["no geometry", "-oo"])
    fails("x.gpkg", "o.gpkg", "l.csv", message=["no geometry", "-joo"])


def check_several_layers():
    points_file("d.gpkg", layer="a")
    points_file("d.gpkg", layer="b", add=True)
    lots_file("d.gpkg", layer="lots", add=True)
    fails("x.gpkg", "d.gpkg", "d.gpkg", message=["-input_layer", "a, b, lots"])
    fails("-input_layer", "a", "x.gpkg", "d.gpkg", "d.gpkg",
          message=["-join_layer", "a, b, lots"])
    fails("-input_layer", "zz", "-join_layer", "lots", "x.gpkg", "d.gpkg", "d.gpkg",
          message=["'zz'", "a, b, lots"])
    join("-input_layer", "b", "-join_layer", "lots", "o.gpkg", "d.gpkg", "d.gpkg")
    same(Layer("o.gpkg").name, "b")
    same(Layer("o.gpkg").column("name"), Layer("d.gpkg", "b").column("name"))


def check_self_join():
    """Each point gets its nearest other point. With -sql the side counts as another
    layer, so -exclude self is needed."""
    points_file()
    shapes = Layer("points.gpkg").shapes()
    others = []
    for i, a in enumerate(shapes):
        others.append(min((a.Distance(b), j + 1) for j, b in enumerate(shapes) if j != i))
    os.mkdir("d")
    os.symlink("../points.gpkg", "d/link.gpkg")
    for join_ds in ("points.gpkg", "./points.gpkg", "d/link.gpkg"):
        r = join("-overwrite", "o.gpkg", "points.gpkg", join_ds)
        true("no feature is joined with itself" in r.err, f"it is said: {r}")
        got = Layer("o.gpkg")
        same(list(zip(got.column("join_distance"), got.column("join_fid"))), others)
    query = "SELECT * FROM points"
    r = join("-overwrite", "-join_sql", query, "o.gpkg", "points.gpkg", "points.gpkg")
    true("itself" not in r.err, f"a SELECT is another layer: {r}")
    same(Layer("o.gpkg").column("join_distance"), [0.0] * 50)
    join("-overwrite", "-join_sql", query, "-exclude", "self", "o.gpkg", "points.gpkg", "points.gpkg")
    same(Layer("o.gpkg").column("join_distance"), [d for d, _ in others])
    join("-overwrite", "-sql", query, "-join_sql", query, "o.gpkg", "points.gpkg", "points.gpkg")
    same(Layer("o.gpkg").column("join_distance"), [d for d, _ in others])


def check_geocentric_crs():
    """X and Y of a geocentric CRS are not coordinates of a plane, so the join is
    refused."""
    layers()
    w = ["points.gpkg", "lots.gpkg"]
    earth = ["EPSG:4978", "geocentric"]
    for op in ("nearest", "intersects"):
        fails("-op", op, "o.gpkg", *w, "-t_srs", "EPSG:4978", op=False, message=["-t_srs", *earth])
        fails("-op", op, "o.gpkg", *w, "-s_srs", "EPSG:4978", op=False, message=["input layer", *earth])
        fails("-op", op, "o.gpkg", *w, "-join_srs", "EPSG:4978", op=False, message=["join layer", *earth])
    fails("-window", 0, 0, 1, 1, "o.gpkg", "points.gpkg", "-t_srs", "EPSG:4978", op=False, message=earth)
    fails("-crs", "ignore", "-t_srs", "EPSG:4978", "o.gpkg", *w, message=earth)
    both = ("-s_srs", "EPSG:4978", "-join_srs", "EPSG:4978", "-crs", "ignore")
    join(*both, "o.gpkg", *w)
    join("p.gpkg", *w)
    same(Layer("o.gpkg").rows, Layer("p.gpkg").rows)


if __name__ == "__main__":
    main(globals())
