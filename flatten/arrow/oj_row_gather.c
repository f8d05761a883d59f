#include "oj_row_gather.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../read/oj_attributes.h"
#include "../read/oj_table.h"
#include "../write/oj_layer_shape.h"

#include <limits.h>
#include <string.h>

/* ---- fields ------------------------------------------------------------- */

/* Rows of the join side come in no order: the texts of a column are fetched
 * some rows ahead, and their offsets before. */
#define FETCH_AHEAD 16

static void fetch_text(const struct oj_table *table, int column,
                       const struct oj_row_place *places, int64_t i, int64_t n)
{
    for (int stage = 0; stage < 2; stage++)
    {
        int64_t ahead = i + FETCH_AHEAD * (2 - stage);
        if (ahead < n && places[ahead].join_row >= 0)
            oj_table_prefetch(table, column, places[ahead].join_row, stage);
    }
}

oj_status oj_row_gather_field(const struct oj_row_cursor *cursor, int source,
                              OGRFeatureH scratch,
                              const struct oj_row_place *places, int64_t n,
                              struct oj_row_column *to, int64_t *n_added,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(cursor);
    const struct oj_column *column =
        source < 0 ? NULL : &sources->columns[source];
    int is_null = column == NULL ||
                  (sources->is_join_rows && column->origin != OJ_COLUMN_JOIN &&
                   column->origin != OJ_COLUMN_JOIN_FID);
    int fetches =
        !is_null && column->origin == OJ_COLUMN_JOIN && !sources->is_join_rows;
    int is_plain = is_null || oj_row_cursor_is_plain(cursor, source);
    OGRFieldType type =
        is_null
            ? OFTInteger
            : OGR_Fld_GetType(OGR_F_GetFieldDefnRef(scratch, column->target));
    *n_added = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        int fits;
        if (fetches)
            fetch_text(sources->options->join_table, column->source, places, i,
                       n);
        if (is_null)
            oj_value_set_null(&value);
        else
            OJ_TRY(
                oj_row_cursor_value(cursor, source, &places[i], &value, err));
        if (!is_plain)
            OJ_TRY(oj_row_cursor_convert(cursor, source, scratch, &value, err));
        OJ_TRY(oj_row_column_add(to, &value, type, &fits, err));
        if (!fits)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}

oj_status oj_row_gather_fids(const struct oj_row_place *places, int64_t n,
                             struct oj_row_column *to, struct oj_error *err)
{
    struct oj_value value;
    int fits;
    oj_value_set_zero(&value);
    for (int64_t i = 0; i < n; i++)
    {
        value.raw.Integer64 = places[i].fid;
        OJ_TRY(oj_row_column_add(to, &value, OFTInteger64, &fits, err));
    }
    return OJ_OK;
}

/* ---- geometries --------------------------------------------------------- */

static oj_status add_null(struct oj_row_column *to, int *fits,
                          struct oj_error *err)
{
    struct oj_value value;
    oj_value_set_null(&value);
    return oj_row_column_add(to, &value, OFTBinary, fits, err);
}

static oj_status fail_geometry(int64_t fid, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "the geometry of feature %lld cannot be written as WKB",
                   (long long)fid);
}

static oj_status add_export(struct oj_row_column *to, OGRGeometryH geometry,
                            int64_t fid, int *fits, struct oj_error *err)
{
    int size = OGR_G_WkbSize(geometry);
    char *at;
    if (size <= 0)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the geometry of feature %lld takes more than 2 GiB as "
                       "WKB",
                       (long long)fid);
    OJ_TRY(oj_row_column_add_room(to, size, &at, err));
    *fits = at != NULL;
    if (at != NULL && OGR_G_ExportToIsoWkb(geometry, wkbNDR,
                                           (unsigned char *)at) != OGRERR_NONE)
        return fail_geometry(fid, err);
    return OJ_OK;
}

/* Over OGR, unless the bytes of a stream can be taken as they are. */
static oj_status add_as_read(struct oj_row_column *to,
                             const struct oj_batch *batch, int64_t row,
                             int promote, int *fits, struct oj_error *err)
{
    const struct oj_attributes *attributes = batch->attributes;
    int64_t fid = batch->flat.fid[row];
    OGRGeometryH geometry, own = NULL;
    oj_status status;
    if (attributes->slice.chunk != NULL)
    {
        size_t n = 0;
        const uint8_t *wkb = oj_arrow_wkb(&attributes->slice, row, &n);
        if (wkb != NULL && !promote && oj_wkb_is_iso(wkb, n))
        {
            char *at;
            OJ_TRY(oj_row_column_add_room(to, (int64_t)n, &at, err));
            *fits = at != NULL;
            if (at != NULL)
                memcpy(at, wkb, n);
            return OJ_OK;
        }
        if (wkb != NULL &&
            (n > INT_MAX ||
             OGR_G_CreateFromWkb(wkb, NULL, &own, (int)n) != OGRERR_NONE))
            return fail_geometry(fid, err);
        geometry = own;
    }
    else
        geometry = oj_attributes_geometry(attributes, row);
    if (geometry == NULL)
        return add_null(to, fits, err);
    if (promote)
        geometry = own =
            oj_layer_shape_to_multi(own != NULL ? own : OGR_G_Clone(geometry));
    status = add_export(to, geometry, fid, fits, err);
    OGR_G_DestroyGeometry(own);
    return status;
}

static oj_status add_row(struct oj_row_column *to,
                         const struct oj_row_cursor *cursor,
                         const struct oj_row_place *place, int *fits,
                         struct oj_error *err)
{
    struct oj_row_geometry shape;
    int64_t n = 0;
    char *at;
    oj_row_cursor_geometry(cursor, place, &shape);
    if (shape.is_as_read)
        return add_as_read(to, oj_row_cursor_sources(cursor)->batch, place->row,
                           shape.multi, fits, err);
    if (shape.flat != NULL)
        n = oj_wkb_size(shape.flat, shape.feature, shape.multi);
    if (n == 0)
        return add_null(to, fits, err);
    OJ_TRY(oj_row_column_add_room(to, n, &at, err));
    *fits = at != NULL;
    if (at != NULL)
        oj_wkb_write(shape.flat, shape.feature, shape.multi, (uint8_t *)at);
    return OJ_OK;
}

oj_status oj_row_gather_wkb(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *places, int64_t n,
                            struct oj_row_column *to, int64_t *n_added,
                            struct oj_error *err)
{
    *n_added = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int fits;
        OJ_TRY(add_row(to, cursor, &places[i], &fits, err));
        if (!fits)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}
