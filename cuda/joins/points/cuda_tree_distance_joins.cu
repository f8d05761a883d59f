/* Joins of points by distance for which there is no special family, by a packed
 * tree of the join side's segments. For the k nearest, each point has an array
 * of k features, and the threads of a warp, with points close together, walk
 * the tree together. For dwithin, each thread walks the tree for its point: one
 * pass counts candidates, the next one writes them, and then they are sorted.
 */
#include "../../foundations/index/cuda_pair_order.cuh"
#include "../../foundations/tree/cuda_warp_tree_walk.cuh"
#include "cuda_point_pair_kernels.cuh"

#define BLOCK 128

/* A row with at most this many candidates is sorted by its own thread. */
#define SHORT_ROW 256

/* Maximum k, because a point's array is searched linearly. */
#define MOST_K 128

struct tree_index : oj_cuda_index
{
    struct oj_tree_side side;
    int32_t k; /* at most the number of features */
};

/* Returns 1 if some join features are points and others are not. Conditions on
 * equal points compare the ends of segments, which is right only if either all
 * features are points or none is. */
static int mixes_points_and_others(const struct oj_flat *join_side)
{
    return !oj_flat_is_points(join_side) &&
           (join_side->part_kinds & OJ_PART_POINT) != 0;
}

/* Returns 1 for nearest joins whose k (at most the number of join features) is
 * <= MOST_K, and for dwithin joins with a maximum distance of the join or of
 * each input feature. If input is NULL, its distances are not known yet, and a
 * dwithin join is accepted. Returns 0 if the join features have maximum
 * distances, or if features of equal geometry are excluded and the join side
 * mixes points and others. With a minimum distance, nearest joins need join
 * features that are points: the distance of a feature with several segments is
 * known only after the last one. */
static int supports_tree_distance_join(const struct oj_relation *relation,
                                       const struct oj_flat *join_side,
                                       const struct oj_flat *input)
{
    int64_t k = relation->k < join_side->n_features ? relation->k
                                                    : join_side->n_features;
    if (join_side->max_distance != NULL ||
        (relation->exclude_same_geometry && mixes_points_and_others(join_side)))
        return 0;
    if (oj_relation_is_dwithin(relation))
        return input == NULL || input->max_distance != NULL ||
               relation->max_distance < INFINITY;
    return oj_relation_is_nearest(relation) && k <= MOST_K &&
           (relation->min_distance == 0.0 || oj_flat_is_points(join_side));
}

static oj_status build_segment_and_ring_trees(struct oj_cuda_index *index,
                                              struct oj_cuda_work *work)
{
    struct tree_index *self = (struct tree_index *)index;
    int64_t k = self->relation.k, n = self->layer->n_features;
    self->k = (int32_t)(k < n ? k : n);
    return oj_cuda_tree_side_build(work, self->layer,
                                   self->relation.distance_to == OJ_TO_INTERIOR,
                                   self->k > 1, &self->side);
}

const struct oj_tree_side *
oj_cuda_tree_joins_side(const struct oj_cuda_index *wrapped)
{
    return &((const struct tree_index *)wrapped)->side;
}

/* Returns the bytes of the arrays and pairs of n points. For each pair, a
 * candidate and the output have a distance and a number (the factor 2). dwithin
 * joins are assumed to have 16 candidates per point, since their number is not
 * known; nearest joins 2 k, an estimate with room for ties. */
static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    const struct tree_index *self = (const struct tree_index *)wrapped;
    const int64_t pair_bytes = (int64_t)(sizeof(double) + sizeof(int32_t));
    int64_t n_pairs =
        oj_relation_is_nearest(&self->relation) ? 2 * self->k : 16;
    int64_t bytes = OJ_CUDA_POINT_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES;
    if (!oj_relation_allows_many_pairs(&self->relation))
        return n * bytes;
    return n *
           (bytes + 4 * (int64_t)sizeof(int64_t) + 2 * n_pairs * pair_bytes);
}

/* --- joins with one feature per point --------------------------------------
 */

/* Returns 0 for a point that matches nothing: its coordinates are not finite,
 * or its maximum distance is negative or NaN. */
static __device__ int is_joinable_point(double x, double y, double most)
{
    return isfinite(x) && isfinite(y) && most >= 0.0;
}

/* The search of one thread (a Lane, see cuda_warp_tree_walk.cuh) for its k
 * nearest features. */
