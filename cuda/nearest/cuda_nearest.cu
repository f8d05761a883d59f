/* The nearest feature of each point, by cells: a thread for each point, in the
 * order of the input.  What the cells leave open is asked again by the packed
 * tree: points farther from everything than the cells reach, in a join at any
 * distance or at a great one, and with -ties all points to which several
 * features are as near.
 */
#include "../device/cuda_threads.h"
#include "../index/cuda_family.h"
#include "../rings/cuda_ring_cells.h"
#include "cuda_around.h"
#include "cuda_ask_again.h"
#include "cuda_cells.h"

#define BLOCK 256

/* A join at any distance: cells reach so many mean distances of segments. Of
 * points all over 735,488 lots, waters and parks between them, 6.4 in 100 are
 * farther from all lots than that, and 6.0 than five times as much, which costs
 * cells half as much again. */
#define REACH_OF_MEANS 4.0

struct near_index : oj_cuda_index
{
    struct oj_cuda_cells cells;
    struct oj_cuda_asked asked; /* about what is open; no family: nothing is */
    int at_any_distance, all_ties;
    int has_rings; /* distances to the interior of polygons */
    struct oj_cuda_ring_cells rings;
};

/* One feature chosen among all, or all that are as near; points at any distance
 * from points, and their ties, are others' work. */
static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return relation->op == OJ_OP_NEAREST && relation->k == 1 &&
           relation->metric == OJ_METRIC_PLANAR &&
           ((relation->max_distance < INFINITY &&
             relation->ties == OJ_TIES_FIRST) ||
            !oj_flat_is_points(join_side)) &&
           relation->min_distance == 0.0 && !relation->exclude_self &&
           relation->unordered_pairs == 0 && !relation->exclude_same_geometry &&
           join_side->on_class == NULL && join_side->exclude_class == NULL &&
           join_side->max_distance == NULL &&
           (input == NULL ||
            (oj_flat_is_points(input) && input->max_distance == NULL));
}

static void drop(struct oj_cuda_index *index)
{
    struct near_index *self = (struct near_index *)index;
    oj_cuda_cells_drop(self->device, &self->cells);
    oj_cuda_ring_cells_drop(self->device, &self->rings);
    oj_cuda_family_free(self->asked.family, self->asked.index);
}

static double mean_distance(const struct oj_cuda_layer *layer)
{
    double width = layer->x1 - layer->x0, height = layer->y1 - layer->y0;
    double n = (double)layer->n_segments;
    double mean = sqrt(width / n * height);
    return mean > 0.0 ? mean : (width + height) / n;
}

/* How far the cells reach. */
static double reach_of(const struct oj_relation *relation,
                       const struct oj_cuda_layer *layer)
{
    if (relation->max_distance < INFINITY || layer->n_segments == 0)
        return relation->max_distance;
    return REACH_OF_MEANS * mean_distance(layer);
}

/* Of one answer each, what is open is in no polygon and far away. */
static oj_status make_asked(struct near_index *self,
                            struct oj_cuda_device *device, struct oj_error *err)
{
    self->asked.device = self->device;
    self->asked.family =
        self->all_ties ? &oj_cuda_tree_joins : &oj_cuda_near_segments;
    OJ_TRY(oj_cuda_family_index(self->asked.family, device, self->layer,
                                &self->relation, &self->asked.index, err));
    self->asked.index->device = self->device;
    return OJ_OK;
}

/* The parts of the index know nothing of each other. */
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
};

static oj_status build_part(int i, struct oj_cuda_device *device, void *user,
                            struct oj_error *err)
{
    const struct near_parts *parts = (const struct near_parts *)user;
    struct near_index *self = parts->self;
    if (parts->part[i] == PART_CELLS)
        return oj_cuda_cells_build(device, self->layer,
                                   reach_of(&self->relation, self->layer),
                                   self->all_ties, &self->cells, err);
    if (parts->part[i] == PART_ASKED)
        return make_asked(self, device, err);
    return oj_cuda_ring_cells_build(
        device, self->layer, self->all_ties ? OJ_RING_ALL_PARTS : OJ_RING_PARTS,
        &self->rings, err);
}

