#include "oj_row_wkb.h"

#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../read/oj_table.h"
#include "oj_flat_to_ogr_geometry.h"

/* Over OGR, unless the bytes of a chunk can be taken as they are. */
static oj_status make_wkb_of_geometry_as_read(
    struct oj_row_wkb *work, const struct oj_batch *batch, int64_t row,
    const struct oj_row_geometry *shape, const uint8_t **wkb, int64_t *n,
    struct oj_error *err)
{
    const struct oj_slice *slice = &batch->attributes->slice;
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
    if (slice->chunk != NULL || shape->multi)
    {
        OJ_TRY(oj_row_geometry_set(work->scratch, batch, row, shape, err));
        geometry = OGR_F_GetGeometryRef(work->scratch);
    }
    else
        geometry = oj_attributes_geometry(batch->attributes, row);
    if (geometry == NULL)
        return OJ_OK;
    OJ_TRY(oj_layer_geometry_wkb(&work->bytes, geometry, &n_read, err));
    *wkb = work->bytes.wkb;
    *n = (int64_t)n_read;
    return OJ_OK;
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
        return make_wkb_of_geometry_as_read(
            work, oj_row_cursor_sources(cursor)->batch, place->row, &shape, wkb,
            n, err);
    if (shape.flat != NULL)
        *n = oj_wkb_size(shape.flat, shape.feature, shape.multi);
    if (*n == 0)
        return OJ_OK;
    OJ_ROOM(work->bytes.wkb, 0, *n, work->bytes.cap_wkb, err);
    oj_wkb_write(shape.flat, shape.feature, shape.multi, work->bytes.wkb);
    *wkb = work->bytes.wkb;
    return OJ_OK;
}

void oj_row_wkb_free(struct oj_row_wkb *work)
{
    oj_layer_geometry_free(&work->bytes);
}
