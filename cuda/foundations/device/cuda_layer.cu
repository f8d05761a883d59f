#include "cuda_box_reduce.cuh"
#include "cuda_offset_search.cuh"
#include "cuda_peers.h"
#include "cuda_reduce.cuh"

#include <math.h>
#include <string.h>

/* Device copies of the flat layer's arrays (struct oj_flat), and intermediate
 * results. They are freed when the layer is complete. An array that the layer
 * does not have is NULL. */
struct layer_raw
{
    const double *x, *y;
    const int64_t *part_offset, *ring_offset, *vertex_offset;
    const uint8_t *part_kind, *left_out;
    const int32_t *tie_rank;
    /* [n_rings of the layer] index of the ring's first vertex; its bitwise
     * complement if the ring has only one vertex. */
    int64_t *ring_first;
    int32_t *ring_part; /* [n_rings of the layer] part of each ring */
    /* [n_parts of the layer] first ring of each part, as index of
     * vertex_offset. */
    int64_t *part_ring;
};

static __device__ void extend_box_by_segment(struct oj_box *box,
                                             const struct oj_cuda_segment &s)
{
    oj_box_add_point(box, s.ax, s.ay);
    oj_box_add_point(box, s.bx, s.by);
}

struct box_of_segment
{
    const struct oj_cuda_segment *segment;

    __device__ struct oj_box operator()(ptrdiff_t i) const
    {
        struct oj_box box = oj_box_empty();
        extend_box_by_segment(&box, segment[i]);
        return box;
    }
};

struct join_boxes
{
    __device__ struct oj_box operator()(struct oj_box a,
                                        const struct oj_box &b) const
    {
        oj_box_add_box(&a, &b);
        return a;
    }
};

struct layer_build
{
    const struct oj_flat *flat;
    struct oj_cuda_work *keep; /* owns the arrays of the finished layer */
    struct oj_cuda_work *work;
    struct layer_raw raw;
    struct oj_cuda_layer *layer;
};

static __device__ int64_t ordinal_at(const int32_t *ordinal_of, int64_t rank)
{
    return ordinal_of != NULL ? ordinal_of[rank] : rank;
}

template <typename T>
static oj_status upload_array(struct oj_cuda_work *work, const T *host,
                              int64_t n, const T **out)
{
    T *to;
    if (host == NULL || n == 0)
        return OJ_OK;
    OJ_TRY(work->make(n, &to));
    *out = to;
    return oj_cuda_copy_to_all_peers(work->device, work->stream, to, host,
                                     n * (int64_t)sizeof(T), work->err);
}

static oj_status upload_flat_arrays(struct layer_build *m,
                                    const uint8_t *left_out,
                                    const int32_t *tie_rank)
{
    const struct oj_flat *flat = m->flat;
    int is_points = oj_flat_is_points(flat);
    int64_t n = flat->n_features;
    int64_t n_vertices = is_points ? n : flat->n_vertices;
    struct layer_raw *raw = &m->raw;
    OJ_TRY(upload_array(m->work, flat->x, n_vertices, &raw->x));
    OJ_TRY(upload_array(m->work, flat->y, n_vertices, &raw->y));
    OJ_TRY(upload_array(m->work, tie_rank, n, &raw->tie_rank));
    OJ_TRY(upload_array(m->work, left_out, n, &raw->left_out));
    if (is_points)
        return OJ_OK;
    OJ_TRY(upload_array(m->work, flat->part_offset, n + 1, &raw->part_offset));
    OJ_TRY(
        upload_array(m->work, flat->part_kind, flat->n_parts, &raw->part_kind));
    OJ_TRY(upload_array(m->work, flat->ring_offset, flat->n_parts + 1,
                        &raw->ring_offset));
    OJ_TRY(upload_array(m->work, flat->vertex_offset, flat->n_rings + 1,
                        &raw->vertex_offset));
    /* Offsets of a slice of a layer do not begin at 0. The pointers are shifted
     * so that these offsets are valid indices. */
    raw->part_kind -= flat->part_offset[0];
    raw->ring_offset -= flat->part_offset[0];
    raw->vertex_offset -= flat->ring_offset[0];
    raw->x -= flat->vertex_offset[0];
    raw->y -= flat->vertex_offset[0];
    return OJ_OK;
}

