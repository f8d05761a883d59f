/** Whether two shapes meet: exact tests of vertices and edges, only where the
 *  boxes of both are.
 *
 *  Source: ours; cells before edges (edge_grid.h), edges by exact orientation
 *  (kernels/oj_cross.h).
 */
#ifndef CPU_MEET_H
#define CPU_MEET_H

#include "../kernels/oj_cross.h"
#include "cpu_shapes.h"

#include <stdatomic.h>

/** Where p is: in a polygon by even-odd over all rings, which is right for what
 *  may_overlap only if that is nice; OJ_ON_BOUNDARY on a line or a point. For
 *  shapes of one kind. */
enum oj_location oj_shape_locate(const struct oj_shape *shape, double px,
                                 double py);

/** The closest contact of an edge of a with an edge of b: crossing before
 *  touching before none.  Looks no further once it has found one that is at
 *  least enough.  For shapes of one kind each. */
enum oj_contact oj_shapes_contact(const struct oj_shape *a,
                                  const struct oj_shape *b,
                                  enum oj_contact enough);

/** Where p is in a polygon shape by even-odd over all its rings, edge by edge:
 *  what cells answer faster. */
enum oj_location oj_shape_locate_in_rings(const struct oj_shape *shape,
                                          double px, double py);

/** The cells of shape, or NULL. */
static inline const struct oj_edge_grid *
oj_shape_cells(const struct oj_shape *shape)
{
    const struct oj_edge_grid *cells =
        atomic_load_explicit(&shape->cells, memory_order_acquire);
    return cells != NULL && cells->n_words > 0 ? cells : NULL;
}

static inline struct oj_edge_window
oj_cells_window(const struct oj_edge_grid *cells, const struct oj_box *box)
{
    return oj_frame_window(&cells->frame, box->x0, box->y0, box->x1, box->y1);
}

/** Where a box, which meets that of polygon, lies in it: OJ_INSIDE or
 * OJ_OUTSIDE when all of it does, seen from the polygon's cells alone; else
 *  OJ_ON_BOUNDARY.  cells: NULL: none. */
static inline enum oj_location
oj_cells_locate_box(const struct oj_edge_grid *cells,
                    const struct oj_shape *polygon, const struct oj_box *box)
{
    int known = cells == NULL ? -1
                              : oj_edge_grid_known_box(cells, box->x0, box->y0,
                                                       box->x1, box->y1);
    return known == OJ_OUTSIDE ||
                   (known == OJ_INSIDE && oj_box_covers(&polygon->box, box))
               ? (enum oj_location)known
               : OJ_ON_BOUNDARY;
}

/** 1 when a and b have a point in common: of any kinds, collections by their
 *  members. *rests_on: 1 and 2, or'ed, where 0 holds only if a or b is nice
 *  (oj_shape_is_nice()): polygons of several rings. */
int oj_shapes_meet(const struct oj_shape *a, const struct oj_shape *b,
                   unsigned *rests_on);

#endif
