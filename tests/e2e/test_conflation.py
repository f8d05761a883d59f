"""Joins two layers of shops that different people have mapped.  The generator of the
sample city writes which pairs are one place.  The pairs of -op dwithin -similar are
those that fulfil both conditions, by code that is independent of the program."""

import re
import struct
import unicodedata
from fractions import Fraction

from e2e import *

N_PLACES = 3000
FEET = 1200 / 3937  # metres of a US survey foot
THRESHOLDS = ("0.3", "0.5", "0.6", "3/4", "0.9")


def trigrams(text):
    text = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    words = re.sub(r"[^a-z0-9]+", " ", text.replace("'", "")).split()
    return {padded[i : i + 3] for w in words for padded in (f"  {w} ",) for i in range(len(padded) - 2)}


def jaccard(a, b):
    shared = len(a & b)
    return Fraction(shared, len(a) + len(b) - shared)


def city():
    tool = os.environ.get("MAKE_CITY")
    if not tool:
        raise Skip("no make_city: built without samples")
    words = ["-avenues", "8", "-streets", "14", "-pickups", "1", "-places", str(N_PLACES)]
    subprocess.run([tool, *words, "."], check=True, capture_output=True)


def places(name):
    """Returns {place_id: (x, y, trigrams)}."""
    return {v["place_id"]: (*struct.unpack("<2d", wkb[5:21]), trigrams(v["name"]))
            for _, wkb, v in rows(name)}


def true_pairs():
    """Yields (similarity, metres) for each place that is in both layers."""
    a, b = places("places_a.fgb"), places("places_b.fgb")
    for place in a.keys() & b.keys():
        x, y, name = a[place]
        x1, y1, name1 = b[place]
        yield jaccard(name, name1), math.hypot(x - x1, y - y1) * FEET


def check_recall():
    city()
    truth = list(true_pairs())
    true(0.68 < len(truth) / N_PLACES < 0.72, f"{len(truth)} places are in both")
    shares = []
    for least in THRESHOLDS:
        succeeds("-op", "dwithin", "-max_distance", "200m", "-similar", f"name:{least}", "-how", "inner",
                 "-overwrite", "out.fgb", "places_a.fgb", "places_b.fgb")
        found = Layer("out.fgb")
        right = sum(v["place_id"] == v["join_place_id"] for _, _, v in found.rows)
        same(right, sum(s >= Fraction(least) and d <= 200 for s, d in truth), least)
        shares.append(right / len(found.rows))
    true(shares[0] < 0.2 < 0.5 < shares[2], f"stricter is more precise: {shares}")


def check_one_to_one():
    """The chosen pairs equal a greedy choice from the pairs of the join: first the most
    similar pairs, then the nearest, then in reading order."""
    city()
    words = ("-op", "dwithin", "-max_distance", "200m", "-similar", "name:0.5", "-how", "inner", "-overwrite")
    sides = ("places_a.fgb", "places_b.fgb")
    succeeds(*words, "pairs.fgb", *sides)
    order = {v["place_id"]: i for i, (_, _, v) in enumerate(rows(sides[0]))}
    pairs = [v for _, _, v in Layer("pairs.fgb").rows]
    pairs.sort(key=lambda v: (-v["join_similarity"], v["join_distance"], order[v["place_id"]], v["join_fid"]))
    taken, chosen = set(), {}
    for v in pairs:
        if v["place_id"] not in chosen and v["join_fid"] not in taken:
            chosen[v["place_id"]] = v["join_place_id"]
            taken.add(v["join_fid"])
    succeeds(*words, "-one_to_one", "-unmatched_layer", "a_only", "-unmatched_join_layer", "b_only", "out.gpkg", *sides)
    found = {v["place_id"]: v["join_place_id"] for _, _, v in Layer("out.gpkg").rows}
    same(found, chosen, "the pairs")
    true(len(chosen) < len(pairs), "there was something to choose")
    for name, layer in (("a_only", sides[0]), ("b_only", sides[1])):
        same(len(Layer("out.gpkg", name).rows), N_PLACES - len(chosen), f"{name}: what {layer} has left")
    share = sum(a == b for a, b in chosen.items()) / len(chosen)
    true(share > 0.85, f"{share} of them are right")


main(globals())
