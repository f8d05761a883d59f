#!/usr/bin/env python3
"""Measures the queries of Apache's SpatialBench except Q5 (hulls), by ogrjoin and other
packages.

  q1   trips that start near a place, with their distance
  q2   trips that start in a county                   (zones)
  q3   trips that start near a box, by months
  q4   zones of the 1,000 trips with the highest tips (zones)
  q6   zones that intersect a box, with means of their trips (zones)
  q7   length of each trip beside the distance of its ends
  q8   buildings near each trip's start
  q9   pairs of buildings that intersect, with their common area
  q10  all zones, with means of their trips           (zones)
  q11  trips that end in another zone                 (zones)
  q12  means of the distances to the 5 nearest buildings

    spatialbench_all.py [--turns N] [--trips N] [--answers DIR] [--queries Q,..]
                        [--threads N,..] FOLDER [PEER...]

FOLDER     the tables trip and building of scale 1, made by spatialbench-cli (PyPI)
           if they do not exist; without it the script is skipped, exit code 77.
           The published zones need files of Overture Maps; a table of 150,000 other
           zones is made here: 2,000 large ones and 148,000 small ones that cover all
           trips, with wavy borders of 32 to 64 vertices
--turns    runs of each, of which the fastest counts (default 3)
--trips    only the first N trips; answers are then not compared with the published ones
--answers  the published answers: answer_q8.csv, answer_q9.csv, answer_q12.csv
--queries  some of them: q1,q8 (default: all)
--threads  numbers of threads (default 1,2)
PEER       ogrjoin, sedonadb, duckdb, pycanopy (default: those that are installed;
           duckdb needs its extension spatial; pycanopy has q4, q8, q10, q11, q12)

Each query of ogrjoin is one or two calls of join() or pairs(); months and means of
rows are made by pyarrow.  Each run is a process of its own.  Prints processor
seconds from the tables in memory to all rows of the answer, the peak memory, and the
load of the machine.  All rows are compared, not the first 100: keys must be equal, and
values within 1e-9 relative (published ones 1e-6); otherwise the exit code is 1.
"""

import importlib
import json
import os
import sys

from spatialbench import (
    check_words,
    cpu,
    exit_code,
    figures_of,
    is_as_published,
    is_installed,
    make_parser,
    make_tables,
    megabytes,
    read_columns,
    run_script,
    runs,
)

QUERIES = ["q1", "q2", "q3", "q4", "q6", "q7", "q8", "q9", "q10", "q11", "q12"]
PEERS = ["ogrjoin", "sedonadb", "duckdb", "pycanopy"]
IMPORTS = {  # modules imported before a run is timed
    "ogrjoin": ["ogrjoin", "ogrjoin._join", "shapely", "pyarrow.compute"],
    "sedonadb": ["sedonadb"],
    "duckdb": ["duckdb"],
    "pycanopy": ["pycanopy", "polars", "pyarrow.compute"],
}
PYCANOPY_HAS = {"q4", "q8", "q10", "q11", "q12"}
PUBLISHED = {"q8": 1, "q9": 2, "q12": 1}  # number of keys of each published query
SHOWN = 100
PLACE = "POINT (-111.7610 34.8697)"
NEAR_BOX = (-111.9060, 34.7347, -111.6160, 35.0047)
ZONE_BOX = (-112.2110, 34.4197, -111.3110, 35.3197)
REACH = {"q1": 0.45, "q3": 0.045, "q8": 0.0045}
COUNTY = "Coconino County"
# columns of the tables that a query reads; t_ trip, b_ building, z_ zone
COLUMNS = {
    "q1": "t_tripkey t_pickuploc t_pickuptime",
    "q2": "t_pickuploc z_name z_boundary",
    "q3": "t_tripkey t_pickuploc t_pickuptime t_dropofftime t_distance t_fare",
    "q4": "t_tripkey t_pickuploc t_tip z_zonekey z_name z_boundary",
    "q6": "t_pickuploc t_distance t_pickuptime t_dropofftime z_zonekey z_name z_boundary",
    "q7": "t_tripkey t_distance t_pickuploc t_dropoffloc",
    "q8": "t_pickuploc b_buildingkey b_boundary",
    "q9": "b_buildingkey b_boundary",
    "q10": "t_pickuploc t_distance t_pickuptime t_dropofftime z_zonekey z_name z_boundary",
    "q11": "t_pickuploc t_dropoffloc z_zonekey z_boundary",
    "q12": "t_tripkey t_pickuploc b_boundary",
}
LONG = "CAST(t_dropofftime AS BIGINT) - CAST(t_pickuptime AS BIGINT)"
LONG_OF_DUCKDB = "epoch_ms(t_dropofftime) - epoch_ms(t_pickuptime)"


