"""The provider ogrjoin of QGIS Processing: parameters and the command lines that they
give, layers in every state, failures, and cancelling.  Answers are those of the
command."""

import glob
import xml.dom.minidom
import zipfile

from e2e import *
from headless_qgis import *

PICKUPS = 400
ALGORITHMS = (
    "conflatelayers",
    "coveredshares",
    "joinbylocation",
    "joinbylocationsummary",
    "joinbynearest",
    "joinbysimilarlines",
    "joinbysimilartext",
    "joinwithindistance",
    "joinwithintime",
    "placealonglines",
    "savelivelayer",
    "validatejoin",
)
ALONG = ("-along_field", "line_along", "-offset_field", "line_offset", "-side_field", "line_side")


def said(answer, kind):
    return [text for k, text in answer["said"] if k == kind]


def rows(path, layer=None):
    """Returns the rows of a layer without FIDs, which differ between formats."""
    found = Layer(path, layer)
    return [list(found.fields), *[[wkb, *v.values()] for _, wkb, v in found.rows]]


def by_command(*words):
    path = f"command{len(glob.glob('command*'))}.gpkg"
    succeeds(*words[:-2], path, *words[-2:])
    return rows(path)


# --- the plugin ------------------------------------------------------------


def check_qgis_process():
    """qgis_process lists the provider, describes and runs its algorithms."""
    city(PICKUPS)
    enable_plugins()
    r = process("--json", "list")
    same(r.returncode, 0, str(r))
    provider = json.loads(r.stdout)["providers"]["ogrjoin"]
    same(sorted(provider["algorithms"]), [f"ogrjoin:{a}" for a in ALGORITHMS])
    for name in ALGORITHMS:
        about = provider["algorithms"][f"ogrjoin:{name}"]
        true(len(about["short_description"]) > 20, f"{name} is described")
    r = process("--json", "run", "ogrjoin:joinbynearest", "--INPUT=city/pickups.gpkg",
                "--INPUT_2=city/lots.gpkg", "--MAX_DISTANCE=100", "--OUTPUT=o.gpkg")
    same(r.returncode, 0, str(r))
    found = json.loads(r.stdout)["results"]
    same(found["JOINED_COUNT"] + found["UNJOINABLE_COUNT"], PICKUPS, str(r))
    same(rows("o.gpkg"), by_command("-op", "nearest", "-max_distance", "100",
                                    "city/pickups.gpkg", "city/lots.gpkg"))
    r = process("run", "ogrjoin:joinbynearest", "--INPUT=city/pickups.gpkg",
                "--INPUT_2=city/lots.gpkg", "--EXTRA=-max_pairs 3", "--OUTPUT=p.gpkg")
    true(r.returncode != 0, str(r))
    true("max_pairs" in r.stdout + r.stderr, f"the command's own words: {r}")
    true(not os.path.exists("p.gpkg"), "nothing half-written")


def check_zip():
    """The plugin as installed from its zip file. All files are there, and it works.
    Icons are XML."""
    city(PICKUPS)
    archive = os.environ.get("OGRJOIN_QGIS_ZIP", "")
    if not os.path.exists(archive):
        raise Skip("no OGRJOIN_QGIS_ZIP, which the build makes")
    with zipfile.ZipFile(archive) as file:
        names = {name for name in file.namelist() if not name.endswith("/")}
        file.extractall("plugins")
    there = {"ogrjoin/LICENSE", "ogrjoin/README.md"}
    for where, _, found in os.walk(os.path.join(PLUGINS, "ogrjoin")):
        there |= {os.path.relpath(os.path.join(where, name), PLUGINS)
                  for name in found if not name.endswith(".pyc")}
    same(sorted(names), sorted(there), "files of the zip")
    for path in glob.glob("plugins/ogrjoin/icons/*.svg"):
        xml.dom.minidom.parse(path)
    results([("ogrjoin:joinbylocation", {"INPUT": "city/pickups.gpkg",
                                         "JOIN": "city/zones.gpkg",
                                         "OUTPUT": "o.gpkg"})],
            {"QGIS_PLUGINPATH": os.path.abspath("plugins")})
    same(len(Layer("o.gpkg").rows), PICKUPS)


# --- each algorithm runs its command ---------------------------------------


