/** Layers made in memory, for tests of joins. Include once, in a test program.
 */
#ifndef REFERENCES_H
#define REFERENCES_H

#include "../../algs/api/engine/oj_join.h"
#include "../../algs/foundations/relation/oj_index.h"
#include "assertions.h"
#include "owned.h"

#include <math.h>
#include <string.h>

/* --- layers ----------------------------------------------------------------
 */

static struct oj_error error;

static inline void must(oj_status status)
{
    if (status != OJ_OK)
        ck_abort_msg("%s: %s", oj_status_name(status), error.message);
}

static inline void add_part(struct oj_flat_buf *buf, enum oj_part_kind kind)
{
    must(oj_flat_buf_begin_part(buf, kind, &error));
}

static inline void add_ring(struct oj_flat_buf *buf, int64_t n,
                            const double *xy)
{
    double *x, *y;
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n, &x, &y, &error));
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = xy[2 * i];
        y[i] = xy[2 * i + 1];
    }
}

static inline void begin(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_begin_feature(buf, buf->n_features, &error));
}

static inline void end(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_end_feature(buf, &error));
}

/** Adds a feature of one part with one ring. */
static inline void add_simple(struct oj_flat_buf *buf, enum oj_part_kind kind,
                              int64_t n, const double *xy)
{
    begin(buf);
    add_part(buf, kind);
    add_ring(buf, n, xy);
    end(buf);
}

/** Adds a ring of n edges around (x, y). Its vertices lie alternately on two
 * circles, with the radii even and odd. */
static inline void add_round_ring(struct oj_flat_buf *buf, int64_t n, double x,
                                  double y, double even, double odd)
{
    double *to_x, *to_y;
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n + 1, &to_x, &to_y, &error));
    for (int64_t i = 0; i <= n; i++)
    {
        double angle = 6.283185307179586 * (double)(i % n) / (double)n;
        double radius = i % n % 2 ? odd : even;
        to_x[i] = x + radius * cos(angle);
        to_y[i] = y + radius * sin(angle);
    }
}

/** Adds a polygon of this ring. */
static inline void add_disc(struct oj_flat_buf *buf, int64_t n, double x,
                            double y, double even, double odd)
{
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_round_ring(buf, n, x, y, even, odd);
    end(buf);
}

static inline void add_square(struct oj_flat_buf *buf, double x0, double y0,
                              double x1, double y1)
{
    double xy[] = {x0, y0, x1, y0, x1, y1, x0, y1, x0, y0};
    add_simple(buf, OJ_PART_POLYGON, 5, xy);
}

static inline void add_point(struct oj_flat_buf *buf, double x, double y)
{
    must(oj_flat_buf_add_point(buf, buf->n_features, x, y, &error));
}

/** Adds n features without geometry, for joins by other columns. */
static inline void add_features_without_geometry(struct oj_flat_buf *buf,
                                                 int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        must(oj_flat_buf_add_null(buf, i, &error));
}

static inline void add_line(struct oj_flat_buf *buf, double ax, double ay,
                            double bx, double by)
{
    double xy[] = {ax, ay, bx, by};
    add_simple(buf, OJ_PART_LINE, 2, xy);
}

#endif
