#include "oj_aggregate_runs.h"

#include "../../flatten/base/oj_array.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum
{
    MOST_MERGED = 64,    /* runs read at a time; more are merged in steps */
    BUFFER_WORDS = 8192, /* of each, unless a value is longer */
    WORD = 8
};

/* A value in the file: row and number; or row, FID and place (only by place),
 * the number of bytes, and the bytes filled up to whole words. */
static int64_t head_words(enum oj_held_order order)
{
    return order == OJ_HELD_BY_PLACE ? 4 : 2;
}

struct sorted_run
{
    int64_t first, end; /* words in the file */
};

/* Where the reading of one run is. */
struct run_cursor
{
    int64_t next, end; /* words of the file not in the buffer yet */
    uint64_t *word;    /* [capacity] */
    int64_t capacity, at, n;
    struct oj_held_value value; /* its bytes are in the buffer */
    int at_end;
};

struct oj_runs
{
    enum oj_held_order order;
    const struct oj_held_files *files;
    int file; /* < 0: none yet */
    struct sorted_run *run;
    int64_t n_runs, cap_runs;
    int64_t n_written; /* words */
    uint64_t *out;     /* [BUFFER_WORDS] */
    int64_t n_out;

    struct run_cursor cursor[MOST_MERGED];
    int heap[MOST_MERGED]; /* cursors, the first value at the top */
    int n_heap;
};

