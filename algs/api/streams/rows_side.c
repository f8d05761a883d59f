#include "rows_side.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/text/oj_spelling.h"
#include "../arrow/arrow_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- columns by name ----------------------------------------------------- */

const char *rows_side_name(const struct rows_side *side)
{
    return api_side_name(side->side);
}

static const char *column_name(const struct rows_side *side, int64_t column)
{
    const char *name = side->schema.children[column]->name;
    return name != NULL ? name : "";
}

struct oj_field_description rows_side_field(const struct rows_side *side,
                                            int64_t column)
{
    const struct ArrowSchema *schema = side->schema.children[column];
    return (struct oj_field_description){
        column_name(side, column), oj_arrow_field_kind(schema),
        (schema->flags & ARROW_FLAG_NULLABLE) != 0};
}

/* Returns the name of the column that is most similar to a wrong name, or
 * NULL. */
static const char *closest_column(const struct rows_side *side,
                                  const char *name)
{
    const char *best = NULL;
    int least = (int)strlen(name) / 3 + 2;
    for (int64_t i = 0; i < side->schema.n_children; i++)
    {
        int distance = oj_spelling_distance(name, column_name(side, i));
        if (distance < least)
        {
            best = column_name(side, i);
            least = distance;
        }
    }
    return best;
}

/* Returns the number of columns with this name, ignoring case, and sets *out to
 * the column, or to -1 unless there is exactly one. If the name of a column
 * agrees in case, too, it is the only one that counts. */
static int count_columns_of_name(const struct rows_side *side, const char *name,
                                 int64_t *out)
{
    int64_t found = -1;
    int n = 0;
    for (int64_t i = 0; i < side->schema.n_children; i++)
    {
        if (strcmp(column_name(side, i), name) == 0)
        {
            *out = i;
            return 1;
        }
        if (strcasecmp(column_name(side, i), name) == 0)
        {
            found = i;
            n++;
        }
    }
    *out = n == 1 ? found : -1;
    return n;
}

static int has_column(const void *side, const char *name)
{
    int64_t column;
    return count_columns_of_name(side, name, &column) > 0;
}

/* Returns the name of a column that `name` and a separator of lists of names
 * begin or end, because the whole name was read as several; NULL if there is
 * none. */
static const char *column_of_split_name(const struct rows_side *side,
                                        const char *name)
{
    static const char separators[] = ",=:+";
    const size_t n = strlen(name);
    for (int64_t i = 0; n > 0 && i < side->schema.n_children; i++)
    {
        const char *column = column_name(side, i);
        const size_t whole = strlen(column);
        if (whole > n && ((strncmp(column, name, n) == 0 &&
                           strchr(separators, column[n]) != NULL) ||
                          (strcmp(column + whole - n, name) == 0 &&
                           strchr(separators, column[whole - n - 1]) != NULL)))
            return column;
    }
    return NULL;
}

oj_status rows_side_find_column(const struct rows_side *side,
                                const char *option, const char *name,
                                int64_t *out, struct oj_error *err)
{
    const char *closest, *whole;
    const int n = count_columns_of_name(side, name, out);
    if (n == 1)
        return OJ_OK;
    whole = column_of_split_name(side, name);
    if (whole != NULL)
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s: the %s side has no column \"%.100s\"; the name of "
            "the column %.100s is read as one if it stands in double "
            "quotes: \"%.100s\"",
            option, rows_side_name(side), name, whole, whole);
    closest = closest_column(side, name);
    return oj_fail(err, OJ_ERR_ARG,
                   "%s: the %s side has no column \"%.100s\"%s%.100s%s", option,
                   rows_side_name(side), name,
                   closest != NULL ? "; did you mean \"" : "",
                   closest != NULL ? closest : "",
                   closest != NULL ? "\"?" : ": name one of its columns");
}

/* Returns the value of setting left_WORD or right_WORD for this side, or NULL
 * if it was not set. Writes the setting's name to name. */
static const char *
value_of_side_setting(const struct rows_side *side,
                      const struct ogrjoin_settings *settings, const char *word,
                      char name[40])
{
    snprintf(name, 40, "%s_%s", rows_side_name(side), word);
    return api_setting_text_as_given(settings, name);
}

/* Finds the column that setting left_WORD or right_WORD names; *out is -1 if it
 * is not set. */
static oj_status find_column_of_setting(const struct rows_side *side,
                                        const struct ogrjoin_settings *settings,
                                        const char *word, int64_t *out,
                                        struct oj_error *err)
{
    char name[40];
    const char *given = value_of_side_setting(side, settings, word, name);
    *out = -1;
    return given != NULL ? rows_side_find_column(side, name, given, out, err)
                         : OJ_OK;
}

/* ---- columns with the geometry ------------------------------------------- */

int rows_side_is_geometry(const struct ArrowSchema *schema)
{
    int64_t n;
    const char *name =
        oj_arrow_metadata_find(schema->metadata, "ARROW:extension:name", &n);
    return name != NULL && ((n > 9 && memcmp(name, "geoarrow.", 9) == 0) ||
                            (n == 7 && memcmp(name, "ogc.wkb", 7) == 0));
}

static int is_bytes(const struct ArrowSchema *schema)
{
    return strcmp(schema->format, "z") == 0 ||
           strcmp(schema->format, "Z") == 0 ||
           strcmp(schema->format, "vz") == 0;
}

