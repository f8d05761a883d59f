/* Single rows of the input side, while it is not streamed. */
#include "../base/oj_message.h"
#include "oj_job.h"

static oj_status open_reader(struct oj_job *job, int is_filtered,
                             struct oj_error *err)
{
    struct oj_read_options reading = oj_job_read_options(job, &job->input);
    reading.keep_attributes = 1;
    reading.use_arrow = 0;
    reading.batch_rows = 1;
    if (is_filtered) /* since the last row, too */
        oj_job_end_reading(job);
    if (job->reader != NULL)
        return OJ_OK;
    return oj_layer_reader_open(job->input.layer, &reading, &job->reader, err);
}

static oj_status read_row(struct oj_job *job, int64_t fid, int is_filtered,
                          struct oj_batch *batch, struct oj_error *err)
{
    OJ_TRY(open_reader(job, is_filtered, err));
    if (!is_filtered)
        return oj_layer_reader_get(job->reader, fid, batch, err);
    OJ_TRY(oj_layer_reader_next(job->reader, batch, err));
    if (batch->n_rows > 0 && batch->flat.fid[0] != fid)
        batch->n_rows = 0;
    return OJ_OK;
}

oj_status oj_job_read_one(struct oj_job *job, int64_t fid, int is_filtered,
                          struct oj_flat *flat, int *there,
                          struct oj_error *err)
{
    struct oj_batch *batch = &job->batches[0];
    struct oj_row_values values = {0};
    oj_status status = read_row(job, fid, is_filtered, batch, err);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    *there = batch->n_rows > 0;
    if (!*there)
        return OJ_OK;
    *flat = oj_flat_buf_view(&batch->flat);
    flat->n_features = batch->n_rows;
    values.attributes = batch->attributes;
    return oj_sides_make(&job->sides, 0, 0, &values, &job->batch_work[0], flat,
                         err);
}
