"""Joins as layers of QGIS: "Save join as live layer", and maps of JOIN layers drawn by
QGIS.  Needs GDAL's driver JOIN: ogr_JOIN.so in $OGRJOIN_PLUGINS."""

from e2e import *
from headless_qgis import *

PICKUPS = 2000


def plugins():
    folder = os.environ.get("OGRJOIN_PLUGINS", "")
    if not os.path.exists(os.path.join(folder, "ogr_JOIN.so")):
        raise Skip("no ogr_JOIN.so in OGRJOIN_PLUGINS")
    return {"GDAL_DRIVER_PATH": folder}


def check_without_the_driver():
    """Without the driver, an error is shown before any file is written."""
    if "-write_spec" not in run("--help").out:
        raise Skip("the command writes no .ogrjoin files")
    city(PICKUPS)
    jobs = [("ogrjoin:savelivelayer", {
        "INPUT": "city/pickups.gpkg", "JOIN": "city/lots.gpkg", "LOAD": load,
        "OUTPUT": path}) for load, path in ((True, "a.ogrjoin"), (False, "b.ogrjoin"))]
    loads, writes = session(jobs, {"GDAL_DRIVER_PATH": "disable"})
    true("no driver JOIN" in loads["error"], str(loads))
    true(not os.path.exists("a.ogrjoin"), "nothing is written")
    true(writes["ok"] and os.path.exists("b.ogrjoin"), str(writes))


def check_live_layers():
    """The saved file opens as a layer with the rows of the command."""
    env = plugins()
    city(PICKUPS)
    p, lots, zones = "city/pickups.gpkg", "city/lots.gpkg", "city/zones.gpkg"
    cases = [
        ({"INPUT": p, "JOIN": lots, "MAX_DISTANCE": 100},
         ["-op", "nearest", "-max_distance", 100, p, lots]),
        ({"INPUT": {"layer": p, "subset": "fare > 10"}, "JOIN": zones, "OPERATION": 7,
          "JOIN_FIELDS": ["name"], "DISCARD_NONMATCHING": True},
         ["-op", "within", "-where", "fare > 10", "-join_select", "name", "-how",
          "inner", p, zones]),
        ({"INPUT": zones, "JOIN": p, "OPERATION": 3,
          "AGGREGATES": "count as n, mean(fare) as fare"},
         ["-op", "contains", "-agg", "count as n, mean(fare) as fare", zones, p]),
        ({"INPUT": p, "JOIN": lots, "OPERATION": 1, "MAX_DISTANCE": 60, "METHOD": 3},
         ["-op", "dwithin", "-max_distance", 60, "-pick", "nearest", p, lots]),
        # optional parameters of the command's table, if the join uses them
        ({"INPUT": p, "JOIN": lots, "MIN_DISTANCE": "5", "TIES": "all",
          "DISTANCE_TO": "boundary", "RELATE": "T********"},
         ["-op", "nearest", "-min_distance", 5, "-ties", "all", "-distance_to",
          "boundary", p, lots]),
        ({"INPUT": lots, "JOIN": zones, "OPERATION": 14, "RELATE": "F***1****"},
         ["-relate", "F***1****", lots, zones]),
    ]
    jobs = [("ogrjoin:savelivelayer", {**words, "OUTPUT": f"live{i}.ogrjoin"})
            for i, (words, _) in enumerate(cases)]
    for i, answer in enumerate(results(jobs, env)):
        words = cases[i][1]
        same(run(*words[:-2], f"c{i}.gpkg", *words[-2:]).rc, 0)
        expected = Layer(f"c{i}.gpkg")
        (loaded,) = answer["loaded"].values()
        same((loaded["valid"], loaded["rows"]), (True, len(expected.rows)), str(answer))
        r = subprocess.run(["ogr2ogr", f"l{i}.gpkg", f"live{i}.ogrjoin"],
                           env=environment(env), capture_output=True, text=True,
                           check=False)
        same(r.returncode, 0, r.stderr)
        got = Layer(f"l{i}.gpkg")
        same(list(got.fields), list(expected.fields))
        same([row[1:] for row in got.rows], [row[1:] for row in expected.rows])
    with open("live0.ogrjoin", encoding="utf-8") as file:
        spec = json.load(file)
    true(os.getcwd() not in spec["command_line"], f"relative paths: {spec}")


