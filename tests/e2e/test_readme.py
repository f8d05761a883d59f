"""The shell commands in README.md and the pages run: those in tables, and each line of
shell blocks.  A line that is not run has its reason in NOT_RUN, and is counted. Any
other line that fails is an error.  tests/python/test_pages.py runs the examples in
Python, tests/install the programs in C."""

import glob
import re
import shlex
import shutil

from e2e import *

TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
PAGES = ("README.md", "CONTRIBUTING.md", "BENCHMARKS.md", "driver/qgis/README.md", "driver/python/README.md",
         *sorted(os.path.relpath(p, TOP) for p in glob.glob(f"{TOP}/driver/docs/**/*.md", recursive=True)))
FIELDS = (("name", ogr.OFTString), ("fare", ogr.OFTReal), ("use_code", ogr.OFTInteger),
          ("reach", ogr.OFTInteger), ("people", ogr.OFTInteger), ("lot_id", ogr.OFTInteger), ("vehicle", ogr.OFTInteger),
          ("seen", ogr.OFTDateTime), ("opened", ogr.OFTDateTime), ("closed", ogr.OFTDateTime),
          ("direction", ogr.OFTReal))

# Sections with tables whose commands run on small layers. None means the whole
# page.
TABLES = {
    "README.md": ["Ten joins"],
    "driver/docs/joins.md": ["By place", "By distance", "By text", "By vectors", "With any of them",
                             "One row per feature", "Which rows are kept, and what is written",
                             "Before, during, after"],
    "driver/docs/conflation.md": None,
    "driver/docs/coming_from.md": ["The command"],
}

# Beginnings of commands that continue in the text around them.
UNFINISHED = ("-join_max_distance_field", "-op dwithin", "-pick", "-agg", "-tokens words -measure overlap")

# Beginnings of lines in shell blocks that are not run here, and the reasons.
NOT_RUN = {
    r"(cmake|sudo|pip|cd|git) ": "builds or installs: tests/install, tests/wheel.sh",
    r"samples/demo.sh|tests/run.sh|\.ci/|tests/\w+\.sh|ctest|OGRJOIN_\w+=": "builds or tests: .ci/run, tests/samples",
    r"tests/bench/|build/.*/oj_bench|oj_bench": "measures: the tests bench_*, against_itself",
    r"qgis_process|export QT_QPA|samples/qgis_map.py": "needs QGIS: test_qgis.py, test_qgis_live.py",
    r"python -c |spark-submit ": "needs Spark: tests/python/test_spark.py",
    r"queue-client |ogrjoin .*/vsistdin/ .*\|$": "needs a message queue: test_events.py reads stdin and writes stdout",
    r"clang-format|sphinx-build": "needs tools: .ci/check_format, tests/python/test_pages.py",
}