struct place_seeker
{
    const struct oj_tree_side *side;
    const struct oj_pair_rule *rule;
    int64_t row; /* -1: the thread has no point */
    double px, py;
    double own_x, own_y; /* coordinates relative to the tree's origin */
    double slack, own_reach2;
    struct oj_tree_best best;

    __device__ __forceinline__ double x() const
    {
        return own_x;
    }

    __device__ __forceinline__ double y() const
    {
        return own_y;
    }

    __device__ __forceinline__ double reach2() const
    {
        return own_reach2;
    }

    __device__ __forceinline__ int wants_node(uint32_t at, double d2) const
    {
        return !oj_tree_can_skip_known_feature(side, &best, slack, at, d2) &&
               !oj_tree_best_excludes_node(side, &best, at);
    }

    /* Sets own_reach2, the limit of the squared distances of boxes, by the
     * formula of oj_tree_walk_set_bound(). */
    __device__ __forceinline__ void update_reach_limit()
    {
        double reach = oj_tree_best_bound(&best) + slack;
        own_reach2 = reach * reach * (1.0 + 1e-14);
    }

    __device__ __forceinline__ void consider_entry(int64_t entry)
    {
        if (oj_tree_add_entry(side, rule, row, px, py, entry, &best))
            update_reach_limit();
    }
};

/* Fills *best, which must be empty, with the features nearest to the point of
 * row. If row is -1, the thread has no point. All threads of a warp must call
 * it. */
static __device__ void find_nearest_by_warp(const struct oj_tree_side &side,
                                            const struct point_batch &batch,
                                            int64_t row,
                                            struct oj_warp_walk_memory *memory,
                                            struct oj_tree_best *best)
{
    const struct oj_device_tree &tree = side.segments;
    struct place_seeker s;
    s.side = &side;
    s.rule = &batch.rule;
    s.row = row;
    s.px = row >= 0 ? batch.x[row] : NAN;
    s.py = row >= 0 ? batch.y[row] : NAN;
    s.own_x = s.px - tree.x0;
    s.own_y = s.py - tree.y0;
    s.slack = 7.2e-15 * (fabs(s.own_x) + fabs(s.own_y) + tree.radius);
    s.own_reach2 = -1.0;
    s.best = *best;
    if (best->k > 0 && is_joinable_point(s.px, s.py, best->most))
    {
        oj_tree_add_containing(&side, &batch.rule, row, s.px, s.py, &s.best);
        s.update_reach_limit();
    }
    walk_tree_by_warp(tree, memory, &s);
    *best = s.best;
}

static __global__ void __launch_bounds__(BLOCK)
    find_nearest_feature(const __grid_constant__ struct oj_tree_side side,
                         const __grid_constant__ struct point_batch batch,
                         const struct oj_warp_shares shares, int32_t *row,
                         double *measure)
{
    __shared__ struct oj_warp_walk_memory walks[BLOCK / OJ_WARP_LANES];
    int64_t t = oj_warp_shares_point_of_thread(&shares, batch.n, 0);
    int64_t i = t >= 0 ? point_of_thread(batch, t) : -1;
    double distance = 0.0;
    int32_t rank = -1;
    struct oj_tree_best best;
    best.k = 1;
    best.n = 0;
    best.stride = 1;
    best.least = batch.least;
    best.most = i >= 0 ? max_distance_of_point(batch, i) : -1.0;
    best.distance = &distance;
    best.rank = &rank;
    find_nearest_by_warp(side, batch, i, &walks[threadIdx.x / OJ_WARP_LANES],
                         &best);
    if (i >= 0)
        write_single_answer(batch, i, best.n > 0 ? rank : -1, distance, row,
                            measure);
}

/* Makes the arguments of the kernels. *work owns out->order. */
static oj_status make_batch(struct oj_cuda_work *work,
                            const struct tree_index *self,
                            const struct oj_cuda_points *points,
                            struct point_batch *out)
{
    int32_t *order;
    OJ_TRY(
        oj_cuda_tree_order_points(work, &self->side.segments, points, &order));
    *out = make_point_join_batch(self, points, order);
    out->rule.excludes_same &= self->layer->only_points;
    return OJ_OK;
}

static oj_status find_nearest_feature_of_each(
    const struct oj_cuda_index *index, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure)
{
    const struct tree_index *self = (const struct tree_index *)index;
    struct point_batch batch;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(make_batch(work, self, points, &batch));
    const struct oj_warp_shares shares = oj_warp_shares_choose(points->n, 1);
    return work->launch_blocks<BLOCK>(
        oj_warp_shares_blocks(&shares, points->n, BLOCK), find_nearest_feature,
        self->side, batch, shares, d_row, d_measure);
}

