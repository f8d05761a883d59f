#include "oj_token_sets.h"

#include "oj_fold.h"
#include "oj_token_table.h"
#include "oj_word_replacements.h"

#include "../base/oj_alloc.h"
#include "../base/oj_parallel.h"

#include <stdlib.h>
#include <string.h>

enum
{
    /* positions in OJ_TOKEN_NAMES; greater positions mean q-grams */
    TRIGRAMS_OF_WORDS = 0,
    WHOLE_WORDS = 1,
    SHORT_CODES = 3,   /* maximum code points of a short token */
    MOST_COUNTED = 32, /* maximum tokens of a set that is sorted by counting */
    ROWS_AT_ONCE = 512 /* rows between two checks of the cancel flag */
};

struct oj_dictionary
{
    struct oj_token_rules rules;
    /* Tokens numbered in the order of insertion; after
     * oj_token_dictionary_number_by_rarity() rare tokens first. */
    struct oj_token_table table;
    /* [table.n] number of rows with the token; used until the order is made. */
    int64_t *n_rows;
    int64_t cap_n_rows;
};

/* Rows that one thread tokenises. Within a slice, tokens are numbered by
 * `table`; `number` maps these numbers to those of the dictionary. */
struct text_slice
{
    int64_t first, end; /* rows first .. end - 1 */
    struct oj_token_table table;
    int64_t *last_row; /* [table.n] last row with the token */
    int64_t *n_rows;   /* [table.n] number of rows with the token */
    uint32_t *token;   /* [n_tokens] numbers in table, row by row */
    int64_t n_tokens, n_bad_bytes;
    int64_t cap_last_row, cap_n_rows, cap_token;
    struct oj_folded folded, mapped;
    uint32_t *number; /* [table.n] number of the token in the dictionary, or
                         NOT_THERE */
};

#define NOT_THERE UINT32_MAX

struct tokenising
{
    const struct oj_token_rules *rules;
    const struct oj_texts *texts;
    const int64_t *fid;
    const int *cancel;
    const struct oj_dictionary *dictionary;
    struct oj_token_sets_buf *sets;
    struct text_slice *slice;
    int n_slices, n_threads;
};

/* ---- tokens of a text ---------------------------------------------------- */

static oj_status add_token(struct text_slice *s, int64_t row,
                           const struct oj_token *token, struct oj_error *err)
{
    int64_t n = s->table.n, number;
    OJ_TRY(oj_token_table_put(&s->table, token, &number, err));
    if (number == n)
    {
        OJ_ROOM(s->last_row, n, n + 1, s->cap_last_row, err);
        OJ_ROOM(s->n_rows, n, n + 1, s->cap_n_rows, err);
        s->last_row[n] = -1;
        s->n_rows[n] = 0;
    }
    if (s->last_row[number] == row)
        return OJ_OK;
    s->last_row[number] = row;
    s->n_rows[number]++;
    if (s->n_tokens == s->cap_token)
        OJ_ROOM(s->token, s->n_tokens, s->n_tokens + 1, s->cap_token, err);
    s->token[s->n_tokens++] = (uint32_t)number;
    return OJ_OK;
}

/* Adds a token of 1 to 3 code points, which are packed into its key. */
static oj_status add_packed_token(struct text_slice *s, int64_t row,
                                  const uint32_t *code, int64_t n,
                                  struct oj_error *err)
{
    struct oj_token token = {0, NULL, 0};
    for (int64_t i = 0; i < n; i++)
        token.key = token.key << 21 | (code[i] + 1);
    return add_token(s, row, &token, err);
}

/* Adds all runs of three code points of the word, with a space before and after
 * it. */
static oj_status add_trigrams(struct text_slice *s, int64_t row,
                              const uint32_t *code, int64_t n,
                              struct oj_error *err)
{
    uint32_t three[SHORT_CODES] = {' ', ' ', ' '};
    for (int64_t i = 0; i <= n; i++)
    {
        three[0] = three[1];
        three[1] = three[2];
        three[2] = i < n ? code[i] : ' ';
        OJ_TRY(add_packed_token(s, row, three, SHORT_CODES, err));
    }
    return OJ_OK;
}

