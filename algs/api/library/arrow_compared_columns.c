#include "arrow_compared_columns.h"

#include "../../../flatten/arrays/oj_vectors.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"
#include "../arrow/arrow_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void compared_fields_free(struct compared_fields *fields)
{
    for (int i = 0; i < fields->n_similar; i++)
        oj_similar_fields_free(&fields->similar[i]);
    oj_vector_fields_free(&fields->vector);
    fields->n_similar = 0;
}

/* --- the schema ----------------------------------------------------------- */

static int is_text(const char *format)
{
    return strcmp(format, "u") == 0 || strcmp(format, "U") == 0 ||
           strcmp(format, "vu") == 0;
}

static int is_integer_format(const char *format)
{
    return format[0] != '\0' && format[1] == '\0' &&
           strchr("cCsSiIlL", format[0]) != NULL;
}

static int is_number(const char *format)
{
    return is_integer_format(format) || strcmp(format, "f") == 0 ||
           strcmp(format, "g") == 0;
}

static oj_status fail_format(const struct ArrowSchema *column,
                             const char *setting, const char *what,
                             struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "%s: the column \"%.100s\" holds no %s (Arrow format "
                   "\"%.20s\"%s): convert it, or name another column",
                   setting, column->name, what, column->format,
                   column->dictionary != NULL ? ", a dictionary" : "");
}

/* Parses the format of a list column. Fails unless its elements are numbers. */
static oj_status parse_list_column_format(const struct ArrowSchema *column,
                                          struct arrow_field *out,
                                          struct oj_error *err)
{
    const char *format = column->format;
    char *end = NULL;
    if (column->n_children != 1 || column->children == NULL ||
        column->children[0] == NULL || column->children[0]->format == NULL ||
        !is_number(column->children[0]->format) ||
        column->children[0]->dictionary != NULL)
        return fail_format(column, "vector", "lists of numbers", err);
    out->list = format[1];
    if (out->list == 'w')
        out->list_size = format[2] == ':' ? strtoll(format + 3, &end, 10) : -1;
    if (out->list_size < 0 || (end != NULL && *end != '\0'))
        return fail_format(column, "vector", "lists of numbers", err);
    snprintf(out->format, sizeof out->format, "%s",
             column->children[0]->format);
    return OJ_OK;
}

static int is_of_type_null(const struct ArrowSchema *column)
{
    const char *format = column->dictionary != NULL ? column->dictionary->format
                                                    : column->format;
    return format != NULL && strcmp(format, "n") == 0;
}

static int has_only_nulls(const struct arrow_field *field)
{
    return field->format[0] == 'n';
}

/* Finds a column by its name. Its format is set to "n" if all rows are NULL,
 * because the column or its dictionary is of type null. */
static oj_status find_column(const struct ArrowSchema *schema, const char *name,
                             const char *setting, struct arrow_field *out,
                             const struct ArrowSchema **column,
                             struct oj_error *err)
{
    for (int64_t i = 0; i < schema->n_children; i++)
    {
        *column = schema->children[i];
        if ((*column)->name == NULL || strcmp((*column)->name, name) != 0)
            continue;
        out->child = i;
        snprintf(out->format, sizeof out->format, "%s",
                 is_of_type_null(*column) ? "n" : (*column)->format);
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_ARG,
                   "%s: the Arrow schema has no column \"%.100s\": name one of "
                   "its columns",
                   setting, name);
}

static oj_status find_text_field(const struct ArrowSchema *schema,
                                 const char *name, struct arrow_field *out,
                                 struct oj_error *err)
{
    const struct ArrowSchema *column = NULL;
    OJ_TRY(find_column(schema, name, "similar", out, &column, err));
    if (has_only_nulls(out))
        return OJ_OK;
    if (column->dictionary != NULL && column->dictionary->format != NULL &&
        is_text(column->dictionary->format) &&
        is_integer_format(column->format))
    {
        out->index = column->format[0];
        snprintf(out->format, sizeof out->format, "%s",
                 column->dictionary->format);
    }
    else if (column->dictionary != NULL ||
             (!is_text(column->format) && !is_integer_format(column->format)))
        return fail_format(column, "similar", "texts", err);
    return OJ_OK;
}

