#include "../../../flatten/base/oj_alloc.h"
#include "../device/cuda_copy.h"
#include "cuda_index.h"
#include "cuda_pair_listing.cuh"
#include "cuda_row_shares.cuh"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* A batch is cut into chunks, and each worker takes the next chunk. A worker
 * owns a slot of a device: it copies its chunk in, waits for the kernels and
 * copies the answers out, while other workers are in other phases. Answers are
 * stored by row, so any worker can take any chunk. */
enum
{
    BLOCK = 256,
    /* If device memory is missing, a chunk is halved, but not below this number
     * of rows. */
    LEAST_ROWS = 4096,
    TIED_BLOCK = 64, /* rows that are scanned for ties at a time */
    TIES_OF = 64     /* room is reserved for ties in one of this many rows */
};

/** Device memory of a slot, in bytes per row. */
#define SLOT_ROW_BYTES 28

/** Size of an open row (glossary) with its answer, in bytes. */
#define OPEN_ANSWER_BYTES 20

/** Size of a slot's stage (pinned memory) in bytes per row. The stage holds, in
 *  turn, coordinates (16), answers (12), and open rows with their answers
 *  (20). */
#define STAGE_ROW_BYTES OPEN_ANSWER_BYTES

/** A slot has room for the open rows of this many chunks, even if all their
 *  rows are open. */
#define OPEN_CHUNKS 4

/** Device memory in bytes per open row. */
#define OPEN_ROW_BYTES 24

/* ---- results in host memory ---------------------------------------------- */

/* Results with more bytes are stored by instructions that bypass the caches, so
 * that the processor does not read a cache line before overwriting it. This
 * saves a tenth of the time of a join of 170 million rows into pageable memory
 * on 16 threads. */
static const int64_t most_cached_bytes = (int64_t)512 << 20;

static void store_past_caches(int64_t *to, int64_t value)
{
#ifdef __SSE2__
    _mm_stream_si64((long long *)(void *)to, (long long)value);
#else
    *to = value;
#endif
}

/* Makes stores past the caches visible to other threads. Must be called before
 * another thread reads what was stored. */
static void end_stores_past_caches(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* Copies like memcpy(), but stores past the caches. */
static void copy_past_caches(void *to, const void *from, size_t n)
{
#ifdef __SSE2__
    char *at = (char *)to;
    const char *next = (const char *)from;
    size_t head = (size_t)(-(uintptr_t)at % sizeof(__m128i));
    head = head < n ? head : n;
    memcpy(at, next, head);
    for (at += head, next += head, n -= head; n >= sizeof(__m128i);
         at += sizeof(__m128i), next += sizeof(__m128i), n -= sizeof(__m128i))
        _mm_stream_si128((__m128i *)(void *)at,
                         _mm_loadu_si128((const __m128i *)(const void *)next));
    end_stores_past_caches();
    to = at;
    from = next;
#endif
    memcpy(to, from, n);
}

static void copy_to_result(int goes_past_caches, void *to, const void *from,
                           size_t n)
{
    if (goes_past_caches)
        copy_past_caches(to, from, n);
    else
        memcpy(to, from, n);
}

/* ---- slots -------------------------------------------------------------- */

/* Bytes at the end of a slot's stage in which kernels write counters. */
#define COUNTER_BYTES OJ_CUDA_STAGE_EXTRA

static void free_slot_arrays(struct oj_cuda_slot *slot)
{
    oj_cuda_memory_free_all(slot->device, slot->stream, &slot->memory);
    slot->d_fid = NULL;
    slot->d_on_class = slot->d_exclude_class = NULL;
    slot->d_max_distance = NULL;
    slot->n_rows = 0;
    slot->open = {};
}

static oj_status make_slot_arrays(struct oj_cuda_slot *slot, int64_t n,
                                  int64_t n_open, struct oj_error *err)
{
    struct oj_cuda_work work(slot->device, slot->stream, "joining", err);
    struct oj_cuda_open_rows open = {};
    if (n <= slot->n_rows && n_open <= slot->open.capacity)
        return OJ_OK;
    n = oj_max_int64(n, slot->n_rows);
    free_slot_arrays(slot);
    OJ_TRY(work.make(2, &slot->d_matched));
    OJ_TRY(
        work.make(n, &slot->d_x, &slot->d_y, &slot->d_measure, &slot->d_row));
    OJ_TRY(work.make(n_open, &open.row));
    OJ_TRY(work.make(n_open, &open.x, &open.y));
    open.capacity = n_open;
    slot->open = open;
    oj_cuda_move_ownership(&work.memory, NULL, &slot->memory);
    slot->n_rows = n;
    return OJ_OK;
}

static oj_status make_slot(struct oj_cuda_device *device, int64_t n_rows,
                           int64_t n_open, int staged,
                           struct oj_cuda_slot *slot, struct oj_error *err)
{
    int64_t rows_bytes = staged ? n_rows * STAGE_ROW_BYTES : 0;
    slot->device = device;
    if (slot->stream == NULL)
        OJ_CUDA_TRY(
            cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking),
            "making a stream", err);
    OJ_TRY(make_slot_arrays(slot, n_rows, n_open, err));
    OJ_TRY(
        oj_cuda_stage_reserve(&slot->stage, rows_bytes + COUNTER_BYTES, err));
    slot->matched =
        (unsigned long long *)(void *)(slot->stage.data + slot->stage.bytes -
                                       COUNTER_BYTES);
    return OJ_OK;
}

void oj_cuda_index_slot_free(struct oj_cuda_slot *slot)
{
    if (slot->device == NULL)
        return;
    (void)cudaSetDevice(slot->device->ordinal);
    if (slot->stream != NULL)
    {
        free_slot_arrays(slot);
        (void)cudaStreamSynchronize(slot->stream);
        (void)cudaStreamDestroy(slot->stream);
    }
    (void)cudaGetLastError();
    oj_cuda_stage_release(&slot->stage);
    oj_cuda_stage_release(&slot->value_stage);
    memset(slot, 0, sizeof *slot);
}

/* Copies rows first .. first + n - 1 of a column to the device. If host is NULL
 * (the input has no such column), *out is NULL. */
template <typename T>
static oj_status upload_column(struct oj_cuda_slot *slot, const T *host,
                               int64_t first, int64_t n, T **to, const T **out,
                               struct oj_error *err)
{
    void *memory = *to;
    *out = NULL;
    if (host == NULL || n == 0)
        return OJ_OK;
    if (memory == NULL)
        OJ_TRY(oj_cuda_alloc_owned(slot->device, slot->stream, slot->n_rows,
                                   sizeof(T), &slot->memory, &memory, err));
    *out = *to = (T *)memory;
    OJ_CUDA_TRY(cudaMemcpyAsync(memory, host + first, (size_t)n * sizeof(T),
                                cudaMemcpyHostToDevice, slot->stream),
                "copying columns of points", err);
    return OJ_OK;
}

static oj_status upload_point_columns(struct oj_cuda_slot *slot,
                                      const struct oj_flat *input,
                                      int asks_fids, int64_t first,
                                      struct oj_cuda_points *points,
                                      struct oj_error *err)
{
    int64_t n = points->n;
    OJ_TRY(upload_column(slot, asks_fids ? input->fid : NULL, first, n,
                         &slot->d_fid, &points->fid, err));
    OJ_TRY(upload_column(slot, input->on_class, first, n, &slot->d_on_class,
                         &points->on_class, err));
    OJ_TRY(upload_column(slot, input->exclude_class, first, n,
                         &slot->d_exclude_class, &points->exclude_class, err));
    return upload_column(slot, input->max_distance, first, n,
                         &slot->d_max_distance, &points->max_distance, err);
}

static oj_status wait_for_slot_stream(struct oj_cuda_slot *slot,
                                      struct oj_error *err)
{
    OJ_CUDA_TRY(oj_cuda_wait(slot->stream), "joining", err);
    return OJ_OK;
}

static int64_t usable_stage_bytes(const struct oj_cuda_slot *slot)
{
    return slot->stage.bytes - COUNTER_BYTES;
}

static oj_status enqueue_copy_to_host(struct oj_cuda_slot *slot, void *to,
                                      const void *from, int64_t bytes,
                                      struct oj_error *err)
{
    OJ_CUDA_TRY(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToHost,
                                slot->stream),
                "copying answers", err);
    return OJ_OK;
}

/* ---- the pairs of a chunk ------------------------------------------------ */

/* The place of a chunk's pairs in the result is known once all earlier chunks
 * are counted. Until then the pairs wait on the device, if there is room, and
 * are then copied directly into the result; otherwise they wait on the host. */

