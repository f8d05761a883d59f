#include "quadrant_grid.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_compare.h"
#include "../base/oj_radix.h"

#include <stdlib.h>
#include <string.h>

#define N_SAMPLES 1023

static struct oj_quadrant_cells cells_of(const struct oj_quadrant_grid *grid,
                                         const struct oj_box *box)
{
    const struct oj_quadrant_box same = {box->x0, box->y0, box->x1, box->y1};
    return oj_quadrant_cells_of(&grid->frame, &same);
}

/* Of feature i, expanded; 0: it has no box. */
static int cells_of_feature(const struct oj_quadrant_grid *grid, int64_t i,
                            struct oj_quadrant_cells *cells)
{
    const struct oj_box *box = &grid->boxes->box[i];
    struct oj_box around;
    if (oj_box_is_empty(box))
        return 0;
    around = oj_box_around(box, grid->reach);
    *cells = cells_of(grid, &around);
    return 1;
}

/* Twice the longer side of a typical expanded box: such a box touches a few
 * cells. */
static double typical_size(const struct oj_boxes *boxes, double reach)
{
    double sides[N_SAMPLES];
    int64_t n = 0, step = boxes->n / N_SAMPLES + 1;
    for (int64_t i = 0; i < boxes->n && n < N_SAMPLES; i += step)
    {
        const struct oj_box *box = &boxes->box[i];
        if (!oj_box_is_empty(box))
            sides[n++] = fmax(box->x1 - box->x0, box->y1 - box->y0);
    }
    if (n == 0)
        return 2.0 * reach;
    qsort(sides, (size_t)n, sizeof *sides, oj_compare_doubles);
    return 2.0 * (sides[n / 2] + 2.0 * reach);
}

/* Chooses the cells' size so that there are at most a few entries a feature:
 * doubling it ends at the latest when one cell holds all. Returns the number
 * of entries, 0 when no such grid can be laid over these coordinates. */
static int64_t choose_size(struct oj_quadrant_grid *grid)
{
    const struct oj_boxes *boxes = grid->boxes;
    struct oj_box all = oj_box_around(&boxes->all, grid->reach);
    double extent = fmax(all.x1 - all.x0, all.y1 - all.y0);
    double limit = 6.0 * (double)boxes->n_boxes + 1024.0;
    double size = fmax(typical_size(boxes, grid->reach),
                       extent / (double)OJ_QUADRANT_LAST_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        return 0;
    grid->frame.x0 = all.x0;
    grid->frame.y0 = all.y0;
    for (; size < INFINITY; size *= 2.0)
    {
        struct oj_quadrant_cells cells;
        double n = 0.0;
        grid->frame.size = size;
        for (int64_t i = 0; i < boxes->n && n <= limit; i++)
        {
            if (cells_of_feature(grid, i, &cells))
                n += oj_quadrant_n_cells(&cells);
        }
        if (n <= limit)
            return (int64_t)n;
    }
    return 0;
}

static void list_entries(const struct oj_quadrant_grid *grid,
                         struct oj_keyed *entry)
{
    struct oj_quadrant_cells cells;
    for (int64_t i = 0; i < grid->boxes->n; i++)
    {
        if (!cells_of_feature(grid, i, &cells))
            continue;
        for (uint32_t row = cells.row0; row <= cells.row1; row++)
        {
            for (uint32_t col = cells.column0; col <= cells.column1; col++)
            {
                entry->key = oj_quadrant_cell(row, col);
                entry->value = i;
                entry++;
            }
        }
    }
}

static oj_status store_cells(struct oj_quadrant_grid *grid,
                             const struct oj_keyed *entry, struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < grid->n_entries; i++)
        n += i == 0 || entry[i].key != entry[i - 1].key;
    OJ_NEW(grid->cell, n, err);
    OJ_NEW(grid->cell_offset, n + 1, err);
    OJ_NEW(grid->feature, grid->n_entries, err);
    n = 0;
    for (int64_t i = 0; i < grid->n_entries; i++)
    {
        grid->feature[i] = (int32_t)entry[i].value;
        if (i == 0 || entry[i].key != entry[i - 1].key)
        {
            grid->cell[n] = entry[i].key;
            grid->cell_offset[n++] = i;
        }
    }
    grid->cell_offset[n] = grid->n_entries;
    grid->n_cells = n;
    return OJ_OK;
}

