/* The nearest segment of points that are far from all of them.  The threads of
 * a warp have points that lie close together, and go through the packed tree of
 * the join side's segments as one: a box is looked into when one of them wants
 * it, the nearest first.  Far away they all want the same few, and so do the
 * next 32 points: these begin with the segments that the last ones found.
 *
 * Pays for itself by the unbounded nearest boundary of 170 million points, a
 * row of BENCHMARKS.md: ten million of them are far away.
 */
#include "../index/cuda_family.h"
#include "../tree/cuda_point_order.h"
#include "../tree/cuda_tree.h"

#include "../../flatten/base/oj_array.h"
#include "../points/oj_near_other.h"

enum
{
    BLOCK = 128,
    LANES = 32,
    GROUPS = 8 /* of 32 points that a warp has one after another */
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
    status = oj_cuda_tree_side_build(device, layer, 0, 0, &self->side, err);
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
struct segment_node_boxes
{
    float x0[OJ_TREE_FANOUT], y0[OJ_TREE_FANOUT];
    float x1[OJ_TREE_FANOUT], y1[OJ_TREE_FANOUT];
};

/* What the threads of a warp share. */
struct segment_warp_memory
{
    struct segment_node_boxes boxes;
    uint32_t stack[OJ_TREE_STACK]; /* as in struct oj_tree_walk */
    float stack_apart[OJ_TREE_STACK];
};

static_assert(sizeof(struct oj_device_tree_node) == LANES * sizeof(float) &&
                  sizeof(struct segment_node_boxes) ==
                      sizeof(struct oj_device_tree_node),
              "a thread for each number of a node");

/* A thread's point, and where the points of its warp are. */
struct seeker
{
    struct oj_near_other own;
    int64_t entry;       /* of the nearest so far, or -1 */
    double x, y, radius; /* a circle around the points of the warp */
};

static __device__ __forceinline__ void
offer(struct seeker *s, const struct oj_tree_side &side, int64_t entry)
{
    struct oj_near_other *o = &s->own;
    double distance = oj_tree_entry_distance(&side, entry, o->px, o->py);
    int32_t rank = side.rank[entry];
    if (distance > o->most || !(distance < INFINITY) ||
        distance > o->distance || (distance == o->distance && rank >= o->rank))
        return;
    o->distance = distance;
    o->rank = rank;
    s->entry = entry;
    oj_near_other_bound(o, distance);
}

/* The circle, around the first point that is one. */
static __device__ void find_circle(struct seeker *s)
{
    struct oj_near_other *o = &s->own;
    int is_point = o->reach2 >= 0.0;
    uint32_t points = __ballot_sync(FULL_WARP, is_point);
    int first = points != 0 ? __ffs((int)points) - 1 : 0;
    double apart;
    s->x = __shfl_sync(FULL_WARP, o->x, first);
    s->y = __shfl_sync(FULL_WARP, o->y, first);
    apart = is_point ? fabs(o->x - s->x) + fabs(o->y - s->y) : 0.0;
    for (int step = LANES / 2; step > 0; step /= 2)
        apart = fmax(apart, __shfl_xor_sync(FULL_WARP, apart, step));
    s->radius = apart;
}

/* How far box c is from the middle of the circle; infinite: there is none. */
static __device__ __forceinline__ float
box_apart(const struct seeker *s, const struct segment_node_boxes &b, int c)
{
    double dx = fmax(fmax((double)b.x0[c] - s->x, s->x - (double)b.x1[c]), 0.0);
    double dy = fmax(fmax((double)b.y0[c] - s->y, s->y - (double)b.y1[c]), 0.0);
    return sqrtf((float)(dx * dx + dy * dy));
}

/* Whether somebody may want what is in a box so far from the middle. */
static __device__ __forceinline__ int is_in_reach(const struct seeker *s,
                                                  float apart)
{
    /* floats, their root and their squares are off by less than 2^-20 */
    double least = (double)apart * (1.0 - 1e-6) - s->radius;
    return __any_sync(FULL_WARP,
                      least <= 0.0 || least * least <= s->own.reach2);
}

/* Puts the children that are wanted on the stack, the nearest on top. */
static __device__ __forceinline__ int
push_children(struct segment_warp_memory &group, const struct seeker *s,
              uint32_t wanted, uint32_t first, int depth)
{
    int lane = (int)(threadIdx.x % LANES), below = depth;
    float apart = box_apart(s, group.boxes, lane % OJ_TREE_FANOUT);
    for (int c = 0; c < OJ_TREE_FANOUT; c++)
    {
        float its = __shfl_sync(FULL_WARP, apart, c);
        if ((wanted >> c & 1u) && (its > apart || (its == apart && c > lane)))
            below++;
    }
    if (lane < OJ_TREE_FANOUT && (wanted >> lane & 1u))
    {
        group.stack[below] = first + (uint32_t)lane;
        group.stack_apart[below] = apart;
    }
    return depth + __popc(wanted);
}

/* Looks into a node: measures its segments, or puts what is wanted on the
 * stack. */
static __device__ __forceinline__ int
visit_node(const struct oj_tree_side &side, struct segment_warp_memory &group,
           struct seeker *s, uint32_t at, int depth)
{
    const struct oj_device_tree *tree = &side.segments;
    const struct segment_node_boxes &b = group.boxes;
    int level = (int)(at >> OJ_TREE_INDEX_BITS);
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u), wanted = 0;
    const struct oj_device_tree_node *node =
        tree->node + tree->level_first[level] + i;
    uint32_t first = i * OJ_TREE_FANOUT, lane = threadIdx.x % LANES;
    int64_t below = level > 0 ? (int64_t)tree->level_n[level - 1] : tree->n;
    int n =
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT;
    ((float *)&group.boxes)[lane] = ((const float *)node)[lane];
    __syncwarp();
    for (int c = 0; c < n; c++)
    {
        int wants = oj_near_other_box(&s->own, b.x0[c], b.y0[c], b.x1[c],
                                      b.y1[c]) <= s->own.reach2;
        if (level == 0 && wants)
            offer(s, side, (int64_t)first + c);
        else if (level > 0 && __any_sync(FULL_WARP, wants))
            wanted |= 1u << c;
    }
    if (level > 0)
        depth = push_children(
            group, s, wanted,
            (uint32_t)(level - 1) << OJ_TREE_INDEX_BITS | first, depth);
    __syncwarp();
    return depth;
}

