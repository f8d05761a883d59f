"""kill -9, Ctrl-C and SIGTERM in the middle of reading, joining, writing and of an
update in place.  The old state stays, and an incomplete output is never visible."""

import glob
import hashlib
import signal
import sqlite3

from e2e import *

# SQL for an endless number of rows, made from the few rows of a GeoPackage.
ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT points.geom, points.name, c.x FROM c CROSS JOIN points"
)
# SQL for a row that never arrives, so that the driver does not return.
STUCK = (
    "SELECT geom, name FROM points WHERE (WITH RECURSIVE c(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1e15) "
    "SELECT count(*) FROM c) > 0"
)


def wait_until(condition, process, what):
    """Waits for the condition. Returns 1 if it became true while the process ran."""
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        if condition():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    process.kill()
    raise AssertionError(f"{what} never came")


def temporaries(folder="."):
    return glob.glob(os.path.join(folder, ".*ogrjoin-*"))


def is_writing(process):
    """Waits until the temporary file has rows. FlatGeobuf may write them late."""

    def has_written():
        with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
            return temporaries() and int(file.read().split()[3]) > 50000

    if not os.path.exists("/proc/self/io"):
        raise Skip("no /proc")
    true(wait_until(has_written, process, "writing"), "the run is still at work")


def has_handlers(process):
    """Returns True if the process has installed its signal handlers. Before that, a
    signal ends it at once."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        sets = [line.split()[1] for line in file if line.startswith(("SigBlk", "SigCgt"))]
    return any(int(bits, 16) >> signal.SIGINT - 1 & 1 for bits in sets)


def interrupted(process, number=signal.SIGINT):
    r, took = stop(process, number)
    same(r.rc, 130, str(r))
    errors = [x for x in r.err.splitlines() if x.startswith("ERROR")]
    same(errors, ["ERROR 1: interrupted"], str(r))
    true(took < 30, f"took {took:.0f} s of processor time")
    return r


OUTPUTS = [("o.gpkg", []), ("o.fgb", ["-lco", "SPATIAL_INDEX=NO"]), ("o.fgb", []),
           ("o.csv", []), ("o.geojson", []), ("o.shp", [])]


def check_kill_while_writing():
    """A new output file does not appear. The next run removes the temporary files of
    the killed run."""
    w = layers()
    for out, options in OUTPUTS:
        before = listing()
        p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *options, out, *w)
        is_writing(p)
        p.kill()
        finish(p)
        true(not os.path.exists(out), f"{out} is not there")
        same(len(temporaries()), 1, "what the dead run left")
        join(out, *w)
        same(len(Layer(out).rows), 50, out)
        same(temporaries(), [], "swept")
        for name in glob.glob("o.*"):
            os.remove(name)
        same(listing(), before)


def check_kill_while_overwriting():
    w = layers()
    for out, options in OUTPUTS:
        join("-limit", 3, out, *w)
        before = digest(out)
        p = start("-op", "nearest", "-batch", 500, "-overwrite", "-sql", ENDLESS,
                  "-nln", "points", *options, out, *w)
        is_writing(p)
        p.kill()
        finish(p)
        same(digest(out), before, f"{out} is the old file")
        join("-overwrite", out, *w)
        same(len(Layer(out).rows), 50, out)
        same(temporaries(), [], "swept")
        for name in glob.glob("o.*"):
            os.remove(name)


def check_signals_while_writing():
    w = layers()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for out, options in OUTPUTS[: 6 if number == signal.SIGINT else 2]:
            before = listing()
            p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *options, out, *w)
            is_writing(p)
            interrupted(p, number)
            same(listing(), before, f"left behind: {out}")
    join("-limit", 3, "o.gpkg", *w)
    before = listing()
    p = start("-op", "nearest", "-overwrite", "-nln", "points", "-sql", ENDLESS,
              "o.gpkg", *w)
    is_writing(p)
    interrupted(p)
    same(listing(), before, "the old file")


def check_signals_while_writing_a_layer():
    """A signal during -update or -append. The transaction is rolled back."""
    w = layers()
    make("d.gpkg", [("POINT (0 0)", {"name": "kept"})], layer="kept")
    before = dump("d.gpkg", "kept")
    for number in (signal.SIGINT, signal.SIGKILL):
        for words in (["-update", "-nln", "new"],
                      ["-append", "-nln", "kept", "-how", "semi", "-select", "name"]):
            p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *words,
                      "d.gpkg", *w)
            true(wait_until(lambda: n_bytes("d.gpkg*") > 3000000, p, "writing"),
                 "the run is still at work")
            if number == signal.SIGINT:
                interrupted(p)
            else:
                p.kill()
                finish(p)
                roll_back("d.gpkg")
            same(dump("d.gpkg", "kept"), before, f"{words} {number}")
            same(Layer("d.gpkg").layers, ["kept"])
    join("-update", "-nln", "new", "d.gpkg", *w)
    same(len(Layer("d.gpkg", "new").rows), 50)


def check_signals_while_the_driver_reads():
    """A signal while the driver does not return from a query."""
    w = layers()
    before = listing()
    for number in (signal.SIGINT, signal.SIGTERM):
        for words in (["-sql", STUCK], ["-join_sql", STUCK.replace("points", "lots")
                                        .replace("name", "use")]):
            p = start("-op", "nearest", *words, "o.gpkg", *w)
            true(wait_until(lambda p=p: has_handlers(p), p, "the handler"), "still at work")
            time.sleep(0.2)  # now the process reads, or is about to
            interrupted(p, number)
            same(listing(), before, "left behind")


def check_signals_while_joining():
    """A signal ends the join of one batch that would take minutes."""
    rows = [(p, {"name": "x"}) for p in random_points(20000)]
    make("many.fgb", rows, kind=ogr.wkbPoint, lco=["SPATIAL_INDEX=NO"])
    double = twin("many.fgb")
    before = listing()
    for backend in ("cpu", "geos", "spatialindex", "quadrant"):
        p = start("-op", "nearest", "-backend", backend, "-k", "10000", "-batch",
                  "20000", "o.gpkg", "many.fgb", double)
        wait_until(temporaries, p, "the start")
        time.sleep(0.3)
        true(p.poll() is None, "still at work")
        interrupted(p)
        same(listing(), before, f"left behind: {backend}")


def check_interrupt_at_any_time():
    """Whenever the signal arrives, the output is complete or missing, and the exit code
    is 0 or 130."""
    rows = [(p, {"name": "x"}) for p in random_points(8000)]
    make("points.gpkg", rows, kind=ogr.wkbPoint)
    lots_file()
    for i in range(40 if IS_LONG else 12):
        p = start("-op", "nearest", "-batch", 300, "o.gpkg", "points.gpkg", "lots.gpkg")
        time.sleep(0.02 * i)
        p.send_signal(signal.SIGINT)
        r = finish(p)
        same(temporaries(), [], str(r))
        if os.path.exists("o.gpkg"):
            same(len(Layer("o.gpkg").rows), 8000, str(r))
            true(r.rc in (0, 130), str(r))
            os.remove("o.gpkg")
        else:
            # before the handlers are installed the signal itself ends the process
            true(r.rc in (130, -signal.SIGINT), str(r))


def moments(words, n=10):
    """Runs a command to its end, and then n times with a signal, each after another part
    of the processor time of a whole run. After each run yields (how it ended, processor
    seconds since the signal), so that the caller can check the output."""
    took = []
    for _ in range(2):
        before = cpu_seconds_of_ended()
        same(finish(start(*words)).rc, 0, "a run to its end")
        took.append(cpu_seconds_of_ended() - before)
        yield None
    for i in range(n):
        p = start(*words)
        at = min(took) * (i + 0.5) / n
        if wait_until(lambda p=p, at=at: cpu_seconds(p) >= at, p, "the moment") and hold(p):
            yield stop(p, signal.SIGINT)
        else:
            finish(p)
            yield None


def check_interrupt_while_closing():
    """Indexes are built after the last row was written. A signal then ends the run
    soon, without output. At the very end of a run the output is complete."""
    rows = [(p, {"name": "x"}) for p in random_points(1000)]
    make("points.gpkg", rows, kind=ogr.wkbPoint)
    double_rows("points.gpkg", "points", 7 if IS_LONG else 6)
    lots_file()
    before = listing()
    for out in ("o.gpkg", "o.fgb", "o.geojson"):
        n_stopped = 0
        for ended in moments(["-op", "nearest", out, "points.gpkg", "lots.gpkg"]):
            if ended is not None and ended[0].rc == 130:
                same(listing(), before, f"left behind: {out}")
                true(ended[1] < 1.5, f"{out}: {ended[1]:.2f} s of processor time")
                n_stopped += 1
            elif ended is not None:
                true(ended[0].rc in (0, -signal.SIGINT), str(ended[0]))
            if os.path.exists(out):
                os.remove(out)
        # early signals come before the handlers are installed, late ones after
        # the last test of the flag
        true(n_stopped >= 1, f"{out}: none of 10 runs was stopped")


def check_complete_files_are_not_moved_after_a_signal():
    """The signal arrives while the driver closes the complete file. The file is not
    renamed to the output."""
    rows = [(p, {"name": "x"}) for p in random_points(1000)]
    make("points.gpkg", rows, kind=ogr.wkbPoint)
    double_rows("points.gpkg", "points", 6)
    lots_file()
    before = listing()
    for _ in range(20):
        p = start("-op", "nearest", "o.fgb", "points.gpkg", "lots.gpkg")
        # FlatGeobuf sorts its rows when it is closed; only then does the file
        # exist
        wait_until(lambda: glob.glob(".*ogrjoin-*/o.fgb"), p, "closing")
        if hold(p) and glob.glob(".*ogrjoin-*/o.fgb"):
            r, _ = stop(p, signal.SIGINT)
            if r.rc == 130 and not os.path.exists("o.fgb"):
                same(listing(), before)
                return
        else:
            r, _ = stop(p, signal.SIGCONT)
        # The run was past its last test of the flag.
        true(r.rc in (0, 130), str(r))
        same(len(Layer("o.fgb").rows), 64000, str(r))
        os.remove("o.fgb")
    raise AssertionError("none of 20 runs was stopped while it closed the file")


def check_interrupt_in_a_transaction():
    """A signal at any time of -update and -append, even while SQLite builds an index.
    The file is unchanged, and readers see the old state."""
    rows = [(p, {"name": "x"}) for p in random_points(1000)]
    make("points.gpkg", rows, kind=ogr.wkbPoint)
    double_rows("points.gpkg", "points", 5)
    lots_file()
    make("old.gpkg", rows[:3], layer="kept", kind=ogr.wkbPoint)
    for words in (["-update", "-nln", "new"],
                  ["-append", "-nln", "kept", "-how", "semi"]):
        shutil.copy("old.gpkg", "d.gpkg")
        before = dump("d.gpkg", "kept")
        for ended in moments(["-op", "nearest", *words, "d.gpkg", "points.gpkg",
                              "lots.gpkg"], 6):
            if ended is not None and ended[0].rc == 130:
                true(ended[1] < 1.5, f"{words}: {ended[1]:.2f} s of processor time")
                if os.path.exists("d.gpkg-journal"):
                    roll_back("d.gpkg")
                same(dump("d.gpkg", "kept"), before, f"{words}")
                same(Layer("d.gpkg").layers, ["kept"])
            shutil.copy("old.gpkg", "d.gpkg")


def roll_back(path):
    """Rolls back the journal of a killed run. Every program that opens the database for
    writing does this. Before that, GDAL cannot read it."""
    dataset = gdal.OpenEx(path, gdal.OF_UPDATE)
    dataset.GetLayer(0).GetFeatureCount()
    dataset = None


def double_rows(path, layer, times):
    dataset = gdal.OpenEx(path, gdal.OF_UPDATE)
    dataset.StartTransaction()
    for _ in range(times):
        dataset.ExecuteSQL(f"INSERT INTO {layer} (geom, name) SELECT geom, name "
                           f"FROM {layer}")
    dataset.CommitTransaction()
    dataset = None


def table(path):
    """Returns all rows of the layer and SQLite's schema, shortened, without writing."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    same(base.execute("PRAGMA quick_check").fetchall(), [("ok",)], path)
    found = hashlib.sha256()
    for query in ("SELECT * FROM points ORDER BY fid", "SELECT sql FROM sqlite_master",
                  "SELECT count(*) FROM rtree_points_geom"):
        for row in base.execute(query):
            found.update(repr(row).encode())
    base.close()
    return found.hexdigest()


