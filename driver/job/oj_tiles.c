#include "oj_tiles.h"

#include "../../flatten/base/oj_array.h"

#include <stdlib.h>
#include <string.h>

/* What the index of a join takes for each vertex, about (segments of 36 bytes,
 * trees, rings), and what it holds beside the coordinates. */
#define INDEX_BYTES_PER_VERTEX 72

#define MOST_SIDE 64
#define LEAST_SIDE 4
#define PIECE_BYTES (16 * 1024) /* of a bucket before it is written */

/* A piece of the file with whole records. */
struct oj_extent
{
    int64_t offset, length, n_features, n_vertices;
    int32_t bucket;
    int32_t number; /* in the order of writing, below 2^31 */
};

/* Records of one cell on their way to the file. */
struct oj_bucket
{
    struct oj_bytes bytes;
    int64_t n_features, n_vertices;
};

int64_t oj_tiles_estimate(int64_t record_bytes, int64_t n_vertices)
{
    return record_bytes + INDEX_BYTES_PER_VERTEX * n_vertices;
}

oj_status oj_tiles_open(struct oj_tiles *tiles, const char *near,
                        int64_t memory, const double extent[4],
                        const struct oj_table *columns, struct oj_error *err)
{
    double width = extent[2] - extent[0], height = extent[3] - extent[1];
    memset(tiles, 0, sizeof *tiles);
    tiles->memory = memory;
    /* Buffers of all buckets take at most an eighth. */
    tiles->side = MOST_SIDE;
    while (tiles->side > LEAST_SIDE &&
           (int64_t)tiles->side * tiles->side * PIECE_BYTES > memory / 8)
        tiles->side /= 2;
    tiles->n_buckets = (int64_t)tiles->side * tiles->side;
    tiles->x0 = extent[0];
    tiles->y0 = extent[1];
    tiles->per_x = width > 0.0 ? tiles->side / width : 0.0;
    tiles->per_y = height > 0.0 ? tiles->side / height : 0.0;
    tiles->bucket = oj_calloc(tiles->n_buckets, sizeof *tiles->bucket);
    if (tiles->bucket == NULL)
        return oj_fail_nomem(err, tiles->n_buckets, sizeof *tiles->bucket);
    if (columns != NULL)
        OJ_TRY(oj_table_new_like(columns, &tiles->columns, err));
    return oj_temporary_file_open(near, "data", &tiles->file, err);
}

/* ---- writing ------------------------------------------------------------ */

static uint32_t column_of(double v, double origin, double per, int side)
{
    double c = (v - origin) * per;
    if (!(c > 0.0))
        return 0;
    return c >= side - 1 ? (uint32_t)side - 1 : (uint32_t)c;
}

/* Buckets are numbered in Morton order. */
static int64_t bucket_of(const struct oj_tiles *tiles,
                         const unsigned char *record)
{
    double x, y;
    uint32_t column, row, code = 0;
    oj_record_middle(record, &x, &y);
    column = column_of(x, tiles->x0, tiles->per_x, tiles->side);
    row = column_of(y, tiles->y0, tiles->per_y, tiles->side);
    for (uint32_t bit = 0; 1u << bit < (uint32_t)tiles->side; bit++)
        code |= (column >> bit & 1u) << (2 * bit) | (row >> bit & 1u)
                                                        << (2 * bit + 1);
    return code;
}

static oj_status flush(struct oj_tiles *tiles, int64_t b, struct oj_error *err)
{
    struct oj_bucket *bucket = &tiles->bucket[b];
    struct oj_extent *extent;
    if (bucket->bytes.n == 0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&tiles->extent, tiles->n_extents, tiles->n_extents + 1,
                      &tiles->cap_extents, sizeof *tiles->extent, err));
    extent = &tiles->extent[tiles->n_extents];
    extent->offset = tiles->file.size;
    extent->length = bucket->bytes.n;
    extent->n_features = bucket->n_features;
    extent->n_vertices = bucket->n_vertices;
    extent->bucket = (int32_t)b;
    extent->number = (int32_t)tiles->n_extents;
    OJ_TRY(oj_temporary_file_write(&tiles->file, bucket->bytes.byte,
                                   bucket->bytes.n, err));
    tiles->n_extents++;
    bucket->bytes.n = bucket->n_features = bucket->n_vertices = 0;
    return OJ_OK;
}

static oj_status append(struct oj_tiles *tiles, int64_t b, int64_t n_vertices,
                        struct oj_error *err)
{
    struct oj_bucket *bucket = &tiles->bucket[b];
    const struct oj_bytes *record = &tiles->record;
    OJ_TRY(oj_reserve(&bucket->bytes.byte, bucket->bytes.n,
                      bucket->bytes.n + record->n, &bucket->bytes.capacity, 1,
                      err));
    memcpy(bucket->bytes.byte + bucket->bytes.n, record->byte,
           (size_t)record->n);
    bucket->bytes.n += record->n;
    bucket->n_features++;
    bucket->n_vertices += n_vertices;
    if (bucket->bytes.n < PIECE_BYTES)
        return OJ_OK;
    OJ_TRY(flush(tiles, b, err));
    if (bucket->bytes.capacity > 4 * PIECE_BYTES)
    {
        oj_free(bucket->bytes.byte); /* a huge feature was here */
        memset(&bucket->bytes, 0, sizeof bucket->bytes);
    }
    return OJ_OK;
}