def check_algorithms_are_the_command():
    city(PICKUPS)
    p, lots, zones = "city/pickups.gpkg", "city/lots.gpkg", "city/zones.gpkg"
    near, loc = "ogrjoin:joinbynearest", "ogrjoin:joinbylocation"
    dist, total = "ogrjoin:joinwithindistance", "ogrjoin:joinbylocationsummary"
    text, lines = "ogrjoin:joinbysimilartext", "ogrjoin:joinbysimilarlines"
    streets, measured = "city/streets.gpkg", "measured.gpkg"
    gdal.VectorTranslate(measured, streets, options="-dim XYM")
    cases = [
        (near, {"INPUT": p, "INPUT_2": lots}, ["-op", "nearest", p, lots]),
        (near, {"INPUT": p, "INPUT_2": lots, "NEIGHBORS": 3, "MAX_DISTANCE": 80,
                "DISCARD_NONMATCHING": True, "FIELDS_TO_COPY": ["land_use", "fid"],
                "NEAREST_POINT": True},
         ["-op", "nearest", "-k", 3, "-max_distance", 80, "-how", "inner",
          "-join_select", "land_use", "-nearest_point_fields", p, lots]),
        (near, {"INPUT": p, "INPUT_2": streets, "ALONG": True},
         ["-op", "nearest", "-along_field", "line_along", "-offset_field", "line_offset",
          "-side_field", "line_side", p, streets]),
        (near, {"INPUT": lots, "INPUT_2": lots, "TIES": True, "PREFIX": "near_",
                "BACKEND": "geos", "THREADS": 1},
         ["-op", "nearest", "-ties", "all", "-prefix", "near_", lots, lots]),
        (near, {"INPUT": "city/stations.gpkg", "INPUT_2": p, "METRIC": 1,
                "MAX_DISTANCE": 300},
         ["-op", "nearest", "-metric", "sphere", "-max_distance", 300,
          "city/stations.gpkg", p]),
        (near, {"INPUT": "city/stations.gpkg", "INPUT_2": p, "METRIC": 2},
         ["-op", "nearest", "-max_distance", "infdeg", "city/stations.gpkg", p]),
        (loc, {"INPUT": p, "JOIN": zones}, [p, zones]),
        (loc, {"INPUT": lots, "JOIN": zones, "PREDICATE": [4], "METHOD": 2},
         ["-op", "overlaps", "-pick", "largest_overlap", lots, zones]),
        (loc, {"INPUT": lots, "JOIN": lots, "RELATE": "F***1****"},
         ["-relate", "F***1****", lots, lots]),
        (loc, {"INPUT": zones, "JOIN": p, "PREDICATE": 1, "METHOD": 6,
               "PICK_FIELD": "fare", "JOIN_FIELDS": ["fare", "hour"]},
         ["-op", "contains", "-pick", "max:fare", "-join_select", "fare,hour",
          zones, p]),
        (dist, {"INPUT": p, "JOIN": lots, "DISTANCE": 60,
                "DISCARD_NONMATCHING": True, "EXTRA": "-name_fid 'lot fid'"},
         ["-op", "dwithin", "-max_distance", 60, "-how", "inner", "-name_fid",
          "lot fid", p, lots]),
        (dist, {"INPUT": p, "JOIN": lots, "DISTANCE": 60, "METHOD": 3},
         ["-op", "dwithin", "-max_distance", 60, "-pick", "nearest", p, lots]),
        (dist, {"INPUT": p, "JOIN": lots, "DISTANCE": 60, "METHOD": 8},
         ["-op", "dwithin", "-max_distance", 60, "-one_to_one", p, lots]),
        ("ogrjoin:placealonglines", {"INPUT": p, "LINES": streets, "MAX_DISTANCE": 90},
         ["-op", "nearest", "-max_distance", 90, *ALONG, "-along_percent_field",
          "line_percent", p, streets]),
        ("ogrjoin:placealonglines",
         {"INPUT": p, "LINES": streets, "GEOMETRY": 2, "SEGMENT": True,
          "DISCARD_NONMATCHING": True, "FIELDS_TO_COPY": ["name"]},
         ["-op", "nearest", "-geometry", "connection", "-how", "inner", "-join_select",
          "name", "-segment_field", "line_segment", "-line_bearing_field", "line_bearing",
          *ALONG, "-along_percent_field", "line_percent", p, streets]),
        ("ogrjoin:placealonglines", {"INPUT": p, "LINES": measured, "BY_M": True},
         ["-op", "nearest", "-along", "m", *ALONG, "-along_percent_field", "line_percent",
          p, measured]),
        ("ogrjoin:coveredshares", {"INPUT": zones, "JOIN": lots},
         ["-op", "intersects", "-agg",
          "count, covered_area, covered_percent, covered_length", zones, lots]),
        (text, {"INPUT": zones, "FIELD": "name", "JOIN": zones, "FIELD_2": "name",
                "SIMILARITY": 0.3, "MEASURE": "dice", "DISCARD_NONMATCHING": True},
         ["-op", "similar", "-similar", "name:0.3", "-measure", "dice", "-how", "inner", zones,
          zones]),
        (text, {"INPUT": streets, "FIELD": "name", "JOIN": streets, "FIELD_2": "name",
                "SIMILARITY": 0.25, "MAX_DISTANCE": 2000, "BEST": True},
         ["-op", "dwithin", "-max_distance", 2000, "-similar", "name=name:1/4", "-pick",
          "most_similar", streets, streets]),
        (lines, {"INPUT": streets, "JOIN": streets, "DISTANCE": 3, "NEIGHBORS": 2,
                 "MAX_DISTANCE": 900},
         ["-op", "nearest", "-distance", "frechet", "-k", 2, "-max_distance", 900, streets,
          streets]),
        (lines, {"INPUT": streets, "JOIN": streets, "MAX_DISTANCE": 900, "DENSIFY": 250},
         ["-op", "nearest", "-distance", "hausdorff", "-max_distance", 900, "-densify", 250,
          streets, streets]),
        (total, {"INPUT": zones, "JOIN": p, "PREDICATE": 1, "JOIN_FIELDS": ["fare"],
                 "SUMMARIES": ["sum", "mean"]},
         ["-op", "contains", "-agg",
          "count, sum(fare) as fare_sum, mean(fare) as fare_mean", zones, p]),
        (total, {"INPUT": zones, "JOIN": lots, "DISCARD_NONMATCHING": True,
                 "AGGREGATES": "count, concat(land_use, '; ')"},
         ["-agg", "count, concat(land_use, '; ')", "-how", "inner", zones, lots]),
    ]
    jobs = [(name, {**words, "OUTPUT": f"o{i}.gpkg"})
            for i, (name, words, _) in enumerate(cases)]
    for i, (job, answer) in enumerate(zip(cases, results(jobs))):
        same(rows(f"o{i}.gpkg"), by_command(*job[2]), f"{job}")
        true(answer["percents"] and answer["percents"][-1] > 99, str(answer))
        kept = [k for k in answer["loaded"] if k.endswith(f"o{i}.gpkg")]
        same(kept, [] , "a path that is given is loaded by who gives it")


