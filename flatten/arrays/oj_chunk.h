/** Consecutive rows of a layer as columns, cut into slices that share memory.
 *
 *  chunk   0                     1
 *  rows    0 1 2 3 4 5 6 7 8 9   10 11 12
 *  slices  [first 0 ][first 4]   [first 0]     (chunk, first, n_rows)
 *
 *  A chunk is what a lane, one of the ways to read a layer, hands out at once.
 *  It is freed with its last slice, on whichever thread that happens.
 */
#ifndef OJ_CHUNK_H
#define OJ_CHUNK_H

#include "../base/oj_status.h"
#include "oj_column.h"

#include <string.h>

/** Numbers of columns; the wanted fields, in their order, follow. */
enum
{
    OJ_CHUNK_FID,      /**< format l */
    OJ_CHUNK_GEOMETRY, /**< WKB, or of format P */
    OJ_CHUNK_FIELDS
};

struct oj_chunk
{
    int n_users; /**< changed by atomic operations alone */
    int64_t n_rows;
    int may_have_bad_texts; /**< 0: all texts of formats u and U are UTF-8 */
    void *owner;            /**< of what the columns point at */
    void (*free_owner)(void *owner);
    struct oj_column_view column[]; /**< OJ_CHUNK_FIELDS and the fields */
};

/** Rows first to first + n_rows - 1 of a chunk; holds one share of it. Zeroed
 *  memory is a valid empty one. */
struct oj_slice
{
    struct oj_chunk *chunk; /**< NULL: nothing */
    int64_t first, n_rows;
};

/** What is to be read of a layer. The handles are GDAL's and outlive the lane,
 *  which uses them on its thread. */
struct oj_lane_request
{
    void *dataset;    /**< GDALDatasetH of a GeoPackage, or NULL */
    void *layer;      /**< OGRLayerH */
    const char *file; /**< of a FlatGeobuf, or NULL; read now */

    const int *fields;   /**< [n_fields] wanted ones */
    const char *formats; /**< [n_fields] of values of their types, outlives the
                              lane; 0: nobody looks at them */
    int n_fields;
    int are_points;     /**< 1: only coordinates are wanted, and nearly all rows
                             are plain points: may come by format P */
    int64_t batch_rows; /**< most rows of a chunk */
    int n_threads;      /**< that make rows, the calling one included */

    const char *all_rows_filter; /**< of oj_read_options */

    /** NULL, or only rows are wanted whose geometry meets this box: least and
     *  greatest x, least and greatest y. */
    const double *box;

    /** Decides of a row without (NULL) or with a geometry, as ISO WKB.
     *  OJ_ERR_UNSUPPORTED: that row is left to others. */
    oj_status (*meets)(void *user, const uint8_t *wkb, size_t n, int *is_met,
                       struct oj_error *err);
    void *user;
    const int *cancel; /**< may be NULL */
};

/** A way to read the rows of a layer. */
struct oj_lane
{
    /** Starts at the first row. *stream is set, or NULL, in any case, and the
     *  caller's to close. OJ_ERR_UNSUPPORTED: the layer has to be read in
     *  another way. */
    oj_status (*open)(const struct oj_lane_request *request, void **stream,
                      struct oj_error *err);
    int nulls_are_sure; /**< 1: a row without geometry has none; 0: it may have
                             one that the lane could not read */

    /** The next rows; *chunk is NULL at the end. The lane's own text, or NULL,
     *  is in *text when this fails with OJ_ERR_IO. OJ_ERR_UNSUPPORTED: from
     *  here on the layer has to be read in another way. */
    oj_status (*next)(void *stream, struct oj_chunk **chunk, const char **text,
                      struct oj_error *err);
    void (*close)(void *stream); /**< accepts NULL; chunks may outlive it */
    int is_by_fid;               /**< 1: rows come in the order of their FIDs */
    int keeps_state; /**< 1: until it is closed all ways of reading the layer
                          see the state that the lane has seen */
};

/** What a lane, or the way to it, says of what it does not know. */
static inline oj_status oj_leave_to_gdal(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "left to GDAL");
}

/** A chunk without rows, with one share, and n_fields columns that have no
 *  values beside FID and geometry, which may have bad texts. Takes owner when
 * it succeeds. */
OJ_MUST_USE oj_status oj_chunk_new(int n_fields, void *owner,
                                   void (*free_owner)(void *),
                                   struct oj_chunk **out, struct oj_error *err);

/** The first up to max_rows rows of rest, which loses them. */
struct oj_slice oj_slice_cut(struct oj_slice *rest, int64_t max_rows);

/** Gives the slice's share back; zeroed afterwards. Any thread. */
void oj_slice_free(struct oj_slice *slice);

/** The number of texts of the slice, in its fields of format u or U, that are
 *  not UTF-8. */
int64_t oj_slice_count_bad_texts(const struct oj_slice *slice, int n_fields);

/** WKB of row 0 <= row < n_rows, not of format P; NULL where there is no
 *  geometry. */
static inline const uint8_t *oj_slice_wkb(const struct oj_slice *slice,
                                          int64_t row, size_t *n_bytes)
{
    const struct oj_column_view *wkb = &slice->chunk->column[OJ_CHUNK_GEOMETRY];
    int64_t n;
    const char *bytes;
    if (!oj_column_has(wkb, slice->first + row))
        return NULL;
    bytes = oj_column_bytes(wkb, slice->first + row, &n);
    *n_bytes = (size_t)n;
    return (const uint8_t *)bytes;
}

