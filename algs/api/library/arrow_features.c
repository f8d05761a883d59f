#include "arrow_features.h"

#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../arrow/arrow_values.h"
#include "../arrow/oj_arrow_array.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Approximate maximum rows of a slice (struct arrow_slice), the unit of work of
 * a thread. */
#define SLICE_ROWS 4096

/* Number of rows of a slice after which no more envelopes are made, unless at
 * least half of these rows were out of reach. */
#define SAMPLED_ROWS 64

/* A reach is made only if the join side has at most this number of vertices for
 * each row that is read, so that it takes less time than reading the rows. */
#define REACH_VERTICES_PER_ROW 16

/* --- the geometry column of an array -------------------------------------- */

struct geometry_column
{
    const struct arrow_layout *layout;
    int64_t n_rows;
    struct arrow_presence is;
    int64_t first_fid;

    struct arrow_bytes wkb;

    /* Members for coordinates in lists. */
    struct arrow_list list[ARROW_MOST_LISTS];
    const double *x, *y;
    const double *m; /* NULL: there are no M values */
    int64_t stride;
    int64_t n_coordinates;
};

/* Fails if an element of array, a part, ring or coordinate of a geometry, is
 * NULL. is_row 1: the elements are whole geometries, which may be NULL. */
static oj_status check_no_nulls_inside_geometry(const struct ArrowArray *array,
                                                int is_row,
                                                struct oj_error *err)
{
    const uint8_t *valid = arrow_validity(array);
    for (int64_t i = 0; !is_row && valid != NULL && i < array->length; i++)
    {
        if (!arrow_bit(valid, array->offset + i))
            return oj_fail(
                err, OJ_ERR_DATA,
                "a part, ring or vertex of a geometry is NULL in an Arrow "
                "array: make the whole geometry NULL, or remove that part");
    }
    return OJ_OK;
}

static oj_status check_coordinate_buffer(const struct ArrowArray *array,
                                         int64_t n, struct oj_error *err)
{
    OJ_TRY(arrow_check_layout(array, 2, 0, err));
    if (array->length < n || (n > 0 && array->buffers[1] == NULL))
        return arrow_fail_mismatch(err);
    return check_no_nulls_inside_geometry(array, 0, err);
}

static oj_status read_interleaved(struct geometry_column *c,
                                  const struct ArrowArray *array,
                                  struct oj_error *err)
{
    int64_t n = c->layout->n_ordinates, end = array->offset + array->length;
    const struct ArrowArray *values;
    OJ_TRY(arrow_check_layout(array, 1, 1, err));
    values = array->children[0];
    if (end > INT64_MAX / 4)
        return arrow_fail_mismatch(err);
    OJ_TRY(check_coordinate_buffer(values, end * n, err));
    c->n_coordinates = array->length;
    c->stride = n;
    if (array->length == 0)
        return OJ_OK;
    c->x =
        (const double *)values->buffers[1] + values->offset + array->offset * n;
    c->y = c->x + 1;
    c->m = c->layout->m_ordinate > 0 ? c->x + c->layout->m_ordinate : NULL;
    return OJ_OK;
}

static oj_status read_separated(struct geometry_column *c,
                                const struct ArrowArray *array,
                                struct oj_error *err)
{
    int64_t end = array->offset + array->length;
    const struct ArrowArray *x, *y, *m;
    if (array->n_children < 2 || array->n_children > 4)
        return arrow_fail_mismatch(err);
    OJ_TRY(arrow_check_layout(array, 1, array->n_children, err));
    x = array->children[0];
    y = array->children[1];
    OJ_TRY(check_coordinate_buffer(x, end, err));
    OJ_TRY(check_coordinate_buffer(y, end, err));
    c->n_coordinates = array->length;
    c->stride = 1;
    if (array->length == 0)
        return OJ_OK;
    c->x = (const double *)x->buffers[1] + x->offset + array->offset;
    c->y = (const double *)y->buffers[1] + y->offset + array->offset;
    if (c->layout->m_ordinate == 0 ||
        c->layout->m_ordinate >= array->n_children)
        return OJ_OK;
    m = array->children[c->layout->m_ordinate];
    OJ_TRY(check_coordinate_buffer(m, end, err));
    c->m = (const double *)m->buffers[1] + m->offset + array->offset;
    return OJ_OK;
}

/* Reads a column of geoarrow coordinates. The offsets of each list, as
 * arrow_list_read() returns them, count from the first element of its child. */
static oj_status read_native_column(struct geometry_column *c,
                                    const struct ArrowArray *array,
                                    struct oj_error *err)
{
    const struct arrow_layout *layout = c->layout;
    int i;
    for (i = 0; i < layout->n_lists; i++)
    {
        OJ_TRY(arrow_list_read(array, layout->is_large[i], &c->list[i], err));
        OJ_TRY(check_no_nulls_inside_geometry(array, i == 0, err));
        array = array->children[0];
    }
    OJ_TRY(layout->is_interleaved ? read_interleaved(c, array, err)
                                  : read_separated(c, array, err));
    return check_no_nulls_inside_geometry(array, i == 0, err);
}

