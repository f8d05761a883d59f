#include "oj_flat.h"

#include "../base/oj_alloc.h"
#include "../text/oj_token_sets.h"

#include <math.h>
#include <string.h>

/* In the long form the offsets are valid after every call, also within a
 * feature: part_offset[n_features] is the first part of the unfinished feature,
 * ring_offset[n_parts] == n_rings and vertex_offset[n_rings] == n_vertices. So
 * an unfinished feature is removed by resetting the counts to those at its
 * start. */

/* Returns 1 if joins accept the coordinate: its absolute value is at most
 * OJ_FLAT_MOST. NaN gives 0. */
static int is_joinable_coordinate(double x)
{
    return fabs(x) <= OJ_FLAT_MOST;
}

int oj_flat_are_coordinates_joinable(const double *x, int64_t n)
{
    /* The flag is a double because compilers then vectorise the loop; with an
     * integer flag they do not. */
    double refused = 0;
    for (int64_t i = 0; i < n; i++)
        refused = is_joinable_coordinate(x[i]) ? refused : 1;
    return refused == 0;
}

static int are_all_joinable(const struct oj_flat *flat)
{
    return oj_flat_are_coordinates_joinable(flat->x, flat->n_vertices) &&
           oj_flat_are_coordinates_joinable(flat->y, flat->n_vertices);
}

unsigned oj_flat_kinds(const struct oj_flat *flat, int64_t feature)
{
    unsigned kinds = 0;
    if (oj_flat_is_points(flat))
        return flat->x[feature] - flat->x[feature] == 0.0 ? OJ_PART_POINT : 0;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
        kinds |= flat->part_kind[part];
    return kinds;
}

