#include "oj_span_slices.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../pairs/selection/oj_answer_ranking.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Number of levels: divisions of the join side into about 4, 16, 64, 256 and
 * 1024 slices. */
#define N_LEVELS 5

#define LEAST_FEATURES 256 /* minimum average features of a slice */
#define LEAST_ROWS 64      /* minimum rows of a batch for each slice */
#define ROWS_PER_TASK 8192 /* maximum rows of a task; all join one slice */
#define N_SAMPLES 1024     /* rows sampled to estimate the length of spans */
#define MOST_VISITS 6      /* maximum slices that a row joins, on average */

/* Slices for other relations than intersects, where spans are long: only if a
 * row joins at most 1 / LEAST_SLICES_PER_VISIT of the slices, and is near at
 * least 1 / N_SAMPLED of the join side, both on average. */
#define LEAST_SLICES_PER_VISIT 16
#define N_SAMPLED 64 /* features sampled of either side */

/* A span is long if it lasts longer than this number of slices of average
 * length. */
#define LONG_SPAN 4

/* ---- copies of chosen features ------------------------------------------- */

/* Array with copies of chosen values of a column. */
struct gathered_column
{
    void *value;
    int64_t capacity;
};

/* Copies of chosen features, with their columns. Owner; zeroed memory is a
 * valid empty value. */
struct gathered
{
    struct oj_flat flat;
    struct oj_flat_buf buf; /* holds the geometries unless all are points */
    struct gathered_column x, y, fid, max_distance, heading, on_class,
        exclude_class;
    struct gathered_column from[OJ_MOST_SPANS], until[OJ_MOST_SPANS];
};

static void free_gathered(struct gathered *g)
{
    oj_flat_buf_free(&g->buf);
    oj_free(g->x.value);
    oj_free(g->y.value);
    oj_free(g->fid.value);
    oj_free(g->max_distance.value);
    oj_free(g->heading.value);
    oj_free(g->on_class.value);
    oj_free(g->exclude_class.value);
    for (int i = 0; i < OJ_MOST_SPANS; i++)
    {
        oj_free(g->from[i].value);
        oj_free(g->until[i].value);
    }
    memset(g, 0, sizeof *g);
}

/* Copies the values of the n features `which` of a column. A value has `size`
 * bytes, 4 or 8. Does nothing if the column is NULL. */
static oj_status gather_column(const void *column, size_t size,
                               const int32_t *which, int64_t n,
                               struct gathered_column *to, struct oj_error *err)
{
    const char *from = column;
    char *copy;
    if (column == NULL)
        return OJ_OK;
    OJ_TRY(oj_reserve(&to->value, 0, n, &to->capacity, size, err));
    copy = to->value;
    for (int64_t i = 0; i < n; i++)
    {
        if (size == 8)
            memcpy(copy + 8 * i, from + 8 * (int64_t)which[i], 8);
        else
            memcpy(copy + 4 * i, from + 4 * (int64_t)which[i], 4);
    }
    return OJ_OK;
}

#define GATHER(column, to)                                                     \
    OJ_TRY(gather_column((column), sizeof *(column), which, n, (to), err))

static oj_status gather_columns(const struct oj_flat *flat,
                                const int32_t *which, int64_t n,
                                struct gathered *g, struct oj_error *err)
{
    struct oj_flat *out = &g->flat;
    GATHER(flat->fid, &g->fid);
    GATHER(flat->max_distance, &g->max_distance);
    GATHER(flat->heading, &g->heading);
    GATHER(flat->on_class, &g->on_class);
    GATHER(flat->exclude_class, &g->exclude_class);
    out->fid = g->fid.value;
    out->max_distance = g->max_distance.value;
    out->heading = g->heading.value;
    out->on_class = g->on_class.value;
    out->exclude_class = g->exclude_class.value;
    out->n_spans = flat->n_spans;
    for (int s = 0; s < flat->n_spans; s++)
    {
        int is_instant = flat->spans[s].from == flat->spans[s].until;
        GATHER(flat->spans[s].from, &g->from[s]);
        if (!is_instant)
            GATHER(flat->spans[s].until, &g->until[s]);
        out->spans[s].from = g->from[s].value;
        out->spans[s].until =
            is_instant ? out->spans[s].from : g->until[s].value;
    }
    return OJ_OK;
}

static oj_status gather_features(const struct oj_flat *flat,
                                 const int32_t *which, int64_t n,
                                 struct gathered *g, struct oj_error *err)
{
    memset(&g->flat, 0, sizeof g->flat);
    if (oj_flat_is_points(flat))
    {
        g->flat.part_kinds = flat->part_kinds;
        GATHER(flat->x, &g->x);
        GATHER(flat->y, &g->y);
        g->flat.n_features = g->flat.n_vertices = n;
        g->flat.n_parts = g->flat.n_rings = n;
        g->flat.x = g->x.value;
        g->flat.y = g->y.value;
    }
    else
    {
        oj_flat_buf_clear(&g->buf);
        for (int64_t i = 0; i < n; i++)
            OJ_TRY(oj_flat_buf_copy(&g->buf, flat, which[i], i, err));
        g->flat = oj_flat_buf_view(&g->buf);
    }
    return gather_columns(flat, which, n, g, err);
}