static int64_t count_columns(const struct rows_side *side,
                             int (*is_so)(const struct ArrowSchema *),
                             int64_t *first, char *names, size_t size)
{
    int64_t n = 0;
    size_t used = 0;
    names[0] = '\0';
    for (int64_t i = side->schema.n_children; i-- > 0;)
    {
        if (!is_so(side->schema.children[i]))
            continue;
        n++;
        *first = i;
    }
    for (int64_t i = 0; i < side->schema.n_children && used + 1 < size; i++)
    {
        if (is_so(side->schema.children[i]))
            used +=
                (size_t)snprintf(names + used, size - used, "%s%.60s",
                                 used > 0 ? ", " : "", column_name(side, i));
    }
    return n;
}

/* Chooses the only column marked as geoarrow or, with is_needed 1, otherwise
 * the only column of bytes. Fails if is_needed is 1 and the choice is not
 * unique. */
static oj_status choose_geometry(struct rows_side *side, int is_needed,
                                 struct oj_error *err)
{
    char names[300];
    int64_t n = count_columns(side, rows_side_is_geometry, &side->geometry,
                              names, sizeof names);
    if (n == 0 && is_needed)
        n = count_columns(side, is_bytes, &side->geometry, names, sizeof names);
    if (n == 1)
        return OJ_OK;
    side->geometry = -1;
    if (!is_needed)
        return OJ_OK;
    if (n == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "the %s side has no column of geometries: name one with "
                       "%s_column, or its columns of x and y with %s_x and "
                       "%s_y",
                       rows_side_name(side), rows_side_name(side),
                       rows_side_name(side), rows_side_name(side));
    return oj_fail(err, OJ_ERR_ARG,
                   "the %s side has %lld columns of geometries, %s: choose one "
                   "with %s_column",
                   rows_side_name(side), (long long)n, names,
                   rows_side_name(side));
}

static oj_status check_is_number(const struct rows_side *side, int64_t column,
                                 const char *option, struct oj_error *err)
{
    struct oj_field_description field = rows_side_field(side, column);
    if (oj_field_kind_is_number_or_null(field.kind))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%s: the column \"%.100s\" must be a number, not %s", option,
                   field.name, oj_field_kind_name(field.kind));
}

static oj_status
find_columns_with_geometry(struct rows_side *side,
                           const struct ogrjoin_settings *settings,
                           struct oj_error *err)
{
    OJ_TRY(find_column_of_setting(side, settings, "x", &side->x, err));
    OJ_TRY(find_column_of_setting(side, settings, "y", &side->y, err));
    OJ_TRY(
        find_column_of_setting(side, settings, "column", &side->geometry, err));
    if (side->x >= 0)
    {
        OJ_TRY(check_is_number(side, side->x, "x", err));
        return check_is_number(side, side->y, "y", err);
    }
    return side->geometry < 0
               ? choose_geometry(
                     side, !api_compares_only_attributes(&settings->relation),
                     err)
               : OJ_OK;
}

static oj_status find_feature_columns(struct rows_side *side,
                                      const struct ogrjoin_settings *settings,
                                      const struct compared_fields *compared,
                                      struct oj_error *err)
{
    struct oj_relation relation = settings->relation;
    const int has_column = side->geometry >= 0 && side->x < 0;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    if (side->x >= 0)
    {
        relation.op = OJ_OP_SIMILAR; /* any relation that needs no geometry */
        relation.max_distance = INFINITY;
    }
    status = api_record_find_columns(
        &side->schema, has_column ? column_name(side, side->geometry) : NULL,
        compared, side->side, &relation, &side->record, &why);
    return api_fail_on_side(side->side, status, &why, err);
}

int rows_side_has_shapes(const struct rows_side *side)
{
    return side->geometry >= 0 || side->x >= 0;
}

/* ---- other roles of columns ---------------------------------------------- */

/* Finds those columns of a list "LEFT=RIGHT,F" that belong to this side. */
static oj_status find_compared_columns(struct rows_side *side,
                                       const char *option, const char *list,
                                       enum rows_classes which,
                                       struct oj_error *err)
{
    struct oj_field_pairs pairs;
    oj_status status;
    memset(&pairs, 0, sizeof pairs);
    status = oj_field_pairs_parse("", option, list, &pairs, err);
    if (status == OJ_OK)
    {
        side->compared[which] =
            oj_calloc(pairs.n, sizeof *side->compared[which]);
        if (side->compared[which] == NULL)
            status = oj_fail_nomem(err, pairs.n, sizeof(int64_t));
    }
    for (int i = 0; i < pairs.n && status == OJ_OK; i++)
    {
        const char *name = pairs.fields[side->side == API_SIDE_RIGHT][i];
        status = rows_side_find_column(side, option, name,
                                       &side->compared[which][i], err);
    }
    side->n_compared[which] = status == OJ_OK ? pairs.n : 0;
    oj_field_pairs_free(&pairs);
    return status;
}

const char *rows_exclusion_end(const char *list)
{
    const char *at = list;
    for (; *at != '\0'; at++)
    {
        if (*at == ',' && (strncasecmp(at + 1, "field=", 6) == 0 ||
                           strcasecmp(at + 1, "self") == 0 ||
                           strncasecmp(at + 1, "self,", 5) == 0 ||
                           strcasecmp(at + 1, "same_geometry") == 0 ||
                           strncasecmp(at + 1, "same_geometry,", 14) == 0))
            break;
    }
    return at;
}

