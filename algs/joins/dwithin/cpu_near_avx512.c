/* AVX-512 implementation of struct oj_near_kernel: tests eight points at a
 * time. The compress instruction stores the lanes that pass the test without
 * gaps. */
#include "cpu_near_grid.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512vl,popcnt")))

/* The query, broadcast to all lanes. The id of a partner must be one of n_ids
 * ids from `from` on, which one unsigned comparison of id - from tests, and
 * must not be `except`. */
struct wide_query
{
    __m512d x, y, least2, most2;
    __m256i from, n_ids, except;
};

WIDE static inline struct wide_query
broadcast_query(const struct oj_near_query *q)
{
    int32_t n_ids = q->end > q->from ? q->end - q->from : 0;
    struct wide_query w;
    w.x = _mm512_set1_pd(q->x);
    w.y = _mm512_set1_pd(q->y);
    w.least2 = _mm512_set1_pd(q->least2);
    w.most2 = _mm512_set1_pd(q->most2);
    w.from = _mm256_set1_epi32(q->from);
    w.n_ids = _mm256_set1_epi32(n_ids);
    w.except = _mm256_set1_epi32(q->except);
    return w;
}

/* Returns 1 if the query excludes an id or has a minimum distance. */
static inline int has_min_distance_or_excluded_id(const struct oj_near_query *q)
{
    return q->least2 > 0.0 || q->except >= 0;
}

/* Returns the mask of the points at .. at + 7 of the hood that are partners of
 * the query's point; a point with NaN is none. Sets *d2 and *id to the squared
 * distances and ids of all eight. If special, the result of
 * has_min_distance_or_excluded_id(), is 0, the minimum distance and the
 * excluded id are not tested. Product and sum are separate operations: a fused
 * multiply-add would decide some pairs otherwise. */
WIDE static inline __attribute__((always_inline)) __mmask8
mask_of_partners(const struct oj_near_hood *hood, int64_t at,
                 const struct wide_query *w, int special, __m512d *d2,
                 __m256i *id)
{
    __m512d dx = _mm512_sub_pd(w->x, _mm512_loadu_pd(hood->x + at));
    __m512d dy = _mm512_sub_pd(w->y, _mm512_loadu_pd(hood->y + at));
    __mmask8 mask;
    *d2 = _mm512_add_pd(_mm512_mul_pd(dx, dx), _mm512_mul_pd(dy, dy));
    *id = _mm256_loadu_si256((const void *)(hood->id + at));
    mask = _mm512_cmp_pd_mask(*d2, w->most2, _CMP_LE_OQ);
    mask = _mm256_mask_cmplt_epu32_mask(mask, _mm256_sub_epi32(*id, w->from),
                                        w->n_ids);
    if (!special)
        return mask;
    mask = _mm512_mask_cmp_pd_mask(mask, *d2, w->least2, _CMP_GE_OQ);
    return _mm256_mask_cmpneq_epi32_mask(mask, *id, w->except);
}

WIDE static inline __attribute__((always_inline)) int64_t
count_partners_by_eights(const struct oj_near_hood *hood,
                         const struct oj_near_query *query, int special)
{
    struct wide_query w = broadcast_query(query);
    int64_t n = 0;
    for (int64_t i = 0; i < hood->n; i += 8)
    {
        __m512d d2;
        __m256i id;
        n += __builtin_popcount(
            mask_of_partners(hood, i, &w, special, &d2, &id));
    }
    return n;
}

WIDE static inline __attribute__((always_inline)) int64_t
collect_partners_by_eights(const struct oj_near_hood *hood,
                           const struct oj_near_query *query, int special,
                           int32_t *out_id, double *out_d2)
{
    struct wide_query w = broadcast_query(query);
    int64_t n = 0;
    for (int64_t i = 0; i < hood->n; i += 8)
    {
        __m512d d2;
        __m256i id;
        __mmask8 mask = mask_of_partners(hood, i, &w, special, &d2, &id);
        _mm512_storeu_pd(out_d2 + n, _mm512_maskz_compress_pd(mask, d2));
        _mm256_storeu_si256((void *)(out_id + n),
                            _mm256_maskz_compress_epi32(mask, id));
        n += __builtin_popcount(mask);
    }
    return n;
}

WIDE static int64_t count_partners_avx512(const struct oj_near_hood *hood,
                                          const struct oj_near_query *query)
{
    return has_min_distance_or_excluded_id(query)
               ? count_partners_by_eights(hood, query, 1)
               : count_partners_by_eights(hood, query, 0);
}

WIDE static int64_t collect_partners_avx512(const struct oj_near_hood *hood,
                                            const struct oj_near_query *query,
                                            int32_t *out_id, double *out_d2)
{
    return has_min_distance_or_excluded_id(query)
               ? collect_partners_by_eights(hood, query, 1, out_id, out_d2)
               : collect_partners_by_eights(hood, query, 0, out_id, out_d2);
}

static const struct oj_near_kernel wide = {count_partners_avx512,
                                           collect_partners_avx512};

const struct oj_near_kernel *oj_near_avx512(void)
{
    return __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512vl")
               ? &wide
               : NULL;
}

#else

const struct oj_near_kernel *oj_near_avx512(void)
{
    return NULL;
}

#endif
