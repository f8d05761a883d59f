/* Distances of shapes. A block processes one row or, if a row has many
 * vertices, one slice of the features for that row; its warps measure pairs.
 *
 * The lower bound of a pair is the maximum difference of the sides of the two
 * boxes, as in cpu_similar_shapes.c. For the k nearest, candidates are measured
 * in rounds of rising bounds: 32 features, then four times as many, and so on,
 * each against the k-th distance so far. A nearer feature is never dropped, so
 * the answer does not depend on the order of the warps.
 *
 *  bounds  of all features -> histogram with 64 steps per power of two
 *  round   features of some steps -> candidates -> warps -> the k nearest
 *
 * Source: incremental search (Hjaltason and Samet 1999) by rounds; early
 * breaking (Taha and Hanbury 2015); ours. */
#include "../../../algs/foundations/kernels/oj_square_limit.h"
#include "../../foundations/device/cuda_offset_search.cuh"
#include "cuda_shape_pair.cuh"

enum
{
    BLOCK = 256,
    N_WARPS = BLOCK / OJ_SHAPE_WARP,
    WARP = OJ_SHAPE_WARP,
    N_STEPS = 2048, /* number of steps of the histogram of bounds: 32 powers of
                       two */
    STEP_BITS = 6,
    FIRST_ROUND = 32,
    /* Minimum number of vertices of a pair that all warps of a block measure
     * together. */
    LONG = 2048,
    MOST_CANDIDATES = 2 * BLOCK,
    BLOCKS_OF_PROCESSOR = 4,
    SLICES_OF_BLOCK = 4, /* wanted number of slices per block, over all rows */
    MOST_SLICES = 64,    /* maximum slices of a row */
    /* Number of slices per block between two checks of the cancel flag; the
     * last launch has up to half as many more. */
    SLICES_AT_ONCE = 16
};

/* For a row with many vertices the join features are divided among several
 * slices: one, and another per `slice` vertices of the row, at most
 * MOST_SLICES. This is the least value of `slice`
 * (sort_rows_and_count_slices()). */
static const int64_t least_slice = 1024;

/* The rows and the join side of a comparison. */
struct cuda_shape_pairs
{
    struct oj_cuda_shapes rows, features;
    struct oj_pair_rule rule;
    enum oj_distance_kind kind;
    double max_distance, min_distance;
    int k; /* 0: all pairs within max_distance */
    const int32_t *rank;
    const int32_t *order; /* [n_rows] the rows, those with most vertices
                             first */
    int64_t n_rows;
    /* [n_rows + 1] prefix sums of the number of slices of the rows, in this
     * order. */
    const int64_t *slices;
    int64_t first, end;       /* the slices of this launch */
    unsigned long long *next; /* the next slice, counted from first */

    /* The k nearest features of each row so far: heaps with the farthest
     * feature on top. */
    int *lock, *n_nearest; /* [rows] */
    /* [rows] distance of the k-th feature; changed under the lock, only
     * decreases. NULL if k is 0 and the pairs are not ties of a k-th feature.
     */
    double *kth;
    double *nearest_distance; /* [rows * k] */
    int32_t *nearest_feature; /* [rows * k] */

    double *leash; /* [warps * most_leash], or NULL */
    int64_t most_leash;
    struct oj_cuda_found found;
};

/* --- bounds --------------------------------------------------------------- */

/* Returns a lower bound of the distance of two features, from their boxes and
 * ends. */
static __device__ double distance_lower_bound(const struct cuda_shape_pairs &p,
                                              const double *a, const double *b)
{
    double most = 0.0;
    for (int d = 0; d < 4; d++)
    {
        /* how far the row extends beyond the feature on this side of the boxes
         */
        double out = d < 2 ? b[d] - a[d] : a[d] - b[d];
        if (p.kind != OJ_DISTANCE_DIRECTED_FROM_JOIN)
            most = oj_larger(most, out);
        if (p.kind != OJ_DISTANCE_DIRECTED_HAUSDORFF)
            most = oj_larger(most, -out);
    }
    for (int d = 4; d < 8 && p.kind == OJ_DISTANCE_FRECHET; d++)
        most = oj_larger(most, fabs(a[d] - b[d]));
    most -= a[8] + b[8];
    /* a bound whose square may underflow counts as 0, because the measured
     * distance may underflow, too */
    return most > 1e-150 ? most : 0.0;
}

