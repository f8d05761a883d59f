#include "bench_data.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Opens the file FOLDER/LAYER.SUFFIX and counts its elements of size bytes. */
static oj_status open_array(const char *folder, const char *layer,
                            const char *suffix, size_t size, FILE **file,
                            int64_t *n, struct oj_error *err)
{
    char path[4096];
    long bytes;
    if (snprintf(path, sizeof path, "%s/%s.%s", folder, layer, suffix) >=
        (int)sizeof path)
        return oj_fail(err, OJ_ERR_ARG, "%s: the path is too long", folder);
    *file = fopen(path, "rb");
    if (*file == NULL)
        return oj_fail(err, OJ_ERR_IO, "%s: %s", path, strerror(errno));
    if (fseek(*file, 0, SEEK_END) != 0 || (bytes = ftell(*file)) < 0 ||
        fseek(*file, 0, SEEK_SET) != 0 || (size_t)bytes % size != 0)
    {
        fclose(*file);
        return oj_fail(err, OJ_ERR_IO, "%s: not an array of %zu-byte elements",
                       path, size);
    }
    *n = (int64_t)((size_t)bytes / size);
    return OJ_OK;
}

/* Reads the first *n elements, or all if *n is 0 or too large, and sets *n to
 * their number. Allocates n_extra elements more. */
static oj_status read_array(const char *folder, const char *layer,
                            const char *suffix, size_t size, int64_t n_extra,
                            void **out, int64_t *n, struct oj_error *err)
{
    FILE *file;
    int64_t n_file;
    void *array;
    size_t n_read;
    OJ_TRY(open_array(folder, layer, suffix, size, &file, &n_file, err));
    if (*n > 0 && *n < n_file)
        n_file = *n;
    array = oj_malloc(n_file + n_extra, size);
    if (array == NULL)
    {
        fclose(file);
        return oj_fail_nomem(err, n_file + n_extra, size);
    }
    n_read = fread(array, size, (size_t)n_file, file);
    fclose(file);
    if (n_read != (size_t)n_file)
    {
        oj_free(array);
        return oj_fail(err, OJ_ERR_IO, "%s/%s.%s: %s", folder, layer, suffix,
                       strerror(errno));
    }
    *out = array;
    *n = n_file;
    return OJ_OK;
}

/* A layer of shapes as in the files. Arrays that the layer does not have are
 * NULL. */
struct raw_shapes
{
    int64_t n, n_parts, n_rings, n_vertices;
    void *x, *y;
    void *feature, *part, *ring; /* int32_t */
    void *id;                    /* int64_t */
};

static void free_shapes(struct raw_shapes *raw)
{
    oj_free(raw->x);
    oj_free(raw->y);
    oj_free(raw->feature);
    oj_free(raw->part);
    oj_free(raw->ring);
    oj_free(raw->id);
}

/* Checks that offsets start at 0, do not decrease, and end at most at
 * n_below. */
static oj_status check_offsets(const char *what, const void *array, int64_t n,
                               int64_t n_below, struct oj_error *err)
{
    const int32_t *offset = array;
    if (n < 1 || offset[0] != 0 || offset[n - 1] > n_below)
        return oj_fail(err, OJ_ERR_DATA, "%s: offsets do not fit", what);
    for (int64_t i = 1; i < n; i++)
        if (offset[i] < offset[i - 1])
            return oj_fail(err, OJ_ERR_DATA, "%s: offsets decrease", what);
    return OJ_OK;
}

static oj_status read_shapes(const char *folder, const char *layer, int64_t n,
                             int is_lines, struct raw_shapes *raw,
                             struct oj_error *err)
{
    int64_t n_y = 0, n_offsets = n > 0 ? n + 1 : 0, n_id = 0;
    OJ_TRY(read_array(folder, layer, "x.f64", 8, 0, &raw->x, &raw->n_vertices,
                      err));
    OJ_TRY(read_array(folder, layer, "y.f64", 8, 0, &raw->y, &n_y, err));
    OJ_TRY(read_array(folder, layer, "feat.i32", 4, 0, &raw->feature,
                      &n_offsets, err));
    OJ_TRY(read_array(folder, layer, "id.i64", 8, 0, &raw->id, &n_id, err));
    raw->n = n_offsets - 1;
    if (n_y != raw->n_vertices || n_id < raw->n)
        return oj_fail(err, OJ_ERR_DATA, "%s/%s: arrays of different lengths",
                       folder, layer);
    if (is_lines)
        return check_offsets(layer, raw->feature, n_offsets, n_y, err);
    OJ_TRY(read_array(folder, layer, "part.i32", 4, 0, &raw->part,
                      &raw->n_parts, err));
    OJ_TRY(read_array(folder, layer, "ring.i32", 4, 0, &raw->ring,
                      &raw->n_rings, err));
    OJ_TRY(check_offsets(layer, raw->ring, raw->n_rings--, n_y, err));
    OJ_TRY(check_offsets(layer, raw->part, raw->n_parts--, raw->n_rings, err));
    return check_offsets(layer, raw->feature, n_offsets, raw->n_parts, err);
}

