/* Finds the nearest feature of each point by cells: one thread per point, in
 * input order. The packed tree answers the points that the cells leave open:
 * those farther from all features than the cells reach (in joins without a
 * maximum distance or with a large one) and, with -ties all, those with several
 * equally near features. */
#include "../../foundations/device/cuda_host_threads.h"
#include "../points/cuda_point_pair_kernels.cuh"
#include "../within/cuda_points_in_rings_query.cuh"
#include "cuda_segment_cells_build.cuh"

/* Reach of the cells, in units of the mean distance between segments, for joins
 * without maximum distance. Measured with points all over a city of 735,488
 * lots with waters and parks between them: 6.4 % of the points are farther from
 * all lots than this. With five times the reach it is 6.0 %, and the cells cost
 * half as much again. */
#define REACH_OF_MEANS 4.0

/* The index of the family. `asked` answers the rows that the cells leave open;
 * it is NULL if no row stays open. */
struct near_index : oj_cuda_index
{
    struct oj_cuda_cells cells;
    /* 1: an open row passes its distance to `asked`, as its own maximum
     * distance (NaN: no match) */
    int knows_distance;
    int at_any_distance, all_ties;
    int has_rings; /* 1: distances are to the interior of polygons */
    struct oj_cuda_ring_cells rings;
};

/* Returns 1 for joins without minimum distance that return one nearest feature
 * per point, or all equally near ones. Of joins between points, only those with
 * a maximum distance and without all ties are taken; other families answer the
 * others. */
static int supports_nearest_join(const struct oj_relation *relation,
                                 const struct oj_flat *join_side,
                                 const struct oj_flat *input)
{
    (void)input;
    return oj_relation_is_nearest(relation) && relation->k == 1 &&
           ((relation->max_distance < INFINITY &&
             relation->ties == OJ_TIES_FIRST) ||
            !oj_flat_is_points(join_side)) &&
           relation->min_distance == 0.0;
}

static double mean_segment_spacing(const struct oj_cuda_layer *layer)
{
    double width = layer->x1 - layer->x0, height = layer->y1 - layer->y0;
    double n = (double)layer->n_segments;
    double mean = sqrt(width / n * height);
    return mean > 0.0 ? mean : (width + height) / n;
}

/* Returns the distance up to which the cells find the nearest segment. */
static double distance_covered_by_cells(const struct oj_relation *relation,
                                        const struct oj_cuda_layer *layer)
{
    if (relation->max_distance < INFINITY || layer->n_segments == 0)
        return relation->max_distance;
    return REACH_OF_MEANS * mean_segment_spacing(layer);
}

/* Builds the index that answers open rows. Without -ties all, only points
 * beyond the reach of the cells are open: they lie outside of all polygons, so
 * oj_cuda_near_segments suffices. With -ties all, points with several equally
 * near features are open, too: oj_cuda_tree_joins. */
static oj_status build_fallback_index(struct near_index *self,
                                      struct oj_cuda_device *device,
                                      struct oj_error *err)
{
    OJ_TRY(oj_cuda_family_build_index(
        self->all_ties ? &oj_cuda_tree_joins : &oj_cuda_near_segments, device,
        self->layer, &self->relation, &self->asked, err));
    self->asked->device = self->device;
    return OJ_OK;
}

/* Parts of the index that are built independently. */
enum
{
    PART_CELLS,
    PART_ASKED,
    PART_RINGS,
    N_PARTS
};

struct near_parts
{
    struct near_index *self;
    int part[N_PARTS], n;
    struct oj_cuda_memory memory[N_PARTS]; /* arrays of each part */
};

