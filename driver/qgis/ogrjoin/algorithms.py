"""The algorithms, one class each."""

import os

from qgis.core import (
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputBoolean,
    QgsProcessingOutputNumber,
    QgsProcessingOutputVectorLayer,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterVectorDestination,
    QgsProcessingUtils,
)
from qgis.PyQt.QtCore import QVariant

from . import command, parameters as shared
from .algorithm_base import JoinAlgorithm, OgrjoinAlgorithm


class JoinByNearest(JoinAlgorithm):
    NAME = "joinbynearest"
    TITLE = "Join by nearest"
    TAGS = ("nearest", "neighbour", "neighbor", "distance", "knn", "closest")
    JOIN = "INPUT_2"
    HELP = (
        "Gives each feature of the input layer the attributes of the nearest "
        "feature, or the nearest few, of a second layer. Layers may be of any "
        "geometry type and of different CRS (the second is reprojected)."
        "<p>The output has the input's fields, then <b>join_fid</b> (the FID of the "
        "feature found), <b>join_distance</b>, and <b>join_rank</b> where several "
        "neighbours are asked for; then the second layer's fields.</p>"
        "<p>Distances are planar, in units of the input layer's CRS, 0 inside of a "
        "polygon; from degrees choose metres on the globe. Of equally near "
        "features the one with the smallest FID is taken, so there is one row per "
        "input feature and neighbour; <i>Keep all that are equally near</i> does "
        "as the algorithm of QGIS.</p>"
        "<p>The place along a line is that of the point of the second layer's line, "
        "or ring, which is nearest: <b>line_along</b>, its distance from the start of "
        "the line, <b>line_offset</b>, the distance from it, positive on the left, and "
        "<b>line_side</b> (left, right, on).</p>"
        "<p>A greatest distance costs nothing and saves time where most features "
        "are far from any other.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Input layer"),
        shared.layer("INPUT_2", "Input layer 2"),
        shared.copied_fields("FIELDS_TO_COPY", "INPUT_2"),
        shared.DISCARD,
        shared.PREFIX,
        shared.number(
            "NEIGHBORS", "Maximum nearest neighbors", 1, "-k", shared.JOIN
        ),
        shared.distance("MAX_DISTANCE", "Maximum distance", True),
        shared.flag(
            "TIES",
            "Keep all that are equally near",
            ("-ties", "all"),
            shared.JOIN,
            True,
        ),
        shared.flag(
            "NEAREST_POINT",
            "Add the nearest point (nearest_x, nearest_y)",
            ("-nearest_point_fields",),
            is_advanced=True,
        ),
        shared.flag(
            "ALONG",
            "Add the place along a line (line_along, line_offset, line_side)",
            shared.ALONG,
            is_advanced=True,
        ),
        shared.METRIC,
        *shared.RUNNING_TO_LAYERS,
    )
    OP = "nearest"


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

    PARAMETERS = (
        shared.layer("INPUT", "Join to features in"),
        shared.PREDICATE,
        shared.layer("JOIN", "By comparing to"),
        *shared.JOINED_ROWS,
        shared.RELATE,
        *shared.RUNNING_TO_LAYERS,
    )


OF_NUMBERS = (
    "sum", "mean", "median", "stddev", "weighted_sum", "range", "q1", "q3", "variance",
    "weighted_mean",
)  # fmt: skip

# Aggregate functions, and whether the choice "all" includes each.
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
    ("range", False),
    ("q1", False),
    ("q3", False),
    ("variance", False),
    ("minority", False),
    ("weighted_mean", False),
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


def can_aggregate(function, field):
    """Returns True if the function can aggregate the field; lists, binaries
    and maps cannot be aggregated."""
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
        "shares a value out by overlapping area or length, and weighted_mean weights "
        "by it.</p>"
        "<p><i>Aggregates</i> (advanced) takes a list as ogrjoin does instead: "
        "count, mean(fare) as fare, concat(name, '; '), percentile(fare, 90), "
        "max(overlap_area), covered_percent.</p>"
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
            True,  # names as values, since QGIS numbers its summaries differently
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
                if can_aggregate(function, field):
                    found.append(aggregate(function, field.name()))
        if names and len(found) == 1:
            raise QgsProcessingException(
                "None of the summaries suits the fields: choose fields of numbers, or "
                "other summaries."
            )
        return ", ".join(found)


