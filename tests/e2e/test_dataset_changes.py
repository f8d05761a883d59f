"""A dataset JOIN: stays open while the files of its sides change.  Reading from the
start gives the current state, as a newly opened dataset does.  A reading in progress
continues with the old state.  Also tests which filters are passed to the input
layer."""

import sqlite3

from dataset import *

BOX = (-1e7, -1e7, 1e7, 1e7)
EDITED = (
    "-op within",
    "-op nearest -max_distance 30",
    "-op contains -agg 'count as n'",
    "-op within -memory 2M",
    "-op within -join_where 'random() IS NOT NULL'",  # a join side that is never cached
)


def wait_until_changes_show():
    time.sleep(0.08)  # so that the change is visible in the modification times


def sides():
    inputs_file(n=700)
    zones_file()
    wait_until_changes_show()
    return ("points.gpkg", "zones.gpkg")


def row_of(feature):
    shape = feature.GetGeometryRef()
    return (feature.GetFID(), shape and shape.ExportToIsoWkt(), feature.items())


def rest(layer, most=None):
    """Returns the next rows of the layer: at most `most` of them, or all."""
    found = []
    while most is None or len(found) < most:
        feature = layer.GetNextFeature()
        if feature is None:
            break
        found.append(row_of(feature))
    return found


def plain(layer):
    return rest(layer)


def in_a_box(layer):
    layer.SetSpatialFilterRect(*BOX)
    found = rest(layer)
    layer.SetSpatialFilter(None)
    return found


def under_a_condition(layer):
    layer.SetAttributeFilter("1 = 1")
    found = rest(layer)
    layer.SetAttributeFilter(None)
    return found


def by_index(layer):
    same(layer.SetNextByIndex(0), 0)
    return rest(layer)


def by_fid(layer):
    """Returns one row, read by its FID, then all rows, read in order."""
    first = layer.GetNextFeature().GetFID()
    layer.ResetReading()
    return [row_of(layer.GetFeature(first)), *rest(layer)]


def counted(layer):
    return [layer.GetFeatureCount(), *rest(layer)]


WAYS = (counted, plain, in_a_box, under_a_condition, by_index, by_fid)


def expect_present_state(layer, words, way):
    now = opened(*words)
    found = []
    for each in (layer, now.GetLayer(0)):
        each.ResetReading()
        found.append([sorted(way(each), key=repr), each.GetFeatureCount()])
    same(found[0], found[1], f"{words}, {way.__name__}")


def move_first(path, by):
    """Moves the geometry of the first feature of a file, in place."""
    dataset = gdal.OpenEx(path, gdal.OF_VECTOR | gdal.OF_UPDATE)
    feature = dataset.GetLayer(0).GetNextFeature()
    shape = ogr.CreateGeometryFromWkt(feature.GetGeometryRef().ExportToWkt())
    ring = shape
    while ring.GetGeometryCount():
        ring = ring.GetGeometryRef(0)
    for i in range(ring.GetPointCount()):
        ring.SetPoint_2D(i, ring.GetX(i) + by, ring.GetY(i))
    feature.SetGeometry(shape)
    dataset.GetLayer(0).SetFeature(feature)
    feature = dataset = None
    wait_until_changes_show()


