#include "oj_held_values.h"

#include "../../flatten/base/oj_array.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum
{
    FEW = 24,             /* so many are sorted by insertion */
    KEPT_BYTES = 1 << 20, /* memory that clear leaves in place */
    MOST_MERGED = 64,     /* runs read at a time; more are merged in steps */
    BUFFER_WORDS = 8192,  /* of each, unless a value is longer */
    WORD = 8
};

/* A value in memory: its row, and its number or where it is in the pool.
 *
 * In the pool: FID and place (only by place), the number of bytes, and the
 * bytes filled up to whole words.  In a file: the row, and the number or the
 * words of the pool. */
struct entry
{
    int64_t row;
    uint64_t at;
};

struct run
{
    int64_t first, end; /* words in the file */
};

/* Where the reading of one run is. */
struct cursor
{
    int64_t next, end; /* words of the file not in the buffer yet */
    uint64_t *word;    /* [capacity] */
    int64_t capacity, at, n;
    int64_t n_words;            /* of the value, which ends before at */
    struct oj_held_value value; /* its bytes are in the buffer */
    int at_end;
};

struct runs
{
    int file; /* < 0: none yet */
    struct run *run;
    int64_t n_runs, cap_runs;
    int64_t n_written; /* words */
    uint64_t *out;     /* [BUFFER_WORDS] */
    int64_t n_out;

    struct cursor cursor[MOST_MERGED];
    int heap[MOST_MERGED]; /* cursors, the first value at the top */
    int n_heap;
};

