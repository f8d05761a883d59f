#include "oj_pass_choice.h"

#include "../../algs/api/rows/oj_row_words.h"
#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/arrays/oj_matches.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_hash_mix.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"

#include <math.h>
#include <string.h>

oj_status oj_pass_choice_open(const struct oj_job *job, int by_fid,
                              struct oj_pass_choice *choice,
                              struct oj_error *err)
{
    const int64_t n = job->join_side->counts.n_rows;
    oj_pass_choice_close(choice);
    choice->by_fid = by_fid;
    OJ_TRY(oj_one_to_one_open(n,
                              oj_row_one_to_one_rule(job->command->one_to_one),
                              oj_job_most_held_pairs(job->command),
                              job->command->output.dst, &choice->pairs, err));
    if (job->tiled != NULL)
        OJ_NEW(choice->place, n, err);
    return OJ_OK;
}

oj_status oj_pass_choice_add(struct oj_pass_choice *choice,
                             const struct oj_job *job,
                             const struct oj_pipeline_part *part,
                             const struct oj_matches *matches,
                             struct oj_error *err)
{
    const struct oj_answer_side side = oj_job_answer_side(job, part->answer);
    OJ_TRY(oj_pair_ranks_make(&job->relation, part->flat, &side.flat, matches,
                              oj_job_threads(job), &choice->ranks, err));
    for (int64_t i = 0; choice->place != NULL && i < side.flat.n_features; i++)
        choice->place[side.ordinal[i]] = side.place[i];
    return oj_one_to_one_add_matches(
        choice->pairs, matches, &choice->ranks, side.ordinal,
        choice->by_fid ? part->flat->fid : NULL, err);
}

oj_status oj_pass_choice_finish(struct oj_pass_choice *choice,
                                struct oj_job *job, struct oj_error *err)
{
    int64_t n_pairs;
    OJ_TRY(oj_one_to_one_choose_pairs(choice->pairs, oj_cancel_flag(), err));
    oj_one_to_one_large_groups(choice->pairs, &job->n_large_groups, &n_pairs);
    if (job->n_large_groups > 0)
        oj_notice(
            "-one_to_one best: %s chosen greedily, best pairs first, each "
            "of more than %lld connected pairs (%lld in all); a smaller "
            "-max_distance makes smaller groups",
            oj_message_count_and_noun(job->n_large_groups, "group is",
                                      "groups are"),
            (long long)OJ_ONE_TO_ONE_MOST_GROUP_PAIRS, (long long)n_pairs);
    return OJ_OK;
}

/* ---- check of the second reading ----------------------------------------- */

/* The checksum covers the FID and first vertex of each feature, because the
 * FIDs of a SELECT need not identify its rows. */
void oj_pass_choice_checksum_rows(struct oj_pass_choice *choice, int reading,
                                  const struct oj_flat *flat, int64_t first_row)
{
    uint64_t sum = first_row == 0 ? 0 : choice->seen[reading];
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t first, end;
        oj_flat_vertex_range(flat, i, &first, &end);
        if (flat->fid != NULL)
            sum = oj_hash_mix(sum, &flat->fid[i]);
        if (first < end)
            sum =
                oj_hash_mix(oj_hash_mix(sum, &flat->x[first]), &flat->y[first]);
    }
    choice->seen[reading] = sum;
}

int oj_pass_choice_readings_differ(const struct oj_pass_choice *choice)
{
    return !choice->by_fid && choice->seen[0] != choice->seen[1];
}

/* ---- answers ------------------------------------------------------------- */

/* Loads the join features of an answer, listed in choice->found, from the
 * tiles. */
static oj_status fetch_answer_features(struct oj_pass_choice *choice,
                                       struct oj_job *job, int answer,
                                       struct oj_matches *out,
                                       struct oj_error *err)
{
    const int64_t n = out->n_pairs;
    const struct oj_keyed *found =
        oj_radix_sort(choice->found, choice->found + n, n);
    OJ_ROOM(choice->found_place, 0, n, choice->cap_found_place, err);
    for (int64_t i = 0; i < n; i++)
    {
        choice->found_place[i] = (int64_t)found[i].key;
        out->join_row[found[i].value] = (int32_t)i;
    }
    return oj_join_tiles_read_features(&job->tiles, choice->found_place, n, 1,
                                       &job->answer_side[answer], err);
}

oj_status oj_pass_choice_answer(struct oj_pass_choice *choice,
                                struct oj_job *job,
                                const struct oj_pipeline_part *part,
                                int64_t first_row, struct oj_matches *out,
                                struct oj_error *err)
{
    const struct oj_flat *flat = part->flat;
    const int64_t n = flat->n_features;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    if (choice->place != NULL)
        OJ_ROOM(choice->found, 0, 2 * n, choice->cap_found, err);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_one_pair *pair = oj_one_to_one_find_pair(
            choice->pairs, choice->by_fid ? flat->fid[i] : first_row + i,
            &choice->hint);
        out->join_row[i] = -1;
        out->measure[i] = (double)NAN;
        if (pair == NULL)
            continue;
        out->measure[i] = pair->measure;
        if (choice->place == NULL)
            out->join_row[i] = (int32_t)pair->join;
        else
            choice->found[out->n_pairs] =
                (struct oj_keyed){(uint64_t)choice->place[pair->join], i};
        out->n_pairs++;
    }
    out->n_matched = out->n_pairs;
    return choice->place == NULL
               ? OJ_OK
               : fetch_answer_features(choice, job, part->answer, out, err);
}

void oj_pass_choice_close(struct oj_pass_choice *choice)
{
    const struct oj_pass_choice closed = {0};
    oj_one_to_one_close(choice->pairs);
    oj_pair_ranks_free(&choice->ranks);
    oj_free(choice->place);
    oj_free(choice->found);
    oj_free(choice->found_place);
    *choice = closed;
}
