#include "oj_classes.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_number.h"
#include "../../flatten/text/oj_token_table.h"

#include <cpl_conv.h>

#include <math.h>
#include <string.h>

/* One pair of fields. */
struct field_pair
{
    struct oj_class_field side[2]; /* left, right */
    int as_number;                 /* both are numbers */
    struct oj_field_text text[2];
};

struct oj_class_numbers
{
    int n_holders;              /* counted atomically */
    struct oj_token_table keys; /* a long token each */
};

struct oj_classes
{
    struct field_pair *pairs;
    int n_pairs;
    struct oj_class_numbers *numbers; /* held */

    uint32_t *key; /* of a row: its bytes, each value filled up with zeroes */
    int64_t n_key, cap_key;
};

/* ---- numbers ------------------------------------------------------------- */

double oj_value_number(OGRFieldType type, const struct oj_value *value)
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

/* ---- keys --------------------------------------------------------------- */

static oj_status add_bytes(struct oj_classes *c, const void *from, size_t n,
                           struct oj_error *err)
{
    int64_t end = c->n_key + (int64_t)((n + 3) / 4);
    OJ_ROOM(c->key, c->n_key, end, c->cap_key, err);
    if (n > 0)
    {
        c->key[end - 1] = 0;
        memcpy(c->key + c->n_key, from, n);
    }
    c->n_key = end;
    return OJ_OK;
}

/* Texts begin with their length, so that "a", "bc" is not "ab", "c". */
static oj_status append_text_key(struct oj_classes *c, const char *text,
                                 size_t n, struct oj_error *err)
{
    uint64_t length = n;
    OJ_TRY(add_bytes(c, &length, sizeof length, err));
    return add_bytes(c, text, n, err);
}

/* A number is its integer where it is one, else its bits, which then are never
 * those of an integer's key: the first byte says which. */
static oj_status append_number_key(struct oj_classes *c, OGRFieldType type,
                                   const struct oj_value *value, int *is_null,
                                   struct oj_error *err)
{
    const double two_to_63 = 9223372036854775808.0;
    double real = type == OFTReal ? value->raw.Real : 0.0;
    int64_t whole =
        type == OFTInteger ? value->raw.Integer : value->raw.Integer64;
    unsigned char key[9] = {0};
    *is_null = isnan(real);
    if (type == OFTReal)
    {
        key[0] =
            !(real == floor(real) && real >= -two_to_63 && real < two_to_63);
        if (key[0])
            memcpy(&whole, &real, sizeof whole);
        else
            whole = (int64_t)real;
    }
    memcpy(key + 1, &whole, sizeof whole);
    return add_bytes(c, key, sizeof key, err);
}

oj_status oj_field_text_get(struct oj_field_text *writer,
                            const struct oj_class_field *field,
                            const struct oj_value *value, const char **text,
                            int64_t *n, struct oj_error *err)
{
    if (field->type == OFTString)
    {
        *text = oj_value_bytes(value, OFTString, n);
        return OJ_OK;
    }
    if (writer->scratch == NULL)
        writer->scratch =
            oj_value_scratch(field->type, field->subtype, &writer->defn);
    if (writer->scratch == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a value");
    /* GDAL 3.4 takes values without const, and does not change them. */
    OGR_F_SetFieldRaw(writer->scratch, 0, (OGRField *)&value->raw);
    *text = OGR_F_GetFieldAsString(writer->scratch, 0);
    *n = (int64_t)strlen(*text);
    return OJ_OK;
}

void oj_field_text_free(struct oj_field_text *writer)
{
    const struct oj_field_text empty = {0};
    if (writer->scratch != NULL)
    {
        OGR_F_Destroy(writer->scratch);
        OGR_FD_Release(writer->defn);
    }
    *writer = empty;
}

void oj_row_values_get(const struct oj_row_values *values, int64_t row,
                       int column, struct oj_value *value)
{
    if (values->table != NULL)
        oj_table_value(values->table, row, column, value);
    else
        oj_attributes_value(values->attributes, column, row, value);
}

/* Appends the key of a row to c->key; *is_null: it has none. */
static oj_status add_key(struct oj_classes *c, int side,
                         const struct oj_row_values *values, int64_t row,
                         int *is_null, struct oj_error *err)
{
    *is_null = 0;
    for (int i = 0; i < c->n_pairs && !*is_null; i++)
    {
        struct field_pair *pair = &c->pairs[i];
        const struct oj_class_field *field = &pair->side[side];
        struct oj_value value;
        const char *text;
        int64_t n;
        oj_row_values_get(values, row, field->column, &value);
        *is_null = !oj_value_is_there(&value);
        if (*is_null)
            break;
        if (pair->as_number)
        {
            OJ_TRY(append_number_key(c, field->type, &value, is_null, err));
            continue;
        }
        OJ_TRY(oj_field_text_get(&pair->text[side], field, &value, &text, &n,
                                 err));
        OJ_TRY(append_text_key(c, text, (size_t)n, err));
    }
    return OJ_OK;
}

/* ---- classes ------------------------------------------------------------- */

/* The class of c->key; -1: there is none, and none is made without insert. */
static oj_status find_class(struct oj_classes *c, int insert, int32_t *out,
                            struct oj_error *err)
{
    const struct oj_token key = oj_token_of_codes(c->key, c->n_key);
    int64_t number;
    if (insert)
        OJ_TRY(oj_token_table_put(&c->numbers->keys, &key, &number, err));
    else
        number = oj_token_table_find(&c->numbers->keys, &key);
    if (number >= INT32_MAX - 1)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "more than %d different values to compare", INT32_MAX);
    *out = (int32_t)number;
    return OJ_OK;
}