static oj_status build_cells_rings_or_fallback(int i,
                                               struct oj_cuda_device *device,
                                               void *user, struct oj_error *err)
{
    struct near_parts *parts = (struct near_parts *)user;
    struct near_index *self = parts->self;
    struct oj_cuda_work work(device, device->stream, "indexing the join layer",
                             err);
    if (parts->part[i] == PART_CELLS)
        OJ_TRY(oj_cuda_cells_build(
            &work, self->layer,
            distance_covered_by_cells(&self->relation, self->layer),
            self->all_ties, &self->cells));
    else if (parts->part[i] == PART_ASKED)
        OJ_TRY(build_fallback_index(self, device, err));
    else
        OJ_TRY(oj_cuda_ring_cells_build(
            &work, self->layer,
            self->all_ties ? OJ_RING_ALL_PARTS : OJ_RING_PARTS, &self->rings));
    oj_cuda_move_ownership(&work.memory, NULL, &parts->memory[i]);
    return OJ_OK;
}

/* Builds the parts in parallel; if memory does not suffice, one after the
 * other. */
static oj_status build_parts_concurrently(struct near_parts *parts,
                                          struct oj_error *err)
{
    struct near_index *self = parts->self;
    oj_status status = OJ_ERR_NOMEM;
    if (parts->n > 1)
        status = oj_cuda_threads_build_parts(
            self->device, parts->n, build_cells_rings_or_fallback, parts, err);
    if (status != OJ_ERR_NOMEM)
        return status;
    for (int i = 0; i < parts->n; i++)
        oj_cuda_memory_free_all(self->device, self->device->stream,
                                &parts->memory[i]);
    oj_cuda_family_free(self->asked);
    self->asked = NULL;
    self->cells = {};
    self->rings = {};
    for (int i = 0; i < parts->n; i++)
        OJ_TRY(build_cells_rings_or_fallback(i, self->device, parts, err));
    return OJ_OK;
}

static oj_status build_cells_rings_and_fallback(struct near_index *self,
                                                struct oj_cuda_work *work)
{
    struct near_parts parts = {self, {PART_CELLS}, 1, {}};
    oj_status status;
    if (self->all_ties || self->at_any_distance)
        parts.part[parts.n++] = PART_ASKED;
    if (self->has_rings)
        parts.part[parts.n++] = PART_RINGS;
    status = build_parts_concurrently(&parts, work->err);
    for (int i = 0; i < parts.n; i++)
        oj_cuda_move_ownership(&parts.memory[i], NULL, &work->memory);
    return status;
}

static oj_status build_nearest(struct oj_cuda_index *index,
                               struct oj_cuda_work *work)
{
    struct near_index *self = (struct near_index *)index;
    const struct oj_relation *relation = &self->relation;
    const struct oj_cuda_layer *layer = self->layer;
    self->all_ties = relation->ties == OJ_TIES_ALL;
    self->at_any_distance = !(relation->max_distance < INFINITY);
    self->has_rings =
        relation->distance_to == OJ_TO_INTERIOR && layer->segment_part.n > 0;
    if (self->all_ties && layer->n_features >= OJ_NEAR_TIED)
        return oj_fail(work->err, OJ_ERR_UNSUPPORTED,
                       "the join layer has more features than the GPU can "
                       "number; -memory SIZE makes tiles, which have fewer");
    OJ_TRY(build_cells_rings_and_fallback(self, work));
    if (self->asked == NULL && self->cells.square.has_outside)
        OJ_TRY(build_fallback_index(self, self->device, work->err));
    /* The cells find the distance of a tie, unless a point may be farther away
     * than they reach. Then `asked` only has to find all features within that
     * distance. */
    self->knows_distance = self->all_ties && !self->at_any_distance &&
                           !self->cells.square.has_outside;
    if (self->knows_distance)
        oj_relation_make_dwithin(&self->asked->relation);
    return OJ_OK;
}

/* Expected share of rows that stay open: one in this many. */
#define OPEN_OF 16

static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    const struct near_index *self = (const struct near_index *)index;
    int64_t bytes = 0, n_open = n / OPEN_OF;
    if (self->has_rings)
        bytes += (n < SLICE ? n : SLICE) * (int64_t)sizeof(struct doubt) + 4096;
    if (self->asked != NULL && !self->all_ties)
        bytes +=
            n_open * 24 + self->asked->family->batch_bytes(self->asked, n_open);
    return bytes;
}

