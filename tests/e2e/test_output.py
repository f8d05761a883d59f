"""Destinations: names that clash, new and existing datasets."""

import sqlite3

from e2e import *


def one(path, values=None, fields=None, at="0 0", **how):
    fields = fields or (("name", ogr.OFTString),)
    return make(path, [(f"POINT ({at})", values or {"name": "a"})], fields, **how)


@once
def check_clashes():
    both = (("Name", ogr.OFTString), ("id", ogr.OFTInteger))
    other = (("NAME", ogr.OFTString), ("ID", ogr.OFTInteger), ("x", ogr.OFTReal))
    one("p.gpkg", {"Name": "left", "id": 1}, both)
    one("l.gpkg", {"NAME": "right", "ID": 2, "x": 3.0}, other)
    r = join("o.gpkg", "p.gpkg", "l.gpkg")
    expected = {"Name": "left", "id": 1, "join_fid": 1, "join_distance": 0.0}
    same(
        Layer("o.gpkg").rows[0][2],
        {**expected, "join_NAME": "right", "join_ID": 2, "x": 3.0},
    )
    true("NAME -> join_NAME" in r.err, str(r))
    join("-prefix", "lot_", "p2.gpkg", "p.gpkg", "l.gpkg")
    same(list(Layer("p2.gpkg").fields)[4:], ["lot_NAME", "lot_ID", "x"])
    # With an empty prefix, names clash. No field is lost.
    join("-prefix", "", "p3.gpkg", "p.gpkg", "l.gpkg")
    got = Layer("p3.gpkg")
    same(len(got.fields), 7)
    same(list(got.rows[0][2].values())[4:], ["right", 2, 3.0])


def check_own_names_on_the_join_side():
    fields = [(n, ogr.OFTInteger) for n in
              ("join_fid", "JOIN_DISTANCE", "join_rank", "fid", "geom", "ogc_fid")]
    values = {n: i for i, (n, _) in enumerate(fields)}
    dataset = {"FID": "key", "GEOMETRY_NAME": "shape"}
    one("p.gpkg")
    one("l.gpkg", values, fields, lco=[f"{k}={v}" for k, v in dataset.items()])
    same(len(Layer("l.gpkg").fields), 6)
    for out in ("o.gpkg", "o.sqlite", "o.geojson", "o.fgb", "o.csv"):
        join("-k", 2, out, "p.gpkg", "l.gpkg")
        got = Layer(out)
        row = list(got.rows[0][2].values())
        same([int(v) for v in row[-6:]], list(range(6)), f"{out}: {list(got.fields)}")
        lower = [n.lower() for n in got.fields]
        same(len(set(lower)), len(lower), f"names without case, {out}")
        true("fid" not in [got.fid_column] or "fid" not in lower, "FID column")
        same(lower[1:4], ["join_fid", "join_distance", "join_rank"], out)


def check_own_names_on_the_input_side():
    """The input has fields with the names of the output's FID and geometry columns."""
    fields = [(n, ogr.OFTInteger) for n in ("fid", "geom", "ogc_fid", "wkb_geometry")]
    values = {n: 100 + i for i, (n, _) in enumerate(fields)}
    one("p.gpkg", values, fields, lco=["FID=key", "GEOMETRY_NAME=shape"])
    one("p.fgb", values, fields)
    one("l.gpkg")
    for source in ("p.gpkg", "p.fgb"):
        for out in ("o.gpkg", "o.sqlite", "o.geojson", "o.fgb", "o.shp", "o.csv"):
            join(out, source, "l.gpkg", "-overwrite")
            got = Layer(out)
            row = list(got.rows[0][2].values())
            same([int(v) for v in row[:4]], [100, 101, 102, 103],
                 f"{source} {out}: {list(got.fields)}")
            same(len(row), 7, f"{source} {out}: {list(got.fields)}")


