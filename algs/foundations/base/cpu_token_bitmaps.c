#include "cpu_token_bitmaps.h"

#include "cpu_lane_loops.h"

#include <stddef.h>

OJ_COUNT_CLONES void oj_token_planes_find_near_plain(
    const struct oj_token_planes *planes, int64_t at, int64_t n,
    const uint64_t *query, const int32_t *limit, int32_t most, uint64_t *near)
{
    (void)most;
    for (int64_t i = 0; i < n; i++)
    {
        const uint64_t *word = planes->word + at + i;
        int differ = 0;
        for (int w = 0; w < planes->n_words; w++, word += planes->stride)
            differ += __builtin_popcountll(*word ^ query[w]);
        if (i % OJ_PLANE_BLOCK == 0)
            near[i / OJ_PLANE_BLOCK] = 0;
        near[i / OJ_PLANE_BLOCK] |=
            (uint64_t)(differ <= limit[planes->class[at + i]])
            << i % OJ_PLANE_BLOCK;
    }
}

oj_token_planes_near *oj_token_planes_kernel(void)
{
    oj_token_planes_near *wide = oj_token_planes_avx512();
    return wide != NULL ? wide : oj_token_planes_find_near_plain;
}
