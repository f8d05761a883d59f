"""Lanes are our own readers and writers of a format, which use no features of GDAL.
Random layers are written by lanes and by GDAL, and each file is read by lanes and by
GDAL. Their dumps are equal.  OGRJOIN_TEST_ROUNDS=500 is the number of layers."""

import re
import sqlite3
import struct

from e2e import *

try:
    from osgeo_utils.samples import validate_gpkg
except ImportError:
    validate_gpkg = None

ROUNDS = int(os.environ.get("OGRJOIN_TEST_ROUNDS", "6"))
WAYS = ({"OGRJOIN_LANES": "YES"}, {"OGRJOIN_LANES": "NO"})

KINDS = ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING",
         "MULTIPOLYGON", "GEOMETRYCOLLECTION", "CIRCULARSTRING", "CURVEPOLYGON")
NAMES = ("a", 'q"uote', "it's", "größe", "select", "x" * 60, "semi;colon", "%s",
         "?1", "with space", "Ω")
TEXTS = ("", "a", "ü€𝄞", "'", '"', "x" * 5000, "\\", "line\nbreak", "NULL", "%d")
FIELDS = ((ogr.OFTInteger, ogr.OFSTNone, (0, -1, 2**31 - 1, -2**31)),
          (ogr.OFTInteger, ogr.OFSTBoolean, (0, 1)),
          (ogr.OFTInteger, ogr.OFSTInt16, (-32768, 32767, 7)),
          (ogr.OFTInteger64, ogr.OFSTNone, (0, 2**63 - 1, -2**63, 5)),
          (ogr.OFTReal, ogr.OFSTNone, (0.0, -0.1, 1e300, 5.0, 1 / 3)),
          (ogr.OFTReal, ogr.OFSTFloat32, (0.5, 1.25, 3.0)),
          (ogr.OFTString, ogr.OFSTNone, TEXTS),
          (ogr.OFTString, ogr.OFSTJSON, ('{"a": [1, null]}', "[]")),
          (ogr.OFTBinary, ogr.OFSTNone, (b"", b"\0\1\xff", b"x" * 9000)),
          (ogr.OFTDate, ogr.OFSTNone, ("2020/02/29", "1970/01/01")),
          (ogr.OFTDateTime, ogr.OFSTNone,
           ("2020/02/29 23:59:59.999+00", "1999/12/31 01:02:03+0530",
            "2001/01/01 00:00:00")))


def coordinates(r, n, dimensions):
    return ", ".join(" ".join(f"{r.uniform(-100, 100):.6f}"
                              for _ in range(dimensions)) for _ in range(n))


def ring(r, dimensions):
    first = coordinates(r, 1, dimensions)
    return f"({first}, {coordinates(r, r.randint(2, 40), dimensions)}, {first})"


def body(r, kind, suffix, dimensions, depth):
    """Returns the coordinates of a geometry in brackets, or sometimes EMPTY."""
    if r.random() < 0.05:
        return "EMPTY"
    several = range(r.randint(1, 4))
    if kind == "POINT":
        return f"({coordinates(r, 1, dimensions)})"
    if kind == "LINESTRING":
        return f"({coordinates(r, r.randint(2, 300), dimensions)})"
    if kind == "CIRCULARSTRING":
        return f"({coordinates(r, 2 * r.randint(1, 4) + 1, dimensions)})"
    if kind in ("POLYGON", "CURVEPOLYGON"):
        return f"({', '.join(ring(r, dimensions) for _ in several)})"
    if kind == "GEOMETRYCOLLECTION":
        members = [r.choice(KINDS[:7] if depth < 2 else KINDS[:6]) for _ in several]
        return "(" + ", ".join(f"{m} {suffix} {body(r, m, suffix, dimensions, depth + 1)}"
                               for m in members) + ")"
    return "(" + ", ".join(body(r, kind[5:], suffix, dimensions, depth + 1)
                           for _ in several) + ")"


def random_shape(r, kind, suffix, dimensions):
    while True:
        try:
            return ogr.CreateGeometryFromWkt(
                f"{kind} {suffix} {body(r, kind, suffix, dimensions, 0)}")
        except RuntimeError:
            pass  # GDAL 3.6 does not read some empty members


