/** Paper: Leal, Gruenwald, Zhang, You 2015, "Towards an Efficient Top-K
 *  Trajectory Similarity Query Processing Algorithm for Big Trajectory Data on
 *  GPGPUs", section IV (Top-KaBT).
 *
 *  Method and differences: see algs/papers/topkabt.c, the version for one CPU
 *  thread. Here all pairs of some rows are sorted at once, by row and minimum
 *  distance, and a warp measures each pair up to the k-th cut point. It
 *  is the backend "cuda_cut_points".
 */
#include "../foundations/device/cuda_offset_search.cuh"
#include "../joins/similar_shapes/cuda_shape_side.cuh"

enum
{
    BLOCK = 128,
    WARP = OJ_SHAPE_WARP,
    MOST_NEAREST = 1024 /* maximum k */
};

/* Maximum number of pairs whose boxes are compared in one launch, and maximum
 * number of pairs that are measured between two checks of the cancel flag. */
static const int64_t pairs_at_once = 1 << 23, measured_at_once = 1 << 16;

/* A run: rows first .. first + n - 1 with all features. */
struct cuda_cut_points_run
{
    struct oj_cuda_shapes rows, features;
    struct oj_pair_rule rule;
    double max_distance;
    int64_t k, first, n;
    const int32_t *order; /* [n * features] pairs, sorted by row and minimum
                             distance */
    /* [n + 1] prefix sums of the numbers of pairs that remain to be measured */
    int64_t *sums;
    int64_t begin, end; /* remaining pairs of this launch */
    struct oj_cuda_found found;
};

static __device__ struct oj_box box_of_shape(const struct oj_cuda_shapes &of,
                                             int64_t feature)
{
    const double *side = of.side.sides + OJ_SHAPE_SIDES * feature;
    return {side[0], side[1], side[2], side[3]};
}

/* Returns the squared minimum distance that the boxes of a pair allow; infinite
 * if the pair cannot match. */
static __device__ double
squared_min_distance_of_boxes(const struct cuda_cut_points_run &r, int64_t pair)
{
    int64_t row = r.first + pair / r.features.side.n;
    int64_t feature = pair % r.features.side.n;
    if (r.rows.side.n_vertices[row] == 0 ||
        r.features.side.n_vertices[feature] == 0 ||
        !oj_pair_rule_passes(&r.rule, (int32_t)row, (int32_t)feature, 0))
        return (double)INFINITY;
    return oj_shape_box_distance2(box_of_shape(r.rows, row),
                                  box_of_shape(r.features, feature));
}

static __device__ double
squared_max_distance_of_boxes(const struct cuda_cut_points_run &r, int64_t pair)
{
    const struct oj_box a =
        box_of_shape(r.rows, r.first + pair / r.features.side.n);
    const struct oj_box b = box_of_shape(r.features, pair % r.features.side.n);
    double dx = oj_larger(a.x1 - b.x0, b.x1 - a.x0);
    double dy = oj_larger(a.y1 - b.y0, b.y1 - a.y0);
    return dx * dx + dy * dy;
}

/* Counts the pairs up to the k-th cut point, one warp per row. */
static __global__ void count_pairs_to_kth_cut_point(
    const __grid_constant__ struct cuda_cut_points_run r)
{
    int lane = threadIdx.x % WARP;
    int64_t row = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int64_t n = r.features.side.n, left = r.k, at = 0;
    if (row >= r.n)
        return;
    const int32_t *order = r.order + row * n;
    for (; at < n; at += WARP)
    {
        int64_t i = at + lane;
        int counts = i < n && squared_min_distance_of_boxes(r, order[i]) <
                                  (double)INFINITY;
        int is_cut = counts && i + 1 < n &&
                     squared_max_distance_of_boxes(r, order[i]) <
                         squared_min_distance_of_boxes(r, order[i + 1]);
        unsigned cuts = __ballot_sync(~0u, is_cut);
        unsigned missing = ~__ballot_sync(~0u, counts);
        if (__popc(cuts) >= left)
        {
            while (--left > 0)
                cuts &= cuts - 1;
            at += __ffs((int)cuts);
            break;
        }
        left -= __popc(cuts);
        if (missing != 0)
        {
            at += __ffs((int)missing) - 1;
            break;
        }
    }
    if (lane == 0)
        r.sums[row] = at < n ? at : n;
}

static __device__ double
squared_directed_hausdorff(const struct oj_cuda_shape_side &a, int64_t i,
                           const struct oj_cuda_shape_side &b, int64_t j)
{
    int64_t end_a = a.vertex[i] + a.n_vertices[i];
    int64_t end_b = b.vertex[j] + b.n_vertices[j];
    double most = 0.0;
    for (int64_t v = a.vertex[i] + threadIdx.x % WARP; v < end_a; v += WARP)
    {
        double least = (double)INFINITY;
        for (int64_t w = b.vertex[j]; w < end_b; w++)
        {
            double d2 = oj_vertex_distance2(a.x[v], a.y[v], b.x[w], b.y[w]);
            least = d2 < least ? d2 : least;
        }
        most = least > most ? least : most;
    }
    return oj_warp_max(most);
}

