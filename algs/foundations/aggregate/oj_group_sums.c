#include "oj_group_sums.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../base/oj_exact_sum.h"

oj_status oj_group_sums_init(struct oj_group_sums *sums, int64_t n,
                             struct oj_error *err)
{
    if (n < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "the number of groups is %lld: give 0 or more",
                       (long long)n);
    sums->sum = oj_calloc(n + 1, sizeof *sums->sum);
    if (sums->sum == NULL)
        return oj_fail_nomem(err, n, sizeof *sums->sum);
    sums->n = n;
    return OJ_OK;
}

static oj_status check_groups(const struct oj_group_sums *sums, int64_t n,
                              const int64_t *group, struct oj_error *err)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (group[i] < 0 || group[i] >= sums->n)
            return oj_fail(err, OJ_ERR_ARG,
                           "group[%lld] is %lld; it must be 0 or more and less "
                           "than the number of groups, %lld",
                           (long long)i, (long long)group[i],
                           (long long)sums->n);
    }
    return OJ_OK;
}

oj_status oj_group_sums_add(struct oj_group_sums *sums, int64_t n,
                            const int64_t *group, const double *value,
                            struct oj_error *err)
{
    OJ_TRY(check_groups(sums, n, group, err));
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_exact_sum *sum = &sums->sum[group[i]];
        if (!oj_exact_sum_add_fast(sum, value[i]))
            OJ_TRY(oj_exact_sum_add(sum, value[i], err));
    }
    return OJ_OK;
}

oj_status oj_group_sums_add_integers(struct oj_group_sums *sums, int64_t n,
                                     const int64_t *group, const int64_t *value,
                                     struct oj_error *err)
{
    OJ_TRY(check_groups(sums, n, group, err));
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(oj_exact_sum_add_integer(&sums->sum[group[i]], value[i], err));
    return OJ_OK;
}

oj_status oj_group_sums_merge(struct oj_group_sums *sums, int64_t n,
                              const int64_t *group, const int64_t *offset,
                              const uint64_t *word, struct oj_error *err)
{
    OJ_TRY(check_groups(sums, n, group, err));
    for (int64_t i = 0; i < n; i++)
    {
        const int64_t n_words = offset[i + 1] - offset[i];
        if (n_words > 0)
            OJ_TRY(oj_exact_sum_add_words(&sums->sum[group[i]],
                                          word + offset[i], n_words, err));
        else if (n_words < 0)
            return oj_fail(err, OJ_ERR_DATA,
                           "offset[%lld] is less than the offset before it; "
                           "offsets must not decrease",
                           (long long)i + 1);
    }
    return OJ_OK;
}

oj_status oj_group_sums_integers(const struct oj_group_sums *sums,
                                 int64_t *value, struct oj_error *err)
{
    for (int64_t i = 0; i < sums->n; i++)
    {
        if (!oj_exact_sum_integer(&sums->sum[i], &value[i]))
            return oj_fail(err, OJ_ERR_LIMIT,
                           "the sum of group %lld, %.16g, is no integer of 64 "
                           "bits: read the sums as reals "
                           "(ogrjoin_sums_values(), in Python values())",
                           (long long)i, oj_exact_sum_value(&sums->sum[i]));
    }
    return OJ_OK;
}

void oj_group_sums_write_words(const struct oj_group_sums *sums,
                               int64_t *offset, uint64_t *word)
{
    /* receives the words if only their number is requested */
    uint64_t unused[OJ_SUM_MOST_LONG_WORDS] = {0};
    offset[0] = 0;
    for (int64_t i = 0; i < sums->n; i++)
        offset[i + 1] =
            offset[i] +
            oj_exact_sum_write_words(&sums->sum[i],
                                     word != NULL ? word + offset[i] : unused);
}

void oj_group_sums_values(const struct oj_group_sums *sums, double *value)
{
    for (int64_t i = 0; i < sums->n; i++)
        value[i] = oj_exact_sum_value(&sums->sum[i]);
}

void oj_group_sums_free(struct oj_group_sums *sums)
{
    for (int64_t i = 0; i < sums->n; i++)
        oj_exact_sum_clear(&sums->sum[i]);
    oj_free(sums->sum);
    sums->sum = NULL;
    sums->n = 0;
}