/* Returns the step of a bound in the histogram; it ascends with the bound. most
 * is the value of `bits` for the greatest bound, which gets the last step. */
static __device__ int histogram_step_of_bound(double bound, unsigned most)
{
    unsigned bits = __float_as_uint((float)bound) >> (23 - STEP_BITS);
    return bits + N_STEPS > most ? (int)(bits + N_STEPS - 1 - most) : 0;
}

static __device__ double pair_distance_limit(const struct cuda_shape_pairs &p,
                                             int64_t row, int64_t feature)
{
    double d = p.max_distance;
    if (p.rows.max_distance != NULL)
        d = p.rows.max_distance[row];
    else if (p.features.max_distance != NULL)
        d = p.features.max_distance[feature];
    if (p.k == 0 && p.kth != NULL && p.kth[row] < d)
        d = p.kth[row];
    return d >= 0.0 ? d : -1.0;
}

/* --- a row ---------------------------------------------------------------- */

/* Shared memory of a block. */
struct cuda_shape_row
{
    unsigned count[N_STEPS]; /* histogram of the bounds */
    unsigned most_step;      /* bits of the greatest bound */
    int64_t at;              /* current slice */
    int row, end_step, n_candidates, next;
    /* The features that this block compares: each n_slices-th feature, from
     * number `slice` on. */
    int slice, n_slices;

    int32_t candidate[MOST_CANDIDATES];
    double bound[MOST_CANDIDATES];

    /* Candidates that all warps of the block measure together. */
    int n_long, long_one[MOST_CANDIDATES];
    unsigned long long greatest; /* bits of the maximum square so far */
    double limit;
};

static __device__ double load_kth_distance(const struct cuda_shape_pairs &p,
                                           int row)
{
    return *(const volatile double *)&p.kth[row];
}

static __device__ int
is_nearer_or_first_in_ties(const struct cuda_shape_pairs &p, double d,
                           int32_t feature, double other_d, int32_t other)
{
    if (d != other_d)
        return d < other_d;
    return p.rank != NULL ? p.rank[feature] < p.rank[other] : feature < other;
}

/* Replaces the top of a heap of n elements by (d, f) and restores the order. */
static __device__ void heap_sift_down(const struct cuda_shape_pairs &p,
                                      volatile double *distance,
                                      volatile int32_t *feature, int n,
                                      double d, int32_t f)
{
    int at = 0;
    for (int child = 1; child < n; child = 2 * at + 1)
    {
        if (child + 1 < n &&
            is_nearer_or_first_in_ties(p, distance[child], feature[child],
                                       distance[child + 1], feature[child + 1]))
            child++;
        if (!is_nearer_or_first_in_ties(p, d, f, distance[child],
                                        feature[child]))
            break;
        distance[at] = distance[child];
        feature[at] = feature[child];
        at = child;
    }
    distance[at] = d;
    feature[at] = f;
}

/* Inserts (d, f) into a heap of `at` elements. */
static __device__ void heap_sift_up(const struct cuda_shape_pairs &p,
                                    volatile double *distance,
                                    volatile int32_t *feature, int at, double d,
                                    int32_t f)
{
    while (at > 0)
    {
        int parent = (at - 1) / 2;
        if (!is_nearer_or_first_in_ties(p, distance[parent], feature[parent], d,
                                        f))
            break;
        distance[at] = distance[parent];
        feature[at] = feature[parent];
        at = parent;
    }
    distance[at] = d;
    feature[at] = f;
}

/* Inserts a feature into the heap of the nearest ones of a row. One lane of a
 * warp calls it; it waits for the lock of the row and holds it meanwhile. */
static __device__ void keep_nearest(const struct cuda_shape_pairs &p, int row,
                                    int32_t feature, double distance)
{
    volatile double *distances = p.nearest_distance + (int64_t)row * p.k;
    volatile int32_t *features = p.nearest_feature + (int64_t)row * p.k;
    volatile int *n_nearest = &p.n_nearest[row];
    while (atomicCAS(&p.lock[row], 0, 1) != 0)
        ;
    __threadfence();
    int n = *n_nearest;
    if (n < p.k)
    {
        heap_sift_up(p, distances, features, n, distance, feature);
        *n_nearest = n + 1;
    }
    else if (is_nearer_or_first_in_ties(p, distance, feature, distances[0],
                                        features[0]))
        heap_sift_down(p, distances, features, n, distance, feature);
    if (*n_nearest == p.k)
        *(volatile double *)&p.kth[row] = distances[0];
    __threadfence();
    atomicExch(&p.lock[row], 0);
}

