"""Writes a folder of GeoParquet 1.1 that appears complete or not at all.

    .NAME.ogrjoin-JOB/        part-0000000003-TOKEN.parquet: one for each attempt of a task
    .NAME.ogrjoin-JOB.whole/  part-00003.parquet: one for each task with rows
    .NAME.ogrjoin-JOB.former/ the replaced output, between two renamings
    NAME/

Tasks write() into the first folder.  commit() moves the files of the attempts that
count to the second one, which late attempts do not write to, and renames it to NAME.
A job that fails or is killed leaves the former output as it was; the next job of this
user removes its folders. The new folder takes the permissions of the folder that it
replaces. Only one job at a time may write to an output.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import secrets
import stat
from typing import Any, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from .._errors import InvalidError
from .._joined import COMPLETE, ROW_GROUP_ROWS, geo_metadata, parquet_writer, sync_folder
from .._scan import extension_of
from . import boxes as _boxes
from .footers import open_filesystem

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_BOX = pa.struct([pa.field(side, pa.float64()) for side in _SIDES])
_OBJECT_STORES = ("s3", "gcs", "abfs")  # cannot rename folders


def _box_column(boxes: Any) -> Any:
    columns = [pa.array(np.ascontiguousarray(boxes[:, i])) for i in range(4)]
    # Infinite boxes are written, not NULL: statistics without them would let
    # readers skip their row groups.
    nowhere = pa.array(_boxes.is_nowhere(boxes))
    return pa.StructArray.from_arrays(columns, fields=list(_BOX), mask=nowhere)


def _collect_row_groups(batches: Iterable[Any]) -> Iterator[Any]:
    """Collects batches into tables that have at least the rows of a row
    group."""
    kept: list[Any] = []
    n = 0
    for batch in batches:
        if len(batch):
            kept.append(batch)
            n += len(batch)
        if n >= ROW_GROUP_ROWS:
            yield pa.Table.from_batches(kept)
            kept, n = [], 0
    if kept:
        yield pa.Table.from_batches(kept)


def _is_leftover(filesystem: Any, file: Any, name: str) -> bool:
    """Returns True if a job of this user left the folder.  In a shared folder
    other users may create entries of such a name, even links to folders of
    this user."""
    kinds = r"(\.whole|\.former)?"
    if not re.fullmatch(rf"\.{re.escape(name)}\.ogrjoin-[0-9a-f]{{16}}{kinds}", file.base_name):
        return False
    if filesystem.type_name != "local":
        return True
    status = os.lstat(file.path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _copy_permissions(filesystem: Any, folder: str, made: str) -> None:
    """Gives the new folder `made` the permissions of `folder`, which it will replace.
    Its owner can always read, write and search it."""
    if filesystem.type_name == "local" and os.path.isdir(folder):
        with contextlib.suppress(OSError):  # a disk without permissions
            os.chmod(made, stat.S_IMODE(os.stat(folder).st_mode) | stat.S_IRWXU)


class ParquetOutput:
    """The output of a job.  It is pickled and sent to the tasks.

    boxes       the column with the boxes of the geometries; None: boxes are computed
    overwrite   True: replaces an existing folder; False: an existing folder is an error
    """

    def __init__(
        self,
        path: str,
        schema: Any,
        geometry: str | None,
        *,
        boxes: str | None = None,
        overwrite: bool = False,
    ) -> None:
        self._path, self._overwrite = os.fspath(path), overwrite
        self.schema = schema.remove_metadata()
        self._geo = geo_metadata(schema, geometry)
        self._geometry: str | None = self._geo.get("primary_column")
        self._box, self._has_box = boxes, boxes is not None
        if self._geometry is not None and self._is_wkb():
            if boxes is None:
                self._box = "bbox" if "bbox" not in schema.names else f"{self._geometry}_bbox"
            covering = {"bbox": {side: [self._box, side] for side in _SIDES}}
            self._geo["columns"][self._geometry]["covering"] = covering
        self._job = secrets.token_hex(8)

    def _is_wkb(self) -> bool:
        field = self.schema.field(self._geometry)
        return extension_of(field) in ("", "geoarrow.wkb")

    def _output_paths(self) -> tuple[Any, str, str, str]:
        """Returns (file system, folder, folder of attempts, name for the
        replaced output)."""
        filesystem, folder = open_filesystem(self._path)
        folder = folder.rstrip("/")
        parent, _, name = folder.rpartition("/")
        temporary = f"{parent}/.{name}.ogrjoin-{self._job}"
        return filesystem, folder, temporary, f"{temporary}.former"

    def _leftovers(self, filesystem: Any, folder: str) -> list[Any]:
        parent, _, name = folder.rpartition("/")
        selector = pyarrow.fs.FileSelector(parent or "/", allow_not_found=True)
        there = filesystem.get_file_info(selector)
        return [file for file in there if _is_leftover(filesystem, file, name)]

    def begin(self) -> None:
        """Removes folders that earlier jobs left.  Call it before the first
        task."""
        filesystem, folder, temporary, _ = self._output_paths()
        kind = filesystem.get_file_info(folder).type
        for left in self._leftovers(filesystem, folder):
            if left.base_name.endswith(".former") and kind == pyarrow.fs.FileType.NotFound:
                filesystem.move(left.path, folder)  # its job was killed between two renames
                kind = pyarrow.fs.FileType.Directory
            else:
                filesystem.delete_dir(left.path)
        if kind == pyarrow.fs.FileType.File:
            raise InvalidError(f"{self._path} is a file: name a folder for the output")
        if kind == pyarrow.fs.FileType.Directory and not self._overwrite:
            raise InvalidError(f"{self._path} exists: remove it, or write overwrite=True")
        parent = folder.rpartition("/")[0] or "/"
        if filesystem.type_name == "local" and not os.path.isdir(parent):
            raise InvalidError(f"{self._path}: there is no folder {parent}: make it first")
        filesystem.create_dir(temporary, recursive=True)
        _copy_permissions(filesystem, folder, temporary)

    def _makes_box(self) -> bool:
        return self._box is not None and not self._has_box

    def _written_schema(self) -> Any:
        schema = self.schema
        if self._makes_box():
            schema = schema.append(pa.field(self._box, _BOX))
        if self._geo:
            schema = schema.with_metadata({b"geo": json.dumps(self._geo).encode()})
        return schema

    def write(self, part: int, batches: Iterable[Any]) -> tuple[str, int]:
        """Writes the rows of a task to the temporary folder; returns (file name, rows).
        part is a number for the name of the file. A task without rows writes no file,
        and the name is ""."""
        filesystem, _, temporary, _ = self._output_paths()
        name = f"part-{part:010d}-{secrets.token_hex(4)}.parquet"
        path, whole = f"{temporary}/{name}", False
        file: Any = None
        schema, makes_box = self._written_schema(), self._makes_box()

        def written_table(table: Any) -> Any:
            columns = list(table.columns)
            if makes_box:
                columns.append(_box_column(_boxes.of_table(table, self._geometry)))
            return pa.Table.from_arrays(columns, schema=schema)

        tables = map(written_table, _collect_row_groups(batches))
        try:
            first = next(tables, None)
            if first is None:
                return "", 0
            file = filesystem.open_output_stream(path)
            writer = parquet_writer(file, schema)
            # Not on a second thread: a task has one core, and a table that
            # waits takes memory.
            n_rows = 0
            for table in itertools.chain([first], tables):
                writer.write_table(table, ROW_GROUP_ROWS)
                n_rows += len(table)
            writer.close()
            file.close()
            if filesystem.type_name == "local":
                _sync(path)
            whole = True
        finally:
            if not whole and file is not None:
                file.close()
                filesystem.delete_file(path)
        return name, n_rows

    def commit(self, names: Iterable[str]) -> None:
        """Makes the files of these names the output, and removes all others.
        Without names, writes one file that has the columns but no rows."""
        filesystem, folder, temporary, former = self._output_paths()
        is_there = filesystem.get_file_info(folder).type != pyarrow.fs.FileType.NotFound
        if is_there and not self._overwrite:
            raise InvalidError(
                f"{self._path} was created while the join ran: remove it, or write overwrite=True"
            )
        kept = sorted(name for name in names if name)
        if not kept:
            kept = ["part-none.parquet"]
            with filesystem.open_output_stream(f"{temporary}/{kept[0]}") as file:
                pyarrow.parquet.write_table(self._written_schema().empty_table(), file)
            if filesystem.type_name == "local":
                _sync(f"{temporary}/{kept[0]}")
        width = max(5, len(str(len(kept))))  # the order of names is the order of parts
        parts = [f"part-{i:0{width}d}.parquet" for i in range(len(kept))]
        if filesystem.type_name in _OBJECT_STORES:
            if is_there:
                filesystem.delete_dir(folder)
            for name, part in zip(kept, parts):
                filesystem.move(f"{temporary}/{name}", f"{folder}/{part}")
        else:
            whole = f"{temporary}.whole"
            filesystem.create_dir(whole)
            _copy_permissions(filesystem, folder, whole)
            for name, part in zip(kept, parts):
                filesystem.move(f"{temporary}/{name}", f"{whole}/{part}")
            _sync_names(filesystem, whole)
            self._publish(filesystem, folder, whole, former if is_there else None)
        _remove(filesystem, temporary)

    def _publish(self, filesystem: Any, folder: str, whole: str, former: str | None) -> None:
        """Renames whole to folder.  An existing folder is first renamed to
        former; former is None if there is none."""
        if former is not None:
            filesystem.move(folder, former)
        filesystem.move(whole, folder)
        _sync_names(filesystem, folder.rpartition("/")[0] or "/", COMPLETE)
        if former is not None:
            _remove(filesystem, former)

    def abort(self) -> None:
        """Removes the files that tasks have written.  If a failed commit() has
        renamed the former output, it gets its name back."""
        filesystem, folder, temporary, former = self._output_paths()
        kinds = [filesystem.get_file_info(path).type for path in (folder, former)]
        if kinds == [pyarrow.fs.FileType.NotFound, pyarrow.fs.FileType.Directory]:
            filesystem.move(former, folder)
        for path in (temporary, f"{temporary}.whole"):
            if filesystem.get_file_info(path).type != pyarrow.fs.FileType.NotFound:
                _remove(filesystem, path)


def _remove(filesystem: Any, folder: str) -> None:
    """Removes a folder as far as possible.  An attempt that has not ended yet
    may still create a file there; the next job removes it."""
    try:
        filesystem.delete_dir(folder)
    except OSError:
        pass


def _sync_names(filesystem: Any, folder: str, state: str = "") -> None:
    if filesystem.type_name == "local":
        sync_folder(folder, state)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
