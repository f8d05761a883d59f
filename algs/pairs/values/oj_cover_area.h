/** Area of the part of a feature that several features cover together, each
 *  place once, without their intersections and union.
 *
 *      ____________ y3     The plane is cut into horizontal slabs at all
 *       a /   b|  \        vertices and crossings. No edges cross inside of a
 *      __/____c|\__\ y2    slab, so that they have an order from left to right,
 *       /     d| \  \      and the areas between neighbours are trapezoids. A
 *      ________________    trapezoid counts if it is in the feature and in at
 *                          least one of the others.
 *
 *  A polygon part is the area that its rings enclose by even-odd, a feature the
 *  union of its parts (struct oj_flat), also if they are not valid. Edges that
 *  almost coincide may come in the wrong order: the area between them is as
 *  small as the rounding of their coordinates. The result therefore differs
 *  from the exact area by about 1e-15 of the area of the feature's box for each
 *  slab.
 *
 *  Source: ours, after the slabs of Dobkin and Lipton (1976). Pays: the covered
 *  parts of the lots of citygen M by zones take a 24th of the processor time of
 *  GEOS's intersections and unions. */
#ifndef OJ_COVER_AREA_H
#define OJ_COVER_AREA_H

#include "../../../flatten/arrays/oj_flat.h"

struct oj_cover_edge;

/** Buffers that are reused for every feature. Zeroed memory is valid. */
struct oj_cover_work
{
    struct oj_cover_edge *edge;
    double *y;             /* heights at which slabs begin and end */
    double *top;           /* tops of the parts of a slab, the lowest last */
    int64_t *active;       /* edges in the slab, from left to right */
    unsigned char *is_odd; /* per part: 1 if an odd number of its edges are to
                              the left */
    int64_t n_edges, n_y, n_parts;
    int64_t cap_edge, cap_y, cap_top, cap_active, cap_is_odd;
};

/** Sets *covered to the area of the polygons of row `row` of input that the
 * polygons of n features of join_side cover together, and *whole to the area
 * of the row's polygons. Both are added up slab by slab, so *covered equals
 * *whole exactly if all is covered. If the edges would make too many
 * trapezoids, sets *is_measured to 0 and measures nothing. Both layers must be
 * in the long form. O(vertices + the edges in each slab). */
OJ_MUST_USE oj_status oj_cover_area(struct oj_cover_work *work,
                                    const struct oj_flat *input, int64_t row,
                                    const struct oj_flat *join_side,
                                    const int32_t *features, int64_t n,
                                    double *covered, double *whole,
                                    int *is_measured, struct oj_error *err);

/** Sets *has_size to 1 if a row has an area or a length, of which a percentage
 * can be covered; otherwise to 0: points, no geometry, lines and polygons that
 * collapse. O(vertices); rings whose shoelace area is 0 take the time of
 * oj_cover_area(). */
OJ_MUST_USE oj_status oj_cover_has_size(struct oj_cover_work *work,
                                        const struct oj_flat *input,
                                        int64_t row, int *has_size,
                                        struct oj_error *err);

void oj_cover_work_free(struct oj_cover_work *work);

#endif
