#include "oj_reach_mask.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

#define MOST_CELLS (1 << 22)
#define N_SAMPLES 1024

/* The most words that are written to mark widened boxes in the bitmap:
 * FREE_WORDS, and MOST_WORDS_PER_VERTEX for each vertex. With more, the mask
 * costs more time than it saves. */
#define MOST_WORDS_PER_VERTEX 8
#define FREE_WORDS (1 << 16)

/* Receives one envelope: of a polygon part with all its rings (its interior has
 * distance 0), or of a segment of a line. Returns 0 to end the enumeration. */
typedef int (*box_visitor)(void *user, const struct oj_box *box);

static int visit_boxes_of_line(const struct oj_flat *flat, int64_t first,
                               int64_t end, box_visitor visit, void *user)
{
    int64_t last = end - first > 1 ? end - 1 : end;
    for (int64_t v = first; v < last; v++)
    {
        int64_t next = v + 1 < end ? v + 1 : v;
        struct oj_box box = oj_box_of_segment(flat->x[v], flat->y[v],
                                              flat->x[next], flat->y[next]);
        if (!visit(user, &box))
            return 0;
    }
    return 1;
}

/* Calls visit() for the envelopes of a feature. Returns 0 as soon as visit()
 * does. */
static int visit_boxes_of_feature(const struct oj_flat *flat, int64_t feature,
                                  box_visitor visit, void *user)
{
    if (oj_flat_is_points(flat))
    {
        struct oj_box box = oj_box_of_feature(flat, feature);
        return oj_box_is_empty(&box) || visit(user, &box);
    }
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int64_t first = flat->vertex_offset[flat->ring_offset[part]];
        int64_t end = flat->vertex_offset[flat->ring_offset[part + 1]];
        if (flat->part_kind[part] == OJ_PART_POLYGON)
        {
            struct oj_box box =
                oj_box_of_points(flat->x + first, flat->y + first, end - first);
            if (!visit(user, &box))
                return 0;
        }
        else if (!visit_boxes_of_line(flat, first, end, visit, user))
            return 0;
    }
    return 1;
}

/* --- estimate of the benefit ------------------------------------------------
 */

struct sampled_boxes
{
    double distance, area;
    struct oj_box all;
};

static int add_sampled_box(void *user, const struct oj_box *of)
{
    struct sampled_boxes *sample = user;
    struct oj_box box = oj_box_widened(of, sample->distance);
    sample->area += (box.x1 - box.x0) * (box.y1 - box.y0);
    oj_box_add_box(&sample->all, &box);
    return 1;
}

/* Returns 1 if the widened boxes probably cover less than half of their common
 * extent, estimated from the areas of a sample. */
static int may_leave_most_points_out(const struct oj_flat *layer,
                                     double distance)
{
    struct sampled_boxes sample = {distance, 0.0, oj_box_empty()};
    int64_t n = layer->n_features, step = n / N_SAMPLES + 1, n_taken = 0;
    for (int64_t f = 0; f < n; f += step, n_taken++)
        visit_boxes_of_feature(layer, f, add_sampled_box, &sample);
    return n_taken > 0 && sample.area / (double)n_taken * (double)n <
                              0.5 * (sample.all.x1 - sample.all.x0) *
                                  (sample.all.y1 - sample.all.y0);
}

static int add_box_to_frame(void *user, const struct oj_box *box)
{
    oj_box_add_box(user, box);
    return 1;
}

/* --- the bitmap -------------------------------------------------------------
 */

struct mask_fill
{
    struct oj_reach_mask *mask;
    double distance;
    int64_t words_left;
};

static void set_bit_range(uint64_t *words, int32_t first, int32_t last)
{
    uint64_t from = ~(uint64_t)0 << first % 64;
    uint64_t to = ~(uint64_t)0 >> (63 - last % 64);
    if (first / 64 == last / 64)
    {
        words[first / 64] |= from & to;
        return;
    }
    words[first / 64] |= from;
    for (int32_t w = first / 64 + 1; w < last / 64; w++)
        words[w] = ~(uint64_t)0;
    words[last / 64] |= to;
}

/* Marks the cells that a widened box intersects. Returns 0 if too many words
 * were written. Cells are found by the operations of oj_reach_mask_has(), which
 * are monotone, so every point of the box is in a marked cell. */
static int mark_cells_of_box(void *user, const struct oj_box *of)
{
    struct mask_fill *fill = user;
    struct oj_reach_mask *mask = fill->mask;
    struct oj_box box = oj_box_widened(of, fill->distance);
    int32_t first_column, last_column, first_row, last_row;
    first_column = (int32_t)((box.x0 - mask->frame.x0) * mask->scale);
    last_column = (int32_t)((box.x1 - mask->frame.x0) * mask->scale);
    first_row = (int32_t)((box.y0 - mask->frame.y0) * mask->scale);
    last_row = (int32_t)((box.y1 - mask->frame.y0) * mask->scale);
    fill->words_left -= (int64_t)(last_row - first_row + 1) *
                        (last_column / 64 - first_column / 64 + 1);
    if (fill->words_left < 0)
        return 0;
    for (int32_t row = first_row; row <= last_row; row++)
        set_bit_range(mask->bit + (int64_t)row * mask->row_words, first_column,
                      last_column);
    return 1;
}

