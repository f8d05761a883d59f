/* Pairs of similar texts, by prefixes.
 *
 *  list     of each token, the join features that have it among their first
 *           tokens, by rising size
 *  entry    [ bits | feature | class ]    class: of features with one size
 *
 * A set of a tokens that has o in common with another has one of them among any
 * a - o + 1 of its own, so among its a - o + 1 rarest.  Of each entry the bits
 * tell that most are no pairs; the rest is counted, at the pair's first common
 * token alone.  With k, rows are asked with falling thresholds until k pairs
 * are found.
 *
 * Source: Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007 (prefixes,
 * sizes); Sandes, Teodoro, Melo 2020 (bits). */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_threads.h"
#include "../base/cpu_lane_loops.h"
#include "../base/oj_radix.h"
#include "similar_rows.h"

#include <limits.h>
#include <string.h>

enum
{
    SHORT_LIST = 48,   /* is read from its beginning */
    ROWS_AT_ONCE = 64, /* on one thread */
    N_ROUNDS = 10      /* thresholds .9, .8 .. .1, and the join's own */
};

struct similar_entry
{
    struct oj_token_bits bits;
    uint32_t feature, class;
};

struct similar_index
{
    struct oj_index_args args;
    int64_t n_classes, n_lists;
    int32_t *class_size; /* [n_classes] ascending */
    int64_t *offset;     /* [n_lists + 1] into entry, by token */
    struct similar_entry *entry;
};

/* What sets of one size need of those of each class; of one threshold. */
struct similar_needs
{
    int64_t size;      /* 0: nothing yet */
    int64_t first;     /* class that is large enough */
    int64_t end;       /* and the first that is too large */
    int32_t *common;   /* [n_classes] tokens in common */
    int32_t *distance; /* [n_classes] bits that may differ; -1: no pair */
};

struct similar_worker
{
    struct similar_needs needs[N_ROUNDS];
    int64_t n_candidates;
    char apart[64]; /* keeps the counts of two threads in two cache lines */
};

struct similar_batch
{
    struct similar_index *self;
    struct oj_similar_rows rows;
    struct oj_keyed *order, *room; /* [input rows] by size; their memory */
    struct similar_worker *worker; /* [n_threads] */
};

/* --- the join side -------------------------------------------------------- */

static void free_side(struct oj_index *wrapped)
{
    struct similar_index *self = (void *)wrapped;
    oj_free(self->class_size);
    oj_free(self->offset);
    oj_free(self->entry);
}

/* Nothing outlives its batch. */
static void free_batches(struct oj_index *wrapped)
{
    (void)wrapped;
}

/* The rows that have tokens, by rising size; *n of them, in *order, which is
 * one of the two arrays. */
static oj_status sort_rows(const struct oj_token_sets *sets,
                           struct oj_keyed **first, struct oj_keyed **second,
                           int64_t *n, struct oj_error *err)
{
    struct oj_keyed *sorted;
    int64_t at = 0;
    OJ_NEW(*first, sets->n_rows, err);
    OJ_NEW(*second, sets->n_rows, err);
    for (int64_t row = 0; row < sets->n_rows; row++)
    {
        struct oj_keyed keyed = {(uint64_t)sets->size[row], row};
        if (sets->size[row] > 0)
            (*first)[at++] = keyed;
    }
    sorted = oj_radix_sort(*first, *second, at);
    if (sorted == *second)
    {
        *second = *first;
        *first = sorted;
    }
    *n = at;
    return OJ_OK;
}

/* First tokens of a set of so many that are enough for any partner. */
static int64_t prefix_of(const struct oj_text_condition *condition,
                         int64_t size)
{
    int64_t low = 1, high = size; /* the smallest partner */
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (oj_text_least_common(condition, middle, size) <= middle)
            high = middle;
        else
            low = middle + 1;
    }
    return size - oj_text_least_common(condition, low, size) + 1;
}

static oj_status make_classes(struct similar_index *self,
                              const struct oj_keyed *order, int64_t n,
                              struct oj_error *err)
{
    int64_t n_classes = 0;
    for (int64_t i = 0; i < n; i++)
        n_classes += i == 0 || order[i].key != order[i - 1].key;
    OJ_NEW(self->class_size, n_classes, err);
    for (int64_t i = 0; i < n; i++)
    {
        if (i == 0 || order[i].key != order[i - 1].key)
            self->class_size[self->n_classes++] = (int32_t)order[i].key;
    }
    return OJ_OK;
}

/* Walks the first tokens of all features: counts those of each list, or fills
 * the lists, each from its offset on. */
static void walk_prefixes(struct similar_index *self,
                          const struct oj_token_sets *sets,
                          const struct oj_keyed *order, int64_t n, int fills)
{
    const struct oj_text_condition *condition = self->args.relation.similar;
    int64_t prefix = 0, class = -1;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t row = order[i].value;
        const uint32_t *token = sets->token + sets->offset[row];
        int64_t n_unknown =
            sets->size[row] - (sets->offset[row + 1] - sets->offset[row]);
        if (i == 0 || order[i].key != order[i - 1].key)
        {
            class ++;
            prefix = prefix_of(condition, (int64_t)order[i].key);
        }
        /* tokens without a number are the rarest, and have no list */
        for (int64_t t = 0; t < prefix - n_unknown; t++)
        {
            int64_t at = self->offset[token[t]]++;
            if (!fills)
                continue;
            self->entry[at].bits = sets->bits[row];
            self->entry[at].feature = (uint32_t)row;
            self->entry[at].class = (uint32_t) class;
        }
    }
}

