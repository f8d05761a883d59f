"""Joins by equal fields alone (-op attributes): tables with and without geometry.  They
are compared with a plain test of every pair."""

from e2e import *

CRS = "EPSG:2263"
FIELDS = (("id", ogr.OFTInteger), ("key", ogr.OFTString), ("code", ogr.OFTInteger), ("v", ogr.OFTReal))


def places(seed, n):
    r = random.Random(seed)
    return [(f"POINT ({r.randint(0, 9)} {r.randint(0, 9)})",
             {"id": i, "key": r.choice(("a", "-", "Ä", "12", "a b", None)), "code": r.choice((1, 2, 12, None)),
              "v": r.choice((1.0, 2.5, None))}) for i in range(n)]


def made(extension, n=40):
    sides = []
    for seed, name in ((1, "a"), (2, "b")):
        rows_ = places(seed, n)
        has_shapes = extension != ".csv"
        if not has_shapes:
            rows_ = [(None, row[1]) for row in rows_]
        lco = ["SPATIAL_INDEX=NO"] if extension == ".fgb" else []
        sides += [make(name + extension, rows_, FIELDS,
                       CRS if has_shapes else None, ogr.wkbPoint if has_shapes else ogr.wkbNone, lco=lco), rows_]
        if not has_shapes:  # a CSV has empty texts in place of NULL
            sides[-1] = [(None, {f: "" if v is None else v for f, v in row[1].items()}) for row in rows_]
    return sides


def are_equal(x, y, fields):
    return all(None not in (x[1][f], y[1][g]) and str(x[1][f]) == str(y[1][g]) for f, g in fields)


def wanted_pairs(a_rows, b_rows, fields):
    """Returns (id, join_id) in the order of the output."""
    return [(x[1]["id"], y[1]["id"]) for x in a_rows for y in b_rows if are_equal(x, y, fields)]


def pairs_in(path):
    return [(int(v["id"]), int(v["join_id"])) for _, _, v in rows(path)]


def check_every_pair():
    """Joins on texts, numbers, a number with a text, and several fields, with any
    threads and batches."""
    for extension in (".gpkg", ".fgb", ".csv"):
        a, a_rows, b, b_rows = made(extension)
        for on, fields in (("key", [("key", "key")]), ("code", [("code", "code")]), ("code=key", [("code", "key")]),
                           ("key,v", [("key", "key"), ("v", "v")])):
            wanted = wanted_pairs(a_rows, b_rows, fields)
            true(len(wanted) > 20, f"{len(wanted)} pairs")
            for how in ((), ("-threads", 1, "-batch", 7), ("-memory", "1K"), ("-backend", "lists"), ("-validate",)):
                r = succeeds("-op", "attributes", "-on", on, "-how", "inner", "-overwrite", *how, "o.gpkg", a, b)
                same(pairs_in("o.gpkg"), wanted, f"{extension} {on} {how}: {r}")
                true(how != ("-validate",) or "no difference" in r.err, str(r))
        os.remove(a), os.remove(b)


def check_tiles_have_rows_without_geometry():
    """With the join side in tiles, tables and rows without geometry have their pairs."""
    for extension in (".gpkg", ".csv"):
        a, a_rows, b, b_rows = made(extension, n=300)
        if extension == ".gpkg":
            some = [(None if i % 3 == 0 else wkt, values) for i, (wkt, values) in enumerate(b_rows)]
            b = make("some.gpkg", some, FIELDS, CRS, ogr.wkbPoint)
        wanted = wanted_pairs(a_rows, b_rows, [("key", "key")])
        for how in ((), ("-memory", "20K")):
            r = succeeds("-op", "attributes", "-on", "key", "-how", "inner", "-overwrite", *how, "o.gpkg", a, b)
            same(" tiles" in r.err, bool(how), str(r))
            same(pairs_in("o.gpkg"), wanted, f"{extension} {how}: {r}")


def check_features_without_geometry_in_tiles():
    """With the join side in tiles, features without geometry have pairs like other
    features, and all columns."""
    a, a_rows, _, _ = made(".gpkg")
    b_rows = [(shape if i % 3 else "POINT EMPTY" if i % 2 else None, row) for i, (shape, row) in enumerate(places(2, 40))]
    b = make("some.gpkg", b_rows, FIELDS, CRS)
    for columns in ((), ("-geometry", "join"), ("-bearing_field",), ("-how", "full"), ("-agg", "count, sum(v)")):
        words = ("-op", "attributes", "-on", "key", "-overwrite", *columns)
        succeeds(*words, "o.gpkg", a, b)
        succeeds(*words, "-memory", "1K", "tiles.gpkg", a, b)
        same(rows("tiles.gpkg"), rows("o.gpkg"), columns)
    succeeds("-op", "attributes", "-on", "key", "-how", "inner", "-memory", "1K", "-overwrite", "o.gpkg", a, b)
    same(pairs_in("o.gpkg"), wanted_pairs(a_rows, b_rows, [("key", "key")]))


