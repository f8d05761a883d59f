#!/usr/bin/env python3
"""Runs random command lines; equal seeds give equal lines for every program.

usage: random_commands.py SEED N FOLDER BUILD [OLD]

Runs N lines with the programs of the build folder BUILD (ogrjoin, ogr_JOIN.so),
each in a folder of its own below FOLDER: FOLDER/0000, FOLDER/0001, ... In it are
  commands      the commands, one per line
  exit          the exit code of each command
  1.out, 1.err  standard output and error of the first command
  1.info        standard output in place of 1.out if it is an answer (ogrinfo)
and the files that the commands wrote. Small input layers are made in FOLDER/inputs
by ogr2ogr, unless that folder exists. against.sh compares two such folders. With
OLD, another build folder, no line has an option, a join, a backend or a rule that
the help of the old program does not name.

Every option of "ogrjoin --help" must have values in OPTIONS, with every choice
that the help names; so must the joins, backends and rules. If not, nothing is
run and the exit code is 2.
"""

import concurrent.futures
import glob
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import sys

HANG_S = 120  # a command that takes longer is ended and has no exit code
X0, Y0, SIZE = 980000, 200000, 400  # origin and extent of the layers in feet (EPSG:2263)
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OGR_CURRENT_DATE": "2000-01-01T00:00:00.000Z",  # time stamps of GeoPackage
    "OGR_SQLITE_SYNCHRONOUS": "OFF",
}

# --- input layers ---------------------------------------------------------

FIELDS = {
    "id": "Integer", "big": "Integer64", "v": "Real", "code": "Integer",
    "name": "String", "reach": "Real", "day": "Date", "moment": "DateTime",
    "yes": "Integer(Boolean)",
}  # fmt: skip
NAMES = ("plain", "it's", 'a "quoted" one', "umlaut ü", "two\nlines", " ", None)
ALL = ("gpkg", "fgb", "geojson", "csv", "shp", "sqlite")
MIXED = ("gpkg", "csv", "sqlite")
DRIVERS = {
    "gpkg": "GPKG", "fgb": "FlatGeobuf", "geojson": "GeoJSON",
    "shp": "ESRI Shapefile", "sqlite": "SQLite",
}  # fmt: skip

# Shapes around the origin that are degenerate, invalid or of rare kinds.
ODD = """
POLYGON ((0 0, 50 50, 50 0, 0 50, 0 0))
POLYGON ((0 0, 60 0, 60 60, 30 60, 30 90, 30 60, 0 60, 0 0))
POLYGON ((0 0, 40 0, 20 0, 0 0))
POLYGON ((10 10, 10 10, 10 10, 10 10))
POLYGON ((0 0, 0 80, 80 80, 80 0, 0 0), (0 0, 0 80, 80 80, 80 0, 0 0))
POLYGON ((0 0, 0 30, 30 30, 30 0, 0 0), (50 50, 60 50, 60 60, 50 60, 50 50))
POLYGON ((0 0, 0 90, 90 90, 90 0, 0 0), (10 10, 60 10, 60 60, 10 60, 10 10), (30 30, 80 30, 80 80, 30 80, 30 30))
POLYGON ((0 0, 100 0, 100 100, 0 100))
POLYGON EMPTY
POLYGON Z ((0 0 1, 50 0 2, 50 50 3, 0 0 1))
MULTIPOLYGON (((0 0, 60 0, 60 60, 0 60, 0 0)), ((30 30, 90 30, 90 90, 30 90, 30 30)))
MULTIPOLYGON (((0 0, 60 0, 60 60, 0 60, 0 0)), ((60 0, 120 0, 120 60, 60 60, 60 0)))
MULTIPOLYGON (EMPTY, ((0 0, 9 0, 9 9, 0 0)))
LINESTRING (10 10, 10 10)
LINESTRING (0 0, 100 100, 100 0, 0 100)
LINESTRING (0 0, 50 0, 25 0, 75 0)
LINESTRING M (0 0 5, 60 80 6)
LINESTRING EMPTY
MULTILINESTRING ((0 0, 50 50), (50 50, 100 0), EMPTY)
POINT EMPTY
POINT Z (3 4 5)
POINT ZM (30 40 5 6)
MULTIPOINT ((0 0), (0 0), (70 7))
GEOMETRYCOLLECTION EMPTY
GEOMETRYCOLLECTION (POINT (5 5), LINESTRING (0 0, 60 0), POLYGON ((0 0, 40 0, 40 40, 0 0)))
GEOMETRYCOLLECTION (GEOMETRYCOLLECTION (POINT EMPTY, POINT (9 9)), POLYGON EMPTY)
GEOMETRYCOLLECTION (POLYGON ((0 0, 50 0, 50 50, 0 50, 0 0)), POLYGON ((25 25, 75 25, 75 75, 25 75, 25 25)))
""".strip().split("\n")
CURVES = """
CIRCULARSTRING (0 0, 50 50, 100 0)
COMPOUNDCURVE (CIRCULARSTRING (0 0, 20 20, 40 0), (40 0, 90 10))
CURVEPOLYGON (CIRCULARSTRING (0 0, 50 50, 100 0, 50 -50, 0 0))
MULTISURFACE (CURVEPOLYGON (CIRCULARSTRING (0 0, 9 9, 18 0, 9 -9, 0 0)), ((50 0, 80 0, 80 30, 50 0)))
TRIANGLE ((0 0, 60 0, 30 50, 0 0))
TIN (((0 0, 0 40, 40 0, 0 0)), ((0 40, 40 0, 40 40, 0 40)))
POLYHEDRALSURFACE (((0 0, 70 0, 70 70, 0 70, 0 0)))
""".strip().split("\n")
UNUSABLE = ("POINT (nan nan)", "POINT (1e308 -1e308)", "LINESTRING (nan 0, 1 1)",
            "POINT (inf 200000)", "POLYGON ((0 0, inf 0, 9 9, 0 0))")  # fmt: skip