/** Pairs of consecutive rows, on the device or on the host. */
struct pairs_part
{
    int64_t n_rows, n;
    /** [n_rows] number of pairs per row; NULL: the numbers are in `count`. */
    uint8_t *small_count;
    int32_t *count;             /**< [n_rows] number of pairs per row; used if
                                     one of them exceeds 255 */
    struct oj_cuda_pairs found; /**< pairs on the device; without offsets */
    /* Pairs on the host, if the device had no room: */
    int32_t *row; /**< [n], or NULL */
    double *measure;
};

/** The pairs of a chunk. Owner; zeroed memory is a valid empty one. */
struct chunk_pairs
{
    struct oj_cuda_device *device; /**< device of the pairs and of the slot */
    int64_t n;
    int64_t n_kept; /**< number of these pairs that wait on the device */
    /** Number of pairs in all earlier chunks; set by the batch. */
    int64_t first;
    int is_counted, is_placed; /**< set by the batch */
    struct pairs_part *part;   /**< [n_parts] in row order */
    int64_t n_parts, capacity;
};

/** Bytes of a pair in device memory. */
#define PAIR_BYTES 12

/** Positions in the result at which the next pairs are written. */
struct pairs_place
{
    int64_t *end;      /**< end offset of the next row */
    int32_t *row;      /**< join row of the next pair */
    double *measure;   /**< measure of the next pair */
    int64_t at;        /**< number of pairs before the next one */
    int64_t n_matched; /**< rows with pairs so far */
    int goes_past_caches;
};

/* Number of rows whose counts one thread of write_pair_counts_of_rows()
 * writes. */
#define THREAD_ROWS 16

static void free_pairs_of_part(struct oj_cuda_device *device,
                               cudaStream_t stream, struct pairs_part *part)
{
    oj_cuda_pairs_free(device, stream, &part->found);
    oj_free(part->small_count);
    oj_free(part->count);
    oj_free(part->row);
    oj_free(part->measure);
    memset(part, 0, sizeof *part);
}

/* Numbers of pairs of consecutive rows, aligned so that a thread stores them by
 * wide instructions. */
template <typename Count> struct alignas(16) thread_counts
{
    Count of[THREAD_ROWS];
};

/* Writes the number of pairs of each row to pinned host memory (out). Sets
 * *is_large to 1 if a number exceeds the type Count. */
