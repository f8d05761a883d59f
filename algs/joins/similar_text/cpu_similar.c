/* Engine for similar texts. In a join of the k most similar, rows are searched
 * one by one in the prefix lists, with decreasing thresholds until k pairs are
 * found. The bitmaps of entries exclude most pairs. The common tokens of each
 * remaining pair are counted once, in the list of its first common token. Joins
 * without k compare whole lists (cpu_token_list_join.c) or bitmaps of all
 * tokens (cpu_similar_bitmaps.c). */
#include "cpu_similar.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_lane_loops.h"

#include <stdio.h>
#include <string.h>

enum
{
    SHORT_LIST = 48,         /* lists up to this length are scanned from the
                                start, not searched */
    MOST_EXPECTED = 1 << 16, /* maximum number of features that are sampled to
                                estimate the list entries that a row reads */
    MOST_NEEDS = 1 << 23     /* maximum product of the numbers of different set
                                sizes of both sides */
};

/* If the join of a batch by prefix lists is estimated to take fewer seconds
 * than this, the lists are used, and the work by bitmaps of all tokens is not
 * estimated. */
#define LEAST_CHOICE_S 0.005

/* --- the join side -------------------------------------------------------- */

static void free_similar_index(struct oj_index *wrapped)
{
    struct similar_index *self = (void *)wrapped;
    oj_similar_side_free(&self->side);
}

/* Returns 1 + the greatest token number in the sets. */
static int64_t find_end_of_token_numbers(const struct oj_token_sets *sets)
{
    int64_t n = 0;
    for (int64_t row = 0; row < sets->n_rows; row++)
    {
        int64_t end = sets->offset[row + 1];
        if (end > sets->offset[row] && sets->token[end - 1] >= n)
            n = (int64_t)sets->token[end - 1] + 1;
    }
    return n;
}

/* --- a row ---------------------------------------------------------------- */

oj_status oj_similar_needed_tokens_make(
    const struct similar_index *self, const struct oj_text_condition *condition,
    int64_t size, struct similar_needs *out, struct oj_error *err)
{
    int64_t n_classes = self->side.n_classes;
    if (out->size == size)
        return OJ_OK;
    if (out->common == NULL)
        OJ_NEW(out->common, n_classes, err);
    if (out->distance == NULL)
        OJ_NEW(out->distance, n_classes, err);
    out->size = size;
    out->first = n_classes;
    out->above = out->end = 0;
    out->most_distance = -1;
    for (int64_t c = 0; c < n_classes; c++)
    {
        int64_t other = self->side.class_size[c];
        int64_t most = size < other ? size : other;
        int64_t common = oj_text_min_common_tokens(condition, size, other);
        int fits = common <= most;
        out->common[c] = (int32_t)common;
        out->distance[c] = fits ? (int32_t)(size + other - 2 * common) : -1;
        if (out->distance[c] > out->most_distance)
            out->most_distance = out->distance[c];
        if (fits && c < out->first)
            out->first = c;
        if (fits)
            out->end = c + 1;
        out->above += other <= size;
    }
    return OJ_OK;
}

void oj_similar_needed_tokens_free(struct similar_needs *needs)
{
    oj_free(needs->common);
    oj_free(needs->distance);
}

/* Returns the run of the features that can be pairs of the row and have the
 * token set of `feature`, which represents them in the lists. If no other
 * feature has this set, `feature` is tested with all conditions here, and only
 * whether the run is empty matters. */
OJ_INLINE struct oj_equal_run find_equal_sets(const struct similar_batch *b,
                                              int64_t row, int32_t feature)
{
    const struct oj_row_index *shared = &b->self->shared;
    const struct similar_side *side = &b->self->side;
    const struct oj_equal_groups *groups = &side->groups;
    int64_t group = side->group_of != NULL ? side->group_of[feature] : -1;
    if (group < 0 || oj_equal_groups_count(groups, group) == 1)
        return (struct oj_equal_run){
            0, oj_pair_filter_accepts(&shared->filter, row, feature)};
    return oj_equal_groups_find_run(
        groups, shared, row, group,
        oj_equal_groups_ranks_of_row(groups, shared, row));
}

/* Adds the pairs of row with `feature` and with the features of the run, whose
 * sets equal that of `feature`. All of them have `common` tokens in common with
 * row. */
