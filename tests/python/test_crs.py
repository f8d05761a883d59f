"""Which CRS are equal.  The library decides for the package as for the command, in
whatever form the CRS are given.  pyproj only converts them, and decides what their
texts leave open."""

import json
import os
import shutil
import subprocess

import pytest

import ogrjoin
from ogrjoin import _crs

pa = pytest.importorskip("pyarrow")
pyproj = pytest.importorskip("pyproj")
shapely = pytest.importorskip("shapely")

COMMAND = os.environ.get("OGRJOIN_COMMAND") or shutil.which("ogrjoin")
SITE = 'ENGCRS["{0}",EDATUM["{0}"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'


def wkt(code, form="WKT2_2019"):
    return pyproj.CRS(code).to_wkt(form)


def renamed(code):
    """Returns the definition of a CRS without its code."""
    text = pyproj.CRS(code).to_json_dict()
    del text["id"]
    return json.dumps({**text, "name": "another name"})


ONE = [
    ("EPSG:4326", "EPSG:4326"),
    ("EPSG:4326", "OGC:CRS84"),
    ("EPSG:4326", wkt(4326)),
    ("EPSG:4326", wkt(4326, "WKT1_GDAL")),
    ("EPSG:4326", wkt(4326, "WKT1_ESRI")),
    ("EPSG:4269", "OGC:CRS83"),
    ("EPSG:2263", wkt(2263)),
    ("EPSG:2263", wkt(2263, "WKT1_GDAL")),
    ("EPSG:2263", wkt(2263, "WKT1_ESRI")),
    (wkt(2263, "WKT1_GDAL"), wkt(2263, "WKT1_ESRI")),
    ("EPSG:2263", renamed(2263)),
    ("EPSG:3857", "ESRI:102100"),
    ("EPSG:3857", wkt(3857, "WKT1_ESRI")),
    ("EPSG:28992", wkt(28992, "WKT1_ESRI")),
    ("+proj=utm +zone=32 +datum=WGS84 +units=m +no_defs", "EPSG:32632"),
    # order of axes
    ("EPSG:31467", wkt(31467, "WKT1_GDAL")),
    ("EPSG:31467", wkt(31467, "WKT1_ESRI")),
    ("EPSG:31467", "EPSG:5677"),
    ("EPSG:25832", "EPSG:3044"),
    # heights
    ("EPSG:4326", "EPSG:4979"),
    ("EPSG:27700", "EPSG:7405"),
    ("EPSG:4326+5773", "EPSG:4326"),
    (SITE.format("a"), SITE.format("a")),
]
TWO = [
    ("EPSG:4326", "EPSG:3857"),
    ("EPSG:4326", "EPSG:4269"),
    ("EPSG:4258", "EPSG:4326"),
    ("EPSG:2263", "EPSG:32118"),  # feet and metres
    ("EPSG:2263", wkt(32118, "WKT1_ESRI")),
    ("EPSG:25832", "EPSG:32632"),  # another datum
    ("EPSG:25832", "EPSG:4647"),  # the zone before the easting
    ("EPSG:3034", "EPSG:3035"),
    ("EPSG:4807", "EPSG:4275"),  # another prime meridian
    ("EPSG:7405", "EPSG:28992"),
    (SITE.format("a"), SITE.format("b")),
    (SITE.format("a"), "EPSG:3857"),
]
PAIRS = [(a, b, True) for a, b in ONE] + [(a, b, False) for a, b in TWO]


def point():
    return pa.table({"geometry": [shapely.to_wkb(shapely.Point(0.5, 0.5))]})


