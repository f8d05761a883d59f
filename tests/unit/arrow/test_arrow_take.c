/* Takes rows from random arrays of every type, nested and in several chunks,
 * and compares them with the original rows.
 * Kinds: property, degenerate, memory. */
#include "../../../algs/api/arrow/oj_arrow_plain_values.h"
#include "../../../algs/api/arrow/oj_arrow_take.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../random_numbers.h"
#include "../run_tests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum
{
    MOST_CHUNKS = 4,
    MOST_TAKEN = 40,
    TEXT = 4000
};

static struct oj_error err;

static void must(oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", err.message);
}

/* --- random schemas and arrays ---------------------------------------------
 */

static const char *const flat_formats[] = {
    "n",   "b",       "c", "S",   "i",   "l",   "f",       "g",   "d:10,2",
    "w:3", "u",       "U", "z",   "vu",  "vz",  "tdD",     "tdm", "tts",
    "ttn", "tsu:UTC", "e", "tDm", "tin", "tiM", "d:9,2,32"};
static const char *const nested_formats[] = {"+l",  "+L",  "+w:2", "+s",  "+m",
                                             "+vl", "+vL", "+r",   "+w:0"};

static void make_schema(struct ArrowSchema *out, int depth);

static void make_child_schema(struct ArrowSchema *out, const char *format,
                              int n)
{
    must(oj_arrow_schema_make(format, "c", NULL, ARROW_FLAG_NULLABLE, n, out,
                              &err));
}

static void make_nested_schema(struct ArrowSchema *out, int depth)
{
    const char *format = nested_formats[pick(9)];
    int n = strcmp(format, "+s") == 0 ? pick(3) : format[1] == 'r' ? 2 : 1;
    make_child_schema(out, format, n);
    for (int i = 0; i < n; i++)
    {
        if (format[1] == 'r' && i == 0)
            make_child_schema(out->children[0], pick(2) ? "s" : "l", 0);
        else if (format[1] == 'm')
        {
            make_child_schema(out->children[0], "+s", 2);
            make_schema(out->children[0]->children[0], depth + 1);
            make_schema(out->children[0]->children[1], depth + 1);
        }
        else
            make_schema(out->children[i], depth + 1);
    }
}

static void make_schema(struct ArrowSchema *out, int depth)
{
    if (depth < 3 && pick(3) == 0)
        make_nested_schema(out, depth);
    else if (pick(6) == 0)
    {
        make_child_schema(out, pick(2) ? "c" : "I", 0);
        out->dictionary = oj_calloc(1, sizeof *out->dictionary);
        make_schema(out->dictionary, 3);
    }
    else
        make_child_schema(
            out, flat_formats[pick(sizeof flat_formats / sizeof *flat_formats)],
            0);
}

static size_t size_of(const char *format)
{
    return strchr("cC", format[0]) != NULL                               ? 1
           : strchr("sSe", format[0]) != NULL                            ? 2
           : strchr("iIf", format[0]) != NULL                            ? 4
           : strcmp(format, "d:10,2") == 0 || strcmp(format, "tin") == 0 ? 16
           : strcmp(format, "w:3") == 0                                  ? 3
           : strcmp(format, "tdD") == 0 || strcmp(format, "tts") == 0 ||
                   strcmp(format, "tiM") == 0 || format[0] == 'd'
               ? 4
               : 8;
}

static void *random_bytes(int64_t n)
{
    uint8_t *bytes = oj_malloc(n + 1, 1);
    for (int64_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)pick(256);
    return bytes;
}

/* Returns the offsets of n elements. The first offset may be above 0. Stores
 * the last in *end. */
static void *random_offsets(int64_t n, int is_large, int64_t *end)
{
    int64_t at = pick(3);
    int64_t *large = oj_malloc(n + 1, 8);
    int32_t *small = oj_malloc(n + 1, 4);
    for (int64_t i = 0; i <= n; i++)
    {
        large[i] = at;
        small[i] = (int32_t)at;
        *end = at;
        at += pick(4);
    }
    oj_free(is_large ? (void *)small : large);
    return is_large ? (void *)large : small;
}

static void make_array(const struct ArrowSchema *schema, int64_t length,
                       struct ArrowArray *out);

