#include "oj_flat.h"

#include "../base/oj_array.h"
#include "../text/oj_token_sets.h"

#include <math.h>
#include <string.h>

/* In the long form the offsets are valid after every call, also in the middle
 * of a feature: part_offset[n_features] is where the feature in work starts,
 * ring_offset[n_parts] == n_rings and vertex_offset[n_rings] == n_vertices. So
 * dropping a feature is reading its start back. */

/* 1 for a coordinate that joins take; 0 for NaN, too. */
static int is_joinable_coordinate(double x)
{
    return fabs(x) <= OJ_FLAT_MOST;
}

int oj_flat_are_joinable(const double *x, int64_t n)
{
    /* compilers make vectors of this form, not of an integer that is summed */
    double refused = 0;
    for (int64_t i = 0; i < n; i++)
        refused = is_joinable_coordinate(x[i]) ? refused : 1;
    return refused == 0;
}

static int are_all_joinable(const struct oj_flat *flat)
{
    return oj_flat_are_joinable(flat->x, flat->n_vertices) &&
           oj_flat_are_joinable(flat->y, flat->n_vertices);
}

struct oj_flat oj_flat_buf_view(const struct oj_flat_buf *buf)
{
    struct oj_flat view;
    memset(&view, 0, sizeof view);
    view.n_features = buf->n_features;
    view.n_vertices = buf->n_vertices;
    view.part_kinds = buf->part_kinds;
    view.fid = buf->fid;
    view.x = buf->x;
    view.y = buf->y;
    if (buf->long_form)
    {
        view.n_parts = buf->n_parts;
        view.n_rings = buf->n_rings;
        view.part_offset = buf->part_offset;
        view.part_kind = buf->part_kind;
        view.ring_offset = buf->ring_offset;
        view.vertex_offset = buf->vertex_offset;
    }
    else
    {
        view.n_parts = view.n_rings = buf->n_features;
    }
    return view;
}

void oj_flat_buf_clear(struct oj_flat_buf *buf)
{
    memset(&buf->counts, 0, sizeof buf->counts);
    buf->long_form = 0;
    buf->part_kinds = 0;
    buf->n_features = buf->n_parts = buf->n_rings = buf->n_vertices = 0;
}

void oj_flat_buf_free(struct oj_flat_buf *buf)
{
    oj_free(buf->fid);
    oj_free(buf->part_offset);
    oj_free(buf->part_kind);
    oj_free(buf->ring_offset);
    oj_free(buf->vertex_offset);
    oj_free(buf->x);
    oj_free(buf->y);
    memset(buf, 0, sizeof *buf);
}

void oj_flat_counts_add(struct oj_flat_counts *sum,
                        const struct oj_flat_counts *counts)
{
    sum->n_null += counts->n_null;
    sum->n_empty += counts->n_empty;
    sum->n_not_finite += counts->n_not_finite;
    sum->n_empty_members += counts->n_empty_members;
    sum->n_rings_closed += counts->n_rings_closed;
    sum->n_linearized += counts->n_linearized;
}

static oj_status reserve_vertices(struct oj_flat_buf *buf, int64_t n,
                                  struct oj_error *err)
{
    OJ_ROOM(buf->x, buf->n_vertices, n, buf->cap_x, err);
    OJ_ROOM(buf->y, buf->n_vertices, n, buf->cap_y, err);
    return OJ_OK;
}

/* Room for the features there are and one more; the offsets get values. */
static oj_status convert_points_to_long_form(struct oj_flat_buf *buf,
                                             struct oj_error *err)
{
    int64_t n = buf->n_features, n_parts = 0;
    OJ_ROOM(buf->part_offset, 0, n + 2, buf->cap_part_offset, err);
    OJ_ROOM(buf->part_kind, 0, n + 1, buf->cap_parts, err);
    OJ_ROOM(buf->ring_offset, 0, n + 2, buf->cap_ring_offset, err);
    OJ_ROOM(buf->vertex_offset, 0, n + 2, buf->cap_vertex_offset, err);
    buf->part_offset[0] = buf->ring_offset[0] = buf->vertex_offset[0] = 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (!isnan(buf->x[i]))
        {
            buf->x[n_parts] = buf->x[i];
            buf->y[n_parts] = buf->y[i];
            buf->part_kind[n_parts] = OJ_PART_POINT;
            n_parts++;
            buf->ring_offset[n_parts] = n_parts;
            buf->vertex_offset[n_parts] = n_parts;
        }
        buf->part_offset[i + 1] = n_parts;
    }
    buf->n_parts = buf->n_rings = buf->n_vertices = n_parts;
    buf->long_form = 1;
    return OJ_OK;
}

