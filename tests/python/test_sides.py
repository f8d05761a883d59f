"""Sides that users pass to join(), the rows that they request, and typical errors."""

import datetime as dt
import decimal
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
pyogrio = pytest.importorskip("pyogrio")
pyproj = pytest.importorskip("pyproj")
import pandas as pd
import pyarrow.parquet as pq
import shapely
from shapely.geometry import Point, box

PLACES = gpd.GeoDataFrame(
    {"id": [1, 2, 3, 4]},
    geometry=[Point(1, 1), None, Point(), Point(12, 12)],
    crs="EPSG:4326",
)
ZONES = gpd.GeoDataFrame(
    {"z": ["a", "b"]}, geometry=[box(0, 0, 10, 10), box(11, 11, 13, 13)], crs="EPSG:4326"
)
FOUND = ["a", None, None, "b"]
COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")


def zones_of(rows):
    return rows.read_all()["z"].to_pylist()


# --- geometry ----------------------------------------------------------------


def test_primary_and_active_geometry(tmp_path):
    far = gpd.GeoSeries([Point(500, 500)] * 4, crs=4326)
    two = PLACES.assign(g1=far, g2=PLACES.geometry).drop(columns="geometry")
    two = gpd.GeoDataFrame(two, geometry="g2", crs=4326)
    two["g1"] = gpd.GeoSeries(two["g1"], crs=4326)
    assert zones_of(ogrjoin.join(two, ZONES, "within")) == FOUND
    two.to_parquet(tmp_path / "two.parquet")
    assert zones_of(ogrjoin.join(tmp_path / "two.parquet", ZONES, "within")) == FOUND
    table = pa.table(two.to_arrow(index=False))
    with pytest.raises(ogrjoin.InvalidError, match="g1.*g2|g2.*g1") as error:
        ogrjoin.join(table, ZONES, "within")
    assert "left_column" in str(error.value)
    assert zones_of(ogrjoin.join(table, ZONES, "within", left_column="g2")) == FOUND


def test_native_encodings_of_geoparquet(tmp_path):
    """Native encodings of GeoParquet, with and without extension types in the schema."""
    points = gpd.GeoSeries([Point(1, 1), Point(40, 20), None])
    for frame, expected in ((points, ["a", None, None]), (ZONES.geometry, ["a", "b"])):
        frame = gpd.GeoDataFrame(geometry=frame, crs=4326)
        path = tmp_path / "native.parquet"
        frame.to_parquet(path, geometry_encoding="geoarrow")
        assert zones_of(ogrjoin.join(path, ZONES, "intersects")) == expected
        table = pq.read_table(path)
        geo = table.schema.metadata[b"geo"]
        plain = pa.table(
            [table.column(0)], schema=pa.schema([table.schema.field(0).remove_metadata()])
        )
        with pq.ParquetWriter(path, plain.schema, store_schema=False) as writer:
            writer.write_table(plain)
            writer.add_key_value_metadata({b"geo": geo})
        assert zones_of(ogrjoin.join(path, ZONES, "intersects")) == expected
        ogrjoin.join(path, ZONES, "intersects").to_parquet(tmp_path / "again.parquet")
        again = gpd.read_parquet(tmp_path / "again.parquet")
        assert again.geometry.geom_equals(frame.geometry).sum() == frame.geometry.notna().sum()


def test_coordinates_lists_and_layers(tmp_path):
    x, y = np.array([1.0, 5, 12]), np.array([1.0, 50, 12])
    expected = ["a", None, "b"]
    frame = pd.DataFrame({"lon": x, "lat": y, "n": [7, 8, 9]})
    named = {"x": "lon", "y": "lat", "left_crs": "EPSG:4326"}
    rows = ogrjoin.join(pa.table(frame), ZONES, **named).read_all()
    assert rows["z"].to_pylist() == expected and rows["n"].to_pylist() == [7, 8, 9]
    polars = pytest.importorskip("polars")
    assert zones_of(ogrjoin.join(polars.DataFrame(frame), ZONES, **named)) == expected
    assert zones_of(ogrjoin.join((x, y), ZONES, left_crs=4326)) == expected
    shapes = list(shapely.points(x, y))
    assert zones_of(ogrjoin.join(shapes, ZONES, left_crs=ZONES.crs)) == expected
    with pytest.warns(UserWarning, match="left side has no CRS"):
        ogrjoin.join(shapes, ZONES)
    for name in ("one", "two"):
        ZONES.assign(z=name).to_file(tmp_path / "zones.gpkg", layer=name)
    for name in ("one", "two"):
        side = ogrjoin.scan(tmp_path / "zones.gpkg", layer=name)
        assert set(zones_of(ogrjoin.join(ZONES[["geometry"]], side))) == {name}
        rows = ogrjoin.join(ZONES[["geometry"]], tmp_path / "zones.gpkg", right_layer=name)
        assert set(zones_of(rows)) == {name}
    for wrong in (None, 5, object()):
        with pytest.raises(TypeError, match="left side is a"):
            ogrjoin.join(wrong, ZONES)


def test_pairs_in_degrees_are_not_measured():
    sides = [gpd.GeoDataFrame({"z": ["a"]}, geometry=[shapely.Point(x, 60)], crs="EPSG:4326") for x in (10, 11)]
    words = {"op": "attributes", "on": "z"}
    for option in {"pick": "nearest"}, {"bearing_field": True}:
        with pytest.raises(ogrjoin.Error, match="in degrees.*crs=ignore"):
            ogrjoin.join(*sides, **words, **option)
        assert ogrjoin.join(*sides, **words, **option, crs="ignore").read_all().num_rows == 1


def test_first_pairs_and_counts_of_equal_rows():
    """There are 20,000,000,000 pairs. Rows that need only the first one, or the number,
    list no more."""
    side = pa.table({"k": np.arange(200_000) % 2, "n": np.arange(200_000)})
    words = {"op": "attributes", "on": "k"}
    assert ogrjoin.join(side, side, **words, how="semi").read_all().num_rows == 200_000
    assert ogrjoin.join(side, side, **words, how="anti").read_all().num_rows == 0
    first = ogrjoin.join(side, side, **words, pick="first").read_all()
    assert first["join_n"].to_pylist() == [0, 1] * 100_000
    counts = ogrjoin.join(side, side, **words, agg="count, count(*) as also").read_all()
    assert set(counts["count"].to_pylist()) == set(counts["also"].to_pylist()) == {100_000}
    few = side.slice(0, 5)
    others = ogrjoin.join(few, few, **words, right_fid="n", left_fid="n", exclude="self", agg="count").read_all()
    assert others["count"].to_pylist() == [2, 1, 2, 1, 2]