static oj_status invert_tie_ranks(struct layer_build *m)
{
    const int32_t *rank = m->raw.tie_rank;
    int32_t *ordinal;
    if (rank == NULL)
        return OJ_OK;
    OJ_TRY(m->keep->make(m->layer->n_features, &ordinal));
    m->layer->ordinal_of = {ordinal, m->layer->n_features};
    return m->work->each(m->layer->n_features, [=] __device__(int64_t i)
                         { ordinal[rank[i]] = (int32_t)i; });
}

/* Makes part_offset [n_features + 1]: counts the parts of each feature and sums
 * up the counts. A point with a coordinate that is not finite, or a feature in
 * left_out, has no parts. */
static oj_status make_part_offsets(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    const struct layer_raw raw = m->raw;
    const int32_t *ordinal_of = layer->ordinal_of.data;
    int64_t n = layer->n_features, *part_offset;
    OJ_TRY(m->keep->make(n + 1, &layer->part_offset));
    part_offset = layer->part_offset.data;
    OJ_TRY(m->work->each(
        n + 1,
        [=] __device__(int64_t i)
        {
            int64_t o = i < n ? ordinal_at(ordinal_of, i) : 0, n_parts = 0;
            if (i < n && (raw.left_out == NULL || !raw.left_out[o]))
                n_parts = raw.part_offset != NULL
                              ? raw.part_offset[o + 1] - raw.part_offset[o]
                              : (isfinite(raw.x[o]) && isfinite(raw.y[o]));
            part_offset[i] = n_parts;
        }));
    OJ_TRY(m->work->scan(part_offset, n));
    layer->n_parts = m->flat->n_parts;
    if (oj_flat_is_points(m->flat) || raw.left_out != NULL)
        return m->work->read(part_offset + n, &layer->n_parts);
    return OJ_OK;
}

static oj_status make_parts(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    int64_t n;
    OJ_TRY(make_part_offsets(m));
    n = layer->n_parts;
    OJ_TRY(m->keep->make(n, &layer->part_kind, &layer->part_feature));
    OJ_TRY(m->keep->make(n + 1, &layer->ring_offset));
    OJ_TRY(m->work->make(n, &m->raw.part_ring));
    const struct oj_cuda_layer to = *layer;
    const struct layer_raw raw = m->raw;
    OJ_TRY(m->work->each(
        n + 1,
        [=] __device__(int64_t p)
        {
            int64_t f, o, q, first;
            to.ring_offset.data[p] = p < n;
            if (p == n)
                return;
            f = oj_cuda_list_of_entry<int64_t>(to.part_offset.data, 0,
                                               to.n_features, p);
            o = ordinal_at(to.ordinal_of.data, f);
            to.part_feature.data[p] = (int32_t)f;
            to.part_kind.data[p] = OJ_PART_POINT;
            raw.part_ring[p] = o;
            if (raw.part_offset == NULL)
                return;
            q = raw.part_offset[o] + (p - to.part_offset.data[f]);
            first = raw.ring_offset[q];
            to.part_kind.data[p] = raw.part_kind[q];
            raw.part_ring[p] = first;
            to.ring_offset.data[p] = raw.ring_offset[q + 1] - first;
        }));
    return m->work->scan(layer->ring_offset.data, n);
}

/* Makes segment_offset, and ring_first and ring_part of m->raw. A ring of one
 * vertex becomes a segment with equal ends; its ring_first is the bitwise
 * complement of the vertex. */
