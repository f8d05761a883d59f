"""Every join, through the command, against GEOS asked about every pair: the
predicates on features of all kinds that meet on a grid of whole numbers,
distances, windows, conditions on attributes, self joins, representative
points, great circles, invalid polygons, bounds on the number of pairs."""

import csv

from e2e import *
from plain_geos import *

PREDICATE_OPS = (*PREDICATES, "contains_properly", "bbox")
MASKS = ("T********", "FF*FF****", "T*F**F***", "*T*******", "****1****",
         "2********", "1*1***1**", "0********", "*********", "T*T***T**", "F***T****")
CRS = "EPSG:2263"


# --- features that meet in every way ----------------------------------------


def ring(corners):
    return "(" + ", ".join(f"{x:g} {y:g}" for x, y in [*corners, corners[0]]) + ")"


def box(x, y, w, h):
    return ring([(x, y), (x + w, y), (x + w, y + h), (x, y + h)])


def polygons(r, n):
    found = []
    for i in range(n):
        x, y = r.randint(0, 8), r.randint(0, 8)
        w, h = r.randint(1, 4), r.randint(1, 4)
        kind = i % 8
        if kind == 0:
            found.append(f"POLYGON ({box(x, y, w, h)})")
        elif kind == 1:  # a hole that touches nothing, or the shell in a corner
            t = r.choice((0, 1))
            hole = ring([(x + t, y + t), (x + 3, y + 2), (x + 2, y + 3)])
            found.append(f"POLYGON ({box(x, y, 4, 4)}, {hole})")
        elif kind == 2:
            a = ring([(x, y), (x + w, y), (x + r.randint(0, 4), y + h)])
            found.append(f"POLYGON ({a})")
        elif kind == 3:  # two boxes that touch in a corner
            found.append(f"MULTIPOLYGON (({box(x, y, w, h)}), ({box(x + w, y + h, 2, 1)}))")
        elif kind == 4:  # an L with repeated vertices
            a = [(x, y), (x, y), (x + 3, y), (x + 3, y + 1), (x + 1, y + 1),
                 (x + 1, y + 1), (x + 1, y + 1), (x + 1, y + 3), (x, y + 3)]
            found.append(f"POLYGON ({ring(a)})")
        elif kind == 5:
            found.append(f"MULTIPOLYGON (({box(x, y, w, h)}), ({box(x + w + 1, y, 1, h)}))")
        elif kind == 6:  # clockwise, the vertices on the grid lines in between
            found.append(f"POLYGON ({ring([(x, y), (x, y + h), (x + w / 2, y + h), (x + w, y + h), (x + w, y)])})")
        else:
            a = [(x, y), (x + 4, y), (x + 4, y + 4), (x + 2, y + 2), (x, y + 4)]
            found.append(f"POLYGON ({ring(a)})")
    return found


def is_line(shape):
    if shape.GetGeometryName() == "LINESTRING":
        return shape.Length() > 0
    return all(is_line(shape.GetGeometryRef(i)) for i in range(shape.GetGeometryCount()))


def lines(r, n):
    found = []

    def path(m):
        steps = []
        for _ in range(m):
            steps.append((r.randint(0, 10), r.randint(0, 10)))
        return steps

    def text(steps):
        return "(" + ", ".join(f"{x:g} {y:g}" for x, y in steps) + ")"

    for i in range(n):
        x, y = r.randint(0, 9), r.randint(0, 9)
        kind = i % 6
        if kind == 0:  # along the grid, where borders are
            found.append(f"LINESTRING {text([(x, y), (x + r.randint(1, 4), y)])}")
        elif kind == 1:
            found.append(f"LINESTRING {text(path(2 + i % 3))}")
        elif kind == 2:  # closed
            found.append(f"LINESTRING {box(x, y, 2, 2)}")
        elif kind == 3:  # a repeated vertex, and back on itself
            found.append(f"LINESTRING {text([(x, y), (x, y), (x, y + 3), (x, y + 1), (x + 2, y + 1)])}")
        elif kind == 4:
            found.append(f"MULTILINESTRING ({text(path(2))}, {text([(x, y), (x, y + 2)])})")
        else:
            found.append(f"MULTILINESTRING ({text([(x, y), (x + 2, y)])}, {text([(x + 2, y), (x + 2, y + 2)])})")
    # A path of one point twice is no line for GEOS.
    return [f for f in found if is_line(ogr.CreateGeometryFromWkt(f))]


def points(r, n):
    found = []
    for i in range(n):
        x, y = r.randint(0, 24) / 2, r.randint(0, 24) / 2
        if i % 5 == 4:
            found.append(f"MULTIPOINT ({x:g} {y:g}, {x:g} {y:g}, {r.randint(0, 12)} {r.randint(0, 12)})")
        else:
            found.append(f"POINT ({x:g} {y:g})")
    return found