static oj_status find_columns_of_exclusions(struct rows_side *side,
                                            const char *list,
                                            struct oj_error *err)
{
    while (list[0] != '\0')
    {
        const char *end = rows_exclusion_end(list);
        if (strncasecmp(list, "field=", 6) == 0)
        {
            char *word;
            oj_status status;
            size_t n = (size_t)(end - list) - 6;
            if (side->n_compared[ROWS_EXCLUDE] > 0)
                return oj_fail(err, OJ_ERR_ARG,
                               "exclude: write field= once, for all columns, "
                               "as field=a=b,c");
            OJ_NEW(word, (int64_t)n + 1, err);
            memcpy(word, list + 6, n);
            word[n] = '\0';
            status =
                find_compared_columns(side, "exclude", word, ROWS_EXCLUDE, err);
            oj_free(word);
            OJ_TRY(status);
        }
        list = end + (*end == ',');
    }
    return OJ_OK;
}

/* Finds the columns of within_time and during. */
static oj_status find_span_columns(struct rows_side *side,
                                   const struct ogrjoin_settings *settings,
                                   struct oj_error *err)
{
    const int is_right = side->side == API_SIDE_RIGHT;
    struct oj_span_words spans[OJ_MOST_SPANS];
    oj_status status =
        api_settings_parse_spans(settings, spans, &side->n_spans, err);
    for (int i = 0; i < 2 * side->n_spans && status == OJ_OK; i++)
        status = rows_side_find_column(side, spans[i / 2].option,
                                       spans[i / 2].fields[is_right][i % 2],
                                       &side->span[i / 2][i % 2], err);
    for (int i = 0; i < OJ_MOST_SPANS; i++)
        oj_span_words_free(&spans[i]);
    return status;
}

static oj_status find_distance_column(struct rows_side *side,
                                      const struct ogrjoin_settings *settings,
                                      struct oj_error *err)
{
    const char *option = side->side == API_SIDE_RIGHT
                             ? "join_max_distance_field"
                             : "max_distance_field";
    const char *given = api_setting_text_as_given(settings, option);
    char *name;
    oj_status status;
    side->max_distance = -1;
    if (given == NULL)
        return OJ_OK;
    OJ_NEW(name, (int64_t)strlen(given) + 1, err);
    status = oj_distance_field_parse("", option, given, has_column, side, name,
                                     &side->distance_unit, err);
    if (status == OJ_OK)
        status =
            rows_side_find_column(side, option, name, &side->max_distance, err);
    oj_free(name);
    return status == OJ_OK
               ? check_is_number(side, side->max_distance, option, err)
               : status;
}

/* Finds the column of headings, which only the input has. */
static oj_status find_heading_column(struct rows_side *side,
                                     const struct ogrjoin_settings *settings,
                                     struct oj_error *err)
{
    char *name;
    double tolerance;
    oj_status status;
    side->heading = -1;
    if (side->side == API_SIDE_RIGHT)
        return OJ_OK;
    OJ_TRY(api_settings_parse_heading(settings, &name, &tolerance, err));
    if (name == NULL)
        return OJ_OK;
    status = rows_side_find_column(side, "heading", name, &side->heading, err);
    oj_free(name);
    return status == OJ_OK
               ? check_is_number(side, side->heading, "heading", err)
               : status;
}

static oj_status find_fid_column(struct rows_side *side,
                                 const struct ogrjoin_settings *settings,
                                 struct oj_error *err)
{
    struct oj_field_description field;
    OJ_TRY(find_column_of_setting(side, settings, "fid", &side->fid, err));
    if (side->fid < 0)
        return OJ_OK;
    field = rows_side_field(side, side->fid);
    if (oj_field_kind_is_integer(field.kind))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%s_fid: the column \"%.100s\" must be an integer, not %s",
                   rows_side_name(side), field.name,
                   oj_field_kind_name(field.kind));
}

/* ---- columns in the output ----------------------------------------------- */

static oj_status select_listed_columns(struct rows_side *side,
                                       const char *option, const char *list,
                                       struct oj_error *err)
{
    struct oj_field_pairs pairs;
    oj_status status;
    memset(&pairs, 0, sizeof pairs);
    status = oj_field_pairs_parse("", option, list, &pairs, err);
    for (int64_t i = 0; i < side->schema.n_children && status == OJ_OK; i++)
    {
        int is_named = i == side->geometry;
        for (int k = 0; k < pairs.n && !is_named; k++)
            is_named =
                strcasecmp(pairs.fields[0][k], column_name(side, i)) == 0;
        if (is_named)
            side->selected[side->n_selected++] = i;
    }
    for (int k = 0; k < pairs.n && status == OJ_OK; k++)
    {
        int64_t column;
        status = rows_side_find_column(side, option, pairs.fields[0][k],
                                       &column, err);
    }
    oj_field_pairs_free(&pairs);
    return status;
}

/* Selects columns for the output, in the order of the side. The geometry is
 * always included, because it is not a field. */