static oj_status add_words(struct text_slice *s, int64_t row,
                           const struct oj_folded *text, int tokens,
                           struct oj_error *err)
{
    for (int64_t first = 0, end; first < text->n; first = end + 1)
    {
        const uint32_t *word = text->code + first;
        struct oj_token token;
        for (end = first; end < text->n && !oj_fold_is_blank(text->code[end]);)
            end++;
        if (end == first)
            continue;
        if (tokens == TRIGRAMS_OF_WORDS)
        {
            OJ_TRY(add_trigrams(s, row, word, end - first, err));
            continue;
        }
        token = oj_token_of_codes(word, end - first);
        OJ_TRY(add_token(s, row, &token, err));
    }
    return OJ_OK;
}

/* Adds all runs of q code points; a shorter text is added as a whole. */
static oj_status add_grams(struct text_slice *s, int64_t row,
                           const struct oj_folded *text, int64_t q,
                           struct oj_error *err)
{
    int64_t n = text->n < q ? text->n : q;
    for (int64_t i = 0; n > 0 && i + n <= text->n; i++)
    {
        struct oj_token token;
        if (q <= SHORT_CODES)
        {
            OJ_TRY(add_packed_token(s, row, text->code + i, n, err));
            continue;
        }
        token = oj_token_of_codes(text->code + i, n);
        OJ_TRY(add_token(s, row, &token, err));
    }
    return OJ_OK;
}

static oj_status tokenise_row(const struct tokenising *t, struct text_slice *s,
                              int64_t row, struct oj_error *err)
{
    int64_t from = t->texts->offset[row], first = s->n_tokens, n;
    int tokens = t->rules->tokens;
    const struct oj_folded *text = &s->folded;
    struct oj_token_bits bits = {{0, 0}};
    OJ_TRY(oj_fold((enum oj_fold)t->rules->fold, t->texts->bytes + from,
                   t->texts->offset[row + 1] - from, &s->folded, err));
    s->n_bad_bytes += text->n_bad_bytes;
    if (t->rules->word_map != NULL)
    {
        OJ_TRY(oj_word_map_apply(t->rules->word_map, text, &s->mapped, err));
        text = &s->mapped;
    }
    if (tokens > WHOLE_WORDS)
        OJ_TRY(add_grams(s, row, text, tokens - WHOLE_WORDS, err));
    else
        OJ_TRY(add_words(s, row, text, tokens, err));
    n = s->n_tokens - first;
    if (n > OJ_MOST_TOKENS)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the text of feature %lld has more than %d tokens; "
                       "shorten it, or set tokens to words",
                       (long long)(t->fid != NULL ? t->fid[row] : row),
                       (int)OJ_MOST_TOKENS);
    for (int64_t i = first; i < s->n_tokens; i++)
    {
        uint64_t hash = oj_token_mix(s->table.key[s->token[i]]);
        bits.word[hash >> 63] ^= UINT64_C(1) << (hash >> 57 & 63);
    }
    t->sets->size[row] = (int32_t)n;
    t->sets->bits[row] = bits;
    return OJ_OK;
}

static oj_status tokenise_slice(int64_t i, int thread, void *user,
                                struct oj_error *err)
{
    const struct tokenising *t = user;
    struct text_slice *s = &t->slice[i];
    /* a text has at most one token per byte and one more per word; pages that
     * are never written take no memory */
    int64_t n_bytes = t->texts->offset[s->end] - t->texts->offset[s->first];
    (void)thread;
    OJ_ROOM(s->token, 0, n_bytes + n_bytes / 2, s->cap_token, err);
    for (int64_t row = s->first; row < s->end; row++)
    {
        if ((row - s->first) % ROWS_AT_ONCE == 0)
            OJ_TRY(oj_check_cancel(t->cancel, err));
        OJ_TRY(tokenise_row(t, s, row, err));
    }
    oj_folded_free(&s->folded);
    oj_folded_free(&s->mapped);
    return OJ_OK;
}

