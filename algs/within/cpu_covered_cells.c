#include "cpu_covered_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_threads.h"
#include "../base/cpu_lane_loops.h"
#include "../base/oj_radix.h"

#include <math.h>
#include <string.h>

/* Cells: as many as the points pay for; more for each vertex would hold no
 * fewer edges; and what fits into memory. */
#define POINTS_PER_CELL 2.0
#define CELLS_PER_VERTEX 8.0
#define MOST_CELLS (1 << 22)
#define LEAST_CELLS 64.0

/* Of the boxes of all features together. */
#define MOST_COVERED (1 << 26)

/* Fewer points are done with sooner than anything is prepared. */
#define LEAST_POINTS 200000

#define FEATURES_AT_ONCE 256

/* Of all lists together: past this, many features overlap in many ways. */
#define MOST_ENTRIES (INT64_C(1) << 24)

/* A candidate of a cell. */
struct cell_candidate
{
    uint32_t cell;
    int32_t ring; /* or ~ring */
};

/* What one thread has found. Owner; zeroed memory is a valid empty one. */
struct cell_trace
{
    int64_t n_candidates, cap_candidates;
    struct cell_candidate *candidate;

    /* key: the cell from which on, in the order of the cells, the feature value
     * holds all of them, or no longer does; always in pairs. */
    int64_t n_turns, cap_turns;
    struct oj_keyed *turn;

    struct oj_edge_raster raster; /* of one ring */
    struct oj_edge_word *word;    /* its cells */
    int64_t cap_words;
    /* Of one feature: cells inside of an odd number of the rings that have no
     * edges there, and cells with edges. */
    uint64_t *odd, *partial;
    int64_t cap_odd, cap_partial;
};

struct known_cells_build
{
    struct oj_known_cells *known;
    const struct oj_ring_cells *cells;
    double *below;            /* reference points of the frame's rows */
    struct cell_trace *trace; /* [n_threads] */
    int n_threads;
    int knows_inside;
    const int *cancel;
};

/* --- the frame ------------------------------------------------------------ */

/* The box of all features; the sum of the areas of their boxes. */
static struct oj_box measure_layer(const struct oj_flat *flat, double *covered)
{
    struct oj_box all = oj_box_empty();
    *covered = 0.0;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        struct oj_box box = oj_box_of_feature(flat, f);
        if (oj_box_is_empty(&box))
            continue;
        oj_box_add_box(&all, &box);
        *covered += (box.x1 - box.x0) * (box.y1 - box.y0);
    }
    return all;
}

/* 0: there would be too few cells to be of use, or none that are safe. */
static int choose_cells(struct oj_known_cells *k, const struct oj_flat *flat,
                        int64_t n_input)
{
    double covered, width, height, size, n = (double)n_input / POINTS_PER_CELL;
    struct oj_edge_frame *f = &k->frame;
    struct oj_box all = measure_layer(flat, &covered);
    width = all.x1 - all.x0;
    height = all.y1 - all.y0;
    if (!oj_box_is_safe(&all) || !(width > OJ_LEAST_SAFE_SIZE) ||
        !(height > OJ_LEAST_SAFE_SIZE))
        return 0;
    n = fmin(n, CELLS_PER_VERTEX * (double)flat->n_vertices);
    n = fmin(n, MOST_CELLS);
    n = fmin(n, MOST_COVERED / (covered / width / height));
    if (!(n >= LEAST_CELLS))
        return 0;
    size = sqrt(width / n) * sqrt(height);
    /* long and narrow: along neither axis too many */
    size = fmax(size, fmax(width, height) / fmin(n / 4.0, OJ_FRAME_MOST - 1));
    /* far from the origin no finer than coordinates can tell */
    f->cell = fmax(size, 1e-12 * oj_box_size(&all));
    f->x0 = all.x0;
    f->y0 = all.y0;
    f->inverse = 1.0 / f->cell;
    f->last_x = oj_frame_index(all.x1, f->x0, f->inverse, OJ_FRAME_MOST);
    f->last_y = oj_frame_index(all.y1, f->y0, f->inverse, OJ_FRAME_MOST);
    k->nx = (int32_t)f->last_x + 1;
    k->ny = (int32_t)f->last_y + 1;
    return (int64_t)k->nx * k->ny <= 2 * (int64_t)MOST_CELLS;
}

/* --- one feature's way through the cells ---------------------------------- */

