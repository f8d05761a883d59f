/* Distances of shapes: a block of threads for each row, warps measure pairs.
 *
 * The bound of a pair is the greatest difference of the sides of the two boxes,
 * as in cpu_similar_shapes.c.  The nearest are looked for in rounds of rising
 * bounds, of 64 features, then four times as many, and so on, each against the
 * k-th distance so far; what is nearer than that is never given up, so that the
 * answer does not depend on who comes first.
 *
 *  bounds  of all features -> counts of 64 steps for each power of two
 *  round   features of some steps -> candidates -> warps -> the k nearest
 *
 * Source: incremental search (Hjaltason and Samet 1999) by rounds; early
 * breaking (Taha and Hanbury 2015); ours. */
#include "../../algs/kernels/oj_square_limit.h"
#include "cuda_shape_pair.cuh"

enum
{
    BLOCK = 256,
    WARP = OJ_SHAPE_WARP,
    N_STEPS = 2048, /* of bounds: 32 powers of two */
    STEP_BITS = 6,
    FIRST_ROUND = 64,
    MOST_CANDIDATES = 2 * BLOCK,
    BLOCKS_OF_PROCESSOR = 4
};

/* Rows between two looks at the cancel flag, some more for the last ones. */
static const int64_t rows_at_once = 2048;

struct cuda_shapes_index
{
    struct oj_cuda_index base;
    struct oj_cuda_shapes of;
    const int32_t *rank; /* [n] place in tie order, or NULL: the ordinal */
};

/* Rows against the join side. */
struct cuda_shape_pairs
{
    struct oj_cuda_shapes rows, features;
    struct oj_pair_rule rule;
    enum oj_distance_kind kind;
    double max_distance, min_distance;
    int k; /* 0: all within the distance */
    const int32_t *rank;
    double *kth;          /* [rows] with ties: the k-th distances, which the one
                             search finds and the other asks; or NULL */
    const int32_t *order; /* rows, those with most vertices first */
    int first, end;       /* places in order, of this run */
    unsigned *next;       /* place less first */
    double *nearest_distance; /* [blocks * k] */
    int32_t *nearest_feature; /* [blocks * k] */
    double *leash;            /* [warps * most_leash], or NULL */
    int64_t most_leash;
    struct oj_cuda_found found;
};

/* --- bounds --------------------------------------------------------------- */

/* At most the distance of the two. */
static __device__ double distance_lower_bound(const struct cuda_shape_pairs &p,
                                              const double *a, const double *b)
{
    double most = 0.0;
    for (int d = 0; d < 4; d++)
    {
        /* by which the row sticks out */
        double out = d < 2 ? b[d] - a[d] : a[d] - b[d];
        if (p.kind != OJ_DISTANCE_DIRECTED_FROM_JOIN)
            most = oj_larger(most, out);
        if (p.kind != OJ_DISTANCE_DIRECTED_HAUSDORFF)
            most = oj_larger(most, -out);
    }
    for (int d = 4; d < 8 && p.kind == OJ_DISTANCE_FRECHET; d++)
        most = oj_larger(most, fabs(a[d] - b[d]));
    most -= a[8] + b[8];
    /* squares of less than this underflow, and so may what is measured */
    return most > 1e-150 ? most : 0.0;
}

/* Steps ascend with bounds; most: of the greatest. */
static __device__ int step_of_bound(double bound, unsigned most)
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

/* What the threads of a block share. */
struct cuda_shape_row
{
    unsigned count[N_STEPS]; /* of features by steps of bounds */
    unsigned most_step;      /* bits of the greatest bound */
    int place, row, end_step, n_candidates, next;

    int32_t candidate[MOST_CANDIDATES];
    double bound[MOST_CANDIDATES];

    /* The nearest so far: a heap, the last of them first. */
    int lock, n_nearest;
    double kth; /* changed under the lock, and only falls */
};

static __device__ double load_kth_distance(const struct cuda_shape_row &r)
{
    return *(const volatile double *)&r.kth;
}

static __device__ int is_before(const struct cuda_shape_pairs &p, double d,
                                int32_t feature, double other_d, int32_t other)
{
    if (d != other_d)
        return d < other_d;
    return p.rank != NULL ? p.rank[feature] < p.rank[other] : feature < other;
}

