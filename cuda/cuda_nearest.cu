/* The nearest feature of each point, by cells: a thread for each point, in the
 * order of the input. */
#include "cuda_around.h"
#include "cuda_cells.h"
#include "cuda_family.h"
#include "cuda_far.h"
#include "cuda_ring_cells.h"

#include "../flatten/oj_array.h"

#include <string.h>

#define BLOCK 256

/* What struct oj_cuda_index is for this family. */
struct near_index
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_cells cells;
    struct oj_cuda_far far; /* where points outside of the cells may match */
    int has_rings;          /* distances to the interior of polygons */
    struct oj_cuda_ring_cells rings;
};

static struct near_index *unwrap(struct oj_cuda_index *index)
{
    return (struct near_index *)index;
}

/* A join that gives one feature, chosen among all. */
static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return relation->op == OJ_OP_NEAREST && relation->k == 1 &&
           relation->ties == OJ_TIES_FIRST &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->max_distance < INFINITY && relation->min_distance == 0.0 &&
           !relation->exclude_self && relation->unordered_pairs == 0 &&
           !relation->exclude_same_geometry && join_side->on_class == NULL &&
           join_side->exclude_class == NULL &&
           join_side->max_distance == NULL &&
           (input == NULL ||
            (oj_flat_is_points(input) && input->max_distance == NULL));
}

static void free_index(struct oj_cuda_index *wrapped)
{
    struct near_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    oj_cuda_cells_drop(self->device, &self->cells);
    oj_cuda_far_drop(self->device, &self->far);
    oj_cuda_ring_cells_drop(self->device, &self->rings);
    oj_free(self);
}

static oj_status make_index(struct oj_cuda_device *device,
                            const struct oj_cuda_layer *layer,
                            const struct oj_relation *relation,
                            struct oj_cuda_index **out, struct oj_error *err)
{
    struct near_index *self = (struct near_index *)oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->device = device;
    self->layer = layer;
    self->has_rings =
        relation->distance_to == OJ_TO_INTERIOR && layer->segment_part.n > 0;
    status = oj_cuda_cells_build(device, layer, relation->max_distance,
                                 &self->cells, err);
    if (status == OJ_OK && self->cells.square.has_outside)
        status = oj_cuda_far_build(device, layer, relation->max_distance,
                                   &self->far, err);
    if (status == OJ_OK && self->has_rings)
        status = oj_cuda_ring_cells_build(device, layer, OJ_RING_PARTS,
                                          &self->rings, err);
    if (status != OJ_OK)
    {
        free_index((struct oj_cuda_index *)self);
        return status;
    }
    *out = (struct oj_cuda_index *)self;
    return OJ_OK;
}

static int64_t index_bytes(const struct oj_cuda_index *wrapped)
{
    const struct near_index *self = (const struct near_index *)wrapped;
    return oj_cuda_cells_bytes(&self->cells) + oj_cuda_far_bytes(&self->far) +
           oj_cuda_ring_cells_bytes(&self->rings);
}

static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    const struct near_index *self = (const struct near_index *)index;
    return self->has_rings ? oj_cuda_around_bytes(n) : 0;
}

/* Points and answers pass through the cache once; the cells should stay. */
struct near_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *ordinal_of; /* NULL: ranks are ordinals */
    int32_t *row;
    double *measure;  /* may be NULL */
    int mark_outside; /* 1: rows of points outside of the cells say so */
};

static __device__ void answer(const struct near_batch &batch, int64_t i,
                              int32_t rank, double distance)
{
    if (rank >= 0 && batch.ordinal_of != NULL)
        rank = __ldg(batch.ordinal_of + rank);
    if (rank < 0 && !(batch.mark_outside && rank == OJ_NEAR_OUTSIDE))
        rank = OJ_NEAR_NONE;
    __stcs(batch.row + i, rank);
    if (batch.measure != NULL)
        __stcs(batch.measure + i, rank >= 0 ? distance : NAN);
}

static __global__ void __launch_bounds__(BLOCK)
    nearest_boundary(struct oj_near_view view, struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double distance;
    int32_t rank;
    if (i >= batch.n)
        return;
    rank = oj_near_one(&view, __ldcs(batch.x + i), __ldcs(batch.y + i),
                       OJ_NEAR_NONE, &distance);
    answer(batch, i, rank, distance);
}

/* row: the least rank of the polygons around each point. */
static __global__ void __launch_bounds__(BLOCK)
    nearest_interior(struct oj_near_view view, struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double distance;
    int32_t rank;
    if (i >= batch.n)
        return;
    rank = oj_near_one(&view, __ldcs(batch.x + i), __ldcs(batch.y + i),
                       __ldcs(batch.row + i), &distance);
    answer(batch, i, rank, distance);
}

static __global__ void answer_none(struct near_batch batch)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < batch.n)
        answer(batch, i, OJ_NEAR_NONE, NAN);
}

static oj_status join_one(struct oj_cuda_index *wrapped, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    const struct near_index *self = unwrap(wrapped);
    struct oj_near_view view = oj_cuda_cells_view(&self->cells, self->layer);
    struct near_batch batch;
    unsigned n_blocks = (unsigned)((points->n + BLOCK - 1) / BLOCK);
    if (points->n == 0)
        return OJ_OK;
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.ordinal_of = self->layer->ordinal_of.data;
    batch.row = d_row;
    batch.measure = d_measure;
    batch.mark_outside = self->far.n_runs > 0;
    if (self->layer->n_segments == 0)
        answer_none<<<n_blocks, BLOCK, 0, stream>>>(batch);
    else if (!self->has_rings)
        nearest_boundary<<<n_blocks, BLOCK, 0, stream>>>(view, batch);
    else
    {
        OJ_TRY(oj_cuda_find_around(self->device, &self->rings, stream, points,
                                   d_row, err));
        nearest_interior<<<n_blocks, BLOCK, 0, stream>>>(view, batch);
    }
    OJ_CUDA_TRY_LAUNCH("joining", err);
    if (batch.mark_outside)
        return oj_cuda_far_join(&self->far, self->layer, stream, points->n,
                                points->x, points->y, OJ_NEAR_OUTSIDE, d_row,
                                d_measure, err);
    return OJ_OK;
}

const struct oj_cuda_family oj_cuda_nearest = {
    "nearest segments of points, by cells",
    takes,
    make_index,
    free_index,
    index_bytes,
    batch_bytes,
    join_one,
    NULL,
    NULL,
    0,
};