/* --- polygons that contain a point ---------------------------------------- */

/* Receives the results of locate_chunk_of_points(): keeps the first feature
 * that contains each point, or OJ_RING_NONE. With ties (trees of
 * OJ_RING_ALL_PARTS), marks it by OJ_NEAR_TIED if another feature contains the
 * point, too. */
template <int ties> struct around_answer
{
    int32_t *of_chunk;
    int64_t first;

    __device__ __forceinline__ void
    accept_decided_point(const struct points_in_rings_query &, int64_t i,
                         int32_t found)
    {
        if (i >= 0)
            of_chunk[i - first] = found;
    }

    /* Records a feature that contains the point. Returns 1 if no other feature
     * needs to be found. */
    static __device__ __forceinline__ int
    record_containing_feature(int32_t feature, int32_t *found)
    {
        if (*found < 0)
            *found = feature;
        else if (feature != *found)
            *found |= OJ_NEAR_TIED;
        return !ties || (*found & OJ_NEAR_TIED) != 0;
    }

    /* Tests, in tie order, the parts that have records in the leaf of point i.
     */
    __device__ __forceinline__ void
    test_leaf_records(const struct points_in_rings_query &q, int64_t i,
                      struct oj_ring_place *place)
    {
        const struct oj_ring_tree *t = &q.tree;
        int32_t found = OJ_RING_NONE;
        uint32_t unit, end;
        while (place->at < place->end)
        {
            int location =
                oj_ring_tree_locate_by_short_edges(t, place, &unit, &end);
            if (location == OJ_RING_UNSURE)
            {
                append_doubtful_point(q, i, place->at);
                return;
            }
            if (location != OJ_OUTSIDE &&
                record_containing_feature(t->part_feature[unit], &found))
                break;
        }
        if (i >= 0)
            of_chunk[i - first] = found;
    }
};

/* Decides the unsure points. They are few, so each gets the first polygon found
 * and, for simplicity, is marked as if other polygons contained it, too. */
template <int ties> struct around_settler
{
    int32_t *rank;

    __device__ __forceinline__ void
    resolve_doubtful_points(const struct points_in_rings_query &q, int64_t i,
                            double x, double y,
                            struct oj_ring_place *place) const
    {
        int32_t found = oj_ring_tree_first_containing(&q.tree, x, y);
        (void)place;
        rank[i] = ties && found >= 0 ? found | OJ_NEAR_TIED : found;
    }
};

template <int ties>
static __global__ void __launch_bounds__(BLOCK, RESIDENT)
    find_containing_polygons(
        const __grid_constant__ struct points_in_rings_query q, int32_t *rank)
{
    int64_t chunk = warp_in_grid(), first = chunk * CHUNK;
    struct around_answer<ties> answer =
    {
        shared_ranks_of_chunk(), first
    };
    locate_chunk_of_points(q, chunk, answer);
    for (int64_t k = lane_in_warp(); k < CHUNK && first + k < q.n; k += LANES)
        rank[first + k] = answer.of_chunk[k];
}

template <int ties>
static oj_status
find_containing_polygons_slice(struct oj_cuda_work *work,
                               const struct points_in_rings_query &q,
                               int32_t *rank)
{
    OJ_TRY(
        work->launch_blocks<BLOCK>(blocks_needed_for_chunks(count_chunks(q.n)),
                                   find_containing_polygons<ties>, q, rank));
    return resolve_doubtful_points(work, q, around_settler<ties>{rank});
}

/* Finds rank [n]: the first feature in tie order that contains each point, or
 * OJ_RING_NONE. In a join with all ties, OJ_NEAR_TIED is set in a rank if other
 * features may contain the point, too. */
static oj_status find_polygons_containing_points(
    const struct near_index *self, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *rank)
{
    return run_for_slices_with_doubts(
        work,
        make_points_in_rings_query(
            self->rings.tree, 1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY, points),
        [&](const struct points_in_rings_query &q, int64_t first)
        {
            return self->all_ties
                       ? find_containing_polygons_slice<1>(work, q,
                                                           rank + first)
                       : find_containing_polygons_slice<0>(work, q,
                                                           rank + first);
        });
}