static oj_status add_ring(struct oj_flat_buf *buf, const struct raw_shapes *raw,
                          int64_t first, int64_t end, struct oj_error *err)
{
    double *x, *y;
    OJ_TRY(oj_flat_buf_begin_ring(buf, err));
    OJ_TRY(oj_flat_buf_add_vertices(buf, end - first, &x, &y, err));
    memcpy(x, (const double *)raw->x + first, (size_t)(end - first) * 8);
    memcpy(y, (const double *)raw->y + first, (size_t)(end - first) * 8);
    return OJ_OK;
}

static oj_status add_feature(struct oj_flat_buf *buf,
                             const struct raw_shapes *raw, int64_t i,
                             struct oj_error *err)
{
    const int32_t *feature = raw->feature, *part = raw->part;
    const int32_t *ring = raw->ring;
    OJ_TRY(oj_flat_buf_begin_feature(buf, ((const int64_t *)raw->id)[i], err));
    if (part == NULL)
    {
        OJ_TRY(oj_flat_buf_begin_part(buf, OJ_PART_LINE, err));
        OJ_TRY(add_ring(buf, raw, feature[i], feature[i + 1], err));
        return oj_flat_buf_end_feature(buf, err);
    }
    for (int32_t p = feature[i]; p < feature[i + 1]; p++)
    {
        OJ_TRY(oj_flat_buf_begin_part(buf, OJ_PART_POLYGON, err));
        for (int32_t r = part[p]; r < part[p + 1]; r++)
            OJ_TRY(add_ring(buf, raw, ring[r], ring[r + 1], err));
    }
    return oj_flat_buf_end_feature(buf, err);
}

/* Reads at most n lines or polygons, or all if n is 0. */
static oj_status load_shapes(const char *folder, const char *layer, int64_t n,
                             struct oj_flat_buf *out, struct oj_error *err)
{
    struct raw_shapes raw = {0};
    const int is_lines = strcmp(layer, "streets") == 0;
    oj_status status = read_shapes(folder, layer, n, is_lines, &raw, err);
    for (int64_t i = 0; status == OJ_OK && i < raw.n; i++)
        status = add_feature(out, &raw, i, err);
    free_shapes(&raw);
    return status;
}

/* Reads at most n points, or all if n is 0. Allocates n_extra points more. */
static oj_status load_points(const char *folder, int64_t n, int64_t n_extra,
                             struct bench_points *points, struct oj_error *err)
{
    int64_t n_x = n, n_y = n, n_id = n;
    void *x = NULL, *y = NULL, *id = NULL;
    OJ_TRY(read_array(folder, "points", "x.f64", 8, n_extra, &x, &n_x, err));
    points->x = x;
    OJ_TRY(read_array(folder, "points", "y.f64", 8, n_extra, &y, &n_y, err));
    points->y = y;
    OJ_TRY(read_array(folder, "points", "id.i64", 8, n_extra, &id, &n_id, err));
    points->id = id;
    if (n_x != n_y || n_x != n_id)
        return oj_fail(err, OJ_ERR_DATA, "points: arrays of different lengths");
    points->n = n_x;
    return OJ_OK;
}

/* Reads points for the join side. */
static oj_status load_sites(const char *folder, int64_t n,
                            struct oj_flat_buf *out, struct oj_error *err)
{
    struct bench_layers layers = {0};
    struct bench_points *points = &layers.points;
    oj_status status = load_points(folder, n, 0, points, err);
    for (int64_t i = 0; status == OJ_OK && i < points->n; i++)
        status = oj_flat_buf_add_point(out, points->id[i], points->x[i],
                                       points->y[i], err);
    bench_layers_free(&layers);
    return status;
}

oj_status bench_raw_load(const struct bench_data_options *options,
                         int64_t n_extra, struct bench_layers *layers,
                         struct oj_error *err)
{
    const char *folder = options->data;
    if (strcmp(options->input, "points") == 0)
        OJ_TRY(load_points(folder, options->n, n_extra, &layers->points, err));
    else
        OJ_TRY(load_shapes(folder, options->input, options->n, &layers->shapes,
                           err));
    if (strcmp(options->layer, "points") == 0)
        return load_sites(folder, options->m, &layers->join_side, err);
    return load_shapes(folder, options->layer, options->m, &layers->join_side,
                       err);
}
