/* draw_zones: what -agg has found, zone by zone.
 *
 *   draw_zones OUT.png TOTALS LOTS LAND
 *
 * TOTALS is what ogrjoin wrote with -agg "count, mean(fare)": zones with count
 * and mean_fare. A zone is the darker the more pickups it has per acre; the two
 * numbers stand on it.
 */
#include "canvas.h"
#include "map_shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH 1000
#define HEIGHT 1000
#define MARGIN 30

#define WATER 0xBFD9E4
#define SHORE 0x93B7C6
#define PAPER 0xFBFAF6
#define INK 0x26303A
#define FAINT 0x6F7A83
#define FT2_PER_ACRE 43560.0

/* Pickups per acre: each class up to its limit, the last without one. */
#define N_CLASSES 6
static const int limits[N_CLASSES - 1] = {25, 50, 100, 200, 400};
static const unsigned colours[N_CLASSES] = {0xFFF3D1, 0xFBD38A, 0xF5A65B,
                                            0xE5743D, 0xBD3C33, 0x7A1430};

static int class_of(double per_acre)
{
    int c = 0;
    while (c < N_CLASSES - 1 && per_acre >= limits[c])
        c++;
    return c;
}

static double number(OGRFeatureH feature, const char *field)
{
    return OGR_F_GetFieldAsDouble(feature, OGR_F_GetFieldIndex(feature, field));
}

static int zone_class(OGRFeatureH feature)
{
    const double area = OGR_G_Area(OGR_F_GetGeometryRef(feature));
    return class_of(number(feature, "count") / (area / FT2_PER_ACRE));
}

static void draw_land(struct canvas *canvas, const struct map_rings *rings,
                      OGRFeatureH feature, void *user)
{
    (void)feature;
    (void)user;
    map_outline(canvas, rings, 6, paint_of(SHORE));
}

static void draw_zone(struct canvas *canvas, const struct map_rings *rings,
                      OGRFeatureH feature, void *user)
{
    (void)user;
    canvas_fill(canvas, rings->x, rings->y, rings->end, rings->n,
                paint_of(colours[zone_class(feature)]));
}

static void draw_lot(struct canvas *canvas, const struct map_rings *rings,
                     OGRFeatureH feature, void *user)
{
    struct paint paint = paint_of(INK);
    (void)feature;
    (void)user;
    paint.alpha = 0.10;
    map_outline(canvas, rings, 0.4, paint);
}

static void draw_border(struct canvas *canvas, const struct map_rings *rings,
                        OGRFeatureH feature, void *user)
{
    (void)feature;
    (void)user;
    map_outline(canvas, rings, 2, paint_of(PAPER));
}

static void centred(struct canvas *canvas, double x, double y, double size,
                    double weight, struct paint paint, const char *text)
{
    canvas_text(canvas, x - canvas_text_width(size, text) / 2, y, size, weight,
                paint, text);
}

static void draw_numbers(struct canvas *canvas, const struct map_rings *rings,
                         OGRFeatureH feature, void *user)
{
    const struct map_view *view = user;
    OGRGeometryH centre = OGR_G_CreateGeometry(wkbPoint);
    const struct paint paint = paint_of(zone_class(feature) > 2 ? PAPER : INK);
    char text[32];
    (void)rings;
    if (OGR_G_Centroid(OGR_F_GetGeometryRef(feature), centre) == OGRERR_NONE)
    {
        const double x = map_px(view, OGR_G_GetX(centre, 0));
        const double y = map_py(view, OGR_G_GetY(centre, 0));
        snprintf(text, sizeof text, "%.0f", number(feature, "count"));
        centred(canvas, x, y - 1, 10, 1.4, paint, text);
        snprintf(text, sizeof text, "%.2f", number(feature, "mean_fare"));
        centred(canvas, x, y + 15, 8.5, 1, paint, text);
    }
    OGR_G_DestroyGeometry(centre);
}

