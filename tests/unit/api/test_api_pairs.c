/* Values, picks, intersections and aggregates of pairs; settings that clash;
 * and points in device memory on a machine without a device.
 * Kinds: unit, memory. */
#include "../../../algs/ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct ogrjoin_error err;

static void must(int status)
{
    ck_assert_msg(status == OGRJOIN_OK, "%s", err.message);
}

static void fails(int status, int expected, const char *text)
{
    ck_assert_msg(status == expected && strstr(err.message, text) != NULL,
                  "%d %s", status, err.message);
}

static struct ogrjoin_layer *points_at(const double *x, int64_t n)
{
    struct ogrjoin_arrays a = {
        .size = sizeof a, .n_features = n, .n_vertices = n, .x = x, .y = x};
    struct ogrjoin_layer *layer = NULL;
    must(ogrjoin_layer_from_arrays(&a, &layer, &err));
    return layer;
}

/* Makes settings from words such as "op=intersects k=2". */
static struct ogrjoin_settings *settings_of(const char *words)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    char word[200], *at = strcpy(word, words), *name;
    while ((name = strtok_r(at, "= ", &at)) != NULL)
    {
        const char *value = strtok_r(at, " ", &at);
        if (ogrjoin_set_text(settings, name, value, &err) != OGRJOIN_OK)
            must(ogrjoin_set_number(settings, name, atof(value), &err));
    }
    return settings;
}

/* --- forms of the result --------------------------------------------------
 *
 *  x      0    1    2        left, right; pairs within 1
 *  text   ab   ab   cd       only 0-0, 0-1, 1-0, 1-1, 2-2 are similar
 */

static const double three[] = {0, 1, 2};
static const int64_t text_offset[] = {0, 2, 4, 6};

/* Joins three points with themselves, with the settings `words`, and
 * concatenates texts of the pairs in *results. as_lists 1: by
 * ogrjoin_join_lists(). Allocation number fails_at fails; 0: none. Returns a
 * status. */
static int make_of_pairs(const char *words, int as_lists, int64_t fails_at,
                         struct ogrjoin_pairs **pairs,
                         struct ogrjoin_results *results)
{
    struct ogrjoin_layer *layer[2] = {points_at(three, 3), points_at(three, 3)};
    struct ogrjoin_settings *settings = settings_of(words);
    struct ogrjoin_columns columns = {.size = sizeof columns};
    struct ogrjoin_values texts = {
        .size = sizeof texts, .offset = text_offset, .bytes = "ababcd"};
    struct ogrjoin_index *index = NULL;
    int status;
    static const int64_t score[] = {3, 1, 2};
    columns.score = score;
    must(ogrjoin_layer_set_columns(layer[1], &columns, &err));
    for (int i = 0; i < 2; i++)
        must(ogrjoin_layer_add_text(layer[i], text_offset, "ababcd", &err));
    (void)oj_alloc_fail_at(fails_at);
    status = ogrjoin_index_new(layer[1], settings, &index, &err);
    if (status == OGRJOIN_OK)
        status = as_lists ? ogrjoin_join_lists(index, layer[0], pairs, &err)
                          : ogrjoin_join(index, layer[0], pairs, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_pairs_aggregate(*pairs, "concat", ";", &texts, results,
                                         &err);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer[0]);
    ogrjoin_layer_free(layer[1]);
    ogrjoin_settings_free(settings);
    return status;
}

#define DWITHIN "op=dwithin max_distance=2 similar=1/2 tokens=2grams "

static const struct made
{
    const char *words, *concat;
    int n;
    int64_t right[5];
} made[] = {{DWITHIN "bearing=1", "ab;abab;abcd", 5, {0, 1, 0, 1, 2}},
            {DWITHIN "one_to_one=1", "ababcd", 3, {0, 1, 2}},
            {DWITHIN "pick=nearest", "ababcd", 3, {0, 1, 2}},
            {DWITHIN "pick=score", "ababcd", 3, {0, 0, 2}},
            {DWITHIN "pick=most_similar", "ababcd", 3, {0, 0, 2}}};