/* ---- slices -------------------------------------------------------------- */

struct slice
{
    int64_t first, n; /* first position in feature_of, and number of features */
    struct oj_span_ranges ends; /* ranges of the begins and ends of the spans */
    struct oj_flat_slice flat;
    struct oj_index *of[OJ_MOST_ENGINES]; /* index of the slice by each engine;
                                             NULL: not built */
};

/* The join side divided into slices: first n_short slices of features with
 * short spans, ascending by begin, then slices of features with long spans. */
struct slice_level
{
    atomic_int is_made; /* 1: slice, last and feature_of are complete; also read
                           without the lock */
    int is_gathered;    /* 1: join_side and the slices of it are complete */
    int64_t n, n_short;
    struct slice *slice;       /* [n] */
    int64_t *last;             /* [n_short] element s: latest end of the spans
                                  in slices 0 .. s */
    int32_t *feature_of;       /* [features] ordinals, slice by slice */
    struct gathered join_side; /* copies of the features in the order of
                                  feature_of */
};

/* Data that all copies of an index share. */
struct shared_slices
{
    pthread_mutex_t lock; /* held while levels and indexes are built */
    struct slice_level level[N_LEVELS];
    int64_t n_begins;
    int64_t *begin; /* [n_begins] begins of all spans, ascending */
    /* Indexes of the undivided join side, by engine; NULL: not built. */
    struct oj_index *whole[OJ_MOST_ENGINES];
};

struct span_slices_index
{
    struct oj_index_args args;
    int span; /* index of the span condition that defines the slices */
    struct shared_slices *shared;
};

static const struct oj_engine *const *engines_of_cpu(void)
{
    return oj_backend_find("cpu")->engines;
}

/* Returns the index, in the list of the backend cpu, of the engine that joins
 * without slices, or -1 if none does. */
static int choose_inner_engine(const struct oj_relation *relation,
                               const struct oj_flat *join_side,
                               const struct oj_flat *input)
{
    const struct oj_engine *const *engine = engines_of_cpu();
    for (int i = 0; engine[i] != NULL; i++)
    {
        if (engine[i] != &oj_span_slices &&
            oj_engine_supports_join(engine[i], relation, join_side, input))
            return i;
    }
    return -1;
}

static int choose_span_for_slices(const struct oj_relation *relation,
                                  const struct oj_flat *join_side)
{
    int i = 0;
    while (i < relation->n_spans && i < join_side->n_spans &&
           !oj_span_condition_needs_contact(&relation->spans[i]))
        i++;
    return i < relation->n_spans && i < join_side->n_spans ? i : -1;
}

/* Returns 1 if this engine takes the join. It does not take small join sides,
 * points within a distance of points, whose engine tests spans per cell, nor
 * texts, vectors and overlapping parts, because struct gathered has no copies
 * of them. */
static int supports_join_by_span_slices(const struct oj_relation *relation,
                                        const struct oj_flat *join_side,
                                        const struct oj_flat *input)
{
    return relation->n_spans > 0 &&
           !oj_relation_compares_attributes(relation) &&
           join_side->overlaps == NULL && join_side->n_texts == 0 &&
           (input == NULL || input->n_texts == 0) &&
           join_side->n_features >= 4 * LEAST_FEATURES &&
           choose_span_for_slices(relation, join_side) >= 0 &&
           !oj_engine_supports_join(&oj_cpu_near_points, relation, join_side,
                                    input);
}

static int64_t span_duration(int64_t from, int64_t until)
{
    int64_t difference;
    return __builtin_sub_overflow(until, from, &difference) ? INT64_MAX
                                                            : difference;
}

/* Returns the time between the 5th and the 95th percentile of all begins.
 * Outliers would make slices too long. */
static int64_t
duration_of_middle_90_percent_begins(const struct shared_slices *shared)
{
    int64_t n = shared->n_begins;
    return n > 0 ? span_duration(shared->begin[n / 20],
                                 shared->begin[n - 1 - n / 20])
                 : 0;
}

/* Returns the number of a sort key that sorts like a signed number. */
static uint64_t sortable(int64_t number)
{
    return (uint64_t)number ^ UINT64_C(1) << 63;
}

/* Returns 1 if all spans that intersect fulfil the condition. */
static int needs_contact_alone(const struct span_slices_index *self)
{
    return self->args.relation.spans[self->span].relations ==
           OJ_SPANS_INTERSECT;
}

/* Groups of spans that have slices of their own. */
enum span_group
{
    SHORT_SPANS,
    LONG_SPANS,
    OPEN_SPANS, /* long spans without an end, if relations depend on ends: one
                   of them among others extends the ends of its slice so far
                   that no relation leaves the slice out */
    N_SPAN_GROUPS
};

