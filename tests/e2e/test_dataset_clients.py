"""A join opened as a dataset by GDAL's clients: ogrinfo, SQL, Python. What they are
told is what the command writes, or what GDAL's Memory driver says of a copy."""

import threading

from dataset import *

try:
    import numpy
except ImportError:
    numpy = None


sides = inputs_and_zones


def memory_copy(layer):
    """Its rows with their FIDs in GDAL's own driver for memory: the reference for
    filters."""
    dataset = ogr.GetDriverByName("Memory").CreateDataSource("copy")
    out = dataset.CreateLayer(layer.GetName(), layer.GetSpatialRef(), layer.GetGeomType())
    definition = layer.GetLayerDefn()
    for i in range(definition.GetFieldCount()):
        out.CreateField(definition.GetFieldDefn(i))
    layer.ResetReading()
    for feature in layer:
        copy = ogr.Feature(out.GetLayerDefn())
        copy.SetFrom(feature)
        copy.SetFID(feature.GetFID())
        out.CreateFeature(copy)
    return dataset


# --- the driver ------------------------------------------------------------------


def check_driver():
    pair = sides()
    dataset = opened("-op", "nearest", *pair)
    driver = dataset.GetDriver()
    meta = driver.GetMetadata()
    same(meta.get("DCAP_VECTOR"), "YES")
    same(meta.get("DCAP_OPEN"), "YES")
    same(meta.get("DCAP_RASTER"), None)
    same(meta.get("DCAP_CREATE"), None)
    same(meta.get("DMD_CONNECTION_PREFIX"), "JOIN:")
    true("ogrjoin" in meta.get("DMD_EXTENSIONS", "").split(), str(meta))
    true(meta.get("DMD_LONGNAME"), str(meta))
    r = client("ogrinfo", "--formats")
    lines = [x for x in r.out.splitlines() if x.strip().startswith(driver.ShortName + " ")]
    same(len(lines), 1, r.out[:500])
    true("vector" in lines[0] and "(ro" in lines[0], lines[0])
    same(client("ogrinfo", "--format", driver.ShortName).err, "")
    same(gdal.IdentifyDriverEx(name_of(*pair)).ShortName, driver.ShortName)
    same(gdal.IdentifyDriverEx("points.gpkg").ShortName, "GPKG")
    same(gdal.IdentifyDriverEx(spec_file("a.ogrjoin", *pair)).ShortName, driver.ShortName)


def check_other_files_are_left_alone():
    """The plugin is asked first about every file of every program."""
    points_file()
    for path, content in {
        "a.json": '{"type": "FeatureCollection", "features": []}',
        "b.json": '{"type":"ogrjoin","command_line":"-op nearest a b"}',
        "c.txt": "JOIN:-op nearest points.gpkg points.gpkg",
        "d.csv": "a,b\n1,2\n",
        "empty": "",
    }.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    true(gdal.IdentifyDriverEx("a.json").ShortName == "GeoJSON", "a.json")
    own = opened("-op", "nearest", "points.gpkg", "points.gpkg").GetDriver().ShortName
    for path in ("b.json", "c.txt", "empty", "nofile", ".", ""):
        with Said():
            found = gdal.IdentifyDriverEx(path)
        true(found is None or found.ShortName != own, f"{path}: {found and found.ShortName}")
    for program in (("ogrinfo", "-q", "points.gpkg"), ("gdalinfo", "--version"), ("ogr2ogr", "--version")):
        same(client(*program).err, "", program)
    same(client("ogrinfo", "-q", "d.csv").err, "")


# --- ogrinfo ---------------------------------------------------------------------


