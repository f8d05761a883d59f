/* oj_job_prepare_bounded(): the join side under -memory. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_compare.h"
#include "../../flatten/read/oj_attributes.h"
#include "../../flatten/read/oj_table.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "oj_job.h"
#include "oj_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Shares of -memory: a tile with its index; the rest is for batches, answers
 * and what GDAL holds. */
#define TILE_SHARE 0.5

/* ---- in memory, as long as it fits --------------------------------------- */

/* A reference takes its own beside what the join takes. */
static int64_t n_shares(const struct oj_command *command)
{
    return command->validate != NULL ? 1 + OJ_REFERENCE_SHARE : 1;
}

struct watch
{
    const struct oj_job *job;
    int is_too_large;
};

/* Stops the reading when what has been read, with its index, passes the bound.
 */
static int look(int64_t n_rows, void *user)
{
    struct watch *watch = user;
    const struct oj_job *job = watch->job;
    const struct oj_read_counts *counts = &job->join_side->counts;
    int64_t bytes = oj_tiles_estimate(16 * counts->n_vertices + 24 * n_rows +
                                          counts->n_table_bytes,
                                      counts->n_vertices);
    watch->is_too_large = bytes > job->command->memory / n_shares(job->command);
    return watch->is_too_large || oj_is_cancelled();
}

/* *fits: 0 when the join side has to go into tiles. */
static oj_status read_if_it_fits(struct oj_job *job, int *fits,
                                 struct oj_error *err)
{
    struct watch watch = {job, 0};
    oj_status status = oj_job_read_join_watched(job, look, &watch, err);
    *fits = 1;
    if (status != OJ_ERR_CANCELLED || !watch.is_too_large)
        return status;
    *fits = 0;
    oj_flat_buf_free(&job->join_side->buf);
    oj_table_free(job->join_side->table);
    job->join_side->table = NULL;
    return OJ_OK;
}

/* ---- in tiles ------------------------------------------------------------ */

/* The join side on its way into tiles. */
struct spill
{
    struct oj_job *job;
    struct oj_read_options reading;
    struct oj_layer_reader *reader;
    struct oj_batch batch;
    struct oj_side_work work;
    struct oj_table *table; /* of the batch */
    int64_t *fid;           /* [n_fids] of a SELECT */
    int64_t n_fids, cap_fids;
    int64_t last_fid;
    int is_ascending;
};

static void add_to_extent(const struct oj_flat *flat, double extent[4])
{
    for (int64_t i = 0; i < flat->n_vertices; i++)
    {
        extent[0] = flat->x[i] < extent[0] ? flat->x[i] : extent[0];
        extent[1] = flat->y[i] < extent[1] ? flat->y[i] : extent[1];
        extent[2] = flat->x[i] > extent[2] ? flat->x[i] : extent[2];
        extent[3] = flat->y[i] > extent[3] ? flat->y[i] : extent[3];
    }
}

/* Where the features are: what the layer says at once, or else where those of
 * the first batch are. */
static void find_extent(const struct spill *spill, const struct oj_flat *flat,
                        double extent[4])
{
    const struct oj_source *join = &spill->job->join;
    OGREnvelope envelope;
    extent[0] = extent[1] = INFINITY;
    extent[2] = extent[3] = -INFINITY;
    if (join->transformation == NULL && join->side->where == NULL &&
        OGR_L_GetExtent(join->layer, &envelope, 0) == OGRERR_NONE)
    {
        extent[0] = envelope.MinX;
        extent[1] = envelope.MinY;
        extent[2] = envelope.MaxX;
        extent[3] = envelope.MaxY;
    }
    if (!(extent[2] - extent[0] < INFINITY))
        add_to_extent(flat, extent);
    if (!(extent[2] - extent[0] < INFINITY))
        extent[0] = extent[1] = extent[2] = extent[3] = 0.0;
}

static oj_status open_tiles(struct spill *spill, const struct oj_flat *flat,
                            struct oj_error *err)
{
    const struct oj_command *command = spill->job->command;
    double extent[4];
    find_extent(spill, flat, extent);
    return oj_tiles_open(
        &spill->job->tiles,
        command->in_place ? command->input.dataset : command->dst,
        (int64_t)(TILE_SHARE * (double)command->memory) / n_shares(command),
        extent, spill->table, err);
}

/* FIDs of a layer are unique; those of a SELECT may repeat, which is known only
 * at the end. */
