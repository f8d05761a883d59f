/** The rings of a polygon layer, found by place: squares of the plane that know
 *  which rings' boxes touch them, for points in any order.
 *
 *  A layer of cells holds rings of similar size.  A cell is cut into 8 x 8
 *  spots; one bit says whether the box of any ring touches the spot, so most
 *  points that are in no ring are done with one look-up:
 *
 *      mask[cell]   64 bits, one a spot
 *      first[cell]  entries first[cell] .. first[cell + 1] - 1
 *      entry        a ring, and its box in 128 x 128 steps of the cell
 *
 *  A ring that would be in too many cells goes to the next, coarser layer.  A
 *  cell with too many entries becomes a set of layers of its own, so clustered
 *  data cost one look-up more a level, and far away rings spoil nothing.
 *
 *  Steps are computed by one function that never decreases with the coordinate
 *  and is clamped to the frame, so whatever the frame and the rounding, a point
 *  in a ring's box is in the ring's steps: filters lose nothing, and the exact
 *  test behind them decides.
 *
 *  The axes of the cells may be turned to those of the streets, where that
 * makes the boxes of lots much smaller; boxes are widened by the rounding then.
 *  Source: ours.
 */
#ifndef CPU_RING_BOX_INDEX_H
#define CPU_RING_BOX_INDEX_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../geometry/rings/edge_grid.h"

#include <stdatomic.h>

/** Steps of a cell along one axis, and of a spot. */
#define OJ_CELL_STEPS 128
#define OJ_SPOT_STEPS 16

/** Most layers of a set. */
#define OJ_RING_LAYERS 6

/** The grid of a large ring, built when the ring has been asked for a few
 *  times. What a look-up reads is in one line of the cache. */
struct oj_late_grid
{
    _Alignas(64) atomic_int n_asked; /* OJ_GRID_IS_READY or more: grid may be
                                        read */
    atomic_int is_taken;             /* 1: a thread builds or has built it */
    struct oj_edge_grid grid;
    struct oj_edge_extent extent;
};

#define OJ_GRID_IS_READY (1 << 30)

/** A ring of the layer; 24 bytes. */
struct oj_located_ring
{
    int64_t first_vertex;
    int32_t n_vertices;
    int32_t feature;
    int32_t grid; /**< into oj_ring_cells.grid, or -1: a small ring */
    int32_t part; /**< of the layer */
};

/** steps: x0, y0, 127 - x1, 127 - y1, a byte each from the lowest. */
struct oj_ring_entry
{
    uint32_t steps;
    int32_t ring;
};

/** A point, what entries are compared with for it, and which ones. */
struct oj_ring_range
{
    int32_t point;
    uint32_t probe, first, n;
};

struct oj_ring_layer
{
    double x0, y0, scale_x, scale_y; /* u, v to steps */
    double last_x, last_y;           /* last step */
    int32_t nx, ny;
    uint64_t *mask;  /* [nx * ny + 1]; the last one, of no cell, is 0 */
    uint32_t *first; /* [nx * ny + 1] into entry */
    struct oj_ring_entry *entry; /* by cell */
    int32_t *child;              /* [nx * ny] set, or -1; NULL: all -1 */
};

struct oj_ring_set
{
    int n_layers;
    struct oj_ring_layer layer[OJ_RING_LAYERS];
};

/** Coordinates u, v along the axes of the cells. */
struct oj_ring_axes
{
    int is_turned; /**< 0: u, v are x, y */
    double x0, y0; /**< where u and v are 0 */
    double cos, sin;
};

/** Owner. */
struct oj_ring_cells
{
    struct oj_ring_axes axes;
    const struct oj_flat *flat; /**< outlives this */
    const struct oj_ring_kernel *kernel;
    int64_t n_rings;
    struct oj_located_ring *ring; /**< [n_rings] in read order */
    int64_t n_grids;
    struct oj_late_grid *grid;
    /** joined so far, or about to be, as joins say: grids pay for many */
    int64_t n_points;
    atomic_llong new_bytes; /* of grids built since this was last read */
    int64_t n_sets, cap_sets;
    struct oj_ring_set *set; /**< the last one is the whole; none: no rings */
};

/** Indexes the polygon rings of flat with n_threads; those of other parts, and
 *  of features that flat->overlaps marks, are left out, as rings without
 *  vertices.  O(vertices). */
OJ_MUST_USE oj_status oj_ring_cells_build(struct oj_ring_cells *cells,
                                          const struct oj_flat *flat,
                                          int n_threads, struct oj_error *err);

/** The grid of a large ring, or NULL: it is better to walk the ring so far. By
 *  any thread. */
OJ_MUST_USE oj_status oj_ring_cells_build_grid(struct oj_ring_cells *cells,
                                               const struct oj_located_ring *r,
                                               const struct oj_edge_grid **out,
                                               struct oj_error *err);

OJ_MUST_USE static inline oj_status
oj_ring_cells_grid(struct oj_ring_cells *cells, const struct oj_located_ring *r,
                   const struct oj_edge_grid **out, struct oj_error *err)
{
    struct oj_late_grid *late = &cells->grid[r->grid];
    if (atomic_load_explicit(&late->n_asked, memory_order_acquire) <
        OJ_GRID_IS_READY)
        return oj_ring_cells_build_grid(cells, r, out, err);
    *out = &late->grid;
    return OJ_OK;
}

/** Without the grids that are not built yet. */
int64_t oj_ring_cells_bytes(const struct oj_ring_cells *cells);

void oj_ring_cells_free(struct oj_ring_cells *cells);

static inline double oj_ring_u(const struct oj_ring_axes *a, double x, double y)
{
    return (x - a->x0) * a->cos + (y - a->y0) * a->sin;
}

static inline double oj_ring_v(const struct oj_ring_axes *a, double x, double y)
{
    return (y - a->y0) * a->cos - (x - a->x0) * a->sin;
}

/** What an entry is compared with: x, y, 127 - x, 127 - y, of the steps within
 *  the cell, and a bit to borrow from in each byte. */
static inline uint32_t oj_ring_probe_of_steps(int32_t step_x, int32_t step_y)
{
    uint32_t x = (uint32_t)step_x % OJ_CELL_STEPS;
    uint32_t y = (uint32_t)step_y % OJ_CELL_STEPS;
    uint32_t both = x | y << 8;
    return 0x80808080u | both | (0x7f7fu - both) << 16;
}

/** 1 when the probed point is in the entry's box. */
static inline int oj_ring_entry_holds(uint32_t steps, uint32_t probe)
{
    return ((probe - steps) & 0x80808080u) == 0x80808080u;
}

#endif