/* In place of the last of n. */
static __device__ void heap_sift_down(const struct cuda_shape_pairs &p,
                                      volatile double *distance,
                                      volatile int32_t *feature, int n,
                                      double d, int32_t f)
{
    int at = 0;
    for (int child = 1; child < n; child = 2 * at + 1)
    {
        if (child + 1 < n && is_before(p, distance[child], feature[child],
                                       distance[child + 1], feature[child + 1]))
            child++;
        if (!is_before(p, d, f, distance[child], feature[child]))
            break;
        distance[at] = distance[child];
        feature[at] = feature[child];
        at = child;
    }
    distance[at] = d;
    feature[at] = f;
}

/* As number `at`. */
static __device__ void heap_sift_up(const struct cuda_shape_pairs &p,
                                    volatile double *distance,
                                    volatile int32_t *feature, int at, double d,
                                    int32_t f)
{
    while (at > 0)
    {
        int parent = (at - 1) / 2;
        if (!is_before(p, distance[parent], feature[parent], d, f))
            break;
        distance[at] = distance[parent];
        feature[at] = feature[parent];
        at = parent;
    }
    distance[at] = d;
    feature[at] = f;
}

/* One lane of a warp at a time. */
static __device__ void keep_nearest(const struct cuda_shape_pairs &p,
                                    struct cuda_shape_row *r, int32_t feature,
                                    double distance)
{
    volatile double *distances = p.nearest_distance + (int64_t)blockIdx.x * p.k;
    volatile int32_t *features = p.nearest_feature + (int64_t)blockIdx.x * p.k;
    volatile int *n_nearest = &r->n_nearest;
    while (atomicCAS(&r->lock, 0, 1) != 0)
        ;
    __threadfence();
    int n = *n_nearest;
    if (n < p.k)
    {
        heap_sift_up(p, distances, features, n, distance, feature);
        *n_nearest = n + 1;
    }
    else if (is_before(p, distance, feature, distances[0], features[0]))
        heap_sift_down(p, distances, features, n, distance, feature);
    if (*n_nearest == p.k)
        *(volatile double *)&r->kth = distances[0];
    __threadfence();
    atomicExch(&r->lock, 0);
}

/* The Frechet distance is at least the Hausdorff distance of the vertices. */
template <int SEGMENTS>
static __device__ double
squared_shape_distance(const struct cuda_shape_pairs &p, int row,
                       int32_t feature, double limit2)
{
    double d2 = 0.0;
    if (p.kind != OJ_DISTANCE_DIRECTED_FROM_JOIN)
        d2 = oj_warp_directed2<SEGMENTS>(p.rows.side, row, p.features.side,
                                         feature, d2, limit2);
    if (p.kind != OJ_DISTANCE_DIRECTED_HAUSDORFF && d2 <= limit2)
        d2 = oj_warp_directed2<SEGMENTS>(p.features.side, feature, p.rows.side,
                                         row, d2, limit2);
    if (p.kind == OJ_DISTANCE_FRECHET && d2 <= limit2)
    {
        int64_t warp = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
        d2 = oj_warp_frechet2(p.rows.side, row, p.features.side, feature, d2,
                              limit2, p.leash + warp * p.most_leash);
    }
    return d2;
}

/* A warp: a candidate that may still count. */
template <int SEGMENTS>
static __device__ void measure(const struct cuda_shape_pairs &p,
                               struct cuda_shape_row *r, int32_t feature,
                               double bound)
{
    int lane = threadIdx.x % WARP, counts;
    double limit = pair_distance_limit(p, r->row, feature), distance;
    /* one lane's for all: it falls meanwhile */
    double kth =
        p.k > 0 ? __shfl_sync(~0u, load_kth_distance(*r), 0) : (double)INFINITY;
    limit = kth < limit ? kth : limit;
    if (!(limit >= bound) || !oj_pair_rule_passes(&p.rule, r->row, feature, 0))
        return;
    distance = sqrt(squared_shape_distance<SEGMENTS>(
        p, r->row, feature,
        limit < INFINITY ? oj_square_most(limit) : (double)INFINITY));
    counts =
        distance <= limit && distance < INFINITY && distance >= p.min_distance;
    if (p.k == 0)
        oj_cuda_found_put(p.found, counts && lane == 0, r->row, feature,
                          distance);
    else if (counts && lane == 0)
        keep_nearest(p, r, feature, distance);
    __syncwarp();
}

