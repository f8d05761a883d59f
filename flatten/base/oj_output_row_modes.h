/** Which rows the output of a join has, and what their geometry is; in the
 * order of the words of -how and -geometry. */
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

#endif
