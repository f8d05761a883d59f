"""Values beside geometries: `on` of pairs() compares as `on` of join(), without rounding, and
missing texts and vectors match nothing."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

LARGE = [2**63 + 1, 2**63 + 2, 5, None]
EACH_ITSELF = [(0, 0), (1, 1), (2, 2)]


def pairs_on(left, right):
    points = [([0.0] * len(v), [0.0] * len(v)) for v in (left, right)]
    found = ogrjoin.pairs(*points, on=(left, right))
    return list(zip(found.left.tolist(), found.right.tolist()))


@pytest.mark.parametrize(
    "values",
    [
        LARGE,
        pd.array(LARGE, dtype="UInt64"),
        pd.Series(pd.array(LARGE, dtype="UInt64")),
        pd.array(LARGE, dtype=pd.ArrowDtype(pa.uint64())),
        pa.chunked_array([pa.array(LARGE[:1], pa.uint64()), pa.array(LARGE[1:], pa.uint64())]),
        np.ma.array([*LARGE[:3], 7], np.uint64, mask=[0, 0, 0, 1]),
    ],
    ids=["list", "array", "series", "ArrowDtype", "chunks", "masked"],
)
def test_large_integers_are_not_rounded(values):
    assert pairs_on(values, values) == EACH_ITSELF
    assert pairs_on(values, pa.array(LARGE, pa.uint64())) == EACH_ITSELF


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "h"])
def test_datetimes_of_any_year(unit):
    days = ["9999-12-31", "1816-03-29", "2026-01-01"]
    left = np.array([*days, "NaT"], f"M8[{unit}]")
    arrow = pa.array([dt.datetime.fromisoformat(day) for day in days] + [None])
    for right in (left, arrow, days, pd.Series([dt.date.fromisoformat(day) for day in days])):
        assert pairs_on(left, right) == EACH_ITSELF
    if unit not in ("D", "h"):
        zoned = pd.Series(left).dt.tz_localize("Asia/Tokyo")
        assert pairs_on(zoned, pa.array(zoned)) == EACH_ITSELF
    # 9999-12-31 in nanoseconds is this moment in 64 bits
    wrapped = np.array(["1816-03-29T05:56:08.066277"], "M8[us]")
    assert pairs_on(left, wrapped) == []


def rows_of_join(left, right):
    left, right = (pa.table({"k": pa.array(v, from_pandas=True)}) for v in (left, right))
    rows = ogrjoin.join(left, right, "attributes", on="k", how="inner").read_all()
    return rows.num_rows


MOMENT = dt.datetime(2026, 1, 1)


@pytest.mark.parametrize(
    "left, right",
    [
        ([Decimal("1.00")], [Decimal("1.0")]),
        (pd.array([Decimal("1.00")], dtype=pd.ArrowDtype(pa.decimal128(9, 2))), [1]),
        ([MOMENT], [dt.date(2026, 1, 1)]),
        (pd.array([MOMENT], dtype=pd.ArrowDtype(pa.timestamp("us"))), ["2026-01-01T00:00:00"]),
        (pd.Series([dt.date(3000, 1, 1)]), pd.Series(["3000-01-01"], dtype="M8[s]")),
        ([b"a"], pa.array([b"a"])),
        (np.array([b"a"]), pa.array([b"a"])),
        (pd.Series(["a"], dtype="category"), ["a"]),
        ([1, 2.5], [1.0]),
    ],
)
def test_compared_as_in_join(left, right):
    assert len(pairs_on(left, right)) == rows_of_join(left, right) == 1


@pytest.mark.parametrize(
    "values", [np.array([1], "m8[s]"), pd.Series([[1]]), pd.Series([{"a": 1}]), [[1]]]
)
def test_values_that_are_not_compared(values):
    for join in (pairs_on, rows_of_join):
        with pytest.raises(ogrjoin.UnsupportedError):
            join(values, values)


def test_polars():
    pl = pytest.importorskip("polars")
    values = pl.Series(LARGE, dtype=pl.UInt64)
    assert pairs_on(values, LARGE) == EACH_ITSELF
    assert pairs_on(pl.Series(["b", None, "a"]), ["a", "b"]) == [(0, 1), (2, 0)]


def test_values_that_are_no_column():
    with pytest.raises(ogrjoin.InvalidError, match="no column of Arrow"):
        pairs_on(["a", 1], ["a", 1])
    with pytest.raises(ogrjoin.InvalidError, match="2 dimensions"):
        pairs_on(np.zeros((1, 2)), [1])


def columns_of_texts():
    texts = ["ab", None]
    made = {
        "list": texts,
        "NA": ["ab", pd.NA],
        "string": pd.Series(texts, dtype="string"),
        "ArrowDtype": pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
        "masked": np.ma.array(["ab", "ab"], mask=[0, 1]),
    }
    try:
        import polars

        made["polars"] = polars.Series(texts)
    except ImportError:
        pass
    return made


@pytest.mark.parametrize("texts", columns_of_texts().values(), ids=columns_of_texts())
def test_missing_texts_match_nothing(texts):
    found = ogrjoin.pairs(texts, texts, "similar", min_similarity=0.5)
    assert found.left.tolist() == found.right.tolist() == [0]
    points = [0.0, 1.0], [0.0, 1.0]
    found = ogrjoin.pairs(
        points, points, "dwithin", max_distance=9, similar="0.1", texts=([texts], [texts])
    )
    assert found.left.tolist() == found.right.tolist() == [0]


def test_masked_vectors_match_nothing():
    left = np.ma.array([[1.0, 2], [1, 2], [1, 2]], mask=[[0, 0], [1, 1], [0, 1]])
    found = ogrjoin.pairs(left, np.array([[1.0, 2]]), "similar", max_difference=0)
    assert found.left.tolist() == [0]
