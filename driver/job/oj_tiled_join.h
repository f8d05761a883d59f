/** A join side that is larger than memory: its features as records in a
 *  temporary file, cut into tiles that can each be joined in memory.
 *
 *   record record record | record record | record record record ...
 *   tile 0                 tile 1          tile 2
 *
 *   record:  struct head | WKB | of each text its set: size, bits, tokens |
 *            vector | attributes: per column 0, or 1 and the value
 *
 *  Each batch is joined with one tile after the other, and the answers are
 *  merged into what a join with the whole layer gives, pair for pair and in the
 *  same order.  Records stay in the order of the layer, so a place in the file
 *  orders features as reading did.  Where the cuts are decides time, never an
 *  answer.
 *
 *  The matches of a batch speak of features that are no longer in memory, so
 *  they come with those features: join_row is an ordinal among them.
 *
 *  Records are in native byte order; every piece starts at a multiple of 8
 *  bytes.
 */
#ifndef OJ_TILED_JOIN_H
#define OJ_TILED_JOIN_H

#include "../../algs/api/engine/oj_join.h"
#include "../../algs/pairs/selection/oj_ranking.h"
#include "../../flatten/base/oj_temporary_file.h"
#include "../source/oj_side_compared_columns.h"

/** Bytes that grow. Owner; zeroed memory is a valid empty one. */
struct oj_bytes
{
    int64_t n, capacity;
    unsigned char *byte;
};

/* ---- some features of a layer -------------------------------------------- */

/** Some features of a layer, with all that is known of them.  Owner; zeroed
 *  memory is a valid empty one. */
struct oj_feature_set
{
    struct oj_flat_buf buf;
    struct oj_table *table; /**< owned; NULL: no attributes */
    int64_t *ordinal;       /**< [buf.n_features] place in the layer */
    int64_t *place;         /**< [buf.n_features] of their records; only where
                                 they come from tiles */
    struct oj_compared_columns columns;
    int64_t cap_ordinal, cap_place;
    struct oj_bytes piece; /**< scratch: what was read of the file */
};

/** The features as a flat layer; valid until they are next changed. */
struct oj_flat oj_feature_set_view(const struct oj_feature_set *features);

/** Frees what is held; features is a valid empty one afterwards. */
void oj_feature_set_free(struct oj_feature_set *features);

/* ---- tiles --------------------------------------------------------------- */

/** Owner; zeroed memory is a valid empty one. */
struct oj_tiles
{
    struct oj_temporary_file file;
    int64_t stretch_bytes;    /**< after which a tile may end */
    struct oj_bytes held;     /**< records that are not in the file yet */
    struct oj_table *columns; /**< owned: an empty table with the columns of the
                                   attributes to keep, or NULL; the caller makes
                                   it first */
    enum oj_op op;            /**< of the join; the caller's to set, */
    int n_texts;              /**< texts of each feature, */
    int has_vectors;          /**< before the first is added */
    int64_t n_dimensions;     /**< of vectors, 0: not known yet */
    int64_t n_tiles, cap_tiles;
    struct oj_tile *tile;
};

/** Bytes of memory that features take, of which bytes are their own, together
 *  with what a join builds over them. */
int64_t oj_join_tiles_estimate(enum oj_op op, int64_t bytes, int64_t n_vertices,
                               int64_t n_tokens);

/** Opens tiles for features.
 *  near    a path beside which the file is to be (oj_temporary_file.h)
 *  memory  estimate of the memory given to oj_join_tiles_finish() */
OJ_MUST_USE oj_status oj_join_tiles_open(struct oj_tiles *tiles,
                                         const char *near, int64_t memory,
                                         struct oj_error *err);

/** Adds the features of flat that have parts, texts or vectors; row i of values
 * and ordinal first_ordinal + i belong to feature i. */
OJ_MUST_USE oj_status oj_join_tiles_add(struct oj_tiles *tiles,
                                        const struct oj_flat *flat,
                                        const struct oj_attributes *values,
                                        int64_t first_ordinal,
                                        struct oj_error *err);

