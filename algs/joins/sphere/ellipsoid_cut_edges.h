/** A layer on an ellipsoid whose long edges are cut into pieces, at points of
 *  these edges, so that the bounds of oj_ellipsoid.h hold. */
#ifndef ELLIPSOID_CUT_EDGES_H
#define ELLIPSOID_CUT_EDGES_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/oj_geodesic.h"

/** Owner of the vertices and their offsets. */
struct oj_cut_edges
{
    struct oj_flat flat; /**< parts, rings and columns are the layer's, which
                              must outlive this */
    int64_t *vertex_offset;
    double *x, *y;
};

/** Cuts the edges of a layer that are longer than OJ_ELLIPSOID_LONGEST_EDGE
 *  into equally long pieces. *out becomes NULL if no edge is longer; then the
 *  layer itself can be used. Rings with a latitude beyond 90, or a longitude
 *  that is not finite, stay as they are. */
OJ_MUST_USE oj_status oj_cut_edges_make(const struct oj_geodesic *geodesic,
                                        const struct oj_ellipsoid *ellipsoid,
                                        const struct oj_flat *flat,
                                        int n_threads,
                                        struct oj_cut_edges **out,
                                        struct oj_error *err);

/** Accepts NULL. */
void oj_cut_edges_free(struct oj_cut_edges *cut);

#endif
