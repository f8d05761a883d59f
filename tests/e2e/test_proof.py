"""-validate and -benchmark report no difference if there is none.  They find one if
GEOS returns wrong distances."""

import csv

from e2e import *


def layers():
    points_file(n=200)
    lots_file(n=30)
    return ["points.gpkg", "lots.gpkg"]


def check_report_without_difference():
    w = layers()
    for name in ("r.gpkg", "r.csv"):
        join("-validate", "-validate_report", name, f"o_{name}.gpkg", *w)
        got = Layer(name)
        same(got.rows, [], name)
        for field in ("input_fid", "kind", "join_fid", "distance", "ref_fid", "ref_dist"):
            true(field in got.fields, f"{field} of {name}: {list(got.fields)}")


def check_report_format_without_such_fields():
    fails("-validate", "-validate_report", "r.gpx", "o.gpkg", *layers(),
          message=("-validate_report: cannot create the field 'input_fid' in the format GPX",
                "write the report as CSV or GPKG", "GPX_USE_EXTENSIONS"))


def lying():
    """Returns an environment in which GEOS returns wrong distances."""
    library = os.environ.get("LYING_GEOS", "")
    if not os.path.exists(library):
        raise Skip("no LYING_GEOS, which the build makes of lying_geos.c")
    loaded = subprocess.run(["ldd", OGRJOIN], stdout=subprocess.PIPE, check=False)
    if b"libasan" in loaded.stdout:
        raise Skip("the sanitizers want to be loaded first")
    return {"LD_PRELOAD": library}


def check_a_difference_is_found():
    # A wrong GEOS is noticed if it is the backend of the join. If it is the
    # reference, exact arithmetic corrects it.
    liar = ("-backend", "geos", "-validate", "cpu")
    w = layers()
    env = lying()
    r = succeeds("-op", "nearest", "-validate", "right.gpkg", *w, env=env)
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
    # Quiet runs report the difference, too.
    r = run("-op", "nearest", "-q", *liar, "q.gpkg", *w, env=env)
    same(r.rc, 3, str(r))
    true("rows differ" in r.err, str(r))
    # -in_place ends with this exit code, too.
    r = run("-op", "nearest", "-in_place", *liar, *w, env=env)
    same(r.rc, 3, str(r))


def check_benchmark():
    w = layers()
    r = succeeds("-op", "nearest", "-benchmark", "-max_distance", 60, *w, "-benchmark_csv",
                 "b.csv")
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
    """Pairs that GEOS cannot decide are counted, with its reason. Each is decided by
    exact arithmetic, in tiles, too. Other pairs of their rows are compared as usual."""
    fields = (("name", ogr.OFTString),)
    shapes = ["POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))",
              "POLYGON ((2 3, 2 1, 4 1, 4 3, 1 3, 4 3, 2 3))",
              "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 0, 4 4, 0 4, 0 0))",
              "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 6 1, 6 2, 1 2, 1 1))",
              "POLYGON ((1 1, 5 1, 5 5, 1 5, 1 1))"]
    for name in ("a.gpkg", "b.gpkg"):
        make(name, [(shape, {"name": str(i)}) for i, shape in enumerate(shapes)], fields)
    for op in ("overlaps", "touches", "within", "equals"):
        found = []
        for words in ([], ["-memory", "1"]):
            r = run("-op", op, "-validate", *words, "o.csv", "a.gpkg", "b.gpkg", "-overwrite",
                    "-json_summary", "s.json")
            s = summary("s.json")
            n = s["undecided_pairs_proved"]
            same((r.rc, s["rows_validated"], s["rows_left_out_of_validation"],
                  s["pairs_left_out_of_validation"]), (0, 5, 0, 0), str(r))
            true(0 < n < 25, f"{op}: {n}")
            true(f"no difference; GEOS cannot decide {n} pair" in r.err and
                 "exact arithmetic confirms the answer of the join (the first: TopologyException" in r.err, str(r))
            found.append((n, s["pairs"], s["pairs_validated"], s["rows_proved"]))
        same(found[0], found[1], op)
    # The backend geos leaves such pairs out, in tiles, too. The message
    # suggests -invalid fix.
    for words in ([], ["-memory", "1"]):
        words = ["-op", "overlaps", "-backend", "geos", *words, "o.csv", "a.gpkg", "b.gpkg", "-overwrite",
                 "-json_summary", "s.json"]
        r = run(*words)
        n = summary("s.json")["undecided_pairs"]
        true(n > 0 and f"GEOS cannot decide whether {n} pair" in r.err and "-invalid fix" in r.err, str(r))
        run("-invalid", "fix", *words)
        same(summary("s.json")["undecided_pairs"], 0)


