from qgis.core import (
    QgsProcessingException,
    QgsProcessingOutputBoolean,
    QgsProcessingOutputNumber,
    QgsProcessingParameterEnum,
    QgsProcessingUtils,
)

from . import command, parameters as shared
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

    PARAMETERS = (
        *shared.OPERATION,
        shared.row(
            QgsProcessingParameterEnum,
            "REFERENCE",
            "Compare with",
            list(REFERENCES),
            False,
            USUAL,
            False,
            True,
        ),
        shared.flag("FAIL", "Fail where rows differ", part=None, default=True),
        shared.METRIC,
        *shared.RUNNING,
        shared.destination("REPORT", "Differing rows"),
    )
    OUTPUTS = (
        (QgsProcessingOutputNumber, "ROWS", "Number of rows compared"),
        (QgsProcessingOutputNumber, "PAIRS", "Number of pairs"),
        (QgsProcessingOutputNumber, "DIFFERENT", "Number of rows that differ"),
        (QgsProcessingOutputBoolean, "AGREES", "All rows agree"),
    )

    def processAlgorithm(self, parameters, context, feedback):
        reference = self.parameterAsEnumString(parameters, "REFERENCE", context)
        report = self.parameterAsOutputLayer(parameters, "REPORT", context)
        words = [
            *self.words(shared.JOIN, parameters, context),
            *self.words(shared.RUN, parameters, context),
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
