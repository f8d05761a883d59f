#include "cuda_vector_side.cuh"

#include "../../foundations/device/cuda_copy.h"
#include "../../foundations/device/cuda_peers.h"

#include "../../../flatten/base/oj_alloc.h"

enum
{
    TILE = OJ_VECTOR_TILE,
    BOX = OJ_VECTOR_BOX,
    WARP = 32,
    MOST_SPREADING = 1024, /* maximum number of blocks that compute spreads */
    /* Positions along a box are sort keys of two bytes. */
    SPLIT_KEYS = 65535,
    /* Trees with fewer levels (some thousands of vectors) are sorted faster by
     * every device alone than in shares. */
    LEAST_DEALT_LEVELS = 7
};

/* Vectors with fewer dimensions are compared by differences: they take few
 * operations then, and the error does not grow with the distance from the
 * centre. */
static const int64_t least_product_dimensions = 17;

/* Products are not used if their bound lets pairs pass that are this many times
 * the maximum distance apart. */
static const double most_excess = 1.25;

/* --- rows with a vector --------------------------------------------------- */

static oj_status list_valid_vectors(struct oj_cuda_work *work,
                                    struct oj_cuda_vector_side *side,
                                    int32_t **out)
{
    const double *vector = side->vector;
    int64_t n = side->n_rows, d = side->n_dimensions, *place;
    struct oj_cuda_work own(work);
    int32_t *order;
    OJ_TRY(own.scan_of_computed_values(
        n,
        [=] __device__(ptrdiff_t i)
        { return i < n ? (int64_t)(vector[i * d] == vector[i * d]) : 0; },
        &place, &side->n));
    OJ_TRY(work->make(side->n, &order));
    *out = order;
    side->n_tiles = (side->n + TILE - 1) / TILE;
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        if (vector[i * d] == vector[i * d])
                            order[place[i]] = (int32_t)i;
                    });
}

static oj_status find_lengths(struct oj_cuda_work *work,
                              struct oj_cuda_vector_side *side)
{
    const double *vector = side->vector;
    int64_t d = side->n_dimensions;
    double *length;
    OJ_TRY(work->make(side->n_rows, &length));
    side->length = length;
    return work->each(side->n_rows,
                      [=] __device__(int64_t row)
                      {
                          double sum = 0.0;
                          for (int64_t i = row * d; i < (row + 1) * d; i++)
                              sum += vector[i] * vector[i];
                          length[row] = sqrt(sum);
                      });
}

/* --- the frame ------------------------------------------------------------ */

struct cuda_vector_spreading
{
    struct oj_cuda_vector_side side;
    int64_t rows_of_block;
    struct oj_vector_spread *out; /* [blocks][dimensions] */
};

static __global__ void
compute_block_spread(const __grid_constant__ struct cuda_vector_spreading s)
{
    int64_t first = blockIdx.x * s.rows_of_block, d = s.side.n_dimensions;
    int64_t end = first + s.rows_of_block;
    end = end < s.side.n ? end : s.side.n;
    for (int64_t j = threadIdx.x; j < d; j += TILE)
    {
        struct oj_vector_spread spread = {0.0, (double)INFINITY,
                                          -(double)INFINITY, (int32_t)j};
        double of_first = s.side.coordinate_of_row(s.side.order[0], j);
        for (int64_t i = first; i < end; i++)
        {
            double x = s.side.coordinate_of_row(s.side.order[i], j);
            spread.apart += fabs(x - of_first);
            spread.low = x < spread.low ? x : spread.low;
            spread.high = x > spread.high ? x : spread.high;
        }
        s.out[blockIdx.x * d + j] = spread;
    }
}

static __device__ void unite_spreads(struct oj_vector_spread *to,
                                     const struct oj_vector_spread &other)
{
    to->apart += other.apart;
    to->low = other.low < to->low ? other.low : to->low;
    to->high = other.high > to->high ? other.high : to->high;
}

/* Combines the spreads of the blocks into those of the first block, one warp
 * per dimension. The order of the additions is equal on all devices. */
