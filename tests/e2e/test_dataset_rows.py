"""From a join opened as a dataset (JOIN:), ogr2ogr writes the rows and columns that the
command writes, for every kind of join, on small and on real layers."""

from dataset import *


sides = inputs_and_zones


def compare_all(cases, pair):
    """Compares each case in one of four formats, in turn. check_formats() compares in
    all formats."""
    for i, case in enumerate(cases):
        compare((*map(str, case), *pair), ("gpkg", "fgb", "geojson", "csv")[i % 4])


# Joins in addition to JOINS.
MORE = """
-op nearest -max_distance 30ft -min_distance 5 points.gpkg zones.gpkg
-op nearest -k 1 -ties all zones.gpkg zones.fgb
-op nearest -distance_to boundary points.gpkg zones.gpkg
-op nearest -centroid_of join points.gpkg zones.gpkg
-op nearest -k 2 -metric ellipsoid -bearing_field -t_srs EPSG:4326 -centroid_of join points.gpkg zones.gpkg
-op nearest -k 3 -metric ellipsoid -bearing_field -t_srs EPSG:4326 -nearest_point_fields points.gpkg zones.gpkg
-op dwithin -max_distance 200m -metric ellipsoid -t_srs EPSG:4326 -nearest_point_fields lines.gpkg points.gpkg
-op nearest -point_on_surface_of join points.gpkg zones.gpkg
-op disjoint -limit 9 points.gpkg zones.gpkg
-op bbox lines.gpkg zones.gpkg
-op crosses lines.gpkg zones.gpkg
-op equals zones.gpkg zones.fgb
-op covers zones.gpkg points.gpkg
-relate T*F**F*** points.gpkg zones.gpkg
-op dwithin -max_distance 20 lines.gpkg other.gpkg
-op dwithin -max_distance_field id points.gpkg zones.gpkg
-op dwithin -join_max_distance_field v:m -how right points.gpkg zones.gpkg
-op window points.gpkg zones.gpkg
-op intersects -how full -geometry intersection points.gpkg zones.gpkg
-op intersects -how full -geometry join points.gpkg zones.gpkg
-agg 'count(id), mean(id), min(id), stddev(id), first(id), last(id), mode(id), unique(id)' zones.gpkg points.gpkg
-agg 'sum(id) as total, weighted_sum(id)' -how inner zones.gpkg points.gpkg
-agg 'weighted_sum(v), mode(name), last(big)' other.gpkg zones.gpkg
-op nearest -k 4 -agg 'count, max(big), concat(name)' points.gpkg zones.gpkg
-op dwithin -max_distance 50 -agg mean(v) points.gpkg zones.gpkg
-op intersects -pick smallest_area other.gpkg zones.gpkg
-op intersects -pick max:big points.gpkg zones.gpkg
-op intersects -overlap area,length,percent lines.gpkg zones.gpkg
"""


def check_joins():
    many_sides()
    for words in JOINS:
        compare(words)
    for i, line in enumerate(MORE.strip().splitlines()):
        compare(shlex.split(line), ("gpkg", "fgb", "geojson", "csv")[i % 4])


def check_formats():
    pair = sides()
    for format in FORMATS:
        for case in (("-op", "nearest"), ("-op", "intersects"), ("-op", "nearest", "-k", 2),
                     ("-agg", "count, sum(v)"), ("-op", "intersects", "-how", "anti")):
            compare((*map(str, case), *pair), format)
    compare(("-op", "nearest", *pair), "fgb", ("-lco", "SPATIAL_INDEX=NO"))
    compare(("-op", "nearest", *pair), "csv", ())
    compare(("-op", "nearest", *pair), "csv", ("-lco", "GEOMETRY=AS_XY"))
    compare(("-op", "nearest", *pair), "geojson", ("-lco", "RFC7946=YES"))


