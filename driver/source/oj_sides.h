/** From the rows of a side as they were read to what is joined of them: shapes
 *  replaced (oj_reshape.h), and what -on, -exclude field=, -max_distance_field
 *  and -join_max_distance_field ask of fields turned into columns of struct
 *  oj_flat.
 *
 *  The order is: open; then all rows of the side that is looked up, with
 *  insert; then the rows of the other, batch by batch.  Which side that is does
 *  not matter.
 */
#ifndef OJ_SIDES_H
#define OJ_SIDES_H

#include "../../algs/relation/oj_relation.h"
#include "oj_classes.h"
#include "oj_crs.h"
#include "oj_reshape.h"
#include "oj_source.h"

/** Zeroed memory is a valid closed one. Index 0 is the input, 1 the join. */
struct oj_sides
{
    struct oj_reshape reshape[2];
    struct oj_classes *on, *exclude; /**< owned; NULL: not asked */
    int reach_column[2];             /**< of own distances; < 0: none */
    double reach_scale; /**< from the field's unit to that of the CRS */
    int is_self_join;   /**< both sides are one layer */
    int needs_points;   /**< on the input side: -metric sphere */
    int needs_fids;     /**< of both sides: a feature and itself are no pair */
};

/** What was made of some rows. Owner; zeroed memory is a valid empty one and
 *  may be used for many batches. */
struct oj_side_work
{
    struct oj_flat_buf shapes;
    double *max_distance;
    int32_t *on_class, *exclude_class;
    int64_t cap_max_distance, cap_on_class, cap_exclude_class;
};

/** Both sides are open and their CRS known. Has the fields read that are
 * needed, and sets what relation excludes: a feature and itself where both
 * sides are one layer, with a notice. OJ_ERR_ARG for words that make no sense.
 */
OJ_MUST_USE oj_status oj_sides_open(
    const struct oj_command *command, struct oj_source *input,
    struct oj_source *join, const struct oj_crs *crs, struct oj_sides *sides,
    struct oj_relation *relation, struct oj_error *err);

/** 1 when the rows' fields are needed before the join. */
int oj_sides_need_values(const struct oj_sides *sides, int side);

/** flat: the rows as read on entry, what is joined of them on return; it then
 *  borrows from work. values: their fields, looked at only where
 *  oj_sides_need_values(). insert: for the rows of the side that is looked
 *  up. */
OJ_MUST_USE oj_status oj_sides_make(struct oj_sides *sides, int side,
                                    int insert,
                                    const struct oj_row_values *values,
                                    struct oj_side_work *work,
                                    struct oj_flat *flat, struct oj_error *err);

void oj_side_work_free(struct oj_side_work *work);

/** Accepts a closed one. */
void oj_sides_close(struct oj_sides *sides);

#endif
