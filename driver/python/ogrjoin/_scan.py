"""Files as Arrow streams, and the metadata of GeoParquet's columns."""

from __future__ import annotations

import json
import os
from typing import Any, Iterator

import pyarrow as pa

from . import _crs
from ._errors import InputError, InvalidError

NAME, METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"

# Key in the metadata of a field that pandas held in a nullable type, such as
# Int64.
_NULLABLE = b"ogrjoin:pandas"


# The default of GeoParquet: OGC:CRS84.
_CRS84 = {
    "type": "GeographicCRS",
    "name": "WGS 84 (CRS84)",
    "datum": {
        "type": "GeodeticReferenceFrame",
        "name": "World Geodetic System 1984",
        "ellipsoid": {
            "name": "WGS 84",
            "semi_major_axis": 6378137,
            "inverse_flattening": 298.257223563,
        },
    },
    "coordinate_system": {
        "subtype": "ellipsoidal",
        "axis": [
            {"name": "Longitude", "abbreviation": "lon", "direction": "east", "unit": "degree"},
            {"name": "Latitude", "abbreviation": "lat", "direction": "north", "unit": "degree"},
        ],
    },
    "id": {"authority": "OGC", "code": "CRS84"},
}


def _crs_of(column: dict[str, Any]) -> Any:
    """Returns the CRS of a column of GeoParquet, with the epoch if it has one."""
    crs, epoch = column.get("crs", "OGC:CRS84"), column.get("epoch")
    if crs == "OGC:CRS84" and epoch is not None:
        crs = _CRS84
    return crs if epoch is None or not isinstance(crs, dict) else _crs.with_epoch(crs, epoch)


def mark_geometries(schema: Any) -> tuple[Any, str | None]:
    """Returns (the schema with GeoParquet's geometry columns marked as GeoArrow, the
    name of the primary column or None)."""
    geo = json.loads((schema.metadata or {}).get(b"geo", b"{}"))
    for name, column in geo.get("columns", {}).items():
        i = schema.get_field_index(name)
        if i < 0 or extension_of(schema.field(i)):
            continue
        crs = _crs_of(column)
        crs_metadata = {} if crs is None else {"crs": crs}
        encoding = column.get("encoding", "WKB").lower()
        metadata = {NAME: b"geoarrow." + encoding.encode()}
        metadata[METADATA] = json.dumps(crs_metadata).encode()
        schema = schema.set(i, schema.field(i).with_metadata(metadata))
    return schema, geo.get("primary_column")


def _has_nullable_type(column: dict[str, Any]) -> bool:
    # Int8 to UInt64, Float32, Float64: types of numpy with a capital letter.
    kind = str(column.get("numpy_type", ""))
    return kind == "boolean" or kind.startswith(("Int", "UInt", "Float"))


def mark_nullable(schema: Any) -> Any:
    """Returns the schema with a mark at each column that has a nullable type of pandas
    according to the metadata that pandas adds. The fields of joined rows keep the
    mark."""
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    for column in filter(_has_nullable_type, about.get("columns", [])):
        i = schema.get_field_index(column.get("field_name") or "")
        if i >= 0:
            field = schema.field(i)
            metadata = {**(field.metadata or {}), _NULLABLE: column["numpy_type"].encode()}
            schema = schema.set(i, field.with_metadata(metadata))
    return schema


def with_nullable(table: Any) -> Any:
    """Returns the table with metadata from which pandas takes the nullable types of
    marked columns.  Without them, integers with NULLs become rounded floats."""
    columns = [
        {"name": f.name, "field_name": f.name, "numpy_type": kind.decode(), "metadata": None,
         "pandas_type": str(f.type)}
        for f in table.schema if (kind := (f.metadata or {}).get(_NULLABLE)) is not None
    ]  # fmt: skip
    about = {"index_columns": [], "column_indexes": [], "columns": columns}
    if not columns:
        return table
    return table.replace_schema_metadata(
        {b"pandas": json.dumps({**about, "pandas_version": "3"}).encode()}
    )


def wkb_metadata(crs: str | None) -> dict[bytes, bytes]:
    """Returns the field metadata of a WKB column.  crs is a text, PROJJSON, or
    None."""
    of_crs = {} if crs is None else {"crs": json.loads(crs) if crs[:1] == "{" else crs}
    return {NAME: b"geoarrow.wkb", METADATA: json.dumps(of_crs).encode()}


