#include "cuda_chunk_pairs.h"

#include "../../flatten/base/oj_array.h"
#include "../device/oj_streamed.h"

#include <math.h>
#include <string.h>

#define BLOCK 256

/* Bytes of a row's count and of a pair, side by side in a stage. */
#define STAGE_BYTES (2 * sizeof(int32_t) + sizeof(double))

static void drop_on_device(struct oj_cuda_device *device, cudaStream_t stream,
                           struct oj_cuda_part *part)
{
    oj_cuda_drop(device, stream, &part->d_count);
    oj_cuda_pairs_drop(device, stream, &part->found);
}

static void drop_part(struct oj_cuda_device *device, cudaStream_t stream,
                      struct oj_cuda_part *part)
{
    drop_on_device(device, stream, part);
    oj_free(part->count);
    oj_free(part->row);
    oj_free(part->measure);
    memset(part, 0, sizeof *part);
}

static __global__ void set_counts(int64_t n, const int64_t *offset,
                                  int32_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        count[i] = (int32_t)(offset[i + 1] - offset[i]);
}

/* Takes the arrays of found; its offsets become counts, which are shorter. */
static oj_status take_found(struct oj_cuda_slot *slot, int64_t n_rows,
                            struct oj_cuda_pairs *found,
                            struct oj_cuda_part *part, struct oj_error *err)
{
    cudaStream_t stream = slot->stream;
    part->n_rows = n_rows;
    part->n = found->n_pairs;
    OJ_TRY(oj_cuda_make(slot->device, stream, n_rows, &part->d_count, err));
    if (n_rows > 0)
        set_counts<<<oj_blocks(n_rows, BLOCK), BLOCK, 0, stream>>>(
            n_rows, found->offset.data, part->d_count.data);
    OJ_CUDA_TRY_LAUNCH("counting pairs", err);
    part->found.row = found->row;
    part->found.measure = found->measure;
    memset(&found->row, 0, sizeof found->row);
    memset(&found->measure, 0, sizeof found->measure);
    return OJ_OK;
}

static oj_status to_host(struct oj_cuda_slot *slot, struct oj_cuda_part *part,
                         struct oj_error *err)
{
    int has_measure = part->found.measure.n > 0;
    part->count = (int32_t *)oj_malloc(part->n_rows, sizeof *part->count);
    part->row = (int32_t *)oj_malloc(part->n, sizeof *part->row);
    if (has_measure)
        part->measure = (double *)oj_malloc(part->n, sizeof *part->measure);
    if (part->count == NULL || part->row == NULL ||
        (has_measure && part->measure == NULL))
        return oj_fail_nomem(err, part->n, sizeof *part->measure);
    OJ_TRY(oj_cuda_slot_download(slot, part->count, part->d_count.data,
                                 part->n_rows * (int64_t)sizeof *part->count,
                                 err));
    OJ_TRY(oj_cuda_slot_download(slot, part->row, part->found.row.data,
                                 part->n * (int64_t)sizeof *part->row, err));
    if (has_measure)
        OJ_TRY(oj_cuda_slot_download(
            slot, part->measure, part->found.measure.data,
            part->n * (int64_t)sizeof *part->measure, err));
    drop_on_device(slot->device, slot->stream, part);
    return OJ_OK;
}

oj_status oj_cuda_chunk_take(struct oj_cuda_chunk_pairs *chunk,
                             struct oj_cuda_slot *slot, int64_t n_rows,
                             struct oj_cuda_pairs *found, int keeps,
                             struct oj_error *err)
{
    struct oj_cuda_part part;
    oj_status status;
    OJ_TRY(oj_reserve(&chunk->part, chunk->n_parts, chunk->n_parts + 1,
                      &chunk->capacity, sizeof *chunk->part, err));
    memset(&part, 0, sizeof part);
    status = take_found(slot, n_rows, found, &part, err);
    if (status == OJ_OK)
        status =
            keeps ? oj_cuda_slot_wait(slot, err) : to_host(slot, &part, err);
    if (status != OJ_OK)
    {
        drop_part(slot->device, slot->stream, &part);
        return status;
    }
    chunk->device = slot->device;
    chunk->part[chunk->n_parts++] = part;
    chunk->n += part.n;
    chunk->n_kept += keeps ? part.n : 0;
    return OJ_OK;
}

