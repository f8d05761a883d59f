"""-within_time and -during: dates, times and numbers of OGR layers, zones, tiles,
JOIN:, and errors."""

import collections
import datetime as dt

from row_layers import *

FIELDS_OF_TIME = (
    ("id", ogr.OFTInteger), ("at", ogr.OFTDateTime), ("day", ogr.OFTDate), ("clock", ogr.OFTTime),
    ("whole", ogr.OFTInteger64), ("real", ogr.OFTReal), ("text", ogr.OFTString), ("till", ogr.OFTDateTime),
)


def moment(r):
    return dt.datetime(2023, 12, 31, 20) + dt.timedelta(minutes=15 * r.randrange(40))


def written(at, hours=0):
    """Returns the time as text in the form that OGR reads, in the zone `hours` east of UTC."""
    at += dt.timedelta(hours=hours)
    return at.strftime("%Y/%m/%d %H:%M:%S") + (f"{hours:+03d}" if hours else "+00")


def timed_file(path, n, seed, spread=60):
    """Makes a layer with times. In FlatGeobuf they have time zones. GeoPackage does not
    store time zones. Returns path."""
    r, zones = random.Random(seed), 4 if path.endswith("fgb") else 1
    rows = []
    for i in range(n):
        at = None if r.randrange(8) == 0 else moment(r)
        till = None if at is None or r.randrange(5) == 0 else at + dt.timedelta(minutes=15 * r.randrange(-1, 6))
        values = {"id": i, "whole": r.randrange(9) if r.randrange(8) else None, "real": r.randrange(30) / 2}
        if at is not None:
            values.update(at=written(at, r.randrange(1 - zones, zones)), day=at.strftime("%Y/%m/%d"), text=at.isoformat(),
                          clock=at.strftime("%H:%M:%S"))
        if till is not None:
            values["till"] = written(till)
        place = f"POINT ({980000 + r.uniform(0, spread)!r} {200000 + r.uniform(0, spread)!r})"
        rows.append((place, {key: value for key, value in values.items() if value is not None}, i + 1))
    lco = ("SPATIAL_INDEX=NO",) if zones > 1 else ()
    return make(path, rows, FIELDS_OF_TIME, kind=ogr.wkbPoint, lco=lco)


def in_utc(text):
    """Returns the minutes of a datetime that is given as OGR writes it."""
    if text is None:
        return None
    date, zone = text[:19], text[19:]
    at = dt.datetime.strptime(date.replace("T", " ").replace("-", "/"), "%Y/%m/%d %H:%M:%S")
    hours = int(zone) if zone and zone != "Z" else 0
    return (at - dt.datetime(2023, 1, 1)).total_seconds() / 60 - 60 * hours


def of_text(path, field):
    """Returns the values of a field for all features, as OGR writes them."""
    dataset = ogr.Open(path)
    return [f.GetFieldAsString(field) if f.IsFieldSetAndNotNull(field) else None for f in dataset.GetLayer(0)]


def found(path):
    return sorted((r[2]["id"], r[2]["join_id"]) for r in Layer(path).rows)


def columns(path):
    """Returns the values of each field by its name. Times are in minutes."""
    day = [None if t is None else in_utc(t[:10] + " 00:00:00") for t in of_text(path, "day")]
    clock = [None if t is None else int(t[:2]) * 60 + int(t[3:5]) for t in of_text(path, "clock")]
    plain = {name: [r[2][name] for r in Layer(path).rows] for name in ("whole", "real")}
    text = [None if t is None else in_utc(t.replace("T", " ")) for t in of_text(path, "text")]
    return {"at": [in_utc(t) for t in of_text(path, "at")], "till": [in_utc(t) for t in of_text(path, "till")],
            "day": day, "clock": clock, "text": text, **plain}


def near_pairs(a, b, left, right, window, places):
    return sorted(
        (i, j) for i, j in places if a[left][i] is not None and b[right][j] is not None
        and abs(a[left][i] - b[right][j]) <= window
    )


WINDOWS = [
    ("at:45min", "at", "at", 45), ("at=at:0.5h", "at", "at", 30), ("at=day:1d", "at", "day", 1440),
    ("day:0d", "day", "day", 0), ("clock:15min", "clock", "clock", 15), ("whole:1", "whole", "whole", 1),
    ("whole=real:0.5", "whole", "real", 0.5), ("text=at:900s", "text", "at", 15), ("text:900000ms", "text", "text", 15),
]  # fmt: skip

RUNS = ((), ("-validate",), ("-memory", "2M", "-batch", 7), ("-threads", 3, "-batch", 16), ("-backend", "geos"))


@once
def check_windows():
    for kind in ("gpkg", "fgb"):
        sides = timed_file(f"a.{kind}", 60, 1), timed_file(f"b.{kind}", 70, 2)
        windows_of(*sides)


def windows_of(*sides):
    words = ("-op", "dwithin", "-max_distance", 25, "-how", "inner")
    go(*words, "-overwrite", "o.gpkg", *sides)
    places = found("o.gpkg")
    a, b = map(columns, sides)
    for word, left, right, window in WINDOWS:
        if left == "clock" and sides[0].endswith("fgb"):
            continue  # FlatGeobuf has no times of a day
        expected = near_pairs(a, b, left, right, window, places)
        true(0 < len(expected) < len(places), f"a fair trial: {word}")
        for more in RUNS if sides[0].endswith("gpkg") else RUNS[:1]:
            go(*words, "-within_time", word, *more, "-overwrite", "o.gpkg", *sides)
            same(found("o.gpkg"), expected, f"{word} {more} {sides}")