static oj_status read_column(const struct ArrowArray *array,
                             const struct arrow_layout *layout,
                             struct geometry_column *out, struct oj_error *err)
{
    const struct ArrowArray *column = NULL;
    OJ_TRY(arrow_find_column(array, layout->child, &column, &out->is, err));
    out->layout = layout;
    out->n_rows = array->length;
    if (layout->storage == ARROW_NOTHING)
        return OJ_OK;
    if (column->dictionary != NULL)
        return arrow_fail_mismatch(err);
    if (layout->storage == ARROW_COORDINATES)
        return read_native_column(out, column, err);
    return arrow_bytes_read(column, layout->format, out->is.skipped,
                            out->n_rows, &out->wkb, err);
}

/* --- geometries of rows --------------------------------------------------- */

static oj_status add_ring(const struct geometry_column *c,
                          struct oj_flat_buf *buf, int64_t first, int64_t end,
                          struct oj_error *err)
{
    double *x, *y, *m;
    int64_t n = end - first;
    OJ_TRY(oj_flat_buf_begin_ring(buf, err));
    OJ_TRY(oj_flat_buf_add_vertices(buf, n, &x, &y, err));
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = c->x[(first + i) * c->stride];
        y[i] = c->y[(first + i) * c->stride];
    }
    m = oj_flat_buf_last_m(buf, n);
    for (int64_t i = 0; m != NULL && c->m != NULL && i < n; i++)
        m[i] = oj_flat_clean_m_value(c->m[(first + i) * c->stride]);
    return OJ_OK;
}

/* Appends one part of a geometry: element `at` of the lists at nesting level i,
 * or for points coordinate `at`. */
static oj_status append_part_of_lists(const struct geometry_column *c,
                                      struct oj_flat_buf *buf, int i,
                                      int64_t at, struct oj_error *err)
{
    int64_t first = at, end = at + 1;
    OJ_TRY(oj_flat_buf_begin_part(buf, c->layout->kind, err));
    if (c->layout->kind != OJ_PART_POINT)
        first = arrow_list_range(&c->list[i], at, &end);
    if (c->layout->kind != OJ_PART_POLYGON)
        return add_ring(c, buf, first, end, err);
    for (int64_t ring = first; ring < end; ring++)
    {
        int64_t ring_end,
            ring_first = arrow_list_range(&c->list[i + 1], ring, &ring_end);
        OJ_TRY(add_ring(c, buf, ring_first, ring_end, err));
    }
    return OJ_OK;
}

static oj_status add_parts_of_row(const struct geometry_column *c,
                                  struct oj_flat_buf *buf, int64_t at,
                                  struct oj_error *err)
{
    int64_t first, end;
    if (!c->layout->is_multi)
        return append_part_of_lists(c, buf, 0, at, err);
    first = arrow_list_range(&c->list[0], at, &end);
    for (int64_t part = first; part < end; part++)
        OJ_TRY(append_part_of_lists(c, buf, 1, part, err));
    return OJ_OK;
}

static oj_status add_row_from_coordinates(const struct geometry_column *c,
                                          struct oj_flat_buf *buf, int64_t row,
                                          int64_t fid, struct oj_error *err)
{
    int64_t at = c->is.skipped + row, end = at + 1;
    int64_t first =
        c->layout->is_multi ? arrow_list_range(&c->list[0], at, &end) : at;
    oj_status status;
    if (c->layout->kind == OJ_PART_POINT && end == first + 1)
        return oj_flat_buf_add_point(buf, fid, c->x[first * c->stride],
                                     c->y[first * c->stride], err);
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    status = add_parts_of_row(c, buf, at, err);
    if (status == OJ_OK)
        status = oj_flat_buf_end_feature(buf, err);
    if (status != OJ_OK)
        oj_flat_buf_drop_feature(buf);
    return status;
}

static oj_status add_wkb(const struct geometry_column *c,
                         struct oj_flat_buf *buf, int64_t row, int64_t fid,
                         struct oj_error *err)
{
    const uint8_t *bytes;
    size_t n;
    OJ_TRY(arrow_bytes_of_row(&c->wkb, row, &bytes, &n, err));
    return oj_wkb_add(buf, fid, bytes, n, err);
}

static oj_status append_geometry_of_row(const struct geometry_column *c,
                                        struct oj_flat_buf *buf, int64_t row,
                                        struct oj_error *err)
{
    int64_t fid = c->first_fid + row;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    if (!arrow_is_valid(&c->is, row))
        return oj_flat_buf_add_null(buf, fid, err);
    status = c->layout->storage == ARROW_COORDINATES
                 ? add_row_from_coordinates(c, buf, row, fid, &why)
                 : add_wkb(c, buf, row, fid, &why);
    if (status == OJ_OK || status == OJ_ERR_NOMEM)
        return status == OJ_OK ? OJ_OK
                               : oj_fail(err, status, "%s", why.message);
    return oj_fail(err, status,
                   "row %lld: %.800s; correct its geometry, or make it NULL",
                   (long long)fid, why.message);
}

/* --- slices of rows, for threads ------------------------------------------ */

/** An array that is kept until the layer is complete. */
struct arrow_held
{
    struct ArrowArray array;
    struct geometry_column column;
};

/* Number of parts, rings and vertices of some rows; later their position: the
 * number in all previous rows. */
struct extent
{
    int64_t parts, rings, vertices;
};

struct arrow_slice
{
    const struct geometry_column *column;
    int64_t first, end;   /* range of rows in the column */
    struct extent extent; /* counts for the fast path of simple WKB */
};

