"""-input_geometry and -join_geometry: joins by a geometry column other than the first."""

import csv

from dataset import *

POINTS = [(10 * i, 7 * i % 50) for i in range(40)]
BOXES = [(f"POLYGON (({x} 0, {x + 30} 0, {x + 30} 60, {x} 60, {x} 0))", x) for x in (0, 90, 200)]


def two_columns(path="two.sqlite"):
    """Makes a layer with two geometry columns. The second has the points, the first
    other points in another CRS. Returns path."""
    dataset = ogr.GetDriverByName("SQLite").CreateDataSource(path)
    layer = dataset.CreateLayer("t", crs("EPSG:32618"), ogr.wkbPoint, ["GEOMETRY_NAME=here"])
    there = ogr.GeomFieldDefn("there", ogr.wkbPoint)
    there.SetSpatialRef(crs("EPSG:2263"))
    layer.CreateGeomField(there)
    for name, kind in (("id", ogr.OFTInteger), ("wkt", ogr.OFTString), ("hex", ogr.OFTString), ("wkb", ogr.OFTBinary)):
        layer.CreateField(ogr.FieldDefn(name, kind))
    for i, (x, y) in enumerate(POINTS):
        feature = ogr.Feature(layer.GetLayerDefn())
        shape = ogr.CreateGeometryFromWkt(f"POINT ({x} {y})")
        feature.SetGeomField(0, ogr.CreateGeometryFromWkt("POINT (-9999 -9999)"))
        feature["id"] = i
        if i % 9 != 4:
            feature.SetGeomField(1, shape)
            feature["wkt"] = f" SRID=2263;{shape.ExportToWkt()} " if i % 2 else shape.ExportToWkt()
            feature["hex"] = bytes(shape.ExportToWkb(ogr.wkbNDR if i % 2 else ogr.wkbXDR)).hex()
            feature.SetFieldBinaryFromHexString("wkb", ewkb(shape) if i % 2 else feature["hex"])
        layer.CreateFeature(feature)
    return path


def ewkb(shape):
    plain = bytes(shape.ExportToWkb(ogr.wkbNDR))
    return (plain[:4] + bytes([plain[4] | 0x20]) + (2263).to_bytes(4, "little") + plain[5:]).hex()


def boxes_csv(path="boxes.csv"):
    with open(path, "w", encoding="utf-8") as file:
        file.write("name,shape\n" + "".join(f'b{x},"{wkt}"\n' for wkt, x in BOXES) + "none,\n")
    return path


def one_column():
    """Makes a layer whose only geometry column has the points, and the join side. The
    other tests expect the rows of this layer's join. Returns the paths of both."""
    make("one.gpkg", [(None if i % 9 == 4 else f"POINT ({x} {y})", {"id": i}) for i, (x, y) in enumerate(POINTS)],
         (("id", ogr.OFTInteger),), kind=ogr.wkbPoint)
    make("boxes.gpkg", [(wkt, {"name": f"b{x}"}) for wkt, x in BOXES])
    return "one.gpkg", "boxes.gpkg"


def answer(path):
    return [(v["id"], v["join_fid"], wkb and bytes(wkb)) for _, wkb, v in rows(path)]


COLUMNS = (("there", ()), ("THERE", ()), ("wkt", ("-s_srs", "EPSG:2263")), ("hex", ("-s_srs", "EPSG:2263")),
           ("wkb", ("-s_srs", "EPSG:2263")))


def check_input():
    left, right = one_column()
    two_columns()
    for op in (["-op", "intersects"], ["-op", "nearest", "-max_distance", "25"], ["-op", "within", "-how", "inner"]):
        succeeds(*op, "-overwrite", "o.gpkg", left, right)
        expected = answer("o.gpkg")
        true(len(expected) > 2 and any(v[1] for v in expected), "something is joined")
        for name, more in COLUMNS:
            succeeds(*op, "-input_geometry", name, *more, "-overwrite", "p.gpkg", "two.sqlite", right)
            same(answer("p.gpkg"), expected, f"{op} {name}")
            got = Layer("p.gpkg")
            others = {"wkt", "hex", "wkb"} - {name}
            same(others - set(got.fields), set(), "other fields stay")
            true(name not in got.fields, "the column is the geometry, not a field")