template <typename Count>
static __global__ void
write_pair_counts_of_rows(int64_t n, const int64_t *offset,
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

/* Sets *out to a new array of the number of pairs per row, which the caller
 * frees, and *fits to 1. If a number is too large for Count, *fits becomes 0
 * and *out stays unset. A kernel writes the numbers to the stage, because a
 * copy would wait behind the copies of all other chunks. All work on the slot's
 * stream has ended on return. */
template <typename Count>
static oj_status read_pair_counts(struct oj_cuda_slot *slot, int64_t n_rows,
                                  const struct oj_cuda_pairs *found,
                                  Count **out, int *fits, struct oj_error *err)
{
    struct thread_counts<Count> *staged =
        (struct thread_counts<Count> *)(void *)slot->stage.data;
    int64_t n_threads = (n_rows + THREAD_ROWS - 1) / THREAD_ROWS;
    unsigned long long *is_large = slot->matched;
    *is_large = 0;
    write_pair_counts_of_rows<Count>
        <<<oj_cuda_count_blocks(n_threads, BLOCK), BLOCK, 0, slot->stream>>>(
            n_rows, found->offset.data, staged, is_large);
    OJ_CUDA_TRY_LAUNCH("counting pairs", err);
    OJ_TRY(wait_for_slot_stream(slot, err));
    *fits = !*is_large;
    if (!*fits)
        return OJ_OK;
    *out = (Count *)oj_malloc(n_rows, sizeof **out);
    if (*out == NULL)
        return oj_fail_nomem(err, n_rows, sizeof **out);
    memcpy(*out, staged, (size_t)n_rows * sizeof **out);
    return OJ_OK;
}

/* Moves the arrays of *found, except the offsets, into *part, which gets the
 * number of pairs per row in their place. */
static oj_status move_found_pairs_to_part(struct oj_cuda_slot *slot,
                                          int64_t n_rows,
                                          struct oj_cuda_pairs *found,
                                          struct pairs_part *part,
                                          struct oj_error *err)
{
    int fits = 0;
    part->n_rows = n_rows;
    part->n = found->n_pairs;
    OJ_TRY(
        read_pair_counts(slot, n_rows, found, &part->small_count, &fits, err));
    if (!fits)
        OJ_TRY(read_pair_counts(slot, n_rows, found, &part->count, &fits, err));
    part->found.row = found->row;
    part->found.measure = found->measure;
    memset(&found->row, 0, sizeof found->row);
    memset(&found->measure, 0, sizeof found->measure);
    return OJ_OK;
}

static oj_status copy_pairs_to_host(struct oj_cuda_slot *slot,
                                    struct pairs_part *part,
                                    struct oj_error *err)
{
    int has_measure = part->found.measure.n > 0;
    part->row = (int32_t *)oj_malloc(part->n, sizeof *part->row);
    if (has_measure)
        part->measure = (double *)oj_malloc(part->n, sizeof *part->measure);
    if (part->row == NULL || (has_measure && part->measure == NULL))
        return oj_fail_nomem(err, part->n, sizeof *part->measure);
    OJ_TRY(oj_cuda_copy_out(slot->device, slot->stream, part->row,
                            part->found.row.data,
                            part->n * (int64_t)sizeof *part->row, err));
    if (has_measure)
        OJ_TRY(oj_cuda_copy_out(slot->device, slot->stream, part->measure,
                                part->found.measure.data,
                                part->n * (int64_t)sizeof *part->measure, err));
    oj_cuda_pairs_free(slot->device, slot->stream, &part->found);
    return OJ_OK;
}

static oj_status append_found_pairs_to_chunk(struct chunk_pairs *chunk,
                                             struct oj_cuda_slot *slot,
                                             int64_t n_rows,
                                             struct oj_cuda_pairs *found,
                                             int keeps, struct oj_error *err)
{
    struct pairs_part part;
    oj_status status;
    OJ_TRY(oj_reserve(&chunk->part, chunk->n_parts, chunk->n_parts + 1,
                      &chunk->capacity, sizeof *chunk->part, err));
    memset(&part, 0, sizeof part);
    status = move_found_pairs_to_part(slot, n_rows, found, &part, err);
    if (status == OJ_OK && !keeps)
        status = copy_pairs_to_host(slot, &part, err);
    if (status != OJ_OK)
    {
        free_pairs_of_part(slot->device, slot->stream, &part);
        return status;
    }
    chunk->device = slot->device;
    chunk->part[chunk->n_parts++] = part;
    chunk->n += part.n;
    chunk->n_kept += keeps ? part.n : 0;
    return OJ_OK;
}

template <typename Count>
static void write_end_offsets_of_rows(struct pairs_place *to, int64_t n,
                                      const Count *count)
{
    int64_t *end = to->end;
    int64_t at = to->at, n_matched = to->n_matched;
    for (int64_t i = 0; i < n; i++)
    {
        at += count[i];
        n_matched += count[i] > 0;
        if (to->goes_past_caches)
            store_past_caches(&end[i], at);
        else
            end[i] = at;
    }
    if (to->goes_past_caches)
        end_stores_past_caches();
    to->end += n;
    to->at = at;
    to->n_matched = n_matched;
}

/* Writes n pairs to the result. If measure is NULL, the measures become NaN. */
static void write_pairs_to_result(struct pairs_place *to, int64_t n,
                                  const int32_t *row, const double *measure)
{
    if (n == 0) /* the arrays may be NULL */
        return;
    copy_to_result(to->goes_past_caches, to->row, row, (size_t)n * sizeof *row);
    if (measure != NULL)
        copy_to_result(to->goes_past_caches, to->measure, measure,
                       (size_t)n * sizeof *measure);
    for (int64_t i = 0; measure == NULL && i < n; i++)
        to->measure[i] = (double)NAN;
    to->row += n;
    to->measure += n;
}

static void write_end_offsets_of_part(struct pairs_place *to,
                                      const struct pairs_part *part)
{
    if (part->count != NULL)
        write_end_offsets_of_rows(to, part->n_rows, part->count);
    else
        write_end_offsets_of_rows(to, part->n_rows, part->small_count);
}

/* Copies the pairs of a part through the slot's stage to the result. While the
 * first copy runs, writes the offsets of the rows. */
static oj_status copy_part_from_device_to_result(struct oj_cuda_slot *slot,
                                                 const struct pairs_part *part,
                                                 struct pairs_place *to,
                                                 struct oj_error *err)
{
    int64_t step = usable_stage_bytes(slot) / PAIR_BYTES;
    double *measure = (double *)(void *)slot->stage.data;
    int32_t *row = (int32_t *)(void *)(measure + step);
    const double *from = part->found.measure.data;
    for (int64_t at = 0; at == 0 || at < part->n; at += step)
    {
        int64_t n = part->n - at < step ? part->n - at : step;
        if (n > 0)
            OJ_TRY(enqueue_copy_to_host(slot, row, part->found.row.data + at,
                                        n * (int64_t)sizeof *row, err));
        if (n > 0 && from != NULL)
            OJ_TRY(enqueue_copy_to_host(slot, measure, from + at,
                                        n * (int64_t)sizeof *measure, err));
        if (at == 0)
            write_end_offsets_of_part(to, part);
        OJ_TRY(wait_for_slot_stream(slot, err));
        write_pairs_to_result(to, n, row, from != NULL ? measure : NULL);
    }
    return OJ_OK;
}

static oj_status copy_chunk_to_result(struct chunk_pairs *chunk,
                                      struct oj_cuda_slot *slot,
                                      struct pairs_place *to,
                                      struct oj_error *err)
{
    for (int64_t i = 0; i < chunk->n_parts; i++)
    {
        struct pairs_part *part = &chunk->part[i];
        if (part->row != NULL)
        {
            write_end_offsets_of_part(to, part);
            write_pairs_to_result(to, part->n, part->row, part->measure);
        }
        else
            OJ_TRY(copy_part_from_device_to_result(slot, part, to, err));
        free_pairs_of_part(slot->device, slot->stream, part);
    }
    return OJ_OK;
}

static void free_chunk_pairs(struct chunk_pairs *chunk)
{
    if (chunk->n_parts > 0)
        (void)cudaSetDevice(chunk->device->ordinal);
    for (int64_t i = 0; i < chunk->n_parts; i++)
        free_pairs_of_part(chunk->device, chunk->device->stream,
                           &chunk->part[i]);
    oj_free(chunk->part);
    memset(chunk, 0, sizeof *chunk);
}

/* ---- batches ------------------------------------------------------------ */

/* Rows of a chunk whose pairs are tied, ascending; all pairs of these rows are
 * listed after the last chunk. */
struct tied_rows
{
    int64_t n, capacity;
    int64_t *row; /* row of the batch */
};

/* Open rows with their answers, in device memory. */
struct open_answers
{
    int64_t n;
    const int64_t *row; /* row of the batch */
    int32_t *join_row;
    double *measure;
};

/* The open rows of all slots of one device, once all chunks are joined. */
struct all_open_rows
{
    struct oj_cuda_memory memory; /* owns all arrays */
    struct oj_cuda_points points;
    struct open_answers answers;
    int64_t next; /* index of the first answer that no worker has taken to copy;
                     changed atomically */
};

struct cuda_join_batch
{
    struct oj_gpu_index *index;
    const struct oj_cuda_family *family;
    int number; /* number of the family */
    /* 1: the batch consists of the tied rows of another batch, and the index
     * `asked` of the family joins them */
    int is_tied;
    const struct oj_flat *input;
    struct oj_matches *out;
    struct oj_stats *stats;
    int64_t most_pairs; /* maximum number of pairs; 0: no limit */
    int lists, leaves_ties, leaves_open, in_pinned, out_pinned;
    int goes_past_caches; /* 1: results in pageable memory are stored past the
                             caches */
    int64_t chunk_rows, n_chunks;
    int n_workers;
    /* Maximum number of pairs that may wait in device memory. */
    int64_t most_kept;
    /* NULL, or a callback that receives the points of each chunk; the batch
     * then makes no pairs. */
    const struct oj_cuda_taker *taker;

    /* Shared by the workers; changed atomically. */
    int64_t next_chunk, n_pairs, n_kept, n_matched;
    int stop; /* 1: a worker has failed; all others stop */

    /* [n_chunks] rows with ties, if each row has one answer and the ties are
     * listed later; otherwise NULL. */
    struct tied_rows *tied;

    /* NULL, or [places] open rows of each device, filled after the last
     * chunk. */
    struct all_open_rows *open;

    /* Used if the result consists of lists of pairs: a chunk gets its place in
     * `out` as soon as the pairs of all earlier chunks are counted. */
    int64_t *offset;           /* offsets of the batch's rows in out */
    int64_t n_before;          /* entries of out before those of the batch */
    struct chunk_pairs *pairs; /* [n_chunks] */
    /* Guards the members from n_counted to room. */
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int64_t n_counted;       /* chunks 0 .. n_counted - 1 are counted */
    int64_t n_counted_pairs; /* pairs in the n_counted chunks */
    int64_t n_placed; /* the pairs of chunks 0 .. n_placed - 1 are in out */
    /* Number of pairs for which the arrays of out have memory; 0 while out has
     * none. */
    int64_t room;

    oj_status lack; /* why a worker got no slot */
    struct oj_error lack_error;
};

struct cuda_batch_worker
{
    struct cuda_join_batch *batch;
    struct oj_cuda_place *place;
    struct oj_cuda_slot *slot;
    /* Points of the current chunk, in device memory. */
    struct oj_cuda_points points;
    struct oj_error *err;
};

static const struct oj_cuda_index *
find_index_on_device(const struct cuda_join_batch *b,
                     const struct oj_cuda_place *place)
{
    return b->is_tied ? place->of[b->number]->asked : place->of[b->number];
}

static int is_batch_stopped(const struct cuda_join_batch *b)
{
    return __atomic_load_n(&b->stop, __ATOMIC_RELAXED);
}

/* ---- sizes -------------------------------------------------------------- */

struct batch_sizes
{
    int64_t chunk_rows;
    int64_t spare_bytes; /**< device memory, per device, for pairs that wait for
                              their place */
    int n_workers; /**< at most OJ_CUDA_MOST_SLOTS and at most one per chunk */
};

/* If the caller's memory is pinned, few large chunks keep both directions of
 * the bus busy; if it is pageable, more threads copy faster. Measured with 170
 * million rows on 16 cores: 209, 121, 80 and 69 ms with chunks of 64, 128, 256
 * and 512 thousand rows; with 1 million rows: 4.0, 2.7, 1.8 and 1.9 ms with
 * chunks of 16, 32, 128 and 256 thousand. */
static const int64_t pinned_workers = 4, pinned_rows = 2 << 20;
static const int64_t most_staging_workers = 16, staged_rows = 512 << 10;
static const int64_t least_rows = 4096, few_rows = 128 << 10;
/* Chunks for lists of families with wants_large_chunks. Measured with 10
 * million rows on 16 cores, chunks of 128, 512 and 1,024 thousand rows: 1,441,
 * 847 and 678 ms for the 20 nearest, 151, 118 and 96 ms for the 2 nearest. */
static const int64_t large_rows = 1 << 20, large_chunks = 8;

/* Per device: the slots, with the memory that families need for them, get at
 * most slots_share of the free memory, and never more than most_slot_bytes.
 * Finished pairs that wait until the chunks before theirs are counted get at
 * most spare_share. */
static const double slots_share = 0.5, spare_share = 0.25;
static const int64_t most_slot_bytes = (int64_t)4 << 30;

int64_t oj_cuda_index_count_free_bytes(const struct oj_cuda_device *device)
{
    size_t free_bytes = 0, total_bytes = 0;
    uint64_t reserved = 0, used = 0;
    int64_t room;
    (void)cudaSetDevice(device->ordinal);
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        (void)cudaGetLastError();
    if (device->pool != NULL &&
        cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent,
                                &reserved) == cudaSuccess &&
        cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent,
                                &used) == cudaSuccess &&
        reserved > used)
        free_bytes += (size_t)(reserved - used);
    room = (int64_t)free_bytes;
    if (device->limit > 0)
        room = oj_min_int64(room, device->limit - device->used);
    return room;
}

static int64_t slot_row_bytes(int leaves_open)
{
    return SLOT_ROW_BYTES + (leaves_open ? OPEN_CHUNKS * OPEN_ROW_BYTES : 0);
}

static int64_t least_free_memory(const struct oj_gpu_index *index)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < index->n_places; i++)
    {
        int64_t room = oj_cuda_index_count_free_bytes(&index->place[i].device);
        /* The slots of earlier batches will be used again, so their memory
         * counts as free. */
        for (int s = 0; s < OJ_CUDA_MOST_SLOTS; s++)
        {
            if (index->slot[s].device == &index->place[i].device)
                room += index->slot[s].n_rows * SLOT_ROW_BYTES +
                        index->slot[s].open.capacity * OPEN_ROW_BYTES;
        }
        least = oj_min_int64(least, room);
    }
    return least;
}

