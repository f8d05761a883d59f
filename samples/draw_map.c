/* draw_map: a picture of the sample city and of what the join found.
 *
 *   draw_map OUT.png JOINED LOTS STREETS LAND [WIDTH_FT]
 *
 * JOINED is what ogrjoin wrote: pickups with use_code, hour and join_distance.
 * The map shows a window of WIDTH_FT (12,600) around the middle of all pickups;
 * the panel beside it counts all of them.
 */
#include "canvas.h"
#include "map_panel.h"
#include "map_shapes.h"

#include <gdal.h>
#include <ogr_api.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1600
#define HEIGHT 1200
#define MAP_WIDTH 1170 /* the panel has the rest */

#define WATER 0xBFD9E4
#define LAND 0xFBFAF6
#define SHORE 0x93B7C6
#define LOT_LINE 0x5F6470

/* A pickup as the map needs it. */
struct dot
{
    float x, y; /* feet from the first pickup */
    int8_t use; /* -1: no lot near */
};

struct dots
{
    int64_t n, capacity;
    struct dot *dots;
    double x0, y0;
};

static int add_dot(struct dots *dots, double x, double y, int use)
{
    if (dots->n == dots->capacity)
    {
        const int64_t n = 2 * dots->capacity + 4096;
        struct dot *grown = realloc(dots->dots, (size_t)n * sizeof *grown);
        if (grown == NULL)
            return 1;
        dots->dots = grown;
        dots->capacity = n;
    }
    if (dots->n == 0)
    {
        dots->x0 = x;
        dots->y0 = y;
    }
    dots->dots[dots->n++] =
        (struct dot){(float)(x - dots->x0), (float)(y - dots->y0), (int8_t)use};
    return 0;
}