static __global__ void
combine_block_spreads(const __grid_constant__ struct cuda_vector_spreading s,
                      int64_t blocks)
{
    int32_t j = (int32_t)blockIdx.x;
    struct oj_vector_spread all = {0.0, (double)INFINITY, -(double)INFINITY, j};
    for (int64_t i = threadIdx.x; i < blocks; i += WARP)
        unite_spreads(&all, s.out[i * s.side.n_dimensions + j]);
    for (int step = WARP / 2; step > 0; step /= 2)
    {
        struct oj_vector_spread other = {__shfl_xor_sync(~0u, all.apart, step),
                                         __shfl_xor_sync(~0u, all.low, step),
                                         __shfl_xor_sync(~0u, all.high, step),
                                         j};
        unite_spreads(&all, other);
    }
    if (threadIdx.x == 0)
        s.out[j] = all;
}

/* Computes the spread of each dimension: out [n_dimensions], in host memory. */
static oj_status compute_spread(struct oj_cuda_work *work,
                                const struct oj_cuda_vector_side *side,
                                struct oj_vector_spread *out)
{
    struct oj_cuda_work own(work);
    struct cuda_vector_spreading s = {};
    int64_t d = side->n_dimensions;
    int64_t blocks = side->n_tiles < MOST_SPREADING ? side->n_tiles
                                                    : (int64_t)MOST_SPREADING;
    s.side = *side;
    s.rows_of_block = (side->n + blocks - 1) / blocks;
    OJ_TRY(own.make(blocks * d, &s.out));
    OJ_TRY(own.launch_blocks<TILE>((unsigned)blocks, compute_block_spread, s));
    OJ_TRY(
        own.launch_blocks<WARP>((unsigned)d, combine_block_spreads, s, blocks));
    return oj_cuda_copy_out(own.device, own.stream, out, s.out,
                            d * (int64_t)sizeof *out, own.err);
}

/* Returns the scale of halves: a power of two that brings the mean coordinate
 * near 1, where halves have most bits. */
static double choose_half_scale(const struct oj_vector_spread *spread,
                                int64_t d, double n, double scale)
{
    double sum = 0.0;
    int exponent;
    for (int64_t j = 0; j < d; j++)
        sum += spread[j].apart / n;
    frexp(sum / (double)d * scale, &exponent);
    return ldexp(1.0, exponent > -60 && exponent < 0 ? -exponent : 0);
}

/* Decides whether pairs are compared by products of halves: sets
 * frame->is_of_halves, n_padded and error. frame->half_scale must be set. */
static oj_status decide_half_precision(struct oj_cuda_work *work,
                                       const struct oj_relation *relation,
                                       struct oj_cuda_vector_frame *frame)
{
    double d = (double)frame->n_dimensions, most, passes;
    double reach = oj_vector_max_true_difference(
                       frame->norm, frame->n_dimensions, frame->scale,
                       relation->vector.max_difference) *
                   frame->half_scale;
    int major = 0;
    OJ_TRY(work->check(cudaDeviceGetAttribute(
        &major, cudaDevAttrComputeCapabilityMajor, work->device->ordinal)));
    frame->n_padded = (int)(frame->n_dimensions + 31) / 32 * 32;
    frame->error = frame->n_padded * 0x1p-22;
    most = reach + 2.0 * 0x1p-13 * sqrt(d);
    passes = sqrt(most * most + 2.0 * frame->error * d);
    frame->is_of_halves =
        major >= 8 && frame->n_dimensions >= least_product_dimensions &&
        (frame->norm == OJ_NORM_L2 || frame->norm == OJ_NORM_COSINE) &&
        (relation->k < OJ_EVERY_PAIR || passes <= most_excess * reach);
    if (!frame->is_of_halves)
        frame->n_padded = (int)(frame->n_dimensions + 7) / 8 * 8;
    return OJ_OK;
}

/* Host arrays used while a frame is made. Owner. */
struct frame_arrays
{
    struct oj_vector_spread *spread;
    int32_t *dimension;
    double *centre;
};