int oj_held_compare(enum oj_held_order order, const struct oj_held_value *a,
                    const struct oj_held_value *b)
{
    int64_t n;
    int c;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    if (order == OJ_HELD_BY_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    if (order == OJ_HELD_BY_PLACE)
    {
        if (a->fid != b->fid)
            return a->fid < b->fid ? -1 : 1;
        return (a->place > b->place) - (a->place < b->place);
    }
    n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    c = n > 0 ? memcmp(a->bytes, b->bytes, (size_t)n) : 0;
    return c != 0 ? c : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

static oj_status fail_file(const char *doing, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "%s values of aggregates in a temporary file failed: %s",
                   doing, strerror(errno));
}

/* ---- writing ------------------------------------------------------------ */

oj_status oj_runs_open(enum oj_held_order order,
                       const struct oj_held_files *files, struct oj_runs **out,
                       struct oj_error *err)
{
    struct oj_runs *runs = oj_calloc(1, sizeof *runs);
    if (runs == NULL)
        return oj_fail_nomem(err, 1, sizeof *runs);
    runs->order = order;
    runs->files = files;
    runs->file = -1;
    *out = runs;
    return OJ_OK;
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

static oj_status flush(struct oj_runs *runs, struct oj_error *err)
{
    int64_t n = runs->n_out;
    runs->n_out = 0;
    return write_all(runs->file, runs->out, n * WORD, err);
}

oj_status oj_runs_begin(struct oj_runs *runs, struct oj_error *err)
{
    OJ_TRY(oj_reserve(&runs->run, runs->n_runs, runs->n_runs + 1,
                      &runs->cap_runs, sizeof *runs->run, err));
    if (runs->out == NULL)
        OJ_NEW(runs->out, BUFFER_WORDS, err);
    if (runs->file < 0)
    {
        runs->file = runs->files->open(runs->files->user);
        if (runs->file < 0)
            return fail_file("keeping", err);
    }
    runs->run[runs->n_runs].first = runs->n_written;
    return OJ_OK;
}

static int64_t words_of(int64_t n_bytes)
{
    return (n_bytes + WORD - 1) / WORD;
}

oj_status oj_runs_put(struct oj_runs *runs, const struct oj_held_value *value,
                      struct oj_error *err)
{
    int64_t head = head_words(runs->order), body = 0;
    uint64_t *out;
    if (runs->order != OJ_HELD_BY_NUMBER)
        body = words_of(value->n_bytes);
    if (runs->n_out + head + body > BUFFER_WORDS)
        OJ_TRY(flush(runs, err));
    out = runs->out + runs->n_out;
    *out++ = (uint64_t)value->row;
    if (runs->order == OJ_HELD_BY_PLACE)
    {
        *out++ = (uint64_t)value->fid;
        *out++ = (uint64_t)value->place;
    }
    *out++ = runs->order == OJ_HELD_BY_NUMBER ? value->number
                                              : (uint64_t)value->n_bytes;
    runs->n_out += head;
    runs->n_written += head + body;
    if (head + body > BUFFER_WORDS)
    {
        static const char zeros[WORD] = {0};
        OJ_TRY(flush(runs, err));
        OJ_TRY(write_all(runs->file, value->bytes, value->n_bytes, err));
        return write_all(runs->file, zeros, body * WORD - value->n_bytes, err);
    }
    if (body > 0)
    {
        out[body - 1] = 0;
        memcpy(out, value->bytes, (size_t)value->n_bytes);
        runs->n_out += body;
    }
    return OJ_OK;
}

oj_status oj_runs_end(struct oj_runs *runs, struct oj_error *err)
{
    OJ_TRY(flush(runs, err));
    runs->run[runs->n_runs].end = runs->n_written;
    runs->n_runs++;
    return OJ_OK;
}

int64_t oj_runs_count(const struct oj_runs *runs)
{
    return runs->n_runs;
}

/* ---- reading one run ---------------------------------------------------- */

/* Makes n words from cursor->at on available. */
static oj_status fill(struct oj_runs *runs, struct run_cursor *c, int64_t n,
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

static oj_status advance(struct oj_runs *runs, struct run_cursor *c,
                         struct oj_error *err)
{
    int64_t head = head_words(runs->order);
    const uint64_t *word;
    if (c->at == c->n && c->next == c->end)
    {
        c->at_end = 1;
        return OJ_OK;
    }
    OJ_TRY(fill(runs, c, head, err));
    word = c->word + c->at;
    c->value.row = (int64_t)word[0];
    c->value.number = word[head - 1];
    if (runs->order == OJ_HELD_BY_PLACE)
    {
        c->value.fid = (int64_t)word[1];
        c->value.place = (int64_t)word[2];
    }
    if (runs->order != OJ_HELD_BY_NUMBER)
    {
        int64_t body = words_of((int64_t)word[head - 1]);
        c->value.n_bytes = (int64_t)word[head - 1];
        OJ_TRY(fill(runs, c, head + body, err));
        c->value.bytes = (const char *)(c->word + c->at + head);
        c->at += body;
    }
    c->at += head;
    return OJ_OK;
}

/* ---- merging ------------------------------------------------------------ */

static int comes_before(const struct oj_runs *runs, int a, int b)
{
    return oj_held_compare(runs->order, &runs->cursor[a].value,
                           &runs->cursor[b].value) < 0;
}

static void sift_down(struct oj_runs *runs, int i)
{
    int *heap = runs->heap;
    for (;;)
    {
        int least = i, swap;
        for (int child = 2 * i + 1; child <= 2 * i + 2; child++)
        {
            if (child < runs->n_heap &&
                comes_before(runs, heap[child], heap[least]))
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
static oj_status begin_merge(struct oj_runs *runs, int64_t first, int n,
                             struct oj_error *err)
{
    runs->n_heap = 0;
    for (int i = 0; i < n; i++)
    {
        struct run_cursor *c = &runs->cursor[i];
        c->next = runs->run[first + i].first;
        c->end = runs->run[first + i].end;
        c->at = c->n = 0;
        c->at_end = 0;
        OJ_TRY(advance(runs, c, err));
        if (!c->at_end)
            runs->heap[runs->n_heap++] = i;
    }
    for (int i = runs->n_heap / 2 - 1; i >= 0; i--)
        sift_down(runs, i);
    return OJ_OK;
}

const struct oj_held_value *oj_runs_peek(const struct oj_runs *runs)
{
    return runs->n_heap > 0 ? &runs->cursor[runs->heap[0]].value : NULL;
}

oj_status oj_runs_skip(struct oj_runs *runs, struct oj_error *err)
{
    struct run_cursor *c = &runs->cursor[runs->heap[0]];
    OJ_TRY(advance(runs, c, err));
    if (c->at_end)
        runs->heap[0] = runs->heap[--runs->n_heap];
    sift_down(runs, 0);
    return OJ_OK;
}

/* All runs, MOST_MERGED at a time, as longer runs of a new file. */
static oj_status merge_step(struct oj_runs *runs, struct oj_runs *longer,
                            struct oj_error *err)
{
    for (int64_t first = 0; first < runs->n_runs; first += MOST_MERGED)
    {
        int64_t n = runs->n_runs - first;
        OJ_TRY(begin_merge(runs, first, n < MOST_MERGED ? (int)n : MOST_MERGED,
                           err));
        OJ_TRY(oj_runs_begin(longer, err));
        while (oj_runs_peek(runs) != NULL)
        {
            OJ_TRY(oj_runs_put(longer, oj_runs_peek(runs), err));
            OJ_TRY(oj_runs_skip(runs, err));
        }
        OJ_TRY(oj_runs_end(longer, err));
    }
    return OJ_OK;
}

static void free_contents(struct oj_runs *runs)
{
    for (int i = 0; i < MOST_MERGED; i++)
        oj_free(runs->cursor[i].word);
    oj_free(runs->run);
    oj_free(runs->out);
    if (runs->file >= 0)
        close(runs->file);
}

oj_status oj_runs_rewind(struct oj_runs *runs, struct oj_error *err)
{
    while (runs->n_runs > MOST_MERGED)
    {
        struct oj_runs *longer = NULL;
        oj_status status;
        OJ_TRY(oj_runs_open(runs->order, runs->files, &longer, err));
        status = merge_step(runs, longer, err);
        if (status != OJ_OK)
        {
            oj_runs_close(longer);
            return status;
        }
        free_contents(runs);
        *runs = *longer;
        oj_free(longer);
    }
    return begin_merge(runs, 0, (int)runs->n_runs, err);
}

void oj_runs_close(struct oj_runs *runs)
{
    if (runs == NULL)
        return;
    free_contents(runs);
    oj_free(runs);
}
