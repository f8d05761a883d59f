#include "oj_side_compared_columns.h"

#include "../../algs/foundations/relation/oj_relation.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_number.h"
#include "../../flatten/text/oj_word_replacements.h"
#include "oj_layer_field_kind.h"

#include <math.h>
#include <string.h>

/* ---- values of fields ---------------------------------------------------- */

oj_status oj_side_field_text(struct oj_side_field *field,
                             const struct oj_value *value, const char **text,
                             int64_t *n, struct oj_error *err)
{
    if (field->type == OFTString)
    {
        *text = oj_value_bytes(value, OFTString, n);
        return OJ_OK;
    }
    if (field->scratch == NULL)
        field->scratch = oj_value_make_scratch_feature(
            field->type, field->subtype, &field->defn);
    if (field->scratch == NULL)
        return oj_fail(
            err, OJ_ERR_NOMEM,
            "out of memory for a value: free memory, or use a smaller -batch");
    /* The cast is for GDAL 3.4, where the parameter is not const; GDAL does not
     * change the value. */
    OGR_F_SetFieldRaw(field->scratch, 0, (OGRField *)&value->raw);
    *text = OGR_F_GetFieldAsString(field->scratch, 0);
    *n = (int64_t)strlen(*text);
    return OJ_OK;
}

void oj_side_field_free(struct oj_side_field *field)
{
    if (field->scratch != NULL)
    {
        OGR_F_Destroy(field->scratch);
        OGR_FD_Release(field->defn);
    }
    field->scratch = NULL;
}

/* Returns a value as a number, or NaN if it is no number. Texts are parsed,
 * because CSV has only texts. */
static double number_of_value(OGRFieldType type, const struct oj_value *value)
{
    const char *text;
    int64_t n;
    if (!oj_value_is_there(value))
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
            text = oj_value_bytes(value, type, &n);
            return oj_text_number(text, n);
        default:
            return NAN;
    }
}

/* ---- classes ------------------------------------------------------------- */

/* Argument of read_class_value(): fields and values of one side. */
struct class_rows
{
    const struct oj_side_fields *fields;
    const struct oj_attributes *values;
};

/* Reads one value for oj_value_classes. Types other than numbers and texts are
 * read as the text that OGR writes. */
static oj_status read_class_value(void *user, int i, int64_t row,
                                  struct oj_plain_value *out,
                                  struct oj_error *err)
{
    const struct class_rows *rows = user;
    struct oj_side_field *field = &rows->fields->field[i];
    struct oj_value value;
    const char *text = NULL;
    int64_t n = 0;
    oj_attributes_value(rows->values, field->column, row, &value);
    if (!oj_value_is_there(&value))
        return OJ_OK;
    if (field->type == OFTInteger)
        *out = oj_plain_integer(value.raw.Integer);
    else if (field->type == OFTInteger64)
        *out = oj_plain_integer(value.raw.Integer64);
    else if (field->type == OFTReal)
        *out = oj_plain_real(value.raw.Real);
    else
    {
        OJ_TRY(oj_side_field_text(field, &value, &text, &n, err));
        *out = oj_plain_text(text, n);
    }
    return OJ_OK;
}

static enum oj_field_kind kind_of_field(const struct oj_side_field *field)
{
    return oj_layer_field_kind_of(field->type, field->subtype);
}

static oj_status make_classes(struct oj_side_columns *c, int made, int side,
                              int insert, const struct oj_attributes *values,
                              int64_t n, int32_t **class_of, int64_t *capacity,
                              struct oj_error *err)
{
    const struct oj_side_fields *fields = c->fields[made];
    struct class_rows rows = {&fields[side], values};
    const struct oj_plain_reader reader = {read_class_value, &rows};
    const int n_fields = fields[side].n;
    enum oj_value_comparison *comparison;
    oj_status status;
    OJ_TRY(oj_reserve(class_of, 0, n, capacity, sizeof **class_of, err));
    OJ_NEW(comparison, n_fields, err);
    for (int i = 0; i < n_fields; i++)
        comparison[i] =
            oj_value_comparison_of(kind_of_field(&fields[0].field[i]),
                                   kind_of_field(&fields[1].field[i]));
    status = oj_value_classes_find(&c->vocabulary->classes[made], &c->key,
                                   comparison, n_fields, &reader, n,
                                   insert != OJ_LOOK_UP, *class_of, err);
    oj_free(comparison);
    return status;
}