/* Sets *d2 to the maximum so far over all warps of a team, which all threads of
 * the block must do together. A warp that works alone keeps its *d2. */
static __device__ void share_distance_in_team(const struct oj_cuda_team &team,
                                              double *d2)
{
    if (team.greatest == NULL)
        return;
    __syncthreads();
    *d2 = __longlong_as_double((long long)*team.greatest);
    __syncthreads();
}

/* Returns the squared distance of a pair. The first warp of a team computes the
 * Frechet distance, for which the Hausdorff distance of the vertices is a lower
 * bound. */
template <int SEGMENTS>
static __device__ double
squared_shape_distance(const struct cuda_shape_pairs &p, int row,
                       int32_t feature, const struct oj_cuda_team &team,
                       double limit2)
{
    double d2 = 0.0;
    if (p.kind != OJ_DISTANCE_DIRECTED_FROM_JOIN)
        d2 = oj_directed_hausdorff2<SEGMENTS>(p.rows.side, row, p.features.side,
                                              feature, team, d2, limit2);
    share_distance_in_team(team, &d2);
    if (p.kind != OJ_DISTANCE_DIRECTED_HAUSDORFF && d2 <= limit2)
        d2 = oj_directed_hausdorff2<SEGMENTS>(
            p.features.side, feature, p.rows.side, row, team, d2, limit2);
    share_distance_in_team(team, &d2);
    if (p.kind == OJ_DISTANCE_FRECHET && d2 <= limit2 && team.warp == 0)
    {
        int64_t warp = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
        d2 = oj_warp_frechet2(p.rows.side, row, p.features.side, feature, d2,
                              limit2, p.leash + warp * p.most_leash);
    }
    return d2;
}

/* Measures a candidate, unless its bound exceeds limit. If it matches, appends
 * the pair to p.found or inserts it into the nearest features of the row. limit
 * must be equal in all warps of a team. */
template <int SEGMENTS>
static __device__ void
measure_candidate(const struct cuda_shape_pairs &p, int row, int32_t feature,
                  double bound, double limit, const struct oj_cuda_team &team)
{
    int counts;
    double distance;
    if (!(limit >= bound) || !oj_pair_rule_passes(&p.rule, row, feature, 0))
        return;
    distance = sqrt(squared_shape_distance<SEGMENTS>(
        p, row, feature, team,
        limit < INFINITY ? oj_square_limit_most(limit) : (double)INFINITY));
    if (team.warp > 0)
        return;
    counts = threadIdx.x % WARP == 0 && distance <= limit &&
             distance < INFINITY && distance >= p.min_distance;
    if (p.k == 0)
        oj_cuda_append_found_pairs(p.found, counts, row, feature, distance);
    else if (counts)
        keep_nearest(p, row, feature, distance);
    __syncwarp();
}

/* Returns the current maximum distance of a match, which other warps may
 * decrease at any time. */
static __device__ double
current_distance_limit(const struct cuda_shape_pairs &p, int row,
                       int32_t feature)
{
    double limit = pair_distance_limit(p, row, feature);
    double kth = p.k > 0 ? load_kth_distance(p, row) : (double)INFINITY;
    return kth < limit ? kth : limit;
}

/* Measures the candidates with many vertices, one after the other, each by all
 * warps. All threads must call it. */
template <int SEGMENTS>
static __device__ void measure_long_candidates(const struct cuda_shape_pairs &p,
                                               struct cuda_shape_row *r)
{
    struct oj_cuda_team team = {(int)threadIdx.x / WARP, N_WARPS, &r->greatest};
    int n = r->n_long;
    for (int i = 0; i < n; i++)
    {
        int at = r->long_one[i];
        __syncthreads();
        if (threadIdx.x == 0)
        {
            r->greatest = 0;
            r->limit = current_distance_limit(p, r->row, r->candidate[at]);
        }
        __syncthreads();
        measure_candidate<SEGMENTS>(p, r->row, r->candidate[at], r->bound[at],
                                    r->limit, team);
    }
}

