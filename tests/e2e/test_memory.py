"""-memory: with the join side in tiles on disk, the output equals that of the join in
memory, byte for byte.  No file is left behind."""

import signal

from e2e import *
from test_proof import lying

FIELDS = (
    ("jid", ogr.OFTInteger),
    ("big", ogr.OFTInteger64),
    ("real", ogr.OFTReal),
    ("single", ogr.OFTReal, ogr.OFSTFloat32),
    ("yes", ogr.OFTInteger, ogr.OFSTBoolean),
    ("text", ogr.OFTString),
    ("day", ogr.OFTDate),
    ("moment", ogr.OFTDateTime),
    ("bytes", ogr.OFTBinary),
    ("code", ogr.OFTInteger),
    ("reach", ogr.OFTReal),
)
LISTS = (
    ("ints", ogr.OFTIntegerList),
    ("longs", ogr.OFTInteger64List),
    ("reals", ogr.OFTRealList),
    ("texts", ogr.OFTStringList),
)


def made_once(path):
    """Decorator for functions that make a layer. A second call with equal arguments
    writes the bytes of the first again."""
    def of(maker):
        made = {}

        def write(path=path, **how):
            key = (path, *how.items())
            if key not in made:
                maker(path, **how)
                made[key] = contents(path)
            with open(path, "wb") as file:
                file.write(made[key])

        return write

    return of


def values_of(r, i):
    def maybe(value):
        return None if r.random() < 0.15 else value

    return {
        "jid": i,
        "big": maybe(2**60 + i),
        "real": maybe(r.uniform(-1, 1)),
        "single": maybe(float(r.randint(-9, 9)) / 4),
        "yes": maybe(i % 2),
        # "" is not NULL; the long texts exceed the usual size of a record
        "text": maybe(["", "a", "ü — ß", "long " * 200, '"quoted", \n'][i % 5]),
        "day": maybe(f"20{i % 90 + 10}/0{i % 9 + 1}/1{i % 9}"),
        "moment": maybe(f"2024/01/0{i % 9 + 1} 1{i % 9}:20:3{i % 9}.125"),
        "code": maybe(i % 6),
        "reach": maybe([0.0, 5.0, 20.0, -1.0][i % 4]),
    }


def with_bytes(path, layer):
    """Sets binary values. The bindings support them only in this way."""
    dataset = gdal.OpenEx(path, gdal.OF_UPDATE | gdal.OF_VECTOR)
    source = dataset.GetLayer(layer)
    source.StartTransaction()
    for feature in list(source):
        if feature.GetFID() % 3:
            feature.SetFieldBinaryFromHexString("bytes", "00FF" * (feature.GetFID() % 20))
            source.SetFeature(feature)
    source.CommitTransaction()


@made_once("points.gpkg")
def join_points(path, n=6000):
    """Makes points. Every fourth is at the place of another, so that there are ties."""
    r = random.Random(41)
    rows, places = [], []
    for i in range(n):
        if i % 4 == 3:
            x, y = r.choice(places)
        else:
            x, y = 980000 + r.uniform(0, 1000), 200000 + r.uniform(0, 1000)
        places.append((x, y))
        shape = f"POINT ({x!r} {y!r})"
        if i % 100 == 50:
            shape = None if i % 200 == 50 else "POINT EMPTY"
        rows.append((shape, values_of(r, i)))
    make(path, rows, FIELDS, kind=ogr.wkbPoint)
    with_bytes(path, "points")


@made_once("polygons.gpkg")
def join_polygons(path, n=3000):
    r = random.Random(42)
    rows = [(p, values_of(r, i)) for i, p in enumerate(random_polygons(n, seed=43))]
    rows[7] = (None, rows[7][1])
    make(path, rows, FIELDS, kind=ogr.wkbMultiPolygon)
    with_bytes(path, "polygons")


