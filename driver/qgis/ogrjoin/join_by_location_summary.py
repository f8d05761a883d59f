from qgis.core import (
    QgsProcessingException,
    QgsProcessingParameterEnum,
    QgsProcessingParameterVectorDestination,
)
from qgis.PyQt.QtCore import QVariant

from . import parameters as shared
from .algorithm import JoinAlgorithm

OF_NUMBERS = ("sum", "mean", "median", "stddev", "weighted_sum")

# Function, and whether it belongs to "all".
SUMMARIES = (
    ("count", True),
    ("unique", True),
    ("min", True),
    ("max", True),
    ("sum", True),
    ("mean", True),
    ("median", True),
    ("stddev", True),
    ("mode", True),
    ("first", False),
    ("last", False),
    ("concat", False),
    ("weighted_sum", False),
)

NUMBERS = (
    QVariant.Int,
    QVariant.UInt,
    QVariant.LongLong,
    QVariant.ULongLong,
    QVariant.Double,
    QVariant.Bool,
)
OTHERS = (QVariant.String, QVariant.Date, QVariant.DateTime, QVariant.Time)


def suits(function, field):
    """Lists, binary and map fields have no summaries."""
    if field.type() in NUMBERS:
        return True
    return field.type() in OTHERS and function not in OF_NUMBERS


class JoinByLocationSummary(JoinAlgorithm):
    NAME = "joinbylocationsummary"
    TITLE = "Join by location (summary)"
    TAGS = ("aggregate", "count", "sum", "mean", "statistics", "zonal", "points in polygon")
    HELP = (
        "Gives each feature of the input layer the number of the features of a "
        "second layer that it contains, meets, and so on, and summaries of their "
        "fields: one row per input feature. Points counted and added up in zones "
        "are the usual case."
        "<p>The columns are <b>count</b> (the number of features), and for each "
        "field and summary one as fare_mean. Sums are exact and do not depend on "
        "order or threads; NULLs are left out; stddev is that of a sample; first "
        "and last are by FID; mode takes the smallest of several; weighted_sum "
        "shares a value out by overlapping area or length.</p>"
        "<p><i>Aggregates</i> (advanced) takes a list as ogrjoin does instead: "
        "count, mean(fare) as fare, concat(name, '; ').</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Join to features in"),
        shared.PREDICATE,
        shared.layer("JOIN", "By comparing to"),
        shared.fields(
            "JOIN_FIELDS",
            "JOIN",
            "Fields to summarise (leave empty to use all fields)",
            part=None,
        ),
        shared.row(
            QgsProcessingParameterEnum,
            "SUMMARIES",
            "Summaries to calculate (leave empty for count to mode)",
            [name for name, _ in SUMMARIES],
            True,
            None,
            True,
            True,  # by name: QGIS has other summaries, so other numbers
            part=shared.ROWS,
            words=lambda self, *given: ["-agg", self.aggregates(*given)],
        ),
        shared.DISCARD,
        shared.text("AGGREGATES", "Aggregates in place of fields and summaries"),
        shared.RELATE,
        *shared.RUNNING,
        shared.row(
            QgsProcessingParameterVectorDestination, "OUTPUT", "Joined layer"
        ),
    )

    def aggregates(self, parameters, context):
        text = self.parameterAsString(parameters, "AGGREGATES", context)
        if text:
            return text
        names = shared.chosen_fields(
            self, parameters, "JOIN_FIELDS", self.join, context
        )
        chosen = self.parameterAsEnumStrings(parameters, "SUMMARIES", context)
        functions = [name for name in chosen if name] or [
            name for name, is_in_all in SUMMARIES if is_in_all
        ]
        found = ["count"]
        for field in self.join.fields:
            if field.name() == self.join.fid_field:
                continue
            if names is not None and field.name() not in names:
                continue
            for function in functions:
                if suits(function, field):
                    found.append(aggregate(function, field.name()))
        if names and len(found) == 1:
            raise QgsProcessingException("None of the summaries suits the fields.")
        return ", ".join(found)


def in_quotes(name):
    return '"' + name.replace('"', '""') + '"'


def aggregate(function, field):
    return f"{function}({in_quotes(field)}) as {in_quotes(field + '_' + function)}"
