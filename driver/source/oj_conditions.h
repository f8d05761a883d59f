/** What a join asks of rows beyond their shapes: -on, -exclude field=,
 *  -max_distance_field, -join_max_distance_field.  Turns the fields into the
 *  columns of struct oj_flat.
 *
 *  The order is: open; then all rows of the side that is looked up, with
 *  insert; then the rows of the other, batch by batch.  Which side that is does
 *  not matter.
 */
#ifndef OJ_CONDITIONS_H
#define OJ_CONDITIONS_H

#include "../../flatten/arrays/oj_flat.h"
#include "../command/oj_command.h"
#include "oj_classes.h"
#include "oj_crs.h"
#include "oj_source.h"

/** Zeroed memory is a valid one that asks nothing. */
struct oj_conditions
{
    struct oj_classes *on, *exclude; /**< owned; NULL: not asked */
    int reach_column[2]; /**< of the input and the join side; < 0: none */
    double reach_scale;  /**< from the field's unit to that of the CRS */
};

/** The columns of one batch or side. Owner; zeroed memory is a valid empty
 *  one, and may be used for many batches. */
struct oj_columns
{
    double *max_distance;
    int32_t *on_class, *exclude_class;
    int64_t cap_max_distance, cap_on_class, cap_exclude_class;
};

/** Finds the fields, and has them read (oj_source_need_field).  The CRS are
 *  settled. OJ_ERR_ARG for words that make no sense. */
OJ_MUST_USE oj_status oj_conditions_open(const struct oj_command *command,
                                         struct oj_source *input,
                                         struct oj_source *join,
                                         const struct oj_crs *crs,
                                         struct oj_conditions *conditions,
                                         struct oj_error *err);

/** 1 when rows of a side (0 the input, 1 the join side) need
 *  oj_conditions_fill(). */
int oj_conditions_needed(const struct oj_conditions *conditions, int side);

/** Makes the columns of flat's rows, whose fields are in values, and hangs them
 *  into *flat: borrowed from columns. insert: see above. Rows without a usable
 *  distance are added to *n_no_reach. */
OJ_MUST_USE oj_status oj_conditions_fill(
    const struct oj_conditions *conditions, int side, int insert,
    const struct oj_row_values *values, struct oj_columns *columns,
    struct oj_flat *flat, int64_t *n_no_reach, struct oj_error *err);

void oj_columns_free(struct oj_columns *columns);

/** Accepts zeroed memory. */
void oj_conditions_free(struct oj_conditions *conditions);

#endif
