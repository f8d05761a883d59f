"""Compares geometry="intersection" with nlt= with GeoPandas'
overlay(how="intersection", keep_geom_type=True) on random layers.  Compares overlap=
with shapely."""

import math
import os
import random
from fractions import Fraction

import numpy as np
import pytest

import ogrjoin

pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
import shapely

# The words of nlt, with the geometry type of the output and of the left layer.
MULTI = {"POLYGON": "MultiPolygon", "LINESTRING": "MultiLineString", "POINT": "MultiPoint"}


def polygons(rng, n):
    """Returns blobs, and boxes with integer coordinates, whose borders often
    coincide."""
    corner, size = rng.integers(0, 30, (n, 2)), rng.integers(1, 9, (n, 2))
    shapes = shapely.box(*corner.T, *(corner + size).T)
    centre = rng.random((n, 2)) * 30
    blobs = shapely.buffer(shapely.points(centre), rng.random(n) * 4 + 0.1, quad_segs=3)
    shapes = np.where(rng.random(n) < 0.5, shapes, blobs)
    holes = shapely.difference(shapes, shapely.buffer(shapely.centroid(shapes), 0.4, quad_segs=2))
    return np.where(rng.random(n) < 0.3, holes, shapes)


def left_layer(rng, kind, n):
    if kind == "POLYGON":
        return polygons(rng, n)
    if kind == "LINESTRING":
        return shapely.linestrings(rng.integers(0, 35, (n, 3, 2)).astype(float))
    return shapely.points(rng.integers(0, 35, (n, 2)).astype(float))


def make_layers(seed):
    rng = np.random.default_rng(seed)
    kind = list(MULTI)[seed % 3]
    left = gpd.GeoDataFrame({"a": np.arange(40)}, geometry=left_layer(rng, kind, 40), crs=2263)
    right = gpd.GeoDataFrame({"b": np.arange(40)}, geometry=polygons(rng, 40), crs=2263)
    return kind, left, right