def polygon(box):
    a, b, c, d = box
    return f"POLYGON (({a} {b}, {c} {b}, {c} {d}, {a} {d}, {a} {b}))"


# The queries as published, without ORDER BY and LIMIT, and with durations in ms.
SQL = {
    "q1": f"""SELECT t_tripkey, ST_Distance(g, h) AS d FROM
        (SELECT t_tripkey, ST_GeomFromWKB(t_pickuploc) AS g,
        ST_GeomFromText('{PLACE}') AS h FROM trip)
        WHERE ST_DWithin(g, h, {REACH["q1"]})""",
    "q2": f"""SELECT 0 AS k, COUNT(*) AS n FROM trip WHERE ST_Intersects(
        ST_GeomFromWKB(t_pickuploc), (SELECT ST_GeomFromWKB(z_boundary) FROM zone
        WHERE z_name = '{COUNTY}' LIMIT 1))""",
    "q3": f"""SELECT CAST(DATE_TRUNC('month', t_pickuptime) AS DATE) AS m, COUNT(*) AS n,
        AVG(CAST(t_distance AS DOUBLE)) AS a, AVG(CAST({{long}} AS DOUBLE)) AS b,
        AVG(CAST(t_fare AS DOUBLE)) AS c FROM trip WHERE ST_DWithin(
        ST_GeomFromWKB(t_pickuploc), ST_GeomFromText('{polygon(NEAR_BOX)}'), {REACH["q3"]})
        GROUP BY m""",
    "q4": """SELECT z_zonekey, COUNT(*) AS n FROM zone JOIN (SELECT t_pickuploc FROM trip
        ORDER BY t_tip DESC, t_tripkey LIMIT 1000) t ON ST_Within(
        ST_GeomFromWKB(t.t_pickuploc), ST_GeomFromWKB(z_boundary))
        GROUP BY z_zonekey, z_name""",
    "q6": f"""SELECT z_zonekey, COUNT(*) AS n, AVG(CAST(t_distance AS DOUBLE)) AS a,
        AVG(CAST({{long}} AS DOUBLE)) AS b FROM trip JOIN (SELECT * FROM zone WHERE
        ST_Intersects(ST_GeomFromText('{polygon(ZONE_BOX)}'), ST_GeomFromWKB(z_boundary))) z
        ON ST_Within(ST_GeomFromWKB(t_pickuploc), ST_GeomFromWKB(z.z_boundary))
        GROUP BY z_zonekey, z_name""",
    "q7": """SELECT t_tripkey, CAST(t_distance AS DOUBLE) / NULLIF(ST_Distance(
        ST_GeomFromWKB(t_pickuploc), ST_GeomFromWKB(t_dropoffloc)) / 0.000009, 0) AS r
        FROM trip""",
    "q8": f"""SELECT b_buildingkey, COUNT(*) AS n FROM trip JOIN building ON ST_DWithin(
        ST_GeomFromWKB(t_pickuploc), ST_GeomFromWKB(b_boundary), {REACH["q8"]})
        GROUP BY b_buildingkey""",
    "q9": """SELECT i, j, a, b, o, CASE WHEN a + b - o = 0 THEN 1.0 ELSE o / (a + b - o)
        END AS iou FROM (SELECT b1.id AS i, b2.id AS j, ST_Area(b1.g) AS a,
        ST_Area(b2.g) AS b, ST_Area(ST_Intersection(b1.g, b2.g)) AS o FROM
        (SELECT b_buildingkey AS id, ST_GeomFromWKB(b_boundary) AS g FROM building) b1 JOIN
        (SELECT b_buildingkey AS id, ST_GeomFromWKB(b_boundary) AS g FROM building) b2
        ON b1.id < b2.id AND ST_Intersects(b1.g, b2.g))""",
    "q10": """SELECT z_zonekey, COUNT(t_pickuploc) AS n, AVG(CAST(t_distance AS DOUBLE)) AS a,
        AVG(CAST({long} AS DOUBLE)) AS b FROM zone LEFT JOIN trip ON ST_Within(
        ST_GeomFromWKB(t_pickuploc), ST_GeomFromWKB(z_boundary))
        GROUP BY z_zonekey, z_name""",
    "q11": """SELECT 0 AS k, COUNT(*) AS n FROM trip JOIN zone p ON ST_Within(
        ST_GeomFromWKB(t_pickuploc), ST_GeomFromWKB(p.z_boundary)) JOIN zone d ON ST_Within(
        ST_GeomFromWKB(t_dropoffloc), ST_GeomFromWKB(d.z_boundary))
        WHERE p.z_zonekey != d.z_zonekey""",
    "q12": """WITH t AS (SELECT t_tripkey, ST_GeomFromWKB(t_pickuploc) AS g FROM trip),
        b AS (SELECT ST_GeomFromWKB(b_boundary) AS h FROM building),
        knn AS (SELECT t.t_tripkey, ST_Distance(t.g, b.h) AS d
        FROM t JOIN b ON ST_KNN(t.g, b.h, 5, FALSE))
        SELECT t_tripkey, AVG(d) AS n FROM knn GROUP BY t_tripkey""",
}


