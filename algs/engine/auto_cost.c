#include "auto_cost.h"

/* Rates, in seconds, of one core, and of one H200 for which cores stage what
 * lies in ordinary memory.  Only sizes matter to the choice, so one set does
 * for all joins of a kind: a smaller device and a faster core both mean that
 * the choice is a little early or late, never that an answer differs.
 *
 * Points: the nearest of 4.7 million vertices and 10 to 170 million points. */
static const double cpu_row_s = 170e-9, cpu_vertex_s = 80e-9;
static const double gpu_row_s = 0.4e-9, gpu_vertex_s = 7e-9;
static const double stage_row_s = 4e-9; /* of one core */

/* Lines and polygons: those of 1.2 to 9.4 million vertices on both sides that
 * intersect: 190 to 320 ns a vertex on one core, 350 to 650 on each of 16. */
static const double cpu_shape_vertex_s = 300e-9;
static const double gpu_shape_vertex_s = 3e-9;
static const double stage_shape_vertex_s = 18e-9; /* of one core */

/* Starting CUDA and taking memory, once in a process. */
static const double gpu_start_s = 0.5;

/* The estimates are rough: only a clear gain counts. */
static const double clear_gain = 1.5;

struct oj_auto_cost oj_auto_expect(const struct oj_auto_work *work)
{
    double n_threads = work->n_threads, n = work->n_join_vertices;
    struct oj_auto_cost cost;
    if (work->of_points)
    {
        cost.cpu_s = (work->n_rows * cpu_row_s + n * cpu_vertex_s) / n_threads;
        cost.gpu_s = work->n_rows * (gpu_row_s + stage_row_s / n_threads) +
                     n * gpu_vertex_s;
    }
    else
    {
        n += work->n_vertices;
        cost.cpu_s = n * cpu_shape_vertex_s / n_threads;
        cost.gpu_s =
            n * (gpu_shape_vertex_s + stage_shape_vertex_s / n_threads);
    }
    if (!work->is_started)
        cost.gpu_s += gpu_start_s;
    return cost;
}

int oj_auto_gpu_pays(const struct oj_auto_cost *cost)
{
    return cost->cpu_s > clear_gain * cost->gpu_s;
}
