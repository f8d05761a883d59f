/** What a join layer holds; for its own files only. */
#ifndef OJ_JOIN_LAYER_STATE_H
#define OJ_JOIN_LAYER_STATE_H

#include "oj_join_layer.h"
#include "oj_row_stream.h"

struct oj_join_layer
{
    struct oj_command command;
    char *name, *fid_column;  /* owned */
    char **metadata, **files; /* owned */
    struct oj_schema schema;
    struct oj_row_shape shape;           /* owns both definitions */
    struct oj_row_shape shape_of_single; /* owns asked; else like shape */

    /* Rows one after another; and rows asked for by FID, which do not disturb
     * them: a job of its own on the same join side. */
    struct oj_row_stream main, single;
    int is_single_open;

    /* The reader's filters. */
    int has_box, has_where;
    OGREnvelope box;
    char *where;        /* owned: where the input layer may filter by it */
    char **used_fields; /* owned: of the reader's condition; NULL: not known */

    GIntBig n_rows;     /* without filters; -1: not known yet */
    int is_one_row;     /* no input row gives two rows */
    int has_stream;     /* an Arrow stream is open */
    OGRFeatureH peeked; /* the next row, read already; or NULL */

    /* What the input layer can do. */
    int has_random_read, has_fast_count, has_fast_extent, has_fast_box;
};

/** Tells an error, in one line. */
void oj_join_layer_report(const struct oj_error *error);

/** 1 when every input row gives one row. */
int oj_join_layer_is_one_to_one(const struct oj_join_layer *layer);

/** Before something is read from the start: opens both sides anew where one of
 *  their files has changed. Does nothing while rows are read. */
OJ_MUST_USE oj_status oj_join_layer_refresh(struct oj_join_layer *layer,
                                            struct oj_error *err);

/** Opens layer->single, unless it is open. */
OJ_MUST_USE oj_status oj_join_layer_open_single(struct oj_join_layer *layer,
                                                struct oj_error *err);

/** Has the input layer filter by what the reader asks, as far as it may. */
void oj_join_layer_push_filters(struct oj_join_layer *layer);

/** Has the rows of shape look at what is ignored now. */
void oj_join_layer_look_at_ignored(const struct oj_join_layer *layer,
                                   const struct oj_row_shape *shape);

#endif
