#include "cpu_morton_order.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../kernels/oj_morton.h"

#include <stdlib.h>
#include <string.h>

#define N_PREFIXES 65536
#define N_SAMPLES 2048
#define NO_KEY UINT32_MAX
#define MOST_DIGIT_BITS 10

/* Sorts v [n], and sets *low and *high to the range of its middle 98 %,
 * enlarged by 5 % at both ends. */
static void range_of_middle_98_percent(double *v, int n, double *low,
                                       double *high)
{
    double wider;
    qsort(v, (size_t)n, sizeof *v, oj_compare_doubles);
    *low = v[n / 100];
    *high = v[n - 1 - n / 100];
    wider = 0.05 * (*high - *low);
    *low -= wider;
    *high += wider;
}

struct oj_box oj_order_frame_of_sample(int64_t n, const double *x,
                                       const double *y)
{
    double sample_x[N_SAMPLES], sample_y[N_SAMPLES];
    struct oj_box frame = {0.0, 0.0, 0.0, 0.0};
    int n_samples = 0;
    for (int i = 0; i < N_SAMPLES; i++)
    {
        int64_t at = n <= N_SAMPLES ? i : (int64_t)((double)n / N_SAMPLES * i);
        if (at >= n)
            break;
        if (isfinite(x[at]) && isfinite(y[at]))
        {
            sample_x[n_samples] = x[at];
            sample_y[n_samples++] = y[at];
        }
    }
    if (n_samples == 0)
        return frame;
    range_of_middle_98_percent(sample_x, n_samples, &frame.x0, &frame.x1);
    range_of_middle_98_percent(sample_y, n_samples, &frame.y0, &frame.y1);
    return frame;
}

/* Returns the number of columns of the Morton grid per CRS unit. The grid is a
 * square around the frame with 65,536 columns and rows. */
static double compute_morton_key_scale(const struct oj_box *frame)
{
    double width = frame->x1 - frame->x0, height = frame->y1 - frame->y0;
    double scale = 65536.0 / (height > width ? height : width);
    return isfinite(scale) ? scale : 0.0;
}

void oj_order_counts_to_positions(int64_t n_slices, int64_t n_buckets,
                                  int64_t *start, int64_t *offset)
{
    int64_t total = 0;
    for (int64_t bucket = 0; bucket < n_buckets; bucket++)
    {
        offset[bucket] = total;
        for (int64_t s = 0; s < n_slices; s++)
        {
            int64_t count = start[s * n_buckets + bucket];
            start[s * n_buckets + bucket] = total;
            total += count;
        }
    }
    offset[n_buckets] = total;
}

struct order_build
{
    struct oj_order *order;
    struct oj_box frame;
    double scale;
    int64_t n;
    int64_t n_slices;
    const double *x, *y;
    const struct oj_reach_mask *mask; /* NULL: all points */
    int64_t n_prefixes;   /* number of prefixes of Morton keys; 1: a single
                             bucket for all points */
    int prefix_shift;     /* right shift from a key to its prefix */
    uint32_t *histogram;  /* [n_slices][n_prefixes] number of points */
    uint16_t *bucket_of;  /* [n_prefixes] bucket of each prefix */
    int64_t *slice_start; /* [n_slices][n_buckets] at first the number of points
                             of the slice in the bucket, later the position at
                             which the slice writes its next point of the bucket
                           */
};

static void compute_and_count_morton_keys(int64_t slice, int thread, void *user)
{
    struct order_build *b = user;
    uint32_t *histogram = b->histogram + slice * b->n_prefixes;
    int shift = b->prefix_shift;
    uint32_t *keys = b->order->keys;
    const struct oj_reach_mask *mask = b->mask;
    struct oj_box f = b->frame;
    double scale = b->scale;
    int64_t end = oj_order_slice_begin(b->n, b->n_slices, slice + 1);
    (void)thread;
    for (int64_t i = oj_order_slice_begin(b->n, b->n_slices, slice); i < end;
         i++)
    {
        double x = b->x[i], y = b->y[i];
        uint32_t key = NO_KEY;
        if (x == x && y == y && (mask == NULL || oj_reach_mask_has(mask, x, y)))
        {
            key = oj_morton(oj_morton_column(x, f.x0, scale),
                            oj_morton_column(y, f.y0, scale));
            /* NO_KEY means "no point", so a key of this value is decremented */
            key -= key == NO_KEY;
            histogram[(uint64_t)key >> shift]++;
        }
        keys[i] = key;
    }
}

