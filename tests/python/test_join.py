"""join() and scan(): rows, columns, CRS, files, from every kind of side."""

import ctypes
import datetime as dt
import os
import shutil
import subprocess

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
gpd = pytest.importorskip("geopandas")
pd = pytest.importorskip("pandas")
import pyarrow.parquet as pq
import shapely

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")

rng = np.random.default_rng(5)
POINTS = gpd.GeoDataFrame(
    {"id": np.arange(1000), "name": rng.choice(["a", "b", None], 1000)},
    geometry=gpd.points_from_xy(*rng.random((2, 1000)) * 10),
    crs=2263,
)
LOTS = gpd.GeoDataFrame(
    {"lot": np.arange(50), "name": [f"lot {i}" for i in range(50)]},
    geometry=shapely.buffer(shapely.points(rng.random((50, 2)) * 10), 0.5),
    crs=2263,
)


def expect(how="left", **named):
    if "max_distance" in named:
        joined = gpd.sjoin_nearest(
            POINTS, LOTS, how=how, distance_col="join_distance", **named
        )
    else:
        joined = gpd.sjoin(POINTS, LOTS, how=how)
    return joined.sort_values(["id", "index_right"])


def rows_of(table):
    return list(zip(table["id"].to_pylist(), table["join_fid"].to_pylist()))


def expected_rows(frame):
    return [
        (int(i), None if np.isnan(j) else int(j))
        for i, j in zip(frame["id"], frame["index_right"])
    ]


@pytest.mark.parametrize("how", ["left", "inner"])
def test_columns_and_rows(how):
    table = ogrjoin.join(POINTS, LOTS, how=how).read_all()
    frame = expect(how)
    assert table.schema.names == [
        "id",
        "name",
        "geometry",
        "join_fid",
        "lot",
        "join_name",
    ]
    assert rows_of(table) == expected_rows(frame)
    lots = [None if np.isnan(v) else v for v in frame["lot"]]
    assert table["lot"].to_pylist() == lots
    names = [f"lot {int(i)}" if i is not None else None for i in lots]
    assert table["join_name"].to_pylist() == names
    assert table["geometry"].to_pylist() == list(frame.geometry.to_wkb())


def test_nearest():
    table = ogrjoin.join(
        POINTS, LOTS, "nearest", how="inner", max_distance="0.5us-ft", ties="all"
    ).read_all()
    frame = expect("inner", max_distance=0.5)
    assert rows_of(table) == expected_rows(frame)
    assert np.allclose(table["join_distance"], frame["join_distance"], rtol=1e-14)
    first = np.r_[True, np.diff(table["id"].to_numpy()) > 0]
    assert (table["join_rank"].to_numpy()[first] == 1).all()
    assert table["join_rank"].to_numpy().max() > 1
    ranked = ogrjoin.join(POINTS, LOTS, "nearest", k=3).read_all()
    assert ranked["join_rank"].to_pylist() == [1, 2, 3] * 1000
    far = ranked["join_distance"].to_numpy().reshape(-1, 3)
    assert (np.diff(far) >= 0).all()


def test_semi_and_anti():
    frame = expect("inner")
    for how, matched in (("semi", True), ("anti", False)):
        table = ogrjoin.join(POINTS, LOTS, how=how).read_all()
        assert table.schema.names == ["id", "name", "geometry"]
        has = POINTS["id"].isin(frame["id"])
        assert table["id"].to_pylist() == list(POINTS["id"][has == matched])


def test_every_kind_of_side():
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    points, lots = pa.table(POINTS.to_arrow()), pa.table(LOTS.to_arrow())
    rows = expected_rows(expect())
    batches = pa.RecordBatchReader.from_batches(points.schema, points.to_batches(99))
    native = pa.table(POINTS.to_arrow(geometry_encoding="geoarrow"))
    for side in (points, batches, native, polars.from_arrow(points)):
        joined = ogrjoin.join(side, polars.from_arrow(lots))
        schema = joined.schema
        table = joined.read_all()
        assert rows_of(table) == rows and table.schema == schema
    joined = ogrjoin.join(points, lots)
    counted = duckdb.connect().sql("select count(join_fid), count(*) from joined")
    n_matched = sum(j is not None for _, j in rows)
    assert counted.fetchall()[0] == (n_matched, len(rows))
    again = polars.DataFrame(ogrjoin.join(polars.from_arrow(points), lots))
    assert again["join_fid"].to_list() == [j for _, j in rows]