def check_ogrinfo():
    pair = sides()
    words = ("-op", "nearest", "-max_distance", 30, *pair)
    expected = Layer(name_of(*words))
    for flags in (("-al", "-so"), ("-ro", "-al", "-so")):
        r = client("ogrinfo", *flags, name_of(*words))
        true(f"Feature Count: {len(expected.rows)}" in r.out, r.out)
        true("Layer name: points" in r.out and "Geometry: Point" in r.out, r.out)
        true('ID["EPSG",2263]' in r.out and "Extent: (" in r.out, r.out)
        for name in expected.fields:
            true(f"\n{name}: " in r.out, f"{name}: {r.out}")
        same(r.err, "", str(r))
    r = client("ogrinfo", "-q", "-al", name_of(*words))
    same(r.out.count("OGRFeature(points):"), len(expected.rows))
    r = client("ogrinfo", "-q", "-al", "-where", "join_distance IS NULL", name_of(*words))
    n = sum(v is None for v in expected.column("join_distance"))
    true(0 < n < len(expected.rows), "a fair trial")
    same(r.out.count("OGRFeature(points):"), n)
    r = client("ogrinfo", "-q", "-fid", 5, name_of(*words), "points")
    same(r.out.count("OGRFeature(points):5"), 1, r.out)
    r = client("ogrinfo", "-q", "-spat", 980000, 200000, 980200, 200500, name_of(*words), "points")
    n = sum(s is not None and s.GetX() <= 980200 for s in expected.shapes())
    true(0 < n < len(expected.rows), "a fair trial")
    same(r.out.count("OGRFeature(points):"), n)
    # The same of a file, and a name that is not there.
    spec_file("s.ogrjoin", *words)
    same(client("ogrinfo", "-q", "-al", "s.ogrjoin").out,
         client("ogrinfo", "-q", "-al", name_of(*words)).out)
    r = client("ogrinfo", name_of("nofile.gpkg", "zones.gpkg"), rc=1)
    true("nofile.gpkg" in r.err + r.out, str(r))


def check_sql():
    pair = sides()
    words = ("-op", "nearest", "-k", 2, *pair)
    expected = Layer(name_of(*words))
    sums = {}
    for row in expected.rows:
        key = row[2]["name"]
        n, total = sums.get(key, (0, 0.0))
        sums[key] = (n + 1, total + (row[2]["join_distance"] or 0.0))
    dataset = opened(*words)
    shape = dataset.GetLayer(0).GetGeometryColumn() or "GEOMETRY"
    for dialect in ("OGRSQL", "SQLITE"):
        layer = dataset.ExecuteSQL(
            "SELECT id, name, join_distance FROM points WHERE v > 2 ORDER BY id, join_distance",
            dialect=dialect)
        got = [(f["id"], f["name"], f["join_distance"]) for f in layer]
        dataset.ReleaseResultSet(layer)
        wanted = sorted((r[2]["id"], r[2]["join_distance"], r[2]["name"]) for r in expected.rows
                        if r[2]["v"] is not None and r[2]["v"] > 2)
        same(got, [(a, c, b) for a, b, c in wanted], dialect)
        layer = dataset.ExecuteSQL("SELECT DISTINCT name FROM points", dialect=dialect)
        same({f.GetField(0) for f in layer}, set(sums), dialect)
        dataset.ReleaseResultSet(layer)
        layer = dataset.ExecuteSQL("SELECT * FROM points LIMIT 5 OFFSET 7", dialect=dialect)
        same([f["join_fid"] for f in layer], expected.column("join_fid")[7:12], dialect)
        dataset.ReleaseResultSet(layer)
    layer = dataset.ExecuteSQL(
        "SELECT name, count(*) AS n, sum(join_distance) AS s FROM points GROUP BY name", dialect="SQLITE")
    got = {f["name"]: (f["n"], float(f["s"] or 0)) for f in layer}
    dataset.ReleaseResultSet(layer)
    same({k: v[0] for k, v in got.items()}, {k: v[0] for k, v in sums.items()})
    for key, value in got.items():
        near(value[1], sums[key][1], 1e-6)
    layer = dataset.ExecuteSQL(
        f"SELECT ST_Buffer({shape}, 1) AS b FROM points WHERE join_distance < 5", dialect="SQLITE")
    n = sum(1 for f in layer if f.GetGeometryRef().GetArea() > 3)
    dataset.ReleaseResultSet(layer)
    same(n, sum(d is not None and d < 5 for d in expected.column("join_distance")))
    r = client("ogrinfo", "-q", "-sql", "SELECT COUNT(*) AS n FROM points", name_of(*words))
    true(f"n (Integer) = {len(expected.rows)}" in r.out, r.out)
    r = client("ogrinfo", "-q", "-dialect", "SQLITE", "-sql",
               "SELECT COUNT(*) AS n FROM points WHERE v IS NULL", name_of(*words))
    same(f"= {sum(v is None for v in expected.column('v'))}" in r.out, True, r.out)
    # A second join in the same statement.
    dataset = opened("-op", "nearest", *pair)
    layer = dataset.ExecuteSQL(f"SELECT p.id FROM points p LEFT JOIN '{pair[1]}'.zones z ON p.name = z.name")
    same(layer.GetFeatureCount(), 61, "a join of attributes on top")
    dataset.ReleaseResultSet(layer)


