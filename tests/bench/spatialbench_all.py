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
                        [--threads N,..] [--peers PEER,..] [--limit S] [--once S]
                        [--out FILE] FOLDER

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
--peers    some of ogrjoin, sedonadb, duckdb, pycanopy (default: those that are
           installed; sedonadb needs geoarrow-pyarrow, duckdb its extension spatial,
           as installed by itself or by the package duckdb-extension-spatial)
--limit    seconds after which a run is ended and the peer is not asked again (600)
--once     a query is run once if its process takes more than these seconds (10)
--out      where the tables of Markdown are written.  Each run is also a line of
           FILE.jsonl: runs that are in it are not done again

Each query of ogrjoin is one or two calls of join() or pairs(); months and means of
rows are made by pyarrow.  Each run is a process of its own.  Measures seconds and
processor seconds from the tables in memory and an open database to all rows of the
answer, and the peak memory.  All rows are compared, not the first 100: keys must be
equal, and values within 1e-9 relative (those of q9 and published ones 1e-6); otherwise the exit code is 1.
"""

import glob
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time

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
PUBLISHED = {"q8": 1, "q9": 2, "q12": 1}  # number of keys of each published query
JOINS = {"q2", "q4", "q6", "q8", "q9", "q10", "q11", "q12"}
NAMES = {
    "ogrjoin": "ogrjoin",
    "sedonadb": "SedonaDB",
    "duckdb": "DuckDB",
    "pycanopy": "PyCanopy",
}
TITLES = {
    "q1": "trips that start near a place",
    "q2": "trips that start in a county",
    "q3": "trips near a box, by months",
    "q4": "zones of the 1,000 highest tips",
    "q6": "zones that meet a box, with means",
    "q7": "lengths beside the distance of the ends",
    "q8": "buildings near each start",
    "q9": "pairs of buildings with their overlap",
    "q10": "all zones with means",
    "q11": "trips that end in another zone",
    "q12": "means of the five nearest buildings",
}
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
    """Returns the places of the 1,000 trips with the highest tips; of equal tips those with the
    lowest keys. Only trips are sorted whose tips are at least the 1,000th of the first tenth."""
    import pyarrow.compute as pc

    first = trip.select(["t_tip"]).slice(0, max(1000, len(trip) // 10))
    rows = pc.select_k_unstable(first, 1000, [("t_tip", "descending")])
    some = trip.filter(pc.greater_equal(trip["t_tip"], pc.min(first["t_tip"].take(rows))))
    order = [("t_tip", "descending"), ("t_tripkey", "ascending")]
    rows = pc.select_k_unstable(some.select(["t_tip", "t_tripkey"]), 1000, order)
    return some.select(["t_pickuploc"]).take(rows)


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


def connect_sedonadb(threads):
    import sedonadb

    db = sedonadb.connect()
    db.sql(f"SET datafusion.execution.target_partitions = {threads}").execute()
    db.sql("SELECT ST_Area(ST_GeomFromText('POINT (0 0)'))").to_arrow_table()
    return db


def by_sedonadb(db, query, trip, building, zone):
    for name, table in {"trip": trip, "building": building, "zone": zone}.items():
        if table is not None:
            db.create_data_frame(table).to_view(name)
    found = db.sql(SQL[query].replace("{long}", LONG)).to_arrow_table()
    return list(found.columns)


def connect_duckdb(threads):
    """Returns a connection with the extension spatial: that of the package
    duckdb-extension-spatial, which has no network to ask, or the one that DuckDB has installed."""
    import duckdb

    db = duckdb.connect(config={"threads": threads})
    place = "duckdb_extension_spatial/extensions/*/spatial.duckdb_extension"
    files = [file for path in sys.path for file in glob.glob(f"{path}/{place}")]
    db.execute(f"LOAD '{files[0]}'" if files else "LOAD spatial")
    return db


def by_duckdb(db, query, trip, building, zone):
    if query == "q12":
        raise SystemExit("duckdb has no join of the k nearest")
    found = db.sql(SQL[query].replace("{long}", LONG_OF_DUCKDB)).to_arrow_table()
    return list(found.columns)


def points_of_pycanopy(table, column):
    """Returns a frame of points without an index, which a query of all of them does not need."""
    import polars as pl
    import pycanopy

    return pycanopy.SpatialFrame.from_wkb_points(
        pl.from_arrow(table), column, "x", "y", index_mode="none"
    )


def polygons_of_pycanopy(table, column):
    import polars as pl
    import pycanopy

    return pycanopy.SpatialFrame.from_wkb_polygons(pl.from_arrow(table), column)


def coordinates_of_pycanopy(table, column):
    """Returns the columns x and y beside those of the table that are no geometries."""
    import polars as pl
    import pycanopy

    x, y = pycanopy.wkb_points_to_xy(table[column])
    others = table.drop_columns([n for n in table.column_names if n.endswith("loc")])
    made = pl.DataFrame({"x": x, "y": y})
    return made.hstack(pl.from_arrow(others)) if others.num_columns else made


def means_of_pycanopy(zone, trip):
    """Returns number and means of the trips in each zone that has some."""
    from pycanopy import agg

    trip = durations(trip).drop_columns(["t_pickuptime", "t_dropofftime"])
    trip = trip.set_column(
        trip.column_names.index("t_distance"), "t_distance", trip["t_distance"].cast("float64")
    )
    points = coordinates_of_pycanopy(trip, "t_pickuploc")
    joined = polygons_of_pycanopy(zone, "z_boundary").lazy().within_join(points, "x", "y")
    return joined.group_by("z_zonekey").agg(
        n=agg.count(), a=agg.mean("t_distance"), b=agg.mean("long")
    )


def columns_of_polars(found, *names):
    return [found[name].to_arrow() for name in names or found.columns]


def pycanopy_q1(trip, building, zone):
    import numpy as np

    place = [float(word) for word in PLACE[7:-1].split()]
    found = points_of_pycanopy(trip, "t_pickuploc").radius_query(*place, REACH["q1"])
    x, y = (found[name].to_numpy() - at for name, at in zip("xy", place))
    return [found["t_tripkey"].to_arrow(), np.hypot(x, y)]


def pycanopy_q2(trip, building, zone):
    import pyarrow.compute as pc

    county = polygons_of_pycanopy(zone.filter(pc.equal(zone["z_name"], COUNTY)), "z_boundary")
    points = coordinates_of_pycanopy(trip.select(["t_pickuploc"]), "t_pickuploc")
    return [[0], [county.lazy().within_join(points, "x", "y").count()]]


def pycanopy_q3(trip, building, zone):
    import polars as pl
    import shapely

    box = shapely.from_wkt(polygon(NEAR_BOX))
    frame = points_of_pycanopy(trip, "t_pickuploc")
    found = frame.points_within_distance_of_polygon(box, REACH["q3"])
    found = found.select(
        pl.col("t_pickuptime").dt.truncate("1mo").cast(pl.Date).alias("m"),
        pl.col("t_distance").cast(pl.Float64),
        (pl.col("t_dropofftime").cast(pl.Int64) - pl.col("t_pickuptime").cast(pl.Int64)).alias("l"),
        pl.col("t_fare").cast(pl.Float64),
    )
    found = found.group_by("m").agg(pl.len().alias("n"), pl.col("t_distance", "l", "t_fare").mean())
    return columns_of_polars(found)


def pycanopy_q4(trip, building, zone):
    from pycanopy import agg

    top = coordinates_of_pycanopy(highest_tips(trip), "t_pickuploc")
    joined = polygons_of_pycanopy(zone, "z_boundary").lazy().within_join(top, "x", "y")
    return columns_of_polars(joined.group_by("z_zonekey").agg(n=agg.count()))


def pycanopy_q6(trip, building, zone):
    """It finds the zones whose boxes meet the box; shapely decides those few."""
    import polars as pl
    import shapely

    rows = pl.from_arrow(zone).with_row_index("row")
    frame = polygons_of_pycanopy(rows.to_arrow(), "z_boundary")
    some = zone.take(frame.range_filter(*ZONE_BOX).df["row"].to_arrow())
    shapes = shapely.from_wkb(some["z_boundary"].to_numpy())
    some = some.filter(shapely.intersects(shapes, shapely.from_wkt(polygon(ZONE_BOX))))
    return columns_of_polars(means_of_pycanopy(some, trip))


def pycanopy_q7(trip, building, zone):
    import numpy as np
    import pycanopy

    line = pycanopy.wkb_point_distance(trip["t_pickuploc"], trip["t_dropoffloc"]) / 0.000009
    reported = trip["t_distance"].cast("float64").to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        return [trip["t_tripkey"], np.where(line == 0, np.nan, reported / line)]


def pycanopy_q8(trip, building, zone):
    from pycanopy import agg

    points = coordinates_of_pycanopy(trip, "t_pickuploc")
    joined = polygons_of_pycanopy(building, "b_boundary").lazy()
    joined = joined.polygon_within_distance_join(points, "x", "y", distance=REACH["q8"])
    return columns_of_polars(joined.group_by("b_buildingkey").agg(n=agg.count()))


def pycanopy_q9(trip, building, zone):
    found = polygons_of_pycanopy(building, "b_boundary").intersects_pairs("b_buildingkey")
    return columns_of_polars(found)


def pycanopy_q10(trip, building, zone):
    import polars as pl

    found = means_of_pycanopy(zone, trip)
    found = pl.from_arrow(zone.select(["z_zonekey"])).join(found, "z_zonekey", "left")
    return columns_of_polars(found.with_columns(pl.col("n").fill_null(0)))


def pycanopy_q11(trip, building, zone):
    import polars as pl

    zones = polygons_of_pycanopy(zone, "z_boundary").lazy()
    sides = []
    for column in ("t_pickuploc", "t_dropoffloc"):
        points = coordinates_of_pycanopy(trip.select([column]), column).with_row_index("t")
        sides.append(zones.within_join(points, "x", "y").select("t", "z_zonekey").collect())
    both = sides[0].join(sides[1], "t").filter(pl.col("z_zonekey") != pl.col("z_zonekey_right"))
    return [[0], [len(both)]]


def pycanopy_q12(trip, building, zone):
    from pycanopy import agg

    points = coordinates_of_pycanopy(trip, "t_pickuploc")
    joined = polygons_of_pycanopy(building, "b_boundary").lazy()
    joined = joined.polygon_knn_join(points, "x", "y", k=5)
    return columns_of_polars(joined.group_by("t_tripkey").agg(n=agg.mean("distance_to_polygon")))


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
    connect = globals().get(f"connect_{peer}")
    db = connect(int(threads)) if connect else None
    pa.set_cpu_count(int(threads))
    start, start_of_wall = cpu(), time.perf_counter()
    if peer == "ogrjoin":
        columns = globals()[f"ogrjoin_{query}"](*tables, int(threads))
    elif db is not None:
        columns = globals()[f"by_{peer}"](db, query, *tables)
    else:
        columns = globals()[f"pycanopy_{query}"](*tables)
    wall, seconds, peak = time.perf_counter() - start_of_wall, cpu() - start, megabytes("VmHWM")

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
    figures = {"wall": wall, "cpu": seconds, "peak": peak, "rows": len(order), "process": cpu()}
    print(json.dumps(figures))


# --- all of them -----------------------------------------------------------------


def has_spatial_extension():
    return runs("import spatialbench_all; spatialbench_all.connect_duckdb(1)")


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
        # the rounding of a sliver's area is relative to the coordinates of the buildings:
        # PyCanopy's differ by 5e-8 from those of the others
        rtol, atol = (1e-6, 1e-12) if n_keys > 1 else (1e-9, 0)
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
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


class Results:
    """What has been measured: a dictionary a run, which are also the lines of a file beside the
    table, so that a stopped benchmark goes on where it was."""

    def __init__(self, path, trips):
        self.runs, self.path, self.trips = [], path, trips
        if path and os.path.exists(path):
            with open(path) as file:
                self.runs = [json.loads(line) for line in file]
        if any(run["trips"] != trips for run in self.runs):
            raise SystemExit(f"{path} is of another number of trips; delete it to start anew")

    def asked(self, args):
        """Returns the runs of those peers and queries that this call asks for."""
        return [r for r in self.runs if r["peer"] in args.peers and r["query"] in args.queries]

    def of(self, query, peer, threads):
        wanted = (query, peer, threads)
        return [r for r in self.runs if (r["query"], r["peer"], r["threads"]) == wanted]

    def add(self, **run):
        self.runs.append({**run, "trips": self.trips})
        if self.path:
            with open(self.path, "a") as file:
                print(json.dumps(self.runs[-1]), file=file)
        return run


def measure(peer, query, threads, args, answers):
    """Runs a query once and returns its figures, or why there are none; its columns are compared
    with those of the first run of the query, and with the published ones."""
    truth, out = f"{answers}/{query}.npz", f"{answers}/{query}_of_one.npz"
    load = round(os.getloadavg()[0], 1)
    words = [peer, query, args.folder, threads, str(args.trips or ""), out]
    try:
        done = run_script(__file__, words, threads, args.limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"> {args.limit} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["it was killed"])[-1]}
    columns, n_keys = load_columns(out), PUBLISHED.get(query, 1)
    os.replace(out, out if os.path.exists(truth) else truth)
    differs = difference(load_columns(truth), columns, n_keys)
    differs = differs or published_difference(columns, args, query)
    return {**figures_of(done), "differs": differs, "load": load}


def measure_all(args, results, answers):
    """Does the runs that results lack. A peer that reached the limit or failed is not asked again;
    a query of more than args.once seconds is run once."""
    for query in args.queries:
        for threads in args.threads:
            for turn in range(args.turns):
                for peer in args.peers:
                    before = results.of(query, peer, threads)
                    others = [run for t in args.threads for run in results.of(query, peer, t)]
                    if any("failed" in run for run in others) or len(before) > turn:
                        continue
                    if before and before[0]["process"] > args.once:
                        continue
                    run = measure(peer, query, threads, args, answers)
                    results.add(query=query, peer=peer, threads=threads, turn=turn, **run)
                    figures = "{wall:8.2f} {cpu:9.2f} {peak:7.0f} {rows:9} load {load} {differs}"
                    words = run["failed"] if "failed" in run else figures.format(**run)
                    print(f"{query:4} {peer:9} {threads:>7} {words}", flush=True)


def least(results, query, peer, threads, figure):
    runs_of = results.of(query, peer, threads)
    return min((run[figure] for run in runs_of if figure in run), default=None)


def table_of(args, results, figure):
    """Returns a table of Markdown: a row a query, a column a peer; the numbers of a cell are those
    of the numbers of threads, and the peak memory of the first. The least of a row is bold."""
    lines = ["| | rows |" + "".join(f" {NAMES[peer]} |" for peer in args.peers)]
    lines.append("|---" * (2 + len(args.peers)) + "|")
    for query in args.queries:
        best = [
            min((v for p in args.peers if (v := least(results, query, p, t, figure))), default=None)
            for t in args.threads
        ]
        cells = []
        for peer in args.peers:
            values = [least(results, query, peer, t, figure) for t in args.threads]
            peak = least(results, query, peer, args.threads[0], "peak")
            if peak is None:
                failed = [r["failed"] for t in args.threads for r in results.of(query, peer, t)]
                cells.append(failed[0] if failed and failed[0][0] == ">" else "")
                continue
            words = [
                "" if v is None else f"**{v:.2f}**" if v == b else f"{v:.2f}"
                for v, b in zip(values, best)
            ]
            cells.append(f"{', '.join(words)} ({peak:,.0f})")
        rows = least(results, query, args.peers[0], args.threads[0], "rows")
        lines.append(f"| {query.upper()}, {TITLES[query]} | {rows or 0:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def version_of(peer):
    if peer == "ogrjoin":
        import ogrjoin

        return ogrjoin.__version__
    return importlib.metadata.version(peer)


def report(args, results):
    """Returns the tables, the conditions in which they were measured, and what failed."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    loads = [run["load"] for run in results.asked(args) if "load" in run]
    threads = " and ".join(args.threads)
    trips = f"the first {args.trips:,} trips" if args.trips else "6,000,000 trips"
    peers = ", ".join(f"{NAMES[peer]} {version_of(peer)}" for peer in args.peers)
    parts = [
        f"SpatialBench, {trips}, 20,000 buildings, 150,000 zones; {peers}; Python"
        f" {platform.python_version()}; {len(models)} cores, {models[0] if models else ''};"
        f" load {min(loads, default=0)} to {max(loads, default=0)}.",
        f"Seconds from the tables in memory to all rows of the answer, the least of"
        f" {args.turns} runs (of one where a process takes more than {args.once} s), with"
        f" {threads} threads; in brackets the peak memory of the process with"
        f" {args.threads[0]}, in MB.",
        table_of(args, results, "wall"),
        "Processor seconds:",
        table_of(args, results, "cpu"),
    ]
    lines = []
    for run in results.asked(args):
        of = f"{NAMES[run['peer']]}, {run['query'].upper()}, {run['threads']} threads"
        if run.get("failed") or run.get("differs"):
            lines.append(f"- {of}: {run.get('failed') or 'ANSWER DIFFERS: ' + run['differs']}")
    for query in sorted(JOINS.intersection(args.queries), key=QUERIES.index):
        for threads in args.threads:
            for figure in ("wall", "cpu"):
                all_ = {p: least(results, query, p, threads, figure) for p in args.peers}
                all_ = {peer: value for peer, value in all_.items() if value is not None}
                first = min(all_, key=all_.get, default="ogrjoin")
                if first != "ogrjoin" and "ogrjoin" in args.peers:
                    words = f"{threads} threads, {figure}: {first} is first"
                    lines.append(f"- {query.upper()}, {words}")
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])]) + "\n"


