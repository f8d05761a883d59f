#include "oj_sides.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../base/oj_words.h"
#include "../files/oj_path.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum
{
    MAX_FIELDS = 32 /* of one -on */
};

/* ---- self joins --------------------------------------------------------- */

static int is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* FIDs are different for different rows, so filters may differ, but open
 * options may not: they can change what a row is. */
static int is_same_layer(const struct oj_source *a, const struct oj_source *b)
{
    return oj_path_is_same_file(a->side->dataset, b->side->dataset) &&
           is_same_text(a->side->sql, b->side->sql) &&
           (a->side->sql == NULL ||
            is_same_text(a->side->dialect, b->side->dialect)) &&
           oj_words_are_same(a->side->open_options, b->side->open_options) &&
           strcmp(a->name, b->name) == 0;
}

static int is_excluded(const struct oj_command *command, const char *what)
{
    return CSLFindString((CSLConstList)command->exclude, what) >= 0;
}

static oj_status
check_self_join(const struct oj_command *command, const struct oj_source *input,
                const struct oj_source *join, struct oj_sides *sides,
                struct oj_relation *relation, struct oj_error *err)
{
    int asked = is_excluded(command, "self");
    sides->is_self_join = command->n_windows == 0 && is_same_layer(input, join);
    relation->exclude_self = sides->is_self_join || asked;
    sides->needs_fids = relation->exclude_self;
    relation->exclude_same_geometry = is_excluded(command, "same_geometry");
    relation->unordered_pairs = command->unordered_pairs;
    if (command->unordered_pairs && !relation->exclude_self)
        return oj_fail(err, OJ_ERR_ARG,
                       "-unordered_pairs is for two sides that are one layer; "
                       "where they are one to you (a SELECT, a copy), say so "
                       "with -exclude self");
    if (sides->is_self_join && !asked)
        oj_notice("both sides are the layer '%s': no feature is joined with "
                  "itself",
                  input->name);
    return OJ_OK;
}

/* Rows that all have the FID -1 would all be one feature. */
static oj_status check_fids(const struct oj_sides *sides, int side,
                            const struct oj_flat *flat, struct oj_error *err)
{
    if (!sides->needs_fids || flat->fid == NULL)
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        if (flat->fid[i] == OGRNullFID)
            return oj_fail(err, OJ_ERR_DATA,
                           "%s layer '%s' has rows without a FID, so it cannot "
                           "be told whether two features are one: -exclude "
                           "same_geometry needs no FIDs",
                           sides->reshape[side].role,
                           sides->reshape[side].name);
    }
    return OJ_OK;
}

/* ---- the sphere --------------------------------------------------------- */

static const char points_only[] =
    "-metric sphere measures from points and multipoints of the input layer; "
    "-centroid_of input or -point_on_surface_of input makes points of others";

static int becomes_points(const struct oj_reshape *reshape)
{
    return reshape->shape == OJ_SHAPE_CENTROID ||
           reshape->shape == OJ_SHAPE_POINT_ON_SURFACE;
}

static oj_status check_type(const struct oj_sides *sides,
                            const struct oj_source *input, struct oj_error *err)
{
    if (!sides->needs_points || becomes_points(&sides->reshape[0]) ||
        oj_source_can_hold_points(input))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_DATA, "input layer '%s' holds %s features; %s",
                   input->name, OGRGeometryTypeToName(input->type),
                   points_only);
}

static oj_status check_points(const struct oj_sides *sides,
                              const struct oj_flat *flat, struct oj_error *err)
{
    if (!sides->needs_points || oj_flat_is_points(flat) ||
        (flat->part_kinds & ~(unsigned)OJ_PART_POINT) == 0)
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        for (int64_t p = flat->part_offset[i]; p < flat->part_offset[i + 1];
             p++)
        {
            if (flat->part_kind[p] != OJ_PART_POINT)
                return oj_fail(
                    err, OJ_ERR_DATA,
                    "feature %lld of input layer '%s' is no point; %s",
                    (long long)(flat->fid != NULL ? flat->fid[i] : i),
                    sides->reshape[0].name, points_only);
        }
    }
    return OJ_OK;
}