/* --- rows with many candidates -------------------------------------------- */

/* Candidates by row. */
struct candidates
{
    int64_t n;
    int64_t *first; /* [rows + 1] offsets */
    int64_t *count; /* [rows] number of candidates that are valid; NULL: all
                       are */
    double *distance;
    int32_t *rank;
};

static __device__ __forceinline__ int64_t
n_candidates_of_row(const struct candidates &rows, int64_t i)
{
    return rows.count != NULL ? rows.count[i]
                              : rows.first[i + 1] - rows.first[i];
}

/* Sets *found to the candidate lists of the rows that have more than SHORT_ROW
 * candidates, because a single thread would take long to sort them. */
static oj_status find_rows_with_many_candidates(struct oj_cuda_work *work,
                                                int64_t n_rows,
                                                const struct candidates &rows,
                                                struct oj_cuda_row_lists *found)
{
    int64_t *first, *end;
    unsigned *n_long, n;
    found->n = 0;
    if (rows.n / SHORT_ROW == 0)
        return OJ_OK;
    OJ_TRY(work->make(rows.n / SHORT_ROW, &first, &end));
    OJ_TRY(work->allocate_zeros(1, &n_long));
    OJ_TRY(work->each(n_rows,
                      [=] __device__(int64_t i)
                      {
                          int64_t n_candidates = n_candidates_of_row(rows, i);
                          unsigned at;
                          if (n_candidates <= SHORT_ROW)
                              return;
                          at = atomicAdd(n_long, 1u);
                          first[at] = rows.first[i];
                          end[at] = rows.first[i] + n_candidates;
                      }));
    OJ_TRY(work->read(n_long, &n));
    found->n = n;
    found->first = first;
    found->end = end;
    found->rank = rows.rank;
    found->measure = rows.distance;
    return OJ_OK;
}

/* Sorts the candidates of the rows that have more than SHORT_ROW. Waits for the
 * stream if there may be such rows. */
static oj_status sort_rows_with_many_candidates(struct oj_cuda_listing *l,
                                                enum oj_tree_order order,
                                                const struct candidates &rows)
{
    struct oj_cuda_work work(l);
    struct oj_cuda_row_lists found;
    OJ_TRY(find_rows_with_many_candidates(&work, l->points->n, rows, &found));
    return found.n > 0
               ? oj_cuda_sort_row_lists(&work, &found,
                                        order == OJ_TREE_BY_RANK
                                            ? OJ_CUDA_BY_RANK_THEN_MEASURE
                                            : OJ_CUDA_BY_MEASURE_THEN_RANK,
                                        NULL)
               : OJ_OK;
}

/* --- lists ---------------------------------------------------------------- */

/* Shared memory for the lists of the nearest features of a block's points;
 * elements of one point's list are BLOCK apart. Shared memory is faster,
 * because most candidates in reach are compared with several elements. If
 * PLACES is 0, the lists are in device memory instead. */
template <int PLACES> struct shared_places
{
    double distance[PLACES * BLOCK];
    int32_t rank[PLACES * BLOCK];
};

template <> struct shared_places<0>
{
    double distance[1];
    int32_t rank[1];
};

/* Finds the k nearest features of each point; k <= PLACES, unless PLACES is 0.
 * In distance and rank, element j of the point of thread t has the index j * n
 * + t. Each of the two other outputs may be NULL: count [n + 1] is the number
 * of features found; reach [n] is the distance of the last feature found, or -1
 * if there is none. */