static oj_status find_vector_field(const struct ArrowSchema *schema,
                                   const char *name, int is_alone,
                                   struct arrow_field *out,
                                   struct oj_error *err)
{
    const struct ArrowSchema *column = NULL;
    OJ_TRY(find_column(schema, name, "vector", out, &column, err));
    if (has_only_nulls(out))
        return OJ_OK;
    if (is_alone && column->format[0] == '+' &&
        strchr("lLw", column->format[1]) != NULL && column->format[1] != '\0')
        return parse_list_column_format(column, out, err);
    if (column->dictionary != NULL ||
        (!is_text(column->format) && !is_number(column->format)))
        return fail_format(column, "vector", "numbers", err);
    return OJ_OK;
}

static oj_status find_compared_fields(const struct ArrowSchema *schema,
                                      const struct compared_fields *compared,
                                      int side, struct arrow_fields *out,
                                      struct oj_error *err)
{
    struct arrow_field *to = out->field;
    for (int i = 0; i < out->n_texts; i++)
    {
        char **name = compared->similar[i].fields[side];
        for (; *name != NULL; name++, out->n_fields[i]++)
            OJ_TRY(find_text_field(schema, *name, to++, err));
    }
    for (int i = 0; i < out->n_vector; i++)
        OJ_TRY(find_vector_field(schema, compared->vector.fields[side][i],
                                 out->n_vector == 1, to++, err));
    return OJ_OK;
}

oj_status arrow_fields_find(const struct ArrowSchema *schema,
                            const struct compared_fields *compared, int side,
                            struct arrow_fields *out, struct oj_error *err)
{
    struct arrow_fields fields = {.n_vector = compared->vector.n};
    oj_status status;
    if (compared->similar[0].fields[0] != NULL)
        fields.n_texts = compared->n_similar;
    OJ_NEW_ZEROED(fields.field,
                  fields.n_texts * OJ_MOST_TEXT_FIELDS + fields.n_vector, err);
    status = find_compared_fields(schema, compared, side, &fields, err);
    if (status == OJ_OK)
        *out = fields;
    else
        arrow_fields_free(&fields);
    return status;
}

void arrow_fields_free(struct arrow_fields *fields)
{
    oj_free(fields->field);
    memset(fields, 0, sizeof *fields);
}

/* --- values of compared columns in an array ------------------------------- */

struct field_values
{
    const struct arrow_field *field;
    struct arrow_presence is;
    struct arrow_bytes bytes;

    const uint8_t *word_valid; /* validity of the dictionary's values */
    int64_t n_words;

    const void *number; /* numbers of rows, numbers of list elements, or indices
                           into the dictionary */
    struct arrow_list list;
    const uint8_t *element_valid;
    int64_t first_element;
};

static oj_status read_elements(const struct ArrowArray *column, int64_t n_rows,
                               struct field_values *v, struct oj_error *err)
{
    int64_t size = v->field->list_size;
    const struct ArrowArray *elements;
    if (v->field->list == 'w')
        OJ_TRY(arrow_check_layout(column, 1, 1, err));
    else
        OJ_TRY(arrow_list_read(column, v->field->list == 'L', &v->list, err));
    elements = column->children[0];
    OJ_TRY(arrow_check_layout(elements, 2, 0, err));
    v->number = elements->buffers[1];
    v->first_element = elements->offset;
    v->element_valid = arrow_validity(elements);
    if ((elements->length > 0 && v->number == NULL) ||
        (size > 0 && v->is.first + n_rows > elements->length / size))
        return arrow_fail_mismatch(err);
    return OJ_OK;
}

static oj_status read_dictionary_texts(const struct ArrowArray *column,
                                       struct field_values *v,
                                       struct oj_error *err)
{
    const struct ArrowArray *words = column->dictionary;
    OJ_TRY(arrow_bytes_read(words, v->field->format, 0, words->length,
                            &v->bytes, err));
    v->word_valid = arrow_validity(words);
    v->n_words = words->length;
    return OJ_OK;
}

