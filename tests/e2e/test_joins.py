"""Joins other than nearest, and the conditions on their pairs.  They are compared with
OGR's own test of every pair."""

import csv
import os
import random

from e2e import *


def pairs(*words, rc=0, left="name", right="join_name"):
    """Returns the pairs that the command finds, as names."""
    if os.path.exists("pairs.gpkg"):
        os.remove("pairs.gpkg")
    r = run("-how", "inner", *words[:-2], "pairs.gpkg", *words[-2:])
    same(r.rc, rc, str(r))
    got = Layer("pairs.gpkg")
    return list(zip(got.column(left), got.column(right)))


def expected(a, b, holds):
    """Returns the pairs for which OGR's own predicate holds, in the order of the output."""
    found = []
    for i, (row, x) in enumerate(zip(a.rows, a.shapes())):
        for j, (other, y) in enumerate(zip(b.rows, b.shapes())):
            if is_joinable(x) and is_joinable(y) and holds(x, y, row, other):
                found.append((row[2]["name"], other[2]["name"]))
    return found


# --- distances in fields, equal attributes, exclusions --------------------


FIELDS = (("name", ogr.OFTString), ("i", ogr.OFTInteger), ("s", ogr.OFTString),
          ("r", ogr.OFTReal), ("b", ogr.OFTInteger64))


def table(path, n=120, seed=1, big=2**53):
    r = random.Random(seed)
    rows = []
    for k in range(n):
        values = {
            "name": f"{path[0]}{k}",
            "i": r.choice([1, 2, 3, None, 7]),
            "s": r.choice(["1", "2", "3.5", "x", "", None]),
            "r": r.choice([0.5, 1.0, 2.0, None, -1.0, float("nan"), 3.5]),
            "b": r.choice([1, 2, big, big + 1, None]),
        }
        rows.append((f"POINT ({r.randint(0, 9)} {r.randint(0, 9)})", values))
    make(path, rows, FIELDS, kind=ogr.wkbPoint)
    return Layer(path)


def near_by(x, y):
    return x.Distance(y) <= 1.5


def equal(p, left, q, right):
    """Returns True if two values are equal. NULL and NaN equal nothing. A number is
    compared with a text as text."""
    u, v = p[2][left], q[2][right]
    if u is None or v is None or u != u or v != v:
        return False
    if isinstance(u, str) or isinstance(v, str):
        u, v = (w if isinstance(w, str) else f"{w:.15g}" for w in (u, v))
    return u == v


def check_on():
    a, b = table("a.gpkg"), table("b.gpkg", seed=2)
    words = ["-op", "dwithin", "-max_distance", 1.5]
    for left, right in (("i", "i"), ("i", "r"), ("r", "i"), ("i", "s"), ("s", "r"),
                        ("r", "r"), ("s", "s"), ("b", "b"), ("b", "i"), ("r", "b")):
        want = expected(a, b, lambda x, y, p, q: near_by(x, y) and equal(p, left, q, right))
        true(want, "some are equal")
        same(pairs(*words, "-on", f"{left}={right}", "a.gpkg", "b.gpkg"), want, f"{left}={right}")
    want = expected(a, b, lambda x, y, p, q: near_by(x, y) and equal(p, "i", q, "i")
                    and equal(p, "s", q, "s"))
    for on in ("i=i,s=s", "i, s", "S=s , I=i"):
        same(pairs(*words, "-on", on, "a.gpkg", "b.gpkg"), want, on)
    # Fields that are not written can be compared; they stay unwritten.
    same(pairs(*words, "-on", "i,s", "-select", "name", "-join_select", "name",
               "-batch", 7, "a.gpkg", "b.gpkg"), want)
    same([n for n in Layer("pairs.gpkg").fields if not n.startswith("join_")], ["name"])
    # The k nearest are chosen among the pairs that fulfil the other conditions.
    got = pairs("-op", "nearest", "-k", 3, "-on", "i", "-name_distance", "d", "a.gpkg", "b.gpkg")
    for p, x in zip(a.rows, a.shapes()):
        best = sorted(x.Distance(y) for q, y in zip(b.rows, b.shapes()) if equal(p, "i", q, "i"))
        found = [r[2]["d"] for r in Layer("pairs.gpkg").rows if r[2]["name"] == p[2]["name"]]
        same(found, best[:3])
    true(got, "some are near")