/* most: maximum duration of a short span. */
static enum span_group find_group_of_span(const struct span_slices_index *self,
                                          int64_t feature, int64_t most)
{
    const struct oj_spans *spans = &self->args.join_side->spans[self->span];
    int64_t until = spans->until[feature];
    if (span_duration(spans->from[feature], until) <= most)
        return SHORT_SPANS;
    return until == INT64_MAX && !needs_contact_alone(self) ? OPEN_SPANS
                                                            : LONG_SPANS;
}

/* Sorts the ordinals of the features with a span into feature_of, by group and
 * by begin. Equal begins are sorted by end if relations depend on it. end[g]
 * becomes the position after the last feature of group g. */
static oj_status order_features_by_span(const struct span_slices_index *self,
                                        int64_t n_slices, int32_t *feature_of,
                                        int64_t end[N_SPAN_GROUPS],
                                        struct oj_error *err)
{
    const struct oj_flat *flat = self->args.join_side;
    const struct oj_spans *spans = &flat->spans[self->span];
    int64_t most =
        duration_of_middle_90_percent_begins(self->shared) / n_slices;
    int by_end = !needs_contact_alone(self);
    int64_t n = 0, at[N_SPAN_GROUPS + 1] = {0};
    struct oj_keyed *keyed, *sorted;
    OJ_NEW(keyed, 2 * flat->n_features, err);
    most = most > INT64_MAX / LONG_SPAN ? INT64_MAX : LONG_SPAN * most;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        if (!oj_span_is_there(spans, f))
            continue;
        keyed[n++] = (struct oj_keyed){
            sortable(by_end ? spans->until[f] : spans->from[f]), f};
        at[find_group_of_span(self, f, most) + 1]++;
    }
    sorted = oj_radix_sort(keyed, keyed + n, n);
    if (by_end)
    {
        for (int64_t i = 0; i < n; i++)
            sorted[i].key = sortable(spans->from[sorted[i].value]);
        sorted = oj_radix_sort(sorted, sorted == keyed ? keyed + n : keyed, n);
    }
    for (int g = 0; g < N_SPAN_GROUPS; g++)
        end[g] = at[g + 1] += at[g];
    for (int64_t i = 0; i < n; i++)
    {
        int64_t f = sorted[i].value;
        feature_of[at[find_group_of_span(self, f, most)]++] = (int32_t)f;
    }
    oj_free(keyed);
    return OJ_OK;
}

static void divide_into_slices(struct slice_level *level, int64_t first,
                               int64_t end, int64_t at_once)
{
    for (; first < end; first += at_once)
    {
        struct slice *slice = &level->slice[level->n++];
        slice->first = first;
        slice->n = end - first < at_once ? end - first : at_once;
    }
}

static void extend_range(int64_t range[2], int64_t number)
{
    range[0] = number < range[0] ? number : range[0];
    range[1] = number > range[1] ? number : range[1];
}

/* Sorts the features of a slice in tie order, so that their positions are their
 * tie ranks. Sets the ends of the slice. */
static oj_status sort_slice_by_tie(const struct span_slices_index *self,
                                   struct slice_level *level,
                                   struct slice *slice, struct oj_error *err)
{
    const struct oj_spans *spans = &self->args.join_side->spans[self->span];
    int32_t *feature = level->feature_of + slice->first;
    struct oj_keyed *keyed, *sorted;
    OJ_NEW(keyed, 2 * slice->n, err);
    slice->ends =
        (struct oj_span_ranges){{INT64_MAX, INT64_MIN}, {INT64_MAX, INT64_MIN}};
    for (int64_t i = 0; i < slice->n; i++)
    {
        extend_range(slice->ends.from, spans->from[feature[i]]);
        extend_range(slice->ends.until, spans->until[feature[i]]);
        keyed[i] = (struct oj_keyed){
            (uint64_t)oj_tie_rank(self->args.tie_rank, feature[i]), feature[i]};
    }
    sorted = oj_radix_sort(keyed, keyed + slice->n, slice->n);
    for (int64_t i = 0; i < slice->n; i++)
        feature[i] = (int32_t)sorted[i].value;
    oj_free(keyed);
    return OJ_OK;
}

static oj_status fill_slice_level(const struct span_slices_index *self,
                                  int64_t n_slices, struct slice_level *level,
                                  struct oj_error *err)
{
    int64_t end[N_SPAN_GROUPS], n, at_once;
    OJ_NEW(level->feature_of, self->args.join_side->n_features, err);
    OJ_TRY(order_features_by_span(self, n_slices, level->feature_of, end, err));
    n = end[N_SPAN_GROUPS - 1];
    at_once = n / n_slices + 1;
    OJ_NEW_ZEROED(level->slice, n / at_once + N_SPAN_GROUPS, err);
    divide_into_slices(level, 0, end[SHORT_SPANS], at_once);
    level->n_short = level->n;
    for (int g = SHORT_SPANS + 1; g < N_SPAN_GROUPS; g++)
        divide_into_slices(level, end[g - 1], end[g], at_once);
    OJ_NEW(level->last, level->n_short + 1, err);
    for (int64_t s = 0; s < level->n; s++)
        OJ_TRY(sort_slice_by_tie(self, level, &level->slice[s], err));
    for (int64_t s = 0; s < level->n_short; s++)
    {
        int64_t until = level->slice[s].ends.until[1];
        level->last[s] =
            s > 0 && level->last[s - 1] > until ? level->last[s - 1] : until;
    }
    level->is_made = 1;
    return OJ_OK;
}

