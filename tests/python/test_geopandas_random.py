"""The frames of random calls equal those of GeoPandas after sorting the pairs."""

import os
import warnings

import numpy as np
import pytest

gpd = pytest.importorskip("geopandas")
import pandas as pd
import shapely
from pandas.testing import assert_frame_equal

import ogrjoin

ROUNDS = int(os.environ.get("OGRJOIN_TEST_ROUNDS", 50))
PREDICATES = (
    "contains contains_properly covered_by covers crosses dwithin intersects "
    "overlaps touches within"
).split()


def random_shape(rng, kind):
    """Returns a shape on a small grid. Such shapes touch, repeat and share borders."""
    at = rng.integers(0, 10, 2).astype(float)
    size = rng.integers(1, 4, 2)
    if kind == "point":
        return shapely.Point(at)
    if kind == "points":
        return shapely.MultiPoint(np.unique(rng.integers(0, 10, (3, 2)), axis=0))
    if kind == "line":
        return shapely.LineString([at, at + size, at + [size[0], 0]])
    if kind == "lines":
        return shapely.MultiLineString([[at, at + size], [at + 4, at + 5]])
    if kind == "polygon":
        return shapely.box(*at, *(at + size))
    if kind == "hole":
        hole = [at + [1, 1], at + [2, 1], at + [2, 2]]
        return shapely.Polygon(shapely.box(*at, *(at + 3)).exterior, [hole])
    if kind == "polygons":
        return shapely.MultiPolygon(
            [shapely.box(*at, *(at + size)), shapely.box(*(at + 5), *(at + 6))]
        )
    return None if rng.random() < 0.5 else shapely.Point()


KINDS = "point points line lines polygon hole polygons".split()


def random_frame(rng, name, kinds=None):
    n = int(rng.choice([0, 1, 5, 40], p=[0.05, 0.05, 0.3, 0.6]))
    if kinds is None:
        kinds = rng.choice(KINDS, int(rng.integers(1, 3)), replace=False)
    shapes = [
        random_shape(rng, "none" if rng.random() < 0.05 else rng.choice(kinds))
        for _ in range(n)
    ]
    frame = gpd.GeoDataFrame(
        {
            name: np.arange(n),
            "value": rng.random(n),
            "word": rng.choice(["a", "b", "c"], n),
        },
        geometry=gpd.GeoSeries(shapes, dtype="geometry"),
        crs=2263 if rng.random() < 0.5 else None,
    )
    index = rng.integers(0, 4)
    if index == 1:
        frame.index = pd.Index(rng.integers(0, 5, n), name="repeated")
    elif index == 2:
        frame.index = pd.MultiIndex.from_arrays(
            [np.arange(n), rng.choice(["x", "y"], n)], names=["number", None]
        )
    elif index == 3:
        frame.index = pd.Index([f"{name}{i}" for i in range(n)])
    return frame


def call(function, *args, **named):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            frame = function(*args, **named)
        except Exception as error:
            frame = error
    return frame, sorted(str(w.message) for w in told)


def assert_same(ours, theirs, sort=True):
    assert ours[1] == theirs[1]
    ours, theirs = ours[0], theirs[0]
    if isinstance(theirs, Exception):
        assert type(ours) is type(theirs) and str(ours) == str(theirs)
        return 0
    assert type(ours) is type(theirs)
    if sort:
        names = [c for c in ("lid", "rid") if c in theirs.columns]
        ours, theirs = (f.sort_values(names, kind="stable") for f in (ours, theirs))
    assert_frame_equal(ours, theirs, check_exact=False, rtol=1e-14, atol=1e-14)
    return len(theirs)


def test_sjoin():
    n_rows = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        left, right = random_frame(rng, "lid"), random_frame(rng, "rid")
        predicate = str(rng.choice(PREDICATES))
        named = {
            "how": str(rng.choice(["inner", "left", "right"])),
            "predicate": predicate,
        }
        if predicate == "dwithin":
            named["distance"] = float(rng.integers(0, 4))
            if rng.random() < 0.5:
                named["distance"] = rng.integers(0, 4, len(left)).astype(float)
        if rng.random() < 0.2:
            named["on_attribute"] = "word"
        if rng.random() < 0.3:
            named.update(lsuffix="l", rsuffix="r")
        theirs = call(gpd.sjoin, left, right, **named)
        try:
            n_rows += assert_same(call(ogrjoin.sjoin, left, right, **named), theirs)
            with ogrjoin.geopandas.enable():
                assert_same(call(gpd.sjoin, left, right, **named), theirs)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {named}") from error
    assert n_rows > 10 * ROUNDS


def test_sjoin_nearest():
    n_rows = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng([seed, 1])
        # for these kinds both compute the same distances bit for bit, so ties
        # are equal, too
        kinds = rng.choice(["point", "points", "polygon", "polygons"], 2)
        left, right = random_frame(rng, "lid", kinds), random_frame(rng, "rid", kinds)
        named = {"how": str(rng.choice(["inner", "left", "right"]))}
        if rng.random() < 0.7:
            named["distance_col"] = "distance"
        if rng.random() < 0.5:
            named["max_distance"] = float(rng.integers(-1, 4))
        if rng.random() < 0.3:
            named["exclusive"] = True
        theirs = call(gpd.sjoin_nearest, left, right, **named)
        try:
            n_rows += assert_same(
                call(ogrjoin.sjoin_nearest, left, right, **named), theirs
            )
            with ogrjoin.geopandas.enable():
                assert_same(call(gpd.sjoin_nearest, left, right, **named), theirs)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {named}") from error
    assert n_rows > 5 * ROUNDS