ODD = (
    None,
    "POINT EMPTY",
    "LINESTRING EMPTY",
    "POLYGON EMPTY",
    "GEOMETRYCOLLECTION EMPTY",
    "GEOMETRYCOLLECTION (POLYGON EMPTY, MULTIPOINT EMPTY)",
    "GEOMETRYCOLLECTION (POLYGON EMPTY, POINT (2 2))",
    "GEOMETRYCOLLECTION (POINT (4 4), POINT (4 5))",
    "GEOMETRYCOLLECTION (POLYGON ((1 1, 5 1, 5 5, 1 5, 1 1)), POINT (8 8))",
    "GEOMETRYCOLLECTION (LINESTRING (0 0, 6 6), POINT (3 1), POLYGON ((7 7, 9 7, 9 9, 7 7)))",
    "GEOMETRYCOLLECTION (LINESTRING (0 3, 6 3), LINESTRING (6 3, 6 9))",
    "POINT Z (3 3 7)",
    "POINT M (3 4 7)",
    "POINT ZM (5 5 1 2)",
    "LINESTRING ZM (1 1 5 6, 1 4 5 6, 4 4 5 6)",
    "POLYGON Z ((2 2 1, 6 2 2, 6 6 3, 2 6 4, 2 2 1))",
    "MULTIPOLYGON M (((0 0 1, 2 0 2, 2 2 3, 0 2 4, 0 0 1)))",
    "CIRCULARSTRING (0 4, 4 8, 8 4)",
    "COMPOUNDCURVE ((0 0, 4 0), CIRCULARSTRING (4 0, 6 2, 8 0))",
    "CURVEPOLYGON (CIRCULARSTRING (3 3, 6 6, 9 3, 6 0, 3 3))",
    "MULTISURFACE (((4 0, 6 0, 6 2, 4 0)), CURVEPOLYGON (CIRCULARSTRING (0 8, 2 10, 4 8, 2 6, 0 8)))",
)

BOW_TIES = (
    "POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))",
    "POLYGON ((5 5, 9 9, 9 5, 5 9, 5 5))",
    "MULTIPOLYGON (((2 2, 6 2, 6 6, 2 6, 2 2)), ((4 4, 8 4, 8 8, 4 8, 4 4)))",
    "POLYGON ((1 1, 7 1, 7 7, 1 7, 1 1), (5 5, 9 5, 9 9, 5 9, 5 5))",
)


def rows_of(shapes, key):
    rows = []
    for i, shape in enumerate(shapes):
        # in groups that repeat, and some are missing
        values = {key: i, f"{key}_code": None if i % 7 == 6 else i % 4,
                  f"{key}_text": None if i % 5 == 4 else str(i % 3)}
        rows.append((shape, values))
    return rows


def fields_of(key):
    return ((key, ogr.OFTInteger), (f"{key}_code", ogr.OFTInteger), (f"{key}_text", ogr.OFTString))


class Side:
    """A layer in a file and the same in memory."""

    def __init__(self, path, shapes, key, **how):
        how.setdefault("srs", CRS)
        self.path, self.key = path, key
        self.rows = rows_of(shapes, key)
        make(path, self.rows, fields_of(key), **how)
        self.shapes = [Shape(ogr.CreateGeometryFromWkt(s) if s else None) for s in shapes]

    def __len__(self):
        return len(self.rows)


def all_kinds(seed, n=16):
    r = random.Random(seed)
    return [*polygons(r, n), *lines(r, n), *points(r, n), *ODD]


def pairs_of(path, left="id", right="jid"):
    """(id, jid) of an output, in its order."""
    with open(path, encoding="utf-8", newline="") as file:
        return [(int(row[left]), int(row[right])) for row in csv.DictReader(file)]


def ask(a, b, *words, out="o.csv"):
    """The pairs that the command finds, and what it says."""
    r = run("-how", "inner", *words, "-select", a.key, "-join_select", b.key,
            "-overwrite", out, a.path, b.path)
    true(r.rc == 0 and "ERROR" not in r.err, f"should succeed: {r}")
    right = b.key if a.key != b.key else "join_" + b.key
    return pairs_of(out, a.key, right), r


def expect(a, b, test):
    """The pairs for which test says True, those that cannot be said counted."""
    found, n_unsaid = [], 0
    for i, x in enumerate(a.shapes):
        for j, y in enumerate(b.shapes):
            said = test(i, j) if x and y else False
            n_unsaid += said == CANNOT_SAY
            if said is True:
                found.append((i, j))
    return found, n_unsaid


def same_pairs(got, expected, what, a=None, b=None):
    if sorted(got) == sorted(expected) and len(set(got)) == len(got):
        return
    lines = [what]
    for title, pairs in (("missing", set(expected) - set(got)), ("surplus", set(got) - set(expected))):
        for i, j in sorted(pairs)[:5]:
            shown = (a.rows[i][0], b.rows[j][0]) if a else ""
            lines.append(f"{title} {len(pairs)}: {i} {j} {shown}")
    raise AssertionError("\n".join(lines))


# --- predicates ---------------------------------------------------------------


def undecided(r):
    """How many pairs the command says that GEOS cannot decide."""
    for line in r.err.splitlines():
        if "cannot say whether" in line:
            return int(line.split("whether ")[1].split(" ")[0])
    return 0


def check_predicates_of_all_kinds():
    a = Side("a.gpkg", all_kinds(1), "id")
    b = Side("b.gpkg", all_kinds(2), "jid")
    true(all(s.is_valid for s in a.shapes + b.shapes if s), "only valid features")
    for op in PREDICATE_OPS:
        wanted, n = expect(a, b, lambda i, j: holds(op, a.shapes[i], b.shapes[j]))
        got, r = ask(a, b, "-op", op)
        same_pairs(got, wanted, op, a, b)
        same(got, sorted(got), f"{op}: rows in the order of both FIDs")
        same(undecided(r), n, f"{op}: undecided pairs of {r}")
        true(len(wanted) > 1, f"{op} finds something")