def without_epochs(table: Any) -> Any:
    """Returns the table without the epochs of coordinates, which GeoPandas refuses."""
    schema = table.schema
    for i, field in enumerate(schema):
        crs = _crs.read_from_extension((field.metadata or {}).get(METADATA))
        if crs is not None and (plain := _crs.split_epoch(crs)[0]) != crs:
            about = json.loads(field.metadata[METADATA])
            about["crs"] = json.loads(plain) if plain[:1] == "{" else plain
            metadata = {**field.metadata, METADATA: json.dumps(about).encode()}
            schema = schema.set(i, field.with_metadata(metadata))
    return pa.Table.from_arrays(table.columns, schema=schema)


def extension_of(field: Any) -> str:
    """Returns the GeoArrow extension name of a field, or ""."""
    name: str = (field.metadata or {}).get(NAME, b"").decode()
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
    return name if name.startswith("geoarrow.") else ""


def _geo_columns(metadata: Any) -> dict[str, Any]:
    columns: dict[str, Any] = json.loads((metadata or {}).get(b"geo", b"{}")).get("columns", {})
    return columns


def _are_of_two_crs(column: dict[str, Any], other: dict[str, Any]) -> bool:
    one, two = (_crs.as_text(_crs_of(c)) for c in (column, other))
    return None not in (one, two) and one != two and _crs.compare(str(one), str(two)) == 0


def _schema_of(fragment: Any) -> Any:
    """Returns the schema of a file of a dataset."""
    try:
        return fragment.physical_schema
    except (OSError, pa.ArrowException) as why:
        text = str(why).partition("\n")[0]
        raise InputError(f"{fragment.path} cannot be read as Parquet: {text}") from None


def check_files(dataset: Any) -> None:
    """Raises an error if a file of a Parquet dataset has its geometries in another
    column, encoding or CRS than the first one, whose metadata are those of the dataset.
    Files without rows are not checked."""
    columns = _geo_columns(dataset.schema.metadata)
    if len(dataset.files) < 2 or not columns:
        return
    primary = json.loads(dataset.schema.metadata[b"geo"]).get("primary_column")
    first = dataset.files[0]
    for fragment in dataset.get_fragments():
        schema = _schema_of(fragment)
        if fragment.metadata.num_rows == 0:
            continue
        if primary not in schema.names:
            raise InputError(
                f"{fragment.path} has no column {primary!r}, which has the geometries of {first}: "
                "give the column one name in all files of a folder"
            )
        for name, other in _geo_columns(schema.metadata).items():
            column = columns.get(name, other)
            if column.get("encoding") != other.get("encoding"):
                raise InputError(
                    f"column {name!r} has the encoding {other.get('encoding')} in "
                    f"{fragment.path}, and {column.get('encoding')} in {first}: write all files "
                    "of a folder with one encoding"
                )
            if _are_of_two_crs(column, other):
                raise InputError(
                    f"column {name!r} has another CRS in {fragment.path} than in {first}: "
                    "reproject the file, or join the files one by one"
                )


def _count_decimals(kind: Any) -> int:
    """Returns the number of decimals in a type, which may be nested."""
    if pa.types.is_nested(kind):
        return sum(_count_decimals(kind.field(i).type) for i in range(kind.num_fields))
    return int(pa.types.is_decimal(kind))


def _common_type(one: Any, other: Any) -> Any:
    """Returns the type that takes the values of both types, in any order, or None.
    Texts and numbers have none, since a number has several texts, and decimals and
    floats have none, since floats round."""
    one, other = (k.value_type if pa.types.is_dictionary(k) else k for k in (one, other))
    for kind, day in ((one, other), (other, one)):
        if pa.types.is_timestamp(kind) and kind.tz is None and pa.types.is_date(day):
            return kind
    schemas = [pa.schema([("x", kind)]) for kind in (one, other)]
    try:
        made = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None
    n_decimals = max(_count_decimals(one), _count_decimals(other))
    return made if _count_decimals(made) >= n_decimals else None


