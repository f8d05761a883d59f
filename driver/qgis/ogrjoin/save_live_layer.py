import os

from qgis.core import (
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputVectorLayer,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterString,
)

from . import command, operations, parameters as shared, pick
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

    def initAlgorithm(self, configuration=None):
        shared.add_layer(self, "INPUT", "Join to features in")
        operations.add_operation(self)
        shared.add_layer(self, "JOIN", "By comparing to")
        operations.add_numbers(self)
        shared.add_fields(
            self,
            "JOIN_FIELDS",
            "JOIN",
            "Fields to add (leave empty to use all fields)",
        )
        pick.add_method(self)
        shared.add_discard(self)
        shared.add_prefix(self)
        pick.add_pick_field(self, "JOIN")
        self.addParameter(
            shared.advanced(
                QgsProcessingParameterString(
                    "AGGREGATES",
                    "Aggregates, as count, mean(fare) (one row per feature)",
                    None,
                    False,
                    True,
                )
            )
        )
        shared.add_metric(self)
        shared.add_running(self)
        self.addParameter(
            QgsProcessingParameterBoolean("LOAD", "Add the layer to the project", True)
        )
        self.addParameter(
            QgsProcessingParameterFileDestination(
                "OUTPUT", "Live layer", "Live layers of ogrjoin (*.ogrjoin)"
            )
        )
        self.addOutput(QgsProcessingOutputVectorLayer("LAYER", "Live layer"))

    def words(self, parameters, context):
        words = [
            *operations.operation(self, parameters, context),
            *shared.discard(self, parameters, context),
        ]
        aggregates = self.parameterAsString(parameters, "AGGREGATES", context)
        if aggregates:
            words += ["-agg", aggregates]
        else:
            words += [
                *pick.pick(self, parameters, context),
                *shared.fields(self, parameters, "JOIN_FIELDS", self.join, context),
                *shared.prefix(self, parameters, context),
            ]
        return words + shared.running(self, parameters, context)

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
            *self.words(parameters, context),
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
