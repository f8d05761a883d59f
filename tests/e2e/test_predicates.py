"""Every join by predicate.  The command is compared with GEOS for every pair: features
of all kinds that intersect on a grid of integers, windows, conditions on attributes,
representative points, invalid polygons, limits on the number of pairs, and -validate.
test_random_layers and test_joins_random test patterns, layers of one kind, backends,
threads and batches."""

from meeting_shapes import *


# --- predicates ---------------------------------------------------------------


def check_predicates_of_all_kinds():
    a = Side("a.gpkg", all_kinds(1), "id")
    b = Side("b.gpkg", all_kinds(2), "jid")
    true(all(s.is_valid for s in a.shapes + b.shapes if s), "only valid features")
    for op in PREDICATE_OPS:
        wanted = expect(a, b, lambda i, j: holds(op, a.shapes[i], b.shapes[j]))
        got, _ = ask(a, b, "-op", op)
        same_pairs(got, wanted, op, a, b)
        same(got, sorted(got), f"{op}: rows in the order of both FIDs")
        true(len(wanted) > 1, f"{op} finds something")


# --- one pair of a row --------------------------------------------------------


def check_many_at_one_place():
    """All features of a layer are equal: 9 x 10^8 pairs, whose list would take minutes."""
    n = 30000
    for name, shape in ("p.csv", "POINT (3 4)"), ("s.csv", "POLYGON ((0 0,9 0,9 9,0 9,0 0))"):
        with open(name, "w", encoding="utf-8") as file:
            file.write("id,WKT\n" + "".join(f'{i},"{shape}"\n' for i in range(n)))
    for op in ("intersects",), ("bbox",), ("dwithin", "-max_distance", 1):
        for a, b in (("p.csv", "s.csv"), ("s.csv", "s.csv"), ("p.csv", "p.csv")):
            for words in ("-how", "semi"), ("-how", "anti"), ("-how", "inner", "-pick", "first"):
                if op[0] == "dwithin" and "-pick" in words and b == "s.csv":
                    continue
                succeeds("-op", *op, *words, "-json_summary", "summary.json", "-nlt", "NONE", "-overwrite", "o.csv",
                         a, b)
                said = summary()
                same((said["pairs"], said["matched"]), (n, n), f"{op} {words} {a} {b}")
                same(said["rows_written"], 0 if "anti" in words else n)
                if "-pick" in words:  # a feature is no pair of itself
                    first = [v for v in Layer("o.csv").column("join_id")]
                    same(first, ["1" if a == b and i == 0 else "0" for i in range(n)], f"{op} {a} {b}")
    # A column with the number of pairs needs all of them.
    succeeds("-op", "within", "-pick", "first", "-name_count", "n", "-limit", 5, "-overwrite", "o.csv", "p.csv", "s.csv")
    same(Layer("o.csv").column("n"), [str(n)] * 5)


# --- windows ------------------------------------------------------------------


def check_windows():
    a = Side("a.gpkg", all_kinds(9), "id")
    boxes = ((1, 1, 3, 4), (0, 0, 12, 12), (2, 2, 2, 6), (5, 5, 5, 5), (20, 20, 21, 21), (1.5, 1.5, 1.75, 1.75))
    words = []
    for b in boxes:
        words += ["-window", *b]
    shapes = []
    for x0, y0, x1, y1 in boxes:
        if (x0, y0) == (x1, y1):
            shapes.append(f"POINT ({x0} {y0})")
        elif x0 == x1 or y0 == y1:
            shapes.append(f"LINESTRING ({x0} {y0}, {x1} {y1})")
        else:
            shapes.append(f"POLYGON ({box(x0, y0, x1 - x0, y1 - y0)})")
    shapes = [Shape(ogr.CreateGeometryFromWkt(s)) for s in shapes]
    wanted = [(i, j + 1) for i, x in enumerate(a.shapes) for j, y in enumerate(shapes)
              if holds("intersects", x, y) is True]
    for op in ((), ("-op", "window")):
        succeeds(*op, *words, "-select", "id", "-overwrite", "o.csv", a.path)
        same(pairs_of("o.csv", "id", "join_fid"), wanted, "rows in boxes")
    # -how anti, semi and left: rows with and without a pair.
    met = [i for i in range(len(a)) if i in {p[0] for p in wanted}]
    lonely = [i for i in range(len(a)) if i not in met]
    for how, rows in (("anti", lonely), ("semi", met), ("left", sorted([p[0] for p in wanted] + lonely))):
        succeeds(*words, "-how", how, "-overwrite", "o.gpkg", a.path)
        same(Layer("o.gpkg").column("id"), rows, how)