oj_status oj_flat_buf_begin(struct oj_flat_buf *buf, int64_t fid,
                            struct oj_error *err)
{
    OJ_ROOM(buf->fid, buf->n_features, buf->n_features + 1, buf->cap_features,
            err);
    if (!buf->long_form)
        OJ_TRY(convert_points_to_long_form(buf, err));
    OJ_ROOM(buf->part_offset, buf->n_features + 1, buf->n_features + 2,
            buf->cap_part_offset, err);
    buf->fid[buf->n_features] = fid;
    return OJ_OK;
}

oj_status oj_flat_buf_part(struct oj_flat_buf *buf, enum oj_part_kind kind,
                           struct oj_error *err)
{
    int64_t n = buf->n_parts;
    OJ_ROOM(buf->part_kind, n, n + 1, buf->cap_parts, err);
    OJ_ROOM(buf->ring_offset, n + 1, n + 2, buf->cap_ring_offset, err);
    buf->part_kind[n] = (uint8_t)kind;
    buf->ring_offset[n + 1] = buf->n_rings;
    buf->n_parts = n + 1;
    return OJ_OK;
}

oj_status oj_flat_buf_ring(struct oj_flat_buf *buf, struct oj_error *err)
{
    int64_t n = buf->n_rings;
    OJ_ROOM(buf->vertex_offset, n + 1, n + 2, buf->cap_vertex_offset, err);
    buf->vertex_offset[n + 1] = buf->n_vertices;
    buf->n_rings = n + 1;
    buf->ring_offset[buf->n_parts] = n + 1;
    return OJ_OK;
}

oj_status oj_flat_buf_vertices(struct oj_flat_buf *buf, int64_t n, double **x,
                               double **y, struct oj_error *err)
{
    OJ_TRY(reserve_vertices(buf, buf->n_vertices + n, err));
    *x = buf->x + buf->n_vertices;
    *y = buf->y + buf->n_vertices;
    buf->n_vertices += n;
    buf->vertex_offset[buf->n_rings] = buf->n_vertices;
    return OJ_OK;
}

void oj_flat_buf_drop(struct oj_flat_buf *buf)
{
    if (!buf->long_form)
        return;
    buf->n_parts = buf->part_offset[buf->n_features];
    buf->n_rings = buf->ring_offset[buf->n_parts];
    buf->n_vertices = buf->vertex_offset[buf->n_rings];
}

/* Whether joins take vertices first <= v < end. */
static int are_vertices_in_range(const struct oj_flat_buf *buf, int64_t first,
                                 int64_t end)
{
    return oj_flat_are_joinable(buf->x + first, end - first) &&
           oj_flat_are_joinable(buf->y + first, end - first);
}

static int is_empty_part(const struct oj_flat_buf *buf, int kind,
                         int64_t first_ring, int64_t end_ring)
{
    int64_t v;
    if (first_ring == end_ring)
        return 1;
    v = buf->vertex_offset[first_ring];
    if (buf->vertex_offset[first_ring + 1] == v)
        return 1;
    return kind == OJ_PART_POINT && isnan(buf->x[v]) && isnan(buf->y[v]);
}

static int is_ring_not_closed(const struct oj_flat_buf *buf, int64_t ring)
{
    int64_t first = buf->vertex_offset[ring];
    int64_t last = buf->vertex_offset[ring + 1] - 1;
    return buf->x[first] != buf->x[last] || buf->y[first] != buf->y[last];
}