/* ---- distances ----------------------------------------------------------- */

static oj_status make_max_distances(const struct oj_side_columns *c, int side,
                                    const struct oj_attributes *values,
                                    int64_t n, struct oj_compared_columns *made,
                                    int64_t *n_without, struct oj_error *err)
{
    const struct oj_side_field *field =
        c->fields[OJ_MADE_MAX_DISTANCE][side].field;
    OJ_ROOM(made->max_distance, 0, n, made->cap_max_distance, err);
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_value value;
        double d;
        oj_attributes_value(values, field->column, row, &value);
        d = number_of_value(field->type, &value);
        if (c->distance_scale != 1.0)
            d *= c->distance_scale;
        if (!(d >= 0.0))
        {
            d = NAN;
            ++*n_without;
        }
        made->max_distance[row] = d;
    }
    return OJ_OK;
}

/* Reads the headings of n rows. A heading that is NULL becomes NaN: the row has
 * none. Adds the number of rows without a usable heading to *n_without. */
static oj_status make_headings(const struct oj_side_columns *c, int side,
                               const struct oj_attributes *values, int64_t n,
                               struct oj_compared_columns *made,
                               int64_t *n_without, struct oj_error *err)
{
    const struct oj_side_field *field = c->fields[OJ_MADE_HEADING][side].field;
    OJ_ROOM(made->heading, 0, n, made->cap_heading, err);
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_value value;
        oj_attributes_value(values, field->column, row, &value);
        made->heading[row] = number_of_value(field->type, &value);
        *n_without += !oj_heading_is_usable(made->heading[row]);
    }
    return OJ_OK;
}

/* ---- vectors ------------------------------------------------------------- */

/* Reads the list of numbers of a field, or its single number. Returns the
 * number of these numbers, at most OJ_MOST_DIMENSIONS + 1. */
static int64_t read_vector_of_value(OGRFieldType type,
                                    const struct oj_value *value, double *out)
{
    const OGRField *raw = &value->raw;
    int64_t n, most = OJ_MOST_DIMENSIONS + 1;
    if (!oj_value_is_there(value))
        return 0;
    if (type == OFTString)
    {
        const char *text = oj_value_bytes(value, type, &n);
        return oj_text_numbers(text, n, most, out);
    }
    if (type != OFTRealList && type != OFTIntegerList &&
        type != OFTInteger64List)
    {
        out[0] = number_of_value(type, value);
        return 1;
    }
    n = raw->RealList.nCount < most ? raw->RealList.nCount : most;
    for (int64_t i = 0; i < n; i++)
        out[i] = type == OFTRealList ? raw->RealList.paList[i]
                 : type == OFTIntegerList
                     ? raw->IntegerList.paList[i]
                     : (double)raw->Integer64List.paList[i];
    return n;
}

/* Reads the vector of a row into number [OJ_MOST_DIMENSIONS + 1]. Returns its
 * number of dimensions. */
static int64_t read_vector_of_row(const struct oj_side_fields *fields,
                                  const struct oj_attributes *values,
                                  int64_t row, double *number)
{
    struct oj_value value;
    for (int i = 0; i < fields->n; i++)
    {
        const struct oj_side_field *field = &fields->field[i];
        oj_attributes_value(values, field->column, row, &value);
        if (fields->n == 1)
            return read_vector_of_value(field->type, &value, number);
        number[i] = number_of_value(field->type, &value);
    }
    return fields->n;
}

/* Sets the number of dimensions from the first row that has numbers. It stays 0
 * if there is no such row and more rows may be inserted. */
static oj_status count_dimensions(const struct oj_side_columns *c, int side,
                                  int insert,
                                  const struct oj_attributes *values,
                                  const struct oj_flat *flat,
                                  struct oj_error *err)
{
    double number[OJ_MOST_DIMENSIONS + 1];
    int64_t n = 0;
    for (int64_t row = 0;
         insert != OJ_LOOK_UP && n == 0 && row < flat->n_features; row++)
    {
        n = read_vector_of_row(&c->fields[OJ_MADE_VECTOR][side], values, row,
                               number);
        if (n > OJ_MOST_DIMENSIONS)
            return oj_fail(
                err, OJ_ERR_DATA,
                "-vector: the list of feature %lld has more than %d numbers, "
                "the most that are compared: give shorter lists",
                (long long)(flat->fid != NULL ? flat->fid[row] : row),
                OJ_MOST_DIMENSIONS);
    }
    c->vocabulary->n_dimensions = n > 0 || insert == OJ_INSERT_SOME ? n : 1;
    return OJ_OK;
}

