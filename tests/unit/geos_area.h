/** Finds points for which GEOS's distance uses another definition of the area
 * of a polygon. Include once, after references.h. */
#ifndef GEOS_AREA_H
#define GEOS_AREA_H

#include "../../algs/foundations/kernels/oj_ring.h"
#include "references.h"

/* Returns 1 if the definitions differ for a point in this part. GEOS takes the
 * shell without the first hole that contains the point. That differs from the
 * even-odd rule over all rings if a hole extends beyond its shell or overlaps
 * another hole. */
static inline int is_part_area_ambiguous(const struct oj_flat *flat,
                                         int64_t part, double x, double y)
{
    int odd = 0, is_on = 0, of_geos = 0, is_open = 1;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        int64_t v = flat->vertex_offset[r];
        enum oj_location at = oj_ring_locate(x, y, flat->x + v, flat->y + v,
                                             flat->vertex_offset[r + 1] - v);
        int is_shell = r == flat->ring_offset[part];
        is_on |= at == OJ_ON_BOUNDARY;
        odd ^= at == OJ_INSIDE;
        if (is_shell || (is_open && at != OJ_OUTSIDE))
            of_geos = is_shell ? at != OJ_OUTSIDE : at == OJ_ON_BOUNDARY;
        is_open &= is_shell ? at == OJ_INSIDE : at == OJ_OUTSIDE;
    }
    return (odd | is_on) != of_geos;
}

static inline int point_is_disputed(const struct oj_flat *join, double x,
                                    double y)
{
    if (oj_flat_is_points(join))
        return 0;
    for (int64_t part = 0; part < join->n_parts; part++)
    {
        if (join->part_kind[part] == OJ_PART_POLYGON &&
            is_part_area_ambiguous(join, part, x, y))
            return 1;
    }
    return 0;
}

static inline int row_is_disputed(const struct oj_flat *join,
                                  const struct oj_flat *input, int64_t row)
{
    int64_t first, end;
    oj_flat_vertex_range(input, row, &first, &end);
    for (int64_t v = first; v < end; v++)
    {
        if (point_is_disputed(join, input->x[v], input->y[v]))
            return 1;
    }
    return 0;
}

/* Copies the input; rows with a point for which GEOS's definition of a
 * polygon's area differs from ours become rows without geometry. Returns their
 * number. */
static inline int64_t copy_undisputed(const struct oj_flat *join,
                                      const struct oj_flat *input,
                                      struct oj_flat_buf *out)
{
    int64_t n = 0;
    for (int64_t row = 0; row < input->n_features; row++)
    {
        int64_t first, behind;
        int is_disputed;
        oj_flat_vertex_range(input, row, &first, &behind);
        is_disputed = row_is_disputed(join, input, row);
        n += is_disputed;
        if (is_disputed || first == behind)
        {
            must(oj_flat_buf_add_null(out, row, &error));
            continue;
        }
        if (oj_flat_is_points(input))
        {
            add_point(out, input->x[row], input->y[row]);
            continue;
        }
        begin(out);
        for (int64_t p = input->part_offset[row];
             p < input->part_offset[row + 1]; p++)
            must(oj_flat_buf_copy_part(out, input, p, &error));
        end(out);
    }
    return n;
}

#endif
