"""Sums: partial sums of several processes give the sums of one process and of join(),
bit for bit.
"""

import fractions
import math

import numpy as np
import ogrjoin
import pytest


def bits(values):
    return np.asarray(values, np.float64).view(np.int64).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_parts_in_any_order(seed):
    r = np.random.default_rng(seed)
    n, m = 5, int(r.choice([0, 1, 300]))
    group = r.integers(0, n - 1, m)  # the last group has no values
    values = r.normal(0, 1, m) * 10.0 ** r.integers(-12, 13, m)
    expected = [math.fsum(values[group == g]) for g in range(n)]
    parts = [ogrjoin.Sums(n) for _ in range(4)]
    part = r.integers(0, 4, m)
    for i, sums in enumerate(parts):
        sums.add(group[part == i], values[part == i])
    words = []
    for order in (range(4), [2, 0, 3, 1]):
        whole = ogrjoin.Sums(n)
        for i in order:
            whole.merge(np.arange(n), *parts[i].words())
        assert bits(whole.values()) == bits(expected)
        words.append([column.tolist() for column in whole.words()])
    one = ogrjoin.Sums(n)
    one.add(group, values)
    assert words[0] == words[1] == [column.tolist() for column in one.words()]
    assert words[0][0][-1] == words[0][0][-2]  # a sum of nothing has no words


def test_words_stand_for_the_exact_sum():
    sums = ogrjoin.Sums(1)
    values = [0.1, 1e16, -3.5e-20, 7.0]
    sums.add([0] * 4, values)
    _, words = sums.words()
    place, limbs = int(words[0]) & 255, words[1:].tobytes()
    whole = int.from_bytes(limbs, "little", signed=True)
    exact = fractions.Fraction(2) ** (64 * place - 2240) * whole
    assert exact == sum(map(fractions.Fraction, values))


def test_missing_values_are_left_out():
    """None and NULL are left out, as by the aggregate sum. NaN is not left out."""
    columns = [
        ([1, None, 2**60 + 1], 2**60 + 2),
        ([1.5, None], 1.5),
        (np.array([None, 7], object), 7),
        (np.ma.array([1, 99, 3], mask=[0, 1, 0]), 4),
        ([None], 0),
    ]
    for values, expected in columns:
        sums = ogrjoin.Sums(2)
        sums.add([1] * len(values), values)
        assert sums.values().tolist() == [0.0, float(expected)]
        if isinstance(expected, int):
            assert sums.integers().tolist() == [0, expected]
    sums = ogrjoin.Sums(1)
    sums.add([0, 0], [None, math.nan])
    assert math.isnan(sums.values()[0])
    with pytest.raises(ogrjoin.InvalidError, match=r"group 0, nan, .* in Python values\(\)"):
        sums.integers()
    with pytest.raises(ogrjoin.InvalidError, match="group has 1 values"):
        sums.add([0], [1, None])


def test_missing_values_are_those_of_the_aggregate():
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    for column in (
        pa.array([1, None, 2**60 + 1, 5]),
        pa.chunked_array([[None, 2.5], [1e300, None]]),
        pa.array([None] * 4, pa.float64()),
        pa.array([1.0, math.nan, None, 2.0]),
    ):
        zones = pa.table({"x": [0.0], "y": [0.0]})
        rows = pa.table({"x": [0.0] * 4, "y": [0.0] * 4, "v": column})
        asked = {"x": "x", "y": "y", "right_x": "x", "right_y": "y", "crs": "ignore"}
        joined = ogrjoin.join(zones, rows, "intersects", agg="sum(v)", **asked).read_all()
        whole = joined.column(joined.num_columns - 1)[0].as_py()
        sums = ogrjoin.Sums(1)
        sums.add([0] * 4, column)
        assert bits(sums.values()) == bits([whole or 0.0])
    sums = ogrjoin.Sums(1)
    sums.add([0, 0], pd.array([2**60 + 1, None], "Int64"))
    sums.add([0, 0], pd.Series([3, None], dtype="Int64"))
    assert sums.integers().tolist() == [2**60 + 4]


def test_integers():
    sums = ogrjoin.Sums(2)
    sums.add([0, 0, 1], np.array([2**62, 2**62 - 1, -5]))
    sums.add([1, 1], [True, True])
    assert sums.integers().tolist() == [2**63 - 1, -3]
    sums.add([0], np.array([1], np.uint8))
    with pytest.raises(ogrjoin.InvalidError, match="no integer of 64 bits"):
        sums.integers()
    assert sums.values().tolist() == [2.0**63, -3.0]


def test_odd_values():
    sums = ogrjoin.Sums(4)
    sums.add([0, 1, 1, 2, 3], [np.inf, np.inf, -np.inf, np.nan, 1e308])
    sums.add([3, 3], [1e308, 0.0])
    whole = ogrjoin.Sums(4)
    whole.merge([3, 2, 1, 0], *sums.words())
    assert np.isnan(whole.values()[[1, 2]]).all()
    assert whole.values()[[0, 3]].tolist() == [np.inf, np.inf]


def test_what_is_refused():
    sums = ogrjoin.Sums(2)
    for group, values in (([0], [1.0, 2.0]), ([2], [1.0]), ([-1], [1.0]), ([0.5], [1.0])):
        with pytest.raises(ogrjoin.InvalidError):
            sums.add(group, values)
    with pytest.raises(ogrjoin.InvalidError):
        sums.add([0], np.array([2**63], np.uint64))
    with pytest.raises(ogrjoin.InvalidError):
        ogrjoin.Sums(-1)
    offsets, words = np.array([0, 2]), np.array([1 << 20, 5])
    with pytest.raises(ogrjoin.InvalidError, match="words"):
        sums.merge([0], offsets, words)
    for odd in ([0, 1], [0, 3], [1, 2], [0, 1, 2]):
        with pytest.raises(ValueError):
            sums.merge([0], odd, words)
    assert sums.values().tolist() == [0.0, 0.0]