def aggregate(function, field):
    return f"{function}({shared.in_quotes(field)}) as {shared.in_quotes(field + '_' + function)}"


class JoinWithinDistance(JoinAlgorithm):
    NAME = "joinwithindistance"
    TITLE = "Join within distance"
    TAGS = ("dwithin", "distance", "buffer", "near", "radius")
    HELP = (
        "Gives each feature of the input layer the attributes of all features of "
        "a second layer that are within a distance, without making buffers. "
        "The distance itself belongs to it (and 0 means touching or overlapping)."
        "<p>The output has the input's fields, then <b>join_fid</b> (the FID of the "
        "feature found) and <b>join_distance</b>, then the second layer's fields.</p>"
        "<p>Distances are planar, in units of the input layer's CRS, 0 inside of a "
        "polygon; from degrees choose metres on the globe.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Join to features in"),
        shared.layer("JOIN", "By comparing to"),
        shared.distance("DISTANCE", "Where the features are within", False),
        *shared.JOINED_ROWS,
        shared.METRIC,
        *shared.RUNNING_TO_LAYERS,
    )
    OP = "dwithin"


class PlaceAlongLines(JoinAlgorithm):
    NAME = "placealonglines"
    TITLE = "Place along lines"
    TAGS = ("along", "offset", "side", "linear referencing", "lrs", "snap", "measure", "station")
    HELP = (
        "Gives each feature of the input layer its place along the nearest line of a "
        "second layer: how far from the line's start, how far to the left or right. "
        "This is what linear referencing starts from. Rings of polygons are lines, too."
        "<p><b>line_along</b> is the distance from the start of the line to its point "
        "nearest to the feature, <b>line_percent</b> the same in percent of the line's "
        "length; <b>line_offset</b> is the distance from the line, positive on the left, "
        "and <b>line_side</b> is left, right or on. <b>line_segment</b> is the number of "
        "the line's segment, from 1, and <b>line_bearing</b> its direction in degrees, "
        "clockwise from north. Beyond an end of a line the place is the end. Where lines "
        "have M values (kilometre posts), line_along can be the measure by these.</p>"
        "<p>The output's geometries are those of the input, or the places on the lines, "
        "or lines to these.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Input layer"),
        shared.layer("LINES", "Lines"),
        shared.distance("MAX_DISTANCE", "Maximum distance", True),
        shared.PLACE_GEOMETRY,
        shared.copied_fields("FIELDS_TO_COPY", "LINES"),
        shared.DISCARD,
        shared.PREFIX,
        shared.flag(
            "SEGMENT",
            "Add segment and its direction (line_segment, line_bearing)",
            ("-segment_field", "line_segment", "-line_bearing_field", "line_bearing"),
            is_advanced=True,
        ),
        shared.flag(
            "BY_M",
            "Measure by the M values of the lines (line_along)",
            ("-along", "m"),
            is_advanced=True,
        ),
        shared.METRIC,
        *shared.RUNNING_TO_LAYERS,
    )
    JOIN = "LINES"
    OP = "nearest"

    def words(self, part, parameters, context):
        words = super().words(part, parameters, context)
        if part == shared.ROWS:
            words += [*shared.ALONG, "-along_percent_field", "line_percent"]
        return words


