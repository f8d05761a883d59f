/* Engine for pairs of points within a distance. The join side is in cells
 * (cpu_near_grid.h); the input points are visited in an order that keeps
 * neighbours together.
 *
 * An answer whose lists are in the order of the rows (struct oj_matches) takes
 * two visits of the input points: one counts the pairs of each row, the other
 * writes them at the resulting offsets. An answer of scattered lists takes one
 * visit, in which every thread writes to blocks of its own. The number of its
 * entries is estimated from a sample of points; if the estimate was too low,
 * the join is made again by two visits.
 *
 * If pairs have conditions besides distance and FIDs, one visit tests them and
 * collects the pairs that pass, which are usually few. Sizes and bitmaps of
 * texts are stored in the order of the cells, too, and tested before distances
 * (for shops of similar names within 200 m this halves the time).
 *
 * If the first pair of a row is enough, one visit searches it. It skips parts
 * of the hood whose ids are all above that of the pair found, so even a hood of
 * very many points costs few tests.
 *
 * If the spans of a pair must have an instant in common, the points of a cell
 * are sorted by the begin of their span, so those that can meet the span of a
 * row are consecutive. The rows of a cell are visited in the order in which
 * their spans begin, so the search for the consecutive points of the next row
 * starts at those of the row before. With a window of half an hour on reports
 * of a month, this compares one point in some hundred. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../../flatten/base/oj_target_clones.h"
#include "../../foundations/base/cpu_morton_order.h"
#include "../../foundations/base/cpu_token_bitmaps.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../foundations/kernels/oj_square_limit.h"
#include "../../foundations/relation/oj_index.h"
#include "../../pairs/selection/oj_answer_ranking.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/selection/oj_sorted_fids.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "cpu_near_grid.h"
#include "cpu_scattered_list_offsets.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Batches with fewer points to visit than this get no scattered lists. */
#define SCATTER_FROM 65536

#define POINTS_PER_TASK 4096
#define CELLS_PER_TASK 1024

/* Number of points that a thread tests between two polls of the cancel flag. */
#define POINTS_PER_POLL (1 << 22)

/* The span of a point is prefetched while the point this many places before it
 * is searched. */
#define PREFETCH_AHEAD 12

/* Number of points that find_first_at_least() passes one by one before it
 * doubles its steps. The runs of the next row usually begin and end a few
 * points later. */
#define SINGLE_STEPS 8

/* Number of squared distances that are collected before their roots are
 * computed; they fit the first-level cache. */
#define SQUARES_AT_ONCE 2048

/* VISIT_ESTIMATE counts the pairs of every ESTIMATE_EVERY-th task. */
#define ESTIMATE_EVERY 32

/* Number of entries that a thread reserves at a time for scattered lists. */
#define BLOCK_ENTRIES 65536

/* Number of points in a part of the hood, if the first pair of a row is enough
 * (add_first_near_point()); a multiple of OJ_NEAR_LANES. */
#define POINTS_OF_PART 256

enum near_mark
{
    NO_MARK = 0,
    MARK_FROM,  /* partners have ids >= the mark */
    MARK_TO,    /* partners have ids < the mark */
    MARK_EXCEPT /* partners have other ids than the mark */
};

/* Limit of each row on the ids of its partners (ids: see oj_near_grid.id).
 * Owner of mark; zeroed memory is valid. */
struct near_marks
{
    enum near_mark kind;
    int32_t *mark; /* [rows]; NULL if the input is the join side with equal
                      FIDs: the mark then follows from the id of the row */
};

struct near_points_worker
{
    struct oj_near_hood hood;
    int32_t *id; /* ids of the partners of a point */
    double *d2;
    uint64_t *near; /* bitmap: which points of a run of cells may have similar
                       texts */
    int32_t *least_id; /* least id of each POINTS_OF_PART points of the hood;
                          valid if cell_of_least is the hood's cell */
    const uint32_t *cell_of_least;
    int64_t cap_id, cap_d2, cap_near, cap_least;
    struct oj_tie_rank_sorter order;
    int64_t block_at, block_end; /* entries block_at .. block_end - 1 of the
                                    worker's own block are unused */
    int64_t squares_from;        /* entries from here to block_at still hold
                                    squared distances */
    int64_t n_pairs, n_matched, n_seen, n_since_poll;
    int64_t n_pairs_counted; /* part of n_pairs that the pair budget of the
                                batch already contains */

    /* Points whose spans can meet the span of the row searched last: in cell i
     * of the 3 x 3 cells around this row, the points from run[i] on, before
     * run_end[i]. */
    const uint32_t *cell_of_runs; /* cell of the last row; NULL if no runs are
                                     stored */
    int64_t begin_of_runs;        /* begin of the last row's span */
    int64_t until_of_runs;        /* end of the last row's span */
    int64_t run_end[9];
    int64_t run[9];
    struct oj_keyed *key; /* [2 n] sort keys of the n points of a bucket, and
                             scratch */
    struct oj_ordered_point *sorted;
    int64_t cap_key, cap_sorted;
};

/* Purpose of a visit of the input points. */
enum near_visit
{
    VISIT_ESTIMATE, /* counts the pairs of a sample of points */
    VISIT_COUNT,    /* counts the pairs of each row */
    VISIT_FILL,     /* writes the pairs at the offsets that follow from the
                       counts */
    VISIT_SCATTER,  /* writes scattered lists */
    VISIT_ASK       /* collects the pairs that pass the filter, or only the
                       first of each row */
};

struct close_points_index
{
    struct oj_relation relation;
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    const struct oj_near_kernel *kernel;
    struct oj_near_grid grid;
    struct oj_reach_mask reach; /* excludes input points that are too far from
                                   all join points */
    int32_t *feature_of; /* [features] feature of each tie rank; NULL without
                            tie ranks, when ids are ordinals */
    struct oj_sorted_fids fids;
    uint64_t *word; /* [2][grid.n] the two words of the token bitmaps, in the
                       order of the grid; NULL if there is no condition on
                       texts */
    uint32_t *class;
    int has_long_texts;
    oj_token_planes_near *near;
    int span;       /* index of the condition on spans by which the points of a
                       cell are sorted; -1 if they are not sorted */
    int64_t *begin; /* [grid.n] begins of the spans, ascending within a cell */
    int64_t *end;   /* [grid.n] for each point, the latest end of a span of its
                       cell up to this point; if spans are instants, this is the
                       array `begin` */
    struct oj_index *general; /* index of the engine for all distances, used if
                                 the grid is too uneven; otherwise NULL */