def check_window_of_a_layer():
    a = Side("a.gpkg", all_kinds(10), "id")
    b = Side("b.gpkg", all_kinds(11), "jid")

    def envelope(shape):
        if not shape:
            return Shape(None)
        x0, x1, y0, y1 = shape.ogr.GetEnvelope()
        if (x0, y0) == (x1, y1):
            return Shape(ogr.CreateGeometryFromWkt(f"POINT ({x0!r} {y0!r})"))
        if x0 == x1 or y0 == y1:
            return Shape(ogr.CreateGeometryFromWkt(f"LINESTRING ({x0!r} {y0!r}, {x1!r} {y1!r})"))
        corners = f"{x0!r} {y0!r}, {x1!r} {y0!r}, {x1!r} {y1!r}, {x0!r} {y1!r}, {x0!r} {y0!r}"
        return Shape(ogr.CreateGeometryFromWkt(f"POLYGON (({corners}))"))

    boxes = [envelope(s) for s in b.shapes]
    wanted = expect(a, b, lambda i, j: holds("intersects", a.shapes[i], boxes[j]))
    got, _ = ask(a, b, "-op", "window")
    same_pairs(got, wanted, "window", a, b)


# --- attributes -------------------------------------------------------------------


def check_on_types():
    """-on compares two fields of numbers as numbers, all others as texts."""
    values = {
        ogr.OFTInteger: [1, 2, -3, 0, None, 2147483647],
        ogr.OFTInteger64: [1, 2**53 + 1, -3, 0, None, 2147483647],
        ogr.OFTReal: [1.0, 2.5, -3.0, -0.0, None, 2147483647.0],
        ogr.OFTString: ["1", "2.5", "-3", "0", None, "2147483647"],
        ogr.OFTDate: ["2024/01/01", "2024/01/02", None, "1999/12/31", None, "2024/01/01"],
        ogr.OFTDateTime: ["2024/01/01 00:00:00", "2024/01/02 10:00:00", None, "1999/12/31 00:00:00", None, None],
    }

    def equal(x, y):
        if x is None or y is None:
            return False
        if isinstance(x, str) != isinstance(y, str):
            return str(x) == str(y) if not isinstance(x, float) and not isinstance(y, float) else None
        return x == y

    for left, of_left in values.items():
        make("a.gpkg", [("POINT (1 1)", {"id": i, "v": v}) for i, v in enumerate(of_left)],
             (("id", ogr.OFTInteger), ("v", left)))
        for right, of_right in values.items():
            dates = {ogr.OFTDate, ogr.OFTDateTime}
            if (left in dates or right in dates) and left != right:
                continue
            make("b.gpkg", [("POINT (1 1)", {"jid": i, "v": v}) for i, v in enumerate(of_right)],
                 (("jid", ogr.OFTInteger), ("v", right)))
            r = succeeds("-on", "v", "-how", "inner", "-overwrite", "o.csv", "a.gpkg", "b.gpkg")
            got = set(pairs_of("o.csv"))
            for i, x in enumerate(of_left):
                for j, y in enumerate(of_right):
                    said = equal(x, y)
                    if said is not None:
                        same((i, j) in got, said, f"{x!r} of {ogr.GetFieldTypeName(left)} and "
                                                  f"{y!r} of {ogr.GetFieldTypeName(right)}")
            os.remove("b.gpkg")
        os.remove("a.gpkg")


# --- representative points ---------------------------------------------------------


