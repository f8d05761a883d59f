/* The public functions for events: batches, states in files, errors, and
 * failing allocations.
 * Kind: unit, memory. */
#include "../../../algs/ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../run_tests.h"

static struct ogrjoin_error error;

static void must(int status)
{
    ck_assert_msg(status == OGRJOIN_OK, "%s", error.message);
}

/* Makes an index of two unit squares with the lower left corners (0, 0) and
 * (0.5, 0). Their ids are 20 and 10. */
static struct ogrjoin_index *make_index(const char *op, const char *name,
                                        double value)
{
    static const int64_t one[] = {0, 1, 2}, vertex[] = {0, 5, 10};
    static const int64_t id[] = {20, 10};
    static const uint8_t kind[] = {OGRJOIN_POLYGON, OGRJOIN_POLYGON};
    static const double x[] = {0, 1, 1, 0, 0, 0.5, 1.5, 1.5, 0.5, 0.5};
    static const double y[] = {0, 0, 1, 1, 0, 0, 0, 1, 1, 0};
    const struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                          .n_features = 2,
                                          .n_parts = 2,
                                          .n_rings = 2,
                                          .n_vertices = 10,
                                          .part_offset = one,
                                          .part_kind = kind,
                                          .ring_offset = one,
                                          .vertex_offset = vertex,
                                          .x = x,
                                          .y = y,
                                          .id = id};
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_index *index = NULL;
    must(ogrjoin_set_text(settings, "op", op, &error));
    if (name != NULL)
        must(ogrjoin_set_number(settings, name, value, &error));
    must(ogrjoin_layer_from_arrays(&arrays, &layer, &error));
    must(ogrjoin_index_new(layer, settings, &index, &error));
    ogrjoin_settings_free(settings);
    ogrjoin_layer_free(layer);
    return index;
}

/* Adds n reports of one key, at x[i] and y = 0.5. A report whose x[i] is NaN
 * has no geometry. Returns a status. */
static int add_reports(struct ogrjoin_events *events, const double *x,
                       int64_t n, struct ogrjoin_event_rows *rows)
{
    static const double y[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    static const int64_t key[] = {7, 7, 7, 7, 7, 7};
    const struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                          .n_features = n,
                                          .n_vertices = n,
                                          .x = x,
                                          .y = y};
    const struct ogrjoin_event_keys keys = {.size = sizeof keys,
                                            .integer = key};
    struct ogrjoin_layer *layer = NULL;
    int status = ogrjoin_layer_from_arrays(&arrays, &layer, &error);
    rows->size = sizeof *rows;
    if (status == OGRJOIN_OK)
        status = ogrjoin_events_add(events, layer, &keys, rows, &error);
    ogrjoin_layer_free(layer);
    return status;
}

/* Checks the events against words such as "0+1 1-0": report 0 enters feature 1,
 * report 1 leaves feature 0. */
static void expect_events(const struct ogrjoin_event_rows *rows,
                          const char *words)
{
    static const char signs[] = "+-=~";
    char text[400] = "";
    for (int64_t i = 0; i < rows->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s%lld%c%lld", i > 0 ? " " : "", (long long)rows->report[i],
                 signs[rows->kind[i]], (long long)rows->feature[i]);
    ck_assert_str_eq(text, words);
}

static const double way[] = {-1, 0.25, 0.75, (double)NAN, 1.25, 2};

/* Events of one report are sorted by the ids of their features. */
TEST(events_of_a_way)
{
    struct ogrjoin_index *index = make_index("within", NULL, 0);
    struct ogrjoin_events *events = NULL;
    struct ogrjoin_event_rows rows;
    must(ogrjoin_events_new(index, NULL, 0, &events, &error));
    must(add_reports(events, way, 6, &rows));
    expect_events(&rows, "1+0 2+1 4-0 5-1");
    ck_assert_int_eq(ogrjoin_events_inside(events), 0);
    must(add_reports(events, way + 2, 1, &rows));
    expect_events(&rows, "0+1 0+0");
    ck_assert_int_eq(ogrjoin_events_inside(events), 1);
    must(add_reports(events, way + 3, 1, &rows));
    expect_events(&rows, "");
    ogrjoin_events_free(events);
    must(ogrjoin_events_new(index, "all", 0, &events, &error));
    ogrjoin_index_free(index); /* the events hold a reference to the index */
    must(add_reports(events, way, 6, &rows));
    expect_events(&rows, "1+0 2+1 2=0 4-0 4=1 5-1");
    ogrjoin_events_free(events);
}

