/** Makes the pairs of the public interface from the matches of a join: picks
 *  pairs (one per row, or one to one) and computes values and aggregates.
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

/** Copies an error to its public form, unless err is NULL. Returns the status.
 */
int api_error_export(oj_status status, const struct oj_error *from,
                     struct ogrjoin_error *err);

/** A one-to-one choice holds its lists in files above this number of bytes. */
#define API_MOST_ONE_TO_ONE_BYTES (INT64_C(512) << 20)

/** Fails if a join has more pairs than the setting max_pairs allows. status:
 * result of the join, which is returned unchanged otherwise. most: max_pairs;
 * 0: no limit. n: number of pairs of the join. n_before: number of earlier
 * pairs, which count, too. */
OJ_MUST_USE oj_status api_check_max_pairs(oj_status status, int64_t most,
                                          int64_t n_before, int64_t n,
                                          struct oj_error *err);

/** Settings that choose pairs and their values. All members are int, as the
 * table of settings requires; 0: not set. */
struct api_pair_settings
{
    int pick;       /**< enum oj_pick_rule */
    int one_to_one; /**< enum oj_one_to_one_rule */
    int overlap_area, overlap_length, overlap_percent;
    int nearest_point, from_point, bearing, share, intersection;
    int along;                         /**< enum oj_along_by */
    int named[OJ_N_NAMED_PAIR_VALUES]; /**< 1: compute this value; element 0 is
                                            OJ_FIRST_NAMED_PAIR_VALUE */
};

#define API_PICK_NAMES                                                         \
    "all|first|nearest|largest_overlap|smallest_area|largest_area|"            \
    "most_similar|score"

/** Makes pairs from the matches of joins with one join side. Thread-safe. */
struct api_pair_maker
{
    struct api_pair_settings settings;
    struct oj_relation relation;
    int n_threads;
    const int *cancel;           /**< cancel flag of the settings; or NULL */
    struct oj_flat join_side;    /**< a view; its arrays must outlive the
                                      maker */
    struct oj_pair_stage *stage; /**< computes values and picks pairs; NULL: the
                                      user wants neither */
    pthread_mutex_t lock;        /**< guards stage */
};

/** Opens a maker. score: [join features], for OJ_PICK_SCORE, otherwise NULL.
 * tie_rank may be NULL. These arrays and those of join_side must outlive
 * *maker. Fails with OJ_ERR_ARG if the settings do not fit the join. */
OJ_MUST_USE oj_status api_pair_maker_open(
    struct api_pair_maker *maker, const struct api_pair_settings *settings,
    const struct oj_relation *relation, const struct oj_options *options,
    const struct oj_flat *join_side, const int64_t *score,
    const int32_t *tie_rank, struct oj_error *err);

/** Closes a maker, which may be zeroed. */
void api_pair_maker_close(struct api_pair_maker *maker);

struct ogrjoin_pairs
{
    int64_t n, n_rows, first; /**< number of pairs; number of input rows;
                                   ordinal of the first of these rows */
    int64_t n_undecided;
    int64_t n_large_groups; /**< number of groups of pairs that were too large
                                 for one_to_one best */
    int has_measure, n_similar;
    int is_lists; /**< 1: pairs are lists, in offset and right32 instead of left
                       and right */
    int64_t *left, *right;
    int64_t *offset;  /**< [n_rows + 1] first pair of each left row; only if
                           is_lists */
    int32_t *right32; /**< [n] right rows; only if is_lists */
    double *measure;
    int64_t n_expected; /**< expected number of rows, for allocation; 0: not
                             known */
    int64_t cap_left, cap_right, cap_offset, cap_right32, cap_measure;
    double *value[OJ_N_PAIR_VALUES]; /**< [n] values of the pairs; NULL: not
                                          wanted */
    double *share;                   /**< [n] fraction of the join feature that
                                          the row of each pair overlaps (setting
                                          share), or NULL */
    int64_t *shape_offset;           /**< [n + 1] start of each intersection in
                                          `shape`, or NULL */
    uint8_t *shape;                  /**< intersections as WKB */
    struct ogrjoin_layer *join_side; /**< reference, so that join_id stays
                                          valid */
    const int64_t *join_id;          /**< ids of the join side's features; NULL:
                                          they are row numbers */
    int64_t n_join;
    int are_ids;    /**< 1: right holds ids of a live index, not row numbers */
    double *change; /**< [n] changes of near pairs, or NULL */
};

/** Appends the pairs of the next rows of the input. Before the first call,
 * *pairs must be zeroed except first, is_lists and n_expected. After an error,
 * ogrjoin_pairs_free() frees it. is_all 1: input is the whole input side. The
 * arrays of *matches may then be moved, which leaves it empty. Required for
 * one_to_one and for values of pairs */
OJ_MUST_USE oj_status api_pairs_add(struct api_pair_maker *maker,
                                    const struct oj_flat *input, int is_all,
                                    struct oj_matches *matches,
                                    struct ogrjoin_pairs *pairs,
                                    struct oj_error *err);

/** Returns the name by which ogrjoin_pairs_value() returns a value; NULL for
 * values that it does not return. */
const char *api_pairs_value_name(enum oj_pair_value which);

/** Converts a one-to-one choice to matches. The choice must label pairs by
 * their row, 0 to n_rows - 1. */
OJ_MUST_USE oj_status api_convert_choice_to_matches(
    const struct oj_one_to_one *choice, int64_t n_rows, struct oj_matches *out,
    struct oj_error *err);

/** Lets the next join write its pairs behind the existing ones, into the arrays
 * of *pairs, to save a copy. */
void api_pairs_lend_arrays_to_matches(struct ogrjoin_pairs *pairs,
                                      struct oj_matches *matches);

#endif