def test_files(tmp_path):
    rows = expected_rows(expect())
    POINTS.to_parquet(tmp_path / "points.parquet")
    LOTS.to_parquet(tmp_path / "lots.parquet")
    out = tmp_path / "out.parquet"
    joined = ogrjoin.join(
        tmp_path / "points.parquet", ogrjoin.scan(tmp_path / "lots.parquet")
    )
    joined.to_parquet(out)
    assert rows_of(pq.read_table(out)) == rows
    frame = gpd.read_parquet(out)
    assert frame.crs == POINTS.crs and frame.geometry.notna().all()
    ogrjoin.join(POINTS, LOTS, geometry="join").to_parquet(out)
    frame = gpd.read_parquet(out)
    assert set(frame.geometry.dropna().geom_type) == {"Polygon"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "lots.parquet",
        "out.parquet",
        "points.parquet",
    ]
    pytest.importorskip("pyogrio")
    LOTS.to_file(tmp_path / "lots.gpkg")
    assert rows_of(ogrjoin.join(POINTS, tmp_path / "lots.gpkg").read_all()) == rows


def test_a_write_follows_no_link(tmp_path):
    """The temporary file has a random name. In a shared folder, others could guess
    PATH.PID.tmp and put a link there."""
    out, victim = tmp_path / "out.parquet", tmp_path / "victim"
    victim.write_text("secret")
    (tmp_path / f"out.parquet.{os.getpid()}.tmp").symlink_to(victim)
    joined = ogrjoin.join(POINTS, LOTS)
    joined.to_parquet(out)
    assert rows_of(pq.read_table(out)) == expected_rows(expect())
    assert victim.read_text() == "secret"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_that_is_replaced_leaves_its_permissions(tmp_path):
    out = tmp_path / "out.parquet"
    joined = ogrjoin.join(POINTS, LOTS)
    joined.to_parquet(out)
    assert out.stat().st_mode & 0o777 == 0o666 & ~mask()
    for mode in (0o600, 0o660):
        out.chmod(mode)
        joined.to_parquet(out)
        assert out.stat().st_mode & 0o777 == mode
        assert rows_of(pq.read_table(out)) == expected_rows(expect())


def mask():
    before = os.umask(0)
    os.umask(before)
    return before


