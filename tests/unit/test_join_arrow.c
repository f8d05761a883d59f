/* The native Arrow stream of a join against the features of the same rows and
 * against GDAL's generic stream of them: every type and shape, every way of
 * keeping rows, sizes of batches, limits, ends and errors. Kind: truth cases.
 */
#include "../../driver/oj_join_arrow.h"
#include "../../flatten/oj_layer_arrow.h"

#include "run_tests.h"

#if OJ_HAVE_ARROW
#include "arrow_text.h"
#include "row_trial.h"

#include <errno.h>

static void count_closed(void *user)
{
    ((struct trial_stream *)user)->n_closed++;
}

/* The stream of a trial whose answers are made. */
static void open_stream(struct trial *t, struct trial_stream *source,
                        const char *fid_column, char **options,
                        struct ArrowArrayStream *stream)
{
    struct oj_arrow_rows rows = {NULL, trial_advance, count_closed, source};
    memset(source, 0, sizeof *source);
    source->trial = t;
    t->at = 0;
    trial_ok(oj_row_cursor_open(OGR_L_GetLayerDefn(t->out_layer), &t->options,
                                &source->cursor, &trial_error));
    oj_row_cursor_number(source->cursor, 0);
    rows.cursor = source->cursor;
    ck_assert(oj_join_arrow_open(OGR_L_GetLayerDefn(t->out_layer), fid_column,
                                 &rows, options, stream));
}

static void close_stream(struct trial_stream *source,
                         struct ArrowArrayStream *stream)
{
    if (stream->release != NULL)
        stream->release(stream);
    ck_assert_int_eq(source->n_closed, 1);
    oj_row_cursor_close(source->cursor);
}

static const char *after_schema(const struct text *text)
{
    return strstr(text->at, "rows:\n") + 6;
}

/* GDAL 3.6 writes bits of booleans one over the other, and comes to lists of
 * them, and to dates before 1970, in ways of its own: only schemas count. */
static void same_as_generic(struct trial *t, const struct text *ours,
                            char **options, int with_rows)
{
    struct ArrowArrayStream stream;
    struct text generic = {0};
    ck_assert(OGR_L_GetArrowStream(t->out_layer, &stream, options));
    say_stream(&generic, &stream, 0);
    stream.release(&stream);
    if (!with_rows)
    {
        char *end = (char *)after_schema(&generic);
        *end = '\0';
        ck_assert(strncmp(generic.at, ours->at, strlen(generic.at)) == 0);
    }
    else
        same_text(generic.at, ours->at);
    free(generic.at);
}

static void same_rows(struct trial *t, char **options, int64_t batch_rows)
{
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct text ours = {0}, features = {0};
    int64_t n;
    trial_make_answers(t);
    trial_write(t);
    open_stream(t, &source, "", options, &stream);
    n = say_stream(&ours, &stream, batch_rows);
    ck_assert_int_eq(n, say_layer(&features, t->out_layer,
                                  CPLTestBool(CSLFetchNameValueDef(
                                      options, "INCLUDE_FID", "YES"))
                                      ? "OGC_FID"
                                      : NULL,
                                  strstr(ours.at, "tsm:UTC") != NULL));
    same_text(features.at, after_schema(&ours));
    same_as_generic(t, &ours, options, 0);
    close_stream(&source, &stream);
    free(ours.at);
    free(features.at);
}

START_TEST(truth_every_how_and_form)
{
    static const enum oj_how hows[] = {OJ_HOW_LEFT, OJ_HOW_INNER, OJ_HOW_SEMI,
                                       OJ_HOW_ANTI};
    for (int how = 0; how < 4; how++)
    {
        for (int form = FORM_ONE; form <= FORM_PICKED; form++)
        {
            struct trial t;
            trial_open(&t, form % 2 ? "Memory" : "GPKG", 100, hows[how],
                       (enum trial_form)form, 37);
            t.with_join_rows = how < 2;
            same_rows(&t, NULL, 65536);
            trial_close(&t);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tests_open("join as an Arrow stream");
    GDALAllRegister();
    CPLSetErrorHandler(CPLQuietErrorHandler); /* conversions lose something */
    tcase_add_test(tcase, truth_every_how_and_form);
    return tests_run();
}
#else
int main(void)
{
    return 77; /* GDAL has no Arrow streams */
}
#endif
