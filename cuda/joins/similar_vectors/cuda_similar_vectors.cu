/* Pairs of near vectors. A block compares one tile of rows with the tiles of
 * features whose boxes are near enough, in single precision; pairs that may be
 * near enough are then measured in double precision.
 *
 *  warp    32 rows   sums with 128 features in registers -> queue -> measured
 *
 * For the k nearest, a warp keeps the k nearest features of its rows, and pairs
 * that cannot be nearer than the k-th are not measured. These limits only
 * decrease, so the answer does not depend on the order of the tiles. The
 * nearest tile of features comes first, then tiles whose numbers differ from
 * its number in low bits only.
 *
 * Source: products as a filter with a bound: ours (cuda_vector_side.cuh); LSS
 * (Lieberman, Sankaranarayanan, Samet 2008) for limits from near vectors first.
 */
#include "cuda_vector_tile.cuh"

enum
{
    TILE = OJ_VECTOR_TILE,
    BOX = OJ_VECTOR_BOX,
    WARP = 32,
    N_WARPS = TILE / WARP,
    QUEUE = 2 * WARP,   /* pairs of a warp that wait to be measured */
    MOST_NEAREST = 256, /* maximum k */
    /* Wanted number of blocks per multiprocessor; if rows are too few for that,
     * the features are divided into slices. */
    BLOCKS_WANTED = 16
};

/* Number of multiplications between two checks of the cancel flag. */
static const double most_at_once = 2e13;

struct cuda_vectors_index
{
    struct oj_cuda_index base;
    struct oj_cuda_vector_frame frame;
    struct oj_cuda_vector_side side;
};

/* The rows and the join side of a comparison. */
struct cuda_vector_pairs
{
    struct oj_cuda_vector_frame frame;
    struct oj_cuda_vector_side rows, features;
    struct oj_pair_rule rule;
    const int32_t *rank;
    double max_difference;
    int k; /* 0: all pairs within max_difference */
    int share, n_shares;
    /* First tile of rows of this launch, counted among those of the share: tile
     * t of the share is tile t * n_shares + share of all. */
    int64_t first_tile;
    int64_t slice; /* number of tiles of features per block: a multiple of
                      TILE */

    /* k entries per row: the nearest features found so far. */
    double *difference;
    int32_t *nearest;

    unsigned long long *n_measured;
    struct oj_cuda_found found;
};

/* Shared memory of a block. */
struct cuda_vector_block
{
    uint4 rows[OJ_VECTOR_SLAB], features[OJ_VECTOR_SLAB];
    float size[TILE]; /* sizes of the features */

    /* Members by row; only the warp of a row changes them. */
    double most[TILE]; /* maximum difference of a match */
    int n_nearest[TILE];
    float threshold[TILE];
    float warp_limit[N_WARPS]; /* maximum sum between boxes, per warp */
    int n_queue[N_WARPS];
    int32_t queue_feature[N_WARPS][QUEUE]; /* places of the features */
    int queue_row[N_WARPS][QUEUE];         /* rows of the tile */

    unsigned long long nearest; /* distance of a box, and in the low bits the
                                   number of its tile */
    int n_listed[N_WARPS];
    int32_t tile[TILE]; /* the tiles of features that are near enough */
    float sum[TILE];    /* sums between the boxes */
};

/* --- k nearest ------------------------------------------------------------ */

static __device__ int is_ranked_before(const struct cuda_vector_pairs &p,
                                       double d, int32_t feature,
                                       double other_d, int32_t other)
{
    if (d != other_d)
        return d < other_d;
    return p.rank != NULL ? p.rank[feature] < p.rank[other] : feature < other;
}

/* Inserts a feature into the nearest ones of a row. All lanes of a warp must
 * call it. */