def check_vrt_and_other_programs():
    pair = sides()
    name = name_of("-op", "nearest", *pair)
    with open("v.vrt", "w", encoding="utf-8") as file:
        file.write('<OGRVRTDataSource><OGRVRTLayer name="points"><SrcDataSource relativeToVRT="0">'
                   f"{name.replace('&', '&amp;')}</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>")
    same(Layer("v.vrt").rows, Layer(name).rows)
    spec_file("s.ogrjoin", "-op", "nearest", *pair)
    client("ogr2ogr", "-f", "GPKG", "a.gpkg", "s.ogrjoin", "-where", "id < 20", "-select", "id,name")
    same(sorted(Layer("a.gpkg").column("id")), list(range(20)))
    client("ogr2ogr", "b.gpkg", name, "-t_srs", "EPSG:4326", "-clipsrc", 980000, 200000, 980300, 200300)
    true(0 < len(Layer("b.gpkg").rows) < 60, "clipped")
    client("ogr2ogr", "-append", "a.gpkg", name, "-nln", "more")
    client("gdal_rasterize", "-q", "-a", "join_distance", "-tr", 10, 10, name, "r.tif")
    true(os.path.getsize("r.tif") > 0, "a raster")


# --- Python: filters -------------------------------------------------------------


def same_rows(layer, copy, what, order=list):
    got = order(f.GetFID() for f in layer)
    expected = order(f.GetFID() for f in copy)
    same(got, expected, what)
    same(layer.GetFeatureCount(), len(expected), f"count, {what}")
    return len(expected)


JOINS = {
    "nearest": ("-op", "nearest", "-max_distance", 30),
    "k": ("-op", "nearest", "-k", 2),
    "within": ("-op", "within"),
    "inner": ("-op", "intersects", "-how", "inner"),
    "full": ("-op", "intersects", "-how", "full"),
    "aggregates": ("-agg", "count as n_zones, sum(v) as v, min(name) as name, max(big) as big"),
    "join geometry": ("-op", "nearest", "-geometry", "join"),
    "transformed": ("-op", "nearest", "-t_srs", "EPSG:32618"),
}