def check_names_in_double_quotes():
    """Names that contain = , : or spaces. They are used in -on, -exclude and -pick as
    in other options."""
    fields = (("a=b", ogr.OFTInteger), ("c, d", ogr.OFTInteger), ('say "x"', ogr.OFTInteger), ("name", ogr.OFTString))
    for path in ("a.gpkg", "b.gpkg"):
        make(path, [(f"POINT ({i} 0)", {"a=b": i, "c, d": i % 2, 'say "x"': 5 - i, "name": f"n{i}"}) for i in range(4)],
             fields, kind=ogr.wkbPoint)
    all_pairs = ("-op", "dwithin", "-max_distance", 10)

    def names(*words):
        succeeds("-overwrite", "-how", "inner", *all_pairs, *words, "o.gpkg", "a.gpkg", "b.gpkg")
        return sorted((v["name"], v["join_name"]) for _, _, v in Layer("o.gpkg").rows)

    same_name = [(f"n{i}", f"n{i}") for i in range(4)]
    for on in ('"a=b"', '"a=b"="a=b"', ' "a=b" = "a=b" ', 'name,"c, d"', '"c, d","a=b"', '"say ""x"""'):
        same(names("-on", on), same_name, on)
        same(len(names("-exclude", f"field={on}")), 12, on)
    same(len(names("-on", '"c, d"')), 8)
    for rule, best in (('max:"a=b"', "n3"), ("max:a=b", "n3"), ('min:"c, d"', "n0"), ('max:"say ""x"""', "n0")):
        same(names("-pick", rule), [(f"n{i}", best) for i in range(4)], rule)
    same(len(names("-similar", '"a=b"="a=b":1')), 4)
    fails("-on", '"a=b', *all_pairs[2:], "p.gpkg", "a.gpkg", "b.gpkg", message="double quotes")
    fails("-pick", 'max:"a=b', *all_pairs[2:], "p.gpkg", "a.gpkg", "b.gpkg", message="double quote")


ODD_NAMES = ("a=b", 'x,"y"', "a:0.6", "p+q:m", '"z"', "it's", "max(h)")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@once
def check_odd_names_in_all_options():
    """Each option that accepts a plain field name also accepts any other name, in
    double quotes."""
    near = ("-op", "dwithin", "-max_distance", 10)
    options = (
        (*near, "-on", "{}"),
        (*near, "-on", "{}={}"),
        (*near, "-on", "name, {} = {} ,name"),
        (*near, "-exclude", "field={}"),
        (*near, "-exclude", "field=name,{}={}"),
        (*near, "-pick", "max:{}"),
        (*near, "-pick", "min:{}"),
        (*near, "-agg", "sum({}) as s, count as m, concat( {} , ', ') as c"),
        (*near, "-similar", "{}:0.5"),
        (*near, "-similar", "{}={}:1/2"),
        (*near, "-similar", "name+{}=name+{}:0.9"),
        (*near, "-vector", "{}", "-max_difference", 1),
        (*near, "-vector", "{}:0.5+n={}+n", "-max_difference", 1),
        (*near, "-select", "{},name", "-join_select", " name , {} "),
        ("-op", "dwithin", "-max_distance_field", "{}"),
        ("-op", "dwithin", "-max_distance_field", "{}:ft"),
        ("-op", "dwithin", "-join_max_distance_field", "{}:m"),
    )

    def rows(name, *words):
        words = [str(word).replace("{}", name) for word in words]
        succeeds("-overwrite", "-how", "inner", *words, "o.csv", "a.gpkg", "b.gpkg")
        with open("o.csv", newline="") as file:
            return list(csv.reader(file))[1:]

    def layers(name):
        fields = (("n", ogr.OFTInteger), (name, ogr.OFTInteger), ("name", ogr.OFTString))
        for path in ("a.gpkg", "b.gpkg"):
            make(path, [(f"POINT ({i} 0)", {"n": i % 3, name: (i * 3) % 5, "name": f"n{i}"}) for i in range(5)],
                 fields, kind=ogr.wkbPoint)

    layers("plain")
    expected = [rows("plain", *words) for words in options]
    true(all(expected), "each option has rows")
    for name in ODD_NAMES:
        layers(name)
        for words, want in zip(options, expected):
            same(rows(quoted(name), *words), want, f"{name}: {words}")
    for words in ((*near, "-select", '"a'), (*near, "-join_select", '"a"b'),
                  ("-op", "dwithin", "-max_distance_field", '"a"b')):
        fails(*words, "p.csv", "a.gpkg", "b.gpkg", message="double quote", op=False)
    fails("-op", "dwithin", "-max_distance_field", '"name":inch', "p.csv", "a.gpkg", "b.gpkg",
          message="unknown unit 'inch'", op=False)