static void make_views(int64_t n, struct ArrowArray *out)
{
    char *views = oj_calloc(n + 1, 16);
    int64_t *sizes = oj_malloc(1, 8);
    sizes[0] = 60;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t length = pick(2) ? pick(13) : 13 + pick(20), at = pick(20);
        memcpy(views + 16 * i, &length, 4);
        if (length > 12)
            memcpy(views + 16 * i + 12, &at, 4);
        else
            memset(views + 16 * i + 4, 'a' + pick(20), (size_t)length);
    }
    out->buffers[1] = views;
    out->buffers[2] = random_bytes(60);
    out->buffers[3] = sizes;
}

static void make_list_views(const struct ArrowSchema *schema, int64_t n,
                            struct ArrowArray *out)
{
    int is_large = schema->format[2] == 'L';
    size_t size = is_large ? 8 : 4;
    char *offset = oj_calloc(n + 1, size), *count = oj_calloc(n + 1, size);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = pick(6), m = pick(4);
        memcpy(offset + (size_t)i * size, &at, size);
        memcpy(count + (size_t)i * size, &m, size);
    }
    out->buffers[1] = offset;
    out->buffers[2] = count;
    make_array(schema->children[0], 10, out->children[0]);
}

static void make_runs(const struct ArrowSchema *schema, int64_t n,
                      struct ArrowArray *out)
{
    size_t size = size_of(schema->children[0]->format);
    char *ends = oj_calloc(n + 1, 8);
    int64_t at = 0, n_runs = 0;
    while (at < n)
    {
        at += 1 + pick(3);
        memcpy(ends + (size_t)n_runs++ * size, &at, size);
    }
    must(oj_arrow_array_make(2, 0, out->children[0], &err));
    out->children[0]->buffers[1] = ends;
    out->children[0]->length = n_runs;
    make_array(schema->children[1], n_runs, out->children[1]);
}

static int n_buffers_of(const char *format)
{
    return format[0] == 'n' || format[1] == 'r'                         ? 0
           : strcmp(format, "+s") == 0 || strncmp(format, "+w", 2) == 0 ? 1
           : format[0] == 'v'                                           ? 4
           : strchr("uUzZ", format[0]) != NULL || format[1] == 'v'      ? 3
                                                                        : 2;
}

/* Fills the buffers of the elements 0 to n - 1. */
static void fill_array(const struct ArrowSchema *schema, int64_t n,
                       struct ArrowArray *out)
{
    const char *format = schema->format;
    int64_t end = 0;
    if (format[0] == 'n')
        return;
    if (format[1] == 'r')
        make_runs(schema, n, out);
    else if (format[0] == 'v')
        make_views(n, out);
    else if (format[0] == '+' && format[1] == 'v')
        make_list_views(schema, n, out);
    else if (strcmp(format, "+s") == 0)
    {
        for (int64_t i = 0; i < schema->n_children; i++)
            make_array(schema->children[i], n, out->children[i]);
    }
    else if (strncmp(format, "+w", 2) == 0)
        make_array(schema->children[0], n * (format[3] - '0'),
                   out->children[0]);
    else if (format[0] == '+')
    {
        out->buffers[1] = random_offsets(n, format[1] == 'L', &end);
        make_array(schema->children[0], end, out->children[0]);
    }
    else if (strchr("uUzZ", format[0]) != NULL)
    {
        out->buffers[1] = random_offsets(n, format[0] == 'U', &end);
        out->buffers[2] = random_bytes(end);
    }
    else
        out->buffers[1] = random_bytes(n * 16);
}

static void make_array(const struct ArrowSchema *schema, int64_t length,
                       struct ArrowArray *out)
{
    int64_t skip = pick(3), n = length + skip;
    must(oj_arrow_array_make(n_buffers_of(schema->format), schema->n_children,
                             out, &err));
    fill_array(schema, n, out);
    out->length = length;
    out->offset = skip;
    if (schema->format[0] == 'n')
        out->null_count = length;
    else if (out->n_buffers > 0 && pick(2))
    {
        out->buffers[0] = random_bytes(n / 8 + 1);
        out->null_count = -1;
    }
    if (schema->dictionary == NULL)
        return;
    must(oj_arrow_array_add_dictionary(out, &err));
    make_array(schema->dictionary, 3 + pick(20), out->dictionary);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t place = pick((int)out->dictionary->length);
        size_t size = size_of(schema->format);
        memcpy((char *)out->buffers[1] + (size_t)i * size, &place, size);
    }
}

