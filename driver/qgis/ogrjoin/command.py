"""Finding the command ogrjoin and running it: progress, messages, cancel."""

import functools
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

from osgeo import ogr
from qgis.core import QgsProcessingException, QgsProcessingUtils

SETTING = "OGRJOIN_COMMAND"
EXIT_COMPLETE = 0
EXIT_DIFFERENT = 3  # -validate found a difference
POLL_S = 0.1
PATIENCE_S = 5.0  # of a command that was interrupted; it takes one at most


# --- what is there -------------------------------------------------------


def _configured():
    """The command that the setting, or the environment, names; else None."""
    try:
        from processing.core.ProcessingConfig import ProcessingConfig

        setting = ProcessingConfig.getSetting(SETTING)
    except ImportError:
        setting = None
    return setting or os.environ.get(SETTING) or None


def find_command():
    """The path of the command and "", or None and what to do about that."""
    name = _configured()
    path = shutil.which(os.path.expanduser(name or "ogrjoin"))
    if path is not None:
        return path, ""
    if name is None:
        return None, (
            "The command ogrjoin is not in the PATH. Install it, or name it in "
            "Settings > Options > Processing > Providers > ogrjoin (or in the "
            f"environment variable {SETTING})."
        )
    return None, (
        f"The command ogrjoin is said to be {name}, but that is no program. "
        "Correct it in Settings > Options > Processing > Providers > ogrjoin "
        f"(or in the environment variable {SETTING})."
    )


def words_after(option):
    """The words that can follow an option, or the lines of the table of the
    parameters of joins ("--parameters"); none without the command."""
    path = find_command()[0]
    return _complete(path, option) if path is not None else ()


@functools.lru_cache(maxsize=None)
def _complete(path, option):
    try:
        done = subprocess.run(
            [path, "--complete", option],
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(done.stdout.decode("utf-8", "replace").splitlines())


def explain_missing_driver():
    """"" when QGIS can open live layers, else what to do about that."""
    if ogr.GetDriverByName("JOIN") is not None:
        return ""
    return (
        "GDAL has no driver JOIN here, so QGIS cannot open a live layer. "
        "Install ogr_JOIN.so where GDAL looks for plugins, or name its folder "
        "in the environment variable GDAL_DRIVER_PATH, and start QGIS again."
    )


# --- what the command says -------------------------------------------------


class Progress:
    """Reads what GDALTermProgress writes ("0...10...20 ... - done."), which
    comes in pieces of any length. span: the part of the bar that is filled."""

    def __init__(self, feedback, span=(0.0, 100.0)):
        self.feedback = feedback
        self.begin, self.end = span
        self.text = ""

    def take(self, piece):
        self.text += piece.decode("ascii", "replace")
        percent = self.percent()
        if percent is not None:
            self.show(percent)
        # A bar that is full is followed by the next one, if any.
        self.text = self.text.rpartition("\n")[2]

    def finish(self):
        pass

    def show(self, percent):
        part = (self.end - self.begin) * percent / 100.0
        self.feedback.setProgress(self.begin + part)

    def percent(self):
        if "done" in self.text:
            return 100.0
        # The last number may be cut in two: what counts is followed by a dot.
        found = re.findall(r"(\d+)(\.+)", self.text)
        if not found:
            return None
        number, dots = found[-1]
        return min(100.0, int(number) + 2.5 * len(dots))


class Messages:
    """Lines of stderr, handed on as they come, by kind. Keeps the errors."""

    def __init__(self, feedback):
        self.feedback = feedback
        self.rest = b""
        self.errors = []

    def take(self, piece):
        *lines, self.rest = (self.rest + piece).split(b"\n")
        for line in lines:
            self.say(line)

    def finish(self):
        self.say(self.rest)
        self.rest = b""

    def say(self, line):
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        error = re.match(r"ERROR \d+: (.*)", text)
        warning = re.match(r"Warning \d+: (.*)", text)
        if error:
            self.errors.append(error.group(1))
            self.feedback.reportError(text)
        elif warning:
            self.feedback.pushWarning(warning.group(1))
        else:
            self.feedback.pushInfo(text)

    def reason(self):
        return self.errors[-1] if self.errors else None


# --- running ---------------------------------------------------------------


def _pass_on(stream, reader, pieces):
    """Runs in a thread: what comes from stream goes into the queue as pieces of
    reader, and (reader, None) in the end."""
    while True:
        piece = os.read(stream.fileno(), 65536)
        pieces.put((reader, piece or None))
        if not piece:
            return


def _follow(process, readers, feedback):
    """Until the process has closed its streams: the readers get what it says,
    on this thread, on which alone the feedback may be used."""
    pieces = queue.Queue()
    for stream, reader in readers:
        threading.Thread(
            target=_pass_on, args=(stream, reader, pieces), daemon=True
        ).start()
    n_open, killed_at = len(readers), None
    while n_open > 0:
        if feedback.isCanceled() and killed_at is None:
            # It then removes what it has begun to write.
            process.send_signal(signal.SIGINT)
            killed_at = time.monotonic() + PATIENCE_S
        if killed_at is not None and time.monotonic() > killed_at:
            process.kill()
            killed_at = float("inf")
        try:
            reader, piece = pieces.get(timeout=POLL_S)
        except queue.Empty:
            continue
        if piece is None:
            reader.finish()
            n_open -= 1
        else:
            reader.take(piece)


def run(words, feedback, may_end_with=(EXIT_COMPLETE,), span=(0.0, 100.0)):
    """Runs ogrjoin with these words and gives its exit code; None when the user
    has cancelled. Raises QgsProcessingException when it is none of
    may_end_with."""
    path, problem = find_command()
    if path is None:
        raise QgsProcessingException(problem)
    words = [str(word) for word in words]
    feedback.pushCommandInfo(" ".join(map(shlex.quote, [path, *words])))
    messages = Messages(feedback)
    try:
        process = subprocess.Popen(
            [path, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as why:
        raise QgsProcessingException(
            f"{path} cannot be started: {why.strerror}."
        ) from None
    with process:
        try:
            readers = (
                (process.stdout, Progress(feedback, span)),
                (process.stderr, messages),
            )
            _follow(process, readers, feedback)
        except BaseException:  # nobody would wait for it any more
            process.kill()
            raise
        code = process.wait()
    if feedback.isCanceled():
        return None
    if code in may_end_with:
        return code
    if code < 0:
        raise QgsProcessingException(
            messages.reason() or f"ogrjoin was ended by the signal {-code}."
        )
    raise QgsProcessingException(
        messages.reason() or f"ogrjoin ended with the code {code}."
    )


def run_and_sum_up(words, feedback, **how):
    """Runs it and gives its summary too; None and {} when cancelled."""
    path = QgsProcessingUtils.generateTempFilename("summary.json")
    code = run(["-progress", "-json_summary", path, *words], feedback, **how)
    if code is None:
        return None, {}
    with open(path, encoding="utf-8") as file:
        return code, json.load(file)
