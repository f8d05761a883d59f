/** Exact sums of numbers, one for each group; as words they are sent between
 *  processes and merged.
 *
 *  process 1   add, add, ...  ->  words \
 *  process 2   add, add, ...  ->  words  ->  merge, merge  ->  values
 *
 *  The words of a sum are those of oj_exact_sum_write_words().
 */
#ifndef OJ_GROUP_SUMS_H
#define OJ_GROUP_SUMS_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_exact_sum;

/** Zeroed memory is valid: no groups. */
struct oj_group_sums
{
    int64_t n;
    struct oj_exact_sum *sum; /**< [n] */
};

/** n sums of nothing; n < 0 is OJ_ERR_ARG.  Free with oj_group_sums_free(). */
OJ_MUST_USE oj_status oj_group_sums_init(struct oj_group_sums *sums, int64_t n,
                                         struct oj_error *err);

/** Adds value[i] to the sum of group[i].  OJ_ERR_ARG: a group out of [0, n),
 * and nothing was added; OJ_ERR_NOMEM: a part was added. */
OJ_MUST_USE oj_status oj_group_sums_add(struct oj_group_sums *sums, int64_t n,
                                        const int64_t *group,
                                        const double *value,
                                        struct oj_error *err);

OJ_MUST_USE oj_status oj_group_sums_add_integers(struct oj_group_sums *sums,
                                                 int64_t n,
                                                 const int64_t *group,
                                                 const int64_t *value,
                                                 struct oj_error *err);

/** Fills offset[n + 1], and word[offset[n]] unless word is NULL. */
void oj_group_sums_write_words(const struct oj_group_sums *sums,
                               int64_t *offset, uint64_t *word);

/** Adds the sum with the words [offset[i], offset[i + 1]) to that of group[i],
 * for n sums.  OJ_ERR_DATA: they are not words of a sum; those before were
 * added. */
OJ_MUST_USE oj_status oj_group_sums_merge(struct oj_group_sums *sums, int64_t n,
                                          const int64_t *group,
                                          const int64_t *offset,
                                          const uint64_t *word,
                                          struct oj_error *err);

/** value[n]: each sum rounded to the nearest double. */
void oj_group_sums_values(const struct oj_group_sums *sums, double *value);

/** value[n]: exact.  OJ_ERR_LIMIT: a sum is no integer of 64 bits. */
OJ_MUST_USE oj_status oj_group_sums_integers(const struct oj_group_sums *sums,
                                             int64_t *value,
                                             struct oj_error *err);

void oj_group_sums_free(struct oj_group_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
