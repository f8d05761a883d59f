#include "oj_one_to_one.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../../flatten/base/oj_temporary_file.h"
#include "../selection/oj_pair_filter.h"
#include "oj_least_matching.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows per task when pairs are ranked. */
#define ROWS_AT_ONCE 256

/* Sort key of a pair, smaller is better; the tie rank decides equal keys. Never
 * NaN. */
struct pair_rank
{
    double dissimilarity; /* the similarity, negated; 0 if texts are not
                             compared */
    double difference;    /* the difference of vectors; 0 if they are not
                             compared */
    double measure;
};

/* ---- ranks --------------------------------------------------------------- */

struct ranked_answer
{
    const struct oj_relation *relation;
    const struct oj_flat *input, *join_side;
    const struct oj_matches *matches;
    const struct oj_pair_ranks *to;
};

static void fill_similarities_and_differences(int64_t first, int64_t end,
                                              void *user)
{
    const struct ranked_answer *a = user;
    for (int64_t row = first; row < end; row++)
    {
        for (int64_t p = oj_matches_first(a->matches, row);
             p < oj_matches_end(a->matches, row); p++)
        {
            int32_t feature = a->matches->join_row[p];
            if (a->to->similarity != NULL)
                a->to->similarity[p] = oj_pair_text_similarity(
                    a->relation, 0, a->input, row, a->join_side, feature);
            if (a->to->difference != NULL)
                a->to->difference[p] = oj_pair_vector_difference(
                    a->relation, a->input, row, a->join_side, feature);
        }
    }
}

oj_status oj_pair_ranks_make(const struct oj_relation *relation,
                             const struct oj_flat *input,
                             const struct oj_flat *join_side,
                             const struct oj_matches *matches, int n_threads,
                             struct oj_pair_ranks *ranks, struct oj_error *err)
{
    /* In op similar, the measure is the similarity or the difference. Only if
     * the join has both conditions must the difference be computed here. */
    int is_measure = oj_relation_is_similar(relation) &&
                     !(relation->n_similar > 0 && relation->vector.is_asked);
    struct ranked_answer answer = {relation, input, join_side, matches, ranks};
    if (is_measure || !oj_relation_compares_attributes(relation))
        return OJ_OK;
    if (relation->n_similar > 0)
        OJ_ROOM(ranks->similarity, 0, matches->n_entries, ranks->cap_similarity,
                err);
    if (relation->vector.is_asked)
        OJ_ROOM(ranks->difference, 0, matches->n_entries, ranks->cap_difference,
                err);
    oj_parallel_slices(n_threads, matches->n_rows, ROWS_AT_ONCE,
                       fill_similarities_and_differences, &answer);
    return OJ_OK;
}

void oj_pair_ranks_free(struct oj_pair_ranks *ranks)
{
    oj_free(ranks->similarity);
    oj_free(ranks->difference);
    memset(ranks, 0, sizeof *ranks);
}

/* ---- lists of rows --------------------------------------------------------
 */

/* A record of the lists. A list is the label of a row, followed by the row's
 * pairs, best first. */
struct listed_pair
{
    union
    {
        struct pair_rank rank;
        int64_t label;
    };
    int64_t join; /* for a pair: 2 * ordinal of the join feature, plus 1 if the
                     pair is the last of its row; for a label: -1 */
};

/* The present pair of a join feature and the row that proposed it. */
struct taken
{
    struct pair_rank rank;
    int64_t row;
    int64_t at; /* 1 + number of the pair's record; 0: no pair yet */
};

/* A pair of the current row. */
struct candidate
{
    struct pair_rank rank;
    int64_t entry; /* index of the pair in the matches, which are in tie
                      order */
};

enum
{
    PIECE = 16384 /* records per block of memory, and per read from the file */
};

struct oj_one_to_one
{
    int64_t n_join;
    enum oj_one_to_one_rule rule;
    struct taken *taken; /* [n_join] */
    int64_t n_rows;      /* rows added so far */

    /* Records from n_filed on are in memory, earlier ones in the file. */
    struct listed_pair **held; /* [n_pieces][PIECE] */
    int64_t n_held, n_pieces, cap_held, most_held;
    int64_t n_filed;
    struct oj_temporary_file file;
    const char *near;