static oj_status compute_order_and_scale(struct oj_cuda_work *work,
                                         const struct oj_cuda_vector_side *side,
                                         const struct oj_relation *relation,
                                         struct frame_arrays *a,
                                         struct oj_cuda_vector_frame *frame)
{
    int64_t d = side->n_dimensions;
    a->spread = (struct oj_vector_spread *)oj_malloc(d, sizeof *a->spread);
    a->dimension = (int32_t *)oj_malloc(d, sizeof *a->dimension);
    a->centre = (double *)oj_malloc(d, sizeof *a->centre);
    if (a->spread == NULL || a->dimension == NULL || a->centre == NULL)
        return oj_fail_nomem(work->err, 2 * d, sizeof *a->spread);
    OJ_TRY(compute_spread(work, side, a->spread));
    frame->n_dimensions = d;
    frame->scale = oj_vector_frame_make(a->spread, d, a->dimension, a->centre);
    frame->half_scale =
        choose_half_scale(a->spread, d, (double)side->n, frame->scale);
    OJ_TRY(decide_half_precision(work, relation, frame));
    OJ_TRY(oj_cuda_upload_column(work, a->dimension, d, &frame->dimension));
    OJ_TRY(oj_cuda_upload_column(work, a->centre, d, &frame->centre));
    return work->wait();
}

static oj_status order_and_scale_dimensions(
    struct oj_cuda_work *work, const struct oj_cuda_vector_side *side,
    const struct oj_relation *relation, struct oj_cuda_vector_frame *frame)
{
    struct frame_arrays arrays = {};
    oj_status status =
        compute_order_and_scale(work, side, relation, &arrays, frame);
    /* waits, because copies of the arrays may still be running */
    (void)cudaStreamSynchronize(work->stream);
    oj_free(arrays.spread);
    oj_free(arrays.dimension);
    oj_free(arrays.centre);
    return status;
}

/* --- the tree ------------------------------------------------------------- */

static __device__ float
scaled_coordinate_of_row(const struct oj_cuda_vector_frame &frame,
                         const struct oj_cuda_vector_side &side, int64_t row,
                         int64_t place)
{
    return oj_vector_coordinate(
        side.coordinate_of_row(row, frame.dimension[place]),
        frame.centre[place], frame.scale);
}

/* Returns an integer > 0 for a float, so that the order of floats is kept. */
static __device__ unsigned sortable_float_bits(float x)
{
    unsigned bits = __float_as_uint(x);
    return bits >> 31 != 0 ? ~bits : bits | 1u << 31;
}

static __device__ float float_of_sortable_bits(unsigned key)
{
    return __uint_as_float(key >> 31 != 0 ? key ^ 1u << 31 : ~key);
}

/* A level of the tree: node i has the places from i << shift on. */
struct cuda_vector_level
{
    const float *at; /* [rows][BOX] coordinates */
    const int32_t *order;
    int64_t n;
    int shift;
    /* [nodes][2][BOX] sort keys of the bounds; the keys of lower bounds are
     * inverted, so that both are maxima. */
    unsigned *box;
};

/* Extends the boxes of nodes: one block per tile, one lane per side of a box.
 */
static __global__ void
extend_boxes_of_nodes(const __grid_constant__ struct cuda_vector_level l)
{
    int lane = threadIdx.x % WARP;
    int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x - lane;
    int64_t end = first + WARP < l.n ? first + WARP : l.n;
    unsigned most = 0;
    for (int64_t i = first; i < end; i++)
    {
        unsigned key =
            sortable_float_bits(l.at[(int64_t)l.order[i] * BOX + lane % BOX]);
        key = lane < BOX ? ~key : key;
        most = key > most ? key : most;
    }
    if (first < end)
        atomicMax(&l.box[(first >> l.shift) * WARP + lane], most);
}

static_assert(2 * BOX == WARP, "a lane for each side of a box");

static oj_status make_boxes(struct oj_cuda_work *work, int64_t n_tiles,
                            struct cuda_vector_level *level)
{
    int64_t n_nodes = ((level->n - 1) >> level->shift) + 1;
    OJ_TRY(work->allocate_zeros(n_nodes * WARP, &level->box));
    return work->launch_blocks<TILE>((unsigned)n_tiles, extend_boxes_of_nodes,
                                     *level);
}

/* How a node is split. */
struct cuda_vector_split
{
    int dimension;
    float low, factor;
};

static __device__ struct cuda_vector_split
choose_longest_side_of_box(const unsigned *box)
{
    struct cuda_vector_split split = {0, 0.0f, 0.0f};
    float longest = -1.0f;
    for (int c = 0; c < BOX; c++)
    {
        float low = float_of_sortable_bits(~box[c]),
              side = float_of_sortable_bits(box[BOX + c]) - low;
        if (!(side > longest))
            continue;
        longest = side;
        split.dimension = c;
        split.low = low;
    }
    split.factor = (float)SPLIT_KEYS / longest;
    /* All rows of the node are equal, or nearly so. */
    if (!(split.factor < FLT_MAX))
        split.factor = 0.0f;
    return split;
}