    /* Memory of batches, reused from batch to batch. */
    struct near_points_worker *worker; /* [n_threads] */
    struct oj_order order;
    struct oj_scattered_offsets offsets;
    struct oj_answers *answers;    /* [n_threads] the pairs that VISIT_ASK
                                      finds */
    struct oj_index *general_copy; /* copy of general that joins the batches */
};

/* State of the current batch. */
struct near_points_batch
{
    struct close_points_index *self;
    const struct oj_flat *input;
    struct oj_matches *out;
    struct oj_pair_filter filter;
    struct near_marks marks;
    int is_join_side; /* 1: the input is the join side; its points are visited
                         in grid order */
    int asks_filter;  /* 1: each pair is tested by the filter */
    /* Input points of a cell are sorted by the upper begin_bits bits of span
     * begin - first_begin, where first_begin is the least begin. The
     * begin_shift bits below do not fit into the sort key. Spans without a
     * begin count as 0. */
    int64_t first_begin;
    int begin_bits, begin_shift;
    enum near_visit visit;
    struct oj_near_query query; /* the part of the query that all points
                                   share */
    struct oj_pair_budget budget;
    atomic_llong n_taken; /* number of entries in the blocks that workers have
                             reserved so far */
    int64_t n_entries;    /* number of entries that are allocated */
    atomic_int
        needs_two_visits; /* 1: the allocated entries were too few, or scattered
                    lists were not tried: the join takes two visits */
};

static int64_t count_points_to_visit(const struct near_points_batch *b)
{
    return b->is_join_side ? b->self->grid.n : b->self->order.n_points;
}

/* --- conditions on FIDs ---------------------------------------------------
 *
 * If the FIDs of the join side are distinct, its ids are in the order of FIDs.
 * Then "FID of the input < FID of the partner" is a lower limit of the
 * partner's id, found once for each row. Likewise > gives an upper limit, and
 * "another FID" an id to exclude. */

