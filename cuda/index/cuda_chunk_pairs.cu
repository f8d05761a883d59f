#include "cuda_chunk_pairs.h"

#include "../../flatten/base/oj_array.h"
#include "../device/oj_streamed.h"

#include <math.h>
#include <string.h>

#define BLOCK 256

/* A thread writes so many counts one after another to the host. */
#define THREAD_ROWS 16

static void drop_part(struct oj_cuda_device *device, cudaStream_t stream,
                      struct oj_cuda_part *part)
{
    oj_cuda_pairs_drop(device, stream, &part->found);
    oj_free(part->small_count);
    oj_free(part->count);
    oj_free(part->row);
    oj_free(part->measure);
    memset(part, 0, sizeof *part);
}

/* Stored at once. */
template <typename Count> struct alignas(16) thread_counts
{
    Count of[THREAD_ROWS];
};

/* To memory of the host, in whole structs. *is_large becomes 1 where a count
 * does not fit. */
template <typename Count>
static __global__ void write_counts(int64_t n, const int64_t *offset,
                                    struct thread_counts<Count> *out,
                                    unsigned long long *is_large)
{
    int64_t thread = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t first = thread * THREAD_ROWS;
    struct thread_counts<Count> count;
    if (first >= n)
        return;
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; i++)
    {
        int64_t n_pairs =
            first + i < n ? offset[first + i + 1] - offset[first + i] : 0;
        count.of[i] = (Count)n_pairs;
        if ((int64_t)count.of[i] != n_pairs)
            *is_large = 1;
    }
    out[thread] = count;
}

/* The kernel writes to the stage, since a copy would wait behind the copies of
 * all other chunks. Everything on the slot's stream is done on return. */
template <typename Count>
static oj_status read_counts(struct oj_cuda_slot *slot, int64_t n_rows,
                             const struct oj_cuda_pairs *found, Count **out,
                             int *fits, struct oj_error *err)
{
    struct thread_counts<Count> *staged =
        (struct thread_counts<Count> *)(void *)slot->stage.data;
    int64_t n_threads = (n_rows + THREAD_ROWS - 1) / THREAD_ROWS;
    unsigned long long *is_large = slot->matched;
    *is_large = 0;
    write_counts<Count>
        <<<oj_blocks(n_threads, BLOCK), BLOCK, 0, slot->stream>>>(
            n_rows, found->offset.data, staged, is_large);
    OJ_CUDA_TRY_LAUNCH("counting pairs", err);
    OJ_TRY(oj_cuda_slot_wait(slot, err));
    *fits = !*is_large;
    if (!*fits)
        return OJ_OK;
    *out = (Count *)oj_malloc(n_rows, sizeof **out);
    if (*out == NULL)
        return oj_fail_nomem(err, n_rows, sizeof **out);
    memcpy(*out, staged, (size_t)n_rows * sizeof **out);
    return OJ_OK;
}

/* Takes the arrays of found but its offsets. */
static oj_status take_found(struct oj_cuda_slot *slot, int64_t n_rows,
                            struct oj_cuda_pairs *found,
                            struct oj_cuda_part *part, struct oj_error *err)
{
    int fits = 0;
    part->n_rows = n_rows;
    part->n = found->n_pairs;
    OJ_TRY(read_counts(slot, n_rows, found, &part->small_count, &fits, err));
    if (!fits)
        OJ_TRY(read_counts(slot, n_rows, found, &part->count, &fits, err));
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
    part->row = (int32_t *)oj_malloc(part->n, sizeof *part->row);
    if (has_measure)
        part->measure = (double *)oj_malloc(part->n, sizeof *part->measure);
    if (part->row == NULL || (has_measure && part->measure == NULL))
        return oj_fail_nomem(err, part->n, sizeof *part->measure);
    OJ_TRY(oj_cuda_slot_download(slot, part->row, part->found.row.data,
                                 part->n * (int64_t)sizeof *part->row, err));
    if (has_measure)
        OJ_TRY(oj_cuda_slot_download(
            slot, part->measure, part->found.measure.data,
            part->n * (int64_t)sizeof *part->measure, err));
    oj_cuda_pairs_drop(slot->device, slot->stream, &part->found);
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
    if (status == OJ_OK && !keeps)
        status = to_host(slot, &part, err);
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

template <typename Count>
static void put_ends(struct oj_cuda_pairs_place *to, int64_t n,
                     const Count *count)
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

static void put_part_ends(struct oj_cuda_pairs_place *to,
                          const struct oj_cuda_part *part)
{
    if (part->count != NULL)
        put_ends(to, part->n_rows, part->count);
    else
        put_ends(to, part->n_rows, part->small_count);
}

/* Ends are put while the first pairs are on their way. */
static oj_status move_part(struct oj_cuda_slot *slot,
                           const struct oj_cuda_part *part,
                           struct oj_cuda_pairs_place *to, struct oj_error *err)
{
    int64_t step = oj_cuda_slot_room(slot) / OJ_CUDA_PAIR_BYTES;
    double *measure = (double *)(void *)slot->stage.data;
    int32_t *row = (int32_t *)(void *)(measure + step);
    const double *from = part->found.measure.data;
    for (int64_t at = 0; at == 0 || at < part->n; at += step)
    {
        int64_t n = part->n - at < step ? part->n - at : step;
        if (n > 0)
            OJ_TRY(oj_cuda_slot_enqueue(slot, row, part->found.row.data + at,
                                        n * (int64_t)sizeof *row, err));
        if (n > 0 && from != NULL)
            OJ_TRY(oj_cuda_slot_enqueue(slot, measure, from + at,
                                        n * (int64_t)sizeof *measure, err));
        if (at == 0)
            put_part_ends(to, part);
        OJ_TRY(oj_cuda_slot_wait(slot, err));
        put_pairs(to, n, row, from != NULL ? measure : NULL);
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
        if (part->row != NULL)
        {
            put_part_ends(to, part);
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
