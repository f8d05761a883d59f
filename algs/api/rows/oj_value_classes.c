#include "oj_value_classes.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/text/oj_moment.h"

#include <math.h>
#include <string.h>

enum oj_value_comparison oj_value_comparison_of(enum oj_field_kind input,
                                                enum oj_field_kind join)
{
    int moments =
        oj_field_kind_is_moment(input) + oj_field_kind_is_moment(join);
    int texts = (input == OJ_FIELD_TEXT) + (join == OJ_FIELD_TEXT);
    if (oj_field_kind_is_number(input) && oj_field_kind_is_number(join))
        return OJ_COMPARE_NUMBERS;
    /* Two dates are equal exactly if their texts are. Datetimes may have
     * different zones, so their moments are compared. */
    if (moments + texts == 2 && moments > 0 &&
        !(input == OJ_FIELD_DATE && join == OJ_FIELD_DATE))
        return OJ_COMPARE_MOMENTS;
    return OJ_COMPARE_TEXTS;
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

/* Returns 1 if a number is a whole number that fits int64_t, and sets *whole to
 * it. */
static int is_whole_number(const struct oj_plain_value *value, int64_t *whole)
{
    const double two_to_63 = 9223372036854775808.0;
    double real = value->real;
    if (value->form == OJ_PLAIN_INTEGER)
    {
        *whole = value->integer;
        return 1;
    }
    if (value->form == OJ_PLAIN_DECIMAL)
        return 0;
    if (!(real == floor(real) && real >= -two_to_63 && real < two_to_63))
        return 0;
    *whole = (int64_t)real;
    return 1;
}

/* Returns 1 if a number is a whole number from 2^63 to 2^64 - 1, and sets
 * *whole to its 64 bits. */
static int is_large_unsigned(const struct oj_plain_value *value, int64_t *whole)
{
    const double two_to_63 = 9223372036854775808.0;
    if (value->integer == 0 &&
        !(value->real >= two_to_63 && value->real < 2.0 * two_to_63))
        return 0;
    *whole =
        value->integer != 0 ? value->integer : (int64_t)(uint64_t)value->real;
    return 1;
}

/* Appends a number to the key. A whole number is appended as an integer of 64
 * bits, any other as the bits of the double, and a decimal that no double means
 * as its digits; a first byte distinguishes signed integers, doubles, unsigned
 * integers from 2^63 on, and digits. */
static oj_status append_number(struct oj_value_key *key,
                               const struct oj_plain_value *value,
                               struct oj_error *err)
{
    unsigned char bytes[9] = {0};
    int64_t whole = 0;
    if (value->form == OJ_PLAIN_DECIMAL && isnan(value->real))
    {
        bytes[0] = 3;
        OJ_TRY(append_bytes(key, bytes, 1, err));
        return append_text(key, value->text, value->n, err);
    }
    if (!is_whole_number(value, &whole))
    {
        bytes[0] = is_large_unsigned(value, &whole) ? 2 : 1;
        if (bytes[0] == 1)
            memcpy(&whole, &value->real, sizeof whole);
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
    if (comparison != OJ_COMPARE_TEXTS)
        return append_number(key, value, err);
    if (value->form == OJ_PLAIN_TEXT || value->form == OJ_PLAIN_DECIMAL)
        return append_text(key, value->text, value->n, err);
    return append_text(key, text,
                       oj_plain_value_write(value, OJ_PLAIN_DIGITS, text), err);
}

/* Replaces a text by its moment in microseconds, or by NULL if the text is no
 * moment. An integer is a moment already. */
static void convert_to_moment(struct oj_plain_value *value)
{
    int64_t moment;
    if (value->form == OJ_PLAIN_INTEGER)
        return;
    if (value->form == OJ_PLAIN_TEXT &&
        oj_moment_read(value->text, value->n, &moment))
        *value = oj_plain_integer(moment);
    else
        value->form = OJ_PLAIN_NULL;
}

static int value_is_missing(const struct oj_plain_value *value)
{
    return value->form == OJ_PLAIN_NULL ||
           (value->form == OJ_PLAIN_REAL && isnan(value->real));
}

/* Makes the key of a row. *is_missing is 1 if a compared value is NULL or NaN.
 */
static oj_status make_key_of_row(struct oj_value_key *key,
                                 const enum oj_value_comparison *comparison,
                                 int n_fields,
                                 const struct oj_plain_reader *rows,
                                 int64_t row, int *is_missing,
                                 struct oj_error *err)
{
    *is_missing = 0;
    key->n = 0;
    for (int i = 0; i < n_fields && !*is_missing; i++)
    {
        struct oj_plain_value value;
        value.form = OJ_PLAIN_NULL;
        OJ_TRY(rows->read(rows->user, i, row, &value, err));
        if (comparison[i] == OJ_COMPARE_MOMENTS)
            convert_to_moment(&value);
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

/* ---- classes of any values ----------------------------------------------- */

static oj_status check_class_number(int64_t number, struct oj_error *err)
{
    if (number >= INT32_MAX - 1)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the compared fields have more than %d different "
                       "values, the most that are possible: leave a field out",
                       INT32_MAX);
    return OJ_OK;
}

/* Sets *out to the class of a token. A new token gets a new class if insert is
 * 1, otherwise -1. */
static oj_status find_class_of_token(struct oj_token_table *table,
                                     const struct oj_token *token, int insert,
                                     int32_t *out, struct oj_error *err)
{
    int64_t number;
    if (insert)
        OJ_TRY(oj_token_table_put(table, token, &number, err));
    else
        number = oj_token_table_find(table, token);
    OJ_TRY(check_class_number(number, err));
    *out = (int32_t)number;
    return OJ_OK;
}

/* Inserts all whole numbers again, as tokens of the form any. Classes keep
 * their numbers. */
static oj_status
insert_whole_numbers_as_tokens(const struct oj_value_classes *classes,
                               struct oj_token_table *table,
                               struct oj_error *err)
{
    int is_ascending = classes->form == OJ_CLASSES_ASCENDING;
    int64_t n = is_ascending ? classes->n_whole : classes->table.n;
    struct oj_value_key key;
    oj_status status = OJ_OK;
    memset(&key, 0, sizeof key);
    for (int64_t i = 0; i < n && status == OJ_OK; i++)
    {
        const struct oj_plain_value value = oj_plain_integer(
            is_ascending ? classes->whole[i] : (int64_t)classes->table.key[i]);
        int32_t number;
        key.n = 0;
        status = append_number(&key, &value, err);
        if (status == OJ_OK)
        {
            const struct oj_token token = oj_token_of_codes(key.code, key.n);
            status = find_class_of_token(table, &token, 1, &number, err);
        }
    }
    oj_value_key_free(&key);
    return status;
}

/* Converts the classes to a later form, keeping their numbers. On failure the
 * classes are unchanged. */
static oj_status change_form_of_classes(struct oj_value_classes *classes,
                                        enum oj_value_classes_form form,
                                        struct oj_error *err)
{
    struct oj_token_table table;
    oj_status status = OJ_OK;
    memset(&table, 0, sizeof table);
    if (form == OJ_CLASSES_ANY)
        status = insert_whole_numbers_as_tokens(classes, &table, err);
    for (int64_t i = 0;
         form == OJ_CLASSES_WHOLE && i < classes->n_whole && status == OJ_OK;
         i++)
    {
        const struct oj_token token = {(uint64_t)classes->whole[i], NULL, 0};
        int32_t number;
        status = find_class_of_token(&table, &token, 1, &number, err);
    }
    if (status != OJ_OK)
    {
        oj_token_table_free(&table);
        return status;
    }
    oj_value_classes_free(classes);
    classes->table = table;
    classes->form = form;
    return OJ_OK;
}

/* Sets *out to the class of a key. A new key gets a new class if insert is 1,
 * otherwise -1. */
static oj_status find_class(struct oj_value_classes *classes,
                            const struct oj_value_key *key, int insert,
                            int32_t *out, struct oj_error *err)
{
    const struct oj_token token = oj_token_of_codes(key->code, key->n);
    *out = -1;
    if (classes->form != OJ_CLASSES_ANY)
    {
        if (!insert) /* only whole numbers have classes */
            return OJ_OK;
        OJ_TRY(change_form_of_classes(classes, OJ_CLASSES_ANY, err));
    }
    return find_class_of_token(&classes->table, &token, insert, out, err);
}

/* ---- classes of whole numbers -------------------------------------------- */

/* Returns the position of a number in the form ascending; -1 if it is not
 * there. */
static int64_t find_in_ascending(const struct oj_value_classes *classes,
                                 const struct oj_value_key *key, int64_t number)
{
    const int64_t *whole = classes->whole;
    int64_t low = 0, high = classes->n_whole - 1;
    uint64_t guess;
    if (key->next <= high && whole[key->next] == number)
        return key->next;
    if (high < 0 || number < whole[0] || number > whole[high])
        return -1;
    guess = (uint64_t)number - (uint64_t)whole[0];
    if (guess <= (uint64_t)high && whole[guess] == number)
        return (int64_t)guess;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (whole[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return whole[low] == number ? low : -1;
}

/* Sets *out to the class of a number in the form ascending. A new number gets a
 * new class if insert is 1, otherwise -1. A new number that does not ascend
 * changes the form; *out is then -1. */
static oj_status find_or_append_ascending(struct oj_value_classes *classes,
                                          struct oj_value_key *key,
                                          int64_t number, int insert,
                                          int32_t *out, struct oj_error *err)
{
    int64_t n = classes->n_whole, at = find_in_ascending(classes, key, number);
    *out = (int32_t)at;
    if (at >= 0)
        key->next = at + 1;
    if (at >= 0 || !insert)
        return OJ_OK;
    if (n > 0 && number < classes->whole[n - 1])
        return change_form_of_classes(classes, OJ_CLASSES_WHOLE, err);
    OJ_TRY(check_class_number(n, err));
    OJ_ROOM(classes->whole, n, n + 1, classes->cap_whole, err);
    classes->whole[n] = number;
    classes->n_whole++;
    *out = (int32_t)n;
    return OJ_OK;
}

static oj_status find_class_of_whole_number(struct oj_value_classes *classes,
                                            struct oj_value_key *key,
                                            int64_t number, int insert,
                                            int32_t *out, struct oj_error *err)
{
    const struct oj_token token = {(uint64_t)number, NULL, 0};
    if (classes->form == OJ_CLASSES_ASCENDING)
        OJ_TRY(
            find_or_append_ascending(classes, key, number, insert, out, err));
    return classes->form == OJ_CLASSES_WHOLE
               ? find_class_of_token(&classes->table, &token, insert, out, err)
               : OJ_OK;
}

/* Sets *out to the class of a row with a single number, or to -1 if the number
 * is NULL or NaN, or new while insert is 0. */
static oj_status find_class_of_number(struct oj_value_classes *classes,
                                      struct oj_value_key *key,
                                      const struct oj_plain_reader *rows,
                                      int64_t row, int insert, int32_t *out,
                                      struct oj_error *err)
{
    struct oj_plain_value value;
    int64_t number;
    *out = -1;
    value.form = OJ_PLAIN_NULL;
    OJ_TRY(rows->read(rows->user, 0, row, &value, err));
    if (value_is_missing(&value))
        return OJ_OK;
    if (classes->form != OJ_CLASSES_ANY && is_whole_number(&value, &number))
        return find_class_of_whole_number(classes, key, number, insert, out,
                                          err);
    key->n = 0;
    OJ_TRY(append_number(key, &value, err));
    return find_class(classes, key, insert, out, err);
}

/* ---- classes of rows ----------------------------------------------------- */

static oj_status
find_class_of_row(struct oj_value_classes *classes, struct oj_value_key *key,
                  const enum oj_value_comparison *comparison, int n_fields,
                  const struct oj_plain_reader *rows, int64_t row, int insert,
                  int32_t *out, struct oj_error *err)
{
    int is_missing;
    *out = -1;
    OJ_TRY(make_key_of_row(key, comparison, n_fields, rows, row, &is_missing,
                           err));
    return is_missing ? OJ_OK : find_class(classes, key, insert, out, err);
}

oj_status oj_value_classes_find(struct oj_value_classes *classes,
                                struct oj_value_key *key,
                                const enum oj_value_comparison *comparison,
                                int n_fields,
                                const struct oj_plain_reader *rows,
                                int64_t n_rows, int insert, int32_t *class_of,
                                struct oj_error *err)
{
    int is_number = n_fields == 1 && comparison[0] == OJ_COMPARE_NUMBERS;
    for (int64_t row = 0; row < n_rows; row++)
    {
        if (is_number)
            OJ_TRY(find_class_of_number(classes, key, rows, row, insert,
                                        &class_of[row], err));
        else
            OJ_TRY(find_class_of_row(classes, key, comparison, n_fields, rows,
                                     row, insert, &class_of[row], err));
    }
    return OJ_OK;
}

int64_t oj_value_classes_bytes(const struct oj_value_classes *classes)
{
    return oj_token_table_bytes(&classes->table) +
           classes->cap_whole * (int64_t)sizeof *classes->whole;
}

void oj_value_classes_free(struct oj_value_classes *classes)
{
    oj_token_table_free(&classes->table);
    oj_free(classes->whole);
    memset(classes, 0, sizeof *classes);
}