def check_join_side():
    """-join_geometry of a CSV. The join side is in memory, in tiles, or read again for
    its unmatched rows."""
    left, right = one_column()
    boxes_csv()
    for more in (["-how", "inner"], ["-how", "full"], ["-memory", "1"], ["-agg", "count"], ["-validate"]):
        succeeds("-op", "intersects", *more, "-overwrite", "o.csv", left, right)
        words = ["-join_geometry", "shape", "-join_srs", "EPSG:2263"]
        succeeds("-op", "intersects", *more, *words, "-overwrite", "p.csv", left, "boxes.csv")
        with open("o.csv", encoding="utf-8") as one, open("p.csv", encoding="utf-8") as two:
            expected, got = one.read().splitlines(), two.read().splitlines()
        if "full" in more:  # the row without a shape
            true(len(got) == len(expected) + 1, f"{len(got)} rows")
        else:
            same(got, expected, str(more))


def check_first_column():
    """If the option names the first column, the output is unchanged, and there is no
    notice."""
    _, right = one_column()
    two_columns()
    r = succeeds("-op", "intersects", "-crs", "ignore", "-overwrite", "o.csv", "two.sqlite", right)
    true("2 geometry columns: 'here' is joined" in r.err and "-input_geometry takes another one" in r.err, str(r))
    first = digest("o.csv")
    r = succeeds("-op", "intersects", "-crs", "ignore", "-input_geometry", "here", "-overwrite", "o.csv", "two.sqlite", right)
    true("geometry columns" not in r.err, str(r))
    same(digest("o.csv"), first)


def check_filters():
    """-where uses fields of the layer, and -spat tests the chosen column. The result of a
    SELECT has geometry columns, too."""
    left, right = one_column()
    two_columns()
    for words in (["-where", "id > 7"], ["-spat", 95, 0, 125, 60], ["-limit", 9], ["-select", "id"],
                  ["-where", "id < 30", "-spat", 0, 0, 250, 20, "-one_to_one", "-how", "inner"]):
        succeeds("-op", "intersects", *words, "-overwrite", "o.gpkg", left, right)
        succeeds("-op", "intersects", "-input_geometry", "there", *words, "-overwrite", "p.gpkg", "two.sqlite", right)
        same(answer("p.gpkg"), answer("o.gpkg"), str(words))
    succeeds("-op", "intersects", "-overwrite", "o.gpkg", left, right)
    succeeds("-op", "intersects", "-sql", "SELECT id, wkt FROM t", "-input_geometry", "wkt", "-s_srs", "EPSG:2263",
             "q.gpkg", "two.sqlite", right)
    same(answer("q.gpkg"), answer("o.gpkg"), "a SELECT")


def check_dataset():
    """A name JOIN: accepts both options, even if a row is read by its FID."""
    left, right = one_column()
    two_columns()
    boxes_csv()
    plain = opened("-op", "intersects", left, right)
    view = opened("-op", "intersects", "-input_geometry", "there", "-join_geometry", "shape", "-join_srs", "EPSG:2263",
                  "two.sqlite", "boxes.csv")
    a, b = plain.GetLayer(0), view.GetLayer(0)
    same(b.GetGeometryColumn(), "there")
    for _ in range(2):
        same([(f["id"], f["join_fid"], f.GetGeometryRef() and f.GetGeometryRef().ExportToWkt()) for f in b],
             [(f["id"], f["join_fid"], f.GetGeometryRef() and f.GetGeometryRef().ExportToWkt()) for f in a])
    for layer in (a, b):
        layer.SetSpatialFilterRect(95, 0, 125, 60)
    same([f["id"] for f in b], [f["id"] for f in a])


