#!/usr/bin/python3
"""Measures points in large polygons, in memory and on one thread, by oj_bench: the backend
cpu and the backend with prepared GEOS geometries, whose answers must be equal.

usage: large_polygons.py OJ_BENCH DATA FOLDER [REPEATS]

DATA holds world.gpkg (ne10m_countries), geonames_cities.vrt and torture.gpkg; their
raw arrays are written to FOLDER. Cases: the cities in the countries, and a million
random points (fixed seed) in the envelope of the largest polygon of torture.gpkg.
Exit codes: 0; 1: an error or different answers; 77: no data. Needs Debian's numpy and GDAL.
"""

import os
import re
import subprocess
import sys

try:
    import numpy as np
    from osgeo import gdal, ogr
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)
gdal.UseExceptions()


def save(folder, name, values, kind):
    np.asarray(values, dtype=kind).tofile(os.path.join(folder, name))


def polygons_of(geometry):
    """Returns the polygons of a geometry, each a list of rings of vertices."""
    if geometry.GetGeometryName() == "POLYGON":
        return [[np.array(ring.GetPoints())[:, :2] for ring in geometry]]
    return [p for part in geometry for p in polygons_of(part)]


def save_polygons(folder, features):
    """Writes the layer "lots" of oj_bench (bench_data.h). Returns all vertices."""
    parts = [polygons_of(f) for f in features]
    rings = [ring for f in parts for part in f for ring in part]
    xy = np.concatenate(rings)

    def offsets(sizes):
        return np.concatenate(([0], np.cumsum(list(sizes))))

    save(folder, "lots.x.f64", xy[:, 0], "<f8")
    save(folder, "lots.y.f64", xy[:, 1], "<f8")
    save(folder, "lots.ring.i32", offsets(map(len, rings)), "<i4")
    save(folder, "lots.part.i32", offsets(len(p) for f in parts for p in f), "<i4")
    save(folder, "lots.feat.i32", offsets(map(len, parts)), "<i4")
    save(folder, "lots.id.i64", range(len(parts)), "<i8")
    return xy


def save_points(folder, xy):
    save(folder, "points.x.f64", xy[:, 0], "<f8")
    save(folder, "points.y.f64", xy[:, 1], "<f8")
    save(folder, "points.id.i64", range(len(xy)), "<i8")


def shapes(path, name=None):
    """Returns the geometries of one layer, or of all layers."""
    dataset = ogr.Open(path)
    layers = [dataset.GetLayer(name)] if name else list(dataset)
    return [f.GetGeometryRef().Clone() for layer in layers for f in layer if f.GetGeometryRef() is not None]


def compare(bench, folder, name, repeats):
    """Prints the least processor time of both backends over the repeats. Checks that
    their answers are equal."""
    ms, answers = [], []
    for backend, times in (("cpu", 5 * repeats), ("geos_sorted", repeats)):
        out = subprocess.run(
            [bench, "--data", folder, "--layer", "lots", "--op", "intersects", "--threads", "1", "--backend", backend,
             "--repeat", str(times)], stdout=subprocess.PIPE, text=True, check=True).stdout
        ms.append(float(re.search(r"phase=total .*cpu_ms=([\d.]+)", out)[1]))
        answers.append(re.search(r"ANSWER .*checksum=\w+", out)[0])
    print(f"{name}: cpu {ms[0]:.2f} ms, prepared GEOS {ms[1]:.1f} ms: {ms[1] / ms[0]:.1f} times, {answers[0]}")
    if answers[0] != answers[1]:
        sys.exit(f"DIFFERENT: {answers[1]}")


bench, data, folder = sys.argv[1:4]
n_repeats = int(sys.argv[4]) if len(sys.argv) > 4 else 3
world, cities, torture = (os.path.join(data, f) for f in ("world.gpkg", "geonames_cities.vrt", "torture.gpkg"))
for path in (world, cities, torture):
    if not os.path.exists(path):
        print(f"skipped: there is no {path}")
        sys.exit(77)
os.makedirs(folder, exist_ok=True)
save_polygons(folder, shapes(world, "ne10m_countries"))
save_points(folder, np.array([(g.GetX(), g.GetY()) for g in shapes(cities)]))
compare(bench, folder, "cities in countries", n_repeats)
areas = [g for g in shapes(torture) if g.GetDimension() == 2]
vertices = save_polygons(folder, [max(areas, key=lambda g: g.WkbSize())])
low, high = vertices.min(axis=0), vertices.max(axis=0)
save_points(folder, low + np.random.default_rng(1).random((1000000, 2)) * (high - low))
compare(bench, folder, "points in a large polygon", n_repeats)
