"""Places along lines and rings, offsets and sides.  They are compared with a plain loop
over all segments, with shapely's line_locate_point, and with the inside of polygons."""

import math
import os
import shutil
import statistics
import subprocess

import numpy as np
import pytest

import ogrjoin
from plain_segments import course_of, distance_and_place, length_of, lines_of

shapely = pytest.importorskip("shapely")

NAMES = ("line_along", "line_along_percent", "line_offset", "line_segment", "line_bearing")
ALL = {name: True for name in (*NAMES, "line_side")}
FIELDS = {
    "along_field": "a", "along_percent_field": "b", "offset_field": "c",
    "segment_field": "d", "line_bearing_field": "e", "side_field": "f",
}  # fmt: skip


COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")


# --- the reference ----------------------------------------------------------


def normal(a, b):
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    return np.array([-(b[1] - a[1]), b[0] - a[0]]) / length


def side_of(ring, i, r, p):
    """Returns the side by the mean normal of the segments at the place. Returns 0 if
    that does not decide it."""
    if ring[i] == ring[i + 1]:
        return 0
    place = [(1 - r) * u + r * v for u, v in zip(ring[i], ring[i + 1])]
    pieces = [(a, b) for a, b in zip(ring, ring[1:]) if a != b]
    k = sum(a != b for a, b in zip(ring[:i], ring[1 : i + 1]))
    of = [pieces[k]]
    is_closed = ring[0] == ring[-1]
    if r == 0 and (k > 0 or is_closed):
        of.append(pieces[k - 1])
    if r == 1 and (k + 1 < len(pieces) or is_closed):
        of.append(pieces[(k + 1) % len(pieces)])
    mean = sum(normal(*piece) for piece in of)
    lean = float(np.dot(mean, np.subtract(p, place)))
    return 0 if abs(lean) < 1e-9 else math.copysign(1, lean)


def reference(p, shape):
    """Returns along, percent, |offset|, segment, bearing, side. The side is 0 if it is
    not decided."""
    best, so_far, number = None, 0.0, 0
    for ring in lines_of(shape):
        has_length = any(a != b for a, b in zip(ring, ring[1:]))
        for i, (a, b) in enumerate(zip(ring, ring[1:])):
            number += 1
            length = length_of(b, a)
            d, r = distance_and_place(p, a, b)
            if (a != b or not has_length) and (best is None or d < best[0]):
                course = course_of(a, b) % 360
                course = course if a != b else math.nan
                best = (d, so_far + r * length, number, course, side_of(ring, i, r, p))
            so_far += length
    if best is None:
        return None
    d, along, number, course, side = best
    percent = 100 * along / so_far if so_far > 0 else math.nan
    return along, percent, d, number, course, side


def check_pair(p, shape, got, what):
    expected = reference(p, shape)
    if expected is None:
        assert all(math.isnan(got[k]) for k in NAMES), what
        assert got["line_side"] is None, what
        return 0
    along, percent, d, number, course, side = expected
    assert got["line_along"] == pytest.approx(along, rel=1e-12, abs=1e-12), what
    assert got["line_along_percent"] == pytest.approx(percent, rel=1e-12, nan_ok=True), what
    assert got["line_segment"] == number, what
    assert got["line_bearing"] == pytest.approx(course, abs=1e-9, nan_ok=True), what
    if d == 0:
        assert (got["line_side"], got["line_offset"]) == ("on", 0), what
    elif math.isnan(course):
        assert got["line_side"] is None and math.isnan(got["line_offset"]), what
    else:
        sign = {"left": 1, "right": -1, "on": 0}[got["line_side"]]
        assert got["line_offset"] == sign * d, what
        assert side in (0, sign), (what, sign, side)
    return 1


# --- random layers ----------------------------------------------------------


def vertices(rng, n):
    xy = rng.integers(0, 9, (n, 2)).astype(float)
    if rng.random() < 0.4:  # segments of length 0
        xy = np.repeat(xy, rng.integers(1, 3, n), axis=0)
    if rng.random() < 0.3:
        xy = np.concatenate([xy, xy[:1]])
    if rng.random() < 0.2:  # runs back over itself
        xy = np.concatenate([xy, xy[::-1]])
    if rng.random() < 0.3:
        xy = xy + rng.random(xy.shape)
    return xy