def check_times():
    """Joins within a distance and a time. The fields have unusual names."""
    need_qgis()
    day = "2026-11-29T{:02d}:{:02d}:00Z"
    for name, field, step in (("ships", "seen at", 10), ("calls", "said:at", 25)):
        write_places(f"{name}.geojson", field, [day.format(i * step // 60, i * step % 60)
                                                for i in range(12)])
    usual = {"INPUT": "ships.geojson", "FIELD": "seen at", "JOIN": "calls.geojson",
             "FIELD_2": "said:at", "DISTANCE": 2.5, "METRIC": 2}
    cases = [({"TIME": 30}, "30.0min"), ({"TIME": 1.5, "TIME_UNIT": 2, "METHOD": 3}, "1.5h"),
             ({"TIME": 0}, "0.0min"), ({"TIME": 90, "TIME_UNIT": 0}, "90.0s")]
    results([("ogrjoin:joinwithintime", {**usual, **more, "OUTPUT": f"t{i}.gpkg"})
             for i, (more, _) in enumerate(cases)])
    sizes = []
    for i, (more, window) in enumerate(cases):
        pick = ["-pick", "nearest"] if "METHOD" in more else []
        expected = by_command("-op", "dwithin", "-max_distance", "2.5deg", "-within_time",
                              f'"seen at"="said:at":{window}', *pick, "ships.geojson",
                              "calls.geojson")
        same(rows(f"t{i}.gpkg"), expected, str(more))
        sizes.append(len(expected))
    true(sizes[0] > sizes[2], f"more pairs in half an hour than at one time: {sizes}")


def write_places(path, field, values):
    """Makes points 1 degree apart with these values."""
    features = [{"type": "Feature", "properties": {field: value},
                 "geometry": {"type": "Point", "coordinates": [i, 0]}}
                for i, value in enumerate(values)]
    with open(path, "w") as file:
        json.dump({"type": "FeatureCollection", "features": features}, file)


def check_conflation():
    """The algorithm writes three layers to one file, like the command."""
    city(PICKUPS)
    a, b = "city/places_a.gpkg", "city/places_b.gpkg"
    (answer,) = results([("ogrjoin:conflatelayers", {
        "INPUT": a, "FIELD": "name", "JOIN": b, "FIELD_2": "name", "SIMILARITY": 0.5,
        "MAX_DISTANCE": 600, "OUTPUT": "o.gpkg", "LOAD": False})])
    succeeds("-op", "dwithin", "-max_distance", 600, "-similar", "name:0.5", "-one_to_one", "-how", "inner",
             "-geometry", "connection", "-nln", "pairs", "-unmatched_layer", "only_first",
             "-unmatched_join_layer", "only_second", "c.gpkg", a, b)
    for output in ("pairs", "only_first", "only_second"):
        same(rows("o.gpkg", output), rows("c.gpkg", output), output)
        true(answer["results"][output.upper()].endswith(f"o.gpkg|layername={output}"), str(answer))
    same(answer["results"]["JOINED_COUNT"], len(Layer("c.gpkg", "pairs").rows))


def check_fields_of_all_summaries():
    city(PICKUPS)
    (answer,) = results([("ogrjoin:joinbylocationsummary",
                          {"INPUT": "city/zones.gpkg", "JOIN": "city/lots.gpkg",
                           "OUTPUT": "o.gpkg"})])
    names = list(Layer("o.gpkg").fields)
    for name in ("count", "lot_id_sum", "land_use_mode", "use_code_stddev"):
        true(name in names, f"{name} in {names}")
    for name in ("land_use_sum", "fid_count", "land_use_concat"):
        true(name not in names, f"{name} not in {names}")
    same(answer["results"]["JOINED_COUNT"] > 0, True)


def check_rows_that_match_nothing():
    """Rows without a match are in a layer of their own, or are the only output."""
    city(PICKUPS)
    base = {"INPUT": "city/pickups.gpkg", "INPUT_2": "city/lots.gpkg",
            "MAX_DISTANCE": 5}
    answers = results([
        ("ogrjoin:joinbynearest", {**base, "DISCARD_NONMATCHING": True,
                                   "OUTPUT": "o.gpkg", "NON_MATCHING": "n.gpkg"}),
        ("ogrjoin:joinbynearest", {**base, "OUTPUT": None, "NON_MATCHING": "m.gpkg"}),
    ])
    joined, rest = Layer("o.gpkg"), Layer("n.gpkg")
    same(len(joined.rows), answers[0]["results"]["JOINED_COUNT"])
    same(len(rest.rows), answers[0]["results"]["UNJOINABLE_COUNT"])
    true(joined.rows and rest.rows, "both have rows")
    same(len(joined.rows) + len(rest.rows), PICKUPS)
    same(rows("m.gpkg"), rows("n.gpkg"))
    true("OUTPUT" not in answers[1]["results"], str(answers[1]["results"]))


def check_dialogs():
    """The dialog of each algorithm opens, and its widgets have the default values."""
    city(PICKUPS)
    p, lots = "city/pickups.gpkg", "city/lots.gpkg"
    cases = [("joinbynearest", {"INPUT": p, "INPUT_2": lots}, ["-op", "nearest"]),
             ("joinbylocation", {"INPUT": p, "JOIN": lots}, []),
             ("joinwithindistance", {"INPUT": p, "JOIN": lots, "DISTANCE": 30},
              ["-op", "dwithin", "-max_distance", 30]),
             ("validatejoin", {"INPUT": p, "JOIN": lots}, None),
             ("joinbylocationsummary", {"INPUT": lots, "JOIN": p}, None)]
    results([(f"ogrjoin:{name}", {**words, "OUTPUT": f"o{i}.gpkg"}, {"widgets": True})
             for i, (name, words, _) in enumerate(cases)])
    for i, (_, _, words) in enumerate(cases):
        if words is not None:
            same(rows(f"o{i}.gpkg"), by_command(*words, p, lots))


# --- layers as QGIS displays them ------------------------------------------


def answer_ids(path):
    return sorted(Layer(path).column("pickup_id"))


def check_what_qgis_shows_is_joined():
    """Selections, filters, limits, unsaved edits, virtual fields, and other providers.
    The command joins the features that the layer displays."""
    city(PICKUPS)
    p, lots = "city/pickups.gpkg", "city/lots.gpkg"
    half = {"layer": p, "select": '"pickup_id" % 2 = 0', "selected": True}
    states = [
        ("all", {"layer": p}, lambda i: True, None),
        ("selected", half, lambda i: i % 2 == 0, "selected"),
        ("none selected", {"layer": p, "selected": True}, lambda i: False, "selected"),
        ("filter", {"layer": p, "subset": "pickup_id < 100"}, lambda i: i < 100, None),
        ("select filter", {"layer": p, "subset":
                           "SELECT * FROM pickups WHERE pickup_id < 100"},
         lambda i: i < 100, "SELECT"),
        ("both", {**half, "subset": "pickup_id < 100"},
         lambda i: i % 2 == 0 and i < 100, "selected"),
        ("edits", {"layer": p, "edit": "pickup_id > 10"}, lambda i: i <= 10, "edits"),
        ("limit", {"layer": p, "limit": 7}, None, "limited"),
        ("virtual", {"layer": p, "virtual": "twice"}, lambda i: True, "virtual"),
    ]
    jobs = [("ogrjoin:joinbynearest", {"INPUT": layer, "INPUT_2": lots,
                                       "OUTPUT": f"o{i}.gpkg"})
            for i, (_, layer, _, _) in enumerate(states)]
    ids = sorted(Layer(p).column("pickup_id"))
    whole = {r[2]["pickup_id"]: (r[0], r[1], r[2]["join_fid"], r[2]["join_distance"])
             for r in Layer(by_path("-op", "nearest", p, lots)).rows}
    for i, ((name, _, is_in, why), answer) in enumerate(zip(states, results(jobs))):
        copied = [t for t in said(answer, "info") if " is copied: " in t]
        same(len(copied), 0 if why is None else 1, f"{name}: {answer['said']}")
        true(why is None or why in copied[0], f"{name}: {copied}")
        found = Layer(f"o{i}.gpkg")
        if is_in is None:
            same(len(found.rows), 7, name)
        else:
            same(answer_ids(f"o{i}.gpkg"), [x for x in ids if is_in(x)], name)
        for fid, wkb, v in found.rows:
            same((fid, wkb, v["join_fid"], v["join_distance"]),
                 whole[v["pickup_id"]], f"{name}: FID, geometry, match")
        same("twice" in found.fields, name == "virtual", name)


def by_path(*words):
    path = f"path{len(glob.glob('path*'))}.gpkg"
    same(run(*words[:-2], path, *words[-2:]).rc, 0)
    return path


def check_join_side_as_qgis_shows_it():
    """The join layer, too, is joined as it is displayed. It keeps its FIDs."""
    city(PICKUPS)
    p, lots = "city/pickups.gpkg", "city/lots.gpkg"
    jobs = [("ogrjoin:joinbynearest", {"INPUT": p, "INPUT_2": layer,
                                       "OUTPUT": f"o{i}.gpkg"})
            for i, layer in enumerate([
                {"layer": lots, "select": '"lot_id" % 3 = 0', "selected": True},
                {"layer": lots, "subset": '"lot_id" % 3 = 0'},
                {"layer": lots, "edit": '"lot_id" % 3 <> 0'}])]
    results(jobs)
    expected = rows(by_path("-op", "nearest", "-join_where", "lot_id % 3 = 0", p, lots))
    for i in range(3):
        same(rows(f"o{i}.gpkg"), expected, str(jobs[i]))


def check_fid_columns():
    """FID columns of any name do not become fields of the command. Copies have the FIDs
    of the layer."""
    need_qgis()
    wkts = random_points(30)
    make("p.gpkg", [(w, {"name": f"p{i}"}, 3 * i) for i, w in enumerate(wkts)],
         kind=ogr.wkbPoint, lco=["FID=gid"])
    fields = (("fid", ogr.OFTString), ("use", ogr.OFTInteger))
    make("l.gpkg", [(w, {"fid": "no FID", "use": i}, 100 - i)
                    for i, w in enumerate(random_polygons(20))], fields=fields,
         lco=["FID=key"])
    words = {"INPUT_2": "l.gpkg", "FIELDS_TO_COPY": ["key", "fid"]}
    results([
        ("ogrjoin:joinbynearest", {**words, "INPUT": "p.gpkg", "OUTPUT": "a.gpkg"}),
        ("ogrjoin:joinbynearest", {
            "INPUT": {"layer": "p.gpkg", "select": "1 = 1", "selected": True},
            "INPUT_2": {"layer": "l.gpkg", "edit": "use > 30", "virtual": "v"},
            "FIELDS_TO_COPY": ["key", "fid"], "OUTPUT": "b.gpkg"}),
    ])
    expected = by_path("-op", "nearest", "-join_select", "fid", "p.gpkg", "l.gpkg")
    for path in ("a.gpkg", "b.gpkg"):
        same(Layer(path).rows, Layer(expected).rows, path)


def check_layers_of_other_providers():
    """Delimited text and memory layers are copied."""
    city(PICKUPS)
    with open("points.csv", "w", encoding="utf-8") as file:
        file.write("name,x,y\n")
        for i in range(5):
            file.write(f"p{i},{990000 + 100 * i},{199000 + 50 * i}\n")
    uri = (f"file://{os.path.abspath('points.csv')}?delimiter=,&xField=x&yField=y"
           "&crs=EPSG:2263")
    memory = "point?crs=epsg:2263&field=a:int"
    answers = results([
        ("ogrjoin:joinbynearest", {
            "INPUT": {"layer": uri, "provider": "delimitedtext"},
            "INPUT_2": "city/lots.gpkg", "OUTPUT": "o.gpkg"}),
        ("ogrjoin:joinbynearest", {
            "INPUT": {"layer": memory, "provider": "memory"},
            "INPUT_2": "city/lots.gpkg", "OUTPUT": "e.gpkg"}),
    ])
    same(Layer("o.gpkg").column("name"), [f"p{i}" for i in range(5)])
    true(None not in Layer("o.gpkg").column("join_fid"), "all have a lot")
    same(len(Layer("e.gpkg").rows), 0)
    for answer in answers:
        true(any("not read by GDAL" in t for t in said(answer, "info")), str(answer))


def check_crs_set_in_qgis():
    """A layer whose CRS is changed in QGIS is joined in the new CRS."""
    city(PICKUPS)
    make("bare.gpkg", [(wkt, {"name": "x"}) for wkt in
                       random_points(20, x0=988000, y0=198000)], srs="EPSG:32618")
    results([("ogrjoin:joinbynearest", {
        "INPUT": {"layer": "bare.gpkg", "crs": "EPSG:2263"},
        "INPUT_2": "city/lots.gpkg", "OUTPUT": "o.gpkg"})])
    same(rows("o.gpkg"), by_command("-op", "nearest", "-s_srs", "EPSG:2263",
                                    "bare.gpkg", "city/lots.gpkg"))


def check_datasets_of_several_layers():
    """The layer that is chosen in QGIS is joined. A destination keeps its other
    layers."""
    city(PICKUPS)
    for name in ("pickups", "lots", "zones"):
        subprocess.run(["ogr2ogr", "-update", "-append", "all.gpkg",
                        f"city/{name}.gpkg"] if os.path.exists("all.gpkg") else
                       ["ogr2ogr", "all.gpkg", f"city/{name}.gpkg"], check=True)
    make("d.gpkg", [("POINT (0 0)", {"name": "kept"})], layer="kept")
    answers = results([
        ("ogrjoin:joinbylocation", {"INPUT": "all.gpkg|layername=lots",
                                    "JOIN": "all.gpkg|layername=zones",
                                    "OUTPUT": "o.gpkg"}),
        ("ogrjoin:joinbylocation", {"INPUT": "all.gpkg",
                                    "JOIN": "all.gpkg|layername=zones",
                                    "OUTPUT": "d.gpkg"}),
    ])
    same(rows("o.gpkg"), by_command("city/lots.gpkg", "city/zones.gpkg"))
    same(sorted(Layer("d.gpkg").layers), ["d", "kept"])
    same(rows("d.gpkg", "d"), by_command("city/pickups.gpkg", "city/zones.gpkg"))
    true(answers[1]["results"]["OUTPUT"].endswith("d.gpkg|layername=d"), str(answers))


def check_destinations():
    """The extension selects the format. Temporary outputs are loaded, and an old file
    is replaced."""
    city(PICKUPS)
    base = {"INPUT": "city/pickups.gpkg", "JOIN": "city/zones.gpkg"}
    outputs = ["o.gpkg", "o.fgb", "o.shp", "o.geojson", "o.csv", "o.gpkg"]
    answers = results(
        [("ogrjoin:joinbylocation", {**base, "OUTPUT": o}) for o in outputs] +
        [("ogrjoin:joinbylocation", {**base, "OUTPUT": o})
         for o in ("TEMPORARY_OUTPUT", "memory:")])
    for path in outputs:
        same(len(Layer(path).rows), PICKUPS, path)
    for answer in answers[-2:]:
        path = answer["results"]["OUTPUT"]
        true(path.endswith(".gpkg") and os.path.dirname(path), str(answer))


def check_odd_names():
    """Unusual names of files, layers and fields. No shell interprets them."""
    need_qgis()
    field = 'ä, "b" $(x)'
    fields = ((field, ogr.OFTReal), ("plain", ogr.OFTString))
    shapes = random_polygons(6)
    shapes = random_polygons(6)
    make("a b'c;$(touch x).gpkg", [(s, {field: i * 1.5, "plain": f"l{i}"})
                                   for i, s in enumerate(shapes)], fields=fields,
         layer="a layer, 'of' \"some\" name")
    points_file("päron.gpkg")
    join_ds = "a b'c;$(touch x).gpkg"
    results([
        ("ogrjoin:joinbynearest", {"INPUT": "päron.gpkg", "INPUT_2": join_ds,
                                   "FIELDS_TO_COPY": [field], "OUTPUT": "å o.gpkg"}),
        ("ogrjoin:joinbylocationsummary", {"INPUT": join_ds, "JOIN": join_ds,
                                           "JOIN_FIELDS": [field],
                                           "OUTPUT": "s.gpkg"}),
    ])
    found = Layer("å o.gpkg")
    true(field in found.fields and "plain" not in found.fields, str(found.fields))
    true(f"{field}_sum" in Layer("s.gpkg").fields, str(Layer("s.gpkg").fields))
    true(not os.path.exists("x"), "no shell")


# --- errors ------------------------------------------------------------------


def check_failures():
    """The algorithm shows the command's error line. No file is left behind."""
    city(PICKUPS)
    p, lots = "city/pickups.gpkg", "city/lots.gpkg"
    with open("broken.gpkg", "w", encoding="utf-8") as file:
        file.write("no database")
    cases = [
        ("ogrjoin:joinbynearest", {"INPUT": p, "INPUT_2": lots,
                                   "EXTRA": "-no_such_option"}, "no_such_option"),
        ("ogrjoin:joinbynearest", {"INPUT": p, "INPUT_2": lots,
                                   "EXTRA": "'open quote"}, "extra options"),
        ("ogrjoin:joinbynearest", {"INPUT": "city/stations.gpkg", "INPUT_2": lots},
         "degrees"),
        ("ogrjoin:joinbynearest", {"INPUT": "nothing.gpkg", "INPUT_2": lots},
         "could not load source layer"),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots, "METHOD": 6},
         "needs the field"),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots, "PREDICATE": [3, 5]},
         "one predicate"),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots, "RELATE": "TTT"},
         "relate"),
        ("ogrjoin:joinbylocationsummary", {"INPUT": p, "JOIN": lots,
                                           "AGGREGATES": "sum(nothing)"}, "nothing"),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots,
                                    "OUTPUT": "/no/such/folder/o.gpkg"}, ""),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots, "OUTPUT": p}, ""),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots, "OUTPUT": None},
         "choose at least one"),
        ("ogrjoin:joinbylocation", {"INPUT": p, "JOIN": lots, "OUTPUT": "o.gpkg",
                                    "NON_MATCHING": "o.gpkg"}, "one file"),
    ]
    before = listing("city")
    jobs = [(name, {"OUTPUT": f"o{i}.gpkg", **words})
            for i, (name, words, _) in enumerate(cases)]
    for case, answer in zip(cases, session(jobs)):
        true(not answer["ok"] and answer["error"], f"{case}: {answer}")
        true(case[2] in answer["error"].lower(), f"{case}: {answer['error']}")
    same(glob.glob("o*.gpkg"), [], "nothing is left")
    same(listing("city"), before, "the layers are as they were")


