"""The driver JOIN: its metadata, the names that it accepts, its files, and -write_spec."""

from dataset import *

DRIVER = "JOIN"


sides = layers


# --- metadata ----------------------------------------------------------------------


def check_metadata_of_the_driver():
    driver = gdal.GetDriverByName(DRIVER)
    true(driver is not None, "the driver is there")
    said = driver.GetMetadata()
    for key, value in (("DCAP_VECTOR", "YES"), ("DCAP_OPEN", "YES"), ("DCAP_VIRTUALIO", "YES"),
                       ("DMD_CONNECTION_PREFIX", "JOIN:"), ("DMD_EXTENSIONS", "ogrjoin")):
        same(said.get(key), value, key)
    for key in ("DMD_LONGNAME", "DMD_HELPTOPIC", "DMD_OPENOPTIONLIST"):
        true(said.get(key), key)
    for key in ("DCAP_RASTER", "DCAP_CREATE", "DCAP_CREATECOPY"):
        same(said.get(key), None, key)
    r = client("ogrinfo", "--formats")
    lines = [line for line in r.out.splitlines() if line.strip().startswith("JOIN ")]
    same(len(lines), 1, r.out)
    same(r.err, "")
    client("ogrinfo", "--format", DRIVER)


def check_the_plugin_needs_no_cuda():
    if shutil.which("readelf") is None:
        raise Skip("no readelf")
    r = client("readelf", "-d", PLUGIN)
    needed = [line for line in r.out.splitlines() if "NEEDED" in line]
    true(not any("cuda" in line or "nvidia" in line for line in needed), r.out)
    symbols = client("nm", "-D", "--defined-only", PLUGIN).out.split()
    same([s for s in symbols if s.startswith(("oj_", "Register"))], ["RegisterOGRJOIN"])


def check_what_is_its_own():
    pair = sides()
    name = name_of("-op", "nearest", *pair)
    spec_file("s.ogrjoin", "-op", "nearest", *pair)
    make("x.geojson", [("POINT (1 2)", {"name": "a"})], srs=None)
    shutil.copy("x.geojson", "ogrjoin")
    shutil.copy("s.ogrjoin", "s.json")
    for path, driver in ((name, DRIVER), ("join:x", DRIVER), ("JOIN:", DRIVER), ("s.ogrjoin", DRIVER),
                         (pair[0], "GPKG"), ("x.geojson", "GeoJSON"), ("ogrjoin", "GeoJSON"), ("s.json", None),
                         ("nothing.ogrjoin", None), ("JOINT:x", None), ("xJOIN:x", None)):
        found = gdal.IdentifyDriverEx(path)
        same(found and found.ShortName, driver, path)
    os.mkdir("folder.ogrjoin")
    same(gdal.IdentifyDriverEx("folder.ogrjoin"), None)


def check_it_is_read_only():
    """Programs first try to open a dataset for update. This must fail without an error
    message. layer_conformance checks rows and layers."""
    pair = sides()
    name = name_of("-op", "nearest", *pair)
    for path in (name, spec_file("s.ogrjoin", "-op", "nearest", *pair)):
        with Messages() as messages:
            same(gdal.OpenEx(path, gdal.OF_VECTOR | gdal.OF_UPDATE), None)
        same([text for text in messages.errors if "JOIN" in text or "nearest" in text], [])
    with Messages() as messages:
        same(gdal.OpenEx(name, gdal.OF_RASTER), None)
    # ogrinfo from 3.7 on prints a notice for every driver that cannot update, unless -ro is given.
    new = int(gdal.VersionInfo()) >= 3070000
    r = client("ogrinfo", "-q", *(["-ro"] if new else []), name, "-sql", "SELECT COUNT(*) AS n FROM points")
    same(r.err, "")
    true("n (Integer) = 50" in r.out or "n (Integer64) = 50" in r.out, str(r))


def check_metadata_of_the_dataset():
    pair = sides()
    where = "name <> 'it''s'"
    dataset = opened("-op", "nearest", "-where", where, *pair)
    for said in (dataset.GetMetadata(), dataset.GetLayer(0).GetMetadata()):
        text = "\n".join(f"{k}={v}" for k, v in said.items())
        for part in ("points.gpkg", "lots.gpkg", "nearest", where):
            true(part in text, f"{part} in {text}")
    words = dataset.GetMetadata()["COMMAND_LINE"]
    same(shlex.split(words), ["-op", "nearest", "-where", where, *pair])
    same(dataset.GetDriver().ShortName, DRIVER)