def random_layer(r, path, driver):
    suffix = r.choice(("", "Z", "M", "ZM"))
    dimensions = 2 + len(suffix)
    kind = r.choice(KINDS)
    is_any = r.random() < 0.3
    example = random_shape(random.Random(1), kind, suffix, dimensions)
    kind_of_layer = example.GetGeometryType()
    if is_any:
        kind_of_layer = ogr.GT_SetModifier(ogr.wkbUnknown, "Z" in suffix, "M" in suffix)
    dataset = ogr.GetDriverByName(driver).CreateDataSource(path)
    layer = dataset.CreateLayer("it's \"odd\" ä" if driver == "GPKG" else "rows",
                                geom_type=kind_of_layer,
                                options=[f"SPATIAL_INDEX={r.choice(('YES', 'NO'))}"])
    fields = [(f"{NAMES[i % len(NAMES)]}{i}", *r.choice(FIELDS))
              for i in range(r.choice((0, 1, 5, 11, 60)))]
    for name, of_type, subtype, _ in fields:
        field = ogr.FieldDefn(name, of_type)
        field.SetSubType(subtype)
        layer.CreateField(field)
    dataset.StartTransaction() if driver == "GPKG" else None
    has_null = r.random() < 0.5 and driver == "GPKG"
    for _ in range(r.choice((1, 20, 300, 1500))):
        feature = ogr.Feature(layer.GetLayerDefn())
        for i, (_, of_type, _, values) in enumerate(fields):
            if r.random() < 0.2:
                continue
            value = r.choice(values)
            if of_type == ogr.OFTBinary:
                feature.SetFieldBinaryFromHexString(i, value.hex())
            else:
                feature.SetField(i, value)
        own = r.choice(KINDS) if is_any else kind
        shape = random_shape(r, own, suffix, dimensions)
        if not (has_null and r.random() < 0.1):
            feature.SetGeometryDirectly(shape)
        try:
            layer.CreateFeature(feature)
        except RuntimeError:
            pass  # no driver accepts the geometry, neither lanes nor GDAL
    if driver == "GPKG":
        if r.random() < 0.3:
            layer.DeleteFeature(1)
        dataset.CommitTransaction()
    return path


def dump(path, is_sorted):
    """Returns the output of ogrinfo for the whole file. If a spatial index orders the rows,
    returns a sorted list of rows, because rows with equal Hilbert codes may come in any
    order."""
    done = subprocess.run(["ogrinfo", "-ro", "-al", path], capture_output=True)
    if done.returncode != 0:  # FlatGeobuf without rows and index
        return str(done.returncode)
    shown = done.stdout.decode()
    shown = shown.split("\n", 2)[2]  # without the name of the file
    if int(gdal.VersionInfo()) >= 3070000:
        # GDAL 3.10 computes the extent of arcs with Z as that of lines, and as
        # (0, 0) if no row has a geometry. Our lane does not, so extents are
        # not compared.
        shown = re.sub("(?m)^Extent: .*\n", "", shown)
    if not is_sorted:
        return shown
    head, *rows = re.split(r"(?m)^OGRFeature\(.*\):-?\d+$", shown)
    return [head, *sorted(rows)]


def look_into(path):
    """Checks a GeoPackage by SQLite's integrity checks. Returns the findings of GDAL's
    validation script, if it is installed."""
    db = sqlite3.connect(path)
    same(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], path)
    for name, in db.execute("SELECT name FROM sqlite_master WHERE name LIKE "
                            "'rtree%' AND sql LIKE 'CREATE VIRTUAL%'").fetchall():
        same(db.execute("SELECT rtreecheck(?)", (name,)).fetchall(), [("ok",)], name)
    db.close()
    if validate_gpkg is None:
        return []
    return [str(e) for e in
            validate_gpkg.check(path, abort_at_first_error=False, warning_msg=False)]


def copy(way, source, target, index):
    """Copies a layer by a join that matches nothing, so that all rows are written
    unchanged. way is an index of WAYS: 0 with lanes, 1 without. Tries again after a
    crash, because GDAL 3.10's thread that reads GeoPackage ahead sometimes crashes.
    Returns the exit code."""
    for _ in range(1 if way == 0 else 8):
        r = run("-op", "intersects", "-crs", "ignore", "-overwrite", "-lco",
                f"SPATIAL_INDEX={index}", "-nln", "copy", target, source, "far.gpkg",
                env=WAYS[way])
        if r.rc >= 0:
            break
    return r.rc


def differ(lanes, gdal_way, what):
    """Fails with the first line that differs."""
    one, other = (list(x) if isinstance(x, list) else str(x).split("\n")
                  for x in (lanes, gdal_way))
    for a, b in zip(one, other):
        same(a, b, what)
    same(len(one), len(other), what)