/* Moves what is not empty of the feature in work to the front. Returns the
 * number of parts that were left out; *not_finite is set when a coordinate of
 * the rest is not taken, *n_open to the number of rings to close. */
static int64_t drop_empty_parts_and_rings(struct oj_flat_buf *buf,
                                          int *not_finite, int64_t *n_open)
{
    int64_t to_part = buf->part_offset[buf->n_features];
    int64_t to_ring = buf->ring_offset[to_part];
    int64_t to_vertex = buf->vertex_offset[to_ring];
    int64_t ring = to_ring, vertex = to_vertex, n_dropped = 0;
    int64_t n_parts = buf->n_parts;
    *not_finite = 0;
    *n_open = 0;
    for (int64_t part = to_part; part < n_parts; part++)
    {
        int kind = buf->part_kind[part];
        int64_t end_ring = buf->ring_offset[part + 1];
        if (kind != OJ_PART_POINT &&
            !are_vertices_in_range(buf, vertex, buf->vertex_offset[end_ring]))
            *not_finite = 1;
        if (is_empty_part(buf, kind, ring, end_ring))
        {
            n_dropped++;
            ring = end_ring;
            vertex = buf->vertex_offset[end_ring];
            continue;
        }
        if (kind == OJ_PART_POINT &&
            !are_vertices_in_range(buf, vertex, vertex + 1))
            *not_finite = 1;
        for (; ring < end_ring; ring++)
        {
            int64_t end_vertex = buf->vertex_offset[ring + 1];
            size_t bytes = (size_t)(end_vertex - vertex) * sizeof(double);
            if (end_vertex == vertex)
                continue;
            if (to_vertex != vertex)
            {
                memmove(buf->x + to_vertex, buf->x + vertex, bytes);
                memmove(buf->y + to_vertex, buf->y + vertex, bytes);
            }
            to_vertex += end_vertex - vertex;
            vertex = end_vertex;
            buf->vertex_offset[++to_ring] = to_vertex;
            if (kind == OJ_PART_POLYGON && is_ring_not_closed(buf, to_ring - 1))
                (*n_open)++;
        }
        buf->part_kind[to_part] = (uint8_t)kind;
        buf->ring_offset[++to_part] = to_ring;
    }
    buf->n_parts = to_part;
    buf->n_rings = to_ring;
    buf->n_vertices = to_vertex;
    return n_dropped;
}

/* Appends their first vertex to the n_open rings that lack it, the last ring
 * first, so that every vertex moves once. */
static oj_status close_rings(struct oj_flat_buf *buf, int64_t n_open,
                             struct oj_error *err)
{
    int64_t n = n_open;
    OJ_TRY(reserve_vertices(buf, buf->n_vertices + n_open, err));
    buf->n_vertices += n_open;
    for (int64_t part = buf->n_parts - 1; n > 0; part--)
    {
        for (int64_t r = buf->ring_offset[part + 1] - 1;
             n > 0 && r >= buf->ring_offset[part]; r--)
        {
            int64_t first = buf->vertex_offset[r];
            int64_t end = buf->vertex_offset[r + 1];
            size_t bytes = (size_t)(end - first) * sizeof(double);
            int open = buf->part_kind[part] == OJ_PART_POLYGON;
            if (open)
                open = is_ring_not_closed(buf, r);
            buf->vertex_offset[r + 1] = end + n;
            if (open)
            {
                buf->x[end + n - 1] = buf->x[first];
                buf->y[end + n - 1] = buf->y[first];
                n--;
            }
            memmove(buf->x + first + n, buf->x + first, bytes);
            memmove(buf->y + first + n, buf->y + first, bytes);
        }
    }
    buf->counts.n_rings_closed += n_open;
    return OJ_OK;
}