static oj_status read_field_values(const struct ArrowArray *array,
                                   const struct arrow_field *field,
                                   struct field_values *v, struct oj_error *err)
{
    const struct ArrowArray *column = NULL;
    memset(v, 0, sizeof *v);
    v->field = field;
    if (has_only_nulls(field))
        return OJ_OK;
    OJ_TRY(arrow_find_column(array, field->child, &column, &v->is, err));
    if ((column->dictionary != NULL) != (field->index != 0))
        return arrow_fail_mismatch(err);
    if (field->list != 0)
        return read_elements(column, array->length, v, err);
    if (field->index != 0)
        OJ_TRY(read_dictionary_texts(column, v, err));
    else if (is_text(field->format))
        return arrow_bytes_read(column, field->format, array->offset,
                                array->length, &v->bytes, err);
    OJ_TRY(arrow_check_layout(column, 2, 0, err));
    v->number = column->buffers[1];
    return v->number != NULL || array->length == 0 ? OJ_OK
                                                   : arrow_fail_mismatch(err);
}

static double number_at(char format, const void *number, int64_t i)
{
    switch (format)
    {
        case 'f':
            return (double)((const float *)number)[i];
        case 'g':
            return ((const double *)number)[i];
        case 'L':
            return (double)((const uint64_t *)number)[i];
        default:
            return (double)arrow_integer_at(format, number, i);
    }
}

/* --- reading texts -------------------------------------------------------- */

/* Gets the text of a field in a row; *text is NULL if the value is NULL. A
 * number is written to the buffer `written`. */
static oj_status text_of_field_in_row(const struct field_values *v, int64_t row,
                                      char written[24], const char **text,
                                      size_t *n, struct oj_error *err)
{
    char format = v->field->format[0];
    const uint8_t *bytes;
    int64_t at = row;
    *text = NULL;
    if (has_only_nulls(v->field) || !arrow_is_valid(&v->is, row))
        return OJ_OK;
    if (!is_text(v->field->format))
    {
        at = arrow_integer_at(format, v->number, v->is.first + row);
        *text = written;
        *n = (size_t)(format == 'L'
                          ? snprintf(written, 24, "%" PRIu64, (uint64_t)at)
                          : snprintf(written, 24, "%" PRId64, at));
        return OJ_OK;
    }
    if (v->field->index != 0)
    {
        at = arrow_integer_at(v->field->index, v->number, v->is.first + row);
        if (at < 0 || at >= v->n_words)
            return arrow_fail_mismatch(err);
        if (!arrow_bit(v->word_valid, v->bytes.first + at))
            return OJ_OK;
    }
    OJ_TRY(arrow_bytes_of_row(&v->bytes, at, &bytes, n, err));
    *text = (const char *)bytes;
    return OJ_OK;
}

static oj_status append_row_texts(struct arrow_text_column *to,
                                  const struct field_values *v, int n_fields,
                                  int64_t n_before, int64_t n_rows,
                                  struct oj_error *err)
{
    int64_t at;
    OJ_ROOM(to->offset, n_before + 1, n_before + n_rows + 1, to->cap_offset,
            err);
    if (n_before == 0)
        to->offset[0] = 0;
    at = to->offset[n_before];
    for (int64_t row = 0; row < n_rows; row++)
    {
        int64_t first = at;
        for (int i = 0; i < n_fields; i++)
        {
            char written[24];
            const char *text;
            size_t n;
            OJ_TRY(text_of_field_in_row(&v[i], row, written, &text, &n, err));
            if (text == NULL)
                continue;
            OJ_ROOM(to->bytes, at, at + (int64_t)n + 1, to->cap_bytes, err);
            if (at > first)
                to->bytes[at++] = ' ';
            memcpy(to->bytes + at, text, n);
            at += (int64_t)n;
        }
        to->offset[n_before + row + 1] = at;
    }
    /* allocates the array even if all texts are empty */
    OJ_ROOM(to->bytes, at, at + 1, to->cap_bytes, err);
    return OJ_OK;
}

/* --- reading numbers ------------------------------------------------------ */

/* Reads the first numbers of a row, at most `most`, into out and sets *n to how
 * many were read. Precondition: the row is not NULL. */
