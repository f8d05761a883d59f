"""The DE-9IM matrix and the relation of each pair, compared with shapely (GEOS), for
all types of geometry, including degenerate ones."""

import itertools

import numpy as np
import pytest

import ogrjoin

shapely = pytest.importorskip("shapely")

# In the order of preference. covers and coveredby are never the first that
# holds.
WORDS = ("equals", "contains", "within", "touches", "crosses", "overlaps", "intersects", "disjoint")

ODD = """
POINT (0 0)
POINT (2 2)
MULTIPOINT ((0 0), (2 2))
MULTIPOINT ((0 0), (0 0), (4 4))
MULTIPOINT ((1 0), (9 9))
LINESTRING (0 0, 4 0)
LINESTRING (0 0, 4 4)
LINESTRING (4 0, 0 0)
LINESTRING (2 0, 2 4)
LINESTRING (0 0, 4 0, 4 4, 0 0)
LINESTRING (0 0, 4 4, 4 0, 0 4)
LINESTRING (0 0, 4 0, 2 0, 6 0)
LINESTRING (1 1, 1 1)
LINESTRING (-1 2, 5 2)
MULTILINESTRING ((0 0, 2 2), (2 2, 4 0))
MULTILINESTRING ((0 0, 2 2), (2 2, 4 4), (2 2, 4 0))
MULTILINESTRING ((0 0, 4 0), (0 4, 4 4))
POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))
POLYGON ((0 0, 0 4, 4 4, 4 0, 0 0))
POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0))
POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))
POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))
POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 3, 3 3, 3 1, 1 1))
POLYGON ((4 4, 8 4, 8 8, 4 8, 4 4))
POLYGON ((0 2, 2 0, 4 2, 2 4, 0 2))
MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)), ((2 2, 4 2, 4 4, 2 4, 2 2)))
MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((8 8, 9 8, 9 9, 8 9, 8 8)))
GEOMETRYCOLLECTION (POINT (2 2), LINESTRING (0 0, 4 0), POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))
GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (0 0, 4 0))
""".strip().split("\n")  # fmt: skip


def word_of(a, b):
    a, b = collapsed(a), collapsed(b)
    for word in WORDS[:-2]:
        if getattr(shapely, word)(a, b):
            return word
    return "intersects" if shapely.intersects(a, b) else "disjoint"


def collapsed(shape):
    """Returns a line of length 0 as a point, and other shapes unchanged."""
    if shape.geom_type == "LineString" and shape.length == 0:
        return shapely.Point(shape.coords[0])
    if shape.geom_type == "MultiLineString" and any(part.length == 0 for part in shape.geoms):
        return shapely.GeometryCollection([collapsed(part) for part in shape.geoms])
    return shape


def agrees(a, b, matrix):
    """Returns True if the matrix equals that of GEOS. If one end of a multi-line is on the
    other shape, GEOS 3.14 treats all its ends as being on that shape. In this case boundary
    and difference decide whether an end is outside."""
    a, b = collapsed(a), collapsed(b)
    expected = shapely.relate(a, b)
    apart = [i for i in range(9) if matrix[i] != expected[i]]
    if apart not in ([5], [7]):
        return apart == []
    if apart == [5]:
        a, b = b, a
    lines = [part for part in getattr(b, "geoms", [b]) if part.geom_type == "LineString"]
    rest = shapely.difference(shapely.boundary(shapely.MultiLineString(lines)), a)
    return not rest.is_empty and matrix[apart[0]] == "0"


def check(left, right, **settings):
    """Checks the matrix and the relation of every pair. Returns the pairs."""
    p = ogrjoin.pairs(left, right, "dwithin", max_distance=1e6, matrix=True, relation=True, **settings)
    assert len(p) == len(left) * len(right)
    for a, b, matrix, relation in zip(p.left, p.right, p.values["matrix"], p.values["relation"]):
        what = (left[a].wkt, right[b].wkt)
        assert agrees(left[a], right[b], matrix), (*what, matrix)
        if "COLLECTION" not in collapsed(left[a]).wkt + collapsed(right[b]).wkt:
            assert relation == word_of(left[a], right[b]), what
    return p