static __device__ void insert_nearest_feature(const struct cuda_vector_pairs &p,
                                              struct cuda_vector_block *b,
                                              int64_t row_tile, int row,
                                              int32_t feature,
                                              double difference)
{
    double *differences = p.difference + (row_tile * TILE + row) * p.k;
    int32_t *nearest = p.nearest + (row_tile * TILE + row) * p.k;
    int lane = threadIdx.x % WARP, n = b->n_nearest[row], before = 0;
    int end = n < p.k ? n : p.k - 1;
    for (int i = 0; i < n; i += WARP)
        before += __popc(__ballot_sync(
            ~0u, i + lane < n &&
                     is_ranked_before(p, differences[i + lane],
                                      nearest[i + lane], difference, feature)));
    if (before == p.k)
        return;
    for (int i = (end - 1) / WARP * WARP; i >= 0 && i + WARP > before;
         i -= WARP)
    {
        int at = i + lane, moves = at >= before && at < end;
        double d = moves ? differences[at] : 0.0;
        int32_t f = moves ? nearest[at] : 0;
        __syncwarp();
        if (moves)
        {
            differences[at + 1] = d;
            nearest[at + 1] = f;
        }
        __syncwarp();
    }
    if (lane == 0)
    {
        differences[before] = difference;
        nearest[before] = feature;
        b->n_nearest[row] = end + 1;
    }
    __syncwarp();
    if (lane == 0 && end + 1 == p.k)
        b->most[row] = differences[p.k - 1];
    __syncwarp();
}

/* Appends the nearest features of a warp's rows to the pairs. */
static __device__ void output_nearest_pairs(const struct cuda_vector_pairs &p,
                                            const struct cuda_vector_block *b,
                                            int64_t row_tile)
{
    int lane = threadIdx.x % WARP, first = threadIdx.x - lane;
    for (int r = first; r < first + WARP; r++)
    {
        int64_t place = row_tile * TILE + r;
        int n = place < p.rows.n ? b->n_nearest[r] : 0;
        for (int i = lane; i - lane < n; i += WARP)
            oj_cuda_append_found_pairs(
                p.found, i < n, i < n ? p.rows.order[place] : 0,
                i < n ? p.nearest[place * p.k + i] : 0,
                i < n ? p.difference[place * p.k + i] : 0.0);
    }
}

/* --- candidates ----------------------------------------------------------- */

/* Measures n queued pairs, from number `at` on, one per lane, and keeps those
 * that match. */
static __device__ void measure_queued_pairs(const struct cuda_vector_pairs &p,
                                            struct cuda_vector_block *b,
                                            int64_t row_tile, int at, int n)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int counts = lane < n, r = 0;
    int32_t row = 0, feature = 0;
    double difference = 0.0;
    int64_t d = p.frame.n_dimensions;
    unsigned which;
    if (lane == 0 && n > 0)
        atomicAdd(p.n_measured, (unsigned long long)n);
    if (counts)
    {
        r = b->queue_row[warp][at + lane];
        row = p.rows.order[row_tile * TILE + r];
        feature = p.features.order[b->queue_feature[warp][at + lane]];
        counts = oj_pair_rule_passes(&p.rule, row, feature, 0);
    }
    if (counts)
    {
        difference = oj_vector_difference(p.frame.norm, p.rows.vector + row * d,
                                          p.features.vector + feature * d, d);
        counts = difference <= b->most[r];
    }
    if (p.k == 0)
    {
        oj_cuda_append_found_pairs(p.found, counts, row, feature, difference);
        return;
    }
    which = __ballot_sync(~0u, counts);
    for (; which != 0; which &= which - 1)
    {
        int of = __ffs((int)which) - 1;
        insert_nearest_feature(p, b, row_tile, __shfl_sync(~0u, r, of),
                               __shfl_sync(~0u, feature, of),
                               __shfl_sync(~0u, difference, of));
    }
}

/* Each lane holds one sum per (row, feature) pair in its registers. Appends to
 * the warp's queue those pairs of sums 32 * group .. 32 * group + 31 whose bit
 * in `passes` is set. When 32 pairs wait, the warp measures them. */