def check_in_place():
    rows = [(p, {"name": f"a name {i}"}) for i, p in enumerate(random_points(1000))]
    make("points.gpkg", rows, kind=ogr.wkbPoint)
    double_rows("points.gpkg", "points", 7)
    lots_file()
    before = table("points.gpkg")
    shutil.copy("points.gpkg", "unchanged")
    n_rows = 128000
    words = ["-op", "nearest", "-in_place", "points.gpkg", "lots.gpkg"]

    def stop_in_the_middle(number, *more):
        """Stops a run when it has changed the database but not committed: the journal
        is there. A run that has committed before it could be stopped is repeated."""
        for _ in range(20):
            shutil.copy("unchanged", "points.gpkg")
            size = os.path.getsize("points.gpkg")
            changed = os.stat("points.gpkg").st_mtime_ns
            p = start(*words, *more)
            wait_until(lambda c=changed: os.stat("points.gpkg").st_mtime_ns != c, p, "writing")
            is_held = hold(p) and os.path.exists("points.gpkg-journal")
            r, _ = stop(p, number if is_held else signal.SIGCONT)
            if r.rc == (130 if number != signal.SIGKILL else -signal.SIGKILL):
                return
            true(r.rc == 0 and not (is_held and number == signal.SIGKILL),
                 f"{r}, {size} bytes before")
        raise AssertionError(f"none of 20 runs was stopped by {number}")

    for number in (signal.SIGINT, signal.SIGTERM):
        stop_in_the_middle(number)
        same(table("points.gpkg"), before, f"as before: {number}")
        same(listing().keys(), {"./points.gpkg", "./lots.gpkg", "./unchanged"}, "left behind")
    stop_in_the_middle(signal.SIGKILL)
    true(os.path.exists("points.gpkg-journal"), "in the middle")
    shutil.copy("points.gpkg", "copy.gpkg")
    shutil.copy("points.gpkg-journal", "copy.gpkg-journal")
    roll_back("copy.gpkg")
    same(table("copy.gpkg"), before, "as before: kill -9")
    # The next run of any kind finds the layer unchanged.
    r = succeeds(*words)
    true("rolled back" in r.err, str(r))
    base = sqlite3.connect("file:points.gpkg?mode=ro", uri=True)
    names = [c[0] for c in base.execute("SELECT * FROM points LIMIT 1").description]
    same(names, ["fid", "geom", "name", "join_fid", "join_distance", "use", "area"])
    same(base.execute("SELECT count(*), count(join_fid) FROM points").fetchall(),
         [(n_rows, n_rows)], "all rows are updated")
    base.close()
    # A refresh that was killed leaves the former answers. Another file can replace the database,
    # without the journal.
    before = table("points.gpkg")
    shutil.copy("points.gpkg", "unchanged")
    stop_in_the_middle(signal.SIGKILL, "-max_distance", "10")
    shutil.copy("points.gpkg", "old.gpkg")
    shutil.copy("points.gpkg-journal", "old.gpkg-journal")
    roll_back("points.gpkg")
    same(table("points.gpkg"), before, "as before the refresh")
    join("-overwrite", "old.gpkg", "points.gpkg", "lots.gpkg", "-limit", "5", "-nln",
         "points")
    same(len(Layer("old.gpkg").rows), 5)
    true(not os.path.exists("old.gpkg-journal"), "the old journal is gone")
    with open("new.gpkg-journal", "wb") as file:
        file.write(b"of another file")
    fails("new.gpkg", "points.gpkg", "lots.gpkg", "-limit", "5", message="new.gpkg-journal")


