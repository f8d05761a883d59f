"""-heading: OGR layers of several formats, texts as headings, tiles, JOIN:, -validate,
and errors."""

from dataset import *
from row_layers import *

FIELDS_OF_HEADING = (("id", ogr.OFTInteger), ("course", ogr.OFTReal), ("way", ogr.OFTInteger), ("text", ogr.OFTString))


def reports(path, n, seed):
    r, rows = random.Random(seed), []
    for i in range(n):
        values = {"id": i, "way": r.choice((0, 45, 90, 135, -45, 360, 511))}
        if r.randrange(8):
            values["course"] = r.choice((0.0, 45.0, 90.0, 270.0, 12.5, -30.0, 400.0))
            values["text"] = f" {values['course']}"
        rows.append((f"POINT ({980000 + r.randrange(40)} {200000 + r.randrange(40)})", values, i + 1))
    return make(path, rows, FIELDS_OF_HEADING, kind=ogr.wkbPoint)


def streets(path, n, seed):
    r, rows = random.Random(seed), []
    for i in range(n):
        x, y = r.randrange(40), r.randrange(40)
        at = [(x, y)]
        for _ in range(r.randrange(1, 5)):
            x, y = x + r.randrange(-4, 5), y + r.randrange(-4, 5)
            at.append((x, y))
        rows.append(("LINESTRING (" + ", ".join(f"{980000 + x} {200000 + y}" for x, y in at) + ")", {"id": i}, i + 1))
    return make(path, rows, FIELDS_OF_HEADING, kind=ogr.wkbLineString)


def csv_of(path):
    """Writes the points of a layer to a CSV file. Returns the path of the CSV."""
    with open("reports.csv", "w", encoding="utf-8") as file:
        file.write("id,course,x,y\n")
        for fid, wkb, values in Layer(path).rows:
            p = ogr.CreateGeometryFromWkb(wkb)
            course = "" if values["course"] is None else values["course"]
            file.write(f"{values['id']},{course},{p.GetX()},{p.GetY()}\n")
    return "reports.csv"


def segments(path):
    """Returns (feature, number, start, end) for each segment."""
    found = []
    for i, row in enumerate(Layer(path).rows):
        points = ogr.CreateGeometryFromWkb(row[1]).GetPoints()
        found += [(i, k + 1, a[:2], b[:2]) for k, (a, b) in enumerate(zip(points, points[1:]))]
    return found


def far_from(p, a, b):
    dx, dy = b[0] - a[0], b[1] - a[1]
    size = dx * dx + dy * dy
    t = 0 if size == 0 else max(0.0, min(1.0, ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / size))
    return math.hypot(p[0] - a[0] - t * dx, p[1] - a[1] - t * dy)


def does_fit(a, b, heading, tolerance, both_ways):
    if heading is None or abs(heading) > 360:
        return True
    if a == b:
        return False
    apart = abs((math.degrees(math.atan2(b[0] - a[0], b[1] - a[1])) - heading + 180) % 360 - 180)
    return min(apart, 180 - apart if both_ways else apart) <= tolerance + 1e-9


def expected(points, of, field, tolerance, both_ways):
    """Returns {row id: minimum distance to the segments `of` that fit the row's
    heading}. Rows without a fitting segment are left out."""
    found = {}
    for row in Layer(points).rows:
        p = ogr.CreateGeometryFromWkb(row[1]).GetPoint()[:2]
        heading = row[2][field]
        heading = float(heading) if heading is not None else None
        fitting = [far_from(p, a, b) for _, _, a, b in of if does_fit(a, b, heading, tolerance, both_ways)]
        if fitting:
            found[row[2]["id"]] = min(fitting)
    return found


def distances(path):
    return {int(row[2]["id"]): row[2]["join_distance"] for row in Layer(path).rows}


def are_near(got, expected, what):
    same(sorted(got), sorted(expected), what)
    for key, value in got.items():
        near(value, expected[key], 1e-6, f"{what}: {key}")


@once
def check_formats_and_fields():
    for n, (kind, field) in enumerate((("gpkg", "course"), ("fgb", "way"), ("gpkg", "text"), ("csv", "course"))):
        points = reports(f"reports{n}.{'gpkg' if kind == 'csv' else kind}", 150, n)
        roads = streets(f"roads{n}.gpkg", 60, n + 10)
        read, of = points, segments(roads)
        if kind == "csv":
            read = csv_of(points)
        for tolerance, both_ways in ((45, False), (30, True), (0, False), (180, True)):
            words = ["-op", "nearest", "-how", "inner", "-heading", f"{field}:{tolerance}"]
            words += ["-heading_both_ways"] * both_ways
            words += ["-oo", "X_POSSIBLE_NAMES=x", "-oo", "Y_POSSIBLE_NAMES=y"] * (kind == "csv")
            go(*words, "-validate", "geos", "-overwrite", "o.gpkg", read, roads)
            what = f"{kind} {field} {tolerance}"
            are_near(distances("o.gpkg"), expected(points, of, field, tolerance, both_ways), what)