struct reading
{
    const struct arrow_features *features;
    struct arrow_slice *slice;
    int64_t n_slices;
    int n_threads;
    const int *cancel;
    struct oj_flat_buf *to; /* the arrays of the layer, or a buffer for each
                               slice */
    atomic_int has_others;  /* 1: some geometry needs the general path */
    atomic_uint kinds;
    uint8_t *is_out; /* [rows] 1: the envelope of the feature is out of reach;
                        NULL: there is no reach */
};

static oj_status cut_rows_into_slices(struct reading *r, struct oj_error *err)
{
    const struct arrow_features *features = r->features;
    int64_t n = 0;
    for (int64_t i = 0; i < features->n_held; i++)
        n += features->held[i].column.n_rows / SLICE_ROWS + 1;
    OJ_NEW(r->slice, n, err);
    for (int64_t i = 0; i < features->n_held; i++)
    {
        const struct geometry_column *c = &features->held[i].column;
        int64_t n_here = c->n_rows / SLICE_ROWS + 1;
        for (int64_t k = 0; k < n_here; k++)
        {
            struct arrow_slice *p = &r->slice[r->n_slices++];
            memset(p, 0, sizeof *p);
            p->column = c;
            p->first = c->n_rows / n_here * k;
            p->end = k + 1 < n_here ? p->first + c->n_rows / n_here : c->n_rows;
        }
    }
    return OJ_OK;
}

/* Runs body for each slice on all threads. Each thread gets consecutive slices:
 * otherwise threads that write neighbouring slices of new memory would each
 * clear the huge page that they share, which took an eighth of the time for a
 * million points. */
static oj_status run_for_each_slice(struct reading *r,
                                    oj_status (*body)(int64_t i, int thread,
                                                      void *user,
                                                      struct oj_error *err),
                                    struct oj_error *err)
{
    int64_t at_once = (r->n_slices + r->n_threads - 1) / r->n_threads;
    return oj_parallel_try(r->n_threads, r->n_slices, at_once, body, r, err);
}

static oj_status append_geometries_of_slice(int64_t i, int thread, void *user,
                                            struct oj_error *err)
{
    const struct reading *r = user;
    const struct arrow_slice *p = &r->slice[i];
    (void)thread;
    OJ_TRY(oj_check_cancel(r->cancel, err));
    for (int64_t row = p->first; row < p->end; row++)
        OJ_TRY(append_geometry_of_row(p->column, &r->to[i], row, err));
    return OJ_OK;
}

/* --- fast path: coordinates used in place --------------------------------- */

/* Returns 1 if elements first .. end - 1 of the lists at level i are valid
 * rings or lines: none is empty, and rings are closed. */
static int are_rings_nonempty_and_closed(const struct geometry_column *c, int i,
                                         int64_t first, int64_t end)
{
    for (int64_t at = first; at < end; at++)
    {
        int64_t b, a = arrow_list_range(&c->list[i], at, &b);
        if (b == a)
            return 0;
        if (c->layout->kind == OJ_PART_POLYGON &&
            (b - a < 2 || c->x[a] != c->x[b - 1] || c->y[a] != c->y[b - 1]))
            return 0;
    }
    return 1;
}

/* Sets *out to a copy of n + 1 offsets of the lists at level i, from element
 * `first` on, less the first offset. Sets *begin and *end to the range of child
 * elements. i -1 (the geometries have no such lists): each element has one
 * child. */
static oj_status copy_offsets(const struct geometry_column *c, int i,
                              int64_t first, int64_t n, int64_t **out,
                              int64_t *begin, int64_t *end,
                              struct oj_error *err)
{
    int64_t at_end = first + n;
    *begin = first;
    OJ_NEW(*out, n + 1, err);
    if (i < 0)
    {
        for (int64_t k = 0; k <= n; k++)
            (*out)[k] = k;
        *end = first + n;
        return OJ_OK;
    }
    *begin = arrow_offset_at(c->list[i].offset, c->list[i].is_large,
                             c->list[i].first + first);
    for (int64_t k = 0; k <= n; k++)
    {
        at_end = arrow_offset_at(c->list[i].offset, c->list[i].is_large,
                                 c->list[i].first + first + k);
        (*out)[k] = at_end - *begin;
    }
    *end = at_end;
    return OJ_OK;
}

/* Uses the coordinates of an Arrow array in place, with offsets for parts,
 * rings and vertices. A level that the kind of geometry lacks gets one element
 * for each element of the level above. *fits is 0 if a row is not valid for a
 * layer. */
