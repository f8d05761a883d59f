"""Which of several matches is taken: the parameter METHOD."""

from qgis.core import (
    QgsProcessingException,
    QgsProcessingParameterEnum,
    QgsProcessingParameterField,
)

from . import parameters as shared

# The first three have the numbers of QGIS.
METHODS = (
    ("Create separate feature for each matching feature (one-to-many)", None),
    ("Take attributes of the first matching feature only (one-to-one)", "first"),
    (
        "Take attributes of the feature with largest overlap only (one-to-one)",
        "largest_overlap",
    ),
    ("Take attributes of the nearest feature only (one-to-one)", "nearest"),
    ("Take attributes of the smallest polygon only (one-to-one)", "smallest_area"),
    ("Take attributes of the largest polygon only (one-to-one)", "largest_area"),
    ("Take attributes of the feature with the largest value (one-to-one)", "max"),
    ("Take attributes of the feature with the smallest value (one-to-one)", "min"),
)


def add_method(algorithm, default=0):
    algorithm.addParameter(
        QgsProcessingParameterEnum(
            "METHOD", "Join type", [text for text, _ in METHODS], False, default
        )
    )


def add_pick_field(algorithm, layer):
    algorithm.addParameter(
        shared.advanced(
            QgsProcessingParameterField(
                "PICK_FIELD",
                "Field of the largest or smallest value",
                None,
                layer,
                QgsProcessingParameterField.Any,
                False,
                True,
            )
        )
    )


def pick(algorithm, parameters, context):
    rule = METHODS[algorithm.parameterAsEnum(parameters, "METHOD", context)][1]
    if rule is None:
        return []
    if rule in ("max", "min"):
        field = algorithm.parameterAsString(parameters, "PICK_FIELD", context)
        if not field:
            raise QgsProcessingException(
                "This join type needs the field of the largest or smallest value "
                "(an advanced parameter)."
            )
        rule += ":" + field
    return ["-pick", rule]
