#include "oj_row_texts.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/text/oj_word_map.h"

#include <string.h>

struct oj_dictionaries
{
    int n_holders; /* counted atomically */
    int n;
    struct oj_word_map *word_map; /* or NULL; the dictionaries borrow it */
    struct oj_dictionary *of[OJ_MOST_TEXTS]; /* NULL: not made yet */
};

struct oj_row_texts
{
    struct oj_text_fields fields[OJ_MOST_TEXTS][2];
    struct oj_field_text written[OJ_MOST_TEXTS][2][OJ_MOST_TEXT_FIELDS];
    struct oj_token_rules rules;
    int n_threads;
    const int *cancel;
    struct oj_dictionaries *dictionaries; /* held */
};

/* ---- texts --------------------------------------------------------------- */

/* Appends the text of a row to work->bytes, of which *n are in use. */
static oj_status add_text(struct oj_row_texts *texts, int condition, int side,
                          const struct oj_row_values *values, int64_t row,
                          struct oj_row_sets *work, int64_t *n,
                          struct oj_error *err)
{
    const struct oj_text_fields *fields = &texts->fields[condition][side];
    int64_t first = *n;
    for (int i = 0; i < fields->n; i++)
    {
        struct oj_value value;
        const char *text;
        int64_t length;
        oj_row_values_get(values, row, fields->field[i].column, &value);
        if (!oj_value_is_there(&value))
            continue;
        OJ_TRY(oj_field_text_get(&texts->written[condition][side][i],
                                 &fields->field[i], &value, &text, &length,
                                 err));
        OJ_ROOM(work->bytes, *n, *n + length + 1, work->cap_bytes, err);
        if (*n > first)
            work->bytes[(*n)++] = ' ';
        memcpy(work->bytes + *n, text, (size_t)length);
        *n += length;
    }
    return OJ_OK;
}

static oj_status gather_texts(struct oj_row_texts *texts, int condition,
                              int side, const struct oj_row_values *values,
                              int64_t n_rows, struct oj_row_sets *work,
                              struct oj_error *err)
{
    int64_t n = 0;
    OJ_ROOM(work->offset, 0, n_rows + 1, work->cap_offset, err);
    OJ_ROOM(work->bytes, 0, 1, work->cap_bytes, err);
    work->offset[0] = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        OJ_TRY(add_text(texts, condition, side, values, row, work, &n, err));
        work->offset[row + 1] = n;
    }
    return OJ_OK;
}

/* ---- sets ---------------------------------------------------------------- */

static oj_status make_sets(struct oj_row_texts *texts, int condition,
                           int insert, const struct oj_flat *flat,
                           struct oj_row_sets *work, struct oj_error *err)
{
    const struct oj_texts of_rows = {flat->n_features, work->offset,
                                     work->bytes};
    struct oj_dictionary **dictionary = &texts->dictionaries->of[condition];
    if (insert == OJ_LOOK_UP)
        return oj_dictionary_find(*dictionary, &of_rows, flat->fid,
                                  texts->n_threads, texts->cancel,
                                  &work->made[condition], err);
    if (insert == OJ_INSERT_ALL)
    {
        oj_dictionary_free(*dictionary);
        *dictionary = NULL;
    }
    return oj_dictionary_add(&of_rows, flat->fid, &texts->rules,
                             insert == OJ_INSERT_ALL, texts->n_threads,
                             texts->cancel, dictionary, &work->made[condition],
                             err);
}

oj_status oj_row_texts_order(struct oj_row_texts *texts,
                             uint32_t *number[OJ_MOST_TEXTS],
                             struct oj_error *err)
{
    struct oj_dictionaries *all = texts->dictionaries;
    for (int i = 0; i < all->n; i++)
    {
        if (all->of[i] != NULL)
            OJ_TRY(oj_dictionary_order(all->of[i], &number[i], err));
    }
    return OJ_OK;
}

static int64_t count_rows_without_text(const struct oj_row_sets *work,
                                       int n_texts, int64_t n_rows)
{
    int64_t n = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        int i = 0;
        while (i < n_texts && work->view[i].size[row] > 0)
            i++;
        n += i < n_texts;
    }
    return n;
}