def check_masks():
    a = Side("a.gpkg", all_kinds(3), "id")
    b = Side("b.gpkg", all_kinds(4), "jid")
    for mask in MASKS:
        wanted, n = expect(a, b, lambda i, j: holds("relate", a.shapes[i], b.shapes[j], mask))
        got, r = ask(a, b, "-relate", mask)
        same_pairs(got, wanted, mask, a, b)
        same(undecided(r), n, f"{mask}: undecided pairs of {r}")
    small, _ = ask(a, b, "-op", "relate", "-relate", "t*f**f***")
    same(small, ask(a, b, "-relate", "T*F**F***")[0], "small letters")


def check_one_kind_on_each_side():
    """Layers of one kind take other ways than mixed ones."""
    makers = {"points": points, "lines": lines, "polygons": polygons}
    for left in makers:
        for right in makers:
            a = Side("a.fgb", makers[left](random.Random(left), 40), "id", lco=["SPATIAL_INDEX=NO"])
            b = Side("b.fgb", makers[right](random.Random(right), 40), "jid", lco=["SPATIAL_INDEX=NO"])
            for op in PREDICATE_OPS:
                wanted, _ = expect(a, b, lambda i, j: holds(op, a.shapes[i], b.shapes[j]))
                got, _ = ask(a, b, "-op", op)
                same_pairs(got, wanted, f"{left} {op} {right}", a, b)
            os.remove("a.fgb")
            os.remove("b.fgb")


def check_formats_of_both_sides():
    kinds = {"shp": polygons, "geojson": points, "csv": lines, "fgb": polygons, "gpkg": points}
    for left, make_left in kinds.items():
        a = Side(f"a.{left}", make_left(random.Random(left), 30), "id", lco=["GEOMETRY=AS_WKT"] if left == "csv" else [])
        for right, make_right in kinds.items():
            b = Side(f"b.{right}", make_right(random.Random(right), 30), "jid", lco=["GEOMETRY=AS_WKT"] if right == "csv" else [])
            for op in ("intersects", "touches", "disjoint"):
                wanted, _ = expect(a, b, lambda i, j: holds(op, a.shapes[i], b.shapes[j]))
                got, _ = ask(a, b, "-op", op, "-s_srs", CRS, "-join_srs", CRS)
                same_pairs(got, wanted, f"{left} {op} {right}", a, b)
            for extension in ("shx", "dbf", "prj", "cpg", "csvt", right):
                if os.path.exists(f"b.{extension}"):
                    os.remove(f"b.{extension}")


def check_backends_threads_and_batches():
    a = Side("a.gpkg", all_kinds(5, 24), "id")
    b = Side("b.gpkg", all_kinds(6, 24), "jid")
    for words in (("-op", "intersects"), ("-op", "within"), ("-op", "disjoint"),
                  ("-relate", "F***T****"), ("-op", "dwithin", "-max_distance", 1), ("-k", 3)):
        wanted, _ = ask(a, b, *words)
        for how in (("-threads", 1), ("-threads", 3, "-batch", 5), ("-batch", 1),
                    ("-backend", "geos"), ("-backend", "geos_sorted"), ("-backend", "spatialindex")):
            same(ask(a, b, *words, *how)[0], wanted, f"{words} {how}")


def check_default_join():
    a = Side("a.gpkg", all_kinds(7), "id")
    b = Side("b.gpkg", all_kinds(8), "jid")
    same(ask(a, b)[0], ask(a, b, "-op", "intersects")[0])
    same(ask(a, b, "-k", 2)[0], ask(a, b, "-k", 2, "-op", "nearest")[0])
    same(ask(a, b, "-relate", "T********")[0], ask(a, b, "-op", "relate", "-relate", "T********")[0])


# --- windows ------------------------------------------------------------------


def check_windows():
    a = Side("a.gpkg", all_kinds(9), "id")
    boxes = ((1, 1, 3, 4), (0, 0, 12, 12), (2, 2, 2, 6), (5, 5, 5, 5), (20, 20, 21, 21), (1.5, 1.5, 1.75, 1.75))
    words = []
    for b in boxes:
        words += ["-window", *b]
    shapes = []
    for x0, y0, x1, y1 in boxes:
        if (x0, y0) == (x1, y1):
            shapes.append(f"POINT ({x0} {y0})")
        elif x0 == x1 or y0 == y1:
            shapes.append(f"LINESTRING ({x0} {y0}, {x1} {y1})")
        else:
            shapes.append(f"POLYGON ({box(x0, y0, x1 - x0, y1 - y0)})")
    shapes = [Shape(ogr.CreateGeometryFromWkt(s)) for s in shapes]
    wanted = [(i, j + 1) for i, x in enumerate(a.shapes) for j, y in enumerate(shapes)
              if holds("intersects", x, y) is True]
    for op in ((), ("-op", "window")):
        r = run(*op, *words, "-select", "id", "-overwrite", "o.csv", a.path)
        true(r.rc == 0 and "ERROR" not in r.err, f"should succeed: {r}")
        same(pairs_of("o.csv", "id", "join_fid"), wanted, "rows in boxes")
    # Every row is kept where that is asked for.
    r = run(*words, "-how", "anti", "-overwrite", "o.gpkg", a.path)
    true(r.rc == 0, f"should succeed: {r}")
    same(Layer("o.gpkg").column("id"), [i for i in range(len(a)) if i not in {p[0] for p in wanted}])


