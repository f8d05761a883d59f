/* The nearest segment of points that are far from all of them.  The threads of
 * a warp have points that lie close together, and go through the packed tree of
 * the join side's segments as one: a box is looked into when one of them wants
 * it.  Far away they all want the same few. */
#include "cuda_family.h"
#include "cuda_point_order.h"
#include "cuda_tree.h"

#include "../algs/kernels/oj_near_other.h"
#include "../flatten/oj_array.h"

#include <string.h>

enum
{
    BLOCK = 128,
    LANES = 32
};

#define FULL_WARP 0xFFFFFFFFu

/* What struct oj_cuda_index is for this family. */
struct near_segments_index
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    double most;
    struct oj_cuda_tree_side side;
};

static struct near_segments_index *unwrap(struct oj_cuda_index *index)
{
    return (struct near_segments_index *)index;
}

/* Nobody asks it but cuda_nearest.cu, about joins that that takes. */
static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    (void)relation;
    (void)join_side;
    (void)input;
    return 0;
}

static void free_index(struct oj_cuda_index *wrapped)
{
    struct near_segments_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    oj_cuda_tree_side_drop(self->device, &self->side);
    oj_free(self);
}

static oj_status make_index(struct oj_cuda_device *device,
                            const struct oj_cuda_layer *layer,
                            const struct oj_relation *relation,
                            struct oj_cuda_index **out, struct oj_error *err)
{
    struct near_segments_index *self =
        (struct near_segments_index *)oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->device = device;
    self->layer = layer;
    self->most = relation->max_distance;
    status = oj_cuda_tree_side_build(device, layer, 0, &self->side, err);
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
    const struct near_segments_index *self =
        (const struct near_segments_index *)wrapped;
    return oj_cuda_tree_side_bytes(&self->side);
}

static int64_t batch_bytes(const struct oj_cuda_index *wrapped, int64_t n)
{
    (void)wrapped;
    return n * OJ_CUDA_POINT_ORDER_BYTES;
}

/* --- going through the tree ----------------------------------------------- */

struct segments_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *order; /* [n] point of each thread, or NULL: its own */
    double most;
    const int32_t *ordinal_of; /* NULL: ranks are ordinals */
    int32_t *row;
    double *measure; /* or NULL */
};

/* The boxes of a node's children as all threads of a warp read them. */
struct boxes
{
    float x0[OJ_TREE_FANOUT], y0[OJ_TREE_FANOUT];
    float x1[OJ_TREE_FANOUT], y1[OJ_TREE_FANOUT];
};

struct group
{
    struct boxes boxes;
    uint32_t stack[OJ_TREE_STACK]; /* as in struct oj_tree_walk */
};

static_assert(sizeof(struct oj_tree_node) == LANES * sizeof(float) &&
                  sizeof(struct boxes) == sizeof(struct oj_tree_node),
              "a thread for each number of a node");

static __device__ __forceinline__ void
offer(struct oj_near_other *o, const struct oj_tree_side &side, int64_t entry)
{
    double distance = oj_tree_entry_distance(&side, entry, o->px, o->py);
    int32_t rank = side.rank[entry];
    if (distance > o->most || !(distance < INFINITY) ||
        distance > o->distance || (distance == o->distance && rank >= o->rank))
        return;
    o->distance = distance;
    o->rank = rank;
    oj_near_other_bound(o, distance);
}

/* Goes down to the nearest leaf, and takes the best of it. */
static __device__ void seed(struct oj_near_other *o,
                            const struct oj_tree_side &side)
{
    const struct oj_tree *tree = &side.segments;
    int64_t first, end;
    uint32_t at = 0;
    if (o->reach2 < 0.0)
        return;
    for (int32_t level = tree->n_levels - 1; level > 0; level--)
    {
        const struct oj_tree_node *node =
            tree->node + tree->level_first[level] + at;
        double least = INFINITY;
        int nearest = 0;
        for (int c = 0; c < OJ_TREE_FANOUT; c++)
        {
            double d2 = oj_near_other_box(o, node->x0[c], node->y0[c],
                                          node->x1[c], node->y1[c]);
            nearest = d2 < least ? c : nearest;
            least = d2 < least ? d2 : least;
        }
        at = at * OJ_TREE_FANOUT + (uint32_t)nearest;
    }
    first = (int64_t)at * OJ_TREE_FANOUT;
    end = first + OJ_TREE_FANOUT < tree->n ? first + OJ_TREE_FANOUT : tree->n;
    for (int64_t entry = first; entry < end; entry++)
        offer(o, side, entry);
}

