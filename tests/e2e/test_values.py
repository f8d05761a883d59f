"""Attributes from the input to the output: types, widths, subtypes, NULL and unset,
dates, lists, bytes and domains, as far as the output's driver supports them."""

from e2e import *

FIELDS = [
    ("s", ogr.OFTString),
    ("i", ogr.OFTInteger),
    ("b", ogr.OFTInteger, ogr.OFSTBoolean),
    ("i16", ogr.OFTInteger, ogr.OFSTInt16),
    ("i64", ogr.OFTInteger64),
    ("f", ogr.OFTReal),
    ("f32", ogr.OFTReal, ogr.OFSTFloat32),
    ("d", ogr.OFTDate),
    ("dt", ogr.OFTDateTime),
    ("js", ogr.OFTString, ogr.OFSTJSON),
]
FULL = {
    "s": "it's \"quoted\", ; \\ ñ\n\ttwo lines",
    "i": -2147483648,
    "b": 1,
    "i16": -32768,
    "i64": -9007199254740993,
    "f": 0.1 + 0.2,
    "f32": 0.5,
    "d": "1899/12/31",
    "dt": "2024/02/29 23:59:59.123+00",
    "js": '{"a": [1, null]}',
}
EMPTY = {key: None for key in FULL}
BLANK = dict(EMPTY, s="", js="")
ZERO = dict(EMPTY, i=0, b=0, i16=0, i64=0, f=0.0, f32=0.0)
ROWS = [FULL, EMPTY, BLANK, ZERO, {}]


def fields():
    found = []
    for field in FIELDS:
        definition = ogr.FieldDefn(field[0], field[1])
        if len(field) > 2:
            definition.SetSubType(field[2])
        found.append(definition)
    width = ogr.FieldDefn("w", ogr.OFTString)
    width.SetWidth(12)
    return [*found, width]


def make_both(end="gpkg"):
    """Makes points 0 .. 4 on a line, each with a partner 0.25 away on the other side.
    One more input point has no partner. Returns the paths of both layers."""
    rows = [(f"POINT ({10 * i} 0)", v) for i, v in enumerate(ROWS)]
    make(f"a.{end}", [*rows, ("POINT (500 0)", FULL)], fields(), kind=ogr.wkbPoint)
    rows = [(f"POINT ({10 * i} 0.25)", v) for i, v in enumerate(ROWS)]
    make(f"b.{end}", rows, fields(), kind=ogr.wkbPoint)
    return f"a.{end}", f"b.{end}"


def compare(out, a, b):
    got, left, right = Layer(out), Layer(a), Layer(b)
    for name, described in left.fields.items():
        same(got.fields[name], described, f"{out}: definition of {name}")
    for name, described in right.fields.items():
        same(got.fields["join_" + name], described, f"{out}: of join_{name}")
    for i, row in enumerate(got.rows):
        for key, value in left.rows[i][2].items():
            same(row[2][key], value, f"{out}: row {i}, {key}")
        for key in right.fields:
            expected = right.rows[i][2][key] if i < len(ROWS) else None
            same(row[2]["join_" + key], expected, f"{out}: row {i}, join_{key}")
    same(got.column("join_distance")[-1], None)


def check_types_gpkg():
    make_both()
    for options in ([], ["-batch", "2"], ["-sql", "SELECT * FROM a"]):
        join("-max_distance", 1, "o.gpkg", "a.gpkg", "b.gpkg", "-overwrite", *options)
        compare("o.gpkg", "a.gpkg", "b.gpkg")
    got = Layer("o.gpkg")
    same(got.fields["join_i16"][1], "Int16")
    same(got.fields["join_f32"][1], "Float32")
    same(got.fields["join_b"][1], "Boolean")
    same(got.fields["join_js"][1], "JSON")
    same(got.fields["join_w"][2], 12, "width")
    same(got.rows[0][2]["join_i64"], FULL["i64"])
    same(got.rows[0][2]["join_f"], FULL["f"])
    same(got.rows[0][2]["join_dt"], FULL["dt"])
    same(got.rows[2][2]["join_s"], "", "an empty string is no NULL")