static oj_status view_shapes_in_place(const struct geometry_column *c,
                                      struct arrow_features *features,
                                      int *fits, struct oj_error *err)
{
    const struct arrow_layout *layout = c->layout;
    struct oj_flat_buf *made = &features->made;
    struct oj_flat *flat = &features->flat;
    int at = 0;
    int part = layout->is_multi ? at++ : -1;
    int ring = layout->kind == OJ_PART_POLYGON ? at++ : -1;
    int vertex = layout->kind != OJ_PART_POINT ? at : -1;
    int64_t p0, p1, r0, r1, v0, v1;
    OJ_TRY(copy_offsets(c, part, c->is.skipped, c->n_rows, &made->part_offset,
                        &p0, &p1, err));
    OJ_TRY(
        copy_offsets(c, ring, p0, p1 - p0, &made->ring_offset, &r0, &r1, err));
    OJ_TRY(copy_offsets(c, vertex, r0, r1 - r0, &made->vertex_offset, &v0, &v1,
                        err));
    *fits = oj_flat_are_coordinates_joinable(c->x + v0, v1 - v0) &&
            oj_flat_are_coordinates_joinable(c->y + v0, v1 - v0) &&
            (vertex < 0 || are_rings_nonempty_and_closed(c, vertex, r0, r1));
    for (int64_t i = 0; *fits && ring >= 0 && i < p1 - p0; i++)
        *fits = made->ring_offset[i + 1] > made->ring_offset[i];
    if (!*fits)
        return OJ_OK;
    OJ_NEW(made->part_kind, p1 - p0, err);
    memset(made->part_kind, (int)layout->kind, (size_t)(p1 - p0));
    flat->n_features = c->n_rows;
    flat->n_parts = p1 - p0;
    flat->n_rings = r1 - r0;
    flat->n_vertices = v1 - v0;
    flat->part_kinds = flat->n_parts > 0 ? (unsigned)layout->kind : 0;
    flat->part_offset = made->part_offset;
    flat->part_kind = made->part_kind;
    flat->ring_offset = made->ring_offset;
    flat->vertex_offset = made->vertex_offset;
    flat->x = c->x + v0;
    flat->y = c->y + v0;
    return OJ_OK;
}

static oj_status view_points_in_place(const struct geometry_column *c,
                                      struct arrow_features *features,
                                      int *fits)
{
    struct oj_flat *flat = &features->flat;
    const double *x = c->x + c->is.skipped, *y = c->y + c->is.skipped;
    *fits = oj_flat_are_coordinates_joinable(x, c->n_rows) &&
            oj_flat_are_coordinates_joinable(y, c->n_rows);
    flat->n_features = flat->n_parts = flat->n_rings = flat->n_vertices =
        c->n_rows;
    flat->part_kinds = OJ_PART_POINT;
    flat->x = x;
    flat->y = y;
    return OJ_OK;
}

/* --- fast path: WKB of simple geometries ---------------------------------- */

/* Reads a point from the WKB bytes xy into *x and *y. xy NULL: the row has no
 * point. Coordinates that a layer does not accept become NaN, so that the point
 * has no pairs. */
static void read_wkb_point_or_nan(const uint8_t *xy, double *x, double *y)
{
    *x = *y = NAN;
    if (xy == NULL)
        return;
    *x = oj_wkb_double(xy);
    *y = oj_wkb_double(xy + 8);
    if (!(fabs(*x) <= OJ_FLAT_MOST && fabs(*y) <= OJ_FLAT_MOST))
        *x = *y = NAN;
}

static oj_status read_wkb_points_of_slice(int64_t i, int thread, void *user,
                                          struct oj_error *err)
{
    struct reading *r = user;
    const struct geometry_column *c = r->slice[i].column;
    int64_t before = c->first_fid - r->features->first_fid;
    (void)thread;
    OJ_TRY(oj_check_cancel(r->cancel, err));
    for (int64_t row = r->slice[i].first;
         row < r->slice[i].end && !atomic_load(&r->has_others); row++)
    {
        const uint8_t *bytes = NULL;
        size_t n_bytes;
        if (arrow_is_valid(&c->is, row))
        {
            OJ_TRY(arrow_bytes_of_row(&c->wkb, row, &bytes, &n_bytes, err));
            bytes = oj_wkb_plain_point(bytes, n_bytes);
            if (bytes == NULL)
                atomic_store(&r->has_others, 1);
        }
        read_wkb_point_or_nan(bytes, &r->to->x[before + row],
                              &r->to->y[before + row]);
    }
    return OJ_OK;
}

/* Views the points read so far as a layer. */
static void view_read_points_as_layer(const struct reading *r,
                                      struct oj_flat *flat)
{
    flat->n_features = flat->n_parts = flat->n_rings = flat->n_vertices =
        r->features->n_rows;
    flat->part_kinds = OJ_PART_POINT;
    flat->x = r->to->x;
    flat->y = r->to->y;
}

/* Fast path for WKB that contains only two-dimensional points and NULLs. Sets
 * r->has_others to 1 if the rows have other WKB, so that *flat cannot be used.
 */
static oj_status read_wkb_points(struct reading *r, struct oj_flat *flat,
                                 struct oj_error *err)
{
    int64_t n = r->features->n_rows;
    OJ_NEW(r->to->x, n, err);
    OJ_NEW(r->to->y, n, err);
    OJ_TRY(run_for_each_slice(r, read_wkb_points_of_slice, err));
    view_read_points_as_layer(r, flat);
    return OJ_OK;
}

enum
{
    WKB_LINE = 2,
    WKB_POLYGON = 3,
    WKB_MULTI = 3 /* offset between the WKB type of a multi geometry and that of
                     its members */
};

/* Cursor in simple WKB: little-endian lines and polygons, single or multi. */
struct plain_wkb
{
    const uint8_t *at, *end;
    struct extent extent;   /* counts so far */
    struct oj_flat_buf *to; /* arrays to write to; NULL: only count */
    int is_taken;           /* 0: a coordinate is out of range */
    unsigned kinds;
    int makes_box;     /* 1: counting makes the envelope, too */
    struct oj_box box; /* envelope of the rings of the current row */
};

static int read_u32(struct plain_wkb *w, uint32_t *out)
{
    const uint8_t *at = w->at;
    if (w->end - at < 4)
        return 0;
    w->at += 4;
    *out = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
    return 1;
}