/* ---- numbers in the dictionary ------------------------------------------- */

struct counted_token
{
    int64_t n_rows, number;
    struct oj_token token;
};

/* Orders tokens by number of rows, then by the token itself, so that the order
 * does not depend on the order of rows or threads. */
static int compare_tokens_by_frequency(const void *left, const void *right)
{
    const struct counted_token *a = left, *b = right;
    int64_t n = a->token.n_codes, m = b->token.n_codes;
    int order;
    if (a->n_rows != b->n_rows)
        return a->n_rows < b->n_rows ? -1 : 1;
    if (a->token.key != b->token.key)
        return a->token.key < b->token.key ? -1 : 1;
    if (a->token.code == NULL)
        return 0;
    order = memcmp(a->token.code, b->token.code,
                   (size_t)(n < m ? n : m) * sizeof *a->token.code);
    return order != 0 ? order : (n > m) - (n < m);
}

/* Adds the distinct tokens of all slices to the dictionary, with the number of
 * rows that contain each. */
static oj_status merge_slice_tokens(const struct tokenising *t,
                                    struct oj_dictionary *all,
                                    struct oj_error *err)
{
    for (int i = 0; i < t->n_slices; i++)
    {
        struct text_slice *s = &t->slice[i];
        for (int64_t j = 0; j < s->table.n; j++)
        {
            struct oj_token token = oj_token_table_token_at(&s->table, j);
            int64_t n = all->table.n, number;
            OJ_ROOM(all->n_rows, n, n + 1, all->cap_n_rows, err);
            OJ_TRY(oj_token_table_put(&all->table, &token, &number, err));
            if (number == n)
                all->n_rows[n] = 0;
            all->n_rows[number] += s->n_rows[j];
        }
    }
    return OJ_OK;
}

/* Numbers the tokens by rarity; number[old] is the new number. */
static oj_status number_tokens_by_rarity(const struct oj_dictionary *d,
                                         struct oj_token_table *numbered,
                                         uint32_t *number, struct oj_error *err)
{
    struct counted_token *counted;
    oj_status status = OJ_OK;
    OJ_NEW(counted, d->table.n, err);
    for (int64_t i = 0; i < d->table.n; i++)
    {
        counted[i].n_rows = d->n_rows[i];
        counted[i].number = i;
        counted[i].token = oj_token_table_token_at(&d->table, i);
    }
    qsort(counted, (size_t)d->table.n, sizeof *counted,
          compare_tokens_by_frequency);
    for (int64_t i = 0, at; i < d->table.n && status == OJ_OK; i++)
    {
        status = oj_token_table_put(numbered, &counted[i].token, &at, err);
        number[counted[i].number] = (uint32_t)i;
    }
    oj_free(counted);
    return status;
}

oj_status oj_token_dictionary_number_by_rarity(struct oj_dictionary *dictionary,
                                               uint32_t **number,
                                               struct oj_error *err)
{
    struct oj_token_table numbered = {0};
    uint32_t *to;
    oj_status status;
    OJ_NEW(to, dictionary->table.n, err);
    status = number_tokens_by_rarity(dictionary, &numbered, to, err);
    oj_token_table_free(status == OJ_OK ? &dictionary->table : &numbered);
    if (status != OJ_OK)
    {
        oj_free(to);
        return status;
    }
    dictionary->table = numbered;
    oj_free(dictionary->n_rows);
    dictionary->n_rows = NULL;
    dictionary->cap_n_rows = 0;
    *number = to;
    return OJ_OK;
}

/* Looks up the slice's tokens in the dictionary. offset[row + 1] becomes the
 * number of tokens of the row that were found. */