@made_once("input.gpkg")
def input_points(path, n=300):
    r = random.Random(44)
    rows = [(p, {"id": i, "code": i % 6 if i % 9 else None, "far": [0.0, 4.0, 25.0, None][i % 4]})
            for i, p in enumerate(random_points(n, seed=45, size=1100.0))]
    rows.append((None, {"id": n, "code": 1, "far": 1.0}))
    # at the place of a join feature
    for shape in Layer("points.gpkg").shapes()[:40]:
        if shape is not None and not shape.IsEmpty():
            rows.append((shape, {"id": len(rows), "code": 2, "far": 3.0}))
    r.shuffle(rows)
    make(path, rows, (("id", ogr.OFTInteger), ("code", ogr.OFTInteger), ("far", ogr.OFTReal)), kind=ogr.wkbPoint)


@made_once("zones.gpkg")
def input_polygons(path, n=60):
    rows = [(p, {"id": i, "code": i % 6, "far": 1.5 * (i % 7)}) for i, p in enumerate(random_polygons(n, seed=46))]
    make(path, rows, (("id", ogr.OFTInteger), ("code", ogr.OFTInteger), ("far", ogr.OFTReal)), kind=ogr.wkbMultiPolygon)


def go(*words, **how):
    return succeeds(*words, "-json_summary", "s.json", **how)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def compare(words, left, right, memory="300K", least=2):
    """Checks that the outputs with and without -memory have equal bytes. The join side
    must have been in at least `least` tiles. Returns the number of tiles."""
    if os.path.exists("plain.fgb"):
        os.remove("plain.fgb")  # without rows it could not be overwritten
    out = ("-lco", "SPATIAL_INDEX=NO", "-overwrite")
    go(*words, *out, "plain.fgb", left, right)
    same(summary("s.json")["tiles"], 0, "without -memory")
    plain = contents("plain.fgb")
    r = go(*words, "-memory", memory, *out, "tiled.fgb", left, right)
    n = summary("s.json")["tiles"]
    true(n >= least, f"{n} tiles, {least} expected: {r}")
    true(f"the join side in {n} tiles" in r.err, f"says so: {r}")
    # The name of the layer is in the file.
    if contents("tiled.fgb").replace(b"tiled", b"plain") != plain:
        os.rename("plain.fgb", "p.fgb")
        os.rename("tiled.fgb", "t.fgb")
        same(dump("t.fgb"), dump("p.fgb"), f"{words} {left} {right}")
        true(False, f"the same rows, but not the same bytes: {words} {left} {right}")
    os.remove("tiled.fgb")
    return n


JOINS = (
    ("-op", "nearest"),
    ("-k", 5),
    ("-k", 3, "-ties", "all"),
    ("-op", "nearest", "-ties", "all", "-max_distance", 10),
    ("-op", "nearest", "-min_distance", 5, "-k", 2),
    ("-op", "nearest", "-on", "code", "-k", 2),
    ("-op", "dwithin", "-max_distance", 12),
    ("-op", "dwithin", "-max_distance", 30, "-on", "code=code"),
    ("-op", "dwithin", "-max_distance", 15, "-min_distance", 3),
    ("-max_distance_field", "far"),
    ("-join_max_distance_field", "reach"),
    ("-op", "intersects"),
    ("-op", "within"),
    ("-op", "covers"),
    ("-op", "window"),
    ("-op", "intersects", "-how", "inner", "-on", "code"),
    ("-op", "intersects", "-how", "semi"),
    ("-op", "intersects", "-how", "anti"),
    ("-op", "dwithin", "-max_distance", 5, "-how", "anti"),
    ("-op", "equals", "-how", "inner"),
    ("-op", "bbox", "-exclude", "field=code"),
    ("-op", "intersects", "-exclude", "same_geometry"),
    ("-op", "intersects", "-name_count", "n"),
    ("-op", "within", "-centroid_of", "join"),
    ("-op", "intersects", "-point_on_surface_of", "both"),
    ("-op", "intersects", "-invalid", "fix"),
)