def check_similar():
    """Conditions on texts, and joins by texts alone, also of layers without geometry."""
    r = random.Random(5)
    words = "old mill house park inn north star café".split()
    for path, n in (("a.gpkg", 60), ("b.gpkg", 50)):
        make(path, [(f"POINT ({980000 + r.randint(0, 20)} {200000 + r.randint(0, 20)})",
                     {"id": i, "name": " ".join(r.sample(words, r.randint(0, 3)))}) for i in range(n)],
             (("id", ogr.OFTInteger), ("name", ogr.OFTString)), "EPSG:2263", ogr.wkbPoint)
    for case in (("-op", "dwithin", "-max_distance", 9, "-similar", "name:0.4"),
                 ("-op", "nearest", "-similar", "name=name:0.3", "-tokens", "words"),
                 ("-similar", "name:0.4"), ("-similar", "name", "-k", 2), ("-similar", "name:1", "-how", "anti"),
                 ("-similar", "name:0.4", "-agg", "count"),
                 ("-similar", "name:0.4", "-pick", "most_similar"),
                 ("-similar", "name:0.4", "-similar", "id+name:0.1", "-tokens", "2grams", "-how", "inner")):
        compare((*case, "a.gpkg", "b.gpkg"))
    for path in ("a", "b"):
        gdal.VectorTranslate(f"{path}.csv", f"{path}.gpkg", format="CSV")
    compare(("-similar", "name:0.4", "-how", "inner", "a.csv", "b.csv"), "csv", ())
    compare(("-similar", "name:0.4", "a.csv", "b.gpkg"), "csv", ())
    # Two datasets with one join side share its dictionary.
    one, other = opened("-similar", "name:0.4", "a.gpkg", "b.gpkg"), opened("-similar", "name:0.4", "a.gpkg", "b.gpkg")
    found = [[(f["id"], f["join_id"], f["join_similarity"]) for f in d.GetLayer(0)] for d in (one, other, one)]
    true(len(found[0]) > 60, f"{len(found[0])} rows")
    same(found[1], found[0])
    same(found[2], found[0])


def check_geometries():
    points, zones = sides()
    zones_file("other.gpkg", seed=8)
    lines_file()
    compare_all([("-op", "nearest", "-k", 2, "-max_distance", 40, "-geometry", g)
                 for g in ("input", "join", "nearest_point", "connection")], ("lines.gpkg", zones))
    for g in ("join", "intersection"):
        compare(("-op", "intersects", "-geometry", g, "other.gpkg", zones))
        compare(("-op", "intersects", "-geometry", g, "lines.gpkg", zones), "fgb")
    rows = [("POINT Z (980100 200100 5)", {"name": "z"}), ("POINT M (980110 200100 7)", {"name": "m"}),
            ("CIRCULARSTRING (980000 200000, 980050 200050, 980100 200000)", {"name": "c"}),
            ("GEOMETRYCOLLECTION (POINT (980100 200100), LINESTRING (980000 200000, 980010 200010))",
             {"name": "g"}), ("POLYGON EMPTY", {"name": "e"})]
    make("odd.gpkg", rows)
    compare(("-op", "nearest", "odd.gpkg", zones))
    compare(("-op", "nearest", "odd.gpkg", zones), "geojson")
    compare(("-op", "nearest", "-geometry", "join", points, "odd.gpkg"))
    compare(("-op", "intersects", "-how", "full", "odd.gpkg", zones))


def check_names():
    pair = sides()
    make("twins.gpkg", [("POINT (980100 200100)", {"name": "a", "v": 3, "join_fid": 4, "Join_V": 5})],
         (("name", ogr.OFTString), ("v", ogr.OFTInteger), ("join_fid", ogr.OFTInteger),
          ("Join_V", ogr.OFTInteger)), kind=ogr.wkbPoint)
    compare_all([
        ("-op", "nearest", "-k", 2),
        ("-op", "nearest", "-prefix", "zone_"),
        ("-op", "nearest", "-prefix", ""),
        ("-op", "nearest", "-k", 2, "-name_fid", "zf", "-name_distance", "zd", "-name_rank", "zr",
         "-name_count", "n"),
        ("-op", "nearest", "-name_fid", "", "-name_distance", ""),
        ("-op", "intersects", "-name_count", "pairs"),
        ("-op", "nearest", "-nln", "My layer"),
    ], ("twins.gpkg", pair[1]))