template <int PLACES>
static __global__ void __launch_bounds__(BLOCK)
    find_k_nearest(const __grid_constant__ struct oj_tree_side side,
                   const __grid_constant__ struct point_batch batch,
                   const struct oj_warp_shares shares, int32_t k,
                   double *distance, int32_t *rank, int64_t *count,
                   double *reach)
{
    __shared__ struct oj_warp_walk_memory walks[BLOCK / OJ_WARP_LANES];
    __shared__ struct shared_places<PLACES> places;
    int64_t t = oj_warp_shares_point_of_thread(&shares, batch.n, 0);
    int64_t i = t >= 0 ? point_of_thread(batch, t) : -1;
    struct oj_tree_best best;
    best.k = k;
    best.n = 0;
    best.stride = PLACES > 0 ? BLOCK : batch.n;
    best.least = batch.least;
    best.most = i >= 0 ? max_distance_of_point(batch, i) : -1.0;
    best.distance = PLACES > 0 ? places.distance + threadIdx.x
                               : distance + (t >= 0 ? t : 0);
    best.rank =
        PLACES > 0 ? places.rank + threadIdx.x : rank + (t >= 0 ? t : 0);
    find_nearest_by_warp(side, batch, i, &walks[threadIdx.x / OJ_WARP_LANES],
                         &best);
    if (i < 0)
        return;
    if (count != NULL)
        count[i] = best.n;
    if (reach != NULL)
        reach[i] =
            best.n > 0 ? best.distance[(best.n - 1) * best.stride] : -1.0;
    for (int32_t j = 0; PLACES > 0 && j < best.n; j++)
    {
        distance[j * batch.n + t] = best.distance[j * best.stride];
        rank[j * batch.n + t] = best.rank[j * best.stride];
    }
}

/* Runs find_k_nearest() with the smallest shared memory that has room for k.
 * The arrays are those of find_k_nearest(). */
static oj_status launch_find_k_nearest(struct oj_cuda_work *work,
                                       const struct tree_index *self,
                                       const struct point_batch &batch,
                                       double *distance, int32_t *rank,
                                       int64_t *count, double *reach)
{
    const struct oj_warp_shares shares = oj_warp_shares_choose(batch.n, 1);
    auto *kernel = self->k <= 8    ? find_k_nearest<8>
                   : self->k <= 24 ? find_k_nearest<24>
                                   : find_k_nearest<0>;
    return work->launch_blocks<BLOCK>(
        oj_warp_shares_blocks(&shares, batch.n, BLOCK), kernel, self->side,
        batch, shares, self->k, distance, rank, count, reach);
}

/* Writes the pairs. On entry, l->out.offset holds their number per row. They
 * are the first candidates of the row, from first[row] on or, if `first` is
 * NULL, the features in the list of the point. */
static oj_status write_listed_pairs(struct oj_cuda_listing *l,
                                    const struct point_batch batch,
                                    const int64_t *first,
                                    const double *distance, const int32_t *rank)
{
    const int64_t *offset = l->out.offset.data;
    int32_t *row;
    double *measure;
    OJ_TRY(l->turn_counts_into_offsets());
    OJ_TRY(l->allocate_pairs(1));
    row = l->out.row.data;
    measure = l->out.measure.data;
    return l->each(
        batch.n,
        [=] __device__(int64_t t)
        {
            int64_t i = first != NULL ? t : point_of_thread(batch, t);
            int64_t from = first != NULL ? first[i] : t;
            int64_t step = first != NULL ? 1 : batch.n;
            for (int64_t at = offset[i]; at < offset[i + 1]; at++, from += step)
            {
                row[at] = ordinal_of_rank(batch, rank[from]);
                measure[at] = distance[from];
            }
        });
}

/* Lists the k nearest features, or, with ties (reach is not NULL), only sets
 * reach to the distance of the k-th feature of each point; the pairs within it
 * are listed later. */
static oj_status list_k_nearest(const struct tree_index *self,
                                struct oj_cuda_listing *l,
                                const struct point_batch &batch, double *reach)
{
    struct oj_cuda_work work(l);
    double *distance;
    int32_t *rank;
    OJ_TRY(work.make(batch.n * self->k, &distance));
    OJ_TRY(work.make(batch.n * self->k, &rank));
    if (reach == NULL)
        OJ_TRY(work.clear(l->out.offset.data + batch.n, 1));
    OJ_TRY(launch_find_k_nearest(&work, self, batch, distance, rank,
                                 reach != NULL ? NULL : l->out.offset.data,
                                 reach));
    return reach != NULL ? OJ_OK
                         : write_listed_pairs(l, batch, NULL, distance, rank);
}

/* Finds the candidates of each point. If distance is NULL, counts them in
 * first; otherwise stores them in distance and rank, those of point i from
 * first[i] on. reach is NULL, or [n] the maximum distance of each point. */