/* --- answers by cells ----------------------------------------------------- */

/* The points and answers of a batch. Kernels read and write them past the
 * cache, so that the cells stay in it. */
struct near_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *ordinal_of; /* NULL: rank == ordinal */
    int32_t *row;
    double *measure; /* may be NULL */
    /* 1: open rows are marked as open, and their distance is kept; 0: they get
     * no match */
    int keeps_open;
    /* 1: points for which the cells find no match are open, too */
    int none_is_open;
};

static __device__ void write_nearest_answer(const struct near_batch &batch,
                                            int64_t i, int32_t rank,
                                            double distance)
{
    if (rank >= 0 && batch.ordinal_of != NULL)
        rank = __ldg(batch.ordinal_of + rank);
    if (rank == OJ_NEAR_NONE && batch.none_is_open)
        rank = OJ_NEAR_OPEN;
    if (rank == OJ_NEAR_OPEN && !batch.keeps_open)
        rank = OJ_NEAR_NONE;
    __stcs(batch.row + i, rank);
    if (batch.measure != NULL)
        __stcs(batch.measure + i, rank != OJ_NEAR_NONE ? distance : NAN);
}

/* Finds the nearest feature of each point. If to_interior is 1, row holds on
 * entry the smallest rank of the polygons that contain each point. */
template <int ties, int to_interior>
static __global__ void __launch_bounds__(BLOCK)
    find_nearest(struct oj_near_view view, struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double distance;
    int32_t rank;
    if (i >= batch.n)
        return;
    rank = oj_near_nearest_of_point(
        &view, __ldcs(batch.x + i), __ldcs(batch.y + i),
        to_interior ? __ldcs(batch.row + i) : OJ_NEAR_NONE, ties, &distance);
    write_nearest_answer(batch, i, rank, distance);
}

template <int ties>
static oj_status find_nearest_in_cells(const struct near_index *self,
                                       struct oj_cuda_work *work,
                                       const struct oj_cuda_points *points,
                                       const struct near_batch &batch)
{
    struct oj_near_view view = oj_cuda_cells_view(&self->cells, self->layer);
    if (!self->has_rings)
        return work->run<BLOCK>(points->n, find_nearest<ties, 0>, view, batch);
    OJ_TRY(find_polygons_containing_points(self, work, points, batch.row));
    return work->run<BLOCK>(points->n, find_nearest<ties, 1>, view, batch);
}

/* Answers the points by cells: writes the join ordinal or -1 of each to d_row,
 * and its distance or NaN to d_measure. Rows that the cells leave open are
 * marked if the index has `asked`. */
static oj_status find_nearest_by_cells(const struct oj_cuda_index *index,
                                       struct oj_cuda_work *work,
                                       const struct oj_cuda_points *points,
                                       int32_t *d_row, double *d_measure)
{
    const struct near_index *self = (const struct near_index *)index;
    struct near_batch batch;
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.ordinal_of = self->layer->ordinal_of.data;
    batch.row = d_row;
    batch.measure = d_measure;
    batch.keeps_open = self->asked != NULL;
    batch.none_is_open = self->at_any_distance;
    if (points->n == 0)
        return OJ_OK;
    if (self->layer->n_segments > 0)
        return self->all_ties
                   ? find_nearest_in_cells<1>(self, work, points, batch)
                   : find_nearest_in_cells<0>(self, work, points, batch);
    batch.none_is_open = 0;
    return work->each(batch.n, [=] __device__(int64_t i)
                      { write_nearest_answer(batch, i, OJ_NEAR_NONE, NAN); });
}

/* --- rows that the cells leave open --------------------------------------- */

/* The open rows and their points, in contiguous arrays. */
struct open_rows
{
    int64_t n;
    unsigned long long *count; /* [1] */
    int32_t *at;               /* [n] row of each point */
    double *x, *y;             /* [n] */
};

