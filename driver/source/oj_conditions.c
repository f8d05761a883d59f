#include "oj_conditions.h"

#include "../../flatten/base/oj_array.h"

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

/* ---- the words ---------------------------------------------------------- */

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
                               struct oj_conditions *conditions,
                               struct oj_error *err)
{
    static const char prefix[] = "field=";
    for (const char **word = command->exclude; word != NULL && *word != NULL;
         word++)
    {
        if (strncasecmp(*word, prefix, sizeof prefix - 1) != 0)
            continue;
        if (conditions->exclude != NULL)
            return oj_fail(err, OJ_ERR_ARG,
                           "-exclude field=F can be given once; several "
                           "fields in one, as field=A,B, leave out pairs that "
                           "are equal in all of them");
        OJ_TRY(open_words(*word + sizeof prefix - 1, "exclude field=", input,
                          join, &conditions->exclude, err));
    }
    return OJ_OK;
}

oj_status oj_conditions_open(const struct oj_command *command,
                             struct oj_source *input, struct oj_source *join,
                             const struct oj_crs *crs,
                             struct oj_conditions *conditions,
                             struct oj_error *err)
{
    const struct oj_conditions nothing = {0};
    *conditions = nothing;
    conditions->reach_column[0] = conditions->reach_column[1] = -1;
    if (command->on != NULL)
        OJ_TRY(
            open_words(command->on, "on", input, join, &conditions->on, err));
    OJ_TRY(open_excludes(command, input, join, conditions, err));
    if (command->max_distance_field != NULL)
        OJ_TRY(open_reach(
            command, input, "max_distance_field", command->max_distance_field,
            crs, &conditions->reach_column[0], &conditions->reach_scale, err));
    if (command->join_max_distance_field != NULL)
        OJ_TRY(open_reach(command, join, "join_max_distance_field",
                          command->join_max_distance_field, crs,
                          &conditions->reach_column[1],
                          &conditions->reach_scale, err));
    return OJ_OK;
}

/* ---- the rows ----------------------------------------------------------- */

int oj_conditions_needed(const struct oj_conditions *conditions, int side)
{
    return conditions->on != NULL || conditions->exclude != NULL ||
           conditions->reach_column[side] >= 0;
}

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

static void fill_reach(const struct oj_conditions *conditions, int side,
                       const struct oj_row_values *values, int64_t n,
                       double *reach, int64_t *n_no_reach)
{
    int column = conditions->reach_column[side];
    OGRFieldType type;
    if (values->table != NULL)
        type = oj_table_type(values->table, column, NULL);
    else
        type = values->attributes->fields->field[column].type;
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_value value;
        double d;
        oj_row_values_get(values, row, column, &value);
        d = number_of(type, &value);
        if (conditions->reach_scale != 1.0)
            d *= conditions->reach_scale;
        if (!(d >= 0.0))
        {
            d = NAN;
            ++*n_no_reach;
        }
        reach[row] = d;
    }
}

static oj_status fill_classes(struct oj_classes *classes, int side, int insert,
                              const struct oj_row_values *values, int64_t n,
                              int32_t **class_of, int64_t *capacity,
                              struct oj_error *err)
{
    OJ_TRY(oj_reserve(class_of, 0, n, capacity, sizeof **class_of, err));
    return oj_classes_find(classes, side, insert, values, n, *class_of, err);
}

oj_status oj_conditions_fill(const struct oj_conditions *conditions, int side,
                             int insert, const struct oj_row_values *values,
                             struct oj_columns *columns, struct oj_flat *flat,
                             int64_t *n_no_reach, struct oj_error *err)
{
    int64_t n = flat->n_features;
    if (conditions->on != NULL)
    {
        OJ_TRY(fill_classes(conditions->on, side, insert, values, n,
                            &columns->on_class, &columns->cap_on_class, err));
        flat->on_class = columns->on_class;
    }
    if (conditions->exclude != NULL)
    {
        OJ_TRY(fill_classes(conditions->exclude, side, insert, values, n,
                            &columns->exclude_class,
                            &columns->cap_exclude_class, err));
        flat->exclude_class = columns->exclude_class;
    }
    if (conditions->reach_column[side] >= 0)
    {
        OJ_TRY(oj_reserve(&columns->max_distance, 0, n,
                          &columns->cap_max_distance,
                          sizeof *columns->max_distance, err));
        fill_reach(conditions, side, values, n, columns->max_distance,
                   n_no_reach);
        flat->max_distance = columns->max_distance;
    }
    return OJ_OK;
}

void oj_columns_free(struct oj_columns *columns)
{
    const struct oj_columns empty = {0};
    oj_free(columns->max_distance);
    oj_free(columns->on_class);
    oj_free(columns->exclude_class);
    *columns = empty;
}

void oj_conditions_free(struct oj_conditions *conditions)
{
    oj_classes_free(conditions->on);
    oj_classes_free(conditions->exclude);
    conditions->on = conditions->exclude = NULL;
}
