/** Features whose polygon parts overlap, share edges or are apart, and where
 *  points lie in them by a plain look at all around.  Include once, after
 *  references.h. */
#ifndef OVERLAPPING_LAYERS_H
#define OVERLAPPING_LAYERS_H

#include "../../flatten/base/oj_array.h"
#include "kernels/oj_ring.h"
#include "random_numbers.h"
#include "references.h"

#include "exact_truth.h"

static int only_valid; /* 1: each polygon is valid by itself */
static int64_t n_surrounded;

/* --- layers --------------------------------------------------------------- */

/* Adds the parts of a feature as rings in a text: parts are parted by '|',
 * rings by ';', coordinates by blanks; an L begins a line, a P a point. */
static inline void add_text(struct oj_flat_buf *buf, const char *text)
{
    begin(buf);
    for (const char *at = text; *at != '\0';)
    {
        double xy[200];
        int n = 0;
        enum oj_part_kind kind = *at == 'L'   ? OJ_PART_LINE
                                 : *at == 'P' ? OJ_PART_POINT
                                              : OJ_PART_POLYGON;
        at += *at == 'L' || *at == 'P';
        add_part(buf, kind);
        for (;;)
        {
            char *next;
            double v = strtod(at, &next);
            if (next != at)
            {
                ck_assert_int_lt(n, 200);
                xy[n++] = v;
                at = next;
                continue;
            }
            while (*at == ' ')
                at++;
            add_ring(buf, n / 2, xy);
            n = 0;
            if (*at != ';')
                break;
            at++;
        }
        at += *at == '|';
    }
    end(buf);
}

static inline enum oj_location plain_in_part(const struct oj_flat *flat,
                                             int64_t part, double x, double y)
{
    int odd = 0;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        for (int64_t v = flat->vertex_offset[r];
             v + 1 < flat->vertex_offset[r + 1]; v++)
        {
            double ax = flat->x[v] - x, ay = flat->y[v] - y;
            double bx = flat->x[v + 1] - x, by = flat->y[v + 1] - y;
            double cross = ax * by - ay * bx;
            if (cross == 0.0 && ax * bx <= 0.0 && ay * by <= 0.0)
                return OJ_ON_BOUNDARY;
            if ((ay > 0.0) != (by > 0.0))
                odd ^= (cross > 0.0) == (by > ay);
        }
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

static inline enum oj_location
locate_by_parts(const struct oj_flat *flat, int64_t feature, double x, double y)
{
    int n_on = 0;
    enum oj_location at;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        enum oj_location in = OJ_OUTSIDE;
        if (flat->part_kind[p] == OJ_PART_POLYGON)
            in = plain_in_part(flat, p, x, y);
        if (in == OJ_INSIDE)
            return OJ_INSIDE;
        n_on += in == OJ_ON_BOUNDARY;
    }
    if (n_on == 0)
        return OJ_OUTSIDE;
    at = exact_location(flat, feature, x, y);
    n_surrounded += n_on > 1 && at == OJ_INSIDE;
    return at;
}

/* --- random features ------------------------------------------------------ */

static inline void random_ring(struct oj_flat_buf *buf, double x0, double y0,
                               double size)
{
    double xy[20];
    int n = 3 + (only_valid ? 0 : pick(4));
    if (pick(2))
    {
        double x1 = x0 + 1 + pick((int)size), y1 = y0 + 1 + pick((int)size);
        double box[] = {x0, y0, x1, y0, x1, y1, x0, y1, x0, y0};
        add_ring(buf, 5, box);
        return;
    }
    for (int i = 0; i < n; i++)
    {
        xy[2 * i] = x0 + pick((int)size + 1);
        xy[2 * i + 1] = y0 + pick((int)size + 1);
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    if (only_valid &&
        (xy[2] - xy[0]) * (xy[5] - xy[1]) == (xy[4] - xy[0]) * (xy[3] - xy[1]))
    {
        random_ring(buf, x0, y0, size);
        return;
    }
    add_ring(buf, n + 1, xy);
}

/* Two squares or more beside one another, as a TIN or a collected layer has
 * them. */
static inline void add_tiles(struct oj_flat_buf *buf)
{
    double step = 1 + pick(2);
    for (int i = 0; i < 4; i++)
    {
        double x = step * (i % 2), y = step * (i / 2);
        double low[] = {x, y, x + step, y, x, y + step, x, y};
        double high[] = {x + step, y,        x + step, y + step,
                         x,        y + step, x + step, y};
        if (one_in(6))
            continue;
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 4, low);
        add_part(buf, OJ_PART_POLYGON);
        add_ring(buf, 4, high);
    }
}

static inline void add_random(struct oj_flat_buf *buf)
{
    int n = 1 + pick(4);
    begin(buf);
    if (one_in(5))
        add_tiles(buf);
    for (int i = 0; i < n; i++)
    {
        uint64_t state = random_state;
        for (int times = one_in(8) ? 2 : 1; times > 0; times--)
        {
            random_state = state;
            add_part(buf, OJ_PART_POLYGON);
            random_ring(buf, pick(3), pick(3), 1 + pick(2));
            if (!only_valid && one_in(3))
                random_ring(buf, pick(3), pick(3), 1 + pick(2));
        }
    }
    end(buf);
}

static inline void add_grid(struct oj_flat_buf *buf)
{
    for (int i = 0; i < 11; i++)
    {
        for (int j = 0; j < 11; j++)
            must(oj_flat_buf_add_point(buf, buf->n_features, 0.5 * i - 0.5,
                                       0.5 * j - 0.5, &error));
    }
    must(oj_flat_buf_add_null(buf, buf->n_features, &error));
}

static inline void make_layers(struct oj_flat_buf *join,
                               struct oj_flat_buf *input)
{
    int n = 1 + pick(30);
    for (int i = 0; i < n; i++)
        add_random(join);
    add_grid(input);
}

#endif