static int are_fids_equal(const int64_t *a, const int64_t *b, int64_t n)
{
    return a == b || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Returns 1 if pairs have conditions besides distance, ids and spans. */
static int has_conditions_besides_spans(const struct oj_pair_filter *filter)
{
    const struct oj_relation *relation = filter->relation;
    return relation->exclude_same_geometry || filter->input->on_class != NULL ||
           filter->input->exclude_class != NULL ||
           oj_relation_compares_attributes(relation);
}

/* Sets out to the id limits of all rows, which the caller frees. is_join_side
 * is 1 if both sides have equal points, row by row. Sets *asks_filter to 1 if
 * each pair must also be tested by the filter. */
static oj_status make_id_limits_per_row(const struct oj_pair_filter *filter,
                                        const struct oj_sorted_fids *fids,
                                        int is_join_side,
                                        struct near_marks *out,
                                        int *asks_filter, struct oj_error *err)
{
    const struct oj_relation *relation = filter->relation;
    const struct oj_flat *input = filter->input;
    int64_t n = input->n_features, at = -1;
    int asks_fids = relation->exclude_self || relation->unordered_pairs != 0;
    memset(out, 0, sizeof *out);
    *asks_filter = filter->is_needed;
    if (!asks_fids || fids->n == 0)
        return OJ_OK;
    *asks_filter =
        relation->n_spans > 0 || has_conditions_besides_spans(filter);
    out->kind = relation->unordered_pairs > 0   ? MARK_FROM
                : relation->unordered_pairs < 0 ? MARK_TO
                                                : MARK_EXCEPT;
    if (is_join_side && are_fids_equal(input->fid, filter->join_side->fid, n))
        return OJ_OK;
    OJ_NEW(out->mark, n, err);
    for (int64_t row = 0; row < n; row++)
    {
        int is_there;
        at = oj_sorted_fids_count_below(fids, input->fid[row], at + 1);
        is_there = at < fids->n && fids->fid[at] == input->fid[row];
        if (out->kind == MARK_FROM)
            out->mark[row] = (int32_t)(at + is_there);
        else if (out->kind == MARK_TO)
            out->mark[row] = (int32_t)at;
        else
            out->mark[row] = is_there ? (int32_t)at : -1;
    }
    return OJ_OK;
}

/* Adds the row's id limit to a query. If the input is the join side, id is that
 * of the row's own point; otherwise it is not used. */
static void apply_id_limit_to_query(const struct near_marks *marks, int64_t row,
                                    int32_t id, struct oj_near_query *query)
{
    int32_t mark;
    if (marks->kind == NO_MARK)
        return;
    mark = marks->mark != NULL        ? marks->mark[row]
           : marks->kind == MARK_FROM ? id + 1
                                      : id;
    if (marks->kind == MARK_FROM)
        query->from = mark;
    else if (marks->kind == MARK_TO)
        query->end = mark;
    else
        query->except = mark;
}

/* --- one point ------------------------------------------------------------ */

static oj_status reserve_found_point_arrays(struct near_points_worker *worker,
                                            struct oj_error *err)
{
    int64_t n = worker->hood.n + OJ_NEAR_LANES; /* collect() writes up to
                                                   OJ_NEAR_LANES entries beyond
                                                   the last */
    OJ_ROOM(worker->id, 0, n, worker->cap_id, err);
    return oj_reserve(&worker->d2, 0, n, &worker->cap_d2, sizeof(double), err);
}

static int32_t feature_of_point_id(const struct close_points_index *self,
                                   int32_t id)
{
    return self->feature_of != NULL ? self->feature_of[id] : id;
}

/* Adds n_seen to the points tested, and checks the cancel flag and the pair
 * limit each time that POINTS_PER_POLL more points have been tested. */
static oj_status check_cancel_and_pair_limit(struct near_points_batch *b,
                                             struct near_points_worker *worker,
                                             int64_t n_seen,
                                             struct oj_error *err)
{
    worker->n_seen += n_seen;
    worker->n_since_poll += n_seen + OJ_NEAR_LANES;
    if (worker->n_since_poll < POINTS_PER_POLL)
        return OJ_OK;
    worker->n_since_poll = 0;
    OJ_TRY(oj_check_cancel(b->self->options.cancel, err));
    return oj_pair_budget_count(&b->budget, worker->n_pairs,
                                &worker->n_pairs_counted, err);
}

static void count_near_points_of_row(const struct near_points_batch *b,
                                     struct near_points_worker *worker,
                                     const struct oj_near_query *q, int64_t row)
{
    int64_t n = b->self->kernel->count(&worker->hood, q);
    if (b->visit == VISIT_COUNT)
        b->out->offset[row + 1] = n;
    worker->n_pairs += n;
}

static oj_status
add_pair_if_filter_passes(const struct near_points_batch *b,
                          const struct near_points_worker *worker, int64_t row,
                          int32_t id, double d2, struct oj_error *err)
{
    struct oj_answers *answers = &b->self->answers[worker - b->self->worker];
    int32_t feature = feature_of_point_id(b->self, id);
    if (!oj_pair_filter_accepts(&b->filter, row, feature))
        return OJ_OK;
    OJ_TRY(oj_answers_reserve(answers, 1, err));
    oj_answers_append_pair(answers, (int32_t)row, feature, d2);
    return OJ_OK;
}

static oj_status add_near_points_that_pass_filter(
    const struct near_points_batch *b, struct near_points_worker *worker,
    const struct oj_near_query *q, int64_t row, struct oj_error *err)
{
    int64_t n;
    OJ_TRY(reserve_found_point_arrays(worker, err));
    n = b->self->kernel->collect(&worker->hood, q, worker->id, worker->d2);
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(add_pair_if_filter_passes(b, worker, row, worker->id[i],
                                         worker->d2[i], err));
    return OJ_OK;
}

/* Sets least_id to the least id of each part of the hood, unless it is already
 * that of the hood's cell. */
static oj_status find_least_ids_of_parts(struct near_points_worker *worker,
                                         struct oj_error *err)
{
    const struct oj_near_hood *hood = &worker->hood;
    const int64_t n_parts = (hood->n + POINTS_OF_PART - 1) / POINTS_OF_PART;
    if (hood->cell != NULL && hood->cell == worker->cell_of_least)
        return OJ_OK;
    OJ_ROOM(worker->least_id, 0, n_parts + 1, worker->cap_least, err);
    for (int64_t i = 0; i < n_parts; i++)
        worker->least_id[i] = INT32_MAX;
    for (int64_t i = 0; i < hood->n; i++)
    {
        int32_t *least = &worker->least_id[i / POINTS_OF_PART];
        *least = hood->id[i] < *least ? hood->id[i] : *least;
    }
    worker->cell_of_least = hood->cell;
    return OJ_OK;
}

/* Adds the first pair of a row in tie order, the one with the lowest id, to the
 * answers of the worker, if the row has pairs. */
static oj_status add_first_near_point(const struct near_points_batch *b,
                                      struct near_points_worker *worker,
                                      const struct oj_near_query *query,
                                      int64_t row, struct oj_error *err)
{
    struct oj_answers *answers = &b->self->answers[worker - b->self->worker];
    const struct oj_near_hood *hood = &worker->hood;
    struct oj_near_query q = *query; /* q.end is lowered to the least id
                                        found */
    int32_t feature = -1;
    double d2 = 0.0;
    OJ_TRY(reserve_found_point_arrays(worker, err));
    OJ_TRY(find_least_ids_of_parts(worker, err));
    for (int64_t at = 0; at < hood->n; at += POINTS_OF_PART)
    {
        struct oj_near_hood part = {.n = hood->n - at,
                                    .x = hood->x + at,
                                    .y = hood->y + at,
                                    .id = hood->id + at};
        int64_t n;
        if (worker->least_id[at / POINTS_OF_PART] >= q.end)
            continue;
        part.n = part.n < POINTS_OF_PART ? part.n : POINTS_OF_PART;
        n = b->self->kernel->collect(&part, &q, worker->id, worker->d2);
        for (int64_t i = 0; i < n; i++)
        {
            int32_t found = feature_of_point_id(b->self, worker->id[i]);
            if (worker->id[i] >= q.end ||
                !oj_pair_filter_accepts(&b->filter, row, found))
                continue;
            feature = found;
            d2 = worker->d2[i];
            q.end = worker->id[i];
        }
    }
    if (feature < 0)
        return OJ_OK;
    OJ_TRY(oj_answers_reserve(answers, 1, err));
    oj_answers_append_pair(answers, (int32_t)row, feature, d2);
    return OJ_OK;
}

/* Compares a row with n consecutive points of the grid. Adds the pairs of
 * points that are near, may have similar texts, and pass the filter. */
static oj_status add_near_points_with_similar_text(
    const struct near_points_batch *b, struct near_points_worker *worker,
    const struct oj_near_query *q, int64_t row, int64_t first, int64_t n,
    struct oj_error *err)
{
    const struct close_points_index *self = b->self;
    const struct oj_near_grid *grid = &self->grid;
    const struct oj_token_sets *texts = b->input->texts;
    const struct oj_token_planes planes = {2, grid->n, self->word, self->class};
    int32_t class = oj_token_count_class(texts->size[row]);
    OJ_ROOM(worker->near, 0, n / OJ_PLANE_BLOCK + 1, worker->cap_near, err);
    self->near(
        &planes, first, n, texts->bits[row].word, b->filter.most_apart[class],
        self->has_long_texts ? INT32_MAX : b->filter.most_apart_short[class],
        worker->near);
    for (int64_t at = 0; at < n; at += OJ_PLANE_BLOCK)
    {
        uint64_t bits = worker->near[at / OJ_PLANE_BLOCK];
        for (; bits != 0; bits &= bits - 1)
        {
            int64_t i = first + at + __builtin_ctzll(bits);
            double d2;
            if (oj_near_is_partner(q, grid->x[i], grid->y[i], grid->id[i], &d2))
                OJ_TRY(add_pair_if_filter_passes(b, worker, row, grid->id[i],
                                                 d2, err));
        }
    }
    return OJ_OK;
}

static oj_status search_cells_by_similar_text(struct near_points_batch *b,
                                              struct near_points_worker *worker,
                                              const struct oj_near_query *q,
                                              int64_t row, struct oj_error *err)
{
    const struct oj_near_grid *grid = &b->self->grid;
    const uint32_t *cell = oj_near_cell(grid, q->x, q->y);
    int64_t n_seen = 0;
    for (int64_t run = -1; run <= 1; run++)
    {
        int64_t first = oj_near_run_begin(grid, cell, run);
        int64_t n = oj_near_run_end(grid, cell, run) - first;
        n_seen += n;
        if (n > 0)
            OJ_TRY(add_near_points_with_similar_text(b, worker, q, row, first,
                                                     n, err));
    }
    return check_cancel_and_pair_limit(b, worker, n_seen, err);
}

/* Returns the first index in [first, end) whose number is at least `number`;
 * end if there is none. Numbers ascend. Fast if the index is near `first`: a
 * few single steps, then steps that are doubled, then halved. */
static int64_t find_first_at_least(const int64_t *numbers, int64_t first,
                                   int64_t end, int64_t number)
{
    int64_t below, step = 1;
    for (int i = 0; i < SINGLE_STEPS; i++, first++)
    {
        if (first >= end || numbers[first] >= number)
            return first;
    }
    below = first - 1;
    while (first < end && numbers[first] < number)
    {
        below = first;
        first += step;
        step *= 2;
    }
    first = first < end ? first : end;
    while (first - below > 1)
    {
        int64_t middle = below + (first - below) / 2;
        if (numbers[middle] < number)
            below = middle;
        else
            first = middle;
    }
    return first;
}

/* Replaces the points of the worker's hood by those of the 3 x 3 cells around
 * x, y whose spans can meet the row's span. */
static oj_status
fill_hood_with_points_of_span(const struct near_points_batch *b,
                              struct near_points_worker *worker, double x,
                              double y, int64_t row, struct oj_error *err)
{
    const struct close_points_index *self = b->self;
    const struct oj_near_grid *grid = &self->grid;
    const struct oj_spans *spans = &b->input->spans[self->span];
    const uint32_t *cell = oj_near_cell(grid, x, y);
    int64_t from = spans->from[row], until = spans->until[row];
    int goes_on = cell == worker->cell_of_runs && from >= worker->begin_of_runs;
    int end_goes_on;
    oj_near_hood_clear(&worker->hood);
    if (!oj_span_exists(from, until))
        return OJ_OK;
    /* A begin of INT64_MAX marks a feature without a span, which must not be
     * found. */
    until = until < INT64_MAX ? until : INT64_MAX - 1;
    end_goes_on = goes_on && until >= worker->until_of_runs;
    worker->cell_of_runs = cell;
    worker->begin_of_runs = from;
    worker->until_of_runs = until;
    for (int i = 0; i < 9; i++)
    {
        const uint32_t *at = cell + (i / 3 - 1) * grid->n_columns + (i % 3 - 1);
        int64_t end = at[1], last;
        int64_t first = goes_on ? worker->run[i] : at[0];
        first = find_first_at_least(self->end, first, end, from);
        worker->run[i] = last = first;
        if (end_goes_on && worker->run_end[i] > first)
            last = worker->run_end[i];
        last = find_first_at_least(self->begin, last, end, until + 1);
        worker->run_end[i] = last;
        if (first < last)
            OJ_TRY(oj_near_hood_add_points(&worker->hood, grid, first,
                                           last - first, err));
    }
    oj_near_hood_pad_with_nan(&worker->hood);
    return OJ_OK;
}

static oj_status write_sorted_pairs_of_row(const struct near_points_batch *b,
                                           struct near_points_worker *worker,
                                           const struct oj_near_query *q,
                                           int64_t row, struct oj_error *err)
{
    const struct close_points_index *self = b->self;
    int32_t *join_row = b->out->join_row + b->out->offset[row];
    int64_t n;
    OJ_TRY(reserve_found_point_arrays(worker, err));
    n = self->kernel->collect(&worker->hood, q, worker->id, worker->d2);
    if (!self->relation.any_order)
        OJ_TRY(oj_tie_rank_sort_pairs(&worker->order, n, NULL, worker->id,
                                      worker->d2, err));
    for (int64_t i = 0; i < n; i++)
        join_row[i] = feature_of_point_id(self, worker->id[i]);
    oj_near_square_roots(n, worker->d2, b->out->measure + b->out->offset[row]);
    return OJ_OK;
}

/* Replaces the squared distances from squares_from to block_at by distances.
 * The caller lets many of them gather, since SIMD vectors are wider than most
 * rows' lists. */
static void convert_squares_to_distances(const struct near_points_batch *b,
                                         struct near_points_worker *worker)
{
    double *measure = b->out->measure + worker->squares_from;
    oj_near_square_roots(worker->block_at - worker->squares_from, measure,
                         measure);
    worker->squares_from = worker->block_at;
}

/* Makes sure that the worker's block has n unused entries, by extending it or
 * by reserving another block. Returns 0 and sets needs_two_visits if the
 * allocated entries are used up. */
static int reserve_entries_in_shared_output(struct near_points_batch *b,
                                            struct near_points_worker *worker,
                                            int64_t n)
{
    long long taken = worker->block_end;
    int64_t size = n > BLOCK_ENTRIES ? n : BLOCK_ENTRIES;
    if (worker->block_at + n <= worker->block_end)
        return 1;
    /* If the worker's block is the last one, it is extended, which leaves no
     * gap. */
    if (!atomic_compare_exchange_strong(&b->n_taken, &taken,
                                        worker->block_end + size))
    {
        if (worker->block_end > 0)
            convert_squares_to_distances(b, worker);
        worker->block_at = worker->block_end = worker->squares_from =
            (int64_t)atomic_fetch_add(&b->n_taken, size);
    }
    worker->block_end += size;
    if (worker->block_end <= b->n_entries)
        return 1;
    worker->block_at = worker->block_end = worker->squares_from = -1;
    atomic_store(&b->needs_two_visits, 1);
    return 0;
}

static void write_pairs_of_row_to_own_block(struct near_points_batch *b,
                                            struct near_points_worker *worker,
                                            const struct oj_near_query *q,
                                            int64_t row)
{
    const struct close_points_index *self = b->self;
    struct oj_matches *out = b->out;
    int64_t n, at;
    if (!reserve_entries_in_shared_output(b, worker,
                                          worker->hood.n + OJ_NEAR_LANES))
        return;
    at = worker->block_at;
    n = self->kernel->collect(&worker->hood, q, out->join_row + at,
                              out->measure + at);
    if (self->feature_of != NULL)
    {
        for (int64_t i = at; i < at + n; i++)
            out->join_row[i] = self->feature_of[out->join_row[i]];
    }
    oj_scattered_offsets_record(&b->self->offsets, (int)(worker - self->worker),
                                row, at, n);
    worker->block_at = at + n;
    if (worker->block_at - worker->squares_from >= SQUARES_AT_ONCE)
        convert_squares_to_distances(b, worker);
    worker->n_pairs += n;
    worker->n_matched += n > 0;
}

static oj_status search_near_points_of_one(struct near_points_batch *b,
                                           struct near_points_worker *worker,
                                           double x, double y, int64_t row,
                                           int32_t id, struct oj_error *err)
{
    struct oj_near_query q = b->query;
    q.x = x;
    q.y = y;
    apply_id_limit_to_query(&b->marks, row, id, &q);
    if (b->visit == VISIT_ASK && b->self->word != NULL)
        return search_cells_by_similar_text(b, worker, &q, row, err);
    if (b->self->span >= 0)
        OJ_TRY(fill_hood_with_points_of_span(b, worker, x, y, row, err));
    else
        OJ_TRY(oj_near_hood_copy_cells_around(&worker->hood, &b->self->grid, x,
                                              y, err));
    OJ_TRY(check_cancel_and_pair_limit(b, worker, worker->hood.n, err));
    if (b->visit == VISIT_FILL)
        return write_sorted_pairs_of_row(b, worker, &q, row, err);
    if (b->visit == VISIT_ASK)
        return b->self->relation.enough_pairs
                   ? add_first_near_point(b, worker, &q, row, err)
                   : add_near_points_that_pass_filter(b, worker, &q, row, err);
    if (b->visit == VISIT_SCATTER)
        write_pairs_of_row_to_own_block(b, worker, &q, row);
    else
        count_near_points_of_row(b, worker, &q, row);
    return OJ_OK;
}

/* --- visits --------------------------------------------------------------- */

static int64_t row_of_visited_point(const struct near_points_batch *b,
                                    int64_t i)
{
    if (b->is_join_side)
        return feature_of_point_id(b->self, b->self->grid.id[i]);
    return b->self->order.point[i].index;
}

/* Prefetches what the search of a later point reads of its row. Rows are
 * visited in spatial order, so each of these arrays would miss the cache. */
OJ_INLINE void prefetch_row_of_later_point(const struct near_points_batch *b,
                                           int64_t i, int64_t end)
{
    const struct oj_spans *spans;
    int64_t row;
    if (b->self->span < 0 || i + PREFETCH_AHEAD >= end)
        return;
    spans = &b->input->spans[b->self->span];
    row = row_of_visited_point(b, i + PREFETCH_AHEAD);
    __builtin_prefetch(&spans->from[row]);
    if (spans->until != spans->from)
        __builtin_prefetch(&spans->until[row]);
    if (b->marks.mark != NULL)
        __builtin_prefetch(&b->marks.mark[row]);
    if (b->visit == VISIT_COUNT || b->visit == VISIT_FILL)
        __builtin_prefetch(&b->out->offset[row]);
}

static oj_status search_near_points_of_task(int64_t task, int thread,
                                            void *user, struct oj_error *err)
{
    struct near_points_batch *b = user;
    const struct close_points_index *self = b->self;
    int64_t first = task * POINTS_PER_TASK *
                    (b->visit == VISIT_ESTIMATE ? ESTIMATE_EVERY : 1);
    int64_t n = count_points_to_visit(b), end = first + POINTS_PER_TASK;
    if (atomic_load(&b->needs_two_visits))
        return OJ_OK;
    end = end < n ? end : n;
    for (int64_t i = first; i < end; i++)
    {
        double x, y;
        prefetch_row_of_later_point(b, i, end);
        x = b->is_join_side ? self->grid.x[i] : self->order.point[i].x;
        y = b->is_join_side ? self->grid.y[i] : self->order.point[i].y;
        OJ_TRY(search_near_points_of_one(
            b, &self->worker[thread], x, y, row_of_visited_point(b, i),
            b->is_join_side ? self->grid.id[i] : 0, err));
    }
    return OJ_OK;
}

static void start_pair_budget(struct near_points_batch *b, int64_t most)
{
    oj_pair_budget_start(&b->budget, most, b->input->n_features,
                         b->self->options.n_threads);
}

/* Visits the points of the batch; VISIT_ESTIMATE visits one task in
 * ESTIMATE_EVERY. Results are in the workers and in b->out. VISIT_SCATTER sets
 * b->needs_two_visits if the allocated entries are too few. */
static oj_status search_near_points_in_parallel(struct near_points_batch *b,
                                                enum near_visit what,
                                                struct oj_error *err)
{
    struct close_points_index *self = b->self;
    int64_t step = POINTS_PER_TASK *
                   (what == VISIT_ESTIMATE ? (int64_t)ESTIMATE_EVERY : 1);
    b->visit = what;
    /* Each visit counts its pairs against the limit, except VISIT_ASK, whose
     * answers count them, and VISIT_FILL, whose pairs are counted already. */
    if (what != VISIT_ASK)
        start_pair_budget(
            b, what == VISIT_FILL ? 0 : self->options.max_batch_pairs);
    for (int t = 0; t < self->options.n_threads; t++)
    {
        struct near_points_worker *worker = &self->worker[t];
        worker->n_pairs = worker->n_pairs_counted = worker->n_matched = 0;
        worker->block_at = worker->block_end = worker->squares_from = -1;
        worker->n_since_poll = POINTS_PER_POLL;
        worker->cell_of_runs = NULL;
    }
    return oj_parallel_try(self->options.n_threads,
                           (count_points_to_visit(b) + step - 1) / step, 1,
                           search_near_points_of_task, b, err);
}

/* --- index ---------------------------------------------------------------- */

static int supports_near_points_join(const struct oj_relation *relation,
                                     const struct oj_flat *join_side,
                                     const struct oj_flat *input)
{
    return oj_relation_is_dwithin(relation) &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->max_distance < INFINITY &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side) &&
           (input == NULL ||
            (oj_flat_is_points(input) && input->max_distance == NULL));
}

