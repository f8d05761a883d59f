#include "cpu_near_rows.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_vector.h"

#include <math.h>
#include <string.h>

/* --- neighbourhoods ------------------------------------------------------- */

/* Eight at a time, which writes and reads a bit too far. */
static void hood_add(struct oj_near_hood *hood, int64_t at,
                     const struct oj_near_grid *grid, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i += OJ_NEAR_LANES)
    {
        memcpy(hood->x + at + i, grid->x + first + i,
               OJ_NEAR_LANES * sizeof *hood->x);
        memcpy(hood->y + at + i, grid->y + first + i,
               OJ_NEAR_LANES * sizeof *hood->y);
        memcpy(hood->id + at + i, grid->id + first + i,
               OJ_NEAR_LANES * sizeof *hood->id);
    }
}

oj_status oj_near_hood_move(struct oj_near_hood *hood,
                            const struct oj_near_grid *grid, double x, double y,
                            struct oj_error *err)
{
    const uint32_t *cell = oj_near_cell(grid, x, y);
    int64_t n = 0, capacity = 2 * OJ_NEAR_LANES, at = 0;
    if (cell == hood->cell)
        return OJ_OK;
    hood->cell = NULL;
    for (int64_t row = -1; row <= 1; row++)
        n += oj_near_run_end(grid, cell, row) -
             oj_near_run_begin(grid, cell, row);
    capacity += n;
    OJ_ROOM(hood->x, 0, capacity, hood->cap_x, err);
    OJ_ROOM(hood->y, 0, capacity, hood->cap_y, err);
    OJ_ROOM(hood->id, 0, capacity, hood->cap_id, err);
    for (int64_t row = -1; row <= 1; row++)
    {
        int64_t first = oj_near_run_begin(grid, cell, row);
        int64_t n_run = oj_near_run_end(grid, cell, row) - first;
        hood_add(hood, at, grid, first, n_run);
        at += n_run;
    }
    for (int i = 0; i < OJ_NEAR_LANES; i++)
    {
        hood->x[at + i] = hood->y[at + i] = NAN;
        hood->id[at + i] = 0;
    }
    hood->n = n;
    hood->cell = cell;
    return OJ_OK;
}

void oj_near_hood_free(struct oj_near_hood *hood)
{
    oj_free(hood->x);
    oj_free(hood->y);
    oj_free(hood->id);
    memset(hood, 0, sizeof *hood);
}

/* --- the plain way -------------------------------------------------------- */

OJ_CLONES static int64_t plain_count(const struct oj_near_hood *hood,
                                     const struct oj_near_query *query)
{
    const struct oj_near_query q = *query;
    int64_t n = 0;
    for (int64_t i = 0; i < hood->n; i++)
    {
        double dx = q.x - hood->x[i], dy = q.y - hood->y[i];
        double d2 = dx * dx + dy * dy;
        int32_t id = hood->id[i];
        n += (d2 <= q.most2) & (d2 >= q.least2) & (id >= q.from) &
             (id < q.end) & (id != q.except);
    }
    return n;
}

OJ_CLONES static int64_t plain_collect(const struct oj_near_hood *hood,
                                       const struct oj_near_query *query,
                                       int32_t *restrict out_id,
                                       double *restrict out_d2)
{
    const struct oj_near_query q = *query;
    int64_t n = 0;
    for (int64_t i = 0; i < hood->n; i++)
    {
        double dx = q.x - hood->x[i], dy = q.y - hood->y[i];
        double d2 = dx * dx + dy * dy;
        int32_t id = hood->id[i];
        out_id[n] = id;
        out_d2[n] = d2;
        n += (d2 <= q.most2) & (d2 >= q.least2) & (id >= q.from) &
             (id < q.end) & (id != q.except);
    }
    return n;
}

OJ_CLONES static void plain_roots(int64_t n, const double *d2, double *distance)
{
    for (int64_t i = 0; i < n; i++)
        distance[i] = sqrt(d2[i]);
}

const struct oj_near_kernel oj_near_plain = {plain_count, plain_collect,
                                             plain_roots};

const struct oj_near_kernel *oj_near_kernel(void)
{
    const struct oj_near_kernel *wide = oj_near_avx512();
    return wide != NULL ? wide : &oj_near_plain;
}
