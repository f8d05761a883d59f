/* Engine for similar vectors: searches the tree of blocks for each row, the
 * nearer child first. Pairs that a block's single-precision sums do not exclude
 * are measured in double precision. In a join of the k most similar, the limit
 * is the k-th smallest difference so far; it only decreases, so the order of
 * the search does not affect the answer. Rows are searched in the order of
 * their nearest blocks, for better use of the processor's caches.
 *
 * If all vectors below a node of the tree are equal, a row skips the node once
 * it has k pairs that rank before its pairs with these vectors. So a row does
 * not measure each of many equal vectors. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "../similar_text/similar_engine_sides.h"
#include "vector_blocks.h"

#include <math.h>
#include <string.h>

enum
{
    MOST_WAITING = 64, /* stack size; at most 28 nodes wait in a tree of 2^27
                          blocks, which hold 2^31 vectors */
    ROWS_AT_ONCE = 64  /* rows per task when nearest blocks are found */
};

struct vectors_index
{
    struct oj_row_index shared;
    struct oj_vector_blocks blocks;
    int32_t *equal_rank; /* [nodes] for a node whose vectors are all equal, the
                            least tie rank of its features; for others -1. NULL
                            if no node above a block has only equal vectors */

    /* The current batch. */
    struct oj_similar_sides sides;
    struct oj_keyed *order, *room; /* [input rows] keys by nearest block, and
                                      scratch; the sorted keys are in `order` */
};

/* The k smallest differences of a row so far, as a heap with the greatest on
 * top. */
struct least_differences
{
    int64_t n, capacity;
    double *value;
};

struct vectors_worker
{
    struct oj_row_worker shared;
    float *at; /* coordinates of the current row */
    struct least_differences least;
    float limit;
};

/* --- the join side -------------------------------------------------------- */

static void free_vectors_index(struct oj_index *wrapped)
{
    struct vectors_index *self = (void *)wrapped;
    oj_free(self->equal_rank);
    oj_vector_blocks_free(&self->blocks);
}

static const double *first_vector_of_node(const struct vectors_index *self,
                                          const struct oj_vector_node *node)
{
    return oj_vector_at(&self->shared.args.join_side->vectors,
                        self->blocks.row[node->first * OJ_WIDE]);
}

static int are_vectors_equal(const struct vectors_index *self, const double *a,
                             const double *b)
{
    return memcmp(a, b, (size_t)self->blocks.n_dimensions * sizeof *a) == 0;
}

static int32_t find_equal_rank_of_block(const struct vectors_index *self,
                                        const struct oj_vector_node *node)
{
    const struct oj_vectors *vectors = &self->shared.args.join_side->vectors;
    const int32_t *row = self->blocks.row + node->first * OJ_WIDE;
    int32_t least = INT32_MAX;
    for (int c = 0; c < OJ_WIDE && row[c] >= 0; c++)
    {
        int32_t rank = oj_tie_rank(self->shared.args.tie_rank, row[c]);
        if (!are_vectors_equal(self, oj_vector_at(vectors, row[0]),
                               oj_vector_at(vectors, row[c])))
            return -1;
        least = rank < least ? rank : least;
    }
    return least;
}

/* Sets equal_rank of a node and of the nodes below it. Sets *is_any to 1 if a
 * node of several blocks has only equal vectors. */
static void find_equal_ranks(const struct vectors_index *self,
                             const struct oj_vector_node *node, int *is_any)
{
    struct oj_vector_node child[2];
    int32_t rank[2];
    if (node->end - node->first == 1)
    {
        self->equal_rank[node->at] = find_equal_rank_of_block(self, node);
        return;
    }
    oj_vector_children(node, child);
    for (int i = 0; i < 2; i++)
    {
        find_equal_ranks(self, &child[i], is_any);
        rank[i] = self->equal_rank[child[i].at];
    }
    self->equal_rank[node->at] = -1;
    if (rank[0] < 0 || rank[1] < 0 ||
        !are_vectors_equal(self, first_vector_of_node(self, &child[0]),
                           first_vector_of_node(self, &child[1])))
        return;
    self->equal_rank[node->at] = rank[0] < rank[1] ? rank[0] : rank[1];
    *is_any = 1;
}