oj_status oj_row_texts_make(struct oj_row_texts *texts, int side, int insert,
                            const struct oj_row_values *values,
                            struct oj_row_sets *work, struct oj_flat *flat,
                            int64_t *n_without, struct oj_error *err)
{
    int n = texts->dictionaries->n;
    for (int i = 0; i < n; i++)
    {
        OJ_TRY(
            gather_texts(texts, i, side, values, flat->n_features, work, err));
        OJ_TRY(make_sets(texts, i, insert, flat, work, err));
        work->view[i] = oj_token_sets_view(&work->made[i]);
    }
    if (insert == OJ_INSERT_ALL) /* no more of them */
    {
        oj_free(work->bytes);
        work->bytes = NULL;
        work->cap_bytes = 0;
    }
    *n_without = count_rows_without_text(work, n, flat->n_features);
    flat->texts = work->view;
    flat->n_texts = n;
    return OJ_OK;
}

int64_t oj_row_sets_bytes(const struct oj_row_sets *sets)
{
    int64_t bytes = 8 * sets->cap_offset + sets->cap_bytes;
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
    {
        const struct oj_token_sets_buf *made = &sets->made[i];
        bytes += 8 * made->cap_offset + 4 * (made->cap_token + made->cap_size) +
                 made->cap_bits * (int64_t)sizeof *made->bits;
    }
    return bytes;
}

void oj_row_sets_free(struct oj_row_sets *sets)
{
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_token_sets_free(&sets->made[i]);
    oj_free(sets->offset);
    oj_free(sets->bytes);
    memset(sets, 0, sizeof *sets);
}

/* ---- life ---------------------------------------------------------------- */

static oj_status new_dictionaries(int n, const struct oj_token_rules *rules,
                                  const char *word_map,
                                  struct oj_dictionaries **out,
                                  struct oj_error *err)
{
    struct oj_dictionaries *dictionaries;
    oj_status status = OJ_OK;
    OJ_NEW_ZEROED(dictionaries, 1, err);
    dictionaries->n_holders = 1;
    dictionaries->n = n;
    if (word_map != NULL)
        status = oj_word_map_make(word_map, (int64_t)strlen(word_map),
                                  (enum oj_fold)rules->fold,
                                  &dictionaries->word_map, err);
    if (status == OJ_OK)
        *out = dictionaries;
    else
        oj_dictionaries_free(dictionaries);
    return status;
}

oj_status oj_row_texts_new(const struct oj_text_fields (*fields)[2], int n,
                           const struct oj_token_rules *rules,
                           const char *word_map, int n_threads,
                           const int *cancel, struct oj_row_texts **out,
                           struct oj_error *err)
{
    struct oj_row_texts *texts;
    oj_status status;
    OJ_NEW_ZEROED(texts, 1, err);
    status = new_dictionaries(n, rules, word_map, &texts->dictionaries, err);
    if (status != OJ_OK)
    {
        oj_free(texts);
        return status;
    }
    memcpy(texts->fields, fields, (size_t)n * sizeof *fields);
    texts->rules = *rules;
    texts->rules.word_map = texts->dictionaries->word_map;
    texts->n_threads = n_threads;
    texts->cancel = cancel;
    *out = texts;
    return OJ_OK;
}

void oj_row_texts_free(struct oj_row_texts *texts)
{
    if (texts == NULL)
        return;
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
    {
        for (int j = 0; j < 2 * OJ_MOST_TEXT_FIELDS; j++)
            oj_field_text_free(&texts->written[i][j % 2][j / 2]);
    }
    oj_dictionaries_free(texts->dictionaries);
    oj_free(texts);
}

/* ---- the dictionaries alone ---------------------------------------------- */

struct oj_dictionaries *oj_row_texts_hold(struct oj_row_texts *texts)
{
    if (texts == NULL)
        return NULL;
    __atomic_fetch_add(&texts->dictionaries->n_holders, 1, __ATOMIC_RELAXED);
    return texts->dictionaries;
}

void oj_row_texts_use(struct oj_row_texts *texts,
                      struct oj_dictionaries *dictionaries)
{
    if (texts == NULL || dictionaries == NULL)
        return;
    __atomic_fetch_add(&dictionaries->n_holders, 1, __ATOMIC_RELAXED);
    oj_dictionaries_free(texts->dictionaries);
    texts->dictionaries = dictionaries;
}

int64_t oj_dictionaries_bytes(const struct oj_dictionaries *dictionaries)
{
    int64_t bytes = 0;
    for (int i = 0; dictionaries != NULL && i < dictionaries->n; i++)
        bytes += oj_dictionary_bytes(dictionaries->of[i]);
    return bytes;
}

void oj_dictionaries_free(struct oj_dictionaries *dictionaries)
{
    if (dictionaries == NULL ||
        __atomic_sub_fetch(&dictionaries->n_holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int i = 0; i < dictionaries->n; i++)
        oj_dictionary_free(dictionaries->of[i]);
    oj_word_map_free(dictionaries->word_map);
    oj_free(dictionaries);
}
