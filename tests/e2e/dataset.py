"""Functions for the tests of joins as datasets: the path of the plugin, names of such
datasets, and the comparison with the output of the command.

The plugin is $OGRJOIN_PLUGIN, the path of ogr_JOIN.so.  Without it nothing here can
be run.  GDAL looks for plugins when it registers its drivers, which is when Python
first imports it.  So GDAL_DRIVER_PATH is set before that, as a user would.
"""

import os
import shlex
import sys

PLUGIN = os.environ.get("OGRJOIN_PLUGIN", "")
if not PLUGIN:
    print("skipped: no plugin (OGRJOIN_PLUGIN)")
    sys.exit(77)
os.environ["GDAL_DRIVER_PATH"] = os.path.dirname(PLUGIN)

from row_layers import *  # noqa: E402


def name_of(*words):
    """Returns the dataset name of a join: the command's words without a destination."""
    return "JOIN:" + shlex.join(map(str, words))


def spec_file(path, *words, line=None, **more):
    """Writes a specification file with these words; returns its path."""
    content = {
        "type": "ogrjoin",
        "command_line": shlex.join(map(str, words)) if line is None else line,
        "relative_paths_relative_to_this_file": True,
    }
    content.update(more)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({k: v for k, v in content.items() if v is not None}, file)
    return path


# Joins of every kind, on the files that many_sides() makes.
JOINS = """
-op nearest points.gpkg zones.gpkg
-op nearest -max_distance 30 points.gpkg zones.gpkg
-op nearest -max_distance 30 -batch 16 points.fgb zones.fgb
-op nearest -max_distance 30 -how inner points.gpkg zones.gpkg
-op nearest -k 3 -max_distance 80 -batch 11 points.gpkg zones.gpkg
-op nearest -k 2 -pick max:v points.gpkg zones.gpkg
-op within -batch 10 points.gpkg zones.gpkg
-op within -how semi -batch 10 points.gpkg zones.gpkg
-op within -how anti points.fgb zones.gpkg
-op within -how right -batch 10 points.gpkg zones.gpkg
-op within -how full -batch 10 points.gpkg zones.gpkg
-op within -pick first points.geojson zones.gpkg
-op contains -agg 'count as n, sum(id), median(id), concat(id)' zones.gpkg points.gpkg
-op contains -how inner -agg 'count as n, max(id)' zones.gpkg points.fgb
-op within -select id -join_select name points.gpkg zones.gpkg
-op nearest -where 'id > 10 AND id < 40' -batch 7 points.gpkg zones.gpkg
-op nearest -spat 980100 200100 980300 200300 points.gpkg zones.gpkg
-op nearest -limit 33 -batch 10 points.gpkg zones.gpkg
-op nearest -unsetFid points.gpkg zones.gpkg
-op intersects -geometry intersection zones.gpkg zones.fgb
-op nearest -geometry connection -nearest_point_fields -bearing_field points.gpkg zones.gpkg
-op nearest -along_field along -offset_field offset -side_field side -segment_field piece points.gpkg lines.gpkg
-op intersects -relation_field relation -matrix_field matrix zones.gpkg zones.fgb
-op nearest -geometry join -nlt PROMOTE_TO_MULTI points.gpkg zones.gpkg
-op intersects -overlap area,percent -pick largest_overlap zones.gpkg zones.fgb
-op window -window 980050 200050 980300 200300 -window 980200 200200 980400 200450 points.gpkg
-op nearest -memory 2M -batch 10 points.gpkg zones.gpkg
-op within -memory 2M -batch 10 points.gpkg zones.gpkg
-op nearest -sql 'SELECT geom, id + 1 AS more FROM points' points.gpkg zones.gpkg
-op nearest -t_srs EPSG:32618 points.gpkg zones.gpkg
-op contains -how right zones.gpkg many.gpkg
-op contains -how full zones.gpkg many.gpkg
-op within -how inner points.gpkg zones.gpkg
-k 3 -agg 'count, sum(v), min(name)' points.gpkg zones.gpkg
-op nearest -k 3 -ties all points.gpkg zones.gpkg
-op nearest -nearest_point_fields -bearing_field lines.gpkg zones.gpkg
-op dwithin -max_distance 40 -how inner points.gpkg zones.gpkg
-op intersects -pick largest_overlap -overlap area,percent other.gpkg zones.gpkg
-op nearest -max_distance 30 -how semi points.gpkg zones.gpkg
-op nearest -max_distance 30 -how anti points.gpkg zones.gpkg
-op nearest -max_distance 30 -how right points.gpkg zones.gpkg
-op dwithin -max_distance 60 -one_to_one -batch 10 points.gpkg zones.gpkg
-op nearest -k 3 -one_to_one -how inner points.fgb zones.fgb
-op intersects -one_to_one -how full zones.gpkg many.gpkg
-op dwithin -max_distance 60 -one_to_one best -how full points.gpkg zones.gpkg
-op dwithin -max_distance 60 -one_to_one -limit 33 points.gpkg zones.gpkg
-op dwithin -max_distance 60 -one_to_one -memory 2M -unsetFid points.gpkg zones.gpkg
-op dwithin -max_distance 60 -one_to_one -sql 'SELECT geom, id + 1 AS more FROM points' points.gpkg zones.gpkg
-op intersects -one_to_one -overlap area -where 'fid > 10' zones.gpkg zones.fgb
-op nearest -max_distance 30 -how full points.gpkg zones.gpkg
-op intersects -how semi points.gpkg zones.gpkg
-op intersects -how right points.gpkg zones.gpkg
-op intersects -how full points.gpkg zones.gpkg
-op nearest -geometry join points.gpkg zones.gpkg
-op nearest -geometry nearest_point points.gpkg zones.gpkg
-op nearest -geometry connection points.gpkg zones.gpkg
-op intersects -geometry intersection other.gpkg zones.gpkg
-op nearest points.gpkg z4326.gpkg
-op nearest -a_srs EPSG:32118 points.gpkg zones.gpkg
-op nearest -where 'id > 10' -limit 30 points.gpkg zones.gpkg
-op nearest -select '' -join_select name points.gpkg zones.gpkg
-op nearest -sql 'SELECT geom, id AS other, id FROM points' points.gpkg zones.gpkg
-op nearest -sql 'SELECT geom, id AS other FROM points' -dialect SQLITE points.gpkg zones.gpkg
-op intersects -spat 980000 200000 980300 200300 points.gpkg zones.gpkg
-op window -window 980100 200100 980300 200250 points.gpkg
-op nearest -batch 1 points.gpkg zones.gpkg
-agg count -batch 3 points.gpkg zones.gpkg
-op intersects -how full -batch 4 points.gpkg zones.gpkg
"""
JOINS = [shlex.split(line) for line in JOINS.strip().splitlines()]


