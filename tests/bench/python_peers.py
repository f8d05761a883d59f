#!/usr/bin/env python3
"""The Python package beside GeoPandas, DuckDB and SedonaDB: one table, under four
minutes on a machine with nothing else to do.

    python_peers.py [--large] FOLDER [DUCKDB_PYTHON [LIBRARY]]

--large         frames and tables alone, of a city of 10,000,000 points and 735,488
                lots: those of the peers once, points in lots twice; a peer that
                exceeds 400 s or the memory is reported and left out. Some 12 minutes,
                10 GB of memory
FOLDER          a city of tests/bench/citygen.py: 1,000,000 points, 100,000 lots;
                made if it does not exist
DUCKDB_PYTHON   python of an environment with duckdb 1.5.5 and duckdb-extension-spatial,
                of which the binary alone is loaded, its signature checked
LIBRARY         libogrjoin.so of the same build, for the C call

Run with the environment that has ogrjoin, geopandas, pyarrow and sedonadb.
Seconds are processor seconds of one thread unless stated otherwise; compared calls
run in turn, and the minimum of each is taken.
"""

import ctypes
import glob
import json
import os
import resource
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LARGE = "--large" in sys.argv[1:2]
if LARGE:
    del sys.argv[1]
POINTS, LOTS = (10_000_000, 735_488) if LARGE else (1_000_000, 100_000)


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def timed(call):
    start = cpu()
    result = call()
    return cpu() - start, result


def row(words, ours, theirs=None, bar=None, more=""):
    text = f"{words:46} {ours:9.4f}"
    if theirs is not None:
        text += f" {theirs:9.4f}  {theirs / ours:6.2f} times"
        text += f" (bar {bar})" if bar else ""
    print(text + (f"  {more}" if more else ""), flush=True)


# --- the city ------------------------------------------------------------------


def make_city(folder):
    import geopandas as gpd
    import numpy as np
    import shapely

    if os.path.exists(f"{folder}/lots.parquet"):
        return
    words = [f"{HERE}/citygen.py", folder, str(POINTS), str(LOTS)]
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    def raw(name, dtype):
        return np.fromfile(f"{folder}/{name}", dtype=dtype)

    shapes = shapely.points(raw("points.x.f64", "<f8"), raw("points.y.f64", "<f8"))
    points = {"id": raw("points.id.i64", "<i8"), "fare": raw("points.fare.f64", "<f8")}
    gpd.GeoDataFrame(points, geometry=shapes, crs=2263).to_parquet(
        f"{folder}/points.parquet"
    )
    xy = np.column_stack([raw("lots.x.f64", "<f8"), raw("lots.y.f64", "<f8")])
    offsets = [raw(f"lots.{n}.i32", "<i4").astype("i8") for n in ("ring", "part", "feat")]
    kind = shapely.GeometryType.MULTIPOLYGON
    lots = shapely.from_ragged_array(kind, xy, tuple(offsets))
    single = shapely.get_num_geometries(lots) == 1
    lots[single] = shapely.get_geometry(lots[single], 0)
    gpd.GeoDataFrame(
        {"lot_id": raw("lots.id.i64", "<i8")}, geometry=lots, crs=2263
    ).to_parquet(f"{folder}/lots.parquet")


# --- bar 3: frames ---------------------------------------------------------------


def frames(folder):
    import geopandas as gpd

    import ogrjoin
    from ogrjoin import _sides

    p = gpd.read_parquet(f"{folder}/points.parquet")
    l = gpd.read_parquet(f"{folder}/lots.parquet")

    def fresh(frame):  # without the index that GeoPandas keeps
        other = frame.drop(columns="geometry")
        return gpd.GeoDataFrame(other, geometry=frame.geometry.values.copy(), crs=frame.crs)

    def turn(words, bar, times, ours, theirs, peer_times=None):
        if LARGE:
            times, peer_times = 2, 1
        best = [9e9, 9e9]
        for i in range(times):
            for who, call in enumerate((ours, theirs)):
                if who == 1 and i >= (peer_times or times):
                    continue
                a, b = fresh(p), fresh(l)
                seconds, frame = timed(lambda: call(a, b))
                best[who] = min(best[who], seconds)
                told = f"{len(frame)} rows"
                if "d" in frame:
                    told += f", sum of distances {frame.d.sum():.3f}"
        row(words, *best, bar, told)

    print(f"GeoPandas {gpd.__version__}, GeoDataFrames in and out: ours, theirs")
    turn(
        "sjoin inner", 5, 4, lambda a, b: ogrjoin.sjoin(a, b, threads=1), gpd.sjoin
    )
    turn(
        "sjoin left",
        4.5,
        4,
        lambda a, b: ogrjoin.sjoin(a, b, how="left", threads=1),
        lambda a, b: gpd.sjoin(a, b, how="left"),
    )
    near = {"max_distance": 100, "distance_col": "d"}
    turn(
        "sjoin_nearest, 100 ft, all ties",
        25,
        3,
        lambda a, b: ogrjoin.sjoin_nearest(a, b, threads=1, **near),
        lambda a, b: gpd.sjoin_nearest(a, b, **near),
        peer_times=1,
    )
    for words, side in (("points", p), ("lots", l)):
        seconds = [
            timed(lambda: _sides.make_layer(side, {"threads": 1}))[0]
            for _ in range(2 if LARGE else 5)
        ]
        row(f"  of which {words} to arrays", min(seconds))


