"""Damaged GeoPackages and FlatGeobufs, made from valid files with every kind of
geometry and type of field.  The command does not crash.  If it ends with 0, SQLite or
GDAL also reads the file and gives equal rows.  OGRJOIN_TEST_ROUNDS=3000 is the number
of files of either format; OGRJOIN_TEST_SEED chooses other files."""

import sqlite3
import struct

from e2e import *
from test_lanes import FIELDS, KINDS, WAYS, random_shape

ROUNDS = int(os.environ.get("OGRJOIN_TEST_ROUNDS", "25"))
SEED = int(os.environ.get("OGRJOIN_TEST_SEED", "0"))

BYTES = (0, 1, 2, 4, 5, 7, 10, 13, 0x7F, 0x80, 0xFF)
BOX = ("-spat", "-40", "-40", "60", "70")

# Commands on a damaged file m and a layer far away. Each command writes every
# row of m once.
COMMANDS = (("m", "far.gpkg"), ("far.fgb", "m", "-how", "full"),
            ("m", "far.fgb", *BOX),
            ("m", "far.gpkg", "-select", "f1,f6", "-threads", "1"),
            ("m", "far.fgb", "-batch", "7"),
            ("far.gpkg", "m", "-batch", "7", "-how", "right"),
            ("m", "far.gpkg", "-how", "anti", "-batch", "7", "-threads", "3"),
            ("far.gpkg", "m", "-op", "nearest"))

# SQL for rows that SQLite and GDAL accept, but that a lane may leave to GDAL.
STATEMENTS = ("UPDATE t SET fid = -9223372036854775808 WHERE fid = 3",
              "UPDATE t SET fid = 9223372036854775807 WHERE fid = 4",
              "UPDATE t SET f4 = 1e999 WHERE fid % 3 = 0",
              "UPDATE t SET f0 = 1.5 WHERE fid = 9",
              "UPDATE t SET f6 = 'a' || char(0) || 'b' WHERE fid < 5",
              "UPDATE t SET f6 = X'6162' WHERE fid = 11",
              "UPDATE t SET f9 = '2020-1-2' WHERE fid = 7",
              "UPDATE t SET f10 = 7 WHERE fid = 2",
              "UPDATE t SET geom = NULL WHERE fid % 2 = 0",
              "UPDATE t SET geom = X'4750' WHERE fid = 12",
              "DELETE FROM t WHERE fid % 5 = 2",
              "ALTER TABLE t ADD COLUMN more TEXT DEFAULT 'x'",
              "ALTER TABLE t ADD COLUMN less INTEGER")


def make_source(r, path, driver, kind, n_rows):
    """Makes a layer with every type of field. Most values are set. Returns path."""
    suffix = r.choice(("", "", "Z", "M", "ZM"))
    example = random_shape(random.Random(1), kind, suffix, 2 + len(suffix))
    dataset = ogr.GetDriverByName(driver).CreateDataSource(path)
    layer = dataset.CreateLayer("t", geom_type=example.GetGeometryType(),
                                options=[f"SPATIAL_INDEX={r.choice(('YES', 'NO'))}"])
    for i, (of_type, subtype, _) in enumerate(FIELDS):
        field = ogr.FieldDefn(f"f{i}", of_type)
        field.SetSubType(subtype)
        layer.CreateField(field)
    dataset.StartTransaction() if driver == "GPKG" else None
    for _ in range(n_rows):
        feature = ogr.Feature(layer.GetLayerDefn())
        for i, (of_type, _, values) in enumerate(FIELDS):
            value = r.choice(values)
            if r.random() < 0.2:
                continue
            if of_type == ogr.OFTBinary:
                feature.SetFieldBinaryFromHexString(i, value.hex())
            else:
                feature.SetField(i, value)
        feature.SetGeometryDirectly(random_shape(r, kind, suffix, 2 + len(suffix)))
        try:
            layer.CreateFeature(feature)
        except RuntimeError:
            pass  # GDAL's driver refuses the geometry
    dataset.CommitTransaction() if driver == "GPKG" else None
    return path


def spoil_byte(r, data, at):
    if 0 <= at < len(data):
        data[at] = r.choice((r.choice(BYTES), r.randrange(256),
                             data[at] ^ 1 << r.randrange(8), (data[at] + 1) % 256))


