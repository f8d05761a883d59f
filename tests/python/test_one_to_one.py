"""Compares one_to_one="best" with scipy: the greatest number of pairs, and among such
choices the least sum of distances."""

import numpy as np
import pytest

import ogrjoin

sparse = pytest.importorskip("scipy.sparse")
optimize = pytest.importorskip("scipy.optimize")
csgraph = pytest.importorskip("scipy.sparse.csgraph")


def points(rng, n, step):
    """Returns points on a lattice, where many distances are equal. With step 0 they are
    anywhere."""
    at = rng.random((n, 2)) * 100
    return np.round(at / step) * step if step else at


def chosen(pairs):
    return list(zip(pairs.left.tolist(), pairs.right.tolist())), pairs.distance


@pytest.mark.parametrize("seed", range(24))
def test_most_pairs_of_least_sum(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 400, 2)
    a, b = points(rng, n, (0, 1, 5)[seed % 3]), points(rng, m, (0, 1, 5)[seed % 3])
    reach = float(rng.choice([2, 5, 12]))
    all_pairs = ogrjoin.pairs(a, b, "dwithin", max_distance=reach)
    best = ogrjoin.pairs(a, b, "dwithin", max_distance=reach, one_to_one="best")
    greedy = ogrjoin.pairs(a, b, "dwithin", max_distance=reach, one_to_one=True)
    left, right = np.asarray(best.left), np.asarray(best.right)
    assert len(set(left)) == len(left) and len(set(right)) == len(right)
    graph = sparse.coo_matrix((np.ones(len(all_pairs.left)), (all_pairs.left, all_pairs.right)), (n, m)).tocsr()
    assert len(left) == (csgraph.maximum_bipartite_matching(graph) >= 0).sum()
    assert len(left) >= len(greedy.left)
    # the cost of a missing pair is greater than the sum of all distances
    price = 1 + np.sum(all_pairs.distance)
    costs = np.full((n, m), price)
    costs[all_pairs.left, all_pairs.right] = all_pairs.distance
    least = optimize.linear_sum_assignment(costs)
    real = costs[least] < price
    assert real.sum() == len(left)
    assert np.sum(best.distance) == pytest.approx(costs[least][real].sum(), rel=1e-12, abs=1e-12)


def test_two_pairs_where_the_greedy_choice_has_one():
    a, b = np.array([[0.9, 0], [2.0, 0]]), np.array([[1.0, 0], [-0.5, 0]])
    near = dict(op="dwithin", max_distance=1.5)
    assert chosen(ogrjoin.pairs(a, b, one_to_one=True, **near))[0] == [(0, 0)]
    assert chosen(ogrjoin.pairs(a, b, one_to_one="greedy", **near))[0] == [(0, 0)]
    assert chosen(ogrjoin.pairs(a, b, one_to_one="best", **near))[0] == [(0, 1), (1, 0)]


@pytest.mark.parametrize("seed", range(6))
def test_greatest_sum_of_similarities(seed):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    words = np.array(["north", "south", "mill", "road", "lane", "green", "church", "king"])

    def names(n):
        return [" ".join(words[rng.integers(0, 8, 3)]) for _ in range(n)]

    a, b = pa.table({"a": names(40)}), pa.table({"b": names(30)})
    named = dict(op="similar", similar="a=b:0.3", how="inner")
    every = ogrjoin.join(a, b, **named).read_all()
    best = ogrjoin.join(a, b, one_to_one="best", **named).read_all()
    costs = np.full((40, 30), 1000.0)
    left = {}
    for i, name in enumerate(a["a"].to_pylist()):
        left.setdefault(name, []).append(i)
    for name, right, how in zip(*(every[c].to_pylist() for c in ("a", "join_fid", "join_similarity"))):
        costs[left[name], right] = -how
    least = optimize.linear_sum_assignment(costs)
    real = costs[least] < 1000
    assert best.num_rows == real.sum() and len(set(best["join_fid"].to_pylist())) == best.num_rows
    assert np.sum(best["join_similarity"]) == pytest.approx(-costs[least][real].sum(), rel=1e-12)


def test_words():
    xy = np.array([[0.0, 0.0]])
    for word in ("none", "greedy", "best", 0, 1, 2, True, False):
        ogrjoin.pairs(xy, xy, "dwithin", max_distance=1, one_to_one=word)
    for word in ("worst", 3, -1, 0.5):
        with pytest.raises(ogrjoin.Error, match="one_to_one"):
            ogrjoin.pairs(xy, xy, "dwithin", max_distance=1, one_to_one=word)


def test_join_and_leftovers():
    pa, gpd = pytest.importorskip("pyarrow"), pytest.importorskip("geopandas")
    assert pa
    a = gpd.GeoDataFrame({"a": [1, 2, 3]}, geometry=gpd.points_from_xy([0.9, 2, 50], [0, 0, 0]))
    b = gpd.GeoDataFrame({"b": [1, 2, 3]}, geometry=gpd.points_from_xy([1, -0.5, 90], [0, 0, 0]))
    named = {"op": "dwithin", "max_distance": 1.5}
    rows = ogrjoin.join(a, b, how="full", one_to_one="best", **named).read_all()
    assert rows["a"].to_pylist() == [1, 2, 3, None] and rows["b"].to_pylist() == [2, 1, None, 3]
    rows = ogrjoin.join(a, b, how="full", one_to_one=True, **named).read_all()
    assert rows["a"].to_pylist() == [1, 2, 3, None, None] and rows["b"].to_pylist() == [1, None, None, 2, 3]


def test_a_large_group_is_reported():
    line = np.stack([np.arange(5000.0), np.zeros(5000)], 1)
    named = dict(max_distance=110, exclude_self=True)
    with pytest.warns(RuntimeWarning, match="1 groups of more than 1000000"):
        best = ogrjoin.pairs(line, line, "dwithin", one_to_one="best", **named)
    greedy = ogrjoin.pairs(line, line, "dwithin", one_to_one=True, **named)
    assert chosen(best)[0] == chosen(greedy)[0]
