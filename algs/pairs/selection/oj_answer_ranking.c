#include "oj_answer_ranking.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "oj_tie_rank_sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lists up to this length are sorted by insertion, which is fast if they are
 * nearly sorted. */
#define SHORT_LIST 24

struct oj_ranking oj_ranking_make(const struct oj_relation *relation,
                                  const int32_t *tie_rank)
{
    double most = relation->max_distance;
    if (oj_relation_is_similar(relation)) /* similarities are compared negated,
                                             so every one is below this initial
                                             bound */
        most = relation->n_similar > 0 ? 0.0 : relation->vector.max_difference;
    return (struct oj_ranking){.k = relation->k,
                               .keep_ties = relation->ties == OJ_TIES_ALL,
                               .max_distance = most,
                               .tie_rank = tie_rank,
                               .bound = most,
                               .last_rank = INT64_MAX};
}

void oj_ranking_start(struct oj_ranking *ranking)
{
    ranking->n = ranking->n_cut = 0;
    ranking->bound = ranking->max_distance;
    ranking->last_rank = INT64_MAX;
}

void oj_ranking_free(struct oj_ranking *ranking)
{
    oj_free(ranking->list);
    ranking->list = NULL;
    ranking->n = ranking->n_cut = ranking->capacity = 0;
}

static int compare_by_distance(const void *left, const void *right)
{
    const struct oj_candidate *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_by_feature(const void *left, const void *right)
{
    const struct oj_candidate *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->distance > b->distance) - (a->distance < b->distance);
}

static void sort_candidates(struct oj_candidate *list, int64_t n,
                            int (*compare)(const void *, const void *))
{
    if (n > SHORT_LIST)
    {
        qsort(list, (size_t)n, sizeof *list, compare);
        return;
    }
    for (int64_t i = 1; i < n; i++)
    {
        struct oj_candidate moving = list[i];
        int64_t j = i;
        for (; j > 0 && compare(&list[j - 1], &moving) > 0; j--)
            list[j] = list[j - 1];
        list[j] = moving;
    }
}

/* Sorts the list, drops repeated features and cuts it after the k-th candidate,
 * or after its ties if they are kept. */
static void drop_repeats_and_keep_k_nearest(struct oj_ranking *ranking)
{
    struct oj_candidate *list = ranking->list;
    int64_t n = 0;
    sort_candidates(list, ranking->n, compare_by_feature);
    for (int64_t i = 0; i < ranking->n; i++)
    {
        if (n == 0 || list[n - 1].rank != list[i].rank)
            list[n++] = list[i];
    }
    sort_candidates(list, n, compare_by_distance);
    if (n >= ranking->k)
    {
        int64_t kept = ranking->k;
        ranking->bound = list[kept - 1].distance;
        if (!ranking->keep_ties)
            ranking->last_rank = list[kept - 1].rank;
        while (ranking->keep_ties && kept < n &&
               list[kept].distance == ranking->bound)
            kept++;
        n = kept;
    }
    ranking->n = ranking->n_cut = n;
}

/* Up to this k the list is kept sorted at all times, so that the bound is known
 * once k candidates are found. */
#define FEW_NEAREST 32

static int are_candidates_kept_in_order(const struct oj_ranking *ranking)
{
    return ranking->k <= FEW_NEAREST && !ranking->keep_ties;
}

/* Inserts a candidate within the bound into the sorted list of the k nearest;
 * replaces a farther entry of the candidate's feature. */
static void insert_among_k_nearest(struct oj_ranking *ranking,
                                   const struct oj_candidate *candidate)
{
    struct oj_candidate *list = ranking->list;
    int64_t at = 0, n = ranking->n;
    while (at < n && list[at].rank != candidate->rank)
        at++;
    if (at < n && list[at].distance <= candidate->distance)
        return;
    if (at == n && n < ranking->k)
        ranking->n = ++n;
    else if (at == n)
        at--;
    for (; at > 0 && compare_by_distance(&list[at - 1], candidate) > 0; at--)
        list[at] = list[at - 1];
    list[at] = *candidate;
    if (n < ranking->k)
        return;
    ranking->bound = list[n - 1].distance;
    ranking->last_rank = list[n - 1].rank;
}