def check_exclude():
    a, b = table("a.gpkg"), table("b.gpkg", seed=2)
    words = ["-op", "dwithin", "-max_distance", 1.5]

    def want(counts):
        return expected(a, b, lambda x, y, p, q: near_by(x, y) and counts(x, y, p, q))

    same(pairs(*words, "-exclude", "self", "a.gpkg", "b.gpkg"), want(lambda x, y, p, q: p[0] != q[0]))
    same(pairs(*words, "-exclude", "self", "-unordered_pairs", "a.gpkg", "b.gpkg"),
         want(lambda x, y, p, q: p[0] < q[0]))
    same(pairs(*words, "-exclude", "SAME_geometry", "a.gpkg", "b.gpkg"),
         want(lambda x, y, p, q: not x.Equals(y)))
    same(pairs(*words, "-exclude", "field=i", "-select", "name", "a.gpkg", "b.gpkg"),
         want(lambda x, y, p, q: not equal(p, "i", q, "i")))
    same(pairs(*words, "-exclude", "field=i=r", "-exclude", "self", "-on", "s", "a.gpkg", "b.gpkg"),
         want(lambda x, y, p, q: not equal(p, "i", q, "r") and p[0] != q[0] and equal(p, "s", q, "s")))
    same(pairs(*words, "-exclude", "field=i,s", "a.gpkg", "b.gpkg"),
         want(lambda x, y, p, q: not (equal(p, "i", q, "i") and equal(p, "s", q, "s"))))


def check_fields_of_distances():
    table("a.gpkg")
    table("b.gpkg", seed=2)
    # If a side has no rows, the types of its fields do not matter.
    for words in (("-join_max_distance_field", "i", "-join_where", "1 = 0"),
                  ("-max_distance_field", "r", "-where", "1 = 0")):
        for more in ((), ("-memory", "1M"), ("-backend", "geos"), ("-validate",)):
            same(pairs(*words, *more, "a.gpkg", "b.gpkg"), [], f"{words} {more}")


@once
def check_invalid_conditions():
    table("a.gpkg")
    table("b.gpkg", seed=2)
    w = ["o.gpkg", "a.gpkg", "b.gpkg"]

    def wrong(*words, message):
        fails(*words, *w, message=message, op=False)

    near = ["-op", "dwithin", "-max_distance", 1]
    wrong(*near, "-on", "nofield=i", message=["-on", "input layer", "nofield", "it has: name, i, s"])
    wrong(*near, "-on", "i=nofield", message=["-on", "join layer", "nofield"])
    wrong(*near, "-on", "nam", message="did you mean 'name'?")
    for bad in ("", ",", "i=", "=i", "i=s=r"):
        wrong(*near, "-on", bad, message="-on")
    wrong(*near, "-exclude", "field=", message="-exclude")
    wrong(*near, "-exclude", "field=q", message=["-exclude", "q", "it has"])
    wrong(*near, "-exclude", "field=i", "-exclude", "field=s", message="once")
    wrong(*near, "-exclude", "others", message="self, same_geometry or field=F")
    wrong(*near, "-unordered_pairs", message=["one layer", "-exclude self"])
    wrong("-max_distance_field", "q", message=["-max_distance_field", "q", "it has"])
    wrong("-max_distance_field", "r:parsec", message="parsec")
    wrong("-max_distance_field", "r:deg", message="not in degrees")
    wrong("-join_max_distance_field", "rr", message=["join layer", "did you mean 'r'?"])
    with open("days.csv", "w", encoding="utf-8") as file:
        file.write("X,Y,day\n1,2,2026-11-30\n")
    fails("-max_distance_field", "day", "-oo", "AUTODETECT_TYPE=YES", "-oo", "X_POSSIBLE_NAMES=X",
          "-oo", "Y_POSSIBLE_NAMES=Y", "o.gpkg", "days.csv", "b.gpkg", op=False,
          message=["'day' of the input layer is not numeric", "name a field of numbers"])
    wrong(*near, "-min_distance", 2, message="-min_distance is greater")


