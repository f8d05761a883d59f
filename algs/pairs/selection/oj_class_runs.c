#include "oj_class_runs.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/oj_radix.h"

#include <string.h>

oj_status oj_class_runs_sort(struct oj_order *order, const int32_t *on_class,
                             struct oj_error *err)
{
    int64_t n = order->n_points;
    struct oj_keyed *keyed = NULL;
    struct oj_ordered_point *point = NULL;
    const struct oj_keyed *sorted;
    if (n == 0)
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
            (uint64_t)(uint32_t)on_class[order->point[i].index], i};
    sorted = oj_radix_sort(keyed, keyed + n, n);
    for (int64_t i = 0; i < n; i++)
        point[i] = order->point[sorted[i].value];
    memcpy(order->point, point, (size_t)n * sizeof *point);
    oj_free(keyed);
    oj_free(point);
    return OJ_OK;
}

oj_status oj_class_runs_make(struct oj_class_runs *runs, int64_t n,
                             const int32_t *first, const int32_t *feature,
                             const int32_t *on_class, struct oj_error *err)
{
    int64_t n_runs = 0;
    int32_t last = -1;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t of = on_class[feature[first != NULL ? first[i] : i]];
        n_runs += of != last;
        last = of;
    }
    OJ_NEW(runs->on_class, n_runs, err);
    OJ_NEW(runs->first, n_runs + 1, err);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t of = on_class[feature[first != NULL ? first[i] : i]];
        if (runs->n > 0 && runs->on_class[runs->n - 1] == of)
            continue;
        runs->on_class[runs->n] = of;
        runs->first[runs->n++] = (int32_t)i;
    }
    runs->first[runs->n] = (int32_t)n;
    return OJ_OK;
}

struct oj_class_run oj_class_runs_find(const struct oj_class_runs *runs,
                                       const int32_t *on_class, int64_t row)
{
    int64_t low = 0, end = runs->n;
    if (runs->first == NULL || on_class == NULL)
        return (struct oj_class_run){0, INT32_MAX};
    while (low < end)
    {
        int64_t middle = low + (end - low) / 2;
        if (runs->on_class[middle] < on_class[row])
            low = middle + 1;
        else
            end = middle;
    }
    if (low == runs->n || runs->on_class[low] != on_class[row])
        return (struct oj_class_run){0, -1};
    return (struct oj_class_run){runs->first[low], runs->first[low + 1] - 1};
}

int64_t oj_class_runs_bytes(const struct oj_class_runs *runs)
{
    return runs->first == NULL
               ? 0
               : (2 * runs->n + 1) * (int64_t)sizeof *runs->first;
}

void oj_class_runs_free(struct oj_class_runs *runs)
{
    oj_free(runs->on_class);
    oj_free(runs->first);
    memset(runs, 0, sizeof *runs);
}
