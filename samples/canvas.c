#include "canvas.h"

#include <gdal.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FINE 3 /* fine pixels along a pixel's side */

int canvas_open(struct canvas *canvas, int width, int height,
                struct paint background)
{
    const size_t n = (size_t)width * FINE * (size_t)height * FINE;
    canvas->width = width;
    canvas->height = height;
    canvas->rgb = malloc(3 * n);
    if (canvas->rgb == NULL)
        return 1;
    for (size_t i = 0; i < n; i++)
    {
        canvas->rgb[3 * i] = background.r;
        canvas->rgb[3 * i + 1] = background.g;
        canvas->rgb[3 * i + 2] = background.b;
    }
    canvas_clip(canvas, 0, 0, width, height);
    return 0;
}

void canvas_close(struct canvas *canvas)
{
    free(canvas->rgb);
    canvas->rgb = NULL;
}

static int clamp(double v, int top)
{
    return v < 0 ? 0 : v > top ? top : (int)v;
}

void canvas_clip(struct canvas *canvas, double x0, double y0, double x1,
                 double y1)
{
    canvas->x0 = clamp(x0 * FINE, canvas->width * FINE);
    canvas->y0 = clamp(y0 * FINE, canvas->height * FINE);
    canvas->x1 = clamp(x1 * FINE, canvas->width * FINE);
    canvas->y1 = clamp(y1 * FINE, canvas->height * FINE);
}

struct paint paint_of(unsigned rgb)
{
    const struct paint paint = {(uint8_t)(rgb >> 16), (uint8_t)(rgb >> 8),
                                (uint8_t)rgb, 1};
    return paint;
}

static uint8_t mix(uint8_t a, uint8_t b, double t)
{
    return (uint8_t)(a + (b - a) * t + 0.5);
}

struct paint paint_mix(struct paint a, struct paint b, double t)
{
    const struct paint paint = {mix(a.r, b.r, t), mix(a.g, b.g, t),
                                mix(a.b, b.b, t), 1};
    return paint;
}

