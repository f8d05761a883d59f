#include "oj_tiled_join.h"

#include "../../flatten/arrays/oj_wkb.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_compare.h"
#include "oj_join_side_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (64 * 1024) /* bytes per access to the file */

/* initial capacity of the buffer for a record; most records are shorter */
#define RECORD_BYTES 512

/* memory of an index per token, in joins by similarity alone */
#define INDEX_BYTES_PER_TOKEN 32

/* A tile is filled by stretches of 1/STRETCHES of its memory, and ends after
 * one of them. */
#define STRETCHES 32

/* Bits of `columns` in struct head. */
#define HAS_MAX_DISTANCE 1
#define HAS_ON_CLASS 2
#define HAS_EXCLUDE_CLASS 4
#define HAS_SPAN 8 /* first of the bits of the spans, one for each span */

/* The beginning of every record. Members for columns that are missing are 0. */
struct head
{
    int64_t length; /* length of the record, a multiple of 8 */
    int64_t ordinal, fid;
    double max_distance;
    int32_t on_class, exclude_class;
    int64_t columns; /* bits of the columns that the record has */
    int64_t n_wkb;   /* bytes of the WKB; 0 if the feature has no geometry */
    /* number of M values, one for each vertex; 0 if they are not kept */
    int64_t n_m;
    int64_t n_dimensions;
    int64_t from[OJ_MOST_SPANS], until[OJ_MOST_SPANS];
};

/* The beginning of a text in a record; its tokens follow. */
struct text_head
{
    /* number of the tokens that follow, which are those that the dictionary has
     */
    int64_t n_tokens;
    int64_t size; /* number of all tokens of the text */
    struct oj_token_bits bits;
};

/* A join feature that has a pair in the current batch. */
struct found_feature
{
    int64_t tie_key; /* FID, or `place` if FIDs repeat */
    int64_t place;   /* offset of its record in the file */
    int32_t before;  /* its index before the features were renumbered */
};

/* ---- features ------------------------------------------------------------ */

struct oj_flat oj_feature_set_view(const struct oj_feature_set *features)
{
    struct oj_flat flat = oj_flat_buf_view(&features->buf);
    oj_compared_columns_view(&features->columns, &flat);
    return flat;
}

/* Removes all features but keeps the memory. Replaces the table by an empty one
 * with `columns`, or by NULL if columns is NULL. */
static oj_status clear_features(struct oj_feature_set *features,
                                const struct oj_table *columns,
                                struct oj_error *err)
{
    oj_flat_buf_clear(&features->buf);
    for (int i = 0; i < features->columns.n_texts; i++)
        features->columns.sets[i].n_rows = 0;
    oj_table_free(features->table);
    features->table = NULL;
    return columns != NULL ? oj_table_new_like(columns, &features->table, err)
                           : OJ_OK;
}

void oj_feature_set_free(struct oj_feature_set *features)
{
    oj_flat_buf_free(&features->buf);
    oj_table_free(features->table);
    oj_free(features->ordinal);
    oj_free(features->place);
    oj_compared_columns_free(&features->columns);
    oj_free(features->piece.byte);
    memset(features, 0, sizeof *features);
}

/* ---- bytes --------------------------------------------------------------- */

static int64_t padded_size(int64_t n)
{
    return (n + 7) & ~INT64_C(7);
}

/* Appends room for n bytes, and zeros up to a multiple of 8 bytes. Sets *to to
 * the place where the caller must write the n bytes. */
static oj_status append_padded_space(struct oj_bytes *bytes, int64_t n,
                                     unsigned char **to, struct oj_error *err)
{
    int64_t end = bytes->n + padded_size(n);
    OJ_ROOM(bytes->byte, bytes->n, end, bytes->capacity, err);
    *to = bytes->byte + bytes->n;
    memset(*to + n, 0, (size_t)(padded_size(n) - n));
    bytes->n = end;
    return OJ_OK;
}

static oj_status put_bytes(struct oj_bytes *bytes, const void *from, int64_t n,
                           struct oj_error *err)
{
    unsigned char *to;
    OJ_TRY(append_padded_space(bytes, n, &to, err));
    if (n > 0)
        memcpy(to, from, (size_t)n);
    return OJ_OK;
}

static oj_status put_number(struct oj_bytes *bytes, int64_t number,
                            struct oj_error *err)
{
    return put_bytes(bytes, &number, sizeof number, err);
}

/* Returns the next n bytes of a record and moves *at behind their padding. */
static const void *read_padded_piece(const unsigned char **at, int64_t n)
{
    const void *piece = *at;
    *at += padded_size(n);
    return piece;
}

static int64_t decode_number(const unsigned char **at)
{
    int64_t number;
    memcpy(&number, read_padded_piece(at, sizeof number), sizeof number);
    return number;
}

/* ---- values -------------------------------------------------------------- */