struct oj_flat oj_flat_of_points(int64_t n, const int64_t *fid, const double *x,
                                 const double *y)
{
    return (struct oj_flat){.n_features = n,
                            .n_parts = n,
                            .n_rings = n,
                            .n_vertices = n,
                            .part_kinds = OJ_PART_POINT,
                            .fid = fid,
                            .x = x,
                            .y = y};
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
        view.m = buf->keeps_m ? buf->m : NULL;
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
    oj_free(buf->m);
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

/* Makes room for the M values of n vertices, and sets those of vertices first
 * .. n - 1 to NaN. */
static oj_status reserve_m(struct oj_flat_buf *buf, int64_t first, int64_t n,
                           struct oj_error *err)
{
    OJ_ROOM(buf->m, first, n, buf->cap_m, err);
    for (int64_t i = first; i < n; i++)
        buf->m[i] = (double)NAN;
    return OJ_OK;
}

/* Converts the short form to the long form: every feature gets a part and a
 * ring. Makes room for one more feature. */
static oj_status convert_points_to_long_form(struct oj_flat_buf *buf,
                                             struct oj_error *err)
{
    int64_t n = buf->n_features, n_parts = 0;
    OJ_ROOM(buf->part_offset, 0, n + 2, buf->cap_part_offset, err);
    OJ_ROOM(buf->part_kind, 0, n + 1, buf->cap_parts, err);
    OJ_ROOM(buf->ring_offset, 0, n + 2, buf->cap_ring_offset, err);
    OJ_ROOM(buf->vertex_offset, 0, n + 2, buf->cap_vertex_offset, err);
    if (buf->keeps_m)
        OJ_TRY(reserve_m(buf, 0, n, err));
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

oj_status oj_flat_buf_begin_feature(struct oj_flat_buf *buf, int64_t fid,
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

oj_status oj_flat_buf_begin_part(struct oj_flat_buf *buf,
                                 enum oj_part_kind kind, struct oj_error *err)
{
    int64_t n = buf->n_parts;
    OJ_ROOM(buf->part_kind, n, n + 1, buf->cap_parts, err);
    OJ_ROOM(buf->ring_offset, n + 1, n + 2, buf->cap_ring_offset, err);
    buf->part_kind[n] = (uint8_t)kind;
    buf->ring_offset[n + 1] = buf->n_rings;
    buf->n_parts = n + 1;
    return OJ_OK;
}

oj_status oj_flat_buf_begin_ring(struct oj_flat_buf *buf, struct oj_error *err)
{
    int64_t n = buf->n_rings;
    OJ_ROOM(buf->vertex_offset, n + 1, n + 2, buf->cap_vertex_offset, err);
    buf->vertex_offset[n + 1] = buf->n_vertices;
    buf->n_rings = n + 1;
    buf->ring_offset[buf->n_parts] = n + 1;
    return OJ_OK;
}

oj_status oj_flat_buf_add_vertices(struct oj_flat_buf *buf, int64_t n,
                                   double **x, double **y, struct oj_error *err)
{
    OJ_TRY(reserve_vertices(buf, buf->n_vertices + n, err));
    if (buf->keeps_m)
        OJ_TRY(reserve_m(buf, buf->n_vertices, buf->n_vertices + n, err));
    *x = buf->x + buf->n_vertices;
    *y = buf->y + buf->n_vertices;
    buf->n_vertices += n;
    buf->vertex_offset[buf->n_rings] = buf->n_vertices;
    return OJ_OK;
}

void oj_flat_buf_drop_feature(struct oj_flat_buf *buf)
{
    if (!buf->long_form)
        return;
    buf->n_parts = buf->part_offset[buf->n_features];
    buf->n_rings = buf->ring_offset[buf->n_parts];
    buf->n_vertices = buf->vertex_offset[buf->n_rings];
}

/* Returns 1 if joins accept the coordinates of vertices first <= v < end. */
static int are_vertices_in_range(const struct oj_flat_buf *buf, int64_t first,
                                 int64_t end)
{
    return oj_flat_are_coordinates_joinable(buf->x + first, end - first) &&
           oj_flat_are_coordinates_joinable(buf->y + first, end - first);
}

/* Returns 1 if a ring does not end with its first vertex. */
static int is_ring_open(const struct oj_flat *flat, int64_t ring)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t last = flat->vertex_offset[ring + 1] - 1;
    return flat->x[first] != flat->x[last] || flat->y[first] != flat->y[last];
}

static int is_empty_part(const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part], v = flat->vertex_offset[ring];
    if (ring == flat->ring_offset[part + 1] ||
        flat->vertex_offset[ring + 1] == v)
        return 1;
    return flat->part_kind[part] == OJ_PART_POINT && isnan(flat->x[v]) &&
           isnan(flat->y[v]);
}

/* Returns 0 if the unfinished feature has an empty part, an open ring, or a
 * coordinate that joins do not accept. */
static int is_feature_tidy(const struct oj_flat_buf *buf)
{
    const struct oj_flat flat = oj_flat_buf_view(buf);
    int64_t part = buf->part_offset[buf->n_features];
    int64_t ring = buf->ring_offset[part];
    if (!are_vertices_in_range(buf, buf->vertex_offset[ring], buf->n_vertices))
        return 0;
    for (; part < buf->n_parts; part++)
    {
        int64_t end = buf->ring_offset[part + 1];
        if (ring == end)
            return 0;
        for (; ring < end; ring++)
        {
            if (buf->vertex_offset[ring] == buf->vertex_offset[ring + 1] ||
                (buf->part_kind[part] == OJ_PART_POLYGON &&
                 is_ring_open(&flat, ring)))
                return 0;
        }
    }
    return 1;
}

oj_status oj_flat_buf_copy_part(struct oj_flat_buf *buf,
                                const struct oj_flat *flat, int64_t part,
                                struct oj_error *err)
{
    enum oj_part_kind kind = (enum oj_part_kind)flat->part_kind[part];
    OJ_TRY(oj_flat_buf_begin_part(buf, kind, err));
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
    {
        int64_t first = flat->vertex_offset[ring];
        int64_t n = flat->vertex_offset[ring + 1] - first;
        int closes =
            n > 0 && kind == OJ_PART_POLYGON && is_ring_open(flat, ring);
        double *x, *y, *m;
        if (n == 0)
            continue;
        OJ_TRY(oj_flat_buf_begin_ring(buf, err));
        OJ_TRY(oj_flat_buf_add_vertices(buf, n + closes, &x, &y, err));
        memcpy(x, flat->x + first, (size_t)n * sizeof *x);
        memcpy(y, flat->y + first, (size_t)n * sizeof *y);
        x[n + closes - 1] = x[closes ? 0 : n - 1];
        y[n + closes - 1] = y[closes ? 0 : n - 1];
        m = oj_flat_buf_last_m(buf, n + closes);
        if (m != NULL && flat->m != NULL)
        {
            memcpy(m, flat->m + first, (size_t)n * sizeof *m);
            m[n + closes - 1] = m[closes ? 0 : n - 1];
        }
        buf->counts.n_rings_closed += closes;
    }
    return OJ_OK;
}

/* Rebuilds the unfinished feature without empty parts and with closed rings. If
 * joins do not accept one of its coordinates, sets *not_finite and removes all
 * parts. *n_dropped: number of empty parts. */
static oj_status tidy_feature(struct oj_flat_buf *buf, int *not_finite,
                              int64_t *n_dropped, struct oj_error *err)
{
    const struct oj_flat raw = oj_flat_buf_view(buf);
    struct oj_flat_buf tidy = {.keeps_m = buf->keeps_m};
    struct oj_flat flat;
    oj_status status = oj_flat_buf_begin_feature(&tidy, 0, err);
    for (int64_t part = buf->part_offset[buf->n_features];
         status == OJ_OK && part < raw.n_parts; part++)
    {
        int is_empty = is_empty_part(&raw, part);
        int64_t end = raw.ring_offset[part + 1];
        *n_dropped += is_empty;
        if ((!is_empty || raw.part_kind[part] != OJ_PART_POINT) &&
            !are_vertices_in_range(buf,
                                   raw.vertex_offset[raw.ring_offset[part]],
                                   raw.vertex_offset[end]))
            *not_finite = 1;
        if (!is_empty)
            status = oj_flat_buf_copy_part(&tidy, &raw, part, err);
    }
    flat = oj_flat_buf_view(&tidy);
    oj_flat_buf_drop_feature(buf);
    for (int64_t part = 0;
         status == OJ_OK && !*not_finite && part < flat.n_parts; part++)
        status = oj_flat_buf_copy_part(buf, &flat, part, err);
    if (!*not_finite)
        buf->counts.n_rings_closed += tidy.counts.n_rings_closed;
    oj_flat_buf_free(&tidy);
    return status;
}

oj_status oj_flat_buf_end_feature(struct oj_flat_buf *buf, struct oj_error *err)
{
    int64_t first = buf->part_offset[buf->n_features], n_dropped = 0;
    int not_finite = 0;
    if (!is_feature_tidy(buf))
        OJ_TRY(tidy_feature(buf, &not_finite, &n_dropped, err));
    if (not_finite)
        buf->counts.n_not_finite++;
    else if (buf->n_parts == first)
        buf->counts.n_empty++;
    else
        buf->counts.n_empty_members += n_dropped;
    for (int64_t part = first; part < buf->n_parts; part++)
        buf->part_kinds |= buf->part_kind[part];
    buf->n_features++;
    buf->part_offset[buf->n_features] = buf->n_parts;
    return OJ_OK;
}

/* Adds a point to the long form. */
static oj_status append_point_in_long_form(struct oj_flat_buf *buf, int64_t fid,
                                           double x, double y,
                                           struct oj_error *err)
{
    double *to_x, *to_y;
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    if (oj_flat_buf_begin_part(buf, OJ_PART_POINT, err) != OJ_OK ||
        oj_flat_buf_begin_ring(buf, err) != OJ_OK ||
        oj_flat_buf_add_vertices(buf, 1, &to_x, &to_y, err) != OJ_OK)
    {
        oj_flat_buf_drop_feature(buf);
        return OJ_ERR_NOMEM;
    }
    *to_x = x;
    *to_y = y;
    return oj_flat_buf_end_feature(buf, err);
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
        OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
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

/* Adds a box as a polygon of five vertices; a box without area as a line
 * between two opposite corners. */
static oj_status add_box_corners(struct oj_flat_buf *buf, double x0, double y0,
                                 double x1, double y1, struct oj_error *err)
{
    const double xs[5] = {x0, x1, x1, x0, x0}, ys[5] = {y0, y0, y1, y1, y0};
    int has_area = x0 < x1 && y0 < y1;
    int n = has_area ? 5 : 2, step = has_area ? 1 : 2;
    double *x, *y;
    OJ_TRY(oj_flat_buf_begin_part(
        buf, has_area ? OJ_PART_POLYGON : OJ_PART_LINE, err));
    OJ_TRY(oj_flat_buf_begin_ring(buf, err));
    OJ_TRY(oj_flat_buf_add_vertices(buf, n, &x, &y, err));
    for (int i = 0; i < n; i++)
    {
        x[i] = xs[i * step];
        y[i] = ys[i * step];
    }
    return oj_flat_buf_end_feature(buf, err);
}

oj_status oj_flat_buf_add_box(struct oj_flat_buf *buf, int64_t fid, double x0,
                              double y0, double x1, double y1,
                              struct oj_error *err)
{
    oj_status status;
    if (x0 >= x1 && y0 >= y1)
        return oj_flat_buf_add_point(buf, fid, x0, y0, err);
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    status = add_box_corners(buf, x0, y0, x1, y1, err);
    if (status != OJ_OK)
        oj_flat_buf_drop_feature(buf);
    return status;
}

static oj_status copy_parts(struct oj_flat_buf *buf, const struct oj_flat *flat,
                            int64_t feature, struct oj_error *err)
{
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
        OJ_TRY(oj_flat_buf_copy_part(buf, flat, part, err));
    return oj_flat_buf_end_feature(buf, err);
}

oj_status oj_flat_buf_copy(struct oj_flat_buf *buf, const struct oj_flat *flat,
                           int64_t feature, int64_t fid, struct oj_error *err)
{
    int64_t vertex, end;
    oj_status status;
    oj_flat_vertex_range(flat, feature, &vertex, &end);
    if (vertex == end)
        return oj_flat_buf_add_null(buf, fid, err);
    if (oj_flat_is_points(flat))
        return oj_flat_buf_add_point(buf, fid, flat->x[feature],
                                     flat->y[feature], err);
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    status = copy_parts(buf, flat, feature, err);
    if (status != OJ_OK)
        oj_flat_buf_drop_feature(buf);
    return status;
}

static int64_t drop_not_finite_points(struct oj_flat_buf *buf, int64_t first)
{
    int64_t n = 0;
    for (int64_t i = first; i < buf->n_features; i++)
    {
        if (isnan(buf->x[i]) && isnan(buf->y[i]))
            continue; /* NaN NaN: the feature had no geometry before */
        if (are_vertices_in_range(buf, i, i + 1))
            continue;
        buf->x[i] = buf->y[i] = (double)NAN;
        n++;
    }
    return n;
}

/* If a vertex of the features from `first` on is out of range, copies these
 * features into `rest` and back; the copy leaves out the geometries with such
 * vertices. */
oj_status oj_flat_buf_drop_not_finite(struct oj_flat_buf *buf, int64_t first,
                                      int64_t *n_dropped, struct oj_error *err)
{
    const struct oj_flat_counts counts = buf->counts;
    struct oj_flat flat = oj_flat_buf_view(buf);
    struct oj_flat_buf rest = {.keeps_m = buf->keeps_m};
    int64_t n = buf->n_features, part = 0;
    oj_status status = OJ_OK;
    *n_dropped = 0;
    if (!buf->long_form)
    {
        *n_dropped = drop_not_finite_points(buf, first);
        return OJ_OK;
    }
    part = buf->part_offset[first];
    if (are_vertices_in_range(buf, buf->vertex_offset[buf->ring_offset[part]],
                              buf->n_vertices))
        return OJ_OK;
    for (int64_t i = first; status == OJ_OK && i < n; i++)
        status = oj_flat_buf_copy(&rest, &flat, i, buf->fid[i], err);
    flat = oj_flat_buf_view(&rest);
    buf->n_features = first;
    oj_flat_buf_drop_feature(buf);
    for (int64_t i = 0; status == OJ_OK && i < n - first; i++)
        status = oj_flat_buf_copy(buf, &flat, i, flat.fid[i], err);
    buf->counts = counts;
    *n_dropped = rest.counts.n_not_finite;
    oj_flat_buf_free(&rest);
    return status;
}

/* ---- slices -------------------------------------------------------------- */

/* Copies n + 1 offsets less the first of them: to[i] = from[first + i] -
 * from[first]. */
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
    if (flat->m != NULL)
        view.m = flat->m + vertex;
    if (flat->fid != NULL)
        view.fid = flat->fid + first;
    if (flat->max_distance != NULL)
        view.max_distance = flat->max_distance + first;
    if (flat->heading != NULL)
        view.heading = flat->heading + first;
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
    for (int i = 0; i < flat->n_spans && flat->spans[i].from != NULL; i++)
    {
        view.spans[i].from += first;
        view.spans[i].until += first;
    }
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

unsigned oj_flat_m_presence(const struct oj_flat *flat)
{
    unsigned found = 0;
    if (oj_flat_is_points(flat))
        return 0;
    for (int64_t part = 0; part < flat->n_parts; part++)
    {
        int64_t v = flat->vertex_offset[flat->ring_offset[part]];
        int64_t end = flat->vertex_offset[flat->ring_offset[part + 1]];
        if (flat->part_kind[part] == OJ_PART_POINT)
            continue;
        found |= OJ_M_IS_NEEDED;
        for (; flat->m != NULL && v < end; v++)
        {
            if (!isnan(flat->m[v]))
                return OJ_M_IS_NEEDED | OJ_M_IS_THERE;
        }
    }
    return found;
}

/* ---- checks -------------------------------------------------------------- */

static oj_status check_offsets(const int64_t *offset, int64_t n, int64_t total,
                               const char *name, struct oj_error *err)
{
    if (offset[0] != 0)
        return oj_fail(err, OJ_ERR_ARG, "%s[0] is %lld: set it to 0", name,
                       (long long)offset[0]);
    for (int64_t i = 0; i < n; i++)
    {
        if (offset[i + 1] < offset[i])
            return oj_fail(
                err, OJ_ERR_ARG,
                "%s decreases at entry %lld: give offsets that never decrease",
                name, (long long)(i + 1));
    }
    if (offset[n] != total)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s ends at %lld, but must end at %lld, the number of "
                       "elements that it divides",
                       name, (long long)offset[n], (long long)total);
    return OJ_OK;
}

static oj_status check_part(const struct oj_flat *flat, int64_t part,
                            struct oj_error *err)
{
    int kind = flat->part_kind[part];
    int64_t first_ring = flat->ring_offset[part];
    int64_t n_rings = flat->ring_offset[part + 1] - first_ring;
    if (kind != OJ_PART_POINT && kind != OJ_PART_LINE &&
        kind != OJ_PART_POLYGON)
        return oj_fail(err, OJ_ERR_ARG,
                       "part_kind[%lld] is %d, not 1 (point), 2 (line) or 4 "
                       "(polygon): set it to one of these",
                       (long long)part, kind);
    if ((flat->part_kinds & (unsigned)kind) == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "part_kinds lacks the kind %d of part %lld: it must be "
                       "the union of all part_kind",
                       kind, (long long)part);
    if (n_rings < 1 || (kind != OJ_PART_POLYGON && n_rings != 1))
        return oj_fail(
            err, OJ_ERR_ARG,
            "part %lld of kind %d has %lld rings, but points and lines have "
            "one, and polygons at least one: correct ring_offset",
            (long long)part, kind, (long long)n_rings);
    for (int64_t r = first_ring; r < first_ring + n_rings; r++)
    {
        int64_t first = flat->vertex_offset[r];
        int64_t end = flat->vertex_offset[r + 1];
        if (end == first || (kind == OJ_PART_POINT && end - first != 1))
            return oj_fail(
                err, OJ_ERR_ARG,
                "ring %lld has %lld vertices, but points have one, and other "
                "rings at least one: correct vertex_offset",
                (long long)r, (long long)(end - first));
        if (kind == OJ_PART_POLYGON && is_ring_open(flat, r))
            return oj_fail(err, OJ_ERR_ARG,
                           "polygon ring %lld is not closed: repeat its first "
                           "vertex as the last",
                           (long long)r);
    }
    return OJ_OK;
}

static oj_status check_points(const struct oj_flat *flat, struct oj_error *err)
{
    if (flat->n_vertices != flat->n_features)
        return oj_fail(err, OJ_ERR_ARG,
                       "%lld features without part_offset are points, but "
                       "have %lld vertices: give one vertex for each, or "
                       "part_offset",
                       (long long)flat->n_features,
                       (long long)flat->n_vertices);
    if ((flat->part_kinds & OJ_PART_POINT) != 0 && are_all_joinable(flat))
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        double x = flat->x[i], y = flat->y[i];
        if (!isnan(x) &&
            !(is_joinable_coordinate(x) && is_joinable_coordinate(y)))
            return oj_fail(
                err, OJ_ERR_ARG,
                "point %lld has a coordinate that is not finite or beyond %g: "
                "correct it, or set x to NaN for a point without a place",
                (long long)i, OJ_FLAT_MOST);
        if (!isnan(x) && (flat->part_kinds & OJ_PART_POINT) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "part_kinds must contain OJ_PART_POINT, since the "
                           "features are points");
    }
    return OJ_OK;
}

