/** Exact sums of numbers, one for each group.  Several processes can each add a
 *  part of the numbers: their sums are serialised to words, sent and merged.
 *
 *  process 1   add, add, ...  ->  words \
 *  process 2   add, add, ...  ->  words  ->  merge, merge  ->  values
 *
 *  oj_exact_sum_write_words() defines the words of a sum.
 */
#ifndef OJ_GROUP_SUMS_H
#define OJ_GROUP_SUMS_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_exact_sum;

/** Sums of all groups. Owner; zeroed memory is valid and has no groups. */
struct oj_group_sums
{
    int64_t n;
    struct oj_exact_sum *sum; /**< [n] */
};

/** Makes n sums of 0; OJ_ERR_ARG for n < 0. Free with oj_group_sums_free(). */
OJ_MUST_USE oj_status oj_group_sums_init(struct oj_group_sums *sums, int64_t n,
                                         struct oj_error *err);

/** Adds value[i] to the sum of group[i], for n values. OJ_ERR_ARG if a group is
 * not in [0, sums->n); nothing is then added. After OJ_ERR_NOMEM some values
 * have been added. */
OJ_MUST_USE oj_status oj_group_sums_add(struct oj_group_sums *sums, int64_t n,
                                        const int64_t *group,
                                        const double *value,
                                        struct oj_error *err);

/** Like oj_group_sums_add(), for integers. */
OJ_MUST_USE oj_status oj_group_sums_add_integers(struct oj_group_sums *sums,
                                                 int64_t n,
                                                 const int64_t *group,
                                                 const int64_t *value,
                                                 struct oj_error *err);

/** Serialises all sums: sum i becomes the words [offset[i], offset[i + 1]).
 * offset has n + 1 elements. With word NULL only offset is filled, to learn the
 * size of word: offset[n]. */
void oj_group_sums_write_words(const struct oj_group_sums *sums,
                               int64_t *offset, uint64_t *word);

/** Adds n serialised sums: the words [offset[i], offset[i + 1]) to the sum of
 * group[i]. OJ_ERR_DATA if the words of a sum are invalid; the sums before it
 * have then been added. */
OJ_MUST_USE oj_status oj_group_sums_merge(struct oj_group_sums *sums, int64_t n,
                                          const int64_t *group,
                                          const int64_t *offset,
                                          const uint64_t *word,
                                          struct oj_error *err);

/** Fills value [n] with the sums, each rounded to the nearest double. */
void oj_group_sums_values(const struct oj_group_sums *sums, double *value);

/** Fills value [n] with the exact sums. OJ_ERR_LIMIT if one of them is no
 * integer of 64 bits. */
OJ_MUST_USE oj_status oj_group_sums_integers(const struct oj_group_sums *sums,
                                             int64_t *value,
                                             struct oj_error *err);

void oj_group_sums_free(struct oj_group_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