oj_status oj_ranking_add(struct oj_ranking *ranking, int32_t feature,
                         double distance, struct oj_error *err)
{
    struct oj_candidate candidate;
    if (!(distance <= ranking->bound) || !(distance < INFINITY))
        return OJ_OK;
    candidate.distance = distance;
    candidate.feature = feature;
    candidate.rank = oj_tie_rank(ranking->tie_rank, feature);
    /* keeps the list short if many features are equally near */
    if (distance == ranking->bound && candidate.rank >= ranking->last_rank)
        return OJ_OK;
    OJ_ROOM(ranking->list, ranking->n, ranking->n + 1, ranking->capacity, err);
    if (are_candidates_kept_in_order(ranking))
    {
        insert_among_k_nearest(ranking, &candidate);
        return OJ_OK;
    }
    ranking->list[ranking->n++] = candidate;
    /* Cuts the list when it is a few times longer than k. k may be INT64_MAX,
     * so the comparison must not overflow. */
    if ((ranking->n - 64) / 2 - ranking->n_cut >= ranking->k)
        drop_repeats_and_keep_k_nearest(ranking);
    return OJ_OK;
}

void oj_ranking_finish(struct oj_ranking *ranking)
{
    if (!are_candidates_kept_in_order(ranking) && ranking->n > ranking->n_cut)
        drop_repeats_and_keep_k_nearest(ranking);
}

void oj_answers_start(struct oj_answers *answers, struct oj_pair_budget *budget)
{
    answers->n_entries = answers->n_undecided = answers->n_counted = 0;
    answers->budget = budget != NULL && budget->most > 0 ? budget : NULL;
}

void oj_answers_free(struct oj_answers *answers)
{
    oj_free(answers->row);
    oj_free(answers->feature);
    oj_free(answers->distance);
    oj_free(answers->undecided);
    memset(answers, 0, sizeof *answers);
}

oj_status oj_answers_reserve(struct oj_answers *answers, int64_t n_more,
                             struct oj_error *err)
{
    int64_t first = answers->n_entries, n = first + n_more;
    if (answers->budget != NULL)
        OJ_TRY(oj_pair_budget_count(answers->budget, n + answers->n_undecided,
                                    &answers->n_counted, err));
    OJ_ROOM(answers->row, first, n, answers->cap_row, err);
    OJ_ROOM(answers->feature, first, n, answers->cap_feature, err);
    OJ_ROOM(answers->distance, first, n, answers->cap_distance, err);
    return OJ_OK;
}

oj_status oj_answers_add_ranking(struct oj_answers *answers, int64_t row,
                                 const struct oj_ranking *ranking,
                                 struct oj_error *err)
{
    OJ_TRY(oj_answers_reserve(answers, ranking->n, err));
    for (int64_t i = 0; i < ranking->n; i++)
        oj_answers_append_pair(answers, (int32_t)row, ranking->list[i].feature,
                               ranking->list[i].distance);
    return OJ_OK;
}

/* Returns row and feature packed into one integer that sorts by row, then
 * feature. */
static int64_t encode_row_and_feature(int64_t row, int32_t feature)
{
    return row * (INT64_C(1) << 32) + feature + 1;
}

oj_status oj_answers_add_undecided(struct oj_answers *answers, int64_t row,
                                   int32_t feature, struct oj_error *err)
{
    if (answers->budget != NULL)
        OJ_TRY(oj_pair_budget_count(
            answers->budget, answers->n_entries + answers->n_undecided + 1,
            &answers->n_counted, err));
    OJ_ROOM(answers->undecided, answers->n_undecided, answers->n_undecided + 1,
            answers->cap_undecided, err);
    answers->undecided[answers->n_undecided++] =
        encode_row_and_feature(row, feature);
    return OJ_OK;
}

/* Fails if the pairs of all threads together exceed the batch's budget. Unlike
 * the count during the search (oj_pair_budget_count()), this includes the pairs
 * that a thread has not yet added to the total. */
static oj_status check_total_of_answers(const struct oj_answers *answers,
                                        int64_t n_answers, struct oj_error *err)
{
    int64_t n = 0, most = 0;
    for (int64_t a = 0; a < n_answers; a++)
    {
        n += answers[a].n_entries + answers[a].n_undecided;
        if (answers[a].budget != NULL)
            most = answers[a].budget->most;
    }
    return oj_pair_budget_check(most, n, err);
}

