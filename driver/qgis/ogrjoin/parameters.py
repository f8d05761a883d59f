"""Parameters that several algorithms have, and the words that they stand for.

Each add_*() adds parameters; the function of the same name without add_ gives
the words for the command. Names, order and defaults of what comes before the
advanced ones are those of the join algorithms of QGIS.
"""

import shlex

from qgis.core import (
    QgsProcessing,
    QgsProcessingException,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterDistance,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFeatureSource,
    QgsProcessingParameterField,
    QgsProcessingParameterNumber,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorDestination,
)

# The first seven have the numbers of QGIS.
PREDICATES = (
    ("intersect", "intersects"),
    ("contain", "contains"),
    ("equal", "equals"),
    ("touch", "touches"),
    ("overlap", "overlaps"),
    ("are within", "within"),
    ("cross", "crosses"),
    ("cover (contain, or reach to the border)", "covers"),
    ("are covered by (within, or on the border)", "coveredby"),
    ("contain properly (without touching the border)", "contains_properly"),
    ("are disjoint from", "disjoint"),
    ("have an envelope that meets that of", "bbox"),
)

METRICS = (
    ("In the plane of the CRS, in its units", "planar"),
    ("On the globe, in metres (layers in degrees)", "sphere"),
    ("In degrees, as if they were a plane", "degrees"),
)

BACKENDS = (
    "auto",
    "cpu",
    "cuda",
    "geos",
    "geos_sorted",
    "spatialindex",
    "spatialindex_collective",
    "quadrant",
    "cuda_quadrant",
)

INVALID = (
    ("Take them as they are", "use"),
    ("Leave them without a match", "skip"),
    ("Repair them for the join", "fix"),
    ("Stop", "fail"),
)


def advanced(parameter):
    parameter.setFlags(
        parameter.flags() | QgsProcessingParameterDefinition.FlagAdvanced
    )
    return parameter


# --- layers ----------------------------------------------------------------


def add_layer(algorithm, name, text):
    algorithm.addParameter(
        QgsProcessingParameterFeatureSource(
            name, text, [QgsProcessing.TypeVectorAnyGeometry]
        )
    )


def add_joined_layers(algorithm):
    """The rows, and those that match nothing; either may be left out."""
    for name, text, is_default in (
        ("OUTPUT", "Joined layer", True),
        ("NON_MATCHING", "Unjoinable features from first layer", False),
    ):
        algorithm.addParameter(
            QgsProcessingParameterVectorDestination(
                name,
                text,
                QgsProcessing.TypeVectorAnyGeometry,
                None,
                True,
                is_default,
            )
        )


# --- fields and rows ---------------------------------------------------------


def add_fields(algorithm, name, layer, text):
    algorithm.addParameter(
        QgsProcessingParameterField(
            name, text, None, layer, QgsProcessingParameterField.Any, True, True
        )
    )


def chosen_fields(algorithm, parameters, name, side, context):
    """Names of the chosen fields that the command knows; None: all."""
    names = algorithm.parameterAsFields(parameters, name, context)
    return side.own_fields(names) if names else None


def fields(algorithm, parameters, name, side, context):
    names = chosen_fields(algorithm, parameters, name, side, context)
    if names is None:
        return []
    return ["-join_select", ",".join(map(quoted, names))]


def quoted(name):
    if any(letter in name for letter in ',"'):
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return name


def add_discard(algorithm):
    algorithm.addParameter(
        QgsProcessingParameterBoolean(
            "DISCARD_NONMATCHING",
            "Discard records which could not be joined",
            False,
        )
    )


def add_prefix(algorithm):
    algorithm.addParameter(
        QgsProcessingParameterString(
            "PREFIX",
            "Prefix of joined fields whose names are taken (join_ when empty)",
            None,
            False,
            True,
        )
    )


def discard(algorithm, parameters, context):
    if algorithm.parameterAsBoolean(parameters, "DISCARD_NONMATCHING", context):
        return ["-how", "inner"]
    return []


def prefix(algorithm, parameters, context):
    text = algorithm.parameterAsString(parameters, "PREFIX", context)
    return ["-prefix", text] if text else []


# --- distances ---------------------------------------------------------------


def add_distance(algorithm, name, text, layer, is_optional):
    algorithm.addParameter(
        QgsProcessingParameterDistance(name, text, None, layer, is_optional, 0)
    )


def add_metric(algorithm):
    algorithm.addParameter(
        advanced(
            QgsProcessingParameterEnum(
                "METRIC", "Distances", [text for text, _ in METRICS], False, 0
            )
        )
    )


def distance(algorithm, parameters, name, context):
    """-max_distance and -metric."""
    metric = METRICS[algorithm.parameterAsEnum(parameters, "METRIC", context)][1]
    is_given = parameters.get(name) is not None
    value = algorithm.parameterAsDouble(parameters, name, context)
    words = []
    if metric == "sphere":
        words += ["-metric", "sphere"]
    if metric == "degrees":
        words += ["-max_distance", f"{value!r}deg" if is_given else "infdeg"]
    elif is_given:
        words += ["-max_distance", repr(value)]
    return words


# --- how to run --------------------------------------------------------------


def add_running(algorithm):
    """The advanced parameters of every algorithm."""
    for parameter in (
        QgsProcessingParameterEnum(
            "INVALID", "Invalid polygons", [text for text, _ in INVALID], False, 0
        ),
        QgsProcessingParameterEnum(
            "BACKEND", "Backend", list(BACKENDS), False, BACKENDS[0], False, True
        ),
        QgsProcessingParameterNumber(
            "THREADS",
            "Threads (0: one for each core)",
            QgsProcessingParameterNumber.Integer,
            0,
            False,
            0,
        ),
        QgsProcessingParameterString(
            "EXTRA", "Extra options of ogrjoin", None, False, True
        ),
    ):
        algorithm.addParameter(advanced(parameter))


def running(algorithm, parameters, context):
    invalid = INVALID[algorithm.parameterAsEnum(parameters, "INVALID", context)][1]
    backend = algorithm.parameterAsEnumString(parameters, "BACKEND", context)
    threads = algorithm.parameterAsInt(parameters, "THREADS", context)
    words = []
    if invalid != "use":
        words += ["-invalid", invalid]
    if backend != "auto":
        words += ["-backend", backend]
    if threads > 0:
        words += ["-threads", threads]
    return words + extra(algorithm, parameters, context)


def extra(algorithm, parameters, context):
    text = algorithm.parameterAsString(parameters, "EXTRA", context) or ""
    try:
        return shlex.split(text)
    except ValueError as why:
        raise QgsProcessingException(f"Extra options of ogrjoin: {why}.") from None
