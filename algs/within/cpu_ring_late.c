#include "cpu_ring_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"

#include <string.h>

/* From how many vertices on a ring may get a grid. */
#define GRID_VERTICES 32

/* A ring that is asked for more often than this will be asked for again. */
#define ASKED_BEFORE 2

/* And with so many points for each ring, a ring of so many vertices will be if
 * it is at all. */
#define MANY_POINTS 8
#define LARGE 256

#define RINGS_PER_TASK 256

static void measure_rings(int64_t task, int thread, void *user)
{
    struct oj_ring_cells *cells = user;
    int64_t end = (task + 1) * RINGS_PER_TASK;
    (void)thread;
    if (end > cells->n_rings)
        end = cells->n_rings;
    for (int64_t r = task * RINGS_PER_TASK; r < end; r++)
    {
        const struct oj_located_ring *ring = &cells->ring[r];
        if (ring->grid >= 0)
            cells->grid[ring->grid].extent = oj_edge_measure(
                cells->flat->x + ring->first_vertex,
                cells->flat->y + ring->first_vertex, ring->n_vertices);
    }
}

oj_status oj_ring_cells_list_grids(struct oj_ring_cells *cells, int n_threads,
                                   struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t r = 0; r < cells->n_rings; r++)
    {
        if (cells->ring[r].n_vertices >= GRID_VERTICES)
            cells->ring[r].grid = (int32_t)n++;
    }
    if (n == 0)
        return OJ_OK;
    OJ_NEW(cells->grid, n, err);
    memset(cells->grid, 0, (size_t)n * sizeof *cells->grid);
    cells->n_grids = n;
    for (int64_t i = 0; i < n; i++)
    {
        atomic_init(&cells->grid[i].n_asked, 0);
        atomic_init(&cells->grid[i].is_taken, 0);
    }
    oj_parallel_for(n_threads,
                    (cells->n_rings + RINGS_PER_TASK - 1) / RINGS_PER_TASK,
                    measure_rings, cells);
    return OJ_OK;
}

/* How often a ring is walked before it gets a grid. */
static int walks_before(const struct oj_ring_cells *cells,
                        const struct oj_located_ring *ring)
{
    return ring->n_vertices >= LARGE &&
                   cells->n_points / MANY_POINTS >= cells->n_rings
               ? 0
               : ASKED_BEFORE;
}

/* One thread builds; the others walk the ring until the grid is ready, so none
 * waits for another. */
oj_status oj_ring_cells_build_grid(struct oj_ring_cells *cells,
                                   const struct oj_located_ring *ring,
                                   const struct oj_edge_grid **out,
                                   struct oj_error *err)
{
    struct oj_late_grid *late = &cells->grid[ring->grid];
    int n_asked = atomic_fetch_add(&late->n_asked, 1);
    oj_status status;
    *out = NULL;
    if (n_asked >= OJ_GRID_IS_READY)
    {
        *out = &late->grid;
        return OJ_OK;
    }
    if (n_asked < walks_before(cells, ring) ||
        atomic_exchange(&late->is_taken, 1) != 0)
        return OJ_OK;
    status =
        oj_edge_grid_of_ring(&late->grid, cells->flat->x + ring->first_vertex,
                             cells->flat->y + ring->first_vertex,
                             ring->n_vertices, &late->extent, err);
    if (status != OJ_OK)
    {
        atomic_store(&late->is_taken, 0); /* another batch may try again */
        return status;
    }
    atomic_fetch_add(&cells->new_bytes, oj_edge_grid_bytes(&late->grid));
    atomic_store_explicit(&late->n_asked, OJ_GRID_IS_READY,
                          memory_order_release);
    *out = &late->grid;
    return OJ_OK;
}
