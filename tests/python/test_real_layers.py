"""validate() finds no difference to GEOS on the real layers."""

import os

import pytest

import ogrjoin

pyogrio = pytest.importorskip("pyogrio")
pytest.importorskip("pyarrow")

DATA = os.environ.get("OGRJOIN_TEST_DATA", "")
STREETS, TRACTS = "nyc_streets/manhattan_roads", "nyc_polygons/tracts2010"
ZONES, COMMUNES = "nyc_polygons/taxi_zones", "norway/kommuner_m"
HOUSES, ROADS = "osm_liechtenstein/buildings", "osm_liechtenstein/roads"

# op, left, right, options
JOINS = [
    ("nearest", "nyc_points/injury_collisions", STREETS, {"max_distance": 300}),
    ("nearest", "nyc_points/taxi2016_06_pickups", ZONES, {"k": 2, "max_distance": 2000}),
    ("nearest", HOUSES, ROADS, {"max_distance": 100, "ties": "all"}),
    (
        "nearest",
        "world/airports_openflights",
        "world/ne10m_rivers_europe",
        {"metric": "sphere", "max_distance": 5000},
    ),
    ("dwithin", "nyc_points/manhattan_pois", STREETS, {"max_distance": 50}),
    ("within", "nyc_points/green2013_08_pickups", TRACTS, {}),
    ("intersects", STREETS, "nyc_polygons/election_districts", {}),
    ("intersects", COMMUNES, COMMUNES, {"exclude_self": 1}),
    ("contains", "nyc_polygons/boroughs", "nyc_points/injury_collisions", {}),
    ("contains_properly", "us/counties", "us/zipcodes", {}),
    ("covers", "osm_small_monaco/landuse", "osm_small_monaco/buildings", {}),
    ("coveredby", HOUSES, "osm_liechtenstein/landuse", {}),
    ("touches", TRACTS, TRACTS, {"exclude_self": 1}),
    ("crosses", ROADS, "osm_liechtenstein/landuse", {}),
    ("overlaps", "nyc_polygons/nta", ZONES, {}),
    ("equals", "torture/torture", "torture/torture", {}),
    ("disjoint", ZONES, "nyc_polygons/boroughs", {}),
    ("relate", TRACTS, ZONES, {"relate": "T*F**F***"}),
    ("bbox", "us/boulder_buildings", "us/boulder_buildings", {}),
]


def read(name):
    """Reads a layer, named by its file and layer name. Returns a pyarrow table."""
    file, layer = name.split("/")
    return pyogrio.read_arrow(f"{DATA}/{file}.gpkg", layer=layer, columns=[])[1]


@pytest.mark.skipif(
    not os.path.exists(f"{DATA}/us.gpkg"), reason="no layers (OGRJOIN_TEST_DATA)"
)
@pytest.mark.parametrize("op, left, right, options", JOINS)
def test_no_difference(op, left, right, options):
    report = ogrjoin.validate(read(left), read(right), op, **options)
    assert report.n_pairs > 0
    assert (report.n_differences, report.n_rows_undecided) == (0, 0), report
