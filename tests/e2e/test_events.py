"""-events: the rows of a plain sequential program over the pairs of the ordinary
join, for random streams, cut at any place and continued with -state."""

from e2e import *

FIELDS = (("id", ogr.OFTInteger), ("vehicle", ogr.OFTString), ("number", ogr.OFTInteger64))
# Joins and what they are asked with.
JOINS = """
-op within
-op intersects
-op coveredby
-op dwithin -max_distance 6
-op nearest -max_distance 9
-op nearest
-op within -on number=zone
-op within -centroid_of join -invalid skip
""".strip().split("\n")


def reports(n, seed, n_keys=12, first=0, nulls=True):
    """Vehicles that walk at random over a square of 100, on half numbers so that
    borders are met; some reports without key, place or both."""
    r = random.Random(seed)
    place = {}
    for i in range(first, first + n):
        key = r.randrange(n_keys)
        x, y = place.get(key, (r.uniform(0, 100), r.uniform(0, 100)))
        x, y = (min(110, max(-10, c + r.choice((0, r.uniform(-8, 8))))) for c in (x, y))
        place[key] = x, y = round(2 * x) / 2, round(2 * y) / 2
        where = f"POINT ({x} {y})"
        values = {"id": i, "vehicle": f"vehicle {key}", "number": key - 3}
        odd = r.randrange(25) if nulls else 9
        if odd in (0, 1):
            values["vehicle"] = values["number"] = None
        if odd in (1, 2):
            where = None if odd == 1 else "POINT EMPTY"
        yield where, values


def fences(name, n=30, seed=3, fids=True):
    """Squares that overlap, on whole numbers; FIDs in no order."""
    r = random.Random(seed)
    found = []
    numbers = r.sample(range(5, 10 * n), n)
    for i in range(n):
        x, y, w, h = r.randrange(90), r.randrange(90), r.randrange(3, 40), r.randrange(3, 40)
        ring = ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
        where = "POLYGON ((" + ", ".join(f"{a} {b}" for a, b in ring) + "))"
        row = where, {"fence": f"fence {i}", "zone": r.randrange(-3, 9)}
        found.append((*row, numbers[i]) if fids else row)
    return make(name, found, (("fence", ogr.OFTString), ("zone", ogr.OFTInteger)), kind=ogr.wkbPolygon)


def pairs_of(words, left, right):
    """{id of a report: [(fid, distance, fence)]} by the ordinary join."""
    words = [w for w in words if w != "-events"]
    succeeds(*words, "-how", "inner", "-unsetFid", "-overwrite", "pairs.gpkg", left, right)
    found = {}
    for v in Layer("pairs.gpkg").column_rows():
        found.setdefault(v["id"], []).append((v["join_fid"], v.get("join_distance"), v["fence"]))
    return found


Layer.column_rows = lambda self: [row[2] for row in self.rows]


def expected_events(words, left, right, key, stays, state):
    """The plain sequential program; changes state, {key: {fid: fence}}."""
    pairs = pairs_of(words, left, right)
    found = []
    for _, wkb, v in rows(left):
        shape = ogr.CreateGeometryFromWkb(wkb) if wkb is not None else None
        if v[key] is None or not is_joinable(shape):
            continue
        now = {fid: (d, fence) for fid, d, fence in pairs.get(v["id"], [])}
        before = state.get(v[key], {})
        if "nearest" in words:
            if set(now) != set(before):
                fid = next(iter(now), None)
                d, fence = now.get(fid, (None, None))
                found.append((v["id"], "change", fid, d, fence))
            elif stays and now:
                fid, (d, fence) = next(iter(now.items()))
                found.append((v["id"], "stay", fid, d, fence))
        else:
            for fid in sorted(set(before) - set(now)):
                found.append((v["id"], "exit", fid, None, before[fid]))
            for fid in sorted(set(now) - set(before)):
                found.append((v["id"], "enter", fid, *now[fid]))
            for fid in sorted(set(now) & set(before)) if stays else ():
                found.append((v["id"], "stay", fid, *now[fid]))
        state[v[key]] = {fid: fence for fid, (_, fence) in now.items()}
    return found


def got_events(path):
    return [
        (v["id"], v["event"], v["join_fid"], v.get("join_distance"), v["fence"])
        for v in Layer(path).column_rows()
    ]


