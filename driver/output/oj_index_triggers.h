/** The triggers that keep a GeoPackage's spatial index up to date, set aside
 *  while rows change and geometries do not.
 *
 *  GDAL writes a changed row with its geometry, which fires them, and that is
 *  nine tenths of the time of an update in place.  They are dropped and made
 *  again inside the transaction, so that nobody else ever sees them missing.
 */
#ifndef OJ_INDEX_TRIGGERS_H
#define OJ_INDEX_TRIGGERS_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>

/** Drops the triggers on updates of layer's geometry; *statements (freed with
 *  CSLDestroy) makes them again. Nothing happens, and *statements is NULL, for
 *  other formats and layers without such an index. In a transaction only. */
OJ_MUST_USE oj_status oj_index_triggers_drop(GDALDatasetH dataset,
                                             const char *layer,
                                             char ***statements,
                                             struct oj_error *err);

OJ_MUST_USE oj_status oj_index_triggers_restore(GDALDatasetH dataset,
                                                char **statements,
                                                struct oj_error *err);

#endif