def check_attribute_filters():
    pair = sides()
    for what, words in JOINS.items():
        dataset = opened(*words, *pair)
        layer = dataset.GetLayer(0)
        copy = memory_copy(layer)
        memory = copy.GetLayer(0)
        n = 0
        for where in (
            "id = 7", "id <> 7", "id IN (1, 5, 1000, -3)", "id BETWEEN 10 AND 20", "id IS NULL",
            "NOT (id > 5)", "FID = 3", "FID > 5 AND id < 30", "fid = 3",
            "name = 'z5'", "name = 'Z5'", "name LIKE 'z1%'", "name LIKE 'Z1%'", "name ILIKE 'Z1%'",
            "name < 'z3'", "v IS NULL", "v > 2 AND id < 40", "v > 2 OR id < 10", "big > 1152921504606846976",
            "id = 7 OR name = 'z1'", "id + v > 10", "id * 2 = 14", "OGR_GEOMETRY = 'POINT'",
            "OGR_GEOM_AREA > 100", "CAST(id AS CHARACTER) = '7'", "7 = id",
            "name || 'x' = 'z5x'", "SUBSTR(name, 1, 2) = 'z1'", "id > 5 AND id > 7 AND id <> 9", "id = 7.0",
            "id = '7'", "id > 6.5", "1 = 1", "0 = 1", "OGR_GEOM_WKT LIKE 'POINT%'",
            "join_fid = 3" if "agg" not in what else "n_zones > 1",
        ):
            with Said() as said:
                a, b = layer.SetAttributeFilter(where), memory.SetAttributeFilter(where)
            same(a == 0, b == 0, f"{what}: {where} is taken by only one: {said.all}")
            if a == 0:
                n += same_rows(layer, memory, f"{what}: {where}")
            with Said():
                layer.SetAttributeFilter(None)
                memory.SetAttributeFilter(None)
        true(n > 100, f"{what}: a fair trial")
        same_rows(layer, memory, "without a filter again")


def check_texts_that_differ_in_case():
    """GDAL's filters say = of texts without regard to case, GeoPackage with: a
    filter on its way down must not change its meaning."""
    names = ["abc", "ABC", "Abc", "äöü", "ÄÖÜ", "abd", None, ""]
    make("points.gpkg", [(p, {"name": names[i % len(names)]}) for i, p in enumerate(random_points(40, size=500.0))],
         kind=ogr.wkbPoint)
    far_zones_file()
    dataset = opened("-op", "nearest", "-prefix", "z_", "points.gpkg", "zones.gpkg")
    layer = dataset.GetLayer(0)
    copy = memory_copy(layer)
    for where in ("name = 'abc'", "name = 'ABC'", "name <> 'abc'", "name IN ('abc')", "name LIKE 'AB%'",
                  "name LIKE 'Ä%'", "name > 'abc'", "name = ''", "name IS NULL", "name = 'äöü'",
                  "name BETWEEN 'abc' AND 'abd'", "name = 'abc' AND z_name >= ''"):
        layer.SetAttributeFilter(where)
        copy.GetLayer(0).SetAttributeFilter(where)
        same_rows(layer, copy.GetLayer(0), where)


def check_spatial_filters():
    pair = sides()
    r = random.Random(3)
    for what, words in JOINS.items():
        dataset = opened(*words, *pair)
        layer = dataset.GetLayer(0)
        copy = memory_copy(layer)
        memory = copy.GetLayer(0)
        x0, x1, y0, y1 = layer.GetExtent()
        n = 0
        for i in range(25):
            x, y = r.uniform(x0, x1), r.uniform(y0, y1)
            w, h = r.uniform(0, x1 - x0), r.uniform(0, y1 - y0)
            if i % 3:
                for each in (layer, memory):
                    each.SetSpatialFilterRect(x, y, x + w, y + h)
            else:
                shape = ogr.CreateGeometryFromWkt(f"POLYGON (({x} {y}, {x + w} {y}, {x} {y + h}, {x} {y}))")
                for each in (layer, memory):
                    each.SetSpatialFilter(shape)
            if i % 4 == 1:
                for each in (layer, memory):
                    each.SetAttributeFilter("id < 40")
            n += same_rows(layer, memory, f"{what} {i}", sorted)  # an index may give another order
            for each in (layer, memory):
                each.SetAttributeFilter(None)
        true(n > 20, f"{what}: a fair trial")
        for box in ((x0, y0, x0, y0), (x1, y1, x0, y0), (-1e308, -1e308, 1e308, 1e308),
                    (-math.inf, -math.inf, math.inf, math.inf), (math.nan, 0, 1, 1)):
            with Said():  # GEOS makes no ring of what is no number
                for each in (layer, memory):
                    each.SetSpatialFilterRect(*box)
                same_rows(layer, memory, f"{what} {box}", sorted)
        layer.SetSpatialFilter(None)
        memory.SetSpatialFilter(None)
        same_rows(layer, memory, f"{what}: no filter again")


