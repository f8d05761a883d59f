"""Random joins by the command, by JOIN: and by join().  They have equal rows, and equal
names and types of columns, and the same joins are refused.  OGRJOIN_DOOR_ROUNDS is the
number of joins (60), OGRJOIN_DOOR_SEED the first seed (1).
"""

import os
import random
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pyogrio = pytest.importorskip("pyogrio")
pytest.importorskip("pyproj")
import shapely

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
random_commands = pytest.importorskip("random_commands", reason="no tests/bench")

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")
PLUGIN = COMMAND and os.path.exists(os.path.join(os.path.dirname(COMMAND), "ogr_JOIN.so"))
ROUNDS = int(os.environ.get("OGRJOIN_DOOR_ROUNDS") or 60)
SEED = int(os.environ.get("OGRJOIN_DOOR_SEED") or 1)
pytestmark = pytest.mark.skipif(
    not (COMMAND and shutil.which("ogr2ogr")),
    reason="no command (OGRJOIN_COMMAND) or no ogr2ogr",
)

LAYERS = ("points", "points", "zones", "zones", "lines", "squares", "multi", "odd")
AGGREGATES = (
    "count", "count, sum(code), mean(v), sum(v)", "count(v) as c, min(v), max(day)",
    "concat(name, '; '), first(name), last(code)", "mode(code), unique(name), median(v)",
    'count as "a b", stddev(v), max("name")', "sum(big), min(moment), mode(yes)",
    "weighted_sum(v), count", "avg(code) as m, concat(code)", "first(yes), max(big)",
    "percentile(v, 90), q1(code), q3(v)", "range(v), range(code), variance(v)", "minority(name), minority(day)",
    "weighted_mean(v), count", "weighted_mean(v, code), weighted_mean(code, overlap_area) as w",
    "mean(join_distance), concat(join_distance)", "max(join_rank), first(join_rank), last(join_fid)",
    "max(overlap_area), min(overlap_length), median(overlap_percent)", "max(nearest_x), min(nearest_y), count(join_bearing)",
    "max(join_similarity), mean(join_difference)", "covered_area, covered_percent, covered_length",
    "sum(name)", "sum(nothing)", "count, count", "stdev(v)", "percentile(v)", "count(distinct v)",
)  # fmt: skip
FAR = ("nearest", "dwithin")


def line(r):
    """Returns a random op, the names of the layers, and {option: value}."""
    left, right = r.choice(LAYERS), r.choice(LAYERS)
    op = r.choice(
        ("intersects", "intersects", "nearest", "nearest", "dwithin", "within", "contains",
         "covers", "coveredby", "touches", "crosses", "overlaps", "equals", "disjoint",
         "bbox", "relate", "contains_properly", "similar", "attributes")
    )  # fmt: skip
    o = {}

    def maybe(share, name, *values):
        if r.random() < share:
            o[name] = r.choice(values)

    if op == "relate":
        o["relate"] = r.choice(("T********", "F***1****", "T*F**F***"))
    if op == "dwithin" and r.random() < 0.3:
        o["max_distance_field"] = "reach"
    elif op == "dwithin":
        o["max_distance"] = r.choice((0, 5, 20, "10m", "30ft", "0.01km"))
    if op == "nearest":
        maybe(0.5, "max_distance", 3, 40, "8m", "50us-ft", "1deg")
        maybe(0.4, "k", 1, 2, 5)
        maybe(0.4, "ties", "all", "first")
        maybe(0.15, "min_distance", 2, "1m")
    if op == "similar" or r.random() < 0.07:
        if r.random() < 0.7:
            o["similar"] = r.choice(("name:0.3", "name=name:1/2", "name+id:0.4"))
        else:
            o["vector"] = r.choice(("v:0.5+code", "v=reach"))
            o["max_difference"] = r.choice((1, 3))
        if op == "similar" and r.random() < 0.4:
            o["k"] = r.choice((1, 3))
    maybe(0.8, "how", "left", "inner", "semi", "anti", "right", "full")
    maybe(0.95 if op == "attributes" else 0.15, "on", "code", "code=id", "name", "name,code", "id=name", "v=v", "day=day")
    maybe(0.12, "exclude", "self", "same_geometry", "field=code")
    maybe(0.15, "within_time", "day:30d", "moment:400h", "day=moment:20d", "v:1.5", "id=code:2", "v=id:0")
    if op in FAR:
        maybe(0.15, "heading", "v:30", "code", "id:170", "reach:0")
        if "heading" in o:
            maybe(0.4, "heading_both_ways", True)
    maybe(0.12, "during", "code..id=id..code", "v=code..id:starts+during", "day..moment=day", "moment=day..moment:after",
          "id..v:overlaps", "moment:before", "code:equals")
    if left == right:
        maybe(0.2, "unordered_pairs", True)
    if r.random() < 0.25:
        o["agg"] = r.choice(AGGREGATES)
    elif r.random() < 0.25:
        o["pick"] = r.choice(
            ("first", "nearest", "largest_overlap", "smallest_area", "largest_area",
             "max:v", "min:v", "min:day", "max:code", "max:name", "most_similar")
        )  # fmt: skip
    elif r.random() < 0.15:
        o["one_to_one"] = r.choice((True, "best"))
    maybe(0.15, "overlap", "area", "area,percent", "length", "area,length,percent")
    maybe(0.15, "nearest_point_fields", True)
    maybe(0.15, "bearing_field", True)
    if op in FAR:
        maybe(0.15, "along_field", "along", "v", "")
        if o.get("along_field"):
            maybe(0.2, "along", "length", "m")
        maybe(0.1, "along_percent_field", "percent")
        maybe(0.15, "offset_field", "beside")
        maybe(0.15, "side_field", "side")
        maybe(0.1, "segment_field", "piece")
        maybe(0.1, "line_bearing_field", "course")
    maybe(0.12, "matrix_field", "matrix")
    maybe(0.12, "relation_field", "relation", "name")
    maybe(0.3, "geometry", "input", "join", "nearest_point", "connection", "intersection")
    maybe(0.12, "prefix", "j_", "x")
    maybe(0.1, "name_fid", "lot", "", "id")
    if op in FAR:
        maybe(0.1, "name_distance", "far", "", "v")
    maybe(0.06, "name_count", "n", "code")
    if o.get("k", 1) != 1:
        maybe(0.1, "name_rank", "place", "")
    if op in FAR and r.random() < 0.1:
        o["metric"] = "sphere"
    return op, left, right, o


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("doors")
    random_commands.make_inputs(str(path / "inputs"))
    return path