def check_live_layers_are_layers():
    """Live layers as inputs of QGIS's algorithms and of ours, from a file or by name.
    They contain the current rows of their two layers."""
    env = plugins()
    city(PICKUPS)
    p, lots, zones = "city/pickups.gpkg", "city/lots.gpkg", "city/zones.gpkg"
    words = f"-op nearest -max_distance 100 {p} {lots}"
    same(run("-write_spec", "live.ogrjoin", *words.split()).rc, 0)
    same(run(*words.split()[:-2], "c.gpkg", p, lots).rc, 0)
    near_ones = [v for _, _, v in Layer("c.gpkg").rows
                 if v["join_distance"] is not None and v["join_distance"] < 20]
    jobs = []
    for i, layer in enumerate(("live.ogrjoin", {"layer": "live.ogrjoin"},
                               {"layer": f"JOIN:{words}"})):
        jobs.append(("native:extractbyexpression", {
            "INPUT": layer, "EXPRESSION": "join_distance < 20",
            "OUTPUT": f"q{i}.gpkg"}))
        if i < 2:
            layer = {"layer": "live.ogrjoin"}
        jobs.append(("ogrjoin:joinbylocation", {
            "INPUT": {**layer, "subset": "join_distance < 20"}, "JOIN": zones,
            "OUTPUT": f"o{i}.gpkg"}))
    results(jobs, env)
    for i in range(3):
        same([v for _, _, v in Layer(f"q{i}.gpkg").rows], near_ones)
        found = Layer(f"o{i}.gpkg")
        same(found.column("pickup_id"), [v["pickup_id"] for v in near_ones])
        true("zone_id" in found.fields and "lot_id" in found.fields, str(found.fields))
    dataset = gdal.OpenEx(p, gdal.OF_UPDATE)
    dataset.ExecuteSQL("DELETE FROM pickups WHERE pickup_id > 5")
    dataset = None
    results([("native:extractbyexpression", {
        "INPUT": "live.ogrjoin", "EXPRESSION": "1 = 1", "OUTPUT": "later.gpkg"})], env)
    same(Layer("later.gpkg").column("pickup_id"), [1, 2, 3, 4, 5])


def check_what_cannot_be_live():
    """Layers that QGIS copies for the join cannot be live, because the copies are
    removed when QGIS ends."""
    city(PICKUPS)
    p, lots = "city/pickups.gpkg", "city/lots.gpkg"
    states = [
        ({"layer": p, "select": "fare > 10", "selected": True}, "selected"),
        ({"layer": p, "edit": "fare > 10"}, "edits"),
        ({"layer": "point?crs=epsg:2263", "provider": "memory"}, "GDAL"),
    ]
    jobs = [("ogrjoin:savelivelayer", {"INPUT": layer, "JOIN": lots, "LOAD": False,
                                       "OUTPUT": "l.ogrjoin"}) for layer, _ in states]
    for (_, why), answer in zip(states, session(jobs)):
        true("reads files" in answer["error"] and why in answer["error"], str(answer))
    true(not os.path.exists("l.ogrjoin"), "nothing is written")


def colours(path):
    """Returns the colours of a picture that more than a few pixels have."""
    picture = gdal.Open(path)
    bands = [picture.GetRasterBand(i).ReadRaster() for i in (1, 2, 3)]
    counts = {}
    for pixel in zip(*bands):
        counts[pixel] = counts.get(pixel, 0) + 1
    return {colour for colour, n in counts.items() if n > 30}


def check_maps():
    """QGIS colours a JOIN layer by a joined attribute."""
    env = plugins()
    city(PICKUPS)
    script = os.path.join(HERE, "..", "..", "samples", "qgis_map.py")
    succeeds("-op", "nearest", "-max_distance", "100", "-write_spec", "live.ogrjoin",
             "city/pickups.gpkg", "city/lots.gpkg")
    for name in ("live.ogrjoin", "JOIN:-op nearest -max_distance 100 "
                                 "city/pickups.gpkg city/lots.gpkg"):
        r = subprocess.run(
            [sys.executable, script, "map.png", name, "land_use", "city/land.gpkg"],
            env=environment(env), capture_output=True, text=True, check=False)
        same(r.returncode, 0, r.stdout + r.stderr)
        true("2000 rows by land_use" in r.stdout, r.stdout)
        found = colours("map.png")
        drawn = sum(tuple(bytes.fromhex(c)) in found for c in
                    ("e69f00", "56b4e9", "009e73", "f0e442", "0072b2", "d55e00"))
        true(drawn >= 3, f"{drawn} of the colours are there: {found}")
        if os.environ.get("OGRJOIN_KEEP_MAP"):
            shutil.copy("map.png", os.environ["OGRJOIN_KEEP_MAP"])
        os.remove("map.png")


if __name__ == "__main__":
    main(globals())
