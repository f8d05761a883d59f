/* Rows one after another: every way of keeping rows, every form of answer,
 * every geometry, against the layer that the writer makes; and against the
 * places that are taken in place of features. Kind: truth cases. */
#include "../row_trial.h"
#include "../run_tests.h"

static const enum oj_how all_hows[] = {OJ_HOW_LEFT, OJ_HOW_INNER, OJ_HOW_SEMI,
                                       OJ_HOW_ANTI};

/* Rows that answers have, found by other means. */
static int64_t count_rows(const struct row_trial *t)
{
    int64_t n = 0;
    for (int i = 0; i < t->n_answers; i++)
    {
        const struct trial_answer *a = &t->answer[i];
        int64_t first = t->batch[a->batch].first_row + a->first_row;
        for (int64_t row = 0; row < a->matches.n_rows; row++)
        {
            int pairs = trial_pairs_of(first + row);
            if (t->form == FORM_ONE || t->form == FORM_PICKED)
                pairs = pairs > 0;
            if (t->options.how == OJ_HOW_SEMI)
                pairs = pairs > 0;
            if (t->options.how == OJ_HOW_ANTI)
                pairs = pairs == 0;
            if (t->options.how == OJ_HOW_LEFT && pairs == 0)
                pairs = 1;
            n += pairs;
        }
    }
    for (int i = 0; t->with_join_rows && i < TRIAL_JOIN_ROWS; i++)
        n += !t->is_matched[i];
    return n;
}

/* Features of a cursor, one by one, are those of the layer written. */
static void same_as_written(struct row_trial *t)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(t->out_layer);
    struct trial_stream stream = {.trial = t};
    int64_t n = 0;
    int there = 1;
    trial_make_answers(t);
    trial_write(t);
    OGR_L_ResetReading(t->out_layer);
    trial_ok(
        oj_row_cursor_open(defn, &t->options, &stream.cursor, &trial_error));
    oj_row_cursor_number(stream.cursor, 0);
    for (;;)
    {
        OGRFeatureH feature = OGR_F_Create(defn), other;
        trial_ok(oj_row_cursor_next(stream.cursor, feature, 0, &there,
                                    &trial_error));
        if (!there)
        {
            OGR_F_Destroy(feature);
            trial_ok(trial_advance(&stream, &there, &trial_error));
            if (!there)
                break;
            continue;
        }
        other = OGR_L_GetNextFeature(t->out_layer);
        ck_assert_ptr_nonnull(other);
        ck_assert_int_eq(OGR_F_GetFID(feature), OGR_F_GetFID(other));
        for (int f = 0; f < OGR_F_GetFieldCount(feature); f++)
            same_value(other, feature, f, 0);
        same_geometry(OGR_F_GetGeometryRef(other),
                      OGR_F_GetGeometryRef(feature));
        OGR_F_Destroy(feature);
        OGR_F_Destroy(other);
        n++;
    }
    ck_assert_ptr_null(OGR_L_GetNextFeature(t->out_layer));
    ck_assert_int_eq(n, count_rows(t));
    oj_row_cursor_close(stream.cursor);
}

TEST(truth_every_how_and_form)
{
    for (int how = 0; how < 4; how++)
    {
        for (int form = FORM_ONE; form <= FORM_PICKED; form++)
        {
            struct row_trial t;
            trial_open(&t, "Memory", 100, all_hows[how], (enum trial_form)form,
                       37);
            t.with_join_rows = how < 2;
            same_as_written(&t);
            trial_close(&t);
        }
    }
}

TEST(truth_every_geometry)
{
    for (int geometry = OJ_WRITE_INPUT; geometry <= OJ_WRITE_SHAPE; geometry++)
    {
        for (int multi = 0; multi < 3; multi++)
        {
            struct row_trial t;
            trial_open(&t, multi == 1 ? "GPKG" : "Memory", -1, OJ_HOW_LEFT,
                       FORM_LISTS, 10);
            t.options.geometry = (enum oj_write_geometry)geometry;
            t.options.promote_to_multi = multi == 1;
            t.options.multi_shapes = multi == 2;
            t.with_join_rows = 1;
            same_as_written(&t);
            trial_close(&t);
        }
    }
}

/* The input's FIDs, for rows of the input. */
TEST(truth_fids)
{
    struct row_trial t;
    trial_open(&t, "Memory", 50, OJ_HOW_ANTI, FORM_ONE, 20);
    t.options.keep_fids = 1;
    same_as_written(&t);
    OGR_L_ResetReading(t.out_layer);
    for (int i = 0; i < 10; i++) /* rows 0, 2, 5, 7, ... have no pair */
    {
        OGRFeatureH feature = OGR_L_GetNextFeature(t.out_layer);
        ck_assert_ptr_nonnull(feature);
        ck_assert_int_eq(OGR_F_GetFID(feature), i / 2 * 5 + i % 2 * 2 + 1);
        OGR_F_Destroy(feature);
    }
    trial_close(&t);
}