oj_status oj_answers_gather_undecided(const struct oj_answers *answers,
                                      int64_t n_answers, struct oj_matches *out,
                                      struct oj_error *err)
{
    int64_t n = 0, n_unique = 0;
    for (int64_t a = 0; a < n_answers; a++)
        n += answers[a].n_undecided;
    out->n_undecided = 0;
    if (n == 0)
        return OJ_OK;
    OJ_ROOM(out->undecided, 0, n, out->cap_undecided, err);
    OJ_ROOM(out->undecided_join, 0, n, out->cap_undecided_join, err);
    n = 0;
    for (int64_t a = 0; a < n_answers; a++)
    {
        for (int64_t i = 0; i < answers[a].n_undecided; i++)
            out->undecided[n++] = answers[a].undecided[i];
    }
    qsort(out->undecided, (size_t)n, sizeof *out->undecided, oj_compare_int64);
    for (int64_t i = 0; i < n; i++)
    {
        if (n_unique == 0 || out->undecided[n_unique - 1] != out->undecided[i])
            out->undecided[n_unique++] = out->undecided[i];
    }
    for (int64_t i = 0; i < n_unique; i++)
    {
        int64_t packed = out->undecided[i];
        out->undecided[i] = packed >> 32;
        out->undecided_join[i] = (int32_t)((packed & UINT32_MAX) - 1);
    }
    out->n_undecided = n_unique;
    return OJ_OK;
}

static void fill_matches_of_one_per_row(const struct oj_answers *answers,
                                        int64_t n_answers,
                                        const int32_t *tie_rank,
                                        struct oj_matches *out)
{
    for (int64_t row = 0; row < out->n_rows; row++)
    {
        out->join_row[row] = -1;
        out->measure[row] = NAN;
    }
    for (int64_t a = 0; a < n_answers; a++)
    {
        for (int64_t i = 0; i < answers[a].n_entries; i++)
        {
            int32_t row = answers[a].row[i], feature = answers[a].feature[i];
            int32_t known = out->join_row[row];
            double distance = answers[a].distance[i];
            if (known >= 0)
            {
                if (distance > out->measure[row] ||
                    (distance == out->measure[row] &&
                     oj_tie_rank(tie_rank, feature) >=
                         oj_tie_rank(tie_rank, known)))
                    continue;
            }
            else
                out->n_matched++;
            out->join_row[row] = feature;
            out->measure[row] = distance;
        }
    }
    out->n_pairs = out->n_matched;
}

/* Groups the entries of all collections by row and fills out->offset.  ones:
 * rows with a single entry, or NULL. */
static oj_status group_entries_by_row(const struct oj_single_pairs *ones,
                                      const struct oj_answers *answers,
                                      int64_t n_answers, int64_t n_rows,
                                      int64_t max_pairs, struct oj_matches *out,
                                      struct oj_error *err)
{
    int64_t *next, total = 0;
    OJ_TRY(oj_matches_reserve(out, n_rows, 0, 1, err));
    next = out->offset + 1;
    out->offset[0] = 0;
    for (int64_t row = 0; row < n_rows; row++)
        next[row] = ones != NULL && ones->feature[row] >= 0;
    for (int64_t a = 0; a < n_answers; a++)
    {
        for (int64_t i = 0; i < answers[a].n_entries; i++)
            next[answers[a].row[i]]++;
    }
    /* The counts become write positions. After the fill, each is the end of its
     * row. */
    for (int64_t row = 0; row < n_rows; row++)
    {
        int64_t count = next[row];
        next[row] = total;
        total += count;
    }
    OJ_TRY(oj_pair_budget_check(oj_most_pairs_of_batch(max_pairs, n_rows),
                                total, err));
    OJ_TRY(oj_matches_reserve(out, n_rows, total, 1, err));
    for (int64_t row = 0; ones != NULL && row < n_rows; row++)
    {
        if (ones->feature[row] < 0)
            continue;
        out->join_row[next[row]] = ones->feature[row];
        out->measure[next[row]++] = ones->distance[row];
    }
    for (int64_t a = 0; a < n_answers; a++)
    {
        for (int64_t i = 0; i < answers[a].n_entries; i++)
        {
            int64_t place = next[answers[a].row[i]]++;
            out->join_row[place] = answers[a].feature[i];
            out->measure[place] = answers[a].distance[i];
        }
    }
    return OJ_OK;
}