def test_a_failed_write_leaves_the_old_file(tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("old")
    schema = pa.schema({"id": pa.int64(), "wkb": pa.binary()})

    def broken():
        yield pa.record_batch([[1], [shapely.to_wkb(shapely.Point(1, 1))]], schema)
        raise RuntimeError("torn off")

    reader = pa.RecordBatchReader.from_batches(schema, broken())
    with pytest.raises(Exception, match="torn off"):
        ogrjoin.join(reader, LOTS).to_parquet(out)
    assert out.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_crs():
    with pytest.raises(ogrjoin.InvalidError, match="two CRS"):
        ogrjoin.join(POINTS, LOTS.to_crs(4326))
    with pytest.raises(ogrjoin.InvalidError, match="two CRS"):
        ogrjoin.pairs(POINTS, LOTS.to_crs(4326))
    assert len(ogrjoin.pairs(POINTS, LOTS.to_crs(4326), crs="ignore")) == 0
    degrees = POINTS.set_crs(4326, allow_override=True)
    with pytest.raises(ogrjoin.InvalidError, match="metric="):
        ogrjoin.pairs(degrees, degrees, "nearest")
    assert len(ogrjoin.pairs(degrees, degrees, "nearest", crs="ignore")) == 1000
    metres = ogrjoin.pairs(degrees, degrees, "nearest", k=2, metric="sphere")
    assert metres.distance.max() > 1000
    feet = ogrjoin.pairs(POINTS, LOTS, "dwithin", max_distance="0.3048006096012192m")
    assert len(feet) == len(ogrjoin.pairs(POINTS, LOTS, "dwithin", max_distance=1))
    for wrong in ("1 mile", "x", "1deg"):
        with pytest.raises(ValueError, match="max_distance") as error:
            ogrjoin.pairs(POINTS, LOTS, "dwithin", max_distance=wrong)
        with pytest.raises(ValueError, match="max_distance") as other:
            ogrjoin.join(POINTS, LOTS, "dwithin", max_distance=wrong)
        assert str(error.value) == str(other.value)


def test_errors():
    for named in ({"how": "outer"}, {"op": "nowhere"}, {"pick": "best"}, {"agg": "all(x)"}):
        with pytest.raises(ogrjoin.Error):
            ogrjoin.join(POINTS, LOTS, **named).read_all()
    with pytest.raises(ogrjoin.InvalidError, match="no column"):
        ogrjoin.join(pa.table({"a": [1]}), LOTS)


def test_index_joins_and_answers_queries():
    index = ogrjoin.Index(LOTS)
    rows = expected_rows(expect())
    for _ in range(2):
        assert rows_of(index.join(POINTS).read_all()) == rows
    tree = shapely.STRtree(LOTS.geometry.values._data)
    points = POINTS.geometry.values._data
    for named in ({}, {"predicate": "within"}, {"predicate": "dwithin", "distance": 1}):
        theirs = tree.query(points, **named)
        theirs = theirs[:, np.lexsort(theirs[::-1])]
        assert np.array_equal(index.query(points, **named), theirs)
    assert np.array_equal(index.query(points[3]), np.sort(tree.query(points[3])))
    ours, distance = index.query_nearest(points, return_distance=True)
    theirs, theirs_distance = tree.query_nearest(points, return_distance=True)
    order = np.lexsort(theirs[::-1])
    assert np.array_equal(ours, theirs[:, order])
    assert np.allclose(distance, theirs_distance[order], rtol=1e-14)
    with pytest.raises(ValueError, match="no predicate"):
        index.query(points, "near")


def test_metadata_of_fields_and_schemas(tmp_path):
    """Columns of both sides keep the metadata of their fields, also with aggregates. Metadata of a
    schema describe other rows and columns than those of the join."""
    frame = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]}, index=pd.Index(["a", "b"], name="key"))
    plain = pa.Table.from_pandas(frame)
    fields = [field.with_metadata({"unit": field.name}) for field in plain.schema]
    left = plain.cast(pa.schema(fields, metadata={**plain.schema.metadata, b"note": b"of left"}))
    right = left.rename_columns(["p", "q", "word"])
    names = dict(left_x="x", left_y="y", right_x="p", right_y="q")
    for more, n in ({"k": 2}, 4), ({"agg": "count, first(word)"}, 2), ({"how": "full"}, 2):
        joined = ogrjoin.join(left, right, "nearest", **more, **names)
        rows = joined.read_all()
        assert len(rows) == n and rows.schema.metadata is None
        kept = {field.name: field.metadata for field in rows.schema if field.metadata}
        units = {"x": "x", "y": "y", "key": "key", "p": "x", "q": "y", "word": "key"}
        wanted = {name: {b"unit": unit.encode()} for name, unit in units.items() if name in rows.schema.names}
        assert {name: kept.get(name) for name in wanted} == wanted
    joined.to_parquet(tmp_path / "rows.parquet")
    assert b"pandas" not in (pq.read_schema(tmp_path / "rows.parquet").metadata or {})


def test_reproject():
    away = LOTS.to_crs(4326)
    table = ogrjoin.join(POINTS, away, crs="reproject").read_all()
    near = ogrjoin.join(POINTS, away, "nearest", crs="reproject").read_all()
    assert abs(len(table) - len(expect())) < 5  # there and back, within rounding
    assert near["join_distance"].null_count == 0
    back = ogrjoin.join(POINTS, away, crs="reproject", geometry="join")
    assert back.schema.field("geometry").metadata[b"ARROW:extension:metadata"]
    none = POINTS.set_crs(None, allow_override=True)
    with pytest.raises(ogrjoin.InvalidError, match="no CRS"):
        ogrjoin.join(none, away, crs="reproject")


def test_equal_columns():
    points, lots = POINTS.assign(both="x"), LOTS.assign(both="x", name="a")
    named, all_ = POINTS["name"] == "a", POINTS["id"] >= 0
    for on, want in (("name", named), ("both", all_), ("name,both=both", named)):
        table = ogrjoin.join(points, lots, how="inner", on=on).read_all()
        frame = expect("inner")
        assert len(table) == np.isin(frame["id"], POINTS["id"][want]).sum()
    with pytest.raises(ogrjoin.InvalidError, match='no column "nothing"'):
        ogrjoin.join(points, lots, on="name=nothing")