static oj_status make_vectors(const struct oj_side_columns *c, int side,
                              int insert, const struct oj_attributes *values,
                              const struct oj_flat *flat,
                              struct oj_compared_columns *made,
                              int64_t *n_without, struct oj_error *err)
{
    const struct oj_side_fields *fields = &c->fields[OJ_MADE_VECTOR][side];
    double number[OJ_MOST_DIMENSIONS + 1];
    int64_t n = flat->n_features, d;
    if (insert == OJ_INSERT_ALL || c->vocabulary->n_dimensions == 0)
        OJ_TRY(count_dimensions(c, side, insert, values, flat, err));
    made->n_dimensions = d = c->vocabulary->n_dimensions;
    OJ_ROOM(made->vector, 0, n * d, made->cap_vector, err);
    for (int64_t row = 0; row < n; row++)
    {
        double *out = made->vector + row * d;
        if (read_vector_of_row(fields, values, row, number) == d &&
            oj_vector_apply_weights(c->norm, number, d, c->weight, fields->n,
                                    out))
            continue;
        for (int64_t i = 0; i < d; i++)
            out[i] = (double)NAN;
        ++*n_without;
    }
    return OJ_OK;
}

/* ---- spans --------------------------------------------------------------- */

static struct oj_span_end read_span_end(const struct oj_span_reading *reading,
                                        const struct oj_side_field *field,
                                        const struct oj_attributes *values,
                                        int64_t row)
{
    struct oj_value value;
    const char *text;
    int64_t n;
    oj_attributes_value(values, field->column, row, &value);
    if (!oj_value_is_there(&value))
        return (struct oj_span_end){OJ_SPAN_END_NULL, 0, 0.0};
    switch (field->type)
    {
        case OFTInteger:
            return oj_span_end_of_integer(reading, value.raw.Integer);
        case OFTInteger64:
            return oj_span_end_of_integer(reading, value.raw.Integer64);
        case OFTReal:
            return oj_span_end_of_real(reading, value.raw.Real);
        case OFTString:
            text = oj_value_bytes(&value, field->type, &n);
            return oj_span_end_of_text(reading, text, n);
        default:
            return oj_span_end_of_integer(
                reading, oj_value_microseconds(&value.raw, field->type));
    }
}

static oj_status make_spans(const struct oj_side_columns *c, int i, int side,
                            const struct oj_attributes *values, int64_t n,
                            struct oj_compared_columns *made,
                            int64_t *n_without, struct oj_error *err)
{
    const struct oj_span_reading *reading = &c->span[i];
    const struct oj_side_field *field = c->fields[OJ_MADE_SPAN + i][side].field;
    int has_until = !oj_span_reading_is_of_instants(reading, side);
    OJ_ROOM(made->from[i], 0, n, made->cap_from[i], err);
    if (has_until)
        OJ_ROOM(made->until[i], 0, n, made->cap_until[i], err);
    for (int64_t row = 0; row < n; row++)
    {
        struct oj_span_end end[2];
        int64_t until;
        end[0] = read_span_end(reading, &field[0], values, row);
        end[1] = reading->is_instant[side]
                     ? end[0]
                     : read_span_end(reading, &field[1], values, row);
        *n_without +=
            !oj_span_make(reading, side, end, &made->from[i][row], &until);
        if (has_until)
            made->until[i][row] = until;
    }
    return OJ_OK;
}

/* ---- texts --------------------------------------------------------------- */

/* Appends the text of a row to made->bytes and adds its length to *n. */
static oj_status append_text_of_row(const struct oj_side_fields *fields,
                                    const struct oj_attributes *values,
                                    int64_t row,
                                    struct oj_compared_columns *made,
                                    int64_t *n, struct oj_error *err)
{
    int64_t first = *n;
    for (int i = 0; i < fields->n; i++)
    {
        struct oj_value value;
        const char *text;
        int64_t length;
        oj_attributes_value(values, fields->field[i].column, row, &value);
        if (!oj_value_is_there(&value))
            continue;
        OJ_TRY(
            oj_side_field_text(&fields->field[i], &value, &text, &length, err));
        OJ_ROOM(made->bytes, *n, *n + length + 1, made->cap_bytes, err);
        if (*n > first)
            made->bytes[(*n)++] = ' ';
        memcpy(made->bytes + *n, text, (size_t)length);
        *n += length;
    }
    return OJ_OK;
}

