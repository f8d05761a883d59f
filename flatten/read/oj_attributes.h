/** What a batch carries for the writer: columns of a slice, or OGR features.
 * Only the reader, the writer and the table read this.
 */
#ifndef OJ_ATTRIBUTES_H
#define OJ_ATTRIBUTES_H

#include "../arrays/oj_chunk.h"
#include "oj_value.h"

struct oj_attributes
{
    const struct oj_fields *fields; /**< the reader's */
    struct oj_slice slice;          /**< chunk NULL: features count */
    int64_t n_features, cap_features;
    OGRFeatureH *feature; /**< [n_features], ours */
};

/** Gives back rows; memory for the next ones is kept. Any thread. */
void oj_attributes_clear(struct oj_attributes *attributes);

/** Accepts NULL. */
void oj_attributes_free(struct oj_attributes *attributes);

/** Takes feature over when it returns OJ_OK. */
OJ_MUST_USE oj_status oj_attributes_push(struct oj_attributes *attributes,
                                         OGRFeatureH feature,
                                         struct oj_error *err);

/** Geometry of a row, where rows are features; NULL: it has none. */
OGRGeometryH oj_attributes_geometry(const struct oj_attributes *attributes,
                                    int64_t row);

/** Value of a wanted field (by its place in the reader's options). */
void oj_attributes_value(const struct oj_attributes *attributes, int field,
                         int64_t row, struct oj_value *value);

#endif