static oj_status select_columns(struct rows_side *side,
                                const struct ogrjoin_settings *settings,
                                struct oj_error *err)
{
    char option[40];
    const char *list = value_of_side_setting(side, settings, "select", option);
    OJ_NEW_ZEROED(side->selected, side->schema.n_children, err);
    if (list != NULL && list[0] != '\0')
        OJ_TRY(select_listed_columns(side, option, list, err));
    for (int64_t i = 0; i < side->schema.n_children; i++)
    {
        if (list == NULL || (list[0] == '\0' && i == side->geometry))
            side->selected[side->n_selected++] = i;
    }
    for (int64_t i = 0; i < side->n_selected; i++)
        OJ_TRY(
            oj_arrow_check_type(side->schema.children[side->selected[i]], err));
    return OJ_OK;
}

/* ---- CRS of a side ------------------------------------------------------- */

/* Copies the CRS from the extension metadata of the geometry column, if it has
 * one. */
static oj_status copy_crs_of_column(struct rows_side *side,
                                    struct oj_error *err)
{
    int64_t n = 0;
    const char *found =
        oj_arrow_metadata_find(side->schema.children[side->geometry]->metadata,
                               "ARROW:extension:metadata", &n);
    char *metadata;
    oj_status status;
    if (found == NULL)
        return OJ_OK;
    OJ_NEW(metadata, n + 1, err);
    memcpy(metadata, found, (size_t)n);
    metadata[n] = '\0';
    status = oj_crs_text_of_metadata(metadata, &side->crs_words, err);
    oj_free(metadata);
    return status;
}

/* Reads the CRS from the setting left_crs or right_crs, otherwise from the
 * geometry column. */
static oj_status read_crs(struct rows_side *side,
                          const struct ogrjoin_settings *settings,
                          struct oj_error *err)
{
    char option[40];
    const char *given = value_of_side_setting(side, settings, "crs", option);
    if (given != NULL)
    {
        size_t size = strlen(given) + 1;
        OJ_NEW(side->crs_words, (int64_t)size, err);
        memcpy(side->crs_words, given, size);
    }
    else if (side->geometry >= 0)
    {
        snprintf(option, sizeof option, "the CRS of the %s side",
                 rows_side_name(side));
        OJ_TRY(copy_crs_of_column(side, err));
    }
    return oj_crs_text_read(side->crs_words, option,
                            &settings->rows.crs_callbacks, &side->crs, err);
}

/* ---- geometries as ISO WKB ----------------------------------------------- */

/* Replaces the schema of the geometry column by geoarrow.wkb with the CRS of
 * the side. The schema of the arrays is kept in geometry_as_read. */
static oj_status replace_geometry_schema(struct rows_side *side,
                                         const char *format,
                                         struct oj_error *err)
{
    struct ArrowSchema *schema = side->schema.children[side->geometry];
    struct ArrowSchema made;
    oj_status status = oj_arrow_wkb_schema(
        format, column_name(side, side->geometry), side->crs_words, &made, err);
    if (status != OJ_OK)
    {
        oj_arrow_schema_release(&made);
        return status;
    }
    if (side->geometry_as_read.release == NULL)
        side->geometry_as_read = *schema;
    else
        oj_arrow_schema_release(schema);
    *schema = made;
    return OJ_OK;
}

/* Decides whether SRIDs are ignored, and replaces the schema of a geometry
 * column of texts. Columns of WKB follow in rows_side_read_first_array(). */
static oj_status
decide_geometry_conversion(struct rows_side *side,
                           const struct ogrjoin_settings *settings,
                           struct oj_error *err)
{
    side->srid.is_ignored =
        side->crs_words != NULL || settings->rows.crs == API_CRS_IGNORE;
    if (side->geometry < 0 || side->x >= 0 ||
        !oj_arrow_is_text(side->schema.children[side->geometry]))
        return OJ_OK;
    return replace_geometry_schema(side, "z", err);
}

/* Returns the schema that the geometry column has in the arrays. */
static const struct ArrowSchema *geometry_schema(const struct rows_side *side)
{
    return side->geometry_as_read.release != NULL
               ? &side->geometry_as_read
               : side->schema.children[side->geometry];
}

static int has_wkb(const struct rows_side *side)
{
    return side->geometry >= 0 && side->x < 0 &&
           is_bytes(side->schema.children[side->geometry]);
}

static struct oj_arrow_geometry_column
describe_geometries(const struct rows_side *side, int64_t first_row)
{
    return (struct oj_arrow_geometry_column){geometry_schema(side),
                                             rows_side_name(side), first_row};
}

static oj_status check_record_batch(const struct rows_side *side,
                                    const struct ArrowArray *array,
                                    struct oj_error *err)
{
    OJ_TRY(arrow_check_layout(array, 1, side->schema.n_children, err));
    for (int64_t i = 0; i < array->n_children; i++)
    {
        const struct ArrowSchema *schema = i == side->geometry
                                               ? geometry_schema(side)
                                               : side->schema.children[i];
        struct oj_error ignored;
        if (array->children[i] == NULL ||
            array->children[i]->length < array->offset + array->length)
            return arrow_fail_mismatch(err);
        /* columns that are not in the output may be of any type */
        if (oj_arrow_check_type(schema, &ignored) == OJ_OK)
            OJ_TRY(oj_arrow_check_array(schema, array->children[i], err));
    }
    return OJ_OK;
}

int rows_side_depends_on_rows(const struct rows_side *side)
{
    return has_wkb(side) &&
           (!side->srid.is_ignored || geometry_schema(side)->format[0] == 'v');
}

