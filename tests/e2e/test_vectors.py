"""Joins by vectors, alone and as a condition of other joins.  They are compared with a
plain test of every pair.  Vectors come from fields, lists, and lists in texts."""

import itertools
from fractions import Fraction

from e2e import *

CRS = "EPSG:2263"
NUMBERS = (("id", ogr.OFTInteger), ("p", ogr.OFTReal), ("q", ogr.OFTInteger), ("name", ogr.OFTString))
NORMS = ("l2", "l1", "linf", "cosine")


def difference(norm, a, b):
    """Returns the difference by a norm, summed in the order of dimensions, as the
    manual defines it. Returns None if a vector is missing."""
    if a is None or b is None or len(a) != len(b):
        return None
    if norm == "cosine":
        dot = aa = bb = 0.0
        for x, y in zip(a, b):
            dot, aa, bb = dot + x * y, aa + x * x, bb + y * y
        if aa == 0 or bb == 0:
            return None
        j = next(i for i, x in enumerate(a) if x)
        if dot > 0 and all(Fraction(x) * Fraction(b[j]) == Fraction(a[j]) * Fraction(y) for x, y in zip(a, b)):
            return 0.0  # one vector is a multiple of the other
        return max(0.0, 1.0 - dot / (math.sqrt(aa) * math.sqrt(bb)))
    total = 0.0
    for d in (abs(x - y) for x, y in zip(a, b)):
        total = max(total, d) if norm == "linf" else total + (d * d if norm == "l2" else d)
    return math.sqrt(total) if norm == "l2" else total


def places(seed, n):
    r = random.Random(seed)
    return [(f"POINT ({r.randint(0, 20)} {r.randint(0, 20)})",
             {"id": i, "p": r.choice((r.randint(0, 8) / 4, None, round(r.uniform(0, 3), 3), 1.0)), "q": r.randint(0, 4),
              "name": r.choice(("old mill", "old mill inn", "north star"))}) for i in range(n)]


def vector(row, weight=1.0):
    return None if row[1]["p"] is None else (row[1]["p"] * weight, float(row[1]["q"]))


def made(extension, n=60):
    sides = []
    for seed, name in ((1, "a"), (2, "b")):
        rows_ = places(seed, n)
        lco = ["SPATIAL_INDEX=NO"] if extension == ".fgb" else []
        with_shapes = extension != ".csv"
        sides += [make(name + extension, rows_ if with_shapes else [(None, r[1]) for r in rows_], NUMBERS,
                       CRS if with_shapes else None, ogr.wkbPoint if with_shapes else ogr.wkbNone, lco=lco), rows_]
    return sides


def wanted_pairs(norm, limit, a_rows, b_rows, weight=1.0, k=None, ties=False):
    """Returns (id, join_id, difference, rank) in the order of the output."""
    found = []
    for x in a_rows:
        row = []
        for y in b_rows:
            d = difference(norm, vector(x, weight), vector(y, weight))
            if d is not None and d <= limit:
                row.append((d, y[1]["id"]))
        row.sort()
        n = len(row) if k is None else min(k, len(row))
        while ties and 0 < n < len(row) and row[n][0] == row[n - 1][0]:
            n += 1
        found += [(x[1]["id"], j, d, rank + 1) for rank, (d, j) in enumerate(row[:n])]
    return found


def rows_of(path, digits=17):
    found = [(int(v["id"]), int(v["join_id"]), float(v["join_difference"])) for _, _, v in rows(path)]
    return [(i, j, float(f"{d:.{digits}g}")) for i, j, d in found]


