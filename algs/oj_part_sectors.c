#include "oj_part_sectors.h"

static int is_lower_half(const struct oj_corner *p, const struct oj_corner *to)
{
    return !(to->y > p->y || (to->y == p->y && to->x > p->x));
}

int oj_compare_directions(const struct oj_corner *p, const struct oj_corner *u,
                          const struct oj_corner *v)
{
    int lower = is_lower_half(p, u) - is_lower_half(p, v);
    return lower != 0 ? lower
                      : -oj_orientation(p->x, p->y, u->x, u->y, v->x, v->y);
}

int oj_is_between_directions(const struct oj_corner *p,
                             const struct oj_corner *a,
                             const struct oj_corner *b,
                             const struct oj_corner *c)
{
    int ab = oj_compare_directions(p, a, b) < 0;
    int bc = oj_compare_directions(p, b, c) < 0;
    int ca = oj_compare_directions(p, c, a) < 0;
    return (ab && bc) || (bc && ca) || (ca && ab);
}

/* The directions in which an edge leaves p, which is on it: up to two. */
static int directions_of(const struct oj_corner *p, const struct oj_corner *a,
                         const struct oj_corner *b, struct oj_corner to[2])
{
    int n = 0;
    if (a->x != p->x || a->y != p->y)
        to[n++] = *a;
    if (b->x != p->x || b->y != p->y)
        to[n++] = *b;
    return n;
}

static void edge_at(const struct oj_flat *flat, int64_t v, struct oj_corner *a,
                    struct oj_corner *b)
{
    *a = (struct oj_corner){flat->x[v], flat->y[v]};
    *b = (struct oj_corner){flat->x[v + 1], flat->y[v + 1]};
}

static int is_on(const struct oj_corner *p, const struct oj_corner *a,
                 const struct oj_corner *b)
{
    return oj_ring_edge(p->x, p->y, a->x, a->y, b->x, b->y) == OJ_ON_BOUNDARY;
}

/* The edges that miss p say it of the first of these directions, and each edge
 * that leaves p between the two changes it. */
int oj_is_inside_after(const struct oj_flat *flat, int64_t part,
                       const struct oj_corner *p, const struct oj_corner *from)
{
    int odd = 0;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        for (int64_t v = flat->vertex_offset[r];
             v + 1 < flat->vertex_offset[r + 1]; v++)
        {
            struct oj_corner a, b, to[2];
            int edge, n;
            edge_at(flat, v, &a, &b);
            edge = oj_ring_edge(p->x, p->y, a.x, a.y, b.x, b.y);
            if (edge != OJ_ON_BOUNDARY)
            {
                odd ^= edge;
                continue;
            }
            n = from != NULL ? directions_of(p, &a, &b, to) : 0;
            for (int i = 0; i < n; i++)
            {
                int is_first = to[i].y == p->y && to[i].x > p->x;
                odd ^= !is_first && oj_compare_directions(p, &to[i], from) <= 0;
            }
        }
    }
    return odd;
}

/* The first direction after that to *from (NULL: the very first) in which an
 * edge of the part leaves p, if it comes before *next. */
static void find_next(const struct oj_flat *flat, int64_t part,
                      const struct oj_corner *p, const struct oj_corner *from,
                      struct oj_corner *next, int *is_found)
{
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        for (int64_t v = flat->vertex_offset[r];
             v + 1 < flat->vertex_offset[r + 1]; v++)
        {
            struct oj_corner a, b, to[2];
            int n;
            edge_at(flat, v, &a, &b);
            if (!is_on(p, &a, &b))
                continue;
            n = directions_of(p, &a, &b, to);
            for (int i = 0; i < n; i++)
            {
                if (from != NULL && oj_compare_directions(p, &to[i], from) <= 0)
                    continue;
                if (!*is_found || oj_compare_directions(p, &to[i], next) < 0)
                    *next = to[i];
                *is_found = 1;
            }
        }
    }
}

/* Parts by number, or those from first on. */
struct parts
{
    const struct oj_flat *flat;
    const int64_t *part;
    int64_t first, n;
};

static int64_t part_at(const struct parts *parts, int64_t i)
{
    return parts->part != NULL ? parts->part[i] : parts->first + i;
}

static int is_polygon(const struct parts *parts, int64_t i)
{
    return parts->flat->part_kind[part_at(parts, i)] == OJ_PART_POLYGON;
}

static int is_covered_after(const struct parts *parts,
                            const struct oj_corner *p,
                            const struct oj_corner *from)
{
    for (int64_t i = 0; i < parts->n; i++)
    {
        if (is_polygon(parts, i) &&
            oj_is_inside_after(parts->flat, part_at(parts, i), p, from))
            return 1;
    }
    return 0;
}

int oj_parts_surround(const struct oj_flat *flat, const int64_t *part,
                      int64_t first, int64_t n, const struct oj_corner *p)
{
    const struct parts parts = {flat, part, first, n};
    struct oj_corner from, next = {0.0, 0.0};
    int has_from = 0, is_found, is_covered = is_covered_after(&parts, p, NULL);
    while (is_covered)
    {
        is_found = 0;
        for (int64_t i = 0; i < n; i++)
        {
            if (is_polygon(&parts, i))
                find_next(flat, part_at(&parts, i), p, has_from ? &from : NULL,
                          &next, &is_found);
        }
        if (!is_found)
            return 1;
        is_covered = is_covered_after(&parts, p, &next);
        from = next;
        has_from = 1;
    }
    return 0;
}

static enum oj_location locate_in_part(const struct oj_flat *flat, int64_t part,
                                       double x, double y)
{
    int odd = 0;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        int64_t first = flat->vertex_offset[r];
        enum oj_location in =
            oj_ring_locate(x, y, flat->x + first, flat->y + first,
                           flat->vertex_offset[r + 1] - first);
        if (in == OJ_ON_BOUNDARY)
            return in;
        odd ^= in == OJ_INSIDE;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/* Parts on whose rings a point lies, as many as are remembered by number. */
#define FEW_PARTS 32

enum oj_location oj_overlapping_locate(const struct oj_flat *flat,
                                       int64_t feature, double x, double y)
{
    int64_t part[FEW_PARTS], n = 0, first = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1];
    const struct oj_corner p = {x, y};
    int is_inside;
    for (int64_t i = first; i < end; i++)
    {
        enum oj_location in = OJ_OUTSIDE;
        if (flat->part_kind[i] == OJ_PART_POLYGON)
            in = locate_in_part(flat, i, x, y);
        if (in == OJ_INSIDE)
            return OJ_INSIDE;
        if (in == OJ_ON_BOUNDARY && n < FEW_PARTS)
            part[n] = i;
        n += in == OJ_ON_BOUNDARY;
    }
    if (n < 2)
        return n == 1 ? OJ_ON_BOUNDARY : OJ_OUTSIDE;
    if (n > FEW_PARTS)
        is_inside = oj_parts_surround(flat, NULL, first, end - first, &p);
    else
        is_inside = oj_parts_surround(flat, part, 0, n, &p);
    return is_inside ? OJ_INSIDE : OJ_ON_BOUNDARY;
}