oj_status rows_side_set_srid_crs(struct rows_side *side,
                                 const struct ogrjoin_settings *settings,
                                 struct oj_error *err)
{
    const size_t size = 32;
    const char *format;
    if (side->crs_words != NULL || side->srid.number == 0)
        return OJ_OK;
    OJ_NEW(side->crs_words, (int64_t)size, err);
    snprintf(side->crs_words, size, "EPSG:%lld", (long long)side->srid.number);
    OJ_TRY(oj_crs_text_read(side->crs_words, "the SRID of the geometries",
                            &settings->rows.crs_callbacks, &side->crs, err));
    format = side->schema.children[side->geometry]->format;
    return replace_geometry_schema(side,
                                   format[0] == 'Z'   ? "Z"
                                   : format[0] == 'v' ? "vz"
                                                      : "z",
                                   err);
}

oj_status rows_side_read_first_array(struct rows_side *side,
                                     const struct ogrjoin_settings *settings,
                                     const struct ArrowArray *array,
                                     int64_t first_row, struct oj_error *err)
{
    const struct oj_arrow_geometry_column of =
        describe_geometries(side, first_row);
    int is_extended;
    OJ_TRY(check_record_batch(side, array, err));
    OJ_TRY(oj_arrow_iso_wkb_detect_srid(&of, array, side->geometry, &side->srid,
                                        &is_extended, err));
    if (of.schema->format[0] == 'v') /* the first array decides the format */
        side->srid.is_found = 1;
    if (is_extended && of.schema->format[0] == 'v')
    {
        OJ_TRY(replace_geometry_schema(side, "Z", err));
        snprintf(side->record.layout.format, sizeof side->record.layout.format,
                 "Z");
    }
    return rows_side_set_srid_crs(side, settings, err);
}

/* Makes a view of an array in which the rows start at 0, unless some rows are
 * NULL as a whole. */
static oj_status view_from_first_row(struct ArrowArray *array,
                                     struct ArrowArray *out,
                                     struct oj_error *err)
{
    struct oj_arrow_shared *shared;
    const struct ArrowArray *whole;
    oj_status status;
    OJ_TRY(oj_arrow_shared_make(array, &shared, err));
    whole = oj_arrow_shared_array(shared);
    status =
        oj_arrow_array_view_rows(shared, whole, 0, whole->length, out, err);
    oj_arrow_shared_release(shared);
    OJ_TRY(status);
    for (int64_t i = 0;
         out->offset > 0 && arrow_validity(out) == NULL && i < out->n_children;
         i++)
    {
        struct ArrowArray *child = out->children[i];
        child->offset += out->offset;
        child->length = out->length;
        child->null_count = child->null_count == 0 ? 0 : -1;
    }
    if (arrow_validity(out) == NULL)
        out->offset = 0;
    return OJ_OK;
}

/* Replaces the geometry column of an array by a column of ISO WKB, if its
 * geometries are not in this form. array is moved, also on failure. */
static oj_status make_iso_wkb(struct rows_side *side, struct ArrowArray *array,
                              int64_t first_row, struct oj_error *err)
{
    const struct oj_arrow_geometry_column of =
        describe_geometries(side, first_row);
    const char *format = side->schema.children[side->geometry]->format;
    struct ArrowArray view = {.release = NULL}, made = {.release = NULL};
    int is_made = 0;
    oj_status status = view_from_first_row(array, &view, err);
    if (status == OJ_OK)
        status = oj_arrow_iso_wkb_make(&of, &view, side->geometry, format,
                                       &side->srid, &is_made, &made, err);
    if (status == OJ_OK && is_made)
    {
        oj_arrow_array_release(view.children[side->geometry]);
        *view.children[side->geometry] = made;
    }
    if (status == OJ_OK)
        *array = view;
    else
        oj_arrow_array_release(&view);
    return status;
}

/* ---- opening a side ------------------------------------------------------ */

static oj_status
find_columns_of_settings(struct rows_side *side,
                         const struct ogrjoin_settings *settings,
                         struct oj_error *err)
{
    const char *on = api_setting_text_as_given(settings, "on");
    const char *exclude = api_setting_text_as_given(settings, "exclude");
    struct compared_fields compared;
    oj_status status;
    if (side->schema.format == NULL || strcmp(side->schema.format, "+s") != 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "the %s side must be a stream of record batches: its "
                       "schema is no struct",
                       rows_side_name(side));
    OJ_TRY(find_columns_with_geometry(side, settings, err));
    OJ_TRY(read_crs(side, settings, err));
    OJ_TRY(decide_geometry_conversion(side, settings, err));
    status = api_settings_parse_compared_fields(settings, &compared, err);
    if (status == OJ_OK)
        status = find_feature_columns(side, settings, &compared, err);
    compared_fields_free(&compared);
    OJ_TRY(status);
    OJ_TRY(find_fid_column(side, settings, err));
    OJ_TRY(find_distance_column(side, settings, err));
    OJ_TRY(find_heading_column(side, settings, err));
    if (on != NULL)
        OJ_TRY(find_compared_columns(side, "on", on, ROWS_ON, err));
    if (exclude != NULL)
        OJ_TRY(find_columns_of_exclusions(side, exclude, err));
    OJ_TRY(find_span_columns(side, settings, err));
    return select_columns(side, settings, err);
}

