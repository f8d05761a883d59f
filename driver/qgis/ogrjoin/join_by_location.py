from qgis.core import (
    QgsProcessingException,
    QgsProcessingParameterEnum,
    QgsProcessingParameterString,
)

from . import parameters as shared, pick
from .algorithm import JoinAlgorithm


# What follows from what, in the order of PREDICATES: any of several predicates
# is one predicate where that one follows from all others.
FOLLOWS = {
    "intersects": {
        "contains",
        "equals",
        "touches",
        "overlaps",
        "within",
        "crosses",
        "covers",
        "coveredby",
        "contains_properly",
    },
    "contains": {"equals", "contains_properly"},
    "within": {"equals"},
    "covers": {"contains", "equals", "contains_properly"},
    "coveredby": {"within", "equals"},
}


def add_predicate(algorithm):
    parameter = QgsProcessingParameterEnum(
        "PREDICATE",
        "Where the features",
        [text for text, _ in shared.PREDICATES],
        True,
        [0],
    )
    parameter.setMetadata({"widget_wrapper": {"useCheckBoxes": True, "columns": 2}})
    algorithm.addParameter(parameter)


def add_relate(algorithm):
    algorithm.addParameter(
        shared.advanced(
            QgsProcessingParameterString(
                "RELATE",
                "DE-9IM pattern in place of the predicate, as F***1****",
                None,
                False,
                True,
            )
        )
    )


def predicate(algorithm, parameters, context):
    mask = algorithm.parameterAsString(parameters, "RELATE", context)
    if mask:
        return ["-relate", mask]
    chosen = algorithm.parameterAsEnums(parameters, "PREDICATE", context)
    ops = [shared.PREDICATES[i][1] for i in chosen]
    for op in ops:
        if set(ops) <= {op} | FOLLOWS.get(op, set()):
            return ["-op", op]
    raise QgsProcessingException(
        "ogrjoin joins by one predicate at a time, and no single one is the same as "
        f"any of these: {', '.join(ops) or 'none'}."
    )


class JoinByLocation(JoinAlgorithm):
    NAME = "joinbylocation"
    TITLE = "Join by location"
    TAGS = ("intersects", "contains", "within", "touches", "overlaps", "crosses")
    HELP = (
        "Gives each feature of the input layer the attributes of the features of "
        "a second layer that it meets, contains, lies in, touches and so on. "
        "Predicates are those of OGC Simple Features, as GEOS answers them: a "
        "point on the border of a polygon intersects it, but is not within it."
        "<p>The join type says what happens where several match: a row for each, "
        "or one row by a rule. Of equal ones the feature with the smallest FID is "
        "taken.</p>"
        "<p>The output has the input's fields, then <b>join_fid</b> (the FID of the "
        "feature found), then the second layer's fields.</p>"
    )

    def initAlgorithm(self, configuration=None):
        shared.add_layer(self, "INPUT", "Join to features in")
        add_predicate(self)
        shared.add_layer(self, "JOIN", "By comparing to")
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
        add_relate(self)
        shared.add_running(self)
        shared.add_joined_layers(self)
        self.add_counts()

    def join_words(self, parameters, context):
        return predicate(self, parameters, context)

    def row_words(self, parameters, context):
        return [
            *pick.pick(self, parameters, context),
            *shared.discard(self, parameters, context),
            *shared.fields(self, parameters, "JOIN_FIELDS", self.join, context),
            *shared.prefix(self, parameters, context),
        ]
