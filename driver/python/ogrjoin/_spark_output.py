"""Outputs of Spark jobs by Spark's commit protocol, as data sources in Python.

    ogrjoin        rows of a DataFrame -> a folder of GeoParquet
    ogrjoin_files  tiles of a join of files -> the folder that their tasks write

Each attempt of a task writes a file of its own, and its message names the file.  Spark
passes the messages of the attempts that count to commit(), and calls abort() if the
job fails.  Both run in a Python process of the driver.
"""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from ._errors import InvalidError
from .scale.files import FilesPlan, finish_files, run_task
from .scale.parquet_out import ParquetOutput

FIELD = "ogrjoin"  # key in the metadata of Spark's fields, see marked()


def marked(field: Any, is_primary: bool) -> dict[str, Any]:
    """The metadata of an Arrow field, for the metadata of a field of Spark."""
    words = {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
    return {FIELD: json.dumps({"arrow": words, "primary": is_primary})}


def arrow_schema(struct: Any) -> tuple[Any, str | None]:
    """(Arrow schema of a StructType, with what marked() has put there; primary geometry)"""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema, primary = to_arrow_schema(struct), None
    for i, field in enumerate(struct.fields):
        words = json.loads(field.metadata.get(FIELD, "{}"))
        if words.get("arrow"):
            schema = schema.set(i, schema.field(i).with_metadata(words["arrow"]))
        if words.get("primary"):
            primary = field.name
    return schema, primary


class _Written(WriterCommitMessage):  # type: ignore[misc, unused-ignore]
    """What a task has written: (file name, rows, numbers of join rows with pairs)."""

    def __init__(self, made: list[tuple[str, int, Any]]) -> None:
        self.made = made


def _made(messages: Any) -> list[tuple[str, int, Any]]:
    return [made for message in messages if message is not None for made in message.made]


class GeoParquetSource(DataSource):  # type: ignore[misc, unused-ignore]
    """DataFrame.write.format("ogrjoin"): mode append makes a folder, and an existing one
    is an error; mode overwrite replaces it."""

    @classmethod
    def name(cls) -> str:
        return "ogrjoin"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        path = self.options.get("path")
        if not path:
            raise InvalidError("the output has no path: write save(PATH)")
        arrow, primary = arrow_schema(schema)
        output = ParquetOutput(path, arrow, primary, overwrite=overwrite)
        output.begin()
        return _RowsWriter(output)


class _RowsWriter(DataSourceArrowWriter):  # type: ignore[misc, unused-ignore]
    def __init__(self, output: ParquetOutput) -> None:
        self._output = output

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        schema = self._output.schema

        def batches() -> Iterator[Any]:
            for batch in iterator:
                columns = [c.cast(f.type) for c, f in zip(batch.columns, schema)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        name, n_rows = self._output.write(part, batches())
        return _Written([(name, n_rows, None)])

    def commit(self, messages: Any) -> None:
        self._output.commit([made[0] for made in _made(messages)])

    def abort(self, messages: Any) -> None:
        self._output.abort()


class FilesSource(DataSource):  # type: ignore[misc, unused-ignore]
    """Rows with the number of a tile; the task that gets one joins and writes the tile."""

    @classmethod
    def name(cls) -> str:
        return "ogrjoin_files"

    @staticmethod
    def options_of(plan: FilesPlan, output: ParquetOutput) -> dict[str, str]:
        return {"job": base64.b64encode(pickle.dumps((plan, output))).decode()}

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return _FilesWriter(*pickle.loads(base64.b64decode(self.options["job"])))


class _FilesWriter(DataSourceArrowWriter):  # type: ignore[misc, unused-ignore]
    def __init__(self, plan: FilesPlan, output: ParquetOutput) -> None:
        self._plan, self._output = plan, output

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        made = []
        for batch in iterator:
            for tile in np.asarray(batch.column(0)).tolist():
                made.append(run_task(self._plan, self._output, False, tile))
        return _Written(made)

    def commit(self, messages: Any) -> None:
        finish_files(self._plan, self._output, _made(messages))

    def abort(self, messages: Any) -> None:
        self._output.abort()
