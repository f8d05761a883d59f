"""The parameters of the algorithms and the arguments that they produce, as a
table from which each algorithm takes rows. Names, order and defaults of the
basic parameters are those of the join algorithms of QGIS.
"""

import collections
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

from . import command

# Parts of the command line: the join itself, the columns of matched rows, and
# how the command runs.
JOIN, ROWS, RUN = "join", "rows", "run"

# make() returns the QGIS parameter. words(algorithm, parameters, context)
# returns the parameter's arguments. part is the part of the command line where
# they stand, or None if another row produces them.
Row = collections.namedtuple("Row", "make part words")

# The order of the first seven is that of QGIS's own algorithm.
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

# For each predicate, the predicates that imply it. Several chosen predicates
# become one join if one of them is implied by all others; the join uses that
# one.
FOLLOWS = {
    "intersects": {op for _, op in PREDICATES} - {"disjoint", "bbox"},
    "contains": {"equals", "contains_properly"},
    "within": {"equals"},
    "covers": {"contains", "equals", "contains_properly"},
    "coveredby": {"within", "equals"},
}

OPERATIONS = (
    ("nearest", "nearest"),
    ("within a distance", "dwithin"),
    *((f"where the features {text}", op) for text, op in PREDICATES),
)


def operations():
    """Returns OPERATIONS, followed by the other joins of the command."""
    known = {op for _, op in OPERATIONS} | {"window", "similar"}
    more = [op for op in command.words_after("-op") if op not in known]
    return (*OPERATIONS, *((op.replace("_", " "), op) for op in more))


def backends():
    more = [name for name in command.words_after("-backend") if name != "auto"]
    return ["auto", *more]


# The order of the first three is that of QGIS's own algorithm.
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
    (
        "Pairs in which each feature of either layer is once at most, nearest first",
        "one_to_one",
    ),
    (
        "As many such pairs as there can be, with the least sum of distances",
        "one_to_one best",
    ),
)

METRICS = (
    ("In the plane of the CRS, in its units", "planar"),
    ("On the globe, in metres (layers in degrees)", "sphere"),
    ("In degrees, as if they were a plane", "degrees"),
    ("On the ellipsoid, from or to points, in metres (layers in degrees)", "ellipsoid"),
)

SHAPE_DISTANCES = (
    ("Hausdorff: how far one strays from the other at most", "hausdorff"),
    ("Hausdorff from the input alone: is it covered by the other?", "directed_hausdorff"),
    ("Hausdorff of the vertices", "hausdorff_points"),
    ("Frechet: the same, with the direction of the lines", "frechet"),
)

INVALID = (
    ("Take them as they are", "use"),
    ("Leave them without a match", "skip"),
    ("Repair them for the join", "fix"),
    ("Stop", "fail"),
)


# --- rows of a kind ----------------------------------------------------------


def row(kind, *values, part=None, words=None, is_advanced=False, metadata=None):
    def make():
        """Returns the QGIS parameter. Values that are functions are called,
        because some lists come from the command."""
        parameter = kind(*(v() if callable(v) else v for v in values))
        if is_advanced:
            parameter.setFlags(
                parameter.flags() | QgsProcessingParameterDefinition.FlagAdvanced
            )
        if metadata:
            parameter.setMetadata(metadata)
        return parameter

    return Row(make, part, words)


def value(read, name, option, usual=None):
    """Returns a function words(), which gives the arguments for the value that
    the algorithm's method `read` returns. An empty value, or the default,
    gives none."""

    def words(algorithm, parameters, context):
        found = getattr(algorithm, read)(parameters, name, context)
        return [option, found] if found and found != usual else []

    return words


def flag(name, title, given=(), part=ROWS, is_advanced=False, default=False):
    def words(algorithm, parameters, context):
        is_on = algorithm.parameterAsBoolean(parameters, name, context)
        return list(given) if is_on else []

    return row(
        QgsProcessingParameterBoolean,
        name,
        title,
        default,
        part=part,
        words=words,
        is_advanced=is_advanced,
    )


def text(name, title, option=None, part=None, is_advanced=True):
    return row(
        QgsProcessingParameterString,
        name,
        title,
        None,
        False,
        True,
        part=part,
        words=value("parameterAsString", name, option),
        is_advanced=is_advanced,
    )


def number(name, title, least, option, part):
    """Makes an integer parameter with the minimum `least`. At this minimum, the option
    is not given."""
    return row(
        QgsProcessingParameterNumber,
        name,
        title,
        QgsProcessingParameterNumber.Integer,
        least,
        False,
        least,
        part=part,
        words=value("parameterAsInt", name, option, least),
        is_advanced=part == RUN,
    )


