/** A join: its join side, indexed, and batches of input features joined with
 *  it, by whichever engine answers.
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

/** A join side, indexed, ready for any number of batches. */
struct oj_join;

/** Version of the library in use: "1.0.0". */
const char *oj_version(void);

/** Checks and indexes the join side.
 *  join_side  outlives *out; struct oj_flat says what it must hold, and a
 *             caller that made it by hand may ask oj_flat_check() first
 *  relation   what is asked; copied
 *  backend    name of a backend, NULL or "auto": the fastest that can do it
 *  options    copied; NULL: all threads
 *  Errors     OJ_ERR_ARG: relation or backend make no sense; OJ_ERR_LIMIT:
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
 *             them.  The answer for a feature does not depend on the other
 *             features of its batch, on threads or on the backend.
 *  out        owned by the caller; its memory is used again.  Pairs of a row
 *             are sorted by (measure, FID, ordinal); where the join side has no
 *             FIDs, or repeated ones, by (measure, ordinal).
 *  Errors     as above; OJ_ERR_UNSUPPORTED: the backend cannot join such
 *             features; OJ_ERR_TOO_MANY_PAIRS: see max_batch_pairs of the
 *             options.  *out then holds nothing of use but can be freed.
 *  One thread at a time. */
OJ_MUST_USE oj_status oj_join_batch(struct oj_join *join,
                                    const struct oj_flat *input,
                                    struct oj_matches *out,
                                    struct oj_error *err);

/** For several threads: a join with the side of join that is the caller's alone
 *  until it is given back.  Where the backend is sure to be the CPU, *out has
 *  working memory of its own, so batches run side by side; else *out is join,
 *  and threads take turns, in the order in which they ask.  Its stats are its
 *  own.  join itself has no batches then, and outlives what was taken.
 *  cancel     a flag that outlives the taking: stops the waiting and, where
 *             *out is not join, its batches; those of join look at the flag of
 *             its options.  NULL: that of the options, and waiting has no end.
 *  Errors     OJ_ERR_NOMEM; OJ_ERR_CANCELLED while it waited */
OJ_MUST_USE oj_status oj_join_take(struct oj_join *join, const int *cancel,
                                   struct oj_join **out, struct oj_error *err);
void oj_join_give_back(struct oj_join *taken);

/** Frees the working memory that was given back and is kept for those who take
 *  next, but that of n_kept: after a large batch it is as large. */
void oj_join_trim(struct oj_join *join, int n_kept);

/** Bytes of all indexes of the join side. taken: by the calling thread. */
int64_t oj_join_index_bytes(struct oj_join *taken);

/** 1: the backend is sure to be the CPU, so that oj_join_take() gives a copy
 * and nothing depends on how rows are cut into batches. */
int oj_join_is_on_cpu(struct oj_join *join);

/** 1: to join some rows beforehand, in order to count their pairs, costs little
 *  and changes nothing: rows may have several pairs, and no device is chosen by
 *  their number. */
int oj_join_may_sample(const struct oj_join *join);

/** 1 when oj_join_sum_pairs() with columns is worth asking for batches like
 *  input. */
int oj_join_sums(const struct oj_join *join, const struct oj_flat *input);

/** Adds a batch's pairs and the sums of their columns, whose rows are those of
 *  input, to aggregates, which take sums and have a row for each join feature;
 *  sets *n_pairs to the number of all pairs.
 *  Errors     as of oj_join_batch(); OJ_ERR_UNSUPPORTED, with aggregates as
 * they were: oj_join_batch() is the way for this batch (on the CPU it always
 * is). */
OJ_MUST_USE oj_status oj_join_sum_pairs(
    struct oj_join *join, const struct oj_flat *input,
    const struct oj_aggregate_column *columns, struct oj_aggregates *aggregates,
    int64_t *n_pairs, struct oj_error *err);

/** Times and counts since oj_join_open(). */
const struct oj_stats *oj_join_stats(const struct oj_join *join);

/** The backend at work; with "auto" the one that was chosen, which may change
 *  with a batch. */
const struct oj_backend *oj_join_backend(const struct oj_join *join);

/** Why "auto" chose it, in words, or why "cuda" left something to the CPU or to
 *  another method; "" when there is nothing to say. */
const char *oj_join_reason(const struct oj_join *join);

/** What answers a batch like input, in words for people: a backend can have
 *  several ways. input NULL: a batch of points. */
const char *oj_join_method(const struct oj_join *join,
                           const struct oj_flat *input);

/** Threads that this join uses. */
int oj_join_threads(const struct oj_join *join);

/** [join features] place of each in tie order, which is FID order, or NULL
 * where that is the order of the ordinals. Valid as long as join is. */
const int32_t *oj_join_tie_rank(const struct oj_join *join);

/** Accepts NULL. */
void oj_join_close(struct oj_join *join);

#ifdef __cplusplus
}
#endif
#endif
