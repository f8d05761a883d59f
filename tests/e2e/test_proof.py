"""-validate and -benchmark: that they say "no difference" where there is none,
and find one where GEOS is made to lie."""

import csv

from e2e import *


def layers():
    points_file(n=200)
    lots_file(n=30)
    return ["points.gpkg", "lots.gpkg"]


def check_no_difference():
    w = layers()
    r = random.Random(8)
    rows = []
    for i in range(40):
        x, y = 980000 + r.uniform(0, 1000), 200000 + r.uniform(0, 1000)
        rows.append((f"LINESTRING ({x!r} {y!r}, {x + 30!r} {y + 9!r}, {x!r} {y - 9!r})",
                     {"name": str(i)}))
    make("roads.gpkg", rows, kind=ogr.wkbLineString)
    for joined in (w[1], "roads.gpkg", "points.gpkg"):
        for words in ([], ["-max_distance", "60"], ["-k", "4"], ["-ties", "all"],
                      ["-distance_to", "boundary"], ["-how", "anti", "-max_distance", 40]):
            for reference in ([], ["geos"], ["spatialindex"]):
                r = join("-validate", *reference, *words, "o.gpkg", w[0], joined,
                         "-overwrite", "-json_summary", "s.json")
                name = reference[0] if reference else "geos"
                true(f"cpu against {name}" in r.err and "no difference" in r.err, str(r))
                s = summary("s.json")
                same((s["rows_validated"], s["rows_different"]), (200, 0))
                if not IS_LONG and reference and words:
                    break
    r = join("-validate", "-backend", "spatialindex", "b.gpkg", *w)
    true("spatialindex against geos" in r.err, str(r))


def check_report_without_difference():
    w = layers()
    for name in ("r.gpkg", "r.csv"):
        join("-validate", "-validate_report", name, f"o_{name}.gpkg", *w)
        got = Layer(name)
        same(got.rows, [], name)
        for field in ("input_fid", "kind", "join_fid", "distance", "ref_fid", "ref_dist"):
            true(field in got.fields, f"{field} of {name}: {list(got.fields)}")


def lying():
    """Environment in which GEOS lies."""
    library = os.environ.get("LYING_GEOS", "")
    if not os.path.exists(library):
        raise Skip("no LYING_GEOS, which the build makes of lying_geos.c")
    loaded = subprocess.run(["ldd", OGRJOIN], stdout=subprocess.PIPE, check=False)
    if b"libasan" in loaded.stdout:
        raise Skip("the sanitizers want to be loaded first")
    return {"LD_PRELOAD": library}


def check_a_difference_is_found():
    # What lies is joined with, and found out; as the reference it is put right
    # by exact arithmetic.
    liar = ("-backend", "geos", "-validate", "cpu")
    w = layers()
    env = lying()
    r = run("-op", "nearest", "-validate", "right.gpkg", *w, env=env)
    same(r.rc, 0, str(r))
    true("exact arithmetic confirms" in r.err, str(r))
    answers = nearest(Layer(w[0]).shapes(), Layer(w[1]).rows)
    distances = [a[0][0] for a in answers]
    far = [fid for (fid, _, _), d in zip(Layer(w[0]).rows, distances) if d > 20]
    true(10 < len(far) < 190, f"{len(far)} of 200 are far")
    for name in ("r.gpkg", "r.csv"):
        r = run("-op", "nearest", *liar, "-validate_report", name, "o.gpkg", *w,
                "-overwrite", "-json_summary", "s.json", env=env)
        same(r.rc, 3, str(r))
        true(f"{len(far)} rows differ" in r.err, str(r))
        true("here" in r.err and "cpu" in r.err, f"first differences: {r}")
        same(summary("s.json")["rows_different"], len(far))
        same(Layer("o.gpkg").column("join_distance"), [d + (d > 20) for d in distances], "the output stays")
        report = Layer(name)
        same(sorted({int(v) for v in report.column("input_fid")}), sorted(far))
        if name == "r.gpkg":
            for row, shape in zip(report.rows, report.shapes()):
                at = row[2]["input_fid"] - 1
                near(row[2]["ref_dist"], distances[at], 0.0)
                same(row[2]["distance"], distances[at] + 1.0)
                same(shape.ExportToWkb(), Layer(w[0]).shapes()[at].ExportToWkb())
                if row is report.rows[4]:
                    break
    # Quiet runs say it, too.
    r = run("-op", "nearest", "-q", *liar, "q.gpkg", *w, env=env)
    same(r.rc, 3, str(r))
    true("rows differ" in r.err, str(r))
    # In place the exit code is the same.
    r = run("-op", "nearest", "-in_place", *liar, *w, env=env)
    same(r.rc, 3, str(r))


