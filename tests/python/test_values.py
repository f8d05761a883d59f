"""Values beside geometries: `on` of pairs() compares as `on` of join(), without rounding, and
missing texts and vectors match nothing."""

import datetime as dt
import subprocess
import sys
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


@pytest.mark.parametrize("unit", ["ns", "ps", "fs", "as"])
def test_parts_of_a_second_of_any_unit(unit):
    values = np.array([100, 900], "M8[ms]").astype(f"M8[{unit}]")
    assert pairs_on(values, values) == EACH_ITSELF[:2]


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


# --- decimals --------------------------------------------------------------------------


def random_decimals(r, n, digits, scale):
    """Decimals of up to `digits` digits, many of them neighbours or multiples of ten."""
    whole = []
    for size in r.integers(1, digits + 1, n // 4):
        made = int("".join(map(str, r.integers(0, 10, size))))
        whole += [made, min(made + 1, 10**digits - 1), made // 100 * 100, -made]
    return [Decimal((v < 0, tuple(map(int, str(abs(v)))), -scale)) for v in whole]


def equal_to_float(value, real):
    """A float means the shortest decimal that reads back as it; integers are exact."""
    is_whole = real == int(real) and -(2**63) <= real < 2**64
    return value == (Decimal(int(real)) if is_whole else Decimal(repr(float(real))))


DECIMALS = [(9, 2), (18, 0), (18, 2), (18, 17), (38, 0), (38, 10), (38, 37)]


@pytest.mark.parametrize("digits, scale", DECIMALS)
def test_decimals_are_equal_exactly_if_their_values_are(digits, scale):
    r = np.random.default_rng(digits + scale)
    left = random_decimals(r, 80, digits, scale)
    for other, other_scale in DECIMALS:
        right = random_decimals(r, 80, other, other_scale)
        right += [v for v in left if -other_scale <= v.as_tuple().exponent
                  and abs(v) < 10 ** (other - other_scale)]  # fmt: skip
        arrays = (pa.array(left, pa.decimal128(digits, scale)),
                  pa.array(right, pa.decimal128(other, other_scale)))  # fmt: skip
        expected = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]
        assert pairs_on(*arrays) == expected
        assert rows_of_join(*arrays) == len(expected)


@pytest.mark.parametrize("digits, scale", DECIMALS)
def test_decimals_with_integers_floats_and_texts(digits, scale):
    r = np.random.default_rng(digits + scale)
    values = random_decimals(r, 200, digits, scale)
    values += [v for v in (Decimal(2**63 - 1), Decimal(2**63), Decimal(2**64 - 1))
               if v < 10 ** (digits - scale)]  # fmt: skip
    decimals = pa.array(values, pa.decimal128(digits, scale))

    def check(other, is_equal):
        expected = [(i, j) for i, a in enumerate(values) for j, b in enumerate(other)
                    if is_equal(a, b)]  # fmt: skip
        assert pairs_on(decimals, other) == expected
        assert pairs_on(other, decimals) == sorted((j, i) for i, j in expected)

    check(np.array([float(v) for v in values]), equal_to_float)
    check(np.nextafter([float(v) for v in values], 0), equal_to_float)
    whole = [int(v) for v in values if v == int(v)]
    signed = [v for v in whole if -(2**63) <= v < 2**63]
    check(np.array(signed, np.int64), lambda a, b: a == int(b))
    unsigned = [v for v in whole if 0 <= v < 2**64]
    check(np.array(unsigned, np.uint64), lambda a, b: a == int(b))
    digits_of = [f"{v:f}" for v in values]
    texts = [t.rstrip("0").rstrip(".") if "." in t else t for t in digits_of]
    found = pairs_on(decimals, texts)
    assert {(values[i], Decimal(texts[j])) for i, j in found} == {(v, v) for v in values}


KEYS = [Decimal("36061000100010001001"), Decimal("36061000100010001002")]


def test_decimals_in_other_doors():
    keys = pa.array(KEYS, pa.decimal128(38, 0))
    side = pa.table({"k": keys, "x": [0.0] * 2, "y": [0.0] * 2})
    points = {"x": "x", "y": "y", "right_x": "x", "right_y": "y"}
    rows = ogrjoin.join(side, side, exclude="field=k", how="inner", **points).read_all()
    assert list(zip(rows["k"].to_pylist(), rows["join_k"].to_pylist())) == [
        (KEYS[0], KEYS[1]), (KEYS[1], KEYS[0])
    ]  # fmt: skip
    encoded = pa.table({"k": keys.dictionary_encode(), "n": [1, 2]})
    rows = ogrjoin.join(encoded, side, "attributes", on=["k", "n=x"], how="inner").read_all()
    assert rows.num_rows == 0
    assert rows_of_join(keys.dictionary_encode(), keys) == 2
    assert pairs_on(KEYS, [int(v) for v in KEYS]) == [(0, 0), (1, 1)]
    assert pairs_on([2**70, -1], [-1, 2**70 + 1]) == [(1, 0)]


def test_aggregates_of_decimals():
    def of(values, agg, kind=pa.decimal128(38, 0)):
        n = len(values)
        right = pa.table({"k": pa.array(values, kind), "x": [0.0] * n, "y": [0.0] * n})
        left = pa.table({"x": [0.0], "y": [0.0]})
        rows = ogrjoin.join(
            left, right, agg=f"{agg} as v", x="x", y="y", right_x="x", right_y="y"
        ).read_all()
        return rows["v"][0].as_py()

    assert of(KEYS, "concat(k)") == ", ".join(map(str, KEYS))
    assert of([Decimal("-0.5"), Decimal("2.25")], "concat(k)", pa.decimal128(9, 2)) == "-0.5, 2.25"
    digits = "100000000000000000000, 100000000000000000001, -0.0000012, 0.00001"
    values = [Decimal(text) for text in digits.split(", ")]
    assert of(values, "concat(k)", pa.decimal128(38, 7)) == digits
    values = [values[0], *values[2:], Decimal(10**20)]
    assert of(values, "unique(k)", pa.decimal128(38, 7)) == 3
    assert of(KEYS, "max(k)") == float(KEYS[0])
    assert of([1, 2, 2, 2**53], "unique(k)") == 3 and of([1, 2, 2], "mode(k)") == 2
    for agg in ("unique(k)", "mode(k)", "minority(k)"):
        for values in (KEYS, [2**53 + 1], [2**64 - 1]):
            with pytest.raises(ogrjoin.InvalidError, match=f"round {values[0]} in row 0"):
                of(values, agg)


# --- names and numbers of columns --------------------------------------------------------

POINTS = {"x": "x", "y": "y", "right_x": "x", "right_y": "y"}


@pytest.mark.parametrize("name", ["a,b", "a=b"])
def test_names_of_columns_with_separators(name):
    side = pa.table({"x": [0.0], "y": [0.0], name: [1], "c": [1]})
    for on in ([name], name):
        with pytest.raises(ogrjoin.InvalidError, match=f'column {name} is read .* quotes: "{name}"'):
            ogrjoin.join(side, side, on=on, **POINTS)
    for on in (f'"{name}"', [f'"{name}"'], ["c", f'"{name}"=c'], [f'c="{name}"']):
        assert ogrjoin.join(side, side, on=on, how="inner", **POINTS).read_all().num_rows == 1


def test_a_number_of_a_row_beyond_64_bits():
    side = pa.table({"x": [0.0], "y": [0.0], "u": pa.array([2**63], pa.uint64())})
    for which in ("left", "right"):
        with pytest.raises(ogrjoin.InvalidError, match=f"{which}_fid: row 0 has .* below 2.63"):
            ogrjoin.join(side, side, **POINTS, **{f"{which}_fid": "u"}).read_all()


def test_dwithin_needs_a_finite_distance():
    points = [0.0], [0.0]
    with pytest.raises(ogrjoin.InvalidError, match="needs a finite maximum distance"):
        ogrjoin.pairs(points, points, "dwithin", max_distance=np.inf)


def test_numbers_texts_and_datetimes_need_no_pyarrow():
    code = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, ogrjoin
P = [0.0] * 3, [0.0] * 3
times = np.array(["9999-12-31", "2026-01-01", "NaT"], "M8[s]")
for values in ([2**63 + 1, 5, None], ["a", "b", None], [1.5, 2, None], times):
    found = ogrjoin.pairs(P, P, on=(values, values))
    assert found.left.tolist() == found.right.tolist() == [0, 1]
try:
    ogrjoin.pairs(P, P, on=([b"a"] * 3, [b"a"] * 3))
except ogrjoin.InvalidError as error:
    assert "need pyarrow" in str(error)
else:
    raise AssertionError("bytes were taken")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