static oj_status add_candidate(struct cell_trace *t, int64_t cell, int32_t ring,
                               struct oj_error *err)
{
    if (t->n_candidates == t->cap_candidates)
        OJ_ROOM(t->candidate, t->n_candidates, t->n_candidates + 4096,
                t->cap_candidates, err);
    t->candidate[t->n_candidates].cell = (uint32_t)cell;
    t->candidate[t->n_candidates++].ring = ring;
    return OJ_OK;
}

/* Candidates of the cells of a word, of which the first has this number. */
static oj_status add_candidates(struct cell_trace *t, uint64_t cells,
                                int64_t first_cell, int32_t ring,
                                struct oj_error *err)
{
    for (; cells != 0; cells &= cells - 1)
        OJ_TRY(
            add_candidate(t, first_cell + __builtin_ctzll(cells), ring, err));
    return OJ_OK;
}

static oj_status add_turn(struct cell_trace *t, int64_t cell, int64_t feature,
                          struct oj_error *err)
{
    if (t->n_turns == t->cap_turns)
        OJ_ROOM(t->turn, t->n_turns, t->n_turns + 4096, t->cap_turns, err);
    t->turn[t->n_turns].key = (uint64_t)cell;
    t->turn[t->n_turns++].value = feature;
    return OJ_OK;
}

static struct oj_edge_window window_of(const struct known_cells_build *b,
                                       int64_t first, int64_t end)
{
    const struct oj_flat *flat = b->cells->flat;
    struct oj_box box =
        oj_box_of(flat->x + first, flat->y + first, end - first);
    return oj_frame_window(&b->known->frame, box.x0, box.y0, box.x1, box.y1);
}

static int64_t words_of(const struct oj_edge_window *w)
{
    return w->column1 / 64 - w->column0 / 64 + 1;
}

static oj_status draw_ring(const struct known_cells_build *b,
                           struct cell_trace *t,
                           const struct oj_located_ring *ring,
                           const struct oj_edge_window *w, struct oj_error *err)
{
    const struct oj_flat *flat = b->cells->flat;
    struct oj_edge_raster *r = &t->raster;
    int64_t n_rows = w->row1 - w->row0 + 1, n = n_rows * words_of(w);
    OJ_ROOM(t->word, 0, n, t->cap_words, err);
    memset(t->word, 0, (size_t)n * sizeof *t->word);
    r->frame = &b->known->frame;
    r->below = b->below;
    r->has_inside = 1;
    r->word = t->word;
    r->n_words = words_of(w);
    r->first_row = w->row0;
    r->first_column = w->column0 / 64 * 64;
    r->n_runs = 0;
    OJ_TRY(oj_edge_raster_draw(r, flat->x + ring->first_vertex,
                               flat->y + ring->first_vertex, 0,
                               ring->n_vertices, err));
    oj_edge_raster_finish(r, n_rows);
    return OJ_OK;
}

/* From the ring to what is known of the feature, whose window is all. */
static oj_status trace_ring(const struct known_cells_build *b,
                            struct cell_trace *t, int32_t ring,
                            const struct oj_edge_window *all,
                            struct oj_error *err)
{
    const struct oj_located_ring *at = &b->cells->ring[ring];
    const struct oj_edge_word *word;
    struct oj_edge_window w;
    if (at->n_vertices < 1)
        return OJ_OK;
    w = window_of(b, at->first_vertex, at->first_vertex + at->n_vertices);
    OJ_TRY(draw_ring(b, t, at, &w, err));
    word = t->word;
    for (int32_t row = w.row0; row <= w.row1; row++)
    {
        int64_t first = (int64_t)row * b->known->nx;
        int64_t before = (row - all->row0) * words_of(all) - all->column0 / 64;
        for (int32_t i = w.column0 / 64; i <= w.column1 / 64; i++, word++)
        {
            OJ_TRY(add_candidates(t, word->edges, first + 64 * i, ring, err));
            t->partial[before + i] |= word->edges;
            t->odd[before + i] ^= word->inside & ~word->edges;
        }
    }
    return OJ_OK;
}