/* --- rows as texts: the plain way -------------------------------------------
 */

static void append_format(char *text, const char *format, ...)
{
    size_t n = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + n, TEXT - n, format, arguments);
    va_end(arguments);
}

static void put_hex(char *text, const void *bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        append_format(text, "%02x", ((const uint8_t *)bytes)[i]);
}

static int64_t int_at(const void *values, size_t size, int64_t i)
{
    return size == 8   ? ((const int64_t *)values)[i]
           : size == 4 ? ((const int32_t *)values)[i]
           : size == 2 ? ((const int16_t *)values)[i]
                       : ((const uint8_t *)values)[i];
}

static void put_row(const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t row, char *text);

static void put_range(const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t first, int64_t n,
                      char *text)
{
    append_format(text, "[");
    for (int64_t i = 0; i < n; i++)
        put_row(schema->children[0], array->children[0], first + i, text);
    append_format(text, "]");
}

static void put_view(const struct ArrowArray *array, int64_t at, char *text)
{
    const char *view = (const char *)array->buffers[1] + at * 16;
    int32_t length, block, place;
    memcpy(&length, view, 4);
    memcpy(&block, view + 8, 4);
    memcpy(&place, view + 12, 4);
    put_hex(text,
            length <= 12 ? view + 4
                         : (const char *)array->buffers[2 + block] + place,
            length);
}

static void put_value(const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t at, char *text)
{
    const char *format = schema->format;
    size_t size = format[1] == 'L' || format[0] == 'U' ||
                          (format[1] == 'v' && format[2] == 'L')
                      ? 8
                      : 4;
    const void *values = array->n_buffers > 1 ? array->buffers[1] : NULL;
    int64_t n = strncmp(format, "+w", 2) == 0 ? format[3] - '0' : 0;
    if (schema->dictionary != NULL)
        put_row(schema->dictionary, array->dictionary,
                int_at(values, size_of(format), at), text);
    else if (format[0] == 'b')
        append_format(text, "%d",
                      ((const uint8_t *)values)[at / 8] >> at % 8 & 1);
    else if (format[0] == 'v')
        put_view(array, at, text);
    else if (strcmp(format, "+s") == 0)
    {
        for (int64_t i = 0; i < schema->n_children; i++)
            put_row(schema->children[i], array->children[i], at, text);
    }
    else if (strncmp(format, "+w", 2) == 0)
        put_range(schema, array, at * n, n, text);
    else if (format[0] == '+' && format[1] == 'v')
        put_range(schema, array, int_at(values, size, at),
                  int_at(array->buffers[2], size, at), text);
    else if (format[0] == '+')
        put_range(schema, array, int_at(values, size, at),
                  int_at(values, size, at + 1) - int_at(values, size, at),
                  text);
    else if (strchr("uUz", format[0]) != NULL)
        put_hex(text,
                (const char *)array->buffers[2] + int_at(values, size, at),
                int_at(values, size, at + 1) - int_at(values, size, at));
    else
        put_hex(text, (const char *)values + (size_t)at * size_of(format),
                (int64_t)size_of(format));
}

static void put_row(const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t row, char *text)
{
    int64_t at = array->offset + row;
    const uint8_t *valid = array->n_buffers > 0 && array->null_count != 0
                               ? array->buffers[0]
                               : NULL;
    ck_assert_int_lt(row, array->length);
    if (schema->format[1] == 'r')
    {
        size_t size = size_of(schema->children[0]->format);
        int64_t run = 0;
        while (int_at(array->children[0]->buffers[1], size, run) <= at)
            run++;
        put_row(schema->children[1], array->children[1], run, text);
        return;
    }
    if (schema->format[0] == 'n' ||
        (valid != NULL && (valid[at / 8] >> at % 8 & 1) == 0))
        append_format(text, "NULL ");
    else
        put_value(schema, array, at, text);
    append_format(text, ";");
}