# --- files ------------------------------------------------------------------------


def check_files():
    """GetFileList() includes the sources. Deleting or renaming the specification leaves
    the sources unchanged."""
    pair = sides()
    spec_file("s.ogrjoin", "-op", "nearest", *pair)
    files = gdal.OpenEx("s.ogrjoin", gdal.OF_VECTOR).GetFileList()
    same(sorted(os.path.normpath(f) for f in files), sorted((*pair, "s.ogrjoin")))
    files = opened("-op", "nearest", *pair).GetFileList()
    same(sorted(os.path.normpath(f) for f in files), sorted(pair))
    driver = gdal.GetDriverByName(DRIVER)
    same(driver.Rename("t.ogrjoin", "s.ogrjoin"), 0)
    same(sorted(os.listdir()), sorted((*pair, "t.ogrjoin")))
    same(driver.CopyFiles("u.ogrjoin", "t.ogrjoin"), 0)
    same(rows("u.ogrjoin"), rows("t.ogrjoin"))
    same(driver.Delete("t.ogrjoin"), 0)
    same(sorted(os.listdir()), sorted((*pair, "u.ogrjoin")))
    with Messages() as messages:
        true(driver.Delete(name_of("-op", "nearest", *pair)) != 0, "a name cannot be deleted")
        true(driver.Rename("x", name_of("-op", "nearest", *pair)) != 0, "nor renamed")
        true(driver.CopyFiles("x", name_of("-op", "nearest", *pair)) != 0, "nor copied")
    same(len(messages.errors), 3, str(messages.all))
    same(sorted(os.listdir()), sorted((*pair, "u.ogrjoin")))
    # If another driver overwrites the specification, its sources are not deleted.
    os.rename("u.ogrjoin", "v.ogrjoin")
    gdal.GetDriverByName("GeoJSON").Create("v.ogrjoin", 0, 0, 0, gdal.GDT_Unknown)
    same(sorted(os.listdir()), sorted((*pair, "v.ogrjoin")))
    same(len(rows(pair[0])), 50)


def check_an_output_is_no_source():
    """If a source is itself a join, the files of this inner join are sources, too: the
    command refuses to overwrite them."""
    pair = sides()
    before = listing()
    r = run("-op", "nearest", "-overwrite", pair[0], name_of("-op", "nearest", *pair), pair[1],
            env={"GDAL_DRIVER_PATH": os.environ["GDAL_DRIVER_PATH"]})
    same(r.rc, 1, str(r))
    same({k: v for k, v in listing().items() if k in before}, before)


# --- rows through GDAL's own ways ---------------------------------------------------


def check_what_is_ignored_is_not_read():
    """Ignored fields are not read from the input file. So a value that cannot be read
    is no error there."""
    make("p.gpkg", [("POINT (1 1)", {"name": "a", "when": "2020/01/01 10:00:00", "reach": 9}),
                    ("POINT (2 2)", {"name": "b", "when": "2020/01/01 10:00:00", "reach": 0})],
         fields=(("name", ogr.OFTString), ("when", ogr.OFTDateTime), ("reach", ogr.OFTInteger)))
    make("q.gpkg", [("POINT (1 2)", {"name": "b"}), ("POINT (2 3)", {"name": "a"})])
    dataset = gdal.OpenEx("p.gpkg", gdal.OF_VECTOR | gdal.OF_UPDATE)
    dataset.ExecuteSQL("UPDATE p SET \"when\" = 'no time'")
    dataset = None
    for words in (["-op", "nearest"], ["-op", "nearest", "-on", "name"],
                  ["-op", "dwithin", "-max_distance_field", "reach"],
                  ["-agg", "count", "-op", "dwithin", "-max_distance", "5"]):
        dataset = opened(*words, "p.gpkg", "q.gpkg")
        layer = dataset.GetLayer(0)
        with Messages() as messages:  # the warning comes once for each dataset
            whole = [(f.GetFID(), f["name"], f["reach"]) for f in layer]
        true("no time" in str(messages.warnings), f"the value is met: {messages.all}")
        dataset = opened(*words, "p.gpkg", "q.gpkg")
        layer = dataset.GetLayer(0)
        layer.SetIgnoredFields(["when"])
        with Messages() as messages:
            same([(f.GetFID(), f["name"], f["reach"]) for f in layer], whole)
        same(messages.all, [], f"it is not met: {words}")
        # Fields that the join itself needs are read even if they are ignored.
        layer.SetIgnoredFields(["when", "name", "reach"])
        same([f.GetFID() for f in layer], [fid for fid, *_ in whole], str(words))
        layer.SetIgnoredFields([])
        with Messages():
            same([(f.GetFID(), f["name"], f["reach"]) for f in layer], whole, "all again")