/* Pairs as columns, and as lists. */
TEST_LOOP(made_of_pairs, 0, 10)
{
    const struct made *want = &made[_i / 2];
    int as_lists = _i % 2;
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_results results = {0};
    int64_t n;
    must(make_of_pairs(want->words, as_lists, 0, &pairs, &results));
    n = oj_alloc_fail_at(0);
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), want->n);
    for (int i = 0; i < want->n; i++)
    {
        ck_assert_int_eq(as_lists ? ogrjoin_pairs_right32(pairs)[i]
                                  : ogrjoin_pairs_right(pairs)[i],
                         want->right[i]);
        ck_assert(ogrjoin_pairs_value(pairs, "similarity")[i] == 1.0);
    }
    ck_assert(ogrjoin_pairs_value(pairs, "overlap_area") == NULL);
    ck_assert(ogrjoin_pairs_value(pairs, "similarity_2") == NULL);
    ck_assert(ogrjoin_pairs_undecided(pairs) == 0);
    /* bearings from 0 to 1 and back, in degrees; NaN for coincident points */
    if (_i / 2 == 0)
    {
        const double *bearing = ogrjoin_pairs_value(pairs, "bearing");
        ck_assert(isnan(bearing[0]) && bearing[1] == 45 && bearing[2] == 225);
    }
    ck_assert_int_eq(results.n, 3);
    ck_assert_int_eq(results.offset[3], (int64_t)strlen(want->concat));
    ck_assert_mem_eq(results.bytes, want->concat, strlen(want->concat));
    ogrjoin_results_free(&results);
    fails(ogrjoin_pairs_aggregate(pairs, "sum", NULL, NULL, &results, &err),
          OGRJOIN_ERR_ARG, "column");
    fails(ogrjoin_pairs_aggregate(pairs, "percentile", "0x10", NULL, &results,
                                  &err),
          OGRJOIN_ERR_ARG, "percentile needs a number from 0 to 100");
    ogrjoin_pairs_free(pairs);
    ck_assert_int_gt(n, 5);
    for (int64_t i = 1; i <= n; i++)
    {
        int status;
        pairs = NULL;
        status = make_of_pairs(want->words, as_lists, i, &pairs, &results);
        (void)oj_alloc_fail_at(0);
        if (status == OGRJOIN_OK) /* the failed allocation was not needed */
            ogrjoin_results_free(&results);
        else
            ck_assert_int_eq(status, OGRJOIN_ERR_NOMEM);
        ogrjoin_pairs_free(pairs);
    }
}

/* --- measures, picks and aggregates ------------------------------------------
 *
 *  left   0 square 1 to 3   1 rectangle 3 to 5, 0 to 2    2 far away
 *  right  0 square 0 to 4   1 the square east of it   2 line y 1, x 0 to 4
 *         3 point 1, 1
 */

static const double left_x[] = {1, 3, 3, 1, 1, 3, 5, 5, 3, 3, 90, 91, 91, 90};
static const double left_y[] = {1, 1, 3, 3, 1, 0, 0, 2, 2, 0, 90, 90, 91, 90};
static const double right_x[] = {0, 4, 4, 0, 0, 4, 8, 8, 4, 4, 0, 4, 1};
static const double right_y[] = {0, 0, 4, 4, 0, 0, 0, 4, 4, 0, 1, 1, 1};
static const int64_t ones[] = {0, 1, 2, 3, 4}, left_vertex[] = {0, 5, 10, 14},
                     right_vertex[] = {0, 5, 10, 12, 13};
static const uint8_t right_kind[] = {OGRJOIN_POLYGON, OGRJOIN_POLYGON,
                                     OGRJOIN_LINE, OGRJOIN_POINT};
static const uint8_t left_kind[] = {OGRJOIN_POLYGON, OGRJOIN_POLYGON,
                                    OGRJOIN_POLYGON};
static const struct ogrjoin_arrays shapes[2] = {
    {sizeof *shapes, 3, 3, 3, 14, ones, left_kind, ones, left_vertex, left_x,
     left_y, NULL},
    {sizeof *shapes, 4, 4, 4, 13, ones, right_kind, ones, right_vertex, right_x,
     right_y, NULL}};

