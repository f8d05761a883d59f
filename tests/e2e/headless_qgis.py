"""QGIS without a screen, for the tests: algorithms in a PyQGIS process, and
qgis_process. need_qgis() skips a check where QGIS is not installed."""

import json
import os
import shutil
import subprocess
import sys

from e2e import DATA, HANG_S, HERE, OGRJOIN, Skip, same, true

PLUGINS = os.path.join(HERE, "..", "..", "driver", "qgis")


def find_qgis_process():
    # Debian 12 has a wrapper that passes an option which the program refuses.
    return shutil.which("qgis_process.bin") or shutil.which("qgis_process")


def environment(more=None):
    folder = os.path.abspath("home")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return {
        **os.environ,
        "HOME": folder,
        "XDG_RUNTIME_DIR": folder,
        "QT_QPA_PLATFORM": "offscreen",
        "QGIS_PLUGINPATH": os.path.abspath(PLUGINS),
        "OGRJOIN_COMMAND": OGRJOIN,
        "PYTHONDONTWRITEBYTECODE": "1",
        **(more or {}),
    }


def has_pyqgis():
    words = [sys.executable, "-c", "import qgis.core"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def need_qgis():
    if not find_qgis_process() or not has_pyqgis():
        raise Skip("no QGIS here (Debian: qgis, python3-qgis)")


def process(*words, env=None):
    """qgis_process; the plugins are enabled in a profile of the folder's own."""
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


def start_session(jobs, env=None):
    started = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "qgis_session.py")],
        env=environment(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = started.communicate(json.dumps(jobs), timeout=HANG_S)
    except subprocess.TimeoutExpired:
        started.kill()
        started.communicate()
        raise AssertionError(f"hangs: {jobs}") from None
    true(started.returncode == 0, f"PyQGIS ends with {started.returncode}: {err}")
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def session(jobs, env=None):
    """The answers to a list of (algorithm, parameters[, more])."""
    jobs = [
        {"run": job[0], "parameters": job[1], **(job[2] if len(job) > 2 else {})}
        for job in jobs
    ]
    answers = start_session(jobs, env)
    same(len(answers), len(jobs), "answers")
    return answers


def results(jobs, env=None):
    """The same of jobs that must all do what they are asked to."""
    answers = session(jobs, env)
    for job, answer in zip(jobs, answers):
        true(answer["ok"] and not answer["error"], f"{job}: {answer}")
    return answers