TEST(changes_of_the_nearest)
{
    struct ogrjoin_index *index = make_index("nearest", "max_distance", 0.5);
    struct ogrjoin_events *events = NULL;
    struct ogrjoin_event_rows rows;
    must(ogrjoin_events_new(index, NULL, 0, &events, &error));
    must(add_reports(events, way, 6, &rows));
    expect_events(&rows, /* x = 2 is exactly at the maximum distance */
                  "1~0 2~1");
    ck_assert(rows.measure[0] == 0);
    must(add_reports(events, way, 1, &rows));
    expect_events(&rows, "0~-1");
    ck_assert(isnan(rows.measure[0]));
    ogrjoin_events_free(events);
    ogrjoin_index_free(index);
}

TEST(states)
{
    struct ogrjoin_index *index = make_index("within", NULL, 0);
    struct ogrjoin_index *other = make_index("intersects", NULL, 0);
    struct ogrjoin_events *events = NULL, *later = NULL;
    struct ogrjoin_event_rows rows;
    struct stat info;
    char path[] = "/tmp/ogrjoin-events-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    must(ogrjoin_events_new(index, NULL, 0, &events, &error));
    must(ogrjoin_events_new(index, NULL, 0, &later, &error));
    ck_assert_int_eq(ogrjoin_events_load(later, path, &error),
                     OGRJOIN_ERR_DATA); /* an empty file */
    must(add_reports(events, way + 2, 1, &rows));
    must(ogrjoin_events_save(events, path, &error));
    ck_assert(stat(path, &info) == 0);
    ck_assert_int_eq((int)info.st_mode & 0777, 0600); /* as before */
    must(ogrjoin_events_load(later, path, &error));
    must(add_reports(later, way + 4, 2, &rows));
    expect_events(&rows, "0-0 1-1");
    must(ogrjoin_events_load(later, path, &error));
    ck_assert_int_eq(ogrjoin_events_inside(later), 1);
    ogrjoin_events_free(later);
    /* a state of another join, a state of other keys, and a missing file */
    must(ogrjoin_events_new(other, NULL, 0, &later, &error));
    ck_assert_int_eq(ogrjoin_events_load(later, path, &error), OGRJOIN_ERR_ARG);
    ogrjoin_events_free(later);
    must(ogrjoin_events_new(index, NULL, 1, &later, &error));
    ck_assert_int_eq(ogrjoin_events_load(later, path, &error), OGRJOIN_ERR_ARG);
    ck_assert_int_eq(add_reports(later, way, 1, &rows), OGRJOIN_ERR_ARG);
    unlink(path);
    ck_assert_int_eq(ogrjoin_events_load(later, path, &error), OGRJOIN_ERR_IO);
    ck_assert_int_eq(ogrjoin_events_save(later, "/nowhere/state", &error),
                     OGRJOIN_ERR_IO);
    ogrjoin_events_free(later);
    ogrjoin_events_free(events);
    ogrjoin_index_free(index);
    ogrjoin_index_free(other);
}