static int join_shapes(const char *words, int64_t fails_at,
                       struct ogrjoin_pairs **pairs)
{
    struct ogrjoin_settings *settings = settings_of(words);
    struct ogrjoin_layer *layer[2] = {NULL, NULL};
    struct ogrjoin_index *index = NULL;
    int status;
    for (int i = 0; i < 2; i++)
        must(ogrjoin_layer_from_arrays(&shapes[i], &layer[i], &err));
    (void)oj_alloc_fail_at(fails_at);
    status = ogrjoin_index_new(layer[1], settings, &index, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_join(index, layer[0], pairs, &err);
    ogrjoin_index_free(index);
    for (int i = 0; i < 2; i++)
        ogrjoin_layer_free(layer[i]);
    ogrjoin_settings_free(settings);
    return status;
}

/* Writes a value of all pairs as text. For "intersection" it writes the type
 * and the number of bytes of each WKB. */
static void write_values(const struct ogrjoin_pairs *pairs, const char *name,
                         char *out)
{
    const double *value = ogrjoin_pairs_value(pairs, name);
    const int64_t *offset;
    const uint8_t *wkb = ogrjoin_pairs_intersection(pairs, &offset);
    *out = '\0';
    for (int64_t i = 0; i < ogrjoin_pairs_count(pairs); i++)
    {
        if (strcmp(name, "right") == 0)
            out += sprintf(out, "%d%d ", (int)ogrjoin_pairs_left(pairs)[i],
                           (int)ogrjoin_pairs_right(pairs)[i]);
        else if (strcmp(name, "intersection") == 0)
            out += sprintf(out, "%d:%d ", wkb[offset[i] + 1],
                           (int)(offset[i + 1] - offset[i]));
        else
            out += sprintf(out, "%g ", value[i]);
    }
}

#define ALL "00 02 03 10 11 12 "

static const struct measured
{
    /* name NULL: no values are compared */
    const char *words, *pairs, *name, *values;
} measured[] = {
    {"op=intersects overlap_area=1", ALL, "overlap_area", "4 0 0 2 2 0 "},
    {"op=intersects overlap_length=1", ALL, "overlap_length", "0 2 0 0 0 1 "},
    {"op=intersects overlap_percent=1", ALL, "overlap_percent",
     "100 0 0 50 50 0 "},
    {"op=intersects intersection=1", ALL, "intersection",
     "3:93 2:41 1:21 3:93 3:93 2:41 "},
    {"op=intersects share=1 max_pairs=6 threads=8", ALL, NULL, NULL},
    {"op=intersects pick=first", "00 10 ", NULL, NULL},
    {"op=intersects pick=largest_overlap", "00 10 ", NULL, NULL},
    {"op=intersects pick=smallest_area", "02 12 ", NULL, NULL},
    {"op=intersects pick=largest_area", "00 10 ", NULL, NULL},
    {"op=dwithin max_distance=1 pick=nearest", "00 10 ", NULL, NULL},
    {"op=dwithin max_distance=1 one_to_one=1", "00 11 ", NULL, NULL},
    {"op=nearest nearest_point=1", "00 10 21 ", "nearest_x", "1 3 8 "},
    {"op=nearest from_point=1", "00 10 21 ", "from_y", "1 0 90 "},
};

TEST_LOOP(measured, 0, sizeof measured / sizeof *measured)
{
    const struct measured *want = &measured[_i];
    struct ogrjoin_pairs *pairs = NULL;
    char text[200];
    int64_t n;
    must(join_shapes(want->words, 0, &pairs));
    n = oj_alloc_fail_at(0);
    write_values(pairs, "right", text);
    ck_assert_str_eq(text, want->pairs);
    if (want->name != NULL)
    {
        write_values(pairs, want->name, text);
        ck_assert_str_eq(text, want->values);
    }
    ogrjoin_pairs_free(pairs);
    for (int64_t i = 1; i <= n; i++)
    {
        int status;
        pairs = NULL;
        status = join_shapes(want->words, i, &pairs);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM);
        ogrjoin_pairs_free(pairs);
    }
}

