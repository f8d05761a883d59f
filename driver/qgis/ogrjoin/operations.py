"""The joins that validate_join and save_live_layer can do: the parameter
OPERATION, and those that say more about it."""

from qgis.core import (
    QgsProcessingException,
    QgsProcessingParameterEnum,
    QgsProcessingParameterNumber,
)

from . import parameters as shared

OPERATIONS = (
    ("nearest", "nearest"),
    ("within a distance", "dwithin"),
    *((f"where the features {text}", op) for text, op in shared.PREDICATES),
)


def add_operation(algorithm):
    algorithm.addParameter(
        QgsProcessingParameterEnum(
            "OPERATION", "Join", [text for text, _ in OPERATIONS], False, 0
        )
    )


def add_numbers(algorithm):
    algorithm.addParameter(
        QgsProcessingParameterNumber(
            "NEIGHBORS",
            "Maximum nearest neighbors (nearest)",
            QgsProcessingParameterNumber.Integer,
            1,
            False,
            1,
        )
    )
    shared.add_distance(
        algorithm,
        "MAX_DISTANCE",
        "Maximum distance (nearest, within a distance)",
        "INPUT",
        True,
    )


def operation(algorithm, parameters, context):
    op = OPERATIONS[algorithm.parameterAsEnum(parameters, "OPERATION", context)][1]
    words = ["-op", op]
    if op not in ("nearest", "dwithin"):
        return words
    if op == "dwithin" and parameters.get("MAX_DISTANCE") is None:
        raise QgsProcessingException("This join needs the maximum distance.")
    neighbors = algorithm.parameterAsInt(parameters, "NEIGHBORS", context)
    if op == "nearest" and neighbors > 1:
        words += ["-k", neighbors]
    return words + shared.distance(algorithm, parameters, "MAX_DISTANCE", context)
