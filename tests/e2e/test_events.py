"""-events: the rows equal those of a plain sequential program over the pairs of the
join without -events.  Streams are random, split at any place and continued with
-state."""

import csv
import fcntl
import glob
import select
import signal
import struct
import termios
import threading

from e2e import *

FIELDS = (("id", ogr.OFTInteger), ("vehicle", ogr.OFTString), ("number", ogr.OFTInteger64))
# Joins with their options.
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
    """Yields n reports of vehicles that move at random over a square of 100 units, with
    ids from first on. Coordinates are multiples of one half, so that vehicles are often
    on borders. With nulls, some reports lack the key, the place or both."""
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
    """Makes overlapping squares with integer coordinates. FIDs are not in order.
    Returns the path."""
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
    """Returns {id of a report: [(fid, distance, fence)]}, from the join without
    -events."""
    words = [w for w in words if w != "-events"]
    succeeds(*words, "-how", "inner", "-unsetFid", "-overwrite", "pairs.gpkg", left, right)
    found = {}
    for v in Layer("pairs.gpkg").column_rows():
        found.setdefault(v["id"], []).append((v["join_fid"], v.get("join_distance"), v["fence"]))
    return found


Layer.column_rows = lambda self: [row[2] for row in self.rows]


def expected_events(words, left, right, key, stays, state):
    """Returns the events that the plain sequential program finds, and updates state,
    {key: {fid: fence}}."""
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
            # FlatGeobuf cannot hold rows without geometry.
            make(left, list(reports(400, seed, nulls=ending == ".gpkg")), FIELDS, kind=ogr.wkbPoint,
                 lco=["SPATIAL_INDEX=NO"])
            expected = expected_events(words, left, "fences.gpkg", key, stays, {})
            succeeds(*events(*words, "-batch", batch, key=key, stays=stays), "-overwrite",
                     "out.gpkg", left, "fences.gpkg")
            same(got_events("out.gpkg"), expected, f"{line} {ending} {key} {stays} {batch}")
            n += len(expected)
    true(n > 2000, f"{n} events are too few")


def check_cut_streams():
    """A stream is split into runs of any length. Together their events are those of the
    whole stream."""
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


