"""The rows of a join, as they are read."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Iterable, Iterator

import pyarrow as pa

from . import _core, _crs
from ._errors import UnsupportedError
from ._pairs import Progress
from ._scan import extension_of, with_nullable, without_epochs

ROW_GROUP_ROWS = 1 << 16  # of a Parquet file, at most
COMPLETE = "the output is complete, but a power failure may undo it: "


class _Piece:
    """A record batch as the C library exports it."""

    def __init__(self, schema: Any, array: Any) -> None:
        self._capsules = schema, array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._capsules


class _SchemaOf:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __arrow_c_schema__(self) -> Any:
        return self._capsule


class Joined:
    """The rows of a join as an Arrow stream.  Rows are made while they are
    read.  They can be read again if the left side can, and are then made
    again."""

    def __init__(
        self, rows: Any, left: Any, settings: dict[str, Any], progress: Any, index: Any
    ) -> None:
        self._rows, self._left, self._settings = rows, left, settings
        self._index = index  # index that an Index has made by _core, or None
        self._progress: Progress | None = progress
        self._next: Any = None  # (stream, its notices): started, but not read yet
        self._next, self.schema, self._geometry = self._start_join(4)

    def _start_join(self, stacklevel: int) -> Any:
        stream = self._left.reader().__arrow_c_stream__()
        joined, schema, geometry, notices = _core.join_rows(
            self._rows, stream, self._settings, self._progress, self._index
        )
        for notice in notices:
            warnings.warn(notice, UserWarning, stacklevel=stacklevel)
        del notices[:]  # those were warned of; the list gets more with the last rows
        schema = pa.schema(_SchemaOf(schema))
        return (joined, notices), schema, schema.names[geometry] if geometry >= 0 else None

    def _batches(self) -> Iterator[Any]:
        started, self._next = self._next, None
        joined, notices = self._start_join(4)[0] if started is None else started
        while (piece := _core.next_rows(joined)) is not None:
            yield pa.record_batch(_Piece(*piece))
        for notice in notices:
            warnings.warn(notice, UserWarning, stacklevel=3)

    def reader(self) -> Any:
        """Returns a pyarrow.RecordBatchReader that starts at the first row."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        """Yields record batches."""
        return self._batches()

    def read_all(self) -> Any:
        """Returns all rows as a pyarrow.Table."""
        return self.reader().read_all()

    def to_polars(self) -> Any:
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> Any:
        """Returns a DataFrame; geometries are WKB.  Its index is that of left, unless left
        had none or the unnamed 0 to n - 1; then the rows are numbered."""
        frame = with_nullable(self.read_all().replace_schema_metadata(None)).to_pandas()
        return self._left.set_index(frame)

    def to_geopandas(self) -> Any:
        """Returns a GeoDataFrame, with an index as in to_pandas()."""
        import geopandas

        table = with_nullable(self.read_all())
        frame = geopandas.GeoDataFrame.from_arrow(without_epochs(table), geometry=self._geometry)
        return self._left.set_index(frame)

    def __repr__(self) -> str:
        return f"<ogrjoin.Joined: rows of {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        head = None if self._left.is_once else next(self._batches(), None)
        if head is None:
            return repr(self).replace("<", "&lt;")
        rows = head.slice(0, 5).to_pandas()
        return f"<p>ogrjoin.Joined, the first rows:</p>{rows.to_html(max_cols=20)}"

    def __reduce__(self) -> Any:
        raise TypeError("the rows of a Joined are made while they are read: pickle read_all()")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes GeoParquet 1.1. The file gets its name only when it is complete. If it
        replaces a file, it takes that file's permissions."""
        path = os.fspath(path)
        schema, geo = self.schema, geo_metadata(self.schema, self._geometry)
        if geo:
            schema = schema.with_metadata({b"geo": json.dumps(geo).encode()})
        # A random name and mode "x", so that no link of another user is followed.
        name = f".ogrjoin-{secrets.token_hex(8)}"
        temporary = os.path.join(os.path.dirname(path), name)
        try:
            with open(temporary, "xb", opener=_opener_like(path)) as file:
                with parquet_writer(file, schema) as writer:
                    write_behind(
                        writer,
                        (pa.Table.from_arrays(b.columns, schema=schema) for b in self._batches()),
                    )
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(os.path.dirname(path) or ".", COMPLETE)
        except OSError as error:
            if error.filename != temporary:
                raise
            # The error names the path that the user gave, not the temporary file.
            raise type(error)(error.errno, error.strerror, path) from None
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)