def check_gpkg_to_others():
    make_both()
    left, right = Layer("a.gpkg"), Layer("b.gpkg")
    for out in ("o.sqlite", "o.geojson", "o.fgb", "o.shp"):
        lco = ["-lco", "SPATIAL_INDEX=NO"] if out == "o.fgb" else []
        join("-max_distance", 1, out, "a.gpkg", "b.gpkg", *lco)
        got = Layer(out)
        same(len(got.rows), 6, out)
        n_own = len(FIELDS) + 1
        same(len(got.fields), 2 * n_own + 2, f"{out}: {list(got.fields)}")
        for key in ("s", "i", "i64", "f", "b"):
            values = [row[2][key] for row in right.rows] + [None]
            if out == "o.shp":
                values = [v if v != "" else None for v in values]
            if out in ("o.geojson", "o.shp") and key == "f":  # 15 digits
                values = [None if v is None else float(f"{v:.15g}") for v in values]
            place = list(got.fields)[n_own + 2 + list(right.fields).index(key)]
            true(place.startswith("join_"), f"{out}: {place}")
            same(got.column(place), values, f"{out}: {place}")


def check_time_zones():
    for end in ("gpkg", "fgb", "geojson"):
        zones = ["", "+00", "+0530", "-0330", "+1245"]
        rows = [
            (f"POINT ({i} 0)", {"t": f"2024/01/02 03:04:05{z}"})
            for i, z in enumerate(zones)
        ]
        fields = (("t", ogr.OFTDateTime),)
        make(f"a.{end}", rows, fields)
        make(f"b.{end}", rows, fields)
        lco = ["-lco", "SPATIAL_INDEX=NO"] if end == "fgb" else []
        join("o.fgb", f"a.{end}", f"b.{end}", "-overwrite", "-lco", "SPATIAL_INDEX=NO")
        given = Layer(f"a.{end}").column("t")
        got = Layer("o.fgb")
        same(sorted(got.column("t")), sorted(given), end)
        same(got.column("join_t"), got.column("t"), end)


def check_times():
    """Times of day in formats that have this type. GeoJSON and FlatGeobuf do not have
    it."""
    fields = (("t", ogr.OFTTime),)
    make("a.sqlite", [("POINT (0 0)", {"t": "12:34:56"})], fields)
    join("o.sqlite", "a.sqlite", twin("a.sqlite"))
    same(Layer("o.sqlite").column("join_t"), ["12:34:56"])
    r = join("o.fgb", "a.sqlite", twin("a.sqlite"))
    true("no type Time" in r.err, f"said: {r}")
    same(Layer("o.fgb").column("join_t"), ["12:34:56"])


def check_lists():
    fields = (
        ("si", ogr.OFTStringList),
        ("ii", ogr.OFTIntegerList),
        ("ll", ogr.OFTInteger64List),
        ("rr", ogr.OFTRealList),
    )
    values = {
        "si": ["a", "b,c", ""],
        "ii": [1, -2],
        "ll": [2**40, 3],
        "rr": [0.5, 0.1],
    }
    rows = [("POINT (0 0)", values), ("POINT (5 0)", {})]
    make("a.geojson", rows, fields)
    join("o.geojson", "a.geojson", twin("a.geojson"))
    got = Layer("o.geojson")
    for key, value in values.items():
        same(got.column("join_" + key), [value, None], key)
    # Formats without lists store texts, with a warning.
    r = join("o.gpkg", "a.geojson", twin("a.geojson"))
    got = Layer("o.gpkg")
    true("no type StringList" in r.err and "no type RealList" in r.err, str(r))
    text = got.column("join_ii")[0]
    true("1" in text and "-2" in text, text)
    true("b,c" in got.column("join_si")[0], got.column("join_si")[0])


def check_domains():
    dataset = gdal.GetDriverByName("GPKG").Create("lots.gpkg", 0, 0, 0, 0)
    dataset.AddFieldDomain(
        ogr.CreateCodedFieldDomain(
            "uses", "what it is", ogr.OFTInteger, ogr.OFSTNone, {1: "home", 2: "shop"}
        )
    )
    dataset.AddFieldDomain(
        ogr.CreateRangeFieldDomain(
            "heights", "", ogr.OFTReal, ogr.OFSTNone, 0.0, True, 500.0, False
        )
    )
    layer = dataset.CreateLayer("lots", crs("EPSG:2263"), ogr.wkbPolygon)
    for name, kind, domain in (
        ("use", ogr.OFTInteger, "uses"),
        ("height", ogr.OFTReal, "heights"),
    ):
        field = ogr.FieldDefn(name, kind)
        field.SetDomainName(domain)
        layer.CreateField(field)
    feature = ogr.Feature(layer.GetLayerDefn())
    feature["use"] = 2
    feature["height"] = 7.5
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POLYGON ((0 0,0 9,9 9,0 0))"))
    layer.CreateFeature(feature)
    feature = layer = dataset = None
    make("points.gpkg", [("POINT (1 1)", {"name": "a"})])
    join("o.gpkg", "points.gpkg", "lots.gpkg")
    dataset = gdal.OpenEx("o.gpkg")
    definition = dataset.GetLayer(0).GetLayerDefn()
    domain = dataset.GetFieldDomain("uses")
    same(domain.GetEnumeration(), {"1": "home", "2": "shop"})
    same(dataset.GetFieldDomain("heights").GetMaxAsDouble(), 500.0)
    index = definition.GetFieldIndex("use")
    same(definition.GetFieldDefn(index).GetDomainName(), "uses")
    dataset = None
    # In a format without domains the field is written without its domain.
    join("o.fgb", "points.gpkg", "lots.gpkg")
    same(Layer("o.fgb").column("use"), [2])