def choice(name, title, choices, words=None, part=None, is_advanced=False):
    return row(
        QgsProcessingParameterEnum,
        name,
        title,
        lambda: [title for title, _ in (choices() if callable(choices) else choices)],
        False,
        0,
        part=part,
        words=words,
        is_advanced=is_advanced,
    )


def choice_by_name(name, title, choices, usual, **how):
    """Makes a choice that is stored by name, since indices may change with the
    command."""
    kind = QgsProcessingParameterEnum
    return row(kind, name, title, choices, False, usual, False, True, **how)


def chosen(algorithm, parameters, name, context, choices):
    return choices[algorithm.parameterAsEnum(parameters, name, context)][1]


# --- layers ------------------------------------------------------------------


def layer(name, title, or_table=False):
    return row(
        QgsProcessingParameterFeatureSource,
        name,
        title,
        [QgsProcessing.TypeVector if or_table else QgsProcessing.TypeVectorAnyGeometry],
    )


def destination(name, title, is_default=False):
    """Makes the row of an optional output layer. With is_default, QGIS makes the layer
    unless the user leaves it out."""
    return row(
        QgsProcessingParameterVectorDestination,
        name,
        title,
        QgsProcessing.TypeVectorAnyGeometry,
        None,
        True,
        is_default,
    )


JOINED_LAYERS = (
    destination("OUTPUT", "Joined layer", True),
    destination("NON_MATCHING", "Unjoinable features from first layer"),
)


# --- the join ----------------------------------------------------------------


def predicate_words(algorithm, parameters, context):
    mask = algorithm.parameterAsString(parameters, "RELATE", context)
    if mask:
        return ["-relate", mask]
    numbers = algorithm.parameterAsEnums(parameters, "PREDICATE", context)
    ops = [PREDICATES[i][1] for i in numbers]
    for op in ops:
        if set(ops) <= {op} | FOLLOWS.get(op, set()):
            return ["-op", op]
    raise QgsProcessingException(
        "choose one predicate: ogrjoin joins by one at a time, and none is equivalent "
        f"to any of these: {', '.join(ops) or 'none'}."
    )


PREDICATE = row(
    QgsProcessingParameterEnum,
    "PREDICATE",
    "Where the features",
    [title for title, _ in PREDICATES],
    True,
    [0],
    part=JOIN,
    words=predicate_words,
    metadata={"widget_wrapper": {"useCheckBoxes": True, "columns": 2}},
)
RELATE = text("RELATE", "DE-9IM pattern in place of the predicate, as F***1****")


def distance_words(algorithm, parameters, name, context):
    """Returns the arguments -max_distance and -metric."""
    metric = chosen(algorithm, parameters, "METRIC", context, METRICS)
    is_given = parameters.get(name) is not None
    value = algorithm.parameterAsDouble(parameters, name, context)
    words = []
    if metric in ("sphere", "ellipsoid"):
        words += ["-metric", metric]
    if metric == "degrees":
        words += ["-max_distance", f"{value!r}deg" if is_given else "infdeg"]
    elif is_given:
        words += ["-max_distance", repr(value)]
    return words


def distance(name, title, is_optional, part=JOIN):
    def words(algorithm, parameters, context):
        return distance_words(algorithm, parameters, name, context)

    return row(
        QgsProcessingParameterDistance,
        name,
        title,
        None,
        "INPUT",
        is_optional,
        0,
        part=part,
        words=words,
    )


SHAPE_DISTANCE = choice(
    "DISTANCE",
    "Distance of two lines",
    SHAPE_DISTANCES,
    lambda algorithm, parameters, context: [
        "-distance",
        chosen(algorithm, parameters, "DISTANCE", context, SHAPE_DISTANCES),
    ],
    JOIN,
)
# Columns of a place along a line.
ALONG = (
    "-along_field", "line_along", "-offset_field", "line_offset", "-side_field", "line_side",
)  # fmt: skip


def place_geometry_words(algorithm, parameters, context):
    made = chosen(algorithm, parameters, "GEOMETRY", context, PLACE_GEOMETRIES)
    return ["-geometry", made] if made else []


PLACE_GEOMETRIES = (
    ("Those of the input layer", None),
    ("The places on the lines", "nearest_point"),
    ("Lines from the features to these places", "connection"),
)
PLACE_GEOMETRY = choice(
    "GEOMETRY", "Geometries of the output", PLACE_GEOMETRIES, place_geometry_words, ROWS
)