oj_status oj_flat_buf_copy_part(struct oj_flat_buf *buf,
                                const struct oj_flat *flat, int64_t part,
                                struct oj_error *err)
{
    OJ_TRY(
        oj_flat_buf_part(buf, (enum oj_part_kind)flat->part_kind[part], err));
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
    {
        int64_t first = flat->vertex_offset[ring];
        int64_t n = flat->vertex_offset[ring + 1] - first;
        double *x, *y;
        OJ_TRY(oj_flat_buf_ring(buf, err));
        OJ_TRY(oj_flat_buf_vertices(buf, n, &x, &y, err));
        memcpy(x, flat->x + first, (size_t)n * sizeof *x);
        memcpy(y, flat->y + first, (size_t)n * sizeof *y);
    }
    return OJ_OK;
}

oj_status oj_flat_buf_end(struct oj_flat_buf *buf, struct oj_error *err)
{
    int64_t first = buf->part_offset[buf->n_features];
    int64_t n_open;
    int not_finite;
    int64_t n_dropped = drop_empty_parts_and_rings(buf, &not_finite, &n_open);
    if (not_finite)
    {
        oj_flat_buf_drop(buf);
        buf->counts.n_not_finite++;
    }
    else if (buf->n_parts == first)
    {
        oj_flat_buf_drop(buf);
        buf->counts.n_empty++;
    }
    else
    {
        if (n_open > 0)
            OJ_TRY(close_rings(buf, n_open, err));
        buf->counts.n_empty_members += n_dropped;
    }
    for (int64_t part = first; part < buf->n_parts; part++)
        buf->part_kinds |= buf->part_kind[part];
    buf->n_features++;
    buf->part_offset[buf->n_features] = buf->n_parts;
    return OJ_OK;
}

/* The long form's way to a point. */
static oj_status append_point_in_long_form(struct oj_flat_buf *buf, int64_t fid,
                                           double x, double y,
                                           struct oj_error *err)
{
    double *to_x, *to_y;
    OJ_TRY(oj_flat_buf_begin(buf, fid, err));
    if (oj_flat_buf_part(buf, OJ_PART_POINT, err) != OJ_OK ||
        oj_flat_buf_ring(buf, err) != OJ_OK ||
        oj_flat_buf_vertices(buf, 1, &to_x, &to_y, err) != OJ_OK)
    {
        oj_flat_buf_drop(buf);
        return OJ_ERR_NOMEM;
    }
    *to_x = x;
    *to_y = y;
    return oj_flat_buf_end(buf, err);
}

static oj_status append_point_in_short_form(struct oj_flat_buf *buf,
                                            int64_t fid, double x, double y,
                                            struct oj_error *err)
{
    int64_t n = buf->n_features;
    if (n >= buf->cap_features || n >= buf->cap_x || n >= buf->cap_y)
    {
        OJ_ROOM(buf->fid, n, n + 1, buf->cap_features, err);
        OJ_TRY(reserve_vertices(buf, n + 1, err));
    }
    buf->fid[n] = fid;
    buf->x[n] = x;
    buf->y[n] = y;
    buf->n_features = buf->n_vertices = n + 1;
    return OJ_OK;
}

oj_status oj_flat_buf_add_null(struct oj_flat_buf *buf, int64_t fid,
                               struct oj_error *err)
{
    if (buf->long_form)
    {
        OJ_TRY(oj_flat_buf_begin(buf, fid, err));
        buf->n_features++;
        buf->part_offset[buf->n_features] = buf->n_parts;
    }
    else
    {
        OJ_TRY(append_point_in_short_form(buf, fid, (double)NAN, (double)NAN,
                                          err));
    }
    buf->counts.n_null++;
    return OJ_OK;
}

oj_status oj_flat_buf_add_point(struct oj_flat_buf *buf, int64_t fid, double x,
                                double y, struct oj_error *err)
{
    if (buf->long_form)
        return append_point_in_long_form(buf, fid, x, y, err);
    if (is_joinable_coordinate(x) && is_joinable_coordinate(y))
    {
        OJ_TRY(append_point_in_short_form(buf, fid, x, y, err));
        buf->part_kinds |= OJ_PART_POINT;
        return OJ_OK;
    }
    OJ_TRY(append_point_in_short_form(buf, fid, (double)NAN, (double)NAN, err));
    if (isnan(x) && isnan(y))
        buf->counts.n_empty++;
    else
        buf->counts.n_not_finite++;
    return OJ_OK;
}

