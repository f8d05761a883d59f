#include "oj_arrow_iso_wkb.h"

#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/text/oj_geometry_text.h"
#include "oj_arrow_column.h"
#include "oj_arrow_plain_values.h"

#include <stdio.h>

/* ---- geometries of a column ---------------------------------------------- */

struct geometry_rows
{
    const struct oj_arrow_geometry_column *of;
    const struct ArrowArray *column;
    struct arrow_presence is;
    struct arrow_bytes bytes; /* the rows' texts or WKB; not set if
                                 is_encoded */
    int is_text;
    int is_encoded; /* 1: the texts are encoded by a dictionary or as runs */
    int64_t n_rows;
    struct oj_arrow_srid *srid;
    struct oj_geometry_bytes read, iso; /* the current row: bytes of its text,
                                           and ISO WKB made of extended WKB */
};

/* The geometry of a row. wkb points into the column or into the buffers of
 * geometry_rows. */
struct geometry
{
    const uint8_t *wkb; /* NULL: the row has no geometry */
    size_t n;
    int is_extended; /* 1: the row holds extended WKB, and wkb is its conversion
                        to ISO WKB, unless is_broken */
    int is_broken;
    int64_t srid;
};

int oj_arrow_is_text(const struct ArrowSchema *schema)
{
    return oj_arrow_field_kind(schema) == OJ_FIELD_TEXT;
}

static oj_status open_rows(const struct oj_arrow_geometry_column *of,
                           const struct ArrowArray *array, int64_t child,
                           struct oj_arrow_srid *srid,
                           struct geometry_rows *out, struct oj_error *err)
{
    memset(out, 0, sizeof *out);
    out->of = of;
    out->srid = srid;
    out->n_rows = array->length;
    out->is_text = oj_arrow_is_text(of->schema);
    out->is_encoded =
        oj_arrow_schema_of_decoded_values(of->schema) != of->schema;
    OJ_TRY(arrow_find_column(array, child, &out->column, &out->is, err));
    return out->is_encoded ? OJ_OK
                           : arrow_bytes_read(out->column, of->schema->format,
                                              out->is.skipped, out->n_rows,
                                              &out->bytes, err);
}

static void close_rows(struct geometry_rows *rows)
{
    oj_geometry_bytes_free(&rows->read);
    oj_geometry_bytes_free(&rows->iso);
}

static const char *column_name(const struct geometry_rows *rows)
{
    const char *name = rows->of->schema->name;
    return name != NULL && name[0] != '\0' ? name : "geometry";
}

static oj_status fail_text(const struct geometry_rows *rows, int64_t row,
                           const char *text, size_t n,
                           const struct oj_error *why, struct oj_error *err)
{
    char excerpt[41];
    oj_geometry_text_excerpt(text, (int64_t)n, excerpt, sizeof excerpt);
    return oj_fail(err, OJ_ERR_ARG,
                   "%s side: row %lld: the column %.100s holds no geometry as "
                   "WKT or as hexadecimal digits of WKB: '%s' (%s); correct "
                   "it, or make it NULL",
                   rows->of->side, (long long)(rows->of->first_row + row),
                   column_name(rows), excerpt, why->message);
}

/* Finds the text of a row that is not NULL. *text becomes NULL if the row
 * refers to a NULL in its dictionary. */
static oj_status text_of_row(const struct geometry_rows *rows, int64_t row,
                             const char **text, size_t *n, struct oj_error *err)
{
    struct oj_plain_value value;
    struct oj_arrow_room room;
    const uint8_t *bytes;
    if (!rows->is_encoded)
    {
        OJ_TRY(arrow_bytes_of_row(&rows->bytes, row, &bytes, n, err));
        *text = (const char *)bytes;
        return OJ_OK;
    }
    OJ_TRY(oj_arrow_plain_value(rows->of->schema, rows->column,
                                rows->is.skipped + row, &room, &value, err));
    *text = value.form == OJ_PLAIN_TEXT ? value.text : NULL;
    *n = (size_t)value.n;
    return OJ_OK;
}

static oj_status read_geometry_text_of_row(struct geometry_rows *rows,
                                           int64_t row, struct geometry *out,
                                           struct oj_error *err)
{
    const char *text;
    struct oj_error why;
    oj_status status;
    size_t n = 0;
    OJ_TRY(text_of_row(rows, row, &text, &n, err));
    if (text == NULL)
        return OJ_OK;
    rows->read.n = 0;
    status =
        oj_geometry_text_read(text, (int64_t)n, &rows->read, &out->srid, &why);
    if (status == OJ_ERR_NOMEM)
        return oj_fail(err, status, "%s", why.message);
    if (status != OJ_OK)
        return fail_text(rows, row, text, n, &why, err);
    if (rows->read.n > 0)
        out->wkb = rows->read.byte;
    out->n = (size_t)rows->read.n;
    return OJ_OK;
}

