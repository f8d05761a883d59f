"""A join reads one state of each side.  If another program changes a GeoPackage, the
join gets the rows of one transaction, whatever it reads and how often.  Other files
that change between two readings are an error.  With OGRJOIN_TEST_LONG=1 there are 50
joins each."""

import collections
import contextlib
import csv
import multiprocessing
import sqlite3

from dataset import *

N_JOINS = 50 if IS_LONG else 8
N_ROWS = 40000 if IS_LONG else 20000


def edited_file(path="edited.gpkg", mode="wal", n=N_ROWS):
    """Makes points whose column v is the number of the last transaction that changed
    them. Returns path."""
    with contextlib.suppress(FileNotFoundError):
        for end in ("", "-wal", "-shm"):
            os.remove(path + end)
    rows = [(f"POINT ({980000 + i % 1000} {200000 + i // 1000})", {"v": 0})
            for i in range(n)]
    make(path, rows, (("v", ogr.OFTInteger),), kind=ogr.wkbPoint,
         lco=["SPATIAL_INDEX=NO"])
    database = sqlite3.connect(path)
    same(database.execute(f"PRAGMA journal_mode = {mode}").fetchone(), (mode,))
    database.close()
    return path


def write_on(path, is_running, is_over, n_commits, keeps_log):
    """Commits one transaction after another, each over all rows, or over some that are
    far apart. Sets is_running after the first, and ends when is_over is set. With
    keeps_log, the WAL is kept; otherwise it is emptied often."""
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    database.execute("PRAGMA synchronous = off")
    if keeps_log:
        database.execute("PRAGMA wal_autocheckpoint = 0")
    while not is_over.value:
        n = n_commits.value + 1
        database.execute("UPDATE edited SET v = ?", (n,))
        n_commits.value = n
        is_running.value = 1
        if not keeps_log and n % 3 == 0:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


@contextlib.contextmanager
def writer(path, keeps_log):
    """Runs write_on() in another process during a with block. Yields the number of its
    commits so far, a shared value."""
    context = multiprocessing.get_context("fork")
    flags = [context.Value("i", 0) for _ in range(3)]
    process = context.Process(target=write_on, args=(path, *flags, keeps_log))
    process.start()
    try:
        deadline = time.monotonic() + HANG_S
        while not flags[0].value:
            true(time.monotonic() < deadline and process.is_alive(), "a writer begins")
            time.sleep(0.01)
        yield flags[2]
    finally:
        flags[1].value = 1
        process.join()


def by_command(words, column):
    r = run(*words[:-2], "-q", "-f", "CSV", "/vsistdout/", *words[-2:])
    if r.rc != 0:
        return None, r.err
    found = [row[column] for row in csv.DictReader(r.out.splitlines())]
    return [int(v) for v in found if v], ""


def by_features(words, column):
    return by_command(("--config", "OGRJOIN_LANES", "NO", *words), column)


def by_dataset(words, column):
    dataset = gdal.OpenEx(name_of(*words), gdal.OF_VECTOR)
    layer = dataset.GetLayer(0)
    found = []
    for feature in layer:
        if feature.IsFieldSetAndNotNull(column):
            found.append(feature[column])
    layer = dataset = None
    return found, ""


# (options, number of the side that is edited)
JOINS = ((("-op", "within", "-how", "left"), 0),
         (("-op", "intersects", "-how", "full"), 1),
         (("-op", "intersects", "-how", "full"), 0))


def check_rows_are_of_one_transaction():
    make("box.gpkg", [("POLYGON ((979999 199999, 980100 199999, 980100 200030, "
                       "979999 200030, 979999 199999))", {"name": "box"})])
    seen = collections.Counter()
    for keeps_log in (True, False):
        edited_file()
        with writer("edited.gpkg", keeps_log) as n_commits:
            for ask in (by_command, by_features, by_dataset):
                before = n_commits.value
                for i in range(N_JOINS):
                    options, side = JOINS[i % len(JOINS)]
                    names = ["box.gpkg", "box.gpkg"]
                    names[side] = "edited.gpkg"
                    column = "v" if side == 0 or "join" not in options else "join_v"
                    found, err = ask((*options, *names), column)
                    what = f"{ask.__name__} {options} {names} {keeps_log}: {err}"
                    true(found is not None, what)
                    same(len(found), N_ROWS, what)
                    same(len(set(found)), 1, what)
                    seen[ask.__name__] += 1
                true(n_commits.value > before, "commits while joins are made")
    same(set(seen.values()), {2 * N_JOINS})


