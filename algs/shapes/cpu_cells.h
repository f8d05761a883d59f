/** Cells over a feature of many edges.
 *
 *  The feature's box is cut into nx x ny cells. A cell knows which edges touch
 *  it; one that no edge touches knows whether it is inside, the others whether
 *  their reference point is.  So a window of a few cells is often decided
 *  without a look at the feature, and else by a few edges.
 *
 *      state        [0 0 4 4 1 4 ...]    enum oj_cell_state
 *      first_entry  [0 0 0 3 5 5 ...]    edges of cell i: entry[first_entry[i]
 *                                        .. first_entry[i + 1])
 *
 *  For the rings of all polygons of a feature together (even-odd), for lines,
 *  and for points as edges of no length; the last two have no inside.
 *  Source: cells with a reference point as in S2's cell index; planar and even-
 *  odd here.
 */
#ifndef CPU_CELLS_H
#define CPU_CELLS_H

#include "../kernels/oj_ring.h"
#include "cpu_shape.h"

#include <stdint.h>
#include <string.h>

/** Bits, so that the states of many cells can be or'ed. */
enum oj_cell_state
{
    OJ_CELL_OUTSIDE = 1,      /**< no edge; all of it is outside */
    OJ_CELL_INSIDE = 2,       /**< no edge; all of it is inside */
    OJ_CELL_EDGES = 4,        /**< edges; reference point outside */
    OJ_CELL_EDGES_INSIDE = 8, /**< edges; reference point inside */
    OJ_CELL_EDGES_UNCLEAR = 16
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_cells
{
    double x0, y0, cell, inverse_cell;
    int32_t nx, ny;
    uint8_t *state;        /**< [nx * ny] */
    uint32_t *first_entry; /**< [nx * ny + 1] into entry */
    uint32_t *entry;       /**< edges: 2 * (vertex - first vertex of the
                                feature) + 1 if the edge is that vertex alone */
    void *block;           /**< all arrays */
    int64_t cap_block;
};

/** What building needs in between; owner, one per thread, reused. */
struct oj_cells_scratch
{
    uint32_t *cell, *edge; /* [n] an edge touches a cell */
    int64_t n, cap_cell, cap_edge;
};

#define OJ_CELLS_MOST_VERTICES (INT64_C(1) << 28)

/** Makes the cells of shape (of one kind, with parts, no more vertices than
 *  that); cells may hold earlier ones, whose memory is reused. O(edges). */
OJ_MUST_USE oj_status oj_cells_build(struct oj_cells *cells,
                                     const struct oj_shape *shape,
                                     struct oj_cells_scratch *scratch,
                                     struct oj_error *err);

/** Where p, inside the box of the shape, is: for polygons by even-odd over all
 *  rings; for others OJ_ON_BOUNDARY on an edge and OJ_OUTSIDE else. */
enum oj_location oj_cells_locate(const struct oj_cells *cells,
                                 const struct oj_shape *shape, double px,
                                 double py);

void oj_cells_free(struct oj_cells *cells);
void oj_cells_scratch_free(struct oj_cells_scratch *scratch);

/** Column or row of a coordinate; those beyond the cells are on the rim. */
static inline int32_t oj_cell_of(double v, double origin, double inverse,
                                 int32_t n)
{
    double c = (v - origin) * inverse;
    if (!(c > 0.0))
        return 0;
    return c >= (double)n ? n - 1 : (int32_t)c;
}

/** Columns and rows that a box touches. */
struct oj_cell_window
{
    int32_t column0, column1, row0, row1;
};

static inline struct oj_cell_window oj_cells_window(const struct oj_cells *c,
                                                    const struct oj_box *box)
{
    struct oj_cell_window w = {
        oj_cell_of(box->x0, c->x0, c->inverse_cell, c->nx),
        oj_cell_of(box->x1, c->x0, c->inverse_cell, c->nx),
        oj_cell_of(box->y0, c->y0, c->inverse_cell, c->ny),
        oj_cell_of(box->y1, c->y0, c->inverse_cell, c->ny)};
    return w;
}

/** Bytes past the last state that may be read. */
#define OJ_CELLS_PADDING 8

/** The states of the cells of a window, or'ed; stops where they differ. */
static inline unsigned oj_cells_states(const struct oj_cells *c,
                                       const struct oj_cell_window *w)
{
    unsigned states = 0;
    int n = w->column1 - w->column0 + 1;
    if (n <= 8)
    {
        static const uint8_t mask[16] = {0xFF, 0xFF, 0xFF, 0xFF,
                                         0xFF, 0xFF, 0xFF, 0xFF};
        uint64_t eight, all = 0;
        const uint8_t *state = c->state + (int64_t)w->row0 * c->nx + w->column0;
        for (int32_t row = w->row0; row <= w->row1; row++, state += c->nx)
        {
            memcpy(&eight, state, sizeof eight);
            all |= eight;
        }
        /* the first n bytes, whatever the byte order */
        memcpy(&eight, mask + 8 - n, sizeof eight);
        all &= eight;
        all |= all >> 32;
        all |= all >> 16;
        all |= all >> 8;
        return (unsigned)(all & 0xFF);
    }
    for (int32_t row = w->row0; row <= w->row1; row++)
    {
        const uint8_t *state = c->state + (int64_t)row * c->nx;
        for (int32_t column = w->column0; column <= w->column1; column++)
            states |= state[column];
        if ((states & (states - 1)) != 0)
            break;
    }
    return states;
}

/** Where p is in a polygon shape by even-odd over all its rings, edge by edge:
 *  what cells answer faster. */
enum oj_location oj_shape_locate_in_rings(const struct oj_shape *shape,
                                          double px, double py);

#endif
