/** One pass of the quadrant method: filter and refine the points of a batch
 *  against a grid.
 *
 *  quadrants --count, fill--> (quadrant, feature) pairs --refine--> answers
 *
 *  The pairs are counted first and then written, for as many quadrants at a
 *  time as fit a fixed number of pairs; a single quadrant may need more.
 *  Source: Zhang, You, Gruenwald 2012, sections 3.3 and 3.4.
 */
#ifndef QUADRANT_PASS_H
#define QUADRANT_PASS_H

#include "../base/oj_points.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_backend.h"
#include "quadrant_grid.h"

/** What one thread has of its own. */
struct oj_quadrant_worker
{
    struct oj_ranking ranking;
    struct oj_ranking nearest; /**< upper bounds of distances, to prune */
    struct oj_answers answers;
    int64_t n_candidates;
};

struct oj_quadrant_pass
{
    const struct oj_flat *flat; /**< the join side */
    const struct oj_boxes *boxes;
    const struct oj_quadrant_grid *grid;
    const struct oj_relation *relation;
    const int *cancel; /**< may be NULL */
    int n_threads;
    struct oj_quadrant_worker *worker; /**< [n_threads] */

    const struct oj_points *points;       /**< sorted */
    const struct oj_quadrants *quadrants; /**< of these points */

    /** 0: every point of a quadrant meets every segment of its features, as in
     *  the paper, but for features whose box is out of the point's own reach.
     *  1, where the distance is not bounded: features that cannot
     *  be near enough are passed over by their boxes, and points whose k-th
     *  distance lies beyond the grid's reach stay open. */
    int is_growing;
    uint8_t *is_open; /**< [points->n] 1: not settled by this pass */

    double filter_s, refine_s; /**< out: added to */
};

/** Runs the pass: settled points have their answers in the workers. */
OJ_MUST_USE oj_status oj_quadrant_pass_run(struct oj_quadrant_pass *pass,
                                           struct oj_error *err);

#endif