def time_words(algorithm, parameters, context):
    """Returns the argument -within_time."""
    names = [
        in_quotes(algorithm.parameterAsString(parameters, name, context))
        for name in ("FIELD", "FIELD_2")
    ]
    apart = algorithm.parameterAsDouble(parameters, "TIME", context)
    unit = chosen(algorithm, parameters, "TIME_UNIT", context, TIME_UNITS)
    return ["-within_time", f"{names[0]}={names[1]}:{apart!r}{unit}"]


TIME_UNITS = (("Seconds", "s"), ("Minutes", "min"), ("Hours", "h"), ("Days", "d"))
TIME_APART = row(
    QgsProcessingParameterNumber,
    "TIME",
    "And their times at most so far apart",
    QgsProcessingParameterNumber.Double,
    30.0,
    False,
    0,
    part=JOIN,
    words=time_words,
)
TIME_UNIT = row(
    QgsProcessingParameterEnum, "TIME_UNIT", "Unit of time", [t for t, _ in TIME_UNITS], False, 1
)
METRIC = choice("METRIC", "Distances", METRICS, is_advanced=True)


def densify_words(algorithm, parameters, context):
    if parameters.get("DENSIFY") is None:
        return []
    return ["-densify", repr(algorithm.parameterAsDouble(parameters, "DENSIFY", context))]


DENSIFY = row(
    QgsProcessingParameterDistance,
    "DENSIFY",
    "Longest piece of a line between two of the vertices that are compared",
    None,
    "INPUT",
    True,
    0,
    part=JOIN,
    words=densify_words,
    is_advanced=True,
)


def operation_words(algorithm, parameters, context):
    op = chosen(algorithm, parameters, "OPERATION", context, operations())
    words = ["-op", op]
    if op not in ("nearest", "dwithin"):
        return words
    if op == "dwithin" and parameters.get("MAX_DISTANCE") is None:
        raise QgsProcessingException(
            "This join needs a maximum distance: fill in Maximum distance."
        )
    neighbors = algorithm.parameterAsInt(parameters, "NEIGHBORS", context)
    if op == "nearest" and neighbors > 1:
        words += ["-k", neighbors]
    return words + distance_words(algorithm, parameters, "MAX_DISTANCE", context)


def join_parameter_row(name, arguments, ops, about):
    """Makes the row of a parameter of some joins from the command's table."""
    choices = arguments.split("|")
    is_choice = len(choices) > 1
    read = "parameterAsEnumString" if is_choice else "parameterAsString"

    def words(algorithm, parameters, context):
        op = chosen(algorithm, parameters, "OPERATION", context, operations())
        given = value(read, name.upper(), f"-{name}", choices[0] if is_choice else "")
        return given(algorithm, parameters, context) if op in ops.split("|") else []

    title = f"{name.replace('_', ' ')} ({ops.replace('|', ', ')}): {about}"
    title = title[0].upper() + title[1:]
    if not is_choice:
        return text(name.upper(), title)._replace(part=JOIN, words=words)
    how = {"part": JOIN, "words": words, "is_advanced": True}
    return choice_by_name(name.upper(), title, choices, choices[0], **how)


def join_parameter_rows():
    """Makes the rows of join parameters that OPERATION does not cover."""
    table = (line.split("\t") for line in command.words_after("--parameters"))
    return [join_parameter_row(*row) for row in table if row[0] not in ("k", "max_distance", "metric")]


# Choice of the join, and the two layers.
OPERATION = (
    layer("INPUT", "Join to features in"),
    choice("OPERATION", "Join", operations, operation_words, JOIN),
    layer("JOIN", "By comparing to"),
    number("NEIGHBORS", "Maximum nearest neighbors (nearest)", 1, "-k", None),
    distance(
        "MAX_DISTANCE", "Maximum distance (nearest, within a distance)", True, None
    ),
    join_parameter_rows,
)


# --- similar texts -----------------------------------------------------------


def similar_words(algorithm, parameters, context):
    names = [
        algorithm.parameterAsString(parameters, name, context).replace('"', '""')
        for name in ("FIELD", "FIELD_2")
    ]
    least = algorithm.parameterAsDouble(parameters, "SIMILARITY", context)
    words = ["-similar", '"{}"="{}":{:.9f}'.format(*names, least)]
    if parameters.get("MAX_DISTANCE") is None:
        return ["-op", "similar", *words]
    found = distance_words(algorithm, parameters, "MAX_DISTANCE", context)
    return ["-op", "dwithin", *found, *words]


SIMILARITY = row(
    QgsProcessingParameterNumber,
    "SIMILARITY",
    "At least so similar (1: equal)",
    QgsProcessingParameterNumber.Double,
    0.6,
    False,
    1e-9,
    1,
    part=JOIN,
    words=similar_words,
)


