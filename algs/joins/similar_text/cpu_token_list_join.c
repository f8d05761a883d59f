/* Joins by prefix lists, token by token: the list of a token stays in the cache
 * while all rows with this token are joined with it, and bitmaps are compared
 * eight at a time. A pair is only stored when its first common token is joined.
 * If the batch is the join side itself, each pair is found from its larger set,
 * and only the first list of a token is read for the features. The sets of
 * pairs that bitmaps do not exclude are scattered in memory, so those of many
 * pairs are prefetched together (for city names this saves a third of the
 * time). */
#include "cpu_similar.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"

#include <string.h>

enum
{
    TOKENS_AT_ONCE = 16, /* tokens per task */
    SAMPLED_ROWS = 1 << 10
};

/* The list of features that have a token in their prefix. */
struct feature_list
{
    const struct similar_entry *entry;
    int64_t n_near, n; /* n_near: number of entries of the token's first list,
                          which serve partners of any size; n: number of entries
                          of both lists */
    struct oj_token_planes planes;
};

/* ---- pairs that bitmaps do not decide ------------------------------------ */

static oj_status count_tokens_of_pairs_in_doubt(struct similar_batch *b,
                                                int thread,
                                                struct oj_error *err)
{
    struct similar_worker *w = &b->worker[thread];
    const struct oj_token_sets *in = &b->sides.input,
                               *join = &b->sides.join_side;
    int64_t n = w->n_open;
    w->n_open = 0;
    for (int64_t i = 0; i < n; i++)
    {
        __builtin_prefetch(&in->offset[w->open[i].row]);
        __builtin_prefetch(&join->offset[w->open[i].feature]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        __builtin_prefetch(&in->token[in->offset[w->open[i].row]]);
        __builtin_prefetch(&join->token[join->offset[w->open[i].feature]]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        const struct similar_candidate *c = &w->open[i];
        int64_t common =
            oj_similar_count_common(in, c->row, join, c->feature, c->token);
        if (common >= c->common)
            OJ_TRY(oj_similar_store_both_pairs(b, thread, c->row, c->feature,
                                               common, err));
    }
    return OJ_OK;
}

/* ---- a token ------------------------------------------------------------- */

/* Gathers the bitmaps of the token's list in adjacent memory. */
static oj_status gather_bitmaps_of_token_list(const struct similar_batch *b,
                                              struct similar_worker *w,
                                              int64_t token,
                                              struct feature_list *list,
                                              struct oj_error *err)
{
    const struct similar_side *side = &b->self->side;
    const int64_t *offset = side->offset + 2 * token;
    const struct similar_entry *e = side->entry + offset[0];
    int64_t n = offset[b->is_self ? 1 : 2] - offset[0];
    OJ_ROOM(w->word, 0, 2 * n, w->cap_word, err);
    OJ_ROOM(w->class, 0, n, w->cap_class, err);
    OJ_ROOM(w->near, 0, n / OJ_PLANE_BLOCK + 1, w->cap_near, err);
    for (int64_t i = 0; i < n; i++)
    {
        w->word[i] = e[i].bits.word[0];
        w->word[n + i] = e[i].bits.word[1];
        w->class[i] = e[i].class;
    }
    list->entry = e;
    list->n_near = offset[1] - offset[0];
    list->n = n;
    list->planes = (struct oj_token_planes){2, n, w->word, w->class};
    return OJ_OK;
}

/* Returns the first position in [from, n) whose class is at least `least`; n if
 * there is none. Classes ascend. */
OJ_INLINE int64_t first_position_of_class(const uint32_t *class, int64_t from,
                                          int64_t n, int64_t least)
{
    while (from < n)
    {
        int64_t middle = (from + n) / 2;
        if (class[middle] < least)
            from = middle + 1;
        else
            n = middle;
    }
    return from;
}

/* Joins a row with the entries low .. high - 1 of a list. */
OJ_INLINE oj_status join_entries(struct similar_batch *b, int thread,
                                 const struct similar_entry *row,
                                 uint32_t token,
                                 const struct feature_list *list, int64_t low,
                                 int64_t high, struct oj_error *err)
{
    struct similar_worker *w = &b->worker[thread];
    const struct similar_needs *needs = &b->needs[row->class];
    if (low >= high)
        return OJ_OK;
    w->shared.n_candidates += high - low;
    b->near(&list->planes, low, high - low, row->bits.word, needs->distance,
            needs->most_distance, w->near);
    for (int64_t i = 0; i * OJ_PLANE_BLOCK < high - low; i++)
    {
        for (uint64_t near = w->near[i]; near != 0; near &= near - 1)
        {
            const struct similar_entry *e =
                list->entry + low + i * OJ_PLANE_BLOCK + __builtin_ctzll(near);
            if (w->n_open == OJ_SIMILAR_AT_ONCE)
                OJ_TRY(count_tokens_of_pairs_in_doubt(b, thread, err));
            w->open[w->n_open++] = (struct similar_candidate){
                row->row, e->row, token, needs->common[e->class]};
        }
    }
    return OJ_OK;
}

/* Returns the first class whose sets are too large to be similar to the row if
 * this token is the first common one. */
OJ_INLINE int64_t first_class_beyond_row(const struct similar_batch *b,
                                         const struct similar_entry *row)
{
    const struct similar_needs *needs = &b->needs[row->class];
    int64_t left = b->input->class_size[row->class] - row->place;
    return oj_similar_first_class_needing_more(
        needs, needs->first, b->is_self ? needs->above : needs->end, left);
}

/* Joins n rows, sorted by size, with the features of a list. */
static oj_status join_rows_with_list(struct similar_batch *b, int thread,
                                     const struct similar_entry *row, int64_t n,
                                     uint32_t token,
                                     const struct feature_list *list,
                                     struct oj_error *err)
{
    const uint32_t *class = list->planes.class;
    int64_t low = 0, own = 0;
    for (const struct similar_entry *last = row + n; row < last; row++)
    {
        const struct similar_needs *needs = &b->needs[row->class];
        int64_t end_class = first_class_beyond_row(b, row), end, from;
        if (end_class <= needs->first)
            continue;
        while (low < list->n_near && class[low] < needs -> first)
            low++;
        end = first_position_of_class(class, low, list->n_near, end_class);
        if (b->is_self) /* Joins only entries up to the row's own, so that each
                           pair is found once. */
        {
            while (own < list->n_near &&
                   (class[own] < row -> class ||
                                            (class[own] == row->class &&
                                             list->entry[own].row <= row->row)))
                own++;
            end = end < own ? end : own;
        }
        OJ_TRY(join_entries(b, thread, row, token, list, low, end, err));
        if (b->is_self || end_class <= needs->above)
            continue;
        from =
            first_position_of_class(class, list->n_near, list->n, needs->above);
        OJ_TRY(join_entries(
            b, thread, row, token, list, from,
            first_position_of_class(class, from, list->n, end_class), err));
    }
    return OJ_OK;
}

static oj_status join_token(struct similar_batch *b, int thread, int64_t token,
                            struct oj_error *err)
{
    const int64_t *offset = b->input->offset + 2 * token;
    struct feature_list list;
    if (offset[2] == offset[0])
        return OJ_OK;
    OJ_TRY(
        gather_bitmaps_of_token_list(b, &b->worker[thread], token, &list, err));
    for (int i = 0; i < 2 && list.n > 0; i++)
        OJ_TRY(join_rows_with_list(b, thread, b->input->entry + offset[i],
                                   offset[i + 1] - offset[i], (uint32_t)token,
                                   &list, err));
    return OJ_OK;
}

static oj_status join_tokens(int64_t task, int thread, void *user,
                             struct oj_error *err)
{
    struct similar_batch *b = user;
    int64_t first = task * TOKENS_AT_ONCE, end = first + TOKENS_AT_ONCE;
    OJ_TRY(oj_check_cancel(b->self->shared.args.options.cancel, err));
    for (int64_t t = first; t < end && t < b->input->n_tokens; t++)
        OJ_TRY(join_token(b, thread, t, err));
    return count_tokens_of_pairs_in_doubt(b, thread, err);
}

/* ---- a batch ------------------------------------------------------------- */

double oj_similar_estimate_list_work(const struct similar_batch *b)
{
    const struct similar_side *side = &b->self->side;
    const int64_t *offset = b->input->offset;
    int64_t step = offset[2 * side->n_tokens] / SAMPLED_ROWS + 1;
    double sum = 0;
    int64_t next = 0;
    for (int64_t token = 0; token < side->n_tokens; token++)
    {
        int64_t low = side->offset[2 * token];
        int64_t n = side->offset[2 * token + (b->is_self ? 1 : 2)] - low;
        const struct similar_entry *e = side->entry + low;
        for (; next < offset[2 * token + 2]; next += step)
        {
            const struct similar_entry *row = &b->input->entry[next];
            int64_t first = b->needs[row->class].first,
                    end = first_class_beyond_row(b, row);
            /* Treats the two lists of a token as one, a slight overestimate. */
            if (end > first)
                sum += (double)(oj_similar_first_entry_of_class(e, n, end) -
                                oj_similar_first_entry_of_class(e, n, first));
        }
    }
    return sum * (double)step;
}

oj_status oj_similar_join_lists(struct similar_batch *b, struct oj_error *err)
{
    int64_t n = (b->input->n_tokens + TOKENS_AT_ONCE - 1) / TOKENS_AT_ONCE;
    return oj_parallel_try(b->self->shared.n_threads, n, 1, join_tokens, b,
                           err);
}
