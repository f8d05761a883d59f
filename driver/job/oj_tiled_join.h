/** Join with a join side larger than memory: its features are records in a
 *  temporary file, divided into tiles that fit in memory.
 *
 *    record record record | record record | record record record ...
 *    tile 0                 tile 1          tile 2
 *
 *    record: struct head | WKB | per text its set: size, bits, tokens |
 *             vector | attributes: per column 0, or 1 and the value
 *
 *  Each batch is joined with one tile after another, and the answers are merged
 *  into the answer of a join with the whole layer, with equal pairs in equal
 *  order. Records keep the order of the layer, so features can be ordered by
 *  the offsets of their records. The division into tiles affects only the
 *  time.
 *
 *  The matched features of a batch are no longer in memory when the batch is
 *  answered, so the answer includes them: join_row is an index into these
 *  features.
 *
 *  Records are in native byte order; every piece starts at a multiple of 8
 *  bytes.
 */
#ifndef OJ_TILED_JOIN_H
#define OJ_TILED_JOIN_H

#include "../../algs/api/engine/oj_join.h"
#include "../../algs/pairs/selection/oj_answer_ranking.h"
#include "../../flatten/base/oj_temporary_file.h"
#include "../source/oj_side_compared_columns.h"

/** A growing array of bytes, which owns its memory. Zeroed memory is valid and
 *  empty. */
struct oj_bytes
{
    int64_t n, capacity;
    unsigned char *byte;
};

/* ---- features of a layer ------------------------------------------------- */

/** Some features of a layer, with attributes and columns for conditions. Owns
 *  its arrays; zeroed memory is valid and empty. */
struct oj_feature_set
{
    struct oj_flat_buf buf;
    /** owned; NULL if the features have no attributes */
    struct oj_table *table;
    int64_t *ordinal; /**< [buf.n_features] index in the layer */
    /** [buf.n_features] offset of the record in the file; only for features
     *  from tiles */
    int64_t *place;
    struct oj_compared_columns columns;
    int64_t cap_ordinal, cap_place;
    struct oj_bytes piece; /**< scratch: bytes read from the file */
};

/** Returns the features as a flat layer, valid until *features changes. */
struct oj_flat oj_feature_set_view(const struct oj_feature_set *features);

/** Frees what features owns; features is then valid and empty. */
void oj_feature_set_free(struct oj_feature_set *features);

/* ---- tiles --------------------------------------------------------------- */

/** The file of records and its division into tiles. Owns its arrays; zeroed
 *  memory is valid and empty. */
struct oj_tiles
{
    struct oj_temporary_file file;
    int64_t stretch_bytes; /**< bytes between two places where a tile may end */
    struct oj_bytes held;  /**< records not yet written to the file */
    /** empty table with the columns of the attributes to keep, owned, or NULL;
     *  set by the caller before the first feature is added */
    struct oj_table *columns;
    /** the join; set by the caller before the first feature is added */
    enum oj_op op;
    /** number of texts per feature; set by the caller before the first feature
     *  is added */
    int n_texts;
    /** 1 if features have vectors; set by the caller before the first feature
     *  is added */
    int has_vectors;
    int64_t n_dimensions; /**< dimensions of the vectors; 0 if not yet known */
    /** bits of enum oj_m_found of all features; set if M values are kept */
    unsigned m_found;
    int64_t n_tiles, cap_tiles;
    struct oj_tile *tile;
};

/** Returns the estimated memory of features that take `bytes` in the file,
 *  including the index that a join builds. */
int64_t oj_join_tiles_estimate_bytes(enum oj_op op, int64_t bytes,
                                     int64_t n_vertices, int64_t n_tokens);

/** Creates the file for features.
 *  near    path next to which the file is created (oj_temporary_file.h)
 *  memory  expected value of `memory` in oj_join_tiles_finish() */
OJ_MUST_USE oj_status oj_join_tiles_open(struct oj_tiles *tiles,
                                         const char *near, int64_t memory,
                                         struct oj_error *err);

/** Adds the features of flat that have vertices, or all features if the join
 *  compares attributes alone. Feature i has row i of values and the ordinal
 *  first_ordinal + i. */
OJ_MUST_USE oj_status oj_join_tiles_add(struct oj_tiles *tiles,
                                        const struct oj_flat *flat,
                                        const struct oj_attributes *values,
                                        int64_t first_ordinal,
                                        struct oj_error *err);

