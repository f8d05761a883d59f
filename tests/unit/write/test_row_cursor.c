/* Reads rows one by one, as a consumer other than the command's output. Tests
 * unused fields, the CRS of geometries, a cancel flag, and invalid answers.
 * test_join_arrow and the e2e tests rows, row_values, values and dataset_rows
 * check that the rows are right for every value of -how and every form of
 * answer.
 * Kind: truth cases. */
#include "../row_trial.h"
#include "../run_tests.h"

TEST(truth_ignored_fields_are_left_unset)
{
    struct row_trial t;
    struct trial_stream stream = {.trial = &t};
    OGRFeatureDefnH defn;
    OGRFeatureH feature;
    int there;
    trial_open(&t, "Memory", 10, OJ_HOW_INNER, FORM_ONE, 10);
    trial_make_answers(&t);
    defn = OGR_L_GetLayerDefn(t.out_layer);
    trial_ok(
        oj_row_cursor_open(defn, &t.options, &stream.cursor, &trial_error));
    OGR_Fld_SetIgnored(OGR_FD_GetFieldDefn(defn, 2), 1);
    OGR_Fld_SetIgnored(OGR_FD_GetFieldDefn(defn, 2 * N_FIELDS), 1);
    OGR_FD_SetGeometryIgnored(defn, 1);
    trial_ok(trial_advance(&stream, &there, &trial_error));
    trial_ok(trial_advance(&stream, &there, &trial_error));
    feature = OGR_F_Create(defn);
    trial_ok(oj_row_cursor_next(stream.cursor, feature, &there, &trial_error));
    ck_assert(there);
    ck_assert(!OGR_F_IsFieldSet(feature, 2));
    ck_assert(!OGR_F_IsFieldSet(feature, 2 * N_FIELDS));
    ck_assert(OGR_F_IsFieldSetAndNotNull(feature, 2 * N_FIELDS + 1));
    ck_assert_ptr_null(OGR_F_GetGeometryRef(feature));
    OGR_F_Destroy(feature);
    oj_row_cursor_close(stream.cursor);
    trial_close(&t);
}

TEST(truth_crs_on_geometries)
{
    struct row_trial t;
    struct trial_stream stream = {.trial = &t};
    OGRSpatialReferenceH crs = OSRNewSpatialReference(NULL);
    OGRFeatureH feature;
    int there;
    trial_open(&t, "Memory", 10, OJ_HOW_LEFT, FORM_ONE, 10);
    trial_make_answers(&t);
    t.options.crs = crs;
    trial_ok(oj_row_cursor_open(OGR_L_GetLayerDefn(t.out_layer), &t.options,
                                &stream.cursor, &trial_error));
    trial_ok(trial_advance(&stream, &there, &trial_error));
    feature = OGR_F_Create(OGR_L_GetLayerDefn(t.out_layer));
    trial_ok(oj_row_cursor_next(stream.cursor, feature, &there, &trial_error));
    ck_assert(there);
    ck_assert_ptr_eq(OGR_G_GetSpatialReference(OGR_F_GetGeometryRef(feature)),
                     crs);
    OGR_F_Destroy(feature);
    oj_row_cursor_close(stream.cursor);
    trial_close(&t);
    OSRRelease(crs);
}

TEST(truth_cancelled_and_broken)
{
    struct row_trial t;
    struct trial_stream stream = {.trial = &t};
    OGRFeatureH feature;
    int there, cancel = 1;
    trial_open(&t, "Memory", 10, OJ_HOW_LEFT, FORM_ONE, 10);
    t.options.cancel = &cancel;
    trial_make_answers(&t);
    trial_ok(oj_row_cursor_open(OGR_L_GetLayerDefn(t.out_layer), &t.options,
                                &stream.cursor, &trial_error));
    trial_ok(trial_advance(&stream, &there, &trial_error));
    feature = OGR_F_Create(OGR_L_GetLayerDefn(t.out_layer));
    ck_assert_int_eq(
        oj_row_cursor_next(stream.cursor, feature, &there, &trial_error),
        OJ_ERR_CANCELLED);
    ck_assert(!there);
    for (int64_t first = -1; first < 10; first += 10)
        ck_assert_int_eq(oj_row_cursor_begin_answer(stream.cursor, &t.batch[0],
                                                    first, &t.answer[1].matches,
                                                    NULL, &trial_error),
                         OJ_ERR_INTERNAL);
    trial_ok(oj_row_cursor_next(stream.cursor, feature, &there, &trial_error));
    ck_assert(!there);
    OGR_F_Destroy(feature);
    /* an answer without values of pairs, in which row 0 has no pair and row 1
     * has one */
    cancel = 0;
    trial_ok(oj_row_cursor_begin_answer(stream.cursor, &t.batch[0], 0,
                                        &t.answer[0].matches, NULL,
                                        &trial_error));
    for (int row = 0; row < 2; row++)
    {
        feature = OGR_F_Create(OGR_L_GetLayerDefn(t.out_layer));
        trial_ok(
            oj_row_cursor_next(stream.cursor, feature, &there, &trial_error));
        ck_assert(there);
        ck_assert_int_eq(OGR_F_IsFieldSetAndNotNull(
                             feature, OGR_F_GetFieldIndex(feature, "join_fid")),
                         row);
        ck_assert(!OGR_F_IsFieldSetAndNotNull(
            feature, OGR_F_GetFieldIndex(feature, "bearing")));
        OGR_F_Destroy(feature);
    }
    oj_row_cursor_close(stream.cursor);
    trial_close(&t);
}

int main(void)
{
    tests_open("row cursor");
    GDALAllRegister();
    CPLSetErrorHandler(CPLQuietErrorHandler); /* conversions that lose digits
                                                 warn */
    return tests_run();
}