OJ_INLINE oj_status add_pairs_of_set(struct similar_batch *b,
                                     struct oj_row_worker *worker, int64_t row,
                                     int32_t feature, int64_t common,
                                     struct oj_equal_run run,
                                     struct oj_error *err)
{
    const struct oj_row_index *shared = &b->self->shared;
    const struct similar_side *side = &b->self->side;
    double compared =
        oj_negated_text_similarity(shared, &b->sides, row, feature, common);
    if (side->group_of == NULL ||
        oj_equal_groups_count(&side->groups, side->group_of[feature]) == 1)
        return oj_ranking_add(&worker->ranking, feature, compared, err);
    return oj_equal_groups_add_pairs(&side->groups, shared, worker, row, run,
                                     compared, &worker->n_candidates, err);
}

/* Compares row with the entries of one list of `token` that are of classes
 * first .. end - 1, and adds the pairs. */
OJ_INLINE oj_status add_pairs_from_list(
    struct similar_batch *b, struct oj_row_worker *worker, int64_t row,
    uint32_t token, int64_t list, const struct similar_needs *needs,
    int64_t first, int64_t end, struct oj_error *err)
{
    const struct similar_side *side = &b->self->side;
    const struct oj_token_sets *in = &b->sides.input;
    const struct oj_token_sets *join = &b->sides.join_side;
    const struct oj_token_bits bits = in->bits[row];
    const struct similar_entry *e = side->entry + side->offset[list];
    const struct similar_entry *last = side->entry + side->offset[list + 1];
    if (last - e > SHORT_LIST)
    {
        e = oj_similar_first_entry_of_class(e, last - e, first);
        last = oj_similar_first_entry_of_class(e, last - e, end);
    }
    worker->n_candidates += last - e;
    for (; e < last; e++)
    {
        int32_t feature = (int32_t)e->row;
        struct oj_equal_run run;
        int64_t common;
        if (__builtin_popcountll(e->bits.word[0] ^ bits.word[0]) +
                __builtin_popcountll(e->bits.word[1] ^ bits.word[1]) >
            needs->distance[e->class])
            continue;
        run = find_equal_sets(b, row, feature);
        if (run.first >= run.end)
            continue;
        common = oj_similar_count_common(in, row, join, feature, token);
        if (common >= needs->common[e->class])
            OJ_TRY(add_pairs_of_set(b, worker, row, feature, common, run, err));
    }
    return OJ_OK;
}

/* Adds all pairs of row that meet the threshold of needs. Tokens that no join
 * feature has count as the rarest ones, and have no list. */
OJ_COUNT_CLONES static oj_status search_row_above_threshold(
    struct similar_batch *b, struct oj_row_worker *worker, int64_t row,
    const struct similar_needs *needs, struct oj_error *err)
{
    const struct oj_token_sets *in = &b->sides.input;
    const uint32_t *token = in->token + in->offset[row];
    int64_t n = in->offset[row + 1] - in->offset[row];
    int64_t left = n, end = needs->end; /* left: number of tokens from i on */
    for (int64_t i = 0; i < n; i++, left--)
    {
        end =
            oj_similar_first_class_needing_more(needs, needs->first, end, left);
        if (end <= needs->first)
            break;
        if (token[i] >= b->self->side.n_tokens)
            continue;
        OJ_TRY(add_pairs_from_list(b, worker, row, token[i],
                                   2 * (int64_t)token[i], needs, needs->first,
                                   end, err));
        if (end > needs->above)
            OJ_TRY(add_pairs_from_list(b, worker, row, token[i],
                                       2 * (int64_t)token[i] + 1, needs,
                                       needs->above, end, err));
    }
    return OJ_OK;
}

static int64_t row_at_place_by_size(const struct oj_row_index *shared,
                                    int64_t i)
{
    return ((const struct similar_index *)(const void *)shared)
        ->batch->input->by_size[i];
}

/* Searches a row with decreasing thresholds until k pairs are found; the last
 * threshold is the join's own. */
static oj_status search_row(struct oj_row_index *shared,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    const struct similar_index *self = (void *)shared;
    const struct oj_relation *relation = &shared->args.relation;
    const struct oj_text_condition *own = &relation->similar[0];
    struct similar_needs *all =
        ((struct similar_worker *)(void *)worker)->needs;
    struct oj_ranking *ranking = &worker->ranking;
    int64_t size = self->batch->sides.input.size[row];
    int round = relation->k < OJ_EVERY_PAIR ? 0 : OJ_SIMILAR_ROUNDS - 1;
    for (; round < OJ_SIMILAR_ROUNDS; round++)
    {
        struct oj_text_condition condition = {
            own->measure, OJ_SIMILAR_ROUNDS - 1 - round, OJ_SIMILAR_ROUNDS};
        struct similar_needs *needs = &all[round];
        if (round == OJ_SIMILAR_ROUNDS - 1)
            condition = *own;
        else if (condition.numerator * own->denominator <=
                 own->numerator * condition.denominator)
            continue;
        OJ_TRY(
            oj_similar_needed_tokens_make(self, &condition, size, needs, err));
        oj_ranking_start(ranking);
        OJ_TRY(
            search_row_above_threshold(self->batch, worker, row, needs, err));
        oj_ranking_finish(ranking);
        if (ranking->n >= relation->k)
            break;
    }
    return OJ_OK;
}

