"""Outputs of Spark jobs: each attempt of a task writes a file of its own, and the files of
the attempts that count become the output.

    written()  runs tasks that write files -> collects their names -> completes the output
    "ogrjoin"  rows of any DataFrame -> a folder of GeoParquet, by a data source for Spark

Spark gives the driver one result per partition, however often tasks were repeated. For a data
source it calls commit() with these results in a Python process beside the driver. The files
of a job that fails are removed.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from ._errors import InvalidError
from .scale.files import FilesPlan, run_task
from .scale.parquet_out import ParquetOutput

FIELD = "ogrjoin"  # key in the metadata of Spark's fields, see metadata_for_spark()


def metadata_for_spark(field: Any, is_primary: bool) -> dict[str, Any]:
    """Returns the metadata of an Arrow field, in the form in which a field of Spark
    stores it. is_primary tells whether the field is the primary geometry."""
    words = {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
    return {FIELD: json.dumps({"arrow": words, "primary": is_primary})}


def arrow_schema(struct: Any) -> tuple[Any, str | None]:
    """Returns (Arrow schema of a StructType with the metadata that metadata_for_spark() has stored; name of
    the primary geometry, or None)"""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema, primary = to_arrow_schema(struct), None
    for i, field in enumerate(struct.fields):
        words = json.loads(field.metadata.get(FIELD, "{}"))
        if words.get("arrow"):
            schema = schema.set(i, schema.field(i).with_metadata(words["arrow"]))
        if words.get("primary"):
            primary = field.name
    return schema, primary


def _partition_number() -> int:
    """Returns the number of the partition that this task computes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


# ---- jobs whose tasks write --------------------------------------------------------

_WRITTEN = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("numbers", pa.binary()),  # numbers of join rows with pairs, int64
    ]
)


def _result_batch(name: str, n_rows: int, numbers: Any) -> Any:
    content = None if numbers is None else numbers.tobytes()
    row = {"name": name, "rows": n_rows, "numbers": content}
    return pa.RecordBatch.from_pylist([row], schema=_WRITTEN)


def written(
    df: Any, task: Any, output: ParquetOutput, finish: Callable[[list[tuple[str, int, Any]]], int]
) -> int:
    """Runs the tasks that write files of an output, then calls finish() with
    their results: (file name, rows, numbers of join rows with pairs).  Returns
    the number of rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    try:
        found = df.mapInArrow(task, from_arrow_schema(_WRITTEN)).toArrow().to_pylist()
        made = []
        for row in found:
            numbers = row["numbers"]
            if numbers is not None:
                numbers = np.frombuffer(numbers, np.int64)
            made.append((row["name"], row["rows"], numbers))
        return finish(made)
    except BaseException:
        output.abort()
        raise


class FilesTask:
    """Spark task of a join of files: joins the tiles with the given numbers,
    and yields a result (file name, rows, numbers) for each."""

    def __init__(self, plan: FilesPlan, output: ParquetOutput) -> None:
        self._plan, self._output = plan, output

    def __call__(self, batches: Any) -> Iterator[Any]:
        for batch in batches:
            for tile in np.asarray(batch.column(0)).tolist():
                yield _result_batch(*run_task(self._plan, self._output, False, tile))


class _RowsTask:
    """Spark task that runs another task, writes the rows that it yields to a
    file, and yields one result (file name, rows)."""

    def __init__(self, task: Any, output: ParquetOutput) -> None:
        self._task, self._output = task, output

    def __call__(self, batches: Any) -> Iterator[Any]:
        yield _result_batch(*self._output.write(_partition_number(), self._task(batches)), None)


def write_rows(df: Any, task: Any, struct: Any, path: str, overwrite: bool) -> int:
    """Writes the rows of df.mapInArrow(task, struct) in the tasks that make them.
    Returns the number of rows."""
    arrow, primary = arrow_schema(struct)
    output = ParquetOutput(path, arrow, primary, overwrite=overwrite)
    output.begin()

    def finish(made: list[tuple[str, int, Any]]) -> int:
        output.commit([name for name, *_ in made])
        return sum(n for _, n, _ in made)

    return written(df, _RowsTask(task, output), output, finish)


# ---- any DataFrame -----------------------------------------------------------------


class _Written(WriterCommitMessage):  # type: ignore[misc, unused-ignore]
    """Result of a task: the file that it has written."""

    def __init__(self, name: str) -> None:
        self.name = name


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
        schema = self._output.schema

        def batches() -> Iterator[Any]:
            for batch in iterator:
                columns = [c.cast(f.type) for c, f in zip(batch.columns, schema)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return _Written(self._output.write(_partition_number(), batches())[0])

    def commit(self, messages: Any) -> None:
        self._output.commit([message.name for message in messages if message is not None])

    def abort(self, messages: Any) -> None:
        self._output.abort()