template <int WAY>
static __device__ __noinline__ void
queue_passing_pairs(const struct cuda_vector_pairs &p,
                    struct cuda_vector_block *b, int64_t row_tile, int64_t tile,
                    int group, unsigned passes)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    while (__any_sync(~0u, passes != 0))
    {
        int i = 32 * group + (passes != 0 ? __ffs((int)passes) - 1 : 0);
        int r = oj_vector_row_of_sum<WAY>(i), n = b->n_queue[warp];
        int64_t place = tile * TILE + oj_vector_column_of_sum<WAY>(i);
        int is_there = passes != 0 && place < p.features.n;
        unsigned which = __ballot_sync(~0u, is_there);
        passes &= passes - 1;
        if (is_there)
        {
            int at = n + __popc(which & ((1u << lane) - 1));
            b->queue_feature[warp][at] = (int32_t)place;
            b->queue_row[warp][at] = r;
        }
        n += __popc(which);
        __syncwarp();
        if (n >= WARP)
        {
            n -= WARP;
            measure_queued_pairs(p, b, row_tile, n, WARP);
        }
        __syncwarp();
        if (lane == 0)
            b->n_queue[warp] = n;
        __syncwarp();
    }
}

/* --- comparison of two tiles ---------------------------------------------- */

/* State of a thread's row. */
struct cuda_vector_row
{
    /* Maximum difference from which the limits below were computed. It is below
     * 0 if the thread has no row. */
    double most;
    /* Maximum distance between the halves of a pair that matches, without the
     * lengths that rounding to halves has lost. */
    double reach;
    float limit; /* maximum sum of differences of a match, also for boxes */
    float size, rest;
};

static __device__ float
product_threshold_of_row(const struct cuda_vector_row &row, float rest)
{
    double reach = row.reach + (double)row.rest + (double)rest;
    double least = (double)row.size - reach * reach * (1.0 + 0x1p-40) / 2.0;
    return least > -(double)FLT_MAX / 2.0
               ? nextafterf((float)least, -(float)INFINITY)
               : -(float)INFINITY;
}

/* Recomputes the limits of the thread's row if its maximum difference has
 * changed. Then stores what the block compares with: the greatest limit of
 * each warp, the row's threshold and, for products, the size of feature t of
 * this tile. */
template <int WAY>
static __device__ void set_row_limits(const struct cuda_vector_pairs &p,
                                      struct cuda_vector_block *b, int64_t tile,
                                      struct cuda_vector_row *row)
{
    const struct oj_cuda_vector_frame &f = p.frame;
    int t = threadIdx.x;
    float limit;
    if (row->most >= 0.0 && row->most != b->most[t])
    {
        row->most = b->most[t];
        row->limit = oj_vector_max_single_precision_sum(f.norm, f.n_dimensions,
                                                        f.scale, row->most);
        row->reach = oj_vector_max_computed_l2(
                         f.n_dimensions,
                         oj_vector_max_true_difference(f.norm, f.n_dimensions,
                                                       f.scale, row->most)) *
                     f.half_scale;
    }
    limit = row->limit;
    for (int step = WARP / 2; step > 0; step /= 2)
    {
        float other = __shfl_xor_sync(~0u, limit, step);
        limit = other > limit ? other : limit;
    }
    if (t % WARP == 0)
        b->warp_limit[t / WARP] = limit;
    if (WAY != OJ_VECTOR_PRODUCTS)
        b->threshold[t] = row->limit;
    else if (row->most < 0.0) /* the thread has no row */
        b->threshold[t] = (float)INFINITY;
    else
        b->threshold[t] = product_threshold_of_row(
            *row, __uint_as_float(p.features.most_rest[tile]));
    if (WAY == OJ_VECTOR_PRODUCTS)
        b->size[t] = p.features.size[tile * TILE + t];
}

/* Returns a mask of the sums 32 * group .. 32 * group + 31 of this lane whose
 * pairs may match. */
template <int WAY>
static __device__ __forceinline__ unsigned
mask_of_passing_sums(const struct cuda_vector_block *b, const float *sum,
                     int group)
{
    unsigned passes = 0;
#pragma unroll
    for (int i = 0; i < 32; i++)
    {
        int at = 32 * group + i;
        float threshold = b->threshold[oj_vector_row_of_sum<WAY>(at)];
        float left = WAY == OJ_VECTOR_PRODUCTS
                         ? sum[at] - b->size[oj_vector_column_of_sum<WAY>(at)]
                         : threshold;
        int is_in = left >= (WAY == OJ_VECTOR_PRODUCTS ? threshold : sum[at]);
        passes |= (unsigned)is_in << i;
    }
    return passes;
}

