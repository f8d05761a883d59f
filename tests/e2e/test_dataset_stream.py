"""A join as a dataset is lazy.  Opening reads no rows, the first rows are returned
before the input ends, filters are passed to the input, and memory stays constant.  Join
layers that are cached between two openings never give an outdated answer, or that of
another join."""

import resource

from dataset import *

# SQL for an endless number of rows, made from the few rows of a GeoPackage.
ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT {0}.geom, {0}.name, c.x FROM c CROSS JOIN {0}"
)
BEGIN = """
def size():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * 4096
def read_so_far():
    with open('/proc/self/io') as f:
        return int(f.read().split()[1])
"""


def alone(code, env=None):
    """Runs the script in a Python process of its own. Returns the words that it
    prints."""
    if not os.path.exists("/proc/self/io"):
        raise Skip("no /proc")
    return in_python(BEGIN + code, env).out.split()


def without_sanitizer():
    if "san" in os.environ.get("LD_PRELOAD", ""):
        raise Skip("a sanitizer needs memory of its own")


sides = layers


def endless(*words):
    return name_of("-sql", ENDLESS.format("points"), "-batch", 1000, *words, *sides())


# --- lazy ------------------------------------------------------------------------


def check_first_rows_of_an_input_without_end():
    for words in (("-op", "nearest"), ("-op", "nearest", "-k", 2), ("-op", "dwithin", "-max_distance", 50),
                  ("-op", "intersects"), ("-op", "intersects", "-how", "inner"), ("-op", "nearest", "-pick", "first"),
                  ("-op", "nearest", "-how", "full"), ("-op", "intersects", "-how", "right")):
        name = endless(*words)
        dataset = gdal.OpenEx(name, gdal.OF_VECTOR)
        layer = dataset.GetLayer(0)
        rows = [layer.GetNextFeature() for _ in range(5000)]
        true(all(r is not None for r in rows), f"rows: {words}")
        layer.ResetReading()
        same(layer.GetNextFeature()["name"], rows[0]["name"])
        layer = dataset = None


def check_first_rows_as_arrow():
    dataset = gdal.OpenEx(endless("-op", "nearest"), gdal.OF_VECTOR)
    layer = dataset.GetLayer(0)
    if not hasattr(layer, "GetArrowStreamAsNumPy"):
        raise Skip("GDAL before 3.6")
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise Skip("no numpy") from None
    n = 0
    for batch in layer.GetArrowStreamAsNumPy(["MAX_FEATURES_IN_BATCH=1000"]):
        n += len(batch["name"])
        if n >= 5000:
            break
    batch = layer = dataset = None


def check_arrow_streams_released_in_any_order():
    """Arrow streams are released after their layer and dataset, or when the program
    ends. Freed memory is overwritten, so that a use of it would be noticed."""
    if not hasattr(ogr.Layer, "GetArrowStream"):
        raise Skip("GDAL before 3.6")
    name = name_of("-op", "nearest", "-k", 2, "-batch", 10, *sides())
    code = """
import gc
ogr.DontUseExceptions(); gdal.DontUseExceptions()
errors = []
gdal.PushErrorHandler(lambda kind, n, text: errors.append(text))
def opened(n):
    d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
    l = d.GetLayer(0)
    s = l.GetArrowStream(["MAX_FEATURES_IN_BATCH=10"])
    batches = [s.GetNextRecordBatch() for _ in range(n)]
    assert all(b is not None for b in batches)
    return d, l, s, batches
for order in ("dls", "dsl", "lds", "lsd", "sdl", "sld"):
    for n in (0, 1, 3):
        d, l, s, batches = opened(n)
        held = dict(d=d, l=l, s=s)
        d = l = s = None
        for name in order:
            held.pop(name)
            gc.collect()
        batches = None
        gc.collect()
assert errors == [], errors
d, l, s, batches = opened(1)
assert l.GetNextFeature() is None
assert "stream of layer 'points' is open" in errors.pop(), errors
d = l = None
gc.collect()
assert s.GetNextRecordBatch() is None
assert "was closed" in errors.pop(), errors
s = None
gc.collect()
a, b = opened(0), opened(2)
a[0].cycle, b[0].cycle = b, a
print("collected", len(errors))
"""
    same(alone(code.format(name=name), env={"MALLOC_PERTURB_": "165"}), ["collected", "0"])


def check_opening_reads_no_rows():
    """Both sides are endless, so opening would not return if it read a side."""
    pair = sides()
    words = ("-sql", ENDLESS.format("points"), "-join_sql", ENDLESS.format("lots").replace("name", "use"))
    for more in (("-op", "nearest"), ("-op", "intersects"), ("-op", "nearest", "-geometry", "connection")):
        dataset = opened(*more, *words, *pair)
        layer = dataset.GetLayer(0)
        true(layer.GetLayerDefn().GetFieldIndex("use") >= 0, "columns are known")
        true(layer.GetSpatialRef() is not None, "the CRS is known")
        layer.SetAttributeFilter("x > 3")
        layer.SetSpatialFilterRect(0, 0, 1, 1)
        layer.SetIgnoredFields(["x"])
        layer.TestCapability("FastFeatureCount")
        layer.ResetReading()
        same(layer.GetFeatureCount(0), -1, "not known without reading")
        layer = dataset = None