def compare(args, scratch):
    """Measures, prints and writes; returns False if ogrjoin failed or an answer differs."""
    answers = f"{args.out}.answers" if args.out else scratch
    os.makedirs(answers, exist_ok=True)
    results = Results(f"{args.out}.jsonl" if args.out else None, args.trips)
    print(f"{'':4} {'':9} threads {'seconds':>8} {'processor':>9} {'peak MB':>7} {'rows':>9}")
    measure_all(args, results, answers)
    words = report(args, results)
    print(f"\n{words}")
    if args.out:
        with open(args.out, "w") as file:
            file.write(words)
    return not any(
        run.get("differs") or (run["peer"] == "ogrjoin" and "failed" in run)
        for run in results.asked(args)
    )


def main():
    if sys.argv[1:2] == ["--run"]:
        run_one(*sys.argv[2:])
        return 0
    words = lambda text: text.split(",")  # noqa: E731
    parser = make_parser(__doc__)
    parser.add_argument("--trips", type=int)
    parser.add_argument("--queries", type=words, default=QUERIES)
    parser.add_argument("--threads", type=words, default=["1", "2"])
    parser.add_argument("--peers", type=words)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--once", type=float, default=10)
    parser.add_argument("--out")
    args = parser.parse_args()
    check_words(parser, args.peers or [], PEERS)
    check_words(parser, args.queries, QUERIES)
    if not all(is_installed(name) for name in ("ogrjoin", "pyarrow", "shapely")):
        print("skipped: ogrjoin, pyarrow or shapely is not installed")
        return 77
    make_tables(args.folder, 1)
    make_zones(f"{args.folder}/zone.parquet")
    args.peers = args.peers or [p for p in PEERS if is_installed(p)]
    if "duckdb" in args.peers and not has_spatial_extension():
        print("duckdb is left out: its extension spatial is not installed")
        args.peers.remove("duckdb")
    return exit_code(compare, args)


if __name__ == "__main__":
    sys.exit(main())
