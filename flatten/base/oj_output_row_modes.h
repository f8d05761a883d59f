/** Which rows the output of a join has, what their geometry is, and where the
 * values of their columns come from; the first two in the order of the words of
 * -how and -geometry. */
#ifndef OJ_OUTPUT_ROW_MODES_H
#define OJ_OUTPUT_ROW_MODES_H

enum oj_how
{
    OJ_HOW_LEFT = 0, /**< every input row; NULLs where nothing matched */
    OJ_HOW_INNER,    /**< one row per pair */
    OJ_HOW_SEMI,     /**< input rows that match, once, no join columns */
    OJ_HOW_ANTI,     /**< input rows that do not match, no join columns */
    OJ_HOW_RIGHT,    /**< inner, then the join rows that match nothing */
    OJ_HOW_FULL      /**< left, then the join rows that match nothing */
};

/** How input rows become rows: right and full joins take them as inner and left
 *  ones do. */
static inline enum oj_how oj_how_of_input_rows(enum oj_how how)
{
    return how == OJ_HOW_RIGHT  ? OJ_HOW_INNER
           : how == OJ_HOW_FULL ? OJ_HOW_LEFT
                                : how;
}

/** 1 when join rows that match nothing are rows, too. */
static inline int oj_how_has_join_rows(enum oj_how how)
{
    return how == OJ_HOW_RIGHT || how == OJ_HOW_FULL;
}

/** 1 when an input row is one row at most, without anything of its pairs. */
static inline int oj_how_is_choice(enum oj_how how)
{
    return how == OJ_HOW_SEMI || how == OJ_HOW_ANTI;
}

/** All but the input's are two-dimensional; a row without pair has none of
 *  them. */
enum oj_write_geometry
{
    OJ_WRITE_INPUT = 0,     /**< the input feature's, as read */
    OJ_WRITE_JOIN,          /**< the join feature's, from join_side */
    OJ_WRITE_NEAREST_POINT, /**< the point of OJ_PAIR_NEAREST_X and _Y */
    OJ_WRITE_CONNECTION,    /**< the line from OJ_PAIR_FROM_X, _Y to it */
    OJ_WRITE_SHAPE          /**< struct oj_pair_values.shapes */
};

/** Where the values of a column come from. source is a number beside it. */
enum oj_column_origin
{
    OJ_COLUMN_INPUT,      /**< field source of the input layer */
    OJ_COLUMN_JOIN,       /**< field source of the join layer */
    OJ_COLUMN_JOIN_FID,   /**< FID of the join feature */
    OJ_COLUMN_MEASURE,    /**< distance */
    OJ_COLUMN_RANK,       /**< 1, 2, 3 within an input row */
    OJ_COLUMN_COUNT,      /**< pairs of the input row, before any is picked */
    OJ_COLUMN_PAIR_VALUE, /**< source: enum oj_pair_value */
    OJ_COLUMN_AGGREGATE,  /**< aggregate source of -agg */
    OJ_COLUMN_EVENT       /**< name of the event that an entry is */
};

#endif