    struct candidate *candidate;
    int64_t cap_candidates;

    /* Union-find forest of groups, for OJ_ONE_TO_ONE_BEST. */
    int64_t *group; /* [n_join] parent in the forest; the root is the number of
                       the group */
    int64_t n_large_groups, n_large_pairs;

    struct oj_one_pair *pair; /* sorted by label */
    int64_t n_pairs, cap_pairs;
};

oj_status oj_one_to_one_open(int64_t n_join, enum oj_one_to_one_rule rule,
                             int64_t most_held, const char *near,
                             struct oj_one_to_one **out, struct oj_error *err)
{
    struct oj_one_to_one *choice;
    int64_t most = most_held / (int64_t)sizeof **choice->held;
    OJ_NEW_ZEROED(choice, 1, err);
    choice->n_join = n_join;
    choice->rule = rule;
    choice->near = near;
    choice->most_held = most > PIECE ? most : PIECE;
    choice->taken = oj_calloc(n_join, sizeof *choice->taken);
    if (choice->taken == NULL)
    {
        oj_free(choice);
        return oj_fail_nomem(err, n_join, sizeof *choice->taken);
    }
    if (rule == OJ_ONE_TO_ONE_BEST)
    {
        choice->group = oj_malloc(n_join, sizeof *choice->group);
        if (choice->group == NULL)
        {
            oj_one_to_one_close(choice);
            return oj_fail_nomem(err, n_join, sizeof *choice->group);
        }
        for (int64_t i = 0; i < n_join; i++)
            choice->group[i] = i;
    }
    *out = choice;
    return OJ_OK;
}

/* ---- the order of pairs -------------------------------------------------- */

static int compare_ranks(const struct pair_rank *a, const struct pair_rank *b)
{
    int order = oj_compare_doubles(&a->dissimilarity, &b->dissimilarity);
    if (order == 0)
        order = oj_compare_doubles(&a->difference, &b->difference);
    return order != 0 ? order : oj_compare_doubles(&a->measure, &b->measure);
}

/* Returns 1 if a join feature prefers row a to row b. (sort_candidates() orders
 * the pairs of one row.) */
static int is_pair_preferred(const struct pair_rank *rank_a, int64_t a,
                             const struct pair_rank *rank_b, int64_t b)
{
    int order = compare_ranks(rank_a, rank_b);
    return order < 0 || (order == 0 && a < b);
}

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    int order = compare_ranks(&a->rank, &b->rank);
    return order != 0 ? order : (a->entry > b->entry) - (a->entry < b->entry);
}

/* Sorts the candidates of a row; those of a nearest join are already sorted. */
static void sort_candidates(struct candidate *c, int64_t n)
{
    int64_t i = 1;
    while (i < n && compare_ranks(&c[i - 1].rank, &c[i].rank) <= 0)
        i++;
    if (i < n)
        qsort(c, (size_t)n, sizeof *c, compare_candidates);
}

static int64_t join_feature_of_entry(const struct oj_matches *m, int64_t entry,
                                     const int64_t *ordinal)
{
    int64_t join = m->join_row[entry];
    return ordinal != NULL ? ordinal[join] : join;
}

/* ---- lists --------------------------------------------------------------- */

/* Returns the number of records in the block of memory that begins with record
 * `at`. */
static int64_t count_records_in_piece(const struct oj_one_to_one *choice,
                                      int64_t at)
{
    return choice->n_held - at < PIECE ? choice->n_held - at : PIECE;
}

static oj_status spill_held_records(struct oj_one_to_one *choice,
                                    struct oj_error *err)
{
    if (!choice->file.is_open)
        OJ_TRY(
            oj_temporary_file_open(choice->near, "pairs", &choice->file, err));
    for (int64_t at = 0; at < choice->n_held; at += PIECE)
        OJ_TRY(oj_temporary_file_write(&choice->file, choice->held[at / PIECE],
                                       count_records_in_piece(choice, at) *
                                           (int64_t)sizeof **choice->held,
                                       err));
    choice->n_filed += choice->n_held;
    choice->n_held = 0;
    return OJ_OK;
}