def write_csv(path, field, places, squares=False):
    """Writes points with the x of places, or squares around them."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{field},WKT\n")
        for i, x in enumerate(places):
            shape = f"POINT ({x + 0.5} 0.5)"
            if squares:
                shape = f'"POLYGON (({x} 0,{x + 1} 0,{x + 1} 1,{x} 1,{x} 0))"'
            file.write(f"{i},{shape}\n")


def csv_sides(inputs, squares):
    write_csv("p.csv", "a", inputs)
    write_csv("q.csv", "b", squares, True)
    return ("p.csv", "q.csv")


def check_edits():
    made = sides()
    pair = ("p.gpkg", "z.gpkg")
    for line in EDITED:
        for way in WAYS:
            for path, copy in zip(made, pair):
                shutil.copy(path, copy)
            wait_until_changes_show()
            words = (*shlex.split(line), *(pair[::-1] if "-agg" in line else pair))
            dataset = opened(*words)
            layer = dataset.GetLayer(0)
            true(rest(layer), "rows")
            for path, by in ((pair[1], 30.0), (pair[0], 40.0)):
                move_first(path, by)
                expect_present_state(layer, words, way)
            layer = dataset = None


def check_rewritten_files():
    """Files are written anew, with drivers that cache what they have read."""
    for how, n in (("inner", 2), ("full", 4)):
        for way in WAYS:
            words = ("-op", "within", "-how", how, *csv_sides((0, 10, 20, 30), (0, 10)))
            wait_until_changes_show()
            dataset = opened(*words)
            layer = dataset.GetLayer(0)
            same(len(rest(layer)), n)
            write_csv("q.csv", "b", (0, 10, 20), True)
            wait_until_changes_show()
            expect_present_state(layer, words, way)
            write_csv("p.csv", "a", (30, 40, 0, 10, 50))
            wait_until_changes_show()
            expect_present_state(layer, words, way)
            layer = dataset = None


def check_arrow():
    dataset = opened("-op", "within", "-how", "inner", *csv_sides((0, 10, 20), (0,)))
    layer = dataset.GetLayer(0)
    if not hasattr(layer, "GetArrowStreamAsNumPy"):
        raise Skip("GDAL before 3.6")
    for n in (1, 3):
        wait_until_changes_show()
        try:
            same(sum(len(batch["a"]) for batch in layer.GetArrowStreamAsNumPy()), n)
        except ImportError:
            raise Skip("no numpy") from None
        write_csv("q.csv", "b", (0, 10, 20), True)


def check_young_files():
    """Two changes within one tick of the file system's clock are both noticed."""
    dataset = opened("-op", "within", "-how", "inner", *csv_sides((0, 10), (0, 10)))
    layer = dataset.GetLayer(0)
    same(len(rest(layer)), 2)
    write_csv("q.csv", "b", (10, 20), True)
    layer.ResetReading()
    same(len(rest(layer)), 1)


def check_change_while_reading():
    """A reading in progress continues with the old state. The next reading has the new
    one."""
    words = ("-op", "within", "-batch", 16, *sides())
    dataset = opened(*words)
    layer = dataset.GetLayer(0)
    before = rest(layer)
    layer.ResetReading()
    half = rest(layer, 100)
    zones = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR | gdal.OF_UPDATE)
    zones.ExecuteSQL("DELETE FROM zones WHERE fid > 1")
    zones = None
    wait_until_changes_show()
    same(row_of(layer.GetFeature(half[-1][0])), half[-1], "by FID, of what is read")
    same([*half, *rest(layer)], before)
    expect_present_state(layer, words, counted)


def check_change_before_the_unmatched():
    """Join features without a match are read again at the end. If their file has
    changed in the meantime, this is an error."""
    words = ("-op", "within", "-how", "right", *csv_sides((0, 10, 20), (0, 10, 30)))
    wait_until_changes_show()
    dataset = opened(*words)
    layer = dataset.GetLayer(0)
    rest(layer, 1)
    write_csv("q.csv", "b", (0, 10, 50), True)
    wait_until_changes_show()
    with Messages() as messages:
        rest(layer)
    same(len(messages.errors), 1, str(messages.all))
    true("changed while it was read" in messages.errors[0], messages.errors[0])
    expect_present_state(layer, words, plain)