def test_tables_of_texts(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("name\nfoo bar\nbaz\nfoo baz\n")
    rows = ogrjoin.join(tmp_path / "a.csv", tmp_path / "b.csv", "similar", similar="name:0.9")
    assert rows.read_all()["join_name"].to_pylist() == ["foo bar", "baz", "foo baz"]
    assert ogrjoin.scan(tmp_path / "a.csv").schema.names == ["name"]


def test_numbers_of_csv(tmp_path):
    """CSV as the command reads it with -oo AUTODETECT_TYPE=YES. Numbers are numbers,
    and values with leading zeros stay texts."""
    path = tmp_path / "places.csv"
    path.write_text("id,lon,lat,zip\n1,1,1.5,00501\n2,12,12.5,10001\n3,,,10002\n")
    rows = ogrjoin.join(path, ZONES, x="lon", y="lat", left_crs=4326).read_all()
    assert rows["z"].to_pylist() == ["a", "b", None]
    assert rows["id"].to_pylist() == [1, 2, 3]
    assert rows["zip"].to_pylist() == ["00501", "10001", "10002"]
    (tmp_path / "places.csvt").write_text('"String","Real","Real","String"\n')
    assert ogrjoin.scan(path).reader().read_all()["id"].to_pylist() == ["1", "2", "3"]


def test_several_layers(tmp_path):
    """No layer is chosen by its position. A layer is chosen if it is the only one with
    geometries."""
    path = tmp_path / "zones.gpkg"
    ZONES.to_file(path, layer="one")
    table = pa.table({"styles": ["red"]})
    pyogrio.write_arrow(table, path, layer="styles", driver="GPKG", append=True)
    assert zones_of(ogrjoin.join(ZONES[["geometry"]], path)) == ["a", "b"]
    ZONES.to_file(path, layer="two")
    for word, ask in (
        ("right_layer", lambda: ogrjoin.join(ZONES, path)),
        ("left_layer", lambda: ogrjoin.join(path, ZONES)),
        ("layer", lambda: ogrjoin.scan(path)),
    ):
        with pytest.raises(ogrjoin.InvalidError, match=f"3 layers, name one by {word}=: one, two"):
            ask()


def test_folder_of_an_output_that_is_not_there(tmp_path):
    path = tmp_path / "nodir" / "x.parquet"
    with pytest.raises(FileNotFoundError) as caught:
        ogrjoin.join(PLACES, ZONES).to_parquet(path)
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []


# --- CRS and units -----------------------------------------------------------


def test_degrees_of_any_spelling(tmp_path):
    for crs in (4269, 4258, "EPSG:4326", "OGC:CRS84"):
        side = PLACES.to_crs(crs)
        side.to_file(tmp_path / "side.gpkg")
        for left in (side, tmp_path / "side.gpkg"):
            with pytest.raises(ogrjoin.InvalidError, match="degree"):
                ogrjoin.join(left, left, "nearest")
            near = ogrjoin.join(left, left, "nearest", max_distance="0.1deg").read_all()
            assert near["join_fid"].to_pylist() == [0, None, None, 3]
        with pytest.raises(ogrjoin.InvalidError, match="degree"):
            ogrjoin.pairs(side, side, "nearest")
    wkt = pa.table(PLACES.to_arrow(index=False))
    metadata = {
        b"ARROW:extension:name": b"geoarrow.wkb",
        b"ARROW:extension:metadata": json.dumps({"crs": PLACES.crs.to_wkt()}).encode(),
    }
    schema = pa.schema([wkt.schema.field(0), wkt.schema.field(1).with_metadata(metadata)])
    wkt = pa.table(wkt.columns, schema=schema)
    with pytest.raises(ogrjoin.InvalidError, match="degree"):
        ogrjoin.join(wkt, wkt, "nearest")
    assert zones_of(ogrjoin.join(wkt, ZONES, "within")) == FOUND


def test_one_crs_in_many_spellings(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    spellings = ["OGC:CRS84", "EPSG:4326", pyproj.CRS(4326), pyproj.CRS(4326).to_wkt("WKT1_GDAL")]
    spellings += [pyproj.CRS("OGC:CRS84").to_json(), 4326]
    for left in spellings:
        for right in spellings:
            given = {"left_crs": left, "right_crs": right}
            assert zones_of(ogrjoin.join(PLACES, ZONES, "within", **given)) == FOUND
    custom = pyproj.CRS("+proj=tmerc +lat_0=1 +lon_0=8 +ellps=bessel +units=m")
    given = {"left_crs": custom.to_wkt(), "right_crs": custom.to_json()}
    assert zones_of(ogrjoin.join(PLACES, ZONES, "within", **given)) == FOUND
    with pytest.raises(ogrjoin.InvalidError, match="EPSG:2263") as error:
        ogrjoin.join(PLACES, ZONES.set_crs(2263, allow_override=True))
    assert "EPSG:4326" in str(error.value)


def test_reproject_from_any_spelling(tmp_path):
    moved = ZONES.to_crs(32632)
    moved.to_file(tmp_path / "moved.gpkg")
    moved.to_parquet(tmp_path / "moved.parquet")
    for right in (moved, tmp_path / "moved.gpkg", tmp_path / "moved.parquet"):
        for left in (PLACES, pa.table(PLACES.to_arrow(index=False))):
            rows = ogrjoin.join(left, right, "within", crs="reproject")
            assert zones_of(rows) == FOUND
    text = pa.table({"g": pa.array(shapely.to_wkb(moved.geometry.values), pa.binary()), "z": ["a", "b"]})
    named = {"crs": "reproject", "right_crs": "EPSG:32632", "right_column": "g"}
    assert zones_of(ogrjoin.join(PLACES, text, "within", **named)) == FOUND
    with pytest.raises(ogrjoin.InvalidError, match="right_crs="):
        ogrjoin.join(PLACES, text, crs="reproject", right_column="g")


def test_parquet_has_projjson(tmp_path):
    path = tmp_path / "out.parquet"
    PLACES.to_crs(32633).to_file(tmp_path / "in.gpkg")
    ogrjoin.join(tmp_path / "in.gpkg", tmp_path / "in.gpkg").to_parquet(path)
    geo = json.loads(pq.read_schema(path).metadata[b"geo"])
    crs = geo["columns"][geo["primary_column"]]["crs"]
    assert crs["type"] == "ProjectedCRS" and crs["id"] == {"authority": "EPSG", "code": 32633}
    none = gpd.GeoDataFrame(geometry=[Point(1, 1)])
    ogrjoin.join(none, none).to_parquet(path)
    geo = json.loads(pq.read_schema(path).metadata[b"geo"])
    assert geo["columns"]["geometry"]["crs"] is None


def test_units_without_crs_and_the_sphere():
    none = gpd.GeoDataFrame(geometry=[Point(1, 1)])
    for function in (ogrjoin.join, ogrjoin.pairs):
        with pytest.raises(ogrjoin.InvalidError, match="CRS"):
            function(none, none, "dwithin", max_distance="10ft")
        feet = PLACES.set_crs(2263, allow_override=True)
        with pytest.raises(ogrjoin.InvalidError, match="EPSG:2263"):
            function(feet, feet, "nearest", metric="sphere")


# --- columns and values of the rows -----------------------------------------------


def test_aggregates_of_every_type():
    inside = gpd.GeoSeries([Point(1, 1), Point(2, 2)], crs=4326)
    values = {
        "category": pa.array(["u", "v"]).dictionary_encode(),
        "view": pa.array(["u", "v"], pa.string_view()),
        "text": pa.array(["u", "v"], pa.large_string()),
        "decimal": pa.array([decimal.Decimal("1.10"), decimal.Decimal("2.20")]),
        "null": pa.nulls(2),
        "yes": pa.array([True, True]),
        "day": pa.array([1, 2], pa.int32()).cast(pa.date32()),
        "half": pa.array(np.array([1, 2], np.float16)),
        "small": pa.array([1, 2], pa.int8()),
    }
    shapes = pa.table(gpd.GeoDataFrame(geometry=inside).to_arrow(index=False))
    table = pa.table([shapes.column(0), *values.values()],
                     schema=pa.schema([shapes.schema.field(0)] + [
                         pa.field(n, v.type) for n, v in values.items()]))  # fmt: skip

    def one(agg):
        return ogrjoin.join(ZONES[:1], table, agg=agg).read_all()[agg.split(" as ")[-1]][0].as_py()

    for name in ("category", "view", "text"):
        assert one(f"first({name}) as v") == "u" and one(f"unique({name}) as v") == 2
        assert one(f"concat({name}) as v") == "u, v" and one(f"max({name}) as v") == "v"
    assert one("sum(decimal) as v") == 1.1 + 2.2 and one("max(decimal) as v") == 2.2
    assert one("first(null) as v") is None and one("count(null) as v") == 0
    assert one("sum(yes) as v") == 2 and one("sum(half) as v") == 3
    assert one("sum(small) as v") == 3 and str(one("max(day) as v")) == "1970-01-03"
    rows = ogrjoin.join(ZONES, table, agg=["count", "sum(small) as s"]).read_all()
    assert rows["count"].to_pylist() == [2, 0] and rows["s"].to_pylist() == [3, None]


@pytest.mark.parametrize("scale", (0, 1, 2, 7, 15, 22, 23, 30))
@pytest.mark.parametrize("bits", (32, 64, 128, 256))
def test_decimals_are_rounded_once(bits, scale):
    make = getattr(pa, f"decimal{bits}", None)
    digits = {32: 9, 64: 18, 128: 38, 256: 76}[bits]
    if make is None or scale > digits:
        pytest.skip(f"no decimals of {bits} bits with {scale} digits behind the point")
    r = np.random.default_rng(bits + scale)
    whole = [int("".join(map(str, r.integers(0, 10, n)))) for n in r.integers(1, digits, 60)]
    whole += [n + i for n in (0, 2**24, 2**53, 2**63) if n < 10 ** (digits - 1) for i in (0, 1)]
    whole += [-n for n in whole]
    values = [decimal.Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale)) for n in whole]
    column = pa.array(values, make(digits, scale))
    side = pa.table({"x": np.arange(len(values)) + 0.0, "y": np.zeros(len(values)), "v": column})
    rows = ogrjoin.join(
        side, side, x="x", y="y", right_x="x", right_y="y", agg="sum(v) as v", left_select=""
    ).read_all()
    assert rows["v"].to_pylist() == [float(v) for v in values]