def check_same_bytes():
    join_points()
    join_polygons()
    input_points()
    input_polygons()
    sides = [(a, b) for a in ("input.gpkg", "zones.gpkg") for b in ("points.gpkg", "polygons.gpkg")]
    for i, words in enumerate(JOINS):
        for left, right in sides if IS_LONG else [sides[i % 4]]:
            compare(words, left, right)
    compare(("-op", "disjoint", "-limit", 20, "-how", "inner"), "input.gpkg", "polygons.gpkg")


def named_places(path, seed, n):
    """Makes points whose names recur with variations and numbers. The first rows have
    no vectors. Returns path."""
    r = random.Random(seed)
    names = ["Old Mill Inn", "Café Müller", "North Star", "the star of the north", "Mill", None, "--"]

    def name():
        text = r.choice(names) or ""
        return text + r.choice(("", " & Co", f" {r.randint(1, 40)}")) if text != "--" else text

    rows = [(None if r.random() < 0.05 else f"POINT ({r.randint(0, 99)} {r.randint(0, 99)})",
             {"id": i, "name": name(), "street": f"{r.randint(1, 9)} Elm Street",
              "p": None if i < n / 2 and seed > 1 else r.randint(0, 40) / 4,
              "v": None if i < n / 2 and seed > 1 else f"[{r.randint(0, 9)}, {r.randint(0, 9)}, {r.random()}]"})
            for i in range(n)]
    kind = ogr.wkbPoint if path.endswith(".gpkg") else ogr.wkbNone
    return make(path, [(None if kind == ogr.wkbNone else shape, x) for shape, x in rows],
                (("id", ogr.OFTInteger), ("name", ogr.OFTString), ("street", ogr.OFTString), ("p", ogr.OFTReal),
                 ("v", ogr.OFTString)), None if kind == ogr.wkbNone else "EPSG:2263", kind)


def check_texts_and_vectors():
    """Token sets and vectors are stored in the tiles, too. All tiles share one
    numbering of tokens."""
    a, b = named_places("a.gpkg", 1, 300), named_places("b.gpkg", 2, 3000)
    dwithin = ("-op", "dwithin", "-max_distance", 9)
    for words in (
        (*dwithin, "-similar", "name:0.5"),
        (*dwithin, "-similar", "name:0.4", "-similar", "name+street:1/3", "-tokens", "words"),
        (*dwithin, "-similar", "name:0.4", "-one_to_one", "-how", "inner"),
        (*dwithin, "-similar", "name:0.4", "-pick", "most_similar", "-batch", 77),
        ("-op", "nearest", "-k", 2, "-similar", "name:0.6"),
        ("-similar", "name:0.8", "-how", "inner"),
        ("-similar", "name", "-k", 3, "-measure", "overlap"),
        ("-similar", "name", "-k", 2, "-ties", "all", "-tokens", "2grams"),
        ("-similar", "name:0.2", "-k", 4, "-max_distance", 12),
        ("-similar", "name+street:0.7", "-on", "street", "-validate"),
        (*dwithin, "-vector", "p", "-max_difference", 1),
        ("-vector", "v", "-k", 3),
        ("-vector", "v", "-norm", "cosine", "-max_difference", 0.01, "-similar", "name:0.5"),
    ):
        compare(words, a, b, "600K" if "-similar" in words else "200K")
    compare((*dwithin, "-similar", "name:0.6", "-unordered_pairs", "-how", "inner"), b, b, "600K")
    rows_of = []
    for memory in ((), ("-memory", "300K")):
        go("-similar", "name:0.8", "-k", 2, "-how", "inner", *memory, "-overwrite", "o.csv", named_places("a.csv", 3, 200),
           named_places("b.csv", 4, 3000))
        same(summary("s.json")["tiles"] > 1, bool(memory))
        rows_of.append([v for _, _, v in rows("o.csv")])
    same(rows_of[1], rows_of[0], "layers without geometry")
    true(len(rows_of[0]) > 100, f"{len(rows_of[0])} rows")


