"""Headings: of lines and rings only the segments count whose direction fits the row's
heading.  Compared with a plain loop over all segments, with angles in degrees. Tests
ties at the bounds of the tolerance, segments of length 0, several points of a row, and
columns of the nearest segment."""

import math
import random

import numpy as np
import pytest

import ogrjoin
from plain_segments import course_of, distance_and_place, length_of, rings_of

pa = pytest.importorskip("pyarrow")
shapely = pytest.importorskip("shapely")


# --- the reference ----------------------------------------------------------


def has_heading(heading):
    return heading is not None and -360 <= heading <= 360


def fits(a, b, heading, tolerance, both_ways):
    """Returns True if the segment's direction fits the heading. In these tests an angle
    equals the tolerance, or differs from it by more than 1e-9 degrees."""
    if a == b:
        return False
    apart = abs((course_of(a, b) - heading + 180) % 360 - 180)
    if both_ways:
        apart = min(apart, 180 - apart)
    return apart <= tolerance + 1e-9


def segments_of(shape):
    """Yields number, start and end of each segment. The number of a point is None."""
    number = 0
    for ring in rings_of(shape):
        if len(ring) == 1:
            yield None, ring[0], ring[0]
        for a, b in zip(ring, ring[1:]):
            number += 1
            yield number, a, b


def nearest_segment(points, shape, heading, tolerance, both_ways):
    """Returns distance, number, bearing and nearest point of the nearest segment that fits."""
    best = None
    for p in points:
        for number, a, b in segments_of(shape):
            if has_heading(heading) and not fits(a, b, heading, tolerance, both_ways):
                continue
            d, _ = distance_and_place(p, a, b)
            if best is None or d < best[0]:
                best = (d, number, a, b, p)
    return best


def points_of(shape):
    if shape is None or shape.is_empty:
        return []
    return [p.coords[0] for p in getattr(shape, "geoms", [shape])]


def expected_pairs(left, right, heading, tolerance, both_ways, k, ties, most, may=None):
    pairs = []
    for i, shape in enumerate(left):
        found = []
        for j, other in enumerate(right):
            if may is not None and not may(i, j):
                continue
            best = nearest_segment(points_of(shape), other, heading[i], tolerance, both_ways)
            limit = most(i, j) if callable(most) else most
            if best is not None and best[0] <= limit:
                found.append((best[0], j))
        if k is not None:
            found.sort()
            end = min(k, len(found))
            while ties and 0 < end < len(found) and found[end][0] == found[end - 1][0]:
                end += 1
            found = found[:end]
        else:
            found.sort(key=lambda pair: pair[1])
        pairs += [(i, j, d) for d, j in found]
    return pairs


# --- random layers ----------------------------------------------------------


def line(r, real):
    n = r.randrange(2, 7)
    at = [r.randrange(9), r.randrange(9)]
    out = [tuple(at)]
    for _ in range(n - 1):
        if r.random() < 0.8:  # otherwise a segment of length 0
            at = [at[0] + r.randrange(-3, 4), at[1] + r.randrange(-3, 4)]
            if real:
                at = [at[0] + r.random(), at[1] + r.random()]
        out.append(tuple(map(float, at)))
    return shapely.LineString(out)


def polygon(r):
    x, y, size = r.randrange(8), r.randrange(8), r.randrange(3, 5)
    shell = [(x, y), (x + size, y), (x + size, y + size), (x, y + size)][:: r.choice((-1, 1))]
    hole = [(x + 1, y + 1), (x + 2, y + 1), (x + 2, y + 2)]
    return shapely.Polygon(shell, [hole])


def join_shape(r, real):
    kind = r.randrange(12)
    if kind < 7:
        return line(r, real)
    if kind == 7:
        return shapely.MultiLineString([line(r, real) for _ in range(3)])
    if kind == 8:
        return polygon(r)
    if kind == 9:
        point = shapely.Point(r.randrange(9), r.randrange(9))
        return shapely.GeometryCollection([point, line(r, real), polygon(r)])
    if kind == 10:
        return shapely.Point(r.randrange(9), r.randrange(9))
    return r.choice([None, shapely.LineString(), shapely.LineString([(3, 3), (3, 3)])])


def input_shape(r, real):
    def place():
        return (r.randrange(-1, 11) + (r.random() if real else 0), r.randrange(-1, 11))

    if r.random() < 0.1:
        return shapely.MultiPoint([place() for _ in range(3)])
    return None if r.random() < 0.05 else shapely.Point(*place())


def some_heading(r):
    return r.choice(
        [0, 45, 90, 135, 180, 225, 270, 315, 360, -45, -90, -360, 15, 30, 60, 200, 299.5]
        + [None, math.nan, 511, math.inf, -361]
    )


def table(shapes, **columns):
    wkb = [None if shape is None else shapely.to_wkb(shape) for shape in shapes]
    number = pa.array(range(len(shapes)))
    return pa.table({"geometry": pa.array(wkb, pa.binary()), "row": number, **columns})