static int64_t count_workers(const struct oj_gpu_index *index, int direct)
{
    int64_t n_threads = index->options.n_threads;
    int64_t n_places = index->n_places;
    if (direct)
        return oj_min_int64(n_places * pinned_workers, OJ_CUDA_MOST_SLOTS);
    if (n_threads < 1)
        n_threads = oj_max_int64(sysconf(_SC_NPROCESSORS_ONLN), 1);
    n_threads = oj_min_int64(n_threads, most_staging_workers * n_places);
    return oj_min_int64(oj_max_int64(n_threads, 2 * n_places),
                        OJ_CUDA_MOST_SLOTS);
}

/* Returns the number of rows per chunk. A batch of more than few_rows rows is
 * divided even where one chunk would hold it, so that copies and kernels
 * overlap. direct is 1 if the caller's memory is pinned. */
static int64_t choose_rows_per_chunk(const struct cuda_join_batch *b,
                                     int64_t n_rows, int64_t n_workers,
                                     int direct)
{
    int64_t n = direct ? pinned_rows : staged_rows;
    int64_t even = n_rows / (4 * n_workers) / least_rows * least_rows;
    if (b->index->options.gpu_batch > 0)
        return oj_min_int64(b->index->options.gpu_batch, n_rows);
    if (b->lists && b->family->wants_large_chunks)
    {
        n = large_rows;
        even = n_rows / large_chunks;
    }
    return oj_min_int64(oj_max_int64(oj_min_int64(n, even), few_rows), n_rows);
}

static struct batch_sizes choose_chunk_sizes(const struct cuda_join_batch *b,
                                             int64_t n_rows, int direct)
{
    const struct oj_gpu_index *index = b->index;
    const struct oj_cuda_index *of = find_index_on_device(b, &index->place[0]);
    int64_t n_places = index->n_places;
    int64_t n_workers = count_workers(index, direct);
    int64_t n = choose_rows_per_chunk(b, n_rows, n_workers, direct);
    int64_t on_each = (n_workers + n_places - 1) / n_places;
    int64_t all = least_free_memory(index);
    int64_t room = (int64_t)((double)all * slots_share);
    struct batch_sizes sizes;
    room = oj_min_int64(room, most_slot_bytes);
    while (on_each > 1 || n > least_rows)
    {
        int64_t bytes =
            n * slot_row_bytes(b->leaves_open) + of->family->batch_bytes(of, n);
        if (bytes * on_each <= room)
            break;
        if (on_each > 2 || n <= least_rows)
            on_each--;
        else
            n = oj_max_int64(n / 2, least_rows);
    }
    n_workers = oj_min_int64(n_workers, on_each * n_places);
    sizes.chunk_rows = n;
    sizes.spare_bytes = (int64_t)((double)all * spare_share);
    sizes.n_workers = (int)oj_min_int64(n_workers, (n_rows + n - 1) / n);
    return sizes;
}

/* ---- one chunk ---------------------------------------------------------- */

static __global__ void count_matched_rows(int64_t n, const int32_t *row,
                                          unsigned long long *n_matched)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int n_block = __syncthreads_count(i < n && row[i] >= 0);
    if (threadIdx.x == 0 && n_block > 0)
        atomicAdd(n_matched, (unsigned long long)n_block);
}

static oj_status upload_coordinates(struct cuda_batch_worker *w, int64_t first,
                                    int64_t n)
{
    struct oj_cuda_slot *slot = w->slot;
    const double *x = w->batch->input->x + first;
    const double *y = w->batch->input->y + first;
    size_t bytes = (size_t)n * sizeof(double);
    if (!w->batch->in_pinned)
    {
        memcpy(slot->stage.data, x, bytes);
        memcpy(slot->stage.data + bytes, y, bytes);
        x = (const double *)(const void *)slot->stage.data;
        y = x + n;
    }
    OJ_CUDA_TRY(cudaMemcpyAsync(slot->d_x, x, bytes, cudaMemcpyHostToDevice,
                                slot->stream),
                "copying points", w->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(slot->d_y, y, bytes, cudaMemcpyHostToDevice,
                                slot->stream),
                "copying points", w->err);
    return OJ_OK;
}

/* Copies the points of a chunk to the device. Waits only if the pace of the
 * slot is not known yet, because the time measured next must be that of the
 * kernels alone. */
static oj_status upload_points(struct cuda_batch_worker *w, int64_t first,
                               int64_t n)
{
    const struct oj_relation *relation = &w->batch->index->relation;
    memset(&w->points, 0, sizeof w->points);
    w->points.n = n;
    w->points.x = w->slot->d_x;
    w->points.y = w->slot->d_y;
    OJ_TRY(upload_coordinates(w, first, n));
    if (w->batch->family->reads_columns)
        OJ_TRY(upload_point_columns(w->slot, w->batch->input,
                                    relation->exclude_self ||
                                        relation->unordered_pairs != 0,
                                    first, &w->points, w->err));
    if (w->slot->pace[w->batch->is_tied].n_rows > 0)
        return OJ_OK;
    return wait_for_slot_stream(w->slot, w->err);
}

static struct oj_cuda_points
view_points_from_row(const struct oj_cuda_points *all, int64_t at, int64_t n)
{
    const auto behind = [at](auto *column)
    { return column != NULL ? column + at : NULL; };
    struct oj_cuda_points part;
    part.n = n;
    part.x = all->x + at;
    part.y = all->y + at;
    part.fid = behind(all->fid);
    part.on_class = behind(all->on_class);
    part.exclude_class = behind(all->exclude_class);
    part.max_distance = behind(all->max_distance);
    return part;
}

/* Appends the open rows among points to the slot's open rows, in any order, and
 * adds their number to *n_appended. Point 0 is row `first` of the batch. */
static __global__ void
append_open_rows(const __grid_constant__ struct oj_cuda_points points,
                 int64_t first, const int32_t *row,
                 const __grid_constant__ struct oj_cuda_open_rows open,
                 unsigned long long *n_appended)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, at;
    int is_open = i < points.n && row[i] == OJ_TIED_ROW;
    uint32_t lane = threadIdx.x % 32;
    uint32_t votes = __ballot_sync(0xFFFFFFFFu, is_open);
    unsigned long long before = 0;
    if (lane == 0 && votes != 0)
        before = atomicAdd(n_appended, (unsigned long long)__popc(votes));
    before = __shfl_sync(0xFFFFFFFFu, before, 0);
    if (!is_open)
        return;
    at = open.n + (int64_t)before + __popc(votes & ((1u << lane) - 1u));
    open.row[at] = first + i;
    open.x[at] = points.x[i];
    open.y[at] = points.y[i];
}

static oj_status enqueue_join_kernel(struct cuda_batch_worker *w,
                                     const struct oj_cuda_points *points,
                                     int64_t first)
{
    struct oj_cuda_slot *slot = w->slot;
    const struct cuda_join_batch *b = w->batch;
    struct oj_cuda_work work(slot->device, slot->stream, "joining", w->err);
    OJ_TRY(work.clear(slot->d_matched, 2));
    OJ_TRY((b->leaves_open ? b->family->join_most : b->family->join_one)(
        find_index_on_device(b, w->place), &work, points, slot->d_row,
        slot->d_measure));
    if (b->leaves_open)
        OJ_TRY(work.run<BLOCK>(points->n, append_open_rows, *points, first,
                               slot->d_row, slot->open, slot->d_matched + 1));
    return work.run(points->n, count_matched_rows, points->n, slot->d_row,
                    slot->d_matched);
}

/* Appends those of rows first .. first + n - 1 that are tied to *tied. Few rows
 * are tied, so the tied rows of each block of TIED_BLOCK rows are counted
 * first, and a block without any is skipped. */
static oj_status collect_tied_rows(struct tied_rows *tied, int64_t first,
                                   int64_t n, const int32_t *row,
                                   struct oj_error *err)
{
    int64_t known = tied->n;
    for (int64_t at = 0, end; at < n; at = end)
    {
        int64_t n_tied = 0;
        end = oj_min_int64(at + TIED_BLOCK, n);
        for (int64_t i = at; i < end; i++)
            n_tied += row[i] == OJ_TIED_ROW;
        if (n_tied == 0)
            continue;
        OJ_ROOM(tied->row, known, known + n_tied, tied->capacity, err);
        for (int64_t i = at; i < end; i++)
        {
            if (row[i] == OJ_TIED_ROW)
                tied->row[known++] = first + i;
        }
    }
    /* Set at the end only, because after a failure the chunk may be tried
     * again. */
    tied->n = known;
    return OJ_OK;
}

/* Joins rows that get one answer each. The stage of the points is reused for
 * the answers: copies out run after copies in, on one stream. */
