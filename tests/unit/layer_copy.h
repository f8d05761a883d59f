/** Reads layers with the layer reader and writes them with the layer writer. */
#ifndef OJ_TEST_LAYER_COPY_H
#define OJ_TEST_LAYER_COPY_H

#include "layers.h"
#include "run_tests.h"

#include "../../flatten/write/oj_layer_write.h"

static int all_fields[N_FIELDS + 8];

static inline struct oj_read_options reading(OGRLayerH layer, int use_lanes,
                                             int64_t batch_rows)
{
    struct oj_read_options options;
    memset(&options, 0, sizeof options);
    options.batch_rows = batch_rows;
    options.limit = -1;
    options.n_fields = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer));
    options.fields = all_fields;
    for (int i = 0; i < options.n_fields; i++)
        all_fields[i] = i;
    options.keep_attributes = 1;
    options.lanes = use_lanes ? OJ_LANES_ALL : 0;
    options.ignore_unwanted = 1;
    return options;
}

/* Returns options that write all columns of an input layer. columns must have
 * room for them. */
static inline struct oj_write_options writing(OGRLayerH layer,
                                              struct oj_column *columns)
{
    struct oj_write_options options;
    memset(&options, 0, sizeof options);
    options.n_columns = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer));
    options.columns = columns;
    options.keep_fids = 1;
    for (int i = 0; i < options.n_columns; i++)
    {
        columns[i].origin = OJ_COLUMN_INPUT;
        columns[i].source = columns[i].target = i;
    }
    return options;
}

static inline void no_matches(struct oj_matches *matches, int64_t n)
{
    ck_assert_int_eq(oj_matches_reserve(matches, n, n, 0, NULL), OJ_OK);
    for (int64_t i = 0; i < n; i++)
    {
        matches->join_row[i] = -1;
        matches->measure[i] = NAN;
    }
}

/* Reads a layer without OGR geometries, once by a lane and once feature by
 * feature, and asserts that the arrays are equal. name is the lane that must
 * read all rows; if it is NULL, no lane may read them. */
static inline void compare_arrays(OGRLayerH layer,
                                  const struct oj_read_options *by_lane,
                                  const char *name)
{
    struct oj_read_options options[2] = {reading(layer, 0, by_lane->batch_rows),
                                         *by_lane};
    struct oj_read_counts counts[2];
    struct oj_flat_buf buf[2] = {{.n_features = 0}};
    struct oj_table *table[2];
    struct oj_flat flat[2];
    struct oj_error err;
    for (int way = 0; way < 2; way++)
    {
        ck_assert_int_eq(oj_layer_read_all(layer, &options[way], &buf[way],
                                           &table[way], &counts[way], NULL,
                                           NULL, &err),
                         OJ_OK);
        flat[way] = oj_flat_buf_view(&buf[way]);
    }
    ck_assert_int_eq(counts[1].lane != NULL, name != NULL);
    if (name != NULL)
        ck_assert_str_eq(counts[1].lane, name);
    ck_assert_mem_eq(&counts[0].shapes, &counts[1].shapes,
                     sizeof counts[0].shapes);
    ck_assert_int_eq(flat[0].n_features, flat[1].n_features);
    ck_assert_int_eq(flat[0].n_vertices, flat[1].n_vertices);
    ck_assert_int_eq(oj_table_rows(table[1]), flat[1].n_features);
    ck_assert_mem_eq(flat[0].fid, flat[1].fid,
                     (size_t)flat[0].n_features * sizeof *flat[0].fid);
    ck_assert_mem_eq(flat[0].x, flat[1].x,
                     (size_t)flat[0].n_vertices * sizeof(double));
    ck_assert_mem_eq(flat[0].y, flat[1].y,
                     (size_t)flat[0].n_vertices * sizeof(double));
    for (int way = 0; way < 2; way++)
    {
        oj_flat_buf_free(&buf[way]);
        oj_table_free(table[way]);
    }
}

/* Copies all rows, without pairs. Returns the status of the first failure; the
 * rows read before are written. */
static inline oj_status copy_layer(OGRLayerH from, OGRLayerH to,
                                   const struct oj_read_options *options,
                                   struct oj_read_counts *counts,
                                   struct oj_error *err)
{
    struct oj_column columns[N_FIELDS + 8];
    struct oj_write_options write_options = writing(from, columns);
    struct oj_layer_reader *reader;
    struct oj_layer_writer *writer;
    struct oj_batch batch = {0};
    MATCHES matches = {0};
    int64_t n = 0;
    oj_status status = oj_layer_reader_open(from, options, &reader, err);
    ck_assert_int_eq(status, OJ_OK);
    status = oj_layer_writer_open(to, &write_options, &writer, err);
    ck_assert_int_eq(status, OJ_OK);
    for (;;)
    {
        status = oj_layer_reader_next(reader, &batch, err);
        if (status != OJ_OK || batch.n_rows == 0)
            break;
        ck_assert_int_eq(batch.first_row, n);
        n += batch.n_rows;
        no_matches(&matches, batch.n_rows);
        status = oj_layer_writer_write(writer, &batch, 0, &matches, NULL, err);
        if (status != OJ_OK)
            break;
    }
    if (status == OJ_OK)
        ck_assert_int_eq(oj_layer_writer_counts(writer)->n_rows, n);
    if (counts != NULL)
        *counts = *oj_layer_reader_counts(reader);
    oj_batch_free(&batch);
    oj_layer_writer_close(writer);
    oj_layer_reader_close(reader);
    return status;
}

#endif
