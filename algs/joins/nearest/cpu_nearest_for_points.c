/* Engine for nearest and dwithin of points by planar distance. The points of a
 * batch are sorted in Morton order, bucket by bucket, and search the segments
 * of the join side in groups (cpu_nearest_search.h). */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../foundations/base/oj_point_quadtree.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../foundations/relation/oj_index.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "cpu_nearest_search.h"

/* The index of this engine; struct oj_engine passes pointers to it as struct
 * oj_index *. */
struct nearest_points_index
{
    struct oj_cpu_index index;
    struct oj_relation relation; /* relation of the join; its copy in index has
                                    the k with which the search is made */
    struct oj_options options;
    struct oj_flat polygons;    /* the join side; its member `overlaps` points
                                   to `repeats`, if that is computed */
    struct oj_ring_cells cells; /* cells of the polygons, if these count as
                                   areas */
    uint8_t *repeats;           /* [features] 1 for a polygon that equals others
                                   and can be in no answer; NULL if not
                                   computed */
    struct oj_reach_mask reach; /* excludes points that are too far from all
                                   join features */

    /* Memory of batches, reused from batch to batch. */
    struct oj_order order;
    struct oj_nearest_scratch *scratch; /* [n_threads] */
    struct oj_answers *answers;         /* [n_threads] answers that are lists */
    struct oj_single_pairs ones;        /* answers of at most one pair per
                                   row */
    int has_fill;                       /* 1: fill is set */
    double fill; /* pairs per row of the last batch, or of a sample of this
                    one, divided by k */
};

static void free_batches(struct oj_index *wrapped)
{
    struct nearest_points_index *self = (void *)wrapped;
    for (int t = 0; t < self->options.n_threads; t++)
    {
        if (self->scratch != NULL)
            oj_nearest_scratch_free(&self->scratch[t]);
        if (self->answers != NULL)
            oj_answers_free(&self->answers[t]);
    }
    oj_free(self->scratch);
    oj_free(self->answers);
    oj_single_pairs_free(&self->ones);
    oj_order_free(&self->order);
}

static void free_nearest_points_index(struct oj_index *wrapped)
{
    struct nearest_points_index *self = (void *)wrapped;
    oj_segments_free(&self->index.segments);
    oj_ring_cells_free(&self->cells);
    oj_reach_mask_free(&self->reach);
    oj_free(self->repeats);
}

/* --- polygons that repeat others ------------------------------------------ */

/* A run of features with equal geometry hashes is compared feature by feature
 * only if it is longer than this. */
#define LONG_RUN 32

/* `run` lists n features with equal geometry hashes. Of those whose geometry
 * equals that of the first, sets marks[] to 1 for the ones that the rule of
 * ties keeps out of every answer (oj_equal_features_mark_needed()), and to 0
 * for the rest. Leaves the marks of features with another geometry unchanged.
 * feature [n] and is_needed [n] are scratch. */
static oj_status mark_equal_geometries_in_run(
    const struct oj_flat *flat, const struct oj_equal_features *of,
    const struct oj_keyed *run, int64_t n, int32_t *feature, uint8_t *is_needed,
    uint8_t *marks, struct oj_error *err)
{
    int64_t n_equal = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (i == 0 ||
            oj_flat_same_geometry(flat, run[0].value, flat, run[i].value))
            feature[n_equal++] = (int32_t)run[i].value;
    }
    OJ_TRY(oj_equal_features_mark_needed(of, n_equal, feature, is_needed, err));
    for (int64_t i = 0; i < n_equal; i++)
        marks[feature[i]] = !is_needed[i];
    return OJ_OK;
}

static oj_status mark_equal_geometries(const struct oj_flat *flat,
                                       const struct oj_equal_features *of,
                                       struct oj_keyed *keyed, int32_t *feature,
                                       uint8_t *is_needed, uint8_t *marks,
                                       struct oj_error *err)
{
    int64_t n = flat->n_features, end;
    const struct oj_keyed *sorted;
    for (int64_t i = 0; i < n; i++)
        keyed[i] = (struct oj_keyed){oj_flat_geometry_hash(flat, i), i};
    sorted = oj_radix_sort(keyed, keyed + n, n);
    for (int64_t i = 0; i < n; i = end)
    {
        end = i + 1;
        while (end < n && sorted[end].key == sorted[i].key)
            end++;
        if (end - i > LONG_RUN)
            OJ_TRY(mark_equal_geometries_in_run(
                flat, of, sorted + i, end - i, feature, is_needed, marks, err));
    }
    return OJ_OK;
}