template <int WAY>
static __device__ __forceinline__ void
compare_tile(const struct cuda_vector_pairs &p, struct cuda_vector_block *b,
             int64_t row_tile, int64_t tile, int *has_rows,
             struct cuda_vector_row *row)
{
    int n_slabs = oj_vector_count_slabs<WAY>(p.frame.n_padded);
    float sum[TILE];
    unsigned passes[4];
#pragma unroll
    for (int i = 0; i < TILE; i++)
        sum[i] = 0.0f;
    for (int s = 0; s < n_slabs; s++)
    {
        __syncthreads();
        if (s == 0)
            set_row_limits<WAY>(p, b, tile, row);
        if (!*has_rows)
            oj_vector_load_slab<WAY>(p.rows, p.frame.n_padded, row_tile, s,
                                     b->rows);
        *has_rows = n_slabs == 1;
        oj_vector_load_slab<WAY>(p.features, p.frame.n_padded, tile, s,
                                 b->features);
        __syncthreads();
        oj_vector_add_slab<WAY>(b->rows, b->features,
                                oj_vector_slab_width<WAY>(p.frame.n_padded, s),
                                sum);
    }
#pragma unroll
    for (int group = 0; group < 4; group++)
        passes[group] = mask_of_passing_sums<WAY>(b, sum, group);
#pragma unroll
    for (int group = 0; group < 4; group++)
        queue_passing_pairs<WAY>(p, b, row_tile, tile, group, passes[group]);
}

/* --- choice of tiles ------------------------------------------------------ */

/* Returns a lower bound for any two vectors in two boxes: of the sum of their
 * differences for L1, of the sum of the squared differences for L2, or of the
 * greatest difference for Linf. */
static __device__ float lower_bound_between_boxes(enum oj_vector_norm norm,
                                                  const float *a,
                                                  const float *b)
{
    float sum = 0.0f;
    for (int c = 0; c < BOX; c++)
    {
        float below = a[c] - b[BOX + c], above = b[c] - a[BOX + c];
        float apart = below > above ? below : above;
        apart = apart > 0.0f ? apart : 0.0f;
        if (norm == OJ_NORM_LINF)
            sum = apart > sum ? apart : sum;
        else
            sum += norm == OJ_NORM_L1 ? apart : apart * apart;
    }
    return sum;
}

/* Returns the number of the tile of features whose box has the centre nearest
 * to that of `box`. All threads of the block must call it. */
static __device__ int64_t find_nearest_tile(const struct cuda_vector_pairs &p,
                                            struct cuda_vector_block *b,
                                            const float *box)
{
    unsigned long long least = ~0ull;
    if (threadIdx.x == 0)
        b->nearest = least;
    __syncthreads();
    for (int64_t tile = threadIdx.x; tile < p.features.n_tiles; tile += TILE)
    {
        const float *other = p.features.box + tile * 2 * BOX;
        unsigned long long key;
        float sum = 0.0f;
        for (int c = 0; c < BOX; c++)
        {
            float apart = box[c] + box[BOX + c] - other[c] - other[BOX + c];
            sum += apart * apart;
        }
        key = (unsigned long long)__float_as_uint(sum) << 32 |
              (unsigned long long)tile;
        least = key < least ? key : least;
    }
    atomicMin(&b->nearest, least);
    __syncthreads();
    return (int64_t)(b->nearest & 0xffffffffull);
}

static __device__ float greatest_warp_limit(const struct cuda_vector_block *b)
{
    float limit = b->warp_limit[0];
    for (int i = 1; i < N_WARPS; i++)
        limit = b->warp_limit[i] > limit ? b->warp_limit[i] : limit;
    return limit;
}

/* Each thread tests whether its tile of features is near enough to the box.
 * Lists these tiles in b->tile, for all threads, and returns how many there
 * are. */