/* --- joins without k ------------------------------------------------------ */

static int have_sides_equal_token_sets(const struct oj_token_sets *a,
                                       const struct oj_token_sets *b)
{
    int64_t n = a->n_rows;
    size_t n_bytes;
    if (b->n_rows != n ||
        memcmp(a->size, b->size, (size_t)n * sizeof *a->size) != 0 ||
        memcmp(a->bits, b->bits, (size_t)n * sizeof *a->bits) != 0)
        return 0;
    for (int64_t i = 1; i <= n; i++)
    {
        if (a->offset[i] - a->offset[0] != b->offset[i] - b->offset[0])
            return 0;
    }
    n_bytes = (size_t)(a->offset[n] - a->offset[0]) * sizeof *a->token;
    return memcmp(a->token + a->offset[0], b->token + b->offset[0], n_bytes) ==
           0;
}

/* Makes b->needs, unless both sides have too many different set sizes; then
 * sets *is_possible to 0. */
static oj_status compute_common_needed_by_sizes(struct similar_batch *b,
                                                int *is_possible,
                                                struct oj_error *err)
{
    const struct oj_text_condition *own = b->self->shared.args.relation.similar;
    int64_t n = b->input->n_classes;
    *is_possible = n * b->self->side.n_classes <= MOST_NEEDS;
    if (!*is_possible)
        return OJ_OK;
    OJ_NEW_ZEROED(b->needs, n, err);
    for (int64_t c = 0; c < n; c++)
        OJ_TRY(oj_similar_needed_tokens_make(
            b->self, own, b->input->class_size[c], &b->needs[c], err));
    return OJ_OK;
}

static oj_status store_pair(const struct similar_batch *b, int thread,
                            int64_t row, int64_t feature, int64_t common,
                            struct oj_error *err)
{
    const struct oj_row_index *shared = &b->self->shared;
    struct oj_answers *answers = &shared->answers[thread];
    if (!oj_pair_filter_accepts(&shared->filter, row, feature))
        return OJ_OK;
    OJ_TRY(oj_answers_reserve(answers, 1, err));
    oj_answers_append_pair(
        answers, (int32_t)row, (int32_t)feature,
        oj_negated_text_similarity(shared, &b->sides, row, feature, common));
    return OJ_OK;
}

oj_status oj_similar_store_both_pairs(struct similar_batch *b, int thread,
                                      int64_t row, int64_t feature,
                                      int64_t common, struct oj_error *err)
{
    OJ_TRY(store_pair(b, thread, row, feature, common, err));
    return b->is_self && row != feature
               ? store_pair(b, thread, feature, row, common, err)
               : OJ_OK;
}

/* Sets *pay to 1 if bitmaps cost less than lists. The constants are seconds on
 * one core, measured on publication titles with 2-grams: per entry compared,
 * per word of a pair, and per pair whose tokens are counted. */
static oj_status are_bitmaps_less_work_than_lists(const struct similar_batch *b,
                                                  int *pay,
                                                  struct oj_error *err)
{
    const double entry_s = 1e-9, word_s = 0.06e-9, count_s = 100e-9;
    struct similar_bitmap_work work;
    double entries = oj_similar_estimate_list_work(b), lists_s, bitmaps_s;
    *pay = 0;
    if (entries * entry_s < LEAST_CHOICE_S)
    {
        snprintf(b->stats->choice, sizeof b->stats->choice,
                 "by lists, %.3g entries: too few to estimate bitmaps",
                 entries);
        return OJ_OK;
    }
    OJ_TRY(oj_similar_estimate_bitmap_work(b, &work, err));
    lists_s = entries * (entry_s + work.near_bits * count_s);
    bitmaps_s =
        work.n_pairs * (work.n_words_read * word_s + work.near * count_s);
    *pay = bitmaps_s < lists_s;
    snprintf(b->stats->choice, sizeof b->stats->choice,
             "by %s; lists: %.3g entries, %.2g s; %s bitmaps of %d bits: "
             "%.3g pairs, %.2g s, on one thread",
             *pay ? "bitmaps" : "lists", entries, lists_s,
             b->self->side.n_tokens > 64 * (int64_t)work.n_words ? "hashed"
                                                                 : "exact",
             64 * work.n_words, work.n_pairs, bitmaps_s);
    return OJ_OK;
}

