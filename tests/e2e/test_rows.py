"""Which rows are written: -how, layers of unmatched features, on real layers and in
place.  Expected rows come from tests of every pair by GEOS."""

from row_layers import *

# --- -how -------------------------------------------------------------------

FORMATS = {
    "gpkg": (),
    "sqlite": (),
    "fgb": ("-lco", "SPATIAL_INDEX=NO"),
    "geojson": (),
    "csv": ("-lco", "GEOMETRY=AS_WKT"),
}


def rows_of(path, key="id", other="join_fid"):
    def number(value):
        return None if value in (None, "") else int(value)

    return [(number(r[2][key]), number(r[2][other])) for r in Layer(path).rows]


def check_every_how():
    inputs_and_zones()
    inputs, zones = shapes("points.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(inputs, zones)
    matched = {j for row in pairs for j in row}
    inner = [(inputs[i][2]["id"], zones[j][0]) for i, row in enumerate(pairs) for j in row]
    left = [
        (inputs[i][2]["id"], zones[j][0] if j is not None else None)
        for i, row in enumerate(pairs)
        for j in (row or [None])
    ]
    rest = [(None, z[0]) for j, z in enumerate(zones) if j not in matched]
    true(len(inner) > 20 and len(rest) > 3 and len(left) > len(inner), "a fair trial")
    for format, words in FORMATS.items():
        for how, expected in (
            ("left", left),
            ("inner", inner),
            ("right", inner + rest),
            ("full", left + rest),
        ):
            out = f"{how}.{format}"
            go("-op", "intersects", "-how", how, *words, out, "points.gpkg", "zones.gpkg")
            got = rows_of(out)
            if format == "fgb":  # the format drops rows without geometry
                lost = {zones[j][0] for j in range(len(zones)) if zones[j][1] is None}
                expected = [e for e in expected if e[0] != 1000 and (e[0] is not None or e[1] not in lost)]
            same(got, expected, f"{how} {format}")
    # The rows of join features without a pair have all their values.
    for fid, wkb, values in Layer("full.gpkg").rows[len(left):]:
        zone = next(z for z in zones if z[0] == values["join_fid"])
        same([values[k] for k in ("name", "v", "big")], [zone[2][k] for k in ("name", "v", "big")])
        same(values["id"], None)
        same(wkb, bytes(zone[1].ExportToIsoWkb()) if zone[1] else None)
    for how, keep in (("semi", True), ("anti", False)):
        go("-op", "intersects", "-how", how, f"{how}.gpkg", "points.gpkg", "zones.gpkg")
        got = Layer(f"{how}.gpkg")
        same(list(got.fields), ["id"])
        same(got.column("id"), [inputs[i][2]["id"] for i, row in enumerate(pairs) if bool(row) == keep])


def check_how_as_shapefile():
    inputs_and_zones()
    # Points and polygons cannot be rows of one Shapefile.
    for how in ("right", "full"):
        fails("-op", "intersects", "-how", how, "o.shp", "points.gpkg", "zones.gpkg",
              op=False, message=["Shapefile", "geometry type", "GPKG"])
    zones_file("other.gpkg", seed=8)
    go("-op", "intersects", "-how", "full", "o.shp", "other.gpkg", "zones.gpkg")
    a, b = shapes("other.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(a, b)
    n_left = sum(max(1, len(row)) for row in pairs)
    n_rest = len(b) - len({j for row in pairs for j in row})
    same(len(Layer("o.shp").rows), n_left + n_rest)
    # With -geometry join all rows have one geometry type.
    go("-op", "intersects", "-how", "full", "-geometry", "join", "j.shp", "points.gpkg", "zones.gpkg")


def check_nearest_right_and_full_keep_fids_apart():
    inputs_and_zones()
    words = ("-op", "nearest", "-max_distance", 30)
    go(*words, "-how", "full", "o.gpkg", "points.gpkg", "zones.gpkg")
    got, before = Layer("o.gpkg").rows, Layer("points.gpkg").rows
    same([r[0] for r in got[: len(before)]], [r[0] for r in before], "FIDs of the input")
    same(len({r[0] for r in got}), len(got), "each FID once")
    matched = {r[2]["join_fid"] for r in got[: len(before)]} - {None}
    rest = [r[2]["join_fid"] for r in got[len(before):]]
    same(rest, [z[0] for z in Layer("zones.gpkg").rows if z[0] not in matched])
    same({r[2]["join_distance"] for r in got[len(before):]}, {None})
    # GDAL's GeoJSON reader would take a property "id" for the FID.
    zones_file("other.gpkg", seed=8)
    for out in ("o.sqlite", "o.geojson", "o.geojsonl", "o.csv"):
        go(*words, "-how", "full", out, "other.gpkg", "zones.gpkg")
        fids = [r[0] for r in Layer(out).rows]
        same(len(set(fids)), len(fids), f"each FID once, {out}")
    go(*words, "-how", "right", "r.gpkg", "points.gpkg", "zones.gpkg")
    same(rows_of("r.gpkg"), [x for x in rows_of("o.gpkg") if x[1] is not None])


def check_full_with_reprojection_filters_and_batches():
    inputs_and_zones()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("z4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="z4326")
    dataset = None
    words = ("-op", "intersects", "-how", "full", "-join_where", "v IS NOT NULL")
    go(*words, "a.gpkg", "points.gpkg", "zones.gpkg")
    go(*words, "b.gpkg", "points.gpkg", "z4326.gpkg")
    same(rows_of("b.gpkg"), rows_of("a.gpkg"))
    for a, b in zip(Layer("a.gpkg").shapes(), Layer("b.gpkg").shapes()):
        same(a is None, b is None)
        true(a is None or a.Centroid().Distance(b.Centroid()) < 0.01, "in the CRS of the input")
    go(*words, "-batch", 7, "-threads", 1, "c.gpkg", "points.gpkg", "zones.gpkg")
    same(dump("c.gpkg", "points"), dump("a.gpkg", "points"))


# --- layers of unmatched features -------------------------------------------


def unmatched_answer():
    inputs, zones = shapes("points.gpkg"), shapes("zones.gpkg")
    pairs = pairs_of(inputs, zones)
    used = {j for row in pairs for j in row}
    return (
        [inputs[i][2] for i, row in enumerate(pairs) if not row],
        [z[2] for j, z in enumerate(zones) if j not in used],
    )


def check_unmatched_layers():
    inputs_and_zones()
    alone, zones_alone = unmatched_answer()
    both = ("-unmatched_layer", "lonely", "-unmatched_join_layer", "empty_zones")
    for out in ("o.gpkg", "o.sqlite", "o.xlsx"):
        r = go("-op", "intersects", "-how", "inner", *both, out, "points.gpkg", "zones.gpkg")
        for layer, rows in (("lonely", alone), ("empty_zones", zones_alone)):
            true(f"layer '{layer}': {len(rows)} unmatched rows written" in r.err, str(r))
        same([r[2] for r in Layer(out, "lonely").rows], alone, out)
        same([r[2] for r in Layer(out, "empty_zones").rows], zones_alone, out)
        true(len(Layer(out, "points").rows) > 0, out)
    # Unmatched features keep their FIDs and geometries.
    got, before = Layer("o.gpkg", "empty_zones").rows, {r[0]: r for r in Layer("zones.gpkg").rows}
    same(got, [before[r[0]] for r in got])
    # -how does not change the layers of unmatched features.
    go("-op", "intersects", "-how", "full", *both, "f.gpkg", "points.gpkg", "zones.gpkg")
    for layer in ("lonely", "empty_zones"):
        same(dump("f.gpkg", layer), dump("o.gpkg", layer))
    # Only one of the two layers, and with -pick.
    go("-op", "intersects", "-pick", "first", "-unmatched_join_layer", "e",
       "p.gpkg", "points.gpkg", "zones.gpkg")
    same(sorted(Layer("p.gpkg").layers), ["e", "points"])
    same([r[2] for r in Layer("p.gpkg", "e").rows], zones_alone)
    # with -agg the join fields are not in the main output
    for more in ((), ("-agg", "mean(v)"), ("-memory", "1M"), ("-threads", "1", "-batch", "3")):
        words = more if "-agg" in more else ("-agg", "count, sum(v)", *more)
        go("-op", "intersects", *words, "-unmatched_join_layer", "e",
           "-overwrite", "g.gpkg", "points.gpkg", "zones.gpkg")
        same(dump("g.gpkg", "e"), dump("p.gpkg", "e"), str(words))
        true("join_v" not in Layer("g.gpkg", "points").fields, "no fields of the join layer")


def check_unmatched_layers_as_files():
    inputs_and_zones()
    alone, zones_alone = unmatched_answer()
    both = ("-unmatched_layer", "lonely", "-unmatched_join_layer", "empty_zones")
    for end in ("shp", "csv"):
        words = ("-op", "intersects", *both, f"o.{end}", "points.gpkg", "zones.gpkg")
        go(*words)
        same(len(Layer(f"lonely.{end}").rows), len(alone))
        same([int(v or -99) for v in Layer(f"empty_zones.{end}").column("v")],
             [-99 if z["v"] is None else z["v"] for z in zones_alone])
        fails(*words, op=False, message="overwrite")
        succeeds("-overwrite", *words)
        same(len(Layer(f"lonely.{end}").rows), len(alone))
        # a file exists only under the name of the second layer
        os.remove(f"o.{end}")
        fails(*words, op=False, message=["lonely", "overwrite"])


def check_unmatched_layers_in_a_folder():
    inputs_and_zones()
    alone, zones_alone = unmatched_answer()
    go("-f", "ESRI Shapefile", "-op", "intersects", "-unmatched_layer", "lonely",
       "-unmatched_join_layer", "empty_zones", "out", "points.gpkg", "zones.gpkg")
    same(sorted(Layer("out").layers), ["empty_zones", "lonely", "points"])
    same(len(Layer("out", "lonely").rows), len(alone))
    same(len(Layer("out", "empty_zones").rows), len(zones_alone))


def check_unmatched_layers_in_a_dataset():
    inputs_and_zones()
    alone, _ = unmatched_answer()
    make("o.gpkg", [("POINT (0 0)", {"name": "keep"})], layer="other")
    words = ("-op", "intersects", "-unmatched_layer", "lonely", "o.gpkg", "points.gpkg", "zones.gpkg")
    go("-update", *words)
    same(sorted(Layer("o.gpkg").layers), ["lonely", "other", "points"])
    fails("-update", *words, op=False, message="already")
    fails("-update", "-nln", "p2", *words, op=False, message=["lonely", "already"])
    succeeds("-overwrite", *words)
    same(len(Layer("o.gpkg", "lonely").rows), len(alone))
    same(Layer("o.gpkg", "other").column("name"), ["keep"])
    go("-append", *words)
    same(len(Layer("o.gpkg", "lonely").rows), 2 * len(alone))


@once
def check_unmatched_layers_refused():
    inputs_file()
    zones_file()
    for out in ("o.fgb", "o.geojson", "/vsistdout/"):
        fails("-op", "intersects", "-unmatched_layer", "u", *(("-f", "GeoJSON") if out[0] == "/" else ()),
              out, "points.gpkg", "zones.gpkg", op=False, message="unmatched_layer")
    for words, message in (
        (("-unmatched_layer", "points"), "points"),
        (("-unmatched_layer", "u", "-unmatched_join_layer", "U"), "U"),
        (("-unmatched_layer", ""), "name"),
        (("-unmatched_join_layer", "u", "-how", "anti"), "anti"),
    ):
        fails("-op", "intersects", *words, "o.gpkg", "points.gpkg", "zones.gpkg", op=False, message=message)


# --- real layers -------------------------------------------------------------------


def check_real_layers():
    data = need_data("nyc_small.gpkg")
    names = Layer(data).layers
    a, b = "tracts", "taxi_zones"
    if a not in names or b not in names:
        raise Skip("other layers")
    go("-op", "intersects", "-pick", "largest_overlap", "-overlap", "area,percent", "-input_layer", a,
       "-join_layer", b, "-unmatched_join_layer", "alone", "o.gpkg", data, data)
    inputs = Layer(data, a)
    left = inputs.shapes()
    right = [(r[0], s) for r, s in zip(Layer(data, b).rows, Layer(data, b).shapes())]
    got = Layer("o.gpkg", a)
    same(len(got.rows), len(left))
    used, n_compared = set(), 0
    for shape, row in zip(left, got.rows):
        box = shape.GetEnvelope()
        found, is_known = [], True
        for fid, other in right:
            e = other.GetEnvelope()
            if e[0] > box[1] or e[1] < box[0] or e[2] > box[3] or e[3] < box[2]:
                continue
            try:
                if shape.Intersects(other):
                    found.append((area_of(shape.Intersection(other)), fid))
                    used.add(fid)
            except RuntimeError:  # GEOS cannot decide the pair
                is_known = False
        if not is_known:
            continue
        n_compared += 1
        if not found:
            same(row[2]["join_fid"], None)
            continue
        most = max(f[0] for f in found)
        near(row[2]["overlap_area"], most, 1e-6 * max(most, 1), f"FID {row[0]}")
    alone = {r[0] for r in Layer("o.gpkg", "alone").rows}
    true(not (alone & used), "what matches is not alone")
    true(n_compared > 100, f"a fair trial: {n_compared}")


# --- in place -------------------------------------------------------------------------


def check_in_place():
    far_zones_file()
    for rule in ("first", "max:v"):
        inputs_file("p.gpkg")
        words = ("-op", "intersects", "-pick", rule, "-name_count", "n", "-nearest_point_fields")
        go(*words, "-overwrite", "o.gpkg", "p.gpkg", "zones.gpkg")
        go(*words, "-in_place", "p.gpkg", "zones.gpkg")
        same(dump("p.gpkg"), dump("o.gpkg", "p"), rule)
        go(*words, "-in_place", "p.gpkg", "zones.gpkg")  # refreshed, not added again
        same(dump("p.gpkg"), dump("o.gpkg", "p"), rule)
    lines_file()
    go("-op", "nearest", "-bearing_field", "-overlap", "length", "-overwrite", "o.gpkg", "lines.gpkg", "zones.gpkg")
    go("-op", "nearest", "-bearing_field", "-overlap", "length", "-in_place", "lines.gpkg", "zones.gpkg")
    same(dump("lines.gpkg"), dump("o.gpkg", "lines"))
    fails("-op", "intersects", "-in_place", "lines.gpkg", "zones.gpkg", op=False, message="-pick")


def check_nothing_is_left_behind():
    inputs_file()
    zones_file()
    make("mixed.gpkg", [("POINT (980001 200001)", {"name": "a"})])
    # a format cannot store the fields, but that is noticed only when the join
    # side has been read
    rows = [("POLYGON ((0 0, 2e6 0, 2e6 2e6, 0 0))", {"l": ["a", "b"]})]
    make("lists.geojson", rows, (("l", ogr.OFTStringList),), srs=None)
    for words in (
        ("-op", "intersects", "-unmatched_layer", "a/b", "o.csv", "points.gpkg", "zones.gpkg"),
        ("-op", "intersects", "-unmatched_layer", "u", "missing/o.gpkg", "points.gpkg", "zones.gpkg"),
        ("-op", "intersects", "-max_pairs", 3, "-how", "full", "-unmatched_layer", "u",
         "o.gpkg", "points.gpkg", "zones.gpkg"),
        ("-op", "intersects", "-max_pairs", 3, "-unmatched_layer", "u", "o.shp", "points.gpkg", "zones.gpkg"),
    ):
        fails(*words, op=False)


if __name__ == "__main__":
    main(globals())
