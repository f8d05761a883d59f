#include "cuda_shape_side.cuh"

#include "../../../flatten/base/oj_alloc.h"

/* Host arrays of a side. Owner. */
struct shape_arrays
{
    int64_t n_blocks;
    int64_t *vertex, *block_offset;
    int32_t *n_vertices;
    struct oj_cuda_shape_block *block;
};

/* Appends the blocks of vertices first .. end - 1 or, if of_segments is 1, of
 * the segments between them. */
static void append_blocks_of_vertex_run(struct shape_arrays *to, int64_t first,
                                        int64_t end, int of_segments)
{
    int64_t n = end - first - of_segments;
    for (int64_t i = 0; i == 0 || i < n; i += OJ_SHAPE_WARP)
    {
        struct oj_cuda_shape_block block = {first + i, OJ_SHAPE_WARP};
        if (n - i < OJ_SHAPE_WARP)
            block.n = (int32_t)(n - i);
        to->block[to->n_blocks++] = block;
    }
}

/* Appends the blocks of a feature: of its segments if of_segments is 1,
 * otherwise of its vertices. In the blocks, vertex `base` of flat has the
 * number 0. */
static void append_blocks_of_feature(struct shape_arrays *to,
                                     const struct oj_flat *flat,
                                     int64_t feature, int64_t base,
                                     int of_segments)
{
    int64_t first, end;
    oj_flat_vertex_range(flat, feature, &first, &end);
    if (first == end)
        return;
    if (!of_segments || oj_flat_is_points(flat))
    {
        append_blocks_of_vertex_run(to, first - base, end - base, of_segments);
        return;
    }
    for (int64_t ring = flat->ring_offset[flat->part_offset[feature]];
         ring < flat->ring_offset[flat->part_offset[feature + 1]]; ring++)
        append_blocks_of_vertex_run(to, flat->vertex_offset[ring] - base,
                                    flat->vertex_offset[ring + 1] - base,
                                    of_segments);
}

/* Returns an upper bound of the number of blocks: the number of full blocks,
 * plus one per run of vertices for its last, partly filled block. */
static int64_t most_vertex_blocks(const struct oj_flat *flat, int64_t first,
                                  int64_t n, int64_t n_vertices)
{
    int64_t runs = n;
    if (!oj_flat_is_points(flat))
        runs += flat->ring_offset[flat->part_offset[first + n]] -
                flat->ring_offset[flat->part_offset[first]];
    return n_vertices / OJ_SHAPE_WARP + runs;
}

static oj_status make_host_arrays(struct shape_arrays *to,
                                  const struct oj_flat *flat, int64_t first,
                                  int64_t n, int of_segments, int64_t *base,
                                  int64_t *n_vertices,
                                  struct oj_cuda_shapes *out,
                                  struct oj_error *err)
{
    int64_t v, end = 0, n_blocks;
    oj_flat_vertex_range(flat, first, base, &end);
    oj_flat_vertex_range(flat, first + n - 1, &v, &end);
    /* a point feature without coordinates counts as a vertex, too */
    *n_vertices = (oj_flat_is_points(flat) ? first + n : end) - *base;
    out->all_vertices = *n_vertices;
    n_blocks = most_vertex_blocks(flat, first, n, *n_vertices);
    to->block =
        (struct oj_cuda_shape_block *)oj_malloc(n_blocks, sizeof *to->block);
    to->vertex = (int64_t *)oj_malloc(n, sizeof *to->vertex);
    to->n_vertices = (int32_t *)oj_malloc(n, sizeof *to->n_vertices);
    to->block_offset = (int64_t *)oj_malloc(n + 1, sizeof *to->block_offset);
    if (to->block == NULL || to->vertex == NULL || to->n_vertices == NULL ||
        to->block_offset == NULL)
        return oj_fail_nomem(err, n_blocks + 3 * n, sizeof *to->block);
    for (int64_t i = 0; i < n; i++)
    {
        oj_flat_vertex_range(flat, first + i, &v, &end);
        if (end - v > INT32_MAX)
            return oj_fail(err, OJ_ERR_UNSUPPORTED,
                           "a feature has too many vertices for the GPU; "
                           "simplify it, or join on the CPU (backend cpu)");
        to->vertex[i] = v - *base;
        to->n_vertices[i] = (int32_t)(end - v);
        if (end - v > out->most_vertices)
            out->most_vertices = end - v;
        to->block_offset[i] = to->n_blocks;
        append_blocks_of_feature(to, flat, first + i, *base, of_segments);
    }
    to->block_offset[n] = to->n_blocks;
    return OJ_OK;
}