def check_sizes_batches_and_threads():
    join_points()
    join_polygons()
    input_points()
    n = []
    for memory in ("64K", "200K", "500k", "1M"):
        n.append(compare(("-op", "intersects"), "input.gpkg", "polygons.gpkg", memory))
    same(n, sorted(n, reverse=True), "more memory, no more tiles")
    true(n[0] > n[-1], "more memory, fewer tiles")
    for words in (("-batch", 7), ("-batch", 1, "-limit", 50), ("-threads", 1), ("-threads", 5, "-batch", 33)):
        compare(("-k", 4, *words), "input.gpkg", "points.gpkg")
        compare(("-op", "dwithin", "-max_distance", 9, *words), "input.gpkg", "polygons.gpkg")
    # A join side that fits into memory is not put into tiles, and no message mentions tiles.
    r = go("-k", 2, "-memory", "1G", "-overwrite", "o.fgb", "input.gpkg", "points.gpkg")
    same(summary("s.json")["tiles"], 0)
    true("tiles" not in r.err, f"{r}")


def check_backends():
    join_points()
    input_points()
    go("-k", 3, "-lco", "SPATIAL_INDEX=NO", "o.fgb", "input.gpkg", "points.gpkg")
    want = dump("o.fgb")
    for backend in ("cpu", "geos", "geos_sorted", "spatialindex"):
        go("-k", 3, "-memory", "300K", "-backend", backend, "-lco", "SPATIAL_INDEX=NO",
           "-overwrite", "o.fgb", "input.gpkg", "points.gpkg")
        true(summary("s.json")["tiles"] > 1, backend)
        same(dump("o.fgb"), want, backend)


def check_lists_and_dates():
    """The join side is a GeoJSON with lists. The output has them, too."""
    join_points()
    input_points()
    r = random.Random(47)
    rows = []
    for i, (_, wkb, _) in enumerate(Layer("points.gpkg").rows):
        lists = {}
        if i % 5:
            lists = {"ints": [i, -i], "longs": [2**40 + i], "reals": [i / 4.0, 1e300], "texts": ["a", "", "ü" * (i % 50)]}
        values = {**values_of(r, i), **lists}
        rows.append((ogr.CreateGeometryFromWkb(wkb) if wkb else None, values))
    fields = tuple(f for f in FIELDS if f[0] != "bytes") + LISTS
    make("lists.geojson", rows, fields)
    for words in (("-k", 3), ("-op", "dwithin", "-max_distance", 20)):
        found = []
        for memory in ((), ("-memory", "300K")):
            go(*words, *memory, "-overwrite", "o.geojson", "input.gpkg", "lists.geojson")
            found.append(contents("o.geojson"))
            same(summary("s.json")["tiles"] > 1, bool(memory))
        true(found[0] == found[1], f"{words}: the same text")
        compare(words, "input.gpkg", "lists.geojson")


def check_selects_with_repeated_fids():
    join_points()
    input_points()
    twice = "SELECT * FROM points UNION ALL SELECT * FROM points"
    for words in (("-k", 3), ("-k", 2, "-ties", "all"), ("-op", "dwithin", "-max_distance", 8)):
        compare((*words, "-join_sql", twice, "-join_dialect", "SQLITE"), "input.gpkg", "points.gpkg")
        compare((*words, "-join_sql", "SELECT * FROM points ORDER BY real", "-join_dialect", "SQLITE"),
                "input.gpkg", "points.gpkg")
        compare((*words, "-join_where", "jid % 2 = 0"), "input.gpkg", "points.gpkg", memory="200K")
        compare((*words, "-join_select", "text"), "input.gpkg", "points.gpkg", memory="200K")
        compare((*words, "-join_select", ""), "input.gpkg", "points.gpkg", memory="200K")


