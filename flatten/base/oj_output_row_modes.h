/** Enums for the output of a join: which rows it has, which geometry they get,
 *  and where the values of their columns come from. The first three enums are
 *  in the order of the words of -how, -geometry and -along. */
#ifndef OJ_OUTPUT_ROW_MODES_H
#define OJ_OUTPUT_ROW_MODES_H

enum oj_how
{
    OJ_HOW_LEFT = 0, /**< one row per pair, and one with NULLs for each input
                          row without a pair */
    OJ_HOW_INNER,    /**< one row per pair */
    OJ_HOW_SEMI,     /**< input rows that have a pair, once each, without join
                          columns */
    OJ_HOW_ANTI,     /**< input rows that have no pair, without join columns */
    OJ_HOW_RIGHT,    /**< inner, then the join rows without a pair */
    OJ_HOW_FULL      /**< left, then the join rows without a pair */
};

/** Returns inner for right and left for full, which treat input rows alike; the
 * other modes are returned as they are. */
static inline enum oj_how oj_how_of_input_rows(enum oj_how how)
{
    return how == OJ_HOW_RIGHT  ? OJ_HOW_INNER
           : how == OJ_HOW_FULL ? OJ_HOW_LEFT
                                : how;
}

/** Returns 1 if join rows without a pair become output rows, too. */
static inline int oj_how_has_join_rows(enum oj_how how)
{
    return how == OJ_HOW_RIGHT || how == OJ_HOW_FULL;
}

/** Returns 1 if an input row becomes at most one output row, without values of
 *  its pairs. */
static inline int oj_how_is_at_most_one_row(enum oj_how how)
{
    return how == OJ_HOW_SEMI || how == OJ_HOW_ANTI;
}

/** Geometry of an output row. OJ_WRITE_INPUT keeps the dimensions of the input.
 *  The other geometries are two-dimensional, and rows without a pair do not
 *  have them. */
enum oj_write_geometry
{
    OJ_WRITE_INPUT = 0,     /**< geometry of the input feature, as read */
    OJ_WRITE_JOIN,          /**< geometry of the join feature */
    OJ_WRITE_NEAREST_POINT, /**< the join feature's nearest point
                                 (OJ_PAIR_NEAREST_X, _Y) */
    /** Line from the input feature's nearest point to the join feature's. */
    OJ_WRITE_CONNECTION,
    OJ_WRITE_SHAPE /**< intersection of the pair (struct
                        oj_pair_values.shapes) */
};

/** How the column along_field gives the position of a place on a line. */
enum oj_along_by
{
    OJ_ALONG_BY_LENGTH = 0, /**< the length from the start of the line */
    OJ_ALONG_BY_M /**< the M value, interpolated between the vertices */
};

/** Where the values of a column come from; `source` is a number stored with the
 *  column. */
enum oj_column_origin
{
    OJ_COLUMN_INPUT,      /**< field number `source` of the input layer */
    OJ_COLUMN_JOIN,       /**< field number `source` of the join layer */
    OJ_COLUMN_JOIN_FID,   /**< FID of the join feature */
    OJ_COLUMN_MEASURE,    /**< the measure of the pair, such as the distance */
    OJ_COLUMN_RANK,       /**< rank of the pair in its input row: 1, 2, 3 */
    OJ_COLUMN_COUNT,      /**< number of pairs of the input row, before -pick */
    OJ_COLUMN_PAIR_VALUE, /**< value of the pair; source: enum oj_pair_value */
    OJ_COLUMN_AGGREGATE,  /**< aggregate of pairs; source: its number in -agg */
    OJ_COLUMN_EVENT       /**< name of the event, if entries are events */
};

#endif