static struct listed_pair *
record_in_memory_at(const struct oj_one_to_one *choice, int64_t at)
{
    return &choice->held[at / PIECE][at % PIECE];
}

static oj_status append_record(struct oj_one_to_one *choice,
                               const struct listed_pair *record,
                               struct oj_error *err)
{
    if (choice->n_held == choice->most_held)
        OJ_TRY(spill_held_records(choice, err));
    if (choice->n_held == choice->n_pieces * PIECE)
    {
        int64_t n = choice->n_pieces;
        OJ_ROOM(choice->held, n, n + 1, choice->cap_held, err);
        OJ_NEW(choice->held[n], PIECE, err);
        choice->n_pieces++;
    }
    *record_in_memory_at(choice, choice->n_held++) = *record;
    return OJ_OK;
}

/* Reads n records from the file. */
static oj_status read_spilled_records(const struct oj_one_to_one *choice,
                                      int64_t at, struct listed_pair *record,
                                      int64_t n, struct oj_error *err)
{
    const int64_t size = (int64_t)sizeof *record;
    return oj_temporary_file_read(&choice->file, at * size, record, n * size,
                                  err);
}

static oj_status read_record_by_number(const struct oj_one_to_one *choice,
                                       int64_t at, struct listed_pair *record,
                                       struct oj_error *err)
{
    if (at < choice->n_filed)
        return read_spilled_records(choice, at, record, 1, err);
    *record = *record_in_memory_at(choice, at - choice->n_filed);
    return OJ_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* Proposes the row to the join features of its list, from record `at` on. A row
 * that loses its join feature to this one continues in its own list, and so on.
 */
static oj_status propose_stable_matching_of_row(struct oj_one_to_one *choice,
                                                int64_t row, int64_t at,
                                                struct oj_error *err)
{
    struct listed_pair record;
    for (;; at++)
    {
        struct taken *taken, mine;
        OJ_TRY(read_record_by_number(choice, at, &record, err));
        taken = &choice->taken[record.join / 2];
        mine = (struct taken){record.rank, row, at + 1};
        if (taken->at == 0)
        {
            *taken = mine;
            return OJ_OK;
        }
        if (is_pair_preferred(&record.rank, row, &taken->rank, taken->row))
        {
            row = taken->row;
            at = taken->at - 1;
            *taken = mine;
            OJ_TRY(read_record_by_number(choice, at, &record, err));
        }
        if (record.join % 2 == 1)
            return OJ_OK; /* the list is exhausted: the row has no pair */
    }
}

/* Collects the pairs of a row in choice->candidate, sorts them, and sets *n to
 * their number. The greedy rule leaves out pairs worse than the present pair of
 * their join feature. */
static oj_status sort_candidates_not_yet_beaten(
    struct oj_one_to_one *choice, const struct oj_matches *m,
    const struct oj_pair_ranks *ranks, int64_t i, const int64_t *ordinal,
    int64_t *n, struct oj_error *err)
{
    int64_t first = oj_matches_first(m, i), end = oj_matches_end(m, i);
    struct candidate *c;
    OJ_ROOM(choice->candidate, 0, end - first, choice->cap_candidates, err);
    c = choice->candidate;
    for (int64_t p = first; p < end; p++)
    {
        const struct pair_rank rank = {
            ranks->similarity != NULL ? -ranks->similarity[p] : 0.0,
            ranks->difference != NULL ? ranks->difference[p] : 0.0,
            isnan(m->measure[p]) ? (double)INFINITY : m->measure[p]};
        int64_t join = join_feature_of_entry(m, p, ordinal);
        const struct taken *taken = &choice->taken[join];
        if (taken->at == 0 || choice->rule == OJ_ONE_TO_ONE_BEST ||
            is_pair_preferred(&rank, choice->n_rows, &taken->rank, taken->row))
            *c++ = (struct candidate){rank, p};
    }
    *n = c - choice->candidate;
    sort_candidates(choice->candidate, *n);
    return OJ_OK;
}

/* Returns the number of a join feature's group (features connected by pairs).
 * Shortens the path to the root by halving. */
static int64_t group_of_join_feature(const struct oj_one_to_one *choice,
                                     int64_t join)
{
    int64_t *group = choice->group;
    while (group[join] != join)
    {
        group[join] = group[group[join]];
        join = group[join];
    }
    return join;
}

/* Unites the groups of two join features; the smaller number remains. */
static void unite_groups(const struct oj_one_to_one *choice, int64_t a,
                         int64_t b)
{
    a = group_of_join_feature(choice, a);
    b = group_of_join_feature(choice, b);
    choice->group[a < b ? b : a] = a < b ? a : b;
}

static oj_status append_row_and_its_candidates(struct oj_one_to_one *choice,
                                               const struct oj_matches *matches,
                                               const int64_t *ordinal,
                                               int64_t label, int64_t n,
                                               struct oj_error *err)
{
    const struct candidate *c = choice->candidate;
    struct listed_pair record = {.label = label, .join = -1};
    int64_t at;
    OJ_TRY(append_record(choice, &record, err));
    at = choice->n_filed + choice->n_held;
    for (int64_t i = 0; i < n; i++)
    {
        record.rank = c[i].rank;
        record.join = 2 * join_feature_of_entry(matches, c[i].entry, ordinal) +
                      (i == n - 1);
        OJ_TRY(append_record(choice, &record, err));
        if (choice->rule == OJ_ONE_TO_ONE_BEST)
            unite_groups(choice, record.join / 2,
                         join_feature_of_entry(matches, c[0].entry, ordinal));
    }
    return propose_stable_matching_of_row(choice, choice->n_rows, at, err);
}

oj_status oj_one_to_one_add_matches(struct oj_one_to_one *choice,
                                    const struct oj_matches *matches,
                                    const struct oj_pair_ranks *ranks,
                                    const int64_t *ordinal,
                                    const int64_t *label, struct oj_error *err)
{
    for (int64_t i = 0; i < matches->n_rows; i++)
    {
        int64_t n;
        OJ_TRY(sort_candidates_not_yet_beaten(choice, matches, ranks, i,
                                              ordinal, &n, err));
        if (n > 0)
            OJ_TRY(append_row_and_its_candidates(
                choice, matches, ordinal,
                label != NULL ? label[i] : choice->n_rows, n, err));
        choice->n_rows++;
    }
    return OJ_OK;
}

/* ---- all records ----------------------------------------------------------
 */

/* Callback that receives n consecutive records; `at` is the number of the
 * first. */
typedef oj_status record_visitor(struct oj_one_to_one *choice,
                                 const struct listed_pair *record, int64_t n,
                                 int64_t at, void *user, struct oj_error *err);

static oj_status visit_records_of_file(struct oj_one_to_one *choice,
                                       record_visitor *visit, void *user,
                                       struct oj_error *err)
{
    struct listed_pair *piece;
    oj_status status = OJ_OK;
    OJ_NEW(piece, PIECE, err);
    for (int64_t at = 0; at < choice->n_filed && status == OJ_OK; at += PIECE)
    {
        int64_t n = choice->n_filed - at < PIECE ? choice->n_filed - at : PIECE;
        status = read_spilled_records(choice, at, piece, n, err);
        if (status == OJ_OK)
            status = visit(choice, piece, n, at, user, err);
    }
    oj_free(piece);
    return status;
}

/* Visits all records in their order. */
static oj_status visit_records(struct oj_one_to_one *choice,
                               record_visitor *visit, void *user,
                               struct oj_error *err)
{
    OJ_TRY(visit_records_of_file(choice, visit, user, err));
    for (int64_t at = 0; at < choice->n_held; at += PIECE)
        OJ_TRY(visit(choice, choice->held[at / PIECE],
                     count_records_in_piece(choice, at), choice->n_filed + at,
                     user, err));
    return OJ_OK;
}

/* ---- the pairs of minimum sum --------------------------------------------
 *
 * Groups have no pairs in common, so each is matched separately. A pass over
 * the records collects the pairs of as many groups as fit in memory. */

struct group_search
{
    const int *cancel;
    int64_t *n_pairs; /* [n_join] number of pairs of each group */
    int64_t *place;   /* [n_join] index of the group's next pair in the arrays
                         below; -1: not in this pass */
    int32_t *number;  /* [n_join] column of the join feature in the graph of its
                         group; -1: none yet */
    int64_t row;      /* row of the current record, counted from 0 */

