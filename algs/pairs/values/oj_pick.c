#include "oj_pick.h"

#include "../selection/oj_tie_rank_sort.h"

#include <math.h>
#include <string.h>

int64_t oj_pick_score_of_double(double number)
{
    int64_t bits;
    if (isnan(number))
        return OJ_NO_SCORE;
    number += 0.0; /* turns -0 into 0 */
    memcpy(&bits, &number, sizeof bits);
    /* The bit patterns of negative doubles ascend as the numbers decrease, so
     * their order is reversed. */
    return bits >= 0 ? bits : INT64_MIN - bits;
}

static int64_t pick_score_of_entry(const struct oj_matches *m,
                                   const struct oj_pick_scores *scores,
                                   int64_t entry)
{
    if (scores->of_entry != NULL)
        return scores->of_entry[entry];
    if (scores->of_feature != NULL)
        return scores->of_feature[m->join_row[entry]];
    return 0;
}

static int32_t tie_rank_of_entry(const struct oj_matches *m,
                                 const struct oj_pick_scores *scores,
                                 int64_t entry)
{
    return scores->in_tie_order
               ? 0
               : oj_tie_rank(scores->tie_rank, m->join_row[entry]);
}

static int64_t best_scored_entry_of_row(const struct oj_matches *m,
                                        const struct oj_pick_scores *scores,
                                        int64_t first, int64_t end)
{
    int64_t best = first;
    int64_t best_score = pick_score_of_entry(m, scores, first);
    int32_t best_rank = tie_rank_of_entry(m, scores, first);
    for (int64_t i = first + 1; i < end; i++)
    {
        int64_t score = pick_score_of_entry(m, scores, i);
        int32_t rank = tie_rank_of_entry(m, scores, i);
        if (score > best_score || (score == best_score && rank < best_rank))
        {
            best = i;
            best_score = score;
            best_rank = rank;
        }
    }
    return best;
}

oj_status oj_pick(const struct oj_matches *m,
                  const struct oj_pick_scores *scores, struct oj_matches *out,
                  struct oj_error *err)
{
    OJ_TRY(oj_matches_reserve(out, m->n_rows, m->n_rows, 0, err));
    for (int64_t row = 0; row < m->n_rows; row++)
    {
        int64_t first = oj_matches_first(m, row), end = oj_matches_end(m, row);
        out->join_row[row] = -1;
        out->measure[row] = (double)NAN;
        if (first == end)
            continue;
        first = best_scored_entry_of_row(m, scores, first, end);
        out->join_row[row] = m->join_row[first];
        out->measure[row] = m->measure[first];
        out->n_matched++;
    }
    out->n_pairs = out->n_matched;
    return OJ_OK;
}