static int read_wkb_type(struct plain_wkb *w, uint32_t *type)
{
    return w->at < w->end && *w->at++ == 1 && read_u32(w, type);
}

static void put_wkb_vertices(struct plain_wkb *w, const uint8_t *from,
                             int64_t n)
{
    double *x = w->to->x + w->extent.vertices;
    double *y = w->to->y + w->extent.vertices;
    int is_taken = 1;
    for (int64_t i = 0; i < n; i++)
    {
        x[i] = oj_wkb_double(from + 16 * i);
        y[i] = oj_wkb_double(from + 16 * i + 8);
        is_taken &= (fabs(x[i]) <= OJ_FLAT_MOST) & (fabs(y[i]) <= OJ_FLAT_MOST);
    }
    w->is_taken &= is_taken;
    w->to->vertex_offset[w->extent.rings + 1] = w->extent.vertices + n;
}

/* Extends the envelope by n vertices. */
static void add_vertices_to_box(struct plain_wkb *w, const uint8_t *from,
                                int64_t n)
{
    struct oj_box box = w->box;
    int is_taken = 1;
    for (int64_t i = 0; i < n; i++)
    {
        double x = oj_wkb_double(from + 16 * i);
        double y = oj_wkb_double(from + 16 * i + 8);
        box.x0 = x < box.x0 ? x : box.x0;
        box.y0 = y < box.y0 ? y : box.y0;
        box.x1 = x > box.x1 ? x : box.x1;
        box.y1 = y > box.y1 ? y : box.y1;
        is_taken &= (fabs(x) <= OJ_FLAT_MOST) & (fabs(y) <= OJ_FLAT_MOST);
    }
    w->is_taken &= is_taken;
    w->box = box;
}

/* Reads a ring or line. Returns 0 if it is truncated or not valid for a layer.
 */
static int read_wkb_ring(struct plain_wkb *w, int is_closed)
{
    const uint8_t *last;
    uint32_t n;
    if (!read_u32(w, &n) || n < 1u + (unsigned)is_closed ||
        n > (size_t)(w->end - w->at) / 16)
        return 0;
    last = w->at + 16 * (size_t)(n - 1);
    if (is_closed && (oj_wkb_double(w->at) != oj_wkb_double(last) ||
                      oj_wkb_double(w->at + 8) != oj_wkb_double(last + 8)))
        return 0;
    if (w->to != NULL)
        put_wkb_vertices(w, w->at, n);
    else if (w->makes_box)
        add_vertices_to_box(w, w->at, n);
    w->at = last + 16;
    w->extent.vertices += n;
    w->extent.rings++;
    return 1;
}

static int read_wkb_part(struct plain_wkb *w, uint32_t type)
{
    unsigned kind = type == WKB_LINE ? OJ_PART_LINE : OJ_PART_POLYGON;
    uint32_t n_rings = 1;
    if ((type != WKB_LINE && type != WKB_POLYGON) ||
        (type == WKB_POLYGON && (!read_u32(w, &n_rings) || n_rings == 0)))
        return 0;
    for (uint32_t i = 0; i < n_rings; i++)
    {
        if (!read_wkb_ring(w, type == WKB_POLYGON))
            return 0;
    }
    if (w->to != NULL)
    {
        w->to->part_kind[w->extent.parts] = (uint8_t)kind;
        w->to->ring_offset[w->extent.parts + 1] = w->extent.rings;
    }
    w->kinds |= kind;
    w->extent.parts++;
    return 1;
}

