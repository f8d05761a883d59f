/* The engine for joins of points with points by predicates: a pair are two
 * points with equal coordinates. The join side is a hash table; rows are looked
 * up in groups, so that the memory of a whole group is fetched at once.
 *
 *      first[bucket] .. first[bucket + 1] - 1 -> entry: x, y, class, feature
 *
 *  Classes of -on are part of the key: a thousand points on one place with
 * other classes cost nothing. Source: ours. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_hash_mix.h"
#include "../../foundations/relation/oj_index.h"
#include "../../pairs/selection/oj_parallel_row_search.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"

#define ROWS_PER_GROUP 256

#define NO_CLASS (-1)

struct located_point
{
    double x, y;
    int32_t on_class, feature;
};

struct equal_points_index
{
    struct oj_row_index shared;
    int bucket_bits;             /* the upper bits of a hash are its bucket */
    uint32_t *first;             /* [2^bucket_bits + 1] */
    struct located_point *entry; /* by bucket, those of a bucket in tie order */
};

/* --- keys ----------------------------------------------------------------- */

static int32_t on_class_of(const struct oj_flat *flat, int64_t feature)
{
    return flat->on_class != NULL ? flat->on_class[feature] : NO_CLASS;
}

/* 1 if the feature may be in a pair. */
static int has_point(const struct oj_flat *flat, int64_t feature)
{
    return flat->x[feature] == flat->x[feature] &&
           flat->y[feature] == flat->y[feature] &&
           (flat->on_class == NULL || flat->on_class[feature] >= 0);
}

static uint64_t hash_point(const struct oj_flat *flat, int64_t feature)
{
    uint64_t on_class = (uint64_t)(int64_t)on_class_of(flat, feature);
    double x = flat->x[feature] + 0.0, y = flat->y[feature] + 0.0; /* no -0 */
    return oj_hash_mix(oj_hash_mix(on_class, &x), &y);
}

static uint32_t bucket_of(const struct equal_points_index *self, uint64_t hash)
{
    /* the product's upper bits depend on all bits of the key */
    return (uint32_t)(hash * UINT64_C(0x9E3779B97F4A7C15) >>
                      (64 - self->bucket_bits));
}

/* --- the join side -------------------------------------------------------- */

static void free_side(struct oj_index *wrapped)
{
    struct equal_points_index *self = (void *)wrapped;
    oj_free(self->first);
    oj_free(self->entry);
}

/* Features in tie order: feature_of[rank], or NULL where FIDs ascend. */
static oj_status invert_tie_rank(const struct oj_index_args *args,
                                 int32_t **feature_of, struct oj_error *err)
{
    int64_t n = args->join_side->n_features;
    *feature_of = NULL;
    if (args->tie_rank == NULL)
        return OJ_OK;
    OJ_NEW(*feature_of, n, err);
    for (int64_t f = 0; f < n; f++)
        (*feature_of)[args->tie_rank[f]] = (int32_t)f;
    return OJ_OK;
}

static void fill_buckets(struct equal_points_index *self,
                         const int32_t *feature_of)
{
    const struct oj_flat *flat = self->shared.args.join_side;
    int64_t n_buckets = INT64_C(1) << self->bucket_bits;
    uint32_t total = 0;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        if (has_point(flat, f))
            self->first[bucket_of(self, hash_point(flat, f))]++;
    }
    for (int64_t bucket = 0; bucket <= n_buckets; bucket++)
    {
        total += self->first[bucket];
        self->first[bucket] = total; /* the end: entries go in from there */
    }
    for (int64_t rank = flat->n_features - 1; rank >= 0; rank--)
    {
        int64_t f = feature_of != NULL ? feature_of[rank] : rank;
        if (!has_point(flat, f))
            continue;
        self->entry[--self->first[bucket_of(self, hash_point(flat, f))]] =
            (struct located_point){flat->x[f], flat->y[f], on_class_of(flat, f),
                                   (int32_t)f};
    }
}

static const struct oj_row_method by_hash;

