"""dwithin and nearest between features of any kinds, self joins, exclusions and great
circles. The command is compared with a plain test of every pair."""

from meeting_shapes import *


# --- distances ------------------------------------------------------------------


def check_dwithin():
    a = Side("a.gpkg", all_kinds(12), "id")
    b = Side("b.gpkg", all_kinds(13), "jid")
    table = table_of(a, b)
    for d in (0, 0.5, 1, 2.5, 5, 100):  # many pairs are at exactly these distances
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
    """Maximum distances in a field of either side. Values are NULL, negative, or
    texts."""
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
                    field_value = str(value) if type == ogr.OFTString and value is not None else value
                    rows.append((row[0], {**row[1], "reach": field_value}))
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
                    true(f"{n} rows of the {'join' if side else 'input'} layer match nothing, because the distance of "
                         f"{option} reach{unit} is NULL" in r.err,
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
                # Distances between lines may differ in the last digits, and so may the order of
                # ties.
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
    """A copy of a file is another layer. So a join with it is no self join."""
    shapes = polygons(random.Random(24), 16)
    a, b = Side("a.gpkg", shapes, "id"), Side("b.gpkg", shapes, "jid")
    got, r = ask(a, b, "-op", "equals")
    true(all((i, i) in got for i in range(len(a))), "with its copy")
    true("itself" not in r.err, f"no notice: {r}")
    got, _ = ask(a, b, "-op", "equals", "-exclude", "self")
    true(not any(i == j for i, j in got), "asked for")


# --- distances of shapes ---------------------------------------------------------

# The number of pairs, the sum of join FIDs and the sum of distances of the
# five most similar. For the flights also the number of pairs within 10 km,
# each pair once. Independent programs that compare all pairs have found these
# numbers.
MOST_SIMILAR = {
    ("nyc_trips", "EPSG:32618", "hausdorff_points"): (4980, 2509433, 25473531.836781),
    ("nyc_trips", "EPSG:32618", "hausdorff"): (4980, 2512166, 25424806.175496),
    ("nyc_trips", "EPSG:32618", "frechet"): (4980, 2568913, 26463928.099480),
    ("flights_switzerland", "EPSG:2056", "hausdorff_points"): (6220, 3871807, 89314202.727337),
    ("flights_switzerland", "EPSG:2056", "hausdorff"): (6220, 3870834, 89120104.281256),
    ("flights_switzerland", "EPSG:2056", "frechet"): (6220, 3863535, 98895091.209033),
}
WITHIN_10_KM = {"hausdorff_points": 2405, "hausdorff": 2412, "frechet": 2341}


def check_similar_trajectories():
    path = need_data("traj.gpkg")
    for (layer, to, distance), expected in MOST_SIMILAR.items():
        both = ("-input_layer", layer, "-join_layer", layer, "-t_srs", to, "-distance", distance)
        run("-overwrite", "-op", "nearest", "-k", 5, *both, f"{layer}.gpkg", path, path)
        values = [v for _, _, v in Layer(f"{layer}.gpkg").rows if v["join_distance"] is not None]
        got = (len(values), sum(v["join_fid"] for v in values))
        same(got, expected[:2], f"{layer} {distance}")
        near(math.fsum(v["join_distance"] for v in values), expected[2], 2e-6, f"{layer} {distance}")
        if layer.startswith("flights"):
            run("-overwrite", "-how", "inner", "-op", "dwithin", "-max_distance", "10km", "-unordered_pairs", *both, f"{layer}.gpkg", path, path)
            same(len(Layer(f"{layer}.gpkg").rows), WITHIN_10_KM[distance], distance)


def check_distances_of_shapes():
    a, b = Side("a.gpkg", all_kinds(31), "id"), Side("b.gpkg", all_kinds(32), "jid")
    for distance in ("hausdorff", "directed_hausdorff", "hausdorff_points", "frechet"):
        for words in (("-op", "nearest", "-k", 3), ("-op", "dwithin", "-max_distance", 4)):
            r = run(*words, "-distance", distance, "-validate", "-overwrite", "o.gpkg", a.path, b.path)
            true("no difference" in r.err, f"{distance}: {r}")
        for words in (("-densify", 0.7), ("-metric", "sphere", "-s_srs", "EPSG:4326", "-join_srs", "EPSG:4326", "-densify", "80km")):
            r = run("-op", "nearest", "-k", 2, *words, "-distance", distance, "-validate", "-overwrite", "o.gpkg", a.path, b.path)
            true("no difference" in r.err, f"{distance} {words}: {r}")
    r = run("-op", "nearest", "-densify", 1, "p.gpkg", a.path, b.path)
    true(r.rc == 1 and "densify" in r.err, str(r))
    for words in (("-distance_to", "boundary"), ("-nearest_point_fields",), ("-geometry", "connection")):
        r = run("-op", "nearest", "-distance", "frechet", *words, "p.gpkg", a.path, b.path)
        true(r.rc == 1 and "least" in r.err, f"{words}: {r}")


if __name__ == "__main__":
    main(globals())