def spoil_page(r, data):
    """Changes a byte in the header, a cell or a value of a table's page, or replaces
    the page by another one."""
    size = 65536 if data[16:18] == b"\0\1" else data[16] << 8 | data[17]
    pages = [at for at in range(size, len(data), size)
             if data[at] in (5, 13)] or [0]
    at = r.choice(pages[-12:] if r.random() < 0.8 else pages)
    n = data[at + 3] << 8 | data[at + 4]
    head = 12 if data[at] == 5 else 8
    entry = at + head + 2 * r.randrange(min(n, 200) or 1)
    cell = at + (data[entry] << 8 | data[entry + 1])
    what = r.randrange(7)
    if what == 0:
        spoil_byte(r, data, at + r.randrange(12))
    elif what == 1:
        spoil_byte(r, data, entry + r.randrange(2))
    elif what in (2, 3):
        spoil_byte(r, data, cell + r.randrange(24))
    elif what == 4:
        spoil_byte(r, data, cell + r.randrange(300))
    elif what == 5:
        other = r.choice(pages)
        data[at:at + size] = data[other:other + size]
    else:
        at = (at + 8 if r.random() < 0.5 else cell) + 3
        spoil_byte(r, data, at)


def put_nan(r, data):
    """Replaces one of the real numbers by NaN."""
    number = struct.pack(">d", 1 / 3)
    at = data.find(number, r.randrange(len(data)))
    if at >= 0:
        data[at:at + 2] = b"\x7f\xf8"


def spoil_geopackage(r, path):
    if r.random() < 0.3:
        db = sqlite3.connect(path)
        for _ in range(r.randint(1, 3)):
            try:
                db.execute(r.choice(STATEMENTS))
            except sqlite3.Error:
                pass  # a trigger of the index calls functions that only GDAL defines
        db.commit()
        db.close()
        if r.random() < 0.5:
            return
    data = bytearray(open(path, "rb").read())
    for _ in range(r.choice((1, 1, 2, 4))):
        if r.random() < 0.1:
            put_nan(r, data)
        else:
            spoil_page(r, data)
    if r.random() < 0.05:
        del data[r.randrange(len(data)):]
    with open(path, "wb") as file:
        file.write(data)


def features_of(data):
    """Returns the positions of the features' sizes, by following the sizes from feature
    to feature. The first is after the header and, if there is one, an index with nodes
    of 16 entries."""
    at = 12 + struct.unpack_from("<I", data, 8)[0]
    for has_index in (False, True):
        here, found = at, []
        n = 0
        if has_index:
            n = rows_of(data)
            here += 40 * n
            while n > 1:
                n = (n + 15) // 16
                here += 40 * n
        while here + 4 <= len(data):
            found.append(here)
            here += 4 + struct.unpack_from("<I", data, here)[0]
        if here == len(data) and found:
            return found
    return [at]


def count_place(data):
    """Returns the position of the number of features in the header."""
    root = 12 + struct.unpack_from("<I", data, 12)[0]
    vtable = root - struct.unpack_from("<i", data, root)[0]
    if struct.unpack_from("<H", data, vtable)[0] < 4 + 2 * 9:
        return None
    place = struct.unpack_from("<H", data, vtable + 4 + 2 * 8)[0]
    return root + place if place else None


def rows_of(data):
    place = count_place(data)
    return struct.unpack_from("<Q", data, place)[0] if place else 0


def spoil_flatgeobuf(r, path):
    data = bytearray(open(path, "rb").read())
    features = features_of(data)
    for _ in range(r.choice((1, 1, 1, 2))):
        what = r.random()
        if what < 0.4:  # tables and offsets
            spoil_byte(r, data, r.choice(features) + r.randrange(80))
        elif what < 0.9:
            spoil_byte(r, data, r.choice(features) + r.randrange(600))
        elif what < 0.95:
            spoil_byte(r, data, r.randrange(12, features[0] + 1))
        elif count_place(data):
            at = count_place(data)
            data[at:at + 8] = struct.pack("<Q", r.choice((0, 3, len(features) + 1)))
    if r.random() < 0.05:
        del data[r.randrange(12, len(data)):]
    with open(path, "wb") as file:
        file.write(data)


def does_sqlite_read(path):
    """Returns two values: True if SQLite reads all rows, and True if its integrity
    check of the whole file succeeds."""
    db = sqlite3.connect(path)
    db.text_factory = bytes
    try:
        for _ in db.execute("SELECT * FROM t"):
            pass
        reads = True
    except sqlite3.Error:
        reads = False
    except UnicodeDecodeError:  # Python, not SQLite, cannot decode a name in the schema
        reads = True
    try:
        sound = db.execute("PRAGMA integrity_check").fetchall() == [(b"ok",)]
    except (sqlite3.Error, UnicodeDecodeError):
        sound = False
    db.close()
    return reads, sound