/* Puts the children of a node that somebody wants on the stack, the first on
 * top; those of level 0 are segments, which are measured by who wants them. */
static __device__ __forceinline__ int
visit_node(const struct oj_tree_side &side, struct group &group,
           struct oj_near_other *o, uint32_t at, int depth)
{
    const struct oj_tree *tree = &side.segments;
    int level = (int)(at >> OJ_TREE_INDEX_BITS);
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
    const struct oj_tree_node *node = tree->node + tree->level_first[level] + i;
    uint32_t first = i * OJ_TREE_FANOUT, lane = threadIdx.x % LANES;
    int64_t below = level > 0 ? (int64_t)tree->level_n[level - 1] : tree->n;
    int n =
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT;
    ((float *)&group.boxes)[lane] = ((const float *)node)[lane];
    __syncwarp();
    for (int c = n - 1; c >= 0; c--)
    {
        const struct boxes &b = group.boxes;
        int wants = oj_near_other_box(o, b.x0[c], b.y0[c], b.x1[c], b.y1[c]) <=
                    o->reach2;
        if (level == 0)
        {
            if (wants)
                offer(o, side, (int64_t)first + c);
            continue;
        }
        if (__any_sync(FULL_WARP, wants))
        {
            if (lane == 0)
                group.stack[depth] = (uint32_t)(level - 1)
                                         << OJ_TREE_INDEX_BITS |
                                     (first + (uint32_t)c);
            depth++;
        }
    }
    __syncwarp();
    return depth;
}

static __global__ void __launch_bounds__(BLOCK)
    find_nearest(const __grid_constant__ struct oj_tree_side side,
                 const __grid_constant__ struct segments_batch batch)
{
    __shared__ struct group groups[BLOCK / LANES];
    struct group &group = groups[threadIdx.x / LANES];
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, i = 0;
    const struct oj_near_others others = {side.segments, NULL, NULL, NULL};
    double x = NAN, y = NAN;
    struct oj_near_other o;
    int depth = 0;
    if (t < batch.n)
    {
        i = batch.order != NULL ? batch.order[t] : t;
        x = batch.x[i];
        y = batch.y[i];
    }
    oj_near_other_start(&o, &others, i, x, y, 0.0, batch.most);
    if (side.segments.n > 0)
    {
        seed(&o, side);
        if (threadIdx.x % LANES == 0)
            group.stack[0] = (uint32_t)(side.segments.n_levels - 1)
                             << OJ_TREE_INDEX_BITS;
        depth = 1;
    }
    __syncwarp();
    while (depth > 0)
    {
        uint32_t at = group.stack[--depth];
        __syncwarp();
        depth = visit_node(side, group, &o, at, depth);
    }
    if (t >= batch.n)
        return;
    batch.row[i] = o.rank >= 0 && batch.ordinal_of != NULL
                       ? batch.ordinal_of[o.rank]
                       : o.rank;
    if (batch.measure != NULL)
        batch.measure[i] = o.rank >= 0 ? o.distance : NAN;
}

static oj_status join_one(struct oj_cuda_index *wrapped, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    struct near_segments_index *self = unwrap(wrapped);
    const struct oj_tree_side *side = &self->side.side;
    struct oj_cuda_array<int32_t> order =
    {
        NULL, 0
    };
    struct segments_batch batch;
    cudaError_t error;
    if (points->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_point_order(self->device, stream, &side->segments, points,
                               &order, err));
    batch.n = points->n;
    batch.x = points->x;
    batch.y = points->y;
    batch.order = order.data;
    batch.most = self->most;
    batch.ordinal_of = self->layer->ordinal_of.data;
    batch.row = d_row;
    batch.measure = d_measure;
    find_nearest<<<(unsigned)((points->n + BLOCK - 1) / BLOCK), BLOCK, 0,
                   stream>>>(*side, batch);
    error = cudaGetLastError();
    oj_cuda_drop(self->device, stream, &order);
    OJ_CUDA_TRY(error, "joining", err);
    return OJ_OK;
}

const struct oj_cuda_family oj_cuda_near_segments = {
    "nearest segments of points far away, by a packed tree",
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