static oj_status encode_list(struct oj_bytes *bytes, OGRFieldType type,
                             const OGRField *raw, struct oj_error *err)
{
    int n = raw->IntegerList.nCount;
    OJ_TRY(put_number(bytes, n, err));
    if (type == OFTIntegerList)
        return put_bytes(bytes, raw->IntegerList.paList, 4 * (int64_t)n, err);
    if (type != OFTStringList)
        return put_bytes(bytes, raw->Integer64List.paList, 8 * (int64_t)n, err);
    for (int i = 0; i < n; i++)
    {
        int64_t length = (int64_t)strlen(raw->StringList.paList[i]) + 1;
        OJ_TRY(put_number(bytes, length, err));
        OJ_TRY(put_bytes(bytes, raw->StringList.paList[i], length, err));
    }
    return OJ_OK;
}

/* Returns the size of a value that is stored without a length. */
static int64_t field_value_size(OGRFieldType type)
{
    return oj_type_is_number(type) ? 8 : (int64_t)sizeof(OGRField);
}

static oj_status encode_value(struct oj_bytes *bytes, OGRFieldType type,
                              const struct oj_value *value,
                              struct oj_error *err)
{
    const OGRField *raw = &value->raw;
    const void *text;
    int64_t n;
    if (!oj_value_is_there(value))
        return put_number(bytes, 0, err);
    OJ_TRY(put_number(bytes, 1, err));
    if (oj_type_is_list(type))
        return encode_list(bytes, type, raw, err);
    if (type != OFTString && type != OFTBinary)
        return put_bytes(bytes, raw, field_value_size(type), err);
    text = oj_value_bytes(value, type, &n);
    OJ_TRY(put_number(bytes, n, err));
    return put_bytes(bytes, text, n, err);
}

/* Decodes a list of values. Texts stay in the record; *texts holds the pointers
 * to them. */
static oj_status decode_list(const unsigned char **at, OGRFieldType type,
                             OGRField *raw, char ***texts, int64_t *cap_texts,
                             struct oj_error *err)
{
    int n = (int)decode_number(at);
    raw->IntegerList.nCount = n;
    if (type == OFTIntegerList)
        raw->IntegerList.paList = (int *)read_padded_piece(at, 4 * (int64_t)n);
    else if (type != OFTStringList)
        raw->Integer64List.paList =
            (GIntBig *)read_padded_piece(at, 8 * (int64_t)n);
    else
    {
        OJ_TRY(oj_reserve(texts, 0, n, cap_texts, sizeof **texts, err));
        for (int i = 0; i < n; i++)
        {
            int64_t length = decode_number(at);
            (*texts)[i] = (char *)read_padded_piece(at, length);
        }
        raw->StringList.paList = *texts;
    }
    return OJ_OK;
}

static oj_status decode_value(const unsigned char **at, OGRFieldType type,
                              struct oj_value *value, char ***texts,
                              int64_t *cap_texts, struct oj_error *err)
{
    OGRField *raw = &value->raw;
    if (decode_number(at) == 0)
    {
        oj_value_set_null(value);
        return OJ_OK;
    }
    oj_value_set_zero(value);
    if (oj_type_is_list(type))
        return decode_list(at, type, raw, texts, cap_texts, err);
    if (type == OFTString)
    {
        value->n_text = decode_number(at);
        raw->String = (char *)read_padded_piece(at, value->n_text);
    }
    else if (type == OFTBinary)
    {
        raw->Binary.nCount = (int)decode_number(at);
        raw->Binary.paData = (GByte *)read_padded_piece(at, raw->Binary.nCount);
    }
    else
        memcpy(raw, read_padded_piece(at, field_value_size(type)),
               (size_t)field_value_size(type));
    return OJ_OK;
}

/* ---- records ------------------------------------------------------------- */

static oj_status encode_token_sets(struct oj_bytes *bytes,
                                   const struct oj_flat *flat, int64_t row,
                                   struct oj_error *err)
{
    for (int i = 0; i < flat->n_texts; i++)
    {
        const struct oj_token_sets *sets = &flat->texts[i];
        int64_t first = sets->offset[row], n = sets->offset[row + 1] - first;
        const struct text_head head = {n, sets->size[row], sets->bits[row]};
        OJ_TRY(put_bytes(bytes, &head, sizeof head, err));
        OJ_TRY(put_bytes(bytes, sets->token + first, 4 * n, err));
    }
    return OJ_OK;
}

/* A text of a record as a layer of one row. Its tokens stay in the record. */
struct record_text
{
    int64_t offset[2];
    int32_t size;
    struct oj_token_bits bits;
};