class JoinWithinTime(JoinAlgorithm):
    NAME = "joinwithintime"
    TITLE = "Join within distance and time"
    TAGS = ("time", "temporal", "window", "encounter", "meeting", "dwithin", "tracks", "AIS")
    HELP = (
        "Gives each feature of the input layer the attributes of all features of a "
        "second layer that were near it at about the same time: ships that met, the "
        "report nearest to a sighting in place and time."
        "<p>The two fields are dates, times or datetimes; two texts that hold such will "
        "do. Without a zone they count as UTC. A pair counts if its times are at most "
        "so far apart, the bound included; a feature without a time matches nothing."
        "</p>"
        "<p>The output has the input's fields, then <b>join_fid</b> (the FID of the "
        "feature found) and <b>join_distance</b>, then the second layer's fields. The "
        "join type keeps one of them, say the nearest.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Join to features in"),
        shared.field("FIELD", "INPUT", "Time"),
        shared.layer("JOIN", "By comparing to"),
        shared.field("FIELD_2", "JOIN", "Time in the second layer"),
        shared.distance("DISTANCE", "Where the features are within", False),
        shared.TIME_APART,
        shared.TIME_UNIT,
        *shared.JOINED_ROWS,
        shared.METRIC,
        *shared.RUNNING_TO_LAYERS,
    )
    OP = "dwithin"


class CoveredShares(JoinAlgorithm):
    NAME = "coveredshares"
    TITLE = "Covered shares"
    TAGS = ("cover", "coverage", "area", "percent", "union", "overlap analysis", "overlay")
    HELP = (
        "Gives each polygon of the input layer the area that the features of a second "
        "layer cover of it together, and this share in percent; each line the length. "
        "Where features overlap, a place counts once, and nothing is united first."
        "<p>The columns are <b>count</b> (the number of features that meet it), "
        "<b>covered_area</b> and <b>covered_percent</b>, and <b>covered_length</b>, of "
        "a polygon that of its border; in units of the input layer's CRS. What no "
        "feature covers has 0.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Input layer"),
        shared.layer("JOIN", "Covered by"),
        shared.DISCARD,
        *shared.RUNNING,
        shared.row(
            QgsProcessingParameterVectorDestination, "OUTPUT", "Covered shares"
        ),
    )
    OP = "intersects"

    def words(self, part, parameters, context):
        words = super().words(part, parameters, context)
        if part == shared.ROWS:
            words += ["-agg", "count, covered_area, covered_percent, covered_length"]
        return words


class JoinBySimilarText(JoinAlgorithm):
    NAME = "joinbysimilartext"
    TITLE = "Join by similar text"
    TAGS = ("fuzzy", "similarity", "name", "string", "trigram", "conflate", "duplicates")
    HELP = (
        "Gives each feature of the input layer the attributes of the features of "
        "a second layer whose text, say a name, is similar: with a maximum "
        "distance only of those near by. Layers without geometry will do where "
        "no distance is given."
        "<p>A similarity is between 0 and 1. Usually it counts the pieces of three "
        "letters that both texts have, of all that one of them has, as pg_trgm does: "
        "Café Müller and CAFE MULLER are equal, 0.6 is a good beginning for "
        "names.</p>"
        "<p>The output has the input's fields, then <b>join_fid</b> (the FID of the "
        "feature found), <b>join_similarity</b>, and <b>join_distance</b> where a "
        "distance is given; then the second layer's fields. Without a distance the "
        "most similar come first.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Input layer", True),
        shared.field("FIELD", "INPUT", "Text"),
        shared.layer("JOIN", "Input layer 2", True),
        shared.field("FIELD_2", "JOIN", "Text of layer 2"),
        shared.SIMILARITY,
        shared.distance("MAX_DISTANCE", "Maximum distance", True, None),
        shared.copied_fields(),
        shared.flag("BEST", "Keep the most similar one only", ("-pick", "most_similar")),
        shared.DISCARD,
        shared.PREFIX,
        *shared.OF_TEXTS,
        shared.METRIC,
        *shared.RUNNING_TO_LAYERS,
    )


