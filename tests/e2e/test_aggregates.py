"""-agg gives one row per input feature.  Every function is compared with fractions and
statistics over pairs that GEOS finds.  Tests either layer as the streaming one, values
in files, -in_place, and invalid texts of -agg."""

import statistics
from fractions import Fraction

from e2e import *

FIELDS = [
    ("s", ogr.OFTString),
    ("i", ogr.OFTInteger),
    ("n", ogr.OFTInteger64),
    ("f", ogr.OFTReal),
    ("d", ogr.OFTDate),
    ("t", ogr.OFTDateTime),
    ('odd, "name"', ogr.OFTInteger),
]
NUMBERS = ["i", "n", "f"]
ORDERED = ["s", "i", "n", "f", "d", "t"]
WORDS = ["", "a", "B", "ä, b", "it's", "long " * 12]
COUNTED = ["count", "count(f)", "count(s)", "count(t)"]
LIST = COUNTED + [
    f"{what}({name})"
    for names, whats in (
        (NUMBERS, ["sum", "mean", "median", "stddev", "range", "variance", "q1", "q3"]),
        (ORDERED, ["min", "max", "first", "last", "mode", "unique", "minority"]),
    )
    for what in whats
    for name in names
]
LIST += ["concat(s,'; ')", "concat(i)", "percentile(f, 90)", "percentile(n, 12.5)"]
LIST += ["weighted_mean(f,n)", "weighted_mean(n,i)", "weighted_mean(i,f)"]


def box(x, y, w, h):
    return (
        f"POLYGON (({x} {y}, {x + w} {y}, {x + w} {y + h}, {x} {y + h}, {x} {y}))"
    )


def random_value(kind, draw):
    if draw.random() < 0.15:
        return None
    if kind == ogr.OFTString:
        return draw.choice(WORDS)
    if kind == ogr.OFTInteger:
        return draw.choice([draw.randint(-5, 5), draw.randint(-(2**31), 2**31 - 1)])
    if kind == ogr.OFTInteger64:
        return draw.choice([draw.randint(-3, 3), draw.randint(-(2**55), 2**55)])
    if kind == ogr.OFTReal:
        return draw.choice(
            [
                draw.gauss(0, 1) * 10.0 ** draw.randint(-20, 20),
                draw.randint(0, 9) / 10,
                -0.0,
                1e300,
                5e-324,
            ]
        )
    day = f"{draw.randint(1890, 2030)}/{draw.randint(1, 12):02}/{draw.randint(1, 28):02}"
    if kind == ogr.OFTDate:
        return day
    return f"{day} {draw.randint(0, 23):02}:30:{draw.randint(0, 59):02}.250+00"


def random_layers(draw, end="gpkg", n_zones=30, n_points=600):
    zones = [
        (box(draw.randint(0, 80), draw.randint(0, 80), draw.randint(1, 40), 25), {})
        for _ in range(n_zones)
    ]
    zones[3] = (None, {})
    zones[5] = (box(500, 500, 1, 1), {})
    zones[7] = (
        "MULTIPOLYGON (((0 0, 30 0, 30 30, 0 30, 0 0), (5 5, 5 20, 20 20, 20 5, 5 5)),"
        " ((50 50, 60 50, 60 60, 50 50)))",
        {},
    )
    zones = [(g, {"name": f"z{i}"}) for i, (g, _) in enumerate(zones)]
    points = [
        (
            f"POINT ({draw.randint(0, 400) / 4} {draw.randint(0, 400) / 4})",
            {name: random_value(kind, draw) for name, kind in FIELDS},
        )
        for _ in range(n_points)
    ]
    points[11] = (None, points[11][1])
    make(f"zones.{end}", zones)
    make(f"points.{end}", points, FIELDS, kind=ogr.wkbPoint)
    return f"zones.{end}", f"points.{end}"


# --- the answer, found the plain way ---------------------------------------


def pairs_of(zones, points, test):
    """Returns, for each zone, the rows of its points in FID order."""
    shapes = points.shapes()
    found = []
    for zone in zones.shapes():
        mine = []
        for shape, row in zip(shapes, points.rows):
            if zone is not None and is_joinable(shape) and test(zone, shape):
                mine.append(row)
        found.append(sorted(mine, key=lambda row: row[0]))
    return found


def nearest_double(x):
    try:
        return x.numerator / x.denominator
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def percentile(values, percent):
    """Returns the percentile by linear interpolation, computed as by numpy from the
    nearer of the two values."""
    values = sorted(values)
    at = (len(values) - 1) * (percent / 100)
    low, rest = int(at), at - int(at)
    a, b = values[low], values[min(low + 1, len(values) - 1)]
    if rest == 0 or a == b:
        return float(a)
    return a + (b - a) * rest if rest < 0.5 else b - (b - a) * (1 - rest)


def rounded(x):
    """Returns a fraction rounded to 53 bits, even if it is outside of the range of a
    double."""
    power = Fraction(2) ** (x.denominator.bit_length() - abs(x.numerator).bit_length())
    return Fraction(float(x * power)) / power


def weighted_mean(values, weights):
    """Returns the quotient of the exact sums. Each sum is rounded once, and so is the
    quotient."""
    both = [(Fraction(v), Fraction(w)) for v, w in zip(values, weights)
            if v is not None and w is not None]
    total = sum(w for _, w in both)
    if total == 0:
        return None
    return nearest_double(rounded(sum(v * w for v, w in both)) / rounded(total))


