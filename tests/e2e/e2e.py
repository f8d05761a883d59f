"""Functions for the end-to-end tests: running the command, making and reading small
layers, and a plain join in which OGR measures every distance.

The command is $OGRJOIN.  Each check is a function check_*(), which runs in a folder
of its own.  A check that raises Skip(why) is left out.  main() counts the checks. It
ends with 77 if every check of the file was skipped.
"""

import glob
import hashlib
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from osgeo import gdal, ogr, osr

gdal.UseExceptions()
ogr.UseExceptions()
osr.UseExceptions()

OGRJOIN = os.environ.get("OGRJOIN", "ogrjoin")
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get("OGRJOIN_TEST_DATA") or os.path.join(
    HERE, "..", "..", "..", "shared", "data"
)
IS_LONG = os.environ.get("OGRJOIN_TEST_LONG", "0") not in ("", "0")
# seconds after which a command counts as hanging; no test depends on speed
HANG_S = 300


class Skip(Exception):
    pass


def need_data(name):
    path = os.path.join(DATA, name)
    if not os.path.exists(path):
        raise Skip(f"no {name} in the folder of shared layers")
    return path


# --- checks --------------------------------------------------------------


def same(got, expected, what=""):
    if got != expected:
        raise AssertionError(
            f"{what}\n  got      {repr(got)[:2000]}\n  expected {repr(expected)[:2000]}"
        )


def true(condition, what):
    if not condition:
        raise AssertionError(what)


def near(got, expected, tolerance, what=""):
    if got is None or expected is None:
        return same(got, expected, what)
    if not abs(got - expected) <= tolerance:
        raise AssertionError(f"{what}: got {got!r}, expected {expected!r}")


# --- the command ---------------------------------------------------------


class Run:
    def __init__(self, words, rc, out, err):
        self.words, self.rc, self.out, self.err = words, rc, out, err

    def __str__(self):
        return (
            f"{' '.join(map(str, self.words))}\n  exit {self.rc}\n"
            f"  stdout: {self.out[-1500:]}\n  stderr: {self.err[-1500:]}"
        )


started = []


def start(*words, env=None, cwd=None, before=()):
    """Starts the command with both output streams as pipes. Returns the process
    (Popen)."""
    words = [*before, OGRJOIN, *map(str, words)]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, **(env or {})),
        cwd=cwd,
    )
    process.words = words
    started.append(process)
    return process


def cpu_seconds(process):
    """Returns the processor time that a process has taken so far. Limits of time are
    limits of this one, which does not grow while other programs use the machine."""
    if not os.path.exists("/proc/self/stat"):
        raise Skip("no /proc")
    if process.returncode is not None:
        return 0.0
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_ended():
    """Returns the processor time of all processes that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def hold(process):
    """Stops a process where it is (SIGSTOP), so that what is tested then still holds when
    stop() sends its signal. Returns False if the process has ended."""
    process.send_signal(signal.SIGSTOP)
    if process.returncode is not None:
        return False
    how = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return how.si_code == os.CLD_STOPPED


def stop(process, number):
    """Sends a signal to a process, which may be held, and waits for its end. Returns the
    Run, and the processor seconds from the signal to the end."""
    before = cpu_seconds_of_ended() + cpu_seconds(process)
    process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    r = finish(process)
    return r, cpu_seconds_of_ended() - before


def finish(process):
    try:
        out, err = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"hangs: {' '.join(process.words)}") from None
    return Run(process.words, process.returncode, out.decode(), err.decode())


def run(*words, **how):
    """Runs the command. Any exit code is accepted. Returns a Run."""
    return finish(start(*words, **how))


def succeeds(*words, **how):
    """Runs the command, which must end with 0 and without error messages. Returns the
    Run."""
    r = run(*words, **how)
    true(r.rc == 0 and "ERROR" not in r.err, f"should succeed: {r}")
    return r


def join(*words, **how):
    return succeeds("-op", "nearest", *words, **how)


def listing(folder="."):
    """Returns every path below the folder with its size and modification time. Two
    listings show what a run has left behind."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(where, name)
            info = os.lstat(path)
            size = 0 if os.path.isdir(path) else info.st_size
            found[path] = (size, info.st_mtime_ns if size else 0)
    return found


