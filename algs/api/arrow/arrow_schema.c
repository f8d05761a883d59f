#include "arrow_schema.h"

#include <stdio.h>
#include <string.h>

/* Returns the extension name in Arrow metadata (pairs of length-prefixed texts)
 * and sets *n to its length in bytes. Returns NULL and sets *n to 0 if there is
 * none. */
static const char *find_extension_name(const char *metadata, size_t *n)
{
    static const char key[] = "ARROW:extension:name";
    int32_t n_pairs, n_bytes;
    *n = 0;
    if (metadata == NULL)
        return NULL;
    memcpy(&n_pairs, metadata, sizeof n_pairs);
    metadata += sizeof n_pairs;
    for (int32_t i = 0; i < n_pairs; i++)
    {
        int is_key;
        memcpy(&n_bytes, metadata, sizeof n_bytes);
        if (n_bytes < 0)
            return NULL;
        metadata += sizeof n_bytes;
        is_key = (size_t)n_bytes == strlen(key) &&
                 memcmp(metadata, key, strlen(key)) == 0;
        metadata += n_bytes;
        memcpy(&n_bytes, metadata, sizeof n_bytes);
        if (n_bytes < 0)
            return NULL;
        metadata += sizeof n_bytes;
        if (is_key)
        {
            *n = (size_t)n_bytes;
            return metadata;
        }
        metadata += n_bytes;
    }
    return NULL;
}

struct geoarrow_type
{
    const char *name;
    enum oj_part_kind kind;
    int is_multi, n_lists;
};

static const struct geoarrow_type types[] = {
    {"geoarrow.point", OJ_PART_POINT, 0, 0},
    {"geoarrow.linestring", OJ_PART_LINE, 0, 1},
    {"geoarrow.polygon", OJ_PART_POLYGON, 0, 2},
    {"geoarrow.multipoint", OJ_PART_POINT, 1, 1},
    {"geoarrow.multilinestring", OJ_PART_LINE, 1, 2},
    {"geoarrow.multipolygon", OJ_PART_POLYGON, 1, 3},
};

static int equals_counted_text(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && memcmp(name, text, n) == 0;
}

static const struct geoarrow_type *find_geoarrow_type(const char *extension,
                                                      size_t n)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    {
        if (equals_counted_text(types[i].name, extension, n))
            return &types[i];
    }
    return NULL;
}

static int is_wkb_name(const char *extension, size_t n)
{
    return equals_counted_text("geoarrow.wkb", extension, n) ||
           equals_counted_text("ogc.wkb", extension, n);
}

static int is_geoarrow(const struct ArrowSchema *schema)
{
    size_t n;
    const char *extension = find_extension_name(schema->metadata, &n);
    return extension != NULL && (is_wkb_name(extension, n) ||
                                 find_geoarrow_type(extension, n) != NULL);
}

static int is_bytes(const struct ArrowSchema *schema)
{
    return strcmp(schema->format, "z") == 0 ||
           strcmp(schema->format, "Z") == 0 ||
           strcmp(schema->format, "vz") == 0;
}

static const char *column_name_for_message(const struct ArrowSchema *schema)
{
    return schema->name != NULL && schema->name[0] != '\0' ? schema->name
                                                           : "geometry";
}

static oj_status fail_format(const struct ArrowSchema *schema,
                             const char *format, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "column %.100s: geometries in the Arrow format \"%.40s\" "
                   "are not supported: convert them to WKB or GeoArrow",
                   column_name_for_message(schema), format);
}

static oj_status check_well_formed(const struct ArrowSchema *schema,
                                   struct oj_error *err)
{
    if (schema == NULL || schema->release == NULL || schema->format == NULL ||
        schema->n_children < 0 ||
        (schema->n_children > 0 && schema->children == NULL))
        return oj_fail(err, OJ_ERR_DATA, OJ_ARROW_SCHEMA_IS_BROKEN);
    for (int64_t i = 0; i < schema->n_children; i++)
    {
        if (schema->children[i] == NULL || schema->children[i]->format == NULL)
            return oj_fail(err, OJ_ERR_DATA, OJ_ARROW_SCHEMA_IS_BROKEN);
    }
    return OJ_OK;
}

static int is_float64_field(const struct ArrowSchema *schema, const char *name)
{
    return strcmp(schema->format, "g") == 0 &&
           (schema->name == NULL || strcmp(schema->name, name) == 0);
}

static int has_name(const struct ArrowSchema *schema, const char *name)
{
    return schema->name != NULL && strcmp(schema->name, name) == 0;
}

/* Reads the format of coordinates: a struct of x, y and possibly more, or
 * fixed-size lists of two to four numbers. */