def test_one_to_one_and_leftovers():
    a = gpd.GeoDataFrame({"a": [1, 2, 3]}, geometry=gpd.points_from_xy([0, 1, 50], [0, 0, 0]))
    b = gpd.GeoDataFrame({"b": [1, 2, 3]}, geometry=gpd.points_from_xy([0.4, 90, 91], [0, 0, 0]))
    named = {"op": "dwithin", "max_distance": 2, "one_to_one": True}
    rows = ogrjoin.join(a, b, how="full", **named).read_all()
    assert rows["a"].to_pylist() == [1, 2, 3, None, None]
    assert rows["b"].to_pylist() == [1, None, None, 2, 3]
    assert ogrjoin.join(a, b, how="right", **named).read_all()["b"].to_pylist() == [1, 2, 3]
    assert ogrjoin.join(a, b, how="anti", **named).read_all()["a"].to_pylist() == [2, 3]


def test_columns_of_texts():
    """WKT, EWKT and WKB in hexadecimal digits. An empty text is no geometry."""
    shapes = [None if s is None else s for s in PLACES.geometry.values]
    expected = zones_of(ogrjoin.join(PLACES, ZONES))
    plain = [None if s is None else s.wkt for s in shapes]
    for texts in (
        plain,
        [t and f" SRID=4326;{t} " for t in plain],
        [t or "" for t in plain],
        [None if s is None else s.wkb_hex for s in shapes],
    ):
        for kind in (pa.string(), pa.large_string()):
            table = pa.table({"n": np.arange(len(texts)), "where": pa.array(texts, kind)})
            rows = ogrjoin.join(table, ZONES, left_column="where", left_crs=4326)
            assert zones_of(rows) == expected
            joined = ogrjoin.join(ZONES, table, how="inner", right_column="where", right_crs=4326)
            assert joined.read_all().num_rows == sum(e is not None for e in expected)
    unclosed = "01030000000100000003000000" + "0" * 32 + "000000000000F03F" * 2 + "000000000000F03F" + "0" * 16
    degenerate = ("0102000000010000000000000000000000" + "0" * 16, unclosed)  # a line of one point
    table = pa.table({"where": pa.array(degenerate)})
    at = pa.table({"geometry": [shapely.Point(0, 0).wkb]})
    assert len(ogrjoin.join(table, at, left_column="where", how="inner").read_all()) == 2
    for text in ("no text of a geometry", "POINT (1", "\u00f6" * 60, "CIRCULARSTRING (0 0, 1 1, 2 0)", "01010", "0101000000"):
        table = pa.table({"where": pa.chunked_array([["POINT (1 2)"], [None, text]])})
        with pytest.raises(ogrjoin.Error) as error:
            ogrjoin.join(table, ZONES, left_column="where", left_crs=4326).read_all()
        if text != "0101000000":  # bytes are read by the library
            assert str(error.value).startswith("left side: row 2: the column where holds no geometry as WKT")
            assert f"'{text[:20]}" in str(error.value)
    wkb = pa.table({"a": pa.array([b"x"] * len(shapes)), "where": [None if s is None else s.wkb for s in shapes]})
    assert zones_of(ogrjoin.join(wkb, ZONES, left_column="where", left_crs=4326)) == expected


def texts_table(texts, kind=pa.string()):
    column = pa.array(texts, pa.string())
    column = column.dictionary_encode() if kind == "dictionary" else column.cast(kind)
    return pa.table({"n": np.arange(len(texts)), "where": column})


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"])
def test_types_of_texts(kind):
    """The output has the rows, with the texts of geometries converted to ISO WKB."""
    texts = [None if s is None else s.wkt for s in PLACES.geometry.values] + [None, "POINT (1 2)"]
    table = texts_table(texts, kind)
    rows = ogrjoin.join(table, ZONES, left_column="where", left_crs=4326).read_all()
    assert rows.schema.field("where").type == pa.binary()
    assert rows["where"].to_pylist() == [t and shapely.from_wkt(t).wkb for t in texts]
    assert rows["join_fid"].to_pylist()[:4] == ogrjoin.join(PLACES, ZONES).read_all()["join_fid"].to_pylist()
    two = pa.concat_tables([table, table]).to_batches(max_chunksize=3)
    again = ogrjoin.join(pa.Table.from_batches(two).slice(2), ZONES, left_column="where", left_crs=4326).read_all()
    assert again["where"].to_pylist() == (2 * rows["where"].to_pylist())[2:]
    nulls = pa.StructArray.from_arrays(
        table.combine_chunks().to_batches()[0].columns, names=table.column_names,
        mask=pa.array([False, True] + [False] * (len(texts) - 2)))  # fmt: skip
    batch = pa.RecordBatch.from_struct_array(nulls.slice(1))
    rows = ogrjoin.join(pa.Table.from_batches([batch]), ZONES, left_column="where", left_crs=4326).read_all()
    assert rows["where"].to_pylist()[1:] == [t and shapely.from_wkt(t).wkb for t in texts][2:]


def crs_of(rows, name="where"):
    words = json.loads(rows.schema.field(name).metadata[b"ARROW:extension:metadata"])
    return pyproj.CRS(words["crs"]) if "crs" in words else None


def test_srid_of_texts_is_the_crs():
    points = ["SRID=2263;POINT (980000 200000)", None, "", "SRID=2263;POINT (980010 200000)"]
    table = texts_table(points)
    near = {"op": "dwithin", "max_distance": "5ft", "left_column": "where"}
    rows = ogrjoin.join(table, table, right_column="where", **near).read_all()
    assert crs_of(rows).to_epsg() == 2263
    assert rows["join_fid"].to_pylist() == [0, None, None, 3]
    joined = ogrjoin.join(table, table, right_column="where", **near, geometry="join")
    assert crs_of(joined.read_all(), joined._geometry).to_epsg() == 2263
    with pytest.raises(ogrjoin.Error, match="two CRS, left .*2263 and right .*4326"):
        ogrjoin.join(table, ZONES, left_column="where")
    degrees = texts_table(["SRID=4326;POINT (0.5 0.5)"])
    assert zones_of(ogrjoin.join(degrees, ZONES, left_column="where")) == ["a"]
    assert zones_of(ogrjoin.join(table, ZONES, left_column="where", crs="ignore")) == 4 * [None]
    assert crs_of(ogrjoin.join(table, ZONES, left_column="where", left_crs=4326).read_all()).to_epsg() == 4326
    # -1 and 0 are no CRS
    plain = texts_table(["POINT (0.5 0.5)", "SRID=0;POINT (0.5 0.5)", "SRID=-1;POINT (90 9)"])
    with pytest.warns(UserWarning, match="left side has no CRS"):
        assert zones_of(ogrjoin.join(plain, ZONES, left_column="where")) == ["a", "a", None]


def test_two_srid_in_one_column():
    two = ["SRID=4326;POINT (0.5 0.5)", None, "SRID=2263;POINT (0.5 0.5)"]
    for texts, message in (
        (two, "row 2: the geometry has the SRID 2263, and that of row 0 has the SRID 4326, in the column where"),
        ([two[0], "POINT (1 1)"], "row 1: the geometry has no SRID, and that of row 0 has the SRID 4326"),
    ):  # fmt: skip
        for size in (1, 10):
            table = pa.Table.from_batches(texts_table(texts).to_batches(max_chunksize=size))
            with pytest.raises(ogrjoin.Error, match=f"{message}.* write left_crs"):
                ogrjoin.join(table, ZONES, left_column="where").read_all()
            with pytest.raises(ogrjoin.Error, match=f"{message}.* write right_crs"):
                ogrjoin.join(ZONES, table, right_column="where").read_all()
            rows = ogrjoin.join(table, ZONES, left_column="where", left_crs=4326).read_all()
            assert rows["join_fid"].to_pylist()[0] == 0


def ewkb(shape, srid, big=False):
    return shapely.to_wkb(shapely.set_srid(shape, srid), include_srid=True, flavor="extended", byte_order=0 if big else 1)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), "0x", "\\x", ""])