static oj_status make_rings(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    int64_t n = oj_flat_is_points(m->flat) ? layer->n_parts : m->flat->n_rings;
    if (m->raw.left_out != NULL)
        OJ_TRY(m->work->read(layer->ring_offset.data + layer->n_parts, &n));
    layer->n_rings = n;
    OJ_TRY(m->work->make(n, &m->raw.ring_first, &m->raw.ring_part));
    OJ_TRY(m->keep->make(n + 1, &layer->segment_offset));
    const struct oj_cuda_layer to = *layer;
    const struct layer_raw raw = m->raw;
    OJ_TRY(m->work->each(
        n + 1,
        [=] __device__(int64_t g)
        {
            int64_t p, r, first, n_vertices = 1;
            to.segment_offset.data[g] = 0;
            if (g == n)
                return;
            p = oj_cuda_list_of_entry<int64_t>(to.ring_offset.data, 0,
                                               to.n_parts, g);
            first = r = raw.part_ring[p] + (g - to.ring_offset.data[p]);
            if (raw.vertex_offset != NULL)
            {
                first = raw.vertex_offset[r];
                n_vertices = raw.vertex_offset[r + 1] - first;
            }
            raw.ring_part[g] = (int32_t)p;
            raw.ring_first[g] = n_vertices == 1 ? ~first : first;
            to.segment_offset.data[g] =
                n_vertices > 1 ? n_vertices - 1 : n_vertices;
        }));
    return m->work->scan_and_read_total(layer->segment_offset.data, n,
                                        &layer->n_segments);
}

static oj_status make_segments(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    int64_t n = layer->n_segments;
    if (n > INT32_MAX)
        return oj_fail(m->work->err, OJ_ERR_UNSUPPORTED,
                       "the join layer has %lld segments, and a GPU can index "
                       "at most %d; -memory SIZE makes tiles, which have fewer",
                       (long long)n, INT32_MAX);
    OJ_TRY(m->keep->make(n, &layer->segment, &layer->segment_feature));
    if ((m->flat->part_kinds & OJ_PART_POLYGON) != 0)
        OJ_TRY(m->keep->make(n, &layer->segment_part));
    const struct oj_cuda_layer to = *layer;
    const struct layer_raw raw = m->raw;
    if (layer->short_points)
        return m->work->each(n,
                             [=] __device__(int64_t s)
                             {
                                 int64_t o = ordinal_at(to.ordinal_of.data, s);
                                 double x = raw.x[o], y = raw.y[o];
                                 to.segment.data[s] = {x, y, x, y};
                                 to.segment_feature.data[s] = (int32_t)s;
                             });
    return m->work->each(
        n,
        [=] __device__(int64_t s)
        {
            int64_t g = oj_cuda_list_of_entry<int64_t>(to.segment_offset.data,
                                                       0, to.n_rings, s);
            int64_t a = raw.ring_first[g], b = ~a;
            if (a < 0)
                a = b;
            else
            {
                a += s - to.segment_offset.data[g];
                b = a + 1;
            }
            to.segment.data[s] = {raw.x[a], raw.y[a], raw.x[b], raw.y[b]};
            to.segment_feature.data[s] = to.part_feature.data[raw.ring_part[g]];
            if (to.segment_part.data != NULL)
                to.segment_part.data[s] = raw.ring_part[g];
        });
}

static oj_status compute_layer_extent(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    struct oj_box e = oj_box_empty();
    if (layer->n_segments > 0)
    {
        OJ_TRY(oj_cuda_reduce(m->work, layer->n_segments,
                              box_of_segment{layer->segment.data}, join_boxes(),
                              &e));
        layer->magnitude = oj_box_largest_coordinate(&e);
    }
    layer->x0 = e.x0;
    layer->y0 = e.y0;
    layer->x1 = e.x1;
    layer->y1 = e.y1;
    return OJ_OK;
}

/* Returns 1 if every feature of a layer of points has finite coordinates. */
static int all_points_finite(const struct oj_flat *flat)
{
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        if (!(isfinite(flat->x[i]) && isfinite(flat->y[i])))
            return 0;
    }
    return 1;
}

/* --- columns -------------------------------------------------------------- */

int oj_cuda_needs_columns(const struct oj_relation *relation,
                          const struct oj_flat *join_side)
{
    return relation->exclude_self || relation->unordered_pairs != 0 ||
           relation->exclude_same_geometry || join_side->on_class != NULL ||
           join_side->exclude_class != NULL;
}

/* Copies a column to the device and sorts it by rank. If host is NULL (the
 * layer has no such column), *out is NULL. */