def place(r):
    """Returns coordinates that are multiples of one quarter. Places often coincide."""
    return X0 + r.randint(0, 4 * SIZE) / 4, Y0 + r.randint(0, 4 * SIZE) / 4


def ring(points):
    return "(" + ", ".join(f"{x!r} {y!r}" for x, y in [*points, points[0]]) + ")"


def star(r, x, y, size, n):
    turns = [(2 * math.pi * k / n, size * r.uniform(0.4, 1)) for k in range(n)]
    return ring([(x + b * math.cos(a), y + b * math.sin(a)) for a, b in turns])


def zone(r):
    x, y = place(r)
    size, n, kind = r.uniform(10, 80), r.randint(3, 12), r.randrange(3)
    if kind == 0:
        return f"POLYGON ({star(r, x, y, size, n)})"
    if kind == 1:
        hole = ring([(x + a, y + b) for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))])
        return f"POLYGON ({ring([(x - 9, y - 9), (x - 9, y + 9), (x + 9, y + 9), (x + 9, y - 9)])}, {hole})"
    return f"MULTIPOLYGON (({star(r, x, y, size, n)}), ({star(r, x + 3 * size, y, size, n)}))"


def line(r):
    x, y = place(r)
    steps = [(x, y)]
    for _ in range(r.randint(1, 5)):
        steps.append((steps[-1][0] + r.randint(-40, 40), steps[-1][1] + r.randint(-40, 40)))
    return "LINESTRING (" + ", ".join(f"{x!r} {y!r}" for x, y in steps) + ")"


def squares():
    for i in range(64):
        x, y = X0 + 50 * (i % 8), Y0 + 50 * (i // 8)
        if i % 7 != 6:
            yield f"POLYGON ({ring([(x, y), (x + 50, y), (x + 50, y + 50), (x, y + 50)])})"


def shifted(r, wkts):
    """Each at its place, and at another."""
    number = re.compile(r"(-?[0-9.]+) (-?[0-9.]+)")
    for wkt in wkts * 2:
        x, y = place(r)
        yield number.sub(lambda m: f"{x + float(m[1])!r} {y + float(m[2])!r}", wkt)


def degrees(r, polygons):
    for _ in range(60):
        x, y = r.choice((0, 0, 179, -179)) + r.uniform(-3, 3), r.choice((50, 50, 0, 88)) + r.uniform(-2, 2)
        x = max(-180.0, min(180.0, x))
        if polygons:
            yield f"POLYGON ({star(r, x, min(y, 88), 1, 7)})"
        else:
            yield f"POINT ({x!r} {y!r})"


def layers():
    """name: (CRS, -nlt, formats, shapes)"""
    r = random.Random(15)
    points = [f"POINT ({x!r} {y!r})" for x, y in (place(r) for _ in range(150))]
    multi = ["MULTIPOINT (" + ", ".join("(%r %r)" % place(r) for _ in range(3)) + ")" for _ in range(40)]
    return {
        "points": ("EPSG:2263", "POINT", ALL, [*points, *points[:20], "POINT EMPTY", None]),
        "multi": ("EPSG:2263", "MULTIPOINT", ALL, multi),
        "lines": ("EPSG:2263", "LINESTRING", ALL, [line(r) for _ in range(60)] + [None]),
        "zones": ("EPSG:2263", "PROMOTE_TO_MULTI", ALL, [zone(r) for _ in range(60)] + [None, "POLYGON EMPTY"]),
        "squares": ("EPSG:2263", "POLYGON", ALL, list(squares())),
        "large": ("EPSG:2263", "POLYGON", ALL, [f"POLYGON ({star(r, X0 + 200, Y0 + 200, 200, 2000)})"]),
        "odd": ("EPSG:2263", "GEOMETRY", MIXED, [*shifted(r, ODD), None]),
        "curves": ("EPSG:2263", "GEOMETRY", ("gpkg", "csv"), list(shifted(r, CURVES))),
        "unusable": ("EPSG:2263", "GEOMETRY", ("gpkg", "csv"), [*UNUSABLE, *points[:9]]),
        "nothing": ("EPSG:2263", "POINT", ALL, []),
        "table": ("EPSG:2263", "NONE", ("gpkg", "csv"), [None] * 12),
        "metres": ("EPSG:32618", "POINT", ("gpkg", "fgb"), points[:60]),
        "globe": ("EPSG:4326", "POINT", ALL, list(degrees(r, False))),
        "lands": ("EPSG:4326", "POLYGON", ALL, list(degrees(r, True))),
        'it\'s "a" layer': ("EPSG:2263", "POINT", ("csv",), points[:30]),
    }  # fmt: skip


def make_inputs(folder):
    os.makedirs(folder)
    r = random.Random(16)

    def maybe(value):
        return None if r.random() < 0.15 else value

    def word(value):
        return "" if value is None else '"' + str(value).replace('"', '""') + '"'

    found = layers()
    for name, (_, nlt, _, shapes) in found.items():
        columns = dict(FIELDS) if nlt == "NONE" else {"WKT": "WKT", **FIELDS}
        with open(f"{folder}/{name}.csvt", "w", encoding="utf-8") as file:
            file.write(",".join(columns.values()) + "\n")
        with open(f"{folder}/{name}.csv", "w", encoding="utf-8", newline="") as file:
            file.write(",".join(columns) + "\n")
            for i, wkt in enumerate(shapes):
                values = [i, maybe(2**60 + i % 9), maybe(r.randint(-9, 40) / 4),
                          maybe(i % 6), r.choice(NAMES), maybe((0, 5, 20.5, -1)[i % 4]),
                          maybe(f"20{i % 90 + 10}/0{i % 9 + 1}/1{i % 9}"),
                          maybe(f"2024/01/0{i % 9 + 1} 1{i % 9}:20:3{i % 9}.125"),
                          maybe(i % 2)]  # fmt: skip
                file.write(",".join(map(word, values if nlt == "NONE" else [wkt, *values])) + "\n")

    def ogr2ogr(*words):
        subprocess.run(["ogr2ogr", "-q", *words], env=dict(os.environ, **ENVIRONMENT),
                       stderr=subprocess.DEVNULL, check=False)  # fmt: skip

    def convert(name, extension, *words):
        crs, nlt, _, _ = found[name]
        to = ("-s_srs", "EPSG:2263", "-t_srs", crs) if crs == "EPSG:32618" else ("-a_srs", crs)
        dst = f"{folder}/{words[0] if words else name}.{extension}"
        ogr2ogr(*words[1:], "-f", DRIVERS[extension], *to, "-nlt", nlt, dst, f"{folder}/{name}.csv",
                "-oo", "EMPTY_STRING_AS_NULL=YES", "-oo", "KEEP_GEOM_COLUMNS=NO")  # fmt: skip

    jobs = [(n, e) for n, row in found.items() for e in row[2] if e != "csv"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: convert(*job), jobs))
    for extension in ("gpkg", "sqlite"):
        for name in ("points", "lines", "zones", 'it\'s "a" layer'):
            convert(name, extension, "all", *(["-update"] if name != "points" else []))
    with open(f"{folder}/points.vrt", "w", encoding="utf-8") as file:
        file.write('<OGRVRTDataSource><OGRVRTLayer name="points"><SrcDataSource relativeToVRT="1">points.csv'
                   "</SrcDataSource><LayerSRS>EPSG:2263</LayerSRS></OGRVRTLayer></OGRVRTDataSource>\n")  # fmt: skip
    # Files whose contents do not fit their names.
    for name in ("points.gpkg", "zones.fgb", "lines.geojson", "squares.shp"):
        with open(f"{folder}/{name}", "rb") as whole, open(f"{folder}/cut_{name}", "wb") as cut:
            cut.write(whole.read()[:3000])
    for name, text in (("text.gpkg", "no database\n"), ("empty.geojson", ""), ("where.sql", "v > 1"), ("words.csv", "plain,simple\nquoted,\n"),
                       ("good.ogrjoin", '{"type": "ogrjoin", "command_line": "points.gpkg zones.gpkg"}'),
                       ("bad.ogrjoin", '{"type": "ogrjoin", "command_line": "-k x points.gpkg'),
                       ("self.ogrjoin", '{"type": "ogrjoin", "command_line": "self.ogrjoin zones.gpkg"}')):  # fmt: skip
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)


