"""Outputs that cannot be written.  The command prints one line that begins with ERROR,
ends with exit code 1, and leaves no file behind.  Existing files stay unchanged byte
for byte."""

import contextlib
import pwd
import sqlite3

from e2e import *


@once
def check_output_is_an_input():
    w = layers()
    os.symlink("points.gpkg", "link.gpkg")
    os.link("points.gpkg", "hard.gpkg")
    os.mkdir("sub")
    here = os.path.basename(os.getcwd())
    names = ["points.gpkg", "./points.gpkg", "sub/../points.gpkg", "link.gpkg",
             "hard.gpkg", os.path.abspath("points.gpkg"), f"../{here}/points.gpkg"]
    before = digest("points.gpkg")
    for name in names:
        for option in ("-overwrite", "-append", "-update"):
            fails(option, name, *w, message="input")
        fails(name, *w, message="input")
    fails("-overwrite", "lots.gpkg", *w, message="join")
    fails("-overwrite", "lots.gpkg", *w, "-nln", "new", message="join")
    same(digest("points.gpkg"), before)
    points_file("s.shp")
    fails("-overwrite", "s.shp", twin("s.shp"), w[1], message="input")
    fails("-overwrite", "s.dbf", "s.shp", w[1])
    points_file("p.csv", lco=["GEOMETRY=AS_XY"])
    with open("p.vrt", "w", encoding="utf-8") as file:
        file.write('<OGRVRTDataSource><OGRVRTLayer name="p"><SrcDataSource '
                   'relativeToVRT="1">p.csv</SrcDataSource><GeometryField '
                   'encoding="PointFromColumns" x="X" y="Y"/></OGRVRTLayer>'
                   "</OGRVRTDataSource>")
    fails("-overwrite", "p.csv", "p.vrt", w[1], message="input")


@once
def check_reports_over_inputs():
    """Reports and summaries must not overwrite inputs."""
    w = layers()
    for option in ("-json_summary", "-validate_report"):
        for target in ("points.gpkg", "lots.gpkg"):
            extra = ["-validate"] if option == "-validate_report" else []
            before = digest(target)
            r = run("-op", "nearest", "o.gpkg", *w, option, target, *extra)
            same(r.rc, 1, str(r))
            same(digest(target), before, f"{option} {target}")
            true("overwrite" in r.err, str(r))
            true(not os.path.exists("o.gpkg"), "said before anything is written")
    for target in ("o.gpkg", "./o.gpkg", os.path.abspath("o.gpkg")):
        fails("o.gpkg", *w, "-json_summary", target, message="output")
        fails("o.gpkg", *w, "-validate", "-validate_report", target, message="output")


@once
def check_folders():
    w = layers()
    fails("no/such/folder/o.gpkg", *w, message="no/such/folder")
    fails("points.gpkg/o.gpkg", *w)
    os.mkdir("dir")
    for option in ([], ["-overwrite"], ["-append"]):
        fails(*option, "dir", *w, message="dir")
        fails(*option, "dir", *w, "-f", "GPKG", message="dir")
    fails("dir", *w, message="dir is a folder: name the file in it")