/** No more features.
 *  memory  bytes that a tile takes at most when it is loaded, or it is of one
 *          feature
 *  number  [n_texts] the numbers that tokens have from now on, for those so far
 *          (oj_token_dictionary_order()); NULL: as they are */
OJ_MUST_USE oj_status oj_join_tiles_finish(struct oj_tiles *tiles,
                                           int64_t memory,
                                           uint32_t *const *number,
                                           struct oj_error *err);

/** Makes side the n features whose records are at these places. Several threads
 *  may do so, each with a side of its own. */
OJ_MUST_USE oj_status oj_join_tiles_fetch(const struct oj_tiles *tiles,
                                          const int64_t *place, int64_t n,
                                          int with_attributes,
                                          struct oj_feature_set *side,
                                          struct oj_error *err);

void oj_join_tiles_close(struct oj_tiles *tiles);

/* ---- the join ------------------------------------------------------------ */

/** What answers a batch.  Features are named by their numbers in found, so that
 *  32 bits are enough for a layer of any size. */
struct oj_tiled_join
{
    const struct oj_tiles *tiles;
    struct oj_relation relation;
    struct oj_options options;
    const char *backend; /**< NULL: the default */
    int fids_are_unique; /**< 1: equal measures are in the order of FIDs, 0: in
                              that of ordinals */
    struct oj_stats stats;         /**< of tiles that were in memory */
    struct oj_stats total;         /**< and of the one that is, after a batch */
    const struct oj_backend *used; /**< by the last tile, or wanted */
    int n_threads;

    /* The tile in memory. */
    int64_t loaded; /**< -1: none */
    struct oj_feature_set side;
    struct oj_flat flat;
    struct oj_join *engine;

    /* Of the batch. */
    struct oj_matches matches;    /**< with one tile */
    struct oj_answers answers;    /**< of all tiles so far */
    struct oj_pair_budget budget; /**< of these */
    int64_t n_found, cap_found, cap_number, cap_tie_rank;
    int64_t n_first;             /**< what found begins with in any case */
    struct found_feature *found; /**< [n_found] */
    int32_t *number;   /**< [features of the tile] in found, or -1; scratch of
                            dropping the unmatched, too */
    int32_t *tie_rank; /**< [n_found] */
};

/** tiles and backend outlive *out; relation and options are copied.
 * fids_are_unique: 0 when FIDs repeat: then read order alone breaks ties, and
 * self joins are not recognised. */
OJ_MUST_USE oj_status oj_tiled_join_open(
    const struct oj_tiles *tiles, const struct oj_relation *relation,
    const char *backend, const struct oj_options *options, int fids_are_unique,
    struct oj_tiled_join **out, struct oj_error *err);

/** Where the records of features are, in ascending order. */
struct oj_answer_places
{
    int64_t n;
    const int64_t *place; /**< [n] */
};

/** As oj_join_batch(). side becomes the features that are matched, or
 *  undecided, in the order of their places, with geometry and, where they are
 *  asked for, attributes: side row j is what join_row j and undecided_join j
 *  mean.
 *  first: NULL, or features that side begins with, matched or not, so that two
 *  answers can be compared by join_row.
 *  Cost: loading and indexing every tile, which large batches share. */
OJ_MUST_USE oj_status oj_tiled_join_batch(
    struct oj_tiled_join *join, const struct oj_flat *input,
    const struct oj_answer_places *first, int with_attributes,
    struct oj_matches *out, struct oj_feature_set *side, struct oj_error *err);

/** The tie order of the features that the last answer came with, valid until
 *  the next: *rank [features of side]. */
OJ_MUST_USE oj_status oj_tiled_join_rank_ties(struct oj_tiled_join *join,
                                              const int32_t **rank,
                                              struct oj_error *err);

/** Gives the memory of the tile back; the next batch loads one. */
void oj_tiled_join_unload(struct oj_tiled_join *join);

/** Accepts NULL. */
void oj_tiled_join_close(struct oj_tiled_join *join);

#endif