def expected(what, name, rows):
    if what == "weighted_mean":
        name, weight = name
        return weighted_mean(*([row[2][n] for row in rows] for n in (name, weight)))
    values = [row[2][name] for row in rows if row[2][name] is not None]
    if what == "count":
        return len(values)
    if what == "unique":
        return len(set(values))
    if not values:
        return None
    if what in ("sum", "mean"):
        total = sum(Fraction(v) for v in values)
        whole = all(isinstance(v, int) for v in values)
        if what == "sum":
            return int(total) if whole else nearest_double(total)
        return nearest_double(total) / len(values)
    if what == "median":
        return float(statistics.median(values))
    if what == "range":
        return max(values) - min(values)
    if what in ("q1", "q3"):
        return percentile(values, 25 if what == "q1" else 75)
    if what.startswith("percentile"):
        return percentile(values, float(what[11:]))
    if what in ("stddev", "variance"):
        if len(values) < 2:
            return None
        total = sum(Fraction(v) for v in values)
        squares = sum(Fraction(v) ** 2 for v in values)
        n = len(values)
        variance = (squares - total**2 / n) / (n - 1)
        if what == "variance":
            return nearest_double(variance)
        scale = 2**2200
        root = math.isqrt(int(variance * scale**2))
        return nearest_double(Fraction(root, scale))
    if what in ("first", "last"):
        return values[0 if what == "first" else -1]
    if what in ("mode", "minority"):
        most = (max if what == "mode" else min)(values.count(v) for v in values)
        return min(v for v in values if values.count(v) == most)
    if what == "concat":
        return values
    return min(values) if what == "min" else max(values)


def compare(got, pairs, words=None, what=""):
    """Compares the output rows `got` with aggregates of pairs. pairs[i] are those of
    row i."""
    same(len(got), len(pairs), "rows")
    for row, mine in zip(got, pairs):
        if (words or LIST)[0] == "count":
            same(row[2]["count"], len(mine), f"{what} count of {row[0]}")
        for word in words or LIST:
            if "(" not in word:
                continue
            function, name = word.rstrip(")").split("(")
            name, _, second = name.partition(",")
            column = f"{function}_{name}"
            if function == "percentile":
                column += "_" + second.strip().replace(".", "_")
                function += second
            if function == "weighted_mean":
                want = expected(function, (name, second), mine)
            else:
                want = expected(function, name, mine)
            have = row[2][column]
            if function == "concat" and want is not None:
                separator = "; " if ";" in word else ", "
                want = separator.join(str(v) for v in want)
            if function in ("stddev", "variance") and want not in (None, math.inf):
                near(have, want, 3 * math.ulp(want), f"{what} {word} of {row[0]}")
            else:
                same(have, want, f"{what} {word} of {row[0]}")


def aggregate(*words, stream=None, op="contains"):
    given = ["--config", "OGRJOIN_AGG_STREAM", stream] if stream else []
    return succeeds("-op", op, *given, *words)


# --- checks ----------------------------------------------------------------


def check_all_functions_both_ways():
    for seed, op, test in (
        (1, "contains", lambda a, b: a.Contains(b)),
        (2, "intersects", lambda a, b: a.Intersects(b)),
        (3, "covers", lambda a, b: b.Within(a) or b.Touches(a)),
        (4, "touches", lambda a, b: a.Touches(b)),
        (5, "disjoint", lambda a, b: a.Disjoint(b)),
    ):
        os.makedirs(op)
        os.chdir(op)
        zones, points = random_layers(random.Random(seed))
        pairs = pairs_of(Layer(zones), Layer(points), test)
        dumps = []
        for stream in ("join", "input"):
            out = f"{stream}.gpkg"
            aggregate("-agg", ", ".join(LIST), out, zones, points, stream=stream, op=op)
            compare(Layer(out).rows, pairs, what=f"{op} {stream}")
            dumps.append(dump(out))
        same(dumps[0], dumps[1], op)
        os.chdir("..")


def check_types_and_names():
    zones, points = random_layers(random.Random(7))
    aggregate("-agg", ", ".join(LIST), "out.gpkg", zones, points)
    fields = {k: v[0] for k, v in Layer("out.gpkg").fields.items()}
    same(list(fields)[:2], ["name", "count"])
    for name, kind in (
        ("count", "Integer64"),
        ("count_f", "Integer64"),
        ("sum_i", "Integer64"),
        ("sum_n", "Integer64"),
        ("sum_f", "Real"),
        ("mean_i", "Real"),
        ("median_i", "Real"),
        ("stddev_n", "Real"),
        ("range_i", "Integer64"),
        ("percentile_n_12_5", "Real"),
        ("minority_d", "Date"),
        ("weighted_mean_n", "Real"),
        ("min_i", "Integer"),
        ("mode_n", "Integer64"),
        ("max_d", "Date"),
        ("first_t", "DateTime"),
        ("last_s", "String"),
        ("unique_d", "Integer64"),
        ("concat_i", "String"),
    ):
        same(fields[name], kind, name)


def check_formats_and_feature_ids():
    for end in ("gpkg", "fgb", "csv", "geojson"):
        zones, points = random_layers(random.Random(8), "gpkg")
        for stream in ("join", "input"):
            lco = ["-lco", "SPATIAL_INDEX=NO"] if end == "fgb" else []
            aggregate(
                *lco, "-where", "fid > 4", "-agg", "count as n, sum(i) as total",
                f"{stream}.{end}", zones, points, stream=stream,
            )
        if end != "gpkg":  # a GeoPackage contains the time of writing
            both = [open(f"{s}.{end}", "rb").read() for s in ("join", "input")]
            true(both[0] == both[1], f"bytes of {end}")
        got = Layer(f"join.{end}")
        same("n" in got.fields and "total" in got.fields, True, end)
        if end == "gpkg":
            same([row[0] for row in got.rows], list(range(5, 31)))
        for name in os.listdir("."):
            if os.path.isfile(name):
                os.remove(name)