    /* The pairs of the pass, group by group, in the order of their records. */
    int64_t n;
    double (*weight)[OJ_MATCHING_WEIGHTS];
    int64_t *at, *of_row, *join;

    /* Graph and matching of one group. */
    int64_t *offset, *chosen;
    int32_t *column;
    int64_t cap_offset, cap_chosen, cap_column;
};

static oj_status count_pairs_of_groups(struct oj_one_to_one *choice,
                                       const struct listed_pair *record,
                                       int64_t n, int64_t at, void *user,
                                       struct oj_error *err)
{
    struct group_search *s = user;
    (void)at;
    for (int64_t i = 0; i < n; i++)
    {
        if (record[i].join >= 0)
            s->n_pairs[group_of_join_feature(choice, record[i].join / 2)]++;
    }
    return oj_check_cancel(s->cancel, err);
}

static oj_status collect_pairs_of_groups(struct oj_one_to_one *choice,
                                         const struct listed_pair *record,
                                         int64_t n, int64_t at, void *user,
                                         struct oj_error *err)
{
    struct group_search *s = user;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t *place;
        if (record[i].join < 0)
        {
            s->row++;
            continue;
        }
        place = &s->place[group_of_join_feature(choice, record[i].join / 2)];
        if (*place < 0)
            continue;
        s->weight[*place][0] = record[i].rank.dissimilarity;
        s->weight[*place][1] = record[i].rank.difference;
        s->weight[*place][2] = record[i].rank.measure;
        s->at[*place] = at + i;
        s->of_row[*place] = s->row;
        s->join[*place] = record[i].join / 2;
        ++*place;
    }
    return oj_check_cancel(s->cancel, err);
}