def events(*words, key="vehicle", stays=False):
    return ["-events", *(["all"] if stays else []), "-key", key, *words]


def check_random_streams():
    fences("fences.gpkg")
    n = 0
    for seed, line in enumerate(JOINS):
        words = line.split()
        for ending, key, stays, batch in (
            (".gpkg", "vehicle", False, 262144),
            (".fgb", "number", True, 7),
            (".gpkg", "number", seed % 2, 1),
        ):
            left = "left" + ending
            if os.path.exists(left):
                os.remove(left)
            # FlatGeobuf has no rows without geometry.
            make(left, list(reports(400, seed, nulls=ending == ".gpkg")), FIELDS, kind=ogr.wkbPoint,
                 lco=["SPATIAL_INDEX=NO"])
            expected = expected_events(words, left, "fences.gpkg", key, stays, {})
            succeeds(*events(*words, "-batch", batch, key=key, stays=stays), "-overwrite",
                     "out.gpkg", left, "fences.gpkg")
            same(got_events("out.gpkg"), expected, f"{line} {ending} {key} {stays} {batch}")
            n += len(expected)
    true(n > 2000, f"{n} events are too few")


def check_cut_streams():
    """Pieces of any length, one after another, give the events of the whole."""
    fences("fences.gpkg")
    r = random.Random(5)
    for seed, line in enumerate(JOINS):
        words = line.split()
        stays = seed % 2 == 1
        key = ("vehicle", "number")[seed // 2 % 2]
        all_rows = list(reports(300, 20 + seed))
        cuts = [0, *sorted(r.choices(range(300), k=4)), 300]
        state, got, expected = {}, [], []
        if os.path.exists("state"):
            os.remove("state")
        for a, b in zip(cuts, cuts[1:]):
            if os.path.exists("left.gpkg"):
                os.remove("left.gpkg")
            make("left.gpkg", all_rows[a:b], FIELDS, kind=ogr.wkbPoint)
            expected += expected_events(words, "left.gpkg", "fences.gpkg", key, stays, state)
            succeeds(*events(*words, key=key, stays=stays), "-state", "state", "-overwrite", "out.gpkg",
                     "left.gpkg", "fences.gpkg")
            got += got_events("out.gpkg")
        same(got, expected, f"{line} cut at {cuts}")


def check_what_goes_with_events():
    """Fields, conditions, names and filters have the meaning they have in a join."""
    fences("fences.gpkg")
    make("left.gpkg", list(reports(300, 9)), FIELDS, kind=ogr.wkbPoint)
    words = events("-op", "within", "-select", "id", "-join_select", "fence", "-where", "id < 200",
                   "-join_where", "zone > 2", "-name_fid", "f", "-geometry", "join")
    succeeds(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    found = Layer("out.gpkg")
    same(list(found.fields), ["id", "event", "f", "fence"])
    true(0 < len(found.rows) and max(found.column("id")) < 200, "the rows of -where")
    same(found.kind, ogr.wkbPolygon)
    # A column that is there already.
    make("event.gpkg", [("POINT (1 1)", {"event": "x"})], (("event", ogr.OFTString),), kind=ogr.wkbPoint)
    succeeds(*events("-op", "nearest", key="event"), "two.gpkg", "event.gpkg", "fences.gpkg")
    same(list(Layer("two.gpkg").fields)[:3], ["event", "event_2", "join_fid_2"])


def check_what_is_refused():
    fences("fences.gpkg")
    make("left.gpkg", list(reports(20, 9)), FIELDS + (("speed", ogr.OFTReal),), kind=ogr.wkbPoint)
    ends = ["no.gpkg", "left.gpkg", "fences.gpkg"]
    base = ["-op", "within"]
    fails(*base, "-events", *ends, says="-key vehicle", op=False)
    fails(*base, "-key", "vehicle", *ends, says="-key needs -events", op=False)
    fails(*base, "-state", "s", *ends, says="-state needs -events", op=False)
    for more in (["-how", "left"], ["-agg", "count"], ["-pick", "first"], ["-one_to_one"],
                 ["-overlap", "area"], ["-name_count", "n"], ["-nearest_point_fields"],
                 ["-geometry", "intersection"], ["-unmatched_layer", "u"], ["-memory", "1G"],
                 ["-similar", "vehicle=fence:0.5"], ["-unordered_pairs"]):
        fails(*base, "-events", "-key", "vehicle", *more, *ends, says=more[0], op=False)
    fails("-op", "nearest", "-k", 2, "-events", "-key", "vehicle", *ends, says="-k", op=False)
    fails("-op", "similar", "-similar", "vehicle=fence:0.5", "-events", "-key", "vehicle", *ends,
          says="-events", op=False)
    fails(*base, "-events", "-key", "speed", *ends, says=["-key speed", "Real"], op=False)
    fails(*base, "-events", "-key", "vehicel", *ends, says="did you mean 'vehicle'", op=False)
    fails(*base, "-events", "-key", "vehicle", "-explain", *ends[1:], op=False)
    # Those of a dataset are refused in the same place.
    fails(*base, "-events", "-key", "vehicle", "-write_spec", "no.ogrjoin", *ends[1:], op=False,
          says=["-events", "read as a dataset", "stream of reports"])


def state_bytes():
    with open("state", "rb") as file:
        return file.read()


def check_states_that_do_not_fit():
    """Another join layer, other options, other keys: refused, and the state stays."""
    fences("fences.gpkg")
    fences("others.gpkg", seed=4)
    fences("fewer.gpkg", n=29)
    make("left.gpkg", list(reports(200, 9)), FIELDS, kind=ogr.wkbPoint)
    words = [*events("-op", "within"), "-state", "state"]
    r = succeeds(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    true("not there yet" in r.err, f"a first run says so: {r}")
    for more, right, says in (
        ([], "others.gpkg", "another join layer"),
        ([], "fewer.gpkg", "29"),
        (["-on", "number=zone"], "fences.gpkg", "other options"),
    ):
        fails(*words, *more, "no.gpkg", "left.gpkg", right, says=says, op=False)
    fails(*events("-op", "intersects"), "-state", "state", "no.gpkg", "left.gpkg", "fences.gpkg",
          says=["-op within", "-op intersects"], op=False)
    fails(*events("-op", "within", key="number"), "-state", "state", "no.gpkg", "left.gpkg",
          "fences.gpkg", says="-key vehicle", op=False)
    fails(*events("-op", "within"), "-state", "left.gpkg", "no.gpkg", "left.gpkg", "fences.gpkg",
          says="overwrite the input", op=False)
    fails(*events("-op", "within"), "-state", "nowhere/state", "no.gpkg", "left.gpkg", "fences.gpkg",
          says="-state", op=False)
    # Stays may be asked for later, and the state of a run that fails stays.
    succeeds(*events("-op", "within", stays=True), "-state", "state", "-overwrite", "out.gpkg",
             "left.gpkg", "fences.gpkg")
    before = state_bytes()
    fails(*words, "-max_pairs", 10, "no.gpkg", "left.gpkg", "fences.gpkg", says="-max_pairs", op=False)
    same(state_bytes(), before, "the state after a failure")


def check_broken_states():
    """Cut at any byte, and with any byte changed: one line, and nothing is written."""
    fences("fences.gpkg")
    make("left.gpkg", list(reports(60, 9, n_keys=3)), FIELDS, kind=ogr.wkbPoint)
    words = [*events("-op", "within"), "-state", "state"]
    succeeds(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    whole = state_bytes()
    r = random.Random(1)
    for i in range(12):
        at = r.randrange(len(whole))
        broken = whole[:at] if i % 2 else whole[:at] + bytes([whole[at] ^ 1 << r.randrange(8)]) + whole[at + 1:]
        with open("state", "wb") as file:
            file.write(broken)
        fails(*words, "no.gpkg", "left.gpkg", "fences.gpkg", says="state", op=False)
    with open("state", "wb") as file:
        file.write(b"")
    fails(*words, "no.gpkg", "left.gpkg", "fences.gpkg", says="no state of events", op=False)


def check_fids_that_repeat():
    """A state names join features by FID."""
    fences("fences.gpkg")
    make("left.gpkg", list(reports(60, 9)), FIELDS, kind=ogr.wkbPoint)
    twice = "SELECT 1 AS fid, fence, geom FROM fences"
    words = [*events("-op", "within"), "-join_sql", twice]
    r = run(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    true(r.rc == 0, f"without a state they do: {r}")
    if len(set(Layer("out.gpkg").column("join_fid"))) == 1:
        fails(*words, "-state", "state", "no.gpkg", "left.gpkg", "fences.gpkg", says="FID of several", op=False)


main(globals())