def check_inner_keeps_rows_with_pairs():
    zones, points = random_layers(random.Random(9))
    pairs = pairs_of(Layer(zones), Layer(points), lambda a, b: a.Contains(b))
    for stream in ("join", "input"):
        out = f"{stream}.gpkg"
        aggregate("-how", "inner", "-agg", "count, mean(f)", out, zones, points,
                  stream=stream)
        compare(Layer(out).rows, [p for p in pairs if p], ["count", "mean(f)"], stream)


def check_unmatched_rows_go_to_their_layer():
    zones, points = random_layers(random.Random(9))
    pairs = pairs_of(Layer(zones), Layer(points), lambda a, b: a.Contains(b))
    for stream in ("join", "input"):
        out = f"{stream}.gpkg"
        aggregate("-how", "inner", "-unmatched_layer", "alone", "-agg", "count",
                  out, zones, points, stream=stream)
        same(len(Layer(out, "alone").rows), sum(1 for p in pairs if not p), stream)


def check_nearest_and_dwithin():
    zones, points = random_layers(random.Random(10))
    many = Layer(points)
    shapes = [(s, r) for s, r in zip(many.shapes(), many.rows) if s is not None]
    pairs = []
    for zone in Layer(zones).shapes():
        near_by = []
        if zone is not None:
            near_by = sorted((zone.Distance(s), r[0], i) for i, (s, r) in enumerate(shapes))
        pairs.append(sorted((shapes[i][1] for _, _, i in near_by[:5]), key=lambda r: r[0]))
    words = ["count", "sum(f)", "median(n)", "concat(s,'; ')", "first(i)"]
    aggregate("-k", "5", "-agg", ", ".join(words), "near.gpkg", zones, points,
              op="nearest")
    compare(Layer("near.gpkg").rows, pairs, words, "nearest")
    pairs = pairs_of(Layer(zones), many, lambda a, b: a.Distance(b) <= 4)
    for stream in ("join", "input"):
        aggregate("-max_distance", "4", "-agg", ", ".join(words), f"{stream}.gpkg",
                  zones, points, op="dwithin", stream=stream)
        compare(Layer(f"{stream}.gpkg").rows, pairs, words, f"dwithin {stream}")


def check_conditions_on_attributes():
    draw = random.Random(11)
    fields = [("key", ogr.OFTInteger), ("reach", ogr.OFTReal), ("v", ogr.OFTReal)]
    for name, n in (("a", 40), ("b", 300)):
        rows = [
            (
                f"POINT ({draw.randint(0, 40)} {draw.randint(0, 40)})",
                {
                    "key": draw.choice([1, 2, 3, None]),
                    "reach": draw.choice([None, 3.0, 6.0, 0.0]),
                    "v": draw.random(),
                },
            )
            for _ in range(n)
        ]
        make(f"{name}.gpkg", rows, fields, kind=ogr.wkbPoint)
    cases = (
        (["-on", "key=key", "-max_distance", "5"],
         lambda a, b: a["key"] is not None and a["key"] == b["key"], 5),
        (["-exclude", "field=key", "-max_distance", "5"],
         lambda a, b: a["key"] is None or a["key"] != b["key"], 5),
        (["-max_distance_field", "reach"], lambda a, b: True, "left"),
        (["-join_max_distance_field", "reach"], lambda a, b: True, "right"),
    )
    words = ["count", "sum(v)", "unique(key)", "last(reach)"]
    left, right = Layer("a.gpkg"), Layer("b.gpkg")
    for given, test, reach in cases:
        pairs = []
        for a, p in zip(left.rows, left.shapes()):
            mine = []
            for b, q in zip(right.rows, right.shapes()):
                r = a[2]["reach"] if reach == "left" else b[2]["reach"]
                r = r if isinstance(reach, str) else reach
                if r is not None and p.Distance(q) <= r and test(a[2], b[2]):
                    mine.append(b)
            pairs.append(mine)
        for stream in ("join", "input"):
            out = f"{stream}.gpkg"
            aggregate(*given, "-overwrite", "-agg", ", ".join(words), out, "a.gpkg",
                      "b.gpkg", op="dwithin", stream=stream)
            compare(Layer(out).rows, pairs, words, f"{given} {stream}")


def check_self_join():
    zones, points = random_layers(random.Random(12))
    dumps = []
    for stream in ("join", "input"):
        aggregate("-max_distance", "2", "-agg", "count, sum(n), concat(i)",
                  f"{stream}.gpkg", points, points, op="dwithin", stream=stream)
        dumps.append(dump(f"{stream}.gpkg"))
    same(dumps[0], dumps[1])
    many = Layer(points)
    pairs = pairs_of(many, many, lambda a, b: a.Distance(b) <= 2)
    pairs = [[r for r in p if r[0] != row[0]] for p, row in zip(pairs, many.rows)]
    compare(Layer("join.gpkg").rows, pairs, ["count", "sum(n)", "concat(i)"])


def check_reprojected_join_layer():
    zones, points = random_layers(random.Random(13))
    gdal.VectorTranslate("far.gpkg", points, dstSRS="EPSG:32118", reproject=True)
    dumps = []
    for stream in ("join", "input"):
        aggregate("-agg", "count, sum(f), concat(s)", f"{stream}.gpkg", zones,
                  "far.gpkg", stream=stream, op="intersects")
        dumps.append(dump(f"{stream}.gpkg"))
    same(dumps[0], dumps[1])