def fails(*words, message=(), rc=1, cwd=None, env=None, op=True):
    """Checks that the command fails with one line on stderr that begins with ERROR and
    contains every word of message, prints nothing on stdout, and leaves all files
    unchanged. Returns the line on stderr."""
    before = listing(cwd or ".")
    words = (["-op", "nearest"] if op else []) + list(words)
    r = run(*words, cwd=cwd, env=env)
    same(r.rc, rc, f"exit code of {r}")
    same(r.out, "", f"stdout of {r}")
    lines = r.err.rstrip("\n").split("\n")
    errors = [line for line in lines if line.startswith("ERROR")]
    same(len(errors), 1, f"lines with ERROR of {r}")
    same(lines[-1:], errors, f"the error is the last line of {r}")
    others = [x for x in lines if not x.startswith(("ERROR", "Warning"))]
    notices = ("reprojected", "renames the field", "fields renamed", "no geometry here")
    others = [x for x in others if not any(n in x for n in notices)]
    same(others, [], f"other lines of {r}")
    for text in [message] if isinstance(message, str) else message:
        true(text.lower() in errors[0].lower(), f"'{text}' is not in {r}")
    same(listing(cwd or "."), before, f"left behind by {r}")
    return errors[0]


def summary(path="summary.json"):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# --- layers --------------------------------------------------------------


def crs(words):
    if words is None:
        return None
    srs = osr.SpatialReference()
    srs.SetFromUserInput(words)
    srs.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    return srs


DRIVERS = {
    ".gpkg": "GPKG",
    ".fgb": "FlatGeobuf",
    ".shp": "ESRI Shapefile",
    ".geojson": "GeoJSON",
    ".geojsonl": "GeoJSONSeq",
    ".csv": "CSV",
    ".sqlite": "SQLite",
    ".db": "SQLite",
}


def make(
    path,
    rows,
    fields=(("name", ogr.OFTString),),
    srs="EPSG:2263",
    kind=ogr.wkbUnknown,
    layer=None,
    lco=(),
    dsco=(),
    add=False,
):
    """Writes a layer. rows are (WKT, geometry or None, {field: value}[, fid]); fields
    are (name, type[, subtype]) or field definitions. With add, the dataset exists
    already. Returns path."""
    driver = ogr.GetDriverByName(DRIVERS[os.path.splitext(path)[1]])
    if add:
        dataset = gdal.OpenEx(path, gdal.OF_UPDATE | gdal.OF_VECTOR)
    else:
        dataset = driver.CreateDataSource(path, options=list(dsco))
    name = layer or os.path.splitext(os.path.basename(path))[0]
    out = dataset.CreateLayer(name, crs(srs), kind, options=list(lco))
    for field in fields:
        if not isinstance(field, ogr.FieldDefn):
            definition = ogr.FieldDefn(field[0], field[1])
            if len(field) > 2:
                definition.SetSubType(field[2])
            field = definition
        out.CreateField(field)
    can_undo = out.TestCapability("Transactions")
    if can_undo:
        out.StartTransaction()
    for row in rows:
        feature = ogr.Feature(out.GetLayerDefn())
        shape = row[0]
        if isinstance(shape, str):
            shape = ogr.CreateGeometryFromWkt(shape)
        if shape is not None:
            feature.SetGeometry(shape)
        for key, value in row[1].items():
            if value is None:
                feature.SetFieldNull(key)
            else:
                feature[key] = value
        if len(row) > 2:
            feature.SetFID(row[2])
        out.CreateFeature(feature)
    if can_undo:
        out.CommitTransaction()
    out = None
    dataset = None
    return path


def twin(path):
    """Copies a dataset that is one file. In a join of the two files each feature joins its
    copy; in a join of one file with itself, no feature joins itself. Returns the path of
    the copy."""
    copy = os.path.join(os.path.dirname(path), "twin_" + os.path.basename(path))
    shutil.copy(path, copy)
    return copy


