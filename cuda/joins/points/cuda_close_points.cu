/* Pairs of equal points, or of points within the join's maximum distance, by
 * cells. Threads take the points of a batch in the order of cells, so that
 * those of a warp read neighbouring entries. One pass counts the pairs, the
 * next one writes them. The pairs of each row are then sorted by rank, if
 * needed. */
#include "cuda_point_pair_kernels.cuh"
#include "oj_close_points.h"

#define BLOCK POINT_BLOCK

/* Bytes per point that sorting the points needs. */
#define ORDER_BYTES 17

struct close_index : oj_cuda_index
{
    struct oj_close_side side;
    struct oj_cuda_columns columns; /* columns of the entries, if needed */
    int is_near; /* 1: pairs within a distance; 0: pairs of equal points */
    /* Maximum number of pairs that fit into device memory. */
    int64_t most_pairs;
};

/* --- joins that the family takes ------------------------------------------ */

static int supports_close_points_join(const struct oj_relation *relation,
                                      const struct oj_flat *join_side,
                                      const struct oj_flat *input)
{
    if (!oj_flat_is_points(join_side) || join_side->max_distance != NULL)
        return 0;
    if (oj_relation_is_dwithin(relation))
        return relation->max_distance < INFINITY &&
               (input == NULL || input->max_distance == NULL);
    return oj_relation_pairs_equal_points(relation);
}

/* --- the join side -------------------------------------------------------- */

/* Makes *order [n], the points sorted by the place of their cell
 * (oj_close_points.h). */
static oj_status order_points_by_cell(struct oj_cuda_work *work,
                                      const struct oj_close_side side,
                                      int64_t n, const double *x,
                                      const double *y, int step,
                                      int32_t **order)
{
    int bits = side.column_bits;
    for (uint32_t mask = side.row_mask; mask != 0; mask >>= 1)
        bits++;
    return work->order_by<uint32_t>(
        n, bits,
        [=] __device__(int64_t i)
        { return oj_close_place_of(&side, x[i * step], y[i * step]); },
        order);
}

static oj_status make_entries_in_cell_order(struct close_index *self,
                                            struct oj_cuda_work *work,
                                            const int32_t *order)
{
    const struct oj_cuda_columns *from = &self->layer->columns;
    const struct oj_cuda_segment *segment = self->layer->segment.data;
    const int32_t *feature = self->layer->segment_feature.data;
    int64_t n = self->side.n;
    struct oj_point_place *entry;
    int32_t *rank;
    OJ_TRY(work->make(n, &entry, &rank));
    self->side.entry = entry;
    self->side.rank = rank;
    OJ_TRY(work->each(n,
                      [=] __device__(int64_t i)
                      {
                          entry[i].x = segment[order[i]].ax;
                          entry[i].y = segment[order[i]].ay;
                          rank[i] = feature[order[i]];
                      }));
    OJ_TRY(work->gather(n, from->fid, rank, &self->columns.fid));
    OJ_TRY(work->gather(n, from->on_class, rank, &self->columns.on_class));
    return work->gather(n, from->exclude_class, rank,
                        &self->columns.exclude_class);
}

/* Sets side.start, the first entry of each place. The entries must already be
 * sorted by place. */
static oj_status make_cell_start_offsets(struct close_index *self,
                                         struct oj_cuda_work *work)
{
    const struct oj_close_side side = self->side;
    int64_t n = oj_close_n_places(&side) + 1;
    uint32_t *start;
    OJ_TRY(work->allocate_zeros(n, &start));
    self->side.start = start;
    OJ_TRY(
        work->each(side.n,
                   [=] __device__(int64_t i)
                   {
                       const struct oj_point_place *at = &side.entry[i];
                       uint32_t place = oj_close_place_of(&side, at->x, at->y);
                       if (i + 1 == side.n ||
                           oj_close_place_of(&side, at[1].x, at[1].y) != place)
                           start[(int64_t)place + 1] = (uint32_t)i + 1;
                   }));
    return work->scan_running_maximum(start, n);
}

static oj_status sort_points_and_make_entries(struct close_index *self,
                                              struct oj_cuda_work *keep)
{
    const struct oj_cuda_layer *layer = self->layer;
    struct oj_cuda_work work(keep);
    int32_t *order = NULL;
    OJ_TRY(order_points_by_cell(
        &work, self->side, layer->n_segments, &layer->segment.data->ax,
        &layer->segment.data->ay,
        sizeof(struct oj_cuda_segment) / sizeof(double), &order));
    return make_entries_in_cell_order(self, keep, order);
}