@once
def check_self_join_pairs():
    a = table("a.gpkg")
    words = ["-op", "dwithin", "-max_distance", 1]
    want = expected(a, a, lambda x, y, p, q: x.Distance(y) <= 1 and p[0] != q[0])
    same(pairs(*words, "a.gpkg", os.path.abspath("a.gpkg")), want)
    # Different rows of one layer are still a self join.
    got = pairs(*words, "-where", "i = 1", "-join_where", "i = 2", "a.gpkg", "a.gpkg")
    same(got, expected(a, a, lambda x, y, p, q: x.Distance(y) <= 1 and p[2]["i"] == 1 and q[2]["i"] == 2))
    same(summary_of(*words, "a.gpkg", "a.gpkg")["self_join"], True)


def summary_of(*words):
    run("-overwrite", *words[:-2], "-json_summary", "s.json", "o.gpkg", *words[-2:])
    return summary("s.json")


# --- windows, points of features, invalid ones ----------------------------


@once
def check_window_crs():
    """The boxes of -op window are in the CRS of the join."""
    make("a.gpkg", [("POINT (10 60)", {"name": "in"}), ("POINT (11 60)", {"name": "out"})],
         srs="EPSG:4326")
    run("-window", 9.9, 59.9, 10.1, 60.1, "o.gpkg", "a.gpkg")
    same(Layer("o.gpkg").column("name"), ["in"])
    x, y, _ = osr.CoordinateTransformation(crs("EPSG:4326"), crs("EPSG:25833")).TransformPoint(10, 60)
    r = run("-overwrite", "-t_srs", "EPSG:25833", "-window", x - 1, y - 1, x + 1, y + 1, "o.gpkg", "a.gpkg")
    same(Layer("o.gpkg").column("name"), ["in"], str(r))


BOWTIE = "POLYGON ((0 0, 10 10, 10 0, 0 10, 0 0))"


@once
def check_invalid():
    make("a.gpkg", [("POINT (1 5)", {"name": "left"}), ("POINT (9 5)", {"name": "right"}),
                    ("POINT (5 1)", {"name": "below"})])
    make("b.gpkg", [("POLYGON ((0 0, 0 10, 10 10, 10 0, 0 0))", {"name": "good"}),
                    (BOWTIE, {"name": "bowtie"})])
    good = [("left", "good"), ("right", "good"), ("below", "good")]
    even_odd = [("left", "good"), ("left", "bowtie"), ("right", "good"), ("right", "bowtie"),
                ("below", "good")]
    same(pairs("a.gpkg", "b.gpkg"), even_odd)
    same(pairs("-invalid", "skip", "a.gpkg", "b.gpkg"), good)
    same(pairs("-invalid", "fix", "a.gpkg", "b.gpkg"), even_odd)
    fails("-invalid", "fail", "o.gpkg", "a.gpkg", "b.gpkg", op=False,
          message=["join layer 'b'", "feature 2", "Self-intersection", "-invalid fix"])
    fails("-invalid", "fail", "o.gpkg", "b.gpkg", "a.gpkg", op=False, message=["input layer 'b'", "feature 2"])
    r = run("-overwrite", "-invalid", "skip", "-json_summary", "s.json", "o.gpkg", "a.gpkg", "b.gpkg")
    true("1 of 2 features with polygons are not valid and were skipped; the first is 2" in r.err, str(r))
    same((summary("s.json")["join"]["invalid"], summary("s.json")["input"]["invalid"]), (1, 0))
    run("-overwrite", "-json_summary", "s.json", "o.gpkg", "a.gpkg", "b.gpkg")
    same(summary("s.json")["join"]["invalid"], None)


