"""Input and output formats.  With every driver the answer is that of OGR's own
distances, and no field is missing."""

from e2e import *

WITHIN = 60.0
N_POINTS, N_LOTS = 40, 16
INPUTS = ["gpkg", "fgb", "shp", "geojson", "vrt", "csv"]


def csv_vrt(name, rows, fields, is_point):
    """Writes a CSV with columns x, y (points) or WKT, and a VRT for it. Returns the
    path of the VRT."""
    with open(f"{name}_t.csv", "w", encoding="utf-8") as file:
        keys = [f[0] for f in fields]
        file.write(",".join((["x", "y"] if is_point else ["shape"]) + keys) + "\n")
        for shape, values in rows:
            place = shape[7:-1].split() if is_point else [f'"{shape}"']
            file.write(",".join(place + [str(values[k]) for k in keys]) + "\n")
    kinds = {ogr.OFTString: "String", ogr.OFTReal: "Real", ogr.OFTInteger: "Integer"}
    geometry = (
        'encoding="PointFromColumns" x="x" y="y"'
        if is_point
        else 'encoding="WKT" field="shape"'
    )
    field_lines = "".join(
        f'<Field name="{f[0]}" src="{f[0]}" type="{kinds[f[1]]}"/>' for f in fields
    )
    with open(f"{name}.vrt", "w", encoding="utf-8") as file:
        file.write(
            f'<OGRVRTDataSource><OGRVRTLayer name="{name}">'
            f'<SrcDataSource relativeToVRT="1">{name}_t.csv</SrcDataSource>'
            f"<SrcLayer>{name}_t</SrcLayer>"
            f"<GeometryType>{'wkbPoint' if is_point else 'wkbMultiPolygon'}"
            f"</GeometryType><LayerSRS>EPSG:2263</LayerSRS>"
            f"<GeometryField {geometry}/>{field_lines}"
            "</OGRVRTLayer></OGRVRTDataSource>"
        )
    return f"{name}.vrt"


def make_input(extension, name, rows, fields, kind):
    if extension == "vrt":
        return csv_vrt(name, rows, fields, kind == ogr.wkbPoint)
    lco = []
    if extension == "csv":  # with WKT
        lco = ["GEOMETRY=AS_WKT", "CREATE_CSVT=YES"]
    path = make(f"{name}.{extension}", rows, fields=fields, kind=kind, lco=lco)
    return path


def point_rows():
    return [
        (p, {"label": f"point {i}", "n": i, "v": i / 8})
        for i, p in enumerate(random_points(N_POINTS))
    ]


def lot_rows():
    return [
        (p, {"landuse": f"Straße {i}", "rooms": i, "tax": i * 2.25})
        for i, p in enumerate(random_polygons(N_LOTS))
    ]


POINT_FIELDS = (
    ("label", ogr.OFTString),
    ("n", ogr.OFTInteger),
    ("v", ogr.OFTReal),
)
LOT_FIELDS = (
    ("landuse", ogr.OFTString),
    ("rooms", ogr.OFTInteger),
    ("tax", ogr.OFTReal),
)


def compare(out, points, lots, answers, near_by=0.0, keys=None, null_text=None):
    """Compares the output rows with the plain answer, in the order of the input.
    null_text is what the format stores for a NULL string."""
    keys = keys or {}
    name = lambda key: keys.get(key, key)
    same(len(out.rows), len(points.rows), "rows")
    for got, given, answer in zip(out.rows, points.rows, answers):
        for key, value in given[2].items():
            same(got[2][name(key)], value, key)
        if not answer:
            same(got[2][name("join_fid")], None, "join_fid of an unmatched row")
            same(got[2][name("join_distance")], None)
            for key in lots.fields:
                value = got[2][name(key)]
                same(None if value == null_text else value, None, key)
            continue
        d, row = answer[0]
        same(got[2][name("join_fid")], lots.rows[row][0], "join_fid")
        near(got[2][name("join_distance")], d, near_by * max(d, 1), "distance")
        for key, value in lots.rows[row][2].items():
            same(got[2][name(key)], value, key)