struct oj_held
{
    enum oj_held_order order;
    const struct oj_held_files *files;
    struct entry *entry;
    int64_t n, cap_entries;
    uint64_t *pool;
    int64_t n_pool, cap_pool; /* words */
    struct runs *runs;        /* NULL: nothing was spilled */

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

/* Words before the bytes of a value in the pool. */
static int64_t head_words(const struct oj_held *held)
{
    return held->order == OJ_HELD_BY_PLACE ? 3 : 1;
}

static int64_t words_of(int64_t n_bytes)
{
    return (n_bytes + WORD - 1) / WORD;
}

oj_status oj_held_add(struct oj_held *held, const struct oj_held_value *value,
                      struct oj_error *err)
{
    struct entry *entry;
    OJ_ROOM(held->entry, held->n, held->n + 1, held->cap_entries, err);
    entry = &held->entry[held->n];
    entry->row = value->row;
    entry->at = value->number;
    if (held->order != OJ_HELD_BY_NUMBER)
    {
        int64_t body = words_of(value->n_bytes);
        uint64_t *word;
        OJ_TRY(oj_reserve(&held->pool, held->n_pool,
                          held->n_pool + head_words(held) + body,
                          &held->cap_pool, WORD, err));
        word = held->pool + held->n_pool;
        entry->at = (uint64_t)held->n_pool;
        if (held->order == OJ_HELD_BY_PLACE)
        {
            *word++ = (uint64_t)value->fid;
            *word++ = (uint64_t)value->place;
        }
        *word++ = (uint64_t)value->n_bytes;
        if (body > 0)
        {
            word[body - 1] = 0;
            memcpy(word, value->bytes, (size_t)value->n_bytes);
        }
        held->n_pool = word + body - held->pool;
    }
    held->n++;
    return OJ_OK;
}

int64_t oj_held_bytes(const struct oj_held *held)
{
    return held->n * (int64_t)sizeof *held->entry + held->n_pool * WORD;
}

/* The value of these words of the pool, or of a file after the row. */
static inline struct oj_held_value read_value(const struct oj_held *held,
                                              int64_t row, const uint64_t *word)
{
    struct oj_held_value value = {0};
    value.row = row;
    if (held->order == OJ_HELD_BY_NUMBER)
    {
        value.number = *word;
        return value;
    }
    if (held->order == OJ_HELD_BY_PLACE)
    {
        value.fid = (int64_t)*word++;
        value.place = (int64_t)*word++;
    }
    value.n_bytes = (int64_t)*word++;
    value.bytes = (const char *)word;
    return value;
}

static inline const uint64_t *words_at(const struct oj_held *held,
                                       const struct entry *entry)
{
    return held->order == OJ_HELD_BY_NUMBER ? &entry->at
                                            : held->pool + entry->at;
}

int oj_bytes_compare(const char *a, int64_t n_a, const char *b, int64_t n_b)
{
    int64_t n = n_a < n_b ? n_a : n_b;
    int c = n > 0 ? memcmp(a, b, (size_t)n) : 0;
    return c != 0 ? c : (n_a > n_b) - (n_a < n_b);
}

/* < 0, 0, > 0: the place of a before, like or after b. */
static int compare(enum oj_held_order order, const struct oj_held_value *a,
                   const struct oj_held_value *b)
{
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    if (order == OJ_HELD_BY_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    if (order == OJ_HELD_BY_BYTES)
        return oj_bytes_compare(a->bytes, a->n_bytes, b->bytes, b->n_bytes);
    if (a->fid != b->fid)
        return a->fid < b->fid ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* ---- sorting ------------------------------------------------------------ */

static inline int comes_before(const struct oj_held *held,
                               const struct entry *a, const struct entry *b)
{
    struct oj_held_value u, v;
    if (a->row != b->row)
        return a->row < b->row;
    if (held->order == OJ_HELD_BY_NUMBER)
        return a->at < b->at;
    u = read_value(held, a->row, words_at(held, a));
    v = read_value(held, b->row, words_at(held, b));
    return compare(held->order, &u, &v) < 0;
}

static inline void swap(struct entry *a, struct entry *b)
{
    struct entry c = *a;
    *a = *b;
    *b = c;
}

static void sort_few(const struct oj_held *held, struct entry *e, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
    {
        struct entry one = e[i];
        int64_t k = i;
        for (; k > 0 && comes_before(held, &one, &e[k - 1]); k--)
            e[k] = e[k - 1];
        e[k] = one;
    }
}

static void sift_entry_down(const struct oj_held *held, struct entry *e,
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

static void sort_by_heap(const struct oj_held *held, struct entry *e, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_entry_down(held, e, i, n);
    for (int64_t i = n - 1; i > 0; i--)
    {
        swap(&e[0], &e[i]);
        sift_entry_down(held, e, 0, i);
    }
}

static void sort_three(const struct oj_held *held, struct entry *a,
                       struct entry *b, struct entry *c)
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
static void sort(const struct oj_held *held, struct entry *e, int64_t n,
                 int depth)
{
    while (n > FEW)
    {
        int64_t i = 0, k = n - 1;
        struct entry pivot;
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

/* ---- writing runs ------------------------------------------------------- */

static oj_status fail_file(const char *doing, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "%s values of aggregates in a temporary file failed: %s",
                   doing, strerror(errno));
}

static oj_status write_all(int file, const void *bytes, int64_t n,
                           struct oj_error *err)
{
    const char *at = bytes;
    while (n > 0)
    {
        ssize_t done = write(file, at, (size_t)n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return fail_file("keeping", err);
        at += done;
        n -= done;
    }
    return OJ_OK;
}

static oj_status flush(struct runs *runs, struct oj_error *err)
{
    int64_t n = runs->n_out;
    runs->n_out = 0;
    return write_all(runs->file, runs->out, n * WORD, err);
}

static oj_status begin_run(const struct oj_held *held, struct runs *runs,
                           struct oj_error *err)
{
    OJ_ROOM(runs->run, runs->n_runs, runs->n_runs + 1, runs->cap_runs, err);
    if (runs->out == NULL)
        OJ_NEW(runs->out, BUFFER_WORDS, err);
    if (runs->file < 0)
    {
        runs->file = held->files->open(held->files->user);
        if (runs->file < 0)
            return fail_file("keeping", err);
    }
    runs->run[runs->n_runs].first = runs->n_written;
    return OJ_OK;
}

/* Values come in order. */
static oj_status put(struct runs *runs, int64_t row, const uint64_t *word,
                     int64_t n, struct oj_error *err)
{
    if (runs->n_out + 1 + n > BUFFER_WORDS)
        OJ_TRY(flush(runs, err));
    runs->out[runs->n_out++] = (uint64_t)row;
    runs->n_written += 1 + n;
    if (1 + n > BUFFER_WORDS)
    {
        OJ_TRY(flush(runs, err));
        return write_all(runs->file, word, n * WORD, err);
    }
    memcpy(runs->out + runs->n_out, word, (size_t)n * WORD);
    runs->n_out += n;
    return OJ_OK;
}

static oj_status end_run(struct runs *runs, struct oj_error *err)
{
    OJ_TRY(flush(runs, err));
    runs->run[runs->n_runs].end = runs->n_written;
    runs->n_runs++;
    return OJ_OK;
}

static oj_status open_runs(struct runs **out, struct oj_error *err)
{
    *out = oj_calloc(1, sizeof **out);
    if (*out == NULL)
        return oj_fail_nomem(err, 1, sizeof **out);
    (*out)->file = -1;
    return OJ_OK;
}

static void close_runs(struct runs *runs)
{
    if (runs == NULL)
        return;
    for (int i = 0; i < MOST_MERGED; i++)
        oj_free(runs->cursor[i].word);
    oj_free(runs->run);
    oj_free(runs->out);
    if (runs->file >= 0)
        close(runs->file);
    oj_free(runs);
}

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
        OJ_TRY(open_runs(&held->runs, err));
    sort_all(held);
    OJ_TRY(begin_run(held, held->runs, err));
    for (int64_t i = 0; i < held->n; i++)
    {
        const struct entry *entry = &held->entry[i];
        const uint64_t *word = words_at(held, entry);
        int64_t n = head_words(held);
        if (held->order != OJ_HELD_BY_NUMBER)
            n += words_of((int64_t)word[n - 1]);
        OJ_TRY(put(held->runs, entry->row, word, n, err));
    }
    OJ_TRY(end_run(held->runs, err));
    drop_memory(held);
    return OJ_OK;
}

int64_t oj_held_runs(const struct oj_held *held)
{
    return held->runs != NULL ? held->runs->n_runs : 0;
}

/* ---- reading one run ---------------------------------------------------- */

/* Makes n words from cursor->at on available. */
static oj_status fill(const struct runs *runs, struct cursor *c, int64_t n,
                      struct oj_error *err)
{
    int64_t kept = c->n - c->at, want;
    char *to;
    if (kept >= n)
        return OJ_OK;
    if (kept > 0)
        memmove(c->word, c->word + c->at, (size_t)(kept * WORD));
    c->at = 0;
    c->n = kept;
    want = n > BUFFER_WORDS ? n : BUFFER_WORDS;
    OJ_TRY(oj_reserve(&c->word, kept, want, &c->capacity, WORD, err));
    want -= kept;
    if (want > c->end - c->next)
        want = c->end - c->next;
    to = (char *)(c->word + kept);
    for (int64_t done = 0; done < want * WORD;)
    {
        ssize_t got = pread(runs->file, to + done, (size_t)(want * WORD - done),
                            (off_t)(c->next * WORD + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO; /* shorter than it was written */
        if (got <= 0)
            return fail_file("reading", err);
        done += got;
    }
    c->next += want;
    c->n += want;
    return OJ_OK;
}

static oj_status advance(const struct oj_held *held, struct cursor *c,
                         struct oj_error *err)
{
    int64_t n = 1 + head_words(held);
    if (c->at == c->n && c->next == c->end)
    {
        c->at_end = 1;
        return OJ_OK;
    }
    OJ_TRY(fill(held->runs, c, n, err));
    if (held->order != OJ_HELD_BY_NUMBER)
        n += words_of((int64_t)c->word[c->at + n - 1]);
    OJ_TRY(fill(held->runs, c, n, err));
    c->value = read_value(held, (int64_t)c->word[c->at], c->word + c->at + 1);
    c->n_words = n - 1;
    c->at += n;
    return OJ_OK;
}

/* ---- merging runs ------------------------------------------------------- */

static int is_first(const struct oj_held *held, int a, int b)
{
    return compare(held->order, &held->runs->cursor[a].value,
                   &held->runs->cursor[b].value) < 0;
}

static void sift_down(const struct oj_held *held, int i)
{
    struct runs *runs = held->runs;
    int *heap = runs->heap;
    for (;;)
    {
        int least = i, swap;
        for (int child = 2 * i + 1; child <= 2 * i + 2; child++)
        {
            if (child < runs->n_heap &&
                is_first(held, heap[child], heap[least]))
                least = child;
        }
        if (least == i)
            return;
        swap = heap[i];
        heap[i] = heap[least];
        heap[least] = swap;
        i = least;
    }
}

/* Cursors at the start of runs first to first + n - 1. */
static oj_status begin_merge(const struct oj_held *held, int64_t first, int n,
                             struct oj_error *err)
{
    struct runs *runs = held->runs;
    runs->n_heap = 0;
    for (int i = 0; i < n; i++)
    {
        struct cursor *c = &runs->cursor[i];
        c->next = runs->run[first + i].first;
        c->end = runs->run[first + i].end;
        c->at = c->n = 0;
        c->at_end = 0;
        OJ_TRY(advance(held, c, err));
        if (!c->at_end)
            runs->heap[runs->n_heap++] = i;
    }
    for (int i = runs->n_heap / 2 - 1; i >= 0; i--)
        sift_down(held, i);
    return OJ_OK;
}

static oj_status advance_top(const struct oj_held *held, struct oj_error *err)
{
    struct runs *runs = held->runs;
    struct cursor *c = &runs->cursor[runs->heap[0]];
    OJ_TRY(advance(held, c, err));
    if (c->at_end)
        runs->heap[0] = runs->heap[--runs->n_heap];
    sift_down(held, 0);
    return OJ_OK;
}

/* All runs, MOST_MERGED at a time, as longer runs of a new file. */
static oj_status merge_step(const struct oj_held *held, struct runs *longer,
                            struct oj_error *err)
{
    struct runs *runs = held->runs;
    for (int64_t first = 0; first < runs->n_runs; first += MOST_MERGED)
    {
        int64_t n = runs->n_runs - first;
        OJ_TRY(begin_merge(held, first, n < MOST_MERGED ? (int)n : MOST_MERGED,
                           err));
        OJ_TRY(begin_run(held, longer, err));
        while (runs->n_heap > 0)
        {
            const struct cursor *c = &runs->cursor[runs->heap[0]];
            OJ_TRY(put(longer, c->value.row, c->word + c->at - c->n_words,
                       c->n_words, err));
            OJ_TRY(advance_top(held, err));
        }
        OJ_TRY(end_run(longer, err));
    }
    return OJ_OK;
}

static oj_status merge_runs(struct oj_held *held, struct oj_error *err)
{
    while (held->runs->n_runs > MOST_MERGED)
    {
        struct runs *longer = NULL;
        oj_status status;
        OJ_TRY(open_runs(&longer, err));
        status = merge_step(held, longer, err);
        if (status != OJ_OK)
        {
            close_runs(longer);
            return status;
        }
        close_runs(held->runs);
        held->runs = longer;
    }
    return begin_merge(held, 0, (int)held->runs->n_runs, err);
}

/* ---- reading ------------------------------------------------------------ */

static void take_next(struct oj_held *held)
{
    held->has_value = held->next < held->n;
    if (held->has_value)
    {
        const struct entry *entry = &held->entry[held->next++];
        held->value = read_value(held, entry->row, words_at(held, entry));
    }
}

oj_status oj_held_rewind(struct oj_held *held, struct oj_error *err)
{
    if (held->runs != NULL)
    {
        OJ_TRY(oj_held_spill(held, err));
        return merge_runs(held, err);
    }
    sort_all(held);
    held->next = 0;
    take_next(held);
    return OJ_OK;
}

const struct oj_held_value *oj_held_peek(const struct oj_held *held)
{
    if (held->runs != NULL)
        return held->runs->n_heap > 0
                   ? &held->runs->cursor[held->runs->heap[0]].value
                   : NULL;
    return held->has_value ? &held->value : NULL;
}

oj_status oj_held_skip(struct oj_held *held, struct oj_error *err)
{
    if (held->runs != NULL)
        return advance_top(held, err);
    take_next(held);
    return OJ_OK;
}

void oj_held_clear(struct oj_held *held)
{
    close_runs(held->runs);
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
    close_runs(held->runs);
    oj_free(held->entry);
    oj_free(held->pool);
    oj_free(held);
}