def program(name, text):
    with open(name, "w", encoding="latin-1") as file:
        file.write(text)
    os.chmod(name, 0o755)
    return os.path.abspath(name)


def with_command(path, algorithm="ogrjoin:joinbynearest", **more):
    words = {"INPUT": "city/pickups.gpkg", "INPUT_2": "city/lots.gpkg",
             "OUTPUT": "o.gpkg", **more}
    return (algorithm, words, {"env": {"OGRJOIN_COMMAND": path}})


def check_no_command():
    """The setting names no program, a file that cannot run, or a program that crashes."""
    city(PICKUPS)
    crash = program("crash", "#!/bin/sh\necho 'ERROR 1: on the way down' >&2\n"
                    "kill -SEGV $$\n")
    silent = program("silent", "#!/bin/sh\nkill -SEGV $$\n")
    cases = [
        (with_command("/no/such/ogrjoin"), "cannot execute"),
        (with_command("/no/such/ogrjoin"), "/no/such/ogrjoin"),
        (with_command("/bin/false"), "ended with the code 1 and gave no reason"),
        (with_command(crash), "on the way down"),
        (with_command(silent), "ended by the signal 11:"),
        (with_command(program("none", "\x7fELF, not")), "cannot be started"),
    ]
    nowhere = with_command("")
    nowhere[2]["env"]["PATH"] = "/no/such/folder"
    cases.append((nowhere, "not in the PATH"))
    setting = with_command("/bin/false")
    setting[2]["setting"] = silent
    cases.append((setting, "ended by the signal 11:"))
    for (_, message), answer in zip(cases, session([job for job, _ in cases])):
        true(not answer["ok"] and message in answer["error"], f"{message}: {answer}")
    true(not os.path.exists("o.gpkg"), "no output")