# --- bar 4: Arrow tables ---------------------------------------------------------

DUCKDB = {
    "within": "SELECT count(*), sum(lot_id), NULL "
    "FROM p JOIN l ON ST_Intersects(p.geometry, l.geometry)",
    "nearest": """SELECT count(*), sum(n.lot_id), sum(n.d) FROM (
        SELECT p.id, min({'d': ST_Distance(p.geometry, l.geometry),
                          'lot_id': l.lot_id}) n
        FROM p JOIN l ON ST_DWithin(p.geometry, l.geometry, 100) GROUP BY p.id)""",
}
SEDONA = {
    "within": "SELECT count(*) n, sum(l.lot_id) s "
    "FROM p JOIN l ON ST_Intersects(p.geometry, l.geometry)",
    "nearest": """SELECT count(*) n, sum(lot_id) s, sum(d) t FROM (
        SELECT p.id, l.lot_id, ST_Distance(p.geometry, l.geometry) d
        FROM p JOIN l ON ST_KNN(p.geometry, l.geometry, 1, false)) q WHERE d <= 100""",
}


def peer_duckdb(folder, join):
    import duckdb

    place = f"{sys.prefix}/lib/python*/site-packages/duckdb_extension_spatial"
    extension = glob.glob(f"{place}/extensions/*/spatial.duckdb_extension")[0]
    con = duckdb.connect()
    con.execute(f"LOAD '{extension}'")
    con.execute("SET threads = 1")
    for name, columns in (("p", "id, fare"), ("l", "lot_id")):
        file = {"p": "points", "l": "lots"}[name]
        con.execute(
            f"CREATE TABLE {name} AS SELECT {columns}, geometry "
            f"FROM read_parquet('{folder}/{file}.parquet')"
        )
    return lambda: con.execute(DUCKDB[join]).fetchone()


def peer_sedonadb(folder, join):
    import sedonadb

    sd = sedonadb.connect()
    sd.sql("SET datafusion.execution.target_partitions = 1").execute()
    for name, file in (("p", "points"), ("l", "lots")):
        sd.read_parquet(f"{folder}/{file}.parquet").to_memtable().to_view(name)
    return lambda: [
        x[0] for x in sd.sql(SEDONA[join]).to_arrow_table().to_pydict().values()
    ]


def peer_ogrjoin(folder, join):
    import pyarrow.compute as pc
    import pyarrow.parquet

    import ogrjoin

    p = pyarrow.parquet.read_table(f"{folder}/points.parquet")
    l = pyarrow.parquet.read_table(f"{folder}/lots.parquet")
    named = {"within": ("intersects", {}), "nearest": ("nearest", {"max_distance": 100})}
    op, more = named[join]

    def run():
        rows = ogrjoin.join(p, l, op, how="inner", threads=1, **more).read_all()
        total = pc.sum(rows["lot_id"]).as_py()
        distance = pc.sum(rows["join_distance"]).as_py() if more else None
        return rows.num_rows, total, distance

    return run


def child(peer, folder, join, times):
    call = globals()[f"peer_{peer}"](folder, join)
    told = []
    for _ in range(int(times)):
        seconds, answer = timed(call)
        told.append(seconds)
    print(json.dumps([told, [float(a) if a is not None else None for a in answer]]))


