/** Paper: Lieberman, Sankaranarayanan, Samet 2008, "A Fast Similarity Join
 *  Algorithm Using Graphics Processing Units", sections IV and V (LSS).
 *
 *  Method: the features of the join side in several shifted Z-orders, each
 *  sorted by a bitonic network (section IV). In each of these lists, the
 *  corners of the box around a row delimit a range of entries; the shortest
 *  range of all lists is read (section V).
 *
 *    range of each row -> prefix sums of lengths -> chunks of entries, a thread
 *                                                   each
 *
 *  Differences: see algs/papers/lss.c, the version for one CPU thread. Besides,
 *  a thread processes one entry of a chunk here, and one row in the paper. This
 *  is the backend "cuda_zlists". */
#include "../joins/similar_vectors/cuda_vector_side.cuh"

#include "../../algs/foundations/kernels/oj_z_order_compare.h"
#include "../foundations/device/cuda_copy.h"
#include "../foundations/device/cuda_offset_search.cuh"

#include "../../flatten/base/oj_alloc.h"

enum
{
    BLOCK = 128,
    MOST_LISTS = 8, /* number of lists; the paper has d + 1 of them, for d
                       dimensions */
    MOST_NEAREST = 256
};

/* Number of entries between two checks of the cancel flag. */
static const int64_t chunk = (int64_t)1 << 30;

/* Coordinates of a side, in device memory. */
struct cuda_z_side
{
    /* rows or features first .. end - 1 belong to this share */
    int64_t n, n_dimensions, first, end;
    /* [n][n_dimensions]; the first coordinate is NaN if the feature has no
     * vector. */
    const double *vector;
    struct oj_cuda_columns columns;

    __device__ const double *coordinates_of_row(int64_t row) const
    {
        return vector + row * n_dimensions;
    }
    __device__ int has_coordinates(int64_t row) const
    {
        return row >= first && row < end &&
               coordinates_of_row(row)[0] == coordinates_of_row(row)[0];
    }
};

struct cuda_z_lists
{
    struct cuda_z_side side;
    const double *low; /* [n_dimensions] */
    double scale;
    const uint32_t *place; /* [n][n_dimensions] */
    int n_lists;
    int64_t length;      /* number of entries of a list: features with
                            coordinates */
    const int32_t *list; /* [n_lists][room] */
    int64_t room;        /* a power of two */
};

struct cuda_zlists_index
{
    struct oj_cuda_index base;
    struct cuda_z_lists of;
};

/* The rows and the join side of a join. */
struct cuda_z_pairs
{
    struct cuda_z_lists of;
    struct cuda_z_side rows;
    struct oj_pair_rule rule;
    enum oj_vector_norm norm;
    double most;
    int k;           /* 0: all pairs within the distance */
    double *limit;   /* [rows] upper bound of the k-th distance, or NULL */
    uint32_t *place; /* [rows][n_dimensions] a corner; temporary */
    double *difference;
    int32_t *nearest; /* [rows][k] temporary */
    /* [rows] start of the shortest range: list * room + place */
    int64_t *first;
    int64_t *sums; /* [rows + 1] prefix sums of the lengths of the ranges */
    int64_t begin; /* first entry of a chunk */
    int64_t end;
    struct oj_cuda_found found;
};

static oj_status upload_vectors_or_points(struct oj_cuda_work *work,
                                          const struct oj_flat *flat,
                                          int64_t first, int64_t n,
                                          const struct oj_relation *relation,
                                          struct cuda_z_side *out)
{
    const double *x, *y;
    double *both;
    out->n = out->end = n;
    out->n_dimensions = 2;
    OJ_TRY(
        oj_cuda_upload_columns(work, flat, first, n, relation, &out->columns));
    if (oj_relation_is_similar(relation))
    {
        out->n_dimensions = flat->vectors.n_dimensions;
        return oj_cuda_upload_column(work, oj_vector_at(&flat->vectors, first),
                                     n * out->n_dimensions, &out->vector);
    }
    OJ_TRY(oj_cuda_upload_column(work, flat->x + first, n, &x));
    OJ_TRY(oj_cuda_upload_column(work, flat->y + first, n, &y));
    OJ_TRY(work->make(2 * n, &both));
    out->vector = both;
    return work->each(n,
                      [=] __device__(int64_t i)
                      {
                          both[2 * i] = x[i];
                          both[2 * i + 1] = y[i];
                      });
}

