/* AVX-512 kernel: compares eight edges or entries at once; comparisons give bit
 * masks. */
#include "cpu_ring_box_index.h"

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,popcnt")))

/* Returns the mask for a vector loaded from element i of n: bit j stands for
 * element i + j, as far as there is one. */
static inline __mmask8 mask_of_remaining_lanes(int n, int i)
{
    return (__mmask8)(n - i >= 8 ? 0xFF : (1 << (n - i)) - 1);
}

/* Given a bit for each vertex, returns a bit for each edge that has exactly one
 * end with its bit set. */
static inline uint64_t bits_of_edges_with_one_end_set(uint64_t vertices)
{
    return vertices ^ vertices >> 1;
}

/* Returns the mask of those of eight edges that have the point on their left.
 * Sets *sure to the mask of the edges for which rounding cannot change this, as
 * in oj_orientation(). Products and sum must not be fused, or signs would
 * change. */
WIDE static inline __attribute__((always_inline)) __mmask8
sides_of_edges(__m512d ax, __m512d ay, __m512d bx, __m512d by, __mmask8 *sure)
{
    const __m512d left = _mm512_mul_pd(ax, by);
    const __m512d right = _mm512_mul_pd(ay, bx);
    const __m512d det = _mm512_sub_pd(left, right);
    const __m512d size =
        _mm512_add_pd(_mm512_abs_pd(left), _mm512_abs_pd(right));
    const __m512d bound =
        _mm512_mul_pd(_mm512_set1_pd(3.3306690738754716e-16), size);
    *sure = _mm512_cmp_pd_mask(_mm512_abs_pd(det), bound, _CMP_GT_OQ) &
            _mm512_cmp_pd_mask(size, _mm512_set1_pd(1e-280), _CMP_GT_OQ);
    return _mm512_cmp_pd_mask(det, _mm512_setzero_pd(), _CMP_GT_OQ);
}

/* Implements oj_ring_kernel.cross. The loop has no branches: whether an edge is
 * near the path could not be predicted. */
WIDE static int crossing_parity(const struct oj_ring_way *way, const double *x,
                                const double *y, const struct oj_edge_run *run,
                                int64_t n)
{
    const __m512d px = _mm512_set1_pd(way->px), py = _mm512_set1_pd(way->py);
    const __m512d cx = _mm512_set1_pd(way->cx), cy = _mm512_set1_pd(way->cy);
    unsigned odd = 0, unsure = 0;
    for (int64_t r = 0; r < n; r++)
    {
        const double *vx = x + run[r].first, *vy = y + run[r].first;
        const int n_edges = (int)run[r].n;
        unsure |= n_edges == 0;
        for (int i = 0; i < n_edges; i += 8)
        {
            const __mmask8 m = mask_of_remaining_lanes(n_edges, i);
            const __m512d ax = _mm512_maskz_loadu_pd(m, vx + i);
            const __m512d ay = _mm512_maskz_loadu_pd(m, vy + i);
            const __m512d bx = _mm512_maskz_loadu_pd(m, vx + i + 1);
            const __m512d by = _mm512_maskz_loadu_pd(m, vy + i + 1);
            const __mmask8 across = _mm512_cmp_pd_mask(ay, py, _CMP_GT_OQ) ^
                                    _mm512_cmp_pd_mask(by, py, _CMP_GT_OQ);
            const __mmask8 level = _mm512_cmp_pd_mask(ay, py, _CMP_EQ_OQ) |
                                   _mm512_cmp_pd_mask(by, py, _CMP_EQ_OQ);
            const __mmask8 along = _mm512_cmp_pd_mask(ax, cx, _CMP_GT_OQ) ^
                                   _mm512_cmp_pd_mask(bx, cx, _CMP_GT_OQ);
            const __m512d ayp = _mm512_sub_pd(ay, py);
            const __m512d byp = _mm512_sub_pd(by, py);
            const __m512d axc = _mm512_sub_pd(ax, cx);
            const __m512d bxc = _mm512_sub_pd(bx, cx);
            __mmask8 sure_p, sure_q, sure_c;
            const __mmask8 p =
                sides_of_edges(_mm512_sub_pd(ax, px), ayp,
                               _mm512_sub_pd(bx, px), byp, &sure_p);
            const __mmask8 q = sides_of_edges(axc, ayp, bxc, byp, &sure_q);
            const __mmask8 c = sides_of_edges(axc, _mm512_sub_pd(ay, cy), bxc,
                                              _mm512_sub_pd(by, cy), &sure_c);
            odd ^= (unsigned)m & ((across & (p ^ q)) ^ (along & (q ^ c)));
            unsure |= (unsigned)m & (((across | level) & ~(unsigned)sure_p) |
                                     ((across | along) & ~(unsigned)sure_q) |
                                     (along & ~(unsigned)sure_c));
        }
    }
    return unsure != 0 ? -1 : __builtin_parity(odd);
}

/* Implements oj_ring_kernel.at_height. */
WIDE static uint64_t find_edges_at_height(double height, const double *y, int n)
{
    const __m512d py = _mm512_set1_pd(height);
    uint64_t up = 0, level = 0;
    for (int i = 0; i <= n; i += 8)
    {
        const __m512d vy =
            _mm512_maskz_loadu_pd(mask_of_remaining_lanes(n + 1, i), y + i);
        up |= (uint64_t)_mm512_cmp_pd_mask(vy, py, _CMP_GT_OQ) << i;
        level |= (uint64_t)_mm512_cmp_pd_mask(vy, py, _CMP_EQ_OQ) << i;
    }
    return (bits_of_edges_with_one_end_set(up) | level | level >> 1) &
           (((uint64_t)1 << n) - 1);
}

/* Implements oj_ring_kernel.holding, like oj_ring_entry_contains_point(). It
 * has no branches, since most cells have at most eight entries. */
WIDE static int64_t
find_entries_holding_points(const struct oj_ring_entry *entry,
                            const struct oj_ring_range *range, int64_t n,
                            int32_t *point, int32_t *ring)
{
    const __m512i borrow = _mm512_set1_epi64(0x80808080);
    int64_t n_held = 0;
    for (int64_t k = 0; k < n; k++)
    {
        const struct oj_ring_range r = range[k];
        const __m512i probe = _mm512_set1_epi32((int)r.probe);
        const __m512i at = _mm512_set1_epi32(r.point);
        for (uint32_t i = 0; i < r.n; i += 8)
        {
            const __m512i e = _mm512_maskz_loadu_epi64(
                mask_of_remaining_lanes((int)r.n, (int)i), entry + r.first + i);
            const __m512i left =
                _mm512_and_si512(_mm512_sub_epi32(probe, e), borrow);
            const __mmask8 m = _mm512_mask_cmpeq_epi64_mask(
                mask_of_remaining_lanes((int)r.n, (int)i), left, borrow);
            const __m512i rings =
                _mm512_srli_epi64(_mm512_maskz_compress_epi64(m, e), 32);
            _mm256_storeu_si256((__m256i *)(void *)(ring + n_held),
                                _mm512_cvtepi64_epi32(rings));
            _mm256_storeu_si256((__m256i *)(void *)(point + n_held),
                                _mm512_castsi512_si256(at));
            n_held += __builtin_popcount(m);
        }
    }
    return n_held;
}

static const struct oj_ring_kernel wide = {
    crossing_parity, find_edges_at_height, find_entries_holding_points};

const struct oj_ring_kernel *oj_ring_avx512(void)
{
    return __builtin_cpu_supports("avx512f") ? &wide : NULL;
}

#else

const struct oj_ring_kernel *oj_ring_avx512(void)
{
    return NULL;
}

#endif