def check_filters_change_while_reading():
    pair = sides()
    layer_of = opened("-op", "nearest", *pair)
    layer = layer_of.GetLayer(0)
    all_rows = [f.GetFID() for f in layer]
    for change in (lambda: layer.SetAttributeFilter("id > 10"),
                   lambda: layer.SetSpatialFilterRect(980000, 200000, 980300, 200300),
                   lambda: layer.SetAttributeFilter(None), lambda: layer.SetSpatialFilter(None)):
        layer.ResetReading()
        for _ in range(3):
            layer.GetNextFeature()
        change()
        layer.ResetReading()
        same(len(list(layer)), layer.GetFeatureCount())
    same([f.GetFID() for f in layer], all_rows)


def check_filters_on_ignored_fields():
    """What is not wanted in the rows still decides which rows come."""
    pair = sides()
    for what, words in JOINS.items():
        dataset = opened(*words, *pair)
        layer = dataset.GetLayer(0)
        x0, x1, y0, y1 = layer.GetExtent()
        box = (x0, y0, (x0 + x1) / 2, (y0 + y1) / 2)
        layer.SetSpatialFilterRect(*box)
        expected = [f.GetFID() for f in layer]
        true(0 < len(expected), what)
        layer.SetIgnoredFields(["OGR_GEOMETRY"])
        same([f.GetFID() for f in layer], expected, f"{what}: geometry ignored")
        same(layer.GetFeatureCount(), len(expected), f"{what}: geometry ignored")
        layer.SetSpatialFilter(None)
        layer.SetIgnoredFields([])
        for field in ("id", "name", "v"):
            layer.SetAttributeFilter(f"{field} IS NOT NULL AND {field} >= '1'" if field == "name"
                                     else f"{field} >= 2")
            expected = [f.GetFID() for f in layer]
            layer.SetIgnoredFields([field])
            got = [f.GetFID() for f in layer]
            same(got, expected, f"{what}: {field} ignored")
            layer.SetIgnoredFields([])
        layer.SetAttributeFilter(None)


def check_extent_and_count():
    pair = sides()
    for what, words in JOINS.items():
        dataset = opened(*words, *pair)
        layer = dataset.GetLayer(0)
        copy = memory_copy(layer)
        again = opened(*words, *pair)  # nothing read yet
        same(again.GetLayer(0).GetFeatureCount(), copy.GetLayer(0).GetFeatureCount(), what)
        again = opened(*words, *pair)
        for a, b in zip(again.GetLayer(0).GetExtent(), copy.GetLayer(0).GetExtent()):
            near(a, b, 1e-8, what)  # GeoPackage keeps 15 digits of its own
        # Without being forced: right, or not known.
        again = opened(*words, *pair)
        n = again.GetLayer(0).GetFeatureCount(0)
        true(n in (-1, copy.GetLayer(0).GetFeatureCount()), f"{what}: {n}")
    dataset = opened("-op", "nearest", *pair)
    true(dataset.GetLayer(0).TestCapability("FastFeatureCount"), "rows 1:1 are counted at once")


def check_asking_while_reading():
    """Counts, extents and single rows do not move what comes next."""
    pair = sides()
    for what, words in JOINS.items():
        dataset = opened(*words, "-batch", 4, *pair)
        layer = dataset.GetLayer(0)
        expected = [f.GetFID() for f in layer]
        for ask in (layer.GetFeatureCount, layer.GetExtent, lambda: layer.GetFeature(expected[-1])):
            layer.ResetReading()
            got = [layer.GetNextFeature().GetFID() for _ in range(9)]
            ask()
            same(got + [f.GetFID() for f in iter(layer.GetNextFeature, None)], expected, what)