def check_errors():
    _, right = one_column()
    two_columns()
    words = ["no.gpkg", "two.sqlite", right]
    fails("-input_geometry", "nothing", *words, message=("-input_geometry: layer 't' has no column 'nothing'",
          "here, there, wkt, hex, wkb"))
    fails("-join_geometry", "name", "no.gpkg", right, "two.sqlite", message="-join_geometry: layer 't' has no column")
    fails("-input_geometry", "id", *words, message="has no geometries in 'id'")
    with open("bad.csv", "w", encoding="utf-8") as file:
        file.write('id,g\n1,POINT (1 2)\n2,POINT (1 2) and more\n')
    fails("-input_geometry", "g", "-s_srs", "EPSG:2263", "no.gpkg", "bad.csv", right,
          message=("feature 2", "'g' holds no WKT", "POINT (1 2) and more"))
    with open("bad.csv", "w", encoding="utf-8") as file:
        file.write('id,g\n1,010100000000\n')
    fails("-input_geometry", "g", "-s_srs", "EPSG:2263", "no.gpkg", "bad.csv", right, message="holds no WKT")
    fails("no.gpkg", "bad.csv", right, message="-input_geometry with a field of WKT")
    fails("-window", 0, 0, 1, 1, "-join_geometry", "g", "no.gpkg", right, message="-join_geometry", op=False)


def check_skipped_failures():
    """-skipfailures leaves out the rows whose field holds no geometry, of either side, and counts them."""
    with open("good.csv", "w", encoding="utf-8") as file:
        file.write('id,g\n1,"POLYGON ((0 0, 5 0, 5 5, 0 0))"\n3,\n5,POINT (4 1)\n')
    with open("bad.csv", "w", encoding="utf-8") as file:
        file.write('id,g\n1,"POLYGON ((0 0, 5 0, 5 5, 0 0))"\n2,"POLYGON ((0 0, 5"\n3,\n4,0101\n5,POINT (4 1)\n')
    with open("box.csv", "w", encoding="utf-8") as file:
        file.write('box,WKT\na,"POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0))"\n')
    first = ("-skipfailures: 2 features of the layer 'bad' left out; the first: feature 2: the field 'g' holds no WKT")
    for more in ((), ("-one_to_one",), ("-pick", "first")):
        for words in (("-input_geometry", "g", "{}.csv", "box.csv"), ("-join_geometry", "g", "box.csv", "{}.csv")):
            made = []
            for name in ("good", "bad"):
                flags = ("-skipfailures", *more) if name == "bad" else more
                r = succeeds("-op", "intersects", "-overwrite", "-json_summary", "summary.json", *flags, *words[:2],
                             "o.csv", *(w.format(name) for w in words[2:]))
                true((first in r.err) == (name == "bad"), str(r))
                with open("o.csv", encoding="utf-8") as file:
                    made.append([{k: v for k, v in row.items() if k != "join_fid"} for row in csv.DictReader(file)])
            same(made[1], made[0], str((more, words)))
    fails("-skipfailures", "no.gpkg", "bad.csv", "box.csv", message="-skipfailures needs -events, -input_geometry")


def check_in_place():
    """-in_place with another geometry column adds the fields of the join to the layer itself."""
    _, right = one_column()
    two_columns()
    succeeds("-op", "intersects", "-pick", "first", "-overwrite", "o.gpkg", "one.gpkg", right)
    expected = [v["join_fid"] for _, _, v in rows("o.gpkg")]
    succeeds("-in_place", "-op", "intersects", "-pick", "first", "-input_geometry", "there", "two.sqlite", right)
    dataset = ogr.Open("two.sqlite")
    same([f["join_fid"] for f in dataset.GetLayer(0)], expected)


main(globals())