static __global__ void count_unresolved_rows(int64_t n, const int32_t *row,
                                             unsigned long long *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int n_block = __syncthreads_count(i < n && row[i] == OJ_NEAR_OPEN);
    if (threadIdx.x == 0 && n_block > 0)
        atomicAdd(count, (unsigned long long)n_block);
}

/* Lists the open rows, in any order, since each answer goes to its own row. */
static __global__ void
list_unresolved_rows(const __grid_constant__ struct oj_cuda_points points,
                     const int32_t *row,
                     const __grid_constant__ struct open_rows open)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int is_open = i < points.n && row[i] == OJ_NEAR_OPEN;
    uint32_t votes = __ballot_sync(ALL_LANES, is_open);
    uint32_t lane = lane_in_warp();
    unsigned long long first = 0;
    if (lane == 0 && votes != 0)
        first = atomicAdd(open.count, (unsigned long long)__popc(votes));
    first = __shfl_sync(ALL_LANES, first, 0);
    if (!is_open)
        return;
    first += (unsigned)__popc(votes & ((1u << lane) - 1u));
    open.at[first] = (int32_t)i;
    open.x[first] = points.x[i];
    open.y[first] = points.y[i];
}

static oj_status gather_unresolved_points(struct oj_cuda_work *work,
                                          const struct oj_cuda_points *points,
                                          const int32_t *row,
                                          struct open_rows *open)
{
    unsigned long long n = 0;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(work->allocate_zeros(1, &open->count));
    OJ_TRY(work->run<BLOCK>(points->n, count_unresolved_rows, points->n, row,
                            open->count));
    OJ_TRY(work->read(open->count, &n));
    open->n = (int64_t)n;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(work->make(open->n, &open->at));
    OJ_TRY(work->make(open->n, &open->x, &open->y));
    OJ_TRY(work->clear(open->count, 1));
    return work->run<BLOCK>(points->n, list_unresolved_rows, *points, row,
                            *open);
}

/* Answers the open rows in row and measure (may be NULL). Waits for the stream
 * to read how many there are. */
static oj_status answer_unresolved_points(const struct near_index *self,
                                          struct oj_cuda_work *work,
                                          const struct oj_cuda_points *points,
                                          int32_t *row, double *measure)
{
    struct open_rows open = {};
    struct oj_cuda_points open_points = {};
    int32_t *open_row = NULL;
    double *open_measure = NULL;
    OJ_TRY(gather_unresolved_points(work, points, row, &open));
    if (open.n == 0)
        return OJ_OK;
    open_points.n = open.n;
    open_points.x = open.x;
    open_points.y = open.y;
    OJ_TRY(work->make(open.n, &open_row));
    if (measure != NULL)
        OJ_TRY(work->make(open.n, &open_measure));
    OJ_TRY(self->asked->family->join_one(self->asked, work, &open_points,
                                         open_row, open_measure));
    return work->each(open.n,
                      [=] __device__(int64_t i)
                      {
                          row[open.at[i]] = open_row[i];
                          if (measure != NULL)
                              measure[open.at[i]] = open_measure[i];
                      });
}

static oj_status find_nearest_in_cells_or_fallback(
    const struct oj_cuda_index *index, struct oj_cuda_work *work,
    const struct oj_cuda_points *points, int32_t *d_row, double *d_measure)
{
    const struct near_index *self = (const struct near_index *)index;
    OJ_TRY(find_nearest_by_cells(index, work, points, d_row, d_measure));
    return self->asked != NULL && !self->all_ties
               ? answer_unresolved_points(self, work, points, d_row, d_measure)
               : OJ_OK;
}

const struct oj_cuda_family oj_cuda_nearest = {
    "nearest segments of points, by cells",
    supports_nearest_join,
    sizeof(struct near_index),
    build_nearest,
    0,
    NULL,
    batch_bytes,
    find_nearest_in_cells_or_fallback,
    NULL,
    NULL,
    find_nearest_by_cells,
};
