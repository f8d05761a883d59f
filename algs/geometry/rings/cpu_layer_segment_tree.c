#include "cpu_layer_segment_tree.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_morton_order.h"
#include "../../foundations/base/oj_radix_sort.h"

#include <stdlib.h>
#include <string.h>

/* Runs of more than this many segments, whose Morton codes have equal upper
 * bits (oj_order_run_end()), are searched for repeated segments. */
#define LONG_RUN 32
#define BUNDLES_AT_ONCE 1024
#define FEATURES_PER_TASK 4096

/* A segment that is not in a bundle yet. */
struct item
{
    uint32_t vertex; /* index of the segment's first vertex */
    int32_t feature;
    uint8_t is_point; /* 1: both ends of the segment are equal */
};

struct segments_build
{
    struct oj_segments *segments;
    const struct oj_flat *flat;
    const struct oj_equal_features *equal;
    int64_t n_items, n_listed; /* n_items: number of items that are kept;
                                  n_listed: number of elements in `item` */
    int64_t *first_item;       /* [n_feature_tasks + 1] first item of each task
                                */
    struct item *item;
    double *x, *y; /* [n_items] centres of the segments */
    struct oj_order order;
    uint32_t *sorted;   /* [n_items] item indices in Morton order, bucket by
                           bucket */
    int64_t *kept;      /* [n_buckets + 1] kept[i + 1]: number of items that are
                           kept of bucket i */
    struct oj_box *box; /* [n_bundles] */
};

static int64_t ring_start(const struct oj_flat *flat, int64_t ring)
{
    return flat->vertex_offset == NULL ? ring : flat->vertex_offset[ring];
}

static int64_t first_ring_of_feature(const struct oj_flat *flat,
                                     int64_t feature)
{
    return flat->part_offset == NULL
               ? feature
               : flat->ring_offset[flat->part_offset[feature]];
}

/* Returns `at` plus the number of segments of a task's features. fill 1: also
 * writes these segments to b->item, from index `at` on. */
static int64_t list_segments_of_task(struct segments_build *b, int64_t task,
                                     int64_t at, int fill)
{
    const struct oj_flat *flat = b->flat;
    int64_t end = (task + 1) * FEATURES_PER_TASK;
    if (end > flat->n_features)
        end = flat->n_features;
    for (int64_t f = task * FEATURES_PER_TASK; f < end; f++)
    {
        int64_t last_ring = first_ring_of_feature(flat, f + 1);
        for (int64_t r = first_ring_of_feature(flat, f); r < last_ring; r++)
        {
            int64_t v = ring_start(flat, r);
            int64_t last = ring_start(flat, r + 1) - 1;
            int is_point = v == last;
            if (is_point && !(isfinite(flat->x[v]) && isfinite(flat->y[v])))
                continue; /* a feature without geometry, in a layer in the short
                             form (single points) */
            for (; v < last || is_point; v++)
            {
                int64_t w = is_point ? v : v + 1;
                if (fill)
                {
                    b->item[at] = (struct item){(uint32_t)v, (int32_t)f,
                                                (uint8_t)is_point};
                    b->x[at] = 0.5 * flat->x[v] + 0.5 * flat->x[w];
                    b->y[at] = 0.5 * flat->y[v] + 0.5 * flat->y[w];
                }
                at++;
                if (is_point)
                    break;
            }
        }
    }
    return at;
}

static void count_task_segments(int64_t task, int thread, void *user)
{
    struct segments_build *b = user;
    (void)thread;
    b->first_item[task + 1] = list_segments_of_task(b, task, 0, 0);
}

static void fill_task_segments(int64_t task, int thread, void *user)
{
    struct segments_build *b = user;
    (void)thread;
    list_segments_of_task(b, task, b->first_item[task], 1);
}

static int64_t counts_to_prefix_sums(int64_t n, int64_t *counts)
{
    for (int64_t i = 0; i < n; i++)
        counts[i + 1] += counts[i];
    return counts[n];
}

