/* Token by token: a list and the rows that look for it stay in the cache, and
 * its bits are compared eight at a time.  A pair is met at its first common
 * token alone.  Where the batch is the join side itself, each pair is met from
 * its larger set, and only the first lists are read.
 *
 *  probe    [ row | size | end ]   by token, then size; end: the first class
 *                                  whose sets the row cannot reach from here */
#include "cpu_similar.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_threads.h"

#include <string.h>

enum
{
    TOKENS_AT_ONCE = 16, /* on one thread */
    SAMPLED_PROBES = 1 << 10
};

struct similar_probe
{
    uint32_t row;
    int32_t needs; /* place of those of its size */
    int32_t end;
};

struct token_join
{
    struct similar_batch *b;
    const struct similar_probes *probes;
};

/* ---- the rows by token --------------------------------------------------- */

/* Counts the probes of each token, or fills them in, by rising size. */
static void walk_rows(const struct similar_batch *b,
                      struct similar_probes *probes, int fills)
{
    const struct oj_token_sets *in = &b->rows.input;
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t row = b->order[i].value;
        const struct similar_needs *needs = &b->needs[b->place[i]];
        int64_t end = b->is_self ? needs->above : needs->end;
        int64_t left =
            in->offset[row + 1] - in->offset[row]; /* from token on */
        for (const uint32_t *token = in->token + in->offset[row]; left > 0;
             token++, left--)
        {
            int64_t at;
            end = oj_similar_class_beyond(needs, needs->first, end, left);
            if (end <= needs->first)
                break;
            if (*token >= b->self->n_tokens)
                continue;
            at = probes->offset[*token]++;
            if (!fills)
                continue;
            probes->probe[at].row = (uint32_t)row;
            probes->probe[at].needs = b->place[i];
            probes->probe[at].end = (int32_t)end;
        }
    }
}

oj_status oj_similar_probes_make(const struct similar_batch *b,
                                 struct similar_probes *out,
                                 struct oj_error *err)
{
    int64_t n_tokens = b->self->n_tokens, sum = 0;
    OJ_NEW_ZEROED(out->offset, n_tokens + 1, err);
    walk_rows(b, out, 0);
    for (int64_t i = 0; i <= n_tokens; i++)
    {
        int64_t count = out->offset[i];
        out->offset[i] = sum;
        sum += count;
    }
    OJ_NEW(out->probe, sum, err);
    walk_rows(b, out, 1);
    memmove(out->offset + 1, out->offset,
            (size_t)n_tokens * sizeof *out->offset);
    out->offset[0] = 0;
    return OJ_OK;
}

void oj_similar_probes_free(struct similar_probes *probes)
{
    oj_free(probes->offset);
    oj_free(probes->probe);
}

/* ---- a token ------------------------------------------------------------- */

/* The bits of n entries side by side. */
static oj_status spread(struct similar_worker *w, const struct similar_entry *e,
                        int64_t n, struct oj_token_planes *planes,
                        struct oj_error *err)
{
    OJ_ROOM(w->word, 0, 2 * n, w->cap_word, err);
    OJ_ROOM(w->class, 0, n, w->cap_class, err);
    OJ_ROOM(w->near, 0, n / OJ_PLANE_BLOCK + 1, w->cap_near, err);
    for (int64_t i = 0; i < n; i++)
    {
        w->word[i] = e[i].bits.word[0];
        w->word[n + i] = e[i].bits.word[1];
        w->class[i] = e[i].class;
    }
    planes->n_words = 2;
    planes->stride = n;
    planes->word = w->word;
    planes->class = w->class;
    return OJ_OK;
}

/* The first of n classes, ascending, that is at least so. */
OJ_INLINE int64_t find_class(const uint32_t *class, int64_t from, int64_t n,
                             int64_t least)
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