TEST(truth_places_are_the_rows)
{
    for (int how = 0; how < 4; how++)
    {
        struct row_trial t;
        struct trial_stream stream = {.trial = &t};
        int64_t n = 0, number = 5;
        int there = 1;
        trial_open(&t, "Memory", 100, all_hows[how], FORM_LISTS, 37);
        t.with_join_rows = 1;
        trial_make_answers(&t);
        trial_ok(oj_row_cursor_open(OGR_L_GetLayerDefn(t.out_layer), &t.options,
                                    &stream.cursor, &trial_error));
        oj_row_cursor_number(stream.cursor, 5);
        while (there)
        {
            struct oj_row_place place[3];
            int64_t taken = oj_row_cursor_take(stream.cursor, place, 3);
            for (int64_t i = 0; i < taken; i++)
            {
                const struct oj_row_sources *sources =
                    oj_row_cursor_sources(stream.cursor);
                ck_assert_int_eq(place[i].fid, number++);
                ck_assert_int_eq(place[i].join_row >= 0, place[i].rank > 0);
                if (place[i].join_row >= 0)
                    ck_assert_int_eq(
                        place[i].join_row,
                        trial_join_row(sources->batch->first_row + place[i].row,
                                       place[i].rank - 1));
            }
            n += taken;
            if (taken == 0)
                trial_ok(trial_advance(&stream, &there, &trial_error));
        }
        ck_assert_int_eq(n, count_rows(&t));
        oj_row_cursor_close(stream.cursor);
        trial_close(&t);
    }
}

/* Values of single columns are what the features hold. */
TEST(truth_values_without_features)
{
    struct row_trial t;
    struct trial_stream stream = {.trial = &t};
    int there = 1;
    trial_open(&t, "Memory", 60, OJ_HOW_LEFT, FORM_LISTS, 60);
    t.with_join_rows = 1;
    trial_make_answers(&t);
    trial_write(&t);
    OGR_L_ResetReading(t.out_layer);
    trial_ok(oj_row_cursor_open(OGR_L_GetLayerDefn(t.out_layer), &t.options,
                                &stream.cursor, &trial_error));
    while (there)
    {
        struct oj_row_place place;
        OGRFeatureH feature, scratch;
        if (oj_row_cursor_take(stream.cursor, &place, 1) == 0)
        {
            trial_ok(trial_advance(&stream, &there, &trial_error));
            continue;
        }
        feature = OGR_L_GetNextFeature(t.out_layer);
        scratch = OGR_F_Create(OGR_L_GetLayerDefn(t.out_layer));
        ck_assert_ptr_nonnull(feature);
        for (int c = 0; c < t.options.n_columns; c++)
        {
            OGRFeatureH copy = OGR_F_Create(OGR_L_GetLayerDefn(t.out_layer));
            struct oj_value value;
            trial_ok(oj_row_cursor_value(stream.cursor, c, &place, scratch,
                                         &value, &trial_error));
            OGR_F_SetFieldRaw(copy, c, &value.raw);
            same_value(feature, copy, c, 1);
            OGR_F_Destroy(copy);
        }
        OGR_F_Destroy(feature);
        OGR_F_Destroy(scratch);
    }
    ck_assert_ptr_null(OGR_L_GetNextFeature(t.out_layer));
    oj_row_cursor_close(stream.cursor);
    trial_close(&t);
}

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
    trial_ok(
        oj_row_cursor_next(stream.cursor, feature, 0, &there, &trial_error));
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
    trial_ok(
        oj_row_cursor_next(stream.cursor, feature, 0, &there, &trial_error));
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
        oj_row_cursor_next(stream.cursor, feature, 0, &there, &trial_error),
        OJ_ERR_CANCELLED);
    ck_assert(!there);
    ck_assert_int_eq(oj_row_cursor_begin(stream.cursor, &t.batch[0], 9,
                                         &t.answer[1].matches, NULL,
                                         &trial_error),
                     OJ_ERR_INTERNAL);
    trial_ok(
        oj_row_cursor_next(stream.cursor, feature, 0, &there, &trial_error));
    ck_assert(!there);
    OGR_F_Destroy(feature);
    oj_row_cursor_close(stream.cursor);
    trial_close(&t);
}

static void open_trial_cursor(void *user, struct oj_row_cursor **cursor,
                              oj_status *status)
{
    struct row_trial *t = user;
    *status = oj_row_cursor_open(OGR_L_GetLayerDefn(t->out_layer), &t->options,
                                 cursor, &trial_error);
}

TEST(memory_each_allocation_fails)
{
    struct row_trial t;
    struct oj_row_cursor *cursor;
    oj_status status = OJ_ERR_NOMEM;
    trial_open(&t, "Memory", 10, OJ_HOW_LEFT, FORM_ONE, 10);
    for (int64_t n = 1; status == OJ_ERR_NOMEM; n++)
    {
        cursor = NULL;
        oj_alloc_fail_at(n);
        open_trial_cursor(&t, &cursor, &status);
        oj_alloc_fail_at(0);
        oj_row_cursor_close(cursor);
    }
    ck_assert_int_eq(status, OJ_OK);
    trial_close(&t);
}

int main(void)
{
    tests_open("row cursor");
    GDALAllRegister();
    CPLSetErrorHandler(CPLQuietErrorHandler); /* conversions lose something */
    return tests_run();
}