/* A state that was saved in one locale can be loaded in another. */
TEST(states_of_locales)
{
    struct ogrjoin_index *index = make_index("nearest", "max_distance", 0.5);
    struct ogrjoin_events *events = NULL, *later = NULL;
    struct ogrjoin_event_rows rows;
    char path[] = "/tmp/ogrjoin-events-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    must(ogrjoin_events_new(index, NULL, 0, &events, &error));
    must(add_reports(events, way, 6, &rows));
    must(ogrjoin_events_save(events, path, &error));
    setlocale(LC_ALL, "de_DE.UTF-8"); /* a locale with a decimal comma, if it is
                                         installed */
    must(ogrjoin_events_new(index, NULL, 0, &later, &error));
    setlocale(LC_ALL, "C");
    must(ogrjoin_events_load(later, path, &error));
    must(add_reports(later, way, 1, &rows));
    expect_events(&rows, "0~-1");
    unlink(path);
    ogrjoin_events_free(later);
    ogrjoin_events_free(events);
    ogrjoin_index_free(index);
}

TEST(what_makes_no_sense)
{
    struct ogrjoin_index *two = make_index("nearest", "k", 2);
    struct ogrjoin_index *picks = make_index("within", "one_to_one", 1);
    struct ogrjoin_index *index = make_index("within", NULL, 0);
    struct ogrjoin_events *events = NULL;
    ck_assert_int_eq(ogrjoin_events_new(two, NULL, 0, &events, &error),
                     OGRJOIN_ERR_ARG);
    ck_assert_int_eq(ogrjoin_events_new(picks, NULL, 0, &events, &error),
                     OGRJOIN_ERR_ARG);
    ck_assert_int_eq(ogrjoin_events_new(index, "some", 0, &events, &error),
                     OGRJOIN_ERR_ARG);
    ck_assert_ptr_null(events);
    ogrjoin_index_free(two);
    ogrjoin_index_free(picks);
    ogrjoin_index_free(index);
    ogrjoin_events_free(NULL);
}

/* Keys are either integers or texts: not both, nor neither. */
TEST(keys_of_two_kinds_or_none)
{
    static const int64_t key[] = {7, 7};
    static const double x[] = {0.25}, y[] = {0.5};
    static const struct ogrjoin_event_keys refused[] = {
        {.size = sizeof *refused},
        {.size = sizeof *refused, .integer = key, .offset = key}};
    const struct ogrjoin_arrays arrays = {.size = sizeof arrays,
                                          .n_features = 1,
                                          .n_vertices = 1,
                                          .x = x,
                                          .y = y};
    struct ogrjoin_index *index = make_index("within", NULL, 0);
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_events *events = NULL;
    struct ogrjoin_event_rows rows = {.size = sizeof rows};
    must(ogrjoin_layer_from_arrays(&arrays, &layer, &error));
    must(ogrjoin_events_new(index, NULL, 0, &events, &error));
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_eq(
            ogrjoin_events_add(events, layer, &refused[i], &rows, &error),
            OGRJOIN_ERR_ARG);
        ck_assert_ptr_nonnull(
            strstr(error.message,
                   "set either keys->integer or keys->offset (with bytes)"));
    }
    ogrjoin_layer_free(layer);
    ogrjoin_events_free(events);
    ogrjoin_index_free(index);
}

/* A call that failed can be repeated. It then gives the answer of a call that
 * did not fail. */
TEST(no_memory)
{
    struct ogrjoin_index *index = make_index("within", NULL, 0);
    int n_failed = 0, status = OGRJOIN_ERR_NOMEM;
    for (int n = 1; status != OGRJOIN_OK; n++)
    {
        struct ogrjoin_events *events = NULL;
        struct ogrjoin_event_rows rows;
        oj_alloc_fail_at(n);
        status = ogrjoin_events_new(index, NULL, 0, &events, &error);
        if (status == OGRJOIN_OK)
            status = add_reports(events, way, 6, &rows);
        oj_alloc_fail_at(0);
        ck_assert(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM);
        n_failed += status != OGRJOIN_OK;
        if (events != NULL)
        {
            if (status != OGRJOIN_OK)
                must(add_reports(events, way, 6, &rows));
            expect_events(&rows, "1+0 2+1 4-0 5-1");
        }
        ogrjoin_events_free(events);
        ogrjoin_index_trim(index);
    }
    ck_assert_int_gt(n_failed, 5);
    ogrjoin_index_free(index);
}

int main(void)
{
    tests_open("api_events");
    return tests_run();
}