static oj_status
join_rows_with_one_answer_each(struct cuda_batch_worker *w,
                               const struct oj_cuda_points *points,
                               int64_t first, struct tied_rows *tied)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_slot *slot = w->slot;
    int64_t n = points->n;
    double *measure = b->out->measure + first;
    int32_t *row = b->out->join_row + first;
    size_t size = (size_t)n;
    double *to_measure = measure;
    int32_t *to_row = row;
    if (!b->out_pinned)
    {
        to_measure = (double *)(void *)slot->stage.data;
        to_row = (int32_t *)(void *)(to_measure + n);
    }
    OJ_TRY(enqueue_join_kernel(w, points, first));
    OJ_TRY(enqueue_copy_to_host(slot, slot->matched, slot->d_matched,
                                2 * sizeof *slot->matched, w->err));
    OJ_TRY(enqueue_copy_to_host(slot, to_row, slot->d_row,
                                n * (int64_t)sizeof *to_row, w->err));
    OJ_TRY(enqueue_copy_to_host(slot, to_measure, slot->d_measure,
                                n * (int64_t)sizeof *to_measure, w->err));
    OJ_TRY(wait_for_slot_stream(slot, w->err));
    if (!b->out_pinned)
    {
        copy_to_result(b->goes_past_caches, row, to_row, size * sizeof *to_row);
        copy_to_result(b->goes_past_caches, measure, to_measure,
                       size * sizeof *to_measure);
    }
    if (tied != NULL)
        OJ_TRY(collect_tied_rows(tied, first, n, to_row, w->err));
    slot->open.n += (int64_t)slot->matched[1];
    __atomic_add_fetch(&b->n_matched, (int64_t)slot->matched[0],
                       __ATOMIC_RELAXED);
    return OJ_OK;
}

/* Copies n answers, from number `at` on, through the slot's stage to the
 * result. n is at most the rows of a chunk. */
static oj_status copy_open_answers_to_result(struct cuda_join_batch *b,
                                             struct oj_cuda_slot *slot,
                                             const struct open_answers *answers,
                                             int64_t at, int64_t n,
                                             struct oj_error *err)
{
    int64_t *row = (int64_t *)(void *)slot->stage.data;
    double *measure = (double *)(void *)(row + n);
    int32_t *join_row = (int32_t *)(void *)(measure + n);
    int64_t n_matched = 0;
    OJ_TRY(enqueue_copy_to_host(slot, row, answers->row + at,
                                n * (int64_t)sizeof *row, err));
    OJ_TRY(enqueue_copy_to_host(slot, measure, answers->measure + at,
                                n * (int64_t)sizeof *measure, err));
    OJ_TRY(enqueue_copy_to_host(slot, join_row, answers->join_row + at,
                                n * (int64_t)sizeof *join_row, err));
    OJ_TRY(wait_for_slot_stream(slot, err));
    for (int64_t i = 0; i < n; i++)
    {
        b->out->join_row[row[i]] = join_row[i];
        b->out->measure[row[i]] = measure[i];
        n_matched += join_row[i] >= 0;
    }
    __atomic_add_fetch(&b->n_matched, n_matched, __ATOMIC_RELAXED);
    return OJ_OK;
}

/* Answers n of the slot's open rows, from number `at` on; n is at most the rows
 * of a chunk. */
static oj_status answer_some_open_rows(struct cuda_batch_worker *w, int64_t at,
                                       int64_t n)
{
    struct oj_cuda_slot *slot = w->slot;
    const struct oj_cuda_index *asked = w->place->of[w->batch->number]->asked;
    const struct open_answers answers = {n, slot->open.row + at, slot->d_row,
                                         slot->d_measure};
    struct oj_cuda_work work(slot->device, slot->stream, "joining", w->err);
    struct oj_cuda_points points = {};
    points.n = n;
    points.x = slot->open.x + at;
    points.y = slot->open.y + at;
    OJ_TRY(oj_check_cancel(w->batch->index->options.cancel, w->err));
    OJ_TRY(asked->family->join_one(asked, &work, &points, slot->d_row,
                                   slot->d_measure));
    return copy_open_answers_to_result(w->batch, slot, &answers, 0, n, w->err);
}

/* Answers n of the slot's open rows, from number `at` on. If device memory for
 * them is missing, answers one half after the other. */
static oj_status answer_open_rows_or_their_halves(struct cuda_batch_worker *w,
                                                  int64_t at, int64_t n)
{
    struct oj_error first_error;
    oj_status status = answer_some_open_rows(w, at, n);
    if (status != OJ_ERR_NOMEM || n < 2 * LEAST_ROWS)
        return status;
    first_error = *w->err;
    status = answer_open_rows_or_their_halves(w, at, n / 2);
    if (status == OJ_OK)
        status = answer_open_rows_or_their_halves(w, at + n / 2, n - n / 2);
    if (status == OJ_ERR_NOMEM)
        *w->err = first_error;
    return status;
}

/* Answers the open rows that chunks have left in the slot. */
static oj_status answer_open_rows_of_slot(struct cuda_batch_worker *w)
{
    struct oj_cuda_pace *pace = &w->slot->pace[1];
    int64_t n_rows = w->slot->open.n;
    for (int64_t at = 0, n; at < n_rows && !is_batch_stopped(w->batch); at += n)
    {
        double start = oj_clock_seconds();
        n = oj_cuda_pace_next_rows(pace, n_rows - at);
        n = oj_min_int64(n, w->batch->chunk_rows);
        OJ_TRY(answer_open_rows_or_their_halves(w, at, n));
        oj_cuda_pace_record(pace, n, oj_clock_seconds() - start);
    }
    w->slot->open.n = 0;
    return OJ_OK;
}

static oj_status store_found_pairs(struct cuda_batch_worker *w,
                                   struct chunk_pairs *pairs, int64_t n,
                                   struct oj_cuda_pairs *found)
{
    struct cuda_join_batch *b = w->batch;
    int64_t n_found = found->n_pairs;
    int64_t n_kept = __atomic_add_fetch(&b->n_kept, n_found, __ATOMIC_RELAXED);
    int keeps = n_kept <= b->most_kept;
    oj_status status =
        append_found_pairs_to_chunk(pairs, w->slot, n, found, keeps, w->err);
    if (!keeps || status != OJ_OK)
        __atomic_sub_fetch(&b->n_kept, n_found, __ATOMIC_RELAXED);
    return status;
}

static oj_status check_pair_limit(const struct cuda_join_batch *b,
                                  int64_t n_pairs, struct oj_error *err)
{
    return oj_pair_budget_check(b->most_pairs, n_pairs, err);
}

static oj_status
join_rows_with_lists_of_pairs(struct cuda_batch_worker *w,
                              struct chunk_pairs *pairs,
                              const struct oj_cuda_points *points)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_slot *slot = w->slot;
    struct oj_cuda_pairs found = {};
    int64_t left = 0, n_found;
    oj_status status;
    if (b->most_pairs > 0)
        left = oj_max_int64(
            b->most_pairs - __atomic_load_n(&b->n_pairs, __ATOMIC_RELAXED), 1);
    status = oj_cuda_list_pairs(find_index_on_device(b, w->place), slot->stream,
                                points, left, &found, w->err);
    if (status != OJ_OK)
        return status;
    n_found = found.n_pairs;
    status = check_pair_limit(
        b, __atomic_add_fetch(&b->n_pairs, n_found, __ATOMIC_RELAXED), w->err);
    if (status == OJ_OK)
        status = store_found_pairs(w, pairs, points->n, &found);
    if (status == OJ_ERR_NOMEM) /* the rows will be joined again, and counted
                                   then */
        __atomic_sub_fetch(&b->n_pairs, n_found, __ATOMIC_RELAXED);
    oj_cuda_pairs_free(slot->device, slot->stream, &found);
    return status;
}

static oj_status
give_uploaded_rows_to_callback(struct cuda_batch_worker *w,
                               const struct oj_cuda_points *points,
                               int64_t first)
{
    const struct oj_cuda_taker *taker = w->batch->taker;
    OJ_TRY(taker->take(taker->user, (int)(w->place - w->batch->index->place),
                       w->slot, first, points, w->err));
    return wait_for_slot_stream(w->slot, w->err);
}

/* ---- places of pairs in the result --------------------------------------- */

/* Returns an estimate of the number of pairs of the whole batch: the pairs per
 * row of the chunks counted so far, times all rows, plus 1/16. The number is
 * exact once all chunks are counted. */
static int64_t estimate_all_pairs(const struct cuda_join_batch *b)
{
    double n_rows = (double)b->input->n_features;
    double n_counted = (double)(b->n_counted * b->chunk_rows);
    double n;
    if (b->n_counted == b->n_chunks)
        return b->n_counted_pairs;
    n = (double)b->n_counted_pairs * (n_rows / n_counted) * 1.0625;
    return n < 9e18 ? (int64_t)n : INT64_MAX;
}

/* Allocates the result once as many chunks as there are workers are counted,
 * without a gap from the first chunk on. If memory is missing, the pairs wait
 * until all chunks are counted. */
