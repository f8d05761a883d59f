/* Ends of the Arrow stream of a join: limits of batches, errors, early release,
 * allocations that fail; and bytes of geometries that are passed on as they
 * are. Kind: truth cases, memory, random. */
#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/read/oj_layer_arrow.h"

#include "../run_tests.h"

#if OJ_HAVE_ARROW
#include "arrow_trial.h"

#include <errno.h>

/* ---- limits, ends and errors -------------------------------------------- */

/* The rows are the same however few bytes a batch may have. */
TEST(truth_limit_of_bytes)
{
    struct arrow_text all = {0};
    for (int i = 0; i < 4; i++)
    {
        static const char *const limits[] = {NULL, "700", NULL, "700"};
        struct row_trial t;
        struct trial_stream source;
        struct ArrowArrayStream stream;
        struct arrow_text ours = {0};
        trial_open(&t, i < 2 ? "GPKG" : "Memory", -1, OJ_HOW_LEFT, FORM_LISTS,
                   50);
        trial_make_answers(&t);
        CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", limits[i]);
        open_stream(&t, &source, NULL, &stream);
        say_stream(&ours, &stream, 0);
        close_stream(&source, &stream);
        ck_assert_int_eq(n_batches_said > 1, limits[i] != NULL);
        if (limits[i] == NULL)
            all = ours;
        else
        {
            same_text(all.at, ours.at);
            free(ours.at);
            free(all.at);
        }
        CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", NULL);
        trial_close(&t);
    }
}

TEST(truth_too_large)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", "10");
    trial_open(&t, "Memory", 50, OJ_HOW_LEFT, FORM_ONE, 50);
    trial_make_answers(&t);
    open_stream(&t, &source, NULL, &stream);
    ck_assert_ptr_null(stream.get_last_error(&stream));
    ck_assert_int_eq(stream.get_next(&stream, &array), EIO);
    ck_assert_ptr_null(array.release);
    ck_assert(strstr(stream.get_last_error(&stream), "10 bytes") != NULL);
    ck_assert(strstr(stream.get_last_error(&stream), "FID 0") != NULL);
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    ck_assert_ptr_null(array.release);
    close_stream(&source, &stream);
    trial_close(&t);
    CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", NULL);
}

static oj_status advance_and_fail(void *user, int *there, struct oj_error *err)
{
    struct trial_stream *s = user;
    if (s->trial->at == 2)
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    return trial_advance(user, there, err);
}

TEST(truth_error_between_answers)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    struct oj_arrow_rows rows = {NULL, advance_and_fail, count_closed, &source};
    char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=5", NULL};
    int code;
    trial_open(&t, "Memory", 50, OJ_HOW_LEFT, FORM_ONE, 10);
    trial_make_answers(&t);
    open_source(&t, &source, options, &stream);
    rows.cursor = source.cursor;
    ck_assert(oj_join_arrow_open(OGR_L_GetLayerDefn(t.out_layer), &rows,
                                 options, &stream));
    CPLErrorReset();
    while ((code = stream.get_next(&stream, &array)) == 0)
    {
        ck_assert_ptr_nonnull(array.release);
        array.release(&array);
    }
    ck_assert_int_eq(code, ECANCELED);
    ck_assert_str_eq(stream.get_last_error(&stream), "interrupted");
    ck_assert_str_eq(CPLGetLastErrorMsg(), "interrupted");
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    ck_assert_ptr_null(array.release);
    close_stream(&source, &stream);
    trial_close(&t);
}

/* Never read, read in part, arrays that outlive the stream, and children that
 * somebody has taken. */
TEST(truth_released_early)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowArray array, child;
    char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=5", NULL};
    trial_open(&t, "GPKG", 50, OJ_HOW_LEFT, FORM_LISTS, 20);
    trial_make_answers(&t);
    open_stream(&t, &source, options, &stream);
    close_stream(&source, &stream);
    open_stream(&t, &source, options, &stream);
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    close_stream(&source, &stream);
    child = *array.children[11];
    array.children[11]->release = NULL;
    array.release(&array);
    ck_assert_ptr_null(array.release);
    ck_assert_int_eq(child.length, 5);
    child.release(&child);
    ck_assert_ptr_null(child.release);
    trial_close(&t);
}

