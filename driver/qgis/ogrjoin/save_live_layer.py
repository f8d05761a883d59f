import os

from qgis.core import (
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputVectorLayer,
    QgsProcessingParameterFileDestination,
)

from . import command, parameters as shared
from .algorithm import OgrjoinAlgorithm


class SaveLiveLayer(OgrjoinAlgorithm):
    NAME = "savelivelayer"
    TITLE = "Save join as live layer"
    TAGS = ("live", "virtual", "view", "dynamic", "ogrjoin", "driver")
    HELP = (
        "Saves what is joined with what, not the rows: a small file *.ogrjoin, "
        "which GDAL opens as a layer. The join is done when rows are read, so the "
        "layer always shows the present state of its two layers, and the map "
        "joins only what is in view."
        "<p>Both layers must be files (their filters are kept). Paths are written "
        "relative to the file, so that a folder can be moved as a whole.</p>"
        "<p>QGIS needs GDAL's driver JOIN (ogr_JOIN.so) to open the layer.</p>"
    )

    PARAMETERS = (
        *shared.OPERATION,
        *shared.JOINED_ROWS,
        shared.text(
            "AGGREGATES", "Aggregates, as count, mean(fare) (one row per feature)"
        ),
        shared.METRIC,
        *shared.RUNNING,
        shared.flag("LOAD", "Add the layer to the project", part=None, default=True),
        shared.row(
            QgsProcessingParameterFileDestination,
            "OUTPUT",
            "Live layer",
            "Live layers of ogrjoin (*.ogrjoin)",
        ),
    )
    OUTPUTS = ((QgsProcessingOutputVectorLayer, "LAYER", "Live layer"),)

    def row_words(self, parameters, context):
        aggregates = self.parameterAsString(parameters, "AGGREGATES", context)
        if not aggregates:
            return self.words(shared.ROWS, parameters, context)
        discard = shared.DISCARD.words(self, parameters, context)
        return [*discard, "-agg", aggregates]

    def processAlgorithm(self, parameters, context, feedback):
        is_loaded = self.parameterAsBoolean(parameters, "LOAD", context)
        problem = command.explain_missing_driver()
        if problem and is_loaded:
            raise QgsProcessingException(problem)
        path = self.parameterAsFileOutput(parameters, "OUTPUT", context)
        if os.path.splitext(path)[1].lower() != ".ogrjoin":
            path += ".ogrjoin"
        datasets = [self.input.take_as_file(), self.join.take_as_file()]
        words = [
            *self.words(shared.JOIN, parameters, context),
            *self.row_words(parameters, context),
            *self.words(shared.RUN, parameters, context),
            *self.input.words,
            *self.join.words,
        ]
        if command.run(["-write_spec", path, *words, *datasets], feedback) is None:
            return {}
        if is_loaded and context.project() is not None:
            name = os.path.splitext(os.path.basename(path))[0]
            details = QgsProcessingContext.LayerDetails(
                name, context.project(), "LAYER"
            )
            context.addLayerToLoadOnCompletion(path, details)
        return {"OUTPUT": path, "LAYER": path}