def check_ignored_while_rows_are_read():
    """Reading by FID leaves out the fields that are ignored at that moment. Reading in
    order leaves out the fields that were ignored when the reading began, as in every
    driver."""
    points_file("p.fgb", n=30)
    lots_file("l.gpkg")
    dataset = opened("-op", "nearest", "p.fgb", "l.gpkg")
    layer = dataset.GetLayer(0)
    names = {f.GetFID(): f["name"] for f in layer}
    true(None not in names.values(), "names")
    layer.SetIgnoredFields(["name"])
    layer.ResetReading()
    first = layer.GetNextFeature()
    same(first["name"], None)
    layer.SetIgnoredFields([])
    same(layer.GetFeature(7)["name"], names[7], "by FID")
    same([layer.GetNextFeature()["name"] for _ in range(3)], [None] * 3)
    layer.SetIgnoredFields(["name"])
    same(layer.GetFeature(8)["name"], None, "by FID")
    layer.SetIgnoredFields([])
    layer.ResetReading()
    same([layer.GetNextFeature()["name"], layer.GetFeature(9)["name"]], [names[min(names)], names[9]])


def check_filters_on_what_is_ignored():
    """Ignored fields are not set in the rows, but filters can use them."""
    pair = sides()
    words = ("-op", "nearest", *pair)
    everything = Layer(name_of(*words)).rows
    box = (980100, 200100, 980700, 200900)
    dataset = opened(*words)
    layer = dataset.GetLayer(0)

    def read():
        return [(f.GetFID(), f.GetGeometryRef(), f.IsFieldSet("name"), f.IsFieldSet("use"), f.IsFieldSet("area"))
                for f in layer]

    def inside(wkb):
        p = ogr.CreateGeometryFromWkb(wkb)
        return box[0] <= p.GetX() <= box[2] and box[1] <= p.GetY() <= box[3]

    near = [r[0] for r in everything if inside(r[1])]
    large = [r[0] for r in everything if r[2]["area"] > 9]
    both = [fid for fid in near if fid in large]
    true(0 < len(both) < min(len(near), len(large)), "the data tell them apart")
    layer.SetIgnoredFields(["OGR_GEOMETRY", "name", "area"])
    for _ in range(2):
        layer.SetSpatialFilterRect(*box)
        same(read(), [(fid, None, False, True, False) for fid in near])
        same(layer.GetFeatureCount(), len(near))
        layer.SetAttributeFilter("area > 9")
        same(read(), [(fid, None, False, True, False) for fid in both])
        layer.SetSpatialFilter(None)
        same(read(), [(fid, None, False, True, False) for fid in large])
        layer.SetAttributeFilter("OGR_GEOM_WKT LIKE 'POINT%'")
        same(len(read()), len(everything))
        same([r[1] for r in read()], [None] * len(everything))
        layer.SetAttributeFilter(None)
        same(read(), [(r[0], None, False, True, False) for r in everything])
    layer.SetIgnoredFields([])
    same([f.GetGeometryRef() is not None and f.IsFieldSet("name") for f in layer], [True] * len(everything))


