"""Base classes of the algorithms."""

import os

from osgeo import gdal
from qgis.core import (
    QgsProcessingAlgorithm,
    QgsProcessingException,
    QgsProcessingOutputNumber,
    QgsProcessingUtils,
)
from qgis.PyQt.QtGui import QIcon

from . import command, parameters as shared, source


def icon_path(name):
    return os.path.join(os.path.dirname(__file__), "icons", name + ".svg")


class OgrjoinAlgorithm(QgsProcessingAlgorithm):
    """Base class. Each algorithm is a subclass, described by class attributes."""

    NAME = TITLE = HELP = ""
    TAGS = ()
    PARAMETERS = ()  # of parameters.Row, or functions that return rows
    OUTPUTS = ()  # of (class of QGIS, name, text)
    JOIN = "JOIN"  # the parameter of the join layer
    OP = None  # argument of -op, unless a parameter sets it

    def __init__(self):
        super().__init__()
        self.input = self.join = None  # source.Side

    def createInstance(self):
        return type(self)()

    def name(self):
        return self.NAME

    def displayName(self):
        return self.TITLE

    def shortHelpString(self):
        return self.HELP

    def shortDescription(self):
        return self.HELP.split(".")[0] + "."

    def tags(self):
        return ["join", "spatial", "ogrjoin", *self.TAGS]

    def icon(self):
        return QIcon(icon_path(self.NAME))

    def svgIconPath(self):
        return icon_path(self.NAME)

    def canExecute(self):
        path, problem = command.find_command()
        return path is not None, problem

    def prepareAlgorithm(self, parameters, context, feedback):
        self.input = source.Side(self, parameters, "INPUT", context, source.INPUT)
        self.join = source.Side(self, parameters, self.JOIN, context, source.JOIN)
        return True

    def rows(self):
        """Yields all parameter rows. An entry of PARAMETERS may be a function
        that reads rows from the command's tables."""
        for row in self.PARAMETERS:
            yield from row() if callable(row) else (row,)

    def initAlgorithm(self, configuration=None):
        for row in self.rows():
            self.addParameter(row.make())
        for kind, name, text in self.OUTPUTS:
            self.addOutput(kind(name, text))

    def words(self, part, parameters, context):
        """Returns the arguments from the parameters of one part of the command
        line."""
        words = ["-op", self.OP] if self.OP and part == shared.JOIN else []
        for row in self.rows():
            if row.part == part:
                words += row.words(self, parameters, context)
        return words

    def sides(self, context, feedback):
        """Returns the options of both sides, and their two datasets."""
        datasets = [
            self.input.take(context, feedback),
            self.join.take(context, feedback),
        ]
        return [*self.input.words, *self.join.words], datasets


class Destination:
    """A destination parameter: the arguments for the command, and the layer
    that QGIS loads. path is "" if the user skips the output."""

    def __init__(self, algorithm, parameters, name, context):
        self.name = name
        self.path = algorithm.parameterAsOutputLayer(parameters, name, context) or ""
        if self.path.startswith("memory:"):
            self.path = QgsProcessingUtils.generateTempFilename(f"{name}.gpkg")
        self.layer = os.path.splitext(os.path.basename(self.path))[0]
        self.was_there = bool(self.path) and os.path.exists(self.path)

    def words(self):
        """Returns the arguments for the output. If the file exists, only this
        layer in it is replaced."""
        options = ["-overwrite", "-nln", self.layer]
        if self.path.lower().endswith(".shp"):
            options += ["-lco", "ENCODING=UTF-8"]
        return [*options, self.path]

    def result(self, context):
        """Returns the source of the written layer, for QGIS."""
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


class JoinAlgorithm(OgrjoinAlgorithm):
    """Base class of algorithms that write joined rows."""

    OUTPUTS = (
        (
            QgsProcessingOutputNumber,
            "JOINED_COUNT",
            "Number of joined features from input table",
        ),
        (
            QgsProcessingOutputNumber,
            "UNJOINABLE_COUNT",
            "Number of unjoinable features from input table",
        ),
    )

    def processAlgorithm(self, parameters, context, feedback):
        joined = Destination(self, parameters, "OUTPUT", context)
        rest = None
        if self.parameterDefinition("NON_MATCHING") is not None:
            rest = Destination(self, parameters, "NON_MATCHING", context)
        what, rows, how = (
            self.words(part, parameters, context)
            for part in (shared.JOIN, shared.ROWS, shared.RUN)
        )
        runs = []
        if joined.path:
            runs.append((joined, [*what, *rows, *how]))
        if rest is not None and rest.path:
            runs.append((rest, [*what, "-how", "anti", *how]))
        if len({destination.path for destination, _ in runs}) < max(1, len(runs)):
            raise QgsProcessingException(
                "Both outputs are one file: name two files."
                if runs
                else "Both outputs are skipped: choose at least one."
            )
        of_sides, datasets = self.sides(context, feedback)
        results = {}
        for i, (destination, words) in enumerate(runs):
            if feedback.isCanceled():
                break
            _, summary = command.run_and_sum_up(
                [*words, *of_sides, *destination.words(), *datasets],
                feedback,
                span=(100.0 * i / len(runs), 100.0 * (i + 1) / len(runs)),
            )
            if not summary:
                break
            results[destination.name] = destination.result(context)
            results["JOINED_COUNT"] = summary["matched"]
            results["UNJOINABLE_COUNT"] = summary["unmatched"]
        return results