static __device__ int list_tiles_within_limit(const struct cuda_vector_pairs &p,
                                              struct cuda_vector_block *b,
                                              const float *box, int64_t tile)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, at = 0, n = 0;
    int is_near = tile < p.features.n_tiles;
    float sum = 0.0f;
    unsigned which;
    if (is_near)
    {
        sum = lower_bound_between_boxes(p.frame.norm, box,
                                        p.features.box + tile * 2 * BOX);
        is_near = sum <= greatest_warp_limit(b);
    }
    which = __ballot_sync(~0u, is_near);
    __syncthreads(); /* waits until all threads have read the previous list */
    if (lane == 0)
        b->n_listed[warp] = __popc(which);
    __syncthreads();
    for (int i = 0; i < N_WARPS; i++)
    {
        at += i < warp ? b->n_listed[i] : 0;
        n += b->n_listed[i];
    }
    at += __popc(which & ((1u << lane) - 1));
    if (is_near)
    {
        b->tile[at] = (int32_t)tile;
        b->sum[at] = sum;
    }
    __syncthreads();
    return n;
}

static __device__ struct cuda_vector_row
init_row_state(const struct cuda_vector_pairs &p, struct cuda_vector_block *b,
               int64_t row_tile)
{
    struct cuda_vector_row row = {-1.0, 0.0, -1.0f, 0.0f, 0.0f};
    int t = threadIdx.x;
    int64_t place = row_tile * TILE + t;
    b->n_nearest[t] = 0;
    b->most[t] = p.max_difference;
    if (t < N_WARPS)
    {
        b->n_queue[t] = 0;
        b->warp_limit[t] = oj_vector_max_single_precision_sum(
            p.frame.norm, p.frame.n_dimensions, p.frame.scale,
            p.max_difference);
    }
    __syncthreads();
    if (place >= p.rows.n)
        return row;
    row.most = row.reach = (double)INFINITY;
    row.limit = (float)INFINITY;
    if (p.rows.size != NULL)
    {
        row.size = p.rows.size[place];
        row.rest = p.rows.rest[place];
    }
    return row;
}

template <int WAY>
static __global__ void __launch_bounds__(TILE)
    search_near_vectors(const __grid_constant__ struct cuda_vector_pairs p)
{
    __shared__ struct cuda_vector_block b;
    int64_t row_tile = (p.first_tile + blockIdx.x) * p.n_shares + p.share;
    int64_t from = blockIdx.y * p.slice, end = from + p.slice, nearest = 0;
    const float *box = p.rows.box + row_tile * 2 * BOX;
    int has_rows = 0, warp = threadIdx.x / WARP;
    struct cuda_vector_row row = init_row_state(p, &b, row_tile);
    if (p.k > 0)
        nearest = find_nearest_tile(p, &b, box);
    for (; from < end; from += TILE)
    {
        int n =
            list_tiles_within_limit(p, &b, box, nearest ^ (from + threadIdx.x));
        for (int i = 0; i < n; i++)
        {
            if (b.sum[i] <= greatest_warp_limit(&b))
                compare_tile<WAY>(p, &b, row_tile, b.tile[i], &has_rows, &row);
        }
    }
    measure_queued_pairs(p, &b, row_tile, 0, b.n_queue[warp]);
    if (p.k > 0)
        output_nearest_pairs(p, &b, row_tile);
}

typedef void searching(const struct cuda_vector_pairs);

static searching *choose_search_kernel(const struct oj_cuda_vector_frame *frame)
{
    if (frame->is_of_halves)
        return search_near_vectors<OJ_VECTOR_PRODUCTS>;
    if (frame->norm == OJ_NORM_L1)
        return search_near_vectors<OJ_VECTOR_SIZES>;
    if (frame->norm == OJ_NORM_LINF)
        return search_near_vectors<OJ_VECTOR_GREATEST>;
    return search_near_vectors<OJ_VECTOR_SQUARES>;
}

static int64_t count_tiles_of_share(const struct cuda_vector_pairs *p)
{
    return (p->rows.n_tiles - p->share + p->n_shares - 1) / p->n_shares;
}

