#include "../../foundations/device/cuda_stream_work.cuh"
#include "../../foundations/index/cuda_pace.h"
#include "cuda_intersects.h"

/* Decides whether the features of a pair intersect. Eight lanes test a pair of
 * small features. In other pairs, a warp takes one stretch of the larger
 * feature. Few of its segments have images (their boxes as floats) that
 * intersect the other feature's box, and each such segment is compared with the
 * segments of the other feature, one per lane; in large features, whole chains
 * of segments are skipped by their images. Then, for pairs without intersecting
 * edges, one thread tests whether a part of one feature begins inside the
 * other. */
#define BLOCK 256
#define WARP 32
#define ALL 0xFFFFFFFFu
#define LANES 8 /* number of lanes that test a pair of small features */

/* Number of segments of a stretch, which one warp tests for a pair. */
#define STRETCH 2048

/* Features with more segments count as large: for them, skipping chains saves
 * more than it costs. */
#define FEW_SEGMENTS 64

struct meet_query
{
    struct oj_cuda_meet_side rows, features;
    double x0, y0; /* origin of the images */
    int64_t n;
    const int32_t *row, *feature; /* [n] */
    uint8_t *verdict;             /* [n] */
};

/* A stretch: consecutive segments of the larger feature of a pair, which one
 * warp tests. */
struct segment_stretch
{
    int32_t pair, number;
};

static __device__ int64_t count_segment_runs_of_pair(
    const struct oj_meet_feature &a, const struct oj_meet_feature &b)
{
    int64_t n_a = a.end - a.first, n_b = b.end - b.first;
    int64_t n = n_a > n_b ? n_a : n_b;
    return n <= FEW_SEGMENTS ? 0 : (n + STRETCH - 1) / STRETCH;
}

/* Sets the verdicts of the pairs that need no comparison of edges. If stretch
 * is NULL, also counts the stretches of pairs of large features; otherwise
 * stores these stretches. */
static __global__ void
init_verdicts_and_stretches(const __grid_constant__ struct meet_query q,
                            unsigned long long *n_stretches,
                            struct segment_stretch *stretch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n;
    unsigned long long at;
    if (i >= q.n)
        return;
    const struct oj_meet_feature &a = q.rows.feature[q.row[i]];
    const struct oj_meet_feature &b = q.features.feature[q.feature[i]];
    if (stretch == NULL)
        q.verdict[i] = (uint8_t)oj_meet_initial_verdict(&a, &b);
    if (oj_meet_initial_verdict(&a, &b) == OJ_VERDICT_OPEN)
        return;
    n = count_segment_runs_of_pair(a, b);
    if (n == 0)
        return;
    at = atomicAdd(n_stretches, (unsigned long long)n);
    for (int64_t j = 0; stretch != NULL && j < n; j++)
    {
        stretch[at + (unsigned long long)j].pair = (int32_t)i;
        stretch[at + (unsigned long long)j].number = (int32_t)j;
    }
}

/* --- edges ---------------------------------------------------------------- */

/* Returns 1 if the segment intersects segment i of one of the lanes. image is
 * that of the segment; is_one is 1 if the lane has a segment i. */
static __device__ int intersects_segment_of_any_lane(
    const struct oj_cuda_meet_side &v, int64_t i, int is_one,
    const struct oj_cuda_segment &segment, const struct oj_meet_image &image)
{
    int hit = is_one && oj_meet_images_intersect(&v.image[i], &image) &&
              oj_meet_segments_intersect(&segment, &v.rings.segment[i]);
    return __any_sync(ALL, hit);
}

static __device__ int
segment_meets_feature(const struct oj_cuda_meet_side &v,
                      const struct oj_meet_feature &f,
                      const struct oj_cuda_segment &segment,
                      const struct oj_meet_image &image, int lane)
{
    int64_t last = (f.end - 1) / WARP;
    if (f.end - f.first <= FEW_SEGMENTS)
    {
        for (int64_t i = f.first + lane; i - lane < f.end; i += WARP)
        {
            if (intersects_segment_of_any_lane(v, i, i < f.end, segment, image))
                return 1;
        }
        return 0;
    }
    for (int64_t c = f.first / WARP + lane; c - lane <= last; c += WARP)
    {
        unsigned left = __ballot_sync(
            ALL, c <= last && oj_meet_images_intersect(&v.chain[c], &image));
        for (; left != 0; left &= left - 1)
        {
            int64_t i = (c - lane + __ffs((int)left) - 1) * WARP + lane;
            if (intersects_segment_of_any_lane(v, i, i >= f.first && i < f.end,
                                               segment, image))
                return 1;
        }
    }
    return 0;
}