static oj_status list_segments(struct segments_build *b, int n_threads,
                               struct oj_error *err)
{
    int64_t n_tasks =
        (b->flat->n_features + FEATURES_PER_TASK - 1) / FEATURES_PER_TASK;
    OJ_NEW_ZEROED(b->first_item, n_tasks + 1, err);
    oj_parallel_for(n_threads, n_tasks, count_task_segments, b);
    b->n_items = b->n_listed = counts_to_prefix_sums(n_tasks, b->first_item);
    if (b->n_items > INT32_MAX || b->flat->n_vertices > (int64_t)UINT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld segments; at most %d are "
                       "possible: filter it before the join",
                       (long long)b->n_items, INT32_MAX);
    OJ_NEW(b->item, b->n_items, err);
    OJ_NEW(b->x, b->n_items, err);
    OJ_NEW(b->y, b->n_items, err);
    oj_parallel_for(n_threads, n_tasks, fill_task_segments, b);
    return OJ_OK;
}

/* Coordinates of a segment, by which repeated segments are found. */
struct segment_bits
{
    double at[4];
    int32_t feature;
    int32_t place; /* index in the run */
};

static int compare_coordinates(const struct segment_bits *a,
                               const struct segment_bits *b)
{
    /* compares numbers, not bytes: 0.0 equals -0.0 */
    for (int i = 0; i < 4; i++)
    {
        if (a->at[i] != b->at[i])
            return a->at[i] < b->at[i] ? -1 : 1;
    }
    return 0;
}

static int compare_segments_by_coordinates(const void *left, const void *right)
{
    const struct segment_bits *a = left, *b = right;
    int order = compare_coordinates(a, b);
    if (order != 0)
        return order;
    return (a->feature > b->feature) - (a->feature < b->feature);
}

/* Segments of a run that may be repeated. */
struct repeated_segments
{
    int64_t n;
    struct segment_bits *twin; /* [n] coordinates; equal segments become
                                  adjacent when sorted */
    int32_t *feature;          /* [n] scratch: the distinct features of equal
                                  segments */
    uint8_t *is_needed;        /* [segments of the run] first 1 for segments in
                                  `twin`; then 1 for elements of `feature` that
                                  are needed */
};

static void repeated_segments_free(struct repeated_segments *r)
{
    oj_free(r->twin);
    oj_free(r->feature);
    oj_free(r->is_needed);
}

/* Lists in r the segments of a run whose complete Morton code occurs often.
 * (Runs are sorted only by the upper bits of the codes, so such segments are
 * not adjacent.) */
static oj_status list_crowded_segments(const struct segments_build *b,
                                       int64_t n,
                                       const struct oj_ordered_point *run,
                                       struct repeated_segments *r,
                                       struct oj_error *err)
{
    const struct oj_flat *flat = b->flat;
    int64_t at = 0;
    OJ_NEW(r->is_needed, n, err);
    OJ_TRY(oj_order_mark_frequent_keys(n, run, LONG_RUN, r->is_needed, &r->n,
                                       err));
    if (r->n == 0)
        return OJ_OK;
    OJ_NEW(r->twin, r->n, err);
    OJ_NEW(r->feature, r->n, err);
    for (int64_t i = 0; i < n; i++)
    {
        const struct item *item = &b->item[run[i].index];
        uint32_t v = item->vertex, w = item->is_point ? v : v + 1;
        if (r->is_needed[i])
            r->twin[at++] = (struct segment_bits){
                {flat->x[v], flat->y[v], flat->x[w], flat->y[w]},
                item->feature,
                (int32_t)i};
    }
    return OJ_OK;
}

/* Of n segments with equal coordinates, twin [n], sorted by feature: sets
 * run[twin[i].place] to UINT32_MAX for those whose feature no answer can
 * contain (oj_equal_features_mark_needed()). */
static oj_status mark_unneeded_segments(const struct segments_build *b,
                                        int64_t n,
                                        const struct segment_bits *twin,
                                        struct repeated_segments *r,
                                        uint32_t *run, struct oj_error *err)
{
    int64_t n_features = 0, at = -1;
    for (int64_t i = 0; i < n; i++)
    {
        if (i == 0 || twin[i].feature != twin[i - 1].feature)
            r->feature[n_features++] = twin[i].feature;
    }
    OJ_TRY(oj_equal_features_mark_needed(b->equal, n_features, r->feature,
                                         r->is_needed, err));
    for (int64_t i = 0; i < n; i++)
    {
        at += i == 0 || twin[i].feature != twin[i - 1].feature;
        if (!r->is_needed[at])
            run[twin[i].place] = UINT32_MAX;
    }
    return OJ_OK;
}

