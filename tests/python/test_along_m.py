"""Measures from the M values of lines (along="m").  They are compared with a plain loop
over all segments, for every way in which a layer enters the library."""

import math

import numpy as np
import pytest

import ogrjoin
from plain_segments import distance_and_place, lines_of

shapely = pytest.importorskip("shapely")
if not hasattr(shapely, "has_m"):
    pytest.skip("shapely without M values", allow_module_level=True)

ASKED = {"line_along": True, "along": "m"}


# --- the reference ----------------------------------------------------------


def measure_at(p, shape):
    """Returns M of the first nearest place. Vertices are (x, y, m) or (x, y)."""
    best = None
    for ring in lines_of(shape):
        ring = [(v[0], v[1], v[-1] if len(v) > 2 else math.nan) for v in ring]
        has_length = any(a[:2] != b[:2] for a, b in zip(ring, ring[1:]))
        for a, b in zip(ring, ring[1:]):
            d, r = distance_and_place(p, a, b)
            if (a[:2] != b[:2] or not has_length) and (best is None or d < best[0]):
                at = {0: a[2], 1: b[2]}.get(r, a[2] + r * (b[2] - a[2]))
                best = (d, at)
    return math.nan if best is None else best[1]


# --- random layers ----------------------------------------------------------


def vertices(rng, n, has_m):
    xy = rng.integers(0, 9, (n, 2)).astype(float)
    if rng.random() < 0.3:
        xy = np.concatenate([xy, xy[:1]])  # closed
    if rng.random() < 0.3:
        xy = np.repeat(xy, 2, axis=0)  # segments of length 0, where M jumps
    m = np.cumsum(rng.integers(-1, 9, len(xy))).astype(float)
    if rng.random() < 0.3:
        m[rng.random(len(m)) < 0.3] = math.nan
    return np.column_stack([xy, m]) if has_m else xy



def line(rng, has_m=True, n=None):
    v = vertices(rng, n or rng.integers(2, 7), has_m)
    text = ", ".join(" ".join(repr(float(x)) for x in row) for row in v)
    return shapely.from_wkt(f"LINESTRING {'M ' if has_m else ''}({text})")


def polygon(rng):
    x, y, m = rng.integers(0, 8, 3)
    ring = [(x, y, m), (x + 4, y, m + 4), (x + 4, y + 4, m + 8), (x, y + 4, m + 12), (x, y, m + 16)]
    hole = [(x + 1, y + 1, 70), (x + 2, y + 1, 71), (x + 2, y + 2, 72), (x + 1, y + 1, 73)]
    text = ", ".join("(" + ", ".join("%d %d %d" % v for v in r) + ")" for r in (ring, hole))
    return shapely.from_wkt(f"POLYGON M ({text})")


def with_z(shape):
    """Returns the shape with Z, which must not be taken for M."""
    coordinates = shapely.get_coordinates(shape, include_m=True)
    text = ", ".join(f"{x!r} {y!r} -5 {m!r}" for x, y, m in coordinates.tolist())
    return shapely.from_wkt(f"LINESTRING ZM ({text})")


def join_side(rng, n):
    kinds = [
        lambda: line(rng),
        lambda: line(rng, has_m=False),
        lambda: with_z(line(rng)),
        lambda: shapely.MultiLineString([line(rng), line(rng)]),
        lambda: polygon(rng),
        lambda: line(rng, n=60),
        lambda: shapely.GeometryCollection([shapely.Point(1, 1), line(rng), line(rng, False)]),
        lambda: shapely.Point(*rng.integers(0, 9, 2)),
        lambda: rng.choice([None, shapely.LineString()]),
    ]
    shapes = [line(rng)] + [kinds[rng.integers(len(kinds))]() for _ in range(n - 1)]
    return np.array(shapes, dtype=object)


def places(rng, n):
    xy = rng.integers(-2, 11, (n, 2)).astype(float)
    return shapely.points(xy + rng.random(xy.shape) * (rng.random() < 0.5))


