/** Vectors of features: a column of n_dimensions numbers per row.
 *
 *   row      0        1        2
 *   value   [a b c    a b c    NaN . .]      row 2 has no vector: no match
 *
 *  No number exceeds OJ_FLAT_MOST, so that sums of squares do not overflow.
 */
#ifndef OJ_VECTORS_H
#define OJ_VECTORS_H

#include <stdint.h>

enum
{
    OJ_MOST_DIMENSIONS = 1024
};

/** Vectors of the rows of a layer. Owns nothing. */
struct oj_vectors
{
    int64_t n_dimensions; /**< 1 .. OJ_MOST_DIMENSIONS */
    const double *value;  /**< [n_rows * n_dimensions]; NULL: the layer has no
                               vectors */
};

static inline const double *oj_vector_at(const struct oj_vectors *vectors,
                                         int64_t row)
{
    return vectors->value + row * vectors->n_dimensions;
}

/** Returns 1 if the row has a vector. */
static inline int oj_vector_is_there(const struct oj_vectors *vectors,
                                     int64_t row)
{
    const double *value = oj_vector_at(vectors, row);
    return value[0] == value[0];
}

#endif