/* Computes the boxes of blocks (of segments or of vertices) and of features. */
static oj_status make_boxes(struct oj_cuda_work *work, int64_t n_blocks,
                            int of_segments, struct oj_cuda_shape_side *out)
{
    struct oj_box *box;
    double *sides;
    OJ_TRY(work->make(n_blocks, &box));
    OJ_TRY(work->make(OJ_SHAPE_SIDES * out->n, &sides));
    out->box = box;
    out->sides = sides;
    const struct oj_cuda_shape_side side = *out;
    OJ_TRY(work->each(n_blocks,
                      [=] __device__(int64_t i)
                      {
                          struct oj_cuda_shape_block of = side.block[i];
                          struct oj_box around = oj_box_empty();
                          for (int64_t v = of.first;
                               v < of.first + of.n + of_segments; v++)
                              oj_box_add_point(&around, side.x[v], side.y[v]);
                          box[i] = oj_box_widened(&around, 0.0);
                      }));
    return work->each(side.n,
                      [=] __device__(int64_t i)
                      {
                          struct oj_box around = oj_box_empty();
                          double *to = sides + OJ_SHAPE_SIDES * i;
                          int64_t v = side.vertex[i];
                          int64_t n = side.n_vertices[i];
                          if (n == 0)
                              return;
                          for (int64_t b = side.block_offset[i];
                               b < side.block_offset[i + 1]; b++)
                              oj_box_add_box(&around, &side.box[b]);
                          to[0] = around.x0;
                          to[1] = around.y0;
                          to[2] = around.x1;
                          to[3] = around.y1;
                          to[4] = side.x[v];
                          to[5] = side.y[v];
                          to[6] = side.x[v + n - 1];
                          to[7] = side.y[v + n - 1];
                          to[8] = 2.0 * oj_box_rounding_error(
                                            oj_box_largest_coordinate(&around));
                      });
}

static oj_status upload_arrays(struct oj_cuda_work *work,
                               const struct shape_arrays *arrays,
                               const struct oj_flat *flat, int64_t base,
                               int64_t n_vertices, int of_segments,
                               struct oj_cuda_shape_side *side)
{
    OJ_TRY(oj_cuda_upload_column(work, flat->x + base, n_vertices, &side->x));
    OJ_TRY(oj_cuda_upload_column(work, flat->y + base, n_vertices, &side->y));
    OJ_TRY(oj_cuda_upload_column(work, arrays->vertex, side->n, &side->vertex));
    OJ_TRY(oj_cuda_upload_column(work, arrays->n_vertices, side->n,
                                 &side->n_vertices));
    OJ_TRY(oj_cuda_upload_column(work, arrays->block_offset, side->n + 1,
                                 &side->block_offset));
    OJ_TRY(oj_cuda_upload_column(work, arrays->block, arrays->n_blocks,
                                 &side->block));
    OJ_TRY(make_boxes(work, arrays->n_blocks, of_segments, side));
    return work->wait();
}

oj_status oj_cuda_shapes_make(struct oj_cuda_work *work,
                              const struct oj_flat *flat, int64_t first,
                              int64_t n, const struct oj_relation *relation,
                              struct oj_cuda_shapes *out)
{
    int of_segments = oj_distance_uses_segments(relation->distance);
    struct shape_arrays arrays = {};
    int64_t base = 0, n_vertices = 0;
    oj_status status;
    *out = {};
    out->side.n = n;
    OJ_TRY(
        oj_cuda_upload_columns(work, flat, first, n, relation, &out->columns));
    if (flat->max_distance != NULL)
        OJ_TRY(oj_cuda_upload_column(work, flat->max_distance + first, n,
                                     &out->max_distance));
    status = make_host_arrays(&arrays, flat, first, n, of_segments, &base,
                              &n_vertices, out, work->err);
    if (status == OJ_OK)
        status = upload_arrays(work, &arrays, flat, base, n_vertices,
                               of_segments, &out->side);
    /* waits, because copies of the arrays may still be running */
    (void)cudaStreamSynchronize(work->stream);
    oj_free(arrays.vertex);
    oj_free(arrays.n_vertices);
    oj_free(arrays.block_offset);
    oj_free(arrays.block);
    return status;
}

oj_status oj_cuda_shapes_index_build(struct oj_cuda_index *index,
                                     struct oj_cuda_work *work)
{
    const struct oj_flat *flat = index->layer->flat;
    return oj_cuda_shapes_make(work, flat, 0, flat->n_features,
                               &index->relation,
                               &((struct oj_cuda_shapes_index *)index)->of);
}
