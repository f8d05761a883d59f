#!/usr/bin/env python3
"""Compares joins of a city in tiles with one call of join(): prints the copies per join
row, and checks that the rows are equal, bit for bit and in their order.

    scale_tiles.py FOLDER [TILES]

FOLDER   a city of tests/bench/citygen.py as GeoParquet: points, lots, zones
TILES    number of tiles of the input (32)
"""

import os
import sys
import time

import pyarrow as pa
import shapely

import ogrjoin

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from test_scale_tiles import join_in_tiles, same

BARS = {"points in lots": 1.05, "nearest, 100 ft": 1.15, "nearest": 1.8, "zones x lots": 1.8}


def main():
    folder, n_tiles = sys.argv[1], int((sys.argv[2:] or ["32"])[0])
    points, lots, zones = (
        ogrjoin.scan(f"{folder}/{name}.parquet").reader().read_all()
        for name in ("points", "lots", "zones")
    )
    x0, y0, x1, y1 = shapely.total_bounds(
        shapely.from_wkb(lots.column("geometry").to_numpy())
    )
    all_of_it = pa.array([shapely.to_wkb(shapely.box(x0, y0, x1, y1))], pa.binary())
    row = zones.slice(0, 1)
    i = row.schema.get_field_index("geometry")
    with_one = pa.concat_tables([zones, row.set_column(i, zones.schema.field(i), all_of_it)])
    joins = (
        ("points in lots", points, lots, {"op": "intersects", "how": "inner"}),
        ("nearest, 100 ft", points, lots, {"op": "nearest", "max_distance": 100}),
        ("the same, all ties", points, lots, {"op": "nearest", "max_distance": 100, "ties": "all"}),
        ("the same, k 3", points, lots, {"op": "nearest", "max_distance": 100, "k": 3}),
        ("nearest", points, lots, {"op": "nearest"}),
        ("nearest, k 3, all ties", points, lots, {"op": "nearest", "k": 3, "ties": "all"}),
        ("zones, nearest lot", zones, lots, {"op": "nearest", "ties": "all"}),
        ("lots x zones", lots, zones, {"op": "intersects", "how": "inner"}),
        ("zones x lots", zones, lots, {"op": "intersects", "how": "inner"}),
        ("zones x lots, right", zones, lots, {"op": "intersects", "how": "right"}),
        ("one over all, zones x lots", with_one, lots, {"op": "intersects"}),
        ("lots x one over all, zones", lots, with_one, {"op": "intersects", "how": "inner"}),
        ("lots touch lots", lots, lots, {"op": "touches", "exclude": "self", "how": "anti"}),
        ("sums of zones", zones, points, {"op": "contains", "agg": "count, sum(fare), mean(fare)"}),
        ("largest overlap", lots, zones, {"op": "intersects", "pick": "largest_overlap"}),
        ("dwithin 20 ft", points, lots, {"op": "dwithin", "max_distance": 20, "how": "full"}),
    )
    print(f"{'join':30} {'rows':>9} {'copies':>7} {'one s':>7} {'tiles s':>8}")
    for name, left, right, options in joins:
        start = time.perf_counter()
        one = ogrjoin.join(left, right, **options)
        one = one.read_all()
        between = time.perf_counter()
        rows, copies = join_in_tiles(left, right, n_tiles, **options)
        end = time.perf_counter()
        same(rows, ogrjoin.join(left, right, **options))
        bar = f"  (bar {BARS[name]})" if name in BARS else ""
        times = f"{between - start:7.2f} {end - between:8.2f}"
        print(f"{name:30} {len(one):9} {copies:7.3f} {times}{bar}", flush=True)
    print("all rows are the same")


if __name__ == "__main__":
    main()
