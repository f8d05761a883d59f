"""-one_to_one equals a plain greedy choice from all pairs of the join, the best pair
first.  Each feature of either side occurs at most once."""

from fractions import Fraction

from test_memory import compare

from e2e import *

# Joins with a measure and without, on the layers of sides().
JOINS = """
-op dwithin -max_distance 25
-op nearest -max_distance 100
-op nearest -k 4
-op nearest -k 2 -ties all
-op dwithin -max_distance 40 -on code
-op intersects -centroid_of join
-op bbox
""".strip().split("\n")


def lattice(n, seed, step):
    """Yields n points at multiples of step, many of which coincide or are equally far
    from others."""
    r = random.Random(seed)
    places = range(0, 500, step)
    for i in range(n):
        where = f"POINT ({r.choice(places)} {r.choice(places)})"
        yield (None if i % 50 == 7 else where), {"id": i, "code": r.randrange(3)}


def sides(ending, n=(300, 260)):
    """Makes the layers. FIDs of the join side do not ascend, and do not begin with 0,
    if the format stores FIDs. Returns the paths of both sides."""
    fields = (("id", ogr.OFTInteger), ("code", ogr.OFTInteger))
    names = ["a" + ending, "b" + ending]
    points = list(lattice(n[1], 2, 15))
    fids = random.Random(3).sample(range(5, 40 * n[1]), n[1])
    make(names[0], lattice(n[0], 1, 10), fields, kind=ogr.wkbPoint)
    rows = [(*row, fid) for row, fid in zip(points, fids)] if ending == ".gpkg" else points
    make(names[1], rows, fields, kind=ogr.wkbPoint)
    return names


def plain_choice(words, left, right):
    """Returns {input id: (join id, distance)}, chosen from the pairs of the join
    without -one_to_one."""
    succeeds(*words, "-how", "inner", "-unsetFid", "-overwrite", "pairs.gpkg", left, right)
    order = {v["id"]: i for i, (_, _, v) in enumerate(rows(left))}
    pairs = [row[2] for row in Layer("pairs.gpkg").rows]
    pairs.sort(key=lambda v: (v.get("join_distance") or 0.0, order[v["id"]], v["join_fid"]))
    chosen, taken = {}, set()
    for v in pairs:
        if v["id"] not in chosen and v["join_fid"] not in taken:
            chosen[v["id"]] = v["join_id"], v.get("join_distance")
            taken.add(v["join_fid"])
    return chosen, len(pairs)


def check_answer():
    n_fewer = 0
    for ending in (".gpkg", ".fgb"):
        left, right = sides(ending)
        for line in JOINS:
            words = line.split()
            chosen, n = plain_choice(words, left, right)
            succeeds(*words, "-one_to_one", "-overwrite", "-json_summary", "s.json", "out.gpkg", left, right)
            got = Layer("out.gpkg")
            true("join_rank" not in got.fields, "one pair has no rank")
            same([row[2]["id"] for row in got.rows], [row[2]["id"] for row in rows(left)], "rows stay in order")
            found = {v["id"]: (v["join_id"], v.get("join_distance"))
                     for _, _, v in got.rows if v["join_fid"] is not None}
            same(found, chosen, line)
            said = summary("s.json")
            same((said["pairs_joined"], said["pairs"], said["matched"]), (n, len(chosen), len(chosen)), line)
            n_fewer += n > len(chosen) > 20
    true(n_fewer > 8, f"in {n_fewer} joins there was something to choose")


def plain_pairs(words, left, right):
    """Returns {(input id, join FID): distance as an exact fraction}."""
    succeeds(*words, "-how", "inner", "-unsetFid", "-overwrite", "pairs.gpkg", left, right)
    return {(v["id"], v["join_fid"]): Fraction(v.get("join_distance") or 0.0)
            for _, _, v in rows("pairs.gpkg")}