static int read_wkb_shape(struct plain_wkb *w)
{
    uint32_t type, member, n = 1;
    if (!read_wkb_type(w, &type))
        return 0;
    if (type <= WKB_MULTI)
        return read_wkb_part(w, type) && w->at == w->end;
    if (!read_u32(w, &n) || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
    {
        if (!read_wkb_type(w, &member) || member != type - WKB_MULTI ||
            !read_wkb_part(w, member))
            return 0;
    }
    return w->at == w->end;
}

/* Writes the geometry of a row or, if w->to is NULL, counts its parts, rings
 * and vertices. While counting, a feature out of reach gets no parts; it is
 * marked in r->is_out and counted in *n_out. Returns 0 if the WKB is not in
 * this simple form. */
static int read_wkb_shape_if_in_reach(struct plain_wkb *w,
                                      const struct reading *r, int64_t row,
                                      int64_t *n_out)
{
    const struct extent before = w->extent;
    if (w->to != NULL)
        return (r->is_out != NULL && r->is_out[row]) || read_wkb_shape(w);
    w->box = oj_box_empty();
    if (!read_wkb_shape(w))
        return 0;
    if (w->makes_box &&
        !oj_reach_mask_meets_box(&r->features->reach->mask, &w->box))
    {
        r->is_out[row] = 1;
        (*n_out)++;
        w->extent = before;
    }
    return 1;
}

/* First pass: counts the geometries of a slice. Second pass: writes them to the
 * arrays of the layer, from the position in the slice's extent on. */
static oj_status read_wkb_shapes_of_slice(int64_t i, int thread, void *user,
                                          struct oj_error *err)
{
    struct reading *r = user;
    struct arrow_slice *p = &r->slice[i];
    int64_t before = p->column->first_fid - r->features->first_fid;
    struct plain_wkb w = {.extent = p->extent,
                          .to = r->to,
                          .is_taken = 1,
                          .makes_box = r->to == NULL && r->is_out != NULL};
    int64_t n_out = 0;
    (void)thread;
    OJ_TRY(oj_check_cancel(r->cancel, err));
    for (int64_t row = p->first; row < p->end; row++)
    {
        size_t n;
        if (arrow_is_valid(&p->column->is, row))
        {
            OJ_TRY(arrow_bytes_of_row(&p->column->wkb, row, &w.at, &n, err));
            w.end = w.at + n;
            if (atomic_load(&r->has_others) ||
                !read_wkb_shape_if_in_reach(&w, r, before + row, &n_out))
            {
                atomic_store(&r->has_others, 1);
                return OJ_OK;
            }
        }
        if (row - p->first == SAMPLED_ROWS && n_out < SAMPLED_ROWS / 2)
            w.makes_box = 0;
        if (w.to != NULL)
            w.to->part_offset[before + row + 1] = w.extent.parts;
    }
    if (!w.is_taken)
        atomic_store(&r->has_others, 1);
    p->extent = w.extent;
    atomic_fetch_or(&r->kinds, w.kinds);
    return OJ_OK;
}

/* Replaces the counts of each slice by their position, the sum of all previous
 * counts. Returns the total. */
static struct extent prefix_sum_extents(struct reading *r)
{
    struct extent all = {0, 0, 0};
    for (int64_t i = 0; i < r->n_slices; i++)
    {
        struct extent here = r->slice[i].extent;
        r->slice[i].extent = all;
        all.parts += here.parts;
        all.rings += here.rings;
        all.vertices += here.vertices;
    }
    return all;
}

static oj_status allocate_layer_arrays(struct oj_flat_buf *to,
                                       struct oj_error *err)
{
    OJ_NEW(to->x, to->n_vertices, err);
    OJ_NEW(to->y, to->n_vertices, err);
    if (!to->long_form)
        return OJ_OK;
    if (to->keeps_m)
        OJ_NEW(to->m, to->n_vertices, err);
    OJ_NEW(to->part_offset, to->n_features + 1, err);
    OJ_NEW(to->part_kind, to->n_parts, err);
    OJ_NEW(to->ring_offset, to->n_parts + 1, err);
    OJ_NEW(to->vertex_offset, to->n_rings + 1, err);
    to->part_offset[0] = to->ring_offset[0] = to->vertex_offset[0] = 0;
    return OJ_OK;
}

/* Allocates is_out, in which features out of reach are marked. When called for
 * the first rows, also makes the mask of the reach, if it saves time. */
static oj_status prepare_reach_mask_and_marks(struct reading *r,
                                              struct oj_error *err)
{
    struct arrow_reach *reach = r->features->reach;
    int64_t n = r->features->n_rows;
    if (reach == NULL)
        return OJ_OK;
    if (!reach->is_made &&
        reach->join_side->n_vertices / REACH_VERTICES_PER_ROW <= n)
        OJ_TRY(oj_reach_mask_make(&reach->mask, reach->join_side, 0.0, err));
    reach->is_made = 1;
    if (reach->mask.bit != NULL)
        OJ_NEW_ZEROED(r->is_out, n, err);
    return OJ_OK;
}

/* Fast path for WKB that contains only simple geometries and NULLs. Sets
 * r->has_others to 1 if the rows have other WKB, so that *flat cannot be used.
 */
static oj_status read_wkb_shapes(struct reading *r, struct oj_flat *flat,
                                 struct oj_error *err)
{
    struct oj_flat_buf *to = r->to;
    struct extent all;
    OJ_TRY(prepare_reach_mask_and_marks(r, err));
    r->to = NULL;
    OJ_TRY(run_for_each_slice(r, read_wkb_shapes_of_slice, err));
    r->to = to;
    if (atomic_load(&r->has_others))
        return OJ_OK;
    all = prefix_sum_extents(r);
    to->long_form = 1;
    to->n_features = r->features->n_rows;
    to->n_parts = all.parts;
    to->n_rings = all.rings;
    to->n_vertices = all.vertices;
    to->part_kinds = atomic_load(&r->kinds);
    OJ_TRY(allocate_layer_arrays(to, err));
    OJ_TRY(run_for_each_slice(r, read_wkb_shapes_of_slice, err));
    *flat = oj_flat_buf_view(to);
    return OJ_OK;
}

/* --- general path: slices concatenated into a layer ----------------------- */

static void copy_offsets_shifted(int64_t *to, const int64_t *from, int64_t n,
                                 int64_t shift)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i] + shift;
}

/* Copies n items; from may be NULL if n is 0. */
static void copy_items(void *to, const void *from, int64_t n, size_t size)
{
    if (n > 0)
        memcpy(to, from, (size_t)n * size);
}

struct joined_slices
{
    struct oj_flat_buf *slice;
    struct oj_flat_buf *to;
    struct oj_flat_buf *first; /* [slices] position of each slice: number of
                                  items in all previous slices */
};

static void copy_slice_into_layer(int64_t i, int thread, void *user)
{
    const struct joined_slices *all = user;
    const struct oj_flat_buf *from = &all->slice[i], *at = &all->first[i];
    struct oj_flat_buf *to = all->to;
    (void)thread;
    copy_items(to->x + at->n_vertices, from->x, from->n_vertices,
               sizeof *to->x);
    copy_items(to->y + at->n_vertices, from->y, from->n_vertices,
               sizeof *to->y);
    if (!to->long_form)
        return;
    if (to->keeps_m)
        copy_items(to->m + at->n_vertices, from->m, from->n_vertices,
                   sizeof *to->m);
    copy_items(to->part_kind + at->n_parts, from->part_kind, from->n_parts, 1);
    copy_offsets_shifted(to->part_offset + at->n_features + 1,
                         from->part_offset + 1, from->n_features, at->n_parts);
    copy_offsets_shifted(to->ring_offset + at->n_parts + 1,
                         from->ring_offset + 1, from->n_parts, at->n_rings);
    copy_offsets_shifted(to->vertex_offset + at->n_rings + 1,
                         from->vertex_offset + 1, from->n_rings,
                         at->n_vertices);
}

