"""Joins by similar texts, alone and as a condition of other joins.  They are compared
with a plain test of every pair, and run on real layers."""

import itertools
import unicodedata
from fractions import Fraction

from e2e import *

CRS = "EPSG:2263"
FIELDS = (("id", ogr.OFTInteger), ("name", ogr.OFTString), ("street", ogr.OFTString))
WORDS = "café old mill house park inn north star royal garden cafe müller mueller".split()
STREETS = ("Elm St", "Elm Street", "Main St", "2nd Ave", "Broadway", None)


# --- the plain reference ---------------------------------------------------------


def folded(text):
    text = unicodedata.normalize("NFKD", text or "").casefold()
    text = "".join(c for c in text if not unicodedata.combining(c) and c != "'")
    return "".join(c if c.isalnum() else " " for c in text).split()


def trigrams(text):
    return {w[i:i + 3] for word in folded(text) for w in [f"  {word} "] for i in range(len(w) - 2)}


def words(text):
    return set(folded(text))


MEASURES = {
    "jaccard": lambda o, a, b: Fraction(o, a + b - o),
    "dice": lambda o, a, b: Fraction(2 * o, a + b),
    "overlap": lambda o, a, b: Fraction(o, min(a, b)),
}


def similarity(a, b, tokens=trigrams, measure="jaccard"):
    """Returns the similarity of two texts, or None if they have no tokens in common."""
    a, b = tokens(a), tokens(b)
    o = len(a & b)
    return MEASURES[measure](o, len(a), len(b)) if o else None


def is_similar(a, b, least, **how):
    found = similarity(a, b, **how)
    return found is not None and found >= Fraction(least)


# --- layers ------------------------------------------------------------------------


def places(seed, n):
    r = random.Random(seed)
    found = []
    for i in range(n):
        name = " ".join(r.choice(WORDS) for _ in range(r.randint(1, 3)))
        if r.random() < 0.2:
            name = name.title()
        if r.random() < 0.1:
            name = r.choice((None, "", "--"))
        found.append((f"POINT ({r.randint(0, 20)} {r.randint(0, 20)})",
                      {"id": i, "name": name, "street": r.choice(STREETS)}))
    return found


def layer(path, rows, srs=CRS):
    if path.endswith(".csv"):
        rows = [(None, row[1]) for row in rows]
        return make(path, rows, FIELDS, None, ogr.wkbNone)
    lco = ["SPATIAL_INDEX=NO"] if path.endswith(".fgb") else []  # an index would reorder the rows
    return make(path, rows, FIELDS, srs, ogr.wkbPoint, lco=lco)


class Two:
    """An input layer and a join layer, with their rows."""

    def __init__(self, extension=".gpkg", n=70, join=None):
        self.a_rows, self.b_rows = places(1, n), places(2, n)
        self.a = layer("a" + extension, self.a_rows)
        self.b = layer("b" + (join or extension), self.b_rows)

    def pairs(self, holds):
        return {(x[1]["id"], y[1]["id"]) for x, y in itertools.product(self.a_rows, self.b_rows)
                if holds(x, y)}


def near_by(x, y, d):
    x, y = (ogr.CreateGeometryFromWkt(z[0]) for z in (x, y))
    return x.Distance(y) <= d


def ids_of(path, layer_name=None, column="join_id"):
    """Returns the pairs of ids of the output. No pair may occur twice."""
    found = [(values["id"], values[column]) for _, _, values in Layer(path, layer_name).rows]
    true(len(found) == len(set(found)), "no pair comes twice")
    return {(int(x), int(y)) for x, y in found if y is not None}


def names(x, y, least, **how):
    return is_similar(x[1]["name"], y[1]["name"], least, **how)


# --- conditions of other joins ---------------------------------------------------


