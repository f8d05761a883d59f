/** Boxes around runs of segments, for nearest segments of points far away.
 *
 *  A run is 64 segments that follow each other, a span 64 runs.  No segment of
 *  a run is nearer than the run's box, and some point of each is in the box.
 *  Boxes are exact; distances to them are rounded, which the margin of
 *  oj_run_may_win() covers: their errors, and those of oj_segment_distance()
 * for a point outside of the box around all segments, are a few 2^-53 of the
 *  distance to a segment's ends.
 *  Source: ours.
 */
#ifndef OJ_NEAR_RUN_H
#define OJ_NEAR_RUN_H

#include "../../algs/kernels/oj_segment.h"

#define OJ_RUN_LENGTH 64

struct oj_run_box
{
    double x0, y0, x1, y1; /**< x0 > x1: nothing */
};

OJ_FN double oj_run_less(double a, double b)
{
    return a < b ? a : b;
}

OJ_FN double oj_run_more(double a, double b)
{
    return a < b ? b : a;
}

OJ_FN struct oj_run_box oj_run_nothing(void)
{
    struct oj_run_box box;
    box.x0 = box.y0 = INFINITY;
    box.x1 = box.y1 = -INFINITY;
    return box;
}

OJ_FN void oj_run_add(struct oj_run_box *box, struct oj_run_box other)
{
    box->x0 = oj_run_less(box->x0, other.x0);
    box->y0 = oj_run_less(box->y0, other.y0);
    box->x1 = oj_run_more(box->x1, other.x1);
    box->y1 = oj_run_more(box->y1, other.y1);
}

OJ_FN struct oj_run_box oj_run_of_segment(double ax, double ay, double bx,
                                          double by)
{
    struct oj_run_box box;
    box.x0 = oj_run_less(ax, bx);
    box.y0 = oj_run_less(ay, by);
    box.x1 = oj_run_more(ax, bx);
    box.y1 = oj_run_more(ay, by);
    return box;
}

/** How near a segment of the box can be. */
OJ_FN double oj_run_least(const struct oj_run_box *box, double x, double y)
{
    double dx = oj_run_more(oj_run_more(box->x0 - x, x - box->x1), 0.0);
    double dy = oj_run_more(oj_run_more(box->y0 - y, y - box->y1), 0.0);
    return sqrt(dx * dx + dy * dy);
}

/** How far its nearest segment can be. */
OJ_FN double oj_run_most(const struct oj_run_box *box, double x, double y)
{
    double dx = oj_run_more(x - box->x0, box->x1 - x);
    double dy = oj_run_more(y - box->y0, box->y1 - y);
    if (box->x0 > box->x1)
        return INFINITY;
    return sqrt(dx * dx + dy * dy);
}

/** 1 when a segment in a box at least away can be as near as bound. extent: of
 *  the way from the point to the farthest place in question. */
OJ_FN int oj_run_may_win(double least, double bound, double extent)
{
    return least <= bound + 1e-13 * extent;
}

#endif