static oj_status make_lists(struct similar_index *self,
                            const struct oj_keyed *order, int64_t n,
                            struct oj_error *err)
{
    const struct oj_token_sets *sets = &self->args.join_side->texts[0];
    int64_t n_lists = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t end = sets->offset[order[i].value + 1];
        if (end > sets->offset[order[i].value] &&
            sets->token[end - 1] >= n_lists)
            n_lists = (int64_t)sets->token[end - 1] + 1;
    }
    OJ_NEW_ZEROED(self->offset, n_lists + 1, err);
    self->n_lists = n_lists;
    OJ_TRY(make_classes(self, order, n, err));
    walk_prefixes(self, sets, order, n, 0);
    for (int64_t t = 0; t <= n_lists; t++)
    {
        int64_t count = self->offset[t];
        self->offset[t] = sum;
        sum += count;
    }
    OJ_NEW(self->entry, sum, err);
    walk_prefixes(self, sets, order, n, 1);
    memmove(self->offset + 1, self->offset,
            (size_t)n_lists * sizeof *self->offset);
    self->offset[0] = 0;
    return OJ_OK;
}

static oj_status build(struct oj_index *wrapped,
                       const struct oj_index_args *args, struct oj_stats *stats,
                       struct oj_error *err)
{
    struct similar_index *self = (void *)wrapped;
    struct oj_keyed *order = NULL, *room = NULL;
    double start = oj_clock_seconds();
    int64_t n = 0;
    oj_status status = OJ_OK;
    self->args = *args;
    if (args->join_side->n_features == 0)
        return OJ_OK;
    if (args->join_side->n_texts < args->relation.n_similar)
        return oj_fail(err, OJ_ERR_ARG, "the join side has no texts");
    status = sort_rows(&args->join_side->texts[0], &order, &room, &n, err);
    if (status == OJ_OK)
        status = make_lists(self, order, n, err);
    oj_free(order);
    oj_free(room);
    OJ_TRY(status);
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes +=
        self->offset[self->n_lists] * (int64_t)sizeof *self->entry +
        self->n_lists * (int64_t)sizeof *self->offset;
    return OJ_OK;
}

/* --- a row ---------------------------------------------------------------- */

static oj_status make_needs(const struct similar_index *self,
                            const struct oj_text_condition *condition,
                            int64_t size, struct similar_needs *out,
                            struct oj_error *err)
{
    if (out->size == size)
        return OJ_OK;
    if (out->common == NULL)
        OJ_NEW(out->common, self->n_classes, err);
    if (out->distance == NULL)
        OJ_NEW(out->distance, self->n_classes, err);
    out->size = size;
    out->first = self->n_classes;
    out->end = 0;
    for (int64_t c = 0; c < self->n_classes; c++)
    {
        int64_t other = self->class_size[c];
        int64_t most = size < other ? size : other;
        int64_t common = oj_text_least_common(condition, size, other);
        int fits = common <= most;
        out->common[c] = (int32_t)common;
        out->distance[c] = fits ? (int32_t)(size + other - 2 * common) : -1;
        if (fits && c < out->first)
            out->first = c;
        if (fits)
            out->end = c + 1;
    }
    return OJ_OK;
}

/* Tokens in common of two sets whose first one is token; 0: it is another. */
OJ_INLINE int64_t count_common(const uint32_t *a, const uint32_t *a_end,
                               const uint32_t *b, const uint32_t *b_end,
                               uint32_t token)
{
    int64_t n = 0;
    while (*a < token && b < b_end)
    {
        uint32_t one = *a, other = *b;
        if (one == other)
            return 0;
        a += one < other;
        b += other < one;
    }
    while (a < a_end && b < b_end)
    {
        uint32_t one = *a, other = *b;
        n += one == other;
        a += one <= other;
        b += other <= one;
    }
    return n;
}

/* The first entry of a list whose class is at least so. */
OJ_INLINE const struct similar_entry *find_class(const struct similar_entry *e,
                                                 int64_t n, int64_t class)
{
    while (n > 0)
    {
        int64_t half = n / 2;
        if (e[half].class < class)
        {
            e += half + 1;
            n -= half + 1;
        }
        else
            n = half;
    }
    return e;
}