static void draw_legend(struct canvas *canvas, double x, double y)
{
    /* Of what the letters drawn here have: no quotes. */
    static const char *const notes[2] = {"ogrjoin -agg count,mean(fare)",
                                         "Generated city, EPSG:2263"};
    char text[40];
    canvas_text(canvas, x, y, 19, 1.4, paint_of(INK), "Taxi pickups by zone");
    canvas_text(canvas, x, y + 30, 10.5, 1, paint_of(INK),
                "Their number and mean fare in dollars");
    canvas_text(canvas, x, y + 50, 10.5, 1, paint_of(INK),
                "Colour: pickups per acre");
    y += 70;
    for (int c = 0; c < N_CLASSES; c++, y += 25)
    {
        canvas_rectangle(canvas, x, y, x + 34, y + 19, paint_of(colours[c]));
        if (c == 0)
            snprintf(text, sizeof text, "under %d", limits[0]);
        else if (c == N_CLASSES - 1)
            snprintf(text, sizeof text, "%d and more", limits[c - 1]);
        else
            snprintf(text, sizeof text, "%d to %d", limits[c - 1], limits[c]);
        canvas_text(canvas, x + 46, y + 15, 10.5, 1, paint_of(INK), text);
    }
    for (int i = 0; i < 2; i++)
        canvas_text(canvas, WIDTH - MARGIN - canvas_text_width(9.5, notes[i]),
                    HEIGHT - 42 + 20 * i, 9.5, 1, paint_of(FAINT), notes[i]);
}

/* The whole layer, with a margin. */
static int place_view(const char *path, struct map_view *view)
{
    GDALDatasetH dataset;
    OGRLayerH layer = map_open(path, &dataset);
    OGREnvelope box;
    int failed = layer == NULL;
    if (!failed)
    {
        OGRFeatureDefnH fields = OGR_L_GetLayerDefn(layer);
        failed = OGR_FD_GetFieldIndex(fields, "count") < 0 ||
                 OGR_FD_GetFieldIndex(fields, "mean_fare") < 0 ||
                 OGR_L_GetExtent(layer, &box, TRUE) != OGRERR_NONE;
    }
    if (dataset != NULL)
        GDALClose(dataset);
    if (failed)
        return 1;
    view->width = WIDTH;
    view->height = HEIGHT;
    view->feet = fmax((box.MaxX - box.MinX) / (WIDTH - 2 * MARGIN),
                      (box.MaxY - box.MinY) / (HEIGHT - 2 * MARGIN));
    view->x0 = (box.MinX + box.MaxX - WIDTH * view->feet) / 2;
    view->y1 = (box.MinY + box.MaxY + HEIGHT * view->feet) / 2;
    return 0;
}

int main(int argc, char **argv)
{
    struct canvas canvas;
    struct map_view view;
    int failed;
    if (argc != 5)
    {
        fprintf(stderr, "usage: draw_zones OUT.png TOTALS LOTS LAND\n");
        return 1;
    }
    GDALAllRegister();
    if (place_view(argv[2], &view) != 0 ||
        canvas_open(&canvas, WIDTH, HEIGHT, paint_of(WATER)) != 0)
    {
        fprintf(stderr, "draw_zones: no zones with count and mean_fare in %s\n",
                argv[2]);
        return 1;
    }
    failed = map_each_shape(&canvas, argv[4], &view, draw_land, NULL) ||
             map_each_shape(&canvas, argv[2], &view, draw_zone, NULL) ||
             map_each_shape(&canvas, argv[3], &view, draw_lot, NULL) ||
             map_each_shape(&canvas, argv[2], &view, draw_border, NULL) ||
             map_each_shape(&canvas, argv[2], &view, draw_numbers, &view);
    if (!failed)
    {
        draw_legend(&canvas, MARGIN, 52);
        failed = canvas_write_png(&canvas, argv[1]);
    }
    canvas_close(&canvas);
    if (failed)
        fprintf(stderr, "draw_zones: %s was not written\n", argv[1]);
    return failed;
}