@once
def check_spans():
    timed_file("a.gpkg", 60, 3)
    timed_file("b.gpkg", 60, 4)
    words = ("-op", "dwithin", "-max_distance", 25, "-how", "inner")
    go(*words, "o.gpkg", "a.gpkg", "b.gpkg")
    places, a, b = found("o.gpkg"), columns("a.gpkg"), columns("b.gpkg")
    span = lambda side, i: (
        -math.inf if side["at"][i] is None else side["at"][i],
        math.inf if side["till"][i] is None else side["till"][i],
    )
    relations = {
        "intersects": lambda p, q: p[0] <= q[1] and q[0] <= p[1], "before": lambda p, q: p[1] < q[0],
        "meets": lambda p, q: p[0] < q[0] == p[1] < q[1], "during": lambda p, q: q[0] < p[0] and p[1] < q[1],
        "started_by": lambda p, q: p[0] == q[0] and p[1] > q[1], "equals": lambda p, q: p == q,
    }  # fmt: skip
    for name, holds in relations.items():
        expected = [
            (i, j) for i, j in places if span(a, i)[0] <= span(a, i)[1] and span(b, j)[0] <= span(b, j)[1]
            and holds(span(a, i), span(b, j))
        ]  # fmt: skip
        true(expected, f"a fair trial: {name}")
        for more in ((), ("-validate",), ("-memory", "2M")):
            go(*words, "-during", f"at..till:{name}", *more, "-overwrite", "o.gpkg", "a.gpkg", "b.gpkg")
            same(found("o.gpkg"), expected, f"{name} {more}")


@once
def check_both_sides_of_a_sum():
    """With -agg the join layer streams past the input, so for the engine the sides are
    exchanged."""
    timed_file("a.gpkg", 40, 5)
    timed_file("b.gpkg", 50, 6)
    squares = [(f"POLYGON ((980000 {y}, 980060 {y}, 980060 {y + 30}, 980000 {y + 30}, 980000 {y}))", r[2])
               for y, r in zip(range(200000, 200040, 2), Layer("a.gpkg").rows)]
    fields = (("id", ogr.OFTInteger), ("whole", ogr.OFTInteger64), ("real", ogr.OFTReal))
    make("z.gpkg", [(s, {k: v[k] for k in ("id", "whole", "real") if v[k] is not None}) for s, v in squares], fields)
    for word in (("-within_time", "whole:1"), ("-during", "whole..real=whole..real:before"),
                 ("-during", "whole..real=whole:contains")):
        go("-op", "contains", *word, "-how", "inner", "-overwrite", "o.gpkg", "z.gpkg", "b.gpkg")
        n = collections.Counter(r[2]["id"] for r in Layer("o.gpkg").rows)
        go("-op", "contains", *word, "-agg", "count as n", "-overwrite", "o.gpkg", "z.gpkg", "b.gpkg")
        got = Layer("o.gpkg").rows
        same({r[2]["id"]: r[2]["n"] for r in got if r[2]["n"]}, dict(n), str(word))
        true(sum(n.values()) > 0, "a fair trial")


def found_by_window(word, path):
    go("-op", "nearest", "-how", "inner", "-within_time", word, "-overwrite", path, "a.gpkg", "b.gpkg")
    return found(path)


@once
def check_invalid_options():
    timed_file("a.gpkg", 9, 7)
    timed_file("b.gpkg", 9, 8)
    r = go("-op", "nearest", "-within_time", "at:1h", "-explain", "o.gpkg", "a.gpkg", "b.gpkg")
    true("times are near: at:1h" in r.out + r.err, str(r))
    r = go("-op", "nearest", "-within_time", "at:1h", "-json_summary", "s.json", "o.gpkg", "a.gpkg", "b.gpkg")
    without = sum(t is None for t in of_text("a.gpkg", "at"))
    true(without == 0 or f"{without} without a time that is compared" in r.err, str(r))
    with open("n.csv", "w") as file:
        file.write("x,y,a,b\n" "0,0,1,5\n" "1,1,3,\n" "2,2,,\n")
    places = [w for oo in ("-oo", "-joo") for w in (oo, "X_POSSIBLE_NAMES=x", oo, "Y_POSSIBLE_NAMES=y")]
    r = go("-during", "a..b", *places, "n.gpkg", "n.csv", "n.csv")
    true("2 of 3 rows have no text that is a time" in r.err and "AUTODETECT_TYPE=YES" in r.err, str(r))
    r = go("-during", "a..b", *places, "-oo", "AUTODETECT_TYPE=YES", "-joo", "AUTODETECT_TYPE=YES", "-overwrite",
           "n.gpkg", "n.csv", "n.csv")
    true("is a time" not in r.err, str(r))
    hours = found_by_window("at:168h", "h.gpkg")
    for word in ("at:1w", "at: 1 w", "at:7  d", "at:168 h"):
        same(found_by_window(word, "w.gpkg"), hours, word)
    for words, message in (
        (("-within_time", "at:1 ww"), ["30min"]),
        (("-within_time", "at:1w "), ["30min"]),
        (("-within_time", "at"), ["LEFT[=RIGHT]:WINDOW", "30min"]),
        (("-within_time", "at:30"), ["unit", "30min"]),
        (("-within_time", "whole:30s"), ["without a unit"]),
        (("-within_time", "at=whole:30s"), ["one kind", "numbers"]),
        (("-within_time", "at=none:30s"), ["none"]),
        (("-during", "at..till:besides"), ["besides", "overlapped_by"]),
        (("-during", "at..:equals"), ["FROM..UNTIL"]),
        (("-within_time", "at:1s", "-within_time", "at:2s"), ["given twice"]),
    ):
        fails("-op", "nearest", *words, "x.gpkg", "a.gpkg", "b.gpkg", op=False, message=message)


if __name__ == "__main__":
    main(globals())
