/** Hashed bits of many token sets, word by word, and which of them differ from
 *  those of a set in few enough bits.
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
    OJ_PLANE_BLOCK = 64,  /* sets of a word of answers */
    OJ_PLANES_AT_ONCE = 4 /* words between looks at what is left */
};

/** A view. */
struct oj_token_planes
{
    int n_words;
    int64_t stride; /**< words from a word of a set to its next */
    const uint64_t *word;
    const uint32_t *class;
};

/** Sets bit i % 64 of near[i / 64] for each set at + i, i < n, that differs
 *  from query [n_words] in limit[its class] bits at most; clears the others of
 *  n and those of the last word.  No limit is above most: what differs more is
 *  not asked for its class. */
typedef void oj_token_planes_near(const struct oj_token_planes *planes,
                                  int64_t at, int64_t n, const uint64_t *query,
                                  const int32_t *limit, int32_t most,
                                  uint64_t *near);

/** The plain one. */
oj_token_planes_near oj_token_planes_plain;

/** The one for processors with AVX-512, or NULL where this one has none. */
oj_token_planes_near *oj_token_planes_avx512(void);

/** The fastest that this processor can do. */
oj_token_planes_near *oj_token_planes_kernel(void);

#endif