static void scatter_keys_of_slice_to_buckets(int64_t slice, int thread,
                                             void *user)
{
    struct order_build *b = user;
    struct oj_order *order = b->order;
    int64_t *start = b->slice_start + slice * order->n_buckets;
    const uint32_t *keys = order->keys;
    int64_t end = oj_order_slice_begin(b->n, b->n_slices, slice + 1);
    int shift = b->prefix_shift;
    (void)thread;
    for (int64_t i = oj_order_slice_begin(b->n, b->n_slices, slice); i < end;
         i++)
    {
        uint32_t key = keys[i];
        struct oj_ordered_point *point;
        if (key == NO_KEY)
            continue;
        point = order->point + start[b->bucket_of[(uint64_t)key >> shift]]++;
        point->x = b->x[i];
        point->y = b->y[i];
        point->key = key;
        point->index = (uint32_t)i;
    }
}

/* Divides the range of Morton keys, by prefix, into buckets of about
 * OJ_BUCKET_POINTS points. Fills order->bucket_offset, and b->slice_start with
 * the positions at which each slice writes. */
static oj_status cut_key_prefixes_into_buckets(struct order_build *b,
                                               struct oj_error *err)
{
    struct oj_order *order = b->order;
    int64_t in_bucket = 0, n_buckets = 0;
    for (int64_t p = 0; p < b->n_prefixes; p++)
    {
        int64_t count = 0;
        for (int64_t s = 0; s < b->n_slices; s++)
            count += b->histogram[s * b->n_prefixes + p];
        if (in_bucket > 0 && in_bucket + count > OJ_BUCKET_POINTS)
        {
            n_buckets++;
            in_bucket = 0;
        }
        in_bucket += count;
        b->bucket_of[p] = (uint16_t)n_buckets;
    }
    n_buckets++;
    b->slice_start = oj_calloc(b->n_slices * n_buckets, sizeof(int64_t));
    oj_free(order->bucket_offset);
    order->bucket_offset = oj_calloc(n_buckets + 1, sizeof(int64_t));
    if (b->slice_start == NULL || order->bucket_offset == NULL)
        return oj_fail_nomem(err, (b->n_slices + 1) * n_buckets,
                             sizeof(int64_t));
    order->n_buckets = n_buckets;
    for (int64_t s = 0; s < b->n_slices; s++)
    {
        for (int64_t p = 0; p < b->n_prefixes; p++)
            b->slice_start[s * n_buckets + b->bucket_of[p]] +=
                b->histogram[s * b->n_prefixes + p];
    }
    oj_order_counts_to_positions(b->n_slices, n_buckets, b->slice_start,
                                 order->bucket_offset);
    order->n_points = order->bucket_offset[n_buckets];
    order->largest_bucket = 0;
    for (int64_t bucket = 0; bucket < n_buckets; bucket++)
    {
        const int64_t *first = order->bucket_offset + bucket;
        if (first[1] - first[0] > order->largest_bucket)
            order->largest_bucket = first[1] - first[0];
    }
    return OJ_OK;
}

/* Maximum number of points for which order->keys is kept for the next build. */
#define OJ_KEPT_KEYS (1 << 18)

oj_status oj_order_build(struct oj_order *order, int n_threads, int64_t n,
                         const double *x, const double *y, struct oj_error *err)
{
    return oj_order_build_masked(order, n_threads, n, x, y, NULL, err);
}

oj_status oj_order_build_masked(struct oj_order *order, int n_threads,
                                int64_t n, const double *x, const double *y,
                                const struct oj_reach_mask *mask,
                                struct oj_error *err)
{
    struct order_build b;
    oj_status status;
    if (n < 0 || n >= UINT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a batch has %lld points; at most %lld are possible: "
                       "use smaller batches",
                       (long long)n, (long long)UINT32_MAX - 1);
    OJ_ROOM(order->point, 0, n, order->cap_points, err);
    OJ_ROOM(order->keys, 0, n, order->cap_keys, err);
    memset(&b, 0, sizeof b);
    b.order = order;
    b.n = n;
    b.n_slices = n < 65536 ? 1 : n_threads;
    b.x = x;
    b.y = y;
    b.frame = oj_order_frame_of_sample(n, x, y);
    b.mask =
        mask != NULL && oj_reach_mask_may_exclude(mask, &b.frame) ? mask : NULL;
    b.scale = compute_morton_key_scale(&b.frame);
    /* Sort by the fewest upper bits of the key that give at least 16 codes per
     * point. More bits would cost more time than they save. */
    order->sort_from_bit = 28;
    while (order->sort_from_bit > 0 && (n >> (28 - order->sort_from_bit)) > 0)
        order->sort_from_bit--;
    b.n_prefixes = n <= OJ_BUCKET_POINTS ? 1 : N_PREFIXES;
    b.prefix_shift = b.n_prefixes == 1 ? 32 : 16;
    b.histogram = oj_calloc(b.n_slices * b.n_prefixes, sizeof(uint32_t));
    b.bucket_of = oj_malloc(b.n_prefixes, sizeof(uint16_t));
    if (b.histogram == NULL || b.bucket_of == NULL)
        status =
            oj_fail_nomem(err, b.n_slices * b.n_prefixes, sizeof(uint32_t));
    else
    {
        oj_parallel_for(n_threads, b.n_slices, compute_and_count_morton_keys,
                        &b);
        status = cut_key_prefixes_into_buckets(&b, err);
        if (status == OJ_OK)
            oj_parallel_for(n_threads, b.n_slices,
                            scatter_keys_of_slice_to_buckets, &b);
    }
    oj_free(b.histogram);
    oj_free(b.bucket_of);
    oj_free(b.slice_start);
    if (n > OJ_KEPT_KEYS) /* The keys have been copied into the points. */
    {
        oj_free(order->keys);
        order->keys = NULL;
        order->cap_keys = 0;
    }
    return status;
}

