/** Texts as sets of tokens.
 *
 *  text        "Café Müller"  ""  "CAFE"
 *  folded      "cafe muller"  ""  "cafe"           oj_fold.h
 *  token       [12 31 40 77 90 | | 12 40 90]       rarest first, each once
 *  offset      [0              5 5           8]
 *  size        [12             0 3]
 *
 *  Numbers of tokens are those of the dictionary, which the join side makes:
 *  rare ones first, so that a set's first tokens are its rarest.  Tokens of an
 *  input text that the dictionary has not can be common to nothing: they count
 *  in size alone.  A text without tokens (NULL, empty, punctuation) has size 0
 *  and joins nothing.
 */
#ifndef OJ_TOKEN_SETS_H
#define OJ_TOKEN_SETS_H

#include "../base/oj_status.h"

#include <stdint.h>

enum
{
    OJ_MOST_TOKENS = 1 << 20 /* of a text */
};

/** Texts one after another. A view; a NULL is an empty text. */
struct oj_texts
{
    int64_t n;
    const int64_t *offset; /**< [n + 1] into bytes */
    const char *bytes;     /**< UTF-8; a bad byte counts as a space */
};

/** How a text becomes tokens. Plain values; borrows the word map. */
struct oj_token_rules
{
    int fold;                           /**< place in OJ_FOLD_NAMES */
    int tokens;                         /**< place in OJ_TOKEN_NAMES */
    const struct oj_word_map *word_map; /**< or NULL */
};

#define OJ_FOLD_NAMES "full|case|none"
#define OJ_TOKEN_NAMES                                                         \
    "trgm|words|1grams|2grams|3grams|4grams|5grams|6grams|7grams|8grams"

/** A hash of a set: sets with o tokens in common differ in at least
 *  a + b - 2 o of its bits less those that fall together, so that
 *  o <= (a + b - popcount(x ^ y)) / 2. */
struct oj_token_bits
{
    uint64_t word[2];
};

/** A view. */
struct oj_token_sets
{
    int64_t n_rows;
    const int64_t *offset;            /**< [n_rows + 1] into token */
    const uint32_t *token;            /**< ascending within a row */
    const int32_t *size;              /**< [n_rows] */
    const struct oj_token_bits *bits; /**< [n_rows] of all tokens of the row,
                                           also unknown ones */
};

/** n rows from first on, as sets of their own. */
static inline struct oj_token_sets
oj_token_sets_slice(const struct oj_token_sets *sets, int64_t first, int64_t n)
{
    struct oj_token_sets slice = {n, sets->offset + first, sets->token,
                                  sets->size + first, sets->bits + first};
    return slice;
}

/** Number of bits that differ. Plain arithmetic: without an instruction for it
 *  the compiler's own is a call and a table. */
static inline int64_t oj_token_bits_apart(const struct oj_token_bits *s,
                                          const struct oj_token_bits *t)
{
    const uint64_t ones = ~UINT64_C(0) / 3, twos = ~UINT64_C(0) / 5;
    const uint64_t fours = ~UINT64_C(0) / 17;
    uint64_t sum = 0; /* of every four bits, then of every eight */
    for (int w = 0; w < 2; w++)
    {
        uint64_t x = s->word[w] ^ t->word[w];
        x -= x >> 1 & ones;
        sum += (x & twos) + (x >> 2 & twos);
    }
    sum = (sum & fours) + (sum >> 4 & fours);
    return (int64_t)(sum * (~UINT64_C(0) / 255) >> 56);
}

/** The most tokens that two rows can have in common, by their sizes and bits.
 */
static inline int64_t oj_token_sets_bound(const struct oj_token_sets *a,
                                          int64_t row_a,
                                          const struct oj_token_sets *b,
                                          int64_t row_b)
{
    int64_t both = (int64_t)a->size[row_a] + b->size[row_b];
    return (both - oj_token_bits_apart(&a->bits[row_a], &b->bits[row_b])) / 2;
}

/** Owner; zeroed memory is a valid empty one, and one object may be used for
 *  many batches (its memory is kept). After an error it has no rows. */
struct oj_token_sets_buf
{
    int64_t n_rows, n_bad_bytes, n_without; /**< rows that have no token */
    int64_t *offset;
    uint32_t *token;
    int32_t *size;
    struct oj_token_bits *bits;
    int64_t cap_offset, cap_token, cap_size, cap_bits;
};

struct oj_token_sets oj_token_sets_view(const struct oj_token_sets_buf *sets);

/** Adds the set of a row. */
OJ_MUST_USE oj_status oj_token_sets_add(struct oj_token_sets_buf *to,
                                        const struct oj_token_sets *from,
                                        int64_t row, struct oj_error *err);

/** Gives the n tokens of a set their new numbers, which
 * oj_token_dictionary_order() says. */
void oj_tokens_renumber(uint32_t *token, int64_t n, const uint32_t *number);

void oj_token_sets_free(struct oj_token_sets_buf *sets);

/** The tokens of the join side and their numbers. Does not change once all of
 *  the side is in it: to be read by any number of threads. */
struct oj_dictionary;

/** Makes the dictionary of texts and their sets, on n_threads (0: all).
 *  fid     [texts->n] or NULL, for messages
 *  Errors  OJ_ERR_LIMIT: a text with more than OJ_MOST_TOKENS, with its FID, or
 *          2^32 - 1 different tokens; OJ_ERR_NOMEM; OJ_ERR_CANCELLED */
OJ_MUST_USE oj_status
oj_token_dictionary_make(const struct oj_texts *texts, const int64_t *fid,
                         const struct oj_token_rules *rules, int n_threads,
                         const int *cancel, struct oj_dictionary **out,
                         struct oj_token_sets_buf *sets, struct oj_error *err);

/** Of a side that comes in pieces: adds the tokens of some texts to
 * *dictionary, NULL at first, which is the caller's also after an error.
 *  is_all: of all texts, otherwise tokens are numbered as they come */
OJ_MUST_USE oj_status oj_token_dictionary_add(
    const struct oj_texts *texts, const int64_t *fid,
    const struct oj_token_rules *rules, int is_all, int n_threads,
    const int *cancel, struct oj_dictionary **dictionary,
    struct oj_token_sets_buf *sets, struct oj_error *err);

/** The last piece has come: rare tokens first from now on. *number [tokens],
 *  the caller's, says what has become of the earlier numbers. */
OJ_MUST_USE oj_status oj_token_dictionary_order(
    struct oj_dictionary *dictionary, uint32_t **number, struct oj_error *err);

/** The sets of a batch of the other side, by the dictionary's rules. */
OJ_MUST_USE oj_status oj_token_dictionary_find(
    const struct oj_dictionary *dictionary, const struct oj_texts *texts,
    const int64_t *fid, int n_threads, const int *cancel,
    struct oj_token_sets_buf *sets, struct oj_error *err);

int64_t oj_token_dictionary_bytes(const struct oj_dictionary *dictionary);

/** Tokens of the row of one in the row of the other. */
int64_t oj_token_sets_common(const struct oj_token_sets *a, int64_t row_a,
                             const struct oj_token_sets *b, int64_t row_b);

/** Accepts NULL. */
void oj_token_dictionary_free(struct oj_dictionary *dictionary);

#endif