def test_aggregates_of_batches_and_types():
    points = pa.table(POINTS.to_arrow())
    lots = pa.table(LOTS.to_arrow())
    day = pa.array(np.arange(50), pa.int32()).cast(pa.date32())
    lots = lots.append_column("day", day).append_column("half", pa.array(np.arange(50) / 2))
    batches = pa.RecordBatchReader.from_batches(points.schema, points.to_batches(99))
    agg = 'count, sum(lot), mean(half) as "a, b", max(day), concat(name, \'; \')'
    table = ogrjoin.join(batches, lots, agg=agg).read_all()
    names = ["count", "sum_lot", "a, b", "max_day", "concat_name"]
    assert table.schema.names[-5:] == names and len(table) == 1000
    frame = expect("inner").groupby("id")["lot"]
    count = frame.count().reindex(POINTS["id"], fill_value=0)
    assert table["count"].to_pylist() == list(count)
    total = frame.sum().reindex(POINTS["id"])
    assert table["sum_lot"].to_pylist() == [None if v != v else int(v) for v in total]
    assert table["max_day"].type == pa.date32()
    assert table["concat_name"].null_count == (count == 0).sum()
    one = ogrjoin.join(points, lots, how="inner", agg="count").read_all()
    assert len(one) == (count > 0).sum()
    for wrong in ("sum(name)", "sum", "total(lot)", "sum(nothing)"):
        with pytest.raises(ogrjoin.Error):
            ogrjoin.join(points, lots, agg=wrong).read_all()


def test_geometries_of_shapely():
    want = ogrjoin.join(POINTS, LOTS).read_all()["join_fid"]
    series = POINTS.geometry
    for side in (series, series.values, np.asarray(series)):
        rows = ogrjoin.join(side, LOTS, crs="ignore").read_all()
        assert rows["join_fid"].equals(want)
        assert rows.schema.names[0] == "geometry"
    rows = ogrjoin.join(POINTS, LOTS.geometry).read_all()
    assert rows["join_fid"].equals(want)


def test_empty_sides():
    points, lots = pa.table(POINTS.to_arrow()), pa.table(LOTS.to_arrow())
    for a, b in ((points[:0], lots), (points, lots[:0]), (points[:0], lots[:0])):
        for named in (
            {"agg": "count, sum(lot), concat(name), max(name)"},
            {"one_to_one": True, "bearing": True},
            {"similar": "name:0.5", "overlap": "area"},
            {"pick": "max:lot", "nearest_point": True},
        ):
            table = ogrjoin.join(a, b, **named).read_all()
            assert len(table) == len(a), named
            assert set(table.column(table.num_columns - 1).to_pylist()) <= {None, 0}


def test_columns_of_parts():
    """Slices of columns, as in the batches of a larger table."""
    points, lots = pa.table(POINTS.to_arrow()), pa.table(LOTS.to_arrow())
    points = points.set_column(1, "name", pa.array([f"lot {i % 60}" for i in range(1000)]))
    named = {"op": "dwithin", "max_distance": 3, "similar": "name:3/4"}
    whole = ogrjoin.join(points, lots, **named).read_all()
    parts = pa.Table.from_batches(points.to_batches(77))
    assert ogrjoin.join(parts, lots, **named).read_all().equals(whole)
    similar = whole["join_similarity"].drop_null().to_numpy()
    assert len(similar) > 100 and similar.min() >= 0.75 and similar.max() == 1
    first = ogrjoin.join(points[500:], lots[10:], **named).read_all()
    assert set(first["lot"].drop_null().to_pylist()) <= set(range(10, 50))


def test_small_batches():
    """The result depends neither on the batches in which left is read, nor on those in
    which the result is read."""
    table = pa.table(POINTS.to_arrow())
    for named in ({}, {"how": "inner"}, {"agg": "count, max(lot)"}, {"how": "anti"}):
        whole = ogrjoin.join(table, LOTS, **named).read_all()
        reader = table.to_reader(max_chunksize=7)
        joined = pa.RecordBatchReader.from_stream(ogrjoin.join(reader, LOTS, **named))
        batches = list(joined)
        assert max(map(len, batches)) > 7
        assert pa.Table.from_batches(batches).combine_chunks().equals(
            whole.combine_chunks()
        )


