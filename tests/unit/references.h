/** Layers built in place, for tests of joins. Include once, in a test program.
 */
#ifndef REFERENCES_H
#define REFERENCES_H

#include "../../algs/engine/oj_join.h"
#include "../../algs/relation/oj_engine.h"
#include "owned.h"

#include <check.h>

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
    must(oj_flat_buf_part(buf, kind, &error));
}

static inline void add_ring(struct oj_flat_buf *buf, int64_t n,
                            const double *xy)
{
    double *x, *y;
    must(oj_flat_buf_ring(buf, &error));
    must(oj_flat_buf_vertices(buf, n, &x, &y, &error));
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = xy[2 * i];
        y[i] = xy[2 * i + 1];
    }
}

static inline void begin(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_begin(buf, buf->n_features, &error));
}

static inline void end(struct oj_flat_buf *buf)
{
    must(oj_flat_buf_end(buf, &error));
}

static inline void add_square(struct oj_flat_buf *buf, double x0, double y0,
                              double x1, double y1)
{
    double xy[] = {x0, y0, x1, y0, x1, y1, x0, y1, x0, y0};
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_ring(buf, 5, xy);
    end(buf);
}

static inline void add_point(struct oj_flat_buf *buf, double x, double y)
{
    must(oj_flat_buf_add_point(buf, buf->n_features, x, y, &error));
}

static inline void add_line(struct oj_flat_buf *buf, double ax, double ay,
                            double bx, double by)
{
    double xy[] = {ax, ay, bx, by};
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    add_ring(buf, 2, xy);
    end(buf);
}

#endif