/* The pairs of a row with entries from low to high of a list. */
static oj_status join_entries(struct token_join *t, int thread, int64_t row,
                              const struct similar_needs *needs, uint32_t token,
                              const struct oj_token_planes *planes,
                              const struct similar_entry *entry, int64_t low,
                              int64_t high, struct oj_error *err)
{
    struct similar_worker *w = &t->b->worker[thread];
    if (low >= high)
        return OJ_OK;
    w->n_candidates += high - low;
    t->b->near(planes, low, high - low, t->b->rows.input.bits[row].word,
               needs->distance, w->near);
    for (int64_t i = 0; i * OJ_PLANE_BLOCK < high - low; i++)
    {
        for (uint64_t near = w->near[i]; near != 0; near &= near - 1)
        {
            const struct similar_entry *e =
                entry + low + i * OJ_PLANE_BLOCK + __builtin_ctzll(near);
            int64_t common =
                oj_similar_common(&t->b->rows.input, row, &t->b->rows.join_side,
                                  e->feature, token);
            if (common >= needs->common[e->class])
                OJ_TRY(oj_similar_put_both(t->b, thread, row, e->feature,
                                           common, err));
        }
    }
    return OJ_OK;
}

static oj_status join_token(int64_t token, int thread, void *user,
                            struct oj_error *err)
{
    struct token_join *t = user;
    const struct similar_index *self = t->b->self;
    struct oj_token_planes planes;
    const struct similar_entry *entry = self->entry + self->offset[2 * token];
    int64_t n_near = self->offset[2 * token + 1] - self->offset[2 * token];
    int64_t n = self->offset[2 * token + 2] - self->offset[2 * token];
    int64_t low = 0, own = 0;
    const struct similar_probe *p = t->probes->probe + t->probes->offset[token];
    const struct similar_probe *p_end =
        t->probes->probe + t->probes->offset[token + 1];
    if (t->b->is_self)
        n = n_near;
    if (p == p_end || n == 0)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(self->args.options.cancel, err));
    OJ_TRY(spread(&t->b->worker[thread], entry, n, &planes, err));
    for (; p < p_end; p++)
    {
        const struct similar_needs *needs = &t->b->needs[p->needs];
        int64_t end;
        while (low < n_near && planes.class[low] < needs -> first)
            low++;
        end = find_class(planes.class, low, n_near, p->end);
        if (t->b->is_self) /* up to the row itself */
        {
            while (own < n_near &&
                   (planes.class[own] <
                        needs -> above - 1 ||
                                     (planes.class[own] == needs->above - 1 &&
                                      entry[own].feature <= p->row)))
                own++;
            end = end < own ? end : own;
        }
        OJ_TRY(join_entries(t, thread, p->row, needs, (uint32_t)token, &planes,
                            entry, low, end, err));
        if (p->end > needs->above && !t->b->is_self)
        {
            int64_t from = find_class(planes.class, n_near, n, needs->above);
            OJ_TRY(join_entries(
                t, thread, p->row, needs, (uint32_t)token, &planes, entry, from,
                find_class(planes.class, from, n, p->end), err));
        }
    }
    return OJ_OK;
}

/* ---- a batch ------------------------------------------------------------- */

static int64_t find_entry(const struct similar_entry *e, int64_t low,
                          int64_t high, int64_t class)
{
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (e[middle].class < class)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double oj_similar_list_work(const struct similar_batch *b,
                            const struct similar_probes *probes)
{
    const struct similar_index *self = b->self;
    int64_t n = probes->offset[self->n_tokens], step = n / SAMPLED_PROBES + 1;
    double sum = 0;
    int64_t next = 0;
    for (int64_t token = 0; token < self->n_tokens; token++)
    {
        const struct similar_entry *e = self->entry;
        int64_t low = self->offset[2 * token];
        int64_t high = self->offset[2 * token + (b->is_self ? 1 : 2)];
        for (; next < probes->offset[token + 1]; next += step)
        {
            const struct similar_probe *p = &probes->probe[next];
            const struct similar_needs *needs = &b->needs[p->needs];
            /* the two lists as one, which is not much more */
            sum += (double)(find_entry(e, low, high, p->end) -
                            find_entry(e, low, high, needs->first));
        }
    }
    return sum * (double)step;
}

oj_status oj_similar_join_lists(struct similar_batch *b,
                                const struct similar_probes *probes,
                                struct oj_error *err)
{
    struct token_join t = {b, probes};
    return oj_parallel_try(b->rows.n_threads, b->self->n_tokens, TOKENS_AT_ONCE,
                           join_token, &t, err);
}
