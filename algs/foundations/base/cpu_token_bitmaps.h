/** Bitmaps of hashed tokens for many token sets, stored word by word, and
 *  kernels that find the bitmaps within a Hamming distance of a query.
 *
 *   word            [set 0, set 1, set 2, ..]    bits 0 to 63 of each
 *   word + stride   [set 0, set 1, set 2, ..]    the next 64, and so on
 *   class           [0, 0, 1, ..]                each has a limit of its own
 *
 *  Source: Sandes, Teodoro, Melo 2020 (bitmap filter).
 */
#ifndef CPU_TOKEN_BITMAPS_H
#define CPU_TOKEN_BITMAPS_H

#include <stdint.h>

enum
{
    OJ_PLANE_BLOCK = 64,  /* sets per word of the result */
    OJ_PLANES_AT_ONCE = 4 /* words compared between two tests against the
                             limit */
};

/** Bitmaps of token sets.  Borrows its arrays. */
struct oj_token_planes
{
    int n_words;
    int64_t stride; /**< elements between word w and word w + 1 of a set */
    const uint64_t *word;
    const uint32_t *class;
};

/** Sets bit i % 64 of near[i / 64] for each set at + i, i < n, whose bitmap
 * differs from query [n_words] in at most limit[its class] bits; clears the
 * other bits, also the unused ones of the last word.  most: the maximum of all
 * limits, a quick test before the limit of the class is read. */
typedef void oj_token_planes_near(const struct oj_token_planes *planes,
                                  int64_t at, int64_t n, const uint64_t *query,
                                  const int32_t *limit, int32_t most,
                                  uint64_t *near);

/** The plain C kernel. */
oj_token_planes_near oj_token_planes_plain;

/** The AVX-512 kernel, or NULL if this processor or build has none. */
oj_token_planes_near *oj_token_planes_avx512(void);

/** The fastest kernel that this processor supports. */
oj_token_planes_near *oj_token_planes_kernel(void);

#endif