class JoinBySimilarLines(JoinAlgorithm):
    NAME = "joinbysimilarlines"
    TITLE = "Join by similar lines"
    TAGS = ("shape", "hausdorff", "frechet", "trajectory", "track", "roads", "conflate")
    HELP = (
        "Gives each line of the input layer (or feature of any other kind) the "
        "attributes of the line of a second layer that is most like it in place "
        "and shape: the same road on another map, the trip most like this one."
        "<p>The distance of two lines is the greatest distance of a vertex of "
        "either one from the other (Hausdorff), of the input's vertices alone, or "
        "with direction (discrete Frechet). It is measured from vertices only, in "
        "units of the input layer's CRS, which must not be degrees. Where vertices "
        "are few, both layers can be given more for the comparison.</p>"
        "<p>The output has the input's fields, then <b>join_fid</b>, "
        "<b>join_distance</b>, and <b>join_rank</b> where several are asked for; "
        "then the second layer's fields. A maximum distance saves time.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "Input layer"),
        shared.layer("JOIN", "Input layer 2"),
        shared.SHAPE_DISTANCE,
        shared.number("NEIGHBORS", "Maximum similar lines", 1, "-k", shared.JOIN),
        shared.distance("MAX_DISTANCE", "Maximum distance", True),
        shared.copied_fields(),
        shared.DISCARD,
        shared.PREFIX,
        shared.METRIC,
        shared.DENSIFY,
        *shared.RUNNING_TO_LAYERS,
    )
    OP = "nearest"


class ConflateLayers(OgrjoinAlgorithm):
    NAME = "conflatelayers"
    TITLE = "Conflate two layers"
    TAGS = ("conflation", "matching", "merge", "duplicates", "fuzzy", "name", "poi")
    HELP = (
        "Finds which features of two layers are the same thing: near each other, "
        "with similar names, each feature in one pair at most, the most similar "
        "pairs first, then the nearest."
        "<p>The output is a GeoPackage of three layers: <b>pairs</b>, lines from "
        "one place to the other with the fields of both, join_distance and "
        "join_similarity; <b>only_first</b> and <b>only_second</b>, what is left "
        "of either layer.</p>"
        "<p>Similarity is between 0 and 1 and counts the pieces of three letters "
        "that both names have, of all that one of them has: 0.5 or 0.6 is a good "
        "beginning. A file that is there is replaced.</p>"
    )

    PARAMETERS = (
        shared.layer("INPUT", "First layer"),
        shared.field("FIELD", "INPUT", "Name"),
        shared.layer("JOIN", "Second layer"),
        shared.field("FIELD_2", "JOIN", "Name in the second layer"),
        shared.SIMILARITY,
        shared.distance("MAX_DISTANCE", "Maximum distance", False, None),
        shared.PREFIX,
        *shared.OF_TEXTS,
        shared.METRIC,
        *shared.RUNNING,
        shared.flag("LOAD", "Add the layers to the project", part=None, default=True),
        shared.row(
            QgsProcessingParameterFileDestination,
            "OUTPUT",
            "Conflated layers",
            "GeoPackage files (*.gpkg)",
        ),
    )
    # For each output: parameter, layer name, and the option that sets the name.
    LAYERS = (
        ("PAIRS", "pairs", "-nln"),
        ("ONLY_FIRST", "only_first", "-unmatched_layer"),
        ("ONLY_SECOND", "only_second", "-unmatched_join_layer"),
    )
    OUTPUTS = (
        (QgsProcessingOutputVectorLayer, "PAIRS", "Pairs"),
        (QgsProcessingOutputVectorLayer, "ONLY_FIRST", "Only in the first layer"),
        (QgsProcessingOutputVectorLayer, "ONLY_SECOND", "Only in the second layer"),
        (QgsProcessingOutputNumber, "JOINED_COUNT", "Number of pairs"),
    )

    def processAlgorithm(self, parameters, context, feedback):
        path = self.parameterAsFileOutput(parameters, "OUTPUT", context)
        if os.path.splitext(path)[1].lower() != ".gpkg":
            path += ".gpkg"
        words = [
            word
            for part in (shared.JOIN, shared.ROWS, shared.RUN)
            for word in self.words(part, parameters, context)
        ]
        words += ["-one_to_one", "-how", "inner", "-geometry", "connection"]
        for _, name, option in self.LAYERS:
            words += [option, name]
        of_sides, datasets = self.sides(context, feedback)
        _, summary = command.run_and_sum_up(
            [*words, *of_sides, "-overwrite", path, *datasets], feedback
        )
        if not summary:
            return {}
        results = {"OUTPUT": path, "JOINED_COUNT": summary["pairs"]}
        for output, name, _ in self.LAYERS:
            results[output] = f"{path}|layername={name}"
            if self.parameterAsBoolean(parameters, "LOAD", context):
                load_into_project(context, results[output], name, output)
        return results


