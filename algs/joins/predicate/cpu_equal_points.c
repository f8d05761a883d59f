/* Two engines for pairs of equal features. One answers predicates between
 * points, whose pairs have equal coordinates; the other answers op attributes,
 * whose pairs have equal values of -on at any location. The join side is a hash
 * table. Rows are looked up in groups, so that the memory of a whole group is
 * fetched at once.
 *
 *      first[bucket] .. first[bucket + 1] - 1 -> entry: x, y, class, feature
 *
 * Classes of -on are part of the key, so a row is not compared with points at
 * its location that have other classes. In op attributes they are the whole
 * key: x and y are 0. Source: ours. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_hash_mix.h"
#include "../../foundations/relation/oj_index.h"
#include "../../pairs/selection/oj_parallel_row_search.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"

#define ROWS_PER_GROUP 256

#define NO_CLASS (-1)

struct located_point
{
    double x, y; /* 0 in op attributes */
    int32_t on_class, feature;
};

struct equal_points_index
{
    struct oj_row_index shared;
    int bucket_bits;             /* number of upper bits of a hash that give its
                                    bucket */
    uint32_t *first;             /* [2^bucket_bits + 1] */
    struct located_point *entry; /* sorted by bucket, then in tie order */
    uint32_t *n_equal; /* [entries] only in op attributes: at the first entry of
                          each key the number of entries with the key, elsewhere
                          0 */
};

/* --- keys ----------------------------------------------------------------- */

/* Returns the key of a feature of either side. */
static struct located_point
key_of_feature(const struct equal_points_index *self,
               const struct oj_flat *flat, int64_t feature)
{
    struct located_point key = {0.0, 0.0, NO_CLASS, (int32_t)feature};
    if (flat->on_class != NULL)
        key.on_class = flat->on_class[feature];
    if (oj_relation_is_of_equal_attributes(&self->shared.args.relation))
        return key;
    key.x = flat->x[feature];
    key.y = flat->y[feature];
    return key;
}

/* Returns 1 if the feature can be in a pair: no coordinate is NaN, and no value
 * of -on is NULL. */
static int can_key_have_pairs(const struct oj_flat *flat,
                              const struct located_point *key)
{
    return key->x == key->x && key->y == key->y &&
           (flat->on_class == NULL || key->on_class >= 0);
}

static int are_keys_equal(const struct located_point *a,
                          const struct located_point *b)
{
    return a->x == b->x && a->y == b->y && a->on_class == b->on_class;
}

static uint64_t hash_key(const struct located_point *key)
{
    uint64_t on_class = (uint64_t)(int64_t)key->on_class;
    double x = key->x + 0.0, y = key->y + 0.0; /* turns -0 into 0 */
    return oj_hash_mix(oj_hash_mix(on_class, &x), &y);
}

static uint32_t bucket_of_key(const struct equal_points_index *self,
                              const struct located_point *key)
{
    /* The product's upper bits depend on all bits of the key. */
    return (uint32_t)(hash_key(key) * UINT64_C(0x9E3779B97F4A7C15) >>
                      (64 - self->bucket_bits));
}

/* --- the join side -------------------------------------------------------- */

static void free_equal_points_index(struct oj_index *wrapped)
{
    struct equal_points_index *self = (void *)wrapped;
    oj_free(self->first);
    oj_free(self->entry);
    oj_free(self->n_equal);
}

/* Sets *feature_of to the features in tie order, which the caller frees; NULL
 * if the features already are in this order. */
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
        struct located_point key = key_of_feature(self, flat, f);
        if (can_key_have_pairs(flat, &key))
            self->first[bucket_of_key(self, &key)]++;
    }
    for (int64_t bucket = 0; bucket <= n_buckets; bucket++)
    {
        total += self->first[bucket];
        self->first[bucket] = total; /* end of the bucket, from which it is
                                        filled downwards */
    }
    for (int64_t rank = flat->n_features - 1; rank >= 0; rank--)
    {
        int64_t f = feature_of != NULL ? feature_of[rank] : rank;
        struct located_point key = key_of_feature(self, flat, f);
        if (can_key_have_pairs(flat, &key))
            self->entry[--self->first[bucket_of_key(self, &key)]] = key;
    }
}

/* Returns the first entry of a bucket that has this key; if there is none, the
 * end of the bucket. */
static uint32_t find_first_equal(const struct equal_points_index *self,
                                 const struct located_point *key,
                                 uint32_t bucket)
{
    uint32_t i = self->first[bucket], end = self->first[bucket + 1];
    while (i < end && !are_keys_equal(&self->entry[i], key))
        i++;
    return i;
}