/* Features of which a vertex is nowhere on the sphere. */
static int64_t count_beyond_poles(const struct oj_flat *flat)
{
    int64_t n = 0;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t v, end;
        oj_flat_vertices(flat, i, &v, &end);
        while (v < end && !(fabs(flat->y[v]) > 90.0))
            v++;
        n += v < end;
    }
    return n;
}

/* ---- conditions on fields: the words ------------------------------------- */

static oj_status find_field(struct oj_source *source, const char *name,
                            const char *option, struct oj_class_field *out,
                            struct oj_error *err)
{
    OGRFieldDefnH defn;
    OJ_TRY(oj_source_need_field(source, name, option, &out->column, err));
    defn = OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(source->layer),
                               source->fields[out->column]);
    out->type = OGR_Fld_GetType(defn);
    out->subtype = OGR_Fld_GetSubType(defn);
    return OJ_OK;
}

/* "F" or "LEFT=RIGHT" -> names; cuts word. */
static oj_status split_pair(const char *option, char *word, const char **left,
                            const char **right, struct oj_error *err)
{
    char *equals = strchr(word, '=');
    *left = *right = word;
    if (equals != NULL)
    {
        *equals = '\0';
        *right = equals + 1;
        while (**right == ' ')
            (*right)++;
        while (equals > word && equals[-1] == ' ')
            *--equals = '\0';
    }
    if ((*left)[0] == '\0' || (*right)[0] == '\0' ||
        strchr(*right, '=') != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s takes LEFT=RIGHT, a field of the input layer and "
                       "one of the join layer",
                       option);
    return OJ_OK;
}

static oj_status open_pairs(char **words, const char *option,
                            struct oj_source *input, struct oj_source *join,
                            struct oj_classes **out, struct oj_error *err)
{
    struct oj_class_field left[MAX_FIELDS], right[MAX_FIELDS];
    int n = 0;
    for (; words != NULL && words[n] != NULL; n++)
    {
        const char *left_name, *right_name;
        if (n == MAX_FIELDS)
            return oj_fail(err, OJ_ERR_ARG, "-%s takes at most %d fields",
                           option, MAX_FIELDS);
        OJ_TRY(split_pair(option, words[n], &left_name, &right_name, err));
        OJ_TRY(find_field(input, left_name, option, &left[n], err));
        OJ_TRY(find_field(join, right_name, option, &right[n], err));
    }
    if (n == 0)
        return oj_fail(err, OJ_ERR_ARG, "-%s names no field", option);
    return oj_classes_new(left, right, n, out, err);
}

static oj_status open_words(const char *list, const char *option,
                            struct oj_source *input, struct oj_source *join,
                            struct oj_classes **out, struct oj_error *err)
{
    char **words = CSLTokenizeString2(
        list, ",",
        CSLT_HONOURSTRINGS | CSLT_STRIPLEADSPACES | CSLT_STRIPENDSPACES);
    oj_status status = open_pairs(words, option, input, join, out, err);
    CSLDestroy(words);
    return status;
}

/* "F", or "F:unit" where no field is called so. */
static oj_status open_reach(const struct oj_command *command,
                            struct oj_source *source, const char *option,
                            const char *word, const struct oj_crs *crs,
                            int *column, double *scale, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(source->layer);
    const char *colon = strrchr(word, ':');
    struct oj_class_field field;
    char name[256];
    int unit = OJ_UNIT_CRS;
    snprintf(name, sizeof name, "%s", word);
    if (colon != NULL && OGR_FD_GetFieldIndex(defn, word) < 0)
    {
        unit = oj_unit_find(colon + 1);
        if (unit < 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s %s: unknown unit '%s'; known are m, km, ft, "
                           "us-ft, mi and deg",
                           option, word, colon + 1);
        if ((size_t)(colon - word) < sizeof name)
            name[colon - word] = '\0';
    }
    OJ_TRY(find_field(source, name, option, &field, err));
    if (field.type != OFTInteger && field.type != OFTInteger64 &&
        field.type != OFTReal && field.type != OFTString)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s: the field '%s' of the %s layer holds no numbers",
                       option, name, source->role);
    *column = field.column;
    return oj_crs_scale(command, crs, option, word, (enum oj_unit)unit, scale,
                        err);
}