def check_an_edited_file_with_rollback_journal():
    """With a rollback journal, writers and joins wait for each other."""
    make("box.fgb", [("POLYGON ((979999 199999, 980100 199999, 980100 200030, "
                      "979999 200030, 979999 199999))", {"name": "box"})])
    edited_file(mode="delete", n=2000)
    with writer("edited.gpkg", True):
        n_read = 0
        for ask in (by_command, by_features, by_dataset):
            for _ in range(3):
                found, err = ask(("-op", "intersects", "-how", "full", "box.fgb",
                                  "edited.gpkg"), "v")
                if found is None:
                    true("locked" in err, err)
                    continue
                n_read += 1
                same((len(found), len(set(found))), (2000, 1), ask.__name__)
    true(n_read > 0, "some could be read")


def check_wrong_counts_of_rows():
    """The file stores a wrong number of rows. Its FIDs begin with 1 and end with this
    number, although some are missing."""
    names = [f"p{i}" for i in range(60)]
    make("zones.fgb", [("POLYGON ((0 0, 100 0, 100 1, 0 1, 0 0))", {"name": "z"})])
    for count, gone in ((60, (7,)), (60, (2, 59)), (61, ()), (3, ()), (59, (60,)), (58, (3,))):
        make("points.gpkg", [(f"POINT ({i} 0.5)", {"name": n}) for i, n in enumerate(names)],
             kind=ogr.wkbPoint, lco=["SPATIAL_INDEX=NO"])
        database = sqlite3.connect("points.gpkg", isolation_level=None)
        database.executemany("DELETE FROM points WHERE fid = ?", [(fid,) for fid in gone])
        database.execute("UPDATE gpkg_ogr_contents SET feature_count = ?", (count,))
        expected = database.execute("SELECT name FROM points ORDER BY fid").fetchall()
        database.close()
        for lanes in ("YES", "NO"):
            for batch in (1, 7, 65536):
                r = succeeds("-op", "within", "-q", "-f", "CSV", "-batch", batch,
                             "-join_select", "", "/vsistdout/", "points.gpkg", "zones.fgb",
                             env={"OGRJOIN_LANES": lanes})
                same([(row["name"],) for row in csv.DictReader(r.out.splitlines())],
                     expected, f"{count} {gone} lanes {lanes} -batch {batch}")


def check_files_that_only_can_be_read():
    """A read-only folder with a file in WAL mode. The WAL may have content."""
    words = as_another_user()
    os.mkdir("locked")
    make("box.fgb", [("POLYGON ((979999 199999, 980100 199999, 980100 200030, "
                      "979999 200030, 979999 199999))", {"name": "box"})])
    for mode in ("delete", "wal"):
        edited_file(mode=mode, n=500)
        shutil.copy("edited.gpkg", "locked/edited.gpkg")
        os.chmod("locked/edited.gpkg", 0o444)
        os.chmod("locked", 0o555)
        try:
            for lanes in ("YES", "NO"):
                for how, n in (("left", 101), ("full", 500)):
                    r = finish(start("-op", "intersects", "-how", how, "-q", "-f", "CSV",
                                     "/vsistdout/", "box.fgb", "locked/edited.gpkg",
                                     env={"OGRJOIN_LANES": lanes}, before=words))
                    same((r.rc, len(r.out.splitlines())), (0, 1 + n),
                         f"{mode} {lanes} {r}")
        finally:
            os.chmod("locked", 0o755)
            os.chmod("locked/edited.gpkg", 0o644)


def as_another_user():
    """Returns the words before the command that run it as another user. Root may read
    everything, so permissions would not be tested."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise Skip("no setpriv, and root may write everywhere")
    os.chmod(".", 0o755)
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    probe = subprocess.run([*words, OGRJOIN, "--version"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        raise Skip("another user cannot start the command")
    return words


def check_files_that_change_between_two_readings():
    """Two cases read a layer twice: unmatched join features (-how full) the join layer,
    -one_to_one the input. If the file was rewritten in between, the command fails."""
    squares = [(f"POLYGON (({i} 0, {i + 1} 0, {i + 1} 1, {i} 1, {i} 0))", {"name": f"z{i}"})
               for i in range(40)]
    points = [(f"POINT ({i % 40 + 0.5} 0.5)", {"name": f"p{i}"}) for i in range(40000)]
    make("points.fgb", points, lco=["SPATIAL_INDEX=NO"])
    make("zones.csv", squares, lco=["GEOMETRY=AS_WKT"])
    for options, changed in (
            (("-op", "within", "-how", "full"), "zones.csv"),
            (("-op", "nearest", "-max_distance", 1, "-one_to_one"), "points.fgb")):
        time.sleep(0.1)
        process = start(*options, "-q", "-f", "CSV", "-batch", 100, "/dev/stdout",
                        "points.fgb", "zones.csv")
        process.stdout.read(1)  # rows are written, and the pipe is full soon
        with open(changed, "a", encoding="utf-8") as file:
            file.write("\n")
        r = finish(process)
        true(r.rc == 1 and "changed while it was read" in r.err, f"{r.rc} {r.err}")


if __name__ == "__main__":
    main(globals())