/* Replaces the greedy pairs of the group by the pairs of the matching in
 * s->chosen. */
static void replace_greedy_pairs(struct oj_one_to_one *choice,
                                 const struct group_search *s, int64_t first,
                                 int64_t n, int64_t n_rows)
{
    for (int64_t i = first; i < first + n; i++)
        choice->taken[s->join[i]].at = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        const int64_t pair = first + s->chosen[row];
        if (s->chosen[row] >= 0)
            choice->taken[s->join[pair]].at = s->at[pair] + 1;
    }
}

/* Finds the best pairs of one group, which has the n pairs from `first` on. */
static oj_status match_group(struct oj_one_to_one *choice,
                             struct group_search *s, int64_t first, int64_t n,
                             struct oj_error *err)
{
    struct oj_matching_graph graph = {0};
    OJ_ROOM(s->offset, 0, n + 1, s->cap_offset, err);
    OJ_ROOM(s->chosen, 0, n, s->cap_chosen, err);
    OJ_ROOM(s->column, 0, n, s->cap_column, err);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t *number = &s->number[s->join[first + i]];
        if (*number < 0)
            *number = (int32_t)graph.n_columns++;
        s->column[i] = *number;
        if (i == 0 || s->of_row[first + i] != s->of_row[first + i - 1])
            s->offset[graph.n_rows++] = i;
    }
    s->offset[graph.n_rows] = n;
    graph.offset = s->offset;
    graph.column = s->column;
    graph.weight = (const double(*)[OJ_MATCHING_WEIGHTS])(s->weight + first);
    OJ_TRY(oj_least_matching_find(&graph, s->cancel, s->chosen, err));
    replace_greedy_pairs(choice, s, first, n, graph.n_rows);
    return OJ_OK;
}

static int is_group_matched(const struct group_search *s, int64_t group)
{
    return s->n_pairs[group] > 1 &&
           s->n_pairs[group] <= OJ_ONE_TO_ONE_MOST_GROUP_PAIRS;
}

/* Returns the maximum number of pairs of a pass. Records in memory take up to
 * 32 bytes times most_held. A collected pair takes 48 bytes, so half as many
 * pairs take three quarters of this memory again; the graph of a group, with 20
 * bytes for each of its pairs, comes on top. A pass has room for any group. */
