#!/usr/bin/env python3
"""Measures joins by ogrjoin's algorithms and by those of QGIS, as a table in Markdown.
Times are those of the whole algorithm inside of QGIS, with reading and writing
(GeoPackages; -fgb: writing FlatGeobuf), without the start of QGIS.

    OGRJOIN=.../ogrjoin MAKE_CITY=.../make_city bench_qgis.py [-fgb] [SIZE ...]

A SIZE is POINTSxSTREETS, with equally many avenues and streets; default: 20000x14 and
200000x28, which have some 2,000 and 20,000 lots.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from osgeo import gdal  # noqa: E402

import headless_qgis  # noqa: E402

LIMIT_S = 1500
REPEATS = 3


def joins(points, lots, zones, streets):
    nearest = {"INPUT": points, "INPUT_2": lots}
    return (
        ("nearest lot of each point", "native:joinbynearest", nearest,
         "ogrjoin:joinbynearest", nearest),
        ("nearest lot, at most 100 ft away", "native:joinbynearest",
         {**nearest, "MAX_DISTANCE": 100}, "ogrjoin:joinbynearest",
         {**nearest, "MAX_DISTANCE": 100}),
        ("nearest street of each point", "native:joinbynearest",
         {"INPUT": points, "INPUT_2": streets}, "ogrjoin:joinbynearest",
         {"INPUT": points, "INPUT_2": streets}),
        ("lot that each point is in", "native:joinattributesbylocation",
         {"INPUT": points, "JOIN": lots, "PREDICATE": [0]}, "ogrjoin:joinbylocation",
         {"INPUT": points, "JOIN": lots, "PREDICATE": 0}),
        ("points counted in each lot", "native:countpointsinpolygon",
         {"POLYGONS": lots, "POINTS": points}, "ogrjoin:joinbylocationsummary",
         {"INPUT": lots, "JOIN": points, "PREDICATE": 1, "AGGREGATES": "count"}),
        ("sum and mean of the points' fares in each zone",
         "qgis:joinbylocationsummary",
         {"INPUT": zones, "JOIN": points, "PREDICATE": [0], "JOIN_FIELDS": ["fare"],
          "SUMMARIES": [5, 6]}, "ogrjoin:joinbylocationsummary",
         {"INPUT": zones, "JOIN": points, "PREDICATE": 0, "JOIN_FIELDS": ["fare"],
          "SUMMARIES": ["sum", "mean"]}),
        ("zone that most of each lot is in", "native:joinattributesbylocation",
         {"INPUT": lots, "JOIN": zones, "PREDICATE": [0], "METHOD": 2},
         "ogrjoin:joinbylocation",
         {"INPUT": lots, "JOIN": zones, "PREDICATE": 0, "METHOD": 2}),
    )


def n_rows(path):
    dataset = gdal.OpenEx(path, gdal.OF_VECTOR)
    return dataset.GetLayer(0).GetFeatureCount()


def make_city(n_points, side):
    subprocess.run(
        [os.environ["MAKE_CITY"], "-f", "GPKG", "-avenues", str(side), "-streets",
         str(side), "-pickups", str(n_points), "city"], check=True, capture_output=True)
    # Layers with a spatial index, as QGIS makes them.
    for name in ("pickups", "lots", "zones", "streets"):
        subprocess.run(["ogr2ogr", f"{name}.gpkg", f"city/{name}.gpkg"], check=True)


def measure(algorithm, parameters, repeats, extension):
    """Returns the medians of wall-clock and CPU seconds."""
    outputs = [f"o{i}.{extension}" for i in range(repeats)]
    jobs = [(algorithm, {**parameters, "OUTPUT": output}) for output in outputs]
    answers = headless_qgis.results(jobs, limit_s=LIMIT_S)
    for output in outputs:
        os.remove(output)
    return [statistics.median(a[key] for a in answers) for key in ("seconds", "cpu")]


def main():
    words = sys.argv[1:]
    extension = "fgb" if "-fgb" in words else "gpkg"
    sizes = [word for word in words if word != "-fgb"] or ["20000x14", "200000x28"]
    if not all(re.fullmatch(r"\d+x\d+", size) for size in sizes) or not (
        {"OGRJOIN", "MAKE_CITY"} <= set(os.environ)
    ):
        sys.exit(__doc__)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            make_city(*map(int, size.split("x")))
            layers = [f"{name}.gpkg" for name in ("pickups", "lots", "zones", "streets")]
            counts = [n_rows(path) for path in layers]
            print("\n{} points, {} lots, {} zones, {} streets\n".format(*counts))
            print("| join | QGIS | ogrjoin | ratio | CPU: QGIS | ogrjoin | ratio |")
            print("|---|---|---|---|---|---|---|", flush=True)
            for what, theirs, their_words, ours, our_words in joins(
                layers[0], layers[1], layers[2], layers[3]
            ):
                own, own_cpu = measure(ours, our_words, REPEATS, extension)
                row = f"{own:.2f} s | | | {own_cpu:.2f} s |"
                try:
                    repeats = 1 if own > 2 else REPEATS
                    native, cpu = measure(theirs, their_words, repeats, extension)
                    row = (
                        f"{native:.2f} s | {own:.2f} s | {native / own:.1f} | "
                        f"{cpu:.2f} s | {own_cpu:.2f} s | {cpu / own_cpu:.1f}"
                    )
                except AssertionError as why:
                    if "ends with -9" in str(why):
                        row = f"over {LIMIT_S} s | {row}"
                    elif "ends with -11" in str(why):
                        row = f"crashes | {row}"
                    else:
                        raise
                print(f"| {what} | {row} |", flush=True)
            os.chdir("/")


if __name__ == "__main__":
    main()