def is_one(left, right):
    """Returns the decision of the package. It must be equal in join() and pairs(), and
    in both orders."""

    def joins(call, a, b):
        try:
            call(a, b)
        except ogrjoin.Error as error:
            assert "two CRS" in str(error), error
            return False
        return True

    def rows(a, b):
        assert len(ogrjoin.join(point(), point(), left_crs=a, right_crs=b, how="inner").read_all()) == 1

    def index(a, b):
        marked = [
            point().cast(pa.schema([pa.field("geometry", pa.binary(), metadata={
                "ARROW:extension:name": "geoarrow.wkb",
                "ARROW:extension:metadata": json.dumps({"crs": crs}),
            })]))
            for crs in (a, b)
        ]  # fmt: skip
        assert len(ogrjoin.pairs(*marked)) == 1

    found = {joins(call, *pair) for call in (rows, index) for pair in ((left, right), (right, left))}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("form", ["WKT", "PROJJSON"])
def test_epochs(form):
    """Coordinates of two epochs have two CRS; coordinates without an epoch fit each."""
    crs = pyproj.CRS(9000)

    def at(epoch):
        if form == "WKT":
            return f"COORDINATEMETADATA[{crs.to_wkt()},EPOCH[{epoch}]]"
        return json.dumps({"type": "CoordinateMetadata", "crs": crs.to_json_dict(), "coordinateEpoch": epoch})

    assert is_one(at(2025.5), at(2025.5)) and is_one(at(2025.5), "EPSG:9000")
    assert not is_one(at(2025.5), at(2010))
    with pytest.raises(
        ogrjoin.InvalidError, match="left ITRF2014 at epoch 2025.5 and right ITRF2014 at epoch 2010: transform"
    ) as error:
        ogrjoin.join(point(), point(), left_crs=at(2025.5), right_crs=at(2010))
    assert "reproject" not in str(error.value)  # pyproj does not
    with pytest.raises(ogrjoin.InvalidError, match="coordinates of one epoch"):
        ogrjoin.join(point(), point(), left_crs=at(2025.5), right_crs=at(2010), crs="reproject")


def at_epoch(epoch, code=9000, x=0.5):
    """Returns a table of a point whose CRS has this epoch."""
    crs = pyproj.CRS(code).to_json_dict()
    metadata = {"type": "CoordinateMetadata", "crs": crs, "coordinateEpoch": epoch} if epoch else crs
    field = pa.field("geometry", pa.binary(), metadata={
        "ARROW:extension:name": "geoarrow.wkb",
        "ARROW:extension:metadata": json.dumps({"crs": metadata}),
    })  # fmt: skip
    return pa.table([[shapely.to_wkb(shapely.Point(x, 0.5))]], schema=pa.schema([field]))


def test_epochs_of_geoparquet(tmp_path):
    """GeoParquet has the epoch beside the CRS, in what is read and in what is written."""
    import pyarrow.parquet as pq

    for epoch in (2010.5, 2025, None):
        out = tmp_path / f"{epoch}.parquet"
        ogrjoin.join(at_epoch(epoch), at_epoch(epoch), how="inner").to_parquet(out)
        column = json.loads(pq.read_schema(out).metadata[b"geo"])["columns"]["geometry"]
        assert column.get("epoch") == epoch and column["crs"]["type"] == "GeographicCRS"
        assert len(ogrjoin.join(out, out, how="inner").read_all()) == 1
    early, late, none = (tmp_path / f"{epoch}.parquet" for epoch in (2010.5, 2025, None))
    assert len(ogrjoin.join(early, none, how="inner").read_all()) == 1
    with pytest.raises(ogrjoin.InvalidError, match="at epoch 2010.5 and right .* at epoch 2025:"):
        ogrjoin.join(early, late)
    folder = tmp_path / "both"
    folder.mkdir()
    for file in (early, late):
        shutil.copy(file, folder)
    with pytest.raises(ogrjoin.Error, match="another CRS"):
        ogrjoin.join(folder, early)