/* Sorts the places of each node along the longest side of its box. */
static oj_status sort_rows_within_nodes(struct oj_cuda_work *work,
                                        int64_t n_tiles,
                                        struct cuda_vector_level *level,
                                        int bits, int32_t **order)
{
    struct oj_cuda_work own(work);
    int64_t n_nodes = ((level->n - 1) >> level->shift) + 1;
    struct cuda_vector_split *split;
    OJ_TRY(make_boxes(&own, n_tiles, level));
    OJ_TRY(own.make(n_nodes, &split));
    const struct cuda_vector_level l = *level;
    OJ_TRY(
        own.each(n_nodes, [=] __device__(int64_t i)
                 { split[i] = choose_longest_side_of_box(l.box + i * WARP); }));
    return work->reorder_by<uint64_t>(
        l.n, 16 + bits,
        [=] __device__(int64_t i)
        {
            struct cuda_vector_split s = split[i >> l.shift];
            float at = l.at[(int64_t)l.order[i] * BOX + s.dimension];
            at = (at - s.low) * s.factor;
            return (uint64_t)(i >> l.shift) << 16 | (unsigned long long)at;
        },
        order, NULL);
}

/* The places first .. end - 1 that one device sorts: those of its share of the
 * nodes of a level. */
struct cuda_vector_places
{
    int64_t first, end;
};

static struct cuda_vector_places
places_of_device(const struct cuda_vector_level *level, int number, int n)
{
    int64_t n_nodes = ((level->n - 1) >> level->shift) + 1;
    int64_t first = n_nodes * number / n << level->shift;
    int64_t end = n_nodes * (number + 1) / n << level->shift;
    return {first, end < level->n ? end : level->n};
}

/* Sorts *order by the levels `from` to n_levels - 1 of the tree. *of is level
 * `from`, limited to the places in *order. */
static oj_status sort_rows_by_levels(struct oj_cuda_work *work,
                                     const struct cuda_vector_level *of,
                                     int from, int n_levels, int32_t **order)
{
    struct cuda_vector_level level = *of;
    for (int i = from; i < n_levels && level.n > 0; i++)
    {
        level.shift = of->shift - (i - from);
        level.order = *order;
        OJ_TRY(sort_rows_within_nodes(work, (level.n + TILE - 1) / TILE, &level,
                                      i, order));
    }
    return OJ_OK;
}

/* Sorts order by the levels `from` to n_levels - 1; all devices have sorted all
 * places by the levels above. Each device sorts the places of some nodes, and
 * copies the others from the other devices. */
static oj_status sort_nodes_of_devices(struct oj_cuda_work *work,
                                       const struct cuda_vector_level *of,
                                       int from, int n_levels, int32_t *order)
{
    const struct oj_cuda_device *device = work->device;
    const struct oj_cuda_peer_barrier *peers = device->peers;
    struct cuda_vector_places mine =
        places_of_device(of, device->number, peers->n);
    struct cuda_vector_level level = *of;
    struct oj_cuda_work own(work);
    int64_t first[OJ_GPU_MAX_DEVICES + 1], bytes;
    int32_t *part;
    level.n = mine.end - mine.first;
    bytes = level.n * (int64_t)sizeof *part;
    OJ_TRY(own.make(level.n, &part));
    if (level.n > 0)
        OJ_TRY(
            own.check(cudaMemcpyAsync(part, order + mine.first, (size_t)bytes,
                                      cudaMemcpyDeviceToDevice, own.stream)));
    OJ_TRY(sort_rows_by_levels(&own, &level, from, n_levels, &part));
    if (level.n > 0)
        OJ_TRY(
            own.check(cudaMemcpyAsync(order + mine.first, part, (size_t)bytes,
                                      cudaMemcpyDeviceToDevice, own.stream)));
    for (int i = 0; i < peers->n; i++)
    {
        struct cuda_vector_places places = places_of_device(of, i, peers->n);
        first[i] = places.first * (int64_t)sizeof *part;
        first[i + 1] = places.end * (int64_t)sizeof *part;
    }
    return oj_cuda_peers_exchange(device, own.stream, order, first, own.err);
}

