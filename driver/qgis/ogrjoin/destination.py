"""Where the rows go: the words for the command, and what QGIS loads."""

import os

from osgeo import gdal
from qgis.core import QgsProcessingUtils


class Destination:
    """A destination parameter; path is "" where it is not wanted."""

    def __init__(self, algorithm, parameters, name, context):
        self.name = name
        self.path = algorithm.parameterAsOutputLayer(parameters, name, context) or ""
        if self.path.startswith("memory:"):
            self.path = QgsProcessingUtils.generateTempFilename(f"{name}.gpkg")
        self.layer = os.path.splitext(os.path.basename(self.path))[0]
        self.was_there = bool(self.path) and os.path.exists(self.path)

    def words(self):
        """Options, and the destination: an existing file is replaced, but other
        layers that it holds stay."""
        options = ["-overwrite", "-nln", self.layer]
        if self.path.lower().endswith(".shp"):
            options += ["-lco", "ENCODING=UTF-8"]
        return [*options, self.path]

    def result(self, context):
        """What names the layer for QGIS."""
        if not self.was_there:
            return self.path
        dataset = gdal.OpenEx(self.path, gdal.OF_VECTOR)
        if dataset is None or dataset.GetLayerCount() < 2:
            return self.path
        uri = f"{self.path}|layername={self.layer}"
        to_load = context.layersToLoadOnCompletion()
        if self.path in to_load:
            to_load[uri] = to_load.pop(self.path)
            context.setLayersToLoadOnCompletion(to_load)
        return uri