static oj_status make_equal_ranks(struct vectors_index *self,
                                  struct oj_error *err)
{
    const struct oj_vector_node root = {0, self->blocks.n_blocks, 0};
    int is_any = 0;
    if (self->blocks.n_blocks == 0)
        return OJ_OK;
    OJ_NEW(self->equal_rank, 2 * self->blocks.n_blocks - 1, err);
    find_equal_ranks(self, &root, &is_any);
    if (!is_any)
    {
        oj_free(self->equal_rank);
        self->equal_rank = NULL;
    }
    return OJ_OK;
}

/* --- the k smallest differences ------------------------------------------- */

/* Replaces the top of the heap by value and restores the heap. */
static void sift_down(struct least_differences *least, double value)
{
    int64_t i = 0, child;
    while ((child = 2 * i + 1) < least->n)
    {
        child += child + 1 < least->n &&
                 least->value[child + 1] > least->value[child];
        if (least->value[child] <= value)
            break;
        least->value[i] = least->value[child];
        i = child;
    }
    least->value[i] = value;
}

static oj_status keep_smallest_differences(struct least_differences *least,
                                           int64_t k, double value,
                                           struct oj_error *err)
{
    int64_t i = least->n;
    if (least->n == k)
    {
        if (value < least->value[0])
            sift_down(least, value);
        return OJ_OK;
    }
    OJ_ROOM(least->value, least->n, least->n + 1, least->capacity, err);
    least->n++;
    for (; i > 0 && least->value[(i - 1) / 2] < value; i = (i - 1) / 2)
        least->value[i] = least->value[(i - 1) / 2];
    least->value[i] = value;
    return OJ_OK;
}

/* --- a row ---------------------------------------------------------------- */

static oj_status measure_pair(const struct vectors_index *self,
                              struct vectors_worker *worker, int64_t row,
                              int32_t feature, struct oj_error *err)
{
    const struct oj_row_index *shared = &self->shared;
    const struct oj_relation *relation = &shared->args.relation;
    double difference;
    if (!oj_pair_filter_accepts(&shared->filter, row, feature))
        return OJ_OK;
    worker->shared.n_candidates++;
    difference = oj_pair_vector_difference(relation, shared->input, row,
                                           shared->args.join_side, feature);
    if (!(difference <= relation->vector.max_difference))
        return OJ_OK;
    if (relation->k < OJ_EVERY_PAIR)
    {
        OJ_TRY(keep_smallest_differences(&worker->least, relation->k,
                                         difference, err));
        if (worker->least.n == relation->k)
            worker->limit = oj_vector_blocks_sum_limit(&self->blocks,
                                                       worker->least.value[0]);
    }
    return oj_ranking_add(&worker->shared.ranking, feature, difference, err);
}

/* Returns 1 if the row has k pairs that come before those with the features of
 * this node. */
static int is_node_beyond_kth_pair(const struct vectors_index *self,
                                   const struct vectors_worker *worker,
                                   int64_t row,
                                   const struct oj_vector_node *node)
{
    const struct oj_row_index *shared = &self->shared;
    const struct oj_ranking *ranking = &worker->shared.ranking;
    const int32_t rank = self->equal_rank[node->at];
    double difference;
    if (rank < 0)
        return 0;
    difference = oj_pair_vector_difference(
        &shared->args.relation, shared->input, row, shared->args.join_side,
        self->blocks.row[node->first * OJ_WIDE]);
    return !(difference <= ranking->bound) ||
           (difference == ranking->bound && rank >= ranking->last_rank);
}

OJ_INLINE oj_status search_block(enum oj_vector_norm norm,
                                 const struct vectors_index *self,
                                 struct vectors_worker *worker, int64_t row,
                                 int64_t block, struct oj_error *err)
{
    const struct oj_vector_blocks *blocks = &self->blocks;
    float sum[OJ_WIDE];
    if (!oj_vector_block_sums(
            norm, blocks->value + block * blocks->n_padded * OJ_WIDE,
            blocks->n_padded, worker->at, worker->limit, sum))
        return OJ_OK;
    for (int c = 0; c < OJ_WIDE; c++)
    {
        int32_t feature = blocks->row[block * OJ_WIDE + c];
        if (sum[c] <= worker->limit && feature >= 0)
            OJ_TRY(measure_pair(self, worker, row, feature, err));
    }
    return OJ_OK;
}

