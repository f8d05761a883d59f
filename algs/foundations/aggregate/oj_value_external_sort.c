#include "oj_value_external_sort.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_temporary_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum
{
    FEW = 24,             /* up to this number, values are sorted by
                             insertion */
    KEPT_BYTES = 1 << 20, /* maximum bytes of memory that oj_value_sort_clear()
                             does not free */
    READ_WORDS = 512,     /* words read from a run at a time */
    WORD = 8
};

/* A value in memory: its row, and `at`, which is the number itself or, for
 * bytes, an offset in the pool. For each value of bytes the pool contains FID
 * and reading position (only with OJ_VALUE_SORT_BY_PLACE), length, and the
 * bytes padded to whole words. Files contain the row, followed by the number or
 * by the value's words from the pool. */
struct entry
{
    int64_t row;
    uint64_t at;
};

/* A sorted run in the file, while it is being read. */
struct run
{
    int64_t at, end; /* range of the file that is not read yet, in words */
    uint64_t *word;  /* [n_words] buffer; words before `next` have been
                        consumed */
    int64_t next, n_words, capacity;
    struct oj_value_sort_value value; /* current value; its bytes are in the
                                   buffer, before `next` */
};

struct oj_value_sort
{
    enum oj_value_sort_order order;
    const struct oj_value_sort_files *files;
    struct entry *entry;
    int64_t n, cap_entries;
    uint64_t *pool;
    int64_t n_pool, cap_pool; /* size of the pool, in words */

    FILE *file;        /* file with all runs, one after another; NULL: not made
                          yet */
    int64_t n_in_file; /* words in the file */
    struct run *run;   /* [n_runs] heap of runs, ordered by current value */
    int64_t n_runs, cap_runs;

    int64_t next; /* if there are no runs: index of the entry after the current
                     value */
    struct oj_value_sort_value value; /* current value, returned by
                                   oj_value_sort_peek() */
    int has_value;
};

oj_status oj_value_sort_open(enum oj_value_sort_order order,
                             const struct oj_value_sort_files *files,
                             struct oj_value_sort **out, struct oj_error *err)
{
    struct oj_value_sort *held;
    OJ_NEW_ZEROED(held, 1, err);
    held->order = order;
    held->files = files;
    *out = held;
    return OJ_OK;
}

/* Returns the number of words before a value's bytes in the pool. */
static int64_t count_header_words(const struct oj_value_sort *held)
{
    return held->order == OJ_VALUE_SORT_BY_PLACE ? 3 : 1;
}

static int64_t words_needed_for_bytes(int64_t n_bytes)
{
    return (n_bytes + WORD - 1) / WORD;
}