static __global__ void __launch_bounds__(BLOCK, 6)
    count_or_store_candidates_within(
        const __grid_constant__ struct oj_tree_side side,
        const __grid_constant__ struct point_batch batch, const double *reach,
        int64_t *first, double *distance, int32_t *rank)
{
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i;
    struct oj_tree_found found;
    double x, y, most;
    if (t == batch.n && distance == NULL)
        first[t] = 0;
    if (t >= batch.n)
        return;
    i = point_of_thread(batch, t);
    x = batch.x[i];
    y = batch.y[i];
    found = distance != NULL
                ? oj_tree_found_start(first[i + 1] - first[i],
                                      distance + first[i], rank + first[i])
                : oj_tree_found_start(0, NULL, NULL);
    most = reach != NULL ? reach[i] : max_distance_of_point(batch, i);
    if (is_joinable_point(x, y, most))
        oj_tree_find_within(&side, &batch.rule, i, x, y, most, &found);
    if (distance == NULL)
        first[i] = found.n;
}

/* Moves the pairs of each row to the front of its candidates and sets
 * l->out.offset to their number. Long rows have been sorted by rank before, and
 * keep that order. */
static oj_status drop_duplicate_candidates(struct oj_cuda_listing *l,
                                           enum oj_tree_order order,
                                           double least, struct candidates rows)
{
    int64_t *count = l->out.offset.data, n_rows = l->points->n;
    OJ_TRY(sort_rows_with_many_candidates(l, OJ_TREE_BY_RANK, rows));
    OJ_TRY(l->each(
        n_rows + 1,
        [=] __device__(int64_t i)
        {
            int64_t n = i < n_rows ? n_candidates_of_row(rows, i) : 0;
            double *distance = rows.distance + rows.first[i];
            int32_t *rank = rows.rank + rows.first[i];
            if (n > SHORT_ROW)
            {
                n = oj_tree_keep_nearest_per_feature(least, n, distance, rank);
                if (order == OJ_TREE_BY_DISTANCE && n <= SHORT_ROW)
                    oj_tree_sort_candidates(order, n, distance, rank);
            }
            else if (n > 0)
                n = oj_tree_candidates_to_pairs(order, least, n, distance,
                                                rank);
            count[i] = n;
        }));
    if (order == OJ_TREE_BY_RANK)
        return OJ_OK;
    rows.count = count;
    return sort_rows_with_many_candidates(l, order, rows);
}

/* Lists all features within a distance of each point. reach is NULL, or [n] the
 * maximum distance of each point. */
static oj_status list_features_within(const struct tree_index *self,
                                      struct oj_cuda_listing *l,
                                      const struct point_batch &batch,
                                      const double *reach)
{
    int64_t n = batch.n;
    struct candidates rows = {};
    OJ_TRY(l->make(n + 1, &rows.first));
    OJ_TRY(l->run<BLOCK>(n + 1, count_or_store_candidates_within, self->side,
                         batch, reach, rows.first, rows.distance, rows.rank));
    OJ_TRY(l->scan_and_read_total(rows.first, n, &rows.n));
    if (rows.n == 0)
        return l->clear(l->out.offset.data, n + 1);
    OJ_TRY(l->make(rows.n, &rows.distance));
    OJ_TRY(l->make(rows.n, &rows.rank));
    OJ_TRY(l->run<BLOCK>(n + 1, count_or_store_candidates_within, self->side,
                         batch, reach, rows.first, rows.distance, rows.rank));
    OJ_TRY(drop_duplicate_candidates(l,
                                     oj_relation_is_nearest(&self->relation)
                                         ? OJ_TREE_BY_DISTANCE
                                         : OJ_TREE_BY_RANK,
                                     batch.least, rows));
    return write_listed_pairs(l, batch, rows.first, rows.distance, rows.rank);
}

static oj_status list_tree_pairs(const struct oj_cuda_index *index,
                                 struct oj_cuda_listing *l)
{
    const struct tree_index *self = (const struct tree_index *)index;
    int all = self->relation.ties == OJ_TIES_ALL;
    struct point_batch batch;
    double *reach = NULL;
    OJ_TRY(make_batch(l, self, l->points, &batch));
    if (oj_relation_is_nearest(&self->relation))
    {
        if (all)
            OJ_TRY(l->make(batch.n, &reach));
        OJ_TRY(list_k_nearest(self, l, batch, reach));
        if (!all)
            return OJ_OK;
    }
    return list_features_within(self, l, batch, reach);
}

const struct oj_cuda_family oj_cuda_tree_joins = {
    "distances of points, by a packed tree",
    supports_tree_distance_join,
    sizeof(struct tree_index),
    build_segment_and_ring_trees,
    1,
    NULL,
    batch_bytes,
    find_nearest_feature_of_each,
    list_tree_pairs,
    NULL,
    NULL,
    1,
};