# --- the table of zones ----------------------------------------------------------


def make_borders(n_columns, n_rows, n_between, box, random):
    """Returns the borders of a grid of cells as points, the horizontal borders before
    the vertical ones. Corners are moved by up to a seventh of a cell, points between
    them by less. Two neighbouring cells share their border, so zones have neither gaps
    nor overlaps."""
    import numpy as np

    step = np.array([(box[2] - box[0]) / n_columns, (box[3] - box[1]) / n_rows])
    shape = (n_rows + 1, n_columns + 1, 2)
    places = np.stack(np.meshgrid(np.arange(shape[1]), np.arange(shape[0])), axis=2)
    corner = places * step + box[:2] + random.uniform(-0.15, 0.15, shape) * step
    corner[[0, -1], :, 1] = np.array([[box[1]], [box[3]]])
    corner[:, [0, -1], 0] = np.array([box[0], box[2]])
    part = np.arange(n_between + 1)[:, None] / n_between

    def between(start, end):
        points = start[..., None, :] + part * (end - start)[..., None, :]
        waves = random.uniform(-0.02, 0.02, points.shape) * step
        waves[..., [0, -1], :] = 0
        return points + waves

    return between(corner[:, :-1], corner[:, 1:]), between(corner[:-1], corner[1:])


def zone_rings(n_columns, n_rows, n_between, box, random):
    """Returns the rings of all cells, (cells, vertices, 2): lower, right, upper and
    left border."""
    import numpy as np

    across, upwards = make_borders(n_columns, n_rows, n_between, box, random)
    low, high = across[:-1], across[1:, :, ::-1]
    left, right = upwards[:, :-1, ::-1], upwards[:, 1:]
    ring = [low[..., :-1, :], right[..., :-1, :], high[..., :-1, :], left]
    ring = np.concatenate(ring, axis=2)
    return ring.reshape(-1, ring.shape[2], 2)


def wkb_of_rings(rings):
    import numpy as np
    import pyarrow as pa

    n, n_vertices = rings.shape[:2]
    head = np.frombuffer(
        b"\x01\x03\x00\x00\x00\x01\x00\x00\x00" + n_vertices.to_bytes(4, "little"), np.uint8
    )
    bytes_each = len(head) + 16 * n_vertices
    out = np.empty((n, bytes_each), np.uint8)
    out[:, : len(head)] = head
    out[:, len(head) :] = np.ascontiguousarray(rings).view(np.uint8).reshape(n, -1)
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(bytes_each)
    return pa.Array.from_buffers(
        pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    )


def make_zones(path):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if os.path.exists(path):
        return
    box, random = (-180.0, -60.0, 180.0, 80.0), np.random.default_rng(5)
    levels = [zone_rings(*size, box, random) for size in ((50, 40, 16), (400, 370, 8))]
    shapes = pa.concat_arrays([wkb_of_rings(rings) for rings in levels])
    names = [f"zone {i}" for i in range(len(shapes))]
    middles = levels[0].mean(axis=1) - np.array([-111.7610, 34.8697])
    names[int(np.argmin((middles**2).sum(axis=1)))] = COUNTY
    keys = np.arange(1, len(shapes) + 1)
    table = pa.table({"z_zonekey": keys, "z_name": names, "z_boundary": shapes})
    pq.write_table(table, path)