/* --- trials ------------------------------------------------------------------
 */

struct take_trial
{
    struct ArrowSchema schema;
    struct oj_arrow_shared *shared[MOST_CHUNKS];
    const struct ArrowArray *array[MOST_CHUNKS];
    int32_t chunk[MOST_TAKEN];
    int64_t row[MOST_TAKEN];
    int n_chunks;
    struct oj_arrow_places places;
};

static void make_trial(struct take_trial *t)
{
    make_schema(&t->schema, 0);
    must(oj_arrow_check_type(&t->schema, &err));
    t->n_chunks = 1 + pick(MOST_CHUNKS);
    for (int i = 0; i < t->n_chunks; i++)
    {
        struct ArrowArray array;
        make_array(&t->schema, pick(4) == 0 ? 0 : 1 + pick(9), &array);
        must(oj_arrow_check_array(&t->schema, &array, &err));
        must(oj_arrow_shared_make(&array, &t->shared[i], &err));
        t->array[i] = oj_arrow_shared_array(t->shared[i]);
    }
    t->places = (struct oj_arrow_places){pick(MOST_TAKEN), t->chunk, t->row};
    for (int64_t i = 0; i < t->places.n; i++)
    {
        t->chunk[i] = pick(t->n_chunks);
        t->row[i] = pick((int)t->array[t->chunk[i]]->length + 1) - 1;
    }
    if (pick(3) > 0)
        return;
    for (int64_t i = 0; i < t->places.n; i++) /* a run of rows */
    {
        t->chunk[i] = 0;
        t->row[i] = i;
    }
    if (t->places.n > t->array[0]->length)
        t->places.n = t->array[0]->length;
}

static void free_trial(struct take_trial *t)
{
    for (int i = 0; i < t->n_chunks; i++)
        oj_arrow_shared_release(t->shared[i]);
    oj_arrow_schema_release(&t->schema);
}

static void check_taken(const struct take_trial *t,
                        const struct ArrowArray *out)
{
    static char was[TEXT], is[TEXT];
    ck_assert_int_eq(out->length, t->places.n);
    must(oj_arrow_check_array(&t->schema, out, &err));
    for (int64_t i = 0; i < t->places.n; i++)
    {
        int is_runs = t->schema.format[1] == 'r';
        is[0] = was[0] = '\0';
        put_row(&t->schema, out, i, is);
        if (t->row[i] >= 0)
            put_row(&t->schema, t->array[t->chunk[i]], t->row[i], was);
        if (t->row[i] < 0 && !is_runs)
            append_format(was, "NULL ;");
        if (t->row[i] >= 0 || !is_runs)
            ck_assert_str_eq(is, was);
    }
}

/* Takes random rows. keeps 1: the result may keep the arrays instead of copying
 * them. Allocation number fails_at fails; 0: none. */
static void take_random_rows(int keeps, int64_t fails_at, oj_status *status)
{
    struct take_trial t;
    struct ArrowArray out;
    struct oj_arrow_chunks chunks;
    memset(&t, 0, sizeof t);
    make_trial(&t);
    chunks = (struct oj_arrow_chunks){&t.schema, t.array,
                                      keeps ? t.shared : NULL, t.n_chunks};
    (void)oj_alloc_fail_at(fails_at);
    *status = oj_arrow_take(&chunks, &t.places, &out, &err);
    if (fails_at > 0)
        (void)oj_alloc_fail_at(0);
    if (*status == OJ_OK)
    {
        if (fails_at == 0)
            check_taken(&t, &out);
        oj_arrow_array_release(&out);
    }
    free_trial(&t);
}

TEST_LOOP(random_types, 0, 4)
{
    int n_taken = 0;
    oj_status status;
    for (int i = 0; i < 400; i++)
    {
        random_state = (unsigned)(_i * 1000 + i + 1);
        take_random_rows(_i % 2, 0, &status);
        /* dictionaries of several chunks may have too many values together */
        ck_assert(status == OJ_OK || status == OJ_ERR_LIMIT);
        n_taken += status == OJ_OK;
    }
    ck_assert_int_gt(n_taken, 380);
}