def check_near_misses():
    """Shapes are 7e-18 apart, and GEOS takes them to intersect. This is no difference,
    but is counted as rounding."""
    make("a.gpkg", [("POLYGON ((1.8 1.9000000000000001, 1.1 2, 0.1 5.300000000000001, 1.8 1.9000000000000001))", {"name": "a"})])
    make("b.gpkg", [("LINESTRING (1.1 3.3000000000000003, 3.2 2.4000000000000004, 1.2000000000000002 3.1, 2.6 2.6, "
                     "3.4000000000000004 3.5)", {"name": "b"})])
    for a, b in (("a.gpkg", "b.gpkg"), ("b.gpkg", "a.gpkg")):
        for op in (("nearest",), ("dwithin", "-max_distance", "0.5"), ("dwithin", "-max_distance", "1e-17")):
            for reference in ("geos", "geos_sorted"):
                r = run("-op", *op, "-backend", "cpu", "-validate", reference, "-validate_report", "r.csv", "o.csv",
                        a, b, "-overwrite", "-json_summary", "s.json")
                s = summary("s.json")
                same((r.rc, s["rows_different"], s["rows_within_rounding"], s["rows_proved"]), (0, 0, 1, 0), str(r))
                true("in 1 row distances differ from the reference's by rounding" in r.err, str(r))
                same(Layer("r.csv").column("kind"), ["rounding"], str(r))
        r = run("-op", "intersects", "-backend", "cpu", "-validate", "-how", "inner", "o.csv", a, b, "-overwrite")
        same((r.rc, Layer("o.csv").rows), (0, []), str(r))


def check_backends_that_round():
    """The backends based on GEOS report that their answers are rounded. Our own do
    not."""
    w = layers()
    for backend in ("geos", "geos_sorted", "spatialindex", "cpu", "quadrant", "auto"):
        r = run("-op", "nearest", "-backend", backend, "o.gpkg", *w, "-overwrite")
        if backend == "spatialindex" and "no such backend" in r.err:
            continue
        same(r.rc, 0, str(r))
        lines = [line for line in r.err.splitlines() if "GEOS's rounding errors" in line]
        same(len(lines), int(backend in ("geos", "geos_sorted", "spatialindex")), f"{backend}: {r}")
        true(not lines or lines[0].startswith(f"backend {backend}: "), str(r))


def check_shapes_of_too_few_vertices():
    """A ring of two vertices and a line of one, which GEOS does not accept."""
    fields = (("name", ogr.OFTString),)
    shapes = ["POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (3 3))", "LINESTRING (5 5)",
              "MULTILINESTRING ((12 0), (0 12, 12 12))", "POLYGON ((3 3, 8 8))"]
    for name in ("a.gpkg", "b.gpkg"):
        make(name, [(shape, {"name": str(i)}) for i, shape in enumerate(shapes)], fields)
    for words in (["-op", "nearest", "-k", "2"], ["-op", "dwithin", "-max_distance", "4"],
                  ["-op", "intersects"], ["-op", "within"], ["-op", "equals"]):
        r = run(*words, "-validate", "o.csv", "a.gpkg", "b.gpkg", "-overwrite", "-json_summary", "s.json")
        s = summary("s.json")
        same((r.rc, s["rows_validated"], s["rows_left_out_of_validation"],
              s["pairs_left_out_of_validation"]), (0, 4, 0, 0), str(r))