void oj_order_sort_bucket(struct oj_order *order, int64_t bucket,
                          struct oj_ordered_point *scratch)
{
    struct oj_ordered_point *from = order->point + order->bucket_offset[bucket];
    int64_t n = order->bucket_offset[bucket + 1] - order->bucket_offset[bucket];
    struct oj_ordered_point *to = scratch;
    uint32_t differ = 0;
    int high = 0, low = order->sort_from_bit, n_passes, width;
    for (int64_t i = 1; i < n; i++)
        differ |= from[i].key ^ from[0].key;
    while (high < 32 && (differ >> high) != 0)
        high++;
    if (high <= low)
        return;
    n_passes = (high - low + MOST_DIGIT_BITS - 1) / MOST_DIGIT_BITS;
    width = (high - low + n_passes - 1) / n_passes;
    for (int shift = low; shift < high; shift += width)
    {
        uint32_t mask = (1u << width) - 1;
        int32_t count[1 << MOST_DIGIT_BITS];
        int32_t total = 0;
        struct oj_ordered_point *swap;
        memset(count, 0, (mask + 1) * sizeof *count);
        for (int64_t i = 0; i < n; i++)
            count[(from[i].key >> shift) & mask]++;
        for (uint32_t digit = 0; digit <= mask; digit++)
        {
            int32_t c = count[digit];
            count[digit] = total;
            total += c;
        }
        for (int64_t i = 0; i < n; i++)
            to[count[(from[i].key >> shift) & mask]++] = from[i];
        swap = from;
        from = to;
        to = swap;
    }
    if (from == scratch)
        memcpy(order->point + order->bucket_offset[bucket], scratch,
               (size_t)n * sizeof *scratch);
}

struct order_sorting
{
    struct oj_order *order;
    struct oj_ordered_point **scratch; /* [n_threads] scratch of each thread */
    oj_status (*then)(int64_t, int, void *, struct oj_error *);
    void *user;
};

static oj_status sort_one_bucket(int64_t bucket, int thread, void *user,
                                 struct oj_error *err)
{
    struct order_sorting *s = user;
    oj_order_sort_bucket(s->order, bucket, s->scratch[thread]);
    return s->then == NULL ? OJ_OK : s->then(bucket, thread, s->user, err);
}

oj_status oj_order_sort(struct oj_order *order, int n_threads,
                        oj_status (*then)(int64_t, int, void *,
                                          struct oj_error *),
                        void *user, struct oj_error *err)
{
    struct order_sorting s = {order, NULL, then, user};
    oj_status status = OJ_OK;
    s.scratch = oj_calloc(n_threads, sizeof *s.scratch);
    if (s.scratch == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *s.scratch);
    for (int t = 0; t < n_threads && status == OJ_OK; t++)
    {
        s.scratch[t] = oj_malloc(order->largest_bucket, sizeof **s.scratch);
        if (s.scratch[t] == NULL)
            status =
                oj_fail_nomem(err, order->largest_bucket, sizeof **s.scratch);
    }
    if (status == OJ_OK)
        status = oj_parallel_try(n_threads, order->n_buckets, 1,
                                 sort_one_bucket, &s, err);
    for (int t = 0; t < n_threads; t++)
        oj_free(s.scratch[t]);
    oj_free(s.scratch);
    return status;
}

oj_status oj_order_mark_frequent_keys(int64_t n,
                                      const struct oj_ordered_point *run,
                                      uint32_t many, uint8_t *is_crowded,
                                      int64_t *n_crowded, struct oj_error *err)
{
    uint32_t *count;
    int bits = 6, any = 0;
    while ((INT64_C(1) << bits) < n)
        bits++;
    *n_crowded = 0;
    OJ_NEW_ZEROED(count, INT64_C(1) << bits, err);
    for (int64_t i = 0; i < n; i++)
        any |= ++count[run[i].key * 0x9E3779B1u >> (32 - bits)] > many;
    for (int64_t i = 0; i < n && any; i++)
    {
        is_crowded[i] = count[run[i].key * 0x9E3779B1u >> (32 - bits)] > many;
        *n_crowded += is_crowded[i];
    }
    oj_free(count);
    return OJ_OK;
}

void oj_order_free(struct oj_order *order)
{
    oj_free(order->bucket_offset);
    oj_free(order->point);
    oj_free(order->keys);
    memset(order, 0, sizeof *order);
}