static oj_status take_row(const struct known_cells_build *b,
                          struct cell_trace *t, int64_t feature, int32_t ring,
                          int32_t row, const struct oj_edge_window *all,
                          struct oj_error *err)
{
    int64_t cell = (int64_t)row * b->known->nx + all->column0 / 64 * 64;
    int64_t n = words_of(all), first = (row - all->row0) * n;
    uint64_t is_held = 0; /* the last cell is */
    for (int64_t i = 0; i < n; i++, cell += 64)
    {
        uint64_t odd = t->odd[first + i], partial = t->partial[first + i];
        uint64_t held = b->knows_inside ? odd & ~partial : 0;
        uint64_t turns = held ^ (held << 1 | is_held);
        for (; turns != 0; turns &= turns - 1)
            OJ_TRY(add_turn(t, cell + __builtin_ctzll(turns), feature, err));
        OJ_TRY(add_candidates(t, odd & partial, cell, ~ring, err));
        is_held = held >> 63;
    }
    return is_held ? add_turn(t, cell, feature, err) : OJ_OK;
}

static oj_status trace_feature(int64_t feature, int thread, void *user,
                               struct oj_error *err)
{
    const struct known_cells_build *b = user;
    const struct oj_flat *flat = b->cells->flat;
    struct cell_trace *t = &b->trace[thread];
    int64_t part = flat->part_offset[feature];
    int64_t end_part = flat->part_offset[feature + 1], n;
    int32_t first = (int32_t)flat->ring_offset[part];
    int32_t end = (int32_t)flat->ring_offset[end_part];
    struct oj_edge_window all;
    OJ_TRY(oj_check_cancel(b->cancel, err));
    if (flat->vertex_offset[first] == flat->vertex_offset[end])
        return OJ_OK;
    all = window_of(b, flat->vertex_offset[first], flat->vertex_offset[end]);
    n = words_of(&all) * (all.row1 - all.row0 + 1);
    OJ_ROOM(t->odd, 0, n, t->cap_odd, err);
    OJ_ROOM(t->partial, 0, n, t->cap_partial, err);
    memset(t->odd, 0, (size_t)n * sizeof *t->odd);
    memset(t->partial, 0, (size_t)n * sizeof *t->partial);
    for (int32_t r = first; r < end; r++)
        OJ_TRY(trace_ring(b, t, r, &all, err));
    for (int32_t row = all.row0; row <= all.row1; row++)
        OJ_TRY(take_row(b, t, feature, first, row, &all, err));
    return OJ_OK;
}

static void free_trace(struct cell_trace *t)
{
    oj_free(t->candidate);
    oj_free(t->turn);
    oj_free(t->raster.run);
    oj_free(t->word);
    oj_free(t->odd);
    oj_free(t->partial);
    memset(t, 0, sizeof *t);
}

/* --- one list for all cells of the same features -------------------------- */

/* The sweep over the cells. */
struct sweep
{
    struct oj_known_cells *known;
    int32_t *now; /* [n_now] the features that hold the cell, ascending */
    int64_t n_now, cap_now;
    uint64_t hash; /* of now */
    int64_t n_lists, cap_offset, cap_feature;
    int32_t *table; /* [mask + 1] lists by hash, -1: free */
    uint64_t mask;
};

/* A hash of one number; those of a list are summed, so that one more or less
 * costs one step. */
static uint64_t hash_feature(int32_t feature)
{
    uint64_t z = (uint64_t)feature + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The feature holds the next cells if it did not before, and the other way
 * round. */
static oj_status turn_feature(struct sweep *s, int32_t feature,
                              struct oj_error *err)
{
    int64_t low = 0, high = s->n_now;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (s->now[middle] < feature)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < s->n_now && s->now[low] == feature)
    {
        s->n_now--;
        memmove(s->now + low, s->now + low + 1,
                (size_t)(s->n_now - low) * sizeof *s->now);
        s->hash -= hash_feature(feature);
        return OJ_OK;
    }
    OJ_ROOM(s->now, s->n_now, s->n_now + 1, s->cap_now, err);
    memmove(s->now + low + 1, s->now + low,
            (size_t)(s->n_now - low) * sizeof *s->now);
    s->now[low] = feature;
    s->n_now++;
    s->hash += hash_feature(feature);
    return OJ_OK;
}

