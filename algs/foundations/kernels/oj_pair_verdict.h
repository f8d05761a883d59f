/** The test that a screen makes on the boxes of a pair, and its verdict on the
 * pair (rules: oj_meet.h). */
#ifndef OJ_PAIR_VERDICT_H
#define OJ_PAIR_VERDICT_H

/** The verdict of a screen on a pair. */
enum oj_said
{
    OJ_SAID_APART = 0,      /**< disjoint */
    OJ_SAID_MEETS,          /**< intersecting; for bbox: the boxes intersect */
    OJ_SAID_APART_IF_VALID, /**< disjoint if the pair's polygons with */
    OJ_SAID_MEETS_IF_VALID, /**< several rings are valid */
    OJ_SAID_NOTHING         /**< undecided: only the boxes pass */
};

/** Which boxes of join features pass the test against the box of an input row.
 */
enum oj_box_test
{
    OJ_BOX_MEETS,  /**< boxes that intersect it */
    OJ_BOX_COVERS, /**< boxes that contain it */
    OJ_BOX_WITHIN, /**< boxes contained in it */
    OJ_BOX_EQUALS  /**< boxes equal to it */
};

#endif