static void decode_token_sets(const unsigned char **at, int n,
                              struct record_text *text,
                              struct oj_token_sets *sets)
{
    for (int i = 0; i < n; i++)
    {
        struct text_head head;
        memcpy(&head, read_padded_piece(at, sizeof head), sizeof head);
        text[i] = (struct record_text){
            {0, head.n_tokens}, (int32_t)head.size, head.bits};
        sets[i] = (struct oj_token_sets){
            1, text[i].offset, read_padded_piece(at, 4 * head.n_tokens),
            &text[i].size, &text[i].bits};
    }
}

/* Appends the record of feature i of flat, with row i of values, to
 * tiles->held. Stores the bytes of the record without its attributes in
 * *n_joined; attributes are not loaded with a tile. */
static oj_status encode_record(struct oj_tiles *tiles,
                               const struct oj_flat *flat, int64_t i,
                               const struct oj_attributes *values,
                               int64_t ordinal, int64_t *n_joined,
                               struct oj_error *err)
{
    const struct oj_table *columns = tiles->columns;
    struct oj_bytes *bytes = &tiles->held;
    const struct oj_flat *f = flat;
    struct head head = {0,
                        ordinal,
                        f->fid != NULL ? f->fid[i] : 0,
                        f->max_distance != NULL ? f->max_distance[i] : 0.0,
                        f->on_class != NULL ? f->on_class[i] : 0,
                        f->exclude_class != NULL ? f->exclude_class[i] : 0,
                        (f->max_distance != NULL ? HAS_MAX_DISTANCE : 0) |
                            (f->on_class != NULL ? HAS_ON_CLASS : 0) |
                            (f->exclude_class != NULL ? HAS_EXCLUDE_CLASS : 0),
                        oj_wkb_size(f, i, 0),
                        0,
                        f->vectors.value != NULL ? f->vectors.n_dimensions : 0,
                        {0},
                        {0}};
    int64_t start = bytes->n, length, v, end_v;
    unsigned char *to;
    oj_flat_vertex_range(f, i, &v, &end_v);
    head.n_m = f->m != NULL ? end_v - v : 0;
    for (int s = 0; s < f->n_spans; s++)
    {
        head.from[s] = f->spans[s].from[i];
        head.until[s] = f->spans[s].until[i];
        head.columns |= HAS_SPAN << s;
    }
    OJ_TRY(put_bytes(bytes, &head, sizeof head, err));
    OJ_TRY(append_padded_space(bytes, head.n_wkb, &to, err));
    if (head.n_wkb > 0)
        oj_wkb_write(flat, i, 0, to);
    if (head.n_m > 0)
        OJ_TRY(put_bytes(bytes, f->m + v, 8 * head.n_m, err));
    OJ_TRY(encode_token_sets(bytes, flat, i, err));
    if (head.n_dimensions > 0)
        OJ_TRY(put_bytes(bytes, oj_vector_at(&f->vectors, i),
                         8 * head.n_dimensions, err));
    *n_joined = bytes->n - start;
    for (int c = 0; columns != NULL && c < oj_table_columns(columns); c++)
    {
        struct oj_value value;
        oj_attributes_value(values, c, i, &value);
        OJ_TRY(
            encode_value(bytes, oj_table_type(columns, c, NULL), &value, err));
    }
    length = bytes->n - start;
    memcpy(bytes->byte + start, &length, sizeof length);
    return OJ_OK;
}

/* Returns the length of a record in bytes, decoded from its first 8 bytes. */
static int64_t record_length(const unsigned char *record)
{
    return decode_number(&record);
}

static oj_status decode_attributes(const unsigned char *at,
                                   struct oj_table *table, struct oj_error *err)
{
    char **texts = NULL;
    int64_t cap_texts = 0;
    oj_status status = OJ_OK;
    for (int c = 0; status == OJ_OK && c < oj_table_columns(table); c++)
    {
        struct oj_value value;
        status = decode_value(&at, oj_table_type(table, c, NULL), &value,
                              &texts, &cap_texts, err);
        if (status == OJ_OK)
            status = oj_table_append_column_value(table, c, &value, err);
    }
    oj_free(texts);
    if (status == OJ_OK)
        oj_table_end_row(table);
    return status;
}

/* Adds the geometry of a record, with the M values of its vertices. */
static oj_status add_geometry(struct oj_flat_buf *buf, const struct head *head,
                              const uint8_t *wkb, const void *m,
                              struct oj_error *err)
{
    if (head->n_wkb == 0)
        return oj_flat_buf_add_null(buf, head->fid, err);
    buf->keeps_m |= head->n_m > 0;
    OJ_TRY(oj_wkb_add(buf, head->fid, wkb, (size_t)head->n_wkb, err));
    if (head->n_m > 0 && oj_flat_buf_last_m(buf, head->n_m) != NULL)
        memcpy(oj_flat_buf_last_m(buf, head->n_m), m, (size_t)(8 * head->n_m));
    return OJ_OK;
}

/* Adds the feature of the record at offset `place`. A record that was written
 * before the number of dimensions was known has no vector; its vector becomes
 * NaN. */