def check_on_own_output():
    points_file()
    lots_file()
    join("-max_distance", 50, "a.gpkg", "points.gpkg", "lots.gpkg")
    join("b.gpkg", "a.gpkg", "lots.gpkg")
    join("c.gpkg", "b.gpkg", "lots.gpkg", "-k", "2")
    join("d.gpkg", "c.gpkg", twin("c.gpkg"))
    a, b, c, d = (Layer(f"{n}.gpkg") for n in "abcd")
    same(list(a.fields), ["name", "join_fid", "join_distance", "use", "area"])
    same(
        list(b.fields),
        [*a.fields, "join_fid_2", "join_distance_2", "join_use", "join_area"],
    )
    same([list(r[2].values())[:5] for r in b.rows],
         [list(r[2].values()) for r in a.rows], "the first answer stays")
    true(None in b.column("join_fid") and None not in b.column("join_fid_2"), "both")
    same(len(c.fields), len(b.fields) + 3 + 2)
    same(len(d.fields), len(c.fields) + 2 + len(c.fields))
    same([list(r[2].values())[: len(c.fields)] for r in d.rows],
         [list(r[2].values()) for r in c.rows])


def check_existing_output():
    one("p.gpkg")
    one("l.gpkg", {"name": "b"}, at="3 4")
    for out in ("o.gpkg", "o.fgb", "o.shp", "o.csv", "o.geojson"):
        join(out, "p.gpkg", "l.gpkg")
        fails(out, "p.gpkg", "l.gpkg", message=["exists", "-overwrite"])
        one("p2.gpkg", {"name": "new"}, at="3 4")
        join("-overwrite", out, "p2.gpkg", "l.gpkg", "-nln", "p")
        same(Layer(out).column("name"), ["new"], out)
        os.remove("p2.gpkg")


def check_overwrite_one_layer_of_several():
    one("p.gpkg")
    one("d.gpkg", {"name": "other"}, layer="other")
    one("d.gpkg", {"name": "old"}, layer="p", add=True)
    join("-overwrite", "d.gpkg", "p.gpkg", twin("p.gpkg"))
    got = Layer("d.gpkg", "p")
    same(sorted(got.layers), ["other", "p"])
    same(got.column("name"), ["a"])
    same(got.column("join_name"), ["a"])
    same(Layer("d.gpkg", "other").column("name"), ["other"])


def check_overwrite_names_layers_that_stay():
    one("p.gpkg")
    one("q.gpkg", layer="q")
    join("d.gpkg", "p.gpkg", "q.gpkg")
    fails("d.gpkg", "p.gpkg", "q.gpkg", message="d.gpkg exists: -overwrite replaces it,")
    # the file holds one other layer, which is not replaced
    fails("d.gpkg", "q.gpkg", "p.gpkg",
          message="d.gpkg exists, with other layers (p): -overwrite writes layer 'q' anew and keeps the others")
    r = join("-overwrite", "d.gpkg", "q.gpkg", "p.gpkg", "-unmatched_layer", "rest")
    true("layer p stays in d.gpkg: -overwrite has replaced only" in r.err, str(r))
    same(sorted(Layer("d.gpkg", "q").layers), ["p", "q", "rest"])
    r = join("-overwrite", "d.gpkg", "q.gpkg", "p.gpkg", "-unmatched_layer", "rest", "-nln", "p")
    true("layer q stays in d.gpkg" in r.err, str(r))
    r = join("-overwrite", "d.gpkg", "q.gpkg", "p.gpkg", "-nln", "new")
    true("layers p, rest, q stay in d.gpkg" in r.err or "layers q, p, rest stay in d.gpkg" in r.err
         or "layers q, rest, p stay in d.gpkg" in r.err, str(r))
    for how in (["-q"], ["-update"]):  # -update keeps other layers, so no message is needed
        r = join("-overwrite", *how, "d.gpkg", "q.gpkg", "p.gpkg", "-nln", "new")
        true("stay" not in r.err, str(r))
    join("e.gpkg", "p.gpkg", "q.gpkg")
    r = join("-overwrite", "e.gpkg", "p.gpkg", "q.gpkg")
    true("stay" not in r.err, str(r))