@pytest.mark.parametrize("seed", range(50))
def test_overlay(seed):
    kind, left, right = make_layers(seed)
    got = ogrjoin.join(left, right, "intersects", how="inner", geometry="intersection",
                       nlt=kind).to_geopandas()
    assert set(got.geometry.geom_type) == {MULTI[kind]}  # multi-geometries, as the command writes them
    want = gpd.overlay(left, right, how="intersection", keep_geom_type=True)
    got = got.set_index(["a", "b"]).geometry.sort_index()
    want = want.set_index(["a", "b"]).geometry.sort_index()
    assert len(want) > 5 and list(got.index) == list(want.index)
    if kind == "POLYGON":
        difference = shapely.area(shapely.symmetric_difference(got.values, want.values))
        assert np.all(difference <= 1e-9 * shapely.area(want.values) + 1e-12)
    else:
        assert np.allclose(shapely.length(got.values), shapely.length(want.values), rtol=1e-12)
        assert np.all(shapely.hausdorff_distance(got.values, want.values) < 1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_pairs_without_such_a_part_are_no_matches(seed):
    """Pairs without a part of the kind are dropped. Rows of either side that have only
    such pairs are unmatched."""
    kind, left, right = make_layers(seed)
    named = dict(geometry="intersection", nlt=kind)
    inner = ogrjoin.join(left, right, "intersects", how="inner", **named).read_all()
    every = ogrjoin.join(left, right, "intersects", how="full", **named).read_all()
    touching = ogrjoin.join(left, right, "intersects", how="inner").read_all()
    assert inner.num_rows < touching.num_rows
    a, b = (set(inner[name].to_pylist()) for name in "ab")
    assert every.num_rows == inner.num_rows + (40 - len(a)) + (40 - len(b))


def test_sizes():
    _, left, right = make_layers(3)
    names = ["overlap_area", "overlap_iou", "input_area", "join_area"]
    rows = ogrjoin.join(left, right, "intersects", how="inner", overlap="area,iou,input_area,join_area").read_all()
    assert [name for name in rows.schema.names if name in names] == names
    a = left.geometry.values[rows["a"].to_numpy()]
    b = right.geometry.values[rows["b"].to_numpy()]
    common = shapely.area(shapely.intersection(a, b))
    assert np.allclose(rows["overlap_area"], common, rtol=1e-9, atol=1e-12)
    assert np.allclose(rows["input_area"], shapely.area(a), rtol=1e-12)
    assert np.allclose(rows["join_area"], shapely.area(b), rtol=1e-12)
    assert np.allclose(rows["overlap_iou"], common / shapely.area(shapely.union(a, b)), rtol=1e-9, atol=1e-12)
    got = ogrjoin.join(left, right, "intersects", agg="max(overlap_iou), min(join_area)").read_all()
    frame = rows.to_pandas().groupby("a")["overlap_iou"].max()
    for i, value in enumerate(got["max_overlap_iou"].to_pylist()):
        assert value == (frame[i] if i in frame.index else None)


def test_refusals():
    _, left, right = make_layers(0)
    for named, says in (
        (dict(nlt="POLYGON"), "needs geometry"),
        (dict(nlt="POLYGON", geometry="join"), "needs geometry"),
        (dict(nlt="POLYGON", geometry="intersection", pick="first"), "before .* drops pairs"),
        (dict(nlt="POLYGON", geometry="intersection", one_to_one=True), "before .* drops pairs"),
    ):
        with pytest.raises(ogrjoin.Error, match=says):
            ogrjoin.join(left, right, "intersects", **named)


COVER = ["covered_area", "covered_percent", "covered_length", "count"]
DATA = os.environ.get("OGRJOIN_TEST_DATA", "")


def check_cover(left, right):
    """Compares the part of each left shape that all right shapes cover together with
    shapely's union. The tolerance is 1e-9 of the left shape, because GEOS rounds where
    borders cross. Returns the number of rows in which right shapes overlap."""
    a, b = (gpd.GeoDataFrame(geometry=shapes, crs=2263) for shapes in (left, right))
    got = ogrjoin.join(a, b, "intersects", agg=COVER).read_all().to_pandas()
    pairs = shapely.STRtree(right).query(left, "intersects")
    n_shared = 0
    for i, shape in enumerate(left):
        near = right[pairs[1][pairs[0] == i]]
        whole = shapely.intersection(shape, shapely.union_all(near))
        parts = shapely.intersection(shape, near)
        n_shared += shapely.area(parts).sum() + shapely.length(parts).sum() > 1.001 * (
            shapely.area(whole) + shapely.length(whole)
        )
        row, size = got.loc[i], shapely.area(shape)
        length = 0.0 if size else shapely.length(shape)
        assert row["count"] == len(near)
        assert row["covered_area"] == pytest.approx(shapely.area(whole), rel=0, abs=1e-9 * size)
        if not len(near):
            assert row["covered_area"] == row["covered_length"] == 0
            assert np.isnan(row["covered_percent"]) if not size + length else row["covered_percent"] == 0
        elif size:
            assert row["covered_percent"] == pytest.approx(100 * shapely.area(whole) / size, rel=0, abs=1e-7)
        elif length:
            assert row["covered_length"] == pytest.approx(shapely.length(whole), rel=0, abs=1e-9 * length)
            assert row["covered_percent"] == pytest.approx(100 * shapely.length(whole) / length, rel=0, abs=1e-7)
        else:
            assert np.isnan(row["covered_percent"])
    return n_shared


@pytest.mark.parametrize("seed", range(60))
def test_cover(seed):
    kind, left, right = make_layers(seed)
    n = check_cover(left.geometry.values.to_numpy(), right.geometry.values.to_numpy())
    assert n > 5 or kind == "POINT"


@pytest.mark.parametrize("seed", range(20))
def test_lines_along_lines(seed):
    """Lines are pieces of one network, so that they coincide."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 6, (200, 2))
    steps = np.array([[1, 0], [0, 1], [1, 1]])[rng.integers(0, 3, 200)]
    pieces = shapely.linestrings(np.stack([place, place + steps * rng.integers(1, 4, (200, 1))], 1))
    assert check_cover(pieces[:60], pieces[60:]) > 3


@pytest.mark.parametrize(
    "left, right",
    [
        (("nyc_polygons", "taxi_zones"), ("nyc_polygons", "tracts2010")),
        (("nyc_polygons", "buildings_lower_manhattan"), ("nyc_polygons", "nta")),
        (("nyc_polygons", "buildings_footprints_lowerman"), ("nyc_polygons", "buildings_lower_manhattan")),
        (("nyc_streets", "manhattan_roads"), ("nyc_polygons", "taxi_zones")),
        (("osm_liechtenstein", "roads"), ("osm_liechtenstein", "landuse")),
        (("osm_liechtenstein", "buildings"), ("osm_liechtenstein", "landuse")),
    ],
)
@pytest.mark.skipif(not os.path.exists(f"{DATA}/nyc_polygons.gpkg"), reason="no layers (OGRJOIN_TEST_DATA)")
def test_cover_of_real_layers(left, right):
    pyogrio = pytest.importorskip("pyogrio")

    def shapes(file, layer, n):
        frame = pyogrio.read_dataframe(f"{DATA}/{file}.gpkg", layer=layer, columns=[])
        found = shapely.force_2d(frame.geometry.to_crs(2263).values.to_numpy())
        return found[shapely.is_valid(found) & ~shapely.is_empty(found)][:n]

    check_cover(shapes(*left, 400), shapes(*right, None))


def test_cover_of_several_kinds():
    """Collections, points, empty and invalid features."""
    bow = shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)])  # crosses itself
    left = [
        shapely.GeometryCollection([shapely.box(0, 0, 4, 4), shapely.LineString([(4, 2), (10, 2)])]),
        shapely.MultiPoint([(1, 1), (9, 2)]),
        shapely.MultiPolygon(),
        None,
        shapely.MultiPolygon([shapely.box(0, 0, 2, 2), shapely.box(1, 0, 3, 2)]),
        shapely.LineString([(0, 1), (8, 1), (8, 2), (0, 2)]),
        bow,
    ]
    right = [
        shapely.box(0, 0, 2, 4),
        shapely.GeometryCollection([shapely.box(1, 0, 3, 4), shapely.LineString([(5, 2), (8, 2)])]),
        shapely.LineString([(6, 2), (12, 2)]),
        shapely.Point(2, 2),
        shapely.LineString([(1, 1), (3.5, 1)]),
        None,
    ]
    a, b = (gpd.GeoDataFrame(geometry=shapes, crs=2263) for shapes in (left, right))
    got = ogrjoin.join(a, b, "intersects", agg=COVER[:3]).read_all()
    # The line of the first shape is covered from 5 to 10, which is 5 long. The last right
    # line covers 3 to 3.5 in the square of the first shape.
    assert got["covered_area"].to_pylist()[:6] == [12, 0, 0, 0, 6, 0]
    assert got["covered_length"].to_pylist()[:6] == pytest.approx([5.5, 0, 0, 0, 0, 3.5 + 3 + 3])
    percent = got["covered_percent"].to_pylist()
    assert percent[0] == 75 and percent[1:4] == [None] * 3 and percent[4] == 100
    assert percent[5] == pytest.approx(100 * 9.5 / 17)


def test_cover_is_of_the_input():
    _, left, right = make_layers(0)
    with pytest.raises(ogrjoin.Error, match="takes no field"):
        ogrjoin.join(left, right, "intersects", agg="covered_area(b)")
    row = ogrjoin.join(left, right, "intersects", agg="covered_area as c, mean(b)").read_all()
    assert row.schema.names[-2:] == ["c", "mean_b"]


@pytest.mark.parametrize(
    "text, common",
    [
        ("POINT (5 5)", "POINT (5 5)"),
        ("LINESTRING (5 5, 5 5)", "POINT (5 5)"),
        ("MULTILINESTRING ((5 5, 5 5), (1 1, 2 1))", "GEOMETRYCOLLECTION (POINT (5 5), LINESTRING (1 1, 2 1))"),
        ("POLYGON ((5 5, 6 6, 7 7, 5 5))", "LINESTRING (5 5, 7 7)"),
    ],
)
def test_collapsed_shapes(text, common):
    """A line of no length counts as its point, and a polygon without area as its lines,
    both in sums with weights and in the intersection."""
    box = gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 10, 10)], crs=2263)
    shape = gpd.GeoDataFrame({"v": [7.0]}, geometry=[shapely.from_wkt(text)], crs=2263)
    got = ogrjoin.join(box, shape, "intersects", agg="weighted_sum(v), weighted_mean(v)").read_all()
    assert got["weighted_sum_v"].to_pylist() == [7.0]
    assert got["weighted_mean_v"].to_pylist() == [pytest.approx(7.0, rel=1e-15)]
    for one, other in ((box, shape), (shape, box)):
        got = ogrjoin.join(one, other, "intersects", geometry="intersection").to_geopandas()
        assert shapely.equals(shapely.union_all(got.geometry.values), shapely.union_all([shapely.from_wkt(common)]))


# ---- lines that run over themselves, against exact sums -----------------------------


def segments(lines):
    return [(a, b) for line in lines for a, b in zip(line, line[1:]) if a != b]


def area_of(a, b, p):
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def is_on(a, b, p):
    return area_of(a, b, p) == 0 and all(min(a[i], b[i]) <= p[i] <= max(a[i], b[i]) for i in (0, 1))


def pieces(some, vertices):
    """Returns the segments, split at the vertices on them, each once."""
    split = set()
    for a, b in some:
        chain = sorted({p for p in vertices if is_on(a, b, p)})
        split.update(zip(chain, chain[1:]))
    return split


def length_in_common(left, right):
    some = segments(left), segments(right)
    vertices = {p for part in some for segment in part for p in segment}
    return sum(math.dist(a, b) for a, b in pieces(some[0], vertices) & pieces(some[1], vertices))


def is_inside(ring, p):
    inside = False
    for a, b in zip(ring, ring[1:]):
        if is_on(a, b, p):
            return True
        if (a[1] > p[1]) != (b[1] > p[1]):
            inside ^= a[0] + Fraction((p[1] - a[1]) * (b[0] - a[0]), b[1] - a[1]) > p[0]
    return inside


def length_inside(lines, ring):
    border = segments([ring])
    some = segments(lines)
    vertices = {p for segment in some + border for p in segment}
    length = 0.0
    for a, b in pieces(some, vertices):
        cuts = {Fraction(0), Fraction(1)}
        for c, d in border:
            of_c, of_d = area_of(a, b, c), area_of(a, b, d)
            if of_c * of_d < 0 and (at := area_of(c, d, a)) * (to := area_of(c, d, b)) < 0:
                cuts.add(Fraction(at, at - to))
        cuts = sorted(cuts)
        for s, t in zip(cuts, cuts[1:]):
            middle = [a[i] + (s + t) / 2 * (b[i] - a[i]) for i in (0, 1)]
            length += is_inside(ring, middle) * float(t - s) * math.dist(a, b)
    return length


def random_lines(rng, size):
    """Returns lines that repeat vertices, and run over themselves and one another."""
    lines = []
    for _ in range(rng.randint(1, 3)):
        line = [(rng.randint(0, size), rng.randint(0, size)) for _ in range(rng.randint(2, 7))]
        lines.append([line[0]] * rng.randint(0, 1) + line)
    return lines if segments(lines) else random_lines(rng, size)


def random_ring(rng, size):
    while True:
        ring = [(rng.randint(0, size), rng.randint(0, size)) for _ in range(rng.randint(3, 5))]
        ring.append(ring[0])
        if shapely.is_valid(shapely.Polygon(ring)) and shapely.Polygon(ring).area > 0:
            return ring


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("kind", ["lines", "polygons"])
def test_places_of_lines_count_once(kind, size):
    """GEOS 3.11 by itself gives a wrong length for up to 20 of 1,500 such pairs."""
    rng = random.Random(size)
    left, right, expected = [], [], []
    for _ in range(1500):
        left.append(random_lines(rng, size))
        right.append(random_lines(rng, size) if kind == "lines" else random_ring(rng, size))
        expected.append((length_in_common if kind == "lines" else length_inside)(left[-1], right[-1]))
    number = range(len(left))
    shape = shapely.MultiLineString if kind == "lines" else shapely.Polygon
    a = gpd.GeoDataFrame({"n": number}, geometry=[shapely.MultiLineString(x) for x in left], crs=2263)
    b = gpd.GeoDataFrame({"n": number}, geometry=[shape(x) for x in right], crs=2263)
    for one, other in ((a, b), (b, a)):
        got = ogrjoin.join(one, other, "intersects", on="n", overlap="length",
                           geometry="intersection").to_geopandas()
        assert list(got["n"]) == list(number)
        assert np.allclose(got["overlap_length"].fillna(0), expected, rtol=1e-9, atol=1e-9)
        assert np.allclose(np.nan_to_num(shapely.length(got.geometry.values)), expected, rtol=1e-9, atol=1e-9)


def test_covered_length_of_lines_by_lines():
    rng = random.Random(7)
    left = [random_lines(rng, 4) for _ in range(1000)]
    right = [[random_lines(rng, 4) for _ in range(3)] for _ in left]
    expected = [length_in_common(a, sum(b, [])) for a, b in zip(left, right)]
    a = gpd.GeoDataFrame({"n": range(len(left))}, geometry=[shapely.MultiLineString(x) for x in left], crs=2263)
    b = gpd.GeoDataFrame({"n": np.repeat(range(len(left)), 3)},
                         geometry=[shapely.MultiLineString(x) for b in right for x in b], crs=2263)
    got = ogrjoin.join(a, b, "intersects", on="n", agg="covered_length").read_all()
    assert np.allclose(got["covered_length"], expected, rtol=1e-9, atol=1e-9)


def test_cover_is_of_the_features_of_a_row():
    """What its features cover of a row does not depend on other features of the layer.
    Polygons of both sides have no length in common: a border that they share counts as
    little as their area. A line along the border of a polygon counts."""
    box, line, both = shapely.box, shapely.LineString, lambda *of: shapely.GeometryCollection(of)
    rows = {
        "box": box(6, 3, 10, 7),
        "bow tie": shapely.Polygon([(6, 3), (10, 7), (10, 3), (6, 7)]),
        "hooked": shapely.Polygon([(6, 3), (10, 7), (10, 3), (6, 6)]),
        "collapsed": shapely.Polygon([(6, 3), (6, 7), (6, 3)]),
        "line": line([(5, 3), (8, 3)]),
        "box and line": both(box(6, 3, 10, 7), line([(20, 0), (25, 0)])),
    }
    touching, along = box(4, 3, 6, 4), line([(6, 3), (6, 5)])
    layers = [[touching], [touching, box(4, 4, 6, 5)], [box(4, 3, 7, 4)], [along], [along, touching],
              [both(touching, line([(6, 5), (6, 6), (7, 6)]))], [shapely.Point(7, 4)],
              [shapely.Polygon([(6, 3), (8, 5), (6, 3)])]]  # fmt: skip
    lengths = {"box": [0, 0, 0, 2, 2, 2, 0, 0], "line": [1, 1, 2, 0, 1, 1, 0, 0],
               "box and line": [0, 0, 0, 2, 2, 2, 0, 0]}  # fmt: skip
    far = [box(900, 900, 901, 901), line([(901, 901), (905, 901)]), shapely.Point(500, 500)]
    for name, row in rows.items():
        left = gpd.GeoDataFrame(geometry=[row], crs=2263)
        for i, layer in enumerate(layers):
            answers = []
            for others in ([], far[:1], far[1:2], far[2:], far):
                right = gpd.GeoDataFrame(geometry=layer + others, crs=2263)
                got = ogrjoin.join(left, right, "intersects", agg=COVER).read_all()
                answers.append([got[column][0].as_py() for column in COVER])
            assert answers == answers[:1] * len(answers), (name, i)
            if name in lengths:
                assert answers[0][2] == pytest.approx(lengths[name][i]), (name, i)