static oj_status add_list(struct sweep *s, struct oj_error *err)
{
    struct oj_known_cells *k = s->known;
    int64_t first = s->n_lists > 0 ? k->offset[s->n_lists] : 0;
    OJ_ROOM(k->offset, s->n_lists > 0 ? s->n_lists + 1 : 0, s->n_lists + 2,
            s->cap_offset, err);
    OJ_ROOM(k->feature, first, first + s->n_now, s->cap_feature, err);
    k->offset[s->n_lists++] = first;
    k->offset[s->n_lists] = first + s->n_now;
    if (s->n_now > 0)
        memcpy(k->feature + first, s->now, (size_t)s->n_now * sizeof *s->now);
    return OJ_OK;
}

/* The list of the features that hold the cell now, made when it is new. */
static oj_status find_list(struct sweep *s, int32_t *out, struct oj_error *err)
{
    const struct oj_known_cells *k = s->known;
    uint64_t i = (s->hash ^ s->hash >> 32) & s->mask;
    for (; s->table[i] >= 0; i = (i + 1) & s->mask)
    {
        int64_t first = k->offset[s->table[i]];
        if (k->offset[s->table[i] + 1] - first == s->n_now &&
            (s->n_now == 0 || memcmp(k->feature + first, s->now,
                                     (size_t)s->n_now * sizeof *s->now) == 0))
        {
            *out = s->table[i];
            return OJ_OK;
        }
    }
    s->table[i] = (int32_t)s->n_lists;
    *out = (int32_t)s->n_lists;
    return add_list(s, err);
}

static oj_status sweep_cells(struct sweep *s, const struct oj_keyed *turn,
                             int64_t n_turns, int *fits, struct oj_error *err)
{
    struct oj_known_cells *k = s->known;
    int64_t n_cells = (int64_t)k->nx * k->ny, cell = 0;
    int32_t list;
    OJ_TRY(find_list(s, &list, err)); /* the empty one */
    for (int64_t i = 0; cell < n_cells;)
    {
        int64_t next = n_cells;
        for (; i < n_turns && (int64_t)turn[i].key <= cell; i++)
            OJ_TRY(turn_feature(s, (int32_t)turn[i].value, err));
        OJ_TRY(find_list(s, &list, err));
        if (k->offset[s->n_lists] > MOST_ENTRIES)
        {
            *fits = 0;
            return OJ_OK;
        }
        if (i < n_turns && (int64_t)turn[i].key < n_cells)
            next = (int64_t)turn[i].key;
        while (cell < next)
            k->cell[cell++].list = list;
    }
    k->cell[n_cells].list = 0;
    *fits = 1;
    return OJ_OK;
}

/* The lists of all cells, from turns in the order of cells; *fits is 0 when
 * they take too much memory. */
static oj_status list_cells(struct oj_known_cells *known,
                            const struct oj_keyed *turn, int64_t n_turns,
                            int *fits, struct oj_error *err)
{
    struct sweep s = {.known = known, .mask = 63};
    oj_status status;
    /* a list begins where features turn, or at the first cell */
    while (s.mask < 2 * (uint64_t)n_turns + 2)
        s.mask = 2 * s.mask + 1;
    OJ_NEW(s.table, (int64_t)s.mask + 1, err);
    memset(s.table, -1, (size_t)(s.mask + 1) * sizeof *s.table);
    status = sweep_cells(&s, turn, n_turns, fits, err);
    known->lists.n = s.n_lists;
    known->lists.offset = known->offset;
    known->lists.feature = known->feature;
    oj_free(s.table);
    oj_free(s.now);
    return status;
}

/* --- all of it ------------------------------------------------------------ */

/* Candidates by cell. */
static oj_status place_candidates(struct known_cells_build *b,
                                  struct oj_error *err)
{
    struct oj_known_cells *k = b->known;
    int64_t n_cells = (int64_t)k->nx * k->ny, total = 0;
    for (int t = 0; t < b->n_threads; t++)
    {
        const struct cell_trace *trace = &b->trace[t];
        for (int64_t i = 0; i < trace->n_candidates; i++)
            k->cell[trace->candidate[i].cell].first++;
    }
    for (int64_t c = 0; c < n_cells + 2; c++)
    {
        int64_t n = k->cell[c].first;
        k->cell[c].first = (uint32_t)total;
        total += n;
    }
    OJ_NEW(k->candidate, total, err);
    for (int t = 0; t < b->n_threads; t++)
    {
        const struct cell_trace *trace = &b->trace[t];
        for (int64_t i = 0; i < trace->n_candidates; i++)
            k->candidate[k->cell[trace->candidate[i].cell].first++] =
                trace->candidate[i].ring;
    }
    /* filling moved every place to the start of the next cell */
    for (int64_t c = n_cells + 1; c > 0; c--)
        k->cell[c].first = k->cell[c - 1].first;
    k->cell[0].first = 0;
    return OJ_OK;
}