def improvement(pairs, chosen):
    """Returns a cycle that adds a pair or reduces the sum of distances, or None. If
    there is none, the choice is the best. This is Bellman-Ford over the pairs that can
    be added and removed. One more node stands for rows without a pair, at a cost above
    any sum."""
    price = 1 + sum(pairs.values())
    partner = {row: join for row, join in chosen}
    owner = {join: row for row, join in chosen}
    arcs = []
    for (row, join), cost in pairs.items():
        if partner.get(row) == join:
            arcs.append((("j", join), ("r", row), -cost))
        else:
            arcs.append((("r", row), ("j", join), cost))
    for row in {row for row, _ in pairs}:  # the row loses its pair, or gets one
        arcs.append((("r", row), "end", price) if row in partner else ("end", ("r", row), -price))
    for join in {join for _, join in pairs}:
        arcs.append(("end", ("j", join), 0) if join in owner else (("j", join), "end", 0))
    nodes = {node for arc in arcs for node in arc[:2]}
    length = dict.fromkeys(nodes, Fraction(0))
    for _ in range(len(nodes)):
        changed = None
        for a, b, cost in arcs:
            if length[a] + cost < length[b]:
                length[b] = length[a] + cost
                changed = b
        if changed is None:
            return None
    return changed


def check_best():
    """The best choice has more pairs than the greedy one, or a smaller sum of
    distances. No choice is better."""
    n_more = n_less = 0
    for ending, n in ((".gpkg", (90, 70)), (".fgb", (60, 90))):
        left, right = sides(ending, n)
        for line in JOINS:
            words = line.split()
            pairs = plain_pairs(words, left, right)
            found = {}
            for rule in ("greedy", "best"):
                succeeds(*words, "-one_to_one", rule, "-how", "inner", "-overwrite", "-json_summary", "s.json",
                         "out.gpkg", left, right)
                found[rule] = [(v["id"], v["join_fid"]) for _, _, v in rows("out.gpkg")]
                same(summary("s.json")["groups_chosen_greedily"], 0, line)
                same(len({join for _, join in found[rule]}), len(found[rule]), f"each once: {line}")
                same(len({row for row, _ in found[rule]}), len(found[rule]), f"each once: {line}")
            same(improvement(pairs, found["best"]), None, line)
            greedy, best = (sum(pairs[p] for p in found[rule]) for rule in ("greedy", "best"))
            n_more += len(found["best"]) > len(found["greedy"])
            n_less += len(found["best"]) == len(found["greedy"]) and best < greedy
            true(len(found["best"]) >= len(found["greedy"]), line)
    true(n_more > 2 and n_more + n_less > 4, f"best differs: {n_more} times more pairs, {n_less} times a smaller sum")


def check_best_in_all_ways():
    """The output has equal bytes with any threads and batches, with pairs in files, and
    through JOIN:."""
    left, right = sides(".gpkg", (2500, 9000))
    words = ["-op", "dwithin", "-max_distance", 9, "-one_to_one", "best"]
    for more in ((), ("-how", "full"), ("-nearest_point_fields",)):
        compare([*map(str, words), *more], left, right)
    made = []
    for more in (("-threads", 1), ("-threads", 4, "-batch", 7), ("-batch", 1)):
        succeeds(*words, *more, "-overwrite", "out.csv", left, right)
        made.append(digest("out.csv"))
    same(len(set(made)), 1, "threads and batches")


def check_large_group():
    """A group of more than 1,000,000 pairs is chosen greedily. A message says so."""
    line = [f"POINT ({i} 0)" for i in range(5000)]
    make("a.gpkg", [(p, {"id": i}) for i, p in enumerate(line)], (("id", ogr.OFTInteger),))
    words = ["-op", "dwithin", "-max_distance", 110, "-exclude", "self", "-overwrite", "-how", "inner"]
    r = succeeds(*words, "-one_to_one", "best", "-json_summary", "s.json", "out.csv", "a.gpkg", "a.gpkg")
    true("-one_to_one best: 1 group" in r.err and "greedily" in r.err, f"reported: {r}")
    same(summary("s.json")["groups_chosen_greedily"], 1)
    succeeds(*words, "-one_to_one", "other.csv", "a.gpkg", "a.gpkg")
    same(digest("out.csv"), digest("other.csv"), "the greedy pairs")


