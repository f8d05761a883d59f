#include "oj_aggregate_held.h"

#include "../../flatten/base/oj_array.h"
#include "oj_aggregate_runs.h"

#include <string.h>

enum
{
    FEW = 24,             /* so many are sorted by insertion */
    KEPT_BYTES = 1 << 20, /* memory that clear leaves in place */
    WORD = 8
};

/* A value in memory: its row, and its number or where it is in the pool. */
struct held_entry
{
    int64_t row;
    uint64_t at;
};

/* In the pool: FID and place (only by place), the number of bytes, and the
 * bytes filled up to whole words. */
struct oj_held
{
    enum oj_held_order order;
    const struct oj_held_files *files;
    struct held_entry *entry;
    int64_t n, cap_entries;
    uint64_t *pool;
    int64_t n_pool, cap_pool; /* words */
    struct oj_runs *runs;     /* NULL: nothing was spilled */

    int64_t next;               /* entry after value, when there are no runs */
    struct oj_held_value value; /* of peek, the same */
    int has_value;
};

oj_status oj_held_open(enum oj_held_order order,
                       const struct oj_held_files *files, struct oj_held **out,
                       struct oj_error *err)
{
    struct oj_held *held = oj_calloc(1, sizeof *held);
    if (held == NULL)
        return oj_fail_nomem(err, 1, sizeof *held);
    held->order = order;
    held->files = files;
    *out = held;
    return OJ_OK;
}

oj_status oj_held_add(struct oj_held *held, const struct oj_held_value *value,
                      struct oj_error *err)
{
    struct held_entry *entry;
    OJ_TRY(oj_reserve(&held->entry, held->n, held->n + 1, &held->cap_entries,
                      sizeof *held->entry, err));
    entry = &held->entry[held->n];
    entry->row = value->row;
    entry->at = value->number;
    if (held->order != OJ_HELD_BY_NUMBER)
    {
        int64_t body = (value->n_bytes + WORD - 1) / WORD;
        uint64_t *word;
        OJ_TRY(oj_reserve(&held->pool, held->n_pool, held->n_pool + 3 + body,
                          &held->cap_pool, WORD, err));
        word = held->pool + held->n_pool;
        entry->at = (uint64_t)held->n_pool;
        if (held->order == OJ_HELD_BY_PLACE)
        {
            *word++ = (uint64_t)value->fid;
            *word++ = (uint64_t)value->place;
        }
        *word++ = (uint64_t)value->n_bytes;
        if (value->n_bytes > 0)
            memcpy(word, value->bytes, (size_t)value->n_bytes);
        held->n_pool = word + body - held->pool;
    }
    held->n++;
    return OJ_OK;
}

int64_t oj_held_bytes(const struct oj_held *held)
{
    return held->n * (int64_t)sizeof *held->entry + held->n_pool * WORD;
}

static struct oj_held_value value_of(const struct oj_held *held,
                                     const struct held_entry *entry)
{
    struct oj_held_value value = {0};
    const uint64_t *word;
    value.row = entry->row;
    value.number = entry->at;
    if (held->order == OJ_HELD_BY_NUMBER)
        return value;
    word = held->pool + entry->at;
    if (held->order == OJ_HELD_BY_PLACE)
    {
        value.fid = (int64_t)*word++;
        value.place = (int64_t)*word++;
    }
    value.n_bytes = (int64_t)*word++;
    value.bytes = (const char *)word;
    return value;
}

/* ---- sorting ------------------------------------------------------------ */

static inline int comes_before(const struct oj_held *held,
                               const struct held_entry *a,
                               const struct held_entry *b)
{
    struct oj_held_value u, v;
    if (a->row != b->row)
        return a->row < b->row;
    if (held->order == OJ_HELD_BY_NUMBER)
        return a->at < b->at;
    u = value_of(held, a);
    v = value_of(held, b);
    return oj_held_compare(held->order, &u, &v) < 0;
}

static inline void swap(struct held_entry *a, struct held_entry *b)
{
    struct held_entry c = *a;
    *a = *b;
    *b = c;
}

static void sort_few(const struct oj_held *held, struct held_entry *e,
                     int64_t n)
{
    for (int64_t i = 1; i < n; i++)
    {
        struct held_entry one = e[i];
        int64_t k = i;
        for (; k > 0 && comes_before(held, &one, &e[k - 1]); k--)
            e[k] = e[k - 1];
        e[k] = one;
    }
}

static void sift_down(const struct oj_held *held, struct held_entry *e,
                      int64_t i, int64_t n)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child)
    {
        if (child + 1 < n && comes_before(held, &e[child], &e[child + 1]))
            child++;
        if (!comes_before(held, &e[i], &e[child]))
            return;
        swap(&e[i], &e[child]);
    }
}