def check_benchmark():
    w = layers()
    r = run("-op", "nearest", "-benchmark", "-max_distance", 60, *w, "-benchmark_csv",
            "b.csv")
    same(r.rc, 0, str(r))
    same(r.err.count("ERROR"), 0, str(r))
    with open("b.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    backends = [row["backend"] for row in rows]
    for name in ("spatialindex", "quadrant", "geos_sorted", "cpu"):
        true(name in backends, f"{name} in {backends}")
    true(len(rows) >= 6, f"{len(rows)} rows")
    true({int(row["threads"]) for row in rows} >= {1}, "threads")
    answers = nearest(Layer(w[0]).shapes(), Layer(w[1]).rows, 60.0)
    n = sum(1 for a in answers if a)
    for row in rows:
        same(int(row["rows"]), 200)
        same(int(row["rows_run"]), 200)
        same(int(row["pairs"]), n, row["method"])
        same(int(row["rows_different"]), 0, row["method"])
        for key in ("index_s", "filter_s", "refine_s", "total_s", "points_per_s",
                    "speed_up"):
            true(float(row[key]) >= 0, f"{key} of {row['method']}")
        true(row["method"] in r.out, f"{row['method']} in the table")
    same(r.out.count("equal"), len(rows), r.out)
    same(listing().keys(), {"./points.gpkg", "./lots.gpkg", "./b.csv"}, "no output")


def check_pairs_that_geos_cannot_decide():
    """Of a feature that GEOS cannot read exact arithmetic confirms each pair; the message says how many, and GEOS's
    reason."""
    square = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0){})"
    apart = "POLYGON ((20 0, 30 0, 30 10, 20 10, 20 0))"
    fields = (("name", ogr.OFTString),)
    make("a.gpkg", [(square.format(""), {"name": "a"}), (apart, {"name": "b"})], fields)
    # a hole of one vertex
    make("b.gpkg", [(square.format(""), {"name": "c"}), (square.format(", (3 3)"), {"name": "d"}),
                    ("POLYGON ((5 5, 15 5, 15 15, 5 15, 5 5))", {"name": "e"})], fields)
    for words, n_pairs in ((("overlaps",), 1), (("touches",), 0), (("equals",), 1), (("intersects",), 2),
                           (("dwithin", "-max_distance", 5), 3)):
        r = run("-op", *words, "-validate", "o.csv", "a.gpkg", "b.gpkg", "-overwrite", "-json_summary", "s.json")
        true("no difference; GEOS cannot decide 1 pair," in r.err and "exact arithmetic confirms ours (the first: "
             in r.err, str(r))
        true(f"2 rows, {n_pairs} pair" in r.err, str(r))
        same(summary("s.json")["rows_validated"], 2)
    # The backend geos itself leaves the pair out, and -invalid fix helps.
    words = ("-op", "overlaps", "-backend", "geos", "o.csv", "a.gpkg", "b.gpkg", "-overwrite", "-json_summary", "s.json")
    r = run(*words)
    same(summary("s.json")["undecided_pairs"], 1)
    true("GEOS cannot say whether 1 pair matches" in r.err and "-invalid fix" in r.err, str(r))
    run("-invalid", "fix", *words)
    same(summary("s.json")["undecided_pairs"], 0)


def check_benchmark_beside_a_liar():
    """Exact arithmetic tells which of the two is wrong."""
    w = layers()
    r = run("-op", "nearest", "-benchmark", *w, env=lying())
    same(r.rc in (0, 3), True, str(r))
    for line in r.out.splitlines():
        true(not ("cpu" in line and "differ" in line), line)


def check_benchmark_on_a_sample():
    w = layers()
    r = run("-op", "nearest", "-benchmark", "-benchmark_seconds", "0.000001", *w,
            "-benchmark_csv", "b.csv")
    same(r.rc, 0, str(r))
    with open("b.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        n_run = int(row["rows_run"])
        true(0 < n_run <= 200, row["method"])
        same(row["extrapolated_s"] != "", n_run < 200, row["method"])
    if any(int(row["rows_run"]) < 200 for row in rows):
        true("sample" in r.out, r.out)


if __name__ == "__main__":
    main(globals())