TEST(memory)
{
    for (unsigned start = 1; start < 120; start++)
    {
        oj_status status = OJ_ERR_NOMEM;
        for (int64_t n = 1; status == OJ_ERR_NOMEM; n++)
        {
            random_state = start;
            take_random_rows((int)start % 2, n, &status);
            ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM ||
                      status == OJ_ERR_LIMIT);
        }
    }
}

/* No chunk: every row is NULL. */
TEST(no_chunks)
{
    static const int64_t row[3] = {-1, -1, -1};
    const struct oj_arrow_places places = {3, NULL, row};
    for (unsigned start = 1; start < 400; start++)
    {
        struct ArrowSchema schema;
        struct oj_arrow_chunks chunks = {&schema, NULL, NULL, 0};
        struct ArrowArray out;
        random_state = start;
        make_schema(&schema, 0);
        must(oj_arrow_take(&chunks, &places, &out, &err));
        ck_assert_int_eq(out.length, 3);
        must(oj_arrow_check_array(&schema, &out, &err));
        oj_arrow_array_release(&out);
        oj_arrow_schema_release(&schema);
    }
}

/* A view stays valid when its array is released, and a child when its parent
 * is. */
TEST(views_keep_what_they_show)
{
    struct ArrowSchema schema;
    struct ArrowArray array, view, child;
    struct oj_arrow_shared *shared;
    int64_t value;
    make_child_schema(&schema, "+s", 1);
    make_child_schema(schema.children[0], "l", 0);
    random_state = 5;
    make_array(&schema, 6, &array);
    value = int_at(array.children[0]->buffers[1], 8,
                   array.children[0]->offset + array.offset + 2);
    must(oj_arrow_shared_make(&array, &shared, &err));
    must(oj_arrow_array_view_rows(shared, oj_arrow_shared_array(shared), 2, 3,
                                  &view, &err));
    oj_arrow_shared_release(shared);
    child = *view.children[0];
    view.children[0]->release = NULL;
    ck_assert_int_eq(int_at(child.buffers[1], 8, child.offset + view.offset),
                     value);
    oj_arrow_array_release(&view);
    ck_assert_int_ge(child.length, 5);
    oj_arrow_array_release(&child);
    oj_arrow_schema_release(&schema);
}

TEST(unions_and_broken_schemas)
{
    static const struct
    {
        const char *format;
        oj_status status;
    } cases[] = {{"+ud:0,1", OJ_ERR_UNSUPPORTED}, {"+l", OJ_ERR_DATA},
                 {"q", OJ_ERR_UNSUPPORTED},       {"+r", OJ_ERR_DATA},
                 {"w:-1", OJ_ERR_UNSUPPORTED},    {"", OJ_ERR_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct ArrowSchema schema;
        make_child_schema(&schema, cases[i].format, 0);
        ck_assert_int_eq(oj_arrow_check_type(&schema, &err), cases[i].status);
        oj_arrow_schema_release(&schema);
    }
}

/* Offsets and views that point outside of the data are refused. */
TEST(broken_arrays)
{
    static const char *const formats[] = {"u", "vu", "+l"};
    static const int64_t row[2] = {0, 1};
    const struct oj_arrow_places places = {2, NULL, row};
    for (int i = 0; i < 3; i++)
    {
        struct ArrowSchema schema;
        struct ArrowArray array, out;
        const struct ArrowArray *only = &array;
        const struct oj_arrow_chunks chunks = {&schema, &only, NULL, 1};
        make_child_schema(&schema, formats[i], formats[i][0] == '+');
        if (formats[i][0] == '+')
            make_child_schema(schema.children[0], "i", 0);
        random_state = 7;
        make_array(&schema, 3, &array);
        oj_free((void *)array.buffers[0]);
        array.buffers[0] = NULL;
        array.null_count = 0;
        memset((void *)array.buffers[1], 0x7f,
               formats[i][0] == 'v' ? 16 * 4 : 8);
        ck_assert_int_eq(oj_arrow_take(&chunks, &places, &out, &err),
                         OJ_ERR_DATA);
        oj_arrow_array_release(&array);
        oj_arrow_schema_release(&schema);
    }
}

int main(void)
{
    tests_open("arrow_take");
    return tests_run();
}