static oj_status copy_parts(struct oj_flat_buf *buf, const struct oj_flat *flat,
                            int64_t feature, struct oj_error *err)
{
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
        OJ_TRY(oj_flat_buf_copy_part(buf, flat, part, err));
    return oj_flat_buf_end(buf, err);
}

oj_status oj_flat_buf_copy(struct oj_flat_buf *buf, const struct oj_flat *flat,
                           int64_t feature, int64_t fid, struct oj_error *err)
{
    int64_t vertex, end;
    oj_status status;
    oj_flat_vertices(flat, feature, &vertex, &end);
    if (vertex == end)
        return oj_flat_buf_add_null(buf, fid, err);
    if (oj_flat_is_points(flat))
        return oj_flat_buf_add_point(buf, fid, flat->x[feature],
                                     flat->y[feature], err);
    OJ_TRY(oj_flat_buf_begin(buf, fid, err));
    status = copy_parts(buf, flat, feature, err);
    if (status != OJ_OK)
        oj_flat_buf_drop(buf);
    return status;
}

static int64_t drop_not_finite_points(struct oj_flat_buf *buf, int64_t first)
{
    int64_t n = 0;
    for (int64_t i = first; i < buf->n_features; i++)
    {
        if (isnan(buf->x[i]) && isnan(buf->y[i]))
            continue; /* had no geometry before */
        if (are_vertices_in_range(buf, i, i + 1))
            continue;
        buf->x[i] = buf->y[i] = (double)NAN;
        n++;
    }
    return n;
}

/* Offsets are written at or before the place they are read from, and what the
 * next feature needs (part, ring, vertex: its old start) is kept aside. */
int64_t oj_flat_buf_drop_not_finite(struct oj_flat_buf *buf, int64_t first)
{
    int64_t part, ring, vertex, to_part, to_ring, to_vertex, n = 0;
    if (!buf->long_form)
        return drop_not_finite_points(buf, first);
    part = to_part = buf->part_offset[first];
    ring = to_ring = buf->ring_offset[part];
    vertex = to_vertex = buf->vertex_offset[ring];
    for (int64_t i = first; i < buf->n_features; i++)
    {
        int64_t end_part = buf->part_offset[i + 1];
        int64_t end_ring = buf->ring_offset[end_part];
        int64_t end_vertex = buf->vertex_offset[end_ring];
        if (are_vertices_in_range(buf, vertex, end_vertex))
        {
            size_t bytes = (size_t)(end_vertex - vertex) * sizeof(double);
            memmove(buf->x + to_vertex, buf->x + vertex, bytes);
            memmove(buf->y + to_vertex, buf->y + vertex, bytes);
            for (int64_t r = ring; r < end_ring; r++)
                buf->vertex_offset[to_ring + r - ring + 1] =
                    buf->vertex_offset[r + 1] - vertex + to_vertex;
            for (int64_t p = part; p < end_part; p++)
            {
                buf->ring_offset[to_part + p - part + 1] =
                    buf->ring_offset[p + 1] - ring + to_ring;
                buf->part_kind[to_part + p - part] = buf->part_kind[p];
            }
            to_vertex += end_vertex - vertex;
            to_ring += end_ring - ring;
            to_part += end_part - part;
        }
        else
        {
            n++;
        }
        buf->part_offset[i + 1] = to_part;
        part = end_part;
        ring = end_ring;
        vertex = end_vertex;
    }
    buf->n_parts = to_part;
    buf->n_rings = to_ring;
    buf->n_vertices = to_vertex;
    return n;
}

/* ---- slices -------------------------------------------------------------- */

/* to[i] = from[first + i] - from[first], n + 1 entries. */
static oj_status rebase_offsets(const int64_t *from, int64_t first, int64_t n,
                                int64_t **to, int64_t *capacity,
                                struct oj_error *err)
{
    OJ_TRY(oj_reserve(to, 0, n + 1, capacity, sizeof **to, err));
    for (int64_t i = 0; i <= n; i++)
        (*to)[i] = from[first + i] - from[first];
    return OJ_OK;
}