oj_status rows_side_open(struct ArrowSchema *schema, enum api_layer_side of,
                         const struct ogrjoin_settings *settings,
                         struct rows_side *side, struct oj_error *err)
{
    oj_status status;
    memset(side, 0, sizeof *side);
    side->side = of;
    side->schema = *schema;
    schema->release = NULL;
    status = find_columns_of_settings(side, settings, err);
    if (status != OJ_OK)
        rows_side_free(side);
    return status;
}

void rows_side_free(struct rows_side *side)
{
    oj_arrow_schema_release(&side->schema);
    oj_arrow_schema_release(&side->geometry_as_read);
    arrow_fields_free(&side->record.fields);
    for (int i = 0; i < ROWS_N_CLASSES; i++)
        oj_free(side->compared[i]);
    oj_free(side->selected);
    oj_free(side->crs_words);
    memset(side, 0, sizeof *side);
}

/* ---- chunks: the arrays of a side ---------------------------------------- */

int64_t rows_chunks_count_rows(const struct rows_chunks *chunks)
{
    return chunks->n > 0 ? chunks->first[chunks->n] : 0;
}

oj_status rows_chunks_add(struct rows_chunks *chunks, struct rows_side *side,
                          struct ArrowArray *array, int64_t first_row,
                          struct oj_error *err)
{
    int64_t n = chunks->n, n_rows = rows_chunks_count_rows(chunks);
    oj_status status = check_record_batch(side, array, err);
    if (status == OJ_OK && n_rows > INT32_MAX - array->length)
        status = oj_fail(err, OJ_ERR_LIMIT,
                         "%s side: it has more than %d rows, the most of a "
                         "side: split it, or set a smaller batch_rows for the "
                         "input",
                         rows_side_name(side), INT32_MAX);
    if (status == OJ_OK)
        status = oj_reserve(&chunks->shared, n, n + 1, &chunks->cap_shared,
                            sizeof(*chunks->shared), err);
    if (status == OJ_OK)
        status = oj_reserve(&chunks->first, n + (n > 0), n + 2,
                            &chunks->cap_first, sizeof *chunks->first, err);
    if (status == OJ_OK && has_wkb(side))
        status = make_iso_wkb(side, array, first_row + n_rows, err);
    if (status != OJ_OK)
    {
        oj_arrow_array_release(array);
        return status;
    }
    n_rows += array->length;
    OJ_TRY(oj_arrow_shared_make(array, &chunks->shared[n], err));
    if (n == 0)
        chunks->first[0] = 0;
    chunks->first[n + 1] = n_rows;
    chunks->n++;
    return OJ_OK;
}

void rows_chunks_clear(struct rows_chunks *chunks)
{
    for (int64_t i = 0; i < chunks->n; i++)
        oj_arrow_shared_release(chunks->shared[i]);
    chunks->n = 0;
}

void rows_chunks_free(struct rows_chunks *chunks)
{
    rows_chunks_clear(chunks);
    oj_free(chunks->shared);
    oj_free(chunks->first);
    memset(chunks, 0, sizeof *chunks);
}