/* --- the lists ------------------------------------------------------------ */

/* Computes the minimum of each coordinate, and one scale for all coordinates,
 * like algs/papers/lss.c. */
static oj_status choose_zorder_scale(struct oj_cuda_work *work,
                                     const struct oj_flat *flat,
                                     const struct oj_relation *relation,
                                     struct cuda_z_lists *z)
{
    int64_t d = z->side.n_dimensions;
    int by_vectors = oj_relation_is_similar(relation);
    double longest = 0.0;
    double *low = (double *)oj_malloc(d, sizeof *low);
    oj_status status;
    if (low == NULL)
        return oj_fail_nomem(work->err, d, sizeof *low);
    for (int64_t j = 0; j < d; j++)
    {
        double high = -(double)INFINITY;
        low[j] = (double)INFINITY;
        for (int64_t i = 0; i < flat->n_features; i++)
        {
            const double *of = by_vectors ? flat->vectors.value + i * d : NULL;
            double x = by_vectors ? of[j] : j == 0 ? flat->x[i] : flat->y[i];
            double one = by_vectors ? of[0] : flat->x[i];
            if (one != one)
                continue;
            low[j] = x < low[j] ? x : low[j];
            high = x > high ? x : high;
        }
        longest = high - low[j] > longest ? high - low[j] : longest;
    }
    z->scale = (double)(OJ_Z_PLACES - 1) / longest;
    if (!(z->scale < (double)INFINITY))
        z->scale = 0.0;
    status = oj_cuda_upload_column(work, low, d, &z->low);
    /* waits, because the copy may still be running */
    (void)cudaStreamSynchronize(work->stream);
    oj_free(low);
    return status;
}

static __device__ int is_before_in_z_order(const struct cuda_z_lists &z, int l,
                                           int32_t a, int32_t b)
{
    int order;
    if (a < 0 || b < 0) /* entries without a feature are sorted last */
        return a >= 0;
    order = oj_z_compare(z.place + a * z.side.n_dimensions,
                         z.place + b * z.side.n_dimensions, z.side.n_dimensions,
                         oj_z_shift(l, z.n_lists));
    return order != 0 ? order < 0 : a < b;
}

static oj_status sort_list(struct oj_cuda_work *work, struct cuda_z_lists z,
                           int l, int32_t *list)
{
    int64_t n = z.side.n;
    OJ_TRY(work->each(
        z.room, [=] __device__(int64_t i)
        { list[i] = i < n && z.side.has_coordinates(i) ? (int32_t)i : -1; }));
    for (int64_t size = 2; size <= z.room; size *= 2)
    {
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
        for (int64_t step = size / 2; step > 0; step /= 2)
            OJ_TRY(work->each(z.room / 2,
                              [=] __device__(int64_t i)
                              {
                                  int64_t at = i / step * 2 * step + i % step;
                                  int32_t a = list[at], b = list[at + step];
                                  if (is_before_in_z_order(z, l, b, a) !=
                                      ((at & size) != 0))
                                  {
                                      list[at] = b;
                                      list[at + step] = a;
                                  }
                              }));
    }
    return OJ_OK;
}

static oj_status make_zorder_lists(struct oj_cuda_work *work,
                                   struct cuda_z_lists *z)
{
    int64_t d = z->side.n_dimensions, *sums;
    uint32_t *place;
    int32_t *list;
    z->n_lists = d + 1 < MOST_LISTS ? (int)d + 1 : (int)MOST_LISTS;
    for (z->room = 1; z->room < z->side.n; z->room *= 2)
        ;
    OJ_TRY(work->make(z->side.n * d, &place));
    OJ_TRY(work->make(z->n_lists * z->room, &list));
    z->place = place;
    z->list = list;
    const struct cuda_z_lists of = *z;
    OJ_TRY(work->each(of.side.n * d,
                      [=] __device__(int64_t i) {
                          place[i] = oj_z_grid_index(of.side.vector[i],
                                                     of.low[i % d], of.scale);
                      }));
    for (int l = 0; l < of.n_lists; l++)
        OJ_TRY(sort_list(work, of, l, list + l * of.room));
    OJ_TRY(work->scan_of_computed_values(
        of.side.n,
        [=] __device__(ptrdiff_t i)
        { return i < of.side.n ? (int64_t)of.side.has_coordinates(i) : 0; },
        &sums, &z->length));
    work->drop(sums);
    return OJ_OK;
}