def has_collections():
    return shapely.geos_version >= (3, 13, 0)


def test_degenerate_shapes():
    shapes = [s for s in shapely.from_wkt(ODD) if has_collections() or s.geom_type != "GeometryCollection"]
    p = check(np.array(shapes), np.array(shapes), threads=2)
    assert set(p.values["relation"]) == set(WORDS) - {"intersects"}


def shape(rng):
    kind = rng.integers(0, 7)
    xy = rng.integers(0, 6, (rng.integers(2, 6), 2)).astype(float)
    x, y = rng.integers(0, 5, 2)
    w, h = rng.integers(1, 4, 2)
    box = shapely.box(x, y, x + w, y + h)
    if kind == 0:
        return shapely.Point(x, y)
    if kind == 1:
        return shapely.MultiPoint(xy)
    if kind == 2:
        return shapely.LineString(xy)
    if kind == 3:
        return shapely.MultiLineString([xy, rng.integers(0, 6, (3, 2))])
    if kind == 4:
        return box
    if kind == 5:
        return shapely.Polygon([(x, y), (x + w, y), (x + w, y + h)])
    return shapely.MultiPolygon([box, shapely.box(x + w, y + h, x + w + 1, y + h + 2)])


@pytest.mark.parametrize("seed", range(12))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    left, right = [np.array([shape(rng) for _ in range(40)]) for _ in range(2)]
    p = check(left, right, threads=1 + seed % 3)
    assert len(set(p.values["relation"])) > 4


def test_the_joins_agree():
    """Each pair of a join by predicate has a matrix for which the predicate holds."""
    rng = np.random.default_rng(77)
    left, right = [np.array([shape(rng) for _ in range(60)]) for _ in range(2)]
    for op in ("intersects", "within", "contains", "touches", "crosses", "overlaps", "equals"):
        p = ogrjoin.pairs(left, right, op, matrix=True, relation=True)
        assert len(p) > 0
        for a, b, matrix in zip(p.left, p.right, p.values["matrix"]):
            assert agrees(left[a], right[b], matrix)
        if op in ("touches", "crosses", "overlaps", "equals"):
            assert set(p.values["relation"]) == {op}


def test_rows_and_clashes():
    pa = pytest.importorskip("pyarrow")
    metadata = {b"ARROW:extension:name": b"geoarrow.wkb"}
    schema = pa.schema([pa.field("geometry", pa.binary(), metadata=metadata)])
    shapes = shapely.from_wkt(ODD[:25])
    shapes[3] = None
    table = pa.table([pa.array(list(shapely.to_wkb(shapes)), pa.binary())], schema=schema)
    rows = ogrjoin.join(table, table, "intersects", how="left", matrix_field="m", relation_field="r")
    got = rows.read_all() if hasattr(rows, "read_all") else rows.to_arrow()
    assert str(got.schema.field("m").type) == str(got.schema.field("r").type) == "string"
    n = 0
    for geometry, fid, m, r in zip(*(got[k].to_pylist() for k in ("geometry", "join_fid", "m", "r"))):
        if fid is None:
            assert m is r is None
            continue
        n += 1
        a, b = shapely.from_wkb(geometry), shapes[fid]
        assert agrees(a, b, m) and r == word_of(a, b)
    assert n > 100
    with pytest.raises(ogrjoin.Error, match="plane"):
        ogrjoin.join(table, table, "nearest", metric="sphere", matrix_field="m")


def test_every_word_of_two_matrices():
    words = {"relation": range(8), "line_side": (-1, 0, 1)}
    got = {name: [ogrjoin._core.pair_word(name, v) for v in values] for name, values in words.items()}
    assert got == {"relation": list(WORDS), "line_side": ["right", "on", "left"]}
    codes = [sum("F012".index(c) << 2 * i for i, c in enumerate(m[:8])) for m in ("212101212", "FF0FFF102")]
    assert [ogrjoin._core.pair_word("matrix", c) for c in codes] == ["212101212", "FF0FFF102"]
    for name, value in itertools.product(("matrix", "relation", "line_side", "bearing"), (-2, 1e9, float("nan"))):
        assert ogrjoin._core.pair_word(name, value) is None
