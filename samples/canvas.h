/** A picture to draw on: filled shapes, lines, discs and text, smooth edges.
 *  Everything is in pixels, y down. Drawn at three times the size and averaged
 *  when it is written. */
#ifndef CANVAS_H
#define CANVAS_H

#include <stdint.h>

struct canvas
{
    int width, height;  /**< pixels of the picture */
    int x0, y0, x1, y1; /**< drawing is cut to this box, in fine pixels */
    uint8_t *rgb;       /**< fine pixels, row by row */
};

struct paint
{
    uint8_t r, g, b;
    double alpha; /**< 0 .. 1 */
};

/** 0, or 1 when out of memory. */
int canvas_open(struct canvas *canvas, int width, int height,
                struct paint background);
void canvas_close(struct canvas *canvas);

/** Limits drawing to a box. */
void canvas_clip(struct canvas *canvas, double x0, double y0, double x1,
                 double y1);

/** 0xRRGGBB, opaque. */
struct paint paint_of(unsigned rgb);

/** t of the way from a to b. */
struct paint paint_mix(struct paint a, struct paint b, double t);

/** Fills rings, even-odd: ring i has vertices end[i - 1] .. end[i]. */
void canvas_fill(struct canvas *canvas, const double *x, const double *y,
                 const int *end, int n_rings, struct paint paint);

void canvas_rectangle(struct canvas *canvas, double x0, double y0, double x1,
                      double y1, struct paint paint);

/** A line with round ends. */
void canvas_line(struct canvas *canvas, double x0, double y0, double x1,
                 double y1, double width, struct paint paint);

void canvas_disc(struct canvas *canvas, double x, double y, double radius,
                 struct paint paint);

/** Text whose baseline starts at (x, y); size is the height of capitals,
 *  weight 1 is normal. Returns the x after it. */
double canvas_text(struct canvas *canvas, double x, double y, double size,
                   double weight, struct paint paint, const char *text);

/** How wide that would be. */
double canvas_text_width(double size, const char *text);

/** Averages and writes a PNG through GDAL. 0, or 1 when that failed. */
int canvas_write_png(const struct canvas *canvas, const char *path);

#endif