/** Ends the adding and forms the tiles.
 *  memory  maximum bytes of a loaded tile; a tile of one feature may exceed it
 *  number  [n_texts] new token numbers, applied to all records
 *          (oj_token_dictionary_number_by_rarity()); NULL if the numbers stay
 */
OJ_MUST_USE oj_status oj_join_tiles_finish(struct oj_tiles *tiles,
                                           int64_t memory,
                                           uint32_t *const *number,
                                           struct oj_error *err);

/** Loads the n features whose records are at these offsets into *side.
 *  Thread-safe if each thread has its own side. with_attributes 1: also loads
 *  their attributes. */
OJ_MUST_USE oj_status oj_join_tiles_read_features(
    const struct oj_tiles *tiles, const int64_t *place, int64_t n,
    int with_attributes, struct oj_feature_set *side, struct oj_error *err);

void oj_join_tiles_close(struct oj_tiles *tiles);

/* ---- the join ------------------------------------------------------------ */

/** A join with tiles. join_row is the index of a feature in `found`, so that
 *  32 bits suffice for a layer of any size. */
struct oj_tiled_join
{
    const struct oj_tiles *tiles;
    struct oj_relation relation;
    struct oj_options options;
    /** name of the backend; NULL stands for the default */
    const char *backend;
    /** 1 if FIDs break ties of equal measures; 0 if ordinals do, because FIDs
     *  repeat */
    int fids_are_unique;
    struct oj_stats stats; /**< statistics of the tiles that are not loaded any
                                more */
    /** after a batch: statistics including the loaded tile */
    struct oj_stats total;
    /** backend of the tile loaded last; the requested backend until a tile is
     *  loaded */
    const struct oj_backend *used;
    int n_threads;

    /* The loaded tile. */
    int64_t loaded; /**< index of the loaded tile; -1 if no tile is loaded */
    struct oj_feature_set side;
    struct oj_flat flat;
    struct oj_join *engine;

    /* State of the current batch. */
    struct oj_matches matches;    /**< answer of one tile */
    struct oj_answers answers;    /**< pairs of all tiles so far */
    struct oj_pair_budget budget; /**< limit of the pairs in `answers` */
    int64_t n_found, cap_found, cap_number, cap_tie_rank;
    /** number of features at the start of `found` that are kept even without a
     *  pair */
    int64_t n_first;
    /** [n_found] the n_first features, then the further features with a pair in
     *  this batch */
    struct found_feature *found;
    /** [features of the tile] index in `found`, or -1; also scratch of
     *  drop_unmatched_found_features() */
    int32_t *number;
    int32_t *tie_rank; /**< [n_found] */
};

/** Opens a join; tiles and backend must outlive *out, relation and options are
 *  copied. fids_are_unique: 0 if FIDs repeat. The reading order alone then
 *  breaks ties, and self joins are not recognised. */
OJ_MUST_USE oj_status oj_tiled_join_open(
    const struct oj_tiles *tiles, const struct oj_relation *relation,
    const char *backend, const struct oj_options *options, int fids_are_unique,
    struct oj_tiled_join **out, struct oj_error *err);

/** Some features, given by the offsets of their records in the file, ascending.
 */
struct oj_answer_places
{
    int64_t n;
    const int64_t *place; /**< [n] */
};

/** Joins a batch like oj_join_batch(). Also fills *side with the features that
 *  are in a pair or undecided, in the order of the file: join_row j and
 *  undecided_join j are row j of *side. Loads and indexes every tile once per
 *  batch, so large batches cost less per row.
 *   first            NULL, or features with which *side begins even if they
 *                    have no pair; two answers can then be compared by join_row
 *   with_attributes  1: *side also has attributes */
OJ_MUST_USE oj_status oj_tiled_join_batch(
    struct oj_tiled_join *join, const struct oj_flat *input,
    const struct oj_answer_places *first, int with_attributes,
    struct oj_matches *out, struct oj_feature_set *side, struct oj_error *err);

/** Sets *rank, one element per feature of the last answer's side: the feature's
 *  position in the order that breaks ties. Valid until the next batch. */
OJ_MUST_USE oj_status oj_tiled_join_rank_ties(struct oj_tiled_join *join,
                                              const int32_t **rank,
                                              struct oj_error *err);

/** Frees the tile in memory; the next batch loads one. */
void oj_tiled_join_unload(struct oj_tiled_join *join);

/** Frees the join; accepts NULL. */
void oj_tiled_join_close(struct oj_tiled_join *join);

#endif