# --- the queries by ogrjoin: tables to columns of keys and values ----------------


def durations(trip):
    """Returns the trips with one more column, their durations in ms."""
    import pyarrow.compute as pc

    times = [pc.cast(trip[name], "int64") for name in ("t_dropofftime", "t_pickuptime")]
    return trip.append_column("long", pc.subtract(*times))


def ogrjoin_q1(trip, building, zone, threads):
    import ogrjoin
    import shapely

    place = [shapely.from_wkt(PLACE)]
    found = ogrjoin.join(
        trip, place, "dwithin", max_distance=REACH["q1"], how="inner", threads=threads,
        left_column="t_pickuploc", left_select="t_tripkey,t_pickuptime",
    ).read_all()  # fmt: skip
    return [found["t_tripkey"], found["join_distance"]]


def ogrjoin_q2(trip, building, zone, threads):
    import ogrjoin
    import pyarrow.compute as pc

    county = zone.filter(pc.equal(zone["z_name"], COUNTY)).select(["z_boundary"])
    points = trip.select(["t_pickuploc"])
    return [[0], [len(ogrjoin.pairs(points, county, "intersects", threads=threads))]]


def ogrjoin_q3(trip, building, zone, threads):
    import ogrjoin
    import pyarrow as pa
    import pyarrow.compute as pc
    import shapely

    found = ogrjoin.join(
        trip, [shapely.from_wkt(polygon(NEAR_BOX))], "dwithin", max_distance=REACH["q3"],
        how="semi", threads=threads, left_column="t_pickuploc",
    ).read_all()  # fmt: skip
    found = durations(found)
    made = {"m": pc.cast(pc.floor_temporal(found["t_pickuptime"], unit="month"), "date32")}
    for name in ("t_distance", "long", "t_fare"):
        made[name] = pc.cast(found[name], "float64")
    means = [(name, "mean") for name in ("t_distance", "long", "t_fare")]
    found = pa.table(made).group_by("m").aggregate([("long", "count"), *means])
    names = ["m", "long_count", "t_distance_mean", "long_mean", "t_fare_mean"]
    return [found[name] for name in names]


def highest_tips(trip):
    """Returns the places of the 1,000 trips with the highest tips. Of equal tips, those
    with the lowest keys are taken."""
    import pyarrow.compute as pc

    order = [("t_tip", "descending"), ("t_tripkey", "ascending")]
    rows = pc.select_k_unstable(trip.select(["t_tip", "t_tripkey"]), 1000, order)
    return trip.select(["t_pickuploc"]).take(rows)


def ogrjoin_q4(trip, building, zone, threads):
    import ogrjoin

    found = ogrjoin.join(
        zone, highest_tips(trip), "contains", how="inner", agg="count as n",
        left_select="z_zonekey", left_column="z_boundary", threads=threads,
    ).read_all()  # fmt: skip
    return [found["z_zonekey"], found["n"]]


def ogrjoin_q6(trip, building, zone, threads):
    import ogrjoin
    import pyarrow as pa
    import pyarrow.compute as pc
    import shapely

    some = ogrjoin.join(
        zone, [shapely.from_wkt(polygon(ZONE_BOX))], how="semi", threads=threads,
        left_column="z_boundary",
    ).read_all()  # fmt: skip
    found = ogrjoin.join(
        trip, some, "within", how="inner", left_column="t_pickuploc", geometry="none",
        left_select="t_distance,t_pickuptime,t_dropofftime", right_column="z_boundary",
        right_select="z_zonekey", threads=threads,
    ).read_all()  # fmt: skip
    found = durations(found)
    made = {name: pc.cast(found[name], "float64") for name in ("t_distance", "long")}
    made = pa.table({"z_zonekey": found["z_zonekey"], **made}).group_by("z_zonekey")
    made = made.aggregate([("long", "count"), ("t_distance", "mean"), ("long", "mean")])
    return [made[name] for name in ("z_zonekey", "long_count", "t_distance_mean", "long_mean")]


