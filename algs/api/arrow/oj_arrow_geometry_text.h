/** Converts Arrow columns of geometries that are written as texts
 *  (oj_geometry_text.h) to columns of well-known binary. */
#ifndef OJ_ARROW_GEOMETRY_TEXT_H
#define OJ_ARROW_GEOMETRY_TEXT_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

/** Makes a column of binary (format z) of a column of texts (u, U or vu). NULL
 * and texts of white space alone become NULL. name, first_row: for messages,
 * the column's name and the number of its first row. out must be released; on
 * failure it is released already. OJ_ERR_ARG: a text that is no geometry, or a
 * column of another type; OJ_ERR_LIMIT: more than 2 GiB of WKB. */
OJ_MUST_USE oj_status oj_arrow_geometry_texts_to_wkb(
    const struct ArrowSchema *schema, const struct ArrowArray *texts,
    const char *name, int64_t first_row, struct ArrowArray *out,
    struct oj_error *err);

#endif
