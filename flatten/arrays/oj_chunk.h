/** Consecutive rows of a layer as columns, cut into slices that share memory.
 *
 *  chunk   0                     1
 *  rows    0 1 2 3 4 5 6 7 8 9   10 11 12
 *  slices  [first 0 ][first 4]   [first 0]     (chunk, first, n_rows)
 *
 *  A lane (a way to read a layer) returns one chunk at a time. A chunk is freed
 *  with its last slice, on any thread.
 */
#ifndef OJ_CHUNK_H
#define OJ_CHUNK_H

#include "../base/oj_status.h"
#include "oj_column.h"

#include <string.h>

/** Indices of the columns; the requested fields follow in the order of the
 *  request. */
enum
{
    OJ_CHUNK_FID,      /**< format l (oj_column.h) */
    OJ_CHUNK_GEOMETRY, /**< WKB (format z or Z), or format P */
    OJ_CHUNK_FIELDS
};

struct oj_chunk
{
    int n_users; /**< number of references; changed atomically */
    int64_t n_rows;
    /** 0: all texts of formats u and U are valid UTF-8; 1: some may be invalid.
     */
    int may_have_bad_texts;
    void *owner; /**< owner of the memory of the columns */
    void (*free_owner)(void *owner);
    struct oj_column_view column[]; /**< [OJ_CHUNK_FIELDS + number of fields] */
};

/** Rows first .. first + n_rows - 1 of a chunk; holds one reference to it.
 *  Zeroed memory is a valid empty slice. */
struct oj_slice
{
    struct oj_chunk *chunk; /**< NULL: the slice is empty */
    int64_t first, n_rows;
};

/** The layer to read, and what to read of it. The handles are GDAL's; they must
 *  outlive the lane, which uses them on its own thread. */
struct oj_lane_request
{
    void *dataset;    /**< GDALDatasetH of a GeoPackage, or NULL */
    void *layer;      /**< OGRLayerH */
    const char *file; /**< path of a FlatGeobuf, or NULL; used by open() only */

    const int *fields; /**< [n_fields] indices of the requested fields */
    /** [n_fields] format of each field (oj_column.h); 0: its values are not
     *  needed. Outlives the lane. */
    const char *formats;
    int n_fields;
    /** 1: only coordinates are needed, and nearly all rows are plain points:
     *  geometries may have format P. */
    int are_points;
    int64_t batch_rows; /**< maximum number of rows of a chunk */
    /** Threads that decode rows, including the calling one. */
    int n_threads;

    const char *all_rows_filter; /**< NULL, or an attribute filter that all rows
                                      pass; explained in struct
                                      oj_read_options */

    /** NULL, or a box (minimum x, maximum x, minimum y, maximum y): only rows
     *  whose geometry intersects it are wanted. */
    const double *box;

    /** Sets *is_met to 1 if the row with this geometry is wanted, else to 0.
     *  wkb is ISO WKB of n bytes; NULL: the row has no geometry. Fails with
     *  OJ_ERR_UNSUPPORTED if the lane cannot read this row. */
    oj_status (*meets)(void *user, const uint8_t *wkb, size_t n, int *is_met,
                       struct oj_error *err);
    void *user;
    const int *cancel; /**< flag that stops the reading when it is nonzero; may
                            be NULL */
};

/** A way to read the rows of a layer. */
struct oj_lane
{
    /** Starts at the first row. Sets *stream, also on failure, to NULL or to a
     *  stream that the caller must close. Fails with OJ_ERR_UNSUPPORTED if
     *  GDAL has to read the layer. */
    oj_status (*open)(const struct oj_lane_request *request, void **stream,
                      struct oj_error *err);
    /** 1: a row whose geometry is NULL has no geometry; 0: the row may have a
     *  geometry that the lane could not read. */
    int nulls_are_sure;