def many_sides():
    """Makes the layers of inputs_and_zones(), and many.gpkg with more rows than a
    machine word has bits."""
    inputs_and_zones()
    inputs_file("many.gpkg", n=200)
    zones_file("other.gpkg", seed=8)
    lines_file()
    client("ogr2ogr", "z4326.gpkg", "zones.gpkg", "-t_srs", "EPSG:4326")
    for source, end in (("points", "fgb"), ("points", "geojson"), ("zones", "fgb")):
        client("ogr2ogr", f"{source}.{end}", f"{source}.gpkg")


def opened(*words):
    dataset = gdal.OpenEx(name_of(*words), gdal.OF_VECTOR)
    true(dataset is not None, f"opens: {words}")
    return dataset


class Messages:
    """Collects GDAL's messages inside of a with block as [(class, text)]. Errors do not
    raise exceptions there."""

    def __enter__(self):
        self.all = []
        for module in (osr, ogr, gdal):  # an order that GDAL's bindings require
            module.DontUseExceptions()
        gdal.ErrorReset()
        gdal.PushErrorHandler(lambda kind, number, text: self.all.append((kind, text)))
        return self

    def __exit__(self, *_):
        gdal.PopErrorHandler()
        gdal.ErrorReset()
        for module in (gdal, ogr, osr):
            module.UseExceptions()

    @property
    def errors(self):
        return [text for kind, text in self.all if kind >= gdal.CE_Failure]

    @property
    def warnings(self):
        return [text for kind, text in self.all if kind == gdal.CE_Warning]


def refuses(name, message=(), update=False):
    """Checks that the name cannot be opened, and that there is one error message. The
    text must contain every word of message. Returns the message."""
    with Messages() as messages:
        flags = gdal.OF_VECTOR | (gdal.OF_UPDATE if update else gdal.OF_READONLY)
        dataset = gdal.OpenEx(name, flags | gdal.OF_VERBOSE_ERROR)
        same(dataset, None, f"opens: {name}")
    true(len(messages.errors) >= 1, f"an error is reported: {name}: {messages.all}")
    same(len(messages.errors), 1, f"one error: {name}: {messages.all}")
    for text in [message] if isinstance(message, str) else message:
        true(text.lower() in messages.errors[0].lower(), f"'{text}' is not in: {messages.errors[0]}")
    return messages.errors[0]