@once
def check_weighted_sum():
    zones = [(box(0, 0, 10, 10), {}), (box(10, 0, 10, 10), {}), (box(90, 0, 5, 5), {})]
    make("zones.gpkg", zones)
    shares = [
        (box(8, 2, 8, 4), {"v": 100.0}),
        (box(1, 1, 2, 2), {"v": 7.0}),
        ("LINESTRING (5 8, 15 8, 15 18)", {"v": 40.0}),
        ("POINT (3 3)", {"v": 3.0}),
        ("POINT (10 5)", {"v": 5.0}),
        (box(12, 2, 1, 1), {"v": None}),
    ]
    make("parts.gpkg", shares, [("v", ogr.OFTReal)])
    aggregate("-agg", "weighted_sum(v), count", "out.gpkg", "zones.gpkg",
              "parts.gpkg", op="intersects")
    got = Layer("out.gpkg")
    same(got.column("weighted_sum_v")[2], None)
    near(got.column("weighted_sum_v")[0], 25 + 7 + 10 + 3 + 5, 1e-9)
    near(got.column("weighted_sum_v")[1], 75 + 40 * 7 / 20 + 5, 1e-9)
    same(got.column("count"), [5, 4, 0])
    zones, points = random_layers(random.Random(14), n_points=300)
    aggregate("-overwrite", "-agg", "weighted_sum(i), sum(i)", "out.gpkg", zones, points)
    for row in Layer("out.gpkg").rows:
        near(row[2]["weighted_sum_i"], row[2]["sum_i"], 0)


# --- columns of the pairs ---------------------------------------------------


def check_columns_of_pairs():
    """Compares aggregates of a join's columns with the rows that the join itself writes."""
    draw = random.Random(31)
    squares = [
        (box(draw.randint(0, 40), draw.randint(0, 40), draw.randint(1, 9), draw.randint(1, 9)),
         {"v": random_value(ogr.OFTReal, draw), "name": draw.choice(["ab", "abc", "bcd", None])})
        for _ in range(60)
    ]
    squares[7] = (None, {"v": 1.0})
    fields = [("v", ogr.OFTReal), ("name", ogr.OFTString)]
    make("a.gpkg", squares, fields)
    lines = [(f"LINESTRING ({x} {x}, {x + 5} {x + 9}, {x} {x + 9})", {"v": float(x), "name": "abc"})
             for x in range(0, 40, 3)]
    make("b.gpkg", squares[30:] + lines, fields)
    columns = ["overlap_area", "overlap_length", "overlap_percent"]
    points = ["nearest_x", "nearest_y", "join_bearing"]
    of_points = ["-nearest_point_fields", "-bearing_field"]
    for given, names, more in (
        (["-op", "nearest", "-k", "4"], ["join_distance", "join_rank", *points], of_points),
        (["-op", "nearest", "-ties", "all"], ["join_distance", "join_rank"], []),
        (["-op", "dwithin", "-max_distance", "3"], ["join_distance", *points], of_points),
        (["-op", "intersects"], columns, ["-overlap", "area,length,percent"]),
        (["-op", "similar", "-similar", "name:0.2", "-k", "3"], ["join_similarity", "join_rank"], []),
        (["-op", "nearest", "-k", "2", "-similar", "name:0.2"], ["join_distance", "join_similarity"], []),
    ):
        succeeds(*given, *more, "-overwrite", "rows.gpkg", "a.gpkg", "b.gpkg")
        groups, rows = {}, Layer("rows.gpkg")
        for fid, wkb, row in rows.rows:
            groups.setdefault((wkb, row["v"], row["name"]), []).append((fid, wkb, row))
        words = ["count"] + [
            f"{what}({name})" for name in ["join_fid", *names]
            for what in ("mean", "min", "max", "median", "range", "unique", "count", "q1", "minority")
        ] + [f"weighted_mean({names[0]},{names[-1]})", f"weighted_mean({names[0]},v) as by_v"]
        aggregate(*given[2:], "-overwrite", "-agg", ", ".join(words), "agg.gpkg", "a.gpkg", "b.gpkg", op=given[1])
        got = Layer("agg.gpkg")
        for fid, wkb, row in got.rows:
            mine = [m for m in groups[(wkb, row["v"], row["name"])] if m[2]["join_fid"] is not None]
            n_alike = sum(1 for other in got.rows
                          if (other[1], other[2]["v"], other[2]["name"]) == (wkb, row["v"], row["name"]))
            if n_alike > 1:
                continue  # the group has rows of several equal features
            same(row["count"], len(mine), given)
            for word in words[1:-1]:
                function, name = word.rstrip(")").split("(")
                name, _, second = name.partition(",")
                want = expected(function, (name, second) if second else name, mine)
                same(row[f"{function}_{name}"], want, f"{given} {word} of {fid}")
            same(row["by_v"], expected("weighted_mean", (names[0], "join_v"), mine), f"{given} by v")


def check_columns_of_pairs_in_place_and_in_tiles():
    zones, points = random_layers(random.Random(32))
    words = "mean(join_distance) as far, max(join_rank) as most, concat(join_fid) as which"
    for memory in ([], ["-memory", "1"], ["-batch", "3"]):
        aggregate("-k", "5", *memory, "-overwrite", "-agg", words, "out.gpkg", points,
                  zones, op="nearest")
        shutil.copy(points, "in.gpkg")
        aggregate("-in_place", "-k", "5", *memory, "-agg", words, "in.gpkg", zones,
                  op="nearest")
        got = [[row[2][name] for name in ("far", "most", "which")] for row in Layer("out.gpkg").rows]
        true(sum(1 for row in got if row[1] == 5) > 500, got[:5])
        same([[row[2][name] for name in ("far", "most", "which")] for row in Layer("in.gpkg").rows], got, memory)
        if not memory:
            first = got
        same(got, first, memory)


