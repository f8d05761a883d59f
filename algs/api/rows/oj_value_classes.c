#include "oj_value_classes.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

enum oj_value_comparison oj_value_comparison_of(enum oj_field_kind input,
                                                enum oj_field_kind join)
{
    return oj_field_kind_is_number(input) && oj_field_kind_is_number(join)
               ? OJ_COMPARE_NUMBERS
               : OJ_COMPARE_TEXTS;
}

/* ---- keys: the compared values of a row as bytes ------------------------- */

static oj_status append_bytes(struct oj_value_key *key, const void *from,
                              int64_t n, struct oj_error *err)
{
    int64_t end = key->n + (n + 3) / 4;
    OJ_ROOM(key->code, key->n, end, key->capacity, err);
    if (n > 0)
    {
        key->code[end - 1] = 0;
        memcpy(key->code + key->n, from, (size_t)n);
    }
    key->n = end;
    return OJ_OK;
}

/* Appends a text and its length: with the length, ("a", "bc") differs from
 * ("ab", "c"). */
static oj_status append_text(struct oj_value_key *key, const char *text,
                             int64_t n, struct oj_error *err)
{
    OJ_TRY(append_bytes(key, &n, sizeof n, err));
    return append_bytes(key, text, n, err);
}

/* Appends a number to the key. A whole number is appended as an integer, any
 * other as the bits of the double; a first byte distinguishes the two. */
static oj_status append_number(struct oj_value_key *key,
                               const struct oj_plain_value *value,
                               struct oj_error *err)
{
    const double two_to_63 = 9223372036854775808.0;
    unsigned char bytes[9] = {0};
    int64_t whole = 0;
    if (value->form == OJ_PLAIN_INTEGER)
        whole = value->integer;
    else
    {
        double real = value->real;
        bytes[0] =
            !(real == floor(real) && real >= -two_to_63 && real < two_to_63);
        if (bytes[0])
            memcpy(&whole, &real, sizeof whole);
        else
            whole = (int64_t)real;
    }
    memcpy(bytes + 1, &whole, sizeof whole);
    return append_bytes(key, bytes, sizeof bytes, err);
}

static oj_status append_value(struct oj_value_key *key,
                              enum oj_value_comparison comparison,
                              const struct oj_plain_value *value,
                              struct oj_error *err)
{
    char text[OJ_PLAIN_TEXT_BYTES];
    if (comparison == OJ_COMPARE_NUMBERS)
        return append_number(key, value, err);
    if (value->form == OJ_PLAIN_TEXT)
        return append_text(key, value->text, value->n, err);
    return append_text(key, text, oj_plain_value_write(value, text), err);
}

static int value_is_missing(const struct oj_plain_value *value)
{
    return value->form == OJ_PLAIN_NULL ||
           (value->form == OJ_PLAIN_REAL && isnan(value->real));
}

/* Makes the key of a row. *is_missing is 1 if a compared value is NULL or NaN.
 */
static oj_status make_key(struct oj_value_key *key,
                          const enum oj_value_comparison *comparison,
                          int n_fields, const struct oj_plain_reader *rows,
                          int64_t row, int *is_missing, struct oj_error *err)
{
    *is_missing = 0;
    key->n = 0;
    for (int i = 0; i < n_fields && !*is_missing; i++)
    {
        struct oj_plain_value value;
        value.form = OJ_PLAIN_NULL;
        OJ_TRY(rows->read(rows->user, i, row, &value, err));
        *is_missing = value_is_missing(&value);
        if (!*is_missing)
            OJ_TRY(append_value(key, comparison[i], &value, err));
    }
    return OJ_OK;
}

void oj_value_key_free(struct oj_value_key *key)
{
    oj_free(key->code);
    memset(key, 0, sizeof *key);
}

/* ---- classes ------------------------------------------------------------- */

/* Finds the class of a key. A new key gets a new class if insert is 1,
 * otherwise -1. */
static oj_status find_class(struct oj_value_classes *classes,
                            const struct oj_value_key *key, int insert,
                            int32_t *out, struct oj_error *err)
{
    const struct oj_token token = oj_token_of_codes(key->code, key->n);
    int64_t number;
    if (insert)
        OJ_TRY(oj_token_table_put(&classes->table, &token, &number, err));
    else
        number = oj_token_table_find(&classes->table, &token);
    if (number >= INT32_MAX - 1)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the compared fields have more than %d different "
                       "values, the most that are possible: leave a field out",
                       INT32_MAX);
    *out = (int32_t)number;
    return OJ_OK;
}

oj_status oj_value_classes_find(struct oj_value_classes *classes,
                                struct oj_value_key *key,
                                const enum oj_value_comparison *comparison,
                                int n_fields,
                                const struct oj_plain_reader *rows,
                                int64_t n_rows, int insert, int32_t *class_of,
                                struct oj_error *err)
{
    for (int64_t row = 0; row < n_rows; row++)
    {
        int is_missing;
        class_of[row] = -1;
        OJ_TRY(
            make_key(key, comparison, n_fields, rows, row, &is_missing, err));
        if (!is_missing)
            OJ_TRY(find_class(classes, key, insert, &class_of[row], err));
    }
    return OJ_OK;
}

int64_t oj_value_classes_bytes(const struct oj_value_classes *classes)
{
    return oj_token_table_bytes(&classes->table);
}

void oj_value_classes_free(struct oj_value_classes *classes)
{
    oj_token_table_free(&classes->table);
}