static void put_ends(struct oj_cuda_pairs_place *to, int64_t n,
                     const int32_t *count)
{
    int64_t *end = to->end;
    int64_t at = to->at, n_matched = to->n_matched;
    for (int64_t i = 0; i < n; i++)
    {
        at += count[i];
        n_matched += count[i] > 0;
        if (to->streams)
            oj_stream_int64(&end[i], at);
        else
            end[i] = at;
    }
    oj_stream_end();
    to->end += n;
    to->at = at;
    to->n_matched = n_matched;
}

/* measure NULL: these pairs have none. */
static void put_pairs(struct oj_cuda_pairs_place *to, int64_t n,
                      const int32_t *row, const double *measure)
{
    if (n == 0) /* and perhaps nowhere to put them */
        return;
    oj_stream_or_copy(to->streams, to->row, row, (size_t)n * sizeof *row);
    if (measure != NULL)
        oj_stream_or_copy(to->streams, to->measure, measure,
                          (size_t)n * sizeof *measure);
    for (int64_t i = 0; measure == NULL && i < n; i++)
        to->measure[i] = (double)NAN;
    to->row += n;
    to->measure += n;
}

static int64_t within(int64_t n, int64_t most)
{
    return n < 0 ? 0 : n < most ? n : most;
}

/* Counts of rows and pairs come through the stage side by side. */
static oj_status move_part(struct oj_cuda_slot *slot,
                           const struct oj_cuda_part *part,
                           struct oj_cuda_pairs_place *to, struct oj_error *err)
{
    int64_t step = oj_cuda_slot_room(slot) / (int64_t)STAGE_BYTES;
    double *measure = (double *)(void *)slot->stage.data;
    int32_t *count = (int32_t *)(void *)(measure + step), *row = count + step;
    const double *from = part->found.measure.data;
    int64_t n = part->n > part->n_rows ? part->n : part->n_rows;
    for (int64_t at = 0; at < n; at += step)
    {
        int64_t n_rows = within(part->n_rows - at, step);
        int64_t n_pairs = within(part->n - at, step);
        if (n_rows > 0)
            OJ_TRY(oj_cuda_slot_enqueue(slot, count, part->d_count.data + at,
                                        n_rows * (int64_t)sizeof *count, err));
        OJ_TRY(oj_cuda_slot_wait(slot, err));
        if (n_pairs > 0)
            OJ_TRY(oj_cuda_slot_enqueue(slot, row, part->found.row.data + at,
                                        n_pairs * (int64_t)sizeof *row, err));
        if (n_pairs > 0 && from != NULL)
            OJ_TRY(oj_cuda_slot_enqueue(slot, measure, from + at,
                                        n_pairs * (int64_t)sizeof *measure,
                                        err));
        put_ends(to, n_rows, count); /* while pairs are on their way */
        OJ_TRY(oj_cuda_slot_wait(slot, err));
        put_pairs(to, n_pairs, row, from != NULL ? measure : NULL);
    }
    return OJ_OK;
}

oj_status oj_cuda_chunk_move(struct oj_cuda_chunk_pairs *chunk,
                             struct oj_cuda_slot *slot,
                             struct oj_cuda_pairs_place *to,
                             struct oj_error *err)
{
    for (int64_t i = 0; i < chunk->n_parts; i++)
    {
        struct oj_cuda_part *part = &chunk->part[i];
        if (part->count != NULL)
        {
            put_ends(to, part->n_rows, part->count);
            put_pairs(to, part->n, part->row, part->measure);
        }
        else
            OJ_TRY(move_part(slot, part, to, err));
        drop_part(slot->device, slot->stream, part);
    }
    return OJ_OK;
}

void oj_cuda_chunk_free(struct oj_cuda_chunk_pairs *chunk)
{
    if (chunk->n_parts > 0)
        (void)cudaSetDevice(chunk->device->ordinal);
    for (int64_t i = 0; i < chunk->n_parts; i++)
        drop_part(chunk->device, chunk->device->stream, &chunk->part[i]);
    oj_free(chunk->part);
    memset(chunk, 0, sizeof *chunk);
}