static oj_status look_up_slice_tokens(int64_t i, int thread, void *user,
                                      struct oj_error *err)
{
    const struct tokenising *t = user;
    struct text_slice *s = &t->slice[i];
    const uint32_t *token = s->token;
    (void)thread;
    OJ_NEW(s->number, s->table.n, err);
    for (int64_t j = 0; j < s->table.n; j++)
    {
        struct oj_token one = oj_token_table_token_at(&s->table, j);
        s->number[j] =
            (uint32_t)oj_token_table_find(&t->dictionary->table, &one);
    }
    for (int64_t row = s->first; row < s->end; row++)
    {
        int64_t n = 0;
        for (int32_t j = 0; j < t->sets->size[row]; j++)
            n += s->number[*token++] != NOT_THERE;
        t->sets->offset[row + 1] = n;
    }
    return OJ_OK;
}

/* Sorts a few tokens by rank: the place of a token is the number of smaller
 * tokens. This needs no branches that depend on the tokens, because they are
 * distinct. */
static void rank_sort_few_tokens(uint32_t *token, int64_t n)
{
    int32_t key[MOST_COUNTED], place[MOST_COUNTED] = {0};
    for (int64_t i = 0; i < MOST_COUNTED; i++)
        key[i] = i < n ? (int32_t)(token[i] ^ UINT32_C(1) << 31) : INT32_MAX;
    for (int64_t i = 0; i < n; i++)
    {
        for (int64_t j = 0; j < (n + 3) / 4 * 4; j++)
            place[j] += key[i] < key[j];
    }
    for (int64_t i = 0; i < n; i++)
        token[place[i]] = (uint32_t)key[i] ^ UINT32_C(1) << 31;
}

/* Sorts the tokens of a set; many tokens by Shell's sort. No set has more than
 * OJ_MOST_TOKENS. */
static void sort_tokens(uint32_t *token, int64_t n)
{
    int64_t gap = 1;
    if (n <= MOST_COUNTED)
    {
        rank_sort_few_tokens(token, n);
        return;
    }
    while (gap < n / 2)
        gap = gap * 9 / 4 + 1;
    for (;; gap = gap * 4 / 9)
    {
        gap += gap == 0;
        for (int64_t i = gap; i < n; i++)
        {
            uint32_t one = token[i];
            int64_t j = i;
            for (; j >= gap && token[j - gap] > one; j -= gap)
                token[j] = token[j - gap];
            token[j] = one;
        }
        if (gap == 1)
            return;
    }
}

static void fill_slice_sets(int64_t i, int thread, void *user)
{
    const struct tokenising *t = user;
    const struct text_slice *s = &t->slice[i];
    const uint32_t *token = s->token;
    (void)thread;
    for (int64_t row = s->first; row < s->end; row++)
    {
        uint32_t *out = t->sets->token + t->sets->offset[row];
        int64_t n = 0;
        for (int32_t j = 0; j < t->sets->size[row]; j++)
        {
            out[n] = s->number[*token++];
            n += out[n] != NOT_THERE;
        }
        sort_tokens(out, n);
    }
}

/* ---- sets of many texts -------------------------------------------------- */

static oj_status divide_texts_into_slices(struct tokenising *t, int n_threads,
                                          struct oj_error *err)
{
    int64_t n = t->texts->n, n_slices = n / ROWS_AT_ONCE + 1;
    t->n_threads = n_threads > 0 ? n_threads : oj_cpu_count();
    if (n_slices > t->n_threads)
        n_slices = t->n_threads;
    t->n_slices = (int)n_slices;
    OJ_NEW_ZEROED(t->slice, n_slices, err);
    for (int64_t i = 0; i < n_slices; i++)
    {
        t->slice[i].first = n / n_slices * i;
        t->slice[i].end = i + 1 < n_slices ? n / n_slices * (i + 1) : n;
    }
    return OJ_OK;
}