def check_database_is_held_for_the_unmatched():
    """A database is read in one transaction. In WAL mode others may write, and the next
    reading has their changes. With a rollback journal they wait."""
    for mode in ("wal", "delete"):
        words = ("-op", "within", "-how", "right", "-batch", 16, *sides())
        zones_file(lco=["SPATIAL_INDEX=NO"])  # the triggers of the index call functions of GDAL
        wait_until_changes_show()
        dataset = opened(*words)
        expected = rest(dataset.GetLayer(0))
        dataset = None
        other = sqlite3.connect("zones.gpkg", isolation_level=None, timeout=0.1)
        same(other.execute(f"PRAGMA journal_mode = {mode}").fetchone(), (mode,))
        dataset = opened(*words)
        layer = dataset.GetLayer(0)
        first = rest(layer, 1)
        change = "UPDATE zones SET v = coalesce(v, 0) + 1000"
        try:
            other.execute(change)
            same(mode, "wal", "another program commits")
        except sqlite3.OperationalError as why:
            same((str(why), mode), ("database is locked", "delete"))
        same(sorted([*first, *rest(layer)], key=repr), sorted(expected, key=repr), mode)
        layer.ResetReading()
        if mode == "delete":
            other.execute(change)
        other.close()
        wait_until_changes_show()
        expect_present_state(layer, words, plain)
        layer.ResetReading()
        true(sorted(rest(layer), key=repr) != sorted(expected, key=repr), mode)
        layer = dataset = None


def check_spoiled_files():
    """A file that is missing, or has other fields, is an error at each reading until
    the file is restored."""
    names = {"p.csv": "a", "q.csv": "b"}
    for path, is_gone in ((p, g) for g in (True, False) for p in names):
        words = ("-op", "within", "-how", "inner", *csv_sides((0, 10, 20), (0, 10, 20)))
        wait_until_changes_show()
        dataset = opened(*words)
        layer = dataset.GetLayer(0)
        same(len(rest(layer)), 3)
        if is_gone:
            os.remove(path)
        else:
            write_csv(path, "other", (0, 10, 20), path == "q.csv")

        def tells(ask, answer, n=1):
            with Messages() as messages:
                same(ask(), answer, f"{path} {is_gone}: {messages.all}")
            same(len(messages.errors), n, f"{path} {is_gone}: {messages.all}")
            true(all((path if is_gone else "other fields") in e for e in messages.errors), str(messages.all))

        for _ in range(2):
            layer.ResetReading()
            tells(layer.GetNextFeature, None)
            tells(layer.GetNextFeature, None, 0)
            tells(layer.GetFeatureCount, -1)
            tells(lambda: layer.GetFeature(0), None)
            with Messages():
                layer.SetSpatialFilterRect(0, 0, 1, 1)
            tells(layer.GetNextFeature, None)
            with Messages():
                layer.SetAttributeFilter("a = 1")
                layer.SetAttributeFilter(None)
                layer.SetSpatialFilter(None)
                layer.GetExtent()
                for what in ("RandomRead", "FastFeatureCount", "FastGetExtent", "FastSpatialFilter"):
                    layer.TestCapability(what)
        write_csv(path, names[path], (0, 10), path == "q.csv")
        wait_until_changes_show()
        layer.ResetReading()
        same(len(rest(layer)), 2, "mended")
        layer = dataset = None


def check_further_field():
    """A field that is added at the end does not change the other fields."""
    dataset = opened("-op", "within", "-how", "inner", *sides())
    layer = dataset.GetLayer(0)
    before = rest(layer)
    zones = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR | gdal.OF_UPDATE)
    zones.GetLayer(0).CreateField(ogr.FieldDefn("more", ogr.OFTReal))
    zones = None
    wait_until_changes_show()
    layer.ResetReading()
    same(rest(layer), before)


# --- filters passed to the input layer, and aggregates with either layer streaming

# Conditions that every driver understands alike, and others.
PLAIN = ("number = 1", "NUMBER=-1.50", '"number" <> 1', "number<=1 AND half>=2 or number != 3",
         "(number < 9 OR (half > 0.5)) and number = 2.0", "number IS NULL", "half is not null",
         "number BETWEEN 1 AND 2 AND half > 0.1", "number in (1,2, -3)", " ( ( number = 1 ) ) ", "half < 1e-3")
OTHER = ("flag = 1", "NOT number = 1", "number = 1 AND NOT (half = 2)", "number NOT IN (1)", "1 = number",
         "number = half", "number = 1234567890123456", "half > 0.12345678901234567", "number + 1 = 2",
         "number between 1 and half", "CAST(number AS float) = 1", "FID < 1000", "OGR_GEOM_AREA > 1", "kind LIKE 'p%'")


