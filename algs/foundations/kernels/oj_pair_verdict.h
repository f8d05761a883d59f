/** What a screen is asked, and what it says of a pair (oj_meet.h). */
#ifndef OJ_PAIR_VERDICT_H
#define OJ_PAIR_VERDICT_H

/** What is known of a pair. */
enum oj_said
{
    OJ_SAID_APART = 0,      /**< no point in common */
    OJ_SAID_MEETS,          /**< a point in common; for bbox: of the boxes */
    OJ_SAID_APART_IF_VALID, /**< so where the polygons of several rings that */
    OJ_SAID_MEETS_IF_VALID, /**< are in the pair are valid */
    OJ_SAID_NOTHING         /**< their boxes pass */
};

/** Which boxes of join features pass against the box of a row. */
enum oj_box_test
{
    OJ_BOX_MEETS,  /**< those that meet it */
    OJ_BOX_COVERS, /**< .. contain it */
    OJ_BOX_WITHIN, /**< .. are contained in it */
    OJ_BOX_EQUALS  /**< .. are equal to it */
};

#endif
