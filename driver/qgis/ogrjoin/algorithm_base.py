"""What the algorithms share."""

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
    """A class per algorithm, with what stays the same as class attributes."""

    NAME = TITLE = HELP = ""
    TAGS = PARAMETERS = OUTPUTS = ()  # parameters.Row; outputs' kind, name, text
    JOIN = "JOIN"  # the parameter of the join layer
    OP = None  # of -op where no parameter says so

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
        """Those that the command's tables give are a function."""
        for row in self.PARAMETERS:
            yield from row() if callable(row) else (row,)

    def initAlgorithm(self, configuration=None):
        for row in self.rows():
            self.addParameter(row.make())
        for kind, name, text in self.OUTPUTS:
            self.addOutput(kind(name, text))

    def words(self, part, parameters, context):
        """What the parameters say of a part of the command."""
        words = ["-op", self.OP] if self.OP and part == shared.JOIN else []
        for row in self.rows():
            if row.part == part:
                words += row.words(self, parameters, context)
        return words

    def sides(self, context, feedback):
        """Options of both sides, and the two datasets."""
        datasets = [
            self.input.take(context, feedback),
            self.join.take(context, feedback),
        ]
        return [*self.input.words, *self.join.words], datasets


class Destination:
    """A destination parameter: the words for the command, and what QGIS loads.
    path is "" where it is not wanted."""

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


class JoinAlgorithm(OgrjoinAlgorithm):
    """An algorithm that writes rows."""

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
                "Both outputs are one file." if runs else "No output is wanted."
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
