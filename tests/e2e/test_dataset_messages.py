"""Messages of a join as a dataset: errors in the middle of reading, warnings, and
descriptions of its sources.  Nothing is printed on stdout or stderr."""

import re

from dataset import *

try:
    import numpy
except ImportError:
    numpy = None


sides = inputs_and_zones


def check_warnings_about_the_sides():
    """The command's warnings about its sides: a join layer without features, and text
    that is not UTF-8."""
    points = make("points.gpkg", [("POINT (1 1)", {"name": "a"})], kind=ogr.wkbPoint)
    none = make("none.gpkg", [], kind=ogr.wkbPoint)
    with open("l1.csv", "wb") as file:
        file.write(b"name,WKT\nCaf\xe9,POINT (1 1)\n")
    for pair, message in (((points, none), "join layer 'none' has no features"),
                       ((points, "l1.csv"), "join layer 'l1': 1 text value is not UTF-8"),
                       (("l1.csv", points), "input layer 'l1': 1 text value is not UTF-8")):
        with Messages() as messages:
            dataset = opened("-op", "intersects", "-crs", "ignore", *pair)
            layer = dataset.GetLayer(0)
            while layer.GetNextFeature() is not None:
                pass
            same(len([t for kind, t in messages.all if kind == gdal.CE_Warning and message in t]), 1, f"{message}: {messages.all}")
            layer = dataset = None


def check_options_without_meaning():
    """The options that the man page lists are errors, and no others are for this reason."""
    template = os.path.join(HERE, "..", "..", "driver", "ogrjoin.1.in")
    page = run("--man", template).out
    listed = re.search(r"are an error:\n(.*?);", page, re.S).group(1).replace("\\-", "-")
    listed = set(re.findall(r"-\w+", listed))
    true({"-write_spec", "-events", "-flush", "-validate_report", "-nlt"} <= listed, str(listed))
    options = set(re.findall(r"^\\fB\\-(\w+)\\fR", page, re.M))
    true(len(options) > 100, str(options))
    for option in sorted(options):
        with Messages() as messages:
            gdal.OpenEx(f"JOIN:-{option} a.gpkg b.gpkg", gdal.OF_VECTOR)
        is_refused = "has no meaning in a spec file or a dataset" in str(messages.errors)
        same(is_refused, f"-{option}" in listed - {"-nlt"}, f"-{option}: {messages.all}")


def check_options_of_gdal():
    for word in ("--config", "--debug", "-config", "--formats"):
        with Messages() as messages:
            gdal.OpenEx(f"JOIN:{word} A B a.gpkg b.gpkg", gdal.OF_VECTOR)
        text = str(messages.errors)
        true(f"{word} is an option of the program" in text and "before JOIN:" in text, text)


# --- errors in the middle ------------------------------------------------------------


def read_with_errors(name):
    """Returns (number of rows read, errors)."""
    with Messages() as messages:
        dataset = gdal.OpenEx(name, gdal.OF_VECTOR)
        true(dataset is not None, f"opens: {name}: {messages.all}")
        layer = dataset.GetLayer(0)
        n = 0
        while layer.GetNextFeature() is not None:
            n += 1
        after = layer.GetNextFeature()
        same(after, None, "no rows after an error")
        errors = messages.errors
        layer = dataset = None
    return n, errors


def check_too_many_pairs():
    """ogr2ogr fails with the error of the join. test_join_layer reads such a dataset
    row by row."""
    pair = sides()
    r = subprocess.run(["ogr2ogr", "o.gpkg", name_of("-op", "dwithin", "-max_distance", 200, "-max_pairs", 50,
                                                     *pair)], capture_output=True, check=False)
    true(r.returncode != 0 and b"max_pairs" in r.stderr, f"ogr2ogr fails: {r}")


def check_sums_that_do_not_fit():
    make("big.gpkg", [(p, {"big": 2**62}) for p in random_points(40, size=300.0)], (("big", ogr.OFTInteger64),),
         kind=ogr.wkbPoint)
    zones_file()
    n, errors = read_with_errors(name_of("-agg", "sum(big)", "zones.gpkg", "big.gpkg"))
    same(len(errors), 1, str(errors))
    with Messages() as messages:
        dataset = opened("-agg", "sum(big)", "zones.gpkg", "big.gpkg")
        layer = dataset.GetLayer(0)
        if numpy is not None and hasattr(layer, "GetArrowStreamAsNumPy"):
            try:
                list(layer.GetArrowStreamAsNumPy())
            except Exception as error:  # the bindings raise it
                messages.all.append((gdal.CE_Failure, str(error)))
            true(messages.errors, "the Arrow stream reports the error")