# --- options --------------------------------------------------------------

MASKS = ("T********", "F***1****", "T*F**F***", "FF*FF****", "****T****", "212101212", "0********")
BOX = f"{X0} {Y0} {X0 + 150} {Y0 + 200.5}"
AGGREGATES = (
    "count", "count, sum(v)", "mean(v),min(v),max(v)", "avg(big), sum(big)", "median(v), stddev(v)",
    "first(name), last(name)", "mode(code), unique(code)", "concat(name,'; ')", "weighted_sum(v)",
    "min(day), max(moment), count(yes)", "count(v), count(name)",
    "first(id), mode(name), max(name)", "unique(name), concat(code)", "mean(yes), sum(id), stddev(big)",
    "percentile(v, 90), q1(code), q3(big)", "range(v), variance(v), minority(name)", "weighted_mean(v)",
    "weighted_mean(v, code), range(code)", "min(join_fid), unique(join_fid), concat(join_fid)",
    "max(overlap_area), mean(overlap_percent), weighted_mean(v, overlap_length)", "max(nearest_x), count(join_bearing)",
    "covered_area, covered_percent", "covered_length as c, count",
)  # fmt: skip


def always(_):
    return True


def ops(*names):
    return lambda now: now["op"] in names


far = ops("nearest", "dwithin")
nearest = ops("nearest")


def has_join(now):
    """Rows have columns of the join."""
    return "semi" not in now["words"] and "anti" not in now["words"]


def of_pairs(now):
    """They stand for single pairs."""
    return has_join(now) and "-agg" not in now["words"]


def compares_texts(now):
    return "-similar" in now["words"]


def compares_vectors(now):
    return "-vector" in now["words"]


def is_self(now):
    return now["left"] == now["right"]


def is_large(now):
    return any(now["dst"].endswith(e) for e in ("gpkg", "sqlite"))


