#include "oj_equal_features.h"

#include "../../../flatten/base/oj_alloc.h"
#include "oj_tie_rank_sort.h"

#include <stdlib.h>
#include <string.h>

int oj_fids_are_distinct(const struct oj_flat *flat, const int32_t *tie_rank)
{
    int64_t i = 1;
    while (tie_rank == NULL && flat->fid != NULL && i < flat->n_features &&
           flat->fid[i] > flat->fid[i - 1])
        i++;
    return tie_rank != NULL || (flat->fid != NULL && i >= flat->n_features);
}

/* Returns 1 if a condition depends on more of a feature than its classes and
 * its FID. */
static int has_other_conditions(const struct oj_relation *relation,
                                const struct oj_flat *join_side)
{
    if (relation->unordered_pairs != 0 || join_side->max_distance != NULL ||
        relation->n_spans > 0 || oj_relation_compares_attributes(relation))
        return 1;
    /* A minimum distance and exclude_same_geometry compare whole geometries: of
     * two features with an equal segment they may exclude one and keep the
     * other. A point has no other vertex, and a feature without points cannot
     * equal a row, which has only points: in these cases the conditions are
     * harmless. */
    return (relation->min_distance > 0.0 ||
            (relation->exclude_same_geometry &&
             (join_side->part_kinds & OJ_PART_POINT) != 0)) &&
           !oj_flat_is_points(join_side);
}

struct oj_equal_features
oj_equal_features_make(const struct oj_relation *relation,
                       const struct oj_flat *join_side, const int32_t *tie_rank)
{
    struct oj_equal_features of = {.k = INT64_MAX,
                                   .tie_rank = tie_rank,
                                   .on_class = join_side->on_class,
                                   .exclude_class = join_side->exclude_class};
    int repeat =
        relation->exclude_self && !oj_fids_are_distinct(join_side, tie_rank);
    if (!oj_relation_is_nearest(relation) || relation->ties == OJ_TIES_ALL ||
        has_other_conditions(relation, join_side) ||
        (repeat && join_side->exclude_class != NULL))
        return of;
    of.k = relation->k + (relation->exclude_self && !repeat);
    of.exclude_fid = repeat ? join_side->fid : NULL;
    return of;
}

/* One of several features with equal geometries. */
struct equal_feature
{
    int64_t excluded; /* class (-exclude) or repeated FID by which rows exclude
                         the feature */
    int64_t place;    /* index in the caller's list */
    int32_t on_class, rank;
    int32_t number; /* number of the class or FID in `excluded`, from 0; -1: no
                       row excludes the feature */
};

static int compare_ranks(const struct equal_feature *a,
                         const struct equal_feature *b)
{
    if (a->on_class != b->on_class)
        return a->on_class < b->on_class ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_by_class_and_rank(const void *left, const void *right)
{
    return compare_ranks(left, right);
}

static int compare_by_excluded_class(const void *left, const void *right)
{
    const struct equal_feature *a = left, *b = right;
    if (a->excluded != b->excluded)
        return a->excluded < b->excluded ? -1 : 1;
    return compare_ranks(a, b);
}

/* Numbers the classes that rows can exclude. Returns the number of classes. */
static int32_t number_excluded_classes(const struct oj_equal_features *of,
                                       int64_t n, struct equal_feature *list)
{
    int32_t n_classes = 0;
    qsort(list, (size_t)n, sizeof *list, compare_by_excluded_class);
    for (int64_t i = 0; i < n; i++)
    {
        n_classes += i == 0 || list[i].excluded != list[i - 1].excluded;
        list[i].number = of->exclude_class != NULL && list[i].excluded < 0
                             ? -1
                             : n_classes - 1;
    }
    return n_classes;
}

/* Counts of the features kept so far, in total and by the class that rows
 * exclude. */
struct needed_counts
{
    int64_t all;
    int64_t most, second; /* the two largest counts of a class */
    int32_t most_number;  /* class with the largest count; -1: none */
    int64_t *of_class;    /* [classes] */
};

/* Returns 1 if the feature must be kept: some row excludes a class such that
 * fewer than k of the features kept so far remain. The class in question is the
 * largest one other than the feature's own. */
static int must_keep_next_feature(const struct needed_counts *counts, int64_t k,
                                  int32_t number)
{
    int64_t left_out = number >= 0 && number == counts->most_number
                           ? counts->second
                           : counts->most;
    return counts->all - left_out < k;
}

static void add_feature_to_counts(struct needed_counts *counts, int32_t number)
{
    int64_t n;
    counts->all++;
    if (number < 0)
        return;
    n = ++counts->of_class[number];
    if (number == counts->most_number)
        counts->most = n;
    else if (n > counts->most)
    {
        counts->second = counts->most;
        counts->most = n;
        counts->most_number = number;
    }
    else if (n > counts->second)
        counts->second = n;
}

/* Marks the features of one -on class that must be kept. list: sorted by tie
 * rank. of_class: counts, all 0 on entry and on return. */
static void mark_needed_of_class(const struct oj_equal_features *of, int64_t n,
                                 const struct equal_feature *list,
                                 int64_t *of_class, uint8_t *is_needed)
{
    struct needed_counts counts = {.most_number = -1, .of_class = of_class};
    for (int64_t i = 0; i < n; i++)
    {
        int needed = must_keep_next_feature(&counts, of->k, list[i].number);
        is_needed[list[i].place] = (uint8_t)needed;
        if (needed)
            add_feature_to_counts(&counts, list[i].number);
    }
    for (int64_t i = 0; i < n; i++)
    {
        if (list[i].number >= 0)
            of_class[list[i].number] = 0;
    }
}

static void list_equal_features(const struct oj_equal_features *of, int64_t n,
                                const int32_t *feature,
                                struct equal_feature *list)
{
    for (int64_t i = 0; i < n; i++)
    {
        int32_t f = feature[i];
        int64_t excluded = -1;
        if (of->exclude_fid != NULL)
            excluded = of->exclude_fid[f];
        else if (of->exclude_class != NULL)
            excluded = of->exclude_class[f];
        list[i] = (struct equal_feature){
            .excluded = excluded,
            .place = i,
            .on_class = of->on_class != NULL ? of->on_class[f] : 0,
            .rank = oj_tie_rank(of->tie_rank, f),
            .number = -1};
    }
}

oj_status oj_equal_features_mark_needed(const struct oj_equal_features *of,
                                        int64_t n, const int32_t *feature,
                                        uint8_t *is_needed,
                                        struct oj_error *err)
{
    struct equal_feature *list;
    int64_t *of_class = NULL, end;
    int32_t n_classes = 0;
    memset(is_needed, 1, (size_t)n);
    if (n <= of->k)
        return OJ_OK;
    OJ_NEW(list, n, err);
    list_equal_features(of, n, feature, list);
    if (of->exclude_fid != NULL || of->exclude_class != NULL)
        n_classes = number_excluded_classes(of, n, list);
    of_class = oj_calloc(n_classes + 1, sizeof *of_class);
    if (of_class == NULL)
    {
        oj_free(list);
        return oj_fail_nomem(err, n_classes + 1, sizeof *of_class);
    }
    qsort(list, (size_t)n, sizeof *list, compare_by_class_and_rank);
    for (int64_t i = 0; i < n; i = end)
    {
        end = i + 1;
        while (end < n && list[end].on_class == list[i].on_class)
            end++;
        mark_needed_of_class(of, end - i, list + i, of_class, is_needed);
    }
    oj_free(of_class);
    oj_free(list);
    return OJ_OK;
}
