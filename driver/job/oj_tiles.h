/** A join side that is larger than memory: features in a temporary file,
 *  grouped in spatial tiles, each small enough to be joined in memory.
 *
 *   oj_tiles_add     every feature becomes a record (oj_layer_record.h) in the
 *                    bucket of the grid cell that its middle is in
 *   oj_tiles_finish  buckets next to each other in Morton order become tiles
 *   oj_tiles_load    one tile back into memory
 *
 *  Which tile a feature is in decides time, never an answer: every input row is
 *  joined with every tile (oj_tiled_join.h).
 */
#ifndef OJ_TILES_H
#define OJ_TILES_H

#include "../../flatten/read/oj_layer_record.h"
#include "../files/oj_temporary.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_tiles
{
    struct oj_temporary_file file;
    int64_t memory;      /**< bytes that one tile may take when loaded */
    double x0, y0;       /**< of the grid */
    double per_x, per_y; /**< columns, rows per CRS unit */
    int side;            /**< columns = rows of the grid */
    int64_t n_buckets;
    struct oj_bucket *bucket;
    int64_t n_extents, cap_extents;
    struct oj_extent *extent; /**< pieces of the file, in tile order at last */
    int64_t n_tiles, cap_tiles;
    struct oj_tile *tile;
    struct oj_table *columns; /**< owned: an empty table, or NULL */
    int64_t n_features;
    struct oj_bytes record; /**< scratch */
};

/** A tile: first_extent <= e < end_extent. */
struct oj_tile
{
    int64_t first_extent, end_extent, n_features;
};

/** Bytes that features take in memory together with what a join builds over
 *  them: record_bytes are those of their records. */
int64_t oj_tiles_estimate(int64_t record_bytes, int64_t n_vertices);

/** Opens tiles of at most memory bytes.
 *  near      a path beside which the file is to be (oj_temporary.h)
 *  extent    xmin ymin xmax ymax of the features, about
 *  columns   a table with the columns of the attributes to keep, or NULL */
OJ_MUST_USE oj_status oj_tiles_open(struct oj_tiles *tiles, const char *near,
                                    int64_t memory, const double extent[4],
                                    const struct oj_table *columns,
                                    struct oj_error *err);

/** Adds the features of flat that have parts; table row i and ordinal
 *  first_ordinal + i belong to feature i. */
OJ_MUST_USE oj_status oj_tiles_add(struct oj_tiles *tiles,
                                   const struct oj_flat *flat,
                                   const struct oj_table *table,
                                   int64_t first_ordinal, struct oj_error *err);

/** No more features: makes the tiles. */
OJ_MUST_USE oj_status oj_tiles_finish(struct oj_tiles *tiles,
                                      struct oj_error *err);

/* Finished tiles may be read by several threads, each with a piece of its own:
 * scratch, which the caller frees. */

/** Loads tile t, geometry and columns for joining but no attributes.
 *  *place [out->buf.n_features] is where each feature's record lies in the
 *  file; it grows like any array. */
OJ_MUST_USE oj_status oj_tiles_load(const struct oj_tiles *tiles, int64_t t,
                                    struct oj_bytes *piece,
                                    struct oj_feature_set *out, int64_t **place,
                                    int64_t *cap_place, struct oj_error *err);

/** Adds the feature whose record lies at place, with its attributes. */
OJ_MUST_USE oj_status oj_tiles_fetch(const struct oj_tiles *tiles,
                                     int64_t place, struct oj_bytes *piece,
                                     struct oj_feature_set *out,
                                     struct oj_error *err);

void oj_tiles_close(struct oj_tiles *tiles);

#endif
