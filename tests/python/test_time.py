"""Conditions on time, within_time and during.  Every join with such a condition has the
pairs of the join without it that fulfil the condition by definition.  Also tests kinds
of columns, zones, exact bounds, and errors."""

import datetime as dt
import random
import warnings

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
shapely = pytest.importorskip("shapely")

UTC = dt.timezone.utc
DAY = dt.datetime(2024, 2, 28, 22)
RELATIONS = {
    "before": lambda a, b: a[1] < b[0],
    "after": lambda a, b: b[1] < a[0],
    "meets": lambda a, b: a[1] == b[0] and a[0] < b[0] and a[1] < b[1],
    "met_by": lambda a, b: b[1] == a[0] and b[0] < a[0] and b[1] < a[1],
    "overlaps": lambda a, b: a[0] < b[0] < a[1] < b[1],
    "overlapped_by": lambda a, b: b[0] < a[0] < b[1] < a[1],
    "starts": lambda a, b: a[0] == b[0] and a[1] < b[1],
    "started_by": lambda a, b: a[0] == b[0] and b[1] < a[1],
    "during": lambda a, b: b[0] < a[0] and a[1] < b[1],
    "contains": lambda a, b: a[0] < b[0] and b[1] < a[1],
    "finishes": lambda a, b: a[1] == b[1] and b[0] < a[0],
    "finished_by": lambda a, b: a[1] == b[1] and a[0] < b[0],
    "equals": lambda a, b: a == b,
}
LAST, FIRST = float("inf"), float("-inf")


def shape(r, kind):
    x, y = r.randrange(12), r.randrange(12)
    if kind == "point":
        return shapely.Point(x, y)
    if kind == "line":
        return shapely.LineString([(x, y), (x + r.randrange(1, 4), y + r.randrange(4))])
    return shapely.box(x, y, x + r.randrange(1, 4), y + r.randrange(1, 4))


def some(r, n, value, missing=8):
    return [None if r.randrange(missing) == 0 else value() for _ in range(n)]


def side(r, n, kind):
    """Returns rows with few different instants. Many are equal, or exactly as far apart
    as the window."""
    minute = lambda: DAY + dt.timedelta(minutes=10 * r.randrange(30))
    begin = [r.randrange(8) for _ in range(n)]
    end = [b + r.randrange(-1, 5) if r.randrange(6) else b for b in begin]
    moments = some(r, n, minute)
    return pa.table(
        {
            "geometry": pa.array([shapely.to_wkb(shape(r, kind)) for _ in range(n)]),
            "at": pa.array(moments, pa.timestamp("us")),
            "ns": pa.array(moments, pa.timestamp("ns", "UTC")),
            "text": [None if m is None else f" {m.isoformat()}Z" for m in moments],
            "day": pa.array(some(r, n, lambda: minute().date())),
            "clock": pa.array(some(r, n, lambda: minute().time())),
            "whole": pa.array(some(r, n, lambda: r.randrange(20)), pa.int32()),
            "real": pa.array(some(r, n, lambda: r.randrange(60) / 10)),
            "begin": pa.array([None if r.randrange(9) == 0 else b for b in begin], pa.int16()),
            "end": pa.array([None if r.randrange(9) == 0 else e for e in end], pa.int64()),
        }
    )


def number(value):
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=UTC) - dt.datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    if isinstance(value, dt.date):
        return number(dt.datetime.combine(value, dt.time()))
    if isinstance(value, dt.time):
        return value.hour * 3600 + value.minute * 60 + value.second
    return value


def near(left, right, window):
    """Returns a condition on two rows: the values of these columns differ by at most
    the window."""

    def holds(a, b):
        a, b = number(a[left]), number(b[right])
        return a is not None and b is not None and abs(a - b) <= window

    return holds


def related(names, left, right):
    def span(row, columns):
        first, last = (number(row[column]) for column in columns)
        if columns[0] == columns[1] and first is None:
            return None
        return (FIRST if first is None else first, LAST if last is None else last)

    def holds(a, b):
        a, b = span(a, left), span(b, right)
        if a is None or b is None or a[0] > a[1] or b[0] > b[1]:
            return False
        found = [name for name, of in RELATIONS.items() if of(a, b)]
        assert len(found) == 1, (a, b, found)
        if "intersects" in names:
            names_ = set(RELATIONS) - {"before", "after"} | set(names)
        else:
            names_ = names
        return found[0] in names_

    return holds