static const struct
{
    const char *words, *message;
    int status;
} conflicts[] = {
    {"op=intersects one_to_one=1 pick=first", "leave pick out",
     OGRJOIN_ERR_ARG},
    {"op=intersects pick=most_similar", "needs the setting similar",
     OGRJOIN_ERR_ARG},
    {"op=intersects pick=nearest", "needs op nearest or", OGRJOIN_ERR_ARG},
    {"op=intersects pick=score", "a column of scores", OGRJOIN_ERR_ARG},
    {"op=dwithin max_distance=1 metric=sphere overlap_area=1",
     "metric to planar", OGRJOIN_ERR_ARG},
    {"op=intersects similar=0.5", "it has 0, not 1", OGRJOIN_ERR_ARG},
    {"op=similar similar=a", "similar needs a threshold", OGRJOIN_ERR_ARG},
    {"op=similar vector=a", "vector needs a maximum difference",
     OGRJOIN_ERR_ARG},
    {"op=similar vector=a max_difference=1", "needs numbers in both layers",
     OGRJOIN_ERR_ARG},
    {"op=intersects word_map=st", "word", OGRJOIN_ERR_DATA},
    {"op=intersects max_pairs=5",
     "has more than 5 pairs, the limit set by max_pairs", OGRJOIN_ERR_TOO_MANY},
    {"op=intersects max_pairs=1 threads=1",
     "has more than 1 pairs, the limit set by max_pairs", OGRJOIN_ERR_TOO_MANY},
};

TEST_LOOP(conflicts, 0, sizeof conflicts / sizeof *conflicts)
{
    struct ogrjoin_pairs *pairs = NULL;
    fails(join_shapes(conflicts[_i].words, 0, &pairs), conflicts[_i].status,
          conflicts[_i].message);
    ck_assert_ptr_null(pairs);
}

/* Values of the right features; feature 1 has none. */
static const int64_t integers[] = {160, 16, 4, 1},
                     huge[] = {INT64_MAX, 0, 1, 1},
                     byte_offset[] = {0, 1, 3, 3, 4};
static const double reals[] = {160, 16, 4, 1};
static const uint8_t nulls[] = {0, 1, 0, 0};
static const struct ogrjoin_values of[] = {
    {sizeof *of, integers, NULL, NULL, NULL, nulls},
    {sizeof *of, NULL, reals, NULL, NULL, nulls},
    {sizeof *of, NULL, NULL, byte_offset, "abbd", nulls},
    {sizeof *of, huge, NULL, NULL, NULL, NULL},
    {sizeof *of, NULL, NULL, NULL, NULL, NULL},
    {8, integers, NULL, NULL, NULL, NULL}};

static const struct aggregated
{
    const char *share, *function;
    const struct ogrjoin_values *values;
    /* expected results, "-" for NULL; or a part of the error message */
    const char *results;
    int status;
} aggregated[] = {
    {"0", "count", NULL, "3 3 0 ", 0},
    {"0", "count", &of[0], "3 2 0 ", 0},
    {"0", "sum", &of[0], "165 164 - ", 0},
    {"0", "mean", &of[0], "55 82 - ", 0},
    {"0", "min", &of[1], "1 4 - ", 0},
    {"0", "sum", &of[1], "165 164 - ", 0},
    {"0", "max", &of[2], "'d' 'a' - ", 0},
    {"0", "unique", &of[2], "3 2 0 ", 0},
    {"0", "concat", &of[2], "'a;;d' 'a;' - ", 0},
    {"1", "weighted_sum", &of[0], "43 21 - ", 0},
    {"0", "weighted_sum", &of[0], "setting share", OGRJOIN_ERR_ARG},
    {"0", "sum", NULL, "needs a column", OGRJOIN_ERR_ARG},
    {"0", "sum", &of[4], "needs a column", OGRJOIN_ERR_ARG},
    {"0", "sum", &of[5], "size", OGRJOIN_ERR_ARG},
    {"0", "sum", &of[2], "numbers, not of texts", OGRJOIN_ERR_ARG},
    {"0", "concat", &of[0], "takes a column of texts", OGRJOIN_ERR_ARG},
    {"0", "total", &of[0], "total", OGRJOIN_ERR_ARG},
    {"0", "sum", &of[3], "64 bits", OGRJOIN_ERR_LIMIT},
};

