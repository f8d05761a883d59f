#include "oj_fold.h"

#include "oj_fold_table.h"

#include "../base/oj_alloc.h"
#include "../base/oj_utf8.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The code points to which each code point folds. */
struct fold_map
{
    uint16_t place[OJ_FOLD_END]; /* index in pool; 0: the code point folds to
                                    itself */
    /* at each index: a count, followed by this many code points */
    uint32_t pool[OJ_FOLD_POOL];
    uint32_t n_pool, n_codes; /* used while the map is made */
};

static struct fold_map full, case_only;
static pthread_once_t are_made = PTHREAD_ONCE_INIT;

/* Adds one item of the folding table, which starts at `at`; returns the address
 * behind it. */
static const char *expand_folding_item(struct fold_map *map, const char *at)
{
    uint32_t text[1 + OJ_FOLD_MOST] = {0}; /* the number of code points, then
                                              the code points */
    uint32_t n = 1, step, rise;
    char kind = '*', *end;
    while (strchr("*+/=;", *at) == NULL)
        at += oj_utf8_decode((const unsigned char *)at, 4, &text[++text[0]]);
    if (*at != ';')
    {
        kind = *at;
        n = (uint32_t)strtoul(at + 1, &end, 10);
        at = end;
    }
    step = kind == '/' ? 2 : 1;
    rise = kind == '/' ? 2 : kind == '+';
    for (uint32_t i = 0; i < n && kind != '='; i += step, text[1] += rise)
    {
        if (i == 0 || rise > 0)
        {
            memcpy(map->pool + map->n_pool, text, (1 + text[0]) * sizeof *text);
            map->n_pool += 1 + text[0];
        }
        map->place[map->n_codes + i] = (uint16_t)(map->n_pool - 1 - text[0]);
    }
    map->n_codes += n;
    return at + 1;
}

static void expand_fold_table(struct fold_map *map, const char *const *lines)
{
    map->n_pool = 1;
    for (; *lines != NULL; lines++)
    {
        for (const char *at = *lines; *at != '\0';)
            at = expand_folding_item(map, at);
    }
}

static void expand_fold_tables(void)
{
    expand_fold_table(&full, oj_fold_full);
    expand_fold_table(&case_only, oj_fold_case);
}

/* Returns the *n code points to which *code folds. */
static const uint32_t *fold_code_point(enum oj_fold fold, const uint32_t *code,
                                       int *n)
{
    static const uint32_t space = ' ';
    const struct fold_map *map = fold == OJ_FOLD_FULL ? &full : &case_only;
    const uint32_t *folded;
    *n = 1;
    if (fold == OJ_FOLD_NONE || (fold == OJ_FOLD_CASE && *code >= OJ_FOLD_END))
        return code;
    if (*code >= OJ_FOLD_END)
    {
        /* Variation selectors are dropped. */
        *n = *code < 0xe0100 || *code > 0xe01ef;
        return &space;
    }
    if (map->place[*code] == 0)
        return code;
    folded = map->pool + map->place[*code];
    *n = (int)*folded;
    return folded + 1;
}

oj_status oj_fold(enum oj_fold fold, const char *bytes, int64_t n,
                  struct oj_folded *out, struct oj_error *err)
{
    const unsigned char *s = (const unsigned char *)bytes;
    int64_t to = 0, n_bad = 0;
    int collapses = fold != OJ_FOLD_NONE;
    pthread_once(&are_made, expand_fold_tables);
    for (int64_t i = 0; i < n;)
    {
        uint32_t code = ' ';
        const uint32_t *folded;
        int n_folded, length = oj_utf8_decode(s + i, n - i, &code);
        n_bad += length == 0;
        i += length > 0 ? length : 1;
        folded = fold_code_point(fold, &code, &n_folded);
        /* room for one code point per remaining byte; few code points fold to
         * more than one */
        if (to + n_folded + (n - i) > out->cap_code)
            OJ_ROOM(out->code, to, to + n_folded + (n - i), out->cap_code, err);
        for (int j = 0; j < n_folded; j++)
        {
            if (collapses && folded[j] == ' ' &&
                (to == 0 || out->code[to - 1] == ' '))
                continue;
            out->code[to++] = folded[j];
        }
    }
    if (collapses && to > 0 && out->code[to - 1] == ' ')
        to--;
    out->n = to;
    out->n_bad_bytes = n_bad;
    return OJ_OK;
}

void oj_folded_free(struct oj_folded *folded)
{
    oj_free(folded->code);
    *folded = (struct oj_folded){0};
}
