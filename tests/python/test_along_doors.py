"""Places along lines by every door: command, JOIN:, join(), joins in tiles, and GeoParquet have
equal values, also with measures from M, and without them where lines have no M."""

import json
import shlex
import shutil
import warnings

import numpy as np
import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pyogrio = pytest.importorskip("pyogrio")
shapely = pytest.importorskip("shapely")
if not hasattr(shapely, "has_m"):
    pytest.skip("shapely without M values", allow_module_level=True)

from test_doors import COMMAND, PLUGIN, run
from test_scale_tiles import join_in_tiles

pytestmark = pytest.mark.skipif(
    not (COMMAND and shutil.which("ogr2ogr")), reason="no command (OGRJOIN_COMMAND) or no ogr2ogr"
)

NAMES = ["along", "percent", "beside", "side", "piece", "course"]
COLUMNS = {
    "along_field": "along",
    "along_percent_field": "percent",
    "offset_field": "beside",
    "side_field": "side",
    "segment_field": "piece",
    "line_bearing_field": "course",
}
NOTICE = "no measure, because"


def wkt_of_line(rng, i):
    """Returns a line as WKT. Lines in the west have M values, but not at each vertex; lines
    in the east have none."""
    x, y = rng.uniform(0, 100, 2)
    n = int(rng.choice([2, 3, 5, 30]))
    xy = np.round([x, y] + np.cumsum(rng.normal(0, 3, (n, 2)), axis=0), 2)
    if x > 50:
        return f"LINESTRING ({', '.join('%r %r' % (a, b) for a, b in xy.tolist())})"
    m = np.round(np.cumsum(rng.uniform(0, 9, n)), 1)
    if i % 5 == 0:
        m[0] = -1e39  # the value of Shapefiles for "no data"
    return f"LINESTRING M ({', '.join('%r %r %r' % (a, b, c) for (a, b), c in zip(xy.tolist(), m.tolist()))})"


def table(shapes, **columns):
    wkb = shapely.to_wkb(np.asarray(shapes, dtype=object), output_dimension=4, flavor="iso")
    metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": json.dumps({})}
    fields = [pa.field(name, pa.int64()) for name in columns]
    fields.append(pa.field("geometry", pa.binary(), metadata=metadata))
    return pa.table([*columns.values(), pa.array(wkb.tolist(), pa.binary())], schema=pa.schema(fields))


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """Returns the folder of points.gpkg and lines.gpkg, and both layers as tables."""
    folder, rng = tmp_path_factory.mktemp("along"), np.random.default_rng(3)
    points = shapely.points(np.round(rng.uniform(-5, 105, (400, 2)), 2))
    wkts = {"points": [p.wkt for p in points], "lines": [wkt_of_line(rng, i) for i in range(120)]}
    made = []
    for name, id_ in (("points", "n"), ("lines", "line")):
        text = "".join(f'{i + 1},"{wkt}"\n' for i, wkt in enumerate(wkts[name]))
        (folder / f"{name}.csv").write_text(f"{id_},WKT\n{text}")
        done = run(folder, ["ogr2ogr", "-q", f"{name}.gpkg", f"{name}.csv",
                            "-oo", "AUTODETECT_TYPE=YES", "-oo", "KEEP_GEOM_COLUMNS=NO"])  # fmt: skip
        assert done.returncode == 0, done.stderr
        shapes = shapely.from_wkt(wkts[name])
        made.append(table(shapes, **{id_: np.arange(len(shapes)) + 1}))
    return folder, *made


def words_of(options):
    return [word for name, value in options.items() for word in (f"-{name}", str(value))]


def rows_of(columns):
    """Returns the columns as comparable rows: texts, and numbers with their bits; NULL is None."""

    def value(v):
        if v is None or v != v:
            return None
        return v if isinstance(v, str) else float(v)

    return sorted(zip(*([value(v) for v in of] for of in columns)), key=str)


def of_file(path):
    meta, _, _, data = pyogrio.raw.read(path, read_geometry=False)
    by_name = dict(zip(meta["fields"], data))
    return rows_of([by_name[n].tolist() for n in ["n", "line", *NAMES]])


def of_table(rows):
    return rows_of([rows.column(n).to_pylist() for n in ["n", "line", *NAMES]])


OPTIONS = [
    {},
    {"along": "m"},
    {"along": "m", "k": 3},
    {"along": "m", "k": 2, "ties": "all", "max_distance": 12},
    {"along": "length", "max_distance": 9, "op": "dwithin"},
    {"along": "m", "max_distance": 9, "op": "dwithin"},
    {"along": "m", "how": "full", "max_distance": 3},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_answer(sides, options, tmp_path):
    folder, points, lines = sides
    options = {"op": "nearest", **options, **COLUMNS}
    words = words_of(options)
    files = ["points.gpkg", "lines.gpkg"]
    done = run(folder, [COMMAND, *words, "-overwrite", "out.gpkg", *files])
    assert done.returncode == 0, done.stderr
    expected = of_file(folder / "out.gpkg")
    assert len({row[2] for row in expected}) > 30, "a fair trial"
    is_m = options.get("along") == "m"
    assert (NOTICE in done.stderr.decode()) == is_m
    if PLUGIN:
        name = "JOIN:" + shlex.join([*words, *files])
        made = run(folder, ["ogr2ogr", "-q", "-overwrite", "again.gpkg", name])
        assert made.returncode == 0, made.stderr
        assert of_file(folder / "again.gpkg") == expected
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        joined = ogrjoin.join(points, lines, **options)
        assert of_table(joined.read_all()) == expected
        assert [NOTICE in str(w.message) for w in caught] == [True] * is_m
        joined.to_parquet(tmp_path / "rows.parquet")
        assert of_table(pq.read_table(tmp_path / "rows.parquet")) == expected
        rows, _ = join_in_tiles(points, lines, 9, **options)
        assert of_table(rows) == expected


def test_lines_without_m(sides):
    """No line of a layer has M values: every door refuses."""
    folder, points, lines = sides
    words = ["-op", "nearest", "-along", "m", "-along_field", "along"]
    plain = table(shapely.force_2d(shapely.from_wkb(lines.column("geometry").to_pylist())), line=lines.column("line"))
    done = run(folder, ["ogr2ogr", "-q", "-dim", "XY", "-overwrite", "plain.gpkg", "lines.gpkg"])
    assert done.returncode == 0
    done = run(folder, [COMMAND, *words, "-overwrite", "none.gpkg", "points.gpkg", "plain.gpkg"])
    assert done.returncode == 1 and b"has M values" in done.stderr
    with pytest.raises(ogrjoin.Error, match="has M values"):
        ogrjoin.join(points, plain, "nearest", along="m", along_field="along").read_all()
    if PLUGIN:
        made = run(folder, ["ogr2ogr", "-q", "no.gpkg", "JOIN:" + shlex.join([*words, "points.gpkg", "plain.gpkg"])])
        assert made.returncode != 0 and b"has M values" in made.stderr