/* Measures the candidates listed so far. All threads must call it. */
template <int SEGMENTS>
static __device__ void measure_candidates(const struct cuda_shape_pairs &p,
                                          struct cuda_shape_row *r)
{
    __syncthreads();
    int n = r->n_candidates, lane = threadIdx.x % WARP;
    for (;;)
    {
        int i = 0;
        double limit;
        if (lane == 0)
            i = atomicAdd(&r->next, 1);
        i = __shfl_sync(~0u, i, 0);
        if (i >= n)
            break;
        if (p.rows.side.n_vertices[r->row] +
                (int64_t)p.features.side.n_vertices[r->candidate[i]] >
            LONG)
        {
            if (lane == 0)
                r->long_one[atomicAdd(&r->n_long, 1)] = i;
            continue;
        }
        limit = __shfl_sync(
            ~0u, current_distance_limit(p, r->row, r->candidate[i]), 0);
        measure_candidate<SEGMENTS>(p, r->row, r->candidate[i], r->bound[i],
                                    limit, {0, 1, NULL});
    }
    __syncthreads();
    measure_long_candidates<SEGMENTS>(p, r);
    __syncthreads();
    if (threadIdx.x == 0)
        r->n_candidates = r->next = r->n_long = 0;
    __syncthreads();
}

/* Returns the number of features of the slice. */
static __device__ int64_t count_features_of_slice(
    const struct cuda_shape_pairs &p, const struct cuda_shape_row &r)
{
    return (p.features.side.n - r.slice + r.n_slices - 1) / r.n_slices;
}

static __device__ int64_t ith_feature_of_slice(const struct cuda_shape_row &r,
                                               int64_t i)
{
    return i * r.n_slices + r.slice;
}

/* Lists and measures the features whose bounds are in steps first ..
 * r->end_step - 1. All threads must call it. */
template <int SEGMENTS>
static __device__ void
search_features_of_steps(const struct cuda_shape_pairs &p,
                         struct cuda_shape_row *r, int first)
{
    const double *sides = p.rows.side.sides + OJ_SHAPE_SIDES * (int64_t)r->row;
    int end = r->end_step;
    int64_t n = count_features_of_slice(p, *r);
    for (int64_t at = 0; at < n; at += BLOCK)
    {
        int64_t f = ith_feature_of_slice(*r, at + threadIdx.x);
        if (f < p.features.side.n && p.features.side.n_vertices[f] > 0)
        {
            double bound = distance_lower_bound(
                p, sides, p.features.side.sides + OJ_SHAPE_SIDES * f);
            int step = histogram_step_of_bound(bound, r->most_step);
            double limit = pair_distance_limit(p, r->row, f);
            if (p.k > 0 && load_kth_distance(p, r->row) < limit)
                limit = load_kth_distance(p, r->row);
            if (step >= first && step < end && bound <= limit)
            {
                int place = atomicAdd(&r->n_candidates, 1);
                r->candidate[place] = (int32_t)f;
                r->bound[place] = bound;
            }
        }
        if (__syncthreads_count(r->n_candidates > MOST_CANDIDATES - BLOCK) > 0)
            measure_candidates<SEGMENTS>(p, r);
    }
    measure_candidates<SEGMENTS>(p, r);
}

/* Computes the histogram of the lower bounds of the slice's features. All
 * threads must call it. */
static __device__ void
histogram_of_lower_bounds(const struct cuda_shape_pairs &p,
                          struct cuda_shape_row *r)
{
    const double *sides = p.rows.side.sides + OJ_SHAPE_SIDES * (int64_t)r->row;
    const struct oj_cuda_shape_side &side = p.features.side;
    int64_t n = count_features_of_slice(p, *r);
    for (int i = threadIdx.x; i < N_STEPS; i += BLOCK)
        r->count[i] = 0;
    for (int64_t i = threadIdx.x; i < n; i += BLOCK)
    {
        int64_t f = ith_feature_of_slice(*r, i);
        if (side.n_vertices[f] > 0)
            atomicMax(&r->most_step,
                      __float_as_uint((float)distance_lower_bound(
                          p, sides, side.sides + OJ_SHAPE_SIDES * f)) >>
                          (23 - STEP_BITS));
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n && p.k > 0; i += BLOCK)
    {
        int64_t f = ith_feature_of_slice(*r, i);
        if (side.n_vertices[f] > 0)
            atomicAdd(&r->count[histogram_step_of_bound(
                          distance_lower_bound(p, sides,
                                               side.sides + OJ_SHAPE_SIDES * f),
                          r->most_step)],
                      1u);
    }
    __syncthreads();
}

