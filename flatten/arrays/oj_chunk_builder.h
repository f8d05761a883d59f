/** Rows on their way into a chunk, for lanes that make their columns
 *  themselves: a value per row and column, or none, in the order of the rows.
 *
 *  column  format  values              bytes
 *  FID     l       int64_t [max_rows]
 *  geom.   Z       offsets [+ 1]       WKB after WKB
 *          P       points [max_rows]
 *  fields  as oj_column.h says, 0: none
 */
#ifndef OJ_CHUNK_BUILDER_H
#define OJ_CHUNK_BUILDER_H

#include "oj_chunk.h"

#include <string.h>

/** While rows come. */
struct oj_chunk_column
{
    char format;
    size_t size; /* of one of values */
    uint8_t *bits;
    void *values;
    char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t n_before; /* bytes of rows before the piece */
    int64_t max_rows; /* 0: of a part */
    int n_null;
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

/** Makes chunks of what a lane reads, on several threads.
 *
 *   read    | rows ...     | rows ...     |   one thread
 *   pieces  | 0  | 1  | 2  | 0  | 1  |        each by one thread, as a part
 *   chunk   | 0  | 1  | 2  | 3  | 4  |        parts in order
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

    char *format; /**< [n_fields] as in the request; owned */
    int n_fields, are_points, n_threads;
    int64_t batch_rows;
    int64_t n_before;             /**< rows of earlier chunks */
    struct chunk_work *work;      /**< [n_threads] owned */
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

/** Room for n bytes behind those of the rows before, of format U or Z; when it
 *  grows, for all rows to come if they are like these. */
OJ_MUST_USE oj_status oj_chunk_room(struct oj_chunk_column *column, int64_t row,
                                    int64_t n, struct oj_error *err);

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
        OJ_TRY(oj_chunk_room(column, row, n, err));
    if (n > 0)
        memcpy(column->bytes + column->n_bytes, bytes, (size_t)n);
    oj_chunk_end_bytes(column, row, n);
    return OJ_OK;
}

#endif