oj_status oj_flat_check(const struct oj_flat *flat, struct oj_error *err)
{
    if (flat->n_features < 0 || flat->n_vertices < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "n_features and n_vertices must be 0 or more, not %lld "
                       "and %lld",
                       (long long)flat->n_features,
                       (long long)flat->n_vertices);
    if (flat->n_vertices > 0 && (flat->x == NULL || flat->y == NULL))
        return oj_fail(
            err, OJ_ERR_ARG,
            "x and y must not be NULL, because n_vertices is above 0");
    if (oj_flat_is_points(flat))
        return check_points(flat, err);
    if (flat->n_parts < 0 || flat->n_rings < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "n_parts and n_rings must be 0 or more, not %lld and "
                       "%lld",
                       (long long)flat->n_parts, (long long)flat->n_rings);
    if (flat->ring_offset == NULL || flat->vertex_offset == NULL ||
        (flat->n_parts > 0 && flat->part_kind == NULL))
        return oj_fail(err, OJ_ERR_ARG,
                       "if part_offset is given, part_kind, ring_offset and "
                       "vertex_offset must be given, too");
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
                           "vertex %lld is not finite or beyond %g: correct "
                           "it, or leave its feature out",
                           (long long)v, OJ_FLAT_MOST);
    }
    return OJ_OK;
}