def sides(r, n_left, n_right, real=False):
    left = [input_shape(r, real) for _ in range(n_left)]
    right = [join_shape(r, real) for _ in range(n_right)]
    heading = [some_heading(r) for _ in left]
    return left, right, heading


def join(left, right, courses, **words):
    of_left = table(left, course=pa.array(courses, pa.float64()))
    of_right = table(right).rename_columns(["geometry", "join_row"])
    rows = {"how": "inner", "left_select": "row", "right_select": "join_row", "threads": 2}
    return ogrjoin.join(of_left, of_right, **{**rows, "geometry": "none", **words}).read_all()


def pairs_of(found):
    return list(zip(*(found[name].to_pylist() for name in ("row", "join_row", "join_distance"))))


TOLERANCES = [0, 15, 30, 44.5, 45, 60, 90, 100, 135, 170, 180]
JOINS = [
    ({"op": "nearest"}, 1, False),
    ({"op": "nearest", "max_distance": 2.5}, 1, False),
    ({"op": "nearest", "ties": "all"}, 1, True),
    ({"op": "nearest", "k": 3}, 3, False),
    ({"op": "nearest", "k": 3, "ties": "all", "max_distance": 4}, 3, True),
    ({"op": "nearest", "k": 40}, 40, False),
    ({"op": "dwithin", "max_distance": 1.5}, None, False),
    ({"op": "dwithin", "max_distance": 0}, None, False),
]


@pytest.mark.parametrize("words, k, ties", JOINS)
@pytest.mark.parametrize("both_ways", [0, 1])
def test_pairs(words, k, ties, both_ways):
    r = random.Random(f"{words} {both_ways}")
    n_pairs = 0
    for tolerance in TOLERANCES:
        left, right, heading = sides(r, 40, 30, r.random() < 0.3)
        most = words.get("max_distance", math.inf)
        expected = expected_pairs(left, right, heading, tolerance, both_ways, k, ties, most)
        asked = {"heading": f"course:{tolerance}", "heading_both_ways": both_ways}
        for backend in ("cpu", "geos"):
            got = pairs_of(join(left, right, heading, **asked, **words, backend=backend))
            assert got == expected, (words, tolerance, backend)
        n_pairs += len(expected)
    assert n_pairs > 30


def test_default_tolerance_is_45():
    left, right, heading = sides(random.Random(3), 50, 30)
    every = join(left, right, heading, op="nearest", heading="course")
    assert every == join(left, right, heading, op="nearest", heading="course:45")


def test_bounds_belong_to_the_tolerance():
    lines = {course: shapely.LineString([(0, 0), (x, y)])
             for course, x, y in [(0, 0, 5), (45, 3, 3), (90, 7, 0), (135, 0.1, -0.1), (180, 0, -2),
                                  (225, -1, -1), (270, -1e-9, 0), (315, -1e7, 1e7)]}  # fmt: skip
    for course, shape in lines.items():
        for tolerance in (0, 1e-9, 45, 90, 135, 180):
            for turned in (-tolerance, tolerance, -tolerance - 0.001, tolerance + 0.001):
                inside = abs(turned) <= tolerance or tolerance == 180
                at = [course + turned]
                if abs(at[0]) > 360:
                    continue
                words = {"op": "nearest", "heading": f"course:{tolerance!r}"}
                found = join([shapely.Point(1, 1)], [shape], at, **words)
                assert found.num_rows == inside, (course, tolerance, turned)


def test_several_batches_and_threads():
    left, right, heading = sides(random.Random(8), 3000, 400, True)
    words = {"op": "nearest", "k": 2, "heading": "course:20", "heading_both_ways": 1}
    one = pairs_of(join(left, right, heading, threads=1, **words))
    for more in ({"threads": 4}, {"batch_rows": 7}, {"batch_rows": 500, "threads": 3}):
        assert pairs_of(join(left, right, heading, **words, **more)) == one
    assert len(one) > 2000


def test_other_conditions():
    r = random.Random(4)
    left, right, heading = sides(r, 60, 60)
    code = [[r.randrange(3) for _ in side] for side in (left, right)]
    reach = [r.choice([None, -1, 0.5, 1, 3]) for _ in left]
    of_left = table(left, course=pa.array(heading, pa.float64()), code=code[0],
                    reach=pa.array(reach, pa.float64()))  # fmt: skip
    of_right = table(right, code=code[1]).rename_columns(["geometry", "join_row", "code"])
    own = {"how": "inner", "geometry": "none", "heading": "course:30"}

    def got(**words):
        return pairs_of(ogrjoin.join(of_left, of_right, **own, **words).read_all())

    def may(i, j):
        return code[0][i] == code[1][j]

    def may_not(i, j):
        return code[0][i] != code[1][j]

    def limit(i, j):
        return -1 if reach[i] is None else reach[i]

    def pairs(k, most, may=None):
        return expected_pairs(left, right, heading, 30, 0, k, False, most, may)

    assert got(op="nearest", k=2, on="code") == pairs(2, math.inf, may)
    assert got(op="dwithin", max_distance=2, on="code") == pairs(None, 2, may)
    assert got(op="nearest", exclude="field=code") == pairs(1, math.inf, may_not)
    assert got(op="dwithin", max_distance_field="reach") == pairs(None, limit)
    assert got(op="nearest", within_time="code:0") == pairs(1, math.inf, may)
    assert len(pairs(None, limit)) > 20


