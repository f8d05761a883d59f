from . import parameters as shared
from .algorithm import JoinAlgorithm


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
        *shared.RUNNING,
        *shared.JOINED_LAYERS,
    )
