/** An index that finds the polygon rings whose boxes contain a point: a grid of
 *  cells, each with the rings whose boxes intersect it.
 *
 *  A layer of cells holds rings of similar size.  A cell is divided into 8 x 8
 *  subcells, each with a bit that is set if the box of any ring
 *  intersects it.  So a single look-up suffices for most points outside of all
 *  rings:
 *
 *      mask[cell]   64 bits, one for each subcell
 *      first[cell]  entries first[cell] .. first[cell + 1] - 1
 *      entry        a ring, and its box in 128 x 128 steps of the cell
 *
 *  A ring that intersects too many cells goes to the next, coarser layer.  A
 *  cell with too many entries gets a set of layers of its own. So clustered
 *  data cost one more look-up per level, and outliers do not make the cells too
 *  large.
 *
 *  Steps are computed by one function, monotone in the coordinate and clamped
 *  to the grid.  So a point in a ring's box is in the ring's range of steps,
 *  whatever the rounding: the filter loses no pair, and an exact test decides.
 *
 *  The axes of the cells may be rotated, for example to the direction of
 *  streets, if that makes the boxes much smaller; boxes are then widened by the
 *  rounding error. Source: ours.
 */
#ifndef CPU_RING_BOX_INDEX_H
#define CPU_RING_BOX_INDEX_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../geometry/rings/edge_grid.h"

#include <stdatomic.h>

/** Steps along an axis per cell, and per subcell. */
#define OJ_CELL_STEPS 128
#define OJ_SUBCELL_STEPS 16

/** Maximum layers of a set. */
#define OJ_RING_LAYERS 6

/** The grid of a large ring, built at the first test of the ring or after a few
 * tests. The members that are read in tests share a cache line. */
struct oj_late_grid
{
    _Alignas(64) atomic_int n_asked; /* number of tests so far; from
                                        OJ_GRID_IS_READY on, grid may be read */
    atomic_int is_taken;             /* 1: a thread is building the grid or has
                                        built it */
    struct oj_edge_grid grid;
    struct oj_edge_extent extent;
};

#define OJ_GRID_IS_READY (1 << 30)

/** A polygon ring of the layer; 24 bytes. */
struct oj_located_ring
{
    int64_t first_vertex;
    int32_t n_vertices;
    int32_t feature;
    int32_t grid; /**< index in oj_ring_cells.grid, or -1 for a small ring,
                       which has no grid */
    int32_t part; /**< ordinal of the part in the layer */
};

/** The box of a ring within a cell, as four bytes: x0, y0, 127 - x1, 127 - y1
 * in steps, lowest byte first. */
struct oj_ring_entry
{
    uint32_t steps;
    int32_t ring;
};

/** A point with its range of entries, and its value for the comparison with
 * entries (oj_ring_probe_of_steps()). */
struct oj_ring_range
{
    int32_t point;
    uint32_t probe, first, n;
};

struct oj_ring_layer
{
    double x0, y0, scale_x, scale_y; /* steps along u (struct oj_ring_axes):
                                        (u - x0) * scale_x; along v: (v - y0) *
                                        scale_y */
    double last_x, last_y;           /* last step along each axis */
    int32_t nx, ny;
    uint64_t *mask;  /* [nx * ny + 1] a bit for each subcell of a cell; the
                        extra cell at the end, for NaN, has no bits set */
    uint32_t *first; /* [nx * ny + 1] first entry of each cell; the last element
                        is the end of all entries */
    struct oj_ring_entry *entry; /* entries, cell by cell */
    int32_t *child;              /* [nx * ny] index in oj_ring_cells.set of the
                                    set that subdivides the cell, or -1 for a
                                    cell that is not subdivided. NULL if no cell
                                    is */
};

struct oj_ring_set
{
    int n_layers;
    struct oj_ring_layer layer[OJ_RING_LAYERS];
};

/** Coordinates u, v along the axes of the cells: (x, y) translated and rotated.
 */