def test_made_geometry():
    for geometry, kind in (("nearest_point", 0), ("connection", 1)):
        near = ogrjoin.join(
            POINTS, LOTS, "nearest", max_distance=0.3, geometry=geometry
        ).read_all()
        frame = gpd.GeoDataFrame.from_arrow(near)
        shapes = frame.geometry
        found = near["join_fid"].is_valid().to_numpy()
        assert frame.crs == POINTS.crs and (shapely.get_type_id(shapes[found]) == kind).all()
        assert shapes[~found].isna().all() and (~found).any()
        distance = shapely.distance(shapes[found], POINTS.geometry.values[found])
        if geometry == "nearest_point":
            assert np.allclose(distance, frame.join_distance[found])
        else:
            assert np.allclose(shapes[found].length, frame.join_distance[found])
    with pytest.raises(ogrjoin.InvalidError, match="nearest_point"):
        ogrjoin.join(POINTS, LOTS, geometry="both")


def test_missing_crs_and_degrees():
    with pytest.warns(UserWarning, match="no CRS"):
        ogrjoin.join(POINTS.set_crs(None, allow_override=True), LOTS)
    left, right = (f.set_crs(4326, allow_override=True) for f in (POINTS, LOTS))
    with pytest.raises(ogrjoin.InvalidError, match="degrees"):
        ogrjoin.join(left, right, "nearest", max_distance=0.3)
    near = ogrjoin.join(left, right, "nearest", max_distance="0.3deg").read_all()
    theirs = ogrjoin.join(POINTS, LOTS, "nearest", max_distance=0.3).read_all()
    assert near["join_fid"].equals(theirs["join_fid"])
    with pytest.raises(ogrjoin.InvalidError, match="not in degrees"):
        ogrjoin.join(POINTS, LOTS, "nearest", max_distance="0.3deg")


def test_a_row_of_aggregates_without_its_geometry():
    left = [shapely.Point(1, 1), shapely.Point(9, 9)]
    options = {"op": "intersects", "agg": "count"}
    rows = ogrjoin.join(left, [shapely.box(0, 0, 2, 2)], geometry="none", **options).read_all()
    assert rows.to_pydict() == {"count": [1, 0]}
    rows = ogrjoin.join(left, [shapely.box(0, 0, 2, 2)], geometry="input", **options).read_all()
    assert rows.column_names == ["geometry", "count"]
    with pytest.raises(ogrjoin.Error, match="agg and geometry do not go together"):
        ogrjoin.join(left, [shapely.box(0, 0, 2, 2)], geometry="join", **options)