def check_pieces_of_output():
    """Progress and messages arrive in pieces of any size, in UTF-8."""
    city(PICKUPS)
    slow = program("slow", r"""#!/bin/bash
printf '0...1'; sleep 0.1; printf '0...2'; sleep 0.1; printf '0..'; sleep 0.1
printf 'Warning 1: caf\xc3' >&2; sleep 0.1; printf '\xa9\n' >&2
printf '.30...40...50...60...70...80...90...100 - done.\n'
printf 'ERROR 1: first\nERROR 1: the last' >&2
exit 1
""")
    (answer,) = session([with_command(slow)])
    same(answer["error"], "the last")
    same(said(answer, "warning"), ["caf\u00e9"])
    percents = answer["percents"]
    same(percents, sorted(percents), "progress never goes back")
    same(percents[-1], 100.0, "the end of the bar")
    true(any(5 < x < 30 for x in percents), f"on the way: {percents}")


ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT p.geom, c.x FROM c CROSS JOIN pickups p"
)


def check_cancel():
    """Cancelling ends the command, which removes its temporary files."""
    city(PICKUPS)
    before = listing()
    words = {"INPUT": "city/pickups.gpkg", "INPUT_2": "city/lots.gpkg"}
    endless = {**words, "EXTRA": f"-sql '{ENDLESS}'", "OUTPUT": "o.gpkg",
               "NON_MATCHING": "n.gpkg"}
    for more in ({}, {"task": True}):
        answer, after = session([
            ("ogrjoin:joinbynearest", endless, {"cancel_after": 1.5, **more}),
            ("ogrjoin:joinbynearest", {**words, "OUTPUT": "later.gpkg"}, more)])
        true(answer["cancelled"] and answer["seconds"] < 20, str(answer))
        same((answer["error"], answer["results"]), ("", {}))
        true(after["ok"], f"the next run works: {after}")
        os.remove("later.gpkg")
        same(listing(), before, "left behind")


