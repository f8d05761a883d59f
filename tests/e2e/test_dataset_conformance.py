"""Joins keep what GDAL's clients rely on in a layer (layer_conformance.py). It is asked
of the plain layers too: it wants nothing odd."""

import layer_conformance
from dataset import *


def conforms(*names, threads=4, loops=20 if IS_LONG else 4, is_writable=False):
    time.sleep(0.1)  # files that are younger may have changed
    return [layer_conformance.conforms(name, is_writable, threads, loops) for name in names]


def layers():
    inputs_file()
    far_zones_file()
    zones_file("other.gpkg", seed=8)
    lines_file()
    return ("points.gpkg", "zones.gpkg")


def check_plain_layers():
    """The control: drivers of GDAL's own. (GeoPackage and Shapefile count by boxes
    alone, and GeoPackage rounds its extent.)"""
    layers()
    for path in ("points.gpkg", "zones.gpkg", "other.gpkg", "lines.gpkg"):
        for end in ("geojson", "fgb"):
            client("ogr2ogr", f"plain.{end}", path)
            conforms(f"plain.{end}", is_writable=True)
            os.remove(f"plain.{end}")


def check_joins():
    many_sides()
    conforms(*[name_of(*words) for words in JOINS], threads=2, loops=2)


def check_nearest():
    pair = layers()
    true(conforms(name_of("-op", "nearest", *pair), threads=4, loops=20)[0] == 61, "rows")
    conforms(name_of("-op", "nearest", "-max_distance", 30, *pair))


def check_within():
    pair = layers()
    true(conforms(name_of("-op", "within", *pair), loops=20)[0] > 60, "rows")
    conforms(name_of("-op", "within", "-how", "inner", *pair))


def check_aggregates():
    points, zones = layers()
    name = name_of("-agg", "count, sum(id), mean(id), concat(id)", zones, points)
    true(conforms(name, loops=20)[0] == 34, "rows")
    conforms(name_of("-op", "nearest", "-k", 3, "-agg", "count, sum(v), min(name)", points, zones))


def check_other_rows():
    pair = layers()
    conforms(
        name_of("-op", "nearest", "-k", 3, "-ties", "all", *pair),
        name_of("-op", "nearest", "-nearest_point_fields", "-bearing_field", "lines.gpkg", "zones.gpkg"),
        name_of("-op", "dwithin", "-max_distance", 40, "-how", "inner", *pair),
        name_of("-op", "intersects", "-pick", "largest_overlap", "-overlap", "area,percent",
                "other.gpkg", "zones.gpkg"),
    )


def check_every_how():
    pair = layers()
    conforms(*[name_of("-op", "nearest", "-max_distance", 30, "-how", how, *pair)
               for how in ("inner", "semi", "anti", "right", "full")])
    conforms(*[name_of("-op", "intersects", "-how", how, *pair)
               for how in ("semi", "right", "full")])


def check_other_geometries():
    pair = layers()
    conforms(*[name_of("-op", "nearest", "-geometry", g, *pair)
               for g in ("join", "nearest_point", "connection")])
    conforms(name_of("-op", "intersects", "-geometry", "intersection", "other.gpkg", "zones.gpkg"))


def check_reprojected():
    pair = layers()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("z4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="zones")
    dataset = None
    conforms(
        name_of("-op", "nearest", pair[0], "z4326.gpkg"),
        name_of("-op", "nearest", "-t_srs", "EPSG:32618", *pair),
        name_of("-op", "nearest", "-a_srs", "EPSG:32118", *pair),
    )


def check_sources_of_other_kinds():
    """Whose own filters, FIDs and ignored fields differ from GeoPackage's."""
    layers()
    for end in ("fgb", "geojson", "shp", "csv"):
        options = ["-lco", "GEOMETRY=AS_WKT"] if end == "csv" else []
        client("ogr2ogr", f"points_{end}.{end}", "points.gpkg", *options)
        client("ogr2ogr", f"zones_{end}.{end}", "zones.gpkg", *options)
        conforms(name_of("-op", "nearest", f"points_{end}.{end}", f"zones_{end}.{end}"),
                 name_of("-op", "nearest", "-k", 2, f"points_{end}.{end}", f"zones_{end}.{end}"),
                 name_of("-agg", "count", f"zones_{end}.{end}", f"points_{end}.{end}"), loops=2)


def check_sides_chosen():
    pair = layers()
    conforms(
        name_of("-op", "nearest", "-where", "id > 10", "-limit", 30, *pair),
        name_of("-op", "nearest", "-select", "", "-join_select", "name", *pair),
        name_of("-op", "nearest", "-sql", "SELECT geom, id AS other, id FROM points", *pair),
        name_of("-op", "nearest", "-sql", "SELECT geom, id AS other FROM points", "-dialect",
                "SQLITE", *pair),
        name_of("-op", "intersects", "-spat", 980000, 200000, 980300, 200300, *pair),
        name_of("-window", 980100, 200100, 980300, 200250, "points.gpkg"),
    )


def check_a_join_of_a_join():
    points, zones = layers()
    inner = name_of("-op", "nearest", points, zones)
    conforms(name_of("-op", "intersects", "-prefix", "o_", inner, "other.gpkg"),
             name_of("-op", "nearest", "other.gpkg", inner),
             name_of("-agg", "count, sum(id)", "other.gpkg", inner))
    deeper = name_of("-op", "intersects", "-prefix", "o_", inner, "other.gpkg")
    conforms(name_of("-op", "nearest", "-prefix", "d_", deeper, "lines.gpkg"))


def check_few_rows():
    pair = layers()
    make("nothing.gpkg", [], (("id", ogr.OFTInteger),), kind=ogr.wkbPoint)
    make("one.gpkg", [("POINT (980100 200100)", {"id": 1})], (("id", ogr.OFTInteger),), kind=ogr.wkbPoint)
    conforms(
        name_of("-op", "nearest", "nothing.gpkg", pair[1]),
        name_of("-op", "nearest", pair[0], "nothing.gpkg"),
        name_of("-agg", "count", "nothing.gpkg", "nothing.gpkg"),
        name_of("-op", "nearest", "one.gpkg", pair[1]),
        name_of("-op", "intersects", "-how", "inner", "nothing.gpkg", pair[1]),
    )


def check_small_batches():
    pair = layers()
    conforms(name_of("-op", "nearest", "-batch", 1, *pair), name_of("-op", "within", "-batch", 7, *pair),
             name_of("-agg", "count", "-batch", 3, *pair), name_of("-how", "full", "-batch", 4, *pair))


def check_spec_files():
    pair = layers()
    conforms(spec_file("near.ogrjoin", "-op", "nearest", *pair))


def check_without_a_cache():
    pair = layers()
    os.environ["OGRJOIN_CACHE_MAX"] = "0"
    try:
        conforms(name_of("-op", "nearest", *pair))
    finally:
        del os.environ["OGRJOIN_CACHE_MAX"]


def check_real_layers():
    small = need_data("nyc_small.gpkg")
    sides = ("-input_layer", "pickups", "-join_layer")
    conforms(
        name_of("-op", "nearest", *sides, "taxi_zones", small, small),
        name_of("-op", "within", *sides, "tracts", small, small),
        name_of("-agg", "count", "-input_layer", "taxi_zones", "-join_layer", "pickups", small, small),
        loops=2,
    )
    world = need_data("world_small.gpkg")
    conforms(name_of("-op", "within", "-input_layer", "cities_5k", "-join_layer", "countries110m",
                     world, world), loops=2)


if __name__ == "__main__":
    main(globals())