/* Converts a slice of single points to the form with parts (long_form), unless
 * it has this form already. */
static oj_status convert_points_to_parts(struct oj_flat_buf *slice,
                                         struct oj_error *err)
{
    if (slice->long_form)
        return OJ_OK;
    OJ_TRY(oj_flat_buf_begin_feature(slice, 0, err));
    oj_flat_buf_drop_feature(slice);
    return OJ_OK;
}

static oj_status concatenate_slices(const struct reading *r,
                                    struct oj_flat_buf *slice,
                                    struct oj_flat_buf *first,
                                    struct oj_error *err)
{
    struct oj_flat_buf *to = r->to;
    struct joined_slices all = {slice, to, first};
    to->keeps_m = r->features->keeps_m;
    for (int64_t i = 0; i < r->n_slices; i++)
        to->long_form |= slice[i].long_form;
    for (int64_t i = 0; i < r->n_slices; i++)
    {
        if (to->long_form)
            OJ_TRY(convert_points_to_parts(&slice[i], err));
        first[i] = *to;
        to->n_features += slice[i].n_features;
        to->n_parts += slice[i].n_parts;
        to->n_rings += slice[i].n_rings;
        to->n_vertices += slice[i].n_vertices;
        to->part_kinds |= slice[i].part_kinds;
    }
    OJ_TRY(allocate_layer_arrays(to, err));
    oj_parallel_for(r->n_threads, r->n_slices, copy_slice_into_layer, &all);
    return OJ_OK;
}

static oj_status read_slices(struct reading *r, struct oj_flat *flat,
                             struct oj_error *err)
{
    struct oj_flat_buf *slice, *first = NULL, *to = r->to;
    oj_status status;
    OJ_NEW_ZEROED(slice, r->n_slices, err);
    for (int64_t i = 0; i < r->n_slices; i++)
        slice[i].keeps_m = r->features->keeps_m;
    r->to = slice;
    status = run_for_each_slice(r, append_geometries_of_slice, err);
    r->to = to;
    if (status == OJ_OK)
    {
        first = oj_malloc(r->n_slices, sizeof *first);
        status = first != NULL ? concatenate_slices(r, slice, first, err)
                               : oj_fail_nomem(err, r->n_slices, sizeof *first);
    }
    for (int64_t i = 0; i < r->n_slices; i++)
        oj_flat_buf_free(&slice[i]);
    oj_free(slice);
    oj_free(first);
    if (status == OJ_OK)
        *flat = oj_flat_buf_view(to);
    return status;
}

/* --- arrays --------------------------------------------------------------- */

static oj_status add_array(struct arrow_features *features,
                           const struct arrow_layout *layout,
                           const struct ArrowArray *array, struct oj_error *err)
{
    struct arrow_held *held;
    OJ_ROOM(features->held, features->n_held, features->n_held + 1,
            features->cap_held, err);
    held = &features->held[features->n_held];
    memset(held, 0, sizeof *held);
    held->column.first_fid = features->first_fid + features->n_rows;
    OJ_TRY(read_column(array, layout, &held->column, err));
    if (held->column.n_rows > INT32_MAX - features->n_rows)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a layer can have at most %d features: split it",
                       INT32_MAX);
    features->n_rows += held->column.n_rows;
    return OJ_OK;
}

oj_status arrow_features_add(struct arrow_features *features,
                             const struct arrow_layout *layout,
                             struct ArrowArray *array, struct oj_error *err)
{
    oj_status status = add_array(features, layout, array, err);
    if (status != OJ_OK || features->held[features->n_held].column.n_rows == 0)
        oj_arrow_array_release(array);
    else
        features->held[features->n_held++].array = *array;
    array->release = NULL;
    return status;
}

static void release_held_arrays(struct arrow_features *features)
{
    for (int64_t i = 0; i < features->n_held; i++)
        oj_arrow_array_release(&features->held[i].array);
    oj_free(features->held);
    features->held = NULL;
    features->n_held = features->cap_held = 0;
}

/* Discards what was read, before everything is read in another way. */
static void discard_layer_read(struct reading *r, struct oj_flat *flat)
{
    oj_flat_buf_free(r->to);
    memset(flat, 0, sizeof *flat);
    for (int64_t i = 0; i < r->n_slices; i++)
        memset(&r->slice[i].extent, 0, sizeof r->slice[i].extent);
    atomic_store(&r->has_others, 0);
}

/* Makes a layer in which all points are NaN (no geometry). */
static oj_status fill_layer_of_missing_points(struct reading *r,
                                              struct oj_flat *flat,
                                              struct oj_error *err)
{
    int64_t n = r->features->n_rows;
    OJ_NEW(r->to->x, n, err);
    OJ_NEW(r->to->y, n, err);
    for (int64_t i = 0; i < n; i++)
        r->to->x[i] = r->to->y[i] = NAN;
    view_read_points_as_layer(r, flat);
    return OJ_OK;
}