def check_every_format_in():
    points, lots = {}, {}
    for e in INPUTS:
        points[e] = make_input(e, f"p_{e}", point_rows(), POINT_FIELDS, ogr.wkbPoint)
        lots[e] = make_input(
            e, f"l_{e}", lot_rows(), LOT_FIELDS, ogr.wkbMultiPolygon
        )
    n_matched = set()
    for e_lots in INPUTS:
        lot_layer = Layer(lots[e_lots])
        lot_layer.fields.pop("WKT", None)
        for row in lot_layer.rows:
            row[2].pop("WKT", None)
        for e_points in INPUTS:
            out = f"o_{e_points}_{e_lots}.gpkg"
            # A CSV has no CRS. The join assumes the CRS of the other side.
            join("-max_distance", WITHIN, out, points[e_points], lots[e_lots])
            point_layer = Layer(points[e_points])
            answers = nearest(point_layer.shapes(), lot_layer.rows, WITHIN)
            n_matched.add(sum(1 for a in answers if a))
            compare(Layer(out), point_layer, lot_layer, answers)
            same(Layer(out).name, f"p_{e_points}", "layer name")
            os.remove(out)
    same(len(n_matched), 1, "all formats match the same number of rows")
    n = n_matched.pop()
    true(5 < n < N_POINTS, f"some match and some do not: {n}")


def written(out, *options, near_by=0.0, keys=None, order=None, oo=(), null_text=None):
    points = make_input("gpkg", "p", point_rows(), POINT_FIELDS, ogr.wkbPoint)
    lots = make_input("gpkg", "l", lot_rows(), LOT_FIELDS, ogr.wkbMultiPolygon)
    r = join("-max_distance", WITHIN, *options, out, points, lots)
    point_layer, lot_layer = Layer(points), Layer(lots)
    answers = nearest(point_layer.shapes(), lot_layer.rows, WITHIN)
    got = Layer(out, oo=oo)
    if order:
        got.rows.sort(key=order)
    compare(got, point_layer, lot_layer, answers, near_by, keys, null_text)
    return r, got, point_layer


def same_places(got, given):
    same([r[1] for r in got.rows], [r[1] for r in given.rows], "geometries")


def check_gpkg():
    _, got, given = written("out.gpkg")
    same_places(got, given)
    same([r[0] for r in got.rows], [r[0] for r in given.rows], "FIDs")
    same(got.name, "p")
    same(got.srs.GetAuthorityCode(None), "2263")
    same(list(got.fields)[:5], ["label", "n", "v", "join_fid", "join_distance"])
    same(got.fields["join_fid"][0], "Integer64")
    same(got.fields["join_distance"][0], "Real")
    same(got.kind, ogr.wkbPoint)


def check_flatgeobuf():
    r, got, given = written("out.fgb", "-lco", "SPATIAL_INDEX=NO")
    same_places(got, given)
    # With a spatial index the driver changes the order of rows; everything else must stay.
    os.remove("p.gpkg"), os.remove("l.gpkg")
    r, got, given = written("out2.fgb", order=lambda row: row[2]["n"])
    same_places(got, given)
    same(got.srs.GetAuthorityCode(None), "2263")


def check_shapefile():
    keys = {"join_distance": "join_dista"}
    r, got, given = written("out.shp", near_by=1e-12, keys=keys)
    same_places(got, given)
    same(len(got.fields), 3 + 2 + 3, "no field is lost")
    true("join_dista" in r.err, "the shortened name is said")
    true(os.path.exists("out.dbf") and os.path.exists("out.shx"), "all members")


def check_geojson():
    _, got, given = written("out.geojson", near_by=1e-14)
    same([r[0] for r in got.rows], [r[0] for r in given.rows], "FIDs")
    same(got.srs.GetAuthorityCode(None), "2263")
    with open("out.geojson", encoding="utf-8") as file:
        same(len(json.load(file)["features"]), N_POINTS)


def check_geojsonseq():
    # The format always stores longitude and latitude.
    _, got, given = written("out.geojsonl", near_by=1e-14)
    same(got.srs.GetAuthorityCode(None), "4326")


def check_csv():
    r, got, given = written(
        "out.csv",
        "-lco",
        "GEOMETRY=AS_XY",
        "-lco",
        "CREATE_CSVT=YES",
        near_by=1e-13,
        null_text="",
    )
    for row, there in zip(got.rows, given.shapes()):
        near(row[2]["X"], there.GetX(), 1e-7)
    os.remove("p.gpkg"), os.remove("l.gpkg")
    oo = ["AUTODETECT_TYPE=YES"]
    r, got, given = written("plain.csv", oo=oo, near_by=1e-13, null_text="")
    true("no geometry" in r.err, f"that no geometry is written is said: {r}")


def check_sqlite():
    _, got, given = written("out.sqlite")
    same_places(got, given)
    os.remove("p.gpkg"), os.remove("l.gpkg")
    try:
        written("spatial.sqlite", "-dsco", "SPATIALITE=YES")
    except RuntimeError as error:
        raise Skip(f"SpatiaLite: {error}") from None