/* Fine pixels x0 .. x1 of fine row y, which is inside the clip box. */
static void span(struct canvas *canvas, int y, int x0, int x1,
                 struct paint paint)
{
    uint8_t *p;
    if (x0 < canvas->x0)
        x0 = canvas->x0;
    if (x1 > canvas->x1)
        x1 = canvas->x1;
    p = canvas->rgb + 3 * ((size_t)y * (size_t)(canvas->width * FINE) +
                           (size_t)(x0 < x1 ? x0 : x1));
    for (int x = x0; x < x1; x++, p += 3)
    {
        p[0] = mix(p[0], paint.r, paint.alpha);
        p[1] = mix(p[1], paint.g, paint.alpha);
        p[2] = mix(p[2], paint.b, paint.alpha);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fine pixels whose centre is at or right of x. */
static int first_pixel(double x)
{
    return x < -1e6 ? -1000000 : x > 1e6 ? 1000000 : (int)ceil(x - 0.5);
}

void canvas_fill(struct canvas *canvas, const double *x, const double *y,
                 const int *end, int n_rings, struct paint paint)
{
    const int n = n_rings > 0 ? end[n_rings - 1] : 0;
    double low = 1e9, high = -1e9;
    double *crossings = malloc(((size_t)n + 1) * sizeof *crossings);
    if (crossings == NULL)
        return;
    for (int i = 0; i < n; i++)
    {
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
    }
    for (int row = first_pixel(low * FINE) > canvas->y0
                       ? first_pixel(low * FINE)
                       : canvas->y0;
         row < canvas->y1 && row + 0.5 < high * FINE; row++)
    {
        const double cy = (row + 0.5) / FINE;
        size_t n_crossings = 0;
        for (int r = 0, first = 0; r < n_rings; first = end[r], r++)
            for (int i = first; i < end[r]; i++)
            {
                const int j = i + 1 < end[r] ? i + 1 : first;
                if ((y[i] > cy) != (y[j] > cy))
                    crossings[n_crossings++] =
                        x[i] + (cy - y[i]) / (y[j] - y[i]) * (x[j] - x[i]);
            }
        qsort(crossings, n_crossings, sizeof *crossings, compare_doubles);
        for (size_t i = 0; i + 1 < n_crossings; i += 2)
            span(canvas, row, first_pixel(crossings[i] * FINE),
                 first_pixel(crossings[i + 1] * FINE), paint);
    }
    free(crossings);
}

void canvas_rectangle(struct canvas *canvas, double x0, double y0, double x1,
                      double y1, struct paint paint)
{
    const double x[4] = {x0, x1, x1, x0}, y[4] = {y0, y0, y1, y1};
    const int end[1] = {4};
    canvas_fill(canvas, x, y, end, 1, paint);
}

void canvas_line(struct canvas *canvas, double x0, double y0, double x1,
                 double y1, double width, struct paint paint)
{
    const double ax = x0 * FINE, ay = y0 * FINE;
    const double dx = x1 * FINE - ax, dy = y1 * FINE - ay;
    const double length2 = dx * dx + dy * dy;
    const double r = width * FINE / 2;
    const double low = ay < ay + dy ? ay : ay + dy;
    const double high = ay < ay + dy ? ay + dy : ay;
    const double left = ax < ax + dx ? ax : ax + dx;
    const double right = ax < ax + dx ? ax + dx : ax;
    if (right + r < canvas->x0 || left - r > canvas->x1 ||
        high + r < canvas->y0 || low - r > canvas->y1)
        return;
    for (int row = first_pixel(low - r) > canvas->y0 ? first_pixel(low - r)
                                                     : canvas->y0;
         row < canvas->y1 && row + 0.5 < high + r; row++)
    {
        int first = -1, last = -1;
        for (int col = first_pixel(left - r) > canvas->x0
                           ? first_pixel(left - r)
                           : canvas->x0;
             col < canvas->x1 && col + 0.5 < right + r; col++)
        {
            const double px = col + 0.5 - ax, py = row + 0.5 - ay;
            double t = length2 > 0 ? (px * dx + py * dy) / length2 : 0;
            double ex, ey;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            ex = px - t * dx;
            ey = py - t * dy;
            if (ex * ex + ey * ey <= r * r)
            {
                if (first < 0)
                    first = col;
                last = col;
            }
            else if (first >= 0)
                break; /* a capsule is convex: one span a row */
        }
        if (first >= 0)
            span(canvas, row, first, last + 1, paint);
    }
}

void canvas_disc(struct canvas *canvas, double x, double y, double radius,
                 struct paint paint)
{
    canvas_line(canvas, x, y, x, y, 2 * radius, paint);
}

int canvas_write_png(const struct canvas *canvas, const char *path)
{
    const int w = canvas->width, h = canvas->height;
    GDALDriverH memory = GDALGetDriverByName("MEM");
    GDALDriverH png = GDALGetDriverByName("PNG");
    GDALDatasetH picture, file;
    uint8_t *row = malloc(3 * (size_t)w);
    int failed = 0;
    picture =
        memory == NULL ? NULL : GDALCreate(memory, "", w, h, 3, GDT_Byte, NULL);
    if (png == NULL || picture == NULL || row == NULL)
    {
        if (picture != NULL)
            GDALClose(picture);
        free(row);
        return 1;
    }
    for (int y = 0; y < h && !failed; y++)
    {
        for (int x = 0; x < w; x++)
            for (int band = 0; band < 3; band++)
            {
                unsigned sum = 0;
                for (int i = 0; i < FINE; i++)
                    for (int j = 0; j < FINE; j++)
                        sum += canvas->rgb[3 * ((size_t)(y * FINE + i) *
                                                    (size_t)(w * FINE) +
                                                (size_t)(x * FINE + j)) +
                                           (size_t)band];
                row[3 * x + band] =
                    (uint8_t)((sum + FINE * FINE / 2) / (FINE * FINE));
            }
        failed = GDALDatasetRasterIO(picture, GF_Write, 0, y, w, 1, row, w, 1,
                                     GDT_Byte, 3, NULL, 3, 3 * w, 1) != CE_None;
    }
    free(row);
    file = failed ? NULL
                  : GDALCreateCopy(png, path, picture, FALSE, NULL, NULL, NULL);
    GDALClose(picture);
    if (file == NULL)
        return 1;
    GDALClose(file);
    return 0;
}