OJ_INLINE oj_status search_block_tree(enum oj_vector_norm norm,
                                      const struct vectors_index *self,
                                      struct vectors_worker *worker,
                                      int64_t row, struct oj_error *err)
{
    const struct oj_vector_blocks *blocks = &self->blocks;
    struct
    {
        struct oj_vector_node node;
        float sum;
    } waiting[MOST_WAITING] = {{{0, blocks->n_blocks, 0}, 0.0f}};
    int n = 1;
    while (n > 0)
    {
        const struct oj_vector_node node = waiting[--n].node;
        struct oj_vector_node child[2];
        float sum[2];
        int farther;
        if (!(waiting[n].sum <= worker->limit) ||
            (self->equal_rank != NULL &&
             is_node_beyond_kth_pair(self, worker, row, &node)))
            continue;
        if (node.end - node.first == 1)
        {
            OJ_TRY(search_block(norm, self, worker, row, node.first, err));
            continue;
        }
        oj_vector_children(&node, child);
        for (int i = 0; i < 2; i++)
            sum[i] = oj_vector_box_lower_bound(norm, &blocks->box[child[i].at],
                                               worker->at);
        farther = sum[1] >= sum[0];
        for (int i = 0; i < 2; i++)
        {
            int which = i == 0 ? farther : !farther;
            waiting[n].node = child[which];
            waiting[n].sum = sum[which];
            n += sum[which] <= worker->limit;
        }
    }
    return OJ_OK;
}

OJ_CLONES static oj_status
search_block_tree_by_norm(const struct vectors_index *self,
                          struct vectors_worker *worker, int64_t row,
                          struct oj_error *err)
{
    switch (self->blocks.norm)
    {
        case OJ_NORM_L1:
            return search_block_tree(OJ_NORM_L1, self, worker, row, err);
        case OJ_NORM_LINF:
            return search_block_tree(OJ_NORM_LINF, self, worker, row, err);
        default: /* cosine differences are compared as l2 distances of unit
                    vectors */
            return search_block_tree(OJ_NORM_L2, self, worker, row, err);
    }
}

static oj_status search_row(struct oj_row_index *shared,
                            struct oj_row_worker *of_row, int64_t row,
                            struct oj_error *err)
{
    const struct vectors_index *self = (void *)shared;
    struct vectors_worker *worker = (void *)of_row;
    oj_vector_blocks_write_coordinates(
        &self->blocks, oj_vector_at(&shared->input->vectors, row), worker->at);
    worker->least.n = 0;
    worker->limit = oj_vector_blocks_sum_limit(
        &self->blocks, shared->args.relation.vector.max_difference);
    return search_block_tree_by_norm(self, worker, row, err);
}

/* --- a batch -------------------------------------------------------------- */

/* Sets the sort key of a row to its nearest block: the one to which a descent
 * leads that always takes the nearer child. */
static oj_status find_nearest_leaf_block_of_row(int64_t i, int thread,
                                                void *user,
                                                struct oj_error *err)
{
    struct vectors_index *self = user;
    const struct oj_vector_blocks *blocks = &self->blocks;
    const struct vectors_worker *worker = self->shared.worker;
    float *at = worker[thread].at;
    struct oj_vector_node node = {0, blocks->n_blocks, 0};
    (void)err;
    oj_vector_blocks_write_coordinates(
        blocks,
        oj_vector_at(&self->shared.input->vectors, self->order[i].value), at);
    while (node.end - node.first > 1)
    {
        struct oj_vector_node child[2];
        oj_vector_children(&node, child);
        node = child[oj_vector_box_lower_bound(OJ_NORM_L2,
                                               &blocks->box[child[1].at], at) <
                     oj_vector_box_lower_bound(OJ_NORM_L2,
                                               &blocks->box[child[0].at], at)];
    }
    self->order[i].key = (uint64_t)node.first;
    return OJ_OK;
}

