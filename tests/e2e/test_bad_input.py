"""Invalid words and invalid inputs.  The command prints one line that begins with ERROR
and names the fault, ends with exit code 1, and leaves no file behind."""

import gzip
import sqlite3
import zipfile

from e2e import *


def check_words():
    """One invalid word of each kind. test_command tests all of them and their
    messages."""
    w = layers()
    fails("-max_distence", "5", "o.gpkg", *w, message=["max_distence", "-max_distance"])
    fails("o.gpkg", w[0], message="join_ds")
    fails("", *w)


def check_missing():
    w = layers()
    fails("o.gpkg", "nofile.gpkg", w[1], message=["nofile.gpkg", "input"])
    fails("o.gpkg", w[0], "nofile.gpkg", message=["nofile.gpkg", "join"])
    fails("-input_layer", "nolayer", "o.gpkg", *w, message=["nolayer", "points"])
    fails("-join_layer", "nolayer", "o.gpkg", *w, message=["nolayer", "lots"])
    fails("-where", "nofield = 1", "o.gpkg", *w, message="nofield")
    fails("-join_where", "nofield = 1", "o.gpkg", *w, message="nofield")
    fails("-where", "name = = 1", "o.gpkg", *w)
    fails("-sql", "SELECT * FROM nolayer", "o.gpkg", *w, message="nolayer")
    fails("-sql", "SELEC", "o.gpkg", *w)
    fails("-sql", "DELETE FROM points", "o.gpkg", *w)
    same(len(Layer("points.gpkg").rows), 50, "nothing was deleted")
    fails("-join_sql", "SELECT 1", "o.gpkg", *w, message="no geometry")


def check_no_geometry():
    w = layers()
    make("table.gpkg", [(None, {"name": "a"})], kind=ogr.wkbNone, srs=None)
    fails("o.gpkg", "table.gpkg", w[1], message="no geometry")
    fails("o.gpkg", w[0], "table.gpkg", message="no geometry")
    with open("plain.csv", "w", encoding="utf-8") as file:
        file.write("a,b\n1,2\n")
    fails("o.gpkg", w[0], "plain.csv", message=["no geometry", "POSSIBLE"])


def check_inputs_of_any_kind():
    """Lines, polygons and collections are joined like points."""
    w = layers()
    shapes = [
        "LINESTRING (979000 200000, 981000 200300)",
        "POLYGON ((979000 200000, 979000 200010, 979010 200010, 979000 200000))",
        "MULTIPOLYGON (((970000 200000, 970000 200001, 970001 200001, 970000 200000)))",
        "GEOMETRYCOLLECTION (POINT (980100 200100), LINESTRING (0 0,1 1))",
    ]
    make("shapes.gpkg", [(s, {"name": "x"}) for s in shapes])
    join("o.gpkg", "shapes.gpkg", w[1])
    lots = Layer(w[1]).shapes()
    for got, wkt in zip(Layer("o.gpkg").column("join_distance"), shapes):
        shape = ogr.CreateGeometryFromWkt(wkt)
        near(got, min(shape.Distance(lot) for lot in lots), 1e-9)