def check_window_of_a_layer():
    a = Side("a.gpkg", all_kinds(10), "id")
    b = Side("b.gpkg", all_kinds(11), "jid")

    def envelope(shape):
        if not shape:
            return Shape(None)
        x0, x1, y0, y1 = shape.ogr.GetEnvelope()
        if (x0, y0) == (x1, y1):
            return Shape(ogr.CreateGeometryFromWkt(f"POINT ({x0!r} {y0!r})"))
        if x0 == x1 or y0 == y1:
            return Shape(ogr.CreateGeometryFromWkt(f"LINESTRING ({x0!r} {y0!r}, {x1!r} {y1!r})"))
        corners = f"{x0!r} {y0!r}, {x1!r} {y0!r}, {x1!r} {y1!r}, {x0!r} {y1!r}, {x0!r} {y0!r}"
        return Shape(ogr.CreateGeometryFromWkt(f"POLYGON (({corners}))"))

    boxes = [envelope(s) for s in b.shapes]
    wanted, _ = expect(a, b, lambda i, j: holds("intersects", a.shapes[i], boxes[j]))
    got, _ = ask(a, b, "-op", "window")
    same_pairs(got, wanted, "window", a, b)


# --- distances ------------------------------------------------------------------


def table_of(a, b):
    return {(i, j): distance(x, y) for i, x in enumerate(a.shapes) if x
            for j, y in enumerate(b.shapes) if y}


def check_dwithin():
    a = Side("a.gpkg", all_kinds(12), "id")
    b = Side("b.gpkg", all_kinds(13), "jid")
    table = table_of(a, b)
    for d in (0, 0.5, 1, 2.5, 5, 100):  # many pairs are just so far
        wanted = [p for p, found in table.items() if found <= d]
        got, _ = ask(a, b, "-op", "dwithin", "-max_distance", d)
        same_pairs(got, wanted, f"dwithin {d}", a, b)
        wanted = [p for p, found in table.items() if 1 <= found <= d]
        if d >= 1:
            got, _ = ask(a, b, "-op", "dwithin", "-max_distance", d, "-min_distance", 1)
            same_pairs(got, wanted, f"dwithin 1 to {d}", a, b)
    run("-op", "dwithin", "-max_distance", 5, "-how", "inner", "o.gpkg", a.path, b.path)
    for _, _, values in Layer("o.gpkg").rows:
        near(values["join_distance"], table[values["id"], values["jid"]], 1e-14)


def check_units():
    a = Side("a.gpkg", all_kinds(14), "id")
    b = Side("b.gpkg", all_kinds(15), "jid")
    table = table_of(a, b)
    us_ft = 1200 / 3937  # of EPSG:2263
    for words, d in (("1m", 1 / us_ft), ("0.001km", 1 / us_ft), ("5ft", 5 * 0.3048 / us_ft),
                     ("5us-ft", 5), ("0.001mi", 1.609344 / us_ft)):
        got, _ = ask(a, b, "-op", "dwithin", "-max_distance", words)
        same_pairs(got, [p for p, found in table.items() if found <= d], words, a, b)


def check_distances_of_fields():
    """Rows with their own distance: NULL, negative, text, of either side."""
    reach = [0, 0.5, 1, 3, None, -1, 2]
    for extension in (".gpkg", ".geojson"):
        for type in (ogr.OFTReal, ogr.OFTString, ogr.OFTInteger):
            sides = []
            for name, key, seed in (("a", "id", 16), ("b", "jid", 17)):
                shapes = points(random.Random(seed), 20) + polygons(random.Random(seed), 16) + lines(random.Random(seed), 10)
                side = Side(f"{name}0.gpkg", shapes, key)
                rows = []
                side.reach = []
                for i, row in enumerate(side.rows):
                    value = reach[i % len(reach)]
                    if type == ogr.OFTInteger and value is not None:
                        value = int(value)
                    side.reach.append(value)
                    told = str(value) if type == ogr.OFTString and value is not None else value
                    rows.append((row[0], {**row[1], "reach": told}))
                side.path = name + extension
                make(side.path, rows, (*fields_of(key), ("reach", type)), srs=CRS)
                sides.append(side)
            a, b = sides
            table = table_of(a, b)
            for option, side in (("-max_distance_field", 0), ("-join_max_distance_field", 1)):
                for unit, factor in (("", 1.0), (":m", 3937 / 1200), (":us-ft", 1.0)):
                    own = sides[side].reach
                    wanted = [p for p, d in table.items()
                              if own[p[side]] is not None and own[p[side]] >= 0 and d <= own[p[side]] * factor]
                    got, r = ask(a, b, option, "reach" + unit)
                    same_pairs(got, wanted, f"{option} {unit} {extension}", a, b)
                    n = sum(x is None or x < 0 for x in own)
                    true(f"{n} rows of the {'join' if side else 'input'} layer match nothing" in r.err,
                         f"says how many have no distance: {r}")
            for path in ("a", "b"):
                os.remove(path + extension)
                os.remove(path + "0.gpkg")