# Option: (share of the lines for which the condition holds, values, condition).
# A value is split into words as a shell does it; {left} and {right} are the
# layers; one with ! before it is wrong, and rare. Options of share 0 come from the kinds of lines below, and like all
# others as the odd one of a line.
OPTIONS = {
    "op": (0, "nearest dwithin intersects within contains covers coveredby contains_properly touches crosses "
              "overlaps equals disjoint relate bbox window similar attributes".split(), always),
    "relate": (0, [f"'{m}'" for m in MASKS] + ["!T*x", "!''"], always),
    "window": (0, [BOX, f"{X0} {Y0} {X0} {Y0}", "0 0 1 1", f"{BOX} -window {X0 + 100} {Y0} {X0 + 300} {Y0 + 300}",
                   "!9 9 1 1", "!0 0 nan 1"], always),
    "max_distance": (0.5, ["0", "5", "20", "30ft", "10m", "0.01km", "1deg", "100us-ft", "0.002mi", "200km", "!inf", "!-1",
                           "!9parsecs"], lambda now: far(now) and "-max_distance_field" not in now["words"]),
    "max_distance_field": (0, ["reach", "reach:m", "v:km", "reach:ft", "!name", "!nofield"], always),
    "join_max_distance_field": (0, ["reach", "reach:us-ft", "v", "!day"], always),
    "min_distance": (0.12, ["0", "3", "0.5ft", "1000"], far),
    "densify": (0, ["50", "!0", "!x"], always),
    "metric": (0, ["sphere", "sphere", "ellipsoid", "planar"], always),
    "k": (0.35, ["1", "2", "3", "5", "100", "!0", "!x"], nearest),
    "ties": (0.3, ["all", "first"], nearest),
    "distance_to": (0.15, ["boundary", "interior"], nearest),
    "distance": (0.1, ["hausdorff", "directed_hausdorff", "hausdorff_points", "frechet", "least",
                       "hausdorff_points -densify 100ft", "frechet -densify 30"], far),
    "similar": (0.08, ["name:0.3", "name=name:1/2", "name+code:0.4", "code:0.9", "name:0.5 -similar id:0.2", "!name",
                       "!nofield:0.5", "!name:2"], always),
    "min_similarity": (0.2, ["0.5", "1/3", "!0"], compares_texts),
    "measure": (0.5, ["jaccard", "dice", "cosine", "overlap"], compares_texts),
    "tokens": (0.5, ["trgm", "words", *(f"{q}grams" for q in range(1, 9)), "!9grams"], compares_texts),
    "fold": (0.4, ["full", "case", "none"], compares_texts),
    "word_map": (0.2, ["../inputs/words.csv", "!nofile"], compares_texts),
    "name_similarity": (0.2, ["likeness", "''"], lambda now: compares_texts(now) and of_pairs(now)),
    "vector": (0.08, ["v", "v+id", "v:0.01+reach=v+id", "big", "!name+nofield", "!v:0", "!v=v+id", "!day"], always),
    "norm": (0.5, ["l2", "l1", "linf", "cosine", "!l3"], compares_vectors),
    "max_difference": (0.9, ["0", "1", "25.5", "0.01", "inf", "!-1", "!nan"], compares_vectors),
    "name_difference": (0.2, ["apart", "''"], lambda now: compares_vectors(now) and of_pairs(now)),
    "on": (0.12, ["code", "code=code", "code=id", "name", "v=code", "id,code", "day", "moment", "big", "yes=code",
                  "name=code", "!nofield"], always),
    "within_time": (0.1, ["moment:400h", "day:30d", "day=moment:1.5d", "v:1.5", "id=code:2", "v=big:0", "!v:2s", "!day:3",
                          "!day=v:1", "!moment", "!nofield:1h"], always),
    "during": (0.08, ["code..id=id..code", "v=code..id:starts+during", "day..moment=day:contains", "moment=day..moment:after",
                      "id..v:overlaps+meets", "moment:before", "!code..id:besides", "!day..v"], always),
    "heading": (0.15, ["v", "v:30", "big:90", "code:0", "id:180", "reach:12.5", "!nofield", "!name", "!v:-1", "!v:181"],
                far),
    "heading_both_ways": (0.5, [""], lambda now: "-heading" in now["words"]),
    "exclude": (0.1, ["self", "same_geometry", "field=code", "field=id=code", "self -exclude field=name",
                      "!field=nofield", "!nothing"], always),
    "unordered_pairs": (0.6, [""], is_self),
    "centroid_of": (0.07, ["input", "join", "both"], always),
    "point_on_surface_of": (0.07, ["input", "join", "both"], always),
    "invalid": (0.2, ["use", "skip", "fix", "!fail"], always),
    "how": (0.55, ["left", "inner", "semi", "anti", "right", "full"], always),
    "pick": (0.16, ["first", "nearest", "largest_overlap", "smallest_area", "largest_area", "most_similar", "max:v", "min:v",
                    "max:name", "min:day", "!max:nofield"], has_join),
    "agg": (0.2, ['"' + a + '"' for a in AGGREGATES] + ["!sum(name)", "!sum(nofield)", "!sum(", "!count,count", "!stdev(v)", "!percentile(v)", "!mean(join_distance)"], lambda now: "-pick" not in now["words"]),
    "one_to_one": (0.1, ["", "best", "greedy"], lambda now: not {"-agg", "-pick"} & set(now["words"])),
    "unmatched_layer": (0.15, ["alone", "!out"], is_large),
    "unmatched_join_layer": (0.15, ["join_alone", "alone"], is_large),
    "prefix": (0.1, ["j_", "''", "x"], has_join),
    "name_fid": (0.1, ["lot", "''", "id"], of_pairs),
    "name_distance": (0.1, ["far", "''", "v"], lambda now: far(now) and of_pairs(now)),
    "name_rank": (1, ["place", "''"], lambda now: "-k" in now["words"] and of_pairs(now)),
    "name_count": (0.1, ["n", "n", "n", "!code"], of_pairs),
    "events": (0.04, ["", "all"], lambda now: not {"-agg", "-pick", "-one_to_one"} & set(now["words"])),
    "key": (1, ["code", "name", "id", "big", "!nofield", "!v"], lambda now: "-events" in now["words"]),
    "state": (0.5, ["events.state"], lambda now: "-events" in now["words"]),
    "flush": (0.1, ["!1s", "!0"], lambda now: "-events" in now["words"]),
    "skipfailures": (0.03, ["!"], lambda now: "-events" in now["words"]),
    "overlap": (0.12, ["area", "length", "percent", "area,percent", "area,length,percent", "iou,join_area", "input_area", "!volume"], of_pairs),
    "nearest_point_fields": (0.15, [""], of_pairs),
    "bearing_field": (0.12, [""], of_pairs),
    "along_field": (0.12, ["along", "along", "!''", "!v"], lambda now: far(now) and of_pairs(now)),
    "along": (0.15, ["length", "length", "m", "!k"], lambda now: far(now) and of_pairs(now) and "-along_field" in now["words"]),
    "along_percent_field": (0.08, ["percent"], lambda now: far(now) and of_pairs(now)),
    "offset_field": (0.12, ["beside"], lambda now: far(now) and of_pairs(now)),
    "side_field": (0.12, ["side"], lambda now: far(now) and of_pairs(now)),
    "segment_field": (0.08, ["piece"], lambda now: far(now) and of_pairs(now)),
    "line_bearing_field": (0.08, ["course"], lambda now: far(now) and of_pairs(now)),
    "matrix_field": (0.1, ["matrix", "!''"], of_pairs),
    "relation_field": (0.1, ["relation"], of_pairs),
    "geometry": (0.25, ["input", "join", "nearest_point", "connection", "intersection"], of_pairs),
    "input_layer": (0.01, ["points", "!nolayer"], always),
    "where": (0.12, ["'v > 3'", "\"name = 'it''s'\"", "'code IN (1, 2)'", "@../inputs/where.sql", "'id < 0'",
                     "'name IS NULL'", "!'((v'", "!@nofile"], always),
    "sql": (0.06, ["'SELECT * FROM \"{left}\" WHERE v > 1'", "'SELECT id, name FROM \"{left}\"'",
                   "'SELECT * FROM \"{left}\" ORDER BY id DESC'", "!'SELECT * FROM nolayer'"], always),
    "dialect": (1, ["OGRSQL", "SQLITE", "!NONE"], lambda now: "-sql" in now["words"]),
    "spat": (0.08, [BOX, "0 0 1 1", "!9 9 1 1"], always),
    "select": (0.1, ["id", "name,v", "''", "!nofield", "!id,id"], always),
    "limit": (0.08, ["1", "10", "0", "!-5"], always),
    "oo": (0.05, ["LIST_ALL_TABLES=NO", "AUTODETECT_TYPE=YES", "!NOVALUE"], always),
    "join_layer": (0.01, ["zones", "!nolayer"], always),
    "join_where": (0.1, ["'v < 5'", "'code = 1'", "@../inputs/where.sql", "'id < 0'", "!'v <'"], always),
    "join_sql": (0.06, ["'SELECT * FROM \"{right}\" WHERE code > 1'", "'SELECT id, v, code FROM \"{right}\"'",
                        "!'SELECT nofield FROM \"{right}\"'"], always),
    "join_dialect": (1, ["OGRSQL", "SQLITE"], lambda now: "-join_sql" in now["words"]),
    "input_geometry": (0.02, ["!nothing", "!v"], always),
    "join_geometry": (0.02, ["!nothing", "!code"], has_join),
    "join_select": (0.1, ["id", "name,code", "''", "!nofield"], has_join),
    "joo": (0.04, ["LIST_ALL_TABLES=NO", "KEEP_GEOM_COLUMNS=NO", "!NOVALUE"], always),
    "crs": (0.15, ["auto", "strict", "ignore"], always),
    "s_srs": (0.05, ["EPSG:2263", "EPSG:4326", "!nonsense"], always),
    "join_srs": (0.05, ["EPSG:2263", "EPSG:32618", "!nonsense"], always),
    "t_srs": (0.07, ["EPSG:2263", "EPSG:32618", "EPSG:4326", "EPSG:3857"], always),
    "a_srs": (0.05, ["EPSG:2263", "EPSG:25833", "!nonsense"], always),
    "f": (0.1, ["GPKG", "FlatGeobuf", "GeoJSON", "CSV", "'ESRI Shapefile'", "!Nothing"], always),
    "nln": (0.12, ["named", "'a name'", "\"it's\"", "!''"], always),
    "dsco": (0.05, ["VERSION=1.2", "ADD_GPKG_OGR_CONTENTS=NO", "!NOVALUE"], always),
    "lco": (0.15, ["SPATIAL_INDEX=NO", "FID=key", "GEOMETRY=AS_WKT", "GEOMETRY_NAME=g", "RFC7946=YES", "!NOVALUE"],
            always),
    "doo": (0, ["LIST_ALL_TABLES=NO"], always),
    "nlt": (0.12, ["PROMOTE_TO_MULTI", "NONE", "POLYGON", "LINESTRING", "POINT"], always),
    "overwrite": (0.03, [""], always),
    "append": (0, [""], always),
    "update": (0, [""], always),
    "unsetFid": (0.1, [""], always),
    "write_spec": (0, ["written.ogrjoin", "!written.txt"], always),
    "in_place": (0, [""], always),
    "in_place_unsafe": (0, [""], always),
    "threads": (0.25, ["1", "2", "3", "ALL_CPUS", "!0"], always),
    "backend": (0.3, ["auto", "cpu", "cpu", "cpu", "cuda", "cuda", "quadrant", "cuda_quadrant", "geos", "geos_sorted",
                      "spatialindex", "spatialindex_collective", "sphere", "ellipsoid", "lists", "zlists", "cuda_lists",
                      "cuda_size_blocks", "cuda_zlists", "cut_points", "cuda_cut_points",
                      "gpics_quadtree", "gpics_kdtree", "gpics_quadtree_single", "gpics_kdtree_single",
                      "cuda_gpics_quadtree", "cuda_gpics_kdtree", "cuda_gpics_quadtree_single",
                      "cuda_gpics_kdtree_single", "live_quadtree", "live_kdtree"], always),
    "gpu": (1, ["0", "all", "!60", "!0,0"], lambda now: "cuda" in now["words"]),
    "gpu_memory": (1, ["100M", "!1K"], lambda now: "cuda" in now["words"]),
    "gpu_batch": (1, ["7", "50"], lambda now: "cuda" in now["words"]),
    "batch": (0.2, ["1", "7", "100", "!0"], always),
    "quadrant_size": (1, ["1", "4", "64"], lambda now: "quadrant" in " ".join(now["words"])),
    "memory": (0.15, ["1K", "10K", "100K", "64M", "!x"], always),
    "max_pairs": (0.06, ["1", "100", "100000"], always),
    "explain": (0, [""], always),
    "validate": (0.12, ["", "geos", "geos_sorted", "spatialindex", "sphere", "ellipsoid", "lists", "zlists", "!cpu"], always),
    "validate_report": (1, ["report.csv", "report.gpkg"], lambda now: "-validate" in now["words"]),
    "benchmark": (0, [""], always),
    "benchmark_csv": (0, ["bench.csv"], always),
    "benchmark_seconds": (0, ["60", "!x"], always),
    "q": (0.15, [""], always),
    "progress": (0.05, [""], always),
    "json_summary": (0.4, ["summary.json"], always),
    "help": (0, [""], always),
}  # fmt: skip
PRIVATE = ("formats", "version", "config")  # options of GDAL, in the last kind of line