def check_names_of_fid_and_geometry_columns():
    """A field of the join layer that is called as the input's FID or geometry column gets the prefix as
    in a file with these columns, also where the layer itself has no FID column. A file without them
    needs no prefix."""
    make("a.gpkg", [("POINT (1 1)", {"name": "a"})], lco=["FID=id", "GEOMETRY_NAME=shape"])
    make("b.fgb", [("POINT (1 1)", {"ID": 7, "shape": "s"})], (("ID", ogr.OFTInteger), ("shape", ogr.OFTString)))

    def names(name):
        dataset = gdal.OpenEx(name)
        layer = dataset.GetLayer(0)
        return layer.GetFIDColumn(), [field.GetName() for field in layer.schema]

    for words in ((), ("-k", "2")):
        dataset = name_of("-op", "nearest", *words, "a.gpkg", "b.fgb")
        for format, wanted in (("gpkg", ["join_ID", "join_shape"]), ("csv", ["ID", "shape"])):
            join("-overwrite", *words, f"out.{format}", "a.gpkg", "b.fgb")
            same(names(f"out.{format}")[1][-2:], wanted, (format, words))
        same(names(dataset), ("" if words else "id", names("out.gpkg")[1]), words)


def check_columns_and_rows_chosen():
    pair = sides()
    with open("where.sql", "w", encoding="utf-8") as file:
        file.write("v > 2\n")
    compare_all([
        ("-op", "nearest", "-select", ""),
        ("-op", "nearest", "-join_select", ""),
        ("-op", "nearest", "-join_where", "@where.sql"),
        ("-op", "intersects", "-limit", 7),
        ("-op", "nearest", "-limit", 0),
        ("-op", "nearest", "-where", "id < 0"),
        ("-op", "intersects", "-join_where", "v < 0 AND big = 0"),
        ("-op", "nearest", "-sql", "SELECT geom, id, id * 2 AS twice FROM points"),
        ("-op", "nearest", "-sql", "SELECT geom, id + 0.5 AS half, 'a''b' AS t FROM points",
         "-dialect", "SQLITE"),
        ("-op", "intersects", "-join_sql", "SELECT geom, name, v FROM zones WHERE v > 1 ORDER BY name DESC"),
        ("-op", "nearest", "-join_sql", "SELECT ST_Centroid(geom), name FROM zones",
         "-join_dialect", "SQLITE"),
        ("-op", "nearest", "-on", "id=v"),
        ("-op", "nearest", "-exclude", "field=id=v"),
    ], pair)
    zones_file("same.gpkg")
    compare_all([
        ("-op", "intersects"),
        ("-op", "intersects", "-unordered_pairs"),
        ("-op", "nearest", "-exclude", "self"),
        ("-op", "nearest", "-exclude", "same_geometry", "-k", 2),
    ], ("same.gpkg", "same.gpkg"))


def check_layers_of_datasets():
    rows = [(p, {"name": f"p{i}"}) for i, p in enumerate(random_points(30, size=400.0))]
    make("both.gpkg", rows, kind=ogr.wkbPoint, layer="first one")
    make("both.gpkg", rows[::-1][:20], kind=ogr.wkbPoint, layer="second", add=True)
    make("both.gpkg", [(None, {"name": "x"})], kind=ogr.wkbNone, layer="table", srs=None, add=True)
    compare(("-op", "nearest", "-input_layer", "first one", "-join_layer", "second", "both.gpkg",
             "both.gpkg"))
    compare(("-op", "nearest", "-input_layer", "second", "-join_layer", "second", "both.gpkg",
             "both.gpkg"), "csv")
    with open("xy.csv", "w", encoding="utf-8") as file:
        file.write("lon,lat,t\n" + "".join(f"{980000 + 9 * i},{200000 + 7 * i},row {i}\n" for i in range(40)))
    x, y = "X_POSSIBLE_NAMES=lon", "Y_POSSIBLE_NAMES=lat"
    compare(("-op", "nearest", "-oo", x, "-oo", y, "-oo", "AUTODETECT_TYPE=YES", "-join_layer",
             "second", "xy.csv", "both.gpkg"))
    compare(("-op", "nearest", "-joo", x, "-joo", y, "-input_layer", "second", "both.gpkg", "xy.csv"))


