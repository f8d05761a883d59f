#include "oj_flatgeobuf_geometry.h"

/* Collections inside collections deeper than this are left to GDAL. */
#define MOST_DEPTH 32

struct wkb_writer
{
    struct oj_flatbuffer *feature;
    int has_z, has_m;
    uint8_t *to, *end;
};

/* The vertices of one geometry. */
struct vertices
{
    const uint8_t *xy, *z, *m, *ends;
    int64_t n, n_ends;
};

static int put_u32(struct wkb_writer *w, int64_t value)
{
    if (w->end - w->to < 4)
        return 0;
    for (int i = 0; i < 4; i++)
        w->to[i] = (uint8_t)(value >> (8 * i));
    w->to += 4;
    return 1;
}

static int put_head(struct wkb_writer *w, int type)
{
    if (w->to == w->end)
        return 0;
    *w->to++ = 1;
    return put_u32(w, type + 1000 * w->has_z + 2000 * w->has_m);
}

static int get_vertices(const struct wkb_writer *w,
                        const struct oj_flat_table *table, struct vertices *v)
{
    int64_t n_values, n_z = 0, n_m = 0;
    v->xy = oj_flatbuffer_vector(w->feature, table, OJ_FGB_XY, 8, &n_values);
    v->n = n_values / 2;
    if (v->n == 0)
        return 0;
    if (w->has_z)
        v->z = oj_flatbuffer_vector(w->feature, table, OJ_FGB_Z, 8, &n_z);
    if (w->has_m)
        v->m = oj_flatbuffer_vector(w->feature, table, OJ_FGB_M, 8, &n_m);
    if ((w->has_z && n_z < v->n) || (w->has_m && n_m < v->n))
        return 0;
    v->ends =
        oj_flatbuffer_vector(w->feature, table, OJ_FGB_ENDS, 4, &v->n_ends);
    return !w->feature->is_broken;
}

static int put_vertices(struct wkb_writer *w, const struct vertices *v,
                        int64_t first, int64_t end)
{
    int64_t size = 8 * (2 + w->has_z + w->has_m);
    if ((w->end - w->to) / size < end - first)
        return 0;
    if (size == 16)
    {
        memcpy(w->to, v->xy + 16 * first, (size_t)(16 * (end - first)));
        w->to += 16 * (end - first);
        return 1;
    }
    for (int64_t i = first; i < end; i++)
    {
        memcpy(w->to, v->xy + 16 * i, 16);
        w->to += 16;
        if (w->has_z)
        {
            memcpy(w->to, v->z + 8 * i, 8);
            w->to += 8;
        }
        if (w->has_m)
        {
            memcpy(w->to, v->m + 8 * i, 8);
            w->to += 8;
        }
    }
    return 1;
}

/* A count of vertices and these. */
static int put_run(struct wkb_writer *w, const struct vertices *v,
                   int64_t first, int64_t end)
{
    return first < end && end <= v->n && put_u32(w, end - first) &&
           put_vertices(w, v, first, end);
}

/* The rings of a polygon, or the lines of a multi line string. One of them has
 * all vertices, whatever ends say. */
static int put_runs(struct wkb_writer *w, const struct vertices *v, int is_line)
{
    int64_t first = 0, n = v->n_ends > 1 ? v->n_ends : 1;
    if (!put_u32(w, n))
        return 0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t end = n > 1 ? oj_le32(v->ends + 4 * i) : v->n;
        if ((is_line && !put_head(w, OJ_FGB_LINE)) ||
            !put_run(w, v, first, end))
            return 0;
        first = end;
    }
    return 1;
}

static int put_points(struct wkb_writer *w, const struct vertices *v)
{
    if (!put_u32(w, v->n))
        return 0;
    for (int64_t i = 0; i < v->n; i++)
    {
        if (!put_head(w, OJ_FGB_POINT) || !put_vertices(w, v, i, i + 1))
            return 0;
    }
    return 1;
}

static int put_geometry(struct wkb_writer *w, const struct oj_flat_table *table,
                        int type, int depth);

static int put_parts(struct wkb_writer *w, const struct oj_flat_table *table,
                     int type, int depth)
{
    int64_t n;
    const uint8_t *parts =
        oj_flatbuffer_vector(w->feature, table, OJ_FGB_PARTS, 4, &n);
    if (n == 0 || depth >= MOST_DEPTH || !put_u32(w, n))
        return 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_flat_table part;
        if (!oj_flatbuffer_element(w->feature, parts, i, &part) ||
            !put_geometry(w, &part, type, depth + 1))
            return 0;
    }
    return 1;
}

static int put_geometry(struct wkb_writer *w, const struct oj_flat_table *table,
                        int type, int depth)
{
    struct vertices v = {0};
    if (type == OJ_FGB_UNKNOWN)
    {
        const uint8_t *own =
            oj_flatbuffer_field(w->feature, table, OJ_FGB_TYPE, 1);
        type = own != NULL ? *own : OJ_FGB_UNKNOWN;
    }
    if (type < OJ_FGB_POINT || type > OJ_FGB_COLLECTION || !put_head(w, type))
        return 0;
    if (type == OJ_FGB_MULTIPOLYGON)
        return put_parts(w, table, OJ_FGB_POLYGON, depth);
    if (type == OJ_FGB_COLLECTION)
        return put_parts(w, table, OJ_FGB_UNKNOWN, depth);
    if (!get_vertices(w, table, &v))
        return 0;
    switch (type)
    {
        case OJ_FGB_POINT:
            return put_vertices(w, &v, 0, 1);
        case OJ_FGB_LINE:
            return put_run(w, &v, 0, v.n);
        case OJ_FGB_MULTIPOINT:
            return put_points(w, &v);
        default:
            return put_runs(w, &v, type == OJ_FGB_MULTILINE);
    }
}

int64_t oj_flatgeobuf_to_wkb(struct oj_flatbuffer *feature,
                             const struct oj_flat_table *table, int type,
                             int has_z, int has_m, uint8_t *to)
{
    struct wkb_writer w = {feature, has_z, has_m, to,
                           to + oj_flatgeobuf_wkb_room(feature->size)};
    return put_geometry(&w, table, type, 0) && !feature->is_broken ? w.to - to
                                                                   : 0;
}