def check_representative_points():
    shapes = [*polygons(random.Random(29), 24), *lines(random.Random(29), 12), *points(random.Random(29), 12)]
    a = Side("a.gpkg", [*shapes, None, "POLYGON EMPTY"], "id")
    b = Side("b.gpkg", [*polygons(random.Random(30), 24), None, "POINT EMPTY"], "jid")

    def moved(side, how):
        return [Shape(getattr(s.ogr, how)() if s else None) for s in side.shapes]

    for option, method in (("-centroid_of", "Centroid"), ("-point_on_surface_of", "PointOnSurface")):
        left, right = moved(a, method), moved(b, method)
        for which, x, y in (("input", left, b.shapes), ("join", a.shapes, right), ("both", left, right)):
            for op in ("intersects", "within", "coveredby"):
                wanted = expect(a, b, lambda i, j: holds(op, x[i], y[j]))
                got, _ = ask(a, b, "-op", op, option, which)
                same_pairs(got, wanted, f"{op} {option} {which}", a, b)
            wanted = [(i, j) for i, s in enumerate(x) for j, t in enumerate(y) if s and t and distance(s, t) <= 1.3]
            got, _ = ask(a, b, "-op", "dwithin", "-max_distance", 1.3, option, which)
            same_pairs(got, wanted, f"dwithin {option} {which}", a, b)
    # The output keeps the features.
    succeeds("-op", "within", "-centroid_of", "input", "o.gpkg", a.path, b.path)
    kept = {values["id"]: wkb for _, wkb, values in Layer("o.gpkg").rows}
    same(kept, {values["id"]: wkb for _, wkb, values in Layer("a.gpkg").rows})
    # Distances between centroids equal GEOS's bit for bit.
    run("-op", "nearest", "-centroid_of", "both", "-overwrite", "o.gpkg", a.path, b.path)
    left, right = ([s.ogr.Centroid() for s in side.shapes if s] for side in (a, b))
    same([d for d in Layer("o.gpkg").column("join_distance") if d is not None],
         [min(p.Distance(q) for q in right) for p in left])


# --- invalid polygons ---------------------------------------------------------------------


def check_invalid():
    """The even-odd rule decides which points are inside of invalid polygons. Also tests
    -invalid skip, fix and fail."""
    plain = points(random.Random(32), 80)
    a = Side("a.gpkg", plain, "id")
    b = Side("b.gpkg", [*polygons(random.Random(33), 8), *BOW_TIES, None, "POLYGON EMPTY"], "jid")
    bad = {j for j, s in enumerate(b.shapes) if s and not s.is_valid}
    same(len(bad), len(BOW_TIES))
    usual = expect(a, b, lambda i, j: j not in bad and holds("intersects", a.shapes[i], b.shapes[j]))
    got, r = ask(a, b, "-op", "intersects")
    same_pairs([p for p in got if p[1] not in bad], usual, "the valid ones")
    true(any(p[1] in bad for p in got), "invalid ones are used")
    # two overlapping boxes as one ring: their common part counts as outside
    both = 8 + BOW_TIES.index(BOW_TIES[2])
    for i, j in ((i, both) for i, s in enumerate(a.shapes) if len(s.parts) == 1):
        x, y = a.shapes[i].ogr.GetX(), a.shapes[i].ogr.GetY()
        one, two = 2 < x < 6 and 2 < y < 6, 4 < x < 8 and 4 < y < 8
        on = (2 <= x <= 6 and 2 <= y <= 6 and not one) or (4 <= x <= 8 and 4 <= y <= 8 and not two)
        if on or one or two:
            same((i, j) in got, on or one != two, f"({x} {y}) and two boxes")
    got, r = ask(a, b, "-op", "intersects", "-invalid", "skip")
    same_pairs(got, usual, "skip", a, b)
    true(f"{len(bad)} of" in r.err and "skipped" in r.err, f"says how many: {r}")
    fixed = [Shape(s.ogr.MakeValid()) if s and not s.is_valid else s for s in b.shapes]
    for op in ("intersects", "within"):
        wanted = expect(a, b, lambda i, j: holds(op, a.shapes[i], fixed[j]))
        got, r = ask(a, b, "-op", op, "-invalid", "fix")
        same_pairs(got, wanted, f"fix {op}", a, b)
        true(f"{len(bad)} of" in r.err, f"says how many: {r}")
    wanted = expect(b, b, lambda i, j: i != j and holds("overlaps", fixed[i], fixed[j]))
    same_pairs(ask(b, b, "-op", "overlaps", "-invalid", "fix")[0], wanted, "overlaps", b, b)
    fails("-op", "intersects", "-invalid", "fail", "o.gpkg", "a.gpkg", "b.gpkg", op=False, message=["not valid", "9"])
    fails("-op", "intersects", "-invalid", "fail", "o.gpkg", "b.gpkg", "a.gpkg", op=False, message=["not valid", "9"])
    # With -invalid fix the original geometry is written, not the repaired one.
    run("-op", "covers", "-invalid", "fix", "-how", "semi", "s.gpkg", "b.gpkg", "a.gpkg")
    before = {v["jid"]: wkb for _, wkb, v in Layer("b.gpkg").rows}
    for _, wkb, v in Layer("s.gpkg").rows:
        same(wkb, before[v["jid"]])


