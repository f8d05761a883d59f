/** Features of a layer as bytes: geometry, attributes and columns in one
 *  record, to be kept in a file and read back by the same process.
 *
 *   struct head | columns of struct oj_flat | part_kind | ring_offset |
 *   vertex_offset | x | y | attributes: per column 0, or 1 and the value
 *
 *  Native byte order; every piece starts at a multiple of 8 bytes.
 */
#ifndef OJ_LAYER_RECORD_H
#define OJ_LAYER_RECORD_H

#include "../arrays/oj_flat.h"
#include "oj_table.h"

/** Some features of a layer, with all that is known of them.  Owner; zeroed
 *  memory is a valid empty one. */
struct oj_feature_set
{
    struct oj_flat_buf buf;
    struct oj_table *table; /**< owned; NULL: no attributes */
    int64_t *ordinal;       /**< [buf.n_features] place in the layer */
    double *max_distance;   /**< [buf.n_features] or NULL, as in struct */
    int32_t *on_class;      /**< oj_flat */
    int32_t *exclude_class;
    int64_t cap_ordinal, cap_max_distance, cap_on_class, cap_exclude_class;
};

/** The features as a flat layer; valid until they are next changed. */
struct oj_flat oj_feature_set_view(const struct oj_feature_set *features);

/** Empties features and keeps the memory, but not that of the table, which
 *  begins anew. */
OJ_MUST_USE oj_status oj_feature_set_clear(struct oj_feature_set *features,
                                           struct oj_error *err);

/** Frees what is held; features is a valid empty one afterwards. */
void oj_feature_set_free(struct oj_feature_set *features);

/** Copies feature from of a flat layer to the end of features, without
 *  attributes.
 *  ordinal        its place in the layer */
OJ_MUST_USE oj_status oj_feature_set_add(struct oj_feature_set *features,
                                         const struct oj_flat *flat,
                                         int64_t from, int64_t ordinal,
                                         struct oj_error *err);

/** Bytes that grow. Owner; zeroed memory is a valid empty one. */
struct oj_bytes
{
    int64_t n, capacity;
    unsigned char *byte;
};

/** Appends the record of feature from of flat.
 *  table, row     its attributes, or NULL
 *  ordinal        its place in the layer */
OJ_MUST_USE oj_status oj_record_write(struct oj_bytes *bytes,
                                      const struct oj_flat *flat, int64_t from,
                                      const struct oj_table *table, int64_t row,
                                      int64_t ordinal, struct oj_error *err);

/** Length of the record at the given multiple-of-8 address, of which at least
 *  8 bytes are there. */
int64_t oj_record_length(const unsigned char *record);

/** Adds the feature of a record to features, whose table, if any, has the
 *  columns the record was written with. */
OJ_MUST_USE oj_status oj_record_read(const unsigned char *record,
                                     struct oj_feature_set *features,
                                     struct oj_error *err);

#endif