@pytest.mark.parametrize("kind", ("string", "large_string", "string_view", "dictionary"))
def test_texts_of_each_arrow_type(kind):
    texts = pa.array(["POINT(1 1)", None, "POINT(9 9)"])
    kind = pa.dictionary(pa.int32(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
    side = pa.table({"n": [0, 1, 2], "g": texts.cast(kind)})
    rows = ogrjoin.join(side, side, "nearest", left_column="g", right_column="g").read_all()
    assert rows["join_n"].to_pylist() == [0, None, 2]


@pytest.mark.parametrize("which", ("left", "right"))
def test_a_text_that_is_no_geometry_is_named_in_one_line(which):
    good = pa.table({"g": ["POINT(1 1)"]})
    bad = pa.table({"g": ["POINT(1 1)", "nowhere"]})
    sides = (bad, good) if which == "left" else (good, bad)
    with pytest.raises(ogrjoin.InvalidError, match=f"^{which} side: row 1: the column g holds no") as caught:
        ogrjoin.join(*sides, "nearest", left_column="g", right_column="g").read_all()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "left, right",
    (
        ([dt.date(2024, 1, 2)], ["2024-01-02"]),
        ([dt.date(2024, 1, 2)], [dt.datetime(2024, 1, 2)]),
        ([dt.datetime(2024, 1, 2, 8)], ["2024-01-02T10:00:00+02:00"]),
        ([dt.datetime(2024, 1, 2, 8)], [dt.datetime(2024, 1, 2, 8, tzinfo=dt.timezone.utc)]),
    ),
)
def test_on_compares_times_as_moments(left, right):
    sides = [pa.table({"x": [0.0], "y": [0.0], "t": pa.array(t)}) for t in (left, right)]
    places = {"x": "x", "y": "y", "right_x": "x", "right_y": "y"}
    for options in ({"op": "nearest", **places}, {"op": "attributes"}):
        for one, other in (sides, sides[::-1]):
            rows = ogrjoin.join(one, other, on="t", how="inner", **options).read_all()
            assert len(rows) == 1


def sparse_join_sides():
    """Returns join sides that are far from most of the shapes below: at one place, at three
    distant places, along a line whose envelope contains everything, and far from all
    shapes."""
    places = np.array([[3.0, 3.0], [50.0, 90.0], [99.0, 10.0]])
    return {
        "box": [shapely.box(20, 20, 24, 25)],
        "points": list(shapely.points(np.repeat(places, 40, 0) + rng.random((120, 2)))),
        "line": [shapely.linestrings([[0, 0], [50, 51], [100, 100]])],
        "shapes": list(shapely.buffer(shapely.points(places), 1.5))
        + [shapely.multipoints([[0, 100], [0.5, 99.5]])],
        "far": [shapely.box(200, 200, 201, 201)],
    }


@pytest.mark.parametrize("op", ["intersects", "within", "contains", "touches", "disjoint"])
@pytest.mark.parametrize("name", ["box", "points", "line", "shapes", "far"])
@pytest.mark.parametrize("threads", [1, 2])
def test_shapes_most_of_which_are_out_of_reach(op, name, threads):
    at = rng.random((600, 2)) * 100
    at[:5], at[5:9] = [3.0, 3.0], [[20, 22], [24, 25], [22, 22], [18, 20]]
    shapes = shapely.box(at[:, 0], at[:, 1], at[:, 0] + 2, at[:, 1] + 2)
    shapes[::7] = shapely.linestrings(np.stack([at, at + [1.5, -2]], 1))[::7]
    shapes[::11] = [
        shapely.multipolygons([s, shapely.box(p[0], p[1], p[0] + 1, p[1] + 1)])
        for s, p in zip(shapely.buffer(shapely.points(at[::11]), 0.3), rng.random((55, 2)) * 100)
    ]
    shapes[::13] = None
    right = sparse_join_sides()[name]
    left = pa.table({"id": np.arange(600), "geometry": shapely.to_wkb(shapes)})
    options = {"threads": threads, "left_column": "geometry", "left_select": "id,geometry"}
    relate = getattr(shapely, op)
    wanted = [np.flatnonzero(relate(shape, right)).tolist() for shape in shapes]
    matched = [i for i in range(600) if wanted[i]]
    assert op in ("disjoint", "touches") or name == "far" or len(matched) < 200
    for how in ("left", "inner"):
        found = ogrjoin.join(left, right, op, how=how, **options).read_all()
        pairs = [(i, j) for i in range(600) for j in wanted[i] or ([None] if how == "left" else [])]
        assert rows_of(found) == pairs
        assert found["geometry"].to_pylist() == [
            left["geometry"][i].as_py() for i, _ in pairs
        ]
    for how, has in (("semi", True), ("anti", False)):
        found = ogrjoin.join(left, right, op, how=how, **options).read_all()
        assert found["id"].to_pylist() == [i for i in range(600) if bool(wanted[i]) == has]
    counted = ogrjoin.join(left, right, op, agg="count as n", **options).read_all()
    assert counted["n"].to_pylist() == [len(found) for found in wanted]


def test_envelopes_and_values_of_shapes_out_of_reach():
    """A join of envelopes has pairs even where no part of the other feature is. Values of a
    shape without pairs, such as its covered percentage, are 0 although the shape is out of
    reach of the join side."""
    at = np.arange(200) * 10.0
    shapes = shapely.box(at, 0, at + 1, 1)
    left = pa.table({"id": np.arange(200), "geometry": shapely.to_wkb(shapes)})
    ends = [shapely.multipoints([[0, 0], [2000, 1]])]
    found = ogrjoin.join(left, ends, "bbox", how="inner", left_column="geometry").read_all()
    assert found["id"].to_pylist() == list(range(200))
    lots = [shapely.box(0, 0, 0.5, 1)]
    found = ogrjoin.join(
        left, lots, agg="covered_percent as p, covered_area as a", left_column="geometry"
    ).read_all()
    assert found["p"].to_pylist()[:2] == [50.0, 0.0]
    assert set(found["p"].to_pylist()[1:]) == {0.0} == set(found["a"].to_pylist()[1:])


@pytest.mark.parametrize("name", ["along_field", "side_field", "matrix_field", "relation_field", "name_count"])
def test_empty_names_are_refused(name):
    with pytest.raises(ogrjoin.InvalidError, match=f"^{name} is empty: write a name"):
        ogrjoin.join(POINTS, LOTS, "nearest", **{name: ""})
    assert "join_fid" not in ogrjoin.join(POINTS, LOTS, "nearest", name_fid="").schema.names


def test_on_has_one_meaning():
    """join() takes names of columns, pairs() the values of both sides."""
    for on in (("a", "b"), ("a=b",)):
        with pytest.raises(ogrjoin.InvalidError, match=r"on is a tuple.* pairs\(\).*LEFT=RIGHT"):
            ogrjoin.join(POINTS, LOTS, on=on)
    for on in ("a", "a=b", ["a=b"], ["a=b", "c"], ("a", "b"), ["a", "b", "c"]):
        with pytest.raises(ogrjoin.InvalidError, match=r"left values, right values.*join\(on="):
            ogrjoin.pairs(POINTS, LOTS, on=on)


def test_on_of_unsigned_integers():
    """Integers from 2^63 on, as cell ids of S2 are, are not compared as doubles."""
    cells = [2**63, 2**63 + 1, 2**64 - 1, 7, None]
    others = {
        "uint64": pa.array([2**63 + 1, 2**64 - 2, 7, 2**63], pa.uint64()),
        "double": pa.array([2.0**63, 2.0**64, 7.0, 0.5]),
        "int64": pa.array([-(2**63), -1, 7, 2**63 - 1]),
        "string": pa.array(["9223372036854775809", "18446744073709551615", "7", ""]),
    }
    expected = {
        "uint64": [(0, 3), (1, 0), (3, 2)],
        "double": [(0, 0), (3, 2)],
        "int64": [(3, 2)],
        "string": [(1, 0), (2, 1), (3, 2)],
    }
    left = pa.table({"row": range(5), "cell": pa.array(cells, pa.uint64())})
    for name, column in others.items():
        right = pa.table({"cell": column})
        rows = ogrjoin.join(left, right, "attributes", on="cell", how="inner").read_all()
        pairs = list(zip(rows["row"].to_pylist(), rows["join_fid"].to_pylist()))
        assert pairs == expected[name], name


@pytest.mark.parametrize("kind", ["binary", "large_binary", "binary_view", "fixed", "codes"])
def test_on_of_binary_values(kind):
    """Bytes, as of UUIDs, are compared; a type that cannot be compared is an error."""
    def column(values):
        if kind == "codes":
            return pa.array(values, pa.binary()).dictionary_encode()
        of = {"fixed": pa.binary(2)}
        return pa.array(values, of[kind] if kind in of else getattr(pa, kind)())

    left = pa.table({"row": range(5), "key": column([b"\x00\xff", b"ab", None, b"zz", b"ba"])})
    right = pa.table({"key": column([b"..", b"ab", None, b"\x00\xff", b"ba"])}).slice(1)
    rows = ogrjoin.join(left, right, "attributes", on="key", how="inner").read_all()
    assert rows["row"].to_pylist() == [0, 1, 4] and rows["join_fid"].to_pylist() == [2, 0, 3]
    places = np.zeros(5), np.zeros(5)
    pairs = ogrjoin.pairs(places, (places[0][1:], places[1][1:]), on=(
        left["key"].combine_chunks(), right["key"].combine_chunks()
    ))  # fmt: skip
    assert list(zip(pairs.left, pairs.right)) == [(0, 2), (1, 0), (4, 3)]
    for other in (pa.array([1] * 5, pa.duration("s")), pa.array([[1]] * 5), pa.array([{"a": 1}] * 5)):
        table = pa.table({"key": other, "n": range(5)})
        for a, b, side in ((table, left, "left"), (left, table, "right")):
            for words in ({"on": "key"}, {"on": "n=row" if a is table else "row=n", "exclude": "field=key"}):
                with pytest.raises(ogrjoin.UnsupportedError, match=f'"key" of the {side} side'):
                    ogrjoin.join(a, b, "attributes", **words)
        with pytest.raises(ogrjoin.UnsupportedError, match="on: (durations|values in the Arrow format)"):
            ogrjoin.pairs(places, places, on=(other, other))


def test_csv_has_the_types_of_the_command(tmp_path):
    """join() detects the types of CSV, the command with -oo AUTODETECT_TYPE=YES."""
    path = str(tmp_path / "t.csv")
    with open(path, "w") as file:
        file.write("id,WKT,day,ok,n,f,mix\n")
        file.write('1,"POINT (1 1)",2026-01-02,true,5000000000,1.5,1\n2,"POINT (3 3)",2026-01-03,false,7,3,x\n')
    schema = ogrjoin.scan(path).schema
    kinds = [str(schema.field(name).type) for name in ("id", "day", "ok", "n", "f", "mix")]
    assert kinds == ["int32", "date32[day]", "bool", "int64", "double", "string"]
    if COMMAND is None:
        pytest.skip("no command (OGRJOIN_COMMAND)")
    out = str(tmp_path / "out.fgb")
    subprocess.run([COMMAND, "-q", "-oo", "AUTODETECT_TYPE=YES", out, path, path], check=True)
    pyogrio = pytest.importorskip("pyogrio")
    made = pyogrio.read_arrow(out)[1].schema
    assert [str(made.field(name).type).replace("timestamp", "") for name in ("id", "ok", "n", "f", "mix")] == [
        k for k in kinds if not k.startswith("date")]  # fmt: skip


@pytest.mark.parametrize("word_map", [0, 1, True, 1.5, [("a", "b")]])
def test_word_map_is_no_file_descriptor(word_map):
    """A number was opened as a descriptor and closed: 1 closed the standard output."""
    table = pa.table({"geometry": pa.array(shapely.to_wkb(shapely.points([[0, 0]]))), "a": ["b"]})
    for call in (
        lambda: ogrjoin.pairs(["a"], ["b"], "similar", min_similarity=0.5, word_map=word_map),
        lambda: ogrjoin.join(table, table, "similar", similar="a:0.5", word_map=word_map),
    ):
        with pytest.raises(ogrjoin.InvalidError, match="word_map must be a dict or the name of a"):
            call()
    os.fstat(0)
    os.fstat(1)


@pytest.mark.parametrize("name", ["along", "similar"])
def test_numbers_for_words(name):
    table = pa.table({"geometry": pa.array(shapely.to_wkb(shapely.points([[0, 0]]))), "a": ["b"]})
    for call in (ogrjoin.pairs, ogrjoin.join):
        with pytest.raises(ogrjoin.InvalidError, match=f"{name} must be a text, not the number 1.5"):
            call(table, table, "nearest", **{name: 1.5})


def test_texts_with_a_zero_byte():
    """They were cut there, so the column was called "a"."""
    for setting in ("name_count", "on", "agg", "left_select"):
        with pytest.raises(ogrjoin.InvalidError, match=f"setting {setting} has a zero byte"):
            ogrjoin.join(POINTS, LOTS, "within", **{setting: "name\0b"})


@pytest.mark.parametrize("geometry", ["join", "connection", "intersection"])
def test_geometry_of_a_side_without_geometries(geometry):
    table = pa.table({"name": ["lot 1"]})
    for sides, which in (((table, LOTS), "left"), ((LOTS, table), "right")):
        words = f"geometry={geometry} needs geometries of both sides, but the {which} side has none"
        with pytest.raises(ogrjoin.InvalidError, match=words) as raised:
            ogrjoin.join(*sides, "attributes", on="name", geometry=geometry).read_all()
        assert f"name its column with {which}_column" in str(raised.value)


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks")
        + ("uordblks", "fordblks", "keepcost")
    ]