static oj_status mark_repeated_segments(const struct segments_build *b,
                                        struct repeated_segments *r,
                                        uint32_t *run, struct oj_error *err)
{
    int64_t end;
    qsort(r->twin, (size_t)r->n, sizeof *r->twin,
          compare_segments_by_coordinates);
    for (int64_t i = 0; i < r->n; i = end)
    {
        end = i + 1;
        while (end < r->n &&
               compare_coordinates(&r->twin[end], &r->twin[i]) == 0)
            end++;
        OJ_TRY(mark_unneeded_segments(b, end - i, r->twin + i, r, run, err));
    }
    return OJ_OK;
}

/* Removes from a run of n items the repeated segments of features that no
 * answer can contain (oj_equal_features.h). Otherwise a million identical
 * points would all be candidates of every query near them. Sets *n_kept to the
 * number of items that remain. */
static oj_status drop_repeated_segments(const struct segments_build *b,
                                        int64_t n,
                                        const struct oj_ordered_point *point,
                                        uint32_t *run, int64_t *n_kept,
                                        struct oj_error *err)
{
    struct repeated_segments r = {0};
    oj_status status = list_crowded_segments(b, n, point, &r, err);
    *n_kept = n;
    if (status == OJ_OK && r.n > 0)
    {
        status = mark_repeated_segments(b, &r, run, err);
        *n_kept = 0;
        for (int64_t i = 0; i < n; i++)
        {
            if (run[i] != UINT32_MAX)
                run[(*n_kept)++] = run[i];
        }
    }
    repeated_segments_free(&r);
    return status;
}

static oj_status sort_and_deduplicate_bucket(int64_t bucket, int thread,
                                             void *user, struct oj_error *err)
{
    struct segments_build *b = user;
    const struct oj_ordered_point *point = b->order.point;
    int64_t end = b->order.bucket_offset[bucket + 1];
    int64_t first = b->order.bucket_offset[bucket];
    uint32_t *sorted = b->sorted + first;
    int64_t n = 0, next;
    (void)thread;
    for (int64_t i = first; i < end; i = next)
    {
        int64_t n_run;
        next = oj_order_run_end(&b->order, i, end);
        n_run = next - i;
        for (int64_t at = i; at < next; at++)
            sorted[n + at - i] = point[at].index;
        if (n_run > LONG_RUN && b->equal->k < INT64_MAX)
            OJ_TRY(drop_repeated_segments(b, n_run, point + i, sorted + n,
                                          &n_run, err));
        n += n_run;
    }
    b->kept[bucket + 1] = n;
    return OJ_OK;
}

/* Closes the gaps that dropped segments have left in b->sorted. */
static void compact_buckets_after_drops(struct segments_build *b)
{
    int64_t at = 0;
    for (int64_t bucket = 0; bucket < b->order.n_buckets; bucket++)
    {
        int64_t first = b->order.bucket_offset[bucket];
        int64_t n = b->kept[bucket + 1];
        if (at != first)
            memmove(b->sorted + at, b->sorted + first,
                    (size_t)n * sizeof *b->sorted);
        at += n;
    }
    b->n_items = at;
}

/* --- on-classes and exclude-classes (see the header) ------------------------
 */

static int32_t class_of_item(const struct segments_build *b, int64_t i)
{
    const int32_t *on_class = b->flat->on_class;
    return on_class != NULL ? on_class[b->item[b->sorted[i]].feature] : 0;
}

/* Returns 1 + the index of the feature's large exclude-class, or 0 if its class
 * is not large. */
static int large_class_of_feature(const struct segments_build *b,
                                  int32_t feature)
{
    const int32_t *exclude_class = b->flat->exclude_class;
    return exclude_class == NULL
               ? 0
               : 1 + oj_large_classes_index(&b->segments->large,
                                            exclude_class[feature]);
}

static int large_class_of_item(const struct segments_build *b, int64_t i)
{
    return large_class_of_feature(b, b->item[b->sorted[i]].feature);
}

/* Sorts b->sorted stably by on-class (-on), then by large exclude-class
 * (-exclude; 0: not large), see the header. Drops the items of features without
 * an on-class (< 0). *keyed is scratch, which the caller frees, also after an
 * error. */