CONDITIONS = [
    ({"within_time": "at:30min"}, near("at", "at", 1800)),
    ({"within_time": "at=ns:0.5h"}, near("at", "ns", 1800)),
    ({"within_time": "text=at:1800s"}, near("at", "at", 1800)),
    ({"within_time": "ns=text:600000ms"}, near("ns", "at", 600)),
    ({"within_time": "at=day:1d"}, near("at", "day", 86400)),
    ({"within_time": "day=day:0s"}, near("day", "day", 0)),
    ({"within_time": "clock:1h"}, near("clock", "clock", 3600)),
    ({"within_time": "whole=whole:2.7"}, near("whole", "whole", 2)),
    ({"within_time": "whole=real:1"}, near("whole", "real", 1)),
    ({"during": "begin..end=begin..end"}, related(["intersects"], ("begin", "end"), ("begin", "end"))),
    ({"during": "whole=begin..end"}, related(["intersects"], ("whole", "whole"), ("begin", "end"))),
    ({"during": "begin..end=real:starts+contains+before"},
     related(["starts", "contains", "before"], ("begin", "end"), ("real", "real"))),
    ({"during": "at=ns:after"}, related(["after"], ("at", "at"), ("ns", "ns"))),
    *(({"during": f"begin..end:{name}"}, related([name], ("begin", "end"), ("begin", "end")))
      for name in RELATIONS),
]  # fmt: skip
JOINS = [
    ("point", "point", {"op": "dwithin", "max_distance": 4}),
    ("point", "point", {"op": "nearest"}),
    ("point", "line", {"op": "nearest", "k": 2, "ties": "all"}),
    ("point", "polygon", {"op": "nearest", "k": 3, "max_distance": 5}),
    ("line", "polygon", {"op": "nearest", "k": 2}),
    ("point", "line", {"op": "dwithin", "max_distance": 2}),
    ("point", "polygon", {"op": "within"}),
    ("polygon", "line", {"op": "intersects"}),
    ("polygon", "polygon", {"op": "touches"}),
    ("line", "line", {"op": "disjoint"}),
    ("point", "point", {"op": "nearest", "metric": "sphere", "k": 2, "crs": "ignore"}),
    ("polygon", "point", {"op": "bbox"}),
    ("line", "line", {"op": "nearest", "distance": "hausdorff", "k": 2}),
]


def pairs_of(table):
    names = table.schema.names
    distance = table["join_distance"].to_pylist() if "join_distance" in names else None
    found = {}
    for i, (a, b) in enumerate(zip(table["row"].to_pylist(), table["join_row"].to_pylist())):
        found.setdefault(a, []).append((b, None if distance is None else distance[i]))
    return found


def chosen(pairs, k, ties):
    if k is None or len(pairs) <= k:
        return pairs
    last = pairs[k - 1][1]
    return pairs[:k] + ([p for p in pairs[k:] if p[1] == last] if ties else [])


@pytest.mark.parametrize("number_of_join", range(len(JOINS)))
def test_pairs_that_hold(number_of_join):
    left_kind, right_kind, words = JOINS[number_of_join]
    r = random.Random(number_of_join)
    n_pairs = 0
    for condition, holds in CONDITIONS:
        left, right = side(r, 40, left_kind), side(r, 50, right_kind)
        left = left.append_column("row", pa.array(range(40)))
        right = right.append_column("join_row", pa.array(range(50)))
        every = dict(words)
        nearest = words["op"] == "nearest"
        k = every.pop("k", 1) if nearest else None
        ties = every.pop("ties", "first") == "all"
        if nearest:
            every["k"] = 50
        rows = {"how": "inner", "left_select": "row", "right_select": "join_row"}
        rows.update(geometry="none", threads=2)
        every = pairs_of(ogrjoin.join(left, right, **every, **rows).read_all())
        of_left, of_right = left.to_pylist(), right.to_pylist()
        expected = {}
        for a, found in every.items():
            kept = [p for p in found if holds(of_left[a], of_right[p[0]])]
            if kept:
                expected[a] = chosen(kept, k, ties)
        got = pairs_of(ogrjoin.join(left, right, **words, **condition, **rows).read_all())
        assert got == expected, (words, condition)
        n_pairs += sum(map(len, expected.values()))
    assert n_pairs > 30