def check_within_a_distance():
    for extension, out in ((".gpkg", "o.gpkg"), (".fgb", "o.fgb"), (".geojson", "o.csv")):
        two = Two(extension)
        for least in ("0.3", "3/5", "1"):
            wanted = two.pairs(lambda x, y: near_by(x, y, 9) and names(x, y, least))
            true(len(wanted) > 5, f"{len(wanted)} pairs to find")
            for how in ((), ("-threads", 1), ("-batch", 7), ("-threads", 3, "-batch", 11)):
                r = succeeds("-op", "dwithin", "-max_distance", 9, "-similar", f"name:{least}",
                             "-how", "inner", "-overwrite", *how, out, two.a, two.b)
                same(ids_of(out), wanted, f"{extension} {least} {how}: {r}")
        for _, _, values in Layer(out).rows:
            near(float(values["join_similarity"]), 1.0, 0.0, "of the last run")
        without = sum(not trigrams(row[1]["name"]) for row in two.a_rows)
        true(f"{without} without text" in r.err, f"rows without text are counted: {r}")
        os.remove(two.a), os.remove(two.b)


def check_values():
    """Similarity columns for several conditions, in rows with and without a pair."""
    two = Two()
    succeeds("-op", "dwithin", "-max_distance", 12, "-similar", "name=name:0.2", "-similar",
             "name+street=street+name", "-min_similarity", "1/4", "-measure", "dice", "-tokens",
             "words", "o.gpkg", two.a, two.b)
    by_id = {row[1]["id"]: row[1] for row in two.b_rows}
    n = 0

    def both(values):
        return " ".join(v for v in (values["name"], values["street"]) if v)

    for _, _, values in Layer("o.gpkg").rows:
        if values["join_id"] is None:
            same((values["join_similarity"], values["join_similarity_2"]), (None, None))
            continue
        n += 1
        other = by_id[values["join_id"]]
        for column, x, y in (("join_similarity", values["name"], other["name"]),
                             ("join_similarity_2", both(values), both(other))):
            wanted = similarity(x, y, words, "dice")
            true(wanted >= Fraction(1, 4 if column[-1] == "2" else 5), "fulfils the condition")
            near(values[column], float(wanted), 0.0, f"{column} of {x!r} {y!r}")
    true(n > 20, f"{n} pairs")
    succeeds("-op", "dwithin", "-max_distance", 12, "-similar", "name:0.2", "-similar", "street:.1",
             "-name_similarity", "alike", "o2.gpkg", two.a, two.b)
    fields = Layer("o2.gpkg").fields
    true("alike" in fields and "alike_2" in fields and "join_similarity" not in fields, str(fields))
    succeeds("-op", "dwithin", "-max_distance", 12, "-similar", "name:0.2",
             "-name_similarity", "", "o3.gpkg", two.a, two.b)
    true("join_similarity" not in Layer("o3.gpkg").fields, "no column")


def check_any_join():
    """nearest among similar features, predicates, and other options."""
    two = Two()
    ok = two.pairs(lambda x, y: names(x, y, "0.4"))
    shapes = [[ogr.CreateGeometryFromWkt(row[0]) for row in rows] for rows in (two.a_rows, two.b_rows)]
    for k in (1, 3):
        wanted = set()
        for i, x in enumerate(shapes[0]):
            order = sorted((x.Distance(y), j) for j, y in enumerate(shapes[1]) if (i, j) in ok)
            wanted |= {(i, j) for _, j in order[:k]}
        succeeds("-op", "nearest", "-k", k, "-similar", "name:0.4", "-overwrite", "o.gpkg", two.a, two.b)
        same(ids_of("o.gpkg"), wanted, f"the {k} nearest")
    wanted = two.pairs(lambda x, y: near_by(x, y, 0) and names(x, y, "0.4"))
    for op in ("intersects", "equals", "bbox"):
        succeeds("-op", op, "-similar", "name:0.4", "-overwrite", "o.gpkg", two.a, two.b)
        same(ids_of("o.gpkg"), wanted, op)
    # -pick most_similar: the most similar feature of each row.
    best = {}
    for i, j in sorted(two.pairs(lambda x, y: near_by(x, y, 9) and names(x, y, "0.2"))):
        found = similarity(two.a_rows[i][1]["name"], two.b_rows[j][1]["name"])
        if i not in best or found > best[i][0]:
            best[i] = (found, j)
    succeeds("-op", "dwithin", "-max_distance", 9, "-similar", "name:0.2", "-pick", "most_similar",
             "-overwrite", "o.gpkg", two.a, two.b)
    same(ids_of("o.gpkg"), {(i, j) for i, (_, j) in best.items()}, "-pick most_similar")