_sides = {}


def side(folder, name):
    if name not in _sides:
        path = folder / "inputs" / f"{name}.gpkg"
        told, table = pyogrio.read_arrow(path, return_fids=True)
        table = table.rename_columns(["fid", *table.schema.names[1:]])
        i = table.schema.get_field_index(told["geometry_name"])
        metadata = {
            b"ARROW:extension:name": b"geoarrow.wkb",
            b"ARROW:extension:metadata": b'{"crs": "EPSG:2263"}',
        }
        field = table.schema.field(i).with_name("geom").with_metadata(metadata)
        _sides[name] = table.set_column(i, field, table.column(i))
    return _sides[name]


def words_of(op, o):
    words = ["-op", op]
    for name, value in o.items():
        words += [f"-{name}"] + ([] if value is True else [str(value)])
    return words


def run(folder, words):
    environment = random_commands.environment(os.path.dirname(COMMAND))
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False)


def rows_of_file(path):
    told, table = pyogrio.read_arrow(path)
    return told, table


def plain(column):
    """Converts values for comparison: doubles to their bits, times to texts. Returns a
    list."""
    if pa.types.is_floating(column.type):
        values = column.to_numpy(zero_copy_only=False)
        return [None if v != v else v.hex() for v in map(float, values)]
    if pa.types.is_timestamp(column.type):
        return [None if v is None else v.isoformat()[:23] for v in column.to_pylist()]
    return column.to_pylist()


def kind(type_):
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_timestamp(type_):
        return "timestamp"
    return str(type_).removeprefix("large_")


def shapes_of(column):
    """Returns the coordinates of each geometry. NULL and empty ones are None. Polygons
    whose rings are not closed are "open", because the command closes rings when it
    writes."""
    values = column.to_pylist()
    shapes = shapely.from_wkb(values, on_invalid="ignore")
    missing = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    places = [shapely.get_coordinates(shape).tolist() for shape in shapes]
    return [
        "open" if value is not None and shape is None else None if none else place
        for value, shape, none, place in zip(values, shapes, missing, places)
    ]


def compare(ours, theirs, name_of_shape, what):
    drop = ("fid", "geom", name_of_shape)
    names = [n for n in ours.schema.names if n not in drop]
    assert names == [n for n in theirs.schema.names if n not in drop], what
    assert len(ours) == len(theirs), what
    for name in names:
        a, b = ours[name], theirs[name]
        assert kind(a.type) == kind(b.type), (what, name, a.type, b.type)
        assert plain(a) == plain(b), (what, name)
    if "geom" in ours.schema.names and name_of_shape in theirs.schema.names:
        a, b = shapes_of(ours["geom"]), shapes_of(theirs[name_of_shape])
        assert all(x == y or "open" in (x, y) for x, y in zip(a, b)), (what, "geometry")


def join(folder, op, left, right, o):
    given = dict(o)
    if left == right and "self" not in given.get("exclude", ""):
        # if both sides are one layer, the command excludes the pair of a
        # feature with itself
        given["exclude"] = ",".join(filter(None, (given.get("exclude"), "self")))
    a, b = side(folder, left), side(folder, right)
    return ogrjoin.join(a, b, op, fid="fid", **given).read_all()


@pytest.mark.parametrize("number", range(SEED, SEED + ROUNDS))
def test_one_answer(folder, number):
    op, left, right, o = line(random.Random(number))
    words = words_of(op, o)
    files = [f"inputs/{left}.gpkg", f"inputs/{right}.gpkg"]
    out = folder / f"{number}.gpkg"
    done = run(folder, [COMMAND, "-q", "-unsetFid", *words, out.name, *files])
    what = shlex.join([*words, *files])
    try:
        ours = join(folder, op, left, right, o)
    except ogrjoin.Error as error:
        assert done.returncode == 1, (what, str(error))
        return
    assert done.returncode == 0, (what, done.stderr.decode())
    told, theirs = rows_of_file(out)
    compare(ours, theirs, told["geometry_name"], what)
    if PLUGIN:
        name = "JOIN:" + shlex.join([*words, *files])
        again = folder / f"{number}_dataset.gpkg"
        made = run(folder, ["ogr2ogr", "-q", "-unsetFid", again.name, name])
        assert made.returncode == 0, (what, made.stderr.decode())
        told, theirs = rows_of_file(again)
        compare(ours, theirs, told["geometry_name"], (what, "JOIN:"))
    for path in folder.glob(f"{number}*.gpkg"):
        path.unlink()