/* All threads: the candidates so far. */
template <int SEGMENTS>
static __device__ void measure_candidates(const struct cuda_shape_pairs &p,
                                          struct cuda_shape_row *r)
{
    __syncthreads();
    int n = r->n_candidates, lane = threadIdx.x % WARP;
    for (;;)
    {
        int i = 0;
        if (lane == 0)
            i = atomicAdd(&r->next, 1);
        i = __shfl_sync(~0u, i, 0);
        if (i >= n)
            break;
        measure<SEGMENTS>(p, r, r->candidate[i], r->bound[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        r->n_candidates = r->next = 0;
    __syncthreads();
}

/* All threads: features of the steps from first to r->end_step - 1. */
template <int SEGMENTS>
static __device__ void search_bound_steps(const struct cuda_shape_pairs &p,
                                          struct cuda_shape_row *r, int first)
{
    const double *sides = p.rows.side.sides + OJ_SHAPE_SIDES * (int64_t)r->row;
    int end = r->end_step;
    for (int64_t at = 0; at < p.features.side.n; at += BLOCK)
    {
        int64_t f = at + threadIdx.x;
        if (f < p.features.side.n && p.features.side.n_vertices[f] > 0)
        {
            double bound = distance_lower_bound(
                p, sides, p.features.side.sides + OJ_SHAPE_SIDES * f);
            int step = step_of_bound(bound, r->most_step);
            double limit = pair_distance_limit(p, r->row, f);
            if (p.k > 0 && load_kth_distance(*r) < limit)
                limit = load_kth_distance(*r);
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

/* All threads: how many features there are by steps of their bounds. */
static __device__ void count_bound_steps(const struct cuda_shape_pairs &p,
                                         struct cuda_shape_row *r)
{
    const double *sides = p.rows.side.sides + OJ_SHAPE_SIDES * (int64_t)r->row;
    const struct oj_cuda_shape_side &side = p.features.side;
    for (int i = threadIdx.x; i < N_STEPS; i += BLOCK)
        r->count[i] = 0;
    for (int64_t f = threadIdx.x; f < side.n; f += BLOCK)
    {
        if (side.n_vertices[f] > 0)
            atomicMax(&r->most_step,
                      __float_as_uint((float)distance_lower_bound(
                          p, sides, side.sides + OJ_SHAPE_SIDES * f)) >>
                          (23 - STEP_BITS));
    }
    __syncthreads();
    for (int64_t f = threadIdx.x; f < side.n && p.k > 0; f += BLOCK)
    {
        if (side.n_vertices[f] > 0)
            atomicAdd(&r->count[step_of_bound(
                          distance_lower_bound(p, sides,
                                               side.sides + OJ_SHAPE_SIDES * f),
                          r->most_step)],
                      1u);
    }
    __syncthreads();
}

template <int SEGMENTS>
static __device__ void search_row(const struct cuda_shape_pairs &p,
                                  struct cuda_shape_row *r)
{
    int64_t wanted = FIRST_ROUND;
    int first = 0;
    if (p.rows.side.n_vertices[r->row] == 0)
        return;
    count_bound_steps(p, r);
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
        search_bound_steps<SEGMENTS>(p, r, first);
    }
    if (p.k == 0 || threadIdx.x >= WARP)
        return;
    if (p.kth != NULL)
    {
        p.kth[r->row] = r->kth;
        return;
    }
    int64_t base = (int64_t)blockIdx.x * p.k;
    for (int i = threadIdx.x; i - (int)threadIdx.x < r->n_nearest; i += WARP)
    {
        int has_one = i < r->n_nearest;
        int64_t at = base + (has_one ? i : 0);
        oj_cuda_found_put(p.found, has_one, r->row, p.nearest_feature[at],
                          p.nearest_distance[at]);
    }
}

template <int SEGMENTS>
static __global__ void __launch_bounds__(BLOCK)
    search(const __grid_constant__ struct cuda_shape_pairs p)
{
    __shared__ struct cuda_shape_row r;
    for (;;)
    {
        __syncthreads();
        if (threadIdx.x == 0)
        {
            r.place = p.first + (int)atomicAdd(p.next, 1u);
            r.row = r.place < p.end ? p.order[r.place] : 0;
            r.most_step = 0;
            r.n_candidates = r.next = r.lock = r.n_nearest = 0;
            r.kth = INFINITY;
        }
        __syncthreads();
        if (r.place >= p.end)
            return;
        search_row<SEGMENTS>(p, &r);
    }
}

/* --- rows ----------------------------------------------------------------- */

static oj_status search_all(struct oj_cuda_work *work,
                            struct cuda_shape_pairs *p, int of_segments,
                            unsigned n_blocks)
{
    p->end = 0;
    while (p->end < p->rows.side.n)
    {
        int64_t left = p->rows.side.n - p->end;
        p->first = p->end;
        p->end += (int)(left < 3 * rows_at_once / 2 ? left : rows_at_once);
        OJ_TRY(work->clear(p->next, 1));
        OJ_TRY(work->run_blocks<BLOCK>(
            n_blocks, of_segments ? search<1> : search<0>, *p));
        OJ_TRY(work->wait());
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
    }
    return OJ_OK;
}

/* What all blocks of threads of a search have. */
static oj_status allocate_search(struct oj_cuda_work *work,
                                 struct cuda_shape_pairs *p, unsigned n_blocks,
                                 int has_ties)
{
    struct oj_cuda_shape_side rows = p->rows.side;
    int32_t *order;
    OJ_TRY(work->make(1, &p->next));
    OJ_TRY(work->order_by<uint32_t>(
        rows.n, 32,
        [=] __device__(int64_t i) { return ~(uint32_t)rows.n_vertices[i]; },
        &order));
    p->order = order;
    OJ_TRY(work->make((int64_t)n_blocks * p->k, &p->nearest_distance));
    OJ_TRY(work->make((int64_t)n_blocks * p->k, &p->nearest_feature));
    if (has_ties)
        OJ_TRY(work->make(rows.n, &p->kth));
    p->most_leash = p->features.most_vertices;
    if (p->kind != OJ_DISTANCE_FRECHET)
        return OJ_OK;
    return work->make(n_blocks * (BLOCK / WARP) * p->most_leash, &p->leash);
}

/* With ties first the k-th distances are found, then all within them. */
static oj_status find_pairs(struct oj_cuda_work *work,
                            struct cuda_shape_pairs *p, int has_ties,
                            struct oj_cuda_part *part, struct oj_stats *stats)
{
    int64_t n = p->rows.side.n, room = n * (p->k > 0 ? p->k : 16);
    int is_nearest = p->k > 0, of_segments = oj_shapes_of_segments(p->kind);
    unsigned blocks =
        (unsigned)(work->device->n_processors * BLOCKS_OF_PROCESSOR);
    blocks = n < blocks ? (unsigned)n : blocks;
    OJ_TRY(allocate_search(work, p, blocks, has_ties));
    if (has_ties)
    {
        OJ_TRY(search_all(work, p, of_segments, blocks));
        p->k = 0;
    }
    OJ_TRY(oj_cuda_part_find(
        work, n, p->rank, is_nearest, &p->found,
        p->k > 0 ? room : room + (1 << 16), part,
        [&]() { return search_all(work, p, of_segments, blocks); }));
    stats->n_candidates += n * p->features.side.n;
    return OJ_OK;
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_part *part,
                           struct oj_stats *stats, struct oj_error *err)
{
    const struct cuda_shapes_index *self =
        (const struct cuda_shapes_index *)index;
    const struct oj_relation *relation = &index->relation;
    struct oj_cuda_work work(index->device, index->device->stream,
                             "measuring shapes", err);
    struct cuda_shape_pairs p = {};
    OJ_TRY(oj_cuda_shapes_make(&work, input, first, n, relation, &p.rows));
    p.features = self->of;
    p.rank = self->rank;
    p.kind = relation->distance;
    p.max_distance = relation->max_distance;
    p.min_distance = relation->min_distance;
    if (relation->op == OJ_OP_NEAREST)
        p.k = (int)(relation->k < p.features.side.n ? relation->k
                                                    : p.features.side.n);
    p.rule = oj_cuda_rule_of(relation, &p.rows.columns, &p.features.columns);
    return find_pairs(&work, &p, p.k > 0 && relation->ties == OJ_TIES_ALL, part,
                      stats);
}

/* --- the family ----------------------------------------------------------- */

static int takes_similar_shapes(const struct oj_relation *relation,
                                const struct oj_flat *join_side,
                                const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN) &&
           relation->distance != OJ_DISTANCE_LEAST &&
           relation->metric == OJ_METRIC_PLANAR &&
           !oj_relation_compares_attributes(relation) &&
           !relation->exclude_same_geometry;
}

static oj_status build_shape_index(struct oj_cuda_index *index,
                                   struct oj_cuda_work *work)
{
    struct cuda_shapes_index *self = (struct cuda_shapes_index *)index;
    const struct oj_flat *flat = index->layer->flat;
    if (flat->n_features == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_shapes_make(work, flat, 0, flat->n_features,
                               &index->relation, &self->of));
    return oj_cuda_put(work, index->layer->tie_rank, flat->n_features,
                       &self->rank);
}

const struct oj_cuda_family oj_cuda_similar_shapes = {
    "distances of shapes, a block for each row",
    takes_similar_shapes,
    sizeof(struct cuda_shapes_index),
    build_shape_index,
    NULL,
    NULL,
    NULL,
    NULL,
    1,
    join_rows,
};