def check_conditions_mean_what_they_mean_to_ogr():
    """Conditions have OGR's meaning, even if they mean something else in the SQL of the
    input's driver."""
    values = [("Park", 1, 1.5), ("park", 2, None), ("PARK", None, 2.5), (None, 3, 3.5), ("x'y", 4, -1.0), ("", 0, 0.0),
              ("äöü", 5, 4.5), ("ÄÖÜ", 6, 5.5)]
    fields = (("kind", ogr.OFTString), ("n", ogr.OFTInteger), ("Real", ogr.OFTReal))
    data = [(f"POINT ({i} 0)", dict(zip(("kind", "n", "Real"), row))) for i, row in enumerate(values)]
    make("lots.gpkg", [("POINT (0 0)", {"use": "u"})], fields=(("use", ogr.OFTString),), srs=None)
    conditions = ("kind = 'park'", "kind <> 'park'", "kind LIKE 'p%'", "kind ILIKE 'p%'", "NOT kind = 'park'",
                  "n = 1", "n <> 1", "NOT n = 1", "n > 1 OR Real < 0", "n IS NULL", "n IS NOT NULL", "n IN (1, 2)",
                  "n NOT IN (1, 2)", "n BETWEEN 1 AND 3", "\"Real\" >= 1.5", "real >= 1.5", "real = n + 0.5",
                  "n = 2.5", "n = 2.0", "kind IS NULL", "kind = ''", "kind IN ('PARK')", "kind = 'äöü'", "kind LIKE 'Ä%'", "use = 'U'",
                  "use = 'u' AND n > 1", "FID = 2", "FID > 2 AND n < 9", "CAST(n AS character(3)) = '1'")
    for path in ("in.gpkg", "in.sqlite", "in.geojson", "in.fgb", "in.shp"):
        make(path, data, fields=fields, srs=None, kind=ogr.wkbPoint,
             lco=("SPATIAL_INDEX=NO",) if path == "in.fgb" else ())
        words = ("-op", "intersects", "-pick", "first", "-crs", "ignore", path, "lots.gpkg")
        memory = (ogr.GetDriverByName("MEM") or ogr.GetDriverByName("Memory")).CreateDataSource("m")
        plain = gdal.OpenEx(name_of(*words), gdal.OF_VECTOR)
        copy = memory.CopyLayer(plain.GetLayer(0), "copy", [])
        for condition in conditions:
            copy.SetAttributeFilter(condition)
            expected = [f.GetFID() for f in copy]
            layer = plain.GetLayer(0)
            layer.SetAttributeFilter(condition)
            same([f.GetFID() for f in layer], expected, f"{path}: {condition}")
            same(layer.GetFeatureCount(), len(expected), f"count, {path}: {condition}")
            other = opened(*words)
            other.GetLayer(0).SetAttributeFilter(condition)
            same(other.GetLayer(0).GetFeatureCount(), len(expected), f"first a count, {path}: {condition}")
        copy = memory = None


def check_conditions_on_dates_that_are_null():
    """Conditions on dates that are NULL, which the join or the input layer tests.
    Exceptions are also enabled, because GDAL's own layers raise some here."""
    for end in ("fgb", "shp", "gpkg"):
        path = f"dated.{end}"
        make(path, [(f"POINT ({i} 1)", {"d": d, "n": i}) for i, d in
                    enumerate(("2020/05/05", None, "1960/01/01", "2021/01/01"))],
             (("d", ogr.OFTDate), ("n", ogr.OFTInteger)), kind=ogr.wkbPoint)
        lots = make("lots.gpkg", [(f"POINT ({i} 1)", {}) for i in range(4)])
        for words in ((), ("-where", "d > '1970/06/06'"), ("-how", "right"), ("-k", 2)):
            dataset = opened("-op", "nearest", *words, path, lots)
            layer = dataset.GetLayer(0)
            layer.SetAttributeFilter("d > '1970/06/06'")
            n = 2 * (2 if "-k" in words else 1)
            same(sorted({f["n"] for f in layer}), [0, 3], f"{path} {words}")
            same(layer.GetFeatureCount(), n, f"{path} {words}")
            same(layer.GetExtent(True)[1] >= 3, True)
            fid = [f.GetFID() for f in layer][-1]
            same(layer.GetFeature(fid).GetFID(), fid)
            if hasattr(layer, "GetArrowStreamAsNumPy"):
                same(sum(len(b["n"]) for b in layer.GetArrowStreamAsNumPy()), n, f"{path} {words}")
            layer.SetAttributeFilter("d > 'abc'")
            with Messages() as messages:
                if end != "gpkg" or words[:1] == ("-how",):
                    while layer.GetNextFeature() is not None:
                        pass
                    true(any("'abc'" in text for _, text in messages.all), f"{path} {words} {messages.all}")
            layer = dataset = None