def ask(way, command, suffix):
    words = ["m" + suffix if word == "m" else word for word in command]
    if "-op" not in words:
        words += ["-op", "intersects"]
    r = start("-q", "-f", "CSV", "-lco", "GEOMETRY=AS_WKT", "-crs", "ignore",
              "/vsistdout/", *words, env=WAYS[way])
    out, err = r.communicate(timeout=HANG_S)
    true(r.returncode in (0, 1), f"crash: {r.words}, exit {r.returncode}: {err}")
    return r.returncode, out, err, r.words


def compare(command, suffix, counts):
    """Checks that a lane gives GDAL's rows, and that it fails if GDAL fails."""
    lane, gdal_way = (ask(way, command, suffix) for way in (0, 1))
    counts[lane[0], gdal_way[0]] = counts.get((lane[0], gdal_way[0]), 0) + 1
    what = f"{lane[3]}: {lane[2][-300:]}\nand GDAL: {gdal_way[2][-300:]}"
    if lane[0] == 0 and gdal_way[0] == 1 and BOX[0] in command:
        at = command.index(BOX[0])  # is the index damaged, and not a row?
        rest = ask(1, command[:at] + command[at + len(BOX):], suffix)
        true(rest[0] == 0, f"only the lane reads: {what}")
        return
    true(lane[0] == 1 or gdal_way[0] == 0, f"only the lane reads: {what}")
    reads = sound = True
    if suffix == ".gpkg":
        reads, sound = does_sqlite_read("m.gpkg")
        looks_at_all = BOX[0] not in command and "-select" not in command
        true(lane[0] == 1 or reads or not looks_at_all, f"SQLite refuses: {what}")
    if lane[0] == gdal_way[0] == 0 and BOX[0] in command:
        lacks = missing_lines(lane[1], gdal_way[1])
        true(not lacks, f"rows that only GDAL gives: {lacks[:2]}: {what}")
    elif lane[0] == gdal_way[0] == 0:
        differ(lane[1], gdal_way[1], what)
    else:
        true(lane[0] == gdal_way[0] or not sound or suffix == ".fgb" and "-batch"
             in command, f"only GDAL reads: {what}")


def missing_lines(one, other):
    """Returns the lines of `other` that `one` lacks, in their order. A damaged index
    hides rows in a box from GDAL. A lane gives these rows, because it tests each
    row."""
    lines = iter(one.split(b"\n"))
    return [line for line in other.split(b"\n") if line not in lines]


def differ(one, other, what):
    if one == other:
        return
    for a, b in zip(one.split(b"\n"), other.split(b"\n")):
        same(a, b, what)
    same(len(one), len(other), what)


def compare_broken_files(driver, suffix, spoil):
    counts, sources = {}, {}
    r = random.Random(SEED)
    for path in ("far.gpkg", "far.fgb"):
        make(path, [("POINT (100000 100000)", {"name": "far"})], srs=None)
    for i in range(ROUNDS):
        if i % 200 == 199:
            print(f"  {i + 1} of {driver}: {counts}", flush=True)
        kind, n = KINDS[i % len(KINDS)], r.choice((5, 40))
        if (kind, n) not in sources:
            sources[kind, n] = make_source(r, f"{kind}{n}{suffix}", driver, kind, n)
        shutil.copy(sources[kind, n], "m" + suffix)
        spoil(r, "m" + suffix)
        try:
            compare(r.choice(COMMANDS), suffix, counts)
        except AssertionError:
            kept = os.environ.get("OGRJOIN_TEST_KEEP")
            if kept is not None:
                shutil.copy("m" + suffix, f"{kept}/{SEED}_{i}{suffix}")
                traceback.print_exc()
                counts["failed"] = counts.get("failed", 0) + 1
                continue
            raise
    print(f"  {ROUNDS} of {driver}, (lane's exit, GDAL's): {counts}")
    true("failed" not in counts, f"{counts['failed'] if 'failed' in counts else 0} files")
    true(counts.get((0, 0), 0) > ROUNDS // 8, f"hardly any file is read: {counts}")


def check_geopackage():
    compare_broken_files("GPKG", ".gpkg", spoil_geopackage)


def check_flatgeobuf():
    compare_broken_files("FlatGeobuf", ".fgb", spoil_flatgeobuf)


if __name__ == "__main__":
    main(globals())
