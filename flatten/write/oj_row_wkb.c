#include "oj_row_wkb.h"

#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"
#include "../read/oj_attribute_table.h"
#include "oj_flat_to_ogr_geometry.h"

/* Sets *wkb to the *n bytes of a chunk if they are as OGR would write them;
 * otherwise converts the geometry through OGR. */
static oj_status make_wkb_of_geometry_as_read(
    struct oj_layer_geometry *work, const struct oj_batch *batch, int64_t row,
    const struct oj_row_geometry *shape, const uint8_t **wkb, int64_t *n,
    struct oj_error *err)
{
    const struct oj_slice *slice = &batch->attributes->slice;
    OGRGeometryH geometry;
    struct oj_error reason;
    size_t n_read = 0;
    oj_status status;
    if (slice->chunk != NULL && !shape->multi)
    {
        *wkb = oj_slice_wkb(slice, row, &n_read);
        *n = (int64_t)n_read;
        if (*wkb == NULL || oj_wkb_is_iso(*wkb, n_read))
            return OJ_OK;
        *wkb = NULL;
    }
    OJ_TRY(oj_row_geometry_make(batch, row, shape, &geometry, err));
    if (geometry == NULL)
        return OJ_OK;
    status = oj_layer_geometry_wkb(work, geometry, &n_read, &reason);
    OGR_G_DestroyGeometry(geometry);
    if (status == OJ_ERR_NOMEM)
        return oj_fail(err, status, "%s", reason.message);
    if (status != OJ_OK)
        return oj_fail(err, status,
                       "feature %lld: %.700s; correct it, or leave it out by "
                       "-where",
                       (long long)batch->flat.fid[row], reason.message);
    *wkb = work->wkb;
    *n = (int64_t)n_read;
    return OJ_OK;
}

oj_status oj_row_wkb_make(struct oj_layer_geometry *work,
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
    OJ_ROOM(work->wkb, 0, *n, work->cap_wkb, err);
    oj_wkb_write(shape.flat, shape.feature, shape.multi, work->wkb);
    *wkb = work->wkb;
    return OJ_OK;
}