def ogrjoin_q7(trip, building, zone, threads):
    import numpy as np
    import ogrjoin

    ends = trip.select(["t_tripkey", "t_dropoffloc"])
    found = ogrjoin.join(
        trip.select(["t_tripkey", "t_distance", "t_pickuploc"]), ends, "nearest",
        on="t_tripkey", left_column="t_pickuploc", right_column="t_dropoffloc",
        left_select="t_tripkey,t_distance", right_select="", geometry="none", threads=threads,
    ).read_all()  # fmt: skip
    reported = found["t_distance"].cast("float64").to_numpy()
    line = found["join_distance"].to_numpy() / 0.000009
    with np.errstate(divide="ignore"):
        return [found["t_tripkey"], np.where(line == 0, np.nan, reported / line)]


def ogrjoin_q8(trip, building, zone, threads):
    import numpy as np
    import ogrjoin

    counts = np.zeros(len(building), np.int64)
    index = ogrjoin.Index(building.select(["b_boundary"]), threads=threads)
    for pairs in index.pairs_batches(trip, "dwithin", max_distance=REACH["q8"]):
        counts += np.bincount(pairs.right32, minlength=len(building))
    kept = np.flatnonzero(counts)
    return [building["b_buildingkey"].to_numpy()[kept], counts[kept]]


def ogrjoin_q9(trip, building, zone, threads):
    import ogrjoin
    import pyarrow.compute as pc

    found = ogrjoin.join(
        building, building, "intersects", how="inner", exclude="self", fid="b_buildingkey",
        overlap="area,iou,input_area,join_area", left_select="b_buildingkey", threads=threads,
        right_select="", geometry="none", unordered_pairs=True,
    ).read_all()  # fmt: skip
    i, j = found["b_buildingkey"], found["join_fid"]
    names = ["input_area", "join_area", "overlap_area", "overlap_iou"]
    assert pc.all(pc.less(i, j)).as_py()
    return [i, j, *(found[name] for name in names)]


def ogrjoin_q10(trip, building, zone, threads):
    import ogrjoin

    found = ogrjoin.join(
        zone, durations(trip), "contains", how="left", threads=threads,
        agg="count as n, mean(t_distance) as a, mean(long) as b", left_select="z_zonekey",
        left_column="z_boundary", right_column="t_pickuploc",
    ).read_all()  # fmt: skip
    return [found[name] for name in ("z_zonekey", "n", "a", "b")]


def ogrjoin_q11(trip, building, zone, threads):
    import numpy as np
    import ogrjoin

    index = ogrjoin.Index(zone.select(["z_boundary"]), threads=threads)
    n_pairs = n_equal = 0
    starts = index.pairs_batches(trip.select(["t_pickuploc"]), "within")
    ends = index.pairs_batches(trip.select(["t_dropoffloc"]), "within")
    for start, end in zip(starts, ends):
        numbers = [np.bincount(p.left - p.first, minlength=p.n_left) for p in (start, end)]
        n_pairs += int(np.dot(*numbers))
        both = [p.left * len(zone) + p.right for p in (start, end)]
        n_equal += len(np.intersect1d(*both, assume_unique=True))
    return [[0], [n_pairs - n_equal]]


def ogrjoin_q12(trip, building, zone, threads):
    import ogrjoin

    found = ogrjoin.join(
        trip, building, "nearest", k=5, agg="mean(join_distance) as n", threads=threads,
        left_select="t_tripkey", left_column="t_pickuploc", right_column="b_boundary",
    ).read_all()  # fmt: skip
    return [found["t_tripkey"], found["n"]]


# --- by its peers ----------------------------------------------------------------


def by_sedonadb(query, trip, building, zone, threads):
    import sedonadb

    db = sedonadb.connect()
    db.sql(f"SET datafusion.execution.target_partitions = {threads}").execute()
    for name, table in {"trip": trip, "building": building, "zone": zone}.items():
        if table is not None:
            db.create_data_frame(table).to_view(name)
    found = db.sql(SQL[query].replace("{long}", LONG)).to_arrow_table()
    return list(found.columns)