/* Returns, in all lanes of the warp, 1 if one of the segments first .. end - 1
 * of large intersects a segment of feature f of small. window is the image of
 * the box of f. */
static __device__ int segment_run_intersects_feature(
    const struct oj_cuda_meet_side &large, int64_t first, int64_t end,
    const struct oj_cuda_meet_side &small, const struct oj_meet_feature &f,
    const struct oj_meet_image &window, int lane)
{
    int64_t last = (end - 1) / WARP;
    for (int64_t c = first / WARP + lane; c - lane <= last; c += WARP)
    {
        unsigned chains = __ballot_sync(
            ALL,
            c <= last && oj_meet_images_intersect(&large.chain[c], &window));
        for (; chains != 0; chains &= chains - 1)
        {
            int64_t from = (c - lane + __ffs((int)chains) - 1) * WARP;
            int64_t i = from + lane;
            unsigned near = __ballot_sync(
                ALL, i >= first && i < end &&
                         oj_meet_images_intersect(&large.image[i], &window));
            for (; near != 0; near &= near - 1)
            {
                int64_t at = from + __ffs((int)near) - 1;
                if (segment_meets_feature(small, f, large.rings.segment[at],
                                          large.image[at], lane))
                    return 1;
            }
        }
    }
    return 0;
}

/* A pair in which the feature with more segments comes first. */
struct pair_by_size
{
    const struct oj_cuda_meet_side *large, *small;
    const struct oj_meet_feature *of_large, *of_small;
    struct oj_meet_image window; /* image of the smaller feature's box */
};

static __device__ struct pair_by_size
larger_and_smaller_of_pair(const struct meet_query &q, int64_t pair)
{
    const struct oj_meet_feature *a = &q.rows.feature[q.row[pair]];
    const struct oj_meet_feature *b = &q.features.feature[q.feature[pair]];
    int swap = a->end - a->first > b->end - b->first;
    struct pair_by_size s;
    s.large = swap ? &q.rows : &q.features;
    s.small = swap ? &q.features : &q.rows;
    s.of_large = swap ? a : b;
    s.of_small = swap ? b : a;
    s.window = oj_meet_image_of_box(&s.of_small->box, q.x0, q.y0);
    return s;
}

/* Tests stretches, one warp each. Skips pairs that another warp has already
 * found to intersect; if two warps find this at once, both store an equal
 * verdict. */
static __global__ void __launch_bounds__(BLOCK)
    test_stretches(const __grid_constant__ struct meet_query q, int64_t n,
                   const struct segment_stretch *stretch)
{
    int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int64_t pair, first, end;
    int lane = (int)(threadIdx.x % WARP);
    if (i >= n)
        return;
    pair = stretch[i].pair;
    if (__any_sync(ALL, *(volatile uint8_t *)&q.verdict[pair] !=
                            OJ_VERDICT_DISJOINT))
        return;
    struct pair_by_size s = larger_and_smaller_of_pair(q, pair);
    first = s.of_large->first + (int64_t)stretch[i].number * STRETCH;
    end = first + STRETCH < s.of_large->end ? first + STRETCH
                                            : (int64_t)s.of_large->end;
    if (segment_run_intersects_feature(*s.large, first, end, *s.small,
                                       *s.of_small, s.window, lane) &&
        lane == 0)
        q.verdict[pair] = OJ_VERDICT_INTERSECTS;
}

/* The lanes that test one pair; they may diverge from the other lanes of their
 * warp. */
struct lanes
{
    int lane;      /* 0 .. LANES - 1 */
    int shift;     /* number in the warp of the first of these lanes */
    unsigned mask; /* mask of these lanes */
};

/* Returns 1 if segment `at` of the larger feature intersects the smaller
 * one. */
static __device__ int segment_meets_smaller(const struct pair_by_size &s,
                                            const struct lanes &l, int64_t at)
{
    const struct oj_cuda_segment segment = s.large->rings.segment[at];
    const struct oj_meet_image image = s.large->image[at];
    int64_t end = s.of_small->end;
    for (int64_t i = s.of_small->first + l.lane; i - l.lane < end; i += LANES)
    {
        int hit =
            i < end && oj_meet_images_intersect(&s.small->image[i], &image) &&
            oj_meet_segments_intersect(&segment, &s.small->rings.segment[i]);
        if (__any_sync(l.mask, hit))
            return 1;
    }
    return 0;
}