static int64_t most_pairs_of_pass(const struct oj_one_to_one *choice)
{
    const int64_t most = choice->most_held / 2;
    return most > OJ_ONE_TO_ONE_MOST_GROUP_PAIRS
               ? most
               : OJ_ONE_TO_ONE_MOST_GROUP_PAIRS;
}

/* Makes room for the pairs of any pass at once: arrays that grow from pass to
 * pass would grow by half, past most_pairs_of_pass(). */
static oj_status reserve_pairs_of_passes(const struct oj_one_to_one *choice,
                                         struct group_search *s,
                                         struct oj_error *err)
{
    const int64_t most = most_pairs_of_pass(choice);
    int64_t n = 0;
    for (int64_t group = 0; group < choice->n_join && n < most; group++)
        n += is_group_matched(s, group) ? s->n_pairs[group] : 0;
    n = n < most ? n : most;
    OJ_NEW(s->weight, n, err);
    OJ_NEW(s->at, n, err);
    OJ_NEW(s->of_row, n, err);
    OJ_NEW(s->join, n, err);
    return OJ_OK;
}

/* Assigns array ranges to the groups of the next pass, from `first` on, as long
 * as their pairs fit. Returns the first group that does not fit. */
static int64_t assign_groups_to_pass(const struct oj_one_to_one *choice,
                                     struct group_search *s, int64_t first)
{
    const int64_t most = most_pairs_of_pass(choice);
    int64_t group = first;
    s->n = 0;
    for (; group < choice->n_join; group++)
    {
        if (!is_group_matched(s, group))
            continue;
        if (s->n + s->n_pairs[group] > most)
            break;
        s->place[group] = s->n;
        s->n += s->n_pairs[group];
    }
    return group;
}

static oj_status match_groups_of_pass(struct oj_one_to_one *choice,
                                      struct group_search *s, int64_t first,
                                      int64_t end, struct oj_error *err)
{
    int64_t at = 0;
    s->row = -1;
    OJ_TRY(visit_records(choice, collect_pairs_of_groups, s, err));
    for (int64_t group = first; group < end; group++)
    {
        if (s->place[group] < 0)
            continue;
        OJ_TRY(match_group(choice, s, at, s->n_pairs[group], err));
        at += s->n_pairs[group];
        s->place[group] = -1;
    }
    return OJ_OK;
}

static oj_status match_all_groups(struct oj_one_to_one *choice,
                                  struct group_search *s, struct oj_error *err)
{
    int64_t first = 0;
    OJ_NEW_ZEROED(s->n_pairs, choice->n_join, err);
    OJ_NEW(s->place, choice->n_join, err);
    OJ_NEW(s->number, choice->n_join, err);
    OJ_TRY(visit_records(choice, count_pairs_of_groups, s, err));
    for (int64_t i = 0; i < choice->n_join; i++)
    {
        s->place[i] = s->number[i] = -1;
        if (s->n_pairs[i] > OJ_ONE_TO_ONE_MOST_GROUP_PAIRS)
        {
            choice->n_large_groups++;
            choice->n_large_pairs += s->n_pairs[i];
        }
    }
    OJ_TRY(reserve_pairs_of_passes(choice, s, err));
    while (first < choice->n_join)
    {
        int64_t end = assign_groups_to_pass(choice, s, first);
        if (s->n > 0)
            OJ_TRY(match_groups_of_pass(choice, s, first, end, err));
        first = end;
    }
    return OJ_OK;
}

static oj_status choose_pairs_of_least_sum(struct oj_one_to_one *choice,
                                           const int *cancel,
                                           struct oj_error *err)
{
    struct group_search s = {.cancel = cancel};
    const oj_status status = match_all_groups(choice, &s, err);
    oj_free(s.n_pairs);
    oj_free(s.place);
    oj_free(s.number);
    oj_free(s.weight);
    oj_free(s.at);
    oj_free(s.of_row);
    oj_free(s.join);
    oj_free(s.offset);
    oj_free(s.chosen);
    oj_free(s.column);
    return status;
}

void oj_one_to_one_large_groups(const struct oj_one_to_one *choice,
                                int64_t *n_groups, int64_t *n_pairs)
{
    *n_groups = choice->n_large_groups;
    *n_pairs = choice->n_large_pairs;
}