def line(rng):
    xy = vertices(rng, rng.integers(1, 8))
    return shapely.LineString(xy if len(xy) > 1 else np.repeat(xy, 2, axis=0))


def long_line(rng):
    return shapely.LineString(np.cumsum(rng.integers(-2, 3, (rng.integers(40, 90), 2)), axis=0))


def polygon(rng):
    x, y = rng.integers(0, 8, 2)
    hole = [(x + 1, y + 1), (x + 2, y + 1), (x + 2, y + 2), (x + 1, y + 1)]
    shell = [(x, y), (x + 4, y), (x + 4, y + 4), (x, y + 4)]
    return shapely.Polygon(shell[:: rng.choice((-1, 1))], [hole])


def join_side(rng, n):
    out = []
    for _ in range(n):
        kind = rng.integers(0, 10)
        if kind < 4:
            out.append(line(rng))
        elif kind == 4:
            out.append(shapely.MultiLineString([line(rng) for _ in range(3)]))
        elif kind == 5:
            out.append(polygon(rng))
        elif kind == 6:
            out.append(long_line(rng))
        elif kind == 7:
            point = shapely.Point(*rng.integers(0, 9, 2))
            out.append(shapely.GeometryCollection([point, line(rng), polygon(rng)]))
        elif kind == 8:
            out.append(shapely.Point(*rng.integers(0, 9, 2)))
        else:
            out.append(rng.choice([None, shapely.LineString(), shapely.MultiLineString()]))
    return np.array(out, dtype=object)


def places(rng, n):
    xy = rng.integers(-2, 11, (n, 2)).astype(float)
    if rng.random() < 0.5:
        xy = xy + rng.random(xy.shape)
    points = shapely.points(xy).astype(object)
    points[rng.random(n) < 0.05] = None
    return points


def check_pairs(left, right, op, **settings):
    p = ogrjoin.pairs(left, right, op, from_point=True, **ALL, **settings)
    n = 0
    for i, (a, b) in enumerate(zip(p.left, p.right)):
        got = {name: column[i] for name, column in p.values.items()}
        what = (left[a], right[b])
        if left[a].geom_type != "Point" and p.distance[i] == 0 and lines_of(right[b]):
            lines = shapely.MultiLineString(lines_of(right[b]))
            if shapely.get_dimensions(right[b]) == 1 or "Multi" in right[b].geom_type:
                assert (got["line_side"], got["line_offset"]) == ("on", 0), what
            elif right[b].geom_type == "Polygon":
                expected = shapely.distance(left[a], lines)
                assert abs(got["line_offset"]) == pytest.approx(expected, abs=1e-12), what
                assert (got["line_side"] == "on") == (expected == 0), what
            continue
        n += check_pair((got["from_x"], got["from_y"]), right[b], got, what)
        if right[b].geom_type.endswith("LineString") and not math.isnan(got["line_offset"]):
            rel = 0 if left[a].geom_type == "Point" else 1e-12
            assert abs(got["line_offset"]) == pytest.approx(p.distance[i], rel=rel, abs=rel), what
    return n


@pytest.mark.parametrize("seed", range(20))
def test_points_and_any_lines(seed):
    rng = np.random.default_rng(seed)
    left, right = places(rng, 40), join_side(rng, 25)
    n = check_pairs(left, right, "dwithin", max_distance=100, threads=1 + seed % 3)
    n += check_pairs(left, right, "nearest", k=3, ties="all")
    assert n > 200


@pytest.mark.parametrize("seed", range(6))
def test_other_input_has_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    left, right = join_side(rng, 20), join_side(rng, 20)
    left[:4] = [shapely.MultiPoint(rng.integers(0, 9, (3, 2))) for _ in range(4)]
    assert check_pairs(left, right, "dwithin", max_distance=100) > 50


