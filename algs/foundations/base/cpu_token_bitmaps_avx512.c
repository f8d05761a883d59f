/* Bitmap kernel for eight sets at a time: needs AVX-512 with VPOPCNTDQ. */
#include "cpu_token_bitmaps.h"

#include "cpu_lane_loops.h"

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512vl,avx512vpopcntdq")))

/* Counts, for each of the sets in the mask `lanes`, the bits in which its n
 * words differ from the query. Adds the counts to `differ`. */
WIDE OJ_INLINE __m512i count_differing_bits(const uint64_t *word,
                                            int64_t stride, int n,
                                            __mmask8 lanes,
                                            const uint64_t *query,
                                            __m512i differ)
{
    for (int w = 0; w < n; w++)
        differ = _mm512_add_epi64(
            differ, _mm512_popcnt_epi64(_mm512_xor_si512(
                        _mm512_maskz_loadu_epi64(lanes, word + w * stride),
                        _mm512_set1_epi64((int64_t)query[w]))));
    return differ;
}

/* Tests which of eight sets of tokens (mask `lanes`) differ from the query in
 * few enough bits: at most limit[class of the set]. Returns their mask. */
WIDE static __mmask8
find_near_of_eight_sets(const struct oj_token_planes *planes, int64_t at,
                        __mmask8 lanes, const uint64_t *query,
                        const int32_t *limit)
{
    __m512i differ = _mm512_setzero_si512();
    __m512i most = _mm512_cvtepi32_epi64(_mm256_mmask_i32gather_epi32(
        _mm256_setzero_si256(), lanes,
        _mm256_maskz_loadu_epi32(lanes, planes->class + at), limit, 4));
    const uint64_t *word = planes->word + at;
    for (int w = 0; w < planes->n_words && lanes != 0; w += OJ_PLANES_AT_ONCE)
    {
        int left = planes->n_words - w;
        const uint64_t *here = word + w * planes->stride;
        if (left >= OJ_PLANES_AT_ONCE)
            differ =
                count_differing_bits(here, planes->stride, OJ_PLANES_AT_ONCE,
                                     lanes, query + w, differ);
        else if (left == 2)
            differ = count_differing_bits(here, planes->stride, 2, lanes,
                                          query + w, differ);
        else
            differ = count_differing_bits(here, planes->stride, left, lanes,
                                          query + w, differ);
        lanes = _mm512_mask_cmple_epi64_mask(lanes, differ, most);
    }
    return lanes;
}

/* Returns a mask of the sets (mask `lanes`) whose first two words differ from
 * the query in at most `most` bits. */
WIDE OJ_INLINE __mmask8 may_be_near(const uint64_t *word, int64_t stride,
                                    __mmask8 lanes, const uint64_t *query,
                                    __m512i most)
{
    return _mm512_mask_cmple_epi64_mask(
        lanes,
        count_differing_bits(word, stride, 2, lanes, query,
                             _mm512_setzero_si512()),
        most);
}

WIDE static void find_near_sets_avx512(const struct oj_token_planes *planes,
                                       int64_t at, int64_t n,
                                       const uint64_t *query,
                                       const int32_t *limit, int32_t most,
                                       uint64_t *near)
{
    int has_most = most < INT32_MAX && planes->n_words == 2;
    __m512i most_of_all = _mm512_set1_epi64(most);
    for (int64_t i = 0; i < n; i += OJ_LANES)
    {
        __mmask8 lanes = (__mmask8)(n - i >= 8 ? 0xFF : (1 << (n - i)) - 1);
        if (has_most)
            lanes = may_be_near(planes->word + at + i, planes->stride, lanes,
                                query, most_of_all);
        if (i % OJ_PLANE_BLOCK == 0)
            near[i / OJ_PLANE_BLOCK] = 0;
        if (lanes == 0)
            continue;
        lanes = find_near_of_eight_sets(planes, at + i, lanes, query, limit);
        near[i / OJ_PLANE_BLOCK] |= (uint64_t)lanes << i % OJ_PLANE_BLOCK;
    }
}

oj_token_planes_near *oj_token_planes_avx512(void)
{
    return __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512vpopcntdq")
               ? find_near_sets_avx512
               : NULL;
}

#else

oj_token_planes_near *oj_token_planes_avx512(void)
{
    return NULL;
}

#endif
