/** A join side that is larger than memory: features as records in a temporary
 *  file (oj_layer_record.h), cut into tiles that can each be joined in memory.
 *
 *   record record record | record record | record record record ...
 *   tile 0                 tile 1          tile 2
 *
 *  Records stay in the order of the layer, so a place in the file orders
 *  features as reading did.  Where the cuts are decides time, never an answer:
 *  every input row is joined with every tile (oj_tiled_join.h).
 */
#ifndef OJ_TILES_H
#define OJ_TILES_H

#include "../../flatten/read/oj_layer_record.h"
#include "../files/oj_temporary.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_tiles
{
    struct oj_temporary_file file;
    int64_t memory;           /**< bytes that one tile may take when loaded */
    struct oj_bytes held;     /**< records that are not in the file yet */
    struct oj_table *columns; /**< owned: an empty table, or NULL */
    int64_t n_tiles, cap_tiles;
    struct oj_tile *tile;
};

/** Bytes that features take in memory together with what a join builds over
 *  them: record_bytes are those of their records. */
int64_t oj_tiles_estimate(int64_t record_bytes, int64_t n_vertices);

/** Opens tiles of at most memory bytes, or of one feature.
 *  near      a path beside which the file is to be (oj_temporary.h)
 *  columns   a table with the columns of the attributes to keep, or NULL */
OJ_MUST_USE oj_status oj_tiles_open(struct oj_tiles *tiles, const char *near,
                                    int64_t memory,
                                    const struct oj_table *columns,
                                    struct oj_error *err);

/** Adds the features of flat that have parts; table row i and ordinal
 *  first_ordinal + i belong to feature i. */
OJ_MUST_USE oj_status oj_tiles_add(struct oj_tiles *tiles,
                                   const struct oj_flat *flat,
                                   const struct oj_table *table,
                                   int64_t first_ordinal, struct oj_error *err);

/** No more features. */
OJ_MUST_USE oj_status oj_tiles_finish(struct oj_tiles *tiles,
                                      struct oj_error *err);

/** Some features of the tiles, in the order of their records.  Owner; zeroed
 *  memory is a valid empty one. */
struct oj_tiled_side
{
    struct oj_feature_set features;
    int64_t *place; /**< [features] of their records in the file */
    int64_t cap_place;
    struct oj_bytes piece; /**< scratch: what was read of the file */
};

/* Finished tiles may be read by several threads, each into a side of its own.
 */

/** Makes side all of tile t: geometry and columns for joining, but no
 *  attributes. */
OJ_MUST_USE oj_status oj_tiles_load(const struct oj_tiles *tiles, int64_t t,
                                    struct oj_tiled_side *side,
                                    struct oj_error *err);

/** Makes side the n features whose records are at these places, with their
 *  attributes. */
OJ_MUST_USE oj_status oj_tiles_fetch(const struct oj_tiles *tiles,
                                     const int64_t *place, int64_t n,
                                     struct oj_tiled_side *side,
                                     struct oj_error *err);

void oj_tiled_side_free(struct oj_tiled_side *side);

void oj_tiles_close(struct oj_tiles *tiles);

#endif