def load_into_project(context, path, name, output):
    """If there is a current project, makes QGIS load the layer into it when the
    algorithm has ended."""
    if context.project() is not None:
        details = QgsProcessingContext.LayerDetails(name, context.project(), output)
        context.addLayerToLoadOnCompletion(path, details)


# The usual reference is geos, or sphere for distances on the globe.
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
        shared.choice_by_name("REFERENCE", "Compare with", list(REFERENCES), USUAL),
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
        # The rows are not used, but the command needs an output.
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


class SaveLiveLayer(OgrjoinAlgorithm):
    NAME = "savelivelayer"
    TITLE = "Save join as live layer"
    TAGS = ("live", "virtual", "view", "dynamic", "ogrjoin", "driver")
    HELP = (
        "Saves what is joined with what, not the rows: a small file *.ogrjoin, "
        "which GDAL opens as a layer. The join is done when rows are read, so the "
        "layer always shows the present state of its two layers, and the map "
        "joins only what is in view."
        "<p>Both layers must be files (their filters are kept). Paths are written "
        "relative to the file, so that a folder can be moved as a whole.</p>"
        "<p>QGIS needs GDAL's driver JOIN (ogr_JOIN.so) to open the layer.</p>"
    )

    PARAMETERS = (
        *shared.OPERATION,
        *shared.JOINED_ROWS,
        shared.text(
            "AGGREGATES", "Aggregates, as count, mean(fare) (one row per feature)"
        ),
        shared.METRIC,
        *shared.RUNNING,
        shared.flag("LOAD", "Add the layer to the project", part=None, default=True),
        shared.row(
            QgsProcessingParameterFileDestination,
            "OUTPUT",
            "Live layer",
            "Live layers of ogrjoin (*.ogrjoin)",
        ),
    )
    OUTPUTS = ((QgsProcessingOutputVectorLayer, "LAYER", "Live layer"),)

    def row_words(self, parameters, context):
        aggregates = self.parameterAsString(parameters, "AGGREGATES", context)
        if not aggregates:
            return self.words(shared.ROWS, parameters, context)
        discard = shared.DISCARD.words(self, parameters, context)
        return [*discard, "-agg", aggregates]

    def processAlgorithm(self, parameters, context, feedback):
        is_loaded = self.parameterAsBoolean(parameters, "LOAD", context)
        problem = command.explain_missing_driver()
        if problem and is_loaded:
            raise QgsProcessingException(problem)
        path = self.parameterAsFileOutput(parameters, "OUTPUT", context)
        if os.path.splitext(path)[1].lower() != ".ogrjoin":
            path += ".ogrjoin"
        datasets = [self.input.take_as_file(), self.join.take_as_file()]
        words = [
            *self.words(shared.JOIN, parameters, context),
            *self.row_words(parameters, context),
            *self.words(shared.RUN, parameters, context),
            *self.input.words,
            *self.join.words,
        ]
        if command.run(["-write_spec", path, *words, *datasets], feedback) is None:
            return {}
        if is_loaded:
            name = os.path.splitext(os.path.basename(path))[0]
            load_into_project(context, path, name, "LAYER")
        return {"OUTPUT": path, "LAYER": path}


ALGORITHMS = (
    JoinByNearest,
    JoinByLocation,
    JoinByLocationSummary,
    JoinWithinDistance,
    JoinWithinTime,
    PlaceAlongLines,
    CoveredShares,
    JoinBySimilarText,
    JoinBySimilarLines,
    ConflateLayers,
    ValidateJoin,
    SaveLiveLayer,
)