static void free_slices(struct tokenising *t)
{
    for (int i = 0; t->slice != NULL && i < t->n_slices; i++)
    {
        struct text_slice *s = &t->slice[i];
        oj_token_table_free(&s->table);
        oj_folded_free(&s->folded);
        oj_folded_free(&s->mapped);
        oj_free(s->last_row);
        oj_free(s->n_rows);
        oj_free(s->token);
        oj_free(s->number);
    }
    oj_free(t->slice);
}

static oj_status tokenise_texts(struct tokenising *t, int n_threads,
                                struct oj_error *err)
{
    struct oj_token_sets_buf *sets = t->sets;
    int64_t n = t->texts->n;
    sets->n_rows = 0;
    OJ_ROOM(sets->size, 0, n, sets->cap_size, err);
    OJ_ROOM(sets->bits, 0, n, sets->cap_bits, err);
    OJ_ROOM(sets->offset, 0, n + 1, sets->cap_offset, err);
    OJ_TRY(divide_texts_into_slices(t, n_threads, err));
    return oj_parallel_try(t->n_threads, t->n_slices, 1, tokenise_slice, t,
                           err);
}

/* Makes the token sets from the tokenised slices and the dictionary. */
static oj_status fill_sets_of_slices(struct tokenising *t, struct oj_error *err)
{
    struct oj_token_sets_buf *sets = t->sets;
    int64_t n = t->texts->n, n_bad = 0, n_without = 0;
    OJ_TRY(oj_parallel_try(t->n_threads, t->n_slices, 1, look_up_slice_tokens,
                           t, err));
    sets->offset[0] = 0;
    for (int64_t row = 0; row < n; row++)
    {
        sets->offset[row + 1] += sets->offset[row];
        n_without += sets->size[row] == 0;
    }
    OJ_ROOM(sets->token, 0, sets->offset[n] + 1, sets->cap_token, err);
    oj_parallel_for(t->n_threads, t->n_slices, fill_slice_sets, t);
    for (int i = 0; i < t->n_slices; i++)
        n_bad += t->slice[i].n_bad_bytes;
    sets->n_rows = n;
    sets->n_bad_bytes = n_bad;
    sets->n_without = n_without;
    return OJ_OK;
}

/* Tokenises the texts and adds their tokens to the dictionary. is_all 1: these
 * are all texts, so the tokens are numbered by rarity. */
static oj_status add_texts_to_dictionary(struct tokenising *t, int n_threads,
                                         int is_all,
                                         struct oj_dictionary *dictionary,
                                         struct oj_error *err)
{
    /* The map from old to new numbers is not needed, because no token set uses
     * earlier numbers. */
    uint32_t *number = NULL;
    OJ_TRY(tokenise_texts(t, n_threads, err));
    OJ_TRY(merge_slice_tokens(t, dictionary, err));
    if (is_all)
        OJ_TRY(oj_token_dictionary_number_by_rarity(dictionary, &number, err));
    oj_free(number);
    return fill_sets_of_slices(t, err);
}

oj_status oj_token_dictionary_add(const struct oj_texts *texts,
                                  const int64_t *fid,
                                  const struct oj_token_rules *rules,
                                  int is_all, int n_threads, const int *cancel,
                                  struct oj_dictionary **dictionary,
                                  struct oj_token_sets_buf *sets,
                                  struct oj_error *err)
{
    struct tokenising t = {.rules = rules,
                           .texts = texts,
                           .fid = fid,
                           .cancel = cancel,
                           .sets = sets};
    oj_status status;
    if (*dictionary == NULL)
    {
        OJ_NEW_ZEROED(*dictionary, 1, err);
        (*dictionary)->rules = *rules;
    }
    t.dictionary = *dictionary;
    status = add_texts_to_dictionary(&t, n_threads, is_all, *dictionary, err);
    free_slices(&t);
    return status;
}

oj_status
oj_token_dictionary_make(const struct oj_texts *texts, const int64_t *fid,
                         const struct oj_token_rules *rules, int n_threads,
                         const int *cancel, struct oj_dictionary **out,
                         struct oj_token_sets_buf *sets, struct oj_error *err)
{
    struct oj_dictionary *dictionary = NULL;
    oj_status status = oj_token_dictionary_add(texts, fid, rules, 1, n_threads,
                                               cancel, &dictionary, sets, err);
    if (status == OJ_OK)
        *out = dictionary;
    else
        oj_token_dictionary_free(dictionary);
    return status;
}

