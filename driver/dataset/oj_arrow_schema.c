#include "oj_arrow_schema.h"

#if OJ_HAVE_ARROW

#include "../../flatten/base/oj_array.h"
#include "../base/oj_driver.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <errno.h>
#include <string.h>

/* ---- the layer ---------------------------------------------------------- */

static int create_fields(OGRLayerH layer, OGRFeatureDefnH defn)
{
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        if (!OGR_Fld_IsIgnored(field) &&
            OGR_L_CreateField(layer, field, 0) != OGRERR_NONE)
            return 0;
    }
    return 1;
}

static OGRLayerH create_layer(GDALDatasetH dataset, OGRFeatureDefnH defn,
                              int has_geometry)
{
    OGRLayerH layer =
        GDALDatasetCreateLayer(dataset, "rows", NULL, wkbNone, NULL);
    if (layer == NULL || !create_fields(layer, defn))
        return NULL;
    if (has_geometry &&
        OGR_L_CreateGeomField(layer, OGR_FD_GetGeomFieldDefn(defn, 0), 0) !=
            OGRERR_NONE)
        return NULL;
    return layer;
}

/* What GDAL says of its own trial is nobody's concern. */
static int open_quietly(OGRFeatureDefnH defn, char **options,
                        struct oj_arrow_schema *schema)
{
    OGRLayerH layer;
    schema->dataset = oj_driver_new_in_memory();
    if (schema->dataset == NULL)
        return 0;
    layer = create_layer(schema->dataset, defn, schema->has_geometry);
    return layer != NULL &&
           OGR_L_GetArrowStream(layer, &schema->stream, options);
}

int oj_arrow_schema_open(OGRFeatureDefnH defn, const char *fid_column,
                         char **options, struct oj_arrow_schema *schema)
{
    int done;
    memset(schema, 0, sizeof *schema);
    schema->has_fid =
        CPLTestBool(CSLFetchNameValueDef(options, "INCLUDE_FID", "YES"));
    schema->has_geometry =
        OGR_FD_GetGeomFieldCount(defn) > 0 && !OGR_FD_IsGeometryIgnored(defn);
    if (fid_column[0] != '\0')
        schema->fid_column = CPLStrdup(fid_column);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    done = open_quietly(defn, options, schema);
    CPLPopErrorHandler();
    if (!done)
        oj_arrow_schema_close(schema);
    return done;
}

void oj_arrow_schema_close(struct oj_arrow_schema *schema)
{
    if (schema->stream.release != NULL)
        schema->stream.release(&schema->stream);
    if (schema->dataset != NULL)
        GDALClose(schema->dataset);
    CPLFree(schema->fid_column);
    memset(schema, 0, sizeof *schema);
}

/* ---- a schema whose FIDs have a name ------------------------------------- */

/* GDAL's schema stays whole, so that it frees what it made; only the child for
 * FIDs is ours. */
struct renamed
{
    struct ArrowSchema generic;
    struct ArrowSchema fid;
    struct ArrowSchema *children[];
};

static void release_fid(struct ArrowSchema *fid)
{
    CPLFree((char *)fid->name);
    fid->release = NULL;
}

static void release_renamed(struct ArrowSchema *schema)
{
    struct renamed *renamed = schema->private_data;
    if (renamed->fid.release != NULL)
        renamed->fid.release(&renamed->fid);
    renamed->generic.release(&renamed->generic);
    oj_free(renamed);
    schema->release = NULL;
}

/* Takes generic over when it returns 0. The name is in no need of what the
 * schema was made of, should a consumer keep the child alone. */
static int rename_fid(const struct ArrowSchema *generic, const char *name,
                      struct ArrowSchema *out)
{
    struct renamed *renamed =
        oj_calloc(1, sizeof *renamed + (size_t)generic->n_children *
                                           sizeof renamed->children[0]);
    if (renamed == NULL)
        return ENOMEM;
    renamed->generic = *generic;
    for (int64_t i = 0; i < generic->n_children; i++)
        renamed->children[i] = generic->children[i];
    renamed->children[0] = &renamed->fid;
    renamed->fid.format = "l";
    renamed->fid.name = CPLStrdup(name);
    renamed->fid.flags = generic->children[0]->flags;
    renamed->fid.release = release_fid;
    *out = *generic;
    out->children = renamed->children;
    out->private_data = renamed;
    out->release = release_renamed;
    return 0;
}

int oj_arrow_schema_get(struct oj_arrow_schema *schema, struct ArrowSchema *out)
{
    struct ArrowSchema generic;
    int code;
    memset(&generic, 0, sizeof generic);
    code = schema->stream.get_schema(&schema->stream, &generic);
    if (code != 0)
        return code;
    if (!schema->has_fid || schema->fid_column == NULL ||
        generic.n_children == 0)
    {
        *out = generic;
        return 0;
    }
    code = rename_fid(&generic, schema->fid_column, out);
    if (code != 0)
        generic.release(&generic);
    return code;
}

#endif