def check_open_options():
    pair = sides()
    expected = rows(name_of("-op", "nearest", *pair))
    name = name_of("-op", "nearest", *pair)
    for value in ("YES", "NO"):
        dataset = gdal.OpenEx(name, gdal.OF_VECTOR, open_options=[f"ARROW={value}"])
        layer = dataset.GetLayer(0)
        same([f.GetFID() for f in layer], [r[0] for r in expected])
        try:
            batches = list(layer.GetArrowStreamAsNumPy())
        except ImportError:
            continue
        uses = [None if u is None else bytes(u).decode() if isinstance(u, bytes) else str(u)
                for b in batches for u in b["use"]]
        same(uses, [r[2]["use"] for r in expected], value)


def check_gdal_vector_join():
    """The command gdal vector join, in GDAL 3.12 and later."""
    if int(gdal.VersionInfo()) < 3120000 or shutil.which("gdal") is None:
        raise Skip("GDAL has no command \"gdal\" that takes more, or is older than 3.12")
    pair = sides()
    true(any(line.split()[:2] == ["-", "join:"] for line in client("gdal", "vector", "--help").out.splitlines()),
         "it is listed")
    text = client("gdal", "vector", "join", "--help").out
    true("--max-distance" in text and "--append" not in text, text)
    words = ("-op", "nearest", "-k", "2", "-where", "name <> 'p3'", "-spat", "980100.5", "200000", "981000", "201000")
    go(*words, "command.gpkg", *pair)
    client("gdal", "vector", "join", "--op", "nearest", "--k", "2", "--where", "name <> 'p3'",
           "--spat", "980100.5,200000,981000,201000", *pair, "gdal.gpkg")
    same([r[1:] for r in rows("gdal.gpkg")], [r[1:] for r in rows("command.gpkg")])
    client("gdal", "vector", "join", "--agg", "count, sum(area)", "--select", "", "--overwrite", *pair, "gdal.gpkg")
    go("-agg", "count, sum(area)", "-select", "", "-overwrite", "command.gpkg", *pair)
    same(rows("gdal.gpkg"), rows("command.gpkg"))
    r = client("gdal", "vector", "join", "--op", "nearst", *pair, "no.gpkg", rc=1)
    true("did you mean nearest" in r.err, str(r))
    true(not os.path.exists("no.gpkg"), "nothing is left")
    client("gdal", "vector", "join", "--op", "nearest", *pair, "live.gdalg.json")
    same(len(rows("live.gdalg.json")), 50)


# --- -write_spec -------------------------------------------------------------------


