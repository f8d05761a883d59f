/** The schema that GDAL's generic Arrow stream has for a definition: asked of
 *  GDAL itself, by a layer in memory with the same fields. */
#ifndef OJ_ARROW_SCHEMA_H
#define OJ_ARROW_SCHEMA_H

#include "../../flatten/read/oj_layer_arrow.h"

#if OJ_HAVE_ARROW

#include <gdal.h>
#include <ogr_recordbatch.h>

/** Owner; zeroed memory is a valid closed one. */
struct oj_arrow_schema
{
    GDALDatasetH dataset;
    struct ArrowArrayStream stream; /**< of its layer; release NULL: none */
    char *fid_column;               /**< NULL: the generic name */
    int has_fid;                    /**< the first child is the FID */
    int has_geometry;               /**< the last child is the geometry */
};

/** Of the fields, and the geometry, that are not ignored in defn, in their
 *  order.  0: GDAL here cannot say it. */
int oj_arrow_schema_open(OGRFeatureDefnH defn, const char *fid_column,
                         char **options, struct oj_arrow_schema *schema);

/** Fills out, which is released on its own, whenever. Returns 0 or an error
 *  number. */
int oj_arrow_schema_get(struct oj_arrow_schema *schema,
                        struct ArrowSchema *out);

/** Accepts a closed one. */
void oj_arrow_schema_close(struct oj_arrow_schema *schema);

#endif
#endif
