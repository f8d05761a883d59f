/** A table of distinct tokens, numbered in the order of insertion.
 *
 *  A token is short (up to three code points) or long (any number):
 *
 *   short  key = three times 21 bits, each a code point + 1, or 0
 *   long   key = a hash; tokens are equal if their code points are
 *
 *  A table holds either short or long tokens.
 */
#ifndef OJ_TOKEN_TABLE_H
#define OJ_TOKEN_TABLE_H

#include "../base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

/** A token. Owns nothing. */
struct oj_token
{
    uint64_t key;
    const uint32_t *code; /**< [n_codes]; NULL: a short token */
    int64_t n_codes;
};

/** The table. Owner; zeroed memory is a valid empty one. */
struct oj_token_table
{
    int64_t n; /**< number of tokens */
    uint64_t *key;
    int64_t *start; /**< [n + 1] offsets into code, for long tokens */
    uint32_t *code;
    /** [n_slots] hash table; n_slots is a power of 2. A slot holds the number
     *  of a token + 1; 0: the slot is free. */
    uint32_t *slot;
    int64_t n_slots, cap_key, cap_start, cap_code;
};

/** Mixes the bits of a key, so that each of them affects all bits of the hash.
 */
static inline uint64_t oj_token_mix(uint64_t key)
{
    key *= UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return key ^ key >> 32;
}

struct oj_token oj_token_of_codes(const uint32_t *code, int64_t n);

/** Returns the number of a token; -1 if it is not in the table. */
int64_t oj_token_table_find(const struct oj_token_table *table,
                            const struct oj_token *token);

/** Sets *number to the number of a token, which is added if it is new. Fails
 *  with OJ_ERR_LIMIT if there are more than 2^32 - 2 tokens. */
OJ_MUST_USE oj_status oj_token_table_put(struct oj_token_table *table,
                                         const struct oj_token *token,
                                         int64_t *number, struct oj_error *err);

/** Returns the token with this number (0 .. n - 1); its codes are borrowed from
 *  the table and valid until the next put. */
struct oj_token oj_token_table_token_at(const struct oj_token_table *table,
                                        int64_t number);

int64_t oj_token_table_bytes(const struct oj_token_table *table);

void oj_token_table_free(struct oj_token_table *table);

#endif