static void free_batches(struct oj_index *wrapped)
{
    struct close_points_index *self = (void *)wrapped;
    oj_index_copy_free(&oj_cpu_distance, self->general_copy);
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
    {
        oj_free(self->worker[t].id);
        oj_free(self->worker[t].d2);
        oj_free(self->worker[t].near);
        oj_free(self->worker[t].least_id);
        oj_free(self->worker[t].key);
        oj_free(self->worker[t].sorted);
        oj_tie_rank_sorter_free(&self->worker[t].order);
        oj_near_hood_free(&self->worker[t].hood);
        if (self->answers != NULL)
            oj_answers_free(&self->answers[t]);
    }
    oj_free(self->answers);
    oj_free(self->worker);
    oj_order_free(&self->order);
    oj_scattered_offsets_free(&self->offsets);
}

static void free_near_points_index(struct oj_index *wrapped)
{
    struct close_points_index *self = (void *)wrapped;
    oj_index_free(&oj_cpu_distance, self->general);
    oj_free(self->feature_of);
    oj_sorted_fids_free(&self->fids);
    oj_free(self->word);
    oj_free(self->class);
    if (self->end != self->begin)
        oj_free(self->end);
    oj_free(self->begin);
    oj_near_grid_free(&self->grid);
    oj_reach_mask_free(&self->reach);
}