def k_nearest(table, n_rows, k=1, ties=False, low=0.0, high=math.inf, may=lambda i, j: True):
    """(i, j, distance), of a row by distance and place; equal up to rounding
    between lines is left to the order of the command."""
    found = []
    for i in range(n_rows):
        near_ones = sorted((d, j) for (r, j), d in table.items()
                           if r == i and low <= d <= high and may(i, j))
        n = k
        while ties and 0 < n < len(near_ones) and near_ones[n][0] == near_ones[k - 1][0]:
            n += 1
        found += [(i, j, d) for d, j in near_ones[:n]]
    return found


def check_nearest_of_all_kinds():
    for seed, maker in ((18, points), (19, lines), (20, polygons), (21, None)):
        shapes = maker(random.Random(seed), 30) if maker else all_kinds(seed)
        a = Side(f"a{seed}.gpkg", shapes, "id")
        b = Side(f"b{seed}.gpkg", all_kinds(seed + 100), "jid")
        table = table_of(a, b)
        for words, how in (
            ((), {}),
            (("-k", 4), {"k": 4}),
            (("-ties", "all"), {"ties": True}),
            (("-k", 3, "-ties", "all"), {"k": 3, "ties": True}),
            (("-k", 1000), {"k": 1000}),
            (("-max_distance", 1), {"high": 1}),
            (("-min_distance", 1, "-k", 2), {"low": 1, "k": 2}),
            (("-min_distance", 1, "-max_distance", 2, "-k", 5), {"low": 1, "high": 2, "k": 5}),
        ):
            wanted = k_nearest(table, len(a), **how)
            got, _ = ask(a, b, "-op", "nearest", *words)
            if got != [w[:2] for w in wanted]:
                # Distances of lines may differ in the last places: so may ties.
                told = [table[p] for p in got]
                same(len(got), len(wanted), f"{words}")
                for d, w in zip(told, wanted):
                    near(d, w[2], 1e-14, f"{words}, {w}")


def check_min_distance_alone():
    a = Side("a.gpkg", points(random.Random(22), 40), "id")
    table = table_of(a, a)
    wanted = k_nearest(table, len(a), low=1.0, may=lambda i, j: i != j)
    got, _ = ask(a, a, "-op", "nearest", "-min_distance", 1)
    same(got, [w[:2] for w in wanted])


# --- self joins and exclusions ------------------------------------------------------


def check_self_joins():
    shapes = [*polygons(random.Random(23), 24), *points(random.Random(23), 10), *ODD]
    a = Side("a.gpkg", shapes + shapes[:5], "id")
    for op in ("intersects", "equals", "touches", "disjoint", "coveredby", "bbox"):
        wanted, _ = expect(a, a, lambda i, j: i != j and holds(op, a.shapes[i], a.shapes[j]))
        got, r = ask(a, a, "-op", op)
        same_pairs(got, wanted, op, a, a)
        true("no feature is joined with itself" in r.err or "itself" in r.err, f"says so: {r}")
        same(ask(a, a, "-op", op, "-exclude", "self")[0], got, "said twice")
        got, _ = ask(a, a, "-op", op, "-unordered_pairs")
        same_pairs(got, [p for p in wanted if p[0] < p[1]], op + " unordered", a, a)
    table = table_of(a, a)
    for words, low in (((), -1), (("-unordered_pairs",), 0)):
        wanted = [p for p, d in table.items() if d <= 1 and (p[0] < p[1] if low == 0 else p[0] != p[1])]
        got, _ = ask(a, a, "-op", "dwithin", "-max_distance", 1, *words)
        same_pairs(got, wanted, f"dwithin {words}", a, a)
    wanted = k_nearest(table, len(a), k=2, may=lambda i, j: i < j)
    got, _ = ask(a, a, "-k", 2, "-unordered_pairs")
    near(sum(table[p] for p in got), sum(w[2] for w in wanted), 1e-9, "two nearest with a larger FID")
    same(len(got), len(wanted))


def check_copies_are_not_self_joins():
    """Another file with the same rows is another layer."""
    shapes = polygons(random.Random(24), 16)
    a, b = Side("a.gpkg", shapes, "id"), Side("b.gpkg", shapes, "jid")
    got, r = ask(a, b, "-op", "equals")
    true(all((i, i) in got for i in range(len(a))), "with its copy")
    true("itself" not in r.err, f"no notice: {r}")
    got, _ = ask(a, b, "-op", "equals", "-exclude", "self")
    true(not any(i == j for i, j in got), "asked for")