/* Replaces extended WKB by ISO WKB. */
static oj_status convert_extended_to_iso_wkb(struct geometry_rows *rows,
                                             struct geometry *g,
                                             struct oj_error *err)
{
    struct oj_error why;
    int64_t srid = 0;
    size_t n;
    OJ_ROOM(rows->iso.byte, 0, (int64_t)g->n, rows->iso.cap, err);
    if (oj_wkb_copy_as_iso(g->wkb, g->n, rows->iso.byte, &n, &srid, &why) !=
        OJ_OK)
    {
        g->is_broken = 1;
        return OJ_OK;
    }
    g->wkb = rows->iso.byte;
    g->n = n;
    if (g->srid == 0)
        g->srid = srid;
    return OJ_OK;
}

static oj_status read_geometry(struct geometry_rows *rows, int64_t row,
                               struct geometry *out, struct oj_error *err)
{
    memset(out, 0, sizeof *out);
    if (!arrow_is_valid(&rows->is, row))
        return OJ_OK;
    OJ_TRY(rows->is_text ? read_geometry_text_of_row(rows, row, out, err)
                         : arrow_bytes_of_row(&rows->bytes, row, &out->wkb,
                                              &out->n, err));
    out->is_extended = out->wkb != NULL && oj_wkb_is_extended(out->wkb, out->n);
    return out->is_extended ? convert_extended_to_iso_wkb(rows, out, err)
                            : OJ_OK;
}

/* ---- SRID ---------------------------------------------------------------- */

static const char *srid_text(int64_t srid, char *text, size_t size)
{
    if (srid == 0)
        snprintf(text, size, "no SRID");
    else
        snprintf(text, size, "the SRID %lld", (long long)srid);
    return text;
}

static oj_status check_srid(struct geometry_rows *rows, int64_t row,
                            const struct geometry *g, struct oj_error *err)
{
    struct oj_arrow_srid *srid = rows->srid;
    char here[40], there[40];
    row += rows->of->first_row;
    if (srid->is_ignored || g->wkb == NULL || g->is_broken)
        return OJ_OK;
    if (!srid->is_found)
        *srid = (struct oj_arrow_srid){0, 1, g->srid, row};
    if (srid->number == g->srid)
        return OJ_OK;
    return oj_fail(
        err, OJ_ERR_ARG,
        "%s side: row %lld: the geometry has %s, and that of row %lld has %s, "
        "in the column %.100s, which has one CRS: bring its rows to one CRS, "
        "or write %s_crs for all of them",
        rows->of->side, (long long)row, srid_text(g->srid, here, sizeof here),
        (long long)srid->row, srid_text(srid->number, there, sizeof there),
        column_name(rows), rows->of->side);
}

oj_status
oj_arrow_iso_wkb_detect_srid(const struct oj_arrow_geometry_column *of,
                             const struct ArrowArray *array, int64_t child,
                             struct oj_arrow_srid *srid, int *is_extended,
                             struct oj_error *err)
{
    struct geometry_rows rows;
    struct geometry g = {0};
    oj_status status = open_rows(of, array, child, srid, &rows, err);
    for (int64_t row = 0; row < rows.n_rows && status == OJ_OK && g.wkb == NULL;
         row++)
    {
        status = read_geometry(&rows, row, &g, err);
        if (status == OJ_OK)
            status = check_srid(&rows, row, &g, err);
    }
    *is_extended = !rows.is_text && g.is_extended;
    close_rows(&rows);
    return status;
}

/* ---- columns of ISO WKB -------------------------------------------------- */

static oj_status put_wkb_in_row(struct oj_arrow_column *column, int64_t at,
                                const struct geometry *g, struct oj_error *err)
{
    char *to;
    if (g->wkb == NULL)
        return oj_arrow_column_put_null(column, at, err);
    OJ_TRY(oj_arrow_column_put_bytes(column, at, (int64_t)g->n, &to, err));
    if (to == NULL)
        return arrow_fail_limit(err);
    memcpy(to, g->wkb, g->n);
    return OJ_OK;
}

/* Checks the SRIDs of all rows. Sets *has_extended to 1 if one of the
 * geometries is extended WKB, otherwise to 0. */
static oj_status check_srids_and_find_extended(struct geometry_rows *rows,
                                               int *has_extended,
                                               struct oj_error *err)
{
    *has_extended = 0;
    for (int64_t row = 0; row < rows->n_rows; row++)
    {
        struct geometry g;
        OJ_TRY(read_geometry(rows, row, &g, err));
        *has_extended |= g.is_extended;
        OJ_TRY(check_srid(rows, row, &g, err));
    }
    return OJ_OK;
}