static void copy_text_bits_in_cell_order(int64_t first, int64_t end, void *user)
{
    const struct close_points_index *self = user;
    const struct oj_token_sets *texts = self->join_side->texts;
    for (int64_t i = first; i < end; i++)
    {
        int32_t feature = feature_of_point_id(self, self->grid.id[i]);
        self->word[i] = texts->bits[feature].word[0];
        self->word[self->grid.n + i] = texts->bits[feature].word[1];
        self->class[i] = (uint32_t)oj_token_count_class(texts->size[feature]);
    }
}

/* Copies the token bitmaps and size classes of the texts of the first condition
 * on texts, in the order of the grid. */
static oj_status make_text_bits_in_cell_order(struct close_points_index *self,
                                              struct oj_error *err)
{
    if (self->relation.n_similar == 0 || self->join_side->n_texts == 0)
        return OJ_OK;
    self->near = oj_token_planes_kernel();
    OJ_NEW(self->word, 2 * self->grid.n, err);
    OJ_NEW(self->class, self->grid.n, err);
    oj_parallel_slices(self->options.n_threads, self->grid.n, POINTS_PER_TASK,
                       copy_text_bits_in_cell_order, self);
    for (int64_t i = 0; i < self->grid.n; i++)
        self->has_long_texts |= self->class[i] == OJ_LONG_TEXT;
    return OJ_OK;
}