static oj_status open_excludes(const struct oj_command *command,
                               struct oj_source *input, struct oj_source *join,
                               struct oj_sides *sides, struct oj_error *err)
{
    static const char prefix[] = "field=";
    for (const char **word = command->exclude; word != NULL && *word != NULL;
         word++)
    {
        if (strncasecmp(*word, prefix, sizeof prefix - 1) != 0)
            continue;
        if (sides->exclude != NULL)
            return oj_fail(err, OJ_ERR_ARG,
                           "-exclude field=F can be given once; several "
                           "fields in one, as field=A,B, leave out pairs that "
                           "are equal in all of them");
        OJ_TRY(open_words(*word + sizeof prefix - 1, "exclude field=", input,
                          join, &sides->exclude, err));
    }
    return OJ_OK;
}

static oj_status open_conditions(const struct oj_command *command,
                                 struct oj_source *input,
                                 struct oj_source *join,
                                 const struct oj_crs *crs,
                                 struct oj_sides *sides, struct oj_error *err)
{
    sides->reach_column[0] = sides->reach_column[1] = -1;
    if (command->on != NULL)
        OJ_TRY(open_words(command->on, "on", input, join, &sides->on, err));
    OJ_TRY(open_excludes(command, input, join, sides, err));
    if (command->max_distance_field != NULL)
        OJ_TRY(open_reach(command, input, "max_distance_field",
                          command->max_distance_field, crs,
                          &sides->reach_column[0], &sides->reach_scale, err));
    if (command->join_max_distance_field != NULL)
        OJ_TRY(open_reach(command, join, "join_max_distance_field",
                          command->join_max_distance_field, crs,
                          &sides->reach_column[1], &sides->reach_scale, err));
    return OJ_OK;
}

/* ---- conditions on fields: the rows -------------------------------------- */

/* CSV has numbers as texts. */
static double number_of_text(const char *text, int64_t n_text)
{
    char copy[64], *end;
    size_t n = n_text >= 0 ? (size_t)n_text : strlen(text);
    double number;
    if (n == 0 || n >= sizeof copy)
        return NAN;
    memcpy(copy, text, n);
    copy[n] = '\0';
    number = CPLStrtod(copy, &end);
    while (*end == ' ')
        end++;
    return *end == '\0' ? number : NAN;
}

static double number_of(OGRFieldType type, const struct oj_value *value)
{
    if (OGR_RawField_IsUnset(&value->raw) || OGR_RawField_IsNull(&value->raw))
        return NAN;
    switch (type)
    {
        case OFTInteger:
            return value->raw.Integer;
        case OFTInteger64:
            return (double)value->raw.Integer64;
        case OFTReal:
            return value->raw.Real;
        case OFTString:
            return number_of_text(value->raw.String, value->n_text);
        default:
            return NAN;
    }
}

static oj_status fill_reach(const struct oj_sides *sides, int side,
                            const struct oj_row_values *values,
                            struct oj_side_work *work, struct oj_flat *flat,
                            struct oj_side_findings *found,
                            struct oj_error *err)
{
    int column = sides->reach_column[side];
    OGRFieldType type = values->table != NULL
                            ? oj_table_type(values->table, column, NULL)
                            : values->attributes->fields->field[column].type;
    OJ_TRY(oj_reserve(&work->max_distance, 0, flat->n_features,
                      &work->cap_max_distance, sizeof *work->max_distance,
                      err));
    for (int64_t row = 0; row < flat->n_features; row++)
    {
        struct oj_value value;
        double d;
        oj_row_values_get(values, row, column, &value);
        d = number_of(type, &value);
        if (sides->reach_scale != 1.0)
            d *= sides->reach_scale;
        if (!(d >= 0.0))
        {
            d = NAN;
            found->n_no_reach++;
        }
        work->max_distance[row] = d;
    }
    flat->max_distance = work->max_distance;
    return OJ_OK;
}