def check_constraints():
    """NOT NULL and UNIQUE of join fields are dropped, because rows can be unmatched or
    repeated. NOT NULL of an input field stays."""
    strict = ogr.FieldDefn("code", ogr.OFTString)
    strict.SetNullable(False)
    strict.SetUnique(True)
    strict.SetDefault("'none'")
    rows = [("POINT (0 0)", {"code": "x"}), ("POINT (100 0)", {"code": "y"})]
    make("lots.gpkg", rows, [strict])
    rows = [(f"POINT ({x} 0)", {"code": str(x)}) for x in (1, 2, 50)]
    make("points.gpkg", rows, [strict])
    join("o.gpkg", "points.gpkg", "lots.gpkg", "-max_distance", 5)
    same(Layer("o.gpkg").column("join_code"), ["x", "x", None])
    join("k.gpkg", "points.gpkg", "lots.gpkg", "-k", "2")
    same(len(Layer("k.gpkg").rows), 6)
    dataset = gdal.OpenEx("o.gpkg")
    definition = dataset.GetLayer(0).GetLayerDefn()
    same(definition.GetFieldDefn(0).IsNullable(), 0)


def check_long_text():
    long = "x" * 1000000
    make("lots.gpkg", [("POINT (0 0)", {"name": long})])
    make("points.gpkg", [(f"POINT ({i} 0)", {"name": "a"}) for i in range(5)])
    join("o.gpkg", "points.gpkg", "lots.gpkg")
    same(Layer("o.gpkg").column("join_name"), [long] * 5)
    r = run("-op", "nearest", "o.shp", "points.gpkg", "lots.gpkg")
    # DBF stores at most 254 bytes of a text. A warning says that the rest is
    # cut off.
    true("truncated to 254" in r.err, str(r))


def check_no_fields_and_many_fields():
    make("bare.gpkg", [("POINT (0 0)", {})], ())
    join("o.gpkg", "bare.gpkg", twin("bare.gpkg"))
    same(list(Layer("o.gpkg").fields), ["join_fid", "join_distance"])
    names = [(f"f{i}", ogr.OFTInteger) for i in range(300)]
    values = {f"f{i}": i for i in range(300)}
    make("wide.gpkg", [("POINT (0 0)", values)], names)
    join("o2.gpkg", "wide.gpkg", twin("wide.gpkg"))
    row = Layer("o2.gpkg").rows[0][2]
    same(len(row), 602)
    same([row[f"join_f{i}"] for i in range(300)], list(range(300)))
    join("o2.shp", "bare.gpkg", "wide.gpkg")
    same(list(Layer("o2.shp").rows[0][2].values())[2:], list(range(300)))
    # A DBF record has at most 65,535 bytes. A text field takes 80 bytes.
    names = [(f"f{i}", ogr.OFTString) for i in range(900)]
    make("wider.fgb", [("POINT (0 0)", {})], names)  # quickly made, even with so many fields
    fails("o3.shp", "bare.gpkg", "wider.fgb", message="field")


def check_shapefile_names():
    """Names with equal first ten letters. No field is lost."""
    names = [(f"a_long_name_{i}", ogr.OFTInteger) for i in range(15)]
    values = {f"a_long_name_{i}": i for i in range(15)}
    make("a.gpkg", [("POINT (0 0)", values)], names)
    r = join("o.shp", "a.gpkg", twin("a.gpkg"))
    got = Layer("o.shp")
    same(len(got.fields), 32)
    same(list(got.rows[0][2].values())[17:], list(range(15)))
    true(all(len(name) <= 10 for name in got.fields), "ten letters")


if __name__ == "__main__":
    main(globals())