/* Sets n_equal of all entries. Takes time linear in the entries, since buckets
 * rarely hold several keys. */
static oj_status count_equal_entries(struct equal_points_index *self,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    const int64_t n_buckets = INT64_C(1) << self->bucket_bits;
    const int64_t n = self->first[n_buckets];
    OJ_NEW_ZEROED(self->n_equal, n + 1, err);
    stats->index_bytes += (n + 1) * (int64_t)sizeof *self->n_equal;
    for (int64_t bucket = 0; bucket < n_buckets; bucket++)
    {
        for (uint32_t i = self->first[bucket]; i < self->first[bucket + 1]; i++)
            self->n_equal[find_first_equal(self, &self->entry[i],
                                           (uint32_t)bucket)]++;
    }
    return OJ_OK;
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
    if (status == OJ_OK && oj_relation_is_of_equal_attributes(&args->relation))
        status = count_equal_entries(self, stats, err);
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

/* Adds the pairs of the input row key->feature, or only the first of them if
 * the join asks for no more. */
static oj_status add_pairs_of_row(const struct equal_points_index *self,
                                  struct oj_row_worker *worker,
                                  const struct located_point *key,
                                  uint32_t bucket, struct oj_error *err)
{
    const struct oj_row_index *index = &self->shared;
    int64_t row = key->feature;
    for (uint32_t i = self->first[bucket]; i < self->first[bucket + 1]; i++)
    {
        const struct located_point *e = &self->entry[i];
        OJ_TRY(oj_row_poll_cancel(index, worker, err));
        worker->n_candidates++;
        if (are_keys_equal(e, key) &&
            oj_pair_filter_accepts(&index->filter, row, e->feature))
        {
            OJ_TRY(oj_row_add_pair(index, worker, row, e->feature, NAN, err));
            if (index->args.relation.enough_pairs)
                return OJ_OK; /* entries are in tie order */
        }
    }
    return OJ_OK;
}

/* Adds only the first pair of the input row key->feature. Its measure is the
 * number of the row's pairs. Without conditions besides the key this is
 * n_equal; otherwise the pairs are tested and counted one by one. */
static oj_status add_first_pair_of_row(const struct equal_points_index *self,
                                       struct oj_row_worker *worker,
                                       const struct located_point *key,
                                       uint32_t bucket, struct oj_error *err)
{
    const struct oj_row_index *index = &self->shared;
    const uint32_t end = self->first[bucket + 1];
    int64_t row = key->feature, n = 0;
    int32_t feature = -1;
    uint32_t i = find_first_equal(self, key, bucket);
    if (i < end && index->filter.tests_classes)
        return oj_row_add_pair(index, worker, row, self->entry[i].feature,
                               (double)self->n_equal[i], err);
    for (; i < end; i++)
    {
        const struct located_point *e = &self->entry[i];
        OJ_TRY(oj_row_poll_cancel(index, worker, err));
        worker->n_candidates++;
        if (!are_keys_equal(e, key) ||
            !oj_pair_filter_accepts(&index->filter, row, e->feature))
            continue;
        if (n++ == 0)
            feature = e->feature;
    }
    return n > 0 ? oj_row_add_pair(index, worker, row, feature, (double)n, err)
                 : OJ_OK;
}

static oj_status answer_group_of_rows(struct oj_row_index *index,
                                      struct oj_row_worker *worker, int64_t i,
                                      struct oj_error *err)
{
    const struct equal_points_index *self = (void *)index;
    const struct oj_flat *input = index->input;
    int64_t first = i * ROWS_PER_GROUP, n = input->n_features - first;
    struct located_point key[ROWS_PER_GROUP];
    uint32_t bucket[ROWS_PER_GROUP];
    n = n < ROWS_PER_GROUP ? n : ROWS_PER_GROUP;
    for (int64_t r = 0; r < n; r++)
    {
        key[r] = key_of_feature(self, input, first + r);
        bucket[r] = bucket_of_key(self, &key[r]);
        __builtin_prefetch(&self->first[bucket[r]]);
    }
    for (int64_t r = 0; r < n; r++)
        __builtin_prefetch(&self->entry[self->first[bucket[r]]]);
    for (int64_t r = 0; r < n; r++)
    {
        if (!can_key_have_pairs(input, &key[r]))
            continue;
        OJ_TRY(
            self->n_equal != NULL && index->args.relation.enough_pairs
                ? add_first_pair_of_row(self, worker, &key[r], bucket[r], err)
                : add_pairs_of_row(self, worker, &key[r], bucket[r], err));
    }
    return OJ_OK;
}

static const struct oj_row_method by_hash = {.worker_size =
                                                 sizeof(struct oj_row_worker),
                                             .start = start_batch,
                                             .answer = answer_group_of_rows};

/* ---- op attributes: counts of pairs -------------------------------------- */

static oj_status join_equal_attributes(struct oj_index *wrapped,
                                       const struct oj_flat *input,
                                       struct oj_matches *out,
                                       struct oj_stats *stats,
                                       struct oj_error *err)
{
    const struct oj_row_index *index = (void *)wrapped;
    OJ_TRY(oj_row_join(wrapped, input, out, stats, err));
    if (!index->args.relation.enough_pairs)
        return OJ_OK;
    out->n_pairs = 0;
    for (int64_t i = 0; i < out->n_entries; i++)
        out->n_pairs += oj_matches_pairs_of_entry(out, i);
    return OJ_OK;
}

/* For each row of the batch, adds 1 to n_rows[i], where i is the first entry
 * with the row's key. Lists the entries with n_rows > 0 in `found`, which has
 * room for all rows, and returns their number. */
static int64_t count_rows_of_keys(const struct equal_points_index *self,
                                  const struct oj_flat *input, int64_t *n_rows,
                                  uint32_t *found)
{
    int64_t n_found = 0;
    for (int64_t row = 0; row < input->n_features; row++)
    {
        const struct located_point key = key_of_feature(self, input, row);
        const uint32_t bucket = bucket_of_key(self, &key);
        uint32_t i;
        if (!can_key_have_pairs(input, &key))
            continue;
        i = find_first_equal(self, &key, bucket);
        if (i < self->first[bucket + 1] && n_rows[i]++ == 0)
            found[n_found++] = i;
    }
    return n_found;
}

/* Implements oj_engine.count_pairs. Takes time linear in the rows of the batch
 * and in the join features with their keys. */
static oj_status count_equal_attributes(struct oj_index *wrapped,
                                        const struct oj_flat *input,
                                        int64_t *count, int64_t *n_pairs,
                                        struct oj_error *err)
{
    const struct equal_points_index *self = (void *)wrapped;
    const struct oj_index_args *args = &self->shared.args;
    const int64_t n_entries = self->first[INT64_C(1) << self->bucket_bits];
    struct oj_pair_filter filter;
    int64_t *n_rows, n_found, total = 0;
    uint32_t *found;
    OJ_TRY(oj_pair_filter_make(&args->relation, input, args->join_side, &filter,
                               err));
    if (filter.is_needed && !filter.tests_classes)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "pairs with further conditions cannot be counted "
                       "without a list of them: oj_join_batch() makes the "
                       "list");
    OJ_NEW_ZEROED(n_rows, n_entries + 1, err);
    found = oj_malloc(input->n_features + 1, sizeof *found);
    if (found == NULL)
    {
        oj_free(n_rows);
        return oj_fail_nomem(err, input->n_features, sizeof *found);
    }
    n_found = count_rows_of_keys(self, input, n_rows, found);
    for (int64_t k = 0; k < n_found; k++)
    {
        const struct located_point *key = &self->entry[found[k]];
        const uint32_t end = self->first[bucket_of_key(self, key) + 1];
        for (uint32_t i = found[k]; i < end; i++)
        {
            if (are_keys_equal(&self->entry[i], key))
                count[self->entry[i].feature] += n_rows[found[k]];
        }
        total += n_rows[found[k]] * (int64_t)self->n_equal[found[k]];
    }
    oj_free(n_rows);
    oj_free(found);
    *n_pairs = total;
    return OJ_OK;
}

static int supports_equal_points_join(const struct oj_relation *relation,
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
    .supports = supports_equal_points_join,
    .index_size = sizeof(struct equal_points_index),
    .build = build_equal_points,
    .join = oj_row_join,
    .free_side = free_equal_points_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options,
    .points_cost = &points_cost};

const struct oj_engine oj_cpu_equal_attributes = {
    .name = "equal attributes by hash",
    .supports = oj_pair_filter_supports_attributes_join,
    .index_size = sizeof(struct equal_points_index),
    .build = build_equal_points,
    .join = join_equal_attributes,
    .count_pairs = count_equal_attributes,
    .free_side = free_equal_points_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