def check_alone():
    """All pairs within a difference, in ascending order, and the k least different,
    with and without ties."""
    for extension, out in ((".gpkg", "o.gpkg"), (".fgb", "o.fgb"), (".csv", "t.gpkg")):
        a, a_rows, b, b_rows = made(extension)
        lco = ["-lco", "SPATIAL_INDEX=NO"] if out == "o.fgb" else []
        for norm, limit in zip(NORMS, (1.0, 1.25, 1.0, 0.0625)):
            wanted = [pair[:3] for pair in wanted_pairs(norm, limit, a_rows, b_rows)]
            true(len(wanted) > 100, f"{len(wanted)} pairs")
            true(norm == "cosine" or sum(d == limit for _, _, d in wanted) > 3, "some of them just at the limit")
            for how in ((), ("-threads", 1, "-batch", 7), ("-backend", "lists")):
                r = succeeds("-vector", "p+q", "-norm", norm, "-max_difference", limit, "-how", "inner",
                             "-overwrite", *lco, *how, out, a, b)
                same(rows_of(out), wanted, f"{extension} {norm} {how}: {r}")
            for k, ties in ((1, "first"), (3, "first"), (3, "all")):
                wanted_k = wanted_pairs(norm, math.inf, a_rows, b_rows, k=k, ties=ties == "all")
                succeeds("-vector", "p+q", "-norm", norm, "-k", k, "-ties", ties, "-how", "inner", "-overwrite",
                         *lco, out, a, b)
                found = [(i, j, d, int(v.get("join_rank") or 1)) for (i, j, d), (_, _, v)
                         in zip(rows_of(out), rows(out))]
                same(found, wanted_k, f"{extension} {norm} k {k} ties {ties}")
        r = succeeds("-vector", "p:0.3+q", "-max_difference", "0.7", "-validate", "-overwrite", "-how", "inner", *lco,
                     out, a, b)
        same(rows_of(out), [p[:3] for p in wanted_pairs("l2", 0.7, a_rows, b_rows, 0.3)], f"a weight: {r}")
        true("no difference" in r.err, f"-validate: {r}")
        without = sum(row[1]["p"] is None for row in a_rows)
        true(f"{without} without vector" in r.err, f"counted: {r}")
        os.remove(a), os.remove(b)


def check_alone_within_a_distance():
    """The least different among the features within a distance."""
    a, a_rows, b, b_rows = made(".gpkg")
    place = {id(r): tuple(map(int, r[0][7:-1].split())) for r in (*a_rows, *b_rows)}
    # maximum distances greater than all differences, and smaller than many of them
    for most, n_least in ((5, 60), (1.5, 15)):
        expected = []
        for x in a_rows:
            near_by = [(difference("l1", vector(x), vector(y)), y[1]["id"]) for y in b_rows
                       if None not in (vector(x), vector(y)) and math.dist(place[id(x)], place[id(y)]) <= most]
            expected += [(x[1]["id"], i, d) for d, i in sorted(near_by)[:3]]
        succeeds("-vector", "p+q", "-norm", "l1", "-k", 3, "-max_distance", most, "-validate", "-how", "inner",
                 "-overwrite", "out.gpkg", a, b)
        same([(v["id"], v["join_id"], v["join_difference"]) for _, _, v in Layer("out.gpkg").rows], expected)
        true(len(expected) > n_least and max(d for _, _, d in expected) > 1.5, f"{len(expected)} pairs")


