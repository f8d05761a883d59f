/* Pairs of points and features whose envelopes contain them. Each thread walks
 * the packed tree of envelopes for one point; the points of a warp lie close
 * together. One pass counts the pairs, the next one writes them. The pairs of
 * each row are then sorted by rank, if needed. */
#include "../../foundations/device/cuda_box_reduce.cuh"
#include "cuda_point_pair_kernels.cuh"

/* The join side as kernels read it; an entry is a feature. */
struct envelopes
{
    struct oj_device_tree tree;
    const struct oj_box *box; /* [tree.n] envelope of each entry */
    const int32_t *rank;      /* [tree.n] rank of each entry */
};

struct pairs_index : oj_cuda_index
{
    struct envelopes side;
};

static int supports_points_in_boxes_join(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         const struct oj_flat *input)
{
    (void)input;
    return oj_relation_is_bbox(relation) && !oj_flat_is_points(join_side) &&
           !relation->exclude_same_geometry && join_side->max_distance == NULL;
}

/* --- the join side -------------------------------------------------------- */

/* Builds the tree of envelopes. An entry of the tree is a feature, so the array
 * tree.order [n], the feature of each entry, serves as the array of ranks. */
static oj_status build_envelope_tree(struct oj_cuda_index *index,
                                     struct oj_cuda_work *keep)
{
    struct pairs_index *self = (struct pairs_index *)index;
    const struct oj_cuda_layer *layer = self->layer;
    struct oj_cuda_work work(keep);
    struct oj_cuda_tree tree;
    struct oj_box *from;
    int64_t n = layer->n_features;
    if (layer->n_segments == 0)
        return OJ_OK;
    OJ_TRY(work.make(n, &from));
    OJ_TRY(oj_cuda_layer_boxes(&work, layer, from));
    OJ_TRY(oj_cuda_tree_build(keep, layer, n, from, &tree));
    self->side.tree = tree.tree;
    self->side.rank = tree.order;
    return keep->gather<struct oj_box>(n, from, tree.order, &self->side.box);
}

/* Returns the bytes that a batch of n points needs. The number of pairs is not
 * known, so 16 per point are assumed. */
static int64_t batch_bytes(const struct oj_cuda_index *index, int64_t n)
{
    const int64_t pair_bytes = 2 * (int64_t)(sizeof(double) + sizeof(int32_t));
    (void)index;
    return n * (OJ_CUDA_POINT_ORDER_BYTES + OJ_CUDA_POINT_COLUMN_BYTES +
                2 * (int64_t)sizeof(int64_t) + 16 * pair_bytes);
}

/* --- walk through the tree ------------------------------------------------ */

/* Calls found(rank, entry) for each envelope that contains point i. */
template <typename Found, typename GoesOn>
static __device__ __forceinline__ void
visit_matches_of_point(const struct envelopes &side,
                       const struct point_batch &batch, int64_t i, Found found,
                       GoesOn)
{
    double x = batch.x[i], y = batch.y[i];
    struct oj_tree_walk walk;
    int64_t entry;
    if (!isfinite(x) || !isfinite(y))
        return;
    oj_tree_walk_start(&walk, &side.tree, x, y, 0.0);
    while ((entry = oj_tree_walk_next(&walk, &side.tree)) >= 0)
    {
        const struct oj_box *box = &side.box[entry];
        int32_t rank = side.rank[entry];
        if (box->x0 <= x && x <= box->x1 && box->y0 <= y && y <= box->y1 &&
            oj_pair_rule_passes(&batch.rule, i, rank, 0))
            found(rank, entry);
    }
}

/* Returns NaN: pairs by envelopes have no distance as measure. */
static __device__ __forceinline__ double
distance_to_entry(const struct envelopes &, double, double, int64_t)
{
    return NAN;
}

static oj_status list_points_in_boxes(const struct oj_cuda_index *index,
                                      struct oj_cuda_listing *l)
{
    const struct pairs_index *self = (const struct pairs_index *)index;
    int32_t *order;
    OJ_TRY(oj_cuda_tree_order_points(l, &self->side.tree, l->points, &order));
    return list_found_pairs<6>(l, self->side,
                               make_point_join_batch(self, l->points, order),
                               INT64_MAX, 0, self->relation.any_order);
}

static oj_status sum_points_in_boxes(const struct oj_cuda_index *index,
                                     struct oj_cuda_work *work,
                                     const struct oj_cuda_points *points,
                                     const struct oj_cuda_tally *tally)
{
    const struct envelopes *side = &((const struct pairs_index *)index)->side;
    int32_t *order;
    OJ_TRY(oj_cuda_tree_order_points(work, &side->tree, points, &order));
    return add_found_pairs_to_sums<6>(
        work, *side, make_point_join_batch(index, points, order), tally);
}

const struct oj_cuda_family oj_cuda_point_pairs = {
    "pairs of points, by a packed tree",
    supports_points_in_boxes_join,
    sizeof(struct pairs_index),
    build_envelope_tree,
    1,
    NULL,
    batch_bytes,
    NULL,
    list_points_in_boxes,
    sum_points_in_boxes,
};