/* Reads the joined pickups into dots and counts. */
static int read_pickups(const char *path, struct dots *dots,
                        struct panel_counts *counts)
{
    GDALDatasetH dataset;
    OGRLayerH layer = map_open(path, &dataset);
    OGRFeatureDefnH fields;
    OGRFeatureH feature;
    int use_field, hour_field, distance_field, failed = 0;
    if (layer == NULL)
        return 1;
    fields = OGR_L_GetLayerDefn(layer);
    use_field = OGR_FD_GetFieldIndex(fields, "use_code");
    hour_field = OGR_FD_GetFieldIndex(fields, "hour");
    distance_field = OGR_FD_GetFieldIndex(fields, "join_distance");
    if (use_field < 0 || hour_field < 0 || distance_field < 0)
    {
        fprintf(stderr,
                "draw_map: %s has no fields use_code, hour, join_distance\n",
                path);
        GDALClose(dataset);
        return 1;
    }
    while (!failed && (feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        OGRGeometryH point = OGR_F_GetGeometryRef(feature);
        const int hour = OGR_F_GetFieldAsInteger(feature, hour_field);
        int use = -1;
        counts->n_pickups++;
        if (OGR_F_IsFieldSetAndNotNull(feature, distance_field))
        {
            const double d = OGR_F_GetFieldAsDouble(feature, distance_field);
            use = OGR_F_GetFieldAsInteger(feature, use_field) - 1;
            counts->n_matched++;
            counts->n_inside += d == 0;
            counts->sum_distance += d;
        }
        if (use >= 0 && use < CITY_N_USES && hour >= 0 && hour < 24)
        {
            counts->by_use[use]++;
            counts->by_hour[hour][use]++;
        }
        if (point != NULL)
            failed = add_dot(dots, OGR_G_GetX(point, 0), OGR_G_GetY(point, 0),
                             use < CITY_N_USES ? use : -1);
        OGR_F_Destroy(feature);
    }
    GDALClose(dataset);
    return failed || dots->n == 0;
}

static void draw_land(struct canvas *canvas, const struct map_rings *rings,
                      OGRFeatureH feature, void *user)
{
    (void)feature;
    (void)user;
    map_outline(canvas, rings, 9,
                paint_mix(paint_of(WATER), paint_of(SHORE), 0.5));
    map_outline(canvas, rings, 4, paint_of(SHORE));
    canvas_fill(canvas, rings->x, rings->y, rings->end, rings->n,
                paint_of(LAND));
}

static void draw_lot(struct canvas *canvas, const struct map_rings *rings,
                     OGRFeatureH feature, void *user)
{
    const int use = OGR_F_GetFieldAsInteger(
                        feature, OGR_F_GetFieldIndex(feature, "use_code")) -
                    1;
    const double tint = use == CITY_PARK ? 0.38 : 0.26;
    struct paint paint;
    (void)user;
    if (use < 0 || use >= CITY_N_USES)
        return;
    paint = paint_mix(paint_of(LAND), panel_paint((enum city_use)use), tint);
    canvas_fill(canvas, rings->x, rings->y, rings->end, rings->n, paint);
    if (use == CITY_PARK && rings->n > 1) /* lakes */
        for (int r = 1; r < rings->n; r++)
        {
            const int first = rings->end[r - 1];
            const int n = rings->end[r] - first;
            canvas_fill(canvas, rings->x + first, rings->y + first, &n, 1,
                        paint_of(WATER));
        }
    map_outline(canvas, rings, 0.4, paint_mix(paint, paint_of(LOT_LINE), 0.38));
}

static void draw_street(struct canvas *canvas, const struct map_rings *rings,
                        OGRFeatureH feature, void *user)
{
    (void)feature;
    (void)user;
    map_outline(canvas, rings, 0.8,
                paint_mix(paint_of(LAND), paint_of(0x8A8778), 0.35));
}

static void draw_dots(struct canvas *canvas, const struct dots *dots,
                      const struct map_view *view)
{
    for (int64_t i = 0; i < dots->n; i++)
    {
        const struct dot *dot = &dots->dots[i];
        const double x = map_px(view, dots->x0 + (double)dot->x);
        const double y = map_py(view, dots->y0 + (double)dot->y);
        struct paint paint = dot->use >= 0
                                 ? panel_paint((enum city_use)dot->use)
                                 : panel_unmatched_paint();
        paint.alpha = dot->use >= 0 ? 0.38 : 0.8;
        if (x > -3 && x < MAP_WIDTH + 3 && y > -3 && y < HEIGHT + 3)
            canvas_disc(canvas, x, y, dot->use >= 0 ? 0.8 : 1.2, paint);
    }
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The window: WIDTH_FT wide, its middle at the median of the pickups. */
static int place_view(const struct dots *dots, double width_ft,
                      struct map_view *view)
{
    float *sorted = malloc((size_t)dots->n * sizeof *sorted);
    if (sorted == NULL)
        return 1;
    view->width = MAP_WIDTH;
    view->height = HEIGHT;
    view->feet = width_ft / MAP_WIDTH;
    for (int64_t i = 0; i < dots->n; i++)
        sorted[i] = dots->dots[i].x;
    qsort(sorted, (size_t)dots->n, sizeof *sorted, compare_floats);
    view->x0 = dots->x0 + (double)sorted[dots->n / 2] - width_ft / 2;
    for (int64_t i = 0; i < dots->n; i++)
        sorted[i] = dots->dots[i].y;
    qsort(sorted, (size_t)dots->n, sizeof *sorted, compare_floats);
    view->y1 = dots->y0 + (double)sorted[dots->n / 2] + HEIGHT * view->feet / 2;
    free(sorted);
    return 0;
}

static int64_t count_rows(const char *path)
{
    GDALDatasetH dataset;
    OGRLayerH layer = map_open(path, &dataset);
    const int64_t n = layer == NULL ? 0 : OGR_L_GetFeatureCount(layer, TRUE);
    if (dataset != NULL)
        GDALClose(dataset);
    return n;
}

int main(int argc, char **argv)
{
    struct canvas canvas;
    struct dots dots = {0};
    struct map_view view;
    struct panel_counts counts;
    const struct panel_place place = {MAP_WIDTH, 0, WIDTH, HEIGHT};
    int failed;
    if (argc < 6)
    {
        fprintf(stderr, "usage: draw_map OUT.png JOINED LOTS STREETS LAND "
                        "[WIDTH_FT]\n");
        return 1;
    }
    GDALAllRegister();
    memset(&counts, 0, sizeof counts);
    if (read_pickups(argv[2], &dots, &counts) != 0 ||
        place_view(&dots, argc > 6 ? atof(argv[6]) : 12600, &view) != 0 ||
        canvas_open(&canvas, WIDTH, HEIGHT, paint_of(WATER)) != 0)
    {
        fprintf(stderr, "draw_map: nothing to draw in %s\n", argv[2]);
        free(dots.dots);
        return 1;
    }
    counts.n_lots = count_rows(argv[3]);
    canvas_clip(&canvas, 0, 0, MAP_WIDTH, HEIGHT);
    failed = map_each_shape(&canvas, argv[5], &view, draw_land, NULL) ||
             map_each_shape(&canvas, argv[3], &view, draw_lot, NULL) ||
             map_each_shape(&canvas, argv[4], &view, draw_street, NULL);
    if (!failed)
    {
        draw_dots(&canvas, &dots, &view);
        panel_scale_bar(&canvas, 36, HEIGHT - 40, view.feet);
        canvas_clip(&canvas, 0, 0, WIDTH, HEIGHT);
        panel_draw(&canvas, &place, &counts);
        failed = canvas_write_png(&canvas, argv[1]);
    }
    canvas_close(&canvas);
    free(dots.dots);
    if (failed)
        fprintf(stderr, "draw_map: %s was not written\n", argv[1]);
    return failed;
}
