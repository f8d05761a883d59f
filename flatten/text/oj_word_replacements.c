#include "oj_word_replacements.h"

#include "oj_token_table.h"

#include "../base/oj_alloc.h"

#include <string.h>

struct oj_word_map
{
    struct oj_token_table words;
    /* [words.n + 1] where in code the replacement of each word starts. */
    int64_t *offset;
    uint32_t *code;
    int64_t cap_offset, cap_code;
};

/* Reads the next word of text and moves *at behind it. Returns 0 if there is no
 * other word. */
static int next_word(const struct oj_folded *text, int64_t *at,
                     struct oj_token *word)
{
    int64_t first = *at, end;
    while (first < text->n && oj_fold_is_blank(text->code[first]))
        first++;
    for (end = first; end < text->n && !oj_fold_is_blank(text->code[end]);)
        end++;
    *at = end;
    *word = oj_token_of_codes(text->code + first, end - first);
    return end > first;
}

static oj_status fail_line(int64_t line, const char *why, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA, "line %lld of the word map %s",
                   (long long)line, why);
}

/* Reads and folds the field at *at, which may be in double quotes, and moves
 * *at behind it: to a comma or to n. */
static oj_status read_field(const char *line, int64_t n, int64_t number,
                            int64_t *at, enum oj_fold fold,
                            struct oj_folded *out, struct oj_error *err)
{
    const int is_quoted = *at < n && line[*at] == '"';
    const int64_t first = *at + is_quoted;
    const char *stop = first < n ? memchr(line + first, is_quoted ? '"' : ',',
                                          (size_t)(n - first))
                                 : NULL;
    const int64_t end = stop != NULL ? stop - line : n;
    if (is_quoted && stop == NULL)
        return fail_line(number,
                         "has a double quote that is not closed: write "
                         "another one at the end of the column",
                         err);
    *at = end + is_quoted;
    while (is_quoted && *at < n && (line[*at] == ' ' || line[*at] == '\t'))
        ++*at;
    if (*at < n && line[*at] != ',')
        return fail_line(number,
                         "has text behind a closing double quote: put the "
                         "whole column between two quotes, or write none",
                         err);
    return oj_fold(fold, line + first, end - first, out, err);
}

static oj_status read_line(struct oj_word_map *map, const char *line, int64_t n,
                           int64_t number, enum oj_fold fold,
                           struct oj_folded *field, struct oj_error *err)
{
    int64_t at = 0, end = 0, place, start, n_words = map->words.n;
    struct oj_token word, second;
    OJ_TRY(read_field(line, n, number, &at, fold, &field[0], err));
    if (at == n)
        return fail_line(number, "has no comma: write WORD,REPLACEMENT", err);
    if (!next_word(&field[0], &end, &word) ||
        next_word(&field[0], &end, &second))
        return fail_line(number,
                         "must have one word before the comma: write "
                         "WORD,REPLACEMENT",
                         err);
    at++;
    OJ_TRY(read_field(line, n, number, &at, fold, &field[1], err));
    if (at < n)
        return fail_line(number,
                         "has more than two columns: write WORD,REPLACEMENT, "
                         "and put a replacement with a comma into double "
                         "quotes",
                         err);
    OJ_ROOM(map->offset, n_words > 0 ? n_words + 1 : 0, n_words + 2,
            map->cap_offset, err);
    start = n_words > 0 ? map->offset[n_words] : 0;
    OJ_ROOM(map->code, start, start + field[1].n, map->cap_code, err);
    OJ_TRY(oj_token_table_put(&map->words, &word, &place, err));
    if (place < n_words)
    {
        start = map->offset[place];
        if (map->offset[place + 1] - start != field[1].n ||
            (field[1].n > 0 &&
             memcmp(map->code + start, field[1].code,
                    (size_t)field[1].n * sizeof *map->code) != 0))
            return fail_line(number,
                             "repeats a word with another replacement: leave "
                             "out one of the two lines",
                             err);
        return OJ_OK;
    }
    if (field[1].n > 0)
        memcpy(map->code + start, field[1].code,
               (size_t)field[1].n * sizeof *map->code);
    map->offset[place] = start;
    map->offset[place + 1] = start + field[1].n;
    return OJ_OK;
}

static oj_status read_lines(struct oj_word_map *map, const char *text,
                            int64_t n, enum oj_fold fold,
                            struct oj_folded *field, struct oj_error *err)
{
    int64_t number = 1;
    for (int64_t first = 0; first < n; number++)
    {
        const char *stop = memchr(text + first, '\n', (size_t)(n - first));
        int64_t end = stop != NULL ? stop - text : n, last = end;
        if (last > first && text[last - 1] == '\r')
            last--;
        if (last > first)
            OJ_TRY(read_line(map, text + first, last - first, number, fold,
                             field, err));
        first = end + 1;
    }
    return OJ_OK;
}

oj_status oj_word_map_make(const char *text, int64_t n, enum oj_fold fold,
                           struct oj_word_map **out, struct oj_error *err)
{
    struct oj_folded field[2] = {{0}};
    struct oj_word_map *map;
    oj_status status;
    OJ_NEW_ZEROED(map, 1, err);
    status = read_lines(map, text, n, fold, field, err);
    oj_folded_free(&field[0]);
    oj_folded_free(&field[1]);
    if (status == OJ_OK)
        *out = map;
    else
        oj_word_map_free(map);
    return status;
}

oj_status oj_word_map_apply(const struct oj_word_map *map,
                            const struct oj_folded *text, struct oj_folded *out,
                            struct oj_error *err)
{
    struct oj_token word;
    int64_t at = 0, to = 0;
    while (next_word(text, &at, &word))
    {
        int64_t place = oj_token_table_find(&map->words, &word);
        if (place >= 0)
        {
            word.code = map->code + map->offset[place];
            word.n_codes = map->offset[place + 1] - map->offset[place];
        }
        if (word.n_codes == 0)
            continue;
        OJ_ROOM(out->code, to, to + 1 + word.n_codes, out->cap_code, err);
        if (to > 0)
            out->code[to++] = ' ';
        memcpy(out->code + to, word.code,
               (size_t)word.n_codes * sizeof *out->code);
        to += word.n_codes;
    }
    out->n = to;
    out->n_bad_bytes = text->n_bad_bytes;
    return OJ_OK;
}

void oj_word_map_free(struct oj_word_map *map)
{
    if (map == NULL)
        return;
    oj_token_table_free(&map->words);
    oj_free(map->offset);
    oj_free(map->code);
    oj_free(map);
}
