"""A QGIS layer as a side of the command. The command reads the file of the
layer, if the layer shows exactly the content of the file; otherwise it reads a
copy of the layer."""

import os

from osgeo import gdal
from qgis.core import (
    QgsField,
    QgsFields,
    QgsProcessingException,
    QgsProcessingFeatureSourceDefinition,
    QgsProcessingUtils,
    QgsProviderRegistry,
    QgsVectorFileWriter,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QVariant

# The command's options for each side.
INPUT = {"layer": "-input_layer", "where": "-where", "oo": "-oo", "srs": "-s_srs"}
JOIN = {
    "layer": "-join_layer",
    "where": "-join_where",
    "oo": "-joo",
    "srs": "-join_srs",
}


class Side:
    """The layer of a parameter. The constructor examines it on the main
    thread. take() turns it into a dataset in the background."""

    def __init__(self, algorithm, parameters, name, context, options):
        self.options = options
        self.source = algorithm.parameterAsSource(parameters, name, context)
        if self.source is None:
            raise QgsProcessingException(
                algorithm.invalidSourceError(parameters, name)
            )
        self.layer_name = self.source.sourceName()
        self.fields = self.source.fields()
        self.dataset = None  # the file or its copy; None: not copied yet
        self.words = []
        # Name of the field with the FID, which is no field for the command.
        self.fid_field = None
        self.why_copied = ""
        self._inspect_layer(algorithm, parameters, name, context)

    def _inspect_layer(self, algorithm, parameters, name, context):
        layer = _find_layer(algorithm, parameters, name, context)
        if layer is None:
            self.why_copied = "it is not a layer"
            return
        provider = layer.dataProvider()
        keys = provider.pkAttributeIndexes()
        if provider.name() == "ogr" and keys == [0]:
            self.fid_field = self.fields[0].name()
        self.why_copied = _why_copied(layer, parameters.get(name))
        if self.why_copied:
            return
        parts = QgsProviderRegistry.instance().decodeUri("ogr", layer.source())
        self.dataset = parts["path"]
        table = parts.get("layerName") or _first_layer(self.dataset)
        if table:
            self.words += [self.options["layer"], table]
        if layer.subsetString():
            self.words += [self.options["where"], layer.subsetString()]
        for option in parts.get("openOptions") or []:
            self.words += [self.options["oo"], option]
        crs = layer.crs()
        if crs.isValid() and crs != provider.crs():
            self.words += [self.options["srs"], _name_of_crs(crs)]

    def take(self, context, feedback):
        """Returns the dataset; makes the copy if needed."""
        if self.dataset is None:
            feedback.pushInfo(f"{self.layer_name} is copied: {self.why_copied}.")
            self.dataset = self._copy(context, feedback)
        return self.dataset

    def take_as_file(self):
        """Returns the file. A copy is not enough: it is deleted at the end of the
        algorithm, and a live layer reads its file later."""
        if self.dataset is None:
            raise QgsProcessingException(
                f"A live layer reads files, but {self.layer_name} cannot be read "
                f"from one: {self.why_copied}. Save it as a file first."
            )
        return self.dataset

    def own_fields(self, names):
        """Returns the names without the FID, which is no field for the
        command."""
        return [name for name in names if name != self.fid_field]

    def _copy(self, context, feedback):
        """Copies the layer to a GeoPackage. The copy keeps the FIDs, since these break
        ties and are written as join_fid. Returns the path of the GeoPackage."""
        path = QgsProcessingUtils.generateTempFilename("layer.gpkg")
        fields = QgsFields(self.fields)
        fid_name = self.fid_field
        if fid_name is None:
            fid_name = "fid"
            while self.fields.lookupField(fid_name) >= 0:
                fid_name += "_"
            fields = QgsFields()
            fields.append(QgsField(fid_name, QVariant.LongLong))
            for field in self.fields:
                fields.append(field)
        options = QgsVectorFileWriter.SaveVectorOptions()
        options.driverName = "GPKG"
        options.layerName = "layer"
        options.layerOptions = ["SPATIAL_INDEX=NO", f"FID={fid_name}"]
        writer = QgsVectorFileWriter.create(
            path,
            fields,
            self.source.wkbType(),
            self.source.sourceCrs(),
            context.transformContext(),
            options,
        )
        adds_fid = self.fid_field is None
        n = max(1, self.source.featureCount())
        for i, feature in enumerate(self.source.getFeatures()):
            if feedback.isCanceled():
                break
            if adds_fid:
                # Unsaved features have negative ids.
                fid = feature.id() if feature.id() >= 0 else None
                attributes = [fid, *feature.attributes()]
                feature.setFields(fields)
                feature.setAttributes(attributes)
            if not writer.addFeature(feature):
                raise QgsProcessingException(
                    f"{self.layer_name} cannot be copied: {writer.errorMessage()}. "
                    "Save it as a file first."
                )
            if i % 1024 == 0:
                feedback.setProgress(100.0 * i / n)
        del writer  # closes the file
        return path


def _find_layer(algorithm, parameters, name, context):
    value = parameters.get(name)
    if not isinstance(value, QgsProcessingFeatureSourceDefinition):
        return algorithm.parameterAsVectorLayer(parameters, name, context)
    text, _ = value.source.valueAsString(context.expressionContext(), "")
    layer = QgsProcessingUtils.mapLayerFromString(text, context)
    return layer if isinstance(layer, QgsVectorLayer) else None


def _why_copied(layer, value):
    """Returns why the layer must be copied, or "" if it shows exactly the
    content of its file."""
    if isinstance(value, QgsProcessingFeatureSourceDefinition):
        if value.selectedFeaturesOnly:
            return "only its selected features are used"
        if value.featureLimit >= 0:
            return "the number of features is limited"
        if getattr(value, "filterExpression", ""):
            return "the features are filtered"
    if layer.providerType() != "ogr":
        return "it is not read by GDAL"
    if layer.isEditable() and layer.isModified():
        return "it has edits that are not saved"
    fields = layer.fields()
    if any(
        fields.fieldOrigin(i) != QgsFields.OriginProvider
        for i in range(fields.count())
    ):
        return "it has joined or virtual fields"
    if layer.subsetString().lstrip().lower().startswith("select"):
        return "its filter is a SELECT"
    parts = QgsProviderRegistry.instance().decodeUri("ogr", layer.source())
    if not parts.get("path"):
        return "it is not in a file"
    if parts.get("layerId") is not None or "|geometrytype=" in layer.source():
        return "it is a part of a layer"
    if not parts["path"].startswith("/vsi") and not os.path.exists(parts["path"]):
        return "its file does not exist"
    return ""


def _first_layer(path):
    """Returns the name of the layer that QGIS uses if the source names none,
    or None if the file has only one."""
    driver = gdal.IdentifyDriverEx(path, gdal.OF_VECTOR)
    if driver is None or driver.GetMetadataItem("DCAP_MULTIPLE_VECTOR_LAYERS") is None:
        return None
    dataset = gdal.OpenEx(path, gdal.OF_VECTOR)
    if dataset is None or dataset.GetLayerCount() < 2:
        return None
    return dataset.GetLayer(0).GetName()


def _name_of_crs(crs):
    return crs.authid() if crs.authid().startswith("EPSG:") else crs.toWkt()