def goes_down(words, where):
    """Returns True if the condition was passed to the input layer, and the sorted
    numbers of the rows."""
    with Messages() as messages:
        dataset = opened(*words)
        layer = dataset.GetLayer(0)
        layer.SetAttributeFilter(where)
        found = sorted(f["number"] for f in layer)
        layer = dataset = None
    same(messages.errors, [], where)
    return any("the input layer filters by" in text for _, text in messages.all), found


def check_conditions_that_go_down():
    """A filter is passed to the input layer only if its driver and OGR give it one meaning,
    and if no row of the output depends on the rows that it leaves out."""
    rows_in = [(p, {"number": i, "kind": "shop" if i % 3 else "Park", "half": i / 2 if i % 5 else None, "flag": i % 2})
               for i, p in enumerate(random_points(60, size=500.0))]
    fields = (("number", ogr.OFTInteger), ("kind", ogr.OFTString), ("half", ogr.OFTReal),
              ("flag", ogr.OFTInteger, ogr.OFSTBoolean))
    for path in ("p.gpkg", "p.fgb"):
        make(path, rows_in, fields, kind=ogr.wkbPoint)
    zones_file()
    gdal.SetConfigOption("CPL_DEBUG", "OGRJOIN")
    try:
        for path, line, where, is_asked, n in (
            ("p.gpkg", "-op nearest", "number < 20", 1, 20),
            ("p.fgb", "-op nearest", "number < 20", 1, 20),
            ("p.gpkg", "-op nearest", "kind = 'park'", 0, 20),  # for SQLite case matters
            ("p.fgb", "-op nearest", "kind = 'park'", 1, 20),
            ("p.gpkg", "-op nearest", "join_distance > 1e9", 0, 0),
            ("p.gpkg", "-op nearest -k 2", "number < 20", 1, 40),
            ("p.gpkg", "-op nearest -limit 15", "number < 20", 0, 15),
            ("p.gpkg", "-op nearest -where 'number >= 15'", "number < 20", 1, 5),
        ):
            what = f"{path} {line}: {where}"
            with Messages() as messages:
                dataset = opened(*shlex.split(line), path, "zones.gpkg")
                layer = dataset.GetLayer(0)
                n_all = len(rest(layer))
                layer.SetAttributeFilter(where)
                same(len(rest(layer)), n, what)
                same(layer.GetFeatureCount(), n, what)
                layer.SetAttributeFilter(None)
                same(len(rest(layer)), n_all, what)
                layer = dataset = None
            same(messages.errors, [], what)
            same(sum("the input layer filters by" in text for _, text in messages.all), is_asked, what)
        for where in (*PLAIN, *OTHER):
            is_asked, found = goes_down(("-op", "nearest", "p.gpkg", "zones.gpkg"), where)
            same(is_asked, where in PLAIN, where)
            same(found, goes_down(("-op", "nearest", "p.fgb", "zones.gpkg"), where)[1], where)
    finally:
        gdal.SetConfigOption("CPL_DEBUG", None)


def check_aggregates_either_way():
    pair = sides()
    found = []
    for way in ("join", "input"):
        gdal.SetConfigOption("OGRJOIN_AGG_STREAM", way)
        dataset = opened("-op", "contains", "-agg", "count as n, sum(id), median(id), concat(id)",
                         "-batch", 10, *pair[::-1])
        layer = dataset.GetLayer(0)
        found.append(rest(layer))
        layer.SetSpatialFilterRect(980100, 200100, 980200, 200200)
        true(0 < len(rest(layer)) < len(found[-1]), "some are in the box")
        layer.SetSpatialFilter(None)
        same(row_of(layer.GetFeature(found[-1][5][0])), found[-1][5])
        same(rest(layer), found[-1], "again")
        same(layer.GetFeatureCount(), len(found[-1]))
        layer = dataset = None
    gdal.SetConfigOption("OGRJOIN_AGG_STREAM", None)
    same(found[0], found[1])


if __name__ == "__main__":
    main(globals())