def check_other_formats():
    """Every other format that can be written gives a complete output or an error."""
    names = ("out.gml", "out.ods", "out.xlsx", "out.tab", "out.mif", "out.json")
    for name in names:
        if os.path.exists("p.gpkg"):
            os.remove("p.gpkg"), os.remove("l.gpkg")
        points = make_input("gpkg", "p", point_rows(), POINT_FIELDS, ogr.wkbPoint)
        lots = make_input("gpkg", "l", lot_rows(), LOT_FIELDS, ogr.wkbMultiPolygon)
        join("-max_distance", WITHIN, name, points, lots)
        got, given = Layer(name), Layer(points)
        same(len(got.rows), N_POINTS, name)
        answers = nearest(given.shapes(), Layer(lots).rows, WITHIN)
        fids = [a[0][1] + 1 if a else None for a in answers]
        place = [n for n in got.fields if n.lower() == "join_fid"]
        same(len(place), 1, f"{name}: {list(got.fields)}")
        found = [int(v) if v not in (None, "") else None for v in got.column(place[0])]
        if name in ("out.tab", "out.mif"):  # no NULLs there
            found = [v if v else None for v in found]
        same(found, fids, name)


def check_format_without_fields():
    points = make_input("gpkg", "p", point_rows(), POINT_FIELDS, ogr.wkbPoint)
    lots = make_input("gpkg", "l", lot_rows(), LOT_FIELDS, ogr.wkbMultiPolygon)
    fails("-max_distance", WITHIN, "out.dxf", points, lots, message="field")


def check_layer_name():
    points_file()
    lots_file()
    join("out.gpkg", "points.gpkg", "lots.gpkg", "-nln", "Grüße 1")
    same(Layer("out.gpkg").name, "Grüße 1")
    join("named.fgb", "points.gpkg", "lots.gpkg", "-nln", "other")
    same(Layer("named.fgb").name, "other")
    # The layer of a Shapefile has the name of its file.
    join("named.shp", "points.gpkg", "lots.gpkg", "-nln", "other")
    same(Layer("named.shp").name, "named")


def check_fids():
    """FIDs are kept, even with gaps, if there is one row per input row. Otherwise rows
    are numbered."""
    rows = [(p, {"name": "x"}, 10 * i + 5) for i, p in enumerate(random_points(9))]
    make("points.gpkg", rows)
    lots_file()
    fids = [row[2] for row in rows]
    for name, how in (("o.gpkg", []), ("o.sqlite", []), ("o.geojson", [])):
        join(name, "points.gpkg", "lots.gpkg", *how)
        same([r[0] for r in Layer(name).rows], fids, name)
    join("unset.gpkg", "points.gpkg", "lots.gpkg", "-unsetFid")
    same([r[0] for r in Layer("unset.gpkg").rows], list(range(1, 10)))
    join("k.gpkg", "points.gpkg", "lots.gpkg", "-k", "2")
    same([r[0] for r in Layer("k.gpkg").rows], list(range(1, 19)))
    join("inner.gpkg", "points.gpkg", "lots.gpkg", "-how", "inner")
    same([r[0] for r in Layer("inner.gpkg").rows], fids, "inner")


def check_z_and_m():
    for kind, wkt in (
        (ogr.wkbPoint25D, "POINT Z (980100 200100 7.5)"),
        (ogr.wkbPointM, "POINT M (980100 200100 3)"),
        (ogr.wkbPointZM, "POINT ZM (980100 200100 7.5 3)"),
        (ogr.wkbMultiPoint25D, "MULTIPOINT Z (980100 200100 1, 980200 200100 2)"),
    ):
        for end in ("gpkg", "fgb", "shp"):
            make(f"points.{end}", [(wkt, {"name": "a"})], kind=kind)
            if not os.path.exists("lots.gpkg"):
                lots_file()
            for out in ("o.gpkg", "o.fgb", "o.shp"):
                join(out, f"points.{end}", "lots.gpkg", "-overwrite")
                got, given = Layer(out), Layer(f"points.{end}")
                same(got.rows[0][1], given.rows[0][1], f"{wkt} {end} {out}")
            for name in os.listdir("."):
                if name.startswith("points."):
                    os.remove(name)


def check_utf8_names():
    fields = (("größe", ogr.OFTString), ("名前", ogr.OFTInteger))
    make("ü.gpkg", [("POINT (1 1)", {"größe": "ñandú", "名前": 3})], fields=fields)
    make("é.gpkg", [("POINT (1 2)", {"größe": "ø", "名前": 4})], fields=fields)
    join("ö.gpkg", "ü.gpkg", "é.gpkg")
    same(
        Layer("ö.gpkg").rows[0][2],
        {
            "größe": "ñandú",
            "名前": 3,
            "join_fid": 1,
            "join_distance": 1.0,
            "join_größe": "ø",
            "join_名前": 4,
        },
    )


if __name__ == "__main__":
    main(globals())
