/* Groups rows of the join side that have equal token sets. In a join of the k
 * most similar, a group is one entry of each list: otherwise each of 10,000
 * equal names would be compared with all of them. */
#include "cpu_similar.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

static uint64_t hash_token_set(const struct oj_token_sets *sets, int64_t row)
{
    uint64_t hash = (uint64_t)sets->size[row];
    for (int64_t i = sets->offset[row]; i < sets->offset[row + 1]; i++)
        hash = (hash ^ sets->token[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

static int are_equal_sets(const struct oj_token_sets *sets, int64_t a,
                          int64_t b)
{
    int64_t n = sets->offset[a + 1] - sets->offset[a];
    return sets->size[a] == sets->size[b] &&
           sets->offset[b + 1] - sets->offset[b] == n &&
           memcmp(sets->token + sets->offset[a], sets->token + sets->offset[b],
                  (size_t)n * sizeof *sets->token) == 0;
}

/* Returns the rows that have tokens, sorted by hashes of their sets, and sets
 * *n to their number. The result is in keyed, which has room for [2 rows]. */
static const struct oj_keyed *
sort_rows_by_hash(const struct oj_token_sets *sets, struct oj_keyed *keyed,
                  int64_t *n)
{
    int64_t at = 0;
    for (int64_t row = 0; row < sets->n_rows; row++)
    {
        if (sets->size[row] > 0)
            keyed[at++] = (struct oj_keyed){hash_token_set(sets, row), row};
    }
    *n = at;
    return oj_radix_sort(keyed, keyed + at, at);
}

/* Lists n rows group by group: a row whose set differs from that of the row
 * before begins a group. Returns the number of groups. If groups is NULL, only
 * counts them. */
static int64_t list_groups(const struct oj_token_sets *sets,
                           const struct oj_keyed *sorted, int64_t n,
                           struct oj_equal_groups *groups)
{
    int64_t n_groups = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int is_new =
            i == 0 || sorted[i].key != sorted[i - 1].key ||
            !are_equal_sets(sets, sorted[i - 1].value, sorted[i].value);
        if (groups != NULL)
        {
            groups->feature[i] = (int32_t)sorted[i].value;
            if (is_new)
                groups->first[n_groups] = (int32_t)i;
        }
        n_groups += is_new;
    }
    return n_groups;
}

static oj_status make_groups(struct similar_side *side,
                             const struct oj_index_args *args,
                             const struct oj_keyed *sorted, int64_t n,
                             struct oj_error *err)
{
    struct oj_equal_groups *groups = &side->groups;
    const struct oj_token_sets *sets = args->join_side->texts;
    int64_t n_groups = list_groups(sets, sorted, n, NULL);
    if (n_groups == n)
        return OJ_OK;
    OJ_NEW(groups->feature, n, err);
    OJ_NEW(groups->first, n_groups + 1, err);
    OJ_NEW(side->group_of, sets->n_rows, err);
    groups->n = list_groups(sets, sorted, n, groups);
    groups->first[n_groups] = (int32_t)n;
    OJ_TRY(oj_equal_groups_sort_and_link(groups, args, err));
    for (int64_t row = 0; row < sets->n_rows; row++)
        side->group_of[row] = -1;
    for (int64_t g = 0; g < n_groups; g++)
        side->group_of[oj_equal_groups_first_feature(groups, g)] = (int32_t)g;
    return OJ_OK;
}

oj_status oj_similar_side_group_equal_sets(struct similar_side *side,
                                           const struct oj_index_args *args,
                                           struct oj_error *err)
{
    const struct oj_token_sets *sets = args->join_side->texts;
    struct oj_keyed *keyed;
    int64_t n;
    oj_status status;
    const struct oj_keyed *sorted;
    OJ_NEW(keyed, 2 * sets->n_rows, err);
    sorted = sort_rows_by_hash(sets, keyed, &n);
    status = make_groups(side, args, sorted, n, err);
    oj_free(keyed);
    return status;
}