def check_formats_of_the_sides():
    """Formats with their own FIDs, names of FIDs and unset fields. A GeoJSON file also
    has a field with the name of its FIDs."""
    points, zones = sides()
    for end, words in (("geojson", ()), ("fgb", ()), ("shp", ()), ("csv", ("-lco", "GEOMETRY=AS_WKT")),
                       ("sqlite", ())):
        client("ogr2ogr", f"p.{end}", points, *words)
        client("ogr2ogr", f"z.{end}", zones, *words)
        for case in (("-op", "nearest"), ("-op", "intersects", "-how", "full"), ("-agg", "count")):
            compare((*case, f"p.{end}", f"z.{end}"))
        compare(("-op", "nearest", f"z.{end}", f"p.{end}"), "geojson")
        compare(("-op", "nearest", "-k", "2", f"p.{end}", f"z.{end}"), "csv")


def check_crs():
    pair = sides()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("z4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="zones")
    gdal.VectorTranslate("none.gpkg", dataset, options=["-a_srs", "None", "-nln", "zones"])
    dataset = gdal.OpenEx("points.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("p4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="points")
    dataset = None
    compare(("-op", "intersects", "-how", "full", pair[0], "z4326.gpkg"))
    compare(("-op", "nearest", "-crs", "ignore", "-k", "2", pair[0], "z4326.gpkg"))
    compare(("-op", "nearest", pair[0], "none.gpkg"))
    compare(("-op", "nearest", "-join_srs", "EPSG:2263", pair[0], "none.gpkg"))
    compare(("-op", "nearest", "none.gpkg", pair[0]))
    compare(("-op", "nearest", "-s_srs", "EPSG:2263", "none.gpkg", pair[0]), "csv")
    compare(("-op", "nearest", "-t_srs", "EPSG:32618", "-max_distance", "20m", *pair))
    compare(("-op", "nearest", "-t_srs", "EPSG:32618", "-geometry", "connection", "p4326.gpkg",
             "z4326.gpkg"))
    compare(("-op", "intersects", "p4326.gpkg", "z4326.gpkg"), "geojson")
    compare(("-op", "nearest", "-max_distance", "1deg", "p4326.gpkg", "z4326.gpkg"), "geojson")
    compare(("-op", "nearest", "-metric", "sphere", "-max_distance", "30m", "-bearing_field",
             "p4326.gpkg", "z4326.gpkg"))
    compare(("-op", "dwithin", "-metric", "sphere", "-max_distance", "10m", "p4326.gpkg", pair[0]))


def check_how_to_run_does_not_matter():
    """Threads, batches and backends do not change the rows, which are those of the command.
    """
    pair = sides()
    first = None
    for case in ((), ("-threads", 1), ("-batch", 7), ("-batch", 1, "-threads", 2),
                 ("-backend", "geos"), ("-backend", "cpu"), ("-backend", "quadrant")):
        rows = compare(("-op", "nearest", *map(str, case), *pair)).rows
        first = first or rows
        same(rows, first, str(case))
    for case in ((), ("-batch", "7"), ("-backend", "geos"), ("-invalid", "fix"), ("-invalid", "skip")):
        compare(("-op", "intersects", *case, *pair))
        compare(("-agg", "count, sum(id)", *case, *pair[::-1]))


def check_values_of_all_types():
    fields = [("i16", ogr.OFTInteger, ogr.OFSTInt16), ("b", ogr.OFTInteger, ogr.OFSTBoolean),
              ("big", ogr.OFTInteger64), ("r", ogr.OFTReal), ("f", ogr.OFTReal, ogr.OFSTFloat32),
              ("s", ogr.OFTString), ("d", ogr.OFTDate), ("dt", ogr.OFTDateTime), ("bin", ogr.OFTBinary),
              ("j", ogr.OFTString, ogr.OFSTJSON)]
    width = ogr.FieldDefn("w", ogr.OFTString)
    width.SetWidth(12)
    fields.append(width)
    rows = []
    for i, point in enumerate(random_points(20, size=300.0)):
        rows.append((point, {
            "i16": i - 10, "b": i % 2, "big": 2**62 + i, "r": 1 / (i + 3), "f": 0.5 * i,
            "s": ["", "Zoë €", "a\"b'c", None, "x" * 300][i % 5], "d": f"20{i:02}/02/28",
            "dt": f"2020/01/{i + 1:02} 10:11:12.345+00", "bin": bytes(range(i)) if i % 3 else None,
            "j": '{"a": [1, 2]}', "w": f"w{i}"} if i != 4 else {}))
    make("types.gpkg", rows, fields, kind=ogr.wkbPoint)
    inputs_file()
    for format in FORMATS:
        compare(("-op", "nearest", "points.gpkg", "types.gpkg"), format)
        compare(("-op", "nearest", "-k", "2", "types.gpkg", "points.gpkg"), format)


def check_negative_and_extreme_fids():
    """The rows of feature f have the FIDs f * n, f * n + 1, ..., if these fit into 64
    bits. GetFeature() finds each row by its FID."""
    low, high = -(2**63), 2**63 - 1
    for n in (1, 2, 3, 7):
        fids = sorted({low + 1, low // n, low // n + 1, -(10**9), -n - 1, -n, -2, -1, 0, 1, n, 10**9,
                       high // n - 1, high // n, min(high // n + 1, high), high - 1} - {low})
        # GDAL takes the FID -1 as missing and assigns another one; SQL sets it afterwards.
        inputs = make("a.gpkg", [("POINT (1 1)", {"name": str(f)}, f if f != -1 else 12345) for f in fids],
                      kind=ogr.wkbPoint)
        dataset = gdal.OpenEx(inputs, gdal.OF_VECTOR | gdal.OF_UPDATE)
        dataset.ExecuteSQL("UPDATE a SET fid = -1 WHERE fid = 12345")
        dataset = None
        lots = make("b.gpkg", [("POINT (1 1)", {}) for _ in range(n)], kind=ogr.wkbPoint)
        for words in (("-how", "inner"), ("-op", "nearest", "-k", n), ("-how", "anti")):
            dataset = opened(*words, inputs, lots)
            layer = dataset.GetLayer(0)
            seen = {}
            for feature in layer:
                seen.setdefault(int(feature["name"]), []).append(feature.GetFID())
            if words[-1] == "anti":
                same(seen, {}, "anti")
                continue
            expected = {f: [f * n + i if low <= f * n + i <= high else -1 for i in range(n)] for f in fids}
            same(seen, expected, f"{n} {words}")
            for f, found in expected.items():
                for fid in found:
                    if fid == -1 and f != -1:
                        continue
                    row = layer.GetFeature(fid)
                    same((row.GetFID(), row["name"]), (fid, str(f)), f"{n} {words}")
            for fid in (low, high, -(10**9) * n - 1, 17 * n):
                if not any(fid in found for found in expected.values()):
                    same(layer.GetFeature(fid), None, f"{n} {fid}")
            row = layer = dataset = None


def check_empty_layers():
    pair = sides()
    make("nothing.gpkg", [], (("id", ogr.OFTInteger),), kind=ogr.wkbPoint)
    for format in ("gpkg", "geojson", "csv", "fgb"):
        compare(("-op", "nearest", "nothing.gpkg", pair[1]), format)
        compare(("-op", "nearest", pair[0], "nothing.gpkg"), format)
        compare(("-op", "intersects", "-how", "inner", "nothing.gpkg", "nothing.gpkg"), format)
        compare(("-agg", "count", pair[1], "nothing.gpkg"), format)


def check_a_join_of_a_join():
    """A name JOIN: as a side of the command, and as a side of another name JOIN:."""
    points, zones = sides()
    zones_file("other.gpkg", seed=8)
    inner = ("-op", "nearest", "-prefix", "z_", points, zones)
    go(*inner[:-2], "step.gpkg", *inner[-2:])
    for words in (("-op", "intersects"), ("-op", "nearest", "-k", "2")):
        go(*words, "expected.gpkg", "step.gpkg", "other.gpkg")
        go(*words, "got.gpkg", name_of(*inner), "other.gpkg")
        same(Layer("got.gpkg").rows, Layer("expected.gpkg").rows, "input side")
        go(*words, "expected2.gpkg", "other.gpkg", "step.gpkg")
        go(*words, "got2.gpkg", "other.gpkg", name_of(*inner))
        same(Layer("got2.gpkg").rows, Layer("expected2.gpkg").rows, "join side")
        for path in ("expected.gpkg", "got.gpkg", "expected2.gpkg", "got2.gpkg"):
            os.remove(path)
        compare((*words, name_of(*inner), "other.gpkg"))
        compare((*words, "other.gpkg", name_of(*inner)), "fgb")


# --- real layers --------------------------------------------------------------


def real(case):
    words, places = case[:-2], case[-2:]
    found = []
    for place in places:
        file, _, layer = place.partition(":")
        found.append((need_data(file), layer))
    for (_, layer), option in zip(found, ("-input_layer", "-join_layer")):
        if layer:
            words = (*words, option, layer)
    return (*map(str, words), found[0][0], found[1][0])


REAL = {
    "pickups_nearest_zone": ("-op", "nearest", "nyc_small.gpkg:pickups", "nyc_small.gpkg:taxi_zones"),
    "pickups_nearest_road": ("-op", "nearest", "-max_distance", "50ft", "-nearest_point_fields",
                             "nyc_small.gpkg:pickups", "nyc_small.gpkg:roads"),
    "pickups_k_buildings": ("-op", "nearest", "-k", 3, "-ties", "all", "-limit", 500,
                            "nyc_small.gpkg:pickups", "nyc_small.gpkg:buildings"),
    "pickups_within_tracts": ("-op", "within", "nyc_small.gpkg:pickups", "nyc_small.gpkg:tracts"),
    "zones_counted": ("-agg", "count", "nyc_small.gpkg:taxi_zones", "nyc_small.gpkg:pickups"),
    "zones_overlap": ("-pick", "largest_overlap", "-overlap", "area,percent", "nyc_small.gpkg:tracts",
                      "nyc_small.gpkg:taxi_zones"),
    "zones_meet": ("-op", "intersects", "-how", "full", "nyc_small.gpkg:taxi_zones",
                   "nyc_small.gpkg:tracts"),
    "monaco": ("-op", "dwithin", "-max_distance", "20m", "osm_small_monaco.gpkg:pois",
               "osm_small_monaco.gpkg:buildings"),
    "monaco_roads": ("-op", "crosses", "osm_small_monaco.gpkg:roads", "osm_small_monaco.gpkg:landuse"),
    "cities": ("-op", "within", "world_small.gpkg:cities_5k", "world_small.gpkg:countries110m"),
    "cities_sphere": ("-op", "nearest", "-metric", "sphere", "-k", 2, "-exclude", "self",
                      "world_small.gpkg:cities_5k", "world_small.gpkg:cities_5k"),
    "cities_projected": ("-op", "nearest", "-t_srs", "EPSG:3857", "-max_distance", "300km",
                         "world_small.gpkg:cities_5k", "world.gpkg:airports_openflights"),
    "liechtenstein": ("-op", "nearest", "-geometry", "connection", "osm_liechtenstein.gpkg:pois",
                      "osm_liechtenstein.gpkg:roads"),
    "wards": ("-agg", "count", "uk_london_wards2013.fgb",
              "uk_accidents_27700.vrt"),
    "hurricanes": ("-op", "intersects", "-how", "anti", "traj_small.gpkg:hurricanes_2000s",
                   "world_small.gpkg:countries110m"),
    "norway": ("-op", "touches", "-unordered_pairs", "norway.gpkg", "norway.gpkg"),
    "torture": ("-op", "dwithin", "-max_distance", 1, "-limit", 100, "-where", "verts BETWEEN 5 AND 60", "-join_where",
                "verts < 60", "torture.gpkg", "torture.gpkg"),
    "uber": ("-op", "intersects", "-pick", "first", "-limit", 5000, "uber_2014_apr_2263.vrt", "nyc_polygons.gpkg:nta"),
}


def real_check(name):
    def check():
        words = real(REAL[name])
        layer = compare(words, ("gpkg", "fgb", "geojson", "csv")[sum(map(ord, name)) % 4])
        true(len(layer.rows) > 0, "rows")

    return check


for each in REAL:
    globals()[f"check_real_{each}"] = real_check(each)

if __name__ == "__main__":
    main(globals())