oj_status oj_token_dictionary_make_sets(const struct oj_dictionary *dictionary,
                                        const struct oj_texts *texts,
                                        const int64_t *fid, int n_threads,
                                        const int *cancel,
                                        struct oj_token_sets_buf *sets,
                                        struct oj_error *err)
{
    struct tokenising t = {.rules = &dictionary->rules,
                           .texts = texts,
                           .fid = fid,
                           .cancel = cancel,
                           .dictionary = dictionary,
                           .sets = sets};
    oj_status status = tokenise_texts(&t, n_threads, err);
    if (status == OJ_OK)
        status = fill_sets_of_slices(&t, err);
    free_slices(&t);
    return status;
}

int64_t oj_token_dictionary_bytes(const struct oj_dictionary *dictionary)
{
    return (int64_t)sizeof *dictionary +
           oj_token_table_bytes(&dictionary->table) +
           8 * dictionary->cap_n_rows;
}

void oj_token_dictionary_free(struct oj_dictionary *dictionary)
{
    if (dictionary == NULL)
        return;
    oj_token_table_free(&dictionary->table);
    oj_free(dictionary->n_rows);
    oj_free(dictionary);
}

/* ---- sets ---------------------------------------------------------------- */

struct oj_token_sets oj_token_sets_view(const struct oj_token_sets_buf *sets)
{
    struct oj_token_sets view = {sets->n_rows, sets->offset, sets->token,
                                 sets->size, sets->bits};
    return view;
}

void oj_tokens_renumber(uint32_t *token, int64_t n, const uint32_t *number)
{
    for (int64_t i = 0; i < n; i++)
        token[i] = number[token[i]];
    sort_tokens(token, n);
}

oj_status oj_token_sets_add(struct oj_token_sets_buf *to,
                            const struct oj_token_sets *from, int64_t row,
                            struct oj_error *err)
{
    int64_t n = to->n_rows, first = from->offset[row];
    int64_t n_tokens = from->offset[row + 1] - first, at;
    OJ_ROOM(to->size, n, n + 1, to->cap_size, err);
    OJ_ROOM(to->bits, n, n + 1, to->cap_bits, err);
    OJ_ROOM(to->offset, n > 0 ? n + 1 : 0, n + 2, to->cap_offset, err);
    if (n == 0)
        to->offset[0] = 0;
    at = to->offset[n];
    OJ_ROOM(to->token, at, at + n_tokens, to->cap_token, err);
    if (n_tokens > 0)
        memcpy(to->token + at, from->token + first,
               (size_t)n_tokens * sizeof *to->token);
    to->size[n] = from->size[row];
    to->bits[n] = from->bits[row];
    to->offset[n + 1] = at + n_tokens;
    to->n_rows = n + 1;
    return OJ_OK;
}

int64_t oj_token_sets_count_common(const struct oj_token_sets *a, int64_t row_a,
                                   const struct oj_token_sets *b, int64_t row_b)
{
    const uint32_t *s = a->token + a->offset[row_a];
    const uint32_t *t = b->token + b->offset[row_b];
    const uint32_t *s_end = a->token + a->offset[row_a + 1];
    const uint32_t *t_end = b->token + b->offset[row_b + 1];
    int64_t n = 0;
    while (s < s_end && t < t_end)
    {
        uint32_t one = *s, other = *t;
        n += one == other;
        s += one <= other;
        t += other <= one;
    }
    return n;
}

void oj_token_sets_free(struct oj_token_sets_buf *sets)
{
    oj_free(sets->offset);
    oj_free(sets->token);
    oj_free(sets->size);
    oj_free(sets->bits);
    *sets = (struct oj_token_sets_buf){0};
}