# --- CRS, warnings, -explain ----------------------------------------------


@once
def check_degrees():
    """Predicates take degrees as coordinates of a plane. Distances in degrees need
    -metric sphere, -t_srs or a unit."""
    make("a.gpkg", [("POINT (10 60)", {"name": "a"})], srs="EPSG:4326")
    make("b.gpkg", [("POLYGON ((9 59, 9 61, 11 61, 11 59, 9 59))", {"name": "b"})], srs="EPSG:4326")
    same(pairs("-op", "within", "a.gpkg", "b.gpkg"), [("a", "b")])
    near = ["-op", "dwithin", "-max_distance"]
    fails(*near, "100m", "o.gpkg", "a.gpkg", "b.gpkg", op=False,
          message=["degrees", "-metric sphere", "-t_srs", "deg"])
    fails(*near, "100", "o.gpkg", "a.gpkg", "b.gpkg", op=False, message="degrees")
    same(pairs(*near, "0.5deg", "a.gpkg", "b.gpkg"), [("a", "b")])
    same(pairs(*near, "1m", "-t_srs", "EPSG:25833", "a.gpkg", "b.gpkg"), [("a", "b")])
    fails("-op", "nearest", "-metric", "sphere", "-t_srs", "EPSG:25833", "o.gpkg", "a.gpkg", "b.gpkg",
          op=False, message=["-metric sphere", "EPSG:25833", "-t_srs EPSG:4326"])
    fails("-op", "nearest", "-metric", "sphere", "-max_distance", "1deg", "o.gpkg", "a.gpkg", "b.gpkg",
          op=False, message=["-max_distance 1deg", "lengths"])


def warnings_of(*words):
    r = succeeds("-overwrite", *words[:-2], "o.gpkg", *words[-2:])
    return [line for line in r.err.split("\n") if line.startswith("Warning")]