@once
def check_overlap_as_weight():
    """weighted_mean weights polygons by the area of the overlap, lines by its length,
    and points by 1."""
    make("zones.gpkg", [(box(0, 0, 10, 10), {}), (box(10, 0, 10, 10), {}), (box(90, 0, 5, 5), {})])
    make("parts.gpkg", [(box(8, 2, 8, 4), {"v": 100.0}), (box(1, 1, 2, 2), {"v": 7.0}),
                        (box(12, 2, 1, 1), {"v": None})], [("v", ogr.OFTReal)])
    make("lines.gpkg", [("LINESTRING (5 8, 15 8, 15 18)", {"v": 40.0}), ("LINESTRING (0 1, 1 1)", {"v": 4.0})],
         [("v", ogr.OFTReal)])
    make("points.gpkg", [("POINT (3 3)", {"v": 3.0}), ("POINT (10 5)", {"v": 5.0})], [("v", ogr.OFTReal)])
    for name, wanted in (
        ("parts", [(100 * 8 + 7 * 4) / 12, 100.0, None]),
        ("lines", [(40 * 5 + 4) / 6, 40.0, None]),
        ("points", [4.0, 5.0, None]),
    ):
        aggregate("-overwrite", "-agg", "weighted_mean(v), max(overlap_area)", "out.gpkg", "zones.gpkg",
                  f"{name}.gpkg", op="intersects")
        same(Layer("out.gpkg").column("weighted_mean_v"), wanted, name)
    make("roads.gpkg", [("LINESTRING (2 2, 10 2)", {}), ("LINESTRING (0 1, 1 1)", {})])
    make("spots.gpkg", [("POINT (2 2)", {}), ("POINT (9 3)", {})])
    for name, wanted in (("roads", [(7 * 1 + 100 * 2) / 3, None]), ("spots", [7.0, 100.0])):
        aggregate("-agg", "weighted_mean(v)", f"of_{name}.gpkg", f"{name}.gpkg", "parts.gpkg", op="intersects")
        same(Layer(f"of_{name}.gpkg").column("weighted_mean_v"), wanted, name)


@once
def check_covered():
    """The area and the length that all join features cover together count each place
    once. They are 0 without pairs."""
    make("zones.gpkg", [(box(0, 0, 10, 10), {}), (box(50, 0, 5, 5), {}), ("LINESTRING (0 5, 20 5)", {})])
    make("parts.gpkg", [(box(-5, 0, 9, 10), {}), (box(2, 0, 6, 10), {}), (box(20, 20, 1, 1), {})])
    for given in ([], ["-memory", "1"], ["-batch", "1"]):
        aggregate(*given, "-overwrite", "-agg", "covered_area, covered_percent, covered_length, count", "out.gpkg",
                  "zones.gpkg", "parts.gpkg", op="intersects")
        got = Layer("out.gpkg")
        same(got.column("covered_area"), [80.0, 0.0, 0.0], given)
        same(got.column("covered_percent"), [80.0, 0.0, 40.0], given)
        same(got.column("covered_length"), [0.0, 0.0, 8.0], given)
        same(got.column("count"), [2, 0, 2], given)


@once
def check_covered_of_rows_without_size():
    """Nothing can be a percentage of a point, a collapsed polygon or line, or a missing geometry: with
    and without pairs. A polygon whose shoelace area is 0 has an area nevertheless."""
    near = ["POINT (1 1)", "MULTIPOINT (1 1, 2 2)", "LINESTRING (1 1, 1 1)", "POLYGON ((1 1, 2 2, 3 3, 1 1))"]
    far = [*(shape.replace("1", "91") for shape in near), "GEOMETRYCOLLECTION EMPTY", None]
    sized = ["POLYGON ((90 0, 92 2, 92 0, 90 2, 90 0))", box(90, 0, 1, 1), "LINESTRING (90 1, 91 1)"]
    make("rows.gpkg", [(shape, {}) for shape in [*near, *far, *sized]])
    make("parts.gpkg", [(box(0, 0, 10, 10), {})])
    wanted = [None] * (len(near) + len(far)) + [0.0] * len(sized)
    for given in ([], ["-memory", "1"], ["-batch", "1"]):
        aggregate(*given, "-overwrite", "-agg", "covered_percent, covered_area, covered_length", "out.gpkg",
                  "rows.gpkg", "parts.gpkg", op="intersects")
        got = Layer("out.gpkg")
        same(got.column("covered_percent"), wanted, given)
        for name in ("covered_area", "covered_length"):
            same(got.column(name), [0.0] * len(wanted), (name, given))
    aggregate("-in_place", "-agg", "covered_percent", "rows.gpkg", "parts.gpkg", op="intersects")
    same(Layer("rows.gpkg").column("covered_percent"), wanted, "-in_place")


@once
def check_covered_percent_of_invalid_rows():
    """The whole of a polygon that crosses itself is what its rings enclose, as the covered part of it
    is. The formula for the area of a valid ring would give 0 and 1.5 here."""
    make("zones.gpkg", [("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", {}), ("POLYGON ((0 0, 2 2, 3 0, 0 3, 0 0))", {}),
                        ("POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0), (2 0, 5 0, 5 1, 2 1, 2 0))", {})])
    make("parts.gpkg", [(box(-1, -1, 9, 9), {}), (box(-1, -1, 2, 9), {})])
    for where, wanted in (("1 = 1", [100.0, 100.0, 100.0]), ("fid = 2", [50.0, 200 / 3, 25.0])):
        aggregate("-overwrite", "-join_where", where, "-agg", "covered_percent", "out.gpkg", "zones.gpkg",
                  "parts.gpkg", op="intersects")
        got = Layer("out.gpkg").column("covered_percent")
        for percent, value in zip(got, wanted):
            near(percent, value, 1e-12, where)


@once
def check_covered_percent_of_a_row_without_shoelace_area():
    """A polygon whose shoelace area is 0 has an area, with pairs of points, lines or polygons, and
    without pairs."""
    make("zones.gpkg", [("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", {})])
    for part, wanted in (("POINT (0.1 1)", 0.0), ("LINESTRING (0.1 1, 0.2 1)", 0.0), (box(0, 0, 1, 1), 25.0),
                         ("POINT (9 9)", 0.0)):
        make("parts.gpkg", [(part, {})])
        aggregate("-overwrite", "-agg", "covered_percent", "out.gpkg", "zones.gpkg", "parts.gpkg", op="intersects")
        same(Layer("out.gpkg").column("covered_percent"), [wanted], part)