static void write_results(const struct ogrjoin_results *r, char *out)
{
    for (int64_t i = 0; i < r->n; i++)
    {
        if (r->is_null[i])
            out += sprintf(out, "- ");
        else if (r->integer != NULL)
            out += sprintf(out, "%lld ", (long long)r->integer[i]);
        else if (r->real != NULL)
            out += sprintf(out, "%g ", r->real[i]);
        else
            out +=
                sprintf(out, "'%.*s' ", (int)(r->offset[i + 1] - r->offset[i]),
                        r->bytes + r->offset[i]);
    }
}

TEST_LOOP(aggregated, 0, sizeof aggregated / sizeof *aggregated)
{
    const struct aggregated *want = &aggregated[_i];
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_results results = {0};
    char words[60], text[200] = "";
    int status;
    int64_t n;
    sprintf(words, "op=intersects share=%s", want->share);
    must(join_shapes(words, 0, &pairs));
    (void)oj_alloc_fail_at(0);
    status = ogrjoin_pairs_aggregate(pairs, want->function, ";", want->values,
                                     &results, &err);
    n = oj_alloc_fail_at(0);
    if (want->status == OGRJOIN_OK)
    {
        must(status);
        write_results(&results, text);
        ck_assert_str_eq(text, want->results);
        ogrjoin_results_free(&results);
    }
    else
        fails(status, want->status, want->results);
    for (int64_t i = 1; want->status == OGRJOIN_OK && i <= n; i++)
    {
        (void)oj_alloc_fail_at(i);
        status = ogrjoin_pairs_aggregate(pairs, want->function, ";",
                                         want->values, &results, &err);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM);
        ogrjoin_results_free(&results);
    }
    ogrjoin_pairs_free(pairs);
}

/* --- points on a device, where there is none ---------------------------------
 */

TEST(device_points)
{
    static const double x[] = {1};
    static const struct
    {
        const char *words;
        size_t size;
        int64_t n, stride;
        const char *message;
        /* expected status; 0: the error that there is no device, or that x is
         * not in the memory of a device */
        int status;
    } bad[] = {
        {"backend=cpu", 0, 1, 1, "auto, not cpu", OGRJOIN_ERR_ARG},
        {"pick=first", 0, 1, 1, "distances only", OGRJOIN_ERR_UNSUPPORTED},
        {"one_to_one=1", 0, 1, 1, "distances only", OGRJOIN_ERR_UNSUPPORTED},
        {"k=1", 8, 1, 1, "the member size of", OGRJOIN_ERR_ARG},
        {"k=1", 0, -1, 1, "not -1 and 1", OGRJOIN_ERR_ARG},
        {"k=1", 0, INT64_C(1) << 31, 1, "not 2147483648", OGRJOIN_ERR_ARG},
        {"k=1", 0, 1, 0, "not 1 and 0", OGRJOIN_ERR_ARG},
        {"k=1", 0, 1, 1, "", 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
        struct ogrjoin_device_points points = {
            .size = bad[i].size == 0 ? sizeof points : bad[i].size,
            .n = bad[i].n,
            .x = x,
            .y = x,
            .stride = bad[i].stride};
        struct ogrjoin_device_pairs pairs = {.size = sizeof pairs};
        struct ogrjoin_settings *settings = settings_of(bad[i].words);
        struct ogrjoin_layer *layer = points_at(x, 1);
        struct ogrjoin_index *index = NULL;
        int status;
        must(ogrjoin_index_new(layer, settings, &index, &err));
        status = ogrjoin_join_device(index, &points, &pairs, &err);
        if (bad[i].status != 0)
            fails(status, bad[i].status, bad[i].message);
        else
            ck_assert(status == OGRJOIN_ERR_NO_DEVICE ||
                      status == OGRJOIN_ERR_ARG);
        ck_assert_ptr_null(pairs.owner);
        ogrjoin_device_pairs_free(&pairs);
        ogrjoin_index_free(index);
        ogrjoin_layer_free(layer);
        ogrjoin_settings_free(settings);
    }
    ogrjoin_device_pairs_free(NULL);
}

int main(void)
{
    tests_open("api_pairs");
    return tests_run();
}