/* Marks polygons that equal others and can be in no answer. Otherwise each
 * point in a thousand equal lots would be tested with all of them. */
static oj_status mark_repeated_polygons(struct nearest_points_index *self,
                                        const struct oj_equal_features *of,
                                        struct oj_error *err)
{
    const struct oj_flat *flat = &self->polygons;
    int64_t n = flat->n_features;
    struct oj_keyed *keyed;
    int32_t *feature;
    uint8_t *is_needed;
    oj_status status = OJ_OK;
    if (n <= LONG_RUN || of->k >= n)
        return OJ_OK;
    OJ_NEW_ZEROED(self->repeats, n, err);
    keyed = oj_malloc(2 * n, sizeof *keyed);
    feature = oj_malloc(n, sizeof *feature);
    is_needed = oj_malloc(n, sizeof *is_needed);
    if (keyed == NULL || feature == NULL || is_needed == NULL)
        status = oj_fail_nomem(err, 2 * n, sizeof *keyed);
    else
        status = mark_equal_geometries(flat, of, keyed, feature, is_needed,
                                       self->repeats, err);
    oj_free(keyed);
    oj_free(feature);
    oj_free(is_needed);
    self->polygons.overlaps = self->repeats;
    return status;
}

/* --- the join side -------------------------------------------------------- */

static oj_status
build_cells_of_polygon_interiors(struct nearest_points_index *self,
                                 const struct oj_equal_features *equal,
                                 struct oj_error *err)
{
    if (self->relation.distance_to != OJ_TO_INTERIOR ||
        (self->polygons.part_kinds & OJ_PART_POLYGON) == 0 ||
        oj_flat_is_points(&self->polygons))
        return OJ_OK;
    OJ_TRY(mark_repeated_polygons(self, equal, err));
    return oj_ring_cells_build(&self->cells, &self->polygons,
                               self->options.n_expected,
                               self->options.n_threads, err);
}

static int do_fids_ascend(const struct oj_flat *flat)
{
    int64_t i = 1;
    while (flat->fid != NULL && i < flat->n_features &&
           flat->fid[i] > flat->fid[i - 1])
        i++;
    return flat->fid != NULL && i >= flat->n_features;
}

static oj_status build_nearest_points(struct oj_index *wrapped,
                                      const struct oj_index_args *args,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    struct nearest_points_index *self = (void *)wrapped;
    struct oj_relation *relation = &self->index.relation;
    int n_threads = args->options.n_threads;
    struct oj_equal_features equal;
    self->relation = *relation = args->relation;
    self->index.tie_rank = args->tie_rank;
    self->options = args->options;
    self->polygons = *args->join_side;
    self->index.on_class = args->join_side->on_class;
    self->index.exclude_class = args->join_side->exclude_class;
    self->index.fids_ascend = do_fids_ascend(args->join_side);
    self->index.n_features = args->join_side->n_features;
    relation->k = OJ_EVERY_PAIR;
    if (oj_relation_is_nearest(relation))
        relation->k =
            oj_segments_count_features(args->join_side, self->relation.k);
    if (relation->k < 1)
        relation->k = 1;
    equal = oj_equal_features_make(relation, args->join_side, args->tie_rank);
    OJ_TRY(oj_segments_build(&self->index.segments, args->join_side, &equal,
                             n_threads, err));
    OJ_TRY(build_cells_of_polygon_interiors(self, &equal, err));
    if (relation->max_distance < INFINITY)
        OJ_TRY(oj_reach_mask_make(&self->reach, args->join_side,
                                  relation->max_distance, err));
    stats->index_bytes += oj_segments_bytes(&self->index.segments) +
                          oj_ring_cells_bytes(&self->cells);
    return OJ_OK;
}

