/** Makes the pairs of the public interface from the matches of a join: picks
 *  (one per row, or one to one), computes the requested values, and aggregates.
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

/** Converts an error to its public form; err may be NULL. Returns the status.
 */
int api_error_export(oj_status status, const struct oj_error *from,
                     struct ogrjoin_error *err);

/** Maximum bytes of one_to_one lists in memory. */
#define API_MOST_ONE_TO_ONE_BYTES (INT64_C(512) << 20)

/** Refuses more pairs than the setting max_pairs allows.
 * status  of a join, which is returned, unless it found too many
 * most    max_pairs; 0: no bound
 * n       pairs of the join, after n_before others */
OJ_MUST_USE oj_status api_check_max_pairs(oj_status status, int64_t most,
                                          int64_t n_before, int64_t n,
                                          struct oj_error *err);

/** Settings of pairs, in the types of the settings table; 0: not set. */
struct api_pair_settings
{
    int pick;       /**< enum oj_pick_rule */
    int one_to_one; /**< enum oj_one_to_one_rule */
    int overlap_area, overlap_length, overlap_percent;
    int nearest_point, from_point, bearing, share, intersection;
    int named[OJ_N_NAMED_PAIR_VALUES]; /**< values from
                                            OJ_FIRST_NAMED_PAIR_VALUE on */
};

#define API_PICK_NAMES                                                         \
    "all|first|nearest|largest_overlap|smallest_area|largest_area|"            \
    "most_similar|score"

/** Makes pairs from the answers of joins with one join side; thread-safe. */
struct api_pair_maker
{
    struct api_pair_settings settings;
    struct oj_relation relation;
    int n_threads;
    const int *cancel;           /**< of the settings; or NULL */
    struct oj_flat join_side;    /**< a view; its arrays must outlive the
                                      maker */
    struct oj_pair_stage *stage; /**< NULL: no values or picks are wanted */
    pthread_mutex_t lock;        /**< guards stage */
};

/** Opens a maker. score: [join features] for OJ_PICK_SCORE, else NULL. tie_rank
 * may be NULL. These arrays and those of join_side must outlive *maker.
 * OJ_ERR_ARG: the settings do not fit the join. */
OJ_MUST_USE oj_status api_pair_maker_open(
    struct api_pair_maker *maker, const struct api_pair_settings *settings,
    const struct oj_relation *relation, const struct oj_options *options,
    const struct oj_flat *join_side, const int64_t *score,
    const int32_t *tie_rank, struct oj_error *err);

/** Closes an opened or zeroed maker. */
void api_pair_maker_close(struct api_pair_maker *maker);

struct ogrjoin_pairs
{
    int64_t n, n_rows, first; /**< number of pairs; of left rows; number of
                                   the first row */
    int64_t n_undecided;
    int64_t n_large_groups; /**< of one_to_one best */
    int has_measure, n_similar;
    int is_lists; /**< 1: offset and right32 instead of left and right; a
                       measure only if the join has one */
    int64_t *left, *right;
    int64_t *offset;  /**< [n_rows + 1] if is_lists, else NULL */
    int32_t *right32; /**< [n] if is_lists, else NULL */
    double *measure;
    int64_t n_expected; /**< expected number of rows; 0: unknown */
    int64_t cap_left, cap_right, cap_offset, cap_right32, cap_measure;
    double *value[OJ_N_PAIR_VALUES]; /**< [n], or NULL: not wanted */
    double *share;                   /**< [n] or NULL */
    int64_t *shape_offset;           /**< [n + 1] of intersections in shape,
                                          or NULL */
    uint8_t *shape;                  /**< the intersections as WKB */
    struct ogrjoin_layer *join_side; /**< kept alive until
                                          ogrjoin_pairs_free() */
    const int64_t *join_id;          /**< ids of the join side; NULL: row
                                          numbers */
    int64_t n_join;
    int are_ids;    /**< right holds ids of a kept index, not row numbers */
    double *change; /**< [n] of near pairs, or NULL */
};

/** Appends the pairs of the answer for the next rows.  Before the first call,
 * *pairs is zeroed except first, is_lists and n_expected. After an error,
 * ogrjoin_pairs_free() frees it.
 * is_all   1: input is the whole side; then the arrays of *matches may be
 * taken
 *          over, which leaves it empty.  Required for one_to_one and for values
 *          of pairs */
OJ_MUST_USE oj_status api_pairs_add(struct api_pair_maker *maker,
                                    const struct oj_flat *input, int is_all,
                                    struct oj_matches *matches,
                                    struct ogrjoin_pairs *pairs,
                                    struct oj_error *err);

/** The name of a value as ogrjoin_pairs_value() has it. */
const char *api_pairs_value_name(enum oj_pair_value which);

/** Makes matches of a one-to-one choice whose labels are rows 0 to n_rows - 1.
 */
OJ_MUST_USE oj_status api_one_to_one_matches(const struct oj_one_to_one *choice,
                                             int64_t n_rows,
                                             struct oj_matches *out,
                                             struct oj_error *err);

/** Lends the free room of the pairs' arrays to matches, so that the next join
 * writes its pairs in place. */
void api_pairs_lend_room(struct ogrjoin_pairs *pairs,
                         struct oj_matches *matches);

#endif
