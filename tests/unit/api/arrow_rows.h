/* Random geometries, as Arrow arrays of every format and as a flat layer. */
#ifndef ARROW_ROWS_H
#define ARROW_ROWS_H

#include "../../../algs/api/arrow/arrow_abi.h"
#include "../../../flatten/arrays/oj_wkb.h"
#include "../random_numbers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void rows_must(oj_status status)
{
    if (status != OJ_OK)
        abort();
}

enum
{
    MOST_ROWS = 40,
    MOST_PARTS = 3 * MOST_ROWS,
    MOST_RINGS = 2 * MOST_PARTS,
    MOST_VERTICES = 8 * MOST_RINGS
};

/* Rows of one geometry type. A point is stored as a part with one ring of one
 * vertex. */
struct arrow_rows
{
    enum oj_part_kind kind;
    int is_multi;
    int n_rows;
    int64_t part[MOST_ROWS + 1], ring[MOST_PARTS + 1], vertex[MOST_RINGS + 1];
    double x[MOST_VERTICES], y[MOST_VERTICES];
    int is_null[MOST_ROWS];
};

enum arrow_form
{
    FORM_BINARY,
    FORM_LARGE_BINARY,
    FORM_VIEW,
    FORM_SEPARATED,
    FORM_INTERLEAVED
};

struct arrow_options
{
    enum arrow_form form;
    int n_ordinates; /* 2 to 4 */
    int is_large;    /* lists */
    int skip; /* number of elements before row 0, given as the array's offset */
    int is_column; /* 1: the geometries are a column of a struct, beside another
                      column */
    int has_nulls;
};

static inline void add_random_ring(struct arrow_rows *rows, int64_t *n_rings,
                                   int is_closed, int is_clean)
{
    int64_t n = rows->vertex[*n_rings], first = n;
    int n_vertices = rows->kind == OJ_PART_POINT ? 1 : 3 + pick(4);
    double x = pick(50), y = pick(50);
    if (!is_clean && rows->kind != OJ_PART_POINT && pick(12) == 0)
        n_vertices = 0;
    for (int v = 0; v < n_vertices; v++, n++)
    {
        rows->x[n] = x + (v % 3) * 2 + v;
        rows->y[n] = y + (v % 2) * 3 + v;
        if (!is_clean && pick(60) == 0)
            rows->x[n] = 1e200;
    }
    if (is_closed && n_vertices > 0 && (is_clean || pick(5) != 0))
    {
        rows->x[n] = rows->x[first];
        rows->y[n] = rows->y[first];
        n++;
    }
    rows->vertex[++*n_rings] = n;
}

/* Makes random rows. is_clean 1: a layer can use the coordinates in place,
 * without a copy. */
static inline void make_rows(struct arrow_rows *rows, enum oj_part_kind kind,
                             int is_multi, int n_rows, int is_clean)
{
    int64_t n_parts = 0, n_rings = 0;
    memset(rows, 0, sizeof *rows);
    rows->kind = kind;
    rows->is_multi = is_multi;
    rows->n_rows = n_rows;
    for (int row = 0; row < n_rows; row++)
    {
        int here = is_multi ? pick(4) : 1;
        rows->is_null[row] = pick(5) == 0;
        for (int p = 0; p < here; p++)
        {
            int n = kind == OJ_PART_POLYGON ? 1 + pick(2) : 1;
            for (int r = 0; r < n; r++)
                add_random_ring(rows, &n_rings, kind == OJ_PART_POLYGON,
                                is_clean);
            rows->ring[++n_parts] = n_rings;
        }
        rows->part[row + 1] = n_parts;
    }
}

/* --- arrays ----------------------------------------------------------------
 */

