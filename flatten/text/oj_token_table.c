#include "oj_token_table.h"

#include "../base/oj_alloc.h"

#include <string.h>

struct oj_token oj_token_of_codes(const uint32_t *code, int64_t n)
{
    struct oj_token token = {0, code, n};
    for (int64_t i = 0; i < n; i++)
        token.key = oj_token_mix(token.key + code[i] + 1);
    return token;
}

static int is_same_token(const struct oj_token_table *table, int64_t number,
                         const struct oj_token *token)
{
    int64_t start;
    if (table->key[number] != token->key)
        return 0;
    if (token->code == NULL)
        return 1;
    start = table->start[number];
    return table->start[number + 1] - start == token->n_codes &&
           memcmp(table->code + start, token->code,
                  (size_t)token->n_codes * sizeof *token->code) == 0;
}

/* Returns the slot of a token; if the table lacks it, the free slot for it. A
 * free slot must exist. */
static uint32_t *find_slot(const struct oj_token_table *table,
                           const struct oj_token *token)
{
    uint64_t last = (uint64_t)table->n_slots - 1;
    uint64_t i = oj_token_mix(token->key) & last;
    while (table->slot[i] != 0 &&
           !is_same_token(table, table->slot[i] - 1, token))
        i = (i + 1) & last;
    return table->slot + i;
}

int64_t oj_token_table_find(const struct oj_token_table *table,
                            const struct oj_token *token)
{
    return table->n_slots > 0 ? (int64_t)*find_slot(table, token) - 1 : -1;
}

/* Doubles the number of slots. */
static oj_status grow_slots(struct oj_token_table *table, struct oj_error *err)
{
    int64_t n = table->n_slots > 0 ? 2 * table->n_slots : 1024;
    uint32_t *slot;
    OJ_NEW_ZEROED(slot, n, err);
    oj_free(table->slot);
    table->slot = slot;
    table->n_slots = n;
    for (int64_t i = 0; i < table->n; i++)
    {
        uint64_t at = oj_token_mix(table->key[i]) & ((uint64_t)n - 1);
        while (slot[at] != 0)
            at = (at + 1) & ((uint64_t)n - 1);
        slot[at] = (uint32_t)i + 1;
    }
    return OJ_OK;
}

oj_status oj_token_table_put(struct oj_token_table *table,
                             const struct oj_token *token, int64_t *number,
                             struct oj_error *err)
{
    uint32_t *slot;
    int64_t n = table->n;
    if (2 * n >= table->n_slots)
        OJ_TRY(grow_slots(table, err));
    slot = find_slot(table, token);
    *number = (int64_t)*slot - 1;
    if (*slot != 0)
        return OJ_OK;
    if (n >= UINT32_MAX - 1)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the texts have more than %lld different tokens; set "
                       "tokens to trgm",
                       (long long)n);
    OJ_ROOM(table->key, n, n + 1, table->cap_key, err);
    if (token->code != NULL)
    {
        int64_t start = n > 0 ? table->start[n] : 0;
        int64_t end = start + token->n_codes;
        OJ_ROOM(table->start, n > 0 ? n + 1 : 0, n + 2, table->cap_start, err);
        OJ_ROOM(table->code, start, end, table->cap_code, err);
        memcpy(table->code + start, token->code,
               (size_t)token->n_codes * sizeof *token->code);
        table->start[n] = start;
        table->start[n + 1] = end;
    }
    table->key[n] = token->key;
    *slot = (uint32_t)n + 1;
    *number = table->n++;
    return OJ_OK;
}

struct oj_token oj_token_table_token_at(const struct oj_token_table *table,
                                        int64_t number)
{
    struct oj_token token = {table->key[number], NULL, 0};
    if (table->start != NULL)
    {
        token.code = table->code + table->start[number];
        token.n_codes = table->start[number + 1] - table->start[number];
    }
    return token;
}

int64_t oj_token_table_bytes(const struct oj_token_table *table)
{
    return (int64_t)sizeof *table + 8 * (table->cap_key + table->cap_start) +
           4 * (table->cap_code + table->n_slots);
}

void oj_token_table_free(struct oj_token_table *table)
{
    oj_free(table->key);
    oj_free(table->start);
    oj_free(table->code);
    oj_free(table->slot);
    *table = (struct oj_token_table){0};
}