/* Builds the join side. A point feature is a segment with equal ends. */
static oj_status build_close_points(struct oj_cuda_index *index,
                                    struct oj_cuda_work *work)
{
    struct close_index *self = (struct close_index *)index;
    const struct oj_cuda_layer *layer = self->layer;
    size_t free_bytes = 0, total_bytes = 0;
    self->is_near = oj_relation_is_dwithin(&self->relation);
    self->most_pairs = INT64_MAX;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess)
        self->most_pairs = (int64_t)(total_bytes / sizeof(int32_t));
    else
        (void)cudaGetLastError();
    oj_close_set_layout(&self->side, layer->n_segments, layer->x0, layer->y0,
                        layer->x1, layer->y1, !self->is_near,
                        self->relation.min_distance,
                        self->relation.max_distance);
    if (layer->n_segments == 0)
        return OJ_OK;
    OJ_TRY(sort_points_and_make_entries(self, work));
    return make_cell_start_offsets(self, work);
}

/* Returns the bytes that a batch of n points needs. The number of pairs is not
 * known, so 16 per point are assumed. */
static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    const int64_t pair_bytes = (int64_t)(sizeof(double) + sizeof(int32_t));
    (void)wrapped;
    return n * (ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES +
                2 * (int64_t)sizeof(int64_t) + 16 * pair_bytes);
}

/* --- searches ------------------------------------------------------------- */

/* Returns the arguments of the kernels. In batch.rule, columns of the join side
 * are indexed by entry. */
static struct point_batch make_point_batch(const struct close_index *self,
                                           const struct oj_cuda_points *points,
                                           const int32_t *order)
{
    const struct oj_cuda_columns *columns = &self->columns;
    struct point_batch batch = make_point_join_batch(self, points, order);
    batch.rule.fid = columns->fid;
    batch.rule.on_class = columns->on_class;
    batch.rule.exclude_class = columns->exclude_class;
    return batch;
}

/* Calls found(rank, entry) for each match of point i, until goes_on(), called
 * every few entries, returns false. */
template <typename Found, typename GoesOn>
static __device__ __forceinline__ void
visit_matches_of_point(const struct oj_close_side &side,
                       const struct point_batch &batch, int64_t i, Found found,
                       GoesOn goes_on)
{
    struct oj_close_visit visit;
    uint32_t first, n;
    if (!oj_close_visit_start(&visit, &side, batch.x[i], batch.y[i]))
        return;
    while ((n = oj_close_visit_next(&visit, &side, &first)) > 0 && goes_on())
    {
        uint32_t bits = oj_close_match_mask(&side, &visit, first, n);
        for (; bits != 0; bits &= bits - 1u)
        {
            uint32_t entry = first + (uint32_t)(__ffs((int)bits) - 1);
            if (oj_close_may_pair(&side, &visit, &batch.rule, i, entry))
                found(side.rank[entry], entry);
        }
    }
}

static __device__ __forceinline__ double
distance_to_entry(const struct oj_close_side &side, double x, double y,
                  int64_t entry)
{
    return oj_close_distance(&side, x, y, (uint32_t)entry);
}

/* Sets *order to the points sorted by the place of their cell, or to NULL if
 * they are too few for a sort to pay and keep their order. */
static oj_status sort_batch_by_cell_if_large(
    const struct close_index *self, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t **order)
{
    *order = NULL;
    if (points->n < OJ_CUDA_FEW_POINTS || points->n > INT32_MAX ||
        self->side.n == 0)
        return OJ_OK;
    return order_points_by_cell(work, self->side, points->n, points->x,
                                points->y, 1, order);
}

/* Lists the pairs. Those of equal points need no sort, because the entries of a
 * place are in the order of ranks. */
static oj_status list_close_points(const struct oj_cuda_index *index,
                                   struct oj_cuda_listing *l)
{
    const struct close_index *self = (const struct close_index *)index;
    int32_t *order;
    OJ_TRY(sort_batch_by_cell_if_large(self, l, l->points, &order));
    return list_found_pairs<0>(l, self->side,
                               make_point_batch(self, l->points, order),
                               self->most_pairs, self->is_near,
                               self->relation.any_order || !self->is_near);
}

static oj_status add_pairs_to_sums(const struct oj_cuda_index *index,
                                   struct oj_cuda_work *work,
                                   const struct oj_cuda_points *points,
                                   const struct oj_cuda_tally *tally)
{
    const struct close_index *self = (const struct close_index *)index;
    int32_t *order;
    OJ_TRY(sort_batch_by_cell_if_large(self, work, points, &order));
    return add_found_pairs_to_sums<0>(
        work, self->side, make_point_batch(self, points, order), tally);
}

const struct oj_cuda_family oj_cuda_close_points = {
    "pairs of points, by cells",
    supports_close_points_join,
    sizeof(struct close_index),
    build_close_points,
    1,
    NULL,
    batch_bytes,
    NULL,
    list_close_points,
    add_pairs_to_sums,
};
