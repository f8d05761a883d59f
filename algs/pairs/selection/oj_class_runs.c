#include "oj_class_runs.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/oj_radix_sort.h"

#include <string.h>

/* Returns 1 + the index of the feature's exclude-class among the large classes,
 * or 0 if the class is not large. */
static int large_class_of_feature(const struct oj_class_runs *runs,
                                  const struct oj_flat *flat, int64_t feature)
{
    return runs->large.n == 0
               ? 0
               : 1 + oj_large_classes_index(&runs->large,
                                            flat->exclude_class[feature]);
}

static uint64_t key_of_feature(const struct oj_class_runs *runs,
                               const struct oj_flat *flat, int64_t feature)
{
    uint64_t on_class =
        flat->on_class != NULL ? (uint32_t)flat->on_class[feature] : 0;
    return on_class * (OJ_LARGE_CLASSES + 1) +
           (uint64_t)large_class_of_feature(runs, flat, feature);
}

int oj_class_runs_are_equal(const struct oj_class_runs *runs,
                            const struct oj_flat *flat, int64_t a, int64_t b)
{
    return key_of_feature(runs, flat, a) == key_of_feature(runs, flat, b);
}

static int has_classes(const struct oj_class_runs *runs,
                       const struct oj_flat *flat)
{
    return flat->on_class != NULL || runs->large.n > 0;
}

oj_status oj_class_runs_sort(struct oj_class_runs *runs,
                             const struct oj_flat *flat, struct oj_order *order,
                             struct oj_error *err)
{
    int64_t n = order->n_points;
    struct oj_keyed *keyed;
    struct oj_ordered_point *point;
    const struct oj_keyed *sorted;
    runs->large = oj_large_classes_find(flat->n_features, flat->exclude_class);
    if (n == 0 || !has_classes(runs, flat))
        return OJ_OK;
    OJ_NEW(point, n, err);
    keyed = oj_malloc(2 * n, sizeof *keyed);
    if (keyed == NULL)
    {
        oj_free(point);
        return oj_fail_nomem(err, 2 * n, sizeof *keyed);
    }
    for (int64_t i = 0; i < n; i++)
        keyed[i] = (struct oj_keyed){
            key_of_feature(runs, flat, order->point[i].index), i};
    sorted = oj_radix_sort(keyed, keyed + n, n);
    for (int64_t i = 0; i < n; i++)
        point[i] = order->point[sorted[i].value];
    memcpy(order->point, point, (size_t)n * sizeof *point);
    oj_free(keyed);
    oj_free(point);
    return OJ_OK;
}

/* Sets runs->on_class, and runs->first[i + 1] to the number of entries in run
 * i. */
static void set_classes_and_count_entries(struct oj_class_runs *runs,
                                          const struct oj_flat *flat, int64_t n,
                                          const int32_t *first,
                                          const int32_t *feature)
{
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t f = feature[first != NULL ? first[i] : i];
        int32_t of = flat->on_class != NULL ? flat->on_class[f] : 0;
        if (at < 0 || (runs->on_class != NULL && runs->on_class[at] != of))
        {
            at++;
            if (runs->on_class != NULL)
                runs->on_class[at] = of;
        }
        runs->first[1 + at * (runs->large.n + 1) +
                    large_class_of_feature(runs, flat, f)]++;
    }
}

oj_status oj_class_runs_make(struct oj_class_runs *runs,
                             const struct oj_flat *flat, int64_t n,
                             const int32_t *first, const int32_t *feature,
                             struct oj_error *err)
{
    int32_t last = -1;
    int64_t n_first;
    if (!has_classes(runs, flat))
        return OJ_OK;
    for (int64_t i = 0; i < n && flat->on_class != NULL; i++)
    {
        int32_t of = flat->on_class[feature[first != NULL ? first[i] : i]];
        runs->n += of != last;
        last = of;
    }
    if (flat->on_class != NULL)
        OJ_NEW(runs->on_class, runs->n, err);
    else
        runs->n = 1;
    n_first = runs->n * (runs->large.n + 1) + 1;
    OJ_NEW_ZEROED(runs->first, n_first, err);
    set_classes_and_count_entries(runs, flat, n, first, feature);
    for (int64_t i = 1; i < n_first; i++)
        runs->first[i] += runs->first[i - 1];
    return OJ_OK;
}

/* Returns the position of a class in on_class, or n if no entry has it. */
static int64_t position_of_on_class(const struct oj_class_runs *runs,
                                    int32_t on_class)
{
    int64_t low = 0, end = runs->n;
    while (low < end)
    {
        int64_t middle = low + (end - low) / 2;
        if (runs->on_class[middle] < on_class)
            low = middle + 1;
        else
            end = middle;
    }
    return low < runs->n && runs->on_class[low] == on_class ? low : runs->n;
}

struct oj_class_run oj_class_runs_find(const struct oj_class_runs *runs,
                                       const struct oj_flat *input, int64_t row)
{
    struct oj_class_run run = {0, INT32_MAX, INT32_MAX, -1};
    const int32_t *of_run;
    int64_t at = 0;
    int large;
    if (runs->first == NULL)
        return run;
    if (runs->on_class != NULL)
        at = position_of_on_class(runs, input->on_class[row]);
    if (at == runs->n)
        return (struct oj_class_run){0, -1, INT32_MAX, -1};
    of_run = runs->first + at * (runs->large.n + 1);
    run.first = of_run[0];
    run.last = of_run[runs->large.n + 1] - 1;
    if (runs->large.n == 0)
        return run;
    large = oj_large_classes_index(&runs->large, input->exclude_class[row]);
    if (large < 0 || of_run[large + 1] == of_run[large + 2])
        return run;
    run.skip_first = of_run[large + 1];
    run.skip_last = of_run[large + 2] - 1;
    if (run.skip_last == run.last) /* nodes may reach beyond the last entry */
    {
        run.last = run.skip_first - 1;
        run.skip_first = INT32_MAX;
        run.skip_last = -1;
    }
    return run;
}

int64_t oj_class_runs_bytes(const struct oj_class_runs *runs)
{
    int64_t n = runs->n * (runs->large.n + 1) + 1;
    if (runs->first == NULL)
        return 0;
    return (n + (runs->on_class != NULL ? runs->n : 0)) *
           (int64_t)sizeof *runs->first;
}

void oj_class_runs_free(struct oj_class_runs *runs)
{
    oj_free(runs->on_class);
    oj_free(runs->first);
    memset(runs, 0, sizeof *runs);
}
