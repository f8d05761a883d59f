"""pairs() and join() give the rows of the command, bit for bit."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pyogrio = pytest.importorskip("pyogrio")
gpd = pytest.importorskip("geopandas")
import shapely

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")
DATA = os.path.join(os.environ.get("OGRJOIN_TEST_DATA", ""), "nyc_small.gpkg")
pytestmark = pytest.mark.skipif(
    not (COMMAND and os.path.exists(DATA)),
    reason="no command (OGRJOIN_COMMAND) or no data (OGRJOIN_TEST_DATA)",
)

# op, left, right, options of the command and of the package
JOINS = [
    ("nearest", "pickups", "roads", {}),
    ("nearest", "pickups", "taxi_zones", {"k": 3, "max_distance": 2000}),
    ("nearest", "buildings", "roads", {"ties": "all", "max_distance": 50}),
    ("dwithin", "pickups", "buildings", {"max_distance": 60}),
    ("intersects", "pickups", "tracts", {}),
    ("intersects", "roads", "tracts", {}),
    ("within", "pickups", "taxi_zones", {}),
    ("within", "buildings", "tracts", {}),
    ("contains", "taxi_zones", "pickups", {}),
    ("contains", "tracts", "roads", {}),
    ("covers", "taxi_zones", "buildings", {}),
    ("coveredby", "buildings", "taxi_zones", {}),
    ("contains_properly", "taxi_zones", "tracts", {}),
    ("touches", "tracts", "tracts", {}),
    ("crosses", "roads", "taxi_zones", {}),
    ("overlaps", "tracts", "taxi_zones", {}),
    ("equals", "tracts", "tracts", {}),
    ("disjoint", "taxi_zones", "tracts", {}),
    ("relate", "tracts", "taxi_zones", {"relate": "T*F**F***"}),
    ("bbox", "buildings", "roads", {}),
]


def read(layer):
    told, table = pyogrio.read_arrow(DATA, layer=layer, return_fids=True)
    name = told["geometry_name"] or "wkb_geometry"
    i = table.schema.get_field_index(name)
    field = table.schema.field(i).with_name("geometry")
    field = field.with_metadata({b"ARROW:extension:name": b"geoarrow.wkb"})
    return table.set_column(i, field, table.column(i))


@pytest.fixture(scope="module")
def layers():
    return {name: read(name) for name in {n for join in JOINS for n in join[1:3]}}


def run_command(tmp_path, op, left, right, options):
    out = tmp_path / "out.gpkg"
    words = [COMMAND, "-q", "-op", op, "-input_layer", left, "-join_layer", right]
    for name, value in options.items():
        words += [f"-{name}"] + ([] if value is True else [str(value)])
    subprocess.run([*words, "-unsetFid", "-overwrite", out, DATA, DATA], check=True)
    return pyogrio.read_arrow(out)[1]


def columns_of(table):
    """Returns the values of all columns but the geometry. Floats are returned as their
    bits."""
    columns = {}
    for name in table.schema.names:
        column = table.column(name)
        if name in ("fid", "geometry", "geom", "wkb_geometry"):
            continue
        if pa.types.is_floating(column.type):
            bits = np.asarray(column.to_numpy(zero_copy_only=False)).view(np.int64)
            columns[name] = [
                None if v is None else int(b) for v, b in zip(column.to_pylist(), bits)
            ]
        else:
            columns[name] = column.to_pylist()
    return columns


def assert_rows(ours, theirs):
    ours, theirs = columns_of(ours), columns_of(theirs)
    assert list(ours) == list(theirs)
    for name in theirs:
        assert ours[name] == theirs[name], name


def named(options, left, right):
    """Adds exclude_self if both sides are one layer, as the command does. Returns the
    new options."""
    return {**options, **({"exclude_self": 1} if left == right else {})}


@pytest.mark.parametrize("op, left, right, options", JOINS)
def test_every_op(tmp_path, layers, op, left, right, options):
    theirs = run_command(tmp_path, op, left, right, options)
    given = named(options, left, right)
    a, b = layers[left], layers[right]
    ours = ogrjoin.join(a, b, op, fid="fid", **given).read_all()
    assert_rows(ours, theirs)
    matched = ours.filter(pa.compute.is_valid(ours["join_fid"]))
    ids = a["fid"].to_numpy(), b["fid"].to_numpy()
    pairs = ogrjoin.pairs(a, b, op, id=ids, **given)
    assert np.array_equal(ids[0][pairs.left], matched["fid"].to_numpy())
    assert np.array_equal(ids[1][pairs.right], matched["join_fid"].to_numpy())
    if pairs.distance is not None:
        distance = matched["join_distance"].to_numpy()
        assert np.array_equal(pairs.distance.view("q"), distance.view("q"))
    decided = [c for c in ours.schema.names if c == "fid" or c.startswith("join_f")]
    decided += [c for c in ("join_distance", "join_rank") if c in ours.schema.names]
    for side in sides_of(a):
        again = pa.table(ogrjoin.join(side, b, op, fid="fid", **given))
        assert again.select(decided).cast(ours.select(decided).schema).equals(
            ours.select(decided)
        ), type(side)


def sides_of(table):
    yield gpd.GeoDataFrame.from_arrow(table)
    try:
        import polars
    except ImportError:
        pass
    else:
        yield polars.from_arrow(table)
    try:
        import duckdb
    except ImportError:
        pass
    else:
        yield duckdb.connect().from_arrow(table)
    try:
        import sedonadb
    except ImportError:
        return
    yield sedonadb.connect().create_data_frame(table)


@pytest.mark.parametrize(
    "op, left, right, options",
    [
        ("intersects", "tracts", "taxi_zones", {"overlap": "area,percent"}),
        ("intersects", "roads", "tracts", {"overlap": "length"}),
        ("intersects", "tracts", "taxi_zones", {"pick": "largest_overlap"}),
        ("intersects", "pickups", "tracts", {"pick": "smallest_area"}),
        ("intersects", "tracts", "taxi_zones", {"pick": "max:LocationID"}),
        ("intersects", "tracts", "taxi_zones", {"pick": "min:LocationID"}),
        ("dwithin", "pickups", "roads", {"max_distance": 99, "pick": "nearest"}),
        ("intersects", "tracts", "taxi_zones", {"one_to_one": True}),
        ("nearest", "pickups", "buildings", {"k": 5, "one_to_one": True}),
        ("intersects", "taxi_zones", "tracts", {"agg": "count, count(NTACode) as c, "
          "concat(NTACode, '; ') as \"all\", first(NTACode), mode(NTACode), unique(NTACode)"}),
        ("intersects", "tracts", "taxi_zones", {"agg": "sum(LocationID), avg(LocationID), "
          "min(LocationID), max(zone), median(LocationID), stddev(LocationID), "
          "last(zone), weighted_sum(LocationID)"}),
        ("dwithin", "tracts", "tracts", {"max_distance": 500, "similar": "NTACode:0.4"}),
        ("similar", "tracts", "tracts", {"similar": "NTACode:2/3", "k": 4}),
        ("intersects", "tracts", "taxi_zones", {"how": "anti"}),
        ("intersects", "pickups", "taxi_zones", {"how": "inner"}),
        ("nearest", "tracts", "pickups", {"how": "right"}),
        ("within", "roads", "taxi_zones", {"how": "full"}),
        ("nearest", "pickups", "roads", {"geometry": "nearest_point"}),
        ("nearest", "buildings", "roads", {"geometry": "connection", "max_distance": 50}),
        ("intersects", "tracts", "taxi_zones", {"geometry": "intersection"}),
        ("intersects", "roads", "tracts", {"geometry": "intersection", "how": "inner"}),
        ("intersects", "pickups", "taxi_zones", {"geometry": "join"}),
    ],
)
def test_what_is_made_of_pairs(tmp_path, layers, op, left, right, options):
    theirs = run_command(tmp_path, op, left, right, options)
    a, b = layers[left], layers[right]
    given = named(options, left, right)
    ours = ogrjoin.join(a, b, op, fid="fid", **given).read_all()
    assert_rows(ours, theirs)
    theirs = theirs.column(theirs.schema.names[-1])
    if options.get("how") not in ("right", "full"):
        assert_shapes(ours["geometry"], theirs)
    else:
        assert ours["geometry"].null_count == theirs.null_count == 0


def assert_shapes(ours, theirs):
    """Compares the vertices of geometries, not their types: a GeoPackage may store a
    single geometry as a multi-geometry of one part."""
    a, b = (shapely.from_wkb(shapes.to_numpy()) for shapes in (ours, theirs))
    assert np.array_equal(shapely.is_missing(a), shapely.is_missing(b))
    assert (shapely.get_num_coordinates(a) == shapely.get_num_coordinates(b)).all()
    assert np.array_equal(shapely.get_coordinates(a), shapely.get_coordinates(b))


def test_word_map(tmp_path, layers):
    words = tmp_path / "words.csv"
    words.write_text("mn28,\n")
    options = {"similar": "NTACode:0.5", "max_distance": 500, "word_map": words}
    theirs = run_command(tmp_path, "dwithin", "tracts", "tracts", options)
    side = layers["tracts"]
    for word_map in (words, {"mn28": ""}):
        given = named({**options, "word_map": word_map}, "tracts", "tracts")
        assert_rows(ogrjoin.join(side, side, "dwithin", fid="fid", **given).read_all(), theirs)
    plain = named({**options, "word_map": None}, "tracts", "tracts")
    assert ogrjoin.join(side, side, "dwithin", **plain).read_all().num_rows != len(theirs)
