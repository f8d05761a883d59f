#include "oj_arrow_geometry_text.h"

#include "../../../flatten/text/oj_geometry_text.h"
#include "oj_arrow_column.h"

/* A conversion under way. */
struct text_conversion
{
    const char *name;
    int64_t first_row;
    struct arrow_presence is;
    struct arrow_bytes texts;
    struct oj_geometry_bytes wkb; /* WKB of the current row */
    struct oj_arrow_column column;
};

static oj_status fail_text(const struct text_conversion *c, int64_t row,
                           const uint8_t *text, size_t n,
                           const struct oj_error *why, struct oj_error *err)
{
    char excerpt[41];
    oj_geometry_text_excerpt((const char *)text, (int64_t)n, excerpt,
                             sizeof excerpt);
    return oj_fail(err, OJ_ERR_ARG,
                   "row %lld: the column %.100s holds no geometry as WKT or as "
                   "hexadecimal digits of WKB: '%s' (%s); correct the text, or "
                   "make it NULL",
                   (long long)(c->first_row + row), c->name, excerpt,
                   why->message);
}

static oj_status convert_row(struct text_conversion *c, int64_t row,
                             struct oj_error *err)
{
    const uint8_t *text;
    struct oj_error why;
    oj_status status;
    size_t n;
    char *to;
    c->wkb.n = 0;
    if (arrow_is_valid(&c->is, row))
    {
        OJ_TRY(arrow_bytes_find(&c->texts, row, &text, &n, err));
        status = oj_geometry_text_read((const char *)text, (int64_t)n, &c->wkb,
                                       &why);
        if (status == OJ_ERR_NOMEM)
            return oj_fail(err, status, "%s", why.message);
        if (status != OJ_OK)
            return fail_text(c, row, text, n, &why, err);
    }
    if (c->wkb.n == 0)
        return oj_arrow_column_put_null(&c->column, row, err);
    OJ_TRY(oj_arrow_column_put_bytes(&c->column, row, c->wkb.n, &to, err));
    if (to == NULL)
        return arrow_fail_limit(err);
    memcpy(to, c->wkb.byte, (size_t)c->wkb.n);
    return OJ_OK;
}

static oj_status convert_rows(struct text_conversion *c,
                              const struct ArrowSchema *schema,
                              const struct ArrowArray *array,
                              struct ArrowArray *out, struct oj_error *err)
{
    const char *format = schema->format;
    const struct ArrowArray *column;
    if (strcmp(format, "u") != 0 && strcmp(format, "U") != 0 &&
        strcmp(format, "vu") != 0)
        return oj_fail(
            err, OJ_ERR_ARG,
            "the column %.100s holds no texts, because its Arrow format is "
            "\"%.40s\": name a column of geometries, WKB or WKT",
            c->name, format);
    OJ_TRY(arrow_find_column(array, -1, &column, &c->is, err));
    OJ_TRY(arrow_bytes_read(array, format, 0, array->length, &c->texts, err));
    OJ_TRY(oj_arrow_column_open_format("z", array->length, &c->column, err));
    for (int64_t row = 0; row < array->length; row++)
        OJ_TRY(convert_row(c, row, err));
    return oj_arrow_column_finish(&c->column, array->length, out, err);
}

oj_status oj_arrow_geometry_texts_to_wkb(const struct ArrowSchema *schema,
                                         const struct ArrowArray *texts,
                                         const char *name, int64_t first_row,
                                         struct ArrowArray *out,
                                         struct oj_error *err)
{
    struct text_conversion c = {.name = name, .first_row = first_row};
    oj_status status;
    memset(out, 0, sizeof *out);
    status = convert_rows(&c, schema, texts, out, err);
    if (status != OJ_OK)
        oj_arrow_array_release(out);
    oj_geometry_bytes_free(&c.wkb);
    oj_arrow_column_free(&c.column);
    return status;
}
