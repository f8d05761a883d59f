/** An indexed join side, with which batches of input features are joined.
 *  Chooses the engine for each batch.
 *
 *  struct oj_flat lots = ..., pickups = ...;            // views, oj_flat.h
 *  struct oj_relation relation = oj_relation_default(); // nearest
 *  struct oj_options options = {0};                     // all threads
 *  struct oj_matches matches = {0};
 *  struct oj_join *join;
 *  relation.max_distance = 100.0;
 *  if (oj_join_open(&lots, &relation, NULL, &options, &join, &err) == OJ_OK &&
 *      oj_join_batch(join, &pickups, &matches, &err) == OJ_OK)
 *      ... matches.join_row[i], matches.measure[i] ...
 *  oj_matches_free(&matches);
 *  oj_join_close(join);
 */
#ifndef OJ_JOIN_H
#define OJ_JOIN_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/relation/oj_backend_registry.h"
#include "../../foundations/relation/oj_relation.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OGRJOIN_VERSION "1.0.0"

struct oj_aggregate_column;
struct oj_aggregates;

/** An indexed join side, ready for any number of batches. */
struct oj_join;

/** Returns the version of the library in use: "1.0.0". */
const char *oj_version(void);

/** Checks and indexes the join side.
 *  join_side  must outlive *out; struct oj_flat documents its contents, and
 *             oj_flat_check() validates it
 *  relation   the parameters of the join; copied
 *  backend    name of a backend; NULL or "auto": the fastest possible
 *  options    copied; NULL: all threads
 *  Errors     OJ_ERR_ARG: relation or backend are invalid; OJ_ERR_LIMIT:
 *             more than 2^31 - 1 join features or segments; OJ_ERR_NOMEM;
 *             OJ_ERR_CANCELLED.
 *  Cost       O(n log n) in the segments of the join side. */
OJ_MUST_USE oj_status oj_join_open(const struct oj_flat *join_side,
                                   const struct oj_relation *relation,
                                   const char *backend,
                                   const struct oj_options *options,
                                   struct oj_join **out, struct oj_error *err);

/** Joins a batch of input features, in their order.
 *  input      features of any kinds (on the sphere: points), up to 2^31 - 1 of
 *             them.  The pairs of a feature do not depend on the other features
 *             of its batch, on threads or on the backend.
 *  out        owned by the caller; its memory is reused.  Pairs of a row are
 *             sorted by (measure, FID, ordinal); if the join side has no FIDs,
 *             or repeated FIDs, by (measure, ordinal).
 *  Errors     as above; OJ_ERR_UNSUPPORTED: the backend cannot join such
 *             features; OJ_ERR_TOO_MANY_PAIRS: see max_batch_pairs of the
 *             options.  *out is then undefined, but can be freed.
 *  Not thread-safe. */
OJ_MUST_USE oj_status oj_join_batch(struct oj_join *join,
                                    const struct oj_flat *input,
                                    struct oj_matches *out,
                                    struct oj_error *err);

/** Updates the index after points of the join side have moved: only for a join
 *  side of single points and for backends that can do so (gpics_*, live_*,
 *  spatialindex, spatialindex_collective).
 *  join_side  the layer as it is now; it differs from the one that was opened,
 *             or last moved, in the places of n features, and must outlive the
 *             join
 *  feature    [n] these features, each once
 *  Errors     OJ_ERR_UNSUPPORTED: the backend would build its index anew, the
 *             join is unchanged; OJ_ERR_NOMEM, OJ_ERR_LIMIT, OJ_ERR_INTERNAL:
 *             the join can then only be closed
 *  Not thread-safe; the join must have no copies (oj_join_acquire()). */
OJ_MUST_USE oj_status oj_join_move_points(struct oj_join *join,
                                          const struct oj_flat *join_side,
                                          int64_t n, const int32_t *feature,
                                          struct oj_error *err);