/* ---- accepted pairs ------------------------------------------------------ */

/* Collects the accepted pairs among n records, the first of which has number
 * `at`. user: int64_t, the label of the current row, kept from call to call. */
static oj_status collect_accepted_pairs(struct oj_one_to_one *choice,
                                        const struct listed_pair *record,
                                        int64_t n, int64_t at, void *user,
                                        struct oj_error *err)
{
    int64_t *label = user;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t join = record[i].join / 2;
        if (record[i].join < 0)
            *label = record[i].label;
        else if (choice->taken[join].at == at + i + 1)
        {
            double measure = record[i].rank.measure;
            OJ_ROOM(choice->pair, choice->n_pairs, choice->n_pairs + 1,
                    choice->cap_pairs, err);
            choice->pair[choice->n_pairs++] = (struct oj_one_pair){
                *label, join, isinf(measure) ? (double)NAN : measure};
        }
    }
    return OJ_OK;
}

/* Sorts the pairs by label, unless they ascend already, as row numbers and most
 * FIDs do. */
static oj_status sort_accepted_by_label(struct oj_one_to_one *choice,
                                        struct oj_error *err)
{
    struct oj_one_pair *pair = choice->pair;
    int64_t n = choice->n_pairs, i = 1;
    while (i < n && pair[i - 1].label < pair[i].label)
        i++;
    if (i >= n)
        return OJ_OK;
    qsort(pair, (size_t)n, sizeof *pair, oj_compare_int64);
    for (i = 1; i < n; i++)
    {
        if (pair[i - 1].label == pair[i].label)
            return oj_fail(err, OJ_ERR_DATA,
                           "one-to-one pairs need unique FIDs, but several "
                           "rows of the input have the FID %lld: give "
                           "each its own",
                           (long long)pair[i].label);
    }
    return OJ_OK;
}

static void free_records_and_candidates(struct oj_one_to_one *choice)
{
    oj_temporary_file_close(&choice->file);
    for (int64_t i = 0; i < choice->n_pieces; i++)
        oj_free(choice->held[i]);
    oj_free(choice->held);
    oj_free(choice->taken);
    oj_free(choice->candidate);
    oj_free(choice->group);
    choice->group = NULL;
    choice->held = NULL;
    choice->taken = NULL;
    choice->candidate = NULL;
    choice->n_pieces = 0;
}

oj_status oj_one_to_one_choose_pairs(struct oj_one_to_one *choice,
                                     const int *cancel, struct oj_error *err)
{
    int64_t label = 0;
    choice->n_pairs = 0;
    if (choice->rule == OJ_ONE_TO_ONE_BEST)
        OJ_TRY(choose_pairs_of_least_sum(choice, cancel, err));
    OJ_TRY(visit_records(choice, collect_accepted_pairs, &label, err));
    OJ_TRY(sort_accepted_by_label(choice, err));
    free_records_and_candidates(choice);
    return OJ_OK;
}

const struct oj_one_pair *
oj_one_to_one_pairs(const struct oj_one_to_one *choice, int64_t *n)
{
    *n = choice->n_pairs;
    return choice->pair;
}

const struct oj_one_pair *
oj_one_to_one_find_pair(const struct oj_one_to_one *choice, int64_t label,
                        int64_t *hint)
{
    const struct oj_one_pair *pair = choice->pair;
    int64_t low = *hint, end = choice->n_pairs;
    if (low > end || (low > 0 && pair[low - 1].label >= label))
        low = 0;
    /* Callers mostly ask in ascending order of labels, so the next pair is
     * tried first. */
    if (low < end && pair[low].label >= label)
        end = low + 1;
    while (low < end)
    {
        int64_t middle = low + (end - low) / 2;
        if (pair[middle].label < label)
            low = middle + 1;
        else
            end = middle;
    }
    *hint = low;
    if (low == choice->n_pairs || pair[low].label != label)
        return NULL;
    *hint = low + 1;
    return &pair[low];
}

void oj_one_to_one_close(struct oj_one_to_one *choice)
{
    if (choice == NULL)
        return;
    free_records_and_candidates(choice);
    oj_free(choice->pair);
    oj_free(choice);
}
