/* The quadrant method piece by piece, as devices run it, put together on the
 * host: quadrants hold every point once, every pair of boxes that meet is
 * counted once, and the answers are those of the cpu backend, bit for bit.
 * Kind: property, degenerate.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_layers.h"

#include "../../../algs/kernels/oj_quadrant.h"
#include "../../../flatten/base/oj_array.h"
#include "../references.h"
#include "../run_tests.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t seed;
static int64_t n_quadrants_seen, n_pairs_seen, n_matched_seen;

#define NEW(n, array)                                                          \
    do                                                                         \
    {                                                                          \
        (array) = oj_calloc((n) > 0 ? (n) : 1, sizeof *(array));               \
        ck_assert_ptr_nonnull(array);                                          \
    } while (0)

/* --- the join side -------------------------------------------------------- */

struct quadrant_entry
{
    uint64_t cell;
    int32_t feature;
};

struct quadrant_side
{
    int64_t n, n_segments; /* features by rank */
    int32_t *ordinal_of;
    int64_t *first;  /* [n + 1] segment */
    double *segment; /* 4 of each */
    unsigned *flag;  /* [n_segments] */
    struct oj_quadrant_box *box;
    struct oj_quadrant_frame frame;
    double reach;
    int64_t n_entries;
    struct quadrant_entry *entry;
    uint64_t *cell; /* [n_entries] */
};

static void add_segment(struct quadrant_side *s, const struct oj_flat *flat,
                        int64_t a, int64_t b)
{
    double *at = s->segment + 4 * s->n_segments++;
    at[0] = flat->x[a];
    at[1] = flat->y[a];
    at[2] = flat->x[b];
    at[3] = flat->y[b];
}

static void add_part_of(struct quadrant_side *s, const struct oj_flat *flat,
                        int64_t part)
{
    int is_polygon = flat->part_kind[part] == OJ_PART_POLYGON;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        int64_t v = flat->vertex_offset[r];
        int64_t last = flat->vertex_offset[r + 1] - 1;
        if (v == last)
            add_segment(s, flat, v, v);
        for (; v < last; v++)
            add_segment(s, flat, v, v + 1);
    }
    s->flag[s->n_segments - 1] =
        is_polygon ? OJ_QUADRANT_POLYGON_END : OJ_QUADRANT_LINE_END;
}

static void add_feature(struct quadrant_side *s, const struct oj_flat *flat,
                        int64_t f)
{
    if (!oj_flat_is_points(flat))
    {
        for (int64_t p = flat->part_offset[f]; p < flat->part_offset[f + 1];
             p++)
            add_part_of(s, flat, p);
    }
    else if (isfinite(flat->x[f]) && isfinite(flat->y[f]))
        add_segment(s, flat, f, f);
}

static void take_layer(struct quadrant_side *s, const struct oj_flat *flat,
                       const int32_t *rank)
{
    s->n = flat->n_features;
    NEW(s->n, s->ordinal_of);
    NEW(s->n + 1, s->first);
    NEW(4 * (flat->n_vertices + s->n), s->segment);
    NEW(flat->n_vertices + s->n, s->flag);
    NEW(s->n, s->box);
    for (int64_t i = 0; i < s->n; i++)
        s->ordinal_of[rank != NULL ? rank[i] : i] = (int32_t)i;
    for (int64_t f = 0; f < s->n; f++)
    {
        struct oj_quadrant_box box = oj_quadrant_box_empty();
        s->first[f] = s->n_segments;
        add_feature(s, flat, s->ordinal_of[f]);
        for (int64_t i = s->first[f]; i < s->n_segments; i++)
        {
            const double *at = s->segment + 4 * i;
            oj_quadrant_box_add(&box, at[0], at[1]);
            oj_quadrant_box_add(&box, at[2], at[3]);
        }
        s->box[f] = oj_quadrant_box_of_feature(&box);
    }
    s->first[s->n] = s->n_segments;
}

static struct oj_quadrant_box wide_box(const struct quadrant_side *s, int64_t f)
{
    return oj_quadrant_box_around(&s->box[f], s->reach);
}

