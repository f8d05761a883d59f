/** Consecutive rows of a layer: flat geometry, and attributes as they were
 * read.
 */
#ifndef OJ_BATCH_H
#define OJ_BATCH_H

#include "../arrays/oj_flat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Attributes of a batch: Arrow columns or OGR features, whichever the reader
 *  used. Defined in oj_attributes.h, which only the reader and the writer
 *  read. */
struct oj_attributes;

/** Consecutive rows of a layer. */
struct oj_batch
{
    int64_t first_row;                /**< place of row 0 in the layer */
    int64_t n_rows;                   /**< == flat.n_features */
    struct oj_flat_buf flat;          /**< geometry and FIDs */
    struct oj_attributes *attributes; /**< geometry as read, and fields */
};

/** Frees what a batch holds; it is a valid empty one afterwards. May be called
 *  on another thread than the reader's. */
void oj_batch_free(struct oj_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