oj_status oj_flat_slice_make(const struct oj_flat *flat, int64_t first,
                             int64_t n, struct oj_flat_slice *slice,
                             struct oj_error *err)
{
    struct oj_flat view = *flat;
    int64_t part = first, ring = first, vertex = first;
    view.n_features = view.n_parts = view.n_rings = view.n_vertices = n;
    if (!oj_flat_is_points(flat))
    {
        part = flat->part_offset[first];
        ring = flat->ring_offset[part];
        vertex = flat->vertex_offset[ring];
        view.n_parts = flat->part_offset[first + n] - part;
        view.n_rings = flat->ring_offset[part + view.n_parts] - ring;
        view.n_vertices = flat->vertex_offset[ring + view.n_rings] - vertex;
        OJ_TRY(rebase_offsets(flat->part_offset, first, n, &slice->part_offset,
                              &slice->cap_part_offset, err));
        OJ_TRY(rebase_offsets(flat->ring_offset, part, view.n_parts,
                              &slice->ring_offset, &slice->cap_ring_offset,
                              err));
        OJ_TRY(rebase_offsets(flat->vertex_offset, ring, view.n_rings,
                              &slice->vertex_offset, &slice->cap_vertex_offset,
                              err));
        view.part_offset = slice->part_offset;
        view.ring_offset = slice->ring_offset;
        view.vertex_offset = slice->vertex_offset;
        view.part_kind = flat->part_kind + part;
    }
    view.x = flat->x + vertex;
    view.y = flat->y + vertex;
    if (flat->fid != NULL)
        view.fid = flat->fid + first;
    if (flat->max_distance != NULL)
        view.max_distance = flat->max_distance + first;
    if (flat->on_class != NULL)
        view.on_class = flat->on_class + first;
    if (flat->exclude_class != NULL)
        view.exclude_class = flat->exclude_class + first;
    if (flat->overlaps != NULL)
        view.overlaps = flat->overlaps + first;
    OJ_ROOM(slice->texts, 0, flat->n_texts, slice->cap_texts, err);
    for (int i = 0; i < flat->n_texts; i++)
        slice->texts[i] = oj_token_sets_slice(&flat->texts[i], first, n);
    view.texts = slice->texts;
    if (flat->vectors.value != NULL)
        view.vectors.value = oj_vector_at(&flat->vectors, first);
    slice->flat = view;
    return OJ_OK;
}

void oj_flat_slice_free(struct oj_flat_slice *slice)
{
    oj_free(slice->part_offset);
    oj_free(slice->ring_offset);
    oj_free(slice->vertex_offset);
    oj_free(slice->texts);
    memset(slice, 0, sizeof *slice);
}

/* ---- checks -------------------------------------------------------------- */

static oj_status check_offsets(const int64_t *offset, int64_t n, int64_t total,
                               const char *name, struct oj_error *err)
{
    if (offset[0] != 0)
        return oj_fail(err, OJ_ERR_ARG, "%s[0] is %lld, not 0", name,
                       (long long)offset[0]);
    for (int64_t i = 0; i < n; i++)
    {
        if (offset[i + 1] < offset[i])
            return oj_fail(err, OJ_ERR_ARG, "%s decreases at entry %lld", name,
                           (long long)(i + 1));
    }
    if (offset[n] != total)
        return oj_fail(err, OJ_ERR_ARG, "%s ends at %lld, but there are %lld",
                       name, (long long)offset[n], (long long)total);
    return OJ_OK;
}

static int is_closed(const struct oj_flat *flat, int64_t first, int64_t end)
{
    return flat->x[first] == flat->x[end - 1] &&
           flat->y[first] == flat->y[end - 1];
}

