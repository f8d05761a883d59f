#include "oj_equal_groups.h"

#include "../../../flatten/base/oj_alloc.h"
#include "oj_equal_features.h"
#include "oj_tie_rank_sort.h"

#include <stdlib.h>
#include <string.h>

/* --- index ---------------------------------------------------------------- */

static int compare_keyed(const void *left, const void *right)
{
    const struct oj_keyed *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

/* Sorts features by -on class, then by tie rank. */
static void sort_features_by_class_and_rank(const struct oj_index_args *args,
                                            int64_t n, int32_t *feature,
                                            struct oj_keyed *keyed)
{
    const int32_t *on_class = args->join_side->on_class;
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t of = on_class != NULL ? (uint32_t)on_class[feature[i]] : 0;
        uint32_t rank = (uint32_t)oj_tie_rank(args->tie_rank, feature[i]);
        keyed[i] = (struct oj_keyed){(uint64_t)of << 32 | rank, feature[i]};
    }
    qsort(keyed, (size_t)n, sizeof *keyed, compare_keyed);
    for (int64_t i = 0; i < n; i++)
        feature[i] = (int32_t)keyed[i].value;
}

static oj_status sort_entries(struct oj_equal_groups *groups,
                              const struct oj_index_args *args,
                              struct oj_error *err)
{
    struct oj_keyed *keyed;
    int64_t most = 0;
    for (int64_t entry = 0; entry < groups->n; entry++)
    {
        int64_t n = oj_equal_groups_count(groups, entry);
        most = n > most ? n : most;
    }
    OJ_NEW(keyed, most, err);
    for (int64_t entry = 0; entry < groups->n; entry++)
    {
        int64_t n = oj_equal_groups_count(groups, entry);
        if (n > 1)
            sort_features_by_class_and_rank(
                args, n, groups->feature + groups->first[entry], keyed);
    }
    oj_free(keyed);
    return OJ_OK;
}

/* Returns 1 if every row that excludes one of the features excludes the other,
 * too. */
static int are_features_excluded_together(const struct oj_flat *flat, int32_t a,
                                          int32_t b)
{
    if (flat->exclude_class != NULL)
        return flat->exclude_class[a] >= 0 &&
               flat->exclude_class[a] == flat->exclude_class[b];
    return flat->fid[a] == flat->fid[b];
}

/* Fills next_other if a row can exclude several features of an entry. */
static oj_status
link_features_excluded_together(struct oj_equal_groups *groups,
                                const struct oj_index_args *args,
                                struct oj_error *err)
{
    const struct oj_flat *flat = args->join_side;
    int64_t n = groups->first[groups->n];
    int by_fid = args->relation.exclude_self && flat->fid != NULL &&
                 !oj_fids_are_distinct(flat, args->tie_rank);
    if (flat->exclude_class == NULL && !by_fid)
        return OJ_OK;
    OJ_NEW(groups->next_other, n, err);
    for (int64_t i = n - 1; i >= 0; i--)
    {
        int together = i + 1 < n &&
                       are_features_excluded_together(flat, groups->feature[i],
                                                      groups->feature[i + 1]);
        groups->next_other[i] =
            together ? groups->next_other[i + 1] : (int32_t)(i + 1);
    }
    return OJ_OK;
}

oj_status oj_equal_groups_sort_and_link(struct oj_equal_groups *groups,
                                        const struct oj_index_args *args,
                                        struct oj_error *err)
{
    if (args->relation.unordered_pairs != 0)
        OJ_TRY(oj_sorted_fids_make(&args->relation, args->join_side,
                                   args->tie_rank, &groups->fids, err));
    if (groups->first == NULL)
        return OJ_OK;
    OJ_TRY(sort_entries(groups, args, err));
    return link_features_excluded_together(groups, args, err);
}

/* --- entries --------------------------------------------------------------
 *
 * Neighbours in Morton order that have equal geometries become one entry. */

/* Runs of equal Morton codes longer than this are sorted, so that equal
 * features are adjacent. In shorter runs only neighbours in the given order are
 * compared. */
#define LONG_RUN 32

static int are_coordinates_equal(const struct oj_ordered_point *a,
                                 const struct oj_ordered_point *b)
{
    return a->x == b->x && a->y == b->y;
}