template <typename T>
static oj_status upload_column_by_rank(struct layer_build *m, const T *host,
                                       const T **out)
{
    const int32_t *ordinal_of = m->layer->ordinal_of.data;
    int64_t n = m->layer->n_features;
    const T *raw = NULL;
    if (ordinal_of == NULL)
        return upload_array(m->keep, host, n, out);
    OJ_TRY(upload_array(m->work, host, n, &raw));
    return m->keep->gather(n, raw, ordinal_of, out);
}

static oj_status upload_fids_and_classes(struct layer_build *m,
                                         const struct oj_relation *relation)
{
    struct oj_cuda_work work(m->keep);
    struct oj_cuda_columns *columns = &m->layer->columns;
    const struct oj_flat *flat = m->flat;
    m->work = &work;
    work.doing = "copying columns of the join layer";
    if (relation->exclude_self || relation->unordered_pairs != 0)
        OJ_TRY(upload_column_by_rank(m, flat->fid, &columns->fid));
    OJ_TRY(upload_column_by_rank(m, flat->on_class, &columns->on_class));
    OJ_TRY(
        upload_column_by_rank(m, flat->exclude_class, &columns->exclude_class));
    return work.wait();
}

/* --- the layer ------------------------------------------------------------ */

static oj_status make_layer(struct layer_build *m, const uint8_t *left_out,
                            const int32_t *tie_rank)
{
    struct oj_cuda_work work(m->keep);
    struct oj_cuda_layer *layer = m->layer;
    m->work = &work;
    work.doing = "copying the join layer";
    OJ_TRY(upload_flat_arrays(m, left_out, tie_rank));
    if (work.device->uploaded != NULL)
        OJ_TRY(work.check(cudaEventRecord(work.device->uploaded, work.stream)));
    OJ_TRY(invert_tie_ranks(m));
    if (layer->short_points)
        layer->n_parts = layer->n_rings = layer->n_segments = layer->n_features;
    else
    {
        OJ_TRY(make_parts(m));
        OJ_TRY(make_rings(m));
    }
    OJ_TRY(make_segments(m));
    OJ_TRY(compute_layer_extent(m));
    return work.wait();
}

oj_status oj_cuda_layer_make(struct oj_cuda_work *keep,
                             const struct oj_flat *flat,
                             const uint8_t *left_out, const int32_t *tie_rank,
                             const struct oj_relation *relation,
                             struct oj_cuda_layer *out)
{
    struct oj_cuda_layer layer = {};
    struct layer_build m = {flat, keep, NULL, {}, &layer};
    oj_status status;
    layer.n_features = flat->n_features;
    layer.only_points = oj_flat_is_points(flat);
    layer.short_points = layer.only_points && all_points_finite(flat);
    status = make_layer(&m, left_out, tie_rank);
    if (status == OJ_OK && relation != NULL &&
        oj_cuda_needs_columns(relation, flat))
        status = upload_fids_and_classes(&m, relation);
    /* Waits, because copies from the host's arrays may still be running. */
    if (status != OJ_OK)
        (void)cudaStreamSynchronize(keep->stream);
    else
        *out = layer;
    return status;
}

/* --- boxes ---------------------------------------------------------------- */

/* Computes the bounding boxes of the features, one warp per feature. */
static __global__ void
compute_boxes_of_features(const __grid_constant__ struct oj_cuda_layer layer,
                          struct oj_box *out)
{
    int64_t f = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 32, end;
    int lane = (int)(threadIdx.x % 32);
    struct oj_box box = oj_box_empty();
    if (f >= layer.n_features)
        return;
    end = oj_cuda_first_segment_of_feature(layer, f + 1);
    for (int64_t s = oj_cuda_first_segment_of_feature(layer, f) + lane; s < end;
         s += 32)
        extend_box_by_segment(&box, layer.segment.data[s]);
    oj_cuda_box_of_warp(&box);
    if (lane == 0)
        out[f] = box;
}

oj_status oj_cuda_layer_boxes(struct oj_cuda_work *work,
                              const struct oj_cuda_layer *layer,
                              struct oj_box *box)
{
    return work->run(32 * layer->n_features, compute_boxes_of_features, *layer,
                     box);
}