static oj_status decode_record(const struct oj_tiles *tiles,
                               const unsigned char *record, int64_t place,
                               struct oj_feature_set *features,
                               struct oj_error *err)
{
    double none[OJ_MOST_DIMENSIONS];
    struct record_text text[OJ_MOST_TEXTS];
    struct oj_token_sets sets[OJ_MOST_TEXTS];
    const unsigned char *at = record;
    int64_t n = features->buf.n_features;
    struct oj_flat columns = {0};
    const uint8_t *wkb;
    const void *m;
    struct head head;
    memcpy(&head, read_padded_piece(&at, sizeof head), sizeof head);
    wkb = read_padded_piece(&at, head.n_wkb);
    m = read_padded_piece(&at, 8 * head.n_m);
    decode_token_sets(&at, tiles->n_texts, text, sets);
    columns.texts = sets;
    columns.n_texts = tiles->n_texts;
    if (tiles->has_vectors)
    {
        columns.vectors.n_dimensions =
            tiles->n_dimensions > 0 ? tiles->n_dimensions : 1;
        columns.vectors.value = read_padded_piece(&at, 8 * head.n_dimensions);
    }
    if (tiles->has_vectors && head.n_dimensions == 0)
    {
        for (int64_t i = 0; i < columns.vectors.n_dimensions; i++)
            none[i] = NAN;
        columns.vectors.value = none;
    }
    if (head.columns & HAS_MAX_DISTANCE)
        columns.max_distance = &head.max_distance;
    if (head.columns & HAS_ON_CLASS)
        columns.on_class = &head.on_class;
    if (head.columns & HAS_EXCLUDE_CLASS)
        columns.exclude_class = &head.exclude_class;
    for (int s = 0; s < OJ_MOST_SPANS && (head.columns & HAS_SPAN << s); s++)
        columns.spans[columns.n_spans++] =
            (struct oj_spans){&head.from[s], &head.until[s]};
    if (features->table != NULL)
        OJ_TRY(decode_attributes(at, features->table, err));
    OJ_ROOM(features->place, n, n + 1, features->cap_place, err);
    OJ_ROOM(features->ordinal, n, n + 1, features->cap_ordinal, err);
    features->place[n] = place;
    features->ordinal[n] = head.ordinal;
    OJ_TRY(oj_compared_columns_append(&features->columns, n, &columns, 0, err));
    return add_geometry(&features->buf, &head, wkb, m, err);
}

/* ---- tiles --------------------------------------------------------------- */

struct oj_tile
{
    int64_t first, end; /* range of bytes of the file; whole records */
    int64_t n_bytes; /* estimated memory, by oj_join_tiles_estimate_bytes() */
};

/* Returns 1 if the join compares attributes alone, so that features without
 * geometries have pairs, too. */
static int is_by_attributes(enum oj_op op)
{
    return (oj_op_get(op)->takes & OJ_TAKES_ATTRIBUTES) != 0;
}

int64_t oj_join_tiles_estimate_bytes(enum oj_op op, int64_t bytes,
                                     int64_t n_vertices, int64_t n_tokens)
{
    return bytes + OJ_INDEX_BYTES_PER_VERTEX * n_vertices +
           (is_by_attributes(op) ? INDEX_BYTES_PER_TOKEN * n_tokens : 0);
}

oj_status oj_join_tiles_open(struct oj_tiles *tiles, const char *near,
                             int64_t memory, struct oj_error *err)
{
    tiles->stretch_bytes = memory / STRETCHES;
    return oj_temporary_file_open(near, "data", &tiles->file, err);
}

/* ---- reading ------------------------------------------------------------- */

/* Reads whole records that start between bytes `first` and `end`: as many as
 * fit in n bytes, but at least one. */
static oj_status read_whole_records(const struct oj_tiles *tiles, int64_t first,
                                    int64_t end, int64_t n,
                                    struct oj_bytes *piece,
                                    struct oj_error *err)
{
    int64_t whole = 0, length = 0;
    while (whole == 0)
    {
        n = length > n ? length : n;
        n = n < end - first ? n : end - first;
        OJ_ROOM(piece->byte, 0, n, piece->capacity, err);
        OJ_TRY(
            oj_temporary_file_read(&tiles->file, first, piece->byte, n, err));
        while (whole < n &&
               (length = record_length(piece->byte + whole)) <= n - whole)
            whole += length;
    }
    piece->n = whole;
    return OJ_OK;
}

/* ---- writing ------------------------------------------------------------- */

static oj_status write_held_records(struct oj_tiles *tiles,
                                    struct oj_error *err)
{
    OJ_TRY(oj_temporary_file_write(&tiles->file, tiles->held.byte,
                                   tiles->held.n, err));
    tiles->held.n = 0;
    return OJ_OK;
}

