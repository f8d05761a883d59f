/** The pairs of the public interface, made of the answer of a join: one of a
 * row is picked, or one to one; what is asked of them is computed; aggregates.
 *
 *   matches --one to one--> matches --pick, values--> left right measure values
 */
#ifndef API_PAIRS_H
#define API_PAIRS_H

#include "../../ogrjoin.h"

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_pair_values.h"
#include "../../pairs/values/oj_one_to_one.h"
#include "../../pairs/values/oj_pair_stage.h"
#include "../engine/oj_join.h"

#include <pthread.h>

/** Puts an error into its public form, err may be NULL; returns the status. */
int api_error_export(oj_status status, const struct oj_error *from,
                     struct ogrjoin_error *err);

#define OJ_API_TOO_MANY "the join has more pairs than max_pairs allows"

/** Settings by name; ints, 0: not asked. */
struct api_pair_settings
{
    int pick; /**< enum oj_pick_rule */
    int one_to_one;
    int overlap_area, overlap_length, overlap_percent;
    int nearest_point, from_point, bearing, share, intersection;
};

#define API_PICK_NAMES                                                         \
    "all|first|nearest|largest_overlap|smallest_area|largest_area|"            \
    "most_similar|score"

/** What makes pairs of the answers for one join side; for any number of
 * threads. */
struct api_pair_maker
{
    struct api_pair_settings settings;
    struct oj_relation relation;
    int n_threads;
    struct oj_flat join_side;    /**< a view, which outlives this */
    struct oj_pair_stage *stage; /**< NULL: nothing is asked */
    pthread_mutex_t lock;        /**< of stage */
};

/** score: of OJ_PICK_SCORE, [join features], else NULL. tie_rank may be NULL.
 *  Both, and what the view of the join side points at, outlive *maker.
 *  OJ_ERR_ARG: what is asked makes no sense of such a join. */
OJ_MUST_USE oj_status api_pair_maker_open(
    struct api_pair_maker *maker, const struct api_pair_settings *settings,
    const struct oj_relation *relation, const struct oj_options *options,
    const struct oj_flat *join_side, const int64_t *score,
    const int32_t *tie_rank, struct oj_error *err);

/** After a successful open, or of zeroed memory. */
void api_pair_maker_close(struct api_pair_maker *maker);

struct ogrjoin_pairs
{
    int64_t n, n_rows, first; /**< pairs; left rows, and the first's number */
    int64_t n_undecided;
    int has_measure, n_similar;
    int is_lists; /**< offset and right32 in place of left and right, and
                       a measure only where the join has one */
    int64_t *left, *right;
    int64_t *offset;  /**< [n_rows + 1] of lists, or NULL */
    int32_t *right32; /**< [n] of lists, or NULL */
    double *measure;
    int64_t n_expected; /**< rows that are likely to come; 0: unknown */
    int64_t cap_left, cap_right, cap_offset, cap_right32, cap_measure;
    double *value[OJ_N_PAIR_VALUES]; /**< [n], or NULL: not asked for */
    double *share;                   /**< [n] or NULL */
    int64_t *shape_offset;           /**< [n + 1] of intersections, or NULL */
    uint8_t *shape;                  /**< their WKB */
    struct ogrjoin_layer *join_side; /**< given back by ogrjoin_pairs_free() */
    const int64_t *join_id;          /**< of it, or NULL: row numbers */
    int64_t n_join;
    int are_ids;    /**< right holds ids of a kept index, not row numbers */
    double *change; /**< [n] of near pairs, or NULL */
};

/** Appends the pairs of the answer for input, whose rows are those after the
 *  rows that pairs has.  The first time *pairs is zeroed but for first,
 *  is_lists and n_expected; what it holds after an error is freed by
 *  ogrjoin_pairs_free().
 *  is_all   set when input is the whole side: then lists may be taken from
 *           *matches without a copy, which is emptied.  A choice one to one,
 *           and what is computed of pairs, needs the whole side */
OJ_MUST_USE oj_status api_pairs_add(struct api_pair_maker *maker,
                                    const struct oj_flat *input, int is_all,
                                    struct oj_matches *matches,
                                    struct ogrjoin_pairs *pairs,
                                    struct oj_error *err);

/** The pairs of a choice whose labels are rows 0 to n_rows - 1. */
OJ_MUST_USE oj_status api_one_to_one_matches(const struct oj_one_to_one *choice,
                                             int64_t n_rows,
                                             struct oj_matches *out,
                                             struct oj_error *err);

/** Lets the pairs of the rows that come next be written behind those that are
 *  there, as far as there is room for them, before they are added. */
void api_pairs_lend_room(struct ogrjoin_pairs *pairs,
                         struct oj_matches *matches);

#endif