def test_both_conditions_and_classes():
    r = random.Random(5)
    left, right = side(r, 60, "point"), side(r, 60, "point")
    left = left.append_column("row", pa.array(range(60)))
    right = right.append_column("join_row", pa.array(range(60)))
    words = {"op": "dwithin", "max_distance": 9, "how": "inner", "on": "whole=whole"}
    every = pairs_of(ogrjoin.join(left, right, **words).read_all())
    a, b = left.to_pylist(), right.to_pylist()
    first, second = near("at", "at", 7200), related(["intersects"], ("begin", "end"), ("begin", "end"))
    expected = {
        i: kept
        for i, found in every.items()
        if (kept := [p for p in found if first(a[i], b[p[0]]) and second(a[i], b[p[0]])])
    }
    got = ogrjoin.join(left, right, **words, within_time="at:2h", during="begin..end")
    assert pairs_of(got.read_all()) == expected and expected


def times(values, type_=None):
    n = len(values)
    points = pa.array([shapely.to_wkb(shapely.Point(0, 0))] * n)
    return pa.table({"geometry": points, "t": pa.array(values, type_)})


def count(left, right, **words):
    return len(ogrjoin.join(left, right, how="inner", **words).read_all())


@pytest.mark.parametrize(
    "a, b, window, n",
    [
        (0.1, 0.3, "0.2", 1),  # in doubles, 0.3 is below 0.1 + 0.2
        (0.3, 0.1, "0.2", 1),
        (0.1, np.nextafter(0.1 + 0.2, 1), "0.2", 0),
        (1e16, 1e16 + 2, "1", 0),
        (-0.0, 0.0, "0", 1),
        (float("inf"), float("inf"), "1", 1),
        (float("nan"), 0.0, "1", 0),
        (1e308, -1e308, "1.7e308", 0),
        (1.7e308, float("inf"), "1e308", 0),
        (-1.7e308, float("-inf"), "1e308", 0),
    ],
)
def test_bounds_of_reals_are_exact(a, b, window, n):
    from fractions import Fraction

    if np.isfinite([a, b]).all():
        assert n == (abs(Fraction(a) - Fraction(b)) <= Fraction(float(window)))
    assert count(times([a]), times([b]), within_time=f"t:{window}") == n


def test_outermost_integers():
    most = 2**63 - 1
    assert count(times([most]), times([most]), within_time="t:0") == 1
    assert count(times([-most - 1]), times([-most - 1]), within_time="t:5") == 1
    assert count(times([most]), times([-most - 1]), within_time="t:9e18") == 0
    assert count(times([most]), times([None], pa.int64()), during="t") == 0


def test_texts_and_zones():
    texts = ["2024-02-29T23:30:00+01:00", "2024/02/29 22:30:00.000", "2024-02-29T17:00-0530",
             "2024-02-29 22:30Z"]  # fmt: skip
    same = pa.array([dt.datetime(2024, 2, 29, 22, 30)], pa.timestamp("s", "America/New_York"))
    assert count(times(texts), times(same), within_time="t:0s") == 4
    wrong = ["2024-02-30", "24-01-01", "2024-02-29T25:00", "noon", "2024-02-29T22:30+1",
             "2024-02-29T24:30", "2024-02-29T24:00:00.1", ""]  # fmt: skip
    assert count(times(wrong), times(same), within_time="t:100000d") == 0
    # An empty text is an open end. A row with a text that is no time has no
    # span.
    assert count(times(wrong), times(same), during="t..t=t") == 1
    clocks = times(["08:00", "8:00:00", "24:00:00", "24:00:01", "noon"])
    assert count(clocks, times(["07:45:00"]), within_time="t:15min") == 2
    assert count(clocks, times(["23:59:00"]), within_time="t:2min") == 1
    left = times(wrong).append_column("u", pa.array(["2030-01-01"] * len(wrong)))
    assert count(left, times(same), during="t..u=t") == 1


WRONG, RIGHT = ["noon", "", "later", "2024-02-29"], [dt.datetime(2024, 2, 29)]
TIME, NUMBER = "a time, and match nothing", "a number, and match nothing"
CLOCK = "a time of a day, and match nothing"


