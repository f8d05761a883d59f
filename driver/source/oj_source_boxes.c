/* The boxes of -window as a layer in memory, which is then a side like others.
 */
#include "oj_source.h"

#include "../../flatten/base/oj_array.h"

#include <stdio.h>

static OGRGeometryH make_box(const double *box)
{
    double x0 = box[0], y0 = box[1], x1 = box[2], y1 = box[3];
    OGRGeometryH line, polygon;
    if (x0 >= x1 && y0 >= y1)
    {
        OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
        OGR_G_SetPoint_2D(point, 0, x0, y0);
        return point;
    }
    if (x0 >= x1 || y0 >= y1)
    {
        line = OGR_G_CreateGeometry(wkbLineString);
        OGR_G_AddPoint_2D(line, x0, y0);
        OGR_G_AddPoint_2D(line, x1, y1);
        return line;
    }
    line = OGR_G_CreateGeometry(wkbLinearRing);
    OGR_G_AddPoint_2D(line, x0, y0);
    OGR_G_AddPoint_2D(line, x1, y0);
    OGR_G_AddPoint_2D(line, x1, y1);
    OGR_G_AddPoint_2D(line, x0, y1);
    OGR_G_AddPoint_2D(line, x0, y0);
    polygon = OGR_G_CreateGeometry(wkbPolygon);
    OGR_G_AddGeometryDirectly(polygon, line);
    return polygon;
}

static oj_status create_boxes(struct oj_source *s, const double *boxes,
                              int64_t n, struct oj_error *err)
{
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 11, 0)
    GDALDriverH driver = GDALGetDriverByName("MEM");
#else
    GDALDriverH driver = GDALGetDriverByName("Memory");
#endif
    if (driver != NULL)
        s->dataset = GDALCreate(driver, "", 0, 0, 0, GDT_Unknown, NULL);
    if (s->dataset != NULL)
        s->layer = GDALDatasetCreateLayer(s->dataset, "window", NULL,
                                          wkbUnknown, NULL);
    if (s->layer == NULL)
        return oj_fail(err, OJ_ERR_INTERNAL,
                       "GDAL cannot hold a layer in memory");
    for (int64_t i = 0; i < n; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(s->layer));
        OGRErr result;
        OGR_F_SetGeometryDirectly(feature, make_box(&boxes[4 * i]));
        OGR_F_SetFID(feature, i + 1);
        result = OGR_L_CreateFeature(s->layer, feature);
        OGR_F_Destroy(feature);
        if (result != OGRERR_NONE)
            return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a box");
    }
    snprintf(s->name, sizeof s->name, "%s", OGR_L_GetName(s->layer));
    s->type = wkbUnknown;
    OJ_NEW(s->fields, 1, err);
    return OJ_OK;
}

oj_status oj_source_open_boxes(const struct oj_source_options *side,
                               const char *role, const double *boxes, int64_t n,
                               struct oj_source *source, struct oj_error *err)
{
    struct oj_source s = {0};
    oj_status status;
    s.side = side;
    s.role = role;
    status = create_boxes(&s, boxes, n, err);
    if (status == OJ_OK)
        *source = s;
    else
        oj_source_close(&s);
    return status;
}