/** For use by several threads: gives the calling thread a join with the join
 *  side of `join`, until oj_join_release().  If oj_join_is_on_cpu() is 1,
 *  *out is a copy with its own working memory and stats, so batches run
 *  concurrently; otherwise *out is join itself, and threads take turns in the
 *  order of their calls.  While copies are in use, join itself must have no
 *  batches and must not be closed.
 *  cancel     flag that ends the wait and, if *out is a copy, its batches;
 *             must outlive the use of *out.  NULL: the flag of the options;
 *             the wait cannot be ended then
 *  Errors     OJ_ERR_NOMEM; OJ_ERR_CANCELLED while waiting */
OJ_MUST_USE oj_status oj_join_acquire(struct oj_join *join, const int *cancel,
                                      struct oj_join **out,
                                      struct oj_error *err);

/** Like oj_join_acquire(). max_batch_pairs replaces the option of this name in
 * the batches of *out if *out is a copy; it has no effect if *out is join
 * itself. 0: the value of the options. */
OJ_MUST_USE oj_status oj_join_acquire_bounded(struct oj_join *join,
                                              const int *cancel,
                                              int64_t max_batch_pairs,
                                              struct oj_join **out,
                                              struct oj_error *err);
void oj_join_release(struct oj_join *taken);

/** Frees the working memory of unused copies, except n_kept of them. A copy's
 * memory is as large as its largest batch. */
void oj_join_free_unused_copies(struct oj_join *join, int n_kept);

/** Returns the number of bytes of all indexes of the join side. taken: a join
 * that oj_join_acquire() has returned. */
int64_t oj_join_index_bytes(struct oj_join *taken);

/** Returns 1 if the GPU is never used and the engines of the backend can share
 * their indexes: oj_join_acquire() then makes copies, and the result does not
 * depend on how rows are split into batches. */
int oj_join_is_on_cpu(struct oj_join *join);

/** Returns 1 if a few rows may be joined first, to count their pairs; 0 if rows
 * have at most one pair, if the backend is a reference, or if a GPU may be used
 * (the number of rows may then decide between CPU and GPU). */
int oj_join_may_sample(const struct oj_join *join);

/** Returns 1 if oj_join_sum_pairs() is faster than oj_join_batch() for batches
 * like input. */
int oj_join_should_sum_pairs(const struct oj_join *join,
                             const struct oj_flat *input);

/** Counts the pairs of a batch and sums columns over them, per join feature,
 *  without storing pairs. The results are added to aggregates, which must
 *  accept sums and have a row per join feature. The rows of columns are those
 *  of input; *n_pairs is the number of pairs.
 *  Errors     those of oj_join_batch(); OJ_ERR_UNSUPPORTED, with unchanged
 *             aggregates: the engine cannot sum this batch (on the CPU, only
 *             pairs of op attributes can be counted); use oj_join_batch() */
OJ_MUST_USE oj_status oj_join_sum_pairs(
    struct oj_join *join, const struct oj_flat *input,
    const struct oj_aggregate_column *columns, struct oj_aggregates *aggregates,
    int64_t *n_pairs, struct oj_error *err);

/** Returns the times and counts of all batches so far. */
const struct oj_stats *oj_join_stats(const struct oj_join *join);

/** Returns the backend in use. For "auto", returns the backend that is chosen
 * at present; a batch may change the choice. */
const struct oj_backend *oj_join_backend(const struct oj_join *join);

/** Returns why "auto" chose the backend, or why "cuda" used the CPU or a slower
 * method, or "" if there is nothing to report. */
const char *oj_join_reason_for_backend(const struct oj_join *join);

/** Returns a description of the method that joins batches like input, since a
 * backend can have several. input NULL: batches of points. */
const char *oj_join_method(const struct oj_join *join,
                           const struct oj_flat *input);

/** Returns the number of threads in use. */
int oj_join_threads(const struct oj_join *join);

/** Returns the tie ranks (by FID) of the join features, or NULL if they equal
 * the ordinals. Valid as long as the join. */
const int32_t *oj_join_tie_rank(const struct oj_join *join);

/** join may be NULL. */
void oj_join_close(struct oj_join *join);

#ifdef __cplusplus
}
#endif
#endif
