"""-in_place: columns are added to the layer itself, or refreshed.  All else in the
dataset stays unchanged."""

import sqlite3

from e2e import *

OWN = ["join_fid", "join_distance", "use", "area"]


def add(*words, **how):
    return join("-in_place", *words, **how)


def compare(path, within=math.inf, layer=None, boundary=False):
    """Checks that the columns of the layer equal the plain answer. Returns the number
    of rows that have a nearest lot."""
    got, lots = Layer(path, layer), Layer("lots.gpkg")
    answers = nearest(got.shapes(), lots.rows, within, to_boundary=boundary)
    for row, answer in zip(got.rows, answers):
        d, at = answer[0] if answer else (None, None)
        expected = {"join_fid": None, "join_distance": d, "use": None, "area": None}
        if answer:
            expected.update(lots.rows[at][2], join_fid=lots.rows[at][0])
        for key, value in expected.items():
            same(row[2][key], value, f"{path}: {key} of {row[0]}")
    return sum(1 for a in answers if a)


def check_add_and_refresh():
    lots_file()
    for path in ("points.gpkg", "points.sqlite"):
        points_file(path)
        before = Layer(path)
        r = add("-max_distance", 50, path, "lots.gpkg")
        true("50 rows in" in r.err, str(r))
        n = compare(path, 50)
        got = Layer(path)
        same(list(got.fields), ["name", *OWN])
        same([row[:2] for row in got.rows], [row[:2] for row in before.rows], "rows")
        same(got.column("name"), before.column("name"))
        # Another maximum distance refreshes the columns that exist.
        add("-max_distance", 150, path, "lots.gpkg")
        true(compare(path, 150) > n, "more match")
        add("-max_distance", 10, "-batch", 7, path, "lots.gpkg")
        true(compare(path, 10) < n, "what matched no more is NULL again")
        add("-distance_to", "boundary", path, "lots.gpkg")
        compare(path, boundary=True)
        same(list(Layer(path).fields), ["name", *OWN])
        same(Layer(path).layers, before.layers)


def check_types_and_summary():
    layers()
    add("points.gpkg", "lots.gpkg", "-json_summary", "s.json")
    got = Layer("points.gpkg")
    same([got.fields[n][0] for n in OWN], ["Integer64", "Real", "String", "Real"])
    s = summary("s.json")
    same((s["rows_in"], s["rows_written"]), (50, 50))
    same(listing().keys(), {"./points.gpkg", "./lots.gpkg", "./s.json"})


def check_only_the_rows_of_a_filter():
    """With a filter, only the rows that pass it are changed."""
    layers()
    add("-max_distance", 50, "points.gpkg", "lots.gpkg")
    old = Layer("points.gpkg")
    add("-where", "fid <= 10", "points.gpkg", "lots.gpkg")
    new = Layer("points.gpkg")
    same(new.rows[10:], old.rows[10:])
    true(None not in new.column("join_fid")[:10], "unbounded")
    add("-limit", 3, "-max_distance", 0, "points.gpkg", "lots.gpkg")
    same(Layer("points.gpkg").rows[3:], new.rows[3:])


def check_index_and_triggers():
    points_file(n=200)
    lots_file()

    def objects():
        base = sqlite3.connect("points.gpkg")
        found = base.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN "
                             "('trigger', 'index', 'view') ORDER BY name").fetchall()
        entries = base.execute("SELECT * FROM rtree_points_geom ORDER BY id").fetchall()
        base.close()
        return found, entries

    before = objects()
    true(len(before[0]) > 5 and len(before[1]) == 200, "there is an index")
    add("points.gpkg", "lots.gpkg")
    same(objects(), before)
    # The triggers of the spatial index still work: a point that is moved is
    # found at its new place.
    dataset = gdal.OpenEx("points.gpkg", gdal.OF_UPDATE)
    layer = dataset.GetLayer(0)
    feature = layer.GetFeature(7)
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POINT (5 5)"))
    layer.SetFeature(feature)
    layer.SetSpatialFilterRect(4, 4, 6, 6)
    same([f.GetFID() for f in layer], [7])
    feature = ogr.Feature(layer.GetLayerDefn())
    feature.SetGeometry(ogr.CreateGeometryFromWkt("POINT (5.5 5.5)"))
    layer.CreateFeature(feature)
    same(layer.GetFeatureCount(), 2)
    same(layer.GetFeature(8)["name"], "p7")
    feature = layer = dataset = None
    same(len(objects()[1]), 201)


def check_triggers_of_the_user():
    layers()
    base = sqlite3.connect("points.gpkg")
    base.execute("CREATE TABLE log (what TEXT)")
    base.execute("CREATE TRIGGER mine AFTER UPDATE ON points BEGIN "
                 "INSERT INTO log VALUES ('row ' || NEW.fid); END")
    base.execute("CREATE INDEX names ON points (name)")
    base.commit()
    base.close()
    add("points.gpkg", "lots.gpkg", "-input_layer", "points")
    compare("points.gpkg", layer="points")
    base = sqlite3.connect("points.gpkg")
    names = [n for (n,) in base.execute("SELECT name FROM sqlite_master WHERE tbl_name ="
                                        " 'points'")]
    true("mine" in names and "names" in names, str(names))
    same(base.execute("SELECT count(*) FROM log").fetchone(), (50,), "it ran")
    same(base.execute("PRAGMA integrity_check").fetchone(), ("ok",))
    base.close()