static oj_status read_wkb(struct reading *r, struct oj_flat *flat,
                          struct oj_error *err)
{
    OJ_TRY(read_wkb_points(r, flat, err));
    if (!atomic_load(&r->has_others))
        return OJ_OK;
    discard_layer_read(r, flat);
    OJ_TRY(read_wkb_shapes(r, flat, err));
    if (!atomic_load(&r->has_others))
        return OJ_OK;
    discard_layer_read(r, flat);
    atomic_store(&r->has_others, 1);
    return read_slices(r, flat, err);
}

/* Finds the first row from *row on that is not NULL, and the SRID of its WKB.
 * *row becomes the number of rows if there is none. */
static oj_status find_srid(const struct geometry_column *c, int64_t *row,
                           int64_t *srid, struct oj_error *err)
{
    const uint8_t *bytes;
    size_t n;
    while (*row < c->n_rows && !arrow_is_valid(&c->is, *row))
        (*row)++;
    if (*row == c->n_rows)
        return OJ_OK;
    OJ_TRY(arrow_bytes_of_row(&c->wkb, *row, &bytes, &n, err));
    *srid = oj_wkb_srid(bytes, n);
    return OJ_OK;
}

static void add_srid(struct arrow_features *features, int64_t number,
                     int64_t row)
{
    const struct oj_arrow_srid here = {0, 1, number, row};
    if (!features->srid.is_found)
        features->srid = here;
    else if (features->srid.number != number && !features->other.is_found)
        features->other = here;
}

/* Sets features->srid and features->other. is_plain 1: no row has an SRID, so
 * that the first geometry suffices. */
static oj_status find_srids(struct arrow_features *features, int is_plain,
                            struct oj_error *err)
{
    for (int64_t i = 0; i < features->n_held; i++)
    {
        const struct geometry_column *c = &features->held[i].column;
        for (int64_t row = 0; row < c->n_rows; row++)
        {
            int64_t number = 0;
            OJ_TRY(find_srid(c, &row, &number, err));
            if (row < c->n_rows)
                add_srid(features, number, c->first_fid + row);
            if (row < c->n_rows && is_plain)
                return OJ_OK;
        }
    }
    return OJ_OK;
}

oj_status arrow_features_first_srid(const struct arrow_layout *layout,
                                    const struct ArrowArray *array,
                                    int64_t *srid, struct oj_error *err)
{
    struct geometry_column c;
    int64_t row = 0, number = layout->storage == ARROW_COORDINATES ? 0 : -1;
    memset(&c, 0, sizeof c);
    if (layout->storage == ARROW_WKB)
    {
        OJ_TRY(read_column(array, layout, &c, err));
        OJ_TRY(find_srid(&c, &row, &number, err));
    }
    *srid = number;
    return OJ_OK;
}

/* Fast path for a single array: uses its coordinates without a copy. *fits is 0
 * if that is not possible. */
static oj_status use_arrow_coordinates_in_place(struct arrow_features *features,
                                                int *fits, struct oj_error *err)
{
    const struct geometry_column *c = &features->held[0].column;
    const struct arrow_layout *layout = c->layout;
    oj_status status = OJ_OK;
    *fits = 0;
    if (features->keeps_m && c->m != NULL)
        return OJ_OK;
    if (features->n_held == 1 && c->n_coordinates > 0 &&
        !layout->is_interleaved && c->is.valid == NULL &&
        c->is.outer_valid == NULL)
        status = layout->n_lists == 0
                     ? view_points_in_place(c, features, fits)
                     : view_shapes_in_place(c, features, fits, err);
    if (status != OJ_OK || !*fits)
    {
        oj_flat_buf_free(&features->made);
        memset(&features->flat, 0, sizeof features->flat);
    }
    return status;
}

oj_status arrow_features_make_layer(struct arrow_features *features,
                                    int n_threads, const int *cancel,
                                    struct oj_error *err)
{
    struct reading r = {.features = features,
                        .n_threads = n_threads,
                        .cancel = cancel,
                        .to = &features->made};
    enum arrow_storage storage;
    oj_status status;
    int fits;
    features->flat = oj_flat_buf_view(&features->made);
    if (features->n_held == 0)
        return OJ_OK;
    storage = features->held[0].column.layout->storage;
    if (storage == ARROW_COORDINATES)
        features->srid.is_found = 1; /* none */
    OJ_TRY(use_arrow_coordinates_in_place(features, &fits, err));
    if (fits)
        return OJ_OK;
    atomic_init(&r.has_others, 0);
    atomic_init(&r.kinds, 0);
    status = cut_rows_into_slices(&r, err);
    if (status == OJ_OK)
        status = storage == ARROW_COORDINATES
                     ? read_slices(&r, &features->flat, err)
                 : storage == ARROW_WKB
                     ? read_wkb(&r, &features->flat, err)
                     : fill_layer_of_missing_points(&r, &features->flat, err);
    if (status == OJ_OK && storage == ARROW_WKB)
        status = find_srids(features, !atomic_load(&r.has_others), err);
    oj_free(r.slice);
    oj_free(r.is_out);
    release_held_arrays(features);
    return status;
}

void arrow_features_free(struct arrow_features *features)
{
    oj_flat_buf_free(&features->made);
    release_held_arrays(features);
    memset(features, 0, sizeof *features);
}
