"""Checks that a layer keeps what GDAL's clients rely on in a read-only layer: counts, filters,
random access, ignored fields, SQL, CRS, references, threads with their own handles. The tests
check joins, and as a control the plain layers from which the joins are made."""

import contextlib
import threading

from dataset import *

NO_GEOMETRY = "OGR_GEOMETRY"
FAR = (9e7, 9e7, 9.1e7, 9.1e7)
WRITES = ("SequentialWrite", "RandomWrite", "CreateField", "DeleteField", "ReorderFields",
          "AlterFieldDefn", "DeleteFeature", "Transactions", "CreateGeomField", "NoSuchCapability")


@contextlib.contextmanager
def errors_expected():
    gdal.PushErrorHandler("CPLQuietErrorHandler")
    try:
        yield
    finally:
        gdal.PopErrorHandler()
        gdal.ErrorReset()


def address(thing):
    """Returns the address of the GDAL object that a Python object wraps."""
    return int(thing.this) if thing is not None else 0


def values_of(feature):
    return [feature.GetField(i) if feature.IsFieldSetAndNotNull(i) else None
            for i in range(feature.GetFieldCount())]


def row_of(feature, without=None):
    """Returns (FID, fields, geometry) of a feature as values that can be compared.
    without is the number of a field to leave out, or NO_GEOMETRY."""
    shape = feature.GetGeometryRef()
    wkb = None if shape is None or without == NO_GEOMETRY else bytes(shape.ExportToIsoWkb())
    values = [v for i, v in enumerate(values_of(feature)) if i != without]
    return (feature.GetFID(), repr(values), wkb)


def features_of(layer):
    layer.ResetReading()
    return list(iter(layer.GetNextFeature, None))


def read(layer, without=None):
    return [row_of(f, without) for f in features_of(layer)]


class LayerUnderTest:
    """A layer with its features and rows as they were read first."""

    def __init__(self, name, dataset):
        self.name, self.dataset, self.layer = name, dataset, dataset.GetLayer(0)
        self.defn = self.layer.GetLayerDefn()
        self.features = features_of(self.layer)
        self.rows = [row_of(f) for f in self.features]
        self.shapes = [f.GetGeometryRef() for f in self.features]
        self.fields = [self.defn.GetFieldDefn(i) for i in range(self.defn.GetFieldCount())]
        self.random = random.Random(len(self.rows))

    def any(self):
        return self.random.randrange(len(self.rows))

    def keeps(self, kept, what):
        """Checks that under the current filters the layer gives and counts exactly the
        rows with the numbers `kept`. They may come in any order, because an index may
        change it."""
        layer, n = self.layer, len(kept)
        same(layer.GetFeatureCount(1), n, f"{what}: count")
        same(sorted(read(layer), key=repr), sorted((self.rows[i] for i in kept), key=repr), what)
        same(layer.GetFeatureCount(1), n, f"{what}: count after reading")
        if layer.TestCapability("FastFeatureCount"):
            same(layer.GetFeatureCount(0), n, f"{what}: the count that is declared fast")

    def keeps_where(self, condition, test):
        same(self.layer.SetAttributeFilter(condition), 0, f"{condition} is refused")
        self.keeps([i for i in range(len(self.rows)) if test(i)], condition)


# --- description of the layer ------------------------------------------------------


def check_definition(a):
    layer, defn = a.layer, a.defn
    srs = layer.GetSpatialRef()
    kind = layer.GetGeomType()
    same(address(defn), address(layer.GetLayerDefn()), "another definition each time")
    same(layer.GetName(), defn.GetName(), "two names")
    true(layer.GetName(), "no name")
    same(address(a.dataset.GetLayerByName(layer.GetName())), address(layer), "is not found by its name")
    same(kind, defn.GetGeomType(), "two geometry types")
    if defn.GetGeomFieldCount() > 0:
        field = defn.GetGeomFieldDefn(0)
        same(address(field.GetSpatialRef()), address(srs), "two CRS")
        same(layer.GetGeometryColumn(), field.GetName(), "two names of the geometry")
    for i, field in enumerate(a.fields):
        true(field.GetName(), f"field {i} has no name")
        same(defn.GetFieldIndex(field.GetName()), i, "two fields of a name")

    def part(kind):
        flat = ogr.GT_Flatten(kind)
        return flat if ogr.GT_IsSubClassOf(flat, ogr.wkbGeometryCollection) else ogr.GT_GetCollection(flat)

    for i, (feature, shape) in enumerate(zip(a.features, a.shapes)):
        same(address(feature.GetDefnRef()), address(defn), f"row {i} has another definition")
        true(feature.GetFID() >= 0, f"row {i} has no FID")
        if shape is None:
            continue
        same(address(shape.GetSpatialReference()), address(srs), f"CRS of row {i}")
        # A Shapefile's polygons may have several parts.
        true(ogr.GT_Flatten(kind) == ogr.wkbUnknown or part(shape.GetGeometryType()) == part(kind),
             f"the geometry of row {i} is {shape.GetGeometryName()}")
        true(kind == ogr.wkbUnknown or ogr.GT_HasZ(kind) or not shape.Is3D(), f"row {i} has Z, the layer not")