static oj_status sort_items_by_class(struct segments_build *b,
                                     struct oj_keyed **keyed,
                                     struct oj_error *err)
{
    struct oj_keyed *by_class;
    int64_t n = 0;
    OJ_NEW(*keyed, 2 * b->n_items, err);
    for (int64_t i = 0; i < b->n_items; i++)
    {
        int32_t of_item = class_of_item(b, i);
        uint64_t key = (uint64_t)(uint32_t)of_item * (OJ_LARGE_CLASSES + 1) +
                       (uint64_t)large_class_of_item(b, i);
        (*keyed)[n] = (struct oj_keyed){key, b->sorted[i]};
        n += of_item >= 0;
    }
    by_class = oj_radix_sort(*keyed, *keyed + n, n);
    for (int64_t i = 0; i < n; i++)
        b->sorted[i] = (uint32_t)by_class[i].value;
    b->n_items = n;
    return OJ_OK;
}

/* Records the run of items of each on-class. */
static oj_status list_runs_of_on_classes(struct segments_build *b,
                                         struct oj_error *err)
{
    struct oj_segments *segments = b->segments;
    int64_t n = 0;
    if (b->flat->on_class == NULL)
        return OJ_OK;
    for (int64_t i = 0; i < b->n_items; i++)
        n += i == 0 || class_of_item(b, i) != class_of_item(b, i - 1);
    OJ_NEW_ZEROED(segments->of_class, n, err);
    for (int64_t i = 0; i < b->n_items; i++)
    {
        int32_t on_class = class_of_item(b, i);
        if (i == 0 || on_class != class_of_item(b, i - 1))
            segments->of_class[segments->n_classes++] =
                (struct oj_segments_class){i, i, 0, 0.0, on_class};
        segments->of_class[segments->n_classes - 1].end = i + 1;
    }
    return OJ_OK;
}

static int begins_large_class(const struct segments_build *b, int64_t i)
{
    int large = large_class_of_item(b, i);
    return large > 0 &&
           (i == 0 || class_of_item(b, i) != class_of_item(b, i - 1) ||
            large_class_of_item(b, i - 1) != large);
}

/* Records the run of items of each large exclude-class within each on-class. */
static oj_status list_runs_of_exclude_classes(struct segments_build *b,
                                              struct oj_error *err)
{
    struct oj_segments *segments = b->segments;
    int64_t n = 0;
    for (int64_t i = 0; i < b->n_items && segments->large.n > 0; i++)
        n += begins_large_class(b, i);
    if (n == 0)
        return OJ_OK;
    OJ_NEW_ZEROED(segments->left_out, n, err);
    for (int64_t i = 0; i < b->n_items; i++)
    {
        int large = large_class_of_item(b, i);
        if (large == 0)
            continue;
        if (begins_large_class(b, i))
            segments->left_out[segments->n_left_out++] =
                (struct oj_segments_exclude_class){
                    i, i, 0, class_of_item(b, i),
                    segments->large.of[large - 1]};
        segments->left_out[segments->n_left_out - 1].end = i + 1;
    }
    return OJ_OK;
}

static struct oj_segments_class *
find_run_of_on_class(const struct oj_segments *segments, int32_t on_class)
{
    int64_t low = 0, high = segments->n_classes;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (segments->of_class[middle].on_class < on_class)
            low = middle + 1;
        else
            high = middle;
    }
    return low < segments->n_classes &&
                   segments->of_class[low].on_class == on_class
               ? &segments->of_class[low]
               : NULL;
}

static struct oj_segments_exclude_class *
find_run_of_exclude_class(const struct oj_segments *segments, int32_t on_class,
                          int large)
{
    int64_t low = 0, high = segments->n_left_out;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (segments->left_out[middle].on_class < on_class)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < segments->n_left_out &&
           segments->left_out[low].on_class == on_class;
         low++)
    {
        if (segments->left_out[low].exclude_class == segments->large.of[large])
            return &segments->left_out[low];
    }
    return NULL;
}