static oj_status gather_slices(const struct oj_flat *flat,
                               struct slice_level *level, struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t s = 0; s < level->n; s++)
        n += level->slice[s].n;
    OJ_TRY(gather_features(flat, level->feature_of, n, &level->join_side, err));
    for (int64_t s = 0; s < level->n; s++)
        OJ_TRY(oj_flat_slice_make(&level->join_side.flat, level->slice[s].first,
                                  level->slice[s].n, &level->slice[s].flat,
                                  err));
    level->is_gathered = 1;
    return OJ_OK;
}

static void free_gathered_slices(struct slice_level *level)
{
    for (int64_t s = 0; level->slice != NULL && s < level->n; s++)
        oj_flat_slice_free(&level->slice[s].flat);
    free_gathered(&level->join_side);
}

static void free_indexes(struct oj_index *of[OJ_MOST_ENGINES])
{
    for (int i = 0; i < OJ_MOST_ENGINES; i++)
    {
        if (of[i] != NULL)
            oj_index_free(engines_of_cpu()[i], of[i]);
    }
}

static void free_slice_level(struct slice_level *level)
{
    for (int64_t s = 0; level->slice != NULL && s < level->n; s++)
        free_indexes(level->slice[s].of);
    free_gathered_slices(level);
    oj_free(level->slice);
    oj_free(level->last);
    oj_free(level->feature_of);
    memset(level, 0, sizeof *level);
}

/* ---- index --------------------------------------------------------------- */

static void free_span_slices_index(struct oj_index *wrapped)
{
    struct span_slices_index *self = (void *)wrapped;
    struct shared_slices *shared = self->shared;
    if (shared == NULL)
        return;
    for (int i = 0; i < N_LEVELS; i++)
        free_slice_level(&shared->level[i]);
    free_indexes(shared->whole);
    pthread_mutex_destroy(&shared->lock);
    oj_free(shared->begin);
    oj_free(shared);
}

/* Does nothing: an index keeps no state of its batches. */
static void free_batches(struct oj_index *index)
{
    (void)index;
}

static oj_status sort_begins_of_spans(struct span_slices_index *self,
                                      struct oj_error *err)
{
    const struct oj_flat *flat = self->args.join_side;
    const struct oj_spans *spans = &flat->spans[self->span];
    int64_t n = 0;
    struct oj_keyed *keyed, *sorted;
    OJ_NEW(self->shared->begin, flat->n_features, err);
    OJ_NEW(keyed, 2 * flat->n_features, err);
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        if (oj_span_is_there(spans, f))
            keyed[n++] = (struct oj_keyed){sortable(spans->from[f]), f};
    }
    sorted = oj_radix_sort(keyed, keyed + n, n);
    for (int64_t i = 0; i < n; i++)
        self->shared->begin[i] = spans->from[sorted[i].value];
    self->shared->n_begins = n;
    oj_free(keyed);
    return OJ_OK;
}

static oj_status build_span_slices(struct oj_index *wrapped,
                                   const struct oj_index_args *args,
                                   struct oj_stats *stats, struct oj_error *err)
{
    struct span_slices_index *self = (void *)wrapped;
    self->args = *args;
    if (oj_relation_is_of_equal_attributes(&args->relation))
        self->args.relation.enough_pairs =
            OJ_ENOUGH_ALL; /* with OJ_ENOUGH_FIRST, the measure would be the
                              number of pairs of a row in one slice */
    self->span = choose_span_for_slices(&args->relation, args->join_side);
    OJ_NEW_ZEROED(self->shared, 1, err);
    pthread_mutex_init(&self->shared->lock, NULL);
    OJ_TRY(sort_begins_of_spans(self, err));
    stats->index_bytes += 8 * self->shared->n_begins;
    return OJ_OK;
}

static void set_options(struct oj_index *wrapped,
                        const struct oj_options *options)
{
    struct span_slices_index *self = (void *)wrapped;
    oj_options_copy_per_batch(&self->args.options, options);
}

/* ---- a batch ------------------------------------------------------------- */

/* Rows that are joined with one slice: a unit of work of a thread. */
struct slice_task
{
    int64_t slice, first,
        n; /* number of the slice; first row and number of rows in visit */
};

struct slices_worker
{
    struct gathered rows;
    struct oj_matches matches;
    struct oj_ranking ranking;
    struct oj_stats stats;
};