def check_rows_aggregates_and_exclusions():
    """-how, unmatched rows, -agg with either side streaming, self joins, -on, -exclude."""
    two = Two()
    base = ("-op", "dwithin", "-max_distance", 9, "-similar", "name:0.4")
    wanted = two.pairs(lambda x, y: near_by(x, y, 9) and names(x, y, "0.4"))
    matched = {i for i, _ in wanted}
    succeeds(*base, "-how", "semi", "o.gpkg", two.a, two.b)
    same({v["id"] for _, _, v in rows("o.gpkg")}, matched, "semi")
    succeeds(*base, "-how", "anti", "-overwrite", "o.gpkg", two.a, two.b)
    same({v["id"] for _, _, v in rows("o.gpkg")}, {r[1]["id"] for r in two.a_rows} - matched, "anti")
    succeeds(*base, "-unmatched_layer", "a_only", "-unmatched_join_layer", "b_only", "-how", "inner",
             "-overwrite", "o.gpkg", two.a, two.b)
    same(ids_of("o.gpkg"), wanted, "beside unmatched layers")
    same({v["id"] for _, _, v in Layer("o.gpkg", "a_only").rows},
         {r[1]["id"] for r in two.a_rows} - matched, "a_only")
    same({v["id"] for _, _, v in Layer("o.gpkg", "b_only").rows},
         {r[1]["id"] for r in two.b_rows} - {j for _, j in wanted}, "b_only")
    counts = {i: sum(x == i for x, _ in wanted) for i in range(len(two.a_rows))}
    layer("c.gpkg", two.b_rows * 12)
    for other, factor in ((two.b, 1), ("c.gpkg", 12)):  # the larger side streams
        succeeds(*base, "-agg", "count as n", "-overwrite", "p.gpkg", two.a, other)
        same({v["id"]: v["n"] // factor for _, _, v in rows("p.gpkg")}, counts, f"-agg with {other}")
    layer("few.gpkg", two.a_rows[:3])
    succeeds(*base, "-agg", "count as n", "q.gpkg", "few.gpkg", "c.gpkg")
    same({v["id"]: v["n"] // 12 for _, _, v in rows("q.gpkg")}, {i: counts[i] for i in range(3)},
         "-agg with a much larger join layer")
    both = {(i, j) for i, j in itertools.product(range(len(two.a_rows)), repeat=2)
            if i != j and near_by(two.a_rows[i], two.a_rows[j], 9) and
            names(two.a_rows[i], two.a_rows[j], "0.4")}
    r = succeeds(*base, "-how", "inner", "-overwrite", "p.gpkg", two.a, two.a)
    same(ids_of("p.gpkg"), both, "a layer with itself")
    succeeds(*base, "-how", "inner", "-unordered_pairs", "-overwrite", "p.gpkg", two.a, two.a)
    same(ids_of("p.gpkg"), {(i, j) for i, j in both if i < j}, "each pair once")
    for words_, holds in ((("-on", "street"), lambda x, y: x is not None and x == y),
                          (("-exclude", "field=street"), lambda x, y: x is None or x != y)):
        succeeds(*base, *words_, "-how", "inner", "-overwrite", "p.gpkg", two.a, two.b)
        same(ids_of("p.gpkg"), {(i, j) for i, j in wanted
                                if holds(two.a_rows[i][1]["street"], two.b_rows[j][1]["street"])}, words_)
    succeeds(*base, "-centroid_of", "both", "-how", "inner", "-overwrite", "p.gpkg", two.a, two.b)
    same(ids_of("p.gpkg"), wanted, "of centroids")
    r = run(*base, "-validate", "-overwrite", "p.gpkg", two.a, two.b)
    true(r.rc == 0, f"-validate agrees: {r}")
    r = run(*base, "-explain", "o9.gpkg", two.a, two.b)
    true(r.rc == 0 and "texts are similar: name:0.4, jaccard of trgm, 0.4 or more" in r.out, f"-explain: {r}")
    succeeds(*base, "-json_summary", "s.json", "-overwrite", "p.gpkg", two.a, two.b)
    same(summary("s.json")["join"]["skipped"]["no_text"],
         sum(not trigrams(r[1]["name"]) for r in two.b_rows), "counted for machines, too")


def check_rules():
    """Folding, word maps, values that are not texts, names in quotes."""
    fields = (("id", ogr.OFTInteger), ("a:b", ogr.OFTString), ("n", ogr.OFTReal), ("d", ogr.OFTDate))
    rows_ = [("POINT (0 0)", {"id": 0, "a:b": "Café Müller", "n": 12.5, "d": "2026/01/31"}),
             ("POINT (0 0)", {"id": 1, "a:b": "CAFE MULLER", "n": 12, "d": "2026/02/01"}),
             ("POINT (0 0)", {"id": 2, "a:b": "12 Elm Street", "n": None, "d": None}),
             ("POINT (0 0)", {"id": 3, "a:b": "12 elm st", "n": 1e300, "d": None})]
    make("a.gpkg", rows_, fields, CRS, ogr.wkbPoint)
    with open("map.csv", "w", encoding="utf-8") as file:
        file.write("street,st\nelm,\n")

    def pairs(*given):
        succeeds("-op", "intersects", *given, "-how", "inner", "-unordered_pairs", "-overwrite",
                 "o.gpkg", "a.gpkg", "a.gpkg")
        return ids_of("o.gpkg")

    same(pairs("-similar", '"a:b":1'), {(0, 1)}, "folded")
    same(pairs("-similar", '"a:b":1', "-fold", "case"), set(), "accents count")
    same(pairs("-similar", '"a:b":1', "-word_map", "map.csv"), {(0, 1), (2, 3)}, "a word map")
    same(pairs("-similar", "n=\"a:b\":0.2", "-tokens", "words", "-measure", "overlap"),
         {(0, 2), (0, 3), (1, 2), (1, 3)}, "numbers as OGR writes them: 12.5 is 12 and 5")
    same(pairs("-similar", "d:0.5", "-tokens", "words"), {(0, 1)}, "dates, too: one of three differs")
    same(pairs("-similar", "d+n:0.5", "-tokens", "words"), {(0, 1)} & pairs("-similar", "d+n:0.5", "-tokens",
                                                                         "words"), "put together")
    os.makedirs("sub", exist_ok=True)
    succeeds("-write_spec", "sub/j.ogrjoin", "-op", "intersects", "-similar", '"a:b":1', "-word_map",
             "map.csv", "-how", "inner", "a.gpkg", "a.gpkg")
    with open("sub/j.ogrjoin", encoding="utf-8") as file:
        true("../map.csv" in file.read(), "the word map's path is seen from the file's folder")


# --- texts alone -------------------------------------------------------------------


def most_similar(two, least):
    """Returns, for each input row, its pairs as (similarity, id): the most similar
    first, then by id. least is the minimum similarity."""
    found = {}
    for x, y in itertools.product(two.a_rows, two.b_rows):
        value = similarity(x[1]["name"], y[1]["name"])
        if value is not None and value >= Fraction(least):
            found.setdefault(x[1]["id"], []).append((-value, y[1]["id"]))
    return {i: [(-v, j) for v, j in sorted(list_)] for i, list_ in found.items()}


def check_alone():
    """All pairs in descending order of similarity; the k best, with and without ties."""
    for extension, join_extension, out in ((".gpkg", ".fgb", "o.gpkg"), (".fgb", ".csv", "o.fgb"),
                                           (".csv", ".gpkg", "o.csv"), (".csv", ".csv", "t.gpkg")):
        two = Two(extension, join=join_extension)
        for least in ("0.3", "2/3", "1"):
            digits = 15 if out == "o.csv" else 17  # decimal digits in a CSV
            wanted = [(i, j, float(f"{float(v):.{digits}g}")) for i, list_ in sorted(most_similar(two, least).items())
                      for v, j in list_]
            true(len(wanted) > 5, f"{len(wanted)} pairs to find")
            for how in [()] if least == "1" else [("-threads", 1), ("-batch", 7), ("-backend", "lists")]:
                lco = ["-lco", "SPATIAL_INDEX=NO"] if out == "o.fgb" else []
                r = succeeds("-similar", f"name:{least}", "-how", "inner", "-overwrite", *lco, *how, out, two.a, two.b)
                found = [(int(v["id"]), int(v["join_id"]), float(v["join_similarity"])) for _, _, v in rows(out)]
                same(found, wanted, f"{extension} {join_extension} {least} {how}: {r}")
        best = most_similar(two, "0.000001")
        for k in (1, 3):
            for ties in ("first", "all"):
                wanted = set()
                for i, list_ in best.items():
                    n = k
                    while ties == "all" and n < len(list_) and list_[n][0] == list_[k - 1][0]:
                        n += 1
                    wanted |= {(i, j, rank + 1) for rank, (_, j) in enumerate(list_[:n])}
                succeeds("-similar", "name", "-k", k, "-ties", ties, "-how", "inner", "-overwrite", out, two.a, two.b)
                has_rank = k > 1 or ties == "all"
                found = {(int(v["id"]), int(v["join_id"]), int(v["join_rank"]) if has_rank else 1)
                         for _, _, v in rows(out)}
                same(found, wanted, f"the {k} best, -ties {ties}")
        r = run("-similar", "name:0.4", "-validate", "-overwrite", out, two.a, two.b)
        true(r.rc == 0 and "no difference" in r.err, f"-validate: {r}")
        for path in (two.a, two.b):
            os.remove(path)


def check_around_texts_alone():
    two = Two(".csv")
    wanted = {(i, j) for i, list_ in most_similar(two, "0.4").items() for _, j in list_}
    base = ("-similar", "name:0.4")
    succeeds(*base, "-how", "full", "-unmatched_layer", "a_only", "o.gpkg", two.a, two.b)
    same({(int(v["id"]), int(v["join_id"])) for _, _, v in Layer("o.gpkg", "a").rows
          if v["id"] is not None and v["join_id"] is not None}, wanted, "-how full")
    same({int(v["id"]) for _, _, v in Layer("o.gpkg", "a_only").rows},
         {r[1]["id"] for r in two.a_rows} - {i for i, _ in wanted}, "a_only")
    succeeds(*base, "-agg", "count as n", "p.csv", two.a, two.b)
    same({int(v["id"]): int(v["n"]) for _, _, v in rows("p.csv")},
         {r[1]["id"]: sum(i == r[1]["id"] for i, _ in wanted) for r in two.a_rows}, "-agg")
    layer("much.csv", two.b_rows * 12)
    succeeds(*base, "-agg", "count as n", "q.csv", two.a, "much.csv")
    same({int(v["id"]): int(v["n"]) // 12 for _, _, v in rows("q.csv")},
         {r[1]["id"]: sum(i == r[1]["id"] for i, _ in wanted) for r in two.a_rows}, "-agg, the other way")
    succeeds(*base, "-unordered_pairs", "-how", "inner", "r.csv", two.a, two.a)
    both = {(i, j) for i, j in itertools.combinations(range(len(two.a_rows)), 2)
            if names(two.a_rows[i], two.a_rows[j], "0.4")}
    same(ids_of("r.csv"), both, "each pair once")
    succeeds(*base, "-on", "street", "-how", "inner", "s.csv", two.a, two.b)
    same(ids_of("s.csv"), {(i, j) for i, j in wanted if two.a_rows[i][1]["street"] is not None and
                           two.a_rows[i][1]["street"] == two.b_rows[j][1]["street"]} |
         {(i, j) for i, j in wanted if not two.a_rows[i][1]["street"] and not two.b_rows[j][1]["street"]},
         "-on: in CSV nothing is a text without letters")
    r = succeeds(*base, "-json_summary", "s.json", "t.csv", two.a, two.b)
    same(summary("s.json")["input"]["skipped"]["null"], 0, "geometry does not matter")
    r = run(*base, "-explain", "u.csv", two.a, two.b)
    true(r.rc == 0 and "2147483647" not in r.out and "by lists" in r.out, f"-explain: {r}")
    r = run("-benchmark", "-benchmark_csv", "bench.csv", *base, two.a, two.b)
    same(r.rc, 0, f"-benchmark: {r}")
    with open("bench.csv", encoding="utf-8") as file:
        true(f",{len(wanted)}," in file.read(), f"-benchmark finds the pairs: {r}")
    fails(*base, "u.fgb", two.a, two.b, message="cannot be without geometry", op=False)
    for given in (("-overlap", "area"), ("-pick", "nearest"), ("-geometry", "connection"), ("-centroid_of", "input")):
        fails(*base, *given, "u.csv", two.a, two.b, message="no geometry", op=False)
    fails("-op", "similar", "u.csv", two.a, two.b, message="-similar", op=False)
    fails(*base, "-ties", "all", "u.csv", two.a, two.b, message="-ties needs -k", op=False)
    fails(*base, "-max_distance", 5, "u.csv", two.a, two.b, message="no geometry", op=False)
    fails(*base, "-metric", "sphere", "u.csv", two.a, two.b, message="-max_distance", op=False)
    fails(*base, "-name_distance", "d", "u.csv", two.a, two.b, message="no distance", op=False)


def check_most_similar_within_a_distance():
    """The most similar among the features within a distance."""
    two = Two()
    best = {i: [(v, j) for v, j in list_ if near_by(two.a_rows[i], two.b_rows[j], 9)]
            for i, list_ in most_similar(two, "0.2").items()}
    wanted = {(i, j) for i, list_ in best.items() for _, j in list_}
    true(len(wanted) > 20 and len(wanted) < sum(map(len, most_similar(two, "0.2").values())), "a choice")
    base = ("-similar", "name:0.2", "-max_distance", 9, "-how", "inner", "-overwrite")
    succeeds("-op", "dwithin", *base, "d.gpkg", two.a, two.b)
    same(ids_of("d.gpkg"), wanted, "-op dwithin")
    for how in ((), ("-threads", 1, "-batch", 7), ("-backend", "geos"), ("-backend", "spatialindex")):
        succeeds(*base, *how, "o.gpkg", two.a, two.b)
        same([(int(v["id"]), int(v["join_id"])) for _, _, v in rows("o.gpkg")],
             [(i, j) for i, list_ in sorted(best.items()) for _, j in list_], f"the most similar first {how}")
    for k in (1, 2):
        succeeds(*base, "-k", k, "o.gpkg", two.a, two.b)
        same(ids_of("o.gpkg"), {(i, j) for i, list_ in best.items() for _, j in list_[:k]}, f"-k {k}")
        r = run(*base, "-k", k, "-validate", "o.gpkg", two.a, two.b)
        true(r.rc == 0 and "no difference" in r.err, f"-validate: {r}")
    succeeds(*base[:4], "-agg", "count as n", "-overwrite", "p.gpkg", two.a, two.b)
    same({int(v["id"]): int(v["n"]) for _, _, v in rows("p.gpkg")},
         {r[1]["id"]: len(best.get(r[1]["id"], ())) for r in two.a_rows}, "-agg")
    r = run(*base, "-explain", "o.gpkg", two.a, two.b)
    true(r.rc == 0 and "up to 9" in r.out, f"-explain: {r}")
    fails(*base, "-validate", "lists", "o.gpkg", two.a, two.b, message="lists", op=False)


# --- invalid options -------------------------------------------------------------


def check_wrong_words():
    two = Two()
    near_ = ("-op", "dwithin", "-max_distance", 9)

    def wrong(*given, message):
        fails(*given, "o.gpkg", two.a, two.b, message=message, op=False)

    for given, message in (
        (("-similar", "nmae:0.6"), ("no field 'nmae'", "did you mean 'name'?")),
        (("-similar", "name=nam:0.6"), ("join layer", "did you mean 'name'?")),
        (("-similar", "name"), ("how similar", "-similar name:0.6", "-min_similarity 0.6")),
        (("-similar", "name:0"), ("above 0", "0.6 or 3/4")),
        (("-similar", "name:1.1"), "at most 1"),
        (("-similar", "name:4/3"), "at most 1"),
        (("-similar", "name:1/0"), "at most 1"),
        (("-similar", "name:0.1234567891"), "9 digits"),
        (("-similar", "name:60%"), "a decimal"),
        (("-similar", "name:nan"), "a decimal"),
        (("-similar", "name:"), "a decimal"),
        (("-similar", ":0.6"), "LEFT[=RIGHT][:T]"),
        (("-similar", "name+=name:0.6"), "LEFT[=RIGHT][:T]"),
        (("-similar", "name=name=name:0.6"), "LEFT[=RIGHT][:T]"),
        (("-similar", '"name:0.6'), ()),
        (("-similar", "name", "-min_similarity", "2"), "-min_similarity"),
        (("-similar", "name:0.6", "-tokens", "9grams"), "trgm|words"),
        (("-similar", "name:0.6", "-measure", "cosinus"), "cosine"),
        (("-similar", "name:0.6", "-word_map", "nothing.csv"), "cannot be read"),
        (("-similar", "name:0.6") * 9, "8 times"),
        (("-tokens", "words"), "needs -similar"),
        (("-measure", "dice"), "needs -similar"),
        (("-min_similarity", "0.5"), "needs -similar"),
        (("-pick", "most_similar"), "needs -similar"),
        (("-similar", "name:0.6", "-agg", "count", "-name_similarity", "s"), "no aggregate uses 's'"),
    ):
        wrong(*near_, *given, message=message)
    with open("bad.csv", "w", encoding="utf-8") as file:
        file.write("no comma\n")
    wrong(*near_, "-similar", "name:0.6", "-word_map", "bad.csv", message=())
    layer("c.csv", two.b_rows)
    fails(*near_, "-similar", "name:0.6", "o.gpkg", two.a, "c.csv", message="no geometry", op=False)


# --- real layers -----------------------------------------------------------------


def check_cities_by_name_and_place():
    path = need_data("geonames_cities.vrt")
    for least, n in (("0.8", 943), ("0.6", 3146), ("0.4", 18126)):
        succeeds("-op", "dwithin", "-max_distance", "50km", "-metric", "sphere", "-similar",
                 f"name:{least}", "-unordered_pairs", "-how", "inner", "-json_summary", "s.json",
                 "-overwrite", "o.fgb", path, path)
        same(summary("s.json")["pairs"], n, f"cities within 50 km, {least}")
    succeeds("-similar", "name:0.4", "-max_distance", "50km", "-metric", "sphere", "-unordered_pairs",
             "-how", "inner", "-json_summary", "s.json", "-overwrite", "o.fgb", path, path)
    same(summary("s.json")["pairs"], n, "similar cities within 50 km")


def check_restaurants():
    a, b = (need_data(f"text_fodors_zagats_{x}.csv") for x in "ab")
    for least, n in (("0.3", 503), ("0.5", 131), ("0.6", 106), ("0.7", 95), ("0.8", 89)):
        succeeds("-similar", f"name:{least}", "-how", "inner", "-json_summary", "s.json",
                 "-overwrite", "o.csv", a, b)
        same(summary("s.json")["pairs"], n, f"restaurants by name, {least}")
        same(len(rows("o.csv")), n, "rows")


def check_cities_by_name():
    path = need_data("geonames_cities.vrt")
    for least, n, total in (("0.8", 22478, 22369.679955), ("0.6", 44684, 36747.230074)):
        succeeds("-similar", f"name:{least}", "-unordered_pairs", "-how", "inner", "-lco",
                 "SPATIAL_INDEX=NO", "-overwrite", "o.fgb", path, path)
        found = Layer("o.fgb").column("join_similarity")
        same(len(found), n, f"cities by name, {least}")
        near(math.fsum(found), total, 1e-6, "their similarities")


if __name__ == "__main__":
    main(globals())