/* Side by side, and where there is not memory enough for that, one after the
 * other. */
static oj_status build_parts(struct near_index *self, struct oj_error *err)
{
    struct near_parts parts = {self, {PART_CELLS}, 1};
    oj_status status = OJ_ERR_NOMEM;
    if (self->all_ties || self->at_any_distance)
        parts.part[parts.n++] = PART_ASKED;
    if (self->has_rings)
        parts.part[parts.n++] = PART_RINGS;
    if (parts.n > 1)
        status =
            oj_cuda_build_parts(self->device, parts.n, build_part, &parts, err);
    if (status != OJ_ERR_NOMEM)
        return status;
    drop(self);
    self->asked.index = NULL;
    for (int i = 0; i < parts.n; i++)
        OJ_TRY(build_part(i, self->device, &parts, err));
    return OJ_OK;
}

static oj_status build(struct oj_cuda_index *index, struct oj_error *err)
{
    struct near_index *self = (struct near_index *)index;
    const struct oj_relation *relation = &self->relation;
    const struct oj_cuda_layer *layer = self->layer;
    self->all_ties = relation->ties == OJ_TIES_ALL;
    self->at_any_distance = !(relation->max_distance < INFINITY);
    self->has_rings =
        relation->distance_to == OJ_TO_INTERIOR && layer->segment_part.n > 0;
    if (self->all_ties && layer->n_features >= OJ_NEAR_TIED)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the join layer has more features than cells can tell "
                       "apart");
    OJ_TRY(build_parts(self, err));
    if (self->asked.index == NULL && self->cells.square.has_outside)
        OJ_TRY(make_asked(self, self->device, err));
    /* How far the features of a tie are is known, unless a point may be too far
     * for the cells: all within that distance are asked for, then. */
    self->asked.knows_distance = self->all_ties && !self->at_any_distance &&
                                 !self->cells.square.has_outside;
    if (self->asked.knows_distance)
        self->asked.index->relation.op = OJ_OP_DWITHIN;
    return OJ_OK;
}

static int64_t index_bytes(const struct oj_cuda_index *index)
{
    const struct near_index *self = (const struct near_index *)index;
    int64_t bytes = oj_cuda_cells_bytes(&self->cells) +
                    oj_cuda_ring_cells_bytes(&self->rings);
    if (self->asked.index != NULL)
        bytes += self->asked.family->index_bytes(self->asked.index);
    return bytes;
}

static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    const struct near_index *self = (const struct near_index *)index;
    int64_t bytes = self->has_rings ? oj_cuda_around_bytes(n) : 0;
    if (self->asked.index != NULL)
        bytes += oj_cuda_ask_again_bytes(&self->asked, n, self->all_ties);
    if (self->all_ties)
        bytes += oj_cuda_list_ties_bytes(n) +
                 n * (int64_t)(sizeof(int32_t) + sizeof(double));
    return bytes;
}

/* Points and answers pass through the cache once; the cells should stay. */
struct near_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *ordinal_of; /* NULL: ranks are ordinals */
    int32_t *row;
    double *measure; /* may be NULL */
    int keeps_open;  /* 1: open rows say so, and how far their ties are */
    int none_is_open;
};

static __device__ void answer(const struct near_batch &batch, int64_t i,
                              int32_t rank, double distance)
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

template <int ties>
static __global__ void __launch_bounds__(BLOCK)
    nearest_boundary(struct oj_near_view view, struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double distance;
    int32_t rank;
    if (i >= batch.n)
        return;
    rank = oj_near_one(&view, __ldcs(batch.x + i), __ldcs(batch.y + i),
                       OJ_NEAR_NONE, ties, &distance);
    answer(batch, i, rank, distance);
}

/* row: the least rank of the polygons around each point. */
template <int ties>
static __global__ void __launch_bounds__(BLOCK)
    nearest_interior(struct oj_near_view view, struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double distance;
    int32_t rank;
    if (i >= batch.n)
        return;
    rank = oj_near_one(&view, __ldcs(batch.x + i), __ldcs(batch.y + i),
                       __ldcs(batch.row + i), ties, &distance);
    answer(batch, i, rank, distance);
}