def check_update():
    one("p.gpkg")
    one("d.gpkg", {"name": "other"}, layer="other")
    fails("-update", "missing.gpkg", "p.gpkg", twin("p.gpkg"),
          message=("does not exist", "leave -update out"))
    join("-update", "d.gpkg", "p.gpkg", twin("p.gpkg"), "-nln", "second")
    same(Layer("d.gpkg", "second").column("join_name"), ["a"])
    same(Layer("d.gpkg", "other").column("name"), ["other"])
    fails("-update", "d.gpkg", "p.gpkg", twin("p.gpkg"), "-nln", "second",
          message=["'second'", "-overwrite"])
    join("-update", "-overwrite", "d.gpkg", "p.gpkg", twin("p.gpkg"), "-nln", "second")
    same(len(Layer("d.gpkg").layers), 2)
    one("d.fgb")
    fails("-update", "d.fgb", "p.gpkg", twin("p.gpkg"), message="FlatGeobuf")


def check_statistics_of_spatialite():
    """SpatiaLite's row counts and extents are written when the file is closed, after the
    commit."""
    def counts():
        dataset = sqlite3.connect("s.sqlite")
        rows = dataset.execute(
            "SELECT f_table_name, row_count, extent_min_x, extent_max_y "
            "FROM geometry_columns_statistics"
        ).fetchall()
        dataset.close()
        return {name: values for name, *values in rows}

    one("p.gpkg", at="3 4")
    one("q.gpkg", {"name": "q"}, at="1 9")
    try:
        one("s.sqlite", layer="first", dsco=["SPATIALITE=YES"])
    except RuntimeError as error:
        raise Skip(f"SpatiaLite: {error}") from None
    first = counts()["first"]
    runs = (
        (("-update", "s.sqlite", "p.gpkg", twin("p.gpkg"), "-nln", "rows"), [1, 3, 4]),
        (("-append", "s.sqlite", "q.gpkg", twin("p.gpkg"), "-nln", "rows"), [2, 1, 9]),
        (("-in_place", "s.sqlite", "p.gpkg", "-input_layer", "rows",
          "-prefix", "x_", "-name_fid", "x_fid", "-name_distance", "x_distance"), [2, 1, 9]),
    )
    for words, expected in runs:
        r = join(*words)
        true("closing" not in r.err, str(r))
        same(counts(), {"first": first, "rows": expected}, str(r))


def check_append():
    one("p.gpkg")
    one("q.gpkg", {"name": "q"}, at="3 4")
    join("o.gpkg", "p.gpkg", twin("p.gpkg"))
    join("-append", "o.gpkg", "q.gpkg", "p.gpkg", "-nln", "p")
    got = Layer("o.gpkg")
    same(got.column("name"), ["a", "q"])
    same(got.column("join_distance"), [0.0, 5.0])
    same(got.layers, ["p"])
    # -append without a layer name uses the only layer, whatever its name is.
    join("-append", "o.gpkg", "q.gpkg", "p.gpkg")
    same(len(Layer("o.gpkg").rows), 3)
    one("w.gpkg", {"name": "w", "more": 1},
        (("name", ogr.OFTString), ("more", ogr.OFTInteger)))
    fails("-append", "o.gpkg", "w.gpkg", "p.gpkg", message=["'more'", "-select"])
    join("-append", "o.gpkg", "w.gpkg", "p.gpkg", "-select", "name")
    fails("-append", "-k", 2, "o.gpkg", "q.gpkg", "p.gpkg", message=["'join_rank'", '-name_rank ""'])
    same(len(Layer("o.gpkg").rows), 4)
    one("m.gpkg", {"name": "m"}, srs="EPSG:25833")
    fails("-append", "o.gpkg", "m.gpkg", twin("m.gpkg"), message="CRS")
    one("t.gpkg", {"name": 5}, (("name", ogr.OFTReal),))
    join("-append", "new.gpkg", "p.gpkg", twin("p.gpkg"))  # like ogr2ogr, -append makes a new file
    same(len(Layer("new.gpkg").rows), 1)
    # The spatial index of the layer contains the new rows.
    dataset = gdal.OpenEx("o.gpkg")
    layer = dataset.GetLayer(0)
    layer.SetSpatialFilterRect(2, 3, 4, 5)
    same(layer.GetFeatureCount(), 2)


