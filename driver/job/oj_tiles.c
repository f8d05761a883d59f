#include "oj_tiles.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

/* What the index of a join takes for each vertex, about (segments of 36 bytes,
 * trees, rings), and what it holds beside the coordinates. */
#define INDEX_BYTES_PER_VERTEX 72

#define PIECE_BYTES (64 * 1024) /* of the file, at one access */

struct oj_tile
{
    int64_t first, end; /* bytes of the file: whole records */
    int64_t n_bytes;    /* oj_tiles_estimate() */
};

int64_t oj_tiles_estimate(int64_t record_bytes, int64_t n_vertices)
{
    return record_bytes + INDEX_BYTES_PER_VERTEX * n_vertices;
}

oj_status oj_tiles_open(struct oj_tiles *tiles, const char *near,
                        int64_t memory, const struct oj_table *columns,
                        struct oj_error *err)
{
    memset(tiles, 0, sizeof *tiles);
    tiles->memory = memory;
    if (columns != NULL)
        OJ_TRY(oj_table_new_like(columns, &tiles->columns, err));
    return oj_temporary_file_open(near, "data", &tiles->file, err);
}

/* ---- writing ------------------------------------------------------------ */

oj_status oj_tiles_finish(struct oj_tiles *tiles, struct oj_error *err)
{
    OJ_TRY(oj_temporary_file_write(&tiles->file, tiles->held.byte,
                                   tiles->held.n, err));
    tiles->held.n = 0;
    return OJ_OK;
}

/* Counts a record that ends at that byte of the file in the last tile, or in a
 * new one. */
static oj_status add_to_tile(struct oj_tiles *tiles, int64_t end,
                             int64_t n_bytes, struct oj_error *err)
{
    struct oj_tile *last =
        tiles->n_tiles > 0 ? &tiles->tile[tiles->n_tiles - 1] : NULL;
    if (last == NULL || last->n_bytes + n_bytes > tiles->memory)
    {
        int64_t first = last != NULL ? last->end : 0;
        OJ_TRY(oj_reserve(&tiles->tile, tiles->n_tiles, tiles->n_tiles + 1,
                          &tiles->cap_tiles, sizeof *tiles->tile, err));
        last = &tiles->tile[tiles->n_tiles++];
        last->first = first;
        last->n_bytes = 0;
    }
    last->end = end;
    last->n_bytes += n_bytes;
    return OJ_OK;
}

oj_status oj_tiles_add(struct oj_tiles *tiles, const struct oj_flat *flat,
                       const struct oj_table *table, int64_t first_ordinal,
                       struct oj_error *err)
{
    struct oj_bytes *held = &tiles->held;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t first, end, start = held->n;
        oj_flat_vertices(flat, i, &first, &end);
        if (first == end)
            continue;
        OJ_TRY(
            oj_record_write(held, flat, i, table, i, first_ordinal + i, err));
        OJ_TRY(add_to_tile(tiles, tiles->file.size + held->n,
                           oj_tiles_estimate(held->n - start, end - first),
                           err));
        if (held->n >= PIECE_BYTES)
            OJ_TRY(oj_tiles_finish(tiles, err));
    }
    return OJ_OK;
}

/* ---- reading ------------------------------------------------------------ */

/* Reads n bytes at first into side->piece. */
static oj_status read_piece(const struct oj_tiles *tiles, int64_t first,
                            int64_t n, struct oj_tiled_side *side,
                            struct oj_error *err)
{
    struct oj_bytes *piece = &side->piece;
    OJ_TRY(oj_reserve(&piece->byte, 0, n, &piece->capacity, 1, err));
    piece->n = n;
    return oj_temporary_file_read(&tiles->file, first, piece->byte, n, err);
}

/* Adds the feature of a record of the piece, which lies at place. */
static oj_status add_feature(struct oj_tiled_side *side,
                             const unsigned char *record, int64_t place,
                             struct oj_error *err)
{
    int64_t n = side->features.buf.n_features;
    OJ_TRY(oj_reserve(&side->place, n, n + 1, &side->cap_place,
                      sizeof *side->place, err));
    side->place[n] = place;
    return oj_record_read(record, &side->features, err);
}

/* Adds the features of the whole records that the piece begins with; *n: their
 * bytes. */
static oj_status add_records(struct oj_tiled_side *side, int64_t place,
                             int64_t *n, struct oj_error *err)
{
    const struct oj_bytes *piece = &side->piece;
    int64_t at = 0;
    while (at < piece->n && at + oj_record_length(piece->byte + at) <= piece->n)
    {
        OJ_TRY(add_feature(side, piece->byte + at, place + at, err));
        at += oj_record_length(piece->byte + at);
    }
    *n = at;
    return OJ_OK;
}

oj_status oj_tiles_load(const struct oj_tiles *tiles, int64_t t,
                        struct oj_tiled_side *side, struct oj_error *err)
{
    const struct oj_tile *tile = &tiles->tile[t];
    int64_t least = PIECE_BYTES, n;
    OJ_TRY(oj_feature_set_clear(&side->features, err));
    for (int64_t at = tile->first; at < tile->end; at += n)
    {
        int64_t left = tile->end - at;
        OJ_TRY(read_piece(tiles, at, least < left ? least : left, side, err));
        OJ_TRY(add_records(side, at, &n, err));
        least = PIECE_BYTES;
        if (n == 0) /* a record that is longer than a piece */
            least = oj_record_length(side->piece.byte);
    }
    return OJ_OK;
}

oj_status oj_tiles_fetch(const struct oj_tiles *tiles, const int64_t *place,
                         int64_t n, struct oj_tiled_side *side,
                         struct oj_error *err)
{
    OJ_TRY(oj_feature_set_clear(&side->features, err));
    if (side->features.table == NULL && tiles->columns != NULL)
        OJ_TRY(oj_table_new_like(tiles->columns, &side->features.table, err));
    for (int64_t i = 0; i < n; i++)
    {
        OJ_TRY(read_piece(tiles, place[i], 8, side, err));
        OJ_TRY(read_piece(tiles, place[i], oj_record_length(side->piece.byte),
                          side, err));
        OJ_TRY(add_feature(side, side->piece.byte, place[i], err));
    }
    return OJ_OK;
}

void oj_tiled_side_free(struct oj_tiled_side *side)
{
    oj_feature_set_free(&side->features);
    oj_free(side->place);
    oj_free(side->piece.byte);
    memset(side, 0, sizeof *side);
}

void oj_tiles_close(struct oj_tiles *tiles)
{
    oj_table_free(tiles->columns);
    oj_free(tiles->tile);
    oj_free(tiles->held.byte);
    oj_temporary_file_close(&tiles->file);
    memset(tiles, 0, sizeof *tiles);
}