int64_t rows_chunks_find(const struct rows_chunks *chunks, int64_t row)
{
    int64_t low = 0, high = chunks->n - 1;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (chunks->first[middle + 1] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

oj_status rows_chunks_column(const struct rows_chunks *chunks,
                             const struct rows_side *side, int64_t column,
                             struct oj_arrow_chunks *out,
                             const struct ArrowArray ***arrays,
                             struct oj_error *err)
{
    OJ_NEW(*arrays, chunks->n, err);
    for (int64_t i = 0; i < chunks->n; i++)
        (*arrays)[i] =
            oj_arrow_shared_array(chunks->shared[i])->children[column];
    *out = (struct oj_arrow_chunks){side->schema.children[column], *arrays,
                                    chunks->shared, chunks->n};
    return OJ_OK;
}

const struct ArrowArray *
rows_chunks_locate_value(const struct rows_chunks *chunks, int64_t column,
                         int64_t row, int64_t *in_array)
{
    int64_t i = rows_chunks_find(chunks, row);
    const struct ArrowArray *record = oj_arrow_shared_array(chunks->shared[i]);
    *in_array = record->offset + row - chunks->first[i];
    if (!arrow_bit(arrow_validity(record), *in_array))
        *in_array = -1;
    return record->children[column];
}

/* ---- reading columns ----------------------------------------------------- */

/* Sets *out to the numbers of a column, multiplied by scale; NaN for NULL. */
static oj_status read_numbers(const struct rows_side *side,
                              const struct rows_chunks *chunks, int64_t column,
                              double scale, double **out, struct oj_error *err)
{
    const struct ArrowSchema *schema = side->schema.children[column];
    int64_t n = rows_chunks_count_rows(chunks);
    OJ_NEW(*out, n, err);
    for (int64_t row = 0; row < n; row++)
    {
        int64_t at;
        const struct ArrowArray *array =
            rows_chunks_locate_value(chunks, column, row, &at);
        (*out)[row] = (double)NAN;
        if (at >= 0)
            OJ_TRY(oj_arrow_number(schema, array, at, &(*out)[row], err));
        (*out)[row] *= scale;
    }
    return OJ_OK;
}

static oj_status read_fids(const struct rows_side *side,
                           const struct rows_chunks *chunks, int64_t **out,
                           struct oj_error *err)
{
    const struct ArrowSchema *schema = side->schema.children[side->fid];
    int64_t n = rows_chunks_count_rows(chunks);
    struct oj_arrow_room room;
    OJ_NEW(*out, n, err);
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_plain_value value = {OJ_PLAIN_NULL, 0, 0, NULL, 0};
        int64_t at;
        const struct ArrowArray *array =
            rows_chunks_locate_value(chunks, side->fid, row, &at);
        if (at >= 0)
            OJ_TRY(oj_arrow_plain_value(schema, array, at, &room, &value, err));
        if (value.form == OJ_PLAIN_REAL)
            return oj_fail(err, OJ_ERR_DATA,
                           "%s_fid: row %lld has %.17g in the column "
                           "\"%.100s\", but numbers must be below 2^63: give "
                           "smaller ones",
                           rows_side_name(side), (long long)row, value.real,
                           column_name(side, side->fid));
        if (value.form != OJ_PLAIN_INTEGER)
            return oj_fail(err, OJ_ERR_DATA,
                           "%s_fid: row %lld is NULL in the column \"%.100s\", "
                           "but every row needs a number",
                           rows_side_name(side), (long long)row,
                           column_name(side, side->fid));
        (*out)[row] = value.integer;
    }
    return OJ_OK;
}

/* Arguments of read_compared_value(): the columns of one side for on or
 * exclude. */
struct compared_reader
{
    const struct rows_side *side;
    const struct rows_chunks *chunks;
    const int64_t *column;
    const enum oj_value_comparison *comparison; /* [columns] how the values of
                                                   each column are compared */
    struct oj_arrow_room room;
};

static oj_status read_compared_value(void *user, int field, int64_t row,
                                     struct oj_plain_value *value,
                                     struct oj_error *err)
{
    struct compared_reader *r = user;
    int64_t column = r->column[field], at;
    const struct ArrowArray *array =
        rows_chunks_locate_value(r->chunks, column, row, &at);
    memset(value, 0, sizeof *value);
    if (at < 0)
        return OJ_OK;
    return oj_arrow_compared_value(r->side->schema.children[column], array, at,
                                   r->comparison[field] == OJ_COMPARE_MOMENTS,
                                   &r->room, value, err);
}

static oj_status make_classes(const struct rows_side *side,
                              const struct rows_chunks *chunks,
                              enum rows_classes which,
                              struct rows_classes_of_values *classes,
                              int insert, int32_t **out, struct oj_error *err)
{
    struct compared_reader reader = {.side = side,
                                     .chunks = chunks,
                                     .column = side->compared[which],
                                     .comparison = classes->comparison[which]};
    const struct oj_plain_reader rows = {read_compared_value, &reader};
    struct oj_value_key key;
    oj_status status;
    memset(&key, 0, sizeof key);
    OJ_NEW(*out, rows_chunks_count_rows(chunks), err);
    status = oj_value_classes_find(
        &classes->classes[which], &key, classes->comparison[which],
        side->n_compared[which], &rows, rows_chunks_count_rows(chunks), insert,
        *out, err);
    oj_value_key_free(&key);
    return status;
}

static oj_status read_span_end(const struct rows_side *side,
                               const struct rows_chunks *chunks, int64_t column,
                               int64_t row,
                               const struct oj_span_reading *reading,
                               struct oj_span_end *out, struct oj_error *err)
{
    const struct ArrowSchema *schema = side->schema.children[column];
    struct oj_plain_value value = {OJ_PLAIN_NULL, 0, 0, NULL, 0};
    struct oj_arrow_room room;
    int64_t at;
    const struct ArrowArray *array =
        rows_chunks_locate_value(chunks, column, row, &at);
    if (at >= 0 && oj_field_kind_is_time(oj_arrow_field_kind(schema)))
        OJ_TRY(oj_arrow_time_as_microseconds(schema, array, at, &value, err));
    else if (at >= 0)
        OJ_TRY(oj_arrow_plain_value(schema, array, at, &room, &value, err));
    if (value.form == OJ_PLAIN_INTEGER)
        *out = oj_span_end_of_integer(reading, value.integer);
    else if (value.form == OJ_PLAIN_REAL)
        *out = oj_span_end_of_real(reading, value.real);
    else if (value.form == OJ_PLAIN_TEXT)
        *out = oj_span_end_of_text(reading, value.text, value.n);
    else
        *out = (struct oj_span_end){OJ_SPAN_END_NULL, 0, 0.0};
    return OJ_OK;
}

static oj_status make_spans(const struct rows_side *side,
                            const struct rows_chunks *chunks, int i,
                            const struct oj_span_reading *reading,
                            struct ogrjoin_layer *layer, struct oj_error *err)
{
    const int which = side->side == API_SIDE_RIGHT;
    const int64_t n = rows_chunks_count_rows(chunks);
    int64_t *from, *until;
    OJ_NEW(from, n, err);
    layer->own_from[i] = until = from;
    if (!oj_span_reading_is_of_instants(reading, which))
    {
        OJ_NEW(until, n, err);
        layer->own_until[i] = until;
    }
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_span_end end[2];
        int64_t from_here, until_here;
        OJ_TRY(read_span_end(side, chunks, side->span[i][0], row, reading,
                             &end[0], err));
        end[1] = end[0];
        if (!reading->is_instant[which])
            OJ_TRY(read_span_end(side, chunks, side->span[i][1], row, reading,
                                 &end[1], err));
        layer->n_without_span[i] +=
            !oj_span_make(reading, which, end, &from_here, &until_here);
        until[row] = until_here;
        from[row] = from_here;
    }
    layer->flat.spans[i] = (struct oj_spans){from, until};
    return OJ_OK;
}