    /** Returns the next rows; *chunk is NULL at the end. On OJ_ERR_IO, *text
     *  is the lane's message, or NULL. Fails with OJ_ERR_UNSUPPORTED if GDAL
     *  has to read all rows after those returned so far. */
    oj_status (*next)(void *stream, struct oj_chunk **chunk, const char **text,
                      struct oj_error *err);
    /** Frees the stream; accepts NULL. Chunks may outlive it. */
    void (*close)(void *stream);
    int is_by_fid; /**< 1: rows come in FID order */
    /** 1: until the stream is closed, every reader of the layer reads the
     *  state of the database that the lane reads. */
    int keeps_state;
};

/** Returns OJ_ERR_UNSUPPORTED, with which a lane leaves a layer or its
 *  remaining rows to GDAL. */
static inline oj_status oj_lane_leave_to_gdal(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "left to GDAL");
}

/** Makes a chunk without rows, with one reference. The columns of FID, geometry
 *  and the n_fields fields are empty; texts count as possibly invalid UTF-8. On
 *  success the chunk owns `owner`, and frees it by free_owner(). */
OJ_MUST_USE oj_status oj_chunk_new(int n_fields, void *owner,
                                   void (*free_owner)(void *),
                                   struct oj_chunk **out, struct oj_error *err);

/** Splits off the first rows of *rest, at most max_rows, and returns them. */
struct oj_slice oj_slice_cut(struct oj_slice *rest, int64_t max_rows);

/** Drops the slice's reference and zeroes the slice. Any thread. */
void oj_slice_free(struct oj_slice *slice);

/** Counts the texts of the slice, in fields of format u or U, that are not
 *  valid UTF-8. */
int64_t oj_slice_count_bad_texts(const struct oj_slice *slice, int n_fields);

/** Returns the WKB of row 0 <= row < n_rows; NULL if it has no geometry. Not
 *  for format P. */
static inline const uint8_t *oj_slice_wkb(const struct oj_slice *slice,
                                          int64_t row, size_t *n_bytes)
{
    const struct oj_column_view *wkb = &slice->chunk->column[OJ_CHUNK_GEOMETRY];
    int64_t n;
    const char *bytes;
    if (!oj_column_has_value(wkb, slice->first + row))
        return NULL;
    bytes = oj_column_bytes(wkb, slice->first + row, &n);
    *n_bytes = (size_t)n;
    return (const uint8_t *)bytes;
}

/* ---- making chunks ------------------------------------------------------- */

/** A column whose values are appended row by row; a row may be NULL.  `format`
 *  is one of those of oj_column.h, but not s, f, u or z. */
struct oj_chunk_column
{
    char format;
    size_t size; /* bytes of a value, not of a text */
    uint8_t *bits;
    void *values;
    char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t n_before; /* number of bytes before the piece that is being
                         decoded */
    int n_null;
    int has_bad_text; /* format U: 1 if a text is not valid UTF-8 */
};

struct oj_chunk_rows
{
    int n_columns;
    /** [OJ_CHUNK_FIELDS + number of fields]. */
    struct oj_chunk_column column[];
};

/** Start of a piece, which one thread decodes: `at` is a position in the lane's
 *  data, `row` the row of the chunk that begins there. The piece ends where the
 *  next one begins. */
struct oj_chunk_piece
{
    int64_t at, row;
};

/** Makes chunks from the data that a lane reads, on several threads; for lanes
 *  that fill columns themselves.
 *
 *   read    | rows ...     | rows ...     |   one thread
 *   pieces  | 0  | 1  | 2  | 0  | 1  |        each decoded by one thread
 *   chunk   | 0  | 1  | 2  | 3  | 4  |        appended in order, less the rows
 *                                            that are not wanted
 *
 *  Set read, add and field_size and zero all other members before
 *  oj_chunk_maker_open(). The maker must be the first member of the lane's
 *  stream.
 */
struct oj_chunk_maker
{
    size_t field_size; /**< bytes of a value of format F */

    /** Reads more data if needed, and divides rows first .. end - 1 of the
     *  chunk, or fewer, into pieces by oj_chunk_begin_piece(). If it makes no
     *  piece, there are no more rows. */
    oj_status (*read)(void *stream, int64_t first, int64_t end,
                      struct oj_error *err);