/* --- spans in the order of cells ------------------------------------------ */

/* Returns the index of the condition on spans by which the points of a cell are
 * sorted: the first one that requires a common instant. Returns -1 if they are
 * not sorted, because there is none, or because similar texts are compared. */
static int choose_span_to_order_by(const struct oj_relation *relation,
                                   const struct oj_flat *join_side)
{
    int i = 0;
    while (i < relation->n_spans &&
           !oj_span_condition_needs_contact(&relation->spans[i]))
        i++;
    return i < relation->n_spans && i < join_side->n_spans &&
                   relation->n_similar == 0 && join_side->n_features > 0
               ? i
               : -1;
}

static void copy_begins_in_cell_order(int64_t first, int64_t end, void *user)
{
    struct close_points_index *self = user;
    const int64_t *from = self->join_side->spans[self->span].from;
    for (int64_t i = first; i < end; i++)
        self->begin[i] = from[feature_of_point_id(self, self->grid.id[i])];
}

/* Sorts n points of a cell by the begin of their span. key [2 n] and copy [n]
 * are scratch. */
static void sort_cell_by_begin(struct close_points_index *self, int64_t first,
                               int64_t n, struct oj_keyed *key,
                               struct oj_ordered_point *copy)
{
    struct oj_near_grid *grid = &self->grid;
    struct oj_keyed *sorted;
    for (int64_t i = 0; i < n; i++)
    {
        key[i] = (struct oj_keyed){
            (uint64_t)self->begin[first + i] ^ UINT64_C(1) << 63, i};
        copy[i] =
            (struct oj_ordered_point){.x = grid->x[first + i],
                                      .y = grid->y[first + i],
                                      .index = (uint32_t)grid->id[first + i]};
    }
    sorted = oj_radix_sort(key, key + n, n);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_ordered_point *point = &copy[sorted[i].value];
        grid->x[first + i] = point->x;
        grid->y[first + i] = point->y;
        grid->id[first + i] = (int32_t)point->index;
        self->begin[first + i] = (int64_t)(sorted[i].key ^ UINT64_C(1) << 63);
    }
}

/* Sets `end` of each point of a cell to the latest end of a span among the
 * points of the cell up to this one. */
static void set_latest_ends(struct close_points_index *self, int64_t first,
                            int64_t end)
{
    const int64_t *until = self->join_side->spans[self->span].until;
    int64_t last = INT64_MIN;
    for (int64_t i = first; i < end; i++)
    {
        int64_t here = until[feature_of_point_id(self, self->grid.id[i])];
        last = here > last ? here : last;
        self->end[i] = last;
    }
}

static oj_status sort_cells_of_task(int64_t task, int thread, void *user,
                                    struct oj_error *err)
{
    struct close_points_index *self = user;
    const struct oj_near_grid *grid = &self->grid;
    const uint32_t *start = grid->cell_start;
    int64_t first = task * CELLS_PER_TASK, most = 0;
    int64_t end = first + CELLS_PER_TASK, n_cells;
    struct oj_keyed *key;
    struct oj_ordered_point *copy;
    (void)thread;
    n_cells = grid->n_columns * grid->n_rows;
    end = end < n_cells ? end : n_cells;
    for (int64_t c = first; c < end; c++)
        most = start[c + 1] - start[c] > most ? start[c + 1] - start[c] : most;
    OJ_NEW(key, 2 * most, err);
    copy = oj_malloc(most + 1, sizeof *copy);
    for (int64_t c = first; c < end && copy != NULL; c++)
    {
        if (start[c + 1] - start[c] > 1)
            sort_cell_by_begin(self, start[c], start[c + 1] - start[c], key,
                               copy);
        if (self->end != self->begin)
            set_latest_ends(self, start[c], start[c + 1]);
    }
    oj_free(key);
    if (copy == NULL)
        return oj_fail_nomem(err, most, sizeof *copy);
    oj_free(copy);
    return OJ_OK;
}

/* Sorts the points of each cell by the begin of their span. */
static oj_status sort_cells_by_span(struct close_points_index *self,
                                    struct oj_error *err)
{
    const struct oj_near_grid *grid = &self->grid;
    const struct oj_spans *spans = &self->join_side->spans[self->span];
    int n_threads = self->options.n_threads;
    int64_t n_cells = grid->n_columns * grid->n_rows;
    OJ_NEW(self->begin, grid->n, err);
    oj_parallel_slices(n_threads, grid->n, POINTS_PER_TASK,
                       copy_begins_in_cell_order, self);
    self->end = self->begin;
    if (spans->until != spans->from)
    {
        self->end = NULL;
        OJ_NEW(self->end, grid->n, err);
    }
    return oj_parallel_try(n_threads,
                           (n_cells + CELLS_PER_TASK - 1) / CELLS_PER_TASK, 1,
                           sort_cells_of_task, self, err);
}

static oj_status invert_tie_rank(struct close_points_index *self,
                                 struct oj_error *err)
{
    int64_t n = self->join_side->n_features;
    if (self->tie_rank == NULL)
        return OJ_OK;
    OJ_NEW(self->feature_of, n, err);
    for (int64_t f = 0; f < n; f++)
        self->feature_of[self->tie_rank[f]] = (int32_t)f;
    return OJ_OK;
}