def limited(limit):
    """Returns the words before a command that set a limit of the shell."""
    return ("bash", "-c", f'ulimit {limit} && exec "$@"', "bash")


def ends_as_interrupted(process, why):
    r = finish(process)
    same(r.rc, 130, str(r))
    errors = [x for x in r.err.splitlines() if x.startswith("ERROR")]
    same(len(errors), 1, str(r))
    true(errors[0].startswith("ERROR 1: interrupted: ") and why in errors[0], str(r))


def check_file_size_limit():
    """SIGXFSZ (file size limit) ends a run like SIGTERM, wherever the limit is reached."""
    w = layers()
    join("d.gpkg", *w)
    old = digest("d.gpkg")
    before = listing()
    for kb in (1, 90, 1000):
        for out, options in OUTPUTS:
            p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *options, out, *w,
                      before=limited(f"-f {kb}"))
            ends_as_interrupted(p, "ulimit -f")
            same(listing(), before, f"{out}, {kb} KB")
    kb = os.path.getsize("d.gpkg") // 1024
    for words in (["-overwrite", "-nln", "points"], ["-update", "-nln", "new"],
                  ["-append", "-nln", "points", "-select", "name"]):
        p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *words, "d.gpkg", *w,
                  before=limited(f"-f {kb + 200}"))
        ends_as_interrupted(p, "ulimit -f")
        same(digest("d.gpkg"), old, f"{words}")
        same(listing().keys(), before.keys(), f"{words}")