/* Returns by how many of the n_levels levels each device sorts all rows. The
 * next level has at least one node per device, which are then shared out. If
 * the join has one device or the tree few levels, each device sorts by all
 * levels. */
static int count_levels_of_all_devices(const struct oj_cuda_device *device,
                                       int n_levels)
{
    int n_shared = 0;
    if (device->peers == NULL || device->peers->n < 2 ||
        n_levels < LEAST_DEALT_LEVELS)
        return n_levels;
    while (device->peers->n > 1 << n_shared)
        n_shared++;
    return n_shared;
}

static oj_status order_vectors_by_tree(struct oj_cuda_work *work,
                                       const struct oj_cuda_vector_frame *frame,
                                       int32_t *order,
                                       struct oj_cuda_vector_side *side)
{
    struct oj_cuda_work own(work);
    const struct oj_cuda_vector_frame f = *frame;
    const struct oj_cuda_vector_side s = *side;
    struct cuda_vector_level level = {};
    int levels = 0, n_shared;
    float *at, *box;
    OJ_TRY(own.make(s.n_rows * BOX, &at));
    OJ_TRY(own.each(s.n * BOX,
                    [=] __device__(int64_t i)
                    {
                        int64_t row = s.order[i / BOX], c = i % BOX;
                        at[row * BOX + c] =
                            c < f.n_dimensions
                                ? scaled_coordinate_of_row(f, s, row, c)
                                : 0.0f;
                    }));
    level.at = at;
    level.n = s.n;
    while (s.n_tiles > (int64_t)1 << levels)
        levels++;
    level.shift = 7 + levels;
    n_shared = count_levels_of_all_devices(work->device, levels);
    OJ_TRY(sort_rows_by_levels(work, &level, 0, n_shared, &order));
    level.shift = 7 + levels - n_shared;
    if (n_shared < levels)
        OJ_TRY(sort_nodes_of_devices(work, &level, n_shared, levels, order));
    side->order = order;
    level.order = order;
    level.shift = 7;
    OJ_TRY(make_boxes(&own, s.n_tiles, &level));
    OJ_TRY(work->make(s.n_tiles * WARP, &box));
    side->box = box;
    const unsigned *key = level.box;
    OJ_TRY(own.each(s.n_tiles * WARP,
                    [=] __device__(int64_t i)
                    {
                        int is_low = i % WARP < BOX;
                        box[i] =
                            float_of_sortable_bits(is_low ? ~key[i] : key[i]);
                    }));
    return OJ_OK;
}

static_assert(TILE == 1 << 7, "the places of a tile");

/* --- coordinates ---------------------------------------------------------- */

struct cuda_vector_filling
{
    struct oj_cuda_vector_frame frame;
    struct oj_cuda_vector_side side;
    float *value;
    uint16_t *half;
    float *size, *rest;
    unsigned *most_rest;
};

/* Writes the coordinates as floats: one block per tile, one thread per place.
 */
static __global__ void
write_float_tiles(const __grid_constant__ struct cuda_vector_filling f)
{
    int64_t place = (int64_t)blockIdx.x * TILE + threadIdx.x;
    int64_t row = place < f.side.n ? f.side.order[place] : -1;
    float *to = f.value + (int64_t)blockIdx.x * f.frame.n_padded * TILE;
    for (int64_t p = 0; p < f.frame.n_padded; p++)
    {
        float x = 0.0f;
        if (row >= 0 && p < f.frame.n_dimensions)
            x = scaled_coordinate_of_row(f.frame, f.side, row, p);
        to[p * TILE + threadIdx.x] = x;
    }
}

/* Returns the bits of the half-precision number nearest to a finite float. */
static __device__ unsigned half_of_float(float x)
{
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits >= 0x477fe000u) /* at least 65504, the greatest half */
        return sign | 0x7bffu;
    if (bits < 0x38800000u) /* below 2^-14: steps of 2^-24 */
        return sign | (unsigned)(__uint_as_float(bits) * 0x1p24f + 0.5f);
    bits += 0xfffu + (bits >> 13 & 1u);
    return sign | (bits - 0x38000000u) >> 13;
}

static __device__ float float_of_half(unsigned half)
{
    unsigned exponent = half >> 10 & 31u, rest = half & 1023u;
    float x = exponent == 0
                  ? (float)rest * 0x1p-24f
                  : __uint_as_float((exponent + 112) << 23 | rest << 13);
    return (half & 0x8000u) != 0 ? -x : x;
}