struct slices_batch
{
    const struct span_slices_index *self;
    const struct oj_flat *input;
    struct slice_level *level;
    int is_by_relation; /* 1: the span of a row overlaps many slices, most of
                           which the relations exclude */
    int engine;
    int64_t *first; /* [level->n + 1] index in visit of the first row of each
                       slice */
    int32_t *visit; /* [first[level->n]] rows to join, slice by slice */
    int64_t n_tasks;
    struct slice_task *task;
    struct slices_worker *worker; /* [n_threads] */
    struct oj_answers *answers;   /* [n_threads] */
    struct oj_pair_budget budget;
};

static int64_t count_begins_up_to(const struct shared_slices *shared,
                                  int64_t number)
{
    int64_t low = 0, high = shared->n_begins;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (shared->begin[middle] <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the estimated fraction of the join side whose spans begin within the
 * span of a row: the mean over a sample of rows. */
static double estimate_join_share_of_row(const struct slices_batch *b)
{
    const struct shared_slices *shared = b->self->shared;
    const struct oj_spans *spans = &b->input->spans[b->self->span];
    int64_t n = b->input->n_features, step = n / N_SAMPLES + 1, n_rows = 0;
    double sum = 0.0;
    for (int64_t row = 0; row < n; row += step)
    {
        if (!oj_span_is_there(spans, row))
            continue;
        sum += (double)(count_begins_up_to(shared, spans->until[row]) -
                        count_begins_up_to(shared,
                                           spans->from[row] -
                                               (spans->from[row] > INT64_MIN)));
        n_rows++;
    }
    return n_rows > 0 && shared->n_begins > 0
               ? sum / (double)n_rows / (double)shared->n_begins
               : 1.0;
}

static int64_t slice_count_of_level(int i)
{
    return INT64_C(4) << 2 * i;
}

/* Boxes and numbers of features that are sampled of a side. */
struct sampled
{
    int64_t n, feature[N_SAMPLED];
    struct oj_box box[N_SAMPLED];
};

static void sample_features(const struct oj_flat *flat, int has_places,
                            struct sampled *out)
{
    int64_t step = flat->n_features / N_SAMPLED + 1;
    out->n = 0;
    for (int64_t f = 0; f < flat->n_features; f += step)
    {
        out->feature[out->n] = f;
        if (has_places)
            out->box[out->n] = oj_box_of_feature(flat, f);
        out->n++;
    }
}

/* Returns 1 if rows seem to have many candidates, few of which fulfil the
 * condition on spans: candidates have equal values of -on, and boxes that
 * intersect, unless the join looks for the nearest features at any distance. */
static int are_most_candidates_refused(const struct slices_batch *b)
{
    const struct oj_relation *relation = &b->self->args.relation;
    const struct oj_flat *input = b->input, *join = b->self->args.join_side;
    const struct oj_span_condition *condition = &relation->spans[b->self->span];
    int has_places = !oj_relation_is_of_equal_attributes(relation) &&
                     !(oj_op_get(relation->op)->takes & OJ_TAKES_K &&
                       relation->max_distance == INFINITY);
    int64_t n_near = 0, n_fulfilled = 0;
    struct sampled of_input, of_join;
    sample_features(input, has_places, &of_input);
    sample_features(join, has_places, &of_join);
    for (int64_t i = 0; i < of_input.n * of_join.n; i++)
    {
        int64_t k = i / of_join.n, m = i % of_join.n;
        int64_t row = of_input.feature[k], f = of_join.feature[m];
        n_fulfilled +=
            oj_span_condition_holds(condition, &input->spans[b->self->span],
                                    row, &join->spans[b->self->span], f);
        n_near += (input->on_class == NULL || join->on_class == NULL ||
                   (input->on_class[row] == join->on_class[f] &&
                    input->on_class[row] >= 0)) &&
                  (!has_places ||
                   oj_box_intersects(&of_input.box[k], &of_join.box[m]));
    }
    return n_near * N_SAMPLED >= of_input.n * of_join.n &&
           n_fulfilled * LEAST_SLICES_PER_VISIT <= of_input.n * of_join.n;
}

/* Returns the level with the most slices that suits the batch, or -1 if none
 * does. share: fraction of the join side whose spans begin within the span of a
 * row. */
static int find_finest_level(const struct slices_batch *b, double share)
{
    int found = -1;
    for (int i = 0; i < N_LEVELS; i++)
    {
        int64_t n = slice_count_of_level(i);
        if ((double)n * share <= 1.5 &&
            n * LEAST_FEATURES <= b->self->shared->n_begins &&
            (n * LEAST_ROWS <= b->input->n_features ||
             b->self->shared->level[i].is_made))
            found = i;
    }
    return found;
}

/* Returns the level with the most slices that suits the batch, or -1 to join
 * with the undivided join side. Sets b->is_by_relation. The samples are not
 * taken for batches that are too small for any level. */
static int choose_slice_level(struct slices_batch *b)
{
    int finest = find_finest_level(b, 0.0);
    double share;
    if (finest < 0)
        return -1;
    share = estimate_join_share_of_row(b);
    if (4.0 * share <= 1.5 || needs_contact_alone(b->self))
        return find_finest_level(b, share);
    b->is_by_relation = are_most_candidates_refused(b);
    return b->is_by_relation ? finest : -1;
}

/* Finds the slices with spans that can fulfil the condition with that of a row,
 * and increments count[s] for each. Unless visit is NULL, the row is first
 * stored at visit[count[s]]. */
static void visit_slices_of_row(const struct slices_batch *b, int64_t row,
                                int64_t *count, int32_t *visit)
{
    const struct slice_level *level = b->level;
    const struct oj_spans *spans = &b->input->spans[b->self->span];
    const struct oj_span_condition *condition =
        &b->self->args.relation.spans[b->self->span];
    int64_t from = spans->from[row], until = spans->until[row];
    int64_t low = 0, high = level->n_short;
    if (!oj_span_is_there(spans, row))
        return;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (level->slice[middle].ends.from[0] <= until)
            low = middle + 1;
        else
            high = middle;
    }
    for (int64_t s = level->n_short; s < level->n; s++)
    {
        if (oj_span_condition_may_hold(condition, from, until,
                                       &level->slice[s].ends))
        {
            if (visit != NULL)
                visit[count[s]] = (int32_t)row;
            count[s]++;
        }
    }
    while (low-- > 0 && level->last[low] >= from)
    {
        if (!oj_span_condition_may_hold(condition, from, until,
                                        &level->slice[low].ends))
            continue;
        if (visit != NULL)
            visit[count[low]] = (int32_t)row;
        count[low]++;
    }
}

/* Lists for each slice the rows that must be joined with it: counts the rows,
 * makes prefix sums, and fills the lists. */
static oj_status list_rows_of_slices(struct slices_batch *b,
                                     struct oj_error *err)
{
    int64_t n = b->level->n, *at;
    OJ_NEW_ZEROED(b->first, n + 1, err);
    for (int64_t row = 0; row < b->input->n_features; row++)
        visit_slices_of_row(b, row, b->first + 1, NULL);
    for (int64_t s = 0; s < n; s++)
        b->first[s + 1] += b->first[s];
    OJ_NEW(b->visit, b->first[n], err);
    OJ_NEW(at, n + 1, err);
    memcpy(at, b->first, (size_t)(n + 1) * sizeof *at);
    for (int64_t row = 0; row < b->input->n_features; row++)
        visit_slices_of_row(b, row, at, b->visit);
    oj_free(at);
    return OJ_OK;
}

static oj_status list_tasks_of_slices(struct slices_batch *b,
                                      struct oj_error *err)
{
    int64_t n = b->level->n, n_tasks = 0;
    for (int64_t s = 0; s < n; s++)
        n_tasks +=
            (b->first[s + 1] - b->first[s] + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    OJ_NEW(b->task, n_tasks, err);
    for (int64_t s = 0; s < n; s++)
    {
        for (int64_t at = b->first[s]; at < b->first[s + 1];
             at += ROWS_PER_TASK)
        {
            int64_t left = b->first[s + 1] - at;
            b->task[b->n_tasks++] = (struct slice_task){
                s, at, left < ROWS_PER_TASK ? left : ROWS_PER_TASK};
        }
    }
    return OJ_OK;
}

static struct oj_index_args
args_of_inner_index(const struct span_slices_index *self,
                    const struct oj_flat *join_side)
{
    struct oj_index_args args = self->args;
    args.join_side = join_side;
    args.gets_candidates = 0;
    return args;
}

static oj_status make_index_of_slice(int64_t i, int thread, void *user,
                                     struct oj_error *err)
{
    struct slices_batch *b = user;
    struct slice *slice = &b->level->slice[i];
    struct oj_index_args args = args_of_inner_index(b->self, &slice->flat.flat);
    if (slice->of[b->engine] != NULL || b->first[i] == b->first[i + 1])
        return OJ_OK;
    args.tie_rank = NULL;
    args.options.n_threads = 1;
    return oj_index_make(engines_of_cpu()[b->engine], &args,
                         &slice->of[b->engine], &b->worker[thread].stats, err);
}

/* Adds the pairs of row i of a task to the answers of the thread, ranked if the
 * join ranks its pairs. */
static oj_status add_pairs_of_row(const struct slices_batch *b, int thread,
                                  const struct slice_task *task, int64_t i,
                                  struct oj_error *err)
{
    struct slices_worker *worker = &b->worker[thread];
    const struct oj_matches *found = &worker->matches;
    struct oj_answers *answers = &b->answers[thread];
    const int32_t *feature_of =
        b->level->feature_of + b->level->slice[task->slice].first;
    int64_t first = oj_matches_first(found, i), end = oj_matches_end(found, i);
    int32_t row = b->visit[task->first + i];
    if (first == end)
        return OJ_OK;
    if (!oj_relation_sorts_by_measure(&b->self->args.relation))
    {
        OJ_TRY(oj_answers_reserve(answers, end - first, err));
        for (int64_t p = first; p < end; p++)
            oj_answers_append_pair(answers, row, feature_of[found->join_row[p]],
                                   found->measure[p]);
        return OJ_OK;
    }
    oj_ranking_start(&worker->ranking);
    for (int64_t p = first; p < end; p++)
        OJ_TRY(oj_ranking_add(&worker->ranking, feature_of[found->join_row[p]],
                              found->measure[p], err));
    oj_ranking_finish(&worker->ranking);
    return oj_answers_add_ranking(answers, row, &worker->ranking, err);
}

static oj_status join_rows_with_slice(int64_t i, int thread, void *user,
                                      struct oj_error *err)
{
    const struct slices_batch *b = user;
    const struct span_slices_index *self = b->self;
    const struct slice_task *task = &b->task[i];
    const struct oj_engine *engine = engines_of_cpu()[b->engine];
    struct slices_worker *worker = &b->worker[thread];
    struct oj_index *copy;
    oj_status status;
    OJ_TRY(oj_check_cancel(self->args.options.cancel, err));
    OJ_TRY(gather_features(b->input, b->visit + task->first, task->n,
                           &worker->rows, err));
    OJ_TRY(oj_index_copy(engine, b->level->slice[task->slice].of[b->engine],
                         &self->args.options, &copy, err));
    status = engine->join(copy, &worker->rows.flat, &worker->matches,
                          &worker->stats, err);
    oj_index_copy_free(engine, copy);
    for (int64_t row = 0; row < task->n && status == OJ_OK; row++)
        status = add_pairs_of_row(b, thread, task, row, err);
    return status;
}

static oj_status start_workers(struct slices_batch *b, struct oj_error *err)
{
    const struct oj_index_args *args = &b->self->args;
    int n_threads = args->options.n_threads;
    OJ_NEW_ZEROED(b->worker, n_threads, err);
    OJ_NEW_ZEROED(b->answers, n_threads, err);
    oj_pair_budget_start(&b->budget, args->options.max_batch_pairs,
                         b->input->n_features, n_threads);
    for (int t = 0; t < n_threads; t++)
    {
        b->worker[t].ranking = oj_ranking_make(&args->relation, args->tie_rank);
        oj_answers_start(&b->answers[t], &b->budget);
    }
    return OJ_OK;
}

static void end_batch(struct slices_batch *b, struct oj_stats *stats)
{
    int n_threads = b->self->args.options.n_threads;
    for (int t = 0; b->worker != NULL && t < n_threads; t++)
    {
        stats->n_candidates += b->worker[t].stats.n_candidates;
        stats->n_points_searched += b->worker[t].stats.n_points_searched;
        stats->index_bytes += b->worker[t].stats.index_bytes;
        free_gathered(&b->worker[t].rows);
        oj_matches_free(&b->worker[t].matches);
        oj_ranking_free(&b->worker[t].ranking);
    }
    for (int t = 0; b->answers != NULL && t < n_threads; t++)
        oj_answers_free(&b->answers[t]);
    oj_free(b->worker);
    oj_free(b->answers);
    oj_free(b->first);
    oj_free(b->visit);
    oj_free(b->task);
}

static oj_status make_slice_level_once(struct slices_batch *b, int level,
                                       struct oj_error *err)
{
    struct shared_slices *shared = b->self->shared;
    oj_status status = OJ_OK;
    b->level = &shared->level[level];
    pthread_mutex_lock(&shared->lock);
    if (!b->level->is_made)
        status = fill_slice_level(b->self, slice_count_of_level(level),
                                  b->level, err);
    if (status != OJ_OK)
        free_slice_level(b->level);
    pthread_mutex_unlock(&shared->lock);
    return status;
}

static int do_rows_visit_few_slices(const struct slices_batch *b)
{
    return b->first[b->level->n] <= MOST_VISITS * b->input->n_features;
}

/* Sets *are_few to 1 if sampled rows have few of the slices, such that the
 * relations leave out most. */
static oj_status do_sampled_rows_visit_few_slices(const struct slices_batch *b,
                                                  int *are_few,
                                                  struct oj_error *err)
{
    int64_t n = b->input->n_features, step = n / N_SAMPLES + 1;
    int64_t n_rows = 0, n_visits = 0, *count;
    OJ_NEW_ZEROED(count, b->level->n + 1, err);
    for (int64_t row = 0; row < n; row += step, n_rows++)
        visit_slices_of_row(b, row, count, NULL);
    for (int64_t s = 0; s < b->level->n; s++)
        n_visits += count[s];
    oj_free(count);
    *are_few = n_visits <= MOST_VISITS * n_rows &&
               n_visits * LEAST_SLICES_PER_VISIT <= b->level->n * n_rows;
    return OJ_OK;
}

static oj_status gather_slices_once(struct slices_batch *b,
                                    struct oj_error *err)
{
    oj_status status = OJ_OK;
    if (!b->level->is_gathered)
        status = gather_slices(b->self->args.join_side, b->level, err);
    if (status != OJ_OK)
        free_gathered_slices(b->level);
    return status;
}

/* Builds the level and the indexes that the batch needs, and lists the rows of
 * each slice. *is_worth_it is 0 if rows have so many slices that the undivided
 * join side is faster; indexes are then not built. */
static oj_status prepare_slices(struct slices_batch *b, int level,
                                int *is_worth_it, struct oj_error *err)
{
    struct shared_slices *shared = b->self->shared;
    oj_status status;
    OJ_TRY(make_slice_level_once(b, level, err));
    if (b->is_by_relation)
    {
        OJ_TRY(do_sampled_rows_visit_few_slices(b, is_worth_it, err));
        if (!*is_worth_it)
            return OJ_OK;
    }
    OJ_TRY(list_rows_of_slices(b, err));
    *is_worth_it = do_rows_visit_few_slices(b);
    if (!*is_worth_it)
        return OJ_OK;
    pthread_mutex_lock(&shared->lock);
    status = gather_slices_once(b, err);
    if (status == OJ_OK)
        status = oj_parallel_try(b->self->args.options.n_threads, b->level->n,
                                 1, make_index_of_slice, b, err);
    pthread_mutex_unlock(&shared->lock);
    return status;
}

static oj_status join_with_slices(struct slices_batch *b,
                                  struct oj_matches *out, struct oj_error *err)
{
    const struct oj_index_args *args = &b->self->args;
    int n_threads = args->options.n_threads;
    OJ_TRY(list_tasks_of_slices(b, err));
    OJ_TRY(oj_parallel_try(n_threads, b->n_tasks, 1, join_rows_with_slice, b,
                           err));
    return oj_answers_to_matches(b->answers, n_threads, b->input->n_features,
                                 &args->relation, args->tie_rank, out, err);
}

/* Joins the batch with the undivided join side, by the engine with this
 * number. */
static oj_status join_with_undivided_side(const struct span_slices_index *self,
                                          int engine_number,
                                          const struct oj_flat *input,
                                          struct oj_matches *out,
                                          struct oj_stats *stats,
                                          struct oj_error *err)
{
    const struct oj_engine *engine = engines_of_cpu()[engine_number];
    struct shared_slices *shared = self->shared;
    struct oj_index_args args = args_of_inner_index(self, self->args.join_side);
    struct oj_index *copy;
    oj_status status = OJ_OK;
    pthread_mutex_lock(&shared->lock);
    if (shared->whole[engine_number] == NULL)
        status = oj_index_make(engine, &args, &shared->whole[engine_number],
                               stats, err);
    pthread_mutex_unlock(&shared->lock);
    OJ_TRY(status);
    OJ_TRY(oj_index_copy(engine, shared->whole[engine_number],
                         &self->args.options, &copy, err));
    status = engine->join(copy, input, out, stats, err);
    oj_index_copy_free(engine, copy);
    return status;
}

static oj_status join_span_slices(struct oj_index *wrapped,
                                  const struct oj_flat *input,
                                  struct oj_matches *out,
                                  struct oj_stats *stats, struct oj_error *err)
{
    struct span_slices_index *self = (void *)wrapped;
    struct slices_batch b = {.self = self, .input = input};
    double start = oj_clock_seconds(), ready;
    struct oj_pair_filter filter;
    int level, uses_slices = 0;
    oj_status status;
    OJ_TRY(oj_pair_filter_make(&self->args.relation, input,
                               self->args.join_side, &filter, err));
    b.engine =
        choose_inner_engine(&self->args.relation, self->args.join_side, input);
    if (b.engine < 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "op %s is not possible between these kinds of "
                       "features: use another op",
                       oj_op_get(self->args.relation.op)->name);
    level = input->n_features > 0 ? choose_slice_level(&b) : -1;
    if (level < 0)
        return join_with_undivided_side(self, b.engine, input, out, stats, err);
    status = start_workers(&b, err);
    if (status == OJ_OK)
        status = prepare_slices(&b, level, &uses_slices, err);
    ready = oj_clock_seconds();
    if (status == OJ_OK && uses_slices)
        status = join_with_slices(&b, out, err);
    end_batch(&b, stats);
    stats->sort_s += ready - start;
    stats->refine_s += oj_clock_seconds() - ready;
    return status != OJ_OK || uses_slices
               ? status
               : join_with_undivided_side(self, b.engine, input, out, stats,
                                          err);
}

const struct oj_engine oj_span_slices = {
    .name = "slices of time",
    .supports = supports_join_by_span_slices,
    .index_size = sizeof(struct span_slices_index),
    .build = build_span_slices,
    .join = join_span_slices,
    .free_side = free_span_slices_index,
    .free_batches = free_batches,
    .set_options = set_options,
    .takes_headings = 1};