static inline void release_node(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
    {
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    for (int64_t i = 0; i < array->n_buffers; i++)
        free((void *)array->buffers[i]);
    free(array->children);
    free(array->buffers);
    array->release = NULL;
}

static inline void init_node(struct ArrowArray *array, int64_t length,
                             int n_buffers, int n_children)
{
    memset(array, 0, sizeof *array);
    array->length = length;
    array->n_buffers = n_buffers;
    array->buffers = calloc((size_t)n_buffers + 1, sizeof *array->buffers);
    array->n_children = n_children;
    array->children = calloc((size_t)n_children + 1, sizeof *array->children);
    for (int i = 0; i < n_children; i++)
        array->children[i] = calloc(1, sizeof **array->children);
    array->release = release_node;
}

static inline void *copy_bytes(const void *from, size_t n)
{
    void *to = malloc(n + 1);
    memcpy(to, from, n);
    return to;
}

static inline void *make_offsets(const int64_t *from, int64_t n, int is_large)
{
    int32_t *small;
    if (is_large)
        return copy_bytes(from, (size_t)(n + 1) * sizeof *from);
    small = malloc((size_t)(n + 1) * sizeof *small);
    for (int64_t i = 0; i <= n; i++)
        small[i] = (int32_t)from[i];
    return small;
}

static inline void make_coordinates(const struct arrow_rows *rows,
                                    const struct arrow_options *options,
                                    int64_t n, struct ArrowArray *out)
{
    int d = options->n_ordinates;
    if (options->form == FORM_INTERLEAVED)
    {
        double *xy = calloc((size_t)(n * d) + 1, sizeof *xy);
        for (int64_t i = 0; i < n; i++)
        {
            xy[i * d] = rows->x[i];
            xy[i * d + 1] = rows->y[i];
        }
        init_node(out, n, 1, 1);
        init_node(out->children[0], n * d, 2, 0);
        out->children[0]->buffers[1] = xy;
        return;
    }
    init_node(out, n, 1, d);
    for (int i = 0; i < d; i++)
    {
        const double *from = i == 0 ? rows->x : rows->y;
        init_node(out->children[i], n, 2, 0);
        out->children[i]->buffers[1] =
            copy_bytes(from, (size_t)n * sizeof *from);
    }
}

/* Stores, for each level of nested lists from the outermost on, its offsets and
 * its number n of lists. Returns the number of levels. */
static inline int list_levels(const struct arrow_rows *rows,
                              const int64_t *offset[3], int64_t n[3])
{
    int64_t n_parts = rows->part[rows->n_rows], n_rings = rows->ring[n_parts];
    int levels = 0;
    if (rows->is_multi)
    {
        offset[levels] = rows->part;
        n[levels++] = rows->n_rows;
    }
    if (rows->kind == OJ_PART_POLYGON)
    {
        offset[levels] = rows->ring;
        n[levels++] = n_parts;
    }
    if (rows->kind != OJ_PART_POINT)
    {
        offset[levels] = rows->vertex;
        n[levels++] = n_rings;
    }
    return levels;
}

static inline void make_native(const struct arrow_rows *rows,
                               const struct arrow_options *options,
                               struct ArrowArray *out)
{
    const int64_t *offset[3];
    int64_t n[3];
    int levels = list_levels(rows, offset, n);
    int64_t n_rings = rows->ring[rows->part[rows->n_rows]];
    for (int i = 0; i < levels; i++)
    {
        init_node(out, n[i], 2, 1);
        out->buffers[1] = make_offsets(offset[i], n[i], options->is_large);
        out = out->children[0];
    }
    make_coordinates(rows, options, rows->vertex[n_rings], out);
}

/* Appends a row to buf as a feature. */
static inline void flatten_row(const struct arrow_rows *rows, int row,
                               int64_t fid, struct oj_flat_buf *buf)
{
    int64_t first = rows->part[row], end = rows->part[row + 1];
    int64_t v = rows->vertex[rows->ring[first]];
    if (rows->kind == OJ_PART_POINT && end == first + 1)
    {
        rows_must(
            oj_flat_buf_add_point(buf, fid, rows->x[v], rows->y[v], NULL));
        return;
    }
    rows_must(oj_flat_buf_begin_feature(buf, fid, NULL));
    for (int64_t p = first; p < end; p++)
    {
        rows_must(oj_flat_buf_begin_part(buf, rows->kind, NULL));
        for (int64_t r = rows->ring[p]; r < rows->ring[p + 1]; r++)
        {
            double *x, *y;
            int64_t n = rows->vertex[r + 1] - rows->vertex[r];
            rows_must(oj_flat_buf_begin_ring(buf, NULL));
            rows_must(oj_flat_buf_add_vertices(buf, n, &x, &y, NULL));
            for (int64_t k = 0; k < n; k++)
            {
                x[k] = rows->x[rows->vertex[r] + k];
                y[k] = rows->y[rows->vertex[r] + k];
            }
        }
    }
    rows_must(oj_flat_buf_end_feature(buf, NULL));
}

static inline void put_view(uint8_t *view, const uint8_t *bytes, int32_t n,
                            int32_t block, int32_t at)
{
    memset(view, 0, 16);
    memcpy(view, &n, 4);
    memcpy(view + 4, bytes, n <= 12 ? (size_t)n : 4);
    if (n > 12)
    {
        memcpy(view + 8, &block, 4);
        memcpy(view + 12, &at, 4);
    }
}

/* Writes each row as WKB. With views, every second row is in a second data
 * block. */
static inline void make_wkb(const struct arrow_rows *rows,
                            const struct arrow_options *options,
                            struct ArrowArray *out)
{
    struct oj_flat_buf buf = {0};
    int64_t offset[MOST_ROWS + 1] = {0}, at = 0, used[2] = {0, 0};
    uint8_t *bytes, *block[2], *views;
    struct oj_flat flat;
    for (int row = 0; row < rows->n_rows; row++)
        flatten_row(rows, row, row, &buf);
    flat = oj_flat_buf_view(&buf);
    for (int row = 0; row < rows->n_rows; row++)
    {
        offset[row] = at;
        at += oj_wkb_size(&flat, row, rows->is_multi);
    }
    offset[rows->n_rows] = at;
    bytes = malloc((size_t)at + 1);
    for (int row = 0; row < rows->n_rows; row++)
        if (offset[row + 1] > offset[row])
            oj_wkb_write(&flat, row, rows->is_multi, bytes + offset[row]);
    if (options->form != FORM_VIEW)
    {
        init_node(out, rows->n_rows, 3, 0);
        out->buffers[1] = make_offsets(offset, rows->n_rows,
                                       options->form == FORM_LARGE_BINARY);
        out->buffers[2] = bytes;
        oj_flat_buf_free(&buf);
        return;
    }
    init_node(out, rows->n_rows, 5, 0);
    views = malloc(16 * (size_t)rows->n_rows + 1);
    block[0] = malloc((size_t)at + 1);
    block[1] = malloc((size_t)at + 1);
    for (int row = 0; row < rows->n_rows; row++)
    {
        int b = row % 2;
        int64_t n = offset[row + 1] - offset[row];
        memcpy(block[b] + used[b], bytes + offset[row], (size_t)n);
        put_view(views + 16 * row, bytes + offset[row], (int32_t)n, b,
                 (int32_t)used[b]);
        used[b] += n;
    }
    out->buffers[1] = views;
    out->buffers[2] = block[0];
    out->buffers[3] = block[1];
    out->buffers[4] = copy_bytes(used, sizeof used);
    free(bytes);
    oj_flat_buf_free(&buf);
}

/* Returns 1 if the row is NULL in the array. */
static inline int is_null_row(const struct arrow_rows *rows,
                              const struct arrow_options *options, int row)
{
    return options->has_nulls && rows->is_null[row];
}

static inline void set_nulls(const struct arrow_rows *rows,
                             const struct arrow_options *options,
                             struct ArrowArray *array)
{
    uint8_t *valid = calloc(MOST_ROWS / 8 + 1, 1);
    for (int row = 0; row < rows->n_rows; row++)
    {
        if (!is_null_row(rows, options, row))
            valid[row / 8] |= (uint8_t)(1 << row % 8);
    }
    array->buffers[0] = valid;
    array->null_count = -1; /* -1: not computed, as Arrow allows */
}

static inline void make_array(const struct arrow_rows *rows,
                              const struct arrow_options *options,
                              struct ArrowArray *out)
{
    struct ArrowArray *column = out;
    if (options->is_column)
    {
        init_node(out, rows->n_rows, 1, 2);
        init_node(out->children[0], rows->n_rows, 2, 0);
        column = out->children[1];
    }
    if (options->form >= FORM_SEPARATED)
        make_native(rows, options, column);
    else
        make_wkb(rows, options, column);
    if (options->has_nulls)
        set_nulls(rows, options, column);
    out->offset = options->skip;
    out->length = rows->n_rows - options->skip;
}

/* --- schemas ---------------------------------------------------------------
 */

/* A schema with all the memory that it needs. */
struct arrow_schema
{
    struct ArrowSchema node[12];
    struct ArrowSchema *child[12];
    char metadata[100];
    char width[8];
    int n;
};

static inline void release_nothing(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static inline struct ArrowSchema *add_node(struct arrow_schema *s,
                                           const char *format, const char *name)
{
    struct ArrowSchema *node = &s->node[s->n];
    node->format = format;
    node->name = name;
    node->release = release_nothing;
    s->child[s->n++] = node;
    return node;
}

/* Takes the next n nodes of the schema as children of a node. */
static inline void give_children(struct arrow_schema *s,
                                 struct ArrowSchema *node, int n)
{
    node->children = &s->child[s->n];
    node->n_children = n;
}

static inline const char *type_name(const struct arrow_rows *rows)
{
    static const char *const names[3][2] = {
        {"geoarrow.point", "geoarrow.multipoint"},
        {"geoarrow.linestring", "geoarrow.multilinestring"},
        {"geoarrow.polygon", "geoarrow.multipolygon"}};
    return names[rows->kind / 2][rows->is_multi];
}

static inline void set_extension(struct arrow_schema *s,
                                 struct ArrowSchema *node, const char *name)
{
    static const char key[] = "ARROW:extension:name";
    int32_t one = 1, n_key = (int32_t)strlen(key), n = (int32_t)strlen(name);
    char *at = s->metadata;
    memcpy(at, &one, 4);
    memcpy(at + 4, &n_key, 4);
    memcpy(at + 8, key, (size_t)n_key);
    memcpy(at + 8 + n_key, &n, 4);
    memcpy(at + 12 + n_key, name, (size_t)n);
    node->metadata = s->metadata;
}

static inline void add_coordinate_nodes(struct arrow_schema *s,
                                        struct ArrowSchema *node,
                                        const struct arrow_options *options)
{
    static const char *const names[4] = {"x", "y", "z", "m"};
    if (options->form == FORM_INTERLEAVED)
    {
        snprintf(s->width, sizeof s->width, "+w:%d", options->n_ordinates);
        node->format = s->width;
        give_children(s, node, 1);
        add_node(s, "g", "xy");
        return;
    }
    node->format = "+s";
    give_children(s, node, options->n_ordinates);
    for (int i = 0; i < options->n_ordinates; i++)
        add_node(s, "g", names[i]);
}

static inline void make_schema(const struct arrow_rows *rows,
                               const struct arrow_options *options,
                               struct arrow_schema *s)
{
    static const char *const wkb[3] = {"z", "Z", "vz"};
    const int64_t *offset[3];
    int64_t n[3];
    struct ArrowSchema *node;
    memset(s, 0, sizeof *s);
    node = add_node(s, "", "shape");
    if (options->is_column)
    {
        node->format = "+s";
        give_children(s, node, 2);
        add_node(s, "l", "number");
        node = add_node(s, "", "shape");
    }
    if (options->form < FORM_SEPARATED)
    {
        node->format = wkb[options->form];
        return;
    }
    set_extension(s, node, type_name(rows));
    for (int levels = list_levels(rows, offset, n); levels > 0; levels--)
    {
        node->format = options->is_large ? "+L" : "+l";
        give_children(s, node, 1);
        node = add_node(s, "", "item");
    }
    add_coordinate_nodes(s, node, options);
}

/* --- invalid arrays and schemas ------------------------------------------- */

enum
{
    CHILD = sizeof(struct ArrowArray), /* pointer `at` of children becomes NULL
                                        */
    BUFFER,   /* pointer `at` of buffers becomes NULL */
    NULL_BIT, /* bit of element `at` in the validity bitmap is cleared; at -1:
                 no bit is cleared */
    NUMBER,   /* element `at` of buffer 1 (int32) becomes value */
    BYTE      /* byte `at` of buffer 2 becomes value */
};

/* A change to one field of an array. A number becomes value. A pointer becomes
 * NULL, or a pointer to the array itself if value is not 0. */
struct array_spoil
{
    /* path of the array to change, as "10d": the dictionary of child 0 of child
     * 1; NULL: no array changes */
    const char *path;
    size_t field; /* offset of the field in its struct, or one of the enum above
                   */
    int64_t at, value;
};

#define SPOIL(path, field, value)                                              \
    {                                                                          \
        path, offsetof(struct ArrowArray, field), 0, value                     \
    }

/* Memory that release() frees. */
static struct
{
    struct ArrowArray *node, was, top, *child[8];
    const void *buffer[8];
} spoiled;

static inline void release_spoiled(struct ArrowArray *array)
{
    if (spoiled.node != NULL)
        *spoiled.node = spoiled.was;
    *array = spoiled.top;
    array->release(array);
}

static inline void clear_bit(struct ArrowArray *node, int64_t at)
{
    size_t n = (size_t)node->length / 8 + 1;
    if (node->buffers[0] == NULL)
        node->buffers[0] = memset(malloc(n), 255, n);
    if (at >= 0)
        ((uint8_t *)(uintptr_t)node->buffers[0])[at / 8] &=
            (uint8_t) ~(1 << at % 8);
    node->null_count = -1;
}

static inline void spoil_array(struct ArrowArray *array,
                               const struct array_spoil *how)
{
    struct ArrowArray *node = array, *pointer;
    char *field;
    if (how->path == NULL)
        return;
    for (const char *at = how->path; *at != '\0'; at++)
        node = *at == 'd' ? node->dictionary : node->children[*at - '0'];
    field = (char *)node + how->field;
    pointer = how->value != 0 ? node : NULL;
    spoiled.top = *array;
    spoiled.was = *node;
    spoiled.node = node != array ? node : NULL;
    array->release = release_spoiled;
    if (how->field < offsetof(struct ArrowArray, buffers))
        memcpy(field, &how->value, sizeof how->value);
    else if (how->field < CHILD)
        memcpy(field, &pointer, sizeof pointer);
    else if (how->field == NULL_BIT)
        clear_bit(node, how->at);
    else if (how->field == NUMBER)
        ((int32_t *)(uintptr_t)node->buffers[1])[how->at] = (int)how->value;
    else if (how->field == BYTE)
        ((uint8_t *)(uintptr_t)node->buffers[2])[how->at] = (uint8_t)how->value;
    else if (how->field == CHILD)
    {
        memcpy(spoiled.child, node->children,
               (size_t)node->n_children * sizeof *node->children);
        node->children = spoiled.child;
        node->children[how->at] = NULL;
    }
    else
    {
        memcpy(spoiled.buffer, node->buffers,
               (size_t)node->n_buffers * sizeof *node->buffers);
        node->buffers = spoiled.buffer;
        node->buffers[how->at] = NULL;
    }
}

/* A change to one field of a schema. The field is a pointer, or n_children as
 * an intptr_t.
 */
struct schema_spoil
{
    int number;   /* number of the node, from 1 on; 0: none */
    size_t field; /* offset of the field in struct ArrowSchema */
    const void *value;
};

#define SCHEMA(node, field, value)                                             \
    {                                                                          \
        (node) + 1, offsetof(struct ArrowSchema, field), (const void *)(value) \
    }

static inline void spoil_schema(struct arrow_schema *s,
                                const struct schema_spoil *how)
{
    struct ArrowSchema *node;
    if (how->number == 0)
        return;
    node = &s->node[how->number - 1];
    if (how->field == offsetof(struct ArrowSchema, n_children))
        node->n_children = (intptr_t)how->value;
    else
        memcpy((char *)node + how->field, &how->value, sizeof how->value);
}

#endif