static oj_status build_near_points(struct oj_index *wrapped,
                                   const struct oj_index_args *args,
                                   struct oj_stats *stats, struct oj_error *err)
{
    struct close_points_index *self = (void *)wrapped;
    self->relation = args->relation;
    self->options = args->options;
    self->join_side = args->join_side;
    self->tie_rank = args->tie_rank;
    self->kernel = oj_near_kernel();
    self->span = choose_span_to_order_by(&self->relation, self->join_side);
    OJ_TRY(oj_near_grid_build(&self->grid, self->join_side, self->tie_rank,
                              self->relation.max_distance,
                              self->options.n_threads, err));
    if (self->grid.is_uneven)
    {
        oj_near_grid_free(&self->grid);
        return oj_index_make(&oj_cpu_distance, args, &self->general, stats,
                             err);
    }
    OJ_TRY(oj_reach_mask_make(&self->reach, self->join_side,
                              self->relation.max_distance, err));
    OJ_TRY(invert_tie_rank(self, err));
    OJ_TRY(make_text_bits_in_cell_order(self, err));
    if (self->span >= 0)
        OJ_TRY(sort_cells_by_span(self, err));
    OJ_TRY(oj_sorted_fids_make(&self->relation, self->join_side, self->tie_rank,
                               &self->fids, err));
    stats->index_bytes += oj_near_grid_bytes(&self->grid) +
                          (self->begin == NULL        ? 0
                           : self->end == self->begin ? 8 * self->grid.n
                                                      : 16 * self->grid.n);
    return OJ_OK;
}

/* Sets first_begin, begin_bits and begin_shift such that the begins of spans
 * fit into a sort key of 64 bits beside the number of the cell. */
static void choose_begin_bits_of_sort_key(struct near_points_batch *b)
{
    const struct oj_near_grid *grid = &b->self->grid;
    const int64_t *from = b->input->spans[b->self->span].from;
    uint64_t cells = (uint64_t)(grid->n_columns * grid->n_rows), range;
    int64_t last = INT64_MIN;
    int cell_bits = 64 - __builtin_clzll(cells), bits;
    b->first_begin = INT64_MAX;
    for (int64_t row = 0; row < b->input->n_features; row++)
    {
        if (from[row] == INT64_MIN || from[row] == INT64_MAX)
            continue;
        b->first_begin =
            from[row] < b->first_begin ? from[row] : b->first_begin;
        last = from[row] > last ? from[row] : last;
    }
    range =
        last > b->first_begin ? (uint64_t)last - (uint64_t)b->first_begin : 0;
    bits = range > 0 ? 64 - __builtin_clzll(range) : 1;
    b->begin_shift = bits + cell_bits > 64 ? bits + cell_bits - 64 : 0;
    b->begin_bits = bits - b->begin_shift;
}

static uint64_t cell_and_begin_of_point(const struct near_points_batch *b,
                                        const struct oj_ordered_point *point)
{
    const struct oj_near_grid *grid = &b->self->grid;
    int64_t from = b->input->spans[b->self->span].from[point->index];
    uint64_t cell = (uint64_t)oj_near_cell_number(grid, point->x, point->y);
    uint64_t begin = 0;
    if (from != INT64_MIN && from != INT64_MAX)
        begin = ((uint64_t)from - (uint64_t)b->first_begin) >> b->begin_shift;
    return cell << b->begin_bits | begin;
}

/* Sorts the points of a bucket by cell, then by the begin of their span. */
static oj_status sort_bucket_by_cell_and_begin(int64_t bucket, int thread,
                                               void *user, struct oj_error *err)
{
    const struct near_points_batch *b = user;
    struct near_points_worker *worker = &b->self->worker[thread];
    const struct oj_order *order = &b->self->order;
    int64_t first = order->bucket_offset[bucket];
    int64_t n = order->bucket_offset[bucket + 1] - first;
    struct oj_ordered_point *point = order->point + first;
    struct oj_keyed *sorted;
    OJ_ROOM(worker->key, 0, 2 * n, worker->cap_key, err);
    OJ_ROOM(worker->sorted, 0, n, worker->cap_sorted, err);
    for (int64_t i = 0; i < n; i++)
        worker->key[i] =
            (struct oj_keyed){cell_and_begin_of_point(b, &point[i]), i};
    sorted = oj_radix_sort(worker->key, worker->key + n, n);
    for (int64_t i = 0; i < n; i++)
        worker->sorted[i] = point[sorted[i].value];
    if (n > 0)
        memcpy(point, worker->sorted, (size_t)n * sizeof *point);
    return OJ_OK;
}

/* Makes `order`, the list of the input points that can have pairs: in Morton
 * order, or, if a span orders the cells, by cell and begin of span. */
static oj_status sort_input_points(struct near_points_batch *b,
                                   struct oj_error *err)
{
    struct oj_order *order = &b->self->order;
    int n_threads = b->self->options.n_threads;
    OJ_TRY(oj_order_build_masked(order, n_threads, b->input->n_features,
                                 b->input->x, b->input->y, &b->self->reach,
                                 err));
    if (b->self->span < 0)
        return oj_order_sort(order, n_threads, NULL, NULL, err);
    choose_begin_bits_of_sort_key(b);
    return oj_parallel_try(n_threads, order->n_buckets, 1,
                           sort_bucket_by_cell_and_begin, b, err);
}

static oj_status check_pair_limit(const struct near_points_batch *b, int64_t n,
                                  struct oj_error *err)
{
    return oj_pair_budget_check(
        oj_most_pairs_of_batch(b->self->options.max_batch_pairs,
                               b->input->n_features),
        n, err);
}

/* Replaces the counts of rows by offsets, and reserves room for all pairs. */
static oj_status convert_counts_to_offsets(const struct near_points_batch *b,
                                           struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n_rows = b->input->n_features, n_matched = 0, n = 0;
    out->offset[0] = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        n_matched += out->offset[row + 1] > 0;
        n += out->offset[row + 1];
        out->offset[row + 1] = n;
    }
    OJ_TRY(check_pair_limit(b, n, err));
    OJ_TRY(oj_matches_reserve(out, n_rows, n, 1, err));
    out->n_pairs = n;
    out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status join_in_two_visits_sorted(struct near_points_batch *b,
                                           struct oj_error *err)
{
    int64_t n_rows = b->input->n_features;
    OJ_TRY(oj_matches_reserve(b->out, n_rows, 0, 1, err));
    memset(b->out->offset, 0, (size_t)(n_rows + 1) * sizeof *b->out->offset);
    OJ_TRY(search_near_points_in_parallel(b, VISIT_COUNT, err));
    OJ_TRY(convert_counts_to_offsets(b, err));
    return search_near_points_in_parallel(b, VISIT_FILL, err);
}

/* Joins in one visit that writes scattered lists. If the estimated entries are
 * too few, only sets b->needs_two_visits; the answer is then not complete. */