static int compare_by_code_and_coordinates(const void *left, const void *right)
{
    const struct oj_ordered_point *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Sorts shapes with one common centre by the hash of their geometry. */
static void sort_shapes_of_one_centre_by_hash(const struct oj_flat *flat,
                                              int64_t n,
                                              struct oj_ordered_point *run)
{
    for (int64_t i = 0; i < n; i++)
        run[i].key = (uint32_t)oj_flat_geometry_hash(flat, run[i].index);
    qsort(run, (size_t)n, sizeof *run, compare_by_code_and_coordinates);
}

/* Sorts a long run so that equal geometries are adjacent. A run keeps its order
 * if no location in it has more than LONG_RUN features. */
static oj_status sort_long_run(const struct oj_flat *flat, int64_t n,
                               struct oj_ordered_point *run,
                               uint8_t *is_crowded, struct oj_error *err)
{
    int64_t n_crowded, end;
    OJ_TRY(oj_order_mark_frequent_keys(n, run, LONG_RUN, is_crowded, &n_crowded,
                                       err));
    if (n_crowded == 0)
        return OJ_OK;
    qsort(run, (size_t)n, sizeof *run, compare_by_code_and_coordinates);
    for (int64_t i = 0; !oj_flat_is_points(flat) && i < n; i = end)
    {
        for (end = i + 1; end < n && are_coordinates_equal(&run[i], &run[end]);)
            end++;
        if (end - i > LONG_RUN)
            sort_shapes_of_one_centre_by_hash(flat, end - i, run + i);
    }
    return OJ_OK;
}

static oj_status sort_long_runs(const struct oj_flat *flat,
                                struct oj_order *order, struct oj_error *err)
{
    uint8_t *is_crowded;
    int64_t next;
    oj_status status = OJ_OK;
    OJ_NEW(is_crowded, order->n_points, err);
    for (int64_t i = 0; i < order->n_points && status == OJ_OK; i = next)
    {
        next = oj_order_run_end(order, i, order->n_points);
        if (next - i > LONG_RUN)
            status = sort_long_run(flat, next - i, order->point + i, is_crowded,
                                   err);
    }
    oj_free(is_crowded);
    return status;
}

/* Returns 1 if two neighbours belong to one entry. Features of different runs,
 * or with their own maximum distance, never do. */
static int do_features_belong_to_one_entry(const struct oj_class_runs *classes,
                                           const struct oj_flat *flat,
                                           const struct oj_ordered_point *a,
                                           const struct oj_ordered_point *b)
{
    return are_coordinates_equal(a, b) && flat->max_distance == NULL &&
           oj_class_runs_are_equal(classes, flat, a->index, b->index) &&
           oj_flat_same_geometry(flat, a->index, flat, b->index);
}

/* Lists the entries and their features. */
static oj_status list_entries(struct oj_equal_groups *groups,
                              const struct oj_flat *flat,
                              const struct oj_order *order,
                              struct oj_error *err)
{
    const struct oj_ordered_point *point = order->point;
    int64_t n = order->n_points, at = 0;
    OJ_NEW(groups->feature, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        groups->feature[i] = (int32_t)point[i].index;
        at += i == 0 || !do_features_belong_to_one_entry(
                            &groups->classes, flat, &point[i - 1], &point[i]);
    }
    groups->n = at;
    if (at == n)
        return OJ_OK;
    OJ_NEW(groups->first, at + 1, err);
    at = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (i == 0 || !do_features_belong_to_one_entry(
                          &groups->classes, flat, &point[i - 1], &point[i]))
            groups->first[at++] = (int32_t)i;
    }
    groups->first[at] = (int32_t)n;
    return OJ_OK;
}

oj_status oj_equal_groups_make(struct oj_equal_groups *groups,
                               const struct oj_index_args *args,
                               struct oj_order *order, struct oj_error *err)
{
    const struct oj_flat *flat = args->join_side;
    OJ_TRY(sort_long_runs(flat, order, err));
    OJ_TRY(oj_class_runs_sort(&groups->classes, flat, order, err));
    OJ_TRY(list_entries(groups, flat, order, err));
    OJ_TRY(oj_class_runs_make(&groups->classes, flat, groups->n, groups->first,
                              groups->feature, err));
    return oj_equal_groups_sort_and_link(groups, args, err);
}

int64_t oj_equal_groups_bytes(const struct oj_equal_groups *groups)
{
    int64_t n = groups->first != NULL ? groups->first[groups->n] : groups->n;
    int64_t n_bytes = n * (int64_t)sizeof *groups->feature;
    if (groups->first != NULL)
        n_bytes += (groups->n + 1) * (int64_t)sizeof *groups->first;
    if (groups->next_other != NULL)
        n_bytes += n * (int64_t)sizeof *groups->next_other;
    if (groups->fids.copy != NULL)
        n_bytes += groups->fids.n * (int64_t)sizeof *groups->fids.copy;
    return n_bytes + oj_class_runs_bytes(&groups->classes);
}