# Destinations: name, words.
DESTINATIONS = (
    ("out.gpkg", ""), ("out.gpkg", "-lco SPATIAL_INDEX=NO"), ("out.fgb", ""), ("out.fgb", "-lco SPATIAL_INDEX=NO"),
    ("out.geojson", ""), ("out.geojsonl", ""), ("out.csv", ""), ("out.csv", "-lco GEOMETRY=AS_WKT"),
    ("out.shp", ""), ("out.sqlite", ""), ("out.sqlite", "-dsco SPATIALITE=YES"), ("out.gml", ""),
    ("out.kml", ""), ("out.tab", "-f 'MapInfo File'"), ("out.gmt", ""), ("out.jml", ""), ("out", ""),
    ("nofolder/out.gpkg", ""), ("out.unknown", ""),
)  # fmt: skip


def help_of(build):
    done = subprocess.run([f"{build}/ogrjoin", "--help"], capture_output=True, check=True, env=environment(build))
    return done.stdout.decode()


def untested(text):
    """Returns the options and words that the program's help has, but not the table
    above."""
    missing = []
    for name, words in re.findall(r"^  --?(\w+)(.*?)(?:   .*)?$", text, re.M):
        if name in PRIVATE:
            continue
        if name not in OPTIONS:
            missing.append(f"-{name}")
            continue
        choices = re.search(r"(?<![\w=\[])[\w]+(?:\|\w+)+(?![\w=])", words)
        for choice in choices[0].split("|") if choices else ():
            if choice.islower() and not any(choice in v for v in OPTIONS[name][1]):
                missing.append(f"-{name} {choice}")
    for title, name in (("Joins (-op):", "op"), ("Backends ", "backend")):
        section = re.search("^" + re.escape(title) + r".*?\n\n", text, re.M | re.S)
        for word in re.findall(r"^  (\w+)", section[0], re.M) if section else [f"no section {title}"]:
            if word not in OPTIONS[name][1]:
                missing.append(f"-{name} {word}")
    return missing