static oj_status build_equal_points(struct oj_index *wrapped,
                                    const struct oj_index_args *args,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    struct equal_points_index *self =
        oj_row_index_begin(wrapped, &by_hash, args);
    int64_t n = args->join_side->n_features;
    int32_t *feature_of;
    oj_status status;
    self->bucket_bits = 1;
    while ((INT64_C(1) << self->bucket_bits) < n)
        self->bucket_bits++;
    OJ_NEW_ZEROED(self->first, (INT64_C(1) << self->bucket_bits) + 1, err);
    OJ_NEW(self->entry, n, err);
    status = invert_tie_rank(args, &feature_of, err);
    if (status == OJ_OK)
        fill_buckets(self, feature_of);
    oj_free(feature_of);
    stats->index_bytes += n * (int64_t)sizeof *self->entry +
                          ((INT64_C(4) << self->bucket_bits) + 4);
    return status;
}

/* --- rows ----------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *index, struct oj_error *err)
{
    (void)err;
    index->n_rows =
        (index->input->n_features + ROWS_PER_GROUP - 1) / ROWS_PER_GROUP;
    return OJ_OK;
}

static oj_status add_pairs_of_row(const struct equal_points_index *self,
                                  struct oj_row_worker *worker, int64_t row,
                                  uint32_t bucket, struct oj_error *err)
{
    const struct oj_row_index *index = &self->shared;
    const struct oj_flat *input = index->input;
    double x = input->x[row], y = input->y[row];
    int32_t on_class = on_class_of(input, row);
    for (uint32_t i = self->first[bucket]; i < self->first[bucket + 1]; i++)
    {
        const struct located_point *e = &self->entry[i];
        OJ_TRY(oj_row_poll_cancel(index, worker, err));
        worker->n_candidates++;
        if (e->x == x && e->y == y && e->on_class == on_class &&
            oj_pair_may_count(&index->filter, row, e->feature))
            OJ_TRY(oj_row_put_pair(index, worker, row, e->feature, NAN, err));
    }
    return OJ_OK;
}

static oj_status answer_group(struct oj_row_index *index,
                              struct oj_row_worker *worker, int64_t i,
                              struct oj_error *err)
{
    const struct equal_points_index *self = (void *)index;
    const struct oj_flat *input = index->input;
    int64_t first = i * ROWS_PER_GROUP, n = input->n_features - first;
    uint32_t bucket[ROWS_PER_GROUP];
    n = n < ROWS_PER_GROUP ? n : ROWS_PER_GROUP;
    for (int64_t r = 0; r < n; r++)
    {
        bucket[r] = bucket_of(self, hash_point(input, first + r));
        __builtin_prefetch(&self->first[bucket[r]]);
    }
    for (int64_t r = 0; r < n; r++)
        __builtin_prefetch(&self->entry[self->first[bucket[r]]]);
    for (int64_t r = 0; r < n; r++)
    {
        if (has_point(input, first + r))
            OJ_TRY(add_pairs_of_row(self, worker, first + r, bucket[r], err));
    }
    return OJ_OK;
}

static const struct oj_row_method by_hash = {.worker_size =
                                                 sizeof(struct oj_row_worker),
                                             .start = start_batch,
                                             .answer = answer_group};

static int takes_equal_points(const struct oj_relation *relation,
                              const struct oj_flat *join_side,
                              const struct oj_flat *input)
{
    return oj_relation_pairs_equal_points(relation) &&
           oj_flat_is_points(join_side) &&
           (input == NULL || oj_flat_is_points(input));
}

static const struct oj_engine_cost points_cost = {.vertex_s = 30e-9,
                                                  .row_s = 70e-9};

const struct oj_engine oj_cpu_equal_points = {
    .name = "equal points by hash",
    .takes = takes_equal_points,
    .index_size = sizeof(struct equal_points_index),
    .build = build_equal_points,
    .join = oj_row_join,
    .free_side = free_side,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options,
    .points_cost = &points_cost};