template <int SEGMENTS>
static __device__ void
search_features_of_slice(const struct cuda_shape_pairs &p,
                         struct cuda_shape_row *r)
{
    int64_t wanted = FIRST_ROUND / r->n_slices;
    int first = 0;
    if (p.rows.side.n_vertices[r->row] == 0)
        return;
    histogram_of_lower_bounds(p, r);
    for (; first < N_STEPS; first = r->end_step, wanted *= 4)
    {
        __syncthreads();
        if (threadIdx.x == 0)
        {
            int64_t n = 0;
            int end = p.k > 0 ? first : N_STEPS;
            while (end < N_STEPS && n < wanted)
                n += r->count[end++];
            r->end_step = end;
        }
        __syncthreads();
        search_features_of_steps<SEGMENTS>(p, r, first);
    }
}

template <int SEGMENTS>
static __global__ void __launch_bounds__(BLOCK)
    search_similar_shapes(const __grid_constant__ struct cuda_shape_pairs p)
{
    __shared__ struct cuda_shape_row r;
    for (;;)
    {
        __syncthreads();
        if (threadIdx.x == 0)
        {
            r.at = p.first + (int64_t)atomicAdd(p.next, 1ull);
            if (r.at < p.end)
            {
                int64_t place =
                    oj_cuda_list_of_entry(p.slices, (int64_t)0, p.n_rows, r.at);
                r.row = p.order[place];
                r.slice = (int)(r.at - p.slices[place]);
                r.n_slices = (int)(p.slices[place + 1] - p.slices[place]);
            }
            r.most_step = 0;
            r.n_candidates = r.next = r.n_long = 0;
        }
        __syncthreads();
        if (r.at >= p.end)
            return;
        search_features_of_slice<SEGMENTS>(p, &r);
    }
}

/* Appends the nearest features of all rows to the pairs; one thread per heap
 * element. */
static __global__ void
append_nearest_of_rows(const __grid_constant__ struct cuda_shape_pairs p)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t row = i / p.k;
    int has_one = row < p.rows.side.n && i % p.k < p.n_nearest[row];
    oj_cuda_append_found_pairs(p.found, has_one, (int32_t)row,
                               has_one ? p.nearest_feature[i] : 0,
                               has_one ? p.nearest_distance[i] : 0.0);
}

/* --- rows of a batch ------------------------------------------------------ */

static oj_status search_all_slices(struct oj_cuda_work *work,
                                   struct cuda_shape_pairs *p, int of_segments,
                                   unsigned n_blocks)
{
    int64_t n = 0;
    OJ_TRY(work->read(p->slices + p->n_rows, &n));
    for (p->first = 0; p->first < n; p->first = p->end)
    {
        p->end = p->first + (int64_t)n_blocks * SLICES_AT_ONCE;
        if (n - p->first < (int64_t)n_blocks * SLICES_AT_ONCE * 3 / 2)
            p->end = n;
        OJ_TRY(work->clear(p->next, 1));
        OJ_TRY(work->launch_blocks<BLOCK>(
            n_blocks,
            of_segments ? search_similar_shapes<1> : search_similar_shapes<0>,
            *p));
        OJ_TRY(work->wait());
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
    }
    return OJ_OK;
}

/* Sorts the rows of a share by number of vertices and computes how many slices
 * each gets. n_blocks is the number of blocks that search the slices. */
static oj_status sort_rows_and_count_slices(struct oj_cuda_work *work,
                                            const struct oj_cuda_share *share,
                                            unsigned n_blocks,
                                            struct cuda_shape_pairs *p)
{
    const struct oj_cuda_shape_side rows = p->rows.side;
    int32_t *order = NULL;
    int64_t *slices, slice;
    OJ_TRY(work->order_by<uint32_t>(
        rows.n, 32,
        [=] __device__(int64_t i) { return ~(uint32_t)rows.n_vertices[i]; },
        &order));
    p->order = order;
    p->n_rows = rows.n;
    OJ_TRY(oj_cuda_share_select_tiles(work, share, 1, &p->order, &p->n_rows));
    slice = p->rows.all_vertices / share->n / (n_blocks * SLICES_OF_BLOCK) + 1;
    slice = slice > least_slice ? slice : least_slice;
    OJ_TRY(work->make(p->n_rows + 1, &slices));
    p->slices = slices;
    const int32_t *of = p->order;
    int64_t n_rows = p->n_rows;
    OJ_TRY(work->each(
        n_rows + 1,
        [=] __device__(int64_t i)
        {
            int64_t n = i < n_rows ? rows.n_vertices[of[i]] / slice + 1 : 0;
            slices[i] = n < MOST_SLICES ? n : (int64_t)MOST_SLICES;
        }));
    return work->scan(slices, n_rows);
}