def check_exclusions():
    shapes = points(random.Random(25), 30) + polygons(random.Random(25), 16)
    a = Side("a.gpkg", shapes, "id")
    b = Side("b.gpkg", [*shapes[::2], *points(random.Random(26), 10)], "jid")
    table = table_of(a, b)

    def is_copy(i, j):
        return a.rows[i][0] == b.rows[j][0]

    def code(side, i, key):
        return side.rows[i][1][f"{key}_code"]

    def is_same_code(i, j):
        x, y = code(a, i, "id"), code(b, j, "jid")
        return x is not None and x == y

    for words, may in (
        (("-exclude", "same_geometry"), lambda i, j: not is_copy(i, j)),
        (("-exclude", "field=id_code=jid_code"), lambda i, j: not is_same_code(i, j)),
        (("-exclude", "self"), lambda i, j: i != j),
        (("-exclude", "self", "-exclude", "same_geometry", "-exclude", "field=id_code=jid_code"),
         lambda i, j: i != j and not is_copy(i, j) and not is_same_code(i, j)),
    ):
        wanted, _ = expect(a, b, lambda i, j: may(i, j) and holds("intersects", a.shapes[i], b.shapes[j]))
        got, _ = ask(a, b, "-op", "intersects", *words)
        same_pairs(got, wanted, f"{words}", a, b)
        wanted = [p for p, d in table.items() if d <= 2 and may(*p)]
        got, _ = ask(a, b, "-op", "dwithin", "-max_distance", 2, *words)
        same_pairs(got, wanted, f"dwithin {words}", a, b)
        wanted = k_nearest(table, len(a), k=3, may=may)
        got, _ = ask(a, b, "-k", 3, *words)
        same(got, [w[:2] for w in wanted], f"nearest {words}")


# --- attributes -------------------------------------------------------------------


def check_on():
    a = Side("a.gpkg", polygons(random.Random(27), 40), "id")
    b = Side("b.gpkg", points(random.Random(28), 40), "jid")
    table = table_of(a, b)

    def value(side, i, name):
        return side.rows[i][1][name]

    def equal(*names):
        def test(i, j):
            for left, right in names:
                x, y = value(a, i, left), value(b, j, right)
                if x is None or y is None or str(x) != str(y):
                    return False
            return True
        return test

    for words, test in (
        ("id_code=jid_code", equal(("id_code", "jid_code"))),
        ("id_text=jid_text", equal(("id_text", "jid_text"))),
        ("id_code=jid_text", equal(("id_code", "jid_text"))),
        ("id_text = jid_code", equal(("id_text", "jid_code"))),
        ("id_code=jid_code,id_text=jid_text", equal(("id_code", "jid_code"), ("id_text", "jid_text"))),
        ("ID_CODE=JID_CODE", equal(("id_code", "jid_code"))),
    ):
        for op in ("intersects", "disjoint", "covers"):
            wanted, _ = expect(a, b, lambda i, j: test(i, j) and holds(op, a.shapes[i], b.shapes[j]))
            got, _ = ask(a, b, "-op", op, "-on", words)
            same_pairs(got, wanted, f"{op} -on {words}", a, b)
        got, _ = ask(a, b, "-k", 2, "-on", words)
        same(got, [w[:2] for w in k_nearest(table, len(a), k=2, may=test)], f"nearest -on {words}")
        wanted = [p for p, d in table.items() if d <= 3 and test(*p)]
        same_pairs(ask(a, b, "-op", "dwithin", "-max_distance", 3, "-on", words)[0], wanted, f"dwithin -on {words}")


def check_on_types():
    """Numbers as numbers, else as text."""
    values = {
        ogr.OFTInteger: [1, 2, -3, 0, None, 2147483647],
        ogr.OFTInteger64: [1, 2**53 + 1, -3, 0, None, 2147483647],
        ogr.OFTReal: [1.0, 2.5, -3.0, -0.0, None, 2147483647.0],
        ogr.OFTString: ["1", "2.5", "-3", "0", None, "2147483647"],
        ogr.OFTDate: ["2024/01/01", "2024/01/02", None, "1999/12/31", None, "2024/01/01"],
        ogr.OFTDateTime: ["2024/01/01 00:00:00", "2024/01/02 10:00:00", None, "1999/12/31 00:00:00", None, None],
    }

    def equal(x, y):
        if x is None or y is None:
            return False
        if isinstance(x, str) != isinstance(y, str):
            return str(x) == str(y) if not isinstance(x, float) and not isinstance(y, float) else None
        return x == y

    for left, of_left in values.items():
        make("a.gpkg", [("POINT (1 1)", {"id": i, "v": v}) for i, v in enumerate(of_left)],
             (("id", ogr.OFTInteger), ("v", left)))
        for right, of_right in values.items():
            dates = {ogr.OFTDate, ogr.OFTDateTime}
            if (left in dates or right in dates) and left != right:
                continue
            make("b.gpkg", [("POINT (1 1)", {"jid": i, "v": v}) for i, v in enumerate(of_right)],
                 (("jid", ogr.OFTInteger), ("v", right)))
            r = run("-on", "v", "-how", "inner", "-overwrite", "o.csv", "a.gpkg", "b.gpkg")
            true(r.rc == 0, f"should succeed: {r}")
            got = set(pairs_of("o.csv"))
            for i, x in enumerate(of_left):
                for j, y in enumerate(of_right):
                    said = equal(x, y)
                    if said is not None:
                        same((i, j) in got, said, f"{x!r} of {ogr.GetFieldTypeName(left)} and "
                                                  f"{y!r} of {ogr.GetFieldTypeName(right)}")
            os.remove("b.gpkg")
        os.remove("a.gpkg")


# --- representative points ---------------------------------------------------------


