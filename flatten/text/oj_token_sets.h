/** Texts as sets of tokens.
 *
 *  text        "Café Müller"  ""  "CAFE"
 *  folded      "cafe muller"  ""  "cafe"           oj_fold.h
 *  token       [12 31 40 77 90 | | 12 40 90]       rarest first, each once
 *  offset      [0              5 5           8]
 *  size        [12             0 3]
 *
 *  The join side makes the dictionary, which numbers tokens by rarity, so that
 *  the first tokens of a set are its rarest. Tokens of an input text that are
 *  not in the dictionary cannot be common to two texts: they are counted in
 *  `size`, but not listed in `token`. A text without tokens (NULL, empty,
 *  punctuation) has size 0 and matches nothing. */
#ifndef OJ_TOKEN_SETS_H
#define OJ_TOKEN_SETS_H

#include "../base/oj_status.h"

#include <stdint.h>

enum
{
    OJ_MOST_TOKENS = 1 << 20 /* maximum tokens of a text */
};

/** Consecutive texts. Owns nothing; a NULL is an empty text. */
struct oj_texts
{
    int64_t n;
    const int64_t *offset; /**< [n + 1] offsets into bytes */
    const char *bytes;     /**< UTF-8; an invalid byte counts as a space */
};

/** How a text is divided into tokens. Plain data; borrows the word map. */
struct oj_token_rules
{
    int fold;                           /**< position in OJ_FOLD_NAMES */
    int tokens;                         /**< position in OJ_TOKEN_NAMES */
    const struct oj_word_map *word_map; /**< replacements of words, or NULL */
};

#define OJ_FOLD_NAMES "full|case|none"
#define OJ_TOKEN_NAMES                                                         \
    "trgm|words|1grams|2grams|3grams|4grams|5grams|6grams|7grams|8grams"

/** A bitmap of a token set: each token sets one bit. The bitmaps x, y of two
 *  sets with a and b tokens, o of them common, differ in at most a + b - 2 o
 *  bits. Therefore o <= (a + b - popcount(x ^ y)) / 2. */
struct oj_token_bits
{
    uint64_t word[2];
};

/** Token sets of consecutive texts. Owns nothing. */
struct oj_token_sets
{
    int64_t n_rows;
    const int64_t *offset; /**< [n_rows + 1] offsets into token */
    const uint32_t *token; /**< token numbers, ascending within a row */
    const int32_t *size;   /**< [n_rows] number of tokens of the row, including
                                those not in the dictionary */
    /** [n_rows] bitmaps of all tokens of the row, including those not in the
     *  dictionary. */
    const struct oj_token_bits *bits;
};

/** Returns rows first .. first + n - 1, without a copy. */
static inline struct oj_token_sets
oj_token_sets_slice(const struct oj_token_sets *sets, int64_t first, int64_t n)
{
    struct oj_token_sets slice = {n, sets->offset + first, sets->token,
                                  sets->size + first, sets->bits + first};
    return slice;
}

/** Returns the number of differing bits. Computed by plain arithmetic: without
 *  a popcount instruction, the compiler's builtin calls a function with a
 *  table. */
static inline int64_t
oj_token_bits_hamming_distance(const struct oj_token_bits *s,
                               const struct oj_token_bits *t)
{
    const uint64_t ones = ~UINT64_C(0) / 3, twos = ~UINT64_C(0) / 5;
    const uint64_t fours = ~UINT64_C(0) / 17;
    uint64_t sum = 0; /* sums of four bits each, then of eight bits each */
    for (int w = 0; w < 2; w++)
    {
        uint64_t x = s->word[w] ^ t->word[w];
        x -= x >> 1 & ones;
        sum += (x & twos) + (x >> 2 & twos);
    }
    sum = (sum & fours) + (sum >> 4 & fours);
    return (int64_t)(sum * (~UINT64_C(0) / 255) >> 56);
}

/** Returns an upper bound of the number of tokens that two rows have in common,
 *  from their sizes and bitmaps. */