def ask(python, peer, folder, join, times):
    most = None
    if LARGE:
        times, most = min(times, 2), 400
    words = [python, os.path.abspath(__file__), "--peer", peer, folder, join, str(times)]
    try:
        run = subprocess.run(words, capture_output=True, text=True, timeout=most)
    except subprocess.TimeoutExpired:
        print(f"  {join}, {peer}: not done after {most} s", flush=True)
        return None
    if run.returncode != 0:
        said = run.stderr.strip().splitlines() or [f"ended with {run.returncode}"]
        print(f"  {join}, {peer}: {said[-1]}", flush=True)
        return None
    return json.loads(run.stdout)


def tables(folder, duckdb_python):
    print("Arrow table of WKB to Arrow table; DuckDB and SedonaDB from their own")
    print("tables in memory to a count and sums: ours, theirs")
    for join, bars in (("within", (8, 8, 5)), ("nearest", (12, 40, None))):
        mine, theirs = [], {}
        for peer, python, times in (
            ("duckdb", duckdb_python, 4 if join == "within" else 1 if LARGE else 2),
            ("sedonadb", sys.executable, 4 if join == "within" else 1),
        ):
            mine.append(ask(sys.executable, "ogrjoin", folder, join, 5))
            if python:
                theirs[peer] = ask(python, peer, folder, join, times)
        warm = min(min(told[1:]) for told, _ in mine)
        first = min(told[0] for told, _ in mine)
        answer = mine[0][1]
        for (peer, told), bar in zip(theirs.items(), bars):
            if told is None:
                continue
            same = told[1][:2] == answer[:2]
            agree = "the same rows" if same else f"{told[1]} beside {answer}"
            row(f"{join}, {peer}, warm", warm, min(told[0]), bar, agree)
            row(f"{join}, {peer}, first call", first, told[0][0], bars[2])


# --- bar 5: ties ------------------------------------------------------------------


def ties(folder):
    import pyarrow.parquet

    import ogrjoin
    from ogrjoin import _core

    def geometry(name):
        table = pyarrow.parquet.read_table(f"{folder}/{name}.parquet", columns=["geometry"])
        return table

    index = ogrjoin.Index(geometry("lots"), threads=1)
    points = geometry("points")
    layer = _core.from_stream(points.__arrow_c_stream__(), None, {"threads": 1})
    made = [
        _core.index(
            index._layer, {"op": "nearest", "max_distance": 100, "ties": t, "threads": 1}
        )
        for t in ("first", "all")
    ]
    best = [9e9, 9e9]
    for _ in range(6):
        for i in range(2):
            best[i] = min(best[i], timed(lambda: _core.join(made[i], layer))[0])
    row("ties first / all, k = 1, cpu", best[0], best[1], "at most 1.25")


# --- bar 6: no copies, and building arrays -----------------------------------------


class Arrays(ctypes.Structure):
    """struct ogrjoin_arrays"""

    _fields_ = [("size", ctypes.c_size_t)]
    _fields_ += [(f"n{i}", ctypes.c_int64) for i in range(4)]
    _fields_ += [(f"p{i}", ctypes.c_void_p) for i in range(4)]
    _fields_ += [("x", ctypes.c_void_p), ("y", ctypes.c_void_p), ("id", ctypes.c_void_p)]


def c_call(library, x, y, lots):
    """Joins by the C functions alone, as pairs() does, with one call. Returns a
    function that joins once and returns (library, pairs); the caller frees the
    pairs."""
    c = ctypes.CDLL(library)
    pointer, err = ctypes.c_void_p, None
    c.ogrjoin_settings_new.restype = pointer
    settings = pointer(c.ogrjoin_settings_new())
    assert not c.ogrjoin_set_text(settings, b"op", b"within", err)
    assert not c.ogrjoin_set_number(settings, b"threads", ctypes.c_double(1), err)
    stream = lots.__arrow_c_stream__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = pointer, [ctypes.py_object, ctypes.c_char_p]
    layer, index = pointer(), pointer()
    at = pointer(get(stream, b"arrow_array_stream"))
    assert not c.ogrjoin_layer_from_stream(at, None, settings, ctypes.byref(layer), err)
    assert not c.ogrjoin_index_new(layer, settings, ctypes.byref(index), err)
    arrays = Arrays(size=ctypes.sizeof(Arrays), n0=len(x), n1=len(x), n2=len(x))
    arrays.n3, arrays.x, arrays.y = len(x), x.ctypes.data, y.ctypes.data

    def call():
        points, pairs = pointer(), pointer()
        assert not c.ogrjoin_layer_from_arrays(
            ctypes.byref(arrays), ctypes.byref(points), err
        )
        assert not c.ogrjoin_join(index, points, ctypes.byref(pairs), err)
        c.ogrjoin_layer_free(points)
        return c, pairs

    return call


