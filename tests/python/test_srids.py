"""The SRID of extended WKB is the CRS of a side without one in pairs(), pairs_batches(),
Index and validate(), as in join()."""

import pytest

import ogrjoin

pa = pytest.importorskip("pyarrow")
shapely = pytest.importorskip("shapely")
from shapely import LineString, Point

pytestmark = pytest.mark.filterwarnings("ignore:the .* side has no CRS")


def wkb(*srids, shape=Point(9, 47)):
    return [s is not None and shapely.to_wkb(shapely.set_srid(shape, s), include_srid=bool(s))
            or None for s in srids]  # fmt: skip


def table(*srids, shape=Point(9, 47), metadata=None):
    column = pa.array(wkb(*srids, shape=shape), pa.binary())
    field = pa.field("g", column.type, metadata=metadata)
    return pa.table([column], schema=pa.schema([field]))


def stream(rows):
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1))


def batches(left, right, *args, left_column, right_column, **settings):
    index = ogrjoin.Index(right, column=right_column)
    found = index.pairs_batches(left, *args, batch_size=1, column=left_column, **settings)
    return [len(batch) for batch in found]


def index_pairs(left, right, *args, left_column, right_column, **settings):
    index = ogrjoin.Index(right, column=right_column)
    return index.pairs(left, *args, column=left_column, **settings)


def pairs_with_progress(*args, **settings):
    return ogrjoin.pairs(*args, progress=lambda done, all: None, **settings)


def rows(*args, **settings):
    return ogrjoin.join(*args, **settings).read_all()


DOORS = [rows, ogrjoin.pairs, pairs_with_progress, index_pairs, batches, ogrjoin.validate]
SIDES = {
    "table": lambda side: side,
    "stream": stream,
    "batch": lambda side: side.combine_chunks().to_batches()[0],
}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("kind", SIDES)
@pytest.mark.parametrize("shape", [Point(9, 47), LineString([(9, 47), (9, 48)])], ids=["p", "l"])
def test_srids_of_both_sides(door, kind, shape):
    def run(left, right, *args, **settings):
        settings = {"left_column": "g", "right_column": "g", **settings}
        return door(SIDES[kind](left), right, *args, **settings)

    def of(*srids):
        return table(*srids, shape=shape)

    with pytest.raises(ogrjoin.InvalidError, match="left EPSG:2263 and right EPSG:4326"):
        run(of(2263), of(4326), "intersects")
    run(of(2263), of(4326), "intersects", crs="ignore")
    with pytest.raises(ogrjoin.InvalidError, match="row 1: .*4326.*row 0 has .*2263"):
        run(of(2263, 4326), of(2263), "intersects")
    with pytest.raises(ogrjoin.InvalidError, match="row 2: .*4326.*row 1 has .*2263"):
        run(of(2263), of(None, 2263, 4326), "intersects")
    with pytest.raises(ogrjoin.InvalidError, match="row 1"):
        run(of(2263, 0), of(2263), "intersects")
    with pytest.raises(ogrjoin.InvalidError, match="EPSG:4326, is in degrees"):
        run(of(4326), of(4326), "nearest", max_distance=5)
    run(of(4326, None), of(4326), "nearest", max_distance="5deg")
    if shape.geom_type == "Point":
        run(of(0), of(4326), "nearest", metric="sphere")
        run(of(4326), of(0), "nearest", metric="sphere")
        with pytest.raises(ogrjoin.InvalidError, match="no CRS"):
            run(of(0), of(0), "nearest", metric="sphere")
    stated = {"ARROW:extension:name": "geoarrow.wkb",
              "ARROW:extension:metadata": '{"crs": "EPSG:2263"}'}  # fmt: skip
    run(table(2263, 4326, shape=shape, metadata=stated), of(2263), "intersects")


def test_iterators_of_sides_have_one_srid():
    index = ogrjoin.Index(table(2263), column="g")
    found = index.pairs_batches(iter([table(2263), table(None), table(2263)]), column="g")
    assert sum(len(batch) for batch in found) == 2
    with pytest.raises(ogrjoin.InvalidError, match="batch is EPSG:4326, and the first"):
        list(index.pairs_batches(iter([pa.array(wkb(2263)), pa.array(wkb(4326))])))


def test_metric_comes_from_the_srid():
    found = ogrjoin.pairs(table(4326), table(4326, shape=Point(9, 48)), "nearest", metric="sphere",
                          left_column="g", right_column="g")  # fmt: skip
    assert 111_000 < found.distance[0] < 112_000