/* Measures the remaining pairs, one warp per pair. */
static __global__ void
measure_remaining_pairs(const __grid_constant__ struct cuda_cut_points_run r)
{
    int64_t at = r.begin + ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    if (at >= r.end)
        return;
    int64_t row = oj_cuda_list_of_entry(r.sums, (int64_t)0, r.n, at);
    int64_t n = r.features.side.n;
    int64_t feature = r.order[row * n + at - r.sums[row]] % n;
    double there = squared_directed_hausdorff(r.rows.side, r.first + row,
                                              r.features.side, feature);
    double back = squared_directed_hausdorff(r.features.side, feature,
                                             r.rows.side, r.first + row);
    double distance = sqrt(oj_larger(there, back));
    oj_cuda_append_found_pairs(
        r.found, threadIdx.x % WARP == 0 && distance <= r.max_distance,
        (int32_t)(r.first + row), (int32_t)feature, distance);
}

static oj_status measure_all_remaining_pairs(struct oj_cuda_work *work,
                                             struct cuda_cut_points_run *r,
                                             int64_t total)
{
    OJ_TRY(work->clear(r->found.n, 1));
    for (r->begin = 0; r->begin < total; r->begin = r->end)
    {
        r->end = total - r->begin < measured_at_once
                     ? total
                     : r->begin + measured_at_once;
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
        OJ_TRY(work->run<BLOCK>((r->end - r->begin) * WARP,
                                measure_remaining_pairs, *r));
        OJ_TRY(work->wait());
    }
    return OJ_OK;
}

/* Sorts the pairs of a run by row and minimum distance. */
static oj_status order_pairs(struct oj_cuda_work *work,
                             struct cuda_cut_points_run *run)
{
    const struct cuda_cut_points_run r = *run;
    int64_t n = r.n * r.features.side.n, n_features = r.features.side.n;
    int row_bits = 1;
    int32_t *order = NULL;
    while (r.n >> row_bits != 0)
        row_bits++;
    OJ_TRY(work->order_by<uint64_t>(
        n, 64,
        [=] __device__(int64_t i) {
            return (uint64_t)__double_as_longlong(
                squared_min_distance_of_boxes(r, i));
        },
        &order));
    const int32_t *by_least = order;
    OJ_TRY(work->reorder_by<uint32_t>(
        n, row_bits,
        [=] __device__(int64_t i)
        { return (uint32_t)(by_least[i] / n_features); },
        &order, NULL));
    run->order = order;
    return OJ_OK;
}

static oj_status find_pairs_of_row_run(struct oj_cuda_work *work,
                                       struct cuda_cut_points_run *r,
                                       const int32_t *rank,
                                       struct oj_cuda_found *kept,
                                       uint8_t *done, struct oj_stats *stats)
{
    struct oj_cuda_work own(work);
    int64_t n = 0, total = 0;
    OJ_TRY(order_pairs(&own, r));
    OJ_TRY(own.make(r->n + 1, &r->sums));
    OJ_TRY(own.run<BLOCK>(r->n * WARP, count_pairs_to_kth_cut_point, *r));
    OJ_TRY(own.scan_and_read_total(r->sums, r->n, &total));
    stats->n_candidates += total;
    OJ_TRY(oj_cuda_found_run_until_fits(
        &own, &r->found, total, NULL,
        [&]() { return measure_all_remaining_pairs(&own, r, total); }, &n));
    return oj_cuda_keep_first_k_pairs_of_rows(&own, r->rows.side.n, rank, r->k,
                                              1, &r->found, n, kept, done);
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_share *share,
                           struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_relation *relation = &index->relation;
    struct oj_cuda_work work(index->device, index->device->stream,
                             "measuring shapes", err);
    struct cuda_cut_points_run r = {};
    struct oj_cuda_found kept = {};
    unsigned long long n_kept = 0;
    uint8_t *done;
    int64_t step, end = n * (share->number + 1) / share->n;
    OJ_TRY(oj_cuda_shapes_make(&work, input, first, n, relation, &r.rows));
    r.features = ((const struct oj_cuda_shapes_index *)index)->of;
    r.max_distance = relation->max_distance;
    r.k = relation->k;
    r.rule =
        oj_cuda_make_pair_rule(relation, &r.rows.columns, &r.features.columns);
    OJ_TRY(work.allocate_zeros(1, &kept.n));
    OJ_TRY(work.make(n * r.k, &kept.row, &kept.feature));
    OJ_TRY(work.make(n * r.k, &kept.measure));
    OJ_TRY(work.allocate_zeros(n, &done));
    step = pairs_at_once / r.features.side.n + 1;
    for (r.first = n * share->number / share->n; r.first < end; r.first += r.n)
    {
        r.n = end - r.first < step ? end - r.first : step;
        OJ_TRY(
            find_pairs_of_row_run(&work, &r, index->rank, &kept, done, stats));
    }
    OJ_TRY(work.read(kept.n, &n_kept));
    oj_cuda_share_move_pairs(&work, 1, &kept, (int64_t)n_kept, share);
    return OJ_OK;
}

/* --- the family ----------------------------------------------------------- */

static int supports_cut_points_join(const struct oj_relation *relation,
                                    const struct oj_flat *join_side,
                                    const struct oj_flat *input)
{
    return oj_relation_is_nearest(relation) && relation->k <= MOST_NEAREST &&
           relation->ties == OJ_TIES_FIRST &&
           relation->distance == OJ_DISTANCE_HAUSDORFF_POINTS &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->min_distance == 0.0 &&
           !oj_relation_compares_attributes(relation) &&
           !relation->exclude_same_geometry &&
           join_side->max_distance == NULL &&
           (input == NULL || input->max_distance == NULL);
}

const struct oj_cuda_family oj_cuda_cut_points = {
    "cut points of boxes, all vertices of what stays",
    supports_cut_points_join,
    sizeof(struct oj_cuda_shapes_index),
    oj_cuda_shapes_index_build,
    1,
    join_rows,
};