def is_close(got, expected):
    got = math.nan if got is None else got
    return got == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def wkb_table(shapes, big=False, flavor="iso"):
    pa = pytest.importorskip("pyarrow")
    wkb = shapely.to_wkb(shapes, output_dimension=4, flavor=flavor, byte_order=int(not big))
    field = pa.field("geometry", pa.binary(), metadata={b"ARROW:extension:name": b"geoarrow.wkb"})
    return pa.table([pa.array(wkb.tolist(), pa.binary())], schema=pa.schema([field]))


# --- pairs ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_measures_of_random_lines(seed):
    rng = np.random.default_rng(seed)
    left, right = places(rng, 60), join_side(rng, 30)
    n = 0
    for settings in ({"op": "nearest", "k": 3}, {"op": "dwithin", "max_distance": 4.0}):
        p = ogrjoin.pairs(left, right, line_along_percent=True, **ASKED, **settings)
        lengths = ogrjoin.pairs(left, right, line_along=True, line_along_percent=True, **settings)
        assert np.array_equal(p.right, lengths.right)
        same = [p.values["line_along_percent"], lengths.values["line_along_percent"]]
        assert np.array_equal(*same, equal_nan=True), "the percentage is that of the length"
        for i, (a, b) in enumerate(zip(p.left, p.right)):
            expected = measure_at(left[a].coords[0], right[b])
            assert is_close(p.values["line_along"][i], expected), (left[a], right[b])
            n += not math.isnan(expected)
    assert n > 30, "a fair trial"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("flavor, big", [("iso", False), ("iso", True), ("extended", False), ("extended", True)])
def test_wkb_of_every_form(seed, flavor, big):
    rng = np.random.default_rng(100 + seed)
    left, right = places(rng, 40), join_side(rng, 30)
    expected = ogrjoin.pairs(left, right, "nearest", k=2, **ASKED)
    got = ogrjoin.pairs(left, wkb_table(right, big, flavor), "nearest", k=2, crs="ignore", **ASKED)
    assert np.array_equal(expected.right, got.right)
    assert np.array_equal(expected.values["line_along"], got.values["line_along"], equal_nan=True)


@pytest.mark.parametrize("is_interleaved", [True, False])
@pytest.mark.parametrize("ordinates", ["xym", "xyzm", "xyz"])
def test_native_coordinates(is_interleaved, ordinates):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(7)
    lines = [vertices(rng, rng.integers(2, 7), True) for _ in range(9000)]  # several slices
    columns = {"x": 0, "y": 1, "z": None, "m": 2}
    v = np.concatenate(lines)
    parts = [np.full(len(v), 9.0) if columns[o] is None else v[:, columns[o]] for o in ordinates]
    if is_interleaved:
        flat = pa.array(np.column_stack(parts).ravel())
        child = pa.field(ordinates, pa.float64(), nullable=False)
        coordinates = pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(child, len(ordinates)))
    else:
        coordinates = pa.StructArray.from_arrays([pa.array(p) for p in parts], list(ordinates))
    offsets = np.concatenate([[0], np.cumsum([len(w) for w in lines])]).astype("i4")
    column = pa.ListArray.from_arrays(pa.array(offsets), coordinates)
    field = pa.field("geometry", column.type, metadata={b"ARROW:extension:name": b"geoarrow.linestring"})
    right = pa.table([column], schema=pa.schema([field]))
    left = places(rng, 200)
    if ordinates == "xyz":
        with pytest.raises(ogrjoin.Error, match="has M values"):
            ogrjoin.pairs(left, right, "nearest", crs="ignore", **ASKED)
        return
    p = ogrjoin.pairs(left, right, "nearest", crs="ignore", **ASKED)
    assert len(p) == 200
    for i, (a, b) in enumerate(zip(p.left, p.right)):
        text = ", ".join(" ".join(repr(float(x)) for x in row) for row in lines[b])
        shape = shapely.from_wkt(f"LINESTRING M ({text})")
        assert is_close(p.values["line_along"][i], measure_at(left[a].coords[0], shape))