static __global__ void answer_none(struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < batch.n)
        answer(batch, i, OJ_NEAR_NONE, NAN);
}

template <int ties>
static oj_status ask_cells(const struct near_index *self, cudaStream_t stream,
                           const struct oj_cuda_points *points,
                           const struct near_batch &batch, struct oj_error *err)
{
    struct oj_near_view view = oj_cuda_cells_view(&self->cells, self->layer);
    unsigned n_blocks = oj_blocks(points->n, BLOCK);
    if (!self->has_rings)
        nearest_boundary<ties><<<n_blocks, BLOCK, 0, stream>>>(view, batch);
    else
    {
        OJ_TRY(oj_cuda_find_around(self->device, &self->rings, stream, points,
                                   batch.row, err));
        nearest_interior<ties><<<n_blocks, BLOCK, 0, stream>>>(view, batch);
    }
    OJ_CUDA_TRY_LAUNCH("joining", err);
    return OJ_OK;
}

/* What the cells know of each point. */
static oj_status find_rows(const struct near_index *self, cudaStream_t stream,
                           const struct oj_cuda_points *points, int32_t *d_row,
                           double *d_measure, struct oj_error *err)
{
    struct near_batch batch;
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.ordinal_of = self->layer->ordinal_of.data;
    batch.row = d_row;
    batch.measure = d_measure;
    batch.keeps_open = self->asked.index != NULL;
    batch.none_is_open = self->at_any_distance;
    if (self->layer->n_segments > 0)
        return self->all_ties ? ask_cells<1>(self, stream, points, batch, err)
                              : ask_cells<0>(self, stream, points, batch, err);
    batch.none_is_open = 0;
    answer_none<<<oj_blocks(points->n, BLOCK), BLOCK, 0, stream>>>(batch);
    OJ_CUDA_TRY_LAUNCH("joining", err);
    return OJ_OK;
}

static oj_status join_one(struct oj_cuda_index *index, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    const struct near_index *self = (const struct near_index *)index;
    if (self->all_ties)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "this join gives lists, not one answer for each point");
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(find_rows(self, stream, points, d_row, d_measure, err));
    if (self->asked.index != NULL)
        return oj_cuda_ask_again_one(&self->asked, stream, points, d_row,
                                     d_measure, err);
    return OJ_OK;
}

static oj_status list_rows(const struct near_index *self, cudaStream_t stream,
                           const struct oj_cuda_points *points, int32_t *row,
                           double *measure, int64_t max_pairs,
                           struct oj_cuda_pairs *out, struct oj_error *err)
{
    int fits = 0;
    if (points->n > 0)
        OJ_TRY(find_rows(self, stream, points, row, measure, err));
    if (self->asked.knows_distance)
        OJ_TRY(oj_cuda_list_ties(self->device, stream,
                                 oj_cuda_tree_joins_side(self->asked.index),
                                 self->layer->ordinal_of.data, points, row,
                                 measure, max_pairs, &fits, out, err));
    if (fits)
        return OJ_OK;
    return oj_cuda_ask_again_lists(&self->asked, stream, points, row, measure,
                                   max_pairs, out, err);
}

static oj_status join_lists(struct oj_cuda_index *index, cudaStream_t stream,
                            const struct oj_cuda_points *points,
                            int64_t max_pairs, struct oj_cuda_pairs *out,
                            struct oj_error *err)
{
    const struct near_index *self = (const struct near_index *)index;
    oj_cuda_array<int32_t> row = {NULL, 0};
    oj_cuda_array<double> measure = {NULL, 0};
    oj_status status = oj_cuda_make(self->device, stream, points->n, &row, err);
    if (status == OJ_OK)
        status = oj_cuda_make(self->device, stream, points->n, &measure, err);
    if (status == OJ_OK)
        status = list_rows(self, stream, points, row.data, measure.data,
                           max_pairs, out, err);
    oj_cuda_drop(self->device, stream, &row, &measure);
    return status;
}

const struct oj_cuda_family oj_cuda_nearest = {
    "nearest segments of points, by cells",
    takes,
    sizeof(struct near_index),
    build,
    drop,
    index_bytes,
    batch_bytes,
    join_one,
    join_lists,
    NULL,
    0,
};