/* Puts the pairs of row with a list, those of classes before end. */
OJ_INLINE oj_status read_list(struct similar_batch *b, int thread, int64_t row,
                              uint32_t token, const struct similar_needs *needs,
                              int64_t end, struct oj_error *err)
{
    const struct similar_index *self = b->self;
    const struct oj_similar_rows *rows = &b->rows;
    const struct oj_token_sets *in = &rows->input, *join = &rows->join_side;
    const uint32_t *tokens = in->token + in->offset[row];
    const uint32_t *tokens_end = in->token + in->offset[row + 1];
    const struct oj_token_bits bits = in->bits[row];
    const struct similar_entry *e = self->entry + self->offset[token];
    const struct similar_entry *last = self->entry + self->offset[token + 1];
    if (last - e > SHORT_LIST)
    {
        e = find_class(e, last - e, needs->first);
        last = find_class(e, last - e, end);
    }
    b->worker[thread].n_candidates += last - e;
    for (; e < last; e++)
    {
        int32_t feature = (int32_t)e->feature;
        int64_t common;
        if (__builtin_popcountll(e->bits.word[0] ^ bits.word[0]) +
                __builtin_popcountll(e->bits.word[1] ^ bits.word[1]) >
            needs->distance[e->class])
            continue;
        if (!oj_pair_may_count(&rows->filter, row, feature))
            continue;
        common = count_common(tokens, tokens_end,
                              join->token + join->offset[feature],
                              join->token + join->offset[feature + 1], token);
        if (common >= needs->common[e->class])
            OJ_TRY(oj_similar_put(rows, thread, row, feature, common, err));
    }
    return OJ_OK;
}

/* Puts all pairs of row by a condition. Tokens that the dictionary has not are
 * the rarest of all, and have no list. */
OJ_COUNT_CLONES static oj_status search_row(struct similar_batch *b, int thread,
                                            int64_t row,
                                            const struct similar_needs *needs,
                                            struct oj_error *err)
{
    const struct oj_token_sets *in = &b->rows.input;
    const uint32_t *token = in->token + in->offset[row];
    int64_t n = in->offset[row + 1] - in->offset[row];
    int64_t left = n, end = needs->end; /* tokens from here on */
    for (int64_t i = 0; i < n; i++, left--)
    {
        while (end > needs->first && needs->common[end - 1] > left)
            end--;
        if (end <= needs->first)
            break;
        if (token[i] < b->self->n_lists)
            OJ_TRY(read_list(b, thread, row, token[i], needs, end, err));
    }
    return OJ_OK;
}

/* The join's own threshold last. */
static oj_status join_row(int64_t i, int thread, void *user,
                          struct oj_error *err)
{
    struct similar_batch *b = user;
    const struct oj_relation *relation = &b->self->args.relation;
    const struct oj_text_condition *own = &relation->similar[0];
    struct oj_ranking *ranking = &b->rows.ranking[thread];
    int64_t row = b->order[i].value, size = b->rows.input.size[row];
    int round = relation->k < OJ_EVERY_PAIR ? 0 : N_ROUNDS - 1;
    OJ_TRY(oj_check_cancel(b->self->args.options.cancel, err));
    for (; round < N_ROUNDS; round++)
    {
        struct oj_text_condition condition = {own->measure,
                                              N_ROUNDS - 1 - round, N_ROUNDS};
        struct similar_needs *needs = &b->worker[thread].needs[round];
        if (round == N_ROUNDS - 1)
            condition = *own;
        else if (condition.numerator * own->denominator <=
                 own->numerator * condition.denominator)
            continue;
        OJ_TRY(make_needs(b->self, &condition, size, needs, err));
        oj_ranking_start(ranking);
        OJ_TRY(search_row(b, thread, row, needs, err));
        oj_ranking_finish(ranking);
        if (ranking->n >= relation->k)
            break;
    }
    return oj_answers_add(&b->rows.answers[thread], row, ranking, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status join_rows(struct similar_batch *b, const struct oj_flat *input,
                           struct oj_matches *out, struct oj_error *err)
{
    int n_threads = b->self->args.options.n_threads;
    int64_t n = 0;
    OJ_TRY(
        oj_similar_rows_open(&b->rows, &b->self->args, input, n_threads, err));
    OJ_NEW_ZEROED(b->worker, n_threads, err);
    if (b->rows.input.n_rows > 0)
        OJ_TRY(sort_rows(&b->rows.input, &b->order, &b->room, &n, err));
    OJ_TRY(oj_parallel_try(n_threads, n, ROWS_AT_ONCE, join_row, b, err));
    return oj_similar_rows_answer(&b->rows, input, out, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct similar_batch b = {.self = (void *)wrapped};
    double start = oj_clock_seconds();
    oj_status status = join_rows(&b, input, out, err);
    for (int t = 0; b.worker != NULL && t < b.rows.n_threads; t++)
    {
        stats->n_candidates += b.worker[t].n_candidates;
        for (int i = 0; i < N_ROUNDS; i++)
        {
            oj_free(b.worker[t].needs[i].common);
            oj_free(b.worker[t].needs[i].distance);
        }
    }
    oj_free(b.worker);
    oj_free(b.order);
    oj_free(b.room);
    oj_similar_rows_close(&b.rows);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

const struct oj_engine oj_cpu_similar = {"prefixes of token sets",
                                         oj_similar_takes,
                                         sizeof(struct similar_index),
                                         build,
                                         join,
                                         free_side,
                                         free_batches,
                                         NULL};