static void sort_by_heap(const struct oj_held *held, struct held_entry *e,
                         int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(held, e, i, n);
    for (int64_t i = n - 1; i > 0; i--)
    {
        swap(&e[0], &e[i]);
        sift_down(held, e, 0, i);
    }
}

static void sort_three(const struct oj_held *held, struct held_entry *a,
                       struct held_entry *b, struct held_entry *c)
{
    if (comes_before(held, b, a))
        swap(a, b);
    if (comes_before(held, c, b))
        swap(b, c);
    if (comes_before(held, b, a))
        swap(a, b);
}

/* Quicksort, in place; after too many steps down, what is left by heap. Equal
 * values are spread over both halves, so that many of them do no harm. */
static void sort(const struct oj_held *held, struct held_entry *e, int64_t n,
                 int depth)
{
    while (n > FEW)
    {
        int64_t i = 0, k = n - 1;
        struct held_entry pivot;
        if (depth-- == 0)
        {
            sort_by_heap(held, e, n);
            return;
        }
        sort_three(held, &e[0], &e[n / 2], &e[n - 1]);
        pivot = e[n / 2];
        while (i <= k)
        {
            while (comes_before(held, &e[i], &pivot))
                i++;
            while (comes_before(held, &pivot, &e[k]))
                k--;
            if (i <= k)
                swap(&e[i++], &e[k--]);
        }
        if (k + 1 < n - i)
        {
            sort(held, e, k + 1, depth);
            e += i;
            n -= i;
        }
        else
        {
            sort(held, e + i, n - i, depth);
            n = k + 1;
        }
    }
    sort_few(held, e, n);
}

static void sort_all(struct oj_held *held)
{
    int depth = 8;
    for (int64_t n = held->n; n > 0; n /= 2)
        depth += 2;
    sort(held, held->entry, held->n, depth);
}

/* ---- runs --------------------------------------------------------------- */

static void drop_memory(struct oj_held *held)
{
    oj_free(held->entry);
    oj_free(held->pool);
    held->entry = NULL;
    held->pool = NULL;
    held->n = held->cap_entries = held->n_pool = held->cap_pool = 0;
}

oj_status oj_held_spill(struct oj_held *held, struct oj_error *err)
{
    if (held->n == 0 || held->files == NULL)
        return OJ_OK;
    if (held->runs == NULL)
        OJ_TRY(oj_runs_open(held->order, held->files, &held->runs, err));
    sort_all(held);
    OJ_TRY(oj_runs_begin(held->runs, err));
    for (int64_t i = 0; i < held->n; i++)
    {
        struct oj_held_value value = value_of(held, &held->entry[i]);
        OJ_TRY(oj_runs_put(held->runs, &value, err));
    }
    OJ_TRY(oj_runs_end(held->runs, err));
    drop_memory(held);
    return OJ_OK;
}

int64_t oj_held_runs(const struct oj_held *held)
{
    return held->runs != NULL ? oj_runs_count(held->runs) : 0;
}

/* ---- reading ------------------------------------------------------------ */

static void take_next(struct oj_held *held)
{
    held->has_value = held->next < held->n;
    if (held->has_value)
        held->value = value_of(held, &held->entry[held->next++]);
}

oj_status oj_held_rewind(struct oj_held *held, struct oj_error *err)
{
    if (held->runs != NULL)
    {
        OJ_TRY(oj_held_spill(held, err));
        return oj_runs_rewind(held->runs, err);
    }
    sort_all(held);
    held->next = 0;
    take_next(held);
    return OJ_OK;
}

const struct oj_held_value *oj_held_peek(const struct oj_held *held)
{
    if (held->runs != NULL)
        return oj_runs_peek(held->runs);
    return held->has_value ? &held->value : NULL;
}

oj_status oj_held_skip(struct oj_held *held, struct oj_error *err)
{
    if (held->runs != NULL)
        return oj_runs_skip(held->runs, err);
    take_next(held);
    return OJ_OK;
}

void oj_held_clear(struct oj_held *held)
{
    oj_runs_close(held->runs);
    held->runs = NULL;
    if (held->cap_entries * (int64_t)sizeof *held->entry +
            held->cap_pool * WORD >
        KEPT_BYTES)
        drop_memory(held);
    held->n = held->n_pool = held->next = 0;
    held->has_value = 0;
}

void oj_held_close(struct oj_held *held)
{
    if (held == NULL)
        return;
    oj_runs_close(held->runs);
    oj_free(held->entry);
    oj_free(held->pool);
    oj_free(held);
}
