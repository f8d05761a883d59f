#include "oj_classes.h"

#include "../../flatten/base/oj_array.h"

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

/* A place of the hash table: class -1 is a free one. */
struct slot
{
    uint32_t hash;
    int32_t class_id;
};

struct oj_class_numbers
{
    int n_holders; /* counted atomically */

    /* The keys of all classes, end to end. */
    unsigned char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t *key_offset; /* [n_classes + 1] */
    int64_t n_classes, cap_offsets;

    struct slot *slots; /* [n_slots], a power of two */
    int64_t n_slots;
};

struct oj_classes
{
    struct field_pair *pairs;
    int n_pairs;
    struct oj_class_numbers *numbers; /* held */

    unsigned char *key; /* of a row */
    int64_t n_key, cap_key;
};

/* ---- numbers ------------------------------------------------------------- */

double oj_text_number(const char *text, int64_t n_text)
{
    char copy[64], *end;
    size_t n = (size_t)n_text;
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
    OJ_ROOM(c->key, c->n_key, c->n_key + (int64_t)n, c->cap_key, err);
    if (n > 0)
        memcpy(c->key + c->n_key, from, n);
    c->n_key += (int64_t)n;
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

/* ---- the table ---------------------------------------------------------- */

static uint64_t mix(uint64_t h, const unsigned char *bytes, int64_t n)
{
    uint64_t word = 0;
    memcpy(&word, bytes, (size_t)n);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static uint32_t hash_key(const unsigned char *key, int64_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ (uint64_t)n;
    int64_t at = 0;
    for (; n - at >= 8; at += 8)
        h = mix(h, key + at, 8);
    if (at < n)
        h = mix(h, key + at, n - at);
    h *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}

static oj_status grow(struct oj_class_numbers *c, struct oj_error *err)
{
    int64_t n = c->n_slots > 0 ? 2 * c->n_slots : 1024;
    struct slot *slots = oj_malloc(n, sizeof *slots);
    if (slots == NULL)
        return oj_fail_nomem(err, n, sizeof *slots);
    for (int64_t i = 0; i < n; i++)
        slots[i].class_id = -1;
    for (int64_t i = 0; i < c->n_slots; i++)
    {
        int64_t at = c->slots[i].hash & (n - 1);
        if (c->slots[i].class_id < 0)
            continue;
        while (slots[at].class_id >= 0)
            at = (at + 1) & (n - 1);
        slots[at] = c->slots[i];
    }
    oj_free(c->slots);
    c->slots = slots;
    c->n_slots = n;
    return OJ_OK;
}

static int has_key(const struct oj_class_numbers *c, int32_t class_id,
                   const unsigned char *key, int64_t n)
{
    int64_t first = c->key_offset[class_id];
    return c->key_offset[class_id + 1] - first == n &&
           memcmp(c->bytes + first, key, (size_t)n) == 0;
}

static oj_status add_class(struct oj_class_numbers *c, const unsigned char *key,
                           int64_t n, struct oj_error *err)
{
    if (c->n_classes >= INT32_MAX - 1)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "more than %d different values to compare", INT32_MAX);
    OJ_ROOM(c->bytes, c->n_bytes, c->n_bytes + n, c->cap_bytes, err);
    OJ_ROOM(c->key_offset, c->n_classes + 1, c->n_classes + 2, c->cap_offsets,
            err);
    if (n > 0)
        memcpy(c->bytes + c->n_bytes, key, (size_t)n);
    c->n_bytes += n;
    c->key_offset[++c->n_classes] = c->n_bytes;
    return OJ_OK;
}

static oj_status find(struct oj_class_numbers *c, int insert,
                      const unsigned char *key, int64_t n, int32_t *out,
                      struct oj_error *err)
{
    uint32_t hash = hash_key(key, n);
    int64_t mask = c->n_slots - 1, at = hash & mask;
    *out = -1;
    while (c->slots[at].class_id >= 0)
    {
        if (c->slots[at].hash == hash &&
            has_key(c, c->slots[at].class_id, key, n))
        {
            *out = c->slots[at].class_id;
            return OJ_OK;
        }
        at = (at + 1) & mask;
    }
    if (!insert)
        return OJ_OK;
    OJ_TRY(add_class(c, key, n, err));
    c->slots[at].hash = hash;
    c->slots[at].class_id = *out = (int32_t)(c->n_classes - 1);
    return OJ_OK;
}

oj_status oj_classes_find(struct oj_classes *classes, int is_right, int insert,
                          const struct oj_row_values *values, int64_t n,
                          int32_t *class_of, struct oj_error *err)
{
    struct oj_class_numbers *numbers = classes->numbers;
    for (int64_t i = 0; i < n; i++)
    {
        int is_null;
        class_of[i] = -1;
        classes->n_key = 0;
        OJ_TRY(add_key(classes, is_right != 0, values, i, &is_null, err));
        if (is_null)
            continue;
        if (insert && 2 * (numbers->n_classes + 1) >= numbers->n_slots)
            OJ_TRY(grow(numbers, err));
        OJ_TRY(find(numbers, insert, classes->key, classes->n_key, &class_of[i],
                    err));
    }
    return OJ_OK;
}

/* ---- life --------------------------------------------------------------- */

static oj_status make_numbers(struct oj_class_numbers **out,
                              struct oj_error *err)
{
    struct oj_class_numbers *numbers = oj_calloc(1, sizeof *numbers);
    oj_status status;
    if (numbers == NULL)
        return oj_fail_nomem(err, 1, sizeof *numbers);
    numbers->n_holders = 1;
    status = oj_reserve(&numbers->key_offset, 0, 1, &numbers->cap_offsets,
                        sizeof *numbers->key_offset, err);
    if (status == OJ_OK)
    {
        numbers->key_offset[0] = 0;
        status = grow(numbers, err);
    }
    if (status == OJ_OK)
        *out = numbers;
    else
        oj_class_numbers_free(numbers);
    return status;
}

static oj_status fill(struct oj_classes *c, const struct oj_class_field *left,
                      const struct oj_class_field *right, int n_fields,
                      struct oj_error *err)
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
    return make_numbers(&c->numbers, err);
}

oj_status oj_classes_new(const struct oj_class_field *left,
                         const struct oj_class_field *right, int n_fields,
                         struct oj_classes **out, struct oj_error *err)
{
    struct oj_classes *classes = oj_calloc(1, sizeof *classes);
    oj_status status;
    if (classes == NULL)
        return oj_fail_nomem(err, 1, sizeof *classes);
    status = fill(classes, left, right, n_fields, err);
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
    if (numbers == NULL)
        return 0;
    return numbers->cap_bytes +
           numbers->cap_offsets * (int64_t)sizeof *numbers->key_offset +
           numbers->n_slots * (int64_t)sizeof *numbers->slots;
}

void oj_class_numbers_free(struct oj_class_numbers *numbers)
{
    if (numbers == NULL ||
        __atomic_sub_fetch(&numbers->n_holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    oj_free(numbers->bytes);
    oj_free(numbers->key_offset);
    oj_free(numbers->slots);
    oj_free(numbers);
}
