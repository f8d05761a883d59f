"""The SRID of extended WKB is the CRS of a side without one in pairs(), pairs_batches(),
Index and validate(), as in join()."""

import numpy as np
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


LATE = [[None, None], [4326]]


def chunks(*srids):
    return pa.RecordBatchReader.from_batches(
        table().schema, [table(*chunk).combine_chunks().to_batches()[0] for chunk in srids]
    )


def test_the_first_geometry_states_the_srid():
    """Arrays of NULLs before it were an SRID of 0."""
    right, both = table(25833), {"left_column": "g", "right_column": "g"}
    for door in DOORS[1:]:
        for given in (LATE, [[None]] * 3 + LATE + [[4326, None]]):
            left = chunks(*given)
            with pytest.raises(ogrjoin.InvalidError, match="left EPSG:4326 and right EPSG:25833"):
                door(left, right, "intersects", **both)
            with pytest.raises(ogrjoin.InvalidError, match="EPSG:4326, is in degrees"):
                door(chunks(*given), table(4326), "nearest", max_distance=5, **both)
    found = ogrjoin.pairs(chunks(*LATE, [None]), table(4326), "nearest", metric="sphere", **both)
    assert (found.left.tolist(), found.n_left) == ([2], 4)
    with pytest.raises(ogrjoin.InvalidError, match="row 3: .*2263.* row 2 has .*4326"):
        ogrjoin.pairs(chunks(*LATE, [2263]), table(4326), **both)
    for nothing in ([], [[None]], [[None], [None]]):
        assert len(ogrjoin.pairs(chunks(*nothing), right, **both)) == 0
        assert sum(batches(chunks(*nothing), right, **both)) == 0


def test_the_first_geometry_states_the_srid_of_the_right_side_of_join():
    both = {"left_column": "g", "right_column": "g"}
    for given in (LATE, [[None]] * 3 + LATE + [[4326, None]]):
        with pytest.raises(ogrjoin.InvalidError, match="left EPSG:25833 and right EPSG:4326"):
            rows(table(25833), chunks(*given), "intersects", **both)
        assert rows(table(4326), chunks(*given), "intersects", how="inner", **both).num_rows > 0
    with pytest.raises(ogrjoin.InvalidError, match="row 3: .*2263.* row 2 has .*4326"):
        rows(table(4326), chunks(*LATE, [2263]), "intersects", **both)
    assert rows(table(4326), chunks([None], [None]), "intersects", **both).num_rows == 1


def test_batches_without_geometries_have_no_srid():
    index = ogrjoin.Index(table(4326), column="g")

    def rights(left, size=1):
        found = list(index.pairs_batches(left, column="g", batch_size=size))
        assert [batch.first for batch in found] == sorted(batch.first for batch in found)
        return np.concatenate([batch.left for batch in found]).tolist()

    assert rights(chunks(*LATE)) == [2]
    assert rights(iter([table(), table(4326), table(), table(None), table(4326)])) == [0, 2]
    assert rights(iter([table(None), table(4326)]), 5) == [1]
    found = index.pairs(pa.array(wkb(*[None] * 70_000, 4326), pa.binary()), progress=lambda done, all: None)
    assert found.left.tolist() == [70_000]
    empty = index.pairs(pa.array(wkb(*[None] * 70_000), pa.binary()), progress=lambda done, all: None)
    assert (len(empty), empty.n_left) == (0, 70_000)
    for srids in ((4326, 0), (0, 4326), (4326, None, 0)):
        array = pa.array(wkb(*srids))
        for left in (array, iter([array[i : i + 1] for i in range(len(array))])):
            with pytest.raises(ogrjoin.InvalidError, match="CRS of a batch is|SRID"):
                list(index.pairs_batches(left, batch_size=1))


def test_batches_of_other_sides_do_not_wait():
    """Sides that are not Arrow have no SRID, and do not wait for one."""
    index, asked = ogrjoin.Index([Point(9, 47)]), []

    def sides():
        for side in ([Point(9, 47)], (np.array([9.0]), np.array([47.0])), [Point(9, 47)]):
            asked.append(side)
            yield side

    for n, batch in enumerate(index.pairs_batches(sides()), 1):
        assert len(batch) == 1 and len(asked) == n


def test_settings_are_checked_before_the_first_batch():
    index, left = ogrjoin.Index(table(4326), column="g"), table(4326)
    for side in (left, stream(left), iter([left]), [left], Foreign(left)):
        for op, options in (("intersect", {}), ("nearest", {"kk": 1}), ("nearest", {"k": 0}),
                            ("intersects", {"k": 2})):  # fmt: skip
            with pytest.raises(ogrjoin.InvalidError):
                index.pairs_batches(side, op, column="g", **options)
        assert sum(map(len, index.pairs_batches(side, column="g", k=None))) == 1


class Foreign:
    """A stream that is not of pyarrow and states its CRS only in its own schema."""

    def __init__(self, rows, n=None):
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self.rows.__arrow_c_stream__(requested_schema)


class ForeignTable(Foreign):
    def __len__(self):
        return len(self.rows)


def test_the_crs_of_streams_is_that_of_their_schema():
    def of(code, n=1):
        stated = {"ARROW:extension:name": "geoarrow.wkb",
                  "ARROW:extension:metadata": '{"crs": "EPSG:%d"}' % code}  # fmt: skip
        return table(*[0] * n, metadata=stated)

    def batches_of(left, **settings):
        return list(index.pairs_batches(left, **settings))

    polars = pytest.importorskip("polars")
    index = ogrjoin.Index(of(4326))
    forms = [lambda t: t, Foreign, ForeignTable, stream]
    if polars.from_arrow(of(4326)).to_arrow().schema.field(0).metadata:
        forms.append(polars.from_arrow)
    match = "left EPSG:25833 and right EPSG:4326"
    for form in forms:
        for door in (index.pairs, batches_of, lambda left: ogrjoin.pairs(left, of(4326)),
                     lambda left: ogrjoin.validate(left, of(4326)),
                     lambda left: batches_of([left]), lambda left: batches_of(iter([left])),
                     lambda left: index.pairs(left, progress=lambda done, all: None),
                     lambda left: ogrjoin.pairs(left, Foreign(of(4326))),
                     lambda left: ogrjoin.Index(form(of(4326))).pairs(left)):  # fmt: skip
            with pytest.raises(ogrjoin.InvalidError, match=match):
                door(form(of(25833)))
            door(form(of(4326)))
        kept = ogrjoin.Index(form(of(4326)))
        for _ in range(2):
            assert kept.join(of(4326), how="inner").read_all().num_rows == 1
            assert len(kept.pairs(form(of(4326)))) == 1
    with pytest.raises(ogrjoin.InvalidError, match="batch is EPSG:25833, and the first"):
        batches_of(iter([of(4326), of(25833)]))
    with pytest.raises(ogrjoin.InvalidError, match="batch is EPSG:25833, and the first"):
        batches_of([Foreign(of(4326)), Foreign(of(25833))])
    assert sum(map(len, batches_of([Foreign(of(4326)), of(4326, 3)]))) == 4


def test_metric_comes_from_the_srid():
    found = ogrjoin.pairs(table(4326), table(4326, shape=Point(9, 48)), "nearest", metric="sphere",
                          left_column="g", right_column="g")  # fmt: skip
    assert 111_000 < found.distance[0] < 112_000
