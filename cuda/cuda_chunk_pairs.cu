#include "cuda_chunk_pairs.h"

#include "../flatten/oj_array.h"

#include <math.h>
#include <string.h>

static void drop_part(struct oj_cuda_device *device, cudaStream_t stream,
                      struct oj_cuda_part *part)
{
    oj_cuda_drop(device, stream, &part->found.row);
    oj_cuda_drop(device, stream, &part->found.measure);
    oj_free(part->row);
    oj_free(part->measure);
    part->row = NULL;
    part->measure = NULL;
}

/* measure of pairs that have none is NaN. */
static oj_status download(struct oj_cuda_slot *slot,
                          const struct oj_cuda_part *part, int32_t *row,
                          double *measure, struct oj_error *err)
{
    const struct oj_cuda_pairs *found = &part->found;
    OJ_TRY(oj_cuda_slot_download(slot, row, found->row.data,
                                 part->n * (int64_t)sizeof *row, err));
    if (found->measure.n > 0)
        return oj_cuda_slot_download(slot, measure, found->measure.data,
                                     part->n * (int64_t)sizeof *measure, err);
    for (int64_t i = 0; measure != NULL && i < part->n; i++)
        measure[i] = (double)NAN;
    return OJ_OK;
}

static oj_status to_host(struct oj_cuda_slot *slot, struct oj_cuda_part *part,
                         struct oj_error *err)
{
    int has_measure = part->found.measure.n > 0;
    part->row = (int32_t *)oj_malloc(part->n, sizeof *part->row);
    if (has_measure)
        part->measure = (double *)oj_malloc(part->n, sizeof *part->measure);
    if (part->row == NULL || (has_measure && part->measure == NULL))
        return oj_fail_nomem(err, part->n, sizeof *part->measure);
    OJ_TRY(download(slot, part, part->row, part->measure, err));
    oj_cuda_drop(slot->device, slot->stream, &part->found.row);
    oj_cuda_drop(slot->device, slot->stream, &part->found.measure);
    return OJ_OK;
}

oj_status oj_cuda_chunk_take(struct oj_cuda_chunk_pairs *chunk,
                             struct oj_cuda_slot *slot, int64_t n_rows,
                             struct oj_cuda_pairs *found, int keeps,
                             int64_t *offset, struct oj_error *err)
{
    struct oj_cuda_part part;
    oj_status status;
    OJ_TRY(oj_cuda_slot_download(slot, offset, found->offset.data + 1,
                                 n_rows * (int64_t)sizeof *offset, err));
    for (int64_t i = 0; chunk->n > 0 && i < n_rows; i++)
        offset[i] += chunk->n;
    if (found->n_pairs == 0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&chunk->part, chunk->n_parts, chunk->n_parts + 1,
                      &chunk->capacity, sizeof *chunk->part, err));
    memset(&part, 0, sizeof part);
    part.n = found->n_pairs;
    part.found.row = found->row;
    part.found.measure = found->measure;
    memset(&found->row, 0, sizeof found->row);
    memset(&found->measure, 0, sizeof found->measure);
    status = keeps ? OJ_OK : to_host(slot, &part, err);
    if (status != OJ_OK)
    {
        drop_part(slot->device, slot->stream, &part);
        return status;
    }
    chunk->device = slot->device;
    chunk->part[chunk->n_parts++] = part;
    chunk->n += part.n;
    return OJ_OK;
}

/* From the host to the host. */
static void copy(const struct oj_cuda_part *part, int32_t *row, double *measure)
{
    memcpy(row, part->row, (size_t)part->n * sizeof *row);
    if (part->measure != NULL)
        memcpy(measure, part->measure, (size_t)part->n * sizeof *measure);
    for (int64_t i = 0; part->measure == NULL && i < part->n; i++)
        measure[i] = (double)NAN;
}

oj_status oj_cuda_chunk_move(struct oj_cuda_chunk_pairs *chunk,
                             struct oj_cuda_slot *slot, int32_t *row,
                             double *measure, struct oj_error *err)
{
    int64_t at = 0;
    for (int64_t i = 0; i < chunk->n_parts; i++)
    {
        struct oj_cuda_part *part = &chunk->part[i];
        if (part->row != NULL)
            copy(part, row + at, measure + at);
        else
            OJ_TRY(download(slot, part, row + at, measure + at, err));
        drop_part(slot->device, slot->stream, part);
        at += part->n;
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
