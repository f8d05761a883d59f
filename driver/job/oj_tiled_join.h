/** A join whose join side lies in tiles (oj_tiles.h): each batch is joined with
 *  one tile after the other, and the answers are merged into what a join with
 *  the whole layer gives, pair for pair and in the same order.
 *
 *  The matches of a batch speak of features that are no longer in memory, so
 *  they come with those features: join_row is an ordinal among them.
 */
#ifndef OJ_TILED_JOIN_H
#define OJ_TILED_JOIN_H

#include "../../algs/engine/oj_join.h"
#include "oj_tiles.h"

struct oj_tiled_join;

/** tiles and backend outlive *out; relation and options are copied.
 * fids_are_unique: 0 when FIDs repeat: then read order alone breaks ties, and
 * self joins are not recognised. */
OJ_MUST_USE oj_status oj_tiled_join_open(
    const struct oj_tiles *tiles, const struct oj_relation *relation,
    const char *backend, const struct oj_options *options, int fids_are_unique,
    struct oj_tiled_join **out, struct oj_error *err);

/** As oj_join_batch(). side becomes the features that are matched, or
 *  undecided, in the order of their places, with geometry and attributes: side
 *  row j is what join_row j and undecided_join j mean.
 *  Cost: loading and indexing every tile, which large batches share. */
OJ_MUST_USE oj_status oj_tiled_join_batch(struct oj_tiled_join *join,
                                          const struct oj_flat *input,
                                          struct oj_matches *out,
                                          struct oj_tiled_side *side,
                                          struct oj_error *err);

/** Summed over tiles and batches. */
const struct oj_stats *oj_tiled_join_stats(const struct oj_tiled_join *join);

/** The backend at work, and its threads. */
const struct oj_backend *
oj_tiled_join_backend(const struct oj_tiled_join *join);
int oj_tiled_join_threads(const struct oj_tiled_join *join);

/** 1 when equal measures are in the order of FIDs, 0: in that of ordinals. */
int oj_tiled_join_ties_by_fid(const struct oj_tiled_join *join);

/** Accepts NULL. */
void oj_tiled_join_close(struct oj_tiled_join *join);

#endif