static oj_status group_items_by_class(struct segments_build *b,
                                      struct oj_error *err)
{
    struct oj_keyed *keyed = NULL;
    oj_status status;
    b->segments->large =
        oj_large_classes_find(b->flat->n_features, b->flat->exclude_class);
    if (b->flat->on_class == NULL && b->segments->large.n == 0)
        return OJ_OK;
    oj_order_free(&b->order);
    status = sort_items_by_class(b, &keyed, err);
    oj_free(keyed);
    if (status == OJ_OK)
        status = list_runs_of_on_classes(b, err);
    return status == OJ_OK ? list_runs_of_exclude_classes(b, err) : status;
}

/* Counts the features of each on-class and computes the mean size of its
 * bundles. */
static void count_features_of_on_classes(struct segments_build *b)
{
    struct oj_segments *segments = b->segments;
    int32_t last_feature = -1;
    for (int64_t i = 0; i < segments->n_classes; i++)
    {
        struct oj_segments_class *of = &segments->of_class[i];
        int64_t first = of->first / OJ_BUNDLE, end = (of->end - 1) / OJ_BUNDLE;
        double size = 0.0;
        for (int64_t at = first; at <= end; at++)
            size += (b->box[at].x1 - b->box[at].x0) +
                    (b->box[at].y1 - b->box[at].y0);
        of->bundle_size = size / (double)(end - first + 1);
    }
    /* Items are listed feature by feature, so the items of a feature are
     * adjacent. */
    for (int64_t i = 0; segments->of_class != NULL && i < b->n_listed; i++)
    {
        int32_t feature = b->item[i].feature;
        struct oj_segments_class *of =
            feature == last_feature
                ? NULL
                : find_run_of_on_class(segments, b->flat->on_class[feature]);
        last_feature = feature;
        if (of != NULL)
            of->n_features++;
    }
}

/* Counts the features in each run of a large exclude-class. The slots that pad
 * the last bundle repeat the last segment and belong to the run of this
 * segment. */
static void count_features_of_exclude_classes(struct segments_build *b)
{
    struct oj_segments *segments = b->segments;
    int32_t last_feature = -1;
    for (int64_t i = 0; segments->left_out != NULL && i < b->n_listed; i++)
    {
        int32_t feature = b->item[i].feature;
        int large = large_class_of_feature(b, feature);
        struct oj_segments_exclude_class *of = NULL;
        if (feature != last_feature && large > 0)
            of = find_run_of_exclude_class(
                segments,
                b->flat->on_class != NULL ? b->flat->on_class[feature] : 0,
                large - 1);
        last_feature = feature;
        if (of != NULL)
            of->n_features++;
    }
    for (int64_t i = 0; i < segments->n_left_out; i++)
    {
        if (segments->left_out[i].end == b->n_items)
            segments->left_out[i].end = segments->n_bundles * OJ_BUNDLE;
    }
}

struct oj_segments_class
oj_segments_find_on_class(const struct oj_segments *segments, int32_t on_class)
{
    const struct oj_segments_class *found =
        find_run_of_on_class(segments, on_class);
    return found != NULL ? *found
                         : (struct oj_segments_class){0, 0, 0, 0.0, on_class};
}

struct oj_segments_exclude_class
oj_segments_find_exclude_class(const struct oj_segments *segments,
                               int32_t on_class, int i)
{
    const struct oj_segments_exclude_class *found =
        find_run_of_exclude_class(segments, on_class, i);
    return found != NULL ? *found
                         : (struct oj_segments_exclude_class){
                               0, 0, 0, on_class, segments->large.of[i]};
}

/* --- bundles -------------------------------------------------------------- */

static void fill_bundles(int64_t first, int64_t end, void *user)
{
    struct segments_build *b = user;
    const struct oj_flat *flat = b->flat;
    for (int64_t i = first; i < end; i++)
    {
        struct oj_bundle *bundle = &b->segments->bundle[i];
        struct oj_box box = oj_box_empty();
        for (int s = 0; s < OJ_BUNDLE; s++)
        {
            int64_t at = i * OJ_BUNDLE + s;
            const struct item *item =
                &b->item[b->sorted[at < b->n_items ? at : b->n_items - 1]];
            uint32_t v = item->vertex, w = item->is_point ? v : v + 1;
            double ax = flat->x[v], ay = flat->y[v];
            double bx = flat->x[w], by = flat->y[w];
            bundle->ax[s] = ax;
            bundle->ay[s] = ay;
            bundle->bx[s] = bx;
            bundle->by[s] = by;
            b->segments->feature[i * OJ_BUNDLE + s] = item->feature;
            oj_box_add_point(&box, ax, ay);
            oj_box_add_point(&box, bx, by);
        }
        b->box[i] = box;
    }
}