def check_options_of_events():
    """Fields, conditions, names and filters mean with -events what they mean in other
    joins."""
    fences("fences.gpkg")
    make("left.gpkg", list(reports(300, 9)), FIELDS, kind=ogr.wkbPoint)
    words = events("-op", "within", "-select", "id", "-join_select", "fence", "-where", "id < 200",
                   "-join_where", "zone > 2", "-name_fid", "f", "-geometry", "join")
    succeeds(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    found = Layer("out.gpkg")
    same(list(found.fields), ["id", "event", "f", "fence"])
    true(0 < len(found.rows) and max(found.column("id")) < 200, "the rows of -where")
    same(found.kind, ogr.wkbPolygon)
    # A column whose name is in use already.
    make("event.gpkg", [("POINT (1 1)", {"event": "x"})], (("event", ogr.OFTString),), kind=ogr.wkbPoint)
    succeeds(*events("-op", "nearest", key="event"), "two.gpkg", "event.gpkg", "fences.gpkg")
    same(list(Layer("two.gpkg").fields)[:3], ["event", "event_2", "join_fid_2"])


def check_what_is_refused():
    fences("fences.gpkg")
    make("left.gpkg", list(reports(20, 9)), FIELDS + (("speed", ogr.OFTReal),), kind=ogr.wkbPoint)
    ends = ["no.gpkg", "left.gpkg", "fences.gpkg"]
    base = ["-op", "within"]
    fails(*base, "-events", *ends, message="-key vehicle", op=False)
    fails(*base, "-key", "vehicle", *ends, message="-key needs -events", op=False)
    fails(*base, "-state", "s", *ends, message="-state needs -events", op=False)
    for more in (["-how", "left"], ["-agg", "count"], ["-pick", "first"], ["-one_to_one"],
                 ["-overlap", "area"], ["-name_count", "n"], ["-nearest_point_fields"],
                 ["-geometry", "intersection"], ["-unmatched_layer", "u"], ["-memory", "1G"],
                 ["-similar", "vehicle=fence:0.5"], ["-unordered_pairs"]):
        fails(*base, "-events", "-key", "vehicle", *more, *ends, message=more[0], op=False)
    fails("-op", "nearest", "-k", 2, "-events", "-key", "vehicle", *ends, message="-k", op=False)
    fails("-op", "similar", "-similar", "vehicle=fence:0.5", "-events", "-key", "vehicle", *ends,
          message="-events", op=False)
    fails(*base, "-events", "-key", "speed", *ends, message=["-key speed", "Real"], op=False)
    fails(*base, "-events", "-key", "vehicel", *ends, message="did you mean 'vehicle'", op=False)
    fails(*base, "-events", "-key", "vehicle", "-explain", *ends[1:], op=False)
    for more in (["-flush", "1s"], ["-skipfailures"]):
        fails(*base, "-events", "-key", "vehicle", *more, *ends, op=False,
              message=[f"{more[0]} is for reports", "left.gpkg is read as in any join", f"leave {more[0]} out"])
    # -write_spec with -events is refused, too.
    fails(*base, "-events", "-key", "vehicle", "-write_spec", "no.ogrjoin", *ends[1:], op=False,
          message=["-events", "in a spec file or a dataset", "stream of reports"])


def state_bytes():
    with open("state", "rb") as file:
        return file.read()


def check_states_that_do_not_fit():
    """A state of another join layer, of other options or of other keys is refused, and
    stays unchanged."""
    fences("fences.gpkg")
    fences("others.gpkg", seed=4)
    fences("fewer.gpkg", n=29)
    make("left.gpkg", list(reports(200, 9)), FIELDS, kind=ogr.wkbPoint)
    words = [*events("-op", "within"), "-state", "state"]
    r = succeeds(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    true("not there yet" in r.err, f"a first run says so: {r}")
    for more, right, message in (
        ([], "others.gpkg", "another join layer"),
        ([], "fewer.gpkg", "29"),
        (["-on", "number=zone"], "fences.gpkg", "other options"),
    ):
        fails(*words, *more, "no.gpkg", "left.gpkg", right, message=message, op=False)
    fails(*events("-op", "intersects"), "-state", "state", "no.gpkg", "left.gpkg", "fences.gpkg",
          message=["-op within", "-op intersects"], op=False)
    fails(*events("-op", "within", key="number"), "-state", "state", "no.gpkg", "left.gpkg",
          "fences.gpkg", message="-key vehicle", op=False)
    fails(*events("-op", "within"), "-state", "left.gpkg", "no.gpkg", "left.gpkg", "fences.gpkg",
          message="overwrite the input", op=False)
    fails(*events("-op", "within"), "-state", "nowhere/state", "no.gpkg", "left.gpkg", "fences.gpkg",
          message="-state", op=False)
    # A later run may ask for stays. A run that fails leaves the state unchanged.
    succeeds(*events("-op", "within", stays=True), "-state", "state", "-overwrite", "out.gpkg",
             "left.gpkg", "fences.gpkg")
    before = state_bytes()
    fails(*words, "-max_pairs", 10, "no.gpkg", "left.gpkg", "fences.gpkg", message="-max_pairs", op=False)
    same(state_bytes(), before, "the state after a failure")


def check_broken_states():
    """A state that is truncated anywhere, or has any byte changed, is refused with one
    line of error. Nothing is written."""
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
        fails(*words, "no.gpkg", "left.gpkg", "fences.gpkg", message="state", op=False)
    with open("state", "wb") as file:
        file.write(b"")
    fails(*words, "no.gpkg", "left.gpkg", "fences.gpkg", message="not a state file of events", op=False)


def check_fids_that_repeat():
    """Join FIDs that repeat are refused with -state, because a state identifies
    features by FID."""
    fences("fences.gpkg")
    make("left.gpkg", list(reports(60, 9)), FIELDS, kind=ogr.wkbPoint)
    twice = "SELECT 1 AS fid, fence, geom FROM fences"
    words = [*events("-op", "within"), "-join_sql", twice]
    r = run(*words, "out.gpkg", "left.gpkg", "fences.gpkg")
    true(r.rc == 0, f"without a state they do: {r}")
    if len(set(Layer("out.gpkg").column("join_fid"))) == 1:
        fails(*words, "-state", "state", "no.gpkg", "left.gpkg", "fences.gpkg", message="unique FIDs", op=False)


# --- standard input ---------------------------------------------------------


XY = ("-oo", "X_POSSIBLE_NAMES=x", "-oo", "Y_POSSIBLE_NAMES=y", "-crs", "ignore")


def csv_of(found):
    """Returns reports as CSV with a header line. A missing key or place is an empty
    field."""
    lines = ["id,vehicle,x,y,note"]
    for where, v in found:
        shape = ogr.CreateGeometryFromWkt(where) if where else None
        xy = f"{shape.GetX()},{shape.GetY()}" if shape and not shape.IsEmpty() else ","
        note = '"a ""b"",\nc"' if v["id"] % 7 == 0 else "x"
        lines.append(f"{v['id']},{v['vehicle'] or ''},{xy},{note}")
    return "\n".join(lines) + "\n"


class Filter:
    """The command between two pipes. Collects the lines of its stdout."""

    def __init__(self, *words):
        self.process = subprocess.Popen([OGRJOIN, *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.process.words = words
        started.append(self.process)
        self.lines = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def send(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def wait_for(self, n):
        end = time.monotonic() + HANG_S
        while len(self.lines) < n and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        true(len(self.lines) >= n, f"{len(self.lines)} of {n} lines came")

    def wait_until_all_is_read(self):
        """Waits until the command has taken everything that was sent out of the pipe."""
        end = time.monotonic() + HANG_S
        while (self.process.poll() is None
               and struct.unpack("i", fcntl.ioctl(self.process.stdin, termios.FIONREAD, bytes(4)))[0] > 0):
            true(time.monotonic() < end, "bytes stay in the pipe")
            time.sleep(0.002)

    def send_apart(self, text):
        """Sends a piece that is a batch of its own with -flush 20ms."""
        self.send(text)
        self.wait_until_all_is_read()
        time.sleep(0.03)

    def end(self):
        self.process.stdin.close()
        return self.wait()

    def wait(self):
        self.process.wait(HANG_S)
        self.thread.join(HANG_S)
        started.remove(self.process)
        return Run(self.process.words, self.process.returncode, self.text(),
                   self.process.stderr.read().decode())

    def text(self):
        return "".join(self.lines)


def stream(*words, right="fences.gpkg", name="/vsistdin/", to="CSV"):
    return Filter(*events("-op", "within", *XY, *words), "-f", to, "/vsistdout/", name, right)


def expected_csv(text, *words):
    """Returns the output of the command for a file that has this text."""
    with open("whole.csv", "w", encoding="utf-8") as file:
        file.write(text)
    r = succeeds(*events("-op", "within", *XY, *words), "-f", "CSV", "/vsistdout/", "whole.csv",
                 "fences.gpkg")
    return r.out


def check_stream_is_cut_anywhere():
    """A stream that arrives in pieces of any length gives the rows of the whole
    file."""
    fences("fences.gpkg")
    r = random.Random(2)
    text = csv_of(reports(300, 4))
    expected = expected_csv(text)
    true(len(expected.split("\n")) > 100, "some events")
    for _ in range(4):
        cuts = [0, *sorted(r.choices(range(len(text)), k=r.choice((1, 9)))), len(text)]
        f = stream("-flush", "20ms", "-batch", r.choice((1, 13, 262144)), name=r.choice(("/vsistdin/", "CSV:/vsistdin/")))
        for a, b in zip(cuts, cuts[1:]):
            f.send(text[a:b])
            time.sleep(r.choice((0, 0.03)))
        end = f.end()
        true(end.rc == 0, f"{end}")
        same(end.out, expected, f"cut at {cuts}")
    # a stream without a final line break, and with Windows line breaks
    f = stream()
    f.send(text[:-1])
    same(f.end().out, expected)
    f = stream()
    f.send(text.replace("\n", "\r\n"))
    true(f.end().out.count("enter") == expected.count("enter"), "lines of Windows")


def check_no_report_waits():
    """Events are written after the time of -flush, even if no further report arrives."""
    fences("fences.gpkg")
    inside = [ogr.CreateGeometryFromWkb(fence[1]).Centroid() for fence in rows("fences.gpkg")]
    report = [f"{i},v,{c.GetX()},{c.GetY()}\n" for i, c in enumerate(inside[:3])]
    f = stream("-flush", "400ms")
    f.send("id,vehicle,x,y\n")
    for text in report:
        n = len(f.lines)
        f.send(text)
        f.wait_for(n + 1)
        time.sleep(0.2)
    true(f.end().rc == 0, "the end of stdin")
    # With a long time, the reports of one second are one batch.
    f = stream("-flush", "3600s")
    f.send("id,vehicle,x,y\n" + report[0])
    f.wait_until_all_is_read()
    time.sleep(1)
    same(f.text().count("enter"), 0, "events before the time of -flush")
    r = f.end()
    true(r.rc == 0 and r.out.count("enter") > 0, f"the end of stdin: {r}")


def check_ctrl_c():
    """After Ctrl-C, the events up to then are written and the state is saved. The next
    run continues."""
    fences("fences.gpkg")
    all_rows = list(reports(400, 6))
    text = csv_of(all_rows)
    expected = expected_csv(text)
    lines = csv_of(all_rows[:200]), csv_of(all_rows[200:])
    for number in (signal.SIGINT, signal.SIGTERM):
        if os.path.exists("state"):
            os.remove("state")
        f = stream("-state", "state", "-flush", "100ms")
        f.send(lines[0])
        f.wait_for(expected_csv(lines[0]).count("\n"))
        f.send("77,cut off in the mid")
        f.wait_until_all_is_read()
        f.process.send_signal(number)
        first = f.wait()
        same(first.rc, 130, f"{first}")
        true("cut off" in first.err, f"the begun report is named: {first}")
        f = stream("-state", "state")
        f.send(lines[1])
        second = f.end()
        same(second.rc, 0, f"{second}")
        got = first.out + second.out.split("\n", 1)[1]
        same(got, expected)


def check_ctrl_c_of_a_file():
    """Ctrl-C before the end of a file. The output is complete up to that place."""
    fences("fences.gpkg")
    make("left.gpkg", list(reports(400, 6)), FIELDS, kind=ogr.wkbPoint)
    endless = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
               "SELECT left.geom, left.vehicle, c.x FROM c CROSS JOIN left")
    process = start(*events("-op", "within", "-sql", endless, "-batch", 1000), "-state", "state", "out.gpkg",
                    "left.gpkg", "fences.gpkg")
    end = time.monotonic() + HANG_S
    while n_bytes(".*ogrjoin-*/out.gpkg") < 1000000:
        true(process.poll() is None and time.monotonic() < end, "rows are written")
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    r = finish(process)
    same(r.rc, 130, f"{r}")
    dataset = gdal.OpenEx("out.gpkg")
    n = dataset.GetLayer(0).GetFeatureCount()
    true(n > 0 and os.path.exists("state"), "rows and state")


def feature(i, key, x, y, **more):
    return json.dumps({"type": "Feature", "properties": {"id": i, "vehicle": key, **more},
                       "geometry": {"type": "Point", "coordinates": [x, y]}})


def check_geojson_sequences():
    """GeoJSON records on lines, and behind record separators. Later records have other
    fields."""
    fences("fences.gpkg")
    walk = [(v["id"], v["vehicle"], *map(float, where[7:-1].split()))
            for where, v in reports(200, 5, nulls=False)]
    expected = expected_csv("id,vehicle,x,y\n" + "\n".join(",".join(map(str, row)) for row in walk) + "\n")
    expected = [(r["id"], r["event"], r["join_fid"]) for r in csv.DictReader(expected.splitlines())]
    plain = [feature(i, key, x, y, speed=i / 2 if i > 100 else i, **({"new": 1} if i > 150 else {}))
             for i, key, x, y in walk]
    pretty = [json.dumps(json.loads(line), indent=1) for line in plain]
    for lines, how in ((plain, "{}\n"), (pretty, "\x1e{}\n")):
        for name in ("/vsistdin/", "GeoJSONSeq:/vsistdin/"):
            f = stream("-flush", "20ms", to="GeoJSONSeq", name=name)
            for i in range(0, 200, 40):
                f.send("".join(how.format(line) for line in lines[i:i + 40]))
                f.wait_for(1)  # the first batch ends before the later fields
            r = f.end()
            same(r.rc, 0, f"{r}")
            got = [json.loads(line.strip("\x1e\n"))["properties"] for line in r.out.splitlines()]
            same([(str(v["id"]).split(".")[0], v["event"], str(v["join_fid"])) for v in got], expected)
            true(any(v["speed"] % 1 == 0.5 for v in got), "reals after whole numbers")
            true("'new'" in r.err, f"a field that is left out is named: {r}")


def check_keys_of_64_bits():
    """Integer keys that need more than 32 bits, but only after the first batch."""
    fences("fences.gpkg")
    inside = ogr.CreateGeometryFromWkb(rows("fences.gpkg")[0][1]).Centroid()
    x, y = inside.GetX(), inside.GetY()
    keys = [5, 3000000000, -(2**63), 2**63 - 1, 5]
    texts = {
        "GeoJSONSeq": [feature(i, None, x, y, number=key) + "\n" for i, key in enumerate(keys)],
        "CSV": [f"{i},{key},{x},{y}\n" for i, key in enumerate(keys)],
    }
    for name, lines in texts.items():
        lines[0] = ("" if name == "GeoJSONSeq" else "id,number,x,y\n") + lines[0]
        more = ["-oo", "AUTODETECT_TYPE=YES"] if name == "CSV" else []
        f = Filter(*events("-op", "within", *XY, "-flush", "40ms", *more, key="number"), "-f", name,
                   "/vsistdout/", "/vsistdin/", "fences.gpkg")
        f.send(lines[0])
        f.wait_for(2 if name == "CSV" else 1)
        f.send("".join(lines[1:]))
        r = f.end()
        same(r.rc, 0, f"{r}")
        if name == "CSV":
            got = [int(v["number"]) for v in csv.DictReader(r.out.splitlines())]
        else:
            got = [json.loads(line)["properties"]["number"] for line in r.out.splitlines()]
        same(sorted(set(got)), sorted(set(keys)), name)
        true("fit" not in r.err, f"{r}")


def check_first_bytes_in_pieces():
    """A byte order mark, and white space before the first record, arrive in pieces of
    their own."""
    fences("fences.gpkg")
    inside = ogr.CreateGeometryFromWkb(rows("fences.gpkg")[0][1]).Centroid()
    record = feature(1, "v", inside.GetX(), inside.GetY())
    pretty = "\x1e" + json.dumps(json.loads(record), indent=1) + "\n"
    for name in ("/vsistdin/", "GeoJSONSeq:/vsistdin/"):
        for text in (record + "\n", pretty):
            for pieces in ([b"\xef", b"\xbb\xbf", text], [b"\n", b" ", text]):
                f = stream("-flush", "20ms", to="GeoJSONSeq", name=name)
                for piece in pieces:
                    f.send_apart(piece)
                r = f.end()
                true(r.rc == 0 and r.out.count('"enter"') > 0, f"{name} {pieces}: {r}")


def check_odd_streams():
    fences("fences.gpkg")
    for bytes_, message in ((b"", "ends before the first report"), (b"\n\n", "before the first report"),
                         (b"\xef\xbb\xbf", "before the first report"),
                         (b"\x00\x01\x02", "neither CSV nor GeoJSONSeq"),
                         (b"id,vehicle,a,b\n1,v,1,2\n", "no geometry"),
                         (b'{"type":"Feature",\n', "GeoJSONSeq")):
        f = stream()
        try:
            f.send(bytes_)
        except BrokenPipeError:
            pass
        r = f.end()
        true(r.rc == 1 and message in r.err and r.err.count("ERROR") == 1, f"{message}: {r}")
    f = stream()
    f.send("id,vehicle,x,y\n")
    r = f.end()
    true(r.rc == 0, f"only a first line: {r}")
    fails(*events("-op", "within", "-sql", "SELECT 1"), "no.csv", "/vsistdin/", "fences.gpkg", message="-sql",
          op=False)


# --- values of other types than those of the first batch ---------------------


def values_of(first, later, words=(), to="GeoJSONSeq"):
    """Sends two reports in separate batches, the first with v = first and the second
    with v = later. Returns the values of field v in the events of the second report,
    and the run."""
    x, y = inside_of_a_fence()
    f = stream("-flush", "20ms", *words, to=to)
    if to == "CSV":
        f.send(f"id,vehicle,x,y,v\n1,a,{x},{y},{first}\n")
        f.wait_for(2)
        f.send(f"2,b,{x},{y},{later}\n")
        r = f.end()
        found = {row["vehicle"]: row["v"] for row in csv.DictReader(r.out.splitlines())}
    else:
        f.send(feature(1, "a", x, y, v=first) + "\n")
        f.wait_for(1)
        f.send(feature(2, "b", x, y, v=later) + "\n")
        r = f.end()
        found = {v["vehicle"]: v["v"] for v in (json.loads(line)["properties"] for line in r.out.splitlines())}
    same((r.rc, list(found)), (0, ["a", "b"]), f"{r}")
    return found["b"], r


def fits(first, later, expected, **how):
    value, r = values_of(first, later, **how)
    same((value, type(value)), (expected, type(expected)), f"{later!r} after {first!r}: {r}")
    true("fit" not in r.err, f"{later!r} after {first!r}: {r}")


def does_not_fit(first, later, message, **how):
    value, r = values_of(first, later, **how)
    true(value in (None, ""), f"{later!r} after {first!r}: {value!r} {r}")
    place = f"' of report 2 (line {3 if how else 2})"
    true(r.err.count("NULL is written") == 1 and place in r.err and message in r.err, f"{later!r} after {first!r}: {r}")


def check_values_of_another_type():
    """A later value of another type is written unchanged, or as NULL with a warning."""
    fences("fences.gpkg")
    # Texts stay texts, even if all values of a batch look like numbers or dates.
    for later in ("2024-01-01", "2024-05-01T10:00:00Z", "08:30:00", "007", "true", ""):
        fits("n/a", later, later)
        fits(None, later, later)
    fits("n/a", 5, "5")
    fits("n/a", 1.5, "1.5")
    fits("n/a", ["b"], "b")
    does_not_fit("n/a", ["b", "c"], "which is String")
    fits(3, 3.5, 3.5)
    fits(3, 2**53, 2.0**53)
    does_not_fit(3, 2**53 + 1, "which is Real")
    fits(3, "4.5", 4.5)
    does_not_fit(3, "many", "which is Real")
    fits(2**40, 2**60, 2**60)
    does_not_fit(2**40, 3.5, "which is Integer64")
    fits(True, False, False)
    does_not_fit(True, 3, "which is Boolean")
    does_not_fit(True, "yes", "which is Boolean")
    fits([1], [1.5], [1.5])
    fits(["a"], "b", ["b"])
    does_not_fit([1], ["a"], "which is RealList")
    does_not_fit("2024-01-01", "soon", "which is Date")
    does_not_fit("2024-01-01", "2024-01-02T03:04:05", "which is Date")
    does_not_fit("2024-01-02T03:04:05", 7, "which is DateTime")
    detect = {"words": ("-oo", "AUTODETECT_TYPE=YES"), "to": "CSV"}
    for first, later in (("n/a", "007"), ("n/a", "2024-01-01"), ("5", "007"), ("0.5", "1e3"), ("5", "")):
        value, r = values_of(first, later, **detect)
        true("fit" not in r.err, f"{r}")
        same(value, {"5007": "7", "0.51e3": "1000"}.get(first + later, later), f"{later} after {first}: {r}")
    does_not_fit("5", "many", "which is Integer", **detect)
    does_not_fit("5", "3.5", "which is Integer", **detect)
    does_not_fit("5", "3000000000", "which is Integer", **detect)
    does_not_fit("2024/01/01", "soon", "which is Date", **detect)


def check_keys_are_texts_in_each_batch():
    """The keys 007 and 7 are different vehicles, whatever other keys a batch has."""
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    for words in ((), ("-oo", "AUTODETECT_TYPE=YES")):
        f = stream("-flush", "20ms", *words)
        f.send(f"id,vehicle,x,y\n1,bus,{x},{y}\n")
        f.wait_for(2)
        for i, row in enumerate(("007", "7", "bus", "007")):
            f.send_apart(f"{i},{row},{x},{y}\n")
        r = f.end()
        got = [row["vehicle"] for row in csv.DictReader(r.out.splitlines())]
        same(list(dict.fromkeys(got)), ["bus", "007", "7"], f"{words}: {r}")
        same(len(got), 3 * got.count("bus"), f"each enters once: {r}")


def check_rows_without_names():
    """A CSV without a header line. A line that has only texts is a report, in each
    batch."""
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    for mark in ("", "\ufeff"):
        f = Filter(*events("-op", "within", "-oo", "X_POSSIBLE_NAMES=field_2", "-oo", "Y_POSSIBLE_NAMES=field_3",
                           "-flush", "20ms", key="field_1"), "-f", "CSV", "/vsistdout/", "/vsistdin/", "fences.gpkg")
        f.send(f"{mark}a,{x},{y}\n")
        f.wait_for(2)
        for text in ("b,,\n", f"c,{x},{y}\n", f"d,,\ne,{x},{y}\n"):
            f.send_apart(text)
        r = f.end()
        got = [row["field_1"] for row in csv.DictReader(r.out.splitlines())]
        same((r.rc, list(dict.fromkeys(got))), (0, ["a", "c", "e"]), f"{r}")
        true("2 without a geometry" in r.err, f"{r}")


def check_warnings_come_at_once():
    """Warnings are printed at once, because the stream may have no end."""
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    f = stream("-flush", "20ms", to="GeoJSONSeq")
    f.send(feature(1, "a", x, y, v=5) + "\n")
    f.wait_for(1)
    f.send(feature(2, "b", x, y, v="many", new=1) + "\n")
    err, end = b"", time.monotonic() + HANG_S
    while (b"NULL is written" not in err or b"'new'" not in err) and time.monotonic() < end:
        if select.select([f.process.stderr], [], [], 0.1)[0]:
            err += os.read(f.process.stderr.fileno(), 65536)
    true(b"'many' of report 2 (line 2)" in err and b"'new'" in err, f"before the end: {err}")
    f.send(feature(3, "c", x, y, v="many") + "\n")
    r = f.end()
    true(r.rc == 0 and "2 values do not fit" in r.err and "'new'" not in r.err, f"{r}")


# --- reports that cannot be read --------------------------------------------


def inside_of_a_fence():
    """Returns x, y of a place inside of a fence."""
    point = ogr.CreateGeometryFromWkb(rows("fences.gpkg")[0][1]).Centroid()
    return point.GetX(), point.GetY()


def send_pieces(pieces, *words, to="CSV"):
    """Sends the pieces one after another, and in another run all at once. Both runs
    must write equal rows. Returns the Run in pieces, with the vehicles of its rows as
    `keys`."""
    found = []
    for texts in (pieces, [b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)]):
        if os.path.exists("state"):
            os.remove("state")
        f = stream("-flush", "20ms", "-state", "state", *words, to=to)
        try:
            for text in texts:
                f.send_apart(text)
            r = f.end()
        except BrokenPipeError:
            r = f.wait()
        keys = [row["vehicle"] for row in csv.DictReader(r.out.splitlines(keepends=True))] if to == "CSV" else [
            json.loads(line)["properties"]["vehicle"] for line in r.out.splitlines()]
        r.keys = list(dict.fromkeys(keys))
        found.append(r)
    same((found[0].rc, found[0].keys), (found[1].rc, found[1].keys), f"in pieces and at once: {found}")
    same(found[0].err.split("ERROR")[1:], found[1].err.split("ERROR")[1:], "the error")
    return found[0]


def unread_are(pieces, place, message, before, after, to="CSV"):
    """Checks a broken report. Without -skipfailures, the run writes the events before
    it and ends with an error. With -skipfailures, it writes all events but those of the
    broken report. Returns the number of reports that were not read."""
    r = send_pieces(pieces, to=to)
    true(r.rc == 1 and r.err.count("ERROR") == 1 and f"{place} on /vsistdin/ cannot be read" in r.err and message in r.err
         and "-skipfailures" in r.err, f"{place} {message}: {r}")
    same(r.keys, before, f"the events before {message}")
    true(not os.path.exists("state"), f"no state after {message}")
    r = send_pieces(pieces, "-skipfailures", "-json_summary", "summary.json", to=to)
    same((r.rc, r.keys), (0, after), f"all but {message}: {r}")
    true(f"{place} on /vsistdin/ cannot be read" in r.err and message in r.err, f"a warning: {r}")
    with open("summary.json", encoding="utf-8") as file:
        n = json.load(file)["events"]["unread"]
    true(n > 0 and f"{n} that cannot be read" in r.err, f"{n}: {r}")
    true(os.path.exists("state"), f"a state where {message} is left out")
    return n


def check_rows_of_csv_that_cannot_be_read():
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    head = f"id,vehicle,x,y\n1,a,{x},{y}\n"
    tail = f"3,c,{x},{y}\n4,d,{x},{y}\n"
    for row, message in ((f"2,b,{x}\n", "it has 3 fields, and the first line 4"),
                      (f"2,b,{x},{y},5\n", "it has 5 fields, and the first line 4"),
                      (f"2,b,east,{y}\n", "a coordinate is no number"),
                      (f"2,b,{x},{y}N\n", "a coordinate is no number"),
                      (f'"2,b,{x},{y}\n', "a quotation mark without a partner"),
                      (f'2,b"ee,{x},{y}\n', "a quotation mark without a partner")):
        same(unread_are([head, row, tail], "report 2 (line 3)", message, ["a"], ["a", "c", "d"]), 1)
    # The next quotation mark closes the stray one.
    n = unread_are([head, f'"2,b,{x},{y}\n', f'3,c,{x},{y}\n"4,e,{x},{y}\n', f"5,d,{x},{y}\n"], "report 2 (line 3)",
                     "partner is not at the end of a field", ["a"], ["a", "c", "d"])
    same(n, 2)
    # The end of the input cuts the last row.
    unread_are([head + tail, f"5,e,{x}"], "report 4 (line 5)", "3 fields", ["a", "c", "d"], ["a", "c", "d"])
    # The message quotes only the beginning of the report, with escapes.
    r = send_pieces([head, "2\x07\té" + "é" * 80 + "\n"])
    true("'2\\x07\\t" + "é" * 57 + "...'" in r.err, f"the beginning of a report: {r}")
    # A broken header line ends the run, even with -skipfailures.
    r = send_pieces(['id,"vehicle,x,y\n', tail], "-skipfailures")
    true(r.rc == 1 and "the first line on /vsistdin/ cannot be read" in r.err, f"{r}")
    # Other separators, WKT, and reports that are valid: with a missing place, a separator at the
    # end, a quoted field over several lines.
    fine = [f"1,a,{x},{y}\n", "2,b,,\n", f"3,b,nan,{y}\n", f"4,c,{x},{y},\n", f'5,"d\n""d"" ",{x},{y}\r\n', "\n"]
    r = send_pieces(["id,vehicle,x,y\n", *fine])
    true(r.rc == 0 and r.keys == ["a", "c", 'd\n"d" '] and "2 without a geometry" in r.err, f"{r}")
    for separator in ";\t":
        r = send_pieces([row.replace(",", separator) for row in (head, f"2,b,{x}\n", tail)], "-skipfailures")
        true(r.rc == 0 and r.keys == ["a", "c", "d"] and "3 fields" in r.err, f"{separator}: {r}")
    wkt = ["WKT,vehicle\n", f"POINT ({x} {y}),a\n", ",b\n", "PINT (1 2),c\n", f'"POINT ({x} {y})",d\n']
    unread_are(wkt, "report 3 (line 4)", "is not WKT", ["a"], ["a", "d"])


def check_quotations_end():
    """In an endless stream, a stray quotation mark is an error after some lines. A
    quoted field of a few lines is no error."""
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    f = stream("-flush", "20ms")
    f.send(f"id,vehicle,x,y\n1,a,{x},{y}\n")
    f.wait_for(2)
    f.send(f'"2,b,{x},{y}\n' + f"3,c,{x},{y}\n" * 120)
    r = f.wait()
    true(r.rc == 1 and ",c," not in r.out and "report 2 (line 3)" in r.err
         and "without a partner within 100 lines" in r.err, f"{r}")
    f.process.stdin.close()
    lines = "\n".join("x" * 99)
    r = send_pieces([f'id,vehicle,x,y,note\n1,a,{x},{y},"', lines, f'"\n2,b,{x},{y},\n'])
    true(r.rc == 0 and r.keys == ["a", "b"], f"a quotation of 99 lines: {r}")
    # Without line breaks, in both formats.
    for head, row, in (("id,vehicle,x,y\n", "{i},{key},{x},{y}\n"), ("", None)):
        rows_ = [row.format(i=i, key=key, x=x, y=y) if row else feature(i, key, x, y) + "\n"
                 for i, key in enumerate("abc")]
        pieces = [head + rows_[0], b"\"" + b"x" * (17 << 20) + b"\n", "".join(rows_[1:])]
        r = send_pieces(pieces)
        true(r.rc == 1 and "longer than 16 MB" in r.err and r.keys == ["a"], f"{r}")
        r = send_pieces(pieces, "-skipfailures")
        same((r.rc, r.keys), (0, ["a", "b", "c"]), f"{r}")


def check_objects_that_cannot_be_read():
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    a, b, c, d = (feature(i, key, x, y) + "\n" for i, key in enumerate("abcd"))
    odd = json.dumps({"type": "Feature", "properties": {"id": 1, "vehicle": "b"},
                      "geometry": {"type": "Point", "coordinates": ["east", y]}}) + "\n"
    for line, message in (("{bad\n", "no GeoJSON feature"), (b[:50] + "\n", "no GeoJSON feature"),
                       ('{"a":1}\n', "no GeoJSON feature"), ("[1,2]\n", "no GeoJSON feature"),
                       (odd, "no GeoJSON feature"), (b[:-1] + b, "a second object")):
        same(unread_are([a, line, c + d], "report 2 (line 2)", message, ["a"], ["a", "c", "d"]), 1)
    unread_are([a + c, b[:50]], "report 3 (line 3)", "no GeoJSON feature", ["a", "c"], ["a", "c"])
    unread_are(["\x1e" + a, "\x1e" + b[:50], "\x1e" + c], "report 2 (line 2)", "no GeoJSON feature", ["a"], ["a", "c"])
    # Several broken reports among many, which the command finds by halving the batch.
    r = random.Random(7)
    lines = [feature(i, f"v{i}", x, y) + "\n" for i in range(1000)]
    broken = sorted(r.sample(range(1000), 30))
    for i in broken:
        lines[i] = r.choice(("{\n", lines[i][:40] + "\n", "{}\n"))
    n = unread_are(["".join(lines)], f"report {broken[0] + 1} (line {broken[0] + 1})", "no GeoJSON feature",
                     [f"v{i}" for i in range(broken[0])], [f"v{i}" for i in range(1000) if i not in broken])
    same(n, 30)
    # the whole feature collection, over several lines or in one
    whole = '{"type":"FeatureCollection","features":[\n' + a[:-1] + ",\n" + b + "]}\n"
    for text in (whole, whole.replace("\n", "") + "\n"):
        r = send_pieces([text])
        true(r.rc == 1 and r.out == "" and "GeoJSONSeq has one feature per line" in r.err and "FeatureCollection" in r.err, f"{r}")
    r = send_pieces(["{\n", "{}\n"], "-skipfailures")
    true(r.rc == 1 and "ends before the first report that can be read" in r.err, f"{r}")
    # A report beyond -limit is not read.
    f = stream("-limit", 1)
    f.send(a + "{bad\n")
    r = f.end()
    true(r.rc == 0 and ",a," in r.out, f"{r}")
    # Regular files are read as in any join.
    with open("whole.geojsonl", "w", encoding="utf-8") as file:
        file.write(a + b)
    fails(*events("-op", "within", "-crs", "ignore", "-skipfailures"), "no.gpkg", "whole.geojsonl", "fences.gpkg",
          message=["-skipfailures", "/vsistdin/"], op=False)
    fails("-op", "within", "-skipfailures", "no.gpkg", "whole.geojsonl", "fences.gpkg", message="-skipfailures needs -events",
          op=False)


def check_keys_of_several_types():
    """The first report decides the type of keys, whatever the rest of its batch has. 1
    and "1" are one key. A text after an integer is an error."""
    fences("fences.gpkg")
    x, y = inside_of_a_fence()
    keys = [1, "1", "z", 2]
    lines = [feature(i, key, x, y) + "\n" for i, key in enumerate(keys)]
    unread_are(lines, "report 3 (line 3)", "its key vehicle is 'z'", [1], [1, 2], to="GeoJSONSeq")
    lines = [feature(i, key, x, y) + "\n" for i, key in enumerate(["z", 1, "1"])]
    r = send_pieces(lines, to="GeoJSONSeq")
    same((r.rc, r.keys), (0, ["z", "1"]), f"{r}")


def check_a_state_that_cannot_be_written():
    """The folder of the state is removed after the rows were written. The run fails, and
    the message names the state and the output, which is complete."""
    fences("fences.gpkg")
    os.mkdir("folder")
    x, y = inside_of_a_fence()
    f = stream("-flush", "20ms", "-state", "folder/state")
    f.send(csv_of([(f"POINT ({x} {y})", {"id": 1, "vehicle": "a", "number": 1})]))
    f.wait_for(2)
    shutil.rmtree("folder")
    r = f.end()
    true(r.rc == 1 and "-state: cannot write folder/state" in r.err
         and "all rows are written to /vsistdout/" in r.err, f"{r}")
    true(",a," in r.out, f"{r}")


def check_kill_while_the_state_is_written():
    """A run is killed. Its state file is the old one or the new one, never an
    incomplete one."""
    fences("fences.gpkg")
    r = random.Random(8)
    n = 40000
    inside = ogr.CreateGeometryFromWkb(rows("fences.gpkg")[0][1]).Centroid()
    for i, name in enumerate(("a.csv", "b.csv")):
        with open(name, "w", encoding="utf-8") as file:
            file.write("id,vehicle,x,y\n")
            file.writelines(f"{j},vehicle {j},{inside.GetX()},{inside.GetY()}\n" for j in range(n * i, n * (i + 1)))
    words = [*events("-op", "within", *XY), "-state", "state", "-overwrite", "out.csv"]
    succeeds(*words, "a.csv", "fences.gpkg")
    old = state_bytes()
    succeeds(*words, "b.csv", "fences.gpkg")
    new = state_bytes()
    true(old != new, "the states differ")
    seen = {"old": 0, "new": 0}
    while sum(seen.values()) < 7 or (seen["old"] == 0 and seen["new"] < 100):
        with open("state", "wb") as file:
            file.write(old)
        process = start(*words, "b.csv", "fences.gpkg")
        while process.poll() is None and not any(map(os.path.isfile, glob.glob(".ogrjoin-*"))):
            pass
        time.sleep(r.choice((0, 0, r.uniform(0, 0.03))))
        process.kill()
        finish(process)
        found = state_bytes()
        true(found in (old, new), "a state that is neither")
        seen["old" if found == old else "new"] += 1
        for path in filter(os.path.isfile, glob.glob(".ogrjoin-*")):
            os.remove(path)
    true(seen["old"] > 0, f"it was not killed in time: {seen}")


main(globals())
