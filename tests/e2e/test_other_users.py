"""Folders in which other users may write.  Those users create files and links under
names that this program uses.  The program does not follow, remove or write them."""

import pwd
import signal
import stat

from e2e import *

# SQL for an endless number of rows, made from the few rows of a GeoPackage.
ENDLESS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT points.geom, points.name, c.x FROM c CROSS JOIN points"
)
HOUR_AGO = time.time() - 3600


def victim(name="victim"):
    """Makes a folder of this user with two files, and a file .lock of another program.
    Returns contents() of the folder."""
    os.makedirs(f"{name}/sub", mode=0o700)
    for path in ("thesis.txt", "sub/other.txt", ".lock"):
        with open(f"{name}/{path}", "w", encoding="ascii") as file:
            file.write("precious")
    os.utime(name, (HOUR_AGO, HOUR_AGO))
    return contents(name)


def contents(folder):
    found = {}
    for where, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(where, name)
            with open(path, encoding="ascii") as file:
                found[path] = file.read()
    return found


def temporaries(folder="."):
    return sorted(x for x in os.listdir(folder) if ".ogrjoin-" in x)


def as_nobody(work):
    """Calls work() as another user."""
    user = pwd.getpwnam("nobody")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            work()
            code = 0
        except Exception:  # the parent sees the code
            traceback.print_exc()
        finally:
            os._exit(code)
    same(os.waitpid(child, 0)[1], 0, "the other user's work")


def need_two_users():
    if os.getuid() != 0:
        raise Skip("only root is two users")


def shared_folder(mode=0o1777):
    """Makes a folder in which all users may write, and the layers beside it. Returns
    the paths of the layers."""
    os.chmod(".", 0o755)
    os.mkdir("shared")
    os.chmod("shared", mode)
    return layers()


def lock_file(folder, name=None):
    """Writes the lock file of a run, which contains the name of its folder."""
    with open(f"{folder}/.lock", "w", encoding="ascii") as file:
        file.write(name if name is not None else os.path.basename(folder))


def plant(mode, target):
    """Makes a link and files that look like the folder of a dead run for
    shared/out.gpkg. The calling user owns them. Links point to target. mode is that of
    the folders."""
    os.umask(0o022)
    start = "shared/.out_gpkg.ogrjoin-"

    def folder(name):
        os.mkdir(start + name, mode)
        os.chmod(start + name, mode)
        return start + name

    os.symlink(target, folder("nolock") + "/x")
    locked = folder("locked")
    os.symlink(target, locked + "/x")
    lock_file(locked)
    linked = folder("linked")
    os.symlink(target, linked + "/x")
    os.symlink(f"{target}/.lock", linked + "/.lock")
    os.mkfifo(folder("fifo") + "/.lock")
    os.mkdir(folder("folder") + "/.lock")
    for name in ("nolock", "locked", "linked", "fifo", "folder"):
        os.utime(start + name, (HOUR_AGO, HOUR_AGO))
    os.symlink(target, start + "link")


def check_links_of_another_user():
    need_two_users()
    before = victim()
    target = os.path.abspath("victim")
    for sticky in (0o1777, 0o777):
        w = shared_folder(sticky)
        for mode in (0o700, 0o777):
            as_nobody(lambda mode=mode: plant(mode, target))
            planted = temporaries("shared")
            same(len(planted), 6)
            join("shared/out.gpkg", *w)
            same(contents("victim"), before, f"sticky {sticky:o}, folders {mode:o}")
            same(temporaries("shared"), planted, "what is another user's stays")
            same(len(Layer("shared/out.gpkg").rows), 50)
            shutil.rmtree("shared")
            os.mkdir("shared")
            os.chmod("shared", sticky)
        shutil.rmtree("shared")


def check_links_of_this_user():
    """The program follows no link in a folder, whoever made it. It removes only those
    directory entries that are certainly those of a dead run."""
    before = victim()
    w = shared_folder()
    plant(0o700, os.path.abspath("victim"))
    join("shared/out.gpkg", *w)
    same(contents("victim"), before)
    same([x.split("-")[1] for x in temporaries("shared")],
         ["fifo", "folder", "link", "linked", "nolock"], "all but the dead run's")
    shutil.rmtree("shared")
    os.mkdir("shared")
    plant(0o777, os.path.abspath("victim"))
    join("shared/out.gpkg", *w)
    same(contents("victim"), before)
    same(len(temporaries("shared")), 6, "others may have written in all of them")


def check_renamed_folders():
    """Other users may rename. They give a folder of this user, which has a .lock of another
    program, the name of a dead run's folder."""
    w = shared_folder(0o777)
    name = "shared/.out_gpkg.ogrjoin-renamed"
    before = victim(name)
    join("shared/out.gpkg", *w)
    same(contents(name), before)


def check_a_dead_run_is_swept():
    w = shared_folder()
    folder = "shared/.out_gpkg.ogrjoin-dead"
    os.makedirs(folder + "/layers/deep", mode=0o700)
    os.symlink("..", folder + "/layers/up")
    for path in ("/out.gpkg", "/layers/deep/a"):
        with open(folder + path, "wb") as file:
            file.write(b"x")
    lock_file(folder)
    join("shared/out.gpkg", *w)
    same(temporaries("shared"), [])


