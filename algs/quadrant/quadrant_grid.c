#include "quadrant_grid.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_compare.h"
#include "../base/oj_radix.h"

#include <stdlib.h>
#include <string.h>

#define N_SAMPLES 1023
#define MAX_COLUMN 2147483647.0

/* Cells that a box touches, both ends included. */
struct cells
{
    uint32_t column0, row0, column1, row1;
};

/* Never decreases with v, so boxes that meet share a cell whatever rounding
 * does to the cells' borders. */
static uint32_t column(double v, double origin, double size)
{
    double c = (v - origin) / size;
    if (!(c > 0.0))
        return 0;
    return c >= MAX_COLUMN ? (uint32_t)MAX_COLUMN : (uint32_t)c;
}

static struct cells cells_of(const struct oj_quadrant_grid *grid,
                             const struct oj_box *box)
{
    struct cells cells = {column(box->x0, grid->x0, grid->size),
                          column(box->y0, grid->y0, grid->size),
                          column(box->x1, grid->x0, grid->size),
                          column(box->y1, grid->y0, grid->size)};
    return cells;
}

static double n_cells_of(const struct cells *cells)
{
    return ((double)cells->column1 - cells->column0 + 1.0) *
           ((double)cells->row1 - cells->row0 + 1.0);
}

static uint64_t cell_at(uint32_t row, uint32_t col)
{
    return (uint64_t)row << 32 | col;
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
    double size = fmax(typical_size(boxes, grid->reach), extent / MAX_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        return 0;
    grid->x0 = all.x0;
    grid->y0 = all.y0;
    for (; size < INFINITY; size *= 2.0)
    {
        double n = 0.0;
        grid->size = size;
        for (int64_t i = 0; i < boxes->n && n <= limit; i++)
        {
            struct oj_box box;
            struct cells cells;
            if (oj_box_is_empty(&boxes->box[i]))
                continue;
            box = oj_box_around(&boxes->box[i], grid->reach);
            cells = cells_of(grid, &box);
            n += n_cells_of(&cells);
        }
        if (n <= limit)
            return (int64_t)n;
    }
    return 0;
}

static void list_entries(const struct oj_quadrant_grid *grid,
                         struct oj_keyed *entry)
{
    for (int64_t i = 0; i < grid->boxes->n; i++)
    {
        struct oj_box box;
        struct cells cells;
        if (oj_box_is_empty(&grid->boxes->box[i]))
            continue;
        box = oj_box_around(&grid->boxes->box[i], grid->reach);
        cells = cells_of(grid, &box);
        for (uint32_t row = cells.row0; row <= cells.row1; row++)
        {
            for (uint32_t col = cells.column0; col <= cells.column1; col++)
            {
                entry->key = cell_at(row, col);
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

/* First stored cell that is key or comes after it. */
static int64_t lower_bound(const struct oj_quadrant_grid *grid, uint64_t key)
{
    int64_t first = 0, end = grid->n_cells;
    while (first < end)
    {
        int64_t middle = first + (end - first) / 2;
        if (grid->cell[middle] < key)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The stored cells of one row, from column0 to column1, are a run: *first up to
 * *end. Returns the next row at or after row that has stored cells. */
static uint32_t find_run(const struct oj_quadrant_grid *grid, uint32_t row,
                         const struct cells *cells, int64_t *first,
                         int64_t *end)
{
    int64_t i = lower_bound(grid, cell_at(row, cells->column0));
    *first = *end = i;
    if (i < grid->n_cells && grid->cell[i] <= cell_at(row, cells->column1))
    {
        *end = lower_bound(grid, cell_at(row, cells->column1) + 1);
        return row;
    }
    return i < grid->n_cells ? (uint32_t)(grid->cell[i] >> 32) : UINT32_MAX;
}

/* Calls for each run of entries in the cells of window; without feature only
 * counts them. */
static int64_t visit(const struct oj_quadrant_grid *grid,
                     const struct oj_box *window, int32_t *feature)
{
    struct cells cells = cells_of(grid, window);
    uint32_t row = cells.row0;
    int64_t n = 0;
    while (row <= cells.row1)
    {
        int64_t first, end, n_run;
        uint32_t found = find_run(grid, row, &cells, &first, &end);
        n_run = grid->cell_offset[end] - grid->cell_offset[first];
        if (feature != NULL && n_run > 0)
            memcpy(feature + n, grid->feature + grid->cell_offset[first],
                   (size_t)n_run * sizeof *feature);
        n += n_run;
        row = found > row ? found : row + 1;
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