def check_representative_points():
    shapes = [*polygons(random.Random(29), 24), *lines(random.Random(29), 12), *points(random.Random(29), 12)]
    a = Side("a.gpkg", [*shapes, None, "POLYGON EMPTY"], "id")
    b = Side("b.gpkg", [*polygons(random.Random(30), 24), None, "POINT EMPTY"], "jid")

    def moved(side, how):
        return [Shape(getattr(s.ogr, how)() if s else None) for s in side.shapes]

    for option, method in (("-centroid_of", "Centroid"), ("-point_on_surface_of", "PointOnSurface")):
        left, right = moved(a, method), moved(b, method)
        for which, x, y in (("input", left, b.shapes), ("join", a.shapes, right), ("both", left, right)):
            for op in ("intersects", "within", "coveredby"):
                wanted, _ = expect(a, b, lambda i, j: holds(op, x[i], y[j]))
                got, _ = ask(a, b, "-op", op, option, which)
                same_pairs(got, wanted, f"{op} {option} {which}", a, b)
            wanted = [(i, j) for i, s in enumerate(x) for j, t in enumerate(y) if s and t and distance(s, t) <= 1.3]
            got, _ = ask(a, b, "-op", "dwithin", "-max_distance", 1.3, option, which)
            same_pairs(got, wanted, f"dwithin {option} {which}", a, b)
    # The output keeps the features.
    r = run("-op", "within", "-centroid_of", "input", "o.gpkg", a.path, b.path)
    true(r.rc == 0, f"should succeed: {r}")
    kept = {values["id"]: wkb for _, wkb, values in Layer("o.gpkg").rows}
    same(kept, {values["id"]: wkb for _, wkb, values in Layer("a.gpkg").rows})


# --- great circles ----------------------------------------------------------------------

RADIUS = 6371008.7714


def vector(x, y):
    x, y = math.radians(x), math.radians(y)
    return (math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y))


def dot(a, b):
    return sum(p * q for p, q in zip(a, b))


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def angle(a, b):
    return math.atan2(math.hypot(*cross(a, b)), dot(a, b))


def to_segment(p, a, b):
    """From a point to the shorter great circle between two."""
    n = cross(a, b)
    if math.hypot(*n) > 0 and dot(cross(n, a), p) > 0 and dot(cross(b, n), p) > 0:
        return abs(math.asin(max(-1.0, min(1.0, dot(n, p) / math.hypot(*n)))))
    return min(angle(p, a), angle(p, b))


def check_sphere():
    r = random.Random(31)
    places = [(r.uniform(-180, 180), r.uniform(-90, 90)) for _ in range(60)]
    places += [(179.9, 10), (-179.9, 10), (0, 90), (77, 90), (0, -90), (180, 0), (-180, 0)]
    others = [(r.uniform(-180, 180), r.uniform(-90, 90)) for _ in range(60)]
    others += [(-179.8, 10.1), (179.8, -0.1), (13, 89.9), (-13, -89.9)]

    def wkt(p):
        return f"POINT ({p[0]!r} {p[1]!r})"

    a = Side("a.gpkg", [wkt(p) for p in places], "id", srs="EPSG:4326")
    b = Side("b.gpkg", [wkt(p) for p in others], "jid", srs="EPSG:4326")
    table = {(i, j): RADIUS * angle(vector(*p), vector(*q))
             for i, p in enumerate(places) for j, q in enumerate(others)}
    for words, how in (((), {}), (("-k", 3), {"k": 3}), (("-max_distance", "800km"), {"high": 800e3}),
                       (("-k", 2, "-min_distance", "500km"), {"k": 2, "low": 500e3})):
        got, _ = ask(a, b, "-op", "nearest", "-metric", "sphere", *words)
        same(got, [w[:2] for w in k_nearest(table, len(a), **how)], f"sphere {words}")
    got, _ = ask(a, b, "-op", "dwithin", "-metric", "sphere", "-max_distance", 1500000)
    same_pairs(got, [p for p, d in table.items() if d <= 1500e3], "dwithin", a, b)
    run("-op", "nearest", "-metric", "sphere", "o.gpkg", a.path, b.path)
    for _, _, v in Layer("o.gpkg").rows:
        near(v["join_distance"], table[v["id"], v["jid"]], 1e-6, "metres")
    # Lines: across the antimeridian (drawn the short way) and over the pole.
    paths = []
    for _ in range(40):
        x, y = r.uniform(-180, 180), r.uniform(-85, 85)
        paths.append([(x, y), (x + r.uniform(-20, 20), max(-89, min(89, y + r.uniform(-20, 20))))])
    c = Side("c.gpkg", ["LINESTRING (" + ", ".join(f"{x!r} {y!r}" for x, y in p) + ")" for p in paths],
             "jid", srs="EPSG:4326")
    table = {(i, j): RADIUS * min(to_segment(vector(*p), vector(*s), vector(*t)) for s, t in zip(q, q[1:]))
             for i, p in enumerate(places) for j, q in enumerate(paths)}
    got, _ = ask(a, c, "-k", 2, "-metric", "sphere")
    same(got, [w[:2] for w in k_nearest(table, len(a), k=2)], "sphere, lines")


# --- invalid polygons ---------------------------------------------------------------------