static void reserve_result_pairs(struct cuda_join_batch *b)
{
    struct oj_error ignored;
    int64_t n = estimate_all_pairs(b);
    if (b->room > 0 ||
        (b->n_counted < b->n_workers && b->n_counted < b->n_chunks))
        return;
    if (b->most_pairs > 0)
        n = oj_min_int64(n, b->most_pairs);
    if (oj_matches_grow(b->out, b->n_before, b->n_before + n, &ignored) ==
        OJ_OK)
        b->room = n;
}

/* Marks a chunk as counted. Every chunk whose earlier chunks are all counted
 * gets its place in the result. Returns 1 if all chunks are counted: the
 * workers then copy the chunks that are not in the result yet. */
static int assign_offset_to_counted_chunk(struct cuda_join_batch *b,
                                          int64_t chunk)
{
    int all;
    pthread_mutex_lock(&b->lock);
    b->pairs[chunk].is_counted = 1;
    while (b->n_counted < b->n_chunks && b->pairs[b->n_counted].is_counted)
    {
        struct chunk_pairs *pairs = &b->pairs[b->n_counted++];
        pairs->first = b->n_counted_pairs;
        b->n_counted_pairs += pairs->n;
    }
    reserve_result_pairs(b);
    all = b->n_counted == b->n_chunks;
    pthread_mutex_unlock(&b->lock);
    return all;
}

/* The pairs of a chunk and their place in the result. */
struct placing
{
    struct chunk_pairs *pairs;
    struct pairs_place place;
};

/* Sets *next to a chunk that `device` has joined and whose place in the result
 * is known and allocated, and marks it as placed; the caller must then copy its
 * pairs. Returns 0 if there is no such chunk. */
static int next_chunk_ready_for_result(struct cuda_join_batch *b,
                                       const struct oj_cuda_device *device,
                                       struct placing *next)
{
    struct oj_matches *out = b->out;
    next->pairs = NULL;
    pthread_mutex_lock(&b->lock);
    for (int64_t c = b->n_placed; next->pairs == NULL && c < b->n_counted; c++)
    {
        struct chunk_pairs *pairs = &b->pairs[c];
        if (pairs->is_placed || pairs->device != device ||
            pairs->first + pairs->n > b->room)
            continue;
        pairs->is_placed = 1;
        next->pairs = pairs;
        next->place.at = b->n_before + pairs->first;
        next->place.end = b->offset + c * b->chunk_rows + 1;
        next->place.row = out->join_row + next->place.at;
        next->place.measure = out->measure + next->place.at;
        next->place.n_matched = 0;
        next->place.goes_past_caches = b->goes_past_caches;
    }
    while (b->n_placed < b->n_counted && b->pairs[b->n_placed].is_placed)
        b->n_placed++;
    pthread_mutex_unlock(&b->lock);
    return next->pairs != NULL;
}

/* Copies the pairs of all chunks that the slot's device has joined and whose
 * place in the result is known and allocated. */
static oj_status copy_ready_chunks_to_result(struct cuda_join_batch *b,
                                             struct oj_cuda_slot *slot,
                                             struct oj_error *err)
{
    struct placing next;
    while (!is_batch_stopped(b) &&
           next_chunk_ready_for_result(b, slot->device, &next))
    {
        OJ_TRY(oj_check_cancel(b->index->options.cancel, err));
        OJ_TRY(copy_chunk_to_result(next.pairs, slot, &next.place, err));
        __atomic_add_fetch(&b->n_matched, next.place.n_matched,
                           __ATOMIC_RELAXED);
        __atomic_sub_fetch(&b->n_kept, next.pairs->n_kept, __ATOMIC_RELAXED);
    }
    return OJ_OK;
}

/* ---- workers ------------------------------------------------------------ */

/* Joins rows at .. at + n - 1 of the worker's chunk; if memory is missing, one
 * half after the other. */
static oj_status join_rows_or_their_halves(struct cuda_batch_worker *w,
                                           int64_t chunk, int64_t at, int64_t n)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_points points = view_points_from_row(&w->points, at, n);
    int64_t first = chunk * b->chunk_rows + at;
    struct oj_error first_error;
    oj_status status;
    if (is_batch_stopped(b))
        return OJ_OK;
    OJ_TRY(oj_check_cancel(b->index->options.cancel, w->err));
    if (b->taker != NULL)
        status = give_uploaded_rows_to_callback(w, &points, first);
    else
        status = b->lists ? join_rows_with_lists_of_pairs(w, &b->pairs[chunk],
                                                          &points)
                          : join_rows_with_one_answer_each(
                                w, &points, first,
                                b->tied != NULL ? &b->tied[chunk] : NULL);
    if (status != OJ_ERR_NOMEM || n < 2 * LEAST_ROWS)
        return status;
    first_error = *w->err;
    /* Waits, because the failed attempt may have copies from the stage still
     * running. */
    OJ_TRY(wait_for_slot_stream(w->slot, w->err));
    status = join_rows_or_their_halves(w, chunk, at, n / 2);
    if (status == OJ_OK)
        status = join_rows_or_their_halves(w, chunk, at + n / 2, n - n / 2);
    if (status == OJ_ERR_NOMEM)
        *w->err = first_error;
    return status;
}

static oj_status upload_and_join_chunk(struct cuda_batch_worker *w,
                                       int64_t chunk)
{
    struct cuda_join_batch *b = w->batch;
    struct oj_cuda_pace *pace = &w->slot->pace[b->is_tied];
    int64_t first = chunk * b->chunk_rows, left = b->input->n_features - first;
    int64_t n_rows = left < b->chunk_rows ? left : b->chunk_rows;
    OJ_TRY(upload_points(w, first, n_rows));
    for (int64_t at = 0, n; at < n_rows; at += n)
    {
        double start = oj_clock_seconds();
        n = oj_cuda_pace_next_rows(pace, n_rows - at);
        OJ_TRY(join_rows_or_their_halves(w, chunk, at, n));
        oj_cuda_pace_record(pace, n, oj_clock_seconds() - start);
    }
    if (!b->lists || b->taker != NULL)
        return OJ_OK;
    if (assign_offset_to_counted_chunk(b, chunk))
        return OJ_OK;
    return copy_ready_chunks_to_result(b, w->slot, w->err);
}

static oj_status join_chunks_until_none_left(struct cuda_batch_worker *w)
{
    struct cuda_join_batch *b = w->batch;
    while (!is_batch_stopped(b))
    {
        int64_t chunk = __atomic_fetch_add(&b->next_chunk, 1, __ATOMIC_RELAXED);
        if (chunk >= b->n_chunks)
            break;
        if (b->leaves_open &&
            w->slot->open.capacity - w->slot->open.n < b->chunk_rows)
            OJ_TRY(answer_open_rows_of_slot(w));
        OJ_TRY(upload_and_join_chunk(w, chunk));
    }
    return OJ_OK;
}

/* Runs worker i until no chunk is left. It allocates its slot here, so that
 * devices work while other slots are allocated. If a worker gets no slot, other
 * workers take the chunks. */
static oj_status run_worker(struct cuda_join_batch *b, int i,
                            struct oj_error *err)
{
    struct cuda_batch_worker w = {};
    int staged = !b->in_pinned || !b->out_pinned || b->lists;
    oj_status status;
    w.batch = b;
    w.place = &b->index->place[i % b->index->n_places];
    w.slot = &b->index->slot[i];
    w.err = err;
    if (__atomic_load_n(&b->next_chunk, __ATOMIC_RELAXED) >= b->n_chunks)
        return OJ_OK;
    status = make_slot(&w.place->device, b->chunk_rows,
                       b->leaves_open ? OPEN_CHUNKS * b->chunk_rows : 0, staged,
                       w.slot, err);
    if (status != OJ_OK)
    {
        oj_cuda_index_slot_free(w.slot);
        pthread_mutex_lock(&b->lock);
        b->lack = status;
        b->lack_error = *err;
        pthread_mutex_unlock(&b->lock);
        return OJ_OK;
    }
    if (w.slot->family != b->number)
        memset(w.slot->pace, 0, sizeof w.slot->pace);
    w.slot->family = b->number;
    return join_chunks_until_none_left(&w);
}

/* Runs run(b, i) for each worker on its device. Waits for all streams, because
 * no copy may outlive the arrays that it writes to. */
template <typename Run>
static oj_status run_on_all_workers(struct cuda_join_batch *b, Run run,
                                    struct oj_error *err)
{
    return oj_cuda_threads_try_parallel(
        b->n_workers,
        [=](int i, struct oj_error *error)
        {
            const struct oj_cuda_slot *slot = &b->index->slot[i];
            cudaError_t set = cudaSetDevice(
                b->index->place[i % b->index->n_places].device.ordinal);
            oj_status status =
                set == cudaSuccess
                    ? run(b, i, error)
                    : oj_cuda_fail(error, set, "choosing a device");
            if (status != OJ_OK)
                __atomic_store_n(&b->stop, 1, __ATOMIC_RELAXED);
            if (slot->stream != NULL)
                (void)cudaStreamSynchronize(slot->stream);
            (void)cudaGetLastError();
            return status;
        },
        err);
}

