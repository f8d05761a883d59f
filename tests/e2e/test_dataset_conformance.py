"""Joins keep what GDAL's clients rely on in a layer (layer_conformance.py).  Plain
layers are checked as a control."""

import layer_conformance
from dataset import *


def conforms(*names, threads=4, loops=20 if IS_LONG else 4, is_writable=False):
    # a younger file may change again without a new modification time
    time.sleep(0.1)
    return [layer_conformance.conforms(name, is_writable, threads, loops) for name in names]


def layers():
    zones_file("other.gpkg", seed=8)
    lines_file()
    return inputs_and_zones()


def check_plain_layers():
    """The control: GDAL's own drivers. GeoPackage and Shapefile are left out, because
    they count by boxes alone, and GeoPackage rounds its extent."""
    layers()
    for path in ("points.gpkg", "zones.gpkg", "other.gpkg", "lines.gpkg"):
        for end in ("geojson", "fgb"):
            client("ogr2ogr", f"plain.{end}", path)
            conforms(f"plain.{end}", is_writable=True)
            os.remove(f"plain.{end}")


def check_joins():
    many_sides()
    conforms(*[name_of(*words) for words in JOINS], threads=2, loops=2)


def check_threads():
    pair = layers()
    same(conforms(name_of("-op", "nearest", *pair), loops=20), [61])
    true(conforms(name_of("-op", "within", *pair), loops=20)[0] > 60, "rows")
    same(conforms(name_of("-agg", "count, sum(id), mean(id), concat(id)", *pair[::-1]), loops=20), [34])


def check_sources_of_other_kinds():
    """Joins of formats whose filters, FIDs and ignored fields differ from those of GeoPackage."""
    layers()
    for end in ("fgb", "geojson", "shp", "csv"):
        options = ["-lco", "GEOMETRY=AS_WKT"] if end == "csv" else []
        client("ogr2ogr", f"points_{end}.{end}", "points.gpkg", *options)
        client("ogr2ogr", f"zones_{end}.{end}", "zones.gpkg", *options)
        conforms(name_of("-op", "nearest", f"points_{end}.{end}", f"zones_{end}.{end}"),
                 name_of("-op", "nearest", "-k", 2, f"points_{end}.{end}", f"zones_{end}.{end}"),
                 name_of("-agg", "count", f"zones_{end}.{end}", f"points_{end}.{end}"), loops=2)


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
