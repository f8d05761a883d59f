#include "oj_held_values.h"

#include "../../flatten/base/oj_array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum
{
    FEW = 24,             /* so many are sorted by insertion */
    KEPT_BYTES = 1 << 20, /* memory that clear leaves in place */
    MOST_ALIKE = 64,      /* runs of one level become one of the next */
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

/* Values in order, in a file of their own: once it is written, value is the one
 * to be read next. */
struct run
{
    FILE *file;
    int level;      /* how often its values were merged */
    uint64_t *word; /* of value, as in the file */
    int64_t n_words, capacity;
    struct oj_held_value value; /* its bytes are at word */
};

struct oj_held
{
    enum oj_held_order order;
    const struct oj_held_files *files;
    struct entry *entry;
    int64_t n, cap_entries;
    uint64_t *pool;
    int64_t n_pool, cap_pool; /* words */

    struct run **run; /* of descending levels; read: a heap, the first value at
                         the top */
    int64_t n_runs, cap_runs;

    int64_t next;               /* entry after value, when there are no runs */
    struct oj_held_value value; /* of peek, the same */
    int has_value;
};

oj_status oj_held_open(enum oj_held_order order,
                       const struct oj_held_files *files, struct oj_held **out,
                       struct oj_error *err)
{
    struct oj_held *held;
    OJ_NEW_ZEROED(held, 1, err);
    held->order = order;
    held->files = files;
    *out = held;
    return OJ_OK;
}

/* Words before the bytes of a value in the pool. */
static int64_t count_header_words(const struct oj_held *held)
{
    return held->order == OJ_HELD_BY_PLACE ? 3 : 1;
}

static int64_t count_words_of_bytes(int64_t n_bytes)
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
        int64_t body = count_words_of_bytes(value->n_bytes);
        uint64_t *word;
        OJ_TRY(oj_reserve(&held->pool, held->n_pool,
                          held->n_pool + count_header_words(held) + body,
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
static inline struct oj_held_value
decode_held_value(const struct oj_held *held, int64_t row, const uint64_t *word)
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

static inline const uint64_t *find_entry_words(const struct oj_held *held,
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
static int compare_held_values(enum oj_held_order order,
                               const struct oj_held_value *a,
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
    u = decode_held_value(held, a->row, find_entry_words(held, a));
    v = decode_held_value(held, b->row, find_entry_words(held, b));
    return compare_held_values(held->order, &u, &v) < 0;
}

static inline void swap_entries(struct entry *a, struct entry *b)
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

static void sort_three(const struct oj_held *held, struct entry *a,
                       struct entry *b, struct entry *c)
{
    if (comes_before(held, b, a))
        swap_entries(a, b);
    if (comes_before(held, c, b))
        swap_entries(b, c);
    if (comes_before(held, b, a))
        swap_entries(a, b);
}

/* Quicksort, in place.  One of the three that the pivot is chosen of is drawn,
 * so that no order of values is a bad one.  Equal values are spread over both
 * halves, so that many of them do no harm. */
static void sort_entries(const struct oj_held *held, struct entry *e, int64_t n,
                         uint64_t *drawn)
{
    while (n > FEW)
    {
        int64_t i = 0, k = n - 1;
        struct entry pivot;
        *drawn = *drawn * UINT64_C(6364136223846793005) + 1;
        swap_entries(&e[n / 2], &e[(int64_t)(*drawn >> 32) % n]);
        sort_three(held, &e[0], &e[n / 2], &e[n - 1]);
        pivot = e[n / 2];
        while (i <= k)
        {
            while (comes_before(held, &e[i], &pivot))
                i++;
            while (comes_before(held, &pivot, &e[k]))
                k--;
            if (i <= k)
                swap_entries(&e[i++], &e[k--]);
        }
        /* the shorter half by a call, so that the stack stays low */
        if (k + 1 < n - i)
        {
            sort_entries(held, e, k + 1, drawn);
            e += i;
            n -= i;
        }
        else
        {
            sort_entries(held, e + i, n - i, drawn);
            n = k + 1;
        }
    }
    sort_few(held, e, n);
}

static void sort_all(struct oj_held *held)
{
    uint64_t drawn = 1;
    sort_entries(held, held->entry, held->n, &drawn);
}

/* ---- runs --------------------------------------------------------------- */

static oj_status fail_file(const char *doing, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "%s values of aggregates in a temporary file failed: %s",
                   doing, strerror(errno));
}

static void close_run(struct run *run)
{
    if (run == NULL)
        return;
    if (run->file != NULL)
        fclose(run->file);
    oj_free(run->word);
    oj_free(run);
}

static oj_status open_file(const struct oj_held *held, struct run *run,
                           struct oj_error *err)
{
    int file = held->files->open(held->files->user);
    if (file >= 0)
        run->file = fdopen(file, "w+b");
    if (run->file != NULL)
        return OJ_OK;
    if (file >= 0)
        close(file);
    return fail_file("keeping", err);
}

/* An empty run, after all others. */
static oj_status add_run(struct oj_held *held, int level, struct run **out,
                         struct oj_error *err)
{
    struct run *run;
    oj_status status;
    OJ_ROOM(held->run, held->n_runs, held->n_runs + 1, held->cap_runs, err);
    OJ_NEW_ZEROED(run, 1, err);
    run->level = level;
    status = open_file(held, run, err);
    if (status != OJ_OK)
    {
        close_run(run);
        return status;
    }
    held->run[held->n_runs++] = *out = run;
    return OJ_OK;
}

/* Values come in order. */
static oj_status write_value_to_run(struct run *run, int64_t row,
                                    const uint64_t *word, int64_t n,
                                    struct oj_error *err)
{
    if (fwrite(&row, WORD, 1, run->file) != 1 ||
        fwrite(word, WORD, (size_t)n, run->file) != (size_t)n)
        return fail_file("keeping", err);
    return OJ_OK;
}

/* The next n words of a run, behind those of the value that it has read. */
static oj_status read_words(struct run *run, int64_t n, struct oj_error *err)
{
    OJ_TRY(oj_reserve(&run->word, run->n_words, run->n_words + n,
                      &run->capacity, WORD, err));
    errno = EIO; /* where it is shorter than it was written */
    if (fread(run->word + run->n_words, WORD, (size_t)n, run->file) !=
        (size_t)n)
        return fail_file("reading", err);
    run->n_words += n;
    return OJ_OK;
}

/* The next value of a run; *is_there: 0 after the last. */
static oj_status read_next_of_run(const struct oj_held *held, struct run *run,
                                  int *is_there, struct oj_error *err)
{
    int64_t row;
    *is_there = fread(&row, WORD, 1, run->file) == 1;
    if (!*is_there)
        return ferror(run->file) ? fail_file("reading", err) : OJ_OK;
    run->n_words = 0;
    OJ_TRY(read_words(run, count_header_words(held), err));
    if (held->order != OJ_HELD_BY_NUMBER)
        OJ_TRY(read_words(
            run, count_words_of_bytes((int64_t)run->word[run->n_words - 1]),
            err));
    run->value = decode_held_value(held, row, run->word);
    return OJ_OK;
}

/* ---- merging runs ------------------------------------------------------- */

/* heap [n], of which only number i may come too late for its place. */
static void sift_down(const struct oj_held *held, struct run **heap, int64_t n,
                      int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child)
    {
        struct run *moved = heap[i];
        if (child + 1 < n &&
            compare_held_values(held->order, &heap[child + 1]->value,
                                &heap[child]->value) < 0)
            child++;
        if (compare_held_values(held->order, &heap[child]->value,
                                &moved->value) >= 0)
            return;
        heap[i] = heap[child];
        heap[child] = moved;
    }
}

/* The next value of the run at the top, which goes when it has none. */
static oj_status advance_top(const struct oj_held *held, struct run **heap,
                             int64_t *n, struct oj_error *err)
{
    int is_there;
    OJ_TRY(read_next_of_run(held, heap[0], &is_there, err));
    if (!is_there)
    {
        close_run(heap[0]);
        heap[0] = heap[--*n];
        heap[*n] = NULL;
    }
    sift_down(held, heap, *n, 0);
    return OJ_OK;
}

/* Makes a heap of n runs, each at its first value. */
static oj_status begin_merge(const struct oj_held *held, struct run **heap,
                             int64_t n, struct oj_error *err)
{
    for (int64_t i = 0; i < n; i++)
    {
        int is_there;
        if (fseeko(heap[i]->file, 0, SEEK_SET) != 0)
            return fail_file("keeping", err);
        OJ_TRY(read_next_of_run(held, heap[i], &is_there, err));
    }
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(held, heap, n, i);
    return OJ_OK;
}

/* The last MOST_ALIKE runs, where they are of one level, as one of the next. */
static oj_status merge_runs_of_one_level(struct oj_held *held,
                                         struct oj_error *err)
{
    int64_t n = MOST_ALIKE, first = held->n_runs - n;
    struct run **heap, *longer;
    if (first < 0 ||
        held->run[first]->level != held->run[held->n_runs - 1]->level)
        return OJ_OK;
    OJ_TRY(add_run(held, held->run[first]->level + 1, &longer, err));
    heap = held->run + first;
    OJ_TRY(begin_merge(held, heap, n, err));
    while (n > 0)
    {
        OJ_TRY(write_value_to_run(longer, heap[0]->value.row, heap[0]->word,
                                  heap[0]->n_words, err));
        OJ_TRY(advance_top(held, heap, &n, err));
    }
    held->n_runs = first + 1;
    held->run[first] = longer;
    return merge_runs_of_one_level(held, err);
}

static void drop_runs(struct oj_held *held)
{
    for (int64_t i = 0; i < held->n_runs; i++)
        close_run(held->run[i]);
    held->n_runs = 0;
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
    struct run *run;
    if (held->n == 0 || held->files == NULL)
        return OJ_OK;
    sort_all(held);
    OJ_TRY(add_run(held, 0, &run, err));
    for (int64_t i = 0; i < held->n; i++)
    {
        const struct entry *entry = &held->entry[i];
        const uint64_t *word = find_entry_words(held, entry);
        int64_t n = count_header_words(held);
        if (held->order != OJ_HELD_BY_NUMBER)
            n += count_words_of_bytes((int64_t)word[n - 1]);
        OJ_TRY(write_value_to_run(run, entry->row, word, n, err));
    }
    drop_memory(held);
    return merge_runs_of_one_level(held, err);
}

/* ---- reading ------------------------------------------------------------ */

static void advance_to_next_entry(struct oj_held *held)
{
    held->has_value = held->next < held->n;
    if (held->has_value)
    {
        const struct entry *entry = &held->entry[held->next++];
        held->value =
            decode_held_value(held, entry->row, find_entry_words(held, entry));
    }
}

oj_status oj_held_rewind(struct oj_held *held, struct oj_error *err)
{
    if (held->n_runs > 0)
    {
        OJ_TRY(oj_held_spill(held, err));
        return begin_merge(held, held->run, held->n_runs, err);
    }
    sort_all(held);
    held->next = 0;
    advance_to_next_entry(held);
    return OJ_OK;
}

const struct oj_held_value *oj_held_peek(const struct oj_held *held)
{
    if (held->n_runs > 0)
        return &held->run[0]->value;
    return held->has_value ? &held->value : NULL;
}

oj_status oj_held_skip(struct oj_held *held, struct oj_error *err)
{
    if (held->n_runs > 0)
        return advance_top(held, held->run, &held->n_runs, err);
    advance_to_next_entry(held);
    return OJ_OK;
}

void oj_held_clear(struct oj_held *held)
{
    drop_runs(held);
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
    drop_runs(held);
    drop_memory(held);
    oj_free(held->run);
    oj_free(held);
}