def check_broken_input():
    points_file("points.gpkg", n=3000)
    zones_file()
    size = os.path.getsize("points.gpkg")
    with open("points.gpkg", "r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * 8192)
    r = run("-op", "nearest", "o.gpkg", "points.gpkg", "zones.gpkg")
    n, errors = read_with_errors(name_of("-op", "nearest", "points.gpkg", "zones.gpkg"))
    if r.rc != 0:
        true(errors, f"an error is reported, as by the command: {r}; {n} rows")
    n, errors = read_with_errors(name_of("-op", "nearest", "zones.gpkg", "points.gpkg"))
    r = run("-op", "nearest", "o2.gpkg", "zones.gpkg", "points.gpkg")
    if r.rc != 0:
        true(errors and n == 0, f"an error is reported, as by the command: {r}; {n} rows")


def check_rows_that_cannot_be_reprojected():
    """Such a row is no error, wherever it is read: GDAL's bindings raise none."""
    make("at_pole.gpkg", [("POINT (5 95)", {"name": "pole"})], srs="EPSG:4326")
    make("near.gpkg", [("POINT (5 50)", {"name": "near"})], srs="EPSG:4326")
    for pair in (("near.gpkg", "at_pole.gpkg"), ("at_pole.gpkg", "near.gpkg")):
        for how in ("left", "right", "full"):
            words = ("-op", "intersects", "-how", how, "-t_srs", "EPSG:3857", *pair)
            rows = compare(words).rows
            r = in_python(f"d = gdal.OpenEx({name_of(*words)!r}, gdal.OF_VECTOR); l = d.GetLayer(0)\n"
                          "rows = list(l); again = [l.GetFeature(f.GetFID()) for f in rows]\n"
                          "print(len(rows), len(again), l.GetFeatureCount())\n")
            same((r.out.split(), r.err), ([str(len(rows))] * 3, ""), str(r))


# --- messages ------------------------------------------------------------------------


def check_nothing_printed():
    pair = sides()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("z4326.gpkg", dataset, dstSRS="EPSG:4326", layerName="zones")
    dataset = None
    for words in (("-op", "nearest", *pair), ("-op", "intersects", "-how", "full", pair[0], "z4326.gpkg"),
                  ("-agg", "count", *pair), ("-op", "nearest", "zones.gpkg", "zones.gpkg")):
        r = in_python(f"d = gdal.OpenEx({name_of(*words)!r}, gdal.OF_VECTOR)\n"
                         "l = d.GetLayer(0)\nn = len(list(l)); l.GetFeatureCount(); l.GetExtent()\n")
        same((r.rc, r.out, r.err), (0, "", ""), str(r))
        # Notices are only printed with --debug.
        r = client("ogrinfo", "-q", "-al", "-so", name_of(*words))
        same(r.err, "", str(r))
    r = client("ogrinfo", "--debug", "on", "-al", name_of("-op", "nearest", pair[0], "z4326.gpkg"))
    true("OGRJOIN" in r.err and "reproject" in r.err, r.err[-500:])


def check_warnings_are_those_of_the_command():
    pair = sides()
    dataset = gdal.OpenEx("zones.gpkg", gdal.OF_VECTOR)
    gdal.VectorTranslate("none.gpkg", dataset, options=["-a_srs", "None", "-nln", "zones"])
    dataset = None
    r = run("-op", "nearest", "o.gpkg", pair[0], "none.gpkg")
    expected = [x.split(": ", 1)[1] for x in r.err.splitlines() if x.startswith("Warning")]
    true(len(expected) >= 1, str(r))
    with Messages() as messages:
        dataset = opened("-op", "nearest", pair[0], "none.gpkg")
        list(dataset.GetLayer(0))
        dataset = None
    same(messages.warnings, expected)
    same(messages.errors, [])


if __name__ == "__main__":
    main(globals())