def test_columns_of_the_segment_that_fits():
    r = random.Random(6)
    n = 0
    for _ in range(8):
        left, right, heading = sides(r, 60, 20, True)
        heading = [h if has_heading(h) else 10.0 for h in heading]
        found = join(
            left, right, heading, op="nearest", k=2, heading="course:40", along_field="along",
            segment_field="segment", line_bearing_field="course_of_line", offset_field="offset",
            side_field="side", nearest_point_fields=1, bearing_field=1,
        )  # fmt: skip
        for row in found.to_pylist():
            shape = right[row["join_row"]]
            points = points_of(left[row["row"]])
            d, number, a, b, p = nearest_segment(points, shape, heading[row["row"]], 40, 0)
            assert row["join_distance"] == d
            assert row["segment"] == number, (row, shape)
            course = course_of(a, b) % 360
            assert row["course_of_line"] == pytest.approx(course, abs=1e-9)
            length = sum(length_of(u, v) for m, u, v in segments_of(shape) if m and m < number)
            at = (row["nearest_x"], row["nearest_y"])
            assert length_of(at, p) == pytest.approx(d, abs=1e-12)
            assert row["along"] == pytest.approx(length + length_of(a, at), abs=1e-9)
            assert abs(row["offset"]) == d
            assert (row["side"] == "on") == (d == 0)
            n += 1
    assert n > 300


def test_points_of_several_places():
    """Of a row's points, the one that is nearest to a fitting segment counts, not the
    one nearest to the line."""
    left = [shapely.MultiPoint([(0, 1), (8, 3)])]
    right = [shapely.LineString([(0, 0), (10, 0), (10, 10)])]
    words = {"op": "nearest", "heading": "course:10", "nearest_point_fields": 1, "segment_field": "n"}
    found = join(left, right, [0], **words).to_pylist()
    assert [(row["join_distance"], row["nearest_x"], row["nearest_y"], row["n"]) for row in found] == [
        (2, 10, 3, 2)
    ]


def test_empty_and_pointless_sides():
    point, words = [shapely.Point(1, 1)], {"op": "nearest", "heading": "course"}
    assert join(point, [None], [3], **words).num_rows == 0
    assert join(point, [shapely.Point(2, 2)], [3], **words).num_rows == 0
    assert join(point, [shapely.Point(2, 2)], [None], **words).num_rows == 1
    assert join([], [shapely.LineString([(0, 0), (1, 1)])], [], **words).num_rows == 0


REFUSED = [
    ({"op": "nearest", "heading": "course:181"}, "0 to 180"),
    ({"op": "nearest", "heading": "course:x"}, "0 to 180"),
    ({"op": "nearest", "heading": ""}, "FIELD"),
    ({"op": "nearest", "heading": "none"}, "none"),
    ({"op": "nearest", "heading_both_ways": 1}, "heading"),
    ({"op": "intersects", "heading": "course"}, "nearest"),
    ({"op": "nearest", "heading": "course", "min_distance": 1}, "min_distance"),
    ({"op": "nearest", "heading": "course", "metric": "sphere"}, "leave metric=sphere out"),
    ({"op": "nearest", "heading": "course", "distance": "hausdorff"}, "distance=hausdorff compares whole shapes"),
    ({"op": "nearest", "heading": "course", "distance_to": "interior"}, "write distance_to=boundary"),
    ({"op": "nearest", "heading": "name"}, "number"),
]


@pytest.mark.parametrize("words, text", REFUSED)
def test_refused(words, text):
    left = table([shapely.Point(0, 0)], course=[1.0], name=["a"])
    right = table([shapely.LineString([(0, 0), (1, 1)])])
    with pytest.raises(ogrjoin.Error, match=text):
        ogrjoin.join(left, right, **words).read_all()


def test_lines_of_the_input_have_no_heading():
    left = table([shapely.LineString([(0, 0), (1, 1)])], course=[1.0])
    with pytest.raises(ogrjoin.Error, match="points"):
        ogrjoin.join(left, left, op="nearest", heading="course").read_all()


def test_pairs_have_no_columns():
    with pytest.raises(ogrjoin.Error, match="heading"):
        ogrjoin.pairs(np.array([shapely.Point(0, 0)]), np.array([shapely.Point(0, 0)]), "nearest", heading="a")