def bytes_of_rows(which):
    """Returns the bytes of memory that a join holds before its first rows are read and no
    longer after it is gone. Allocation number `which` of Python in between fails."""
    testing = pytest.importorskip("_testcapi")
    try:
        info = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        pytest.skip("the C library does not count its memory")
    info.restype = _Mallinfo
    side = pa.table({"x": [0.0], "y": [0.0], **{f"{i}" + "x" * 1000: [0.0] for i in range(100)}})
    joined = ogrjoin.join(side, side, x="x", y="y", right_x="x", right_y="y")
    rows, joined._next = joined._next[0], None
    before = info().uordblks + info().hblkhd
    testing.set_nomemory(which, which + 1)
    try:
        found = ogrjoin._core.next_rows(rows)
    except MemoryError:
        found = MemoryError
    finally:
        testing.remove_mem_hooks()
    has_failed, found = found is MemoryError, None
    del rows, joined
    after = info().uordblks + info().hblkhd
    return before - after, has_failed


def test_rows_without_memory_for_their_capsules():
    """The schema, some 200 KB here, is released if its capsule cannot be made."""
    all_bytes = max(bytes_of_rows(1000)[0] for _ in range(3))
    for which in (0, 1):
        freed = [bytes_of_rows(which) for _ in range(3)]
        assert all(has_failed for _, has_failed in freed)
        assert max(n for n, _ in freed) > all_bytes - 100_000