def check_processor_time_limit():
    w = layers()
    before = listing()
    for out in ("o.gpkg", "o.fgb", "/vsistdout/"):
        how = ["-f", "GeoJSON"] if out == "/vsistdout/" else []
        p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *how, out, *w,
                  before=limited("-S -t 1"))
        ends_as_interrupted(p, "ulimit -t")
        same(listing(), before, out)


def check_reader_that_ends():
    """SIGPIPE: the program that reads the output, or the progress, has ended."""
    w = layers()
    before = listing()
    for words in (["-f", "GeoJSON", "/vsistdout/"], ["-f", "CSV", "/vsistdout/"],
                  ["-f", "GeoJSONSeq", "/dev/stdout"]):
        p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, *words, *w)
        true(len(os.read(p.stdout.fileno(), 20)) > 0, "it writes")
        p.stdout.close()
        p.stdout = open(os.devnull, "rb")
        ends_as_interrupted(p, "reads the output")
        same(listing(), before, f"{words}")


def check_ignored_signals():
    """Signals that the caller ignores stay ignored. The write then fails."""
    w = layers()
    before = listing()
    r = run("-op", "nearest", "-batch", 500, "-sql", ENDLESS, "o.gpkg", *w,
            before=("bash", "-c", "trap '' XFSZ; ulimit -f 130 && exec \"$@\"", "bash"))
    same(r.rc, 1, str(r))
    same(r.err.count("ERROR"), 1, str(r))
    same(listing(), before)