def arrays(folder, library):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet

    import ogrjoin
    from ogrjoin import _core

    lots = pyarrow.parquet.read_table(f"{folder}/lots.parquet", columns=["geometry"])
    points = pyarrow.parquet.read_table(f"{folder}/points.parquet", columns=["geometry"])
    print("WKB to arrays: seconds")
    n_vertices = os.path.getsize(f"{folder}/lots.x.f64") // 8
    for words, table, n, bar in (
        ("points", points, POINTS, 25),
        ("vertices of lots", lots, n_vertices, 48),
    ):
        def read(threads):
            stream = table.__arrow_c_stream__()
            return _core.from_stream(stream, None, {"threads": threads})

        best = min(timed(lambda: read(1))[0] for _ in range(12))
        row(words, best, more=f"{n / best / 1e6:.0f} M a second (bar {bar})")
        # the table is ten times as long, because waking an idle processor
        # takes a millisecond
        table = pa.concat_tables([table] * 10).combine_chunks()
        wall = []
        for threads in (1, 2):
            taken = []
            for _ in range(12):
                start = time.perf_counter()
                read(threads)
                taken.append(time.perf_counter() - start)
            wall.append(min(taken))
        row(f"{words}, ten times, wall, two threads / one", wall[1], wall[0], 1.7)
    if not library:
        return
    x = np.fromfile(f"{folder}/points.x.f64")
    y = np.fromfile(f"{folder}/points.y.f64")
    column = pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"])
    marked = pa.field(
        "geometry", column.type, metadata={b"ARROW:extension:name": b"geoarrow.point"}
    )
    table = pa.table([column], schema=pa.schema([marked]))
    call = c_call(library, x, y, lots)
    index = ogrjoin.Index(lots, threads=1)
    best = [9e9, 9e9]
    for _ in range(15):
        seconds, (c, pairs) = timed(call)
        best[1] = min(best[1], seconds)
        c.ogrjoin_pairs_free(pairs)
        seconds, ours = timed(lambda: index.pairs(table, "within"))
        best[0] = min(best[0], seconds)
        del ours
    row("separated points, pairs() / the C call", *best, "at least 0.97")


# --- bar 7: threads and Ctrl-C -------------------------------------------------------

INTERRUPT = """
import numpy as np, ogrjoin, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # not what a shell's "&" left
xy = np.random.default_rng(1).random((10_000_000, 2))
index = ogrjoin.Index(xy[:100000], threads=1)
index.pairs(xy[:1], "nearest", k=50)
def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20
before, at = memory(), []
def interrupt():
    time.sleep(1)
    at.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    index.pairs(xy, "nearest", k=50)
    print("ended by itself")
except KeyboardInterrupt:
    took = time.perf_counter() - at[0]
del index  # which keeps the working memory of its joins
print(f"{took:.3f} s; MB before, after: {before}, {memory()}")
"""


def threads_of():
    import numpy as np

    import ogrjoin

    xy = np.random.default_rng(2).random((600_000, 2))
    index = ogrjoin.Index(xy[::6].copy(), threads=1)

    def join():
        index.pairs(xy, "nearest", k=8)

    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    def wall(n):
        workers = [threading.Thread(target=join) for _ in range(n)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - start

    join()
    one = min(wall(1) for _ in range(3))
    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    two = min(wall(2) for _ in range(3))
    done.set()
    counter.join()
    rate = counted[0] / (time.perf_counter() - start)
    row(
        "two threads with a join each, wall / join",
        two / 2,
        one,
        1.7,
        f"a third thread counts {rate:.0f} a second",
    )
    run = subprocess.run([sys.executable, "-c", INTERRUPT], capture_output=True, text=True)
    print(f"Ctrl-C in a join of 10 M points: {run.stdout.strip()} (bar 0.3)")


def main():
    if sys.argv[1] == "--peer":
        return child(*sys.argv[2:])
    folder = sys.argv[1]
    duckdb_python = sys.argv[2] if len(sys.argv) > 2 else None
    library = sys.argv[3] if len(sys.argv) > 3 else None
    start = time.time()
    make_city(folder)
    tables(folder, duckdb_python)
    if not LARGE:
        ties(folder)
        arrays(folder, library)
        threads_of()
    frames(folder)
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
