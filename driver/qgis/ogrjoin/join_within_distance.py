from . import parameters as shared
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

    PARAMETERS = (
        shared.layer("INPUT", "Join to features in"),
        shared.layer("JOIN", "By comparing to"),
        shared.distance("DISTANCE", "Where the features are within", False),
        *shared.JOINED_ROWS,
        shared.METRIC,
        *shared.RUNNING,
        *shared.JOINED_LAYERS,
    )
    OP = "dwithin"