@once
def check_early_warnings():
    make("near.gpkg", [("POINT (10 60)", {"name": "a"}), ("POINT (11 61)", {"name": "b"})], srs="EPSG:4326")
    make("swap.gpkg", [("POINT (60 10)", {"name": "a"}), ("POINT (61 11)", {"name": "b"})], srs="EPSG:4326")
    make("far.gpkg", [("POINT (-70 -10)", {"name": "a"}), ("POINT (-71 -11)", {"name": "b"})], srs="EPSG:4326")
    make("wrong.gpkg", [("POINT (10 60)", {"name": "a"}), ("POINT (11 61)", {"name": "b"})], srs="EPSG:25833")
    make("plane.gpkg", [("POINT (700000 6600000)", {"name": "a"}), ("POINT (0 6700000)", {"name": "b"})],
         srs="EPSG:25833")
    same(warnings_of("near.gpkg", "near.gpkg"), [])
    found = warnings_of("near.gpkg", "far.gpkg")
    same(len(found), 1)
    true("do not meet" in found[0] and "nearest gap" in found[0], found[0])
    make("metres.gpkg", [("POINT (6600002 7700003)", {"name": "a"})], srs="EPSG:25833")
    found = warnings_of("plane.gpkg", "metres.gpkg")
    true("join x 6600002 to 6600002, y 7700003 to 7700003" in found[0], found[0])
    same(warnings_of("-op", "disjoint", "near.gpkg", "far.gpkg"), [])
    r = run("-overwrite", "-window", 0, 0, 1, 1, "o.gpkg", "near.gpkg")
    true("do not meet" in r.err, str(r))
    r = run("-overwrite", "-window", 0, 0, 1, 1, "o.gpkg", "plane.gpkg")
    true("do not meet" in r.err and "degrees" not in r.err, str(r))
    r = run("-overwrite", "-window", 60, 10, 61, 11, "o.gpkg", "near.gpkg")
    true("x and y look swapped" in r.err, str(r))
    same(warnings_of("-op", "nearest", "-max_distance", "infdeg", "near.gpkg", "far.gpkg"), [])
    found = warnings_of("near.gpkg", "swap.gpkg")
    true(len(found) == 2 and "x and y look swapped" in found[1], str(found))
    # There is no hint at swapped axes if a swap brings the layers nearer but
    # not into each other. Nor is there one if the swap would move a layer
    # beyond the poles.
    make("a.gpkg", [("POINT (1000 6000)", {"name": "a"}), ("POINT (1100 6100)", {"name": "b"})], srs="EPSG:25833")
    make("b.gpkg", [("POINT (8000 0)", {"name": "a"}), ("POINT (8100 100)", {"name": "b"})], srs="EPSG:25833")
    found = warnings_of("-op", "dwithin", "-max_distance", 3000, "a.gpkg", "b.gpkg")
    true(len(found) == 1 and "do not meet" in found[0], str(found))
    make("a.gpkg", [("POINT (150 -30)", {"name": "a"}), ("POINT (151 -31)", {"name": "b"})], srs="EPSG:4326")
    make("b.gpkg", [("POINT (-40 80)", {"name": "a"}), ("POINT (0 170)", {"name": "b"})], srs="EPSG:4326")
    found = warnings_of("a.gpkg", "b.gpkg")
    true(len(found) == 2 and "swapped in the join layer 'b'" in found[1], str(found))
    # The nearest without a maximum distance may be far away: layers that lie at mirrored places count as swapped only
    # if the gap is many times their size.
    same(warnings_of("-op", "nearest", "-metric", "sphere", "a.gpkg", "b.gpkg"), [])
    make("a.gpkg", [("POINT (0 2000)", {"name": "a"}), ("POINT (900 3000)", {"name": "b"})], srs="EPSG:25833")
    make("b.gpkg", [("POINT (2000 0)", {"name": "a"}), ("POINT (3000 900)", {"name": "b"})], srs="EPSG:25833")
    same(warnings_of("-op", "nearest", "a.gpkg", "b.gpkg"), [])
    found = warnings_of("-op", "dwithin", "-max_distance", 100, "a.gpkg", "b.gpkg")
    true(len(found) == 2 and "x and y look swapped in one of" in found[1], str(found))
    make("a.gpkg", [("POINT (0 200000)", {"name": "a"}), ("POINT (900 201000)", {"name": "b"})], srs="EPSG:25833")
    make("b.gpkg", [("POINT (200000 0)", {"name": "a"}), ("POINT (201000 900)", {"name": "b"})], srs="EPSG:25833")
    found = warnings_of("-op", "nearest", "a.gpkg", "b.gpkg")
    true(len(found) == 1 and "x and y look swapped in one of" in found[0], str(found))
    found = warnings_of("plane.gpkg", "wrong.gpkg")
    true(any("look like degrees" in f and "-join_srs EPSG:4326" in f for f in found), str(found))
    found = warnings_of("-op", "dwithin", "-max_distance", 0.001, "plane.gpkg", "plane.gpkg")
    true(len(found) == 1 and "not in degrees" in found[0], str(found))
    same(warnings_of("-op", "dwithin", "-max_distance", "0.001m", "plane.gpkg", "plane.gpkg"), [])
    found = warnings_of("-op", "dwithin", "-max_distance", "100deg", "near.gpkg", "far.gpkg")
    true("-metric sphere" in found[0], str(found))


def points_csv(path, x, y, n, more=""):
    """Writes n points around x, y, and then a line `more` of WKT. Returns path."""
    r = random.Random(n)
    with open(path, "w") as file:
        file.write("id,WKT\n")
        for i in range(n):
            file.write(f"{i},POINT ({x + r.uniform(0, 1)!r} {y + r.uniform(0, 1)!r})\n")
        if more:
            file.write(f"{n},{more}\n")
    return path