/* Adds the records up to byte `end` of the file to the last tile, or begins a
 * new tile with them if they do not fit. */
static oj_status extend_or_begin_tile(struct oj_tiles *tiles, int64_t end,
                                      int64_t n_bytes, int64_t most_bytes,
                                      struct oj_error *err)
{
    struct oj_tile *last =
        tiles->n_tiles > 0 ? &tiles->tile[tiles->n_tiles - 1] : NULL;
    if (last == NULL || last->n_bytes + n_bytes > most_bytes)
    {
        int64_t first = last != NULL ? last->end : 0;
        OJ_ROOM(tiles->tile, tiles->n_tiles, tiles->n_tiles + 1,
                tiles->cap_tiles, err);
        last = &tiles->tile[tiles->n_tiles++];
        last->first = first;
        last->n_bytes = 0;
    }
    last->end = end;
    last->n_bytes += n_bytes;
    return OJ_OK;
}

/* Renumbers the tokens of a record: token t of text i becomes number[i][t]. */
static void renumber_tokens_of_record(const struct oj_tiles *tiles,
                                      unsigned char *record,
                                      uint32_t *const *number)
{
    struct text_head text;
    struct head head;
    const unsigned char *at = record;
    memcpy(&head, read_padded_piece(&at, sizeof head), sizeof head);
    (void)read_padded_piece(&at, head.n_wkb);
    (void)read_padded_piece(&at, 8 * head.n_m);
    for (int i = 0; i < tiles->n_texts; i++)
    {
        memcpy(&text, read_padded_piece(&at, sizeof text), sizeof text);
        oj_tokens_renumber((void *)(record + (at - record)), text.n_tokens,
                           number[i]);
        (void)read_padded_piece(&at, 4 * text.n_tokens);
    }
}

static oj_status renumber_tokens(struct oj_tiles *tiles,
                                 uint32_t *const *number, struct oj_error *err)
{
    struct oj_bytes *piece = &tiles->held;
    for (int64_t at = 0; at < tiles->file.size; at += piece->n)
    {
        int64_t i = 0;
        OJ_TRY(read_whole_records(tiles, at, tiles->file.size, PIECE_BYTES,
                                  piece, err));
        for (; i < piece->n; i += record_length(piece->byte + i))
            renumber_tokens_of_record(tiles, piece->byte + i, number);
        OJ_TRY(oj_temporary_file_overwrite(&tiles->file, at, piece->byte,
                                           piece->n, err));
    }
    return OJ_OK;
}

oj_status oj_join_tiles_finish(struct oj_tiles *tiles, int64_t memory,
                               uint32_t *const *number, struct oj_error *err)
{
    int64_t n_stretches = tiles->n_tiles;
    OJ_TRY(write_held_records(tiles, err));
    if (number != NULL && tiles->n_texts > 0)
        OJ_TRY(renumber_tokens(tiles, number, err));
    /* Combines the stretches in tiles->tile into tiles, in place: an element is
     * overwritten only after it was read as a stretch. */
    tiles->n_tiles = 0;
    for (int64_t i = 0; i < n_stretches; i++)
    {
        const struct oj_tile stretch = tiles->tile[i];
        OJ_TRY(extend_or_begin_tile(tiles, stretch.end, stretch.n_bytes, memory,
                                    err));
    }
    return OJ_OK;
}

oj_status oj_join_tiles_add(struct oj_tiles *tiles, const struct oj_flat *flat,
                            const struct oj_attributes *values,
                            int64_t first_ordinal, struct oj_error *err)
{
    struct oj_bytes *held = &tiles->held;
    tiles->n_dimensions = flat->vectors.n_dimensions;
    if (flat->m != NULL)
        tiles->m_found |= oj_flat_m_presence(flat);
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t first, end, n_joined, n_tokens = 0;
        oj_flat_vertex_range(flat, i, &first, &end);
        for (int t = 0; t < flat->n_texts; t++)
            n_tokens += flat->texts[t].size[i];
        if (first == end && !is_by_attributes(tiles->op))
            continue;
        OJ_TRY(encode_record(tiles, flat, i, values, first_ordinal + i,
                             &n_joined, err));
        OJ_TRY(extend_or_begin_tile(
            tiles, tiles->file.size + held->n,
            oj_join_tiles_estimate_bytes(tiles->op, n_joined, end - first,
                                         n_tokens),
            tiles->stretch_bytes, err));
        if (held->n >= PIECE_BYTES)
            OJ_TRY(write_held_records(tiles, err));
    }
    return OJ_OK;
}

/* ---- loading ------------------------------------------------------------- */