@once
def check_covered_area_beside_lengths():
    """The covered area is measured by even-odd also where lengths are asked for, which GEOS measures:
    the second ring encloses a part of the zone, though it is outside of the first one."""
    make("zones.gpkg", [("POLYGON ((6 1, 5 0, 1 0, 2 3, 6 1))", {})])
    make("parts.gpkg", [("POLYGON ((5 2, 5 5, 9 5, 9 2, 5 2), (2 2, 4 2, 4 4, 2 4, 2 2))", {}),
                        ("LINESTRING (1 0, 2 0)", {}), (box(2, 5, 1, 4), {})])
    for columns in ("covered_area", "covered_area, covered_length"):
        aggregate("-overwrite", "-agg", columns, "out.gpkg", "zones.gpkg", "parts.gpkg", op="bbox")
        same(Layer("out.gpkg").column("covered_area"), [1.0], columns)
    same(Layer("out.gpkg").column("covered_length"), [1.0])


@once
def check_names_of_pairs():
    """A field of the join layer hides a column of pairs with its name. -name_distance
    renames the column of pairs. Then some aggregate must use the new name."""
    make("a.gpkg", [("POINT (0 0)", {})])
    make("b.gpkg", [("POINT (3 4)", {"join_distance": 7.0, "v": 2})],
         [("join_distance", ogr.OFTReal), ("v", ogr.OFTInteger)])
    r = aggregate("-agg", "mean(join_distance)", "out.gpkg", "a.gpkg", "b.gpkg", op="nearest")
    same(Layer("out.gpkg").column("mean_join_distance"), [7.0])
    true("means the field of the join layer" in r.err, r)
    r = aggregate("-overwrite", "-name_distance", "d", "-agg", "mean(d), max(v)", "out.gpkg", "a.gpkg", "b.gpkg",
                  op="nearest")
    same(Layer("out.gpkg").column("mean_d"), [5.0])
    true("hides" not in r.err, r)
    for given, message in (
        (["-name_distance", "d", "-agg", "max(v)"], "no aggregate uses 'd'"),
        (["-name_distance", "V", "-agg", "max(v)"], "already"),
        (["-name_fid", "", "-agg", "count"], "no such column"),
        (["-agg", "max(join_rank)"], ["no field 'join_rank'", "pairs have: join_fid, join_distance, overlap_area"]),
        (["-agg", "stdev(v)"], "write stddev"),
        (["-agg", "count(distinct v)"], "unique(v)"),
        (["-overlap", "area", "-agg", "count"], "max(overlap_area)"),
    ):
        fails("-op", "nearest", *given, "no.gpkg", "a.gpkg", "b.gpkg", message=message, op=False)


@once
def check_ranges_that_do_not_fit():
    make("zones.gpkg", [(box(0, 0, 9, 9), {})])
    big = [("POINT (1 1)", {"n": 2**62}), ("POINT (2 2)", {"n": -(2**62)})]
    make("points.gpkg", big, [("n", ogr.OFTInteger64)], kind=ogr.wkbPoint)
    fails("-op", "contains", "-agg", "range(n)", "out.gpkg", "zones.gpkg", "points.gpkg",
          message=["column 'range_n'", "row 1, counted", "64 bits"], op=False)


@once
def check_spilled_values():
    zones, points = random_layers(random.Random(15), n_points=10000)
    words = ("median(f), mode(s), unique(n), concat(s,'; '), mode(d), concat(i), count, "
             "percentile(f, 31), q1(f), minority(s), minority(n), minority(d)")
    whole = []
    for memory in ([], ["-memory", "1"], ["-memory", "200K"]):
        for stream in ("join", "input"):
            aggregate(*memory, "-overwrite", "-agg", words, "out.gpkg", zones, points,
                      stream=stream)
            whole.append(dump("out.gpkg"))
    same(len(set(whole)), 1, "with and without spilling")
    left = [name for name in os.listdir(".") if "ogrjoin" in name]
    same(left, [], "left behind")


def check_in_place():
    words = ["count", "sum(f)", "median(i)", "concat(s,'; ')", "first(t)", "mode(s)"]
    zones, points = random_layers(random.Random(21))
    pairs = pairs_of(Layer(zones), Layer(points), lambda a, b: a.Contains(b))
    before = Layer(zones)
    for stream in ("join", "input"):
        shutil.copy(zones, f"{stream}.gpkg")
        for _ in range(2):  # adds, then refreshes
            aggregate("-in_place", "-agg", ", ".join(words), f"{stream}.gpkg",
                      points, stream=stream)
            got = Layer(f"{stream}.gpkg")
            compare(got.rows, pairs, words, stream)
            same([row[:2] for row in got.rows], [row[:2] for row in before.rows])
        fails("-in_place", "-op", "contains", "-agg", "sum(f), count", f"{stream}.gpkg",
              points, message="-in_place", op=False)
    aggregate("-in_place", "-k", "3", "-agg", "mean(f) as near", zones, points,
              op="nearest")
    same("near" in Layer(zones).fields, True)


@once
def check_names_that_clash():
    zones, points = random_layers(random.Random(16))
    aggregate("-agg", "count as name_2, sum(i)", "first.gpkg", zones, points)
    r = aggregate("-agg", "count, sum(i)", "second.gpkg", "first.gpkg", points)
    true("renamed" in r.err, r)
    same(list(Layer("second.gpkg").fields),
         ["name", "name_2", "sum_i", "count_2", "sum_i_2"])