def check_invalid():
    """Points are inside by even and odd; skip, fix and fail."""
    plain = points(random.Random(32), 80)
    a = Side("a.gpkg", plain, "id")
    b = Side("b.gpkg", [*polygons(random.Random(33), 8), *BOW_TIES, None, "POLYGON EMPTY"], "jid")
    bad = {j for j, s in enumerate(b.shapes) if s and not s.is_valid}
    same(len(bad), len(BOW_TIES))
    usual, _ = expect(a, b, lambda i, j: j not in bad and holds("intersects", a.shapes[i], b.shapes[j]))
    got, r = ask(a, b, "-op", "intersects")
    same_pairs([p for p in got if p[1] not in bad], usual, "the valid ones")
    true(any(p[1] in bad for p in got), "invalid ones are used")
    # of two boxes drawn over each other the part in common is outside
    both = 8 + BOW_TIES.index(BOW_TIES[2])
    for i, j in ((i, both) for i, s in enumerate(a.shapes) if len(s.parts) == 1):
        x, y = a.shapes[i].ogr.GetX(), a.shapes[i].ogr.GetY()
        one, two = 2 < x < 6 and 2 < y < 6, 4 < x < 8 and 4 < y < 8
        on = (2 <= x <= 6 and 2 <= y <= 6 and not one) or (4 <= x <= 8 and 4 <= y <= 8 and not two)
        if on or one or two:
            same((i, j) in got, on or one != two, f"({x} {y}) and two boxes")
    got, r = ask(a, b, "-op", "intersects", "-invalid", "skip")
    same_pairs(got, usual, "skip", a, b)
    true(f"{len(bad)} of" in r.err and "skipped" in r.err, f"says how many: {r}")
    fixed = [Shape(s.ogr.MakeValid()) if s and not s.is_valid else s for s in b.shapes]
    for op in ("intersects", "within"):
        wanted, _ = expect(a, b, lambda i, j: holds(op, a.shapes[i], fixed[j]))
        got, r = ask(a, b, "-op", op, "-invalid", "fix")
        same_pairs(got, wanted, f"fix {op}", a, b)
        true(f"{len(bad)} of" in r.err, f"says how many: {r}")
    wanted, _ = expect(b, b, lambda i, j: i != j and holds("overlaps", fixed[i], fixed[j]))
    same_pairs(ask(b, b, "-op", "overlaps", "-invalid", "fix")[0], wanted, "overlaps", b, b)
    fails("-op", "intersects", "-invalid", "fail", "o.gpkg", "a.gpkg", "b.gpkg", op=False, says=["not valid", "9"])
    fails("-op", "intersects", "-invalid", "fail", "o.gpkg", "b.gpkg", "a.gpkg", op=False, says=["not valid", "9"])
    # What is not valid is still written as it is.
    run("-op", "covers", "-invalid", "fix", "-how", "semi", "s.gpkg", "b.gpkg", "a.gpkg")
    before = {v["jid"]: wkb for _, wkb, v in Layer("b.gpkg").rows}
    for _, wkb, v in Layer("s.gpkg").rows:
        same(wkb, before[v["jid"]])


def check_undecided_pairs_are_counted():
    a = Side("a.gpkg", [*BOW_TIES, *polygons(random.Random(34), 16)], "id")
    for op in ("overlaps", "touches", "equals", "within"):
        r = run("-op", op, "-how", "inner", "-json_summary", "s.json", "-overwrite", "o.csv", a.path, a.path)
        true(r.rc == 0, f"should succeed: {r}")
        wanted, n = expect(a, a, lambda i, j: i != j and holds(op, a.shapes[i], a.shapes[j]))
        got = set(pairs_of("o.csv", "id", "join_id"))
        valid = {i for i, s in enumerate(a.shapes) if s.is_valid}
        same_pairs([p for p in got if set(p) <= valid], [p for p in wanted if set(p) <= valid], op, a, a)
        if n:
            true("GEOS cannot say" in r.err, f"{op}: says so: {r}")


# --- bounds -----------------------------------------------------------------------------


def check_max_pairs():
    a = Side("a.gpkg", points(random.Random(35), 50), "id")
    b = Side("b.gpkg", polygons(random.Random(36), 40), "jid")
    for words in (("-op", "disjoint"), ("-op", "intersects"), ("-op", "dwithin", "-max_distance", 3), ("-k", 5)):
        n = len(ask(a, b, *words)[0])
        true(n > 10, "a fair trial")
        same(len(ask(a, b, *words, "-max_pairs", n)[0]), n)
        os.remove("o.csv")
        fails(*words, "-max_pairs", n - 1, "o.gpkg", "a.gpkg", "b.gpkg", op=False, says=["-max_pairs", str(n - 1)])
        fails(*words, "-max_pairs", 1, "-batch", 3, "o.gpkg", "a.gpkg", "b.gpkg", op=False, says=["-max_pairs"])


def check_validation_of_every_join():
    # Without the hole outside its shell, which GEOS's envelope leaves out.
    a = Side("a.gpkg", [*all_kinds(37), *BOW_TIES[:3]], "id")
    b = Side("b.gpkg", [*all_kinds(38), *BOW_TIES[:3]], "jid")
    for words in (*(("-op", op) for op in PREDICATE_OPS), ("-relate", "T*F**F***"), ("-op", "window"),
                  ("-op", "dwithin", "-max_distance", 1), ("-k", 3), ("-op", "nearest"),
                  ("-k", 2, "-ties", "all"), ("-op", "intersects", "-on", "id_code=jid_code"),
                  ("-op", "nearest", "-exclude", "same_geometry", "-min_distance", 1)):
        for reference in ("geos", "spatialindex"):
            r = run(*words, "-validate", reference, "-overwrite", "o.gpkg", a.path, b.path)
            same(r.rc, 0, f"{r}")


if __name__ == "__main__":
    main(globals())