oj_status oj_value_sort_add(struct oj_value_sort *held,
                            const struct oj_value_sort_value *value,
                            struct oj_error *err)
{
    struct entry *entry;
    OJ_ROOM(held->entry, held->n, held->n + 1, held->cap_entries, err);
    entry = &held->entry[held->n];
    entry->row = value->row;
    entry->at = value->number;
    if (held->order != OJ_VALUE_SORT_BY_NUMBER)
    {
        int64_t body = words_needed_for_bytes(value->n_bytes);
        uint64_t *word;
        OJ_TRY(oj_reserve(&held->pool, held->n_pool,
                          held->n_pool + count_header_words(held) + body,
                          &held->cap_pool, WORD, err));
        word = held->pool + held->n_pool;
        entry->at = (uint64_t)held->n_pool;
        if (held->order == OJ_VALUE_SORT_BY_PLACE)
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

int64_t oj_value_sort_bytes(const struct oj_value_sort *held)
{
    return held->n * (int64_t)sizeof *held->entry + held->n_pool * WORD;
}

/* Decodes a value of `row` from its other words, whose layout is equal in the
 * pool and in files. */
static inline struct oj_value_sort_value
decode_held_value(const struct oj_value_sort *held, int64_t row,
                  const uint64_t *word)
{
    struct oj_value_sort_value value = {0};
    value.row = row;
    if (held->order == OJ_VALUE_SORT_BY_NUMBER)
    {
        value.number = *word;
        return value;
    }
    if (held->order == OJ_VALUE_SORT_BY_PLACE)
    {
        value.fid = (int64_t)*word++;
        value.place = (int64_t)*word++;
    }
    value.n_bytes = (int64_t)*word++;
    value.bytes = (const char *)word;
    return value;
}

static inline const uint64_t *
entry_value_pointer(const struct oj_value_sort *held, const struct entry *entry)
{
    return held->order == OJ_VALUE_SORT_BY_NUMBER ? &entry->at
                                                  : held->pool + entry->at;
}

int oj_bytes_compare(const char *a, int64_t n_a, const char *b, int64_t n_b)
{
    int64_t n = n_a < n_b ? n_a : n_b;
    int c = n > 0 ? memcmp(a, b, (size_t)n) : 0;
    return c != 0 ? c : (n_a > n_b) - (n_a < n_b);
}

/* Compares a and b in the given order. Returns < 0, 0 or > 0. */
static int compare_held_values(enum oj_value_sort_order order,
                               const struct oj_value_sort_value *a,
                               const struct oj_value_sort_value *b)
{
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    if (order == OJ_VALUE_SORT_BY_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    if (order == OJ_VALUE_SORT_BY_BYTES)
        return oj_bytes_compare(a->bytes, a->n_bytes, b->bytes, b->n_bytes);
    if (a->fid != b->fid)
        return a->fid < b->fid ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* ---- sorting ------------------------------------------------------------- */

static inline int does_entry_precede(const struct oj_value_sort *held,
                                     const struct entry *a,
                                     const struct entry *b)
{
    struct oj_value_sort_value u, v;
    if (a->row != b->row)
        return a->row < b->row;
    if (held->order == OJ_VALUE_SORT_BY_NUMBER)
        return a->at < b->at;
    u = decode_held_value(held, a->row, entry_value_pointer(held, a));
    v = decode_held_value(held, b->row, entry_value_pointer(held, b));
    return compare_held_values(held->order, &u, &v) < 0;
}

static inline void swap_entries(struct entry *a, struct entry *b)
{
    struct entry c = *a;
    *a = *b;
    *b = c;
}

static void insertion_sort_entries(const struct oj_value_sort *held,
                                   struct entry *e, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
    {
        struct entry one = e[i];
        int64_t k = i;
        for (; k > 0 && does_entry_precede(held, &one, &e[k - 1]); k--)
            e[k] = e[k - 1];
        e[k] = one;
    }
}

static void sort_three_entries(const struct oj_value_sort *held,
                               struct entry *a, struct entry *b,
                               struct entry *c)
{
    if (does_entry_precede(held, b, a))
        swap_entries(a, b);
    if (does_entry_precede(held, c, b))
        swap_entries(b, c);
    if (does_entry_precede(held, b, a))
        swap_entries(a, b);
}

/* Quicksort in place. The pivot is the median of three entries, one of them
 * random, so that no order of the input makes it slow. Equal values are
 * distributed over both halves, so that many of them do not make it slow
 * either. */
static void sort_entries(const struct oj_value_sort *held, struct entry *e,
                         int64_t n, uint64_t *drawn)
{
    while (n > FEW)
    {
        int64_t i = 0, k = n - 1;
        struct entry pivot;
        *drawn = *drawn * UINT64_C(6364136223846793005) + 1;
        swap_entries(&e[n / 2], &e[(int64_t)(*drawn >> 32) % n]);
        sort_three_entries(held, &e[0], &e[n / 2], &e[n - 1]);
        pivot = e[n / 2];
        while (i <= k)
        {
            while (does_entry_precede(held, &e[i], &pivot))
                i++;
            while (does_entry_precede(held, &pivot, &e[k]))
                k--;
            if (i <= k)
                swap_entries(&e[i++], &e[k--]);
        }
        /* recursion into the smaller half limits the depth of the stack */
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
    insertion_sort_entries(held, e, n);
}

static void sort_entries_in_memory(struct oj_value_sort *held)
{
    uint64_t drawn = 1;
    sort_entries(held, held->entry, held->n, &drawn);
}

/* ---- sorted runs in a file ----------------------------------------------- */

static oj_status fail_file(const char *doing, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "%s values of aggregates in a temporary file failed: %s; "
                   "TMPDIR can name another folder",
                   doing, strerror(errno));
}

static oj_status open_file(struct oj_value_sort *held, struct oj_error *err)
{
    int file = held->files->open(held->files->user);
    if (file >= 0)
        held->file = fdopen(file, "w+b");
    if (held->file != NULL)
        return OJ_OK;
    if (file >= 0)
        close(file);
    return fail_file("keeping", err);
}

/* Makes sure that the next n words of a run are in its buffer. */
static oj_status read_run_words_if_needed(const struct oj_value_sort *held,
                                          struct run *run, int64_t n,
                                          struct oj_error *err)
{
    int64_t more, left = run->n_words - run->next;
    if (left >= n)
        return OJ_OK;
    if (left > 0)
        memmove(run->word, run->word + run->next, (size_t)left * WORD);
    run->n_words = left;
    run->next = 0;
    OJ_TRY(oj_reserve(&run->word, left, n > READ_WORDS ? n : READ_WORDS,
                      &run->capacity, WORD, err));
    more = run->capacity - left;
    more = more < run->end - run->at ? more : run->end - run->at;
    if (oj_read_at(fileno(held->file), run->at * WORD, run->word + left,
                   more * WORD) != 0)
        return fail_file("reading", err);
    run->at += more;
    run->n_words += more;
    return OJ_OK;
}

/* Reads the next value of a run; *is_there is 0 at the end of the run. */
static oj_status read_next_of_run(const struct oj_value_sort *held,
                                  struct run *run, int *is_there,
                                  struct oj_error *err)
{
    int64_t n = 1 + count_header_words(held);
    *is_there = run->next < run->n_words || run->at < run->end;
    if (!*is_there)
        return OJ_OK;
    OJ_TRY(read_run_words_if_needed(held, run, n, err));
    if (held->order != OJ_VALUE_SORT_BY_NUMBER)
    {
        n += words_needed_for_bytes((int64_t)run->word[run->next + n - 1]);
        OJ_TRY(read_run_words_if_needed(held, run, n, err));
    }
    run->value = decode_held_value(held, (int64_t)run->word[run->next],
                                   run->word + run->next + 1);
    run->next += n;
    return OJ_OK;
}

/* Restores the order of the heap (the least value first) after the value of run
 * i has become greater. */
static void sift_down(struct oj_value_sort *held, int64_t i)
{
    struct run *heap = held->run;
    for (int64_t child; (child = 2 * i + 1) < held->n_runs; i = child)
    {
        struct run moved = heap[i];
        if (child + 1 < held->n_runs &&
            compare_held_values(held->order, &heap[child + 1].value,
                                &heap[child].value) < 0)
            child++;
        if (compare_held_values(held->order, &heap[child].value,
                                &moved.value) >= 0)
            return;
        heap[i] = heap[child];
        heap[child] = moved;
    }
}

/* Advances the first run of the heap to its next value, or removes the run if
 * it has no more values. */
static oj_status advance_top_run_of_heap(struct oj_value_sort *held,
                                         struct oj_error *err)
{
    int is_there;
    OJ_TRY(read_next_of_run(held, held->run, &is_there, err));
    if (!is_there)
    {
        oj_free(held->run[0].word);
        held->run[0] = held->run[--held->n_runs];
    }
    sift_down(held, 0);
    return OJ_OK;
}

static void free_runs_and_file(struct oj_value_sort *held)
{
    for (int64_t i = 0; i < held->n_runs; i++)
        oj_free(held->run[i].word);
    if (held->file != NULL)
        fclose(held->file);
    held->file = NULL;
    held->n_runs = held->n_in_file = 0;
}

static void free_entries_in_memory(struct oj_value_sort *held)
{
    oj_free(held->entry);
    oj_free(held->pool);
    held->entry = NULL;
    held->pool = NULL;
    held->n = held->cap_entries = held->n_pool = held->cap_pool = 0;
}

oj_status oj_value_sort_spill(struct oj_value_sort *held, struct oj_error *err)
{
    struct run run = {0};
    if (held->n == 0 || held->files == NULL)
        return OJ_OK;
    sort_entries_in_memory(held);
    OJ_ROOM(held->run, held->n_runs, held->n_runs + 1, held->cap_runs, err);
    if (held->file == NULL)
        OJ_TRY(open_file(held, err));
    run.at = run.end = held->n_in_file;
    for (int64_t i = 0; i < held->n; i++)
    {
        const struct entry *entry = &held->entry[i];
        const uint64_t *word = entry_value_pointer(held, entry);
        size_t n = (size_t)count_header_words(held);
        if (held->order != OJ_VALUE_SORT_BY_NUMBER)
            n += (size_t)words_needed_for_bytes((int64_t)word[n - 1]);
        if (fwrite(&entry->row, WORD, 1, held->file) != 1 ||
            fwrite(word, WORD, n, held->file) != n)
            return fail_file("keeping", err);
        run.end += 1 + (int64_t)n;
    }
    if (fflush(held->file) != 0)
        return fail_file("keeping", err);
    held->n_in_file = run.end;
    held->run[held->n_runs++] = run;
    free_entries_in_memory(held);
    return OJ_OK;
}

/* ---- reading sorted values ----------------------------------------------- */

static void advance_to_next_entry(struct oj_value_sort *held)
{
    held->has_value = held->next < held->n;
    if (held->has_value)
    {
        const struct entry *entry = &held->entry[held->next++];
        held->value = decode_held_value(held, entry->row,
                                        entry_value_pointer(held, entry));
    }
}

oj_status oj_value_sort_rewind(struct oj_value_sort *held, struct oj_error *err)
{
    if (held->n_runs > 0)
        OJ_TRY(oj_value_sort_spill(held, err));
    for (int64_t i = held->n_runs - 1; i >= 0; i--)
    {
        int is_there;
        OJ_TRY(read_next_of_run(held, &held->run[i], &is_there, err));
        sift_down(held, i);
    }
    sort_entries_in_memory(held);
    held->next = 0;
    advance_to_next_entry(held);
    return OJ_OK;
}

const struct oj_value_sort_value *
oj_value_sort_peek(const struct oj_value_sort *held)
{
    if (held->n_runs > 0)
        return &held->run[0].value;
    return held->has_value ? &held->value : NULL;
}

oj_status oj_value_sort_skip(struct oj_value_sort *held, struct oj_error *err)
{
    if (held->n_runs > 0)
        return advance_top_run_of_heap(held, err);
    advance_to_next_entry(held);
    return OJ_OK;
}

void oj_value_sort_clear(struct oj_value_sort *held)
{
    free_runs_and_file(held);
    if (held->cap_entries * (int64_t)sizeof *held->entry +
            held->cap_pool * WORD >
        KEPT_BYTES)
        free_entries_in_memory(held);
    held->n = held->n_pool = held->next = 0;
    held->has_value = 0;
}

void oj_value_sort_close(struct oj_value_sort *held)
{
    if (held == NULL)
        return;
    free_runs_and_file(held);
    free_entries_in_memory(held);
    oj_free(held->run);
    oj_free(held);
}