@once
def check_quoted_names():
    zones, points = random_layers(random.Random(17))
    aggregate("-agg", ' COUNT ,Sum( "odd, ""name""" ) AS "a b", max(I)as M', "out.csv",
              zones, points)
    same(list(Layer("out.csv").fields), ["name", "COUNT".lower(), "a b", "M"])


@once
def check_bad_words():
    random_layers(random.Random(18))
    files = ["out.gpkg", "zones.gpkg", "points.gpkg"]
    for words, message in (
        ("", "function is missing"),
        ("summ(f)", ["no function 'summ'", "weighted_sum"]),
        ("sum", "needs a field"),
        ("sum()", "needs the name of a field"),
        ("sum(nothing)", ["nothing", "odd"]),
        ("sum(s)", ["needs numbers", "String"]),
        ("median(d)", "needs numbers"),
        ("count,", "function is missing"),
        ("count sum(f)", "write a comma between aggregates"),
        ("sum(f", "not closed"),
        ("sum(f,i)", "one field"),
        ("concat(s, ;)", "quotes"),
        ("concat(s, ';)", "not closed"),
        ("sum(f), SUM(f)", "two columns"),
        ("count as name", "another name"),
        ("count as", "the name after"),
    ):
        fails("-op", "contains", "-agg", words, *files, message=message, op=False)
    for given, message in (
        (["-how", "semi"], "-how semi"),
        (["-how", "full"], "-how"),
        (["-pick", "first"], "do not go together"),
        (["-name_count", "n"], "count as n"),
    ):
        fails("-op", "contains", "-agg", "count", *given, *files, message=message, op=False)


def check_integer_sums_that_do_not_fit():
    make("zones.gpkg", [(box(0, 0, 9, 9), {})])
    big = [("POINT (1 1)", {"n": 2**62}), ("POINT (2 2)", {"n": 2**62})]
    make("points.gpkg", big, [("n", ogr.OFTInteger64)], kind=ogr.wkbPoint)
    fails("-op", "contains", "-agg", "sum(n)", "out.gpkg", "zones.gpkg", "points.gpkg",
          message=["column 'sum_n'", "row 1, counted", "64 bits"], op=False)
    for words in "mean(n)", "AVG(n)":  # the SQL name of mean
        aggregate("-overwrite", "-agg", words, "out.gpkg", "zones.gpkg", "points.gpkg")
        same(Layer("out.gpkg").column("mean_n"), [float(2**62)])


def check_the_larger_layer_streams():
    """Checks in the summary which layer streams. The streaming layer has no index."""
    zones, points = random_layers(random.Random(19))
    r = aggregate("-agg", "count", "-json_summary", "s.json", "out.gpkg", zones, points)
    got = summary("s.json")
    same(got["rows_in"], 30)
    same(got["pairs"], sum(Layer("out.gpkg").column("count")))
    same(got["matched"], sum(1 for n in Layer("out.gpkg").column("count") if n))
    true("30 rows in" in r.err, r)


def check_many_points():
    """There are so many points that the engine builds a grid of cells. The results must
    equal those of a streaming input, bit for bit, for values in any order."""
    draw = random.Random(23)
    zones, _ = random_layers(draw)
    rows = []
    for i in range(210000):
        x, y = draw.uniform(-5, 125), draw.uniform(-5, 110)
        if i % 7 == 0:
            x, y = float(round(x)), float(round(y))
        value = None if i % 11 == 0 else draw.gauss(0, 1) * 10.0 ** draw.randint(-12, 12)
        row = {"f": value, "n": draw.randint(-(2**40), 2**40), "s": WORDS[i % 6]}
        rows.append((None if i % 1009 == 0 else f"POINT ({x!r} {y!r})", row))
    make("many.fgb", rows, [("f", ogr.OFTReal), ("n", ogr.OFTInteger64), ("s", ogr.OFTString)],
         kind=ogr.wkbPoint, lco=["SPATIAL_INDEX=NO"])
    for op in ("contains", "touches"):
        for words in ("count, sum(f), mean(f), sum(n), count(f)",
                      "count, stddev(f), stddev(n), min(f), max(n), first(s), last(f), min(s), max(s)"):
            dumps = []
            for stream in ("join", "input"):
                aggregate("-agg", words, "-overwrite", "out.gpkg", zones, "many.fgb",
                          stream=stream, op=op)
                dumps.append(dump("out.gpkg"))
            same(dumps[0], dumps[1], f"{op} {words}")
    true(sum(Layer("out.gpkg").column("count")) > 100, "no pairs")
    r = run("-explain", "-op", "contains", "-agg", "count", "o.gpkg", zones, "many.fgb")
    true(r.rc == 0 and "join layer, the larger side, streams" in r.out, r)
    r = run("-explain", "-op", "within", "-agg", "count", "o.gpkg", "many.fgb", zones)
    true(r.rc == 0 and "input layer streams" in r.out, r)
    fails("-explain", "-op", "contains", "-agg", "sum(nofield)", "o.gpkg", zones, "many.fgb",
          message="nofield", op=False)


@once
def check_words_of_sql():
    random_layers(random.Random(21))
    aggregate("-agg", "count(*), COUNT( * ) as n, avg(f)", "out.gpkg", "zones.gpkg", "points.gpkg")
    aggregate("-agg", "count, count as n, mean(f)", "same.gpkg", "zones.gpkg", "points.gpkg")
    same(Layer("out.gpkg").rows, Layer("same.gpkg").rows)