/* Entries of all features; 0 when there are more than most. */
static int list_entries(struct quadrant_side *s, double most)
{
    double n = 0.0;
    for (int pass = 0; pass < 2; pass++)
    {
        s->n_entries = 0;
        for (int64_t f = 0; f < s->n; f++)
        {
            struct oj_quadrant_box box;
            struct oj_quadrant_cells c;
            if (oj_quadrant_box_is_empty(&s->box[f]))
                continue;
            box = wide_box(s, f);
            c = oj_quadrant_cells_of(&s->frame, &box);
            n += oj_quadrant_n_cells(&c);
            for (uint32_t row = c.row0; pass && row <= c.row1; row++)
            {
                for (uint32_t column = c.column0; column <= c.column1; column++)
                {
                    struct quadrant_entry e = {oj_quadrant_cell(row, column),
                                               (int32_t)f};
                    s->entry[s->n_entries++] = e;
                }
            }
        }
        if (pass == 0 && n > most)
            return 0;
        if (pass == 0)
            NEW((int64_t)n, s->entry);
    }
    return 1;
}

static int compare_entries(const void *a, const void *b)
{
    const struct quadrant_entry *u = a, *v = b;
    if (u->cell != v->cell)
        return u->cell < v->cell ? -1 : 1;
    return (u->feature > v->feature) - (u->feature < v->feature);
}

/* Cells of some size: small or large ones, or one for all. */
static void lay_grid(struct quadrant_side *s, double reach)
{
    struct oj_quadrant_box all = oj_quadrant_box_empty();
    double extent;
    s->reach = reach;
    for (int64_t f = 0; f < s->n; f++)
    {
        if (oj_quadrant_box_is_empty(&s->box[f]))
            continue;
        oj_quadrant_box_add(&all, s->box[f].x0, s->box[f].y0);
        oj_quadrant_box_add(&all, s->box[f].x1, s->box[f].y1);
    }
    all = oj_quadrant_box_around(&all, reach);
    extent = fmax(all.x1 - all.x0, all.y1 - all.y0);
    s->frame.x0 = all.x0;
    s->frame.y0 = all.y0;
    s->frame.size = one_in(6) || !(extent > 0.0) || !(extent < INFINITY)
                        ? (double)INFINITY
                        : ldexp(extent, -pick(14));
    while (!list_entries(s, 20.0 * (double)s->n + 2000.0))
        s->frame.size *= 2.0;
    qsort(s->entry, (size_t)s->n_entries, sizeof *s->entry, compare_entries);
    NEW(s->n_entries, s->cell);
    for (int64_t i = 0; i < s->n_entries; i++)
        s->cell[i] = s->entry[i].cell;
}

static void free_side(struct quadrant_side *s)
{
    oj_free(s->ordinal_of);
    oj_free(s->first);
    oj_free(s->segment);
    oj_free(s->flag);
    oj_free(s->box);
    oj_free(s->entry);
    oj_free(s->cell);
}

/* --- points --------------------------------------------------------------- */

struct placed
{
    uint64_t code;
    int64_t row;
};

struct grouped
{
    int64_t n; /* that are there */
    struct placed *placed;
    uint64_t *code;
    uint8_t *begins; /* [n] 1: a quadrant begins */
    int64_t size;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *u = a, *v = b;
    if (u->code != v->code)
        return u->code < v->code ? -1 : 1;
    return (u->row > v->row) - (u->row < v->row);
}

static void split(struct grouped *g, int64_t first, int64_t end, int low_bits)
{
    while (first < end)
    {
        int64_t stop = oj_quadrant_square_end(g->code, first, end, low_bits);
        if (stop - first > g->size && low_bits > 0)
            split(g, first, stop, low_bits - 2);
        else
        {
            for (int64_t p = first; p < stop; p += g->size)
                g->begins[p] = 1;
        }
        first = stop;
    }
}