static oj_status make_lists(struct known_cells_build *b, int *fits,
                            struct oj_error *err)
{
    struct oj_keyed *turn;
    int64_t n = 0;
    oj_status status;
    for (int t = 0; t < b->n_threads; t++)
        n += b->trace[t].n_turns;
    OJ_NEW(turn, 2 * n, err);
    n = 0;
    for (int t = 0; t < b->n_threads; t++)
    {
        struct cell_trace *trace = &b->trace[t];
        if (trace->n_turns > 0)
            memcpy(turn + n, trace->turn,
                   (size_t)trace->n_turns * sizeof *turn);
        n += trace->n_turns;
        free_trace(trace);
    }
    status =
        list_cells(b->known, oj_radix_sort(turn, turn + n, n), n, fits, err);
    oj_free(turn);
    return status;
}

static oj_status fill_known_cells(struct known_cells_build *b, int *fits,
                                  struct oj_error *err)
{
    struct oj_known_cells *k = b->known;
    int64_t n_features = b->cells->flat->n_features, n_candidates = 0;
    OJ_NEW_ZEROED(k->cell, (int64_t)k->nx * k->ny + 2, err);
    OJ_NEW_ZEROED(b->trace, b->n_threads, err);
    OJ_NEW(b->below, k->ny, err);
    if (!oj_edge_references(&k->frame, b->below))
        return OJ_OK;
    OJ_TRY(oj_parallel_try(b->n_threads, n_features, FEATURES_AT_ONCE,
                           trace_feature, b, err));
    for (int t = 0; t < b->n_threads; t++)
        n_candidates += b->trace[t].n_candidates;
    if (n_candidates > INT32_MAX)
        return OJ_OK;
    OJ_TRY(place_candidates(b, err));
    return make_lists(b, fits, err);
}

oj_status oj_known_cells_build(struct oj_known_cells *known,
                               const struct oj_ring_cells *cells,
                               int64_t n_input, int knows_inside, int n_threads,
                               const int *cancel, struct oj_error *err)
{
    struct known_cells_build b = {.known = known,
                                  .cells = cells,
                                  .n_threads = n_threads,
                                  .knows_inside = knows_inside,
                                  .cancel = cancel};
    int fits = 0;
    oj_status status = OJ_OK;
    memset(known, 0, sizeof *known);
    if (n_input >= LEAST_POINTS && cells->n_rings > 0 &&
        choose_cells(known, cells->flat, n_input))
        status = fill_known_cells(&b, &fits, err);
    for (int t = 0; b.trace != NULL && t < n_threads; t++)
        free_trace(&b.trace[t]);
    oj_free(b.trace);
    oj_free(b.below);
    if (status != OJ_OK || !fits)
        oj_known_cells_free(known);
    return status;
}

/* --- points --------------------------------------------------------------- */

OJ_CLONES void oj_known_cells_find(const struct oj_known_cells *k, int64_t n,
                                   const double *x, const double *y,
                                   uint32_t *cell)
{
    const struct oj_edge_frame f = k->frame;
    int32_t nx = k->nx, ny = k->ny;
    for (int64_t i = 0; i < n; i++)
    {
        double nothing = (x[i] - x[i]) + (y[i] - y[i]);
        int32_t at = oj_frame_row(&f, y[i]) * nx + oj_frame_column(&f, x[i]);
        cell[i] = (uint32_t)(nothing == 0.0 ? at : nx * ny);
    }
}

int64_t oj_known_cells_bytes(const struct oj_known_cells *k)
{
    int64_t n_cells = (int64_t)k->nx * k->ny;
    if (n_cells == 0)
        return 0;
    return n_cells * (int64_t)sizeof *k->cell +
           k->cell[n_cells].first * (int64_t)sizeof *k->candidate +
           k->lists.n * (int64_t)sizeof *k->offset +
           k->offset[k->lists.n] * (int64_t)sizeof *k->feature;
}

void oj_known_cells_free(struct oj_known_cells *k)
{
    oj_free(k->cell);
    oj_free(k->candidate);
    oj_free(k->offset);
    oj_free(k->feature);
    memset(k, 0, sizeof *k);
}