def check_who_is_kept():
    left, right = sides(".gpkg")
    words = ["-op", "dwithin", "-max_distance", 25]
    chosen, n = plain_choice(words, left, right)
    alone = {row[2]["id"] for row in rows(left)} - set(chosen)
    join_alone = {row[2]["id"] for row in rows(right)} - {j for j, _ in chosen.values()}
    true(len(alone) > 20 and len(join_alone) > 20, "there are leftovers")
    words += ["-one_to_one", "-overwrite"]

    def ids(how, layer=None, more=()):
        succeeds(*words, "-how", how, *more, "out.gpkg", left, right)
        return Layer("out.gpkg", layer).column("id")

    same(set(ids("inner")), set(chosen), "inner")
    same(set(ids("semi")), set(chosen), "semi")
    same(set(ids("anti")), alone, "anti")
    same(len(ids("right")), len(chosen) + len(join_alone), "right")
    same(len(ids("full")), 300 + len(join_alone), "full")
    beside = ("-unmatched_layer", "no_b", "-unmatched_join_layer", "no_a")
    same(len(ids("left", None, beside)), 300, "left")
    same(set(Layer("out.gpkg", "no_b").column("id")), alone, "input rows alone")
    same(set(Layer("out.gpkg", "no_a").column("id")), join_alone, "join rows alone")
    r = succeeds(*words, "out.gpkg", left, right)
    true(f"{n} pairs, of which {len(chosen)} one to one" in r.err, f"says so: {r}")


@once
def check_threads_and_batches():
    """Threads and batches do not change a byte of the output."""
    sides(".gpkg")
    sides(".fgb")
    csv = "X,Y,id\n" + "".join(f"{i * 7 % 300},{i * 11 % 290},{i}\n" for i in range(400))
    for name in ("a.csv", "b.csv"):
        with open(name, "w", encoding="utf-8") as file:
            file.write(csv)
    points = ("-oo", "X_POSSIBLE_NAMES=X", "-oo", "Y_POSSIBLE_NAMES=Y",
              "-joo", "X_POSSIBLE_NAMES=X", "-joo", "Y_POSSIBLE_NAMES=Y")
    for words, ending in (
        (("-op", "dwithin", "-max_distance", 25), ".gpkg"),
        (("-op", "nearest", "-k", 3), ".fgb"),
        (("-op", "intersects"), ".fgb"),
        (("-op", "dwithin", "-max_distance", 12, *points), ".csv"),
    ):
        first = None
        for more in (
            ("-threads", 1), ("-threads", 2), ("-threads", 4),
            ("-threads", 2, "-batch", 1), ("-threads", 4, "-batch", 7), ("-batch", 100),
        ):
            for out in ("out.csv", "out.fgb"):
                succeeds(*words, *more, "-one_to_one", "-overwrite", out, "a" + ending, "b" + ending)
            made = digest("out.csv"), digest("out.fgb")
            first = first or made
            same(made, first, f"{words} {more}")


def check_tiles():
    """A join side larger than memory."""
    left, right = sides(".gpkg", (2500, 9000))
    for line in ("-op dwithin -max_distance 6", "-op nearest -k 3", "-op intersects",
                 "-op dwithin -max_distance 6 -how full -nearest_point_fields"):
        compare([*line.split(), "-one_to_one"], left, right)


@once
def check_self_join():
    """In a self join, each FID occurs at most once on each side."""
    left, _ = sides(".gpkg")
    words = ["-op", "dwithin", "-max_distance", 30]
    for more in ((), ("-unordered_pairs",)):
        chosen, _ = plain_choice([*words, *more], left, left)
        succeeds(*words, *more, "-one_to_one", "-how", "inner", "-overwrite", "out.gpkg", left, left)
        found = {v["id"]: (v["join_id"], v["join_distance"]) for _, _, v in rows("out.gpkg")}
        same(found, chosen, str(more))
        partners = [j for j, _ in found.values()]
        same(len(set(partners)), len(partners), "each once")