def check_memory_stays_flat():
    without_sanitizer()
    code = f"""
dataset = gdal.OpenEx({endless('-op', 'nearest', '-k', 2)!r}, gdal.OF_VECTOR)
layer = dataset.GetLayer(0)
for i in range(20000):
    layer.GetNextFeature()
before = size()
for i in range(200000):
    layer.GetNextFeature()
print((size() - before) // 1000)
"""
    grown = int(alone(code)[0])
    true(grown < 40000, f"{grown} kB more after 200,000 rows")


def check_closing_ends_the_join():
    """Closing returns soon, even though the input is endless, and leaves no thread
    behind."""
    name = endless("-op", "nearest")
    code = f"""
def tasks():
    return len(os.listdir('/proc/self/task'))
before = tasks()
worst = 0
for n in (1, 500, 1500, 5000):
    d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
    l = d.GetLayer(0)
    for i in range(n):
        l.GetNextFeature()
    begin = time.process_time()
    l = d = None
    worst = max(worst, time.process_time() - begin)
print(worst < 30, tasks() - before)
"""
    same(alone(code), ["True", "0"])


def check_a_program_that_ends_without_closing():
    """A program that ends without closing the dataset keeps its own exit code, and does
    not hang."""
    name = endless("-op", "nearest")
    code = f"""
d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
l = d.GetLayer(0)
for i in range(1500):
    l.GetNextFeature()
print('read', flush=True)
"""
    same(alone(code), ["read"])
    same(alone(code + "sys.exit(0)\n"), ["read"])
    same(alone(code + "os._exit(0)\n"), ["read"])


def check_killed():
    """A killed program leaves no files behind."""
    import signal

    name = endless("-op", "nearest")
    before = listing()
    code = f"""
from osgeo import gdal
d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
l = d.GetLayer(0)
l.GetNextFeature()
print('go', flush=True)
while l.GetNextFeature() is not None:
    pass
"""
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        same(process.stdout.readline(), b"go\n")
        process.send_signal(number)
        process.communicate(timeout=HANG_S)
        true(process.returncode != 0, f"ends by signal {number}")
    after = {k: v for k, v in listing().items() if not k.endswith(("-wal", "-shm"))}
    same(after, before, "left behind")


# --- filters passed to the input -------------------------------------------------------


def many_points(path="many.gpkg", n=60000):
    make(path, [(p, {"name": f"p{i}"}) for i, p in enumerate(random_points(n))], kind=ogr.wkbPoint)
    return path


READING = """
d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
l = d.GetLayer(0)
{filter}
before = read_so_far()
n = 0
for f in l:
    n += 1
print(n, read_so_far() - before)
"""


def check_spatial_filter_goes_down():
    """With a spatial filter, only the part of the file around the box is read."""
    many_points()
    lots_file()
    for words in (("-op", "nearest"), ("-op", "intersects", "-pick", "first"), ("-op", "within", "-how", "semi"),
                  ("-op", "intersects"), ("-op", "nearest", "-k", 2), ("-op", "within", "-how", "inner"),
                  ("-op", "nearest", "-max_distance", 5, "-how", "anti"), ("-agg", "count")):
        name = name_of(*words, "many.gpkg", "lots.gpkg")
        n_all, all_bytes = map(int, alone(READING.format(name=name, filter="")))
        box = "l.SetSpatialFilterRect(980500, 200500, 980530, 200530)"
        n, some = map(int, alone(READING.format(name=name, filter=box)))
        true(n < n_all / 50, f"{words}: {n} rows of {n_all}")
        true(some < all_bytes / 4, f"{words}: reads {some} bytes for {n} rows, {all_bytes} for all")


def check_single_rows_are_not_searched():
    """GetFeature() of a row in a large layer does not read the whole layer."""
    many_points()
    lots_file()
    code = """
d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
l = d.GetLayer(0)
{filter}
before = read_so_far()
for fid in (50000, 3, 20000):
    assert l.GetFeature(fid).GetFID() == fid
print(0, read_so_far() - before)
"""
    name = name_of("-op", "nearest", "many.gpkg", "lots.gpkg")
    _, all_bytes = map(int, alone(READING.format(name=name, filter="")))
    _, some = map(int, alone(code.format(name=name, filter="")))
    true(some < all_bytes / 4, f"reads {some} bytes for three rows, {all_bytes} for all")


