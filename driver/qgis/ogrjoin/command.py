"""Finds and runs the command ogrjoin: progress, messages, cancellation."""

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
PATIENCE_S = 5.0  # after this, an interrupted command is killed; it normally ends within 1 s


# --- the command and its tables --------------------------------------------


def _configured_command_path():
    """Returns the command that the setting or the environment variable names,
    or None."""
    try:
        from processing.core.ProcessingConfig import ProcessingConfig

        setting = ProcessingConfig.getSetting(SETTING)
    except ImportError:
        setting = None
    return setting or os.environ.get(SETTING) or None


def find_command():
    """Returns the command's path and "", or None and an instruction."""
    name = _configured_command_path()
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
        f"The command ogrjoin is configured as {name}, which is not a program. "
        "Correct it in Settings > Options > Processing > Providers > ogrjoin "
        f"(or in the environment variable {SETTING})."
    )


def words_after(option):
    """Returns the arguments that can follow an option, or () if the command is
    missing. After "--parameters" these are the lines of the table of join
    parameters."""
    path = find_command()[0]
    return _run_completion(path, option) if path is not None else ()


@functools.lru_cache(maxsize=None)
def _run_completion(path, option):
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
    """Returns "" if QGIS can open live layers, else an instruction."""
    if ogr.GetDriverByName("JOIN") is not None:
        return ""
    return (
        "GDAL has no driver JOIN here, so QGIS cannot open a live layer. "
        "Install ogr_JOIN.so where GDAL looks for plugins, or name its folder "
        "in the environment variable GDAL_DRIVER_PATH, and start QGIS again."
    )


# --- output of the command -------------------------------------------------


class Progress:
    """Parses the output of GDALTermProgress ("0...10...20 ... - done."), in
    pieces of any length. span is the range of the feedback's progress for this
    run."""

    def __init__(self, feedback, span=(0.0, 100.0)):
        self.feedback = feedback
        self.begin, self.end = span
        self.text = ""

    def take(self, piece):
        self.text += piece.decode("ascii", "replace")
        percent = self.percent()
        if percent is not None:
            self.show(percent)
        # Drops the lines before the last one: after a full bar a new bar can
        # begin.
        self.text = self.text.rpartition("\n")[2]

    def finish(self):
        pass

    def show(self, percent):
        part = (self.end - self.begin) * percent / 100.0
        self.feedback.setProgress(self.begin + part)

    def percent(self):
        if "done" in self.text:
            return 100.0
        # The last number may be incomplete, unless a dot follows it.
        found = re.findall(r"(\d+)(\.+)", self.text)
        if not found:
            return None
        number, dots = found[-1]
        return min(100.0, int(number) + 2.5 * len(dots))


class Messages:
    """Passes lines of stderr to the feedback by kind, and collects the errors."""

    def __init__(self, feedback):
        self.feedback = feedback
        self.rest = b""
        self.errors = []

    def take(self, piece):
        *lines, self.rest = (self.rest + piece).split(b"\n")
        for line in lines:
            self.report_line(line)

    def finish(self):
        self.report_line(self.rest)
        self.rest = b""

    def report_line(self, line):
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


def _queue_stream_output(stream, reader, pieces):
    """Reads stream until its end, in a thread of its own. Puts (reader, bytes)
    into the queue for each piece, and (reader, None) at the end."""
    while True:
        piece = os.read(stream.fileno(), 65536)
        pieces.put((reader, piece or None))
        if not piece:
            return


def _pass_output_to_readers(process, readers, feedback):
    """Passes the process's output to the readers until the process closes its
    streams. The readers run on this thread, the only one that may use the
    feedback."""
    pieces = queue.Queue()
    for stream, reader in readers:
        threading.Thread(
            target=_queue_stream_output, args=(stream, reader, pieces), daemon=True
        ).start()
    n_open, killed_at = len(readers), None
    while n_open > 0:
        if feedback.isCanceled() and killed_at is None:
            # On this signal the command removes its unfinished output.
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
    """Runs ogrjoin with these arguments and returns its exit code, or None if the
    user cancelled. Raises QgsProcessingException if the code is not in
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
            f"{path} cannot be started: {why.strerror}. Install ogrjoin again, or "
            "correct its path in the settings."
        ) from None
    with process:
        try:
            readers = (
                (process.stdout, Progress(feedback, span)),
                (process.stderr, messages),
            )
            _pass_output_to_readers(process, readers, feedback)
        except BaseException:  # the process must not outlive this function
            process.kill()
            raise
        code = process.wait()
    if feedback.isCanceled():
        return None
    if code in may_end_with:
        return code
    if code < 0:
        raise QgsProcessingException(
            messages.reason()
            or f"ogrjoin was ended by the signal {-code}: another program has stopped "
            "it, or memory was short. Free memory and run it again."
        )
    raise QgsProcessingException(
        messages.reason()
        or f"ogrjoin ended with the code {code} and gave no reason: run the command "
        "of the log in a terminal."
    )


def run_and_sum_up(words, feedback, **how):
    """Runs ogrjoin. Returns its exit code and summary, or None and {} if the
    user cancelled."""
    path = QgsProcessingUtils.generateTempFilename("summary.json")
    code = run(["-progress", "-json_summary", path, *words], feedback, **how)
    if code is None:
        return None, {}
    with open(path, encoding="utf-8") as file:
        return code, json.load(file)
