/** Values of reports in the fields of the first batch: a later batch can have
 *  another type in a field of that name.
 *
 *   field of the first batch   takes from a later one
 *   text                       texts, numbers as they are written
 *   integer                    whole numbers within its bits, also as texts
 *   boolean                    0 and 1, also as texts; true, false
 *   real                       numbers, also as texts; integers that it holds
 *                              exactly
 *   date, time, both           texts of such; a date where both are wanted, and
 *                              the beginning of a day where a date is
 *   list                       a list of narrower numbers, or one such value
 *
 *  A list of one value counts as the value: where a batch has both, GDAL's
 *  drivers make lists of all.  An empty text is no value of a field that is no
 *  text: it becomes NULL.  Everything else would be changed, and is refused.
 */
#ifndef OJ_REPORT_VALUE_H
#define OJ_REPORT_VALUE_H

#include <ogr_api.h>

/** Copies the value of field i to field k of another feature.  Returns 0 where
 *  that field cannot hold it, and sets it to NULL. */
int oj_report_value_copy(OGRFeatureH from, int i, OGRFeatureH to, int k);

#endif
