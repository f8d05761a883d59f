#include "map_shapes.h"

#include <gdal.h>

#include <stdlib.h>

double map_px(const struct map_view *view, double x)
{
    return (x - view->x0) / view->feet;
}

double map_py(const struct map_view *view, double y)
{
    return (view->y1 - y) / view->feet;
}

OGRLayerH map_open(const char *path, GDALDatasetH *dataset)
{
    *dataset = GDALOpenEx(path, GDAL_OF_VECTOR | GDAL_OF_VERBOSE_ERROR, NULL,
                          NULL, NULL);
    return *dataset == NULL ? NULL : GDALDatasetGetLayer(*dataset, 0);
}

static int add_rings(struct map_rings *rings, OGRGeometryH geometry,
                     const struct map_view *view)
{
    const int n_below = OGR_G_GetGeometryCount(geometry);
    const int n = OGR_G_GetPointCount(geometry);
    for (int i = 0; i < n_below; i++)
        if (add_rings(rings, OGR_G_GetGeometryRef(geometry, i), view) != 0)
            return 1;
    if (n_below > 0 || n == 0)
        return 0;
    if (rings->n == rings->cap_rings ||
        rings->n_vertices + n > rings->cap_vertices)
    {
        rings->cap_rings = 2 * rings->n + 64;
        rings->cap_vertices = 2 * rings->n_vertices + n + 1024;
        rings->end =
            realloc(rings->end, (size_t)rings->cap_rings * sizeof *rings->end);
        rings->x =
            realloc(rings->x, (size_t)rings->cap_vertices * sizeof *rings->x);
        rings->y =
            realloc(rings->y, (size_t)rings->cap_vertices * sizeof *rings->y);
        if (rings->end == NULL || rings->x == NULL || rings->y == NULL)
            return 1;
    }
    for (int i = 0; i < n; i++)
    {
        rings->x[rings->n_vertices] = map_px(view, OGR_G_GetX(geometry, i));
        rings->y[rings->n_vertices++] = map_py(view, OGR_G_GetY(geometry, i));
    }
    rings->end[rings->n++] = rings->n_vertices;
    return 0;
}

void map_outline(struct canvas *canvas, const struct map_rings *rings,
                 double width, struct paint paint)
{
    for (int r = 0, first = 0; r < rings->n; first = rings->end[r], r++)
        for (int i = first; i + 1 < rings->end[r]; i++)
            canvas_line(canvas, rings->x[i], rings->y[i], rings->x[i + 1],
                        rings->y[i + 1], width, paint);
}

int map_each_shape(struct canvas *canvas, const char *path,
                   const struct map_view *view, map_draw_shape *draw,
                   void *user)
{
    GDALDatasetH dataset;
    OGRLayerH layer = map_open(path, &dataset);
    OGRFeatureH feature;
    struct map_rings rings = {0};
    int failed = 0;
    if (layer == NULL)
        return 1;
    OGR_L_SetSpatialFilterRect(layer, view->x0,
                               view->y1 - view->height * view->feet,
                               view->x0 + view->width * view->feet, view->y1);
    while (!failed && (feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
        rings.n = rings.n_vertices = 0;
        failed = geometry != NULL && add_rings(&rings, geometry, view) != 0;
        if (!failed)
            draw(canvas, &rings, feature, user);
        OGR_F_Destroy(feature);
    }
    free(rings.end);
    free(rings.x);
    free(rings.y);
    GDALClose(dataset);
    return failed;
}