/* ---- open rows after all chunks ------------------------------------------ */

template <typename T>
static oj_status copy_on_device(struct oj_cuda_work *work, T *to, const T *from,
                                int64_t n)
{
    return work->check(cudaMemcpyAsync(to, from, (size_t)n * sizeof(T),
                                       cudaMemcpyDeviceToDevice, work->stream));
}

/* Copies the open rows of all slots of a device into one list. */
static oj_status gather_open_rows(const struct cuda_join_batch *b, int place,
                                  struct oj_cuda_work *work,
                                  struct all_open_rows *all)
{
    const struct oj_gpu_index *index = b->index;
    int64_t n = 0, at = 0, *row;
    double *x, *y;
    for (int i = place; i < b->n_workers; i += index->n_places)
        n += index->slot[i].open.n;
    OJ_TRY(work->make(n, &row));
    OJ_TRY(work->make(n, &x, &y, &all->answers.measure));
    OJ_TRY(work->make(n, &all->answers.join_row));
    for (int i = place; i < b->n_workers; i += index->n_places)
    {
        const struct oj_cuda_open_rows *open = &index->slot[i].open;
        OJ_TRY(copy_on_device(work, row + at, open->row, open->n));
        OJ_TRY(copy_on_device(work, x + at, open->x, open->n));
        OJ_TRY(copy_on_device(work, y + at, open->y, open->n));
        at += open->n;
    }
    all->answers.row = row;
    all->points.x = x;
    all->points.y = y;
    all->answers.n = all->points.n = n;
    return OJ_OK;
}

/* Answers the open rows of a device, in device memory. Taken together, the rows
 * of all slots lie closer to each other and cost a fraction of what they cost
 * slot by slot (nearest boundary without maximum distance). */
static oj_status answer_all_open_rows(struct cuda_join_batch *b, int number,
                                      struct oj_error *err)
{
    struct oj_cuda_place *place = &b->index->place[number];
    const struct oj_cuda_index *asked = place->of[b->number]->asked;
    struct oj_cuda_pace *pace = &b->index->slot[number].pace[1];
    struct all_open_rows *all = &b->open[number];
    OJ_CUDA_TRY(cudaSetDevice(place->device.ordinal), "choosing a device", err);
    struct oj_cuda_work work(&place->device, place->device.stream, "joining",
                             err);
    OJ_TRY(gather_open_rows(b, number, &work, all));
    for (int64_t at = 0, n; at < all->points.n; at += n)
    {
        double start = oj_clock_seconds();
        n = oj_cuda_pace_next_rows(pace, all->points.n - at);
        struct oj_cuda_points points =
            view_points_from_row(&all->points, at, n);
        OJ_TRY(oj_check_cancel(b->index->options.cancel, err));
        OJ_TRY(asked->family->join_one(asked, &work, &points,
                                       all->answers.join_row + at,
                                       all->answers.measure + at));
        OJ_TRY(work.check(oj_cuda_wait(work.stream)));
        oj_cuda_pace_record(pace, n, oj_clock_seconds() - start);
    }
    oj_cuda_move_ownership(&work.memory, NULL, &all->memory);
    return OJ_OK;
}

static oj_status copy_open_answers_of_worker(struct cuda_join_batch *b, int i,
                                             struct oj_error *err)
{
    struct oj_cuda_slot *slot = &b->index->slot[i];
    struct all_open_rows *all = &b->open[i % b->index->n_places];
    int64_t step =
        oj_max_int64(all->answers.n / (4 * b->n_workers), LEAST_ROWS);
    int64_t at, n;
    if (slot->stream == NULL)
        return OJ_OK;
    step = oj_min_int64(step, usable_stage_bytes(slot) / OPEN_ANSWER_BYTES);
    while (!is_batch_stopped(b) &&
           (at = __atomic_fetch_add(&all->next, step, __ATOMIC_RELAXED)) <
               all->answers.n)
    {
        n = oj_min_int64(step, all->answers.n - at);
        OJ_TRY(copy_open_answers_to_result(b, slot, &all->answers, at, n, err));
    }
    return OJ_OK;
}

static oj_status answer_open_rows_of_worker(struct cuda_join_batch *b, int i,
                                            struct oj_error *err)
{
    struct cuda_batch_worker w = {};
    w.batch = b;
    w.place = &b->index->place[i % b->index->n_places];
    w.slot = &b->index->slot[i];
    w.err = err;
    return answer_open_rows_of_slot(&w);
}

/* Answers the rows that are still open after all chunks. If a device has no
 * memory for all of its open rows at once, they are answered slot by slot. */
static oj_status answer_remaining_open_rows(struct cuda_join_batch *b,
                                            struct oj_error *err)
{
    int n_places = b->index->n_places;
    oj_status status;
    b->open = (struct all_open_rows *)oj_calloc(n_places, sizeof *b->open);
    if (b->open == NULL)
        return oj_fail_nomem(err, n_places, sizeof *b->open);
    status = oj_cuda_threads_try_parallel(
        n_places,
        [=](int i, struct oj_error *error)
        { return answer_all_open_rows(b, i, error); },
        err);
    if (status == OJ_OK)
        status = run_on_all_workers(b, copy_open_answers_of_worker, err);
    else if (status == OJ_ERR_NOMEM)
        status = run_on_all_workers(b, answer_open_rows_of_worker, err);
    for (int i = 0; i < n_places; i++)
    {
        struct oj_cuda_device *device = &b->index->place[i].device;
        (void)cudaSetDevice(device->ordinal);
        oj_cuda_memory_free_all(device, device->stream, &b->open[i].memory);
    }
    oj_free(b->open);
    b->open = NULL;
    return status;
}

/* ---- a batch ------------------------------------------------------------ */

/* Copies chunks that are not in the result yet. If a worker got no slot (its
 * stream is NULL), other workers of its device copy them. */
static oj_status copy_remaining_chunks_of_worker(struct cuda_join_batch *b,
                                                 int i, struct oj_error *err)
{
    struct oj_cuda_slot *slot = &b->index->slot[i];
    return slot->stream != NULL ? copy_ready_chunks_to_result(b, slot, err)
                                : OJ_OK;
}

/* Copies the chunks that are not in the result yet. Called when the pairs of
 * all chunks are counted. */
static oj_status copy_remaining_chunks_to_result(struct cuda_join_batch *b,
                                                 struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n = b->n_counted_pairs;
    if (n > b->room)
        OJ_TRY(
            oj_matches_grow(out, b->n_before + b->room, b->n_before + n, err));
    b->room = n;
    if (b->n_placed < b->n_chunks)
        OJ_TRY(run_on_all_workers(b, copy_remaining_chunks_of_worker, err));
    out->n_entries = b->n_before + n;
    return OJ_OK;
}

static void free_chunks(struct cuda_join_batch *b)
{
    for (int64_t c = 0; b->pairs != NULL && c < b->n_chunks; c++)
        free_chunk_pairs(&b->pairs[c]);
    for (int64_t c = 0; b->tied != NULL && c < b->n_chunks; c++)
        oj_free(b->tied[c].row);
    oj_free(b->pairs);
    oj_free(b->tied);
    b->pairs = NULL;
    b->tied = NULL;
}

/* Allocates one zeroed T per chunk. */
template <typename T>
static oj_status allocate_one_per_chunk(const struct cuda_join_batch *b,
                                        T **out, struct oj_error *err)
{
    *out = (T *)oj_calloc(b->n_chunks, sizeof(T));
    return *out != NULL ? OJ_OK : oj_fail_nomem(err, b->n_chunks, sizeof(T));
}

/* Divides the batch into chunks and joins them on all devices. */
static oj_status join_chunks_on_all_devices(struct cuda_join_batch *b,
                                            struct oj_error *err)
{
    struct batch_sizes sizes;
    int64_t n = b->input->n_features;
    sizes = choose_chunk_sizes(b, n, b->in_pinned && b->out_pinned);
    b->n_workers = sizes.n_workers;
    b->chunk_rows = sizes.chunk_rows;
    b->n_chunks = (n + b->chunk_rows - 1) / b->chunk_rows;
    b->most_kept = sizes.spare_bytes / PAIR_BYTES;
    for (int i = 0; i < b->n_workers; i++)
        b->index->slot[i].open.n = 0;
    if (b->lists)
        OJ_TRY(allocate_one_per_chunk(b, &b->pairs, err));
    if (b->leaves_ties)
        OJ_TRY(allocate_one_per_chunk(b, &b->tied, err));
    OJ_TRY(run_on_all_workers(b, run_worker, err));
    if (b->next_chunk < b->n_chunks)
        return oj_fail(err, b->lack, "%s", b->lack_error.message);
    return b->leaves_open ? answer_remaining_open_rows(b, err) : OJ_OK;
}