def _has_values(fragment: Any, name: str) -> bool:
    """Returns False if the footer of a file shows that a column has only NULLs."""
    footer = fragment.metadata
    paths = [footer.schema.column(c).path for c in range(footer.num_columns)]
    if name not in paths:  # a nested column
        return bool(footer.num_rows > 0)
    for g in range(footer.num_row_groups):
        group = footer.row_group(g)
        counts = group.column(paths.index(name)).statistics
        n_nulls = counts.null_count if counts is not None and counts.has_null_count else 0
        if group.num_rows > n_nulls:
            return True
    return False


def unify_types(dataset: Any) -> tuple[Any, dict[str, str]]:
    """Returns (the schema of a Parquet dataset, whose columns have types that take the
    values of all files; column: error, for those that have none). The type of a column
    without values has no effect, unless no file has values."""
    schema, errors = dataset.schema, dict[str, str]()
    if len(dataset.files) < 2:
        return schema, errors
    fragments = list(dataset.get_fragments())
    schemas = [_schema_of(fragment) for fragment in fragments]
    for i, field in enumerate(schema):
        at = [other.get_field_index(field.name) for other in schemas]
        kinds = [(s.field(j).type, of) for s, j, of in zip(schemas, at, fragments) if j >= 0]
        # a column that the first file lacks is named by folders
        if at[0] < 0 or all(kind.equals(field.type) for kind, _ in kinds):
            continue
        stated = [(kind, of) for kind, of in kinds if not pa.types.is_null(kind)]
        kinds = [(kind, of) for kind, of in stated if _has_values(of, field.name)] or stated[:1]
        common = kinds[0][0]
        for kind, of in kinds[1:]:
            if kind.equals(common):
                continue
            made = _common_type(common, kind)
            if made is None:
                errors[field.name] = (
                    f"column {field.name!r} has the type {kind} in {of.path}, and {common} in "
                    "files before it: write all files of a folder with one type"
                )
                break
            common = made
        schema = schema.set(i, field.with_type(common))
    return schema, errors


_CSV = (".csv", ".tsv", ".psv")
# Formats with one layer per file: for some of them, listing the layers would read the
# whole file.
_OF_ONE_LAYER = (*_CSV, ".geojson", ".geojsonl", ".geojsons", ".fgb", ".shp")


def _only_layer(path: str, option: str) -> str | None:
    """Returns the name of the only layer with geometries of a file, or None if
    the file has one layer in all.  option is the argument that names a layer,
    for the error."""
    if path.lower().endswith(_OF_ONE_LAYER):
        return None
    from pyogrio import list_layers

    layers = list_layers(path).tolist()
    spatial = [name for name, kind in layers if kind is not None]
    if len(layers) > 1 and len(spatial) != 1:
        names = ", ".join(name for name, _ in layers)
        raise InvalidError(f"{path} has {len(layers)} layers, name one by {option}=: {names}")
    return spatial[0] if len(layers) > 1 else None


def _read_layer(path: str, layer: str | int | None, option: str) -> tuple[Any, Any]:
    """Returns (metadata, table) of a layer of a file, by pyogrio.  option: the argument
    that names a layer, for errors."""
    from pyogrio import list_layers, read_arrow
    from pyogrio.errors import DataLayerError, DataSourceError

    # Detects numbers in CSV; a .csvt file beside it takes precedence.
    csv = {"AUTODETECT_TYPE": "YES"} if path.lower().endswith(_CSV) else {}
    try:
        if layer is None:
            layer = _only_layer(path, option)
        meta, table = read_arrow(path, layer=layer, **csv)
    except DataSourceError as why:
        raise InputError(str(why)) from None
    except DataLayerError as why:
        if layer is None:
            raise InputError(f"{path}: {why}") from None
        names = ", ".join(str(name) for name, _ in list_layers(path))
        raise InvalidError(
            f"{path} has no layer {layer!r}: give {option}= one of {names}"
        ) from None
    return meta, table


def open_dataset(path: str, **options: Any) -> Any:
    """Opens a file or a folder as a pyarrow dataset.  Folders named KEY=VALUE, as Hive and
    Spark write them, give a column KEY, unless the files have a column of this name.
    options are those of pyarrow.dataset.dataset()."""
    import pyarrow.dataset

    plain = pyarrow.dataset.dataset(path, format="parquet", **options)
    inside = [file.rpartition(path.rstrip("/"))[2] for file in plain.files]
    folders = {folder for file in inside for folder in file.split("/")[:-1]}
    keys = {folder.partition("=")[0] for folder in folders if "=" in folder}
    if not keys or keys & set(plain.schema.names):
        return plain
    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive", **options)