void oj_equal_groups_free(struct oj_equal_groups *groups)
{
    oj_free(groups->feature);
    oj_free(groups->first);
    oj_free(groups->next_other);
    oj_sorted_fids_free(&groups->fids);
    oj_class_runs_free(&groups->classes);
    memset(groups, 0, sizeof *groups);
}

/* --- one row -------------------------------------------------------------- */

struct oj_rank_range
oj_equal_groups_ranks_of_row(const struct oj_equal_groups *groups,
                             const struct oj_row_index *index, int64_t row)
{
    struct oj_rank_range range = {0, INT32_MAX};
    const struct oj_sorted_fids *fids = &groups->fids;
    int unordered = index->args.relation.unordered_pairs;
    int64_t fid, below;
    if (unordered == 0 || fids->n == 0)
        return range;
    fid = index->input->fid[row];
    below = oj_sorted_fids_count_below(fids, fid, row);
    if (unordered < 0)
        range.end = (int32_t)below;
    else
        range.from =
            (int32_t)(below + (below < fids->n && fids->fid[below] == fid));
    return range;
}

/* Returns the first position of a run (sorted by class and tie rank) that is
 * not less than (on_class, rank); run.end if there is no such position. */
static int64_t find_in_run(const struct oj_equal_groups *groups,
                           const struct oj_index_args *args,
                           struct oj_equal_run run, int32_t on_class,
                           int64_t rank)
{
    const int32_t *of = args->join_side->on_class;
    while (run.first < run.end)
    {
        int64_t middle = run.first + (run.end - run.first) / 2;
        int32_t feature = groups->feature[middle];
        if (of != NULL && of[feature] != on_class
                ? (uint32_t)of[feature] < (uint32_t)on_class
                : oj_tie_rank(args->tie_rank, feature) < rank)
            run.first = middle + 1;
        else
            run.end = middle;
    }
    return run.first;
}

struct oj_equal_run
oj_equal_groups_find_run(const struct oj_equal_groups *groups,
                         const struct oj_row_index *index, int64_t row,
                         int64_t entry, struct oj_rank_range range)
{
    const int32_t *on_class = index->input->on_class;
    int32_t of = on_class != NULL ? on_class[row] : 0;
    struct oj_equal_run run = {entry, entry + 1};
    if (groups->first != NULL)
        run = (struct oj_equal_run){groups->first[entry],
                                    groups->first[entry + 1]};
    if (run.end - run.first < 2 ||
        (on_class == NULL && range.from == 0 && range.end == INT32_MAX))
        return run;
    run.first = find_in_run(groups, &index->args, run, of, range.from);
    run.end = find_in_run(groups, &index->args, run, of, range.end);
    return run;
}

/* Returns 1 if the row excludes the feature, and with it all features that
 * next_other skips. */
static int is_feature_excluded_by_row(const struct oj_row_index *index,
                                      int64_t row, int32_t feature)
{
    const struct oj_flat *input = index->input;
    const struct oj_flat *join_side = index->args.join_side;
    if (join_side->exclude_class != NULL)
        return input->exclude_class[row] >= 0 &&
               input->exclude_class[row] == join_side->exclude_class[feature];
    return input->fid[row] == join_side->fid[feature];
}

oj_status oj_equal_groups_add_pairs(const struct oj_equal_groups *groups,
                                    const struct oj_row_index *index,
                                    struct oj_row_worker *worker, int64_t row,
                                    struct oj_equal_run run, double compared,
                                    int64_t *n_tried, struct oj_error *err)
{
    const struct oj_relation *relation = &index->args.relation;
    int64_t most = oj_relation_sorts_by_measure(relation) &&
                           relation->ties == OJ_TIES_FIRST
                       ? relation->k
                       : INT64_MAX;
    for (int64_t i = run.first; i < run.end && most > 0;)
    {
        int32_t feature = groups->feature[i];
        OJ_TRY(oj_row_poll_cancel(index, worker, err));
        ++*n_tried;
        if (groups->next_other != NULL &&
            is_feature_excluded_by_row(index, row, feature))
        {
            i = groups->next_other[i];
            continue;
        }
        i++;
        if (!oj_pair_filter_accepts(&index->filter, row, feature))
            continue;
        OJ_TRY(oj_row_add_pair(index, worker, row, feature, compared, err));
        most--;
    }
    return OJ_OK;
}