/* Joins all rows and lists their pairs. The pairs of the batch begin at entry
 * n_before of out. */
static oj_status join_all_chunks_to_lists(struct cuda_join_batch *b,
                                          struct oj_error *err)
{
    b->offset[0] = b->n_before;
    if (b->input->n_features > 0)
        OJ_TRY(join_chunks_on_all_devices(b, err));
    return copy_remaining_chunks_to_result(b, err);
}

/* Prepares joining the n tied rows, of which only the distance is known so far:
 * makes room for their pairs in out, and a layer *points of these rows, whose
 * arrays are *buf (the caller frees it). */
static oj_status gather_tied_points(const struct cuda_join_batch *b, int64_t n,
                                    double **buf, struct oj_flat *points,
                                    struct oj_error *err)
{
    struct oj_matches *out = b->out;
    const struct oj_cuda_index *asked = b->index->place[0].of[b->number]->asked;
    double *x, *y, *distance;
    int64_t t = 0;
    OJ_TRY(oj_matches_reserve_tied(out, n, err));
    *buf = x = (double *)oj_malloc(3 * n, sizeof *x);
    if (x == NULL)
        return oj_fail_nomem(err, 3 * n, sizeof *x);
    y = x + n;
    distance = y + n;
    for (int64_t c = 0; c < b->n_chunks; c++)
    {
        for (int64_t i = 0; i < b->tied[c].n; i++, t++)
        {
            int64_t row = b->tied[c].row[i];
            x[t] = b->input->x[row];
            y[t] = b->input->y[row];
            distance[t] = out->measure[row];
            out->tied_row[t] = row;
            out->join_row[row] = (int32_t)(OJ_TIED_ROW - t);
            out->measure[row] = (double)NAN;
        }
    }
    points->n_features = points->n_vertices = n;
    points->part_kinds = OJ_PART_POINT;
    points->x = x;
    points->y = y;
    points->max_distance =
        oj_relation_is_dwithin(&asked->relation) ? distance : NULL;
    return OJ_OK;
}

/* Joins the tied rows of the batch a second time, by the index `asked`. Their
 * pairs become entries of out behind the entries of the rows. */
static oj_status list_all_pairs_of_tied_rows(struct cuda_join_batch *b,
                                             struct oj_error *err)
{
    struct cuda_join_batch tied_batch = {};
    double *buf = NULL;
    struct oj_flat points = {};
    oj_status status;
    int64_t n = 0;
    for (int64_t c = 0; c < b->n_chunks; c++)
        n += b->tied[c].n;
    OJ_TRY(check_pair_limit(b, b->n_matched, err));
    if (n == 0)
        return OJ_OK;
    if (n > INT32_MAX + (int64_t)OJ_TIED_ROW)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more than 2^31 rows with ties; use "
                       "smaller batches");
    tied_batch.index = b->index;
    tied_batch.number = b->number;
    tied_batch.family = b->index->place[0].of[b->number]->asked->family;
    tied_batch.is_tied = tied_batch.lists = 1;
    tied_batch.input = &points;
    tied_batch.out = b->out;
    tied_batch.most_pairs = b->most_pairs;
    tied_batch.n_pairs = b->n_matched;
    tied_batch.n_before = b->out->n_rows;
    status = gather_tied_points(b, n, &buf, &points, err);
    if (status == OJ_OK)
    {
        tied_batch.offset = b->out->tied_offset;
        status = join_all_chunks_to_lists(&tied_batch, err);
        free_chunks(&tied_batch);
    }
    b->n_matched += tied_batch.n_matched;
    b->n_pairs = tied_batch.n_pairs;
    oj_free(buf);
    return status;
}

/* Joins a batch with one answer per row. */
static oj_status join_batch_one_pair_per_row(struct cuda_join_batch *b,
                                             struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n = b->input->n_features, bytes = n * (int64_t)sizeof(double);
    int64_t n_ties = b->leaves_ties ? n / TIES_OF : 0;
    int64_t batch = b->index->options.gpu_batch;
    OJ_TRY(oj_matches_reserve(out, n, n + n_ties, 0, err));
    out->n_entries = n;
    if (n == 0)
        return OJ_OK;
    b->out_pinned =
        n_ties == 0 && oj_cuda_is_pinned(out->measure, bytes) &&
        oj_cuda_is_pinned(out->join_row, n * (int64_t)sizeof(int32_t));
    /* Rows are left open only if this saves time. It does not with pinned
     * memory: its few host threads take longer to store such answers one by one
     * than the device takes to find them chunk by chunk. It does not with a
     * single chunk either, in which all rows are together anyway. */
    b->leaves_open = !b->leaves_ties && !(b->in_pinned && b->out_pinned) &&
                     n > (batch > 0 ? batch : few_rows) &&
                     b->family->join_most != NULL &&
                     b->index->place[0].of[b->number]->asked != NULL;
    OJ_TRY(join_chunks_on_all_devices(b, err));
    b->n_pairs = b->n_matched;
    return b->leaves_ties ? list_all_pairs_of_tied_rows(b, err) : OJ_OK;
}

static oj_status join_batch_to_matches(struct cuda_join_batch *b,
                                       struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n = b->input->n_features;
    int64_t bytes = n * (int64_t)sizeof(double);
    if (b->family->find_share != NULL && b->taker == NULL)
        return oj_cuda_join_shares(b->index, b->number, b->input, out, b->stats,
                                   err);
    OJ_CUDA_TRY(cudaSetDevice(b->index->place[0].device.ordinal),
                "choosing a device", err);
    b->in_pinned = oj_cuda_is_pinned(b->input->x, bytes) &&
                   oj_cuda_is_pinned(b->input->y, bytes);
    b->goes_past_caches = bytes > most_cached_bytes;
    if (b->taker != NULL)
    {
        b->out_pinned = 1;
        return join_chunks_on_all_devices(b, err);
    }
    if (b->lists)
    {
        OJ_TRY(oj_matches_reserve(out, n, 0, 1, err));
        b->offset = out->offset;
        OJ_TRY(join_all_chunks_to_lists(b, err));
    }
    else
        OJ_TRY(join_batch_one_pair_per_row(b, err));
    out->n_pairs = b->n_pairs;
    out->n_matched = b->n_matched;
    return OJ_OK;
}

/* Runs the batch on threads of the module, so that the caller's current device
 * stays unchanged. */
static oj_status run_batch_on_own_threads(struct cuda_join_batch *b,
                                          struct oj_error *err)
{
    double start = oj_clock_seconds();
    double stages_s = b->stats->filter_s + b->stats->refine_s;
    oj_status status = oj_cuda_threads_try_on_module(
        1,
        [&](int, struct oj_error *error)
        {
            oj_status joined = join_batch_to_matches(b, error);
            free_chunks(b);
            return joined;
        },
        err);
    /* methods of papers have added the times of their own stages, which exclude
     * copies; for other methods all time counts as refinement */
    if (b->stats->filter_s + b->stats->refine_s == stages_s)
        b->stats->refine_s += oj_clock_seconds() - start;
    return status;
}

oj_status oj_cuda_index_join(struct oj_gpu_index *index,
                             const struct oj_flat *input,
                             struct oj_matches *out, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct cuda_join_batch batch = {};
    batch.index = index;
    batch.input = input;
    batch.out = out;
    batch.stats = stats;
    OJ_TRY(
        oj_cuda_index_prepare_family(index, input, &batch.number, stats, err));
    batch.family = oj_cuda_family_at(batch.number);
    batch.lists = oj_relation_allows_many_pairs(&index->relation);
    batch.leaves_ties = batch.lists && batch.family->list == NULL;
    batch.lists -= batch.leaves_ties;
    batch.most_pairs = oj_most_pairs_of_batch(index->options.max_batch_pairs,
                                              input->n_features);
    return run_batch_on_own_threads(&batch, err);
}

oj_status oj_cuda_index_pass_chunks_to_taker(struct oj_gpu_index *index,
                                             int family,
                                             const struct oj_flat *input,
                                             const struct oj_cuda_taker *taker,
                                             struct oj_stats *stats,
                                             struct oj_error *err)
{
    struct cuda_join_batch batch = {};
    batch.index = index;
    batch.family = oj_cuda_family_at(family);
    batch.number = family;
    batch.input = input;
    batch.taker = taker;
    batch.stats = stats;
    return run_batch_on_own_threads(&batch, err);
}
