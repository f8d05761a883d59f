/** The native Arrow stream of answers made by hand. */
#ifndef OJ_TEST_ARROW_TRIAL_H
#define OJ_TEST_ARROW_TRIAL_H

#include "../../../driver/dataset/oj_join_arrow.h"

#include "../row_trial.h"
#include "arrow_text.h"

static inline void count_closed(void *user)
{
    ((struct trial_stream *)user)->n_closed++;
}

/* What a stream of t is made from, and GDAL's for its schema. */
static inline void open_source(struct row_trial *t, struct trial_stream *source,
                               char **options, struct ArrowArrayStream *stream)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(t->out_layer);
    memset(source, 0, sizeof *source);
    source->trial = t;
    t->at = 0;
    trial_ok(
        oj_row_cursor_open(defn, &t->options, &source->cursor, &trial_error));
    oj_row_cursor_number(source->cursor, 0);
    source->generic = open_generic(defn, options, stream);
}

static inline void close_source(struct trial_stream *source)
{
    oj_row_cursor_close(source->cursor);
    GDALClose(source->generic);
}

/* 1, or 0 where the stream is left to GDAL. */
static inline int try_stream(struct row_trial *t, struct trial_stream *source,
                             char **options, struct ArrowArrayStream *stream)
{
    struct oj_arrow_rows rows = {NULL, trial_advance, count_closed, source};
    open_source(t, source, options, stream);
    rows.cursor = source->cursor;
    return oj_join_arrow_open(OGR_L_GetLayerDefn(t->out_layer), &rows, options,
                              stream);
}

static inline void open_stream(struct row_trial *t, struct trial_stream *source,
                               char **options, struct ArrowArrayStream *stream)
{
    ck_assert(try_stream(t, source, options, stream));
}

static inline void close_stream(struct trial_stream *source,
                                struct ArrowArrayStream *stream)
{
    if (stream->release != NULL)
        stream->release(stream);
    ck_assert_ptr_null(stream->release);
    ck_assert_int_eq(source->n_closed, 1);
    close_source(source);
}

static inline const char *after_schema(const struct arrow_text *text)
{
    return strstr(text->at, "rows:\n") + 6;
}

#endif