static oj_status read_join_side_tile(const struct oj_tiles *tiles, int64_t t,
                                     struct oj_feature_set *side,
                                     struct oj_error *err)
{
    const struct oj_bytes *piece = &side->piece;
    int64_t first = tiles->tile[t].first, end = tiles->tile[t].end;
    OJ_TRY(clear_features(side, NULL, err));
    for (; first < end; first += piece->n)
    {
        int64_t at = 0;
        OJ_TRY(read_whole_records(tiles, first, end, PIECE_BYTES, &side->piece,
                                  err));
        for (; at < piece->n; at += record_length(piece->byte + at))
            OJ_TRY(
                decode_record(tiles, piece->byte + at, first + at, side, err));
    }
    return OJ_OK;
}

oj_status oj_join_tiles_read_features(const struct oj_tiles *tiles,
                                      const int64_t *place, int64_t n,
                                      int with_attributes,
                                      struct oj_feature_set *side,
                                      struct oj_error *err)
{
    OJ_TRY(clear_features(side, with_attributes ? tiles->columns : NULL, err));
    for (int64_t i = 0; i < n; i++)
    {
        OJ_TRY(read_whole_records(tiles, place[i], tiles->file.size,
                                  RECORD_BYTES, &side->piece, err));
        OJ_TRY(decode_record(tiles, side->piece.byte, place[i], side, err));
    }
    return OJ_OK;
}

void oj_join_tiles_close(struct oj_tiles *tiles)
{
    oj_table_free(tiles->columns);
    oj_free(tiles->tile);
    oj_free(tiles->held.byte);
    oj_temporary_file_close(&tiles->file);
    memset(tiles, 0, sizeof *tiles);
}

/* ---- the join ------------------------------------------------------------ */

oj_status oj_tiled_join_open(const struct oj_tiles *tiles,
                             const struct oj_relation *relation,
                             const char *backend,
                             const struct oj_options *options,
                             int fids_are_unique, struct oj_tiled_join **out,
                             struct oj_error *err)
{
    struct oj_tiled_join *join;
    OJ_NEW_ZEROED(join, 1, err);
    join->tiles = tiles;
    join->relation = *relation;
    /* With OJ_ENOUGH_FIRST the measure of a pair is the number of pairs of its
     * row, and each tile would count only its own pairs. */
    if (oj_relation_is_of_equal_attributes(relation))
        join->relation.enough_pairs = OJ_ENOUGH_ALL;
    join->options = *options;
    join->backend = backend;
    join->fids_are_unique = fids_are_unique;
    join->loaded = -1;
    join->n_threads = 1;
    if (backend != NULL)
        join->used = oj_backend_find(backend);
    if (join->used == NULL)
        join->used = oj_backend_at(0);
    *out = join;
    return OJ_OK;
}

/* ---- one tile ------------------------------------------------------------ */

static void close_engine(struct oj_tiled_join *join)
{
    if (join->engine != NULL)
        oj_stats_add(&join->stats, NULL, oj_join_stats(join->engine));
    oj_join_close(join->engine);
    join->engine = NULL;
    join->loaded = -1;
}

void oj_tiled_join_unload(struct oj_tiled_join *join)
{
    close_engine(join);
    oj_feature_set_free(&join->side);
}

static oj_status load_engine(struct oj_tiled_join *join, int64_t tile,
                             struct oj_error *err)
{
    if (join->loaded == tile)
        return OJ_OK;
    close_engine(join);
    OJ_TRY(read_join_side_tile(join->tiles, tile, &join->side, err));
    join->flat = oj_feature_set_view(&join->side);
    /* FIDs that are unique within this tile can repeat in the layer, so FIDs
     * may not break ties in any tile. */
    if (!join->fids_are_unique)
        join->flat.fid = join->side.ordinal;
    OJ_TRY(oj_join_open(&join->flat, &join->relation, join->backend,
                        &join->options, &join->engine, err));
    join->loaded = tile;
    join->used = oj_join_backend(join->engine);
    join->n_threads = oj_join_threads(join->engine);
    return OJ_OK;
}

/* Sets number[i] to 0 if matches contain feature i (of n), else to -1. */
static void mark_features_named_by_matches(const struct oj_matches *matches,
                                           int64_t n, int32_t *number)
{
    for (int64_t i = 0; i < n; i++)
        number[i] = -1;
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t i = oj_matches_first(matches, row); i < end; i++)
            number[matches->join_row[i]] = 0;
    }
    for (int64_t i = 0; i < matches->n_undecided; i++)
    {
        if (matches->undecided_join != NULL && matches->undecided_join[i] >= 0)
            number[matches->undecided_join[i]] = 0;
    }
}

/* Appends the features matched in this tile to join->found, and sets
 * join->number, which maps features of the tile to indices of join->found. */