def overwrite_bytes(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def check_broken_files():
    w = layers()
    points_file("big.gpkg", n=3000)
    points_file("big.fgb", n=3000)
    size = os.path.getsize("big.gpkg")
    for n in (size // 2, 5000, 50, 10):
        with open("big.gpkg", "rb") as source, open("cut.gpkg", "wb") as file:
            file.write(source.read(n))
        fails("o.gpkg", "cut.gpkg", w[1])
        fails("o.gpkg", w[0], "cut.gpkg")
    shutil.copy("big.gpkg", "torn.gpkg")
    for at in range(8192, size, 8192):
        overwrite_bytes("torn.gpkg", at, b"\xff" * 4096)
    fails("o.gpkg", "torn.gpkg", w[1])
    size = os.path.getsize("big.fgb")
    for n in (size // 2, size - 7, 3000, 100, 9):
        with open("big.fgb", "rb") as source, open("cut.fgb", "wb") as file:
            file.write(source.read(n))
        fails("o.gpkg", "cut.fgb", w[1])
        fails("o.gpkg", w[0], "cut.fgb")
    points_file("s.shp", n=500)
    for end in ("shp", "dbf"):
        shutil.copy(f"s.{end}", "kept")
        with open(f"s.{end}", "r+b") as file:
            file.truncate(os.path.getsize(f"s.{end}") // 2)
        r = run("-op", "nearest", "o.gpkg", "s.shp", w[1])
        # If the driver does not notice the damage, the command may succeed; it must not crash.
        true(r.rc in (0, 1), str(r))
        true(r.rc == 1 or len(Layer("o.gpkg").rows) == 500, f"rows lost: {r}")
        if r.rc == 0:
            os.remove("o.gpkg")
        shutil.copy("kept", f"s.{end}")


def check_texts_that_are_broken():
    w = layers()
    for name, text in (("a.geojson", '{"type": "FeatureCollection", "features": [{"ty'),
                       ("b.geojson", '{"type": "FeatureCollection"}'),
                       ("c.geojson", "{}"),
                       ("d.geojson", "not json"),
                       ("e.csv", ""),
                       ("f.csv", "\0\0\0\0"),
                       ("g.gpkg", ""),
                       ("h.gpkg", "SQLite format 3\0 and no more"),
                       ("i.shp", ""),
                       ("j.fgb", ""),
                       ("k.vrt", "<OGRVRTDataSource><OGRVRTLayer"),
                       ("l.txt", "hello"),
                       ("m", "hello")):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        fails("o.gpkg", name, w[1])
        fails("o.gpkg", w[0], name)
    os.mkdir("folder")
    fails("o.gpkg", "folder", w[1], message="folder")
    fails("o.gpkg", w[0], "folder", message="folder")
    fails("o.gpkg", "/dev/null", w[1])


def patch_blobs(path, table, change):
    """Replaces the geometry blob of row 3 by the result of change()."""
    base = sqlite3.connect(path)
    for (name,) in base.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        base.execute(f'DROP TRIGGER "{name}"')
    (blob,) = base.execute(f"SELECT geom FROM {table} WHERE fid = 3").fetchone()
    base.execute(f"UPDATE {table} SET geom = ? WHERE fid = 3", (change(blob),))
    base.commit()
    base.close()


def check_geometry_columns_that_lie():
    """A table declares points but contains polygons. The polygons are joined as
    polygons."""
    points_file()
    lots_file()
    base = sqlite3.connect("lots.gpkg")
    (blob,) = base.execute("SELECT geom FROM lots WHERE fid = 1").fetchone()
    base.close()
    patch_blobs("points.gpkg", "points", lambda b: blob)
    join("-how", "inner", "-f", "CSV", "o.csv", "points.gpkg", "lots.gpkg")
    true("0" in Layer("o.csv").column("join_distance"), "a polygon meets itself")


def check_names_from_elsewhere():
    points, lots = layers()
    fails("o.gpkg", "points.gpkg|layername=points|subset=1", lots, op=False,
          message=["QGIS", "write points.gpkg, and -input_layer points"])
    fails("o.gpkg", points, f"{lots}|layername=lots", op=False, message="-join_layer lots")
    fails("o.gpkg", "/vsistdin/", lots, op=False, message="CSV:/vsistdin/")
    # the sides stand before the destination, as in GeoPandas
    fails(points, lots, "o.gpkg", op=False, message=["o.gpkg", "the destination comes first: ogrjoin dst_ds"])
    error = fails("-overwrite", points, lots, "o.gpkg", op=False, message="o.gpkg")
    true("destination" not in error, error)


def check_packed_files():
    lots_file("lots.geojson", srs="EPSG:4326")
    points_file()
    with zipfile.ZipFile("l.zip", "w") as packed:
        packed.write("lots.geojson")
    with gzip.open("l.geojson.gz", "wb") as packed, open("lots.geojson", "rb") as plain:
        packed.write(plain.read())
    for name, prefix in (("l.zip", "/vsizip/"), ("l.geojson.gz", "/vsigzip/")):
        fails("o.gpkg", "points.gpkg", name, message=f"GDAL reads a packed file under the name {prefix}{name}")
        join("-overwrite", "-q", "-crs", "ignore", "o.gpkg", "points.gpkg", prefix + name)
    fails("o2.gpkg", "points.gpkg", "none.zip", message="none.zip: No such file")


def check_conditions_on_layers_with_quotes():
    """A layer has quotes in its name. A condition on it is checked before any row is
    read."""
    make("points.gpkg", [("POINT (0 0)", {"name": "x"}), ("POINT (1 1)", {"name": "y"})],
         layer='a "b" c', kind=ogr.wkbPoint)
    lots_file()
    lots = ["points.gpkg", "lots.gpkg"]
    fails("-where", "nothing > 1", "o.gpkg", *lots, message="input condition 'nothing > 1' fails")
    fails("-join_where", "nothing > 1", "o.gpkg", *lots[::-1],
          message="join condition 'nothing > 1' fails")
    join("-where", "name = 'y'", "o.gpkg", *lots)
    same(len(Layer("o.gpkg").rows), 1)


def check_conditions_on_text():
    """All fields of a CSV are text unless the driver detects types."""
    lots_file()
    with open("p.csv", "w", encoding="utf-8") as file:
        file.write("id,x,y\n1,980100,200100\n2,980200,200200\n")
    words = ["-oo", "X_POSSIBLE_NAMES=x", "-oo", "Y_POSSIBLE_NAMES=y", "-s_srs", "EPSG:2263"]
    fails("o.gpkg", "p.csv", "lots.gpkg", *words, "-where", "id > 1",
          message=["input condition 'id > 1'", "; all fields are text here: -oo AUTODETECT_TYPE=YES"])
    join("o.gpkg", "p.csv", "lots.gpkg", *words, "-where", "id > 1", "-oo", "AUTODETECT_TYPE=YES")
    same(Layer("o.gpkg").column("id"), [2])
    same(run("-op", "nearest", "o2.gpkg", "lots.gpkg", "p.csv", "-join_where", "id > 1", "-joo",
             "X_POSSIBLE_NAMES=x", "-joo", "Y_POSSIBLE_NAMES=y").err.count("-joo AUTODETECT_TYPE"), 1)


if __name__ == "__main__":
    main(globals())
