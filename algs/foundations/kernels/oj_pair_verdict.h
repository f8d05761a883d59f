/** Enums of the GPU screen (oj_screen.h): the test that it makes on the boxes
 * of a pair, and its verdict on the pair (by the rules in oj_meet.h). */
#ifndef OJ_PAIR_VERDICT_H
#define OJ_PAIR_VERDICT_H

/** The verdict of a screen on a pair of features. */
enum oj_pair_verdict
{
    OJ_VERDICT_DISJOINT = 0, /**< the features are disjoint */
    OJ_VERDICT_INTERSECTS,   /**< the features intersect, or the boxes alone
                                  make them a pair (oj_screen_rule.is_enough) */
    OJ_VERDICT_DISJOINT_IF_VALID, /**< disjoint if the pair's polygons are valid
                                   */
    OJ_VERDICT_INTERSECTS_IF_VALID, /**< intersecting if the pair's polygons are
                                 valid */
    OJ_VERDICT_OPEN                 /**< not decided; only the boxes pass */
};

/** The test on the boxes of a pair. */
enum oj_box_test
{
    OJ_BOX_MEETS,  /**< the join feature's box intersects the row's box */
    OJ_BOX_COVERS, /**< the join feature's box contains the row's box */
    OJ_BOX_WITHIN, /**< the join feature's box is within the row's box */
    OJ_BOX_EQUALS  /**< both boxes are equal */
};

#endif