/* Sets out->n_pairs and out->n_matched; all rows must be final. */
static void set_pair_and_matched_counts(struct oj_matches *out)
{
    for (int64_t row = 0; row < out->n_rows; row++)
        out->n_matched += out->offset[row + 1] > out->offset[row];
    out->n_pairs = out->n_entries;
}

/* Sorts each row by tie rank. */
static oj_status sort_each_row_by_tie_rank(struct oj_matches *out,
                                           const int32_t *tie_rank,
                                           struct oj_error *err)
{
    struct oj_tie_rank_sorter order = {0};
    oj_status status = OJ_OK;
    for (int64_t row = 0; row < out->n_rows && status == OJ_OK; row++)
    {
        int64_t first = out->offset[row];
        status = oj_tie_rank_sort_pairs(&order, out->offset[row + 1] - first,
                                        tie_rank, out->join_row + first,
                                        out->measure + first, err);
    }
    oj_tie_rank_sorter_free(&order);
    return status;
}

/* Ranks each row again and closes the gaps that dropped entries leave. */
static oj_status rank_each_row_and_close_gaps(struct oj_ranking *ranking,
                                              struct oj_matches *out,
                                              struct oj_error *err)
{
    int64_t n = 0, first = 0;
    for (int64_t row = 0; row < out->n_rows; row++)
    {
        int64_t end = out->offset[row + 1];
        oj_ranking_start(ranking);
        for (int64_t i = first; i < end; i++)
            OJ_TRY(oj_ranking_add(ranking, out->join_row[i], out->measure[i],
                                  err));
        oj_ranking_finish(ranking);
        for (int64_t i = 0; i < ranking->n; i++)
        {
            out->join_row[n + i] = ranking->list[i].feature;
            out->measure[n + i] = ranking->list[i].distance;
        }
        n += ranking->n;
        out->n_matched += ranking->n > 0;
        out->offset[row + 1] = n;
        first = end;
    }
    out->n_entries = out->n_pairs = n;
    return OJ_OK;
}

oj_status oj_single_pairs_start(struct oj_single_pairs *ones, int64_t n_rows,
                                struct oj_error *err)
{
    OJ_ROOM(ones->feature, 0, n_rows, ones->cap_feature, err);
    OJ_ROOM(ones->distance, 0, n_rows, ones->cap_distance, err);
    for (int64_t row = 0; row < n_rows; row++)
        ones->feature[row] = -1;
    return OJ_OK;
}

void oj_single_pairs_free(struct oj_single_pairs *ones)
{
    oj_free(ones->feature);
    oj_free(ones->distance);
    memset(ones, 0, sizeof *ones);
}

oj_status oj_single_pairs_to_matches(const struct oj_single_pairs *ones,
                                     const struct oj_answers *answers,
                                     int64_t n_answers, int64_t n_rows,
                                     int64_t max_pairs, struct oj_matches *out,
                                     struct oj_error *err)
{
    OJ_TRY(group_entries_by_row(ones, answers, n_answers, n_rows, max_pairs,
                                out, err));
    set_pair_and_matched_counts(out);
    return OJ_OK;
}

oj_status oj_answers_to_matches(const struct oj_answers *answers,
                                int64_t n_answers, int64_t n_rows,
                                const struct oj_relation *relation,
                                const int32_t *tie_rank, struct oj_matches *out,
                                struct oj_error *err)
{
    OJ_TRY(check_total_of_answers(answers, n_answers, err));
    if (!oj_relation_allows_many_pairs(relation))
    {
        OJ_TRY(oj_matches_reserve(out, n_rows, n_rows, 0, err));
        fill_matches_of_one_per_row(answers, n_answers, tie_rank, out);
        return oj_answers_gather_undecided(answers, n_answers, out, err);
    }
    OJ_TRY(group_entries_by_row(NULL, answers, n_answers, n_rows, 0, out, err));
    if (oj_relation_sorts_by_measure(relation))
    {
        struct oj_ranking ranking = oj_ranking_make(relation, tie_rank);
        oj_status status = rank_each_row_and_close_gaps(&ranking, out, err);
        oj_ranking_free(&ranking);
        OJ_TRY(status);
    }
    else /* each pair occurs once and needs no ranking */
    {
        set_pair_and_matched_counts(out);
        if (!relation->any_order)
            OJ_TRY(sort_each_row_by_tie_rank(out, tie_rank, err));
    }
    return oj_answers_gather_undecided(answers, n_answers, out, err);
}
