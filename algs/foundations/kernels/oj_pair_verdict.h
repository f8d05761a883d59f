/** Constants of the GPU screen: which test it makes on the boxes of a pair, and
 * its verdict on the pair (decided in oj_meet.h). */
#ifndef OJ_PAIR_VERDICT_H
#define OJ_PAIR_VERDICT_H

/** The verdict of a screen on a pair of features. */
enum oj_said
{
    OJ_SAID_APART = 0,      /**< the features are disjoint */
    OJ_SAID_MEETS,          /**< they intersect; with bbox: their boxes do */
    OJ_SAID_APART_IF_VALID, /**< disjoint if the pair's polygons are valid */
    OJ_SAID_MEETS_IF_VALID, /**< intersecting if the pair's polygons are
                                 valid */
    OJ_SAID_NOTHING         /**< not decided; only the boxes pass */
};

/** Test that the box of a join feature must pass, against the box of an input
 * row. */
enum oj_box_test
{
    OJ_BOX_MEETS,  /**< it intersects the row's box */
    OJ_BOX_COVERS, /**< it contains the row's box */
    OJ_BOX_WITHIN, /**< it is within the row's box */
    OJ_BOX_EQUALS  /**< it equals the row's box */
};

#endif