static oj_status check_part(const struct oj_flat *flat, int64_t part,
                            struct oj_error *err)
{
    int kind = flat->part_kind[part];
    int64_t first_ring = flat->ring_offset[part];
    int64_t n_rings = flat->ring_offset[part + 1] - first_ring;
    if (kind != OJ_PART_POINT && kind != OJ_PART_LINE &&
        kind != OJ_PART_POLYGON)
        return oj_fail(err, OJ_ERR_ARG, "part %lld has the unknown kind %d",
                       (long long)part, kind);
    if ((flat->part_kinds & (unsigned)kind) == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "part_kinds lacks the kind %d of part %lld", kind,
                       (long long)part);
    if (n_rings < 1 || (kind != OJ_PART_POLYGON && n_rings != 1))
        return oj_fail(err, OJ_ERR_ARG, "part %lld of kind %d has %lld rings",
                       (long long)part, kind, (long long)n_rings);
    for (int64_t r = first_ring; r < first_ring + n_rings; r++)
    {
        int64_t first = flat->vertex_offset[r];
        int64_t end = flat->vertex_offset[r + 1];
        if (end == first || (kind == OJ_PART_POINT && end - first != 1))
            return oj_fail(err, OJ_ERR_ARG, "ring %lld has %lld vertices",
                           (long long)r, (long long)(end - first));
        if (kind == OJ_PART_POLYGON && !is_closed(flat, first, end))
            return oj_fail(err, OJ_ERR_ARG, "polygon ring %lld is not closed",
                           (long long)r);
    }
    return OJ_OK;
}

static oj_status check_points(const struct oj_flat *flat, struct oj_error *err)
{
    if (flat->n_vertices != flat->n_features)
        return oj_fail(err, OJ_ERR_ARG,
                       "%lld features in the short form have %lld vertices",
                       (long long)flat->n_features,
                       (long long)flat->n_vertices);
    if ((flat->part_kinds & OJ_PART_POINT) != 0 && are_all_joinable(flat))
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        double x = flat->x[i], y = flat->y[i];
        if (!isnan(x) &&
            !(is_joinable_coordinate(x) && is_joinable_coordinate(y)))
            return oj_fail(err, OJ_ERR_ARG,
                           "point %lld has a coordinate that is not finite or "
                           "beyond %g",
                           (long long)i, OJ_FLAT_MOST);
        if (!isnan(x) && (flat->part_kinds & OJ_PART_POINT) == 0)
            return oj_fail(err, OJ_ERR_ARG, "part_kinds lacks OJ_PART_POINT");
    }
    return OJ_OK;
}

oj_status oj_flat_check(const struct oj_flat *flat, struct oj_error *err)
{
    if (flat->n_features < 0 || flat->n_vertices < 0)
        return oj_fail(err, OJ_ERR_ARG, "negative count");
    if (flat->n_vertices > 0 && (flat->x == NULL || flat->y == NULL))
        return oj_fail(err, OJ_ERR_ARG, "x or y is missing");
    if (oj_flat_is_points(flat))
        return check_points(flat, err);
    if (flat->n_parts < 0 || flat->n_rings < 0)
        return oj_fail(err, OJ_ERR_ARG, "negative count");
    if (flat->ring_offset == NULL || flat->vertex_offset == NULL ||
        (flat->n_parts > 0 && flat->part_kind == NULL))
        return oj_fail(err, OJ_ERR_ARG,
                       "part_offset without part_kind, ring_offset or "
                       "vertex_offset");
    OJ_TRY(check_offsets(flat->part_offset, flat->n_features, flat->n_parts,
                         "part_offset", err));
    OJ_TRY(check_offsets(flat->ring_offset, flat->n_parts, flat->n_rings,
                         "ring_offset", err));
    OJ_TRY(check_offsets(flat->vertex_offset, flat->n_rings, flat->n_vertices,
                         "vertex_offset", err));
    for (int64_t p = 0; p < flat->n_parts; p++)
        OJ_TRY(check_part(flat, p, err));
    if (are_all_joinable(flat))
        return OJ_OK;
    for (int64_t v = 0; v < flat->n_vertices; v++)
    {
        if (!is_joinable_coordinate(flat->x[v]) ||
            !is_joinable_coordinate(flat->y[v]))
            return oj_fail(err, OJ_ERR_ARG,
                           "vertex %lld is not finite or beyond %g",
                           (long long)v, OJ_FLAT_MOST);
    }
    return OJ_OK;
}