@once
def check_early_warnings_from_first_rows():
    """A CSV does not store its extent. So the warnings are based on its first rows."""
    make("near.gpkg", [("POINT (10 60)", {"name": "a"}), ("POINT (11 61)", {"name": "b"})], srs="EPSG:4326")
    words = ("-s_srs", "EPSG:4326")
    same(warnings_of(*words, points_csv("near.csv", 10, 60, 5), "near.gpkg"), [])
    found = warnings_of(*words, points_csv("far.csv", -70, -10, 5), "near.gpkg")
    true(len(found) == 1 and "so nothing can match" in found[0], str(found))
    found = warnings_of(*words, points_csv("swap.csv", 60, 10, 5), "near.gpkg")
    true(len(found) == 2 and "x and y look swapped" in found[1], str(found))
    found = warnings_of("-join_srs", "EPSG:4326", "near.gpkg", points_csv("swap.csv", 60, 10, 5))
    true(len(found) == 2 and "x and y look swapped" in found[1], str(found))
    found = warnings_of("-op", "dwithin", "-max_distance", 100, points_csv("c.csv", 10, 60, 5), "c.csv")
    true(any("look like degrees" in f for f in found), str(found))
    # If there are more rows than are tested, the message names the first rows.
    # There is a warning only if these are far from the whole other layer.
    found = warnings_of(*words, points_csv("far.csv", -70, -10, 3000), "near.gpkg")
    true(len(found) == 1 and "judging by the first 1000 rows of the input layer" in found[0], str(found))
    found = warnings_of(*words, points_csv("west.csv", 8.5, 60, 3000, "POINT (10 60)"), "near.gpkg")
    same(found, [], "a little to one side")
    same(sum(v["id"] == 3000 or v["id"] == "3000" for _, _, v in Layer("o.gpkg", "west").rows), 1, "all rows are read")
    # There is no early warning for a source that can be read only once, nor for a layer
    # with a condition.
    with open("far.csv") as file:
        r = subprocess.run([OGRJOIN, *words, "-overwrite", "o.gpkg", "/vsistdin/", "near.gpkg"],
                           stdin=file, capture_output=True, text=True)
    true("do not meet" not in r.stderr, r.stderr)
    same(warnings_of(*words, "-where", "id = '2999'", "far.csv", "near.gpkg"), [])
    same(len(Layer("o.gpkg", "far").rows), 1)


def check_points_of_both_kinds():
    """Centroids of one side, and points on the surface of the other."""
    ring = "POLYGON ((0 0, 10 0, 10 10, 9 10, 9 1, 1 1, 1 10, 0 10, 0 0))"  # a U: its centroid lies outside
    make("u.gpkg", [(ring, {"name": "u"})])
    make("v.gpkg", [(ring, {"name": "v"})])
    shape = ogr.CreateGeometryFromWkt(ring)
    true(not shape.Contains(shape.Centroid()), "a fair trial")
    succeeds("-op", "nearest", "-centroid_of", "input", "-point_on_surface_of", "join", "o.gpkg", "u.gpkg", "v.gpkg")
    near(Layer("o.gpkg").rows[0][2]["join_distance"], shape.Centroid().Distance(shape.PointOnSurface()), 1e-12)
    for words in (("input", "both"), ("join", "join"), ("both", "both")):
        fails("-centroid_of", words[0], "-point_on_surface_of", words[1], "p.gpkg", "u.gpkg", "v.gpkg",
              op=False, message=["both replace the features of the"])