static void group(struct grouped *g, const struct oj_flat *input, int64_t size)
{
    struct oj_quadrant_box frame = oj_quadrant_box_empty();
    int64_t n = input->n_features;
    g->size = size;
    NEW(n, g->placed);
    NEW(n, g->code);
    NEW(n, g->begins);
    for (int64_t i = 0; i < n; i++)
    {
        oj_quadrant_box_add(&frame, input->x[i], input->y[i]);
        g->n += !isnan(input->x[i]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        g->placed[i].code = oj_quadrant_code(input->x[i], input->y[i], &frame);
        g->placed[i].row = i;
    }
    qsort(g->placed, (size_t)n, sizeof *g->placed, compare_placed);
    for (int64_t i = 0; i < n; i++)
        g->code[i] = g->placed[i].code;
    if (g->n > 0)
        g->begins[0] = 1;
    if (g->n > g->size)
        split(g, 0, g->n, OJ_QUADRANT_CODE_BITS - 2);
}

static void free_grouped(struct grouped *g)
{
    oj_free(g->placed);
    oj_free(g->code);
    oj_free(g->begins);
}

/* --- together ------------------------------------------------------------- */

/* Features whose boxes meet the window, each once: 1 in found. */
static void find_pairs(const struct quadrant_side *s,
                       const struct oj_quadrant_box *window, uint8_t *found)
{
    struct oj_quadrant_cells cells = oj_quadrant_cells_of(&s->frame, window);
    uint32_t row = cells.row0;
    memset(found, 0, (size_t)s->n);
    while (row <= cells.row1)
    {
        int64_t first, end;
        row = oj_quadrant_run(s->cell, s->n_entries, row, &cells, &first, &end);
        for (int64_t i = first; i < end; i++)
        {
            int32_t f = s->entry[i].feature;
            struct oj_quadrant_box box = wide_box(s, f);
            struct oj_quadrant_cells of_box =
                oj_quadrant_cells_of(&s->frame, &box);
            if (!oj_quadrant_boxes_meet(&box, window) ||
                !oj_quadrant_counts_in(s->cell[i], &cells, &of_box))
                continue;
            expect(!found[f], "seed %llu: feature %d is found twice",
                   (unsigned long long)seed, (int)f);
            found[f] = 1;
            n_pairs_seen++;
        }
    }
    for (int64_t f = 0; f < s->n; f++)
    {
        struct oj_quadrant_box box;
        if (oj_quadrant_box_is_empty(&s->box[f]))
            continue;
        box = wide_box(s, f);
        expect(found[f] == oj_quadrant_boxes_meet(&box, window),
               "seed %llu: feature %d is found or not",
               (unsigned long long)seed, (int)f);
    }
}

static struct oj_quadrant_best refine(const struct quadrant_side *s, double x,
                                      double y, const uint8_t *found,
                                      int interior)
{
    struct oj_quadrant_best best = {INFINITY, INT32_MAX};
    struct oj_quadrant_box at = {x, y, x, y};
    struct oj_quadrant_box window = oj_quadrant_box_around(&at, s->reach);
    int backwards = pick(2);
    for (int64_t i = 0; i < s->n; i++)
    {
        int64_t f = backwards ? s->n - 1 - i : i;
        struct oj_quadrant_state state;
        if (!found[f] || !oj_quadrant_boxes_meet(&window, &s->box[f]))
            continue;
        oj_quadrant_start(&state);
        for (int64_t e = s->first[f]; e < s->first[f + 1]; e++)
        {
            const double *v = s->segment + 4 * e;
            oj_quadrant_step(&state, x, y, v[0], v[1], v[2], v[3], interior,
                             interior ? s->flag[e] : 0);
        }
        oj_quadrant_take(&best, oj_quadrant_distance(&state), (int32_t)f,
                         s->reach);
    }
    return best;
}

static void check_point(const struct quadrant_side *s,
                        const struct oj_matches *truth, int64_t row,
                        const struct oj_quadrant_best *best)
{
    int32_t ours = best->rank != INT32_MAX ? s->ordinal_of[best->rank] : -1;
    double distance = ours >= 0 ? best->distance : (double)NAN;
    expect(ours == truth->join_row[row] &&
               (ours < 0 || bits_of(distance) == bits_of(truth->measure[row])),
           "seed %llu: row %lld: feature %d at %a, cpu %d at %a",
           (unsigned long long)seed, (long long)row, (int)ours, distance,
           (int)truth->join_row[row], truth->measure[row]);
    n_matched_seen += ours >= 0;
}

static void check_quadrants(const struct quadrant_side *s,
                            const struct grouped *g,
                            const struct oj_flat *input, int interior,
                            const struct oj_matches *truth)
{
    uint8_t *found;
    int64_t n_seen = 0;
    NEW(s->n, found);
    for (int64_t first = 0, end; first < g->n; first = end)
    {
        struct oj_quadrant_box window = oj_quadrant_box_empty();
        expect(g->begins[first], "seed %llu: no quadrant begins",
               (unsigned long long)seed);
        for (end = first; end < g->n && (end == first || !g->begins[end]);
             end++)
        {
            int64_t row = g->placed[end].row;
            oj_quadrant_box_add(&window, input->x[row], input->y[row]);
        }
        ck_assert_int_le(end - first, g->size);
        window = oj_quadrant_box_around(&window, 0.0);
        find_pairs(s, &window, found);
        for (int64_t p = first; p < end; p++, n_seen++)
        {
            int64_t row = g->placed[p].row;
            struct oj_quadrant_best best =
                refine(s, input->x[row], input->y[row], found, interior);
            check_point(s, truth, row, &best);
        }
        n_quadrants_seen++;
    }
    ck_assert_int_eq(n_seen, g->n);
    oj_free(found);
}

static void try_layers(const struct oj_flat *join, const struct oj_flat *input,
                       double reach, int interior)
{
    const struct oj_options options = {.n_threads = 1};
    struct oj_relation relation = oj_relation_default();
    struct oj_matches truth = {0};
    struct grouped grouped = {0};
    struct quadrant_side side = {0};
    struct oj_join *opened;
    relation.max_distance = reach;
    relation.distance_to = interior ? OJ_TO_INTERIOR : OJ_TO_BOUNDARY;
    must(oj_join_open(join, &relation, "cpu", &options, &opened, &error));
    must(oj_join_batch(opened, input, &truth, &error));
    take_layer(&side, join, oj_join_tie_rank(opened));
    lay_grid(&side, reach);
    group(&grouped, input, 1 + pick(one_in(2) ? 8 : 300));
    check_quadrants(&side, &grouped, input, interior, &truth);
    free_side(&side);
    free_grouped(&grouped);
    oj_join_close(opened);
    oj_matches_free(&truth);
}

TEST(random_sides)
{
    static const double reaches[] = {0.0, 0.5, 1.0, 3.0, 50.0, 1e9};
    int64_t n_rounds = rounds(100);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct scene scene;
        struct oj_flat_buf join = {0}, input = {0};
        struct oj_flat join_view, input_view;
        int64_t *fid;
        random_state = seed;
        scene = pick_scene();
        add_join_features(&join, &scene, pick(one_in(5) ? 300 : 40),
                          1 + (unsigned)pick(7), 1);
        join_view = oj_flat_buf_view(&join);
        add_input_points(&input, &scene, &join_view, pick(600), 0);
        input_view = oj_flat_buf_view(&input);
        join_view.fid = fid = pick_fids(join_view.n_features);
        if (oj_flat_is_points(&input_view))
            try_layers(&join_view, &input_view, scene.scale * reaches[pick(6)],
                       pick(2));
        oj_free(fid);
        oj_flat_buf_free(&join);
        oj_flat_buf_free(&input);
    }
    ck_assert_int_gt(n_matched_seen, 0);
    printf("%lld quadrants, %lld pairs, %lld points matched\n",
           (long long)n_quadrants_seen, (long long)n_pairs_seen,
           (long long)n_matched_seen);
}

int main(void)
{
    tests_open("quadrants");
    return tests_run();
}