static oj_status gather_texts(const struct oj_side_fields *fields,
                              const struct oj_attributes *values,
                              int64_t n_rows, struct oj_compared_columns *made,
                              struct oj_error *err)
{
    int64_t n = 0;
    OJ_ROOM(made->offset, 0, n_rows + 1, made->cap_offset, err);
    OJ_ROOM(made->bytes, 0, 1, made->cap_bytes, err);
    made->offset[0] = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        OJ_TRY(append_text_of_row(fields, values, row, made, &n, err));
        made->offset[row + 1] = n;
    }
    return OJ_OK;
}

static oj_status make_token_sets(const struct oj_side_columns *c, int condition,
                                 int insert, const struct oj_flat *flat,
                                 struct oj_compared_columns *made,
                                 struct oj_error *err)
{
    const struct oj_texts texts = {flat->n_features, made->offset, made->bytes};
    const struct oj_token_rules rules = {c->rules.fold, c->rules.tokens,
                                         c->vocabulary->word_map};
    struct oj_dictionary **dictionary = &c->vocabulary->dictionary[condition];
    if (insert == OJ_LOOK_UP)
        return oj_token_dictionary_make_sets(*dictionary, &texts, flat->fid,
                                             c->n_threads, c->cancel,
                                             &made->sets[condition], err);
    if (insert == OJ_INSERT_ALL)
    {
        oj_token_dictionary_free(*dictionary);
        *dictionary = NULL;
    }
    return oj_token_dictionary_add(
        &texts, flat->fid, &rules, insert == OJ_INSERT_ALL, c->n_threads,
        c->cancel, dictionary, &made->sets[condition], err);
}

static int64_t count_rows_without_text(const struct oj_compared_columns *made,
                                       int64_t n_rows)
{
    int64_t n = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        int i = 0;
        while (i < made->n_texts && made->texts[i].size[row] > 0)
            i++;
        n += i < made->n_texts;
    }
    return n;
}

static oj_status make_texts(const struct oj_side_columns *c, int side,
                            int insert, const struct oj_attributes *values,
                            const struct oj_flat *flat,
                            struct oj_compared_columns *made,
                            int64_t *n_without, struct oj_error *err)
{
    made->n_texts = c->n_texts;
    for (int i = 0; i < c->n_texts; i++)
    {
        OJ_TRY(gather_texts(&c->fields[OJ_MADE_TEXT + i][side], values,
                            flat->n_features, made, err));
        OJ_TRY(make_token_sets(c, i, insert, flat, made, err));
        made->texts[i] = oj_token_sets_view(&made->sets[i]);
    }
    if (insert == OJ_INSERT_ALL) /* no more texts will follow */
    {
        oj_free(made->bytes);
        made->bytes = NULL;
        made->cap_bytes = 0;
    }
    *n_without += count_rows_without_text(made, flat->n_features);
    return OJ_OK;
}

oj_status oj_side_columns_renumber_tokens(struct oj_side_columns *columns,
                                          uint32_t *number[OJ_MOST_TEXTS],
                                          struct oj_error *err)
{
    for (int i = 0; i < columns->n_texts; i++)
    {
        struct oj_dictionary *dictionary = columns->vocabulary->dictionary[i];
        if (dictionary != NULL)
            OJ_TRY(oj_token_dictionary_number_by_rarity(dictionary, &number[i],
                                                        err));
    }
    return OJ_OK;
}

/* ---- the conditions ------------------------------------------------------ */

oj_status oj_side_columns_open(struct oj_side_columns *columns,
                               const char *word_map, struct oj_error *err)
{
    struct oj_vocabulary *vocabulary;
    OJ_NEW_ZEROED(vocabulary, 1, err);
    vocabulary->n_holders = 1;
    columns->vocabulary = vocabulary;
    return word_map == NULL
               ? OJ_OK
               : oj_word_map_make(word_map, (int64_t)strlen(word_map),
                                  (enum oj_fold)columns->rules.fold,
                                  &vocabulary->word_map, err);
}