static oj_status add_matched_features(struct oj_tiled_join *join,
                                      struct oj_error *err)
{
    int64_t n = join->flat.n_features, n_found = join->n_found, at = 0;
    struct found_feature *found;
    OJ_ROOM(join->number, 0, n, join->cap_number, err);
    OJ_ROOM(join->found, n_found, n_found + n, join->cap_found, err);
    mark_features_named_by_matches(&join->matches, n, join->number);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t place = join->side.place[i];
        if (join->number[i] < 0)
            continue;
        while (at < join->n_first && join->found[at].place < place)
            at++;
        join->number[i] = (int32_t)at;
        if (at == join->n_first || join->found[at].place != place)
            join->number[i] = (int32_t)join->n_found++;
        found = &join->found[join->number[i]];
        found->place = place;
        found->tie_key = join->fids_are_unique ? join->flat.fid[i] : place;
    }
    return OJ_OK;
}

/* Appends the pairs of matches to the answer. number maps join_row to indices
 * of `found`. If number is NULL, join_row is such an index already. */
static oj_status append_matches_of_tile(struct oj_tiled_join *join,
                                        const struct oj_matches *matches,
                                        const int32_t *number,
                                        struct oj_error *err)
{
    struct oj_answers *answers = &join->answers;
    OJ_TRY(oj_answers_reserve(answers, matches->n_pairs, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t i = oj_matches_first(matches, row); i < end; i++)
        {
            int32_t feature = matches->join_row[i];
            oj_answers_append_pair(answers, (int32_t)row,
                                   number != NULL ? number[feature] : feature,
                                   matches->measure[i]);
        }
    }
    for (int64_t i = 0; i < matches->n_undecided; i++)
    {
        int32_t feature =
            matches->undecided_join != NULL ? matches->undecided_join[i] : -1;
        if (feature >= 0 && number != NULL)
            feature = number[feature];
        OJ_TRY(oj_answers_add_undecided(answers, matches->undecided[i], feature,
                                        err));
    }
    return OJ_OK;
}

/* ---- merging ------------------------------------------------------------- */

