from qgis.core import (
    QgsProcessingParameterBoolean,
    QgsProcessingParameterNumber,
)

from . import parameters as shared
from .algorithm import JoinAlgorithm


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
        "<p>A greatest distance costs nothing and saves time where most features "
        "are far from any other.</p>"
    )

    def initAlgorithm(self, configuration=None):
        shared.add_layer(self, "INPUT", "Input layer")
        shared.add_layer(self, "INPUT_2", "Input layer 2")
        shared.add_fields(
            self,
            "FIELDS_TO_COPY",
            "INPUT_2",
            "Layer 2 fields to copy (leave empty to copy all fields)",
        )
        shared.add_discard(self)
        shared.add_prefix(self)
        self.addParameter(
            QgsProcessingParameterNumber(
                "NEIGHBORS",
                "Maximum nearest neighbors",
                QgsProcessingParameterNumber.Integer,
                1,
                False,
                1,
            )
        )
        shared.add_distance(self, "MAX_DISTANCE", "Maximum distance", "INPUT", True)
        self.addParameter(
            shared.advanced(
                QgsProcessingParameterBoolean(
                    "TIES", "Keep all that are equally near", False
                )
            )
        )
        self.addParameter(
            shared.advanced(
                QgsProcessingParameterBoolean(
                    "NEAREST_POINT", "Add the nearest point (nearest_x, nearest_y)", False
                )
            )
        )
        shared.add_metric(self)
        shared.add_running(self)
        shared.add_joined_layers(self)
        self.add_counts()

    def join_words(self, parameters, context):
        words = ["-op", "nearest"]
        neighbors = self.parameterAsInt(parameters, "NEIGHBORS", context)
        if neighbors > 1:
            words += ["-k", neighbors]
        if self.parameterAsBoolean(parameters, "TIES", context):
            words += ["-ties", "all"]
        return words + shared.distance(self, parameters, "MAX_DISTANCE", context)

    def row_words(self, parameters, context):
        words = [
            *shared.discard(self, parameters, context),
            *shared.fields(self, parameters, "FIELDS_TO_COPY", self.join, context),
            *shared.prefix(self, parameters, context),
        ]
        if self.parameterAsBoolean(parameters, "NEAREST_POINT", context):
            words += ["-nearest_point_fields"]
        return words