    /** Decodes a piece, which ends where the next one begins: stores the values
     *  that are not NULL, and sets *n to the number of decoded rows. Any
     *  thread. Fails with OJ_ERR_UNSUPPORTED, with *n set, if GDAL has to read
     *  all rows after these *n. */
    oj_status (*add)(void *stream, int thread,
                     const struct oj_chunk_piece *piece,
                     struct oj_chunk_rows *to, int64_t *n,
                     struct oj_error *err);
    const char *broken; /**< message if read or add fails with OJ_ERR_IO */

    struct oj_lane_request request;
    struct chunk_work *work; /**< [request.n_threads] owned */
    /** [n_pieces] owned; the last element only marks the end. */
    struct oj_chunk_piece *piece;
    int64_t n_pieces, cap_pieces;
    struct oj_chunk_rows *rows; /**< rows of the next chunk */
    int64_t n_rows;
    int is_left; /**< 1: GDAL has to read the rows after the last chunk */
};

/** Prepares the maker for a request; read, add and field_size must be set. */
OJ_MUST_USE oj_status oj_chunk_maker_open(struct oj_chunk_maker *maker,
                                          const struct oj_lane_request *request,
                                          struct oj_error *err);

/** Makes the next chunk. A lane that uses a maker has this function as its
 *  `next`. A chunk of large rows has fewer than batch_rows rows. */
OJ_MUST_USE oj_status oj_chunk_make(void *stream, struct oj_chunk **out,
                                    const char **text, struct oj_error *err);

/** Ends the current piece and begins one at `row`, which is the first row or a
 *  multiple of 8; `at` is the position of this row in the lane's data. The last
 *  call only marks the end. */
OJ_MUST_USE oj_status oj_chunk_begin_piece(struct oj_chunk_maker *maker,
                                           int64_t at, int64_t row,
                                           struct oj_error *err);

/** Frees the maker's memory; zeroed memory is accepted. */
void oj_chunk_maker_free(struct oj_chunk_maker *maker);

/** Marks the row as not NULL; the caller stores its value in `values`. */
static inline void oj_chunk_set_valid(struct oj_chunk_column *column,
                                      int64_t row)
{
    column->bits[row >> 3] |= (uint8_t)(1u << (row & 7));
}

/** Stores the 16 bytes of a value of format P, and marks the row as not NULL.
 */
static inline void oj_chunk_add_point(struct oj_chunk_column *column,
                                      int64_t row, const uint8_t *point)
{
    memcpy((uint8_t *)column->values + 16 * row, point, 16);
    oj_chunk_set_valid(column, row);
}

/** Returns 1 if the row has a value. */
static inline int oj_chunk_has_value(const struct oj_chunk_column *column,
                                     int64_t row)
{
    return (column->bits[row >> 3] >> (row & 7) & 1) != 0;
}

/** Makes room for n bytes behind those of earlier rows, in a column of format U
 *  or Z. */
OJ_MUST_USE oj_status oj_chunk_reserve(struct oj_chunk_column *column,
                                       int64_t n, struct oj_error *err);

/** Ends the row's value: the caller has stored its n bytes in the memory from
 *  oj_chunk_reserve(). */
static inline void oj_chunk_end_bytes(struct oj_chunk_column *column,
                                      int64_t row, int64_t n)
{
    column->n_bytes += n;
    ((int64_t *)column->values)[row + 1] = column->n_bytes;
    oj_chunk_set_valid(column, row);
}

/** Stores the n bytes of a value of format U or Z, and marks the row as not
 *  NULL. */
OJ_MUST_USE static inline oj_status
oj_chunk_add_bytes(struct oj_chunk_column *column, int64_t row,
                   const void *bytes, int64_t n, struct oj_error *err)
{
    if (column->n_bytes + n >= column->cap_bytes)
        OJ_TRY(oj_chunk_reserve(column, n, err));
    if (n > 0)
        memcpy(column->bytes + column->n_bytes, bytes, (size_t)n);
    oj_chunk_end_bytes(column, row, n);
    return OJ_OK;
}

#endif
