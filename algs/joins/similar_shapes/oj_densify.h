/** Densifies a layer: adds vertices so that no segment is longer than a given
 * length. */
#ifndef OJ_DENSIFY_H
#define OJ_DENSIFY_H

#include "../../../flatten/arrays/oj_flat.h"

/** The vertices of a densified layer. Owner; its memory is reused; zeroed
 * memory is a valid empty one. */
struct oj_dense
{
    int64_t cap_offset, cap_x, cap_y;
    int64_t *vertex_offset; /**< [n_rings + 1] */
    double *x, *y;
};

/** Sets *out to flat with added vertices: each segment is divided into the
 * smallest number of equal pieces of at most this length. The length is in
 * units of the coordinates; on the sphere in metres, along the shorter great
 * circle. Existing vertices are unchanged. *out borrows from flat and dense.
 * Errors: OJ_ERR_ARG if a segment would have more than 2^30 pieces;
 * OJ_ERR_NOMEM. Cost: O(vertices of *out). */
OJ_MUST_USE oj_status oj_densify(const struct oj_flat *flat, double length,
                                 int on_sphere, struct oj_dense *dense,
                                 struct oj_flat *out, struct oj_error *err);

void oj_densify_free(struct oj_dense *dense);

#endif