def check_options_of_the_driver():
    one("p.gpkg")
    join("o.gpkg", "p.gpkg", twin("p.gpkg"), "-lco", "SPATIAL_INDEX=NO", "-lco",
         "GEOMETRY_NAME=place", "-lco", "FID=key", "-dsco", "VERSION=1.2")
    got = Layer("o.gpkg")
    same(got.fid_column, "key")
    dataset = gdal.OpenEx("o.gpkg")
    same(dataset.GetLayer(0).GetGeometryColumn(), "place")
    sql = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'rtree%'"
    result = dataset.ExecuteSQL(sql)
    same(result.GetNextFeature().GetField(0), 0, "no index")
    dataset.ReleaseResultSet(result)
    same(len(Layer("o.gpkg").rows), 1)


def check_index_of_a_new_file():
    points_file(n=500)
    lots_file()
    for out in ("o.gpkg", "o.fgb"):
        join(out, "points.gpkg", "lots.gpkg")
        dataset = gdal.OpenEx(out)
        layer = dataset.GetLayer(0)
        true(layer.TestCapability("FastSpatialFilter"), out)
        layer.SetSpatialFilterRect(980000, 200000, 980300, 200300)
        n = layer.GetFeatureCount()
        places = Layer("points.gpkg").shapes()
        same(n, sum(s.GetX() <= 980300 and s.GetY() <= 200300 for s in places), out)


def check_formats_by_name_and_extension():
    one("p.gpkg")
    join("-f", "GeoJSON", "o.txt", "p.gpkg", twin("p.gpkg"))
    same(len(Layer("o.txt").rows), 1)
    join("-of", "fLatGeoBuf", "o.dat", "p.gpkg", twin("p.gpkg"))
    fails("o.unknown", "p.gpkg", twin("p.gpkg"), message=["o.unknown", "-f"])
    fails("o", "p.gpkg", twin("p.gpkg"), message="-f")
    fails("-f", "Nonsense", "o.gpkg", "p.gpkg", twin("p.gpkg"), message="Nonsense")
    fails("-f", "OSM", "o.gpkg", "p.gpkg", twin("p.gpkg"), message=["OSM", "create"])
    fails("-f", "GTiff", "o.gpkg", "p.gpkg", twin("p.gpkg"), message="GTiff")


def check_format_that_is_not_there():
    one("p.gpkg")
    for word, meant in (("geopackage", "GPKG"), ("shp", "ESRI Shapefile"), ("Shapefile", "ESRI Shapefile"),
                        ("GeoJSN", "GeoJSON"), ("flatgeobuff", "FlatGeobuf")):
        fails("-f", word, "o.x", "p.gpkg", twin("p.gpkg"),
              message=f"-f {word}: there is no such format; did you mean {meant}?")
    # no driver of any GDAL has this name or one like it
    fails("-f", "Qwertyuiop", "o.x", "p.gpkg", twin("p.gpkg"), message="has no driver Qwertyuiop")
    if gdal.GetDriverByName("Parquet") is None:
        fails("-f", "Parquet", "o.parquet", "p.gpkg", twin("p.gpkg"), message="this GDAL")
        fails("o.parquet", "p.gpkg", twin("p.gpkg"), message="no driver of this GDAL writes files so named")


def check_no_geometry():
    """With -nlt NONE rows have no geometry, as with ogr2ogr."""
    points_file(n=10)
    one("p.gpkg")
    for name in ("o.gpkg", "o.csv", "o.geojson"):
        r = join("-nlt", "NONE", name, "points.gpkg", "p.gpkg")
        true("no geometry here" not in r.err, "that was asked for")
        got = Layer(name)
        same([row[1] for row in got.rows], [None] * 10, name)
        same([int(fid) for fid in got.column("join_fid")], [1] * 10, name)
    same(Layer("o.gpkg").kind, ogr.wkbNone)
    join("-nlt", "NONE", "b.gpkg", "points.gpkg", "p.gpkg", "-max_distance", 0,
         "-unmatched_layer", "far")
    same(Layer("b.gpkg", "far").kind, ogr.wkbNone, "a layer beside it, too")
    for name in ("n.shp", "n.fgb"):
        fails("-nlt", "NONE", name, "points.gpkg", "p.gpkg", message="without geometry")
    try:
        gdal.OpenEx("JOIN:-nlt NONE points.gpkg p.gpkg")
        true(False, "a dataset of rows without geometry")
    except RuntimeError as e:
        true("JOIN" not in [gdal.GetDriver(i).ShortName
                            for i in range(gdal.GetDriverCount())] or
             "-nlt NONE" in str(e), str(e))