static int compare_found_in_tie_order(const void *left, const void *right)
{
    const struct found_feature *a = *(struct found_feature *const *)left;
    const struct found_feature *b = *(struct found_feature *const *)right;
    if (a->tie_key != b->tie_key)
        return a->tie_key < b->tie_key ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

oj_status oj_tiled_join_rank_ties(struct oj_tiled_join *join,
                                  const int32_t **rank, struct oj_error *err)
{
    int64_t n = join->n_found;
    struct found_feature **order;
    OJ_ROOM(join->tie_rank, 0, n, join->cap_tie_rank, err);
    OJ_NEW(order, n, err);
    for (int64_t i = 0; i < n; i++)
        order[i] = &join->found[i];
    qsort(order, (size_t)n, sizeof *order, compare_found_in_tie_order);
    for (int64_t i = 0; i < n; i++)
        join->tie_rank[order[i] - join->found] = (int32_t)i;
    oj_free(order);
    *rank = join->tie_rank;
    return OJ_OK;
}

static int compare_places_of_features(const void *left, const void *right)
{
    const struct found_feature *a = left, *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

/* Replaces join_row by number[join_row]. The caller must then sort the
 * undecided features of each row again. */
static void renumber_matches(struct oj_matches *out, const int32_t *number)
{
    int32_t *list = out->undecided_join;
    for (int64_t i = 0; i < out->n_entries; i++)
    {
        if (out->join_row[i] >= 0)
            out->join_row[i] = number[out->join_row[i]];
    }
    for (int64_t i = 0, first = 0; i < out->n_undecided; i++)
    {
        if (list[i] >= 0)
            list[i] = number[list[i]];
        if (i + 1 < out->n_undecided &&
            out->undecided[i + 1] == out->undecided[i])
            continue;
        qsort(list + first, (size_t)(i + 1 - first), sizeof *list,
              oj_compare_int32);
        first = i + 1;
    }
}

/* Removes from `found` the features that do not occur in *out, except the first
 * n_first; sorts the rest by place and renumbers *out. */
static oj_status drop_unmatched_found_features(struct oj_tiled_join *join,
                                               struct oj_matches *out,
                                               struct oj_error *err)
{
    int64_t n = join->n_found, kept = 0;
    int32_t *number;
    OJ_ROOM(join->number, 0, n, join->cap_number, err);
    number = join->number;
    mark_features_named_by_matches(out, n, number);
    for (int64_t i = 0; i < n; i++)
    {
        if (number[i] < 0 && i >= join->n_first)
            continue;
        join->found[i].before = (int32_t)i;
        join->found[kept++] = join->found[i];
    }
    join->n_found = kept;
    qsort(join->found + join->n_first, (size_t)(kept - join->n_first),
          sizeof *join->found, compare_places_of_features);
    for (int64_t i = 0; i < kept; i++)
        number[join->found[i].before] = (int32_t)i;
    renumber_matches(out, number);
    return OJ_OK;
}

/* Merges the answers of the tiles so far into one, as if the join side were one
 * layer. */
static oj_status merge_answers_of_tiles(struct oj_tiled_join *join,
                                        int64_t n_rows, struct oj_matches *out,
                                        struct oj_error *err)
{
    struct oj_relation relation = join->relation;
    const int32_t *rank;
    relation.max_distance = INFINITY; /* the engines have applied it already */
    OJ_TRY(oj_tiled_join_rank_ties(join, &rank, err));
    OJ_TRY(oj_answers_to_matches(&join->answers, 1, n_rows, &relation, rank,
                                 out, err));
    return drop_unmatched_found_features(join, out, err);
}

/* Returns 1 if only the k best pairs of a row are kept. */
static int does_join_keep_k_best(const struct oj_relation *relation)
{
    return oj_relation_sorts_by_measure(relation) &&
           relation->k < OJ_EVERY_PAIR;
}

/* Keeps only the k best pairs per row among the tiles so far once there are
 * more than 2 * k per row, so that the number of pairs does not grow with the
 * number of tiles. */
static oj_status prune_to_k_best(struct oj_tiled_join *join, int64_t n_rows,
                                 struct oj_error *err)
{
    if (!does_join_keep_k_best(&join->relation) ||
        join->answers.n_entries <= 2 * n_rows * join->relation.k)
        return OJ_OK;
    OJ_TRY(merge_answers_of_tiles(join, n_rows, &join->matches, err));
    oj_answers_start(&join->answers, NULL);
    return append_matches_of_tile(join, &join->matches, NULL, err);
}

/* ---- all tiles ----------------------------------------------------------- */

/* Joins a batch with all tiles. Every second batch visits the tiles in reverse
 * order, so that the tile in memory is used again. Pairs of k-best joins do not
 * count against the limit of pairs, since most of them are dropped again. */
static oj_status join_batch_with_tiles(struct oj_tiled_join *join,
                                       const struct oj_flat *input,
                                       struct oj_error *err)
{
    int64_t n = join->tiles->n_tiles, n_rows = input->n_features;
    int backwards = join->loaded > 0;
    oj_pair_budget_start(&join->budget, join->options.max_batch_pairs, n_rows,
                         1);
    oj_answers_start(&join->answers, does_join_keep_k_best(&join->relation)
                                         ? NULL
                                         : &join->budget);
    for (int64_t i = 0; i < n; i++)
    {
        OJ_TRY(load_engine(join, backwards ? n - 1 - i : i, err));
        OJ_TRY(oj_join_batch(join->engine, input, &join->matches, err));
        OJ_TRY(add_matched_features(join, err));
        OJ_TRY(append_matches_of_tile(join, &join->matches, join->number, err));
        OJ_TRY(prune_to_k_best(join, n_rows, err));
    }
    join->total = join->stats;
    if (join->engine != NULL)
        oj_stats_add(&join->total, NULL, oj_join_stats(join->engine));
    return OJ_OK;
}

static oj_status reload_found_features_from_tiles(struct oj_tiled_join *join,
                                                  int with_attributes,
                                                  struct oj_feature_set *side,
                                                  struct oj_error *err)
{
    int64_t *place;
    oj_status status;
    OJ_NEW(place, join->n_found, err);
    for (int64_t i = 0; i < join->n_found; i++)
        place[i] = join->found[i].place;
    status = oj_join_tiles_read_features(join->tiles, place, join->n_found,
                                         with_attributes, side, err);
    oj_free(place);
    return status;
}

static oj_status
start_with_features_found_before(struct oj_tiled_join *join,
                                 const struct oj_answer_places *first,
                                 struct oj_error *err)
{
    int64_t n = first != NULL ? first->n : 0;
    OJ_ROOM(join->found, 0, n, join->cap_found, err);
    join->n_first = join->n_found = n;
    for (int64_t i = 0; i < n; i++)
    {
        join->found[i].place = first->place[i];
        /* add_matched_features() sets the key if the feature has a pair */
        join->found[i].tie_key = 0;
    }
    return OJ_OK;
}

oj_status oj_tiled_join_batch(struct oj_tiled_join *join,
                              const struct oj_flat *input,
                              const struct oj_answer_places *first,
                              int with_attributes, struct oj_matches *out,
                              struct oj_feature_set *side, struct oj_error *err)
{
    OJ_TRY(start_with_features_found_before(join, first, err));
    OJ_TRY(join_batch_with_tiles(join, input, err));
    OJ_TRY(merge_answers_of_tiles(join, input->n_features, out, err));
    return reload_found_features_from_tiles(join, with_attributes, side, err);
}

void oj_tiled_join_close(struct oj_tiled_join *join)
{
    if (join == NULL)
        return;
    oj_tiled_join_unload(join);
    oj_matches_free(&join->matches);
    oj_answers_free(&join->answers);
    oj_free(join->found);
    oj_free(join->number);
    oj_free(join->tie_rank);
    oj_free(join);
}
