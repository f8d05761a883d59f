"""Features of all kinds that intersect in every way, as layers and as lists. Also reads
the pairs of an output."""

import csv

from e2e import *
from plain_geos import *

PREDICATE_OPS = (*PREDICATES, "contains_properly", "bbox")
CRS = "EPSG:2263"


# --- features that intersect in every way -----------------------------------


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
        elif kind == 1:  # a hole that touches nothing, or touches the shell in a corner
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
        elif kind == 6:  # clockwise, with a vertex in the middle of an edge
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
        elif kind == 3:  # a repeated vertex, and an edge that runs back on itself
            found.append(f"LINESTRING {text([(x, y), (x, y), (x, y + 3), (x, y + 1), (x + 2, y + 1)])}")
        elif kind == 4:
            found.append(f"MULTILINESTRING ({text(path(2))}, {text([(x, y), (x, y + 2)])})")
        else:
            found.append(f"MULTILINESTRING ({text([(x, y), (x + 2, y)])}, {text([(x + 2, y), (x + 2, y + 2)])})")
    # GEOS does not accept a line whose two vertices are equal.
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
        # attributes with few different values; some are missing
        values = {key: i, f"{key}_code": None if i % 7 == 6 else i % 4,
                  f"{key}_text": None if i % 5 == 4 else str(i % 3)}
        rows.append((shape, values))
    return rows


def fields_of(key):
    return ((key, ogr.OFTInteger), (f"{key}_code", ogr.OFTInteger), (f"{key}_text", ogr.OFTString))


class Side:
    """A layer as a file and in memory."""

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
    """Returns the pairs (id, jid) of an output, in its order."""
    with open(path, encoding="utf-8", newline="") as file:
        return [(int(row[left]), int(row[right])) for row in csv.DictReader(file)]


def ask(a, b, *words, out="o.csv"):
    """Runs the command. Returns the pairs that it finds, and the run."""
    r = succeeds("-how", "inner", *words, "-select", a.key, "-join_select", b.key,
                 "-overwrite", out, a.path, b.path)
    right = b.key if a.key != b.key else "join_" + b.key
    return pairs_of(out, a.key, right), r


def expect(a, b, test):
    """Returns the pairs of the two sides for which test() is true."""
    found = []
    for i, x in enumerate(a.shapes):
        for j, y in enumerate(b.shapes):
            if x and y and test(i, j) is True:
                found.append((i, j))
    return found


def is_collection(row):
    return row[0] is not None and "GEOMETRYCOLLECTION" in str(row[0])


def same_pairs(got, expected, what, a=None, b=None):
    """Compares pairs. Pairs with a geometry collection are left out, because GEOS
    computes their matrix exactly only since 3.13. test_oracle compares them."""
    if a:
        got = [p for p in got if not (is_collection(a.rows[p[0]]) or is_collection(b.rows[p[1]]))]
        expected = [p for p in expected if not (is_collection(a.rows[p[0]]) or is_collection(b.rows[p[1]]))]
    if sorted(got) == sorted(expected) and len(set(got)) == len(got):
        return
    lines = [what]
    for title, pairs in (("missing", set(expected) - set(got)), ("surplus", set(got) - set(expected))):
        for i, j in sorted(pairs)[:5]:
            shown = (a.rows[i][0], b.rows[j][0]) if a else ""
            lines.append(f"{title} {len(pairs)}: {i} {j} {shown}")
    raise AssertionError("\n".join(lines))


# --- distances ------------------------------------------------------------------


def table_of(a, b):
    return {(i, j): distance(x, y) for i, x in enumerate(a.shapes) if x
            for j, y in enumerate(b.shapes) if y}


def k_nearest(table, n_rows, k=1, ties=False, low=0.0, high=math.inf, may=lambda i, j: True):
    """Returns (i, j, distance): the k nearest pairs of each row, by distance and
    number. The command may order distances between lines otherwise if they are equal up
    to rounding."""
    found = []
    for i in range(n_rows):
        near_ones = sorted((d, j) for (r, j), d in table.items()
                           if r == i and low <= d <= high and may(i, j))
        n = k
        while ties and 0 < n < len(near_ones) and near_ones[n][0] == near_ones[k - 1][0]:
            n += 1
        found += [(i, j, d) for d, j in near_ones[:n]]
    return found