# --- lines ----------------------------------------------------------------


def value(r, name, now):
    is_wrong = r.random() < 0.03
    values = OPTIONS[name][1]
    text = r.choice([v for v in values if v.startswith("!") == is_wrong] or values).lstrip("!")
    words = shlex.split(text)
    for name in ("left", "right"):
        layer = now[name][1].replace('"', '""') if now[name] else "points"
        words = [word.replace("{" + name + "}", layer) for word in words]
    return words


def side(r, names):
    """Returns (dataset, layer, words that choose the layer)."""
    if r.random() < 0.1:
        extension = r.choice(("gpkg", "sqlite"))
        name = r.choice(("points", "lines", "zones", 'it\'s "a" layer')[: 4 if extension == "gpkg" else 3])
        return f"../inputs/all.{extension}", name, [name]
    if r.random() < 0.03:
        return "../inputs/points.vrt", "points", []
    name = r.choice(names if r.random() < 0.97 else RARE)
    return f"../inputs/{name}.{r.choice(LAYERS[name][2])}", name, []


PLANE = ("points", "points", "points", "zones", "zones", "zones", "lines", "lines", "squares", "squares", "multi",
         "large", "odd", "odd", "curves", "metres")
RARE = ("unusable", "nothing", "table")  # fmt: skip
GLOBE = ("globe", "globe", "lands", "lands", "lands", "points")


def options(r, shares=0.6, dst=None):
    """Returns sides, destination and options of a join that is likely to be valid."""
    globe = r.random() < 0.12
    names = GLOBE if globe else PLANE
    left = side(r, names)
    right = left if r.random() < 0.15 else side(r, names)
    how = ""
    if dst is None:
        dst, how = r.choice(DESTINATIONS[:-3] if r.random() < 0.97 else DESTINATIONS)
    op = r.choice(OPTIONS["op"][1] + 5 * ["nearest"] + 2 * ["dwithin"] + 3 * ["intersects"])
    now = {"op": op, "left": left, "right": right, "dst": dst, "words": []}
    words = now["words"]
    if op == "relate":
        words += ["-relate", *value(r, "relate", now)]
    if op not in ("relate", "intersects") or r.random() < 0.5:
        words += ["-op", op]
    if op == "similar" and r.random() < 0.95:
        option = r.choice(("similar", "similar", "vector"))
        words += [f"-{option}", *value(r, option, now)]
    if op == "attributes" and r.random() < 0.95:
        words += ["-on", *value(r, "on", now)]
    if op == "window" and r.random() < 0.6:
        words += ["-window", *value(r, "window", now)]
        now["right"] = None
    if op == "dwithin" and r.random() < 0.4:
        field = r.choice(("max_distance_field", "join_max_distance_field"))
        words += ["-" + field, *value(r, field, now)]
    elif op == "dwithin" and r.random() < 0.9:
        words += ["-max_distance", r.choice(("5m", "9km", "800km") if globe else ("5", "20", "10m"))]
    if globe and far(now) and r.random() < 0.8:
        words += ["-metric", *value(r, "metric", now)]
    words += shlex.split(how)
    if left[2]:
        words += ["-input_layer", *left[2]]
    if now["right"] and right[2]:
        words += ["-join_layer", *right[2]]
    full = dict(now, right=right)
    for name, (share, _, holds) in OPTIONS.items():
        if "-" + name not in words and r.random() < share * shares and holds(full):
            words += ["-" + name, *value(r, name, full)]
    if r.random() < 0.06:  # whatever else there is
        name = r.choice(list(OPTIONS))
        words += ["-" + name, *value(r, name, full)]
    return now


