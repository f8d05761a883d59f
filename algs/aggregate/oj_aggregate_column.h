/** Values of join features that are aggregated, as columns. */
#ifndef OJ_AGGREGATE_COLUMN_H
#define OJ_AGGREGATE_COLUMN_H

#include <stdint.h>

enum oj_aggregate_type
{
    OJ_AGG_INTEGER = 0,
    OJ_AGG_REAL,
    OJ_AGG_BYTES
};

/** A text or other bytes, borrowed. */
struct oj_aggregate_bytes
{
    const char *bytes;
    int64_t n;
};

/** Values of one column, in the array of its type. */
struct oj_aggregate_column
{
    const double *real;
    const int64_t *integer;
    const uint8_t *is_null; /**< NULL: none is */
    const struct oj_aggregate_bytes *bytes;
};

#endif