def check_small_stack():
    """ulimit -s limits the stack of the main thread. It is also the default for other
    threads."""
    w = layers()
    join("whole.gpkg", *w)
    for kb in (64, 128, 256):
        for out in ("o.gpkg", "o.fgb", "o.shp"):
            join(out, *w, "-validate", before=limited(f"-s {kb}"))
            same(len(Layer(out).rows), 50, f"{out}, {kb} KB")
        same(dump("o.gpkg"), dump("whole.gpkg"))
        for path in glob.glob("o.*"):
            os.remove(path)
        true("nearest" in run("--help", before=limited(f"-s {kb}")).out, "--help")


def check_two_runs_at_once():
    w = layers()
    for out, options in (("o.gpkg", []), ("o.fgb", ["-overwrite"]),
                         ("o.shp", ["-overwrite"])):
        for _ in range(3):
            runs = [start("-op", "nearest", "-batch", 3, *options, out, *w)
                    for _ in range(3)]
            results = [finish(p) for p in runs]
            true(any(r.rc == 0 for r in results), "\n".join(map(str, results)))
            for r in results:
                true(r.rc in (0, 1), str(r))
                same(r.err.count("ERROR"), r.rc, str(r))
            same(len(Layer(out).rows), 50, out)
            same(temporaries(), [], out)
            for name in glob.glob("o.*"):
                os.remove(name)


def check_dead_runs_of_others_stay():
    """A run removes only temporary files of its own output, and none of a running
    process."""
    w = layers()
    os.mkdir(".other_gpkg.ogrjoin-1")
    p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, "o.gpkg", *w)
    is_writing(p)
    join("o.gpkg", *w)
    same(sorted(map(os.path.basename, temporaries()))[-1], ".other_gpkg.ogrjoin-1")
    same(len(temporaries()), 2, "that of the run at work is still there")
    interrupted(p)
    same(len(temporaries()), 1)
    same(len(Layer("o.gpkg").rows), 50)


if __name__ == "__main__":
    main(globals())
