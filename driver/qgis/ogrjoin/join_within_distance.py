from . import parameters as shared, pick
from .algorithm import JoinAlgorithm


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

    def initAlgorithm(self, configuration=None):
        shared.add_layer(self, "INPUT", "Join to features in")
        shared.add_layer(self, "JOIN", "By comparing to")
        shared.add_distance(
            self, "DISTANCE", "Where the features are within", "INPUT", False
        )
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
        shared.add_metric(self)
        shared.add_running(self)
        shared.add_joined_layers(self)
        self.add_counts()

    def join_words(self, parameters, context):
        return [
            "-op",
            "dwithin",
            *shared.distance(self, parameters, "DISTANCE", context),
        ]

    def row_words(self, parameters, context):
        return [
            *pick.pick(self, parameters, context),
            *shared.discard(self, parameters, context),
            *shared.fields(self, parameters, "JOIN_FIELDS", self.join, context),
            *shared.prefix(self, parameters, context),
        ]
