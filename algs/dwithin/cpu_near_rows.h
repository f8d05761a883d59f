/** The partners of one point among those near it: the inner loop of pairs of
 *  points within a distance, which are decided by squares (oj_square_limit.h).
 */
#ifndef CPU_NEAR_ROWS_H
#define CPU_NEAR_ROWS_H

#include "cpu_near_grid.h"

/** The points that can be partners of those in one cell, side by side.
 *  Owner; zeroed memory is a valid one of no cell. */
struct oj_near_hood
{
    const uint32_t *cell; /**< whose: its place in cell_start */
    int64_t n;            /**< points; OJ_NEAR_LANES more follow that are NaN */
    double *x, *y;
    int32_t *id;
    int64_t cap_x, cap_y, cap_id;
};

/** What a point asks for. */
struct oj_near_query
{
    double x, y;
    double least2, most2;      /**< squares of the distances that count */
    int32_t from, end, except; /**< ids that count: from <= id < end, but not
                                    this one */
};

/** Two ways to do the same, one for processors that pick lanes. */
struct oj_near_kernel
{
    /** How many partners the point has. */
    int64_t (*count)(const struct oj_near_hood *hood,
                     const struct oj_near_query *query);

    /** Their ids and squared distances, in the order of the hood.  Writes up to
     *  OJ_NEAR_LANES entries beyond them.  Returns how many. */
    int64_t (*collect)(const struct oj_near_hood *hood,
                       const struct oj_near_query *query, int32_t *id,
                       double *d2);

    /** Distances from their squares; both may be the same array. */
    void (*roots)(int64_t n, const double *d2, double *distance);
};

/** Makes hood that of the cell of x, y. */
OJ_MUST_USE oj_status oj_near_hood_move(struct oj_near_hood *hood,
                                        const struct oj_near_grid *grid,
                                        double x, double y,
                                        struct oj_error *err);

void oj_near_hood_free(struct oj_near_hood *hood);

/** The plain one. */
extern const struct oj_near_kernel oj_near_plain;

/** The one for processors with AVX-512, or NULL where this one has none. */
const struct oj_near_kernel *oj_near_avx512(void);

/** The fastest that this processor can do. */
const struct oj_near_kernel *oj_near_kernel(void);

#endif