def by_duckdb(query, trip, building, zone, threads):
    import duckdb

    db = duckdb.connect(config={"threads": threads})
    db.execute("LOAD spatial")
    if query == "q12":
        raise SystemExit("duckdb has no join of the k nearest")
    found = db.sql(SQL[query].replace("{long}", LONG_OF_DUCKDB)).to_arrow_table()
    return list(found.columns)


def by_pycanopy(query, trip, building, zone, threads):
    import polars as pl
    import pycanopy

    def frame(table, column):
        return pycanopy.SpatialFrame.from_wkb_polygons(pl.from_arrow(table), column).lazy()

    def points(table, column):
        x, y = pycanopy.wkb_points_to_xy(table[column])
        others = table.drop_columns([n for n in table.column_names if n.endswith("loc")])
        made = pl.DataFrame({"x": x, "y": y})
        return made.hstack(pl.from_arrow(others)) if others.num_columns else made

    if query == "q12":
        found = frame(building, "b_boundary").polygon_knn_join(
            points(trip, "t_pickuploc"), "x", "y", k=5
        )
        found = found.collect().group_by("t_tripkey").agg(pl.col("distance_to_polygon").mean())
    elif query == "q8":
        found = frame(building, "b_boundary").polygon_within_distance_join(
            points(trip, "t_pickuploc"), "x", "y", distance=REACH["q8"]
        )
        found = found.collect().group_by("b_buildingkey").len()
    elif query == "q4":
        top = points(highest_tips(trip), "t_pickuploc")
        found = frame(zone, "z_boundary").within_join(top, "x", "y").collect()
        found = found.group_by("z_zonekey").len()
    elif query == "q10":
        trip = durations(trip).drop_columns(["t_pickuptime", "t_dropofftime"])
        found = frame(zone, "z_boundary").within_join(points(trip, "t_pickuploc"), "x", "y")
        found = found.collect().group_by("z_zonekey").agg(
            pl.len().alias("n"), pl.col("t_distance").cast(pl.Float64).mean(),
            pl.col("long").mean(),
        )  # fmt: skip
        found = pl.from_arrow(zone.select(["z_zonekey"])).join(found, "z_zonekey", "left")
        found = found.with_columns(pl.col("n").fill_null(0))
    else:
        zones = frame(zone, "z_boundary")
        sides = []
        for column in ("t_pickuploc", "t_dropoffloc"):
            made = points(trip.select([column]), column).with_row_index("t")
            sides.append(zones.within_join(made, "x", "y").collect().select("t", "z_zonekey"))
        both = sides[0].join(sides[1], "t").filter(pl.col("z_zonekey") != pl.col("z_zonekey_right"))
        return [[0], [len(both)]]
    return [found[name].to_arrow() for name in found.columns]


# --- one run, in a process of its own --------------------------------------------


def read_tables(folder, query, n_trips):
    wanted = COLUMNS[query].split()
    names = ("trip", "building", "zone")
    columns = {name: [c for c in wanted if c.startswith(name[0] + "_")] for name in names}
    trip, *others = read_columns(folder, columns)
    return [trip.slice(0, n_trips) if trip else trip, *others]


def run_one(peer, query, folder, threads, n_trips, out):
    import numpy as np
    import pyarrow as pa

    for module in IMPORTS[peer]:
        importlib.import_module(module)
    tables = read_tables(folder, query, int(n_trips) if n_trips else None)
    pa.array([0]).to_numpy()  # the first call imports pandas, if it is installed
    start = cpu()
    if peer == "ogrjoin":
        columns = globals()[f"ogrjoin_{query}"](*tables, int(threads))
    else:
        columns = globals()[f"by_{peer}"](query, *tables, int(threads))
    seconds, peak = cpu() - start, megabytes("VmHWM")

    def plain(values):
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array):
            values = values.cast("int64") if pa.types.is_timestamp(values.type) else values
            if pa.types.is_date32(values.type):
                values = values.cast("int32")
            values = values.to_numpy(zero_copy_only=False)
        return np.asarray(values)

    columns = [plain(values) for values in columns]
    n_keys = PUBLISHED.get(query, 1)
    order = np.lexsort(columns[:n_keys][::-1])
    np.savez(out, *[values[order] for values in columns])
    print(json.dumps({"seconds": seconds, "peak": peak, "rows": len(order)}))


# --- all of them -----------------------------------------------------------------


def has_spatial_extension():
    return runs("import duckdb; duckdb.connect().execute('LOAD spatial')")


