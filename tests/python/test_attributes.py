"""Texts and vectors as columns.  join() gives the rows of the command, bit for bit,
from every kind of column.  Unsuitable columns are an error."""

import json
import os
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pyogrio = pytest.importorskip("pyogrio")
gpd = pytest.importorskip("geopandas")
import pandas as pd
from test_command import assert_rows

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")
needs_command = pytest.mark.skipif(not COMMAND, reason="no command (OGRJOIN_COMMAND)")
WORDS = ["Café", "bar", "Elm", "street", "st", "Müller", "grill", "12", "No. 7", "x"]


def frame(n, seed):
    rng = np.random.default_rng(seed)
    names = [" ".join(rng.choice(WORDS, rng.integers(0, 5))) for _ in range(n)]
    price = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 9, n) / 4)
    lists = [[] if v < 0 else list(rng.integers(0, 5, 3) / 2) for v in rng.random(n) - 0.1]
    return gpd.GeoDataFrame(
        {
            "name": [None if rng.random() < 0.1 else name for name in names],
            "town": rng.choice(WORDS[:4], n),
            "number": rng.integers(0, 4, n),
            "price": price,
            "area": rng.integers(0, 9, n) * 0.5,
            "text": [json.dumps(v) if v else None for v in lists],
            "list": [v or None for v in lists],
        },
        geometry=gpd.points_from_xy(*rng.integers(0, 30, (2, n))),
        crs=2263,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Writes two sides to files. Also returns tables of what GDAL for Python reads from
    them."""
    folder = tmp_path_factory.mktemp("sides")
    made = {}
    for side, n in (("a", 300), ("b", 200)):
        rows = frame(n, n)
        rows.drop(columns="list").to_file(folder / f"{side}.gpkg")
        rows.drop(columns=["text", "geometry", "list"]).to_csv(
            folder / f"{side}.csv", index=False
        )
        rows.to_crs(4326).to_file(folder / f"{side}.geojson")
    for path in folder.iterdir():
        told, table = pyogrio.read_arrow(path, return_fids=True)
        table = table.rename_columns(["fid", *table.schema.names[1:]])
        i = table.schema.get_field_index(told["geometry_name"] or "wkb_geometry")
        if i >= 0:
            field = table.schema.field(i).with_name("geometry")
            field = field.with_metadata({b"ARROW:extension:name": b"geoarrow.wkb"})
            table = table.set_column(i, field, table.column(i))
        made[path.name] = path, table
    return made


def check(tmp_path, files, op, options, kind="gpkg", columns=None):
    (left, a), (right, b) = files[f"a.{kind}"], files[f"b.{kind}"]
    out = tmp_path / "out.gpkg"
    words = [COMMAND, "-q", "-unsetFid", "-op", op]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"-{name}"] + ([] if one is True else [str(one)])
    subprocess.run([*words, out, left, right], check=True)
    theirs = pyogrio.read_arrow(out)[1]
    ours = ogrjoin.join(a, b, op, fid="fid", **options).read_all()
    if columns is not None:
        ours, theirs = ours.select(columns), theirs.select(columns)
    assert_rows(ours, theirs)
    return ours


@needs_command
@pytest.mark.parametrize(
    "op, options",
    [
        ("similar", {"similar": "name:0.6"}),
        ("similar", {"similar": "name:3/4", "how": "inner"}),
        ("similar", {"similar": "name", "k": 3}),
        ("similar", {"similar": "name+town=town+name:0.7", "ties": "all", "k": 1}),
        ("similar", {"similar": ["name:0.5", "town:0.9"], "how": "full"}),
        ("similar", {"similar": "name:0.5", "tokens": "words", "measure": "overlap"}),
        ("similar", {"similar": "name:0.4", "fold": "none", "one_to_one": True}),
        ("similar", {"similar": "name:0.5", "max_distance": 8}),
        ("similar", {"similar": "number+name:0.8"}),
        ("dwithin", {"similar": "name:0.5", "max_distance": 5}),
        ("dwithin", {"similar": "name:0.2", "max_distance": 9, "one_to_one": True}),
        ("dwithin", {"similar": "name:0.2", "max_distance": 9, "pick": "most_similar"}),
        ("nearest", {"similar": "name:0.5", "k": 2}),
        ("similar", {"vector": "price+area", "max_difference": 0.5}),
        ("similar", {"vector": "price:0.25+area:3", "max_difference": 1.5, "norm": "l1"}),
        ("similar", {"vector": "price+area+number", "k": 3, "norm": "linf"}),
        ("similar", {"vector": "price+area=area+price", "k": 2, "norm": "cosine"}),
        ("similar", {"vector": "price", "max_difference": 0, "one_to_one": True}),
        ("similar", {"vector": "text", "max_difference": 0.5}),
        ("similar", {"vector": "text:2", "k": 2, "ties": "all"}),
        ("similar", {"vector": "price", "max_difference": 0.5, "similar": "name:0.5"}),
        ("similar", {"vector": "price", "max_difference": 1, "similar": "name:0.3",
                     "one_to_one": True}),
        ("dwithin", {"vector": "price+area", "max_difference": 1, "max_distance": 6}),
        ("dwithin", {"vector": "area", "max_difference": 1, "max_distance": 9,
                     "one_to_one": True}),
        ("dwithin", {"vector": "area", "max_difference": 2, "max_distance": 9,
                     "pick": "most_similar"}),
        ("nearest", {"vector": "text", "max_difference": 1, "k": 3}),
    ],
)
def test_the_commands_rows(tmp_path, files, op, options):
    assert len(check(tmp_path, files, op, options)) > 100


@needs_command
@pytest.mark.parametrize(
    "options",
    [
        {"similar": "name:0.6"},
        {"similar": "name+number:0.7", "k": 2},
        {"similar": '"name":0.5', "how": "full"},
        {"vector": "price+area", "max_difference": 1},
        {"vector": "number:0.5+price", "k": 2},
    ],
)
def test_layers_without_geometry(tmp_path, files, options):
    """Layers without geometry: CSV files, in which all columns are texts."""
    check(tmp_path, files, "similar", options, "csv")


@needs_command
def test_lists(tmp_path, files):
    """Lists of GeoJSON, which GDAL reads as lists; a GeoPackage stores them as texts."""
    options = {"vector": "text", "max_difference": 0.5, "how": "inner"}
    decided = ["name", "join_fid", "join_difference"]
    ours = check(tmp_path, files, "similar", options, "geojson", decided)
    assert len(ours) > 100
    for kind in (
        pa.list_(pa.float32()),
        pa.large_list(pa.float64()),
        pa.list_(pa.float64(), 3),
    ):
        a, b = (
            t.set_column(t.schema.get_field_index("text"), "text", t["text"].cast(kind))
            for t in (files["a.geojson"][1], files["b.geojson"][1])
        )
        for left in (a, pa.concat_tables([a[:100], a[100:101], a[101:]])):
            again = ogrjoin.join(left, b, "similar", fid="fid", **options).read_all()
            assert again.select(decided).equals(ours.select(decided)), kind


def test_every_kind_of_text():
    a, b = (pa.table(frame(n, n).drop(columns="geometry")) for n in (90, 80))
    want = ogrjoin.join(a, b, "similar", similar="name:0.5").read_all()
    assert want["join_fid"].null_count < len(want)
    for kind in (
        pa.string_view(),
        pa.large_string(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.uint16(), pa.large_string()),
    ):
        i = a.schema.get_field_index("name")
        column = a["name"].combine_chunks()
        column = (
            column.dictionary_encode().cast(kind)
            if pa.types.is_dictionary(kind)
            else column.cast(kind)
        )
        sides = [a.set_column(i, "name", column)]
        sides.append(pa.concat_tables([sides[0][:7], sides[0][7:]]))
        for side in sides:
            got = ogrjoin.join(side, b, "similar", similar="name:0.5").read_all()
            for name in ("join_fid", "join_similarity", "join_name"):
                assert got[name].equals(want[name]), kind
    whole = [pa.array([7, None, 2**63], pa.uint64()), pa.array([-7, 12], pa.int8())]
    left, right = (pa.table({"n": column}) for column in whole)
    pairs = ogrjoin.pairs(left, right, "similar", similar="n:1")
    assert pairs.left.tolist() == [0] and pairs.right.tolist() == [0]


@pytest.mark.parametrize(
    "words",
    [
        {"similar": "name+town:0.5"},
        {"vector": "list", "max_difference": 1},
        {"vector": "price+area", "k": 2},
    ],
)
def test_every_kind_of_side(words):
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    sides = [pa.table(frame(n, n).drop(columns="geometry")) for n in (90, 80)]

    def found(made):
        rows = ogrjoin.join(*map(made, sides), "similar", how="inner", **words)
        return rows.read_all()["join_fid"].to_pylist()

    want = found(lambda side: side)
    assert len(want) > 100
    category = {"town": polars.Categorical}
    for made in (
        polars.from_arrow,
        lambda side: polars.from_arrow(side).cast(category),
        lambda side: duckdb.connect().from_arrow(side),
        lambda side: side.to_pandas().astype({"town": "category"}),
    ):
        assert found(made) == want


def test_pairs_index_and_validate():
    a, b = frame(200, 1), frame(150, 2)
    for words in ({"similar": "name:0.4"}, {"vector": "price+area", "max_difference": 1}):
        pairs = ogrjoin.pairs(a, b, "dwithin", max_distance=9, **words)
        assert len(pairs) > 0
        index = ogrjoin.Index(b, **{k: words[k] for k in words if k != "max_difference"})
        again = index.pairs(pa.table(a.to_arrow()), "dwithin", max_distance=9, **words)
        assert np.array_equal(pairs.right, again.right)
        rows = index.join(a, "dwithin", max_distance=9, how="inner", **words).read_all()
        assert rows["join_fid"].to_pylist() == pairs.right.tolist()
        for op in ("dwithin", "similar"):
            near = {"max_distance": 9} if op == "dwithin" else {}
            report = ogrjoin.validate(a, b, op, **near, **words)
            assert report.n_differences == 0 and report.n_pairs > 0
    named = ogrjoin.pairs(a, b, "similar", similar="name:0.4")
    texts = [list(side["name"]) for side in (a, b)]
    for left, right in ((a, b), (a.geometry, b.geometry), (list(a.geometry), b)):
        given = {"similar": "0.4", "texts": [[t] for t in texts]}
        plain = ogrjoin.pairs(left, right, "similar", **given)
        assert np.array_equal(named.right, plain.right)
        assert np.array_equal(named.values["similarity"], plain.values["similarity"])
    done = []
    ogrjoin.pairs(a, b, "similar", similar="name", k=1, progress=lambda *n: done.append(n))
    assert done == [(200, 200)]


def test_vectors_as_sides():
    rng = np.random.default_rng(6)
    a, b = rng.random((200, 5)), rng.random((150, 5))
    difference = np.linalg.norm(a[:, None] - b, axis=2)
    want = np.argsort(difference, axis=1, kind="stable")[:, :3]
    kinds = [np.asarray, list, lambda v: v.tolist(), lambda v: gpd.pd.Series(list(v))]
    kinds += [lambda v: pa.array(list(v)), lambda v: v[:, ::-1][:, ::-1]]
    for left in kinds:
        for right in kinds:
            pairs = ogrjoin.pairs(left(a), right(b), "similar", k=3)
            assert np.array_equal(pairs.right.reshape(-1, 3), want)
    made = pairs.values["difference"].reshape(-1, 3)
    assert np.allclose(made, np.take_along_axis(difference, want, 1), 1e-12)
    table = [pa.table({"v": list(side)}) for side in (a, b)]
    for words in ({"max_difference": 0.5}, {"k": 2, "norm": "cosine"}):
        pairs = ogrjoin.Index(b, op="similar").pairs(a, "similar", **words)
        again = ogrjoin.pairs(*table, "similar", vector="v", **words)
        assert np.array_equal(pairs.right, again.right) and len(pairs) > 50
        assert ogrjoin.validate(a, b, "similar", **words).n_differences == 0
    none = ogrjoin.pairs([[1.0, 2.0], None], np.zeros((3, 2)), "similar", k=1)
    assert none.left.tolist() == [0] and none.right.tolist() == [0]
    assert none.backend == "cpu"
    for left, right in ((a[:0], b), (a, b[:0]), ([], []), ([None], [None])):
        assert len(ogrjoin.pairs(left, right, "similar", k=1)) == 0
    with pytest.raises(ogrjoin.InvalidError, match="numbers, those of right"):
        ogrjoin.pairs(a, b[:, :4], "similar", k=1)
    with pytest.raises(ogrjoin.InvalidError, match="a column of texts for each condition"):
        ogrjoin.pairs(a, ["x"], "similar", k=1)


def test_texts_as_sides_and_min_similarity():
    a, b = frame(200, 7)["name"], frame(150, 8)["name"]
    table = [pa.table({"name": side}) for side in (a, b)]
    want = ogrjoin.pairs(*table, "similar", similar="name:0.4")
    assert len(want) > 100
    kinds = [lambda v: v, list, lambda v: pa.array(v, from_pandas=True)]
    kinds += [lambda v: v.fillna("").to_numpy("U"), lambda v: v.astype("category")]
    for kind in kinds:
        pairs = ogrjoin.pairs(kind(a), kind(b), "similar", min_similarity=0.4)
        assert np.array_equal(pairs.left, want.left)
        assert np.array_equal(pairs.right, want.right)
        assert np.array_equal(pairs.values["similarity"], want.values["similarity"])
    for words, limit in (("name", 0.4), ("name", "2/5"), ("name:0.4", 0.9)):
        pairs = ogrjoin.pairs(*table, "similar", similar=words, min_similarity=limit)
        assert np.array_equal(pairs.right, want.right)
    report = ogrjoin.validate(list(a), list(b), "similar", min_similarity=0.4)
    assert (report.n_differences, report.n_pairs) == (0, len(want))
    for limit in (2 / 3, 0, 1.01, np.nan, "x", "3/2"):
        with pytest.raises(ogrjoin.InvalidError, match="above 0 and at most 1"):
            ogrjoin.pairs(a, b, "similar", min_similarity=limit)


@needs_command
def test_min_similarity_of_the_command(tmp_path, files):
    options = {"similar": ["name", "town:0.5"], "min_similarity": "0.6"}
    assert len(check(tmp_path, files, "similar", options)) > 100


@pytest.mark.parametrize("backend", ogrjoin.backends())
def test_backends(backend):
    """Each backend answers like auto, or gives an error that says why it cannot."""
    a, b = (frame(n, n)[["name", "price", "area", "geometry"]] for n in (60, 50))
    answered = 0
    for op, options in (
        ("nearest", {"max_distance": 9}),
        ("within", {}),
        ("similar", {"similar": "name:0.4"}),
        ("similar", {"vector": "price+area", "max_difference": 1}),
        ("nearest", {"max_distance": 9, "distance": "hausdorff_points"}),
        ("nearest", {"max_distance": 9, "metric": "sphere", "crs": "ignore"}),
    ):
        want = ogrjoin.pairs(a, b, op, **options)
        try:
            got = ogrjoin.pairs(a, b, op, backend=backend, **options)
        except ogrjoin.Error as error:
            assert backend not in ("auto", "cpu") and str(error)
            continue
        answered += 1
        assert np.array_equal(got.left, want.left), op
        assert np.array_equal(got.right, want.right), op
    # the backend ellipsoid only supports metric ellipsoid, which needs a CRS
    assert answered or "cuda" in backend or backend == "ellipsoid"
    with pytest.raises(ogrjoin.InvalidError, match="cpu, cuda"):
        ogrjoin.pairs(a, b, backend="abacus")


def test_empty_sides():
    a = pa.table(frame(20, 3).drop(columns="geometry"))
    for words in ({"similar": "name:0.5"}, {"vector": "list", "max_difference": 1}):
        for left, right in ((a[:0], a), (a, a[:0]), (a[:0], a[:0])):
            rows = ogrjoin.join(left, right, "similar", **words).read_all()
            assert len(rows) == len(left) and rows["join_fid"].null_count == len(left)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"similar": "nam:0.5"}, ogrjoin.InvalidError, 'no column "nam"'),
        ({"similar": "name"}, ogrjoin.InvalidError, "similar needs a threshold"),
        ({"similar": "name:2"}, ogrjoin.InvalidError, "above 0 and at most 1"),
        ({"similar": "price:0.5"}, ogrjoin.UnsupportedError, "no texts"),
        ({"similar": "list:0.5"}, ogrjoin.UnsupportedError, "no texts"),
        ({"vector": "price"}, ogrjoin.InvalidError, "vector needs a maximum difference"),
        ({"vector": "price+list", "k": 1}, ogrjoin.UnsupportedError, "no numbers"),
        ({"vector": "price=p", "k": 1}, ogrjoin.InvalidError, 'no column "p"'),
        ({"vector": "a:x", "k": 1}, ogrjoin.InvalidError, "vector takes"),
        ({"similar": "name:0.5", "max_distance": 3}, ogrjoin.InvalidError, "geometries"),
        ({}, ogrjoin.InvalidError, "texts or vectors"),
    ],
)
def test_what_does_not_fit(options, error, text):
    a = pa.table(frame(20, 4).drop(columns="geometry"))
    with pytest.raises(error, match=text):
        ogrjoin.join(a, a, "similar", **options).read_all()


def test_other_columns_of_texts():
    a = frame(20, 5)
    with pytest.raises(ogrjoin.InvalidError, match="it has 0, not 1"):
        ogrjoin.Index(a).pairs(a, "dwithin", max_distance=3, similar="name:0.5")
    with pytest.raises(ogrjoin.InvalidError, match="needs numbers in both layers"):
        ogrjoin.Index(a).pairs(a, "similar", vector="price", k=1)


def columns_of_nulls():
    """Yields columns without any value, whose Arrow type is null or of nulls."""
    yield pa.nulls(3)
    yield pa.array(pd.Series([None] * 3, dtype=object), from_pandas=True)
    yield pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int32()), pa.nulls(0))


@pytest.mark.parametrize("sides", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("nulls", list(columns_of_nulls()), ids=lambda nulls: str(nulls.type)[:10])
def test_columns_without_any_value_match_nothing(nulls, sides):
    times = pa.array([1, 2, 3], pa.timestamp("us"))
    whole = pa.table({
        "name": ["a", "b", "c"], "other": ["d"] * 3, "t": times, "n": [1, 2, 3],
        "v": [[1.0, 2.0]] * 3, "x": [0.0] * 3, "y": [0.0] * 3,
    })  # fmt: skip

    def joined(op, column, how="inner", **words):
        i = whole.schema.get_field_index(column)
        a, b = (whole.set_column(i, column, nulls) if is_null else whole for is_null in sides)
        if op == "dwithin":
            words = {"x": "x", "y": "y", "right_x": "x", "right_y": "y", "max_distance": 1, **words}
        return ogrjoin.join(a, b, op, how=how, **words).read_all()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for op, column, words in (
            ("similar", "name", {"similar": "name:0.1"}),
            ("similar", "v", {"vector": "v", "max_difference": 9}),
            ("similar", "n", {"vector": "n+x", "max_difference": 9}),
            ("similar", "n", {"vector": "n+x", "k": 1}),
            ("dwithin", "name", {"similar": "name:0.1"}),
            ("dwithin", "v", {"vector": "v", "max_difference": 9}),
            ("dwithin", "t", {"within_time": "t:1h"}),
            ("dwithin", "n", {"within_time": "n:5"}),
            ("dwithin", "t", {"during": "t=t"}),
            ("dwithin", "x", {}),
            ("attributes", "name", {"on": "name"}),
        ):
            assert joined(op, column, **words).num_rows == 0, (op, words)
            assert joined(op, column, how="anti", **words).num_rows == 3, (op, words)
        # If one field of a text is NULL, its other field remains. NULL is an open end of a
        # span, no score and no weight.
        assert joined("similar", "name", similar="other+name:0.4").num_rows == 9
        assert joined("dwithin", "t", during="t..t=t..t").num_rows >= 9 * (sides == (True, True))
        assert joined("dwithin", "n", pick="max:n").num_rows == 3
        agg = joined("dwithin", "n", agg="count(n), sum(n), weighted_mean(x, n) as w")
        if sides[1]:
            assert agg["count_n"].to_pylist() == [0, 0, 0]
            assert agg["sum_n"].null_count == agg["w"].null_count == 3
        far = joined("dwithin", "n", max_distance_field="n", max_distance=None)
        assert far.num_rows == (0 if sides[0] else 9)