def check_benchmark_beside_a_liar():
    """Exact arithmetic decides which of two backends is wrong."""
    w = layers()
    r = run("-op", "nearest", "-benchmark", *w, env=lying())
    same(r.rc in (0, 3), True, str(r))
    for line in r.out.splitlines():
        true(not ("cpu" in line and "differ" in line), line)


def check_benchmark_on_a_sample():
    w = layers()
    r = succeeds("-op", "nearest", "-benchmark", "-benchmark_seconds", "0.000001", *w,
                 "-benchmark_csv", "b.csv")
    with open("b.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        n_run = int(row["rows_run"])
        true(0 < n_run <= 200, row["method"])
        same(row["extrapolated_s"] != "", n_run < 200, row["method"])
    if any(int(row["rows_run"]) < 200 for row in rows):
        true("sample" in r.out, r.out)


TREES = ["gpics_quadtree_single", "gpics_quadtree", "gpics_quadtree", "gpics_kdtree_single", "gpics_kdtree",
         "gpics_kdtree", "live_quadtree", "live_quadtree", "live_kdtree", "live_kdtree"]


def points_benchmark(*words, rc=0, env=None):
    """Returns the rows of the table of -benchmark from its CSV file, and the run."""
    r = run("-benchmark", *words, "-benchmark_csv", "b.csv", "-q", env=env)
    same(r.rc, rc, str(r))
    with open("b.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file)), r


def check_benchmark_of_points():
    """The join side is of points. Tests the trees of the paper, the kept index, and
    points that move."""
    points_file(n=300)
    points_file("equal.gpkg", n=300)
    points_file("others.gpkg", n=200)
    lots_file(n=30)
    for words in (("-op", "nearest", "-k", 3, "others.gpkg", "points.gpkg"),
                  ("-op", "dwithin", "-max_distance", 20, "others.gpkg", "points.gpkg"),
                  ("-op", "equals", "equal.gpkg", "points.gpkg"),
                  ("-op", "bbox", "lots.gpkg", "points.gpkg")):
        rows, r = points_benchmark(*words)
        got = [row["backend"] for row in rows]
        same([b for b in got if b in TREES], TREES, str(r))
        for name in ("spatialindex", "geos_sorted", "cpu"):
            true(name in got, f"{name} in {got}")
        pairs = {row["pairs"] for row in rows}
        same(len(pairs), 1, f"pairs of {words}: {pairs}")
        true(int(pairs.pop()) >= 20, f"pairs of {words}")
        for row in rows:
            can_move = row["backend"] in (*TREES, "spatialindex", "spatialindex_collective")
            same(int(row["rows_different"]), 0, row["method"])
            for key in ("move_1_percent_s", "move_10_percent_s"):
                same(row[key] != "", can_move, f"{key} of {row['method']}")
            same(row["rows_different_after_moves"], "0" if can_move else "", row["method"])
        true("move 10 %" in r.out, r.out)
        same(r.out.count("equal"), len(rows), r.out)
    # The join side is of lots. The table then has no trees of points, and no
    # columns about moves.
    rows, r = points_benchmark("-op", "nearest", "points.gpkg", "lots.gpkg")
    same([row["backend"] for row in rows if row["backend"] in TREES], [])
    same({row["move_1_percent_s"] + row["rows_different_after_moves"] for row in rows}, {""})
    true("move" not in r.out, r.out)


def check_benchmark_of_points_beside_a_liar():
    """Answers after points have moved are compared, too. Exact arithmetic decides which
    backend is wrong, and confirms the trees."""
    points_file(n=300)
    points_file("others.gpkg", n=200)
    rows, r = points_benchmark("-op", "dwithin", "-max_distance", 60, "others.gpkg", "points.gpkg", env=lying())
    for row in rows:
        if row["backend"] in ("spatialindex", *TREES):
            line = next(s for s in r.out.splitlines() if s.startswith(row["method"]))
            same("rows apart after the moves" in line, row["backend"] == "spatialindex", line)


if __name__ == "__main__":
    main(globals())
