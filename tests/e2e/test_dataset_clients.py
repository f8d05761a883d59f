"""A join opened as a dataset by GDAL's clients: ogrinfo, SQL, VRT, ogr2ogr, threads of
Python. They get the rows that the command writes.  test_dataset_conformance checks
filters, single rows, ignored fields, Arrow, and threads with their own handles."""

import threading

from dataset import *

sides = inputs_and_zones


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
    # a specification in a file; and a name of a dataset that is missing
    spec_file("s.ogrjoin", *words)
    same(client("ogrinfo", "-q", "-al", "s.ogrjoin").out,
         client("ogrinfo", "-q", "-al", name_of(*words)).out)
    r = client("ogrinfo", name_of("nofile.gpkg", "zones.gpkg"), rc=1)
    true("nofile.gpkg" in r.err + r.out, str(r))


def check_sql():
    pair = sides()
    words = ("-op", "nearest", "-k", 2, *pair)
    expected = Layer(name_of(*words))
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
        layer = dataset.ExecuteSQL("SELECT * FROM points LIMIT 5 OFFSET 7", dialect=dialect)
        same([f["join_fid"] for f in layer], expected.column("join_fid")[7:12], dialect)
        dataset.ReleaseResultSet(layer)
    layer = dataset.ExecuteSQL(
        f"SELECT ST_Buffer({shape}, 1) AS b FROM points WHERE join_distance < 5", dialect="SQLITE")
    n = sum(1 for f in layer if f.GetGeometryRef().GetArea() > 3)
    dataset.ReleaseResultSet(layer)
    same(n, sum(d is not None and d < 5 for d in expected.column("join_distance")))
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


# --- Python: many at once --------------------------------------------------------


def n_of(folder):
    if not os.path.exists("/proc/self"):
        raise Skip("no /proc")
    return len(os.listdir(f"/proc/self/{folder}"))


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


def check_a_handle_given_to_another_thread():
    """Opens a dataset in this thread. Another thread reads and closes it. Only one
    thread uses it at a time."""
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