@pytest.mark.parametrize(
    "left, right, words, notices",
    [
        (WRONG, RIGHT, {"within_time": "t:1h"}, [f"left side: 3 of 4 rows have no text that is {TIME}"]),
        (RIGHT, WRONG, {"within_time": "t:1h"}, [f"right side: 3 of 4 rows have no text that is {TIME}"]),
        (WRONG, WRONG, {"within_time": "t:1h"},
         [f"{side} side: 3 of 4 rows have no text that is {TIME}" for side in ("left", "right")]),
        (["x", "y", "3"], ["1"], {"within_time": "t:2"}, [f"left side: 2 of 3 rows have no text that is {NUMBER}"]),
        (["x"], [dt.time(1)], {"within_time": "t:2h"}, [f"left side: 1 of 1 rows have no text that is {CLOCK}"]),
        (["x", "y"], RIGHT, {"during": "t"}, [f"left side: 2 of 2 rows have no text that is {TIME}"]),
        (WRONG[2:], RIGHT, {"within_time": "t:1h"}, []),  # a half is not most
        ([None, None], [3], {"within_time": "t:1"}, []),  # no texts
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["inner", "full"])
def test_texts_that_are_no_times(left, right, words, notices, how):
    sides = [times(of, pa.int64()) if of[0] is None else times(of) for of in (left, right)]
    joined = ogrjoin.join(*sides, how=how, **words)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        joined.read_all()
    assert [str(w.message).split("; ")[0] for w in caught] == notices


@pytest.mark.parametrize(
    "left, right, words, message",
    [
        ([1], ["x"], {"within_time": "t:3s"}, "without a unit"),
        ([dt.datetime(2024, 1, 1)], [1], {"within_time": "t:3s"}, "one kind"),
        ([dt.datetime(2024, 1, 1)], [dt.time(1)], {"during": "t"}, "one kind"),
        ([dt.date(2024, 1, 1)], [dt.date(2024, 1, 1)], {"within_time": "t:3"}, "with a unit"),
        ([[1]], [1], {"during": "t"}, "neither times nor numbers"),
        ([1], [1], {"within_time": "t"}, "LEFT"),
        ([1], [1], {"within_time": "t:-1"}, "LEFT"),
        ([1], [1], {"within_time": "t..t:1"}, "LEFT"),
        ([1], [1], {"during": "t..=t"}, "FROM..UNTIL"),
        ([1], [1], {"during": "t:besides"}, "no relation of two spans"),
        ([1], [1], {"during": "t..u"}, 'no column "u"'),
    ],
)
def test_refused(left, right, words, message):
    with pytest.raises(ogrjoin.Error, match=message.replace(".", r"\.")):
        ogrjoin.join(times(left), times(right), **words).read_all()


def test_pairs_refuse_it():
    with pytest.raises(ogrjoin.Error, match="within_time has no effect on pairs"):
        ogrjoin.pairs(times([1]), times([1]), within_time="t:1")


def test_names_in_quotes():
    table = times([5]).rename_columns(["geometry", "a..b:c"])
    assert count(table, times([6]), within_time='"a..b:c"=t:1') == 1
    assert count(table, times([6]), during='"a..b:c".."a..b:c"=t:before') == 1


def test_index_joins_again():
    r = random.Random(9)
    left, right = side(r, 30, "point"), side(r, 30, "point")
    index = ogrjoin.Index(right)
    for words in ({"within_time": "at:30min"}, {"within_time": "at:2h"}, {"during": "begin..end"}, {}):
        got = index.join(left, "dwithin", max_distance=3, **words).read_all()
        assert got.equals(ogrjoin.join(left, right, "dwithin", max_distance=3, **words).read_all())


@pytest.mark.parametrize("unit, step", [("us", 1), ("ns", 1000), ("ms", 1), ("s", 1)])
def test_equal_moments_to_the_microsecond(unit, step):
    first = pa.array([1_600_000_000], pa.timestamp(unit))
    other = pa.array([1_600_000_000 + step], pa.timestamp(unit))
    for a, b, n in ((first, first, 1), (first, other, 0), (other, first, 0)):
        left, right = pa.table({"t": a}), pa.table({"t": b})
        joined = ogrjoin.join(left, right, "attributes", how="inner", on="t")
        assert joined.read_all().num_rows == n
        pairs = ogrjoin.pairs(([0.0], [0.0]), ([0.0], [0.0]), "dwithin", max_distance=1, on=(a, b))
        assert len(pairs) == n
    words = {"x": "x", "y": "y", "right_x": "x", "right_y": "y", "max_distance": 1}
    left, right = (pa.table({"t": t, "x": [0.0], "y": [0.0]}) for t in (first, other))
    joined = ogrjoin.join(left, right, "dwithin", how="inner", exclude="field=t", **words)
    assert joined.read_all().num_rows == 1
    # a text has all digits of the moment; nanoseconds are cut off
    text = pa.table({"t": ["1970-01-01T00:26:40.000001Z"]})
    exact = pa.table({"t": pa.array([1_600_000_001], pa.timestamp("us"))})
    nanoseconds = pa.table({"t": pa.array([1_600_000_001_999], pa.timestamp("ns"))})
    for a in (exact, nanoseconds):
        assert ogrjoin.join(a, text, "attributes", how="inner", on="t").read_all().num_rows == 1
