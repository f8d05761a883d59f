"""Each call that changes a file of the output fails, alone or with all later ones.
Either the exit code is 0 and the output is complete, or the dataset is unchanged; where
only the folder's names were not written to disk, the output is complete, and the error
states it.  The next run leaves no temporary file.  With OGRJOIN_TEST_LONG=1 all calls fail in turn,
otherwise some of each kind."""

import errno
import sqlite3

from e2e import *

CALLS = ("pwrite", "write", "fwrite", "fsync", "ftruncate", "open", "rename", "unlink")
SOME = 2  # number of calls of each kind that fail per command, unless all do


def library():
    path = os.environ.get("FAILING_IO", "")
    if not os.path.exists(path):
        raise Skip("no FAILING_IO, which the build makes of failing_io.c")
    loaded = subprocess.run(["ldd", OGRJOIN], stdout=subprocess.PIPE, check=False)
    if b"libasan" in loaded.stdout:
        raise Skip("the sanitizers want to be loaded first")
    return path


def state_of(path):
    """Returns the contents of the file without times. A database is first rolled back
    by SQLite, must pass its integrity check, and is returned table by table."""
    if not os.path.exists(path):
        return None
    if not path.endswith((".gpkg", ".sqlite")):
        return digest(path)
    database = sqlite3.connect(path)
    same(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)], path)
    tables = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' "
                              "ORDER BY 1").fetchall()
    found = [database.execute("SELECT type, name, sql FROM sqlite_master "
                              "ORDER BY 1, 2").fetchall()]
    for name, sql in tables:
        if "VIRTUAL" in (sql or ""):
            continue  # its rows are in tables beside it
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')
                   if row[1] != "last_change"]
        named = ", ".join(f'"{c}"' for c in columns)
        found.append((name, sorted(database.execute(f'SELECT {named} FROM "{name}"'),
                                   key=repr)))
    database.close()
    return found


def old_layers(path):
    join(path, "first.fgb", "lots.fgb", "-nln", "old")
    if path.endswith((".gpkg", ".sqlite")):
        join("-update", path, "first.fgb", "lots.fgb", "-nln", "kept")


def with_log(path):
    old_layers(path)
    database = sqlite3.connect(path)
    same(database.execute("PRAGMA journal_mode = wal").fetchone(), ("wal",))
    database.close()


def columns_to_be(path):
    points_file(path, n=60)


# Name, file, function that makes the file, and words of the run.
SIDES = ("points.fgb", "lots.fgb")
CASES = (
    ("append", "o.gpkg", old_layers, ("-append", "-nln", "old", None, *SIDES)),
    ("append past a log", "o.gpkg", with_log, ("-append", "-nln", "old", None, *SIDES)),
    ("append", "o.sqlite", old_layers, ("-append", "-nln", "old", None, *SIDES)),
    ("in place", "o.gpkg", columns_to_be, ("-in_place", None, "lots.fgb")),
    ("overwrite a layer", "o.gpkg", old_layers,
     ("-overwrite", "-nln", "old", None, *SIDES)),
    ("add a layer", "o.gpkg", old_layers, ("-update", "-nln", "new", None, *SIDES)),
    *(("overwrite", f"o.{end}", lambda path: join(path, "first.fgb", "lots.fgb"),
       ("-overwrite", None, *SIDES)) for end in ("gpkg", "fgb", "csv", "geojson")),
)


class Case:
    library = ""  # for LD_PRELOAD, before the C library

    def __init__(self, name, file, make_it, words, lanes):
        self.name = f"{name} {file}, lanes {lanes}"
        self.folder = os.path.realpath("out")
        self.path = os.path.join(self.folder, file)
        self.words = [self.path if word is None else word for word in words]
        self.lanes = lanes
        shutil.rmtree("out", ignore_errors=True)
        shutil.rmtree("old", ignore_errors=True)
        os.mkdir("out")
        make_it(self.path)
        shutil.copytree("out", "old")
        self.before = state_of(self.path)
        self.run()
        self.after = state_of(self.path)
        true(self.before != self.after, self.name)

    def reset(self):
        shutil.rmtree(self.folder)
        shutil.copytree("old", self.folder)

    def run(self, call=None, n=0, code=errno.EIO, sticky=False):
        self.reset()
        env = {"OGRJOIN_LANES": self.lanes}
        if call is not None:
            env.update(LD_PRELOAD=self.library, FAILING_FOLDER=self.folder + "/",
                       FAILING_CALL=call, FAILING_N=str(n), FAILING_ERRNO=str(code),
                       FAILING_COUNT=os.path.abspath("count"))
            if sticky:
                env["FAILING_STICKY"] = "1"
        return run("-op", "nearest", "-q", *self.words, env=env)

    def count(self, call):
        r = self.run(call)
        same(r.rc, 0, str(r))
        with open("count", encoding="utf-8") as file:
            return int(file.read())

    def check(self, call, n, code, sticky):
        what = f"{self.name}: {call} {n}, errno {code}, {'all' if sticky else 'once'}"
        r = self.run(call, n, code, sticky)
        true(r.rc in (0, 1), f"{what}: {r}")
        found = state_of(self.path)
        # After its last step, which writes the folder's names to disk, the output is there.
        is_there = r.rc == 0 or "ERROR 1: the output is complete, but a power failure" in r.err
        true(found == (self.after if is_there else self.before), f"{what}: {r}")
        true(r.rc == 0 or r.err.count("ERROR") == 1, f"{what}: {r}")
        if os.listdir(self.folder) != [os.path.basename(self.path)]:
            r = run("-op", "nearest", "-q", *self.words, env={"OGRJOIN_LANES": self.lanes})
            left = [name for name in os.listdir(self.folder)
                    if not name.endswith(("-wal", "-shm"))]
            same(left, [os.path.basename(self.path)], f"{what}, and the next run: {r}")


def numbers(n):
    """Returns the numbers 1 to n, or some of them."""
    if IS_LONG or n <= SOME:
        return range(1, n + 1)
    return sorted(random.Random(n).sample(range(1, n + 1), SOME))


def check_every_call_that_writes():
    Case.library = library()
    points_file("points.fgb", n=60)
    points_file("first.fgb", n=30)
    lots_file("lots.fgb")
    n_faults, failures = 0, []
    for case in CASES:
        n_before = n_faults
        for lanes in ("YES", "NO"):
            if not IS_LONG and lanes == "NO" and not case[0].startswith(("append", "in")):
                continue
            tried = Case(*case, lanes)
            for call in CALLS:
                faults = ((errno.EIO, False), (errno.ENOSPC, True))
                for n in numbers(tried.count(call)):
                    for code, sticky in faults:
                        n_faults += 1
                        try:
                            tried.check(call, n, code, sticky)
                        except AssertionError as why:
                            failures.append(str(why))
                            print(why, flush=True)
        print(f"{case[0]} {case[1]}: {n_faults - n_before} faults", flush=True)
    print(f"{n_faults} faults, {len(failures)} not as they should be")
    same(failures[:3], [], f"of {len(failures)}")


if __name__ == "__main__":
    main(globals())