def test_known_measures():
    lines = [
        "LINESTRING M (0 0 100, 10 0 200)",
        "LINESTRING (0 10, 10 10)",
        "MULTILINESTRING M ((0 20 1, 5 20 2), (6 20 10, 9 20 40))",
        "LINESTRING M (0 30 1, 5 30 nan, 9 30 7)",
        "LINESTRING M (0 40 -1e39, 10 40 8)",  # the value of Shapefiles for "no data"
        "LINESTRING M (0 50 9, 10 50 4)",  # M decreases along the line
    ]
    points = [(2, 1), (-4, 0), (14, 3), (2, 11), (7, 21), (5.4, 21), (2, 31), (-1, 31), (5, 31), (9, 32), (0, 41), (10, 41), (2, 51)]
    expected = [120, 100, 200, math.nan, 20, 2, math.nan, 1, math.nan, 7, math.nan, 8, 8]
    right = [shapely.from_wkt(w) for w in lines]
    p = ogrjoin.pairs(shapely.points(points), right, "nearest", **ASKED)
    assert [is_close(got, e) for got, e in zip(p.values["line_along"], expected)] == [True] * len(points)
    # Two equally near parts. The M of the first one counts.
    two = [shapely.from_wkt("MULTILINESTRING M ((0 1 5, 9 1 6), (0 -1 50, 9 -1 60))")]
    assert ogrjoin.pairs([shapely.Point(0, 0)], two, "nearest", **ASKED).values["line_along"][0] == 5


def test_measures_on_the_sphere():
    right = [shapely.from_wkt("LINESTRING M (0 60 100, 40 60 300)")]
    middle = shapely.from_wkt("POINT (20 64)")  # half of the great circle's length
    p = ogrjoin.pairs([middle, shapely.Point(-5, 60)], right, "nearest", metric="sphere", crs="ignore", **ASKED)
    assert p.values["line_along"].tolist() == [pytest.approx(200, rel=1e-9), 100]


# --- rows -------------------------------------------------------------------


def test_rows_and_their_notice():
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(5)
    left, right = places(rng, 80), join_side(rng, 30)
    p = ogrjoin.pairs(left, right, "nearest", k=2, **ASKED)
    with pytest.warns(UserWarning, match="pairs have no measure, because their lines have no M value there"):
        table = ogrjoin.join(left, wkb_table(right), "nearest", k=2, crs="ignore", along_field="m", along="m").read_all()
    got = [math.nan if v is None else v for v in table["m"].to_pylist()]
    assert np.array_equal(np.sort(got), np.sort(p.values["line_along"]), equal_nan=True)
    # One join side gives lengths after measures, and measures after lengths.
    side = ogrjoin.Index(right, along="m")
    lengths = ogrjoin.pairs(left, right, "nearest", line_along=True).values["line_along"]
    measures = ogrjoin.pairs(left, right, "nearest", **ASKED).values["line_along"]
    for _ in range(2):
        assert np.array_equal(side.pairs(left, "nearest", line_along=True).values["line_along"], lengths, equal_nan=True)
        assert np.array_equal(side.pairs(left, "nearest", **ASKED).values["line_along"], measures, equal_nan=True)


def test_refusals():
    lines = [shapely.LineString([(0, 0), (1, 1)])]
    point = [shapely.Point(0, 0)]
    with pytest.raises(ogrjoin.Error, match="no line of the right side has M values: write along=length"):
        ogrjoin.pairs(point, lines, "nearest", **ASKED)
    with pytest.raises(ogrjoin.Error, match="needs along_field"):
        ogrjoin.pairs(point, lines, "nearest", along="m")
    with pytest.raises(ogrjoin.Error, match="Index\\(right, along=\"m\"\\)"):
        ogrjoin.Index(lines).pairs(point, "nearest", **ASKED)
    with pytest.raises(ogrjoin.Error, match="along"):
        ogrjoin.pairs(point, lines, "intersects", **ASKED)
    # A layer of points has no lines, so missing M values are no error.
    assert math.isnan(ogrjoin.pairs(point, point, "nearest", **ASKED).values["line_along"][0])