static oj_status make_bundles(struct segments_build *b, int n_threads,
                              struct oj_error *err)
{
    struct oj_segments *segments = b->segments;
    double size = 0.0;
    int64_t n = (b->n_items + OJ_BUNDLE - 1) / OJ_BUNDLE;
    segments->n_bundles = n;
    OJ_NEW(segments->bundle, n, err);
    OJ_NEW(segments->feature, n * OJ_BUNDLE, err);
    OJ_NEW(b->box, n, err);
    oj_parallel_slices(n_threads, n, BUNDLES_AT_ONCE, fill_bundles, b);
    for (int64_t i = 0; i < n; i++)
        size += (b->box[i].x1 - b->box[i].x0) + (b->box[i].y1 - b->box[i].y0);
    segments->bundle_size = n > 0 ? size / (double)n : 0.0;
    count_features_of_on_classes(b);
    count_features_of_exclude_classes(b);
    return oj_tree_build(&segments->tree, n_threads, n, b->box, err);
}

static oj_status sort_segments_in_morton_order(struct segments_build *b,
                                               int n_threads,
                                               struct oj_error *err)
{
    OJ_TRY(oj_order_build(&b->order, n_threads, b->n_items, b->x, b->y, err));
    oj_free(b->x);
    oj_free(b->y);
    b->x = b->y = NULL;
    OJ_NEW(b->sorted, b->n_items, err);
    OJ_NEW_ZEROED(b->kept, b->order.n_buckets + 1, err);
    OJ_TRY(oj_order_sort(&b->order, n_threads, sort_and_deduplicate_bucket, b,
                         err));
    compact_buckets_after_drops(b);
    return group_items_by_class(b, err);
}

oj_status oj_segments_build(struct oj_segments *segments,
                            const struct oj_flat *flat,
                            const struct oj_equal_features *equal,
                            int n_threads, struct oj_error *err)
{
    struct segments_build b;
    oj_status status;
    memset(segments, 0, sizeof *segments);
    memset(&b, 0, sizeof b);
    b.segments = segments;
    b.flat = flat;
    b.equal = equal;
    status = list_segments(&b, n_threads, err);
    if (status == OJ_OK)
        status = sort_segments_in_morton_order(&b, n_threads, err);
    oj_order_free(&b.order);
    if (status == OJ_OK)
        status = make_bundles(&b, n_threads, err);
    oj_free(b.first_item);
    oj_free(b.item);
    oj_free(b.x);
    oj_free(b.y);
    oj_free(b.sorted);
    oj_free(b.kept);
    oj_free(b.box);
    if (status != OJ_OK)
        oj_segments_free(segments);
    return status;
}

static int feature_has_segments(const struct oj_flat *flat, int64_t feature)
{
    for (int64_t r = first_ring_of_feature(flat, feature);
         r < first_ring_of_feature(flat, feature + 1); r++)
    {
        int64_t v = ring_start(flat, r), n = ring_start(flat, r + 1) - v;
        if (n > 1 || (n == 1 && isfinite(flat->x[v]) && isfinite(flat->y[v])))
            return 1;
    }
    return 0;
}

int64_t oj_segments_count_features(const struct oj_flat *flat, int64_t most)
{
    int64_t n = 0;
    for (int64_t f = 0; f < flat->n_features && n < most; f++)
        n += feature_has_segments(flat, f);
    return n;
}

int64_t oj_segments_bytes(const struct oj_segments *segments)
{
    return segments->n_bundles *
               (int64_t)(sizeof *segments->bundle +
                         OJ_BUNDLE * sizeof *segments->feature) +
           segments->n_classes * (int64_t)sizeof *segments->of_class +
           segments->n_left_out * (int64_t)sizeof *segments->left_out +
           oj_tree_bytes(&segments->tree);
}

void oj_segments_free(struct oj_segments *segments)
{
    oj_free(segments->bundle);
    oj_free(segments->feature);
    oj_free(segments->of_class);
    oj_free(segments->left_out);
    oj_tree_free(&segments->tree);
    memset(segments, 0, sizeof *segments);
}