def content(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def plugin_run(*words, **how):
    """Runs the command without the plugin. It can write a specification. Returns the
    Run."""
    return run(*words, env={"GDAL_DRIVER_PATH": "disable"}, **how)


def saves(path, *words):
    r = plugin_run("-write_spec", path, *words)
    same((r.rc, r.out), (0, ""), str(r))
    said = content(path)
    same(said["type"], "ogrjoin")
    same(said["relative_paths_relative_to_this_file"], True)
    return shlex.split(said["command_line"])


def check_what_is_saved():
    pair = sides()
    same(saves("a.ogrjoin", "-op", "nearest", *pair), ["-op", "nearest", *pair])
    # The destination and options that only concern the run are left out.
    same(saves("b.ogrjoin", "-q", "-op", "nearest", "out.gpkg", *pair), ["-op", "nearest", *pair])
    r = plugin_run("-write_spec", "b2.ogrjoin", "-op", "nearest", "out.gpkg", *pair)
    true("out.gpkg is not written: -write_spec runs no join" in r.err, str(r))
    true(not os.path.exists("out.gpkg"), "nothing is joined")
    same(saves("c.ogrjoin", "--K", "2", "-op", "nearest", *pair, "-nln", "n m"),
         ["--K", "2", "-op", "nearest", *pair, "-nln", "n m"])
    odd = "name <> 'a \"b\" \\ $x `y` \t\n é€😀'"
    same(saves("d.ogrjoin", "-where", odd, "-op", "nearest", *pair), ["-where", odd, "-op", "nearest", *pair])
    same(rows("d.ogrjoin"), rows("a.ogrjoin"))
    same(saves("e.ogrjoin", "-window", "980000", "200000", "980500", "200500", "points.gpkg"),
         ["-window", "980000", "200000", "980500", "200500", "points.gpkg"])
    same(saves("f.ogrjoin", "-window", "980000", "200000", "980500", "200500", "out.gpkg", "points.gpkg"),
         ["-window", "980000", "200000", "980500", "200500", "points.gpkg"])
    same(rows("f.ogrjoin"), rows("e.ogrjoin"))


def check_paths_that_are_saved():
    pair = sides()
    os.makedirs("x/y")
    os.mkdir("z")
    with open("z/where.sql", "w", encoding="utf-8") as file:
        file.write("name = 'p7'\n")
    shutil.copy("points.gpkg", "z/-points.gpkg")
    words = ("-op", "nearest", "-where", "@z/where.sql")
    same(saves("x/y/a.ogrjoin", *words, *pair),
         ["-op", "nearest", "-where", "@../../z/where.sql", "../../points.gpkg", "../../lots.gpkg"])
    same([r[2]["name"] for r in rows("x/y/a.ogrjoin")], ["p7"])
    whole = os.path.abspath("lots.gpkg")
    same(saves("x/b.ogrjoin", "-op", "nearest", "./points.gpkg", whole), ["-op", "nearest", "../points.gpkg", whole])
    same(saves("z/c.ogrjoin", "-op", "nearest", "z/-points.gpkg", "lots.gpkg"),
         ["-op", "nearest", "./-points.gpkg", "../lots.gpkg"])
    same(len(rows("z/c.ogrjoin")), 50)
    here = os.getcwd()
    os.chdir("x/y")
    try:
        saves("../../z/d.ogrjoin", "-op", "nearest", "../../points.gpkg", "../../lots.gpkg")
    finally:
        os.chdir(here)
    same(shlex.split(content("z/d.ogrjoin")["command_line"])[-2:], ["../points.gpkg", "../lots.gpkg"])
    # The whole tree can be moved.
    os.mkdir("moved")
    for name in ("x", "z", *pair):
        os.rename(name, os.path.join("moved", name))
    same([r[2]["name"] for r in rows("moved/x/y/a.ogrjoin")], ["p7"])
    same(len(rows("moved/z/d.ogrjoin")), 50)


def check_what_is_not_saved():
    pair = sides()

    def refused(*words, message):
        before = listing()
        r = plugin_run(*words)
        same((r.rc, r.out), (1, ""), str(r))
        errors = [line for line in r.err.splitlines() if line.startswith("ERROR")]
        same(len(errors), 1, str(r))
        true(message in errors[0], f"'{message}' is not in {r}")
        same(listing(), before, str(r))

    refused("-write_spec", "a.json", "-op", "nearest", *pair, message=".ogrjoin")
    refused("-write_spec", "a.ogrjoin", "-op", "nearest", pair[0], message="-write_spec FILE.ogrjoin")
    refused("-write_spec", "a.ogrjoin", "-op", "nearest", "a", "b", *pair, message="too many")
    refused("-write_spec", "a.ogrjoin", "-op", "nearest", pair[0], "none.gpkg", message="none.gpkg")
    refused("-write_spec", "a.ogrjoin", "-op", "nearest", "-select", "nofield", *pair, message="nofield")
    refused("-write_spec", "a.ogrjoin", "-agg", "sum(nofield)", *pair, message="nofield")
    refused("-write_spec", "none/a.ogrjoin", "-op", "nearest", *pair, message="none/a.ogrjoin")
    for words in (("-append",), ("-update",), ("-validate",), ("-explain",), ("-benchmark",), ("-in_place",),
                  ("-f", "GPKG"), ("-lco", "A=B"), ("-json_summary", "j.json"), ("-unmatched_layer", "u")):
        refused("-write_spec", "a.ogrjoin", "-op", "nearest", *words, *pair, message=words[0])
    # An existing file is replaced only with -overwrite.
    saves("a.ogrjoin", "-op", "nearest", *pair)
    refused("-write_spec", "a.ogrjoin", "-op", "within", *pair, message="-overwrite")
    refused("-write_spec", "a.ogrjoin", "-overwrite", "-op", "within", pair[0], "none.gpkg", message="none.gpkg")
    same(saves("a.ogrjoin", "-overwrite", "-op", "within", *pair), ["-op", "within", *pair])
    os.mkdir("folder.ogrjoin")
    refused("-write_spec", "folder.ogrjoin", "-overwrite", "-op", "nearest", *pair, message="folder.ogrjoin")
    if os.path.exists("/dev/full"):
        os.symlink("/dev/full", "full.ogrjoin")
        refused("-write_spec", "full.ogrjoin", "-overwrite", "-op", "nearest", *pair, message="full.ogrjoin")


if __name__ == "__main__":
    main(globals())