def check_no_pair_is_left_undecided():
    """GEOS cannot decide some pairs of invalid features. The join decides all of them,
    and -validate confirms them."""
    a = Side("a.gpkg", [*BOW_TIES, *polygons(random.Random(34), 16)], "id")
    for op in ("overlaps", "touches", "equals", "within"):
        r = succeeds("-op", op, "-how", "inner", "-json_summary", "s.json", "-overwrite", "o.csv", a.path, a.path)
        wanted = expect(a, a, lambda i, j: i != j and holds(op, a.shapes[i], a.shapes[j]))
        got = set(pairs_of("o.csv", "id", "join_id"))
        valid = {i for i, s in enumerate(a.shapes) if s.is_valid}
        same_pairs([p for p in got if set(p) <= valid], [p for p in wanted if set(p) <= valid], op, a, a)
        true("GEOS cannot decide whether" not in r.err, f"{op}: {r}")
        r = run("-op", op, "-validate", "-overwrite", "v.csv", a.path, a.path)
        true(r.rc == 0 and "no difference" in r.err, f"{op}: {r}")


# --- bounds -----------------------------------------------------------------------------


def check_max_pairs():
    a = Side("a.gpkg", points(random.Random(35), 50), "id")
    b = Side("b.gpkg", polygons(random.Random(36), 40), "jid")
    for words in (("-op", "disjoint"), ("-op", "intersects"), ("-op", "dwithin", "-max_distance", 3), ("-k", 5)):
        n = len(ask(a, b, *words)[0])
        true(n > 10, "a fair trial")
        same(len(ask(a, b, *words, "-max_pairs", n)[0]), n)
        os.remove("o.csv")
        fails(*words, "-max_pairs", n - 1, "o.gpkg", "a.gpkg", "b.gpkg", op=False, message=["-max_pairs", str(n - 1)])
        fails(*words, "-max_pairs", 1, "-batch", 3, "o.gpkg", "a.gpkg", "b.gpkg", op=False, message=["-max_pairs"])


def check_validation_of_every_join():
    # the polygon whose hole is outside its shell is left out, because GEOS's
    # envelope ignores the hole
    a = Side("a.gpkg", [*all_kinds(37), *BOW_TIES[:3]], "id")
    b = Side("b.gpkg", [*all_kinds(38), *BOW_TIES[:3]], "jid")
    for words in (*(("-op", op) for op in PREDICATE_OPS), ("-relate", "T*F**F***"), ("-op", "window"),
                  ("-op", "dwithin", "-max_distance", 1), ("-k", 3), ("-op", "nearest"),
                  ("-k", 2, "-ties", "all"), ("-op", "nearest", "-distance_to", "boundary"), ("-op", "intersects", "-on", "id_code=jid_code"),
                  ("-op", "nearest", "-exclude", "same_geometry", "-min_distance", 1)):
        for reference in ("geos", "spatialindex"):
            r = succeeds(*words, "-validate", reference, "-overwrite", "o.gpkg", a.path, b.path)
            said = r.err.split("validated")[1]
            has_distances = "-k" in words or words[1] in ("dwithin", "nearest")
            true("no difference" in said and ("distances" in said) == has_distances, f"{words}: {r}")


if __name__ == "__main__":
    main(globals())
