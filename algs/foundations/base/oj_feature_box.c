#include "oj_feature_box.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"

#include <stdlib.h>
#include <string.h>

/* Number of features sampled to estimate the typical distance between
 * neighbours. Each sample is compared with all boxes. */
#define N_SAMPLES 31

struct oj_box oj_box_of_feature(const struct oj_flat *flat, int64_t feature)
{
    int64_t first, end;
    oj_flat_vertex_range(flat, feature, &first, &end);
    return oj_box_of_points(flat->x + first, flat->y + first, end - first);
}

static struct oj_box widened_box_of_feature(const struct oj_flat *flat,
                                            int64_t feature)
{
    struct oj_box box = oj_box_of_feature(flat, feature);
    return oj_box_is_empty(&box) ? box : oj_box_widened(&box, 0.0);
}

static double middle_x(const struct oj_box *box)
{
    return 0.5 * box->x0 + 0.5 * box->x1;
}

static double middle_y(const struct oj_box *box)
{
    return 0.5 * box->y0 + 0.5 * box->y1;
}

/* Returns the distance from the centre of box `sample` to the nearest different
 * centre, or INFINITY if all centres are equal. */
static double nearest_middle_distance(const struct oj_boxes *boxes,
                                      int64_t sample)
{
    double x = middle_x(&boxes->box[sample]);
    double y = middle_y(&boxes->box[sample]);
    double best = INFINITY;
    for (int64_t i = 0; i < boxes->n; i++)
    {
        double dx, dy, d;
        if (oj_box_is_empty(&boxes->box[i]))
            continue;
        dx = middle_x(&boxes->box[i]) - x;
        dy = middle_y(&boxes->box[i]) - y;
        d = dx * dx + dy * dy;
        best = d > 0.0 && d < best ? d : best;
    }
    return sqrt(best);
}

/* Returns the i-th of N_SAMPLES evenly spaced features. If that feature has no
 * box, returns the next feature with a box, or boxes->n if there is none. */
static int64_t sample_feature_with_box(const struct oj_boxes *boxes, int64_t i)
{
    int64_t feature = boxes->n / N_SAMPLES * i + boxes->n % N_SAMPLES / 2;
    while (feature < boxes->n && oj_box_is_empty(&boxes->box[feature]))
        feature++;
    return feature;
}

static double typical_spacing(const struct oj_boxes *boxes)
{
    double distance[N_SAMPLES], spacing;
    int64_t n = 0;
    for (int64_t i = 0; i < N_SAMPLES; i++)
    {
        int64_t feature = sample_feature_with_box(boxes, i);
        double d =
            feature < boxes->n ? nearest_middle_distance(boxes, feature) : 0.0;
        if (d > 0.0 && d < INFINITY)
            distance[n++] = d;
    }
    if (n > 0)
    {
        qsort(distance, (size_t)n, sizeof *distance, oj_compare_doubles);
        return distance[n / 2];
    }
    /* There is one feature, or all centres are equal. Any value is correct,
     * because the search enlarges its window. */
    spacing = oj_box_largest_coordinate(&boxes->all) * 1e-6;
    return spacing > 0.0 && spacing < INFINITY ? spacing : 1.0;
}

oj_status oj_boxes_make(const struct oj_flat *flat, struct oj_boxes *out,
                        struct oj_error *err)
{
    struct oj_boxes boxes;
    memset(&boxes, 0, sizeof boxes);
    boxes.n = flat->n_features;
    boxes.all = oj_box_empty();
    OJ_NEW(boxes.box, boxes.n, err);
    for (int64_t i = 0; i < boxes.n; i++)
    {
        boxes.box[i] = widened_box_of_feature(flat, i);
        if (oj_box_is_empty(&boxes.box[i]))
            continue;
        boxes.n_boxes++;
        oj_box_add_box(&boxes.all, &boxes.box[i]);
    }
    boxes.spacing = boxes.n_boxes > 0 ? typical_spacing(&boxes) : 1.0;
    *out = boxes;
    return OJ_OK;
}

int oj_boxes_window_is_wide(const struct oj_boxes *boxes, double reach,
                            int64_t k)
{
    double limit = 4096.0 + 16.0 * (double)k;
    double across = 2.0 * reach / boxes->spacing;
    return !(reach < INFINITY) ||
           ((double)boxes->n_boxes > limit && across * across > limit);
}

void oj_boxes_free(struct oj_boxes *boxes)
{
    oj_free(boxes->box);
    memset(boxes, 0, sizeof *boxes);
}