static inline int64_t oj_token_sets_bound(const struct oj_token_sets *a,
                                          int64_t row_a,
                                          const struct oj_token_sets *b,
                                          int64_t row_b)
{
    int64_t both = (int64_t)a->size[row_a] + b->size[row_b];
    return (both -
            oj_token_bits_hamming_distance(&a->bits[row_a], &b->bits[row_b])) /
           2;
}

/** Token sets to which rows can be added. Owner; zeroed memory is a valid empty
 *  one, and an object may be used for many batches (it keeps its memory). After
 *  an error it has no rows. */
struct oj_token_sets_buf
{
    /** n_without: number of rows without a token. */
    int64_t n_rows, n_bad_bytes, n_without;
    int64_t *offset;
    uint32_t *token;
    int32_t *size;
    struct oj_token_bits *bits;
    int64_t cap_offset, cap_token, cap_size, cap_bits;
};

struct oj_token_sets oj_token_sets_view(const struct oj_token_sets_buf *sets);

/** Appends the token set of a row of *from. */
OJ_MUST_USE oj_status oj_token_sets_add(struct oj_token_sets_buf *to,
                                        const struct oj_token_sets *from,
                                        int64_t row, struct oj_error *err);

/** Replaces the n tokens of a set by their new numbers: token[i] becomes
 *  number[token[i]], with number from oj_token_dictionary_number_by_rarity().
 */
void oj_tokens_renumber(uint32_t *token, int64_t n, const uint32_t *number);

void oj_token_sets_free(struct oj_token_sets_buf *sets);

/** The tokens of the join side and their numbers. Read-only, and so
 *  thread-safe, once the whole join side has been added. */
struct oj_dictionary;

/** Makes the dictionary of texts, and their sets, on n_threads (0: all).
 *  fid     [texts->n] or NULL, for messages
 *  Errors  OJ_ERR_LIMIT: a text with more than OJ_MOST_TOKENS tokens (with its
 *          FID), or 2^32 - 1 distinct tokens; OJ_ERR_NOMEM; OJ_ERR_CANCELLED
 */
OJ_MUST_USE oj_status
oj_token_dictionary_make(const struct oj_texts *texts, const int64_t *fid,
                         const struct oj_token_rules *rules, int n_threads,
                         const int *cancel, struct oj_dictionary **out,
                         struct oj_token_sets_buf *sets, struct oj_error *err);

/** Adds the tokens of some texts to *dictionary, for a side that is read in
 *  pieces. *dictionary is NULL before the first piece; the caller owns it, also
 *  after an error. is_all 1: these are all texts of the side; 0: tokens get
 *  provisional numbers until oj_token_dictionary_number_by_rarity(). */
OJ_MUST_USE oj_status oj_token_dictionary_add(
    const struct oj_texts *texts, const int64_t *fid,
    const struct oj_token_rules *rules, int is_all, int n_threads,
    const int *cancel, struct oj_dictionary **dictionary,
    struct oj_token_sets_buf *sets, struct oj_error *err);

/** Must be called after the last piece: renumbers the tokens by rarity. *number
 *  [n_tokens], which the caller frees, maps old numbers to new ones. */
OJ_MUST_USE oj_status oj_token_dictionary_number_by_rarity(
    struct oj_dictionary *dictionary, uint32_t **number, struct oj_error *err);

/** Makes the token sets of a batch of the other side, with the rules and
 *  numbers of the dictionary. */
OJ_MUST_USE oj_status oj_token_dictionary_make_sets(
    const struct oj_dictionary *dictionary, const struct oj_texts *texts,
    const int64_t *fid, int n_threads, const int *cancel,
    struct oj_token_sets_buf *sets, struct oj_error *err);

int64_t oj_token_dictionary_bytes(const struct oj_dictionary *dictionary);

/** Returns the number of tokens that two rows have in common. */
int64_t oj_token_sets_count_common(const struct oj_token_sets *a, int64_t row_a,
                                   const struct oj_token_sets *b,
                                   int64_t row_b);

/** Frees the dictionary; accepts NULL. */
void oj_token_dictionary_free(struct oj_dictionary *dictionary);

#endif