static oj_status parse_coordinate_format(const struct ArrowSchema *column,
                                         const struct ArrowSchema *schema,
                                         struct arrow_layout *out,
                                         struct oj_error *err)
{
    const char *format = schema->format;
    OJ_TRY(check_well_formed(schema, err));
    if (strcmp(format, "+s") == 0 && schema->n_children >= 2 &&
        schema->n_children <= 4 && is_float64_field(schema->children[0], "x") &&
        is_float64_field(schema->children[1], "y"))
    {
        for (int i = 2; i < schema->n_children; i++)
        {
            if (has_name(schema->children[i], "m") &&
                is_float64_field(schema->children[i], "m"))
                out->m_ordinate = i;
        }
        return OJ_OK;
    }
    if (strncmp(format, "+w:", 3) != 0 || schema->n_children != 1 ||
        strcmp(schema->children[0]->format, "g") != 0 || format[3] < '2' ||
        format[3] > '4' || format[4] != '\0')
        return fail_format(column, format, err);
    out->is_interleaved = 1;
    out->n_ordinates = format[3] - '0';
    if (out->n_ordinates == 4 || has_name(schema->children[0], "xym"))
        out->m_ordinate = out->n_ordinates - 1;
    return OJ_OK;
}

static oj_status parse_native_layout(const struct ArrowSchema *column,
                                     const struct geoarrow_type *type,
                                     struct arrow_layout *out,
                                     struct oj_error *err)
{
    const struct ArrowSchema *schema = column;
    out->storage = ARROW_COORDINATES;
    out->kind = type->kind;
    out->is_multi = type->is_multi;
    out->n_lists = type->n_lists;
    for (int i = 0; i < type->n_lists; i++)
    {
        OJ_TRY(check_well_formed(schema, err));
        out->is_large[i] = strcmp(schema->format, "+L") == 0;
        if ((!out->is_large[i] && strcmp(schema->format, "+l") != 0) ||
            schema->n_children != 1)
            return fail_format(column, schema->format, err);
        schema = schema->children[0];
    }
    return parse_coordinate_format(column, schema, out, err);
}

static oj_status parse_geometry_encoding(const struct ArrowSchema *schema,
                                         struct arrow_layout *out,
                                         struct oj_error *err)
{
    size_t n;
    const char *extension = find_extension_name(schema->metadata, &n);
    const struct geoarrow_type *type =
        extension != NULL ? find_geoarrow_type(extension, n) : NULL;
    if (schema->dictionary != NULL)
        return fail_format(schema, "dictionary", err);
    if (type != NULL)
        return parse_native_layout(schema, type, out, err);
    if (!is_bytes(schema))
        return fail_format(schema, schema->format, err);
    out->storage = ARROW_WKB;
    snprintf(out->format, sizeof out->format, "%s", schema->format);
    return OJ_OK;
}

/* Returns the index of the only child for which is_so() holds, or -1 if there
 * is none or if there are several. first 1: returns the first of several. */
static int64_t only_child_that_matches(const struct ArrowSchema *schema,
                                       int (*is_so)(const struct ArrowSchema *),
                                       int first)
{
    int64_t found = -1;
    for (int64_t i = 0; i < schema->n_children; i++)
    {
        if (!is_so(schema->children[i]))
            continue;
        if (first)
            return i;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

static int64_t find_column(const struct ArrowSchema *schema, const char *column,
                           int is_optional)
{
    int64_t found;
    for (int64_t i = 0; column != NULL && i < schema->n_children; i++)
    {
        const char *name = schema->children[i]->name;
        if (name != NULL && strcmp(name, column) == 0)
            return i;
    }
    if (column != NULL)
        return -1;
    found = only_child_that_matches(schema, is_geoarrow, 1);
    return found >= 0 || is_optional
               ? found
               : only_child_that_matches(schema, is_bytes, 0);
}

oj_status arrow_layout_read(const struct ArrowSchema *schema,
                            const char *column, int is_optional,
                            struct arrow_layout *out, struct oj_error *err)
{
    struct arrow_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.child = -1;
    OJ_TRY(check_well_formed(schema, err));
    if (strcmp(schema->format, "+s") != 0 || is_geoarrow(schema))
        OJ_TRY(parse_geometry_encoding(schema, &layout, err));
    else
    {
        layout.child = find_column(schema, column, is_optional);
        if (layout.child < 0 && column == NULL && is_optional)
        {
            layout.storage = ARROW_NOTHING;
            *out = layout;
            return OJ_OK;
        }
        if (layout.child < 0 && column != NULL)
            return oj_fail(err, OJ_ERR_ARG,
                           "the Arrow schema has no column \"%.100s\": name "
                           "the column of geometries",
                           column);
        if (layout.child < 0)
            return oj_fail(
                err, OJ_ERR_ARG,
                "no column is marked as geoarrow, and none or several "
                "have the type binary: name the column of "
                "geometries");
        OJ_TRY(parse_geometry_encoding(schema->children[layout.child], &layout,
                                       err));
    }
    *out = layout;
    return OJ_OK;
}