/* Returns 1 if this engine takes the join: planar distances, no maximum
 * distance per join feature, and
 *   op nearest   input of points; no minimum distance, compared attributes
 *                or order of FIDs
 *   op dwithin   input of single points; a join side with lines, polygons or
 *                multipoints (single points: cpu_near_points.c)
 * Other nearest joins visit the features of a row in order of distance
 * (cpu_distance_joins.c): with a minimum distance of 500 ft this is seven times
 * as fast. */
static int supports_nearest_of_points(const struct oj_relation *relation,
                                      const struct oj_flat *join_side,
                                      const struct oj_flat *input)
{
    if (relation->metric != OJ_METRIC_PLANAR || join_side->max_distance != NULL)
        return 0;
    if (oj_relation_is_dwithin(relation))
        return !oj_flat_is_points(join_side) &&
               (input == NULL || oj_flat_is_points(input));
    return oj_relation_is_nearest(relation) &&
           !oj_relation_compares_attributes(relation) &&
           relation->min_distance == 0.0 && relation->unordered_pairs == 0 &&
           (input == NULL ||
            (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0);
}

/* State of the current batch. */
struct nearest_points_batch
{
    struct nearest_points_index *self;
    const struct oj_reach_mask *reach; /* points outside of it have no pairs;
                                          NULL if rows have their own maximum
                                          distances */
    struct oj_nearest_output to;       /* where pairs are stored; its member
                                          `answers` points to those of thread
                                          0 */
    struct oj_pair_budget budget;
    /* Filter of `input` and `polygons`, whose on_class was removed: the search
     * visits only the segments of the row's -on class, so the filter need not
     * compare classes. */
    struct oj_pair_filter filter;
    struct oj_flat input, polygons; /* sides of the filter */
    const int32_t *on_class;        /* [rows] -on class of each row, or NULL */
};

static int64_t row_of_point(const struct nearest_points_batch *b,
                            const struct oj_ordered_point *point)
{
    int64_t row = point->index;
    return b->to.row != NULL ? b->to.row[row] : row;
}

static int32_t class_of_point(const struct nearest_points_batch *b,
                              const struct oj_ordered_point *point)
{
    return b->on_class != NULL ? b->on_class[row_of_point(b, point)] : 0;
}

/* The class that a point excludes: the index of a large class (below
 * OJ_LARGE_CLASSES), or one of these values. */
enum
{
    NO_CLASS_LEFT_OUT = OJ_LARGE_CLASSES,
    SMALL_CLASS_LEFT_OUT,
    KINDS_LEFT_OUT
};

static int class_excluded_by_point(const struct nearest_points_batch *b,
                                   const struct oj_ordered_point *point)
{
    const struct oj_segments *segments = &b->self->index.segments;
    int32_t of;
    int large;
    if (b->input.exclude_class == NULL)
        return NO_CLASS_LEFT_OUT;
    of = b->input.exclude_class[row_of_point(b, point)];
    if (of < 0)
        return NO_CLASS_LEFT_OUT;
    large = oj_large_classes_index(&segments->large, of);
    return large >= 0 ? large : SMALL_CLASS_LEFT_OUT;
}

/* Returns a key. Points with equal keys are searched together: they have one
 * -on class, and all exclude one large class, or all exclude some small class,
 * or all exclude none. */
static uint64_t class_key_of_point(const struct nearest_points_batch *b,
                                   const struct oj_ordered_point *point)
{
    return (uint64_t)(uint32_t)class_of_point(b, point) * KINDS_LEFT_OUT +
           (uint64_t)class_excluded_by_point(b, point);
}

/* Sorts the points of a bucket by class. Points that are searched together stay
 * in their order. */
static oj_status sort_points_by_class(const struct nearest_points_batch *b,
                                      int64_t n,
                                      const struct oj_ordered_point *point,
                                      struct oj_nearest_scratch *s,
                                      const struct oj_keyed **sorted,
                                      struct oj_error *err)
{
    OJ_ROOM(s->class_key, 0, 2 * n, s->cap_class_key, err);
    OJ_ROOM(s->of_class, 0, n, s->cap_of_class, err);
    for (int64_t i = 0; i < n; i++)
        s->class_key[i] =
            (struct oj_keyed){class_key_of_point(b, &point[i]), i};
    *sorted = oj_radix_sort(s->class_key, s->class_key + n, n);
    for (int64_t i = 0; i < n; i++)
        s->of_class[i] = point[(*sorted)[i].value];
    return OJ_OK;
}

/* Finds and stores the pairs of n points with equal class_key_of_point(). */
static oj_status join_points_of_class(const struct nearest_points_batch *b,
                                      int64_t n,
                                      const struct oj_ordered_point *point,
                                      struct oj_nearest_scratch *s,
                                      const struct oj_nearest_output *to,
                                      struct oj_error *err)
{
    const struct oj_cpu_index *index = &b->self->index;
    int32_t on_class = class_of_point(b, point);
    int left_out = class_excluded_by_point(b, point);
    struct oj_nearest_output without_filter = *to;
    struct oj_segments_class of;
    struct oj_segments_exclude_class without;
    struct oj_nearest_among among = {NULL, NULL};
    if (b->on_class != NULL)
    {
        of = oj_segments_find_on_class(&index->segments, on_class);
        among.of = &of;
    }
    if (left_out < OJ_LARGE_CLASSES)
    {
        without = oj_segments_find_exclude_class(&index->segments, on_class,
                                                 left_out);
        among.without = &without;
    }
    /* The segments in this search meet all conditions, so the filter is not
     * needed. */
    if (left_out != SMALL_CLASS_LEFT_OUT && to->filter != NULL &&
        !index->relation.exclude_self &&
        oj_filter_excludes_one_class(index, to->filter))
        without_filter.filter = NULL;
    return oj_nearest_search_points(index, s, n, point, &among, &without_filter,
                                    err);
}

/* Answers the points of a bucket class by class. */
static oj_status join_points_by_class(const struct nearest_points_batch *b,
                                      int64_t n,
                                      const struct oj_ordered_point *point,
                                      struct oj_nearest_scratch *s,
                                      const struct oj_nearest_output *to,
                                      struct oj_error *err)
{
    const struct oj_keyed *sorted;
    int64_t end;
    OJ_TRY(sort_points_by_class(b, n, point, s, &sorted, err));
    for (int64_t first = 0; first < n; first = end)
    {
        for (end = first + 1; end < n && sorted[end].key == sorted[first].key;)
            end++;
        OJ_TRY(join_points_of_class(b, end - first, s->of_class + first, s, to,
                                    err));
    }
    return OJ_OK;
}

static oj_status join_bucket(int64_t bucket, int thread, void *user,
                             struct oj_error *err)
{
    const struct nearest_points_batch *b = user;
    struct nearest_points_index *self = b->self;
    const struct oj_order *order = &self->order;
    int64_t first = order->bucket_offset[bucket];
    int64_t n = order->bucket_offset[bucket + 1] - first;
    struct oj_nearest_output to = b->to;
    struct oj_nearest_scratch *s = &self->scratch[thread];
    const struct oj_nearest_among all = {NULL, NULL};
    to.answers += thread;
    if (b->on_class != NULL || self->index.segments.large.n > 0)
        return join_points_by_class(b, n, order->point + first, s, &to, err);
    return oj_nearest_search_points(&self->index, s, n, order->point + first,
                                    &all, &to, err);
}

static oj_status join_points(struct nearest_points_batch *b, int64_t n,
                             const double *x, const double *y,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct nearest_points_index *self = b->self;
    double start = oj_clock_seconds(), sorted;
    int n_threads = self->options.n_threads;
    oj_status status;
    self->cells.n_points += n;
    OJ_TRY(
        oj_order_build_masked(&self->order, n_threads, n, x, y, b->reach, err));
    stats->n_points_searched += self->order.n_points;
    sorted = oj_clock_seconds();
    status = oj_order_sort(&self->order, n_threads, join_bucket, b, err);
    stats->sort_s += sorted - start;
    stats->index_bytes += atomic_exchange(&self->cells.new_bytes, 0);
    if (!self->options.timings)
        stats->refine_s += oj_clock_seconds() - sorted;
    for (int t = 0; t < n_threads; t++)
    {
        struct oj_nearest_scratch *s = &self->scratch[t];
        /* thread time divided by the number of threads gives wall-clock time */
        stats->filter_s += s->filter_s / n_threads;
        stats->refine_s += s->refine_s / n_threads;
        stats->n_candidates += s->n_refined;
        s->filter_s = s->refine_s = 0.0;
        s->n_refined = 0;
    }
    return status;
}

static int has_reach_mask(const struct nearest_points_batch *b)
{
    return b->reach != NULL && b->reach->bit != NULL;
}

static int has_point(const struct oj_flat *input, int64_t row)
{
    return input->x[row] == input->x[row] && input->y[row] == input->y[row];
}

/* Joins a batch of at most one pair per row, whose pair is written to *out
 * directly. */
static oj_status join_one_per_row(struct nearest_points_batch *b,
                                  const struct oj_flat *input,
                                  struct oj_matches *out,
                                  struct oj_stats *stats, struct oj_error *err)
{
    struct oj_single_pairs ones = {0};
    int64_t n = input->n_features, n_matched = 0;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    ones.feature = out->join_row;
    ones.distance = out->measure;
    b->to.ones = &ones;
    /* Rows without a geometry, and those that the mask excludes, are not
     * visited. */
    for (int64_t i = 0; i < n; i++)
    {
        if (has_reach_mask(b) || !has_point(input, i))
        {
            out->join_row[i] = -1;
            out->measure[i] = NAN;
        }
    }
    OJ_TRY(join_points(b, n, input->x, input->y, stats, err));
    for (int64_t i = 0; i < n; i++)
        n_matched += out->join_row[i] >= 0;
    out->n_pairs = out->n_matched = n_matched;
    return OJ_OK;
}

/* Lists of k pairs are stored in place if rows have k pairs, or nearly so:
 * their gaps then cost less than intermediate lists of unknown length, which
 * take three times the memory of the pairs and a second pass (citygen L, k = 5
 * within 100 ft: 40 % of the processor time). With a maximum distance, lists of
 * up to FEW_IN_PLACE pairs are stored in place. Longer ones are if they are
 * full to at least LEAST_FILL; this is known from the last batch or, in the
 * first one, from a sample of points. A first batch of fewer than
 * ROWS_OF_SAMPLE rows has intermediate lists. */
#define FEW_IN_PLACE 4
#define LEAST_FILL 0.4
#define SAMPLED_POINTS 1024
#define ROWS_OF_SAMPLE (64 * SAMPLED_POINTS)

/* Returns 1 if each point can have a list of k pairs in place. */
static int may_have_k_pairs_in_place(const struct nearest_points_batch *b,
                                     const struct oj_flat *input)
{
    const struct oj_relation *relation = &b->self->index.relation;
    return oj_flat_is_points(input) && input->max_distance == NULL &&
           oj_relation_is_nearest(relation) && relation->k > 1 &&
           relation->ties == OJ_TIES_FIRST &&
           b->self->index.segments.n_bundles > 0;
}

static void start_answers(struct nearest_points_batch *b, int64_t n_rows)
{
    struct nearest_points_index *self = b->self;
    int n_threads = self->options.n_threads;
    oj_pair_budget_start(&b->budget, self->options.max_batch_pairs, n_rows,
                         n_threads);
    for (int t = 0; t < n_threads; t++)
        oj_answers_start(&self->answers[t], &b->budget);
}

/* Joins SAMPLED_POINTS evenly spaced rows, sets *n_pairs to the number of their
 * pairs, and drops these pairs. */
static oj_status join_sample_and_count_pairs(struct nearest_points_batch *b,
                                             const struct oj_flat *input,
                                             int64_t *n_pairs,
                                             struct oj_error *err)
{
    struct nearest_points_index *self = b->self;
    struct oj_stats ignored = {0};
    double x[SAMPLED_POINTS], y[SAMPLED_POINTS];
    int32_t row[SAMPLED_POINTS];
    for (int i = 0; i < SAMPLED_POINTS; i++)
    {
        row[i] = (int32_t)(i * (input->n_features / SAMPLED_POINTS));
        x[i] = input->x[row[i]];
        y[i] = input->y[row[i]];
    }
    start_answers(b, 1);
    b->to.row = row;
    OJ_TRY(join_points(b, SAMPLED_POINTS, x, y, &ignored, err));
    b->to.row = NULL;
    *n_pairs = 0;
    for (int t = 0; t < self->options.n_threads; t++)
        *n_pairs += self->answers[t].n_entries;
    return OJ_OK;
}

/* Sets *in_place to 1 if the pairs of this batch are stored in lists of k,
 * otherwise to 0. */
static oj_status choose_lists_of_k(struct nearest_points_batch *b,
                                   const struct oj_flat *input, int *in_place,
                                   struct oj_error *err)
{
    struct nearest_points_index *self = b->self;
    int64_t k = self->index.relation.k, n = input->n_features, n_pairs, most;
    *in_place = 0;
    if (!may_have_k_pairs_in_place(b, input))
        return OJ_OK;
    *in_place = 1;
    if (self->relation.max_distance == INFINITY || k <= FEW_IN_PLACE)
        return OJ_OK;
    if (!self->has_fill && n >= ROWS_OF_SAMPLE)
    {
        OJ_TRY(join_sample_and_count_pairs(b, input, &n_pairs, err));
        self->fill = (double)n_pairs / ((double)SAMPLED_POINTS * (double)k);
        self->has_fill = 1;
    }
    most = oj_most_pairs_of_batch(self->options.max_batch_pairs, n);
    *in_place = self->has_fill && self->fill >= LEAST_FILL &&
                (most == 0 || n * k <= most);
    return OJ_OK;
}

/* Makes room for a list of k pairs of each row, the first of which is entry row
 * * k. Lists of rows that are not visited become empty. */
static oj_status make_lists_of_k(const struct nearest_points_batch *b,
                                 const struct oj_flat *input,
                                 struct oj_matches *out, struct oj_error *err)
{
    int64_t k = b->self->index.relation.k, n = input->n_features;
    int64_t n_points = 0;
    for (int64_t i = 0; i < n; i++)
        n_points += has_point(input, i);
    OJ_TRY(oj_pair_budget_check(
        oj_most_pairs_of_batch(b->self->options.max_batch_pairs, n),
        n_points * k, err));
    OJ_TRY(oj_matches_reserve(out, n, 0, 1, err));
    OJ_TRY(oj_matches_grow(out, 0, n * k, err));
    if (has_reach_mask(b))
        memset(out->join_row, 0xff, (size_t)(n * k) * sizeof *out->join_row);
    for (int64_t i = 0; n_points < n && i < n; i++)
    {
        if (!has_point(input, i))
            memset(out->join_row + i * k, 0xff,
                   (size_t)k * sizeof *out->join_row);
    }
    return OJ_OK;
}

/* Returns the number of pairs in a list of k; the entries behind them are -1.
 */
static int64_t count_pairs_of_list(const int32_t *join_row, int64_t k)
{
    int64_t n = 0;
    if (join_row[k - 1] >= 0)
        return k;
    while (join_row[n] >= 0)
        n++;
    return n;
}

/* Closes the gaps behind lists of fewer than k pairs (because of the maximum
 * distance, or because distances overflow), sets the offsets, and counts the
 * pairs. */
static void close_gaps_in_lists_of_k(struct oj_matches *out, int64_t k)
{
    int64_t at = 0;
    out->offset[0] = 0;
    for (int64_t row = 0; row < out->n_rows; row++)
    {
        int64_t first = row * k;
        int64_t n = count_pairs_of_list(out->join_row + first, k);
        for (int64_t i = 0; at < first && i < n; i++)
        {
            out->join_row[at + i] = out->join_row[first + i];
            out->measure[at + i] = out->measure[first + i];
        }
        at += n;
        out->offset[row + 1] = at;
        out->n_matched += n > 0;
    }
    out->n_entries = out->n_pairs = at;
}

static oj_status join_to_lists_of_k(struct nearest_points_batch *b,
                                    const struct oj_flat *input,
                                    struct oj_matches *out,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    OJ_TRY(make_lists_of_k(b, input, out, err));
    b->to.lists = out;
    b->to.list_size = b->self->index.relation.k;
    OJ_TRY(join_points(b, input->n_features, input->x, input->y, stats, err));
    close_gaps_in_lists_of_k(out, b->to.list_size);
    return OJ_OK;
}

/* Joins a batch whose answers are lists of unknown length. */
static oj_status join_batch_to_lists(struct nearest_points_batch *b,
                                     const struct oj_flat *input,
                                     struct oj_matches *out,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct nearest_points_index *self = b->self;
    int n_threads = self->options.n_threads;
    int64_t n_rows = input->n_features;
    int64_t max_pairs = self->options.max_batch_pairs;
    start_answers(b, n_rows);
    if (oj_flat_is_points(input))
    {
        if (self->index.relation.k == 1 && b->to.filter == NULL)
        {
            OJ_TRY(oj_single_pairs_start(&self->ones, n_rows, err));
            b->to.ones = &self->ones;
        }
        OJ_TRY(join_points(b, n_rows, input->x, input->y, stats, err));
    }
    else
    {
        struct oj_points points;
        oj_status status;
        OJ_TRY(oj_points_make(input, &points, err));
        b->to.row = points.row;
        status = join_points(b, points.n, points.x, points.y, stats, err);
        oj_points_free(&points);
        OJ_TRY(status);
    }
    if (b->to.ones != NULL)
        return oj_single_pairs_to_matches(&self->ones, self->answers, n_threads,
                                          n_rows, max_pairs, out, err);
    if (oj_flat_is_points(input)) /* each row occurs once, and its pairs are in
                                     order */
        return oj_single_pairs_to_matches(NULL, self->answers, n_threads,
                                          n_rows, max_pairs, out, err);
    return oj_answers_to_matches(self->answers, n_threads, n_rows,
                                 &self->relation, self->index.tie_rank, out,
                                 err);
}

static oj_status make_thread_scratch(struct nearest_points_index *self,
                                     struct oj_error *err)
{
    int n_threads = self->options.n_threads;
    if (self->scratch == NULL)
        OJ_NEW_ZEROED(self->scratch, n_threads, err);
    if (self->answers == NULL)
        OJ_NEW_ZEROED(self->answers, n_threads, err);
    for (int t = 0; t < n_threads; t++)
    {
        self->scratch[t].cells = &self->cells;
        self->scratch[t].cancel = self->options.cancel;
        self->scratch[t].timings = self->options.timings;
    }
    return OJ_OK;
}

static oj_status join_nearest_points(struct oj_index *wrapped,
                                     const struct oj_flat *input,
                                     struct oj_matches *out,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct nearest_points_index *self = (void *)wrapped;
    struct nearest_points_batch b = {.self = self,
                                     .input = *input,
                                     .polygons = self->polygons,
                                     .on_class = input->on_class};
    int in_place;
    OJ_TRY(oj_pair_filter_make(&self->relation, input, &self->polygons,
                               &b.filter, err));
    b.input.on_class = b.polygons.on_class = NULL;
    OJ_TRY(oj_pair_filter_make(&self->relation, &b.input, &b.polygons,
                               &b.filter, err));
    OJ_TRY(make_thread_scratch(self, err));
    b.to.answers = self->answers;
    if (input->max_distance == NULL)
        b.reach = &self->reach;
    if (b.filter.is_needed || self->relation.min_distance > 0.0 ||
        input->max_distance != NULL)
        b.to.filter = &b.filter;
    if (oj_flat_is_points(input) &&
        !oj_relation_allows_many_pairs(&self->relation))
        return join_one_per_row(&b, input, out, stats, err);
    OJ_TRY(choose_lists_of_k(&b, input, &in_place, err));
    if (in_place)
        OJ_TRY(join_to_lists_of_k(&b, input, out, stats, err));
    else
        OJ_TRY(join_batch_to_lists(&b, input, out, stats, err));
    if (out->n_rows > 0)
    {
        self->fill = (double)out->n_pairs / (double)out->n_rows /
                     (double)self->index.relation.k;
        self->has_fill = 1;
    }
    return OJ_OK;
}

static void set_options(struct oj_index *wrapped,
                        const struct oj_options *options)
{
    struct nearest_points_index *self = (void *)wrapped;
    oj_options_copy_per_batch(&self->options, options);
}

static const struct oj_engine_cost points_cost = {
    .vertex_s = 120e-9, .row_s = 190e-9, .place_s = 80e-9};

const struct oj_engine oj_cpu_nearest_points = {
    .name = "nearest segments of points",
    .supports = supports_nearest_of_points,
    .index_size = sizeof(struct nearest_points_index),
    .build = build_nearest_points,
    .join = join_nearest_points,
    .free_side = free_nearest_points_index,
    .free_batches = free_batches,
    .set_options = set_options,
    .points_cost = &points_cost};
