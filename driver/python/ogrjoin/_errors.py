"""Exceptions of the package; each is also a built-in exception of Python."""

import threading
from enum import IntEnum

MAIN_THREAD = threading.main_thread().ident  # the only thread that runs signal handlers


class Status(IntEnum):
    """The values of enum ogrjoin_status of the C library."""

    ARGUMENT = 1
    NO_MEMORY = 2
    LIMIT = 3
    DATA = 4
    IO = 5
    UNSUPPORTED = 6
    NO_DEVICE = 7
    CANCELLED = 8
    INTERNAL = 9
    TOO_MANY = 10


class Error(Exception):
    """A join failed; status holds the cause."""

    status = Status.INTERNAL


class InvalidError(Error, ValueError):
    """An argument is invalid, or the data are invalid or too large."""


class UnsupportedError(Error, NotImplementedError):
    """Each argument is valid by itself, but this version cannot join with all of them
    together."""


class NoMemoryError(Error, MemoryError):
    """An allocation failed."""


class InputError(Error, OSError):
    """A file or a stream could not be read."""


_CLASSES: dict[Status, type[Error]] = {
    Status.ARGUMENT: InvalidError,
    Status.NO_MEMORY: NoMemoryError,
    Status.LIMIT: InvalidError,
    Status.DATA: InvalidError,
    Status.IO: InputError,
    Status.UNSUPPORTED: UnsupportedError,
    Status.TOO_MANY: InvalidError,
}


def make(status: int, message: str) -> Error:
    """Returns the exception for a status of the C library."""
    head, _, detail = message.partition(". Detail: Python exception: ")
    # raised by these modules, and given a traceback by Arrow
    if any(f'{module}.py", line' in detail for module in ("_scan", "footers")):
        message = head
    error = _CLASSES.get(Status(status), Error)(message)
    error.status = Status(status)
    return error