def check_references(name):
    dataset = gdal.OpenEx(name, gdal.OF_VECTOR)
    layer = dataset.GetLayer(0)
    defn = layer.GetLayerDefn()
    features_of(layer)
    layer.ResetReading()
    before = defn.GetReferenceCount()  # including the references of the layer
    kept = layer.GetNextFeature()
    n = len(list(iter(layer.GetNextFeature, None)))
    same(defn.GetReferenceCount(), before + (kept is not None), f"references after {n} rows")
    # A row outlives the dataset, and its definition with it.
    layer = dataset = None
    if kept is not None:
        same(address(kept.GetDefnRef()), address(defn), "of a row that is kept")
        row_of(kept)
        same(defn.GetReferenceCount(), 1, "references at the end: the row's")


def check_kinds(a):
    """Checks that the dataset and the driver declare the kinds of geometry that the layer
    declares."""
    for kind in ("Curve", "Measured", "Z"):
        if a.layer.TestCapability(f"{kind}Geometries"):
            true(a.dataset.TestCapability(f"{kind}Geometries"), f"{kind} of the layer alone")
            true(a.dataset.GetDriver().GetMetadataItem(f"DCAP_{kind.upper()}_GEOMETRIES"),
                 f"{kind}, and the driver does not say so")


def check_dataset(a):
    same(a.dataset.GetDescription(), a.name)
    with errors_expected():
        for i in (-1, a.dataset.GetLayerCount()):
            same(a.dataset.GetLayer(i), None, f"layer {i}")
        same(a.dataset.GetLayerByName("no such layer"), None)


# --- reading in order ----------------------------------------------------------------


def check_sequence(a):
    same(read(a.layer), a.rows, "a second time")
    same([a.layer.GetNextFeature() for _ in range(3)], [None] * 3, "after the last")
    n = 0
    while n < min(len(a.rows), 100):
        a.layer.ResetReading()
        for _ in range(n):
            a.layer.GetNextFeature()
        a.layer.ResetReading()
        a.layer.ResetReading()
        same(row_of(a.layer.GetNextFeature()), a.rows[0], f"after {n} rows and a reset")
        n = 3 * n + 1


def check_count(a):
    a.keeps(range(len(a.rows)), "all")
    for dialect in ("OGRSQL", "SQLITE"):
        result = a.dataset.ExecuteSQL(f'SELECT COUNT(*) FROM "{a.layer.GetName()}"', None, dialect)
        same(result.GetNextFeature().GetField(0), len(a.rows), f"count of {dialect}")
        a.dataset.ReleaseResultSet(result)


# --- one by one ------------------------------------------------------------------------