oj_status oj_side_columns_add(struct oj_side_columns *columns, int made,
                              int side, const struct oj_side_field *field,
                              struct oj_error *err)
{
    struct oj_side_fields *fields = &columns->fields[made][side];
    OJ_ROOM(fields->field, fields->n, fields->n + 1, fields->capacity, err);
    fields->field[fields->n++] = *field;
    return OJ_OK;
}

int oj_side_columns_are_needed(const struct oj_side_columns *columns, int side)
{
    int need = 0;
    for (int i = 0; i < OJ_N_MADE_COLUMNS; i++)
        need = need || columns->fields[i][side].n > 0;
    return need;
}

void oj_side_columns_use_vocabulary(struct oj_side_columns *columns,
                                    struct oj_vocabulary *vocabulary)
{
    oj_vocabulary_add_reference(vocabulary);
    oj_vocabulary_free(columns->vocabulary);
    columns->vocabulary = vocabulary;
}

void oj_side_columns_close(struct oj_side_columns *columns)
{
    for (int i = 0; i < 2 * OJ_N_MADE_COLUMNS; i++)
    {
        struct oj_side_fields *fields = &columns->fields[i / 2][i % 2];
        for (int f = 0; f < fields->n; f++)
            oj_side_field_free(&fields->field[f]);
        oj_free(fields->field);
    }
    oj_vocabulary_free(columns->vocabulary);
    oj_value_key_free(&columns->key);
    memset(columns, 0, sizeof *columns);
}

struct oj_vocabulary *
oj_vocabulary_add_reference(struct oj_vocabulary *vocabulary)
{
    __atomic_fetch_add(&vocabulary->n_holders, 1, __ATOMIC_RELAXED);
    return vocabulary;
}

int64_t oj_vocabulary_bytes(const struct oj_vocabulary *vocabulary)
{
    int64_t bytes = 0;
    for (int i = 0; vocabulary != NULL && i < 2; i++)
        bytes += oj_value_classes_bytes(&vocabulary->classes[i]);
    for (int i = 0; vocabulary != NULL && i < OJ_MOST_TEXTS; i++)
    {
        if (vocabulary->dictionary[i] != NULL)
            bytes += oj_token_dictionary_bytes(vocabulary->dictionary[i]);
    }
    return bytes;
}