def check_background():
    """The algorithm runs in a thread, as in the toolbox."""
    city(PICKUPS)
    words = {"INPUT": {"layer": "city/pickups.gpkg", "select": "pickup_id < 50",
                       "selected": True}, "INPUT_2": "city/lots.gpkg"}
    good, bad = session([
        ("ogrjoin:joinbynearest", {**words, "OUTPUT": "o.gpkg"}, {"task": True}),
        ("ogrjoin:joinbynearest", {**words, "OUTPUT": "p.gpkg", "EXTRA": "-nonsense"},
         {"task": True})])
    true(good["ok"] and good["percents"][-1] == 100.0, str(good))
    same(len(Layer("o.gpkg").rows), 49)
    true(not bad["ok"] and any("-nonsense" in t for t in said(bad, "error")), str(bad))


# --- validate ----------------------------------------------------------------


def check_validate():
    city(PICKUPS)
    p, lots = "city/pickups.gpkg", "city/lots.gpkg"
    base = {"INPUT": p, "JOIN": lots}
    answers = results([
        ("ogrjoin:validatejoin", {**base, "NEIGHBORS": 2}),
        ("ogrjoin:validatejoin", {**base, "OPERATION": 1, "MAX_DISTANCE": 50,
                                  "REPORT": "r.gpkg"}),
        ("ogrjoin:validatejoin", {**base, "OPERATION": 2, "REFERENCE": "geos_sorted"}),
        ("ogrjoin:validatejoin", {"INPUT": "city/stations.gpkg", "JOIN": p,
                                  "METRIC": 1}),
    ])
    for answer in answers:
        found = answer["results"]
        true(found["ROWS"] > 0 and found["PAIRS"] > 0, str(answer))
        same((found["DIFFERENT"], found["AGREES"]), (0, True), str(answer))
    same(len(Layer("r.gpkg").rows), 0)
    (answer,) = session([("ogrjoin:validatejoin", {**base, "OPERATION": 1})])
    true("maximum distance" in answer["error"], answer["error"])
    library = os.environ.get("LYING_GEOS", "")
    if not os.path.exists(library):
        raise Skip("no LYING_GEOS, which the build makes of lying_geos.c")
    # the wrong GEOS as backend, validated against the backend cpu
    lies = program("lies", f"""#!/bin/bash
args=()
for a in "$@"; do
    if [ "$a" = -validate ]; then args+=(-backend geos -validate cpu); else args+=("$a"); fi
done
LD_PRELOAD={library} exec {OGRJOIN} "${{args[@]}}"
""")
    strict, lenient = session([
        with_command(lies, "ogrjoin:validatejoin", JOIN=lots, REPORT="d.gpkg"),
        with_command(lies, "ogrjoin:validatejoin", JOIN=lots, REPORT="e.gpkg",
                     FAIL=False),
    ])
    true("differ from those of the reference" in strict["error"], str(strict))
    true("d.gpkg" in strict["error"], strict["error"])
    found = lenient["results"]
    true(lenient["ok"] and found["DIFFERENT"] > 0 and not found["AGREES"], str(lenient))
    same(len(Layer("e.gpkg").rows) > 0, True)


if __name__ == "__main__":
    main(globals())
