/** Layers drawn on a canvas, feature by feature. */
#ifndef MAP_SHAPES_H
#define MAP_SHAPES_H

#include "canvas.h"

#include <gdal.h>
#include <ogr_api.h>

/** From feet to pixels. */
struct map_view
{
    double x0, y1;        /**< upper left corner, ft */
    double feet;          /**< a pixel's side */
    double width, height; /**< of the map, pixels */
};

double map_px(const struct map_view *view, double x);
double map_py(const struct map_view *view, double y);

/** The first layer of a file, and its dataset, to be closed by the caller; NULL
 *  for both where it cannot be opened. */
OGRLayerH map_open(const char *path, GDALDatasetH *dataset);

/** All rings, or lines, of a geometry in pixels, for canvas_fill(). */
struct map_rings
{
    int n, n_vertices, cap_rings, cap_vertices;
    int *end;
    double *x, *y;
};

void map_outline(struct canvas *canvas, const struct map_rings *rings,
                 double width, struct paint paint);

typedef void map_draw_shape(struct canvas *canvas,
                            const struct map_rings *rings, OGRFeatureH feature,
                            void *user);

/** Calls draw for each feature of a file that may be seen. 0, or 1 when the
 *  file cannot be read or memory is short. */
int map_each_shape(struct canvas *canvas, const char *path,
                   const struct map_view *view, map_draw_shape *draw,
                   void *user);

#endif
