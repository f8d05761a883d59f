/** An index that finds the polygon rings whose boxes contain a point, for
 *  points in any order: a grid of cells with the rings whose boxes touch them.
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
 *  data cost one look-up more per level, and outliers do no harm.
 *
 *  Steps are computed by one function, monotone in the coordinate and clamped
 *  to the frame.  So a point in a ring's box is in the ring's range of steps,
 *  whatever the rounding: the filter loses nothing, and an exact test decides.
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

/** Steps per cell along an axis, and per spot. */
#define OJ_CELL_STEPS 128
#define OJ_SPOT_STEPS 16

/** Maximum layers of a set. */
#define OJ_RING_LAYERS 6

/** The grid of a large ring, built after the ring was asked for a few times.
 * Members that look-ups read are in one cache line. */
struct oj_late_grid
{
    _Alignas(64) atomic_int n_asked; /* number of requests; OJ_GRID_IS_READY
                                        or more: grid may be read */
    atomic_int is_taken;             /* 1: a thread is building it or has
                                        built it */
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
    int32_t grid; /**< index in oj_ring_cells.grid; -1: a small ring */
    int32_t part; /**< ordinal of the part in the layer */
};

/** The box of a ring in a cell, in steps: bytes x0, y0, 127 - x1, 127 - y1, the
 * lowest first. */
struct oj_ring_entry
{
    uint32_t steps;
    int32_t ring;
};

/** A point, the value to compare entries with, and its range of entries. */
struct oj_ring_range
{
    int32_t point;
    uint32_t probe, first, n;
};

struct oj_ring_layer
{
    double x0, y0, scale_x, scale_y; /* conversion from u, v to steps */
    double last_x, last_y;           /* last step */
    int32_t nx, ny;
    uint64_t *mask;  /* [nx * ny + 1] masks of spots; the extra cell at the
                        end has none */
    uint32_t *first; /* [nx * ny + 1] first entry of each cell */
    struct oj_ring_entry *entry; /* grouped by cell */
    int32_t *child;              /* [nx * ny] index of the cell's own set, or
                                    -1; NULL: all -1 */
};

struct oj_ring_set
{
    int n_layers;
    struct oj_ring_layer layer[OJ_RING_LAYERS];
};

/** The coordinates u, v along the axes of the cells. */
struct oj_ring_axes
{
    int is_turned; /**< 0: u = x, v = y */
    double x0, y0; /**< origin of u and v */
    double cos, sin;
};

/** Owner. */
struct oj_ring_cells
{
    struct oj_ring_axes axes;
    const struct oj_flat *flat; /**< outlives this */
    const struct oj_ring_kernel *kernel;
    int64_t n_rings;
    struct oj_located_ring *ring; /**< [n_rings] in reading order */
    int64_t n_grids;
    struct oj_late_grid *grid;
    int64_t n_points; /**< joined so far; joins add theirs before they begin */
    int64_t n_expected; /**< points that will be joined in all; 0: unknown */
    atomic_llong new_bytes; /* bytes of the grids built since the last
                               reading of this member */
    int64_t n_sets, cap_sets;
    struct oj_ring_set *set; /**< sets of layers; the last one covers the
                                  whole layer; none if there are no rings */
};

/** Indexes the polygon rings of flat with n_threads. Rings of other parts, and
 *  of features marked in flat->overlaps, are entered as rings without vertices.
 *  n_expected: points that will be joined, 0: unknown; grids of large rings get
 *  a fineness that pays for so many.  O(vertices). */
OJ_MUST_USE oj_status oj_ring_cells_build(struct oj_ring_cells *cells,
                                          const struct oj_flat *flat,
                                          int64_t n_expected, int n_threads,
                                          struct oj_error *err);

/** The grid of a large ring, built now if it pays; NULL: walk the ring instead.
 * Thread-safe. */
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

/** Memory in bytes, without grids that are not built yet. */
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

/** The value to compare entries with: bytes x, y, 127 - x, 127 - y of the steps
 * within the cell, each with its top bit set for the borrow. */
static inline uint32_t oj_ring_probe_of_steps(int32_t step_x, int32_t step_y)
{
    uint32_t x = (uint32_t)step_x % OJ_CELL_STEPS;
    uint32_t y = (uint32_t)step_y % OJ_CELL_STEPS;
    uint32_t both = x | y << 8;
    return 0x80808080u | both | (0x7f7fu - both) << 16;
}

/** 1 if the box of the entry contains the point. */
static inline int oj_ring_entry_holds(uint32_t steps, uint32_t probe)
{
    return ((probe - steps) & 0x80808080u) == 0x80808080u;
}

#endif
