"""What README.md shows runs: the commands of its tables, and those of its blocks
that read or write layers."""

import re
import shlex
import shutil

from e2e import *

README = os.path.join(HERE, "..", "..", "README.md")
FIELDS = (("name", ogr.OFTString), ("fare", ogr.OFTReal), ("use_code", ogr.OFTInteger),
          ("reach", ogr.OFTInteger), ("people", ogr.OFTInteger), ("lot_id", ogr.OFTInteger))


# Which go on in the words around them.
UNFINISHED = ("-join_max_distance_field", "-op dwithin", "-pick", "-agg")


def text_of(*headings):
    """The sections under these headings."""
    with open(README, encoding="utf-8") as file:
        sections = re.split(r"^## ", file.read(), flags=re.M)
    found = [s for s in sections if s.split("\n", 1)[0] in headings]
    same(len(found), len(headings), f"headings of README.md: {headings}")
    return "\n".join(found)


def layer_file(path, shapes, srs="EPSG:2263"):
    make(path, [(shape, {"name": f"n{i}", "fare": i * 1.5, "use_code": i % 5, "reach": 30,
                         "people": i, "lot_id": i}) for i, shape in enumerate(shapes)],
         fields=FIELDS, srs=srs)


def layers():
    lots = random_polygons(20)
    layer_file("lots.gpkg", lots)
    layer_file("pickups.gpkg", random_points(40))
    layer_file("zones.gpkg", random_polygons(20, seed=5))
    for path, like in (("input.gpkg", "zones.gpkg"), ("join.gpkg", "lots.gpkg"),
                       ("places_a.gpkg", "pickups.gpkg"), ("places_b.gpkg", "pickups.gpkg")):
        shutil.copy(like, path)


def runs(words):
    """As it stands; or, of options that go with a distance, of -op nearest."""
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


def check_tables():
    layers()
    n = 0
    for line in text_of("Find your join").splitlines():
        if not line.startswith("|"):
            continue
        for code in re.findall(r"`([^`]+)`", line.replace("\\\\|", "|")):
            words = shlex.split(code)
            if words[0] == "ogrjoin":
                words = words[1:]
            elif not code.startswith("-"):
                continue
            if "..." in code or code in UNFINISHED:
                continue
            if not any(".gpkg" in word for word in words):
                sides = ["input.gpkg", "join.gpkg"]
                if "sphere" in words:
                    words += ["-t_srs", "EPSG:4326"]
                    sides[0] = "pickups.gpkg"
                if "-unordered_pairs" in words:
                    sides[1] = sides[0]
                words += ["out.gpkg", *sides]
            runs(words)
            n += 1
    true(n > 55, f"{n} commands were found")


def check_blocks():
    layers()
    n = 0
    for block in re.findall(r"```sh\n(.*?)```", text_of("A first join", "Two maps of the same places",
                                                            "A join is a dataset"), flags=re.S):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[0] == "ogrjoin":
                runs(words[1:])
                n += 1
            elif words[0] in ("ogrinfo", "ogr2ogr") and os.environ.get("OGRJOIN_PLUGIN"):
                plugins = os.path.dirname(os.environ["OGRJOIN_PLUGIN"])
                done = subprocess.run(words, capture_output=True, timeout=HANG_S, check=False,
                                      env=dict(os.environ, GDAL_DRIVER_PATH=plugins))
                said = (done.stdout + done.stderr).decode()
                true(done.returncode == 0 and not re.search("^ERROR", said, flags=re.M),
                     f"{line}: {said}")
                n += 1
    true(n >= 3, f"{n} commands were found")


if __name__ == "__main__":
    main(globals())