def choice_from_command(name, title, option):
    """Makes an option whose choices come from the command. The first choice is
    the default."""

    def choices():
        return command.words_after(option)

    return choice_by_name(
        name,
        title,
        choices,
        lambda: next(iter(choices()), None),
        part=JOIN,
        words=value("parameterAsEnumString", name, option),
        is_advanced=True,
    )


OF_TEXTS = (
    choice_from_command("TOKENS", "Pieces of a text", "-tokens"),
    choice_from_command("MEASURE", "Measure of similarity", "-measure"),
)


# --- fields and rows ---------------------------------------------------------


def chosen_fields(algorithm, parameters, name, side, context):
    """Returns the names of the chosen fields, without the FID, or None if all
    fields are used."""
    names = algorithm.parameterAsFields(parameters, name, context)
    return side.own_fields(names) if names else None


def in_quotes(name):
    return '"' + name.replace('"', '""') + '"'


def quoted(name):
    needs_quotes = name != name.strip() or any(letter in name for letter in ',"')
    return in_quotes(name) if needs_quotes else name


def fields(name, layer_name, title, part=ROWS):
    def words(algorithm, parameters, context):
        names = chosen_fields(algorithm, parameters, name, algorithm.join, context)
        if names is None:
            return []
        return ["-join_select", ",".join(map(quoted, names))]

    return row(
        QgsProcessingParameterField,
        name,
        title,
        None,
        layer_name,
        QgsProcessingParameterField.Any,
        True,
        True,
        part=part,
        words=words,
    )


def copied_fields(name="JOIN_FIELDS", layer_name="JOIN"):
    title = "Layer 2 fields to copy (leave empty to copy all fields)"
    return fields(name, layer_name, title)


def field(name, layer_name, title):
    return row(QgsProcessingParameterField, name, title, None, layer_name)


def pick_words(algorithm, parameters, context):
    rule = chosen(algorithm, parameters, "METHOD", context, METHODS)
    if rule is None:
        return []
    if rule.startswith("one_to_one"):
        return ["-" + rule.split()[0], *rule.split()[1:]]
    if rule in ("max", "min"):
        field = algorithm.parameterAsString(parameters, "PICK_FIELD", context)
        if not field:
            raise QgsProcessingException(
                "This join type needs the field of the largest or smallest value "
                "(an advanced parameter)."
            )
        rule += ":" + field if field[0] != '"' else ":" + in_quotes(field)
    return ["-pick", rule]


DISCARD = flag(
    "DISCARD_NONMATCHING",
    "Discard records which could not be joined",
    ("-how", "inner"),
)
PREFIX = text(
    "PREFIX",
    "Prefix of joined fields whose names are taken (join_ when empty)",
    "-prefix",
    ROWS,
    is_advanced=False,
)

# The fields of JOIN to add, and the rule for rows with several matches.
JOINED_ROWS = (
    fields("JOIN_FIELDS", "JOIN", "Fields to add (leave empty to use all fields)"),
    choice("METHOD", "Join type", METHODS, pick_words, ROWS),
    DISCARD,
    PREFIX,
    row(
        QgsProcessingParameterField,
        "PICK_FIELD",
        "Field of the largest or smallest value",
        None,
        "JOIN",
        QgsProcessingParameterField.Any,
        False,
        True,
        is_advanced=True,
    ),
)


# --- how to run --------------------------------------------------------------


def invalid_words(algorithm, parameters, context):
    invalid = chosen(algorithm, parameters, "INVALID", context, INVALID)
    return ["-invalid", invalid] if invalid != "use" else []


def extra_words(algorithm, parameters, context):
    words = algorithm.parameterAsString(parameters, "EXTRA", context) or ""
    try:
        return shlex.split(words)
    except ValueError as why:
        raise QgsProcessingException(f"Extra options of ogrjoin: {why}.") from None


# The advanced parameters of every algorithm.
RUNNING = (
    choice("INVALID", "Invalid polygons", INVALID, invalid_words, RUN, True),
    choice_by_name(
        "BACKEND",
        "Backend",
        backends,
        "auto",
        part=RUN,
        words=value("parameterAsEnumString", "BACKEND", "-backend", "auto"),
        is_advanced=True,
    ),
    number("THREADS", "Threads (0: one for each core)", 0, "-threads", RUN),
    text("EXTRA", "Extra options of ogrjoin")._replace(part=RUN, words=extra_words),
)

# Last parameters of the algorithms that make joined layers.
RUNNING_TO_LAYERS = (*RUNNING, *JOINED_LAYERS)