def check_dataset_reads_rows_too():
    pair = sides()
    dataset = opened("-op", "nearest", *pair)
    expected = [f.GetFID() for f in dataset.GetLayer(0)]
    for _ in range(2):
        dataset.ResetReading()
        got = []
        while True:
            found = dataset.GetNextFeature(include_layer=False)
            if found is None:
                break
            got.append(found.GetFID())
        same(got, expected)


def check_files_of_a_dataset():
    """They are told, and never deleted or moved with the specification."""
    pair = sides()
    before = set(os.listdir())
    dataset = opened("-op", "nearest", *pair)
    same(sorted(os.path.basename(p) for p in dataset.GetFileList()), sorted(pair))
    spec_file("s.ogrjoin", "-op", "nearest", *pair)
    dataset = gdal.OpenEx("s.ogrjoin", gdal.OF_VECTOR)
    same(sorted(os.path.basename(p) for p in dataset.GetFileList()), sorted((*pair, "s.ogrjoin")))
    driver = dataset.GetDriver()
    dataset = None
    driver.CopyFiles("t.ogrjoin", "s.ogrjoin")
    driver.Rename("u.ogrjoin", "t.ogrjoin")
    same(set(os.listdir()) - before, {"s.ogrjoin", "u.ogrjoin"})
    driver.Delete("u.ogrjoin")
    with Said():
        true(driver.Delete(name_of("-op", "nearest", *pair)) != 0, "a name is no file")
    same(set(os.listdir()) - before, {"s.ogrjoin"})
    true(before <= set(os.listdir()), "the layers are there")


# --- Python: single rows -----------------------------------------------------------


def check_single_rows():
    pair = sides()
    for what, words in JOINS.items():
        dataset = opened(*words, *pair)
        layer = dataset.GetLayer(0)
        rows = {f.GetFID(): f for f in layer}
        order = list(rows)
        random.Random(5).shuffle(order)
        for fid in order[:25]:
            true(layer.GetFeature(fid).Equal(rows[fid]), f"{what}: {fid}")
        with Said():
            for fid in (-1, -10, 10**9, 2**62):
                same(layer.GetFeature(fid), None, f"{what}: {fid}")
        other = opened(*words, *pair)
        fid = order[0]
        got = other.GetLayer(0).GetFeature(fid)  # before anything was read
        same(got.ExportToJson(), rows[fid].ExportToJson(), what)
        for index in (0, 5, len(rows) - 1):
            same(layer.SetNextByIndex(index), 0)
            true(layer.GetNextFeature().Equal(list(rows.values())[index]), f"{what}: index {index}")