static oj_status join_in_one_visit_unsorted(struct near_points_batch *b,
                                            struct oj_error *err)
{
    struct close_points_index *self = b->self;
    int64_t n_rows = b->input->n_features, n = 0;
    int n_threads = self->options.n_threads;
    OJ_TRY(search_near_points_in_parallel(b, VISIT_ESTIMATE, err));
    for (int t = 0; t < n_threads; t++)
        n += self->worker[t].n_pairs;
    /* The estimate is raised by a quarter and by two blocks per thread. Pages
     * that are not written cost only address space. */
    n = n * ESTIMATE_EVERY + n * (ESTIMATE_EVERY / 4) +
        2 * BLOCK_ENTRIES * (int64_t)n_threads;
    OJ_TRY(oj_matches_reserve_scattered(b->out, n_rows, n, err));
    b->n_entries = n;
    OJ_TRY(oj_scattered_offsets_begin(&self->offsets, b->out->offset, n_rows,
                                      n_threads, err));
    OJ_TRY(search_near_points_in_parallel(b, VISIT_SCATTER, err));
    if (atomic_load(&b->needs_two_visits))
        return OJ_OK;
    b->out->n_entries = (int64_t)atomic_load(&b->n_taken);
    for (int t = 0; t < n_threads; t++)
    {
        if (self->worker[t].block_end > 0)
            convert_squares_to_distances(b, &self->worker[t]);
        b->out->n_pairs += self->worker[t].n_pairs;
        b->out->n_matched += self->worker[t].n_matched;
    }
    oj_scattered_offsets_write_all(&self->offsets);
    return check_pair_limit(b, b->out->n_pairs, err);
}

/* Returns 1 if the runs of a row hold exactly the features that meet its span,
 * and no other condition remains. This requires a single condition on spans and
 * join features whose spans are instants. */
static int do_runs_decide_spans(const struct near_points_batch *b)
{
    const struct close_points_index *self = b->self;
    const struct oj_relation *relation = &self->relation;
    return self->span >= 0 && self->end == self->begin &&
           relation->n_spans == 1 &&
           relation->spans[0].relations == OJ_SPANS_INTERSECT &&
           !has_conditions_besides_spans(&b->filter) &&
           (b->marks.kind != NO_MARK ||
            (!relation->exclude_self && relation->unordered_pairs == 0));
}

/* Joins in one visit, in which each worker lists the pairs that pass the
 * filter. */
static oj_status join_with_pair_filter(struct near_points_batch *b,
                                       struct oj_error *err)
{
    struct close_points_index *self = b->self;
    int64_t n_rows = b->input->n_features;
    int n_threads = self->options.n_threads;
    if (self->answers == NULL)
        OJ_NEW_ZEROED(self->answers, n_threads, err);
    start_pair_budget(b, self->options.max_batch_pairs);
    for (int t = 0; t < n_threads; t++)
        oj_answers_start(&self->answers[t], &b->budget);
    OJ_TRY(search_near_points_in_parallel(b, VISIT_ASK, err));
    for (int t = 0; t < n_threads; t++)
        oj_near_square_roots(self->answers[t].n_entries,
                             self->answers[t].distance,
                             self->answers[t].distance);
    return oj_answers_to_matches(self->answers, n_threads, n_rows,
                                 &self->relation, self->tie_rank, b->out, err);
}

static void start_batch(struct near_points_batch *b)
{
    struct close_points_index *self = b->self;
    const struct oj_flat *input = b->input, *join_side = self->join_side;
    for (int t = 0; t < self->options.n_threads; t++)
        self->worker[t].n_seen = 0;
    b->is_join_side = input->x == join_side->x && input->y == join_side->y &&
                      input->n_features == join_side->n_features;
    b->query.most2 = oj_square_limit_most(self->relation.max_distance);
    b->query.least2 = oj_square_limit_least(self->relation.min_distance);
    b->query.from = 0;
    b->query.end = INT32_MAX;
    b->query.except = -1;
}

static oj_status choose_lists_and_join_batch(struct near_points_batch *b,
                                             struct oj_stats *stats,
                                             struct oj_error *err)
{
    struct close_points_index *self = b->self;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_pair_filter_make(&self->relation, b->input, self->join_side,
                               &b->filter, err));
    OJ_TRY(make_id_limits_per_row(&b->filter, &self->fids, b->is_join_side,
                                  &b->marks, &b->asks_filter, err));
    if (b->asks_filter && do_runs_decide_spans(b))
        b->asks_filter = 0;
    if (self->relation.enough_pairs)
        b->asks_filter = 1; /* VISIT_ASK finds the first pairs */
    if (!b->is_join_side)
        OJ_TRY(sort_input_points(b, err));
    stats->n_points_searched += count_points_to_visit(b);
    sorted = oj_clock_seconds();
    stats->sort_s += sorted - start;
    if (b->asks_filter)
        OJ_TRY(join_with_pair_filter(b, err));
    else if (self->relation.any_order &&
             count_points_to_visit(b) >= SCATTER_FROM)
        OJ_TRY(join_in_one_visit_unsorted(b, err));
    else
        atomic_store(&b->needs_two_visits, 1);
    if (atomic_exchange(&b->needs_two_visits, 0))
        OJ_TRY(join_in_two_visits_sorted(b, err));
    stats->refine_s += oj_clock_seconds() - sorted;
    for (int t = 0; t < self->options.n_threads; t++)
        stats->n_candidates += self->worker[t].n_seen;
    return OJ_OK;
}

static oj_status join_near_points(struct oj_index *wrapped,
                                  const struct oj_flat *input,
                                  struct oj_matches *out,
                                  struct oj_stats *stats, struct oj_error *err)
{
    struct close_points_index *self = (void *)wrapped;
    struct near_points_batch b;
    oj_status status;
    if (self->general != NULL)
    {
        if (self->general_copy == NULL)
            OJ_TRY(oj_index_copy(&oj_cpu_distance, self->general,
                                 &self->options, &self->general_copy, err));
        return oj_cpu_distance.join(self->general_copy, input, out, stats, err);
    }
    if (self->worker == NULL)
        OJ_NEW_ZEROED(self->worker, self->options.n_threads, err);
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    b.out = out;
    atomic_init(&b.n_taken, 0);
    atomic_init(&b.needs_two_visits, 0);
    start_batch(&b);
    status = choose_lists_and_join_batch(&b, stats, err);
    oj_free(b.marks.mark);
    return status;
}

static void set_options(struct oj_index *wrapped,
                        const struct oj_options *options)
{
    struct close_points_index *self = (void *)wrapped;
    oj_options_copy_per_batch(&self->options, options);
    if (self->general_copy != NULL)
        oj_cpu_distance.set_options(self->general_copy, options);
}

static const struct oj_engine_cost points_cost = {.vertex_s = 150e-9,
                                                  .row_s = 250e-9};

const struct oj_engine oj_cpu_near_points = {
    .name = "points near points",
    .supports = supports_near_points_join,
    .index_size = sizeof(struct close_points_index),
    .build = build_near_points,
    .join = join_near_points,
    .free_side = free_near_points_index,
    .free_batches = free_batches,
    .set_options = set_options,
    .points_cost = &points_cost};
