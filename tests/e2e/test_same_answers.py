"""Batches, threads and backends change the time a join takes and nothing else:
dumps of the outputs are equal."""

from e2e import *

WAYS = [
    ["-batch", "1"],
    ["-batch", "7"],
    ["-batch", "100000"],
    ["-threads", "1"],
    ["-threads", "2"],
    ["-threads", "5", "-batch", "33"],
    ["-threads", "ALL_CPUS"],
    ["-backend", "auto"],
    ["-backend", "cpu"],
    ["-backend", "geos"],
    ["-backend", "spatialindex"],
    ["-backend", "quadrant"],
    ["-backend", "quadrant", "-quadrant_size", "3"],
]


def compare(join_path, *options):
    expected = None
    for way in [[], *WAYS]:
        join(*options, *way, "o.fgb", "points.gpkg", join_path, "-overwrite",
             "-lco", "SPATIAL_INDEX=NO", "-q")
        got = dump("o.fgb")
        expected = expected or got
        true(got == expected, f"{options} {way} differs")
    return expected


def check_lots():
    points_file(n=300)
    lots_file(n=40)
    for options in (["-max_distance", "80"], ["-k", "3"]):
        found = compare("lots.gpkg", *options)
        true(found.count("\n") > 200, "rows")


def check_ties_on_a_grid():
    """Most distances tie: points and lots on whole coordinates."""
    r = random.Random(3)
    rows = [(f"POINT ({r.randint(0, 9)} {r.randint(0, 9)})", {"name": str(i)})
            for i in range(200)]
    make("points.gpkg", rows)
    lots = []
    for _ in range(60):
        x, y = r.randint(0, 8), r.randint(0, 8)
        lots.append((f"POLYGON (({x} {y},{x + 1} {y},{x + 1} {y + 1},{x} {y + 1},"
                     f"{x} {y}))", {"use": "q"}))
    make("lots.gpkg", lots, fields=(("use", ogr.OFTString),))
    for options in ([], ["-ties", "all"], ["-distance_to", "boundary", "-k", "4"]):
        compare("lots.gpkg", *options)


def check_lines_and_mixed_kinds():
    points_file(n=150)
    r = random.Random(4)
    rows = []
    for i in range(60):
        x, y = 980000 + r.uniform(0, 1000), 200000 + r.uniform(0, 1000)
        line = ", ".join(f"{x + r.uniform(-80, 80)!r} {y + r.uniform(-80, 80)!r}"
                         for _ in range(4))
        shape = [f"LINESTRING ({line})", f"POINT ({x!r} {y!r})",
                 f"GEOMETRYCOLLECTION (POINT ({x!r} {y!r}), LINESTRING ({line}))"][i % 3]
        rows.append((shape, {"name": str(i)}))
    make("mixed.gpkg", rows, lco=["SPATIAL_INDEX=NO"])
    compare("mixed.gpkg", "-max_distance", "100")


if __name__ == "__main__":
    main(globals())