def check_in_place():
    left, right = sides(".gpkg")
    words = ["-op", "dwithin", "-max_distance", 25]
    chosen, n = plain_choice(words, left, right)
    for _ in range(2):
        r = succeeds("-in_place", *words, "-one_to_one", "-validate", left, right)
        true(f"300 rows, {n} pairs with their distances: no difference" in r.err, f"all pairs are compared: {r}")
        found = {v["id"]: (v["join_id"], v["join_distance"])
                 for _, _, v in rows(left) if v["join_fid"] is not None}
        same(found, chosen)


@once
def check_validate():
    """-validate compares all pairs of the join, before pairs are chosen."""
    left, right = sides(".gpkg")
    words = ["-op", "dwithin", "-max_distance", 25]
    _, n = plain_choice(words, left, right)
    r = succeeds(*words, "-one_to_one", "-validate", "-json_summary", "s.json", "out.gpkg", left, right)
    same((summary("s.json")["pairs_validated"], summary("s.json")["rows_different"]), (n, 0), str(r))


def check_other_columns():
    """Overlaps and intersections are those of the chosen pairs."""
    lots_file("l.gpkg", 40)
    lots_file("m.gpkg", 30)
    words = ["-one_to_one", "-overlap", "area", "-geometry", "intersection", "-how", "inner"]
    succeeds(*words, "out.gpkg", "l.gpkg", "m.gpkg")
    shapes = {name: dict(zip([row[0] for row in rows(name)], Layer(name).shapes())) for name in ("l.gpkg", "m.gpkg")}
    got = rows("out.gpkg")
    true(len(got) > 10, "something is joined")
    for fid, wkb, v in got:
        both = shapes["l.gpkg"][fid].Intersection(shapes["m.gpkg"][v["join_fid"]])
        near(v["overlap_area"], both.GetArea(), 1e-6, f"{fid}")
        near(ogr.CreateGeometryFromWkb(wkb).GetArea(), both.GetArea(), 1e-6, f"{fid}")


def check_select():
    """The result of a SELECT is read twice. If the second reading has another order,
    this is an error."""
    left, right = sides(".gpkg")
    words = ["-op", "dwithin", "-max_distance", 25, "-one_to_one"]
    chosen, _ = plain_choice(words[:-1], left, right)
    succeeds(*words, "-sql", "SELECT * FROM a", "out.gpkg", left, right)
    same({v["id"] for _, _, v in rows("out.gpkg") if v["join_id"] is not None}, set(chosen))
    fails(*words, "-sql", "SELECT * FROM a ORDER BY random()", "no.gpkg", left, right,
          message="another order", op=False)


@once
def check_odd_rows_are_counted_once():
    fields = (("reach", ogr.OFTReal),)
    make("a.gpkg", [(p, {"reach": i % 9 - 2 if i % 5 else None}) for i, p in enumerate(random_points(90, size=40))], fields)
    make("b.gpkg", [(p, {"reach": 1}) for p in random_points(80, size=40, seed=6)], fields)
    said = []
    for more in ((), ("-one_to_one",)):
        r = succeeds("-max_distance_field", "reach", *more, "-overwrite", "out.gpkg", "a.gpkg", "b.gpkg")
        said.append([line for line in r.err.splitlines() if "no number" in line])
    same(said[1], said[0])
    true(len(said[0]) == 1, f"it is said: {said}")


@once
def check_what_makes_no_sense():
    left, right = sides(".gpkg")
    words = ["-op", "dwithin", "-max_distance", 25, "-one_to_one"]
    fails(*words, "-pick", "first", "no.gpkg", left, right, message="-one_to_one", op=False)
    fails(*words, "-agg", "count", "no.gpkg", left, right, message="-one_to_one", op=False)
    fails(*words, "-max_pairs", 100, "no.gpkg", left, right, message="-max_pairs", op=False)
    fails("-k", 2, "-one_to_one", "-name_rank", "r", "no.gpkg", left, right, message="-name_rank")
    r = run(*words, "-f", "CSV", "no.csv", "/vsistdin/", right)
    true(r.rc == 1 and not os.path.exists("no.csv"), f"a stream is read once: {r}")


main(globals())