def check_a_table_gives_its_columns():
    """The typical use: shapes get the columns of a table that has no geometry."""
    _, _, b, b_rows = made(".csv")
    a, a_rows, _, _ = made(".gpkg")
    succeeds("-op", "attributes", "-on", "key", "-agg", "count, sum(v)", "-joo", "AUTODETECT_TYPE=YES", "-overwrite",
             "o.gpkg", a, b)
    for (_, _, found), row in zip(Layer("o.gpkg").rows, a_rows):
        equal = [y[1]["v"] for y in b_rows if are_equal(row, y, [("key", "key")])]
        same(found["count"], len(equal))
        numbers = [v for v in equal if v != ""]
        same(found["sum_v"], sum(numbers) if numbers else None)
    true(all(fid is not None for fid, _, _ in Layer("o.gpkg").rows), "every input row is written")
    succeeds("-op", "attributes", "-on", "key", "-how", "anti", "-overwrite", "o.gpkg", a, b)
    same([v["id"] for _, _, v in Layer("o.gpkg").rows],
         [x[1]["id"] for x in a_rows if not any(are_equal(x, y, [("key", "key")]) for y in b_rows)])


def check_with_conditions():
    """Each other condition on pairs, and joins of a layer with itself."""
    a, a_rows, b, b_rows = made(".gpkg")
    base = ("-op", "attributes", "-on", "key", "-how", "inner", "-overwrite")
    wanted = wanted_pairs(a_rows, b_rows, [("key", "key")])
    code = {side: {row[1]["id"]: row[1]["code"] for row in rows_} for side, rows_ in (("a", a_rows), ("b", b_rows))}
    succeeds(*base, "-exclude", "field=code", "o.gpkg", a, b)
    same(pairs_in("o.gpkg"), [(i, j) for i, j in wanted
                              if None in (code["a"][i], code["b"][j]) or code["a"][i] != code["b"][j]])
    succeeds(*base, "-unordered_pairs", "-validate", "o.gpkg", a, a)
    same(pairs_in("o.gpkg"), [(i, j) for i, j in wanted_pairs(a_rows, a_rows, [("key", "key")]) if i < j])
    succeeds(*base, "-one_to_one", "o.gpkg", a, b)
    found = pairs_in("o.gpkg")
    true(set(found) <= set(wanted) and len({i for i, _ in found}) == len(found) == len({j for _, j in found}),
         "each feature in one pair at most")


def check_first_pairs_and_counts():
    """Some rows need only their first pair, or the number of pairs. The join then lists
    no more."""
    a, a_rows, b, b_rows = made(".gpkg")
    for condition, holds in (((), lambda x, y: True), (("-exclude", "self"), lambda x, y: x[1]["id"] != y[1]["id"])):
        found = [[y[1]["id"] for y in b_rows if are_equal(x, y, [("key", "key")]) and holds(x, y)] for x in a_rows]
        n = sum(map(len, found))
        for how in ((), ("-threads", 1, "-batch", 7), ("-memory", "1K"), ("-backend", "lists"), ("-validate",)):
            words = ("-op", "attributes", "-on", "key", *condition, *how, "-overwrite", "-json_summary", "summary.json")
            ids = lambda rule: [x[1]["id"] for x, row in zip(a_rows, found) if rule(row)]
            for choice, rule in (("semi", len), ("anti", lambda row: not row)):
                succeeds(*words, "-how", choice, "o.gpkg", a, b)
                same([v["id"] for _, _, v in Layer("o.gpkg").rows], ids(rule), f"{choice} {words}")
                same(summary()["pairs"], n)
            succeeds(*words, "-pick", "first", "o.gpkg", a, b)
            same([v["join_id"] for _, _, v in Layer("o.gpkg").rows], [row[0] if row else None for row in found])
            for stream in "input", "join":
                succeeds(*words, "-agg", "count, count(*) as n", "o.gpkg", a, b, env={"OGRJOIN_AGG_STREAM": stream})
                same([(v["count"], v["n"]) for _, _, v in Layer("o.gpkg").rows], [(len(row),) * 2 for row in found])
                same(summary()["pairs"], n)
            succeeds(*words, "-pick", "first", "-how", "full", "o.gpkg", a, b)
            same([v["join_id"] for _, _, v in Layer("o.gpkg").rows][len(a_rows):],
                 [y[1]["id"] for y in b_rows if not any(y[1]["id"] in row for row in found)])


def check_large_groups_of_equal_rows():
    """There are 2 x 10^10 pairs, which would take minutes one by one."""
    n = 200000
    for name in "x.csv", "y.csv":
        with open(name, "w", encoding="utf-8") as file:
            file.write("id,key\n" + "".join(f"{i},{'pq'[i % 2]}\n" for i in range(n)))
    for words, stream in (
        (("-how", "semi"), ""), (("-how", "anti"), ""), (("-pick", "first"), ""),
        (("-agg", "count"), "input"), (("-agg", "count"), "join"),
    ):
        succeeds("-op", "attributes", "-on", "key", *words, "-json_summary", "summary.json", "-f", "CSV", "-overwrite",
                 "o.csv", "x.csv", "y.csv", env={"OGRJOIN_AGG_STREAM": stream})
        same(summary()["pairs"], n * n // 2)
        if stream != "":
            with open("o.csv", encoding="utf-8") as file:
                same({line.rsplit(",", 1)[1].strip().strip('"') for line in list(file)[1:]}, {str(n // 2)})


def check_what_is_refused():
    a, _, b, _ = made(".gpkg")
    fails("-op", "attributes", "o.gpkg", a, b, op=False, message="-on FIELD[=JOIN_FIELD]")
    fails("-op", "attributes", "-on", "key", "-max_distance", 5, "o.gpkg", a, b, op=False, message="no meaning")
    fails("-op", "attributes", "-on", "key", "-k", 5, "o.gpkg", a, b, op=False, message="no meaning")


if __name__ == "__main__":
    main(globals())
