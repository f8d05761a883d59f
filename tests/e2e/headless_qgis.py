"""QGIS without a screen, for the tests: algorithms in a PyQGIS process, and
qgis_process. need_qgis() skips a check if QGIS is not installed."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from e2e import HANG_S, HERE, OGRJOIN, Skip, same, true

PLUGINS = os.path.join(HERE, "..", "..", "driver", "qgis")
home = tempfile.mkdtemp(prefix="ogrjoin-qgis-")
atexit.register(shutil.rmtree, home, ignore_errors=True)


def find_qgis_process():
    # Debian 12 has a wrapper that passes an option which the program refuses.
    return shutil.which("qgis_process.bin") or shutil.which("qgis_process")


def environment(more=None):
    # Python inside of QGIS searches for its modules beside the first python3 in PATH.
    first = os.path.dirname(sys.executable)
    return {
        **os.environ,
        "PATH": first + os.pathsep + os.environ.get("PATH", ""),
        "HOME": home,
        "XDG_RUNTIME_DIR": home,
        "QT_QPA_PLATFORM": "offscreen",
        "QGIS_PLUGINPATH": os.path.abspath(PLUGINS),
        "OGRJOIN_COMMAND": OGRJOIN,
        "PYTHONDONTWRITEBYTECODE": "1",
        **(more or {}),
    }


def has_pyqgis():
    words = [sys.executable, "-c", "import qgis.core"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


is_there = []


def need_qgis():
    if not is_there:
        is_there.append(bool(find_qgis_process()) and has_pyqgis())
    if not is_there[0]:
        raise Skip("no QGIS here (Debian: qgis, python3-qgis)")


def city(n_pickups):
    """Makes the layers of the sample city in this folder."""
    need_qgis()
    tool = os.environ.get("MAKE_CITY")
    if not tool:
        raise Skip("no make_city: built without samples")
    words = ["-avenues", "8", "-streets", "14", "-pickups", str(n_pickups)]
    subprocess.run([tool, "-f", "GPKG", *words, "city"], check=True, capture_output=True)


def process(*words, env=None):
    """Runs qgis_process with the plugins enabled, in a QGIS profile of the tests.
    Returns the CompletedProcess."""
    words = [find_qgis_process(), *map(str, words)]
    return subprocess.run(
        words,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def enable_plugins():
    for name in ("processing", "ogrjoin"):
        r = process("plugins", "enable", name)
        same(r.returncode, 0, f"plugins enable {name}: {r.stdout} {r.stderr}")


class Session:
    """A PyQGIS process that runs jobs one after the other."""

    def __init__(self, env):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "qgis_session.py")],
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd="/",
        )

    def ask(self, job, limit_s):
        watch = threading.Timer(limit_s, self.process.kill)
        watch.start()
        try:
            print(json.dumps(job), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watch.cancel()
        if not line:
            code = self.process.wait()
            self.errors.seek(0)
            raise AssertionError(
                f"PyQGIS ends with {code}: {job}\n{self.errors.read()[-2000:]}"
            )
        return json.loads(line)

    def is_alive(self):
        return self.process.poll() is None

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


sessions = {}


def open_session(env):
    key = json.dumps(env, sort_keys=True)
    if key not in sessions or not sessions[key].is_alive():
        sessions[key] = Session(env)
        atexit.register(sessions[key].close)
    return sessions[key]


def session(jobs, env=None, limit_s=HANG_S):
    """Runs a list of jobs (algorithm, parameters[, more]) in this folder. Returns their
    answers."""
    answers = []
    for job in jobs:
        words = {"run": job[0], "parameters": job[1], "folder": os.getcwd()}
        words.update(job[2] if len(job) > 2 else {})
        answers.append(open_session(env).ask(words, limit_s))
    return answers


def results(jobs, env=None, limit_s=HANG_S):
    """Like session(), for jobs that must all succeed. Returns their results."""
    answers = session(jobs, env, limit_s)
    for job, answer in zip(jobs, answers):
        true(answer["ok"] and not answer["error"], f"{job}: {answer}")
    return answers
