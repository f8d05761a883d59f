#include "cpu_layer_segment_tree.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_spatial_order.h"
#include "../../foundations/base/oj_radix.h"

#include <stdlib.h>
#include <string.h>

/* Runs of more segments with equal Morton codes are searched for equal
 * segments. */
#define LONG_RUN 32
#define BUNDLES_AT_ONCE 1024
#define FEATURES_PER_TASK 4096

/* A segment that is not in a bundle yet. */
struct item
{
    uint32_t vertex; /* index of its first vertex */
    int32_t feature;
    uint8_t is_point; /* 1: its ends are equal */
};

struct segments_build
{
    struct oj_segments *segments;
    const struct oj_flat *flat;
    const int32_t *tie_rank;
    int64_t k_distinct;
    int64_t n_items, n_listed; /* number of items that are kept; number of items
                                  before repeated segments were dropped */
    int64_t *first_item;       /* [n_feature_tasks + 1] first item of each
                                  task */
    struct item *item;
    double *x, *y; /* [n_items] centres of the segments */
    struct oj_order order;
    uint32_t *sorted;   /* [n_items] item indices in Morton order, bucket by
                           bucket */
    int64_t *kept;      /* [n_buckets + 1] number of items kept in each bucket,
                           then their prefix sums */
    struct oj_box *box; /* [n_bundles] */
};

static int64_t ring_start(const struct oj_flat *flat, int64_t ring)
{
    return flat->vertex_offset == NULL ? ring : flat->vertex_offset[ring];
}

static int64_t rings_before(const struct oj_flat *flat, int64_t feature)
{
    return flat->part_offset == NULL
               ? feature
               : flat->ring_offset[flat->part_offset[feature]];
}

/* Visits the segments of a task's features. First pass: counts them; second
 * pass (`fill`): writes them as items. */