static int are_few_cells_marked(const struct oj_reach_mask *mask)
{
    int64_t n_words = (int64_t)mask->ny * mask->row_words, n = 0;
    for (int64_t i = 0; i < n_words; i++)
        n += __builtin_popcountll(mask->bit[i]);
    return n < (int64_t)mask->nx * mask->ny / 2;
}

/* Chooses the size of the cells: at least half of `reach`, so that the widened
 * box of a short segment intersects only a few cells. */
static void choose_cell_size(struct oj_reach_mask *mask, double reach)
{
    double width = mask->frame.x1 - mask->frame.x0;
    double height = mask->frame.y1 - mask->frame.y0;
    double size = oj_larger(sqrt(width * height / MOST_CELLS), 0.5 * reach);
    /* Each row is padded to a whole number of words, so the numbers of columns
     * and of rows are bounded, too. */
    size = oj_larger(size, oj_larger(width, 64.0 * height) / MOST_CELLS);
    mask->scale = 1.0 / size;
    mask->nx = (int32_t)(width * mask->scale) + 1;
    mask->ny = (int32_t)(height * mask->scale) + 1;
    mask->row_words = mask->nx / 64 + 1;
}

/* Marks the cells within the distance. Leaves mask->bit NULL if marking them is
 * too much work, or if most cells are marked. */
static oj_status mark_cells_within_reach(struct oj_reach_mask *mask,
                                         const struct oj_flat *layer,
                                         double distance, struct oj_error *err)
{
    struct mask_fill fill = {.mask = mask, .distance = distance};
    int is_whole = 1;
    choose_cell_size(mask, distance);
    OJ_NEW_ZEROED(mask->bit, (int64_t)mask->ny * mask->row_words, err);
    fill.words_left = FREE_WORDS + MOST_WORDS_PER_VERTEX * layer->n_vertices;
    for (int64_t f = 0; f < layer->n_features && is_whole; f++)
        is_whole = visit_boxes_of_feature(layer, f, mark_cells_of_box, &fill);
    if (!is_whole || !are_few_cells_marked(mask))
    {
        oj_free(mask->bit);
        mask->bit = NULL;
    }
    return OJ_OK;
}

/* Makes the frame a single cell and marks it. */
static oj_status mark_single_cell(struct oj_reach_mask *mask,
                                  struct oj_error *err)
{
    mask->scale = 0.0;
    mask->nx = mask->ny = mask->row_words = 1;
    OJ_NEW(mask->bit, 1, err);
    mask->bit[0] = 1;
    return OJ_OK;
}

oj_status oj_reach_mask_make(struct oj_reach_mask *mask,
                             const struct oj_flat *layer, double distance,
                             struct oj_error *err)
{
    struct oj_box all = oj_box_empty();
    memset(mask, 0, sizeof *mask);
    for (int64_t f = 0; f < layer->n_features; f++)
        visit_boxes_of_feature(layer, f, add_box_to_frame, &all);
    if (oj_box_is_empty(&all))
        return OJ_OK;
    mask->frame = oj_box_widened(&all, distance);
    if (!oj_box_is_safe_for_grid(&mask->frame))
        return OJ_OK;
    if (may_leave_most_points_out(layer, distance))
        OJ_TRY(mark_cells_within_reach(mask, layer, distance, err));
    return mask->bit != NULL ? OJ_OK : mark_single_cell(mask, err);
}

/* Returns 1 if a bit from first to last is set. */
static int has_bit_in_range(const uint64_t *words, int32_t first, int32_t last)
{
    uint64_t from = ~(uint64_t)0 << first % 64;
    uint64_t to = ~(uint64_t)0 >> (63 - last % 64);
    uint64_t found = 0;
    if (first / 64 == last / 64)
        return (words[first / 64] & from & to) != 0;
    found = (words[first / 64] & from) | (words[last / 64] & to);
    for (int32_t w = first / 64 + 1; w < last / 64; w++)
        found |= words[w];
    return found != 0;
}

int oj_reach_mask_meets_box(const struct oj_reach_mask *mask,
                            const struct oj_box *box)
{
    const struct oj_box *frame = &mask->frame;
    double x0 = oj_larger(box->x0, frame->x0), x1 = fmin(box->x1, frame->x1);
    double y0 = oj_larger(box->y0, frame->y0), y1 = fmin(box->y1, frame->y1);
    int32_t first, last, last_row;
    if (!(x0 <= x1 && y0 <= y1))
        return 0;
    first = (int32_t)((x0 - frame->x0) * mask->scale);
    last = (int32_t)((x1 - frame->x0) * mask->scale);
    last_row = (int32_t)((y1 - frame->y0) * mask->scale);
    for (int32_t row = (int32_t)((y0 - frame->y0) * mask->scale);
         row <= last_row; row++)
    {
        if (has_bit_in_range(mask->bit + (int64_t)row * mask->row_words, first,
                             last))
            return 1;
    }
    return 0;
}

void oj_reach_mask_free(struct oj_reach_mask *mask)
{
    oj_free(mask->bit);
    memset(mask, 0, sizeof *mask);
}