def check_another_folder_under_the_name():
    """Another user swaps the temporary folder for a link before the output is made in
    it, mostly in time. Nothing is written or removed through the link, and the output
    does not get into another folder."""
    w = shared_folder(0o777)
    os.mkdir("victim")
    for out in ("out.fgb", "out.csv", "out.gpkg"):
        with open(f"victim/{out}", "w", encoding="ascii") as file:
            file.write("precious")
    before = contents("victim")
    target = os.path.abspath("victim")
    # the other user swaps what appears in the folder, as fast as possible
    swapper = subprocess.Popen([sys.executable, "-c", f"""
import os
n = 0
while True:
    for name in os.listdir("shared"):
        if name.startswith(".out_") and not os.path.islink("shared/" + name):
            try:
                os.rename("shared/" + name, f"shared/moved-{{n}}")
                os.symlink({target!r}, "shared/" + name)
            except OSError:
                pass
            n += 1
"""])
    started.append(swapper)
    n_swapped, end = 0, time.monotonic() + HANG_S
    while n_swapped < (30 if IS_LONG else 3) and time.monotonic() < end:
        for out in ("out.fgb", "out.csv", "out.gpkg"):
            r = run("-op", "nearest", f"shared/{out}", *w)
            true(r.rc in (0, 1), str(r))
            same(contents("victim"), before, str(r))
            if r.rc == 0:
                same(len(Layer(f"shared/{out}").rows), 50, str(r))
                os.remove(f"shared/{out}")
            for name in os.listdir("shared"):
                if os.path.islink("shared/" + name):
                    os.remove("shared/" + name)
                    n_swapped += 1
                elif name.startswith("moved-"):
                    same(os.listdir("shared/" + name), [], "what was made is gone")
    swapper.kill()
    true(n_swapped > 0, "no folder was swapped in time")


def check_temporary_folder_swapped():
    """During a run, another user moves its temporary folder away and puts a link in its
    place. Neither the end of the run nor a signal makes it follow the link."""
    w = shared_folder(0o777)
    before = victim()
    for number in (signal.SIGTERM, signal.SIGINT):
        p = start("-op", "nearest", "-batch", 500, "-sql", ENDLESS, "shared/out.gpkg", *w)
        end = time.monotonic() + HANG_S
        while n_bytes("shared/.*/*.gpkg") < 1000000:  # rows are in the file
            true(p.poll() is None and time.monotonic() < end, "the run is at work")
            time.sleep(0.01)
        (name,) = temporaries("shared")
        os.rename(f"shared/{name}", "shared/moved")
        os.symlink(os.path.abspath("victim"), f"shared/{name}")
        p.send_signal(number)
        r = finish(p)
        same(r.rc, 130, str(r))
        same(contents("victim"), before, str(r))
        same(os.listdir("shared/moved"), [], "what was written is gone")
        os.remove(f"shared/{name}")
        os.rmdir("shared/moved")


def side_files(w, out="o.gpkg"):
    """Returns a list of (option, path, words): the command `ogrjoin OPTION PATH
    WORDS..` writes the side file PATH."""
    return [
        ("-json_summary", "side.json", [out, *w]),
        ("-benchmark_csv", "side.csv",
         ["-benchmark", "-benchmark_seconds", 0.01, *w]),
        ("-validate_report", "side_report.csv", ["-validate", out, *w]),
        ("-write_spec", "side.ogrjoin", w),
    ]


def check_side_files_follow_no_link():
    """A temporary name such as PATH.ogrjoin-PID could be guessed, and a link under that
    name would be followed. So names are random. If one exists already, another is
    used."""
    w = layers()
    with open("victim", "w", encoding="ascii") as file:
        file.write("secret")
    for option, path, words in side_files(w):
        first = os.getpid()
        links = [f"{path}.ogrjoin-{i}" for i in range(first, first + 400)]
        for link in links:
            os.symlink("victim", link)
        r = succeeds("-op", "nearest", option, path, *words)
        true(os.path.getsize(path) > 20 and not os.path.islink(path), f"{option} {r}")
        with open("victim", encoding="ascii") as file:
            same(file.read(), "secret", option)
        for link in links:
            os.remove(link)
        if os.path.exists("o.gpkg"):
            os.remove("o.gpkg")
        same(temporaries(), [], f"left behind by {option}")
        same(stat.S_IMODE(os.stat(path).st_mode), 0o666 & ~umask(), "permissions")


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_side_files_that_are_links():
    """A link of this user is followed. A link of a third user, or without a target, is
    refused before the join starts."""
    w = layers()
    with open("target", "w", encoding="ascii") as file:
        file.write("old")
    os.symlink("target", "side.json")
    join("-json_summary", "side.json", "o.gpkg", *w)
    true(os.path.islink("side.json"), "the link stays")
    same(summary("target")["pairs"], 50)
    os.remove("o.gpkg")
    os.symlink("nowhere", "to_nowhere.json")
    fails("-json_summary", "to_nowhere.json", "o.gpkg", *w, message="a link whose target does not exist")
    true(not os.path.exists("nowhere"), "no file is made through a link")
    need_two_users()
    os.chmod(".", 0o777)
    target = os.path.abspath("target")
    as_nobody(lambda: os.symlink(target, "others.json"))
    before = digest("target")
    for protected in (0o777, 0o1777):
        os.chmod(".", protected)
        fails("-json_summary", "others.json", "o.gpkg", *w, message="another user")
    same(digest("target"), before)


if __name__ == "__main__":
    main(globals())
