"""geometry="intersection" with nlt= against GeoPandas' overlay(how="intersection",
keep_geom_type=True) on random pairs of layers, and overlap= against shapely."""

import numpy as np
import pytest

import ogrjoin

pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
import shapely

# how the left layer is made, and the word of nlt
KINDS = {"POLYGON": "POLYGON", "LINESTRING": "LINESTRING", "POINT": "POINT"}


def polygons(rng, n):
    """Boxes of whole numbers, so that borders meet, and blobs."""
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
    kind = list(KINDS)[seed % 3]
    left = gpd.GeoDataFrame({"a": np.arange(40)}, geometry=left_layer(rng, kind, 40), crs=2263)
    right = gpd.GeoDataFrame({"b": np.arange(40)}, geometry=polygons(rng, 40), crs=2263)
    return kind, left, right


@pytest.mark.parametrize("seed", range(50))
def test_overlay(seed):
    kind, left, right = make_layers(seed)
    got = ogrjoin.join(left, right, "intersects", how="inner", geometry="intersection",
                       nlt=kind).to_geopandas()
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
    """Left rows whose pairs all touch are rows without a match; right ones are among
    those that match nothing."""
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
        (dict(nlt="POLYGON", geometry="intersection", pick="first"), "chooses before"),
        (dict(nlt="POLYGON", geometry="intersection", one_to_one=True), "chooses before"),
    ):
        with pytest.raises(ogrjoin.Error, match=says):
            ogrjoin.join(left, right, "intersects", **named)
