/** Conditions that mean the same to every driver.
 *
 *  A condition of a reader of a join is one of OGR's SQL; the input's driver
 *  may have an SQL of its own, to which 'Park' and 'park', NULL behind NOT, or
 *  LIKE are something else.  Rows that it leaves out are lost.  So only what
 *  cannot be understood in two ways goes down to it: comparisons of numeric
 *  fields with numbers.  To servers nothing should go: how they quote and fold
 *  names differs, too.
 */
#ifndef OJ_WHERE_H
#define OJ_WHERE_H

#include <ogr_api.h>

/** 1 when where consists of numeric fields of defn compared with finite decimal
 *  numbers (= <> != < <= > >=, BETWEEN, IN), IS NULL, IS NOT NULL, AND, OR and
 *  brackets, and nothing else.  A field stands first in its comparison, as a
 *  plain word or in double quotes. */
int oj_where_is_plain(const char *where, OGRFeatureDefnH defn);

#endif