/* Writes the coordinates as halves: one block per tile, 32 places per warp. */
static __global__ void
write_half_float_tiles(const __grid_constant__ struct cuda_vector_filling f)
{
    int lane = threadIdx.x % WARP;
    int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x - lane;
    for (int64_t place = first; place < first + WARP; place++)
    {
        int64_t row = place < f.side.n ? f.side.order[place] : -1;
        double size = 0.0, rest = 0.0; /* squared lengths of the vector, and of
                                          what rounding lost */
        for (int64_t p = lane; p < f.frame.n_padded; p += WARP)
        {
            double x = 0.0, rounded;
            unsigned half;
            if (row >= 0 && p < f.frame.n_dimensions)
                x = (double)scaled_coordinate_of_row(f.frame, f.side, row, p) *
                    f.frame.half_scale;
            half = half_of_float((float)(x < 1e6 ? x > -1e6 ? x : -1e6 : 1e6));
            rounded = (double)float_of_half(half);
            size += rounded * rounded;
            rest += (x - rounded) * (x - rounded);
            f.half[place * f.frame.n_padded + p] = (uint16_t)half;
        }
        for (int step = WARP / 2; step > 0; step /= 2)
        {
            size += __shfl_xor_sync(~0u, size, step);
            rest += __shfl_xor_sync(~0u, rest, step);
        }
        if (lane != 0)
            continue;
        rest = sqrt(rest);
        size *= (1.0 - 1.01 * f.frame.error) / 2.0;
        f.size[place] = nextafterf((float)size, -(float)INFINITY);
        f.rest[place] = rest < (double)FLT_MAX / 2.0
                            ? nextafterf((float)rest, (float)INFINITY)
                            : (float)INFINITY;
        atomicMax(&f.most_rest[blockIdx.x], __float_as_uint(f.rest[place]));
    }
}

static oj_status make_coordinates(struct oj_cuda_work *work,
                                  const struct oj_cuda_vector_frame *frame,
                                  struct oj_cuda_vector_side *side)
{
    struct cuda_vector_filling f = {};
    int64_t n = side->n_tiles * TILE;
    f.frame = *frame;
    f.side = *side;
    if (!frame->is_of_halves)
    {
        OJ_TRY(work->make(n * frame->n_padded, &f.value));
        side->value = f.value;
        return work->launch_blocks<TILE>((unsigned)side->n_tiles,
                                         write_float_tiles, f);
    }
    OJ_TRY(work->make(n * frame->n_padded, &f.half));
    OJ_TRY(work->make(n, &f.size, &f.rest));
    OJ_TRY(work->allocate_zeros(side->n_tiles, &f.most_rest));
    side->half = f.half;
    side->size = f.size;
    side->rest = f.rest;
    side->most_rest = f.most_rest;
    return work->launch_blocks<TILE>((unsigned)side->n_tiles,
                                     write_half_float_tiles, f);
}

oj_status oj_cuda_vector_side_make(struct oj_cuda_work *work,
                                   const struct oj_flat *flat, int64_t first,
                                   int64_t n,
                                   const struct oj_relation *relation,
                                   struct oj_cuda_vector_frame *frame,
                                   struct oj_cuda_vector_side *out)
{
    struct oj_cuda_vector_side side = {};
    int32_t *order;
    side.n_rows = n;
    side.n_dimensions = flat->vectors.n_dimensions;
    OJ_TRY(oj_cuda_upload_column(work, oj_vector_at(&flat->vectors, first),
                                 n * side.n_dimensions, &side.vector));
    OJ_TRY(
        oj_cuda_upload_columns(work, flat, first, n, relation, &side.columns));
    OJ_TRY(list_valid_vectors(work, &side, &order));
    side.order = order;
    if (relation->vector.norm == OJ_NORM_COSINE)
        OJ_TRY(find_lengths(work, &side));
    if (side.n > 0 && frame->dimension == NULL)
    {
        frame->norm = relation->vector.norm;
        OJ_TRY(order_and_scale_dimensions(work, &side, relation, frame));
    }
    if (side.n > 0 && frame->dimension != NULL)
    {
        OJ_TRY(order_vectors_by_tree(work, frame, order, &side));
        OJ_TRY(make_coordinates(work, frame, &side));
    }
    *out = side;
    return OJ_OK;
}