@once
def check_folders_and_links():
    os.mkdir("sub")
    one("p.gpkg")
    join("sub/o.gpkg", "p.gpkg", twin("p.gpkg"))
    os.symlink("sub/o.gpkg", "link.gpkg")
    fails("link.gpkg", "p.gpkg", twin("p.gpkg"), message="exists")
    join("-overwrite", "link.gpkg", "p.gpkg", twin("p.gpkg"), "-select", "")
    true(os.path.islink("link.gpkg"), "the link stays")
    same(len(Layer("sub/o.gpkg").fields), 3, "what it points to is new")
    os.symlink("nowhere.gpkg", "dangling.gpkg")
    fails("dangling.gpkg", "p.gpkg", twin("p.gpkg"), message="link")
    # Paths are relative to the folder in which the command runs.
    join("../o2.gpkg", "../p.gpkg", "../p.gpkg", cwd="sub")
    same(len(Layer("o2.gpkg").rows), 1)
    os.chmod("sub/o.gpkg", 0o640)
    join("-overwrite", "sub/o.gpkg", "p.gpkg", twin("p.gpkg"))
    same(os.stat("sub/o.gpkg").st_mode & 0o777, 0o640, "permissions stay")


def check_shapefile_overwrite_takes_its_members_along():
    points_file("old.gpkg", n=30)
    one("p.gpkg")
    join("o.shp", "old.gpkg", "p.gpkg")
    gdal.OpenEx("o.shp", gdal.OF_UPDATE).ExecuteSQL("CREATE SPATIAL INDEX ON o")
    true(os.path.exists("o.qix"), "an index of the old rows")
    join("-overwrite", "o.shp", "p.gpkg", twin("p.gpkg"))
    true(not os.path.exists("o.qix"), "it would be wrong now")
    same(len(Layer("o.shp").rows), 1)
    # A file that is not part of the old dataset is not overwritten.
    with open("new.dbf", "w", encoding="utf-8") as file:
        file.write("mine")
    fails("new.shp", "p.gpkg", twin("p.gpkg"), message="new.dbf")
    with open("rest.shp", "w", encoding="utf-8") as file:
        file.write("mine")
    fails("-overwrite", "o.shp", "p.gpkg", twin("p.gpkg"), "-unmatched_layer", "rest",
          message=("rest.shp", "remove it, or choose another layer name"))


def check_zipped_output():
    one("p.gpkg")
    join("o.shz", "p.gpkg", twin("p.gpkg"))
    same(len(Layer("o.shz").rows), 1)
    join("o.gpkg.zip", "p.gpkg", twin("p.gpkg"), "-f", "GPKG")


@once
def check_stdout():
    one("p.gpkg")
    for words in (["-f", "GeoJSON", "/vsistdout/"], ["-f", "GeoJSON", "/dev/stdout"],
                  ["-f", "GeoJSON", "-progress", "/vsistdout/"]):
        r = join(*words, "p.gpkg", twin("p.gpkg"))
        found = json.loads(r.out)
        same(len(found["features"]), 1)
        same(found["features"][0]["properties"]["join_distance"], 0.0)
        true("1 row in: 1 matched, 0 unmatched; 1 pair; 1 row written" in r.err, "the summary is not in the data")
    # A shell may redirect /dev/stdout to a file, which then exists.
    with open("o.json", "w", encoding="utf-8") as file:
        command = [OGRJOIN, "-q", "-f", "GeoJSON", "/dev/stdout", "p.gpkg",
                   twin("p.gpkg")]
        same(subprocess.call(command, stdout=file), 0)
    with open("o.json", encoding="utf-8") as file:
        same(len(json.load(file)["features"]), 1)
    r = join("-f", "CSV", "/vsistdout/", "p.gpkg", twin("p.gpkg"), "-q")
    same(r.out.splitlines()[0], "name,join_fid,join_distance,join_name")
    same(len(r.out.splitlines()), 2)
    same(r.err, "")