@once
def check_skipped_are_counted():
    bow = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"
    square = "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"
    make("a.gpkg", [(bow, {"name": "bow"}), (square, {"name": "s"}), (None, {"name": "n"})])
    make("b.gpkg", [(bow, {"name": "x"}), (bow, {"name": "y"}), (square, {"name": "z"})])
    r = succeeds("-invalid", "skip", "-json_summary", "s.json", "o.gpkg", "a.gpkg", "b.gpkg")
    true("2 unmatched, of which 2 skipped (1 without geometry, 1 not valid)" in r.err, f"{r}")
    true("join layer 'b': 2 skipped (2 not valid)" in r.err, f"{r}")
    s = summary("s.json")
    same((s["input"]["skipped"]["invalid"], s["join"]["skipped"]["invalid"]), (1, 2))
    r = run("-invalid", "fix", "-json_summary", "s.json", "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
    same(summary("s.json")["input"]["skipped"]["invalid"], 0)
    same(summary("s.json")["input"]["invalid"], 1)


def check_empty_files():
    """A FlatGeobuf without an index and without rows cannot be opened, not even by ogr2ogr.
    A warning states this. With an index it can be opened."""
    table("a.gpkg")
    far = ("-op", "dwithin", "-max_distance", 1, "-how", "inner", "-exclude", "same_geometry")
    make("b.gpkg", [("POINT (-9 -9)", {"name": "b"})])
    r = succeeds(*far, "-lco", "SPATIAL_INDEX=NO", "none.fgb", "a.gpkg", "b.gpkg")
    try:
        gdal.OpenEx("none.fgb", gdal.OF_VECTOR)
        true("cannot be opened" not in r.err, f"{r}")
    except RuntimeError:
        true("without rows cannot be opened; without -lco SPATIAL_INDEX=NO it can" in r.err, f"{r}")
    r = run(*far, "empty.fgb", "a.gpkg", "b.gpkg")
    true("cannot be opened" not in r.err, f"{r}")
    same(Layer("empty.fgb").rows, [])
    succeeds(*far, "-overwrite", "empty.fgb", "a.gpkg", "b.gpkg")


def check_equal_geometries_are_of_what_is_joined():
    """With centroids on both sides, -exclude same_geometry compares the centroids, not
    the features."""
    outer = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
    inner = "POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))"
    far = "POLYGON ((8 8, 9 8, 9 9, 8 9, 8 8))"
    make("a.gpkg", [(outer, {"name": "a"})])
    make("b.gpkg", [(s, {"name": n}) for n, s in (("inner", inner), ("outer", outer), ("far", far))])
    words = ("-op", "dwithin", "-max_distance", 100, "-exclude", "same_geometry", "-prefix", "b_")
    for more, names in (((), ["inner", "far"]), (("-centroid_of", "both"), ["far"]),
                        (("-point_on_surface_of", "both"), ["far"]),
                        (("-centroid_of", "input"), ["inner", "outer", "far"])):
        succeeds(*words, *more, "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
        same(Layer("o.gpkg").column("b_name"), names, f"{more}")


@once
def check_explain():
    """-explain prints the plan and writes no output."""
    table("a.gpkg")
    table("b.gpkg", seed=2)
    before = listing()
    r = succeeds("-explain", "-op", "dwithin", "-max_distance", "2m", "-on", "i", "-exclude", "field=s",
                 "-centroid_of", "join", "o.gpkg", "a.gpkg", "b.gpkg")
    same(listing(), before)
    for text in ("dwithin", "6.56166", "i", "centroids", "120 rows", "EPSG:2263", "cpu (", "all 120 input",
                 "GPKG layer 'a' in o.gpkg", "nothing was written"):
        true(text in r.out, f"{text} in {r}")
    r = run("-explain", "-in_place", "-pick", "first", "a.gpkg", "b.gpkg")
    true(r.rc == 0 and "columns of the input layer" in r.out, str(r))
    same(listing(), before)
    r = run("-explain", "-op", "nearest", "-k", 3, "o.gpkg", "a.gpkg", "b.gpkg")
    true("-metric planar, -k 3, -ties first, -distance_to interior, -distance least\n" in r.out, str(r))
    r = run("-explain", "-relate", "t*f**f***", "o.gpkg", "a.gpkg", "b.gpkg")
    true("-relate T*F**F***\n" in r.out, str(r))
    r = run("-explain", "-op", "nearest", "-limit", 1, "o.gpkg", "a.gpkg", "b.gpkg")
    true("of all 1 input row 1 matches, with 1 pair (1 per row)" in r.out, str(r))
    fails("-explain", "o.gpkg", "a.gpkg", "nofile.gpkg", op=False, message="nofile.gpkg")
    run("o.gpkg", "a.gpkg", "b.gpkg")
    before = listing()
    r = succeeds("-explain", "o.gpkg", "a.gpkg", "b.gpkg")
    true("GPKG layer 'a' in o.gpkg\n" in r.out and "a run would stop: o.gpkg exists: -overwrite" in r.out, str(r))
    r = succeeds("-explain", "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
    true("which replaces what is there" in r.out and "would stop" not in r.out, str(r))
    fails("-explain", "a.gpkg", "a.gpkg", "b.gpkg", op=False, message="is the input dataset")
    same(listing(), before)
    r = run("-explain", "-op", "disjoint", "-window", 0, 0, 1, 1, "o2.gpkg", "a.gpkg")
    same(r.rc, 1, str(r))


if __name__ == "__main__":
    main(globals())
