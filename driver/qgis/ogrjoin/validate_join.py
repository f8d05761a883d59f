from qgis.core import (
    QgsProcessing,
    QgsProcessingException,
    QgsProcessingOutputBoolean,
    QgsProcessingOutputNumber,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterEnum,
    QgsProcessingParameterVectorDestination,
    QgsProcessingUtils,
)

from . import command, operations, parameters as shared
from .algorithm import OgrjoinAlgorithm

# The usual one is geos, or sphere with distances on the globe.
USUAL = "the usual one"
REFERENCES = (USUAL, "geos", "geos_sorted", "spatialindex", "cpu")


class ValidateJoin(OgrjoinAlgorithm):
    NAME = "validatejoin"
    TITLE = "Validate a join"
    TAGS = ("validate", "proof", "check", "compare", "GEOS", "test")
    HELP = (
        "Joins two layers twice, with ogrjoin's own engine and with another one "
        "(GEOS), and compares every pair of features and every distance. The log "
        "says how many rows were compared and which differ."
        "<p>The differing rows can be written as a layer of points. A difference "
        "is an error, unless <i>Fail where rows differ</i> is off; then the "
        "outputs DIFFERENT and AGREES say so.</p>"
        "<p>With distances on the globe the reference is sphere: plain "
        "trigonometry.</p>"
    )

    def initAlgorithm(self, configuration=None):
        shared.add_layer(self, "INPUT", "Join to features in")
        operations.add_operation(self)
        shared.add_layer(self, "JOIN", "By comparing to")
        operations.add_numbers(self)
        self.addParameter(
            QgsProcessingParameterEnum(
                "REFERENCE", "Compare with", list(REFERENCES), False, USUAL, False, True
            )
        )
        self.addParameter(
            QgsProcessingParameterBoolean("FAIL", "Fail where rows differ", True)
        )
        shared.add_metric(self)
        shared.add_running(self)
        self.addParameter(
            QgsProcessingParameterVectorDestination(
                "REPORT",
                "Differing rows",
                QgsProcessing.TypeVectorAnyGeometry,
                None,
                True,
                False,
            )
        )
        for name, text in (
            ("ROWS", "Number of rows compared"),
            ("PAIRS", "Number of pairs"),
            ("DIFFERENT", "Number of rows that differ"),
        ):
            self.addOutput(QgsProcessingOutputNumber(name, text))
        self.addOutput(QgsProcessingOutputBoolean("AGREES", "All rows agree"))

    def processAlgorithm(self, parameters, context, feedback):
        reference = self.parameterAsEnumString(parameters, "REFERENCE", context)
        report = self.parameterAsOutputLayer(parameters, "REPORT", context)
        words = [
            *operations.operation(self, parameters, context),
            *shared.running(self, parameters, context),
            "-validate",
            *([] if reference == USUAL else [reference]),
        ]
        if report:
            words += ["-validate_report", report]
        of_sides, datasets = self.sides(context, feedback)
        # The rows themselves are not wanted, but the command writes them.
        rows = QgsProcessingUtils.generateTempFilename("rows.gpkg")
        code, summary = command.run_and_sum_up(
            [*words, *of_sides, "-lco", "SPATIAL_INDEX=NO", rows, *datasets],
            feedback,
            may_end_with=(command.EXIT_COMPLETE, command.EXIT_DIFFERENT),
        )
        if code is None:
            return {}
        results = {
            "ROWS": summary["rows_validated"],
            "PAIRS": summary["pairs"],
            "DIFFERENT": summary["rows_different"],
            "AGREES": code == command.EXIT_COMPLETE,
        }
        if report:
            results["REPORT"] = report
        if code == command.EXIT_DIFFERENT:
            what = (
                f"{summary['rows_different']} of {summary['rows_validated']} rows "
                "differ from those of the reference."
            )
            if self.parameterAsBoolean(parameters, "FAIL", context):
                where = f" They are listed in {report}." if report else ""
                raise QgsProcessingException(what + where)
            feedback.reportError(what)
        return results
