/** Copies values of reports into the fields of the first batch. In a later
 *  batch a field of this name can have another type:
 *
 *     field of the first batch   accepts from a later batch
 *     text                       texts, numbers as they are written
 *     integer                    whole numbers within its bits, also as texts
 *     boolean                    0 and 1, also as texts; true, false
 *     real                       numbers, also as texts; integers that it holds
 *                                exactly
 *     date, time, date-time      texts of such a form; a date for a date-time;
 *                                for a date the date-time at which a day begins
 *     list                       a list of narrower numbers, or one such value
 *
 *  A list of one value counts as the value, because GDAL's drivers make lists
 *  of all values of a field if a batch has both.  An empty text becomes NULL,
 *  except in a text field. All other values would be changed by a conversion
 *  and are refused. */
#ifndef OJ_REPORT_VALUE_H
#define OJ_REPORT_VALUE_H

#include <ogr_api.h>

/** Copies the value of field i to field k of another feature.  If field k
 *  cannot hold it, sets field k to NULL and returns 0. */
int oj_report_value_copy(OGRFeatureH from, int i, OGRFeatureH to, int k);

#endif