class Layer:
    """A layer, read by Python: fields (name -> definition), and rows (fid, WKB or None,
    {field: value}) in the layer's order."""

    def __init__(self, path, layer=None, oo=()):
        dataset = gdal.OpenEx(path, gdal.OF_VECTOR, open_options=list(oo))
        source = dataset.GetLayer(layer) if layer else dataset.GetLayer(0)
        true(source is not None, f"{path} has no layer {layer}")
        definition = source.GetLayerDefn()
        self.name = source.GetName()
        self.layers = [
            dataset.GetLayer(i).GetName() for i in range(dataset.GetLayerCount())
        ]
        self.fid_column = source.GetFIDColumn()
        self.kind = source.GetGeomType()
        srs = source.GetSpatialRef()
        self.srs = srs.Clone() if srs else None
        self.fields = {}
        for i in range(definition.GetFieldCount()):
            field = definition.GetFieldDefn(i)
            self.fields[field.GetName()] = (
                field.GetTypeName(),
                ogr.GetFieldSubTypeName(field.GetSubType()),
                field.GetWidth(),
                field.GetPrecision(),
                field.GetDomainName(),
            )
        self.rows = []
        for feature in source:
            shape = feature.GetGeometryRef()
            wkb = bytes(shape.ExportToIsoWkb()) if shape is not None else None
            values = {}
            for i, name in enumerate(self.fields):
                values[name] = (
                    feature.GetField(i) if feature.IsFieldSetAndNotNull(i) else None
                )
            self.rows.append((feature.GetFID(), wkb, values))

    def column(self, name):
        return [row[2][name] for row in self.rows]

    def shapes(self):
        return [
            ogr.CreateGeometryFromWkb(row[1]) if row[1] is not None else None
            for row in self.rows
        ]


def rows(name):
    return Layer(name).rows


def n_bytes(pattern):
    """Returns the size of all files whose paths fit the pattern, also while they come
    and go."""
    found = 0
    for path in glob.glob(pattern):
        try:
            found += os.path.getsize(path)
        except OSError:
            pass
    return found


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def dump(path, layer=None):
    """Returns the fields and the rows of a layer as sorted text. Two layers are equal if
    their texts are equal."""
    found = Layer(path, layer)
    rows = [f"{fid} {wkb.hex() if wkb else wkb} {v!r}" for fid, wkb, v in found.rows]
    return "\n".join([repr(found.fields), *sorted(rows)])


# --- the answer, found the plain way --------------------------------------


def _distance(point, shape, to_boundary):
    if shape.GetGeometryCount() and shape.GetGeometryName() != "POLYGON":
        return min(
            (
                _distance(point, shape.GetGeometryRef(i), to_boundary)
                for i in range(shape.GetGeometryCount())
                if not shape.GetGeometryRef(i).IsEmpty()
            ),
            default=math.inf,
        )
    if to_boundary and shape.GetGeometryName() == "POLYGON":
        best = math.inf
        for i in range(shape.GetGeometryCount()):
            line = ogr.ForceToLineString(shape.GetGeometryRef(i).Clone())
            best = min(best, point.Distance(line))
        return best
    return point.Distance(shape)


def is_joinable(shape):
    if shape is None or shape.IsEmpty():
        return False
    return "nan" not in shape.ExportToWkt().lower()


def nearest(inputs, joins, within=math.inf, k=1, ties=False, to_boundary=False):
    """Returns, for each geometry of inputs, a list of (distance, row of joins), nearest
    first. joins are the rows of a Layer. The other parameters stand for -max_distance, -k,
    -ties all and -distance_to boundary."""
    shapes = []
    for row, (fid, wkb, _) in enumerate(joins):
        shape = ogr.CreateGeometryFromWkb(wkb) if wkb is not None else None
        if is_joinable(shape):
            shapes.append((fid, row, shape))
    answers = []
    for point in inputs:
        found = []
        if is_joinable(point):
            for fid, row, shape in shapes:
                if point.GetGeometryCount():
                    d = min(
                        _distance(point.GetGeometryRef(i), shape, to_boundary)
                        for i in range(point.GetGeometryCount())
                        if not point.GetGeometryRef(i).IsEmpty()
                    )
                else:
                    d = _distance(point, shape, to_boundary)
                if d <= within:
                    found.append((d, fid, row))
        found.sort()
        n = k
        while ties and 0 < n < len(found) and found[n][0] == found[k - 1][0]:
            n += 1
        answers.append([(d, row) for d, _, row in found[:n]])
    return answers