def check_rows_outlive_their_dataset():
    pair = sides()
    code = f"""
from osgeo import gdal, ogr
gdal.UseExceptions()
dataset = gdal.OpenEx({name_of('-op', 'nearest', *pair)!r}, gdal.OF_VECTOR)
layer = dataset.GetLayer(0)
features = [f for f in layer]
texts = [f.ExportToJson() for f in features]
srs = layer.GetSpatialRef()
layer = dataset = None
assert [f.ExportToJson() for f in features] == texts
assert srs.IsProjected()
print(len(texts))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=HANG_S, check=False)
    same((done.returncode, done.stdout), (0, b"61\n"), done.stderr.decode()[-1000:])


# --- Python: Arrow ---------------------------------------------------------------


def arrow_rows(layer, **options):
    if numpy is None:
        raise Skip("no numpy")
    if not hasattr(layer, "GetArrowStreamAsNumPy"):
        raise Skip("GDAL before 3.6")
    found, sizes = {}, []
    words = ["USE_MASKED_ARRAYS=YES"] + [f"{k}={v}" for k, v in options.items()]
    for batch in layer.GetArrowStreamAsNumPy(words):
        sizes.append(len(next(iter(batch.values()))))
        for name, column in batch.items():
            found.setdefault(name, []).extend(
                None if m else v for v, m in zip(numpy.ma.getdata(column), numpy.ma.getmaskarray(column)))
    return found, sizes


def feature_columns(layer):
    """The same from features."""
    definition = layer.GetLayerDefn()
    fid = layer.GetFIDColumn() or "OGC_FID"
    found = {fid: []}
    names = [definition.GetFieldDefn(i).GetName() for i in range(definition.GetFieldCount())
             if not definition.GetFieldDefn(i).IsIgnored()]
    geometry = layer.GetGeometryColumn() or "wkb_geometry"
    has_shape = not definition.GetGeomFieldDefn(0).IsIgnored()
    for feature in layer:
        found[fid].append(feature.GetFID())
        for name in names:
            found.setdefault(name, []).append(feature[name] if feature.IsFieldSetAndNotNull(name) else None)
        if has_shape:
            shape = feature.GetGeometryRef()
            found.setdefault(geometry, []).append(bytes(shape.ExportToIsoWkb(ogr.wkbNDR)) if shape else None)
    return found


def like(value, expected):
    """The value of a NumPy column as features have it: texts are bytes there."""
    if value is None:
        return None
    if isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode() if isinstance(expected, str) else bytes(value)
    return value


def check_arrow():
    pair = sides()
    for what, words in JOINS.items():
        dataset = opened(*words, *pair)
        layer = dataset.GetLayer(0)
        cases = (
            lambda: None,
            lambda: layer.SetIgnoredFields(["id"]),
            lambda: layer.SetIgnoredFields(["OGR_GEOMETRY", "name"]),
            lambda: (layer.SetIgnoredFields([]), layer.SetAttributeFilter("id > 20"))[0],
            lambda: layer.SetSpatialFilterRect(980000, 200000, 980300, 200300),
            lambda: (layer.SetAttributeFilter("0 = 1"), layer.SetSpatialFilter(None))[0],
        )
        for i, case in enumerate(cases):
            case()
            expected = feature_columns(layer)
            for options in ({}, {"MAX_FEATURES_IN_BATCH": 5}):
                got, sizes = arrow_rows(layer, **options)
                true(not options or max(sizes, default=0) <= 5, f"{sizes}")
                if not next(iter(expected.values())):
                    same(sum(sizes), 0, f"{what} {i}")
                    continue
                same(sorted(got), sorted(expected), f"{what} {i}: columns")
                for name, column in expected.items():
                    same([like(v, e) for v, e in zip(got[name], column)], column, f"{what} {i}: {name}")
                    same(len(got[name]), len(column), f"{what} {i}: {name}")
        layer.SetAttributeFilter(None)
        got, _ = arrow_rows(layer, INCLUDE_FID="NO")
        true((layer.GetFIDColumn() or "OGC_FID") not in got, "no FIDs")


def check_arrow_left_half_way():
    pair = sides()
    dataset = opened("-op", "nearest", "-batch", 7, *pair)
    layer = dataset.GetLayer(0)
    if numpy is None or not hasattr(layer, "GetArrowStreamAsNumPy"):
        raise Skip("no numpy, or GDAL before 3.6")
    expected = [f.GetFID() for f in layer]
    stream = layer.GetArrowStreamAsNumPy(["MAX_FEATURES_IN_BATCH=3"])
    next(iter(stream))
    stream = None
    layer.ResetReading()
    same([f.GetFID() for f in layer], expected)
    for batch in layer.GetArrowStreamAsNumPy(["MAX_FEATURES_IN_BATCH=3"]):
        break
    batch = dataset = layer = None


# --- Python: many at once --------------------------------------------------------


def n_of(folder):
    if not os.path.exists("/proc/self"):
        raise Skip("no /proc")
    return len(os.listdir(f"/proc/self/{folder}"))


def check_several_at_once():
    pair = sides()
    zones_file("other.gpkg", seed=8)
    names = [name_of(*words, *pair) for words in JOINS.values()] + [name_of("-op", "nearest", pair[0], "other.gpkg")]
    expected = [Layer(name).rows for name in names]
    datasets = [gdal.OpenEx(name, gdal.OF_VECTOR) for name in names for _ in range(2)]
    got = [[] for _ in datasets]
    layers = [d.GetLayer(0) for d in datasets]
    is_more = True
    while is_more:
        is_more = False
        for rows, layer in zip(got, layers):
            feature = layer.GetNextFeature()
            if feature is not None:
                is_more = True
                rows.append(feature.GetFID())
    for i, rows in enumerate(got):
        same(rows, [r[0] for r in expected[i // 2]], names[i // 2])
    # Layers of the files that they read, open at the same time.
    plain_dataset = gdal.OpenEx(pair[0], gdal.OF_VECTOR | gdal.OF_UPDATE)
    same(len(list(plain_dataset.GetLayer(0))), 61)


def check_two_layers_of_one_dataset_handle():
    """Two references to the layer are one layer, with one cursor."""
    pair = sides()
    dataset = opened("-op", "nearest", *pair)
    a, b = dataset.GetLayer(0), dataset.GetLayerByName("points")
    first = a.GetNextFeature().GetFID()
    true(b.GetNextFeature().GetFID() != first, "one cursor")


def check_opened_a_hundred_times():
    pair = sides()
    names = [name_of("-op", "nearest", *pair), name_of("-agg", "count", *pair[::-1])]
    expected = [len(Layer(name).rows) for name in names]
    files, tasks = n_of("fd"), n_of("task")
    for i in range(100):
        dataset = gdal.OpenEx(names[i % 2], gdal.OF_VECTOR)
        layer = dataset.GetLayer(0)
        if i % 3 == 1:
            same(layer.GetFeatureCount(), expected[i % 2])
        elif i % 3 == 2:
            for _ in range(i % 7):
                layer.GetNextFeature()
        layer = dataset = None
    true(n_of("fd") <= files + 2, f"{n_of('fd')} files are open, before {files}")
    true(n_of("task") <= tasks + 1, f"{n_of('task')} threads are there, before {tasks}")


def check_half_read_and_closed():
    pair = sides()
    tasks = n_of("task")
    for words in JOINS.values():
        for n in (0, 1, 5, 30):
            dataset = opened(*words, "-batch", 3, *pair)
            layer = dataset.GetLayer(0)
            for _ in range(n):
                layer.GetNextFeature()
            layer = dataset = None
    true(n_of("task") <= tasks + 1, f"{n_of('task')} threads are there, before {tasks}")


def check_threads_with_own_handles():
    pair = sides()
    names = [name_of(*words, *pair) for words in JOINS.values()]
    expected = [Layer(name).rows for name in names]
    wrong = []

    def read(seed):
        r = random.Random(seed)
        for _ in range(10):
            i = r.randrange(len(names))
            try:
                if Layer(names[i]).rows != expected[i]:
                    wrong.append(names[i])
            except Exception as error:  # told by the thread that waits
                wrong.append(repr(error))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(wrong, [])


def check_a_handle_given_to_another_thread():
    """Opened here, read and closed there: one at a time."""
    pair = sides()
    expected = len(Layer(name_of("-op", "nearest", *pair)).rows)
    found = []

    def read(dataset):
        found.append(sum(1 for _ in dataset.GetLayer(0)))

    for _ in range(5):
        dataset = opened("-op", "nearest", "-batch", 5, *pair)
        dataset.GetLayer(0).GetNextFeature()
        dataset.GetLayer(0).ResetReading()
        thread = threading.Thread(target=read, args=(dataset,))
        thread.start()
        thread.join()
        dataset = None
    same(found, [expected] * 5)


if __name__ == "__main__":
    main(globals())
