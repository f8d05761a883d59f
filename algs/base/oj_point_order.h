/** The points of a batch, neighbours side by side.
 *
 *  Points as they come from a file lie anywhere, and each then asks for other
 *  parts of an index; in the order of the plane (Morton codes) they find in the
 *  cache what their neighbours used.  For joins whose answers may come in any
 *  order.
 */
#ifndef OJ_POINT_ORDER_H
#define OJ_POINT_ORDER_H

#include "cpu_order.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Owner; zeroed memory is a valid empty one, and may be used for many batches.
 */
struct oj_point_order
{
    int64_t n;    /**< points in order; 0: the batch stays as it is */
    int32_t *row; /**< [n] place in the batch of the i-th point in order */

    struct oj_order order; /* its memory is used again */
    double *x, *y, *max_distance;
    int64_t *fid;
    int32_t *on_class, *exclude_class;
    int64_t cap_row, cap_x, cap_y, cap_max_distance;
    int64_t cap_fid, cap_on_class, cap_exclude_class;
};

/** Puts the points of flat in order: afterwards it borrows from order.  A layer
 *  in the long form, or with texts or vectors, stays as it is.  O(n). */
OJ_MUST_USE oj_status oj_point_order_apply(struct oj_point_order *order,
                                           struct oj_flat *flat,
                                           struct oj_error *err);

void oj_point_order_free(struct oj_point_order *order);

#ifdef __cplusplus
}
#endif
#endif