static oj_status fill_column(struct geometry_rows *rows,
                             struct oj_arrow_column *column,
                             struct oj_error *err)
{
    const int64_t skipped = rows->is.skipped;
    for (int64_t row = 0; row < skipped; row++)
        OJ_TRY(oj_arrow_column_put_null(column, row, err));
    for (int64_t row = 0; row < rows->n_rows; row++)
    {
        struct geometry g;
        OJ_TRY(read_geometry(rows, row, &g, err));
        OJ_TRY(check_srid(rows, row, &g, err));
        OJ_TRY(put_wkb_in_row(column, skipped + row, &g, err));
    }
    return OJ_OK;
}

oj_status oj_arrow_iso_wkb_make(const struct oj_arrow_geometry_column *of,
                                const struct ArrowArray *array, int64_t child,
                                const char *format, struct oj_arrow_srid *srid,
                                int *is_made, struct ArrowArray *out,
                                struct oj_error *err)
{
    struct geometry_rows rows;
    struct oj_arrow_column column;
    oj_status status = open_rows(of, array, child, srid, &rows, err);
    memset(&column, 0, sizeof column);
    memset(out, 0, sizeof *out);
    *is_made = 1;
    if (status == OJ_OK && strcmp(of->schema->format, format) == 0)
        status = check_srids_and_find_extended(&rows, is_made, err);
    if (format[0] == 'v') /* vz is the format of a column whose first geometry
                             is ISO WKB: the column stays as it is */
        *is_made = 0;
    if (status == OJ_OK && *is_made)
        status = oj_arrow_column_open_format(
            format, rows.is.skipped + rows.n_rows, &column, err);
    if (status == OJ_OK && *is_made)
        status = fill_column(&rows, &column, err);
    if (status == OJ_OK && *is_made)
        status = oj_arrow_column_finish(&column, rows.is.skipped + rows.n_rows,
                                        out, err);
    if (status != OJ_OK)
        oj_arrow_array_release(out);
    oj_arrow_column_free(&column);
    close_rows(&rows);
    return status;
}

/* ---- schemas ------------------------------------------------------------- */

/* Writes a CRS as JSON to `to`: as a JSON string, or unchanged if it is JSON
 * already. Returns the number of bytes. to NULL: only counts them. */
static int64_t write_crs_as_json(const char *words, char *to)
{
    int64_t n = 0;
    if (words[0] == '{' || words[0] == '"')
    {
        n = (int64_t)strlen(words);
        if (to != NULL)
            memcpy(to, words, (size_t)n);
        return n;
    }
    for (const char *at = words; *at != '\0'; at++)
    {
        if (to != NULL && (*at == '"' || *at == '\\'))
            to[1 + n] = '\\';
        n += *at == '"' || *at == '\\';
        if (to != NULL)
            to[1 + n] = (unsigned char)*at < ' ' ? ' ' : *at;
        n++;
    }
    if (to != NULL)
        to[0] = to[1 + n] = '"';
    return n + 2;
}

static char *put_length_and_bytes(char *to, const char *bytes, int32_t n)
{
    memcpy(to, &n, sizeof n);
    if (n > 0)
        memcpy(to + sizeof n, bytes, (size_t)n);
    return to + sizeof n + n;
}

oj_status oj_arrow_wkb_schema(const char *format, const char *name,
                              const char *crs, struct ArrowSchema *out,
                              struct oj_error *err)
{
    static const char key[] = "ARROW:extension:name", wkb[] = "geoarrow.wkb";
    static const char key_of_crs[] = "ARROW:extension:metadata";
    int64_t n = crs != NULL ? write_crs_as_json(crs, NULL) + 8 : 2;
    int32_t n_pairs = 2;
    char *metadata, *text, *to;
    oj_status status;
    memset(out, 0, sizeof *out);
    OJ_NEW(metadata,
           n + 5 * (int64_t)sizeof n_pairs +
               (int64_t)(sizeof key + sizeof wkb + sizeof key_of_crs),
           err);
    text = oj_malloc(n + 1, 1);
    if (text == NULL)
    {
        oj_free(metadata);
        return oj_fail_nomem(err, n + 1, 1);
    }
    memcpy(text, "{}", 2);
    if (crs != NULL)
    {
        memcpy(text, "{\"crs\":", 7);
        write_crs_as_json(crs, text + 7);
        text[n - 1] = '}';
    }
    memcpy(metadata, &n_pairs, sizeof n_pairs);
    to = put_length_and_bytes(metadata + sizeof n_pairs, key,
                              (int32_t)sizeof key - 1);
    to = put_length_and_bytes(to, wkb, (int32_t)sizeof wkb - 1);
    to = put_length_and_bytes(to, key_of_crs, (int32_t)sizeof key_of_crs - 1);
    put_length_and_bytes(to, text, (int32_t)n);
    status = oj_arrow_schema_make(format, name, metadata, ARROW_FLAG_NULLABLE,
                                  0, out, err);
    oj_free(metadata);
    oj_free(text);
    return status;
}