/* Begins with point i; nobody's where i is -1. */
static __device__ void start(struct seeker *s, const struct oj_tree_side &side,
                             const struct segments_batch &batch, int64_t i)
{
    const struct oj_near_others others = {side.segments, NULL, NULL, NULL};
    int64_t last = s->entry;
    oj_near_other_start(&s->own, &others, i, i >= 0 ? batch.x[i] : NAN,
                        i >= 0 ? batch.y[i] : NAN, 0.0, batch.most);
    s->entry = -1;
    if (last >= 0 && s->own.reach2 >= 0.0)
        offer(s, side, last);
    find_circle(s);
}

static __device__ void finish(const struct seeker *s,
                              const struct segments_batch &batch, int64_t i)
{
    int32_t rank = s->own.rank;
    if (i < 0)
        return;
    batch.row[i] =
        rank >= 0 && batch.ordinal_of != NULL ? batch.ordinal_of[rank] : rank;
    if (batch.measure != NULL)
        batch.measure[i] = rank >= 0 ? s->own.distance : NAN;
}

static __global__ void __launch_bounds__(BLOCK)
    find_nearest(const __grid_constant__ struct oj_tree_side side,
                 const __grid_constant__ struct segments_batch batch)
{
    __shared__ struct segment_warp_memory groups[BLOCK / LANES];
    struct segment_warp_memory &group = groups[threadIdx.x / LANES];
    int64_t warp = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / LANES;
    struct seeker s;
    s.entry = -1;
    for (int g = 0; g < GROUPS && (warp * GROUPS + g) * LANES < batch.n; g++)
    {
        int64_t t = (warp * GROUPS + g) * LANES + threadIdx.x % LANES, i = t;
        int depth = side.segments.n > 0 ? 1 : 0;
        if (t >= batch.n)
            i = -1;
        else if (batch.order != NULL)
            i = batch.order[t];
        start(&s, side, batch, i);
        if (threadIdx.x % LANES == 0)
        {
            group.stack[0] = (uint32_t)(side.segments.n_levels - 1)
                             << OJ_TREE_INDEX_BITS;
            group.stack_apart[0] = 0.0f;
        }
        __syncwarp();
        while (depth > 0)
        {
            uint32_t at = group.stack[--depth];
            float apart = group.stack_apart[depth];
            __syncwarp();
            if (is_in_reach(&s, apart))
                depth = visit_node(side, group, &s, at, depth);
        }
        finish(&s, batch, i);
    }
}

static oj_status join_one(struct oj_cuda_index *wrapped, cudaStream_t stream,
                          const struct oj_cuda_points *points, int32_t *d_row,
                          double *d_measure, struct oj_error *err)
{
    struct near_segments_index *self = unwrap(wrapped);
    const struct oj_tree_side *side = &self->side.side;
    oj_cuda_array<int32_t> order = {NULL, 0};
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
    find_nearest<<<(unsigned)((points->n + BLOCK * GROUPS - 1) /
                              (BLOCK * GROUPS)),
                   BLOCK, 0, stream>>>(*side, batch);
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