def measure(peer, query, args, threads, scratch):
    out = f"{scratch}/{peer}_{query}_{threads}.npz"
    words = [peer, query, args.folder, str(threads), str(args.trips or ""), out]
    done = run_script(__file__, words, threads)
    if done.returncode != 0:
        print(f"{peer} {query}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return figures_of(done)


def load_columns(path):
    import numpy as np

    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def difference(one, other, n_keys):
    """Describes how two answers differ. Returns "" if they do not."""
    import numpy as np

    if len(one) != len(other) or len(one[0]) != len(other[0]):
        return f"{len(other[0])} rows, not {len(one[0])}"
    for i, (a, b) in enumerate(zip(one, other)):
        if i < n_keys and not np.array_equal(a, b):
            return f"other keys in column {i}"
        a, b = a.astype(float), b.astype(float)
        # the area of a sliver is rounded in relation to the coordinates of the
        # buildings
        if not np.allclose(a, b, rtol=1e-9, atol=1e-12 if n_keys > 1 else 0, equal_nan=True):
            return f"other values in column {i}"
    return ""


def published_difference(columns, args, query):
    import numpy as np

    if args.answers is None or args.trips or query not in PUBLISHED:
        return ""
    n_keys, values = PUBLISHED[query], columns[-1]
    first = np.lexsort((*columns[:n_keys][::-1], -values))[:SHOWN]
    if n_keys == 1:
        rows = [(int(columns[0][i]), float(values[i])) for i in first]
        return "" if is_as_published(rows, args.answers, query) else "not as published"
    wanted = np.loadtxt(f"{args.answers}/answer_{query}.csv", delimiter=",", skiprows=1)
    made = np.column_stack([column[first].astype(float) for column in columns])
    made = made[: len(wanted)]
    return "" if np.allclose(made, wanted, rtol=1e-6, atol=1e-15) else "not as published"


def compare(args, peers, scratch):
    is_all_right = True
    print(f"{'':4} {'':9} threads {'seconds':>8} {'peak MB':>8} {'rows':>9}")
    for query in args.queries:
        truth = None
        for threads in args.threads:
            able = [p for p in peers if p != "pycanopy" or query in PYCANOPY_HAS]
            runs = {peer: [] for peer in able}
            for _ in range(args.turns):
                for peer in able:
                    runs[peer].append(measure(peer, query, args, threads, scratch))
            for peer, turns in runs.items():
                if None in turns:
                    print(f"{query:4} {peer:9} {threads:7} failed")
                    is_all_right &= peer != "ogrjoin"
                    continue
                columns = load_columns(f"{scratch}/{peer}_{query}_{threads}.npz")
                truth = truth or columns
                words = difference(truth, columns, PUBLISHED.get(query, 1))
                words = words or published_difference(columns, args, query)
                is_all_right &= not words
                seconds, peak = (min(t[name] for t in turns) for name in ("seconds", "peak"))
                load = os.getloadavg()[0]
                print(
                    f"{query:4} {peer:9} {threads:7} {seconds:8.2f} {peak:8.0f}"
                    f" {len(columns[0]):9} load {load:.1f} {words.upper()}",
                    flush=True,
                )
    return is_all_right


def main():
    if sys.argv[1:2] == ["--run"]:
        run_one(*sys.argv[2:])
        return 0
    parser = make_parser(__doc__)
    parser.add_argument("--trips", type=int)
    parser.add_argument("--queries", type=lambda words: words.split(","), default=QUERIES)
    parser.add_argument("--threads", type=lambda words: words.split(","), default=["1", "2"])
    args = parser.parse_args()
    check_words(parser, args.peers, PEERS)
    check_words(parser, args.queries, QUERIES)
    if not all(is_installed(name) for name in ("ogrjoin", "pyarrow", "shapely")):
        print("skipped: ogrjoin, pyarrow or shapely is not installed")
        return 77
    make_tables(args.folder, 1)
    make_zones(f"{args.folder}/zone.parquet")
    peers = args.peers or [p for p in PEERS if is_installed(p)]
    if "duckdb" in peers and not has_spatial_extension():
        print("duckdb is left out: its extension spatial is not installed")
        peers.remove("duckdb")
    return exit_code(compare, args, peers)


if __name__ == "__main__":
    sys.exit(main())