struct oj_ring_axes
{
    int is_turned; /**< 0: the axes are not rotated, so u = x and v = y */
    double x0, y0; /**< origin of u and v, in x and y */
    double cos, sin;
};

/** Index of the polygon rings of a layer by their boxes. Owner; zeroed memory
 * is a valid empty value. */
struct oj_ring_cells
{
    struct oj_ring_axes axes;
    const struct oj_flat *flat; /**< must outlive the index */
    const struct oj_ring_kernel *kernel;
    int64_t n_rings;
    struct oj_located_ring *ring; /**< [n_rings] in the order of the layer */
    int64_t n_grids;
    struct oj_late_grid *grid;
    int64_t n_points;   /**< points joined so far; a join adds its points before
                             it starts */
    int64_t n_expected; /**< expected number of points in all batches, or 0 if
                             it is not known */
    atomic_llong new_bytes; /* bytes of grids built since this member was last
                               read */
    int64_t n_sets, cap_sets;
    struct oj_ring_set *set; /**< sets of layers. The last one covers the whole
                                  plane, each of the others a subdivided cell.
                                  None if there are no rings */
};

/** Indexes the polygon rings of flat with n_threads threads. Rings of other
 * parts, and of features marked in flat->overlaps, are entered without
 * vertices. n_expected is the number of points that will be joined, or 0 if it
 * is not known; it determines how fine the grids of large rings are.
 * O(vertices). */
OJ_MUST_USE oj_status oj_ring_cells_build(struct oj_ring_cells *cells,
                                          const struct oj_flat *flat,
                                          int64_t n_expected, int n_threads,
                                          struct oj_error *err);

/** Sets *out to the grid of a large ring, which is built if that is expected to
 * pay; sets it to NULL if all edges of the ring must be tested instead.
 * Thread-safe. */
OJ_MUST_USE oj_status oj_ring_cells_build_grid(struct oj_ring_cells *cells,
                                               const struct oj_located_ring *r,
                                               const struct oj_edge_grid **out,
                                               struct oj_error *err);

OJ_MUST_USE static inline oj_status oj_ring_cells_grid_of_ring(
    struct oj_ring_cells *cells, const struct oj_located_ring *r,
    const struct oj_edge_grid **out, struct oj_error *err)
{
    struct oj_late_grid *late = &cells->grid[r->grid];
    if (atomic_load_explicit(&late->n_asked, memory_order_acquire) <
        OJ_GRID_IS_READY)
        return oj_ring_cells_build_grid(cells, r, out, err);
    *out = &late->grid;
    return OJ_OK;
}

/** Returns the memory in bytes, without grids that are not built yet. */
int64_t oj_ring_cells_bytes(const struct oj_ring_cells *cells);

void oj_ring_cells_free(struct oj_ring_cells *cells);

static inline double oj_ring_axes_u(const struct oj_ring_axes *a, double x,
                                    double y)
{
    return (x - a->x0) * a->cos + (y - a->y0) * a->sin;
}

static inline double oj_ring_axes_v(const struct oj_ring_axes *a, double x,
                                    double y)
{
    return (y - a->y0) * a->cos - (x - a->x0) * a->sin;
}

/** Returns the value of a point for oj_ring_entry_contains_point(): its step
 * within the cell as bytes x, y, 127 - x, 127 - y. The top bit of each byte is
 * set, so that the subtraction of an entry does not borrow across bytes. */
static inline uint32_t oj_ring_probe_of_steps(int32_t step_x, int32_t step_y)
{
    uint32_t x = (uint32_t)step_x % OJ_CELL_STEPS;
    uint32_t y = (uint32_t)step_y % OJ_CELL_STEPS;
    uint32_t both = x | y << 8;
    return 0x80808080u | both | (0x7f7fu - both) << 16;
}

/** Returns 1 if the box of the entry contains the point. Compares all four
 * bytes at once. */
static inline int oj_ring_entry_contains_point(uint32_t steps, uint32_t probe)
{
    return ((probe - steps) & 0x80808080u) == 0x80808080u;
}

#endif