def _open_parquet(path: str) -> Any:
    """Returns the pyarrow dataset of a file, or of a folder of files."""
    try:
        dataset = open_dataset(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file or folder; correct the path") from None
    except (OSError, pa.ArrowException) as why:
        raise InputError(f"{path} cannot be read as Parquet: {why}") from None
    check_files(dataset)
    return dataset


_BATCH_ROWS = 1 << 16


def read_column(batch: Any, field: Any, keys: dict[str, Any], path: str) -> Any:
    """Returns a column of a batch in the type of the field; a column that its file lacks
    has the value in keys, or NULLs.  path: the file, for errors."""
    i = batch.schema.get_field_index(field.name)
    if i < 0:
        return pa.repeat(pa.scalar(keys.get(field.name), field.type), len(batch))
    column = batch.column(i)
    if column.type.equals(field.type):
        return column
    if column.null_count == len(column):
        return pa.nulls(len(batch), field.type)
    try:
        return column.cast(field.type)
    except pa.ArrowException as why:
        raise InputError(
            f"{path}: values of column {field.name!r} cannot become {field.type}, the type "
            f"that other files of the folder have: {why}"
        ) from None


class Scan:
    """A file or a folder that can be read as an Arrow stream repeatedly."""

    def __init__(
        self, path: str, layer: str | int | None = None, option: str = "layer"
    ) -> None:
        self._dataset: Any = None
        self._table: Any = None
        self._errors: dict[str, str] = {}  # column without a common type: error
        self._path = path
        if os.path.isdir(path) or path.endswith((".parquet", ".geoparquet", ".pq")):
            if layer is not None:
                raise InvalidError(f"{path} is Parquet, which has no layers: leave {option}= out")
            self._dataset = _open_parquet(path)
            schema, self._errors = unify_types(self._dataset)
            self.schema, self.geometry = mark_geometries(schema)
            return
        description, table = _read_layer(path, layer, option)
        self.geometry = description["geometry_name"] or "wkb_geometry"
        self.schema = table.schema
        i = table.schema.get_field_index(self.geometry)
        if i < 0:
            self.geometry = None
        else:
            metadata = {NAME: b"geoarrow.wkb"}
            if description["crs"]:
                metadata[METADATA] = json.dumps({"crs": description["crs"]}).encode()
            field = table.schema.field(i).with_metadata(metadata)
            self.schema = table.schema.set(i, field)
        self._table = table.cast(self.schema)

    def __len__(self) -> int:
        if self._table is not None:
            return len(self._table)
        return int(self._dataset.count_rows())

    def __repr__(self) -> str:
        return f"<ogrjoin.Scan of {self._path}: {', '.join(self.schema.names)}>"

    def keep(self, names: list[str]) -> None:
        """Reads only the columns with these names from now on, in the order of the file."""
        if self._dataset is not None:
            self.schema = pa.schema(
                [f for f in self.schema if f.name in names], self.schema.metadata
            )

    def _batches(self) -> Iterator[Any]:
        """Yields the rows of file after file.  A scanner of the dataset would decode whole
        row groups, several at a time: often a gigabyte, and twice the processor time."""
        import pyarrow.dataset
        from pyarrow.parquet import ParquetFile

        for fragment in self._dataset.get_fragments():
            keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
            with ParquetFile(fragment.open()) as file:
                inside = set(file.schema_arrow.names)
                names = [name for name in self.schema.names if name in inside]
                for batch in file.iter_batches(_BATCH_ROWS, columns=names):
                    columns = [
                        read_column(batch, field, keys, fragment.path) for field in self.schema
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def reader(self) -> Any:
        """Returns a pyarrow.RecordBatchReader that starts at the first row."""
        if self._table is not None:
            return self._table.to_reader()
        for name in self.schema.names:
            if name in self._errors:
                raise InputError(self._errors[name])
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


def scan(path: str | os.PathLike[str], layer: str | int | None = None) -> Scan:
    """Opens a file to be read as an Arrow stream: GeoParquet (a file or a folder of files)
    by pyarrow, every other format by pyogrio, CSV with detected types.  layer: name or
    number of a layer, if the file has several."""
    return Scan(os.fspath(path), layer)
