#include "oj_row_wkb.h"

#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../read/oj_attributes.h"
#include "oj_layer_shape.h"

static oj_status export_wkb(struct oj_row_wkb *work, OGRGeometryH geometry,
                            int64_t fid, const uint8_t **wkb, int64_t *n,
                            struct oj_error *err)
{
    int size = OGR_G_WkbSize(geometry);
    if (size <= 0)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the geometry of feature %lld takes more than 2 GiB as "
                       "WKB",
                       (long long)fid);
    OJ_ROOM(work->bytes, 0, size, work->cap, err);
    if (OGR_G_ExportToIsoWkb(geometry, wkbNDR, work->bytes) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO,
                       "the geometry of feature %lld cannot be written as WKB",
                       (long long)fid);
    *wkb = work->bytes;
    *n = size;
    return OJ_OK;
}

/* Over OGR, unless the bytes of a chunk can be taken as they are. */
static oj_status make_as_read(struct oj_row_wkb *work,
                              const struct oj_batch *batch, int64_t row,
                              const struct oj_row_geometry *shape,
                              const uint8_t **wkb, int64_t *n,
                              struct oj_error *err)
{
    const struct oj_slice *slice = &batch->attributes->slice;
    int64_t fid = batch->flat.fid[row], n_without;
    OGRGeometryH geometry;
    size_t n_read = 0;
    if (slice->chunk != NULL && !shape->multi)
    {
        *wkb = oj_slice_wkb(slice, row, &n_read);
        *n = (int64_t)n_read;
        if (*wkb == NULL || oj_wkb_is_iso(*wkb, n_read))
            return OJ_OK;
        *wkb = NULL;
    }
    if (work->scratch == NULL)
    {
        work->needs_ogr = 1;
        return OJ_OK;
    }
    if (slice->chunk != NULL || shape->multi)
    {
        OJ_TRY(oj_row_geometry_set(work->scratch, batch, row, shape, fid,
                                   &n_without, err));
        geometry = OGR_F_GetGeometryRef(work->scratch);
    }
    else
        geometry = oj_attributes_geometry(batch->attributes, row);
    return geometry == NULL ? OJ_OK
                            : export_wkb(work, geometry, fid, wkb, n, err);
}

oj_status oj_row_wkb_make(struct oj_row_wkb *work,
                          const struct oj_row_cursor *cursor,
                          const struct oj_row_place *place, const uint8_t **wkb,
                          int64_t *n, struct oj_error *err)
{
    struct oj_row_geometry shape;
    *wkb = NULL;
    *n = 0;
    oj_row_cursor_geometry(cursor, place, &shape);
    if (shape.is_as_read)
        return make_as_read(work, oj_row_cursor_sources(cursor)->batch,
                            place->row, &shape, wkb, n, err);
    if (shape.flat != NULL)
        *n = oj_wkb_size(shape.flat, shape.feature, shape.multi);
    if (*n == 0)
        return OJ_OK;
    OJ_ROOM(work->bytes, 0, *n, work->cap, err);
    oj_wkb_write(shape.flat, shape.feature, shape.multi, work->bytes);
    *wkb = work->bytes;
    return OJ_OK;
}

void oj_row_wkb_free(struct oj_row_wkb *work)
{
    oj_free(work->bytes);
    work->bytes = NULL;
    work->cap = 0;
}