static oj_status numbers_of_field_in_row(const struct field_values *v,
                                         int64_t row, int64_t most, double *out,
                                         int64_t *n, struct oj_error *err)
{
    int64_t at = v->is.first + row, first = at, end = at + 1;
    const void *number = v->number;
    char format = v->field->format[0];
    const uint8_t *bytes;
    size_t n_bytes;
    if (is_text(v->field->format))
    {
        OJ_TRY(arrow_bytes_of_row(&v->bytes, row, &bytes, &n_bytes, err));
        *n = 1;
        if (most > 1)
            *n = oj_text_numbers((const char *)bytes, (int64_t)n_bytes, most,
                                 out);
        else
            *out = oj_text_number((const char *)bytes, (int64_t)n_bytes);
        return OJ_OK;
    }
    if (v->field->list == 'w')
    {
        first = at * v->field->list_size;
        end = first + v->field->list_size;
    }
    else if (v->field->list != 0)
        first = arrow_list_range(&v->list, v->is.skipped + row, &end);
    if (end - first > most)
        end = first + most;
    *n = end - first;
    first += v->first_element;
    for (int64_t i = 0; i < *n; i++)
        out[i] = number_at(format, number, first + i);
    for (int64_t i = 0; v->element_valid != NULL && i < *n; i++)
    {
        if (!arrow_bit(v->element_valid, first + i))
            out[i] = NAN;
    }
    return OJ_OK;
}

/* Returns how many numbers all rows of a list column have together; 0 for other
 * columns. */
static int64_t count_numbers(const struct field_values *v, int64_t n_rows)
{
    int64_t first, end;
    if (v->field->list == 'w')
        return n_rows * v->field->list_size;
    if (v->field->list == 0 || n_rows == 0)
        return 0;
    first = arrow_list_range(&v->list, v->is.skipped, &end);
    arrow_list_range(&v->list, v->is.skipped + n_rows - 1, &end);
    return end - first;
}

static oj_status append_row_vectors(struct arrow_columns *to, int n_fields,
                                    const struct field_values *v,
                                    int64_t n_rows, struct oj_error *err)
{
    int64_t most = n_fields > 1 ? 1 : OJ_MOST_DIMENSIONS + 1, at, n;
    OJ_ROOM(to->offset, to->n_rows + 1, to->n_rows + n_rows + 1, to->cap_offset,
            err);
    if (to->n_rows == 0)
        to->offset[0] = 0;
    at = to->offset[to->n_rows];
    OJ_ROOM(to->number, at, at + count_numbers(v, n_rows) + most,
            to->cap_number, err);
    for (int64_t row = 0; row < n_rows; row++)
    {
        OJ_ROOM(to->number, at, at + n_fields * most, to->cap_number, err);
        for (int i = 0; i < n_fields; i++)
        {
            n = n_fields > 1;
            to->number[at] = NAN;
            if (!has_only_nulls(v[i].field) && arrow_is_valid(&v[i].is, row))
                OJ_TRY(numbers_of_field_in_row(&v[i], row, most,
                                               to->number + at, &n, err));
            at += n;
        }
        to->offset[to->n_rows + row + 1] = at;
    }
    return OJ_OK;
}

static oj_status append_texts_and_vectors(struct arrow_columns *columns,
                                          const struct arrow_fields *fields,
                                          const struct field_values *v,
                                          int64_t n_rows, struct oj_error *err)
{
    for (int i = 0; i < fields->n_texts; i++)
    {
        OJ_TRY(append_row_texts(&columns->text[i], v, fields->n_fields[i],
                                columns->n_rows, n_rows, err));
        v += fields->n_fields[i];
    }
    if (fields->n_vector > 0)
        OJ_TRY(append_row_vectors(columns, fields->n_vector, v, n_rows, err));
    columns->n_rows += n_rows;
    return OJ_OK;
}

oj_status arrow_columns_add(struct arrow_columns *columns,
                            const struct arrow_fields *fields,
                            const struct ArrowArray *array,
                            struct oj_error *err)
{
    struct field_values *v;
    oj_status status = OJ_OK;
    int n = fields->n_vector;
    for (int i = 0; i < fields->n_texts; i++)
        n += fields->n_fields[i];
    if (n == 0)
        return OJ_OK;
    OJ_NEW(v, n, err);
    for (int i = 0; i < n && status == OJ_OK; i++)
        status = read_field_values(array, &fields->field[i], &v[i], err);
    if (status == OJ_OK)
        status =
            append_texts_and_vectors(columns, fields, v, array->length, err);
    oj_free(v);
    return status;
}

void arrow_columns_free(struct arrow_columns *columns)
{
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
    {
        oj_free(columns->text[i].offset);
        oj_free(columns->text[i].bytes);
    }
    oj_free(columns->offset);
    oj_free(columns->number);
    memset(columns, 0, sizeof *columns);
}