# --- fsync ---------------------------------------------------------------------


def logging_syncs(**more):
    library = os.environ.get("SYNC_LOG_LIBRARY", "")
    if not os.path.exists(library):
        raise Skip("no SYNC_LOG_LIBRARY, which the build makes of sync_log.c")
    loaded = subprocess.run(["ldd", OGRJOIN], stdout=subprocess.PIPE, check=False)
    if b"libasan" in loaded.stdout:
        raise Skip("the sanitizers want to be loaded first")
    return {"LD_PRELOAD": library, "SYNC_LOG": os.path.abspath("sync.log"), **more}


def synced():
    """Returns the calls of fsync() and rename() in their order, and empties the log."""
    with open("sync.log", encoding="utf-8") as file:
        found = [line.rstrip("\n").split(" ", 1) for line in file]
    os.remove("sync.log")
    return found


def on_disk_before_and_after(members, what):
    """Checks that each member is synced before the first one is renamed. The folder
    must be synced after all renames."""
    log = synced()
    here = os.getcwd()
    moves = [i for i, (kind, name) in enumerate(log)
             if kind == "move" and "/proc/" not in name and ".ogrjoin-" not in name
             and os.path.basename(name) in members]
    same(sorted({os.path.basename(log[i][1]) for i in moves}), sorted(members), f"moved, {what}")
    before = {os.path.basename(path) for kind, path in log[: min(moves)] if kind == "sync"}
    true(set(members) <= before, f"{what}: not on the disk before it is moved: {log}")
    true(["sync", here] in log[max(moves):], f"{what}: the names are not: {log}")


def check_outputs_reach_the_disk():
    env = logging_syncs()
    w = layers()
    for out, members in (("o.gpkg", ["o.gpkg"]), ("o.fgb", ["o.fgb"]), ("o.csv", ["o.csv"]),
                         ("o.shp", ["o.shp", "o.shx", "o.dbf", "o.prj"])):
        join(out, *w, env=env)
        on_disk_before_and_after(members, f"new {out}")
        join("-overwrite", out, *w, env=env)
        on_disk_before_and_after(members, f"replaced {out}")
    # A dataset that is a folder.
    join("-f", "ESRI Shapefile", "-nln", "o", "folder", *w, env=env)
    log = synced()
    moved = log.index(["move", next(x for kind, x in log if kind == "move" and x.endswith("folder"))])
    before = [os.path.basename(x) for kind, x in log[:moved] if kind == "sync"]
    true({"o.shp", "o.shx", "o.dbf"} <= set(before), f"files of a folder: {log}")
    true(["sync", os.getcwd()] in log[moved:], f"{log}")


@once
def check_side_files_reach_the_disk():
    env = logging_syncs()
    w = layers()

    def on_disk(path):
        log = synced()
        moved = [i for i, (kind, name) in enumerate(log) if kind == "move" and name == path]
        same(len(moved), 1, f"{path}: {log}")
        true(log[moved[0] - 1][0] == "sync", f"{path}: not on the disk: {log}")
        true(["sync", os.getcwd()] in log[moved[0]:], f"{path}: its name is not: {log}")

    join("-json_summary", "s.json", "o.gpkg", *w, env=env)
    on_disk("s.json")
    succeeds("-op", "nearest", "-write_spec", "s.ogrjoin", *w, env=env)
    on_disk("s.ogrjoin")
    succeeds("-op", "nearest", "-benchmark", "-benchmark_seconds", 0.01, "-benchmark_csv", "b.csv", *w,
             env=env)
    on_disk("b.csv")


def check_disk_that_takes_nothing():
    """If fsync() fails, there is no output."""
    env = logging_syncs(SYNC_FAILS="1")
    w = layers()
    for out in ("o.gpkg", "o.fgb", "o.shp"):
        before = listing()
        r = run("-op", "nearest", out, *w, env=env)
        os.remove("sync.log")
        same(r.rc, 1, str(r))
        same(r.err.count("ERROR"), 1, str(r))
        same(listing(), before, out)


if __name__ == "__main__":
    main(globals())
