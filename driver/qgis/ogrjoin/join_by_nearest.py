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

    PARAMETERS = (
        shared.layer("INPUT", "Input layer"),
        shared.layer("INPUT_2", "Input layer 2"),
        shared.fields(
            "FIELDS_TO_COPY",
            "INPUT_2",
            "Layer 2 fields to copy (leave empty to copy all fields)",
        ),
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
        shared.METRIC,
        *shared.RUNNING,
        *shared.JOINED_LAYERS,
    )
    OP = "nearest"