/* --- ranges of a row ------------------------------------------------------ */

static __device__ void set_zorder_corner_of_row(const struct cuda_z_pairs &p,
                                                int64_t row, double reach)
{
    int64_t n = p.rows.n_dimensions;
    double to = reach < 0.0 ? -(double)INFINITY : (double)INFINITY;
    for (int64_t d = 0; d < n; d++)
        p.place[row * n + d] = oj_z_grid_index(
            nextafter(p.rows.coordinates_of_row(row)[d] + reach, to),
            p.of.low[d], p.of.scale);
}

/* Returns how many features of list l are before the corner or, with is_end,
 * before or at it. */
static __device__ int64_t find_place_in_list(const struct cuda_z_pairs &p,
                                             int64_t row, int l, int is_end)
{
    int64_t n = p.rows.n_dimensions, low = 0, high = p.of.length;
    const int32_t *list = p.of.list + l * p.of.room;
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (oj_z_compare(p.of.place + list[middle] * n, p.place + row * n, n,
                         oj_z_shift(l, p.of.n_lists)) < is_end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static __device__ double difference_of(const struct cuda_z_pairs &p,
                                       int64_t row, int32_t feature)
{
    return oj_vector_difference(p.norm, p.rows.coordinates_of_row(row),
                                p.of.side.coordinates_of_row(feature),
                                p.rows.n_dimensions);
}

/* Inserts a feature into the nearest features of a row, which are n so far,
 * unless it is one of them already. Returns their number afterwards. */
static __device__ int insert_near_feature(const struct cuda_z_pairs &p,
                                          int64_t row, int n, int32_t feature)
{
    double *differences = p.difference + row * p.k, d;
    int32_t *nearest = p.nearest + row * p.k;
    int at = n < p.k ? n : p.k - 1;
    if (!oj_pair_rule_passes(&p.rule, row, feature, 0))
        return n;
    d = difference_of(p, row, feature);
    if (n == p.k && !(d < differences[at]))
        return n;
    for (int i = 0; i < n; i++)
    {
        if (nearest[i] == feature)
            return n;
    }
    for (; at > 0 && differences[at - 1] > d; at--)
    {
        differences[at] = differences[at - 1];
        nearest[at] = nearest[at - 1];
    }
    differences[at] = d;
    nearest[at] = feature;
    return n < p.k ? n + 1 : n;
}

/* Computes an upper bound of the distance of each row's k-th feature, from
 * features near the row's place in each list, k on either side. */
static __global__ void
find_kth_distance_bounds(const __grid_constant__ struct cuda_z_pairs p)
{
    int64_t row = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int n = 0;
    if (row >= p.rows.n)
        return;
    p.limit[row] = p.most;
    if (!p.rows.has_coordinates(row))
        return;
    for (int64_t d = 0; d < p.rows.n_dimensions; d++)
        p.place[row * p.rows.n_dimensions + d] = oj_z_grid_index(
            p.rows.coordinates_of_row(row)[d], p.of.low[d], p.of.scale);
    for (int l = 0; l < p.of.n_lists; l++)
    {
        int64_t at = find_place_in_list(p, row, l, 0);
        int64_t end = at + p.k < p.of.length ? at + p.k : p.of.length;
        for (int64_t i = at > p.k ? at - p.k : 0; i < end; i++)
            n = insert_near_feature(p, row, n, p.of.list[l * p.of.room + i]);
    }
    if (n == p.k && p.difference[(row + 1) * p.k - 1] < p.most)
        p.limit[row] = p.difference[(row + 1) * p.k - 1];
}

/* Sets first and sums of each row: the start of its shortest range of all
 * lists, and the length of that range, for the prefix sum. */
static __global__ void
find_shortest_list_range_of_rows(const __grid_constant__ struct cuda_z_pairs p)
{
    int64_t row = (int64_t)blockIdx.x * BLOCK + threadIdx.x, length = 0;
    int64_t from[MOST_LISTS];
    double reach;
    if (row > p.rows.n)
        return;
    p.sums[row] = 0;
    if (row == p.rows.n || !p.rows.has_coordinates(row))
        return;
    reach =
        oj_vector_max_true_difference(OJ_NORM_L2, p.rows.n_dimensions, 1.0,
                                      p.limit != NULL ? p.limit[row] : p.most);
    set_zorder_corner_of_row(p, row, -reach);
    for (int l = 0; l < p.of.n_lists; l++)
        from[l] = find_place_in_list(p, row, l, 0);
    set_zorder_corner_of_row(p, row, reach);
    for (int l = 0; l < p.of.n_lists; l++)
    {
        int64_t n = find_place_in_list(p, row, l, 1) - from[l];
        if (l > 0 && n >= length)
            continue;
        length = n;
        p.first[row] = l * p.of.room + from[l];
    }
    p.sums[row] = length;
}

/* Measures the entries of a chunk, one per thread, and appends the pairs that
 * match to p.found. */
static __global__ void
measure_entries_of_list_ranges(const __grid_constant__ struct cuda_z_pairs p)
{
    int64_t at = p.begin + (int64_t)blockIdx.x * BLOCK + threadIdx.x, row = 0;
    int32_t feature = 0;
    int counts = at < p.end;
    double difference = 0.0;
    if (counts)
    {
        row = oj_cuda_list_of_entry(p.sums, (int64_t)0, p.rows.n, at);
        feature = p.of.list[p.first[row] + (at - p.sums[row])];
        counts = oj_pair_rule_passes(&p.rule, row, feature, 0);
    }
    if (counts)
    {
        difference = difference_of(p, row, feature);
        counts = difference <= (p.limit != NULL ? p.limit[row] : p.most);
    }
    oj_cuda_append_found_pairs(p.found, counts, (int32_t)row, feature,
                               difference);
}

static oj_status measure_all_list_ranges(struct oj_cuda_work *work,
                                         struct cuda_z_pairs *p, int64_t total)
{
    OJ_TRY(work->clear(p->found.n, 1));
    for (p->begin = 0; p->begin < total; p->begin = p->end)
    {
        p->end = total - p->begin < chunk ? total : p->begin + chunk;
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
        OJ_TRY(work->run<BLOCK>(p->end - p->begin,
                                measure_entries_of_list_ranges, *p));
        OJ_TRY(work->wait());
    }
    return OJ_OK;
}

/* --- rows of a batch ------------------------------------------------------ */

static oj_status find_k_nearest_in_zlists(struct oj_cuda_work *work,
                                          struct cuda_z_pairs *p, int64_t total,
                                          const int32_t *rank,
                                          struct oj_cuda_share *share)
{
    int64_t n = 0, n_rows = p->rows.n;
    struct oj_cuda_found kept = {};
    unsigned long long n_kept = 0;
    uint8_t *done;
    OJ_TRY(work->allocate_zeros(1, &kept.n));
    OJ_TRY(work->make(n_rows * p->k, &kept.row, &kept.feature));
    OJ_TRY(work->make(n_rows * p->k, &kept.measure));
    OJ_TRY(work->allocate_zeros(n_rows, &done));
    OJ_TRY(oj_cuda_found_run_until_fits(
        work, &p->found, 4 * n_rows * p->k, NULL,
        [&]() { return measure_all_list_ranges(work, p, total); }, &n));
    OJ_TRY(oj_cuda_keep_first_k_pairs_of_rows(work, n_rows, rank, p->k, 1,
                                              &p->found, n, &kept, done));
    OJ_TRY(work->read(kept.n, &n_kept));
    oj_cuda_share_move_pairs(work, 1, &kept, (int64_t)n_kept, share);
    return OJ_OK;
}

static oj_status find_pairs(struct oj_cuda_work *work, struct cuda_z_pairs *p,
                            const struct cuda_zlists_index *self,
                            struct oj_cuda_share *share, struct oj_stats *stats)
{
    int64_t n = p->rows.n, total = 0;
    OJ_TRY(work->make(n * p->rows.n_dimensions, &p->place));
    OJ_TRY(work->make(n + 1, &p->first, &p->sums));
    if (p->k > 0)
    {
        OJ_TRY(work->make(n, &p->limit));
        OJ_TRY(work->make(n * p->k, &p->difference));
        OJ_TRY(work->make(n * p->k, &p->nearest));
        OJ_TRY(work->run<BLOCK>(n, find_kth_distance_bounds, *p));
    }
    OJ_TRY(work->run<BLOCK>(n + 1, find_shortest_list_range_of_rows, *p));
    OJ_TRY(work->scan_and_read_total(p->sums, n, &total));
    stats->n_candidates += total;
    if (p->k > 0)
        return find_k_nearest_in_zlists(work, p, total, self->base.rank, share);
    return oj_cuda_share_find_pairs(
        work, oj_relation_is_similar(&self->base.relation), &p->found,
        16 * n + (1 << 16), share,
        [&]() { return measure_all_list_ranges(work, p, total); });
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_share *share,
                           struct oj_stats *stats, struct oj_error *err)
{
    const struct cuda_zlists_index *self =
        (const struct cuda_zlists_index *)index;
    const struct oj_relation *relation = &index->relation;
    int by_vectors = oj_relation_is_similar(relation);
    struct oj_cuda_work work(index->device, index->device->stream,
                             "walking Z-lists", err);
    struct cuda_z_pairs p = {};
    OJ_TRY(upload_vectors_or_points(&work, input, first, n, relation, &p.rows));
    p.rows.first = n * share->number / share->n;
    p.rows.end = n * (share->number + 1) / share->n;
    p.of = self->of;
    p.norm = by_vectors ? relation->vector.norm : OJ_NORM_L2;
    p.most =
        by_vectors ? relation->vector.max_difference : relation->max_distance;
    p.k = !oj_relation_is_dwithin(relation) && relation->k < OJ_EVERY_PAIR
              ? (int)relation->k
              : 0;
    p.rule =
        oj_cuda_make_pair_rule(relation, &p.rows.columns, &p.of.side.columns);
    return find_pairs(&work, &p, self, share, stats);
}

/* --- the family ----------------------------------------------------------- */

static int supports_zorder_join(const struct oj_relation *relation,
                                const struct oj_flat *join_side,
                                const struct oj_flat *input)
{
    if (relation->exclude_same_geometry || relation->ties != OJ_TIES_FIRST ||
        (!oj_relation_is_dwithin(relation) && relation->k < OJ_EVERY_PAIR &&
         relation->k > MOST_NEAREST))
        return 0;
    if (oj_relation_is_similar(relation))
        return relation->n_similar == 0 &&
               relation->vector.norm != OJ_NORM_COSINE;
    return oj_relation_is_by_distance(relation) &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->distance == OJ_DISTANCE_LEAST &&
           relation->min_distance == 0.0 &&
           !oj_relation_compares_attributes(relation) &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side) &&
           (input == NULL ||
            (input->max_distance == NULL && oj_flat_is_points(input)));
}

static oj_status build_zorder_index(struct oj_cuda_index *index,
                                    struct oj_cuda_work *work)
{
    struct cuda_zlists_index *self = (struct cuda_zlists_index *)index;
    const struct oj_flat *flat = index->layer->flat;
    if (oj_relation_is_similar(&index->relation) && flat->vectors.value == NULL)
        return oj_fail(
            work->err, OJ_ERR_ARG,
            "the join side has no vectors: name its columns in vector");
    OJ_TRY(upload_vectors_or_points(work, flat, 0, flat->n_features,
                                    &index->relation, &self->of.side));
    OJ_TRY(choose_zorder_scale(work, flat, &index->relation, &self->of));
    return make_zorder_lists(work, &self->of);
}

const struct oj_cuda_family oj_cuda_zlists = {
    "shifted Z-lists",
    supports_zorder_join,
    sizeof(struct cuda_zlists_index),
    build_zorder_index,
    1,
    join_rows,
};