static oj_status fill_classes(struct oj_classes *classes, int side, int insert,
                              const struct oj_row_values *values,
                              const struct oj_flat *flat, int32_t **class_of,
                              int64_t *capacity, const int32_t **column,
                              struct oj_error *err)
{
    int64_t n = flat->n_features;
    OJ_TRY(oj_reserve(class_of, 0, n, capacity, sizeof **class_of, err));
    *column = *class_of;
    return oj_classes_find(classes, side, insert, values, n, *class_of, err);
}

/* ---- both sides --------------------------------------------------------- */

oj_status oj_sides_open(const struct oj_command *command,
                        struct oj_source *input, struct oj_source *join,
                        const struct oj_crs *crs, struct oj_sides *sides,
                        struct oj_relation *relation, struct oj_error *err)
{
    sides->reshape[0] = oj_reshape_for(command, 0, input->name);
    sides->reshape[1] = oj_reshape_for(command, 1, join->name);
    sides->reshape[0].cancel = sides->reshape[1].cancel = oj_cancel_flag();
    sides->needs_points = command->metric == OJ_METRIC_SPHERE;
    OJ_TRY(check_type(sides, input, err));
    OJ_TRY(check_self_join(command, input, join, sides, relation, err));
    return open_conditions(command, input, join, crs, sides, err);
}

int oj_sides_need_values(const struct oj_sides *sides, int side)
{
    return sides->on != NULL || sides->exclude != NULL ||
           sides->reach_column[side] >= 0;
}

oj_status oj_sides_make(struct oj_sides *sides, int side, int insert,
                        const struct oj_row_values *values,
                        struct oj_side_work *work, struct oj_flat *flat,
                        struct oj_error *err)
{
    struct oj_side_findings *found = &sides->reshape[side].found;
    if (oj_reshape_is_needed(&sides->reshape[side]))
    {
        oj_flat_buf_clear(&work->shapes);
        OJ_TRY(oj_reshape_features(&sides->reshape[side], flat, &work->shapes,
                                   err));
        *flat = oj_flat_buf_view(&work->shapes);
    }
    OJ_TRY(check_fids(sides, side, flat, err));
    if (side == 0)
        OJ_TRY(check_points(sides, flat, err));
    if (sides->needs_points)
        found->n_beyond_poles += count_beyond_poles(flat);
    if (sides->on != NULL)
        OJ_TRY(fill_classes(sides->on, side, insert, values, flat,
                            &work->on_class, &work->cap_on_class,
                            &flat->on_class, err));
    if (sides->exclude != NULL)
        OJ_TRY(fill_classes(sides->exclude, side, insert, values, flat,
                            &work->exclude_class, &work->cap_exclude_class,
                            &flat->exclude_class, err));
    if (sides->reach_column[side] >= 0)
        OJ_TRY(fill_reach(sides, side, values, work, flat, found, err));
    return OJ_OK;
}

void oj_side_work_free(struct oj_side_work *work)
{
    const struct oj_side_work empty = {0};
    oj_flat_buf_free(&work->shapes);
    oj_free(work->max_distance);
    oj_free(work->on_class);
    oj_free(work->exclude_class);
    *work = empty;
}

void oj_sides_close(struct oj_sides *sides)
{
    oj_reshape_free(&sides->reshape[0]);
    oj_reshape_free(&sides->reshape[1]);
    oj_classes_free(sides->on);
    oj_classes_free(sides->exclude);
    sides->on = sides->exclude = NULL;
}