static oj_status build(struct oj_quadrant_grid *grid, struct oj_error *err)
{
    struct oj_keyed *entry;
    oj_status status;
    if (grid->boxes->n_boxes == 0 || !(grid->reach < INFINITY))
        return OJ_OK;
    grid->n_entries = choose_size(grid);
    if (grid->n_entries == 0)
        return OJ_OK;
    OJ_NEW(entry, 2 * grid->n_entries, err);
    list_entries(grid, entry);
    status = store_cells(
        grid, oj_radix_sort(entry, entry + grid->n_entries, grid->n_entries),
        err);
    grid->has_cells = status == OJ_OK;
    oj_free(entry);
    return status;
}

oj_status oj_quadrant_grid_make(const struct oj_boxes *boxes, double reach,
                                struct oj_quadrant_grid **out,
                                struct oj_error *err)
{
    struct oj_quadrant_grid *grid = oj_calloc(1, sizeof *grid);
    oj_status status;
    if (grid == NULL)
        return oj_fail_nomem(err, 1, sizeof *grid);
    grid->boxes = boxes;
    grid->reach = reach;
    status = build(grid, err);
    if (status != OJ_OK)
    {
        oj_quadrant_grid_free(grid);
        return status;
    }
    *out = grid;
    return OJ_OK;
}

void oj_quadrant_grid_free(struct oj_quadrant_grid *grid)
{
    if (grid == NULL)
        return;
    oj_free(grid->cell);
    oj_free(grid->cell_offset);
    oj_free(grid->feature);
    oj_free(grid);
}

/* Counts the entries in the cells of window; writes them unless feature is
 * NULL. */
static int64_t visit(const struct oj_quadrant_grid *grid,
                     const struct oj_box *window, int32_t *feature)
{
    struct oj_quadrant_cells cells = cells_of(grid, window);
    uint32_t row = cells.row0;
    int64_t n = 0;
    while (row <= cells.row1)
    {
        int64_t first, end, n_run;
        row = oj_quadrant_run(grid->cell, grid->n_cells, row, &cells, &first,
                              &end);
        n_run = grid->cell_offset[end] - grid->cell_offset[first];
        if (feature != NULL && n_run > 0)
            memcpy(feature + n, grid->feature + grid->cell_offset[first],
                   (size_t)n_run * sizeof *feature);
        n += n_run;
    }
    return n;
}

int64_t oj_quadrant_grid_count(const struct oj_quadrant_grid *grid,
                               const struct oj_box *window)
{
    return grid->has_cells ? visit(grid, window, NULL) : grid->boxes->n_boxes;
}

int64_t oj_quadrant_grid_gather(const struct oj_quadrant_grid *grid,
                                const struct oj_box *window, int32_t *feature)
{
    const struct oj_boxes *boxes = grid->boxes;
    int64_t n = 0, n_all;
    if (!grid->has_cells)
    {
        for (int64_t i = 0; i < boxes->n; i++)
        {
            if (!oj_box_is_empty(&boxes->box[i]))
                feature[n++] = (int32_t)i;
        }
        return n;
    }
    n_all = visit(grid, window, feature);
    if (n_all > 1)
        qsort(feature, (size_t)n_all, sizeof *feature, oj_compare_int32);
    for (int64_t i = 0; i < n_all; i++)
    {
        struct oj_box box;
        int32_t f = feature[i];
        if (n > 0 && feature[n - 1] == f)
            continue;
        box = oj_box_around(&boxes->box[f], grid->reach);
        if (oj_box_intersects(&box, window))
            feature[n++] = f;
    }
    return n;
}