def check_empty_layers():
    random_layers(random.Random(20))
    make("none.gpkg", [], FIELDS, kind=ogr.wkbPoint)
    for stream in ("join", "input"):
        aggregate("-overwrite", "-agg", "count, sum(f), unique(s)", "out.gpkg",
                  "zones.gpkg", "none.gpkg", stream=stream)
        got = Layer("out.gpkg")
        same(got.column("count"), [0] * 30)
        same(got.column("sum_f"), [None] * 30)
        aggregate("-overwrite", "-agg", "count, sum(f)", "no.gpkg", "none.gpkg",
                  "points.gpkg", stream=stream, op="intersects")
        same(len(Layer("no.gpkg").rows), 0)


def check_real_zones():
    """Pickups in taxi zones and census tracts. The expected numbers of pairs were found
    by GEOS."""
    zones = need_data("nyc_polygons.gpkg")
    gdal.VectorTranslate("p.gpkg", need_data("uber_2014_apr_2263.vrt"), format="GPKG")
    points = Layer("p.gpkg")
    words = ["count", "min(t)", "mode(base)", "unique(t)", "last(lon)"]
    for name, n_pairs, n_hit in (("taxi_zones", 63437, 235), ("tracts2010", 62902, 1258)):
        dumps = []
        for stream in ("join", "input"):
            aggregate("-input_layer", name, "-select", "", "-agg", ", ".join(words),
                      f"{name}_{stream}.gpkg", zones, "p.gpkg", op="intersects",
                      stream=stream)
            dumps.append(dump(f"{name}_{stream}.gpkg"))
        same(dumps[0], dumps[1], name)
        got = Layer(f"{name}_join.gpkg")
        counts = got.column("count")
        same((sum(counts), sum(1 for n in counts if n)), (n_pairs, n_hit), name)
    dataset = gdal.OpenEx("p.gpkg", gdal.OF_VECTOR)
    layer, rows = dataset.GetLayer(0), {row[0]: row for row in points.rows}
    got, pairs = Layer("taxi_zones_join.gpkg"), []
    for zone in got.shapes():
        layer.SetSpatialFilter(zone)
        pairs.append([rows[f.GetFID()] for f in layer])
        pairs[-1].sort(key=lambda row: row[0])
    compare(got.rows, pairs, words, "taxi zones")


@once
def check_sums_of_a_device():
    """Counts and sums that a device computes without making pairs, with a fake CUDA
    module. The results are those of the CPU, whatever the fake device can do. The
    summary names the backend."""
    if "FAKE_MODULE" not in os.environ:
        raise Skip("FAKE_MODULE names no library")
    draw = random.Random(9)
    spots = [f"POINT ({x} {y})" for x in range(12) for y in range(12)]
    make("few.gpkg", [(spot, {}) for spot in spots])
    odd = [0.0, -0.0, 5e-324, 1e300, -1e300, float("inf"), None, None]
    many = [(draw.choice(spots[:130]), {
        "f": draw.random(),
        "g": draw.choice(odd) if draw.random() < 0.1 else draw.random(),
        "i": draw.choice([None, 7, -2 ** 31, 2 ** 31 - 1]),
        "l": draw.choice([None, 0, 2 ** 55, -2 ** 55 - 1]),
        "t": draw.choice([None, "a", ""])}) for _ in range(3000)]
    fields = [("f", ogr.OFTReal), ("g", ogr.OFTReal), ("i", ogr.OFTInteger),
              ("l", ogr.OFTInteger64), ("t", ogr.OFTString)]
    make("many.gpkg", many, fields=fields)
    unmade = "3000 pairs, added up on the GPU"
    dumps = {}
    for number, agg in enumerate((
            "count", "count, sum(f)", "sum(i), mean(l), sum(l), count(t), count(i)",
            "mean(g), count(f), sum(g), count(g)", "count, sum(f), max(i)")):
        summed = "max" not in agg
        for backend, how, message, all_unmade in (
            ("cpu", "", "backend cpu,", False),
            ("cuda", "", "backend cuda,", summed),
            ("cuda", "plain", "backend cuda,", False),
            ("cuda", "mute", "backend cuda,", summed),  # the fake device can only sum
            ("cuda", "full", "(ran on the CPU, since the fake device is full; -memory SIZE makes tiles, which need less)", False),
            ("cuda", "refuse", "(ran on the CPU, since too large)", False),
            ("cuda", "crowded", "(ran on the CPU, since the fake device is crowded; a smaller -gpu_batch needs less)", False),
            ("cuda", "second", "(took a slower method on the GPU, since the better fake method is full)", summed),
        ):
            if number > 1 and how not in ("", "mute"):
                continue  # which backend answers does not depend on the aggregate
            env = {"OGRJOIN_CUDA_MODULE": os.environ["FAKE_MODULE"], "FAKE_GPU": how}
            out = f"unmade{number}_{backend}_{how}.gpkg"
            if how in ("", "full"):
                r = run("-op", "equals", "-backend", backend, "-agg", agg, "-explain",
                        out, "few.gpkg", "many.gpkg", env=env)
                same("the GPU adds up pairs" in r.out, all_unmade, f"{agg}: {r}")
            r = run("-op", "equals", "-backend", backend, "-agg", agg, "-lco",
                    "SPATIAL_INDEX=NO", "-json_summary", "unmade.json", out,
                    "few.gpkg", "many.gpkg", env=env)
            if how == "mute" and not summed:
                true(r.rc == 1 and "only counts" in r.err, f"should fail: {r}")
                continue
            true(r.rc == 0 and message in r.err, f"should contain {message}: {r}")
            true("3000 pairs" in r.err, f"should say 3000 pairs: {r}")
            same(unmade in r.err, all_unmade, f"{agg}, {how}: {r.err}")
            with open("unmade.json", encoding="utf-8") as file:
                same(json.load(file)["pairs_not_made"], 3000 if all_unmade else 0, how)
            dumps.setdefault(agg, dump(out))
            same(dump(out), dumps[agg], f"{agg}, {backend}, {how}")


if __name__ == "__main__":
    main(globals())