def sources(now):
    return [now["left"][0]] + ([now["right"][0]] if now["right"] else [])


def plain(r):
    now = options(r)
    return [["ogrjoin", *now["words"], now["dst"], *sources(now)]]


def again(r):
    """Returns a line with a second run that writes to the output of the first."""
    dst = r.choice(("out.gpkg", "out.gpkg", "out.sqlite", "out.csv", "out.shp", "out.geojson", "out.fgb"))
    first, second = options(r, 0.2, dst), options(r, 0.2, dst)
    how = r.choice((["-append"], ["-append"], ["-update", "-nln", "second"], ["-overwrite"], ["-update"],
                    ["-append", "-doo", "LIST_ALL_TABLES=NO"], ["-update", "-append"], []))  # fmt: skip
    if r.random() < 0.5:
        second = first
    if "-append" in how or "-overwrite" in how:
        how = [*how, "-nln", "out"]
    return [["ogrjoin", *first["words"], "-nln", "out", dst, *sources(first)],
            ["ogrjoin", *second["words"], *how, dst, *sources(second)]]  # fmt: skip


def in_place(r):
    now = options(r, 0.25)
    name = r.choice(("points", "zones", "lines", "squares", "odd"))
    extension = r.choice([e for e in LAYERS[name][2] if e != "csv" or r.random() < 0.2] + ["gpkg"])
    words = [w for w in now["words"] if w != "-input_layer"]
    if r.random() < 0.8:
        words = ["-op", "nearest"] if r.random() < 0.5 else ["-agg", "count, sum(v)"]
        if r.random() < 0.3:
            words = ["-op", "intersects", "-pick", *value(r, "pick", now)]
        for option in ("max_distance", "threads", "name_count", "prefix", "where", "json_summary", "on", "validate"):
            if r.random() < 0.2:
                words += ["-" + option, *value(r, option, now)]
    if r.random() < 0.3:
        words.append("-in_place_unsafe")
    right = r.choice(("zones.gpkg", "points.fgb", "squares.geojson", "lines.shp"))
    command = ["ogrjoin", "-in_place", *words, f"{name}.{extension}", f"../inputs/{right}"]
    copy = [["copy", f"../inputs/{name}.{extension}"]]
    return copy + [command] * r.choice((1, 1, 2))


def dataset(r):
    """Returns a line for the join as a dataset, by its name or as a file, which GDAL's
    programs read."""
    now = options(r, 0.3)
    skip = ("-json_summary", "-validate", "-lco", "-dsco", "-f", "-append", "-overwrite")
    words = now["words"]
    for option in skip if r.random() < 0.9 else ():
        while option in words:
            at = words.index(option)
            takes = option not in ("-append", "-overwrite")
            if option == "-validate" and (at + 1 == len(words) or words[at + 1].startswith("-")):
                takes = False
            del words[at : at + 1 + takes]
    words = [*words, *sources(now)]
    name = "JOIN:" + shlex.join(words)
    commands = []
    if r.random() < 0.3:
        commands, name = [["ogrjoin", "-write_spec", "written.ogrjoin", *words]], "written.ogrjoin"
    if r.random() < 0.03:
        name = r.choice(("../inputs/good.ogrjoin", "../inputs/bad.ogrjoin", "../inputs/self.ogrjoin", "JOIN:", "JOIN:x"))
    how = r.randrange(4)
    if how == 0:
        commands.append(["ogrinfo", "-ro", "-al", name])
    elif how == 1:
        commands.append(["ogrinfo", "-ro", "-so", "-al", "-spat", *BOX.split(), name])
    elif how == 2:
        commands.append(["ogrinfo", "-ro", "-al", "-where", r.choice(("v > 2", "join_fid IS NULL", "id = 3")), name])
    else:
        commands.append(["ogr2ogr", *(("-preserve_fid",) if r.random() < 0.3 else ()), r.choice(DESTINATIONS[:8])[0], name])
    return commands


def explain(r):
    now = options(r, 0.4)
    return [["ogrjoin", "-explain", *now["words"], now["dst"], *sources(now)]]


def benchmark(r):
    words = r.choice((["-op", "nearest"], ["-op", "nearest", "-max_distance", "20"], ["-op", "intersects"],
                      ["-op", "dwithin", "-max_distance", "9"], ["-op", "touches"], ["-k", "3"],
                      ["-op", "nearest", "-distance_to", "boundary"]))  # fmt: skip
    for name in ("benchmark_csv", "benchmark_seconds", "threads", "quadrant_size", "limit", "where", "q"):
        if r.random() < 0.3:
            words = [*words, "-" + name, *value(r, name, {"left": None, "right": None})]
    return [["ogrjoin", "-benchmark", *words, *(side(r, PLANE[:10])[0] for _ in range(2))]]