static oj_status make_heaps(struct oj_cuda_work *work,
                            struct cuda_shape_pairs *p)
{
    int64_t n = p->rows.side.n;
    double *kth;
    OJ_TRY(work->allocate_zeros(n, &p->lock));
    OJ_TRY(work->allocate_zeros(n, &p->n_nearest));
    OJ_TRY(work->make(n * p->k, &p->nearest_distance));
    OJ_TRY(work->make(n * p->k, &p->nearest_feature));
    OJ_TRY(work->make(n, &kth));
    p->kth = kth;
    return work->each(n,
                      [=] __device__(int64_t i) { kth[i] = (double)INFINITY; });
}

static oj_status output_nearest_of_share(struct oj_cuda_work *work,
                                         struct cuda_shape_pairs *p,
                                         struct oj_cuda_share *share)
{
    int64_t n = p->rows.side.n * p->k;
    return oj_cuda_share_find_pairs(work, 1, &p->found, n, share,
                                    [&]()
                                    {
                                        OJ_TRY(work->clear(p->found.n, 1));
                                        return work->run<BLOCK>(
                                            n, append_nearest_of_rows, *p);
                                    });
}

/* Finds all pairs. With has_ties it finds the distance of each k-th pair first,
 * then all pairs within that distance. */
static oj_status find_pairs(struct oj_cuda_work *work,
                            struct cuda_shape_pairs *p, int has_ties,
                            struct oj_cuda_share *share, struct oj_stats *stats)
{
    int64_t n = p->rows.side.n;
    int of_segments = oj_distance_uses_segments(p->kind);
    unsigned blocks =
        (unsigned)(work->device->n_processors * BLOCKS_OF_PROCESSOR);
    OJ_TRY(work->make(1, &p->next));
    OJ_TRY(sort_rows_and_count_slices(work, share, blocks, p));
    p->most_leash = p->features.most_vertices;
    if (p->kind == OJ_DISTANCE_FRECHET)
        OJ_TRY(work->make(blocks * N_WARPS * p->most_leash, &p->leash));
    stats->n_candidates += p->n_rows * p->features.side.n;
    if (p->k > 0)
    {
        OJ_TRY(make_heaps(work, p));
        OJ_TRY(search_all_slices(work, p, of_segments, blocks));
        if (!has_ties)
            return output_nearest_of_share(work, p, share);
        p->k = 0;
    }
    return oj_cuda_share_find_pairs(
        work, has_ties, &p->found, 16 * n + (1 << 16), share,
        [&]()
        {
            OJ_TRY(work->clear(p->found.n, 1));
            return search_all_slices(work, p, of_segments, blocks);
        });
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_share *share,
                           struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_relation *relation = &index->relation;
    struct oj_cuda_work work(index->device, index->device->stream,
                             "measuring shapes", err);
    struct cuda_shape_pairs p = {};
    p.features = p.rows = ((const struct oj_cuda_shapes_index *)index)->of;
    if (!oj_cuda_share_input_is_join_side(index, input, first, n))
        OJ_TRY(oj_cuda_shapes_make(&work, input, first, n, relation, &p.rows));
    p.rank = index->rank;
    p.kind = relation->distance;
    p.max_distance = relation->max_distance;
    p.min_distance = relation->min_distance;
    if (oj_relation_is_nearest(relation))
        p.k = (int)(relation->k < p.features.side.n ? relation->k
                                                    : p.features.side.n);
    p.rule =
        oj_cuda_make_pair_rule(relation, &p.rows.columns, &p.features.columns);
    return find_pairs(&work, &p, p.k > 0 && relation->ties == OJ_TIES_ALL,
                      share, stats);
}

/* --- the family ----------------------------------------------------------- */

static int supports_similar_shapes_join(const struct oj_relation *relation,
                                        const struct oj_flat *join_side,
                                        const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_by_distance(relation) &&
           relation->distance != OJ_DISTANCE_LEAST &&
           relation->metric == OJ_METRIC_PLANAR &&
           !oj_relation_compares_attributes(relation) &&
           !relation->exclude_same_geometry;
}

const struct oj_cuda_family oj_cuda_similar_shapes = {
    "distances of shapes, a block for each row",
    supports_similar_shapes_join,
    sizeof(struct oj_cuda_shapes_index),
    oj_cuda_shapes_index_build,
    1,
    join_rows,
};
