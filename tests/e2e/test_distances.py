"""dwithin and nearest between features of any kinds, self joins, exclusions and
great circles, through the command, against every pair asked one by one."""

from meeting_shapes import *


# --- distances ------------------------------------------------------------------


def check_dwithin():
    a = Side("a.gpkg", all_kinds(12), "id")
    b = Side("b.gpkg", all_kinds(13), "jid")
    table = table_of(a, b)
    for d in (0, 0.5, 1, 2.5, 5, 100):  # many pairs are just so far
        wanted = [p for p, found in table.items() if found <= d]
        got, _ = ask(a, b, "-op", "dwithin", "-max_distance", d)
        same_pairs(got, wanted, f"dwithin {d}", a, b)
        wanted = [p for p, found in table.items() if 1 <= found <= d]
        if d >= 1:
            got, _ = ask(a, b, "-op", "dwithin", "-max_distance", d, "-min_distance", 1)
            same_pairs(got, wanted, f"dwithin 1 to {d}", a, b)
    run("-op", "dwithin", "-max_distance", 5, "-how", "inner", "o.gpkg", a.path, b.path)
    for _, _, values in Layer("o.gpkg").rows:
        near(values["join_distance"], table[values["id"], values["jid"]], 1e-14)


def check_distances_of_fields():
    """Rows with their own distance: NULL, negative, text, of either side."""
    reach = [0, 0.5, 1, 3, None, -1, 2]
    for extension in (".gpkg", ".geojson"):
        for type in (ogr.OFTReal, ogr.OFTString, ogr.OFTInteger):
            sides = []
            for name, key, seed in (("a", "id", 16), ("b", "jid", 17)):
                shapes = points(random.Random(seed), 20) + polygons(random.Random(seed), 16) + lines(random.Random(seed), 10)
                side = Side(f"{name}0.gpkg", shapes, key)
                rows = []
                side.reach = []
                for i, row in enumerate(side.rows):
                    value = reach[i % len(reach)]
                    if type == ogr.OFTInteger and value is not None:
                        value = int(value)
                    side.reach.append(value)
                    told = str(value) if type == ogr.OFTString and value is not None else value
                    rows.append((row[0], {**row[1], "reach": told}))
                side.path = name + extension
                make(side.path, rows, (*fields_of(key), ("reach", type)), srs=CRS)
                sides.append(side)
            a, b = sides
            table = table_of(a, b)
            for option, side in (("-max_distance_field", 0), ("-join_max_distance_field", 1)):
                for unit, factor in (("", 1.0), (":m", 3937 / 1200), (":us-ft", 1.0)):
                    own = sides[side].reach
                    wanted = [p for p, d in table.items()
                              if own[p[side]] is not None and own[p[side]] >= 0 and d <= own[p[side]] * factor]
                    got, r = ask(a, b, option, "reach" + unit)
                    same_pairs(got, wanted, f"{option} {unit} {extension}", a, b)
                    n = sum(x is None or x < 0 for x in own)
                    true(f"{n} rows of the {'join' if side else 'input'} layer match nothing" in r.err,
                         f"says how many have no distance: {r}")
            for path in ("a", "b"):
                os.remove(path + extension)
                os.remove(path + "0.gpkg")


def check_nearest_of_all_kinds():
    for seed, maker in ((18, points), (19, lines), (20, polygons), (21, None)):
        shapes = maker(random.Random(seed), 30) if maker else all_kinds(seed)
        a = Side(f"a{seed}.gpkg", shapes, "id")
        b = Side(f"b{seed}.gpkg", all_kinds(seed + 100), "jid")
        table = table_of(a, b)
        for words, how in (
            ((), {}),
            (("-k", 4), {"k": 4}),
            (("-ties", "all"), {"ties": True}),
            (("-k", 3, "-ties", "all"), {"k": 3, "ties": True}),
            (("-k", 1000), {"k": 1000}),
            (("-max_distance", 1), {"high": 1}),
            (("-min_distance", 1, "-k", 2), {"low": 1, "k": 2}),
            (("-min_distance", 1, "-max_distance", 2, "-k", 5), {"low": 1, "high": 2, "k": 5}),
        ):
            wanted = k_nearest(table, len(a), **how)
            got, _ = ask(a, b, "-op", "nearest", *words)
            if got != [w[:2] for w in wanted]:
                # Distances of lines may differ in the last places: so may ties.
                told = [table[p] for p in got]
                same(len(got), len(wanted), f"{words}")
                for d, w in zip(told, wanted):
                    near(d, w[2], 1e-14, f"{words}, {w}")


# --- self joins and exclusions ------------------------------------------------------


def check_self_joins():
    shapes = [*polygons(random.Random(23), 24), *points(random.Random(23), 10), *ODD]
    a = Side("a.gpkg", shapes + shapes[:5], "id")
    for op in ("intersects", "equals", "touches", "disjoint", "coveredby", "bbox"):
        wanted = expect(a, a, lambda i, j: i != j and holds(op, a.shapes[i], a.shapes[j]))
        got, r = ask(a, a, "-op", op)
        same_pairs(got, wanted, op, a, a)
        true("no feature is joined with itself" in r.err or "itself" in r.err, f"says so: {r}")
        same(ask(a, a, "-op", op, "-exclude", "self")[0], got, "said twice")
        got, _ = ask(a, a, "-op", op, "-unordered_pairs")
        same_pairs(got, [p for p in wanted if p[0] < p[1]], op + " unordered", a, a)
    table = table_of(a, a)
    for words, low in (((), -1), (("-unordered_pairs",), 0)):
        wanted = [p for p, d in table.items() if d <= 1 and (p[0] < p[1] if low == 0 else p[0] != p[1])]
        got, _ = ask(a, a, "-op", "dwithin", "-max_distance", 1, *words)
        same_pairs(got, wanted, f"dwithin {words}", a, a)
    wanted = k_nearest(table, len(a), k=2, may=lambda i, j: i < j)
    got, _ = ask(a, a, "-k", 2, "-unordered_pairs")
    near(sum(table[p] for p in got), sum(w[2] for w in wanted), 1e-9, "two nearest with a larger FID")
    same(len(got), len(wanted))


def check_copies_are_not_self_joins():
    """Another file with the same rows is another layer."""
    shapes = polygons(random.Random(24), 16)
    a, b = Side("a.gpkg", shapes, "id"), Side("b.gpkg", shapes, "jid")
    got, r = ask(a, b, "-op", "equals")
    true(all((i, i) in got for i in range(len(a))), "with its copy")
    true("itself" not in r.err, f"no notice: {r}")
    got, _ = ask(a, b, "-op", "equals", "-exclude", "self")
    true(not any(i == j for i, j in got), "asked for")


if __name__ == "__main__":
    main(globals())