def check_self_joins():
    join_points()
    join_polygons()
    for words in (("-k", 2), ("-op", "dwithin", "-max_distance", 4, "-how", "inner"),
                  ("-op", "dwithin", "-max_distance", 4, "-unordered_pairs", "-how", "inner"),
                  ("-op", "equals", "-how", "inner", "-exclude", "same_geometry")):
        compare((*words, "-limit", 800), "points.gpkg", "points.gpkg")
    compare(("-op", "intersects", "-limit", 200), "polygons.gpkg", "polygons.gpkg")


def check_reprojected():
    join_points()
    input_points()
    dataset = gdal.OpenEx("points.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("degrees.fgb", dataset, dstSRS="EPSG:4326", format="FlatGeobuf", where="jid % 50 > 0")
    dataset = None
    compare(("-k", 2), "input.gpkg", "degrees.fgb")
    compare(("-op", "nearest", "-metric", "sphere", "-t_srs", "EPSG:4326"), "input.gpkg", "degrees.fgb")
    compare(("-op", "dwithin", "-max_distance", "3m", "-t_srs", "EPSG:26918"), "input.gpkg", "points.gpkg")


# --- options that read join features or rows again -----------------------------------


def check_columns_and_rows():
    """Each of these options gives the answer of the join in memory, or an error of one
    line that says that the join side must be in memory."""
    join_points(n=100)
    join_polygons(n=1500)
    input_points(n=150)
    refused, done = [], []
    for i, words in enumerate((
        ("-how", "right"),
        ("-how", "full"),
        ("-pick", "first"),
        ("-pick", "nearest"),
        ("-pick", "largest_area"),
        ("-pick", "largest_overlap"),
        ("-pick", "max:real"),
        ("-pick", "min:code"),
        ("-agg", "count, sum(real), mean(single), first(text), last(day), mode(code), median(real), unique(code)"),
        ("-agg", "count, concat(text,';'), stddev(real)"),
        ("-overlap", "area,length,percent"),
        ("-nearest_point_fields",),
        ("-bearing_field",),
        ("-matrix_field", "matrix", "-relation_field", "relation"),
        ("-geometry", "join"),
        ("-geometry", "nearest_point"),
        ("-geometry", "connection"),
        ("-geometry", "intersection"),
        ("-unmatched_layer", "lonely"),
        ("-unmatched_join_layer", "unwanted"),
        ("-max_pairs", 1000000),
    )):
        for op in (("-op", "intersects"), (("-op", "dwithin", "-max_distance", 5), ("-k", 2))[i % 2]):
            out = ("-nln", "o", "-unsetFid")
            go(*op, *words, *out, "plain.gpkg", "input.gpkg", "polygons.gpkg")
            before = listing()
            r = run(*op, *words, *out, "-memory", "200K", "-json_summary", "s.json", "tiled.gpkg", "input.gpkg", "polygons.gpkg")
            if r.rc != 0:
                fails(*op, *words, *out, "-memory", "200K", "t.gpkg", "input.gpkg", "polygons.gpkg",
                      op=False, message=["-memory"])
                after = listing()
                before.pop("./s.json"), after.pop("./s.json")
                same(after, before, f"left behind by {r}")
                refused.append(words[:2])
            else:
                for layer in Layer("plain.gpkg").layers:
                    same(dump("tiled.gpkg", layer), dump("plain.gpkg", layer), f"{op} {words} {layer}")
                done.append(words[:2])
                os.remove("tiled.gpkg")
            os.remove("plain.gpkg")
    print(f"        {len(set(done))} kinds of columns and rows in tiles, refused: {sorted(set(refused))}")


def check_aggregates_of_a_streaming_join_side():
    """The zones are the input. The join points are aggregated while they are read,
    whatever the limit of memory."""
    join_points()
    input_polygons()
    words = ("-agg", "count, sum(real), mean(single), min(day), max(text), median(real), unique(code), concat(text,'|')")
    for op in (("-op", "intersects"), ("-op", "dwithin", "-max_distance", 7)):
        go(*op, *words, "-nln", "o", "-overwrite", "plain.gpkg", "zones.gpkg", "points.gpkg")
        for memory in ("100K", "1M"):
            go(*op, *words, "-nln", "o", "-memory", memory, "-overwrite", "tiled.gpkg", "zones.gpkg", "points.gpkg")
            same(dump("tiled.gpkg"), dump("plain.gpkg"), f"{op} {memory}")


# --- -validate, and updates of the input layer itself -------------------------------


def check_validated_in_tiles():
    """The reference has tiles of its own. Apart from this, -validate works as in
    memory."""
    join_points()
    join_polygons()
    input_points()
    input_polygons()
    for words, left, right in (
        (("-op", "nearest"), "input.gpkg", "points.gpkg"),
        (("-k", 3, "-ties", "all"), "input.gpkg", "polygons.gpkg"),
        (("-op", "dwithin", "-max_distance", 12, "-batch", 50), "input.gpkg", "points.gpkg"),
        (("-op", "intersects"), "zones.gpkg", "polygons.gpkg"),
        (("-op", "within", "-how", "anti"), "input.gpkg", "polygons.gpkg"),
        (("-op", "dwithin", "-max_distance", 5, "-limit", 300), "points.gpkg", "points.gpkg"),
        (("-k", 2, "-join_sql", "SELECT * FROM points UNION ALL SELECT * FROM points", "-join_dialect", "SQLITE"),
         "input.gpkg", "points.gpkg"),
    ):
        compare((*words, "-validate"), left, right)
        same(summary("s.json")["rows_different"], 0)
        true(summary("s.json")["rows_validated"] > 0, f"{words}")
    # If the limit suffices for the join side and its reference, there are no
    # tiles.
    go("-op", "nearest", "-validate", "-memory", "1G", "-overwrite", "o.fgb", "input.gpkg", "points.gpkg")
    same(summary("s.json")["tiles"], 0)


def check_differences_in_tiles():
    """A GEOS that returns wrong distances is noticed. Messages and report are those of
    the join in memory."""
    join_points(n=2000)
    input_points()
    env = lying()
    for words in (("-k", 3, "-max_distance", 60), ("-op", "dwithin", "-max_distance", 40), ("-op", "nearest")):
        reports, texts = [], []
        for memory in ((), ("-memory", "300K")):
            r = run(*words, "-backend", "geos", "-validate", "cpu", "-validate_report", "r.csv", *memory,
                    "-json_summary", "s.json", "-overwrite", "o.fgb", "input.gpkg", "points.gpkg", env=env)
            same(r.rc, 3, f"{r}")
            same(summary("s.json")["tiles"] > 1, bool(memory), f"{r}")
            reports.append(sorted(contents("r.csv").splitlines()))
            texts.append([x for x in r.err.splitlines() if "differ" in x or x.startswith("  input feature")])
        true(len(reports[0]) > 20, "many differ")
        same(reports[1], reports[0], f"{words}")
        same(sorted(texts[1]), sorted(texts[0]), f"{words}")


def check_in_place_in_tiles():
    join_points()
    join_polygons()
    for source in ("points.gpkg", "polygons.gpkg"):
        for words in (("-op", "nearest"), ("-op", "nearest", "-max_distance", 20, "-batch", 40),
                      ("-op", "dwithin", "-max_distance", 15, "-pick", "nearest", "-nearest_point_fields"),
                      ("-op", "nearest", "-validate")):
            found = []
            for memory in ((), ("-memory", "300K")):
                input_points()
                go("-in_place", *words, *memory, "input.gpkg", source)
                same(summary("s.json")["tiles"] > 1, bool(memory))
                found.append(dump("input.gpkg"))
                if IS_LONG or "-batch" in words:  # a second run refreshes the columns
                    go("-in_place", *words, *memory, "input.gpkg", source)
                    same(dump("input.gpkg"), found[-1], "refreshed")
            same(found[1], found[0], f"{source} {words}")
    # Aggregates with the join side as the smaller side, which does not stream.
    found = []
    for memory in ((), ("-memory", "300K")):
        join_points()
        go("-in_place", "-op", "dwithin", "-max_distance", 9, "-agg", "count, sum(real) as total, first(text), concat(text)",
           *memory, "points.gpkg", "polygons.gpkg")
        same(summary("s.json")["tiles"] > 1, bool(memory))
        found.append(dump("points.gpkg"))
    same(found[1], found[0], "aggregates in place")
    join_points()
    # Both layers are in one dataset: the join layer is closed before the dataset is updated.
    input_points("both.gpkg")
    gdal.VectorTranslate("both.gpkg", gdal.OpenEx("points.gpkg"), accessMode="update")
    go("-in_place", "-op", "nearest", "-input_layer", "both", "-join_layer", "points", "-memory", "300K",
       "both.gpkg", "both.gpkg")
    input_points()
    go("-in_place", "-op", "nearest", "input.gpkg", "points.gpkg")
    same(Layer("both.gpkg", "both").rows, Layer("input.gpkg").rows)


# --- temporary files -----------------------------------------------------------------


def check_killed_at_any_time():
    join_points(n=20000)
    input_points(n=2000)
    before = set(listing())
    os.mkdir("tmp")
    words = ("-k", 20, "-memory", "300K", "-batch", 100, "out.fgb", "input.gpkg", "points.gpkg")
    for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
        for seconds in (0.05, 0.2, 0.5, 0.9):
            process = start(*words, env={"TMPDIR": os.path.abspath("tmp")})
            time.sleep(seconds)
            process.send_signal(how)
            r = finish(process)
            if os.path.exists("out.fgb"):
                # It was renamed to its name before the signal came, so it is whole.
                same(len(Layer("out.fgb").rows), 40800, f"rows after {how.name}, {seconds} s: {r}")
                os.remove("out.fgb")
            if r.rc == 0:
                continue
            if r.rc < 0 and how != signal.SIGKILL:
                continue  # the signal came before main()
            same(os.listdir("tmp"), [], f"files in TMPDIR after {how.name}")
            left = set(listing()) - before - {"./tmp"}
            if how != signal.SIGKILL and any(".ogrjoin-" in p for p in left):
                pid = str(process.pid)
                left = {p for p in left if pid in p}  # files of a killed run stay until the next run
            for path in left if how == signal.SIGKILL else ():
                # the hidden folder of the output, which the next run removes
                true(".ogrjoin-" in path, f"left behind by {r}: {left}")
            if how != signal.SIGKILL:
                same(left, set(), f"left behind after {how.name}, {seconds} s: {r}")
                same(r.rc, 130, f"{r}")
    go(*words)
    same(set(listing()) - before, {"./tmp", "./out.fgb", "./s.json"}, "the next run cleans up")


def check_folder_that_takes_no_files():
    """If the output is no file, the tiles are in TMPDIR."""
    join_points()
    input_points()
    os.mkdir("tmp")
    r = succeeds("-k", 2, "-memory", "300K", "-f", "GeoJSON", "/vsistdout/", "input.gpkg", "points.gpkg",
                 env={"TMPDIR": os.path.abspath("tmp")})
    true("tiles" in r.err, f"{r}")
    n = len(Layer("input.gpkg").rows)
    same(len(json.loads(r.out)["features"]), 2 * (n - 1) + 1, "rows")
    same(os.listdir("tmp"), [])


def check_disk_that_is_full():
    """A limit on the size of files stands for a full disk."""
    join_points()
    input_points()
    before = listing()
    r = run("-k", 2, "-memory", "300K", "o.fgb", "input.gpkg", "points.gpkg",
            before=["bash", "-c", 'ulimit -f 200; trap "" XFSZ; exec "$0" "$@"'])
    same(r.rc, 1, f"{r}")
    lines = [x for x in r.err.splitlines() if x.startswith("ERROR")]
    same(len(lines), 1, f"{r}")
    true("temporary" in lines[0] or "disk" in lines[0] or "too large" in lines[0], f"{r}")
    same(listing(), before, "left behind")


if __name__ == "__main__":
    main(globals())