def compare(seed, made_as):
    r = random.Random(seed)
    source = random_layer(r, "in" + made_as[1], made_as[0])
    for suffix, index in ((".fgb", "NO"), (".fgb", "YES"), (".gpkg", "NO"),
                          (".gpkg", "YES")):
        shown = []
        for way in (0, 1):
            target = f"out{way}{suffix}"
            rc = copy(way, source, target, index)
            shown.append(dump(target, suffix == ".fgb" and index == "YES")
                         if rc == 0 else rc)
            if rc == 0 and suffix == ".gpkg":
                shown[way] += "\n".join(look_into(target)).replace(target, "")
            if os.path.exists(target):
                os.unlink(target)
        if shown[0] != shown[1]:
            differ(*shown, f"{made_as[0]}, seed {seed}, to {suffix}, index {index}")
    os.unlink(source)


def boxes_of(r, path):
    """Returns boxes: around all rows, around none, random ones, and boxes that begin
    where the envelope of a row ends."""
    found = [(-1e6, -1e6, 1e6, 1e6), (1e6, 1e6, 2e6, 2e6)]
    for _ in range(3):
        x, y = r.uniform(-100, 90), r.uniform(-100, 90)
        found.append((x, y, x + r.uniform(0.1, 90), y + r.uniform(0.1, 90)))
    dataset = ogr.Open(path)
    shapes = [f.GetGeometryRef().Clone() for f in dataset.GetLayer(0)
              if f.GetGeometryRef() is not None
              and not f.GetGeometryRef().IsEmpty()]
    for shape in r.sample(shapes, min(2, len(shapes))):
        left, right, low, high = shape.GetEnvelope()
        found += [(right, high, right + 3, high + 3),
                  (left - 3, low, left, high + 1),
                  (left, low, right + 1e-9, high + 1e-9)]
    return found


def compare_filtered(seed, made_as):
    r = random.Random(seed)
    source = random_layer(r, "in" + made_as[1], made_as[0])
    conditions = [(), (), ("-where", "fid > 3")]
    for box in boxes_of(r, source):
        words = ("-spat", *map(repr, box), *r.choice(conditions))
        shown = []
        for way in (0, 1):
            done = run("-op", "intersects", "-crs", "ignore", "-overwrite", "-q",
                       "-lco", "SPATIAL_INDEX=NO", "-nln", "copy", "out.gpkg",
                       source, "far.gpkg", *words, env=WAYS[way])
            shown.append(dump("out.gpkg", True) if done.rc == 0 else done.rc)
        if shown[0] != shown[1]:
            differ(*shown, f"{made_as[0]}, seed {seed}, {words}")
    os.unlink(source)