static int64_t list_segments_of_task(struct segments_build *b, int64_t task,
                                     int64_t at, int fill)
{
    const struct oj_flat *flat = b->flat;
    int64_t end = (task + 1) * FEATURES_PER_TASK;
    if (end > flat->n_features)
        end = flat->n_features;
    for (int64_t f = task * FEATURES_PER_TASK; f < end; f++)
    {
        int64_t last_ring = rings_before(flat, f + 1);
        for (int64_t r = rings_before(flat, f); r < last_ring; r++)
        {
            int64_t v = ring_start(flat, r);
            int64_t last = ring_start(flat, r + 1) - 1;
            int is_point = v == last;
            if (is_point && !(isfinite(flat->x[v]) && isfinite(flat->y[v])))
                continue; /* a feature without geometry, in a layer of single
                             points */
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

static int64_t scan_counts(int64_t n, int64_t *counts)
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
    b->n_items = b->n_listed = scan_counts(n_tasks, b->first_item);
    if (b->n_items > INT32_MAX || b->flat->n_vertices > (int64_t)UINT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld segments; at most %d are "
                       "possible (use -join_where or -spat to join a part)",
                       (long long)b->n_items, INT32_MAX);
    OJ_NEW(b->item, b->n_items, err);
    OJ_NEW(b->x, b->n_items, err);
    OJ_NEW(b->y, b->n_items, err);
    oj_parallel_for(n_threads, n_tasks, fill_task_segments, b);
    return OJ_OK;
}

/* The coordinates of a segment, for the detection of repetitions. */
struct segment_bits
{
    double at[4];
    int32_t rank;
    uint32_t item;
};

static int compare_segments_by_coordinates(const void *a, const void *b)
{
    const struct segment_bits *u = a, *v = b;
    for (int i = 0; i < 4; i++)
    {
        if (u->at[i] != v->at[i])
            return u->at[i] < v->at[i] ? -1 : 1;
    }
    if (u->rank != v->rank)
        return u->rank < v->rank ? -1 : 1;
    return u->item < v->item ? -1 : u->item > v->item;
}

/* Drops repeated segments from a run of items with equal Morton codes: of equal
 * segments keeps those with the k_distinct lowest ranks. Otherwise a million
 * equal points would all be candidates of every query near them. Returns the
 * number of items left; if memory runs out, all. */
static int64_t drop_repeated_segments(const struct segments_build *b, int64_t n,
                                      uint32_t *run)
{
    const struct oj_flat *flat = b->flat;
    struct segment_bits *twin = oj_malloc(n, sizeof *twin);
    int64_t n_kept = 0, same = 0;
    if (twin == NULL)
        return n;
    for (int64_t i = 0; i < n; i++)
    {
        const struct item *item = &b->item[run[i]];
        uint32_t v = item->vertex, w = item->is_point ? v : v + 1;
        twin[i].at[0] = flat->x[v];
        twin[i].at[1] = flat->y[v];
        twin[i].at[2] = flat->x[w];
        twin[i].at[3] = flat->y[w];
        twin[i].rank =
            b->tie_rank == NULL ? item->feature : b->tie_rank[item->feature];
        twin[i].item = run[i];
    }
    qsort(twin, (size_t)n, sizeof *twin, compare_segments_by_coordinates);
    for (int64_t i = 0; i < n; i++)
    {
        /* compared as numbers, not as bytes: 0.0 equals -0.0 */
        int repeats = i > 0 && twin[i].at[0] == twin[i - 1].at[0] &&
                      twin[i].at[1] == twin[i - 1].at[1] &&
                      twin[i].at[2] == twin[i - 1].at[2] &&
                      twin[i].at[3] == twin[i - 1].at[3];
        same = repeats ? same + (twin[i].rank != twin[i - 1].rank) : 0;
        if (same < b->k_distinct)
            run[n_kept++] = twin[i].item;
    }
    oj_free(twin);
    return n_kept;
}

static oj_status sort_and_deduplicate_bucket(int64_t bucket, int thread,
                                             void *user, struct oj_error *err)
{
    struct segments_build *b = user;
    int64_t first = b->order.bucket_offset[bucket];
    int64_t end = b->order.bucket_offset[bucket + 1];
    uint32_t *sorted = b->sorted + first;
    int64_t n = 0;
    (void)thread;
    (void)err;
    for (int64_t i = first; i < end;)
    {
        uint32_t key = b->order.point[i].key;
        int64_t n_run = 0;
        while (i < end && b->order.point[i].key == key)
            sorted[n + n_run++] = b->order.point[i++].index;
        if (n_run > LONG_RUN && b->k_distinct < INT64_MAX)
            n_run = drop_repeated_segments(b, n_run, sorted + n);
        n += n_run;
    }
    b->kept[bucket + 1] = n;
    return OJ_OK;
}

/* Closes the gaps in the array of items that dropped segments have left. */
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

/* --- classes (only features of equal class can be pairs) ------------------ */

/* Sorts the items stably by class and drops those whose feature has no class.
 * The caller frees *keyed. */
static oj_status sort_items_by_class(struct segments_build *b,
                                     struct oj_keyed **keyed,
                                     struct oj_error *err)
{
    const int32_t *on_class = b->flat->on_class;
    struct oj_keyed *by_class;
    int64_t n = 0;
    OJ_NEW(*keyed, 2 * b->n_items, err);
    for (int64_t i = 0; i < b->n_items; i++)
    {
        int32_t of_item = on_class[b->item[b->sorted[i]].feature];
        (*keyed)[n] = (struct oj_keyed){(uint32_t)of_item, b->sorted[i]};
        n += of_item >= 0;
    }
    by_class = oj_radix_sort(*keyed, *keyed + n, n);
    for (int64_t i = 0; i < n; i++)
        b->sorted[i] = (uint32_t)by_class[i].value;
    b->n_items = n;
    return OJ_OK;
}

static int32_t class_of_item(const struct segments_build *b, int64_t i)
{
    return b->flat->on_class[b->item[b->sorted[i]].feature];
}

/* Records the run of items of each class. */
static oj_status list_classes(struct segments_build *b, struct oj_error *err)
{
    struct oj_segments *segments = b->segments;
    int64_t n = 0;
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

static struct oj_segments_class *find_class(const struct oj_segments *segments,
                                            int32_t on_class)
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

static oj_status group_items_by_class(struct segments_build *b,
                                      struct oj_error *err)
{
    struct oj_keyed *keyed = NULL;
    oj_status status;
    if (b->flat->on_class == NULL)
        return OJ_OK;
    oj_order_free(&b->order);
    status = sort_items_by_class(b, &keyed, err);
    oj_free(keyed);
    return status == OJ_OK ? list_classes(b, err) : status;
}

/* Counts the features of each class and computes the mean size of its bundles.
 */
static void measure_classes(struct segments_build *b)
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
    /* items are listed feature by feature, so those of a feature are adjacent
     */
    for (int64_t i = 0; segments->of_class != NULL && i < b->n_listed; i++)
    {
        int32_t feature = b->item[i].feature;
        struct oj_segments_class *of =
            feature == last_feature
                ? NULL
                : find_class(segments, b->flat->on_class[feature]);
        last_feature = feature;
        if (of != NULL)
            of->n_features++;
    }
}

struct oj_segments_class
oj_segments_find_class(const struct oj_segments *segments, int32_t on_class)
{
    const struct oj_segments_class *found = find_class(segments, on_class);
    return found != NULL ? *found
                         : (struct oj_segments_class){0, 0, 0, 0.0, on_class};
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
    measure_classes(b);
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
                            const struct oj_flat *flat, const int32_t *tie_rank,
                            int64_t k_distinct, int n_threads,
                            struct oj_error *err)
{
    struct segments_build b;
    oj_status status;
    memset(segments, 0, sizeof *segments);
    memset(&b, 0, sizeof b);
    b.segments = segments;
    b.flat = flat;
    b.tie_rank = tie_rank;
    b.k_distinct = k_distinct;
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

static int has_segments(const struct oj_flat *flat, int64_t feature)
{
    for (int64_t r = rings_before(flat, feature);
         r < rings_before(flat, feature + 1); r++)
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
        n += has_segments(flat, f);
    return n;
}

int64_t oj_segments_bytes(const struct oj_segments *segments)
{
    return segments->n_bundles *
               (int64_t)(sizeof *segments->bundle +
                         OJ_BUNDLE * sizeof *segments->feature) +
           segments->n_classes * (int64_t)sizeof *segments->of_class +
           oj_tree_bytes(&segments->tree);
}

void oj_segments_free(struct oj_segments *segments)
{
    oj_free(segments->bundle);
    oj_free(segments->feature);
    oj_free(segments->of_class);
    oj_tree_free(&segments->tree);
    memset(segments, 0, sizeof *segments);
}