def check_beside_other_joins():
    """A condition on vectors in nearest, dwithin and predicates, with texts, and with
    -one_to_one."""
    a, a_rows, b, b_rows = made(".gpkg")
    shapes = [[ogr.CreateGeometryFromWkt(row[0]) for row in rows_] for rows_ in (a_rows, b_rows)]
    near_ = {(i, j): d for i, j, d, _ in wanted_pairs("l1", 1.5, a_rows, b_rows)}
    base = ("-vector", "p+q", "-norm", "l1", "-max_difference", "1.5", "-how", "inner", "-overwrite")

    def apart(i, j):
        return shapes[0][i].Distance(shapes[1][j])

    for words, wanted in (
        (("-op", "dwithin", "-max_distance", 6), {p for p in near_ if apart(*p) <= 6}),
        (("-op", "intersects"), {p for p in near_ if apart(*p) == 0}),
        (("-op", "disjoint"), {p for p in near_ if apart(*p) > 0}),
        (("-op", "dwithin", "-max_distance", 9, "-similar", "name:1"),
         {p for p in near_ if apart(*p) <= 9 and a_rows[p[0]][1]["name"] == b_rows[p[1]][1]["name"]}),
    ):
        for how in ((), ("-threads", 1, "-batch", 7), ("-validate",)):
            r = succeeds(*words, *base, *how, "o.gpkg", a, b)
            same({(i, j): d for i, j, d in rows_of("o.gpkg")}, {p: near_[p] for p in wanted}, f"{words} {how}: {r}")
    nearest = set()
    for i in range(len(a_rows)):
        order = sorted((apart(i, j), j) for j in range(len(b_rows)) if (i, j) in near_)
        nearest |= {(i, j) for _, j in order[:2]}
    succeeds("-op", "nearest", "-k", 2, *base, "o.gpkg", a, b)
    same({(i, j) for i, j, _ in rows_of("o.gpkg")}, nearest, "the two nearest")
    # the greedy choice, by difference and then by distance
    for words, key in ((("-op", "dwithin", "-max_distance", 9), lambda i, j: (near_[i, j], apart(i, j), i, j)),
                       ((), lambda i, j: (near_[i, j], i, j))):
        free, left, right = set(), set(), set()
        for i, j in sorted((p for p in near_ if not words or apart(*p) <= 9), key=lambda p: key(*p)):
            if i not in left and j not in right:
                free.add((i, j)), left.add(i), right.add(j)
        succeeds(*words, *base, "-one_to_one", "o.gpkg", a, b)
        same({(i, j) for i, j, _ in rows_of("o.gpkg")}, free, f"one to one {words}")
    best = {}
    for (i, j), d in near_.items():
        best[i] = min(best.get(i, (9, 0)), (d, j))
    succeeds("-op", "disjoint", *base, "-pick", "most_similar", "-name_difference", "d", "p.gpkg", a, b)
    for _, _, v in rows("p.gpkg"):
        true(v["d"] >= best[v["id"]][0], "the least different of those apart")
    r = run("-op", "dwithin", "-max_distance", 6, *base, "-explain", "q.gpkg", a, b)
    true("vectors are near: p+q, l1, 1.5 or less" in r.out, f"-explain: {r}")


def check_lists():
    """Lists of numbers, lists in texts as GeoPackage stores them, and rows without a
    vector."""
    lists = [[1, 2, 3], [1, 2, 4], [1, 2], None, [], [0, 0, 0], [1, 2, 5.5]]
    features = [{"type": "Feature", "geometry": None, "properties": {"id": i, "emb": v}} for i, v in enumerate(lists)]
    with open("a.geojson", "w", encoding="utf-8") as file:
        json.dump({"type": "FeatureCollection", "features": features}, file)
    with open("a.csv", "w", encoding="utf-8") as file:
        file.write("id,emb\n" + "".join(f'{i},"{"" if v is None else json.dumps(v)}"\n' for i, v in enumerate(lists)))
    usable = [i for i, v in enumerate(lists) if v is not None and len(v) == 3]
    for a, b in itertools.product(("a.geojson", "a.csv"), repeat=2):
        for norm in ("l2", "cosine"):
            wanted = {(i, j): d for i in usable for j in usable if a != b or i != j
                      for d in [difference(norm, lists[i], lists[j])] if d is not None and d <= 2}
            r = succeeds("-vector", "emb", "-norm", norm, "-max_difference", 2, "-how", "inner", "-overwrite",
                         "o.gpkg", a, b)
            same({(i, j): d for i, j, d in rows_of("o.gpkg")}, wanted, f"{a} {b} {norm}: {r}")
            n = len(lists) - len(usable) + (norm == "cosine")
            true(f"{n} without vector" in r.err, f"counted: {r}")
    with open("long.csv", "w", encoding="utf-8") as file:
        file.write("id,emb,more\n" + "".join(f'{i},"{[i] * 1024}","{[i] * 1025}"\n' for i in range(3)))
    succeeds("-vector", "emb", "-max_difference", 32, "-how", "inner", "p.gpkg", "long.csv", "long.csv")
    same({(i, j): d for i, j, d in rows_of("p.gpkg")},
         {(i, j): 32.0 for i, j in ((0, 1), (1, 0), (1, 2), (2, 1))}, "1,024 dimensions")
    shutil.copy("long.csv", "other.csv")
    fails("-vector", "more", "-k", 1, "q.gpkg", "long.csv", "other.csv", message="1024", op=False)
    for name in ("days.csv", "others.csv"):
        with open(name, "w", encoding="utf-8") as file:
            file.write("id,day\n1,2026-11-30\n")
    types = ("-oo", "AUTODETECT_TYPE=YES", "-joo", "AUTODETECT_TYPE=YES")
    fails("-vector", "day", "-k", 1, *types, "q.gpkg", "days.csv", "others.csv",
          message=("holds neither numbers nor lists", "name a field that does"), op=False)