oj_status oj_classes_find(struct oj_classes *classes, int is_right, int insert,
                          const struct oj_row_values *values, int64_t n,
                          int32_t *class_of, struct oj_error *err)
{
    for (int64_t i = 0; i < n; i++)
    {
        int is_null;
        class_of[i] = -1;
        classes->n_key = 0;
        OJ_TRY(add_key(classes, is_right != 0, values, i, &is_null, err));
        if (!is_null)
            OJ_TRY(find_class(classes, insert, &class_of[i], err));
    }
    return OJ_OK;
}

/* ---- life --------------------------------------------------------------- */

static oj_status init_class_field_pairs(struct oj_classes *c,
                                        const struct oj_class_field *left,
                                        const struct oj_class_field *right,
                                        int n_fields, struct oj_error *err)
{
    OJ_NEW(c->pairs, n_fields, err);
    memset(c->pairs, 0, (size_t)n_fields * sizeof *c->pairs);
    c->n_pairs = n_fields;
    for (int i = 0; i < n_fields; i++)
    {
        c->pairs[i].side[0] = left[i];
        c->pairs[i].side[1] = right[i];
        c->pairs[i].as_number =
            oj_type_is_number(left[i].type) && oj_type_is_number(right[i].type);
    }
    OJ_NEW_ZEROED(c->numbers, 1, err);
    c->numbers->n_holders = 1;
    return OJ_OK;
}

oj_status oj_classes_new(const struct oj_class_field *left,
                         const struct oj_class_field *right, int n_fields,
                         struct oj_classes **out, struct oj_error *err)
{
    struct oj_classes *classes;
    oj_status status;
    OJ_NEW_ZEROED(classes, 1, err);
    status = init_class_field_pairs(classes, left, right, n_fields, err);
    if (status == OJ_OK)
        *out = classes;
    else
        oj_classes_free(classes);
    return status;
}

void oj_classes_free(struct oj_classes *classes)
{
    if (classes == NULL)
        return;
    for (int i = 0; i < classes->n_pairs; i++)
    {
        oj_field_text_free(&classes->pairs[i].text[0]);
        oj_field_text_free(&classes->pairs[i].text[1]);
    }
    oj_class_numbers_free(classes->numbers);
    oj_free(classes->pairs);
    oj_free(classes->key);
    oj_free(classes);
}

/* ---- the numbering alone ------------------------------------------------ */

int oj_classes_field_at(const struct oj_classes *classes, int i,
                        struct oj_class_field *right, int *as_number)
{
    if (i >= classes->n_pairs)
        return 0;
    *right = classes->pairs[i].side[1];
    *as_number = classes->pairs[i].as_number;
    return 1;
}

struct oj_class_numbers *oj_classes_hold_numbers(struct oj_classes *classes)
{
    if (classes == NULL)
        return NULL;
    __atomic_fetch_add(&classes->numbers->n_holders, 1, __ATOMIC_RELAXED);
    return classes->numbers;
}

void oj_classes_use_numbers(struct oj_classes *classes,
                            struct oj_class_numbers *numbers)
{
    if (classes == NULL || numbers == NULL)
        return;
    __atomic_fetch_add(&numbers->n_holders, 1, __ATOMIC_RELAXED);
    oj_class_numbers_free(classes->numbers);
    classes->numbers = numbers;
}

int64_t oj_class_numbers_bytes(const struct oj_class_numbers *numbers)
{
    return numbers != NULL ? oj_token_table_bytes(&numbers->keys) : 0;
}

void oj_class_numbers_free(struct oj_class_numbers *numbers)
{
    if (numbers == NULL ||
        __atomic_sub_fetch(&numbers->n_holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    oj_token_table_free(&numbers->keys);
    oj_free(numbers);
}