@once
def check_doors_and_tiles():
    points, roads = reports("reports.gpkg", 300, 5), streets("roads.gpkg", 200, 6)
    words = ["-op", "nearest", "-k", 2, "-how", "inner", "-heading", "course:25", "-segment_field", "n"]
    go(*words, "plain.gpkg", points, roads)
    plain = Layer("plain.gpkg").rows
    true(len(plain) > 300 and all(row[2]["n"] for row in plain), f"{len(plain)} rows")
    for more in (("-memory", "10K"), ("-backend", "geos"), ("-batch", 7, "-threads", 3), ("-validate",)):
        go(*words, *more, "-overwrite", "o.gpkg", points, roads)
        same(Layer("o.gpkg").rows, plain, str(more))
    rows = Layer(name_of(*words, points, roads)).rows
    same([row[2] for row in rows], [row[2] for row in plain], "JOIN:")


@once
def check_rows_without_heading_are_counted():
    points, roads = reports("reports.gpkg", 120, 5), streets("roads.gpkg", 60, 6)
    courses = [row[2]["course"] for row in Layer(points).rows]
    n = sum(course is None or abs(course) > 360 for course in courses)
    true(1 < n < 100, f"{n} of {len(courses)} without a heading")
    words = ["-op", "nearest", "-heading", "course", "-overwrite"]
    for more in ((), ("-batch", 7, "-threads", 3), ("-memory", "10K")):
        r = go(*words, *more, "-json_summary", "s.json", "o.gpkg", points, roads)
        true(f"{n} rows of the input layer have no heading" in r.err, str(r))
        same(summary("s.json")["rows_without_heading"], n, str(more))
    r = go("-op", "nearest", "-overwrite", "o.gpkg", points, roads)
    true("no heading" not in r.err, str(r))


@once
def check_invalid_options():
    points, roads = reports("reports.gpkg", 9, 5), streets("roads.gpkg", 9, 6)
    r = go("-op", "nearest", "-heading", "course:25", "-heading_both_ways", "-explain", "o.gpkg", points, roads)
    true("fit the heading: course:25, or its reverse" in r.out + r.err, str(r))
    for words, message in (
        (("-op", "nearest", "-heading", "course:200"), ["FIELD[:TOLERANCE]", "0 to 180"]),
        (("-op", "nearest", "-heading", "nofield"), ["nofield"]),
        (("-op", "nearest", "-heading_both_ways"), ["-heading"]),
        (("-op", "intersects", "-heading", "course"), ["nearest"]),
        (("-op", "nearest", "-heading", "course", "-min_distance", 3), ["do not go together"]),
        (("-op", "nearest", "-heading", "course", "-distance", "frechet"), ["compares whole shapes"]),
        (("-op", "nearest", "-heading", "course", "-metric", "sphere"), ["leave -metric sphere out"]),
    ):
        fails(*words, "x.gpkg", points, roads, op=False, message=message)
    fails("-op", "nearest", "-heading", "id", "x.gpkg", roads, points, op=False, message=["-centroid_of input"])
    go("-op", "nearest", "-heading", "id", "-centroid_of", "input", "o.gpkg", roads, roads)


def check_aggregates():
    """-agg of dwithin exchanges the sides where the join layer has more features, but not
    with headings."""
    for n, m in ((20, 60), (60, 20)):
        left, right = reports(f"reports{n}.gpkg", n, 5), streets(f"streets{m}.gpkg", m, 6)
        words = ("-op", "dwithin", "-max_distance", 4, "-heading", "course:30")
        succeeds(*words, "-how", "inner", "-overwrite", f"pairs{n}.gpkg", left, right)
        expected = {}
        for values in (row[2] for row in Layer(f"pairs{n}.gpkg").rows):
            expected.setdefault(values["id"], []).append(values["join_fid"])
        true(len(expected) > 5, f"{n}")
        for more in ((), ("-on", "id")):
            succeeds(*words, *more, "-agg", "count as n", "-overwrite", f"sums{n}.gpkg", left, right)
            found = [row[2] for row in Layer(f"sums{n}.gpkg").rows]
            same(len(found), n)
            if not more:
                same({v["id"]: v["n"] for v in found if v["n"]}, {k: len(v) for k, v in expected.items()})


if __name__ == "__main__":
    main(globals())
