/** Vertices put into the segments of a layer, so that none is longer than a
 *  given length.
 */
#ifndef OJ_DENSIFY_H
#define OJ_DENSIFY_H

#include "../../../flatten/arrays/oj_flat.h"

/** The vertices of a layer with those that were put in. Owner; its memory is
 *  used again; zeroed memory is a valid empty one. */
struct oj_dense
{
    int64_t cap_offset, cap_x, cap_y;
    int64_t *vertex_offset; /**< [n_rings + 1] */
    double *x, *y;
};

/** Sets *out to flat with more vertices: a segment becomes as few equal ones as
 *  have at most this length, in units of the coordinates; on the sphere metres,
 *  along the shorter great circle.  The vertices of flat stay as they are.
 *  What flat and dense hold outlives *out.
 *  Errors     OJ_ERR_ARG: a segment would become more than 2^30; OJ_ERR_NOMEM
 *  Cost       O(vertices of *out). */
OJ_MUST_USE oj_status oj_densify(const struct oj_flat *flat, double length,
                                 int on_sphere, struct oj_dense *dense,
                                 struct oj_flat *out, struct oj_error *err);

void oj_densify_free(struct oj_dense *dense);

#endif
