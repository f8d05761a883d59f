#include "oj_tie_rank_sort.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_lane_loops.h"

#include <string.h>

/* Rows of up to this many pairs are sorted by counting; a multiple of OJ_WIDE.
 */
#define FEW 128

static int is_in_order(int64_t n, const int32_t *tie_rank,
                       const int32_t *feature)
{
    for (int64_t i = 1; i < n; i++)
    {
        if (oj_tie_rank(tie_rank, feature[i - 1]) >
            oj_tie_rank(tie_rank, feature[i]))
            return 0;
    }
    return 1;
}

/* Sorts up to FEW pairs: the position of a pair is the number of pairs with a
 * lower rank. */
OJ_CLONES static void sort_few(int64_t n, const int32_t *tie_rank,
                               int32_t *feature, double *measure)
{
    int32_t features[FEW + OJ_WIDE], ranks[FEW + OJ_WIDE], place[FEW];
    int32_t *rank = tie_rank != NULL ? ranks : features;
    double measures[FEW];
    for (int64_t i = 0; i < n; i++)
        features[i] = feature[i];
    for (int64_t i = 0; tie_rank != NULL && i < n; i++)
        ranks[i] = tie_rank[feature[i]];
    OJ_SIXTEEN rank[n + c] = 0;
    for (int64_t i = 0; i < n; i += OJ_WIDE)
    {
        OJ_SIXTEEN place[i + c] = 0;
        for (int64_t j = 0; j < n; j++)
        {
            int32_t other = rank[j];
            OJ_SIXTEEN place[i + c] += other < rank[i + c];
        }
    }
    for (int64_t i = 0; i < n; i++)
        feature[place[i]] = features[i];
    if (measure == NULL)
        return;
    for (int64_t i = 0; i < n; i++)
        measures[i] = measure[i];
    for (int64_t i = 0; i < n; i++)
        measure[place[i]] = measures[i];
}

static oj_status radix_sort_pairs_by_tie_rank(struct oj_tie_rank_sorter *order,
                                              int64_t n,
                                              const int32_t *tie_rank,
                                              int32_t *feature, double *measure,
                                              struct oj_error *err)
{
    struct oj_keyed *key;
    OJ_ROOM(order->key, 0, 2 * n, order->cap_key, err);
    OJ_ROOM(order->measure, 0, measure != NULL ? n : 0, order->cap_measure,
            err);
    key = order->key;
    for (int64_t i = 0; i < n; i++)
    {
        key[i].key = (uint64_t)oj_tie_rank(tie_rank, feature[i]);
        key[i].value = i << 32 | feature[i];
    }
    key = oj_radix_sort(key, key + n, n);
    for (int64_t i = 0; i < n; i++)
        feature[i] = (int32_t)(key[i].value & INT32_MAX);
    if (measure == NULL)
        return OJ_OK;
    memcpy(order->measure, measure, (size_t)n * sizeof *measure);
    for (int64_t i = 0; i < n; i++)
        measure[i] = order->measure[key[i].value >> 32];
    return OJ_OK;
}

oj_status oj_tie_rank_sort_pairs(struct oj_tie_rank_sorter *order, int64_t n,
                                 const int32_t *tie_rank, int32_t *feature,
                                 double *measure, struct oj_error *err)
{
    /* For 5 to FEW pairs, sorting is faster than testing whether they are
     * sorted. */
    if (n < 2 || ((n < 5 || n > FEW) && is_in_order(n, tie_rank, feature)))
        return OJ_OK;
    if (n > FEW)
        return radix_sort_pairs_by_tie_rank(order, n, tie_rank, feature,
                                            measure, err);
    sort_few(n, tie_rank, feature, measure);
    return OJ_OK;
}

void oj_tie_rank_sorter_free(struct oj_tie_rank_sorter *order)
{
    oj_free(order->key);
    oj_free(order->measure);
    memset(order, 0, sizeof *order);
}