# --- small random layers ---------------------------------------------------


def random_points(n, seed=1, size=1000.0, x0=980000.0, y0=200000.0):
    r = random.Random(seed)
    return [
        f"POINT ({x0 + r.uniform(0, size)!r} {y0 + r.uniform(0, size)!r})"
        for _ in range(n)
    ]


def random_polygons(n, seed=2, size=1000.0, x0=980000.0, y0=200000.0):
    """Returns random convex polygons. Some have a hole, some two parts."""
    r = random.Random(seed)
    found = []

    def ring(x, y, radius):
        m = r.randint(3, 9)
        angles = sorted(r.uniform(0, 2 * math.pi) for _ in range(m))
        points = [
            f"{x + radius * math.cos(a)!r} {y + radius * math.sin(a)!r}" for a in angles
        ]
        return "(" + ", ".join([*points, points[0]]) + ")"

    def square(x, y, h):
        corners = [(-h, -h), (-h, h), (h, h), (h, -h), (-h, -h)]
        return "(" + ", ".join(f"{x + a!r} {y + b!r}" for a, b in corners) + ")"

    for i in range(n):
        x, y = x0 + r.uniform(0, size), y0 + r.uniform(0, size)
        radius = r.uniform(0.01, 0.06) * size
        if i % 4 == 1:
            inner = square(x, y, radius / 4)
            parts = [f"({square(x, y, radius)}, {inner})"]
        elif i % 4 == 2:
            parts = [
                f"({ring(x, y, radius)})",
                f"({ring(x + 3 * radius, y, radius)})",
            ]
        else:
            parts = [f"({ring(x, y, radius)})"]
        found.append("MULTIPOLYGON (" + ", ".join(parts) + ")")
    return found


def points_file(path="points.gpkg", n=50, **how):
    rows = [(p, {"name": f"p{i}"}) for i, p in enumerate(random_points(n))]
    return make(path, rows, kind=ogr.wkbPoint, **how)


def lots_file(path="lots.gpkg", n=20, **how):
    rows = [
        (p, {"use": f"u{i}", "area": i * 1.5})
        for i, p in enumerate(random_polygons(n))
    ]
    fields = (("use", ogr.OFTString), ("area", ogr.OFTReal))
    return make(path, rows, fields=fields, kind=ogr.wkbMultiPolygon, **how)


def layers():
    points_file()
    lots_file()
    return ["points.gpkg", "lots.gpkg"]


# --- all checks of a file ------------------------------------------------


def once(check):
    """Marks a check that does not depend on how rows are read and written. It runs only
    with lanes, and is not repeated with GDAL's features."""
    check.is_once = True
    return check


def main(scope):
    names = [n for n in scope if n.startswith("check_")]
    if sys.argv[1:]:
        names = [n for n in names if any(a in n for a in sys.argv[1:])]
    passed, failed, skipped = 0, [], 0
    for name in names:
        folder = tempfile.mkdtemp(prefix="ogrjoin-e2e-")
        os.chdir(folder)
        begin = time.monotonic()
        try:
            if hasattr(scope[name], "is_once") and os.environ.get("OGRJOIN_LANES") == "NO":
                raise Skip("lanes do not matter")
            scope[name]()
            passed += 1
            print(f"ok      {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Skip as why:
            skipped += 1
            print(f"skipped {name}: {why}", flush=True)
        except Exception:  # the other checks still run
            failed.append(name)
            print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)
        finally:
            for process in started:
                process.kill()
                process.communicate()
            started.clear()
            os.chdir("/")
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    if failed:
        print("failed: " + " ".join(failed))
        sys.exit(1)
    sys.exit(77 if passed == 0 else 0)