def check_vectors_of_one_direction():
    """Vectors that are multiples of each other have the cosine difference 0, without
    rounding. So a maximum difference of 0 keeps their pair."""
    lists = [[1, 1, 1], [2, 2, 2], [1, 0, -1], [0.1, 0.2, 0.3], [7, 7, 7], [1, 2, 3]]
    for name in ("a.csv", "b.csv"):
        with open(name, "w", encoding="utf-8") as file:
            file.write("id,emb\n" + "".join(f'{i},"{json.dumps(v)}"\n' for i, v in enumerate(lists)))
    wanted = sorted((i, j) for group in ((0, 1, 4), (2,), (3,), (5,)) for i in group for j in group)
    # 0.1, 0.2, 0.3 is no exact multiple of 1, 2, 3 in doubles, but their rounded difference may be
    # 0
    for how in ((), ("-backend", "lists"), ("-validate", "lists")):
        r = succeeds("-vector", "emb", "-norm", "cosine", "-max_difference", 0, "-how", "inner", "-overwrite", *how,
                     "o.gpkg", "a.csv", "b.csv")
        found = rows_of("o.gpkg")
        same(sorted((i, j) for i, j, _ in found if {i, j} != {3, 5}), wanted, f"{how}: {r}")
        same({d for _, _, d in found}, {0.0}, f"{how}")
        succeeds("-vector", "emb", "-norm", "cosine", "-k", 6, "-how", "inner", "-overwrite", *how, "o.gpkg", "a.csv",
                 "b.csv")
        true(all(d >= 0.0 for _, _, d in rows_of("o.gpkg")), f"{how}: none below 0")


def check_wrong_words():
    a, _, b, _ = made(".gpkg", 5)
    for given, message in (
        (("-vector", "p+z", "-k", 1), "no field 'z'"),
        (("-vector", "p"), ("-max_difference D", "-k K")),
        (("-vector", "p:0", "-k", 1), "above 0"),
        (("-vector", "p:x", "-k", 1), "F[:WEIGHT]"),
        (("-vector", "p+", "-k", 1), "F[:WEIGHT]"),
        (("-vector", "p=q:2", "-k", 1), "on the left"),
        (("-vector", "p=q+p", "-k", 1), "1 fields before = and 2 after"),
        (("-vector", "p", "-vector", "q", "-k", 1), "a+b"),
        (("-vector", "p", "-max_difference", "-1"), "0 or more"),
        (("-vector", "p", "-max_difference", "nan"), "0 or more"),
        (("-vector", "p", "-norm", "l3", "-k", 1), "l2|l1|linf|cosine"),
        (("-norm", "l1"), "needs -vector"),
        (("-max_difference", "1"), "needs -vector"),
        (("-name_difference", "d"), "needs -vector"),
    ):
        fails(*given, "o.gpkg", a, b, message=message, op=False)


if __name__ == "__main__":
    main(globals())
