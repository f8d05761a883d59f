"""crs="reproject" moves x and y of the right side; all else of its geometries stays."""

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")
pyproj = pytest.importorskip("pyproj")

needs_m = pytest.mark.skipif(not hasattr(shapely, "has_m"), reason="shapely without M")
SHAPES = [
    "POINT Z (9.2 47.2 100)",
    "LINESTRING Z (9 47 1, 9.5 47.5 2)",
    "POLYGON Z ((9 47 1, 10 47 2, 10 48 3, 9 47 1), (9.5 47.1 1, 9.6 47.1 2, 9.6 47.2 3, 9.5 47.1 1))",
    "POINT (9.2 47.2)",
    "POLYGON EMPTY",
]
SHAPES_WITH_M = [
    "POINT M (9.2 47.2 5)",
    "POINT M EMPTY",
    "LINESTRING M (9 47 10, 9.5 47.5 20)",
    "LINESTRING M EMPTY",
    "GEOMETRYCOLLECTION M (LINESTRING M EMPTY, POINT M (9 47 1))",
    "POINT ZM (9.2 47.2 100 5)",
    "POLYGON ZM ((9 47 1 5, 10 47 2 6, 10 48 3 7, 9 47 1 5))",
    "MULTIPOINT M ((9 47 1), (9.5 47.5 2))",
    "MULTILINESTRING ZM ((9 47 1 2, 9.5 47.5 2 3), (9 48 3 4, 9.5 47.5 4 5))",
    "GEOMETRYCOLLECTION M (POINT M (9 47 1), LINESTRING M (9 47 1, 10 47 2))",
]
MOVE = pyproj.Transformer.from_crs(4326, 32632, always_xy=True).transform


def ordinates(shapes, **kept):
    return shapely.get_coordinates(shapes, **kept)


@pytest.mark.parametrize("texts", [SHAPES, pytest.param(SHAPES + SHAPES_WITH_M, marks=needs_m)],
                         ids=["z", "m"])  # fmt: skip
def test_z_and_m_are_carried(texts):
    shapes = np.array([*shapely.from_wkt(texts), None], dtype=object)
    right = gpd.GeoDataFrame({"n": range(len(shapes))}, geometry=shapes, crs=4326)
    left = gpd.GeoDataFrame(geometry=gpd.points_from_xy([0], [0]), crs=32632)
    rows = ogrjoin.join(left, right, how="full", geometry="join", crs="reproject").to_geopandas()
    moved = rows.dropna(subset="n").sort_values("n").geometry.values
    moved = np.asarray(moved, dtype=object)
    kept = {"include_z": True, **({"include_m": True} if hasattr(shapely, "has_m") else {})}
    there, here = ordinates(shapes, **kept), ordinates(moved, **kept)
    assert shapely.get_type_id(moved).tolist() == shapely.get_type_id(shapes).tolist()
    assert shapely.get_num_coordinates(moved).tolist() == shapely.get_num_coordinates(shapes).tolist()
    assert np.array_equal(here[:, 2:], there[:, 2:], equal_nan=True)
    assert np.array_equal(here[:, :2], np.column_stack(MOVE(there[:, 0], there[:, 1])))
    full = ~shapely.is_empty(shapes)
    assert shapely.has_z(moved)[full].tolist() == shapely.has_z(shapes)[full].tolist()


@needs_m
def test_along_takes_m_of_a_moved_line():
    line = shapely.from_wkt(["LINESTRING M (9 47 10, 9.5 47.5 20)"])
    lines = gpd.GeoDataFrame(geometry=line, crs=4326)
    left = gpd.GeoDataFrame(geometry=gpd.points_from_xy([9], [47]), crs=4326).to_crs(32632)
    rows = ogrjoin.join(left, lines, "nearest", along_field="m", along="m", crs="reproject")
    assert rows.read_all()["m"].to_pylist() == [10.0]


def test_right_crs_holds_for_rows_of_any_srid():
    """As the error of rows with and without SRID advises."""
    point = shapely.Point(9.2, 47.2)
    wkb = [shapely.to_wkb(shapely.set_srid(point, srid), include_srid=srid > 0) for srid in (4326, 0)]
    right = pa.table({"w": pa.array(wkb, pa.binary())})
    left = gpd.GeoDataFrame(geometry=[point], crs=4326).to_crs(32632)
    named = {"right_column": "w", "crs": "reproject", "max_distance": 1}
    with pytest.raises(ogrjoin.InvalidError, match="write right_crs"):
        ogrjoin.join(left, right, "dwithin", **named)
    rows = ogrjoin.join(left, right, "dwithin", right_crs=4326, **named).read_all()
    assert rows["join_fid"].to_pylist() == [0, 1]