/* ---- making layers ------------------------------------------------------- */

static oj_status add_chunks_to_layer(const struct rows_side *side,
                                     const struct rows_chunks *chunks,
                                     struct ogrjoin_layer *layer,
                                     struct oj_error *err)
{
    for (int64_t i = 0; i < chunks->n; i++)
    {
        const struct ArrowArray *array =
            oj_arrow_shared_array(chunks->shared[i]);
        struct ArrowArray view;
        oj_status status;
        OJ_TRY(oj_arrow_array_view_rows(chunks->shared[i], array, 0,
                                        array->length, &view, err));
        status = api_layer_add(layer, &side->record, &view, err);
        oj_arrow_array_release(&view);
        OJ_TRY(status);
    }
    return OJ_OK;
}

/* Makes points from two columns of numbers, x and y. */
static oj_status read_points(const struct rows_side *side,
                             const struct rows_chunks *chunks,
                             struct ogrjoin_layer *layer, struct oj_error *err)
{
    struct oj_flat flat;
    int64_t n = rows_chunks_count_rows(chunks);
    OJ_TRY(read_numbers(side, chunks, side->x, 1.0, &layer->own_x, err));
    OJ_TRY(read_numbers(side, chunks, side->y, 1.0, &layer->own_y, err));
    memset(&flat, 0, sizeof flat);
    for (int64_t i = 0; i < n; i++)
    {
        if (!(fabs(layer->own_x[i]) <= OJ_FLAT_MOST &&
              fabs(layer->own_y[i]) <= OJ_FLAT_MOST))
            layer->own_x[i] = layer->own_y[i] = (double)NAN;
    }
    flat.n_features = flat.n_parts = flat.n_rings = flat.n_vertices = n;
    flat.part_kinds = OJ_PART_POINT;
    flat.x = layer->own_x;
    flat.y = layer->own_y;
    layer->flat = flat;
    return OJ_OK;
}

/* Reads the geometries and texts of the chunks into the layer. */
static oj_status
read_features_of_chunks(const struct rows_side *side,
                        const struct rows_chunks *chunks,
                        const struct ogrjoin_settings *settings,
                        struct ogrjoin_layer *layer, struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = add_chunks_to_layer(side, chunks, layer, &why);
    if (status == OJ_OK)
        status = api_layer_finish(layer, &side->record, settings, &why);
    return api_fail_on_side(side->side, status, &why, err);
}

static oj_status fill_layer_of_chunks(const struct rows_side *side,
                                      const struct rows_chunks *chunks,
                                      const struct ogrjoin_settings *settings,
                                      struct ogrjoin_layer *layer,
                                      struct oj_error *err)
{
    OJ_TRY(read_features_of_chunks(side, chunks, settings, layer, err));
    if (side->x >= 0)
        OJ_TRY(read_points(side, chunks, layer, err));
    if (side->fid < 0)
        return OJ_OK;
    OJ_TRY(read_fids(side, chunks, &layer->own_id, err));
    layer->flat.fid = layer->own_id;
    return OJ_OK;
}

oj_status rows_side_make_layer(const struct rows_side *side,
                               const struct rows_chunks *chunks,
                               int64_t first_row,
                               const struct ogrjoin_settings *settings,
                               struct arrow_reach *reach,
                               struct ogrjoin_layer **out, struct oj_error *err)
{
    struct ogrjoin_layer *layer = NULL;
    oj_status status;
    OJ_TRY(api_layer_new(&layer, err));
    layer->features.first_fid = layer->first_row = first_row;
    layer->features.reach = reach;
    status = fill_layer_of_chunks(side, chunks, settings, layer, err);
    if (status == OJ_OK)
        *out = layer;
    else
        ogrjoin_layer_free(layer);
    return status;
}

oj_status rows_side_add_columns_to_layer(const struct rows_side *side,
                                         const struct rows_chunks *chunks,
                                         struct rows_classes_of_values *classes,
                                         int insert, double scale,
                                         struct ogrjoin_layer *layer,
                                         struct oj_error *err)
{
    if (side->n_compared[ROWS_ON] > 0)
        OJ_TRY(make_classes(side, chunks, ROWS_ON, classes, insert,
                            &layer->own_on_class, err));
    if (side->n_compared[ROWS_EXCLUDE] > 0)
        OJ_TRY(make_classes(side, chunks, ROWS_EXCLUDE, classes, insert,
                            &layer->own_exclude_class, err));
    if (side->max_distance >= 0)
        OJ_TRY(read_numbers(side, chunks, side->max_distance, scale,
                            &layer->own_max_distance, err));
    if (side->heading >= 0)
        OJ_TRY(read_numbers(side, chunks, side->heading, 1.0,
                            &layer->own_heading, err));
    for (int i = 0; i < side->n_spans; i++)
        OJ_TRY(make_spans(side, chunks, i, &classes->span[i], layer, err));
    layer->flat.n_spans = side->n_spans;
    layer->flat.on_class = layer->own_on_class;
    layer->flat.exclude_class = layer->own_exclude_class;
    layer->flat.max_distance = layer->own_max_distance;
    layer->flat.heading = layer->own_heading;
    return OJ_OK;
}