static oj_status join_by_lists_or_bitmaps(struct similar_batch *b,
                                          struct oj_error *err)
{
    int pay = b->self->way == OJ_BY_BITMAPS;
    if (!pay && !b->is_self)
        OJ_TRY(oj_similar_side_list_prefix_tokens(
            &b->own, b->self->shared.args.relation.similar,
            b->self->side.n_tokens, err));
    if (b->self->way == OJ_BY_LESS_WORK)
        OJ_TRY(are_bitmaps_less_work_than_lists(b, &pay, err));
    return pay ? oj_similar_join_bitmaps(b, err)
               : oj_similar_join_lists(b, err);
}

static oj_status join_all_pairs_above_threshold(struct similar_batch *b,
                                                int *is_possible,
                                                struct oj_error *err)
{
    oj_status status = compute_common_needed_by_sizes(b, is_possible, err);
    b->near = oj_token_planes_kernel();
    if (status == OJ_OK && *is_possible)
        status = join_by_lists_or_bitmaps(b, err);
    for (int64_t c = 0; b->needs != NULL && c < b->input->n_classes; c++)
        oj_similar_needed_tokens_free(&b->needs[c]);
    oj_free(b->needs);
    return status;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status join_rows(struct similar_batch *b, struct oj_matches *out,
                           struct oj_error *err)
{
    struct similar_index *self = b->self;
    struct oj_row_index *shared = &self->shared;
    int is_done = 0, takes_all = shared->args.relation.k == OJ_EVERY_PAIR;
    double start = oj_clock_seconds();
    OJ_TRY(oj_similar_sides_make(shared, &b->sides, err));
    b->worker = shared->worker;
    for (int t = 0; t < shared->n_threads; t++)
        b->worker[t].n_open = 0;
    b->is_self =
        takes_all && b->sides.input.n_rows > 0 &&
        have_sides_equal_token_sets(&b->sides.input, &b->sides.join_side);
    b->input = b->is_self ? &self->side : &b->own;
    if (!b->is_self)
        OJ_TRY(oj_similar_side_sort_by_size(&b->sides.input, &b->own, err));
    b->n = b->input->n_classes > 0 ? b->input->class_start[b->input->n_classes]
                                   : 0;
    if (b->n > 0 && takes_all)
        OJ_TRY(join_all_pairs_above_threshold(b, &is_done, err));
    b->stats->refine_s += oj_clock_seconds() - start;
    shared->n_rows = is_done ? 0 : b->n;
    return oj_row_batch_join(shared, out, b->stats, err);
}

static oj_status join_similar(struct oj_index *wrapped,
                              const struct oj_flat *input,
                              struct oj_matches *out, struct oj_stats *stats,
                              struct oj_error *err)
{
    struct similar_index *self = (void *)wrapped;
    struct similar_batch b = {.self = self, .stats = stats};
    oj_status status;
    self->batch = &b;
    OJ_TRY(oj_row_batch_open(&self->shared, input, err));
    status = join_rows(&b, out, err);
    oj_similar_side_free(&b.own);
    return status;
}

static void free_worker(struct oj_row_worker *worker)
{
    struct similar_worker *w = (void *)worker;
    for (int i = 0; i < OJ_SIMILAR_ROUNDS; i++)
        oj_similar_needed_tokens_free(&w->needs[i]);
    oj_free(w->word);
    oj_free(w->near);
    oj_free(w->class);
}

static const struct oj_row_method by_prefixes = {
    .worker_size = sizeof(struct similar_worker),
    .row_of = row_at_place_by_size,
    .search = search_row,
    .free_worker = free_worker};

static oj_status build_similar_index(struct oj_index *wrapped,
                                     const struct oj_index_args *args,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct similar_index *self =
        oj_row_index_begin(wrapped, &by_prefixes, args);
    struct similar_side *side = &self->side;
    self->way = (enum similar_way)args->engine->variant;
    if (args->join_side->n_features == 0)
        return OJ_OK;
    if (args->join_side->n_texts < args->relation.n_similar)
        return oj_fail(err, OJ_ERR_ARG,
                       "op similar compares texts of both sides, and the join "
                       "side has none: name its columns in similar");
    if (args->relation.k < OJ_EVERY_PAIR)
        OJ_TRY(oj_similar_side_group_equal_sets(side, args, err));
    OJ_TRY(oj_similar_side_sort_by_size(&args->join_side->texts[0], side, err));
    OJ_TRY(oj_similar_side_list_prefix_tokens(
        side, args->relation.similar, find_end_of_token_numbers(side->sets),
        err));
    stats->index_bytes +=
        side->offset[2 * side->n_tokens] * (int64_t)sizeof *side->entry +
        2 * side->n_tokens * (int64_t)sizeof *side->offset +
        oj_equal_groups_bytes(&side->groups);
    return OJ_OK;
}

/* Returns the estimated number of list entries that a row reads, if rows are
 * like the join side; uses a sample of its features. Returns 0 if memory runs
 * out. */
static double estimate_list_entries(const struct oj_text_condition *condition,
                                    const struct oj_token_sets *sets, int64_t n)
{
    int64_t step = n / MOST_EXPECTED + 1, n_tried = 0;
    uint32_t n_tokens = 0, *count;
    double sum = 0.0;
    for (int64_t row = 0; row < n; row += step)
    {
        int64_t end = sets->offset[row + 1];
        if (end > sets->offset[row] && sets->token[end - 1] >= n_tokens)
            n_tokens = sets->token[end - 1] + 1;
    }
    count = oj_calloc(n_tokens, sizeof *count);
    for (int64_t row = 0; count != NULL && row < n; row += step, n_tried++)
    {
        int64_t first = sets->offset[row], size = sets->size[row];
        int64_t unknown = size - (sets->offset[row + 1] - first);
        for (int64_t t =
                 size > 0 ? oj_similar_prefix_length(condition, size) - unknown
                          : 0;
             t > 0; t--)
        {
            /* Each entry is compared with all earlier ones twice: as row and as
             * feature. */
            sum += 2.0 * count[sets->token[first + t - 1]]++ + 1.0;
        }
    }
    oj_free(count);
    return n_tried > 0 ? sum / (double)n_tried * (double)step : 0.0;
}

/* Estimates the seconds of a join. Sets *cpu_s, for one core, to a cost per
 * feature of both sides plus the lower cost of two ways: per entry of the token
 * lists, or per pair by bitmaps. Sets *gpu_s to a cost per feature plus a cost
 * per pair. */
static void estimate_cpu_and_gpu_seconds(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         double rows, double *cpu_s,
                                         double *gpu_s)
{
    double n = (double)join_side->n_features;
    double pairs = rows * n, entries = 0.0;
    struct oj_text_condition condition = relation->similar[0];
    int is_best = relation->k < OJ_EVERY_PAIR;
    if (is_best && condition.numerator * 10 < condition.denominator * 6)
    {
        condition.numerator = 6; /* a threshold of 6 / 10, at which most rows
                                    have k pairs */
        condition.denominator = 10;
    }
    if (join_side->n_texts > 0)
        entries = estimate_list_entries(&condition, join_side->texts,
                                        join_side->n_features);
    entries *= rows;
    *cpu_s =
        (rows + n) * 0.2e-6 +
        (entries * 1e-9 < pairs * 0.1e-9 ? entries * 1e-9 : pairs * 0.1e-9);
    *gpu_s = (rows + n) * 0.1e-6 + pairs * (is_best ? 12e-12 : 4e-12);
}

static const struct oj_engine_cost cost = {.expect =
                                               estimate_cpu_and_gpu_seconds};

#define WAY(way, text)                                                         \
    {                                                                          \
        .name = text, .supports = oj_similar_supports_text_join,               \
        .index_size = sizeof(struct similar_index),                            \
        .build = build_similar_index, .join = join_similar,                    \
        .free_side = free_similar_index, .free_batches = oj_row_batches_free,  \
        .set_options = oj_row_set_options, .points_cost = &cost,               \
        .variant = way                                                         \
    }

const struct oj_engine oj_cpu_similar =
    WAY(OJ_BY_LESS_WORK,
        "prefixes or bitmaps of token sets, whichever is less work");
const struct oj_engine oj_cpu_similar_lists =
    WAY(OJ_BY_LISTS, "prefixes of token sets");
const struct oj_engine oj_cpu_similar_bitmaps =
    WAY(OJ_BY_BITMAPS, "bitmaps of token sets");