/* ---- making --------------------------------------------------------------
 */

/** A column of format i, l, g, U, Z, P or F while rows come: a value per row,
 *  or none, in the order of the rows. */
struct oj_chunk_column
{
    char format;
    size_t size; /* of one of values */
    uint8_t *bits;
    void *values;
    char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t n_before; /* bytes of rows before the piece */
    int n_null;
    int has_bad_text; /* of format U: a text is not UTF-8 */
};

struct oj_chunk_rows
{
    int n_columns;
    struct oj_chunk_column column[]; /**< [OJ_CHUNK_FIELDS and the fields] */
};

/** Where rows begin that one thread makes: for the lane, and in the chunk. */
struct oj_chunk_piece
{
    int64_t at, row;
};

/** Makes chunks of what a lane reads, on several threads, for lanes that make
 *  columns themselves.
 *
 *   read    | rows ...     | rows ...     |   one thread
 *   pieces  | 0  | 1  | 2  | 0  | 1  |        each by one thread, as a part
 *   chunk   | 0  | 1  | 2  | 3  | 4  |        parts in order, each time without
 *                                            rows that are not wanted
 *
 *  Zeroed memory with the first members set is a valid one. It is the first
 *  member of what a lane's stream is. */
struct oj_chunk_maker
{
    size_t field_size; /**< of a value of format F */

    /** Reads on, unless it has rows, and cuts rows first to end - 1, or fewer,
     *  of the chunk with oj_chunk_cut(); no rows: there are no more. */
    oj_status (*read)(void *stream, int64_t first, int64_t end,
                      struct oj_error *err);

    /** Adds the values, but NULLs, of the rows of a piece, which ends where the
     *  next one begins, and counts them in *n. Any thread. OJ_ERR_UNSUPPORTED:
     *  the row behind them, and all after it, have to be read in another way.
     */
    oj_status (*add)(void *stream, int thread,
                     const struct oj_chunk_piece *piece,
                     struct oj_chunk_rows *to, int64_t *n,
                     struct oj_error *err);
    const char *broken; /**< what read and add mean by OJ_ERR_IO */

    struct oj_lane_request request;
    struct chunk_work *work;      /**< [request.n_threads] owned */
    struct oj_chunk_piece *piece; /**< [n_pieces], the last one an end; owned */
    int64_t n_pieces, cap_pieces;
    struct oj_chunk_rows *rows; /**< on their way */
    int64_t n_rows;
    int is_left;
};

/** For rows of what is asked for; read, add and field_size are set. */
OJ_MUST_USE oj_status oj_chunk_maker_open(struct oj_chunk_maker *maker,
                                          const struct oj_lane_request *request,
                                          struct oj_error *err);

/** The lane's next(): chunks of fewer rows where these are large. */
OJ_MUST_USE oj_status oj_chunk_make(void *stream, struct oj_chunk **out,
                                    const char **text, struct oj_error *err);

/** A piece begins at the row, a multiple of 8 or the first one; the one before
 *  ends. The last call says where all end. */
OJ_MUST_USE oj_status oj_chunk_cut(struct oj_chunk_maker *maker, int64_t at,
                                   int64_t row, struct oj_error *err);

/** Zeroed memory will do. */
void oj_chunk_maker_free(struct oj_chunk_maker *maker);

/** The row has a value, which the caller puts into values. */
static inline void oj_chunk_mark(struct oj_chunk_column *column, int64_t row)
{
    column->bits[row >> 3] |= (uint8_t)(1u << (row & 7));
}

/** The row's value, of format P. */
static inline void oj_chunk_add_point(struct oj_chunk_column *column,
                                      int64_t row, const uint8_t *point)
{
    memcpy((uint8_t *)column->values + 16 * row, point, 16);
    oj_chunk_mark(column, row);
}

/** 1 when the row has a value. */
static inline int oj_chunk_has(const struct oj_chunk_column *column,
                               int64_t row)
{
    return (column->bits[row >> 3] >> (row & 7) & 1) != 0;
}

/** Room for n bytes behind those of the rows before, of format U or Z. */
OJ_MUST_USE oj_status oj_chunk_room(struct oj_chunk_column *column, int64_t n,
                                    struct oj_error *err);

/** The row's value is the next n bytes, which were put there. */
static inline void oj_chunk_end_bytes(struct oj_chunk_column *column,
                                      int64_t row, int64_t n)
{
    column->n_bytes += n;
    ((int64_t *)column->values)[row + 1] = column->n_bytes;
    oj_chunk_mark(column, row);
}

/** The row's value, of format U or Z. */
OJ_MUST_USE static inline oj_status
oj_chunk_add_bytes(struct oj_chunk_column *column, int64_t row,
                   const void *bytes, int64_t n, struct oj_error *err)
{
    if (column->n_bytes + n >= column->cap_bytes)
        OJ_TRY(oj_chunk_room(column, n, err));
    if (n > 0)
        memcpy(column->bytes + column->n_bytes, bytes, (size_t)n);
    oj_chunk_end_bytes(column, row, n);
    return OJ_OK;
}

#endif