@pytest.mark.parametrize("seed", range(5))
def test_shapely_locates_points_alike(seed):
    rng = np.random.default_rng(seed)
    right = np.array(
        [line(rng) if i % 3 else shapely.MultiLineString([line(rng), line(rng)]) for i in range(60)]
    )
    left = places(rng, 60)
    p = ogrjoin.pairs(left, right, "dwithin", max_distance=100, line_along=True)
    expected = shapely.line_locate_point(right[p.right], left[p.left])
    assert len(expected) > 3000
    assert np.allclose(p.values["line_along"], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_left_of_a_ring_is_its_inside(seed):
    """Left of a ring is its inside. Tests stars with sharp turns, and points around
    their vertices."""
    rng = np.random.default_rng(seed)
    stars, turns = [], []
    for _ in range(30):
        n = rng.integers(3, 12)
        angle = np.sort(rng.random(n)) * 2 * np.pi
        size = rng.uniform(0.1, 10, n)
        star = shapely.Polygon(np.c_[np.cos(angle) * size, np.sin(angle) * size])
        if star.is_valid and not star.is_empty:
            turns.append(1 if star.exterior.is_ccw else -1)
            stars.append(star.exterior)
    stars = np.array(stars)
    xy = np.concatenate([shapely.get_coordinates(stars), rng.uniform(-12, 12, (300, 2))])
    near = np.repeat(xy, 4, axis=0) + rng.normal(0, 0.01, (4 * len(xy), 2))
    points = shapely.points(near)
    p = ogrjoin.pairs(points, stars, "dwithin", max_distance=100, line_side=True)
    assert len(p) == len(points) * len(stars)
    inside = shapely.contains(shapely.polygons(stars[p.right]), points[p.left])
    left = np.where(np.array(turns)[p.right] > 0, inside, ~inside)
    assert np.array_equal(p.values["line_side"] == "left", left)


# --- known places -----------------------------------------------------------

LINE = shapely.LineString([(0, 0), (0, 0), (4, 0), (4, 4), (4, 4), (0, 4)])
KNOWN = [
    # point, line: along, offset, side, segment, bearing
    ((1, 1), LINE, (1, 1, "left", 2, 90)),
    ((1, -1), LINE, (1, -1, "right", 2, 90)),
    ((2, 0), LINE, (2, 0, "on", 2, 90)),
    ((0, 0), LINE, (0, 0, "on", 2, 90)),
    ((-3, 0), LINE, (0, 3, "left", 2, 90)),  # straight behind the start
    ((-3, -4), LINE, (0, -5, "right", 2, 90)),
    ((-2, 4), LINE, (12, 2, "left", 5, 270)),  # straight beyond the end
    ((4, 0), LINE, (4, 0, "on", 2, 90)),  # a vertex: the segment before
    ((7, -4), LINE, (4, -5, "right", 2, 90)),  # outside of a turn to the left
    ((7, 8), LINE, (8, -5, "right", 3, 0)),
    ((5, 1), [(0, 0), (4, 0), (0, 1)], (4, -math.sqrt(2), "right", 1, 90)),
    ((5, 0.1), [(0, 0), (4, 0), (0, 0)], (4, math.hypot(1, 0.1), "left", 1, 90)),  # the line runs back
    ((5, 0), [(0, 0), (4, 0), (0, 0)], (4, 1, "left", 1, 90)),
    ((-1, -1), [(0, 0), (4, 0), (0, 4), (0, 0)], (0, -math.sqrt(2), "right", 1, 90)),  # closed
    ((-1, -1), [(0, 0), (0, 4), (4, 0), (0, 0)], (0, math.sqrt(2), "left", 1, 0)),
    ((3, 4), [(0, 0), (0, 0)], (0, math.nan, None, 1, math.nan)),  # no length
    ((0, 0), [(0, 0), (0, 0)], (0, 0, "on", 1, math.nan)),
]


@pytest.mark.parametrize("point, shape, expected", KNOWN)
def test_known_places(point, shape, expected):
    shape = shape if hasattr(shape, "coords") else shapely.LineString(shape)
    v = ogrjoin.pairs([shapely.Point(point)], [shape], "nearest", **ALL).values
    got = [v[k][0] for k in ("line_along", "line_offset", "line_side", "line_segment", "line_bearing")]
    for a, b in zip(got, expected):
        assert a == b or (a is not None and math.isnan(a) and math.isnan(b)), (got, expected)


# --- rows --------------------------------------------------------------------


def table(shapes):
    pa = pytest.importorskip("pyarrow")
    metadata = {b"ARROW:extension:name": b"geoarrow.wkb"}
    field = pa.field("geometry", pa.binary(), metadata=metadata)
    return pa.table([pa.array(list(shapely.to_wkb(shapes)), pa.binary())], schema=pa.schema([field]))


def test_rows_have_the_columns():
    rng = np.random.default_rng(3)
    left, right = places(rng, 50), join_side(rng, 30)
    rows = ogrjoin.join(table(left), table(right), "dwithin", max_distance=3, how="inner", **FIELDS)
    p = ogrjoin.pairs(left, right, "dwithin", max_distance=3, **ALL)
    got = rows.read_all() if hasattr(rows, "read_all") else rows.to_arrow()
    assert [str(got.schema.field(f).type) for f in "abcdef"] == ["double"] * 3 + ["int64", "double", "string"]
    assert len(p) > 50
    for name, column in zip((*NAMES, "line_side"), "abcdef"):
        expected = [None if v is None or v != v else v for v in p.values[name]]
        assert got[column].to_pylist() == expected, name


@pytest.mark.parametrize("name", FIELDS)
def test_joins_without_distance_have_none(name):
    with pytest.raises(ogrjoin.Error, match="nearest"):
        ogrjoin.join(table([shapely.Point(0, 0)]), table([LINE]), "intersects", **{name: "x"})


# --- the sphere ---------------------------------------------------------------

R = 6371008.7714


def unit(lon, lat):
    lon, lat = np.radians(lon), np.radians(lat)
    return np.array([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def arc(u, v):
    return R * math.atan2(np.linalg.norm(np.cross(u, v)), np.dot(u, v))


def on_sphere(p, shape):
    """Returns along and offset. The offset is 0 if its side is not decided."""
    best, so_far, p = None, 0.0, unit(*p)
    for ring in lines_of(shape):
        for a, b in zip(ring, ring[1:]):
            u, v = unit(*a), unit(*b)
            n = np.cross(u, v)
            length = arc(u, v)
            ends = [(arc(p, u), 0.0, 0), (arc(p, v), length, 0)]
            if np.linalg.norm(n) > 0:
                n = n / np.linalg.norm(n)
                foot = p - n * np.dot(n, p)
                foot = foot / np.linalg.norm(foot)
                if np.dot(np.cross(n, u), foot) > 0 and np.dot(np.cross(n, v), foot) < 0:
                    ends.append((arc(p, foot), arc(u, foot), math.copysign(1, np.dot(n, p))))
            d, along, sign = min(ends)
            if best is None or d < best[0] - 1e-6:
                best = (d, so_far + along, sign)
            so_far += length
    return best[1], best[0], best[2]


@pytest.mark.parametrize("seed", range(5))
def test_sphere(seed):
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(30):
        xy = np.array([rng.uniform(-180, 180), rng.uniform(-80, 80)])
        steps = np.cumsum(rng.normal(0, 0.01, (rng.integers(2, 30), 2)), axis=0)
        xy = xy + np.concatenate([[[0, 0]], steps])
        lines.append(shapely.MultiLineString([xy, xy[::-1] + 0.02]) if i % 4 == 0 else shapely.LineString(xy))
    lines = np.array(lines)
    xy = shapely.get_coordinates(lines) + rng.normal(0, 0.01, (shapely.get_num_coordinates(lines).sum(), 2))
    p = ogrjoin.pairs(shapely.points(xy), lines, "nearest", metric="sphere", crs="ignore", **ALL)
    n_inside = 0
    for i, (a, b) in enumerate(zip(p.left, p.right)):
        along, d, sign = on_sphere(xy[a], lines[b])
        got = {k: v[i] for k, v in p.values.items()}
        assert got["line_along"] == pytest.approx(along, abs=1e-3), (xy[a], lines[b].wkt)
        assert abs(got["line_offset"]) == pytest.approx(d, abs=1e-3)
        assert abs(got["line_offset"]) == pytest.approx(p.distance[i], abs=1e-9)
        assert got["line_side"] == ("left" if got["line_offset"] > 0 else "right")
        if sign and d > 0.01:
            n_inside += 1
            assert math.copysign(1, got["line_offset"]) == sign
        pieces = [s for ring in lines_of(lines[b]) for s in zip(ring, ring[1:])]
        (x0, y0), (x1, y1) = pieces[int(got["line_segment"]) - 1]
        course = math.degrees(math.atan2((x1 - x0) * math.cos(math.radians((y0 + y1) / 2)), y1 - y0))
        assert (got["line_bearing"] - course + 180) % 360 - 180 == pytest.approx(0, abs=0.5)
    assert n_inside > 100


def test_several_points_around_a_ring_on_the_sphere():
    """One of several points is inside of the polygon, so the distance is 0. The place is
    that of the point nearest to a ring, as in the plane."""
    square = shapely.Polygon([(0, 0), (2, 0), (2, 2), (0, 2)])
    points = shapely.MultiPoint([(1, 0.5), (1.5, 1), (9, 9)])
    v = ogrjoin.pairs([points], [square], "nearest", metric="sphere", crs="ignore", from_point=True, **ALL)
    assert v.distance[0] == 0
    got = {name: column[0] for name, column in v.values.items()}
    assert got["line_side"] == "left" and got["line_segment"] == 2
    assert got["line_offset"] == pytest.approx(arc(unit(1.5, 1), unit(2, 1)), rel=1e-4)
    plane = ogrjoin.pairs([points], [square], "nearest", **ALL).values
    assert (plane["line_side"][0], plane["line_segment"][0]) == ("left", 1)


@pytest.mark.parametrize("metric", ["planar", "sphere"])
def test_a_line_of_one_vertex_has_no_place(metric):
    """WKB may contain a line of one vertex. The place is on the other line of the feature,
    although the other line is farther away."""
    one = bytes.fromhex("010200000001000000" + "00" * 16)
    two = shapely.to_wkb(shapely.LineString([(5, 5), (6, 5)]))
    whole = bytes.fromhex("010500000002000000") + one + two
    pa = pytest.importorskip("pyarrow")
    metadata = {b"ARROW:extension:name": b"geoarrow.wkb"}
    field = pa.field("geometry", pa.binary(), metadata=metadata)
    right = pa.table([pa.array([whole], pa.binary())], schema=pa.schema([field]))
    v = ogrjoin.pairs([shapely.Point(0, 0)], right, "nearest", metric=metric, crs="ignore", **ALL)
    assert len(v) == 1 and v.values["line_along"][0] == 0 and v.values["line_bearing"][0] == pytest.approx(90, abs=0.1)


# --- aggregates -------------------------------------------------------------

WORDS = "count, mean(a), max(b), min(c), sum(d), unique(d), concat(d, ';') as ds, mode(f), concat(f, ';') as fs, count(f)"
ORDER = ["count", "a", "b", "c", "d", "unique", "ds", "mode", "fs", "sides"]


def many_lines(n=40):
    rng = np.random.default_rng(11)
    points = [None if i % 13 == 5 else shapely.Point(*rng.integers(0, 12, 2)) for i in range(n)]
    lines = [shapely.LineString(rng.integers(0, 12, (4, 2))) for _ in range(n)]
    return points, lines


def summed(rows):
    """Returns the aggregates of a row's pairs: (along, percent, offset, segment, side)."""
    if not rows:
        return (0, None, None, None, None, 0, None, None, None, 0)
    a, b, c, d, f = zip(*rows)
    counts = {side: f.count(side) for side in f}
    mode = min(side for side in counts if counts[side] == max(counts.values()))
    segments, sides = ";".join(map(str, d)), ";".join(f)
    return (len(rows), statistics.fmean(a), max(b), min(c), sum(d), len(set(d)), segments, mode, sides, len(f))


def expected_sums(points, lines):
    """Returns the aggregates, computed from the rows of the pairs, in the order of
    their join rows."""
    joined = ogrjoin.join(points, lines, "nearest", k=4, how="inner", name_fid="b", **FIELDS | {"along_percent_field": "p"})
    table, of_point = joined.read_all(), {}
    for row in table.to_pylist():
        place = of_point.setdefault(row["geometry"], {})
        place[row["b"]] = tuple(row[n] for n in ("a", "p", "c", "d", "f"))
    found = [{} if p is None else of_point[shapely.to_wkb(p)] for p in points]
    return [summed([row for _, row in sorted(pairs.items())]) for pairs in found]


def is_close(got, expected):
    return len(got) == len(expected) and all(
        g == e if isinstance(e, (str, int, type(None))) else g == pytest.approx(e, rel=1e-12, abs=1e-12)
        for g, e in zip(got, expected)
    )


def test_aggregates_of_places():
    pytest.importorskip("pyarrow")
    points, lines = many_lines()
    expected = expected_sums(points, lines)
    table = ogrjoin.join(points, lines, "nearest", k=4, agg=WORDS, **{k: v for k, v in FIELDS.items() if v != "e"}).read_all()
    columns = [table[i].to_pylist() for i in range(table.num_columns - len(ORDER), table.num_columns)]
    for got, row in zip(zip(*columns), expected):
        assert is_close(got, row), (got, row)


def test_aggregates_of_relations():
    pa = pytest.importorskip("pyarrow")
    squares = [shapely.box(0, 0, 4, 4), shapely.box(8, 8, 9, 9)]
    others = [shapely.box(1, 1, 2, 2), shapely.box(4, 0, 5, 4), shapely.box(3, 3, 6, 6), shapely.box(0, 0, 4, 4)]
    words = {"relation_field": "r", "matrix_field": "m"}
    table = ogrjoin.join(squares, others, agg="concat(r, '|') as rs, unique(m) as n, min(m)", **words).read_all()
    assert table["rs"].to_pylist() == ["contains|touches|overlaps|equals", None]
    assert table["n"].to_pylist() == [4, 0]
    pairs = ogrjoin.join(squares, others, how="inner", matrix_field="m").read_all()
    assert table.column(table.num_columns - 1).to_pylist() == [min(pairs["m"].to_pylist()), None]
    assert table.schema.field(table.num_columns - 1).type == pa.string()


def test_a_named_column_is_used():
    points, lines = many_lines(3)
    with pytest.raises(ogrjoin.Error, match="no aggregate uses 'a'"):
        ogrjoin.join(points, lines, "nearest", agg="count", along_field="a").read_all()


@pytest.mark.skipif(not COMMAND, reason="no command (OGRJOIN_COMMAND)")
def test_aggregates_of_the_command(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("pyogrio")
    points, lines = many_lines()
    expected = expected_sums(points, lines)
    for name, shapes in (("a", points), ("b", lines)):
        rows = [f'{i},"{"" if s is None else s.wkt}"\n' for i, s in enumerate(shapes)]
        (tmp_path / f"{name}.csv").write_text("id,WKT\n" + "".join(rows))
    options = [word for k, v in FIELDS.items() if v != "e" for word in (f"-{k}", v)]
    words = ["-op", "nearest", "-k", "4", "-agg", WORDS, *options, "-f", "CSV"]
    out = tmp_path / "o.csv"
    subprocess.run([COMMAND, *words, out, tmp_path / "a.csv", tmp_path / "b.csv"], check=True)
    import csv

    with open(out, newline="") as file:
        rows = [list(row.values())[-len(ORDER) :] for row in csv.DictReader(file)]
    kinds = (int, float, float, float, int, int, str, str, str, int)
    read = [[kind(v) if v != "" else None for kind, v in zip(kinds, row)] for row in rows]
    for got, row in zip(read, expected):
        assert is_close(got, row) or row[0] == 0, (got, row)