static __device__ int do_small_features_intersect(const struct pair_by_size &s,
                                                  const struct lanes &l)
{
    int64_t end = s.of_large->end;
    for (int64_t i = s.of_large->first + l.lane; i - l.lane < end; i += LANES)
    {
        unsigned near = __ballot_sync(
            l.mask,
            i < end && oj_meet_images_intersect(&s.large->image[i], &s.window));
        for (near = (near & l.mask) >> l.shift; near != 0; near &= near - 1)
        {
            if (segment_meets_smaller(s, l, i - l.lane + __ffs((int)near) - 1))
                return 1;
        }
    }
    return 0;
}

static __global__ void __launch_bounds__(BLOCK, 3)
    test_small_feature_pairs(const __grid_constant__ struct meet_query q)
{
    int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / LANES;
    struct lanes l;
    l.lane = (int)(threadIdx.x % LANES);
    l.shift = (int)(threadIdx.x % WARP) - l.lane;
    l.mask = ((1u << LANES) - 1u) << l.shift;
    if (i >= q.n || q.verdict[i] != OJ_VERDICT_DISJOINT)
        return;
    struct pair_by_size s = larger_and_smaller_of_pair(q, i);
    if (s.of_large->end - s.of_large->first > FEW_SEGMENTS)
        return;
    /* waits until all lanes have read the value that one of them may write */
    __syncwarp(l.mask);
    if (do_small_features_intersect(s, l) && l.lane == 0)
        q.verdict[i] = OJ_VERDICT_INTERSECTS;
}

/* --- containment ---------------------------------------------------------- */

static __global__ void __launch_bounds__(BLOCK)
    test_containment(const __grid_constant__ struct meet_query q)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= q.n || q.verdict[i] != OJ_VERDICT_DISJOINT)
        return;
    q.verdict[i] = (uint8_t)oj_meet_verdict_without_crossing(
        &q.rows.rings, &q.rows.feature[q.row[i]], &q.features.rings,
        &q.features.feature[q.feature[i]]);
}

/* --- all pairs ------------------------------------------------------------ */

/* Makes *out [*n], the stretches of pairs of large features. */
static oj_status list_stretches_of_large_pairs(struct oj_cuda_work *work,
                                               const struct meet_query &q,
                                               struct segment_stretch **out,
                                               int64_t *n)
{
    struct segment_stretch *none = NULL;
    unsigned long long *count;
    OJ_TRY(work->allocate_zeros(1, &count));
    OJ_TRY(work->run<BLOCK>(q.n, init_verdicts_and_stretches, q, count, none));
    OJ_TRY(work->read(count, n));
    if (*n == 0)
        return OJ_OK;
    OJ_TRY(work->make(*n, out));
    OJ_TRY(work->clear(count, 1));
    return work->run<BLOCK>(q.n, init_verdicts_and_stretches, q, count, *out);
}

static oj_status wait_then_check_cancel(struct oj_cuda_work *work)
{
    OJ_TRY(work->wait());
    return oj_check_cancel(work->device->cancel, work->err);
}

/* Tests the stretches of large features. They may take long, so they are
 * launched in pieces, and a cancelled join ends soon. */
static oj_status test_large_feature_pairs(struct oj_cuda_work *work,
                                          const struct meet_query &q,
                                          const struct segment_stretch *stretch,
                                          int64_t n_stretches)
{
    struct oj_cuda_pace pace = {0, 0.0};
    for (int64_t first = 0, n; first < n_stretches; first += n)
    {
        double start = oj_clock_seconds();
        n = oj_cuda_pace_next_rows(&pace, n_stretches - first);
        OJ_TRY(
            work->run<BLOCK>(n * WARP, test_stretches, q, n, stretch + first));
        OJ_TRY(wait_then_check_cancel(work));
        oj_cuda_pace_record(&pace, n, oj_clock_seconds() - start);
    }
    return OJ_OK;
}

oj_status oj_cuda_intersects(struct oj_cuda_work *of, double x0, double y0,
                             const struct oj_cuda_meet_side *rows,
                             const struct oj_cuda_meet_side *features,
                             const struct oj_cuda_box_pairs *pairs,
                             uint8_t *verdict)
{
    struct oj_cuda_work work(of);
    struct meet_query q = {*rows,      *features,      x0,     y0, pairs->n,
                           pairs->row, pairs->feature, verdict};
    struct segment_stretch *stretch = NULL;
    int64_t n_stretches = 0;
    OJ_TRY(list_stretches_of_large_pairs(&work, q, &stretch, &n_stretches));
    OJ_TRY(work.run<BLOCK>(q.n * LANES, test_small_feature_pairs, q));
    if (n_stretches > 0)
        OJ_TRY(wait_then_check_cancel(&work));
    OJ_TRY(test_large_feature_pairs(&work, q, stretch, n_stretches));
    OJ_TRY(work.run<BLOCK>(q.n, test_containment, q));
    return work.wait();
}