def check_filters():
    if shutil.which("ogrinfo") is None:
        raise Skip("no ogrinfo")
    make("far.gpkg", [("POINT (100000 100000)", {})])
    for seed in range(max(2, ROUNDS // 2)):
        compare_filtered(seed, (("GPKG", ".gpkg"), ("FlatGeobuf", ".fgb"))[seed % 2])


def check_many_rows_under_filters():
    """Tests several blocks, long runs of the index, and long gaps between the runs.
    Rows stay in the order of the input."""
    square = [(f"POINT ({x} {y})", {"name": f"{x} {y}"})
              for x in range(300) for y in range(300)]
    make("far.gpkg", [("POINT (100000 100000)", {})])
    make("points.gpkg", square)
    succeeds("-op", "intersects", "-q", "points.fgb", "points.gpkg", "far.gpkg")
    for source in ("points.gpkg", "points.fgb"):
        for box in ("9.5 9.5 20 280", "-9 -9 0 0", "0 0 299 2", "150 -9 150.1 900"):
            for where in ((), ("-where", "name LIKE '%0%'")):
                shown = []
                for way in WAYS:
                    succeeds("-op", "intersects", "-q", "-overwrite", "out.gpkg",
                             source, "far.gpkg", "-spat", *box.split(), *where,
                             env=way)
                    shown.append([wkb for _, wkb, _ in rows("out.gpkg")])
                differ(shown[0], shown[1], f"{source}, {box}, {where}")
                true(shown[0], f"{source}, {box}: no rows")


def append(way, more, before, extra=None):
    """Appends `more` rows to an indexed table of `before` random points: either more
    rows than it had, or too few to rebuild the index. way is an index of WAYS. Returns
    the contents of the table."""
    r = random.Random(before)
    point = lambda: f"POINT ({r.uniform(-9, 9)} {r.uniform(-9, 9)})"
    make("to.gpkg", [(point() if i % 7 else None, {"name": f"n{i}"})
                     for i in range(before)], kind=ogr.wkbPoint)
    make("more.gpkg", [(point() if i % 5 else None, {"name": f"m{i}"})
                       for i in range(more)], kind=ogr.wkbPoint)
    db = sqlite3.connect("to.gpkg")
    if extra is not None:
        db.executescript(extra)
    index = "rtree_to_geom"
    done = run("-op", "intersects", "-how", "anti", "-append", "-nln", "to",
               "to.gpkg", "more.gpkg", "far.gpkg", env=WAYS[way])
    same(done.rc, 0, done)
    # the connection that stayed open sees all rows
    found = [db.execute(f"SELECT * FROM {index} ORDER BY id").fetchall(),
             db.execute("SELECT * FROM gpkg_ogr_contents").fetchall(),
             db.execute("SELECT * FROM sqlite_sequence").fetchall(),
             db.execute("SELECT name, sql FROM sqlite_master WHERE type = "
                        "'trigger' ORDER BY name").fetchall()]
    if extra is not None:
        found.append(db.execute("SELECT * FROM log").fetchall())
    db.close()
    return [dump("to.gpkg", False), look_into("to.gpkg"), found]


def check_append():
    if shutil.which("ogrinfo") is None:
        raise Skip("no ogrinfo")
    make("far.gpkg", [("POINT (100000 100000)", {})])
    log = ("CREATE TABLE log (fid, n); CREATE TRIGGER own AFTER INSERT ON \"to\" "
           "BEGIN INSERT INTO log VALUES (NEW.fid, (SELECT count(*) FROM log)); END")
    idle = "DROP TRIGGER rtree_to_geom_insert; CREATE TABLE log (fid)"
    for more, before in ((500, 0), (500, 20), (300, 300), (40, 2000), (1, 30)):
        for extra in (None, log, idle)[: 3 if before else 2]:
            one, other = (append(way, more, before, extra) for way in (0, 1))
            differ(one[0], other[0], f"{more} rows to {before}")
            same(one[1:], other[1:], f"{more} rows to {before}, {extra}")


def check_append_while_somebody_reads():
    """An unfinished SELECT of another connection holds the file's lock. Both lanes and
    GDAL fail, and leave the table unchanged."""
    make("far.gpkg", [("POINT (100000 100000)", {})])
    make("more.gpkg", [("POINT (1 1)", {"name": "b"})] * 50)
    for way in WAYS:
        make("to.gpkg", [("POINT (0 0)", {"name": "a"})] * 20)
        before = digest("to.gpkg")
        db = sqlite3.connect("to.gpkg")
        standing = db.execute("SELECT fid FROM \"to\"")
        standing.fetchone()
        done = run("-op", "intersects", "-how", "anti", "-append", "-nln", "to",
                   "to.gpkg", "more.gpkg", "far.gpkg",
                   env=way)
        true(done.rc == 1 and "locked" in done.err, f"not locked: {done}")
        standing.close()
        db.close()
        same(digest("to.gpkg"), before, "the file")


def check_random_layers():
    if shutil.which("ogrinfo") is None:
        raise Skip("no ogrinfo")
    make("far.gpkg", [("POINT (100000 100000)", {})])
    for seed in range(ROUNDS):
        compare(seed, (("GPKG", ".gpkg"), ("FlatGeobuf", ".fgb"))[seed % 2])


def both_ways(*words):
    """Returns the command's CSV output twice: with lanes and without."""
    return [succeeds("-q", "-f", "CSV", "-lco", "GEOMETRY=AS_WKT", "-crs", "ignore",
                     "-op", "intersects", "/vsistdout/", *words, env=way).out
            for way in WAYS]


def check_order_under_a_box():
    """Under a box rows are in the order of their FIDs, as without a box, although the index
    of a GeoPackage has another order. This also holds for the input, and with -limit."""
    r = random.Random(5)
    make("shuffled.gpkg", [(f"POINT ({r.uniform(0, 99)} {r.uniform(0, 99)})",
                            {"name": f"n{i}"}) for i in range(500)], srs=None)
    make("far.gpkg", [("POINT (100000 100000)", {})], srs=None)
    for words in ((), ("-limit", "9"), ("-where", "name LIKE 'n%'")):
        for out in both_ways("shuffled.gpkg", "far.gpkg", "-spat", "20", "20", "60",
                             "70", *words):
            names = [int(line.split(",")[1][1:]) for line in out.split("\n")[1:-1]]
            true(len(names) > 8, "rows in the box")
            same(names, sorted(names), f"{words}")


def check_least_fid():
    """The minimum FID, also in a row that a lane leaves to GDAL."""
    make("far.gpkg", [("POINT (100000 100000)", {})], srs=None)
    make("in.gpkg", [("POINT (1 1)", {"name": f"n{i}", "n": i}) for i in range(9)],
         fields=(("name", ogr.OFTString), ("n", ogr.OFTInteger)), srs=None,
         lco=("SPATIAL_INDEX=NO",))
    db = sqlite3.connect("in.gpkg")
    db.execute("UPDATE \"in\" SET fid = -9223372036854775808, n = 'odd' WHERE fid = 4")
    db.commit()
    db.close()
    for out in both_ways("in.gpkg", "far.gpkg"):
        same([line.split(",")[1] for line in out.split("\n")[1:-1]],
             ["n3", "n0", "n1", "n2", "n4", "n5", "n6", "n7", "n8"])


def header_field(data, field):
    """Returns the position of a field in the header of a FlatGeobuf."""
    root = 12 + int.from_bytes(data[12:16], "little")
    vtable = root - int.from_bytes(data[root:root + 4], "little", signed=True)
    place = vtable + 4 + 2 * field
    return root + int.from_bytes(data[place:place + 2], "little")


def check_texts_that_are_not_there():
    """A field is declared NOT NULL but has a NULL; FlatGeobuf allows that. In GDAL
    3.6's Arrow stream all later texts of the column are then shifted."""
    make("far.gpkg", [("POINT (100000 100000)", {})], srs=None)
    field = ogr.FieldDefn("s", ogr.OFTString)
    field.SetNullable(False)
    texts = ("first", "zwei", None, "x", "", "last")
    make("in.fgb", [("POINT (1 1)", {"s": text} if text is not None else {})
                    for text in texts],
         fields=(field,), srs=None, kind=ogr.wkbPoint, lco=("SPATIAL_INDEX=NO",))
    dataset = ogr.Open("in.fgb")
    definition = dataset.GetLayer(0).GetLayerDefn()
    true(not definition.GetFieldDefn(0).IsNullable(), "the field is NOT NULL")
    for out in both_ways("in.fgb", "far.gpkg"):
        same([line.split(",")[1].strip('"') for line in out.split("\n")[1:-1]],
             [text or "" for text in texts])


def check_unknown_count():
    """A FlatGeobuf without a number of features in its header, as it is written to
    streams."""
    make("far.gpkg", [("POINT (100000 100000)", {})], srs=None)
    make("in.fgb", [("POINT (1 1)", {"name": f"n{i}"}) for i in range(37)], srs=None,
         kind=ogr.wkbPoint, lco=("SPATIAL_INDEX=NO",))
    data = bytearray(open("in.fgb", "rb").read())
    at = header_field(data, 8)
    same(int.from_bytes(data[at:at + 8], "little"), 37, "the count")
    data[at:at + 8] = bytes(8)
    open("in.fgb", "wb").write(data)
    for words in ((), ("-where", "name <> 'n5'")):
        for out in both_ways("in.fgb", "far.gpkg", *words):
            same(len(out.split("\n")) - 2, 37 - bool(words), "rows")


def check_box_beside_a_damaged_index():
    """A FlatGeobuf with a damaged index. The lane tests each row itself, so it gives
    all rows in the box. GDAL finds none."""
    r = random.Random(8)
    points = [(r.uniform(0, 99), r.uniform(0, 99)) for _ in range(320)]
    make("far.gpkg", [("POINT (100000 100000)", {})], srs=None)
    make("in.fgb", [(f"POINT ({x!r} {y!r})", {"name": f"n{i}"})
                    for i, (x, y) in enumerate(points)],
         srs=None, kind=ogr.wkbPoint)
    inside = sorted(f"n{i}" for i, (x, y) in enumerate(points)
                    if 20 <= x <= 90 and 10 <= y <= 80)
    words = ("in.fgb", "far.gpkg", "-spat", "20", "10", "90", "80")
    sound = open("in.fgb", "rb").read()
    index = 12 + int.from_bytes(sound[8:12], "little")
    leaves = index + 40 * (1 + 2 + 20)  # behind the nodes above, of 16 each

    def names():
        return [sorted(line.split(",")[1] for line in out.split("\n")[1:-1])
                for out in both_ways(*words)]

    same(names(), [inside, inside])
    boxes, offsets = bytearray(sound), bytearray(sound)
    for i in range(320):
        at = leaves + 40 * i
        boxes[at:at + 32] = struct.pack("<4d", 500, 500, 501, 501)
        offsets[at + 32:at + 40] = sound[leaves + 32:leaves + 40]
    for damaged in (boxes, offsets):
        open("in.fgb", "wb").write(damaged)
        lane, gdal_way = names()
        same(lane, inside)
        true(gdal_way != inside, "GDAL reads by the index")


if __name__ == "__main__":
    main(globals())
