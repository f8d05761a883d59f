/** Whether two shapes meet: exact tests of vertices and edges, only where the
 *  boxes of both are.
 *
 *  Source: ours; cells before edges (cpu_cells.h), edges by exact orientation
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

/** Where the window of a shape's box lies in polygon: OJ_INSIDE or OJ_OUTSIDE
 *  when all of the box is, seen from cells alone; else OJ_ON_BOUNDARY. */
static inline enum oj_location
oj_shape_locate_box(const struct oj_shape *polygon, const struct oj_box *box)
{
    const struct oj_cells *cells =
        atomic_load_explicit(&polygon->cells, memory_order_acquire);
    struct oj_cell_window window;
    unsigned states;
    if (!oj_box_intersects(&polygon->box, box))
        return OJ_OUTSIDE;
    if (cells == NULL)
        return OJ_ON_BOUNDARY;
    window = oj_cells_window(cells, box);
    states = oj_cells_states(cells, &window);
    if (states == OJ_CELL_OUTSIDE)
        return OJ_OUTSIDE;
    if (states == OJ_CELL_INSIDE && oj_box_covers(&polygon->box, box))
        return OJ_INSIDE;
    return OJ_ON_BOUNDARY;
}

/** 1 when a and b have a point in common: of any kinds, collections by their
 *  members. *rests_on: 1 and 2, or'ed, where 0 holds only if a or b is nice
 *  (oj_shape_is_nice()): polygons of several rings. */
int oj_shapes_meet(const struct oj_shape *a, const struct oj_shape *b,
                   unsigned *rests_on);

#endif