void oj_vocabulary_free(struct oj_vocabulary *vocabulary)
{
    if (vocabulary == NULL ||
        __atomic_sub_fetch(&vocabulary->n_holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int i = 0; i < 2; i++)
        oj_value_classes_free(&vocabulary->classes[i]);
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_token_dictionary_free(vocabulary->dictionary[i]);
    oj_word_map_free(vocabulary->word_map);
    oj_free(vocabulary);
}

/* ---- the columns --------------------------------------------------------- */

oj_status oj_side_columns_make(struct oj_side_columns *columns, int side,
                               int insert, const struct oj_attributes *values,
                               struct oj_compared_columns *made,
                               struct oj_flat *flat,
                               struct oj_missing_values *missing,
                               struct oj_error *err)
{
    int64_t n = flat->n_features;
    if (columns->fields[OJ_MADE_ON_CLASS][side].n > 0)
        OJ_TRY(make_classes(columns, OJ_MADE_ON_CLASS, side, insert, values, n,
                            &made->on_class, &made->cap_on_class, err));
    if (columns->fields[OJ_MADE_EXCLUDE_CLASS][side].n > 0)
        OJ_TRY(make_classes(columns, OJ_MADE_EXCLUDE_CLASS, side, insert,
                            values, n, &made->exclude_class,
                            &made->cap_exclude_class, err));
    if (columns->n_texts > 0)
        OJ_TRY(make_texts(columns, side, insert, values, flat, made,
                          &missing->n_no_text, err));
    if (columns->fields[OJ_MADE_VECTOR][side].n > 0)
        OJ_TRY(make_vectors(columns, side, insert, values, flat, made,
                            &missing->n_no_vector, err));
    if (columns->fields[OJ_MADE_MAX_DISTANCE][side].n > 0)
        OJ_TRY(make_max_distances(columns, side, values, n, made,
                                  &missing->n_no_reach, err));
    if (columns->fields[OJ_MADE_HEADING][side].n > 0)
        OJ_TRY(make_headings(columns, side, values, n, made,
                             &missing->n_no_heading, err));
    made->n_spans = columns->n_spans;
    for (int i = 0; i < columns->n_spans; i++)
        OJ_TRY(make_spans(columns, i, side, values, n, made,
                          &missing->n_no_span[i], err));
    oj_compared_columns_view(made, flat);
    return OJ_OK;
}

oj_status oj_compared_columns_append(struct oj_compared_columns *made,
                                     int64_t n, const struct oj_flat *flat,
                                     int64_t from, struct oj_error *err)
{
    const int64_t d = flat->vectors.n_dimensions;
    made->n_texts = flat->n_texts;
    for (int i = 0; i < flat->n_texts; i++)
    {
        OJ_TRY(oj_token_sets_add(&made->sets[i], &flat->texts[i], from, err));
        made->texts[i] = oj_token_sets_view(&made->sets[i]);
    }
    if (flat->vectors.value != NULL)
    {
        OJ_ROOM(made->vector, n * d, (n + 1) * d, made->cap_vector, err);
        made->n_dimensions = d;
        memcpy(made->vector + n * d, oj_vector_at(&flat->vectors, from),
               (size_t)d * sizeof *made->vector);
    }
    if (flat->max_distance != NULL)
    {
        OJ_ROOM(made->max_distance, n, n + 1, made->cap_max_distance, err);
        made->max_distance[n] = flat->max_distance[from];
    }
    if (flat->heading != NULL)
    {
        OJ_ROOM(made->heading, n, n + 1, made->cap_heading, err);
        made->heading[n] = flat->heading[from];
    }
    if (flat->on_class != NULL)
    {
        OJ_ROOM(made->on_class, n, n + 1, made->cap_on_class, err);
        made->on_class[n] = flat->on_class[from];
    }
    if (flat->exclude_class != NULL)
    {
        OJ_ROOM(made->exclude_class, n, n + 1, made->cap_exclude_class, err);
        made->exclude_class[n] = flat->exclude_class[from];
    }
    made->n_spans = flat->n_spans;
    for (int i = 0; i < flat->n_spans; i++)
    {
        OJ_ROOM(made->from[i], n, n + 1, made->cap_from[i], err);
        OJ_ROOM(made->until[i], n, n + 1, made->cap_until[i], err);
        made->from[i][n] = flat->spans[i].from[from];
        made->until[i][n] = flat->spans[i].until[from];
    }
    return OJ_OK;
}

void oj_compared_columns_view(const struct oj_compared_columns *made,
                              struct oj_flat *flat)
{
    flat->max_distance = made->max_distance;
    flat->heading = made->heading;
    flat->on_class = made->on_class;
    flat->exclude_class = made->exclude_class;
    flat->n_texts = made->n_texts;
    flat->texts = made->n_texts > 0 ? made->texts : NULL;
    flat->vectors.value = made->vector;
    flat->vectors.n_dimensions = made->n_dimensions;
    flat->n_spans = made->n_spans;
    for (int i = 0; i < made->n_spans; i++)
        flat->spans[i] = (struct oj_spans){made->from[i], made->until[i] != NULL
                                                              ? made->until[i]
                                                              : made->from[i]};
}

int64_t oj_compared_columns_bytes(const struct oj_compared_columns *made)
{
    int64_t bytes = 8 * (made->cap_vector + made->cap_max_distance +
                         made->cap_heading + made->cap_offset) +
                    4 * (made->cap_on_class + made->cap_exclude_class) +
                    made->cap_bytes;
    for (int i = 0; i < OJ_MOST_SPANS; i++)
        bytes += 8 * (made->cap_from[i] + made->cap_until[i]);
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
    {
        const struct oj_token_sets_buf *sets = &made->sets[i];
        bytes += 8 * sets->cap_offset + 4 * (sets->cap_token + sets->cap_size) +
                 sets->cap_bits * (int64_t)sizeof *sets->bits;
    }
    return bytes;
}

void oj_compared_columns_free(struct oj_compared_columns *made)
{
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_token_sets_free(&made->sets[i]);
    oj_free(made->offset);
    oj_free(made->bytes);
    oj_free(made->vector);
    oj_free(made->max_distance);
    oj_free(made->heading);
    oj_free(made->on_class);
    oj_free(made->exclude_class);
    for (int i = 0; i < OJ_MOST_SPANS; i++)
    {
        oj_free(made->from[i]);
        oj_free(made->until[i]);
    }
    memset(made, 0, sizeof *made);
}