oj_status oj_tiles_add(struct oj_tiles *tiles, const struct oj_flat *flat,
                       const struct oj_table *table, int64_t first_ordinal,
                       struct oj_error *err)
{
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t first, end;
        oj_flat_vertices(flat, i, &first, &end);
        if (first == end)
            continue;
        tiles->record.n = 0;
        OJ_TRY(oj_record_write(&tiles->record, flat, i, table, i,
                               first_ordinal + i, err));
        OJ_TRY(append(tiles, bucket_of(tiles, tiles->record.byte), end - first,
                      err));
        tiles->n_features++;
    }
    return OJ_OK;
}

static int compare_extents(const void *left, const void *right)
{
    const struct oj_extent *a = left, *b = right;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Takes extents from first on into one tile, at least one. */
static oj_status close_tile(struct oj_tiles *tiles, int64_t first, int64_t *end,
                            struct oj_error *err)
{
    int64_t bytes = 0, n_features = 0, e = first;
    for (; e < tiles->n_extents; e++)
    {
        const struct oj_extent *extent = &tiles->extent[e];
        bytes += oj_tiles_estimate(extent->length, extent->n_vertices);
        if (e > first && bytes > tiles->memory)
            break;
        n_features += extent->n_features;
    }
    OJ_TRY(oj_reserve(&tiles->tile, tiles->n_tiles, tiles->n_tiles + 1,
                      &tiles->cap_tiles, sizeof *tiles->tile, err));
    tiles->tile[tiles->n_tiles].first_extent = first;
    tiles->tile[tiles->n_tiles].end_extent = e;
    tiles->tile[tiles->n_tiles].n_features = n_features;
    tiles->n_tiles++;
    *end = e;
    return OJ_OK;
}

oj_status oj_tiles_finish(struct oj_tiles *tiles, struct oj_error *err)
{
    for (int64_t b = 0; b < tiles->n_buckets; b++)
    {
        OJ_TRY(flush(tiles, b, err));
        oj_free(tiles->bucket[b].bytes.byte);
    }
    oj_free(tiles->bucket);
    tiles->bucket = NULL;
    tiles->n_buckets = 0;
    if (tiles->n_extents > 0)
        qsort(tiles->extent, (size_t)tiles->n_extents, sizeof *tiles->extent,
              compare_extents);
    for (int64_t e = 0; e < tiles->n_extents;)
        OJ_TRY(close_tile(tiles, e, &e, err));
    return OJ_OK;
}

/* ---- reading ------------------------------------------------------------ */

/* Reads length bytes at offset into piece. */
static oj_status read_piece(const struct oj_tiles *tiles, int64_t offset,
                            int64_t length, struct oj_bytes *piece,
                            struct oj_error *err)
{
    OJ_TRY(oj_reserve(&piece->byte, 0, length, &piece->capacity, 1, err));
    piece->n = length;
    return oj_temporary_file_read(&tiles->file, offset, piece->byte, length,
                                  err);
}

static oj_status load_extent(const struct oj_tiles *tiles,
                             const struct oj_extent *extent,
                             struct oj_bytes *piece, struct oj_feature_set *out,
                             int64_t **place, int64_t *cap_place,
                             struct oj_error *err)
{
    OJ_TRY(read_piece(tiles, extent->offset, extent->length, piece, err));
    OJ_TRY(oj_reserve(place, out->buf.n_features,
                      out->buf.n_features + extent->n_features, cap_place,
                      sizeof **place, err));
    for (int64_t at = 0; at < extent->length;
         at += oj_record_length(piece->byte + at))
    {
        (*place)[out->buf.n_features] = extent->offset + at;
        OJ_TRY(oj_record_read(piece->byte + at, out, err));
    }
    return OJ_OK;
}

oj_status oj_tiles_load(const struct oj_tiles *tiles, int64_t t,
                        struct oj_bytes *piece, struct oj_feature_set *out,
                        int64_t **place, int64_t *cap_place,
                        struct oj_error *err)
{
    const struct oj_tile *tile = &tiles->tile[t];
    OJ_TRY(oj_feature_set_clear(out, err));
    for (int64_t e = tile->first_extent; e < tile->end_extent; e++)
        OJ_TRY(load_extent(tiles, &tiles->extent[e], piece, out, place,
                           cap_place, err));
    return OJ_OK;
}

oj_status oj_tiles_fetch(const struct oj_tiles *tiles, int64_t place,
                         struct oj_bytes *piece, struct oj_feature_set *out,
                         struct oj_error *err)
{
    int64_t length;
    OJ_TRY(oj_temporary_file_read(&tiles->file, place, &length, sizeof length,
                                  err));
    OJ_TRY(read_piece(tiles, place, length, piece, err));
    if (out->table == NULL && tiles->columns != NULL)
        OJ_TRY(oj_table_new_like(tiles->columns, &out->table, err));
    return oj_record_read(piece->byte, out, err);
}

void oj_tiles_close(struct oj_tiles *tiles)
{
    for (int64_t b = 0; tiles->bucket != NULL && b < tiles->n_buckets; b++)
        oj_free(tiles->bucket[b].bytes.byte);
    oj_free(tiles->bucket);
    oj_free(tiles->extent);
    oj_free(tiles->tile);
    oj_table_free(tiles->columns);
    oj_free(tiles->record.byte);
    oj_temporary_file_close(&tiles->file);
    memset(tiles, 0, sizeof *tiles);
}