def check_random_read(a):
    layer, fids = a.layer, [r[0] for r in a.rows]
    same(len(set(fids)), len(fids), "FIDs twice")

    def is_row(i, what):
        same(row_of(layer.GetFeature(fids[i])), a.rows[i], what)

    for _ in range(min(40, len(fids))):
        is_row(a.any(), "by FID")
    if fids:
        # Reading by FID ignores filters, and may come between rows that are read in order.
        layer.SetSpatialFilterRect(*FAR)
        is_row(len(fids) // 2, "under a spatial filter")
        layer.SetSpatialFilter(None)
        layer.SetAttributeFilter("FID < 0")
        is_row(len(fids) // 2, "under an attribute filter")
        layer.SetAttributeFilter(None)
        layer.ResetReading()
        layer.GetNextFeature()
        is_row(len(fids) - 1, "while reading")
        layer.ResetReading()
        same(row_of(layer.GetNextFeature()), a.rows[0], "after a random read and a reset")
    with errors_expected():
        for fid in (-10, -1, 2000000000, 2**63 - 1):
            if fid not in fids:
                same(layer.GetFeature(fid), None, f"FID {fid}")


def check_indexes(a):
    layer = a.layer

    def is_from(rows, i, what):
        same(layer.SetNextByIndex(i), 0, f"{what}: index {i} is refused")
        got = [layer.GetNextFeature() for _ in range(3)]
        same([f and row_of(f) for f in got], (rows[i:i + 3] + [None] * 3)[:3], f"{what}: from {i}")

    def is_none(i):
        with errors_expected():
            layer.ResetReading()
            error = layer.SetNextByIndex(i)
            true(error or layer.GetNextFeature() is None, f"there is a row at index {i}")
        true(i >= 0 or error, f"index {i} is taken")

    for i in {*(a.any() for _ in range(10) if a.rows), *((0, len(a.rows) - 1) if a.rows else ())}:
        is_from(a.rows, i, "unfiltered")
    for i in (-1, -10, len(a.rows), len(a.rows) + 10000, 2**63 - 1):
        is_none(i)
    # An index counts the rows that pass the filters.
    layer.SetAttributeFilter("FID >= 3 AND FID <= 30")
    kept = read(layer)
    for i in range(0, len(kept), 5):
        is_from(kept, i, "filtered")
    is_none(len(kept))
    layer.SetAttributeFilter(None)
    layer.ResetReading()


# --- filters -------------------------------------------------------------------------


def literal(feature, i):
    """Returns the value of a field as an SQL literal, or None."""
    if not feature.IsFieldSetAndNotNull(i):
        return None
    value = feature.GetField(i)
    kind = feature.GetFieldDefnRef(i).GetType()
    if kind in (ogr.OFTInteger, ogr.OFTInteger64) or kind == ogr.OFTReal and math.isfinite(value):
        return repr(value)
    return "'" + value.replace("'", "''") + "'" if kind == ogr.OFTString else None


def check_attribute_filters(a):
    for i, field in enumerate(a.fields if a.rows else ()):
        name = field.GetName()
        column = [values_of(f)[i] for f in a.features]
        for _ in range(3):
            which = a.any()
            text = literal(a.features[which], i)
            if text is not None:
                a.keeps_where(f'"{name}" = {text}', lambda k: column[k] == column[which])
        a.keeps_where(f'"{name}" IS NULL', lambda k: column[k] is None)
        a.keeps_where(f'"{name}" IS NOT NULL', lambda k: column[k] is not None)
    for _ in range(3 if a.rows else 0):
        fid = a.rows[a.any()][0]
        a.keeps_where(f"FID = {fid}", lambda k: a.rows[k][0] == fid)
    for condition, is_kept in (("0 = 1", False), ("1 = 1", True), ("", True)):
        a.keeps_where(condition, lambda k: is_kept)
    # An invalid condition is refused. The previous filter may stay or be removed, but no rows may
    # appear that it excludes.
    with errors_expected():
        for bad in ("no_such_field = 1", "= = ("):
            true(a.layer.SetAttributeFilter(bad) != 0, bad)
    a.layer.SetAttributeFilter(None)
    a.keeps(range(len(a.rows)), "no filter after a bad one")


def box_around(x0, x1, y0, y1, wider=0.0):
    x0, x1, y0, y1 = x0 - wider, x1 + wider, y0 - wider, y1 + wider
    corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
    return polygon(corners), polygon((*corners[:3], corners[0]))


def polygon(corners):
    ring = ogr.Geometry(ogr.wkbLinearRing)
    for x, y in corners:
        ring.AddPoint_2D(x, y)
    shape = ogr.Geometry(ogr.wkbPolygon)
    shape.AddGeometry(ring)
    return shape


def check_spatial_filter(a, filter, is_box):
    """Checks a spatial filter. GDAL accepts every row whose envelope is in a box, and
    tests the others by a prepared geometry. That matters for lines without length, for
    which GEOS gives another answer if the geometry is not prepared. is_box tells
    whether the filter is a box."""
    prepared = filter.CreatePreparedGeometry()
    x0, x1, y0, y1 = filter.GetEnvelope()

    def is_hit(shape):
        if shape is None or shape.IsEmpty():
            return False
        u0, u1, v0, v1 = shape.GetEnvelope()
        return is_box and u0 >= x0 and v0 >= y0 and u1 <= x1 and v1 <= y1 or prepared.Intersects(shape)

    hits = [i for i, shape in enumerate(a.shapes) if is_hit(shape)]
    a.layer.SetSpatialFilter(filter)
    a.keeps(hits, "a spatial filter")
    if a.rows:
        fid = a.rows[a.any()][0]
        a.keeps_where(f"FID >= {fid}", lambda k: k in hits and a.rows[k][0] >= fid)
        a.layer.SetAttributeFilter(None)


def check_spatial_filters(a):
    if a.layer.GetGeomType() == ogr.wkbNone:
        return
    with errors_expected():
        extent = a.layer.GetExtent(force=1, can_return_null=True) or (0, 0, 0, 0)
    width = extent[1] - extent[0]
    for i in range(6 if a.rows else 0):
        shape = a.shapes[a.any()]
        at = extent if shape is None or shape.IsEmpty() else shape.GetEnvelope()
        # The envelope of a point has no area and cannot be a filter polygon.
        wider = (0.0, width * 0.01 + 1, width * 0.2 + 1)[i % 3]
        if at[1] > at[0] or wider > 0:
            box, half = box_around(*at, wider)
            check_spatial_filter(a, box, True)
            check_spatial_filter(a, half, False)
    if width > 0:
        check_spatial_filter(a, box_around(*extent, 1)[0], True)
    check_spatial_filter(a, box_around(FAR[0], FAR[2], FAR[1], FAR[3])[0], True)
    # A filter given by its corners, then no filter.
    a.layer.SetSpatialFilterRect(*FAR)
    a.keeps([], "a box far away")
    a.layer.SetSpatialFilter(None)
    a.keeps(range(len(a.rows)), "no spatial filter")
    with errors_expected():
        a.layer.SetSpatialFilter(7, None)
    a.keeps(range(len(a.rows)), "a filter of no geometry field")


# --- ignored fields, SQL, Arrow, threads -----------------------------------------------


def check_ignored_fields(a):
    """Checks that rows read without a field, or without the geometry, are otherwise unchanged."""
    layer = a.layer
    if not layer.TestCapability("IgnoreFields"):
        return
    names = {field.GetName(): i for i, field in enumerate(a.fields)}
    if a.defn.GetGeomFieldCount() > 0:
        names[NO_GEOMETRY] = NO_GEOMETRY
    for name, which in names.items():
        same(layer.SetIgnoredFields([name]), 0, f"{name} cannot be ignored")
        features = features_of(layer)
        same(layer.GetFeatureCount(1), len(a.rows), f"count without {name}")
        same([row_of(f, which) for f in features], [row_of(f, which) for f in a.features], f"without {name}")
        for f in features:
            gone = f.GetGeometryRef() is None if which == NO_GEOMETRY else not f.IsFieldSetAndNotNull(which)
            true(gone, f"{name} is there")
    # First all fields are ignored, then none.
    everything = [*names, NO_GEOMETRY, "OGR_STYLE"]
    layer.SetIgnoredFields(everything)
    same([f.GetFID() for f in features_of(layer)], [r[0] for r in a.rows], "without anything")
    with errors_expected():
        true(layer.SetIgnoredFields([*everything, "no such field"]) != 0, "a field that is not there")
    layer.SetIgnoredFields([])
    same(read(layer), a.rows, "nothing ignored any more")


def check_sql(a):
    for dialect in ("OGRSQL", "SQLITE"):
        for where, n in (("", len(a.rows)), (" WHERE 0 = 1", 0)):
            sql = f'SELECT * FROM "{a.layer.GetName()}"{where}'
            result = a.dataset.ExecuteSQL(sql, None, dialect)
            true(result is not None, f"{dialect}: {sql}")
            got = read(result)
            same(len(got), n, f"{dialect}: {sql}")
            if dialect == "OGRSQL":  # SQLite's dialect numbers its rows itself
                same(got, a.rows[:n], sql)
            a.dataset.ReleaseResultSet(result)


def check_extent(a):
    boxes = [s.GetEnvelope() for s in a.shapes if s is not None and not s.IsEmpty()]
    with errors_expected():
        extent = a.layer.GetExtent(force=1, can_return_null=True)
    if not boxes:
        true(extent is None or extent[0] > extent[1] or extent[:2] == (0, 0), "one without any geometry")
        return
    expected = [pick(b[i] for b in boxes) for i, pick in enumerate((min, max, min, max))]
    for got, want in zip(extent, expected):
        near(got, want, 1e-14 * (abs(got) + abs(want)), "extent")  # GeoPackage keeps 15 digits
    with errors_expected():
        for field in (-1, 7):
            same(a.layer.GetExtent(force=1, can_return_null=True, geom_field=field), None, "of no geometry field")
    if a.layer.TestCapability("FastGetExtent"):
        same(a.layer.GetExtent(force=0), extent, "the extent that is declared fast")


def check_arrow(a):
    """Checks that Arrow batches have all rows, and that a stream can be released half-way."""
    if not hasattr(a.layer, "GetArrowStreamAsNumPy"):
        return
    try:
        for turn in range(3):
            n = 0
            for batch in a.layer.GetArrowStreamAsNumPy(["MAX_FEATURES_IN_BATCH=7"] if turn else []):
                size = len(next(iter(batch.values())))
                true(turn == 0 or size <= 7, f"a batch of {size} rows")
                n += size
                if turn == 2:
                    break
            batch = None
            true(turn == 2 or n == len(a.rows), f"{n} rows in place of {len(a.rows)}")
    except ImportError:
        return
    same(read(a.layer), a.rows, "rows after streams")


def check_texts(a):
    """If the layer declares that its texts are UTF-8, checks that they are. Python's
    bindings return bytes for other texts."""
    if a.layer.TestCapability("StringsAsUTF8"):
        for i, field in enumerate(a.fields):
            if field.GetType() == ogr.OFTString:
                kinds = {type(values_of(f)[i]) for f in a.features}
                true(kinds <= {str, type(None)}, f"{field.GetName()} is not all UTF-8: {kinds}")


def check_read_only(a):
    """Checks that the layer declares no capability to write, and that every attempt to write
    fails."""
    layer, dataset = a.layer, a.dataset
    for what in WRITES:
        true(not layer.TestCapability(what), f"claims {what}")
    for what in ("CreateLayer", "DeleteLayer", "Transactions"):
        true(not dataset.TestCapability(what), f"the dataset claims {what}")
    with errors_expected():
        true(layer.CreateFeature(ogr.Feature(a.defn)) != 0, "adds a row")
        true(layer.CreateField(ogr.FieldDefn("more", ogr.OFTInteger)) != 0, "adds a field")
        true(layer.DeleteField(0) != 0, "deletes a field")
        if a.rows:
            true(layer.SetFeature(a.features[0]) != 0, "changes a row")
            true(layer.DeleteFeature(a.rows[0][0]) != 0, "deletes a row")
        same(dataset.CreateLayer("more", None, ogr.wkbPoint), None, "adds a layer")
        true(dataset.DeleteLayer(0) != 0, "deletes the layer")
        true(dataset.StartTransaction() != 0, "starts a transaction")
    # Opening for update gives no dataset and no error message.
    same(gdal.OpenEx(a.name, gdal.OF_VECTOR | gdal.OF_UPDATE), None, "opens for writing")


def check_threads(a, n_threads, n_loops):
    """Reads in several threads, each with its own handle. Some handles are closed while
    a stream is open."""
    wrong = []

    def loop():
        for turn in range(n_loops):
            dataset = gdal.OpenEx(a.name, gdal.OF_VECTOR)
            layer, got = dataset.GetLayer(0), []
            most = len(a.rows) // 2 if turn % 3 == 1 else len(a.rows) + 1
            while len(got) < most:
                feature = layer.GetNextFeature()
                if feature is None:
                    break
                got.append(row_of(feature))
            feature = layer = dataset = None
            if got != a.rows[:most]:
                wrong.append(len(got))
        done.append(turn)

    done = []
    threads = [threading.Thread(target=loop) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(wrong, [], "rows of threads")
    same(len(done), n_threads, "threads that came to their end")


def conforms(name, is_writable=False, n_threads=4, n_loops=4):
    """Runs all checks on a dataset. With is_writable, omits check_kinds() and
    check_read_only(). Returns the number of rows of its layer."""
    with Messages() as messages:
        dataset = gdal.OpenEx(name, gdal.OF_VECTOR | gdal.OF_VERBOSE_ERROR)
        true(dataset is not None and dataset.GetLayerCount() >= 1, f"{name}: {messages.all}")
        a = LayerUnderTest(name, dataset)
        checks = [check_dataset, check_definition, check_sequence, check_count, check_random_read, check_indexes,
                  check_attribute_filters, check_spatial_filters, check_ignored_fields, check_sql, check_extent,
                  check_texts, check_arrow]
        if not is_writable:
            checks += [check_kinds, check_read_only]
        try:
            for check in checks:
                check(a)
            same(read(a.layer), a.rows, "after all that")
            check_references(name)
            check_threads(a, n_threads, n_loops)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        n = len(a.rows)
        a.features = a.shapes = None
        a = dataset = None
    same(messages.errors, [], name)
    return n