def page(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def sections(path, headings):
    """Returns these sections of a page. With None, returns the whole page."""
    if headings is None:
        return page(path)
    found = [s for s in re.split(r"^## ", page(path), flags=re.M) if s.split("\n", 1)[0] in headings]
    same(len(found), len(headings), f"headings of {path}: {headings}")
    return "\n".join(found)


def layer_file(path, shapes, srs="EPSG:2263"):
    make(path, [(shape, {"name": f"n{i}", "fare": i * 1.5, "use_code": i % 5, "reach": 30,
                         "people": i, "lot_id": i, "vehicle": i % 3, "seen": f"2024/03/01 12:{i:02d}:00",
                         "direction": i * 9.5, "opened": "2024/02/01", "closed": f"2024/03/{i % 28 + 1:02d}"}) for i, shape in enumerate(shapes)],
         fields=FIELDS, srs=srs)


def layers():
    lots = random_polygons(20)
    layer_file("lots.gpkg", lots)
    layer_file("pickups.gpkg", random_points(40))
    layer_file("zones.gpkg", random_polygons(20, seed=5))
    layer_file("roads.gpkg", [f"LINESTRING M ({x} 200000 {i}, {x} 201000 {i + 9})" for i, x in enumerate(range(980000, 980500, 50))])
    with open("stats.csv", "w", encoding="utf-8") as file:
        file.write("name,jobs\n" "n1,10\n" "n2,20\n")
    for path, like in (("input.gpkg", "zones.gpkg"), ("join.gpkg", "lots.gpkg"),
                       ("places_a.gpkg", "pickups.gpkg"), ("places_b.gpkg", "pickups.gpkg"),
                       ("reports.gpkg", "pickups.gpkg"), ("crashes.gpkg", "pickups.gpkg"), ("fences.gpkg", "zones.gpkg"),
                       ("streets.gpkg", "lots.gpkg")):
        shutil.copy(like, path)


def runs(words):
    """Runs the words of a table as they are. Options that need a distance are run with
    -op nearest."""
    tried = []
    for more in ([], ["-op", "nearest"]):
        for name in ("out.gpkg", "near.ogrjoin"):
            if os.path.exists(name):
                os.remove(name)
        tried.append(run(*more, *words))
        if tried[-1].rc == 0:
            true("ERROR" not in tried[-1].err, str(tried[-1]))
            return
    raise AssertionError(str(tried[0]))


def run_tables(path, headings):
    n = 0
    for line in sections(path, headings).splitlines():
        if not line.startswith("|"):
            continue
        for code in re.findall(r"`([^`]+)`", line.replace("\\\\|", "|")):
            words = shlex.split(code) if code.startswith(("ogrjoin ", "-")) else code.split()
            if code == "ogrjoin" or words[0] == "ogrjoin":
                words = words[1:]
            elif not code.startswith("-"):
                continue
            if "..." in code or code in UNFINISHED:
                continue
            if not any(".gpkg" in word for word in words):
                sides = ["input.gpkg", "join.gpkg"]
                if "sphere" in words or "ellipsoid" in words:
                    words += ["-t_srs", "EPSG:4326"]
                    sides[0] = "pickups.gpkg"
                if "-along" in words:
                    sides[1] = "roads.gpkg"
                if "-unordered_pairs" in words:
                    sides[1] = sides[0]
                words += ["out.gpkg", *sides]
            runs(words)
            n += 1
    print(f"{path}: {n} commands of tables run")
    return n


def check_tables():
    layers()
    n = {path: run_tables(path, headings) for path, headings in TABLES.items()}
    true(n["README.md"] >= 10, "the ten joins of README.md were found")
    true(n["driver/docs/joins.md"] > 50, "the joins of joins.md were found")
    true(min(n.values()) >= 3, f"commands were found: {n}")


def blocks(path):
    """Yields the shell blocks of a page, without their indentation."""
    for indent, block in re.findall(r"^( *)```sh\n(.*?)^ *```", page(path), flags=re.M | re.S):
        yield re.sub(f"^{indent}", "", block, flags=re.M)


def run_gdal(words):
    """Runs a command of GDAL that needs the plugin. Returns 0 if the plugin is not
    built."""
    if not os.environ.get("OGRJOIN_PLUGIN"):
        return 0
    plugins = os.path.dirname(os.environ["OGRJOIN_PLUGIN"])
    done = subprocess.run(words, capture_output=True, timeout=HANG_S, check=False,
                          env=dict(os.environ, GDAL_DRIVER_PATH=plugins))
    text = (done.stdout + done.stderr).decode()
    true(done.returncode == 0 and not re.search("^ERROR", text, flags=re.M), f"{words}: {text}")
    return 1


def check_blocks():
    layers()
    n, not_run = 0, {}
    for path in PAGES:
        for block in blocks(path):
            if "make_city" in block:
                continue  # check_first_join() runs this block
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if not words:
                    continue
                why = next((why for what, why in NOT_RUN.items() if re.match(what, line)), None)
                if words[0] == "ogrjoin" and why is None:
                    runs(words[1:])
                    n += 1
                elif words[0] in ("ogrinfo", "ogr2ogr"):
                    n += run_gdal(words)
                else:
                    true(why is not None, f"{path}: neither run nor excused: {line}")
                    not_run[why] = not_run.get(why, 0) + 1
    print(f"{n} lines of blocks run")
    for why, count in not_run.items():
        print(f"{count} lines not run: {why}")
    true(n >= 3, f"{n} commands were found")


def check_first_join():
    """Runs the block of README.md that makes the city. It must give the rows and the
    summary line that README.md shows."""
    if not os.environ.get("MAKE_CITY"):
        raise Skip("make_city is not built")
    block = next(b for b in blocks("README.md") if "make_city" in b)
    folders = [os.path.dirname(os.environ[name]) for name in ("MAKE_CITY",)]
    os.symlink(shutil.which(OGRJOIN), "ogrjoin")
    env = dict(os.environ, PATH=os.pathsep.join([os.getcwd(), *folders, os.environ["PATH"]]))
    done = subprocess.run(["bash", "-e", "-c", block], env=env, capture_output=True, timeout=HANG_S, check=False)
    same(done.returncode, 0, done.stderr.decode())
    shown = sections("README.md", ["Your first join"])
    line = re.search(r"^20000 rows in: .*? rows written", shown, re.M)[0]
    true(line in done.stderr.decode(), f"{line}\n  {done.stderr.decode()}")
    rows = {values["pickup_id"]: values for _, _, values in Layer("city/out.gpkg").rows}
    table = [[cell.strip(" `") for cell in row.strip("|").split("|")]
             for row in shown.splitlines() if row.startswith("|") and not row.startswith("|--")]
    for row in table[1:]:
        values = rows[int(row[0])]
        same([str(values[name]) for name in table[0]], ["None" if cell == "NULL" else cell for cell in row])


def check_links():
    """The pages link only to files and headings that exist."""
    n = 0
    for path in (*PAGES, "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page(path), flags=re.S)):
            if re.match(r"https?:", target):
                continue
            name, _, heading = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            true(os.path.exists(os.path.join(TOP, file)), f"{path} names {target}, which is not there")
            if heading:
                titles = re.findall(r"^#+ (.*)$", page(file), re.M)
                slugs = [re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles]
                true(heading in slugs, f"{path} names {target}: {slugs}")
            n += 1
    true(n > 50, f"{n} links were found")


def check_figures():
    """The times in README.md are in BENCHMARKS.md, too."""
    number = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
    shown = set(re.findall(number, sections("README.md", ["How fast"])))
    true(len(shown) > 10, f"figures were found: {shown}")
    same(sorted(shown - set(re.findall(number, page("BENCHMARKS.md")))), [], "figures that BENCHMARKS.md lacks")


def check_sizes():
    """Pages do not exceed their limits of lines and columns."""
    for path, most in (("README.md", 150), ("BENCHMARKS.md", 120), ("CONTRIBUTING.md", 120)):
        lines = page(path).splitlines()
        true(len(lines) <= most, f"{path} has {len(lines)} lines, {most} at most")
        wide = [line for line in lines if len(line) > 100 and (path == "README.md" or not line.startswith("|"))]
        same(wide, [], f"lines of {path} above 100 columns")


if __name__ == "__main__":
    main(globals())