/* ---- memory ------------------------------------------------------------- */

/* Allocations fail one after the other: either all is left to GDAL, or an array
 * is missing, and nothing is leaked. */
TEST(memory_each_allocation_fails)
{
    struct row_trial t;
    int done = 0;
    trial_open(&t, "GPKG", 20, OJ_HOW_LEFT, FORM_LISTS, 20);
    trial_make_answers(&t);
    for (int64_t n = 1; !done; n++)
    {
        struct trial_stream source;
        struct ArrowArrayStream stream;
        struct ArrowArray array;
        struct oj_arrow_rows rows = {NULL, trial_advance, count_closed,
                                     &source};
        int code = 0;
        open_source(&t, &source, NULL, &stream);
        rows.cursor = source.cursor;
        oj_alloc_fail_at(n);
        if (oj_join_arrow_open(OGR_L_GetLayerDefn(t.out_layer), &rows, NULL,
                               &stream))
        {
            code = stream.get_next(&stream, &array);
            done = oj_alloc_fail_at(0) < n;
            ck_assert(code == 0 || code == ENOMEM);
            if (code == 0)
                array.release(&array);
        }
        oj_alloc_fail_at(0);
        stream.release(&stream);
        close_source(&source);
    }
    trial_close(&t);
}

/* ---- bytes of geometries ------------------------------------------------ */

/* What is taken as it is, OGR would write again. */
static int check_bytes(const unsigned char *wkb, int n)
{
    OGRGeometryH geometry = NULL;
    unsigned char *again;
    if (!oj_wkb_is_iso(wkb, (size_t)n))
        return 0;
    ck_assert_int_eq(
        OGR_G_CreateFromWkb((unsigned char *)wkb, NULL, &geometry, n),
        OGRERR_NONE);
    ck_assert_int_eq(OGR_G_WkbSize(geometry), n);
    again = CPLMalloc((size_t)n);
    OGR_G_ExportToIsoWkb(geometry, wkbNDR, again);
    ck_assert_mem_eq(again, wkb, (size_t)n);
    CPLFree(again);
    OGR_G_DestroyGeometry(geometry);
    return 1;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

TEST(random_bytes_of_geometries)
{
    int n_taken = 0, n_plain = 0;
    for (int i = 0; i < N_SHAPES * 4; i++)
    {
        char *wkt = CPLStrdup(test_shapes[i / 4]), *at = wkt;
        OGRGeometryH geometry = NULL;
        unsigned char *wkb, *changed;
        int n;
        OGR_G_CreateFromWkt(&at, NULL, &geometry);
        OGR_G_Set3D(geometry, i & 1);
        OGR_G_SetMeasured(geometry, i >> 1 & 1);
        n = OGR_G_WkbSize(geometry);
        wkb = CPLMalloc((size_t)n + 10);
        changed = CPLMalloc((size_t)n + 10);
        OGR_G_ExportToWkb(geometry, wkbXDR, wkb);
        ck_assert(!oj_wkb_is_iso(wkb, (size_t)n));
        OGR_G_ExportToIsoWkb(geometry, wkbNDR, wkb);
        memset(wkb + n, 0, 10);
        ck_assert(!oj_wkb_is_iso(wkb, (size_t)n + 1));
        ck_assert(!oj_wkb_is_iso(wkb, (size_t)n - 1));
        n_plain += check_bytes(wkb, n);
        for (int k = 0; k < 3000; k++)
        {
            memcpy(changed, wkb, (size_t)n);
            for (int j = 0; j < 1 + k % 3; j++)
                changed[next_random() % (uint64_t)n] =
                    (unsigned char)(k % 2 ? next_random() : next_random() % 8);
            n_taken += check_bytes(changed, n);
        }
        CPLFree(wkb);
        CPLFree(changed);
        CPLFree(wkt);
        OGR_G_DestroyGeometry(geometry);
    }
    ck_assert_int_gt(n_plain, 30);
    ck_assert_int_gt(n_taken, 1000);
}

int main(void)
{
    tests_open("ends of an Arrow stream");
    GDALAllRegister();
    CPLSetErrorHandler(CPLQuietErrorHandler); /* conversions lose something */
    return tests_run();
}
#else
int main(void)
{
    return 77; /* GDAL has no Arrow streams */
}
#endif