def check_count_is_fast():
    many_points()
    lots_file()
    name = name_of("-op", "nearest", "many.gpkg", "lots.gpkg")
    _, all_bytes = map(int, alone(READING.format(name=name, filter="")))
    code = f"""
d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
before = read_so_far()
print(d.GetLayer(0).GetFeatureCount(), read_so_far() - before)
"""
    n, some = map(int, alone(code))
    same(n, 60000)
    true(some < all_bytes / 4, f"reads {some} bytes to count, {all_bytes} for all rows")


# --- the cache between opens -------------------------------------------------------------


def check_kept_between_opens():
    points_file(n=5)
    many_points("lots.gpkg", 30000)
    code = f"""
before = read_so_far()
for i in range(4):
    d = gdal.OpenEx({name_of('-op', 'nearest', 'points.gpkg', 'lots.gpkg')!r}, gdal.OF_VECTOR)
    n = len([f for f in d.GetLayer(0)])
    d = None
    print(read_so_far() - before)
    before = read_so_far()
"""
    first, *later = map(int, alone(code))
    true(max(later) < first / 3, f"reads {first} bytes, then {later}")
    first, *later = map(int, alone(code, env={"OGRJOIN_CACHE_MAX": "0"}))
    true(min(later) > first / 3, f"without a cache reads {first} bytes, then {later}")
    for limit in ("1", "1000", "nonsense", "-5", "", "99999999999999999999"):
        alone(code, env={"OGRJOIN_CACHE_MAX": limit})


def check_kept_joins_are_not_mixed_up():
    """One process opens joins that differ in one word each, in any order. No cached join is
    used for another join."""
    inputs_file()
    far_zones_file()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("z4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="zones")
    gdal.VectorTranslate("two.gpkg", dataset, layerName="a")
    dataset = None
    half = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR).ExecuteSQL("SELECT * FROM zones WHERE fid > 15")
    two = gdal.OpenEx("two.gpkg", gdal.OF_VECTOR | gdal.OF_UPDATE)
    two.CopyLayer(half, "b")
    two = half = None
    near = ("-op", "nearest")
    zones = ("points.gpkg", "zones.gpkg")
    names = [name_of(*words) for words in (
        (*near, *zones), (*near, "-k", 2, *zones), (*near, "-max_distance", 20, *zones),
        (*near, "-distance_to", "boundary", *zones), (*near, "-join_where", "v > 2", *zones),
        (*near, "-join_where", "v > 3", *zones), (*near, "-join_select", "v", *zones),
        (*near, "-join_select", "v,name", *zones), (*near, "-prefix", "q_", *zones),
        (*near, "-centroid_of", "join", *zones), (*near, "-point_on_surface_of", "join", *zones),
        (*near, "-centroid_of", "both", *zones), (*near, "-invalid", "skip", *zones),
        (*near, "-invalid", "fix", *zones), (*near, "-backend", "geos", *zones),
        (*near, "-backend", "quadrant", *zones), (*near, "-t_srs", "EPSG:32618", *zones),
        (*near, "-t_srs", "EPSG:32617", *zones), (*near, "-s_srs", "EPSG:32118", "-crs", "ignore", *zones),
        (*near, "points.gpkg", "z4326.gpkg"), (*near, "-crs", "ignore", "points.gpkg", "z4326.gpkg"),
        (*near, "-join_srs", "EPSG:2263", "points.gpkg", "z4326.gpkg"),
        (*near, "-join_layer", "a", "points.gpkg", "two.gpkg"),
        (*near, "-join_layer", "b", "points.gpkg", "two.gpkg"),
        (*near, "-join_sql", "SELECT geom, name, v FROM zones WHERE v < 3", *zones),
        (*near, "-join_sql", "SELECT geom, name, v FROM zones WHERE v > 3", *zones),
        (*near, "-join_sql", "SELECT name, v FROM zones WHERE v > 3", "-join_dialect", "OGRSQL", *zones),
        (*near, "-on", "id=v", *zones), (*near, "-exclude", "field=id=v", *zones),
        (*near, "-geometry", "join", *zones), (*near, "-metric", "sphere", "-t_srs", "EPSG:4326", *zones),
        ("-op", "intersects", *zones), ("-op", "within", *zones), ("-op", "dwithin", "-max_distance", 30, *zones),
        ("-op", "dwithin", "-join_max_distance_field", "v", *zones), ("-op", "intersects", "-pick", "max:v", *zones),
        ("-agg", "count, sum(v)", *zones), ("-agg", "weighted_sum(v)", *zones), ("-op", "disjoint", *zones),
        ("-op", "intersects", "-how", "right", *zones), (*near, "-ties", "all", *zones),
        ("-op", "intersects", "zones.gpkg", "zones.gpkg"),
    )]
    os.environ["OGRJOIN_CACHE_MAX"] = "0"
    gdal.SetConfigOption("OGRJOIN_CACHE_MAX", "0")
    expected = {name: Layer(name).rows for name in names}
    gdal.SetConfigOption("OGRJOIN_CACHE_MAX", None)
    del os.environ["OGRJOIN_CACHE_MAX"]
    r = random.Random(4)
    for limit in (None, "20000"):
        gdal.SetConfigOption("OGRJOIN_CACHE_MAX", limit)
        for _ in range(3):
            r.shuffle(names)
            for name in names:
                same(Layer(name).rows, expected[name], f"{name}, cache {limit}")
    gdal.SetConfigOption("OGRJOIN_CACHE_MAX", None)