@pytest.mark.parametrize("big", [False, True])
def test_extended_wkb_becomes_iso(kind, big, tmp_path):
    shapes = [shapely.Point(980000, 200000, 7), None, shapely.LineString([(0, 0, 1), (9, 9, 2)]),
              shapely.Point(3, 4).buffer(2), shapely.MultiPoint([(1, 2, 3), (4, 5, 6)]),
              shapely.GeometryCollection([shapely.Point(1, 2, 3), shapely.Point(980000, 200000, 3).buffer(1)])]  # fmt: skip
    extended = [s and ewkb(s, 2263, big) for s in shapes]
    iso = [s and shapely.to_wkb(s, flavor="iso", byte_order=0 if big else 1) for s in shapes]
    if isinstance(kind, str):
        table = pa.table({"where": [e and kind + e.hex() for e in extended]})
    else:
        table = pa.table({"where": pa.array(extended, pa.binary()).cast(kind)})
    square = pa.table({"b": [shapely.box(979999, 199999, 980001, 200001).wkb]})
    rows = ogrjoin.join(table, square, left_column="where", right_column="b", right_crs=2263)
    made = rows.read_all()
    assert made["where"].to_pylist() == iso
    assert crs_of(made).to_epsg() == 2263
    assert made["join_fid"].to_pylist() == [0, None, None, None, None, 0]
    rows.to_parquet(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["where"].to_pylist() == iso
    back = ogrjoin.join(square, table, left_column="b", right_column="where", left_crs=2263, how="right", geometry="join")
    assert sorted(map(str, back.read_all()[back._geometry].to_pylist())) == sorted(map(str, iso))
    # reprojected by its SRID
    point = texts_table(["POINT (0 0)"])
    moved = ogrjoin.join(point, table, "nearest", left_column="where", left_crs=4326,
                         right_column="where", crs="reproject", max_distance="180deg")  # fmt: skip
    assert moved.read_all()["join_fid"].to_pylist() != [None]


def test_marked_texts_bring_their_crs():
    field = pa.field("where", pa.string(), metadata={
        b"ARROW:extension:name": b"geoarrow.wkt", b"ARROW:extension:metadata": b'{"crs": "EPSG:4326"}'})  # fmt: skip
    table = pa.table([pa.array(["POINT (0.5 0.5)"])], schema=pa.schema([field]))
    rows = ogrjoin.join(table, ZONES).read_all()
    assert rows["z"].to_pylist() == ["a"] and crs_of(rows).to_epsg() == 4326
    assert rows.schema.field("where").metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"


def test_texts_of_geometries_need_no_shapely():
    code = """
import sys
sys.modules["shapely"] = None
import ogrjoin, pyarrow as pa
points = pa.table({"n": [1, 2, 3], "where": ["POINT (1 1)", None, "SRID=0;POINTZ(5 5 1)"]})
box = pa.table({"z": ["a"], "what": ["MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)))"]})
rows = ogrjoin.join(points, box, left_column="where", right_column="what").read_all()
print(rows["z"].to_pylist())
try:
    ogrjoin.join(box, points, left_column="z", right_column="where").read_all()
except ogrjoin.Error as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[:1] == ["['a', None, None]"], done.stderr
    assert "left side: row 0: the column z holds no geometry as WKT" in done.stdout
    assert "character 1, 'a', stands where a kind of geometry" in done.stdout


def test_equal_columns_of_two_types():
    left = PLACES.assign(code=[1, 2, 3, 4])
    right = ZONES.assign(code=["1", "x"])
    assert zones_of(ogrjoin.join(left, right, on="code")) == ["a", None, None, None]
    assert zones_of(ogrjoin.join(left, right, on=["code=code"])) == ["a", None, None, None]


def test_progress_has_the_whole_total():
    n = 2_500_000
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.random(n) * 20, "y": rng.random(n) * 20})
    done = []
    rows = ogrjoin.join(
        table, ZONES, x="x", y="y", left_crs=4326, how="semi", progress=lambda *n: done.append(n)
    )
    rows.read_all()
    assert done == sorted(done) and done[-1] == (n, n) and {total for _, total in done} == {n}
    assert len(done) > 1

    def stop(*_):
        raise RuntimeError("enough")

    rows = ogrjoin.join(table, ZONES, x="x", y="y", left_crs=4326, progress=stop)
    with pytest.raises(RuntimeError, match="enough"):
        rows.read_all()


def test_all_that_exclude_lists():
    """exclude is a list in any order. Columns in it may be separated by commas."""
    t = pa.table({"x": [0.0, 0, 0], "y": [0.0, 0, 0], "a": [None, 1, 1], "b": [2, 2, 3]})
    named = {"op": "dwithin", "max_distance": 1, "x": "x", "y": "y", "how": "inner"}
    named.update(right_x="x", right_y="y")
    kept = {
        "self": [1, 2, 0, 2, 0, 1],
        "field=a": [0, 1, 2, 0, 0],
        "self,field=a": [1, 2, 0, 0],
        "field=a,self": [1, 2, 0, 0],
        "field=a,b": [0, 1, 2, 0, 2, 0, 1],
        "field=a,b,self": [1, 2, 0, 2, 0, 1],
        "field=a,same_geometry": [],
        "same_geometry": [],
    }
    for exclude, expected in kept.items():
        rows = ogrjoin.join(t, t, exclude=exclude, **named).read_all()
        assert rows["join_fid"].to_pylist() == expected, exclude
    for wrong in ("nothing", "field=nothing", "field=a,field=b"):
        with pytest.raises(ogrjoin.InvalidError, match="exclude"):
            ogrjoin.join(t, t, exclude=wrong, **named)


# --- reading the result -------------------------------------------------------


def test_rows_are_read_again(tmp_path):
    rows = ogrjoin.join(PLACES, ZONES)
    path = tmp_path / "out.parquet"
    for _ in range(2):
        assert rows.read_all()["z"].to_pylist() == FOUND
        rows.to_parquet(path)
        assert pq.read_table(path)["z"].to_pylist() == FOUND
        assert sum(len(batch) for batch in rows) == 4
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().sql("select id, z from rows")
    assert relation.shape == (4, 2) and len(relation.fetchall()) == 4
    table = pa.table(PLACES.to_arrow(index=False))
    once = ogrjoin.join(table.to_reader(), ZONES)
    assert once.read_all()["z"].to_pylist() == FOUND
    before = path.read_bytes()
    for read in (once.read_all, lambda: once.to_parquet(path), once.to_pandas):
        with pytest.raises(ogrjoin.InvalidError, match="have been read"):
            read()
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_frames():
    named = PLACES.set_index(pd.Index(["p", "q", "r", "s"], name="key"))
    frame = ogrjoin.join(named, ZONES).to_geopandas()
    assert list(frame.index) == ["p", "q", "r", "s"] and frame.crs == PLACES.crs
    assert list(frame["z"].fillna("")) == ["a", "", "", "b"] and frame.geometry.name == "geometry"
    assert list(ogrjoin.join(named, ZONES).to_pandas().index) == ["p", "q", "r", "s"]
    assert list(ogrjoin.join(PLACES, ZONES).to_geopandas().index) == [0, 1, 2, 3]
    polars = pytest.importorskip("polars")
    assert ogrjoin.join(PLACES, ZONES).to_polars()["z"].to_list() == FOUND
    assert isinstance(ogrjoin.join(PLACES, ZONES).to_polars(), polars.DataFrame)
    pairs = ogrjoin.pairs(PLACES, ZONES, overlap_area=True)
    table = pairs.to_frame()
    assert list(table.columns) == ["left", "right", "overlap_area"] and len(table) == 2
    near = ogrjoin.pairs(PLACES, ZONES, "nearest", crs="ignore").to_frame()
    assert list(near.columns) == ["left", "right", "distance"]


def selected_frames():
    """Yields frames with an index other than 0 to n - 1."""
    points = gpd.GeoDataFrame({"a": range(4)}, geometry=gpd.points_from_xy(range(4), [0] * 4))
    yield points[points.a > 0]
    yield points.tail(2)
    yield points.iloc[::2]
    yield points.iloc[::-1]
    indexes = (
        pd.RangeIndex(5, 9), pd.RangeIndex(4, name="row"), pd.Index([7, 3, 9, 1]),
        pd.Index(list("pqrs")), pd.Index(list("pqrs"), name="a"),
        pd.date_range("2026-11-30", periods=4), pd.CategoricalIndex(list("pqpq")),
        pd.MultiIndex.from_arrays([[1, 1, 2, 2], list("pqpq")], names=["n", None]),
        pd.Index(list("pqrs"), name=""),
        pd.MultiIndex.from_arrays([[1, 1, 2, 2], list("pqpq")], names=["", ""]),
    )  # fmt: skip
    for index in indexes:
        yield points.set_index(index)


@pytest.mark.parametrize("left", list(selected_frames()), ids=lambda left: repr(left.index)[:30])
def test_index_of_the_left_frame(left):
    right = gpd.GeoDataFrame({"b": range(4)}, geometry=gpd.points_from_xy(range(4), [0] * 4))
    plain = pd.DataFrame(left.drop(columns="geometry").assign(x=left.geometry.x, y=0.0))
    joins = (
        ogrjoin.join(left, right),
        ogrjoin.Index(right).join(left),
        ogrjoin.join(left, right, left_select=[]),
        ogrjoin.join(left.geometry, right),
        ogrjoin.join(plain, right, x="x", y="y"),
    )
    for joined in joins:
        frame = joined.to_pandas()
        assert list(frame.index) == list(left.index)
        assert list(frame.index.names) == list(left.index.names)
        assert list(frame["b"]) == list(left["a"])
    for joined in joins[:4]:
        frame = joined.to_geopandas()
        assert frame.index.equals(left.index) and frame.index.names == left.index.names
    assert joins[0].to_geopandas().columns.tolist() == ["a", "geometry", "join_fid", "b"]
    pairs = ogrjoin.join(left, right, "dwithin", max_distance=1)
    theirs = left.geometry.map(lambda p: right.distance(p).le(1).sum())
    assert list(pairs.to_geopandas().index) == list(left.index.repeat(theirs))


def test_no_column_for_an_index_of_row_numbers():
    points = gpd.GeoDataFrame({"a": range(4)}, geometry=gpd.points_from_xy(range(4), [0] * 4))
    for left in (points, points[points.a < 2], points.head(0)):
        joined = ogrjoin.join(left, points)
        assert joined.schema.names == ["a", "geometry", "join_fid", "join_a"]
        assert joined.to_pandas().index.equals(pd.RangeIndex(len(left)))
        assert ogrjoin.join(left.geometry, points).schema.names[:2] == ["geometry", "join_fid"]
        plain = pd.DataFrame({"x": range(len(left)), "y": 0.0})
        assert ogrjoin.join(plain, points, x="x", y="y").schema.names[:3] == ["x", "y", "join_fid"]
    right = points.set_index(pd.RangeIndex(5, 9))
    assert ogrjoin.join(points, right).schema.names == ["a", "geometry", "join_fid", "join_a"]


def test_two_queries_of_one_connection():
    """A connection of DuckDB has room for one result that is not read yet."""
    duckdb = pytest.importorskip("duckdb")
    con = duckdb.connect()
    rows = pa.table({"i": range(10), "x": np.arange(10.0), "y": np.zeros(10)})
    wkb = pa.table({"i": range(10), "g": shapely.to_wkb(shapely.points(np.arange(10.0), 0))})

    con.register("places", rows)
    con.register("zones", wkb)

    def query():
        return con.sql("select * from places")

    def shapes():
        return con.sql("select * from zones")

    words = {"x": "x", "y": "y", "right_x": "x", "right_y": "y"}
    crs = {"crs": "reproject", "left_crs": "EPSG:2263", "right_crs": "EPSG:2263"}
    joins = (
        lambda: ogrjoin.join(query(), query(), "nearest", **words),
        lambda: ogrjoin.join(query(), query(), "nearest", **words, **crs),
        lambda: ogrjoin.join(query(), query(), "attributes", on="i"),
        lambda: ogrjoin.join(shapes(), shapes(), "within"),
        lambda: ogrjoin.Index(shapes()).join(shapes(), "within"),
    )
    for join in joins:
        assert join().read_all()["join_fid"].to_pylist() == list(range(10))
    a = query()
    assert ogrjoin.join(a, a, "attributes", on="i").read_all().num_rows == 10
    joined = ogrjoin.join(rows, query(), "nearest", **words)
    assert con.sql("select count(*) from joined").fetchall() == [(10,)]
    assert ogrjoin.join(query(), joined, "attributes", on="i").read_all().num_rows == 10
    events = ogrjoin.events(shapes(), shapes(), "i")
    assert events.read_all()["event"].to_pylist() == ["enter"] * 10
    pairs = ogrjoin.pairs(shapes(), shapes(), "within")
    assert list(pairs.right) == list(range(10))
    assert ogrjoin.validate(shapes(), shapes(), "within").n_differences == 0
    batches = ogrjoin.Index(shapes()).pairs_batches(shapes(), "within", batch_size=4)
    assert sum(len(pairs) for pairs in batches) == 10
    live = ogrjoin.Live()
    live.apply([1], [0.0], [0.0])
    assert live.join(query(), "nearest", x="x", y="y").read_all().num_rows == 10
    assert len(live.pairs(shapes(), "nearest").right) == 10
    joined = ogrjoin.join(query(), query(), "nearest", **words)
    assert con.cursor().sql("select count(*) from joined").fetchall() == [(10,)]
    if int(duckdb.__version__.split(".")[0]) < 2:
        return  # ends the open result without an error
    joined = ogrjoin.join(query(), query(), "nearest", **words)
    with pytest.raises(duckdb.Error, match="open result"):
        con.sql("select count(*) from joined").fetchall()
    assert joined.read_all().num_rows == 10


def test_shown_and_pickled():
    rows, pairs, index = ogrjoin.join(PLACES, ZONES), ogrjoin.pairs(PLACES, ZONES), ogrjoin.Index(ZONES)
    assert "join_fid" in repr(rows) and "2 pairs" in repr(pairs) and "2 rows" in repr(index)
    assert "<table" in rows._repr_html_() and "<table" in pairs._repr_html_()
    assert rows.read_all()["z"].to_pylist() == FOUND  # repr() has consumed no rows
    again = pickle.loads(pickle.dumps(pairs))
    assert np.array_equal(again.left, pairs.left) and np.array_equal(again.right, pairs.right)
    for thing in (rows, index):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(thing)
    assert {"join", "sjoin", "scan", "Joined", "pairs"} <= set(dir(ogrjoin))


def test_index_joins_with_few_indexes():
    index = ogrjoin.Index(ZONES)
    for distance in np.linspace(0.1, 2, 20):
        index.pairs(PLACES, "dwithin", max_distance=distance, crs="ignore")
    assert len(index._indexes) <= 4
    for _ in range(2):
        assert zones_of(index.join(PLACES, "within")) == FOUND
        assert index.join(PLACES, agg="count").read_all()["count"].to_pylist() == [1, 0, 0, 1]


# --- typical errors -----------------------------------------------------------


@pytest.mark.parametrize(
    "named, text",
    [
        ({"unordered_pair": True}, "unordered_pairs"),
        ({"max_dist": 3}, "max_distance"),
        ({"op": "neerest"}, "nearest"),
        ({"how": "outer"}, "left"),
        ({"op": "within", "k": 3}, "k"),
        ({"op": "intersects", "max_distance": 5}, "max_distance"),
        ({"agg": "sum(nothing)"}, "nothing"),
        ({"on": "nothing"}, "nothing"),
        ({"pick": "max:nothing"}, "nothing"),
        ({"name_fid": "id"}, "name_fid"),
        ({"left_column": "nothing"}, "nothing"),
        ({"x": "nothing", "y": "id"}, "nothing|geometries"),
        ({"similar": 0.5}, "similar"),
        ({"how": "semi", "agg": "count"}, "agg"),
        ({"crs": "whatever"}, "crs"),
        ({"left_crs": "nonsense"}, "nonsense|left_crs"),
    ],
)
def test_errors_name_what_to_write(named, text):
    with pytest.raises(ogrjoin.Error, match=text):
        ogrjoin.join(PLACES, ZONES, **named).read_all()


@pytest.mark.parametrize(
    "named, text",
    [
        ({"predicate": "within"}, '"predicate"; did you mean "op"?'),
        ({"distance_col": "d"}, '"distance_col"; did you mean "name_distance"?'),
        ({"rsuffix": "r"}, '"rsuffix"; did you mean "prefix"?'),
        ({"on_attribute": "v"}, '"on_attribute"; did you mean "on"?'),
        ({"max_dist": 5}, '"max_dist"; did you mean "max_distance"?'),
        ({"where": "v > 1"}, '"where": filter the side before the join'),
        ({"k": 0}, "k must be a whole number from 1 to 2147483647, not 0"),
        ({"max_pairs": -1}, "max_pairs must be a whole number from 0 to 9007199254740992, not -1"),
    ],
)
def test_errors_of_words_of_other_libraries(named, text):
    for join in (ogrjoin.join, ogrjoin.pairs):
        with pytest.raises(ogrjoin.InvalidError) as caught:
            join(PLACES, ZONES, **{"op": "nearest", **named})
        assert text in str(caught.value)


def test_two_crs_name_the_cure():
    one = gpd.GeoDataFrame(geometry=[shapely.Point(1, 1)], crs=4326)
    other = one.to_crs(3857)
    for join in (ogrjoin.join, ogrjoin.pairs):
        with pytest.raises(ogrjoin.InvalidError, match='crs="reproject" of join'):
            join(one, other)
    asked = {"max_distance": "1e-6deg", "crs": "reproject"}
    assert len(ogrjoin.join(one, other, "dwithin", **asked).read_all()) == 1


def test_the_side_that_is_no_layer_is_named():
    texts, places = ["POINT (1 1)"], [shapely.Point(1, 1), None]
    for join in (ogrjoin.join, ogrjoin.pairs):
        for left, right, side in (
            (texts, places, "left side: row 0 is a str, not a geometry .*from_wkt"),
            (places, texts, "right side: row 0 is a str"),
            (places, np.array([None, 5], object), "right side: row 1 is a int"),
            (5, places, "left side"),
            (places, 5, "right side"),
        ):
            with pytest.raises(TypeError, match=side):
                join(left, right)
    good = pa.table({"geometry": [places[0].wkb]})
    bad = pa.table({"geometry": [places[0].wkb, b"x"]})
    for join in (lambda *sides: ogrjoin.join(*sides).read_all(), ogrjoin.pairs):
        for left, right, side in ((good, bad, "right"), (bad, good, "left")):
            with pytest.raises(ogrjoin.InvalidError, match=f"^{side} side: row 1: broken WKB"):
                join(left, right)
    with pytest.raises(ogrjoin.InvalidError, match="^left side: row 1: broken WKB"):
        list(ogrjoin.Index(good).pairs_batches(bad))
    twice = good.append_column("other", good["geometry"])
    for left, right, side in ((good, twice, "right"), (twice, good, "left")):
        for pairs in (ogrjoin.pairs, lambda left, right: list(ogrjoin.Index(right).pairs_batches(left))):
            with pytest.raises(ogrjoin.InvalidError, match=f"^{side} side: no column is marked as geoarrow"):
                pairs(left, right)
    curve = pa.table({"geometry": [bytes.fromhex("0108000000") + bytes(4)]})
    for join in (lambda *sides: ogrjoin.join(*sides).read_all(), ogrjoin.pairs):
        with pytest.raises(ogrjoin.UnsupportedError, match="^right side: row 0: "):
            join(good, curve)
    for places in (places, np.array(places), gpd.GeoSeries(places), good):
        with pytest.raises(ogrjoin.InvalidError, match="^op similar needs texts or vectors to compare: give"):
            ogrjoin.pairs(places, places, op="similar")
    for left, right, side, n in ((places, ["a"], "left", 0), (["a"], [[1.0]], "left", 1)):
        settings = {"min_similarity": 0.5} if n == 0 else {"max_difference": 1}
        with pytest.raises(ogrjoin.InvalidError, match=f"^{side} side: .*similar"):
            ogrjoin.pairs(left, right, op="similar", **settings)
    with pytest.raises(ogrjoin.InvalidError, match="^right side: row 1 has the type int, and op"):
        ogrjoin.pairs(["a"], ["a", 5], op="similar", min_similarity=0.5)
    long = pa.record_batch([pa.nulls(2**31)], ["v"])  # takes no memory
    with pytest.raises(ogrjoin.Error, match="^right side: it has more than 2147483647 rows"):
        ogrjoin.join(pa.table({"v": ["a"]}), pa.Table.from_batches([long]), op="attributes", on="v")
    with pytest.raises(ogrjoin.InvalidError, match="x must be numbers"):
        ogrjoin.pairs((texts, [1]), places)


def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "two.gpkg"
    frame = gpd.GeoDataFrame({"v": [1]}, geometry=[shapely.Point(1, 2)], crs=2263)
    for name in ("one", "two"):
        pyogrio.write_dataframe(frame, path, layer=name, append=path.exists())
    frame.to_parquet(tmp_path / "g.parquet")
    for name in ("broken.gpkg", "broken.parquet"):
        (tmp_path / name).write_text("hello")
    for layer in ("three", 7):
        with pytest.raises(ogrjoin.InvalidError, match=f"no layer {layer!r}: give layer= one of .*one, two"):
            ogrjoin.scan(path, layer)
    with pytest.raises(ogrjoin.InvalidError, match="give right_layer= one of one, two"):
        ogrjoin.join(frame, path, right_layer="three")
    with pytest.raises(ogrjoin.InvalidError, match="which has no layers: leave layer= out"):
        ogrjoin.scan(tmp_path / "g.parquet", "one")
    for name in ("none.gpkg", "none.parquet", "broken.gpkg", "broken.parquet"):
        with pytest.raises(ogrjoin.InputError, match=name):
            ogrjoin.scan(tmp_path / name)
    assert len(ogrjoin.scan(path, "two")) == len(ogrjoin.scan(path, 1)) == 1


def spoil_column(path, name):
    """Overwrites the values of a column of a Parquet file, so that it cannot be read."""
    about = pq.ParquetFile(path).metadata
    with open(path, "r+b") as file:
        for i in range(about.num_row_groups):
            part = next(
                part for j in range(about.num_columns)
                if (part := about.row_group(i).column(j)).path_in_schema == name
            )  # fmt: skip
            starts = part.dictionary_page_offset, part.data_page_offset
            file.seek(min(start for start in starts if start is not None))
            file.write(b"\xff" * part.total_compressed_size)


@pytest.mark.parametrize(
    "options",
    (
        {"left_select": ["ID"], "agg": "sum(value)"},
        {"left_select": "id", "how": "semi"},
        {"left_select": "", "right_select": "value"},
        {"left_select": "id,geometry", "right_select": "value", "on": "ID=id"},
    ),
    ids=str,
)
def test_columns_that_no_setting_names_are_not_read(tmp_path, options):
    n = np.arange(1000)
    frame = gpd.GeoDataFrame(
        {"id": n % 7, "value": n * 0.5, "unused": n.astype(str)},
        geometry=gpd.points_from_xy(n % 40, n // 40),
    )
    path = str(tmp_path / "a.parquet")
    frame.to_parquet(path, row_group_size=300)
    options = {**options, "op": "dwithin", "max_distance": 1}
    whole = ogrjoin.join(path, path, **options).read_all()
    assert len(whole) and whole.equals(ogrjoin.join(frame, frame, **options).read_all())
    spoil_column(path, "unused")
    assert ogrjoin.join(path, path, **options).read_all().equals(whole)
    with pytest.raises((OSError, ogrjoin.Error)):
        ogrjoin.join(path, path, **{**options, "left_select": None}).read_all()


def test_columns_of_odd_names_are_read(tmp_path):
    names = ["it's", 'a"b', "back\\slash", "new\nline", "\u00c4rger"]
    columns = {name: [float(i)] for i, name in enumerate(names)}
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.0], "y": [0.0], **columns}), path)
    for name in names:
        rows = ogrjoin.join(path, [box(-1, -1, 1, 1)], x="x", y="y", left_select=[name])
        assert rows.schema.names[0] == name, name


def test_files_of_a_folder_differ(tmp_path):
    """Columns have the types of the first file; what a later file lacks is NULL there."""
    for name, kind, more in (("a", pa.int64(), {"v": [1.5, 2.5]}), ("b", pa.int32(), {})):
        columns = {"n": pa.array([1, 2], kind), "x": [0.0, 1.0], "y": [0.0, 0.0], **more}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    rows = ogrjoin.join(str(tmp_path), [box(0.5, -1, 2, 1)], x="x", y="y").read_all()
    assert rows["n"].to_pylist() == [1, 2, 1, 2] and rows["n"].type == pa.int64()
    assert rows["v"].to_pylist() == [1.5, 2.5, None, None]
    assert rows["join_fid"].to_pylist() == [None, 0, None, 0]


def test_the_commands_spelling():
    a = gpd.GeoDataFrame(geometry=gpd.points_from_xy([0, 1, 2], [0, 0, 0]))
    rows = ogrjoin.join(
        a, a, "dwithin", max_distance=1, unordered_pairs=True, exclude="self", how="inner"
    ).read_all()
    assert rows["join_fid"].to_pylist() == [1, 2]


@pytest.mark.skipif(not COMMAND, reason="no command (OGRJOIN_COMMAND)")
@pytest.mark.parametrize("layers", ["P", "T", "PT", "TP", "PP", "TT", "PTP"])
def test_layer_of_a_file(layers, tmp_path):
    """Of several layers, the only one with geometries is read, as by the command."""
    path, out = tmp_path / "some.gpkg", tmp_path / "o.csv"
    plain = pd.DataFrame({"v": [1]})
    for i, kind in enumerate(layers):
        frame = plain if kind == "T" else gpd.GeoDataFrame(plain, geometry=[shapely.Point(1, 2)], crs=2263)
        pyogrio.write_dataframe(frame, path, layer=f"l{i}", append=path.exists())
    words = ("-op", "intersects", "-on", "v=v", "-f", "CSV", out, path, path)
    run = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    try:
        rows = ogrjoin.join(path, path, on="v=v").read_all()
    except ogrjoin.Error as error:
        says = str(error).split(",")[0]
        assert run.returncode == 1
        assert says in run.stderr or (layers == "T" and "geometr" in says)
    else:
        assert run.returncode == 0 and len(rows) == 1, run.stderr


def test_arrays_of_numpy():
    """Masked coordinates have no place; pairs() and join() take arrays of one form."""
    box_here = gpd.GeoSeries([box(0, 0, 4, 4)], crs=2263)
    y = np.array([1.0, 1.0, 1.0])
    mask = np.ma.array([1, 2, 9], mask=[False, True, False])
    cases = {
        "masked": ((mask, y), [0]),
        "masked y": ((y, np.ma.array(y, mask=[True, False, False])), [1, 2]),
        "without a mask": ((np.ma.array([1, 2, 9]), y), [0, 1]),
        "swapped bytes": ((np.array([1, 2, 9], ">f8"), y.astype(">f4")), [0, 1]),
        "two columns": (np.array([[1, 1], [9, 1], [2, 1]]), [0, 2]),
    }
    for name, (side, rows) in cases.items():
        assert ogrjoin.pairs(side, box_here).left.tolist() == rows, name
        joined = ogrjoin.join(side, box_here, crs="ignore").read_all()
        assert np.flatnonzero(joined["join_fid"].is_valid()).tolist() == rows, name
        progress = lambda done, total: None  # noqa: E731
        assert ogrjoin.pairs(side, box_here, progress=progress).left.tolist() == rows, name
    near = np.ma.array([5.0, 5.0, 5.0], mask=[False, True, False])
    found = ogrjoin.pairs((y, y), (y[:1], y[:1]), "dwithin", max_distance=near)
    assert found.left.tolist() == [0, 2]
    found = ogrjoin.pairs((y, y), (y, y), on=(mask, np.array([1, 2, 3])))
    assert list(zip(found.left, found.right)) == [(0, 0)]
    for x in (np.array([1j, 2, 3]), np.array(["2020"] * 3, "M8[D]")):
        with pytest.raises(ogrjoin.InvalidError, match="x must be real numbers"):
            ogrjoin.pairs((x, y), box_here)


def test_nullable_types_of_pandas():
    """Integers with missing values stay integers: no double equals 2^53 + 1."""
    number = pd.array([2**53 + 1, None, -(2**53) - 1], dtype="Int64")
    left = gpd.GeoDataFrame(
        {"id": number, "is": pd.array([True, None, False], dtype="boolean"), "plain": [1, 2, 3]},
        geometry=gpd.points_from_xy([1, 2, 30], [1, 2, 3]),
        crs=2263,
        index=pd.Index(number, name="key"),
    )
    right = gpd.GeoDataFrame({"id": number[:1]}, geometry=[box(0, 0, 4, 4)], crs=2263)
    for how in ("left", "full"):
        rows = ogrjoin.join(left, right, how=how)
        for frame in (rows.to_geopandas(), rows.to_pandas()):
            pd.testing.assert_index_equal(frame.index, left.index)
            assert frame["is"].dtype == "boolean" and frame["plain"].dtype == "int64"
            pd.testing.assert_extension_array_equal(frame["id"].array, number)
            expected = pd.array([2**53 + 1, 2**53 + 1, None], dtype="Int64")
            pd.testing.assert_extension_array_equal(frame["join_id"].array, expected)
    assert rows.to_geopandas().crs == left.crs


def test_files_of_a_folder_that_differ(tmp_path):
    """The geometries of all files of a folder have one column, encoding and CRS."""
    from ogrjoin.scale import join_files

    points = gpd.GeoDataFrame({"id": [0, 1]}, geometry=gpd.points_from_xy([1, 2], [1, 2]), crs=2263)
    lots = tmp_path / "lots.parquet"
    gpd.GeoDataFrame(geometry=[box(0, 0, 4, 4)], crs=2263).to_parquet(lots)
    others = {
        "crs": points.set_crs(3857, allow_override=True),
        "no column 'geometry'": points.rename_geometry("shape"),
        "encoding": points,
    }
    for text, other in others.items():
        folder = tmp_path / text.split(" ")[0]
        folder.mkdir()
        points.to_parquet(folder / "a.parquet")
        points.iloc[:0].to_parquet(folder / "b.parquet")
        encoding = "geoarrow" if text == "encoding" else "WKB"
        other.to_parquet(folder / "c.parquet", geometry_encoding=encoding)
        with pytest.raises(ogrjoin.InputError, match=f"(?i){text}.*a.parquet"):
            ogrjoin.join(folder, lots)
        with pytest.raises(ogrjoin.InputError, match=f"(?i){text}.*a.parquet"):
            join_files(folder, lots, tmp_path / "out", op="within")
    assert not (tmp_path / "out").exists()
    points.set_crs("OGC:CRS84", allow_override=True).to_parquet(tmp_path / "crs" / "a.parquet")
    points.set_crs(4326, allow_override=True).to_parquet(tmp_path / "crs" / "c.parquet")
    assert len(ogrjoin.join(tmp_path / "crs", lots, crs="ignore").read_all()) == 4


@pytest.mark.filterwarnings("ignore:the join side is read")
def test_folders_of_keys(tmp_path):
    """Folders KEY=VALUE are columns, in join() and join_files(), as in GeoPandas."""
    from ogrjoin.scale import join_files

    lots = tmp_path / "lots.parquet"
    gpd.GeoDataFrame({"lot": [5]}, geometry=[box(0, 0, 4, 4)], crs=2263).to_parquet(lots)
    folder = tmp_path / "points"
    for i, key in enumerate(("2024", "2025", "__HIVE_DEFAULT_PARTITION__")):
        for j, city in enumerate("ab"):
            where = folder / f"year={key}" / f"city={city}"
            where.mkdir(parents=True)
            gpd.GeoDataFrame(
                {"id": [i, 10 + j]}, geometry=gpd.points_from_xy([1, 9], [1, 9]), crs=2263
            ).to_parquet(where / "part.parquet")
    rows = ogrjoin.join(folder, lots).read_all()
    assert rows.schema.names == ["id", "geometry", "year", "city", "join_fid", "lot"]
    assert rows["year"].to_pylist() == [2024] * 4 + [2025] * 4 + [None] * 4
    assert rows["city"].to_pylist() == ["a", "a", "b", "b"] * 3
    frame = gpd.read_parquet(folder / "year=2025")
    assert frame["city"].tolist() == rows["city"].to_pylist()[4:8]
    for how in ("left", "full"):
        assert join_files(folder, lots, tmp_path / how, tiles=3, how=how) == len(rows)
        made = ogrjoin.scan(tmp_path / how).reader().read_all().select(rows.schema.names)
        assert made.replace_schema_metadata(None).to_pylist() == rows.to_pylist()
    swapped = ogrjoin.join(lots, folder, how="inner").read_all()
    assert swapped["year"].to_pylist() == [2024, 2024, 2025, 2025, None, None]
    one = ogrjoin.join(folder / "year=2024" / "city=a" / "part.parquet", lots)
    assert one.schema.names == ["id", "geometry", "join_fid", "lot"]
    # A column of the files is not replaced.
    other = tmp_path / "other" / "id=7"
    other.mkdir(parents=True)
    gpd.GeoDataFrame({"id": [1]}, geometry=[Point(1, 1)], crs=2263).to_parquet(other / "a.parquet")
    assert ogrjoin.join(tmp_path / "other", lots).read_all()["id"].to_pylist() == [1]


# --- folders whose files differ in types ---------------------------------------------


def folder_of(path, *columns, name="a"):
    """Writes files of points with a column of this name; returns the folder."""
    path.mkdir()
    for i, column in enumerate(columns):
        wkb = pa.array([shapely.to_wkb(Point(1, 1))] * len(column), pa.binary())
        pq.write_table(pa.table({"geometry": wkb, name: column}), path / f"{i}.parquet")
    return str(path)


NULLS = pa.array([None])
NONE = pa.nulls(0)
MOMENT = dt.datetime(2026, 1, 1)
TYPES = [
    ((NULLS, pa.array(["x"])), pa.string()),
    ((NULLS, pa.array(["x"], pa.large_string()), NULLS), pa.large_string()),
    ((pa.array([1], pa.int32()), pa.array([2**40])), pa.int64()),
    ((pa.array([2**40]), pa.array([1], pa.int32())), pa.int64()),
    ((pa.array([1], pa.int32()), pa.array([0.5])), pa.float64()),
    ((pa.array(["x"]), pa.array(["y"]).dictionary_encode()), pa.string()),
    ((pa.array(["x"]).dictionary_encode(), NULLS, pa.array(["y"])), pa.string()),
    ((NULLS, pa.array([[1]]), pa.array([[0.5]])), pa.list_(pa.float64())),
    ((pa.array([MOMENT]), pa.array([MOMENT.date()])), pa.timestamp("us")),
    ((pa.array([MOMENT.date()]), pa.array([MOMENT])), pa.timestamp("us")),
    ((pa.array([1]), NONE.cast("string")), pa.int64()),
    ((NONE.cast("string"), pa.array([1]), NONE.cast("double")), pa.int64()),
    ((pa.array([2**53 + 1]), pa.nulls(3, pa.float64())), pa.int64()),
    ((pa.nulls(3, pa.float64()), pa.array([2**53 + 1])), pa.int64()),
    ((pa.nulls(3, pa.string()), pa.nulls(2, pa.float64())), pa.string()),
    ((NONE, NONE.cast("string")), pa.string()),
]


@pytest.mark.parametrize("i", range(len(TYPES)))
def test_types_of_all_files_of_a_folder(tmp_path, i):
    columns, kind = TYPES[i]
    path = folder_of(tmp_path / "f", *columns)
    right = [Point(1, 1)]
    got = ogrjoin.join(path, right).read_all().column("a")
    assert got.type.equals(kind)
    expected = [value for column in columns for value in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        expected = [MOMENT] * len(expected)
    assert got.to_pylist() == expected
    assert len(ogrjoin.pairs(ogrjoin.scan(path), right)) == len(expected)


@pytest.mark.parametrize("one, other", [
    (pa.array([1]), pa.array(["x"])),
    (pa.array([0.5]), pa.array(["x"])),
    (pa.array(["x"]), pa.array([MOMENT.date()])),
    (pa.array([decimal.Decimal(10**19 + 1)]), pa.array([0.5])),
    (pa.array([[decimal.Decimal(10**19 + 1)]]), pa.array([[0.5]])),
])  # fmt: skip
def test_files_of_a_folder_without_a_common_type(tmp_path, one, other):
    for name, columns in (("backwards", (other, one)), ("f", (one, other))):
        path = folder_of(tmp_path / name, *columns, name="size")
        a, b = (re.escape(str(c.type).replace("item", "element")) for c in columns)
        error = rf"^column 'size' has the type {b} in .*1\.parquet, and {a} in files before"
        with pytest.raises(ogrjoin.InputError, match=error):
            ogrjoin.join(path, [Point(1, 1)]).read_all()
    # a column that is not read may be of any type
    only = {"left_select": "geometry", "left_column": "geometry"}
    rows = ogrjoin.join(path, [Point(1, 1)], **only).read_all()
    assert rows.num_rows == 2


def test_types_of_all_files_in_join_files(tmp_path):
    from ogrjoin.scale import join_files

    lots = tmp_path / "lots.parquet"
    gpd.GeoDataFrame({"lot": [5]}, geometry=[box(0, 0, 4, 4)], crs=2263).to_parquet(lots)
    folder = tmp_path / "points"
    folder.mkdir()
    frame = gpd.GeoDataFrame(geometry=[Point(1, 1)], crs=2263)
    for i, column in enumerate((pd.array([1], "int32"), pd.array([2**40], "int64"))):
        frame.assign(a=column).to_parquet(folder / f"{i}.parquet")
    frame[:0].assign(a=pd.array([], "str")).to_parquet(folder / "none.parquet")
    join_files(folder, lots, tmp_path / "made")
    made = ogrjoin.scan(tmp_path / "made").reader().read_all()
    assert made["a"].to_pylist() == [1, 2**40] and made["lot"].to_pylist() == [5, 5]
    frame.assign(a=[0.5]).to_parquet(folder / "0.parquet")
    frame.assign(a=[2**53 + 1]).to_parquet(folder / "1.parquet")
    for i, sides in enumerate(((folder, lots), (lots, folder))):
        with pytest.raises(ogrjoin.InputError, match=r"1\.parquet: values of column 'a' cannot [^\n]*$"):
            join_files(*sides, tmp_path / f"fails{i}")
    frame.assign(a=["x"]).to_parquet(folder / "2.parquet")
    with pytest.raises(ogrjoin.InputError, match="^column 'a' has the type large_string in "):
        join_files(folder, lots, tmp_path / "other")


def test_value_that_the_common_type_lacks(tmp_path):
    path = folder_of(tmp_path / "f", pa.array([0.5]), pa.array([2**53 + 1]))
    for sides in ((path, [Point(1, 1)]), ([Point(1, 1)], path)):
        with pytest.raises(ogrjoin.InputError, match=r"1\.parquet: values of column 'a' cannot become double") as e:
            ogrjoin.join(*sides).read_all()
        assert "Traceback" not in str(e.value) and "\n" not in str(e.value)


def test_file_of_a_folder_that_is_no_parquet(tmp_path):
    path = folder_of(tmp_path / "f", pa.array([1]))
    (tmp_path / "f" / "z.parquet").write_text("nothing")
    for read in (ogrjoin.scan, lambda p: ogrjoin.join(p, [Point(1, 1)])):
        with pytest.raises(ogrjoin.InputError, match=r"z\.parquet cannot be read as Parquet: [^\n]*$"):
            read(path)


# --- GeoJSON and arrays ---------------------------------------------------------------


class Shape:
    def __init__(self, data):
        self.__geo_interface__ = data


POINT = {"type": "Point", "coordinates": [1, 1]}
FEATURE = {"type": "Feature", "properties": {"a": 1}, "geometry": POINT}
OTHER = {"type": "Feature", "properties": {"b": "x"}, "geometry": None}
FEATURES = {"type": "FeatureCollection", "features": [FEATURE, OTHER]}


def test_properties_named_geometry_and_of_many_bits():
    feature = {**FEATURE, "properties": {"geometry": "g", "geometry_1": 7}}
    rows = ogrjoin.join(feature, ZONES, right_crs="EPSG:4326").read_all()
    assert rows.schema.names[:3] == ["geometry", "geometry_1", "geometry_2"]
    assert rows["geometry"].to_pylist() == ["g"] and rows["z"].to_pylist() == ["a"]
    assert shapely.from_wkb(rows["geometry_2"].to_pylist()) == [Point(1, 1)]
    feature = {**FEATURE, "properties": {"parcel": 2**70}}
    error = "^the left side: the property 'parcel' has an integer of more than 63 bits"
    with pytest.raises(ogrjoin.InvalidError, match=error):
        ogrjoin.join(feature, ZONES)


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
@pytest.mark.parametrize("interleaved", [True, False])
def test_array_of_geopandas_has_its_crs_and_type(encoding, interleaved):
    how = {"geometry_encoding": encoding, "interleaved": interleaved}
    array = gpd.GeoSeries([Point(1, 1)], crs=25833).to_arrow(**how)
    zones = ZONES[:1].set_crs(25833, allow_override=True)
    assert zones_of(ogrjoin.join(array, zones)) == ["a"]
    with pytest.raises(ogrjoin.InvalidError, match="25833"):
        ogrjoin.join(array, ZONES)


@pytest.mark.parametrize("side, properties", [
    (POINT, [{}]), (Shape(POINT), [{}]), (Point(1, 1), [{}]), (FEATURE, [{"a": 1}]),
    (Shape(FEATURES), [{"a": 1, "b": None}, {"a": None, "b": "x"}]),
    ({**FEATURES, "features": [Shape(FEATURE)]}, [{"a": 1}]),
    (pa.array([shapely.to_wkb(Point(1, 1))]), [{}]),
    (pa.chunked_array([[shapely.to_wkb(Point(1, 1))], [None]]), [{}, {}]),
])  # fmt: skip
def test_sides_that_are_geojson_or_an_array(side, properties):
    assert list(ogrjoin.pairs(side, ZONES.geometry.to_numpy()).left) == [0]
    rows = ogrjoin.join(side, ZONES, right_crs="EPSG:4326").read_all()
    assert rows.select(properties[0].keys()).to_pylist() == properties
    assert rows["z"].to_pylist() == ["a", None][: len(properties)]
    right = ogrjoin.join(PLACES, side).read_all().select(["id", *properties[0]]).to_pylist()
    assert right == [
        {"id": i, **(properties[0] if i == 1 else dict.fromkeys(properties[0]))} for i in range(1, 5)
    ]


@pytest.mark.parametrize("side", [{}, {"type": "Nothing"}, {"type": "Feature"}, {"x": [1]}])
def test_dict_that_is_no_geojson(side):
    for join in (ogrjoin.pairs, ogrjoin.join):
        with pytest.raises(ogrjoin.InvalidError, match="^the left side: a dict is no GeoJSON"):
            join(side, ZONES)


# --- curves -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [8, 1008, 3008])
def test_curves_are_one_error(kind):
    """A circular string as WKB raises one exception in every function, on either side."""
    ordinates = {8: 2, 1008: 3, 3008: 4}[kind]
    arc = struct.pack(f"<BII{3 * ordinates}d", 1, kind, 3, *range(3 * ordinates))
    curves = pa.table({"geometry": pa.array([shapely.to_wkb(Point(1, 1)), arc])})
    points = pa.table({"geometry": curves["geometry"].slice(0, 1)})
    for use in (
        lambda left, right: ogrjoin.join(left, right).read_all(), ogrjoin.pairs,
        lambda left, right: ogrjoin.join(left, right, how="full").to_pandas(),
    ):  # fmt: skip
        for which, sides in (("left", (curves, points)), ("right", (points, curves))):
            with pytest.raises(ogrjoin.UnsupportedError, match=f"^{which} side: row 1: geometry type .*curve"):
                use(*sides)