def client(*words, env=None, rc=0):
    """Runs a program of GDAL, which must end with rc. If rc is 0, an error message is
    not allowed. Returns the Run."""
    done = subprocess.run(
        [*map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=HANG_S, env=dict(os.environ, **(env or {})), check=False,
    )
    r = Run(words, done.returncode, done.stdout.decode(), done.stderr.decode())
    same(r.rc, rc, f"exit code: {r}")
    if rc == 0:
        true("ERROR" not in r.err and "FAILURE" not in r.err, f"errors: {r}")
    return r


def in_python(code, env=None):
    """Runs the script in a Python process of its own. Returns the Run."""
    begin = "import os, sys, time\nfrom osgeo import gdal, ogr\ngdal.UseExceptions(); ogr.UseExceptions()\n"
    return client(sys.executable, "-c", begin + code, env=env)


FORMATS = {
    "gpkg": ("GPKG", ()),
    "fgb": ("FlatGeobuf", ()),
    "geojson": ("GeoJSON", ()),
    "csv": ("CSV", ("-lco", "GEOMETRY=AS_WKT")),
}


def fids_are_kept(words):
    """Returns True if the join gives one row per input row. Rows then keep the FIDs of
    the input."""
    def after(option, otherwise=None):
        return words[words.index(option) + 1] if option in words else otherwise

    if after("-how") in ("right", "full") or "-sql" in words or "-unsetFid" in words:
        return False
    if any(w in words for w in ("-agg", "-pick", "-one_to_one")) or after("-how") in ("semi", "anti"):
        return True
    one = int(after("-k", 1)) == 1 and after("-ties") != "all"
    return one and (after("-op") == "nearest" or "-distance_to" in words)


def compare(words, format="gpkg", lco=None, open_options=()):
    """Checks that ogr2ogr, reading the dataset, writes what the command writes: columns,
    rows, their order, and FIDs where rows keep the FIDs of the input. words are the
    options, the input and the join side. Returns the Layer that the command has written."""
    driver, options = FORMATS[format]
    if lco is not None:
        options = lco
    a, b = (os.path.join(folder, f"out.{format}") for folder in ("by_command", "by_ogr2ogr"))
    for path in (a, b):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.remove(path)
    sides = 1 if "-window" in words else 2
    go(*words[:-sides], *options, a, *words[-sides:])
    keep = ("-preserve_fid",) if fids_are_kept(words) else ()
    what = f"{format}: {shlex.join(map(str, words))}"
    with Messages() as messages:
        done = gdal.VectorTranslate(b, name_of(*words), options=[*keep, "-f", driver, *options])
        true(done is not None, f"is written, {what}: {messages.all}")
        done = None
    same(messages.errors, [], what)
    x, y = (Layer(p, oo=open_options) for p in (a, b))
    # a layer whose name is a word of SQL gets the suffix _joined
    true(y.name in (x.name, x.name + "_joined"), f"name, {what}: {y.name}, {x.name}")
    same(list(y.fields.items()), list(x.fields.items()), f"columns, {what}")
    same(y.kind, x.kind, f"geometry type, {what}")
    same(y.srs.ExportToWkt() if y.srs else None, x.srs.ExportToWkt() if x.srs else None,
         f"CRS, {what}")
    same(len(y.rows), len(x.rows), f"rows, {what}")
    # With rows of unmatched join features, the dataset numbers all rows, but the command
    # keeps the FIDs of the input. FIDs are then not compared.
    has_join_rows = "right" in words or "full" in words
    skip = 1 if has_join_rows else 0
    if format == "fgb":  # rows at one place on the index's curve may come in any order
        skip = 1
        for layer in (x, y):
            layer.rows.sort(key=lambda row: repr(row[1:]))
    for i, (got, expected) in enumerate(zip(y.rows, x.rows)):
        same(repr(got[skip:]), repr(expected[skip:]), f"row {i}, {what}")
    if format == "csv" or format == "geojson" and y.name == x.name and not has_join_rows:
        with open(a, "rb") as f, open(b, "rb") as g:
            same(g.read(), f.read(), f"bytes, {what}")
    return x