def check_layers_beside():
    """One layer of several is changed. Both sides may be in one file."""
    points_file("d.gpkg", layer="a")
    points_file("d.gpkg", layer="b", add=True)
    lots_file("d.gpkg", layer="lots", add=True)
    lots_file()
    others = dump("d.gpkg", "b"), dump("d.gpkg", "lots")
    add("-input_layer", "a", "-join_layer", "lots", "d.gpkg", "d.gpkg")
    compare("d.gpkg", layer="a")
    same((dump("d.gpkg", "b"), dump("d.gpkg", "lots")), others)
    # A self join in place: each point gets its nearest other point.
    points_file("self.gpkg")
    add("self.gpkg", "self.gpkg")
    got = Layer("self.gpkg")
    names = dict(zip((r[0] for r in got.rows), got.column("name")))
    true(all(f != r[0] for f, r in zip(got.column("join_fid"), got.rows)), "never itself")
    same(got.column("join_name"), [names[f] for f in got.column("join_fid")])


@once
def check_names():
    fields = (("use", ogr.OFTString),)
    make("points.gpkg", [("POINT (980000 200000)", {"use": "mine"})], fields)
    lots_file()
    add("points.gpkg", "lots.gpkg")
    row = Layer("points.gpkg").rows[0][2]
    same(list(row), ["use", "join_fid", "join_distance", "join_use", "area"])
    same(row["use"], "mine")
    add("points.gpkg", "lots.gpkg")
    same(list(Layer("points.gpkg").fields), list(row), "again")


@once
def check_refusals():
    """Formats and layers that cannot be changed in place. test_command tests the
    options that are refused."""
    layers()
    for end in ("shp", "csv", "geojson", "fgb"):
        lco = ["GEOMETRY=AS_XY"] if end == "csv" else []
        points_file(f"p.{end}", lco=lco)
        oo = ["-oo", "X_POSSIBLE_NAMES=X", "-oo", "Y_POSSIBLE_NAMES=Y"]
        fails("-in_place", *(oo if end == "csv" else []), f"p.{end}", "lots.gpkg",
              message="-in_place")
    fails("-in_place", "missing.gpkg", "lots.gpkg", message="missing.gpkg")


def check_foreign_columns():
    lots_file()
    for name, kind in (("join_fid", ogr.OFTString), ("join_distance", ogr.OFTReal),
                       ("JOIN_FID", ogr.OFTInteger64)):
        make("points.gpkg", [("POINT (980000 200000)", {})], ((name, kind),))
        fails("-in_place", "points.gpkg", "lots.gpkg", message=[name, "column"])
        os.remove("points.gpkg")
    # Columns of another join.
    points_file()
    points_file("other.gpkg")
    add("points.gpkg", "lots.gpkg")
    fails("-in_place", "points.gpkg", "other.gpkg", message="join_fid")


@once
def check_read_only():
    layers()
    os.mkdir("locked")
    shutil.copy("points.gpkg", "locked/points.gpkg")
    if os.getuid() == 0:
        if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", "locked/points.gpkg"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("root may write everything, and chattr does not work here")
    os.chmod("locked/points.gpkg", 0o444) if os.getuid() else None
    try:
        fails("-in_place", "locked/points.gpkg", "lots.gpkg", message="locked/points.gpkg")
    finally:
        if os.getuid() == 0:
            subprocess.run(["chattr", "-i", "locked/points.gpkg"], check=True)


@once
def check_locked_by_another_program():
    layers()
    base = sqlite3.connect("points.gpkg")
    base.execute("BEGIN IMMEDIATE")
    before = base.execute("SELECT sql FROM sqlite_master").fetchall()
    r = run("-op", "nearest", "-in_place", "points.gpkg", "lots.gpkg")
    same(r.rc, 1, str(r))
    same(r.err.count("ERROR"), 1, str(r))
    true("locked" in r.err, str(r))
    base.rollback()
    same(base.execute("SELECT sql FROM sqlite_master").fetchall(), before)
    base.close()
    add("points.gpkg", "lots.gpkg")


@once
def check_unsafe():
    lots_file()
    points_file("p.shp")
    add("-in_place_unsafe", "-max_distance", 50, "p.shp", "lots.gpkg")
    add("-in_place_unsafe", "-max_distance", 90, "p.shp", "lots.gpkg")
    got, lots = Layer("p.shp"), Layer("lots.gpkg")
    same(list(got.fields), ["name", "join_fid", "join_dista", "use", "area"])
    answers = nearest(got.shapes(), lots.rows, 90)
    same(got.column("join_fid"), [lots.rows[a[0][1]][0] if a else None for a in answers])
    for value, answer in zip(got.column("join_dista"), answers):
        near(value, answer[0][0] if answer else None, 1e-9)


@once
def check_validate_in_place():
    layers()
    r = add("-validate", "points.gpkg", "lots.gpkg")
    true("no difference" in r.err, str(r))
    compare("points.gpkg")


def check_odd_rows():
    rows = [("POINT (980000 200000)", {"name": "a"}), (None, {"name": "null"}),
            ("POINT EMPTY", {"name": "empty"})]
    make("points.gpkg", rows)
    lots_file()
    add("points.gpkg", "lots.gpkg")
    same([v is None for v in Layer("points.gpkg").column("join_fid")],
         [False, True, True])


if __name__ == "__main__":
    main(globals())