/* Sorts the rows that have a vector by their nearest block. */
static oj_status sort_rows_by_nearest_block(struct vectors_index *self,
                                            struct oj_error *err)
{
    const struct oj_flat *input = self->shared.input;
    struct oj_keyed *sorted;
    int64_t n = 0;
    OJ_NEW(self->order, input->n_features, err);
    OJ_NEW(self->room, input->n_features, err);
    for (int64_t row = 0; row < input->n_features; row++)
    {
        if (oj_feature_may_pair(input, row))
            self->order[n++].value = row;
    }
    OJ_TRY(oj_parallel_try(self->shared.n_threads, n, ROWS_AT_ONCE,
                           find_nearest_leaf_block_of_row, self, err));
    sorted = oj_radix_sort(self->order, self->room, n);
    if (sorted == self->room)
    {
        self->room = self->order;
        self->order = sorted;
    }
    self->shared.n_rows = n;
    return OJ_OK;
}

static int64_t row_at_place_by_block(const struct oj_row_index *shared,
                                     int64_t i)
{
    return ((const struct vectors_index *)(const void *)shared)->order[i].value;
}

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct vectors_index *self = (void *)shared;
    struct vectors_worker *worker = shared->worker;
    OJ_TRY(oj_similar_sides_make(shared, &self->sides, err));
    for (int t = 0; t < shared->n_threads; t++)
    {
        if (worker[t].at == NULL)
            OJ_NEW(worker[t].at, self->blocks.n_padded, err);
    }
    if (self->blocks.n_rows > 0 && shared->n_rows > 0)
        return sort_rows_by_nearest_block(self, err);
    shared->n_rows = 0;
    return OJ_OK;
}

static void end_batch(struct oj_row_index *shared)
{
    struct vectors_index *self = (void *)shared;
    oj_free(self->order);
    oj_free(self->room);
    self->order = self->room = NULL;
}

static void free_worker(struct oj_row_worker *worker)
{
    struct vectors_worker *w = (void *)worker;
    oj_free(w->at);
    oj_free(w->least.value);
}

static const struct oj_row_method walking = {.worker_size =
                                                 sizeof(struct vectors_worker),
                                             .start = start_batch,
                                             .row_of = row_at_place_by_block,
                                             .search = search_row,
                                             .end = end_batch,
                                             .free_worker = free_worker};

static oj_status build_vectors_index(struct oj_index *wrapped,
                                     const struct oj_index_args *args,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct vectors_index *self = oj_row_index_begin(wrapped, &walking, args);
    const struct oj_flat *join_side = args->join_side;
    if (join_side->n_features == 0)
        return OJ_OK;
    if (join_side->vectors.value == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "op similar compares vectors of both sides, and the "
                       "join side has none: name its columns in vector");
    OJ_TRY(oj_vector_blocks_make(&join_side->vectors, join_side->n_features,
                                 args->relation.vector.norm,
                                 args->options.n_threads, &self->blocks, err));
    OJ_TRY(make_equal_ranks(self, err));
    stats->index_bytes += oj_vector_blocks_bytes(&self->blocks);
    return OJ_OK;
}

/* Estimates the seconds on one core and on a GPU, for clustered vectors, which
 * boxes separate well. For other vectors the cost is much higher on the CPU,
 * hardly on a GPU (BENCHMARKS.md). */
static void estimate_cpu_and_gpu_seconds(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         double rows, double *cpu_s,
                                         double *gpu_s)
{
    double n = (double)join_side->vectors.n_dimensions;
    double both = rows + (double)join_side->n_features;
    double k = relation->k < OJ_EVERY_PAIR ? (double)relation->k : 0.0;
    *cpu_s = rows * (1.1e-6 + 80e-9 * n + 0.2e-6 * k);
    *gpu_s = both * (30e-9 + 1.5e-9 * n) + rows * 10e-9 * k;
}

static const struct oj_engine_cost cost = {.expect =
                                               estimate_cpu_and_gpu_seconds};

const struct oj_engine oj_cpu_similar_vectors = {
    .name = "blocks of vectors",
    .supports = oj_similar_supports_vector_join,
    .index_size = sizeof(struct vectors_index),
    .build = build_vectors_index,
    .join = oj_row_join,
    .free_side = free_vectors_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options,
    .points_cost = &cost};