def wrong(r):
    """Words and files that cannot be."""
    now = options(r, 0.1)
    words, dst, pair = now["words"], now["dst"], sources(now)
    kind = r.randrange(12)
    if kind == 0:
        name = r.choice(list(OPTIONS))
        words = [*words, "-" + r.choice((name[:-1] + "x", name + "s", name[1:], name.upper(), "-" + name))]
    elif kind == 1:
        dst, pair = r.choice((dst, "")), pair[:1]
    elif kind == 2:
        pair = [*pair, "more"]
    elif kind == 3:
        pair[r.randrange(len(pair))] = r.choice(("nofile.gpkg", "../inputs", "", "/dev/null", "../inputs/no/file.shp"))
    elif kind == 4:
        pair[r.randrange(len(pair))] = "../inputs/" + r.choice(
            ("cut_points.gpkg", "cut_zones.fgb", "cut_lines.geojson", "cut_squares.shp", "text.gpkg", "empty.geojson"))
    elif kind == 5:
        dst = r.choice(("../inputs", pair[0], "/dev/full", "nofolder/x.fgb", ".", "-"))
    elif kind == 6:
        name = r.choice([n for n in OPTIONS if OPTIONS[n][1] != [""]])
        words = [*words, "-" + name, r.choice(("", "x", "-1", "1e400", "nan", "0x10", "99999999999999999999", "1 2", "ü"))]
    elif kind == 7:
        return [["ogrjoin", r.choice(("-help", "-h", "--help", "--version", "--formats", "--devices", "", "--config"))]]
    elif kind == 8:
        return [["ogrjoin", *words, dst, *pair, "-" + r.choice(list(OPTIONS))]]
    elif kind == 9:
        words = [*words, *(w for n in r.sample(list(OPTIONS), 4) for w in ["-" + n, *value(r, n, now)])]
    elif kind == 10:
        words = ["--config", r.choice(("GDAL_NUM_THREADS", "OGR_ENABLE_PARTIAL_REPROJECTION")), r.choice(("1", "x")), *words]
    else:
        pair = [r.choice(("../inputs/good.ogrjoin", "../inputs/bad.ogrjoin", "../inputs/self.ogrjoin")), *pair[1:]]
    return [["ogrjoin", *words, dst, *pair]]


KINDS = {plain: 62, again: 8, in_place: 6, dataset: 10, explain: 3, benchmark: 2, wrong: 9}
LAYERS = layers()


def is_known(commands, text):
    """Returns True if the help has all options of the commands. For options with a
    fixed list of words, the help must have the words, too."""
    named = set(re.findall(r"^  --?(\w+)", text, re.M))
    words = [w for words in commands for word in words
             for w in (shlex.split(word[5:]) if word.startswith("JOIN:") else [word])]  # fmt: skip
    for option, word in zip([""] + words, words):
        if word.startswith("-") and word[1:] in OPTIONS and word[1:] not in named:
            return False
        if option in ("-op", "-backend", "-validate") and word != "auto" and word in OPTIONS[option[1:]][1]:
            if not re.search(rf"^  {word}\b", text, re.M):
                return False
        if option == "-pick" and not re.search(rf"\b{re.escape(word.split(':')[0])}\b", text):
            return False
    return True


def lines(seed, n, text=None):
    """Returns command lines. If text is given, it is the help of a program, and only
    lines whose options the program has are returned."""
    r = random.Random(seed)
    found = []
    while len(found) < n:
        commands = r.choices(list(KINDS), KINDS.values())[0](r)
        if text is None or is_known(commands, text):
            found.append(commands)
    return found


# --- running them ---------------------------------------------------------


def environment(build):
    return dict(os.environ, **ENVIRONMENT, LD_LIBRARY_PATH=build, GDAL_DRIVER_PATH=build)


def run(folder, commands, build):
    os.makedirs(folder)
    codes = []
    with open(f"{folder}/commands", "w", encoding="utf-8") as file:
        file.writelines(shlex.join(words) + "\n" for words in commands)
    for i, words in enumerate(commands):
        if words[0] == "copy":
            for path in glob.glob(f"{folder}/{os.path.splitext(words[1])[0]}.*"):
                if not path.endswith((".csvt", ".vrt")):
                    shutil.copy(path, folder)
            continue
        out = "info" if words[0] == "ogrinfo" else "out"
        program = f"{build}/ogrjoin" if words[0] == "ogrjoin" else words[0]
        with open(f"{folder}/{i + 1}.{out}", "wb") as stdout, open(f"{folder}/{i + 1}.err", "wb") as stderr:
            try:
                done = subprocess.run([program, *words[1:]], cwd=folder, env=environment(build), timeout=HANG_S,
                                      stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, check=False)  # fmt: skip
                codes.append(done.returncode)
            except subprocess.TimeoutExpired:
                codes.append("hangs")
    with open(f"{folder}/exit", "w", encoding="utf-8") as file:
        file.write(" ".join(map(str, codes)) + "\n")
    # Bytes with the date of the run: the last change in DBF, and the tables of
    # SpatiaLite.
    for path in glob.glob(f"{folder}/*.dbf") + glob.glob(f"{folder}/*.sqlite"):
        if os.path.isdir(path):  # a format whose datasets are folders
            continue
        with open(path, "r+b") as file:
            content = file.read()
            if path.endswith(".dbf"):
                content = content[:1] + b"\0\0\0" + content[4:]
            file.seek(0)
            file.write(re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", b"2000-01-01T00:00:00.000Z", content))
    return codes


def main(seed, n, folder, build, old=None):
    build = os.path.abspath(build)
    missing = untested(help_of(build))
    if missing:
        print("in no template of random_commands.py: " + ", ".join(missing))
        return 2
    if not os.path.exists(f"{folder}/inputs"):
        make_inputs(f"{folder}/inputs")
    jobs = list(enumerate(lines(seed, n, old and help_of(os.path.abspath(old)))))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = list(pool.map(lambda job: run(f"{folder}/{job[0]:04}", job[1], build), jobs))
    good = {w for (_, commands), ends in zip(jobs, codes) if not any(ends) for words in commands for w in words}
    never = [name for name in OPTIONS if "-" + name not in good]
    n_good = sum(not any(ends) for ends in codes)
    print(f"{n} random lines, {n_good} of them end with 0")
    if n >= 1000 and never:
        print("in no line that ends with 0: " + ", ".join(never))
    for i, ends in enumerate(codes):
        if any(c not in (0, 1, 3) for c in ends):
            print(f"line {i} ends with {ends}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