def as_nobody(folder):
    """Returns the words in front of a command that run it as a user without privileges.
    Root may write everywhere, so the permissions of files would not be tested."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise Skip("no setpriv, and root may write everywhere")
    user = pwd.getpwnam("nobody")
    os.chmod(folder, 0o755)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
            "--clear-groups"]


@once
def check_no_permission():
    layers()
    folder = os.getcwd()
    before_words = as_nobody(folder)
    os.mkdir("locked")
    make("locked/old.gpkg", [("POINT (0 0)", {"name": "old"})])
    os.chmod("locked", 0o555)
    os.chmod("locked/old.gpkg", 0o444)
    try:
        probe = subprocess.run([*before_words, "test", "-r", "points.gpkg"], check=False)
        if probe.returncode != 0 or not can_start(before_words):
            raise Skip("another user cannot read here")
        before = listing()
        for words in (["locked/o.gpkg"], ["-overwrite", "locked/old.gpkg"],
                      ["-append", "locked/old.gpkg"], ["locked/o.fgb"]):
            r = finish(start("-op", "nearest", *words, "points.gpkg", "lots.gpkg",
                             before=before_words))
            same(r.rc, 1, str(r))
            same(r.err.count("ERROR"), 1, str(r))
            true("locked" in r.err, str(r))
            same(listing(), before, str(r))
    finally:
        os.chmod("locked", 0o755)


def can_start(words):
    try:
        done = subprocess.run([*words, OGRJOIN, "--version"], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return done.returncode == 0


def check_old_output_of_another_kind():
    w = layers()
    with open("notes.gpkg", "w", encoding="utf-8") as file:
        file.write("my notes\n")
    fails("notes.gpkg", *w, message="exists")
    fails("-overwrite", "notes.gpkg", *w, message="notes.gpkg")
    fails("-append", "notes.gpkg", *w, message="notes.gpkg")


def check_join_fails_while_overwriting():
    """The old output stays if the new one cannot be completed."""
    w = layers()
    short = ("-batch", "50", "-max_pairs", "460")  # fails in the tenth batch
    rows = [(p, {"name": "x"}) for p in random_points(500)]
    make("mixed.gpkg", rows)
    for out in ("o.gpkg", "o.fgb", "o.shp", "o.geojson"):
        join(out, *w)
    for out in ("o.gpkg", "o.fgb", "o.shp", "o.geojson"):
        fails(*short, "-overwrite", out, "mixed.gpkg", w[1], message="460")
        fails(*short, "new_" + out, "mixed.gpkg", w[1], message="460")
    make("d.gpkg", [("POINT (0 0)", {"name": "kept"})], layer="kept")
    make("d.gpkg", [("POINT (0 0)", {"name": "old"})], layer="mixed", add=True)
    before = dump("d.gpkg", "kept") + dump("d.gpkg", "mixed")
    for option in ("-overwrite", "-append", "-update"):
        r = run("-op", "nearest", *short, option, "d.gpkg", "mixed.gpkg", w[1],
                "-select", "name", "-join_select", "")
        same(r.rc, 1, str(r))
        same(dump("d.gpkg", "kept") + dump("d.gpkg", "mixed"), before, option)
        same(sorted(Layer("d.gpkg").layers), ["kept", "mixed"], option)


def check_another_writer():
    w = layers()
    join("o.gpkg", *w)
    other = sqlite3.connect("o.gpkg", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for words in (("-append",), ("-update", "-nln", "more")):
        # GDAL waits some time for the other program.
        fails(*words, "o.gpkg", *w, message=["locked", "another program writes to it"],
              env={"SQLITE_BUSY_TIMEOUT": "100"})
    other.execute("ROLLBACK")
    join("-append", "o.gpkg", *w)


@once
def check_drivers_that_cannot():
    w = layers()
    fails("-f", "WAsP", "o.map", *w)
    fails("-f", "DGN", "o.dgn", *w, message="DGN")
    fails("-f", "S57", "o.000", *w)
    fails("-f", "Selafin", "o.slf", *w)
    # A multipoint in a format of single points is an error, not a missing row.
    make("multi.gpkg", [("MULTIPOINT (980000 200000, 980010 200010)", {"name": "m"})])
    fails("-f", "GPX", "o.gpx", "multi.gpkg", w[1])
    mixed = [("POINT (980000 200000)", {"name": "a"}),
             ("MULTIPOINT (980000 200000)", {"name": "b"})]
    make("mixed.gpkg", mixed)
    fails("o.shp", "mixed.gpkg", w[1])
    join("-nlt", "PROMOTE_TO_MULTI", "o.shp", "mixed.gpkg", w[1])
    same(len(Layer("o.shp").rows), 2)
    # A layer of a Shapefile has polygons of one and of several parts.
    part = "((0 0,1 0,1 1,0 0))"
    make("parts.shp", [(f"POLYGON {part}", {"name": "a"}),
                       (f"MULTIPOLYGON ({part},((5 5,6 5,6 6,5 5)))", {"name": "b"})], kind=ogr.wkbPolygon)
    words = ("o.fgb", "parts.shp", w[1])
    for env in ({}, {"OGRJOIN_LANES": "NO"}):
        fails(*words, message="-nlt PROMOTE_TO_MULTI", env=env)
    join("-nlt", "PROMOTE_TO_MULTI", *words)
    same(len(Layer("o.fgb").rows), 2)


def full_disk(size, run_there):
    """Calls run_there() with a file system of `size` bytes, and unmounts it
    afterwards."""
    if os.getuid() != 0:
        raise Skip("only root mounts a small file system")
    os.mkdir("small")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none",
                              "small"], stderr=subprocess.PIPE, check=False)
    if mounted.returncode != 0:
        raise Skip(f"cannot mount: {mounted.stderr.decode().strip()}")
    try:
        run_there()
    finally:
        subprocess.run(["umount", "-l", "small"], check=True)


def many_points():
    rows = [(p, {"name": f"a name of some length, number {i}"})
            for i, p in enumerate(random_points(40000))]
    make("many.fgb", rows, kind=ogr.wkbPoint, lco=["SPATIAL_INDEX=NO"])
    lots_file()


def check_full_disk():
    many_points()

    def run_there():
        make("small/keep.gpkg", [("POINT (0 0)", {"name": "old"})])
        old = digest("small/keep.gpkg")
        for out in ("o.gpkg", "o.fgb", "o.csv", "o.shp", "o.geojson", "o.geojsonl",
                    "o.sqlite"):
            for extra in ([], ["-lco", "SPATIAL_INDEX=NO"]):
                if extra and out not in ("o.gpkg", "o.fgb"):
                    continue
                fails(*extra, f"small/{out}", "many.fgb", "lots.gpkg", cwd=".")
        fails("-overwrite", "small/keep.gpkg", "many.fgb", "lots.gpkg", "-nln", "keep")
        same(digest("small/keep.gpkg"), old, "the old file")
        for option in ("-append", "-update"):
            r = run("-op", "nearest", option, "small/keep.gpkg", "many.fgb", "lots.gpkg",
                    "-select", "name", "-how", "semi")
            same(r.rc, 1, str(r))
            same(Layer("small/keep.gpkg").column("name"), ["old"], str(r))
            same(Layer("small/keep.gpkg").layers, ["keep"], str(r))
        same(sorted(os.listdir("small")), ["keep.gpkg"], "nothing else is left")

    full_disk(2 * 1024 * 1024, run_there)


@once
def check_full_disk_for_side_files():
    layers()

    def run_there():
        with contextlib.suppress(OSError), open("small/filler", "wb") as file:
            while file.write(b"x" * 4096):
                file.flush()
        r = run("-op", "nearest", "o.gpkg", "points.gpkg", "lots.gpkg", "-json_summary",
                "small/s.json")
        same(r.rc, 1, str(r))
        same(r.err.count("ERROR"), 1, str(r))
        same(os.listdir("small"), ["filler"])

    full_disk(256 * 1024, run_there)


if __name__ == "__main__":
    main(globals())