@pytest.mark.parametrize("crs", [{}, {"crs": "OGC:CRS84"}, {"crs": None}])
def test_epochs_of_the_default_of_geoparquet(crs):
    def file(epoch):
        geo = {"version": "1.1.0", "primary_column": "geometry",
               "columns": {"geometry": {"encoding": "WKB", "geometry_types": [], "epoch": epoch, **crs}}}  # fmt: skip
        return point().replace_schema_metadata({"geo": json.dumps(geo)})

    assert len(ogrjoin.join(file(2010), file(2010), how="inner", right_crs="EPSG:4326").read_all()) == 1
    if crs.get("crs", "") is None:  # coordinates of no CRS
        assert len(ogrjoin.join(file(2010), file(2011), how="inner").read_all()) == 1
        return
    with pytest.raises(ogrjoin.InvalidError, match="CRS84. at epoch 2010 and right .* at epoch 2011:"):
        ogrjoin.join(file(2010), file(2011))


def test_epochs_and_geopandas():
    """GeoPandas, which has no epochs, gets the CRS without them."""
    pytest.importorskip("geopandas")
    frame = ogrjoin.join(at_epoch(2025), at_epoch(2025), how="inner").to_geopandas()
    assert len(frame) == 1 and frame.crs == pyproj.CRS(9000)


def test_epochs_and_reproject():
    """A transformation that depends on time is that of the epoch."""
    move = pyproj.Transformer.from_crs(9000, 7844, always_xy=True).transform
    x = {epoch: move([134.0], [0.5], tt=[epoch])[0][0] for epoch in (2020, 2035)}
    assert abs(x[2020] - x[2035]) > 1e-6
    for epoch in x:
        found = ogrjoin.join(
            at_epoch(None, 7844, x[epoch]), at_epoch(epoch, 9000, 134.0), crs="reproject", k=1, how="inner",
            op="nearest", metric="sphere", name_distance="d", geometry="join",
        ).read_all()  # fmt: skip
        assert shapely.from_wkb(found.column("geometry")[0].as_py()).x == pytest.approx(x[epoch], abs=1e-12)


@pytest.mark.parametrize("left, right, one", PAIRS)
def test_package(left, right, one):
    assert is_one(left, right) == one


@pytest.mark.skipif(not COMMAND, reason="no command (OGRJOIN_COMMAND)")
@pytest.mark.parametrize("left, right, one", PAIRS)
def test_command(left, right, one, tmp_path):
    side, out = tmp_path / "a.csv", tmp_path / "o.csv"
    side.write_text("id,WKT\n1,POINT (0.5 0.5)\n")
    words = ("-op", "intersects", "-crs", "strict", "-s_srs", left, "-join_srs", right, out, side, side)
    run = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    assert (run.returncode == 0) == one, run.stderr
    assert one or "different CRS" in run.stderr


@pytest.mark.parametrize("left, right", [("EPSG:2263", None), (None, wkt(2263, "WKT1_ESRI"))])
def test_side_without_crs(left, right):
    with pytest.warns(UserWarning, match="has no CRS; .* is assumed"):
        joined = ogrjoin.join(point(), point(), left_crs=left, right_crs=right, how="inner")
        assert len(joined.read_all()) == 1


def test_without_pyproj(monkeypatch):
    """Without pyproj, the texts decide if they suffice. Otherwise the join is
    refused."""
    whole = {text: str(pyproj.CRS(text).to_json()) for pair in ONE + TWO for text in pair}
    monkeypatch.setattr(_crs, "_proj", lambda crs: None)
    for left, right, one in PAIRS:
        if "ENGCRS" not in left:
            assert is_one(whole[left], whole[right]) == one, (left, right)
    with pytest.raises(ogrjoin.Error, match="is not known"):
        ogrjoin.join(point(), point(), left_crs="EPSG:2263", right_crs=wkt(2263, "WKT1_ESRI")).read_all()


def test_pyproj_does_not_overrule(monkeypatch):
    """pyproj is not asked about texts that the library can compare."""
    monkeypatch.setattr(_crs, "compare", lambda a, b: 1)
    assert not is_one("EPSG:2263", "EPSG:32118")
    monkeypatch.setattr(_crs, "compare", lambda a, b: 0)
    assert is_one("EPSG:2263", renamed(2263))
