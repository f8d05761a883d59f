/** Bitmaps of hashed tokens for many token sets, and kernels that find the sets
 *  within a Hamming distance of a query. Word w of all sets lies in one run of
 *  memory, so that one instruction compares several sets.
 *
 *   word            [set 0, set 1, set 2, ..]    bits 0 to 63
 *   word + stride   [set 0, set 1, set 2, ..]    bits 64 to 127
 *   class           [0, 0, 1, ..]                selects a set's limit
 *
 *  Source: Sandes, Teodoro, Melo 2020 (bitmap filter).
 */
#ifndef CPU_TOKEN_BITMAPS_H
#define CPU_TOKEN_BITMAPS_H

#include <stdint.h>

enum
{
    OJ_PLANE_BLOCK = 64,  /* sets per 64-bit word of the result */
    OJ_PLANES_AT_ONCE = 4 /* words that are compared before the number of
                             differing bits is tested */
};

/** Bitmaps of token sets; the arrays are borrowed. */
struct oj_token_planes
{
    int n_words;
    int64_t stride; /**< offset between words w and w + 1 of a set in `word`, in
                         elements */
    const uint64_t *word;
    const uint32_t *class;
};

/** Finds the sets whose bitmap differs from query [n_words] in at most
 * limit[class of the set] bits. Bit i % 64 of near[i / 64] becomes 1 if set at
 * + i is one of these, otherwise 0, for i < n; unused bits of the last word of
 * near are 0. `most` is the maximum of all limits, for a quick test before the
 * limit of the class is read. */
typedef void oj_token_planes_near(const struct oj_token_planes *planes,
                                  int64_t at, int64_t n, const uint64_t *query,
                                  const int32_t *limit, int32_t most,
                                  uint64_t *near);

/** The plain C kernel. */
oj_token_planes_near oj_token_planes_find_near_plain;

/** Returns the AVX-512 kernel, or NULL if this processor or build has none. */
oj_token_planes_near *oj_token_planes_avx512(void);

/** Returns the fastest kernel that this processor supports. */
oj_token_planes_near *oj_token_planes_kernel(void);

#endif