/* Compares all tiles of rows, in several launches. */
static oj_status search_all_row_tiles(struct oj_cuda_work *work,
                                      struct cuda_vector_pairs *p)
{
    int64_t tiles = count_tiles_of_share(p), all = TILE, step, slices = 1;
    double of_tile =
        (double)p->features.n_tiles * TILE * TILE * (double)p->frame.n_padded;
    OJ_TRY(work->clear(p->found.n, 1));
    OJ_TRY(work->clear(p->n_measured, 1));
    if (tiles == 0 || p->features.n == 0)
        return OJ_OK;
    while (all < p->features.n_tiles)
        all *= 2;
    if (p->k == 0)
        slices = work->device->n_processors * BLOCKS_WANTED / tiles + 1;
    if (slices > all / TILE)
        slices = all / TILE;
    p->slice = (all / TILE + slices - 1) / slices * TILE;
    step = (int64_t)(most_at_once / of_tile) + 1;
    for (int64_t at = 0; at < tiles; at += step)
    {
        dim3 blocks((unsigned)(tiles - at < step ? tiles - at : step),
                    oj_cuda_count_blocks(all, p->slice));
        p->first_tile = at;
        OJ_TRY(work->launch_blocks<TILE>(blocks,
                                         choose_search_kernel(&p->frame), *p));
        if (step < tiles)
            OJ_TRY(work->wait());
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
    }
    return OJ_OK;
}

/* --- rows of a batch ------------------------------------------------------ */

static oj_status find_pairs(struct oj_cuda_work *work,
                            struct cuda_vector_pairs *p,
                            struct oj_cuda_share *share, struct oj_stats *stats)
{
    int64_t n = count_tiles_of_share(p) * TILE;
    int64_t room = p->k > 0 ? n * p->k : 16 * n + (1 << 16);
    unsigned long long n_measured = 0;
    if (p->k > 0)
    {
        OJ_TRY(work->make(p->rows.n_tiles * TILE * p->k, &p->difference));
        OJ_TRY(work->make(p->rows.n_tiles * TILE * p->k, &p->nearest));
    }
    OJ_TRY(work->make(1, &p->n_measured));
    OJ_TRY(oj_cuda_share_find_pairs(work, 1, &p->found, room, share,
                                    [&]()
                                    { return search_all_row_tiles(work, p); }));
    OJ_TRY(work->read(p->n_measured, &n_measured));
    stats->n_candidates += (int64_t)n_measured;
    return OJ_OK;
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_share *share,
                           struct oj_stats *stats, struct oj_error *err)
{
    const struct cuda_vectors_index *self =
        (const struct cuda_vectors_index *)index;
    const struct oj_relation *relation = &index->relation;
    struct oj_cuda_work work(index->device, index->device->stream,
                             "comparing vectors", err);
    struct cuda_vector_pairs p = {};
    p.frame = self->frame;
    p.features = p.rows = self->side;
    p.share = share->number;
    p.n_shares = share->n;
    if (self->side.n > 0 &&
        !oj_cuda_share_input_is_join_side(index, input, first, n))
        OJ_TRY(oj_cuda_vector_side_make(&work, input, first, n, relation,
                                        &p.frame, &p.rows));
    p.rank = index->rank;
    p.max_difference = relation->vector.max_difference;
    p.k = relation->k < OJ_EVERY_PAIR ? (int)relation->k : 0;
    p.rule =
        oj_cuda_make_pair_rule(relation, &p.rows.columns, &p.features.columns);
    return find_pairs(&work, &p, share, stats);
}

/* --- the family ----------------------------------------------------------- */

static int supports_similar_vectors_join(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_similar(relation) && relation->n_similar == 0 &&
           !relation->exclude_same_geometry &&
           (relation->k >= OJ_EVERY_PAIR ||
            (relation->k <= MOST_NEAREST && relation->ties == OJ_TIES_FIRST));
}

static oj_status build_vectors_index(struct oj_cuda_index *index,
                                     struct oj_cuda_work *work)
{
    struct cuda_vectors_index *self = (struct cuda_vectors_index *)index;
    const struct oj_flat *flat = index->layer->flat;
    if (flat->vectors.value == NULL)
        return oj_fail(
            work->err, OJ_ERR_ARG,
            "the join side has no vectors: name its columns in vector");
    return oj_cuda_vector_side_make(work, flat, 0, flat->n_features,
                                    &index->relation, &self->frame,
                                    &self->side);
}

const struct oj_cuda_family oj_cuda_similar_vectors = {
    "tiles of vectors",
    supports_similar_vectors_join,
    sizeof(struct cuda_vectors_index),
    build_vectors_index,
    1,
    join_rows,
};