def check_files_that_change():
    """A file changes between two openings. The second answer is that of the new
    file."""
    pair = sides()
    for end in ("gpkg", "geojson", "shp", "csv", "fgb"):
        lots = f"changing.{end}"
        options = ["-lco", "GEOMETRY=AS_WKT", "-a_srs", "EPSG:2263"] if end == "csv" else []
        for i in range(4):
            rows = [(p, {"use": f"new{i}"}) for p in random_points(10, seed=i)]
            if os.path.exists(lots):
                os.remove(lots)
            make("step.gpkg", rows, (("use", ogr.OFTString),), kind=ogr.wkbPoint)
            client("ogr2ogr", "-overwrite", lots, "step.gpkg", "-nln", "changing", *options)
            os.remove("step.gpkg")
            for words in (("-op", "nearest"), ("-agg", "count"), ("-op", "dwithin", "-max_distance", "100")):
                got = Layer(name_of(*words, pair[0], lots))
                out = f"o{i}.gpkg"
                go("-overwrite", *words, out, pair[0], lots)
                same([v for _, _, v in got.rows], [v for _, _, v in Layer(out).rows], f"{lots} {i} {words}")
                os.remove(out)
            # modification times have a grain of some milliseconds
            time.sleep(0.02)
    # A file that changes in place: a database with a journal beside it.
    name = name_of("-op", "nearest", pair[0], pair[1])
    Layer(name)
    for mode in ("DELETE", "WAL"):
        dataset = gdal.OpenEx(pair[1], gdal.OF_VECTOR | gdal.OF_UPDATE)
        dataset.ExecuteSQL(f"PRAGMA journal_mode = {mode}")
        dataset.ExecuteSQL(f"UPDATE lots SET use = 'changed by {mode}'")
        if mode == "DELETE":
            dataset = None
        same(set(Layer(name).column("use")), {f"changed by {mode}"}, mode)
        dataset = None
    # A change of the input layer.
    dataset = gdal.OpenEx(pair[0], gdal.OF_VECTOR | gdal.OF_UPDATE)
    dataset.ExecuteSQL("DELETE FROM points WHERE fid > 10")
    dataset = None
    same(len(Layer(name).rows), 10)


def check_a_join_side_that_is_a_join():
    """The join side is itself a join. If a file of the inner join changes, the answer
    changes, whether the side was cached or not."""
    pair = sides()
    inner = name_of("-op", "nearest", *pair)
    spec_file("inner.ogrjoin", "-op", "nearest", *pair)
    points_file("others.gpkg", n=20)
    for i in range(3):
        dataset = gdal.OpenEx(pair[1], gdal.OF_VECTOR | gdal.OF_UPDATE)
        dataset.ExecuteSQL(f"UPDATE lots SET use = 'changed {i}'")
        dataset = None
        for name in (inner, "inner.ogrjoin"):
            got = Layer(name_of("-op", "nearest", "-prefix", "o_", "others.gpkg", name))
            same(set(got.column("use")), {f"changed {i}"}, name)


# --- file handles ------------------------------------------------------------------------


def check_out_of_file_handles():
    """Without free file handles opening fails with an error. With free handles it works
    again."""
    pair = sides()
    name = name_of("-op", "nearest", *pair)
    expected = len(Layer(name).rows)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]) if len(sys.argv) > 1 else 40, {hard}))
ogr.DontUseExceptions(); gdal.DontUseExceptions()
errors = []
gdal.PushErrorHandler(lambda kind, n, text: errors.append(kind))
held, counts, n_refused = [], [], 0
for i in range(60):
    errors.clear()
    d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
    if d is None:
        assert errors
        n_refused += 1
        continue
    l = d.GetLayer(0)
    n = 0
    while l.GetNextFeature() is not None:
        n += 1
    assert n == {expected} or errors, n
    held.append((d, l))
print('open', len(held) > 0, n_refused > 0)
l = None
held = []
d = gdal.OpenEx({name!r}, gdal.OF_VECTOR)
print(len([f for f in d.GetLayer(0)]))
"""
    same(alone(code), ["open", "True", "True", str(expected)])


if __name__ == "__main__":
    main(globals())