def sync_folder(folder: str, state: str = "") -> None:
    """Writes the names in a folder to disk, so that renamings survive a power failure.
    Folders that may not be read, and disks that refuse this for folders, are left out.
    state: what the error states first."""
    ignored: tuple[int, ...] = (errno.EACCES,)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            ignored = (errno.EINVAL, errno.ENOSYS)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in ignored:
            text = f"{state}cannot write to disk the folder: {error.strerror}"
            raise OSError(error.errno, text, folder) from None


def _opener_like(path: str) -> Any:
    """Returns an opener of a new file for open(), with the permissions of the regular
    file at path, if there is one."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        mode = 0
    if not stat.S_ISREG(mode):
        return None

    def opener(name: str, flags: int) -> int:
        file = os.open(name, flags, mode & 0o777)
        with contextlib.suppress(OSError):  # a disk without permissions
            os.fchmod(file, mode & 0o777)
        return file

    return opener


def parquet_writer(file: Any, schema: Any) -> Any:
    """Opens a pyarrow.parquet.ParquetWriter with the settings of all files of joins.

    Only texts and short integers, which repeat, get a dictionary.  Coordinates,
    distances and row numbers differ from row to row.  With dictionaries for these too,
    a million points with their nearest lot take 1.31 s and 71.9 MB instead of 0.59 s
    and 58.6 MB."""
    import pyarrow.parquet

    def repeats(kind: Any) -> bool:
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        return bool(is_text or (pa.types.is_integer(kind) and kind.bit_width <= 32))

    columns = [field.name for field in schema if repeats(field.type)]
    return pyarrow.parquet.ParquetWriter(
        file, schema, compression="zstd", use_dictionary=columns
    )


def write_behind(writer: Any, tables: Iterable[Any]) -> int:
    """Writes tables to a ParquetWriter; returns the number of rows.  A second
    thread writes a table while the next one is made."""
    n_rows = 0
    written: Future[None] | None = None
    with ThreadPoolExecutor(1) as thread:
        for table in tables:
            if written is not None:
                written.result()
            written = thread.submit(writer.write_table, table, ROW_GROUP_ROWS)
            n_rows += len(table)
        if written is not None:
            written.result()
    return n_rows


def geo_metadata(schema: Any, geometry: str | None) -> dict[str, Any]:
    """Returns the GeoParquet 1.1 metadata of a schema, with geometry as the
    primary column. The result is empty if the schema has no geometry."""
    columns = {}
    for field in schema:
        encoding = extension_of(field).removeprefix("geoarrow.")
        if not encoding:
            continue
        if encoding != "wkb" and not _is_separated(field.type):
            raise UnsupportedError(
                f"{field.name} is {encoding} with interleaved coordinates, which "
                "GeoParquet cannot store: convert it to WKB or separated coordinates"
            )
        crs = _crs.read_from_field(field)
        columns[field.name] = {
            "encoding": "WKB" if encoding == "wkb" else encoding,
            "geometry_types": [],
            "crs": _crs.projjson(crs),
        }
        epoch = crs and _crs.split_epoch(crs)[1]
        if epoch:
            columns[field.name]["epoch"] = epoch
    if not columns:
        return {}
    first = geometry if geometry in columns else next(iter(columns))
    return {"version": "1.1.0", "primary_column": first, "columns": columns}


def _is_separated(kind: Any) -> bool:
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return bool(pa.types.is_struct(kind))