static oj_status keep_fids(struct spill *spill, const struct oj_flat *flat,
                           struct oj_error *err)
{
    if (!spill->job->join.is_result_set)
        return OJ_OK;
    for (int64_t i = 0; spill->is_ascending && i < flat->n_features; i++)
    {
        spill->is_ascending = flat->fid[i] > spill->last_fid;
        spill->last_fid = flat->fid[i];
    }
    OJ_TRY(oj_reserve(&spill->fid, spill->n_fids,
                      spill->n_fids + flat->n_features, &spill->cap_fids,
                      sizeof *spill->fid, err));
    memcpy(spill->fid + spill->n_fids, flat->fid,
           (size_t)flat->n_features * sizeof *spill->fid);
    spill->n_fids += flat->n_features;
    return OJ_OK;
}

static oj_status spill_batch(struct spill *spill, struct oj_error *err)
{
    struct oj_job *job = spill->job;
    struct oj_row_values values = {NULL, spill->batch.attributes};
    struct oj_flat flat = oj_flat_buf_view(&spill->batch.flat);
    flat.n_features = spill->batch.n_rows;
    OJ_TRY(oj_sides_make(&job->sides, 1, 1, &values, &spill->work, &flat, err));
    oj_table_free(spill->table);
    spill->table = NULL;
    OJ_TRY(oj_table_new(job->join.layer, spill->reading.fields,
                        spill->reading.n_fields, &spill->table, err));
    OJ_TRY(oj_table_append(spill->table, spill->batch.attributes,
                           spill->batch.n_rows, err));
    if (!job->tiles.scratch.is_open)
        OJ_TRY(open_tiles(spill, &flat, err));
    OJ_TRY(keep_fids(spill, &flat, err));
    return oj_tiles_add(&job->tiles, &flat, spill->table,
                        spill->batch.first_row, err);
}

static oj_status spill_all(struct spill *spill, struct oj_error *err)
{
    struct oj_job *job = spill->job;
    OJ_TRY(oj_layer_reader_open(job->join.layer, &spill->reading,
                                &spill->reader, err));
    for (;;)
    {
        OJ_TRY(oj_layer_reader_next(spill->reader, &spill->batch, err));
        if (spill->batch.n_rows == 0)
            break;
        OJ_TRY(spill_batch(spill, err));
        OJ_TRY(oj_cancel_check(err));
    }
    job->join_side->counts = *oj_layer_reader_counts(spill->reader);
    return oj_tiles_finish(&job->tiles, err);
}

static int fids_are_unique(struct spill *spill)
{
    if (spill->is_ascending)
        return 1;
    qsort(spill->fid, (size_t)spill->n_fids, sizeof *spill->fid,
          oj_compare_int64);
    for (int64_t i = 1; i < spill->n_fids; i++)
    {
        if (spill->fid[i] == spill->fid[i - 1])
            return 0;
    }
    return 1;
}

static void free_spill(struct spill *spill)
{
    oj_batch_free(&spill->batch);
    oj_side_work_free(&spill->work);
    oj_layer_reader_close(spill->reader);
    oj_table_free(spill->table);
    oj_free(spill->fid);
}

/* Answers point at the fields of an empty table, of the same columns. */
static oj_status open_tiled(struct oj_job *job, int unique,
                            struct oj_error *err)
{
    const struct oj_options options = oj_job_engine_options(job);
    if (job->tiles.columns != NULL)
        OJ_TRY(
            oj_table_new_like(job->tiles.columns, &job->join_side->table, err));
    return oj_tiled_join_open(&job->tiles, &job->relation,
                              job->command->backend, &options, unique,
                              &job->tiled, err);
}

static oj_status prepare_tiles(struct oj_job *job, struct oj_error *err)
{
    struct spill spill = {0};
    double start = oj_clock_seconds();
    int unique;
    oj_status status;
    spill.job = job;
    spill.reading = oj_job_read_options(job, &job->join);
    spill.reading.keep_attributes = 1;
    spill.last_fid = INT64_MIN;
    spill.is_ascending = 1;
    status = spill_all(&spill, err);
    unique = status == OJ_OK && fids_are_unique(&spill);
    free_spill(&spill);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    job->join_side->read_s = oj_clock_seconds() - start;
    OJ_TRY(oj_source_check_count(&job->join, -1, job->join_side->counts.n_rows,
                                 err));
    return open_tiled(job, unique, err);
}

/* Large arrays of a tile go back to the system with the tile: by default glibc
 * keeps ever larger ones, in an arena for each thread. */
static void return_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

oj_status oj_job_prepare_bounded(struct oj_job *job, struct oj_error *err)
{
    const struct oj_options options = oj_job_engine_options(job);
    int fits;
    return_memory();
    OJ_TRY(read_if_it_fits(job, &fits, err));
    if (!fits)
        return prepare_tiles(job, err);
    return oj_join_open(&job->join_side->flat, &job->relation,
                        job->command->backend, &options,
                        &job->join_side->engine, err);
}
